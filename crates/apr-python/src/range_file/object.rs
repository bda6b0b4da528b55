//! Objects of Python that read ranges, as `apr/_stores.py` presents them.

use alloc::sync::Arc;

use apr_remote::{Buffered, Error, ErrorKind};
use pyo3::intern;
use pyo3::prelude::*;
use read_at::{ReadAt, SharedSource, check_range};

use crate::buffer::{Buffer, Wanted};

/// Longest range that is asked for: its bytes are in memory twice.
const PIECE_LEN: usize = 16 << 20;

/// A file of such an object.
#[derive(Debug)]
pub(super) struct ObjectFile {
    object: Py<PyAny>,
    len: u64,
}

impl ObjectFile {
    /// Reads the beginning.
    ///
    /// # Errors
    ///
    /// What Python raises.
    pub(super) fn open(object: &Py<PyAny>) -> Result<Arc<dyn SharedSource>, read_at::Error> {
        let (object, len, name) = Python::attach(|py| {
            let len = object.getattr(py, "size")?.extract(py)?;
            let name: String = object.getattr(py, "path")?.extract(py)?;
            PyResult::Ok((object.clone_ref(py), len, name))
        })
        .map_err(read_at::Error::from_source)?;
        Ok(Arc::new(Buffered::open(Self { object, len }, &name)?))
    }

    fn fill(&self, py: Python<'_>, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        let raised = |error: PyErr| read_at::Error::from_source(error);
        let mut at = offset;
        for out in out.chunks_mut(PIECE_LEN) {
            let end = at + out.len() as u64;
            let bytes = self.object.bind(py).call_method1(intern!(py, "read"), (at, end)).map_err(raised)?;
            let bytes = Buffer::of(&bytes, Wanted::Bytes).map_err(raised)?;
            if bytes.bytes().len() != out.len() {
                let problem = "its length is not that of the range";
                return Err(Error::from(ErrorKind::Range { problem }).into());
            }
            out.copy_from_slice(bytes.bytes());
            at = end;
        }
        // After reading: what was read of another version is refused.
        let is_same = self.object.bind(py).call_method0(intern!(py, "is_same")).and_then(|is| is.is_truthy());
        match is_same.map_err(raised)? {
            true => Ok(()),
            false => Err(Error::from(ErrorKind::Changed).into()),
        }
    }
}

impl ReadAt for ObjectFile {
    fn total_len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        check_range(offset, out.len(), self.len)?;
        if out.is_empty() {
            return Ok(());
        }
        Python::attach(|py| self.fill(py, offset, out))
    }
}
