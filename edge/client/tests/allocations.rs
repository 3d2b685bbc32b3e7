//! A warm connection allocates nothing per statement: neither for the pipeline's, nor for those that travel alone, nor
//! for their rows, nor for the pieces of large values.

mod common;

use std::cell::Cell;

use common::Server;
use onetrip_client::OnError;
use onetrip_client::blocking::{Client, Lob, LobSource};
use onetrip_heap::ALLOCATIONS;

fn counted(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

fn block(client: &mut Client, on_error: OnError) {
    let mut pipeline = client.pipeline(on_error).unwrap();
    pipeline.begin().unwrap();
    for id in 0..100 {
        pipeline.execute("INSERT INTO warm VALUES ($1, $2)", &[&id, &"some text"]).unwrap();
        for _ in 0..4 {
            pipeline.execute("UPDATE warm SET b = $2 WHERE a = $1", &[&id, &"other text"]).unwrap();
        }
    }
    let commit = pipeline.commit().unwrap();
    pipeline.end().unwrap().take(commit).unwrap();
}

#[test]
fn a_warm_connection_allocates_nothing_per_statement() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    client.script("CREATE TEMP TABLE warm (a int, b text)").unwrap();
    for on_error in [OnError::Abort, OnError::Continue] {
        for _ in 0..3 {
            block(&mut client, on_error);
        }
        assert_eq!(counted(|| block(&mut client, on_error)), 0, "502 operations, {on_error:?}");
    }
    let mut read = |expected: i64| {
        let mut rows = client.query("SELECT a::int8, b FROM warm WHERE a < $1", &[&100]).unwrap();
        let mut sum = 0;
        while let Some(row) = rows.next_row().unwrap() {
            sum += row.get::<i64>(0).unwrap();
            assert_eq!(row.get::<&str>(1).unwrap(), "other text");
        }
        assert_eq!(sum, expected);
    };
    let sum = 8 * (99 * 100 / 2);
    read(sum);
    assert_eq!(counted(|| read(sum)), 0, "800 rows");
}

#[test]
fn the_pieces_of_a_large_value_are_read_where_they_arrived() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    let make = "SELECT lo_from_bytea(0, decode(repeat(md5('x'), 300000), 'escape'))";
    let oid: u32 = client.query(make, &[]).unwrap().next_row().unwrap().unwrap().get(0).unwrap();
    let mut read = || {
        let (mut lob, mut bytes, mut places) = (Lob::new(LobSource::Object(oid)), 0, 0);
        let mut reader = client.read_lob(&mut lob);
        loop {
            let count = reader.fill().unwrap().len();
            if count == 0 {
                return (bytes, places);
            }
            (bytes, places) = (bytes + count, places + 1);
            reader.consume(count);
        }
    };
    for _ in 0..2 {
        assert_eq!(read(), (9_600_000, 147));
    }
    let allocations = counted(|| assert_eq!(read(), (9_600_000, 147)));
    // The list of what is on its way grows a few times; no piece is one.
    assert!(allocations <= 8, "{allocations} allocations");
}
