use std::ffi::OsString;
use std::future::pending;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context, Result, bail};
use onetrip_gateway::{Gateway, GatewayConfig, ListenAddress};
use onetrip_report::RunInfo;
use onetrip_target::launch::{ChildExit, Program, Redirect, RedirectOptions, Upstream, redirect};
use onetrip_target::{Environment, SslMode};

use crate::args::{EXIT_JUDGED, RunOptions};
use crate::control::{self, Control};
use crate::exit::ExitCode;
use crate::judge::Judge;
use crate::link;
use crate::output::{Stream, Subject, write};

/// Words of a command line whose names go into the trace: `poetry run python app.py`.
const NAMED_WORDS: usize = 4;

/// `onetrip run`.
pub(crate) fn run(options: &RunOptions) -> Result<ExitCode> {
    let judge = Judge::new(&options.judge)?;
    options.output.check()?;
    let environment = Environment::of_this_process();
    let upstream = Upstream::find(options.upstream.as_deref(), &options.url_variables, &environment)?;
    let config = GatewayConfig {
        command: names_of(&options.program),
        ..GatewayConfig::new(upstream.conninfo.clone())
    };
    let mut config = options.watch.apply(config);
    if let Some(address) = options.listen {
        config.listen = ListenAddress::Tcp(address);
    }
    let link = config.link.clone();
    let gateway = Gateway::start(config)?;
    let ListenAddress::Tcp(address) = *gateway.address() else { bail!("the gateway listens at no port") };
    let address = reachable(address);
    let redirect_options = RedirectOptions {
        gateway: address,
        url_variables: &options.url_variables,
        sslmode: SslMode::Disable,
    };
    let mut redirect = redirect(&environment, &upstream, &redirect_options)?;
    announce(&redirect, &upstream.conninfo.address(), &address.to_string());
    link::announce(link.as_ref());
    let exit = supervise(options, &mut redirect, &gateway)?;
    let outcome = gateway.stop();
    link::tell(&outcome.links, link.as_ref());
    let analysis = outcome.analyzer.finish(&judge.mutes);
    let how = how_to_connect(&redirect, &address.to_string());
    let run = RunInfo {
        command: options.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        exit_code: match exit {
            ChildExit::Code(code) => Some(code),
            ChildExit::Signal(_) => None,
        },
        trace: options.watch.trace.as_ref().map(|path| path.display().to_string()),
        pointed: redirect.notes.iter().map(|change| change.variable.clone()).collect(),
    };
    let subject = Subject {
        run: Some(&run),
        how_to_connect: &how,
        distance: &options.distance,
        bandwidth: link.and_then(|link| link.bandwidth),
    };
    let passed = write(analysis, subject, &judge, &options.output, Stream::Error)?;
    Ok(match exit.is_success() {
        true if passed => ExitCode::SUCCESS,
        true => ExitCode::from(EXIT_JUDGED),
        false => ExitCode::from(exit.code()),
    })
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
    let words = program.iter().take(NAMED_WORDS).map(|word| word.to_string_lossy());
    let is_name = |word: &str| !word.contains(['=', ':', '@']);
    let names =
        words.filter(|word| is_name(word)).map(|word| word.rsplit('/').next().unwrap_or_default().to_owned());
    names.collect::<Vec<_>>().join(" ")
}

/// Says what the program will see differently.
fn announce(redirect: &Redirect, upstream: &str, gateway: &str) {
    eprintln!("onetrip: gateway at {gateway}, database at {upstream}");
    for change in &redirect.notes {
        eprintln!("onetrip: {change}");
    }
    for untouched in &redirect.untouched {
        eprintln!("onetrip: {untouched}");
    }
}

/// Runs the program to its end, with our signals passed on.
fn supervise(options: &RunOptions, redirect: &mut Redirect, gateway: &Gateway) -> Result<ChildExit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        let control = Control::listen(gateway.common());
        match &control {
            Ok(control) => redirect.set.push((control::VARIABLE.to_owned(), control.path())),
            Err(error) => eprintln!("onetrip: tests cannot ask for their counts: {error:#}"),
        }
        let serving = async {
            match &control {
                Ok(control) => control.serve().await,
                Err(_) => pending().await,
            }
        };
        let mut program = Program::spawn(&options.program, redirect)?;
        tokio::select! {
            exit = program.wait() => exit.context("cannot tell how the program ended"),
            () = serving => bail!("nobody listens for tests any more"),
        }
    })
}

fn how_to_connect(redirect: &Redirect, gateway: &str) -> String {
    let changed: Vec<&str> = redirect.notes.iter().map(|change| change.variable.as_str()).collect();
    format!(
        "The program did not use {}. If it keeps its settings in another variable, name that with --env NAME; if \
         they are in a file or in its code, start `onetrip gateway` and put its address there (here it was {gateway}).",
        if changed.is_empty() { "any variable that was set".to_owned() } else { changed.join(", ") }
    )
}
