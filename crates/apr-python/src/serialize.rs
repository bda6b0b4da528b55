//! Writes tensors to bytes and files.

use alloc::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use st_core::{Layout, Order, Planned, ReadOptions, WriteOptions};
use st_mmap::{SafeTensorsFile, Survives};

use crate::buffer::new_bytes;
use crate::error::{of_file, of_format};
use crate::tensor::{Tensor, arrays_of};
use crate::tensor_spec::TensorSpec;
use crate::texts::Texts;

/// What failed, in the words of the official package.
pub(crate) const PREFIX: &str = "Error while serializing";

/// Less than this is written before another thread could make use of the interpreter.
const WORTH_RELEASING: u64 = 1 << 18;

type Metadata = Option<Texts>;

/// The bytes of a safetensors file with these tensors.
///
/// tensor_dict: names and TensorSpecs, whose memory has to stay alive and unchanged until this returns.
/// metadata: names and texts for the header.
///
/// Returns bytes: equal input gives equal bytes. Raises SafetensorError.
#[pyfunction]
#[pyo3(signature = (tensor_dict, metadata=None))]
pub(crate) fn serialize<'py>(
    py: Python<'py>,
    tensor_dict: BTreeMap<String, Py<TensorSpec>>,
    metadata: Metadata,
) -> PyResult<Bound<'py, PyBytes>> {
    Tensors::described(&tensor_dict)?.to_bytes(py, metadata)
}

/// Writes a safetensors file with these tensors, replacing an old one in one step: whatever happens, the name leads to the old
/// file or to the new one.
///
/// tensor_dict, metadata: as for serialize.
/// filename: str or os.PathLike; symbolic links are followed. A new file gets the rights that the umask leaves, an old one
/// keeps its own.
/// fsync: wait until the medium has it, so that it survives a power cut.
///
/// Raises SafetensorError, OSError.
#[pyfunction]
#[pyo3(signature = (tensor_dict, filename, metadata=None, *, fsync=false))]
pub(crate) fn serialize_file(
    py: Python<'_>,
    tensor_dict: BTreeMap<String, Py<TensorSpec>>,
    filename: PathBuf,
    metadata: Metadata,
    fsync: bool,
) -> PyResult<()> {
    Tensors::described(&tensor_dict)?.to_file(py, filename, metadata, fsync)
}

/// The bytes of a safetensors file with these arrays: numpy's, or anything else with the buffer protocol. Strides and byte order
/// do not matter, the values count.
#[pyfunction]
#[pyo3(signature = (tensor_dict, metadata=None))]
pub(crate) fn save_arrays<'py>(
    py: Python<'py>,
    tensor_dict: &Bound<'py, PyAny>,
    metadata: Metadata,
) -> PyResult<Bound<'py, PyBytes>> {
    let arrays = arrays_of(tensor_dict)?;
    Tensors::of_arrays(&arrays)?.to_bytes(py, metadata)
}

/// Writes a safetensors file with these arrays, replacing an old one in one step. As save_arrays and serialize_file.
#[pyfunction]
#[pyo3(signature = (tensor_dict, filename, metadata=None, *, fsync=false))]
pub(crate) fn save_arrays_file(
    py: Python<'_>,
    tensor_dict: &Bound<'_, PyAny>,
    filename: PathBuf,
    metadata: Metadata,
    fsync: bool,
) -> PyResult<()> {
    let arrays = arrays_of(tensor_dict)?;
    Tensors::of_arrays(&arrays)?.to_file(py, filename, metadata, fsync)
}

/// Replaces the metadata of a safetensors file; None removes it. Only the header is written where the new text fits into the
/// old one's place, otherwise the file is copied and replaced in one step.
///
/// Raises SafetensorError, OSError.
#[pyfunction]
#[pyo3(signature = (filename, metadata))]
pub(crate) fn set_metadata(py: Python<'_>, filename: PathBuf, metadata: Metadata) -> PyResult<()> {
    let metadata = metadata.map(|texts| texts.0);
    py.detach(|| match st_mmap::set_metadata(&filename, metadata.as_ref()) {
        Err(error) if lacks_room(&error) => copy_with(&filename, metadata),
        done => done,
    })
    .map_err(|error| of_file(py, "Error while writing metadata", &error))
}

fn lacks_room(error: &st_mmap::Error) -> bool {
    use st_core::ErrorKind::NoHeaderRoom;
    matches!(error.kind(), st_mmap::ErrorKind::Format(error) if matches!(error.kind(), NoHeaderRoom { .. }))
}

/// Writes the tensors of a file under new metadata in its place.
fn copy_with(
    path: &std::path::Path,
    metadata: Option<BTreeMap<String, String>>,
) -> Result<(), st_mmap::Error> {
    const PIECE: u64 = 1 << 20;
    let file = SafeTensorsFile::open_with(path, &ReadOptions::STRICT)?;
    let infos: Vec<_> = file.header().iter().collect();
    let specs = infos.iter().map(|info| st_core::TensorSpec {
        name: info.name(),
        dtype: info.dtype(),
        shape: info.shape(),
    });
    let options = WriteOptions { metadata, order: Order::AsGiven, ..WriteOptions::default() };
    let layout = Layout::new(specs, &options)?;
    let mut piece = Vec::new();
    st_mmap::save_layout(path, &layout, |planned, out| {
        let mut start = 0;
        while start < planned.byte_len {
            let end = planned.byte_len.min(start + PIECE);
            piece.resize((end - start) as usize, 0);
            file.read_range(infos[planned.input_idx].name(), start..end, &mut piece)
                .map_err(io::Error::other)?;
            out.write_all(&piece)?;
            start = end;
        }
        Ok(())
    })
}

struct Tensors<'a>(Vec<Tensor<'a>>);

impl<'a> Tensors<'a> {
    fn described(specs: &'a BTreeMap<String, Py<TensorSpec>>) -> PyResult<Self> {
        Ok(Self(specs.iter().map(|(name, spec)| Tensor::of_spec(name, spec.get())).collect::<PyResult<_>>()?))
    }

    fn of_arrays(arrays: &'a [(String, Bound<'_, PyAny>)]) -> PyResult<Self> {
        Ok(Self(arrays.iter().map(|(name, array)| Tensor::of_array(name, array)).collect::<PyResult<_>>()?))
    }

    fn layout(&self, py: Python<'_>, metadata: Metadata) -> PyResult<Layout> {
        let specs = self.0.iter().map(Tensor::spec);
        let options = WriteOptions { metadata: metadata.map(|texts| texts.0), ..WriteOptions::default() };
        Layout::new(specs, &options).map_err(|error| of_format(py, PREFIX, &error))
    }

    fn to_bytes<'py>(&self, py: Python<'py>, metadata: Metadata) -> PyResult<Bound<'py, PyBytes>> {
        let layout = self.layout(py, metadata)?;
        let mut failed = None;
        let made = new_bytes(py, layout.file_len(), |out| {
            let mut write = || layout.write_streamed(out, |planned, sink| self.write(planned, sink));
            let written = if layout.file_len() < WORTH_RELEASING { write() } else { py.detach(write) };
            written.map_err(|error| match error.downcast::<st_core::Error>() {
                Ok(error) => {
                    failed = Some(error);
                    io::ErrorKind::InvalidInput.into()
                }
                Err(error) => error,
            })
        });
        match failed {
            Some(error) => Err(of_format(py, PREFIX, &error)),
            None => made,
        }
    }

    fn to_file(&self, py: Python<'_>, path: PathBuf, metadata: Metadata, fsync: bool) -> PyResult<()> {
        let layout = self.layout(py, metadata)?;
        let survives = if fsync { Survives::PowerCut } else { Survives::Process };
        py.detach(|| {
            st_mmap::save_layout_surviving(path, &layout, survives, |planned, out| self.write(planned, out))
        })
        .map_err(|error| of_file(py, PREFIX, &error))
    }

    fn write(&self, planned: &Planned, out: &mut dyn Write) -> io::Result<()> {
        self.0[planned.input_idx].with_bytes(|bytes| out.write_all(bytes))?
    }
}
