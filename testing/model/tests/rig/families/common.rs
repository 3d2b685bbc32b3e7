//! What several families do.

use onetrip_testkit::random::Random;
use onetrip_testkit::script::Script;
pub(crate) use onetrip_testkit::tables::PARENTS;

/// Levels as programs have them.
pub(super) const USUAL: [&str; 6] =
    ["BEGIN", "BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN READ ONLY", ""];

/// Begins as one of these says, or does not.
pub(super) fn begin(script: &mut Script, random: &mut Random, ways: &[&str]) {
    let text = random.pick(ways);
    if !text.is_empty() {
        script.simple(text);
    }
}

/// A statement that writes where others read; alone, it commits.
pub(super) fn write(random: &mut Random, session: usize) -> String {
    let parent = random.pick(&PARENTS);
    let number = 1 + random.below(40);
    match random.below(8) {
        0 => format!("UPDATE c SET val = val || '!' WHERE pid = {parent}"),
        1 => format!("INSERT INTO c VALUES ({session}0{number}, {parent}, 'new')"),
        2 => format!("DELETE FROM c WHERE pid = {parent} AND id % 2 = 0"),
        3 => format!("UPDATE d SET note = note || '?' WHERE pid = {parent}"),
        4 => format!("UPDATE p SET name = name || '+' WHERE id = {parent}"),
        5 => format!("UPDATE n SET v = v + 1000 WHERE id = {number}"),
        6 => format!("DELETE FROM n WHERE id = {number}"),
        _ => format!("INSERT INTO n VALUES ({session}{number}00, 1, 'new')"),
    }
}

/// What may come between any two statements of a program.
pub(super) fn interruption(script: &mut Script, random: &mut Random) {
    const TEXTS: [&str; 24] = [
        "SAVEPOINT s1",
        "SAVEPOINT \"s2\"",
        "ROLLBACK TO s1",
        "RELEASE s1",
        "SET LOCAL TimeZone = 'Asia/Tokyo'",
        "SET TimeZone = 'Europe/Paris'",
        "SET application_name = 'other'",
        "RESET TimeZone",
        "RESET ALL",
        "SET LOCAL work_mem = '1MB'",
        "SELECT set_config('TimeZone', 'Asia/Tokyo', true)",
        "SELECT side(1)",
        "SELECT 1",
        "",
        "SHOW transaction_isolation",
        "SHOW TimeZone",
        "SET TRANSACTION READ ONLY",
        "SELECT current_setting('TimeZone')",
        "DEALLOCATE ALL",
        "SELECT id FROM w ORDER BY id FOR UPDATE",
        "SELECT count(*) FROM log",
        "SELECT count(*) FROM c WHERE pid > 90",
        "CLOSE ALL",
        "SELECT 1; SELECT 2",
    ];
    script.interruption(random, &TEXTS, write);
}

/// A session that changes what the others read.
pub(super) fn writer(script: &mut Script, random: &mut Random) {
    for _ in 0..random.within(2..6) {
        script.writes(random, write);
    }
}
