//! The copy of a file: it grows in a folder of parts, and takes its place when it is whole.

use alloc::sync::Arc;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use apr_remote::{Client, ErrorKind, RemoteFile};
use foreign_format::Format;
use model_file::FileKind;
use read_at::ReadAt as _;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::parts::Parts;
use super::plan::{Plan, Wanted};
use crate::error::{CODE_NO_SPACE, CODE_OUTPUT_EXISTS, Failure};
use crate::input::{Model, Rules, Source};
use crate::output::ending::names_model;
use crate::output::{Overwrite, check_file};
use crate::remote::{self, other_digest};
use crate::terminal::{Console, Progress, human};
use crate::{file_digest, foreign};

/// A part reaches the disk each time that so much has been appended. What is appended after that may be lost with the power, and is read
/// again where no digest would tell.
const SYNC_LEN: u64 = 16 << 20;
const PIECE_LEN: usize = 1 << 20;

/// Formats of error replies and placeholders that servers send in place of a file.
const NO_MODEL: [Format; 5] =
    [Format::WebPage, Format::Xml, Format::ErrorReply, Format::GitLfs, Format::GitLfsConflict];

/// How a file came to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// It was there, with the same bytes.
    Present,
    /// Part of it was there.
    Resumed,
    Downloaded,
    /// The hub's cache had it.
    Cached,
}

#[derive(Debug)]
pub(super) struct Copied {
    pub(super) bytes: u64,
    /// In lower-case hexadecimal digits.
    pub(super) sha256: String,
    /// Whether it is what the server declares.
    pub(super) is_declared: bool,
    pub(super) state: State,
}

/// A file in the folder of parts that is complete.
#[derive(Debug)]
pub(super) struct Arrived {
    path: PathBuf,
    /// Keeps other processes from it.
    lock: Option<File>,
    copied: Copied,
}

impl Arrived {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Closes the file: of many, not all can be open.
    #[must_use]
    pub(super) fn closed(self) -> Self {
        Self { lock: None, ..self }
    }

    /// Refuses a web page, a message of a server or a pointer of Git LFS under the name of a model file, and a model that was cut, if no
    /// declared digest says that it is the file.
    ///
    /// # Errors
    ///
    /// If it is one; the part is removed.
    pub(super) fn check_content(&self, wanted: &Wanted) -> Result<(), Failure> {
        let name = Path::new(&wanted.path);
        if self.copied.is_declared || !names_model(name) {
            return Ok(());
        }
        let is_reply = |kind: &FileKind| {
            kind.foreign().is_some_and(|found| NO_MODEL.contains(&found)) || !kind.fits(name)
        };
        let url = wanted.place.to_string();
        let refused = match foreign::of_file(&self.path).filter(is_reply) {
            Some(kind) => Some(foreign::not_a_model(kind, Path::new(&url))),
            None => self.cut().map(|failure| failure.in_place_of_file(Path::new(&url))),
        };
        refused.map_or(Ok(()), |failure| {
            self.remove();
            Err(failure)
        })
    }

    /// Why the file ends before its content does: a server that declares no length may have stopped early.
    fn cut(&self) -> Option<Failure> {
        let failure = Model::open(&self.path, &Rules::COMPAT).err()?;
        let is_cut = match failure.code() {
            // Of bytes too many, too.
            "st-file-length" => !Source::open(&self.path).ok()?.is_repairable(&Rules::COMPAT),
            code => ["gg-data-end", "gg-truncated", "gg-count", "ac-truncated"].contains(&code),
        };
        is_cut.then_some(failure)
    }

    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Where the files go.
#[derive(Debug)]
pub(super) struct Folder<'f> {
    path: &'f Path,
    parts: Parts,
    overwrite: Overwrite,
    connections: usize,
}

impl<'f> Folder<'f> {
    pub(super) fn new(path: &'f Path, overwrite: Overwrite, connections: usize) -> Self {
        Self { path, parts: Parts::of(path), overwrite, connections }
    }

    pub(super) const fn path(&self) -> &'f Path {
        self.path
    }

    /// The files that are there already; refuses, before anything is read, what could not be written in the end.
    ///
    /// # Errors
    ///
    /// If a file is another one and may not be replaced, or the disk has less space.
    pub(super) fn check(&self, plan: &Plan, console: &Console) -> Result<Vec<Option<Copied>>, Failure> {
        remote::refuse_folder(self.path)?;
        self.parts.check()?;
        let mut present = Vec::new();
        let mut missing = 0_u64;
        let mut progress = console.progress("comparing", 0);
        for wanted in &plan.files {
            durable_file::check_below(self.path, &wanted.path)?;
            let copy = self.present(wanted, |len| progress.advance(len))?;
            if copy.is_none() {
                let lens =
                    self.parts.of_file(&wanted.path).filter_map(|part| Some(part.metadata().ok()?.len()));
                let arrived = lens.max().unwrap_or(0);
                missing = missing.saturating_add(wanted.len.unwrap_or(0).saturating_sub(arrived));
            }
            present.push(copy);
        }
        // The folder is made with the first part.
        let mut above = self.path.ancestors().filter(|path| path.is_dir());
        match durable_file::available_space(above.next().unwrap_or_else(|| Path::new("."))) {
            Some(available) if available < missing => {
                let (missing, available) = (human::bytes(missing), human::bytes(available));
                let what = format!("{missing} are missing, and the disk has space for {available}");
                Err(Failure::new(CODE_NO_SPACE, what).in_file(self.path))
            }
            _ => Ok(present),
        }
    }

    /// A file that is there with the declared digest.
    fn present(&self, wanted: &Wanted, advance: impl FnMut(usize)) -> Result<Option<Copied>, Failure> {
        let path = self.path.join(&wanted.path);
        let Ok(found) = path.metadata() else {
            check_file(&path, self.overwrite)?;
            return Ok(None);
        };
        let is_same_len = found.is_file() && wanted.len.is_none_or(|len| len == found.len());
        match &wanted.sha256 {
            Some(declared) if is_same_len => {
                let sha256 = file_digest::hex_sha256(&path, advance)?;
                if sha256 == *declared {
                    let bytes = found.len();
                    return Ok(Some(Copied { bytes, sha256, is_declared: true, state: State::Present }));
                }
            }
            // Compared when it has arrived.
            None if is_same_len => return Ok(None),
            _ => {}
        }
        check_file(&path, self.overwrite).map_err(|failure| match failure.code() {
            CODE_OUTPUT_EXISTS if self.overwrite == Overwrite::Refuse => {
                failure.help("it differs; replace it with --force")
            }
            _ => failure,
        })?;
        Ok(None)
    }

    /// Fetches a file into the folder of parts.
    ///
    /// # Errors
    ///
    /// If it cannot be read or written, or is another one than the server declares.
    pub(super) fn fetch(
        &self,
        wanted: &Wanted,
        client: &Arc<Client>,
        progress: &mut Progress,
    ) -> Result<Arrived, Failure> {
        let opened = client.open(&wanted.place).map_err(Failure::from);
        let file = opened.map_err(|failure| failure.in_file(Path::new(&wanted.place.to_string())))?;
        self.fetch_open(wanted, &file, progress).map_err(|failure| failure.in_file(Path::new(&file.shown())))
    }

    fn fetch_open(
        &self,
        wanted: &Wanted,
        file: &RemoteFile,
        progress: &mut Progress,
    ) -> Result<Arrived, Failure> {
        if wanted.len.is_some_and(|len| len != file.total_len()) {
            let problem = "its length is not the one that the hub declares";
            let kind = if file.is_cached() { ErrorKind::Cache { problem } } else { ErrorKind::Changed };
            return Err(apr_remote::Error::from(kind).into());
        }
        let declared = wanted.sha256.as_deref().or(file.sha256_declared());
        let mut part = Part::open(self, wanted, file)?;
        let mut copied = part.fill(file, declared, self.connections, progress)?;
        if declared.is_some_and(|declared| declared != copied.sha256) && copied.state == State::Resumed {
            // What was there of it may have been lost with the power.
            part.truncate(0)?;
            copied = part.fill(file, declared, self.connections, progress)?;
        }
        if let Some(expected) = declared.filter(|declared| *declared != copied.sha256) {
            part.remove();
            return Err(other_digest(file, expected, copied.sha256));
        }
        let Part { path, file, .. } = part;
        file.sync_all().map_err(|error| Failure::io("write the file", &path, &error))?;
        Ok(Arrived { path, lock: Some(file), copied })
    }

    /// Moves a file that has arrived to its place.
    ///
    /// # Errors
    ///
    /// If another file is there and may not be replaced, or the operating system refuses it.
    pub(super) fn place(&self, arrived: Arrived, wanted: &Wanted) -> Result<Copied, Failure> {
        let path = self.path.join(&wanted.path);
        let Arrived { path: part, lock, mut copied } = arrived;
        if path.is_file() && self.overwrite == Overwrite::Refuse {
            let there = file_digest::hex_sha256(&path, |_| ())?;
            let _ = fs::remove_file(&part);
            if there != copied.sha256 {
                return Err(Failure::new(CODE_OUTPUT_EXISTS, "the output exists")
                    .in_file(&path)
                    .help("it differs; replace it with --force"));
            }
            copied.state = State::Present;
            return Ok(copied);
        }
        check_file(&path, self.overwrite)?;
        durable_file::move_below(&part, self.path, &wanted.path)?;
        drop(lock);
        Ok(copied)
    }

    /// Whether anything has arrived of one of the files that is not complete.
    pub(super) fn has_parts(&self, plan: &Plan) -> bool {
        let mut parts = plan.files.iter().flat_map(|wanted| self.parts.of_file(&wanted.path));
        let has = parts.any(|part| part.metadata().is_ok_and(|part| part.len() > 0));
        if !has {
            self.finish(plan);
        }
        has
    }

    /// Removes the parts of other versions of the files that no other process is writing. Those of other files stay.
    pub(super) fn finish(&self, plan: &Plan) {
        for wanted in &plan.files {
            self.parts.remove(&wanted.path);
        }
        self.parts.remove_folder();
    }
}

/// Why a copy ended.
enum Stop {
    Read(read_at::Error),
    Write(Failure),
}

impl From<read_at::Error> for Stop {
    fn from(error: read_at::Error) -> Self {
        Self::Read(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Write(failure)
    }
}

/// The beginning of a file.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    file: File,
    len: u64,
}

impl Part {
    /// The part of this version of the file, empty if there is none.
    fn open(folder: &Folder<'_>, wanted: &Wanted, file: &RemoteFile) -> Result<Self, Failure> {
        let declared = wanted.sha256.as_deref().or(file.sha256_declared());
        // A digest is the same for every address.
        let version = declared
            .map_or_else(|| format!("{} {}", file.url(), file.version().unwrap_or_default()), str::to_owned);
        let opened = folder.parts.open(&wanted.path, &format!("{version}\n{}", file.total_len()));
        let (path, part) = opened.map_err(|failure| failure.in_file(&folder.path.join(&wanted.path)))?;
        let failed = |error: io::Error| Failure::io("write the file", &path, &error);
        let found = part.metadata().map_err(failed)?.len();
        let mut part = Self { path, file: part, len: found };
        part.truncate(match (declared, file.version()) {
            _ if found > file.total_len() => 0,
            (Some(_), _) => found,
            (None, Some(_)) => found.saturating_sub(2 * SYNC_LEN),
            // Nothing tells whether it is the same file.
            (None, None) => 0,
        })?;
        Ok(part)
    }

    fn truncate(&mut self, len: u64) -> Result<(), Failure> {
        self.file.set_len(len).map_err(|error| Failure::io("write the file", &self.path, &error))?;
        self.len = len;
        Ok(())
    }

    /// Appends the rest of the file.
    fn fill(
        &mut self,
        file: &RemoteFile,
        declared: Option<&str>,
        connections: usize,
        progress: &mut Progress,
    ) -> Result<Copied, Failure> {
        let failed = |error: io::Error| Failure::io("write the file", &self.path, &error);
        let mut hash = Sha256::new();
        let mut piece = vec![0; PIECE_LEN];
        let mut begin = (&self.file).take(self.len);
        (&self.file).seek(SeekFrom::Start(0)).map_err(failed)?;
        loop {
            let len = begin.read(&mut piece).map_err(failed)?;
            if len == 0 {
                break;
            }
            hash.update(&piece[..len]);
            progress.advance(len);
        }
        let state = match self.len {
            0 if file.is_cached() => State::Cached,
            0 => State::Downloaded,
            _ => State::Resumed,
        };
        let mut unsynced = 0;
        (&self.file).seek(SeekFrom::Start(self.len)).map_err(failed)?;
        let read = file.read_in_order(self.len..file.total_len(), connections, |bytes| {
            (&self.file).write_all(bytes).map_err(failed)?;
            hash.update(bytes);
            progress.advance(bytes.len());
            unsynced += bytes.len() as u64;
            if unsynced >= SYNC_LEN && declared.is_none() {
                self.file.sync_data().map_err(failed)?;
                unsynced = 0;
            }
            Ok::<(), Stop>(())
        });
        read.map_err(|stop| match stop {
            Stop::Read(error) => Failure::of_remote(error, Path::new(&file.shown())),
            Stop::Write(failure) => failure,
        })?;
        self.len = file.total_len();
        Ok(Copied {
            bytes: self.len,
            sha256: base16ct::lower::encode_string(&hash.finalize()),
            is_declared: declared.is_some(),
            state,
        })
    }

    fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}
