//! Parameters in the text of a statement, for those that take none from the wire.

use onetrip_client::types::Type;
use onetrip_client::{Format, Oid};
use onetrip_sql::Lifter;
use pyo3::prelude::*;

use crate::errors::misuse;
use crate::parameters::Parameters;
use crate::query::{Query, Split, joined};

/// A statement with literals in place of its placeholders. `encoding` is the session's `client_encoding`.
///
/// What ends a literal has to be the same for the server whatever its settings: strings with a backslash are `E''`,
/// placeholders within quotes or comments are refused, and so is any encoding in which a byte of a character can look like
/// a quote.
///
/// # Errors
/// Parameters that do not fit the placeholders, or have no safe literal.
#[pyfunction]
pub(crate) fn composed(
    py: Python<'_>,
    statement: &str,
    given: &Bound<'_, PyAny>,
    encoding: Option<&str>,
) -> PyResult<String> {
    let refused = |problem: &str| misuse(py, "usage", problem);
    if !encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case("UTF8")) {
        return Err(refused(
            "parameters of COPY are written into its text, for which client_encoding has to be UTF8",
        ));
    }
    let split = Split::of(statement, Vec::new()).map_err(|problem| refused(&problem))?;
    let numbers: Vec<String> = split.numbers.iter().map(|number| format!("${number}")).collect();
    let text = joined(&split.texts, &numbers);
    let query = Query { text, placeholders: split.placeholders, forms: Vec::new() };
    if split.texts.iter().any(|text| has_number(text)) {
        return Err(refused("a statement with placeholders cannot have $1, $2, … of its own"));
    }
    if !are_outside_of_quotes(&query.text, &split.numbers) {
        return Err(refused(
            "a placeholder cannot stand within quotes, a comment or a name: it becomes a literal",
        ));
    }
    let mut parameters = Parameters::as_text();
    parameters.add(&query, given)?;
    let types: Vec<Oid> = parameters.written().iter().map(|written| written.type_oid).collect();
    parameters.untype();
    let written = parameters.written();
    let mut literals = Vec::with_capacity(split.numbers.len());
    for number in &split.numbers {
        let (at, problem) = (number - 1, format!("parameter {number} cannot be a literal: "));
        let refused = |why: &str| misuse(py, "data", &format!("{problem}{why}"));
        let Some(bytes) = written[at].bytes else {
            literals.push("NULL".to_owned());
            continue;
        };
        if written[at].format == Format::Binary {
            return Err(refused("it has a binary form only"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| refused("it is not UTF-8"))?;
        if text.contains('\0') {
            return Err(refused("it holds a NUL"));
        }
        literals.push(literal(types[at], text));
    }
    apart(&split.texts, &mut literals);
    Ok(joined(&split.texts, &literals))
}

/// Puts spaces around literals that would run into what stands beside them.
fn apart(texts: &[String], literals: &mut [String]) {
    for (at, (literal, around)) in literals.iter_mut().zip(texts.windows(2)).enumerate() {
        let [before, after] = around else { continue };
        let is_apart = |sign: char| sign.is_whitespace() || matches!(sign, '(' | ')' | ',' | '=' | ';');
        // Nothing stands before the first one, and another literal before those after it.
        if before.chars().next_back().map_or(at > 0, |sign| !is_apart(sign)) {
            literal.insert(0, ' ');
        }
        // A colon is a cast, or part of a slice.
        if after.chars().next().is_some_and(|sign| !is_apart(sign) && sign != ':') {
            literal.push(' ');
        }
    }
}

/// Whether a text has something like `$1`, which would be taken for a placeholder where placeholders are looked for.
fn has_number(text: &str) -> bool {
    text.as_bytes().windows(2).any(|pair| pair[0] == b'$' && pair[1].is_ascii_digit())
}

/// Whether the server sees the placeholders, however it reads a backslash within plain quotes.
fn are_outside_of_quotes(text: &str, numbers: &[usize]) -> bool {
    let mut lifter = Lifter::new();
    [true, false].into_iter().all(|standard_conforming_strings| {
        let lifted = lifter.lift(text.as_bytes(), standard_conforming_strings);
        let seen = lifted.parameters().iter().map(|parameter| parameter.source_number as usize);
        seen.eq(numbers.iter().copied())
    })
}

/// The literal of a value of a type, or of none. Text of a dumper that the program has registered is any text.
fn literal(type_oid: Oid, text: &str) -> String {
    let ty = Type::from_oid(type_oid);
    match ty {
        Some(Type::INT4 | Type::INT8)
            if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            return text.to_owned();
        }
        Some(Type::BOOL) if text == "t" => return "true".to_owned(),
        Some(Type::BOOL) if text == "f" => return "false".to_owned(),
        _ => {}
    }
    let is_escaped = text.contains('\\');
    let quoted = text.replace('\\', "\\\\").replace('\'', "''");
    let sign = if is_escaped { "E" } else { "" };
    match ty {
        // The server takes it for what it needs; types of the program's own have no name here.
        None | Some(Type::TEXT | Type::UNKNOWN) => format!("{sign}'{quoted}'"),
        Some(ty) => format!("({sign}'{quoted}'::pg_catalog.\"{}\")", ty.name()),
    }
}
