//! BEGIN and its kin, in every spelling, place and protocol form.

use onetrip_testkit::begins::Begins;

use super::super::minima::{Shape, served};
use super::super::random::Random;
use super::super::script::Script;

/// Ways to begin, whether or not they are answered early.
const BEGINS: [&str; 14] = [
    "BEGIN",
    "begin;",
    "START TRANSACTION",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
    "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE",
    "BEGIN ISOLATION LEVEL SERIALIZABLE",
    "BEGIN READ ONLY",
    "START TRANSACTION READ WRITE, NOT DEFERRABLE;",
    "/* app */ BEGIN",
    "BEGIN; SELECT count(*) FROM r",
    "BEGIN ISOLATION LEVEL SNAPSHOT",
    "BEGIN READ",
    "BEGIN WORK READ ONLY,,DEFERRABLE",
];

/// Texts that begin, or end a savepoint, and are answered early.
pub(crate) const SHAPES: [Shape; 6] = [
    served("BEGIN"),
    served("begin;"),
    served("START TRANSACTION"),
    served("BEGIN READ ONLY"),
    served("SAVEPOINT s1"),
    served("RELEASE s1"),
];

/// Statements that wait for no other session: each writes rows of its own.
const STATEMENTS: [&str; 33] = [
    "SELECT count(*), sum(v) FROM r",
    "SELECT id, v FROM r ORDER BY id",
    "INSERT INTO r VALUES (@ + 100 * (SELECT count(*) FROM r), 1)",
    "UPDATE r SET v = v + 1 WHERE id = @ RETURNING v",
    "DELETE FROM r WHERE id % 100 = @ AND id >= 100",
    "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')",
    "SHOW transaction_isolation",
    "SELECT pg_current_xact_id_if_assigned() IS NULL",
    "SELECT 1 / 0",
    "SELECT no_such_column",
    "SELEKT",
    "SAVEPOINT s1",
    "SAVEPOINT s1",
    "SAVEPOINT \"S2\"",
    "RELEASE s1",
    "RELEASE SAVEPOINT \"S2\"",
    "ROLLBACK TO s1",
    "SAVEPOINT s1; SELECT 1; RELEASE s1",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "RELEASE s",
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SET LOCAL TimeZone = 'Asia/Tokyo'",
    "SET TimeZone = 'Asia/Tokyo'",
    "SET DateStyle = 'German'",
    "RESET TimeZone",
    "SET default_transaction_isolation = 'repeatable read'",
    "RESET ALL",
    "DISCARD ALL",
    "SELECT now() = statement_timestamp() OR true",
    "CREATE TEMP TABLE IF NOT EXISTS mine (id int) ON COMMIT DROP",
    "",
    "SELECT count(*) FROM pg_prepared_statements UNION ALL SELECT count(*) FROM pg_cursors",
];

/// Statements in an order of chance.
pub(crate) fn write(script: &mut Script, random: &mut Random) {
    let begins = Begins { begins: &BEGINS, statements: &STATEMENTS, number: script.session() };
    for _ in 0..random.within(4..20) {
        if random.one_in(8) {
            nested(script);
        } else {
            begins.step(script, random);
        }
    }
}

/// A savepoint that is released as it was made. By chance alone that is rare.
fn nested(script: &mut Script) {
    for text in ["BEGIN", "SAVEPOINT s1", "SELECT count(*), sum(v) FROM r", "RELEASE s1"] {
        script.simple(text);
    }
}
