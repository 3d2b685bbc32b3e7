//! Objects whose class forbids in Python what it needs itself: to be made without `__init__`, and to be filled.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// A class whose objects are made by `object.__new__`, and known to the collector of cycles.
pub(super) struct Bare(Py<PyType>);

impl Bare {
    /// `None` for a class with a way of its own.
    #[allow(unsafe_code)]
    pub(super) fn of(class: Bound<'_, PyType>) -> PyResult<Option<Self>> {
        let new = class.py().get_type::<PyAny>().getattr("__new__")?;
        // SAFETY: the class is alive.
        let is_collected = unsafe { ffi::PyType_IS_GC(class.as_type_ptr()) } != 0;
        let is_plain = class.getattr("__new__")?.is(&new) && is_collected;
        Ok(is_plain.then(|| Self(class.unbind())))
    }

    /// A new object, none of whose slots is filled. The collector is spared it, as in [`crate::collected`]: it may not be
    /// given what could refer back to it.
    #[inline]
    #[allow(unsafe_code)]
    pub(super) fn make<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let class = self.0.bind(py).as_type_ptr();
        // SAFETY: the class is alive, and `object.__new__` does no more for it than this. It gives a new reference, or none
        // and sets an error; the object is of a type that the collector knows.
        unsafe {
            let made = ffi::PyType_GenericNew(class, std::ptr::null_mut(), std::ptr::null_mut());
            let made = Bound::from_owned_ptr_or_err(py, made)?;
            ffi::PyObject_GC_UnTrack(made.as_ptr().cast());
            Ok(made)
        }
    }
}

/// Sets an attribute by `object.__setattr__`, whatever the class has.
#[inline]
#[allow(unsafe_code)]
pub(super) fn set(
    object: &Bound<'_, PyAny>,
    name: &Bound<'_, PyString>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    // SAFETY: all three are alive, and references to them are only borrowed.
    let set = unsafe { ffi::PyObject_GenericSetAttr(object.as_ptr(), name.as_ptr(), value.as_ptr()) };
    if set == 0 { Ok(()) } else { Err(PyErr::fetch(object.py())) }
}
