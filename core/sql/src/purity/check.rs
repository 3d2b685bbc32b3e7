//! The verdict on a statement in a catalogue.

use std::collections::BTreeSet;

use super::builtin;
use super::catalogue::{Catalogue, Pure};
use super::facts::{RelationFact, ViewFact, ViewUse};
use super::impure::Impure;
use super::needs::{Facts, Needs, ObjectName, OperatorUse};
use super::survey::is_plain;

/// One check: first all relations, as an enum among their columns matters to what an operator may mean, then the rest.
#[derive(Debug)]
pub(super) struct Check<'a, S> {
    catalogue: &'a Catalogue<S>,
    search_path: &'a [Box<str>],
    relations: BTreeSet<ObjectName>,
    named: Vec<(ObjectName, u32)>,
    has_enum: bool,
    has_steady_views: bool,
    facts: Facts,
}

impl<'a, S: Copy> Check<'a, S> {
    pub(super) fn new(catalogue: &'a Catalogue<S>, search_path: &'a [Box<str>]) -> Self {
        Self {
            catalogue,
            search_path,
            relations: BTreeSet::new(),
            named: Vec::new(),
            has_enum: false,
            has_steady_views: true,
            facts: Facts::default(),
        }
    }

    pub(super) fn run(mut self, needs: &Needs) -> Result<Pure, Impure> {
        let has_calling_enum_cast = self.database()?;
        self.facts = needs.facts;
        for name in &needs.relations {
            let relation = self.catalogue.resolve(name, self.search_path)?;
            self.relation(name, relation)?;
        }
        self.has_enum |= self.names_enum(needs);
        if self.has_enum && has_calling_enum_cast {
            return Err(Impure::Database("a cast of an enum calls a user's function"));
        }
        self.names(needs)?;
        let Self { relations, facts, has_steady_views, named, .. } = self;
        Ok(Pure { relations, facts, has_steady_views, named })
    }

    /// Whether a cast of an enum calls a function of a user.
    fn database(&self) -> Result<bool, Impure> {
        let Some(database) = self.catalogue.database() else {
            return Err(Impure::Database("nothing is known of the database"));
        };
        if database.has_calling_cast {
            return Err(Impure::Database("a cast between built-in types calls a user's function"));
        }
        if database.is_answered_elsewhere {
            return Err(Impure::Database("an extension may answer from other servers"));
        }
        if database.has_operator_class {
            return Err(Impure::Database(
                "a user's operator class sorts or hashes a built-in type or an enum",
            ));
        }
        Ok(database.has_calling_enum_cast)
    }

    /// A relation, called `name` in the statement.
    fn relation(&mut self, name: &ObjectName, relation: &RelationFact) -> Result<(), Impure> {
        if let Some(what) = relation.refusal {
            return Err(refused(name, what));
        }
        self.has_enum |= relation.has_enum;
        self.named.push((name.clone(), relation.oid));
        match &relation.view {
            Some(view) => self.view(view).map_err(|because| inside(name, because)),
            None => {
                self.relations.insert(ObjectName::qualified(&relation.schema, &name.name));
                Ok(())
            }
        }
    }

    fn view(&mut self, view: &ViewFact) -> Result<(), Impure> {
        self.has_steady_views &= !view.is_unsteady;
        view.uses.iter().try_for_each(|used| self.view_use(used))
    }

    fn view_use(&mut self, used: &ViewUse) -> Result<(), Impure> {
        match used {
            ViewUse::Unreadable => Err(Impure::Construct("a definition that cannot be read")),
            ViewUse::System => Err(Impure::Construct("a relation of the server")),
            ViewUse::Relation(name, None) => {
                self.relations.insert(name.clone());
                Ok(())
            }
            ViewUse::Relation(name, Some(what)) => Err(refused(name, what)),
            ViewUse::Node(label) => self.view_node(label),
            ViewUse::Clock => {
                self.facts.reads_clock = true;
                Ok(())
            }
            ViewUse::Function(name) => Err(Impure::Function(ObjectName::unqualified(name))),
            ViewUse::Operator(name) => Err(Impure::Operator(ObjectName::unqualified(name))),
            ViewUse::Type(name) => Err(Impure::Type(ObjectName::unqualified(name))),
            ViewUse::Enum => {
                self.has_enum = true;
                Ok(())
            }
            ViewUse::Inside(view, used) => self.view_use(used).map_err(|because| inside(view, because)),
        }
    }

    fn view_node(&mut self, label: &str) -> Result<(), Impure> {
        match label {
            "SQLVALUEFUNCTION" => {
                self.facts.reads_clock = true;
                self.facts.reads_settings = true;
            }
            // A text that becomes a date may be 'now'.
            "COERCEVIAIO" => self.facts.reads_clock = true,
            "ROWMARKCLAUSE" => return Err(Impure::Construct("FOR UPDATE or FOR SHARE")),
            "TABLESAMPLECLAUSE" => return Err(Impure::Construct("TABLESAMPLE")),
            _ => return Err(Impure::Construct("a construct that is not known to be harmless")),
        }
        Ok(())
    }

    fn names_enum(&self, needs: &Needs) -> bool {
        needs.types.iter().any(|name| self.is_enum(name))
    }

    /// Everything but the relations.
    fn names(&self, needs: &Needs) -> Result<(), Impure> {
        needs.types.iter().try_for_each(|name| self.type_name(name))?;
        needs.functions.iter().try_for_each(|name| self.function(name))?;
        needs.operators.iter().try_for_each(|usage| self.operator(usage))?;
        needs.fields.iter().try_for_each(|field| self.field(field, needs.has_function_in_from))
    }

    fn type_name(&self, name: &ObjectName) -> Result<(), Impure> {
        if self.is_enum(name) || self.is_built_in_type(name) {
            return Ok(());
        }
        Err(Impure::Type(name.clone()))
    }

    fn function(&self, name: &ObjectName) -> Result<(), Impure> {
        let fact = self.catalogue.function(&name.name).filter(|fact| fact.is_listed && is_built_in(name));
        let Some(fact) = fact else { return Err(Impure::Function(name.clone())) };
        let mut users = fact.users.iter();
        let shadow =
            users.find(|function| name.schema.as_ref().is_none_or(|schema| *schema == function.schema));
        match shadow {
            Some(function) => Err(Impure::FunctionShadowed(name.clone(), function.schema.clone())),
            None => Ok(()),
        }
    }

    fn operator(&self, usage: &OperatorUse) -> Result<(), Impure> {
        let name = &usage.operator;
        let fact = self.catalogue.operator(&name.name).filter(|fact| fact.is_listed && is_built_in(name));
        let Some(fact) = fact else { return Err(Impure::Operator(name.clone())) };
        let mut users = fact.users.iter();
        match users.find(|operator| operator.may_take(usage.left, usage.right, self.has_enum)) {
            Some(operator) => Err(Impure::OperatorShadowed(name.clone(), operator.schema.clone())),
            None => Ok(()),
        }
    }

    fn field(&self, field: &str, has_function_in_from: bool) -> Result<(), Impure> {
        let call = |schema: &str| Impure::FieldFunction {
            field: field.into(),
            function: ObjectName::qualified(schema, field),
        };
        let Some(fact) = self.catalogue.function(field) else { return Ok(()) };
        let mut users = fact.users.iter();
        let user = users.find(|function| function.takes_row || (has_function_in_from && function.takes_one));
        if let Some(function) = user {
            return Err(call(&function.schema));
        }
        if has_function_in_from && fact.acts_on_one && !fact.is_listed {
            return Err(call("pg_catalog"));
        }
        Ok(())
    }

    /// Whether a type's name means a user's enum and nothing else.
    fn is_enum(&self, name: &ObjectName) -> bool {
        let Some(fact) = self.catalogue.type_named(&name.name) else { return false };
        match &name.schema {
            Some(schema) => fact.users.iter().any(|(of, is_enum)| of == schema && *is_enum),
            None => {
                let only = matches!(fact.users.as_slice(), [(_, true)]) && fact.built_in == 0;
                only && !self.search_path.iter().any(|schema| self.is_table(schema, name))
            }
        }
    }

    fn is_built_in_type(&self, name: &ObjectName) -> bool {
        let Some(fact) = self.catalogue.type_named(&name.name) else { return false };
        if !is_built_in(name) || !is_plain(fact.built_in) || !contains(&TYPES, &name.name) {
            return false;
        }
        if name.schema.is_some() {
            return true;
        }
        let mut searched_first = self.search_path.iter().take_while(|schema| schema.as_ref() != "pg_catalog");
        fact.users.is_empty() && !searched_first.any(|schema| self.is_table(schema, name))
    }

    fn is_table(&self, schema: &str, name: &ObjectName) -> bool {
        let relations = self.catalogue.relations_named(&name.name);
        relations.iter().any(|relation| relation.schema.as_ref() == schema)
    }
}

impl<S: Copy> Catalogue<S> {
    /// The relation that a name means to a session with this search path.
    pub(super) fn resolve(
        &self,
        name: &ObjectName,
        search_path: &[Box<str>],
    ) -> Result<&RelationFact, Impure> {
        let unknown = || Impure::UnknownRelation(name.clone());
        let found = self.relations_named(&name.name);
        let in_schema = |schema: &str| found.iter().find(|relation| relation.schema.as_ref() == schema);
        if let Some(schema) = &name.schema {
            if is_servers(schema) {
                return Err(refused(name, "is in a schema of the server"));
            }
            return in_schema(schema).ok_or_else(unknown);
        }
        // What is in pg_catalog has names that begin with this, and comes first unless the path says otherwise.
        if name.name.starts_with("pg_") {
            return Err(refused(name, "is a system catalogue, or named like one"));
        }
        for schema in search_path {
            if schema.as_ref() == "information_schema" {
                return Err(refused(name, "may be in information_schema"));
            }
            if let Some(relation) = in_schema(schema) {
                return Ok(relation);
            }
        }
        Err(unknown())
    }
}

impl Needs {
    /// Why a statement with these needs is impure in every database, if it is: there is nothing to look up.
    pub fn refusal(&self) -> Option<Impure> {
        let relation = self.relations.iter().find_map(|name| match &name.schema {
            Some(schema) if is_servers(schema) => Some(refused(name, "is in a schema of the server")),
            None if name.name.starts_with("pg_") => {
                Some(refused(name, "is a system catalogue, or named like one"))
            }
            _ => None,
        });
        let function = || {
            let is_bad = |name: &&ObjectName| !is_built_in(name) || !builtin::may_list_function(&name.name);
            self.functions.iter().find(is_bad).map(|name| Impure::Function(name.clone()))
        };
        let operator = || {
            let names = self.operators.iter().map(|usage| &usage.operator);
            let is_bad = |name: &&ObjectName| !is_built_in(name) || !builtin::may_list_operator(&name.name);
            names.into_iter().find(is_bad).map(|name| Impure::Operator(name.clone()))
        };
        relation.or_else(function).or_else(operator)
    }
}

/// Whether a schema is one of the server's own.
pub(super) fn is_servers(schema: &str) -> bool {
    schema.starts_with("pg_") || schema == "information_schema"
}

fn is_built_in(name: &ObjectName) -> bool {
    name.schema.as_deref().is_none_or(|schema| schema == "pg_catalog")
}

fn contains(sorted: &[&str], name: &str) -> bool {
    sorted.binary_search(&name).is_ok()
}

fn refused(relation: &ObjectName, what: &'static str) -> Impure {
    Impure::Relation { relation: relation.clone(), what }
}

fn inside(view: &ObjectName, because: Impure) -> Impure {
    Impure::View { view: view.clone(), because: Box::new(because) }
}

/// Built-in types whose input and output are computed from the value, the settings and (for 'now') the transaction's
/// start time. Sorted.
const TYPES: [&str; 44] = [
    "bit",
    "bool",
    "box",
    "bpchar",
    "bytea",
    "char",
    "cidr",
    "circle",
    "date",
    "daterange",
    "float4",
    "float8",
    "inet",
    "int2",
    "int4",
    "int4range",
    "int8",
    "int8range",
    "interval",
    "json",
    "jsonb",
    "jsonpath",
    "line",
    "lseg",
    "macaddr",
    "macaddr8",
    "money",
    "name",
    "numeric",
    "numrange",
    "oid",
    "path",
    "point",
    "polygon",
    "text",
    "time",
    "timestamp",
    "timestamptz",
    "timetz",
    "tsrange",
    "tstzrange",
    "uuid",
    "varbit",
    "varchar",
];
