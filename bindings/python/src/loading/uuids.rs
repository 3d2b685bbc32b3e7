//! `uuid.UUID`, without its `__init__`, which looks for what it was given and takes most of a value's time.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use super::{NIBBLES, NO_DIGIT, objects, text};

/// What makes a UUID of its number.
struct Maker {
    class: objects::Bare,
    unknown: Py<PyAny>,
}

impl Maker {
    /// `None` for a Python whose class is made otherwise.
    fn find(py: Python<'_>) -> PyResult<Option<Self>> {
        let module = py.import("uuid")?;
        let class = module.getattr("UUID")?.cast_into::<PyType>()?;
        let wanted = class.call1((PROBE,))?;
        let Some(class) = objects::Bare::of(class)? else { return Ok(None) };
        let maker = Self { class, unknown: module.getattr("SafeUUID")?.getattr("unknown")?.unbind() };
        // Whatever else the class may want: what is made here has to be what the class itself makes.
        let Ok(probe) = maker.make(py, 5) else { return Ok(None) };
        let is_same = probe.eq(&wanted)? && probe.str()?.to_cow()? == PROBE;
        Ok(is_same.then_some(maker))
    }

    fn make<'py>(&self, py: Python<'py>, number: u128) -> PyResult<Bound<'py, PyAny>> {
        let made = self.class.make(py)?;
        objects::set(&made, pyo3::intern!(py, "int"), number.into_pyobject(py)?.as_any())?;
        objects::set(&made, pyo3::intern!(py, "is_safe"), self.unknown.bind(py))?;
        Ok(made)
    }
}

/// The text of the number five.
const PROBE: &str = "00000000-0000-0000-0000-000000000005";

/// A UUID of its number.
pub(super) fn of(py: Python<'_>, number: u128) -> PyResult<Bound<'_, PyAny>> {
    static MAKER: PyOnceLock<Option<Maker>> = PyOnceLock::new();
    if let Some(maker) = MAKER.get_or_try_init(py, || Maker::find(py))? {
        return maker.make(py, number);
    }
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let text = format!("{number:032x}");
    CLASS.import(py, "uuid", "UUID")?.call1((text,))
}

/// A UUID as the server writes it.
pub(super) fn of_text<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match number(bytes) {
        Some(number) => of(py, number),
        None => py.import("uuid")?.getattr("UUID")?.call1((text(bytes)?,)),
    }
}

/// The number of a UUID as the server writes it.
pub(crate) fn number(bytes: &[u8]) -> Option<u128> {
    let bytes: &[u8; 36] = bytes.try_into().ok()?;
    let [_, _, _, _, _, _, _, _, b'-', _, _, _, _, b'-', _, _, _, _, b'-', _, _, _, _, b'-', ..] = bytes
    else {
        return None;
    };
    let mut seen = 0;
    let mut part = |digits: &[u8]| {
        digits.iter().fold(0_u64, |number, sign| {
            let digit = NIBBLES[usize::from(*sign)];
            seen |= digit;
            number << 4 | u64::from(digit)
        })
    };
    let high = part(&bytes[..8]) << 32 | part(&bytes[9..13]) << 16 | part(&bytes[14..18]);
    let low = part(&bytes[19..23]) << 48 | part(&bytes[24..]);
    (seen < NO_DIGIT).then_some(u128::from(high) << 64 | u128::from(low))
}
