//! BEGIN and its kin.

use onetrip_model::random::Random;
use onetrip_model::script::Script;

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
    const ENDS: [&str; 6] = ["COMMIT", "ROLLBACK", "END", "COMMIT AND CHAIN", "ABORT", "ROLLBACK AND CHAIN"];
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
    for _ in 0..random.within(8..24) {
        let text = match random.below(10) {
            0..=2 => "BEGIN".to_owned(),
            3 => random.pick(&BEGINS).to_owned(),
            4..=6 => random.pick(&ENDS).to_owned(),
            _ => random.pick(&STATEMENTS).replace('@', &(script.session() + 1).to_string()),
        };
        script.grouped(random, &text);
    }
}
