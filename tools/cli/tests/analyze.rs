//! `onetrip analyze` as a command: what it exits with and says of files that are whole, cut, damaged and none, and what it
//! exports.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The head of a pcap file: little-endian, microseconds, Ethernet.
fn head() -> Vec<u8> {
    let mut head = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    head.extend([2, 0, 4, 0]);
    for word in [0, 0, 65_535, 1_u32] {
        head.extend(word.to_le_bytes());
    }
    head
}

/// A packet that says it has `length` bytes, with `bytes`.
fn packet(length: u32, bytes: &[u8]) -> Vec<u8> {
    let mut packet: Vec<u8> = [1_700_000_000, 0, length, length].map(u32::to_le_bytes).concat();
    packet.extend(bytes);
    packet
}

fn analyze(file: &[u8], options: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.pcap");
    std::fs::write(&path, file).unwrap();
    Command::new(env!("CARGO_BIN_EXE_onetrip")).arg("analyze").arg(path).args(options).output().unwrap()
}

fn assert_ends(file: &[u8], options: &[&str], code: i32, says: &str) {
    let done = analyze(file, options);
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!(done.status.code(), Some(code), "{options:?}: {said}");
    assert!(said.contains(says), "{options:?}: {said}");
}

#[test]
fn a_capture_without_a_connection_is_read_and_judges_nothing() {
    let empty = head();
    assert_ends(
        &empty,
        &[],
        0,
        "The capture holds no connection with data.\nWas it made on the right interface",
    );
    assert_ends(&empty, &["--budget", "trips=9"], 91, "could not be judged");
    assert_ends(&empty, &["--budget", "trips=9", "--allow-no-connections"], 0, "");
}

#[test]
fn a_file_that_ends_within_a_packet_is_reported_and_cannot_be_judged() {
    let cut = [head(), packet(60, &[0; 10])].concat();
    assert_ends(&cut, &[], 0, "the report covers what is before");
    let judged = ["--budget", "trips=9", "--allow-no-connections"];
    assert_ends(&cut, &judged, 91, "it is still being written, or its writer was killed");
    assert_ends(&cut, &[&judged[..], &["--allow-open"]].concat(), 0, "");
}

#[test]
fn what_is_no_capture_or_is_damaged_is_told_with_its_place() {
    assert_ends(b"SELECT 1;\n", &[], 125, "shop.pcap");
    let damaged = [head(), packet(u32::MAX, &[0; 100])].concat();
    assert_ends(&damaged, &[], 125, "24");
    assert_ends(&damaged, &["--budget", "trips=9", "--allow-no-connections"], 91, "could not be judged");
}

/// A segment of the connection from 10.0.0.1:40000 to 10.0.0.2:7000.
fn segment(from_client: bool, numbers: [u32; 2], flags: u8, data: &[u8]) -> Vec<u8> {
    let client = ([10, 0, 0, 1], 40_000_u16.to_be_bytes());
    let server = ([10, 0, 0, 2], 7_000_u16.to_be_bytes());
    let (from, to) = if from_client { (client, server) } else { (server, client) };
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend((40 + data.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 6, 0, 0]);
    frame.extend([from.0, to.0].concat());
    frame.extend([from.1, to.1].concat());
    frame.extend(numbers.map(u32::to_be_bytes).concat());
    frame.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    frame.extend(data);
    packet(frame.len() as u32, &frame)
}

/// A request and its reply.
fn conversation() -> Vec<u8> {
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    let segments = [
        segment(true, [99, 0], SYN, b""),
        segment(false, [499, 100], SYN | ACK, b""),
        segment(true, [100, 500], ACK, b""),
        segment(true, [100, 500], ACK, b"request"),
        segment(false, [500, 107], ACK, b"reply"),
        segment(true, [107, 505], ACK, b""),
    ];
    [head(), segments.concat()].concat()
}

#[test]
fn exchanges_of_a_capture_are_exported() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    for (format, name) in [("csv", "a.csv"), ("jsonl", "a.jsonl"), ("trace", "a.trace")] {
        assert_ends(&conversation(), &["--export", format, "--export-to", &path(name)], 0, "1 round trip");
    }
    let csv = std::fs::read_to_string(path("a.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 2, "{csv}");
    assert!(lines[0].starts_with("day,host,connection,"), "{csv}");
    assert!(lines[1].starts_with("2023-11-14,10.0.0.2-7000,1,1,"), "{csv}");
    let json = std::fs::read_to_string(path("a.jsonl")).unwrap();
    assert!(json.starts_with("{\"day\":\"2023-11-14\",") && json.lines().count() == 1, "{json}");
    assert!(std::fs::read(path("a.trace")).unwrap().starts_with(b"onetrip\0"));
}

#[test]
fn an_exports_times_are_those_of_the_capture_whatever_came_before() {
    let directory = tempfile::tempdir().unwrap();
    let to = directory.path().join("a.csv").display().to_string();
    let sent_at = |file: &[u8]| {
        assert_ends(file, &["--export", "csv", "--export-to", &to], 0, "1 round trip");
        let csv = std::fs::read_to_string(&to).unwrap();
        let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        let column = lines[0].iter().position(|name| *name == "sent_at").unwrap();
        (lines[1][0].to_owned(), lines[1][column].to_owned())
    };
    let alone = sent_at(&conversation());
    // Ten hours before, something else was captured.
    let mut other: Vec<u8> = [1_700_000_000 - 36_000, 0, 60, 60_u32].map(u32::to_le_bytes).concat();
    other.extend([0; 60]);
    let [head, segments] = [&conversation()[..24], &conversation()[24..]].map(<[u8]>::to_vec);
    assert_eq!(sent_at(&[head, other, segments].concat()), alone);
    assert_eq!(alone.0, "2023-11-14");
}

#[test]
fn standard_input_is_a_capture_too() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_onetrip"))
        .args(["analyze", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&conversation()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&done.stdout).contains("1 round trip"), "{done:?}");
}

/// Ends one that follows files by Ctrl-C, once it has written to its trace.
fn interrupted(child: Child, trace: &Path) -> Output {
    let begun = Instant::now();
    while !trace.exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_secs(1)); // the other packets are in the same piece
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    child.wait_with_output().unwrap()
}

#[test]
fn ctrl_c_ends_the_following_of_files_with_the_report_of_all() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    // What is complete or has no packet yet holds up no other.
    std::fs::write(path("empty.pcap"), head()).unwrap();
    std::fs::write(path("whole.pcap"), conversation()).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_onetrip"))
        .args(["analyze", "--follow"])
        .args([path("empty.pcap"), path("whole.pcap"), "--trace".into(), path("a.trace")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let done = interrupted(child, &path("a.trace"));
    assert_eq!(done.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&done.stdout).contains("1 round trip"), "{done:?}");
}

#[test]
fn a_followed_file_that_is_replaced_is_told_and_the_new_one_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("shop.pcap"), head()).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_onetrip"))
        .args(["analyze", "--follow"])
        .args([path("shop.pcap"), "--trace".into(), path("a.trace")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(1)); // it has begun
    std::fs::rename(path("shop.pcap"), path("shop.pcap.1")).unwrap();
    std::fs::write(path("shop.pcap"), conversation()).unwrap();
    let done = interrupted(child, &path("a.trace"));
    let said = said_by(&done);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("shop.pcap: the name leads to another file now; reading goes on"), "{said}");
    assert!(said.contains("1 round trip"), "{said}");
}

/// The conversation in blocks without times.
fn untimed() -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let padded = body.len().div_ceil(4) * 4;
        let length = (padded as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &vec![0; padded - body.len()], &length].concat()
    };
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let mut file = [block(0x0a0d_0d0a, &section), block(1, &[1, 0, 0, 0, 0, 0, 4, 0])].concat();
    let timed = conversation();
    let mut rest = &timed[24..];
    while let Some((head, after)) = rest.split_first_chunk::<16>() {
        let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        let (packet, after) = after.split_at(length as usize);
        file.extend(block(3, &[&length.to_le_bytes()[..], packet].concat()));
        rest = after;
    }
    file
}

#[test]
fn a_capture_without_times_has_no_distance_and_is_not_judged() {
    let file = untimed();
    assert_ends(&file, &[], 0, "have no times in the capture (Simple Packet Blocks)");
    let said = said_by(&analyze(&file, &[]));
    assert!(said.contains("1 round trip"), "{said}");
    for word in [" away", "\n  made ", "\n  initial RTT ", "\n  first byte "] {
        assert!(!said.contains(word), "{word}: {said}");
    }
    assert_ends(&file, &["--budget", "trips=9"], 91, "could not be judged");
    assert_ends(&file, &["--budget", "trips=9", "--allow-loss"], 0, "");
}

#[test]
fn an_export_without_a_place_is_refused() {
    assert_ends(&conversation(), &["--export", "csv"], 125, "--export-to");
    let nowhere = ["--export", "csv", "--export-to", "/nowhere/a.csv"];
    assert_ends(&conversation(), &nowhere, 125, "cannot write /nowhere/a.csv");
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_is_refused_before_the_capture_is_read() {
    let to = std::env::temp_dir().join("onetrip-no-export").display().to_string();
    assert_ends(&conversation(), &["--export", "parquet", "--export-to", &to], 125, "--features parquet");
}

#[test]
fn a_key_log_that_is_none_is_told_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("keys.log");
    std::fs::write(&log, "# made for a test\nSELECT 1\n").unwrap();
    let option = ["--keylog", log.to_str().unwrap()];
    assert_ends(&head(), &option, 125, "line 2: it does not have three words");
    std::fs::write(&log, "# made for a test\n").unwrap();
    assert_ends(&head(), &option, 0, "it has no secrets");
    assert_ends(&head(), &["--keylog", "/none"], 125, "cannot read the key log /none");
}

fn said_by(done: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
}

#[test]
fn a_second_trace_replaces_only_a_trace_and_follows_no_link() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let both = |second: &str| {
        let (first, second) = (path("a.trace"), path(second));
        analyze(&conversation(), &["--trace", &first, "--export", "trace", "--export-to", &second])
    };
    std::fs::write(path("app.py"), "import shop\n").unwrap();
    std::os::unix::fs::symlink(path("app.py"), path("link.trace")).unwrap();
    for second in ["app.py", "link.trace"] {
        let done = both(second);
        let said = said_by(&done);
        assert_eq!(done.status.code(), Some(125), "{said}");
        assert!(said.contains(second) && said.contains("1 round trip"), "{said}");
        assert_eq!(std::fs::read_to_string(path("app.py")).unwrap(), "import shop\n");
    }
    // Once it is new, once it replaces a trace.
    for _ in 0..2 {
        let done = both("b.trace");
        assert_eq!(done.status.code(), Some(0), "{}", said_by(&done));
        let (first, second) =
            (std::fs::read(path("a.trace")).unwrap(), std::fs::read(path("b.trace")).unwrap());
        assert!(first == second && first.len() > 100, "{} and {} bytes", first.len(), second.len());
    }
}

/// A file that may not grow stands for a full disk.
#[test]
fn a_trace_without_room_takes_no_report_and_says_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("shop.pcap"), conversation()).unwrap();
    let analyze = |options: &[&str]| {
        let script = "trap '' XFSZ; ulimit -f 1; \"$@\" 2>&1 | cat; exit ${PIPESTATUS[0]}";
        let mut command = Command::new("bash");
        command.args(["-c", script, "bash", env!("CARGO_BIN_EXE_onetrip"), "analyze", &path("shop.pcap")]);
        // More than the file may hold, in the trace's first block.
        command.args(["--trace", &path("a.trace"), "--program", &"x".repeat(1_100)]).args(options);
        command.output().unwrap()
    };
    for (options, code) in [(&[][..], 125), (&["--budget", "trips=9", "--allow-no-connections"], 91)] {
        let done = analyze(options);
        let said = said_by(&done);
        assert_eq!(done.status.code(), Some(code), "{said}");
        assert!(said.contains("1 round trip") && said.contains("the trace ends here"), "{said}");
    }
    let done = Command::new(env!("CARGO_BIN_EXE_onetrip"))
        .args(["export", &path("a.trace"), "--format", "csv", "--output", &path("a.csv")])
        .output()
        .unwrap();
    let said = said_by(&done);
    assert!(said.contains("bytes were lost when it was written") && !said.contains("no end"), "{said}");
    // The end mark is the last block.
    let whole = std::fs::read(path("a.trace")).unwrap();
    std::fs::write(path("open.trace"), &whole[..whole.len() - 17]).unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_onetrip"))
        .args(["export", &path("open.trace"), "--format", "jsonl", "--output", &path("a.jsonl")])
        .output()
        .unwrap();
    assert!(said_by(&done).contains("it has no end"), "{}", said_by(&done));
}

#[test]
fn a_snapshot_is_not_updated_by_a_capture_that_is_not_whole() {
    let directory = tempfile::tempdir().unwrap();
    let lock = directory.path().join("trips.lock");
    let snapshot = format!("--snapshot={}", lock.display());
    let options = [snapshot.as_str(), "--update", "--allow-no-connections"];
    let allowed = [&options[..], &["--allow-loss"]].concat();
    // Of the first, bytes of the reply are missing; of the second, the rest cannot be read.
    let (syn, ack) = (2, 16);
    let missing = [
        segment(true, [99, 0], syn, b""),
        segment(false, [499, 100], syn | ack, b""),
        segment(true, [100, 500], ack, b"request"),
        segment(false, [500, 107], ack, b"re"),
        segment(true, [107, 505], ack, b""),
        segment(true, [107, 505], ack, b"request"),
        segment(false, [505, 114], ack, b"reply"),
    ];
    let lossy = [head(), missing.concat()].concat();
    let unreadable = [conversation(), packet(u32::MAX, &[0; 100])].concat();
    for capture in [&lossy, &unreadable] {
        assert_ends(capture, &options, 91, "is not updated");
        assert!(!lock.exists());
        assert_ends(capture, &allowed, 0, "is updated");
        std::fs::remove_file(&lock).unwrap();
    }
}
