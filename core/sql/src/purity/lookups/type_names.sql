-- Types of these names. Columns: schema, name, object id, typtype.
-- Row types have the names of their relations, and array types cannot be named by those of others.
SELECT n.nspname::pg_catalog.text, t.typname::pg_catalog.text, pg_catalog.concat(t.oid), t.typtype::pg_catalog.text
FROM pg_catalog.pg_type AS t
INNER JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) t.typnamespace
LEFT JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) t.typrelid
LEFT JOIN pg_catalog.pg_type AS element
  ON element.oid OPERATOR(pg_catalog.=) t.typelem AND element.typarray OPERATOR(pg_catalog.=) t.oid
WHERE t.typname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[])
  AND element.oid IS NULL
  AND (c.relkind IS NULL OR c.relkind OPERATOR(pg_catalog.=) 'c'::pg_catalog."char")
  AND NOT n.nspname OPERATOR(pg_catalog.~) '^pg_(toast_)?temp_'::pg_catalog.text
