-- Whether code of users may open, move or close a cursor of the session, or act where one stands: a function that says so,
-- builds its statements, may make such code (LANGUAGE, an extension, a row of pg_proc), or is of a language that is not read
-- here (of those in C only the contrib modules' that run a text are known); a rule; or what is stored as an expression
-- (stored.sql).
found (any_one) AS (SELECT EXISTS (
  SELECT FROM pg_catalog.pg_proc AS p
  JOIN pg_catalog.pg_language AS l ON l.oid OPERATOR(pg_catalog.=) p.prolang
  WHERE p.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid AND CASE
    WHEN l.lanname OPERATOR(pg_catalog.=) ANY ('{sql,plpgsql,internal}'::pg_catalog.name[]) THEN
      p.prosrc OPERATOR(pg_catalog.~*)
        '[[:<:]](refcursor|cursor|fetch|move|open|close|execute|language|extension|pg_proc|(cursor|query)_to_xml\w*|ts_stat|ts_rewrite|current[[:space:]]+of)[[:>:]]|u&"'
        ::pg_catalog.text
      OR pg_catalog.concat(
        pg_catalog.to_jsonb(p) OPERATOR(pg_catalog.->>) 'prosqlbody'::pg_catalog.text, p.proargdefaults
      ) OPERATOR(pg_catalog.~) ':funcid (292[3-9]|2930|293[3-8]|3685|3689|3690) |CURRENTOFEXPR'::pg_catalog.text
    WHEN l.lanname OPERATOR(pg_catalog.=) 'c'::pg_catalog.name THEN
      p.prosrc OPERATOR(pg_catalog.~*) '(crosstab|connectby|xpath_table)'::pg_catalog.text
    ELSE true END
) OR EXISTS (
  SELECT FROM pg_catalog.pg_rewrite AS r WHERE r.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
    AND pg_catalog.strpos(pg_catalog.concat(r.ev_action, r.ev_qual), 'CURRENTOFEXPR'::pg_catalog.text)
      OPERATOR(pg_catalog.>) 0
))
SELECT (f.any_one OR s.runs)::pg_catalog.text FROM found AS f CROSS JOIN stored AS s
