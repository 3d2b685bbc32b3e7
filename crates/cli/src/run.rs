use std::ffi::OsString;
use std::future::pending;

use anyhow::{Context, Result, bail};
use onetrip_gateway::{Gateway, GatewayConfig, ListenAddress};
use onetrip_report::RunInfo;
use onetrip_target::launch::{ChildExit, Program, Redirect, RedirectOptions, Upstream, redirect};
use onetrip_target::{Environment, SslMode};

use crate::args::RunOptions;
use crate::control::{self, Control};
use crate::exit::ExitCode;
use crate::gateway::check_upstream;
use crate::judge::Judge;
use crate::link;
use crate::masked::masked;
use crate::output::{Stream, Subject, write};
use crate::pytest::name_tests;
use crate::say::{explained, say};
use crate::stop::survive_file_limits;

/// Words of a command line whose names go into the trace: `poetry run python app.py`.
const NAMED_WORDS: usize = 4;

/// `onetrip run`.
pub(crate) fn run(options: &RunOptions) -> Result<ExitCode> {
    let judge = Judge::new(&options.judge)?;
    options.output.check()?;
    let environment = Environment::of_this_process();
    let upstream = Upstream::find(options.upstream.as_deref(), &options.url_variables, &environment)?;
    check_upstream(&upstream.conninfo)?;
    let config = GatewayConfig {
        command: names_of(&options.program),
        ..GatewayConfig::new(upstream.conninfo.clone())
    };
    let config = options.watch.apply(config);
    let link = config.link.clone();
    let gateway = Gateway::start(config)?;
    let ListenAddress::Tcp(address) = *gateway.address() else { bail!("the gateway listens at no port") };
    let redirect_options = RedirectOptions {
        gateway: address,
        url_variables: &options.url_variables,
        sslmode: SslMode::Disable,
    };
    let mut redirect = redirect(&environment, &upstream, &redirect_options)?;
    announce(&redirect, &upstream.conninfo.address(), &address.to_string());
    link::announce(link.as_ref());
    let ended = supervise(options, &mut redirect, &gateway)?;
    let outcome = gateway.stop();
    link::tell(&outcome.links, link.as_ref());
    let analysis = outcome.analyzer.finish(&judge.mutes);
    let how = how_to_connect(&redirect, &address.to_string());
    let (exit_code, signal) = match ended.exit {
        ChildExit::Code(code) => (Some(code), None),
        ChildExit::Signal(signal) => (None, Some(signal)),
    };
    let run = RunInfo {
        command: masked(&options.program),
        exit_code,
        signal,
        trace: options.watch.trace.as_ref().map(|path| path.display().to_string()),
        trace_error: outcome.trace_error,
        has_tests: ended.has_tests,
    };
    let subject = Subject {
        run: Some(&run),
        how_to_connect: &how,
        distance: &options.distance,
        bandwidth: link.and_then(|link| link.bandwidth),
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

/// How the program ended.
struct Ended {
    exit: ChildExit,
    /// Its runner named tests.
    has_tests: bool,
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
    say(format_args!("gateway at {gateway}, database at {upstream}"));
    redirect.notes.iter().for_each(say);
    redirect.untouched.iter().for_each(say);
}

/// Runs the program to its end, with our signals passed on.
fn supervise(options: &RunOptions, redirect: &mut Redirect, gateway: &Gateway) -> Result<Ended> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        survive_file_limits();
        let control = Control::listen(gateway.common());
        match &control {
            Ok(control) => {
                redirect.set.push((control::VARIABLE.to_owned(), control.path()));
                match name_tests(&options.program, control.directory(), redirect) {
                    Ok(change) => change.into_iter().for_each(say),
                    Err(error) => say(format_args!("tests are not told apart: {error}")),
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
        let mut program = Program::spawn(&options.program, redirect)?;
        let exit = tokio::select! {
            exit = program.wait() => exit.context("cannot tell how the program ended")?,
            () = serving => bail!("nobody listens for tests any more"),
        };
        Ok(Ended { exit, has_tests: control.is_ok_and(|control| control.has_tests()) })
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
