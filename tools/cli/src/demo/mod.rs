//! `onetrip demo`: what a loop of statements costs at home and what it costs from afar.
//!
//! Everything in it is real except the distance. There is a database ([`database`]) with generated tables ([`data`]),
//! and a program with a driver ([`program`]). Every run ([`runs`]) has a gateway between them that counts. A run from
//! afar also has a simulated link. Answers are compared with what was generated.

mod data;
mod database;
mod interrupt;
mod program;
mod runs;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use onetrip_forecast::Forecast;
use onetrip_link::HumanDuration;
use onetrip_report::{Report, count};

use self::data::Staff;
use self::database::Database;
use self::interrupt::{Interrupted, Interruptible};
use self::runs::Plan;
use self::table::Table;
use crate::examples;
use crate::exit::ExitCode;
use crate::files::Files;
use crate::output::{Format, OutputOptions, PageOptions, Stream, print, write_pages};
use crate::progress::Progress;

/// What shells know Ctrl-C by.
const EXIT_INTERRUPTED: u8 = 130;
/// Most employees; answers are kept in memory.
const EMPLOYEES_MAX: i64 = 100_000;
/// Longest round-trip time that makes sense to wait for.
const RTT_MAX: Duration = Duration::from_secs(1);

/// What is shown.
const STORY: &str = "\
A program lists all employees and then asks for the salaries of each of them, with one statement each. It runs next to its \
database, at 0.389 ms and at 12.9 ms. Two programs that get the same answer with one statement do so, too. At 12.9 ms the loop \
runs over the first employees only, unless --full is set. No time is scaled up. Finally the loop runs over all employees at \
12.9 ms, in a transaction, with --remedies exact.";
/// Where the tables are.
#[cfg(feature = "embed")]
const PLACE: &str = "\
Without --database the tables are in a temporary SQLite file that is served as PostgreSQL. With it they are in a schema \
onetrip_demo_PID, which is dropped at the end, also after Ctrl-C.";
#[cfg(not(feature = "embed"))]
const PLACE: &str = "\
The tables are in a schema onetrip_demo_PID of --database, which is dropped at the end, also after Ctrl-C. This build has \
no database of its own.";

#[derive(Debug, Args)]
#[command(before_help = examples::DEMO, after_help = format!("{STORY}\n\n{PLACE}"))]
pub(crate) struct DemoOptions {
    /// How many employees there are; each has 9.5 salaries on average
    #[arg(long, value_name = "N", default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=EMPLOYEES_MAX))]
    employees: u32,
    /// Round-trip time of the far distance
    #[arg(long, value_name = "TIME", default_value = "12.9ms", value_parser = distance)]
    rtt: Duration,
    /// Run the loop over all employees from afar, too: minutes
    #[arg(long)]
    full: bool,
    /// Use this PostgreSQL, given as URL or keyword DSN
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Write the report as one HTML page that needs nothing else
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    html: PathBuf,
}

impl DemoOptions {
    fn output(&self) -> OutputOptions {
        let pages = PageOptions { html: Some(self.html.clone()), chart: None };
        OutputOptions { format: Format::Text, output: None, pages }
    }
}

/// `onetrip demo`.
pub(crate) fn demo(options: &DemoOptions) -> Result<ExitCode> {
    options.output().check(Files::default())?;
    let mut work = Interruptible::new()?;
    let database = match &options.database {
        None => Database::embedded(),
        Some(text) => Database::schema_in(text, &mut work),
    };
    let shown = database.and_then(|database| {
        let shown = show(options, &database, &mut work);
        match (&shown, database.clean_up(&work)) {
            (Err(_), Err(error)) => eprintln!("onetrip: {error:#}"),
            (_, cleaned) => cleaned?,
        }
        shown
    });
    match shown {
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("onetrip: stopped");
            Ok(ExitCode::from(EXIT_INTERRUPTED))
        }
        shown => shown.map(|()| ExitCode::SUCCESS),
    }
}

/// Makes the tables, runs everything and tells about it.
fn show(options: &DemoOptions, database: &Database, work: &mut Interruptible) -> Result<()> {
    let staff = Staff::generate(options.employees);
    let plan = Plan::new(options.employees as usize, options.rtt, options.full);
    eprintln!("{}", plan.announcement());
    eprintln!(
        "onetrip: {} employees with {} salaries in {}",
        count(staff.employee_count() as u64),
        count(staff.salary_count() as u64),
        database.name
    );
    let lines = staff.employee_count() + staff.salary_count();
    let progress = Progress::of_steps("filling the tables", lines as u64);
    database.fill(&staff, work, |lines| progress.advance(lines as u64))?;
    drop(progress);
    let lines = plan.run(database, &staff, work, |analysis| {
        let forecast = Forecast::new(&analysis.summary, &analysis.timeline);
        let prices = forecast.prices(&plan.distances[1..], None);
        let report = Report { prices: Some(&prices), ..Report::new(&analysis.summary) };
        print(Stream::Output, |style| format!("{}\n", onetrip_report::text(&report, style)))?;
        write_pages(&report, analysis, &options.output().pages)
    })?;
    let table = Table { plan: &plan, lines: &lines, is_embedded: options.database.is_none() };
    print(Stream::Output, |_| table.text())
}

fn distance(text: &str) -> Result<Duration, String> {
    let rtt: Duration = text.parse::<HumanDuration>().map_err(|error| error.to_string())?.into();
    match rtt {
        Duration::ZERO => {
            Err("without a distance there is nothing to show; write for example 12.9ms".to_owned())
        }
        rtt if rtt > RTT_MAX => Err(format!("is farther than {}", HumanDuration(RTT_MAX))),
        rtt => Ok(rtt),
    }
}
