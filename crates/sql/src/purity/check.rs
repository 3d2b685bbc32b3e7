//! The verdict on a statement in a catalogue.

use std::collections::{BTreeSet, HashSet};

use super::builtin::{FUNCTIONS, IMPURE_OF_ONE, OPERATORS};
use super::catalogue::{Catalogue, Pure, Relation, ViewUse};
use super::expression::CLOCK_FUNCTIONS;
use super::impure::Impure;
use super::needs::{Facts, Needs, ObjectName, OperatorUse};

/// Deepest nesting of views.
const VIEW_DEPTH_MAX: usize = 16;

/// One check: first all relations, as an enum among their columns matters to what an operator may mean, then the rest.
#[derive(Debug)]
pub(super) struct Check<'a> {
    catalogue: &'a Catalogue,
    relations: BTreeSet<ObjectName>,
    has_enum: bool,
    facts: Facts,
    /// Views that were looked into, or are being.
    views: HashSet<&'a ObjectName>,
}

impl<'a> Check<'a> {
    pub(super) fn new(catalogue: &'a Catalogue) -> Self {
        let (relations, facts, views) = (BTreeSet::new(), Facts::default(), HashSet::new());
        Self { catalogue, relations, has_enum: false, facts, views }
    }

    pub(super) fn run(mut self, needs: &Needs) -> Result<Pure, Impure> {
        self.database()?;
        self.facts = needs.facts;
        for name in &needs.relations {
            let (schema, relation) = self.catalogue.resolve(name)?;
            self.relation(name, schema, relation, 0)?;
        }
        self.has_enum |= self.names_enum(needs);
        if self.has_enum && self.catalogue.has_calling_enum_cast {
            return Err(Impure::Database("a cast of an enum calls a user's function"));
        }
        self.names(needs)?;
        Ok(Pure { relations: self.relations, facts: self.facts })
    }

    fn database(&self) -> Result<(), Impure> {
        if self.catalogue.has_calling_cast {
            return Err(Impure::Database("a cast between built-in types calls a user's function"));
        }
        if self.catalogue.is_answered_elsewhere {
            return Err(Impure::Database("an extension may answer from other servers"));
        }
        if self.catalogue.has_operator_class {
            return Err(Impure::Database(
                "a user's operator class sorts or hashes a built-in type or an enum",
            ));
        }
        Ok(())
    }

    /// A relation in `schema`, called `name` in the statement.
    fn relation(
        &mut self,
        name: &ObjectName,
        schema: &str,
        relation: &Relation,
        depth: usize,
    ) -> Result<(), Impure> {
        if let Some(what) = relation.refusal {
            return Err(refused(name, what));
        }
        self.has_enum |= relation.has_enum;
        let full_name = ObjectName::qualified(schema, &name.name);
        if relation.is_view {
            return self.view(&full_name, depth).map_err(|because| inside(name, because));
        }
        self.relations.insert(full_name);
        Ok(())
    }

    fn view(&mut self, full_name: &ObjectName, depth: usize) -> Result<(), Impure> {
        let Some((full_name, view)) = self.catalogue.views.get_key_value(full_name) else {
            return Err(Impure::Construct("a definition that cannot be read"));
        };
        if !view.is_understood || depth >= VIEW_DEPTH_MAX {
            return Err(Impure::Construct("a definition that cannot be read"));
        }
        if !self.views.insert(full_name) {
            return Ok(());
        }
        view.uses.iter().try_for_each(|used| self.view_use(used, depth))
    }

    fn view_use(&mut self, used: &ViewUse, depth: usize) -> Result<(), Impure> {
        match used {
            ViewUse::Relation(oid) => {
                let name = self.catalogue.relation_names.get(oid);
                let name = name.ok_or(Impure::Construct("a relation of the server"))?;
                let (schema, relation) = self.catalogue.resolve(name)?;
                self.relation(name, schema, relation, depth + 1)
            }
            ViewUse::Node(label) => self.view_node(label),
            ViewUse::Function { name, is_built_in } => {
                self.facts.reads_clock |= CLOCK_FUNCTIONS.contains(&name.as_ref());
                if *is_built_in && contains(&FUNCTIONS, name) {
                    return Ok(());
                }
                Err(Impure::Function(ObjectName::unqualified(name)))
            }
            ViewUse::Operator { name, is_built_in } => {
                if *is_built_in && contains(&OPERATORS, name) {
                    return Ok(());
                }
                Err(Impure::Operator(ObjectName::unqualified(name)))
            }
            ViewUse::Type(name) => Err(Impure::Type(ObjectName::unqualified(name))),
            ViewUse::Enum => {
                self.has_enum = true;
                Ok(())
            }
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
        needs.types.iter().any(|name| self.catalogue.is_enum(name))
    }

    /// Everything but the relations.
    fn names(&self, needs: &Needs) -> Result<(), Impure> {
        needs.types.iter().try_for_each(|name| self.type_name(name))?;
        needs.functions.iter().try_for_each(|name| self.function(name))?;
        needs.operators.iter().try_for_each(|usage| self.operator(usage))?;
        needs.fields.iter().try_for_each(|field| self.field(field, needs.has_function_in_from))
    }

    fn type_name(&self, name: &ObjectName) -> Result<(), Impure> {
        if self.catalogue.is_enum(name) || self.catalogue.is_built_in_type(name) {
            return Ok(());
        }
        Err(Impure::Type(name.clone()))
    }

    fn function(&self, name: &ObjectName) -> Result<(), Impure> {
        if !is_built_in(name) || !contains(&FUNCTIONS, &name.name) {
            return Err(Impure::Function(name.clone()));
        }
        let mut users = self.catalogue.functions.get(&name.name).into_iter().flatten();
        let shadow =
            users.find(|function| name.schema.as_ref().is_none_or(|schema| *schema == function.schema));
        match shadow {
            Some(function) => Err(Impure::FunctionShadowed(name.clone(), function.schema.clone())),
            None => Ok(()),
        }
    }

    fn operator(&self, usage: &OperatorUse) -> Result<(), Impure> {
        let name = &usage.operator;
        if !is_built_in(name) || !contains(&OPERATORS, &name.name) {
            return Err(Impure::Operator(name.clone()));
        }
        let mut users = self.catalogue.operators.get(&name.name).into_iter().flatten();
        let shadow =
            users.find(|operator| operator.operands.may_take(usage.left, usage.right, self.has_enum));
        match shadow {
            Some(operator) => Err(Impure::OperatorShadowed(name.clone(), operator.schema.clone())),
            None => Ok(()),
        }
    }

    fn field(&self, field: &str, has_function_in_from: bool) -> Result<(), Impure> {
        let call = |schema: &str| Impure::FieldFunction {
            field: field.into(),
            function: ObjectName::qualified(schema, field),
        };
        let mut users = self.catalogue.functions.get(field).into_iter().flatten();
        let user = users.find(|function| function.takes_row || (has_function_in_from && function.takes_one));
        if let Some(function) = user {
            return Err(call(&function.schema));
        }
        let is_servers = field.starts_with("pg_") || field.starts_with("binary_upgrade_");
        if has_function_in_from && (is_servers || contains(&IMPURE_OF_ONE, field)) {
            return Err(call("pg_catalog"));
        }
        Ok(())
    }
}

impl Catalogue {
    /// The relation that a name means in this session, and its schema.
    fn resolve(&self, name: &ObjectName) -> Result<(&str, &Relation), Impure> {
        if let Some(schema) = &name.schema {
            if schema.starts_with("pg_") || schema.as_ref() == "information_schema" {
                return Err(refused(name, "is in a schema of the server"));
            }
            return self.relation_in(schema, name).ok_or_else(|| Impure::UnknownRelation(name.clone()));
        }
        // What is in pg_catalog has names that begin with this, and comes first unless the path says otherwise.
        if name.name.starts_with("pg_") {
            return Err(refused(name, "is a system catalogue, or named like one"));
        }
        for schema in &self.search_path {
            if schema.as_ref() == "information_schema" {
                return Err(refused(name, "may be in information_schema"));
            }
            if let Some(found) = self.relation_in(schema, name) {
                return Ok(found);
            }
        }
        Err(Impure::UnknownRelation(name.clone()))
    }

    fn relation_in(&self, schema: &str, name: &ObjectName) -> Option<(&str, &Relation)> {
        let (schema, relations) = self.relations.get_key_value(schema)?;
        Some((schema, relations.get(&name.name)?))
    }

    /// Whether a type's name means a user's enum and nothing else.
    fn is_enum(&self, name: &ObjectName) -> bool {
        let types = self.types.get(&name.name).map_or(&[][..], Vec::as_slice);
        match &name.schema {
            Some(schema) => types.iter().any(|user_type| user_type.schema == *schema && user_type.is_enum),
            None => {
                let is_row = self.search_path.iter().any(|schema| self.relation_in(schema, name).is_some());
                matches!(types, [only] if only.is_enum) && !is_row && !contains(&TYPES, &name.name)
            }
        }
    }

    fn is_built_in_type(&self, name: &ObjectName) -> bool {
        if !is_built_in(name) || !contains(&TYPES, &name.name) {
            return false;
        }
        if name.schema.is_some() {
            return true;
        }
        // A table is a type too, and found before the built-in one if its schema is searched first.
        let mut searched_first = self.search_path.iter().take_while(|schema| schema.as_ref() != "pg_catalog");
        let is_shadowed = searched_first.any(|schema| self.relation_in(schema, name).is_some());
        !is_shadowed && !self.types.contains_key(&name.name)
    }
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
