//! Connection text as the options that it has.

use onetrip_target::Settings;
use pyo3::prelude::*;

use crate::errors::misuse;
use crate::session::refuse_unknown;

/// The options of connection text, by their keywords.
#[pyfunction]
pub(crate) fn conninfo_options(py: Python<'_>, text: &str) -> PyResult<Vec<(String, String)>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let settings = Settings::parse(text).map_err(|error| misuse(py, "usage", &error.to_string()))?;
    refuse_unknown(py, &settings)?;
    Ok(settings.iter().map(|(keyword, value)| (keyword.to_owned(), value.to_owned())).collect())
}
