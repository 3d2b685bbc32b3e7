-- What users have added that any statement may meet without a name. Columns: kind, id, target, context, function.
-- c is a cast: its types, its context and its function; o a type that has a way to be sorted, compared or hashed
-- (methods 403 and 405); x an extension that answers queries of plain tables from elsewhere, without this snapshot;
-- v the server's version.
SELECT 'v', pg_catalog.current_setting('server_version_num'), NULL, NULL, NULL
UNION ALL
SELECT 'c', pg_catalog.concat(c.castsource), pg_catalog.concat(c.casttarget), c.castcontext::pg_catalog.text,
  pg_catalog.concat(c.castfunc)
FROM pg_catalog.pg_cast AS c
WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
UNION ALL
SELECT 'o', pg_catalog.concat(c.opcintype), NULL, NULL, NULL
FROM pg_catalog.pg_opclass AS c
WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  AND (c.opcmethod OPERATOR(pg_catalog.=) 403::pg_catalog.oid OR c.opcmethod OPERATOR(pg_catalog.=) 405::pg_catalog.oid)
UNION ALL
SELECT 'x', e.extname::pg_catalog.text, NULL, NULL, NULL
FROM pg_catalog.pg_extension AS e
WHERE e.extname OPERATOR(pg_catalog.=) ANY ('{citus,pg_duckdb}'::pg_catalog.name[])
