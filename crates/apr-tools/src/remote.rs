//! URLs where a FILE is taken.

#[cfg(feature = "remote")]
mod object;
#[cfg(feature = "remote")]
mod repository;
#[cfg(feature = "remote")]
mod session;

use std::path::Path;

#[cfg(feature = "remote")]
pub(crate) use self::object::{
    NewObject, check as check_object, failure as object_failure, objects_below, read as read_object,
};
#[cfg(feature = "remote")]
pub(crate) use self::repository::{Listed, Repository, whole};
#[cfg(feature = "remote")]
pub(crate) use self::session::{
    Remote, RemoteArgs, block_cache, client, finish, other_digest, place, start, without_queries,
};
use crate::error::{CODE_INTERNAL, CODE_USAGE, Failure};
use crate::terminal::suggest;

/// Whether FILE is a URL.
pub(crate) fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(suggest::is_url)
}

/// Whether FILE is an object of an object store, or a prefix of some.
#[cfg(feature = "remote")]
pub(crate) fn is_object(path: &Path) -> bool {
    let scheme = path.to_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| ["s3", "gs", "az"].iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

/// Refuses a URL where a folder is to be made.
///
/// # Errors
///
/// If it is one.
pub(crate) fn refuse_folder(path: &Path) -> Result<(), Failure> {
    if !is_url(path) {
        return Ok(());
    }
    let failure = Failure::new(CODE_USAGE, "a folder is not written to a URL").in_file(path);
    Err(failure.help("write it to a folder of this machine, and send that with `apr put`"))
}

/// Whether FILE is a URL with a query, which may be a signature. Keys of objects are written as they are.
pub(crate) fn has_query(path: &Path) -> bool {
    let text = path.to_str().unwrap_or_default();
    #[cfg(feature = "remote")]
    if is_object(path) {
        return false;
    }
    #[cfg(feature = "remote")]
    if session::is_shortened(text) {
        return true;
    }
    suggest::is_url(text) && text.contains('?')
}

/// Runs `work` on a thread of its own, to which its remote files belong, under the options of this one.
///
/// # Errors
///
/// If there is no thread.
pub(crate) fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    #[cfg(feature = "remote")]
    let (args, narration) = session::args();
    let run = || {
        #[cfg(feature = "remote")]
        start(args, narration);
        work()
    };
    let no_thread = |error| Failure::new(CODE_INTERNAL, format!("no thread: {error}"));
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).map_err(no_thread)?;
        thread.join().map_err(|_| no_thread(std::io::Error::other("it has panicked")))
    })
}

/// Bytes of the stack of a thread: those of the main thread.
const STACK: usize = 8 << 20;

/// The words of the options of this run for URLs.
pub(crate) fn words() -> Vec<String> {
    #[cfg(feature = "remote")]
    return session::args().0.words();
    #[cfg(not(feature = "remote"))]
    Vec::new()
}

/// Without the feature there is none.
#[cfg(not(feature = "remote"))]
#[derive(Debug)]
pub(crate) enum Repository {}

#[cfg(not(feature = "remote"))]
impl Repository {
    #[expect(clippy::unnecessary_wraps, reason = "as with the feature")]
    pub(crate) const fn at(_: &Path) -> Result<Option<Self>, Failure> {
        Ok(None)
    }

    pub(crate) const fn name(&self) -> &str {
        match *self {}
    }

    pub(crate) fn url(&self, _: &str) -> std::path::PathBuf {
        match *self {}
    }

    pub(crate) fn shown(&self) -> String {
        match *self {}
    }

    pub(crate) const fn commit(&self) -> &str {
        match *self {}
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        match *self {}
        #[expect(unreachable_code, reason = "says which type it would be")]
        core::iter::empty()
    }

    pub(crate) const fn declared(&self, _: &str) -> (Option<u64>, Option<&str>) {
        match *self {}
    }

    pub(crate) fn read(&self, _: &str, _: u64) -> Result<Vec<u8>, Failure> {
        match *self {}
    }
}

/// Without the feature there is none.
#[cfg(not(feature = "remote"))]
#[derive(Clone, Debug)]
pub(crate) enum Remote {}

#[cfg(not(feature = "remote"))]
impl Remote {
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Failure> {
        match is_url(path) {
            true => Err(Failure::not_remote(path)
                .help("this build lacks the feature `remote`: download the file first")),
            false => Ok(None),
        }
    }

    pub(crate) const fn open_all(_: &[std::path::PathBuf]) {}

    pub(crate) fn kind(&self) -> model_file::FileKind {
        match *self {}
    }

    pub(crate) fn source(&self) -> read_at::AnySource {
        match *self {}
    }

    pub(crate) fn model_file(
        &self,
        _: &model_file::OpenOptions<'_>,
    ) -> Result<model_file::ModelFile<read_at::AnySource>, model_file::Error> {
        match *self {}
    }

    pub(crate) fn version(&self) -> (u64, Option<String>) {
        match *self {}
    }

    pub(crate) fn sha256(&self, _: impl FnMut(usize)) -> Result<[u8; 32], Failure> {
        match *self {}
    }

    pub(crate) fn check_digests(&self, _: &crate::terminal::Console) -> Result<(), Failure> {
        match *self {}
    }
}
