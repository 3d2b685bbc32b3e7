//! Large objects, read one by one by calls of functions: in the manner of a driver, or in none.

use super::super::random::Random;
use super::super::schema::{OBJECTS, object_length};
use super::super::script::{Form, Manner, Script, Statement};
use super::super::step::Wait;
use super::common::{begin, interruption};
use crate::common::messages::{call_binary, function_call};

const READ: i32 = 0x4_0000;
const READ_WRITE: i32 = 0x6_0000;

/// Levels; where a snapshot is waited for, what a driver prepares waits as well, or not.
const LEVELS: [(usize, &str); 5] = [
    (7, "BEGIN ISOLATION LEVEL REPEATABLE READ"),
    (2, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
    (6, "BEGIN"),
    (1, "BEGIN ISOLATION LEVEL SERIALIZABLE"),
    (1, ""),
];

/// How the list is asked for: what its comment says of reading ahead changes nothing that a program sees.
const LISTS: [(usize, &str); 5] = [
    (8, "SELECT id, object FROM l ORDER BY id"),
    (1, "SELECT id, object FROM l ORDER BY id /* onetrip.lob_prefetch=-1 */"),
    (1, "SELECT id, object FROM l ORDER BY id /* onetrip.lob_prefetch=0 */"),
    (1, "/* onetrip.lob_prefetch=100 */ SELECT id, object FROM l ORDER BY id"),
    (1, "SELECT id, object FROM l ORDER BY id -- onetrip.lob_prefetch='auto'"),
];

/// Settings of a session that may come in front of a transaction: nor do these.
const SETTINGS: [&str; 5] = [
    "SET onetrip.lob_prefetch = -1",
    "SET onetrip.lob_prefetch = 0",
    "SET SESSION onetrip.lob_prefetch TO 700",
    "SET onetrip.lob_prefetch TO auto",
    "RESET onetrip.lob_prefetch",
];

/// What may come between two calls.
const TEXTS: [&str; 15] = [
    "SAVEPOINT s1",
    "ROLLBACK TO s1",
    "RELEASE s1",
    TEXTS_THAT_WRITE[0],
    TEXTS_THAT_WRITE[1],
    "SELECT loread(0, 3)",
    "SELECT lo_lseek(0, 1, 0)",
    "SELECT lo_tell(1)",
    "SELECT lo_open(70004, 262144)",
    "SELECT lo_close(0)",
    "SELECT lo_get(70002, 0, 5)",
    "SELECT id, object FROM l ORDER BY id",
    "SELECT count(*) FROM p",
    "SHOW transaction_isolation",
    "SET LOCAL onetrip.lob_prefetch = 50",
];

/// Whether an object is written by the first session of a program alone, or by others alone. After both have, PostgreSQL itself gives
/// one answer or the other: above READ COMMITTED an old page and the session's own are both visible, and where they
/// lie decides which of them is read first.
fn is_own(oid: u32) -> bool {
    oid % 4 == 1
}

/// Of these, what the first session alone does.
const TEXTS_THAT_WRITE: [&str; 2] = ["SELECT lo_put(70009, 2, 'own')", "SELECT lo_unlink(70005)"];

/// How objects are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// libpq: the size is looked for first.
    Sized,
    /// pgjdbc: `LargeObject`.
    Plain,
    /// pgjdbc: `getBytes`.
    Sought,
    /// In pieces to the end.
    Pieces,
    /// Any calls.
    Wild,
}

const WAYS: [Way; 6] = [Way::Sized, Way::Sized, Way::Plain, Way::Sought, Way::Pieces, Way::Wild];

/// A few transactions; one session in three writes instead.
pub(crate) fn write(script: &mut Script, random: &mut Random, sessions: usize) {
    if script.session() > 0 && random.one_in(2) {
        return writes(script, random);
    }
    let (way, manner) = (random.pick(&WAYS), Manner::any(random));
    let interrupts = random.pick(&[0, 0, 0, 12, 25]);
    // The neighbour, who is in no transaction, meets the objects of a program amid its calls, or does not.
    let other = sessions;
    let meets = random.pick(&[0, 4, 8]);
    for _ in 0..random.within(1..4) {
        if random.one_in(4) {
            script.simple(random.pick(&SETTINGS));
        }
        begin(script, random, &LEVELS);
        if matches!(manner.form, Form::Split | Form::Named) {
            // A Parse that is answered early takes the snapshot when it arrives, and another session's write may come first.
            script.simple("SELECT count(*) FROM p");
        }
        let weights = LISTS.map(|(weight, _)| weight);
        script.run(&Statement::new(LISTS[random.weighted(&weights)].1, &[]), manner);
        let mut objects: Vec<u32> = OBJECTS.collect();
        match random.below(5) {
            0 => objects.truncate(3),
            1 => random.shuffle(&mut objects),
            2 => objects.push(objects[0]),
            3 => objects.retain(|oid| oid % 3 > 0),
            _ => {}
        }
        for oid in objects {
            let way = if random.one_in(10) { random.pick(&WAYS) } else { way };
            let mode = if random.one_in(if meets > 0 { 5 } else { 25 }) { READ_WRITE } else { READ };
            let meets = if is_own(oid) { 0 } else { meets };
            let writes = is_own(oid) && script.session() == 0;
            if meets > 0 && random.one_in(meets) {
                script.elsewhere(other, &format!("SELECT lo_put({oid}, 0, 'met before')"));
            }
            let meets = if mode == READ_WRITE { meets.min(1) } else { meets };
            object(script, random, way, (oid, mode, writes), interrupts, (other, meets));
        }
        if random.one_in(20) {
            open(script, 69_999, READ); // there is none
        }
        script.end_transaction(random);
        if meets > 0 {
            opens(script, random, manner, other);
        }
    }
}

/// A transaction that opens objects and reads none: it has no lock on them that another session could meet.
fn opens(script: &mut Script, random: &mut Random, manner: Manner, other: usize) {
    begin(script, random, &LEVELS[..3]);
    script.run(&Statement::new(LISTS[0].1, &[]), manner);
    for oid in OBJECTS.take(2) {
        open(script, oid, READ);
        script.elsewhere(other, "BEGIN; LOCK TABLE pg_largeobject IN SHARE MODE NOWAIT; ROLLBACK");
        call(script, 953, &[0]);
    }
    script.end_transaction(random);
}

/// One object, which the program `writes` or not; `meets` says who writes it amid the calls, and in one of how many of them.
fn object(
    script: &mut Script,
    random: &mut Random,
    way: Way,
    (oid, mode, writes): (u32, i32, bool),
    interrupts: usize,
    (other, meets): (usize, usize),
) {
    let length = object_length(oid) as i32;
    open(script, oid, mode);
    let second = random.one_in(12);
    if second {
        open(script, 70_001, READ);
    }
    let mut calls = vec![];
    match way {
        Way::Sized => {
            calls.extend([(3171, vec![0]), (3170, vec![0, 0, 2]), (3170, vec![0, 0, 0])]);
            calls.push((954, vec![0, length]));
        }
        Way::Plain => calls.push((954, vec![0, 4000])),
        Way::Sought => calls.extend([(956, vec![0, 0, 0]), (954, vec![0, length])]),
        Way::Pieces => calls.extend((0..=length / 700).map(|_| (954, vec![0, 700]))),
        Way::Wild => {
            for _ in 0..random.within(2..9) {
                let offset = random.below(2 * length as usize + 2) as i32 - 2;
                let fd = i32::from(random.one_in(9));
                calls.push(match random.below(6) {
                    0 => (956, vec![fd, offset, random.below(3) as i32]),
                    1 => (3170, vec![fd, -offset, 2]),
                    2 => (958, vec![fd]),
                    3 => (3171, vec![fd]),
                    _ => (954, vec![fd, offset]),
                });
            }
        }
    }
    for (at, (function, arguments)) in calls.into_iter().enumerate() {
        if at > 0 && meets > 0 && random.one_in(meets) {
            script.elsewhere(other, &format!("SELECT lo_put({oid}, 0, 'met {at}')"));
        }
        // What it has opened to read may not see it.
        if writes && random.one_in(8) {
            script.simple(&format!("SELECT lo_put({oid}, 0, 'put {at}')"));
        }
        call(script, function, &arguments);
        if mode == READ_WRITE && writes && random.one_in(2) {
            script.send(
                call_binary(955, &[&0i32.to_be_bytes(), b"written"]),
                Wait::Ready(1),
                "call 955 on 0: written",
            );
        }
        if interrupts > 0 && random.one_in(interrupts) {
            between(script, random);
        }
    }
    if second {
        call(script, 954, &[1, 50]);
        call(script, 953, &[1]);
    }
    if !random.one_in(15) {
        call(script, 953, &[0]);
    }
}

fn between(script: &mut Script, random: &mut Random) {
    match random.below(6) {
        0 => interruption(script, random),
        1 => script.send(function_call(958, &[b"0"]), Wait::Ready(1), "tell 0 in text"),
        2 => {
            script.simple("SAVEPOINT guard");
            open(script, 70_006, READ);
            call(script, 954, &[1, 20]);
            script.simple("ROLLBACK TO guard");
        }
        3 if random.one_in(3) => call(script, 954, &[7, 1]),
        _ => {
            let text = random.pick(&TEXTS);
            if script.session() == 0 || !TEXTS_THAT_WRITE.contains(&text) {
                script.any(random, text);
            }
        }
    }
}

/// Another session that changes what is read.
fn writes(script: &mut Script, random: &mut Random) {
    for _ in 0..random.within(2..8) {
        let oid = 70_001 + random.below(OBJECTS.len()) as u32;
        if is_own(oid) {
            continue;
        }
        let text = match random.below(4) {
            0 => format!("SELECT lo_put({oid}, {}, 'other')", random.below(60)),
            1 => format!("SELECT lo_put({oid}, {}, 'longer')", object_length(oid) + 10),
            2 => format!("SELECT lo_unlink({oid}), lo_from_bytea({oid}, 'made anew')"),
            _ => format!("UPDATE l SET object = {oid} WHERE id = {}", 1 + random.below(OBJECTS.len())),
        };
        script.any(random, &text);
    }
}

fn open(script: &mut Script, oid: u32, mode: i32) {
    let bytes = call_binary(952, &[&oid.to_be_bytes(), &mode.to_be_bytes()]);
    script.send(bytes, Wait::Ready(1), format!("open {oid} {mode:x}"));
}

/// A call whose arguments are numbers; the second one of `lo_lseek64` has eight bytes.
fn call(script: &mut Script, function: u32, arguments: &[i32]) {
    let bytes = |(at, value): (usize, &i32)| match (function, at) {
        (3170, 1) => i64::from(*value).to_be_bytes().to_vec(),
        _ => value.to_be_bytes().to_vec(),
    };
    let values: Vec<Vec<u8>> = arguments.iter().enumerate().map(bytes).collect();
    let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
    script.send(call_binary(function, &values), Wait::Ready(1), format!("call {function} {arguments:?}"));
}
