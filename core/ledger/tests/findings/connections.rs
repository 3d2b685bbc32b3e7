//! OT008.

use onetrip_ledger::{Analyzer, Code, Evidence, Exchange, Finding, Moment, Mutes, StreamEncoder, UnitKind};

use crate::traffic::{MILLISECOND, found};

/// One connection: two trips to connect, so many for work, a millisecond each.
fn connection(opened_at: u64, work: u64) -> (StreamEncoder, u64) {
    let mut stream = StreamEncoder::default();
    let mut now = opened_at;
    let mut trip = |stream: &mut StreamEncoder, kind| {
        stream.exchange(&Exchange {
            kind,
            sent_at: Moment(now),
            first_reply_at: Moment(now + MILLISECOND),
            last_reply_at: Moment(now + MILLISECOND),
            starts_trip: true,
            ..Exchange::default()
        });
        now += MILLISECOND;
    };
    trip(&mut stream, UnitKind::Connect);
    trip(&mut stream, UnitKind::Connect);
    stream.opened(Moment(opened_at), [(&b"user"[..], &b"ann"[..])]);
    (0..work).for_each(|_| trip(&mut stream, UnitKind::Query));
    (stream, now)
}

/// Connections, each opened so long after the one before was.
fn connections(count: u32, every_ns: u64, work: u64) -> Vec<Finding> {
    let mut analyzer = Analyzer::new();
    for number in 1..=count {
        let (mut stream, ended_at) = connection(u64::from(number) * every_ns, work);
        stream.closed(Moment(ended_at), 0, 0, 0);
        analyzer.block(number, &stream.take_block()).unwrap();
    }
    analyzer.finish(&Mutes::default()).summary.findings
}

#[test]
fn connections_one_after_another_for_a_query_each_need_one() {
    let findings = connections(10, 5 * MILLISECOND, 1);
    assert_eq!(found(&findings), [(Code::ConnectionPerQuery, 18)]);
    assert_eq!(findings[0].evidence, Evidence::Connections { connections: 10, connect_trips: 20 });
}

#[test]
fn connections_of_a_pool_and_those_worth_opening_are_no_finding() {
    assert_eq!(connections(10, 0, 1), [], "all at once");
    assert_eq!(connections(10, 50 * MILLISECOND, 20), [], "each has work");
    assert_eq!(connections(10, 5 * MILLISECOND, 0), [], "health checks of the port");
    assert_eq!(connections(4, 5 * MILLISECOND, 1), [], "four are chance");
}
