//! What a session keeps is bounded in bytes, whatever its client sends, and what it does not keep is counted.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{bind, complete, execute, message, parse, query, ready, startup, startup_with, sync};
use onetrip_heap::{LIVE, PEAK};
use onetrip_ledger::{Analyzer, Gaps, Moment, Mutes, Summary, ValueHasher};
use onetrip_session::{Session, SessionConfig, SessionError, Texts, Verdict};

const MIB: isize = 1 << 20;
/// Bound of a session beside its buffers.
const SESSION_MAX: isize = 4 * MIB;

/// A session, and what it may use: its records are counted as they come and not kept.
struct Watched {
    session: Session,
    analyzer: Analyzer,
    now: u64,
    before: isize,
}

impl Watched {
    fn opening() -> Self {
        Self::sharing(Arc::default())
    }

    fn sharing(texts: Arc<Texts>) -> Self {
        let config = SessionConfig {
            hasher: ValueHasher::new(),
            cancel_key: *b"mine",
            keep_values: true,
            remedies: Default::default(),
            common: Default::default(),
            verify: None,
            lobs: Default::default(),
            isolation: None,
            question_burst: Duration::from_secs(60),
            texts,
            private: *b"not told",
            overflow: None,
        };
        // What all sessions share is there before.
        let analyzer = Analyzer::new();
        let before = LIVE.get();
        PEAK.set(before);
        Self { session: Session::new(config), analyzer, now: 0, before }
    }

    fn serving() -> Self {
        Self::serving_after(&startup())
    }

    fn serving_after(startup: &[u8]) -> Self {
        let mut watched = Self::opening();
        watched.client(startup).expect("a good packet");
        watched.server(&[message(b'R', &[0; 4]), ready(b'I')].concat());
        watched
    }

    fn client(&mut self, mut bytes: &[u8]) -> Result<(), SessionError> {
        self.now += 50_000;
        while !bytes.is_empty() {
            match common::decide(&mut self.session, Moment(self.now), bytes)? {
                Verdict::Forward(count) | Verdict::Replace(count) => bytes = &bytes[count..],
                other => panic!("{other:?}"),
            }
            self.session.to_client().clear();
            self.session.to_server().clear();
        }
        self.hand_over();
        Ok(())
    }

    fn server(&mut self, mut bytes: &[u8]) {
        self.now += 50_000;
        while !bytes.is_empty() {
            match self.session.handle_server(Moment(self.now), bytes).expect("good messages") {
                Verdict::Forward(count) | Verdict::Replace(count) => bytes = &bytes[count..],
                other => panic!("{other:?}"),
            }
        }
        self.hand_over();
    }

    /// What the gateway does with records; the analyzer's memory is not the session's.
    fn hand_over(&mut self) {
        let block = self.session.stream().take_block();
        let (live, peak) = (LIVE.get(), PEAK.get());
        self.analyzer.block(1, &block).expect("records");
        self.before += LIVE.get() - live;
        drop(block);
        PEAK.set(peak.max(LIVE.get()));
    }

    /// What the session keeps now.
    fn kept(&self) -> isize {
        LIVE.get() - self.before
    }

    fn summary(mut self) -> Summary {
        self.session.close(Moment(self.now));
        self.hand_over();
        self.analyzer.finish(&Mutes::default()).summary
    }
}

fn assert_bounded(watched: &Watched) {
    assert!(watched.kept() < SESSION_MAX, "{} KiB", watched.kept() / 1024);
}

#[test]
fn texts_that_all_differ_are_kept_up_to_a_bound_and_counted_beyond() {
    let mut watched = Watched::serving();
    for number in 0..600 {
        let text = format!("SELECT 1 AS \"{number:07}{}\"", "x".repeat(60_000));
        watched.client(&query(&text)).expect("a good message");
        watched.server(&[complete("SELECT 1"), ready(b'I')].concat());
    }
    assert_bounded(&watched);
    let summary = watched.summary();
    assert_eq!((summary.trips.work(), summary.statements), (600, 600));
    assert!((500..600).contains(&summary.gaps.untold_statements), "{:?}", summary.gaps);
}

#[test]
fn a_label_without_room_is_counted_and_no_other_scope_takes_its_statements() {
    let mut watched = Watched::serving_after(&startup_with(&[("user", "me"), ("application_name", "shop")]));
    for number in 0..20 {
        watched.client(&query(&format!("SELECT 1 AS \"{number:07}{}\"", "x".repeat(60_000)))).expect("good");
        watched.server(&[complete("SELECT 1"), ready(b'I')].concat());
    }
    // Small texts take the room that is left.
    for number in 0..2_000 {
        watched.client(&query(&format!("SELECT \"{number:07}\""))).expect("a good message");
        watched.server(&[complete("SELECT 1"), ready(b'I')].concat());
    }
    for text in ["SELECT 1 /* route='/late' */", "SELECT 1"] {
        for _ in 0..500 {
            watched.client(&query(text)).expect("a good message");
            watched.server(&[complete("SELECT 1"), ready(b'I')].concat());
        }
    }
    watched.client(&query("SET onetrip.scope = 'later'")).expect("a good message");
    watched.server(&[complete("SET"), ready(b'I')].concat());
    watched.client(&query("SELECT 1")).expect("a good message");
    watched.server(&[complete("SELECT 1"), ready(b'I')].concat());
    let summary = watched.summary();
    // The setting holds from its own statement on.
    assert_eq!((summary.statements, summary.gaps.unscoped_statements), (3_022, 502));
    let scopes: Vec<_> =
        summary.scopes.iter().map(|scope| (scope.label.as_str(), scope.statements)).collect();
    assert_eq!(scopes, [("shop", 2_520), ("", 502)]);
}

#[test]
fn sessions_share_their_texts_and_all_of_them_hold_no_more_than_64_mib() {
    let texts = Arc::<Texts>::default();
    let before = LIVE.get();
    let mut sessions: Vec<Watched> = (0..120).map(|_| Watched::sharing(Arc::clone(&texts))).collect();
    let mut untold = 0;
    for (place, watched) in sessions.iter_mut().enumerate() {
        watched.client(&startup()).expect("a good packet");
        watched.server(&[message(b'R', &[0; 4]), ready(b'I')].concat());
        for number in 0..12 {
            let text = format!("SELECT 1 AS \"{place}_{number}{}\"", "x".repeat(60_000));
            watched.client(&query(&text)).expect("a good message");
            watched.server(&[complete("SELECT 1"), ready(b'I')].concat());
        }
        watched.session.rest();
        // What the analyzer keeps is measured elsewhere.
        let analyzer = std::mem::take(&mut watched.analyzer);
        untold += analyzer.finish(&Mutes::default()).summary.gaps.untold_statements;
    }
    let all = (LIVE.get() - before) / MIB;
    assert!(all < 64 + 8, "{all} MiB");
    assert!(untold > 100, "{untold} of 1,440 texts of 60 kB");
}

#[test]
fn names_of_statements_and_portals_are_kept_up_to_a_bound() {
    let mut watched = Watched::serving();
    for number in 0..200 {
        let name = format!("{number:07}{}", "n".repeat(60_000));
        watched.client(&[parse(&name, "SELECT 1"), sync()].concat()).expect("good messages");
        watched.server(&[message(b'1', b""), ready(b'I')].concat());
    }
    for number in 0..20_000 {
        let name = format!("s{number}");
        watched.client(&[parse(&name, "SELECT 1"), sync()].concat()).expect("good messages");
        watched.server(&[message(b'1', b""), ready(b'T')].concat());
    }
    for number in 0..20_000 {
        let portal = format!("p{number}");
        watched
            .client(&[bind(&portal, "s1", &[]), execute(&portal), sync()].concat())
            .expect("good messages");
        watched.server(&[message(b'2', b""), complete("SELECT 1"), ready(b'T')].concat());
    }
    assert_bounded(&watched);
    assert_eq!(watched.summary().trips.work(), 40_200);
}

#[test]
fn a_statement_that_is_not_followed_is_counted_as_not_told_apart() {
    let mut watched = Watched::serving();
    for number in 0..20_000 {
        let name = format!("s{number}");
        watched.client(&[parse(&name, "SELECT 1"), sync()].concat()).expect("good messages");
        watched.server(&[message(b'1', b""), ready(b'I')].concat());
    }
    watched.client(&[bind("", "s19999", &[]), execute(""), sync()].concat()).expect("good messages");
    watched.server(&[message(b'2', b""), complete("SELECT 1"), ready(b'I')].concat());
    assert_eq!(watched.summary().gaps, Gaps { untold_statements: 1, is_open: true, ..Gaps::default() });
}

/// RowDescription of many columns that may be keys.
fn columns(number: usize, count: usize) -> Vec<u8> {
    let mut body = (count as u16).to_be_bytes().to_vec();
    for column in 0..count {
        body.extend(format!("c{number}_{column}_xxxxxxxxxxxxxxxxxxxxxxxx\0").bytes());
        body.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 23, 0, 4, 255, 255, 255, 255, 0, 0]);
    }
    message(b'T', &body)
}

#[test]
fn results_of_ever_other_columns_are_kept_up_to_a_bound() {
    let mut watched = Watched::serving();
    for number in 0..300 {
        watched.client(&query("SELECT *")).expect("a good message");
        watched.server(&[columns(number, 1_000), complete("SELECT 0"), ready(b'I')].concat());
    }
    assert_bounded(&watched);
    assert!(watched.summary().gaps.untold_statements > 0);
}

#[test]
fn one_unit_of_very_many_statements_is_counted_in_full_and_kept_in_part() {
    let mut watched = Watched::serving();
    watched.client(&[parse("s", "SELECT 1"), sync()].concat()).expect("good messages");
    watched.server(&[message(b'1', b""), ready(b'I')].concat());
    let value = "x".repeat(200);
    let values = vec![value.as_str(); 200];
    let (one, answer) =
        ([bind("", "s", &values), execute("")].concat(), [message(b'2', b""), complete("SELECT 1")].concat());
    for _ in 0..2_000 {
        watched.client(&one).expect("good messages");
    }
    let kept = watched.kept();
    assert!(kept < SESSION_MAX, "{} KiB", kept / 1024);
    for _ in 0..2_000 {
        watched.server(&answer);
    }
    watched.client(&sync()).expect("a good message");
    watched.server(&ready(b'I'));
    assert_bounded(&watched);
    let summary = watched.summary();
    assert_eq!((summary.trips.work(), summary.statements, summary.rows), (2, 2_000, 2_000));
    assert_eq!((summary.gaps.cut_exchanges, summary.gaps.untold_statements), (1, 0));
}

#[test]
fn a_client_that_sends_ahead_is_read_no_further_than_the_bound() {
    let mut watched = Watched::serving();
    let text = query(&format!("SELECT {}", vec!["1"; 200].join(", ")));
    let mut sent = 0;
    while !watched.session.is_full() {
        watched.client(&text).expect("a good message");
        sent += 1;
        assert!(sent < 1_000_000);
    }
    assert_bounded(&watched);
    assert!(sent > 1_000, "{sent} units");
    watched.server(&[complete("SELECT 1"), ready(b'I')].concat().repeat(sent));
    assert!(!watched.session.is_full());
    let summary = watched.summary();
    assert_eq!((summary.statements, summary.trips.work()), (sent as u64, 1));
}

#[test]
fn a_client_that_is_not_let_in_yet_has_64_kib() {
    let mut watched = Watched::opening();
    let before = watched.kept();
    watched.client(&startup()).expect("a good packet");
    watched.server(&message(b'R', &[0, 0, 0, 3]));
    let mut sent = 0;
    while !watched.session.is_full() {
        watched.client(&message(b'p', b"secret\0")).expect("a good message");
        sent += 1;
        assert!(sent < 10_000);
    }
    let kept = watched.kept() - before;
    assert!(kept < 64 * 1024, "{} KiB after {sent} passwords", kept / 1024);
}

#[test]
fn a_session_at_rest_keeps_little() {
    let mut watched = Watched::serving();
    for _ in 0..100 {
        let row = common::row(b"17");
        watched.client(&query("SELECT id FROM t")).expect("a good message");
        watched.server(&[columns(1, 1), row.repeat(500), complete("SELECT 500"), ready(b'I')].concat());
    }
    watched.session.rest();
    let kept = watched.kept();
    assert!(kept + (size_of::<Session>() as isize) < 16 * 1024, "{kept} and {}", size_of::<Session>());
}
