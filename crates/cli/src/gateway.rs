use anyhow::Result;
use onetrip_gateway::{Gateway, GatewayConfig};
use onetrip_report::RunInfo;
use onetrip_target::Environment;
use onetrip_target::launch::Upstream;

use crate::args::{EXIT_JUDGED, GatewayOptions};
use crate::exit::ExitCode;
use crate::judge::Judge;
use crate::output::{Stream, Subject, write};
use crate::{link, stop};

/// `onetrip gateway`.
pub(crate) fn gateway(options: &GatewayOptions) -> Result<ExitCode> {
    let judge = Judge::new(&options.judge)?;
    options.output.check()?;
    let environment = Environment::of_this_process();
    let upstream = Upstream::find(options.upstream.as_deref(), &[], &environment)?.conninfo;
    let upstream_address = upstream.address();
    let config = GatewayConfig { listen: options.listen.clone(), ..GatewayConfig::new(upstream) };
    let config = GatewayConfig { client_tls: options.tls.acceptor(false)?, ..options.watch.apply(config) };
    let link = config.link.clone();
    let stop = stop::Waiter::new()?;
    let gateway = Gateway::start(config)?;
    let address = gateway.address().to_string();
    eprintln!("onetrip: listening at {address}, database at {upstream_address}; Ctrl-C stops and reports");
    link::announce(link.as_ref());
    stop.wait();
    let outcome = gateway.stop();
    link::tell(&outcome.links, link.as_ref());
    let analysis = outcome.analyzer.finish(&judge.mutes);
    let how = format!("Point the program at {address}, or run it with: onetrip run -- PROGRAM");
    let trace = options.watch.trace.as_ref().map(|path| path.display().to_string());
    let run = RunInfo { trace, ..RunInfo::default() };
    let subject = Subject {
        run: Some(&run),
        how_to_connect: &how,
        distance: &options.distance,
        bandwidth: link.and_then(|link| link.bandwidth),
    };
    let passed = write(analysis, subject, &judge, &options.output, Stream::Output)?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::from(EXIT_JUDGED) })
}
