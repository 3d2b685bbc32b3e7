//! The model answers as PostgreSQL does: generated programs run on both, directly; command tags, rows, descriptions,
//! SQLSTATEs, statuses, and who waits for whom are compared. Texts of errors are not.
//!
//! `ONETRIP_PROGRAMS=5000` runs more, `ONETRIP_FROM=5000` others, `ONETRIP_FAMILY=loops ONETRIP_SEED=7` the one program
//! that a failure names.

mod rig;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use onetrip_testkit::asked::Outcome;
use onetrip_testkit::shrink::cut_down;
use onetrip_testkit::step::Program;
use rig::family::{FAMILIES, Family, of_seed_on_postgresql};
use rig::lane::{Message, Taken};
use rig::postgres::{Bench, comparable, start};
use rig::simulation::{Way, run};

/// Programs of the short form.
const PROGRAMS: u64 = 100;
/// Programs that run at once, each on a database of its own.
const WORKERS: usize = 3;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: a number is needed")))
}

/// Where the model differs; the number of steps that were compared.
fn compared(bench: &mut Bench<'_>, program: &Program, version: u32) -> Result<usize, String> {
    let real = bench.run(program);
    let model = run(program, &Way::DirectTo(version)).taken;
    for (place, (one, two)) in real.iter().zip(&model).enumerate() {
        if one.outcome == Outcome::Blocked && place + 1 == real.len() {
            break; // two wait: which of them goes on first is left to chance
        }
        if one.outcome != two.outcome {
            return Err(format!("{}: {:?} against the model's {:?}", one.shown, one.outcome, two.outcome));
        }
        let (said, says) = (messages(one), messages(two));
        // Behind the last step of a session that waits, more may come.
        let is_next = |next: &Taken| {
            next.shown[..1] == one.shown[..1] && matches!(next.outcome, Outcome::Done | Outcome::Blocked)
        };
        let is_last = !real[place + 1..].iter().any(is_next);
        let length =
            if one.outcome == Outcome::Blocked && is_last { said.len() } else { said.len().max(says.len()) };
        if let Some(at) = (0..length).find(|at| said.get(*at) != says.get(*at)) {
            let (one_at, two_at) = (said.get(at), says.get(at));
            return Err(format!("{}: message {at}: {one_at:?} against the model's {two_at:?}", one.shown));
        }
    }
    Ok(real.len())
}

/// Without warnings of the server about itself (01000: a portal of a failed transaction is left behind). Parameters that
/// change together are told in an order that is the server's own affair.
fn messages(taken: &Taken) -> Vec<Message> {
    let messages = taken.messages.iter().map(comparable);
    let mut messages: Vec<Message> =
        messages.filter(|message| (message.tag, &message.body[..]) != (b'N', b"01000")).collect();
    for told in messages.chunk_by_mut(|one, two| one.tag == b'S' && two.tag == b'S') {
        told.sort_by(|one, two| one.body.cmp(&two.body));
    }
    messages
}

fn prove(version: u32) {
    let server = start(&version.to_string());
    let seed = number("ONETRIP_SEED");
    let from = number("ONETRIP_FROM").unwrap_or(0);
    let end = seed.map_or_else(|| from + number("ONETRIP_PROGRAMS").unwrap_or(PROGRAMS), |seed| seed + 1);
    let named = std::env::var("ONETRIP_FAMILY").ok();
    let named: Option<&Family> =
        named.map(|name| FAMILIES.iter().find(|family| family.name == name).expect("ONETRIP_FAMILY is one"));
    let next = AtomicU64::new(seed.unwrap_or(from));
    let failure = Mutex::new(None);
    let steps = AtomicU64::new(0);
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (server, next, failure, steps) = (&server, &next, &failure, &steps);
            scope.spawn(move || {
                let mut bench = Bench::set_up(server, &format!("model_{worker}"));
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= end || failure.lock().expect("no panic").is_some() {
                        break;
                    }
                    let family = named.unwrap_or_else(|| of_seed_on_postgresql(seed));
                    let program = family.program(seed);
                    match compared(&mut bench, &program, version) {
                        Ok(count) => drop(steps.fetch_add(count as u64, Ordering::SeqCst)),
                        Err(_) => {
                            let bench = std::cell::RefCell::new(bench);
                            let found =
                                |program: &Program| compared(&mut bench.borrow_mut(), program, version).err();
                            let program = cut_down(program, |program| found(program).is_some());
                            let found = found(&program).unwrap_or_else(|| "not again".to_owned());
                            let name = family.name;
                            let text = format!(
                                "ONETRIP_FAMILY={name} ONETRIP_SEED={seed}: {found}\n{}",
                                program.shown()
                            );
                            failure.lock().expect("no panic").get_or_insert(text);
                            break;
                        }
                    }
                }
            });
        }
    });
    if let Some(failure) = failure.into_inner().expect("no panic") {
        panic!("PostgreSQL {version}: {failure}");
    }
    println!("PostgreSQL {version}: {} steps", steps.into_inner());
}

#[test]
fn the_model_answers_as_postgresql_15_does() {
    prove(15);
}

#[test]
fn the_model_answers_as_postgresql_18_does() {
    prove(18);
}
