//! Links of documents: each leads to a file of the repository, and to a heading of it where it names one. The book's table of
//! contents lists each page of docs/ once.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::root;

/// The table of contents of the book (`scripts/book`).
const SUMMARY: &str = "docs/SUMMARY.md";

/// A document's links and what can be linked to in it.
#[derive(Default)]
struct Document {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

/// Reads every document that is under version control.
pub(crate) fn check() -> Result<()> {
    let root = root();
    let listed = Command::new("git").args(["ls-files", "-z", "*.md"]).current_dir(&root).output()?;
    if !listed.status.success() {
        bail!("git does not list the documents: {}", String::from_utf8_lossy(&listed.stderr));
    }
    let names = String::from_utf8(listed.stdout).context("a document's name is not UTF-8")?;
    let mut documents = HashMap::new();
    for name in names.split_terminator('\0') {
        let path = root.join(name);
        // One that is about to be removed is still listed.
        if path.exists() {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
            documents.insert(PathBuf::from(name), read(&text));
        }
    }
    let mut broken: Vec<String> = Vec::new();
    let mut count = 0;
    for (name, document) in &documents {
        for link in &document.links {
            count += 1;
            if let Some(reason) = fault(&root, name, link, &documents) {
                broken.push(format!("{}: {link}: {reason}", name.display()));
            }
        }
    }
    let summary = documents.get(Path::new(SUMMARY)).with_context(|| format!("there is no {SUMMARY}"))?;
    broken.extend(contents_faults(summary, documents.keys()));
    broken.sort();
    if !broken.is_empty() {
        bail!("{} broken links\n{}", broken.len(), broken.join("\n"));
    }
    println!("links: {count} links of {} documents lead somewhere", documents.len());
    Ok(())
}

/// What the table of contents lacks, and what it lists twice. A dead link of it is broken as any other's.
fn contents_faults<'a>(summary: &Document, pages: impl Iterator<Item = &'a PathBuf>) -> Vec<String> {
    let mut listed: HashMap<PathBuf, usize> = HashMap::new();
    for link in &summary.links {
        *listed.entry(flatten(&Path::new("docs").join(link))).or_default() += 1;
    }
    let twice = listed.iter().filter(|(_, times)| **times > 1);
    let mut faults: Vec<_> =
        twice.map(|(page, times)| format!("{SUMMARY} lists {} {times} times", page.display())).collect();
    let own = pages.filter(|page| page.starts_with("docs") && *page != Path::new(SUMMARY));
    let missing = own.filter(|page| !listed.contains_key(*page));
    faults.extend(missing.map(|page| format!("{SUMMARY} does not list {}", page.display())));
    faults
}

/// Why a link leads nowhere. Links to other machines are not followed.
fn fault(
    root: &Path,
    from: &Path,
    link: &str,
    documents: &HashMap<PathBuf, Document>,
) -> Option<&'static str> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => from.to_owned(),
        _ => flatten(&from.parent().unwrap_or(Path::new("")).join(file)),
    };
    if !documents.contains_key(&target) && !root.join(&target).exists() {
        return Some("there is no such file");
    }
    let has_anchor = |document: &Document| document.anchors.contains(anchor);
    if anchor.is_empty() || documents.get(&target).is_none_or(has_anchor) {
        return None;
    }
    Some("there is no such heading")
}

/// The path without `.` and `..`.
fn flatten(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if flat.file_name().is_some() => {
                flat.pop();
            }
            other => flat.push(other),
        }
    }
    flat
}

fn read(text: &str) -> Document {
    let mut document = Document::default();
    let mut heading: Option<String> = None;
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                document.links.push(dest_url.into_string());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor(&heading.take().unwrap_or_default());
                let repeated = |n: &usize| !document.anchors.contains(&format!("{anchor}-{n}"));
                match document.anchors.contains(&anchor) {
                    true => document.anchors.extend((1..).find(repeated).map(|n| format!("{anchor}-{n}"))),
                    false => document.anchors.extend([anchor]),
                }
            }
            Event::Html(part) | Event::InlineHtml(part) => {
                let names = part.split(['<', '>']).filter_map(|tag| tag.split_once("id=\""));
                document
                    .anchors
                    .extend(names.filter_map(|(_, rest)| Some(rest.split_once('"')?.0.to_owned())));
            }
            _ => {}
        }
    }
    document
}

/// What GitHub calls a heading in links.
fn anchor(heading: &str) -> String {
    let lower = heading.trim().to_lowercase();
    let kept = lower.chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
    kept.map(|char| if char == ' ' { '-' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_called_as_github_calls_them() {
        let document = read("# What `exact` does, and why\n\n## Same\n\n## Same\n\n<a id=\"by-hand\"></a>\n");
        let anchors: Vec<_> = document.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["by-hand", "same", "same-1", "what-exact-does-and-why"]);
    }

    #[test]
    fn a_link_to_no_file_or_no_heading_is_broken() {
        let page = "# One\n\n[a](#one) [b](#two) [c](docs/nowhere.md) [d](https://example.org/x) [e](README.md#gone)";
        let documents = HashMap::from([
            (PathBuf::from("PAGE.md"), read(page)),
            (PathBuf::from("README.md"), read("# There")),
        ]);
        let links = &documents[Path::new("PAGE.md")].links;
        let faults: Vec<_> =
            links.iter().map(|link| fault(&root(), Path::new("PAGE.md"), link, &documents)).collect();
        let (file, heading) = (Some("there is no such file"), Some("there is no such heading"));
        assert_eq!(faults, [None, heading, file, None, heading]);
    }

    #[test]
    fn the_book_lists_each_page_of_docs_once() {
        let summary = read(
            "# Summary\n\n- [One](one.md)\n- [Up](../README.md)\n- [Two](lab/two.md)\n- [Again](one.md)\n",
        );
        let pages = ["docs/SUMMARY.md", "docs/one.md", "docs/lab/two.md", "docs/three.md", "README.md"];
        let pages: Vec<_> = pages.iter().map(PathBuf::from).collect();
        let faults = contents_faults(&summary, pages.iter());
        let expected =
            ["docs/SUMMARY.md lists docs/one.md 2 times", "docs/SUMMARY.md does not list docs/three.md"];
        assert_eq!(faults, expected);
    }

    #[test]
    fn a_link_goes_up_from_the_document_that_has_it() {
        assert_eq!(flatten(Path::new("docs/lab/../../clients/./README.md")), Path::new("clients/README.md"));
    }
}
