//! Numbers.

use onetrip_client::types::Type;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyString, PyType};

use super::text;

/// Digits that surely fit into 64 bits.
const SHORT_DIGITS_MAX: usize = 18;

#[inline]
pub(super) fn int<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.len() > SHORT_DIGITS_MAX || digits.is_empty() {
        return py.get_type::<PyInt>().call1((text(bytes)?,));
    }
    let mut value = 0_i64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return py.get_type::<PyInt>().call1((text(bytes)?,));
        }
        value = value * 10 + i64::from(digit);
    }
    Ok((if negative { -value } else { value }).into_pyobject(py)?.into_any())
}

/// An integer of a type in binary.
pub(super) fn int_of<'py>(py: Python<'py>, ty: &Type, bytes: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
    let value = match (ty, bytes) {
        (&Type::INT2, &[a, b]) => i16::from_be_bytes([a, b]).into(),
        (&Type::INT4, &[a, b, c, d]) => i32::from_be_bytes([a, b, c, d]).into(),
        (&Type::OID, &[a, b, c, d]) => u32::from_be_bytes([a, b, c, d]).into(),
        (&Type::INT8, _) => match bytes.try_into() {
            Ok(bytes) => i64::from_be_bytes(bytes),
            Err(_) => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(value.into_pyobject(py)?.into_any()))
}

/// A float of a type in binary. A `float4` is the number that its shortest text stands for, as it is when it comes as text.
pub(super) fn float_of(ty: &Type, bytes: &[u8]) -> Option<f64> {
    if *ty == Type::FLOAT8 { Some(f64::from_be_bytes(bytes.try_into().ok()?)) } else { None }
}

pub(super) fn decimal<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    DECIMAL.import(py, "decimal", "Decimal")?.call1((PyString::from_bytes(py, bytes)?,))
}
