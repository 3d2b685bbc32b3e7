//! What a statement's text leaves to the catalogue to answer.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

/// A name as a statement or the catalogue has it, folded and unquoted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The schema, if the statement names one.
    pub schema: Option<Box<str>>,
    /// The name inside its schema.
    pub name: Box<str>,
}

impl ObjectName {
    /// A name in a schema.
    pub fn qualified(schema: &str, name: &str) -> Self {
        Self { schema: Some(schema.into()), name: name.into() }
    }

    /// A name that the search path has to resolve.
    pub fn unqualified(name: &str) -> Self {
        Self { schema: None, name: name.into() }
    }
}

/// As SQL writes it, with quotes where they are needed.
impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{}.", Identifier(schema))?;
        }
        write!(f, "{}", Identifier(&self.name))
    }
}

struct Identifier<'a>(&'a str);

impl fmt::Display for Identifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if self.0.bytes().all(is_plain) {
            return f.write_str(self.0);
        }
        f.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' => f.write_str("\"\"")?,
                // One line stays one line.
                control if control.is_control() => write!(f, "{}", control.escape_default())?,
                other => f.write_char(other)?,
            }
        }
        f.write_char('"')
    }
}

/// What an operator is given on one side, as far as the text tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operand {
    /// Nothing: the operator is a prefix.
    Absent,
    /// Something with a type of its own, such as a column.
    Typed,
    /// A constant or parameter: the server may pick the type to suit an operator.
    Untyped,
}

/// One way in which a statement uses an operator.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperatorUse {
    /// The operator; with a schema only if it is written `OPERATOR(schema.+)`.
    pub operator: ObjectName,
    /// What stands left of it.
    pub left: Operand,
    /// What stands right of it.
    pub right: Operand,
}

/// Facts of a statement that matter to how long and where its result may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// The result depends on when the transaction began: `now()`, CURRENT_DATE, the string `'today'`. Constant in one
    /// transaction only. The one fact that depends on the text's constants: texts of one template can differ in it.
    pub reads_clock: bool,
    /// The result depends on who asks: CURRENT_USER, CURRENT_SCHEMA and their kin.
    pub reads_settings: bool,
    /// The outermost query has an ORDER BY.
    pub has_order: bool,
    /// The outermost query has a LIMIT, OFFSET or FETCH FIRST.
    pub has_limit: bool,
    /// There is a backslash in the text: it was read right only if `standard_conforming_strings` is on.
    pub has_backslash: bool,
    /// There is more than ASCII in the text: it was read right only if `client_encoding` is UTF8.
    pub has_non_ascii: bool,
}

/// What must still be looked up before a statement is known to be pure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// Tables and views; names of common table expressions in scope are not among them.
    pub relations: BTreeSet<ObjectName>,
    /// Functions by name, those of special syntax included (`EXTRACT` is `pg_catalog.extract`).
    pub functions: BTreeSet<ObjectName>,
    /// Operators, those of special syntax included (`IN`, `BETWEEN`, `CASE x WHEN`, `JOIN … USING`).
    pub operators: BTreeSet<OperatorUse>,
    /// Types of casts and column definitions, without array brackets.
    pub types: BTreeSet<ObjectName>,
    /// Names of fields which may be functions: `t.f` is `f(t)` if `t` has no column `f`.
    pub fields: BTreeSet<Box<str>>,
    /// A function stands in FROM. What it returns need not be a row, so `t.f` may be `f` of anything:
    /// `SELECT g.pg_advisory_lock FROM generate_series(1, 3) AS g` takes three locks.
    pub has_function_in_from: bool,
    /// What else there is to say.
    pub facts: Facts,
}

/// Whether a parameter of this declared type can be bound without user code or a look into the catalogue.
///
/// `oid` is the type's object id as a Parse message carries it; 0 (the server decides) is harmless, as the statement's
/// own names decide then.
pub fn is_harmless_parameter_type(oid: u32) -> bool {
    PARAMETER_TYPES.binary_search(&oid).is_ok()
}

/// Object ids of built-in types, fixed since PostgreSQL 8 (jsonb: 9.4), and of their arrays. Sorted.
const PARAMETER_TYPES: [u32; 51] = [
    0,    // unspecified
    16,   // bool
    17,   // bytea
    18,   // "char"
    19,   // name
    20,   // int8
    21,   // int2
    23,   // int4
    25,   // text
    26,   // oid
    114,  // json
    199,  // json[]
    650,  // cidr
    651,  // cidr[]
    700,  // float4
    701,  // float8
    705,  // unknown
    790,  // money
    829,  // macaddr
    869,  // inet
    1000, // bool[]
    1001, // bytea[]
    1005, // int2[]
    1007, // int4[]
    1009, // text[]
    1014, // bpchar[]
    1015, // varchar[]
    1016, // int8[]
    1021, // float4[]
    1022, // float8[]
    1028, // oid[]
    1040, // macaddr[]
    1041, // inet[]
    1042, // bpchar
    1043, // varchar
    1082, // date
    1083, // time
    1114, // timestamp
    1115, // timestamp[]
    1182, // date[]
    1184, // timestamptz
    1185, // timestamptz[]
    1186, // interval
    1187, // interval[]
    1231, // numeric[]
    1266, // timetz
    1700, // numeric
    2950, // uuid
    2951, // uuid[]
    3802, // jsonb
    3807, // jsonb[]
];
