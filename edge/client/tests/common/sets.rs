//! Many sets of parameters, and the tables that they go to.

use onetrip_client::blocking::Client;
use onetrip_client::{Bulk, BulkDone, BulkError, Param};

use super::Server;

/// Enough for `Auto` to choose COPY.
pub(crate) const MANY: i32 = 4000;

/// For these it chooses arrays.
pub(crate) const SOME: i32 = 400;

/// And for these COPY, as soon as it knows the table.
pub(crate) const FEW: i32 = 60;

pub(crate) fn text(client: &mut Client, query: &str) -> String {
    let mut rows = client.query(query, &[]).unwrap();
    rows.next_row().unwrap().unwrap().get::<Option<String>>(0).unwrap().unwrap_or_default()
}

/// A table of its own name, which other sessions see, too.
pub(crate) fn shared_table(name: &str, columns: &str) -> Client {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    client.script(&format!("DROP TABLE IF EXISTS {name} CASCADE; CREATE TABLE {name} ({columns})")).unwrap();
    client
}

pub(crate) fn insert_ids(
    client: &mut Client,
    table: &str,
    count: i32,
    begins: bool,
) -> Result<BulkDone, BulkError> {
    struct Ids(Vec<i32>);
    impl onetrip_client::core::Sets for Ids {
        fn count(&self) -> usize {
            self.0.len()
        }
        fn width(&self, _: usize) -> usize {
            1
        }
        fn value(&self, set: usize, _: usize) -> &dyn Param {
            &self.0[set]
        }
    }
    let statement = format!("INSERT INTO {table} (id) VALUES ($1)");
    client.run_many(Bulk::Auto, &statement, &Ids((0..count).collect()), begins)
}
