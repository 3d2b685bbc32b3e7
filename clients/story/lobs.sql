-- Large objects (bench/run loops): a thousand of 4000 bytes each, and the rows that name them.

CREATE TABLE lob AS
    SELECT number AS id, lo_from_bytea(0, decode(repeat(md5(number::text), 250), 'hex')) AS object
    FROM generate_series(1, 1000) AS number;
ALTER TABLE lob ADD PRIMARY KEY (id);
