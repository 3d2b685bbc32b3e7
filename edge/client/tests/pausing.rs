//! A COPY that waits between calls goes on where it was, or is given up by any other call.

mod common;

use common::Server;
use onetrip_client::TransactionStatus;
use onetrip_client::blocking::Client;

fn client() -> Client {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    client.execute("CREATE TEMP TABLE moved (id int)", &[]).unwrap();
    client
}

fn count(client: &mut Client) -> i64 {
    let mut rows = client.query("SELECT count(*) FROM moved", &[]).unwrap();
    rows.next_row().unwrap().unwrap().get(0).unwrap()
}

#[test]
fn data_goes_in_by_several_calls() {
    let mut client = client();
    let before = client.core().trips();
    client.run_copy_in("COPY moved FROM STDIN", true).unwrap().pause();
    for id in 0..50_000 {
        let mut copy = client.resume_copy_in().unwrap();
        copy.send(format!("{id}\n").as_bytes()).unwrap();
        copy.pause();
    }
    assert_eq!(client.resume_copy_in().unwrap().finish().unwrap(), 50_000);
    assert_eq!(client.core().trips() - before, 1, "BEGIN travels along");
    assert_eq!((client.transaction_status(), count(&mut client)), (TransactionStatus::Active, 50_000));
    assert!(client.resume_copy_in().is_none());
}

#[test]
fn another_call_or_a_reason_gives_it_up() {
    let mut client = client();
    let mut copy = client.copy_in("COPY moved FROM STDIN").unwrap();
    copy.send(b"1\n").unwrap();
    copy.pause();
    assert_eq!(count(&mut client), 0);
    assert!(client.resume_copy_in().is_none());
    let mut copy = client.copy_in("COPY moved FROM STDIN").unwrap();
    copy.send(b"1\n").unwrap();
    let error = copy.give_up("the disk is full").unwrap_err();
    assert_eq!(error.sqlstate(), Some("57014"));
    assert!(error.to_string().contains("the disk is full"), "{error}");
    client.copy_in("COPY moved FROM STDIN").unwrap().send(b"x\n").unwrap();
    assert_eq!(count(&mut client), 0);
}

#[test]
fn data_comes_by_several_calls() {
    let mut client = client();
    client.execute("INSERT INTO moved SELECT generate_series(1, 20000)", &[]).unwrap();
    client.run_copy_out("COPY moved TO STDOUT", true).unwrap().pause();
    let mut lines = 0;
    loop {
        let mut copy = client.resume_copy_out().unwrap();
        let Some(line) = copy.next_piece().unwrap() else {
            assert_eq!(copy.rows(), Some(20_000));
            break;
        };
        lines += 1;
        assert_eq!(line, format!("{lines}\n").as_bytes());
        while let Some(line) = copy.piece_here().unwrap() {
            lines += 1;
            assert_eq!(line, format!("{lines}\n").as_bytes());
        }
        copy.pause();
    }
    assert_eq!((lines, client.transaction_status()), (20_000, TransactionStatus::Active));
    client.copy_out("COPY moved TO STDOUT").unwrap().pause();
    assert_eq!(count(&mut client), 20_000);
    assert!(client.resume_copy_out().is_none(), "the rest was thrown away");
}
