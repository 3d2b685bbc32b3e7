//! `onetrip explain`.

use anyhow::{Result, bail};
use clap::Args;
use onetrip_ledger::Code;
use onetrip_ledger::findings::{Concept, page};
use onetrip_report::{Screen, Style};

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
    let parts =
        if options.words.is_empty() { vec![Part::Page(list(&Code::ALL))] } else { parts(&options.words)? };
    print(Stream::Output, |screen| {
        let shown = parts.iter().map(|part| part.shown(screen));
        shown.collect::<Vec<_>>().join("\n")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What is printed for a word.
#[derive(Debug)]
enum Part {
    /// Markdown in lines that are short enough for a file.
    Page(String),
    /// A term of the glossary.
    Term(Concept),
}

impl Part {
    fn shown(&self, screen: Screen) -> String {
        match (self, screen.style) {
            (Self::Page(text), Style::Plain) => text.clone(),
            (Self::Page(text), Style::Colored) => rendered(text, screen),
            (Self::Term(term), style) => {
                let meaning = screen.wrapped(&format!("{}: {}", term.term, term.meaning), 0);
                let meaning = match style {
                    Style::Plain => meaning,
                    Style::Colored => {
                        meaning.replacen(term.term, &format!("\u{1b}[1m{}\u{1b}[0m", term.term), 1)
                    }
                };
                let example = screen.wrapped(&format!("example: {}", term.example), 2);
                format!("{meaning}\n{example}\n")
            }
        }
    }
}

/// The parts for all words; for all of them together, if that is what something is called.
fn parts(words: &[String]) -> Result<Vec<Part>> {
    let phrase = words.join(" ");
    if words.len() > 1 && is_called(&phrase) {
        return explained(&phrase);
    }
    let parts = words.iter().map(|word| explained(word)).collect::<Result<Vec<_>>>()?;
    Ok(parts.into_iter().flatten().collect())
}

/// Whether a term or a part of a finding's title has these words.
fn is_called(phrase: &str) -> bool {
    let lower = phrase.to_lowercase();
    Concept::all().any(|concept| concept.is_called(phrase))
        || Code::ALL.into_iter().any(|code| code.title().to_lowercase().contains(&lower))
}

fn list(codes: &[Code]) -> String {
    codes.iter().map(|code| format!("{code}  {}\n", code.title())).collect()
}

/// What a code or word stands for: a page, if it is one finding's; a term, and the findings that it is about.
fn explained(word: &str) -> Result<Vec<Part>> {
    if let Ok(code) = word.parse::<Code>() {
        return Ok(vec![Part::Page(page(code))]);
    }
    let lower = word.to_lowercase();
    let about = |text: &str| text.to_lowercase().contains(&lower);
    let term = Concept::all().find(|concept| concept.is_called(word));
    let mut codes: Vec<Code> = Code::ALL.into_iter().filter(|code| about(code.title())).collect();
    let mut terms: Vec<Concept> = term.into_iter().collect();
    if codes.is_empty() && terms.is_empty() && !lower.is_empty() {
        codes.extend(Code::ALL.into_iter().filter(|code| about(&page(*code))));
        terms.extend(Concept::all().filter(|concept| about(concept.meaning) || about(concept.example)));
    }
    let found = match codes.as_slice() {
        [] => None,
        [code] => Some(page(*code)),
        codes => Some(list(codes)),
    };
    let parts: Vec<Part> = terms.into_iter().map(Part::Term).chain(found.map(Part::Page)).collect();
    if parts.is_empty() || lower.is_empty() {
        bail!("no finding and no term is called {word:?}; `onetrip explain` lists the findings");
    }
    Ok(parts)
}

/// Markdown on a terminal: headings are bold, code is indented, marks are left out, and text is as wide as the screen.
fn rendered(text: &str, screen: Screen) -> String {
    let mut out = String::with_capacity(text.len());
    let mut paragraph = String::new();
    let mut is_code = false;
    let flush = |paragraph: &mut String, out: &mut String| {
        if !paragraph.is_empty() {
            let hanging = if paragraph.starts_with("- ") { 2 } else { 0 };
            out.push_str(&screen.wrapped(&paragraph.replace("**", ""), hanging));
            out.push('\n');
            paragraph.clear();
        }
    };
    for line in text.lines() {
        let is_marked = ["#", "|", "```", "OT0"].iter().any(|mark| line.starts_with(mark));
        let is_text = !is_code && !line.is_empty() && !is_marked;
        if is_text && !line.starts_with("- ") {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line.trim_start());
            continue;
        }
        flush(&mut paragraph, &mut out);
        if line.starts_with("```") {
            is_code = !is_code;
        } else if is_text {
            paragraph.push_str(line);
        } else if is_code {
            out.push_str(&format!("    \u{1b}[2m{line}\u{1b}[0m\n"));
        } else if let Some(heading) = line.strip_prefix('#') {
            let heading = heading.trim_start_matches('#').trim_start();
            out.push_str(&format!("\u{1b}[1m{heading}\u{1b}[0m\n"));
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    flush(&mut paragraph, &mut out);
    out
}
