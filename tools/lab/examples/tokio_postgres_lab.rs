//! The lab's work in tokio-postgres: statement by statement, and as futures that are joined, which it pipelines.
//!
//! `tokio_postgres_lab WORKLOAD MODE N SESSION`, as `clients/lab/README.md` says of all such programs.

use std::collections::HashMap;
use std::error::Error;
use std::io::{Lines, StdinLock};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use rustix::time::{ClockId, clock_gettime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [workload, mode, count, session] = arguments.as_slice() else {
        return Err(
            "usage: tokio_postgres_lab pipeline-read|pipeline-dml|pipeline-oltp blocking|joined N SESSION"
                .into(),
        );
    };
    let (count, session): (i32, i32) = (count.parse()?, session.parse()?);
    let is_joined = mode == "joined";
    let (client, connection) = config()?.connect(NoTls).await?;
    let connection = tokio::spawn(connection);
    let mut lines = std::io::stdin().lines();
    let work = match workload.as_str() {
        "pipeline-oltp" => Work::Told(listen(&client, &mut lines).await?),
        workload => Work::prepare(&client, workload == "pipeline-read").await?,
    };
    for (turn, line) in lines.enumerate() {
        line?;
        let first = session * 1_000_000 + turn as i32 * count;
        let (began, used) = (Instant::now(), cpu());
        let rows = match &work {
            Work::Read(select) => read(&client, select, (count, session), is_joined).await?,
            Work::Write(insert, update) => {
                write(&client, (insert, update), (count, first, session), is_joined).await?
            }
            Work::Told(told) => play(&client, told, count, is_joined).await?,
        };
        let (ns, cpu_ns) = (began.elapsed().as_nanos(), cpu().saturating_sub(used).as_nanos());
        println!("{{\"rows\": {rows}, \"ns\": {ns}, \"cpu_ns\": {cpu_ns}}}");
    }
    drop(client);
    connection.await??;
    Ok(())
}

enum Work {
    Read(Statement),
    Write(Statement, Statement),
    Told(Vec<Told>),
}

/// A statement that the lab tells; only those with values are prepared.
enum Told {
    Plain(String),
    Prepared(Statement, Vec<i32>),
}

/// Reads what the lab tells first: a statement a line, its values behind tabs, up to an empty line.
async fn listen(client: &Client, lines: &mut Lines<StdinLock<'_>>) -> Result<Vec<Told>, Box<dyn Error>> {
    let mut told = Vec::new();
    let mut prepared: HashMap<String, Statement> = HashMap::new();
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        let mut words = line.split('\t');
        let text = words.next().unwrap_or_default().to_owned();
        let values: Vec<i32> = words.map(str::parse).collect::<Result<_, _>>()?;
        if values.is_empty() {
            told.push(Told::Plain(text));
            continue;
        }
        let statement = match prepared.get(&text) {
            Some(statement) => statement.clone(),
            None => client.prepare(&text).await?,
        };
        prepared.insert(text, statement.clone());
        told.push(Told::Prepared(statement, values));
    }
    Ok(told)
}

impl Told {
    async fn run(&self, client: &Client) -> Result<usize, tokio_postgres::Error> {
        match self {
            Self::Plain(text) => client.batch_execute(text).await.map(|()| 0),
            Self::Prepared(statement, values) => {
                let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
                client.query(statement, &values).await.map(|rows| rows.len())
            }
        }
    }
}

async fn play(
    client: &Client,
    told: &[Told],
    count: i32,
    is_joined: bool,
) -> Result<usize, tokio_postgres::Error> {
    let mut rows = 0;
    for _ in 0..count {
        if is_joined {
            rows += try_join_all(told.iter().map(|told| told.run(client))).await?.into_iter().sum::<usize>();
        } else {
            for told in told {
                rows += told.run(client).await?;
            }
        }
    }
    Ok(rows)
}

impl Work {
    async fn prepare(client: &Client, is_read: bool) -> Result<Self, tokio_postgres::Error> {
        if is_read {
            return client.prepare("SELECT id, note FROM items WHERE id = $1").await.map(Self::Read);
        }
        let insert = client.prepare("INSERT INTO orders VALUES ($1, 0)").await?;
        let update = client.prepare("UPDATE stock SET quantity = quantity + 1 WHERE id = $1").await?;
        Ok(Self::Write(insert, update))
    }
}

async fn read(
    client: &Client,
    select: &Statement,
    (count, session): (i32, i32),
    is_joined: bool,
) -> Result<usize, tokio_postgres::Error> {
    let keys: Vec<i32> =
        (0..i64::from(count)).map(|n| 1 + ((n * 7919 + i64::from(session) * 131) % 10_000) as i32).collect();
    if is_joined {
        let found =
            try_join_all(keys.iter().map(|key| async move { client.query(select, &[key]).await })).await?;
        return Ok(found.iter().map(Vec::len).sum());
    }
    let mut rows = 0;
    for key in &keys {
        rows += client.query(select, &[key]).await?.len();
    }
    Ok(rows)
}

async fn write(
    client: &Client,
    (insert, update): (&Statement, &Statement),
    (count, first, session): (i32, i32, i32),
    is_joined: bool,
) -> Result<usize, tokio_postgres::Error> {
    let mut work = Vec::new();
    for unit in 0..count {
        work.push((insert, first + unit));
        work.extend((0..4).map(|line| (update, session * 100 + 1 + (unit * 4 + line) % 100)));
    }
    if is_joined {
        let together = try_join_all(
            work.iter().map(|(statement, key)| async move { client.execute(*statement, &[key]).await }),
        );
        let (begun, done, committed) =
            tokio::join!(client.batch_execute("BEGIN"), together, client.batch_execute("COMMIT"));
        return begun.and(done).and(committed).map(|()| 0);
    }
    client.batch_execute("BEGIN").await?;
    for (statement, key) in &work {
        client.execute(*statement, &[key]).await?;
    }
    client.batch_execute("COMMIT").await.map(|()| 0)
}

fn config() -> Result<tokio_postgres::Config, Box<dyn Error>> {
    let mut config = tokio_postgres::Config::new();
    config.host(std::env::var("PGHOST")?).port(std::env::var("PGPORT")?.parse()?);
    config.user(std::env::var("PGUSER")?).dbname(std::env::var("PGDATABASE")?);
    if let Ok(password) = std::env::var("PGPASSWORD") {
        config.password(password);
    }
    Ok(config)
}

/// CPU time of this process.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
