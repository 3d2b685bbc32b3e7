-- Tables of the acts of MySQL's drivers: those of ../schema.sql, as far as the acts use them.

CREATE TABLE authors (
    id   int          PRIMARY KEY,
    name varchar(100) NOT NULL UNIQUE
);

CREATE TABLE books (
    id        int           PRIMARY KEY,
    author_id int           NOT NULL,
    title     varchar(100)  NOT NULL,
    price     decimal(8, 2) NOT NULL,
    INDEX books_author_id (author_id)
);

CREATE TABLE t (
    id int          PRIMARY KEY,
    v  varchar(100) NOT NULL
);

-- Written to by the acts; never read back.
CREATE TABLE log (
    id      bigint       PRIMARY KEY AUTO_INCREMENT,
    message varchar(100) NOT NULL
);

CREATE TABLE accounts (
    id      int PRIMARY KEY,
    balance int NOT NULL
);

-- Names that are looked up before they are inserted.
CREATE TABLE tags (
    id   bigint       PRIMARY KEY AUTO_INCREMENT,
    name varchar(100) NOT NULL UNIQUE
);

-- A chain: each row names the next one.
CREATE TABLE links (
    id   int PRIMARY KEY,
    next int NOT NULL
);

-- Blocks of 50 numbers, for object-relational mappers that batch their inserts. MySQL has no sequences: it takes them for comments.
CREATE TABLE events (
    id   bigint       PRIMARY KEY,
    note varchar(100) NOT NULL
);
/*M!100300 CREATE SEQUENCE events_id_seq START WITH 51 INCREMENT BY 50 */;

-- A number at a time, for those that ask for it before each insert.
CREATE TABLE tickets (
    id   bigint       PRIMARY KEY AUTO_INCREMENT,
    note varchar(100) NOT NULL
);
/*M!100300 CREATE SEQUENCE tickets_id_seq */;

INSERT INTO authors (id, name) VALUES
    (101, 'author 101'), (105, 'author 105'), (112, 'author 112'), (118, 'author 118'),
    (127, 'author 127'), (133, 'author 133'), (140, 'author 140'), (152, 'author 152'),
    (161, 'author 161'), (175, 'author 175'), (188, 'author 188'), (203, 'author 203');

INSERT INTO books (id, author_id, title, price)
SELECT 1000 + id * 7 + number, id, CONCAT('book ', number, ' of ', id), id / 10.0 + number
FROM authors, (SELECT 1 AS number UNION SELECT 2 UNION SELECT 3) AS numbers;

INSERT INTO t (id, v)
SELECT a + 10 * b + 100 * c + 1, CONCAT('value ', a + 10 * b + 100 * c + 1)
FROM (SELECT 0 AS a UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4
      UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) AS ones,
     (SELECT 0 AS b UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4
      UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) AS tens,
     (SELECT 0 AS c UNION SELECT 1) AS hundreds;

INSERT INTO accounts (id, balance) VALUES
    (311, 1000), (324, 1000), (338, 1000), (347, 1000), (359, 1000), (366, 1000), (372, 1000),
    (385, 1000), (394, 1000), (408, 1000), (419, 1000), (423, 1000), (437, 1000), (446, 1000),
    (458, 1000), (469, 1000), (471, 1000), (483, 1000), (495, 1000), (502, 1000);

INSERT INTO links (id, next) VALUES
    (713, 784), (784, 722), (722, 799), (799, 741), (741, 768), (768, 705), (705, 756), (756, 731),
    (731, 790), (790, 713);
