//! `onetrip explain`.

use anyhow::Result;
use clap::Args;
use onetrip_ledger::Code;
use onetrip_ledger::findings::page;

use crate::exit::ExitCode;
use crate::output::{Stream, print};

#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// Codes of findings, such as OT001 [default: a list of all]
    #[arg(value_name = "CODE")]
    codes: Vec<Code>,
}

/// Prints the pages of the findings that were named, or the list of all.
pub(crate) fn explain(options: &ExplainOptions) -> Result<ExitCode> {
    let text = if options.codes.is_empty() {
        Code::ALL.iter().map(|code| format!("{code}  {}\n", code.title())).collect()
    } else {
        options.codes.iter().map(|code| page(*code)).collect::<Vec<_>>().join("\n")
    };
    print(Stream::Output, |_| text)?;
    Ok(ExitCode::SUCCESS)
}
