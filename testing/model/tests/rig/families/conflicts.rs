//! Sessions that want the same rows.

use onetrip_testkit::random::Random;
use onetrip_testkit::script::Script;

use super::common::begin;

/// Sessions that want the same rows.
pub(crate) fn conflicts(script: &mut Script, random: &mut Random) {
    const TEXTS: [&str; 14] = [
        "UPDATE w SET v = v + 1 WHERE id = 3",
        "UPDATE w SET v = v + 1 WHERE id = 4 RETURNING id, v",
        "UPDATE w SET v = v * 2 + 1 WHERE id = 3",
        "UPDATE w SET v = 5 WHERE id = 5 AND v < 3",
        "DELETE FROM w WHERE id = 4",
        "INSERT INTO w VALUES (9, 1)",
        "INSERT INTO w VALUES (4, 1)",
        "SELECT id, v FROM w WHERE id = 3 FOR UPDATE",
        "SELECT id, v FROM w ORDER BY id",
        "SELECT id, v FROM w ORDER BY id",
        "SELECT v FROM w WHERE id = 3",
        "SAVEPOINT s1",
        "ROLLBACK TO s1",
        "SELECT id, name FROM p WHERE id = 7",
    ];
    for _ in 0..random.within(1..5) {
        begin(
            script,
            random,
            &["BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL REPEATABLE READ", ""],
        );
        for _ in 0..random.within(1..6) {
            match random.below(12) {
                0 => script.simple("LOCK TABLE w IN ACCESS EXCLUSIVE MODE NOWAIT"),
                1 => script.simple("LOCK TABLE p"),
                _ => {
                    let text = random.pick(&TEXTS);
                    script.any(random, text);
                }
            }
        }
        script.end_transaction(random);
    }
}
