mod json;
mod measured;
mod mysql;
mod text;

use std::borrow::Cow;
use std::io::{self, Write};

use anyhow::{Context, Result};
use onetrip_gateway::Ping;
use onetrip_target::launch::Upstream;
use onetrip_target::{Conninfo, Environment, Protocol};

use crate::args::{PingFormat, PingOptions};
use crate::exit::ExitCode;
use crate::progress::Progress;
use crate::stop::Stop;
use measured::Measured;
use mysql::{Account, MysqlPing};

/// What shells know Ctrl-C by.
const EXIT_INTERRUPTED: u8 = 130;

/// `onetrip ping`.
pub(crate) fn ping(options: &PingOptions) -> Result<ExitCode> {
    let environment = Environment::of_this_process();
    let target = options.target.as_deref().map(host_alone);
    let Upstream { conninfo: upstream, source, .. } = Upstream::find(target.as_deref(), &[], &environment)?;
    let account = match upstream.protocol {
        Protocol::Postgres => None,
        Protocol::Mysql => Some(Account::find(target.as_deref(), &source, &upstream, &environment)?),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    let mut measured = Measured { target: upstream.address(), ..Measured::default() };
    let (done, interrupted) = runtime.block_on(async {
        let mut stop = Stop::listen()?;
        let (done, interrupted) = tokio::select! {
            biased;
            () = stop.requested() => (Ok(()), true),
            done = measure(upstream, account, options.count, &mut measured) => (done, false),
        };
        anyhow::Ok((done, interrupted))
    })?;
    // A name that is still being looked up must not hold us back.
    runtime.shutdown_background();
    let has_trips = !measured.trips.is_empty();
    if has_trips || interrupted {
        print(&match options.format {
            PingFormat::Text => text::text(&measured),
            PingFormat::Json => json::json(&measured, options.count),
        })?;
    }
    done?;
    Ok(if interrupted && !has_trips { ExitCode::from(EXIT_INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// A single word is a host here, as `ping` has it; elsewhere it could be a database as well.
fn host_alone(text: &str) -> Cow<'_, str> {
    let is_name = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    let is_host = !text.is_empty() && text.chars().all(is_name);
    if is_host { format!("host={text}").into() } else { text.into() }
}

async fn measure(
    upstream: Conninfo,
    account: Option<Account>,
    count: u32,
    measured: &mut Measured,
) -> Result<()> {
    if let Some(account) = account {
        return Ok(measure_mysql(&upstream, account, count, measured).await?);
    }
    let mut ping = Ping::connect(upstream, &mut measured.opening).await?;
    measured.server = Some(ping.server().into());
    measured.path = ping.path_times();
    let progress = Progress::of_steps("SELECT 1", count.into());
    for _ in 0..count {
        let trip = ping.trip().await?;
        measured.trips.push(trip);
        measured.path = ping.path_times();
        progress.advance(1);
    }
    drop(progress);
    ping.close().await;
    Ok(())
}

async fn measure_mysql(
    upstream: &Conninfo,
    account: Account,
    count: u32,
    measured: &mut Measured,
) -> Result<(), mysql::Error> {
    let mut ping = MysqlPing::connect(upstream, account, &mut measured.mysql).await?;
    measured.server = Some(ping.about().clone());
    let progress = Progress::of_steps("SELECT 1", count.into());
    for _ in 0..count {
        measured.trips.push(ping.trip().await?);
        progress.advance(1);
    }
    drop(progress);
    ping.close().await;
    Ok(())
}

fn print(report: &str) -> Result<()> {
    match io::stdout().write_all(report.as_bytes()) {
        // Whoever reads the report has had enough of it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the report"),
    }
}
