//! PostgreSQL's SQL over SQLite: what a statement gives, as PostgreSQL 15 gives it.

mod support;

use support::Fixture;

/// Queries and the only row that PostgreSQL answers them with.
const ANSWERS: [(&str, &str); 65] = [
    ("SELECT 7/2, 7/2.0, -7/2, 7%3, 2^10, 7::float8/2", "3|3.5|-3|1|1024|3.5"),
    ("SELECT 'a' || 1 || true || 1.5", "a1true1.5"),
    ("SELECT 'a' || 1 + 2", "a3"),
    ("SELECT 1::text, '5'::int + 1, 1.5::int, 2.5::int, 2.5::float8::int", "1|6|2|3|2"),
    ("SELECT 't'::bool, 'no'::boolean, true::int, 0::bool, true::text", "t|f|1|f|true"),
    ("SELECT 1.005::numeric(10,2), 12.5::numeric(8,2), 1e3::numeric", "1.01|12.50|1000"),
    ("SELECT 0.1 + 0.2, 1.10 * 3, 10.50 - 0.5", "0.3|3.30|10.00"),
    ("SELECT 1.0::float8, 0.1::float4, 1e20::float8, 1e-7::float8", "1|0.1|1e+20|1e-07"),
    ("SELECT coalesce(NULL, 'x'), nullif(1, 1), greatest(1, NULL, 3), least(2, 1)", "x|NULL|3|1"),
    ("SELECT CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END, CASE 2 WHEN 1 THEN 'x' END", "b|NULL"),
    ("SELECT 'abc' LIKE 'A%', 'abc' ILIKE 'A%', 'a_c' LIKE 'a\\_c', 'abc' NOT LIKE '%z'", "f|t|t|t"),
    ("SELECT 'abc' ~ '^a.c$', 'abc' !~ 'b', 'ABC' ~* 'b'", "t|f|t"),
    ("SELECT 1 IN (1, 2), 3 NOT IN (1, 2), 2 BETWEEN 1 AND 3, NULL IS NULL", "t|t|t|t"),
    (
        "SELECT 2 = ANY(ARRAY[1, 2]), 2 <> ALL('{1,3}'::int[]), 5 > ALL(ARRAY[1, 2]), 1 > ANY(ARRAY[3])",
        "t|t|t|f",
    ),
    (
        "SELECT ARRAY[1, 2], ARRAY['a', 'b c'], '{1,NULL}'::int[], (ARRAY[4, 5])[2]",
        "{1,2}|{a,\"b c\"}|{1,NULL}|5",
    ),
    ("SELECT array_to_string(ARRAY['a', 'b'], '-'), array_length(ARRAY[1, 2], 1)", "a-b|2"),
    ("SELECT date '2024-02-28' + 2, date '2024-03-01' - date '2024-02-01'", "2024-03-01|29"),
    ("SELECT timestamp '2024-01-31 10:00' + interval '1 month'", "2024-02-29 10:00:00"),
    ("SELECT timestamptz '2024-01-01 01:00+02'", "2023-12-31 23:00:00+00"),
    (
        "SELECT '2024-05-06 07:08:09.5'::timestamp::date, date '2024-05-06'::timestamp",
        "2024-05-06|2024-05-06 00:00:00",
    ),
    ("SELECT extract(year FROM date '2024-05-06'), extract(dow FROM date '2024-05-06')", "2024|1"),
    ("SELECT date_trunc('month', timestamp '2024-05-06 07:08:09')", "2024-05-01 00:00:00"),
    ("SELECT date '2024-01-01' = timestamp '2024-01-01 00:00'", "t"),
    ("SELECT to_char(timestamp '2024-05-06 07:08:09', 'YYYY-MM-DD HH24:MI')", "2024-05-06 07:08"),
    (
        "SELECT '\\x0aFF'::bytea, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
        "\\x0aff|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ),
    ("SELECT E'a\\nb', $$it's$$, 'it''s'", "a\nb|it's|it's"),
    ("SELECT substring('hello' FROM 2 FOR 3), position('l' IN 'hello'), char_length('äö')", "ell|3|2"),
    (
        "SELECT left('hello', 2), right('hello', -2), lpad('7', 3, '0'), split_part('a,b', ',', 2)",
        "he|llo|007|b",
    ),
    ("SELECT round(2.5), round(1.005, 2), floor(-1.5), ceil(1.2), abs(-3), mod(7, 3)", "3|1.01|-2|2|3|1"),
    ("SELECT current_database(), current_user, current_schema", "shop|ann|public"),
    ("SELECT now() = now(), now() <= clock_timestamp(), current_date = now()::date", "t|t|t"),
    ("SELECT count(*), sum(n), max(n), min(n) FROM generate_series(1, 4) AS n", "4|10|4|1"),
    ("SELECT string_agg(n::text, ',') FROM generate_series(1, 3) AS n", "1,2,3"),
    ("SELECT array_agg(n) FROM generate_series(1, 3) AS n", "{1,2,3}"),
    ("SELECT bool_and(n > 0), bool_or(n > 2) FROM generate_series(1, 3) AS n", "t|t"),
    ("SELECT count(*) FILTER (WHERE n > 1) FROM generate_series(1, 3) AS n", "2"),
    ("SELECT (SELECT max(n) FROM generate_series(1, 3) AS n) + 1", "4"),
    ("SELECT EXISTS (SELECT 1), NOT EXISTS (SELECT 1 WHERE false)", "t|t"),
    ("SELECT ARRAY(SELECT n FROM generate_series(1, 3) AS n)", "{1,2,3}"),
    ("WITH x(a, b) AS (VALUES (1, 'one')) SELECT b, a FROM x", "one|1"),
    ("WITH RECURSIVE f(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM f WHERE n < 5) SELECT max(n) FROM f", "5"),
    ("SELECT a.n, b.m FROM (VALUES (1)) AS a(n) JOIN (VALUES (1, 'x')) AS b(k, m) ON a.n = b.k", "1|x"),
    ("SELECT * FROM (SELECT 1 AS a UNION ALL SELECT 2) AS s ORDER BY a DESC LIMIT 1", "2"),
    ("(SELECT 1) UNION (SELECT 1)", "1"),
    ("SELECT n FROM (VALUES (1), (NULL), (2)) AS v(n) ORDER BY n DESC LIMIT 1", "NULL"),
    ("SELECT n FROM (VALUES (1), (2), (3)) AS v(n) ORDER BY n OFFSET 1 LIMIT 1", "2"),
    ("SELECT n FROM (VALUES (1), (2)) AS v(n) ORDER BY n FETCH FIRST ROW ONLY", "1"),
    ("SELECT n FROM (VALUES (1)) AS v(n) FOR UPDATE", "1"),
    ("SELECT row_number() OVER (PARTITION BY n ORDER BY n) FROM (VALUES (1)) AS v(n)", "1"),
    ("SELECT 1 WHERE true AND NOT false OR NULL", "1"),
    ("SELECT 1 IS DISTINCT FROM NULL, NULL IS NOT DISTINCT FROM NULL", "t|t"),
    ("SELECT '{\"a\": {\"b\": 2}}'::json -> 'a' ->> 'b'", "2"),
    ("SELECT 1 /* a /* nested */ comment */ -- and more", "1"),
    ("SELECT CAST('12' AS integer), CAST(1 AS double precision), CAST('x' AS varchar(5))", "12|1|x"),
    ("SELECT 'abcdef'::varchar(3), 'abc'::char(3)", "abc|abc"),
    (
        "SELECT 9223372036854775807, -9223372036854775808, 2147483648",
        "9223372036854775807|-9223372036854775808|2147483648",
    ),
    ("SELECT 'now'::timestamptz = now(), 'today'::date = current_date", "t|t"),
    ("SELECT (now() AT TIME ZONE 'UTC') IS NOT NULL", "t"),
    ("SELECT unnest(ARRAY[7])", "7"),
    ("SELECT * FROM unnest(ARRAY['a']) WITH ORDINALITY AS t(v, n)", "a|1"),
    ("SELECT * FROM unnest(ARRAY[1, 2], ARRAY['x']) AS t(n, v) ORDER BY n DESC LIMIT 1", "2|NULL"),
    ("SELECT count(*), max(v) FROM unnest('{1,2,3}'::int[], '{4,5,6,7}'::int[]) AS t(n, v)", "4|7"),
    (
        "SELECT pg_catalog.format_type(23, NULL), pg_typeof_is_missing FROM (SELECT 1 AS pg_typeof_is_missing) AS x",
        "integer|1",
    ),
    ("SELECT current_setting('server_version_num')::int >= 150000", "t"),
    ("SELECT 'a' < 'b', 'B' < 'a', 10 < 9, '10' < '9'", "t|t|f|t"),
];

#[test]
fn expressions_give_what_postgresql_gives() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    for (query, wanted) in ANSWERS {
        assert_eq!(client.rows(query), [wanted], "{query}");
    }
}

/// Statements and the SQLSTATE that PostgreSQL refuses them with.
const ERRORS: [(&str, &str); 36] = [
    ("VACUUM INTO 'copy.db'", "42601"),
    ("VACUUM main INTO 'copy.db'", "42601"),
    ("SELEC 1", "42601"),
    ("SELECT 1 FROM", "42601"),
    ("SELECT 'open", "42601"),
    ("SELECT * FROM nix", "42P01"),
    ("SELECT nix FROM t", "42703"),
    ("SELECT \"nix\" FROM t", "42703"),
    ("SELECT nix(1)", "42883"),
    ("SELECT 1 / 0", "22012"),
    ("SELECT id % 0 FROM t", "22012"),
    ("SELECT 'x'::int", "22P02"),
    ("SELECT '2024-02-30'::date", "22007"),
    ("SELECT 3000000000::int", "22003"),
    ("SELECT 2147483647 + 1", "22003"),
    ("SELECT 1000::numeric(4,2)", "22003"),
    ("SELECT '1.23456789012345678'::numeric", "22003"),
    ("SELECT 1::nosuchtype", "42704"),
    ("INSERT INTO t (id, name) VALUES (1, 'z')", "23505"),
    ("INSERT INTO t (id, name) VALUES (9, 'one')", "23505"),
    ("INSERT INTO t (id, name) VALUES (NULL, 'x')", "23502"),
    ("INSERT INTO t (id, name) VALUES (9, NULL)", "23502"),
    ("INSERT INTO t (id, name, parent) VALUES (9, 'x', 77)", "23503"),
    ("INSERT INTO t (id, name, age) VALUES (9, 'x', -1)", "23514"),
    ("INSERT INTO t (id, name) VALUES ('nine', 'x')", "22P02"),
    ("INSERT INTO t (id, name) VALUES (9, 'this is too long')", "22001"),
    ("UPDATE t SET name = name || ' and then some' WHERE id = 1", "22001"),
    ("UPDATE t SET age = age + 2147483647 WHERE id = 1", "22003"),
    ("INSERT INTO t (id) VALUES (1, 2)", "42601"),
    ("DELETE FROM pg_class", "42501"),
    ("CREATE TABLE t (a int)", "42P07"),
    ("CREATE FUNCTION f() RETURNS int AS 'x'", "0A000"),
    ("PRAGMA journal_mode = DELETE", "0A000"),
    ("ATTACH 'x.db' AS x", "0A000"),
    ("SET nonsense = 1", "42704"),
    ("SELECT $1", "42P02"),
];

#[test]
fn errors_carry_postgresqls_codes() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run(
        "CREATE TABLE t (id int PRIMARY KEY, name varchar(10) NOT NULL UNIQUE, age int CHECK (age > 0), \
         parent int REFERENCES t (id)); INSERT INTO t VALUES (1, 'one', 5, NULL)",
    );
    for (statement, wanted) in ERRORS {
        assert_eq!(client.error(statement), wanted, "{statement}");
    }
}

#[test]
fn tables_are_made_filled_changed_and_described_as_declared() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run(
        "CREATE TABLE IF NOT EXISTS public.people (
           id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
           name text NOT NULL, -- a comment
           born date, score double precision DEFAULT 0.5, balance numeric(10,2) DEFAULT 0,
           active boolean NOT NULL DEFAULT true, made timestamptz NOT NULL DEFAULT now(),
           tags text[], CONSTRAINT people_name UNIQUE (name)) WITH (fillfactor = 70);
         CREATE INDEX ON people USING btree (born, name);
         COMMENT_IS_NOT_HERE"
            .trim_end_matches("COMMENT_IS_NOT_HERE"),
    );
    let inserted = client.query(
        "INSERT INTO people (name, born, balance, tags) VALUES ('ann', '1990-05-01', 12.345, '{a,b}'), ('bob', NULL, 1, NULL) \
         RETURNING id, name, balance, active",
    );
    assert_eq!(support::rows_of(&inserted), ["1|ann|12.35|t", "2|bob|1.00|t"]);
    assert_eq!(
        inserted[0].columns(),
        [("id", 20), ("name", 25), ("balance", 1700), ("active", 16)]
            .map(|(name, oid)| (name.to_owned(), oid))
    );
    client.run("INSERT INTO people (name, score) VALUES ('cid', DEFAULT) ON CONFLICT (name) DO NOTHING");
    client.run("INSERT INTO people (name) VALUES ('cid') ON CONFLICT (name) DO UPDATE SET balance = people.balance + 5");
    assert_eq!(client.rows("SELECT balance, score FROM people WHERE name = 'cid'"), ["5.00|0.5"]);
    assert_eq!(
        client.rows("UPDATE people SET active = false, balance = balance * 2 WHERE id = 1 RETURNING balance"),
        ["24.70"]
    );
    assert_eq!(
        client.rows("UPDATE people p SET score = p.score + 1 WHERE p.id = 2 RETURNING p.id, score"),
        ["2|1.5"]
    );
    assert_eq!(
        client.rows("DELETE FROM people AS p WHERE p.id = 2 RETURNING p.*")[0].split('|').nth(1),
        Some("bob")
    );
    client.run("DELETE FROM people p WHERE p.id = 2");
    assert_eq!(
        client.rows(
            "SELECT sum(balance), avg(balance), tags[1] FROM people WHERE tags IS NOT NULL GROUP BY tags"
        ),
        ["24.70|24.7|a"]
    );
    client.run("ALTER TABLE people ADD COLUMN nick varchar(5) DEFAULT 'x'; ALTER TABLE people RENAME COLUMN nick TO short");
    assert_eq!(client.rows("SELECT short FROM people WHERE id = 1"), ["x"]);
    client.run("CREATE OR REPLACE VIEW active AS SELECT id, balance::int AS whole FROM people WHERE active");
    let viewed = client.query("SELECT * FROM active");
    assert_eq!(viewed[0].columns(), [("id".to_owned(), 20), ("whole".to_owned(), 23)]);
    client.run("TRUNCATE people; DROP VIEW active; DROP TABLE IF EXISTS people, nothing");
    assert_eq!(client.error("SELECT 1 FROM people"), "42P01");
}

#[test]
fn rows_of_any_query_are_inserted_unless_they_conflict() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run("CREATE TABLE t (id int PRIMARY KEY, name text); INSERT INTO t VALUES (1, 'old')");
    for query in [
        "SELECT * FROM unnest(ARRAY[1, 2], ARRAY['new', 'new'])",
        "SELECT id, 'new' FROM generate_series(1, 2) AS s(id)",
        "SELECT n.id, 'new' FROM (VALUES (1), (2)) AS n(id)",
        "SELECT n.id, m.name FROM (VALUES (1), (2)) AS n(id) CROSS JOIN (VALUES ('new')) AS m(name)",
        "SELECT n.id, m.name FROM (VALUES (1), (2)) AS n(id) JOIN (VALUES (2, 'new'), (1, 'new')) AS m(id, name) ON m.id = n.id",
        "SELECT id, 'new' FROM generate_series(1, 3) AS s(id) WHERE id < 3",
        "SELECT id, 'new' FROM generate_series(1, 3) AS s(id) ORDER BY id LIMIT 2",
        "SELECT id, min('new') FROM generate_series(1, 2) AS s(id) GROUP BY id",
        "SELECT 1, 'new' UNION ALL SELECT id, 'new' FROM generate_series(2, 2) AS s(id)",
        "SELECT unnest(ARRAY[1, 2]), 'new'",
        "(SELECT id, 'new' FROM generate_series(1, 2) AS s(id))",
        "SELECT 2, 'new'",
        "WITH s(id) AS (SELECT 2) SELECT id, 'new' FROM s FOR UPDATE",
        "VALUES (1, 'new'), (2, 'new')",
    ] {
        let insert = format!("INSERT INTO t {query} ON CONFLICT");
        client.run(&format!("BEGIN; {insert} DO NOTHING"));
        assert_eq!(client.rows("SELECT * FROM t ORDER BY id"), ["1|old", "2|new"], "{query}");
        client.run(&format!("{insert} (id) DO UPDATE SET name = excluded.name || '!'"));
        assert_eq!(client.rows("SELECT name FROM t WHERE id = 2"), ["new!"], "{query}");
        client.run("ROLLBACK");
    }
}

#[test]
fn a_file_of_sqlite_is_served_by_its_declarations() {
    let fixture = Fixture::new();
    let path = fixture.directory.path().join("test.db");
    let plain = rusqlite::Connection::open(path).unwrap();
    plain
        .execute_batch(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, r REAL, n NUMERIC, x, b BLOB, d DATETIME, i INT);
             INSERT INTO t VALUES (5000000000, 0.1, 1.5, 'any', x'01', '2024-01-01 10:00:00', 7);
             CREATE TABLE loose (i INT, t TEXT); INSERT INTO loose VALUES ('not a number', x'ff');",
        )
        .unwrap();
    let mut client = fixture.client();
    let messages = client.query("SELECT * FROM t");
    let oids: Vec<_> = messages[0].columns().into_iter().map(|(_, oid)| oid).collect();
    assert_eq!(oids, [20, 701, 1700, 25, 17, 1114, 20]);
    assert_eq!(support::rows_of(&messages), ["5000000000|0.1|1.5|any|\\x01|2024-01-01 10:00:00|7"]);
    assert_eq!(client.error("SELECT i FROM loose"), "22P02");
    assert_eq!(client.error("SELECT t FROM loose"), "22P02");
    assert_eq!(client.rows("SELECT t::bytea FROM loose"), ["\\xff"]);
}

#[test]
fn cursors_settings_and_prepared_statements_work_by_sql() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    assert_eq!(client.error("DECLARE c CURSOR FOR SELECT 1"), "25P01");
    client.run("BEGIN; DECLARE c NO SCROLL CURSOR WITHOUT HOLD FOR SELECT * FROM generate_series(1, 5) AS n");
    assert_eq!(client.rows("FETCH 2 FROM c"), ["1", "2"]);
    assert_eq!(client.rows("FETCH FORWARD ALL FROM c"), ["3", "4", "5"]);
    client.run("CLOSE c; COMMIT");
    client.run("PREPARE p (int) AS SELECT $1 + 1; SET application_name TO 'x'");
    assert_eq!(client.rows("EXECUTE p (41)"), ["42"]);
    assert_eq!(client.rows("SHOW application_name"), ["x"]);
    client.run("DEALLOCATE p; RESET ALL; DISCARD ALL");
    assert_eq!(client.error("EXECUTE p (1)"), "26000");
    client.run("BEGIN READ ONLY");
    assert_eq!(client.error("CREATE TABLE t (a int)"), "25006");
    client.run("ROLLBACK");
}

#[test]
fn lines_wait_for_the_session_that_put_them() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run("SELECT put_line('line ' || n) FROM generate_series(1, 3) AS n; SELECT put_line('\"\\')");
    assert_eq!(client.rows("SELECT get_line(), get_line()"), ["line 1|line 2"]);
    assert_eq!(client.rows("SELECT array_to_string(get_lines(10), '-')"), ["line 3-\"\\"]);
    assert_eq!(client.rows("SELECT get_line(), get_lines(1)"), ["NULL|{}"]);
    assert_eq!(client.error("SELECT put_line(repeat('x', 17000000))"), "54000");
}

#[test]
fn the_catalogue_answers_what_tools_ask() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.run(
        "CREATE TABLE a (id serial PRIMARY KEY, v varchar(10) NOT NULL DEFAULT 'x');
         CREATE TABLE b (x int, y text, a_id int REFERENCES a (id) ON DELETE CASCADE, PRIMARY KEY (x, y));
         CREATE INDEX b_y ON b (y)",
    );
    let tables = "SELECT c.relname, n.nspname FROM pg_catalog.pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace \
                  WHERE c.relkind IN ('r','p') AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1";
    assert_eq!(client.rows(tables), ["a|public", "b|public"]);
    let columns = "SELECT attname, pg_catalog.format_type(atttypid, atttypmod), attnotnull FROM pg_attribute \
                   WHERE attrelid = 'a'::regclass AND attnum > 0 ORDER BY attnum";
    assert_eq!(client.rows(columns), ["id|integer|t", "v|character varying(10)|t"]);
    let constraints = "SELECT conname, contype, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'b'::regclass ORDER BY 1";
    assert_eq!(
        client.rows(constraints),
        [
            "b_a_id_fkey|f|FOREIGN KEY (a_id) REFERENCES a(id) ON DELETE CASCADE",
            "b_pkey|p|PRIMARY KEY (x, y)"
        ]
    );
    let indexes = "SELECT c.relname, i.indisunique, i.indisprimary FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid ORDER BY 1";
    assert_eq!(client.rows(indexes), ["a_pkey|t|t", "b_pkey|t|t", "b_y|f|f"]);
    assert_eq!(client.rows("SELECT typname FROM pg_type WHERE oid = 1007"), ["_int4"]);
    assert_eq!(client.rows("SELECT 'b'::regclass::text, to_regclass('nix') IS NULL"), ["b|t"]);
    assert_eq!(client.error("SELECT 'nix'::regclass"), "42P01");
    let described = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'b' ORDER BY ordinal_position";
    assert_eq!(client.rows(described), ["x|integer", "y|text", "a_id|integer"]);
}
