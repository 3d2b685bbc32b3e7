//! What a server whose catalogue is small, and known in full, answers to lookups.

use super::builtin;
use super::facts::{Acts, Columns};
use super::lookup::{Lookup, elements, oids};

/// A database of plain tables with the types, functions and operators of PostgreSQL, and without views, casts or operator
/// classes of users. A server that is not PostgreSQL, but says what PostgreSQL would say, answers lookups from it.
#[derive(Debug, Clone, Default)]
pub struct SmallDatabase {
    /// As `server_version_num`.
    pub version: u32,
    /// Tables by object id.
    pub tables: Vec<(u32, Columns)>,
    /// Functions that users have made: schema, name, and the type of the argument of those that take one.
    pub functions: Vec<(Box<str>, Box<str>, Option<u32>)>,
    /// A function of a user may know cursors by their names.
    pub moves_cursors: bool,
    /// A function of a user may take a lock that conflicts with a reader's, or change the catalogue.
    pub acts: Acts,
}

/// A row of an answer, in text format; `None` is NULL.
pub type LookupRow = Vec<Option<String>>;

/// Types as they are called in `pg_catalog`; others are not there. Sorted.
const TYPE_NAMES: [(&str, u32); 25] = [
    ("bit", 1560),
    ("bool", 16),
    ("bpchar", 1042),
    ("bytea", 17),
    ("char", 18),
    ("cidr", 650),
    ("date", 1082),
    ("float4", 700),
    ("float8", 701),
    ("inet", 869),
    ("int2", 21),
    ("int4", 23),
    ("int8", 20),
    ("interval", 1186),
    ("json", 114),
    ("jsonb", 3802),
    ("name", 19),
    ("numeric", 1700),
    ("oid", 26),
    ("text", 25),
    ("time", 1083),
    ("timestamp", 1114),
    ("timestamptz", 1184),
    ("uuid", 2950),
    ("varchar", 1043),
];

impl SmallDatabase {
    /// The rows that answer a lookup with this parameter; `None` where the parameter is not one of the lookup's.
    pub fn answer(&self, lookup: Lookup, parameter: Option<&str>) -> Option<Vec<LookupRow>> {
        let names = || elements(parameter?);
        let numbers = || oids(&parameter?.replace('"', ""));
        Some(match lookup {
            Lookup::Database => {
                vec![vec![Some("v".to_owned()), Some(self.version.to_string()), None, None, None]]
            }
            Lookup::Relations => self.relations(&names()?),
            Lookup::Functions => self.functions(&names()?),
            Lookup::Operators => {
                let names = names()?;
                names.iter().filter_map(|name| operator(name)).collect()
            }
            Lookup::TypeNames => {
                let names = names()?;
                names.iter().filter_map(|name| type_named(name)).collect()
            }
            Lookup::Columns => self.columns(&numbers()?),
            Lookup::Types | Lookup::Views => Vec::new(),
            Lookup::Locks => {
                let Acts { called, written, read, parsed, login } = self.acts;
                vec![
                    [called, written, read, parsed, login]
                        .into_iter()
                        .map(|may| Some(may.to_string()))
                        .collect(),
                ]
            }
            Lookup::Cursors => vec![texts([&self.moves_cursors.to_string()])],
        })
    }

    fn relations(&self, names: &[Box<str>]) -> Vec<LookupRow> {
        let named = self.tables.iter().filter(|(_, table)| names.contains(&table.relation.name));
        let row = |(oid, table): &(u32, Columns)| {
            let mut types: Vec<u32> = table.columns.iter().map(|column| column.type_oid).collect();
            types.sort_unstable();
            types.dedup();
            let types: Vec<String> = types.iter().map(ToString::to_string).collect();
            let types = format!("{{{}}}", types.join(","));
            texts([schema_of(table), &table.relation.name, &oid.to_string(), "r", &types])
        };
        named.map(row).collect()
    }

    fn functions(&self, names: &[Box<str>]) -> Vec<LookupRow> {
        let built_in = names.iter().filter_map(|name| {
            let digest = builtin::function_digest(name)?.to_string();
            let [kind, name, flags, digest] = ["b", name, "", &digest].map(|text| Some(text.to_owned()));
            Some(vec![kind, None, name, flags, digest])
        });
        let named = self.functions.iter().filter(|(_, name, _)| names.contains(name));
        let users = named.map(|(schema, name, of_one)| {
            let flags = if of_one.is_some() { "1" } else { "" };
            let first = of_one.map(|oid| oid.to_string()).unwrap_or_default();
            texts(["f", schema, name, flags, &first])
        });
        built_in.chain(users).collect()
    }

    fn columns(&self, relations: &[u32]) -> Vec<LookupRow> {
        let asked = self.tables.iter().filter(|(oid, _)| relations.contains(oid));
        let rows = asked.flat_map(|(oid, table)| {
            table.columns.iter().map(move |column| {
                let numbers = [column.type_oid, column.base_oid, column.collation_oid];
                let [type_oid, base, collation] = numbers.map(|number| number.to_string());
                let (oid, number) = (oid.to_string(), column.number.to_string());
                let (schema, table) = (schema_of(table), &*table.relation.name);
                let generated = if column.is_virtual { "v" } else { "" };
                let known =
                    [&oid, schema, table, &column.name, &number, &type_oid, &base, &collation, generated];
                let prefetch = column.prefetch.as_deref().map(str::to_owned);
                texts(known).into_iter().chain([prefetch]).collect()
            })
        });
        rows.collect()
    }
}

fn schema_of(table: &Columns) -> &str {
    table.relation.schema.as_deref().unwrap_or("public")
}

fn operator(name: &str) -> Option<LookupRow> {
    let digest = builtin::operator_digest(name)?;
    Some(vec![Some("p".to_owned()), None, Some(name.to_owned()), Some(digest.to_string()), None])
}

fn type_named(name: &str) -> Option<LookupRow> {
    let (name, oid) = TYPE_NAMES.into_iter().find(|(known, _)| *known == name)?;
    Some(texts(["pg_catalog", name, &oid.to_string(), "b"]))
}

fn texts<const COUNT: usize>(columns: [&str; COUNT]) -> LookupRow {
    columns.into_iter().map(|column| Some(column.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Catalogue, Column, Needs, ObjectName, Survey, read};
    use super::*;

    fn database() -> SmallDatabase {
        let column = |name: &str, number, type_oid| Column {
            name: name.into(),
            number,
            type_oid,
            base_oid: 0,
            collation_oid: 0,
            is_virtual: false,
            prefetch: None,
        };
        let columns = Columns {
            relation: ObjectName::qualified("public", "emp"),
            columns: vec![column("id", 1, 23), column("name", 2, 25)],
        };
        SmallDatabase {
            version: 150_000,
            tables: vec![(20_001, columns)],
            functions: vec![("public".into(), "touch".into(), None)],
            moves_cursors: true,
            acts: Acts::default(),
        }
    }

    /// What is known once everything that these needs leave open was looked up.
    fn looked_up(needs: &Needs) -> Catalogue<()> {
        let mut catalogue = Catalogue::default();
        let mut wanted = catalogue.wanted(needs, |()| true);
        wanted.add(catalogue.wanted_columns(&[20_001, 9], |()| true));
        wanted.add(catalogue.wanted_cursors(|()| true));
        let mut survey = Survey::new(wanted);
        loop {
            let questions = survey.questions();
            if questions.is_empty() {
                break;
            }
            for question in questions {
                let rows = database().answer(question.lookup, question.parameter.as_deref());
                for row in rows.expect("a parameter of its own") {
                    let columns: Vec<_> = row.iter().map(|text| text.as_deref().map(str::as_bytes)).collect();
                    survey.row(question.lookup, &columns).expect("a row of its own");
                }
            }
        }
        catalogue.absorb(survey.finish().expect("all rows are there"), ());
        catalogue
    }

    #[test]
    fn a_small_database_says_what_statements_read() {
        let is_pure = |text: &str| {
            let needs = read(text).expect("a plain query");
            looked_up(&needs).check(&needs, &["pg_catalog".into(), "public".into()]).is_ok()
        };
        assert!(is_pure(
            "SELECT upper(name), count(*) FROM emp WHERE id = 7::int4 AND name LIKE 'a%' GROUP BY 1"
        ));
        assert!(!is_pure("SELECT name FROM dept"), "a table that is not there");
        assert!(!is_pure("SELECT touch() FROM emp"), "a function of a user");
        assert!(!is_pure("SELECT nextval('s') FROM emp"), "a function with effects");
    }

    #[test]
    fn a_small_database_knows_its_columns() {
        let catalogue = looked_up(&read("SELECT 1").expect("a plain query"));
        let columns = catalogue.columns(20_001).expect("its table");
        assert_eq!(**columns, database().tables[0].1);
        assert!(catalogue.columns(9).is_none() && catalogue.moves_cursors());
    }
}
