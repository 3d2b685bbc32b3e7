-- Corners of the lexical rules, and statements of tools.

SELECT $$dollar 'quoted' $1$$, $tag$ $$ $tagg$ $tag$, $é$x$é$

SELECT a$b, a$1, "a$$b" FROM t$$x

SELECT $1, $2 || 'x', $1+1

SELECT 'multi'
  'line'
    'string', 'other'

SELECT 'a' -- comment 'with quotes'
 'b'

SELECT E'a\'b', e'\\', E'\x41\101\u0041', E'a''b'

SELECT U&'d\0061t\+000061', U&'d!0061t!+000061' UESCAPE '!', u&"d\0061" FROM t

SELECT B'101', b'', X'1FF', x'', N'national', n'x'

SELECT /* block /* nested 'x' */ $1 */ 1 -- tail 'y'

SELECT 1 /*/ 2 */ + 3 /**/ -- 4

SELECT "col'umn", "a""b", "A" AS "$1" FROM "S"."T"

SELECT int '5', date '2020-01-01', interval '1' day, interval '2 hours' hour to minute, timestamp with time zone '2020-01-01', double precision '1.5', bit '101', char 'x'

-- kept: 3, 3
SELECT interval(3) '1.2345 sec', x::interval(3) FROM t

-- kept: 10, 10, 2, 20, 6
SELECT a::varchar(10), CAST(b AS numeric(10, 2)), c::char(20), now()::timestamp(6) FROM t

SELECT x::int::text, '5'::int, (1)::bigint, -5::smallint, 5::"My Type", ARRAY[1]::int[], '{}'::int[][]

SELECT CASE WHEN a THEN -1 ELSE -2 END - 3, CASE -1 WHEN -2 THEN 3 END

SELECT 1 WHERE a BETWEEN -1 AND -2 OR b LIKE 'x%' ESCAPE '\' OR c NOT IN (-1, -2) OR d = ALL (ARRAY[-1])

SELECT a <-1, a>-1, a=-1, a!=-1, a||-1, a@-1, a->-1, a->>-1, a#>-1, a *-1, a /-1, a %-1, a ^-1 FROM t

SELECT a+-1, a--1
+2

SELECT a/*x*/-1, a /*x*/ -1, (a)-1, (a) -1, b[1]-1, 1-1, 1 -1, 'x'-1, "q"-1, $1-1, NULL-1, TRUE-1

SELECT DISTINCT -1, b FROM t LIMIT -1 OFFSET -2

SELECT ALL -1 FROM t FETCH FIRST 5 ROWS ONLY

-- kept: 1, -2, 2
SELECT a, -b FROM t ORDER BY 1, -2, 2 DESC, a + 3

-- kept: 1, 2, 1
SELECT a, b, count(*) FROM t GROUP BY 1, 2, a - 5 HAVING count(*) > 3 ORDER BY 1 NULLS LAST

SELECT grouping(a), sum(b) FROM t GROUP BY ROLLUP (a, (a, b)), GROUPING SETS ((a), ())

SELECT f(a => 1, b := 'x', VARIADIC ARRAY[1, 2]), count(*) FILTER (WHERE a > 5), percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t

SELECT substring('abc' FROM 2 FOR 1), position('b' IN 'abc'), trim(BOTH 'x' FROM 'xax'), overlay('abc' PLACING 'x' FROM 2), extract(epoch FROM now())

SELECT a IS DISTINCT FROM 1, a IS NOT NULL, a IS TRUE, (a, 1) OVERLAPS (b, 2), a AT TIME ZONE 'UTC', a COLLATE "C" < 'x' FROM t

SELECT EXISTS (SELECT 1 FROM t WHERE a = 1), ARRAY(SELECT 2), (SELECT 3), ROW(1, 'a'), NOT true

SELECT * FROM generate_series(1, 10, 2) WITH ORDINALITY g(a, n), LATERAL (SELECT g.a + 1) l, unnest(ARRAY[1, 2], ARRAY['a', 'b']) u

SELECT * FROM t TABLESAMPLE SYSTEM (10) REPEATABLE (5)

VALUES (1, 'a'), (2, 'b')

(SELECT 1) UNION ALL (SELECT 2) EXCEPT SELECT 3 ORDER BY a LIMIT 5

SELECT * FROM ROWS FROM (f(1), g('x')) AS x WHERE a = 1

TABLE t

SELECT xmlelement(name a, 'x'), json_object('a': 1, 'b': 'c'), jsonb_build_object('k', -1)

UPDATE t SET (a, b) = (1, 'x'), c[1] = 2, d = DEFAULT, e = -e - 1 FROM u WHERE t.id = u.id AND u.k = 'z' RETURNING t.a - 1

UPDATE ONLY s.t AS x SET a = a WHERE CURRENT OF c

DELETE FROM t USING u WHERE t.id = u.id AND u.at < now() - interval '30 days' RETURNING *

INSERT INTO t DEFAULT VALUES

INSERT INTO t (a, b) OVERRIDING SYSTEM VALUE SELECT a, 'const' FROM u WHERE c IN (1, 2) ON CONFLICT ON CONSTRAINT k DO NOTHING

INSERT INTO t VALUES (-1, - 2, +3, 4 - 5, DEFAULT), (-6, - 7, +8, 9 - 10, DEFAULT)

INSERT INTO t(j) VALUES ('{"k": "v$1 ? -- x /* y */"}') ON CONFLICT (id) DO UPDATE SET j = t.j || '{"z": 1}' WHERE t.n > 0

SELECT 1;

SELECT 'x' ; 

 ;; SELECT 1 ;;

SELECT 1; SELECT 'two'; SELECT 3

BEGIN; INSERT INTO t VALUES (1, 'x'); COMMIT

SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relname OPERATOR(pg_catalog.~) '^(t)$' COLLATE pg_catalog.default AND pg_catalog.pg_table_is_visible(c.oid)
ORDER BY n.nspname, c.relname

SELECT c.relchecks, c.relkind, c.relhasindex, c.relhasrules, c.relhastriggers, c.relrowsecurity, c.relforcerowsecurity, false AS relhasoids, c.relispartition, '', c.reltablespace, CASE WHEN c.reloftype = 0 THEN '' ELSE c.reloftype::pg_catalog.regtype::pg_catalog.text END, c.relpersistence, c.relreplident, am.amname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_class tc ON (c.reltoastrelid = tc.oid) LEFT JOIN pg_catalog.pg_am am ON (c.relam = am.oid) WHERE c.oid = '16384'

SELECT a.attname,
  pg_catalog.format_type(a.atttypid, a.atttypmod),
  (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true)
   FROM pg_catalog.pg_attrdef d
   WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef),
  a.attnotnull, a.attidentity, a.attgenerated
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = '16384' AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum

-- kept: 1, 2
SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' END as "Type", pg_catalog.pg_get_userbyid(c.relowner) as "Owner" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r','p','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' ORDER BY 1,2

SELECT conname, pg_catalog.pg_get_constraintdef(r.oid, true) as condef FROM pg_catalog.pg_constraint r WHERE r.conrelid = '16384' AND r.contype = 'f' ORDER BY conname

SELECT pg_catalog.set_config('search_path', '', false)

SELECT pg_is_in_recovery()

SELECT lo_open(16385, 131072), loread(0, 2048), lo_lseek64(0, 0, 2), lowrite(0, '\x00')

SELECT set_config('statement_timeout', '30s', true), current_setting('a.b')

SELECT 1 AS "group" FROM a NATURAL JOIN b CROSS JOIN c WHERE a.x = 1 FOR NO KEY UPDATE OF a NOWAIT

SELECT a, b INTO TEMP n FROM t WHERE c = 'x'

SELECT 1 AS é, 'é' AS "ü" FROM tàble WHERE ñ = 'ñ'

SELECT *,1 FROM t WHERE a=1 OR/**/b='x'
