//! Looks names up in a database: which questions to ask, what their rows say, and what comes of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::str::from_utf8;

use super::builtin;
use super::facts::{
    Acts, Column, Columns, DatabaseFact, FunctionFact, OperatorFact, RelationFact, Side, TypeFact,
    UserFunction, UserOperator,
};
use super::lookup::{Lookup, Question, array, oids};
use super::needs::ObjectName;
use super::views::{self, Called, Judge, Seen, View};

/// Most rows of one survey. A database that gives more is not judged.
pub const SURVEY_ROWS_MAX: usize = 20_000;

/// Most bytes of a survey's columns.
pub const SURVEY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The first object id that is not the server's own (`FirstNormalObjectId`).
const USERS_FROM: u32 = 16_384;

/// What is to be looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    pub(super) database: bool,
    pub(super) relations: BTreeSet<Box<str>>,
    pub(super) functions: BTreeSet<Box<str>>,
    pub(super) operators: BTreeSet<Box<str>>,
    pub(super) types: BTreeSet<Box<str>>,
    /// Relations by object id.
    pub(super) columns: BTreeSet<u32>,
    pub(super) cursors: bool,
    pub(super) locks: bool,
}

impl Wanted {
    /// What functions of users may do.
    pub fn of_acts() -> Self {
        Self { locks: true, ..Self::default() }
    }

    /// Whether there is nothing to look up.
    pub fn is_empty(&self) -> bool {
        !(self.database || self.cursors || self.locks) && self.len() == 0
    }

    /// Adds what another one wants.
    pub fn add(&mut self, other: Self) {
        self.database |= other.database;
        self.relations.extend(other.relations);
        self.functions.extend(other.functions);
        self.operators.extend(other.operators);
        self.types.extend(other.types);
        self.columns.extend(other.columns);
        self.cursors |= other.cursors;
        self.locks |= other.locks;
    }

    /// How many names and numbers it holds.
    pub fn len(&self) -> usize {
        self.relations.len()
            + self.functions.len()
            + self.operators.len()
            + self.types.len()
            + self.columns.len()
    }
}

/// Why nothing is found out; without that, every statement is unsafe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SurveyError {
    /// The answers are longer than what is judged.
    #[error("the database says more than is judged")]
    TooLarge,
    /// A row is not one of the question's, or not UTF-8.
    #[error("a row of the catalogue is malformed")]
    Malformed,
    /// The server's version is outside of 12 to 18 (here as `server_version_num`).
    #[error("server version {0} is not known")]
    Version(u32),
}

/// Asks until everything that was wanted is known: an answer may lead to more questions.
///
/// Ask what [`Self::questions`] gives, hand every row to [`Self::row`], and repeat until there are none.
#[derive(Debug, Default)]
pub struct Survey {
    wanted: Wanted,
    asked: Wanted,
    asked_types: BTreeSet<u32>,
    wanted_types: BTreeSet<u32>,
    asked_views: BTreeSet<u32>,
    wanted_views: BTreeSet<u32>,
    rows: usize,
    bytes: usize,
    database: Option<Database>,
    relations: Vec<Relation>,
    functions: HashMap<Box<str>, Functions>,
    operators: HashMap<Box<str>, Operators>,
    type_names: HashMap<Box<str>, TypeFact>,
    types: HashMap<u32, Type>,
    views: HashMap<u32, View>,
    columns: HashMap<u32, Columns>,
    has_cursor_functions: bool,
    acts: Option<Acts>,
}

/// What was found out about what was wanted.
#[derive(Debug, Default)]
pub struct Findings {
    pub(super) database: Option<DatabaseFact>,
    pub(super) relations: BTreeMap<Box<str>, Vec<RelationFact>>,
    pub(super) functions: BTreeMap<Box<str>, FunctionFact>,
    pub(super) operators: BTreeMap<Box<str>, OperatorFact>,
    pub(super) types: BTreeMap<Box<str>, TypeFact>,
    pub(super) columns: BTreeMap<u32, Option<Columns>>,
    pub(super) cursors: Option<bool>,
}

#[derive(Debug, Default)]
struct Database {
    has_version: bool,
    casts: Vec<Cast>,
    /// Types that a user's operator class sorts, compares or hashes.
    classes: Vec<u32>,
    is_answered_elsewhere: bool,
}

#[derive(Debug)]
struct Cast {
    source: u32,
    target: u32,
    is_implicit: bool,
    calls_user: bool,
}

/// A relation, as the server describes it.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    pub(super) name: ObjectName,
    pub(super) oid: u32,
    pub(super) is_view: bool,
    pub(super) refusal: Option<&'static str>,
    pub(super) types: Vec<u32>,
}

#[derive(Debug, Default)]
struct Functions {
    digest: Option<i128>,
    acts_on_one: bool,
    /// Schema, whether it takes one argument, and the type of the first.
    users: Vec<(Box<str>, bool, u32)>,
}

#[derive(Debug, Default)]
struct Operators {
    digest: Option<i128>,
    /// Schema, and the types of the operands.
    users: Vec<(Box<str>, u32, u32)>,
}

#[derive(Debug)]
struct Type {
    name: Box<str>,
    /// Of its element if it is an array.
    element: Option<u32>,
    /// Of the element if it is an array.
    kind: u8,
}

/// What a type is to a statement. An array is what its elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Built in, and its output is computed from the value.
    Plain,
    /// Built in, and its output may look into the catalogue.
    Catalogue,
    Enum,
    /// A row of a table, or a composite.
    Row,
    /// Its base type turns into it by itself.
    Domain,
    /// Any other of a user.
    User,
}

impl Survey {
    /// A survey of what is wanted.
    pub fn new(wanted: Wanted) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// What to ask next, all at once; nothing once all is known.
    pub fn questions(&mut self) -> Vec<Question> {
        let wanted = std::mem::take(&mut self.wanted);
        let mut questions = Vec::new();
        let mut ask = |lookup, parameter| questions.push(Question { lookup, parameter });
        if wanted.database {
            ask(Lookup::Database, None);
        }
        let names = [
            (Lookup::Relations, &wanted.relations),
            (Lookup::Functions, &wanted.functions),
            (Lookup::Operators, &wanted.operators),
            (Lookup::TypeNames, &wanted.types),
        ];
        for (lookup, names) in names.into_iter().filter(|(_, names)| !names.is_empty()) {
            ask(lookup, Some(array(names)));
        }
        let new_types: BTreeSet<u32> = self.wanted_types.difference(&self.asked_types).copied().collect();
        let new_views: BTreeSet<u32> = self.wanted_views.difference(&self.asked_views).copied().collect();
        let numbers =
            [(Lookup::Types, &new_types), (Lookup::Views, &new_views), (Lookup::Columns, &wanted.columns)];
        for (lookup, oids) in numbers.into_iter().filter(|(_, oids)| !oids.is_empty()) {
            ask(lookup, Some(array(oids.iter().map(ToString::to_string))));
        }
        if wanted.cursors {
            ask(Lookup::Cursors, None);
        }
        if wanted.locks {
            ask(Lookup::Locks, None);
        }
        self.asked_types.extend(new_types);
        self.asked_views.extend(new_views);
        self.asked.add(wanted);
        questions
    }

    /// Takes one row of the answer to a question, in text format; `None` is NULL.
    ///
    /// # Errors
    ///
    /// [`SurveyError`]; the survey is of no use afterwards.
    pub fn row(&mut self, lookup: Lookup, columns: &[Option<&[u8]>]) -> Result<(), SurveyError> {
        self.rows += 1;
        self.bytes += columns.iter().flatten().map(|column| column.len()).sum::<usize>();
        if self.rows > SURVEY_ROWS_MAX || self.bytes > SURVEY_BYTES_MAX {
            return Err(SurveyError::TooLarge);
        }
        let columns: Option<Vec<Option<&str>>> = columns
            .iter()
            .map(|column| column.map_or(Some(None), |bytes| from_utf8(bytes).ok().map(Some)))
            .collect();
        let columns = columns.ok_or(SurveyError::Malformed)?;
        if let (Lookup::Database, [Some("v"), Some(version), ..]) = (lookup, columns.as_slice()) {
            let version: u32 = version.parse().map_err(|_| SurveyError::Malformed)?;
            if !(120_000..190_000).contains(&version) {
                return Err(SurveyError::Version(version));
            }
            self.database.get_or_insert_default().has_version = true;
            return Ok(());
        }
        self.take(lookup, &columns).ok_or(SurveyError::Malformed)
    }

    fn take(&mut self, lookup: Lookup, columns: &[Option<&str>]) -> Option<()> {
        match (lookup, columns) {
            (Lookup::Database, [Some(kind), Some(id), target, context, function]) => {
                self.take_database(kind, id, [*target, *context, *function])
            }
            (Lookup::Relations, [Some(schema), Some(name), Some(oid), Some(flags), Some(types)]) => {
                let name = ObjectName::qualified(schema, name);
                self.take_relation(Relation::parse(name, oid, flags, types)?);
                Some(())
            }
            (Lookup::Functions, [Some(kind), schema, Some(name), Some(flags), Some(detail)]) => {
                self.take_function(kind, *schema, name, flags, detail)
            }
            (Lookup::Operators, [Some(kind), schema, Some(name), Some(left), right]) => {
                self.take_operator(kind, *schema, name, left, *right)
            }
            (Lookup::TypeNames, [Some(schema), Some(name), Some(oid), Some(kind)]) => {
                let oid: u32 = oid.parse().ok()?;
                let fact = self.type_names.entry((*name).into()).or_default();
                match oid < USERS_FROM {
                    true if *schema == "pg_catalog" => fact.built_in = oid,
                    true => fact.users.push(((*schema).into(), false)),
                    false => fact.users.push(((*schema).into(), *kind == "e")),
                }
                Some(())
            }
            (Lookup::Types, [Some(oid), Some(name), element, Some(kind)]) => {
                let element =
                    element.filter(|element| !element.is_empty()).map(str::parse).transpose().ok()?;
                let found = Type { name: (*name).into(), element, kind: *kind.as_bytes().first()? };
                self.types.insert(oid.parse().ok()?, found);
                Some(())
            }
            (Lookup::Views, [Some(kind), schema, name, Some(flags), Some(detail)]) => {
                self.take_view(kind, *schema, *name, flags, detail)
            }
            (Lookup::Columns, [Some(relation), Some(schema), Some(table), rest @ ..]) => {
                let entry = self.columns.entry(relation.parse().ok()?).or_insert_with(|| Columns {
                    relation: ObjectName::qualified(schema, table),
                    columns: Vec::new(),
                });
                entry.columns.push(column(rest)?);
                Some(())
            }
            (Lookup::Cursors, [Some(has_any)]) => {
                self.has_cursor_functions = *has_any != "false";
                Some(())
            }
            (Lookup::Locks, [Some(called), Some(written), Some(read), Some(parsed), Some(login)]) => {
                let [called, written, read, parsed, login] =
                    [called, written, read, parsed, login].map(|may| *may != "false");
                self.acts = Some(Acts { called, written, read, parsed, login });
                Some(())
            }
            _ => None,
        }
    }

    fn take_database(&mut self, kind: &str, id: &str, rest: [Option<&str>; 3]) -> Option<()> {
        let wanted_types = &mut self.wanted_types;
        let database = self.database.get_or_insert_default();
        match (kind, rest) {
            ("c", [Some(target), Some(context), Some(function)]) => {
                let (source, target) = (id.parse().ok()?, target.parse().ok()?);
                let calls_user = function.parse::<u32>().ok()? >= USERS_FROM;
                wanted_types.extend([source, target].into_iter().filter(|oid| !is_plain(*oid)));
                database.casts.push(Cast { source, target, is_implicit: context == "i", calls_user });
            }
            ("o", _) => {
                let of = id.parse().ok()?;
                wanted_types.extend(Some(of).filter(|oid| !is_plain(*oid)));
                database.classes.push(of);
            }
            ("x", _) => database.is_answered_elsewhere = true,
            _ => return None,
        }
        Some(())
    }

    fn take_relation(&mut self, relation: Relation) {
        self.wanted_types.extend(relation.types.iter().copied().filter(|oid| !is_plain(*oid)));
        if relation.is_view && relation.refusal.is_none() {
            self.wanted_views.insert(relation.oid);
        }
        self.relations.push(relation);
    }

    fn take_function(
        &mut self,
        kind: &str,
        schema: Option<&str>,
        name: &str,
        flags: &str,
        detail: &str,
    ) -> Option<()> {
        let functions = self.functions.entry(name.into()).or_default();
        match (kind, schema) {
            ("b", None) => {
                functions.acts_on_one = flags.contains('v');
                functions.digest = Some(detail.parse().ok()?);
            }
            ("f", Some(schema)) => {
                let first = if detail.is_empty() { 0 } else { detail.parse().ok()? };
                self.wanted_types.extend(Some(first).filter(|oid| *oid != 0 && !is_plain(*oid)));
                functions.users.push((schema.into(), flags == "1", first));
            }
            _ => return None,
        }
        Some(())
    }

    fn take_operator(
        &mut self,
        kind: &str,
        schema: Option<&str>,
        name: &str,
        left: &str,
        right: Option<&str>,
    ) -> Option<()> {
        let operators = self.operators.entry(name.into()).or_default();
        match (kind, schema, right) {
            ("p", None, None) => operators.digest = Some(left.parse().ok()?),
            ("o", Some(schema), Some(right)) => {
                let (left, right) = (left.parse().ok()?, right.parse().ok()?);
                let odd = [left, right].into_iter().filter(|oid| *oid != 0 && !is_plain(*oid));
                self.wanted_types.extend(odd);
                operators.users.push((schema.into(), left, right));
            }
            _ => return None,
        }
        Some(())
    }

    fn take_view(
        &mut self,
        kind: &str,
        schema: Option<&str>,
        name: Option<&str>,
        flags: &str,
        detail: &str,
    ) -> Option<()> {
        if kind == "r" {
            let (oid, types) = detail.split_once(' ')?;
            let relation = Relation::parse(ObjectName::qualified(schema?, name?), oid, flags, types)?;
            self.wanted_types.extend(relation.types.iter().copied().filter(|oid| !is_plain(*oid)));
            self.asked_views.insert(relation.oid); // its tree comes along
            let view = self.views.entry(relation.oid).or_default();
            view.relation = Some(relation);
            return Some(());
        }
        let view = self.views.entry(flags.parse().ok()?).or_default();
        match view.take(kind, name, detail)? {
            Seen::Nothing => {}
            Seen::Type(oid) => self.wanted_types.extend(Some(oid).filter(|oid| !is_plain(*oid))),
            Seen::Function(name) if !self.asked.functions.contains(&name) => {
                self.wanted.functions.insert(name);
            }
            Seen::Operator(name) if !self.asked.operators.contains(&name) => {
                self.wanted.operators.insert(name);
            }
            Seen::Function(_) | Seen::Operator(_) => {}
        }
        Some(())
    }

    /// What functions of users may do, once that is answered: it is told once.
    pub fn take_acts(&mut self) -> Option<Acts> {
        self.acts.take()
    }

    /// All answers came.
    ///
    /// # Errors
    ///
    /// [`SurveyError::Malformed`] where a row is missing that must be there.
    pub fn finish(mut self) -> Result<Findings, SurveyError> {
        if self.asked.database && !self.database.as_ref().is_some_and(|database| database.has_version) {
            return Err(SurveyError::Malformed);
        }
        let asked = std::mem::take(&mut self.asked);
        let mut relations: BTreeMap<Box<str>, Vec<RelationFact>> =
            asked.relations.iter().map(|name| (name.clone(), Vec::new())).collect();
        for relation in &self.relations {
            let fact = self.relation_fact(relation);
            relations.entry(relation.name.name.clone()).or_default().push(fact);
        }
        let functions = asked.functions.iter().map(|name| (name.clone(), self.function_fact(name))).collect();
        let operators = asked.operators.iter().map(|name| (name.clone(), self.operator_fact(name))).collect();
        let types = asked
            .types
            .iter()
            .map(|name| (name.clone(), self.type_names.get(name).cloned().unwrap_or_default()))
            .collect();
        let database = asked.database.then(|| self.database_fact());
        let columns = asked.columns.iter().map(|oid| (*oid, self.columns.remove(oid))).collect();
        let cursors = asked.cursors.then_some(self.has_cursor_functions);
        Ok(Findings { database, relations, functions, operators, types, columns, cursors })
    }

    fn database_fact(&self) -> DatabaseFact {
        let Some(database) = &self.database else { return DatabaseFact::default() };
        let is_unnamed =
            |oid| matches!(self.class(oid), Class::Plain | Class::Catalogue | Class::Row | Class::Domain);
        let calling = || database.casts.iter().filter(|cast| cast.calls_user);
        DatabaseFact {
            has_calling_cast: calling().any(|cast| is_unnamed(cast.source) && is_unnamed(cast.target)),
            has_calling_enum_cast: calling()
                .any(|cast| [cast.source, cast.target].iter().any(|oid| self.class(*oid) == Class::Enum)),
            has_operator_class: database.classes.iter().any(|oid| self.class(*oid) != Class::User),
            is_answered_elsewhere: database.is_answered_elsewhere,
        }
    }

    fn relation_fact(&self, relation: &Relation) -> RelationFact {
        let mut refusal = relation.refusal;
        let mut has_enum = false;
        for oid in &relation.types {
            match self.class(*oid) {
                Class::Plain => {}
                Class::Enum => has_enum = true,
                _ => {
                    refusal.get_or_insert("has a column of a type that is not built in");
                }
            }
        }
        let view = (relation.is_view && refusal.is_none()).then(|| {
            let judge = Judge {
                class: &|oid| self.class(oid),
                type_name: &|oid| self.type_name(oid),
                is_listed: &|called| self.is_listed(called),
            };
            views::fact(relation.oid, &self.views, &judge)
        });
        let schema = relation.name.schema.clone().unwrap_or_default();
        RelationFact { schema, oid: relation.oid, refusal, has_enum, view }
    }

    /// Whether all functions or operators of the server that have this name are on the list.
    fn is_listed(&self, called: Called<'_>) -> bool {
        match called {
            Called::Function(name) => self.function_fact(name).is_listed,
            Called::Operator(name) => self.operator_fact(name).is_listed,
        }
    }

    fn function_fact(&self, name: &str) -> FunctionFact {
        let Some(functions) = self.functions.get(name) else { return FunctionFact::default() };
        let user = |(schema, takes_one, first): &(Box<str>, bool, u32)| UserFunction {
            schema: schema.clone(),
            takes_one: *takes_one,
            takes_row: *takes_one && self.may_be_row(*first),
        };
        FunctionFact {
            is_listed: functions.digest.is_some_and(|digest| builtin::lists_function(name, digest)),
            acts_on_one: functions.acts_on_one,
            users: functions.users.iter().map(user).collect(),
        }
    }

    fn operator_fact(&self, name: &str) -> OperatorFact {
        let Some(operators) = self.operators.get(name) else { return OperatorFact::default() };
        let user = |(schema, left, right): &(Box<str>, u32, u32)| UserOperator {
            schema: schema.clone(),
            left: self.side(*left),
            right: self.side(*right),
        };
        OperatorFact {
            is_listed: operators.digest.is_some_and(|digest| builtin::lists_operator(name, digest)),
            users: operators.users.iter().map(user).collect(),
        }
    }

    fn side(&self, oid: u32) -> Side {
        match self.class(oid) {
            _ if oid == 0 => Side::Nothing,
            Class::Enum if !self.is_reachable(oid) => Side::Enum,
            Class::User if !self.is_reachable(oid) => Side::User,
            _ => Side::BuiltIn,
        }
    }

    /// Whether a row may be given for a first argument of this type.
    fn may_be_row(&self, oid: u32) -> bool {
        let kind = self.types.get(&oid).filter(|found| found.element.is_none()).map(|found| found.kind);
        matches!(kind, Some(b'c' | b'p' | b'd')) || self.class(oid) == Class::Row || self.is_reachable(oid)
    }

    /// Whether a type turns into this one of a user's by itself that is none of a user's.
    fn is_reachable(&self, oid: u32) -> bool {
        let element = |oid: u32| self.types.get(&oid).and_then(|found| found.element).unwrap_or(oid);
        let casts = self.database.iter().flat_map(|database| &database.casts);
        casts.filter(|cast| cast.is_implicit).any(|cast| {
            let source = self.class(cast.source);
            let is_others = matches!(source, Class::Plain | Class::Catalogue | Class::Row | Class::Domain);
            is_others && cast.target >= USERS_FROM && element(cast.target) == element(oid)
        })
    }

    fn class(&self, oid: u32) -> Class {
        if is_plain(oid) {
            return Class::Plain;
        }
        match self.types.get(&oid) {
            _ if oid < USERS_FROM => Class::Catalogue,
            Some(found) => match found.kind {
                b'e' => Class::Enum,
                b'c' => Class::Row,
                b'd' => Class::Domain,
                _ => Class::User,
            },
            None => Class::User,
        }
    }

    /// What a type is called.
    fn type_name(&self, oid: u32) -> Box<str> {
        self.types.get(&oid).map_or_else(|| oid.to_string().into(), |found| found.name.clone())
    }
}

impl Relation {
    /// Reads the letter of its kind and those of what is unusual about it.
    fn parse(name: ObjectName, oid: &str, flags: &str, types: &str) -> Option<Self> {
        let mut flags = flags.chars();
        let kind = flags.next()?;
        let mut refusal = match kind {
            'r' | 'm' | 'v' => None,
            'p' => Some("is a partitioned table"),
            'f' => Some("is a foreign table"),
            'S' => Some("is a sequence"),
            // An index, a composite type: nothing that a statement reads by its name.
            _ => Some("is no table"),
        };
        for flag in flags {
            let unusual = match flag {
                't' => "is temporary",
                's' => "has row-level security",
                'r' => "has rules",
                'c' => "has child tables",
                'p' => "is a partition",
                'a' => "has a table access method of its own",
                _ => return None,
            };
            refusal.get_or_insert(unusual);
        }
        Some(Self { name, oid: oid.parse().ok()?, is_view: kind == 'v', refusal, types: oids(types)? })
    }
}

fn column(columns: &[Option<&str>]) -> Option<Column> {
    let [Some(name), Some(number), Some(type_oid), Some(base), Some(collation), Some(generated), prefetch] =
        columns
    else {
        return None;
    };
    Some(Column {
        name: (*name).into(),
        number: number.parse().ok()?,
        type_oid: type_oid.parse().ok()?,
        base_oid: base.parse().ok()?,
        collation_oid: collation.parse().ok()?,
        is_virtual: *generated == "v",
        prefetch: prefetch.filter(|prefetch| !prefetch.is_empty()).map(Box::from),
    })
}

/// Whether a type is built in, and its input and output are computed from the value and the settings.
pub(super) fn is_plain(oid: u32) -> bool {
    builtin::PLAIN_TYPES.binary_search(&oid).is_ok()
}
