//! Without the feature `cloud`, object stores are refused.

use std::io::{self, Write};

use crate::client::{Client, Route};
use crate::error::{Error, ErrorKind};
use crate::object::{ListedObject, ObjectPath, Replace};

/// An object that is being written: none is made without the feature `cloud`.
#[derive(Debug)]
pub struct Upload(Never);

/// Aborts an upload: none is made without the feature `cloud`.
#[derive(Clone, Debug)]
pub struct Aborter(Never);

#[derive(Clone, Copy, Debug)]
enum Never {}

fn refused(object: &ObjectPath) -> Error {
    ErrorKind::Scheme { scheme: object.protocol().scheme() }.into()
}

impl Client {
    pub(crate) fn object(&self, object: &ObjectPath) -> Result<Route, Error> {
        Err(refused(object))
    }

    /// Bytes of an object.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Scheme`].
    pub fn object_len(&self, object: &ObjectPath) -> Result<Option<u64>, Error> {
        Err(refused(object))
    }

    /// The objects below a prefix.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Scheme`].
    pub fn list_objects(&self, prefix: &ObjectPath) -> Result<Vec<ListedObject>, Error> {
        Err(refused(prefix))
    }

    /// Begins an object.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Scheme`].
    pub fn upload(&self, object: &ObjectPath, _: Replace, _: Option<u64>) -> Result<Upload, Error> {
        Err(refused(object))
    }
}

impl Upload {
    /// What ends it early.
    #[must_use]
    pub const fn aborter(&self) -> Aborter {
        match self.0 {}
    }

    /// Completes the object.
    ///
    /// # Errors
    ///
    /// None: there is no upload.
    pub const fn finish(self) -> Result<u64, Error> {
        match self.0 {}
    }
}

impl Aborter {
    /// Ends the upload.
    pub const fn abort(&self) {
        match self.0 {}
    }
}

impl Write for Upload {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}
