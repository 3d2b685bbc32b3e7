//! Values of the server as Python's.
//!
//! Each type has a loader for its text, and some have one for their binary form too. A Python function is called for each
//! value only where the program has registered one, or where Python's own class has no faster way.

mod arrays;
mod numbers;
mod objects;
mod times;
mod uuids;

use std::cell::RefCell;
use std::sync::Arc;

use onetrip_client::Oid;
use onetrip_client::types::{Kind, Type};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyString};

use crate::adapters::{Functions, registered, registered_binary};
use crate::binary;
use crate::bytea::bytes_of;
use crate::errors::misuse;

pub(crate) use arrays::load as load_array;
pub(crate) use times::{Session, needs_session};
pub(crate) use uuids::number as uuid_number;

/// Ids from here on are given to what is made in a database; `FirstGenbkiObjectId` in PostgreSQL's `transam.h`.
pub(crate) const FIRST_OWN_OID: Oid = 10_000;

/// How the values of a column become Python's.
#[derive(Debug)]
pub(crate) enum Loader {
    Bool,
    Int,
    Float,
    Numeric,
    Text,
    Bytes,
    Uuid,
    /// A date, a time of day, a timestamp or an interval, written as the session has it.
    Time(times::Times),
    /// A function that takes the text; and the session's settings, where it asks for the values of other types.
    Call(Py<PyAny>, Option<Arc<Session>>),
    /// A function that takes the binary form.
    CallBinary(Py<PyAny>, Option<Arc<Session>>),
    /// The bytes of a type whose binary form is not known here.
    Raw,
    /// An array of such values; the sign stands between its elements.
    Array(Box<Loader>, u8),
    /// Of a value that a row has not, though its description says so.
    Missing,
}

impl Loader {
    /// The loader of a type; a registered function goes before what is built in, and one of the connection's own before
    /// that.
    pub(crate) fn of(
        py: Python<'_>,
        ty: &Type,
        own: &Bound<'_, PyDict>,
        session: &Session,
    ) -> PyResult<Self> {
        if let Some(function) = own.get_item(ty.oid())? {
            return Ok(Self::Call(function.unbind(), for_parts(ty, session)));
        }
        if let Some(function) = registered(py, ty.oid())? {
            return Ok(Self::Call(function, for_parts(ty, session)));
        }
        Self::built_in(py, ty, own, session)
    }

    /// The loader of a type for which the program has registered nothing.
    pub(crate) fn built_in(
        py: Python<'_>,
        ty: &Type,
        own: &Bound<'_, PyDict>,
        session: &Session,
    ) -> PyResult<Self> {
        Ok(match *ty {
            Type::BOOL => Self::Bool,
            Type::INT2 | Type::INT4 | Type::INT8 | Type::OID => Self::Int,
            Type::FLOAT4 | Type::FLOAT8 => Self::Float,
            Type::NUMERIC => Self::Numeric,
            Type::BYTEA => Self::Bytes,
            Type::UUID => Self::Uuid,
            _ if needs_session(ty) => Self::Time(times::Times::of(py, ty, session)),
            _ => match binary::element_of_any(ty) {
                Some(element) => {
                    let sign = if *element == Type::BOX { b';' } else { b',' };
                    Self::Array(Box::new(Self::of(py, element, own, session)?), sign)
                }
                None => Self::text(session),
            },
        })
    }

    fn text(session: &Session) -> Self {
        if session.is_raw { Self::Raw } else { Self::Text }
    }

    /// The loader of a type's binary form. What is not known in binary is left as bytes.
    pub(crate) fn of_binary(
        py: Python<'_>,
        ty: &Type,
        own: &Functions<'_, '_>,
        session: &Session,
    ) -> PyResult<Self> {
        if let Some(function) = own.binaries.get_item(ty.oid())? {
            return Ok(Self::CallBinary(function.unbind(), for_parts(ty, session)));
        }
        if let Some(function) = registered_binary(py, ty.oid())? {
            return Ok(Self::CallBinary(function, for_parts(ty, session)));
        }
        if let Some(element) = binary::element_of_any(ty) {
            let element = Self::of_binary(py, element, own, session)?;
            return Ok(Self::Array(Box::new(element), b','));
        }
        if binary::is_known(ty) { Self::of(py, ty, own.texts, session) } else { Ok(Self::Raw) }
    }

    /// Whether its values refer to no other objects that could refer back.
    pub(crate) fn is_plain(&self) -> bool {
        !matches!(self, Self::Call(..) | Self::CallBinary(..) | Self::Array(..))
    }

    /// The value of some text of the server.
    ///
    /// # Errors
    /// Text that is not of the type, or what the registered function raises.
    #[inline]
    pub(crate) fn load<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Int => numbers::int(py, bytes),
            Self::Text => Ok(PyString::from_bytes(py, bytes)?.into_any()),
            Self::Bool => Ok(PyBool::new(py, bytes == b"t").to_owned().into_any()),
            Self::Float => {
                let value = text(bytes)?.parse().map_err(|_| PyValueError::new_err("not a number"))?;
                Ok(PyFloat::new(py, value).into_any())
            }
            Self::Time(times) => times.load(py, bytes),
            Self::Numeric => numbers::decimal(py, bytes),
            Self::Uuid => uuids::of_text(py, bytes),
            Self::Bytes => load_bytes(py, bytes),
            Self::Call(function, session) => {
                let text = PyString::from_bytes(py, bytes)?;
                within_session(session.as_ref(), || function.bind(py).call1((text,)))
            }
            Self::CallBinary(function, session) => {
                within_session(session.as_ref(), || function.bind(py).call1((PyBytes::new(py, bytes),)))
            }
            Self::Raw => Ok(PyBytes::new(py, bytes).into_any()),
            Self::Array(element, sign) => arrays::load(py, element, *sign, bytes),
            Self::Missing => Err(misuse(py, "operational", "a row has fewer values than it has columns")),
        }
    }

    /// The value of the binary form of a type.
    ///
    /// # Errors
    /// Bytes that are not of the type, and types whose binary form is not known here.
    pub(crate) fn load_binary<'py>(
        &self,
        py: Python<'py>,
        ty: &Type,
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let direct = match (self, bytes) {
            (Self::Bool, [is_true]) => Some(PyBool::new(py, *is_true != 0).to_owned().into_any()),
            (Self::Int, _) => numbers::int_of(py, ty, bytes)?,
            (Self::Float, _) => numbers::float_of(ty, bytes).map(|value| PyFloat::new(py, value).into_any()),
            (Self::Bytes | Self::Raw, _) => Some(PyBytes::new(py, bytes).into_any()),
            (Self::CallBinary(..) | Self::Missing, _) => return self.load(py, bytes),
            (Self::Uuid, _) => match bytes.try_into() {
                Ok(bytes) => Some(uuids::of(py, u128::from_be_bytes(bytes))?),
                Err(_) => None,
            },
            (Self::Text, _) if binary::is_text(ty) => Some(PyString::from_bytes(py, bytes)?.into_any()),
            (Self::Time(times), _) => times.load_binary(py, bytes)?,
            (Self::Array(element, _), _) => match binary::element_of_any(ty) {
                Some(of) => Some(arrays::load_binary(py, element, of, bytes)?),
                None => None,
            },
            _ => None,
        };
        if let Some(value) = direct {
            return Ok(value);
        }
        let mut text = String::new();
        binary::put_text(ty, bytes, &mut text)
            .map_err(|error| misuse(py, "data", &error.value(py).to_string()))?;
        // That text has styles of its own, whatever the session's are.
        match self {
            Self::Time(times) => times.load_plain(py, text.as_bytes()),
            Self::Call(function, Some(session)) => {
                let session = Arc::new(session.with_plain_styles());
                within_session(Some(&session), || function.bind(py).call1((text,)))
            }
            _ => self.load(py, text.as_bytes()),
        }
    }
}

thread_local! {
    /// The settings of the session whose value is being made by a function of Python's.
    static WITHIN: RefCell<Option<Arc<Session>>> = const { RefCell::new(None) };
}

/// The settings by which the parts of a value are made; those of no session where none is being made.
pub(crate) fn session_within() -> Arc<Session> {
    WITHIN.with_borrow(|session| session.clone()).unwrap_or_default()
}

/// Calls a function that asks for parts of a value.
fn within_session<T>(session: Option<&Arc<Session>>, call: impl FnOnce() -> T) -> T {
    let Some(session) = session else { return call() };
    let before = WITHIN.replace(Some(Arc::clone(session)));
    let made = call();
    WITHIN.set(before);
    made
}

/// The settings for the parts of a type's values, if they can have any.
fn for_parts(ty: &Type, session: &Session) -> Option<Arc<Session>> {
    has_parts(ty).then(|| Arc::new(session.clone()))
}

/// Whether values of a type can have others within them, of types that are not known here.
fn has_parts(ty: &Type) -> bool {
    matches!(ty.kind(), Kind::Range(_) | Kind::Multirange(_) | Kind::Composite(_))
        || *ty == Type::RECORD
        || ty.oid() >= FIRST_OWN_OID
}

/// A value in its type's binary form on its way, with its loader. `None` is NULL.
pub(crate) struct LoadedBinary<'a>(pub(crate) &'a Loader, pub(crate) &'a Type, pub(crate) Option<&'a [u8]>);

impl<'py> IntoPyObject<'py> for LoadedBinary<'_> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.2 {
            Some(bytes) => self.0.load_binary(py, self.1, bytes),
            None => Ok(py.None().into_bound(py)),
        }
    }
}

/// A value on its way, with its loader. `None` is NULL.
pub(crate) struct Loaded<'a>(pub(crate) &'a Loader, pub(crate) Option<&'a [u8]>);

impl<'py> IntoPyObject<'py> for Loaded<'_> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    #[inline]
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.1 {
            Some(bytes) => self.0.load(py, bytes),
            None => Ok(py.None().into_bound(py)),
        }
    }
}

fn load_bytes<'py>(py: Python<'py>, written: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let Some(digits) = written.strip_prefix(b"\\x").filter(|digits| digits.len() % 2 == 0) else {
        return Ok(PyBytes::new(py, &bytes_of(written)?).into_any());
    };
    let wrong = || PyValueError::new_err("bytea that is written in neither of its forms");
    let made = PyBytes::new_with(py, digits.len() / 2, |out| {
        let mut seen = 0;
        for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
            let (high, low) = (NIBBLES[usize::from(pair[0])], NIBBLES[usize::from(pair[1])]);
            seen |= high | low;
            *byte = high << 4 | low;
        }
        if seen < NO_DIGIT { Ok(()) } else { Err(wrong()) }
    })?;
    Ok(made.into_any())
}

/// The values of hexadecimal digits, by their signs.
const NIBBLES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        let sign = b"0123456789abcdef"[value];
        values[sign as usize] = value as u8;
        values[sign.to_ascii_uppercase() as usize] = value as u8;
        value += 1;
    }
    values
};

/// What other signs have there. Values that were put together with `|` are at least this if one of them was it.
const NO_DIGIT: u8 = 16;

fn text(bytes: &[u8]) -> PyResult<&str> {
    std::str::from_utf8(bytes).map_err(|_| PyValueError::new_err("a value is not UTF-8"))
}

/// Whether loaders of some types depend on the session's settings.
pub(crate) fn any_needs_session<'t>(types: impl IntoIterator<Item = &'t Type>) -> bool {
    types.into_iter().any(|ty| {
        let ty = binary::element_of_any(ty).unwrap_or(ty);
        needs_session(ty) || has_parts(ty)
    })
}
