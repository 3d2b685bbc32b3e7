-- What users have added to a database. Columns: kind, schema, name, flags, detail.
-- Every name is qualified: neither search_path nor a user's operator can change what this reads.
-- It locks nothing of a user's: pg_get_viewdef() would (AccessShare on what the view reads), and then a LOCK … NOWAIT of
-- another session fails, or this waits behind one. So it reads what a view uses from the tree that the server stores.
WITH
  settings AS (
    SELECT pg_catalog.pg_my_temp_schema() AS temporary_schema
  ),
  schemas AS (
    -- Those whose objects a statement can name and which are not the server's own.
    SELECT n.oid, n.nspname
    FROM pg_catalog.pg_namespace AS n CROSS JOIN settings AS s
    WHERE n.oid OPERATOR(pg_catalog.=) s.temporary_schema
      OR (
        n.nspname OPERATOR(pg_catalog.<>) 'pg_catalog'::pg_catalog.name
        AND n.nspname OPERATOR(pg_catalog.<>) 'information_schema'::pg_catalog.name
        AND n.nspname OPERATOR(pg_catalog.<>) 'pg_toast'::pg_catalog.name
        AND NOT n.nspname OPERATOR(pg_catalog.~) '^pg_(toast_)?temp_'::pg_catalog.text
      )
  ),
  types AS (
    -- class: b built in; x built in, but its output looks into the catalogue; c a row of a table or a composite;
    -- d domain, to which its base type turns by itself; e enum; u any other type of a user.
    -- An array has the class of its elements.
    SELECT t.oid, t.typnamespace, t.typname, t.typtype, t.typrelid, element.oid IS NOT NULL AS is_array,
      COALESCE(element.oid, t.oid) AS element_oid,
      CASE
        WHEN t.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid THEN
          CASE
            WHEN t.typname OPERATOR(pg_catalog.~) '^_?(reg|aclitem$)'::pg_catalog.text THEN 'x'::pg_catalog.text
            ELSE 'b'::pg_catalog.text
          END
        WHEN COALESCE(element.typtype, t.typtype) OPERATOR(pg_catalog.=) 'e'::pg_catalog."char"
          THEN 'e'::pg_catalog.text
        WHEN COALESCE(element.typtype, t.typtype) OPERATOR(pg_catalog.=) 'c'::pg_catalog."char"
          THEN 'c'::pg_catalog.text
        WHEN COALESCE(element.typtype, t.typtype) OPERATOR(pg_catalog.=) 'd'::pg_catalog."char"
          THEN 'd'::pg_catalog.text
        ELSE 'u'::pg_catalog.text
      END AS class
    FROM pg_catalog.pg_type AS t
    LEFT JOIN pg_catalog.pg_type AS element
      ON element.oid OPERATOR(pg_catalog.=) t.typelem AND element.typarray OPERATOR(pg_catalog.=) t.oid
  ),
  reachable AS (
    -- Types of users into which a built-in type turns by itself.
    SELECT DISTINCT target.element_oid AS oid
    FROM pg_catalog.pg_cast AS c
    INNER JOIN types AS source ON source.oid OPERATOR(pg_catalog.=) c.castsource
    INNER JOIN types AS target ON target.oid OPERATOR(pg_catalog.=) c.casttarget
    WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
      AND c.castcontext OPERATOR(pg_catalog.=) 'i'::pg_catalog."char"
      AND source.class OPERATOR(pg_catalog.<>) 'e'::pg_catalog.text
      AND source.class OPERATOR(pg_catalog.<>) 'u'::pg_catalog.text
  ),
  casts AS (
    -- Casts that call a function of a user.
    SELECT source.class AS source_class, target.class AS target_class
    FROM pg_catalog.pg_cast AS c
    INNER JOIN types AS source ON source.oid OPERATOR(pg_catalog.=) c.castsource
    INNER JOIN types AS target ON target.oid OPERATOR(pg_catalog.=) c.casttarget
    WHERE c.castfunc OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  ),
  views AS (
    SELECT c.oid, schemas.nspname, c.relname, rule.ev_action::pg_catalog.text AS tree
    FROM pg_catalog.pg_class AS c
    INNER JOIN schemas ON schemas.oid OPERATOR(pg_catalog.=) c.relnamespace
    INNER JOIN pg_catalog.pg_rewrite AS rule ON rule.ev_class OPERATOR(pg_catalog.=) c.oid
    WHERE c.relkind OPERATOR(pg_catalog.=) 'v'::pg_catalog."char"
      AND rule.rulename OPERATOR(pg_catalog.=) '_RETURN'::pg_catalog.name
  ),
  uses AS (
    -- Labels of nodes, and object ids with the field they stand in. A name in the tree cannot look like either: in
    -- names, braces and blanks have a backslash before them.
    SELECT DISTINCT views.oid AS view_oid, found.parts[1] AS label, found.parts[2] AS field,
      found.parts[3]::pg_catalog.oid AS oid
    FROM views
    CROSS JOIN LATERAL pg_catalog.regexp_matches(
      views.tree,
      '(?:^|[^\\])\{([A-Z_]+)|:(funcid|aggfnoid|winfnoid|startInRangeFunc|endInRangeFunc|opno|eqop|sortop|relid|[a-z_]*type|[a-z_]*typeid) ([0-9]+)',
      'g'
    ) AS found (parts)
  )
SELECT 'v', NULL, pg_catalog.current_setting('server_version_num'), NULL, NULL
UNION ALL
SELECT 'u', NULL, CURRENT_USER::pg_catalog.text, NULL, NULL
UNION ALL
SELECT 'l', NULL, SESSION_USER::pg_catalog.text, NULL, NULL
UNION ALL
SELECT 's', NULL, schema.name::pg_catalog.text, pg_catalog.concat(schema.position), NULL
FROM ROWS FROM (pg_catalog.unnest(pg_catalog.current_schemas(true))) WITH ORDINALITY AS schema (name, position)
UNION ALL
SELECT 'd', NULL, NULL,
  pg_catalog.concat(
    CASE WHEN settings.temporary_schema OPERATOR(pg_catalog.<>) 0::pg_catalog.oid THEN 't' END,
    CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_listening_channels()) THEN 'l' END,
    -- A cast between types that statements have without naming a user's type.
    CASE WHEN EXISTS (
      SELECT FROM casts
      WHERE casts.source_class OPERATOR(pg_catalog.~) '[bcdx]'::pg_catalog.text
        AND casts.target_class OPERATOR(pg_catalog.~) '[bcdx]'::pg_catalog.text
    ) THEN 'c' END,
    CASE WHEN EXISTS (
      SELECT FROM casts
      WHERE casts.source_class OPERATOR(pg_catalog.=) 'e'::pg_catalog.text
        OR casts.target_class OPERATOR(pg_catalog.=) 'e'::pg_catalog.text
    ) THEN 'e' END,
    -- Ways to sort, compare and hash (methods 403 and 405) types that are not a user's own.
    CASE WHEN EXISTS (
      SELECT FROM pg_catalog.pg_opclass AS c
      INNER JOIN types ON types.oid OPERATOR(pg_catalog.=) c.opcintype
      WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
        AND (c.opcmethod OPERATOR(pg_catalog.=) 403::pg_catalog.oid
          OR c.opcmethod OPERATOR(pg_catalog.=) 405::pg_catalog.oid)
        AND types.class OPERATOR(pg_catalog.<>) 'u'::pg_catalog.text
    ) THEN 'o' END
  ),
  NULL
FROM settings
UNION ALL
-- Relations: relkind, then what keeps them from being plain; their object id.
SELECT 'r', schemas.nspname::pg_catalog.text, c.relname::pg_catalog.text,
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
    CASE WHEN c.relpersistence OPERATOR(pg_catalog.=) 't'::pg_catalog."char" THEN 't' END,
    CASE WHEN c.relam OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid THEN 'a' END,
    CASE WHEN columns.has_enum THEN 'e' END,
    CASE WHEN columns.has_other THEN 'u' END
  ),
  pg_catalog.concat(c.oid)
FROM pg_catalog.pg_class AS c
INNER JOIN schemas ON schemas.oid OPERATOR(pg_catalog.=) c.relnamespace
LEFT JOIN (
  SELECT a.attrelid,
    pg_catalog.bool_or(types.class OPERATOR(pg_catalog.=) 'e'::pg_catalog.text) AS has_enum,
    pg_catalog.bool_or(types.class OPERATOR(pg_catalog.~) '[cdux]'::pg_catalog.text) AS has_other
  FROM pg_catalog.pg_attribute AS a
  INNER JOIN types ON types.oid OPERATOR(pg_catalog.=) a.atttypid
  WHERE a.attrelid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
    AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2
    AND types.class OPERATOR(pg_catalog.<>) 'b'::pg_catalog.text
  GROUP BY a.attrelid
) AS columns ON columns.attrelid OPERATOR(pg_catalog.=) c.oid
WHERE c.relkind OPERATOR(pg_catalog.~) '[rvmpfS]'::pg_catalog.text
UNION ALL
-- Functions: 1 if one can be called with one argument, f if that can be a row.
SELECT 'f', n.nspname::pg_catalog.text, p.proname::pg_catalog.text,
  pg_catalog.concat(
    CASE WHEN pg_catalog.bool_or(call.takes_one) THEN '1' END,
    CASE WHEN pg_catalog.bool_or(
      call.takes_one AND (
        argument.class OPERATOR(pg_catalog.=) 'c'::pg_catalog.text
        OR argument.typtype OPERATOR(pg_catalog.~) '[pd]'::pg_catalog.text
        OR reachable.oid IS NOT NULL
      )
    ) THEN 'f' END
  ),
  NULL
FROM pg_catalog.pg_proc AS p
INNER JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
CROSS JOIN LATERAL (
  SELECT p.pronargs OPERATOR(pg_catalog.>=) 1::pg_catalog.int2
    AND (p.pronargs OPERATOR(pg_catalog.-) p.pronargdefaults) OPERATOR(pg_catalog.<=) 1::pg_catalog.int2 AS takes_one
) AS call
LEFT JOIN types AS argument ON argument.oid OPERATOR(pg_catalog.=) p.proargtypes[0]
LEFT JOIN reachable ON reachable.oid OPERATOR(pg_catalog.=) argument.element_oid
WHERE p.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  OR n.nspname OPERATOR(pg_catalog.<>) 'pg_catalog'::pg_catalog.name
GROUP BY n.nspname, p.proname
UNION ALL
-- Operators: left and right operand, each - (none), b (can be of a built-in type), e (an enum) or u.
SELECT DISTINCT 'o', n.nspname::pg_catalog.text, o.oprname::pg_catalog.text,
  pg_catalog.concat(
    CASE
      WHEN o.oprleft OPERATOR(pg_catalog.=) 0::pg_catalog.oid THEN '-'
      WHEN left_type.class OPERATOR(pg_catalog.~) '[eu]'::pg_catalog.text
        AND NOT EXISTS (SELECT FROM reachable WHERE reachable.oid OPERATOR(pg_catalog.=) left_type.element_oid)
        THEN left_type.class
      ELSE 'b'
    END,
    CASE
      WHEN o.oprright OPERATOR(pg_catalog.=) 0::pg_catalog.oid THEN '-'
      WHEN right_type.class OPERATOR(pg_catalog.~) '[eu]'::pg_catalog.text
        AND NOT EXISTS (SELECT FROM reachable WHERE reachable.oid OPERATOR(pg_catalog.=) right_type.element_oid)
        THEN right_type.class
      ELSE 'b'
    END
  ),
  NULL
FROM pg_catalog.pg_operator AS o
INNER JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) o.oprnamespace
LEFT JOIN types AS left_type ON left_type.oid OPERATOR(pg_catalog.=) o.oprleft
LEFT JOIN types AS right_type ON right_type.oid OPERATOR(pg_catalog.=) o.oprright
WHERE o.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  OR n.nspname OPERATOR(pg_catalog.<>) 'pg_catalog'::pg_catalog.name
UNION ALL
-- Types: typtype. Row types have the names of their relations, and array types cannot be named by those of others.
SELECT 't', n.nspname::pg_catalog.text, t.typname::pg_catalog.text, t.typtype::pg_catalog.text, NULL
FROM types AS t
INNER JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) t.typnamespace
LEFT JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) t.typrelid
WHERE (t.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
    OR n.nspname OPERATOR(pg_catalog.<>) 'pg_catalog'::pg_catalog.name)
  AND NOT t.is_array
  AND (c.relkind IS NULL OR c.relkind OPERATOR(pg_catalog.=) 'c'::pg_catalog."char")
UNION ALL
-- What views use: q proves that the tree was understood, r is a relation (its object id), n a node that is not one of plain queries, and what is more than an
-- immutable internal function of the server: f a function, o an operator (capital if a user's), t a type, e an enum.
SELECT 'w', views.nspname::pg_catalog.text, views.relname::pg_catalog.text, found.kind, found.detail
FROM uses
INNER JOIN views ON views.oid OPERATOR(pg_catalog.=) uses.view_oid
CROSS JOIN LATERAL (
  SELECT 'r' AS kind, pg_catalog.concat(uses.oid) AS detail
  WHERE uses.field OPERATOR(pg_catalog.=) 'relid'::pg_catalog.text
    AND uses.oid OPERATOR(pg_catalog.<>) 0::pg_catalog.oid
  UNION ALL
  SELECT 'q', NULL
  WHERE uses.label OPERATOR(pg_catalog.=) 'QUERY'::pg_catalog.text
  UNION ALL
  SELECT 'n', uses.label
  WHERE uses.label IS NOT NULL
    AND NOT uses.label OPERATOR(pg_catalog.=) ANY (
      '{QUERY,RANGETBLENTRY,RTE,RTEPERMISSIONINFO,ALIAS,RANGETBLREF,JOINEXPR,FROMEXPR,TARGETENTRY,COMMONTABLEEXPR,'
      'SETOPERATIONSTMT,SORTGROUPCLAUSE,GROUPINGSET,GROUPINGFUNC,WINDOWCLAUSE,WINDOWFUNC,AGGREF,RANGETBLFUNCTION,'
      'SUBLINK,PARAM,VAR,CONST,FUNCEXPR,NAMEDARGEXPR,OPEXPR,DISTINCTEXPR,NULLIFEXPR,SCALARARRAYOPEXPR,BOOLEXPR,'
      'NULLTEST,BOOLEANTEST,RELABELTYPE,ARRAYCOERCEEXPR,COLLATEEXPR,SUBSCRIPTINGREF,CASEEXPR,CASE,CASEWHEN,WHEN,'
      'CASETESTEXPR,ARRAYEXPR,ARRAY,ROWEXPR,ROW,COALESCEEXPR,COALESCE,MINMAXEXPR,MINMAX}'::pg_catalog.text[]
    )
  UNION ALL
  SELECT CASE WHEN p.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid THEN 'f' ELSE 'F' END, p.proname::pg_catalog.text
  FROM pg_catalog.pg_proc AS p
  WHERE p.oid OPERATOR(pg_catalog.=) uses.oid
    AND uses.field OPERATOR(pg_catalog.~) '^(funcid|aggfnoid|winfnoid|.*Func)$'::pg_catalog.text
    AND NOT (
      p.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid
      AND p.provolatile OPERATOR(pg_catalog.=) 'i'::pg_catalog."char"
      AND p.prolang OPERATOR(pg_catalog.=) 12::pg_catalog.oid
      AND p.proname OPERATOR(pg_catalog.<>) 'satisfies_hash_partition'::pg_catalog.name
    )
  UNION ALL
  SELECT CASE WHEN o.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid THEN 'o' ELSE 'O' END, o.oprname::pg_catalog.text
  FROM pg_catalog.pg_operator AS o
  LEFT JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) o.oprcode
  WHERE o.oid OPERATOR(pg_catalog.=) uses.oid
    AND uses.field OPERATOR(pg_catalog.~) '^(opno|eqop|sortop)$'::pg_catalog.text
    AND (
      o.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
      OR p.provolatile OPERATOR(pg_catalog.<>) 'i'::pg_catalog."char"
      OR p.prolang OPERATOR(pg_catalog.<>) 12::pg_catalog.oid
    )
  UNION ALL
  SELECT CASE WHEN types.class OPERATOR(pg_catalog.=) 'e'::pg_catalog.text THEN 'e' ELSE 't' END,
    types.typname::pg_catalog.text
  FROM types
  WHERE types.oid OPERATOR(pg_catalog.=) uses.oid
    AND uses.field OPERATOR(pg_catalog.~) 'type(id)?$'::pg_catalog.text
    AND types.class OPERATOR(pg_catalog.<>) 'b'::pg_catalog.text
) AS found
