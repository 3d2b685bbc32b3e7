//! `onetrip analyze` as a command: what it exits with and says of files that are whole, cut, damaged and none.

use std::process::{Command, Output};

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
    assert_ends(&empty, &[], 0, "No TCP connection with data is in the capture");
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
