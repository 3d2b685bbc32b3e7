-- Tables of the story loop (bench/run loops): 10,000 employees, and what each of them earns.

CREATE TABLE emp AS
    SELECT 100 + number * 3 AS id, 'employee ' || number AS name
    FROM generate_series(1, 10000) AS number;
ALTER TABLE emp ADD PRIMARY KEY (id);

CREATE TABLE salary AS
    SELECT id AS emp_id, 30000 + id * 7919 % 50000 AS amount
    FROM emp
    ORDER BY id * 7919 % 10007;
ALTER TABLE salary ADD PRIMARY KEY (emp_id);

-- What a program notes while it reads.
CREATE TABLE note (
    emp_id  integer NOT NULL,
    text    text    NOT NULL
);

-- 1,000 parents with two collections each, as an ORM loads them lazily.
CREATE TABLE parent AS
    SELECT number * 7 AS id, 'parent ' || number AS name
    FROM generate_series(1, 1000) AS number;
ALTER TABLE parent ADD PRIMARY KEY (id);

CREATE TABLE toy AS
    SELECT number AS id, (number % 1000 + 1) * 7 AS parent_id, 'toy ' || number AS name
    FROM generate_series(1, 3000) AS number;
ALTER TABLE toy ADD PRIMARY KEY (id);
CREATE INDEX ON toy (parent_id);

CREATE TABLE book AS
    SELECT number AS id, (number % 1000 + 1) * 7 AS parent_id, 'book ' || number AS name
    FROM generate_series(1, 2000) AS number;
ALTER TABLE book ADD PRIMARY KEY (id);
CREATE INDEX ON book (parent_id);
