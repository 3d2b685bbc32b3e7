//! Option files of MySQL's and MariaDB's clients: where the server is, as a program would find it there.
//!
//! Source: MySQL Reference Manual, "Using Option Files" and "The .mylogin.cnf Login File"; MariaDB Knowledge Base,
//! "Configuring MariaDB with Option Files".

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, SpliceFlags};

use crate::launch::full_name;
use crate::login_path;
use crate::mysql_clients::Reader;
use crate::{ConninfoError, Environment, Protocol, Settings};

/// Files within files, at most.
const DEPTH_MAX: usize = 10;
/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Longest wait until a pipe that was named as a file is written.
const PIPE_WAIT_MAX: Duration = Duration::from_secs(5);
/// Linux's `PIPEFS_MAGIC`.
const PIPE_FILE_SYSTEM: rustix::fs::FsWord = 0x5049_5045;
const PIPE_LOOK_EVERY: Duration = Duration::from_millis(5);
/// Options of the server's place, and what they are called in settings.
const OPTIONS: [(&str, &str); 5] =
    [("host", "host"), ("port", "port"), ("socket", "socket"), ("database", "dbname"), ("user", "user")];
const PROTOCOL: &str = "protocol";
const LOGIN_FILE_VARIABLE: &str = "MYSQL_TEST_LOGIN_FILE";
/// Permissions of others to write, and all of others.
const WRITABLE: u32 = 0o002;
const NOT_PRIVATE: u32 = 0o177;

/// What option files say, and the last one of them that says where the server is.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) settings: Settings,
    pub(crate) file: Option<PathBuf>,
    pub(crate) protocol: Option<String>,
    /// Options about TLS, in their order.
    pub(crate) tls: Vec<(String, Option<String>)>,
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

    /// Whether an argument says which files.
    pub(crate) fn is_named(&self) -> bool {
        self.only.is_some() || self.extra.is_some() || self.login_path.is_some()
    }
}

/// Reads the files of this machine and the user's, in the order in which clients do: a later one goes before. The machine's files
/// are only read for the clients.
///
/// # Errors
/// A file that was named and cannot be read.
pub(crate) fn read(
    which: &Which,
    reader: Reader,
    environment: &Environment,
) -> Result<Options, ConninfoError> {
    let habits = reader.habits;
    let first_set = |names: &[&str]| names.iter().find_map(|name| environment.os(name));
    let suffix = which.suffix.as_deref().map(OsStr::new).or_else(|| first_set(habits.suffixes));
    let mut groups = reader.groups();
    if let Some(suffix) = suffix.map(OsStr::to_string_lossy) {
        let with_suffix: Vec<_> = groups.iter().map(|group| format!("{group}{suffix}")).collect();
        groups.extend(with_suffix);
    }
    let settings = Settings::default().with_protocol(Protocol::Mysql);
    let options = Options { settings, file: None, protocol: None, tls: Vec::new() };
    let home = environment.home.as_deref();
    let mut files = Files { groups, options, home };
    if let Some(file) = &which.only {
        files.named(file)?;
    } else if !which.none {
        for file in environment.option_files.iter().filter(|_| reader.client.is_some()) {
            files.file(file, 0);
        }
        if let Some(directory) = first_set(habits.homes).filter(|directory| !directory.is_empty()) {
            files.file(&Path::new(directory).join("my.cnf"), 0);
        }
        if let Some(file) = &which.extra {
            files.named(file)?;
        }
        if let Some(home) = home {
            files.file(&home.join(".my.cnf"), 0);
        }
    }
    // The login file is read whatever else is left out.
    let own = environment.os(LOGIN_FILE_VARIABLE).map(PathBuf::from);
    let login_file = own.or_else(|| home.map(|home| home.join(".mylogin.cnf")));
    if let Some(file) = login_file.filter(|file| habits.has_login_file && is_private(file)) {
        files.groups.extend(which.login_path.clone());
        match bytes_of(&file).and_then(|bytes| login_path::decode(&bytes)) {
            Some(text) => files.text(&text, &file, DEPTH_MAX),
            None if which.login_path.is_some() => return Err(ConninfoError::OptionFile { path: file }),
            None => {}
        }
    }
    Ok(files.options)
}

impl Options {
    /// Whether anything says where the server is.
    pub(crate) fn names_a_server(&self) -> bool {
        ["host", "port", "socket"].iter().any(|keyword| self.settings.get_nonempty(keyword).is_some())
    }
}

/// Files being read.
struct Files<'a> {
    groups: Vec<String>,
    options: Options,
    home: Option<&'a Path>,
}

impl Files<'_> {
    fn named(&mut self, file: &Path) -> Result<(), ConninfoError> {
        // The clients expand it, where the shell does not.
        let in_home = self.home.and_then(|home| Some(home.join(file.strip_prefix("~").ok()?)));
        match self.file(in_home.as_deref().unwrap_or(file), 0) {
            true => Ok(()),
            false => Err(ConninfoError::OptionFile { path: file.to_path_buf() }),
        }
    }

    /// Reads a file; whether it can be read.
    fn file(&mut self, file: &Path, depth: usize) -> bool {
        let Some(bytes) = bytes_of(file) else { return false };
        self.text(&String::from_utf8_lossy(&bytes), file, depth);
        true
    }

    fn text(&mut self, text: &str, file: &Path, depth: usize) {
        let mut is_ours = false;
        for line in text.lines().map(str::trim) {
            if let Some(header) = line.strip_prefix('[') {
                let group = header.split(']').next().unwrap_or_default().trim();
                is_ours = self.groups.iter().any(|own| own.eq_ignore_ascii_case(group));
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
        let line = without_comment(line);
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name, Some(value_of(value))),
            None => (line, None),
        };
        let name = full_name(name.trim());
        if name.contains("ssl") {
            self.options.tls.push((name, value));
            return;
        }
        let Some(value) = value else { return };
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

/// A line up to a `#` that does not stand in quotes.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut is_escaped) = (None, false);
    for (at, sign) in line.char_indices() {
        match sign {
            '"' | '\'' if !is_escaped && quote.is_none() => quote = Some(sign),
            '"' | '\'' if !is_escaped && quote == Some(sign) => quote = None,
            '#' if quote.is_none() => return &line[..at],
            _ => {}
        }
        is_escaped = quote.is_some() && sign == '\\' && !is_escaped;
    }
    line
}

/// A value: blanks and quotes around it do not belong to it, and escapes stand for a sign.
fn value_of(text: &str) -> String {
    let text = text.trim();
    let in_quotes = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let inner = in_quotes('"').or_else(|| in_quotes('\'')).unwrap_or(text);
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

/// What a file holds: nothing, if others may write it, as clients have it.
fn bytes_of(file: &Path) -> Option<Vec<u8>> {
    let metadata = std::fs::metadata(file).ok()?;
    if metadata.file_type().is_fifo() {
        return piped(file);
    }
    // To read a terminal or a socket would take it from the program.
    if !metadata.is_file() || has_mode(&metadata, WRITABLE) {
        return Some(Vec::new());
    }
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// What stands in a pipe, such as a shell's `<(…)`. It stays there for the program. One with a name is left alone: what it holds
/// goes with its last reader.
fn piped(file: &Path) -> Option<Vec<u8>> {
    if rustix::fs::statfs(file).ok()?.f_type != PIPE_FILE_SYSTEM {
        return None;
    }
    let pipe =
        rustix::fs::open(file, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let started = Instant::now();
    let mut ends = [rustix::event::PollFd::new(&pipe, rustix::event::PollFlags::empty())];
    // All is there once its writer has closed it.
    loop {
        rustix::event::poll(&mut ends, Some(&rustix::event::Timespec::default())).ok()?;
        if ends[0].revents().contains(rustix::event::PollFlags::HUP) {
            break;
        }
        if started.elapsed() > PIPE_WAIT_MAX {
            return None;
        }
        std::thread::sleep(PIPE_LOOK_EVERY);
    }
    let (from, to) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).ok()?;
    let copied = rustix::pipe::tee(&pipe, &to, FILE_BYTES_MAX as usize, SpliceFlags::NONBLOCK);
    drop(to);
    let mut bytes = Vec::new();
    match copied {
        Ok(0) | Err(rustix::io::Errno::AGAIN) => {}
        Ok(_) => {
            File::from(from).read_to_end(&mut bytes).ok()?;
        }
        Err(_) => return None,
    }
    Some(bytes)
}

/// Whether a login file is there and its owner's alone: else clients leave it.
fn is_private(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|metadata| !has_mode(&metadata, NOT_PRIVATE))
}

/// Whether a file gives one of these permissions.
fn has_mode(metadata: &Metadata, mode: u32) -> bool {
    metadata.is_file() && metadata.mode() & mode != 0
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::fs::PermissionsExt;

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

    /// `program` is the path of a client; without one, another program reads.
    fn options(arguments: &[&str], program: &str, environment: &Environment) -> Options {
        let which = Which::of(arguments.iter().map(OsStr::new));
        let reader = Reader::of_command(&[OsString::from(program)], environment).unwrap_or(Reader::OTHER);
        read(&which, reader, environment).unwrap()
    }

    fn read_by(arguments: &[&str], program: &str, environment: &Environment) -> Vec<(String, String)> {
        let options = options(arguments, program, environment);
        options.settings.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn host(arguments: &[&str], program: &str, environment: &Environment) -> Option<String> {
        options(arguments, program, environment).settings.get("host").map(str::to_owned)
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn groups_that_clients_read_count_and_the_last_value_of_an_option() {
        let file = "host=before\n[mysqld]\nport=1\n# [client]\n[Client]\nhost = \"db\" \npor=3307 # one\n\
                    loose_user = a\\sb\nssl\n[mysql]\nhost=other\n[client]\nhost='last'\n";
        let (_directory, environment) = home(&[(".my.cnf", file)]);
        assert_eq!(
            read_by(&[], "", &environment),
            pairs(&[("host", "last"), ("port", "3307"), ("user", "a b")])
        );
        assert_eq!(read_by(&[], "mysql", &environment)[0].1, "last");
        assert_eq!(read_by(&["--no-defaults"], "", &environment), []);
    }

    /// Asked of MariaDB's `my_print_defaults`.
    #[test]
    fn values_end_where_the_clients_end_them() {
        for (written, expected) in [
            (r#""a\"b""#, "a\"b"),
            (r"'it\'s'", "it's"),
            (r#""x" # c"#, "x"),
            ("a#b", "a"),
            (r"a\#b", r"a\"),
            (r#""a#b" "#, "a#b"),
            (r#"'a"b'"#, "a\"b"),
            (r#""ab"#, "\"ab"),
            (r#"a"b#c""#, "a\"b#c\""),
            (r#""a" b"#, "\"a\" b"),
            (r#""a' # b"#, "\"a' # b"),
            (r#""a" "b""#, "a\" \"b"),
            (r"a\sb", "a b"),
            (r"a\x", r"a\x"),
            (r"a\\", r"a\"),
            ("", ""),
            ("a ; b", "a ; b"),
            (r#""a\\" # b"#, r"a\"),
            ("'#'", "#"),
            ("x '#' y", "x '#' y"),
        ] {
            let (_directory, environment) = home(&[(".my.cnf", &format!("[client]\nuser={written}\n"))]);
            assert_eq!(read_by(&[], "mysql", &environment), pairs(&[("user", expected)]), "{written}");
        }
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
        assert_eq!(read_by(&[&named], "", &environment), pairs(&[("host", "second"), ("port", "3307")]));
        let found = read_by(&[&named, "--defaults-group-suffix=_far"], "", &environment);
        assert_eq!(found.last(), Some(&("socket".to_owned(), "/far.sock".to_owned())));
    }

    #[test]
    fn the_machines_files_are_for_mysqls_own_clients() {
        let (directory, mut environment) =
            home(&[("system.cnf", "[client]\nsocket=/run/x.sock\n[mysqldump]\nport=3308\n")]);
        environment.option_files = vec![directory.path().join("system.cnf")];
        assert_eq!(read_by(&[], "", &environment), []);
        assert_eq!(read_by(&[], "mysql", &environment), pairs(&[("socket", "/run/x.sock")]));
        assert_eq!(read_by(&[], "mysqldump", &environment).len(), 2);
        assert_eq!(read_by(&[], "mariadb-dump", &environment).len(), 2);
    }

    #[test]
    fn each_servers_clients_have_groups_of_their_own() {
        for (group, mysql, mariadb) in [
            ("client", true, true),
            ("mysql", true, true),
            ("mariadb-client", false, true),
            ("client-server", false, true),
            ("client-mariadb", false, true),
            ("mysqldump", false, false),
        ] {
            let (_directory, environment) = home(&[(".my.cnf", &format!("[{group}]\nhost=db\n"))]);
            let reads = |program: &str| host(&[], program, &environment).is_some();
            assert_eq!((reads("mysql"), reads("mariadb")), (mysql, mariadb), "{group}");
        }
        let (_directory, environment) = home(&[(".my.cnf", "[mariadb-dump]\nhost=db\n")]);
        assert_eq!(host(&[], "mariadb-dump", &environment).as_deref(), Some("db"));
    }

    #[test]
    fn files_go_before_each_other_as_the_clients_read_them() {
        let (directory, mut environment) = home(&[
            ("system", "[client]\nhost=system\n"),
            ("extra", "[client]\nhost=extra\n"),
            (".my.cnf", "[client]\nuser=me\n"),
        ]);
        let path = |name: &str| directory.path().join(name);
        for (name, text) in [("one", "[client]\nhost=one\n"), ("two", "[client]\nhost=two\n")] {
            std::fs::create_dir(path(name)).unwrap();
            std::fs::write(path(name).join("my.cnf"), text).unwrap();
        }
        environment.option_files = vec![path("system")];
        let extra = format!("--defaults-extra-file={}", path("extra").display());
        let of =
            |arguments: &[&str], program, environment: &_| host(arguments, program, environment).unwrap();
        assert_eq!(of(&[], "mariadb", &environment), "system");
        environment.set("MYSQL_HOME", path("two"));
        assert_eq!(of(&[], "mariadb", &environment), "two");
        assert_eq!(of(&[&extra], "mariadb", &environment), "extra");
        environment.set("MARIADB_HOME", path("one"));
        assert_eq!(
            (of(&[], "mariadb", &environment), of(&[], "mysql", &environment)),
            ("one".into(), "two".into())
        );
        environment.set("MARIADB_HOME", "");
        assert_eq!(of(&[], "mariadb", &environment), "system", "the first that is set counts");
        std::fs::write(path(".my.cnf"), "[client]\nhost=home\n").unwrap();
        assert_eq!(of(&[&extra], "mariadb", &environment), "home");
        let only = format!("--defaults-file={}", path("extra").display());
        assert_eq!(of(&[&only], "mariadb", &environment), "extra");
    }

    #[test]
    fn suffixes_come_from_the_arguments_then_from_variables() {
        let (_directory, mut environment) = home(&[(".my.cnf", "[client_a]\nhost=a\n[client_b]\nhost=b\n")]);
        assert_eq!(host(&[], "mariadb", &environment), None);
        environment.set("MYSQL_GROUP_SUFFIX", "_a");
        assert_eq!(host(&[], "mariadb", &environment).as_deref(), Some("a"));
        environment.set("MARIADB_GROUP_SUFFIX", "_b");
        assert_eq!(host(&[], "mariadb", &environment).as_deref(), Some("b"));
        assert_eq!(host(&[], "mysql", &environment).as_deref(), Some("a"));
        let told = ["--defaults-group-suffix=_a"];
        assert_eq!(host(&told, "mariadb", &environment).as_deref(), Some("a"));
    }

    #[test]
    fn a_file_that_was_named_has_to_be_there() {
        let (directory, environment) = home(&[("db.cnf", "[client]\nhost=db\n")]);
        let which = Which::of([OsStr::new("--defaults-file=/no/such")]);
        let error = read(&which, Reader::OTHER, &environment).unwrap_err();
        assert_eq!(error, ConninfoError::OptionFile { path: "/no/such".into() });
        // The clients expand what a shell leaves.
        assert_eq!(host(&["--defaults-file=~/db.cnf"], "mysql", &environment).as_deref(), Some("db"));
        // A pipe with a name would lose what it holds.
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        let which = Which::of([OsStr::new(&format!("--defaults-file={}", pipe.display()))]);
        assert!(read(&which, Reader::OTHER, &environment).is_err());
    }

    #[test]
    fn a_pipe_is_read_and_still_holds_what_it_held() {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let (from, to) = rustix::pipe::pipe().unwrap();
        let text = "[client]\nhost=db\npassword=x\n";
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            File::from(to).write_all(text.as_bytes()).unwrap();
        });
        let named = format!("--defaults-extra-file=/proc/self/fd/{}", from.as_raw_fd());
        let (_directory, environment) = home(&[]);
        assert_eq!(host(&[&named], "mysql", &environment).as_deref(), Some("db"));
        writer.join().unwrap();
        let mut left = String::new();
        File::from(from).read_to_string(&mut left).unwrap();
        assert_eq!(left, text);
    }

    #[test]
    fn a_file_that_others_may_write_is_not_read_and_signs_of_any_kind_are() {
        let (directory, environment) = home(&[(".my.cnf", "[client]\nhost=db\n")]);
        let file = directory.path().join(".my.cnf");
        let change = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        change(0o666);
        assert_eq!(host(&[], "mysql", &environment), None);
        // Clients say so, and go on without it.
        assert_eq!(host(&[&format!("--defaults-file={}", file.display())], "mysql", &environment), None);
        change(0o664);
        assert_eq!(host(&[], "mysql", &environment).as_deref(), Some("db"));
        std::fs::write(&file, b"# caf\xe9\n[client]\npassword=\xff\nhost=db\n").unwrap();
        assert_eq!(host(&[], "mysql", &environment).as_deref(), Some("db"));
    }

    #[test]
    fn the_file_that_names_the_server_is_known() {
        let (_directory, environment) =
            home(&[(".my.cnf", "[client]\nsocket=/x\nprotocol=TCP\nport=3310\n")]);
        let options = options(&[], "", &environment);
        assert_eq!(options.protocol.as_deref(), Some("TCP"));
        assert!(options.names_a_server());
        assert!(options.file.is_some_and(|file| file.ends_with(".my.cnf")));
    }

    #[cfg(feature = "tls")]
    #[test]
    fn a_login_file_goes_before_all_others_and_only_mysqls_clients_have_one() {
        let (directory, mut environment) = home(&[(".my.cnf", "[client]\nhost=home\nport=3307\n")]);
        let write = |name: &str, mode: u32| {
            let file = directory.path().join(name);
            let text = ["[client]\n", "host = \"login\"\n", "[far]\n", "host = \"far\"\n"];
            std::fs::write(&file, login_path::tests::encode(&text)).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        assert_eq!(host(&["--login-path=far"], "mysql", &environment).as_deref(), Some("home"));
        write(".mylogin.cnf", 0o600);
        let of = |arguments: &[&str], program, environment: &_| host(arguments, program, environment);
        assert_eq!(of(&[], "mysql", &environment).as_deref(), Some("login"));
        assert_eq!(of(&["--login-path=far"], "mysql", &environment).as_deref(), Some("far"));
        assert_eq!(of(&["--no-defaults", "--login-path=far"], "mysql", &environment).as_deref(), Some("far"));
        assert_eq!(of(&["--login-path=far"], "app", &environment).as_deref(), Some("far"));
        assert_eq!(of(&[], "mariadb", &environment).as_deref(), Some("home"));
        write(".mylogin.cnf", 0o640);
        assert_eq!(of(&[], "mysql", &environment).as_deref(), Some("home"), "others can read it");
        environment.set("MYSQL_TEST_LOGIN_FILE", write("other", 0o600));
        assert_eq!(of(&[], "mysql", &environment).as_deref(), Some("login"));
    }
}
