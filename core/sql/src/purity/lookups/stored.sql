-- Whether what is stored as an expression calls one of the server's own functions that read a cursor or run a text
-- (`cursor_to_xml`, `query_to_xml`, `ts_stat`, `ts_rewrite` and their kin, by the numbers of pg_proc.dat): a view, rule,
-- default, check, policy, trigger, index or domain, whose trees are searched as text, an operator, a cast or an aggregate.
EXISTS (
  SELECT FROM pg_catalog.pg_rewrite AS r WHERE r.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
    AND pg_catalog.concat(r.ev_action, r.ev_qual) OPERATOR(pg_catalog.~)
      ':funcid (292[3-9]|2930|293[3-8]|3685|3689|3690) '::pg_catalog.text
) OR EXISTS (
  SELECT FROM (
    SELECT d.adbin::pg_catalog.text FROM pg_catalog.pg_attrdef AS d
    UNION ALL SELECT c.conbin::pg_catalog.text FROM pg_catalog.pg_constraint AS c
    UNION ALL SELECT pg_catalog.concat(o.polqual, o.polwithcheck) FROM pg_catalog.pg_policy AS o
    UNION ALL SELECT t.tgqual::pg_catalog.text FROM pg_catalog.pg_trigger AS t
    UNION ALL SELECT pg_catalog.concat(i.indexprs, i.indpred) FROM pg_catalog.pg_index AS i
    UNION ALL SELECT y.typdefaultbin::pg_catalog.text FROM pg_catalog.pg_type AS y
  ) AS stored (tree)
  -- In a large database nearly all are left after a look for a part of it.
  WHERE CASE
    WHEN pg_catalog.strpos(stored.tree, ':funcid 29'::pg_catalog.text) OPERATOR(pg_catalog.>) 0
      OR pg_catalog.strpos(stored.tree, ':funcid 36'::pg_catalog.text) OPERATOR(pg_catalog.>) 0
    THEN stored.tree OPERATOR(pg_catalog.~)
      ':funcid (292[3-9]|2930|293[3-8]|3685|3689|3690) '::pg_catalog.text
    ELSE false END
) OR EXISTS (
  SELECT FROM pg_catalog.pg_operator AS o WHERE o.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
    AND o.oprcode::pg_catalog.oid OPERATOR(pg_catalog.=) ANY (
      '{2923,2924,2925,2926,2927,2928,2929,2930,2933,2934,2935,2936,2937,2938,3685,3689,3690}'::pg_catalog.oid[])
) OR EXISTS (
  SELECT FROM pg_catalog.pg_cast AS c WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
    AND c.castfunc OPERATOR(pg_catalog.=) ANY (
      '{2923,2924,2925,2926,2927,2928,2929,2930,2933,2934,2935,2936,2937,2938,3685,3689,3690}'::pg_catalog.oid[])
) OR EXISTS (
  SELECT FROM pg_catalog.pg_aggregate AS a WHERE a.aggfnoid::pg_catalog.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
    AND ARRAY[a.aggtransfn, a.aggfinalfn, a.aggmtransfn, a.aggmfinalfn]::pg_catalog.oid[] OPERATOR(pg_catalog.&&)
      '{2923,2924,2925,2926,2927,2928,2929,2930,2933,2934,2935,2936,2937,2938,3685,3689,3690}'::pg_catalog.oid[]
)
