//! What can be wrong with connection settings. No variant carries a value that could be a password.

use std::path::PathBuf;

use crate::keywords::variable_of;

/// Connection settings that cannot be read or do not fit together.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConninfoError {
    /// Nothing but blanks.
    #[error("the connection text is empty: write {FORMS}")]
    Empty,
    /// No known notation.
    #[error("this is not a database's address: write {FORMS}")]
    NotRecognised,
    /// A URL of something else.
    #[error("\"{scheme}:\" is no URL of PostgreSQL or MySQL: write {FORMS}")]
    Scheme {
        /// What stands before the colon.
        scheme: String,
    },
    /// An address of a Go DSN in a URL.
    #[error(
        "\"{name}\" is no host: an address of Go's stands in a DSN, without mysql://, as in user@unix(/run/mysqld/mysqld.sock)/database"
    )]
    GoAddress {
        /// What stands in the host's place.
        name: String,
    },
    /// An address of MySQL's where only PostgreSQL will do.
    #[error(
        "this is the address of a MySQL server, and it has to be PostgreSQL's: write host:port or postgres://user@host:port/database"
    )]
    NotPostgres,
    /// Text that is not UTF-8, or becomes so when decoded, or holds a NUL.
    #[error("{place} is not UTF-8 text, or holds a NUL byte")]
    NotUtf8 {
        /// A variable, a file or a part of the connection text.
        place: String,
    },
    /// libpq: `missing "=" after …`.
    #[error(
        "missing \"=\" after the word at byte {position}: write keyword=value, and quote a value that has blanks: keyword='two words'"
    )]
    MissingEquals {
        /// Byte offset in the text.
        position: usize,
    },
    /// libpq: `unterminated quoted string in connection info string`.
    #[error("the quoted value that begins at byte {position} has no closing quote")]
    Unterminated {
        /// Byte offset of the opening quote.
        position: usize,
    },
    /// libpq: `invalid percent-encoded token`.
    #[error(
        "\"%\" at byte {position} is not followed by two hexadecimal digits: write %25 for a percent sign"
    )]
    Percent {
        /// Byte offset in the text.
        position: usize,
    },
    /// libpq: `end of string reached when looking for matching "]"` and its relatives.
    #[error("the IPv6 address at byte {position} is not written [address] or [address]:port")]
    Brackets {
        /// Byte offset in the text.
        position: usize,
    },
    /// A host that cannot be one; most often a password with unescaped signs in it.
    #[error(
        "the host is not a host name: if the password holds one of @ : / ? # write it as %40 %3A %2F %3F %23 in a URL"
    )]
    Host,
    /// A port out of range or not a number.
    #[error(
        "the port is not a number from 1 to 65535: if the password holds one of @ : / ? # write it as %40 %3A %2F %3F %23 in a URL"
    )]
    Port,
    /// `hostaddr` holds something else than an address.
    #[error("hostaddr must be an IPv4 or IPv6 address: write a name as host")]
    HostAddress,
    /// libpq: `could not match … to … hosts`.
    #[error("{count} {keyword} values for {hosts} hosts: give one for each host{}", if *.keyword == "port" { ", or a single one" } else { "" })]
    Count {
        /// `port` or `host`.
        keyword: &'static str,
        /// How many were given.
        count: usize,
        /// How many hosts there are.
        hosts: usize,
    },
    /// A value that the keyword cannot have.
    #[error("invalid {keyword}: it must be {expected}")]
    Value {
        /// libpq's keyword.
        keyword: &'static str,
        /// The values that are possible.
        expected: &'static str,
    },
    /// libpq: `weak sslmode … may not be used with sslrootcert=system`.
    #[error("weak sslmode \"{sslmode}\" may not be used with sslrootcert=system: use verify-full")]
    WeakSslMode {
        /// The mode that was asked for.
        sslmode: crate::SslMode,
    },
    /// No `user` anywhere, and the account of this process has no name.
    #[error("no user name: set PGUSER or write user=… (the operating system has no name for this account)")]
    NoUser,
    /// libpq: `service file … not found`.
    #[error("service file {} cannot be read: correct PGSERVICEFILE", path.display())]
    ServiceFile {
        /// The file.
        path: PathBuf,
    },
    /// An option file of MySQL's clients that was named.
    #[error("option file {} cannot be read: correct --defaults-file, --defaults-extra-file or --login-path", path.display())]
    OptionFile {
        /// The file.
        path: PathBuf,
    },
    /// libpq: `definition of service … not found`.
    #[error(
        "definition of service \"{service}\" not found: add a [{service}] section to {file}, or name another one in PGSERVICE"
    )]
    ServiceUnknown {
        /// The service's name.
        service: String,
        /// The file that libpq reads first.
        file: String,
    },
    /// libpq: `syntax error in service file …`.
    #[error("syntax error in service file {}, line {line}: write keyword=value, and no service= in it", path.display())]
    ServiceSyntax {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
    },
    /// A setting that a gateway cannot keep.
    #[error("{keyword} cannot be enforced: {why}. Leave it out of the connection text{}", variable_too(.keyword))]
    NotKept {
        /// The setting.
        keyword: &'static str,
        /// Why not, and what to do.
        why: &'static str,
    },
    /// A setting of TLS with a MySQL server that is not read.
    #[error(
        "{keyword} cannot be enforced: it says nothing about TLS that onetrip understands. Use ssl-mode=DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY, with ssl-ca, ssl-cert and ssl-key"
    )]
    TlsNotKept {
        /// The setting.
        keyword: String,
    },
    /// A name that is like one of libpq's.
    #[error("{name} is no setting of PostgreSQL's: did you mean {meant}?")]
    Misspelt {
        /// The name.
        name: String,
        /// What it is like.
        meant: &'static str,
    },
}

/// ", or unset PGTARGETSESSIONATTRS", for a keyword that libpq also reads from a variable.
fn variable_too(keyword: &str) -> String {
    variable_of(keyword).map_or(String::new(), |variable| format!(", or unset {variable}"))
}

const FORMS: &str = "host:port, postgres://user@host:port/database, mysql://host:port, jdbc:postgresql://host:port/database or host=… port=… dbname=…";
