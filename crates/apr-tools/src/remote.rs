//! URLs where a FILE is taken.

#[cfg(feature = "remote")]
mod session;

use std::path::Path;

#[cfg(feature = "remote")]
pub(crate) use self::session::{Remote, RemoteArgs, finish, place, start, without_queries};
use crate::terminal::suggest;

/// Whether FILE is a URL.
pub(crate) fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(suggest::is_url)
}

/// Without the feature there is none.
#[cfg(not(feature = "remote"))]
#[derive(Clone, Debug)]
pub(crate) enum Remote {}

#[cfg(not(feature = "remote"))]
impl Remote {
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, crate::error::Failure> {
        match is_url(path) {
            true => Err(crate::error::Failure::not_remote(path)
                .help("this build lacks the feature `remote`: download the file first")),
            false => Ok(None),
        }
    }

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

    pub(crate) fn sha256(&self, _: impl FnMut(usize)) -> Result<[u8; 32], crate::error::Failure> {
        match *self {}
    }

    pub(crate) fn check_digests(&self, _: &crate::terminal::Console) -> Result<(), crate::error::Failure> {
        match *self {}
    }
}
