//! A tour of the client on a database of yours: `cargo run -p onetrip-client --example bookkeeping -- URL`. It uses
//! temporary tables only.

use onetrip_client::blocking::Client;
use onetrip_client::core::Fetch;
use onetrip_client::{Error, OnError, Outcome};

#[allow(dead_code, reason = "the tests run the tour without it")]
fn main() -> Result<(), Error> {
    let url = std::env::args().nth(1).unwrap_or_default();
    for line in tour(&mut Client::connect(&url)?)? {
        println!("{line}");
    }
    Ok(())
}

/// Runs every part and returns what it found.
pub(crate) fn tour(client: &mut Client) -> Result<Vec<String>, Error> {
    client.script("CREATE TEMP TABLE account (id int PRIMARY KEY, balance int CHECK (balance >= 0))")?;
    let mut found = vec![load(client)?];
    found.extend(transfers(client)?);
    found.push(sum(client)?);
    Ok(found)
}

/// Rows arrive by COPY, in one trip.
fn load(client: &mut Client) -> Result<String, Error> {
    let mut copy = client.copy_in("COPY account FROM STDIN")?;
    for id in 1..=1000 {
        copy.send(format!("{id}\t100\n").as_bytes())?;
    }
    Ok(format!("{} accounts", copy.finish()?))
}

/// Independent transfers in one trip: one that fails does not stop the others.
fn transfers(client: &mut Client) -> Result<Vec<String>, Error> {
    let take = "UPDATE account SET balance = balance - $2 WHERE id = $1";
    client.begin()?;
    let mut pipeline = client.pipeline(OnError::Continue)?;
    for (id, amount) in [(1, 30), (2, 500), (3, 100)] {
        pipeline.execute(take, &[&id, &amount])?;
    }
    pipeline.commit()?;
    let outcomes = pipeline.end()?;
    let words = |outcome: &Outcome| match outcome {
        Outcome::Done(done) => done.tag.to_string(),
        Outcome::Failed(error) => format!("refused, SQLSTATE {}", error.sqlstate().unwrap_or("none")),
        other => format!("{other:?}"),
    };
    Ok(outcomes.iter().map(|(_, outcome)| words(outcome)).collect())
}

/// Rows are fetched ahead while others are read.
fn sum(client: &mut Client) -> Result<String, Error> {
    client.begin()?;
    let cursor = client.open_cursor("SELECT balance FROM account", &[], Fetch::Auto)?;
    let mut sum = 0;
    while let Some(row) = client.next_row(&cursor)? {
        sum += row.get::<i32>(0)?;
    }
    client.commit()?;
    Ok(format!("{sum} in all"))
}
