//! The ledger's patterns are found in MySQL's traffic as in any other.

use onetrip_ledger::{Code, Finding, Obstacle};

use crate::stage::{
    BIGINT, END, OK, Stage, TEXT, column, execute, prepare, prepared, query, result, row, slices,
};

const ROWS: u64 = 20;

fn ids() -> Vec<Vec<u8>> {
    (100..100 + ROWS).map(|id| row(&[&id.to_string(), "x"])).collect()
}

fn only(findings: &[Finding]) -> &Finding {
    let [finding] = findings else { panic!("{findings:?}") };
    finding
}

#[test]
fn a_loop_over_the_rows_of_a_result_is_found_in_texts() {
    let mut stage = Stage::serving();
    stage.turn(
        &query("SELECT `id`, `name` FROM `orders`"),
        &slices(&result(&[("id", BIGINT), ("name", TEXT)], &ids(), END)),
    );
    for id in 100..100 + ROWS {
        let text = format!("SELECT `at` FROM `lines` WHERE `order_id` = {id}");
        stage.turn(&query(&text), &slices(&result(&[("at", TEXT)], &[row(&["now"])], END)));
    }
    let books = stage.books();
    let finding = only(&books.summary.findings);
    assert_eq!((finding.code, finding.trips, finding.avoidable), (Code::Loop, ROWS, ROWS - 1));
    assert_eq!(finding.statements[0], "SELECT `at` FROM `lines` WHERE `order_id` = $1");
    assert!(finding.left.contains_key(&Obstacle::WatchedOnly), "{:?}", finding.left);
}

#[test]
fn a_loop_is_found_in_runs_of_a_prepared_statement() {
    let mut stage = Stage::serving();
    stage.turn(
        &query("SELECT id, name FROM orders"),
        &slices(&result(&[("id", BIGINT), ("name", TEXT)], &ids(), END)),
    );
    let described = [prepared(1, 1, 1), column("?", TEXT), END.to_vec(), column("at", TEXT), END.to_vec()];
    stage.turn(&prepare("SELECT at FROM order_lines WHERE order_id = ?"), &slices(&described));
    let mut answer = result(&[("at", TEXT)], &[], END);
    answer.insert(3, b"\0\0\x03now".to_vec());
    for id in 100..100 + ROWS as i64 {
        stage.turn(&execute(1, 0, &[id]), &slices(&answer));
    }
    let books = stage.books();
    let finding = only(&books.summary.findings);
    assert_eq!((finding.code, finding.trips, finding.avoidable), (Code::Loop, ROWS, ROWS - 1));
}

#[test]
fn rows_that_are_inserted_one_by_one_are_found() {
    let one = b"\0\x01\0\x03\0\0\0";
    let mut stage = Stage::serving();
    stage.turn(&query("START TRANSACTION"), &[b"\0\0\0\x03\0\0\0"]);
    for number in 0..ROWS {
        stage.turn(&query(&format!("INSERT INTO `t` (`a`) VALUES ({number})")), &[one]);
    }
    stage.turn(&query("COMMIT"), &[OK]);
    let books = stage.books();
    let finding = books.summary.findings.iter().find(|finding| finding.code == Code::RowByRow);
    let finding = finding.unwrap_or_else(|| panic!("{:?}", books.summary.findings));
    assert_eq!((finding.trips, finding.avoidable), (ROWS, ROWS - 1));
    // Each in a transaction of its own, which autocommit makes.
    let mut stage = Stage::serving();
    for number in 0..ROWS {
        stage.turn(&query(&format!("INSERT INTO t (a) VALUES ({number})")), &[b"\0\x01\0\x02\0\0\0"]);
    }
    let books = stage.books();
    assert_eq!(only(&books.summary.findings).code, Code::CommitPerRow);
    // REPLACE writes rows as well.
    let mut stage = Stage::serving();
    for number in 0..ROWS {
        stage.turn(&query(&format!("REPLACE t (a) VALUES ({number})")), &[b"\0\x01\0\x02\0\0\0"]);
    }
    let books = stage.books();
    assert_eq!(only(&books.summary.findings).code, Code::CommitPerRow);
    assert_eq!(only(&books.summary.findings).would.exact, 0, "there are no remedies for it");
}

/// A block that was asked for so that its reads see one state has its use.
#[test]
fn a_rollback_behind_reads_is_found_unless_they_were_to_see_one_state() {
    const BEGUN: &[u8] = b"\0\0\0\x03\0\0\0";
    let rolled_back = |before: &str, begin: &str, read: &str| {
        let mut stage = Stage::serving();
        stage.turn(&query(before), &[OK]);
        for number in 0..6 {
            stage.turn(&query(begin), &[BEGUN]);
            let rows = result(&[("n", BIGINT)], &[row(&["5"])], b"\xfe\0\0\x03\0");
            stage.turn(&query(&format!("SELECT n FROM a WHERE id = {number}{read}")), &slices(&rows));
            stage.turn(&query("ROLLBACK"), &[OK]);
        }
        let findings = stage.books().summary.findings;
        findings.iter().any(|finding| finding.code == Code::RollbackOfRead)
    };
    let begin = "START TRANSACTION";
    assert!(rolled_back("DO 1", begin, ""));
    assert!(rolled_back("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", begin, ""));
    assert!(!rolled_back("DO 1", "START TRANSACTION WITH CONSISTENT SNAPSHOT", ""));
    assert!(!rolled_back("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", begin, ""));
    assert!(!rolled_back("DO 1", begin, " LOCK IN SHARE MODE"));
    // For the next transaction only.
    assert!(rolled_back("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", begin, ""));
}
