//! Blocks of pcapng files that few tools write.

mod common;

use common::{Dress, Talk, enhanced, interface, pcapng, read, runs, section};

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
