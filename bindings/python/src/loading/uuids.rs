//! `uuid.UUID`, without its `__init__`, which looks for what it was given and takes most of a value's time.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use super::{nibble, text};

/// What makes a UUID of its number.
struct Maker {
    class: Py<PyType>,
    /// `object.__new__`, and what sets the two slots in spite of the class, whose values cannot be changed.
    new: Py<PyAny>,
    set_int: Py<PyAny>,
    set_is_safe: Py<PyAny>,
    unknown: Py<PyAny>,
}

impl Maker {
    /// `None` for a Python whose class is made otherwise.
    fn find(py: Python<'_>) -> PyResult<Option<Self>> {
        let module = py.import("uuid")?;
        let class = module.getattr("UUID")?.cast_into::<PyType>()?;
        let set = |name: &str| class.getattr(name).and_then(|slot| slot.getattr("__set__"));
        let (Ok(set_int), Ok(set_is_safe)) = (set("int"), set("is_safe")) else { return Ok(None) };
        let maker = Self {
            new: py.import("builtins")?.getattr("object")?.getattr("__new__")?.unbind(),
            set_int: set_int.unbind(),
            set_is_safe: set_is_safe.unbind(),
            unknown: module.getattr("SafeUUID")?.getattr("unknown")?.unbind(),
            class: class.unbind(),
        };
        // Whatever else the class may want: what is made here has to be what the class itself makes.
        let (probe, wanted) = (maker.make(py, 5)?, maker.class.bind(py).call1((PROBE,))?);
        let is_same = probe.eq(&wanted)? && probe.str()?.to_cow()? == PROBE;
        Ok(is_same.then_some(maker))
    }

    fn make<'py>(&self, py: Python<'py>, number: u128) -> PyResult<Bound<'py, PyAny>> {
        let made = self.new.bind(py).call1((self.class.bind(py),))?;
        self.set_int.bind(py).call1((&made, number))?;
        self.set_is_safe.bind(py).call1((&made, self.unknown.bind(py)))?;
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
    let mut number = 0_u128;
    let mut digits = 0;
    for sign in bytes {
        if *sign == b'-' {
            continue;
        }
        number = number << 4 | u128::from(nibble(*sign)?);
        digits += 1;
    }
    (digits == 32).then_some(number)
}
