//! What views use, from the trees that the server stores.

use std::collections::HashMap;
use std::sync::Arc;

use super::expression::CLOCK_FUNCTIONS;
use super::facts::{ViewFact, ViewUse};
use super::survey::{Class, Relation};

/// Deepest nesting of views.
const DEPTH_MAX: usize = 16;

/// A relation that a view reads; with a tree if it is a view itself.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) relation: Option<Relation>,
    labels: Vec<Box<str>>,
    /// Object ids of relations.
    relations: Vec<u32>,
    types: Vec<u32>,
    /// Whether it is the server's, and whether it is immutable and internal.
    functions: Vec<(Box<str>, bool, bool)>,
    /// The same; and whether both operands have one type.
    operators: Vec<(Box<str>, bool, bool, bool)>,
    has_column_definitions: bool,
}

/// What a row makes necessary to look up.
#[derive(Debug)]
pub(super) enum Seen {
    Nothing,
    Type(u32),
    Function(Box<str>),
    Operator(Box<str>),
}

/// What a view calls that must be on a list.
#[derive(Debug, Clone, Copy)]
pub(super) enum Called<'a> {
    Function(&'a str),
    Operator(&'a str),
}

impl View {
    /// Takes one row about its tree.
    pub(super) fn take(&mut self, kind: &str, name: Option<&str>, detail: &str) -> Option<Seen> {
        match (kind, name) {
            ("n", None) => self.labels.push(detail.into()),
            ("i", Some("relid")) if detail != "0" => self.relations.push(detail.parse().ok()?),
            ("i", Some("relid")) => {}
            ("i", Some("funccoltypes")) => self.has_column_definitions |= detail != "<>",
            // What an aggregate keeps between two rows is nothing that a query sees.
            ("i", Some("aggtranstype")) => {}
            ("i", Some(_)) => {
                // A field of this name may hold something else in another node.
                let Ok(oid) = detail.parse::<u32>() else { return Some(Seen::Nothing) };
                if oid != 0 {
                    self.types.push(oid);
                    return Some(Seen::Type(oid));
                }
            }
            ("f", Some(name)) => {
                let is_plain = detail.contains('i') && name != "satisfies_hash_partition";
                self.functions.push((name.into(), detail.contains('b'), is_plain));
                if !is_plain {
                    return Some(Seen::Function(name.into()));
                }
            }
            ("o", Some(name)) => {
                let (is_built_in, is_plain) = (detail.contains('b'), detail.contains('i'));
                self.operators.push((name.into(), is_built_in, is_plain, detail.contains('a')));
                if !is_plain {
                    return Some(Seen::Operator(name.into()));
                }
            }
            _ => return None,
        }
        Some(Seen::Nothing)
    }

    fn is_steady(&self) -> bool {
        self.labels.iter().all(|label| STEADY_LABELS.contains(&&**label))
            && self.functions.is_empty()
            && self.operators.iter().all(|(name, is_built_in, is_plain, is_alike)| {
                *is_built_in && *is_plain && *is_alike && COMPARISONS.contains(&&**name)
            })
    }
}

/// What the view of this object id comes to.
pub(super) fn fact(oid: u32, views: &HashMap<u32, View>, judge: &Judge<'_>) -> Arc<ViewFact> {
    let mut fact = ViewFact::default();
    let mut path = Vec::new();
    collect(oid, views, judge, &mut path, &mut fact);
    fact.uses.sort();
    fact.uses.dedup();
    Arc::new(fact)
}

/// What is known besides the trees.
pub(super) struct Judge<'a> {
    pub(super) class: &'a dyn Fn(u32) -> Class,
    pub(super) type_name: &'a dyn Fn(u32) -> Box<str>,
    /// Whether all functions or operators of the server that have this name are on the list.
    pub(super) is_listed: &'a dyn Fn(Called<'_>) -> bool,
}

fn collect(
    oid: u32,
    views: &HashMap<u32, View>,
    judge: &Judge<'_>,
    path: &mut Vec<u32>,
    fact: &mut ViewFact,
) {
    let Some(view) = views.get(&oid).filter(|_| path.len() < DEPTH_MAX && !path.contains(&oid)) else {
        return fact.uses.push(ViewUse::Unreadable);
    };
    path.push(oid);
    if !view.labels.iter().any(|label| **label == *"QUERY") {
        fact.uses.push(ViewUse::Unreadable);
    }
    fact.is_unsteady |= !view.is_steady();
    fact.uses.extend(uses(view, judge));
    for read in view.relations.iter().filter(|read| **read != oid) {
        let Some(relation) = views.get(read).and_then(|view| view.relation.as_ref()) else {
            fact.uses.push(ViewUse::System);
            continue;
        };
        let refusal = relation.refusal.or_else(|| odd_column(relation, judge));
        fact.uses.extend(has_enum(relation, judge).then_some(ViewUse::Enum));
        if relation.is_view && refusal.is_none() {
            let mut inner = ViewFact::default();
            collect(*read, views, judge, path, &mut inner);
            fact.is_unsteady |= inner.is_unsteady;
            fact.uses.extend(inner.uses.into_iter().map(|used| match used {
                ViewUse::Relation(_, None) | ViewUse::Enum | ViewUse::Clock => used,
                used => ViewUse::Inside(relation.name.clone(), Box::new(used)),
            }));
        } else {
            fact.uses.push(ViewUse::Relation(relation.name.clone(), refusal));
        }
    }
    path.pop();
}

/// What one view uses itself, beyond what every plain query has.
fn uses(view: &View, judge: &Judge<'_>) -> Vec<ViewUse> {
    let mut uses = Vec::new();
    let odd_labels = view.labels.iter().filter(|label| !PLAIN_LABELS.contains(&&***label));
    uses.extend(odd_labels.map(|label| ViewUse::Node(label.clone())));
    uses.extend(view.has_column_definitions.then(|| ViewUse::Node("FUNCCOLTYPES".into())));
    for (name, is_built_in, is_plain) in &view.functions {
        if *is_built_in && CLOCK_FUNCTIONS.contains(&&**name) {
            uses.push(ViewUse::Clock);
        }
        if !is_built_in || !is_plain && !(judge.is_listed)(Called::Function(name)) {
            uses.push(ViewUse::Function(name.clone()));
        }
    }
    for (name, is_built_in, is_plain, _) in &view.operators {
        if !is_built_in || !is_plain && !(judge.is_listed)(Called::Operator(name)) {
            uses.push(ViewUse::Operator(name.clone()));
        }
    }
    for oid in &view.types {
        match (judge.class)(*oid) {
            Class::Plain => {}
            Class::Enum => uses.push(ViewUse::Enum),
            _ => uses.push(ViewUse::Type((judge.type_name)(*oid))),
        }
    }
    uses
}

fn odd_column(relation: &Relation, judge: &Judge<'_>) -> Option<&'static str> {
    let is_odd = |oid: &u32| !matches!((judge.class)(*oid), Class::Plain | Class::Enum);
    relation.types.iter().any(is_odd).then_some("has a column of a type that is not built in")
}

fn has_enum(relation: &Relation, judge: &Judge<'_>) -> bool {
    relation.types.iter().any(|oid| (judge.class)(*oid) == Class::Enum)
}

/// Nodes that plain queries have.
const PLAIN_LABELS: [&str; 49] = [
    "QUERY",
    "COMPUTED",
    "RANGETBLENTRY",
    "RTE",
    "RTEPERMISSIONINFO",
    "ALIAS",
    "RANGETBLREF",
    "JOINEXPR",
    "FROMEXPR",
    "TARGETENTRY",
    "COMMONTABLEEXPR",
    "SETOPERATIONSTMT",
    "SORTGROUPCLAUSE",
    "GROUPINGSET",
    "GROUPINGFUNC",
    "WINDOWCLAUSE",
    "WINDOWFUNC",
    "AGGREF",
    "RANGETBLFUNCTION",
    "SUBLINK",
    "PARAM",
    "VAR",
    "CONST",
    "FUNCEXPR",
    "NAMEDARGEXPR",
    "OPEXPR",
    "DISTINCTEXPR",
    "NULLIFEXPR",
    "SCALARARRAYOPEXPR",
    "BOOLEXPR",
    "NULLTEST",
    "BOOLEANTEST",
    "RELABELTYPE",
    "ARRAYCOERCEEXPR",
    "COLLATEEXPR",
    "SUBSCRIPTINGREF",
    "CASEEXPR",
    "CASE",
    "CASEWHEN",
    "WHEN",
    "CASETESTEXPR",
    "ARRAYEXPR",
    "ARRAY",
    "ROWEXPR",
    "ROW",
    "COALESCEEXPR",
    "COALESCE",
    "MINMAXEXPR",
    "MINMAX",
];

/// Nodes by which no setting shapes a row, and no row fails.
const STEADY_LABELS: [&str; 15] = [
    "QUERY",
    "RANGETBLENTRY",
    "RTE",
    "RTEPERMISSIONINFO",
    "ALIAS",
    "RANGETBLREF",
    "JOINEXPR",
    "FROMEXPR",
    "TARGETENTRY",
    "SORTGROUPCLAUSE",
    "VAR",
    "CONST",
    "OPEXPR",
    "BOOLEXPR",
    "NULLTEST",
];

/// Operators that cannot fail between values of one type.
const COMPARISONS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];
