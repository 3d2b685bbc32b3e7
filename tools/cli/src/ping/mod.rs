mod json;
mod text;

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use onetrip_gateway::{Opening, PathTimes, Ping, PingError, PingedServer};
use onetrip_target::launch::Upstream;
use onetrip_target::{Conninfo, Environment, Protocol};

use crate::args::{PingFormat, PingOptions};
use crate::exit::ExitCode;
use crate::stop::Stop;

/// What shells know Ctrl-C by.
const EXIT_INTERRUPTED: u8 = 130;
/// Redraws of the progress bar per second.
const REDRAWS_HZ: u8 = 10;

/// What was measured so far.
#[derive(Debug, Default)]
struct Measured {
    /// Hosts and ports, as they were given.
    target: String,
    /// `None` until the session is open.
    server: Option<PingedServer>,
    opening: Opening,
    trips: Vec<Duration>,
    /// `None` on a unix socket, and where the kernel does not tell.
    path: Option<PathTimes>,
}

/// `onetrip ping`.
pub(crate) fn ping(options: &PingOptions) -> Result<ExitCode> {
    let environment = Environment::of_this_process();
    let target = options.target.as_deref().map(host_alone);
    let upstream = Upstream::find(target.as_deref(), &[], &environment)?.conninfo;
    if upstream.protocol != Protocol::Postgres {
        bail!(
            "{} is a MySQL server, and ping speaks PostgreSQL only: onetrip run and onetrip gateway show the trips of a \
             program there",
            upstream.address()
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    let mut measured = Measured { target: upstream.address(), ..Measured::default() };
    let (done, interrupted) = runtime.block_on(async {
        let mut stop = Stop::listen()?;
        let (done, interrupted) = tokio::select! {
            biased;
            () = stop.requested() => (Ok(()), true),
            done = measure(upstream, options.count, &mut measured) => (done, false),
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

async fn measure(upstream: Conninfo, count: u32, measured: &mut Measured) -> Result<(), PingError> {
    let mut ping = Ping::connect(upstream, &mut measured.opening).await?;
    measured.server = Some(ping.server().clone());
    measured.path = ping.path_times();
    let progress = Progress::start(count);
    for _ in 0..count {
        let trip = ping.trip().await?;
        measured.trips.push(trip);
        measured.path = ping.path_times();
        progress.0.inc(1);
    }
    drop(progress);
    ping.close().await;
    Ok(())
}

/// A bar on standard error, drawn only where that is a terminal, and gone when the measuring ends in any way.
struct Progress(ProgressBar);

impl Progress {
    fn start(count: u32) -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_HZ);
        let bar = ProgressBar::with_draw_target(Some(count.into()), target);
        if let Ok(style) =
            ProgressStyle::with_template("SELECT 1 {bar:40} {human_pos}/{human_len}, {eta} left")
        {
            bar.set_style(style);
        }
        Self(bar)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn print(report: &str) -> Result<()> {
    match io::stdout().write_all(report.as_bytes()) {
        // Whoever reads the report has had enough of it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the report"),
    }
}

impl Measured {
    /// Trips that one session can make one after the other in a second; `None` before the first.
    fn trips_per_second(&self) -> Option<f64> {
        let time: Duration = self.trips.iter().sum();
        let is_measurable = !time.is_zero();
        is_measurable.then(|| self.trips.len() as f64 / time.as_secs_f64())
    }
}
