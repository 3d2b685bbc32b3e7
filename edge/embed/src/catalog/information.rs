//! `information_schema`, as far as tools ask for it.

use super::View;

pub(super) static VIEWS: [View; 7] = [
    View {
        name: "information_schema.schemata",
        columns: "catalog_name name, schema_name name, schema_owner name",
        query: "SELECT current_database(), nspname, onetrip_session('current_user') FROM pg_namespace",
    },
    View {
        name: "information_schema.sequences",
        columns: "sequence_catalog name, sequence_schema name, sequence_name name, data_type text, start_value text, \
                  minimum_value text, maximum_value text, increment text, cycle_option text",
        query: "",
    },
    View {
        name: "information_schema.tables",
        columns: "table_catalog name, table_schema name, table_name name, table_type text, is_insertable_into text, is_typed text",
        query: "SELECT current_database(), 'public', name, CASE kind WHEN 'v' THEN 'VIEW' ELSE 'BASE TABLE' END, \
                CASE kind WHEN 'v' THEN 'NO' ELSE 'YES' END, 'NO' FROM onetrip_table",
    },
    View {
        name: "information_schema.columns",
        columns: "table_catalog name, table_schema name, table_name name, column_name name, ordinal_position int4, \
                  column_default text, is_nullable text, data_type text, character_maximum_length int4, \
                  numeric_precision int4, numeric_scale int4, datetime_precision int4, udt_catalog name, \
                  udt_schema name, udt_name name, is_identity text, is_generated text, is_updatable text",
        query: "SELECT current_database(), 'public', t.name, a.attname, a.attnum, \
                (SELECT d.adbin FROM pg_attrdef d WHERE d.adrelid = t.oid AND d.adnum = a.attnum), \
                CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END, \
                CASE WHEN format_type(a.atttypid, -1) LIKE '%[]' THEN 'ARRAY' ELSE format_type(a.atttypid, -1) END, \
                CASE WHEN a.atttypid IN (1042, 1043) AND a.atttypmod > 0 THEN a.atttypmod - 4 END, \
                CASE a.atttypid WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53 \
                  WHEN 1700 THEN CASE WHEN a.atttypmod > 0 THEN (a.atttypmod - 4) >> 16 END END, \
                CASE WHEN a.atttypid IN (20, 21, 23) THEN 0 \
                  WHEN a.atttypid = 1700 AND a.atttypmod > 0 THEN (a.atttypmod - 4) & 2047 END, \
                CASE WHEN a.atttypid IN (1114, 1184, 1083) THEN 6 WHEN a.atttypid = 1082 THEN 0 END, \
                current_database(), 'pg_catalog', (SELECT y.typname FROM pg_type y WHERE y.oid = a.atttypid), \
                CASE a.attidentity WHEN '' THEN 'NO' ELSE 'YES' END, \
                CASE a.attgenerated WHEN '' THEN 'NEVER' ELSE 'ALWAYS' END, CASE t.kind WHEN 'v' THEN 'NO' ELSE 'YES' END \
                FROM onetrip_table t JOIN pg_attribute a ON a.attrelid = t.oid",
    },
    View {
        name: "information_schema.table_constraints",
        columns: "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name, \
                  table_schema name, table_name name, constraint_type text, is_deferrable text, initially_deferred text",
        query: "SELECT current_database(), 'public', c.name, current_database(), 'public', t.name, \
                CASE c.kind WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' ELSE 'FOREIGN KEY' END, 'NO', 'NO' \
                FROM onetrip_constraint c JOIN onetrip_table t ON t.oid = c.table_oid",
    },
    View {
        name: "information_schema.key_column_usage",
        columns: "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name, \
                  table_schema name, table_name name, column_name name, ordinal_position int4, \
                  position_in_unique_constraint int4",
        query: "SELECT current_database(), 'public', c.name, current_database(), 'public', t.name, a.attname, k.key + 1, \
                CASE c.kind WHEN 'f' THEN k.key + 1 END FROM onetrip_constraint c \
                JOIN onetrip_table t ON t.oid = c.table_oid JOIN json_each(c.key_numbers) k \
                JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.value",
    },
    View {
        name: "information_schema.referential_constraints",
        columns: "constraint_catalog name, constraint_schema name, constraint_name name, unique_constraint_schema name, \
                  unique_constraint_name name, match_option text, update_rule text, delete_rule text",
        query: "SELECT current_database(), 'public', c.name, 'public', \
                (SELECT u.name FROM onetrip_constraint u WHERE u.table_oid = c.target_oid AND u.kind IN ('p', 'u') \
                 AND u.key_numbers = c.target_numbers), 'NONE', f.on_update, f.on_delete \
                FROM onetrip_constraint c JOIN onetrip_foreign_key f ON f.oid = c.oid WHERE c.kind = 'f'",
    },
];
