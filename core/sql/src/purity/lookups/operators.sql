-- Operators of these names. Columns: kind, schema, name, left, right.
-- p: the server's own, all of one name; left is their digest. o: one of a user; the types of its operands, 0 for none.
SELECT 'p', NULL, o.oprname::pg_catalog.text,
  pg_catalog.concat(pg_catalog.sum(pg_catalog.hashtextextended(
    pg_catalog.concat_ws('|', o.oprleft, o.oprright, o.oprresult, p.provolatile, p.prolang, p.prosrc), 0
  ))),
  NULL
FROM pg_catalog.pg_operator AS o
INNER JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) o.oprcode
WHERE o.oprname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[])
  AND o.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid
GROUP BY o.oprname
UNION ALL
SELECT 'o', n.nspname::pg_catalog.text, o.oprname::pg_catalog.text, pg_catalog.concat(o.oprleft),
  pg_catalog.concat(o.oprright)
FROM pg_catalog.pg_operator AS o
INNER JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) o.oprnamespace
WHERE o.oprname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[])
  AND o.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
