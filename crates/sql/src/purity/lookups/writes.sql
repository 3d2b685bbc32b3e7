-- Of these relations, those whose rows a statement cannot write without that a function of a user may run: by a trigger,
-- by one that a foreign key passes on to another table, by an expression of a default, a constraint or an index.
-- Functions of the server are pinned, and no dependency on them is recorded.
SELECT pg_catalog.concat(c.oid)
FROM pg_catalog.pg_class AS c
WHERE c.oid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.oid[])
  AND (c.relhastriggers AND EXISTS (
    SELECT FROM pg_catalog.pg_trigger AS g
    WHERE g.tgrelid OPERATOR(pg_catalog.=) c.oid
      AND (NOT g.tgisinternal
        OR g.tgfoid OPERATOR(pg_catalog.=) ANY ('{1646,1647,1650,1651,1652,1653}'::pg_catalog.oid[]))
  ) OR EXISTS (
    SELECT FROM pg_catalog.pg_attrdef AS part
    INNER JOIN pg_catalog.pg_depend AS used
      ON used.classid OPERATOR(pg_catalog.=) 2604::pg_catalog.oid
      AND used.objid OPERATOR(pg_catalog.=) part.oid
      AND used.refclassid OPERATOR(pg_catalog.=) 1255::pg_catalog.oid
    WHERE part.adrelid OPERATOR(pg_catalog.=) c.oid
  ) OR EXISTS (
    SELECT FROM pg_catalog.pg_constraint AS part
    INNER JOIN pg_catalog.pg_depend AS used
      ON used.classid OPERATOR(pg_catalog.=) 2606::pg_catalog.oid
      AND used.objid OPERATOR(pg_catalog.=) part.oid
      AND used.refclassid OPERATOR(pg_catalog.=) 1255::pg_catalog.oid
    WHERE part.conrelid OPERATOR(pg_catalog.=) c.oid
  ) OR EXISTS (
    SELECT FROM pg_catalog.pg_index AS part
    INNER JOIN pg_catalog.pg_depend AS used
      ON used.classid OPERATOR(pg_catalog.=) 1259::pg_catalog.oid
      AND used.objid OPERATOR(pg_catalog.=) part.indexrelid
      AND used.refclassid OPERATOR(pg_catalog.=) 1255::pg_catalog.oid
    WHERE part.indrelid OPERATOR(pg_catalog.=) c.oid
  ))
