//! The Python package's inside: conversions between Python and `onetrip_client`, and nothing that decides.
//!
//! Whoever waits for the server waits without the GIL: values are written to bytes before, and made from bytes after.

mod adapters;
mod answer;
mod arrays;
mod arrow;
mod asked;
mod binary;
mod block;
mod bytea;
mod candidate;
mod collected;
mod command;
mod conninfo;
mod copying;
mod dumping;
mod encoding;
mod errors;
mod held;
mod literals;
mod loaded;
mod loading;
mod lob;
mod locked;
mod many;
mod parameters;
mod query;
mod row_writer;
mod session;
mod spent;
mod turns;
mod wire;

use pyo3::prelude::*;

/// The functions and classes that `onetrip` is made of.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn version(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }

    #[pymodule_export]
    use super::adapters::set_adapters;
    #[pymodule_export]
    use super::answer::Answer;
    #[pymodule_export]
    use super::arrow::{ArrowBatch, ArrowBuilder, ArrowRows};
    #[pymodule_export]
    use super::candidate::{Candidate, addresses};
    #[pymodule_export]
    use super::command::command;
    #[pymodule_export]
    use super::conninfo::conninfo_options;
    #[pymodule_export]
    use super::copying::{CopyBuffer, CopyRows};
    #[pymodule_export]
    use super::dumping::dumped;
    #[pymodule_export]
    use super::errors::set_errors;
    #[pymodule_export]
    use super::held::ConnectionPool;
    #[pymodule_export]
    use super::literals::composed;
    #[pymodule_export]
    use super::loaded::{built_in, known_types, loaded, loaded_array, loaded_binary};
    #[pymodule_export]
    use super::lob::{Lob, LobFetch};
    #[pymodule_export]
    use super::many::ManyRows;
    #[pymodule_export]
    use super::row_writer::RowWriter;
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    use super::spent::counts;
    #[pymodule_export]
    use super::wire::Wire;
}
