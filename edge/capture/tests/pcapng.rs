//! Blocks of pcapng files that few tools write.

mod common;

use common::{Dress, Frame, Talk, block, enhanced, interface, pcapng, read, runs, section};
use onetrip_capture::{CaptureFile, without_times};
use onetrip_ledger::network::Place;

/// Logs in and asks five queries.
fn five_queries() -> Talk {
    let mut talk = Talk::default();
    talk.log_in();
    (0..5).for_each(|number| talk.query(&format!("SELECT {number}")));
    talk
}

#[test]
fn a_clock_may_tick_by_any_power_of_two() {
    let mut talk = five_queries();
    let first_ns = talk.frames[0].at_ns;
    talk.frames.iter_mut().for_each(|frame| frame.at_ns -= first_ns);
    let (expected, at_best, _) = read(&pcapng(&talk.frames, Dress::Raw), 1 << 20);
    for exponent in 0..=63 {
        let mut file = [section(), interface(Dress::Raw, Some(0x80 | exponent))].concat();
        for frame in &talk.frames {
            let ticks = (u128::from(frame.at_ns) << exponent) / 1_000_000_000;
            file.extend_from_slice(&enhanced(frame, Dress::Raw, 0, ticks as u64));
        }
        let (summary, network, problem) = read(&file, 1 << 20);
        assert_eq!((problem, summary.trips.total), (None, expected.trips.total), "2^-{exponent}");
        assert_eq!(runs(&summary), runs(&expected), "2^-{exponent}");
        // Of coarser clocks, times are what they are.
        if exponent >= 30 {
            assert_eq!(summary.trips, expected.trips, "2^-{exponent}");
            let near = at_best.capture.elapsed_ns - 1..=at_best.capture.elapsed_ns;
            assert!(near.contains(&network.capture.elapsed_ns), "2^-{exponent}");
        }
        // No time of such a clock is too much.
        file.extend_from_slice(&enhanced(&talk.frames[0], Dress::Raw, 0, u64::MAX));
        assert_eq!(read(&file, 1 << 20).1.capture.packets, talk.frames.len() as u64 + 1, "2^-{exponent}");
    }
}

#[test]
fn a_clock_that_nobody_has_is_refused() {
    for resolution in [20, 0x7f, 0xc0, 0xff] {
        let file = [section(), interface(Dress::Raw, Some(resolution))].concat();
        let problem = read(&file, 1 << 20).2.expect("a problem");
        assert!(problem.ends_with("an interface's clock ticks too fast to be read"), "{problem}");
    }
}

/// A packet block as tools wrote it before there were enhanced ones.
fn old_packet(frame: &Frame, dropped: u16) -> Vec<u8> {
    let ticks = frame.at_ns / 1_000;
    let mut body = [0_u16.to_le_bytes(), dropped.to_le_bytes()].concat();
    let length = frame.ip.len() as u32;
    for value in [(ticks >> 32) as u32, ticks as u32, length, length] {
        body.extend_from_slice(&value.to_le_bytes());
    }
    body.extend_from_slice(&frame.ip);
    block(2, &body)
}

#[test]
fn old_packet_blocks_are_read_alone_and_among_others() {
    let talk = five_queries();
    let (expected, at_best, _) = read(&pcapng(&talk.frames, Dress::Raw), 1 << 20);
    for every in [1, 2] {
        let mut file = [section(), interface(Dress::Raw, None)].concat();
        for (place, frame) in talk.frames.iter().enumerate() {
            file.extend_from_slice(&match place % every {
                0 => old_packet(frame, if place == 0 { u16::MAX } else { 0 }),
                _ => enhanced(frame, Dress::Raw, 0, frame.at_ns / 1_000),
            });
        }
        for piece in [1, 1 << 20] {
            let (summary, network, problem) = read(&file, piece);
            assert_eq!((problem, network.capture), (None, at_best.capture.clone()), "{every}");
            assert_eq!((summary.trips, runs(&summary)), (expected.trips, runs(&expected)), "{every}");
        }
    }
}

#[test]
fn drops_that_old_packet_blocks_tell_count_and_their_lengths_are_not_believed() {
    let frame = &five_queries().frames[0];
    let mut file =
        [section(), interface(Dress::Raw, None), old_packet(frame, 3), old_packet(frame, 4)].concat();
    let mut reader = CaptureFile::new();
    reader.room()[..file.len()].copy_from_slice(&file);
    reader.filled(file.len());
    while reader.next_packet().expect("it decodes").is_some() {}
    assert_eq!(reader.interfaces()[0].dropped, 7);
    let captured = file.len() - old_packet(frame, 0).len() + 8 + 12;
    file[captured + 1] = 1;
    let problem = read(&file, 1 << 20).2.expect("a problem");
    assert!(problem.ends_with("a block does not decode"), "{problem}");
    let short = [section(), interface(Dress::Raw, None), block(2, &[0; 16])].concat();
    assert!(read(&short, 1 << 20).2.is_some());
}

#[test]
fn drops_that_packet_blocks_tell_count() {
    let frame = &five_queries().frames[0];
    let plain = enhanced(frame, Dress::Raw, 0, frame.at_ns / 1_000);
    let with_drops = |dropped: u64| {
        // What is between the type and both lengths, and an option of eight bytes behind it.
        let option = [&[4, 0, 8, 0][..], &dropped.to_le_bytes(), &[0; 4]].concat();
        block(6, &[&plain[8..plain.len() - 4], &option].concat())
    };
    let packets = [with_drops(3), plain.clone(), with_drops(4)].concat();
    let file = [section(), interface(Dress::Raw, None), packets].concat();
    let mut reader = CaptureFile::new();
    reader.room()[..file.len()].copy_from_slice(&file);
    reader.filled(file.len());
    while reader.next_packet().expect("it decodes").is_some() {}
    assert_eq!(reader.interfaces()[0].dropped, 7);
}

/// Blocks of packets without times.
fn simple(frames: &[Frame]) -> Vec<u8> {
    let packet = |frame: &Frame| block(3, &[&(frame.ip.len() as u32).to_le_bytes()[..], &frame.ip].concat());
    frames.iter().flat_map(packet).collect()
}

#[test]
fn packets_without_times_are_counted_and_nothing_is_said_of_times() {
    let talk = five_queries();
    let file = [section(), interface(Dress::Raw, None), simple(&talk.frames)].concat();
    let mut reader = CaptureFile::new();
    reader.room()[..file.len()].copy_from_slice(&file);
    reader.filled(file.len());
    while reader.next_packet().expect("it decodes").is_some() {}
    assert_eq!(reader.interfaces()[0].untimed, talk.frames.len() as u64);
    let (expected, timed, _) = read(&pcapng(&talk.frames, Dress::Raw), 1 << 20);
    let (summary, mut network, problem) = read(&file, 1 << 20);
    assert_eq!((problem, runs(&summary)), (None, runs(&expected)));
    without_times(&mut network, 7);
    assert_eq!(network.capture.untimed_packets, 7);
    let (totals, path) = (&network.totals, &network.paths[0].path);
    assert_eq!(totals, path);
    assert_eq!((network.capture.place, network.rtts.len()), (Place::Unknown, 0));
    assert_eq!(
        (totals.initial_rtt_ns, totals.client_leg_min_ns, totals.server_leg_min_ns),
        (None, None, None)
    );
    assert_eq!((totals.first_byte.count, totals.last_byte.count, totals.next_request.count), (0, 0, 0));
    assert_eq!((totals.turns, totals.syns), (timed.totals.turns, timed.totals.syns));
}
