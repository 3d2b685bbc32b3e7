//! A server as far as the tests of remedies need one.

use std::collections::{HashMap, HashSet};

use onetrip_sql::purity::{Acts, Column, Columns, Lookup, ObjectName, SessionQuestion, SmallDatabase};

use super::objects::Objects;
use super::walk::Walks;
use super::{PROCESS_ID, columns, complete, error, message, notification, ready};

/// It skips what follows an error in an extended group up to the next Sync, as the manual's "Message Flow" says, answers
/// the session's own questions, and counts what it runs besides transaction control and those.
#[derive(Debug)]
pub(crate) struct Server {
    /// BEGIN times out.
    pub(crate) begin_fails: bool,
    /// What COMMIT fails with, if it does.
    pub(crate) end_fails: Option<Vec<u8>>,
    pub(crate) level: &'static str,
    /// Transactions that do not say so are deferrable.
    pub(crate) is_deferrable: bool,
    /// ROLLBACK TO fails, as nothing makes it in a real server.
    pub(crate) shield_fails: bool,
    /// What every salary has been raised by.
    pub(crate) raise: u32,
    /// Each salary comes behind a notice.
    pub(crate) warns: bool,
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
    pub(crate) bound: HashMap<Vec<u8>, Bound>,
    pub(crate) listens: HashSet<String>,
    /// What a Parse of these texts fails with.
    pub(crate) refuses: HashMap<String, Vec<u8>>,
    /// The types of a text's parameters and the body of its RowDescription.
    pub(crate) describes: HashMap<String, (Vec<u32>, Option<Vec<u8>>)>,
    /// SQL has made a prepared statement.
    pub(crate) has_sql_statements: bool,
    /// The database has a function that knows cursors.
    pub(crate) moves_cursors: bool,
    /// It has one that may take strong locks, which a trigger may run.
    pub(crate) takes_locks: bool,
    /// Code of users may run where a statement is only parsed, and write.
    pub(crate) writes_unrun: bool,
    /// Its search path as it works out.
    pub(crate) path: &'static str,
    /// The number of its database.
    pub(crate) database: &'static str,
    /// The process that serves the session.
    pub(crate) process_id: u32,
    /// A digest of its settings.
    pub(crate) settings: &'static str,
    /// How long ago its process has read the configuration, in microseconds.
    pub(crate) configured_for: u64,
    pub(crate) walks: Walks,
    pub(crate) objects: Objects,
}

/// What a portal runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bound {
    /// With the value of its parameter, but for a question about the catalogue.
    text: Vec<u8>,
    /// What such a question is about.
    parameter: Option<String>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            begin_fails: false,
            end_fails: None,
            level: "read committed",
            is_deferrable: false,
            shield_fails: false,
            raise: 0,
            warns: false,
            is_special: false,
            ran: 0,
            ready: 0,
            texts: Vec::new(),
            skips: false,
            status: b'I',
            parsed: HashMap::new(),
            bound: HashMap::new(),
            listens: HashSet::new(),
            refuses: HashMap::new(),
            describes: HashMap::new(),
            has_sql_statements: false,
            moves_cursors: false,
            takes_locks: false,
            writes_unrun: false,
            path: "{pg_catalog,public}",
            database: "7000/16384",
            process_id: PROCESS_ID,
            settings: "1",
            configured_for: 86_400_000_000,
            walks: Walks::default(),
            objects: Objects::default(),
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
                b'P' if self.status == b'E' && !c_str(rest).0.starts_with(b"ROLLBACK") => {
                    self.fails(error("ERROR", "25P02", "current transaction is aborted"), &mut said);
                }
                b'P' if self.refused(rest).is_some() => {
                    self.parsed.remove(first);
                    let error = self.refused(rest).unwrap_or_default();
                    self.fails(error, &mut said);
                }
                b'P' => {
                    self.parsed.insert(first.to_vec(), c_str(rest).0.to_vec());
                    said.extend(message(b'1', b""));
                }
                b'B' if !self.parsed.contains_key(c_str(rest).0) => {
                    self.fails(error("ERROR", "26000", "prepared statement does not exist"), &mut said);
                }
                b'B' => {
                    let (statement, rest) = c_str(rest);
                    let text = self.parsed.get(statement).cloned().unwrap_or_default();
                    self.walks.opens(first);
                    self.bound.insert(first.to_vec(), Bound::new(text, rest));
                    said.extend(message(b'2', b""));
                }
                b'C' => said.extend(message(b'3', b"")),
                b'D' if self.is_walk(first) => said.extend(self.walks.describes()),
                b'D' => self.describe(first, &mut said),
                b'E' => {
                    let bound = self.bound.get(first).cloned().unwrap_or_default();
                    let limit = rest.try_into().map_or(0, u32::from_be_bytes);
                    if Walks::is_walk(&String::from_utf8_lossy(&bound.text))
                        || !self.bound.contains_key(first)
                    {
                        self.walks_on(first, limit, &mut said);
                    } else {
                        self.runs(&bound, true, &mut said);
                    }
                }
                b'F' => {
                    self.calls(body, &mut said);
                    self.get_ready(&mut said);
                }
                b'Q' => {
                    said.extend(description(&String::from_utf8_lossy(first)).unwrap_or_default());
                    self.runs(&Bound { text: first.to_vec(), parameter: None }, false, &mut said);
                    self.get_ready(&mut said);
                }
                _ => {}
            }
        }
        said
    }

    /// What a Parse with this text, and more behind it, fails with.
    fn refused(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.refuses.get(&*String::from_utf8_lossy(c_str(text).0)).cloned()
    }

    fn fails(&mut self, error: Vec<u8>, said: &mut Vec<u8>) {
        self.skips = true;
        if self.status == b'T' {
            self.status = b'E';
        }
        said.extend(error);
    }

    /// A letter for statement or portal, then the name.
    fn describe(&self, what: &[u8], said: &mut Vec<u8>) {
        let name = c_str(&what[1..]).0;
        let text = match what.starts_with(b"S") {
            true => self.parsed.get(name),
            false => self.bound.get(name).map(|bound| &bound.text),
        };
        let text = text.map(|text| String::from_utf8_lossy(text));
        let described = text.as_ref().and_then(|text| self.describes.get(&**text));
        if let Some((types, _)) = described.filter(|_| what.starts_with(b"S")) {
            let oids = types.iter().flat_map(|oid| oid.to_be_bytes());
            let body: Vec<u8> = (types.len() as u16).to_be_bytes().into_iter().chain(oids).collect();
            said.extend(message(b't', &body));
        }
        match described {
            Some((_, Some(row))) => said.extend(message(b'T', row)),
            _ => said.extend(
                description(text.as_deref().unwrap_or_default()).unwrap_or_else(|| message(b'n', b"")),
            ),
        }
    }

    /// Whether a Describe is about a portal of the result.
    fn is_walk(&self, what: &[u8]) -> bool {
        let portal = what.strip_prefix(b"P").and_then(|name| self.bound.get(name));
        portal.is_some_and(|bound| Walks::is_walk(&String::from_utf8_lossy(&bound.text)))
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

    fn calls(&mut self, body: &[u8], said: &mut Vec<u8>) {
        if self.status == b'E' {
            return said.extend(error("ERROR", "25P02", "current transaction is aborted"));
        }
        match self.objects.call(body) {
            Ok(value) => {
                said.extend(message(b'V', &[&(value.len() as u32).to_be_bytes(), &value[..]].concat()))
            }
            Err(error) => {
                self.status = if self.status == b'T' { b'E' } else { b'I' };
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
                let Ok(count) = self.walks.reads(name.as_bytes(), rows.parse().unwrap_or(1), &mut piece)
                else {
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

    fn runs(&mut self, bound: &Bound, is_extended: bool, said: &mut Vec<u8>) {
        let text = String::from_utf8_lossy(&bound.text).into_owned();
        self.texts.push(text.clone());
        if self.status == b'E' && !text.starts_with("ROLLBACK") {
            self.skips = is_extended;
            return said.extend(error("ERROR", "25P02", "current transaction is aborted"));
        }
        if self.uses_cursor(&text, said) {
            return;
        }
        if let Some(rows) = self.answer(&text, bound.parameter.as_deref()) {
            said.extend(rows.concat());
            return said.extend(complete(&format!("SELECT {}", rows.len())));
        }
        if let Some(rows) = self.rows(&text) {
            self.ran += 1;
            if self.warns {
                said.extend(super::notice());
            }
            let count = rows.len();
            rows.iter().for_each(|value| said.extend(super::row(value.to_string().as_bytes())));
            return said.extend(complete(&format!("SELECT {count}")));
        }
        if let Some(what) = text.strip_prefix("DEALLOCATE ") {
            return self.deallocates(what, said);
        }
        let upper = text.to_uppercase();
        if let Some(oid) = text.strip_prefix("SELECT lo_unlink(").and_then(|rest| rest.strip_suffix(')')) {
            self.objects.unlink(oid.parse().unwrap_or(0));
        }
        self.raise += u32::from(upper.starts_with("UPDATE SALARY"));
        if upper.starts_with("ROLLBACK TO") && self.shield_fails {
            self.skips = is_extended;
            self.status = b'E';
            return said.extend(error("ERROR", "XX000", "no way back"));
        }
        if upper.starts_with("ROLLBACK TO") && !self.objects.has_savepoint() {
            self.skips = is_extended;
            return said.extend(error("ERROR", "3B001", "savepoint does not exist"));
        }
        if upper.starts_with("ROLLBACK TO") {
            self.objects.rollback_to();
            self.status = b'T';
            return said.extend(complete("ROLLBACK"));
        }
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
            Some("COMMIT" | "ROLLBACK") => {
                self.objects.transaction_over();
                self.status = b'I';
            }
            Some("SAVEPOINT") => self.objects.savepoint(),
            Some("RELEASE") => self.objects.release(),
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

    fn deallocates(&mut self, what: &str, said: &mut Vec<u8>) {
        let name = what.trim_start_matches("PREPARE ").trim_matches('"').as_bytes();
        match what {
            "ALL" => self.parsed.retain(|name, _| name.is_empty()),
            _ => drop(self.parsed.remove(name)),
        }
        said.extend(complete(if what == "ALL" { "DEALLOCATE ALL" } else { "DEALLOCATE" }));
    }

    /// The rows that answer a question of the session's.
    fn answer(&self, text: &str, parameter: Option<&str>) -> Option<Vec<Vec<u8>>> {
        let truth = |is: bool| if is { "true" } else { "false" };
        let one = |row: &[&str]| {
            let row: Vec<Option<&[u8]>> = row.iter().map(|text| Some(text.as_bytes())).collect();
            Some(vec![columns(&row)])
        };
        if text == "SHOW transaction_isolation" {
            return one(&[self.level]);
        }
        if ["SET LOCAL jit TO off", "SET LOCAL statement_timeout TO 0"].contains(&text) {
            return Some(Vec::new());
        }
        if let Some(question) = SessionQuestion::of_sql(text) {
            return match question {
                SessionQuestion::Plain => Some(
                    [["0", "200ms"], ["off", "off"], ["0", "2ms"]]
                        .iter()
                        .filter_map(|row| one(row))
                        .flatten()
                        .collect(),
                ),
                SessionQuestion::State => {
                    let is_special = truth(self.is_special || !self.listens.is_empty());
                    one(&[self.path, "ann", is_special, self.database, &self.process_id.to_string()])
                }
                SessionQuestion::Settings => {
                    let is_deferrable = if self.is_deferrable { "on" } else { "off" };
                    one(&[self.settings, is_deferrable, &self.configured_for.to_string()])
                }
                SessionQuestion::Names => one(&[truth(self.has_sql_statements)]),
                SessionQuestion::Cursor(_) => one(&[truth(self.walks.is_scrollable)]),
            };
        }
        let rows = self.catalogue().answer(Lookup::of_sql(text)?, parameter)?;
        let bytes = |row: Vec<Option<String>>| {
            let row: Vec<Option<&[u8]>> = row.iter().map(|text| Some(text.as_ref()?.as_bytes())).collect();
            columns(&row)
        };
        Some(rows.into_iter().map(bytes).collect())
    }

    /// A database with the tables `emp` and `salary`, and a function `touch`.
    fn catalogue(&self) -> SmallDatabase {
        let table = |name: &str, columns: &[(&str, u32)]| Columns {
            relation: ObjectName::qualified("public", name),
            columns: (1..).zip(columns).map(|(number, (name, oid))| column(number, name, *oid)).collect(),
        };
        let emp = [("id", 23), ("photo", 26), ("name", self.walks.oid), ("walked", 23)];
        SmallDatabase {
            version: 150_000,
            tables: vec![
                (20_001, table("emp", &emp)),
                (20_002, table("salary", &[("emp", 23), ("pay", 23)])),
            ],
            functions: vec![("public".into(), "touch".into(), None)],
            moves_cursors: self.moves_cursors,
            acts: Acts {
                called: self.takes_locks,
                written: self.takes_locks,
                read: false,
                parsed: self.writes_unrun,
                login: false,
            },
        }
    }

    /// What the tables `emp` and `salary` hold.
    fn rows(&self, text: &str) -> Option<Vec<u32>> {
        if text.starts_with(PARENTS) || text.starts_with(PHOTOS) {
            return Some((1..=EMPLOYEES).map(|number| 3 * number).collect());
        }
        let id: u32 = text.split_once(" FROM salary WHERE emp = ")?.1.parse().ok()?;
        Some(vec![1000 + id + self.raise])
    }

    fn get_ready(&mut self, said: &mut Vec<u8>) {
        self.skips = false;
        self.ready += 1;
        said.extend(ready(self.status));
    }
}

/// The statement that a loop walks.
pub(crate) const PARENTS: &str = "SELECT id FROM emp";
/// The same numbers, as the oids of large objects.
pub(crate) const PHOTOS: &str = "SELECT photo FROM emp";
/// Rows of it.
pub(crate) const EMPLOYEES: u32 = 60;

/// The description of a result of one int4 column, for the statements of a loop, or of one oid.
fn description(text: &str) -> Option<Vec<u8>> {
    let is_known = text.starts_with(PARENTS) || text.contains(" FROM salary ");
    let column = b"\0\x01id\0\0\0\x40\0\0\x01\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    let photo = b"\0\x01photo\0\0\0\x4e\x21\0\x02\0\0\0\x1a\0\x04\xff\xff\xff\xff\0\0";
    let photos = text.starts_with(PHOTOS).then(|| message(b'T', photo));
    photos.or_else(|| is_known.then(|| message(b'T', column)))
}

impl Bound {
    /// A text with the first value of a Bind in place of `$1`; `rest` is what follows the names.
    fn new(text: Vec<u8>, rest: &[u8]) -> Self {
        let Some((&[0, 0, 0, 1, a, b, c, d], rest)) = rest.split_first_chunk::<8>() else {
            return Self { text, parameter: None };
        };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let value = String::from_utf8_lossy(&rest[..length]).into_owned();
        let text = String::from_utf8_lossy(&text).into_owned();
        match Lookup::of_sql(&text) {
            Some(_) => Self { text: text.into_bytes(), parameter: Some(value) },
            None => Self { text: text.replace("$1", &value).into_bytes(), parameter: None },
        }
    }
}

/// A column of a plain type; texts have the default collation.
fn column(number: i16, name: &str, type_oid: u32) -> Column {
    let collation_oid = if type_oid == 25 { 100 } else { 0 };
    Column {
        name: name.into(),
        number,
        type_oid,
        base_oid: 0,
        collation_oid,
        is_virtual: false,
        prefetch: None,
    }
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
