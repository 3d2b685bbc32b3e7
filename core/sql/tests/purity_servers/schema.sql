-- Tables that are plain, and one of everything that is not.
CREATE TABLE dept (id int PRIMARY KEY, name text NOT NULL, budget numeric(12, 2), opened date);
CREATE TABLE emp (
  id int PRIMARY KEY, name varchar(40) NOT NULL, pay numeric(10, 2), dept_id int REFERENCES dept, boss_id int,
  hired date, seen timestamptz, meta jsonb, tags text[], score float8, active bool, code char(3), photo bytea
);
CREATE INDEX ON emp (dept_id);
CREATE TABLE pay (emp_id int, paid date, amount numeric, PRIMARY KEY (emp_id, paid));
CREATE TABLE "Odd Name" ("Key" int PRIMARY KEY, "select" text, id uuid, ip inet, span int4range, ends time);
INSERT INTO dept SELECT i, 'dept ' || i, i * 1000, date '2001-01-01' + i FROM generate_series(1, 5) AS i;
INSERT INTO emp SELECT i, 'emp ' || i, i * 10, i % 5 + 1, nullif(i / 4, 0), date '2010-01-01' + i, timestamptz '2020-01-01 00:00+00' + i * interval '1 hour',
  jsonb_build_object('a', i, 'b', jsonb_build_array(i, i + 1)), ARRAY['x', 't' || i], i / 3.0, i % 2 = 0, 'c' || i, decode('00ff', 'hex')
FROM generate_series(1, 30) AS i;
INSERT INTO pay SELECT e, date '2020-01-01' + 30 * m, e * 10 + m FROM generate_series(1, 30) AS e, generate_series(1, 3) AS m;
INSERT INTO "Odd Name" VALUES (1, 'a', '00000000-0000-0000-0000-000000000001', '10.0.0.1', '[1,5)', '12:00'), (2, NULL, NULL, NULL, NULL, NULL);

CREATE SCHEMA hr;
CREATE SCHEMA evil;
CREATE TABLE hr.secret (id int, word text);
CREATE TABLE evil.only_here (id int);
CREATE TABLE effects (at int);
CREATE SEQUENCE s;
CREATE TABLE numbered (id int GENERATED ALWAYS AS IDENTITY, doubled int GENERATED ALWAYS AS (1 + 1) STORED);
INSERT INTO numbered DEFAULT VALUES;

-- Functions that write, and where they hide.
CREATE FUNCTION wf() RETURNS int VOLATILE LANGUAGE sql AS 'INSERT INTO public.effects VALUES (1) RETURNING at';
CREATE FUNCTION liar() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_catalog.nextval('public.s'); RETURN 1; END $$;
CREATE FUNCTION hr.next_code() RETURNS bigint LANGUAGE sql AS $$ SELECT pg_catalog.nextval('public.s') $$;
CREATE FUNCTION reverse(int) RETURNS int LANGUAGE sql AS 'INSERT INTO public.effects VALUES (1) RETURNING at';
CREATE FUNCTION evil.md5(varchar) RETURNS text LANGUAGE sql AS $$ INSERT INTO public.effects VALUES (1) RETURNING 'evil'::text $$;
CREATE FUNCTION grade(emp) RETURNS int LANGUAGE sql AS 'INSERT INTO public.effects VALUES (1) RETURNING at';
CREATE FUNCTION anything(anyelement) RETURNS int LANGUAGE sql AS 'INSERT INTO public.effects VALUES (1) RETURNING at';
CREATE FUNCTION of_int(int, note text DEFAULT '') RETURNS int LANGUAGE sql AS 'INSERT INTO public.effects VALUES (1) RETURNING at';
CREATE FUNCTION of_two(int, int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE AGGREGATE noisy (int) (sfunc = int4pl, stype = int);

-- Operators: two built-in names with built-in operands, one that takes a user's type on one side.
CREATE FUNCTION hash_op(int, text) RETURNS int LANGUAGE sql AS 'INSERT INTO public.effects VALUES (1) RETURNING at';
CREATE OPERATOR evil.# (leftarg = int, rightarg = text, function = hash_op);
CREATE FUNCTION modulo(int, int) RETURNS int LANGUAGE sql AS 'INSERT INTO public.effects VALUES (1) RETURNING at';
CREATE OPERATOR evil.% (leftarg = int, rightarg = int, function = modulo);
CREATE FUNCTION exclaim(int) RETURNS int LANGUAGE sql AS 'INSERT INTO public.effects VALUES (1) RETURNING at';
CREATE OPERATOR evil.@ (rightarg = int, function = exclaim);
CREATE OPERATOR evil.=== (leftarg = int, rightarg = int, function = modulo);

-- Types.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN cents AS int CHECK (VALUE >= 0);
CREATE TYPE pair AS (a int, b int);
CREATE TYPE floats AS RANGE (subtype = float8);
CREATE TABLE moods (id int, now_is mood, history mood[]);
INSERT INTO moods VALUES (1, 'sad', '{ok,sad}'), (2, 'happy', '{}');
CREATE FUNCTION moodier(mood, mood) RETURNS bool LANGUAGE sql AS 'INSERT INTO public.effects VALUES (1) RETURNING true';
CREATE OPERATOR evil.^@ (leftarg = mood, rightarg = mood, function = moodier);
CREATE TABLE priced (id int, price cents);
CREATE TABLE paired (id int, both_of pair);
CREATE TABLE ranged (id int, span floats);
CREATE TABLE pointing (id int, at regclass);
CREATE TABLE listed (id int, prices cents[]);
INSERT INTO priced VALUES (1, 1);
INSERT INTO paired VALUES (1, (1, 2));

-- Relations that are not plain.
CREATE TABLE guarded (id int, owner name);
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE TABLE ruled (id int);
CREATE RULE log_it AS ON INSERT TO ruled DO ALSO INSERT INTO effects VALUES (2);
CREATE TABLE parent (id int);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE parts (id int) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE UNLOGGED TABLE unlogged (id int);
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE elsewhere (line text) SERVER files OPTIONS (filename '/dev/null');

-- Views.
CREATE VIEW v_plain AS SELECT e.id, e.name, d.name AS dept FROM emp AS e JOIN dept AS d ON d.id = e.dept_id WHERE e.pay > 20;
CREATE VIEW v_over AS SELECT dept, count(*) AS heads, max(upper(name)) AS last FROM v_plain GROUP BY dept ORDER BY dept;
CREATE VIEW v_union AS SELECT id, name FROM emp UNION ALL SELECT id, name FROM dept;
CREATE VIEW v_case AS SELECT id, CASE WHEN pay BETWEEN 10 AND 90 THEN 'low' ELSE coalesce(name, '-') END AS class,
  extract(year FROM hired) AS year, name LIKE 'emp 1%' AS ones, id IN (1, 2, 3) AS few, substring(name FROM 2 FOR 3) AS part,
  hired + interval '1 day' AS next_day, row_number() OVER (PARTITION BY dept_id ORDER BY id) AS rank FROM emp;
CREATE VIEW v_with AS WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n, emp.name FROM r JOIN emp ON emp.id = n;
CREATE VIEW v_clock AS SELECT id, now() AS at FROM emp;
CREATE VIEW v_user AS SELECT id, CURRENT_USER AS who FROM emp;
CREATE VIEW v_volatile AS SELECT id, random() AS r FROM emp;
CREATE VIEW v_wf AS SELECT id, wf() AS w FROM emp;
CREATE VIEW v_wf_over AS SELECT id FROM v_wf;
CREATE VIEW v_sequence AS SELECT last_value FROM s;
CREATE VIEW v_next AS SELECT nextval('s') AS n;
CREATE VIEW v_catalogue AS SELECT relname FROM pg_class;
CREATE VIEW v_guarded AS SELECT * FROM guarded;
CREATE VIEW v_sample AS SELECT id FROM emp TABLESAMPLE bernoulli (50);
CREATE VIEW v_locks AS SELECT id FROM emp FOR UPDATE;
CREATE VIEW v_setting AS SELECT current_setting('work_mem') AS work_mem;
CREATE VIEW v_mood AS SELECT id FROM moods WHERE now_is = 'sad';
CREATE VIEW v_evil AS SELECT id OPERATOR(evil.===) 1 AS e FROM emp;
CREATE VIEW v_shadow AS SELECT reverse(name::text) AS r FROM emp;
CREATE VIEW v_hr AS SELECT * FROM hr.secret;
CREATE VIEW v_record AS SELECT 1 AS one FROM json_to_record('{"a": 5}') AS r (a cents);
CREATE VIEW v_domain AS SELECT id::cents IS NULL AS n FROM emp;
CREATE VIEW v_regclass AS SELECT (name::text)::regclass::text AS r FROM emp WHERE false;
CREATE VIEW v_rows AS SELECT id FROM emp WHERE (id, dept_id) < (3, 4);
CREATE VIEW v_field AS SELECT (j).key FROM (SELECT jsonb_each(meta) AS j FROM emp) AS s;
CREATE VIEW v_spread AS SELECT e.id, u.tag, u.at, s.n FROM emp AS e, unnest(e.tags) WITH ORDINALITY AS u (tag, at), generate_series(1, 2) AS s (n);
CREATE VIEW v_sets AS SELECT dept_id, active, count(DISTINCT name) AS names, grouping(active) AS g, nullif(max(pay), 5) AS top,
  bool_or(id IS DISTINCT FROM 5) AS d, greatest(min(pay), 1) AS least, (array_agg(id ORDER BY id))[1] AS first
  FROM emp WHERE tags[1] = ANY (ARRAY['x', 'y']) AND active IS TRUE AND name COLLATE "C" > 'a' AND EXISTS (SELECT 1 FROM dept)
  GROUP BY GROUPING SETS ((dept_id), (active)) HAVING count(*) > 0;
CREATE VIEW "V {FUNCEXPR :funcid 1598" AS SELECT id AS " {XMLEXPR :funcid 1598 ", name AS "}) :opno 1" FROM emp AS "{ROWMARKCLAUSE";
CREATE MATERIALIZED VIEW m_pay AS SELECT emp_id, sum(amount) AS total, random() AS r FROM pay GROUP BY emp_id;
