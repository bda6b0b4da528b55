//! Sealed files: tensors are decrypted and verified on access.

use std::io::Write as _;
use std::path::PathBuf;

use apr_sealed::{Part, PartKind, SealedLimits, SealedReader};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyTuple};
use read_at::AnySource;
use st_core::Dtype;

use super::keys::{Keys, Opening, SignedBy};
use super::refusal::Refusal;
use super::source::open;
use crate::buffer::{Buffer, Wanted};
use crate::filling::{Stop, fill};
use crate::maker::unpacked;
use crate::numpy::Numpy;
use crate::packed::is_packed;
use crate::range_file::{Filename, Location};

/// An open sealed file: apr.open_sealed makes it. Its header was verified; a tensor is read, decrypted and verified when it is
/// accessed, and nothing of a modified tensor is returned. Any number of threads may read at once.
///
/// `reader[name]` is a new numpy array, of the tensor's type and shape; of a type that arrays do not have, such as the blocks of
/// a GGUF file, its bytes.
#[pyclass(frozen, mapping, module = "apr", name = "SealedFile")]
pub struct SealedFile {
    reader: SealedReader<'static, AnySource>,
    signer: Option<SignedBy>,
    path: PathBuf,
}

/// Opens a sealed file, which `apr seal` makes of a file of any format. The signature of its header is verified before
/// anything is decrypted.
///
/// path: str or os.PathLike, or a URL. Of a URL the header is read now, and the chunks of a tensor when it is accessed. fs, allow_http: as
/// for `apr.open`. The keys are those of apr.load: password or identity for an encrypted file, and of a signed one
/// whose signature is accepted, or any_signer=True.
///
/// Returns SealedFile. Raises AprError ("ac-encrypted", "ac-decryption", "ac-signed", "ac-signature", ...), OSError.
#[pyfunction]
#[pyo3(signature = (
    path, *, password=None, identity=None, key_password=None, verify_key=None, trusted_keys=None, any_signer=false,
    fs=None, allow_http=false
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn open_sealed<'py>(
    py: Python<'py>,
    path: Filename<'py>,
    password: Option<&Bound<'_, PyAny>>,
    identity: Option<&Bound<'_, PyAny>>,
    key_password: Option<&Bound<'_, PyAny>>,
    verify_key: Option<&Bound<'_, PyAny>>,
    trusted_keys: Option<PathBuf>,
    any_signer: bool,
    fs: Option<&Bound<'py, PyAny>>,
    allow_http: bool,
) -> PyResult<SealedFile> {
    let opening = Opening { password, identity, key_password, verify_key, trusted_keys, any_signer };
    let keys = Keys::new(py, opening)?;
    let (source, path) = match Location::of(py, path, fs, allow_http)? {
        Location::Path(path) => (None, path),
        Location::Ranges(file) => (Some(file.get().source()), file.get().path().to_path_buf()),
    };
    let open = || {
        let source = match source {
            Some(source) => AnySource::Shared(source),
            None => open(&path)?.into(),
        };
        let reader = SealedReader::open(source, &keys.access(), &SealedLimits::default())?;
        let signer = reader.signer().map(SignedBy::from);
        Ok((reader.forget_names(), signer))
    };
    let opened: Result<_, Refusal> = py.detach(open);
    let (reader, signer) = opened.map_err(|refusal| refusal.raise(py, Some(&path)))?;
    Ok(SealedFile { reader, signer, path })
}

/// Name, element type, shape, first byte and end of a tensor in what a file is read from.
type Place = (String, String, Vec<u64>, u64, u64);

impl SealedFile {
    fn tensors(&self) -> impl Iterator<Item = &Part> {
        self.reader.parts().iter().filter(|part| part.kind() == PartKind::Tensor)
    }

    fn find(&self, name: &str) -> PyResult<(usize, &Part)> {
        let found = self.reader.find(name).and_then(|idx| Some((idx, self.reader.parts().get(idx)?)));
        found.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    fn raise(&self, py: Python<'_>, error: apr_sealed::Error) -> PyErr {
        Refusal::from(error).raise(py, Some(&self.path))
    }
}

#[pymethods]
impl SealedFile {
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let (idx, part) = self.find(name)?;
        let numpy = Numpy::get(py)?;
        let array = numpy.empty(py, part.len())?;
        let mut buffer = Buffer::of(&array, Wanted::WritableBytes)?;
        py.detach(|| self.reader.read_part(idx, 0, buffer.bytes_mut()))
            .map_err(|error| self.raise(py, error))?;
        let shape: Option<Vec<usize>> = part.shape().iter().map(|&dim| usize::try_from(dim).ok()).collect();
        // What the directory says of a type may be any word.
        let (Some(dtype), Some(shape)) = (Dtype::element_from_name(part.dtype()), shape) else {
            return Ok(array);
        };
        match dtype.byte_len(&shape) {
            Ok(len) if len == part.len() && is_packed(dtype) => unpacked(py, dtype, &shape, buffer.bytes()),
            Ok(len) if len == part.len() => numpy.view(dtype, &shape, &array, 0),
            _ => Ok(array),
        }
    }

    fn __len__(&self) -> usize {
        self.tensors().count()
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        name.extract::<String>().is_ok_and(|name| self.reader.find(&name).is_some())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)?.try_iter()
    }

    /// The names of the tensors, in file order.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.tensors().map(Part::name).collect::<Vec<_>>())
    }

    /// {"dtype": str, "shape": tuple, "nbytes": int} of a tensor, or of all of them by name. Raises KeyError.
    #[pyo3(signature = (name=None))]
    fn info<'py>(&self, py: Python<'py>, name: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
        if let Some(name) = name {
            return described(py, self.find(name)?.1);
        }
        let dict = PyDict::new(py);
        for part in self.tensors() {
            dict.set_item(part.name(), described(py, part)?)?;
        }
        Ok(dict)
    }

    /// What anyone can read, texts by name; authentic.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.reader.public_metadata().into_pyobject(py)?.into_any())
    }

    /// What only those can read who can open the file, texts by name; authentic.
    #[getter]
    fn private_metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.reader.private_metadata().into_pyobject(py)?.into_any())
    }

    /// Who signed the file, if it is signed: {"name": str or None, "fingerprint": str, "trusted": bool}.
    #[getter]
    fn signer<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.signer.as_ref().map(|signer| signer.to_dict(py)).transpose()
    }

    /// The tensors in file order as (name, dtype, shape, begin, end), whose bytes `_read_at` reads.
    fn _places(&self) -> Vec<Place> {
        let place = |part: &Part| {
            let (begin, shape) = (part.offset(), part.shape().to_vec());
            (part.name().to_owned(), part.dtype().to_owned(), shape, begin, begin + part.len())
        };
        self.tensors().map(place).collect()
    }

    /// Fills a writable buffer, which no other thread uses, with the bytes from `offset` on, decrypted and verified.
    #[pyo3(signature = (offset, buffer, stop=None))]
    fn _read_at(&self, offset: u64, buffer: &Bound<'_, PyAny>, stop: Option<&Stop>) -> PyResult<()> {
        let raise = |error| self.raise(buffer.py(), error);
        fill(buffer, stop, |out| self.reader.read_payload(offset, out), raise)
    }

    /// Says what will be read, from its beginning to its end.
    fn _will_read(&self, begin: u64, end: u64) {
        self.reader.will_read_payload(begin..end);
    }

    /// Whether several threads can read at once.
    #[getter]
    fn _is_local(&self) -> bool {
        matches!(self.reader.source(), AnySource::File(_))
    }

    /// Reads, decrypts and verifies everything there is. Raises AprError.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.reader.verify_all()).map_err(|error| self.raise(py, error))
    }

    /// Writes the file that was sealed, byte for byte, replacing an old file in one step; on any error the old file stays.
    fn restore(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let write = || -> Result<(), Refusal> {
            let mut replacement = durable_file::Replacement::create(&path)?;
            self.reader.restore(&mut replacement)?;
            replacement.flush().map_err(Refusal::Io)?;
            Ok(replacement.commit()?)
        };
        py.detach(write).map_err(|refusal| refusal.raise(py, Some(&self.path)))
    }

    fn __repr__(&self) -> String {
        format!("<apr.SealedFile {}, {} tensors>", self.path.display(), self.__len__())
    }
}

fn described<'py>(py: Python<'py>, part: &Part) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("dtype", part.dtype())?;
    dict.set_item("shape", PyTuple::new(py, part.shape())?)?;
    dict.set_item("nbytes", part.len())?;
    Ok(dict)
}
