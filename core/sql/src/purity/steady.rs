//! Is a row of a query the same whenever it is read, once the query has begun, and can reading it not fail?
//!
//! A portal's rows are fixed when it is opened, but they are computed when they are fetched. A setting that changes in
//! between (TimeZone, DateStyle, the role) shapes those that come later, and a division by zero ends the portal. So a
//! result is prefetched only where no expression does either: columns, constants and parameters, compared in ways that
//! look at no setting and cannot fail. Everything else is refused, whatever its functions are declared to be.

use std::sync::Arc;

use pg_query::protobuf::{
    AExpr, AExprKind, ColumnRef, JoinExpr, RangeVar, SelectStmt, SetOperation, SortBy, TypeCast,
};
use pg_query::{Node, NodeEnum};

use super::facts::Columns;
use super::needs::ObjectName;
use super::read::on_a_thread;
use super::walk::{name_part, object_name};

/// Why a result may not be read ahead, as one phrase for a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsteady {
    /// The text is not one plain query.
    #[error("its query is not a plain one")]
    Query,
    /// A clause that is not looked into.
    #[error("its query has {0}")]
    Clause(&'static str),
    /// An expression that may fail, or that a setting may shape.
    #[error("its query uses {0}")]
    Expression(&'static str),
}

type Steady = Result<(), Unsteady>;

/// Whether each row of a query is the same whenever it is read, and reading it cannot fail.
///
/// `declared` are the types that Parse gave to its parameters, zero where the server decides; `relations` the columns of
/// the tables that it names, each by the name that it uses.
///
/// # Errors
///
/// What stands in the way.
pub fn steady(
    text: &str,
    declared: &[u32],
    relations: &[(ObjectName, Arc<Columns>)],
) -> Result<(), Unsteady> {
    let judged = on_a_thread(|| {
        let parsed = pg_query::parse(text, 0).map_err(|_| Unsteady::Query)?.protobuf;
        let [statement] = parsed.stmts.as_slice() else { return Err(Unsteady::Query) };
        let statement = statement.stmt.as_ref().and_then(|node| node.node.as_ref());
        let Some(NodeEnum::SelectStmt(select)) = statement else { return Err(Unsteady::Query) };
        Scope { declared, relations, sources: Vec::new() }.select(select)
    });
    judged.unwrap_or(Err(Unsteady::Query))
}

/// What a query's names mean.
struct Scope<'a> {
    declared: &'a [u32],
    relations: &'a [(ObjectName, Arc<Columns>)],
    sources: Vec<Source<'a>>,
}

/// A table in FROM.
struct Source<'a> {
    /// The name by which columns are qualified.
    name: String,
    columns: &'a Columns,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// A string, NULL, or a parameter whose type the server chooses: it takes that of the other side.
    Any,
    /// A number in the text.
    Number,
    /// This type, and a collation.
    Typed(u32, u32),
}

impl<'a> Scope<'a> {
    fn select(mut self, select: &SelectStmt) -> Steady {
        // No field is left out, so that a clause which a later grammar adds does not go unseen.
        let SelectStmt {
            distinct_clause,
            into_clause,
            target_list,
            from_clause,
            where_clause,
            group_clause,
            group_distinct: _,
            having_clause,
            window_clause,
            values_lists,
            sort_clause,
            limit_offset,
            limit_count,
            limit_option: _,
            locking_clause,
            with_clause,
            op,
            all: _,
            larg: _,
            rarg: _,
        } = select;
        let clauses = [
            (*op != SetOperation::SetopNone as i32 && *op != 0, "a set operation"),
            (into_clause.is_some(), "INTO"),
            (!group_clause.is_empty(), "GROUP BY"),
            (having_clause.is_some(), "HAVING"),
            (!window_clause.is_empty(), "WINDOW"),
            (!values_lists.is_empty(), "VALUES"),
            (!locking_clause.is_empty(), "a row lock"),
            (with_clause.is_some(), "WITH"),
        ];
        if let Some((_, name)) = clauses.into_iter().find(|(is_there, _)| *is_there) {
            return Err(Unsteady::Clause(name));
        }
        for item in from_clause {
            self.source(item)?;
        }
        let mut outputs = Vec::new();
        for target in target_list {
            let Some(NodeEnum::ResTarget(target)) = target.node.as_ref() else { return Err(Unsteady::Query) };
            outputs.push(target.name.as_str());
            self.output(target.val.as_deref())?;
        }
        self.condition_if(where_clause.as_deref())?;
        for item in sort_clause {
            let Some(NodeEnum::SortBy(sort)) = item.node.as_ref() else { return Err(Unsteady::Query) };
            self.sort(sort, &outputs)?;
        }
        for item in distinct_clause.iter().filter(|node| node.node.is_some()) {
            self.value(item)?;
        }
        [limit_offset, limit_count].into_iter().flatten().try_for_each(|limit| match limit.node.as_ref() {
            Some(NodeEnum::AConst(_) | NodeEnum::ParamRef(_)) => Ok(()),
            _ => Err(Unsteady::Clause("a LIMIT that is computed")),
        })
    }

    fn source(&mut self, item: &Node) -> Steady {
        match item.node.as_ref() {
            Some(NodeEnum::RangeVar(relation)) => self.relation(relation),
            Some(NodeEnum::JoinExpr(join)) => self.join(join),
            _ => Err(Unsteady::Clause("more than tables in FROM")),
        }
    }

    fn relation(&mut self, relation: &RangeVar) -> Steady {
        let name = match relation.schemaname.as_str() {
            "" => ObjectName::unqualified(&relation.relname),
            schema => ObjectName::qualified(schema, &relation.relname),
        };
        let known = self.relations.iter().find(|(known, _)| *known == name);
        let Some((_, columns)) = known else { return Err(Unsteady::Clause("a table that is not known")) };
        let name = match &relation.alias {
            Some(alias) if !alias.colnames.is_empty() => {
                return Err(Unsteady::Clause("other names for columns"));
            }
            Some(alias) => alias.aliasname.clone(),
            None => relation.relname.clone(),
        };
        self.sources.push(Source { name, columns });
        Ok(())
    }

    fn join(&mut self, join: &JoinExpr) -> Steady {
        let before = self.sources.len();
        let (Some(left), Some(right)) = (join.larg.as_deref(), join.rarg.as_deref()) else {
            return Err(Unsteady::Query);
        };
        self.source(left)?;
        let middle = self.sources.len();
        self.source(right)?;
        if join.is_natural || join.alias.is_some() || join.join_using_alias.is_some() {
            return Err(Unsteady::Clause("a join by the names of columns"));
        }
        for name in &join.using_clause {
            let name = name_part(name).map_err(|_| Unsteady::Query)?;
            let of = |sources: &[Source<'_>]| found(sources, name);
            comparable(of(&self.sources[before..middle])?, of(&self.sources[middle..])?)?;
        }
        self.condition_if(join.quals.as_deref())
    }

    fn output(&self, value: Option<&Node>) -> Steady {
        let value = value.ok_or(Unsteady::Query)?;
        if let Some(NodeEnum::ColumnRef(column)) = value.node.as_ref() {
            let last = column.fields.last().and_then(|field| field.node.as_ref());
            if let Some(NodeEnum::AStar(_)) = last {
                return self.star(column);
            }
        }
        self.value(value).map(|_| ())
    }

    /// `*` and `t.*`.
    fn star(&self, column: &ColumnRef) -> Steady {
        let of = match column.fields.as_slice() {
            [_] => None,
            [table, _] => Some(name_part(table).map_err(|_| Unsteady::Query)?),
            _ => return Err(Unsteady::Expression("a table with its schema")),
        };
        let mut sources =
            self.sources.iter().filter(|source| of.is_none_or(|of| source.name == of)).peekable();
        if sources.peek().is_none() {
            return Err(Unsteady::Expression("a row of something else"));
        }
        let is_virtual = sources.flat_map(|source| &source.columns.columns).any(|column| column.is_virtual);
        if is_virtual {
            Err(Unsteady::Expression("a column that is computed when it is read"))
        } else {
            Ok(())
        }
    }

    fn sort(&self, sort: &SortBy, outputs: &[&str]) -> Steady {
        let value = sort.node.as_deref().ok_or(Unsteady::Query)?;
        if !sort.use_op.is_empty() {
            return Err(Unsteady::Clause("ORDER BY … USING"));
        }
        if let Some(NodeEnum::ColumnRef(column)) = value.node.as_ref() {
            if let [name] = column.fields.as_slice() {
                let name = name_part(name).map_err(|_| Unsteady::Query)?;
                if outputs.contains(&name) {
                    return Ok(());
                }
            }
        }
        self.value(value).map(|_| ())
    }

    fn condition_if(&self, condition: Option<&Node>) -> Steady {
        condition.map_or(Ok(()), |condition| self.condition(condition))
    }

    fn condition(&self, node: &Node) -> Steady {
        match node.node.as_ref() {
            Some(NodeEnum::BoolExpr(node)) => {
                node.args.iter().try_for_each(|argument| self.condition(argument))
            }
            Some(NodeEnum::NullTest(test)) => {
                self.value(test.arg.as_deref().ok_or(Unsteady::Query)?).map(|_| ())
            }
            Some(NodeEnum::BooleanTest(test)) => self.condition(test.arg.as_deref().ok_or(Unsteady::Query)?),
            Some(NodeEnum::AExpr(operation)) => self.comparison(operation),
            _ => match self.value(node)? {
                Value::Typed(BOOL, _) => Ok(()),
                _ => Err(Unsteady::Expression("a condition that is no comparison")),
            },
        }
    }

    fn comparison(&self, operation: &AExpr) -> Steady {
        use AExprKind as Kind;
        let left = operation.lexpr.as_deref().ok_or(Unsteady::Expression("an operator"))?;
        let right = operation.rexpr.as_deref().ok_or(Unsteady::Query)?;
        let is_plain_name = || {
            let name = object_name(&operation.name).map_err(|_| Unsteady::Query)?;
            let is_servers = name.schema.is_none_or(|schema| *schema == *"pg_catalog");
            match is_servers && COMPARISONS.contains(&&*name.name) {
                true => Ok(()),
                false => Err(Unsteady::Expression("an operator")),
            }
        };
        match operation.kind() {
            Kind::AexprOp | Kind::AexprDistinct | Kind::AexprNotDistinct => {
                is_plain_name()?;
                comparable(self.value(left)?, self.value(right)?)
            }
            Kind::AexprIn | Kind::AexprBetween | Kind::AexprNotBetween => {
                let left = self.value(left)?;
                self.list(right)?.into_iter().try_for_each(|value| comparable(left, value))
            }
            Kind::AexprOpAny => {
                is_plain_name()?;
                match (self.value(left)?, self.value(right)?) {
                    (Value::Typed(oid, _), Value::Any) if has_order(oid) => Ok(()),
                    _ => Err(Unsteady::Expression("an array whose type is declared")),
                }
            }
            _ => Err(Unsteady::Expression("an operator")),
        }
    }

    fn list(&self, node: &Node) -> Result<Vec<Value>, Unsteady> {
        match node.node.as_ref() {
            Some(NodeEnum::List(list)) => list.items.iter().map(|item| self.value(item)).collect(),
            _ => Err(Unsteady::Expression("an operator")),
        }
    }

    fn value(&self, node: &Node) -> Result<Value, Unsteady> {
        use pg_query::protobuf::a_const::Val;
        match node.node.as_ref() {
            Some(NodeEnum::AConst(constant)) => Ok(match &constant.val {
                Some(Val::Ival(_) | Val::Fval(_)) => Value::Number,
                Some(Val::Boolval(_)) => Value::Typed(BOOL, 0),
                Some(Val::Sval(_)) | None => Value::Any,
                Some(Val::Bsval(_)) => return Err(Unsteady::Expression("a string of bits")),
            }),
            Some(NodeEnum::ParamRef(parameter)) => Ok(self.parameter(parameter.number)),
            Some(NodeEnum::TypeCast(cast)) => self.cast(cast),
            Some(NodeEnum::ColumnRef(column)) => self.column(column),
            _ => Err(Unsteady::Expression("an expression")),
        }
    }

    fn parameter(&self, number: i32) -> Value {
        let position = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let declared = position.and_then(|position| self.declared.get(position)).copied().unwrap_or(0);
        match declared {
            0 | UNKNOWN => Value::Any,
            oid => Value::Typed(oid, 0),
        }
    }

    /// A constant or an undeclared parameter is read as this type, once and for all; anything else is converted.
    fn cast(&self, cast: &TypeCast) -> Result<Value, Unsteady> {
        let refused = Unsteady::Expression("a cast");
        let argument = cast.arg.as_deref().ok_or(Unsteady::Query)?;
        let is_text = match argument.node.as_ref() {
            Some(NodeEnum::AConst(_) | NodeEnum::ParamRef(_)) => self.value(argument)? == Value::Any,
            _ => false,
        };
        let of = cast
            .type_name
            .as_ref()
            .filter(|of| is_text && of.typmods.is_empty() && of.array_bounds.is_empty());
        let of = of.filter(|of| !of.setof && !of.pct_type).ok_or(refused)?;
        let name = object_name(&of.names).map_err(|_| refused)?;
        let is_servers = name.schema.is_none_or(|schema| *schema == *"pg_catalog");
        let known = CAST_TYPES.iter().find(|(known, _)| *known == &*name.name).filter(|_| is_servers);
        known.map(|(_, oid)| Value::Typed(*oid, 0)).ok_or(refused)
    }

    fn column(&self, column: &ColumnRef) -> Result<Value, Unsteady> {
        let part =
            |node: &'_ Node| name_part(node).map(str::to_owned).map_err(|_| Unsteady::Expression("a field"));
        match column.fields.as_slice() {
            [name] => found(&self.sources, &part(name)?),
            [table, name] => {
                let (table, name) = (part(table)?, part(name)?);
                let position = self.sources.iter().position(|source| source.name == table);
                let position = position.ok_or(Unsteady::Expression("a column of something else"))?;
                found(&self.sources[position..=position], &name)
            }
            _ => Err(Unsteady::Expression("a column with its schema")),
        }
    }
}

/// The type of the column of this name: in all of the tables that have one.
fn found(sources: &[Source<'_>], name: &str) -> Result<Value, Unsteady> {
    let columns = sources.iter().flat_map(|source| &source.columns.columns);
    let mut value = None;
    for column in columns.filter(|column| *column.name == *name) {
        let this = Value::Typed(column.type_oid, column.collation_oid);
        if column.is_virtual {
            return Err(Unsteady::Expression("a column that is computed when it is read"));
        }
        if value.replace(this).is_some_and(|other| other != this) {
            return Err(Unsteady::Expression("a name of several columns"));
        }
    }
    // The name of a table is a row, and that of a system column is not looked into.
    value.ok_or(Unsteady::Expression("a name that is no column's"))
}

/// Whether two values can be compared without a look at a setting, and without fail.
fn comparable(left: Value, right: Value) -> Steady {
    let refused = Err(Unsteady::Expression("a comparison of values of two types"));
    let is_good = match (left, right) {
        (Value::Any, Value::Any) | (Value::Number, Value::Number) => true,
        (Value::Any, Value::Number) | (Value::Number, Value::Any) => true,
        (Value::Typed(oid, _), Value::Any) | (Value::Any, Value::Typed(oid, _)) => has_order(oid),
        (Value::Typed(oid, _), Value::Number) | (Value::Number, Value::Typed(oid, _)) => {
            INTEGERS.contains(&oid) || FLOATS.contains(&oid) || oid == NUMERIC
        }
        (Value::Typed(left, of_left), Value::Typed(right, of_right)) => {
            let both = |types: &[u32]| types.contains(&left) && types.contains(&right);
            // A numeric that is no float's is an error.
            let are_numbers = both(&[INTEGERS[0], INTEGERS[1], INTEGERS[2], NUMERIC])
                || both(&[INTEGERS[0], INTEGERS[1], INTEGERS[2], FLOATS[0], FLOATS[1]]);
            let are_one_type = left == right && has_order(left) || both(&TEXTS);
            let are_alike = are_one_type && (of_left == of_right || of_left == 0 || of_right == 0);
            are_numbers || are_alike
        }
    };
    if is_good { Ok(()) } else { refused }
}

/// Whether a type has comparisons that cannot fail and look at no setting.
fn has_order(oid: u32) -> bool {
    ORDERED.binary_search(&oid).is_ok()
}

const BOOL: u32 = 16;
const UNKNOWN: u32 = 705;
const NUMERIC: u32 = 1700;
const INTEGERS: [u32; 3] = [20, 21, 23];
const FLOATS: [u32; 2] = [700, 701];
/// text and varchar, which is compared as text.
const TEXTS: [u32; 2] = [25, 1043];

/// Types whose comparisons are immutable and do not fail: bool, bytea, "char", name, int8, int2, int4, text, oid, cidr,
/// floats, macaddr8, macaddr, inet, bpchar, varchar, dates and times, bit, varbit, numeric, uuid. Sorted.
const ORDERED: [u32; 27] = [
    16, 17, 18, 19, 20, 21, 23, 25, 26, 650, 700, 701, 774, 829, 869, 1042, 1043, 1082, 1083, 1114, 1184,
    1186, 1266, 1560, 1562, 1700, 2950,
];

/// What a constant may be cast to.
const CAST_TYPES: [(&str, u32); 19] = [
    ("bool", 16),
    ("bytea", 17),
    ("date", 1082),
    ("float4", 700),
    ("float8", 701),
    ("inet", 869),
    ("int2", 21),
    ("int4", 23),
    ("int8", 20),
    ("interval", 1186),
    ("numeric", 1700),
    ("oid", 26),
    ("text", 25),
    ("time", 1083),
    ("timestamp", 1114),
    ("timestamptz", 1184),
    ("timetz", 1266),
    ("uuid", 2950),
    ("varchar", 1043),
];

/// Operators that compare.
const COMPARISONS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purity::Column;

    const TABLE: [(&str, u32, u32); 9] = [
        ("id", 23, 0),
        ("big", 20, 0),
        ("v", 25, 100),
        ("c", 25, 950),
        ("f", 701, 0),
        ("n", 1700, 0),
        ("day", 1082, 0),
        ("at", 1184, 0),
        ("ok", 16, 0),
    ];

    fn relations() -> Vec<(ObjectName, Arc<Columns>)> {
        let column = |(number, (name, type_oid, collation_oid)): (i16, (&str, u32, u32))| Column {
            name: name.into(),
            number,
            type_oid,
            base_oid: 0,
            collation_oid,
            is_virtual: false,
            prefetch: None,
        };
        let table = |name: &str, is_virtual: bool| {
            let mut columns: Vec<Column> = (1..).zip(TABLE).map(column).collect();
            columns[0].is_virtual = is_virtual;
            let relation = ObjectName::unqualified(name);
            (relation.clone(), Arc::new(Columns { relation, columns }))
        };
        vec![table("t", false), table("u", false), table("w", true)]
    }

    fn is_steady(text: &str, declared: &[u32]) -> bool {
        steady(text, declared, &relations()).is_ok()
    }

    #[test]
    fn plain_columns_conditions_and_orders_are_steady() {
        for text in [
            "SELECT * FROM t",
            "SELECT id, v AS name, 1, 'x', NULL, $1 FROM t ORDER BY name, id DESC LIMIT 10 OFFSET $2",
            "SELECT t.*, u.v FROM t JOIN u ON t.id = u.id AND t.v = u.v WHERE t.at > '2020-01-01' AND NOT u.ok",
            "SELECT a.id FROM t a LEFT JOIN u b USING (id, v) WHERE b.id IS NULL OR a.big IN (1, 2, $1)",
            "SELECT id FROM t WHERE id = ANY ($1) AND day BETWEEN '2020-01-01' AND $2 AND f > 1.5 AND n < 3",
            "SELECT DISTINCT id FROM t WHERE big = id AND at = '2020-01-01'::timestamptz AND ok IS TRUE",
            "SELECT DISTINCT ON (id) id, v FROM t WHERE v IS NOT DISTINCT FROM $1 ORDER BY id, 2",
        ] {
            assert!(is_steady(text, &[]), "{text}: {:?}", steady(text, &[], &relations()));
        }
        assert!(is_steady("SELECT id FROM t WHERE id = $1 AND at < $2 AND v = $3", &[20, 1184, 1043]));
    }

    #[test]
    fn what_settings_shape_or_what_may_fail_is_not() {
        for text in [
            "SELECT to_char(at, 'YYYY') FROM t",
            "SELECT id FROM t WHERE day < at",
            "SELECT coalesce(at, day) FROM t",
            "SELECT id FROM t WHERE at IN (day)",
            "SELECT id FROM t JOIN u ON t.day = u.at",
            "SELECT id FROM t WHERE at::date = '2020-01-01'",
            "SELECT CURRENT_USER FROM t",
            "SELECT 100 / id FROM t",
            "SELECT id + 1 FROM t",
            "SELECT id FROM t WHERE n = f",
            "SELECT id FROM t WHERE v = c",
            "SELECT id FROM t WHERE v LIKE $1",
            "SELECT id FROM t WHERE lower(v) = 'a'",
            "SELECT id FROM t WHERE (SELECT true)",
            "SELECT id FROM (SELECT id FROM t) AS s",
            "SELECT id FROM t UNION SELECT id FROM u",
            "SELECT count(*) FROM t",
            "SELECT id FROM t GROUP BY id",
            "WITH s AS (SELECT 1) SELECT id FROM t",
            "SELECT id FROM t FOR UPDATE",
            "SELECT t FROM t",
            "SELECT t.nothing FROM t",
            "SELECT ctid FROM t",
            "SELECT id FROM t NATURAL JOIN u",
            "SELECT id FROM t, generate_series(1, 3)",
            "SELECT id FROM t WHERE id = $1 + 1",
            "SELECT id FROM t LIMIT 1 + 1",
            "SELECT id FROM unknown",
            "SELECT * FROM w",
            "SELECT id FROM w",
            "SELECT 1; SELECT 2",
            "VALUES (1)",
            "DELETE FROM t",
            "SELECT id FROM t AS t (a)",
            "SELECT id FROM t WHERE v = 'x'::bpchar(3)",
        ] {
            assert!(!is_steady(text, &[]), "{text}");
        }
        assert!(!is_steady("SELECT id FROM t WHERE at < $1", &[1082]), "a date as a parameter");
        assert!(!is_steady("SELECT id FROM t WHERE at = $1::timestamptz", &[1082]));
        assert!(!is_steady("SELECT id FROM t WHERE id = ANY ($1)", &[1009]));
    }
}
