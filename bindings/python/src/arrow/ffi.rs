//! The C structs of Arrow's data and stream interfaces, and the capsules that carry them between Python's packages:
//! arrow.apache.org/docs/format/CDataInterface.html, CStreamInterface.html and CDataInterface/PyCapsuleInterface.html.
//!
//! All that is unsafe about Arrow is here. A struct of ours owns what it points to and gives it up in `release`, once. A
//! struct of others is checked where the interface allows that: what is released, missing or negative is an error. That
//! their buffers are as long as their lengths say, nobody can check.
#![allow(unsafe_code, reason = "structs of C are shared with other packages")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::batch::{Batch, Field};
use super::export::ArrowBatch;
use crate::locked::locked;

/// More columns than any table has; what claims more is not believed.
const CHILDREN_MAX: usize = 1 << 16;

/// The schema's flag for what may be NULL.
const NULLABLE: i64 = 2;

/// `ArrowSchema`.
#[repr(C)]
pub(super) struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

/// `ArrowArray`.
#[repr(C)]
pub(super) struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

/// `ArrowArrayStream`.
#[repr(C)]
pub(super) struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private_data: *mut c_void,
}

/// What the three have in common.
///
/// # Safety
/// The type is one of them; it is valid with all its fields zero, and then counts as released.
unsafe trait Shared: Send + Sized + 'static {
    /// The name of its capsule.
    const NAME: &'static CStr;

    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)>;

    /// One that is released.
    fn released() -> Self {
        // SAFETY: the trait's contract.
        unsafe { std::mem::zeroed() }
    }
}

// SAFETY: integers, raw pointers and optional functions.
unsafe impl Shared for Schema {
    const NAME: &'static CStr = c"arrow_schema";

    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
        &mut self.release
    }
}

// SAFETY: as above.
unsafe impl Shared for Array {
    const NAME: &'static CStr = c"arrow_array";

    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
        &mut self.release
    }
}

// SAFETY: as above.
unsafe impl Shared for Stream {
    const NAME: &'static CStr = c"arrow_array_stream";

    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
        &mut self.release
    }
}

// SAFETY: the interface lets a struct go to another thread. Nobody changes a schema or an array before its release.
unsafe impl Send for Schema {}
// SAFETY: as above.
unsafe impl Sync for Schema {}
// SAFETY: as above.
unsafe impl Send for Array {}
// SAFETY: as above.
unsafe impl Sync for Array {}
// SAFETY: a stream may go to another thread; its functions take it exclusively, so that it is called by one at a time.
unsafe impl Send for Stream {}

/// Releases a struct, unless that has happened or it was moved elsewhere.
fn release<T: Shared>(shared: &mut T) {
    if let Some(release) = *shared.release() {
        // SAFETY: it is not released, and so its function may be called; `release` takes the struct's own address.
        unsafe { release(shared) };
        // A producer has to do so itself.
        *shared.release() = None;
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        release(self);
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        release(self);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        release(self);
    }
}

/// Puts a struct into a capsule, which releases it unless its consumer has moved it away.
fn capsule<T: Shared>(py: Python<'_>, shared: T) -> PyResult<Bound<'_, PyCapsule>> {
    // The capsule's pointer is that of the struct, which is dropped with the capsule.
    PyCapsule::new_with_value(py, shared, T::NAME)
}

/// Moves a struct out of its capsule.
fn taken<T: Shared>(capsule: &Bound<'_, PyAny>) -> PyResult<T> {
    let py = capsule.py();
    // SAFETY: it may be called with any object, and says by an error that it is no capsule of this name.
    let pointer = unsafe { pyo3::ffi::PyCapsule_GetPointer(capsule.as_ptr(), T::NAME.as_ptr()) };
    let Some(shared) = NonNull::new(pointer.cast::<T>()) else { return Err(PyErr::fetch(py)) };
    // SAFETY: the name says what a capsule points to, and the GIL keeps others from moving it meanwhile. What stays is
    // released for everybody else, so that there is one owner.
    let moved = unsafe {
        let moved = ptr::read(shared.as_ptr());
        *(*shared.as_ptr()).release() = None;
        moved
    };
    checked(moved).map_err(|problem| PyValueError::new_err(format!("the capsule has {problem}")))
}

/// Refuses what is released.
fn checked<T: Shared>(mut shared: T) -> Result<T, String> {
    match shared.release() {
        Some(_) => Ok(shared),
        None => Err(format!("an {} that was released", T::NAME.to_string_lossy())),
    }
}

// --- What we give ---------------------------------------------------------------------------------------------------

/// What a schema of ours points to.
struct SchemaParts {
    _format: CString,
    _name: CString,
    _metadata: Option<Box<[u8]>>,
    children: Box<[*mut Schema]>,
}

impl Schema {
    /// A table's.
    fn of(fields: &[Field]) -> Self {
        let child = |field: &Field| {
            let (format, metadata) = (field.kind.format(), field.kind.metadata());
            Box::into_raw(Box::new(Self::made(&format, &field.name, metadata, NULLABLE, Box::default())))
        };
        Self::made("+s", "", None, 0, fields.iter().map(child).collect())
    }

    fn made(
        format: &str,
        name: &str,
        metadata: Option<Vec<u8>>,
        flags: i64,
        children: Box<[*mut Self]>,
    ) -> Self {
        // The server has no names with NUL.
        let text = |text: &str| CString::new(text.replace('\0', "")).unwrap_or_default();
        let (format, name, metadata) = (text(format), text(name), metadata.map(Vec::into_boxed_slice));
        let (format_at, name_at) = (format.as_ptr(), name.as_ptr());
        let metadata_at = metadata.as_ref().map_or(ptr::null(), |bytes| bytes.as_ptr().cast());
        let mut parts = Box::new(SchemaParts { _format: format, _name: name, _metadata: metadata, children });
        Self {
            format: format_at,
            name: name_at,
            metadata: metadata_at,
            flags,
            n_children: parts.children.len() as i64,
            children: parts.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release_schema),
            private_data: Box::into_raw(parts).cast(),
        }
    }
}

unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: only our structs have this function, and a consumer calls it once, with the struct or a moved copy of it.
    unsafe {
        let parts = Box::from_raw((*schema).private_data.cast::<SchemaParts>());
        for child in &parts.children {
            // Its own function is called, unless a consumer has moved it away.
            drop(Box::from_raw(*child));
        }
        (*schema).release = None;
        (*schema).private_data = ptr::null_mut();
    }
}

/// What an array of ours points to.
struct ArrayParts {
    buffers: Box<[*const c_void]>,
    children: Box<[*mut Array]>,
    /// Whose memory the buffers are.
    _batch: Arc<Batch>,
}

impl Array {
    /// A table's: one struct whose children are the columns.
    fn of(batch: &Arc<Batch>) -> Self {
        let child = |column: &super::batch::Column| {
            let buffers = column.buffers().map(|buffer| buffer.map_or(ptr::null(), |at| at.cast()));
            let made = Self::made(batch, column.nulls, buffers.collect(), Box::default());
            Box::into_raw(Box::new(made))
        };
        let children = batch.columns.iter().map(child).collect();
        Self::made(batch, 0, Box::new([ptr::null()]), children)
    }

    fn made(
        batch: &Arc<Batch>,
        nulls: usize,
        buffers: Box<[*const c_void]>,
        children: Box<[*mut Self]>,
    ) -> Self {
        let mut parts = Box::new(ArrayParts { buffers, children, _batch: Arc::clone(batch) });
        Self {
            length: batch.rows as i64,
            null_count: nulls as i64,
            offset: 0,
            n_buffers: parts.buffers.len() as i64,
            n_children: parts.children.len() as i64,
            buffers: parts.buffers.as_mut_ptr(),
            children: parts.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release_array),
            private_data: Box::into_raw(parts).cast(),
        }
    }
}

unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: as `release_schema`.
    unsafe {
        let parts = Box::from_raw((*array).private_data.cast::<ArrayParts>());
        for child in &parts.children {
            drop(Box::from_raw(*child));
        }
        (*array).release = None;
        (*array).private_data = ptr::null_mut();
    }
}

/// What a stream of ours points to.
struct StreamParts {
    fields: Arc<[Field]>,
    /// An iterator of [`ArrowBatch`]; `close` ends it early, if it has that.
    batches: Py<PyAny>,
    /// What the last call failed with.
    error: Mutex<Option<CString>>,
}

impl Stream {
    fn of(fields: Arc<[Field]>, batches: Py<PyAny>) -> Self {
        let parts = Box::new(StreamParts { fields, batches, error: Mutex::default() });
        Self {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release_stream),
            private_data: Box::into_raw(parts).cast(),
        }
    }
}

unsafe extern "C" fn get_schema(stream: *mut Stream, out: *mut Schema) -> c_int {
    // SAFETY: a consumer calls it with a stream of ours that is not released, and with memory for a struct, whose old
    // content is not to be dropped.
    unsafe {
        let parts = &*(*stream).private_data.cast::<StreamParts>();
        ptr::write(out, Schema::of(&parts.fields));
    }
    0
}

unsafe extern "C" fn get_next(stream: *mut Stream, out: *mut Array) -> c_int {
    // SAFETY: as `get_schema`.
    let parts = unsafe { &*(*stream).private_data.cast::<StreamParts>() };
    let next = Python::try_attach(|py| {
        let batches = parts.batches.bind(py);
        next_batch(batches).map_err(|error| (errno_of(py, &error), error.to_string()))
    });
    let (code, problem) = match next {
        Some(Ok(batch)) => {
            // A released array is the end.
            let array = batch.map_or_else(Array::released, |batch| Array::of(&batch));
            // SAFETY: as in `get_schema`.
            unsafe { ptr::write(out, array) };
            return 0;
        }
        Some(Err(failed)) => failed,
        None => (EIO, "Python is shutting down".to_owned()),
    };
    *locked(&parts.error) = CString::new(problem.replace('\0', "")).ok();
    code
}

fn next_batch(batches: &Bound<'_, PyAny>) -> PyResult<Option<Arc<Batch>>> {
    let next = batches.try_iter()?.next().transpose()?;
    Ok(match next {
        Some(next) => Some(next.cast::<ArrowBatch>()?.get().batch()),
        None => None,
    })
}

/// Consumers make exceptions by these numbers.
fn errno_of(py: Python<'_>, error: &PyErr) -> c_int {
    if error.is_instance_of::<PyValueError>(py) {
        EINVAL
    } else if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        EINTR
    } else {
        EIO
    }
}

const EINTR: c_int = 4;
const EIO: c_int = 5;
const EINVAL: c_int = 22;

unsafe extern "C" fn get_last_error(stream: *mut Stream) -> *const c_char {
    // SAFETY: as `get_schema`.
    let parts = unsafe { &*(*stream).private_data.cast::<StreamParts>() };
    // A consumer reads it before it calls anything else, which is what replaces it.
    locked(&parts.error).as_ref().map_or(ptr::null(), |error| error.as_ptr())
}

unsafe extern "C" fn release_stream(stream: *mut Stream) {
    // SAFETY: as `release_schema`.
    let parts = unsafe {
        let parts = Box::from_raw((*stream).private_data.cast::<StreamParts>());
        (*stream).release = None;
        (*stream).private_data = ptr::null_mut();
        parts
    };
    let StreamParts { batches, .. } = *parts;
    // While Python shuts down, its objects are left to it.
    let _ = Python::try_attach(|py| {
        // An error that is on its way while a capsule is freed has to stay.
        let on_its_way = PyErr::take(py);
        if let Err(error) = batches.bind(py).getattr("close").and_then(|close| close.call0()) {
            if !error.is_instance_of::<pyo3::exceptions::PyAttributeError>(py) {
                error.write_unraisable(py, Some(batches.bind(py)));
            }
        }
        drop(batches);
        if let Some(error) = on_its_way {
            error.restore(py);
        }
    });
}

/// The capsule of a table's schema.
pub(super) fn schema_capsule<'py>(py: Python<'py>, fields: &[Field]) -> PyResult<Bound<'py, PyCapsule>> {
    capsule(py, Schema::of(fields))
}

/// The capsule of a batch.
pub(super) fn array_capsule<'py>(py: Python<'py>, batch: &Arc<Batch>) -> PyResult<Bound<'py, PyCapsule>> {
    capsule(py, Array::of(batch))
}

/// The capsule of a stream of batches, which an iterator gives.
pub(super) fn stream_capsule(
    py: Python<'_>,
    fields: Arc<[Field]>,
    batches: Py<PyAny>,
) -> PyResult<Bound<'_, PyCapsule>> {
    capsule(py, Stream::of(fields, batches))
}

// --- What we take ---------------------------------------------------------------------------------------------------

impl Schema {
    /// The one in a capsule.
    pub(super) fn taken(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        taken(capsule)
    }

    pub(super) fn format(&self) -> Result<&str, String> {
        self.text_at(self.format)?.ok_or_else(|| "a schema without a format".to_owned())
    }

    pub(super) fn name(&self) -> Result<&str, String> {
        Ok(self.text_at(self.name)?.unwrap_or_default())
    }

    pub(super) fn children(&self) -> Result<Vec<&Self>, String> {
        let count = count_of(self.n_children, self.children.is_null())?;
        (0..count)
            .map(|at| {
                // SAFETY: there are so many pointers, and they are valid until the release, which takes `self`.
                let child = unsafe { (*self.children.add(at)).as_ref() };
                child
                    .filter(|child| child.release.is_some())
                    .ok_or_else(|| format!("a schema whose child {at} is missing"))
            })
            .collect()
    }

    /// The schema of the values, where this one is that of numbers of them.
    pub(super) fn dictionary(&self) -> Option<&Self> {
        // SAFETY: null or valid until the release, which takes `self`.
        unsafe { self.dictionary.as_ref() }.filter(|values| values.release.is_some())
    }

    /// A value of the metadata.
    pub(super) fn metadata(&self, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let Some(at) = NonNull::new(self.metadata.cast_mut()) else { return Ok(None) };
        let mut metadata = Metadata { at: at.cast() };
        for _ in 0..metadata.number()? {
            let (found, value) = (metadata.bytes()?, metadata.bytes()?);
            if found == key {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// The text at one of its pointers, if it is not null.
    fn text_at(&self, at: *const c_char) -> Result<Option<&str>, String> {
        if at.is_null() {
            return Ok(None);
        }
        // SAFETY: text of the interface ends with NUL, and is valid until the release, which takes `self`.
        let text = unsafe { CStr::from_ptr(at) };
        text.to_str().map(Some).map_err(|_| "text that is not UTF-8".to_owned())
    }
}

/// Metadata that is being read. Its numbers are all that says how far it goes.
struct Metadata {
    at: NonNull<u8>,
}

impl Metadata {
    fn number(&mut self) -> Result<usize, String> {
        let bytes = self.take(4).try_into().unwrap_or_default();
        usize::try_from(i32::from_ne_bytes(bytes)).map_err(|_| "metadata with a negative length".to_owned())
    }

    fn bytes(&mut self) -> Result<Vec<u8>, String> {
        self.number().map(|length| self.take(length))
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        // SAFETY: the interface says that metadata has as many bytes as its numbers say.
        unsafe {
            let bytes = std::slice::from_raw_parts(self.at.as_ptr(), count).to_vec();
            self.at = self.at.add(count);
            bytes
        }
    }
}

fn count_of(count: i64, is_null: bool) -> Result<usize, String> {
    match usize::try_from(count) {
        Ok(count) if count <= CHILDREN_MAX && (count == 0 || !is_null) => Ok(count),
        _ => Err(format!("{count} children, which cannot be")),
    }
}

/// An array of others, or a part of one. All of it lives as long as any part of it.
#[derive(Clone)]
pub(super) struct Node {
    root: Arc<Array>,
    at: NonNull<Array>,
}

// SAFETY: `at` points to the root or to what it owns, which nobody changes.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

impl Node {
    /// The one in a capsule.
    pub(super) fn taken(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        taken(capsule).map(Self::of)
    }

    fn of(array: Array) -> Self {
        let root = Arc::new(array);
        Self { at: NonNull::from(&*root), root }
    }

    fn array(&self) -> &Array {
        // SAFETY: `root` keeps it.
        unsafe { self.at.as_ref() }
    }

    /// How many values there are, and how many stand before them.
    pub(super) fn extent(&self) -> Result<(usize, usize), String> {
        let array = self.array();
        let (length, offset) = (usize::try_from(array.length), usize::try_from(array.offset));
        match (length, offset) {
            (Ok(length), Ok(offset)) if length.checked_add(offset).is_some() => Ok((length, offset)),
            _ => {
                Err(format!("an array of {} values from {} on, which cannot be", array.length, array.offset))
            }
        }
    }

    /// Whether it says that values are NULL.
    pub(super) fn has_nulls(&self) -> bool {
        self.array().null_count > 0
    }

    pub(super) fn children(&self) -> Result<Vec<Self>, String> {
        let array = self.array();
        let count = count_of(array.n_children, array.children.is_null())?;
        (0..count)
            .map(|at| {
                // SAFETY: there are so many pointers, valid until the release of the root.
                let child = NonNull::new(unsafe { *array.children.add(at) });
                child
                    .and_then(|child| self.part(child))
                    .ok_or_else(|| format!("an array whose child {at} is missing"))
            })
            .collect()
    }

    /// The values that the numbers of this array stand for.
    pub(super) fn dictionary(&self) -> Option<Self> {
        NonNull::new(self.array().dictionary).and_then(|at| self.part(at))
    }

    fn part(&self, at: NonNull<Array>) -> Option<Self> {
        let part = Self { root: Arc::clone(&self.root), at };
        part.array().release.is_some().then_some(part)
    }

    /// How many buffers there are.
    pub(super) fn buffer_count(&self) -> Result<usize, String> {
        let array = self.array();
        let count =
            usize::try_from(array.n_buffers).map_err(|_| "a negative number of buffers".to_owned())?;
        if count > 0 && array.buffers.is_null() { Err("no buffers".to_owned()) } else { Ok(count) }
    }

    /// A buffer of so many bytes; `None` where it is left out.
    pub(super) fn buffer(&self, at: usize, bytes: Option<usize>) -> Result<Option<Buffer>, String> {
        let bytes = bytes.filter(|bytes| isize::try_from(*bytes).is_ok());
        let bytes = bytes.ok_or("more bytes than memory can have")?;
        if at >= self.buffer_count()? {
            return Err(format!("no buffer {at}"));
        }
        // SAFETY: there are so many pointers, valid until the release of the root.
        let pointer = unsafe { *self.array().buffers.add(at) };
        let buffer =
            |at: NonNull<c_void>| Buffer { _root: Arc::clone(&self.root), at: at.cast(), length: bytes };
        Ok(NonNull::new(pointer.cast_mut()).map(buffer))
    }
}

/// A buffer of others.
pub(super) struct Buffer {
    _root: Arc<Array>,
    at: NonNull<u8>,
    length: usize,
}

// SAFETY: nobody changes it before the release of its root.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the interface says that a buffer has the bytes that its array's length needs; the root keeps them.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.length) }
    }
}

impl Stream {
    /// The one in a capsule.
    pub(super) fn taken(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        taken(capsule)
    }

    /// The schema of all that comes.
    pub(super) fn schema(&mut self, py: Python<'_>) -> PyResult<Schema> {
        let mut schema = Schema::released();
        let code = py.detach(|| {
            let get_schema = self.get_schema?;
            // SAFETY: the stream is not released, and `schema` has room.
            Some(unsafe { get_schema(self, &raw mut schema) })
        });
        self.answered(code)?;
        checked(schema).map_err(|problem| PyValueError::new_err(format!("the stream gave {problem}")))
    }

    /// The next array; `None` at the end.
    pub(super) fn next(&mut self, py: Python<'_>) -> PyResult<Option<Node>> {
        let mut array = Array::released();
        let code = py.detach(|| {
            let get_next = self.get_next?;
            // SAFETY: as above.
            Some(unsafe { get_next(self, &raw mut array) })
        });
        self.answered(code)?;
        Ok(array.release.is_some().then(|| Node::of(array)))
    }

    fn answered(&mut self, code: Option<c_int>) -> PyResult<()> {
        match code {
            Some(0) => Ok(()),
            None => Err(PyTypeError::new_err("the stream lacks a function that it has to have")),
            Some(code) => {
                let said = self.get_last_error.map(|get_last_error| {
                    // SAFETY: the last call has failed; the text is valid until the next one.
                    let said = unsafe { get_last_error(self) };
                    // SAFETY: as `Schema::text_at`, but it may be no UTF-8.
                    (!said.is_null()).then(|| unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned())
                });
                let said =
                    said.flatten().unwrap_or_else(|| "the stream does not say why it failed".to_owned());
                Err(if code == EINVAL {
                    PyValueError::new_err(said)
                } else {
                    PyOSError::new_err((code, said))
                })
            }
        }
    }
}
