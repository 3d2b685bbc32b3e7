//! What a session, a search path or an extension does to a catalogue, and the lists of built-ins against real ones.

use onetrip_sql::purity::{Catalogue, Lookup, read};
use postgres::Client;

use crate::server::{Known, Server, catalogue, column, rows, servers, sorted, survey};

const TABLES: &str =
    "CREATE TABLE emp (id int, name text, hired date); INSERT INTO emp VALUES (1, 'a', '2020-01-01')";

fn verdict(catalogue: &Known, statement: &str) -> String {
    match read(statement).and_then(|needs| catalogue.check(&needs)) {
        Ok(pure) => {
            let relations: Vec<_> = pure.relations.iter().map(ToString::to_string).collect();
            format!("pure: {}", relations.join(" "))
        }
        Err(reason) => reason.to_string(),
    }
}

/// A session on a new database with these objects, on either server.
fn sessions(statements: &str) -> impl Iterator<Item = Client> {
    servers().into_iter().map(move |server| session(server, statements))
}

fn session(server: &Server, statements: &str) -> Client {
    server.connect(&server.database(&format!("{TABLES}; {statements}")))
}

fn verdict_after(client: &mut Client, statements: &str, statement: &str) -> String {
    client.batch_execute(statements).unwrap_or_else(|error| panic!("{statements}: {error:?}"));
    verdict(&catalogue(client), statement)
}

#[test]
fn temporary_tables_of_other_sessions_are_not_seen() {
    for server in servers() {
        let dbname = server.database(TABLES);
        let (mut client, mut other) = (server.connect(&dbname), server.connect(&dbname));
        other
            .batch_execute("CREATE TEMP TABLE emp (id int); CREATE TEMP TABLE theirs (id int)")
            .expect("tables");
        let catalogue = catalogue(&mut client);
        assert_eq!(verdict(&catalogue, "SELECT id FROM emp"), "pure: public.emp");
        assert_eq!(verdict(&catalogue, "SELECT id FROM theirs"), "relation theirs is not known");
    }
}

#[test]
fn names_are_found_as_the_search_path_says() {
    let objects = "CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE a.t (id int); CREATE VIEW b.t AS SELECT random();
        CREATE TABLE public.tables (id int); CREATE TABLE public.pg_class (id int); CREATE TABLE a.date (id int)";
    for mut client in sessions(objects) {
        let mut after = |path: &str, statement: &str| {
            verdict_after(&mut client, &format!("SET search_path = {path}"), statement)
        };
        let random = "view t: function random is not a built-in function known to be harmless";
        assert_eq!(after("a, b", "SELECT 1 FROM t"), "pure: a.t");
        assert_eq!(after("b, a", "SELECT 1 FROM t"), random);
        assert_eq!(after("nowhere, a", "SELECT 1 FROM t"), "pure: a.t");
        assert_eq!(after("public", "SELECT 1 FROM t"), "relation t is not known");
        assert_eq!(after("''", "SELECT 1 FROM t"), "relation t is not known");
        assert_eq!(after("''", "SELECT 1 FROM a.t"), "pure: a.t");
        let shadowed = "tables may be in information_schema";
        assert_eq!(after("information_schema, public", "SELECT 1 FROM tables"), shadowed);
        assert_eq!(after("public, information_schema", "SELECT 1 FROM tables"), "pure: public.tables");
        let system = "pg_class is a system catalogue, or named like one";
        assert_eq!(after("public, pg_catalog", "SELECT 1 FROM pg_class"), system);
        assert_eq!(after("a", "SELECT '2020-01-01'::date"), "pure: ");
        let row = "type date is not a built-in type known to be harmless";
        assert_eq!(after("a, pg_catalog", "SELECT '2020-01-01'::date"), row);
        assert_eq!(after("a, pg_catalog", "SELECT '2020-01-01'::pg_catalog.date"), "pure: ");
    }
}

#[test]
fn facts_come_through_views() {
    let views =
        "CREATE VIEW at AS SELECT id, now() AS at FROM emp; CREATE VIEW who AS SELECT CURRENT_USER AS who;
        CREATE VIEW over_at AS SELECT id FROM at; CREATE VIEW parsed AS SELECT name::date AS day FROM emp;
        CREATE VIEW plain AS SELECT id, upper(name) AS name FROM emp WHERE hired > '2020-01-01'";
    for mut client in sessions(views) {
        let catalogue = catalogue(&mut client);
        let facts = |statement: &str| {
            let pure = read(statement).and_then(|needs| catalogue.check(&needs)).expect("it is pure");
            (pure.facts.reads_clock, pure.facts.reads_settings, pure.facts.has_order)
        };
        assert_eq!(facts("SELECT id FROM plain ORDER BY id"), (false, false, true));
        assert_eq!(facts("SELECT id FROM at"), (true, false, false));
        assert_eq!(facts("SELECT id FROM over_at"), (true, false, false));
        assert_eq!(facts("SELECT day FROM parsed"), (true, false, false));
        assert!(facts("SELECT who FROM who").1);
    }
}

#[test]
fn the_query_calls_nothing_of_a_user_who_put_a_trap_before_every_name() {
    let traps = "CREATE SCHEMA evil; CREATE TABLE evil.sprung (by text);
        CREATE FUNCTION evil.trap(text) RETURNS bool LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO evil.sprung VALUES ($1); RETURN true; END $$;
        CREATE FUNCTION evil.eq(oid, oid) RETURNS bool LANGUAGE sql AS 'SELECT evil.trap(''=(oid)'')';
        CREATE FUNCTION evil.eq(\"char\", \"char\") RETURNS bool LANGUAGE sql AS 'SELECT evil.trap(''=(char)'')';
        CREATE FUNCTION evil.eq(name, name) RETURNS bool LANGUAGE sql AS 'SELECT evil.trap(''=(name)'')';
        CREATE FUNCTION evil.eq(text, text) RETURNS bool LANGUAGE sql AS 'SELECT evil.trap(''=(text)'')';
        CREATE OPERATOR evil.= (leftarg = oid, rightarg = oid, function = evil.eq);
        CREATE OPERATOR evil.<> (leftarg = oid, rightarg = oid, function = evil.eq);
        CREATE OPERATOR evil.>= (leftarg = oid, rightarg = oid, function = evil.eq);
        CREATE OPERATOR evil.= (leftarg = \"char\", rightarg = \"char\", function = evil.eq);
        CREATE OPERATOR evil.= (leftarg = name, rightarg = name, function = evil.eq);
        CREATE OPERATOR evil.<> (leftarg = name, rightarg = name, function = evil.eq);
        CREATE OPERATOR evil.~ (leftarg = text, rightarg = text, function = evil.eq);
        CREATE OPERATOR evil.= (leftarg = text, rightarg = text, function = evil.eq);
        CREATE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE sql AS 'SELECT evil.trap(''setting'')::text';
        CREATE FUNCTION evil.concat(VARIADIC text[]) RETURNS text LANGUAGE sql AS 'SELECT evil.trap(''concat'')::text';
        CREATE FUNCTION evil.unnest(name[]) RETURNS SETOF name LANGUAGE sql AS 'SELECT evil.trap(''unnest'')::text::name';
        CREATE TABLE evil.pg_class (oid oid); CREATE TABLE evil.pg_proc (oid oid); CREATE DOMAIN evil.text AS int;
        CREATE VIEW evil.looked_at AS SELECT name FROM public.emp WHERE id = 1";
    for mut client in sessions(traps) {
        let questions = Lookup::ALL.map(|lookup| {
            let names = "{=,emp,looked_at,eq,text,concat,1}";
            let oids = column(
                &mut client,
                "SELECT array_agg(oid) FROM pg_class WHERE relname IN ('emp', 'looked_at')",
            );
            let is_by_oid = lookup.sql().contains("oid[]");
            lookup.sql().replace("$1", &format!("'{}'", if is_by_oid { &oids[0] } else { names }))
        });
        let plain: Vec<_> = questions.iter().map(|question| sorted(&rows(&mut client, question))).collect();
        client.batch_execute("SET search_path = evil, pg_catalog").expect("a path");
        let attacked: Vec<_> =
            questions.iter().map(|question| sorted(&rows(&mut client, question))).collect();
        assert_eq!(column(&mut client, "SELECT by FROM evil.sprung"), [""; 0]);
        assert_eq!(attacked, plain);
        assert!(plain.iter().filter(|rows| !rows.is_empty()).count() >= 8, "they find something: {plain:?}");
        let equal = "operator \"=\" may be the operator of that name in schema evil";
        assert_eq!(verdict(&catalogue(&mut client), "SELECT 1 FROM public.emp WHERE name = 'a'"), equal);
    }
}

#[test]
fn the_query_waits_for_no_lock_and_holds_none() {
    for server in servers() {
        let dbname = server.database(&format!("{TABLES}; CREATE VIEW v AS SELECT id FROM emp"));
        let (mut client, mut other) = (server.connect(&dbname), server.connect(&dbname));
        other.batch_execute("BEGIN; LOCK TABLE emp, v IN ACCESS EXCLUSIVE MODE").expect("a lock");
        client.batch_execute("SET lock_timeout = '500ms'; BEGIN").expect("a transaction");
        let mut known = Catalogue::default();
        let needs = read("SELECT id FROM v").expect("it may only read");
        known.absorb(survey(&mut client, known.wanted(&needs, |()| true)), ());
        assert!(known.check(&needs, &["public".into()]).is_ok());
        let locks = "SELECT relation FROM pg_locks WHERE pid = pg_backend_pid() AND relation >= 16384";
        assert_eq!(column(&mut client, locks), [""; 0]);
    }
}

#[test]
fn a_cast_that_calls_a_function_makes_everything_unsafe() {
    let function = "CREATE FUNCTION f(text) RETURNS int LANGUAGE sql AS 'SELECT 1';";
    for mut client in
        sessions(&format!("{function} CREATE CAST (text AS int) WITH FUNCTION f(text) AS IMPLICIT"))
    {
        let reason = "a cast between built-in types calls a user's function";
        assert_eq!(verdict(&catalogue(&mut client), "SELECT 1"), reason);
    }
    let row = "CREATE FUNCTION f(emp) RETURNS text LANGUAGE sql AS 'SELECT $$a$$';";
    for mut client in sessions(&format!("{row} CREATE CAST (emp AS text) WITH FUNCTION f(emp)")) {
        let reason = "a cast between built-in types calls a user's function";
        assert_eq!(verdict(&catalogue(&mut client), "SELECT emp::text FROM emp"), reason);
    }
    // A cast by way of text calls nothing of a user's.
    for mut client in sessions("CREATE CAST (int AS varchar) WITH INOUT AS IMPLICIT") {
        assert_eq!(verdict(&catalogue(&mut client), "SELECT id FROM emp"), "pure: public.emp");
    }
}

#[test]
fn a_cast_of_an_enum_that_calls_a_function_spoils_statements_with_enums() {
    let objects = "CREATE TYPE mood AS ENUM ('a'); CREATE TABLE moods (id int, now_is mood);
        CREATE VIEW v AS SELECT id FROM moods; CREATE VIEW w AS SELECT (name)::mood IS NULL AS n FROM emp;
        CREATE FUNCTION f(mood) RETURNS text LANGUAGE sql AS 'SELECT $$a$$';
        CREATE CAST (mood AS text) WITH FUNCTION f(mood) AS IMPLICIT";
    for mut client in sessions(objects) {
        let catalogue = catalogue(&mut client);
        let reason = "a cast of an enum calls a user's function";
        for statement in ["SELECT id FROM moods", "SELECT 'a'::mood", "SELECT id FROM v", "SELECT n FROM w"] {
            assert_eq!(verdict(&catalogue, statement), reason, "{statement}");
        }
        assert_eq!(verdict(&catalogue, "SELECT id FROM emp"), "pure: public.emp");
    }
}

#[test]
fn a_way_to_sort_a_built_in_type_makes_everything_unsafe() {
    let objects =
        "CREATE FUNCTION cmp(int, int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN 0; END';
        CREATE OPERATOR CLASS mine FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
            OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 cmp(int, int)";
    for mut client in sessions(objects) {
        let reason = "a user's operator class sorts or hashes a built-in type or an enum";
        assert_eq!(verdict(&catalogue(&mut client), "SELECT id FROM emp"), reason);
    }
}

#[test]
fn an_implicit_cast_or_a_domain_brings_a_users_operator_into_reach() {
    let operator = "CREATE FUNCTION cat(mood, int) RETURNS int LANGUAGE sql AS 'SELECT 1';
        CREATE OPERATOR / (leftarg = mood, rightarg = int, function = cat);";
    let statement = "SELECT name / 2 FROM emp";
    let shadowed = "operator \"/\" may be the operator of that name in schema public";
    let kinds = [
        ("CREATE TYPE mood AS ENUM ('a');", "pure: public.emp"),
        ("CREATE TYPE mood AS ENUM ('a'); CREATE CAST (text AS mood) WITH INOUT AS IMPLICIT;", shadowed),
        ("CREATE DOMAIN mood AS text;", shadowed),
    ];
    for (kind, expected) in kinds {
        for mut client in sessions(&format!("{kind} {operator}")) {
            assert_eq!(verdict(&catalogue(&mut client), statement), expected, "{kind}");
        }
    }
}

#[test]
fn common_extensions_leave_plain_statements_pure() {
    let extensions = "CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION pg_trgm;
        CREATE EXTENSION btree_gin; CREATE TABLE people (id int, email citext); CREATE TABLE bags (id int, bag hstore)";
    for mut client in sessions(extensions) {
        let catalogue = catalogue(&mut client);
        for statement in [
            "SELECT id, name FROM emp WHERE id = $1",
            "SELECT id FROM emp WHERE name = $1 AND hired > '2020-01-01' ORDER BY name LIMIT 10",
            "SELECT id FROM emp WHERE name || 'x' <> $1 AND id IN (1, 2) AND name LIKE 'a%'",
        ] {
            assert_eq!(verdict(&catalogue, statement), "pure: public.emp");
        }
        let column = "has a column of a type that is not built in";
        assert_eq!(verdict(&catalogue, "SELECT id FROM people"), format!("people {column}"));
        assert_eq!(verdict(&catalogue, "SELECT id FROM bags"), format!("bags {column}"));
        let modulo = "operator \"%\" may be the operator of that name in schema public";
        assert_eq!(verdict(&catalogue, "SELECT id % 2 FROM emp"), modulo);
        let max = "function max may be the function of that name in schema public";
        assert_eq!(verdict(&catalogue, "SELECT max(id) FROM emp"), max);
        assert_eq!(
            verdict(&catalogue, "SELECT similarity(name, 'a') FROM emp").split(' ').nth(1),
            Some("similarity")
        );
    }
}
