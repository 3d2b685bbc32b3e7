//! Tables that change under statements that are prepared.

mod common;

use common::Server;
use onetrip_client::blocking::Client;

fn width(client: &mut Client) -> usize {
    client.query("SELECT * FROM changing", &[]).unwrap().columns().len()
}

#[test]
fn statements_survive_what_their_own_connection_does_to_tables_within_a_transaction() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    client.execute("CREATE TEMP TABLE changing (a int)", &[]).unwrap();
    client.begin().unwrap();
    assert_eq!(width(&mut client), 1);
    client.execute("ALTER TABLE changing ADD b int", &[]).unwrap();
    assert_eq!(width(&mut client), 2);
    client.script("ALTER TABLE changing ADD c int").unwrap();
    assert_eq!(width(&mut client), 3);
    client.rollback().unwrap();
    client.begin().unwrap();
    client.execute("SELECT 1", &[]).unwrap();
    assert_eq!(width(&mut client), 1, "the changes were taken back");
    client.commit().unwrap();
}

#[test]
fn who_knows_of_a_change_by_others_says_so() {
    let mut one = Client::connect(&Server::shared().url()).unwrap();
    let mut other = Client::connect(&Server::shared().url()).unwrap();
    one.script("DROP TABLE IF EXISTS changed; CREATE TABLE changed (a int)").unwrap();
    let read = "SELECT * FROM changed";
    other.execute(read, &[]).unwrap();
    one.execute("ALTER TABLE changed ADD b int", &[]).unwrap();
    other.forget_statements();
    let before = other.core().trips();
    other.begin().unwrap();
    other.execute("SELECT 1", &[]).unwrap();
    other.execute(read, &[]).unwrap();
    assert_eq!(other.core().trips() - before, 3);
    other.commit().unwrap();
    one.execute("DROP TABLE changed", &[]).unwrap();
}
