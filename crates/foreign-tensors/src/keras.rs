//! Keras' `.keras` files: an archive of an HDF5 file with the weights and of JSON that describes the model.

use alloc::boxed::Box;
use alloc::string::String;

use foreign_format::Format;
use json_scan::Check;
use read_at::ReadAt;

use crate::archive;
use crate::error::{Error, ErrorKind};
use crate::files::{Companions, NoCompanions};
use crate::hdf5;
use crate::model::Model;
use crate::options::Options;

/// The member with the weights.
const WEIGHTS: &str = "model.weights.h5";
/// The members that describe the model.
const DESCRIPTIONS: [&str; 2] = ["config.json", "metadata.json"];

/// Reads a `.keras` file. Names are those of the HDF5 file in it; the configuration becomes entries and is not acted upon.
///
/// # Errors
///
/// Those of [`hdf5::read`]; [`ErrorKind::Archive`]; [`ErrorKind::Limit`] if the archive compresses the weights, which Keras never does, and
/// they are longer than the limit `decompressed_bytes`.
pub fn read(file: &dyn ReadAt, _: &dyn Companions, options: &Options) -> Result<Model, Error> {
    let (archive, findings) = archive::open(file)?;
    let mut model = Model::new(Format::Keras);
    for finding in findings {
        let name = finding.entry.and_then(|idx| archive.entries().get(idx)).map_or("", |entry| entry.name());
        model.note(name, "a name that programs may read differently");
    }
    let mut weights = None;
    let mut left = options.limits.text_bytes;
    for entry in archive.entries() {
        let name = entry.name();
        if name == WEIGHTS {
            weights = Some(entry);
        } else if DESCRIPTIONS.contains(&name) {
            let allowed = options.limits.text_bytes;
            left = left
                .checked_sub(entry.len_declared())
                .ok_or(ErrorKind::Limit { limit: "text_bytes", allowed })?;
            let text = String::from_utf8(archive::read(&archive, entry, allowed)?).ok();
            let json = text.as_deref().and_then(|text| json_scan::value(text, Check::Values).ok());
            match json {
                Some((json, _)) => model.add_entry(name, json),
                None => model.note(name, "not JSON: left out"),
            }
        } else if !entry.is_folder() {
            model.note(name, "a file of the archive that holds no weights is left out");
        }
    }
    let weights = weights.ok_or_else(|| Error::malformed("the archive has no model.weights.h5"))?;
    match weights.stored() {
        Some(within) => hdf5::read_within(file, within.clone(), &mut model, options)?,
        None => {
            let allowed = options.limits.decompressed_bytes;
            if weights.len_declared() > allowed {
                return Err(ErrorKind::Limit { limit: "decompressed_bytes", allowed }.into());
            }
            let bytes = archive::read(&archive, weights, allowed)?;
            let inner = hdf5::read(&bytes, &NoCompanions, options)?;
            model.absorb(WEIGHTS, inner, Box::new(bytes))?;
        }
    }
    Ok(model)
}
