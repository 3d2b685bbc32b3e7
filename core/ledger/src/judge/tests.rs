use super::*;
use crate::{Driver, Evidence, Finding, Refusal, TripTotals};

fn summary() -> Summary {
    let scope = |label: &str, trips| ScopeTotals { label: label.into(), trips, ..ScopeTotals::default() };
    let requests = ScopeTotals {
        requests: 3,
        request_trips_median: 4,
        request_trips_max: 9,
        ..scope("GET /orders", 17)
    };
    Summary {
        trips: TripTotals { total: 100, connect: 4, may_share: 0 },
        connections: 1,
        sessions: 1,
        scopes: vec![scope("checkout", 30), requests],
        ..Summary::default()
    }
}

fn limit(text: &str, scope: Option<&str>) -> Limit {
    let (name, most) = text.split_once('=').unwrap();
    let (measure, most) = (name.parse().unwrap(), most.parse().unwrap());
    Limit { measure, most, scope: scope.map(str::to_owned) }
}

fn limited(text: &str, scope: Option<&str>) -> Rules {
    Rules { limits: vec![limit(text, scope)], ..Rules::default() }
}

fn ruling(rules: &Rules, summary: &Summary) -> (Ruling, String) {
    let judgement = rules.judge(summary);
    let reasons: Vec<String> = judgement.reasons().iter().map(ToString::to_string).collect();
    (judgement.ruling(), reasons.join(" | "))
}

fn passed() -> (Ruling, String) {
    (Ruling::Passed, String::new())
}

fn failed() -> (Ruling, String) {
    (Ruling::Failed, String::new())
}

#[test]
fn a_limit_is_kept_up_to_its_number_and_broken_above() {
    assert_eq!(ruling(&limited("trips=100", None), &summary()), passed());
    assert_eq!(ruling(&limited("trips=99", None), &summary()), failed());
    assert_eq!(ruling(&limited("work-trips=96", None), &summary()), passed());
    assert_eq!(ruling(&limited("OT001=0", None), &summary()), passed());
    assert_eq!(ruling(&limited("trips=29", Some("checkout")), &summary()), failed());
    assert_eq!(ruling(&limited("median-trips-per-request=4", Some("GET /orders")), &summary()), passed());
    assert_eq!(ruling(&limited("most-trips-per-request=8", Some("GET /orders")), &summary()), failed());
}

#[test]
fn a_run_without_a_session_keeps_nothing() {
    let refusal = Refusal { sqlstate: "28P01".into(), message: "no entry".into(), sessions: 2 };
    let unseen = Summary { connections: 0, sessions: 0, trips: TripTotals::default(), ..summary() };
    let refused = Summary { sessions: 0, refusals: vec![refusal], ..summary() };
    let rules = Rules { fail_on: vec![Code::Loop], ..limited("trips=0", None) };
    assert_eq!(ruling(&rules, &unseen), (Ruling::Unjudged, "no connection reached the gateway".into()));
    assert_eq!(
        ruling(&rules, &refused),
        (Ruling::Unjudged, "no session was opened: no entry (28P01)".into())
    );
    let gaps = Gaps { damaged_blocks: 1, damaged_bytes: 90, ..Gaps::default() };
    let damaged = Summary { gaps, ..unseen.clone() };
    assert_eq!(ruling(&rules, &damaged).1, "no session is in what could be read and understood");
    let compared = Rules { base: Some(Base::of("yesterday", &summary())), ..Rules::default() };
    assert_eq!(ruling(&compared, &unseen).0, Ruling::Unjudged);
    let allowing = Rules { allow: Allow { no_connections: true, ..Allow::default() }, ..rules };
    assert_eq!(ruling(&allowing, &unseen), passed());
}

#[test]
fn a_scope_that_did_not_occur_is_not_kept_and_the_nearest_one_is_named() {
    let reason = |label: &str| {
        let (ruling, reason) = ruling(&limited("trips=1000", Some(label)), &summary());
        assert_eq!(ruling, Ruling::Unjudged);
        reason
    };
    assert_eq!(reason("chekout"), "scope \"chekout\" did not occur; did you mean \"checkout\"?");
    assert_eq!(reason("import"), "scope \"import\" did not occur; there are \"checkout\", \"GET /orders\"");
    let missing = Rules {
        allow: Allow { missing_scopes: true, ..Allow::default() },
        ..limited("trips=0", Some("import"))
    };
    assert_eq!(ruling(&missing, &summary()), passed());
    let per_request = limited("most-trips-per-request=9", Some("checkout"));
    assert!(ruling(&per_request, &summary()).1.contains("carry no traceparent"));
    let unscoped = limited("trips=0", Some(""));
    assert_eq!(ruling(&unscoped, &summary()), passed());
}

#[test]
fn what_is_missing_keeps_nothing_and_breaks_what_is_broken_all_the_same() {
    let with = |gaps| Summary { gaps, ..summary() };
    let lossy = with(Gaps { lost_bytes: 7, ..Gaps::default() });
    let damaged = with(Gaps { damaged_blocks: 1, damaged_bytes: 90, ..Gaps::default() });
    let open = with(Gaps { is_open: true, ..Gaps::default() });
    let (wide, tight) = (limited("trips=1000", None), limited("trips=10", None));
    for (summary, word) in [(&lossy, "7 bytes were lost"), (&damaged, "90 bytes"), (&open, "no end")] {
        let (ruled, reason) = ruling(&wide, summary);
        assert!(ruled == Ruling::Unjudged && reason.contains(word), "{reason}");
        assert_eq!(ruling(&tight, summary), failed());
    }
    let allowing = |allow| Rules { allow, ..wide.clone() };
    let loss = allowing(Allow { loss: true, ..Allow::default() });
    let unended = allowing(Allow { open: true, ..Allow::default() });
    assert_eq!([&lossy, &damaged].map(|summary| ruling(&loss, summary)), [passed(), passed()]);
    assert_eq!(ruling(&unended, &open), passed());
    assert_eq!(ruling(&unended, &lossy).0, Ruling::Unjudged);
}

#[test]
fn what_is_not_told_apart_concerns_the_rules_that_need_it() {
    let cut = Summary { gaps: Gaps { cut_exchanges: 1, ..Gaps::default() }, ..summary() };
    assert_eq!(ruling(&limited("OT001=0", None), &cut).0, Ruling::Unjudged);
    assert_eq!(ruling(&Rules { fail_on: vec![Code::Loop], ..Rules::default() }, &cut).0, Ruling::Unjudged);
    assert_eq!(ruling(&limited("trips=100", None), &cut), passed());
    let unscoped = Summary { gaps: Gaps { unscoped_statements: 1, ..Gaps::default() }, ..summary() };
    assert_eq!(ruling(&limited("trips=30", Some("checkout")), &unscoped).0, Ruling::Unjudged);
    assert_eq!(ruling(&limited("trips=100", None), &unscoped), passed());
}

#[test]
fn a_finding_that_must_not_be_there_breaks_its_rule() {
    let finding = Finding {
        code: Code::Loop,
        statements: Vec::new(),
        driver: Driver::UNKNOWN,
        scopes: Vec::new(),
        occurrences: 1,
        trips: 5,
        avoidable: 4,
        removed: 0,
        would: Default::default(),
        left: Default::default(),
        impure: None,
        waited_ns: 0,
        wire_ns: 0,
        evidence: Evidence::Rows { rows: 0, transactions: 0 },
        spots: Vec::new(),
        sites: Vec::new(),
        fix: String::new(),
    };
    let found = Summary { findings: vec![finding], ..summary() };
    let rules = |code| Rules { fail_on: vec![code], ..Rules::default() };
    assert_eq!(ruling(&rules(Code::Loop), &found), failed());
    assert_eq!(ruling(&rules(Code::RowByRow), &found), passed());
}

#[test]
fn growth_is_measured_against_a_run_that_was_seen_whole() {
    let grown = |before: Summary, increase: &str| {
        let base = Some(Base::of("base.trace", &before));
        let rules = Rules { base, max_increase: increase.parse().ok(), ..Rules::default() };
        ruling(&rules, &summary())
    };
    let before = |total| Summary { trips: TripTotals { total, ..TripTotals::default() }, ..summary() };
    assert_eq!(grown(before(96), "5%"), passed());
    assert_eq!(grown(before(95), "5%"), failed());
    assert_eq!(grown(before(95), "none given"), passed());
    assert_eq!(grown(before(95), "5"), passed());
    assert_eq!(grown(before(94), "5"), failed());
    let open = Summary { gaps: Gaps { is_open: true, ..Gaps::default() }, ..before(1000) };
    assert!(grown(open, "5%").1.starts_with("base.trace cannot be compared with: the trace has no end"));
    let empty = Summary { sessions: 0, ..before(1000) };
    assert!(grown(empty, "5%").1.contains("no session was opened in it"));
    let base = Base { has_failed: true, ..Base::of("base.json", &before(1000)) };
    let rules = Rules { base: Some(base), ..Rules::default() };
    let reason = "base.json cannot be compared with: its program failed";
    assert_eq!(ruling(&rules, &summary()), (Ruling::Unjudged, reason.into()));
}

#[test]
fn a_scope_beyond_the_bound_did_not_fail_to_occur() {
    let gaps = Gaps { unscoped_statements: 50, ..Gaps::default() };
    let many = Summary { gaps, ..summary() };
    let rules = limited("trips=10", Some("victim"));
    let reason = "scopes or requests of 50 statements were too many to be told apart";
    assert_eq!(ruling(&rules, &many), (Ruling::Unjudged, reason.into()));
    let judgement = rules.judge(&many);
    assert_eq!(judgement.reasons()[0].option, Some("--allow-loss"));
    let missing = Rules { allow: Allow { missing_scopes: true, ..Allow::default() }, ..rules };
    assert_eq!(ruling(&missing, &many), (Ruling::Unjudged, reason.into()));
}

#[test]
fn what_the_command_knows_to_be_too_little_passes_nothing() {
    let reason = Reason::always("a connection went past the gateway");
    let mut passing = limited("trips=100", None).judge(&summary());
    passing.is_too_little(&reason);
    assert_eq!((passing.ruling(), passing.reasons()), (Ruling::Unjudged, vec![&reason]));
    let mut failing = limited("trips=99", None).judge(&summary());
    failing.is_too_little(&reason);
    assert_eq!(failing.ruling(), Ruling::Failed);
    let snapshot = Snapshot { work_trips: Some(97), ..Snapshot::default() };
    let rules = Rules { snapshot: Some(("trips.lock".into(), snapshot)), ..Rules::default() };
    let mut fewer = rules.judge(&Summary { scopes: Vec::new(), ..summary() });
    assert_eq!(fewer.ruling(), Ruling::Failed);
    fewer.is_too_little(&reason);
    assert_eq!(fewer.ruling(), Ruling::Unjudged);
}

#[test]
fn mixed_scopes_are_not_judged_one_by_one() {
    let limits = vec![limit("trips=29", Some("checkout")), limit("trips=99", None)];
    let mut judgement = Rules { limits, ..Rules::default() }.judge(&summary());
    judgement.scopes_are_mixed(&Reason::always("two runners"));
    let rulings: Vec<Ruling> = judgement.verdicts.iter().map(|verdict| verdict.ruling).collect();
    assert_eq!(rulings, [Ruling::Unjudged, Ruling::Failed]);
}

#[test]
fn a_snapshot_is_kept_by_the_same_numbers_only() {
    let rules = |snapshot| Rules { snapshot: Some(("trips.lock".into(), snapshot)), ..Rules::default() };
    let same = Snapshot::of(&summary());
    assert_eq!(ruling(&rules(same.clone()), &summary()), passed());
    for trips in [29, 31] {
        let mut other = same.clone();
        other.scopes.get_mut("checkout").unwrap().insert("trips", trips);
        assert_eq!(ruling(&rules(other), &summary()), failed());
    }
    let other = Snapshot { connections: Some(5), ..same.clone() };
    assert_eq!(ruling(&rules(other), &summary()), failed());
    let without = Snapshot { connections: None, ..same.clone() };
    assert_eq!(ruling(&rules(without), &summary()), passed());
    let mut fewer = same.clone();
    fewer.scopes.remove("checkout");
    assert_eq!(
        ruling(&rules(fewer), &summary()),
        (Ruling::Unjudged, "scope \"checkout\" is not in trips.lock; --update adds it".into())
    );
    let mut more = same.clone();
    more.scopes.insert("import".into(), [("trips", 3)].into());
    assert_eq!(ruling(&rules(more.clone()), &summary()).0, Ruling::Unjudged);
    let allowing = Rules { allow: Allow { missing_scopes: true, ..Allow::default() }, ..rules(more) };
    assert_eq!(ruling(&allowing, &summary()), passed());
    let mut lossy = Summary { gaps: Gaps { lost_bytes: 1, ..Gaps::default() }, ..summary() };
    assert_eq!(ruling(&rules(same.clone()), &lossy).0, Ruling::Unjudged);
    lossy.scopes[0].trips = 12;
    assert_eq!(ruling(&rules(same.clone()), &lossy).0, Ruling::Unjudged, "fewer, and records are missing");
    lossy.scopes[0].trips = 31;
    assert_eq!(ruling(&rules(same), &lossy).0, Ruling::Failed, "more is more");
}
