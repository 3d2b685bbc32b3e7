use super::*;
use crate::units::BitsPerSecond;
use proptest::prelude::*;

fn ms(value: u64) -> Moment {
    Moment::from_millis(value)
}

fn us(value: u64) -> Moment {
    Moment::from_micros(value)
}

/// One byte per microsecond.
const SLOW: Option<BitsPerSecond> = BitsPerSecond::new(8_000_000);

fn link(rtt_ms: u64) -> LinkSpec {
    LinkSpec::with_rtt(ms(rtt_ms))
}

/// Lets the lane run until it is empty and returns what left it, when.
fn drain(lane: &mut Lane, bottleneck: &mut Bottleneck) -> Vec<(Moment, Payload)> {
    let mut left = Vec::new();
    while let Some(now) = lane.next_event() {
        lane.advance(now, bottleneck);
        while let Some(release) = lane.pop_due(now) {
            assert_eq!(release.at, now);
            left.push((release.at, release.payload));
        }
    }
    left
}

use Payload::{Bytes, Finish, Reset};

#[test]
fn bytes_arrive_half_a_round_trip_later() {
    let (mut lane, mut wire) = (Lane::new(&link(20), ms(0), 0), Bottleneck::new(None));
    lane.admit(ms(5), 100, &mut wire);
    lane.admit(ms(7), 50, &mut wire);
    assert_eq!(drain(&mut lane, &mut wire), [(ms(15), Bytes(100)), (ms(17), Bytes(50))]);
}

#[test]
fn a_connection_costs_a_round_trip_before_its_first_byte() {
    let link = link(20);
    let mut wire = Bottleneck::new(None);
    let mut up = Lane::new(&link, Lane::client_opens_at(&link, ms(100)), 0);
    up.admit(ms(100), 8, &mut wire);
    up.admit(ms(101), 8, &mut wire);
    assert_eq!(drain(&mut up, &mut wire), [(ms(130), Bytes(16))]);
    let mut down = Lane::new(&link, Lane::server_opens_at(&link, ms(100)), 1);
    down.admit(ms(110), 80, &mut wire); // a server that speaks first
    assert_eq!(drain(&mut down, &mut wire), [(ms(140), Bytes(80))]);
}

#[test]
fn a_burst_beyond_the_window_leaves_in_rounds_one_round_trip_apart() {
    let (mut lane, mut wire) = (Lane::new(&link(20), ms(0), 0), Bottleneck::new(None));
    lane.admit(ms(0), 100 * MSS, &mut wire);
    let rounds = [(10, 10 * MSS), (30, 20 * MSS), (50, 40 * MSS), (70, 30 * MSS)];
    assert_eq!(drain(&mut lane, &mut wire), rounds.map(|(at, bytes)| (ms(at), Bytes(bytes))));
}

#[test]
fn without_the_window_a_burst_leaves_at_once() {
    let link = LinkSpec { tcp_window: false, ..link(20) };
    let (mut lane, mut wire) = (Lane::new(&link, ms(0), 0), Bottleneck::new(None));
    lane.admit(ms(0), 100 * MSS, &mut wire);
    assert_eq!(drain(&mut lane, &mut wire), [(ms(10), Bytes(100 * MSS))]);
}

#[test]
fn an_opened_window_serves_the_next_burst_until_idleness_closes_it() {
    let burst_rounds = |pause: u64| {
        let (mut lane, mut wire) = (Lane::new(&link(20), ms(0), 0), Bottleneck::new(None));
        lane.admit(ms(0), 70 * MSS, &mut wire);
        assert_eq!(drain(&mut lane, &mut wire).len(), 3); // 10, 20, 40: the last sent at 40 ms
        lane.admit(ms(40 + pause), 80 * MSS, &mut wire);
        drain(&mut lane, &mut wire).len()
    };
    assert_eq!(burst_rounds(20), 1);
    assert_eq!(burst_rounds(220), 1); // exactly the timeout: 20 + 200 ms
    assert_eq!(burst_rounds(221), 2); // halved once: 40, 40
    assert_eq!(burst_rounds(10_000), 4); // 10, 20, 40, 10
}

#[test]
fn bytes_that_come_while_the_window_is_full_join_the_next_round() {
    let (mut lane, mut wire) = (Lane::new(&link(20), ms(0), 0), Bottleneck::new(None));
    lane.admit(ms(0), 11 * MSS, &mut wire);
    lane.admit(ms(1), 5, &mut wire);
    assert_eq!(drain(&mut lane, &mut wire), [(ms(10), Bytes(10 * MSS)), (ms(30), Bytes(MSS + 5))]);
}

#[test]
fn a_late_poll_does_not_send_bytes_before_they_came() {
    let (mut lane, mut wire) = (Lane::new(&link(20), ms(0), 0), Bottleneck::new(None));
    lane.admit(ms(0), 11 * MSS, &mut wire);
    lane.admit(ms(25), 5, &mut wire); // the acknowledgement at 20 ms let the eleventh segment go
    let expected = [(ms(10), Bytes(10 * MSS)), (ms(30), Bytes(MSS)), (ms(35), Bytes(5))];
    assert_eq!(drain(&mut lane, &mut wire), expected);
}

#[test]
fn bandwidth_spreads_a_burst_over_time() {
    let link = LinkSpec { bandwidth: SLOW, ..link(20) };
    let (mut lane, mut wire) = (Lane::new(&link, ms(0), 0), Bottleneck::new(SLOW));
    lane.admit(ms(0), 2 * MSS + 4, &mut wire);
    let expected = [(us(11_448), Bytes(MSS)), (us(12_896), Bytes(MSS)), (us(12_900), Bytes(4))];
    assert_eq!(drain(&mut lane, &mut wire), expected);
}

#[test]
fn connections_share_the_bandwidth_of_a_direction() {
    let link = LinkSpec { bandwidth: SLOW, ..link(20) };
    let mut wire = Bottleneck::new(SLOW);
    let (mut one, mut two) = (Lane::new(&link, ms(0), 0), Lane::new(&link, ms(0), 1));
    one.admit(ms(0), 1000, &mut wire);
    two.admit(ms(0), 500, &mut wire);
    one.admit(us(200), 100, &mut wire);
    assert_eq!(drain(&mut one, &mut wire), [(ms(11), Bytes(1000)), (us(11_600), Bytes(100))]);
    assert_eq!(drain(&mut two, &mut wire), [(us(11_500), Bytes(500))]);
}

#[test]
fn acknowledgements_keep_a_narrow_path_busy_once_the_window_covers_it() {
    // 1 byte/µs × 20 ms holds 14 segments: the first round leaves a gap, after that the path is never idle.
    let link = LinkSpec { bandwidth: SLOW, ..link(20) };
    let (mut lane, mut wire) = (Lane::new(&link, ms(0), 0), Bottleneck::new(SLOW));
    let transfer = lane.carry(ms(0), 100 * MSS, &mut wire);
    assert_eq!(transfer.first, us(11_448));
    // First acknowledgement after 20 ms + one segment; 90 segments remain to be serialised from then on.
    assert_eq!(transfer.last, us(20_000 + 1448 + 90 * 1448 + 10_000));
}

#[test]
fn the_end_of_a_stream_arrives_after_its_bytes() {
    let (mut lane, mut wire) = (Lane::new(&link(20), ms(0), 0), Bottleneck::new(None));
    lane.admit(ms(0), 11 * MSS, &mut wire);
    lane.finish(ms(1), &mut wire);
    let expected = [(ms(10), Bytes(10 * MSS)), (ms(30), Bytes(MSS)), (ms(30), Finish)];
    assert_eq!(drain(&mut lane, &mut wire), expected);
}

#[test]
fn the_end_of_a_silent_stream_takes_half_a_round_trip() {
    let (mut lane, mut wire) = (Lane::new(&link(20), ms(0), 0), Bottleneck::new(None));
    lane.finish(ms(3), &mut wire);
    assert_eq!(drain(&mut lane, &mut wire), [(ms(13), Finish)]);
}

#[test]
fn a_reset_arrives_after_what_is_under_way_and_drops_what_was_not_sent() {
    let (mut lane, mut wire) = (Lane::new(&link(20), ms(0), 0), Bottleneck::new(None));
    lane.admit(ms(0), 11 * MSS, &mut wire);
    lane.abort(ms(1));
    assert_eq!(drain(&mut lane, &mut wire), [(ms(10), Bytes(10 * MSS)), (ms(11), Reset)]);
}

#[test]
fn a_refused_connection_is_news_after_one_round_trip() {
    let link = link(20);
    let mut down = Lane::new(&link, Lane::server_opens_at(&link, ms(0)), 1);
    down.abort(ms(10)); // the SYN came after half a round trip
    assert_eq!(drain(&mut down, &mut Bottleneck::new(None)), [(ms(20), Reset)]);
}

#[test]
fn jitter_replays_with_its_seed_and_stays_in_order() {
    let run = |seed| {
        let link = LinkSpec { jitter: ms(10), seed, tcp_window: false, ..link(20) };
        let (mut lane, mut wire) = (Lane::new(&link, ms(0), 0), Bottleneck::new(None));
        (0..500).for_each(|index| lane.admit(us(100 * index), 1 + index as usize, &mut wire));
        drain(&mut lane, &mut wire)
    };
    let releases = run(1);
    assert_eq!(releases, run(1));
    assert_ne!(releases, run(2));
    assert!(releases.is_sorted_by_key(|(at, _)| *at));
    assert!(releases.iter().any(|(at, _)| *at > ms(14)), "the first come up to 5 ms late");
}

#[test]
fn a_carried_burst_takes_the_rounds_that_the_forecast_counts() {
    for bytes in [1, 10 * MSS, 10 * MSS + 1, 100_000, 1 << 20, 20 << 20] {
        let (mut lane, mut wire) = (Lane::new(&link(20), ms(0), 0), Bottleneck::new(None));
        let rounds = crate::slow_start_rounds(bytes, crate::INITIAL_WINDOW);
        let transfer = lane.carry(ms(0), bytes, &mut wire);
        assert_eq!(transfer, Transfer { first: ms(10), last: ms(10) + ms(20) * rounds });
    }
}

/// What a sender does, and how long after the last time.
fn writes() -> impl Strategy<Value = Vec<(u64, usize)>> {
    proptest::collection::vec((0u64..400_000, prop_oneof![1usize..2000, 1usize..300_000]), 1..40)
}

fn links() -> impl Strategy<Value = LinkSpec> {
    let bandwidth = proptest::option::of((100_000u64..2_000_000_000).prop_map(BitsPerSecond::new));
    (0u64..100_000, bandwidth, 0u64..20_000, any::<bool>(), any::<u64>()).prop_map(
        |(rtt, bandwidth, jitter, tcp_window, seed)| LinkSpec {
            rtt: us(rtt),
            bandwidth: bandwidth.flatten(),
            jitter: us(jitter),
            tcp_window,
            seed,
            ..LinkSpec::default()
        },
    )
}

proptest! {
    /// Two senders write into one direction while it is being drained in time order, poll by poll.
    #[test]
    fn all_bytes_come_out_in_order_and_never_early(
        link in links(), writes in [writes(), writes()], lateness in 0u64..1000,
    ) {
        let mut wire = Bottleneck::new(link.bandwidth);
        let mut lanes = [Lane::new(&link, ms(0), 0), Lane::new(&link, ms(0), 1)];
        let mut entered = [Vec::new(), Vec::new()]; // (moment, bytes so far) per lane
        let mut left = [Vec::new(), Vec::new()];
        let mut inputs: Vec<(Moment, usize, usize)> = Vec::new();
        for (index, writes) in writes.iter().enumerate() {
            let mut at = Moment::ZERO;
            for (pause, bytes) in writes {
                at += us(*pause);
                inputs.push((at, index, *bytes));
            }
        }
        inputs.sort();
        let mut inputs = inputs.into_iter().peekable();
        loop {
            let event = lanes.iter().filter_map(Lane::next_event).min();
            let input = inputs.peek().map(|input| input.0);
            let Some(now) = [event, input].into_iter().flatten().min() else { break };
            if input == Some(now) {
                let Some((_, index, bytes)) = inputs.next() else { break };
                let so_far = entered[index].last().map_or(0, |(_, sum)| *sum);
                entered[index].push((now, so_far + bytes));
                lanes[index].admit(now, bytes, &mut wire);
            } else {
                let now = now + us(lateness);
                for (index, lane) in lanes.iter_mut().enumerate() {
                    lane.advance(now, &mut wire);
                    while let Some(release) = lane.pop_due(now) {
                        let Bytes(bytes) = release.payload else { panic!("{release:?}") };
                        let so_far = left[index].last().map_or(0, |(_, sum)| *sum);
                        left[index].push((release.at, so_far + bytes));
                    }
                }
            }
        }
        for index in 0..2 {
            prop_assert_eq!(left[index].last().map(|last| last.1), entered[index].last().map(|last| last.1));
            prop_assert!(left[index].is_sorted_by_key(|(at, _): &(Moment, usize)| *at));
            for (at, sum) in &left[index] {
                let entry = entered[index].iter().find(|(_, entered)| entered >= sum).map(|entry| entry.0);
                prop_assert!(entry.is_some_and(|entry| *at >= entry + link.one_way()), "{:?} {:?}", at, entry);
            }
        }
    }
}
