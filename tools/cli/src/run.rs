use std::ffi::OsString;
use std::future::pending;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use onetrip_gateway::{Gateway, GatewayConfig, Leader, ListenAddress};
use onetrip_ledger::judge::Reason;
use onetrip_report::{Redirected, RunInfo};
use onetrip_target::intercept::{InterceptError, Lead, is_available};
use onetrip_target::launch::{
    ChildExit, Gateways, LaunchError, Preload, Program, Redirect, RedirectOptions, Source, Upstream,
    lead_to_first, lead_to_known, redirect,
};
use onetrip_target::{Conninfo, Environment, Host, Protocol, SslMode};
use tempfile::TempDir;

use crate::args::{RedirectWay, RunOptions};
use crate::call_sites::{self, CallSites, Calls};
use crate::control::{self, Control};
use crate::descriptors::Descriptors;
use crate::exit::ExitCode;
use crate::gateway::{check_options, check_upstream, say_endless};
use crate::judge::{Judge, Missing};
use crate::learned::Learned;
use crate::link;
use crate::masked::masked;
use crate::output::{Stream, Subject, write};
use crate::places::{Places, Sights, how_to_connect};
use crate::pytest::name_tests;
use crate::say::{explained, say};
use crate::stop::survive_file_limits;
use crate::trace::Written;

/// Name of the gateway's socket.
const SOCKET: &str = ".s.PGSQL.5432";
/// How long connections of the ended program may take to close, on a near path.
const OPEN_PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked whether they have.
const OPEN_LOOKED_AT_EVERY: Duration = Duration::from_millis(5);
/// Words of a command line whose names go into the trace: `poetry run python app.py`.
const NAMED_WORDS: usize = 4;

/// `onetrip run`.
pub(crate) fn run(options: &RunOptions) -> Result<ExitCode> {
    let files = options.tls.files(options.watch.files(options.judge.files()));
    options.output.check(files)?;
    let judge = Judge::new(&options.judge)?;
    let mut environment = Environment::of_this_process();
    environment.command.clone_from(&options.program);
    let upstream =
        Upstream::find_for_program(options.upstream.as_deref(), &options.url_variables, &environment)?;
    check_upstream(&upstream.conninfo)?;
    check_options(&upstream.conninfo, &options.watch, &options.tls)?;
    let sockets = options.redirect.map(|_| tempfile::Builder::new().prefix("onetrip-").tempdir());
    let sockets = sockets.transpose().context("no directory for a socket")?;
    let config = configure(options, &upstream.conninfo, sockets.as_ref().map(TempDir::path))?;
    let learned = Learned::open(&options.watch)?;
    let also = config.also_listen.clone();
    let link = config.link.clone();
    let is_postgres = upstream.conninfo.protocol == Protocol::Postgres;
    let has_own_certificate = is_postgres && config.client_tls.is_some() && options.tls.tls_cert.is_none();
    let descriptors = Descriptors::raise();
    let gateway = Gateway::start(config)?;
    let written = Written::begun(options.watch.trace.as_deref());
    let calls = Arc::new(Mutex::new(Calls::of(&gateway)));
    let common = gateway.common();
    learned.teach(&common);
    let ListenAddress::Tcp(address) = *gateway.address() else { bail!("the gateway listens at no port") };
    let address = reachable(address);
    let redirect_options = RedirectOptions {
        gateway: address,
        url_variables: &options.url_variables,
        sslmode: SslMode::Disable,
    };
    // Nothing is pointed anywhere before it is known where the database is.
    let is_open = also.is_some() && upstream.source == Source::Defaults;
    let mut redirect = match is_open {
        true => Redirect::default(),
        false => redirect(&environment, &upstream, &redirect_options)?,
    };
    if has_own_certificate {
        redirect.bind_no_channel(&environment);
    }
    if upstream.source == Source::Defaults && !is_open {
        say("nothing names a database, so libpq's default is used; --upstream names another");
    }
    announce(&redirect, (!is_open).then(|| upstream.conninfo.address()).as_deref(), &address.to_string());
    link::announce(link.as_ref());
    let gateways = also.map(|unix| Gateways { tcp: address, unix });
    let way = Way::choose(options.redirect)?;
    let Led { lead, preload } = match gateways {
        Some(gateways) if is_open => lead_to_any(way, gateways, &gateway, &environment)?,
        Some(gateways) => lead_to(way, gateways, &upstream.conninfo, &environment, &mut redirect)?,
        None => Led::default(),
    };
    let ended = supervise(options, &upstream.conninfo, &mut redirect, &gateway, (lead, &calls, descriptors))?;
    let patience = OPEN_PATIENCE + 4 * link.as_ref().map_or(Duration::ZERO, |link| link.rtt);
    let uncounted = ended.uncounted(options, &upstream.conninfo, open_after(&gateway, patience));
    let outcome = gateway.stop();
    say_endless(&common);
    learned.keep(&common);
    link::tell(&outcome.links, link.as_ref());
    let mut analysis = outcome.analyzer.finish(&judge.mutes);
    calls.lock().unwrap_or_else(PoisonError::into_inner).locate(&mut analysis.summary.findings);
    let database = (!is_open).then_some(&upstream.conninfo);
    let how = how_to_connect(&redirect, &address.to_string(), &ended.places, database);
    let preloaded = preload.map(|_| Redirected { by: "preload", connections: None });
    let trace_error = outcome.trace_error.or_else(|| written.loss());
    let run = ended.describe(options, &redirect, preloaded, trace_error);
    let subject = Subject {
        run: Some(&run),
        how_to_connect: &how,
        distance: &options.distance,
        bandwidth: link.and_then(|link| link.bandwidth),
        network: None,
        sides: None,
        missing: Missing { uncounted, mixed_scopes: ended.mixed_tests.clone(), ..Missing::default() },
        has_failed: !ended.exit.is_success(),
    };
    let judged = write(analysis, subject, &judge, &options.output, Stream::Error);
    if ended.exit.is_success() {
        return judged;
    }
    if let Err(error) = judged {
        say(explained(&error)); // the program's own failure goes before ours
    }
    Ok(ExitCode::from(ended.exit.code()))
}

/// What the gateway is told; with a directory, it listens at a socket in there, too.
fn configure(options: &RunOptions, upstream: &Conninfo, sockets: Option<&Path>) -> Result<GatewayConfig> {
    let config =
        GatewayConfig { command: names_of(&options.program), ..GatewayConfig::new(upstream.clone()) };
    let mut config = options.watch.apply(config);
    if let Some(address) = options.listen {
        config.listen = ListenAddress::Tcp(address);
    }
    // A program that is led here whatever its settings say may insist on TLS.
    config.client_tls = options.tls.acceptor(options.redirect.is_some())?;
    config.also_listen = sockets.map(|directory| directory.join(SOCKET));
    Ok(config)
}

/// How the program ended.
struct Ended {
    exit: ChildExit,
    /// Its runner named tests.
    has_tests: bool,
    /// Several runners named tests at the same time.
    mixed_tests: Option<Reason>,
    places: Places,
}

impl Ended {
    /// What the program did where nobody counted, each said and none of it allowed. `open` connections outlive it.
    fn uncounted(&self, options: &RunOptions, database: &Conninfo, open: u64) -> Vec<Reason> {
        let mut uncounted = Vec::new();
        if open > 0 {
            let were =
                if open == 1 { "1 connection was".to_owned() } else { format!("{open} connections were") };
            let reason = format!("{were} still open after the program had ended");
            say(format_args!(
                "{reason}: a process that it left goes on, and the gateway now ends what it does there"
            ));
            if !options.allow_background {
                uncounted.push(Reason::unless("--allow-background", reason));
            }
        }
        if let Some(place) = self.places.past(database) {
            let reason = format!("the program was also connected to {place}, the database, past the gateway");
            say(format_args!(
                "{reason}: its address stands in a file, in its code or among its arguments. Add --redirect, which \
                 leads there whatever its settings say"
            ));
            if !options.allow_bypass {
                uncounted.push(Reason::unless("--allow-bypass", reason));
            }
        }
        uncounted
    }

    /// The run, for its report.
    fn describe(
        &self,
        options: &RunOptions,
        redirect: &Redirect,
        preloaded: Option<Redirected>,
        trace_error: Option<String>,
    ) -> RunInfo {
        let (exit_code, signal) = match self.exit {
            ChildExit::Code(code) => (Some(code), None),
            ChildExit::Signal(signal) => (None, Some(signal)),
        };
        RunInfo {
            command: masked(&options.program),
            exit_code,
            signal,
            trace: options.watch.trace.as_ref().map(|path| path.display().to_string()),
            trace_error,
            has_tests: self.has_tests,
            redirected: self.places.redirected().or(preloaded),
            pointed: redirect.notes.iter().map(|change| change.variable.clone()).collect(),
        }
    }
}

/// Connections that are left once those of ended processes are closed.
fn open_after(gateway: &Gateway, patience: Duration) -> u64 {
    let begun = Instant::now();
    while gateway.open_connections() > 0 && begun.elapsed() < patience {
        std::thread::sleep(OPEN_LOOKED_AT_EVERY);
    }
    gateway.open_connections()
}

/// Where the program reaches a gateway that may listen at every address of this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Names of the program and its first arguments: enough to tell a language, too little to hold a secret.
fn names_of(program: &[OsString]) -> String {
    let words = masked(program).into_iter().take(NAMED_WORDS);
    let is_name = |word: &str| !word.contains(['=', ':', '@']);
    let names =
        words.filter(|word| is_name(word)).map(|word| word.rsplit('/').next().unwrap_or_default().to_owned());
    names.collect::<Vec<_>>().join(" ")
}

/// What leads a program's connections, if anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Nothing,
    Seccomp,
    Preload,
}

impl Way {
    fn choose(wanted: Option<RedirectWay>) -> Result<Self> {
        Ok(match wanted {
            None => Self::Nothing,
            Some(RedirectWay::Preload) => Self::Preload,
            Some(_) if is_available() => Self::Seccomp,
            Some(RedirectWay::Seccomp) => return Err(LaunchError::from(InterceptError::Unavailable).into()),
            Some(RedirectWay::Auto) => {
                say("seccomp cannot be used here; a preload library leads all but static programs");
                Self::Preload
            }
        })
    }
}

/// What leads connections.
#[derive(Default)]
struct Led {
    lead: Option<Lead>,
    /// It is there as long as the program.
    preload: Option<Preload>,
}

/// Leads what goes to the database to the gateway.
fn lead_to(
    way: Way,
    gateways: Gateways,
    database: &Conninfo,
    environment: &Environment,
    redirect: &mut Redirect,
) -> Result<Led> {
    Ok(match way {
        Way::Nothing => Led::default(),
        Way::Seccomp => Led { lead: Some(lead_to_known(database, gateways)), preload: None },
        Way::Preload => {
            let loaded = Preload::new(database, &gateways).context("no place for a library")?;
            redirect.set.extend(loaded.variables(environment));
            Led { lead: None, preload: Some(loaded) }
        }
    })
}

/// Leads the first connection to what looks like a database to the gateway, and then all that go there.
fn lead_to_any(way: Way, gateways: Gateways, gateway: &Gateway, environment: &Environment) -> Result<Led> {
    match way {
        Way::Nothing => Ok(Led::default()),
        Way::Seccomp => {
            let lead = lead_to_first(gateways, taken(gateway.leader(), environment.clone()));
            Ok(Led { lead: Some(lead), preload: None })
        }
        Way::Preload => {
            bail!("the preload library needs the address of the database; name it with --upstream")
        }
    }
}

/// Makes the first server that a program connects to the gateway's.
fn taken(leader: Leader, environment: Environment) -> impl FnOnce(Host) -> bool + Send + 'static {
    move |host| {
        let address = host.to_string();
        let led = match Conninfo::of_host(host, &environment) {
            Ok(upstream) => leader.lead_to(upstream).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match &led {
            Ok(()) => say(format_args!("database at {address}, the first that the program connects to")),
            Err(error) => say(format_args!("{address} is left alone: {error}")),
        }
        led.is_ok()
    }
}

/// Says what the program will see differently.
fn announce(redirect: &Redirect, upstream: Option<&str>, gateway: &str) {
    match upstream {
        Some(upstream) => say(format_args!("gateway at {gateway}, database at {upstream}")),
        None => {
            say(format_args!("gateway at {gateway}, before the first database that the program connects to"));
        }
    }
    redirect.notes.iter().for_each(say);
    if !redirect.arguments.is_empty() {
        let arguments: Vec<_> = redirect.arguments.iter().map(|word| word.to_string_lossy()).collect();
        say(format_args!("the program gets these arguments, too: {}", arguments.join(" ")));
    }
    redirect.untouched.iter().for_each(say);
}

/// Runs the program to its end, with our signals passed on.
fn supervise(
    options: &RunOptions,
    database: &Conninfo,
    redirect: &mut Redirect,
    gateway: &Gateway,
    (lead, calls, descriptors): (Option<Lead>, &Arc<Mutex<Calls>>, Descriptors),
) -> Result<Ended> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        survive_file_limits();
        let control = Control::listen(gateway.common());
        let mut call_sites = None;
        let mut has_plugin = false;
        let mut command = options.program.clone();
        match &control {
            Ok(control) => {
                redirect.set.push((control::VARIABLE.to_owned(), control.path()));
                match name_tests(&options.program, control.directory(), redirect) {
                    Ok(change) => {
                        has_plugin = change.is_some();
                        change.into_iter().for_each(say);
                    }
                    Err(error) => say(format_args!("tests cannot be counted one by one: {error}")),
                }
                if call_sites::are_wanted(options.call_sites, &options.program) {
                    let directory = control.directory();
                    call_sites = hear_lines(options, directory, (gateway, calls), &mut command, redirect);
                }
            }
            Err(error) => say(format_args!("tests cannot ask for their counts: {error:#}")),
        }
        let serving = async {
            match &control {
                Ok(control) => control.serve().await,
                Err(_) => pending().await,
            }
        };
        let hearing = async {
            match &call_sites {
                Some(call_sites) => call_sites.serve().await,
                None => pending().await,
            }
        };
        tokio::pin!(hearing);
        let is_led = lead.is_some();
        let mut sights = Sights::new(database, is_led);
        let (mut program, interceptor) = descriptors.start(|| match lead {
            None => Program::spawn(&command, redirect).map(|program| (program, None)),
            Some(lead) => Program::spawn_led(&command, redirect, lead)
                .map(|(program, interceptor)| (program, Some(interceptor))),
        })?;
        let id = program.id();
        let exit = tokio::select! {
            exit = program.wait() => exit.context("cannot tell how the program ended"),
            () = serving => bail!("nobody listens for tests any more"),
            () = &mut hearing => bail!("nobody listens for call sites any more"),
            () = sights.look(id.filter(|_| !is_led), gateway) => bail!("nobody waits for the program any more"),
        };
        let places = match interceptor {
            Some(interceptor) => Places::Led(interceptor.stop()),
            None => Places::Seen(sights.at_the_end(gateway)),
        };
        if let Some(call_sites) = &call_sites {
            tokio::select! {
                () = call_sites.drain() => {}
                () = &mut hearing => {}
            }
        }
        let has_tests = control.as_ref().is_ok_and(Control::has_tests);
        let mixed_tests = control.as_ref().ok().and_then(Control::mixed_tests);
        if let Ok(control) = control {
            control.close(has_plugin || call_sites.is_some());
        }
        Ok(Ended { exit: exit?, has_tests, mixed_tests, places })
    })
}

/// Has runtimes tell the lines of the program, as far as they can.
fn hear_lines(
    options: &RunOptions,
    directory: &Path,
    (gateway, calls): (&Gateway, &Arc<Mutex<Calls>>),
    command: &mut Vec<OsString>,
    redirect: &mut Redirect,
) -> Option<CallSites> {
    let listening = match CallSites::listen(directory, Arc::clone(calls), redirect) {
        Ok(listening) => listening,
        Err(error) => {
            say(format_args!("lines of the program are not known: {error:#}"));
            return None;
        }
    };
    let port = match gateway.address() {
        ListenAddress::Tcp(address) => address.port(),
        ListenAddress::Unix(_) => 0,
    };
    if let Err(error) = call_sites::load_agent(options.call_sites, directory, port, command, redirect) {
        say(format_args!("lines of Java programs are not known: {error}"));
    }
    Some(listening)
}
