//! Arrays of one dimension: PostgreSQL's text and binary forms, stored as a JSON array so that SQLite's
//! `json_each` can read them.

use std::io::Write;

use onetrip_wire::Reader;
use onetrip_wire::pg::Format;
use rusqlite::types::ValueRef;

use super::input::decode;
use super::output::{put_text_form, put_value};
use crate::error::{SqlError, SqlResult};
use crate::types::{Base, SqlType};
use crate::watch::spend;

const TEXTS: SqlType = SqlType::array_of(Base::Text);

/// What PostgreSQL's `array_isspace` skips: other blanks of Unicode are part of an element.
const BLANKS: [char; 6] = [' ', '\t', '\n', '\r', '\x0b', '\x0c'];

/// Reads `{1,NULL,"a b"}` into JSON.
pub(crate) fn text_to_json(ty: SqlType, text: &str) -> SqlResult<String> {
    let malformed = || {
        SqlError::new(
            "22P02",
            format!("malformed array literal: \"{}\"", text.chars().take(100).collect::<String>()),
        )
    };
    let inside = text
        .trim_matches(BLANKS)
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .ok_or_else(malformed)?;
    let mut json = Json::new();
    let mut rest = inside.trim_matches(BLANKS);
    while !rest.is_empty() {
        let (element, is_quoted, behind) = next_element(rest).ok_or_else(malformed)?;
        spend(rest.len() - behind.len())?;
        if !is_quoted && element.eq_ignore_ascii_case("null") {
            json.put(ty, ValueRef::Null)?;
        } else {
            json.put(ty, super::read_text(ty.element(), &element)?.as_ref())?;
        }
        rest = match behind.trim_start_matches(BLANKS).strip_prefix(',') {
            Some(more) if !more.trim_matches(BLANKS).is_empty() => more.trim_start_matches(BLANKS),
            None if behind.trim_matches(BLANKS).is_empty() => "",
            _ => return Err(malformed()),
        };
    }
    Ok(json.finish())
}

/// The first element of a list, whether it was quoted, and what follows it.
fn next_element(text: &str) -> Option<(String, bool, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let mut element = String::new();
        let mut characters = quoted.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => return Some((element, true, &quoted[at + 1..])),
                '\\' => element.push(characters.next()?.1),
                other => element.push(other),
            }
        }
        return None;
    }
    let end = text.find(',').unwrap_or(text.len());
    let element = text[..end].trim_matches(BLANKS);
    let is_plain = !element.is_empty() && !element.contains(['{', '}', '"', '\\']);
    is_plain.then(|| (element.to_owned(), false, &text[end..]))
}

/// Reads the binary form into JSON; the element type on the wire must be the array's.
pub(crate) fn binary_to_json(ty: SqlType, bytes: &[u8]) -> SqlResult<String> {
    let invalid = |_| SqlError::new("22P03", "invalid binary array");
    let mut reader = Reader::new(bytes);
    let dimensions = reader.i32().map_err(invalid)?;
    let _has_nulls = reader.i32().map_err(invalid)?;
    let element = SqlType::of_oid(reader.u32().map_err(invalid)?).unwrap_or(ty.element());
    let count = match dimensions {
        0 => 0,
        1 => {
            let count = reader.i32().map_err(invalid)?;
            let _lower_bound = reader.i32().map_err(invalid)?;
            count
        }
        _ => return Err(SqlError::unsupported("arrays of more than one dimension are not supported")),
    };
    let mut json = Json::new();
    for _ in 0..count {
        spend(1)?;
        match reader.value().map_err(invalid)? {
            None => json.put(ty, ValueRef::Null)?,
            Some(bytes) => json.put(ty, decode(element.element(), Format::Binary, bytes)?.as_ref())?,
        }
    }
    reader.finish().map_err(invalid)?;
    Ok(json.finish())
}

/// Writes a JSON array.
pub(crate) struct Json {
    text: Vec<u8>,
}

impl Json {
    pub(crate) fn new() -> Self {
        Self { text: vec![b'['] }
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn put_text(&mut self, element: &str) -> SqlResult<()> {
        spend(element.len() + 1)?;
        if self.text.len() > 1 {
            self.text.push(b',');
        }
        put_json_string(&mut self.text, element);
        Ok(())
    }

    fn put(&mut self, ty: SqlType, value: ValueRef<'_>) -> SqlResult<()> {
        if self.text.len() > 1 {
            self.text.push(b',');
        }
        match value {
            ValueRef::Null => self.text.extend_from_slice(b"null"),
            ValueRef::Integer(integer) if ty.base == Base::Bool => {
                self.text.extend_from_slice(if integer == 0 { b"false" } else { b"true" });
            }
            ValueRef::Integer(_) => put_text_form(&mut self.text, SqlType::INT8, None, value)?,
            // Writing to a Vec cannot fail; `{:?}` always shows a point or an exponent, as JSON needs.
            ValueRef::Real(real) if real.is_finite() => {
                let _ = write!(self.text, "{real:?}");
            }
            other => {
                let mut plain = Vec::new();
                put_text_form(&mut plain, ty.element(), None, other)?;
                put_json_string(&mut self.text, &String::from_utf8_lossy(&plain));
            }
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> String {
        self.text.push(b']');
        String::from_utf8_lossy(&self.text).into_owned()
    }
}

fn put_json_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

/// An element of a JSON array of plain values.
enum Element {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
}

/// Splits a JSON array whose elements are no arrays and no objects.
pub(crate) struct Elements<'a> {
    rest: &'a str,
}

impl<'a> Elements<'a> {
    fn new(ty: SqlType, json: &'a str) -> SqlResult<Self> {
        json.trim()
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .map(|rest| Self { rest: rest.trim() })
            .ok_or_else(|| SqlError::invalid_text(&ty.sql_name(), json))
    }

    pub(crate) fn of_texts(json: &'a str) -> SqlResult<Self> {
        Self::new(TEXTS, json)
    }

    /// The next element as text, whatever its type; inside, `None` is NULL.
    pub(crate) fn next_text(&mut self) -> SqlResult<Option<Option<String>>> {
        let element = self.next(TEXTS)?;
        Ok(element.map(|element| match element {
            Element::Null => None,
            Element::Bool(value) => Some((if value { "t" } else { "f" }).to_owned()),
            Element::Number(text) | Element::Text(text) => Some(text),
        }))
    }

    fn next(&mut self, ty: SqlType) -> SqlResult<Option<Element>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let invalid =
            || SqlError::new("22P02", format!("stored value is no array for type {}", ty.sql_name()));
        let (element, behind) = match self.rest.strip_prefix('"') {
            Some(quoted) => {
                let (text, behind) = json_string(quoted).ok_or_else(invalid)?;
                (Element::Text(text), behind)
            }
            None => {
                let end = self.rest.find(',').unwrap_or(self.rest.len());
                let element = match self.rest[..end].trim() {
                    "null" => Element::Null,
                    "true" => Element::Bool(true),
                    "false" => Element::Bool(false),
                    number if number.parse::<f64>().is_ok() => Element::Number(number.to_owned()),
                    _ => return Err(invalid()),
                };
                (element, &self.rest[end..])
            }
        };
        let behind = behind.trim_start();
        spend(self.rest.len() - behind.len())?;
        self.rest = match behind.strip_prefix(',') {
            Some(more) => more.trim_start(),
            None if behind.is_empty() => "",
            None => return Err(invalid()),
        };
        Ok(Some(element))
    }
}

/// The string that starts behind an opening quote, and what follows its closing one.
fn json_string(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((out, &text[at + 1..])),
            '\\' => out.push(match characters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'u' => {
                    let mut code = 0;
                    for _ in 0..4 {
                        code = code * 16 + characters.next()?.1.to_digit(16)?;
                    }
                    char::from_u32(code)?
                }
                other => other,
            }),
            other => out.push(other),
        }
    }
    None
}

/// Appends PostgreSQL's text form of a stored array.
pub(crate) fn json_to_text(out: &mut Vec<u8>, ty: SqlType, json: &str) -> SqlResult<()> {
    let mut elements = Elements::new(ty, json)?;
    out.push(b'{');
    let mut is_first = true;
    let mut plain = Vec::new();
    while let Some(element) = elements.next(ty)? {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        plain.clear();
        if put_element(ty, &element, |value| put_text_form(&mut plain, ty.element(), None, value))? {
            put_quoted(out, &plain);
        } else {
            out.extend_from_slice(b"NULL");
        }
    }
    out.push(b'}');
    Ok(())
}

fn put_quoted(out: &mut Vec<u8>, element: &[u8]) {
    let needs_quotes = element.is_empty()
        || element.eq_ignore_ascii_case(b"null")
        || element
            .iter()
            .any(|byte| matches!(byte, b'{' | b'}' | b',' | b'"' | b'\\') || byte.is_ascii_whitespace());
    if !needs_quotes {
        out.extend_from_slice(element);
        return;
    }
    out.push(b'"');
    for &byte in element {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Appends PostgreSQL's binary form of a stored array.
pub(crate) fn json_to_binary(out: &mut Vec<u8>, ty: SqlType, json: &str) -> SqlResult<()> {
    let mut elements = Elements::new(ty, json)?;
    let start = out.len();
    let element_oid = ty.element().oid();
    for word in [1, 0, element_oid, 0, 1] {
        out.extend_from_slice(&u32::to_be_bytes(word));
    }
    let (mut count, mut has_nulls) = (0u32, 0u32);
    while let Some(element) = elements.next(ty)? {
        count += 1;
        let is_value =
            put_element(ty, &element, |value| put_value(out, ty.element(), None, Format::Binary, value))?;
        if !is_value {
            has_nulls = 1;
            out.extend_from_slice(&(-1i32).to_be_bytes());
        }
    }
    out[start + 4..start + 8].copy_from_slice(&has_nulls.to_be_bytes());
    if count == 0 {
        out.truncate(start + 12);
        out[start..start + 4].copy_from_slice(&[0; 4]);
    } else {
        out[start + 12..start + 16].copy_from_slice(&count.to_be_bytes());
    }
    Ok(())
}

/// Gives an element to `put` as a stored value; false for NULL, which is not given.
fn put_element(
    ty: SqlType,
    element: &Element,
    put: impl FnOnce(ValueRef<'_>) -> SqlResult<()>,
) -> SqlResult<bool> {
    match element {
        Element::Null => return Ok(false),
        Element::Bool(value) => put(ValueRef::Integer(i64::from(*value)))?,
        Element::Number(text) => put(super::read_text(number_type(ty), text)?.as_ref())?,
        Element::Text(text) => put(super::read_text(ty.element(), text)?.as_ref())?,
    }
    Ok(true)
}

/// How a JSON number is to be read for elements of this array.
fn number_type(ty: SqlType) -> SqlType {
    if ty.base.is_number() { ty.element() } else { SqlType::TEXT }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INTEGERS: SqlType = SqlType::array_of(Base::Int4);

    #[test]
    fn array_literals_become_json_and_back() {
        let json = text_to_json(TEXTS, r#"{a,"b, \"c\"",NULL,"null"}"#).unwrap();
        assert_eq!(json, r#"["a","b, \"c\"",null,"null"]"#);
        let mut out = Vec::new();
        json_to_text(&mut out, TEXTS, &json).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), r#"{a,"b, \"c\"",NULL,"null"}"#);
        assert_eq!(text_to_json(INTEGERS, "{}").unwrap(), "[]");
        assert_eq!(text_to_json(INTEGERS, "{1, -2}").unwrap(), "[1,-2]");
        for wrong in ["1,2", "{1,,2}", "{1,}", "{{1}}", "{\"a}"] {
            assert_eq!(text_to_json(INTEGERS, wrong).unwrap_err().sqlstate, "22P02", "{wrong}");
        }
    }

    #[test]
    fn an_empty_array_has_no_dimension_in_binary() {
        let mut out = Vec::new();
        json_to_binary(&mut out, INTEGERS, "[]").unwrap();
        assert_eq!(out, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 23]);
    }

    proptest! {
        #[test]
        fn every_text_array_survives_both_forms(elements in proptest::collection::vec(any::<Option<String>>(), 0..6)) {
            let mut json = Json::new();
            for element in &elements {
                let value = element.as_ref().map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes()));
                prop_assume!(element.as_ref().is_none_or(|text| !text.contains('\0')));
                json.put(TEXTS, value).unwrap();
            }
            let json = json.finish();
            let mut text = Vec::new();
            json_to_text(&mut text, TEXTS, &json).unwrap();
            prop_assert_eq!(&text_to_json(TEXTS, std::str::from_utf8(&text).unwrap()).unwrap(), &json);
            let mut binary = Vec::new();
            json_to_binary(&mut binary, TEXTS, &json).unwrap();
            prop_assert_eq!(&binary_to_json(TEXTS, &binary).unwrap(), &json);
        }
    }
}
