//! Ends of transactions that only read.

use onetrip_testkit::random::Random;
use onetrip_testkit::script::{Manner, Script, Statement, Value};

use super::common::{PARENTS, USUAL, begin, interruption, writer};

/// Transactions that only read, or seem to; and what another session does right behind their ends.
pub(crate) fn commits(script: &mut Script, random: &mut Random, sessions: usize) {
    const PURE: [&str; 6] = [
        "SELECT id, name FROM p WHERE id = $1",
        "SELECT val FROM c WHERE pid = $1 ORDER BY id",
        "SELECT count(*) FROM n WHERE id > $1",
        "SELECT max(v) FROM n WHERE id <> $1",
        "SELECT id FROM p WHERE id > $1 ORDER BY id",
        "SELECT $1 + 1",
    ];
    const IMPURE: [&str; 10] = [
        "SELECT side(1)",
        "INSERT INTO w VALUES (77, 977)",
        "UPDATE w SET v = v + 1 WHERE id = 3",
        "SELECT set_config('TimeZone', 'Asia/Tokyo', true)",
        "SET LOCAL TimeZone = 'Asia/Tokyo'",
        "SET TimeZone = 'Europe/Paris'",
        "DECLARE held CURSOR WITH HOLD FOR SELECT id FROM p ORDER BY id",
        "DECLARE held CURSOR WITH HOLD FOR SELECT 100 / (25 - id) FROM n ORDER BY id",
        "SELECT id FROM w ORDER BY id FOR UPDATE",
        "SAVEPOINT s1",
    ];
    const ENDS: [&str; 9] =
        ["COMMIT", "COMMIT", "COMMIT", "ROLLBACK", "ROLLBACK", "END", "ABORT", "COMMIT AND CHAIN", "commit;"];
    const BEHIND: [&str; 5] = [
        "BEGIN; LOCK TABLE p, c, n IN ACCESS EXCLUSIVE MODE NOWAIT; ROLLBACK",
        "BEGIN; LOCK TABLE p, c, n IN ACCESS EXCLUSIVE MODE NOWAIT; ROLLBACK",
        "BEGIN; LOCK TABLE p; ROLLBACK",
        "UPDATE p SET name = name || '*'",
        "SELECT count(*) FROM w",
    ];
    if script.session() > 0 && random.one_in(4) {
        return writer(script, random);
    }
    let purity = random.pick(&[4, 8, 1000]);
    for _ in 0..random.within(4..9) {
        let manner = Manner::any(random);
        begin(script, random, &USUAL);
        for _ in 0..random.below(4) {
            if random.one_in(purity) {
                let text = random.pick(&IMPURE);
                script.any(random, text);
            } else {
                let value = Value::Int(random.pick(&PARENTS));
                script.run(&Statement::new(random.pick(&PURE), &[value]), manner);
            }
        }
        let text = random.pick(&ENDS);
        script.any(random, text);
        if random.one_in(2) {
            let other = (script.session() + 1 + random.below(sessions - 1)) % sessions;
            script.elsewhere(other, random.pick(&BEHIND));
        }
        if random.one_in(6) {
            interruption(script, random);
        }
    }
}
