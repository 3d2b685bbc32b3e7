//! Transactions that only read, or seem to; and what another session does right behind their ends.

use super::super::random::Random;
use super::super::schema::PARENTS;
use super::super::script::{Manner, Script, Statement, Value};
use super::super::step::{Patience, Step, Wait};
use super::common::{USUAL, begin, interruption, writer};
use crate::common::messages::query;

/// Reads that are nothing else.
const PURE: [&str; 9] = [
    "SELECT id, name FROM p WHERE id = $1",
    "SELECT val FROM c WHERE pid = $1 ORDER BY id",
    "SELECT count(*) FROM n WHERE id > $1",
    "SELECT p.id, c.val FROM p JOIN c ON c.pid = p.id WHERE p.id = $1 ORDER BY c.id",
    "SELECT name FROM plain WHERE id = $1",
    "SELECT max(v) FROM n WHERE id <> $1",
    "SELECT id FROM p WHERE id IN (SELECT pid FROM d) AND id > $1 ORDER BY id",
    "SELECT CASE WHEN id > 10 THEN 'big' ELSE lower(name) END FROM p WHERE id = $1",
    "SELECT $1 + 1",
];

/// Statements that a COMMIT has to wait for, or whose session's COMMITs have.
const IMPURE: [&str; 24] = [
    "SELECT side(1)",
    "SELECT dangling(5)",
    "INSERT INTO f VALUES (77, 977)",
    "UPDATE w SET v = v + 1 WHERE id = 3",
    "SELECT did FROM effects WHERE id = 3",
    "SELECT zone('Asia/Tokyo')",
    "SELECT set_config('DateStyle', 'German', true)",
    "SET LOCAL TimeZone = 'Asia/Tokyo'",
    "SET DateStyle = 'SQL'",
    "LISTEN a",
    "NOTIFY a, 'from a transaction'",
    "SELECT pg_notify('a', 'by function')",
    "SELECT pg_advisory_xact_lock(5)",
    "SELECT pg_advisory_lock_shared(6)",
    "SELECT pg_try_advisory_xact_lock(5)",
    "DECLARE held CURSOR WITH HOLD FOR SELECT id, 100 / (25 - id) FROM n",
    "DECLARE held CURSOR WITH HOLD FOR SELECT side(id) FROM n WHERE id < 9",
    "DECLARE held CURSOR WITH HOLD FOR SELECT id FROM p",
    "SELECT id FROM w ORDER BY id FOR UPDATE",
    "CREATE TEMP TABLE t1 (id int) ON COMMIT DROP",
    "LOCK TABLE c IN SHARE MODE",
    "SELECT nextval('sq')",
    "SAVEPOINT s1",
    "SELECT lo_creat(-1) > 0",
];

const ENDS: [&str; 11] = [
    "COMMIT",
    "COMMIT",
    "COMMIT",
    "COMMIT",
    "ROLLBACK",
    "ROLLBACK",
    "END",
    "ABORT",
    "COMMIT AND CHAIN",
    "ROLLBACK AND CHAIN",
    "commit;",
];

/// What another session finds out about the locks that are gone, or are not.
const BEHIND: [&str; 10] = [
    "SET lock_timeout = '20ms'; ALTER TABLE p ADD COLUMN IF NOT EXISTS extra int; RESET lock_timeout",
    "BEGIN; LOCK TABLE p, c, n IN ACCESS EXCLUSIVE MODE NOWAIT; ROLLBACK",
    "BEGIN; LOCK TABLE p, c, n IN ACCESS EXCLUSIVE MODE NOWAIT; ROLLBACK",
    "SELECT pg_try_advisory_xact_lock(5)",
    "SELECT pg_try_advisory_lock(6), pg_advisory_unlock_all()",
    "SELECT id FROM w ORDER BY id FOR UPDATE NOWAIT",
    "SELECT id FROM w ORDER BY id FOR UPDATE SKIP LOCKED",
    "TRUNCATE d",
    // Predicate locks outlive their transactions while another one runs, of any database.
    "SELECT count(*) FROM pg_locks WHERE relation = 'p'::regclass AND mode <> 'SIReadLock'",
    "UPDATE p SET name = name || '*'",
];

/// Transactions; one session in four writes instead.
pub(crate) fn write(script: &mut Script, random: &mut Random, sessions: usize) {
    if script.session() > 0 && random.one_in(4) {
        return writer(script, random, 8);
    }
    let purity = random.pick(&[4, 8, 1000]);
    for _ in 0..random.within(2..7) {
        transaction(script, random, purity);
        if random.one_in(2) {
            let behind = random.pick(&BEHIND);
            let other = (script.session() + 1 + random.below(sessions - 1)) % sessions;
            let patience = if behind.contains("lock_timeout") { Patience::Ends } else { Patience::Blocks };
            let step = Step::new(other, query(behind), Wait::Ready(1), behind);
            script.joined(|script| script.push(Step { patience, ..step }));
        }
        if random.one_in(6) {
            interruption(script, random);
        }
    }
}

fn transaction(script: &mut Script, random: &mut Random, purity: usize) {
    let manner = Manner::any(random);
    begin(script, random, &USUAL);
    for _ in 0..random.below(4) {
        if random.one_in(purity) {
            let text = random.pick(&IMPURE);
            script.any(random, text);
        } else {
            let value = Value::Int(random.pick(&PARENTS));
            let statement = Statement::new(random.pick(&PURE), &[value]);
            match random.below(4) {
                0 => once(script, random, &statement, manner),
                _ => script.run(&statement, manner),
            }
        }
    }
    let text = random.pick(&ENDS);
    script.any(random, text);
}

/// As PDO runs a query: a statement of its own for each, and DEALLOCATE; sometimes the program binds it all the same.
fn once(script: &mut Script, random: &mut Random, statement: &Statement, manner: Manner) {
    let name = random.pick(&["pdo_stmt_00000001", "pdo_stmt_00000001", "pdo_stmt_00000002"]);
    script.prepare(name, statement, manner);
    script.bind(name, statement, manner);
    let text = random.pick(&[
        "DEALLOCATE @",
        "DEALLOCATE @",
        "DEALLOCATE @",
        "DEALLOCATE PREPARE @",
        "DEALLOCATE ALL",
    ]);
    script.any(random, &text.replace('@', name));
    if random.one_in(8) {
        script.bind(name, statement, manner);
    }
}
