//! Statements as the model understands them.

use std::sync::Arc;

use onetrip_sql::purity::{Lookup, SessionQuestion};

use super::schema::Table;
use super::value::Type;

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Statement {
    Select(Arc<Select>),
    Insert(Arc<Insert>),
    Update(Arc<Change>),
    Delete(Arc<Change>),
    /// `starts` is for START TRANSACTION.
    Begin {
        modes: Modes,
        starts: bool,
    },
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    SetTransaction(Modes),
    /// `None` resets.
    Set {
        name: String,
        value: Option<String>,
        is_local: bool,
    },
    ResetAll,
    Show(String),
    Declare {
        name: String,
        holds: bool,
        scroll: Option<bool>,
        select: Arc<Select>,
    },
    Fetch {
        name: String,
        rows: Rows,
        is_move: bool,
    },
    /// `None` is all.
    Close(Option<String>),
    /// `None` is all.
    Deallocate(Option<String>),
    DiscardAll,
    /// `ALTER TABLE w ALTER COLUMN v TYPE`: bigint, or integer.
    Alter {
        is_wide: bool,
    },
    Lock {
        tables: Vec<Table>,
        is_exclusive: bool,
        nowait: bool,
    },
    /// What only a session of onetrip asks.
    Question(Question),
}

impl Statement {
    /// The table that a SELECT reads.
    pub(crate) fn read_from(&self) -> Option<Table> {
        match self {
            Self::Select(select) => select.table,
            _ => None,
        }
    }
}

/// What a session of onetrip asks beside the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// About itself.
    Session(SessionQuestion),
    /// About the catalogue.
    Lookup(Lookup),
}

/// What BEGIN and SET TRANSACTION say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Modes {
    pub(crate) level: Option<Level>,
    pub(crate) read_only: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// How many rows FETCH and MOVE go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    Forward(usize),
    All,
    Backward(usize),
    Absolute(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Select {
    pub(crate) items: Vec<Item>,
    pub(crate) table: Option<Table>,
    pub(crate) condition: Option<Expression>,
    /// By this column; true is descending.
    pub(crate) order: Option<(usize, bool)>,
    pub(crate) limit: Option<usize>,
    pub(crate) locks: bool,
}

impl Select {
    /// Whether it does more than read, or reads when it is run.
    pub(crate) fn acts(&self) -> bool {
        self.locks || self.items.iter().any(|item| item.expression.acts())
    }

    /// Whether its one row is of all rows.
    pub(crate) fn is_aggregate(&self) -> bool {
        self.items.iter().any(|item| matches!(item.expression, Expression::Count | Expression::Max(_)))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) expression: Expression,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Insert {
    pub(crate) table: Table,
    pub(crate) rows: Vec<Vec<Expression>>,
    pub(crate) returning: Vec<Item>,
}

/// UPDATE, or DELETE with nothing set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    pub(crate) table: Table,
    pub(crate) set: Vec<(usize, Expression)>,
    pub(crate) condition: Option<Expression>,
    pub(crate) returning: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Integer(i64),
    Text(Arc<str>),
    Null,
    Boolean(bool),
    /// From zero on.
    Parameter(usize),
    Column(usize),
    Binary(Operator, Box<(Expression, Expression)>),
    Cast(Type, Box<Expression>),
    IsNull(bool, Box<Expression>),
    Count,
    Max(usize),
    /// A function of a user's that writes its argument into the log.
    Side(Box<Expression>),
    /// `pg_try_advisory_lock(key)`.
    TryLock(Box<Expression>),
    /// `set_config(name, value, is_local)`.
    SetConfig(String, String, bool),
    CurrentSetting(String),
    /// `pg_advisory_unlock_all()`.
    UnlockAll,
    /// A function of a user's that moves the cursor `c1`.
    Moves,
}

impl Expression {
    fn acts(&self) -> bool {
        match self {
            Self::Side(_)
            | Self::TryLock(_)
            | Self::SetConfig(..)
            | Self::CurrentSetting(_)
            | Self::UnlockAll
            | Self::Moves => true,
            Self::Binary(_, both) => both.0.acts() || both.1.acts(),
            Self::Cast(_, inner) | Self::IsNull(_, inner) => inner.acts(),
            _ => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    And,
    Or,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Join,
}
