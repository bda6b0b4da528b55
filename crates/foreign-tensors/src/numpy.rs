//! NumPy's `.npy` and `.npz`, also of MLX.

pub(crate) mod element;
mod header;
pub(crate) mod strings;
mod write;

use alloc::format;

use foreign_format::Format;
use located_error::Subject;
use read_at::ReadAt;
use zip_core::Member;

pub use self::write::header;

use self::header::Header;
use self::strings::MAX_BYTES;
use crate::archive;
use crate::error::Error;
use crate::files::Companions;
use crate::model::Model;
use crate::options::Options;
use crate::tensor::{Place, Tensor};
use crate::view::View;

/// Reads an array, whose name is empty, or an archive of arrays.
///
/// # Errors
///
/// If a header is none, an array is cut short, or archive and options disagree.
pub fn read(file: &dyn ReadAt, _companions: &dyn Companions, options: &Options) -> Result<Model, Error> {
    let mut first = [0; 2];
    if file.total_len() >= 2 {
        file.read_exact_at(0, &mut first)?;
    }
    if first == *b"PK" { arrays(file, options) } else { array(file, options) }
}

/// A `.npy` file.
fn array(file: &dyn ReadAt, options: &Options) -> Result<Model, Error> {
    let mut model = Model::new(Format::Npy);
    options.without_object()?;
    let mut at = 0;
    let next = |out: &mut [u8]| {
        if file.total_len() - at < out.len() as u64 {
            return Ok(false);
        }
        file.read_exact_at(at, out)?;
        at += out.len() as u64;
        Ok(true)
    };
    let header = Header::read(next, options.void_is_bf16)?;
    let end = file.total_len();
    add(
        &mut model,
        "",
        header,
        end,
        |skip, len| Place::Stored(0, skip..skip.saturating_add(len).min(end)),
        options,
    )?;
    Ok(model)
}

/// A `.npz` file.
fn arrays(file: &dyn ReadAt, options: &Options) -> Result<Model, Error> {
    let mut model = Model::new(Format::Npz);
    let (archive, odd) = archive::open(file)?;
    for finding in odd {
        let entry = finding.entry.and_then(|idx| archive.entries().get(idx));
        model.note(entry.map_or("", |entry| entry.name()), "this name is ambiguous or leaves the folder");
    }
    let mut is_found = options.object.is_empty();
    for entry in archive.entries().iter().filter(|entry| !entry.is_folder()) {
        let name = entry.name().strip_suffix(".npy").unwrap_or(entry.name());
        if !options.object.is_empty() && options.object != name {
            continue;
        }
        is_found = true;
        let mut member = Member::new(archive.source(), entry)?;
        let mut is_array = false;
        let next = |out: &mut [u8]| {
            let filled = archive::fill(&mut member, out)?;
            is_array |= filled && out.starts_with(b"\x93NUMPY");
            Ok(filled)
        };
        let header = match Header::read(next, options.void_is_bf16) {
            Ok(header) => header,
            // NumPy decides by the magic number, too.
            Err(error) if is_array => return Err(error.of(Subject::entry(entry.name()))),
            Err(_) => {
                model.note(entry.name(), "this member is no array, and is left out");
                continue;
            }
        };
        if let Some(strings) = header.strings {
            let count = header.shape.iter().try_fold(1_u64, |count, &dim| count.checked_mul(dim));
            let len =
                count.and_then(|count| count.checked_mul(strings.len())).filter(|len| *len <= MAX_BYTES);
            let mut bytes = alloc::vec![0; len.unwrap_or(0) as usize];
            let json = match len {
                Some(_) if archive::fill(&mut member, &mut bytes)? => strings.json(&header.shape, &bytes),
                _ => None,
            };
            if let Some(json) = json {
                model.add_entry(name, json);
                model.note(name, strings::STRINGS);
                continue;
            }
        }
        let place = |skip, len| archive::place(entry, skip, len);
        add(&mut model, name, header, entry.len_declared(), place, options)?;
    }
    if !is_found {
        let names =
            archive.entries().iter().map(|entry| entry.name().strip_suffix(".npy").unwrap_or(entry.name()));
        return Err(crate::names::no_key(names));
    }
    Ok(model)
}

/// Adds an array of a file or member of `end` bytes.
fn add(
    model: &mut Model,
    name: &str,
    header: Header,
    end: u64,
    place: impl Fn(u64, u64) -> Place,
    options: &Options,
) -> Result<(), Error> {
    let (dtype, is_big) = match header.element {
        Ok(element) => element,
        Err(what) => return model.add(Tensor::unsupported(name, header.shape, what), options),
    };
    let overflow = || Error::view("its size overflows").of(Subject::tensor(name));
    let count =
        header.shape.iter().try_fold(1_u64, |count, &dim| count.checked_mul(dim)).ok_or_else(overflow)?;
    let needed = dtype.byte_len(count)?;
    let available = end.saturating_sub(header.len);
    if available > needed {
        model.note(name, format!("{} bytes after the array are ignored", available - needed));
    }
    let mut view = if header.is_fortran { View::column_major(&header.shape)? } else { View::whole() };
    view.swap = if is_big { dtype.number_width() } else { 0 };
    let stored = (place(header.len, needed.min(available)), needed.min(available));
    model.add(Tensor::new(name, dtype, header.shape, stored, view, &options.limits)?, options)
}
