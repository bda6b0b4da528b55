//! Files that are not on this machine: at URLs, or behind an object of Python that reads ranges.

mod object;
mod wait;

use alloc::sync::Arc;
use core::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, PoisonError};

use apr_remote::{Client, Folder, Options, Place, PlainHttp};
use model_file::{FileKind, ModelFormat};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use read_at::{AnySource, ReadAt as _, SharedSource};
use st_core::ReadOptions;
use st_mmap::{ShardedSafeTensors, Shards};

use self::object::ObjectFile;
use self::wait::{Waiting, elsewhere};
use crate::apr_files::Refusal;
use crate::buffer::{Buffer, Wanted};
use crate::error::of_file;
use crate::foreign::Refused;
use crate::numpy::Numpy;
use crate::sharded::{PREFIX, check_whole};

/// A file at a URL, or of an object that reads ranges. Its beginning was read; of the rest, what is asked for.
#[pyclass(frozen, module = "apr._native")]
pub struct RangeFile {
    source: Arc<dyn SharedSource>,
    /// For messages: a URL has no query here.
    name: PathBuf,
    kind: FileKind,
    folder: Arc<Siblings>,
}

/// What opens the files in the same folder.
#[derive(Debug)]
enum Siblings {
    /// In the process of this number.
    Remote(Arc<Folder>, u32),
    /// The object of the file itself, and the files that were opened.
    Object(Py<PyAny>, Mutex<Vec<(String, Arc<dyn SharedSource>)>>),
}

/// Where a function of Python is told to find a file.
pub(crate) enum Location<'py> {
    /// A file of this machine.
    Path(PathBuf),
    Ranges(Bound<'py, RangeFile>),
}

/// The argument of such a function.
pub(crate) enum Filename<'py> {
    Path(PathBuf),
    Ranges(Bound<'py, RangeFile>),
}

impl<'py> FromPyObject<'_, 'py> for Filename<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<RangeFile>() {
            Ok(file) => Ok(Self::Ranges(file.to_owned())),
            Err(_) => object.extract().map(Self::Path),
        }
    }
}

impl<'py> Location<'py> {
    /// Opens a URL, and with `fs` any path of it; a path is left to its caller.
    pub(crate) fn of(
        py: Python<'py>,
        file: Filename<'py>,
        fs: Option<&Bound<'py, PyAny>>,
        allow_http: bool,
    ) -> PyResult<Self> {
        let path = match file {
            Filename::Ranges(file) => return Ok(Self::Ranges(file)),
            Filename::Path(path) => path,
        };
        let opened = match fs {
            Some(fs) => RangeFile::of_object(py, &path, fs)?,
            None => match path.to_str().and_then(Place::parse) {
                Some(place) => RangeFile::of_url(py, &path, place, allow_http)?,
                None => return Ok(Self::Path(path)),
            },
        };
        Ok(Self::Ranges(Bound::new(py, opened)?))
    }
}

impl RangeFile {
    fn of_url(
        py: Python<'_>,
        path: &Path,
        place: Result<Place, apr_remote::Error>,
        allow_http: bool,
    ) -> PyResult<Self> {
        let shown = PathBuf::from(without_secrets(&path.to_string_lossy()));
        let raise = |error: &(dyn StdError + 'static)| of_source(py, error, Some(&shown));
        let place = place.map_err(|error| raise(&error))?;
        let opened = elsewhere(move || {
            let mut options = Options::from_environment(|name| std::env::var_os(name))?;
            if allow_http {
                options.plain_http = PlainHttp::Anywhere;
            }
            let client = Client::new(options)?;
            let file = Arc::new(client.open_model(&place)?);
            // The directory of an archive is at its end.
            let kind = FileKind::of_source(&file);
            Ok::<_, apr_remote::Error>((client, file, kind))
        });
        let opened = opened.map_err(|error| raise(&error))?;
        let (client, file, kind) = opened.map_err(|error| raise(&error))?;
        let kind = kind.map_err(|error| raise(&error))?;
        let (name, folder) = (file.url().to_string().into(), Folder::of(client, &file));
        Ok(Self {
            source: Arc::new(Waiting::new(file)),
            name,
            kind,
            folder: Arc::new(Siblings::Remote(Arc::new(folder), process::id())),
        })
    }

    fn of_object(py: Python<'_>, path: &Path, fs: &Bound<'_, PyAny>) -> PyResult<Self> {
        let opened = py.import("apr._stores")?.getattr("opened")?.call1((fs, path.as_os_str()))?;
        let raise = |error: read_at::Error| of_source(py, &error, Some(path));
        let opened = opened.unbind();
        let source = ObjectFile::open(&opened).map_err(raise)?;
        let kind = py.detach(|| FileKind::of_source(&source)).map_err(raise)?;
        let folder = Siblings::Object(opened, Mutex::default());
        Ok(Self { source, name: path.to_path_buf(), kind, folder: Arc::new(folder) })
    }

    /// The bytes, for readers of this crate.
    pub(crate) fn source(&self) -> Arc<dyn SharedSource> {
        Arc::clone(&self.source)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.name
    }

    pub(crate) const fn kind(&self) -> FileKind {
        self.kind
    }

    /// What it is, for a refusal.
    pub(crate) fn refused(&self) -> Refused<'_> {
        Refused::Known(self.kind, &self.name)
    }

    /// What opens the files beside it.
    pub(crate) fn shards_beside(&self) -> Box<dyn Shards> {
        Box::new(Beside(Arc::clone(&self.folder)))
    }

    fn is_index(&self) -> bool {
        let is_json = self.name.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        is_json && self.kind.expected() == ModelFormat::SafeTensors
    }
}

impl Siblings {
    fn open(&self, name: &str) -> Result<Arc<dyn SharedSource>, read_at::Error> {
        let (object, known) = match self {
            Self::Remote(folder, process) => {
                wait::refuse_forked(*process)?;
                let (folder, name) = (Arc::clone(folder), name.to_owned());
                let file = elsewhere(move || folder.file(&name))??;
                return Ok(Arc::new(Waiting::new(file)));
            }
            Self::Object(object, known) => (object, known),
        };
        // Not locked while Python runs.
        let known = || known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, source)) = known().iter().find(|(opened, _)| opened == name) {
            return Ok(Arc::clone(source));
        }
        let beside = Python::attach(|py| object.call_method1(py, "beside", (name,)));
        let source = ObjectFile::open(&beside.map_err(read_at::Error::from_source)?)?;
        known().push((name.to_owned(), Arc::clone(&source)));
        Ok(source)
    }
}

#[derive(Debug)]
struct Beside(Arc<Siblings>);

impl Shards for Beside {
    fn open(&self, name: &str) -> Result<AnySource, read_at::Error> {
        Ok(AnySource::Shared(self.0.open(name)?))
    }
}

#[pymethods]
impl RangeFile {
    /// Its URL without the query, or its path.
    #[getter]
    fn name(&self) -> String {
        self.name.display().to_string()
    }

    /// The format of a model in one file; none of a sealed file, and of an index.
    #[getter]
    fn format(&self) -> Option<&'static str> {
        self.kind.model().filter(|format| *format != ModelFormat::Sealed).map(ModelFormat::name)
    }

    /// Length in bytes.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.source.total_len()
    }

    /// `len` bytes from `offset` on, as an array of uint8 that is read-only. Raises AprError, and what the object raises.
    fn read<'py>(&self, py: Python<'py>, offset: u64, len: u64) -> PyResult<Bound<'py, PyAny>> {
        let array = Numpy::get(py)?.empty(py, len)?;
        let mut buffer = Buffer::of(&array, Wanted::WritableBytes)?;
        let read = py.detach(|| self.source.read_exact_at(offset, buffer.bytes_mut()));
        read.map_err(|error| of_source(py, &error, Some(&self.name)))?;
        drop(buffer);
        array.call_method1("setflags", (false,))?;
        Ok(array)
    }

    /// The shard of each tensor, by the index that this file is; None if it is none. check: open every shard and compare it with the
    /// index. Raises SafetensorError, AprError, and what the object raises.
    #[pyo3(signature = (check=true))]
    fn shards<'py>(&self, py: Python<'py>, check: bool) -> PyResult<Option<Bound<'py, PyDict>>> {
        if !self.is_index() {
            return Ok(None);
        }
        let beside = self.shards_beside();
        let open = || ShardedSafeTensors::from_index(&self.source, &self.name, beside, &ReadOptions::STRICT);
        let set = py.detach(open).map_err(|error| of_file(py, PREFIX, &error))?;
        if check {
            if let Siblings::Remote(folder, _) = &*self.folder {
                let folder = Arc::clone(folder);
                let names: Vec<_> = set.shard_names().map(str::to_owned).collect();
                elsewhere(move || folder.prefetch(&names))
                    .map_err(|error| of_source(py, &error, Some(&self.name)))?;
            }
            let problems = py.detach(|| set.check()).map_err(|error| of_file(py, PREFIX, &error))?;
            check_whole(&set, &problems)?;
        }
        let files = PyDict::new(py);
        for (tensor, shard) in set.index().into_iter().flat_map(st_core::ShardIndex::weight_map) {
            files.set_item(tensor, shard)?;
        }
        Ok(Some(files))
    }

    /// The file of this name in the same folder. Raises AprError, and what the object raises.
    fn beside(&self, py: Python<'_>, name: &str) -> PyResult<Self> {
        // With a slash on every system.
        let folder = self.name();
        let folder = folder.rfind('/').map_or("", |end| &folder[..=end]);
        let path = PathBuf::from(format!("{folder}{name}"));
        let raise = |error: read_at::Error| of_source(py, &error, Some(&path));
        let source = py.detach(|| self.folder.open(name)).map_err(raise)?;
        let kind = py.detach(|| FileKind::of_source(&source)).map_err(raise)?;
        Ok(Self { source, kind, folder: Arc::clone(&self.folder), name: path })
    }
}

/// A URL for messages: its query may be a signature, and a URL with a password is refused by its name.
fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) if !scheme.eq_ignore_ascii_case("hf") => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            format!("{scheme}://{}{path}", host.rsplit('@').next().unwrap_or_default())
        }
        _ => url.to_owned(),
    }
}

/// A file at a URL, or with `fs` at a path of it; None for a path of this machine.
///
/// fs: a file system of fsspec or a store of obstore. allow_http: read http:// URLs of other hosts than this machine.
///
/// Raises AprError ("rm-not-found", "rm-denied", "rm-offline", ...), and what `fs` raises.
#[pyfunction]
#[pyo3(
    signature = (filename, fs=None, allow_http=false),
    text_signature = "(filename, fs=None, allow_http=False)"
)]
pub(crate) fn range_file<'py>(
    py: Python<'py>,
    filename: Filename<'py>,
    fs: Option<&Bound<'py, PyAny>>,
    allow_http: bool,
) -> PyResult<Option<Bound<'py, RangeFile>>> {
    Ok(match Location::of(py, filename, fs, allow_http)? {
        Location::Ranges(file) => Some(file),
        Location::Path(_) => None,
    })
}

/// Whether functions that take a path or URL take this for a URL.
#[pyfunction]
pub(crate) fn is_url(filename: PathBuf) -> bool {
    filename.to_str().and_then(Place::parse).is_some()
}

/// The exception of a file that is not on this machine: what Python raised while it was read, or an `AprError` of the network.
fn of_source(py: Python<'_>, error: &(dyn StdError + 'static), path: Option<&Path>) -> PyErr {
    raised_by_source(py, error, path)
        .unwrap_or_else(|| Refusal::Io(std::io::Error::other(error.to_string())).raise(py, path))
}

/// The same, if that is the cause of `error`.
pub(crate) fn raised_by_source(
    py: Python<'_>,
    error: &(dyn StdError + 'static),
    path: Option<&Path>,
) -> Option<PyErr> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(raised) = error.downcast_ref::<PyErr>() {
            return Some(raised.clone_ref(py));
        }
        next = error.source();
    }
    let remote = apr_remote::remote_error(error)?;
    let text = match remote.source() {
        Some(cause) => format!("{remote}: {cause}"),
        None => remote.to_string(),
    };
    Some(Refusal::Said { code: remote.code(), text }.raise(py, path))
}
