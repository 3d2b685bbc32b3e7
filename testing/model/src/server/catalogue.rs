//! Answers to what a session of onetrip asks.

use std::sync::Arc;

use onetrip_sql::purity::{Acts, Column, Columns, ObjectName, SessionQuestion, SmallDatabase};

use super::backend::{Backend, Output, World};
use super::rows::Row;
use super::schema::{self, TABLES, Table, TableOf};
use super::syntax::Question;
use super::value::{Type, Value};

/// The collation of text columns.
const DEFAULT_COLLATION: u32 = 100;

/// What a question is answered by; a lookup has a parameter.
pub(crate) fn answer(
    world: &World,
    backend: &mut Backend,
    question: &Question,
    parameters: &[Value],
) -> Output {
    let truth = |is: bool| row(&[Some(if is { "true" } else { "false" })]);
    let rows = match question {
        Question::Session(SessionQuestion::State) => vec![state(backend, world)],
        Question::Session(SessionQuestion::Settings) => {
            let age = (world.now - backend.settings.configured_at()) / 1000;
            vec![row(&[&backend.settings.digest(), "off", &age.to_string()].map(Some))]
        }
        // The model has no PREPARE.
        Question::Session(SessionQuestion::Names) => vec![truth(false)],
        Question::Session(SessionQuestion::Cursor(name)) => {
            let portal = backend.portals.get(name.as_bytes());
            portal.map(|portal| truth(portal.goes_back)).into_iter().collect()
        }
        Question::Session(SessionQuestion::Plain) => {
            let set = |(name, value)| {
                let before = backend.settings.get(name).ok()?.to_owned();
                backend.settings.set(name, Some(value), true).ok()?;
                Some(row(&[Some(&before), Some(value)]))
            };
            SessionQuestion::plain_settings().filter_map(set).collect()
        }
        Question::Lookup(lookup) => {
            let parameter = parameters.first().and_then(Value::text);
            let rows = database(world).answer(*lookup, parameter.as_deref()).unwrap_or_default();
            rows.iter().map(|found| row(&found.iter().map(Option::as_deref).collect::<Vec<_>>())).collect()
        }
    };
    Output { rows, tag: "SELECT".to_owned(), ..Output::default() }
}

/// The process of a pooler's session is none that a client was told.
const SHARED_PROCESS: usize = 4_711;

fn state(backend: &Backend, world: &World) -> Row {
    let process_id = if world.faults.shared.is_some() { SHARED_PROCESS } else { backend.number };
    let process_id = process_id.to_string();
    let path = match backend.settings.has_builtins_first() {
        true => "{pg_catalog,public}",
        false => "{other,pg_catalog,public}",
    };
    row(&[path, "onetrip", "false", "7000/16384", &process_id].map(Some))
}

fn database(world: &World) -> SmallDatabase {
    let tables = TABLES
        .iter()
        .enumerate()
        .map(|(number, table)| (schema::oid(number), columns(number, table, world.is_wide)));
    let functions = ["side", "moves"].into_iter().take(1 + usize::from(world.has_moves));
    let functions = functions.map(|name| ("public".into(), name.into(), Some(Type::Int4.oid())));
    SmallDatabase {
        version: 150_000,
        tables: tables.collect(),
        functions: functions.collect(),
        moves_cursors: world.has_moves,
        acts: Acts::default(),
    }
}

fn columns(of: Table, table: &TableOf, is_wide: bool) -> Columns {
    let column = |(number, (name, kind, _)): (i16, &(&str, Type, bool))| Column {
        name: (*name).into(),
        number,
        type_oid: match (of, number as usize) {
            (table, place) if is_wide && (table, place - 1) == schema::WIDENED => Type::Int8.oid(),
            _ => kind.oid(),
        },
        base_oid: 0,
        collation_oid: if *kind == Type::Text { DEFAULT_COLLATION } else { 0 },
        is_virtual: false,
        prefetch: None,
    };
    Columns {
        relation: ObjectName::qualified("public", table.name),
        columns: (1..).zip(table.columns).map(column).collect(),
    }
}

fn row(values: &[Option<&str>]) -> Row {
    let value = |value: &Option<&str>| value.map_or(Value::Null, |text| Value::Text(text.into()));
    Arc::from(values.iter().map(value).collect::<Vec<_>>())
}
