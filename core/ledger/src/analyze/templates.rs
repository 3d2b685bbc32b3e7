use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use onetrip_sql::{Comparisons, EqualityKey, Lifted, Lifter, Name, Shape, StatementKind};

use super::event::{Keys, SetLevel, TableId, TemplateFacts};
use super::purpose::{Purpose, is_catalogue, is_one_of, last_part, purpose_of};
use crate::TemplateTotals;
use crate::stacks::{Marks, marks_of};

/// Templates known at most; further ones are counted together.
const TEMPLATES_MAX: usize = 200_000;
/// Bytes of their texts, at most.
const TEMPLATE_BYTES_MAX: usize = 64 << 20;
/// Templates in which marks of ORMs are looked for, at most: each takes some microseconds.
const LOOKED_AT_MAX: usize = 10_000;
/// Words of a BEGIN that no server refuses, and of the end of a transaction that begins no other.
const BEGIN_WORDS: &[&str] = &[
    "begin",
    "start",
    "transaction",
    "work",
    "isolation",
    "level",
    "read",
    "committed",
    "uncommitted",
    "repeatable",
    "serializable",
    "only",
    "write",
    "not",
    "deferrable",
];
const END_WORDS: &[&str] = &["commit", "end", "rollback", "abort", "work", "transaction"];
const SERIALIZABLE: &[u8] = b"serializable";
/// Functions that are proven to only read, of those that programs use most.
const PLAIN_CALLS: &[&str] = &[
    "abs",
    "avg",
    "coalesce",
    "count",
    "exists",
    "greatest",
    "least",
    "length",
    "lower",
    "max",
    "min",
    "nullif",
    "row_number",
    "sum",
    "upper",
];
/// Label of what is counted together.
const OTHERS: &str = "(other statements)";

/// All templates of a trace under one id each, however many streams define them.
#[derive(Debug)]
pub(super) struct Templates {
    ids: HashMap<Arc<str>, u32>,
    list: Vec<Template>,
    /// Bytes of all texts.
    bytes: usize,
    /// Templates in which marks of ORMs were looked for.
    looked_at: usize,
    names: Names,
    lifter: Lifter,
}

/// Names of tables, schemas and columns under one id each; zero is unknown.
#[derive(Debug, Default)]
struct Names {
    ids: HashMap<Box<[u8]>, u32>,
}

/// Names of a template that its facts do not have: few templates are asked for them.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// Tables that are read, without their schemas.
    pub(super) tables: Vec<String>,
    /// Columns that are compared with a parameter, by the position of the parameter.
    pub(super) compared: Vec<(usize, String)>,
    /// Positions of parameters that say which part of the rows is wanted.
    pub(super) bounds: Vec<usize>,
}

#[derive(Debug)]
struct Template {
    text: Arc<str>,
    facts: TemplateFacts,
    named: OnceCell<Box<Named>>,
    totals: TemplateTotals,
    /// Why it is not known to only read.
    impure: Option<Box<str>>,
    /// ORMs that may have written it, if anybody asked.
    marks: Option<Box<Marks>>,
}

impl Default for Templates {
    fn default() -> Self {
        let others = Template {
            text: OTHERS.into(),
            facts: TemplateFacts::default(),
            named: OnceCell::new(),
            totals: TemplateTotals::default(),
            impure: None,
            marks: None,
        };
        let (names, lifter) = (Names::default(), Lifter::new());
        Self { ids: HashMap::new(), list: vec![others], bytes: 0, looked_at: 0, names, lifter }
    }
}

impl Templates {
    /// The id of a template's text; zero where there are too many.
    pub(super) fn intern(&mut self, text: &[u8]) -> u32 {
        let text = String::from_utf8_lossy(text);
        if let Some(id) = self.ids.get(text.as_ref()) {
            return *id;
        }
        if self.list.len() > TEMPLATES_MAX || self.bytes + text.len() > TEMPLATE_BYTES_MAX {
            return 0;
        }
        self.bytes += text.len();
        let facts = self.facts_of(text.as_bytes());
        let text: Arc<str> = text.into();
        let id = self.list.len() as u32;
        self.list.push(Template {
            text: Arc::clone(&text),
            facts,
            named: OnceCell::new(),
            totals: TemplateTotals::default(),
            impure: None,
            marks: None,
        });
        self.ids.insert(text, id);
        id
    }

    pub(super) fn facts(&self, id: u32) -> TemplateFacts {
        self.list[id as usize].facts
    }

    /// Names in the template.
    pub(super) fn named(&self, id: u32) -> &Named {
        let template = &self.list[id as usize];
        template.named.get_or_init(|| {
            let text = template.text.as_bytes();
            let Comparisons { columns, bounds } = Comparisons::of(text);
            let position = |parameter: u32| usize::try_from(parameter).ok()?.checked_sub(1);
            let column = |key: &EqualityKey<'_>| Some((position(key.parameter)?, last_part(key.column)));
            Box::new(Named {
                tables: Shape::of(text).tables.iter().map(|table| last_part(*table)).collect(),
                compared: columns.iter().filter_map(column).collect(),
                bounds: bounds.iter().filter_map(|parameter| position(*parameter)).collect(),
            })
        })
    }

    pub(super) fn text(&self, id: u32) -> String {
        (*self.list[id as usize].text).to_owned()
    }

    /// ORMs that may have written the template; looked for once, and in the first templates only.
    pub(super) fn marks(&mut self, id: u32) -> &Marks {
        let template = &mut self.list[id as usize];
        template.marks.get_or_insert_with(|| {
            self.looked_at += 1;
            let is_looked_at = id != 0 && self.looked_at <= LOOKED_AT_MAX;
            Box::new(if is_looked_at { marks_of(&template.text) } else { Marks::default() })
        })
    }

    /// A gateway tells why statements of this template are not known to only read.
    pub(super) fn set_impure(&mut self, id: u32, because: &[u8]) {
        let template = &mut self.list[id as usize];
        template.impure.get_or_insert_with(|| String::from_utf8_lossy(because).into());
    }

    /// Why statements of this template are not known to only read, if a gateway has told.
    pub(super) fn impure(&self, id: u32) -> Option<&str> {
        self.list[id as usize].impure.as_deref()
    }

    /// What statements of this template spent so far, for adding to it.
    pub(super) fn totals_mut(&mut self, id: u32) -> &mut TemplateTotals {
        &mut self.list[id as usize].totals
    }

    /// What all templates spent, most trips first.
    pub(super) fn totals(&self) -> Vec<TemplateTotals> {
        let used = self.list.iter().filter(|template| template.totals.executions + template.totals.trips > 0);
        let mut totals: Vec<_> = used
            .map(|template| TemplateTotals { text: template.text.to_string(), ..template.totals.clone() })
            .collect();
        totals.sort_by(|a, b| (b.trips, b.executions, &a.text).cmp(&(a.trips, a.executions, &b.text)));
        totals
    }

    fn facts_of(&mut self, text: &[u8]) -> TemplateFacts {
        let lifted = self.lifter.lift_template(text);
        let facts = lifted.facts();
        let shape = Shape::of(lifted.template());
        let keyed = with_equal_signs(lifted.template());
        let keys = keyed.as_deref().map_or_else(|| shape.keys.clone(), |keyed| Shape::of(keyed).keys);
        let purpose = purpose_of(&lifted, &shape);
        let catalogue = lifted.table().is_some_and(is_catalogue);
        let kind = facts.kind;
        let is_plain_call = |call: &Name<'_>| PLAIN_CALLS.contains(&last_part(*call).as_str());
        let is_plain_read = purpose == Purpose::Read
            && shape.calls.iter().all(is_plain_call)
            && !shape.tables.iter().any(|table| is_catalogue(*table));
        let words = || words_of(lifted.template());
        let one_table = matches!(shape.tables.as_slice(), [_]) || facts.kind.is_row_write();
        TemplateFacts {
            kind: facts.kind,
            purpose,
            reads_table: purpose == Purpose::Read && !catalogue,
            table: lifted.table().map_or(TableId::default(), |table| self.names.table(table)),
            one_table: one_table && !shape.has_with,
            snapshot: kind == StatementKind::Begin && has_word(&lifted, SNAPSHOTS),
            sets_level: (kind == StatementKind::Set).then(|| set_level(&lifted)).flatten(),
            is_plain_control: kind.is_transaction_control() && is_plain_control(kind, words()),
            savepoint: match kind {
                StatementKind::Savepoint | StatementKind::Release => {
                    words().last().map_or(0, |name| self.names.id(name))
                }
                _ => 0,
            },
            names_serializable: lifted
                .template()
                .windows(SERIALIZABLE.len())
                .any(|word| word.eq_ignore_ascii_case(SERIALIZABLE)),
            is_plain_read,
            skips_locked: shape.skips_locked,
            changes_meaning: facts.into
                || words().next().is_some_and(|verb| verb.eq_ignore_ascii_case(b"use"))
                || kind == StatementKind::Select && lifted.template().windows(2).any(|mark| mark == b":="),
            keys: Keys::new(keys.iter().filter_map(|key| {
                let position =
                    key.parameter.checked_sub(1).and_then(|position| u16::try_from(position).ok())?;
                Some((self.names.id(&key.column.folded().collect::<Vec<u8>>()), position))
            })),
        }
    }
}

impl Names {
    fn id(&mut self, name: &[u8]) -> u32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        if name.is_empty() || self.ids.len() >= TEMPLATES_MAX {
            return 0;
        }
        let id = self.ids.len() as u32 + 1;
        self.ids.insert(name.into(), id);
        id
    }

    fn table(&mut self, name: Name<'_>) -> TableId {
        let folded: Vec<u8> = name.folded().collect();
        match folded.iter().rposition(|byte| *byte == b'.') {
            Some(dot) => TableId { schema: self.id(&folded[..dot]), name: self.id(&folded[dot + 1..]) },
            None => TableId { schema: 0, name: self.id(&folded) },
        }
    }
}

/// `IN ($1)` is `= $1`, as ORMs write it for a list of one: the template with the latter; `None` where it has none of these.
fn with_equal_signs(template: &[u8]) -> Option<Vec<u8>> {
    const LIST: &[u8] = b" IN ($";
    let mut changed: Option<Vec<u8>> = None;
    let mut rest = template;
    while let Some(place) = rest.windows(LIST.len()).position(|words| words.eq_ignore_ascii_case(LIST)) {
        let (before, list) = rest.split_at(place);
        let digits = list[LIST.len()..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let end = LIST.len() + digits;
        let is_one = digits > 0 && list.get(end) == Some(&b')');
        let out = changed.get_or_insert_default();
        out.extend_from_slice(before);
        if is_one {
            out.extend_from_slice(b" = $");
            out.extend_from_slice(&list[LIST.len()..end]);
            rest = &list[end + 1..];
        } else {
            out.extend_from_slice(LIST);
            rest = &list[LIST.len()..];
        }
    }
    changed.map(|mut out| {
        out.extend_from_slice(rest);
        out
    })
}

/// Words of a template, without what ends it and what stands between its modes.
fn words_of(template: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    template
        .split(|byte| byte.is_ascii_whitespace() || matches!(byte, b';' | b','))
        .filter(|word| !word.is_empty())
}

/// Whether a statement that begins, divides or ends a transaction cannot be refused in the right place for its words, as the
/// remedies read them.
fn is_plain_control<'t>(kind: StatementKind, words: impl Iterator<Item = &'t [u8]> + Clone) -> bool {
    match kind {
        StatementKind::Begin => words.clone().all(|word| is_one_of(word, BEGIN_WORDS)),
        StatementKind::Commit | StatementKind::Rollback => {
            words.clone().all(|word| is_one_of(word, END_WORDS))
        }
        StatementKind::Savepoint | StatementKind::Release => words.last().is_some_and(is_sure_name),
        _ => false,
    }
}

/// A name that is no keyword: it is quoted or has a digit.
fn is_sure_name(name: &[u8]) -> bool {
    let unquoted = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\""));
    let is_word = |name: &[u8]| name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    match unquoted {
        Some(name) => is_word(name),
        None => is_word(name) && name.iter().any(u8::is_ascii_digit),
    }
}

/// Words of a level at which the reads of a transaction see the same state: `REPEATABLE READ`, `SERIALIZABLE`, and MySQL's
/// `WITH CONSISTENT SNAPSHOT`.
const SNAPSHOTS: &[&str] = &["repeatable", "serializable", "consistent"];

fn has_word(statement: &Lifted<'_>, wanted: &[&str]) -> bool {
    let mut words = statement.template().split(|byte| !byte.is_ascii_alphabetic());
    words.any(|word| is_one_of(word, wanted))
}

/// `SET TRANSACTION …`, `SET SESSION TRANSACTION …` and `SET SESSION CHARACTERISTICS AS TRANSACTION …`.
fn set_level(set: &Lifted<'_>) -> Option<SetLevel> {
    let sets =
        has_word(set, &["transaction"]) && has_word(set, &["isolation"]) && !has_word(set, &["global"]);
    sets.then(|| SetLevel { is_snapshot: has_word(set, SNAPSHOTS), of_session: has_word(set, &["session"]) })
}
