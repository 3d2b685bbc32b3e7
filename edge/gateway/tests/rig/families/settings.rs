//! Programs that set and reset their sessions again and again, as pools do, and what makes that another thing.

use super::super::minima::{Shape, served};
use super::super::random::Random;
use super::super::schema::PARENTS;
use super::super::script::{Manner, Script, Statement, Value};
use super::common::{USUAL, begin, interruption, writer};

/// What comes again and again.
pub(crate) const SETTINGS: [Shape; 20] = [
    served("SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;"),
    served("SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;"),
    served("DISCARD ALL"),
    served("RESET ALL"),
    served("SET statement_timeout = 30000"),
    served("SET statement_timeout TO DEFAULT"),
    served("SET TIME ZONE 'Asia/Tokyo'"),
    served("RESET timezone"),
    served("SET DateStyle = 'German'"),
    served("SET search_path = other, public"),
    served("SET search_path TO public"),
    served("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ"),
    served("SET default_transaction_isolation = 'read committed'"),
    served("SET extra_float_digits = -3"),
    served("SET bytea_output = 'escape'"),
    served("SHOW TimeZone"),
    served("SHOW search_path"),
    served("SET client_min_messages = notice"),
    served("SET work_mem = '64kB'"),
    served("SET jit = off"),
];

/// What shows a setting, or changes one where it is not looked for. Of `transaction_isolation` and its kin only who began no
/// transaction sees a default, and a pooler's session has begun some.
const BETWEEN: [&str; 14] = [
    "SELECT now() IS NOT NULL, 0.1::float8 / 3, '\\x00ff'::bytea",
    "SELECT timestamptz '2024-02-03 04:05:06+00'",
    "SELECT name, setting, source FROM pg_settings WHERE source = 'session' AND name NOT LIKE 'transaction\\_%' ORDER BY name",
    "SELECT current_schemas(false)",
    "SELECT set_config('TimeZone', 'Europe/Paris', false)",
    "SELECT zone('Europe/Paris')",
    "SELECT side(1)",
    "SELECT pg_try_advisory_lock(9)",
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
    "DECLARE held CURSOR WITH HOLD FOR SELECT id FROM p",
    "SELECT name FROM pg_cursors ORDER BY name",
    "LISTEN a",
    "SET LOCAL TimeZone = 'Asia/Tokyo'",
    // Too little for the server, which says so.
    "SET work_mem = '1kB'",
];

/// A parameter that is shown is the session's own.
const SHOWN: [[&str; 2]; 2] =
    [["SET TIME ZONE 'UTC'", "SHOW TimeZone"], ["SET search_path TO public", "SHOW search_path"]];

/// Leases of a pool's connection: settings, work, and mostly the same settings again; one session in five writes.
pub(crate) fn write(script: &mut Script, random: &mut Random) {
    if script.session() > 0 && random.one_in(5) {
        return writer(script, random, 8);
    }
    let mut usual: Vec<&str> = (0..random.within(1..4)).map(|_| random.pick(&SETTINGS).text).collect();
    if random.one_in(6) {
        usual.extend(random.pick(&SHOWN));
    }
    let restlessness = random.pick(&[3, 6, 1000]);
    for _ in 0..random.within(3..8) {
        for text in &usual {
            let text = if random.one_in(8) { random.pick(&SETTINGS).text } else { *text };
            set(script, random, text);
        }
        work(script, random, restlessness);
    }
}

fn set(script: &mut Script, random: &mut Random, text: &str) {
    if text.contains(';') || random.one_in(2) {
        script.simple(text);
    } else {
        script.any(random, text);
    }
    if text == "DISCARD ALL" {
        script.forget();
    }
}

fn work(script: &mut Script, random: &mut Random, restlessness: usize) {
    let is_transaction = random.one_in(2);
    if is_transaction {
        begin(script, random, &USUAL);
    }
    for _ in 0..random.below(3) {
        let value = Value::Int(random.pick(&PARENTS));
        let statement = Statement::new("SELECT id, name FROM p WHERE id = $1", &[value]);
        script.run(&statement, Manner::any(random));
        if random.one_in(restlessness) {
            let text = random.pick(&BETWEEN);
            script.any(random, text);
        }
        if random.one_in(3 * restlessness) {
            interruption(script, random);
        }
    }
    if is_transaction {
        script.end_transaction(random);
    }
}
