//! What names mean in one database.

use std::sync::Arc;

use super::needs::{ObjectName, Operand};

/// What a user has added that any statement may meet without naming it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DatabaseFact {
    /// A cast between types that a statement need not name calls a user's function.
    pub(super) has_calling_cast: bool,
    /// A cast from or to an enum calls a user's function.
    pub(super) has_calling_enum_cast: bool,
    /// A user's operator class sorts, compares or hashes a built-in type or an enum.
    pub(super) has_operator_class: bool,
    /// An extension may answer queries of plain tables from elsewhere.
    pub(super) is_answered_elsewhere: bool,
}

/// A relation outside of the server's own schemas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RelationFact {
    pub(super) schema: Box<str>,
    pub(super) oid: u32,
    /// Why it may not be read, if so: "is a sequence".
    pub(super) refusal: Option<&'static str>,
    pub(super) has_enum: bool,
    pub(super) view: Option<Arc<ViewFact>>,
}

/// What a view comes to, with all views that it reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ViewFact {
    /// In the order in which a report names what is wrong.
    pub(super) uses: Vec<ViewUse>,
    /// A setting may shape a row of it, or a row of it may fail.
    pub(super) is_unsteady: bool,
}

/// What a view uses beyond immutable functions of the server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ViewUse {
    /// Its definition is not of the form that is known.
    Unreadable,
    /// A node that not every plain query has, by its label.
    Node(Box<str>),
    /// A function that is not admitted.
    Function(Box<str>),
    /// One that is, and tells the time of the transaction.
    Clock,
    /// An operator that is not admitted.
    Operator(Box<str>),
    /// A type that is neither built in nor an enum, or whose output looks into the catalogue.
    Type(Box<str>),
    Enum,
    /// A relation of the server.
    System,
    /// A table or materialised view, or one that may not be read, and why.
    Relation(ObjectName, Option<&'static str>),
    /// Something in a view that it reads.
    Inside(ObjectName, Box<ViewUse>),
}

/// All functions of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FunctionFact {
    /// The server's own are those that the list of admitted functions was made from.
    pub(super) is_listed: bool,
    /// The server has one of one argument that is not immutable.
    pub(super) acts_on_one: bool,
    /// By schema.
    pub(super) users: Vec<UserFunction>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UserFunction {
    pub(super) schema: Box<str>,
    /// It can be called with one argument.
    pub(super) takes_one: bool,
    /// It can be called with a row.
    pub(super) takes_row: bool,
}

/// All operators of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OperatorFact {
    /// The server's own are those that the list of admitted operators was made from.
    pub(super) is_listed: bool,
    pub(super) users: Vec<UserOperator>,
}

/// A user's operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UserOperator {
    pub(super) schema: Box<str>,
    pub(super) left: Side,
    pub(super) right: Side,
}

/// What a user's operator takes on one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Nothing,
    /// A built-in type, or one that a built-in type becomes by itself.
    BuiltIn,
    Enum,
    /// Another user's type. A statement that is pure has nothing of it.
    User,
}

impl UserOperator {
    /// Whether the server may take this operator for these operands.
    pub(super) fn may_take(&self, left: Operand, right: Operand, has_enum: bool) -> bool {
        self.left.may_take(left, has_enum) && self.right.may_take(right, has_enum)
    }
}

impl Side {
    fn may_take(self, operand: Operand, has_enum: bool) -> bool {
        match (self, operand) {
            (Self::Nothing, operand) => operand == Operand::Absent,
            (_, Operand::Absent) => false,
            (Self::BuiltIn, _) | (_, Operand::Untyped) => true,
            (Self::Enum, Operand::Typed) => has_enum,
            (Self::User, Operand::Typed) => false,
        }
    }
}

/// All types of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TypeFact {
    /// The object id of the server's own type, zero if it has none.
    pub(super) built_in: u32,
    /// By schema; whether it is an enum.
    pub(super) users: Vec<(Box<str>, bool)>,
}

/// A column of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: Box<str>,
    /// Its number in the relation.
    pub number: i16,
    /// Its type.
    pub type_oid: u32,
    /// What that is a domain over; zero if it is none.
    pub base_oid: u32,
    /// Its collation; zero if it has none.
    pub collation_oid: u32,
    /// It is computed when it is read.
    pub is_virtual: bool,
    /// What its comment sets `onetrip.lob_prefetch` to, as it is written there.
    pub prefetch: Option<Box<str>>,
}

/// The columns of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// The relation.
    pub relation: ObjectName,
    /// In any order.
    pub columns: Vec<Column>,
}

/// Whether a function of a user may do more than read and write rows, as far as the functions' sources tell: take a lock that
/// conflicts with a reader's, or change the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Acts {
    /// One that a statement calls.
    pub called: bool,
    /// One that runs where rows are written, whoever calls it: of a trigger, a default, an index.
    pub written: bool,
    /// One that runs where rows are read: of a view, a policy, an operator, a cast.
    pub read: bool,
    /// One that runs where a statement is only parsed or planned, and may do anything but read.
    pub parsed: bool,
    /// One that runs at a login: of an event trigger.
    pub login: bool,
}
