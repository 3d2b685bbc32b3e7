//! The trips that a connection says it has spent are those that are seen on its way.

mod common;

use common::{Server, Turns};
use onetrip_client::OnError;
use onetrip_client::blocking::Client;

#[test]
fn a_connection_counts_the_turns_that_it_takes() {
    let turns = Turns::before(Server::shared());
    let mut client = Client::connect(&Server::shared().url_at(turns.port)).unwrap();
    let same = |client: &mut Client, what: &str, work: &mut dyn FnMut(&mut Client)| {
        let before = client.core().trips();
        let seen = turns.of(|| work(client));
        assert_eq!(client.core().trips() - before, seen as u64, "{what}");
    };
    same(&mut client, "nothing", &mut |_| {});
    same(&mut client, "a script", &mut |client| {
        client.script("CREATE TEMP TABLE t (a int); SELECT 1").unwrap()
    });
    same(&mut client, "statements", &mut |client| {
        for _ in 0..3 {
            client.execute("INSERT INTO t VALUES ($1)", &[&1]).unwrap();
        }
    });
    same(&mut client, "an error", &mut |client| {
        client.execute("SELECT 1/0", &[]).unwrap_err();
    });
    same(&mut client, "a block that waits in its middle", &mut |client| {
        let mut pipeline = client.pipeline(OnError::Abort).unwrap();
        let first = pipeline.execute("INSERT INTO t VALUES ($1)", &[&2]).unwrap();
        pipeline.execute("INSERT INTO t VALUES ($1)", &[&3]).unwrap();
        pipeline.process(first).unwrap();
        pipeline.execute("INSERT INTO t VALUES ($1)", &[&4]).unwrap();
        pipeline.end().unwrap().check().unwrap();
    });
    // The data does not wait for the server's leave; which of the two crosses the other is seen differently.
    let before = client.core().trips();
    let mut copy = client.copy_in("COPY t FROM STDIN").unwrap();
    copy.send(b"5\n6\n").unwrap();
    assert_eq!(copy.finish().unwrap(), 2);
    assert_eq!(client.core().trips() - before, 1);
}
