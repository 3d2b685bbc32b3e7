//! The tables that programs use.

pub(crate) use onetrip_testkit::tables::PARENTS;

/// Rows of `n`, the table that cursors walk.
pub(crate) const NUMBERS: usize = 40;
/// Groups of parents.
pub(crate) const GROUPS: i64 = 3;

/// Large objects.
pub(crate) const OBJECTS: std::ops::Range<u32> = 70_001..70_017;

/// The length of an object, in bytes.
pub(crate) fn object_length(oid: u32) -> usize {
    match oid % 8 {
        5 => 0,
        6 => 20_000,
        rest => 100 + 700 * rest as usize,
    }
}

/// A parent's group, as `p.grp` has it.
pub(crate) fn group(parent: i64) -> i64 {
    place(parent) % GROUPS
}

/// A child that a parent points to, as `p.ref` has it.
pub(crate) fn reference(parent: i64) -> Option<i64> {
    let place = place(parent);
    (place % 4 != 3).then_some(1000 + 10 * ((place * 7) % 20) + 1)
}

/// The children of a parent, as `c.pid` has it.
pub(crate) fn children(parent: i64) -> Vec<i64> {
    let place = place(parent);
    (1..=place % 4).map(|number| 1000 + 10 * place + number).collect()
}

fn place(parent: i64) -> i64 {
    PARENTS.iter().position(|id| *id == parent).unwrap_or(0) as i64
}

/// The role that may read, and not all; it is the server's.
pub(crate) const ROLE: &str = "rig_reader";

/// Makes the role, if it is not there.
pub(crate) fn create_role() -> String {
    format!(
        "DO $$BEGIN CREATE ROLE {ROLE}; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END$$"
    )
}

/// Makes everything anew.
pub(crate) fn create() -> String {
    format!("{};{CREATE}{}", create_role(), fill())
}

/// Gives tables and sequences that were only written to their first contents. Statistics that a program has made would outlive
/// it, and two databases could have other plans.
pub(crate) fn refill() -> String {
    format!(
        "TRUNCATE r, p, c, d, w, f, n, e, l, k, m, log, other.p RESTART IDENTITY; \
         DELETE FROM pg_statistic WHERE starelid >= 16384; {}",
        fill()
    )
}

fn fill() -> String {
    let parents = PARENTS.map(|id| {
        let reference = reference(id).map_or("NULL".to_owned(), |id| id.to_string());
        format!("({id}, {}, {reference}, 'parent {id}')", group(id))
    });
    let children = PARENTS.map(|id| {
        let row = |child: i64| format!("({child}, {id}, 'child {child}', {child}.25)");
        children(id).into_iter().map(row).collect::<Vec<_>>()
    });
    let objects: Vec<String> = OBJECTS
        .map(|oid| {
            format!(
                "(lo_from_bytea({oid}, decode(repeat('0{:x}', {}), 'hex')))",
                oid % 16,
                object_length(oid)
            )
        })
        .collect();
    let objects = objects.join(", ");
    let (parents, children) = (parents.join(", "), children.concat().join(", "));
    format!(
        "SELECT lo_unlink(oid) FROM pg_largeobject_metadata;
        INSERT INTO l (object) VALUES {objects};
        INSERT INTO r SELECT id, 0 FROM generate_series(0, 3) id;
        INSERT INTO p VALUES {parents};
        INSERT INTO c VALUES {children};
        INSERT INTO d SELECT p.id, 'note ' || k FROM p, generate_series(1, 2) k WHERE p.id % 2 = 1;
        INSERT INTO w SELECT id, 0 FROM generate_series(1, 6) id;
        INSERT INTO n SELECT id, id * id, 'row ' || id, timestamptz '2024-03-01 12:00:00+00' + id * interval '1 day',
            date '2024-03-01' + id, id / 7::float8, decode(lpad(to_hex(id), 4, '0'), 'hex')
            FROM generate_series(1, {NUMBERS}) id;
        INSERT INTO e SELECT id, id * 2 FROM generate_series(1, 5) id;
        INSERT INTO k SELECT id, (ARRAY['sad', 'ok', 'happy'])[1 + id % 3]::mood, id FROM generate_series(1, {NUMBERS}) id;
        INSERT INTO m SELECT id, (id - 31) * (id + 1),
            timestamptz '2024-03-09 20:00:00+00' + id * interval '7 hours', date '2024-01-20' + id,
            decode(lpad(to_hex(id), 4, '0'), 'hex'), CASE id WHEN 26 THEN 'note ' || chr(26085) ELSE CASE WHEN id % 4 > 0 THEN 'note ' || id END END,
            id * interval '11 hours', id / 3::float8, (ARRAY['onetrip', 'rig_reader'])[1 + id % 2]
            FROM generate_series(1, {NUMBERS}) id;
        INSERT INTO other.p SELECT 'k' || id, id FROM generate_series(1, 3) id;
        SELECT setval('sq', 1, false);"
    )
}

const CREATE: &str = "
    SET client_min_messages = warning;
    DROP SCHEMA IF EXISTS public, other CASCADE;
    CREATE SCHEMA public; CREATE SCHEMA other;
    CREATE TABLE r (id int PRIMARY KEY, v int NOT NULL);
    CREATE TABLE p (id int PRIMARY KEY, grp int NOT NULL, ref bigint, name text NOT NULL);
    CREATE TABLE c (id bigint PRIMARY KEY, pid bigint NOT NULL, val text NOT NULL, amount numeric(8, 2) NOT NULL);
    CREATE INDEX c_pid ON c (pid);
    CREATE TABLE d (pid int NOT NULL, note text);
    CREATE TABLE w (id int PRIMARY KEY, v int NOT NULL);
    CREATE TABLE f (id int PRIMARY KEY, w int REFERENCES w DEFERRABLE INITIALLY DEFERRED);
    CREATE TABLE n (id int PRIMARY KEY, v int NOT NULL, t text NOT NULL, at timestamptz NOT NULL, day date NOT NULL,
        x float8 NOT NULL, b bytea NOT NULL);
    CREATE TABLE e (id int PRIMARY KEY, v int NOT NULL);
    CREATE TABLE l (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, object oid NOT NULL);
    CREATE TABLE log (id int GENERATED BY DEFAULT AS IDENTITY, what text NOT NULL);
    CREATE TABLE other.p (id text PRIMARY KEY, grp int NOT NULL);
    CREATE SEQUENCE sq;
    CREATE VIEW plain AS SELECT id, name FROM p;
    CREATE FUNCTION side(i int) RETURNS int LANGUAGE plpgsql AS
        'BEGIN INSERT INTO log (what) VALUES (''side '' || i); RETURN i; END';
    CREATE FUNCTION look(i int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT v FROM n WHERE id = i';
    CREATE FUNCTION calm(i int) RETURNS int LANGUAGE sql STABLE AS 'SELECT v FROM n WHERE id = i';
    CREATE FUNCTION noisy(i int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''noise %'', i; RETURN i; END';
    CREATE FUNCTION dangling(i int) RETURNS int LANGUAGE plpgsql AS
        'BEGIN INSERT INTO f VALUES (i, 900 + i); RETURN i; END';
    CREATE FUNCTION zone(z text) RETURNS text LANGUAGE plpgsql AS
        'BEGIN PERFORM set_config(''TimeZone'', z, false); RETURN z; END';
    CREATE VIEW effects AS SELECT id, side(id) AS did FROM p;
    CREATE DOMAIN positive AS int CHECK (VALUE > 0);
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
    CREATE TABLE k (id int PRIMARY KEY, mood mood NOT NULL, pos positive NOT NULL);
    CREATE TABLE m (id int PRIMARY KEY, v int NOT NULL,
        at timestamptz NOT NULL, day date NOT NULL, b bytea NOT NULL, note text, span interval NOT NULL,
        x float8 NOT NULL, owner name NOT NULL);
    CREATE VIEW zoned AS SELECT id, to_char(at, 'HH24:MI') AS s FROM m;
    CREATE VIEW told AS SELECT id, at::text AS a, span::text AS s, b::text AS b, x::text AS x FROM m;
    CREATE VIEW mine AS SELECT id, note FROM m WHERE owner = current_user;
    CREATE VIEW risky AS SELECT id, 100 / v AS q FROM m;
    CREATE VIEW flat AS SELECT id, v FROM m;
    CREATE VIEW marked AS SELECT id, xmax::text <> '0' AS mark FROM m;
    CREATE VIEW late AS SELECT id, at FROM m WHERE at > day + 30;
    CREATE FUNCTION imm(i int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT i + 1';
    CREATE FUNCTION stab(i int) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM m WHERE id < i';
    CREATE FUNCTION vol(i int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT v FROM m WHERE id = i';
    CREATE FUNCTION shifty(i int) RETURNS int LANGUAGE plpgsql AS
        'BEGIN PERFORM set_config(''DateStyle'', ''SQL, DMY'', false); RETURN i; END';
    CREATE FUNCTION shouts() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN RAISE NOTICE ''% of %'', TG_OP, TG_TABLE_NAME; PERFORM set_config(''TimeZone'', ''Asia/Tokyo'', true); RETURN NEW; END';
    CREATE TRIGGER shout BEFORE UPDATE ON m FOR EACH ROW WHEN (NEW.v = -7) EXECUTE FUNCTION shouts();
    CREATE TABLE other.e (id int PRIMARY KEY, v int NOT NULL);
    CREATE TABLE secret (id int PRIMARY KEY, owner name NOT NULL);
    INSERT INTO secret SELECT id, (ARRAY['onetrip', 'rig_reader'])[1 + id % 2] FROM generate_series(1, 20) id;
    ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON secret USING (owner = current_user);
    GRANT USAGE ON SCHEMA public, other TO rig_reader;
    GRANT SELECT, UPDATE, INSERT ON ALL TABLES IN SCHEMA public TO rig_reader;
    GRANT SELECT ON other.p TO rig_reader;
    REVOKE ALL ON d FROM rig_reader;
";
