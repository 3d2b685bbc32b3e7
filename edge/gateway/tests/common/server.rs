//! Real PostgreSQL servers, and gateways in front of them.

use std::io::Write;
use std::ops::Deref;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use onetrip_gateway::{Gateway, GatewayConfig, ListenAddress, Remedies};
use onetrip_link::LinkSpec;
pub(crate) use onetrip_pgserver::repository;
use onetrip_pgserver::{Address, PgServer};
use onetrip_target::{Conninfo, Environment};

use super::client::Endpoint;

/// A throw-away server.
#[derive(Debug)]
pub(crate) struct Server(PgServer);

impl Deref for Server {
    type Target = PgServer;

    fn deref(&self) -> &PgServer {
        &self.0
    }
}

impl Server {
    /// Starts one; `arguments` are those of `scripts/pgserver.py`.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self(PgServer::start(arguments))
    }

    /// PostgreSQL 15 with trust authentication and the tables of `clients/schema.sql` in the database
    /// `acts_template`; one per test binary.
    pub(crate) fn shared() -> &'static Self {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(|| Self::with_acts_template("15"))
    }

    /// PostgreSQL of a major version as [`Self::shared`] has it.
    pub(crate) fn with_acts_template(version: &str) -> Self {
        Self::with_acts_template_and(&["--version", version])
    }

    /// The same with other arguments of `scripts/pgserver.py`.
    pub(crate) fn with_acts_template_and(arguments: &[&str]) -> Self {
        let settings = ["--set", "max_connections=200", "--set", "max_prepared_transactions=5"];
        let server = Self::start(&[arguments, &["--auth", "trust"], &settings].concat());
        server.psql("postgres", "CREATE DATABASE acts_template");
        let schema =
            std::fs::read_to_string(repository().join("clients/schema.sql")).expect("the schema is there");
        server.psql("acts_template", &schema);
        server
    }

    /// Runs statements directly on the server.
    pub(crate) fn psql(&self, dbname: &str, statements: &str) -> String {
        let mut command = Command::new("psql");
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        self.direct().point(&mut command, dbname);
        command.env("PGPASSWORD", &self.at.password);
        let mut psql =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("psql is installed");
        psql.stdin.take().expect("a pipe").write_all(statements.as_bytes()).expect("psql reads");
        let output = psql.wait_with_output().expect("psql ends");
        assert!(output.status.success(), "psql failed on {statements}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Has every session of the server notice now what others have changed in the catalogue. A session notices it when it
    /// takes a lock that it does not hold, when it ends a subtransaction, or when it is behind by half of the queue of such
    /// messages (4,096 in `sinvaladt.c`). This fills the queue, from another database.
    pub(crate) fn spread_changes(&self) {
        // A program may have made transactions of the whole server read-only.
        let fill = "SET default_transaction_read_only = off; \
            DO $$BEGIN FOR n IN 1..150 LOOP EXECUTE format('CREATE TEMP TABLE fill_%s (a int)', n); END LOOP; END$$";
        self.psql("template1", fill);
        // They are woken one after the other.
        thread::sleep(Duration::from_millis(50));
    }

    /// Gives `dbname` the state of `clients/schema.sql`, whatever it held before.
    pub(crate) fn fresh_database(&self, dbname: &str) {
        let drop =
            format!("SET client_min_messages = warning;\nDROP DATABASE IF EXISTS {dbname} WITH (FORCE);");
        self.psql("postgres", &drop);
        self.psql("postgres", &format!("CREATE DATABASE {dbname} TEMPLATE acts_template"));
    }

    /// The server itself.
    pub(crate) fn direct(&self) -> Endpoint {
        Endpoint::tcp(self.at.port)
    }

    /// Settings that lead to the server, plain and by TCP.
    pub(crate) fn upstream(&self) -> Conninfo {
        let Address { user, host, port, .. } = &self.at;
        conninfo(&format!("postgres://{user}@{host}:{port}/postgres?sslmode=disable"))
    }

    /// Settings that lead to the server by another port.
    pub(crate) fn upstream_by(&self, port: u16) -> Conninfo {
        let Address { user, host, .. } = &self.at;
        conninfo(&format!("postgres://{user}@{host}:{port}/postgres?sslmode=disable"))
    }

    /// A gateway in front of the server.
    pub(crate) fn gateway(&self) -> RunningGateway {
        RunningGateway::start(config(self.upstream()))
    }

    /// A gateway with all exact remedies, so far from the server that they have something to remove.
    pub(crate) fn remedied_gateway(&self) -> RunningGateway {
        RunningGateway::start(self.remedied_config())
    }

    /// The same, where each second answer from memory is run for real as well. It is so far from the server that
    /// reading ahead pays even where a busy machine makes statements slow.
    pub(crate) fn verified_gateway(&self) -> RunningGateway {
        let verify = Some("1/2".parse().expect("it is a fraction"));
        let link = Some(LinkSpec::with_rtt(Duration::from_millis(12)));
        RunningGateway::start(GatewayConfig { verify, link, ..self.remedied_config() })
    }

    fn remedied_config(&self) -> GatewayConfig {
        let link = LinkSpec::with_rtt(Duration::from_millis(1));
        GatewayConfig { remedies: Remedies::exact(), link: Some(link), ..config(self.upstream()) }
    }
}

/// Reads connection text in an empty environment.
pub(crate) fn conninfo(text: &str) -> Conninfo {
    Conninfo::parse(text, &Environment::default()).expect("the settings are good")
}

/// A gateway's settings for tests: the machine is shared, so no spinning.
pub(crate) fn config(upstream: Conninfo) -> GatewayConfig {
    // How much is removed must not depend on the machine's load.
    GatewayConfig {
        spin: Duration::ZERO,
        question_burst: Duration::from_secs(60),
        ..GatewayConfig::new(upstream)
    }
}

/// A gateway that is stopped at the end of the test.
#[derive(Debug)]
pub(crate) struct RunningGateway {
    gateway: Option<Gateway>,
}

impl RunningGateway {
    pub(crate) fn start(config: GatewayConfig) -> Self {
        Self { gateway: Some(Gateway::start(config).expect("the gateway starts")) }
    }

    /// Where clients connect.
    pub(crate) fn endpoint(&self) -> Endpoint {
        endpoint_of(self.gateway.as_ref().expect("it runs"))
    }

    pub(crate) fn stop(mut self) -> onetrip_gateway::Outcome {
        self.gateway.take().expect("it runs").stop()
    }
}

impl Drop for RunningGateway {
    fn drop(&mut self) {
        if let Some(gateway) = self.gateway.take() {
            gateway.stop();
        }
    }
}

/// Where a gateway listens.
pub(crate) fn endpoint_of(gateway: &Gateway) -> Endpoint {
    match gateway.address() {
        ListenAddress::Tcp(address) => Endpoint::Tcp(*address),
        ListenAddress::Unix(path) => Endpoint::Unix(path.clone()),
    }
}
