-- What these views read and use. Columns: kind, schema, name, flags, detail.
-- It locks nothing of a user's: pg_get_viewdef() would (AccessShare on what the view reads), and then a LOCK … NOWAIT of
-- another session fails, or this waits behind one. So it reads what a view uses from the tree that the server stores.
WITH RECURSIVE
  reached AS (
    -- The views and what they read. The server's own relations are pinned, so that no dependency on them is recorded.
    SELECT view.oid FROM pg_catalog.unnest($1::pg_catalog.oid[]) AS view (oid)
    UNION
    SELECT used.refobjid
    FROM reached
    INNER JOIN pg_catalog.pg_rewrite AS rule ON rule.ev_class OPERATOR(pg_catalog.=) reached.oid
    INNER JOIN pg_catalog.pg_depend AS used
      ON used.classid OPERATOR(pg_catalog.=) 2618::pg_catalog.oid
      AND used.objid OPERATOR(pg_catalog.=) rule.oid
      AND used.refclassid OPERATOR(pg_catalog.=) 1259::pg_catalog.oid
    WHERE rule.rulename OPERATOR(pg_catalog.=) '_RETURN'::pg_catalog.name
  ),
  relations AS (
    SELECT c.oid, n.nspname, c.relname, c.relkind, c.relrowsecurity, c.relhasrules, c.relhassubclass, c.relispartition,
      c.relpersistence, c.relam
    FROM reached
    INNER JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) reached.oid
    INNER JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
  ),
  trees AS (
    SELECT relations.oid, rule.ev_action::pg_catalog.text AS tree
    FROM relations
    INNER JOIN pg_catalog.pg_rewrite AS rule ON rule.ev_class OPERATOR(pg_catalog.=) relations.oid
    WHERE relations.relkind OPERATOR(pg_catalog.=) 'v'::pg_catalog."char"
      AND rule.rulename OPERATOR(pg_catalog.=) '_RETURN'::pg_catalog.name
  ),
  labels AS (
    -- Labels of the tree's nodes. In names, braces and blanks have a backslash before them, so a name can only add one.
    SELECT DISTINCT trees.oid, pg_catalog.split_part(node.text, ' ', 1) AS label
    FROM trees CROSS JOIN LATERAL pg_catalog.unnest(pg_catalog.string_to_array(trees.tree, '{')) AS node (text)
  ),
  fields AS (
    -- Fields that hold object ids, of the nodes that are admitted: their names and values.
    SELECT DISTINCT trees.oid AS view, pg_catalog.split_part(field.text, ' ', 1) AS name,
      pg_catalog.rtrim(pg_catalog.split_part(field.text, ' ', 2), ')}') AS value
    FROM trees CROSS JOIN LATERAL pg_catalog.unnest(pg_catalog.string_to_array(trees.tree, ' :')) AS field (text)
    WHERE pg_catalog.split_part(field.text, ' ', 1) OPERATOR(pg_catalog.=) ANY (
      '{funcid,aggfnoid,winfnoid,startInRangeFunc,endInRangeFunc,opno,eqop,sortop,relid,funccoltypes,vartype,consttype,'
      'resulttype,funcresulttype,opresulttype,aggtype,aggtranstype,wintype,casetype,typeId,type,array_typeid,'
      'element_typeid,row_typeid,coalescetype,minmaxtype,paramtype,refcontainertype,refelemtype,refrestype}'
      ::pg_catalog.text[]
    )
  ),
  ids AS (
    SELECT fields.view, fields.name, fields.value,
      CASE WHEN fields.value OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,9}$'::pg_catalog.text
        THEN fields.value::pg_catalog.oid END AS id
    FROM fields
  )
-- r: a relation; its object id, relkind and what keeps it from being plain, and the types of its columns.
SELECT 'r', relations.nspname::pg_catalog.text, relations.relname::pg_catalog.text,
  pg_catalog.concat(
    relations.relkind,
    CASE WHEN relations.relrowsecurity THEN 's' END,
    CASE WHEN relations.relhasrules AND EXISTS (
      SELECT FROM pg_catalog.pg_rewrite AS rule
      WHERE rule.ev_class OPERATOR(pg_catalog.=) relations.oid
        AND rule.rulename OPERATOR(pg_catalog.<>) '_RETURN'::pg_catalog.name
    ) THEN 'r' END,
    CASE WHEN relations.relhassubclass THEN 'c' END,
    CASE WHEN relations.relispartition THEN 'p' END,
    CASE WHEN relations.relpersistence OPERATOR(pg_catalog.=) 't'::pg_catalog."char" THEN 't' END,
    CASE WHEN relations.relam OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid THEN 'a' END
  ),
  pg_catalog.concat(relations.oid, ' ', ARRAY(
    SELECT DISTINCT a.atttypid
    FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid OPERATOR(pg_catalog.=) relations.oid
      AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2
      AND NOT a.attisdropped
  ))
FROM relations
UNION ALL
-- n: a node of a view's tree.
SELECT 'n', NULL, NULL, pg_catalog.concat(labels.oid), labels.label
FROM labels
WHERE labels.label OPERATOR(pg_catalog.~) '^[A-Z]'::pg_catalog.text
UNION ALL
-- The same for columns that are not of the snapshot (xmax, cmax, cmin), and for tables with columns that are computed when
-- they are read (PostgreSQL 18).
SELECT 'n', NULL, NULL, pg_catalog.concat(trees.oid), 'SYSTEM_COLUMN'
FROM trees
WHERE trees.tree OPERATOR(pg_catalog.~) ':varattno -[345] '::pg_catalog.text
UNION ALL
SELECT DISTINCT 'n', NULL, NULL, pg_catalog.concat(ids.view), 'COMPUTED'
FROM ids
INNER JOIN pg_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) ids.id
WHERE ids.name OPERATOR(pg_catalog.=) 'relid'::pg_catalog.text
  AND a.attgenerated OPERATOR(pg_catalog.=) 'v'::pg_catalog."char"
UNION ALL
-- i: a field of it that holds an object id of a relation (relid) or a type, or the definitions of columns (funccoltypes).
SELECT 'i', NULL, ids.name, pg_catalog.concat(ids.view), ids.value
FROM ids
WHERE NOT ids.name OPERATOR(pg_catalog.~)
  '^(funcid|aggfnoid|winfnoid|startInRangeFunc|endInRangeFunc|opno|eqop|sortop)$'::pg_catalog.text
UNION ALL
-- f: a function that it calls: is it one of the server's, i immutable and internal?
SELECT 'f', NULL, p.proname::pg_catalog.text, pg_catalog.concat(ids.view),
  pg_catalog.concat(
    CASE WHEN p.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid THEN 'b' END,
    CASE WHEN p.provolatile OPERATOR(pg_catalog.=) 'i'::pg_catalog."char"
      AND p.prolang OPERATOR(pg_catalog.=) 12::pg_catalog.oid THEN 'i' END
  )
FROM ids
INNER JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) ids.id
WHERE ids.name OPERATOR(pg_catalog.~) '^(funcid|aggfnoid|winfnoid|startInRangeFunc|endInRangeFunc)$'::pg_catalog.text
UNION ALL
-- o: an operator that it uses: the same; a if its operands have one type.
SELECT 'o', NULL, o.oprname::pg_catalog.text, pg_catalog.concat(ids.view),
  pg_catalog.concat(
    CASE WHEN o.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid THEN 'b' END,
    CASE WHEN p.provolatile OPERATOR(pg_catalog.=) 'i'::pg_catalog."char"
      AND p.prolang OPERATOR(pg_catalog.=) 12::pg_catalog.oid THEN 'i' END,
    CASE WHEN o.oprleft OPERATOR(pg_catalog.=) o.oprright THEN 'a' END
  )
FROM ids
INNER JOIN pg_catalog.pg_operator AS o ON o.oid OPERATOR(pg_catalog.=) ids.id
INNER JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) o.oprcode
WHERE ids.name OPERATOR(pg_catalog.~) '^(opno|eqop|sortop)$'::pg_catalog.text
