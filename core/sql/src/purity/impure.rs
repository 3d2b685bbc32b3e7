//! Why a statement is not known to be pure.

use super::needs::ObjectName;

/// What makes a statement unsafe to run unasked, as one phrase for a report.
///
/// No constant of the statement is ever in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Impure {
    /// The text is longer than [`super::TEXT_BYTES_MAX`].
    #[error("the statement is too long to judge ({0} bytes)")]
    TooLong(usize),
    /// The database has code of users that may do anything but read where a statement is only parsed or planned.
    #[error("a function of this database that is not VOLATILE, or the check of a domain, calls one that is")]
    ActsUnrun,
    /// PostgreSQL's grammar refuses the text.
    #[error("the statement does not parse")]
    NotParsed,
    /// The system has no thread left to parse it on.
    #[error("the statement could not be parsed for lack of a thread")]
    NoThread,
    /// Expressions or queries are nested beyond some 45 levels.
    #[error("the statement is nested too deeply to judge")]
    TooDeep,
    /// There is no statement, or more than one.
    #[error("the text holds {0} statements")]
    StatementCount(usize),
    /// It is not a query, or holds a construct that is not known to be harmless.
    #[error("it uses {0}")]
    Construct(&'static str),
    /// No relation of that name is known.
    #[error("relation {0} is not known")]
    UnknownRelation(ObjectName),
    /// The relation can be read, but is no plain table, view or materialised view.
    #[error("{relation} {what}")]
    Relation {
        /// Which one.
        relation: ObjectName,
        /// What is wrong with it: "is a sequence", "has row-level security".
        what: &'static str,
    },
    /// The function is not on the list of harmless built-in functions.
    #[error("function {0} is not a built-in function known to be harmless")]
    Function(ObjectName),
    /// A built-in function has a user's function beside it that may be called in its place.
    #[error("function {0} may be the function of that name in schema {1}")]
    FunctionShadowed(ObjectName, Box<str>),
    /// A column reference may be a function call.
    #[error("{field} may be a call of function {function}")]
    FieldFunction {
        /// The last part of `t.f`.
        field: Box<str>,
        /// The function it may call.
        function: ObjectName,
    },
    /// The operator is not on the list of harmless built-in operators.
    #[error("operator {0} is not a built-in operator known to be harmless")]
    Operator(ObjectName),
    /// A built-in operator has a user's operator beside it that may be called in its place.
    #[error("operator {0} may be the operator of that name in schema {1}")]
    OperatorShadowed(ObjectName, Box<str>),
    /// The type is not on the list of harmless built-in types, nor a user's enum.
    #[error("type {0} is not a built-in type known to be harmless")]
    Type(ObjectName),
    /// A collation other than the built-in, deterministic ones.
    #[error("collation {0} is not known to be harmless")]
    Collation(ObjectName),
    /// Something in the whole database makes every statement unsafe.
    #[error("{0}")]
    Database(&'static str),
    /// A view that the statement reads is not pure.
    #[error("view {view}: {because}")]
    View {
        /// Which view.
        view: ObjectName,
        /// Why.
        because: Box<Impure>,
    },
}
