//! Whatever a server sends, in whatever pieces, while whatever is asked for: the client never panics, and once the
//! connection has ended every operation has been told what became of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onetrip_client::core::{Connection, Event, Opening, Request, Security, Step};
use onetrip_client::{Config, OnError, Outcome};
use onetrip_target::{Conninfo, Environment};
use onetrip_wire::pg::{Authentication, TransactionStatus, encode_ready_for_query};

fn open(statements: usize) -> Option<Connection> {
    let conninfo =
        Conninfo::parse("postgres://ann:x@db/shop?sslmode=disable", &Environment::default()).ok()?;
    let mut config = Config::of(conninfo).ok()?;
    config.limits.statements = statements;
    let host = config.conninfo.hosts[0].clone();
    let login = config.login(&host).ok()?;
    let mut opening = Opening::new(host, login, Security::Plain, config.limits).ok()?;
    let mut welcome = Vec::new();
    Authentication::Ok.encode(&mut welcome);
    encode_ready_for_query(&mut welcome, TransactionStatus::Idle);
    opening.input_space()[..welcome.len()].copy_from_slice(&welcome);
    (opening.received(welcome.len()).ok()? == Step::Open).then(|| opening.into_connection())
}

fn ask(core: &mut Connection, what: u8) {
    let own = [None, Some(OnError::Abort), Some(OnError::Continue)][usize::from(what >> 3) % 3];
    // A call that does not fit where the connection stands is refused, which is right too.
    let text =
        ["SELECT 1", "INSERT INTO t VALUES ($1)", "BEGIN", "COMMIT", "ROLLBACK"][usize::from(what) % 5];
    match what % 8 {
        0 => drop(core.begin_block(own.unwrap_or_default())),
        1 => drop(core.end_block()),
        2 => drop(core.submit(&Request::new(text, &[&1])).map(|_| core.sync())),
        3 => drop(core.submit_script(text)),
        4 => core.request_replies(),
        5 => drop(core.submit_copy(&Request::new("COPY t TO STDOUT", &[])).map(|_| core.sync())),
        _ => drop(core.push(&Request::new(text, &[&1]), own)),
    }
}

fn hear(core: &mut Connection) {
    while let Ok(Some(event)) = core.next_event() {
        match event {
            Event::Row { row, .. } => {
                let row = core.row(row);
                for index in 0..row.len() {
                    let _ = (row.text(index), row.get::<i32>(index), row.get::<String>(index));
                }
            }
            Event::CopyData { data, .. } => drop(core.copied(data).to_vec()),
            _ => {}
        }
    }
}

fn open_badly(data: &[u8]) {
    let conninfo = Conninfo::parse("postgres://ann:x@db/shop?sslmode=disable", &Environment::default()).ok();
    let Some(config) = conninfo.and_then(|conninfo| Config::of(conninfo).ok()) else { return };
    let host = config.conninfo.hosts[0].clone();
    let Ok(login) = config.login(&host) else { return };
    let Ok(mut opening) = Opening::new(host, login, Security::Plain, config.limits) else { return };
    for chunk in data.chunks(97) {
        opening.input_space()[..chunk.len()].copy_from_slice(chunk);
        if !matches!(opening.received(chunk.len()), Ok(Step::Wait)) {
            return;
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&mode, mut data)) = data.split_first() else { return };
    if mode & 1 != 0 {
        return open_badly(data);
    }
    let Some(mut core) = open(usize::from(mode >> 1) % 4) else { return };
    while let [head, rest @ ..] = data {
        if head & 128 != 0 {
            ask(&mut core, *head);
            data = rest;
            continue;
        }
        let count = usize::from(*head).min(rest.len());
        let (chunk, rest) = rest.split_at(count);
        data = rest;
        let sent = core.output().len();
        core.sent(sent);
        core.input_space()[..count].copy_from_slice(chunk);
        let _ = core.received(count);
        hear(&mut core);
    }
    core.lost(None);
    hear(&mut core);
    assert!(core.outcomes().all(|(_, outcome)| !matches!(outcome, Outcome::Waiting(_))));
});
