//! Files as they are on a disk: sparse, growing, compressed and cut, several at once.

mod common;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::{Dress, Talk, pcap};
use onetrip_capture::source::{Progress, Sources};
use onetrip_capture::{CaptureFile, Packet};

/// Nothing that a test waits for takes longer.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Logs in and asks five queries: 3 + 2 + 10 packets.
fn file() -> Vec<u8> {
    let mut talk = Talk::default();
    talk.log_in();
    (0..5).for_each(|number| talk.query(&format!("SELECT {number}")));
    pcap(&talk.frames, Dress::Ethernet, false)
}

const PACKETS: usize = 15;

/// The same in each compressed form, with a name for it.
fn compressed() -> [(&'static str, Vec<u8>); 2] {
    let file = file();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&file).expect("memory");
    let zstd = zstd::encode_all(&file[..], 1).expect("memory");
    [("shop.pcap.gz", gzip.finish().expect("memory")), ("shop.pcap.zst", zstd)]
}

/// Reads files to their ends: how many packets there are, what went wrong, and how many bytes of the files were read.
fn read(paths: &[PathBuf]) -> (usize, Vec<String>, u64) {
    let progress = Arc::new(Progress::default());
    let mut packets = 0;
    let mut problems = Vec::new();
    match Sources::open(paths, false, Arc::clone(&progress)) {
        Ok(mut sources) => {
            sources.read(|_| packets += 1, |problem| problems.push(problem.reason.to_string()))
        }
        Err(problem) => problems.push(problem.reason.to_string()),
    }
    (packets, problems, progress.read.load(Ordering::Relaxed))
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < WAIT_MAX, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn written(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, bytes).expect("room for a file");
    path
}

#[test]
fn a_sparse_file_of_100_gb_ends_where_its_zeros_begin() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = file();
    let path = written(directory.path(), "sparse.pcap", &file);
    let opened = OpenOptions::new().write(true).open(&path).expect("it is there");
    if opened.set_len(100 << 30).is_err() {
        eprintln!("this file system has no files of 100 GB, so that none is read");
        return;
    }
    let (packets, problems, bytes) = read(&[path]);
    assert_eq!(packets, PACKETS);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with(&format!("at offset {}: a record of zeros", file.len())), "{problems:?}");
    assert!(bytes < 1 << 20, "{bytes} bytes are read");
}

#[test]
fn a_growing_file_is_followed_until_somebody_ends_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = file();
    // It begins with a part of its header, and grows in the middle of packets.
    let path = written(directory.path(), "growing.pcap", &file[..10]);
    let progress = Arc::new(Progress::default());
    let seen = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let reader = std::thread::spawn({
        let (path, progress, seen) = (path.clone(), Arc::clone(&progress), Arc::clone(&seen));
        move || {
            let mut sources = Sources::open(&[path], true, progress).expect("it is there");
            let mut problems = Vec::new();
            sources.read(
                |_| {
                    seen.fetch_add(1, Ordering::Relaxed);
                },
                |problem| problems.push(problem.to_string()),
            );
            problems
        }
    });
    let mut growing = OpenOptions::new().append(true).open(&path).expect("it is there");
    for place in [300, file.len() - 5] {
        let have = progress.read.load(Ordering::Relaxed);
        let from = growing.metadata().expect("it is there").len() as usize;
        growing.write_all(&file[from..place]).expect("room");
        wait_until("what was written is read", || progress.read.load(Ordering::Relaxed) > have.max(10));
    }
    wait_until("all whole packets are seen", || seen.load(Ordering::Relaxed) == PACKETS - 1);
    growing.write_all(&file[file.len() - 5..]).expect("room");
    wait_until("the last one, too", || seen.load(Ordering::Relaxed) == PACKETS);
    progress.stop.store(true, Ordering::Relaxed);
    assert_eq!(reader.join().expect("it ends"), Vec::<String>::new());
}

#[test]
fn compressed_files_are_read_and_cut_ones_up_to_their_cut() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, bytes) in compressed() {
        let path = written(directory.path(), name, &bytes);
        let (packets, problems, read_bytes) = read(&[path]);
        assert_eq!((packets, problems, read_bytes), (PACKETS, vec![], bytes.len() as u64), "{name}");
        let path = written(directory.path(), name, &bytes[..bytes.len() - 12]);
        let (packets, problems, _) = read(&[path]);
        assert!(packets <= PACKETS && problems.len() == 1, "{name}: {packets}, {problems:?}");
        let path = written(directory.path(), name, &bytes[..2]);
        assert_eq!(read(&[path]).1.len(), 1, "{name} of two bytes");
    }
}

#[test]
fn files_that_are_empty_or_not_there_or_hostile_say_so_and_others_are_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = file();
    let good = written(directory.path(), "good.pcap", &file);
    let empty = written(directory.path(), "empty.pcap", b"");
    let random: Vec<u8> =
        (0..5_000_u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let hostile = written(directory.path(), "hostile.pcap", &[&file[..24], &random].concat());
    let (packets, problems, _) = read(&[good.clone(), empty, hostile]);
    assert!(packets >= PACKETS);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems.iter().all(|problem| problem.starts_with("at offset ")), "{problems:?}");
    let (packets, problems, _) = read(&[good, directory.path().join("none.pcap")]);
    assert_eq!((packets, problems.len()), (0, 1), "nothing is read where a name is wrong");
}

#[test]
fn a_pipe_that_says_nothing_for_a_while_is_ended_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("it is installed").success());
    let progress = Arc::new(Progress::default());
    let reader = std::thread::spawn({
        let (path, progress) = (path.clone(), Arc::clone(&progress));
        move || {
            let (mut packets, mut problems) = (0, 0);
            let mut sources = Sources::open(&[path], false, progress).expect("it is there");
            sources.read(|_| packets += 1, |_| problems += 1);
            (packets, problems)
        }
    });
    let mut pipe = OpenOptions::new().write(true).open(&path).expect("somebody reads");
    let file = file();
    pipe.write_all(&file).expect("it is read");
    wait_until("all is read", || progress.read.load(Ordering::Relaxed) == file.len() as u64);
    // The last packet is seen when the next one is asked for.
    std::thread::sleep(Duration::from_millis(300));
    progress.stop.store(true, Ordering::Relaxed);
    wait_until("it ends", || reader.is_finished());
    assert_eq!(reader.join().expect("it ends"), (PACKETS, 0));
    drop(pipe);
}

/// Reads files that may grow; the times of the packets, as they come.
struct Followed {
    progress: Arc<Progress>,
    seen: Arc<Mutex<Vec<u64>>>,
    reader: JoinHandle<Vec<String>>,
}

impl Followed {
    fn new(paths: &[PathBuf]) -> Self {
        let (progress, seen) = (Arc::new(Progress::default()), Arc::new(Mutex::new(Vec::new())));
        let reader = std::thread::spawn({
            let (paths, progress, seen) = (paths.to_vec(), Arc::clone(&progress), Arc::clone(&seen));
            move || {
                let mut sources = Sources::open(&paths, true, progress).expect("they are there");
                let mut problems = Vec::new();
                let see = |packet: &Packet<'_>| seen.lock().expect("no panic").push(packet.at_ns);
                sources.read(see, |problem| problems.push(problem.to_string()));
                problems
            }
        });
        Self { progress, seen, reader }
    }

    fn wait_for(&self, packets: usize) {
        wait_until("packets are seen", || self.seen.lock().expect("no panic").len() >= packets);
    }

    /// The times of all packets.
    fn end(self) -> Vec<u64> {
        self.progress.stop.store(true, Ordering::Relaxed);
        assert_eq!(self.reader.join().expect("it ends"), Vec::<String>::new());
        std::mem::take(&mut self.seen.lock().expect("no panic"))
    }
}

#[test]
fn packets_of_several_files_come_in_the_order_of_their_times() {
    let directory = tempfile::tempdir().expect("a directory");
    let (header, packets) = common::split(&file());
    let part = |rest: usize| {
        let part = packets.iter().enumerate().filter(|(place, _)| place % 3 == rest);
        [&header[..], &part.flat_map(|(_, packet)| packet.clone()).collect::<Vec<_>>()].concat()
    };
    let paths: Vec<_> =
        (0..3).map(|rest| written(directory.path(), &format!("{rest}.pcap"), &part(rest))).collect();
    let mut times = Vec::new();
    let mut sources = Sources::open(&paths, false, Arc::default()).expect("they are there");
    sources.read(|packet| times.push(packet.at_ns), |problem| panic!("{problem}"));
    assert_eq!((times.len(), times.is_sorted()), (PACKETS, true));
    let followed = Followed::new(&paths);
    followed.wait_for(PACKETS);
    assert_eq!(followed.end(), times);
}

#[test]
fn a_followed_file_that_is_complete_or_has_nothing_yet_holds_up_no_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = file();
    for begun in [0, 10, 24] {
        let first = written(directory.path(), "first.pcap", &file);
        let second = written(directory.path(), "second.pcap", &file[..begun]);
        let followed = Followed::new(&[first.clone(), second.clone()]);
        followed.wait_for(PACKETS);
        let grow = |path: &Path, bytes: &[u8]| {
            let mut growing = OpenOptions::new().append(true).open(path).expect("it is there");
            growing.write_all(bytes).expect("room");
        };
        grow(&second, &file[begun..]);
        followed.wait_for(2 * PACKETS);
        grow(&first, &file[24..]);
        followed.wait_for(3 * PACKETS);
        assert_eq!(followed.end().len(), 3 * PACKETS, "{begun}");
    }
}

#[test]
fn a_compressed_file_may_grow() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, bytes) in compressed() {
        let path = written(directory.path(), name, &bytes[..4]);
        let followed = Followed::new(std::slice::from_ref(&path));
        let mut growing = OpenOptions::new().append(true).open(&path).expect("it is there");
        for place in (4..bytes.len()).step_by(200) {
            std::thread::sleep(Duration::from_millis(120));
            growing.write_all(&bytes[place..bytes.len().min(place + 200)]).expect("room");
        }
        followed.wait_for(PACKETS);
        assert_eq!(followed.end().len(), PACKETS, "{name}");
    }
}

/// Follows a file while `change` does something to it, until all packets are seen twice: the reasons why reading began
/// again.
fn changed(path: &Path, change: impl FnOnce()) -> Vec<String> {
    let (progress, seen) = (Arc::new(Progress::default()), Arc::new(Mutex::new(0)));
    let reader = std::thread::spawn({
        let (path, progress, seen) = (path.to_owned(), Arc::clone(&progress), Arc::clone(&seen));
        move || {
            let mut sources = Sources::open(&[path], true, progress).expect("it is there");
            let mut problems = Vec::new();
            let see = |_: &Packet<'_>| *seen.lock().expect("no panic") += 1;
            sources.read(see, |problem| {
                assert!(problem.goes_on(), "{problem}");
                problems.push(problem.reason.to_string());
            });
            (problems, sources.interfaces().len())
        }
    });
    wait_until("the file is read", || *seen.lock().expect("no panic") == PACKETS);
    change();
    wait_until("what came after is read", || *seen.lock().expect("no panic") == 2 * PACKETS);
    std::thread::sleep(Duration::from_millis(300));
    progress.stop.store(true, Ordering::Relaxed);
    let (problems, interfaces) = reader.join().expect("it ends");
    assert_eq!((*seen.lock().expect("no panic"), interfaces), (2 * PACKETS, 2));
    problems
}

/// The same conversation at another time.
fn later_file() -> Vec<u8> {
    let mut talk = Talk::default();
    talk.wait_us(5_000_000);
    talk.log_in();
    (0..5).for_each(|number| talk.query(&format!("SELECT {number}")));
    pcap(&talk.frames, Dress::Ethernet, false)
}

#[test]
fn a_followed_file_that_is_written_anew_is_read_from_its_beginning() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("shop.pcap");
    let later = later_file();
    // At once, no length tells that it is another one: it is as long as it was.
    for slow in [false, true] {
        std::fs::write(&path, file()).expect("room");
        let problems = changed(&path, || {
            let mut anew = OpenOptions::new().write(true).truncate(true).open(&path).expect("it is there");
            for part in [&later[..24], &later[24..]] {
                anew.write_all(part).expect("room");
                std::thread::sleep(Duration::from_millis(if slow { 300 } else { 0 }));
            }
        });
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("the file was overwritten"), "{problems:?}");
    }
}

#[test]
fn a_file_that_gets_the_name_of_a_followed_one_is_read_after_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("shop.pcap");
    for cut in [0, 5] {
        std::fs::write(&path, file()).expect("room");
        let problems = changed(&path, || {
            let old = directory.path().join("shop.pcap.1");
            std::fs::rename(&path, &old).expect("it is there");
            std::thread::sleep(Duration::from_millis(300));
            if cut > 0 {
                let mut growing = OpenOptions::new().append(true).open(&old).expect("it is there");
                growing.write_all(&file()[24..24 + cut]).expect("room");
            }
            std::fs::write(&path, later_file()).expect("room");
        });
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("the name leads to another file now"), "{problems:?}");
        assert_eq!(problems[0].ends_with("inside a record"), cut > 0, "{problems:?}");
    }
}

/// The times of a file's packets, as they come.
fn times(path: &Path) -> Vec<u64> {
    let mut times = Vec::new();
    let mut sources = Sources::open(&[path.to_owned()], false, Arc::default()).expect("it is there");
    sources.read(|packet| times.push(packet.at_ns), |problem| panic!("{problem}"));
    times
}

#[test]
fn neighbours_that_were_written_in_any_order_come_in_that_of_their_times() {
    let directory = tempfile::tempdir().expect("a directory");
    let (header, sorted) = common::split(&file());
    let mut packets: Vec<_> = sorted.iter().cycle().take(20_000).cloned().collect();
    for (place, packet) in packets.iter_mut().enumerate() {
        // 100 us apart; in all they are longer than what is read at once.
        let at_us = place as u32 * 100;
        packet[0..4].copy_from_slice(&(1_700_000_000 + at_us / 1_000_000).to_le_bytes());
        packet[4..8].copy_from_slice(&(at_us % 1_000_000).to_le_bytes());
    }
    let path = written(directory.path(), "sorted.pcap", &[&header[..], &packets.concat()].concat());
    let expected = times(&path);
    assert!(expected.is_sorted() && expected.len() == packets.len());
    for group in packets.chunks_mut(3) {
        group.reverse();
    }
    let path = written(directory.path(), "swapped.pcap", &[&header[..], &packets.concat()].concat());
    assert_eq!(times(&path), expected);
}

#[test]
fn packets_before_and_after_a_step_of_the_clock_stay_in_the_order_of_the_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let (header, mut packets) = common::split(&file());
    for seconds in [-3_600_i32, 3_600] {
        for packet in &mut packets[7..] {
            let at = u32::from_le_bytes([packet[0], packet[1], packet[2], packet[3]]);
            packet[0..4].copy_from_slice(&at.saturating_add_signed(seconds).to_le_bytes());
        }
        let bytes = [&header[..], &packets.concat()].concat();
        let found = times(&written(directory.path(), "stepped.pcap", &bytes));
        let at_ns = |packet: &Vec<u8>| {
            let number =
                |at: usize| u32::from_le_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
            u64::from(number(0)) * 1_000_000_000 + u64::from(number(4)) * 1_000
        };
        assert_eq!(found, packets.iter().map(at_ns).collect::<Vec<_>>(), "{seconds}");
    }
}

#[test]
fn packets_of_which_one_claims_to_be_early_are_not_held_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let (header, packets) = common::split(&file());
    // The clock is set back by less than a disorder may be, so that the packets before are late ones for a while.
    let mut packets: Vec<_> = packets.iter().cycle().take(300).cloned().collect();
    for (place, packet) in packets.iter_mut().enumerate() {
        let at_us = if place < 100 { 20_000 + place as u32 } else { 10_000 + place as u32 };
        packet[0..4].copy_from_slice(&1_700_000_000_u32.to_le_bytes());
        packet[4..8].copy_from_slice(&at_us.to_le_bytes());
    }
    let found = times(&written(directory.path(), "back.pcap", &[&header[..], &packets.concat()].concat()));
    assert_eq!(found.len(), packets.len());
    let last_before = found.iter().rposition(|at_ns| at_ns % 1_000_000_000 >= 20_000_000).expect("some");
    assert!(last_before < 100 + 16 * 16, "{last_before}");
}

/// All packets of a file that comes in pieces, in order, and how it ends.
fn packets(mut reader: CaptureFile, mut file: &[u8], piece: usize) -> (Vec<(u64, Vec<u8>)>, bool) {
    let mut packets = Vec::new();
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => packets.push((packet.at_ns, packet.data.to_vec())),
            Ok(None) if file.is_empty() => return (packets, reader.finish().is_ok()),
            Ok(None) => {
                let room = reader.room();
                let count = room.len().min(piece).min(file.len());
                room[..count].copy_from_slice(&file[..count]);
                reader.filled(count);
                file = &file[count..];
                if file.is_empty() {
                    reader.dry();
                }
            }
            Err(_) => return (packets, false),
        }
    }
}

#[test]
fn sorting_loses_no_packet_and_adds_none_whatever_a_file_says() {
    let file = file();
    let mut random = 1_u64;
    for _ in 0..1_000 {
        let mut damaged = [&file[..], &file[24..]].concat();
        for _ in 0..2 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let place = (random >> 33) as usize % damaged.len();
            damaged[place] ^= (random >> 24) as u8;
        }
        let plain = packets(CaptureFile::new(), &damaged, usize::MAX);
        let sorted = packets(CaptureFile::sorted(), &damaged, usize::MAX);
        assert_eq!(packets(CaptureFile::sorted(), &damaged, 7), sorted);
        let in_any_order = |(mut packets, end): (Vec<_>, bool)| {
            packets.sort();
            (packets, end)
        };
        assert_eq!(in_any_order(sorted), in_any_order(plain));
    }
}
