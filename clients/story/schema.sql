-- Tables of the story loop (scripts/bench-loops): 10,000 employees, and what each of them earns.

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
