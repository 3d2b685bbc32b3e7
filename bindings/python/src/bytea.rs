//! `bytea` as the server writes it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The bytes that `bytea` text stands for: hexadecimal, or the older form with octal escapes.
pub(crate) fn bytes_of(written: &[u8]) -> PyResult<Vec<u8>> {
    let wrong = || PyValueError::new_err("bytea that is written in neither of its forms");
    if let Some(digits) = written.strip_prefix(b"\\x") {
        let digit = |sign: u8| char::from(sign).to_digit(16).map(|digit| digit as u8);
        let byte = |pair: &[u8]| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?);
        return digits.chunks(2).map(byte).collect::<Option<_>>().ok_or_else(wrong);
    }
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some((sign, after)) = rest.split_first() {
        (rest, _) = match (*sign, after) {
            (b'\\', [b'\\', after @ ..]) => (after, bytes.push(b'\\')),
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                (after, bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0')))
            }
            (b'\\', _) => return Err(wrong()),
            (sign, after) => (after, bytes.push(sign)),
        };
    }
    Ok(bytes)
}
