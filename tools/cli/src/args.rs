use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use onetrip_gateway::{GatewayConfig, IsolationLevel, ListenAddress, LobPrefetch, Remedies, Verify};
use onetrip_link::{BitsPerSecond, ByteSize, LinkSpec};
use onetrip_target::tls::{TlsAcceptor, TlsError};

#[cfg(feature = "capture")]
use crate::analyze::AnalyzeOptions;
#[cfg(feature = "capture")]
use crate::capture::CaptureOptions;
use crate::demo::DemoOptions;
use crate::distance::{DistanceOptions, ForecastOptions};
use crate::examples;
use crate::explain::ExplainOptions;
use crate::files::Files;
use crate::judge::JudgeOptions;
#[cfg(feature = "lab")]
use crate::lab::LabOptions;
#[cfg(not(all(feature = "capture", feature = "embed", feature = "lab")))]
use crate::lacking::Lacking;
use crate::link::FarEnd;
use crate::output::OutputOptions;
use crate::pages::{CompletionsOptions, ManOptions};
use crate::ready::ReadyOptions;
use crate::values::{duration, socket_address};

/// Counts the round trips between a program and its database, and says which are avoidable and why.
#[derive(Debug, Parser)]
#[command(name = "onetrip", version, max_term_width = 100, before_help = examples::ALL)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program and report the round trips that it spends on its database
    Run(RunOptions),
    /// Stand in front of a PostgreSQL, MySQL or MariaDB server; report on Ctrl-C
    Gateway(GatewayOptions),
    /// Report on packet captures made by tcpdump
    #[cfg(feature = "capture")]
    Analyze(AnalyzeOptions),
    /// Not in this build
    #[cfg(not(feature = "capture"))]
    #[command(hide = true, disable_help_flag = true)]
    Analyze(Lacking),
    /// Report on what passes an interface now, by tcpdump
    #[cfg(feature = "capture")]
    Capture(CaptureOptions),
    /// Not in this build
    #[cfg(not(feature = "capture"))]
    #[command(hide = true, disable_help_flag = true)]
    Capture(Lacking),
    /// Print the report on a trace
    Report(ReportOptions),
    /// Forecast the time of a traced run at other distances
    Forecast(ForecastOptions),
    /// Explain a finding: meaning, proof, examples, fixes
    Explain(ExplainOptions),
    /// Export a trace's exchanges for other tools
    Export(ExportOptions),
    /// Serve an SQLite file to PostgreSQL's drivers
    #[cfg(feature = "embed")]
    Serve(ServeCommandOptions),
    /// Not in this build
    #[cfg(not(feature = "embed"))]
    #[command(hide = true, disable_help_flag = true)]
    Serve(Lacking),
    /// Run one loop of statements at three distances, with a report
    Demo(DemoOptions),
    /// Measure each round trip of opening a session, then of SELECT 1
    Ping(PingOptions),
    /// Check whether a gateway or a database server answers: exit code 0 if it does
    Ready(ReadyOptions),
    /// Simulate a network path in front of any TCP service
    Link(LinkCommandOptions),
    /// Measure workloads and drivers near and far, and draw charts
    #[cfg(feature = "lab")]
    Lab(LabOptions),
    /// Not in this build
    #[cfg(not(feature = "lab"))]
    #[command(hide = true, disable_help_flag = true)]
    Lab(Lacking),
    /// Print completions for a shell
    Completions(CompletionsOptions),
    /// Write the manual's pages into a directory
    #[command(hide = true)]
    Man(ManOptions),
    /// Print every text of the help, for the linter of prose
    #[command(hide = true)]
    Texts,
    /// Print the reference of all commands as Markdown
    #[command(hide = true)]
    Reference,
}

// A paragraph is one line, which clap wraps to the terminal's width.
const RUN_HELP: &str = "\
onetrip starts a gateway and points the program at it by its environment. It changes the PG* variables of libpq, \
DATABASE_URL, each variable named by --env, and every other variable that names the database's host and port. These can \
be URLs, JDBC and R2DBC URLs, DSNs, .NET connection strings and HOST:PORT. Pairs such as DB_HOST and DB_PORT, and URLs \
inside JAVA_TOOL_OPTIONS or JSON, also count. onetrip prints what it changed.

Without --upstream, the database is that of --env, the PG* variables or DATABASE_URL, or of other variables if all \
that name a PostgreSQL server name the same one. Otherwise it is that of variables that name a MySQL or MariaDB server. \
If they differ, nothing is started. The gateway requires as much TLS of the database as these variables do, unless --upstream says how \
much. MySQL and MariaDB are only watched, and not inside TLS that a client speaks with them itself.

The report goes to standard error, or to the file of --output. The exit code is the program's, if that is not 0. \
It is 90 if a check failed (a budget was exceeded, or --fail-on found something). It is 91 if the run could not be judged: no session was \
opened, a scope did not occur, records are missing, or the program spent something where nobody counted. 125 is a failure of onetrip itself.";

#[derive(Debug, Args)]
#[command(before_help = examples::RUN, after_help = RUN_HELP)]
pub(crate) struct RunOptions {
    /// The database, as URL, keyword DSN or HOST:PORT
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// Also point the URL, DSN or connection string in this environment variable at the gateway
    #[arg(long = "env", value_name = "NAME")]
    pub(crate) url_variables: Vec<String>,
    /// Redirect connections to the database's address to the gateway, whatever the program's settings say
    ///
    /// For addresses in code or in a file. Holds for the program and its children. If nothing names a database, the
    /// first connection to port 5432, 6432 or 3306, or to the Unix socket of a PostgreSQL server, is taken.
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    pub(crate) redirect: Option<RedirectWay>,
    /// Where the gateway listens [default: a free port of 127.0.0.1]
    #[arg(long, value_name = "HOST:PORT", value_parser = socket_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Whether findings name the lines of the program that sent their statements
    ///
    /// In Python (psycopg2, psycopg, asyncpg), Node (pg), Ruby (pg) and on the JVM (JDBC). PYTHONPATH, NODE_OPTIONS or
    /// RUBYOPT name a module that wraps the driver's calls; the JVM gets an agent. Nothing changes between client and database.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = CallSitesWhen::Auto)]
    pub(crate) call_sites: CallSitesWhen,
    #[command(flatten)]
    pub(crate) tls: TlsOptions,
    #[command(flatten)]
    pub(crate) watch: WatchOptions,
    #[command(flatten)]
    pub(crate) judge: JudgeOptions,
    /// Judge a run although connections were still open after the program had ended
    #[arg(long, help_heading = "Judging")]
    pub(crate) allow_background: bool,
    /// Judge a run although the program was also connected to the database past the gateway
    #[arg(long, help_heading = "Judging")]
    pub(crate) allow_bypass: bool,
    #[command(flatten)]
    pub(crate) distance: DistanceOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// When the lines of the program are found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CallSitesWhen {
    /// If the command line names Python, Node, Ruby or java, or a script that one of the first three runs
    Auto,
    /// Also if another program starts them
    On,
    /// Never
    Off,
}

/// What leads a program's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RedirectWay {
    /// seccomp if the system allows it, else preload
    Auto,
    /// A filter of system calls that asks about each connect: any program, also static binaries and Go
    Seccomp,
    /// A library that replaces the C library's connect: neither static binaries nor Go
    Preload,
}

/// TLS between the program and the gateway.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS with the program")]
pub(crate) struct TlsOptions {
    /// Offer TLS to clients with a certificate made at start. Enough for sslmode=require without a root certificate
    #[arg(long)]
    pub(crate) tls: bool,
    /// Certificate for clients, with its chain, as PEM. With the database's own, SCRAM with channel binding works
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

impl TlsOptions {
    /// Puts the files of these options into those of the command.
    pub(crate) fn files(&self, files: Files) -> Files {
        files.reads("--tls-cert", self.tls_cert.as_deref()).reads("--tls-key", self.tls_key.as_deref())
    }

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

const GATEWAY_HELP: &str = "\
SIGTERM and Ctrl-C stop it: sessions may finish for the time of --drain, then the report is printed. A second signal \
ends them at once, and a third one ends without a report. SIGHUP changes nothing.

Exit codes: 0; 90 if a check failed; 91 when the run could not be judged; 125 \
when onetrip itself failed.";

#[derive(Debug, Args)]
#[command(before_help = examples::GATEWAY, after_help = GATEWAY_HELP)]
pub(crate) struct GatewayOptions {
    /// Where clients connect: HOST:PORT, or the path of a Unix socket
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6432")]
    pub(crate) listen: ListenAddress,
    /// The database, as URL, keyword DSN or HOST:PORT. sslmode and certificates are those of libpq. mysql:// only watches, and
    /// has ssl-mode and ssl-ca
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// When stopped: time for busy sessions to finish. Then they end with 57P01
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
#[command(before_help = examples::REPORT)]
pub(crate) struct ReportOptions {
    /// A trace. It may still be growing
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Bandwidth for the forecast, such as 32mbit [default: no limit]
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
#[command(before_help = examples::PING, after_help = "\
Connects directly, with the settings of libpq (PG* variables, service file, ~/.pgpass, sslmode). Logs in by trust, \
cleartext, MD5 or SCRAM-SHA-256. Ctrl-C reports what was measured so far.

mysql://USER@HOST/DATABASE measures a MySQL or MariaDB server: by mysql_native_password, caching_sha2_password or, \
under TLS, mysql_clear_password. Its password may stand in MYSQL_PWD. ssl-mode=DISABLED, PREFERRED, REQUIRED, \
VERIFY_CA or VERIFY_IDENTITY in the URL says how much TLS (docs/mysql.md).")]
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
#[command(before_help = examples::LINK, after_help = "\
A connection to the near end reaches the far end over the simulated path. No byte arrives before half a round trip. A \
new connection's first answer takes two round trips. Ctrl-C reports how well the times were kept.")]
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
    /// Random extra time of a round trip, at most
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) jitter: Option<Duration>,
    /// Simulate TCP's congestion window [default: on]
    #[arg(long, value_name = "on|off", value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    pub(crate) tcp_window: Option<bool>,
    /// Bytes in flight in each direction before senders have to wait [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) link_buffer: Option<ByteSize>,
    /// Seed of the jitter: the same number repeats it
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
#[command(before_help = examples::SERVE)]
pub(crate) struct ServeCommandOptions {
    /// The SQLite file. Created if it does not exist
    #[arg(value_name = "FILE")]
    pub(crate) database: PathBuf,
    /// Where clients connect
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5433")]
    pub(crate) listen: SocketAddr,
    /// Only this user may log in, by SCRAM-SHA-256
    #[arg(long, value_name = "NAME", requires = "password_file")]
    pub(crate) user: Option<String>,
    /// File with the user's password in its first line
    #[arg(long, value_name = "FILE", requires = "user")]
    pub(crate) password_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(before_help = examples::EXPORT)]
pub(crate) struct ExportOptions {
    /// A trace. It may still be growing
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Format
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    pub(crate) format: ExportFormat,
    /// Write to a file instead of standard output. For Parquet: a new directory
    #[arg(long, short, value_name = "PATH", required_if_eq("format", "parquet"))]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A line of names, then a line for each exchange
    Csv,
    /// One JSON object per exchange and line
    Jsonl,
    /// Directories by day and host, with a row for each exchange. Needs a build with --features parquet
    Parquet,
}

/// How the gateway watches.
#[derive(Debug, Args)]
#[command(next_help_heading = "Watching")]
pub(crate) struct WatchOptions {
    /// Write a trace of all exchanges. It holds no values, only keyed hashes of them
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Keep values in the trace: those of parameters, and both answers where --verify finds a difference
    #[arg(long, requires = "trace")]
    pub(crate) keep_values: bool,
    /// Delay every reply by this time, so that the count of a pipelining client is exact
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0ms")]
    pub(crate) settle: Duration,
    /// Longest time a thread spins before it parks. Costs CPU; 0ms turns it off
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "100us")]
    pub(crate) spin: Duration,
    /// Threads that move bytes, at most: there are as many as are busy [default: one per core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Remove round trips without code changes: exact (results stay the same; timing and the server's log change), or none
    ///
    /// There are eight remedies in exact. Remedy begin answers BEGIN, SAVEPOINT and RELEASE at once. Remedy commit answers the
    /// end of a read-only transaction at once. Remedy loops, inside REPEATABLE READ, runs the statements of a loop before the
    /// program asks. Remedy repeats, inside REPEATABLE READ, answers a repeated read from memory. Remedy statements answers
    /// Parse and Describe of a statement that the server has described before. Remedy cursors prefetches results that are read
    /// in pieces. Remedy lobs prefetches large objects. Remedy chatter answers settings and resets of pools that change
    /// nothing. Write exact,-begin to leave one out, and none,+begin to add one. All are inactive if the database is less than
    /// 0.2 ms away.
    ///
    /// These may differ, among others. The server's log and statistics differ. now() of a transaction is up to half a trip
    /// later, and its idle-in-transaction timeout up to a trip later. Sessions outside the gateway may meet locks of readers
    /// up to half a trip after COMMIT was answered. REVOKE is effective within 2 s, and a reloaded configuration within 2 s in
    /// a snapshot. DDL that did not pass through the gateway is noticed within 60 s. The counters of plans in
    /// pg_prepared_statements differ. A cancel request waits for what was sent early, 30 s at most, and is then dropped. In rare
    /// cases a session ends with an error instead of an answer. One such case is a server that does not confirm an early
    /// COMMIT within 5 s. docs/safety.md has the whole list and the rules.
    #[arg(long, value_name = "TIER", default_value = "none", help_heading = "Remedies")]
    pub(crate) remedies: Remedies,
    /// For one in N answers from memory, also ask the server, and compare: 1/1 all, 1/100 one in a hundred
    ///
    /// The program does not wait for it. A difference is a wrong answer: the report names it, the trace holds both answers
    /// (with --keep-values), and the session gets no more answers from memory.
    #[arg(long, value_name = "1/N", help_heading = "Remedies")]
    pub(crate) verify: Option<Verify>,
    /// Bytes of a large object to prefetch: -1 nothing, 0 its length, N bytes, auto what was learned [default: auto]
    ///
    /// TABLE.COLUMN=N or SCHEMA.TABLE.COLUMN=N, with names as in the catalogue, holds for objects whose oids are in this
    /// column. Repeat the option for each column. onetrip.lob_prefetch=N in the column's comment does the same. A program sets
    /// it for a connection by SET onetrip.lob_prefetch = N or by startup options (-c onetrip.lob_prefetch=N). For a
    /// statement, it writes onetrip.lob_prefetch=N in a comment of the statement. The narrowest wins: column, statement, connection,
    /// gateway. At most 512 KiB are prefetched at once. Needs --remedies exact. Changes only timing.
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Remedies")]
    pub(crate) lob_prefetch: Vec<LobPrefetch>,
    /// Keep what was learned about loops in this file, so that the next run removes their trips from the start
    ///
    /// The file is read at the start and written at the end. It is created if it does not exist, and what other runs wrote
    /// meanwhile is kept. It says which statement takes its values from which result, by hashes of statements. It holds neither
    /// texts nor values nor answers. A wrong file cannot make an answer wrong, but the server may then run statements that
    /// nobody needs. You may delete it at any time. At most 1 MiB. Needs --remedies exact.
    #[arg(long, value_name = "FILE", help_heading = "Remedies")]
    pub(crate) learned: Option<PathBuf>,
    /// Run transactions that choose no level at repeatable-read, so that their loops can be removed
    ///
    /// This changes the program. Statements of a transaction no longer see what others commit meanwhile. Polling inside a
    /// transaction never ends. An upsert loop (UPDATE, else INSERT, else again) may never end. A read after a lock is as old as
    /// the transaction. The transaction does not see what a second connection wrote. UPDATE, DELETE, row locks and INSERT ... ON CONFLICT
    /// of a row that was changed meanwhile fail with 40001 instead of waiting. A statement that fails so ten times in a row,
    /// or runs for 10 s, is named on standard error.
    #[arg(long, value_name = "LEVEL", help_heading = "Remedies")]
    pub(crate) isolation: Option<IsolationLevel>,
    #[command(flatten)]
    pub(crate) link: LinkOptions,
}

impl WatchOptions {
    /// Puts the files of these options into those of the command.
    pub(crate) fn files(&self, files: Files) -> Files {
        files.writes("--trace", self.trace.as_deref()).writes("--learned", self.learned.as_deref())
    }

    /// Puts the options into a gateway's configuration.
    pub(crate) fn apply(&self, config: GatewayConfig) -> GatewayConfig {
        GatewayConfig {
            trace: self.trace.clone(),
            keep_values: self.keep_values,
            settle: self.settle,
            spin: self.spin,
            threads: self.threads,
            remedies: self.remedies,
            verify: self.verify,
            lobs: self.lob_prefetch.iter().cloned().collect(),
            isolation: self.isolation,
            link: self.link.spec(),
            ..config
        }
    }
}

/// Every command with all below it.
#[cfg(test)]
pub(crate) fn commands(command: &clap::Command) -> Vec<&clap::Command> {
    std::iter::once(command).chain(command.get_subcommands().flat_map(commands)).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn help_is_wrapped_by_the_terminal_alone() {
        let root = Cli::command();
        for command in commands(&root) {
            let texts = [command.get_after_help(), command.get_after_long_help()];
            for text in texts.into_iter().flatten().map(ToString::to_string) {
                for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.starts_with("  ")) {
                    let name = command.get_name();
                    assert!(!paragraph.contains('\n'), "{name} breaks a line itself: {paragraph}");
                }
            }
        }
    }
}
