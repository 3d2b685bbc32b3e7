use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use onetrip_gateway::{GatewayConfig, IsolationLevel, ListenAddress, LobPrefetch, Remedies, Verify};
use onetrip_ledger::Code;
use onetrip_ledger::judge::{Increase, Limit};
use onetrip_link::{BitsPerSecond, ByteSize, HumanDuration, LinkSpec};
use onetrip_target::tls::{TlsAcceptor, TlsError};

#[cfg(feature = "capture")]
use crate::analyze::AnalyzeOptions;
use crate::demo::DemoOptions;
use crate::distance::{DistanceOptions, ForecastOptions};
use crate::explain::ExplainOptions;
#[cfg(feature = "lab")]
use crate::lab::LabOptions;
#[cfg(not(all(feature = "capture", feature = "embed", feature = "lab")))]
use crate::lacking::Lacking;
use crate::link::FarEnd;
use crate::output::OutputOptions;
use crate::pages::{CompletionsOptions, ManOptions};
use crate::ready::ReadyOptions;

/// Counts the round trips between a program and its database, and says which of them were avoidable.
#[derive(Debug, Parser)]
#[command(name = "onetrip", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program and report the round trips that it spends on PostgreSQL
    Run(RunOptions),
    /// Stand in front of a PostgreSQL server and report when stopped by Ctrl-C
    Gateway(GatewayOptions),
    /// Report on packet captures: what tcpdump wrote, or writes
    #[cfg(feature = "capture")]
    Analyze(AnalyzeOptions),
    /// Not in this build
    #[cfg(not(feature = "capture"))]
    #[command(hide = true, disable_help_flag = true)]
    Analyze(Lacking),
    /// Report on a trace
    Report(ReportOptions),
    /// Say what a traced run will cost at another distance
    Forecast(ForecastOptions),
    /// Say what a finding means, how it is proven and what to change
    Explain(ExplainOptions),
    /// Write a trace's exchanges for other tools
    Export(ExportOptions),
    /// Serve an SQLite file to PostgreSQL's drivers
    #[cfg(feature = "embed")]
    Serve(ServeCommandOptions),
    /// Not in this build
    #[cfg(not(feature = "embed"))]
    #[command(hide = true, disable_help_flag = true)]
    Serve(Lacking),
    /// Show what a loop of statements costs from afar: a program, its database and the report on it
    Demo(DemoOptions),
    /// Measure what opening a session and each round trip to a PostgreSQL server cost
    Ping(PingOptions),
    /// Say whether a gateway or a PostgreSQL server answers: exit code 0 if so
    Ready(ReadyOptions),
    /// Put a simulated distance between two programs
    Link(LinkCommandOptions),
    /// Measure what round trips cost, and draw it: workloads with known answers and known trips
    #[cfg(feature = "lab")]
    Lab(LabOptions),
    /// Not in this build
    #[cfg(not(feature = "lab"))]
    #[command(hide = true, disable_help_flag = true)]
    Lab(Lacking),
    /// Print a shell's completions of this command
    Completions(CompletionsOptions),
    /// Write the manual's pages into a directory
    #[command(hide = true)]
    Man(ManOptions),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The program is pointed at the gateway by its environment: libpq's PG* variables, DATABASE_URL, every
variable named with --env, and all others that name the database's host and port: URLs, also those of
JDBC and R2DBC, DSNs, .NET's connection strings, HOST:PORT, pairs such as DB_HOST and DB_PORT, and
URLs inside longer values, such as JAVA_TOOL_OPTIONS or JSON. What was changed is printed.

The report goes to standard error, because standard output is the program's; --output writes it to
a file. The exit code is the program's; if that is 0, it is 90 when a budget was broken or --fail-on
found something, 91 when that could not be judged (no session was opened, a scope did not occur,
records are missing), and 125 when onetrip itself failed.

Without --upstream the database is taken from --env, the PG* variables, DATABASE_URL, or from other
variables if all that name a PostgreSQL server name the same; where they differ, nothing is started.
The gateway asks the database for as much TLS as these variables do, unless --upstream says how much.")]
pub(crate) struct RunOptions {
    /// The database, as URL, keyword DSN or HOST:PORT
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// Point the URL, DSN or connection string in this environment variable at the gateway
    #[arg(long = "env", value_name = "NAME")]
    pub(crate) url_variables: Vec<String>,
    /// Lead what the program and its children connect to at the database's address to the gateway, whatever their
    /// settings say; where nothing names a database, the first connection to port 5432 or 6432, or to a PostgreSQL
    /// server's Unix socket
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    pub(crate) redirect: Option<RedirectWay>,
    /// Where the gateway listens [default: a free port of 127.0.0.1]
    #[arg(long, value_name = "HOST:PORT", value_parser = socket_address)]
    pub(crate) listen: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) tls: TlsOptions,
    #[command(flatten)]
    pub(crate) watch: WatchOptions,
    #[command(flatten)]
    pub(crate) judge: JudgeOptions,
    #[command(flatten)]
    pub(crate) distance: DistanceOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// What leads a program's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RedirectWay {
    /// seccomp where the system allows it, else the library
    Auto,
    /// A filter of system calls that asks about each connect: any program, also static ones
    Seccomp,
    /// A library before the C library's connect: not static programs, nor Go's
    Preload,
}

/// TLS between the program and the gateway.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS with the program")]
pub(crate) struct TlsOptions {
    /// Speak TLS with clients that ask for it, with a certificate made at start: enough for sslmode=require
    #[arg(long)]
    pub(crate) tls: bool,
    /// The certificate for clients, with its chain: a PEM file. With the database's own, SCRAM with channel binding
    /// passes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's key: a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

impl TlsOptions {
    /// What clients are offered; `is_default` where TLS is offered without being asked for.
    pub(crate) fn acceptor(&self, is_default: bool) -> Result<Option<TlsAcceptor>, TlsError> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => TlsAcceptor::with_files(certificate, key).map(Some),
            _ if self.tls => TlsAcceptor::with_own_certificate().map(Some),
            _ if is_default && cfg!(feature = "tls") => TlsAcceptor::with_own_certificate().map(Some),
            _ => Ok(None),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
SIGTERM and Ctrl-C stop it: sessions get --drain for what is under way, then the report is printed;
a second signal ends at once. SIGHUP changes nothing.

Exit codes: 0, 90 when a budget was broken or --fail-on found something, 91 when that could not be
judged, 125 when onetrip itself failed.")]
pub(crate) struct GatewayOptions {
    /// Where clients connect: HOST:PORT, or the path of a Unix socket
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6432")]
    pub(crate) listen: ListenAddress,
    /// The database, as URL, keyword DSN or HOST:PORT; sslmode and certificates are libpq's
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// How long sessions may take, when the gateway is stopped, for what is under way; then they end with 57P01
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5s")]
    pub(crate) drain: Duration,
    #[command(flatten)]
    pub(crate) tls: TlsOptions,
    #[command(flatten)]
    pub(crate) watch: WatchOptions,
    #[command(flatten)]
    pub(crate) judge: JudgeOptions,
    #[command(flatten)]
    pub(crate) distance: DistanceOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ReportOptions {
    /// A trace, also one that is still being written
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Bandwidth of the paths that are forecast, such as 32mbit [default: no limit]
    #[arg(long, value_name = "RATE", help_heading = "Forecast")]
    pub(crate) bandwidth: Option<BitsPerSecond>,
    #[command(flatten)]
    pub(crate) judge: JudgeOptions,
    #[command(flatten)]
    pub(crate) distance: DistanceOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Connects directly, with libpq's settings (PG* variables, service file, ~/.pgpass, sslmode), and logs in by trust,
cleartext, MD5 or SCRAM-SHA-256. Ctrl-C reports what was measured so far.")]
pub(crate) struct PingOptions {
    /// The database, as URL, keyword DSN, HOST or HOST:PORT [default: PG* variables or DATABASE_URL]
    #[arg(value_name = "URL")]
    pub(crate) target: Option<String>,
    /// How many times to ask SELECT 1
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(1..=PING_COUNT_MAX))]
    pub(crate) count: u32,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = PingFormat::Text)]
    pub(crate) format: PingFormat,
}

/// Most trips of one ping; their times are kept.
const PING_COUNT_MAX: i64 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PingFormat {
    /// For people
    Text,
    /// One object
    Json,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Connections to the near end reach the far end as if it were as far away as the options say: nothing
arrives before half a round trip, and a new connection's first answer takes two. Ctrl-C reports how well
the times were kept.")]
pub(crate) struct LinkCommandOptions {
    /// Near end of the link, where clients connect
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0", value_parser = socket_address)]
    pub(crate) listen: SocketAddr,
    /// Far end of the link: HOST:PORT, or the path of a unix socket
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) to: FarEnd,
    #[command(flatten)]
    pub(crate) link: LinkOptions,
}

/// A distance that is not there.
#[derive(Debug, Args)]
#[command(next_help_heading = "Simulated link")]
pub(crate) struct LinkOptions {
    /// Round-trip time, such as 12.9ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) rtt: Option<Duration>,
    /// Bandwidth that all connections of one direction share, such as 32mbit [default: no limit]
    #[arg(long, value_name = "RATE")]
    pub(crate) bandwidth: Option<BitsPerSecond>,
    /// A round trip takes up to this much longer, at random
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) jitter: Option<Duration>,
    /// Whether TCP's congestion window holds back what exceeds it [default: on]
    #[arg(long, value_name = "on|off", value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    pub(crate) tcp_window: Option<bool>,
    /// Bytes that the link holds in each direction before senders must wait [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) link_buffer: Option<ByteSize>,
    /// Repeats the jitter of an earlier run with this number
    #[arg(long, value_name = "N", requires = "jitter")]
    pub(crate) seed: Option<u64>,
}

impl LinkOptions {
    /// The link that the options describe; `None` where there is none of them.
    pub(crate) fn spec(&self) -> Option<LinkSpec> {
        let default = LinkSpec::default();
        let is_given = self.rtt.is_some()
            || self.bandwidth.is_some()
            || self.jitter.is_some()
            || self.tcp_window.is_some()
            || self.link_buffer.is_some();
        is_given.then(|| LinkSpec {
            rtt: self.rtt.unwrap_or(default.rtt),
            bandwidth: self.bandwidth,
            jitter: self.jitter.unwrap_or(default.jitter),
            tcp_window: self.tcp_window.unwrap_or(default.tcp_window),
            buffer: self.link_buffer.map_or(default.buffer, Into::into),
            seed: self.seed.unwrap_or(default.seed),
        })
    }
}

#[cfg(feature = "embed")]
#[derive(Debug, Args)]
pub(crate) struct ServeCommandOptions {
    /// The file; made if it is not there
    #[arg(value_name = "FILE")]
    pub(crate) database: PathBuf,
    /// Where clients connect
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5433")]
    pub(crate) listen: SocketAddr,
    /// Let in this user only, by SCRAM-SHA-256
    #[arg(long, value_name = "NAME", requires = "password_file")]
    pub(crate) user: Option<String>,
    /// Its first line is the user's password
    #[arg(long, value_name = "FILE", requires = "user")]
    pub(crate) password_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// A trace, also one that is still being written
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Form of the export; Parquet needs a build with --features parquet
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    pub(crate) format: ExportFormat,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One JSON object per exchange and line
    Jsonl,
    /// One row per exchange
    #[cfg(feature = "parquet")]
    Parquet,
}

/// How the gateway watches.
#[derive(Debug, Args)]
#[command(next_help_heading = "Watching")]
pub(crate) struct WatchOptions {
    /// Write a trace of all exchanges; values are kept as keyed hashes only
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Keep parameters' values in the trace
    #[arg(long, requires = "trace")]
    pub(crate) keep_values: bool,
    /// Hold every reply for this long, so that the count of a pipelining client is exact
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0ms")]
    pub(crate) settle: Duration,
    /// Longest spin before a thread parks; 0ms for none. It costs CPU: turn it off on a busy machine
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "100us")]
    pub(crate) spin: Duration,
    /// Threads that move bytes [default: one per core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Take round trips out of the program: exact (a program cannot tell but by time; docs/safety.md), or none
    ///
    /// Of exact there are: begin (a BEGIN, SAVEPOINT or RELEASE is answered at once), commit (so is the end of a
    /// transaction that only read), loops (inside REPEATABLE READ, statements that a loop will send are run ahead),
    /// statements (so is the Parse and Describe of a statement that the server has answered of late), cursors (a result
    /// that is read in pieces is read ahead), repeats (inside REPEATABLE READ, a read that was answered before is
    /// answered by that), lobs (a large object is read ahead when it is opened) and chatter (settings and resets of
    /// pools that change nothing are answered at once). They rest where the database is less than 0.2 ms away. Leave
    /// one out by exact,-begin.
    /// What may differ, and nothing else: the server's log and statistics; now() of a transaction (up to half a trip
    /// later); its idle-in-transaction timeout (up to a trip later); locks of readers, which sessions outside of the
    /// gateway may meet up to half a trip after a COMMIT was answered; a REVOKE (it acts within 2 s); DDL that did not
    /// pass through the gateway (it is seen within 60 s); a configuration that is read anew (it acts within 2 s in a
    /// snapshot); the counters of plans in pg_prepared_statements; when a cancel request arrives. A session whose early
    /// COMMIT the server does not confirm within 5 s ends (docs/safety.md has the rest).
    #[arg(long, value_name = "TIER", default_value = "none", help_heading = "Remedies")]
    pub(crate) remedies: Remedies,
    /// Run one in n answers from memory for real as well, and compare: 1/1 all, 1/100 one in a hundred
    ///
    /// The program does not wait for it. A difference is a wrong answer: the report names it, the trace holds all of it
    /// (with --keep-values), and the session gets no further answers from memory.
    #[arg(long, value_name = "1/N", help_heading = "Remedies")]
    pub(crate) verify: Option<Verify>,
    /// How much of a large object is read ahead: -1 nothing, 0 its length, N bytes, auto what is learnt [default: auto]
    ///
    /// TABLE.COLUMN=N (or SCHEMA.TABLE.COLUMN=N; names as the catalogue has them) says it for the objects whose oids a
    /// column delivers; give the option once for each. So does onetrip.lob_prefetch=N in the column's comment. A program
    /// says it for a connection by SET onetrip.lob_prefetch = N or its startup options (-c onetrip.lob_prefetch=N), and
    /// for a statement by a comment of onetrip.lob_prefetch=N in it. The narrower wins: column, statement, connection,
    /// gateway. No more than 512 KiB are read ahead at once. It is of use with --remedies exact, and decides about time
    /// alone, never about what a program reads.
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Remedies")]
    pub(crate) lob_prefetch: Vec<LobPrefetch>,
    /// Keep what was learnt about loops in this file, so that the next run removes their trips from the start
    ///
    /// onetrip reads the file at the start and writes it at the end. It creates a file that does not exist, and keeps what
    /// other runs have written meanwhile. The file says which statement takes its values from which result. It holds
    /// hashes of statements, and neither texts nor values nor answers. A wrong file cannot make an answer wrong, but it
    /// makes onetrip send statements that nobody needs. You may delete the file at any time. It never exceeds 1 MiB. The
    /// option has an effect only with --remedies exact.
    #[arg(long, value_name = "FILE", help_heading = "Remedies")]
    pub(crate) learned: Option<PathBuf>,
    /// Let transactions that choose no level run at repeatable-read, so that loops can be taken out of them
    ///
    /// It is not the same program then: statements of one transaction no longer see what others commit meanwhile
    /// (polling in a transaction never ends, and no more does an upsert loop of UPDATE, else INSERT, else again; a read
    /// behind a lock is as old as the transaction; what a second connection wrote is not there), and an UPDATE, a DELETE,
    /// a row lock or an INSERT ... ON CONFLICT of a row that was changed meanwhile fails with 40001 where it went on
    /// before. What fails so ten times in a row, and a statement that runs for 10 s, is told on standard error.
    #[arg(long, value_name = "LEVEL", help_heading = "Remedies")]
    pub(crate) isolation: Option<IsolationLevel>,
    #[command(flatten)]
    pub(crate) link: LinkOptions,
}

/// What makes a run fail, and what it is compared with.
#[derive(Debug, Args)]
#[command(next_help_heading = "Judging")]
pub(crate) struct JudgeOptions {
    /// Fail above a limit: trips=200, work-trips=, connections=, statements=, or avoidable trips of a finding, OT001=0
    ///
    /// A run that cannot be judged keeps no budget: exit code 91.
    #[arg(long, value_name = "NAME=N")]
    pub(crate) budget: Vec<Limit>,
    /// Budgets of the run and of single scopes, from a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) budget_file: Option<PathBuf>,
    /// Fail if this finding is there
    #[arg(long, value_name = "CODE")]
    pub(crate) fail_on: Vec<Code>,
    /// Leave out the findings that a TOML file of [[mute]] rules names
    #[arg(long, value_name = "FILE")]
    pub(crate) mute: Option<PathBuf>,
    /// Say what got better and what got worse since an earlier run: its trace, or the report on it as JSON
    #[arg(long, value_name = "BASE")]
    pub(crate) compare: Option<PathBuf>,
    /// Fail if the run has more trips than BASE and so many more, such as 5%, or 10 trips
    #[arg(long, value_name = "N%|N", requires = "compare")]
    pub(crate) max_increase: Option<Increase>,
    /// Fail unless the run and each of its scopes have as many trips as this file says [default file: trips.lock]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "trips.lock")]
    pub(crate) snapshot: Option<PathBuf>,
    /// Write the snapshot's file anew instead
    ///
    /// With --allow-missing-scopes, what the file says of scopes that did not occur stays.
    #[arg(long, requires = "snapshot")]
    pub(crate) update: bool,
    /// Judge a run that opened no session all the same
    #[arg(long)]
    pub(crate) allow_no_connections: bool,
    /// Take a scope that did not occur for one that spent nothing
    #[arg(long)]
    pub(crate) allow_missing_scopes: bool,
    /// Judge a trace that has no end, as it is still being written or its writer was killed, by what is there
    #[arg(long)]
    pub(crate) allow_open: bool,
    /// Judge a run of which records are missing by what is there
    #[arg(long)]
    pub(crate) allow_loss: bool,
}

impl WatchOptions {
    /// Puts the options into a gateway's configuration.
    pub(crate) fn apply(&self, config: GatewayConfig) -> GatewayConfig {
        GatewayConfig {
            trace: self.trace.clone(),
            keep_values: self.keep_values,
            settle: self.settle,
            spin: self.spin,
            threads: self.threads,
            remedies: self.remedies.clone(),
            verify: self.verify,
            lobs: self.lob_prefetch.iter().cloned().collect(),
            isolation: self.isolation,
            link: self.link.spec(),
            ..config
        }
    }
}

pub(crate) fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let no_address = || "that name has no address".to_owned();
    let mut found = text.to_socket_addrs().map_err(|error| format!("{error}; write HOST:PORT"))?;
    found.next().ok_or_else(no_address)
}

/// A time with its unit, such as `12.9ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    text.parse::<HumanDuration>().map(Into::into).map_err(|error| error.to_string())
}
