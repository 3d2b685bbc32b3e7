-- Statements as drivers and ORMs write them, one per paragraph. "kept" lists constants that pg_query leaves in place.

SELECT * FROM employees WHERE emp_no = 10001

SELECT * FROM employees WHERE emp_no = 10002 AND last_name = 'O''Brien'

SELECT salary, from_date FROM salaries WHERE emp_no = 10001 AND from_date >= '1986-06-26'::date

SELECT id FROM t WHERE ts > '2024-05-01T10:00:00+00:00'::timestamptz AND flag = true AND note IS NULL

INSERT INTO t (a, b, c, d) VALUES (1, 'x', NULL, '\x0102'::bytea)

INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y'), (3, NULL)

INSERT INTO logs (at, msg) VALUES ('2024-01-01T00:00:00'::timestamp, E'back\\slash')

UPDATE t SET a = 5, b = 'it''s', c = NULL WHERE id = ANY(ARRAY[1,2,3])

DELETE FROM t WHERE id IN (1, 2, 3, 4) AND kind <> 'x'

SELECT * FROM t WHERE data @> '{"a": [1, 2, {"b": "it''s"}]}'::jsonb

SELECT ARRAY['a', 'b', NULL], '{1,2,3}'::int[], ARRAY[]::text[]

SELECT * FROM t WHERE (a, b) IN ((1, 'x'), (2, 'y'))

SELECT "auth_user"."id", "auth_user"."password", "auth_user"."last_login" FROM "auth_user" WHERE "auth_user"."username" = 'admin' LIMIT 21

SELECT (1) AS "a" FROM "polls_question" WHERE "polls_question"."id" = 5 LIMIT 1

SELECT COUNT(*) AS "__count" FROM "polls_choice" WHERE ("polls_choice"."question_id" = 1 AND UPPER("polls_choice"."text"::text) LIKE UPPER('%no%'))

INSERT INTO "polls_question" ("question_text", "pub_date") VALUES ('What''s new?', '2024-02-03T04:05:06.789+00:00'::timestamptz) RETURNING "polls_question"."id"

INSERT INTO "polls_choice" ("question_id", "choice_text", "votes") VALUES (1, 'Not much', 0), (1, 'The sky', 0), (1, 'Just hacking again', -1) RETURNING "polls_choice"."id"

UPDATE "polls_choice" SET "votes" = ("polls_choice"."votes" + 1) WHERE "polls_choice"."id" = 3

DELETE FROM "django_session" WHERE "django_session"."session_key" IN ('2b1189a188b44ad18c35e113ac6ceead')

SELECT "a"."id", CASE WHEN "a"."n" > 10 THEN 'many' WHEN "a"."n" = -1 THEN 'none' ELSE NULL END AS "k" FROM "a" ORDER BY "a"."id" DESC LIMIT 10 OFFSET 20

-- kept: 1
SELECT "store_book"."publisher_id", COUNT("store_book"."id") AS "n" FROM "store_book" GROUP BY 1 HAVING COUNT("store_book"."id") > 2 ORDER BY "n" DESC

SELECT EXTRACT('year' FROM "t"."at" AT TIME ZONE 'UTC') AS "y" FROM "t" WHERE "t"."at" BETWEEN '2024-01-01 00:00:00+00:00'::timestamptz AND '2024-12-31 23:59:59.999999+00:00'::timestamptz

SELECT "t"."id" FROM "t" WHERE NOT ("t"."id" IN (SELECT U0."id" FROM "u" U0 WHERE U0."k" = 'x' AND U0."n" IN (1, 2)))

SELECT c.relname, CASE WHEN c.relispartition THEN 'p' WHEN c.relkind IN ('m', 'v') THEN 'v' ELSE 't' END, obj_description(c.oid, 'pg_class') FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('f', 'm', 'p', 'r', 'v') AND n.nspname NOT IN ('pg_catalog', 'pg_toast') AND pg_catalog.pg_table_is_visible(c.oid)

SELECT "app_order"."id" FROM "app_order" WHERE "app_order"."state" = 'open' FOR UPDATE SKIP LOCKED

INSERT INTO "app_tag" ("name") VALUES ('a'), ('b') ON CONFLICT ("name") DO UPDATE SET "name" = EXCLUDED."name" RETURNING "app_tag"."id"

SELECT users.id AS users_id, users.name AS users_name FROM users WHERE users.name = 'ed' ORDER BY users.id LIMIT 1

SELECT anon_1.users_id AS anon_1_users_id, addresses_1.id AS addresses_1_id FROM (SELECT users.id AS users_id FROM users LIMIT 2 OFFSET 1) AS anon_1 LEFT OUTER JOIN addresses AS addresses_1 ON anon_1.users_id = addresses_1.user_id

SELECT addresses.user_id AS addresses_user_id FROM addresses WHERE addresses.user_id IN (1, 2, 3, 4, 5)

SELECT users.id FROM users WHERE users.id IN ($1::INTEGER, $2::INTEGER, $3::INTEGER)

SELECT users.id FROM users WHERE users.name = $1::VARCHAR AND users.fullname LIKE '%x%' LIMIT $2::INTEGER

INSERT INTO users (name, fullname) SELECT p0::VARCHAR, p1::VARCHAR FROM (VALUES ('a', 'b', 0), ('c', 'd', 1)) AS imp_sen(p0, p1, sen_counter) ORDER BY sen_counter RETURNING users.id, users.id AS id__1

SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace WHERE pg_catalog.pg_class.relname = 'users' AND pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm']) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog'

SELECT t.oid, typarray FROM pg_type t JOIN pg_namespace ns ON typnamespace = ns.oid WHERE typname = 'hstore'

-- kept: 60
SELECT CAST('test plain returns' AS VARCHAR(60)) AS anon_1

select pg_catalog.version()

select current_schema()

show standard_conforming_strings

select employee0_.id as id1_0_, employee0_.name as name2_0_ from Employee employee0_ where employee0_.id=1

select e1_0.id,e1_0.name from employee e1_0 where e1_0.id=$1

select s1_0.id,s1_0.amount from salary s1_0 where s1_0.emp_id in ($1,$2,$3,$4)

select s1_0.id,s1_0.amount from salary s1_0 where s1_0.emp_id = any ($1)

insert into employee (dept_id,name,id) values (1,'x',default)

select nextval('employee_seq')

update employee set dept_id=2,name='y',version=3 where id=1 and version=2

select e1_0.id from employee e1_0 order by e1_0.id offset 10 rows fetch first 20 rows only

select count(*) from employee e1_0 where (e1_0.a>1.5 or e1_0.b<-1.5) and e1_0.c between 1 and 10

SELECT "users".* FROM "users" WHERE "users"."id" = 1 LIMIT 1

SELECT 1 AS one FROM "users" WHERE "users"."email" = 'a@b.c' LIMIT 1 /*application:Shop,controller:users,action:create*/

SELECT "posts".* FROM "posts" WHERE "posts"."user_id" IN (1, 2, 3) /* action='index',controller='posts' */

INSERT INTO "users" ("email", "created_at") VALUES ('a@b.c', '2024-01-01 00:00:00.000000') RETURNING "id"

UPDATE "users" SET "sign_in_count" = COALESCE("sign_in_count", 0) + 1 WHERE "users"."id" = 1

SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), a.attnotnull, a.atttypid, a.atttypmod FROM pg_attribute a LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum WHERE a.attrelid = '"users"'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum

SELECT t.oid, t.typname FROM pg_type as t LEFT JOIN pg_range as r ON oid = rngtypid WHERE t.typname IN ('int2', 'int4', 'int8', 'oid', 'float4') OR t.typtype IN ('r', 'e', 'd')

SELECT DISTINCT ON (a.id) a.id, b.x FROM a JOIN b ON b.a_id = a.id AND b.kind = 'k' ORDER BY a.id, b.at DESC

SELECT ('5'::int4), ('it''s'::varchar), ('-1.5'::numeric)

INSERT INTO t VALUES (('1'::int4), ('x'::varchar)), (('2'::int4), ('y'::varchar))

SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, c.relname AS TABLE_NAME, CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema' WHEN true THEN CASE WHEN n.nspname = 'pg_catalog' OR n.nspname = 'information_schema' THEN CASE c.relkind WHEN 'r' THEN 'SYSTEM TABLE' ELSE NULL END ELSE NULL END WHEN false THEN CASE c.relkind WHEN 'r' THEN 'TABLE' ELSE NULL END ELSE NULL END AS TABLE_TYPE FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c WHERE c.relnamespace = n.oid AND c.relname LIKE 'emp%' AND (false OR ( c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ) ) ORDER BY TABLE_TYPE,TABLE_SCHEM,TABLE_NAME

SELECT e.typdelim FROM pg_catalog.pg_type t, pg_catalog.pg_type e WHERE t.oid = $1 and t.typelem = e.oid

SELECT * FROM users WHERE id = $1 AND deleted_at IS NULL ORDER BY id LIMIT 1

SELECT count(*) FROM "orders" WHERE "orders"."deleted_at" IS NULL AND (state = 'paid' AND total > 100.50)

select "users"."id" from "users" where "users"."age" >= 18 and ("name" ilike '%a%' or "name" similar to '(b|c)%' escape '!')

WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 100) SELECT sum(n) FROM t

WITH moved AS (DELETE FROM queue WHERE id = 7 RETURNING *) INSERT INTO done SELECT *, 'ok' FROM moved

MERGE INTO stock s USING (VALUES ('a', 1), ('b', -2)) v(item, delta) ON s.item = v.item WHEN MATCHED AND s.qty + v.delta > 0 THEN UPDATE SET qty = s.qty + v.delta WHEN NOT MATCHED THEN INSERT VALUES (v.item, 5)

SELECT t.*, row_number() OVER (PARTITION BY a ORDER BY b DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t WHERE c = 4

SELECT jsonb_path_query(doc, '$.a[*] ? (@.b > 1)'), doc->'a'->0->>'b', doc #>> '{a,0}' FROM d WHERE doc ? 'k' AND doc ?| array['a','b']

SELECT a <-> 'point', '<(1,2),3>'::circle @> '(1,2)'::point, 5 % 3, 2 ^ -3, |/ 25, @ -5, ~ 1 FROM t

SELECT a-1, a -1, a - 1, a- 1, -1, - 1, +1, a+-1, a*-1, (-1), f(-1), a[-1], -a FROM t WHERE x=-1 AND y<-1 AND z>=-1 AND w <> -1

SELECT a [1:2], a[1 : 2], a[:3], a[4:] FROM t

SELECT 1., .5, 1.5, 1e10, 1.5e-3, 1E+2, 0x1F, 0o17, 0b11, 1_000_000, 0X_ff
