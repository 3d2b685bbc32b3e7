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
    -- Types that are not plain built-in ones. class: x built in, but its output looks into the catalogue; c a row of a
    -- table or a composite; d domain, to which its base type turns by itself; e enum; u any other type of a user.
    -- An array has the class of its elements.
    SELECT t.oid, t.typnamespace, t.typname, t.typtype, t.typrelid, element.oid IS NOT NULL AS is_array,
      COALESCE(element.oid, t.oid) AS element_oid,
      CASE
        WHEN t.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid THEN 'x'::pg_catalog.text
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
    WHERE t.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
      OR t.typname OPERATOR(pg_catalog.~) '^_?(reg|aclitem$)'::pg_catalog.text
  ),
  casts AS (
    -- Casts of users; class b is a plain built-in type.
    SELECT c.castcontext, c.castfunc, target.element_oid AS target_oid,
      COALESCE(source.class, 'b'::pg_catalog.text) AS source_class,
      COALESCE(target.class, 'b'::pg_catalog.text) AS target_class
    FROM pg_catalog.pg_cast AS c
    LEFT JOIN types AS source ON source.oid OPERATOR(pg_catalog.=) c.castsource
    LEFT JOIN types AS target ON target.oid OPERATOR(pg_catalog.=) c.casttarget
    WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  ),
  reachable AS (
    -- Types of users into which a type turns by itself that is none of a user's.
    SELECT DISTINCT casts.target_oid AS oid
    FROM casts
    WHERE casts.castcontext OPERATOR(pg_catalog.=) 'i'::pg_catalog."char"
      AND casts.source_class OPERATOR(pg_catalog.~) '[bcdx]'::pg_catalog.text
      AND casts.target_oid IS NOT NULL
  ),
  views AS (
    SELECT schemas.nspname, c.relname, rule.ev_action::pg_catalog.text AS tree
    FROM pg_catalog.pg_class AS c
    INNER JOIN schemas ON schemas.oid OPERATOR(pg_catalog.=) c.relnamespace
    INNER JOIN pg_catalog.pg_rewrite AS rule ON rule.ev_class OPERATOR(pg_catalog.=) c.oid
    WHERE c.relkind OPERATOR(pg_catalog.=) 'v'::pg_catalog."char"
      AND rule.rulename OPERATOR(pg_catalog.=) '_RETURN'::pg_catalog.name
  ),
  labels AS (
    -- Labels of the tree's nodes. In names, braces and blanks have a backslash before them, so a name can only add one.
    SELECT DISTINCT views.nspname, views.relname, pg_catalog.split_part(node.text, ' ', 1) AS label
    FROM views CROSS JOIN LATERAL pg_catalog.unnest(pg_catalog.string_to_array(views.tree, '{')) AS node (text)
  ),
  fields AS (
    -- Fields that hold object ids, of the nodes that are admitted below.
    SELECT DISTINCT views.nspname, views.relname, pg_catalog.split_part(field.text, ' ', 1) AS name,
      pg_catalog.rtrim(pg_catalog.split_part(field.text, ' ', 2), ')}') AS value
    FROM views CROSS JOIN LATERAL pg_catalog.unnest(pg_catalog.string_to_array(views.tree, ' :')) AS field (text)
    WHERE pg_catalog.split_part(field.text, ' ', 1) OPERATOR(pg_catalog.=) ANY (
      '{funcid,aggfnoid,winfnoid,startInRangeFunc,endInRangeFunc,opno,eqop,sortop,relid,funccoltypes,vartype,consttype,'
      'resulttype,funcresulttype,opresulttype,aggtype,aggtranstype,wintype,casetype,typeId,type,array_typeid,'
      'element_typeid,row_typeid,coalescetype,minmaxtype,paramtype,refcontainertype,refelemtype,refrestype}'
      ::pg_catalog.text[]
    )
  ),
  ids AS (
    SELECT DISTINCT fields.nspname, fields.relname,
      CASE
        WHEN fields.name OPERATOR(pg_catalog.~) '^(opno|eqop|sortop)$'::pg_catalog.text THEN 'o'::pg_catalog.text
        WHEN fields.name OPERATOR(pg_catalog.=) 'relid'::pg_catalog.text THEN 'r'::pg_catalog.text
        WHEN fields.name OPERATOR(pg_catalog.~) 'type(id|Id)?$'::pg_catalog.text THEN 't'::pg_catalog.text
        ELSE 'f'::pg_catalog.text
      END AS kind,
      fields.value::pg_catalog.oid AS oid
    FROM fields
    WHERE fields.value OPERATOR(pg_catalog.~) '^[1-9][0-9]{0,9}$'::pg_catalog.text
  ),
  uses AS (
    SELECT labels.nspname, labels.relname, 'q'::pg_catalog.text AS kind, NULL::pg_catalog.text AS detail
    FROM labels
    WHERE labels.label OPERATOR(pg_catalog.=) 'QUERY'::pg_catalog.text
    UNION ALL
    SELECT labels.nspname, labels.relname, 'n'::pg_catalog.text, labels.label
    FROM labels
    WHERE labels.label OPERATOR(pg_catalog.~) '^[A-Z]'::pg_catalog.text
      AND NOT labels.label OPERATOR(pg_catalog.=) ANY (
        '{QUERY,RANGETBLENTRY,RTE,RTEPERMISSIONINFO,ALIAS,RANGETBLREF,JOINEXPR,FROMEXPR,TARGETENTRY,COMMONTABLEEXPR,'
        'SETOPERATIONSTMT,SORTGROUPCLAUSE,GROUPINGSET,GROUPINGFUNC,WINDOWCLAUSE,WINDOWFUNC,AGGREF,RANGETBLFUNCTION,'
        'SUBLINK,PARAM,VAR,CONST,FUNCEXPR,NAMEDARGEXPR,OPEXPR,DISTINCTEXPR,NULLIFEXPR,SCALARARRAYOPEXPR,BOOLEXPR,'
        'NULLTEST,BOOLEANTEST,RELABELTYPE,ARRAYCOERCEEXPR,COLLATEEXPR,SUBSCRIPTINGREF,CASEEXPR,CASE,CASEWHEN,WHEN,'
        'CASETESTEXPR,ARRAYEXPR,ARRAY,ROWEXPR,ROW,COALESCEEXPR,COALESCE,MINMAXEXPR,MINMAX}'::pg_catalog.text[]
      )
    UNION ALL
    -- A record function's column definitions.
    SELECT fields.nspname, fields.relname, 'n'::pg_catalog.text, 'FUNCCOLTYPES'::pg_catalog.text
    FROM fields
    WHERE fields.name OPERATOR(pg_catalog.=) 'funccoltypes'::pg_catalog.text
      AND fields.value OPERATOR(pg_catalog.<>) '<>'::pg_catalog.text
    UNION ALL
    SELECT ids.nspname, ids.relname, 'r'::pg_catalog.text, pg_catalog.concat(ids.oid)
    FROM ids
    WHERE ids.kind OPERATOR(pg_catalog.=) 'r'::pg_catalog.text
    UNION ALL
    SELECT ids.nspname, ids.relname,
      CASE WHEN p.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid THEN 'f'::pg_catalog.text ELSE 'F'::pg_catalog.text END,
      p.proname::pg_catalog.text
    FROM ids
    INNER JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) ids.oid
    WHERE ids.kind OPERATOR(pg_catalog.=) 'f'::pg_catalog.text
      AND NOT (
        p.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid
        AND p.provolatile OPERATOR(pg_catalog.=) 'i'::pg_catalog."char"
        AND p.prolang OPERATOR(pg_catalog.=) 12::pg_catalog.oid
        AND p.proname OPERATOR(pg_catalog.<>) 'satisfies_hash_partition'::pg_catalog.name
      )
    UNION ALL
    SELECT ids.nspname, ids.relname,
      CASE WHEN o.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid THEN 'o'::pg_catalog.text ELSE 'O'::pg_catalog.text END,
      o.oprname::pg_catalog.text
    FROM ids
    INNER JOIN pg_catalog.pg_operator AS o ON o.oid OPERATOR(pg_catalog.=) ids.oid
    INNER JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) o.oprcode
    WHERE ids.kind OPERATOR(pg_catalog.=) 'o'::pg_catalog.text
      AND NOT (
        o.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid
        AND p.provolatile OPERATOR(pg_catalog.=) 'i'::pg_catalog."char"
        AND p.prolang OPERATOR(pg_catalog.=) 12::pg_catalog.oid
      )
    UNION ALL
    SELECT ids.nspname, ids.relname,
      CASE WHEN types.class OPERATOR(pg_catalog.=) 'e'::pg_catalog.text
        THEN 'e'::pg_catalog.text ELSE 't'::pg_catalog.text END,
      types.typname::pg_catalog.text
    FROM ids
    INNER JOIN types ON types.oid OPERATOR(pg_catalog.=) ids.oid
    WHERE ids.kind OPERATOR(pg_catalog.=) 't'::pg_catalog.text
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
    -- A cast by a user's function between types that statements have without naming a user's type.
    CASE WHEN EXISTS (
      SELECT FROM casts
      WHERE casts.castfunc OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
        AND casts.source_class OPERATOR(pg_catalog.~) '[bcdx]'::pg_catalog.text
        AND casts.target_class OPERATOR(pg_catalog.~) '[bcdx]'::pg_catalog.text
    ) THEN 'c' END,
    CASE WHEN EXISTS (
      SELECT FROM casts
      WHERE casts.castfunc OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
        AND (casts.source_class OPERATOR(pg_catalog.=) 'e'::pg_catalog.text
          OR casts.target_class OPERATOR(pg_catalog.=) 'e'::pg_catalog.text)
    ) THEN 'e' END,
    -- Ways to sort, compare and hash (methods 403 and 405) types that are not a user's own.
    CASE WHEN EXISTS (
      SELECT FROM pg_catalog.pg_opclass AS c
      LEFT JOIN types ON types.oid OPERATOR(pg_catalog.=) c.opcintype
      WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
        AND (c.opcmethod OPERATOR(pg_catalog.=) 403::pg_catalog.oid
          OR c.opcmethod OPERATOR(pg_catalog.=) 405::pg_catalog.oid)
        AND COALESCE(types.class, 'b'::pg_catalog.text) OPERATOR(pg_catalog.<>) 'u'::pg_catalog.text
    ) THEN 'o' END,
    -- Extensions that answer queries of plain tables from elsewhere, without this snapshot.
    CASE WHEN EXISTS (
      SELECT FROM pg_catalog.pg_extension AS e
      WHERE e.extname OPERATOR(pg_catalog.=) ANY ('{citus,pg_duckdb}'::pg_catalog.name[])
    ) THEN 'x' END,
    -- Functions that may open, move or close a cursor of the session by its name.
    CASE WHEN EXISTS (
      SELECT FROM pg_catalog.pg_proc AS p
      WHERE p.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
        AND p.prosrc OPERATOR(pg_catalog.~*)
          '[[:<:]](refcursor|cursor|fetch|move|open|close|cursor_to_xml|cursor_to_xmlschema|current[[:space:]]+of)[[:>:]]'
          ::pg_catalog.text
    ) THEN 'm' END
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
    pg_catalog.bool_or(types.class OPERATOR(pg_catalog.<>) 'e'::pg_catalog.text) AS has_other
  FROM pg_catalog.pg_attribute AS a
  INNER JOIN types ON types.oid OPERATOR(pg_catalog.=) a.atttypid
  WHERE a.attrelid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
    AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2
    AND (
      a.atttypid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
      OR a.atttypid OPERATOR(pg_catalog.=) ANY (ARRAY(
        SELECT types.oid FROM types WHERE types.class OPERATOR(pg_catalog.=) 'x'::pg_catalog.text
      ))
    )
  GROUP BY a.attrelid
) AS columns ON columns.attrelid OPERATOR(pg_catalog.=) c.oid
WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{r,v,m,p,f,S}'::pg_catalog."char"[])
UNION ALL
-- Functions: 1 if one can be called with one argument, f if that can be a row.
SELECT 'f', n.nspname::pg_catalog.text, p.proname::pg_catalog.text,
  pg_catalog.concat(
    CASE WHEN pg_catalog.bool_or(call.takes_one) THEN '1' END,
    CASE WHEN pg_catalog.bool_or(
      call.takes_one AND (
        argument.typtype OPERATOR(pg_catalog.=) ANY ('{c,p,d}'::pg_catalog."char"[])
        OR odd.class OPERATOR(pg_catalog.=) 'c'::pg_catalog.text
        OR EXISTS (SELECT FROM reachable WHERE reachable.oid OPERATOR(pg_catalog.=) odd.element_oid)
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
LEFT JOIN pg_catalog.pg_type AS argument ON argument.oid OPERATOR(pg_catalog.=) p.proargtypes[0]
LEFT JOIN types AS odd ON odd.oid OPERATOR(pg_catalog.=) p.proargtypes[0]
WHERE p.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
GROUP BY n.nspname, p.proname
UNION ALL
-- Operators: left and right operand, each - (none), b (can be of a built-in type), e (an enum) or u.
SELECT 'o', n.nspname::pg_catalog.text, o.oprname::pg_catalog.text,
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
UNION ALL
-- Types: typtype. Row types have the names of their relations, and array types cannot be named by those of others.
SELECT 't', n.nspname::pg_catalog.text, t.typname::pg_catalog.text, t.typtype::pg_catalog.text, NULL
FROM types AS t
INNER JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) t.typnamespace
LEFT JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) t.typrelid
WHERE t.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  AND NOT t.is_array
  AND (c.relkind IS NULL OR c.relkind OPERATOR(pg_catalog.=) 'c'::pg_catalog."char")
UNION ALL
-- Columns that hold large objects' ids: what their comments say of reading ahead; their relation's object id and their number.
SELECT 'c', schemas.nspname::pg_catalog.text, a.attname::pg_catalog.text,
  pg_catalog.substring(
    d.description,
    '[[:<:]]onetrip[.]lob_prefetch[[:space:]]*=[[:space:]]*([-+[:alnum:]]+)'::pg_catalog.text
  ),
  pg_catalog.concat(c.oid, ' ', a.attnum)
FROM pg_catalog.pg_class AS c
INNER JOIN schemas ON schemas.oid OPERATOR(pg_catalog.=) c.relnamespace
INNER JOIN pg_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) c.oid
INNER JOIN pg_catalog.pg_type AS t ON t.oid OPERATOR(pg_catalog.=) a.atttypid
LEFT JOIN pg_catalog.pg_description AS d
  ON d.classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
  AND d.objoid OPERATOR(pg_catalog.=) c.oid AND d.objsubid OPERATOR(pg_catalog.=) a.attnum
WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{r,v,m,p,f}'::pg_catalog."char"[])
  AND NOT c.relispartition
  AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2
  AND NOT a.attisdropped
  AND (t.oid OPERATOR(pg_catalog.=) 26::pg_catalog.oid OR t.typbasetype OPERATOR(pg_catalog.=) 26::pg_catalog.oid)
UNION ALL
-- What views use: q proves that the tree was understood, r is a relation (its object id), n a node that is not one of
-- plain queries, and what is more than an immutable internal function of the server: f a function, o an operator
-- (capital if a user's), t a type, e an enum.
SELECT 'w', uses.nspname::pg_catalog.text, uses.relname::pg_catalog.text, uses.kind, uses.detail
FROM uses
