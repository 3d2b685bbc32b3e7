-- Columns of these relations. Columns: relation, its schema and name, column, number, type, what that is a domain over,
-- collation, v if it is computed when it is read, what its comment says of reading ahead.
SELECT pg_catalog.concat(c.oid), n.nspname::pg_catalog.text, c.relname::pg_catalog.text, a.attname::pg_catalog.text,
  pg_catalog.concat(a.attnum), pg_catalog.concat(a.atttypid), pg_catalog.concat(t.typbasetype),
  pg_catalog.concat(a.attcollation), a.attgenerated::pg_catalog.text,
  pg_catalog.substring(
    d.description,
    '[[:<:]]onetrip[.]lob_prefetch[[:space:]]*=[[:space:]]*([-+[:alnum:]]+)'::pg_catalog.text
  )
FROM pg_catalog.pg_class AS c
INNER JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
INNER JOIN pg_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) c.oid
INNER JOIN pg_catalog.pg_type AS t ON t.oid OPERATOR(pg_catalog.=) a.atttypid
LEFT JOIN pg_catalog.pg_description AS d
  ON d.classoid OPERATOR(pg_catalog.=) 1259::pg_catalog.oid
  AND d.objoid OPERATOR(pg_catalog.=) c.oid
  AND d.objsubid OPERATOR(pg_catalog.=) a.attnum
WHERE c.oid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.oid[])
  AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2
  AND NOT a.attisdropped
