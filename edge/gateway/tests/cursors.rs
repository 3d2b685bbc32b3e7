//! Results that are read in pieces: every byte is the same as without a gateway, whatever the program does between the
//! pieces, and most of them come from memory.

mod common;

use std::time::Duration;

use common::messages::*;
use common::replay::{Script, Step, assert_faithful_through};
use common::server::Server;

const PLAIN: &str = "SELECT id, v FROM walked ORDER BY walked.id";

/// Runs the walks through a gateway that reads ahead; the trips that it took out.
fn assert_read_ahead(server: &Server, database: &str, scripts: &[Script]) -> u64 {
    assert_faithful_through(vec![server.remedied_gateway()], server, database, scripts)
}

/// Makes the table that the other scripts walk, and waits until the gateway may ask for the catalogue again.
fn table(database: &str) -> Script {
    let table = "CREATE TABLE walked AS SELECT id, 'row ' || id AS v FROM generate_series(1, 95) AS id; \
                 CREATE INDEX ON walked (id); ANALYZE walked";
    Script::session("table", database).says(table).then(Step::Pause(Duration::from_millis(1100))).settled()
}

fn walk_in(database: &str, name: &str) -> Script {
    Script::session(name, database).settled()
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
            self = self.says("SELECT 1").then(Step::Pause(Duration::from_millis(5)));
        }
        self
    }

    fn opens(self, text: &str, rows: u32) -> Self {
        self.exchange(
            [parse("", text), bind("p", "", &[]), describe_portal("p"), execute("p", rows), sync()].concat(),
        )
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
    let walk = |name| walk_in("cursors", name);
    let scripts = [
        table("cursors"),
        walk("to the end").says("BEGIN").opens(PLAIN, 10).reads(10, 12).says("COMMIT"),
        walk("an exact number of pieces").says("BEGIN").opens(PLAIN, 5).reads(5, 20).says("COMMIT"),
        walk("an early end")
            .says("BEGIN")
            .opens(PLAIN, 10)
            .reads(10, 4)
            .exchange([close_portal("p"), sync()].concat())
            .reads(10, 1)
            .says("ROLLBACK")
            .says("SELECT 1"),
        walk("other sizes")
            .says("BEGIN")
            .opens(PLAIN, 10)
            .reads(10, 4)
            .reads(3, 4)
            .reads(25, 1)
            .reads(10, 1)
            .reads(0, 2)
            .says("COMMIT"),
        walk("all the rest").says("BEGIN").opens(PLAIN, 10).reads(10, 2).reads(0, 2).says("COMMIT"),
        walk("own writes")
            .says("BEGIN")
            .opens(PLAIN, 10)
            .reads(10, 2)
            .says("UPDATE walked SET v = 'new'")
            .reads(10, 2)
            .says("DELETE FROM walked")
            .reads(10, 8)
            .says("ROLLBACK"),
        walk("definitions")
            .says("BEGIN")
            .opens(PLAIN, 10)
            .reads(10, 3)
            .says("TRUNCATE walked")
            .says("ROLLBACK"),
        walk("savepoints")
            .says("BEGIN")
            .opens(PLAIN, 10)
            .reads(10, 2)
            .says("SAVEPOINT a1")
            .reads(10, 2)
            .says("ROLLBACK TO a1")
            .reads(10, 2)
            .says("SELECT 1 / 0")
            .reads(10, 1)
            .says("ROLLBACK TO a1")
            .reads(10, 3)
            .says("COMMIT"),
        walk("opened in a savepoint")
            .says("BEGIN")
            .says("SAVEPOINT a1")
            .opens(PLAIN, 10)
            .reads(10, 3)
            .says("ROLLBACK TO a1")
            .reads(10, 1)
            .says("ROLLBACK"),
        walk("an error ahead")
            .says("BEGIN")
            .opens("SELECT 100 / (45 - id) FROM walked WHERE id > 0 LIMIT 95", 10)
            .reads(10, 6)
            .says("ROLLBACK"),
        walk("an error ahead, not reached")
            .says("BEGIN")
            .says("INSERT INTO walked VALUES (0, 'mine')")
            .says("COMMIT")
            .settled()
            .says("BEGIN")
            .opens("SELECT 100 / (45 - id) FROM walked LIMIT 95", 10)
            .reads(10, 2)
            .says("SELECT count(*) FROM walked")
            .says("COMMIT")
            .says("SELECT count(*) FROM walked"),
        walk("among other messages")
            .says("BEGIN")
            .opens(PLAIN, 10)
            .reads(10, 3)
            .exchange(
                [
                    parse("s", "SELECT 7"),
                    execute("p", 10),
                    bind("", "s", &[]),
                    execute("", 0),
                    execute("p", 10),
                    sync(),
                ]
                .concat(),
            )
            .reads(10, 2)
            .exchange([execute("p", 10), bind("", "none", &[]), execute("p", 10), sync()].concat())
            .reads(10, 1)
            .says("ROLLBACK"),
        walk("another by the same name")
            .says("BEGIN")
            .opens(PLAIN, 10)
            .reads(10, 3)
            .opens(PLAIN, 10)
            .reads(10, 1)
            .says("ROLLBACK")
            .says("BEGIN")
            .opens(PLAIN, 10)
            .reads(10, 3)
            .says("COMMIT"),
        walk("a failed transaction")
            .says("BEGIN")
            .says("SAVEPOINT a1")
            .opens(PLAIN, 10)
            .reads(10, 3)
            .says("SELEKT")
            .reads(10, 1)
            .says("ROLLBACK"),
        walk("settings")
            .says("BEGIN")
            .opens("SELECT id * 1, id::float8 / 3 FROM walked", 10)
            .reads(10, 3)
            .says("SET LOCAL extra_float_digits = 0")
            .reads(10, 3)
            .says("COMMIT"),
        walk("serializable")
            .says("BEGIN ISOLATION LEVEL SERIALIZABLE")
            .opens(PLAIN, 10)
            .reads(10, 3)
            .says("COMMIT"),
        walk("repeatable read")
            .says("BEGIN ISOLATION LEVEL REPEATABLE READ")
            .opens(PLAIN, 10)
            .reads(10, 12)
            .says("COMMIT"),
        walk("two portals")
            .says("BEGIN")
            .opens(PLAIN, 10)
            .exchange([parse("", PLAIN), bind("q", "", &[]), execute("q", 7), sync()].concat())
            .reads(10, 2)
            .exchange([execute("q", 7), sync()].concat())
            .reads(10, 2)
            .exchange([execute("q", 7), sync()].concat())
            .exchange([execute("q", 7), sync()].concat())
            .says("COMMIT"),
        walk("wide rows")
            .says("BEGIN")
            .opens("SELECT id * 1, replace(v, 'o', repeat('o', 20000)) FROM walked ORDER BY walked.id", 3)
            .reads(3, 15)
            .says("COMMIT"),
        walk("wide columns")
            .says("BEGIN")
            .says("UPDATE walked SET v = repeat(v, 20000)")
            .opens("SELECT id, v FROM walked ORDER BY walked.id", 3)
            .reads(3, 15)
            .says("COMMIT"),
    ];
    let removed = assert_read_ahead(server, "cursors", &scripts);
    assert!(removed >= 50, "only {removed} trips were removed");
}

#[test]
fn cursors_of_sql() {
    let server = Server::shared();
    let declare = "DECLARE \"c\" CURSOR FOR SELECT id, v FROM walked ORDER BY walked.id";
    let held = "DECLARE \"c\" NO SCROLL CURSOR WITH HOLD FOR SELECT id, v FROM walked ORDER BY walked.id";
    let walk = |name| walk_in("cursors_sql", name);
    let scripts = [
        table("cursors_sql"),
        walk("to the end").says("BEGIN").says(declare).fetches(10, 12).says("CLOSE \"c\"").says("COMMIT"),
        walk("an exact number").says("BEGIN").says(declare).fetches(5, 21).says("COMMIT").fetches(10, 1),
        walk("held").says(held).fetches(10, 12).says("CLOSE \"c\"").fetches(10, 1),
        walk("held, other sizes").says(held).fetches(10, 3).fetches(4, 3).fetches(50, 3).says("CLOSE c"),
        walk("held, in and out of transactions")
            .says(held)
            .fetches(10, 3)
            .says("BEGIN")
            .fetches(10, 2)
            .says("DELETE FROM walked")
            .fetches(10, 2)
            .says("ROLLBACK")
            .fetches(10, 2)
            .says("CLOSE c")
            .says(held)
            .fetches(10, 3),
        walk("backward")
            .says("BEGIN")
            .says(declare)
            .fetches(10, 4)
            .says("FETCH BACKWARD 3 FROM c")
            .fetches(10, 3)
            .says("MOVE 5 IN c")
            .fetches(10, 2)
            .says("COMMIT"),
        walk("current of")
            .says("BEGIN")
            .says("DECLARE c CURSOR FOR SELECT id, v FROM walked")
            .fetches(1, 5)
            .says("UPDATE walked SET v = 'here' WHERE CURRENT OF c RETURNING id * 1")
            .fetches(1, 2)
            .says("DELETE FROM walked WHERE CURRENT OF c RETURNING id * 1")
            .fetches(1, 2)
            .says("ROLLBACK"),
        walk("savepoints")
            .says("BEGIN")
            .says(declare)
            .fetches(10, 3)
            .says("SAVEPOINT a1")
            .fetches(10, 2)
            .says("ROLLBACK TO a1")
            .fetches(10, 2)
            .says("COMMIT"),
        walk("an error ahead")
            .says("BEGIN")
            .says("DECLARE c CURSOR FOR SELECT 100 / (45 - id) FROM walked WHERE id > 0")
            .fetches(10, 6)
            .says("ROLLBACK"),
        walk("an error ahead, not reached")
            .says("BEGIN")
            .says("DECLARE c CURSOR FOR SELECT 100 / (45 - id) FROM walked")
            .fetches(10, 3)
            .says("CLOSE c")
            .says("SELECT count(*) FROM walked")
            .says("COMMIT"),
        walk("closed by CLOSE ALL")
            .says("BEGIN")
            .says(declare)
            .fetches(10, 3)
            .says("CLOSE ALL")
            .fetches(10, 1)
            .says("ROLLBACK")
            .says(held)
            .fetches(10, 3)
            .says("CLOSE ALL")
            .fetches(10, 1),
    ];
    let removed = assert_read_ahead(server, "cursors_sql", &scripts);
    assert!(removed >= 40, "only {removed} trips were removed");
}
