//! Queries: clauses, relations and the scope of common table expressions. Expressions are in `expression.rs`.

use pg_query::protobuf::{
    ColumnDef, CommonTableExpr, JoinExpr, RangeFunction, RangeVar, SelectStmt, SortBy, WindowDef, WithClause,
};
use pg_query::{Node, NodeEnum};

use super::impure::Impure;
use super::needs::{Needs, ObjectName, Operand, OperatorUse};

/// Nothing, or what is not known to be harmless.
pub(super) type Step = Result<(), Impure>;

/// Walks a parse tree, admits the nodes it knows and collects what they need.
///
/// The tree is at most some 45 nodes deep (its decoder refuses more), so plain recursion is enough.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) needs: Needs,
    /// Names of common table expressions in scope, the innermost last.
    tables: Vec<Box<str>>,
}

impl Walk {
    pub(super) fn into_needs(self) -> Needs {
        self.needs
    }

    /// A query of any kind: SELECT, VALUES, TABLE, or a set operation of such.
    pub(super) fn select(&mut self, select: &SelectStmt) -> Step {
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
            op: _,
            all: _,
            larg,
            rarg,
        } = select;
        if into_clause.is_some() {
            return Err(Impure::Construct("SELECT INTO"));
        }
        if !locking_clause.is_empty() {
            return Err(Impure::Construct("FOR UPDATE or FOR SHARE"));
        }
        let outer_tables = self.tables.len();
        if let Some(with) = with_clause {
            self.with(with)?;
        }
        for arm in [larg, rarg].into_iter().flatten() {
            self.select(arm)?;
        }
        for item in from_clause {
            self.source(item)?;
        }
        let clauses = [target_list, group_clause, values_lists, sort_clause];
        self.all(clauses.into_iter().flatten())?;
        // A plain DISTINCT is a list of one absent expression.
        self.all(distinct_clause.iter().filter(|node| node.node.is_some()))?;
        for window in window_clause {
            self.expression(window)?;
        }
        let conditions = [where_clause, having_clause, limit_offset, limit_count];
        self.all(conditions.into_iter().flatten().map(AsRef::as_ref))?;
        self.tables.truncate(outer_tables);
        Ok(())
    }

    /// Common table expressions: with RECURSIVE each sees all of its list, without only those before it.
    fn with(&mut self, with: &WithClause) -> Step {
        let tables = with.ctes.iter().map(common_table).collect::<Result<Vec<_>, _>>()?;
        if with.recursive {
            self.tables.extend(tables.iter().map(|table| table.ctename.as_str().into()));
        }
        for table in tables {
            let query = table.ctequery.as_ref().and_then(|node| node.node.as_ref());
            let Some(NodeEnum::SelectStmt(select)) = query else {
                return Err(Impure::Construct("a data-modifying statement in WITH"));
            };
            if table.search_clause.is_some() || table.cycle_clause.is_some() {
                return Err(Impure::Construct("SEARCH or CYCLE"));
            }
            self.select(select)?;
            if !with.recursive {
                self.tables.push(table.ctename.as_str().into());
            }
        }
        Ok(())
    }

    fn source(&mut self, item: &Node) -> Step {
        match item.node.as_ref() {
            Some(NodeEnum::RangeVar(relation)) => self.relation(relation),
            Some(NodeEnum::JoinExpr(join)) => self.join(join),
            Some(NodeEnum::RangeFunction(function)) => self.range_function(function),
            Some(NodeEnum::RangeSubselect(query)) => self.expression(child(query.subquery.as_deref())?),
            Some(NodeEnum::RangeTableSample(_)) => Err(Impure::Construct("TABLESAMPLE")),
            Some(NodeEnum::RangeTableFunc(_)) => Err(Impure::Construct("XMLTABLE")),
            Some(NodeEnum::JsonTable(_)) => Err(Impure::Construct("JSON_TABLE")),
            _ => Err(Impure::Construct("an unknown kind of FROM item")),
        }
    }

    fn relation(&mut self, relation: &RangeVar) -> Step {
        if !relation.catalogname.is_empty() {
            return Err(Impure::Construct("a name with a database"));
        }
        let name = relation.relname.as_str();
        if relation.schemaname.is_empty() {
            if !self.tables.iter().any(|table| table.as_ref() == name) {
                self.needs.relations.insert(ObjectName::unqualified(name));
            }
        } else {
            self.needs.relations.insert(ObjectName::qualified(&relation.schemaname, name));
        }
        Ok(())
    }

    fn join(&mut self, join: &JoinExpr) -> Step {
        self.source(child(join.larg.as_deref())?)?;
        self.source(child(join.rarg.as_deref())?)?;
        if join.is_natural || !join.using_clause.is_empty() {
            self.operator(ObjectName::unqualified("="), Operand::Typed, Operand::Typed);
        }
        self.all(join.quals.as_deref())
    }

    /// `f(x)`, `ROWS FROM (f(x), g(y) AS (a int))`: a list of pairs of a function and its columns' definitions.
    fn range_function(&mut self, item: &RangeFunction) -> Step {
        self.needs.has_function_in_from = true;
        for pair in &item.functions {
            let Some(NodeEnum::List(pair)) = pair.node.as_ref() else {
                return Err(Impure::Construct("an unknown kind of FROM item"));
            };
            let Some((function, columns)) = pair.items.split_first() else {
                return Err(Impure::Construct("an unknown kind of FROM item"));
            };
            self.expression(function)?;
            for columns in columns {
                self.column_definitions(columns)?;
            }
        }
        item.coldeflist.iter().try_for_each(|column| self.column_definitions(column))
    }

    fn column_definitions(&mut self, node: &Node) -> Step {
        match node.node.as_ref() {
            None => Ok(()),
            Some(NodeEnum::List(list)) => {
                list.items.iter().try_for_each(|column| self.column_definitions(column))
            }
            Some(NodeEnum::ColumnDef(column)) => self.column_definition(column),
            _ => Err(Impure::Construct("an unknown column definition")),
        }
    }

    fn column_definition(&mut self, column: &ColumnDef) -> Step {
        if column.coll_clause.is_some() {
            return Err(Impure::Construct("COLLATE in a column definition"));
        }
        let type_name = column.type_name.as_ref();
        self.type_name(type_name.ok_or(Impure::Construct("a column definition without a type"))?)
    }

    pub(super) fn sort(&mut self, sort: &SortBy) -> Step {
        if !sort.use_op.is_empty() {
            self.operator(object_name(&sort.use_op)?, Operand::Typed, Operand::Typed);
        }
        self.all(sort.node.as_deref())
    }

    pub(super) fn window(&mut self, window: &WindowDef) -> Step {
        self.all(&window.partition_clause)?;
        self.all(&window.order_clause)?;
        self.all(window.start_offset.as_deref())?;
        self.all(window.end_offset.as_deref())
    }

    pub(super) fn all<'a>(&mut self, nodes: impl IntoIterator<Item = &'a Node>) -> Step {
        nodes.into_iter().try_for_each(|node| self.expression(node))
    }

    pub(super) fn operator(&mut self, operator: ObjectName, left: Operand, right: Operand) {
        self.needs.operators.insert(OperatorUse { operator, left, right });
    }
}

fn common_table(node: &Node) -> Result<&CommonTableExpr, Impure> {
    match node.node.as_ref() {
        Some(NodeEnum::CommonTableExpr(table)) if table.ctename.len() > NAME_BYTES_SURE => {
            Err(Impure::Construct("a name in WITH that may be cut"))
        }
        Some(NodeEnum::CommonTableExpr(table)) => Ok(table),
        _ => Err(Impure::Construct("an unknown kind of WITH")),
    }
}

/// A part that the grammar always gives.
pub(super) fn child(node: Option<&Node>) -> Result<&Node, Impure> {
    node.ok_or(Impure::Construct("an incomplete construct"))
}

/// The one or two parts of the name of a function, operator, type or collation.
pub(super) fn object_name(parts: &[Node]) -> Result<ObjectName, Impure> {
    match parts {
        [name] => Ok(ObjectName::unqualified(name_part(name)?)),
        [schema, name] => Ok(ObjectName::qualified(name_part(schema)?, name_part(name)?)),
        _ => Err(Impure::Construct("a name with a database")),
    }
}

pub(super) fn name_part(node: &Node) -> Result<&str, Impure> {
    match node.node.as_ref() {
        Some(NodeEnum::String(part)) => Ok(&part.sval),
        _ => Err(Impure::Construct("an unknown kind of name")),
    }
}

/// Names up to here are not cut. The parser cuts after 63 bytes of UTF-8, but a server after 63 bytes of its own
/// encoding, so that it may tell names apart which are one name here, and find a table where a cut name was in scope.
const NAME_BYTES_SURE: usize = 58;
