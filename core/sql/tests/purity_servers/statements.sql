-- Statements, each on one line, under the verdict that is expected: "pure", or the reason why not.

-- pure
SELECT 1
SELECT 1 AS one, 'x' AS x, NULL, true, 1.5, B'101', X'1F', E'a\tb', $$dollar$$
SELECT 1 + 1, 2 * 3, 7 / 2, 7 - 2, 2 ^ 3, |/ 4, - 5, + 5, 5 & 3, 5 | 3, ~ 5, 1 << 3, 8 >> 1
SELECT 1 WHERE false
VALUES (1, 'a'), (2, 'b')
TABLE dept
SELECT * FROM emp
SELECT * FROM public.emp AS e WHERE e.id = 7
SELECT e.* FROM emp e WHERE e.id = 7
SELECT id, name FROM emp WHERE id = 7
SELECT id, name FROM ONLY emp WHERE id IN (1, 2, 3)
SELECT id FROM emp WHERE id = ANY ('{1,2,3}')
SELECT id FROM emp WHERE id = ANY (ARRAY[1, 2, 3])
SELECT id FROM emp WHERE id <> ALL (ARRAY[1, 2, 3])
SELECT id FROM emp WHERE pay BETWEEN 100 AND 200
SELECT id FROM emp WHERE pay NOT BETWEEN SYMMETRIC 200 AND 100
SELECT id FROM emp WHERE name LIKE 'emp 1%' AND name NOT ILIKE '%2'
SELECT id FROM emp WHERE name LIKE 'emp!_1' ESCAPE '!'
SELECT id FROM emp WHERE name SIMILAR TO 'emp (1|2)'
SELECT id FROM emp WHERE name ~ '^emp 1' AND name !~* 'X$'
SELECT id FROM emp WHERE name ^@ 'emp 1'
SELECT id FROM emp WHERE boss_id IS NULL OR boss_id IS NOT NULL
SELECT id FROM emp WHERE active IS TRUE AND active IS NOT UNKNOWN
SELECT id FROM emp WHERE boss_id IS DISTINCT FROM 3 AND boss_id IS NOT DISTINCT FROM dept_id
SELECT id FROM emp WHERE NOT active AND (pay > 10 OR pay < 5)
SELECT id FROM emp WHERE (dept_id, active) = (1, true)
SELECT id FROM emp WHERE (id, dept_id) IN ((1, 2), (5, 1))
SELECT id FROM emp WHERE ROW(id, dept_id) < ROW(5, 1)
SELECT id FROM emp WHERE dept_id IN (SELECT id FROM dept WHERE budget > 2000)
SELECT id FROM emp e WHERE EXISTS (SELECT 1 FROM pay p WHERE p.emp_id = e.id AND p.amount > 200)
SELECT id FROM emp e WHERE NOT EXISTS (SELECT FROM pay p WHERE p.emp_id = e.id)
SELECT id FROM emp WHERE pay > ALL (SELECT amount / 2 FROM pay WHERE emp_id = 3)
SELECT id, (SELECT max(amount) FROM pay WHERE emp_id = e.id) FROM emp e
SELECT ARRAY(SELECT id FROM dept ORDER BY id)
SELECT id, name FROM emp ORDER BY pay DESC NULLS LAST, id USING < LIMIT 3 OFFSET 2
SELECT id FROM emp ORDER BY id FETCH FIRST 3 ROWS ONLY
SELECT dept_id FROM emp ORDER BY dept_id FETCH FIRST 3 ROWS WITH TIES
SELECT id FROM emp LIMIT ALL
SELECT DISTINCT dept_id FROM emp
SELECT DISTINCT ON (dept_id) dept_id, id FROM emp ORDER BY dept_id, id
SELECT dept_id, count(*), sum(pay), avg(pay), min(name), max(hired) FROM emp GROUP BY dept_id
SELECT dept_id, count(*) FILTER (WHERE active) FROM emp GROUP BY 1 HAVING count(*) > 2
SELECT dept_id, active, count(*), GROUPING(dept_id, active) FROM emp GROUP BY ROLLUP (dept_id, active)
SELECT dept_id, active, count(*) FROM emp GROUP BY CUBE (dept_id, active)
SELECT dept_id, active, count(*) FROM emp GROUP BY GROUPING SETS ((dept_id), (active), ())
SELECT dept_id, count(DISTINCT boss_id), bool_and(active), every(active), bool_or(active) FROM emp GROUP BY dept_id
SELECT string_agg(name, ',' ORDER BY id), array_agg(id ORDER BY id DESC) FROM emp
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY score), mode() WITHIN GROUP (ORDER BY dept_id) FROM emp
SELECT stddev(score), variance(score), corr(score, pay::float8), regr_slope(score, pay::float8) FROM emp
SELECT id, row_number() OVER (ORDER BY pay), rank() OVER (PARTITION BY dept_id ORDER BY pay DESC) FROM emp
SELECT id, sum(pay) OVER w, lag(pay, 1) OVER w, lead(pay) OVER w FROM emp WINDOW w AS (PARTITION BY dept_id ORDER BY id)
SELECT id, avg(pay) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM emp
SELECT id, count(*) OVER (ORDER BY hired RANGE BETWEEN interval '3 days' PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM emp
SELECT id, first_value(name) OVER (ORDER BY id GROUPS 2 PRECEDING), ntile(4) OVER (ORDER BY id) FROM emp
SELECT e.id, d.name FROM emp e JOIN dept d ON d.id = e.dept_id
SELECT e.id, d.name FROM emp e LEFT JOIN dept d ON d.id = e.dept_id AND d.budget > 2000
SELECT e.id, d.name FROM emp e RIGHT JOIN dept d ON d.id = e.dept_id
SELECT e.id, d.id FROM emp e FULL JOIN dept d ON d.id = e.id
SELECT count(*) FROM emp CROSS JOIN dept
SELECT count(*) FROM emp, dept WHERE emp.dept_id = dept.id
SELECT id FROM emp JOIN (SELECT id FROM dept) AS d USING (id)
SELECT id FROM (SELECT id FROM emp) AS a NATURAL JOIN (SELECT id FROM dept) AS b
SELECT j.id FROM (emp e JOIN pay p ON p.emp_id = e.id) AS j WHERE j.amount > 50
SELECT e.id, b.id FROM emp e LEFT JOIN emp b ON b.id = e.boss_id
SELECT e.id, last.amount FROM emp e, LATERAL (SELECT amount FROM pay p WHERE p.emp_id = e.id ORDER BY paid DESC LIMIT 1) AS last
SELECT e.id, last.amount FROM emp e LEFT JOIN LATERAL (SELECT amount FROM pay p WHERE p.emp_id = e.id LIMIT 1) AS last ON true
SELECT id FROM emp UNION SELECT id FROM dept
SELECT id FROM emp UNION ALL SELECT id FROM dept ORDER BY 1 LIMIT 5
SELECT id FROM emp INTERSECT SELECT id FROM dept
(SELECT id FROM emp EXCEPT SELECT id FROM dept) UNION (VALUES (100))
WITH e AS (SELECT id FROM emp WHERE active) SELECT count(*) FROM e
WITH e AS MATERIALIZED (SELECT id FROM emp), d AS NOT MATERIALIZED (SELECT id FROM e) SELECT count(*) FROM d
WITH RECURSIVE up AS (SELECT id, boss_id FROM emp WHERE id = 30 UNION ALL SELECT e.id, e.boss_id FROM emp e JOIN up ON e.id = up.boss_id) SELECT id FROM up
WITH RECURSIVE n (i) AS (VALUES (1) UNION SELECT i + 1 FROM n WHERE i < 10) SELECT sum(i) FROM n
WITH secret AS (SELECT 1 AS id) SELECT id FROM secret
WITH s AS (SELECT 1 AS id) SELECT id FROM s
WITH pg_class AS (SELECT 1 AS id) SELECT id FROM pg_class
SELECT CASE WHEN pay > 100 THEN 'much' WHEN pay > 50 THEN 'some' ELSE 'little' END FROM emp
SELECT CASE dept_id WHEN 1 THEN 'one' WHEN 2 THEN 'two' END FROM emp
SELECT coalesce(boss_id, 0), nullif(dept_id, 1), greatest(pay, 50), least(pay, 50) FROM emp
SELECT upper(name), lower(name), initcap(name), length(name), octet_length(name), char_length(code) FROM emp
SELECT left(name, 3), right(name, 3), lpad(name, 10), rpad(name, 10, '.'), repeat('x', 3), replace(name, 'e', 'E') FROM emp
SELECT substr(name, 1, 2), substring(name FROM 2), substring(name, '[0-9]+'), strpos(name, 'm'), split_part(name, ' ', 2) FROM emp
SELECT trim(name), ltrim(name), rtrim(name), btrim(name), trim(BOTH 'e' FROM name), overlay(name PLACING 'X' FROM 2), position('m' IN name) FROM emp
SELECT concat(name, id), concat_ws('-', name, id), format('%s/%L', name, id), name || '!' FROM emp
SELECT regexp_replace(name, '\d', '#'), regexp_match(name, '(\d+)'), regexp_split_to_array(name, ' ') FROM emp
SELECT translate(name, 'e', 'E'), ascii(name), chr(65), to_hex(255), quote_literal(name), quote_ident(name) FROM emp
SELECT abs(-1), ceil(1.5), floor(1.5), round(1.55, 1), trunc(1.5), sign(-2), sqrt(4), power(2, 3), exp(1), ln(2), mod(7, 3), pi()
SELECT sin(score), cos(score), atan2(score, 1), degrees(score), width_bucket(score, 0, 10, 5) FROM emp
SELECT extract(year FROM hired), date_part('month', hired), date_trunc('month', seen), to_char(hired, 'YYYY-MM'), to_char(pay, '999D9') FROM emp
SELECT hired + 1, hired - date '2010-01-01', hired + interval '1 month', seen - interval '1 hour' FROM emp
SELECT seen AT TIME ZONE 'UTC', timezone('UTC', seen), make_date(2020, 1, 2), to_date('2020', 'YYYY'), to_timestamp(0) FROM emp
SELECT date '2020-01-01', timestamp '2020-01-01 10:00', timestamptz '2020-01-01 10:00+00', time '10:00', interval '1 day'
SELECT now(), CURRENT_DATE, CURRENT_TIMESTAMP, LOCALTIME, transaction_timestamp()
SELECT id FROM emp WHERE seen < now() AND hired > 'yesterday'
SELECT CURRENT_USER, SESSION_USER, CURRENT_ROLE, CURRENT_CATALOG, CURRENT_SCHEMA, USER
SELECT id::text, id::bigint, '5'::int, '1.5'::numeric(10, 2), 'x'::varchar(10), id::float4, '{1,2}'::int[], 'a'::name, 'c'::"char" FROM emp
SELECT CAST(pay AS int), CAST('t' AS boolean), '\x00ff'::bytea, '00000000-0000-0000-0000-000000000001'::uuid, '10.0.0.0/8'::cidr, '[1,2]'::jsonb FROM emp
SELECT int4(pay), float8(id), date(seen) FROM emp
SELECT meta -> 'a', meta ->> 'a', meta #> '{b,0}', meta #>> '{b,0}', meta ? 'a', meta @> '{"a": 1}', meta - 'a', meta || '{"z": 1}' FROM emp
SELECT jsonb_array_length(meta -> 'b'), jsonb_typeof(meta), jsonb_pretty(meta), jsonb_path_query_array(meta, '$.b[*]'), jsonb_set(meta, '{a}', '0') FROM emp
SELECT to_jsonb(name), to_json(e), row_to_json(e), json_build_object('id', id, 'name', name), jsonb_build_array(id, name) FROM emp e
SELECT json_agg(name ORDER BY id), jsonb_object_agg(id, name) FROM emp
SELECT json_agg(e) FROM emp e
SELECT e FROM emp e
SELECT tags[1], tags[1:2], array_length(tags, 1), cardinality(tags), tags || 'z'::text, array_append(tags, 'z'), 'x' = ANY (tags) FROM emp
SELECT array_to_string(tags, ','), array_position(tags, 't1'), array_remove(tags, 'x'), tags @> ARRAY['x'], tags && ARRAY['t1'] FROM emp
SELECT (ARRAY[1, 2, 3])[2], ARRAY[[1, 2], [3, 4]], string_to_array('a,b', ',')
SELECT unnest(tags) FROM emp
SELECT id, generate_series(1, 2) FROM dept
SELECT * FROM generate_series(1, 5) AS g (n)
SELECT g FROM generate_series(1, 5) AS g
SELECT u.id, u.ord, emp.name FROM unnest(ARRAY[3, 1, 2]) WITH ORDINALITY AS u (id, ord) JOIN emp ON emp.id = u.id ORDER BY u.ord
SELECT * FROM ROWS FROM (generate_series(1, 2), unnest(ARRAY['a', 'b'])) AS r (n, s)
SELECT key, value FROM jsonb_each((SELECT meta FROM emp WHERE id = 1))
SELECT * FROM jsonb_to_recordset('[{"a": 1, "b": "x"}]') AS r (a int, b text)
SELECT x.value FROM emp, jsonb_array_elements(emp.meta -> 'b') AS x WHERE emp.id = 1
SELECT v.a FROM (VALUES (1, 'x'), (2, 'y')) AS v (a, b) WHERE v.b = 'y'
SELECT "Key", "select", id, ip, span, ends FROM "Odd Name"
SELECT host(ip), masklen(ip), network(ip), ip << '10.0.0.0/8'::inet FROM "Odd Name"
SELECT lower(span), upper(span), span @> 3, span && int4range(1, 2), isempty(span) FROM "Odd Name"
SELECT name COLLATE "C" FROM emp ORDER BY name COLLATE "C"
SELECT name FROM emp ORDER BY name COLLATE "default"
SELECT encode(photo, 'hex'), sha256(photo), length(photo), get_byte(photo, 1) FROM emp WHERE false
SELECT id, word FROM hr.secret
SELECT e.name FROM emp AS e WHERE e.id = 1 AND e.dept_id = 2
SELECT emp.name, public.emp.id FROM emp
SELECT ctid, xmin, tableoid FROM emp
SELECT 1 / (id - 30) FROM emp
SELECT no_such_column FROM emp
SELECT id FROM emp WHERE name = $1 AND pay > $2 AND dept_id = ANY ($3) LIMIT $4
SELECT * FROM v_plain
SELECT * FROM v_plain WHERE id = 7
SELECT dept, heads FROM v_over
SELECT * FROM v_union
SELECT * FROM v_case
SELECT * FROM v_with
SELECT id FROM v_clock
SELECT * FROM v_user
SELECT a.dept, b.heads FROM v_plain a JOIN v_over b ON a.dept = b.dept
SELECT * FROM m_pay
SELECT id FROM unlogged
SELECT id, doubled FROM numbered
SELECT id, now_is, history FROM moods
SELECT id FROM moods WHERE now_is = 'sad' OR now_is > 'sad'::mood OR now_is = ANY ('{ok}'::public.mood[])
SELECT id FROM v_mood
SELECT now_is::text, count(*) FROM moods GROUP BY now_is ORDER BY now_is
SELECT at FROM effects
SELECT bit_count(B'1010') WHERE false
SELECT ~ 1 WHERE false

-- function random is not a built-in function known to be harmless
SELECT random()
SELECT id FROM emp ORDER BY random()
SELECT id FROM emp WHERE random() < 0.5
SELECT (SELECT count(*) FROM emp WHERE id < random())

-- function nextval is not a built-in function known to be harmless
SELECT nextval('s')
SELECT id FROM emp LIMIT nextval('s')
SELECT * FROM nextval('s')
WITH n AS (SELECT nextval('s') AS n) SELECT n FROM n

-- function pg_catalog.nextval is not a built-in function known to be harmless
SELECT pg_catalog.nextval('public.s')

-- function setval is not a built-in function known to be harmless
SELECT setval('s', 10)

-- function currval is not a built-in function known to be harmless
SELECT currval('s')

-- function lastval is not a built-in function known to be harmless
SELECT lastval()

-- function txid_current is not a built-in function known to be harmless
SELECT txid_current()

-- function pg_current_xact_id is not a built-in function known to be harmless
SELECT pg_current_xact_id()

-- function statement_timestamp is not a built-in function known to be harmless
SELECT statement_timestamp()

-- function clock_timestamp is not a built-in function known to be harmless
SELECT clock_timestamp()

-- function timeofday is not a built-in function known to be harmless
SELECT timeofday()

-- function current_setting is not a built-in function known to be harmless
SELECT current_setting('work_mem')

-- function set_config is not a built-in function known to be harmless
SELECT set_config('work_mem', '1MB', false)

-- function pg_advisory_xact_lock is not a built-in function known to be harmless
SELECT pg_advisory_xact_lock(1)

-- function pg_try_advisory_lock_shared is not a built-in function known to be harmless
SELECT pg_try_advisory_lock_shared(1)

-- function pg_notify is not a built-in function known to be harmless
SELECT pg_notify('a', 'b')

-- function pg_sleep is not a built-in function known to be harmless
SELECT pg_sleep(0)

-- function pg_cancel_backend is not a built-in function known to be harmless
SELECT pg_cancel_backend(0)

-- function pg_stat_get_activity is not a built-in function known to be harmless
SELECT count(*) FROM pg_stat_get_activity(NULL)

-- function pg_lock_status is not a built-in function known to be harmless
SELECT count(*) FROM pg_lock_status()

-- function pg_cursor is not a built-in function known to be harmless
SELECT count(*) FROM pg_cursor()

-- function pg_prepared_statement is not a built-in function known to be harmless
SELECT count(*) FROM pg_prepared_statement()

-- function has_table_privilege is not a built-in function known to be harmless
SELECT has_table_privilege('emp', 'SELECT')

-- function pg_relation_size is not a built-in function known to be harmless
SELECT pg_relation_size('emp')

-- function pg_typeof is not a built-in function known to be harmless
SELECT pg_typeof(1)

-- function lo_create is not a built-in function known to be harmless
SELECT lo_create(0)

-- function lo_get is not a built-in function known to be harmless
SELECT lo_get(1)

-- function setseed is not a built-in function known to be harmless
SELECT setseed(0.5)

-- function gen_random_uuid is not a built-in function known to be harmless
SELECT gen_random_uuid()

-- function query_to_xml is not a built-in function known to be harmless
SELECT query_to_xml('SELECT public.wf()', true, true, '')

-- function table_to_xml is not a built-in function known to be harmless
SELECT table_to_xml('emp', true, true, '')

-- function database_to_xml is not a built-in function known to be harmless
SELECT database_to_xml(true, true, '')

-- function ts_stat is not a built-in function known to be harmless
SELECT count(*) FROM ts_stat('SELECT public.wf()::text::tsvector')

-- function to_tsvector is not a built-in function known to be harmless
SELECT to_tsvector('a b')

-- function current_query is not a built-in function known to be harmless
SELECT current_query()

-- function inet_client_addr is not a built-in function known to be harmless
SELECT inet_client_addr()

-- function enum_range is not a built-in function known to be harmless
SELECT enum_range(NULL::mood)

-- function age is not a built-in function known to be harmless
SELECT age(xmin) FROM emp

-- function dblink is not a built-in function known to be harmless
SELECT * FROM dblink('', '') AS t (a int)

-- function pg_catalog.overlaps is not a built-in function known to be harmless
SELECT (hired, hired) OVERLAPS (hired, hired) FROM emp

-- function wf is not a built-in function known to be harmless
SELECT wf()
SELECT id FROM emp WHERE wf() = 1

-- function liar is not a built-in function known to be harmless
SELECT liar()

-- function hr.next_code is not a built-in function known to be harmless
SELECT hr.next_code()

-- function evil.md5 is not a built-in function known to be harmless
SELECT evil.md5(name) FROM emp

-- function noisy is not a built-in function known to be harmless
SELECT noisy(id) FROM emp

-- function grade is not a built-in function known to be harmless
SELECT grade(emp) FROM emp

-- function reverse may be the function of that name in schema public
SELECT reverse(name) FROM emp
SELECT reverse(id) FROM emp

-- function md5 may be the function of that name in schema evil
SELECT md5(name) FROM emp

-- pure
SELECT pg_catalog.md5(name), pg_catalog.reverse(name) FROM emp

-- grade may be a call of function public.grade
SELECT emp.grade FROM emp
SELECT e.id, e.grade FROM emp AS e WHERE e.id = 1
SELECT public.emp.grade FROM emp

-- anything may be a call of function public.anything
SELECT e.anything FROM emp AS e
SELECT v.anything FROM (VALUES (1)) AS v

-- of_int may be a call of function public.of_int
SELECT g.of_int FROM generate_series(1, 2) AS g

-- pure
SELECT e.of_two FROM emp AS e, generate_series(1, 2) AS g
SELECT e.of_int FROM emp AS e

-- nextval may be a call of function pg_catalog.nextval
SELECT g.nextval FROM unnest(ARRAY['s']) AS g

-- pg_advisory_xact_lock may be a call of function pg_catalog.pg_advisory_xact_lock
SELECT g.pg_advisory_xact_lock FROM generate_series(1, 3) AS g

-- setseed may be a call of function pg_catalog.setseed
SELECT g.setseed FROM unnest(ARRAY[0.5::float8]) AS g

-- it uses a field of an expression
SELECT ('s').nextval
SELECT (both_of).a FROM paired
SELECT (emp).grade FROM emp

-- operator "%" may be the operator of that name in schema evil
SELECT id % 2 FROM emp

-- operator "#" may be the operator of that name in schema evil
SELECT id # 'x' FROM emp
SELECT 1 # 2

-- operator "@" may be the operator of that name in schema evil
SELECT @ id FROM emp

-- operator "^@" may be the operator of that name in schema evil
SELECT id FROM moods WHERE now_is ^@ 'sad'::mood
SELECT id FROM moods WHERE now_is::text ^@ 'sad'
SELECT 'a' ^@ 'b'
SELECT $1 ^@ $2

-- operator "===" is not a built-in operator known to be harmless
SELECT id === 1 FROM emp

-- operator evil."===" is not a built-in operator known to be harmless
SELECT id OPERATOR(evil.===) 1 FROM emp

-- operator "@@" is not a built-in operator known to be harmless
SELECT name @@ 'x' FROM emp

-- type cents is not a built-in type known to be harmless
SELECT 5::cents

-- type pair is not a built-in type known to be harmless
SELECT '(1,2)'::pair

-- type regclass is not a built-in type known to be harmless
SELECT 'emp'::regclass
SELECT tableoid::regclass FROM emp
SELECT $1::regclass

-- type regconfig is not a built-in type known to be harmless
SELECT 'english'::regconfig

-- type emp is not a built-in type known to be harmless
SELECT NULL::emp

-- type xml is not a built-in type known to be harmless
SELECT '<a/>'::xml

-- type tsvector is not a built-in type known to be harmless
SELECT 'a'::tsvector

-- type nothing.mood is not a built-in type known to be harmless
SELECT 'sad'::nothing.mood

-- guarded has row-level security
SELECT * FROM guarded

-- ruled has rules
SELECT * FROM ruled

-- parent has child tables
SELECT * FROM parent

-- parts is a partitioned table
SELECT * FROM parts

-- parts_1 is a partition
SELECT * FROM parts_1

-- elsewhere is a foreign table
SELECT * FROM elsewhere

-- s is a sequence
SELECT last_value FROM s
SELECT * FROM s

-- priced has a column of a type that is not built in
SELECT id FROM priced
SELECT coalesce(price, -1) FROM priced

-- paired has a column of a type that is not built in
SELECT * FROM paired

-- ranged has a column of a type that is not built in
SELECT * FROM ranged

-- pointing has a column of a type that is not built in
SELECT * FROM pointing

-- listed has a column of a type that is not built in
SELECT * FROM listed

-- pg_class is a system catalogue, or named like one
SELECT count(*) FROM pg_class

-- pg_locks is a system catalogue, or named like one
SELECT count(*) FROM pg_locks

-- pg_catalog.pg_type is in a schema of the server
SELECT count(*) FROM pg_catalog.pg_type

-- information_schema.tables is in a schema of the server
SELECT count(*) FROM information_schema.tables

-- pg_temp.emp is in a schema of the server
SELECT * FROM pg_temp.emp

-- relation nowhere is not known
SELECT * FROM nowhere

-- relation secret is not known
SELECT * FROM secret

-- relation only_here is not known
SELECT * FROM only_here

-- relation hr.emp is not known
SELECT * FROM hr.emp

-- view v_volatile: function random is not a built-in function known to be harmless
SELECT id FROM v_volatile

-- view v_wf: function wf is not a built-in function known to be harmless
SELECT * FROM v_wf

-- view v_wf_over: view public.v_wf: function wf is not a built-in function known to be harmless
SELECT id FROM v_wf_over

-- view v_sequence: public.s is a sequence
SELECT * FROM v_sequence

-- view v_next: function nextval is not a built-in function known to be harmless
SELECT * FROM v_next

-- view v_catalogue: it uses a relation of the server
SELECT * FROM v_catalogue

-- view v_guarded: public.guarded has row-level security
SELECT * FROM v_guarded

-- view v_sample: it uses TABLESAMPLE
SELECT * FROM v_sample

-- view v_locks: it uses FOR UPDATE or FOR SHARE
SELECT * FROM v_locks

-- view v_setting: function current_setting is not a built-in function known to be harmless
SELECT * FROM v_setting

-- view v_evil: operator "===" is not a built-in operator known to be harmless
SELECT * FROM v_evil

-- pure
SELECT * FROM v_shadow

-- pure
SELECT * FROM v_hr

-- pure
SELECT * FROM v_spread
SELECT * FROM v_sets

-- view v_record: it uses a construct that is not known to be harmless
SELECT * FROM v_record

-- view v_rows: it uses a construct that is not known to be harmless
SELECT * FROM v_rows

-- view v_field: it uses a construct that is not known to be harmless
SELECT * FROM v_field

-- view v_domain: it uses a construct that is not known to be harmless
SELECT * FROM v_domain

-- view v_regclass: function regclass is not a built-in function known to be harmless
SELECT * FROM v_regclass

-- view "V {FUNCEXPR :funcid 1598": it uses FOR UPDATE or FOR SHARE
SELECT * FROM "V {FUNCEXPR :funcid 1598"

-- it uses FOR UPDATE or FOR SHARE
SELECT id FROM emp WHERE id = 1 FOR UPDATE
SELECT id FROM emp WHERE id = 1 FOR KEY SHARE
SELECT id FROM (SELECT id FROM emp FOR SHARE) e

-- it uses TABLESAMPLE
SELECT id FROM emp TABLESAMPLE bernoulli (50)

-- it uses SELECT INTO
SELECT id INTO copied FROM emp

-- it uses a data-modifying statement in WITH
WITH d AS (DELETE FROM effects RETURNING at) SELECT at FROM d
WITH i AS (INSERT INTO effects VALUES (3) RETURNING at) SELECT at FROM i

-- it uses a statement that modifies data
INSERT INTO effects VALUES (4)
UPDATE emp SET pay = pay + 1 WHERE id = 1
DELETE FROM effects

-- it uses a statement that is not a query
LOCK TABLE emp
LISTEN somewhere
SET work_mem = '2MB'
CREATE TABLE made (id int)
CREATE TEMP TABLE temporary (id int)
PREPARE q AS SELECT 1
DECLARE c CURSOR FOR SELECT 1

-- it uses EXPLAIN
EXPLAIN (ANALYZE) SELECT wf()
