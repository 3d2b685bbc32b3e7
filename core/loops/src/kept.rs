//! What was learned, as text that a file can keep: hashes of statements, numbers of columns and counts, no values.
//!
//! ```text
//! onetrip-learned 1 PROBE
//! FROM TO WALK HITS MISSES WASTE JUDGED OFF_FOR OFF_TIMES LOOPS PLACE PLACE ...
//! end COUNT CHECKSUM
//! ```
//!
//! A place lists what its parameter may come from, split by `/`. `c0.3` is a column and how many levels up, `p2` is a
//! parameter. `s0+10` is a parameter and so much more each time, `=` is what it was last. Filters are left out: they hold
//! hashes of values.

use std::fmt::Write;
use std::hash::BuildHasher;

use foldhash::quality::FixedState;
use smallvec::SmallVec;

use crate::edge::{CANDIDATES_MAX, Edge, Source, Walk};
use crate::edges::{EDGES_MAX, Edges};
use crate::filter::Filter;
use crate::history::History;

/// Longest text that is written or read.
pub const KEPT_BYTES_MAX: usize = 1 << 20;

const NAME: &str = "onetrip-learned";
const VERSION: u32 = 1;
/// Parameters of one statement; more are never guessed.
const PLACES_MAX: usize = 64;

/// Text that holds nothing which can be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadKept {
    /// It is something else.
    Foreign,
    /// It was written by a version that says it otherwise.
    Version,
    /// It is not whole: the number of the first line that is wrong.
    Damaged(usize),
}

impl Edges {
    /// What was confirmed, as text; where there is too much, what was of most use.
    pub fn to_text(&self) -> String {
        let mut text = format!("{NAME} {VERSION} {:016x}\n", probe());
        let mut kept: Vec<&Edge> = self.iter().filter(|edge| edge.is_confirmed).collect();
        kept.sort_by_key(|edge| std::cmp::Reverse(edge.history.weight()));
        let mut count = 0;
        for edge in kept {
            let line = line_of(edge);
            if text.len() + line.len() > KEPT_BYTES_MAX - 64 || edge.places.len() > PLACES_MAX {
                continue;
            }
            text.push_str(&line);
            count += 1;
        }
        let checksum = checksum(text.as_bytes());
        // Writing to a String does not fail.
        let _ = writeln!(text, "end {count} {checksum:016x}");
        text
    }

    /// What [`Self::to_text`] wrote. No text at all is nothing learnt.
    ///
    /// # Errors
    ///
    /// Anything else.
    pub fn from_text(text: &[u8]) -> Result<Self, BadKept> {
        let mut edges = Self::new();
        if text.is_empty() {
            return Ok(edges);
        }
        let (version, probed) = header_of(text).ok_or(BadKept::Foreign)?;
        if version != VERSION || probed != probe() {
            return Err(BadKept::Version);
        }
        let mut at = 0;
        let mut count = 0;
        for (number, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let damaged = BadKept::Damaged(number + 1);
            let words =
                std::str::from_utf8(line).ok().and_then(|line| line.strip_suffix('\n')).ok_or(damaged)?;
            if let Some(end) = words.strip_prefix("end ") {
                let is_whole = end == format!("{count} {:016x}", checksum(&text[..at]));
                return if is_whole && at + line.len() == text.len() { Ok(edges) } else { Err(damaged) };
            }
            if number > 0 {
                let edge = edge_of(words).filter(|_| count < EDGES_MAX).ok_or(damaged)?;
                count += 1;
                if edges.find(edge.from, edge.to, edge.walk).is_none() {
                    edges.insert(edge);
                }
            }
            at += line.len();
        }
        let lines = text.split_inclusive(|byte| *byte == b'\n').count();
        Err(BadKept::Damaged(lines + 1)) // the end is missing
    }
}

/// The version, and the number by which equal hashes are told.
fn header_of(text: &[u8]) -> Option<(u32, u64)> {
    let line = text.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    if words.next()? != NAME {
        return None;
    }
    let version = words.next()?.parse().ok()?;
    // Of another version it may be anything.
    let probed = words.next().and_then(|word| u64::from_str_radix(word, 16).ok()).unwrap_or_default();
    Some((version, probed))
}

/// Statements are known by their hashes: another way of hashing knows none of them.
fn probe() -> u64 {
    checksum(NAME.as_bytes())
}

fn checksum(bytes: &[u8]) -> u64 {
    FixedState::default().hash_one(bytes)
}

fn line_of(edge: &Edge) -> String {
    let walk = match edge.walk {
        Walk::Rows => "rows",
        Walk::Last => "last",
        Walk::Steps => "steps",
    };
    let mut line = format!("{:016x} {:016x} {walk} {}", edge.from, edge.to, edge.history.to_text());
    for candidates in &edge.places {
        let sources: Vec<String> = candidates.iter().map(text_of).collect();
        line.push(' ');
        line.push_str(&sources.join("/"));
    }
    line.push('\n');
    line
}

fn edge_of(line: &str) -> Option<Edge> {
    let mut words = line.split(' ');
    let mut hash = || u64::from_str_radix(words.next()?, 16).ok();
    let (from, to) = (hash()?, hash()?);
    let walk = match words.next()? {
        "rows" => Walk::Rows,
        "last" => Walk::Last,
        "steps" => Walk::Steps,
        _ => return None,
    };
    let history = History::of_text(&mut words)?;
    let place = |word: &str| -> Option<SmallVec<[Source; 4]>> {
        let sources: Option<SmallVec<[Source; 4]>> = word.split('/').map(source_of).collect();
        sources.filter(|sources| sources.len() <= CANDIDATES_MAX)
    };
    let places: Vec<_> = words.map(place).collect::<Option<_>>()?;
    let filter = Filter::default();
    let edge = Edge { from, to, walk, places, is_confirmed: true, failures: 0, history, filter };
    (edge.places.len() <= PLACES_MAX && edge.moves()).then_some(edge)
}

fn text_of(source: &Source) -> String {
    match source {
        Source::Column { up, column } => format!("c{up}.{column}"),
        Source::Parameter { index } => format!("p{index}"),
        Source::Step { index, step } => format!("s{index}{step:+}"),
        Source::Same => "=".to_owned(),
    }
}

fn source_of(text: &str) -> Option<Source> {
    if text == "=" {
        return Some(Source::Same);
    }
    if let Some(column) = text.strip_prefix('c') {
        let (up, column) = column.split_once('.')?;
        let up = up.parse().ok().filter(|up| *up <= 1)?;
        return Some(Source::Column { up, column: column.parse().ok()? });
    }
    if let Some(index) = text.strip_prefix('p') {
        return Some(Source::Parameter { index: index.parse().ok()? });
    }
    let text = text.strip_prefix('s')?;
    let (index, step) = text.split_at(text.find(['+', '-'])?);
    Some(Source::Step { index: index.parse().ok()?, step: step.parse().ok().filter(|step| *step != 0)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: u64, to: u64, hits: u32) -> Edge {
        let line = format!("{from:016x} {to:016x} rows {hits} 2 125 70 0 1 30,12+ c0.3/c1.0/= s0-10 p2/= =");
        edge_of(&line).unwrap()
    }

    fn some(count: u64) -> Edges {
        let mut edges = Edges::new();
        for n in 0..count {
            edges.insert(edge(n, 1000 + n, 10 + n as u32));
        }
        edges
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        for count in [0, 1, 300, EDGES_MAX as u64] {
            let text = some(count).to_text();
            let read = Edges::from_text(text.as_bytes()).unwrap();
            assert_eq!((read.len() as u64, read.to_text()), (count, text));
        }
        assert!(Edges::from_text(b"").unwrap().is_empty());
    }

    #[test]
    fn what_was_seen_once_is_left_out() {
        let mut edges = some(1);
        edges.insert(Edge { is_confirmed: false, ..edge(7, 8, 0) });
        assert_eq!(Edges::from_text(edges.to_text().as_bytes()).unwrap().len(), 1);
    }

    #[test]
    fn any_byte_that_is_lost_or_changed_is_noticed() {
        let text = some(3).to_text().into_bytes();
        for at in 0..text.len() {
            if at > 0 {
                assert!(Edges::from_text(&text[..at]).is_err(), "cut at {at}");
            }
            for other in [b'0', b'7', b' ', b'\n', 0, 0xff] {
                let mut changed = text.clone();
                changed[at] = other;
                assert!(changed == text || Edges::from_text(&changed).is_err(), "{at}: {other}");
            }
        }
        let twice = [&text[..], &text[..]].concat();
        assert_eq!(Edges::from_text(&twice).unwrap_err(), BadKept::Damaged(5));
    }

    #[test]
    fn another_version_and_another_kind_of_file_are_told_apart() {
        let text = some(1).to_text();
        let newer = text.replacen("learned 1 ", "learned 2 ", 1);
        assert_eq!(Edges::from_text(newer.as_bytes()).unwrap_err(), BadKept::Version);
        let hashed_otherwise = text.replacen(&format!("{:016x}", probe()), "0123456789abcdef", 1);
        assert_eq!(Edges::from_text(hashed_otherwise.as_bytes()).unwrap_err(), BadKept::Version);
        assert_eq!(Edges::from_text(b"{\"a\": 1}\n").unwrap_err(), BadKept::Foreign);
    }

    #[test]
    fn the_text_has_a_bound_and_keeps_what_was_of_most_use() {
        let mut edges = Edges::new();
        let many =
            ["c0.65535/c1.65535/s60000+4611686018427387904/p65535/p65534/p65533/p65532/="; 64].join(" ");
        for n in 0..EDGES_MAX as u64 {
            let line = format!("{n:016x} {:016x} rows {n} 0 0 0 0 0 - {many}", 5000 + n);
            edges.insert(edge_of(&line).unwrap());
        }
        let text = edges.to_text();
        assert!(text.len() <= KEPT_BYTES_MAX);
        let read = Edges::from_text(text.as_bytes()).unwrap();
        assert!(
            (10..EDGES_MAX).contains(&read.len())
                && read.is_known(EDGES_MAX as u64 - 1, 5000 + EDGES_MAX as u64 - 1)
        );
    }
}
