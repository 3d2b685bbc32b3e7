-- Functions of these names. Columns: kind, schema, name, flags, detail.
-- b: the server's own, all of one name; v if one can be called with one argument and is not immutable; their digest.
-- f: one of a user; 1 if it can be called with one argument; the type of the first.
SELECT 'b', NULL, p.proname::pg_catalog.text,
  pg_catalog.concat(CASE WHEN pg_catalog.bool_or(
    p.provolatile OPERATOR(pg_catalog.<>) 'i'::pg_catalog."char"
    AND p.pronargs OPERATOR(pg_catalog.>=) 1::pg_catalog.int2
    AND (p.pronargs OPERATOR(pg_catalog.-) p.pronargdefaults) OPERATOR(pg_catalog.<=) 1::pg_catalog.int2
  ) THEN 'v' END),
  pg_catalog.concat(pg_catalog.sum(pg_catalog.hashtextextended(
    pg_catalog.concat_ws('|', p.proargtypes, p.prorettype, p.prokind, p.provolatile, p.proretset, p.prolang, p.prosrc),
    0
  )))
FROM pg_catalog.pg_proc AS p
WHERE p.proname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[])
  AND p.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid
GROUP BY p.proname
UNION ALL
SELECT 'f', n.nspname::pg_catalog.text, p.proname::pg_catalog.text,
  pg_catalog.concat(CASE WHEN
    p.pronargs OPERATOR(pg_catalog.>=) 1::pg_catalog.int2
    AND (p.pronargs OPERATOR(pg_catalog.-) p.pronargdefaults) OPERATOR(pg_catalog.<=) 1::pg_catalog.int2
  THEN '1' END),
  pg_catalog.concat(p.proargtypes[0])
FROM pg_catalog.pg_proc AS p
INNER JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
WHERE p.proname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[])
  AND p.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
