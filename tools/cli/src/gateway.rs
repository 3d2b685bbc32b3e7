use std::time::Duration;

use anyhow::{Result, bail};
use onetrip_gateway::{Common, Gateway, GatewayConfig, ListenAddress};
use onetrip_report::RunInfo;
use onetrip_target::launch::{Source, Upstream};
use onetrip_target::{Conninfo, Environment, Protocol};

use crate::args::{GatewayOptions, TlsOptions, WatchOptions};
use crate::descriptors::Descriptors;
use crate::exit::ExitCode;
use crate::judge::{Judge, Missing};
use crate::learned::Learned;
use crate::output::{Stream, Subject, write};
use crate::say::{self, say};
use crate::trace::Written;
use crate::{link, memory, stop};

/// `onetrip gateway`.
pub(crate) fn gateway(options: &GatewayOptions) -> Result<ExitCode> {
    memory::keep_small();
    let files = options.tls.files(options.watch.files(options.judge.files()));
    options.output.check(files)?;
    let judge = Judge::new(&options.judge)?;
    let environment = Environment::of_this_process();
    let upstream = Upstream::find(options.upstream.as_deref(), &[], &environment)?;
    check_upstream(&upstream.conninfo)?;
    check_options(&upstream.conninfo, &options.watch, &options.tls)?;
    let client_tls = options.tls.acceptor(false)?;
    warn(options, &upstream, client_tls.is_some());
    let upstream = upstream.conninfo;
    let upstream_address = upstream.address();
    let config = GatewayConfig { listen: options.listen.clone(), ..GatewayConfig::new(upstream) };
    let config = GatewayConfig { client_tls, ..options.watch.apply(config) };
    let link = config.link.clone();
    let learned = Learned::open(&options.watch)?;
    let mut signals = stop::Waiter::new()?;
    signals.survive_file_limits();
    Descriptors::raise();
    let gateway = Gateway::start(config)?;
    let written = Written::begun(options.watch.trace.as_deref());
    say::wait_for_nobody();
    let common = gateway.common();
    learned.teach(&common);
    let address = gateway.address().to_string();
    say(format_args!("listening at {address}, database at {upstream_address}; Ctrl-C stops and reports"));
    link::announce(link.as_ref());
    signals.wait_through_hangups(|| say("SIGHUP: there is nothing to read again; SIGTERM stops"))?;
    let is_urgent = drain(&gateway, options.drain, &mut signals);
    signals.exit_on_signal(ExitCode::FAILED.code(), !is_urgent);
    let outcome = if is_urgent { gateway.stop_at_once() } else { gateway.stop() };
    learned.keep(&common);
    link::tell(&outcome.links, link.as_ref());
    say_endless(&common);
    let analysis = outcome.analyzer.finish(&judge.mutes);
    let how = format!("Point the program at {address}, or run it with: onetrip run PROGRAM");
    let trace = options.watch.trace.as_ref().map(|path| path.display().to_string());
    let trace_error = outcome.trace_error.or_else(|| written.loss());
    let run = RunInfo { trace, trace_error, ..RunInfo::default() };
    let subject = Subject {
        run: Some(&run),
        how_to_connect: &how,
        distance: &options.distance,
        bandwidth: link.and_then(|link| link.bandwidth),
        network: None,
        sides: None,
        missing: Missing::default(),
        has_failed: false,
    };
    let written = write(analysis, subject, &judge, &options.output, Stream::Output);
    onetrip_gateway::wait_until_told();
    written
}

/// Lets connections end what is under way. Returns whether somebody was in a hurry.
fn drain(gateway: &Gateway, limit: Duration, signals: &mut stop::Waiter) -> bool {
    gateway.drain();
    if signals.wait_until(ENDING_SOON, || gateway.open_connections() == 0) {
        return true;
    }
    let open = gateway.open_connections();
    if open == 0 || limit.is_zero() {
        return false;
    }
    let seconds = limit.as_secs_f64();
    say(format_args!(
        "{open} connections have {seconds} s for what is under way; a second signal ends at once"
    ));
    signals.wait_until(limit.saturating_sub(ENDING_SOON), || gateway.open_connections() == 0)
}

/// Says how often something may never have ended at the level that `--isolation` sets.
pub(crate) fn say_endless(common: &Common) {
    let endless = common.tally.counts().endless;
    if endless > 0 {
        say(format_args!(
            "warning: {endless} statements may never end under --isolation repeatable-read (named above): leave the option out, or \
             take the loop out of its transaction"
        ));
    }
}

/// How long connections at rest take to end.
const ENDING_SOON: Duration = Duration::from_millis(200);

/// Refuses settings that the gateway would not keep, and names those that it does not use.
pub(crate) fn check_upstream(upstream: &Conninfo) -> Result<()> {
    let unused = upstream.check_kept()?;
    if !unused.is_empty() {
        say(format_args!("{}: no setting of PostgreSQL's; the gateway does not use it", unused.join(", ")));
    }
    Ok(())
}

/// Refuses what only PostgreSQL's clients can be given.
pub(crate) fn check_options(upstream: &Conninfo, watch: &WatchOptions, tls: &TlsOptions) -> Result<()> {
    if upstream.protocol == Protocol::Postgres {
        return Ok(());
    }
    let given = [
        ("--remedies", !watch.remedies.is_none()),
        ("--verify", watch.verify.is_some()),
        ("--lob-prefetch", !watch.lob_prefetch.is_empty()),
        ("--learned", watch.learned.is_some()),
        ("--isolation", watch.isolation.is_some()),
        ("--tls", tls.tls),
        ("--tls-cert", tls.tls_cert.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => bail!(
            "{option} needs PostgreSQL, and {} is a MySQL server, whose connections are only watched: leave it out",
            upstream.address()
        ),
        None => Ok(()),
    }
}

/// Says what others may see.
fn warn(options: &GatewayOptions, upstream: &Upstream, offers_tls: bool) {
    if let ListenAddress::Tcp(address) = &options.listen {
        if !address.ip().is_loopback() {
            let who = if offers_tls { "clients that do not ask for TLS" } else { "clients" };
            say(format_args!(
                "warning: what {who} send to {address} is not encrypted: passwords, statements and rows can be read on \
                 the network between them and here"
            ));
        }
    }
    let is_written = options.upstream.is_some() && upstream.source == Source::CommandLine;
    if is_written && options.upstream.as_deref().is_some_and(names_password) {
        say(
            "warning: other users can see the password in --upstream (ps shows it), and the gateway does not need it: \
             clients bring their own",
        );
    }
}

/// Whether connection text holds a password.
fn names_password(text: &str) -> bool {
    onetrip_target::Settings::parse(text).is_ok_and(|settings| settings.get_nonempty("password").is_some())
}
