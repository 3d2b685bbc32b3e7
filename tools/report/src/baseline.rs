//! What an earlier report in JSON says of its run, for comparing with it.

use onetrip_ledger::judge::Base;
use onetrip_ledger::{Code, Gaps};
use serde::Deserialize;

use crate::json::FORMAT;

/// A file that is no report to compare with.
#[derive(Debug, thiserror::Error)]
pub enum BadReport {
    /// Not the object that `--format json` writes.
    #[error("it is not a report of onetrip ({0}); write one with --format json")]
    Syntax(#[from] serde_json::Error),
    /// Written by another onetrip.
    #[error("it has format {0}, and this onetrip knows {FORMAT}: write it again")]
    Format(u32),
}

#[derive(Deserialize)]
struct Document {
    format: u32,
    run: Option<Run>,
    trips: Trips,
    connections: Connections,
    doubts: Doubts,
    templates: Vec<Template>,
    findings: Vec<Finding>,
}

#[derive(Deserialize)]
struct Run {
    exit_code: Option<i32>,
    signal: Option<i32>,
}

#[derive(Deserialize)]
struct Trips {
    total: u64,
}

#[derive(Deserialize)]
struct Connections {
    let_in: u64,
}

#[derive(Deserialize)]
struct Doubts {
    lost_bytes: u64,
    damaged_blocks: u64,
    damaged_bytes: u64,
    no_end: bool,
}

#[derive(Deserialize)]
struct Template {
    text: String,
    trips: u64,
}

#[derive(Deserialize)]
struct Finding {
    code: String,
    statements: Vec<String>,
    avoidable: u64,
}

/// Reads a report; `name` is what it is called. Findings that this onetrip does not know are left out.
///
/// # Errors
///
/// Text that is no report in JSON of this format.
pub fn baseline(name: &str, text: &str) -> Result<Base, BadReport> {
    let document: Document = serde_json::from_str(text)?;
    if document.format != FORMAT {
        return Err(BadReport::Format(document.format));
    }
    let Doubts { lost_bytes, damaged_blocks, damaged_bytes, no_end } = document.doubts;
    let finding = |finding: Finding| {
        let code: Code = finding.code.parse().ok()?;
        Some(((code, finding.statements.into_iter().next().unwrap_or_default()), finding.avoidable))
    };
    Ok(Base {
        name: name.to_owned(),
        trips: document.trips.total,
        sessions: document.connections.let_in,
        has_failed: document
            .run
            .is_some_and(|run| run.signal.is_some() || run.exit_code.is_some_and(|code| code != 0)),
        gaps: Gaps { lost_bytes, damaged_blocks, damaged_bytes, is_open: no_end, ..Gaps::default() },
        statements: document.templates.into_iter().map(|template| (template.text, template.trips)).collect(),
        findings: document.findings.into_iter().filter_map(finding).collect(),
    })
}
