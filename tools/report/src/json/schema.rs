//! Makes `docs/report.schema.json` and `docs/report-json.md` of the types in `view`: `cargo xtask docs` writes them.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::view::Document;

const INTRODUCTION: &str = "\
# The report as JSON

`--format json` prints one object. Times are nanoseconds and end in `_ns`; sizes are bytes; counts are whole numbers.
`format` is 1 and grows when a field changes its meaning or goes away. New fields may come at any time, so skip what
you do not know. Texts are as they were sent; characters that would steer a terminal are written as `\\uXXXX`.

[report.schema.json](report.schema.json) has the same as a JSON Schema (draft 2020-12).
";

#[test]
fn the_pages_of_the_json_report_say_what_it_holds() {
    let schema = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Document<'_>>();
    let schema = serde_json::to_value(schema).unwrap();
    let json = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
    holds("report.schema.json", &json);
    holds("report-json.md", &page(&schema));
}

/// The document is that, or is written so with `UPDATE_DOCS`.
fn holds(name: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, made).unwrap();
    }
    let is_same = fs::read_to_string(&path).unwrap_or_default() == made;
    assert!(is_same, "docs/{name} is stale, run: cargo xtask docs");
}

/// The page for readers: a table for each object.
fn page(schema: &Value) -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut names: Vec<String> = Vec::new();
    section(&mut page, "The report", schema, &mut names);
    let mut next = 0;
    while let Some(name) = names.get(next).cloned() {
        next += 1;
        section(&mut page, &name, &schema["$defs"][&name], &mut names);
    }
    page
}

/// What is said of one type. The types that it names are added to `names`.
fn section(page: &mut String, title: &str, schema: &Value, names: &mut Vec<String>) {
    let _ = writeln!(page, "\n## {title}\n\n{}\n", description(schema));
    match schema["oneOf"].as_array() {
        None => {
            page.push_str("| field | type | meaning |\n|---|---|---|\n");
            for (name, field) in fields(schema) {
                let _ = writeln!(page, "| `{name}` | {} | {} |", kind(field, names), description(field));
            }
        }
        Some(variants) if variants.iter().any(|variant| variant["properties"].is_object()) => {
            page.push_str("| `kind` | meaning | fields |\n|---|---|---|\n");
            for variant in variants {
                let mut of_kind = fields(variant);
                of_kind.retain(|(name, _)| *name != "kind");
                let of_kind: Vec<String> = of_kind
                    .iter()
                    .map(|(name, field)| format!("`{name}` ({}): {}", kind(field, names), description(field)))
                    .collect();
                let kind = constant(&variant["properties"]["kind"]);
                let _ = writeln!(page, "| `{kind}` | {} | {} |", description(variant), of_kind.join("<br>"));
            }
        }
        Some(variants) => {
            page.push_str("| value | meaning |\n|---|---|\n");
            for variant in variants {
                let _ = writeln!(page, "| `{}` | {} |", constant(variant), description(variant));
            }
        }
    }
}

/// The fields of an object in the order in which they are printed: those that are always there come first.
fn fields(schema: &Value) -> Vec<(&str, &Value)> {
    let all = schema["properties"].as_object();
    let names: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let optional =
        all.into_iter().flat_map(Map::keys).map(String::as_str).filter(|name| !names.contains(name));
    let printed: Vec<&str> = names.iter().copied().chain(optional).collect();
    printed.into_iter().map(|name| (name, &schema["properties"][name])).collect()
}

/// A value's type in words, with a link where it has a section of its own.
fn kind(schema: &Value, names: &mut Vec<String>) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.trim_start_matches("#/$defs/");
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(either) = schema["anyOf"].as_array() {
        return either.iter().map(|one| kind(one, names)).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("list of {}", kind(&schema["items"], names)),
        Value::String(name) if name == "object" => {
            format!("object, each value: {}", kind(&schema["additionalProperties"], names))
        }
        Value::String(name) => name.clone(),
        Value::Array(either) => either.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        other => panic!("no words for {other} in {schema}"),
    }
}

fn constant(schema: &Value) -> &str {
    schema["const"].as_str().unwrap_or_else(|| panic!("no constant: {schema}"))
}

fn description(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_else(|| panic!("not described: {schema}")).replace('\n', " ")
}
