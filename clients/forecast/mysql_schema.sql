-- The same tables for MariaDB.

CREATE TABLE people (id int PRIMARY KEY, name varchar(40) NOT NULL, team int NOT NULL);
INSERT INTO people SELECT seq * 7, concat('person ', seq), seq % 20 FROM seq_1_to_400;

CREATE TABLE pay (person int NOT NULL, amount int NOT NULL, KEY (person));
INSERT INTO pay SELECT id, 1000 + seq * 37 FROM people JOIN seq_1_to_9;

CREATE TABLE visits (id bigint AUTO_INCREMENT PRIMARY KEY, person int NOT NULL, page text NOT NULL);

CREATE TABLE bulk (line text NOT NULL);
