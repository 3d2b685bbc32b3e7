//! Texts of MySQL's and MariaDB's: which parts are literals, what their values are, and that no byte of one gets into a
//! template.

use onetrip_sql::{Lifter, LiteralKind, MysqlMode, StatementKind, TEMPLATE_BYTES_MAX};
use proptest::prelude::*;

const PLAIN: MysqlMode = MysqlMode { ansi_quotes: false, no_backslash_escapes: false };
const ANSI: MysqlMode = MysqlMode { ansi_quotes: true, no_backslash_escapes: false };
const NO_ESCAPES: MysqlMode = MysqlMode { ansi_quotes: false, no_backslash_escapes: true };
const SECRET: &str = "QZsecretQZ";

fn lift(text: &str, mode: MysqlMode) -> (String, Vec<String>) {
    let mut lifter = Lifter::new();
    let lifted = lifter.lift_mysql(text.as_bytes(), mode);
    let value = |literal: onetrip_sql::Literal<'_>| {
        String::from_utf8_lossy(literal.value(&mut Vec::new())).into_owned()
    };
    (String::from_utf8_lossy(lifted.template()).into_owned(), lifted.literals().map(value).collect())
}

fn check(text: &str, template: &str, values: &[&str]) {
    check_in(PLAIN, text, template, values);
}

fn check_in(mode: MysqlMode, text: &str, template: &str, values: &[&str]) {
    let (found, literals) = lift(text, mode);
    assert_eq!(
        (found.as_str(), literals),
        (template, values.iter().map(|value| (*value).to_owned()).collect()),
        "{text}"
    );
}

#[test]
fn strings_end_where_the_mode_says() {
    check(r"SELECT 'it\'s', 'it''s', 'a\\'", "SELECT $1, $2, $3", &["it's", "it's", "a\\"]);
    check(r#"SELECT "it's", "a""b", "\"""#, "SELECT $1, $2, $3", &["it's", "a\"b", "\""]);
    check(r"SELECT '\0\b\n\r\t\Z\%\_\x'", "SELECT $1", &["\0\u{8}\n\r\t\u{1a}\\%\\_x"]);
    check_in(NO_ESCAPES, r"SELECT 'a\', 'b\'''", "SELECT $1, $2", &["a\\", "b\\'"]);
    check_in(ANSI, r#"SELECT "a\" FROM "t" WHERE x = 'y'"#, r#"SELECT "a\" FROM "t" WHERE x = $1"#, &["y"]);
    check("SELECT `a``'b` FROM `t` WHERE `x` = 'y'", "SELECT `a``'b` FROM `t` WHERE `x` = $1", &["y"]);
    check("SELECT 'a' 'b'", "SELECT $1 $2", &["a", "b"]);
    check(
        "SELECT N'a', n'b', _utf8mb4'c', _latin1 'd'",
        "SELECT $1, $2, _utf8mb4 $3, _latin1 $4",
        &["a", "b", "c", "d"],
    );
    check("SELECT 'open", "SELECT $1", &["'open"]);
    check("SELECT `open", "SELECT $1", &["`open"]);
}

#[test]
fn numbers_are_told_from_names() {
    check(
        "SELECT 1, -2, 1.5, .5, 1e3, 3-1, a-1",
        "SELECT $1, $2, $3, $4, $5, $6-$7, a-$8",
        &["1", "-2", "1.5", "0.5", "1000", "3", "1", "1"],
    );
    check(
        "SELECT 0x41, x'4142', 0b1000001, b'1000001', X''",
        "SELECT $1, $2, $3, $4, $5",
        &["A", "AB", "A", "A", ""],
    );
    check("SELECT 1a, 0X1F, t.1, t.1e5, 2fa.x FROM 3d", "SELECT 1a, 0X1F, t.1, t.1e5, 2fa.x FROM 3d", &[]);
    check("SELECT 1 --1", "SELECT $1 -$2", &["1", "-1"]);
    check("SELECT a FROM t LIMIT 5, 10", "SELECT a FROM t LIMIT $1, $2", &["5", "10"]);
}

#[test]
fn comments_go_and_code_in_comments_stays() {
    check(
        "SELECT 1 # it's\n, 2 -- it's\n, 3 --\n/* it's */ + 4",
        "SELECT $1 , $2 , $3 + $4",
        &["1", "2", "3", "4"],
    );
    check(
        "SELECT /*!40101 'a' + */ 1 /*! , 2 */",
        "SELECT /*!40101 $1 + */ $2 /*! , $3 */",
        &["a", "1", "2"],
    );
    check("SELECT /*M!100100 1, */ 2", "SELECT /*M!100100 $1, */ $2", &["1", "2"]);
    check("SELECT /*+ NO_INDEX_MERGE(t) */ a FROM t", "SELECT a FROM t", &[]);
    check("SELECT 1 /* /* */ + 2", "SELECT $1 + $2", &["1", "2"]);
    check("SELECT 2 */1", "SELECT $1 */$2", &["2", "1"]);
    // Servers of different versions see other literals: none of it gets out.
    check("SELECT /*!99999 it's */ 'hidden'", "SELECT /*!99999 it $1", &["'s */ 'hidden'"]);
    let mut lifter = Lifter::new();
    let lifted = lifter.lift_mysql(b"SELECT 1 /*route='x'*/ # y", PLAIN);
    assert_eq!(lifted.comments().collect::<Vec<_>>(), [&b"route='x'"[..], b" y"]);
}

#[test]
fn markers_and_literals_share_their_numbers() {
    check(
        "SELECT a FROM t WHERE b = ? AND c = 5 AND d = ?",
        "SELECT a FROM t WHERE b = $1 AND c = $2 AND d = $3",
        &["5"],
    );
    check(
        "SELECT a FROM t WHERE b = 'x' AND c = 5 AND d = 7",
        "SELECT a FROM t WHERE b = $1 AND c = $2 AND d = $3",
        &["x", "5", "7"],
    );
    let mut lifter = Lifter::new();
    let lifted = lifter.lift_mysql(b"SELECT ?, 'x', ?", PLAIN);
    let parameters: Vec<_> = lifted.parameters().iter().map(|one| (one.source_number, one.number)).collect();
    assert_eq!(parameters, [(1, 1), (2, 3)]);
}

#[test]
fn lists_lose_their_length() {
    for list in ["1, 2", "1, 2, 3", "?, ?", "?, 2, NULL, ?"] {
        check_list(list);
    }
    let rows = "INSERT INTO t VALUES ($1, $2), ... ON DUPLICATE KEY UPDATE a = VALUES(a), b = $3";
    let values = ["1", "a", "2", "b", "3"];
    check(
        "INSERT INTO t VALUES (1, 'a'), (2, 'b') ON DUPLICATE KEY UPDATE a = VALUES(a), b = 3",
        rows,
        &values,
    );
    let mut lifter = Lifter::new();
    let lifted = lifter.lift_mysql(b"INSERT INTO t VALUES (?, 'a'), (?, 'b'), (?, 'c')", PLAIN);
    let parameters: Vec<_> = lifted.parameters().iter().map(|one| (one.source_number, one.number)).collect();
    assert_eq!(parameters, [(1, 1), (2, 1), (3, 1)]);
    assert!(lifted.literals().all(|literal| literal.number == 2));
}

fn check_list(list: &str) {
    let (template, _) = lift(&format!("SELECT a FROM t WHERE b IN ({list}) AND c = 9"), PLAIN);
    assert_eq!(template, "SELECT a FROM t WHERE b IN ($1, ...) AND c = $2", "{list}");
}

#[test]
fn variables_are_no_keywords_and_programs_have_semicolons() {
    check("SELECT @a, @@global.from, @`b`, @x := 5", "SELECT @a, @@global.from, @`b`, @x := $1", &["5"]);
    let kind = |text: &str| Lifter::new().lift_mysql(text.as_bytes(), PLAIN).kind();
    assert_eq!(kind("SELECT 1; SELECT 2"), StatementKind::Multi);
    assert_eq!(kind("CREATE DEFINER=a@b PROCEDURE p() BEGIN SELECT 1; SELECT 2; END"), StatementKind::Ddl);
    assert_eq!(kind("CREATE TABLE event (id INT); SELECT 1"), StatementKind::Multi);
    assert_eq!(kind("BEGIN NOT ATOMIC SELECT 1; SELECT 2; END"), StatementKind::Begin);
    assert_eq!(kind("START TRANSACTION"), StatementKind::Begin);
    let mut lifter = Lifter::new();
    let lifted = lifter.lift_mysql(b"SELECT x FROM `shop`.`order` WHERE id = 5", PLAIN);
    assert_eq!(lifted.table().map(|table| table.as_written()), Some(&b"`shop`.`order`"[..]));
    assert_eq!(lifted.literals().map(|literal| literal.kind).collect::<Vec<_>>(), [LiteralKind::Integer]);
}

#[test]
fn replace_is_an_insert_where_it_is_the_statements_verb() {
    let kind = |text: &str| Lifter::new().lift_mysql(text.as_bytes(), PLAIN).kind();
    assert_eq!(kind("replace into t values (1)"), StatementKind::Insert);
    assert_eq!(kind("SELECT REPLACE(a, 'b', 'c') FROM t"), StatementKind::Select);
    assert_eq!(kind("CREATE OR REPLACE TABLE t (a INT)"), StatementKind::Ddl);
}

#[test]
fn a_template_of_either_protocol_tells_its_table() {
    let mut lifter = Lifter::new();
    let mut table = |template: &'static str| {
        let lifted = lifter.lift_template(template.as_bytes());
        assert_eq!(lifted.template(), template.as_bytes());
        lifted.table().map(|table| table.folded().collect::<Vec<u8>>())
    };
    for template in [
        "SELECT a FROM shop.orders WHERE id = $1",
        "SELECT `a` FROM `shop`.`orders` WHERE `id` = $1",
        "INSERT INTO `shop`.orders (`a`) VALUES ($1)",
        "UPDATE \"shop\".orders SET a = $1",
        "REPLACE INTO shop.orders VALUES ($1)",
    ] {
        assert_eq!(table(template).as_deref(), Some(&b"shop.orders"[..]), "{template}");
    }
}

fn mode() -> impl Strategy<Value = MysqlMode> {
    any::<(bool, bool)>()
        .prop_map(|(ansi_quotes, no_backslash_escapes)| MysqlMode { ansi_quotes, no_backslash_escapes })
}

/// Text that leaves nothing open.
fn closed() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z0-9_ ,()=.;*\n-]{0,8}",
        Just("'a'".to_owned()),
        Just("`b`".to_owned()),
        Just("/* c */".to_owned()),
        Just("# d\n".to_owned()),
        Just("-- e\n".to_owned()),
        Just("/*! 1 */".to_owned()),
        Just("?".to_owned()),
        Just("x'00'".to_owned()),
        Just("IN (1, 2)".to_owned()),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_byte_of_a_literal_gets_into_a_template(before in closed(), after in ".{0,40}", mode in mode(), form in 0..5usize) {
        let quoted = match form {
            0 => format!("'{SECRET}'"),
            1 => format!("'''{SECRET}'"),
            2 if mode.no_backslash_escapes => format!("'\\{SECRET}'"),
            2 => format!("'\\'{SECRET}'"),
            3 if mode.ansi_quotes => format!("_utf8mb4'{SECRET}"),
            3 => format!("\"'{SECRET}\""),
            _ => format!("'{SECRET}"),
        };
        let text = format!("{before}\n {quoted}{after}");
        let (template, _) = lift(&text, mode);
        prop_assert!(!template.contains(SECRET), "{template}");
    }

    #[test]
    fn any_bytes_give_a_template_within_bounds(text in proptest::collection::vec(any::<u8>(), 0..200), mode in mode()) {
        let mut lifter = Lifter::new();
        let lifted = lifter.lift_mysql(&text, mode);
        prop_assert!(lifted.template().len() <= TEMPLATE_BYTES_MAX);
        for literal in lifted.literals() {
            literal.value(&mut Vec::new());
        }
    }

    #[test]
    fn a_template_is_its_own_template(text in "[a-z0-9_ ,()=.;*'\"`#/!-]{0,60}", mode in mode()) {
        let (template, _) = lift(&text, mode);
        let mut lifter = Lifter::new();
        let again = lifter.lift_mysql(template.as_bytes(), mode);
        prop_assert!(again.literals().all(|literal| literal.kind != LiteralKind::MysqlEscape), "{template}");
    }
}
