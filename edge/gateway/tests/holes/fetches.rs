//! Every way to touch a cursor that was read ahead.

use super::harmless::{reads_ahead, reads_portal_ahead};
use super::messages::{bind_binary, execute_number};
use super::stage::{Hole, Program, Session, Stage};
use crate::common::messages::*;

const SETUP: &str = "CREATE TABLE fetched (id int PRIMARY KEY); \
     INSERT INTO fetched SELECT generate_series(1, 80); ANALYZE fetched";
const SELECT: &str = "SELECT id FROM fetched";
const FETCH: &str = "FETCH FORWARD 10 FROM c";

/// Reads two pieces of a cursor of SQL, and goes on otherwise.
fn on_cursor(last: fn(&mut Session<'_>)) -> impl Fn(&Stage) + Sync {
    move |stage| {
        let mut program = stage.session("program");
        reads_ahead(&mut program, SELECT);
        program.says_all(&["BEGIN", &format!("DECLARE c CURSOR FOR {SELECT}"), FETCH, FETCH]);
        stage.thinks();
        last(&mut program);
        program.says("ROLLBACK");
    }
}

/// Reads three pieces of a portal, and goes on otherwise.
fn on_portal(last: fn(&mut Session<'_>)) -> impl Fn(&Stage) + Sync {
    move |stage| {
        let mut program = stage.session("program");
        reads_portal_ahead(&mut program, SELECT);
        program.says("BEGIN");
        let opened = [parse("s", SELECT), bind("p", "s", &[]), execute("p", 10), sync()].concat();
        program.exchange("Bind", &opened);
        for _ in 0..2 {
            program.exchange("Execute", &[execute("p", 10), sync()].concat());
        }
        stage.thinks();
        last(&mut program);
        program.says("ROLLBACK");
    }
}

#[test]
fn a_count_of_rows_that_the_server_refuses_is_refused() {
    const COUNTS: [&str; 8] =
        ["2147483647", "2147483648", "3000000000", "4294967295", "010", "0x0A", "1_0", "0"];
    let program = |stage: &Stage| {
        for count in COUNTS {
            let mut program = stage.session("program");
            let declare = format!("DECLARE c CURSOR FOR {SELECT}");
            reads_ahead(&mut program, SELECT);
            program.says_all(&["BEGIN", &declare, FETCH, FETCH]);
            stage.thinks();
            program.says_all(&[&format!("FETCH FORWARD {count} FROM c"), FETCH, "ROLLBACK"]);
        }
    };
    let execute = |stage: &Stage| {
        for rows in [-1, i32::MIN, i32::MAX, 0] {
            let last = move |program: &mut Session<'_>| {
                program.exchange("Execute", &[execute_number("p", rows), sync()].concat());
            };
            let mut program = stage.session("program");
            reads_portal_ahead(&mut program, SELECT);
            program.says("BEGIN");
            let opened = [parse("s", SELECT), bind("p", "s", &[]), execute("p", 10), sync()].concat();
            program.exchange("Bind", &opened);
            program.exchange("Execute", &[execute("p", 10), sync()].concat());
            stage.thinks();
            last(&mut program);
            program.says("ROLLBACK");
        }
    };
    let programs: [Program<'_>; 2] = [("FETCH", &program), ("Execute", &execute)];
    Hole { name: "counts", setup: SETUP, programs: &programs }.assert_shut();
}

#[test]
fn execute_on_a_cursor_of_sql_finds_its_place() {
    let twice = on_cursor(|program| {
        for _ in 0..3 {
            program.exchange("Execute", &[execute("c", 5), sync()].concat());
        }
        program.says(FETCH);
    });
    let described =
        on_cursor(|program| drop(program.exchange("Describe", &[describe_portal("c"), sync()].concat())));
    let closed = on_cursor(|program| {
        program.exchange("Close", &[close_portal("c"), sync()].concat());
        program.says(FETCH);
    });
    let extended = on_cursor(|program| {
        program.exchange("FETCH", &[run_unnamed(FETCH), sync()].concat());
        program.says(FETCH);
    });
    let programs: [Program<'_>; 4] =
        [("Execute", &twice), ("Describe", &described), ("Close", &closed), ("FETCH, extended", &extended)];
    Hole { name: "places", setup: SETUP, programs: &programs }.assert_shut();
}

#[test]
fn a_piece_has_the_description_and_the_format_of_its_own_message() {
    let mixed = |stage: &Stage| {
        let mut program = stage.session("program");
        reads_ahead(&mut program, SELECT);
        program.says_all(&["BEGIN", &format!("DECLARE c CURSOR FOR {SELECT}")]);
        let binary = [parse("", "FETCH FORWARD 5 FROM c"), bind_binary("", ""), describe_portal("")];
        program.exchange("FETCH in binary", &[&binary.concat()[..], &execute("", 0), &sync()].concat());
        for _ in 0..4 {
            stage.thinks();
            program.says("FETCH FORWARD 5 FROM c");
        }
        program.exchange("FETCH in binary", &[&binary.concat()[..], &execute("", 0), &sync()].concat());
        program.says("COMMIT");
    };
    Hole { name: "formats", setup: SETUP, programs: &[("binary, then text", &mixed)] }.assert_shut();
}

#[test]
fn a_cursor_that_is_ahead_is_found_by_whatever_comes_next() {
    let catalogue =
        on_cursor(|program| drop(program.says("SELECT name, is_holdable, is_scrollable FROM pg_cursors")));
    let all = on_cursor(|program| program.says_all(&["FETCH FORWARD ALL FROM c", FETCH]));
    let group = on_cursor(|program| program.says_all(&["FETCH 5 FROM c; FETCH 5 FROM c", FETCH]));
    let savepoint = on_cursor(|program| program.says_all(&["SAVEPOINT a1", FETCH, "ROLLBACK TO a1", FETCH]));
    let dropped = on_cursor(|program| program.says_all(&["DROP TABLE fetched", FETCH]));
    let names = on_cursor(|program| {
        program.says_all(&["fetch forward 10 from \"c\"", "FETCH FORWARD 10 FROM C"]);
        program.says("FETCH FORWARD 10 FROM \"C\"");
    });
    let twice = on_portal(|program| {
        program.exchange("Execute twice", &[execute("p", 7), execute("p", 7), sync()].concat());
    });
    let described = on_portal(|program| {
        let group = [describe_portal("p"), execute("p", 7), describe_portal("p"), sync()].concat();
        program.exchange("Describe, Execute, Describe", &group);
    });
    let again = on_portal(|program| {
        let group = [close_portal("p"), bind("p", "s", &[]), execute("p", 7), sync()].concat();
        program.exchange("Close, Bind", &group);
    });
    let anew = on_portal(|program| {
        program.exchange("Bind", &[bind("p", "s", &[]), execute("p", 7), sync()].concat());
    });
    let programs: [Program<'_>; 10] = [
        ("pg_cursors", &catalogue),
        ("FETCH FORWARD ALL", &all),
        ("two FETCH in a text", &group),
        ("SAVEPOINT", &savepoint),
        ("DROP TABLE", &dropped),
        ("names", &names),
        ("Execute twice", &twice),
        ("Describe between", &described),
        ("Bind after Close", &again),
        ("Bind without Close", &anew),
    ];
    Hole { name: "touched", setup: SETUP, programs: &programs }.assert_shut();
}

#[test]
fn what_execute_of_sql_runs_finds_the_place_of_its_cursor() {
    const UPDATE: &str = "UPDATE fetched SET id = -id WHERE CURRENT OF c RETURNING id";
    fn prepared(program: &mut Session<'_>, text: &str) {
        program.exchange("Parse", &[parse("by_name", text), sync()].concat());
    }
    let ahead = |text: &'static str| {
        move |stage: &Stage| {
            let mut program = stage.session("program");
            reads_ahead(&mut program, SELECT);
            program.says_all(&["BEGIN", &format!("DECLARE c CURSOR FOR {SELECT}"), FETCH, FETCH]);
            stage.thinks();
            prepared(&mut program, text);
            program.says_all(&["EXECUTE by_name", FETCH, "FETCH RELATIVE 0 FROM c", "ROLLBACK"]);
        }
    };
    let before = |text: &'static str| {
        move |stage: &Stage| {
            let mut program = stage.session("program");
            reads_ahead(&mut program, SELECT);
            program.says_all(&["BEGIN", &format!("DECLARE c CURSOR FOR {SELECT}")]);
            prepared(&mut program, text);
            for _ in 0..3 {
                program.says(FETCH);
                stage.thinks();
            }
            program.says_all(&["EXECUTE by_name", FETCH, "FETCH RELATIVE 0 FROM c", "ROLLBACK"]);
        }
    };
    let another = |stage: &Stage| {
        let mut program = stage.session("program");
        reads_ahead(&mut program, SELECT);
        program.says_all(&["BEGIN", &format!("DECLARE c CURSOR FOR {SELECT}"), FETCH, FETCH]);
        stage.thinks();
        let texts = ["CLOSE c", "DECLARE c CURSOR FOR SELECT id + 1000 FROM fetched"];
        let both = [parse("closes", texts[0]), parse("declares", texts[1]), sync()].concat();
        program.exchange("Parse", &both);
        program.says_all(&["EXECUTE closes", "EXECUTE declares", FETCH, FETCH, "ROLLBACK"]);
    };
    let programs: [Program<'_>; 5] = [
        ("another of that name", &another),
        ("UPDATE prepared before", &before(UPDATE)),
        ("UPDATE prepared behind", &ahead(UPDATE)),
        ("FETCH prepared before", &before("FETCH 5 FROM c")),
        ("FETCH prepared behind", &ahead("FETCH 5 FROM c")),
    ];
    Hole { name: "executed", setup: SETUP, programs: &programs }.assert_shut();
}

#[test]
fn rows_that_execute_has_read_of_a_cursor_of_sql_count() {
    let then = |last: &'static str| {
        move |stage: &Stage| {
            let mut program = stage.session("program");
            reads_ahead(&mut program, SELECT);
            program.says_all(&["BEGIN", &format!("DECLARE c CURSOR FOR {SELECT}")]);
            program.exchange("Execute", &[execute("c", 3), sync()].concat());
            for _ in 0..3 {
                program.says(FETCH);
                stage.thinks();
            }
            match last {
                "" => drop(program.exchange("Execute", &[execute("c", 1), sync()].concat())),
                last => drop(program.says(last)),
            }
            program.says_all(&[FETCH, "ROLLBACK"]);
        }
    };
    let programs: [Program<'_>; 3] = [
        ("Execute again", &then("")),
        ("FETCH RELATIVE 0", &then("FETCH RELATIVE 0 FROM c")),
        ("CURRENT OF", &then("UPDATE fetched SET id = -id WHERE CURRENT OF c RETURNING id")),
    ];
    Hole { name: "counted", setup: SETUP, programs: &programs }.assert_shut();
}

/// lo_open and loread, by their numbers.
const LO_OPEN: u32 = 952;
const LOREAD: u32 = 954;
const OBJECT: u32 = 990_001;
const OBJECTS: &str = "SELECT lo_from_bytea(990001, convert_to(string_agg(lpad(g::text, 5, '0'), '' ORDER BY g), \
    'UTF8')) FROM generate_series(1, 2000) AS g";
const INV_READ: u32 = 0x40000;

fn open_object() -> Vec<u8> {
    call_binary(LO_OPEN, &[&OBJECT.to_be_bytes(), &INV_READ.to_be_bytes()])
}

fn read_object() -> Vec<u8> {
    call_binary(LOREAD, &[&0_u32.to_be_bytes(), &10_u32.to_be_bytes()])
}

/// Reading an object in pieces is read ahead.
fn reads_object_ahead(program: &mut Session<'_>) {
    program.settles("reading an object", |program| {
        program.says("BEGIN");
        program.exchange("lo_open", &open_object());
        let mut is_told = false;
        for _ in 0..4 {
            is_told = program.is_served("loread", &read_object());
            program.stage.thinks();
        }
        program.says("ROLLBACK");
        is_told
    });
}

/// Reads an object in pieces, and FETCHes from a cursor between them.
fn fetches_between(query: &str) -> impl Fn(&Stage) + Sync + use<> {
    let declare = format!("DECLARE c CURSOR FOR {query}");
    move |stage| {
        let mut program = stage.session("program");
        reads_object_ahead(&mut program);
        program.says_all(&["BEGIN", &declare]);
        program.exchange("SELECT 1", &[run_unnamed("SELECT 1"), sync()].concat());
        program.exchange("SELECT 1", &[parse("", "SELECT 1"), describe_statement(""), sync()].concat());
        program.exchange("lo_open", &open_object());
        for piece in 0..6 {
            program.exchange("loread", &read_object());
            stage.thinks();
            if [1, 3].contains(&piece) {
                program.says("FETCH 1 FROM c");
            }
        }
        program.says("ROLLBACK");
    }
}

#[test]
fn a_fetch_that_moves_a_descriptor_moves_it() {
    Hole {
        name: "descriptors",
        setup: OBJECTS,
        programs: &[
            ("reads", &fetches_between("SELECT loread(0, 25) FROM generate_series(1, 5)")),
            ("moves", &fetches_between("SELECT lo_lseek(0, 500, 0) FROM generate_series(1, 5)")),
            ("unlinks", &fetches_between("SELECT lo_unlink(990001) FROM generate_series(1, 5)")),
            ("closes", &fetches_between("SELECT lo_close(0) FROM generate_series(1, 5)")),
        ],
    }
    .assert_shut();
}

/// lo_lseek64, by its number.
const LO_LSEEK64: u32 = 3170;

/// The program looks for an object's bytes before the first one: the transaction fails while the gateway's own statements
/// are on their way. Then it lists its statements.
fn fails_ahead_of_a_flight(stage: &Stage) {
    let beyond =
        call_binary(LO_LSEEK64, &[&0_u32.to_be_bytes(), &(-20_000_i64).to_be_bytes(), &2_u32.to_be_bytes()]);
    let mut program = stage.session("program");
    reads_object_ahead(&mut program);
    for _ in 0..3 {
        program.says("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY");
        program.exchange("lo_open", &open_object());
        program.exchange("lo_lseek64", &beyond);
        program.says_all(&["ROLLBACK", "SELECT name, statement FROM pg_prepared_statements"]);
    }
}

#[test]
fn no_statement_of_the_gateways_is_left_where_a_transaction_fails() {
    Hole { name: "left_statements", setup: OBJECTS, programs: &[("an object", &fails_ahead_of_a_flight)] }
        .assert_shut();
}
