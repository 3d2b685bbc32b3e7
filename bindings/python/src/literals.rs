//! Parameters in the text of a statement, for those that take none from the wire.

use onetrip_client::types::Type;
use onetrip_client::{Format, Oid};
use onetrip_sql::Lifter;
use pyo3::prelude::*;

use crate::errors::misuse;
use crate::parameters::Parameters;
use crate::query::{Query, Split, joined};

/// A statement with literals in place of its placeholders. `encoding` is the session's `client_encoding`, and `name_of`
/// the name of a type by its id, as a cast has it.
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
    name_of: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let refused = |problem: &str| misuse(py, "usage", problem);
    if !encoding.is_some_and(is_safe) {
        return Err(refused(
            "parameters are written into the statement's text, for which client_encoding has to be UTF8",
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
        let name = match types[at] {
            0 => None,
            oid => name_of.call1((oid,))?.extract::<Option<String>>()?,
        };
        literals.push(literal(types[at], text, name.as_deref()));
    }
    apart(&split.texts, &mut literals);
    Ok(joined(&split.texts, &literals))
}

/// Whether no byte of a longer character is one that a literal could end with. Those of UTF-8 and of the encodings that a
/// database may have are above ASCII; those that only clients have are not so.
fn is_safe(encoding: &str) -> bool {
    let clients = ["BIG5", "GBK", "GB18030", "JOHAB", "SJIS", "SHIFT_JIS_2004", "UHC"];
    !clients.iter().any(|one| encoding.eq_ignore_ascii_case(one))
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
        // A cast would take an index for a part of its type's name, and binds stronger than a sign.
        let binds: &[&str] = if literal.starts_with(" -") { &["::", "[", "."] } else { &["[", "."] };
        if binds.iter().any(|sign| after.trim_start().starts_with(sign)) && !literal.ends_with('\'') {
            *literal = format!("({})", literal.trim_start());
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
///
/// What could run into the sign before it has a space in front: a number below zero, and `E''`.
fn literal(type_oid: Oid, text: &str, name: Option<&str>) -> String {
    let ty = Type::from_oid(type_oid);
    match ty {
        // Other numbers would be of another type: SQL takes a fraction for numeric, and a sign for no part of the number.
        Some(Type::INT4 | Type::INT8 | Type::NUMERIC) if is_number(text) && !is_lowest(text) => {
            let sign = if text.starts_with('-') { " " } else { "" };
            return format!("{sign}{text}");
        }
        Some(Type::BOOL) if text == "t" => return "true".to_owned(),
        Some(Type::BOOL) if text == "f" => return "false".to_owned(),
        _ => {}
    }
    let is_escaped = text.contains('\\');
    let quoted = text.replace('\\', "\\\\").replace('\'', "''");
    let sign = if is_escaped { " E" } else { "" };
    match name {
        // The server takes it for what it needs.
        None => format!("{sign}'{quoted}'"),
        Some(name) => format!("{sign}'{quoted}'::{name}"),
    }
}

/// Whether it is the lowest of a type, which without its sign would not fit in.
fn is_lowest(text: &str) -> bool {
    text == i32::MIN.to_string() || text == i64::MIN.to_string()
}

/// Whether text is a number as SQL writes it: digits, with a fraction and an exponent perhaps.
fn is_number(text: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.strip_prefix(['+', '-']).unwrap_or(exponent)),
        None => (text, "0"),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    is_digits(whole) && is_digits(fraction) && is_digits(exponent)
}
