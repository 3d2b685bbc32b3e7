//! `onetrip explain`.

use anyhow::{Result, bail};
use clap::Args;
use onetrip_ledger::Code;
use onetrip_ledger::findings::{Concept, page};
use onetrip_report::Style;

use crate::examples;
use crate::exit::ExitCode;
use crate::output::{Stream, print};

#[derive(Debug, Args)]
#[command(before_help = examples::EXPLAIN)]
pub(crate) struct ExplainOptions {
    /// Codes of findings, words of their titles or pages, or terms of the glossary [default: a list of all findings]
    #[arg(value_name = "CODE|WORD")]
    words: Vec<String>,
}

/// Prints the pages of the findings, and the terms, that were named; or the list of all findings.
pub(crate) fn explain(options: &ExplainOptions) -> Result<ExitCode> {
    let text = if options.words.is_empty() {
        list(&Code::ALL)
    } else {
        options.words.iter().map(|word| explained(word)).collect::<Result<Vec<_>>>()?.join("\n")
    };
    print(Stream::Output, |screen| match screen.style {
        Style::Colored => rendered(&text),
        Style::Plain => text,
    })?;
    Ok(ExitCode::SUCCESS)
}

fn list(codes: &[Code]) -> String {
    codes.iter().map(|code| format!("{code}  {}\n", code.title())).collect()
}

/// What a code or word stands for: a page, if it is one finding's; a term, and the findings that it is about.
fn explained(word: &str) -> Result<String> {
    if let Ok(code) = word.parse::<Code>() {
        return Ok(page(code));
    }
    let lower = word.to_lowercase();
    let about = |text: &str| text.to_lowercase().contains(&lower);
    let titled: Vec<Code> = Code::ALL.into_iter().filter(|code| about(code.title())).collect();
    let term = Concept::all().find(|concept| concept.is_called(word));
    let term = term.map(|term| format!("{}: {}\nexample: {}\n", term.term, term.meaning, term.example));
    Ok(match (term, titled.as_slice()) {
        (Some(term), []) => term,
        (Some(term), [code]) => format!("{term}\n{}", page(*code)),
        (Some(term), codes) => format!("{term}\n{}", list(codes)),
        (None, [code]) => page(*code),
        (None, []) => {
            let found: Vec<Code> = Code::ALL.into_iter().filter(|code| about(&page(*code))).collect();
            if lower.is_empty() || found.is_empty() {
                bail!("no finding and no term is called {word:?}; `onetrip explain` lists the findings");
            }
            list(&found)
        }
        (None, codes) => list(codes),
    })
}

/// Markdown on a terminal: headings are bold, code is indented, marks are left out.
fn rendered(text: &str) -> String {
    let mut is_code = false;
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
            continue;
        }
        if is_code {
            out.push_str(&format!("    \u{1b}[2m{line}\u{1b}[0m\n"));
        } else if let Some(heading) = line.strip_prefix('#') {
            let heading = heading.trim_start_matches('#').trim_start();
            out.push_str(&format!("\u{1b}[1m{heading}\u{1b}[0m\n"));
        } else {
            out.push_str(&line.replace("**", ""));
            out.push('\n');
        }
    }
    out
}
