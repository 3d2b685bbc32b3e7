//! The types a client sees: PostgreSQL's names, object identifiers and sizes.

use onetrip_wire::pg::Oid;

/// A type without modifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    Bool,
    Bytea,
    Char,
    Name,
    Int8,
    Int2,
    Int4,
    Regproc,
    Text,
    Oid,
    Json,
    Float4,
    Float8,
    Unknown,
    Bpchar,
    Varchar,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Numeric,
    Regclass,
    Regtype,
    Void,
    Uuid,
    Jsonb,
}

/// A type as a column, a parameter or an expression has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SqlType {
    pub(crate) base: Base,
    pub(crate) is_array: bool,
    /// PostgreSQL's typmod: −1, or the n of varchar(n) plus 4, or precision and scale of a numeric plus 4.
    pub(crate) modifier: i32,
}

/// What PostgreSQL's `pg_type` says of a type.
pub(crate) struct TypeFacts {
    pub(crate) base: Base,
    pub(crate) oid: Oid,
    /// Zero where there is no array of it.
    pub(crate) array_oid: Oid,
    /// Name in `pg_type`.
    pub(crate) name: &'static str,
    /// Name that `format_type` gives.
    pub(crate) sql_name: &'static str,
    /// Bytes, or −1 for variable.
    pub(crate) len: i16,
    /// `pg_type.typcategory`.
    pub(crate) category: char,
}

const fn facts(
    base: Base,
    (oid, array_oid): (Oid, Oid),
    (name, sql_name): (&'static str, &'static str),
    len: i16,
    category: char,
) -> TypeFacts {
    TypeFacts { base, oid, array_oid, name, sql_name, len, category }
}

/// Every type, in the order of [`Base`]. Source: `pg_type.dat` of PostgreSQL 15.
pub(crate) static TYPES: [TypeFacts; 27] = [
    facts(Base::Bool, (16, 1000), ("bool", "boolean"), 1, 'B'),
    facts(Base::Bytea, (17, 1001), ("bytea", "bytea"), -1, 'U'),
    facts(Base::Char, (18, 1002), ("char", "\"char\""), 1, 'Z'),
    facts(Base::Name, (19, 1003), ("name", "name"), 64, 'S'),
    facts(Base::Int8, (20, 1016), ("int8", "bigint"), 8, 'N'),
    facts(Base::Int2, (21, 1005), ("int2", "smallint"), 2, 'N'),
    facts(Base::Int4, (23, 1007), ("int4", "integer"), 4, 'N'),
    facts(Base::Regproc, (24, 1008), ("regproc", "regproc"), 4, 'N'),
    facts(Base::Text, (25, 1009), ("text", "text"), -1, 'S'),
    facts(Base::Oid, (26, 1028), ("oid", "oid"), 4, 'N'),
    facts(Base::Json, (114, 199), ("json", "json"), -1, 'U'),
    facts(Base::Float4, (700, 1021), ("float4", "real"), 4, 'N'),
    facts(Base::Float8, (701, 1022), ("float8", "double precision"), 8, 'N'),
    facts(Base::Unknown, (705, 0), ("unknown", "unknown"), -2, 'X'),
    facts(Base::Bpchar, (1042, 1014), ("bpchar", "character"), -1, 'S'),
    facts(Base::Varchar, (1043, 1015), ("varchar", "character varying"), -1, 'S'),
    facts(Base::Date, (1082, 1182), ("date", "date"), 4, 'D'),
    facts(Base::Time, (1083, 1183), ("time", "time without time zone"), 8, 'D'),
    facts(Base::Timestamp, (1114, 1115), ("timestamp", "timestamp without time zone"), 8, 'D'),
    facts(Base::Timestamptz, (1184, 1185), ("timestamptz", "timestamp with time zone"), 8, 'D'),
    facts(Base::Interval, (1186, 1187), ("interval", "interval"), 16, 'T'),
    facts(Base::Numeric, (1700, 1231), ("numeric", "numeric"), -1, 'N'),
    facts(Base::Regclass, (2205, 2210), ("regclass", "regclass"), 4, 'N'),
    facts(Base::Regtype, (2206, 2211), ("regtype", "regtype"), 4, 'N'),
    facts(Base::Void, (2278, 0), ("void", "void"), 4, 'P'),
    facts(Base::Uuid, (2950, 2951), ("uuid", "uuid"), 16, 'U'),
    facts(Base::Jsonb, (3802, 3807), ("jsonb", "jsonb"), -1, 'U'),
];

impl Base {
    pub(crate) fn facts(self) -> &'static TypeFacts {
        &TYPES[self as usize]
    }

    pub(crate) fn is_integer(self) -> bool {
        matches!(
            self,
            Self::Int2 | Self::Int4 | Self::Int8 | Self::Oid | Self::Regclass | Self::Regtype | Self::Regproc
        )
    }

    pub(crate) fn is_number(self) -> bool {
        self.is_integer() || matches!(self, Self::Float4 | Self::Float8 | Self::Numeric)
    }

    pub(crate) fn is_text(self) -> bool {
        matches!(
            self,
            Self::Text | Self::Varchar | Self::Bpchar | Self::Name | Self::Char | Self::Json | Self::Jsonb
        )
    }

    pub(crate) fn is_moment(self) -> bool {
        matches!(self, Self::Date | Self::Timestamp | Self::Timestamptz)
    }

    /// Finds a type by any of PostgreSQL's names for it, in small case and without modifier.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        if name == "char" {
            return Some(Self::Bpchar); // only in quotes is it the one-byte type
        }
        if let Some(facts) = TYPES.iter().find(|facts| facts.name == name || facts.sql_name == name) {
            return Some(facts.base);
        }
        Some(match name {
            "int" | "serial" | "serial4" => Self::Int4,
            "bigserial" | "serial8" => Self::Int8,
            "smallserial" | "serial2" => Self::Int2,
            "float" => Self::Float8,
            "decimal" | "dec" => Self::Numeric,
            "char varying" | "nvarchar" => Self::Varchar,
            "nchar" => Self::Bpchar,
            "timestamp with timezone" => Self::Timestamptz,
            "time with time zone" | "timetz" => Self::Time,
            "xid" | "cid" | "regnamespace" | "regrole" | "regoper" | "regprocedure" => Self::Oid,
            "blob" => Self::Bytea,
            "citext" => Self::Text,
            _ => return None,
        })
    }
}

impl SqlType {
    pub(crate) const UNKNOWN: Self = Self::of(Base::Unknown);
    pub(crate) const TEXT: Self = Self::of(Base::Text);
    pub(crate) const BOOL: Self = Self::of(Base::Bool);
    pub(crate) const INT4: Self = Self::of(Base::Int4);
    pub(crate) const INT8: Self = Self::of(Base::Int8);

    pub(crate) const fn of(base: Base) -> Self {
        Self { base, is_array: false, modifier: -1 }
    }

    pub(crate) const fn array_of(base: Base) -> Self {
        Self { base, is_array: true, modifier: -1 }
    }

    pub(crate) fn element(self) -> Self {
        Self { is_array: false, ..self }
    }

    pub(crate) fn without_modifier(self) -> Self {
        Self { modifier: -1, ..self }
    }

    pub(crate) fn is_unknown(self) -> bool {
        self.base == Base::Unknown && !self.is_array
    }

    /// The type with this identifier; `None` for one that is not served here.
    pub(crate) fn of_oid(oid: Oid) -> Option<Self> {
        TYPES.iter().find_map(|facts| match oid {
            0 => None,
            _ if facts.oid == oid => Some(Self::of(facts.base)),
            _ if facts.array_oid == oid => Some(Self::array_of(facts.base)),
            _ => None,
        })
    }

    pub(crate) fn oid(self) -> Oid {
        let facts = self.base.facts();
        if self.is_array { facts.array_oid } else { facts.oid }
    }

    pub(crate) fn len(self) -> i16 {
        if self.is_array { -1 } else { self.base.facts().len }
    }

    /// The name that error messages and `format_type` use, with its modifier.
    pub(crate) fn sql_name(self) -> String {
        let name = self.base.facts().sql_name;
        let with_modifier = match (self.base, self.limits()) {
            (Base::Numeric, Some((precision, scale))) => format!("{name}({precision},{scale})"),
            (Base::Varchar | Base::Bpchar, Some((length, _))) => format!("{name}({length})"),
            (Base::Timestamp, Some((digits, _))) => format!("timestamp({digits}) without time zone"),
            (Base::Timestamptz, Some((digits, _))) => format!("timestamp({digits}) with time zone"),
            _ => name.to_owned(),
        };
        if self.is_array { with_modifier + "[]" } else { with_modifier }
    }

    /// What the modifier says: precision and scale of a numeric, or a length and zero.
    pub(crate) fn limits(self) -> Option<(u32, u32)> {
        match self.base {
            _ if self.modifier < 0 => None,
            Base::Numeric => {
                let packed = u32::try_from(self.modifier - 4).ok()?;
                Some((packed >> 16, packed & 0x7ff))
            }
            Base::Varchar | Base::Bpchar => Some((u32::try_from(self.modifier - 4).ok()?, 0)),
            Base::Timestamp | Base::Timestamptz | Base::Time => Some((self.modifier as u32, 0)),
            _ => None,
        }
    }

    /// A type by its name and the numbers in its parentheses; `None` for a name that is not known.
    pub(crate) fn of_words(name: &str, numbers: &[u32], is_array: bool) -> Option<Self> {
        let base = match (name, numbers) {
            ("float", [digits]) if *digits <= 24 => Base::Float4,
            _ => Base::of_name(name)?,
        };
        let modifier = match (base, numbers) {
            (Base::Numeric, [precision]) => pack_numeric(*precision, 0),
            (Base::Numeric, [precision, scale]) => pack_numeric(*precision, *scale),
            (Base::Varchar | Base::Bpchar, [length]) => i32::try_from(*length).ok()?.checked_add(4)?,
            (Base::Bpchar, []) if name == "character" || name == "char" => 5,
            (Base::Timestamp | Base::Timestamptz | Base::Time, [digits]) => (*digits).min(6) as i32,
            _ => -1,
        };
        Some(Self { base, is_array, modifier })
    }
}

fn pack_numeric(precision: u32, scale: u32) -> i32 {
    ((precision.min(1000) << 16) | scale.min(1000)) as i32 + 4
}

/// The type of a column of an SQLite table, by the words of its declaration; see docs/embedded-server.md.
///
/// SQLite's own words keep SQLite's sizes: `INTEGER` and `INT` hold 64 bits there and `REAL` a double, so a file
/// that PostgreSQL never saw is served without loss. Tables made through this server are declared with
/// PostgreSQL's sized names (`int4`, `float4`).
pub(crate) fn declared_type(declaration: &str) -> Option<SqlType> {
    let declaration = declaration.trim().to_ascii_lowercase();
    let is_array = declaration.ends_with(']');
    let declaration = declaration.split('[').next().unwrap_or_default();
    let (words, numbers) = match declaration.split_once('(') {
        None => (declaration.to_owned(), Vec::new()),
        Some((before, rest)) => {
            let (inside, after) = rest.split_once(')').unwrap_or((rest, ""));
            let numbers = inside.split(',').filter_map(|number| number.trim().parse().ok()).collect();
            (format!("{} {}", before.trim(), after.trim()), numbers)
        }
    };
    let name = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match name.as_str() {
        "" => None,
        "integer" | "int" | "mediumint" | "unsigned big int" | "unsigned bigint" => Some(SqlType::INT8),
        "tinyint" => Some(SqlType::of(Base::Int2)),
        "real" | "double" => Some(SqlType::of(Base::Float8)),
        "clob" | "string" | "native character" | "varying character" => Some(SqlType::TEXT),
        "num" => Some(SqlType::of(Base::Numeric)),
        "datetime" => Some(SqlType::of(Base::Timestamp)),
        name => SqlType::of_words(name, &numbers, is_array),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_types_is_in_the_order_of_the_enum() {
        for (index, facts) in TYPES.iter().enumerate() {
            assert_eq!(facts.base as usize, index, "{}", facts.name);
        }
    }

    #[test]
    fn declarations_become_types_by_the_documented_rules() {
        let name = |declaration| declared_type(declaration).map(SqlType::sql_name);
        assert_eq!(name("INTEGER").as_deref(), Some("bigint"));
        assert_eq!(name("int4").as_deref(), Some("integer"));
        assert_eq!(name("REAL").as_deref(), Some("double precision"));
        assert_eq!(name("float4").as_deref(), Some("real"));
        assert_eq!(name("numeric(8, 2)").as_deref(), Some("numeric(8,2)"));
        assert_eq!(name("VARCHAR(20)").as_deref(), Some("character varying(20)"));
        assert_eq!(name("timestamp(3) with time zone").as_deref(), Some("timestamp(3) with time zone"));
        assert_eq!(name("text[]").as_deref(), Some("text[]"));
        assert_eq!(name("point"), None);
        assert_eq!(name(""), None);
    }
}
