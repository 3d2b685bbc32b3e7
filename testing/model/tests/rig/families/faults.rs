//! What no program can see coming, and the model alone can do to the message: statements that fail for want of memory, a server
//! that follows another one, a pooler, rights that are taken away, timeouts, and names that only a session of onetrip knows.

use std::time::Duration;

use onetrip_testkit::messages::{query, run_unnamed, sync};
use onetrip_testkit::random::Random;
use onetrip_testkit::script::{Form, INT8, Manner, Script, Statement, Value};
use onetrip_testkit::step::{Aside, Step, Wait};

use super::super::simulation::PRIVATE;
use super::common::PARENTS;
use super::loops::{CHILDREN, NOTES, SNAPSHOTS, pieces};

const PARENTS_READ: &str = "SELECT id, name FROM p ORDER BY id";

fn aside(script: &mut Script, aside: Aside) {
    script.push(Step::aside(script.session(), aside));
}

/// The server cannot do what may have been answered; what comes behind it must not run.
pub(crate) fn refused(script: &mut Script, random: &mut Random) {
    if script.session() > 0 {
        return;
    }
    let what = random.pick(&["START", "START", "START", "COMMIT", "DISCARD", "RESET"]);
    for _ in 0..4 {
        ["BEGIN", "SELECT id, v FROM w ORDER BY id", "COMMIT"].iter().for_each(|text| script.simple(text));
        match what {
            "DISCARD" => script.simple("DISCARD ALL"),
            "RESET" => script.simple("RESET ALL"),
            _ => {}
        }
    }
    if what == "COMMIT" {
        ["BEGIN", "SELECT id, v FROM w ORDER BY id"].iter().for_each(|text| script.simple(text));
    }
    let (one, two) = ("INSERT INTO w VALUES (71, 1)", "INSERT INTO w VALUES (72, 1)");
    let (bytes, ready) = match random.below(4) {
        0 => (query(one), 1),
        1 => ([run_unnamed(one), sync()].concat(), 1),
        2 => ([query(one), query(two)].concat(), 2),
        _ => ([run_unnamed(one), sync(), run_unnamed(two), sync()].concat(), 2),
    };
    script.block(|script| {
        aside(script, Aside::RefusesNext(what));
        script.simple(match what {
            "START" => "START TRANSACTION",
            "COMMIT" => "COMMIT",
            "DISCARD" => "DISCARD ALL",
            _ => "RESET ALL",
        });
        match what {
            "START" => script.send(bytes, Wait::Ready(ready), format!("{one}, and so on")),
            _ => script.simple("SELECT 1"),
        }
        script.simple("SELECT 2");
    });
}

/// A server that follows another one.
pub(crate) fn standbys(script: &mut Script, random: &mut Random) {
    const TEXTS: [&str; 12] = [
        "BEGIN",
        "BEGIN READ WRITE",
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
        "START TRANSACTION READ WRITE",
        "BEGIN READ ONLY",
        "BEGIN ISOLATION LEVEL REPEATABLE READ",
        "SELECT id, v FROM w ORDER BY id",
        "INSERT INTO w VALUES (71, 1)",
        "SHOW transaction_read_only",
        "COMMIT",
        "COMMIT",
        "ROLLBACK",
    ];
    aside(script, Aside::StandsBy);
    for _ in 0..random.within(6..20) {
        script.simple(random.pick(&TEXTS));
    }
}

/// A connection for replication knows simple queries alone.
pub(crate) fn replications(script: &mut Script, random: &mut Random) {
    const TEXTS: [&str; 7] = [
        "BEGIN",
        "BEGIN READ ONLY",
        "SELECT id, v FROM w ORDER BY id",
        "SAVEPOINT s1",
        "RELEASE s1",
        "COMMIT",
        "COMMIT",
    ];
    aside(script, Aside::Replicates);
    for _ in 0..random.within(6..20) {
        script.simple(random.pick(&TEXTS));
    }
}

/// A pool's housekeeping, again and again; a configuration that is read anew; another value by a function.
pub(crate) fn leases(script: &mut Script, random: &mut Random) {
    const USUAL: [&str; 9] = [
        "RESET ALL",
        "DISCARD ALL",
        "SET timezone = 'Asia/Tokyo'",
        "RESET timezone",
        "SET work_mem = '1MB'",
        "SHOW timezone",
        "SHOW work_mem",
        "SHOW work_mem",
        "SET lock_timeout = '900ms'",
    ];
    const BETWEEN: [&str; 6] = [
        "SELECT set_config('timezone', 'Europe/Paris', false)",
        "SELECT set_config('work_mem', '2MB', false)",
        "SET timezone = 'Europe/Paris'",
        "SELECT side(1)",
        "SHOW timezone",
        "SELECT id, name FROM p WHERE id = 7",
    ];
    let usual: Vec<&str> = (0..random.within(1..4)).map(|_| random.pick(&USUAL)).collect();
    let (restlessness, reloads) = (random.pick(&[3, 6, 1000]), random.one_in(4) && script.session() == 0);
    for lease in 0..random.within(4..10) {
        usual.iter().for_each(|text| script.simple(text));
        script.simple("SELECT id, name FROM p WHERE id = 7");
        if random.one_in(restlessness) {
            script.simple(random.pick(&BETWEEN));
        }
        if reloads && lease == 3 {
            aside(script, Aside::Configures("work_mem", "16MB"));
        }
    }
}

/// Cancel requests that come right behind a statement, before which something was answered early.
pub(crate) fn cancels(script: &mut Script, random: &mut Random) {
    if script.session() > 0 {
        return;
    }
    for _ in 0..random.within(2..5) {
        ["BEGIN", "SELECT id, v FROM w ORDER BY id", "COMMIT"].iter().for_each(|text| script.simple(text));
    }
    script.block(|script| {
        script.simple(random.pick(&["BEGIN", "BEGIN READ ONLY", "BEGIN ISOLATION LEVEL REPEATABLE READ"]));
        aside(script, Aside::CancelsNext);
        script
            .simple(random.pick(&["SELECT id, v FROM w ORDER BY id", "SELECT id, name FROM p WHERE id = 7"]));
        script.simple("SELECT 1");
        script.simple("ROLLBACK");
    });
}

/// A loop over rows of which the server warns of one.
pub(crate) fn warnings(script: &mut Script, random: &mut Random) {
    aside(script, Aside::Warns(PARENTS[6]));
    let manner = Manner::any(random);
    for _ in 0..random.within(1..4) {
        script.simple(SNAPSHOTS[0]);
        script.run(&Statement::new(PARENTS_READ, &[]), manner);
        for id in PARENTS.into_iter().take(12) {
            script
                .run(&Statement::new("SELECT id, grp, ref FROM p WHERE id = $1", &[Value::Int(id)]), manner);
        }
        script.simple("COMMIT");
    }
}

/// A piece that is read ahead fails, once the program is known to read in pieces.
pub(crate) fn failing_pieces(script: &mut Script, random: &mut Random) {
    if script.session() > 0 {
        return;
    }
    let (at, is_cursor) = (random.within(2..8), random.one_in(2));
    for turn in 0..3 {
        let between = |script: &mut Script, piece: usize| {
            if piece == at && turn == 2 {
                aside(script, Aside::FailsAhead(PRIVATE));
            }
        };
        script.simple("BEGIN");
        if is_cursor {
            walk_c1(script, 10, between);
        } else {
            pieces(script, 2, 10, between);
        }
        script.simple("ROLLBACK");
    }
}

/// A cursor of forty rows, two at a time; `between` comes before each piece.
fn walk_c1(script: &mut Script, count: usize, mut between: impl FnMut(&mut Script, usize)) {
    script.simple("DECLARE c1 CURSOR FOR SELECT id, v FROM n ORDER BY id");
    for piece in 0..count {
        between(script, piece);
        script.simple("FETCH 2 FROM c1");
    }
}

/// Cursors in a database with a function that moves them.
pub(crate) fn moves(script: &mut Script, random: &mut Random) {
    aside(script, Aside::Moves);
    for _ in 0..random.within(2..5) {
        script.simple("BEGIN");
        walk_c1(script, random.within(5..9), |script, _| {
            if random.one_in(5) {
                script.simple("SELECT moves()");
            }
        });
        script.simple("COMMIT");
    }
}

/// A function that is the server's own, or a user's that comes first in the search path and says something now and then.
pub(crate) fn builtins(script: &mut Script, random: &mut Random) {
    for turn in 0..random.within(6..12) {
        if turn == 2 {
            script.simple(
                random.pick(&["SET search_path = 'other, pg_catalog, public'", "SET work_mem = '1MB'"]),
            );
        }
        script.simple("SELECT pg_advisory_unlock_all()");
        if random.one_in(3) {
            script.simple("SELECT id, name FROM p WHERE id = 7");
        }
    }
}

/// Statements over a column whose type changes, by another session of the gateway's.
pub(crate) fn alters(script: &mut Script, random: &mut Random, sessions: usize) {
    let last = sessions - 1;
    if script.session() == last {
        return; // it alters what the others make it alter
    }
    let manner = Manner {
        form: random.pick(&[Form::Split, Form::Split, Form::Named]),
        declared: Some(INT8),
        is_binary: false,
    };
    let text = random.pick(&OF_THE_COLUMN);
    for turn in 0..random.within(4..12) {
        let statement = Statement::new(text, &[Value::Int(1 + random.below(4) as i64)]);
        if turn > 1 && random.one_in(3) {
            let kind = random.pick(&["bigint", "integer"]);
            script.elsewhere(last, &format!("ALTER TABLE w ALTER COLUMN v TYPE {kind}"));
        }
        script.run(&statement, manner);
    }
}

/// The same by somebody who does not use the gateway: a statement may be described as it was, and then fails. The other
/// sessions make it known.
pub(crate) fn neighbours(script: &mut Script, random: &mut Random) {
    let manner = Manner { form: Form::Split, declared: Some(INT8), is_binary: false };
    if script.session() > 0 {
        let value = Value::Int(4 + script.session() as i64 % 3);
        script.run(&by_value(4), Manner { declared: None, is_binary: true, ..manner });
        return OF_THE_COLUMN.iter().for_each(|text| {
            script.run(&Statement::new(text, std::slice::from_ref(&value)), manner);
        });
    }
    let read = Statement::new("SELECT id, name FROM p WHERE id = $1", &[Value::Int(7)]);
    (0..6).for_each(|_| script.run(&read, manner));
    let (statement, manner) = match random.below(3) {
        0 => (by_value(3), Manner { declared: None, is_binary: true, ..manner }),
        _ => (Statement::new(random.pick(&OF_THE_COLUMN), &[Value::Int(3)]), manner),
    };
    let is_transaction = random.one_in(2);
    script.block(|script| {
        if is_transaction {
            script.simple("BEGIN");
        }
        script.run(&read, manner);
        aside(script, Aside::Widens);
        script.run(&statement, manner);
        script.pause_before_last(Duration::from_millis(200));
        script.simple("SELECT id, name FROM p WHERE id = 7");
        if is_transaction {
            script.simple("ROLLBACK");
        }
    });
}

/// Its parameter is described otherwise once the column has another type; a program sends four bytes where it was told integer.
fn by_value(value: i64) -> Statement {
    Statement::new("SELECT id FROM w WHERE v = $1", &[Value::Int(value)])
}

/// What is described otherwise once the column has another type.
const OF_THE_COLUMN: [&str; 2] =
    ["SELECT id, v FROM w WHERE id = $1", "UPDATE w SET v = v + 1 WHERE id = $1 RETURNING id, v"];

/// One session of the server behind all clients: what one of them sets, another is shown.
pub(crate) fn shared(script: &mut Script, random: &mut Random) {
    const TEXTS: [&str; 8] = [
        "SET timezone = 'Asia/Tokyo'",
        "SET timezone = 'Europe/Paris'",
        "SHOW timezone",
        "SHOW timezone",
        "SET work_mem = '1MB'",
        "SHOW work_mem",
        "RESET ALL",
        "SELECT id, name FROM p WHERE id = 7",
    ];
    aside(script, Aside::Shares);
    let usual: Vec<&str> = (0..random.within(2..4)).map(|_| random.pick(&TEXTS)).collect();
    for _ in 0..random.within(3..9) {
        usual.iter().for_each(|text| script.simple(text));
        if random.one_in(3) {
            script.simple(random.pick(&TEXTS));
        }
    }
}

/// A configuration that is read anew amid everything, and notifications: sessions are told where a server tells them.
pub(crate) fn told(script: &mut Script, random: &mut Random) {
    const ZONES: [&str; 3] = ["Asia/Karachi", "Asia/Tokyo", "Europe/Paris"];
    for turn in 0..random.within(3..8) {
        script.block(|script| {
            match random.below(4) {
                0 if turn > 0 => aside(script, Aside::ConfiguresAtOnce("timezone", random.pick(&ZONES))),
                1 if turn > 1 => aside(script, Aside::Notifies),
                _ => {}
            }
            script.simple(random.pick(&["BEGIN", "BEGIN READ ONLY"]));
            for _ in 0..random.below(3) {
                script.simple("SELECT id, v FROM w ORDER BY id");
            }
            script.simple("COMMIT");
        });
    }
}

/// A right is taken away while a snapshot lasts.
pub(crate) fn revocations(script: &mut Script, random: &mut Random) {
    if script.session() > 0 {
        return;
    }
    let manner = Manner::any(random);
    for is_known in [false, true] {
        script.simple(SNAPSHOTS[0]);
        script.run(&Statement::new(PARENTS_READ, &[]), manner);
        for (place, id) in PARENTS.into_iter().enumerate() {
            script.run(&Statement::new(NOTES, &[Value::Int(id)]), manner);
            // Behind it are rows that were read ahead.
            if is_known && place == 8 {
                script.pause_before_last(Duration::from_millis(2_100));
                script.joined(|script| aside(script, Aside::Revokes("d")));
            }
        }
        script.simple("COMMIT");
    }
}

/// A program that takes its time, and is served from memory: the server must know that it is there, and end it no earlier.
pub(crate) fn idlers(script: &mut Script, random: &mut Random) {
    const LIMIT: &str = "SET idle_in_transaction_session_timeout = '600ms'";
    const THINKING: Duration = Duration::from_millis(210);
    if script.session() > 0 {
        return;
    }
    let manner =
        Manner { declared: Some(INT8), is_binary: false, form: random.pick(&[Form::Simple, Form::Named]) };
    let (reads_pieces, rows) = (random.one_in(2), random.pick(&[1, 2]));
    script.simple(LIMIT);
    for _ in 0..2 {
        script.simple("SELECT 1");
        script.block(|script| {
            script.simple(SNAPSHOTS[0]);
            if reads_pieces {
                pieces(script, rows, 16, |script, _| script.pause_before_last(THINKING));
            }
            for _ in 0..if reads_pieces { 0 } else { 2 } {
                script.run(&Statement::new(PARENTS_READ, &[]), manner);
                for id in PARENTS.into_iter().take(12) {
                    script.run(&Statement::new(CHILDREN, &[Value::Int(id)]), manner);
                    script.pause_before_last(THINKING);
                }
            }
            script.simple("COMMIT");
        });
    }
}

/// A table that a loop reads is locked by another session for a moment in which the program does not ask for it.
pub(crate) fn locked(script: &mut Script, random: &mut Random) {
    let last = script.session() + 1;
    if script.session() > 0 {
        return;
    }
    let manner =
        Manner { declared: Some(INT8), is_binary: false, form: random.pick(&[Form::Simple, Form::Unnamed]) };
    for turn in 0..random.within(2..5) {
        script.block(|script| {
            script.simple(SNAPSHOTS[0]);
            if turn > 0 {
                script.simple("SAVEPOINT s1");
                script.run(&Statement::new(NOTES, &[Value::Int(3)]), manner);
                script.simple("ROLLBACK TO s1");
                script.elsewhere(last, "BEGIN");
                script.elsewhere(last, "LOCK TABLE d IN ACCESS EXCLUSIVE MODE");
            }
            script.run(&Statement::new(PARENTS_READ, &[]), manner);
            for (place, id) in PARENTS.into_iter().take(8).enumerate() {
                let id = Value::Int(id);
                script.run(&Statement::new(CHILDREN, std::slice::from_ref(&id)), manner);
                if turn > 0 && place == 0 {
                    script.elsewhere(last, "COMMIT");
                }
                script.run(&Statement::new(NOTES, &[id]), manner);
            }
            script.simple("COMMIT");
        });
    }
}

/// Statements that are bound once more behind what memory has answered, or taken away, and the session's own savepoint by name.
pub(crate) fn strays(script: &mut Script, random: &mut Random) {
    // What a session of onetrip would be called whose name were no secret.
    const GUESSED: &str = "onetrip_0000000000000000";
    const FAILING: &str = "SELECT 10 / (id - 26) FROM p WHERE id = $1";
    let form = random.pick(&[Form::Unnamed, Form::Split, Form::Named, Form::Simple]);
    let manner = Manner { form, declared: Some(INT8), is_binary: false };
    let fails = random.one_in(2);
    for _ in 0..random.within(1..4) {
        script.simple(SNAPSHOTS[0]);
        script.run(&Statement::new(PARENTS_READ, &[]), manner);
        if fails {
            script.simple(&format!("SAVEPOINT {GUESSED}"));
        }
        for (place, id) in PARENTS.into_iter().take(10).enumerate() {
            let id = [Value::Int(id)];
            script.run(&Statement::new(CHILDREN, &id), manner);
            let last = Statement::new(if fails { FAILING } else { NOTES }, &id);
            script.run(&last, manner);
            match form {
                Form::Unnamed | Form::Split if random.one_in(4) => {
                    script.bind(
                        "",
                        &Statement { values: vec![Value::Int(random.pick(&PARENTS))], ..last },
                        manner,
                    );
                }
                // It was made second or third, and is bound by its name all the same.
                Form::Named if place > 2 && random.one_in(8) => {
                    script.simple(random.pick(&["DEALLOCATE ALL", "DEALLOCATE stmt_2"]));
                }
                _ => {}
            }
        }
        script.end_transaction(random);
    }
}

/// Drivers that prepare the same few statements again and again, with names that are in use or taken away.
pub(crate) fn drivers(script: &mut Script, random: &mut Random) {
    const TEXTS: [&str; 4] = [
        "SELECT id, name FROM p WHERE id = $1",
        "SELECT val FROM c WHERE pid = $1 ORDER BY id",
        "UPDATE w SET v = v WHERE id = $1",
        "SELECT count(*) FROM n WHERE id > $1",
    ];
    let manner = Manner { form: Form::Split, declared: Some(INT8), is_binary: false };
    let texts = [random.pick(&TEXTS), random.pick(&TEXTS)];
    let restlessness = random.pick(&[4, 8, 20]);
    for text in texts {
        script.run(&Statement::new(text, &[Value::Int(7)]), manner);
    }
    for _ in 0..random.within(8..24) {
        let statement = Statement::new(random.pick(&texts), &[Value::Int(random.pick(&PARENTS))]);
        let name = random.pick(&["", "", "a", "b"]);
        if !name.is_empty() && !random.one_in(restlessness) {
            script.simple(&format!("DEALLOCATE {name}"));
        }
        script.prepare(name, &statement, manner);
        script.bind(name, &statement, manner);
        if random.one_in(restlessness) {
            script.simple(random.pick(&["DEALLOCATE ALL", "DEALLOCATE a", "DISCARD ALL"]));
            script.bind(name, &statement, manner);
        }
    }
}

/// Serializable transactions that read, a little or much, while another session writes.
pub(crate) fn serializables(script: &mut Script, random: &mut Random, sessions: usize) {
    let last = sessions - 1;
    if script.session() == last {
        return; // it writes what the others make it write
    }
    for _ in 0..random.within(2..5) {
        script.block(|script| {
            script.simple(random.pick(&["BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN"]));
            match random.below(3) {
                0 => script.simple(PARENTS_READ),
                1 => script.simple("SELECT id, name FROM p WHERE id = 7"),
                _ => pieces(script, random.pick(&[1, 3]), random.within(2..4), |_, _| ()),
            }
            script.elsewhere(last, "UPDATE n SET v = v + 1 WHERE id = 39");
            script.elsewhere(last, "UPDATE p SET name = name || '+' WHERE id = 158");
            script.simple("COMMIT");
        });
    }
}
