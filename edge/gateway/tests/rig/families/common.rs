//! What several families do.

use super::super::random::Random;
use super::super::schema::PARENTS;
use super::super::script::Script;

/// Begins a transaction, or does not.
pub(crate) fn begin(script: &mut Script, random: &mut Random, levels: &[(usize, &str)]) {
    let weights: Vec<usize> = levels.iter().map(|(weight, _)| *weight).collect();
    let text = levels[random.weighted(&weights)].1;
    if !text.is_empty() {
        script.simple(text);
    }
}

/// Levels where a snapshot lasts, mostly.
pub(crate) const SNAPSHOTS: [(usize, &str); 6] = [
    (9, "BEGIN ISOLATION LEVEL REPEATABLE READ"),
    (3, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
    (3, "BEGIN"),
    (1, "BEGIN ISOLATION LEVEL SERIALIZABLE"),
    (1, "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE"),
    (1, ""),
];

/// Levels as programs have them.
pub(crate) const USUAL: [(usize, &str); 6] = [
    (6, "BEGIN"),
    (3, "BEGIN ISOLATION LEVEL REPEATABLE READ"),
    (1, "BEGIN READ ONLY"),
    (1, "BEGIN ISOLATION LEVEL SERIALIZABLE"),
    (1, "START TRANSACTION"),
    (1, ""),
];

/// A statement that writes where others read; alone, it commits.
pub(crate) fn write(random: &mut Random, session: usize) -> String {
    let parent = random.pick(&PARENTS);
    match random.below(9) {
        0 => format!("UPDATE c SET val = val || '!' WHERE pid = {parent}"),
        1 => format!("INSERT INTO c VALUES ({session}00 + (SELECT count(*) FROM c), {parent}, 'new', 1.5)"),
        2 => format!("DELETE FROM c WHERE pid = {parent} AND id % 2 = 0"),
        3 => format!("UPDATE d SET note = note || '?' WHERE pid = {parent}"),
        4 => format!("UPDATE p SET name = name || '+' WHERE id = {parent}"),
        5 => format!("UPDATE n SET v = v + 1000 WHERE id = {}", 1 + random.below(40)),
        6 => format!("DELETE FROM n WHERE id = {}", 1 + random.below(40)),
        7 => format!(
            "INSERT INTO n SELECT {session}00 + (SELECT count(*) FROM n), 1, 'new', at, day, x, b FROM n LIMIT 1"
        ),
        _ => format!("UPDATE n SET t = 'changed' WHERE id % 7 = {}", random.below(7)),
    }
}

/// What may come between any two statements of a program.
pub(crate) fn interruption(script: &mut Script, random: &mut Random) {
    const TEXTS: [&str; 34] = [
        "SAVEPOINT s1",
        "SAVEPOINT \"s2\"",
        "ROLLBACK TO s1",
        "RELEASE s1",
        "SET LOCAL TimeZone = 'Asia/Tokyo'",
        "SET DateStyle = 'German'",
        "SET extra_float_digits = -10",
        "SET bytea_output = 'escape'",
        "SET search_path = other, public",
        "RESET search_path",
        "RESET ALL",
        "SET LOCAL work_mem = '1MB'",
        "SELECT set_config('DateStyle', 'SQL', true)",
        "SELECT zone('Europe/Paris')",
        "SELECT side(1)",
        "SELECT noisy(2)",
        "SELECT calm(3)",
        "SELECT nextval('sq')",
        "SELECT 1",
        "",
        "SHOW transaction_isolation",
        "SELECT pg_current_xact_id_if_assigned() IS NULL",
        "CREATE TEMP TABLE c (id bigint, pid bigint, val text, amount numeric)",
        "CREATE TEMP TABLE IF NOT EXISTS mine (id int) ON COMMIT DROP",
        "SELECT name, statement FROM pg_prepared_statements ORDER BY name",
        "SELECT name FROM pg_cursors ORDER BY name",
        "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation' AND relation >= 16384 AND mode <> 'SIReadLock'",
        "LISTEN a",
        "NOTIFY b",
        "SELECT pg_try_advisory_xact_lock(7)",
        "SET TRANSACTION READ ONLY",
        "DEALLOCATE ALL",
        "SELECT id FROM w ORDER BY id FOR SHARE",
        "SET LOCAL enable_indexscan = off",
    ];
    script.interruption(random, &TEXTS, write);
}

/// DDL on what other sessions read; it waits for them, or gives up.
pub(crate) fn ddl(script: &mut Script, random: &mut Random) {
    const TEXTS: [&str; 9] = [
        "ALTER TABLE c ADD COLUMN extra int DEFAULT 5",
        "ALTER TABLE p ALTER COLUMN grp TYPE bigint",
        "ALTER TABLE n ADD COLUMN extra text",
        "CREATE INDEX ON d (pid)",
        "ALTER TABLE e ALTER COLUMN v TYPE text",
        "ALTER TABLE e RENAME COLUMN v TO u",
        "CREATE OR REPLACE FUNCTION calm(i int) RETURNS int LANGUAGE sql STABLE AS 'SELECT v + 1 FROM n WHERE id = i'",
        "TRUNCATE d",
        "ALTER TABLE c ALTER COLUMN val TYPE varchar(40)",
    ];
    let text = random.pick(&TEXTS);
    if random.one_in(2) {
        script.simple("SET lock_timeout = '25ms'");
        script.joined(|script| script.ending(text));
        script.joined(|script| script.simple("RESET lock_timeout"));
    } else {
        script.simple(text);
    }
}

/// A session that changes what the others read.
pub(crate) fn writer(script: &mut Script, random: &mut Random, ddl_one_in: usize) {
    for _ in 0..random.within(2..6) {
        if !script.is_calm() && random.one_in(ddl_one_in) {
            ddl(script, random);
        } else {
            script.writes(random, write);
        }
    }
}
