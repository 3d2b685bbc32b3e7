//! A server as far as the tests of remedies need one.

use std::collections::{HashMap, HashSet};

use onetrip_sql::purity::CATALOGUE_QUERY;

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
                    self.bound.insert(first.to_vec(), text);
                    said.extend(message(b'2', b""));
                }
                b'C' => said.extend(message(b'3', b"")),
                b'D' => said.extend(message(b'n', b"")),
                b'E' => {
                    let text = self.bound.get(first).cloned().unwrap_or_default();
                    self.runs(&text, true, &mut said);
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

    fn runs(&mut self, text: &[u8], is_extended: bool, said: &mut Vec<u8>) {
        let text = String::from_utf8_lossy(text).into_owned();
        self.texts.push(text.clone());
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
