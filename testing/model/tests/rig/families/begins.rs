//! BEGIN and its kin.

use onetrip_testkit::begins::Begins;
use onetrip_testkit::random::Random;
use onetrip_testkit::script::Script;

/// BEGIN and its kin, in every spelling, place and protocol form.
pub(crate) fn begins(script: &mut Script, random: &mut Random) {
    const BEGINS: [&str; 10] = [
        "BEGIN",
        "begin;",
        "START TRANSACTION",
        "BEGIN ISOLATION LEVEL REPEATABLE READ",
        "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
        "BEGIN READ ONLY",
        "/* app */ BEGIN",
        "BEGIN; SELECT count(*) FROM w",
        "BEGIN READ",
        "BEGIN WORK",
    ];
    const STATEMENTS: [&str; 27] = [
        "SELECT count(*), max(v) FROM w",
        "SELECT id, v FROM w ORDER BY id",
        "INSERT INTO w VALUES (7@, 1)",
        "UPDATE w SET v = v + 1 WHERE id = @ RETURNING v",
        "DELETE FROM w WHERE id = 7@",
        "SELECT current_setting('TimeZone')",
        "SHOW transaction_isolation",
        "SHOW transaction_read_only",
        "SELECT 1 / 0",
        "SELECT no_such_column",
        "SELEKT",
        "SAVEPOINT s1",
        "SAVEPOINT s1",
        "SAVEPOINT \"S2\"",
        "RELEASE s1",
        "RELEASE SAVEPOINT \"S2\"",
        "ROLLBACK TO s1",
        "SAVEPOINT s",
        "ROLLBACK TO s",
        "RELEASE s",
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET LOCAL TimeZone = 'Asia/Tokyo'",
        "SET TimeZone = 'Asia/Tokyo'",
        "RESET TimeZone",
        "SET default_transaction_isolation = 'repeatable read'",
        "RESET ALL",
        "",
    ];
    if random.one_in(2) {
        // Behind it the session's state is known, so that ends are answered.
        ["BEGIN", "SELECT id, v FROM w ORDER BY id", "COMMIT"].iter().for_each(|text| script.simple(text));
    }
    let begins = Begins { begins: &BEGINS, statements: &STATEMENTS, number: script.session() + 1 };
    for _ in 0..random.within(8..24) {
        begins.step(script, random);
    }
}
