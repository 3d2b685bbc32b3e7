//! `pg_catalog`.
//!
//! Object identifiers:
//!
//! - A table, view or index has 16384 plus its row in `sqlite_master`.
//! - The key of a table that has no index for it (`INTEGER PRIMARY KEY`) has 1,000,000,000 plus that of the table.
//! - A constraint by an index has 2,000,000,000 plus that of the index.
//! - A foreign key has 3,000,000,000 plus 64 times that of its table plus its number.

use super::View;

const fn view(name: &'static str, columns: &'static str, query: &'static str) -> View {
    View { name, columns, query }
}

const fn empty(name: &'static str, columns: &'static str) -> View {
    View { name, columns, query: "" }
}

pub(super) static VIEWS: [View; 56] = [
    view(
        "onetrip_table",
        "oid oid, name name, kind char, sql text",
        "SELECT 16384 + rowid, name, CASE type WHEN 'view' THEN 'v' ELSE 'r' END, sql FROM main.sqlite_master \
         WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> 'onetrip_sequence'",
    ),
    view(
        "onetrip_index",
        "oid oid, name name, table_oid oid, table_name name, is_unique bool, is_primary bool, origin text, \
         sqlite_name text, keys text, key_numbers int2[], definition text",
        "WITH found AS (\
           SELECT 16384 + m.rowid AS oid, t.oid AS table_oid, t.name AS table_name, l.\"unique\" AS is_unique, \
                  l.origin, l.name AS sqlite_name, \
                  (SELECT group_concat(coalesce(x.name, '?'), ', ') FROM pragma_index_info(l.name) x) AS keys, \
                  (SELECT json_group_array(x.cid + 1) FROM pragma_index_info(l.name) x) AS key_numbers \
           FROM onetrip_table t JOIN pragma_index_list(t.name) l \
           JOIN main.sqlite_master m ON m.name = l.name AND m.type = 'index' WHERE t.kind = 'r' \
           UNION ALL \
           SELECT 1000000000 + t.oid, t.oid, t.name, 1, 'pk', NULL, \
                  (SELECT group_concat(c.name, ', ') FROM pragma_table_info(t.name) c WHERE c.pk > 0), \
                  (SELECT json_group_array(c.cid + 1) FROM pragma_table_info(t.name) c WHERE c.pk > 0) \
           FROM onetrip_table t WHERE t.kind = 'r' \
           AND EXISTS (SELECT 1 FROM pragma_table_info(t.name) c WHERE c.pk > 0) \
           AND NOT EXISTS (SELECT 1 FROM pragma_index_list(t.name) l WHERE l.origin = 'pk')), \
         named AS (SELECT *, CASE origin WHEN 'pk' THEN table_name || '_pkey' \
           WHEN 'u' THEN table_name || '_' || replace(keys, ', ', '_') || '_key' ELSE sqlite_name END AS name FROM found) \
         SELECT oid, name, table_oid, table_name, is_unique, \
                origin = 'pk' OR (is_unique AND name = table_name || '_pkey'), origin, sqlite_name, keys, key_numbers, \
                'CREATE ' || CASE WHEN is_unique THEN 'UNIQUE ' ELSE '' END || 'INDEX ' || quote_ident(name) \
                || ' ON public.' || quote_ident(table_name) || ' USING btree (' || keys || ')' FROM named",
    ),
    view(
        "onetrip_foreign_key",
        "oid oid, table_oid oid, table_name name, target_oid oid, target name, columns text, target_columns text, \
         column_numbers int2[], target_numbers int2[], on_update text, on_delete text",
        "SELECT 3000000000 + 64 * t.oid + f.id, t.oid, t.name, (SELECT o.oid FROM onetrip_table o WHERE o.name = f.\"table\"), \
                f.\"table\", group_concat(f.\"from\", ', '), \
                group_concat(coalesce(f.\"to\", (SELECT c.name FROM pragma_table_info(f.\"table\") c WHERE c.pk = f.seq + 1)), ', '), \
                json_group_array((SELECT c.cid + 1 FROM pragma_table_info(t.name) c WHERE c.name = f.\"from\")), \
                json_group_array((SELECT c.cid + 1 FROM pragma_table_info(f.\"table\") c \
                                  WHERE c.name = f.\"to\" OR (f.\"to\" IS NULL AND c.pk = f.seq + 1))), \
                f.on_update, f.on_delete \
         FROM onetrip_table t JOIN pragma_foreign_key_list(t.name) f WHERE t.kind = 'r' GROUP BY t.oid, f.id",
    ),
    view(
        "onetrip_constraint",
        "oid oid, name name, kind char, table_oid oid, index_oid oid, target_oid oid, key_numbers int2[], \
         target_numbers int2[], on_update char, on_delete char, definition text",
        "SELECT 2000000000 + oid, name, CASE WHEN is_primary THEN 'p' ELSE 'u' END, table_oid, oid, 0, key_numbers, NULL, \
                ' ', ' ', CASE WHEN is_primary THEN 'PRIMARY KEY (' ELSE 'UNIQUE (' END || keys || ')' \
         FROM onetrip_index WHERE origin IN ('pk', 'u') OR is_primary \
         UNION ALL \
         SELECT oid, table_name || '_' || replace(columns, ', ', '_') || '_fkey', 'f', table_oid, 0, target_oid, \
                column_numbers, target_numbers, onetrip_action(on_update), onetrip_action(on_delete), \
                'FOREIGN KEY (' || columns || ') REFERENCES ' || quote_ident(target) || '(' || target_columns || ')' \
                || CASE on_update WHEN 'NO ACTION' THEN '' ELSE ' ON UPDATE ' || on_update END \
                || CASE on_delete WHEN 'NO ACTION' THEN '' ELSE ' ON DELETE ' || on_delete END \
         FROM onetrip_foreign_key",
    ),
    view(
        "pg_class",
        "oid oid, relname name, relnamespace oid, reltype oid, reloftype oid, relowner oid, relam oid, relfilenode oid, \
         reltablespace oid, relpages int4, reltuples float4, relallvisible int4, reltoastrelid oid, relhasindex bool, \
         relisshared bool, relpersistence char, relkind char, relnatts int2, relchecks int2, relhasrules bool, \
         relhastriggers bool, relhassubclass bool, relrowsecurity bool, relforcerowsecurity bool, relispopulated bool, \
         relreplident char, relispartition bool, relrewrite oid, relfrozenxid oid, relminmxid oid, relacl text[], \
         reloptions text[], relpartbound text",
        "SELECT oid, name, 2200, 0, 0, 10, CASE kind WHEN 'r' THEN 2 ELSE 0 END, oid, 0, 0, -1.0, 0, 0, \
                EXISTS (SELECT 1 FROM onetrip_index i WHERE i.table_oid = t.oid), 0, 'p', kind, \
                (SELECT count(*) FROM pragma_table_info(t.name)), 0, kind = 'v', \
                EXISTS (SELECT 1 FROM pragma_foreign_key_list(t.name)), 0, 0, 0, 1, 'd', 0, 0, 0, 0, NULL, NULL, NULL \
         FROM onetrip_table t \
         UNION ALL \
         SELECT oid, name, 2200, 0, 0, 10, 403, oid, 0, 0, 0.0, 0, 0, 0, 0, 'p', 'i', json_array_length(key_numbers), \
                0, 0, 0, 0, 0, 0, 1, 'n', 0, 0, 0, 0, NULL, NULL, NULL FROM onetrip_index",
    ),
    view(
        "pg_attribute",
        "attrelid oid, attname name, atttypid oid, attstattarget int4, attlen int2, attnum int2, attndims int4, \
         attcacheoff int4, atttypmod int4, attbyval bool, attalign char, attstorage char, attcompression char, \
         attnotnull bool, atthasdef bool, atthasmissing bool, attidentity char, attgenerated char, attisdropped bool, \
         attislocal bool, attinhcount int4, attcollation oid, attacl text[], attoptions text[], attfdwoptions text[]",
        "WITH found AS (SELECT t.oid, t.sql, c.*, c.pk = 1 AND upper(c.type) = 'INTEGER' AND NOT EXISTS \
             (SELECT 1 FROM pragma_index_list(t.name) l WHERE l.origin = 'pk') AS is_rowid \
           FROM onetrip_table t JOIN pragma_table_xinfo(t.name) c WHERE c.hidden <> 1), \
         typed AS (SELECT *, onetrip_type_oid(type, is_rowid AND instr(sql, '/*int4*/') > 0) AS type_oid FROM found) \
         SELECT oid, name, type_oid, -1, onetrip_type_len(type_oid), cid + 1, 0, -1, onetrip_type_modifier(type), \
                type_oid IN (16, 20, 21, 23, 26, 700, 701, 1082, 1114, 1184), 'i', 'p', '', \"notnull\" OR pk > 0, \
                dflt_value IS NOT NULL, 0, CASE WHEN is_rowid THEN 'd' ELSE '' END, \
                CASE WHEN hidden IN (2, 3) THEN 's' ELSE '' END, 0, 1, 0, \
                CASE WHEN type_oid IN (25, 1042, 1043, 19) THEN 100 ELSE 0 END, NULL, NULL, NULL FROM typed",
    ),
    view(
        "pg_attrdef",
        "oid oid, adrelid oid, adnum int2, adbin text",
        "SELECT 64 * t.oid + c.cid, t.oid, c.cid + 1, c.dflt_value FROM onetrip_table t JOIN pragma_table_xinfo(t.name) c \
         WHERE c.dflt_value IS NOT NULL",
    ),
    view(
        "pg_type",
        "oid oid, typname name, typnamespace oid, typowner oid, typlen int2, typbyval bool, typtype char, \
         typcategory char, typispreferred bool, typisdefined bool, typdelim char, typrelid oid, typelem oid, \
         typarray oid, typinput regproc, typoutput regproc, typreceive regproc, typsend regproc, typnotnull bool, \
         typbasetype oid, typtypmod int4, typndims int4, typcollation oid, typdefault text",
        "types",
    ),
    view(
        "pg_namespace",
        "oid oid, nspname name, nspowner oid, nspacl text[]",
        "VALUES (11, 'pg_catalog', 10, NULL), (2200, 'public', 10, NULL), (13000, 'information_schema', 10, NULL)",
    ),
    view(
        "pg_am",
        "oid oid, amname name, amhandler regproc, amtype char",
        "VALUES (2, 'heap', 'heap_tableam_handler', 't'), (403, 'btree', 'bthandler', 'i')",
    ),
    view(
        "pg_database",
        "oid oid, datname name, datdba oid, encoding int4, datlocprovider char, datistemplate bool, datallowconn bool, \
         datconnlimit int4, datfrozenxid oid, datminmxid oid, dattablespace oid, datcollate text, datctype text, \
         daticulocale text, datcollversion text, datacl text[]",
        "SELECT 5, current_database(), 10, 6, 'c', 0, 1, -1, 0, 0, 1663, 'C', 'C', NULL, NULL, NULL",
    ),
    view(
        "pg_roles",
        "oid oid, rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin bool, \
         rolreplication bool, rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz, rolbypassrls bool, \
         rolconfig text[]",
        "SELECT 10, onetrip_session('current_user'), 1, 1, 1, 1, 1, 0, -1, '********', NULL, 1, NULL",
    ),
    view(
        "pg_user",
        "usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls bool, passwd text",
        "SELECT onetrip_session('current_user'), 10, 1, 1, 0, 1, '********'",
    ),
    view("pg_tablespace", "oid oid, spcname name, spcowner oid", "VALUES (1663, 'pg_default', 10)"),
    view(
        "pg_collation",
        "oid oid, collname name, collnamespace oid, collowner oid, collprovider char, collisdeterministic bool, \
         collencoding int4, collcollate text, collctype text",
        "VALUES (100, 'default', 11, 10, 'd', 1, -1, '', ''), (950, 'C', 11, 10, 'c', 1, -1, 'C', 'C')",
    ),
    view(
        "pg_settings",
        "name text, setting text, unit text, category text, short_desc text, context text, vartype text, source text, \
         boot_val text, reset_val text",
        "SELECT key, value, NULL, 'onetrip', '', 'user', 'string', 'session', value, value FROM json_each(onetrip_settings())",
    ),
    view(
        "pg_index",
        "indexrelid oid, indrelid oid, indnatts int2, indnkeyatts int2, indisunique bool, indnullsnotdistinct bool, \
         indisprimary bool, indisexclusion bool, indimmediate bool, indisclustered bool, indisvalid bool, \
         indcheckxmin bool, indisready bool, indislive bool, indisreplident bool, indkey int2[], indcollation oid[], \
         indclass oid[], indoption int2[], indexprs text, indpred text",
        "SELECT oid, table_oid, json_array_length(key_numbers), json_array_length(key_numbers), is_unique, 0, is_primary, \
                0, 1, 0, 1, 0, 1, 1, 0, key_numbers, '[]', '[]', \
                (SELECT json_group_array(0) FROM json_each(key_numbers)), NULL, NULL FROM onetrip_index",
    ),
    view(
        "pg_constraint",
        "oid oid, conname name, connamespace oid, contype char, condeferrable bool, condeferred bool, convalidated bool, \
         conrelid oid, contypid oid, conindid oid, conparentid oid, confrelid oid, confupdtype char, confdeltype char, \
         confmatchtype char, conislocal bool, coninhcount int4, connoinherit bool, conkey int2[], confkey int2[], \
         conpfeqop oid[], conppeqop oid[], conffeqop oid[], confdelsetcols int2[], conexclop oid[], conbin text",
        "SELECT oid, name, 2200, kind, 0, 0, 1, table_oid, 0, index_oid, 0, target_oid, on_update, on_delete, ' ', 1, 0, 1, \
                key_numbers, target_numbers, NULL, NULL, NULL, NULL, NULL, NULL FROM onetrip_constraint",
    ),
    view(
        "pg_tables",
        "schemaname name, tablename name, tableowner name, tablespace name, hasindexes bool, hasrules bool, \
         hastriggers bool, rowsecurity bool",
        "SELECT 'public', name, onetrip_session('current_user'), NULL, 1, 0, 0, 0 FROM onetrip_table WHERE kind = 'r'",
    ),
    view(
        "pg_views",
        "schemaname name, viewname name, viewowner name, definition text",
        "SELECT 'public', name, onetrip_session('current_user'), substr(sql, instr(lower(sql), ' as ') + 4) \
         FROM onetrip_table WHERE kind = 'v'",
    ),
    view(
        "pg_indexes",
        "schemaname name, tablename name, indexname name, tablespace name, indexdef text",
        "SELECT 'public', table_name, name, NULL, definition FROM onetrip_index",
    ),
    empty("pg_aggregate", "aggfnoid oid, aggkind char"),
    empty("pg_auth_members", "roleid oid, member oid, grantor oid, admin_option bool"),
    empty("pg_db_role_setting", "setdatabase oid, setrole oid, setconfig text[]"),
    empty(
        "pg_cast",
        "oid oid, castsource oid, casttarget oid, castfunc oid, castcontext char, castmethod char",
    ),
    empty("pg_cursors", "name text, statement text, is_holdable bool"),
    empty(
        "pg_depend",
        "classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, refobjsubid int4, deptype char",
    ),
    empty("pg_description", "objoid oid, classoid oid, objsubid int4, description text"),
    empty("pg_enum", "oid oid, enumtypid oid, enumsortorder float4, enumlabel name"),
    empty(
        "pg_event_trigger",
        "oid oid, evtname name, evtevent name, evtowner oid, evtfoid oid, evtenabled char, evttags text[]",
    ),
    empty("pg_extension", "oid oid, extname name, extowner oid, extnamespace oid, extversion text"),
    empty("pg_foreign_data_wrapper", "oid oid, fdwname name"),
    empty("pg_foreign_server", "oid oid, srvname name, srvfdw oid"),
    empty("pg_foreign_table", "ftrelid oid, ftserver oid, ftoptions text[]"),
    empty("pg_inherits", "inhrelid oid, inhparent oid, inhseqno int4, inhdetachpending bool"),
    empty("pg_language", "oid oid, lanname name"),
    empty("pg_locks", "locktype text, database oid, relation oid, pid int4, mode text, granted bool"),
    empty("pg_matviews", "schemaname name, matviewname name, matviewowner name, definition text"),
    empty("pg_opclass", "oid oid, opcname name, opcmethod oid, opcdefault bool"),
    empty("pg_operator", "oid oid, oprname name, oprnamespace oid, oprleft oid, oprright oid"),
    empty("pg_partitioned_table", "partrelid oid, partstrat char, partnatts int2, partattrs int2[]"),
    empty(
        "pg_policy",
        "oid oid, polname name, polrelid oid, polcmd char, polpermissive bool, polroles oid[], polqual text, polwithcheck text",
    ),
    empty("pg_prepared_xacts", "gid text, owner name, database name"),
    empty(
        "pg_proc",
        "oid oid, proname name, pronamespace oid, proowner oid, prolang oid, prokind char, prorettype oid, proretset bool, pronargs int2, proargtypes oid[], proargnames text[], proargmodes text[], proallargtypes oid[], prosrc text, proacl text[]",
    ),
    empty("pg_publication", "oid oid, pubname name, puballtables bool"),
    empty("pg_publication_namespace", "oid oid, pnpubid oid, pnnspid oid"),
    empty("pg_publication_rel", "oid oid, prpubid oid, prrelid oid, prqual text, prattrs int2[]"),
    empty("pg_range", "rngtypid oid, rngsubtype oid, rngmultitypid oid"),
    empty(
        "pg_rewrite",
        "oid oid, rulename name, ev_class oid, ev_type char, ev_enabled char, is_instead bool",
    ),
    empty(
        "pg_sequence",
        "seqrelid oid, seqtypid oid, seqstart int8, seqincrement int8, seqmax int8, seqmin int8, seqcache int8, seqcycle bool",
    ),
    empty("pg_sequences", "schemaname name, sequencename name, last_value int8"),
    empty("pg_shdescription", "objoid oid, classoid oid, description text"),
    empty(
        "pg_stat_activity",
        "datname name, pid int4, usename name, application_name text, state text, query text",
    ),
    empty("pg_stat_user_tables", "relid oid, schemaname name, relname name, n_live_tup int8"),
    empty(
        "pg_statistic_ext",
        "oid oid, stxrelid oid, stxname name, stxnamespace oid, stxowner oid, stxstattarget int4, stxkeys int2[], stxkind text[]",
    ),
    empty(
        "pg_trigger",
        "oid oid, tgrelid oid, tgparentid oid, tgname name, tgfoid oid, tgtype int2, tgenabled char, tgisinternal bool, tgconstraint oid",
    ),
];
