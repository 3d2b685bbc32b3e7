-- Relations of these names outside of the server's own schemas, but for temporary ones.
-- Columns: schema, name, object id, relkind and what keeps it from being plain, the types of its columns.
SELECT n.nspname::pg_catalog.text, c.relname::pg_catalog.text, pg_catalog.concat(c.oid),
  pg_catalog.concat(
    c.relkind,
    CASE WHEN c.relrowsecurity THEN 's' END,
    CASE WHEN c.relhasrules AND EXISTS (
      SELECT FROM pg_catalog.pg_rewrite AS rule
      WHERE rule.ev_class OPERATOR(pg_catalog.=) c.oid
        AND rule.rulename OPERATOR(pg_catalog.<>) '_RETURN'::pg_catalog.name
    ) THEN 'r' END,
    CASE WHEN c.relhassubclass THEN 'c' END,
    CASE WHEN c.relispartition THEN 'p' END,
    CASE WHEN c.relam OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid THEN 'a' END
  ),
  ARRAY(
    SELECT DISTINCT a.atttypid
    FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid
      AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2
      AND NOT a.attisdropped
  )::pg_catalog.text
FROM pg_catalog.pg_class AS c
INNER JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE c.relname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[])
  AND c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,v,m,p,f,S}'::pg_catalog."char"[])
  AND c.relpersistence OPERATOR(pg_catalog.<>) 't'::pg_catalog."char"
