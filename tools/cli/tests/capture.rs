//! `onetrip capture` on the loopback interface: the trips of a conversation that is known. Where this user may not capture packets,
//! the test says so and compares nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};

const REQUESTS: usize = 12;

fn capture(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onetrip"));
    command.arg("capture").args(arguments).stdin(Stdio::null());
    command
}

/// Starts it; `None` where this user may not capture.
fn started(arguments: &[&str]) -> Option<(Child, BufReader<std::process::ChildStderr>)> {
    let mut process = capture(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(process.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    if line.contains("ermission") || line.contains("not permitted") {
        eprintln!("this user may not capture packets, so nothing is compared: {line}");
        process.wait().unwrap();
        return None;
    }
    assert!(line.contains("capturing on lo"), "{line}");
    Some((process, told))
}

fn interrupted(mut process: Child, mut told: impl Read) -> Output {
    let asked = Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap();
    assert!(asked.success());
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    process.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
    told.read_to_end(&mut stderr).unwrap();
    Output { status: process.wait().unwrap(), stdout, stderr }
}

#[test]
fn ctrl_c_prints_the_report_on_what_passed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let filter = format!("tcp port {port}");
    let Some((process, told)) =
        started(&["-i", "lo", "--format", "json", "--port", &port.to_string(), &filter])
    else {
        return;
    };
    let server = std::thread::spawn(move || {
        let mut client = listener.accept().unwrap().0;
        let mut request = [0; 5];
        while client.read_exact(&mut request).is_ok() {
            client.write_all(b"reply").unwrap();
        }
    });
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    for _ in 0..REQUESTS {
        client.write_all(b"query").unwrap();
        client.read_exact(&mut [0; 5]).unwrap();
    }
    drop(client);
    server.join().unwrap();
    // tcpdump gets packets from the kernel a second after they passed, at the latest.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let done = interrupted(process, told);
    let said = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&done.stderr));
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["trips"]["total"], REQUESTS, "{said}");
    assert_eq!(report["network"]["capture"]["dropped_packets"], 0);
    assert_eq!(report["network"]["totals"]["turns"], REQUESTS);
}

#[test]
fn what_cannot_be_captured_is_told_at_once() {
    let told = |command: &mut Command| {
        let done = command.output().unwrap();
        assert_eq!(done.status.code(), Some(125));
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let said = told(&mut capture(&["-i", "no-such-interface"]));
    assert!(said.contains("tcpdump does not capture on no-such-interface: "), "{said}");
    let said = told(capture(&["-i", "lo"]).env("PATH", "/nowhere"));
    assert!(said.contains("cannot start tcpdump") && said.contains("Is it installed?"), "{said}");
}
