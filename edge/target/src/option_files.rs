//! Option files of MySQL's and MariaDB's clients: where the server is, as a program would find it there.
//!
//! Source: MySQL Reference Manual, "Using Option Files" and "The .mylogin.cnf Login File"; MariaDB Knowledge Base,
//! "Configuring MariaDB with Option Files".

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::login_path;
use crate::{ConninfoError, Environment, Protocol, Settings};

/// Files within files, at most.
const DEPTH_MAX: usize = 10;
/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Groups that all clients read.
const GROUPS: [&str; 3] = ["client", "client-server", "client-mariadb"];
/// Options of the server's place, and what they are called in settings.
const OPTIONS: [(&str, &str); 5] =
    [("host", "host"), ("port", "port"), ("socket", "socket"), ("database", "dbname"), ("user", "user")];
const PROTOCOL: &str = "protocol";
const SUFFIX_VARIABLE: &str = "MYSQL_GROUP_SUFFIX";
const LOGIN_FILE_VARIABLE: &str = "MYSQL_TEST_LOGIN_FILE";

/// What option files say, and the last one of them that says where the server is.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) settings: Settings,
    pub(crate) file: Option<PathBuf>,
    protocol: Option<String>,
}

/// Which files a program reads, by the first of its arguments.
#[derive(Debug, Default)]
pub(crate) struct Which {
    none: bool,
    only: Option<PathBuf>,
    extra: Option<PathBuf>,
    suffix: Option<String>,
    login_path: Option<String>,
}

impl Which {
    /// What a program's arguments say.
    pub(crate) fn of<'a>(arguments: impl IntoIterator<Item = &'a OsStr>) -> Self {
        let mut which = Self::default();
        for argument in arguments.into_iter().filter_map(OsStr::to_str) {
            match argument.split_once('=') {
                None if argument == "--no-defaults" => which.none = true,
                Some(("--defaults-file", file)) => which.only = Some(file.into()),
                Some(("--defaults-extra-file", file)) => which.extra = Some(file.into()),
                Some(("--defaults-group-suffix", suffix)) => which.suffix = Some(suffix.to_owned()),
                Some(("--login-path", name)) => which.login_path = Some(name.to_owned()),
                _ => {}
            }
        }
        which
    }
}

/// Reads the files of this machine and the user's, in the order in which clients do: a later one goes before. `program` is
/// the client's name, whose own group it reads, too; without one, the machine's files are not read.
///
/// # Errors
/// A file that was named and cannot be read.
pub(crate) fn read(
    which: &Which,
    program: Option<&str>,
    environment: &Environment,
) -> Result<Options, ConninfoError> {
    let suffix = match &which.suffix {
        Some(suffix) => Some(suffix.as_str()),
        None => environment.var(SUFFIX_VARIABLE)?,
    };
    let mut groups: Vec<String> = GROUPS.map(str::to_owned).to_vec();
    groups.extend(program.map(str::to_owned));
    if let Some(suffix) = suffix {
        let with_suffix: Vec<_> = groups.iter().map(|group| format!("{group}{suffix}")).collect();
        groups.extend(with_suffix);
    }
    let settings = Settings::default().with_protocol(Protocol::Mysql);
    let mut reader = Reader { groups, options: Options { settings, file: None, protocol: None } };
    let home = environment.home.as_deref();
    if let Some(file) = &which.only {
        reader.named(file)?;
    } else if !which.none {
        for file in environment.option_files.iter().filter(|_| program.is_some()) {
            reader.file(file, 0);
        }
        if let Some(file) = &which.extra {
            reader.named(file)?;
        }
        if let Some(home) = home {
            reader.file(&home.join(".my.cnf"), 0);
        }
    }
    // The login file is read whatever else is left out.
    let own = environment.var(LOGIN_FILE_VARIABLE)?.map(PathBuf::from);
    let login_file = own.or_else(|| home.map(|home| home.join(".mylogin.cnf")));
    if let Some(file) = login_file.filter(|file| file.exists()) {
        reader.groups.extend(which.login_path.clone());
        match bytes_of(&file).and_then(|bytes| login_path::decode(&bytes)) {
            Some(text) => reader.text(&text, &file, DEPTH_MAX),
            None if which.login_path.is_some() => return Err(ConninfoError::OptionFile { path: file }),
            None => {}
        }
    }
    Ok(reader.options.by_protocol())
}

impl Options {
    /// Whether anything says where the server is.
    pub(crate) fn names_a_server(&self) -> bool {
        ["host", "port", "socket"].iter().any(|keyword| self.settings.get_nonempty(keyword).is_some())
    }

    /// A client that is told to use TCP does not use the socket.
    fn by_protocol(mut self) -> Self {
        if self.protocol.as_deref().is_some_and(|protocol| protocol.eq_ignore_ascii_case("tcp")) {
            self.settings.set("socket", "");
        }
        self
    }
}

struct Reader {
    groups: Vec<String>,
    options: Options,
}

impl Reader {
    fn named(&mut self, file: &Path) -> Result<(), ConninfoError> {
        match self.file(file, 0) {
            true => Ok(()),
            false => Err(ConninfoError::OptionFile { path: file.to_path_buf() }),
        }
    }

    /// Reads a file; whether it can be read.
    fn file(&mut self, file: &Path, depth: usize) -> bool {
        let Some(text) = bytes_of(file).and_then(|bytes| String::from_utf8(bytes).ok()) else { return false };
        self.text(&text, file, depth);
        true
    }

    fn text(&mut self, text: &str, file: &Path, depth: usize) {
        let mut is_ours = false;
        for line in text.lines().map(str::trim) {
            if let Some(header) = line.strip_prefix('[') {
                let group = header.split(']').next().unwrap_or_default().trim();
                is_ours = self.groups.iter().any(|own| own == group);
            } else if let Some(word) = line.strip_prefix('!') {
                self.include(word, depth + 1);
            } else if is_ours && !line.starts_with(['#', ';']) {
                self.option(line, file);
            }
        }
    }

    fn include(&mut self, word: &str, depth: usize) {
        if depth >= DEPTH_MAX {
            return;
        }
        if let Some(directory) = word.strip_prefix("includedir") {
            let entries = std::fs::read_dir(directory.trim()).into_iter().flatten().flatten();
            let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
            files.sort();
            for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "cnf")) {
                self.file(file, depth);
            }
        } else if let Some(file) = word.strip_prefix("include") {
            self.file(Path::new(file.trim()), depth);
        }
    }

    fn option(&mut self, line: &str, file: &Path) {
        let Some((name, value)) = line.split_once('=') else { return };
        let name = name.trim().replace('_', "-");
        let name = name.strip_prefix("loose-").unwrap_or(&name);
        let value = value_of(value);
        if name == PROTOCOL {
            self.options.protocol = Some(value);
        } else if let Some((_, keyword)) = OPTIONS.iter().find(|(option, _)| *option == name) {
            self.options.settings.set(keyword, value);
            if matches!(*keyword, "host" | "port" | "socket") {
                self.options.file = Some(file.to_path_buf());
            }
        }
    }
}

/// A value: blanks around it, a comment behind it and quotes do not belong to it, and escapes stand for a sign.
fn value_of(text: &str) -> String {
    let text = text.trim();
    let quote = text.chars().next().filter(|sign| matches!(sign, '"' | '\''));
    let inner = match quote.and_then(|quote| text[1..].split_once(quote)) {
        Some((inner, _)) => inner,
        None => text.split_once('#').map_or(text, |(value, _)| value.trim_end()),
    };
    let mut value = String::new();
    let mut signs = inner.chars();
    while let Some(sign) = signs.next() {
        let escaped = if sign == '\\' { signs.clone().next() } else { None };
        let meant = match escaped {
            Some('b') => Some('\u{8}'),
            Some('t') => Some('\t'),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('s') => Some(' '),
            Some(sign @ ('\\' | '"' | '\'')) => Some(sign),
            _ => None,
        };
        if meant.is_some() {
            signs.next();
        }
        value.push(meant.unwrap_or(sign));
    }
    value
}

fn bytes_of(file: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(files: &[(&str, &str)]) -> (tempfile::TempDir, Environment) {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        let mut environment = Environment::default();
        environment.home = Some(directory.path().to_path_buf());
        (directory, environment)
    }

    fn read_by(
        arguments: &[&str],
        program: Option<&str>,
        environment: &Environment,
    ) -> Vec<(String, String)> {
        let which = Which::of(arguments.iter().map(OsStr::new));
        let options = read(&which, program, environment).unwrap();
        options.settings.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn groups_that_clients_read_count_and_the_last_value_of_an_option() {
        let file = "host=before\n[mysqld]\nport=1\n# [client]\n[client]\nhost = \"db\" \nport=3307 # one\n\
                    loose-user = a\\sb\nssl\n[mysql]\nhost=other\n[client]\nhost='last'\n";
        let (_directory, environment) = home(&[(".my.cnf", file)]);
        assert_eq!(
            read_by(&[], None, &environment),
            pairs(&[("host", "last"), ("port", "3307"), ("user", "a b")])
        );
        assert_eq!(read_by(&[], Some("mysql"), &environment)[0].1, "last");
        assert_eq!(read_by(&["--no-defaults"], None, &environment), []);
    }

    #[test]
    fn files_include_others_and_a_group_may_have_a_suffix() {
        let (directory, environment) = home(&[]);
        let path = |name: &str| directory.path().join(name);
        std::fs::create_dir(path("more")).unwrap();
        for (name, text) in [
            ("more/b.cnf", "[client]\nhost=second"),
            ("more/a.cnf", "[client]\nhost=first\nport=3307"),
            ("more/c.txt", "[client]\nhost=third"),
            ("one", "[client_far]\nsocket=/far.sock"),
        ] {
            std::fs::write(path(name), text).unwrap();
        }
        let whole = format!(
            "!includedir {}\n!include {}\n!include {}\n",
            path("more").display(),
            path("one").display(),
            path("whole").display()
        );
        std::fs::write(path("whole"), whole).unwrap();
        let named = format!("--defaults-file={}", path("whole").display());
        assert_eq!(read_by(&[&named], None, &environment), pairs(&[("host", "second"), ("port", "3307")]));
        let found = read_by(&[&named, "--defaults-group-suffix=_far"], None, &environment);
        assert_eq!(found.last(), Some(&("socket".to_owned(), "/far.sock".to_owned())));
    }

    #[test]
    fn the_machines_files_are_for_mysqls_own_clients() {
        let (directory, mut environment) =
            home(&[("system.cnf", "[client]\nsocket=/run/x.sock\n[mysqldump]\nport=3308\n")]);
        environment.option_files = vec![directory.path().join("system.cnf")];
        assert_eq!(read_by(&[], None, &environment), []);
        assert_eq!(read_by(&[], Some("mysql"), &environment), pairs(&[("socket", "/run/x.sock")]));
        assert_eq!(read_by(&[], Some("mysqldump"), &environment).len(), 2);
    }

    #[test]
    fn a_file_that_was_named_has_to_be_there() {
        let (_directory, environment) = home(&[]);
        let which = Which::of([OsStr::new("--defaults-file=/no/such")]);
        let error = read(&which, None, &environment).unwrap_err();
        assert_eq!(error, ConninfoError::OptionFile { path: "/no/such".into() });
    }

    #[test]
    fn tcp_leaves_the_socket_out() {
        let (_directory, environment) =
            home(&[(".my.cnf", "[client]\nsocket=/x\nprotocol=TCP\nport=3310\n")]);
        let options = read(&Which::default(), None, &environment).unwrap();
        assert_eq!(options.settings.get_nonempty("socket"), None);
        assert!(options.names_a_server());
        assert!(options.file.is_some_and(|file| file.ends_with(".my.cnf")));
    }
}
