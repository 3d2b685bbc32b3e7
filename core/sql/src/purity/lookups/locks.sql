-- What functions of users may do besides reading and writing rows, as far as their sources tell: take a lock that conflicts
-- with a reader's, or change the catalogue. Three answers: whether any may, and whether one may run where nobody calls it
-- by name, as rows are written (triggers and defaults too) or read (views, policies, operators, casts, domains, indexes).
-- The fourth answer: whether one may do anything but read when a statement is only parsed or planned. Parsing a literal checks its
-- domain, and planning runs functions that are not VOLATILE. These may do no more than read by themselves, but may call others.
-- The fifth answer: whether an event trigger runs one at a login.
-- What one of these calls by name counts as well, and what runs a text or writes into the system's tables counts as
-- changing the catalogue. A body of standard SQL (`BEGIN ATOMIC`) has no source, but a tree, which is searched for these
-- two; what it calls is in pg_depend. Where any function acts, what is stored as an expression that runs a text (stored.sql) may come
-- to it. The source of a function in C is its symbol. Other languages are not read.
users AS MATERIALIZED (
  SELECT p.oid, p.proname, pg_catalog.lower(p.proname::pg_catalog.text) AS name, p.prosrc,
    pg_catalog.to_jsonb(p) OPERATOR(pg_catalog.->>) 'prosqlbody'::pg_catalog.text AS body, l.lanname::pg_catalog.text AS language,
    p.pronargs, p.proargtypes, p.provolatile OPERATOR(pg_catalog.=) 'v'::pg_catalog."char" AS is_volatile
  FROM pg_catalog.pg_proc AS p
  JOIN pg_catalog.pg_language AS l ON l.oid OPERATOR(pg_catalog.=) p.prolang
  WHERE p.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
), acting AS MATERIALIZED (
  SELECT u.oid FROM users AS u
  WHERE CASE
    WHEN u.language OPERATOR(pg_catalog.=) ANY ('{sql,plpgsql,internal}'::pg_catalog.text[]) AND u.prosrc OPERATOR(pg_catalog.~*)
      '[[:<:]]((cursor|query|table|schema|database)_to_xml\w*|ts_stat|ts_rewrite)[[:>:]]|u&"'::pg_catalog.text THEN true
    WHEN u.prosrc OPERATOR(pg_catalog.~*)
      '[[:<:]](update|into|delete[[:space:]]+from)[[:space:]]+(only[[:space:]]+)?("?pg_catalog"?[[:space:]]*\.[[:space:]]*)?"?pg_'
      ::pg_catalog.text THEN true
    WHEN u.body OPERATOR(pg_catalog.~) ':funcid (292[3-9]|2930|293[3-8]|3685|3689|3690) '::pg_catalog.text THEN true
    WHEN u.body OPERATOR(pg_catalog.~) ':resultRelation [1-9]'::pg_catalog.text
      THEN u.body OPERATOR(pg_catalog.~) ':relid ([0-9]{1,4}|1[0-5][0-9]{3}) '::pg_catalog.text
    WHEN u.language OPERATOR(pg_catalog.=) 'internal'::pg_catalog.text THEN false
    WHEN u.language OPERATOR(pg_catalog.=) 'c'::pg_catalog.text
      THEN u.prosrc OPERATOR(pg_catalog.~*) '(create|alter|drop|truncate|execute|grant|revoke)'::pg_catalog.text
    WHEN u.language OPERATOR(pg_catalog.=) 'plpgsql'::pg_catalog.text THEN u.prosrc OPERATOR(pg_catalog.~*)
      '[[:<:]](lock|alter|create|drop|truncate|reindex|cluster|refresh|execute|do|call|grant|revoke|import|reassign)[[:>:]]'
      ::pg_catalog.text
    WHEN u.language OPERATOR(pg_catalog.=) 'sql'::pg_catalog.text THEN
      pg_catalog.regexp_replace(u.prosrc, '(insert|merge)[[:space:]]+into'::pg_catalog.text, ''::pg_catalog.text,
        'gi'::pg_catalog.text) OPERATOR(pg_catalog.~*)
      '[[:<:]](lock|alter|create|drop|truncate|reindex|cluster|refresh|do|call|grant|revoke|import|reassign|into)[[:>:]]'
      ::pg_catalog.text
    ELSE true END
), early AS MATERIALIZED (
  SELECT u.prosrc, u.body, u.language FROM users AS u
  WHERE NOT u.is_volatile AND u.language OPERATOR(pg_catalog.<>) ALL ('{c,internal}'::pg_catalog.text[])
), checks (is_volatile) AS MATERIALIZED (
  -- Functions of domains' checks, the server's own too.
  SELECT p.provolatile OPERATOR(pg_catalog.=) 'v'::pg_catalog."char"
  FROM pg_catalog.pg_constraint AS c
  CROSS JOIN LATERAL pg_catalog.regexp_matches(c.conbin::pg_catalog.text, ':(?:op)?funcid ([0-9]+) '::pg_catalog.text,
    'g'::pg_catalog.text) AS called (id)
  JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) called.id[1]::pg_catalog.oid
  WHERE c.contypid OPERATOR(pg_catalog.>) 0::pg_catalog.oid AND c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
), carried (by_relation) AS MATERIALIZED (
  -- VOLATILE functions that run where nobody calls them as rows are read: by views and policies, whose relation a source names, or
  -- by operators, casts and the like, which it need not name. Checks of tables are for writes, and of domains above.
  SELECT d.classid OPERATOR(pg_catalog.=) ANY ('{2618,3256}'::pg_catalog.oid[])
  FROM pg_catalog.pg_depend AS d JOIN users AS v ON v.oid OPERATOR(pg_catalog.=) d.refobjid
  WHERE d.refclassid OPERATOR(pg_catalog.=) 1255::pg_catalog.oid AND v.is_volatile
    AND v.language OPERATOR(pg_catalog.<>) ALL ('{c,internal}'::pg_catalog.text[])
    AND d.classid OPERATOR(pg_catalog.<>) ALL ('{1255,2604,2606,2620,3466}'::pg_catalog.oid[])
), source (length) AS MATERIALIZED (
  -- More than can be looked through, or followed, in a few milliseconds is taken to hold everything.
  SELECT pg_catalog.sum(pg_catalog.length(u.prosrc)) FROM users AS u
), uncalled (oid, of_reads) AS (
  SELECT d.refobjid, d.classid OPERATOR(pg_catalog.<>) ALL ('{2604,2620}'::pg_catalog.oid[])
  FROM pg_catalog.pg_depend AS d
  WHERE d.refclassid OPERATOR(pg_catalog.=) 1255::pg_catalog.oid
    AND d.refobjid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
    AND d.classid OPERATOR(pg_catalog.<>) ALL ('{1255,3466}'::pg_catalog.oid[])
  UNION
  -- Sources are searched for words of ASCII: a function of another name may be called anywhere.
  SELECT u.oid, true FROM users AS u
  WHERE u.name OPERATOR(pg_catalog.!~) '^[[:alnum:]_$]+$'::pg_catalog.text OR EXISTS (SELECT FROM pg_catalog.pg_proc AS p WHERE p.proname OPERATOR(pg_catalog.=) u.proname
      AND p.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid)
    OR u.pronargs OPERATOR(pg_catalog.=) 1::pg_catalog.int2 AND EXISTS (SELECT FROM pg_catalog.pg_type AS t
      WHERE t.oid OPERATOR(pg_catalog.=) u.proargtypes[0] AND t.typtype OPERATOR(pg_catalog.=) ANY ('{c,p}'::pg_catalog."char"[])
        AND t.oid OPERATOR(pg_catalog.<>) ALL ('{2275,2281}'::pg_catalog.oid[]))
  UNION
  SELECT called.oid, r.of_reads
  FROM uncalled AS r
  JOIN users AS u ON u.oid OPERATOR(pg_catalog.=) r.oid
  CROSS JOIN LATERAL pg_catalog.regexp_split_to_table(
    pg_catalog.concat(pg_catalog.lower(u.prosrc), ' ', (
      SELECT pg_catalog.string_agg(named.name, ' '::pg_catalog.text)
      FROM pg_catalog.pg_depend AS d JOIN users AS named ON named.oid OPERATOR(pg_catalog.=) d.refobjid
      WHERE d.classid OPERATOR(pg_catalog.=) 1255::pg_catalog.oid AND d.objid OPERATOR(pg_catalog.=) u.oid
        AND d.refclassid OPERATOR(pg_catalog.=) 1255::pg_catalog.oid
    )), '[^[:alnum:]_$]+'::pg_catalog.text
  ) AS word (text)
  -- The parser cuts long names, here as there.
  JOIN users AS called ON called.name OPERATOR(pg_catalog.=) pg_catalog."left"(word.text, 63)
)
SELECT
  CASE WHEN s.length OPERATOR(pg_catalog.>) 500000::pg_catalog.int8 THEN true
    ELSE EXISTS (SELECT FROM acting)
  END::pg_catalog.text,
  CASE WHEN s.length OPERATOR(pg_catalog.>) 500000::pg_catalog.int8 THEN true
    WHEN NOT EXISTS (SELECT FROM acting) THEN false
    WHEN s.length OPERATOR(pg_catalog.>) 30000::pg_catalog.int8 THEN true
    WHEN (SELECT o.runs FROM stored AS o) THEN true
    ELSE EXISTS (SELECT FROM uncalled AS r JOIN acting AS a ON a.oid OPERATOR(pg_catalog.=) r.oid)
  END::pg_catalog.text,
  CASE WHEN s.length OPERATOR(pg_catalog.>) 500000::pg_catalog.int8 THEN true
    WHEN NOT EXISTS (SELECT FROM acting) THEN false
    WHEN s.length OPERATOR(pg_catalog.>) 30000::pg_catalog.int8 THEN true
    WHEN (SELECT o.runs FROM stored AS o) THEN true
    ELSE EXISTS (SELECT FROM uncalled AS r JOIN acting AS a ON a.oid OPERATOR(pg_catalog.=) r.oid WHERE r.of_reads)
  END::pg_catalog.text,
  CASE WHEN s.length OPERATOR(pg_catalog.>) 500000::pg_catalog.int8 THEN true
    WHEN EXISTS (SELECT FROM checks AS c WHERE c.is_volatile) THEN true
    WHEN NOT EXISTS (SELECT FROM early) THEN false
    WHEN s.length OPERATOR(pg_catalog.>) 30000::pg_catalog.int8 THEN true
    WHEN EXISTS (SELECT FROM users AS v WHERE v.is_volatile
      AND v.name OPERATOR(pg_catalog.!~) '^[[:alnum:]_$]+$'::pg_catalog.text) THEN true
    WHEN EXISTS (SELECT FROM carried AS c WHERE NOT c.by_relation) THEN true
    ELSE EXISTS (SELECT FROM early AS e WHERE CASE
      WHEN e.language OPERATOR(pg_catalog.<>) ALL ('{sql,plpgsql}'::pg_catalog.text[]) THEN true
      WHEN e.prosrc OPERATOR(pg_catalog.~*)
        '[[:<:]](set_config|nextval|setval|execute|do|call|lock|notify|pg_(?!catalog[[:>:]])\w+|lo_\w+|loread|lowrite|dblink\w*|(cursor|query|table|schema|database)_to_xml\w*|ts_stat|ts_rewrite)[[:>:]]|u&"'
        ::pg_catalog.text THEN true
      WHEN EXISTS (
        SELECT FROM pg_catalog.regexp_matches(e.body, ':(?:op)?funcid ([0-9]+) '::pg_catalog.text, 'g'::pg_catalog.text)
          AS called (id)
        JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) called.id[1]::pg_catalog.oid
        WHERE p.provolatile OPERATOR(pg_catalog.=) 'v'::pg_catalog."char") THEN true
      ELSE EXISTS (
        SELECT FROM pg_catalog.regexp_split_to_table(pg_catalog.lower(e.prosrc), '[^[:alnum:]_$]+'::pg_catalog.text)
          AS word (text)
        WHERE EXISTS (SELECT FROM users AS v WHERE v.is_volatile
            AND v.name OPERATOR(pg_catalog.=) pg_catalog."left"(word.text, 63))
          OR EXISTS (SELECT FROM carried AS c WHERE c.by_relation) AND EXISTS (
            SELECT FROM pg_catalog.pg_class AS r
            WHERE r.relname OPERATOR(pg_catalog.=) word.text::pg_catalog.name
              AND (r.relkind OPERATOR(pg_catalog.=) 'v'::pg_catalog."char" OR r.relrowsecurity))) END)
  END::pg_catalog.text,
  CASE WHEN NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger AS t
      WHERE t.evtevent OPERATOR(pg_catalog.=) 'login'::pg_catalog.name
        AND t.evtenabled OPERATOR(pg_catalog.<>) 'D'::pg_catalog."char") THEN false
    WHEN s.length OPERATOR(pg_catalog.>) 500000::pg_catalog.int8 THEN true
    ELSE EXISTS (SELECT FROM acting)
  END::pg_catalog.text
FROM source AS s
