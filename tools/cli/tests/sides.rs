//! `onetrip analyze --client --server` as a command.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MS: u64 = 1_000;
/// The server's clock is an hour ahead.
const OFFSET: u64 = 3_600_000 * MS;

/// A capture of segments: when in microseconds, whether from the client, number, acknowledgement, flags, data.
type Segment = (u64, bool, u32, u32, u8, &'static [u8]);

fn written(directory: &Path, name: &str, segments: &[Segment]) -> PathBuf {
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0]);
    [0, 0, 65_535, 101_u32].iter().for_each(|word| file.extend(word.to_le_bytes()));
    for (at, from_client, sequence, acknowledged, flags, data) in segments {
        let ends = [([10, 0, 0, 1], 40_000_u16), ([10, 0, 0, 2], 9_000)];
        let [source, destination] = if *from_client { ends } else { [ends[1], ends[0]] };
        let length = 40 + data.len();
        let mut packet = vec![0x45, 0];
        packet.extend((length as u16).to_be_bytes());
        packet.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
        packet.extend([source.0, destination.0].concat());
        packet.extend([source.1.to_be_bytes(), destination.1.to_be_bytes()].concat());
        packet.extend([sequence.to_be_bytes(), acknowledged.to_be_bytes()].concat());
        packet.extend([0x50, *flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend(*data);
        let (seconds, fraction) = (1_700_000_000 + at / 1_000_000, at % 1_000_000);
        let head = [seconds as u32, fraction as u32, length as u32, length as u32];
        head.iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(packet);
    }
    let path = directory.join(name);
    std::fs::write(&path, file).unwrap();
    path
}

/// Both captures of ten turns: 2 ms at the client, 5 ms there, 3 ms at the server, 5 ms back.
fn captures(directory: &Path) -> [PathBuf; 2] {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    let mut now = 0;
    let mut go = |from_client: bool, left: u64, sequence, acknowledged, flags, data| {
        let segment = |at| (at, from_client, sequence, acknowledged, flags, data);
        let (at_client, at_server) = if from_client { (left, left + 5 * MS) } else { (left + 5 * MS, left) };
        client.push(segment(at_client));
        server.push(segment(at_server + OFFSET));
    };
    go(true, now, 99, 0, 2, &b""[..]);
    go(false, now + 5 * MS, 499, 100, 18, &b""[..]);
    now += 10 * MS;
    for turn in 0..10 {
        go(true, now + 2 * MS, 100 + 5 * turn, 500 + 5 * turn, 16, &b"query"[..]);
        go(false, now + 10 * MS, 500 + 5 * turn, 105 + 5 * turn, 16, &b"reply"[..]);
        now += 15 * MS;
    }
    [written(directory, "client.pcap", &client), written(directory, "server.pcap", &server)]
}

fn analyze(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onetrip")).arg("analyze").args(arguments).output().unwrap()
}

#[test]
fn two_captures_say_where_the_time_went_in_text_json_and_html() {
    let directory = tempfile::tempdir().unwrap();
    let [client, server] = captures(directory.path());
    let page = directory.path().join("page.html");
    let both = ["--client", client.to_str().unwrap(), "--server", server.to_str().unwrap()];
    let done = analyze(&[&both[..], &["--html", page.to_str().unwrap()]].concat());
    let text = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&done.stderr));
    assert!(text.contains("Where each millisecond went, by both captures"), "{text}");
    assert!(text.contains("The server's clock is 1 h 00 min ahead of the client's"), "{text}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("<section id=\"sides\">"));
    let done = analyze(&[&both[..], &["--format", "json"]].concat());
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let (clock, totals) = (&report["sides"]["clock"], &report["sides"]["totals"]);
    assert_eq!(clock["offset_ns"], OFFSET * 1_000);
    assert_eq!(totals["turns"], 10);
    let sums = ["client", "there", "server", "back"]
        .map(|part| totals[part]["sum_ns"].as_u64().unwrap() / 1_000_000);
    assert_eq!(sums, [18, 50, 30, 50], "the client had no reply before its first request");
    assert_eq!(report["trips"]["total"], 10, "the report itself is the client's");
}

#[test]
fn one_of_the_two_alone_and_one_that_is_not_there_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let [client, server] = captures(directory.path());
    let link = directory.path().join("link.pcap");
    std::os::unix::fs::symlink(&client, &link).unwrap();
    let [client, server, link] = [&client, &server, &link].map(|path| path.to_str().unwrap());
    for (arguments, says) in [
        (&["--client", client][..], "--server"),
        (&["--server", client], "--client"),
        (&[client, "--client", client, "--server", client], "cannot be used with"),
        (&["--client", client, "--server", server, "--follow"], "cannot be used with"),
        (&["--client", client, "--server", client], "is given for both sides"),
        (&["--client", client, "--server", server, "--server", link], "is given for both sides"),
        (&["--client", client, "--server", "/none.pcap"], "/none.pcap"),
        (&[], "FILE"),
    ] {
        let done = analyze(arguments);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(125), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

#[test]
fn captures_of_other_places_are_refused_in_a_sentence_and_the_report_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let [client, server] = captures(directory.path());
    let copy = directory.path().join("copy.pcap");
    std::fs::copy(&client, &copy).unwrap();
    let [client, server, copy] = [&client, &server, &copy].map(|path| path.to_str().unwrap());
    for (of_client, of_server, says) in [
        (client, copy, "All bytes pass both captures at the same time."),
        (server, client, "Is --client the capture made at the client"),
    ] {
        let done = analyze(&["--client", of_client, "--server", of_server]);
        let text = String::from_utf8_lossy(&done.stdout);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(done.status.code(), Some(0), "{text}");
        assert!(text.contains(says), "{text}");
        assert!(!text.contains("wire there:"), "nothing is guessed: {text}");
    }
}
