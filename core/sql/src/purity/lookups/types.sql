-- Types of these object ids. Columns: object id, name, that of its element if it is an array, typtype (of the element).
SELECT pg_catalog.concat(t.oid), t.typname::pg_catalog.text, pg_catalog.concat(element.oid),
  COALESCE(element.typtype, t.typtype)::pg_catalog.text
FROM pg_catalog.pg_type AS t
LEFT JOIN pg_catalog.pg_type AS element
  ON element.oid OPERATOR(pg_catalog.=) t.typelem AND element.typarray OPERATOR(pg_catalog.=) t.oid
WHERE t.oid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.oid[])
