//! Lists as arrays in binary: number of dimensions, whether there are NULLs, type of the elements; length and first index of
//! each dimension; the elements.

use onetrip_client::Oid;
use onetrip_client::types::Type;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::Class;
use crate::adapters::has_own_dumper;
use crate::arrays::DEPTH_MAX;

/// The length of NULL.
const NULL: i32 = -1;

/// What a list holds, as far as it was looked at.
#[derive(Default)]
struct Content {
    /// The length of each dimension.
    lengths: Vec<usize>,
    class: Option<Class>,
    /// The type of the elements, once the first was written.
    element: Option<Oid>,
    has_null: bool,
}

/// Appends a list whose elements are all of one class that has a binary form; the array's type. `None` for other lists, of
/// which nothing is appended.
pub(super) fn put(list: &Bound<'_, PyList>, out: &mut Vec<u8>) -> PyResult<Option<Oid>> {
    let mut content = Content::default();
    if !content.look(list, 0)? {
        return Ok(None);
    }
    let Some(class) = content.class else { return Ok(None) };
    let start = out.len();
    let (Ok(depth), Ok(lengths)) = (
        i32::try_from(content.lengths.len()),
        content.lengths.iter().map(|length| i32::try_from(*length)).collect::<Result<Vec<_>, _>>(),
    ) else {
        return Ok(None);
    };
    out.extend_from_slice(&depth.to_be_bytes());
    out.extend_from_slice(&i32::from(content.has_null).to_be_bytes());
    let place = out.len();
    out.extend_from_slice(&[0; 4]);
    for length in lengths {
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&1_i32.to_be_bytes());
    }
    let is_wide = class == Class::Int && !is_narrow(list)?;
    let array =
        if content.put(list, class, is_wide, out)? { content.element.and_then(array_of) } else { None };
    match (array, content.element) {
        (Some(array), Some(element)) => {
            out[place..place + 4].copy_from_slice(&element.to_be_bytes());
            Ok(Some(array))
        }
        _ => {
            out.truncate(start);
            Ok(None)
        }
    }
}

impl Content {
    /// Looks at a list; whether its shape and its elements are such as can be written here.
    fn look(&mut self, list: &Bound<'_, PyList>, depth: usize) -> PyResult<bool> {
        if depth == DEPTH_MAX || list.is_empty() {
            return Ok(false);
        }
        if depth == self.lengths.len() {
            if self.class.is_some() || self.has_null {
                return Ok(false);
            }
            self.lengths.push(list.len());
        } else if self.lengths[depth] != list.len() {
            return Ok(false);
        }
        for value in list.iter() {
            if let Ok(inner) = value.cast_exact::<PyList>() {
                if !self.look(inner, depth + 1)? {
                    return Ok(false);
                }
            } else if depth + 1 != self.lengths.len() {
                return Ok(false);
            } else if value.is_none() {
                self.has_null = true;
            } else if !self.is_of_class(&value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_of_class(&mut self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let class = Class::of(value);
        let is_known = !matches!(class, Class::Other | Class::List | Class::Numeric);
        let is_same = *self.class.get_or_insert(class) == class;
        Ok(is_known && is_same && !has_own_dumper(value)?)
    }

    /// Appends the elements; whether all of them are of one type.
    fn put(
        &mut self,
        list: &Bound<'_, PyList>,
        class: Class,
        is_wide: bool,
        out: &mut Vec<u8>,
    ) -> PyResult<bool> {
        for value in list.iter() {
            if let Ok(inner) = value.cast_exact::<PyList>() {
                if !self.put(inner, class, is_wide, out)? {
                    return Ok(false);
                }
                continue;
            }
            let start = out.len();
            out.extend_from_slice(&NULL.to_be_bytes());
            if value.is_none() {
                continue;
            }
            let Some(oid) = put_element(&value, class, is_wide, out)? else { return Ok(false) };
            if *self.element.get_or_insert(oid) != oid {
                return Ok(false);
            }
            let Ok(length) = i32::try_from(out.len() - start - 4) else { return Ok(false) };
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        }
        Ok(true)
    }
}

fn put_element(
    value: &Bound<'_, PyAny>,
    class: Class,
    is_wide: bool,
    out: &mut Vec<u8>,
) -> PyResult<Option<Oid>> {
    match class {
        Class::Text => {
            super::put_str(value.cast()?, out)?;
            Ok(Some(Type::TEXT.oid()))
        }
        // Numbers of several sizes go into the widest.
        Class::Int if is_wide => match value.extract::<i64>() {
            Ok(value) => {
                out.extend_from_slice(&value.to_be_bytes());
                Ok(Some(Type::INT8.oid()))
            }
            Err(_) => Ok(None),
        },
        _ => super::put_binary(class, value, out),
    }
}

/// Whether all integers of a list fit into 32 bits.
fn is_narrow(list: &Bound<'_, PyList>) -> PyResult<bool> {
    for value in list.iter() {
        let is_narrow = match value.cast_exact::<PyList>() {
            Ok(inner) => is_narrow(inner)?,
            Err(_) => value.is_none() || value.extract::<i32>().is_ok(),
        };
        if !is_narrow {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The type of arrays of a type.
fn array_of(element: Oid) -> Option<Oid> {
    let array = match Type::from_oid(element)? {
        Type::BOOL => Type::BOOL_ARRAY,
        Type::INT4 => Type::INT4_ARRAY,
        Type::INT8 => Type::INT8_ARRAY,
        Type::FLOAT8 => Type::FLOAT8_ARRAY,
        Type::TEXT => Type::TEXT_ARRAY,
        Type::BYTEA => Type::BYTEA_ARRAY,
        Type::DATE => Type::DATE_ARRAY,
        Type::TIME => Type::TIME_ARRAY,
        Type::TIMETZ => Type::TIMETZ_ARRAY,
        Type::TIMESTAMP => Type::TIMESTAMP_ARRAY,
        Type::TIMESTAMPTZ => Type::TIMESTAMPTZ_ARRAY,
        Type::INTERVAL => Type::INTERVAL_ARRAY,
        Type::UUID => Type::UUID_ARRAY,
        _ => return None,
    };
    Some(array.oid())
}
