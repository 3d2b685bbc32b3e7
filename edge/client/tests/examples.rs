//! The examples do what they say.

mod common;

#[path = "../examples/bookkeeping.rs"]
mod bookkeeping;

use common::Server;
use onetrip_client::blocking::Client;

#[test]
fn the_tour_finds_what_it_should() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    let found = bookkeeping::tour(&mut client).unwrap();
    assert_eq!(
        found,
        ["1000 accounts", "UPDATE 1", "refused, SQLSTATE 23514", "UPDATE 1", "COMMIT", "99870 in all"]
    );
}
