//! What users have added to one database.

use std::collections::{BTreeSet, HashMap};

use super::builder::CatalogueBuilder;
use super::check::Check;
use super::impure::Impure;
use super::needs::{Facts, Needs, ObjectName, Operand};

/// A snapshot of what users have added to one database, as one session sees it.
#[derive(Debug, Default)]
pub struct Catalogue {
    pub(super) search_path: Vec<Box<str>>,
    pub(super) current_user: Box<str>,
    pub(super) session_user: Box<str>,
    pub(super) has_temporary_schema: bool,
    pub(super) is_listening: bool,
    /// A cast between types that a statement need not name calls a user's function.
    pub(super) has_calling_cast: bool,
    /// A cast from or to an enum calls a user's function.
    pub(super) has_calling_enum_cast: bool,
    /// A user's operator class sorts, compares or hashes a built-in type or an enum.
    pub(super) has_operator_class: bool,
    /// An extension may answer queries of plain tables from elsewhere.
    pub(super) is_answered_elsewhere: bool,
    /// A user's function may move a cursor.
    pub(super) moves_cursors: bool,
    /// By schema, then by name.
    pub(super) relations: HashMap<Box<str>, HashMap<Box<str>, Relation>>,
    /// By object id.
    pub(super) relation_names: HashMap<u32, ObjectName>,
    /// Columns that may hold ids of large objects, by their relations' object ids and their numbers.
    pub(super) object_columns: HashMap<(u32, i16), ObjectColumn>,
    /// The comment of one of them says something.
    pub(super) has_prefetch_comments: bool,
    /// What views use.
    pub(super) views: HashMap<ObjectName, View>,
    pub(super) functions: HashMap<Box<str>, Vec<UserFunction>>,
    pub(super) operators: HashMap<Box<str>, Vec<UserOperator>>,
    pub(super) types: HashMap<Box<str>, Vec<UserType>>,
}

/// A statement that only reads rows of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pure {
    /// Tables and materialised views that it reads, directly or through views; each with its schema.
    pub relations: BTreeSet<ObjectName>,
    /// Facts of the statement; the clock and the settings also through views.
    pub facts: Facts,
}

impl Catalogue {
    /// Takes the rows of [`super::CATALOGUE_QUERY`].
    pub fn builder() -> CatalogueBuilder {
        CatalogueBuilder::default()
    }

    /// Schemas in which names are looked up, in order, the implicit ones included (`current_schemas(true)`).
    pub fn search_path(&self) -> &[Box<str>] {
        &self.search_path
    }

    /// The role in force when the query ran.
    pub fn current_user(&self) -> &str {
        &self.current_user
    }

    /// The role that logged in.
    pub fn session_user(&self) -> &str {
        &self.session_user
    }

    /// Whether the session has made a temporary object since it began.
    pub fn has_temporary_schema(&self) -> bool {
        self.has_temporary_schema
    }

    /// Whether a function of a user may open, move or close a cursor that it knows by name, as far as its source tells.
    pub fn moves_cursors(&self) -> bool {
        self.moves_cursors
    }

    /// A column that may hold ids of large objects: the relation's object id, and the column's number in it.
    pub fn object_column(&self, relation: u32, number: i16) -> Option<(&ObjectName, &ObjectColumn)> {
        self.relation_names.get(&relation).zip(self.object_columns.get(&(relation, number)))
    }

    /// Whether a column's comment says how much of its objects is to be read ahead.
    pub fn has_prefetch_comments(&self) -> bool {
        self.has_prefetch_comments
    }

    /// Whether the session is LISTENing to anything.
    pub fn is_listening(&self) -> bool {
        self.is_listening
    }

    /// Whether a statement with these needs is pure.
    ///
    /// # Errors
    ///
    /// An object that is not known to be harmless.
    pub fn check(&self, needs: &Needs) -> Result<Pure, Impure> {
        Check::new(self).run(needs)
    }
}

/// A relation outside of the server's own schemas.
#[derive(Debug)]
pub(super) struct Relation {
    /// Why it may not be read, if so: "is a sequence".
    pub(super) refusal: Option<&'static str>,
    pub(super) has_enum: bool,
    pub(super) is_view: bool,
}

impl Relation {
    /// Reads the letter of its kind and those of what is unusual about it.
    pub(super) fn parse(flags: &str) -> Option<Self> {
        let mut flags = flags.chars();
        let kind = flags.next()?;
        let mut refusal = match kind {
            'r' | 'm' | 'v' => None,
            'p' => Some("is a partitioned table"),
            'f' => Some("is a foreign table"),
            'S' => Some("is a sequence"),
            _ => return None,
        };
        let mut has_enum = false;
        for flag in flags {
            let unusual = match flag {
                'e' => {
                    has_enum = true;
                    continue;
                }
                't' => "is temporary",
                's' => "has row-level security",
                'r' => "has rules",
                'c' => "has child tables",
                'p' => "is a partition",
                'a' => "has a table access method of its own",
                'u' => "has a column of a type that is not built in",
                _ => return None,
            };
            refusal.get_or_insert(unusual);
        }
        Some(Self { refusal, has_enum, is_view: kind == 'v' })
    }
}

/// What the stored tree of a view uses.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The tree has the form that is known.
    pub(super) is_understood: bool,
    pub(super) uses: Vec<ViewUse>,
}

/// In the order in which a report names what is wrong.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ViewUse {
    /// A node that not every plain query has, by its label.
    Node(Box<str>),
    Function {
        name: Box<str>,
        is_built_in: bool,
    },
    Operator {
        name: Box<str>,
        is_built_in: bool,
    },
    /// A type that is neither built in nor an enum, or whose output looks into the catalogue.
    Type(Box<str>),
    Enum,
    /// By object id.
    Relation(u32),
}

impl View {
    /// Takes one row's flag and detail.
    pub(super) fn add(&mut self, flag: &str, detail: Option<&str>) -> Option<()> {
        let name = || detail.map(Into::into);
        let used = match flag {
            "q" => {
                self.is_understood = true;
                return Some(());
            }
            "r" => ViewUse::Relation(detail?.parse().ok()?),
            "n" => ViewUse::Node(name()?),
            "f" | "F" => ViewUse::Function { name: name()?, is_built_in: flag == "f" },
            "o" | "O" => ViewUse::Operator { name: name()?, is_built_in: flag == "o" },
            "t" => ViewUse::Type(name()?),
            "e" => ViewUse::Enum,
            _ => return None,
        };
        self.uses.push(used);
        Some(())
    }
}

/// All functions of one name in one schema.
#[derive(Debug)]
pub(super) struct UserFunction {
    pub(super) schema: Box<str>,
    /// One of them can be called with one argument.
    pub(super) takes_one: bool,
    /// One of them can be called with a row.
    pub(super) takes_row: bool,
}

impl UserFunction {
    pub(super) fn parse(schema: &str, flags: &str) -> Option<Self> {
        let (takes_one, takes_row) = match flags {
            "" => (false, false),
            "1" => (true, false),
            "1f" => (true, true),
            _ => return None,
        };
        Some(Self { schema: schema.into(), takes_one, takes_row })
    }
}

/// A column of type `oid`, or of a domain over it, in a user's table or view.
#[derive(Debug)]
pub struct ObjectColumn {
    /// Its name there.
    pub name: Box<str>,
    /// What its comment sets `onetrip.lob_prefetch` to, as it is written there.
    pub prefetch: Option<Box<str>>,
}

impl ObjectColumn {
    /// With its place: `RELATION NUMBER`.
    pub(super) fn parse(name: &str, prefetch: &str, place: &str) -> Option<((u32, i16), Self)> {
        let (relation, number) = place.split_once(' ')?;
        let prefetch = Some(prefetch).filter(|prefetch| !prefetch.is_empty()).map(Box::from);
        Some(((relation.parse().ok()?, number.parse().ok()?), Self { name: name.into(), prefetch }))
    }
}

/// A user's operator.
#[derive(Debug)]
pub(super) struct UserOperator {
    pub(super) schema: Box<str>,
    pub(super) operands: Operands,
}

/// What a user's operator takes left and right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operands(Side, Side);

#[derive(Debug, Clone, Copy)]
enum Side {
    Nothing,
    /// A built-in type, or one that a built-in type becomes by itself.
    BuiltIn,
    Enum,
    /// Another user's type. A statement that is pure has nothing of it.
    User,
}

impl Operands {
    pub(super) fn parse(flags: &str) -> Option<Self> {
        let mut sides = flags.chars().map(|flag| match flag {
            '-' => Some(Side::Nothing),
            'b' => Some(Side::BuiltIn),
            'e' => Some(Side::Enum),
            'u' => Some(Side::User),
            _ => None,
        });
        let operands = Self(sides.next()??, sides.next()??);
        sides.next().is_none().then_some(operands)
    }

    /// Whether the server may take this operator for these operands.
    pub(super) fn may_take(self, left: Operand, right: Operand, has_enum: bool) -> bool {
        self.0.may_take(left, has_enum) && self.1.may_take(right, has_enum)
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

/// A user's type, other than the rows of a relation.
#[derive(Debug)]
pub(super) struct UserType {
    pub(super) schema: Box<str>,
    pub(super) is_enum: bool,
}
