//! What remedies cost the server where they remove nothing, or little: statements and bytes that a gateway sends, counted by a
//! relay in front of the server.

mod common;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use common::client::RawClient;
use common::recorder::Recorder;
use common::replay::Step;
use common::server::{RunningGateway, Server, config};
use onetrip_gateway::{GatewayConfig, Remedies};
use onetrip_link::LinkSpec;
use onetrip_wire::pg::{FrameHeader, frontend};

/// Far enough for remedies to be of use.
const RTT: Duration = Duration::from_millis(5);

/// What a gateway sends to the server.
#[derive(Debug)]
struct Sent {
    statements: usize,
    bytes: usize,
}

/// One program at a time has the table.
static TURN: Mutex<()> = Mutex::new(());

/// What a gateway with these remedies sends for a program of simple queries.
fn sent(remedies: Remedies, texts: &[String]) -> Sent {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::shared();
    server.psql("postgres", "DROP TABLE IF EXISTS burdened; CREATE TABLE burdened (id int, name text)");
    let recorder = Recorder::start(server.direct());
    let upstream = server.upstream_by(recorder.endpoint().port());
    let link = Some(LinkSpec::with_rtt(RTT));
    let gateway = RunningGateway::start(GatewayConfig { remedies, link, ..config(upstream) });
    let mut client = RawClient::session(&gateway.endpoint(), "postgres");
    for text in texts {
        client.query(text);
    }
    drop(client.finish());
    gateway.stop();
    let mut all = Sent { statements: 0, bytes: 0 };
    for steps in recorder.stop() {
        let send = |step| if let Step::Send(bytes) = step { bytes } else { Vec::new() };
        let bytes: Vec<u8> = steps.into_iter().flat_map(send).collect();
        all.bytes += bytes.len();
        all.statements += statements(&bytes);
    }
    all
}

/// Queries and Executes in what a client sends from its startup packet on.
fn statements(bytes: &[u8]) -> usize {
    let startup = bytes.first_chunk::<4>().map_or(0, |length| u32::from_be_bytes(*length) as usize);
    let mut rest = bytes.get(startup..).unwrap_or_default();
    let mut count = 0;
    while let Some(Ok(header)) = FrameHeader::peek(rest, u32::MAX) {
        count += usize::from([frontend::QUERY, frontend::EXECUTE].contains(&header.tag));
        rest = rest.get(header.frame_len()..).unwrap_or_default();
    }
    count
}

fn inserts(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("INSERT INTO burdened VALUES ({number}, 'name')"))
}

/// 200 statements, and at most ten of the gateway's own.
#[test]
fn rows_written_one_by_one_are_hardly_more_statements() {
    let texts: Vec<String> = inserts(200).collect();
    let sent = sent(Remedies::exact(), &texts);
    assert!((200..=210).contains(&sent.statements), "{sent:?}");
}

/// 300 statements, and at most ten of the gateway's own.
#[test]
fn transactions_that_write_a_row_are_hardly_more_statements() {
    let transaction = |insert| ["BEGIN".to_owned(), insert, "COMMIT".to_owned()];
    let texts: Vec<String> = inserts(100).flat_map(transaction).collect();
    let sent = sent(Remedies::exact(), &texts);
    assert!((300..=310).contains(&sent.statements), "{sent:?}");
}

#[test]
fn reads_of_which_nothing_is_removed_are_as_many_statements_and_bytes() {
    let read = |number| format!("SELECT name FROM burdened WHERE id = {number} /* route='/names' */");
    let texts: Vec<String> = (0..200).map(read).collect();
    let (observed, remedied) = (sent(Remedies::default(), &texts), sent(Remedies::exact(), &texts));
    assert_eq!(observed.statements, 200);
    let share = |with: usize, without: usize| with as f64 / without as f64;
    assert!(share(remedied.statements, observed.statements) <= 1.02, "{remedied:?} against {observed:?}");
    assert!(share(remedied.bytes, observed.bytes) <= 1.02, "{remedied:?} against {observed:?}");
}
