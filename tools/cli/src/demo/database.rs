//! The database of the story: an embedded one, gone when dropped, or a schema of its own in a real one.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use futures_util::SinkExt;
#[cfg(feature = "embed")]
use onetrip_embed::{Durability, ServeOptions, Server};
use onetrip_gateway::{Gateway, GatewayConfig, ListenAddress};
use onetrip_target::{Conninfo, Environment, passfile};
#[cfg(feature = "embed")]
use tempfile::TempDir;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

use super::data::Staff;
use super::interrupt::Interruptible;
use super::program::Tables;

/// Lines are sent to COPY in pieces of about this many bytes.
const COPY_BYTES: usize = 64 << 10;
/// Longest wait for a schema to be made, or to be dropped at the end.
const SCHEMA_TIMEOUT: Duration = Duration::from_secs(20);

/// Where the tables are, and how to get there.
pub(super) struct Database {
    pub(super) conninfo: Conninfo,
    pub(super) tables: Tables,
    /// How people call it.
    pub(super) name: String,
    /// Its schema in a database that is somebody's, dropped at the end.
    schema: Option<String>,
    /// What serves it where this process does. The server stops before the file goes.
    #[cfg(feature = "embed")]
    _own: Option<(Server, TempDir)>,
}

impl Database {
    /// An embedded database without tables.
    #[cfg(feature = "embed")]
    pub(super) fn embedded() -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("onetrip-demo-").tempdir()?;
        let file = directory.path().join("employees.db");
        let server = Server::start(ServeOptions { durability: Durability::Off, ..ServeOptions::new(file) })?;
        let port = server.local_addr().port();
        let target = format!("host=127.0.0.1 port={port} user=demo dbname=employees sslmode=disable");
        Ok(Self {
            conninfo: Conninfo::parse(&target, &Environment::default())?,
            tables: Tables { prefix: String::new() },
            name: "an embedded database (SQLite, served as PostgreSQL)".to_owned(),
            schema: None,
            _own: Some((server, directory)),
        })
    }

    /// This build has none.
    #[cfg(not(feature = "embed"))]
    pub(super) fn embedded() -> Result<Self> {
        crate::lacking::no_database()
    }

    /// A new schema in the database that the text means. It stays until [`Self::clean_up`].
    pub(super) fn schema_in(text: &str, work: &mut Interruptible) -> Result<Self> {
        let parsed = Conninfo::parse(text, &Environment::of_this_process());
        let conninfo = parsed.and_then(Conninfo::for_postgres).context("--database")?;
        let schema = format!("onetrip_demo_{}", std::process::id());
        let (gateway, config) = way_in(&conninfo)?;
        let session = work.run(Session::open(&config)).with_context(|| conninfo.address())?;
        // Not to be interrupted: afterwards it must be known whether the schema is ours.
        work.finish(SCHEMA_TIMEOUT, async {
            Ok(session.client.batch_execute(&format!("CREATE SCHEMA {schema}")).await?)
        })
        .with_context(|| format!("cannot make the schema {schema}"))?;
        work.finish(SCHEMA_TIMEOUT, session.close())?;
        gateway.stop();
        Ok(Self {
            tables: Tables { prefix: format!("{schema}.") },
            name: format!("schema {schema} of {}", conninfo.address()),
            conninfo,
            schema: Some(schema),
            #[cfg(feature = "embed")]
            _own: None,
        })
    }

    /// Makes the tables and fills them; `copied` is told the number of lines after every piece.
    pub(super) fn fill(&self, staff: &Staff, work: &mut Interruptible, copied: impl Fn(usize)) -> Result<()> {
        let (gateway, config) = way_in(&self.conninfo)?;
        let prefix = &self.tables.prefix;
        work.run(async {
            let session = Session::open(&config).await?;
            let client = &session.client;
            client.batch_execute(&definitions(prefix)).await?;
            copy(client, &format!("{prefix}employees"), staff.employee_lines(), &copied).await?;
            copy(client, &format!("{prefix}salaries"), staff.salary_lines(), &copied).await?;
            // Without statistics a planner guesses.
            client.batch_execute(&format!("ANALYZE {prefix}employees; ANALYZE {prefix}salaries")).await?;
            session.close().await
        })
        .context("cannot fill the tables")?;
        gateway.stop();
        Ok(())
    }

    /// Leaves nothing behind.
    pub(super) fn clean_up(self, work: &Interruptible) -> Result<()> {
        let Some(schema) = &self.schema else { return Ok(()) };
        let (gateway, config) = way_in(&self.conninfo)?;
        work.finish(SCHEMA_TIMEOUT, async {
            let session = Session::open(&config).await?;
            session.client.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await?;
            session.close().await
        })
        .with_context(|| format!("the schema {schema} is still there, because it cannot be dropped"))?;
        gateway.stop();
        Ok(())
    }
}

/// A gateway to the database, which does what TLS asks for, and how a driver connects through it.
fn way_in(conninfo: &Conninfo) -> Result<(Gateway, Config)> {
    let gateway = Gateway::start(GatewayConfig { threads: Some(1), ..GatewayConfig::new(conninfo.clone()) })?;
    let config = driver_config(conninfo, &gateway)?;
    Ok((gateway, config))
}

/// How a driver connects to the database through a gateway.
pub(super) fn driver_config(conninfo: &Conninfo, gateway: &Gateway) -> Result<Config> {
    let ListenAddress::Tcp(address) = gateway.address() else { bail!("the gateway listens at no port") };
    let mut config = Config::new();
    config.host(address.ip().to_string()).port(address.port()).ssl_mode(SslMode::Disable);
    config.user(conninfo.role()?).application_name("onetrip demo");
    if let Some(dbname) = &conninfo.dbname {
        config.dbname(dbname);
    }
    if let Some(options) = &conninfo.options {
        config.options(options);
    }
    for host in &conninfo.hosts {
        if let Some(password) = passfile::password_for(conninfo, host)? {
            config.password(password.reveal());
            break;
        }
    }
    Ok(config)
}

/// An open session of the driver.
pub(super) struct Session {
    pub(super) client: Client,
    connection: tokio::task::JoinHandle<Result<(), tokio_postgres::Error>>,
}

impl Session {
    pub(super) async fn open(config: &Config) -> Result<Self> {
        let connected = config.connect(NoTls).await.map_err(|error| match error.as_db_error() {
            // The gateway has said why.
            Some(told) if *told.code() == SqlState::CONNECTION_FAILURE => anyhow!("cannot be reached"),
            Some(told) => anyhow!("{}", told.message()),
            None => error.into(),
        });
        let (client, connection) = connected?;
        Ok(Self { client, connection: tokio::spawn(connection) })
    }

    /// Says good-bye and waits until that is sent.
    pub(super) async fn close(self) -> Result<()> {
        drop(self.client);
        self.connection.await.context("the driver ended early")??;
        Ok(())
    }
}

/// The tables in SQL that both databases understand.
fn definitions(prefix: &str) -> String {
    format!(
        "CREATE TABLE {prefix}employees (
            emp_no integer PRIMARY KEY,
            first_name varchar(14) NOT NULL,
            last_name varchar(16) NOT NULL,
            hire_date date NOT NULL
        );
        CREATE TABLE {prefix}salaries (
            emp_no integer NOT NULL,
            salary integer NOT NULL,
            from_date date NOT NULL,
            to_date date NOT NULL,
            PRIMARY KEY (emp_no, from_date)
        );"
    )
}

async fn copy(
    client: &Client,
    table: &str,
    lines: impl Iterator<Item = String>,
    copied: &impl Fn(usize),
) -> Result<()> {
    let sink = client.copy_in::<_, Bytes>(&format!("COPY {table} FROM STDIN")).await?;
    let mut sink = std::pin::pin!(sink);
    let mut lines = lines.peekable();
    while lines.peek().is_some() {
        let (mut piece, mut count) = (String::with_capacity(COPY_BYTES + 100), 0);
        while piece.len() < COPY_BYTES {
            let Some(line) = lines.next() else { break };
            piece.push_str(&line);
            count += 1;
        }
        sink.send(piece.into()).await?;
        copied(count);
    }
    sink.as_mut().finish().await?;
    Ok(())
}
