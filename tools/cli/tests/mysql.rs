//! `onetrip run` and `gateway` with a MariaDB server, and what is refused there.

mod common;

use std::process::{Output, Stdio};
use std::sync::{LazyLock, Mutex};

use common::onetrip;
use onetrip_mysqlserver::{Certificate, Kind, MysqlServer, repository};
use serde_json::Value;

/// Finds its database as programs do, and asks for children one by one.
const PROGRAM: &str = "
import os, re, sys, pymysql
how = sys.argv[1]
if how == 'url':
    found = re.fullmatch(r'mysql://([^:]+):([^@]+)@([^:]+):(\\d+)/(\\w+)', os.environ['DATABASE_URL'])
elif how == 'jdbc':
    found = re.fullmatch(r'jdbc:mariadb:(//)([^:]*)(.*?):(\\d+)/(\\w+)', os.environ['SPRING_DATASOURCE_URL'])
    found = re.fullmatch(r'(.*):(.*)@(.*):(\\d+)/(\\w+)', 'onetrip:onetrip-secret@' + found[2] + ':' + found[4] + '/' + found[5])
elif how == 'go':
    found = re.fullmatch(r'([^:]+):([^@]+)@tcp\\(([^:]+):(\\d+)\\)/(\\w+)', os.environ['DSN'])
else:
    at = os.environ['MYSQL_HOST'] + ':' + os.environ.get('MYSQL_TCP_PORT', os.environ.get('MYSQL_PORT', ''))
    found = re.fullmatch(r'(.*):(.*)@(.*):(\\d+)/(\\w+)', 'onetrip:' + os.environ['MYSQL_PWD'] + '@' + at + '/onetrip')
user, password, host, port, database = found.groups()
connection = pymysql.connect(host=host, port=int(port), user=user, password=password, database=database)
cursor = connection.cursor()
cursor.execute('SELECT `id` FROM `authors` ORDER BY `id`')
for (number,) in cursor.fetchall():
    cursor.execute('SELECT `title` FROM `books` WHERE `author_id` = %s', (number,))
    cursor.fetchall()
connection.close()
";

const SCHEMA: &str = "
import sys, pymysql
host, port = sys.argv[1:]
at = {'user': 'onetrip', 'password': 'onetrip-secret', 'database': 'onetrip'}
connection = pymysql.connect(host=host, port=int(port), autocommit=True, **at)
cursor = connection.cursor()
cursor.execute('CREATE TABLE authors (id INT PRIMARY KEY)')
cursor.execute('CREATE TABLE books (author_id INT, title VARCHAR(20))')
cursor.execute('INSERT INTO authors VALUES ' + ', '.join('(%d)' % (100 + 7 * n) for n in range(10)))
cursor.execute(\"INSERT INTO books SELECT id, 'a title' FROM authors\")
";

/// One server for all tests of this file.
static SERVER: LazyLock<(u16, Mutex<MysqlServer>)> = LazyLock::new(|| {
    let server = MysqlServer::start(Kind::MariaDb, &[]);
    let mut python = std::process::Command::new(python());
    let made =
        python.args(["-c", SCHEMA, "127.0.0.1", &server.at.port.to_string()]).output().expect("it runs");
    assert!(made.status.success(), "{}", text(&made.stderr));
    // Statics are never dropped; the server stops when this process's end closes its input.
    (server.at.port, Mutex::new(server))
});

/// The server's Unix socket.
fn socket() -> String {
    let server = SERVER.1.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    server.at.socket.to_str().expect("text").to_owned()
}

fn python() -> std::path::PathBuf {
    repository().join(".venv/bin/python")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `onetrip run OPTIONS -- python PROGRAM` with these variables.
fn run(how: &str, options: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = onetrip();
    command.arg("run").args(options).arg("--").arg(python()).args(["-c", PROGRAM, how]);
    command.envs(variables.iter().copied());
    command.stdin(Stdio::null()).output().expect("onetrip runs")
}

#[test]
fn a_program_is_pointed_at_the_gateway_however_it_finds_its_database() {
    let port = SERVER.0.to_string();
    let url = format!("mysql://onetrip:onetrip-secret@127.0.0.1:{port}/onetrip");
    let jdbc = format!("jdbc:mariadb://127.0.0.1:{port}/onetrip");
    let go = format!("onetrip:onetrip-secret@tcp(127.0.0.1:{port})/onetrip");
    let own =
        |variable| [("MYSQL_HOST", "127.0.0.1"), (variable, port.as_str()), ("MYSQL_PWD", "onetrip-secret")];
    for (how, variables) in [
        ("url", &[("DATABASE_URL", url.as_str())][..]),
        ("jdbc", &[("SPRING_DATASOURCE_URL", jdbc.as_str())]),
        ("go", &[("DSN", go.as_str())]),
        ("own", &own("MYSQL_TCP_PORT")),
        ("own", &own("MYSQL_PORT")),
    ] {
        let done = run(how, &["--fail-on", "OT001"], variables);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(90), "{how}: {said}");
        // The greeting, the login, SET NAMES, SET autocommit, the list, and ten children.
        assert!(said.contains("15 round trips, 9 avoidable"), "{how}: {said}");
        assert!(said.contains("SELECT `title` FROM `books` WHERE `author_id` = $1"), "{how}: {said}");
        assert!(!said.contains("remedies") && !said.contains("onetrip-secret"), "{how}: {said}");
    }
}

#[test]
fn a_program_with_a_fixed_address_is_led_to_the_gateway() {
    let program = format!(
        "import pymysql; c = pymysql.connect(host='127.0.0.1', port={}, user='onetrip', password='onetrip-secret').cursor(); \
         c.execute('SELECT 1'); c.execute('SELECT 2')",
        SERVER.0
    );
    let mut command = onetrip();
    command.args(["run", "--redirect", "--upstream", &format!("mysql://127.0.0.1:{}", SERVER.0), "--"]);
    let done = command.arg(python()).args(["-c", &program]).output().expect("onetrip runs");
    let said = text(&done.stderr);
    assert!(done.status.success() && said.contains("6 round trips"), "{said}");
    assert!(said.contains("PyMySQL"), "{said}");
}

#[test]
fn a_socket_in_a_programs_code_is_led_to_the_gateway() {
    let program = format!(
        "import pymysql; c = pymysql.connect(unix_socket='{}', user='onetrip', password='onetrip-secret').cursor(); \
         c.execute('SELECT 1'); c.execute('SELECT 2')",
        socket()
    );
    let upstream = format!("mysql://{}/onetrip", socket().replace('/', "%2F"));
    let mut command = onetrip();
    command.args(["run", "--redirect", "--upstream", &upstream, "--"]);
    let done = command.arg(python()).args(["-c", &program]).output().expect("onetrip runs");
    let said = text(&done.stderr);
    assert!(done.status.success() && said.contains("6 round trips"), "{said}");
    assert!(!said.contains("PGCHANNELBINDING"), "{said}");
}

#[test]
fn the_servers_own_client_is_led_by_arguments_wherever_its_option_file_leads() {
    let by_tcp = format!("host=127.0.0.1\nport={}", SERVER.0);
    let by_socket = format!("socket={}", socket());
    for place in [by_tcp, by_socket] {
        let home = tempfile::tempdir().expect("a directory");
        let options = format!("[client]\nuser=onetrip\npassword=onetrip-secret\n{place}\n");
        std::fs::write(home.path().join(".my.cnf"), options).expect("a file");
        let mut command = onetrip();
        command
            .args(["run", "--", "mariadb", "onetrip", "-e", "SELECT 1; SELECT 2"])
            .env("HOME", home.path());
        // Variables go behind option files, so this one misleads nobody.
        let done = command.env("MYSQL_TCP_PORT", "1").output().expect("onetrip runs");
        let said = text(&done.stderr);
        assert!(done.status.success() && said.contains("4 round trips"), "{place}: {said}");
        assert!(said.contains("the program gets these arguments, too: --protocol=TCP"), "{place}: {said}");
        assert!(!said.contains("onetrip-secret"), "{place}: {said}");
    }
    let mut command = onetrip();
    let named = ["run", "--", "mariadb", "--defaults-file=/no/such.cnf", "onetrip"];
    let done = command.args(named).output().expect("onetrip runs");
    assert_eq!(done.status.code(), Some(125));
    assert!(text(&done.stderr).contains("option file /no/such.cnf cannot be read"), "{}", text(&done.stderr));
}

/// `bash -c SCRIPT` with `$O` for `onetrip run` and `$M` for the options that log in at the server.
fn by_shell(script: &str, options: &str) -> Output {
    let home = tempfile::tempdir().expect("a directory");
    std::fs::write(home.path().join(".my.cnf"), options).expect("a file");
    let log_in = format!("-uonetrip -ponetrip-secret -h127.0.0.1 -P{}", SERVER.0);
    let mut command = std::process::Command::new("bash");
    command.args(["-c", script]).env("HOME", home.path()).env("M", log_in);
    command.env("O", format!("{} run", env!("CARGO_BIN_EXE_onetrip")));
    command.stdin(Stdio::null()).output().expect("bash runs")
}

#[test]
fn the_servers_own_client_runs_as_it_does_without_onetrip() {
    let by_socket = format!("[client]\nsocket={}\nport={}\n", socket(), SERVER.0);
    let password = "<(printf '[client]\\nuser=onetrip\\npassword=onetrip-secret\\n')";
    for script in [
        // A pipe is still there for the client.
        &format!("$O mariadb --defaults-extra-file={password} onetrip -e 'SELECT 1; SELECT 2'"),
        "$O mariadb -u onetrip -ponetrip-secret -e 'SELECT 1; SELECT 2' -- onetrip",
        "$O mariadb -u onetrip -ponetrip-secret --protocol=tcp -e 'SELECT 1; SELECT 2' onetrip",
        "$O mariadb -u onetrip -ponetrip-secret -Nh127.0.0.1 -e 'SELECT 1; SELECT 2'",
        "$O mysql -u onetrip -ponetrip-secret -e 'SELECT 1; SELECT 2' onetrip",
        "MYSQL_HOST=127.0.0.9 MYSQL_TCP_PORT=1 $O mariadb $M -e 'SELECT 1; SELECT 2'",
    ] {
        let done = by_shell(script, &by_socket);
        let said = text(&done.stderr);
        assert!(done.status.success() && said.contains("4 round trips"), "{script}: {said}");
        assert!(!said.contains("onetrip-secret"), "{script}: {said}");
    }
    let done =
        by_shell("MYSQL_HOST=127.0.0.9 $O mariadb-check -uonetrip -ponetrip-secret onetrip", &by_socket);
    assert!(done.status.success(), "{}", text(&done.stderr));
}

/// Takes the settings of its URL for TLS as they are.
const TLS_PROGRAM: &str = "
import os, pymysql
from urllib.parse import urlsplit, parse_qs
url = urlsplit(os.environ['DATABASE_URL'])
mode = parse_qs(url.query)['ssl-mode'][0]
assert 'ssl-ca' not in url.query, url.query
how = {'ssl_disabled': True} if mode == 'DISABLED' else {'ssl': {'check_hostname': False}}
at = {'host': url.hostname, 'port': url.port, 'user': url.username, 'password': url.password, 'database': url.path[1:]}
cursor = pymysql.connect(**at, **how).cursor()
for number in range(10):
    cursor.execute('SELECT %s + 1', (number,))
";

#[test]
fn a_program_that_requires_tls_is_counted_and_the_gateway_requires_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let made = Certificate::make(directory.path());
    let ([shown, key], certificate) = (made.options(), made.file);
    let server = MysqlServer::start(Kind::MariaDb, &[&shown, &key, "--require-secure-transport=ON"]);
    let at = format!("mysql://onetrip:onetrip-secret@localhost:{}/onetrip", server.at.port);
    let run = |url: &str, options: &[&str]| {
        let mut command = onetrip();
        command.arg("run").args(options).arg("--").arg(python()).args(["-c", TLS_PROGRAM]);
        command.env("DATABASE_URL", url).stdin(Stdio::null()).output().expect("onetrip runs")
    };
    let url = format!("{at}?ssl-ca={certificate}&ssl-mode=VERIFY_IDENTITY");
    let done = run(&url, &[]);
    let said = text(&done.stderr);
    assert!(done.status.success(), "{said}");
    // The greeting, the login, SET NAMES, SET autocommit, and ten statements.
    assert!(said.contains("14 round trips"), "{said}");
    assert!(said.contains("?ssl-mode=DISABLED (was mysql://onetrip:***@localhost"), "{said}");
    // Nothing is weaker than the text said: by an address, the certificate's name does not fit.
    let done = run(&url.replace("localhost", "127.0.0.1"), &[]);
    let said = text(&done.stderr);
    assert!(!done.status.success() && said.contains("does not match host name \"127.0.0.1\""), "{said}");
    // --upstream goes before it. This server takes nothing without TLS.
    let upstream = format!("mysql://localhost:{}?ssl-mode=DISABLED", server.at.port);
    let done = run(&url, &["--upstream", &upstream]);
    let said = text(&done.stderr);
    assert!(!done.status.success() && said.contains("Access denied"), "{said}");
}

#[test]
fn a_client_that_asks_for_tls_is_left_alone_and_named() {
    let done = by_shell("$O mariadb $M --ssl onetrip -e 'SELECT 1'", "");
    let said = text(&done.stderr);
    assert!(said.contains("mariadb left as it is: its option ssl asks for TLS"), "{said}");
    assert!(!said.contains("the program gets these arguments"), "{said}");
}

#[test]
fn a_password_among_a_clients_arguments_is_kept_nowhere() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name).to_str().expect("text").to_owned();
    let (trace, report, page) = (file("a.trace"), file("a.json"), file("a.html"));
    let to = format!("--trace {trace} --format json -o {report} --html {page}");
    for script in [
        format!("$O {to} mariadb $M onetrip -e 'SELECT 1'"),
        format!(
            "$O {to} --upstream mysql://127.0.0.1:{} sh -c \"mariadb $M onetrip -e 'SELECT 1'\"",
            SERVER.0
        ),
        format!("$O {to} env mariadb -Bponetrip-secret $M onetrip -e 'SELECT 1'"),
        format!("$O {to} true -dsn 'onetrip:onetrip-secret@tcp(127.0.0.1:{})/onetrip'", SERVER.0),
        format!("$O {to} true --password onetrip-secret"),
    ] {
        let done = by_shell(&script, "");
        assert!(!text(&done.stderr).contains("onetrip-secret"), "{script}: {}", text(&done.stderr));
        for name in [&trace, &report, &page] {
            let kept = text(&std::fs::read(name).expect("it was written"));
            assert!(!kept.contains("onetrip-secret"), "{script}: {name} holds the password");
        }
    }
}

#[test]
fn a_trace_gives_the_same_report_and_knows_the_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name).to_str().expect("text").to_owned();
    let (trace, live, later) = (file("a.trace"), file("live.json"), file("later.json"));
    let url = format!("mysql://onetrip:onetrip-secret@127.0.0.1:{}/onetrip", SERVER.0);
    let done = run("url", &["--trace", &trace, "--format", "json", "-o", &live], &[("DATABASE_URL", &url)]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let done =
        onetrip().args(["report", &trace, "--format", "json", "-o", &later]).output().expect("onetrip runs");
    assert!(done.status.success(), "{}", text(&done.stderr));
    let read = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(name).expect("it was written")).expect("JSON")
    };
    let (live, later) = (read(&live), read(&later));
    assert_eq!(live["trips"], later["trips"]);
    assert_eq!((&live["trips"]["total"], &live["findings"][0]["code"]), (&15.into(), &"OT001".into()));
    assert_eq!(live["findings"][0]["left"]["watched-only"], 10);
    let kept = std::fs::read(&trace).expect("it is there");
    assert!(!text(&kept).contains("onetrip-secret") && text(&kept).contains("pymysql"));
}

#[test]
fn what_only_postgresql_has_is_refused_by_name() {
    let refused = |arguments: &[&str]| {
        let done = onetrip().args(arguments).output().expect("onetrip runs");
        assert_eq!(done.status.code(), Some(125), "{arguments:?}");
        text(&done.stderr)
    };
    let to = ["--upstream", "mysql://127.0.0.1:1"];
    for option in [&["--remedies", "exact"][..], &["--isolation", "repeatable-read"], &["--tls"]] {
        let said = refused(&[&["run"], &to[..], option, &["--", "true"]].concat());
        assert!(said.contains(option[0]) && said.contains("MySQL"), "{said}");
    }
    for (settings, expected) in [
        ("ssl-mode=VERIFY_CA&ssl-capath=/ca", "ssl-capath cannot be enforced"),
        ("ssl-mode=VERIFY_CA&ssl-ca=/nowhere.pem", "root certificate file \"/nowhere.pem\" does not exist"),
    ] {
        let tls = format!("mysql://db?{settings}");
        for command in [&["gateway", "--upstream", &tls][..], &["run", "--upstream", &tls, "--", "true"]] {
            let said = refused(command);
            assert!(said.contains(expected), "{said}");
        }
    }
    assert!(
        refused(&["gateway", "--upstream", "mysql://db", "--verify", "1/2"])
            .contains("--verify needs PostgreSQL")
    );
    assert!(
        refused(&["ping", "mysql://ann@127.0.0.1:1"]).contains("cannot reach the database at 127.0.0.1:1")
    );
}
