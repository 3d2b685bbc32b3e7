//! What a statement costs: `measure WORK ROUNDS`, for bench/run client. PG* variables say where the server is.
//!
//! WORK is `pipeline` (100 × {insert, 4 updates} and COMMIT in one block), `continue` (the same, each operation apart)
//! or `select` (1,000 selects of one row, one after the other), or a way of execute_many with how many rows, such as
//! `unnest:100`, or `lobs` (every large object of the table `large`, in pieces). Prints a line per round: its seconds, the client's CPU
//! in microseconds per statement, the rows that the server counted (of large objects, the bytes), and the most memory that
//! the process has used, in MiB.

use std::time::{Duration, Instant};

use onetrip_client::blocking::{Client, Lob, LobSource};
use onetrip_client::{Bulk, Config, OnError, Param};
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
            "lobs" => large_objects(&mut client)?,
            bulk => many(&mut client, bulk)?,
        };
        let (elapsed, cpu) = (started.elapsed(), cpu_time() - cpu);
        if round >= 2 {
            let micros = cpu.as_secs_f64() * 1e6 / f64::from(statements);
            println!("{:.7} {micros:.4} {rows} {:.1}", elapsed.as_secs_f64(), memory_mib());
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

/// One call of execute_many; `bulk` is the way and how many rows.
fn many(client: &mut Client, bulk: &str) -> Result<(i32, u64), Box<dyn std::error::Error>> {
    let (way, rows) = bulk.split_once(':').ok_or_else(|| format!("unknown work: {bulk}"))?;
    let way = match way {
        "auto" => Bulk::Auto,
        "one by one" => Bulk::Pipeline,
        "unnest" => Bulk::Unnest,
        "copy" => Bulk::Copy,
        other => return Err(format!("unknown way: {other}").into()),
    };
    let ids: Vec<i32> = (0..rows.parse()?).collect();
    let text: &dyn Param = &"forty characters of text, more or less....";
    let sets: Vec<[&dyn Param; 3]> = ids.iter().map(|id| [id as &dyn Param, &0, text]).collect();
    let done = client.execute_many_by(way, INSERT, sets.iter().map(|set| &set[..]))?;
    Ok((i32::try_from(ids.len())?, done.rows))
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

/// Reads every large object to its end; counts bytes.
fn large_objects(client: &mut Client) -> Result<(i32, u64), onetrip_client::Error> {
    let mut oids: Vec<u32> = Vec::new();
    let mut rows = client.query("SELECT object FROM large ORDER BY id", &[])?;
    while let Some(row) = rows.next_row()? {
        oids.push(row.get(0)?);
    }
    let mut bytes = 0;
    for oid in &oids {
        let mut lob = Lob::new(LobSource::Object(*oid));
        let mut reader = client.read_lob(&mut lob);
        loop {
            let count = reader.fill()?.len();
            if count == 0 {
                break;
            }
            bytes += count as u64;
            reader.consume(count);
        }
    }
    Ok((i32::try_from(oids.len()).unwrap_or(i32::MAX), bytes))
}

/// The most memory that this process has used, in MiB.
fn memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = peak.and_then(|text| text.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kibibytes.unwrap_or_default() / 1024.0
}

/// What this thread has computed.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}
