-- Tables of the programs that bench/run forecasts runs at several distances.

CREATE TABLE people AS
    SELECT id * 7 AS id, 'person ' || id AS name, id % 20 AS team
    FROM generate_series(1, 400) AS id;
ALTER TABLE people ADD PRIMARY KEY (id);

CREATE TABLE pay AS
    SELECT person.id AS person, 1000 + step * 37 AS amount
    FROM people AS person, generate_series(1, 9) AS step;
CREATE INDEX pay_person ON pay (person);

CREATE TABLE visits (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    person  integer NOT NULL,
    page    text    NOT NULL
);

CREATE TABLE bulk (line text NOT NULL);
VACUUM ANALYZE;
