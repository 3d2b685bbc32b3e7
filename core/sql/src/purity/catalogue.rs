//! What is known of the names of one database, and since when.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::check::Check;
use super::facts::{Columns, DatabaseFact, FunctionFact, OperatorFact, RelationFact, TypeFact};
use super::impure::Impure;
use super::needs::{Facts, Needs, ObjectName};
use super::survey::{Findings, Wanted};

/// Most names that are known at once. With more, all are forgotten.
const NAMES_MAX: usize = 50_000;

/// What is known of the names of one database. `S` tells when something was found out: whether it still holds is for the
/// caller to say.
#[derive(Debug)]
pub struct Catalogue<S> {
    database: Option<(DatabaseFact, S)>,
    relations: Known<Box<str>, Vec<RelationFact>, S>,
    functions: Known<Box<str>, FunctionFact, S>,
    operators: Known<Box<str>, OperatorFact, S>,
    types: Known<Box<str>, TypeFact, S>,
    columns: Known<u32, Option<Arc<Columns>>, S>,
    cursors: Option<(bool, S)>,
}

type Known<K, F, S> = HashMap<K, (F, S)>;

/// A statement that only reads rows of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pure {
    /// Tables and materialised views that it reads, directly or through views; each with its schema.
    pub relations: BTreeSet<ObjectName>,
    /// Facts of the statement; the clock and the settings also through views.
    pub facts: Facts,
    /// It reads no view by which a setting may shape a row, or a row may fail.
    pub has_steady_views: bool,
    /// Relations that the statement itself names, by object id.
    pub named: Vec<(ObjectName, u32)>,
}

impl<S> Default for Catalogue<S> {
    fn default() -> Self {
        Self {
            database: None,
            relations: HashMap::new(),
            functions: HashMap::new(),
            operators: HashMap::new(),
            types: HashMap::new(),
            columns: HashMap::new(),
            cursors: None,
        }
    }
}

impl<S: Copy> Catalogue<S> {
    /// What must be looked up before [`Self::check`] can judge these needs; `holds` says what is known of late.
    pub fn wanted(&self, needs: &Needs, holds: impl Fn(S) -> bool) -> Wanted {
        let names = |wanted: &mut dyn Iterator<Item = &Box<str>>, is_known: &dyn Fn(&str) -> bool| {
            wanted.filter(|name| !is_known(name)).cloned().collect::<BTreeSet<_>>()
        };
        let holds_of = |stamp: Option<S>| stamp.is_some_and(&holds);
        Wanted {
            database: !holds_of(self.database.as_ref().map(|(_, stamp)| *stamp)),
            relations: names(&mut needs.relations.iter().map(|name| &name.name), &|name| {
                holds_of(self.relations.get(name).map(|(_, stamp)| *stamp))
            }),
            functions: names(
                &mut needs.functions.iter().map(|name| &name.name).chain(&needs.fields),
                &|name| holds_of(self.functions.get(name).map(|(_, stamp)| *stamp)),
            ),
            operators: names(&mut needs.operators.iter().map(|usage| &usage.operator.name), &|name| {
                holds_of(self.operators.get(name).map(|(_, stamp)| *stamp))
            }),
            // A table is a type too, and found first if its schema is searched first.
            types: names(&mut needs.types.iter().map(|name| &name.name), &|name| {
                holds_of(self.types.get(name).map(|(_, stamp)| *stamp))
            }),
            ..Wanted::default()
        }
        .with_tables_of(needs, |name| holds_of(self.relations.get(name).map(|(_, stamp)| *stamp)))
    }

    /// When what [`Self::check`] rests on was found out.
    pub fn stamps(&self, needs: &Needs) -> impl Iterator<Item = S> {
        let relations = needs.relations.iter().map(|name| &name.name);
        let relations = relations.chain(needs.types.iter().map(|name| &name.name));
        let functions = needs.functions.iter().map(|name| &name.name).chain(&needs.fields);
        let operators = needs.operators.iter().map(|usage| &usage.operator.name);
        let types = needs.types.iter().map(|name| &name.name);
        let stamps: Vec<S> = (self.database.iter().map(|(_, stamp)| *stamp))
            .chain(relations.filter_map(|name| Some(self.relations.get(name)?.1)))
            .chain(functions.filter_map(|name| Some(self.functions.get(name)?.1)))
            .chain(operators.filter_map(|name| Some(self.operators.get(name)?.1)))
            .chain(types.filter_map(|name| Some(self.types.get(name)?.1)))
            .collect();
        stamps.into_iter()
    }

    /// What must be looked up to know the columns of these relations.
    pub fn wanted_columns(&self, relations: &[u32], holds: impl Fn(S) -> bool) -> Wanted {
        let is_known = |oid: &&u32| self.columns.get(oid).is_some_and(|(_, stamp)| holds(*stamp));
        let columns = relations.iter().filter(|oid| !is_known(oid)).copied().collect();
        Wanted { columns, ..Wanted::default() }
    }

    /// What must be looked up to know whether a function may move cursors.
    pub fn wanted_cursors(&self, holds: impl Fn(S) -> bool) -> Wanted {
        let is_known = self.cursors.is_some_and(|(_, stamp)| holds(stamp));
        Wanted { cursors: !is_known, ..Wanted::default() }
    }

    /// Takes what was found out at `stamp`.
    pub fn absorb(&mut self, findings: Findings, stamp: S) {
        if self.len() > NAMES_MAX {
            *self = Self::default();
        }
        if let Some(database) = findings.database {
            self.database = Some((database, stamp));
        }
        self.relations.extend(stamped(findings.relations, stamp));
        self.functions.extend(stamped(findings.functions, stamp));
        self.operators.extend(stamped(findings.operators, stamp));
        self.types.extend(stamped(findings.types, stamp));
        let columns = findings.columns.into_iter().map(|(oid, columns)| (oid, columns.map(Arc::new)));
        self.columns.extend(stamped(columns, stamp));
        if let Some(has_any) = findings.cursors {
            self.cursors = Some((has_any, stamp));
        }
    }

    /// Whether a statement with these needs is pure, to a session that resolves names in these schemas, in order, the
    /// implicit ones included (`current_schemas(true)`). All that [`Self::wanted`] gives must be known.
    ///
    /// # Errors
    ///
    /// An object that is not known to be harmless.
    pub fn check(&self, needs: &Needs, search_path: &[Box<str>]) -> Result<Pure, Impure> {
        Check::new(self, search_path).run(needs)
    }

    /// The relation that a name means to such a session, if it is a plain table: its object id.
    pub fn table(&self, name: &ObjectName, search_path: &[Box<str>]) -> Option<u32> {
        let relation = self.resolve(name, search_path).ok()?;
        (relation.refusal.is_none() && relation.view.is_none()).then_some(relation.oid)
    }

    /// The columns of a relation, by its object id.
    pub fn columns(&self, relation: u32) -> Option<&Arc<Columns>> {
        self.columns.get(&relation)?.0.as_ref()
    }

    /// Whether a function of a user may open, move or close a cursor that it knows by name, as far as its source tells.
    pub fn moves_cursors(&self) -> bool {
        self.cursors.is_none_or(|(moves, _)| moves)
    }

    /// How many names are known.
    pub fn len(&self) -> usize {
        self.relations.len()
            + self.functions.len()
            + self.operators.len()
            + self.types.len()
            + self.columns.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.database.is_none()
    }

    pub(super) fn database(&self) -> Option<&DatabaseFact> {
        self.database.as_ref().map(|(fact, _)| fact)
    }

    pub(super) fn function(&self, name: &str) -> Option<&FunctionFact> {
        self.functions.get(name).map(|(fact, _)| fact)
    }

    pub(super) fn operator(&self, name: &str) -> Option<&OperatorFact> {
        self.operators.get(name).map(|(fact, _)| fact)
    }

    pub(super) fn type_named(&self, name: &str) -> Option<&TypeFact> {
        self.types.get(name).map(|(fact, _)| fact)
    }

    pub(super) fn relations_named(&self, name: &str) -> &[RelationFact] {
        self.relations.get(name).map_or(&[], |(facts, _)| facts)
    }
}

fn stamped<K, F, S: Copy>(
    facts: impl IntoIterator<Item = (K, F)>,
    stamp: S,
) -> impl Iterator<Item = (K, (F, S))> {
    facts.into_iter().map(move |(key, fact)| (key, (fact, stamp)))
}

impl Wanted {
    /// Adds relations that have the name of a type which is named without its schema.
    fn with_tables_of(mut self, needs: &Needs, is_known: impl Fn(&str) -> bool) -> Self {
        let names = needs.types.iter().filter(|name| name.schema.is_none()).map(|name| &name.name);
        self.relations.extend(names.filter(|name| !is_known(name)).cloned());
        self
    }
}
