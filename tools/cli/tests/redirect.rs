//! `onetrip run --redirect`: programs whose database stands in their code, not in their environment.

mod common;

use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use common::onetrip;
use onetrip_pgserver::PgServer;

/// One server for all tests of this file.
static SERVER: LazyLock<(u16, std::sync::Mutex<PgServer>)> = LazyLock::new(|| {
    let server = PgServer::start(&[]);
    // Statics are never dropped; the server stops when this process's end closes its input.
    (server.at.port, std::sync::Mutex::new(server))
});

/// `onetrip run --redirect --upstream UPSTREAM COMMAND`, nothing about PostgreSQL in the environment.
fn redirected(upstream: &str, command: &[&str]) -> Output {
    redirected_by("--redirect", upstream, command)
}

fn redirected_by(redirect: &str, upstream: &str, command: &[&str]) -> Output {
    let mut onetrip = onetrip();
    let variables = ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "DATABASE_URL"];
    for variable in variables {
        onetrip.env_remove(variable);
    }
    onetrip.args(["run", redirect, "--upstream", upstream]).args(command);
    onetrip.stdin(Stdio::null()).output().expect("onetrip runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn assert_redirected(done: &Output, connections: u32, output: &str) {
    let report = text(&done.stderr);
    assert_eq!(text(&done.stdout), output, "{report}");
    let words = if connections == 1 { "1 connection" } else { &format!("{connections} connections") };
    assert!(report.contains(&format!("{words} to the gateway, by seccomp")), "{report}");
    assert!(!report.contains("No connection reached"), "{report}");
}

#[test]
fn an_address_in_the_code_leads_to_the_gateway_by_ipv4_and_ipv6() {
    let port = SERVER.0;
    let upstream = format!("127.0.0.1:{port}");
    for host in ["127.0.0.1", "localhost", "::1", "::ffff:127.0.0.1"] {
        let dsn = format!(
            "host={host} port={port} user=onetrip password=onetrip-secret dbname=postgres sslmode=disable"
        );
        let done = redirected(&upstream, &["psql", "-qAtc", "SELECT 41 + 1", &dsn]);
        assert_redirected(&done, 1, "42\n");
    }
}

#[test]
fn a_preload_library_does_it_where_seccomp_cannot() {
    let port = SERVER.0;
    for host in ["127.0.0.1", "localhost", "::1", "::ffff:127.0.0.1"] {
        let dsn = format!(
            "host={host} port={port} user=onetrip password=onetrip-secret dbname=postgres sslmode=disable"
        );
        let command = ["sh", "-c", "psql -qAtc 'SELECT 41 + 1' \"$0\"", &dsn];
        let done = redirected_by("--redirect=preload", &format!("127.0.0.1:{port}"), &command);
        let report = text(&done.stderr);
        assert_eq!(text(&done.stdout), "42\n", "{report}");
        assert!(report.contains("connections to the gateway, by preload"), "{report}");
        assert!(report.contains("connections  1"), "{report}");
    }
    let directory = SERVER.1.lock().unwrap().at.socket_dir.display().to_string();
    let dsn = format!("host={directory} port={port} user=onetrip password=onetrip-secret dbname=postgres");
    let done = redirected_by(
        "--redirect=preload",
        &format!("{directory}:{port}"),
        &["psql", "-qAtc", "SELECT 1", &dsn],
    );
    assert!(text(&done.stderr).contains("connections  1"), "{}", text(&done.stderr));
    let open = onetrip().args(["run", "--redirect=preload", "true"]).output().unwrap();
    assert!(text(&open.stderr).contains("name it with --upstream"), "{}", text(&open.stderr));
}

#[test]
fn children_of_children_are_led_too_and_other_connections_are_not() {
    let port = SERVER.0;
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let script = format!(
        "import socket, subprocess, sys, threading
s = socket.create_connection(('127.0.0.1', {}))
assert s.getpeername()[1] == {0}
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.connect(('127.0.0.1', {port}))
assert u.getpeername()[1] == {port}
def ask():
    dsn = 'host=127.0.0.1 port={port} user=onetrip password=onetrip-secret dbname=postgres sslmode=disable'
    print(subprocess.run(['sh', '-c', 'psql -qAtc \"SELECT 1\" \"$0\"', dsn], capture_output=True, text=True).stdout.strip())
threads = [threading.Thread(target=ask) for _ in range(5)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]",
        other.local_addr().unwrap().port()
    );
    let done = redirected(&format!("127.0.0.1:{port}"), &["python3", "-c", &script]);
    assert_redirected(&done, 5, "1\n1\n1\n1\n1\n");
}

#[test]
fn a_unix_socket_leads_to_the_gateway_and_the_first_database_is_taken() {
    let port = SERVER.0;
    let directory = SERVER.1.lock().unwrap().at.socket_dir.display().to_string();
    let dsn = format!("host={directory} port={port} user=onetrip password=onetrip-secret dbname=postgres");
    let done = redirected(&format!("{directory}:{port}"), &["psql", "-qAtc", "SELECT 1", &dsn]);
    assert_redirected(&done, 1, "1\n");

    let mut open = onetrip();
    for variable in ["PGHOST", "PGPORT", "DATABASE_URL"] {
        open.env_remove(variable);
    }
    open.args(["run", "--redirect", "psql", "-qAtc", "SELECT 1", &dsn]);
    let done = open.output().unwrap();
    assert_redirected(&done, 1, "1\n");
    let report = text(&done.stderr);
    assert!(report.contains(&format!("database at {directory}/.s.PGSQL.{port}, the first")), "{report}");
    assert!(report.lines().any(|line| line.contains("database  ") && line.contains(&directory)), "{report}");
}

/// Serves a database at the port that is the second word, in a network of its own, and runs psql with nothing that names it.
const UNNAMED: &str = r#"
ip link set lo up
"$0" serve "$2/shop.db" --listen "127.0.0.1:$1" 2>"$2/log" &
server=$!
for try in $(seq 300); do "$0" ready "127.0.0.1:$1" 2>/dev/null && break; sleep 0.1; done
"$0" run --redirect psql -qAtc 'SELECT 41 + 1' "host=127.0.0.1 port=$1 user=me dbname=shop sslmode=disable"
code=$?
kill $server
exit $code
"#;

#[test]
fn without_a_hint_the_first_connection_to_a_databases_port_is_taken_and_named() {
    let ways: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];
    let works = |way: &&[&str]| {
        Command::new("unshare").args(*way).arg("true").output().is_ok_and(|done| done.status.success())
    };
    let Some(way) = ways.into_iter().find(works) else {
        println!("skipped: no network namespace can be made here");
        return;
    };
    for port in ["5432", "6432"] {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("unshare");
        for variable in ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "DATABASE_URL"] {
            command.env_remove(variable);
        }
        command.args(way).args(["sh", "-c", UNNAMED, env!("CARGO_BIN_EXE_onetrip"), port]);
        let done = command.arg(directory.path()).stdin(Stdio::null()).output().unwrap();
        assert_redirected(&done, 1, "42\n");
        let report = text(&done.stderr);
        assert!(
            report.contains(&format!("database at 127.0.0.1:{port}, the first that the program connects to")),
            "{report}"
        );
    }
}

/// A program that leaves a daemon behind and ends; the daemon connects to the database once `onetrip run` is gone (or a
/// minute later), and writes down what came of it.
const DAEMON: &str = "import os, socket, sys, time
port, gone, said = int(sys.argv[1]), sys.argv[2], sys.argv[3]
first = socket.create_connection(('127.0.0.1', port))
assert first.getpeername()[1] != port, 'it is led to the gateway'
first.close()
if os.fork() == 0:
    os.setsid()
    null = os.open('/dev/null', os.O_RDWR)
    [os.dup2(null, fd) for fd in (0, 1, 2)]
    for _ in range(600):
        if os.path.exists(gone):
            break
        time.sleep(0.1)
    try:
        peers = []
        for _ in range(3):
            s = socket.create_connection(('127.0.0.1', port))
            peers.append(s.getpeername()[1])
        word = 'connected' if peers == [port] * 3 else repr(peers)
    except OSError as error:
        word = repr(error)
    with open(said + '.part', 'w') as file:
        file.write(word)
    os.rename(said + '.part', said)
";

/// Names of the processes on whose command line this stands.
fn processes_of(word: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|process| process.path());
    let ours = processes.filter(|process| {
        std::fs::read(process.join("cmdline")).is_ok_and(|line| text(&line).contains(word))
    });
    ours.filter_map(|process| Some(std::fs::read_to_string(process.join("comm")).ok()?.trim().to_owned()))
        .collect()
}

/// Whether it comes true within a minute.
fn comes_true(is_true: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if is_true() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    is_true()
}

#[test]
fn what_outlives_the_run_connects_where_it_says() {
    let port = SERVER.0;
    const SECCOMP: &str = "--redirect=seccomp";
    for way in [SECCOMP, "--redirect=preload"] {
        let directory = tempfile::tempdir().unwrap();
        let (gone, said) = (directory.path().join("gone"), directory.path().join("said"));
        let said_at = said.to_str().unwrap();
        let command = ["python3", "-c", DAEMON, &port.to_string(), gone.to_str().unwrap(), said_at];
        // Its output ends although the daemon lives: nothing that is left behind holds it.
        let done = redirected_by(way, &format!("127.0.0.1:{port}"), &command);
        let report = text(&done.stderr);
        assert!(
            done.status.success() && report.contains("were led to the gateway") == (way == SECCOMP),
            "{report}"
        );
        let is_left = || processes_of(said_at).iter().any(|name| name == "onetrip-left");
        assert!(way != SECCOMP || comes_true(is_left), "{way}");
        std::fs::write(&gone, "").unwrap();
        assert!(comes_true(|| said.exists()), "{way}");
        assert_eq!(std::fs::read_to_string(&said).unwrap(), "connected", "{way}");
        assert!(comes_true(|| processes_of(said_at).is_empty()), "{way}: {:?}", processes_of(said_at));
    }
}

#[test]
fn a_program_that_reached_no_database_is_told_where_it_went() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let script = format!("import socket; socket.socket().connect_ex(('127.0.0.1', {}))", other.port());
    let done = redirected(&format!("127.0.0.1:{}", SERVER.0), &["python3", "-c", &script]);
    let report = text(&done.stderr);
    assert!(report.contains("No connection reached the gateway"), "{report}");
    assert!(report.contains(&other.to_string()), "{report}");
}

/// A call of io_uring. The number is the same on all machines that seccomp is used on here. Whether the kernel allows
/// rings is its own matter.
const RING: &str = "import ctypes; ctypes.CDLL(None).syscall(425, 8, ctypes.create_string_buffer(120))";

#[test]
fn a_program_that_may_have_connected_unseen_is_told_so() {
    let upstream = format!("127.0.0.1:{}", SERVER.0);
    let alone = text(&redirected(&upstream, &["python3", "-c", RING]).stderr);
    assert!(alone.contains("The program uses io_uring"), "{alone}");
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let connects = format!("import socket; socket.socket().connect_ex(('127.0.0.1', {}))", other.port());
    let both = text(&redirected(&upstream, &["python3", "-c", &format!("{RING}; {connects}")]).stderr);
    assert!(both.contains("The program uses io_uring") && both.contains(&other.to_string()), "{both}");
    let nothing = text(&redirected(&upstream, &["true"]).stderr);
    assert!(nothing.contains("connected to nothing at all"), "{nothing}");
}

#[test]
fn what_the_c_library_asks_the_system_is_no_database() {
    let script = "import socket
for path in ['/var/run/nscd/socket', '/run/systemd/userdb/io.systemd.DynamicUser', '/dev/log']:
    socket.socket(socket.AF_UNIX).connect_ex(path)";
    let done = redirected(&format!("127.0.0.1:{}", SERVER.0), &["python3", "-c", script]);
    assert!(text(&done.stderr).contains("connected to nothing at all"), "{}", text(&done.stderr));
}

#[test]
fn without_the_switch_it_is_seen_where_a_program_stays_connected() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let script = format!(
        "import socket, sys; s = socket.create_connection(('127.0.0.1', {})); s.recv(1)",
        address.port()
    );
    let database = format!("localhost:{}", address.port());
    for (upstream, said) in [
        ("127.0.0.1:1", format!("was connected to {address}. If one of these is")),
        (database.as_str(), format!("was connected to {address}, which is the database, past the gateway")),
    ] {
        let mut command = onetrip();
        command.args(["run", "--upstream", upstream, "sh", "-c", "python3 -c \"$0\"; true", &script]);
        let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut connected, _) = other.accept().unwrap();
        // Long enough for a busy machine to look at least once.
        std::thread::sleep(Duration::from_secs(3));
        std::io::Write::write_all(&mut connected, b"x").unwrap();
        let report = text(&child.wait_with_output().unwrap().stderr);
        let report = report.split_whitespace().collect::<Vec<_>>().join(" "); // the lines are broken anywhere
        assert!(report.contains(&said) && report.contains("--redirect"), "{report}");
    }
}

/// `onetrip run --upstream UPSTREAM COMMAND`, nothing about PostgreSQL in the environment; the report in one line.
fn without_the_switch(upstream: &str, command: &[&str]) -> String {
    let mut onetrip = onetrip();
    for variable in ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "DATABASE_URL"] {
        onetrip.env_remove(variable);
    }
    onetrip.args(["run", "--upstream", upstream]).args(command);
    let done = onetrip.stdin(Stdio::null()).output().expect("onetrip runs");
    text(&done.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn without_the_switch_the_shortest_connection_past_the_gateway_is_told() {
    let server = PgServer::start(&[]);
    let place = format!("127.0.0.1:{}", server.at.port);
    let dsn = format!(
        "host=127.0.0.1 port={} user=onetrip password=onetrip-secret dbname=postgres sslmode=disable",
        server.at.port
    );
    let script = format!("import socket; socket.create_connection(('127.0.0.1', {}))", server.at.port);
    for command in [["psql", "-qAtc", "SELECT 1", &dsn].as_slice(), &["python3", "-c", &script]] {
        let report = without_the_switch(&place, command);
        // Whether it is seen while it lasts is chance.
        let is_told = report
            .contains(&format!("from this machine to {place}, which is the database, was closed"))
            || report.contains(&format!("The program was connected to {place}, which is the database"));
        assert!(is_told && report.contains("--redirect"), "{report}");
    }
}

#[test]
fn what_somebody_else_closed_while_the_program_ran_is_not_called_the_programs() {
    // A port that is given to no client, so that nobody has had it a moment ago.
    let free = |port| std::net::TcpListener::bind(("127.0.0.1", port)).ok();
    let other = (20_000 + std::process::id() as u16 % 10_000..32_000).find_map(free).unwrap();
    let address = other.local_addr().unwrap();
    let go = tempfile::tempdir().unwrap();
    let waits = format!("until [ -e {}/go ]; do sleep 0.1; done", go.path().display());
    let connect = || drop((std::net::TcpStream::connect(address).unwrap(), other.accept().unwrap()));
    let path = go.path().join("started");
    let script = format!("touch {}; {waits}", path.display());
    let told = |connections: usize| {
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_file(go.path().join("go"));
        std::thread::scope(|scope| {
            let database = address.to_string();
            let script = script.as_str();
            let run = scope.spawn(move || without_the_switch(&database, &["sh", "-c", script]));
            assert!(comes_true(|| path.exists()));
            (0..connections).for_each(|_| connect());
            std::fs::write(go.path().join("go"), "").unwrap();
            run.join().unwrap()
        })
    };
    let nothing = told(0);
    assert!(
        nothing.contains("The program did not use") && !nothing.contains("While the program"),
        "{nothing}"
    );
    let one = told(1);
    let said = format!(
        "While the program ran, a connection from this machine to {address}, which is the database, was"
    );
    assert!(one.contains(&said) && one.contains("Whose it was is not known."), "{one}");
    assert!(!one.contains("The program was connected"), "{one}");
    let two = told(2);
    let said = format!("2 connections from this machine to {address}, which is the database, were closed.");
    assert!(two.contains(&said) && two.contains("not known; there were others before it started."), "{two}");
}
