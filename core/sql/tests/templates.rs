//! Templates, literals and facts of single statements.

use onetrip_sql::{FetchCount, FetchDirection, Lifter, LiteralKind, StatementKind};

fn template(text: &str) -> String {
    let mut lifter = Lifter::new();
    String::from_utf8_lossy(lifter.lift(text.as_bytes(), true).template()).into_owned()
}

fn values(text: &str, standard_conforming_strings: bool) -> Vec<(u32, String)> {
    let mut lifter = Lifter::new();
    let lifted = lifter.lift(text.as_bytes(), standard_conforming_strings);
    let mut scratch = Vec::new();
    lifted
        .literals()
        .map(|literal| (literal.number, String::from_utf8_lossy(literal.value(&mut scratch)).into_owned()))
        .collect()
}

fn numbers(text: &str) -> Vec<u32> {
    values(text, true).into_iter().map(|(number, _)| number).collect()
}

fn value(literal: &str) -> String {
    let text = format!("SELECT {literal}");
    let mut found = values(&text, true);
    assert_eq!(found.len(), 1, "{literal} is one literal");
    found.remove(0).1
}

fn kind(text: &str) -> StatementKind {
    Lifter::new().lift(text.as_bytes(), true).kind()
}

/// Each pair: a text, its template.
#[track_caller]
fn assert_templates(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(template(text), *expected, "of {text}");
    }
}

#[test]
fn literals_become_numbered_places_and_the_rest_stays() {
    assert_templates(&[
        ("SELECT * FROM a.t WHERE id = 5", "SELECT * FROM a.t WHERE id = $1"),
        ("select  *\n\tFrom b.t  ;; ", "select * From b.t"),
        (
            "SELECT 'it''s', E'a\\'b', U&'\\0061', B'1', X'F', N'n', $$x$$, $t$ $$ $t$",
            "SELECT $1, $2, $3, $4, $5, $6, $7, $8",
        ),
        ("SELECT U&'d!0061' UESCAPE '!' x, U&\"a\" FROM t", "SELECT $1 x, U&\"a\" FROM t"),
        ("SELECT 'a'\n  'b' , 'c' 'd'", "SELECT $1 , $2 $3"),
        (
            "SELECT '5'::int, int '5', date'2020-01-01', interval '1' day",
            "SELECT $1::int, int $2, date $3, interval $4 day",
        ),
        ("SELECT a$b$ FROM t$1", "SELECT a$b$ FROM t$1"),
        ("SELECT \"it's $1\" FROM \"a\"\"b\"", "SELECT \"it's $1\" FROM \"a\"\"b\""),
        (
            "SELECT a[1:2], a[1..2], 1., .5, 1e10, 1_000, 0x1F",
            "SELECT a[$1:$2], a[$3..$4], $5, $6, $7, $8, $9",
        ),
        ("SELECT NULL, TRUE, false FROM t LIMIT 10", "SELECT NULL, TRUE, false FROM t LIMIT $1"),
        ("SELECT a->>'k', a->-1, a ? 'x' FROM t", "SELECT a->>$1, a->$2, a ? $3 FROM t"),
    ]);
}

#[test]
fn a_sign_belongs_to_the_literal_only_where_nothing_stands_before_it() {
    assert_templates(&[
        ("SELECT 1 WHERE id = -5", "SELECT $1 WHERE id = $2"),
        ("SELECT 1 WHERE id=-5", "SELECT $1 WHERE id=$2"),
        (
            "SELECT -5, (-5), a -5, a-5, a - 5, 3 -2, f(x)-1",
            "SELECT $1, ($2), a -$3, a-$4, a - $5, $6 -$7, f(x)-$8",
        ),
        ("SELECT CASE WHEN a THEN -1 ELSE -2 END -3", "SELECT CASE WHEN a THEN $1 ELSE $2 END -$3"),
        ("SELECT a @-5, a *-5, a % -5", "SELECT a @-$1, a *$2, a % $3"),
        ("FETCH BACKWARD -5 FROM c", "FETCH BACKWARD $1 FROM c"),
    ]);
    assert_eq!(values("SELECT a WHERE b = -5 AND c = -.5", true), [(1, "-5".into()), (2, "-0.5".into())]);
}

#[test]
fn comments_vanish_and_nest() {
    assert_templates(&[
        ("/* a /* b */ 'c' */ SELECT/**/1 -- x '", "SELECT $1"),
        ("SELECT 1 --x\n+ 2", "SELECT $1 + $2"),
        ("SELECT a--1\n-1", "SELECT a -$1"),
        ("-- only", ""),
    ]);
    let mut lifter = Lifter::new();
    let many = (0..100).map(|index| format!("/*{index}*/ ")).collect::<String>();
    let kept: Vec<_> = lifter.lift(many.as_bytes(), true).comments().map(<[u8]>::to_vec).collect();
    assert_eq!((kept.len(), &kept[0][..], &kept[15][..]), (onetrip_sql::COMMENTS_MAX, &b"0"[..], &b"99"[..]));
    let lifted = lifter.lift(b"/*a*/ SELECT 1 /* b */ --c\n", true);
    assert_eq!(lifted.comments().collect::<Vec<_>>(), [&b"a"[..], b" b ", b"c"]);
}

/// The text without the insides of its idle comments.
fn without_comments(text: &[u8]) -> String {
    let mut bytes = text.to_vec();
    let comments: Vec<_> = Lifter::new().lift(text, true).idle_comments().collect();
    for range in comments.into_iter().rev() {
        bytes.drain(range);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn comments_are_idle_unless_a_server_may_look_into_them() {
    for (text, without) in [
        ("/* a */ SELECT '/* b */' -- c\n, \"--d\" --e", "/**/ SELECT '/* b */' --\n, \"--d\" --"),
        ("SELECT 1 /* a /* b */ c */", "SELECT 1 /**/"),
        ("SELECT 'a' --x\n 'b' /*y*/", "SELECT 'a' --x\n 'b' /**/"),
        ("SELECT $$--x$$ /**/", "SELECT $$--x$$ /**/"),
    ] {
        assert_eq!(without_comments(text.as_bytes()), without);
    }
    for text in [
        "SELECT 1 /*+ SeqScan(t) */ /* a */",
        "SELECT 1 /* \u{e9} */",
        "SELECT 1 /* a",
        "SELECT 1 /* a *",
        "SELECT 1 /* /* a */",
        &"SELECT 1 /* a */".repeat(16),
    ] {
        assert_eq!(without_comments(text.as_bytes()), text, "nothing of it is idle");
    }
}

#[test]
fn unterminated_tokens_leak_nothing() {
    assert_templates(&[
        ("SELECT 'secret", "SELECT $1"),
        ("SELECT E'secret\\'", "SELECT $1"),
        ("SELECT $a$secret$b$", "SELECT $1"),
        ("SELECT \"secret", "SELECT $1"),
        ("SELECT 1 /* secret /* */", "SELECT $1"),
        ("SELECT 12secret", "SELECT $1"),
    ]);
    assert_eq!(value("'secret"), "'secret");
}

#[test]
fn lists_lose_their_length() {
    assert_templates(&[
        ("SELECT 1 WHERE a IN (1, 2,3) AND b = 4", "SELECT $1 WHERE a IN ($2, ...) AND b = $3"),
        ("SELECT 1 WHERE a IN (1,2) AND b = 4", "SELECT $1 WHERE a IN ($2, ...) AND b = $3"),
        ("x IN (1)", "x IN ($1)"),
        ("x IN ('a'::uuid, 'b'::uuid)", "x IN ($1::uuid, ...)"),
        ("x IN (1, 2, a, 3)", "x IN ($1, ..., a, $2)"),
        ("x IN (SELECT 1, 2)", "x IN (SELECT $1, $2)"),
        ("(a, b) IN ((1, 'x'), (2, 'y'))", "(a, b) IN (($1, $2), ...)"),
        ("x = ANY(ARRAY[1,2,3]) OR ARRAY[[1,2],[3,4]]", "x = ANY(ARRAY[$1, ...]) OR ARRAY[[$2, ...], ...]"),
        (
            "INSERT INTO t VALUES (1,'a'),(2,'b'), (3,NULL) RETURNING 4",
            "INSERT INTO t VALUES ($1,$2), ... RETURNING $3",
        ),
        ("INSERT INTO t VALUES (1,'a')", "INSERT INTO t VALUES ($1,$2)"),
        (
            "SELECT * FROM (VALUES (1,f(2)),(3,f(4))) v WHERE a = 5",
            "SELECT * FROM (VALUES ($1,f($2)), ...) v WHERE a = $3",
        ),
        ("f(1, 2, 3)", "f($1, $2, $3)"),
    ]);
    assert_eq!(numbers("a IN (7, 8, 9) AND b = 10"), [1, 1, 1, 2]);
    assert_eq!(numbers("VALUES (1, 2), (3, 4), (5, NULL) LIMIT 1"), [1, 2, 1, 2, 1, 3]);
    assert_eq!(numbers("VALUES (1, ARRAY[2, 3], 4), (5, ARRAY[6, 7], 8)"), [1, 2, 2, 3, 1, 2, 2, 3]);
    assert_eq!(numbers("VALUES (NULL, 2), (3, 4)"), [1, 0, 1]);
}

#[test]
fn parameters_of_the_text_stay_and_literals_are_numbered_behind_them() {
    assert_templates(&[
        ("SELECT 'a' WHERE x = $2 AND y = $1 LIMIT 5", "SELECT $3 WHERE x = $2 AND y = $1 LIMIT $4"),
        ("a IN ($1, $2, $3) AND b = $4 LIMIT 7", "a IN ($1, ...) AND b = $2 LIMIT $3"),
        ("a IN ($1, $2) AND b = $3 LIMIT 7", "a IN ($1, ...) AND b = $2 LIMIT $3"),
        ("VALUES ($1,$2),($3,$4) LIMIT $5", "VALUES ($1,$2), ... LIMIT $3"),
        ("a IN ($1, $2, $3) AND b = $2 AND c = $4", "a IN ($1, ...) AND b = $2 AND c = $4"),
    ]);
    let mut lifter = Lifter::new();
    let lifted = lifter.lift(b"a IN ($1, $2) AND b = $3 AND c = $1", true);
    let pairs: Vec<_> = lifted.parameters().iter().map(|p| (p.source_number, p.number)).collect();
    assert_eq!(pairs, [(1, 1), (2, 1), (3, 2), (1, 1)]);
}

#[test]
fn values_come_back_as_the_server_would_print_them() {
    for (literal, expected) in [
        ("10", "10"),
        ("-5", "-5"),
        ("007", "7"),
        ("1_000", "1000"),
        ("0x1F", "31"),
        ("0b101", "5"),
        ("-0", "0"),
        ("1.", "1"),
        (".5", "0.5"),
        ("1e10", "10000000000"),
        ("1.50", "1.50"),
        ("1e-3", "0.001"),
        ("1.5e1", "15"),
        ("1.50e1", "15.0"),
        ("12.5e-2", "0.125"),
        ("-0.0", "0.0"),
        ("00.10", "0.10"),
        ("0x", "0x"),
        ("1e9999", "1e9999"),
        ("'it''s'", "it's"),
        ("''", ""),
        ("''''", "'"),
        ("'a'\n'b'", "ab"),
        ("'a' -- 'x'\n 'b''c'", "ab'c"),
        ("E'a\\n\\t\\\\\\'\\x41\\101\\u00e9\\U0001F600'", "a\n\t\\'AA\u{e9}\u{1f600}"),
        ("E'\\ud83d\\ude00'", "\u{1f600}"),
        ("U&'d\\0061t\\+000061 \\\\'", "data \\"),
        ("U&'d!0061' UESCAPE '!'", "da"),
        ("$$x$$", "x"),
        ("$t$a$$b$t$", "a$$b"),
        ("B'101'", "101"),
        ("X'1F'", "00011111"),
        ("N'n'", "n"),
    ] {
        assert_eq!(value(literal), expected, "of {literal}");
    }
    assert_eq!(values("SELECT 'a\\'b', 1", false), [(1, "a'b".into()), (2, "1".into())]);
}

#[test]
fn kinds_follow_the_main_verb() {
    use StatementKind::*;
    for (text, expected) in [
        ("", Empty),
        (" ; /* x */ ;", Empty),
        ("select 1", Select),
        ("(SELECT 1) UNION (SELECT 2)", Select),
        ("TABLE t", Select),
        ("VALUES (1)", Values),
        ("WITH a AS (SELECT 1) SELECT * FROM a", Select),
        ("WITH a AS (DELETE FROM t RETURNING *) INSERT INTO u SELECT * FROM a", Insert),
        ("WITH a AS (SELECT 1) UPDATE t SET x = 1", Update),
        ("merge into t using s on a = b when matched then delete", Merge),
        ("BEGIN", Begin),
        ("start transaction read only", Begin),
        ("END", Commit),
        ("COMMIT AND CHAIN", Commit),
        ("abort", Rollback),
        ("ROLLBACK WORK", Rollback),
        ("ROLLBACK TO SAVEPOINT s", RollbackTo),
        ("SAVEPOINT s", Savepoint),
        ("RELEASE s", Release),
        ("COMMIT PREPARED 'x'", TwoPhase),
        ("PREPARE TRANSACTION 'x'", TwoPhase),
        ("PREPARE p AS SELECT 1", Prepare),
        ("EXPLAIN SELECT 1", Explain),
        ("VACUUM t", Maintenance),
        ("CREATE TABLE t()", Ddl),
        ("BEGIN; SELECT 1;", Multi),
        ("CREATE TABLE t (begin int); DROP TABLE u", Multi),
        ("1", Other),
        ("DEALLOCATE ALL", Deallocate),
        ("CLOSE c", CloseCursor),
        ("frob", Other),
        ("CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN a THEN 1 END; SELECT 2; END", Ddl),
        ("CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)", Ddl),
    ] {
        assert_eq!(kind(text), expected, "of {text}");
    }
    let mut lifter = Lifter::new();
    let lifted = lifter.lift(b"BEGIN; INSERT INTO t VALUES (1);; COMMIT;", true);
    assert_eq!(lifted.facts().parts(), [Begin, Insert, Commit]);
    assert_eq!(lifted.template(), b"BEGIN; INSERT INTO t VALUES ($1); COMMIT");
}

#[test]
fn facts_tell_what_a_select_does_besides_reading() {
    // text, writes, into, locks_rows, has_from
    for (text, expected) in [
        ("SELECT 1", [false, false, false, false]),
        ("SELECT extract(year from now()), a IS DISTINCT FROM b", [false, false, false, false]),
        ("SELECT * FROM t", [false, false, false, true]),
        ("SELECT (SELECT a FROM t)", [false, false, false, true]),
        ("SELECT * INTO u FROM t", [false, true, false, true]),
        ("SELECT * FROM t FOR UPDATE", [false, false, true, true]),
        ("SELECT * FROM t FOR NO KEY UPDATE SKIP LOCKED", [false, false, true, true]),
        ("SELECT * FROM t FOR KEY SHARE", [false, false, true, true]),
        ("SELECT substring(a FOR 3) FROM t", [false, false, false, true]),
        ("WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", [true, false, false, true]),
        (
            "WITH d AS (INSERT INTO t VALUES (1) ON CONFLICT DO UPDATE SET a = 1 RETURNING *) SELECT 1",
            [true, false, false, false],
        ),
        ("EXPLAIN ANALYZE UPDATE t SET a = 1", [true, false, false, false]),
    ] {
        let mut lifter = Lifter::new();
        let facts = *lifter.lift(text.as_bytes(), true).facts();
        assert_eq!([facts.writes, facts.into, facts.locks_rows, facts.has_from], expected, "of {text}");
    }
}

#[test]
fn the_main_table_is_named_with_its_schema() {
    for (text, expected) in [
        ("SELECT * FROM a.t x", Some("a.t")),
        ("SELECT * FROM \"A\".\"t t\", b", Some("\"A\".\"t t\"")),
        ("SELECT 1 FROM ONLY t", Some("t")),
        ("SELECT * FROM (SELECT * FROM inner_t) x", Some("inner_t")),
        ("SELECT * FROM generate_series(1, 2)", None),
        ("INSERT INTO t(a) SELECT a FROM u", Some("t")),
        ("UPDATE t SET a = 1 FROM u", Some("t")),
        ("DELETE FROM t USING u", Some("t")),
        ("WITH x AS (SELECT * FROM a) UPDATE b SET c = 1", Some("b")),
        ("COPY t (a) FROM STDIN", Some("t")),
        ("TRUNCATE TABLE t", Some("t")),
        ("SELECT 1", None),
    ] {
        let mut lifter = Lifter::new();
        let lifted = lifter.lift(text.as_bytes(), true);
        let table = lifted.table().map(|name| String::from_utf8_lossy(name.as_written()).into_owned());
        assert_eq!(table.as_deref(), expected, "of {text}");
    }
}

#[test]
fn cursor_statements_name_cursor_direction_and_count() {
    use FetchCount::{All, Rows};
    use FetchDirection::{Backward, Forward, Jump};
    for (text, name, count, direction) in [
        ("FETCH c", "c", Rows(1), Forward),
        ("FETCH 100 FROM c", "c", Rows(100), Forward),
        ("FETCH FORWARD 10 IN \"C_1\"", "\"C_1\"", Rows(10), Forward),
        ("FETCH ALL c", "c", All, Forward),
        ("MOVE BACKWARD ALL FROM c", "c", All, Backward),
        ("FETCH PRIOR FROM c", "c", Rows(1), Backward),
        ("FETCH ABSOLUTE -3 FROM c", "c", Rows(-3), Jump),
    ] {
        let mut lifter = Lifter::new();
        let lifted = lifter.lift(text.as_bytes(), true);
        let facts = lifted.facts();
        assert_eq!(lifted.name().map(|name| name.as_written()), Some(name.as_bytes()), "of {text}");
        assert_eq!((facts.fetch_count, facts.fetch_direction), (Some(count), Some(direction)), "of {text}");
    }
    let mut lifter = Lifter::new();
    let facts = *lifter.lift(b"CLOSE ALL", true).facts();
    assert!(facts.all && facts.name.is_none());
    let lifted = lifter.lift(b"DECLARE \"My\"\"c\" NO SCROLL CURSOR WITH HOLD FOR SELECT * FROM t", true);
    assert!(lifted.facts().hold && lifted.name().is_some_and(|name| name.is(b"My\"c")));
    let lifted = lifter.lift(b"DECLARE c CURSOR WITHOUT HOLD FOR WITH hold AS (SELECT 1) SELECT 1", true);
    assert!(lifted.name().is_some_and(|name| name.is(b"c")));
}

#[test]
fn settings_give_name_and_first_value() {
    for (text, name, word, literal) in [
        ("SET TimeZone = 'UTC'", "timezone", None, Some("'UTC'")),
        ("SET SESSION onetrip.scope TO 'checkout'", "onetrip.scope", None, Some("'checkout'")),
        ("SET LOCAL statement_timeout = 500", "statement_timeout", None, Some("500")),
        ("SET search_path TO app, public", "search_path", Some("app"), None),
        ("SET TIME ZONE 'UTC'", "time", None, Some("'UTC'")),
        ("SET extra_float_digits = DEFAULT", "extra_float_digits", Some("DEFAULT"), None),
        ("SHOW Server_Version", "server_version", None, None),
        ("RESET a.b", "a.b", None, None),
        ("EXECUTE Plan(1)", "plan", None, None),
        ("DEALLOCATE PREPARE x", "x", None, None),
        ("PREPARE p (int) AS UPDATE t SET a = $1", "p", None, None),
        ("ROLLBACK TO SAVEPOINT s1", "s1", None, None),
        ("LISTEN ch", "ch", None, None),
    ] {
        let mut lifter = Lifter::new();
        let lifted = lifter.lift(text.as_bytes(), true);
        assert!(lifted.name().is_some_and(|found| found.is(name.as_bytes())), "name of {text}");
        assert_eq!(
            lifted.setting_word().map(|found| found.as_written()),
            word.map(str::as_bytes),
            "of {text}"
        );
        assert_eq!(
            lifted.setting_literal().map(|found| found.source),
            literal.map(str::as_bytes),
            "of {text}"
        );
        assert_eq!(lifted.facts().local, text.contains("LOCAL"), "of {text}");
    }
}

#[test]
fn a_template_beyond_the_limit_is_cut_and_marked() {
    let long = format!("SELECT {} 'secret'", "column_name, ".repeat(10_000));
    let mut lifter = Lifter::new();
    let lifted = lifter.lift(long.as_bytes(), true);
    assert_eq!(lifted.template().len(), onetrip_sql::TEMPLATE_BYTES_MAX + onetrip_sql::CUT_MARK.len());
    assert!(lifted.template().ends_with(onetrip_sql::CUT_MARK));
    assert_eq!(lifted.literals().next().map(|literal| literal.kind), Some(LiteralKind::String));
}

#[test]
fn very_many_values_stay_within_the_bounds() {
    let mut text = String::from("SELECT * FROM t WHERE id IN (0");
    (1..100_000).for_each(|id| text.push_str(&format!(", {id}")));
    text.push_str(") AND x = 'y'");
    let mut lifter = Lifter::new();
    let lifted = lifter.lift(text.as_bytes(), true);
    assert_eq!(lifted.template(), b"SELECT * FROM t WHERE id IN ($1, ...) AND x = $2");
    assert_eq!(lifted.literals().len(), onetrip_sql::LITERALS_MAX);
    assert!(lifted.facts().literals_cut);
}
