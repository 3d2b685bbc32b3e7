//! The connection is cut after every byte of a small pipeline, on its way there and on its way back: what each operation
//! then says about a retry has to be what the table says.

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::str::FromStr;

use common::Server;
use onetrip_client::blocking::Client;
use onetrip_client::core::{Connection, Opening, Request, Security, Step};
use onetrip_client::{Config, OnError, OperationId, Outcome, Retry};

const ROWS: i32 = 3;

/// Logs in by hand, so that the bytes are ours to cut.
fn open(url: &str) -> (TcpStream, Connection) {
    let config = Config::from_str(url).unwrap();
    let host = config.conninfo.hosts[0].clone();
    let mut socket = TcpStream::connect((host.name().as_ref(), host.port)).unwrap();
    let login = config.login(&host).unwrap();
    let mut opening = Opening::new(host, login, Security::Plain, config.limits.clone()).unwrap();
    loop {
        let sent = socket.write(opening.output()).unwrap();
        opening.sent(sent);
        let count = socket.read(opening.input_space()).unwrap();
        if opening.received(count).unwrap() == Step::Open {
            return (socket, opening.into_connection());
        }
    }
}

/// Pushes the pipeline, whose last row comes by COPY. The operations that insert come first, then those around them.
fn push(
    core: &mut Connection,
    on_error: OnError,
    in_transaction: bool,
) -> (Vec<OperationId>, Option<OperationId>) {
    core.begin_block(on_error).unwrap();
    let mut push = |text: &str, id: Option<i32>| match id {
        Some(id) if id == ROWS - 1 => {
            let data = format!("{id}\n");
            let copy = Some(data.as_bytes());
            core.push(&Request { copy, ..Request::new("COPY cut FROM STDIN", &[]) }, None).unwrap()
        }
        Some(id) => core.push(&Request::new(text, &[&id]), None).unwrap(),
        None => core.push(&Request::new(text, &[]), None).unwrap(),
    };
    if in_transaction {
        push("BEGIN", None);
    }
    let inserts = (0..ROWS).map(|id| push("INSERT INTO cut VALUES ($1)", Some(id))).collect();
    let commit = in_transaction.then(|| push("COMMIT", None));
    core.end_block().unwrap();
    (inserts, commit)
}

fn read_all(core: &mut Connection) {
    while let Ok(Some(_)) = core.next_event() {}
}

/// Where a connection is cut.
#[derive(Debug, Clone, Copy)]
enum Cut {
    Sending(usize),
    Receiving(usize),
}

/// Runs the pipeline up to the cut; false once the cut lies behind its end.
fn run(
    url: &str,
    cut: Cut,
    on_error: OnError,
    in_transaction: bool,
) -> (Vec<Outcome>, Option<Outcome>, bool) {
    let (mut socket, mut core) = open(url);
    let (inserts, commit) = push(&mut core, on_error, in_transaction);
    let total = core.output().len();
    let sent = if let Cut::Sending(bytes) = cut { bytes.min(total) } else { total };
    socket.write_all(&core.output()[..sent]).unwrap();
    core.sent(sent);
    let mut is_within = sent < total;
    if let Cut::Receiving(bytes) = cut {
        let mut left = bytes;
        while left > 0 && !core.is_settled() {
            let space = core.input_space();
            let room = left.min(space.len());
            let count = socket.read(&mut space[..room]).unwrap();
            core.received(count).unwrap();
            left -= count;
            read_all(&mut core);
        }
        is_within = !core.is_settled();
    } else {
        socket.shutdown(Shutdown::Write).unwrap();
        // The server ends by itself; what it still said is lost on the way.
        let _ = socket.read_to_end(&mut Vec::new());
    }
    drop(socket);
    core.lost(None);
    read_all(&mut core);
    let of = |id: OperationId| core.outcome(id).unwrap().clone();
    (inserts.into_iter().map(of).collect(), commit.map(of), is_within)
}

/// Waits until the server has ended all sessions of that name.
fn wait_until_gone(control: &mut Client) {
    let text = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'cut'";
    while control.execute(text, &[]).unwrap() > 0 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn ids(control: &mut Client) -> Vec<i32> {
    let mut rows = control.query("SELECT id FROM cut", &[]).unwrap();
    let mut ids = Vec::new();
    while let Some(row) = rows.next_row().unwrap() {
        ids.push(row.get(0).unwrap());
    }
    ids
}

/// What an outcome claims: that the operation holds, that it does not, or nothing.
fn claim(outcome: &Outcome) -> Option<bool> {
    match outcome {
        Outcome::Done(_) => Some(true),
        Outcome::Failed(error) => match error.retry() {
            Retry::Safe => Some(false),
            Retry::Ran => Some(true),
            Retry::Unknown => None,
        },
        Outcome::Aborted { .. } | Outcome::Undone { .. } => Some(false),
        Outcome::Waiting(_) | Outcome::Taken => panic!("no answer and no error: {outcome:?}"),
    }
}

fn every_cut(
    make: fn(usize) -> Cut,
    on_error: OnError,
    in_transaction: bool,
    url: &str,
    control: &mut Client,
) {
    let mut claims = [0; 3];
    for bytes in 0.. {
        control.execute("TRUNCATE cut", &[]).unwrap();
        let cut = make(bytes);
        let (inserts, commit, is_within) = run(url, cut, on_error, in_transaction);
        wait_until_gone(control);
        let ids = ids(control);
        for (id, outcome) in (0..).zip(&inserts) {
            // In a transaction it is the commit that makes an operation last.
            let lasting = match &commit {
                Some(commit) if claim(outcome) == Some(true) => claim(commit),
                _ => claim(outcome),
            };
            claims[lasting.map_or(2, usize::from)] += 1;
            if let Some(holds) = lasting {
                let place = format!("{cut:?} {on_error:?}, in a transaction: {in_transaction}");
                assert_eq!(ids.contains(&id), holds, "{id}, {place}: {inserts:?}, {commit:?}, {ids:?}");
            }
        }
        if !is_within {
            break;
        }
    }
    match make(0) {
        Cut::Sending(_) => assert!(claims[0] > 0 && claims[2] > 0, "safe and unknown: {claims:?}"),
        Cut::Receiving(_) => assert!(claims[1] > 0 && claims[2] > 0, "done and unknown: {claims:?}"),
    }
}

fn every_cut_in_all_modes(make: fn(usize) -> Cut, table: &str) {
    let server = Server::start(&["--auth", "trust"]);
    let mut control = Client::connect(&server.url()).unwrap();
    control.script(table).unwrap();
    let url = format!("{}&application_name=cut", server.url());
    for on_error in [OnError::Abort, OnError::Continue] {
        for in_transaction in [false, true] {
            every_cut(make, on_error, in_transaction, &url, &mut control);
        }
    }
}

#[test]
fn what_was_cut_on_its_way_there_says_truly_whether_it_ran() {
    every_cut_in_all_modes(Cut::Sending, "CREATE TABLE cut (id int)");
}

#[test]
fn what_was_cut_on_its_way_back_says_truly_whether_it_ran() {
    every_cut_in_all_modes(Cut::Receiving, "CREATE TABLE cut (id int)");
}
