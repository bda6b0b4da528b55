//! The kind of FILE, by its first bytes.

use alloc::rc::Rc;
use alloc::sync::Arc;
use core::cell::RefCell;
use std::path::{Path, PathBuf};

use apr_container::v1;
use durable_file::Scratch;
use model_file::{FileKind, ModelFile, OpenOptions};
use read_at::{AnySource, FileSource, ReadAt as _};
use st_core::Change;
use st_mmap::{RepairedFile, Shards};

use super::spool::Spool;
use super::{Format, Rules, failure_of};
use crate::detached::Detached;
use crate::error::{CODE_USAGE, Failure};
use crate::foreign;
use crate::remote::{Remote, is_url};
use crate::secrets::Keys;
use crate::terminal::Console;

/// A path; or a temporary file with standard input, or with bytes that were verified, which lives as long as this.
#[derive(Debug)]
pub(crate) struct Source {
    label: PathBuf,
    kind: FileKind,
    /// The open file, until it is read as a model; `None` also of what is not a regular file.
    file: RefCell<Option<FileSource>>,
    /// What a URL names.
    remote: Option<Remote>,
    spool: Option<Spool>,
    /// A copy that no other user can change.
    copy: Option<Scratch>,
    /// Whether a signature beside the file was verified.
    is_verified: bool,
    keys: Rc<Keys>,
    /// With what a file of another program is read.
    foreign: foreign_tensors::Options,
    /// The file of another program that a folder holds.
    of_folder: Option<PathBuf>,
    /// Its bytes with another header.
    repaired: Option<Arc<RepairedFile>>,
}

impl Source {
    /// Looks at what FILE names; `-` is standard input.
    ///
    /// # Errors
    ///
    /// If standard input cannot be read, or cannot begin a model. What is wrong with a file shows when it is read.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let remote = Remote::open(path)?;
        let spool = if path.as_os_str() == "-" { Some(Spool::from_stdin()?) } else { None };
        let of_folder = ModelFile::foreign_in(path);
        let (kind, file) = match &remote {
            Some(remote) => (remote.kind(), None),
            None => detected(spool.as_ref().map(Spool::path).or(of_folder.as_deref()).unwrap_or(path)),
        };
        Ok(Self {
            label: path.to_owned(),
            kind,
            file: RefCell::new(file),
            remote,
            spool,
            copy: None,
            is_verified: false,
            keys: Rc::default(),
            foreign: foreign_tensors::Options::default(),
            of_folder,
            repaired: None,
        })
    }

    /// The same of a file of this machine: a URL is refused before a request is sent.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open), and for a URL.
    pub(crate) fn open_local(path: &Path) -> Result<Self, Failure> {
        if is_url(path) { Err(Failure::not_remote(path)) } else { Self::open(path) }
    }

    /// Looks at what FILE names, and verifies the signature beside it if there has to be one. What is read from then on are the
    /// bytes that were verified.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open); if the file cannot be copied, or the signature is missing or not right.
    pub(crate) fn open_verified(
        path: &Path,
        detached: Option<&Detached>,
        console: &Console,
    ) -> Result<Self, Failure> {
        let Some(detached) = detached else { return Self::open(path) };
        let mut source = Self::open_local(path)?;
        // Standard input is in a file of our own already.
        if source.spool.is_none() {
            let copy = Detached::copy(path, console)?;
            let (kind, file) = detected(copy.path());
            (source.kind, source.file) = (kind, RefCell::new(file));
            source.copy = Some(copy);
        }
        detached.verify(source.path(), path, console)?;
        source.is_verified = true;
        Ok(source)
    }

    /// What a file or folder is stored as.
    pub(crate) fn peek(path: &Path) -> Format {
        if let Ok(Some(remote)) = Remote::open(path) {
            return remote.kind().expected();
        }
        detected(ModelFile::foreign_in(path).as_deref().unwrap_or(path)).0.expected()
    }

    /// With what opens it and whose signature it must have.
    #[must_use]
    pub(crate) fn with_keys(mut self, keys: &Rc<Keys>) -> Self {
        self.keys = Rc::clone(keys);
        self
    }

    /// With what a file of another program is read.
    #[must_use]
    pub(crate) fn with_foreign(mut self, options: foreign_tensors::Options) -> Self {
        self.foreign = options;
        self
    }

    /// Repairs the header of a safetensors file; what is read from then on is the repaired file.
    ///
    /// # Errors
    ///
    /// If it is of another format, is not one file, or cannot be repaired.
    pub(crate) fn repair(&mut self, rules: &Rules) -> Result<Vec<Change>, Failure> {
        let is_index = self.label.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        let is_file = !self.path().is_dir() && !is_index;
        let refused = |what: String| Failure::new(CODE_USAGE, what).in_file(&self.label);
        if self.format() != Format::SafeTensors || (is_file && matches!(self.kind, FileKind::Foreign(_))) {
            let what = format!("--repair is for safetensors files, and this is {}", self.kind.title());
            return Err(refused(what).help("leave --repair out"));
        }
        if !is_file {
            return Err(refused("--repair is for one file, and this is a set of files".to_owned())
                .help("name a file; `apr check FOLDER` says which one is invalid"));
        }
        let bytes = self.bytes().map_err(|error| self.relabel(error.into()))?;
        let repaired = RepairedFile::of(bytes, self.path(), &rules.safetensors);
        let repaired = repaired.map_err(|error| self.relabel(error.into()))?;
        let changes = repaired.repair().changes().to_vec();
        self.repaired = Some(Arc::new(repaired));
        Ok(changes)
    }

    /// Whether [`repair`](Self::repair) would make a file of it that can be read.
    pub(crate) fn is_repairable(&self, rules: &Rules) -> bool {
        self.format() == Format::SafeTensors
            && self
                .bytes()
                .is_ok_and(|bytes| has_tensors(RepairedFile::of(bytes, self.path(), &rules.safetensors)))
    }

    /// # Errors
    ///
    /// If the name promises a format of this project, and the content is of another program.
    pub(crate) fn check_name(&self) -> Result<(), Failure> {
        match self.kind.fits(&self.label) {
            true => Ok(()),
            false => Err(foreign::not_a_model(self.kind, &self.label)),
        }
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Refuses keys for a format in which there is neither encryption nor a signature.
    ///
    /// # Errors
    ///
    /// If there are keys; first of all, if the file cannot be opened.
    pub(crate) fn refuse_keys(&self, rules: &Rules) -> Result<(), Failure> {
        if !self.keys.is_given() || matches!(self.format(), Format::AprV1 | Format::Sealed) {
            return Ok(());
        }
        self.model_file(rules).map_err(|error| super::opening_failure(error, self, rules))?;
        self.keys.refuse_for(self.format().title(), &self.label)
    }

    /// What the user called it.
    pub(crate) fn label(&self) -> &Path {
        &self.label
    }

    /// Where its bytes are.
    pub(crate) fn path(&self) -> &Path {
        let copy = self.copy.as_ref().map(Scratch::path);
        let inside = self.spool.as_ref().map(Spool::path).or(self.of_folder.as_deref());
        copy.or(inside).unwrap_or(&self.label)
    }

    /// Whether its bytes are those of a signature beside it.
    pub(crate) fn is_verified(&self) -> bool {
        self.is_verified
    }

    pub(crate) fn format(&self) -> Format {
        self.kind.expected()
    }

    /// By its first bytes, when it was opened.
    pub(crate) fn kind(&self) -> FileKind {
        self.kind
    }

    /// Whether it has to be decrypted, as far as its header says so.
    pub(crate) fn is_encrypted(&self) -> bool {
        if self.format() != Format::AprV1 {
            return self.format() == Format::Sealed;
        }
        let mut header = [0; 32];
        let file = self.file.borrow();
        let is_read = match &self.remote {
            Some(remote) => remote.source().read_exact_at(0, &mut header).is_ok(),
            None => file.as_ref().is_some_and(|file| file.read_exact_at(0, &mut header).is_ok()),
        };
        let header = v1::Header::from_bytes(&header, &apr_container::ReadOptions::default());
        is_read && header.is_ok_and(|header| header.is_encrypted())
    }

    /// How it is opened.
    pub(crate) fn options(&self, rules: &Rules) -> OpenOptions<'_> {
        let options = OpenOptions::new().with_read_options(*rules).with_foreign(self.foreign.clone());
        match self.keys.is_given() {
            true => options.with_access(self.keys.decryption().with_trust(self.keys.trusted().trust())),
            false => options,
        }
    }

    /// Opens the model file; with keys, also decrypts and decodes it.
    ///
    /// # Errors
    ///
    /// Those of [`ModelFile::open`].
    pub(crate) fn model_file(&self, rules: &Rules) -> Result<ModelFile<AnySource>, model_file::Error> {
        let options = self.options(rules);
        if self.remote.is_some() || self.repaired.is_some() {
            return self.reopened(&options);
        }
        let file = self.file.take();
        if self.is_temporary() && matches!(self.format(), Format::Foreign(_)) {
            // The files beside it are not those of the model, and others may have put them there.
            let file = match file {
                Some(file) => file,
                None => regular(self.path())?,
            };
            return ModelFile::read(file.into(), &options);
        }
        match file {
            Some(file) => ModelFile::from_file(file, self.kind, self.path(), &options),
            None => ModelFile::open(self.path(), &options),
        }
    }

    /// Opens the model file anew with these options.
    ///
    /// # Errors
    ///
    /// Those of [`ModelFile::open`].
    pub(crate) fn reopened(
        &self,
        options: &OpenOptions<'_>,
    ) -> Result<ModelFile<AnySource>, model_file::Error> {
        if let Some(repaired) = &self.repaired {
            let (source, nothing) = (Arc::clone(repaired), Box::new(NothingBeside));
            return ModelFile::from_shared(source, self.kind, self.path(), nothing, options);
        }
        match &self.remote {
            Some(remote) => remote.model_file(options),
            None => ModelFile::open(self.path(), options),
        }
    }

    /// Its bytes, opened anew.
    ///
    /// # Errors
    ///
    /// If it is no regular file.
    pub(crate) fn bytes(&self) -> Result<AnySource, durable_file::Error> {
        match &self.remote {
            Some(remote) => Ok(remote.source()),
            None => regular(self.path()).map(AnySource::File),
        }
    }

    /// What a URL names.
    pub(crate) fn remote(&self) -> Option<&Remote> {
        self.remote.as_ref()
    }

    /// The failure of an error of its file.
    pub(crate) fn failure_of(&self, error: model_file::Error) -> Failure {
        self.relabel(failure_of(error, "read the header", &self.label))
    }

    /// Whether its bytes are in a temporary file.
    fn is_temporary(&self) -> bool {
        self.spool.is_some() || self.copy.is_some()
    }

    /// The failure with the name the user knows: of this one file, nothing else is named by it.
    pub(crate) fn relabel(&self, failure: Failure) -> Failure {
        match self.is_temporary() {
            true => failure.in_place_of_file(&self.label),
            false => failure.in_file(&self.label),
        }
    }
}

fn has_tensors(repaired: Result<RepairedFile, st_mmap::Error>) -> bool {
    repaired.is_ok_and(|repaired| !repaired.repair().header().is_empty())
}

/// The folder of a single file.
#[derive(Debug)]
struct NothingBeside;

impl Shards for NothingBeside {
    fn open(&self, _: &str) -> Result<AnySource, read_at::Error> {
        Err(read_at::Error::from_source(std::io::Error::from(std::io::ErrorKind::NotFound)))
    }
}

fn regular(path: &Path) -> Result<FileSource, durable_file::Error> {
    let regular = durable_file::open_regular(path, u64::MAX)?;
    let len = regular.len();
    Ok(FileSource::with_len(regular.into_file(), len))
}

/// The kind of a regular file, and the file; of what is not one, no kind.
fn detected(path: &Path) -> (FileKind, Option<FileSource>) {
    let Ok(file) = regular(path) else { return (FileKind::Unknown, None) };
    (FileKind::of_source(&file).unwrap_or(FileKind::Unknown), Some(file))
}
