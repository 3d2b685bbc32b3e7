//! Results that are read in pieces: every byte is the same as without a gateway, whatever the program does between the
//! pieces, and most of them come from memory.

mod common;

use common::messages::*;
use common::replay::{Script, assert_faithful};
use common::server::Server;

const PLAIN: &str = "SELECT id * 1 AS id, lower(v) AS v FROM walked ORDER BY walked.id";

/// A script that has made a table of so many rows.
fn walk_in(database: &str, name: &str, rows: u32) -> Script {
    let table = format!(
        "CREATE TABLE walked AS SELECT id, 'row ' || id AS v FROM generate_series(1, {rows}) AS id; \
         CREATE INDEX ON walked (id); ANALYZE walked"
    );
    Script::session(name, database).exchange(query("DROP TABLE IF EXISTS walked")).exchange(query(&table)).settled()
}

trait Walk: Sized {
    fn settled(self) -> Self;
    fn opens(self, text: &str, rows: u32) -> Self;
    fn reads(self, rows: u32, times: usize) -> Self;
    fn fetches(self, rows: u32, times: usize) -> Self;
    fn says(self, text: &str) -> Self;
}

impl Walk for Script {
    /// Lets the session learn of the database.
    fn settled(mut self) -> Self {
        for _ in 0..3 {
            self = self.says("SELECT 1").then(common::replay::Step::Pause(std::time::Duration::from_millis(5)));
        }
        self
    }

    fn opens(self, text: &str, rows: u32) -> Self {
        self.exchange([parse("", text), bind("p", "", &[]), describe_portal("p"), execute("p", rows), sync()].concat())
    }

    fn reads(mut self, rows: u32, times: usize) -> Self {
        for _ in 0..times {
            self = self.exchange([execute("p", rows), sync()].concat());
        }
        self
    }

    fn fetches(mut self, rows: u32, times: usize) -> Self {
        for _ in 0..times {
            self = self.says(&format!("FETCH FORWARD {rows} FROM \"c\""));
        }
        self
    }

    fn says(self, text: &str) -> Self {
        self.exchange(query(text))
    }
}

#[test]
fn portals_in_pieces() {
    let server = Server::shared();
    let walk = |name, rows| walk_in("cursors", name, rows);
    let scripts = [
        walk("to the end", 95).says("BEGIN").opens(PLAIN, 10).reads(10, 12).says("COMMIT"),
        walk("an exact number of pieces", 100).says("BEGIN").opens(PLAIN, 10).reads(10, 12).says("COMMIT"),
        walk("an early end", 95).says("BEGIN").opens(PLAIN, 10).reads(10, 4).exchange([close_portal("p"), sync()].concat())
            .reads(10, 1).says("ROLLBACK").says("SELECT 1"),
        walk("other sizes", 95).says("BEGIN").opens(PLAIN, 10).reads(10, 4).reads(3, 4).reads(25, 1).reads(10, 1).reads(0, 2)
            .says("COMMIT"),
        walk("all the rest", 95).says("BEGIN").opens(PLAIN, 10).reads(10, 2).reads(0, 2).says("COMMIT"),
        walk("own writes", 95).says("BEGIN").opens(PLAIN, 10).reads(10, 2).says("UPDATE walked SET v = 'new'")
            .reads(10, 2).says("DELETE FROM walked").reads(10, 8).says("COMMIT"),
        walk("definitions", 95).says("BEGIN").opens(PLAIN, 10).reads(10, 3).says("TRUNCATE walked").says("ROLLBACK"),
        walk("savepoints", 95).says("BEGIN").opens(PLAIN, 10).reads(10, 2).says("SAVEPOINT a1").reads(10, 2)
            .says("ROLLBACK TO a1").reads(10, 2).says("SELECT 1 / 0").reads(10, 1).says("ROLLBACK TO a1").reads(10, 3)
            .says("COMMIT"),
        walk("opened in a savepoint", 95).says("BEGIN").says("SAVEPOINT a1").opens(PLAIN, 10).reads(10, 3)
            .says("ROLLBACK TO a1").reads(10, 1).says("ROLLBACK"),
        walk("an error ahead", 95).says("BEGIN").opens("SELECT 100 / (45 - id) FROM walked WHERE id > 0 LIMIT 95", 10)
            .reads(10, 6).says("ROLLBACK"),
        walk("an error ahead, not reached", 95).says("BEGIN").says("INSERT INTO walked VALUES (0, 'mine')")
            .says("COMMIT").settled().says("BEGIN").opens("SELECT 100 / (45 - id) FROM walked LIMIT 95", 10).reads(10, 2)
            .says("SELECT count(*) FROM walked").says("COMMIT").says("SELECT count(*) FROM walked"),
        walk("among other messages", 95).says("BEGIN").opens(PLAIN, 10).reads(10, 3)
            .exchange([parse("s", "SELECT 7"), execute("p", 10), bind("", "s", &[]), execute("", 0), execute("p", 10), sync()].concat())
            .reads(10, 2).exchange([execute("p", 10), bind("", "none", &[]), execute("p", 10), sync()].concat())
            .reads(10, 1).says("ROLLBACK"),
        walk("another by the same name", 95).says("BEGIN").opens(PLAIN, 10).reads(10, 3).opens(PLAIN, 10).reads(10, 1)
            .says("ROLLBACK").says("BEGIN").opens(PLAIN, 10).reads(10, 3).says("COMMIT"),
        walk("a failed transaction", 95).says("BEGIN").says("SAVEPOINT a1").opens(PLAIN, 10).reads(10, 3)
            .says("SELEKT").reads(10, 1).says("ROLLBACK"),
        walk("settings", 95).says("BEGIN").opens("SELECT id * 1, id::float8 / 3 FROM walked", 10).reads(10, 3)
            .says("SET LOCAL extra_float_digits = 0").reads(10, 3).says("COMMIT"),
        walk("serializable", 95).says("BEGIN ISOLATION LEVEL SERIALIZABLE").opens(PLAIN, 10).reads(10, 3).says("COMMIT"),
        walk("repeatable read", 95).says("BEGIN ISOLATION LEVEL REPEATABLE READ").opens(PLAIN, 10).reads(10, 12).says("COMMIT"),
        walk("two portals", 95).says("BEGIN").opens(PLAIN, 10).exchange([parse("", PLAIN), bind("q", "", &[]), execute("q", 7), sync()].concat())
            .reads(10, 2).exchange([execute("q", 7), sync()].concat()).reads(10, 2)
            .exchange([execute("q", 7), sync()].concat()).exchange([execute("q", 7), sync()].concat()).says("COMMIT"),
        walk("wide rows", 40).says("BEGIN").opens("SELECT id * 1, replace(v, 'o', repeat('o', 20000)) FROM walked", 3).reads(3, 15).says("COMMIT"),
        walk("wide columns", 40).says("UPDATE walked SET v = repeat(v, 20000)").settled().says("BEGIN").opens("SELECT id * 1, lower(v) FROM walked", 3).reads(3, 15).says("COMMIT"),
    ];
    let removed = assert_faithful(server, "cursors", &scripts);
    assert!(removed >= 60, "only {removed} trips were removed");
}

#[test]
fn cursors_of_sql() {
    let server = Server::shared();
    let declare = "DECLARE \"c\" CURSOR FOR SELECT id * 1 AS id, lower(v) FROM walked ORDER BY walked.id";
    let held = "DECLARE \"c\" NO SCROLL CURSOR WITH HOLD FOR SELECT id * 1 AS id, lower(v) FROM walked ORDER BY walked.id";
    let walk = |name, rows| walk_in("cursors_sql", name, rows);
    let scripts = [
        walk("to the end", 95).says("BEGIN").says(declare).fetches(10, 12).says("CLOSE \"c\"").says("COMMIT"),
        walk("an exact number", 100).says("BEGIN").says(declare).fetches(10, 12).says("COMMIT").fetches(10, 1),
        walk("held", 95).says(held).fetches(10, 12).says("CLOSE \"c\"").fetches(10, 1),
        walk("held, other sizes", 95).says(held).fetches(10, 3).fetches(4, 3).fetches(50, 3).says("CLOSE c"),
        walk("held, in and out of transactions", 95).says(held).fetches(10, 3).says("BEGIN").fetches(10, 2)
            .says("DELETE FROM walked").fetches(10, 2).says("ROLLBACK").fetches(10, 2).says("CLOSE c").says(held).fetches(10, 3),
        walk("backward", 95).says("BEGIN").says(declare).fetches(10, 4).says("FETCH BACKWARD 3 FROM c").fetches(10, 3)
            .says("MOVE 5 IN c").fetches(10, 2).says("COMMIT"),
        walk("current of", 95).says("BEGIN").says("DECLARE c CURSOR FOR SELECT id * 1, lower(v) FROM walked").fetches(1, 5)
            .says("UPDATE walked SET v = 'here' WHERE CURRENT OF c RETURNING id * 1").fetches(1, 2)
            .says("DELETE FROM walked WHERE CURRENT OF c RETURNING id * 1").fetches(1, 2).says("COMMIT"),
        walk("savepoints", 95).says("BEGIN").says(declare).fetches(10, 3).says("SAVEPOINT a1").fetches(10, 2)
            .says("ROLLBACK TO a1").fetches(10, 2).says("COMMIT"),
        walk("an error ahead", 95).says("BEGIN").says("DECLARE c CURSOR FOR SELECT 100 / (45 - id) FROM walked WHERE id > 0")
            .fetches(10, 6).says("ROLLBACK"),
        walk("an error ahead, not reached", 95).says("BEGIN").says("DECLARE c CURSOR FOR SELECT 100 / (45 - id) FROM walked")
            .fetches(10, 3).says("CLOSE c").says("SELECT count(*) FROM walked").says("COMMIT"),
        walk("closed by CLOSE ALL", 95).says("BEGIN").says(declare).fetches(10, 3).says("CLOSE ALL").fetches(10, 1)
            .says("ROLLBACK").says(held).fetches(10, 3).says("CLOSE ALL").fetches(10, 1),
    ];
    let removed = assert_faithful(server, "cursors_sql", &scripts);
    assert!(removed >= 40, "only {removed} trips were removed");
}
