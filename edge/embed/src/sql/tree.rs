//! What the parser gives: expressions and queries with the tokens they span, in two arenas.

use crate::types::SqlType;

pub(crate) type ExprId = usize;
pub(crate) type QueryId = usize;

/// All expressions and queries of one statement.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) exprs: Vec<Expr>,
    pub(crate) queries: Vec<Query>,
}

/// An expression; `first` and `last` are token indices, both inside.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) node: Node,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

#[derive(Debug)]
pub(crate) enum Node {
    Null,
    Bool,
    Integer,
    Decimal,
    /// A string of no type yet.
    Text(String),
    /// `$n`, n from 1.
    Parameter(u32),
    Column {
        table: Option<String>,
        name: String,
    },
    Star {
        table: Option<String>,
    },
    Paren(ExprId),
    Row(Vec<ExprId>),
    Sign(ExprId),
    Not(ExprId),
    Binary {
        op: Op,
        at: usize,
        at_last: usize,
        left: ExprId,
        right: ExprId,
    },
    Cast {
        arg: ExprId,
        ty: SqlType,
    },
    /// `date '2024-01-01'`
    Typed {
        ty: SqlType,
        text: String,
    },
    Call(Call),
    Case {
        operand: Option<ExprId>,
        branches: Vec<(ExprId, ExprId)>,
        otherwise: Option<ExprId>,
    },
    Scalar(QueryId),
    Exists(QueryId),
    ArrayOf(QueryId),
    ArrayList(Vec<ExprId>),
    InList {
        arg: ExprId,
        list: Vec<ExprId>,
    },
    InQuery {
        arg: ExprId,
        query: QueryId,
    },
    Between {
        arg: ExprId,
        low: ExprId,
        high: ExprId,
    },
    /// IS [NOT] NULL, TRUE, FALSE, UNKNOWN.
    Test {
        arg: ExprId,
    },
    /// `left op ANY (…)` and `left op ALL (…)`; `at` is the operator's token.
    Quantified {
        left: ExprId,
        at: usize,
        is_all: bool,
        right: Quantity,
    },
    Subscript {
        arg: ExprId,
        index: ExprId,
    },
    AtTimeZone {
        arg: ExprId,
        zone: ExprId,
    },
    Collate {
        arg: ExprId,
        at: usize,
    },
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Quantity {
    Array(ExprId),
    Query(QueryId),
}

/// A function call, or a function that SQL writes without parentheses.
#[derive(Debug)]
pub(crate) struct Call {
    /// In small case, without schema.
    pub(crate) name: String,
    pub(crate) args: Vec<ExprId>,
    pub(crate) is_star: bool,
    /// ORDER BY, FILTER and OVER parts, which only need to be walked.
    pub(crate) extras: Vec<ExprId>,
    pub(crate) is_window: bool,
    /// Token of its last name part.
    pub(crate) name_at: usize,
    /// Its closing parenthesis, before FILTER and OVER; the name itself where there are none.
    pub(crate) close_at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Or,
    And,
    Compare,
    /// IS [NOT] DISTINCT FROM
    Distinct,
    Like {
        is_negated: bool,
        ignores_case: bool,
        has_escape: bool,
    },
    Regex {
        is_negated: bool,
        ignores_case: bool,
    },
    Concat,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    /// `->`
    Json,
    /// `->>`
    JsonText,
    Bits,
    Other,
}

/// SELECT or VALUES with what may stand around it.
#[derive(Debug, Default)]
pub(crate) struct Query {
    pub(crate) with: Vec<CommonTable>,
    pub(crate) arms: Vec<Arm>,
    pub(crate) order: Vec<Order>,
    pub(crate) limit: Option<Limit>,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

#[derive(Debug)]
pub(crate) struct CommonTable {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) query: QueryId,
}

/// One SELECT or VALUES between set operators.
#[derive(Debug, Default)]
pub(crate) struct Arm {
    pub(crate) items: Vec<Item>,
    pub(crate) rows: Vec<Vec<ExprId>>,
    /// A query in parentheses that stands as an arm.
    pub(crate) nested: Option<QueryId>,
    pub(crate) from: Vec<FromItem>,
    /// WHERE, HAVING and join conditions.
    pub(crate) conditions: Vec<ExprId>,
    pub(crate) groups: Vec<ExprId>,
    /// Last token of the select list, or of FROM where there is one.
    pub(crate) from_end: usize,
}

#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) expr: ExprId,
    pub(crate) alias: Option<String>,
}

#[derive(Debug)]
pub(crate) struct FromItem {
    pub(crate) source: Source,
    pub(crate) alias: Option<String>,
    pub(crate) columns: Vec<String>,
    /// WITH ORDINALITY
    pub(crate) is_numbered: bool,
    pub(crate) first: usize,
    /// Last token, its alias included.
    pub(crate) last: usize,
}

#[derive(Debug)]
pub(crate) enum Source {
    Table { schema: Option<String>, name: String },
    Query(QueryId),
    Function(ExprId),
}

#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) expr: ExprId,
    pub(crate) is_descending: bool,
    pub(crate) has_nulls: bool,
    /// Last token of the entry.
    pub(crate) last: usize,
}

/// LIMIT, OFFSET and FETCH as found, to be written anew in SQLite's order.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) count: Option<ExprId>,
    /// FETCH FIRST ROW ONLY
    pub(crate) is_one: bool,
    pub(crate) offset: Option<ExprId>,
    pub(crate) first: usize,
    pub(crate) last: usize,
}
