//! `.npz` and `.npy` files as output.

use alloc::collections::BTreeSet;
use std::io::Write;

use crc32fast::Hasher;
use foreign_format::Format as Foreign;
use foreign_tensors::numpy;
use zip_core::StoredArchive;

use crate::error::{CODE_NOT_CARRIED, Failure};
use crate::input::{Format, Tensor};
use crate::output::rewrite::{FileContent, Job};
use crate::output::{Destination, Run};
use crate::terminal::Console;
use crate::terminal::Progress;
use crate::terminal::escape;
use crate::terminal::human::{exact_bytes, plural};

/// An array: the name of its member, what precedes its elements, and these.
struct Array<'m> {
    member: String,
    header: Vec<u8>,
    tensor: Tensor<'m>,
}

impl Array<'_> {
    fn byte_len(&self) -> u64 {
        self.header.len() as u64 + self.tensor.byte_len()
    }
}

/// Writes tensors as an archive of arrays in their order, or the one tensor that there is as an array, and reports it.
///
/// # Errors
///
/// If NumPy has no type for a tensor, an array is asked for and there are several tensors, the input cannot be read or the output not be
/// written.
pub(super) fn write_arrays<'n, 'm: 'n>(
    format: Foreign,
    tensors: impl Iterator<Item = (&'n str, Tensor<'m>)>,
    job: &Job<'_>,
    console: &mut Console,
) -> Result<(), Failure> {
    let arrays = tensors.map(|(name, tensor)| array(name, tensor)).collect::<Result<Vec<_>, Failure>>()?;
    let mut members = BTreeSet::new();
    if let Some(array) = arrays.iter().find(|array| !members.insert(&array.member)) {
        return Err(super::same_name(Some(array.tensor.name())));
    }
    let mut bytes: u64 = arrays.iter().map(Array::byte_len).sum();
    if format == Foreign::Npz {
        // The headers alone: their lengths do not depend on the checksums.
        let mut archive = StoredArchive::default();
        for array in &arrays {
            bytes += header_of(&mut archive, array, 0)?.len() as u64;
        }
        bytes += archive.end().len() as u64;
    } else if arrays.len() != 1 {
        let what =
            format!("a .npy file is one array, and these are {}", plural(arrays.len() as u64, "tensor"));
        return Err(
            Failure::new(CODE_NOT_CARRIED, what).help("choose one with --select, or write an .npz file")
        );
    }
    if job.run == Run::Write {
        let mut progress = console.progress("writing", bytes);
        job.destination.fill(job.overwrite, |out| match format {
            Foreign::Npz => write_archive(&arrays, out, job.destination, &mut progress),
            _ => arrays.iter().try_for_each(|array| write(array, out, job.destination, &mut progress)),
        })?;
    }
    let format = Format::Foreign(format);
    if console.is_json() {
        let content = FileContent::Arrays { tensors: arrays.len() as u64 };
        return console.report(&job.report(bytes, format, content));
    }
    let label = escape::path(job.destination.label());
    let (count, bytes) = (plural(arrays.len() as u64, "tensor"), exact_bytes(bytes));
    job.tell(&format!("{label}: {}, {count}, {bytes}", format.title()), console)
}

fn array<'m>(name: &str, tensor: Tensor<'m>) -> Result<Array<'m>, Failure> {
    let refused = |what: String| Failure::new(CODE_NOT_CARRIED, what).of_tensor(Some(tensor.name()));
    let dtype = tensor.dtype();
    let header = numpy::header(dtype, tensor.shape());
    // Of the types that no format of tensors has, NumPy has some.
    if header.is_none() || dtype.known().is_some() {
        tensor.check_type()?;
    }
    let header = header.ok_or_else(|| {
        let failure = refused(format!("NumPy has no element type {dtype}"));
        failure.help(match dtype.element() {
            None => "to make plain numbers of its blocks, add --dequantize f32 (or f16)",
            Some(_) => "leave the tensor out with --exclude, or write safetensors",
        })
    })?;
    let leaves = name.starts_with('/') || name.split(['/', '\\']).any(|part| part == "..");
    if leaves {
        return Err(refused("as the name of a file, the name of the tensor leaves its folder".to_owned())
            .help(
                "give it another name with --rename: programs that unpack the archive would write elsewhere",
            ));
    }
    Ok(Array { member: format!("{name}.npy"), header, tensor })
}

fn header_of(archive: &mut StoredArchive, array: &Array<'_>, crc32: u32) -> Result<Vec<u8>, Failure> {
    archive.member(&array.member, array.byte_len(), crc32).ok_or_else(|| {
        Failure::new(CODE_NOT_CARRIED, "the name is too long for an archive")
            .of_tensor(Some(array.tensor.name()))
            .help("give it another name with --rename")
    })
}

/// The checksum stands before the elements: these are read twice.
fn write_archive(
    arrays: &[Array<'_>],
    out: &mut dyn Write,
    place: &Destination,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| place.write_failure(&error);
    let (mut archive, mut buf) = (StoredArchive::default(), Vec::new());
    for array in arrays {
        let mut crc32 = Hasher::new();
        crc32.update(&array.header);
        array.tensor.stream(&mut buf, |chunk| -> Result<(), Failure> {
            crc32.update(chunk);
            Ok(())
        })?;
        out.write_all(&header_of(&mut archive, array, crc32.finalize())?).map_err(failed)?;
        write(array, out, place, progress)?;
    }
    out.write_all(&archive.end()).map_err(failed)
}

fn write(
    array: &Array<'_>,
    out: &mut dyn Write,
    place: &Destination,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| place.write_failure(&error);
    progress.item(array.tensor.name());
    out.write_all(&array.header).map_err(failed)?;
    let mut buf = Vec::new();
    array.tensor.stream(&mut buf, |chunk| -> Result<(), Failure> {
        progress.advance(chunk.len());
        out.write_all(chunk).map_err(failed)
    })
}
