//! Objects of object stores that commands write.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use apr_remote::{Client, ListedObject, ObjectPath, Place, Replace, Upload};

use super::{is_object, place, whole};
use crate::error::{CODE_USAGE, Failure};
use crate::interruption::{self, OnSignal};
use crate::output::Overwrite;

/// An object that is being written: it appears as a whole, or not at all.
#[derive(Debug)]
pub(crate) struct NewObject {
    upload: Upload,
    /// A signal that ends the program aborts it.
    _on_signal: OnSignal,
}

impl NewObject {
    /// Begins the object that a URL names, if it may be written. `len` is its length, if it is known.
    ///
    /// # Errors
    ///
    /// If the URL names no object, there is one already, or the store does not answer.
    pub(crate) fn create(url: &Path, overwrite: Overwrite, len: Option<u64>) -> Result<Self, Failure> {
        let (client, object) = object(url)?;
        Self::begin(&client, &object, overwrite, len).map_err(|failure| failure.in_file(url))
    }

    /// # Errors
    ///
    /// Those of [`create`](Self::create).
    pub(crate) fn begin(
        client: &Client,
        object: &ObjectPath,
        overwrite: Overwrite,
        len: Option<u64>,
    ) -> Result<Self, Failure> {
        let replace = match overwrite {
            Overwrite::Refuse => Replace::Never,
            Overwrite::Replace => Replace::Always,
        };
        let upload = client.upload(object, replace, len)?;
        let aborter = upload.aborter();
        let on_signal = interruption::on_signal(move || aborter.abort());
        Ok(Self { upload, _on_signal: on_signal })
    }

    /// Completes it.
    ///
    /// # Errors
    ///
    /// If the store does not take it, or another writer was first.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.upload.finish()?;
        Ok(())
    }
}

impl Write for NewObject {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.upload.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.upload.flush()
    }
}

/// Refuses, before any work is done, an object that could not be written in the end.
///
/// # Errors
///
/// If there is one already, or the store does not answer.
pub(crate) fn check(url: &Path, overwrite: Overwrite) -> Result<(), Failure> {
    let (client, object) = object(url)?;
    let found = client.object_len(&object).map_err(|error| Failure::from(error).in_file(url))?;
    match found {
        Some(_) if overwrite == Overwrite::Refuse => {
            Err(Failure::from(apr_remote::Error::from(apr_remote::ErrorKind::Exists)).in_file(url))
        }
        _ => Ok(()),
    }
}

/// The failure of a write to an object.
pub(crate) fn failure(url: &Path, error: &io::Error) -> Failure {
    let inner = error.get_ref().and_then(|inner| apr_remote::remote_error(inner));
    inner.map_or_else(|| Failure::io("write the file", url, error), |error| Failure::of(error).in_file(url))
}

/// The objects below the prefix that a URL names, by their paths there; `None` if it names something else.
///
/// # Errors
///
/// If the store does not answer.
pub(crate) fn objects_below(url: &Path) -> Result<Option<BTreeMap<String, ListedObject>>, Failure> {
    if !is_object(url) {
        return Ok(None);
    }
    let (client, Place::Object(prefix)) = place(url)? else { return Ok(None) };
    let named = |error| Failure::from(error).in_file(url);
    if !prefix.is_prefix() && client.object_len(&prefix).map_err(named)?.is_some() {
        return Ok(None);
    }
    let slash = if prefix.is_prefix() { "" } else { "/" };
    let begin = format!("{}{slash}", prefix.key());
    let listed = client.list_objects(&prefix).map_err(named)?.into_iter();
    let below = |object: &ListedObject| Some(object.path.key().strip_prefix(&begin)?.to_owned());
    Ok(Some(listed.filter_map(|object| Some((below(&object)?, object))).collect()))
}

/// All bytes of a short object.
///
/// # Errors
///
/// If it is too long or cannot be read.
pub(crate) fn read(object: &ObjectPath) -> Result<Vec<u8>, Failure> {
    let url = PathBuf::from(object.to_string());
    let (client, place) = place(&url)?;
    let read = || whole(&client.open(&place)?);
    read().map_err(|failure| failure.in_file(&url))
}

/// The object that a URL names, and what writes it.
fn object(url: &Path) -> Result<(Arc<Client>, ObjectPath), Failure> {
    match place(url)? {
        (client, Place::Object(object)) if !object.is_prefix() => Ok((client, object)),
        _ => Err(Failure::new(CODE_USAGE, "the URL names no object").in_file(url)),
    }
}
