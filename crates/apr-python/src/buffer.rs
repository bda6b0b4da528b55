//! Memory that belongs to Python objects. One of two modules of the crate with `unsafe`; `arrow` is the other.
//!
//! The buffer protocol joined Python's stable interface in 3.11. Python 3.10 exports the same two functions with the same
//! structure, so they are declared here instead of taken from a binding that leaves them out.

#![allow(unsafe_code)]

use alloc::boxed::Box;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::slice;
use std::io::{self, Write};

use pyo3::exceptions::{PyBufferError, PyMemoryError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// `Py_buffer`.
#[repr(C)]
struct View {
    buf: *mut c_void,
    obj: *mut ffi::PyObject,
    len: isize,
    itemsize: isize,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    suboffsets: *mut isize,
    internal: *mut c_void,
}

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut View, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut View);
}

/// What is asked of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    /// Bytes without gaps.
    Bytes,
    /// The same, to write to.
    WritableBytes,
    /// Elements with their format, shape and strides.
    Elements,
}

impl Wanted {
    /// `PyBUF_SIMPLE`, `PyBUF_WRITABLE`, `PyBUF_RECORDS_RO`.
    const fn flags(self) -> c_int {
        match self {
            Self::Bytes => 0,
            Self::WritableBytes => 1,
            Self::Elements => 0x10 | 0x8 | 0x4,
        }
    }
}

/// The memory of a Python object, which cannot be freed or resized while this exists.
pub(crate) struct Buffer {
    /// In a box: exporters may point from the structure into itself.
    view: Box<View>,
}

// SAFETY: the structure is a reference to an object plus addresses; releasing it attaches to the interpreter first.
unsafe impl Send for Buffer {}
// SAFETY: shared use only reads the structure and the memory it describes.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// The object's memory; Python's error if it has none of that kind.
    pub(crate) fn of(object: &Bound<'_, PyAny>, wanted: Wanted) -> PyResult<Self> {
        let mut view = Box::new(View {
            buf: ptr::null_mut(),
            obj: ptr::null_mut(),
            len: 0,
            itemsize: 0,
            readonly: 0,
            ndim: 0,
            format: ptr::null_mut(),
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            suboffsets: ptr::null_mut(),
            internal: ptr::null_mut(),
        });
        // SAFETY: the object is alive, the thread attached, and `view` a valid place for the result that does not move.
        let status = unsafe { PyObject_GetBuffer(object.as_ptr(), &raw mut *view, wanted.flags()) };
        if status != 0 {
            // Nothing was acquired, so nothing is released.
            return Err(PyErr::take(object.py())
                .unwrap_or_else(|| PyBufferError::new_err("the object gave no buffer and no reason")));
        }
        Ok(Self { view })
    }

    /// The bytes. Those asked for as [`Wanted::Elements`] must be [contiguous](Self::is_contiguous).
    ///
    /// Python cannot promise that the memory is not written meanwhile: a caller that changes an array while it is saved gets a file with
    /// some of the changes.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.view.len <= 0 || self.view.buf.is_null() {
            return &[];
        }
        // SAFETY: the exporter promises `len` bytes at `buf` until the release, without gaps for the requests that are made.
        unsafe { slice::from_raw_parts(self.view.buf.cast(), self.view.len.unsigned_abs()) }
    }

    /// The bytes of a buffer asked for as [`Wanted::WritableBytes`].
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        if self.view.len <= 0 || self.view.buf.is_null() || self.view.readonly != 0 {
            return &mut [];
        }
        // SAFETY: as for `bytes`; the exporter granted writing, and callers pass memory that nothing else reads or writes meanwhile: new
        // objects, or a buffer of the ring that the thread has for itself.
        unsafe { slice::from_raw_parts_mut(self.view.buf.cast(), self.view.len.unsigned_abs()) }
    }

    /// Format of an element in the letters of Python's `struct`.
    pub(crate) fn format(&self) -> Option<&str> {
        if self.view.format.is_null() {
            return None;
        }
        // SAFETY: a format is a string that ends with a zero and lives until the release.
        unsafe { CStr::from_ptr(self.view.format) }.to_str().ok()
    }

    /// Size of an element in bytes.
    pub(crate) fn item_len(&self) -> usize {
        self.view.itemsize.unsigned_abs()
    }

    /// The dimensions of a buffer asked for as [`Wanted::Elements`].
    pub(crate) fn shape(&self) -> impl ExactSizeIterator<Item = usize> {
        self.dims(self.view.shape).iter().map(|dim| dim.unsigned_abs())
    }

    /// Whether the elements follow each other in row-major order without gaps.
    pub(crate) fn is_contiguous(&self) -> bool {
        if self.view.strides.is_null() || self.view.len == 0 {
            return true;
        }
        let mut expected = self.view.itemsize;
        self.dims(self.view.shape).iter().zip(self.dims(self.view.strides)).rev().all(|(&dim, &stride)| {
            let fits = dim == 1 || stride == expected;
            expected = expected.wrapping_mul(dim);
            fits
        })
    }

    fn dims(&self, dims: *const isize) -> &[isize] {
        let rank = usize::try_from(self.view.ndim).unwrap_or(0);
        if dims.is_null() || rank == 0 {
            return &[];
        }
        // SAFETY: a shape or strides that are there have `ndim` entries until the release.
        unsafe { slice::from_raw_parts(dims, rank) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        Python::attach(|_| {
            // SAFETY: acquired by `of`, released once, with the thread attached.
            unsafe { PyBuffer_Release(&raw mut *self.view) }
        });
    }
}

/// The memory that a caller of [`TensorSpec`](crate::tensor_spec::TensorSpec) names by its address.
///
/// The caller promises, in that class's documentation, that `len` bytes are there and stay until the call ends; Python has no
/// word for such a promise. A null address means no bytes.
pub(crate) fn promised<'a>(address: u64, len: usize) -> Option<&'a [u8]> {
    if len == 0 {
        return Some(&[]);
    }
    let address = usize::try_from(address).ok()?;
    if address == 0 || isize::try_from(len).is_err() || address.checked_add(len).is_none() {
        return None;
    }
    // SAFETY: the caller's promise; what could be checked is checked above.
    Some(unsafe { slice::from_raw_parts(ptr::with_exposed_provenance(address), len) })
}

/// A `bytes` object of `len` bytes that `fill` writes, every one of them, without zeros being written first.
pub(crate) fn new_bytes<'py>(
    py: Python<'py>,
    len: u64,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> PyResult<Bound<'py, PyBytes>> {
    let too_long = || PyMemoryError::new_err(format!("{len} bytes are more than a bytes object can hold"));
    let wanted = ffi::Py_ssize_t::try_from(len).map_err(|_| too_long())?;
    // SAFETY: without a source the new object's bytes are left for the caller to write; null means an exception is set.
    let object =
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyBytes_FromStringAndSize(ptr::null(), wanted)) }?;
    // SAFETY: the object is a new `bytes` of `wanted` bytes without other references.
    let spare = unsafe {
        let start = ffi::PyBytes_AsString(object.as_ptr());
        slice::from_raw_parts_mut(start.cast::<MaybeUninit<u8>>(), wanted.unsigned_abs())
    };
    let mut writer = Unwritten { left: spare };
    fill(&mut writer)?;
    if !writer.left.is_empty() {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(object.cast_into::<PyBytes>()?)
}

/// Memory that was never written.
struct Unwritten<'a> {
    left: &'a mut [MaybeUninit<u8>],
}

impl Write for Unwritten<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.left.len());
        let (now, later) = core::mem::take(&mut self.left).split_at_mut(count);
        for (slot, &byte) in now.iter_mut().zip(bytes) {
            slot.write(byte);
        }
        self.left = later;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
