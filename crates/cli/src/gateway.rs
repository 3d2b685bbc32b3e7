use std::process::ExitCode;

use anyhow::{Context, Result};
use onetrip_gateway::{Gateway, GatewayConfig};
use onetrip_report::RunInfo;
use onetrip_target::Environment;
use onetrip_target::launch::Upstream;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{EXIT_JUDGED, GatewayOptions};
use crate::judge::Judge;
use crate::output::{Stream, write};

/// `onetrip gateway`.
pub(crate) fn gateway(options: &GatewayOptions) -> Result<ExitCode> {
    let judge = Judge::new(&options.judge)?;
    let environment = Environment::of_this_process();
    let upstream = Upstream::find(options.upstream.as_deref(), &[], &environment)?.conninfo;
    let upstream_address = upstream.address();
    let config = GatewayConfig { listen: options.listen.clone(), ..GatewayConfig::new(upstream) };
    let gateway = Gateway::start(options.watch.apply(config))?;
    let address = gateway.address().to_string();
    eprintln!("onetrip: listening at {address}, database at {upstream_address}; Ctrl-C stops and reports");
    wait_for_stop()?;
    let outcome = gateway.stop();
    let summary = outcome.analyzer.finish(&judge.mutes);
    let how = format!("Point the program at {address}, or run it with: onetrip run -- PROGRAM");
    let trace = options.watch.trace.as_ref().map(|path| path.display().to_string());
    let run = RunInfo { trace, ..RunInfo::default() };
    let passed = write(&summary, Some(&run), &how, &judge, &options.output, Stream::Output)?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::from(EXIT_JUDGED) })
}

/// Waits for Ctrl-C or a request to end.
fn wait_for_stop() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(())
    })
}
