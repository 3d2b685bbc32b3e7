//! Databases that workloads run on: an embedded one, an installed PostgreSQL that is started for the run, or a given one.

mod installed;
pub(crate) mod process;
mod session;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use onetrip_client::Config;
use onetrip_embed::{Durability, ServeOptions, Server};
use onetrip_gateway::{Gateway, GatewayConfig, ListenAddress};
use onetrip_target::{Conninfo, Environment, SslMode, passfile};
use tempfile::TempDir;

use crate::LabError;
use crate::client::{Client, Login};
use crate::cpu::ServerCpu;
use crate::workload::Engine;
use installed::Installed;

pub(crate) use session::Session;

/// A database, open as long as this is.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) engine: Engine,
    pub(crate) conninfo: Conninfo,
    /// Where sessions connect that nobody counts.
    pub(crate) address: SocketAddr,
    pub(crate) login: Login,
    /// Its kind and version, as it says itself.
    pub(crate) version: String,
    /// How people call it.
    pub(crate) description: String,
    kind: Kind,
}

/// Held so that it ends with the database.
#[derive(Debug)]
enum Kind {
    Embedded {
        _server: Server,
        _directory: TempDir,
    },
    Installed(Installed),
    /// A schema of its own in somebody's database; the gateway speaks TLS where that is asked for.
    Given {
        _gateway: Gateway,
    },
}

impl Database {
    /// Opens one. `given` is the URL of a PostgreSQL to be used instead of the installed one.
    ///
    /// `None` where this engine is not on this machine.
    pub(crate) fn open(engine: Engine, given: Option<&str>) -> Result<Option<Self>, LabError> {
        let opened = match (engine, given) {
            (Engine::Embedded, _) => Some(Self::embedded()?),
            (Engine::Postgresql, Some(url)) => Some(Self::given(url)?),
            (Engine::Postgresql, None) => Installed::start()?.map(Self::installed).transpose()?,
            // Those do not speak its protocol.
            (Engine::Mariadb | Engine::Derby | Engine::Echo, _) => None,
        };
        let Some(mut database) = opened else { return Ok(None) };
        let mut session = database.session()?;
        database.version = session.ask("SELECT version()")?.unwrap_or_default();
        session.close();
        Ok(Some(database))
    }

    /// A session without distance that nobody counts.
    pub(crate) fn session(&self) -> Result<Session, LabError> {
        Session::open(self.config(self.address)?)
    }

    /// A session without distance that plays plans, and that nobody counts.
    pub(crate) fn player(&self) -> Result<Client, LabError> {
        Client::connect(self.address, &self.login)
    }

    /// How onetrip's client library gets to it, where something that is in the way listens at this address.
    pub(crate) fn config(&self, address: SocketAddr) -> Result<Config, LabError> {
        config(address, &self.login)
    }

    /// Whether it has a write-ahead log whose bytes can be asked for.
    pub(crate) fn has_wal(&self) -> bool {
        self.engine == Engine::Postgresql
    }

    /// Where its CPU time can be read.
    pub(crate) fn cpu(&self) -> ServerCpu {
        match &self.kind {
            Kind::Embedded { .. } => ServerCpu::InThisProcess,
            Kind::Installed(server) => ServerCpu::Of(server.process()),
            Kind::Given { .. } => ServerCpu::Elsewhere,
        }
    }

    fn embedded() -> Result<Self, LabError> {
        let failed =
            |error: &dyn std::fmt::Display| LabError::Database(format!("the embedded server: {error}"));
        let directory =
            tempfile::Builder::new().prefix("onetrip-lab-").tempdir().map_err(|error| failed(&error))?;
        let file = directory.path().join("lab.db");
        let options = ServeOptions { durability: Durability::Off, ..ServeOptions::new(file) };
        let server = Server::start(options).map_err(|error| failed(&error))?;
        let address = server.local_addr();
        Ok(Self {
            engine: Engine::Embedded,
            conninfo: parse(&plain(address, "lab", "lab"), &Environment::default())?,
            address,
            login: Login { user: "lab".into(), database: "lab".into(), password: None, schema: None },
            version: String::new(),
            description: "an embedded database (SQLite, served as PostgreSQL)".to_owned(),
            kind: Kind::Embedded { _server: server, _directory: directory },
        })
    }

    fn installed(server: Installed) -> Result<Self, LabError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
        let description = server.description();
        Ok(Self {
            engine: Engine::Postgresql,
            conninfo: parse(&plain(address, installed::USER, "postgres"), &Environment::default())?,
            address,
            login: Login {
                user: installed::USER.into(),
                database: "postgres".into(),
                password: None,
                schema: None,
            },
            version: String::new(),
            description,
            kind: Kind::Installed(server),
        })
    }

    fn given(url: &str) -> Result<Self, LabError> {
        let Reached { gateway, address, mut login, conninfo } = reach(url)?;
        let schema = format!("onetrip_lab_{}", std::process::id());
        let mut session = Session::open(config(address, &login)?)?;
        session.ask(&format!("CREATE SCHEMA {schema}"))?;
        session.close();
        login.schema = Some(schema.clone());
        Ok(Self {
            engine: Engine::Postgresql,
            description: format!("schema {schema} of {}", conninfo.address()),
            conninfo,
            address,
            login,
            version: String::new(),
            kind: Kind::Given { _gateway: gateway },
        })
    }

    /// Leaves nothing behind. What is started for the run ends with it.
    pub(crate) fn close(self: Arc<Self>) -> Result<(), LabError> {
        let Some(schema) = &self.login.schema else { return Ok(()) };
        let mut session = self.session()?;
        session.ask(&format!("DROP SCHEMA {schema} CASCADE"))?;
        session.close();
        Ok(())
    }
}

/// Somebody's database, with a gateway before it that speaks TLS where that is asked for.
pub(crate) struct Reached {
    gateway: Gateway,
    pub(crate) address: SocketAddr,
    pub(crate) login: Login,
    conninfo: Conninfo,
}

impl Reached {
    /// A session that nobody counts.
    pub(crate) fn session(&self) -> Result<Session, LabError> {
        Session::open(config(self.address, &self.login)?)
    }
}

/// Finds the way to a database, and who logs in there.
pub(crate) fn reach(url: &str) -> Result<Reached, LabError> {
    let refused = |error: &dyn std::fmt::Display| LabError::Database(format!("--database: {error}"));
    let conninfo = parse(url, &Environment::of_this_process())?;
    let gateway = Gateway::start(GatewayConfig { threads: Some(1), ..GatewayConfig::new(conninfo.clone()) })?;
    let ListenAddress::Tcp(address) = *gateway.address() else {
        return Err(LabError::Database("the gateway listens at no port".to_owned()));
    };
    let mut password = None;
    for host in &conninfo.hosts {
        password = passfile::password_for(&conninfo, host).map_err(|error| refused(&error))?;
        if password.is_some() {
            break;
        }
    }
    let user = conninfo.role().map_err(|error| refused(&error))?.to_owned();
    let database = conninfo.dbname.clone().unwrap_or_else(|| user.clone());
    let login = Login { user, database, password, schema: None };
    Ok(Reached { gateway, address, login, conninfo })
}

fn config(address: SocketAddr, login: &Login) -> Result<Config, LabError> {
    let mut conninfo = parse(&plain(address, &login.user, &login.database), &Environment::default())?;
    conninfo.password.clone_from(&login.password);
    let mut config = Config::of(conninfo).map_err(|error| LabError::Database(error.to_string()))?;
    let schema = login.schema.iter().map(|schema| ("search_path".to_owned(), schema.clone()));
    config.settings.extend(schema);
    Ok(config)
}

fn plain(address: SocketAddr, user: &str, database: &str) -> String {
    let (host, port, ssl) = (address.ip(), address.port(), SslMode::Disable);
    format!("host={host} port={port} user={user} dbname={database} sslmode={ssl}")
}

fn parse(text: &str, environment: &Environment) -> Result<Conninfo, LabError> {
    let parsed = Conninfo::parse(text, environment).and_then(Conninfo::for_postgres);
    parsed.map_err(|error| LabError::Database(error.to_string()))
}
