//! How much of large objects is prefetched, as the gateway says it: of all, and of single columns.

use std::str::FromStr;

use onetrip_sql::purity::{self as catalogue, ObjectName};
use onetrip_wire::{BadPrefetch, Prefetch};

/// One `--lob-prefetch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LobPrefetch {
    /// The column that it is for; `None` for all objects.
    column: Option<Column>,
    prefetch: Prefetch,
}

/// A column by its names, as the catalogue has them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    schema: Option<Box<str>>,
    table: Box<str>,
    name: Box<str>,
}

/// The text is no [`LobPrefetch`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadLobPrefetch {
    /// The value, or all of the text, says no policy.
    #[error(transparent)]
    Value(#[from] BadPrefetch),
    /// What is in front of the value names no column.
    #[error("{0:?} names no column; write TABLE.COLUMN=N or SCHEMA.TABLE.COLUMN=N")]
    Column(String),
}

/// A value for all objects, or `TABLE.COLUMN=N`.
impl FromStr for LobPrefetch {
    type Err = BadLobPrefetch;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((names, value)) = text.rsplit_once('=') else {
            return Ok(Self { column: None, prefetch: text.parse()? });
        };
        let bad = || BadLobPrefetch::Column(names.to_owned());
        let parts: Vec<&str> = names.split('.').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(bad());
        }
        let (schema, table, name) = match *parts.as_slice() {
            [table, name] => (None, table, name),
            [schema, table, name] => (Some(schema.into()), table, name),
            _ => return Err(bad()),
        };
        let column = Column { schema, table: table.into(), name: name.into() };
        Ok(Self { column: Some(column), prefetch: value.parse()? })
    }
}

/// What a gateway is told about large objects: what is said later counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LobPolicy {
    all: Prefetch,
    columns: Vec<(Column, Prefetch)>,
}

impl FromIterator<LobPrefetch> for LobPolicy {
    fn from_iter<I: IntoIterator<Item = LobPrefetch>>(said: I) -> Self {
        let mut policy = Self::default();
        for LobPrefetch { column, prefetch } in said {
            match column {
                Some(column) => policy.columns.push((column, prefetch)),
                None => policy.all = prefetch,
            }
        }
        policy
    }
}

impl LobPolicy {
    /// What is said of all objects.
    pub(crate) fn of_all(&self) -> Prefetch {
        self.all
    }

    /// What is said of a column here, else by its comment in the catalogue; one that is no policy says nothing.
    pub(crate) fn of_column(&self, relation: &ObjectName, column: &catalogue::Column) -> Option<Prefetch> {
        let is_meant = |meant: &Column| {
            meant.table == relation.name
                && meant.name == column.name
                && (meant.schema.is_none() || meant.schema == relation.schema)
        };
        let told =
            self.columns.iter().rev().find(|(meant, _)| is_meant(meant)).map(|(_, prefetch)| *prefetch);
        told.or_else(|| column.prefetch.as_deref()?.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(said: &[&str]) -> LobPolicy {
        said.iter().map(|one| one.parse::<LobPrefetch>().unwrap()).collect()
    }

    /// A column of oids with what its comment says.
    fn column(name: &str, comment: Option<&str>) -> catalogue::Column {
        catalogue::Column {
            name: name.into(),
            number: 1,
            type_oid: 26,
            base_oid: 0,
            collation_oid: 0,
            is_virtual: false,
            prefetch: comment.map(Box::from),
        }
    }

    #[test]
    fn a_value_is_for_all_objects_or_for_those_of_a_column() {
        let said = policy(&["4000", "photo.image=-1", "app.photo.image=0", "Photo.image=auto", "auto"]);
        assert_eq!(said.all, Prefetch::Auto, "the last one counts");
        let of =
            |schema, table, name| said.of_column(&ObjectName::qualified(schema, table), &column(name, None));
        assert_eq!(of("app", "photo", "image"), Some(Prefetch::Length));
        assert_eq!(of("other", "photo", "image"), Some(Prefetch::Locator));
        assert_eq!(of("other", "Photo", "image"), Some(Prefetch::Auto));
        assert_eq!(of("app", "photo", "images"), None);
    }

    #[test]
    fn a_comment_on_the_column_says_it_where_the_gateway_does_not() {
        let photo = ObjectName::qualified("app", "photo");
        let of =
            |said: &[&str], comment: &str| policy(said).of_column(&photo, &column("image", Some(comment)));
        assert_eq!(of(&["photo.thumb=-1"], "4000"), Some(Prefetch::First(4000)));
        assert_eq!(of(&["photo.image=-1"], "4000"), Some(Prefetch::Locator));
        assert_eq!(of(&[], "much"), None);
    }

    #[test]
    fn what_is_no_policy_is_told_in_words() {
        for (text, words) in [
            ("-2", "\"-2\" is neither -1"),
            ("photo.image=much", "\"much\" is neither -1"),
            ("image=0", "\"image\" names no column"),
            ("a.b.c.d=0", "\"a.b.c.d\" names no column"),
            (".image=0", "\".image\" names no column"),
        ] {
            let told = text.parse::<LobPrefetch>().unwrap_err().to_string();
            assert!(told.starts_with(words), "{told}");
        }
    }
}
