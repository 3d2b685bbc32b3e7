//! What a statement costs: `measure WORK ROUNDS`, for scripts/bench-client. PG* variables say where the server is.
//!
//! WORK is `pipeline` (100 × {insert, 4 updates} and COMMIT in one block), `continue` (the same, each operation apart)
//! or `select` (1,000 selects of one row, one after the other). Prints a line per round: its seconds, the client's CPU
//! in microseconds per statement, and the rows that the server counted.

use std::time::{Duration, Instant};

use onetrip_client::blocking::Client;
use onetrip_client::{Config, OnError};
use rustix::time::{ClockId, clock_gettime};

const INSERT: &str = "INSERT INTO measured (id, a, b) VALUES ($1, $2, $3)";
const UPDATE: &str = "UPDATE measured SET a = a + $2 WHERE id = $1";
const SELECT: &str = "SELECT b FROM known WHERE id = $1";
const SELECTS: i32 = 1000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, work, rounds] = arguments.as_slice() else { return Err("usage: measure WORK ROUNDS".into()) };
    let rounds: u32 = rounds.parse()?;
    let mut client = Client::connect_with(Config::from_environment()?)?;
    client.script("CREATE TEMP TABLE measured (id int PRIMARY KEY, a int, b text)")?;
    // What is prepared and what is awake is not what is measured.
    for round in 0..rounds + 2 {
        client.script("TRUNCATE measured")?;
        let (started, cpu) = (Instant::now(), cpu_time());
        let (statements, rows) = match work.as_str() {
            "pipeline" => block(&mut client, OnError::Abort)?,
            "continue" => block(&mut client, OnError::Continue)?,
            "select" => select(&mut client)?,
            other => return Err(format!("unknown work: {other}").into()),
        };
        let (elapsed, cpu) = (started.elapsed(), cpu_time() - cpu);
        if round >= 2 {
            let micros = cpu.as_secs_f64() * 1e6 / f64::from(statements);
            println!("{:.7} {micros:.4} {rows}", elapsed.as_secs_f64());
        }
    }
    Ok(())
}

fn block(client: &mut Client, on_error: OnError) -> Result<(i32, u64), onetrip_client::Error> {
    let mut pipeline = client.pipeline(on_error)?;
    pipeline.begin()?;
    for id in 0..100 {
        pipeline.execute(INSERT, &[&id, &0, &"forty characters of text, more or less...."])?;
        for step in 0..4 {
            pipeline.execute(UPDATE, &[&id, &step])?;
        }
    }
    pipeline.commit()?;
    let outcomes = pipeline.end()?;
    outcomes.check()?;
    let counts = outcomes.iter().map(|(_, outcome)| match outcome {
        onetrip_client::Outcome::Done(done) => done.count(),
        _ => 0,
    });
    Ok((502, counts.sum()))
}

fn select(client: &mut Client) -> Result<(i32, u64), onetrip_client::Error> {
    let mut found = 0;
    for id in 0..SELECTS {
        let mut rows = client.query(SELECT, &[&id])?;
        while let Some(row) = rows.next_row()? {
            found += u64::from(!row.get::<&str>(0)?.is_empty());
        }
    }
    Ok((SELECTS, found))
}

/// What this thread has computed.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}
