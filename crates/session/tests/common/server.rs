//! A server as far as the tests of remedies need one.

use std::collections::{HashMap, HashSet};

use onetrip_sql::purity::CATALOGUE_QUERY;

use super::walk::Walks;
use super::{columns, complete, error, message, notification, ready};

/// It skips what follows an error in an extended group up to the next Sync, as the manual's "Message Flow" says, answers
/// the session's own questions, and counts what it runs besides transaction control and those.
#[derive(Debug)]
pub(crate) struct Server {
    /// BEGIN times out.
    pub(crate) begin_fails: bool,
    /// What COMMIT fails with, if it does.
    pub(crate) end_fails: Option<Vec<u8>>,
    pub(crate) level: &'static str,
    /// The session has temporary objects or listens.
    pub(crate) is_special: bool,
    pub(crate) ran: u32,
    /// How often it said ReadyForQuery.
    pub(crate) ready: u32,
    /// Texts that it ran, the session's own among them.
    pub(crate) texts: Vec<String>,
    pub(crate) skips: bool,
    pub(crate) status: u8,
    /// Statements by name, and portals.
    pub(crate) parsed: HashMap<Vec<u8>, Vec<u8>>,
    pub(crate) bound: HashMap<Vec<u8>, Vec<u8>>,
    pub(crate) listens: HashSet<String>,
    pub(crate) walks: Walks,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            begin_fails: false,
            end_fails: None,
            level: "read committed",
            is_special: false,
            ran: 0,
            ready: 0,
            texts: Vec::new(),
            skips: false,
            status: b'I',
            parsed: HashMap::new(),
            bound: HashMap::new(),
            listens: HashSet::new(),
            walks: Walks::default(),
        }
    }
}

impl Server {
    /// What it says to these messages.
    pub(crate) fn takes(&mut self, sent: &[u8]) -> Vec<u8> {
        let mut said = Vec::new();
        for (tag, body) in messages(sent) {
            let (first, rest) = c_str(body);
            match tag {
                b'S' => self.get_ready(&mut said),
                _ if self.skips => {}
                b'P' => {
                    self.parsed.insert(first.to_vec(), c_str(rest).0.to_vec());
                    said.extend(message(b'1', b""));
                }
                b'B' => {
                    let text = self.parsed.get(c_str(rest).0).cloned().unwrap_or_default();
                    self.walks.opens(first);
                    self.bound.insert(first.to_vec(), text);
                    said.extend(message(b'2', b""));
                }
                b'C' => said.extend(message(b'3', b"")),
                b'D' if self.walks.places.contains_key(&rest_of(first)) => said.extend(self.walks.describes()),
                b'D' => said.extend(message(b'n', b"")),
                b'E' => {
                    let text = self.bound.get(first).cloned().unwrap_or_default();
                    let limit = rest.try_into().map_or(0, u32::from_be_bytes);
                    if Walks::is_walk(&String::from_utf8_lossy(&text)) || !self.bound.contains_key(first) {
                        self.walks_on(first, limit, &mut said);
                    } else {
                        self.runs(&text, true, &mut said);
                    }
                }
                b'Q' => {
                    self.runs(first, false, &mut said);
                    self.get_ready(&mut said);
                }
                _ => {}
            }
        }
        said
    }

    /// Runs a portal of the result, or a cursor by its name.
    fn walks_on(&mut self, portal: &[u8], limit: u32, said: &mut Vec<u8>) {
        if self.status == b'E' {
            self.skips = true;
            return said.extend(error("ERROR", "25P02", "current transaction is aborted"));
        }
        match self.walks.reads(portal, limit, said) {
            Ok(count) => said.extend(Walks::ends(count, limit)),
            Err(error) => {
                (self.skips, self.status) = (true, b'E');
                said.extend(error);
            }
        }
    }

    /// Runs DECLARE, FETCH or MOVE.
    fn uses_cursor(&mut self, text: &str, said: &mut Vec<u8>) -> bool {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["DECLARE", name, ..] => self.walks.opens(name.as_bytes()),
            ["FETCH", rows, "FROM", name] => {
                let mut piece = self.walks.describes();
                let Ok(count) = self.walks.reads(name.as_bytes(), rows.parse().unwrap_or(1), &mut piece) else {
                    return false;
                };
                said.extend(piece);
                said.extend(complete(&format!("FETCH {count}")));
                return true;
            }
            ["MOVE", "ABSOLUTE", place, "IN", name] => {
                let name = name.trim_matches('"').as_bytes().to_vec();
                self.walks.places.insert(name, place.parse().unwrap_or(0));
            }
            _ => return false,
        }
        said.extend(complete(words[0]));
        true
    }

    fn runs(&mut self, text: &[u8], is_extended: bool, said: &mut Vec<u8>) {
        let text = String::from_utf8_lossy(text).into_owned();
        self.texts.push(text.clone());
        if self.status == b'E' && !text.starts_with("ROLLBACK") {
            self.skips = is_extended;
            return said.extend(error("ERROR", "25P02", "current transaction is aborted"));
        }
        if self.uses_cursor(&text, said) {
            return;
        }
        if self.answers(&text, said) {
            return;
        }
        let upper = text.to_uppercase();
        let verbs = ["BEGIN", "START TRANSACTION", "SAVEPOINT", "RELEASE", "COMMIT", "ROLLBACK"];
        let verb = verbs.into_iter().find(|verb| upper.starts_with(verb));
        let fails = match verb {
            Some("COMMIT" | "ROLLBACK") => self.end_fails.clone(),
            Some(_) if self.begin_fails => {
                Some(error("ERROR", "57014", "canceling statement due to statement timeout"))
            }
            _ => None,
        };
        if let Some(error) = fails {
            self.skips = is_extended;
            return said.extend(error);
        }
        match verb {
            Some("ROLLBACK") if upper.starts_with("ROLLBACK TO") => self.status = b'T',
            Some("COMMIT" | "ROLLBACK") => self.status = b'I',
            Some(_) => self.status = b'T',
            None => self.ran += 1,
        }
        if upper.starts_with("LISTEN") {
            self.listens.insert(upper);
        }
        said.extend(complete(verb.unwrap_or("SELECT 1")));
        if self.status == b'I' && !self.listens.is_empty() {
            said.extend(notification());
        }
    }

    /// Answers a question of the session's.
    fn answers(&self, text: &str, said: &mut Vec<u8>) -> bool {
        let rows = if text == "SHOW transaction_isolation" {
            vec![columns(&[Some(self.level.as_bytes())])]
        } else if text.starts_with("SELECT is_scrollable") {
            let flag: &[u8] = if self.walks.is_scrollable { b"t" } else { b"f" };
            vec![columns(&[Some(flag)])]
        } else if text == CATALOGUE_QUERY {
            catalogue()
        } else if text.starts_with("SELECT pg_catalog.current_schemas(true)") {
            let is_special = self.is_special || !self.listens.is_empty();
            let special: &[u8] = if is_special { b"t" } else { b"f" };
            vec![columns(&[Some(b"{pg_catalog,public}"), Some(b"ann"), Some(special)])]
        } else {
            return false;
        };
        let count = rows.len();
        said.extend(rows.concat());
        said.extend(complete(&format!("SELECT {count}")));
        true
    }

    fn get_ready(&mut self, said: &mut Vec<u8>) {
        self.skips = false;
        self.ready += 1;
        said.extend(ready(self.status));
    }
}

/// A database with the tables `emp` and `salary`, and a function `touch`.
fn catalogue() -> Vec<Vec<u8>> {
    let rows: [[Option<&str>; 4]; 9] = [
        [Some("v"), None, Some("150000"), None],
        [Some("u"), None, Some("ann"), None],
        [Some("l"), None, Some("ann"), None],
        [Some("s"), None, Some("pg_catalog"), Some("1")],
        [Some("s"), None, Some("public"), Some("2")],
        [Some("d"), None, None, Some("")],
        [Some("r"), Some("public"), Some("emp"), Some("r")],
        [Some("r"), Some("public"), Some("salary"), Some("r")],
        [Some("f"), Some("public"), Some("touch"), Some("")],
    ];
    let bytes = |row: &[Option<&str>; 4]| {
        let mut row: Vec<Option<&[u8]>> = row.iter().map(|one| one.map(str::as_bytes)).collect();
        row.push(None);
        columns(&row)
    };
    rows.iter().map(bytes).collect()
}

/// The name behind the letter that tells a portal from a statement.
fn rest_of(described: &[u8]) -> Vec<u8> {
    described.get(1..).unwrap_or_default().to_vec()
}

fn c_str(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (&bytes[..end], bytes.get(end + 1..).unwrap_or_default())
}

/// The messages of a stream, by tag and body.
pub(crate) fn messages(mut stream: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&[tag, a, b, c, d], rest) = stream.split_first_chunk::<5>()?;
        let (body, rest) = rest.split_at(u32::from_be_bytes([a, b, c, d]) as usize - 4);
        stream = rest;
        Some((tag, body))
    })
}
