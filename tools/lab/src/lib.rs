//! The lab: every claim about round trips has a workload, and every workload a chart drawn from measured samples.
//!
//! A [`workload::Workload`] is data: its matrix, its steps, the rows and trips that must come out. [`run()`] plays it
//! on real servers. It counts trips with the gateway before it times them without it, and returns [`Samples`].
//! Tables, verdicts and charts are made only of those.
//!
//! Non-scope: flags and terminals (`cli`), pipelines for applications (`client`).

mod cell;
mod chart;
mod client;
mod cpu;
mod database;
mod error;
mod formula;
mod measure;
mod page;
mod plan;
mod run;
mod samples;
mod statistics;
mod table;
pub mod tune;
mod verdict;
pub mod workload;

pub use cell::{Allocated, Cell};
pub use chart::{ChartKind, ChartSpec, Theme, png, svg};
pub use error::LabError;
pub use measure::{Measure, bytes};
pub use page::{write_files, write_page};
pub use run::{RunOptions, run};
pub use samples::{Machine, NO_VERDICT, SAMPLES_FORMAT, Samples};
pub use statistics::Summary;
pub use table::text;
