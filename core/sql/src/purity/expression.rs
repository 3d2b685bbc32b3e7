//! Expressions: the allow-list of nodes.

use pg_query::protobuf::{
    AExpr, AExprKind, AIndirection, CaseExpr, CollateClause, ColumnRef, FuncCall, SqlValueFunctionOp,
    SubLink, TypeCast, TypeName, a_const,
};
use pg_query::{Node, NodeEnum};

use super::impure::Impure;
use super::needs::{ObjectName, Operand};
use super::walk::{Step, Walk, child, name_part, object_name};

impl Walk {
    /// An expression, or a part that stands in lists of expressions.
    pub(super) fn expression(&mut self, node: &Node) -> Step {
        let Some(node) = node.node.as_ref() else {
            return Err(Impure::Construct("an incomplete construct"));
        };
        match node {
            NodeEnum::ParamRef(_) | NodeEnum::AStar(_) => Ok(()),
            NodeEnum::AConst(constant) => {
                self.needs.facts.reads_clock |= is_clock_text(constant.val.as_ref());
                Ok(())
            }
            NodeEnum::ColumnRef(column) => self.column(column),
            NodeEnum::AExpr(operation) => self.operation(operation),
            NodeEnum::BoolExpr(node) => self.all(&node.args),
            NodeEnum::NullTest(node) => self.all(node.arg.as_deref()),
            NodeEnum::BooleanTest(node) => self.all(node.arg.as_deref()),
            NodeEnum::CoalesceExpr(node) => self.all(&node.args),
            NodeEnum::MinMaxExpr(node) => self.all(&node.args),
            NodeEnum::RowExpr(node) => self.all(&node.args),
            NodeEnum::AArrayExpr(node) => self.all(&node.elements),
            NodeEnum::List(node) => self.all(&node.items),
            NodeEnum::GroupingFunc(node) => self.all(&node.args),
            NodeEnum::GroupingSet(node) => self.all(&node.content),
            NodeEnum::NamedArgExpr(node) => self.all(node.arg.as_deref()),
            NodeEnum::CaseExpr(case) => self.case(case),
            NodeEnum::TypeCast(cast) => self.cast(cast),
            NodeEnum::CollateClause(clause) => self.collate(clause),
            NodeEnum::FuncCall(call) => self.call(call),
            NodeEnum::AIndirection(node) => self.indirection(node),
            NodeEnum::SubLink(link) => self.sub_link(link),
            NodeEnum::SelectStmt(select) => self.select(select),
            NodeEnum::SortBy(sort) => self.sort(sort),
            NodeEnum::WindowDef(window) => self.window(window),
            NodeEnum::SqlvalueFunction(function) => self.value_function(function.op()),
            NodeEnum::ResTarget(target) if target.indirection.is_empty() => self.all(target.val.as_deref()),
            other => Err(Impure::Construct(construct_name(other))),
        }
    }

    /// `c`, `t.c`, `s.t.c`, `t.*`. The last part of several may be a function of the row.
    fn column(&mut self, column: &ColumnRef) -> Step {
        let last = column.fields.last().filter(|last| !matches!(last.node, Some(NodeEnum::AStar(_))));
        if let Some(last) = last {
            if NOT_OF_THE_SNAPSHOT.contains(&name_part(last)?) {
                return Err(Impure::Construct("a system column that tells what others do to a row"));
            }
        }
        if let [_, .., last] = column.fields.as_slice() {
            if !matches!(last.node, Some(NodeEnum::AStar(_))) {
                self.needs.fields.insert(name_part(last)?.into());
            }
        }
        Ok(())
    }

    /// `x[1]`, `x[1:2]`, `(x).*`. But `('s').nextval` is `nextval('s')`, whatever the type of `x`.
    fn indirection(&mut self, node: &AIndirection) -> Step {
        self.all(node.arg.as_deref())?;
        for part in &node.indirection {
            match part.node.as_ref() {
                Some(NodeEnum::AIndices(index)) => {
                    self.all(index.lidx.as_deref())?;
                    self.all(index.uidx.as_deref())?;
                }
                Some(NodeEnum::AStar(_)) => {}
                _ => return Err(Impure::Construct("a field of an expression")),
            }
        }
        Ok(())
    }

    fn operation(&mut self, node: &AExpr) -> Step {
        let left = node.lexpr.as_deref();
        let right = child(node.rexpr.as_deref())?;
        let (left_operand, right_operand) = (left.map_or(Operand::Absent, operand), operand(right));
        for operator in operators(node)? {
            self.operator(operator, left_operand, right_operand);
        }
        self.all(left)?;
        self.expression(right)
    }

    /// `CASE x WHEN y` compares with `=`.
    fn case(&mut self, case: &CaseExpr) -> Step {
        self.all(case.arg.as_deref())?;
        for when in &case.args {
            let Some(NodeEnum::CaseWhen(when)) = when.node.as_ref() else {
                return Err(Impure::Construct("an unknown kind of CASE"));
            };
            let condition = child(when.expr.as_deref())?;
            if let Some(subject) = case.arg.as_deref() {
                self.operator(ObjectName::unqualified("="), operand(subject), operand(condition));
            }
            self.expression(condition)?;
            self.all(when.result.as_deref())?;
        }
        self.all(case.defresult.as_deref())
    }

    fn cast(&mut self, cast: &TypeCast) -> Step {
        let type_name = cast.type_name.as_ref().ok_or(Impure::Construct("a cast without a type"))?;
        self.type_name(type_name)?;
        let argument = child(cast.arg.as_deref())?;
        let is_constant = matches!(argument.node, Some(NodeEnum::AConst(_)));
        let name = type_name.names.last().map_or(Ok(""), name_part)?;
        // A text that only the server sees may be 'now'; a time's zone offset is that of today.
        self.needs.facts.reads_clock |= name == "timetz" || (!is_constant && CLOCK_TYPES.contains(&name));
        self.expression(argument)
    }

    pub(super) fn type_name(&mut self, type_name: &TypeName) -> Step {
        if type_name.setof || type_name.pct_type {
            return Err(Impure::Construct("SETOF or %TYPE"));
        }
        self.needs.types.insert(object_name(&type_name.names)?);
        self.all(&type_name.typmods)
    }

    fn collate(&mut self, clause: &CollateClause) -> Step {
        let collation = object_name(&clause.collname)?;
        let is_built_in = collation.schema.as_deref().is_none_or(|schema| schema == "pg_catalog");
        if !is_built_in || !COLLATIONS.contains(&collation.name.as_ref()) {
            return Err(Impure::Collation(collation));
        }
        self.all(clause.arg.as_deref())
    }

    fn call(&mut self, call: &FuncCall) -> Step {
        let function = object_name(&call.funcname)?;
        let name = function.name.as_ref();
        self.needs.facts.reads_clock |= CLOCK_FUNCTIONS.contains(&name) || CLOCK_TYPES.contains(&name);
        self.needs.facts.reads_settings |= SETTING_FUNCTIONS.contains(&name);
        self.needs.functions.insert(function);
        self.all(&call.args)?;
        self.all(&call.agg_order)?;
        self.all(call.agg_filter.as_deref())?;
        call.over.as_ref().map_or(Ok(()), |window| self.window(window))
    }

    /// `EXISTS (…)`, `(…)`, `ARRAY(…)`, `x IN (…)`, `x < ALL (…)`.
    fn sub_link(&mut self, link: &SubLink) -> Step {
        if let Some(test) = link.testexpr.as_deref() {
            let operator = match link.oper_name.as_slice() {
                [] => ObjectName::unqualified("="),
                parts => object_name(parts)?,
            };
            self.operator(operator, operand(test), Operand::Typed);
            self.expression(test)?;
        }
        self.expression(child(link.subselect.as_deref())?)
    }

    fn value_function(&mut self, function: SqlValueFunctionOp) -> Step {
        use SqlValueFunctionOp as Op;
        match function {
            Op::SvfopCurrentDate
            | Op::SvfopCurrentTime
            | Op::SvfopCurrentTimeN
            | Op::SvfopCurrentTimestamp
            | Op::SvfopCurrentTimestampN
            | Op::SvfopLocaltime
            | Op::SvfopLocaltimeN
            | Op::SvfopLocaltimestamp
            | Op::SvfopLocaltimestampN => self.needs.facts.reads_clock = true,
            Op::SvfopCurrentRole
            | Op::SvfopCurrentUser
            | Op::SvfopUser
            | Op::SvfopSessionUser
            | Op::SvfopCurrentCatalog
            | Op::SvfopCurrentSchema => self.needs.facts.reads_settings = true,
            Op::SqlvalueFunctionOpUndefined => return Err(Impure::Construct("an unknown value function")),
        }
        Ok(())
    }
}

/// The operators that a piece of syntax comes to.
fn operators(node: &AExpr) -> Result<Vec<ObjectName>, Impure> {
    let named = |names: &[&str]| Ok(names.iter().map(|name| ObjectName::unqualified(name)).collect());
    match node.kind() {
        AExprKind::AexprBetween => named(&[">=", "<="]),
        AExprKind::AexprNotBetween => named(&["<", ">"]),
        AExprKind::AexprBetweenSym => named(&[">=", "<="]),
        AExprKind::AexprNotBetweenSym => named(&["<", ">"]),
        AExprKind::Undefined => Err(Impure::Construct("an unknown kind of operation")),
        AExprKind::AexprOp
        | AExprKind::AexprOpAny
        | AExprKind::AexprOpAll
        | AExprKind::AexprDistinct
        | AExprKind::AexprNotDistinct
        | AExprKind::AexprNullif
        | AExprKind::AexprIn
        | AExprKind::AexprLike
        | AExprKind::AexprIlike
        | AExprKind::AexprSimilar => Ok(vec![object_name(&node.name)?]),
    }
}

/// Whether an expression brings a type of its own. Of several (a row, a list) one without is enough. A number does, but
/// counts as without one: texts of one template differ in constants, and are to have one verdict.
fn operand(node: &Node) -> Operand {
    let any_untyped = |nodes: &[Node]| nodes.iter().any(|node| operand(node) == Operand::Untyped);
    let is_untyped = match node.node.as_ref() {
        Some(NodeEnum::ParamRef(_) | NodeEnum::AConst(_)) | None => true,
        Some(NodeEnum::CollateClause(clause)) => {
            clause.arg.as_deref().is_none_or(|argument| operand(argument) == Operand::Untyped)
        }
        Some(NodeEnum::List(list)) => any_untyped(&list.items),
        Some(NodeEnum::RowExpr(row)) => any_untyped(&row.args),
        _ => false,
    };
    if is_untyped { Operand::Untyped } else { Operand::Typed }
}

/// Whether a string is one of those that date and time types take for the transaction's time, or holds one.
fn is_clock_text(value: Option<&a_const::Val>) -> bool {
    let Some(a_const::Val::Sval(text)) = value else { return false };
    let text = text.sval.to_ascii_lowercase();
    ["now", "today", "tomorrow", "yesterday"].iter().any(|word| text.contains(word))
}

fn construct_name(node: &NodeEnum) -> &'static str {
    match node {
        NodeEnum::SetToDefault(_) => "DEFAULT",
        NodeEnum::CurrentOfExpr(_) => "CURRENT OF",
        NodeEnum::XmlExpr(_) | NodeEnum::XmlSerialize(_) => "an XML construct",
        NodeEnum::JsonObjectConstructor(_)
        | NodeEnum::JsonArrayConstructor(_)
        | NodeEnum::JsonArrayQueryConstructor(_)
        | NodeEnum::JsonObjectAgg(_)
        | NodeEnum::JsonArrayAgg(_)
        | NodeEnum::JsonFuncExpr(_)
        | NodeEnum::JsonIsPredicate(_)
        | NodeEnum::JsonParseExpr(_)
        | NodeEnum::JsonScalarExpr(_)
        | NodeEnum::JsonSerializeExpr(_) => "an SQL/JSON construct",
        NodeEnum::MergeSupportFunc(_) => "MERGE_ACTION",
        _ => "a construct that is not known to be harmless",
    }
}

/// System columns that are not of the snapshot: who locks, updates or deletes a row is written into the row as it is.
const NOT_OF_THE_SNAPSHOT: [&str; 3] = ["xmax", "cmin", "cmax"];

/// Functions that give the transaction's time, or compute with it.
pub(super) const CLOCK_FUNCTIONS: [&str; 4] = ["age", "now", "timezone", "transaction_timestamp"];

/// Types whose input takes 'now', also as functions (`date('now')`).
const CLOCK_TYPES: [&str; 5] = ["date", "time", "timestamp", "timestamptz", "timetz"];

/// Functions of the session's settings. None is on the allow-list; the fact is for a caller that looks at it alone.
const SETTING_FUNCTIONS: [&str; 4] =
    ["current_database", "current_schema", "current_schemas", "current_setting"];

/// Deterministic collations without a provider's data, or the database's own.
const COLLATIONS: [&str; 3] = ["C", "POSIX", "default"];
