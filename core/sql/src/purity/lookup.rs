//! What is asked of a database's catalogue, one small statement each.

/// A statement with at most one parameter, an array of names or of object ids. All of its columns are text.
///
/// Each names everything with its schema, so that neither a search path nor a user's object can change what it reads,
/// finds what it looks up by an index, and locks nothing of a user's. Planning and running one took 0.1 to 1.2 ms on
/// PostgreSQL 15 and 18 (a busy machine of two cores), in a database of any size. `Cursors` and `Locks` took 2 and 5 ms of
/// the server's CPU, 6 and 12 ms in a session's first time, with eleven functions of users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lookup {
    /// What users have added that any statement may meet.
    Database,
    /// Relations by name.
    Relations,
    /// Functions by name.
    Functions,
    /// Operators by name.
    Operators,
    /// Types by name.
    TypeNames,
    /// Types by object id.
    Types,
    /// Views by object id, and what they read.
    Views,
    /// Columns of relations by object id.
    Columns,
    /// Whether a function of a user may know a cursor.
    Cursors,
    /// Whether functions of users may take strong locks, or change the catalogue.
    Locks,
}

/// A statement behind what `stored.sql` tells, as the table `stored`.
macro_rules! with_stored {
    ($file:literal) => {
        concat!(
            "WITH RECURSIVE stored (runs) AS MATERIALIZED (SELECT\n",
            include_str!("lookups/stored.sql"),
            "),\n",
            include_str!($file)
        )
    };
}

/// A lookup and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Which statement.
    pub lookup: Lookup,
    /// Its parameter as the text of an array; none for a statement without one.
    pub parameter: Option<String>,
}

impl Lookup {
    /// The statement.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Database => include_str!("lookups/database.sql"),
            Self::Relations => include_str!("lookups/relations.sql"),
            Self::Functions => include_str!("lookups/functions.sql"),
            Self::Operators => include_str!("lookups/operators.sql"),
            Self::TypeNames => include_str!("lookups/type_names.sql"),
            Self::Types => include_str!("lookups/types.sql"),
            Self::Views => include_str!("lookups/views.sql"),
            Self::Columns => include_str!("lookups/columns.sql"),
            Self::Cursors => with_stored!("lookups/cursors.sql"),
            Self::Locks => with_stored!("lookups/locks.sql"),
        }
    }

    /// How many columns its rows have.
    pub fn column_count(self) -> usize {
        match self {
            Self::Columns => 10,
            Self::TypeNames | Self::Types => 4,
            Self::Cursors => 1,
            Self::Locks => 4,
            Self::Database | Self::Relations | Self::Functions | Self::Operators | Self::Views => 5,
        }
    }

    /// The lookup with this text.
    pub fn of_sql(sql: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lookup| lookup.sql() == sql)
    }

    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Database,
        Self::Relations,
        Self::Functions,
        Self::Operators,
        Self::TypeNames,
        Self::Types,
        Self::Views,
        Self::Columns,
        Self::Cursors,
        Self::Locks,
    ];
}

/// The text of an array, as the server reads it: every element in quotes.
pub(super) fn array(elements: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut out = String::from("{");
    for element in elements {
        if out.len() > 1 {
            out.push(',');
        }
        out.push('"');
        for character in element.as_ref().chars() {
            if matches!(character, '"' | '\\') {
                out.push('\\');
            }
            out.push(character);
        }
        out.push('"');
    }
    out.push('}');
    out
}

/// The elements in the text of an array of names, as the server writes it; `None` for another text.
pub fn elements(array: &str) -> Option<Vec<Box<str>>> {
    let mut rest = array.strip_prefix('{')?.strip_suffix('}')?;
    let mut out = Vec::new();
    while !rest.is_empty() {
        let mut element = String::new();
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut characters = quoted.char_indices();
            loop {
                match characters.next()? {
                    (at, '"') => {
                        rest = &quoted[at + 1..];
                        break;
                    }
                    (_, '\\') => element.push(characters.next()?.1),
                    (_, other) => element.push(other),
                }
            }
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            element.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        out.push(element.into());
        match rest.strip_prefix(',') {
            Some(more) if !more.is_empty() => rest = more,
            None if rest.is_empty() => {}
            _ => return None,
        }
    }
    Some(out)
}

/// The object ids in the text of an array.
pub(super) fn oids(array: &str) -> Option<Vec<u32>> {
    let inside = array.strip_prefix('{')?.strip_suffix('}')?;
    inside.split(',').filter(|part| !part.is_empty()).map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_written_as_the_server_reads_it() {
        assert_eq!(array(["a", "B c", "d\"e\\f,g"]), r#"{"a","B c","d\"e\\f,g"}"#);
        assert_eq!(array([""; 0]), "{}");
        assert_eq!(oids("{23,25}"), Some(vec![23, 25]));
        assert_eq!(oids("{}"), Some(vec![]));
        assert_eq!(oids("{x}"), None);
        let read = |text: &str| elements(text).map(|found| found.join("|"));
        assert_eq!(read("{}"), Some(String::new()));
        assert_eq!(
            read(r#"{pg_catalog,"My Schema","a\"b\\c,{d}",e}"#),
            Some(r#"pg_catalog|My Schema|a"b\c,{d}|e"#.to_owned())
        );
        for bad in ["", "{", "a", "{a,}", "{\"a}", "{\"a\"b}", "{\"a\\"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
