//! What `purity::read` says of texts, construct by construct.

use onetrip_sql::purity::{Facts, Impure, Needs, Operand, read};

fn needs(text: &str) -> Needs {
    read(text).unwrap_or_else(|reason| panic!("{text}: {reason}"))
}

fn names<'a>(names: impl IntoIterator<Item = &'a onetrip_sql::purity::ObjectName>) -> String {
    names.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Operators in the order of their names, with what stands on either side: `.` nothing, `t` typed, `u` untyped.
fn operators(text: &str) -> String {
    let letter = |operand| match operand {
        Operand::Absent => '.',
        Operand::Typed => 't',
        Operand::Untyped => 'u',
    };
    let uses = needs(text).operators;
    let shown = uses.iter().map(|o| format!("{}{}{}", letter(o.left), o.operator.name, letter(o.right)));
    shown.collect::<Vec<_>>().join(" ")
}

const REFUSED: &[(&str, &str)] = &[
    ("", "the text holds 0 statements"),
    ("-- nothing", "the text holds 0 statements"),
    ("SELECT 1; SELECT 2", "the text holds 2 statements"),
    ("SELECT 1; DROP TABLE t", "the text holds 2 statements"),
    ("SELEC 1", "the statement does not parse"),
    ("SELECT 'a", "the statement does not parse"),
    ("SELECT 1 \0 2", "the statement does not parse"),
    ("SELECT ?", "the statement does not parse"),
    ("INSERT INTO t VALUES (1)", "it uses a statement that modifies data"),
    ("UPDATE t SET a = 1", "it uses a statement that modifies data"),
    ("DELETE FROM t", "it uses a statement that modifies data"),
    ("MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE", "it uses a statement that modifies data"),
    ("EXPLAIN SELECT 1", "it uses EXPLAIN"),
    ("EXPLAIN ANALYZE SELECT 1", "it uses EXPLAIN"),
    ("EXECUTE q", "it uses EXECUTE"),
    ("CALL p()", "it uses CALL"),
    ("COPY t TO STDOUT", "it uses COPY"),
    ("COPY (SELECT 1) TO STDOUT", "it uses COPY"),
    ("SHOW work_mem", "it uses SHOW"),
    ("SET work_mem = '1MB'", "it uses a statement that is not a query"),
    ("BEGIN", "it uses a statement that is not a query"),
    ("LISTEN a", "it uses a statement that is not a query"),
    ("NOTIFY a", "it uses a statement that is not a query"),
    ("LOCK TABLE t", "it uses a statement that is not a query"),
    ("DECLARE c CURSOR FOR SELECT 1", "it uses a statement that is not a query"),
    ("FETCH 1 FROM c", "it uses a statement that is not a query"),
    ("PREPARE q AS SELECT 1", "it uses a statement that is not a query"),
    ("DISCARD ALL", "it uses a statement that is not a query"),
    ("VACUUM", "it uses a statement that is not a query"),
    ("CREATE TABLE t AS SELECT 1", "it uses a statement that is not a query"),
    ("DO 'BEGIN END'", "it uses a statement that is not a query"),
    ("SELECT 1 INTO t", "it uses SELECT INTO"),
    ("SELECT * INTO TEMP t FROM s", "it uses SELECT INTO"),
    ("SELECT 1 INTO t UNION SELECT 2", "it uses SELECT INTO"),
    ("SELECT 1 FROM t FOR UPDATE", "it uses FOR UPDATE or FOR SHARE"),
    ("SELECT 1 FROM t FOR NO KEY UPDATE OF t SKIP LOCKED", "it uses FOR UPDATE or FOR SHARE"),
    ("SELECT 1 FROM t FOR SHARE NOWAIT", "it uses FOR UPDATE or FOR SHARE"),
    ("SELECT 1 FROM t FOR KEY SHARE", "it uses FOR UPDATE or FOR SHARE"),
    ("SELECT 1 FROM (SELECT 1 FROM t FOR UPDATE) s", "it uses FOR UPDATE or FOR SHARE"),
    ("WITH s AS (SELECT 1 FROM t FOR UPDATE) SELECT 1 FROM s", "it uses FOR UPDATE or FOR SHARE"),
    ("SELECT (SELECT 1 FROM t LIMIT 1 FOR UPDATE)", "it uses FOR UPDATE or FOR SHARE"),
    ("(SELECT 1 FROM t FOR UPDATE) UNION SELECT 1", "it uses FOR UPDATE or FOR SHARE"),
    ("SELECT 1 FROM t TABLESAMPLE system (1)", "it uses TABLESAMPLE"),
    ("WITH d AS (DELETE FROM t RETURNING 1) SELECT 1", "it uses a data-modifying statement in WITH"),
    ("WITH d AS (INSERT INTO t SELECT 1) SELECT 1", "it uses a data-modifying statement in WITH"),
    ("WITH d AS (UPDATE t SET a = 1 RETURNING 1) TABLE d", "it uses a data-modifying statement in WITH"),
    (
        "SELECT 1 FROM (WITH d AS (DELETE FROM t RETURNING 1) SELECT 1) s",
        "it uses a data-modifying statement in WITH",
    ),
    (
        "WITH RECURSIVE r AS (SELECT 1) SEARCH DEPTH FIRST BY a SET b SELECT 1 FROM r",
        "it uses SEARCH or CYCLE",
    ),
    ("WITH RECURSIVE r AS (SELECT 1) CYCLE a SET b USING c SELECT 1 FROM r", "it uses SEARCH or CYCLE"),
    ("SELECT * FROM XMLTABLE('/a' PASSING x COLUMNS b int)", "it uses XMLTABLE"),
    ("SELECT * FROM JSON_TABLE(x, '$' COLUMNS (a int))", "it uses JSON_TABLE"),
    ("SELECT xmlelement(name a)", "it uses an XML construct"),
    ("SELECT xmlserialize(content x AS text) FROM t", "it uses an XML construct"),
    ("SELECT x IS DOCUMENT FROM t", "it uses an XML construct"),
    ("SELECT JSON_OBJECT('a' : 1)", "it uses an SQL/JSON construct"),
    ("SELECT JSON_ARRAY(1)", "it uses an SQL/JSON construct"),
    ("SELECT JSON_ARRAYAGG(a) FROM t", "it uses an SQL/JSON construct"),
    ("SELECT JSON_VALUE(a, '$') FROM t", "it uses an SQL/JSON construct"),
    ("SELECT a IS JSON FROM t", "it uses an SQL/JSON construct"),
    ("VALUES (DEFAULT)", "it uses DEFAULT"),
    ("SELECT xmax FROM t", "it uses a system column that tells what others do to a row"),
    ("SELECT 1 FROM t AS x WHERE x.cmax = 0", "it uses a system column that tells what others do to a row"),
    ("SELECT ('s').nextval", "it uses a field of an expression"),
    ("SELECT (t).a FROM t", "it uses a field of an expression"),
    ("SELECT (f(1)).a", "it uses a field of an expression"),
    ("SELECT (a[1]).b FROM t", "it uses a field of an expression"),
    ("SELECT 1 FROM db.s.t", "it uses a name with a database"),
    ("SELECT db.s.f(1)", "it uses a name with a database"),
    ("SELECT a COLLATE \"de_DE\" FROM t", "collation \"de_DE\" is not known to be harmless"),
    ("SELECT a COLLATE hr.\"C\" FROM t", "collation hr.\"C\" is not known to be harmless"),
    ("SELECT 1 FROM t ORDER BY a COLLATE nd", "collation nd is not known to be harmless"),
    ("SELECT 1 FROM f() AS (a text COLLATE \"C\")", "it uses COLLATE in a column definition"),
];

#[test]
fn what_does_more_than_read_is_refused_by_name() {
    for (text, reason) in REFUSED {
        let refused = read(text).err().unwrap_or_else(|| panic!("{text} was admitted"));
        assert_eq!(refused.to_string(), *reason, "{text}");
    }
}

#[test]
fn a_reason_never_shows_a_constant() {
    for text in ["SELECT 'hunter2' hunter2 hunter2", "INSERT INTO t VALUES ('hunter2')", "SELECT E'hunter2"] {
        assert!(!read(text).expect_err(text).to_string().contains("hunter2"), "{text}");
    }
}

const RELATIONS: &[(&str, &str)] = &[
    ("SELECT 1", ""),
    ("TABLE t", "t"),
    ("VALUES (1, 2), (3, 4)", ""),
    ("SELECT 1 FROM t", "t"),
    ("SELECT 1 FROM ONLY hr.t AS x (a, b)", "hr.t"),
    ("SELECT 1 FROM \"T\" NATURAL JOIN t", "\"T\" t"),
    ("SELECT 1 FROM a, b CROSS JOIN (c LEFT JOIN d ON true), LATERAL (SELECT 1 FROM e) f", "a b c d e"),
    ("SELECT 1 FROM a WHERE x IN (SELECT 1 FROM b) AND EXISTS (SELECT 1 FROM c)", "a b c"),
    ("SELECT (SELECT 1 FROM a), ARRAY(SELECT 1 FROM b), CASE WHEN (SELECT 1 FROM c) THEN 1 END", "a b c"),
    ("SELECT 1 FROM a UNION (SELECT 1 FROM b EXCEPT TABLE c) INTERSECT SELECT 1 FROM d", "a b c d"),
    ("SELECT 1 FROM a GROUP BY (SELECT 1 FROM b) HAVING (SELECT true FROM c)", "a b c"),
    (
        "SELECT 1 FROM a ORDER BY (SELECT 1 FROM b) LIMIT (SELECT 1 FROM c) OFFSET (SELECT 1 FROM d)",
        "a b c d",
    ),
    ("SELECT DISTINCT ON ((SELECT 1 FROM a)) 1", "a"),
    ("SELECT f((SELECT 1 FROM a)) FILTER (WHERE (SELECT true FROM b)) OVER (ORDER BY (TABLE c))", "a b c"),
    (
        "SELECT f(1) OVER w FROM a WINDOW w AS (PARTITION BY (SELECT 1 FROM b) ROWS (TABLE c) PRECEDING)",
        "a b c",
    ),
    ("SELECT array_agg(x ORDER BY (SELECT 1 FROM a))", "a"),
    ("SELECT 1 FROM f((SELECT 1 FROM a)), ROWS FROM (g(1), h((TABLE b))) WITH ORDINALITY", "a b"),
    ("VALUES ((SELECT 1 FROM a))", "a"),
    ("SELECT x[(SELECT 1 FROM a)] FROM b", "a b"),
    ("SELECT 1 FROM a GROUP BY ROLLUP ((SELECT 1 FROM b)), CUBE (x), GROUPING SETS ((x), ())", "a b"),
    // A common table expression in scope is no relation.
    ("WITH c AS (SELECT 1 FROM t) SELECT 1 FROM c", "t"),
    ("WITH c AS (SELECT 1 FROM t) SELECT 1 FROM hr.c", "t hr.c"),
    ("WITH c AS (SELECT 1 FROM c) SELECT 1 FROM c", "c"),
    ("WITH RECURSIVE c AS (SELECT 1 FROM c) SELECT 1 FROM c", ""),
    ("WITH a AS (SELECT 1 FROM b), b AS (SELECT 1) SELECT 1 FROM a, b", "b"),
    ("WITH a AS (SELECT 1), b AS (SELECT 1 FROM a) SELECT 1 FROM b", ""),
    ("WITH RECURSIVE a AS (SELECT 1 FROM b), b AS (SELECT 1) SELECT 1 FROM a, b", ""),
    ("WITH c AS (SELECT 1) SELECT 1 FROM (SELECT 1 FROM c) s WHERE EXISTS (SELECT 1 FROM c)", ""),
    ("WITH c AS (SELECT 1) SELECT 1 FROM c UNION SELECT 1 FROM c ORDER BY (SELECT 1 FROM c)", ""),
    ("SELECT 1 FROM (WITH c AS (SELECT 1) SELECT 1 FROM c) s, c", "c"),
    ("(WITH c AS (SELECT 1) SELECT 1 FROM c) UNION SELECT 1 FROM c", "c"),
    ("SELECT (WITH c AS (SELECT 1) SELECT 1 FROM c) FROM c", "c"),
    ("WITH c AS (WITH d AS (SELECT 1) SELECT 1 FROM d) SELECT 1 FROM c, d", "d"),
    ("WITH c AS (SELECT 1) SELECT (WITH c AS (SELECT 1 FROM c) SELECT 1 FROM c) FROM c", ""),
    ("WITH c AS (SELECT 1) SELECT 1 FROM \"C\"", "\"C\""),
    ("WITH c AS (SELECT 1) SELECT 1 FROM C", ""),
];

#[test]
fn relations_are_what_no_common_table_expression_in_scope_hides() {
    for (text, expected) in RELATIONS {
        assert_eq!(names(&needs(text).relations), *expected, "{text}");
    }
}

const FUNCTIONS: &[(&str, &str)] = &[
    ("SELECT f(1), hr.g(a => 2), count(*), h(VARIADIC x)", "count f h hr.g"),
    ("SELECT extract(year FROM d)", "pg_catalog.extract"),
    (
        "SELECT substring(a FROM 1 FOR 2), trim(a), position(a IN b)",
        "pg_catalog.btrim pg_catalog.position pg_catalog.\"substring\"",
    ),
    ("SELECT overlay(a PLACING b FROM 1), normalize(a)", "pg_catalog.normalize pg_catalog.\"overlay\""),
    ("SELECT a AT TIME ZONE 'UTC'", "pg_catalog.timezone"),
    ("SELECT a LIKE b ESCAPE 'x'", "pg_catalog.like_escape"),
    ("SELECT a SIMILAR TO b", "pg_catalog.similar_to_escape"),
    ("SELECT (a, b) OVERLAPS (c, d)", "pg_catalog.\"overlaps\""),
    ("SELECT 1 FROM f(1), ROWS FROM (g(), h() AS (a int))", "f g h"),
    ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f(a))", "f percentile_cont"),
    ("SELECT sum(a) OVER (PARTITION BY f(a) ORDER BY g(a)) FROM t WINDOW w AS (ORDER BY h(a))", "f g h sum"),
    ("SELECT 1 FROM t LIMIT f(1) OFFSET g(1)", "f g"),
    ("SELECT 1 FROM t JOIN u ON f(a)", "f"),
    (
        "SELECT ARRAY[f(1)], ROW(g(1)), COALESCE(h(1)), GREATEST(i(1)), NULLIF(j(1), 1), k(1) IS NULL",
        "f g h i j k",
    ),
    (
        "SELECT CASE f(1) WHEN g(1) THEN h(1) ELSE i(1) END, j(1) IS TRUE, NOT k(1), a[l(1):m(1)]",
        "f g h i j k l m",
    ),
    (
        "SELECT f(1)::text, g(1) COLLATE \"C\", h(1) BETWEEN i(1) AND j(1), k(1) IN (l(1), m(1))",
        "f g h i j k l m",
    ),
    ("SELECT GROUPING(f(a)) FROM t GROUP BY GROUPING SETS (f(a), (g(a), h(a)))", "f g h"),
    ("SELECT DISTINCT ON (f(a)) 1 FROM t ORDER BY g(a)", "f g"),
    ("VALUES (f(1)), (g(1))", "f g"),
    ("SELECT CURRENT_DATE, CURRENT_USER", ""),
];

#[test]
fn functions_are_found_wherever_an_expression_can_stand() {
    for (text, expected) in FUNCTIONS {
        assert_eq!(names(&needs(text).functions).replace('"', ""), expected.replace('"', ""), "{text}");
    }
}

const OPERATORS: &[(&str, &str)] = &[
    ("SELECT a + 1, -a, @ $1", "t+u .-t .@u"),
    ("SELECT a = 'x', a = $1, 'x' = NULL, 1 = true", "t=u u=u"),
    ("SELECT a OPERATOR(hr.+) 1", "t+u"),
    ("SELECT a IN ('x', b), a NOT IN (b)", "t<>t t=u"),
    ("SELECT a = ANY ($1), a <> ALL (ARRAY[$1])", "t<>t t=u"),
    ("SELECT a LIKE 'x', a NOT ILIKE b, a SIMILAR TO b, a !~ b", "t!~t t!~~*t t~t t~~u"),
    ("SELECT a BETWEEN 1 AND $1, a NOT BETWEEN 1 AND b", "t<u t<=u t>u t>=u"),
    ("SELECT a BETWEEN SYMMETRIC b AND c", "t<=t t>=t"),
    ("SELECT a IS DISTINCT FROM 'x', a IS NOT DISTINCT FROM b, NULLIF(a, b)", "t=t t=u"),
    ("SELECT CASE a WHEN 'x' THEN 1 END", "t=u"),
    ("SELECT CASE WHEN a THEN 1 END", ""),
    ("SELECT (a, 'x') < (b, c), ROW(a) = ROW(b)", "u<t t=t"),
    ("SELECT a IN (SELECT 1), 'x' < ALL (SELECT 1), (a, $1) = (SELECT 1, 2)", "u<t t=t u=t"),
    ("SELECT 1 FROM a JOIN b USING (c)", "t=t"),
    ("SELECT 1 FROM a NATURAL JOIN b", "t=t"),
    ("SELECT 1 FROM a JOIN b ON a.c = b.c", "t=t"),
    ("SELECT 1 FROM t ORDER BY a USING <", "t<t"),
    ("SELECT 'x' COLLATE \"C\" = a, 'x'::text = a", "t=t u=t"),
];

#[test]
fn operators_come_with_what_is_known_of_their_operands() {
    for (text, expected) in OPERATORS {
        let mut expected = expected.split(' ').collect::<Vec<_>>();
        let found = operators(text);
        let mut found = found.split(' ').collect::<Vec<_>>();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{text}");
    }
    let qualified = needs("SELECT a OPERATOR(hr.+) 1").operators;
    assert_eq!(qualified.first().map(|usage| usage.operator.to_string()), Some("hr.\"+\"".to_owned()));
}

#[test]
fn texts_of_one_template_have_the_same_needs() {
    let texts =
        ["SELECT a + 1 FROM t WHERE b IN (1, 2)", "SELECT a + '1' FROM t WHERE b IN ('now', true, NULL)"];
    let mut lifter = onetrip_sql::Lifter::new();
    let templates = texts.map(|text| lifter.lift(text.as_bytes(), true).template().to_vec());
    assert_eq!(templates[0], templates[1]);
    let [mut plain, mut other] = texts.map(needs);
    assert!(other.facts.reads_clock);
    plain.facts = Facts::default();
    other.facts = Facts::default();
    assert_eq!(plain, other);
}

#[test]
fn types_of_casts_and_column_definitions_are_listed() {
    let text = "SELECT a::int, CAST(b AS hr.mood[]), date '2000-01-01', c::numeric(10, 2), interval '1 day'
        FROM json_to_record(d) AS x (e text, f hr.pair[]), ROWS FROM (g() AS (h uuid))";
    let expected = "date hr.mood hr.pair pg_catalog.int4 pg_catalog.interval pg_catalog.numeric text uuid";
    let found = names(&needs(text).types);
    let mut found = found.split(' ').collect::<Vec<_>>();
    found.sort_unstable();
    assert_eq!(found.join(" "), expected);
}

#[test]
fn a_field_of_a_table_may_be_a_function_but_a_bare_column_may_not() {
    let found = needs("SELECT a, t.b, s.t.c, t.*, t.\"D\" FROM s.t WHERE x.e = 1 ORDER BY f");
    assert_eq!(found.fields.iter().map(AsRef::as_ref).collect::<Vec<_>>(), ["D", "b", "c", "e"]);
    assert!(!found.has_function_in_from);
    assert!(needs("SELECT g.x FROM generate_series(1, 2) AS g (x)").has_function_in_from);
    assert!(needs("SELECT 1 WHERE EXISTS (SELECT 1 FROM f())").has_function_in_from);
}

const CLOCK: &[(&str, bool)] = &[
    ("SELECT now()", true),
    ("SELECT transaction_timestamp()", true),
    ("SELECT CURRENT_DATE", true),
    ("SELECT CURRENT_TIME(2)", true),
    ("SELECT LOCALTIMESTAMP", true),
    ("SELECT 1 FROM t WHERE d > 'now'", true),
    ("SELECT 'Tomorrow'::date", true),
    ("SELECT date ' ToDaY '", true),
    ("SELECT $1::timestamptz", true),
    ("SELECT a::date FROM t", true),
    ("SELECT date(a) FROM t", true),
    ("SELECT '12:00'::timetz", true),
    ("SELECT d AT TIME ZONE 'UTC' FROM t", true),
    ("SELECT age(d) FROM t", true),
    ("SELECT '2020-01-01'::date", false),
    ("SELECT d FROM t WHERE d > '2020-01-01'", false),
    ("SELECT CURRENT_USER", false),
    ("SELECT now FROM t", false),
];

#[test]
fn a_result_that_depends_on_the_clock_is_marked() {
    for (text, expected) in CLOCK {
        assert_eq!(needs(text).facts.reads_clock, *expected, "{text}");
    }
}

#[test]
fn a_result_that_depends_on_settings_is_marked() {
    let settings =
        ["CURRENT_USER", "USER", "SESSION_USER", "CURRENT_ROLE", "CURRENT_CATALOG", "CURRENT_SCHEMA"];
    for name in settings.into_iter().chain(["current_setting('a')", "current_schemas(true)"]) {
        assert!(needs(&format!("SELECT {name}")).facts.reads_settings, "{name}");
    }
    assert!(!needs("SELECT now(), \"current_user\" FROM t").facts.reads_settings);
}

#[test]
fn order_and_limit_are_those_of_the_outermost_query() {
    let facts = |text| {
        let Facts { has_order, has_limit, .. } = needs(text).facts;
        (has_order, has_limit)
    };
    assert_eq!(facts("SELECT 1 FROM t"), (false, false));
    assert_eq!(facts("SELECT 1 FROM t ORDER BY a"), (true, false));
    assert_eq!(facts("SELECT 1 FROM t LIMIT 1"), (false, true));
    assert_eq!(facts("SELECT 1 FROM t OFFSET 1 FETCH FIRST ROW ONLY"), (false, true));
    assert_eq!(facts("SELECT 1 FROM (SELECT 1 FROM t ORDER BY a LIMIT 1) s"), (false, false));
    assert_eq!(facts("SELECT 1 FROM t UNION SELECT 1 FROM u ORDER BY 1 LIMIT 2"), (true, true));
}

#[test]
fn what_the_reading_took_for_granted_is_marked() {
    let facts = |text| {
        let Facts { has_backslash, has_non_ascii, .. } = needs(text).facts;
        (has_backslash, has_non_ascii)
    };
    assert_eq!(facts("SELECT 'a'"), (false, false));
    assert_eq!(facts(r"SELECT 'a\'"), (true, false));
    assert_eq!(facts("SELECT 'ä'"), (false, true));
}

#[test]
fn names_are_shown_as_sql_writes_them() {
    let shown = |text| names(&needs(text).relations);
    assert_eq!(shown("SELECT 1 FROM A.\"b C\""), "a.\"b C\"");
    assert_eq!(shown("SELECT 1 FROM \"a\"\"\n\""), "\"a\"\"\\n\"");
}

#[test]
fn a_long_name_in_with_hides_no_relation() {
    let text = |name: String| format!("WITH {name} AS (SELECT 1) SELECT 1 FROM {name}");
    assert_eq!(names(&needs(&text("a".repeat(58))).relations), "");
    let refused = read(&text("é".repeat(31))).expect_err("62 bytes, 31 in LATIN1");
    assert_eq!(refused, Impure::Construct("a name in WITH that may be cut"));
    assert!(read(&text("a".repeat(80))).is_err());
}

#[test]
fn a_reason_of_a_relation_is_one_phrase() {
    let relation = onetrip_sql::purity::ObjectName::unqualified("s");
    let because = Impure::Relation { relation, what: "is a sequence" };
    let view = onetrip_sql::purity::ObjectName::qualified("hr", "v");
    let reason = Impure::View { view, because: Box::new(because) };
    assert_eq!(reason.to_string(), "view hr.v: s is a sequence");
}
