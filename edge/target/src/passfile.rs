//! libpq's password file, `.pgpass`: finding a password in it, and a copy that knows another address as well.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::conninfo::Secret;
use crate::{Conninfo, Host, HostName};

/// Socket directories that libpq is built with; in the file they are called `localhost`.
const DEFAULT_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// A password file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PassfileError {
    /// libpq warns about such a file and ignores it.
    #[error(
        "password file \"{}\" has group or world access; permissions should be u=rw (0600) or less: run chmod 0600 on it",
        path.display()
    )]
    Access {
        /// The file.
        path: PathBuf,
    },
    /// A directory or a device.
    #[error("password file \"{}\" is not a plain file", path.display())]
    NotPlain {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read, or the copy not be written.
    #[error("password file \"{}\" cannot be {verb}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried: `read` or `written`.
        verb: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// A password that matches, but is no text.
    #[error("the password in password file \"{}\" is not UTF-8", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
    },
}

/// The lines of a password file.
#[derive(Clone)]
pub struct Passfile {
    path: PathBuf,
    lines: Vec<Vec<u8>>,
}

/// A password file of our own, readable by this user only, deleted when dropped.
#[derive(Debug)]
pub struct TempPassfile {
    path: TempPath,
}

impl Passfile {
    /// Reads a file; `None` if there is none.
    ///
    /// # Errors
    /// A file that libpq would ignore with a warning, or that cannot be read.
    pub fn read(path: &Path) -> Result<Option<Self>, PassfileError> {
        let failed = |source| PassfileError::Io { path: path.to_path_buf(), verb: "read", source };
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if !metadata.is_file() {
            return Err(PassfileError::NotPlain { path: path.to_path_buf() });
        }
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(PassfileError::Access { path: path.to_path_buf() });
        }
        let content = fs::read(path).map_err(failed)?;
        let lines = content.split(|byte| *byte == b'\n').map(|line| trim_line_end(line).to_vec());
        Ok(Some(Self { path: path.to_path_buf(), lines: lines.collect() }))
    }

    /// The password of the first line that fits. `host` is what the file would call it; see [`names`].
    ///
    /// # Errors
    /// A password that is not UTF-8.
    pub fn password(
        &self,
        host: &str,
        port: u16,
        dbname: &str,
        user: &str,
    ) -> Result<Option<Secret>, PassfileError> {
        let port = port.to_string();
        let fields = [host, &port, dbname, user].map(str::as_bytes);
        let Some(rest) = self.entries().find_map(|line| skip_fields(line, &fields)) else { return Ok(None) };
        match String::from_utf8(unescape(rest)) {
            Ok(password) => Ok(Some(Secret::new(password))),
            Err(_) => Err(PassfileError::NotUtf8 { path: self.path.clone() }),
        }
    }

    /// Writes a copy in which every line for one of these hosts also stands for the new address. The new lines come
    /// first, in the old order, so that the same password is found as before. `None` if no line is for these hosts.
    ///
    /// # Errors
    /// A temporary file that cannot be written.
    pub fn rekeyed(
        &self,
        hosts: &[Host],
        address: SocketAddr,
    ) -> Result<Option<TempPassfile>, PassfileError> {
        let added = self.lines_for(hosts, address);
        if added.is_empty() {
            return Ok(None);
        }
        let mut content = added;
        for line in &self.lines {
            content.extend_from_slice(line);
            content.push(b'\n');
        }
        TempPassfile::write(&content).map(Some)
    }

    fn lines_for(&self, hosts: &[Host], address: SocketAddr) -> Vec<u8> {
        let mut names = vec![address.ip().to_string().replace(':', "\\:")];
        if address.ip().is_loopback() {
            names.push("localhost".to_owned());
        }
        let mut added = Vec::new();
        for host in hosts {
            let port = host.port.to_string();
            for line in self.entries() {
                let rest = self::names(host)
                    .iter()
                    .find_map(|name| skip_fields(line, &[name.as_bytes(), port.as_bytes()]));
                for name in rest.iter().flat_map(|_| &names) {
                    added.extend_from_slice(format!("{name}:{}:", address.port()).as_bytes());
                    added.extend_from_slice(rest.unwrap_or_default());
                    added.push(b'\n');
                }
            }
        }
        added
    }

    fn entries(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().map(Vec::as_slice).filter(|line| !line.is_empty() && line[0] != b'#')
    }
}

impl TempPassfile {
    fn write(content: &[u8]) -> Result<Self, PassfileError> {
        let failed =
            |path: &Path, source| PassfileError::Io { path: path.to_path_buf(), verb: "written", source };
        let mut file = tempfile::Builder::new()
            .prefix("onetrip-pgpass-")
            .permissions(fs::Permissions::from_mode(0o600))
            .tempfile()
            .map_err(|source| failed(&std::env::temp_dir(), source))?;
        file.write_all(content).map_err(|source| failed(file.path(), source))?;
        Ok(Self { path: file.into_temp_path() })
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The password for one of the hosts: the one written out, else the password file's.
///
/// # Errors
/// As [`Passfile::read`] and [`Passfile::password`].
pub fn password_for(conninfo: &Conninfo, host: &Host) -> Result<Option<Secret>, PassfileError> {
    if conninfo.password.is_some() {
        return Ok(conninfo.password.clone());
    }
    let (Some(path), Some(user), Some(dbname)) = (&conninfo.passfile, &conninfo.user, &conninfo.dbname)
    else {
        return Ok(None);
    };
    let Some(file) = Passfile::read(path)? else { return Ok(None) };
    for name in names(host) {
        if let Some(password) = file.password(&name, host.port, dbname, user)? {
            return Ok(Some(password));
        }
    }
    Ok(None)
}

/// What a password file calls a host: libpq's default socket directory is `localhost` there.
pub fn names(host: &Host) -> Vec<String> {
    let name = host.name().into_owned();
    match &host.name {
        HostName::Unix(_) if DEFAULT_DIRECTORIES.contains(&name.as_str()) => {
            vec!["localhost".to_owned(), name]
        }
        _ => vec![name],
    }
}

/// What remains of a line after fields that match, each by its text or by `*`.
fn skip_fields<'a>(line: &'a [u8], wanted: &[&[u8]]) -> Option<&'a [u8]> {
    wanted.iter().try_fold(line, |rest, wanted| skip_field(rest, wanted))
}

fn skip_field<'a>(line: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    if let Some(rest) = line.strip_prefix(b"*:") {
        return Some(rest);
    }
    let mut wanted = wanted.iter();
    let mut position = 0;
    loop {
        match (line.get(position)?, wanted.len()) {
            (b':', 0) => return line.get(position + 1..),
            (b'\\', _) => position += 1,
            _ => {}
        }
        if line.get(position)? != wanted.next()? {
            return None;
        }
        position += 1;
    }
}

/// A password without its escapes, up to the next colon.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut password = Vec::new();
    let mut bytes = field.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b':' => break,
            b'\\' => password.push(bytes.next().unwrap_or(b'\\')),
            byte => password.push(byte),
        }
    }
    password
}

/// Without the line ends that libpq strips.
fn trim_line_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |last| last + 1);
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn passfile(content: &str) -> Passfile {
        let lines = content.split('\n').map(|line| line.as_bytes().to_vec()).collect();
        Passfile { path: PathBuf::from("test"), lines }
    }

    fn password(content: &str, host: &str) -> Option<String> {
        let found = passfile(content).password(host, 5432, "shop", "ada").unwrap();
        found.map(|password| password.reveal().to_owned())
    }

    fn rekeyed(content: &str, host: &Host, address: &str) -> String {
        let lines = passfile(content).lines_for(std::slice::from_ref(host), address.parse().unwrap());
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn the_first_line_that_fits_counts() {
        let content =
            "# db:5432:shop:ada:comment\nother:*:*:*:no\ndb:5433:*:*:no\ndb:5432:shop:ada:yes\n*:*:*:*:late";
        assert_eq!(password(content, "db").as_deref(), Some("yes"));
        assert_eq!(password(content, "elsewhere").as_deref(), Some("late"));
        assert_eq!(password("db:5432:shop:grace:x", "db"), None);
    }

    #[test]
    fn colons_and_backslashes_are_escaped() {
        assert_eq!(password(r"\:\:1:5432:shop:ada:a\:b\\c", "::1").as_deref(), Some(r"a:b\c"));
        assert_eq!(password(r"d\\b:5432:shop:ada:x:more", r"d\b").as_deref(), Some("x"));
        assert_eq!(password(r"db:5432:shop:ada:x\", "db").as_deref(), Some(r"x\"));
        assert_eq!(password("db:5432:shop", "db"), None);
        assert_eq!(password("**:5432:shop:ada:x", "db"), None);
    }

    #[test]
    fn lines_for_the_old_address_stand_for_the_new_one_as_well() {
        let content = "db:5432:shop:ada:a\\:1\nx:5432:*:*:no\n*:*:*:grace:g\ndb:1:*:*:no";
        assert_eq!(
            rekeyed(content, &Host::tcp("db", 5432), "127.0.0.1:6432"),
            "127.0.0.1:6432:shop:ada:a\\:1\nlocalhost:6432:shop:ada:a\\:1\n127.0.0.1:6432:*:grace:g\nlocalhost:6432:*:grace:g\n"
        );
        assert_eq!(
            rekeyed("db:5432:*:*:p", &Host::tcp("db", 5432), "[2001:db8::1]:6"),
            "2001\\:db8\\:\\:1:6:*:*:p\n"
        );
    }

    #[test]
    fn the_default_socket_directory_is_called_localhost() {
        let socket = Host::unix("/var/run/postgresql", 5432);
        assert_eq!(rekeyed("localhost:5432:d:u:p", &socket, "10.0.0.1:6"), "10.0.0.1:6:d:u:p\n");
        assert_eq!(names(&Host::unix("/srv/pg", 5432)), ["/srv/pg"]);
    }

    #[test]
    fn a_file_that_others_may_read_is_refused_as_in_libpq() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pgpass");
        assert!(Passfile::read(&path).unwrap().is_none());
        fs::write(&path, "db:5432:shop:ada:secret\r\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Passfile::read(&path), Err(PassfileError::Access { .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let found = Passfile::read(&path).unwrap().unwrap().password("db", 5432, "shop", "ada").unwrap();
        assert_eq!(found.unwrap().reveal(), "secret");
        assert!(matches!(Passfile::read(directory.path()), Err(PassfileError::NotPlain { .. })));
    }

    #[test]
    fn the_copy_is_private_finds_the_same_password_and_goes_away() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pgpass");
        fs::write(&path, "db:5432:shop:ada:secret\nother:*:*:*:else\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let file = Passfile::read(&path).unwrap().unwrap();
        let address = "127.0.0.1:6432".parse().unwrap();
        assert!(file.rekeyed(&[Host::tcp("nobody", 5432)], address).unwrap().is_none());
        let copy = file.rekeyed(&[Host::tcp("db", 5432)], address).unwrap().unwrap();
        let place = copy.path().to_path_buf();
        assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
        let text = format!("host=127.0.0.1 port=6432 dbname=shop user=ada passfile='{}'", place.display());
        let conninfo = Conninfo::parse(&text, &crate::Environment::default()).unwrap();
        let found = password_for(&conninfo, &conninfo.hosts[0]).unwrap();
        assert_eq!(found, Some(Secret::new("secret")));
        assert!(fs::read_to_string(&place).unwrap().ends_with("\nother:*:*:*:else\n\n"));
        drop(copy);
        assert!(!place.exists());
    }

    proptest! {
        #[test]
        fn the_new_address_finds_what_the_old_one_found(
            content in "((db|\\*|x|\\\\:):(5432|\\*|1):(shop|\\*):(ada|\\*|bo):[a-z:\\\\]{0,4}\n){0,6}",
        ) {
            let found = password(&content, "db");
            let moved = rekeyed(&content, &Host::tcp("db", 5432), "127.0.0.1:6432") + "#";
            let again = passfile(&moved).password("127.0.0.1", 6432, "shop", "ada").unwrap();
            prop_assert_eq!(again.map(|password| password.reveal().to_owned()), found);
        }

        #[test]
        fn no_content_makes_the_reader_panic(content in "[a:*\\\\\n#é]{0,40}", host in "[a:*\\\\]{0,4}") {
            let _ = password(&content, &host);
        }
    }
}
