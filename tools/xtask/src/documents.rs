//! Documents that are made from code, by the tests that also check them.

use anyhow::{Result, bail};

use crate::steps::Spec;

/// The packages and which of their tests write documents when `UPDATE_DOCS` is set.
const WRITERS: &[(&str, &str)] = &[
    ("onetrip-ledger", "--test pages"),
    ("onetrip-export", "--test rows_doc"),
    ("onetrip-report", "--lib json::schema"),
    ("onetrip", "--test commands_doc"),
];

pub(crate) fn write() -> Result<()> {
    for (package, tests) in WRITERS {
        // One test writes what another may read.
        let command = format!("test --locked --quiet -p {package} {tests} -- --test-threads=1");
        succeed(&Spec::cargo(&command).with("UPDATE_DOCS", "1"))?;
    }
    Ok(())
}

pub(crate) fn write_purity() -> Result<()> {
    succeed(&Spec::new("scripts/purity-lists", [""; 0]))
}

pub(crate) fn prove(options: &[String]) -> Result<()> {
    succeed(&Spec::new("scripts/prove", options))
}

fn succeed(spec: &Spec) -> Result<()> {
    if !spec.command().status()?.success() {
        bail!("failed: {spec}");
    }
    Ok(())
}
