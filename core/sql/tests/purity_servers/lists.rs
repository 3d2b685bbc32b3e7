//! The lists of harmless built-ins against what servers say of every overload.

use crate::server::{catalogue, column, rows, servers};
use onetrip_sql::purity::{Impure, is_harmless_parameter_type, read};

/// SQL functions whose bodies name everything with its schema; see scripts/purity-lists.
const SQL_FUNCTIONS: [&str; 13] = [
    "bit_length",
    "date_part",
    "log",
    "log10",
    "lpad",
    "path_contain_pt",
    "polygon",
    "quote_literal",
    "quote_nullable",
    "round",
    "rpad",
    "substring",
    "trunc",
];

/// Functions that SAFETY rules name, and others of their kinds. None may be admitted, on any server.
const NEVER: &[&str] = &[
    "txid_current",
    "pg_current_xact_id",
    "pg_current_xact_id_if_assigned",
    "txid_status",
    "txid_current_snapshot",
    "statement_timestamp",
    "clock_timestamp",
    "timeofday",
    "current_setting",
    "set_config",
    "setseed",
    "random",
    "nextval",
    "setval",
    "currval",
    "lastval",
    "pg_sequence_last_value",
    "current_query",
    "pg_stat_get_activity",
    "pg_cursor",
    "pg_prepared_statement",
    "pg_lock_status",
    "pg_advisory_lock",
    "pg_try_advisory_xact_lock",
    "pg_notify",
    "pg_listening_channels",
    "pg_sleep",
    "pg_cancel_backend",
    "pg_terminate_backend",
    "pg_reload_conf",
    "lo_get",
    "lo_create",
    "lo_creat",
    "lo_open",
    "lo_import",
    "lo_export",
    "lo_from_bytea",
    "lo_put",
    "lo_unlink",
    "loread",
    "lowrite",
    "query_to_xml",
    "table_to_xml",
    "schema_to_xml",
    "database_to_xml",
    "cursor_to_xml",
    "has_table_privilege",
    "has_any_column_privilege",
    "row_security_active",
    "ts_stat",
    "ts_rewrite",
    "ts_headline",
    "to_tsvector",
    "to_tsquery",
    "get_current_ts_config",
    "gen_random_uuid",
    "uuidv7",
    "random_normal",
    "pg_relation_size",
    "pg_database_size",
    "pg_read_file",
    "pg_ls_dir",
    "pg_logical_emit_message",
    "pg_switch_wal",
    "pg_create_restore_point",
    "pg_export_snapshot",
    "pg_backend_pid",
    "pg_typeof",
    "pg_get_viewdef",
    "to_regclass",
    "format_type",
    "obj_description",
    "col_description",
    "enum_first",
    "enum_range",
    "age",
    "mxid_age",
    "version",
    "inet_client_addr",
    "current_schemas",
    "convert_from",
    "json_populate_record",
    "satisfies_hash_partition",
    "array_shuffle",
    "array_sample",
    "brin_summarize_new_values",
    "gin_clean_pending_list",
    "dblink",
    "xpath",
];

/// Names that are functions of this server.
const NAMES: &str = "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace";

/// Overloads of an admitted name that are not what the list promises.
fn doubtful(names: &[String]) -> String {
    let quoted =
        |names: &[String]| names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    let sql_functions: Vec<_> = SQL_FUNCTIONS.iter().map(ToString::to_string).collect();
    format!(
        "SELECT p.oid::regprocedure FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
         WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname IN ({}) AND NOT (
           p.provolatile IN ('i', 's') AND p.prokind IN ('f', 'a', 'w')
           AND (l.lanname = 'internal' OR l.lanname = 'sql' AND p.proname IN ({}))
           AND NOT p.proargtypes::regtype[]::text ~ '(reg|internal|cstring|trigger|xml|aclitem)'
           AND NOT p.prorettype::regtype::text ~ '(reg|internal|cstring|trigger|xml|handler)')",
        quoted(names),
        quoted(&sql_functions)
    )
}

#[test]
fn every_overload_of_an_admitted_function_is_as_the_list_promises() {
    for server in servers() {
        let mut client = server.connect("postgres");
        let catalogue = catalogue(&mut client);
        let is_admitted = |name: &String| {
            let needs = read(&format!("SELECT pg_catalog.\"{name}\"()")).expect("a call parses");
            catalogue.check(&needs).is_ok()
        };
        let admitted: Vec<_> = column(&mut client, NAMES).into_iter().filter(is_admitted).collect();
        assert!(admitted.len() > 250, "{} on {}", admitted.len(), server.version);
        for needed in
            ["count", "max", "coalesce", "lower", "now", "to_char", "date_trunc", "jsonb_agg", "unnest"]
        {
            assert!(needed == "coalesce" || admitted.iter().any(|name| name == needed), "{needed}");
        }
        assert_eq!(column(&mut client, &doubtful(&admitted)), [""; 0], "on {}", server.version);
    }
}

#[test]
fn what_does_more_is_admitted_under_no_name() {
    let mut client = servers()[0].connect("postgres");
    let catalogue = catalogue(&mut client);
    for name in NEVER {
        for call in [format!("SELECT {name}(1)"), format!("SELECT pg_catalog.{name}() FROM (VALUES (1)) v")] {
            let verdict = read(&call).and_then(|needs| catalogue.check(&needs));
            assert!(matches!(verdict, Err(Impure::Function(_))), "{call}");
        }
    }
}

#[test]
fn every_operator_that_is_admitted_computes() {
    for server in servers() {
        let mut client = server.connect("postgres");
        let catalogue = catalogue(&mut client);
        let names =
            "SELECT DISTINCT oprname FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace";
        let is_admitted = |name: &String| {
            let needs = read(&format!("SELECT a OPERATOR(pg_catalog.{name}) b")).expect("an operator parses");
            catalogue.check(&needs).is_ok()
        };
        let admitted: Vec<_> = column(&mut client, names).into_iter().filter(is_admitted).collect();
        assert!(admitted.len() > 70, "{admitted:?}");
        let doubtful = format!(
            "SELECT o.oid::regoperator FROM pg_operator AS o JOIN pg_proc AS p ON p.oid = o.oprcode
             WHERE o.oprname = ANY ('{{{}}}') AND (p.provolatile = 'v' OR p.prolang NOT IN (12, 14))",
            admitted.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(",")
        );
        assert_eq!(rows(&mut client, &doubtful).len(), 0, "on {}", server.version);
    }
}

#[test]
fn a_field_of_a_function_in_from_is_never_a_built_in_that_does_more() {
    for server in servers() {
        let mut client = server.connect("postgres");
        let catalogue = catalogue(&mut client);
        let of_one = "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
            AND provolatile = 'v' AND pronargs >= 1 AND pronargs - pronargdefaults <= 1";
        let names = column(&mut client, of_one);
        assert!(names.len() > 50);
        for name in names {
            let needs = read(&format!("SELECT g.{name} FROM generate_series(1, 2) AS g")).expect("it parses");
            let verdict = catalogue.check(&needs);
            assert!(matches!(verdict, Err(Impure::FieldFunction { .. })), "{name} on {}", server.version);
        }
    }
}

/// Types whose input or output looks into the catalogue, or is more than a value.
const TYPES_OF_CATALOGUE: &str =
    "typname ~ '^_?(reg|aclitem$|xml$|refcursor$|cstring$|pg_|xid|cid$|tid$|txid|gtsvector$)'
    OR typtype NOT IN ('b', 'r') AND typname <> 'unknown' OR typnamespace <> 'pg_catalog'::regnamespace";

#[test]
fn every_type_that_is_admitted_is_a_value() {
    for server in servers() {
        let mut client = server.connect("postgres");
        let catalogue = catalogue(&mut client);
        let is_admitted = |name: &String| {
            let needs = read(&format!("SELECT NULL::pg_catalog.\"{name}\"")).expect("a cast parses");
            catalogue.check(&needs).is_ok()
        };
        let names = column(&mut client, "SELECT typname FROM pg_type");
        let admitted: Vec<_> = names.into_iter().filter(is_admitted).collect();
        assert_eq!(admitted.len(), 44, "{admitted:?}");
        let quoted = admitted.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        let doubtful =
            format!("SELECT typname FROM pg_type WHERE typname IN ({quoted}) AND ({TYPES_OF_CATALOGUE})");
        assert_eq!(column(&mut client, &doubtful), [""; 0]);
    }
}

#[test]
fn every_type_of_a_parameter_that_is_admitted_is_a_value_or_an_array_of_such() {
    for server in servers() {
        let mut client = server.connect("postgres");
        let admitted: Vec<_> =
            (1..100_000).filter(|oid| is_harmless_parameter_type(*oid)).map(|oid| oid.to_string()).collect();
        assert_eq!(admitted.len(), 50);
        let oids = admitted.join(", ");
        let known = column(&mut client, &format!("SELECT typname FROM pg_type WHERE oid IN ({oids})"));
        assert_eq!(known.len(), admitted.len(), "{known:?}");
        let doubtful =
            format!("SELECT typname FROM pg_type WHERE oid IN ({oids}) AND ({TYPES_OF_CATALOGUE})");
        assert_eq!(column(&mut client, &doubtful), [""; 0]);
    }
    assert!(is_harmless_parameter_type(0));
    assert!(!is_harmless_parameter_type(2205), "regclass");
}

#[test]
fn functions_that_a_superuser_puts_into_pg_catalog_are_not_taken_for_the_servers_own() {
    for server in servers() {
        let dbname = server.database("CREATE TABLE t (id int)");
        let mut client = server.connect(&dbname);
        let verdict = |client: &mut postgres::Client, statement: &str| {
            let known = catalogue(client);
            read(statement).and_then(|needs| known.check(&needs)).map_err(|because| because.to_string())
        };
        for statement in
            ["SELECT lower('A')", "SELECT g.age_of FROM generate_series(1, 2) AS g", "SELECT id + 1 FROM t"]
        {
            assert!(verdict(&mut client, statement).is_ok(), "{statement}");
        }
        client
            .batch_execute(
                "SET allow_system_table_mods = on;
                CREATE FUNCTION pg_catalog.lower(int) RETURNS text VOLATILE LANGUAGE sql AS 'SELECT random()::text';
                CREATE FUNCTION pg_catalog.age_of(int) RETURNS int VOLATILE LANGUAGE sql AS 'SELECT 1';
                CREATE FUNCTION pg_catalog.plus(text, int) RETURNS int LANGUAGE sql AS 'SELECT 1';
                CREATE OPERATOR pg_catalog.+ (leftarg = text, rightarg = int, function = pg_catalog.plus);",
            )
            .expect("a superuser may");
        for (statement, part) in [
            ("SELECT lower('A')", "function lower may be the function of that name in schema pg_catalog"),
            (
                "SELECT g.age_of FROM generate_series(1, 2) AS g",
                "may be a call of function pg_catalog.age_of",
            ),
            ("SELECT id + 1 FROM t", "may be the operator of that name in schema pg_catalog"),
        ] {
            let because = verdict(&mut client, statement).expect_err(statement);
            assert!(because.contains(part), "{because}");
        }
        // One of the server's own, put in another's place under its number, is another function.
        client
            .batch_execute(
                "CREATE OR REPLACE FUNCTION pg_catalog.upper(text) RETURNS text VOLATILE LANGUAGE sql
                 AS 'SELECT random()::text'",
            )
            .expect("a superuser may");
        let because = verdict(&mut client, "SELECT upper('a')").expect_err("its digest is another");
        assert_eq!(because, "function upper is not a built-in function known to be harmless");
    }
}
