-- Results that are read in pieces (bench/run loops): 20,000 rows of less than 60 bytes, and 10,000 rows of 1 KiB.

CREATE TABLE narrow AS
    SELECT number AS id, 'the row with the number ' || number AS text
    FROM generate_series(1, 20000) AS number;
ALTER TABLE narrow ADD PRIMARY KEY (id);

CREATE TABLE wide AS
    SELECT number AS id, repeat(md5(number::text), 32) AS text
    FROM generate_series(1, 10000) AS number;
ALTER TABLE wide ADD PRIMARY KEY (id);
