//! Summaries made by hand, as a ledger would count them.
#![allow(dead_code, reason = "every test file uses some of them")]

pub(crate) mod page;

use onetrip_ledger::judge::{Base, Increase, Limit, Rules};
use onetrip_ledger::{
    Code, Driver, Evidence, Finding, Gaps, Obstacle, PathTimes, Remedy, ScopeTotals, Summary, TemplateTotals,
    TripTotals, Would,
};

/// The driver of this key.
pub(crate) fn driver(key: &str) -> Driver {
    Driver::of_key(key).expect("there is such a driver")
}

pub(crate) const EMPLOYEES: &str = "SELECT emp_no, first_name, last_name FROM employees ORDER BY emp_no";
pub(crate) const SALARIES: &str = "SELECT salary, from_date FROM salaries WHERE emp_no = ?";

pub(crate) fn template(text: &str, trips: u64, rows: u64, waited_ns: u64) -> TemplateTotals {
    TemplateTotals {
        text: text.into(),
        trips,
        executions: trips,
        rows,
        waited_ns,
        waited_max_ns: waited_ns / trips.max(1) * 2,
        bytes: 100 * trips + 20 * rows,
    }
}

pub(crate) fn finding(code: Code, driver: Driver, counts: [u64; 4], evidence: Evidence) -> Finding {
    let [occurrences, trips, avoidable, waited_ns] = counts;
    Finding {
        code,
        statements: Vec::new(),
        driver,
        scopes: Vec::new(),
        occurrences,
        trips,
        avoidable,
        removed: 0,
        would: Default::default(),
        left: Default::default(),
        impure: None,
        waited_ns,
        wire_ns: waited_ns / 10 * 9,
        evidence,
        spots: Vec::new(),
        sites: Vec::new(),
        fix: driver.fix(code).into(),
    }
}

/// The loop of the story over 400 employees, 12.9 ms away.
pub(crate) fn story() -> Summary {
    let walk = Evidence::Walk { sources: vec![(1, "emp_no".into())], rows: (1, 400) };
    let loop_ = finding(Code::Loop, driver("psycopg2"), [1, 400, 399, 5_160_000_000], walk);
    let would = Would { exact: 0, isolated: 380 };
    let loop_ = Finding { left: [(Obstacle::OffAtItsLevel, 400)].into(), would, ..loop_ };
    Summary {
        trips: TripTotals { total: 406, connect: 3, may_share: 0 },
        connections: 1,
        sessions: 1,
        units: 406,
        statements: 403,
        rows: 4_200,
        bytes_sent: 31_000,
        bytes_received: 146_000,
        elapsed_ns: 5_310_000_000,
        times: PathTimes { server_ns: 41_000_000, wire_ns: 5_239_000_000, think_ns: 12_300_000 },
        would: [(Remedy::Begin, Would { exact: 1, isolated: 0 }), (Remedy::Loops, would)].into(),
        rtt_min_us: Some(12_900),
        upstream: "db.example:5432".into(),
        drivers: [(driver("psycopg2"), 1)].into(),
        templates: vec![
            template(SALARIES, 400, 3_800, 5_172_000_000),
            template(EMPLOYEES, 1, 400, 14_200_000),
            template("BEGIN", 1, 0, 12_950_000),
            template("COMMIT", 1, 0, 12_940_000),
        ],
        findings: vec![Finding { statements: vec![SALARIES.into(), EMPLOYEES.into()], ..loop_ }],
        ..Summary::default()
    }
}

/// A run with nothing to find.
pub(crate) fn calm() -> Summary {
    Summary {
        trips: TripTotals { total: 23, connect: 3, may_share: 0 },
        connections: 1,
        sessions: 1,
        units: 23,
        statements: 20,
        rows: 1_204,
        bytes_sent: 2_400,
        bytes_received: 81_200,
        elapsed_ns: 48_000_000,
        times: PathTimes { server_ns: 6_200_000, wire_ns: 1_100_000, think_ns: 39_000_000 },
        rtt_min_us: Some(45),
        upstream: "127.0.0.1:5432".into(),
        drivers: [(driver("pgx"), 1)].into(),
        templates: vec![
            template("select id, total from orders where customer = $1", 19, 1_203, 6_100_000),
            template("select count(*) from orders", 1, 1, 1_100_000),
        ],
        ..Summary::default()
    }
}

/// Every finding, scopes, several drivers and everything that can be in doubt.
pub(crate) fn crowded() -> Summary {
    let insert = "INSERT INTO audit_log (happened_at, actor, action, subject, detail, request_id, session_id, \
        origin_address, user_agent, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id, happened_at, \
        actor, action, subject, detail, request_id";
    let with = |finding: Finding, statements: &[&str], scopes: &[&str]| Finding {
        statements: statements.iter().map(|text| (*text).to_owned()).collect(),
        scopes: scopes.iter().map(|label| (*label).to_owned()).collect(),
        ..finding
    };
    let walk =
        Evidence::Walk { sources: vec![(1, "order_id".into()), (3, "tenant".into())], rows: (2, 10_000) };
    let orders = "SELECT order_id, tenant FROM orders WHERE state = ? ORDER BY created_at DESC LIMIT ?";
    let lines = "SELECT sku, amount FROM order_lines WHERE order_id = ? AND amount > ? AND tenant = ?";
    let base = story();
    Summary {
        trips: TripTotals { total: 31_734, connect: 144, may_share: 212 },
        connections: 36,
        sessions: 36,
        open_connections: 2,
        errors: 17,
        errors_by_state: vec![("40001".into(), 12), ("57014".into(), 5)],
        statements: 31_590,
        rows: 1_048_576,
        bytes_received: 1_240_000_000,
        elapsed_ns: 201_400_000_000,
        times: PathTimes { server_ns: 9_100_000_000, wire_ns: 161_900_000_000, think_ns: 88_000_000_000 },
        unasked_replies: 1,
        undecoded: 3,
        unanswered: 2,
        gaps: Gaps { lost_bytes: 12_288, damaged_blocks: 1, damaged_bytes: 900, ..Gaps::default() },
        drivers: [(driver("django"), 30), (driver("pgjdbc"), 5), (Driver::UNKNOWN, 1)].into(),
        templates: (1..=14_u64)
            .map(|number| {
                template(
                    &format!("SELECT a{number} FROM t WHERE id = ?"),
                    30_000 / number,
                    7,
                    150_000_000_000 / number,
                )
            })
            .chain([template(insert, 4, 4, 52_000_000)])
            .collect(),
        scopes: ["checkout/pay", "", "orders/list"]
            .into_iter()
            .zip([20_110, 11_000, 624])
            .map(|(label, trips)| ScopeTotals {
                label: label.into(),
                trips,
                statements: trips - 20,
                waited_ns: trips * 5_300_000,
                requests: if label.is_empty() { 0 } else { trips / 200 },
                request_trips_median: 190,
                request_trips_max: 412,
            })
            .collect(),
        findings: vec![
            with(
                Finding {
                    removed: 9_988,
                    left: [(Obstacle::ReadCommitted, 19_000), (Obstacle::Impure, 1_012)].into(),
                    impure: Some("function margin() is not a built-in function known to be harmless".into()),
                    ..finding(Code::Loop, driver("django"), [12, 20_012, 20_000, 106_000_000_000], walk)
                },
                &[lines, orders],
                &["checkout/pay", "orders/list"],
            ),
            with(
                finding(
                    Code::CommitPerRow,
                    driver("pgjdbc"),
                    [3, 6_000, 5_994, 40_000_000_000],
                    Evidence::Rows { rows: 3_000, transactions: 3_000 },
                ),
                &[insert],
                &[],
            ),
            with(
                finding(
                    Code::TinyFetch,
                    driver("pgjdbc"),
                    [1, 200, 197, 2_600_000_000],
                    Evidence::Fetches { size: 10, rows: 2_000 },
                ),
                &["SELECT * FROM ledger_entries"],
                &[],
            ),
            with(
                finding(
                    Code::RowByRow,
                    driver("psycopg2"),
                    [1, 100, 99, 1_300_000_000],
                    Evidence::Rows { rows: 100, transactions: 1 },
                ),
                &["UPDATE stock SET amount = amount - ? WHERE sku = ?"],
                &["checkout/pay"],
            ),
            with(
                finding(
                    Code::Repeated,
                    driver("django"),
                    [30, 90, 60, 780_000_000],
                    Evidence::Repeats { distinct: 30, runs: 90 },
                ),
                &["SELECT \"auth_user\".\"id\" FROM \"auth_user\" WHERE \"auth_user\".\"id\" = ?"],
                &[],
            ),
            finding(
                Code::TransactionAlone,
                driver("pgx"),
                [20, 40, 40, 520_000_000],
                Evidence::Alone { begins: 20, commits: 20, transactions: 20 },
            ),
            with(
                finding(
                    Code::PreparePerRun,
                    driver("lib-pq"),
                    [1, 30, 29, 380_000_000],
                    Evidence::Prepares { prepares: 30, runs: 30 },
                ),
                &["SELECT name FROM country WHERE iso = $1"],
                &[],
            ),
            finding(
                Code::ConnectionPerQuery,
                Driver::UNKNOWN,
                [6, 24, 20, 260_000_000],
                Evidence::Connections { connections: 6, connect_trips: 24 },
            ),
        ],
        // Remedies were on.
        would: Default::default(),
        ..base
    }
}

/// Rules of every kind, with an earlier run to compare with.
pub(crate) fn rules(before: &Summary) -> Rules {
    let mut limits: Vec<Limit> =
        ["trips=200", "OT003=0", "work-trips=50000"].map(|text| text.parse().unwrap()).into();
    limits.push(Limit { scope: Some("orders/list".into()), ..limits[0].clone() });
    limits.push(Limit { scope: Some("orders/lost".into()), ..limits[0].clone() });
    Rules {
        limits,
        fail_on: vec![Code::Loop, Code::TinyFetch],
        base: Some(Base::of("yesterday.trace", before)),
        max_increase: Some(Increase::Percent(5_000)),
        ..Rules::default()
    }
}
