//! Kinds of ZIP archives, recognized by the names of their members.

use crate::Format;

/// Maximum number of directory entries that are read.
pub const MAX_MEMBERS: usize = 4096;

/// Maximum length of the part of a member's name that is read.
const NAME: usize = 128;
/// Bytes of an entry of the directory before its name.
const ENTRY: usize = 46;
/// Bytes of the record at the end of an archive, without its comment.
const END: usize = 22;
/// Length of the ZIP64 locator before it.
const LOCATOR: usize = 20;

/// Whether a file begins as an archive.
pub(crate) fn is_archive(first: &[u8]) -> bool {
    first.starts_with(b"PK\x03\x04") || first.starts_with(b"PK\x05\x06")
}

/// The kind by the names so far.
#[derive(Debug, Default)]
struct Members {
    has_pickle: bool,
    has_storages: bool,
    has_code: bool,
    has_export: bool,
    has_keras: bool,
    has_office: bool,
    has_skops: bool,
    has_arrays: bool,
    n_members: usize,
}

impl Members {
    fn add(&mut self, name: &[u8]) {
        self.n_members += 1;
        let (folder, base) = match name.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => (&name[..slash], &name[slash + 1..]),
            None => (&name[..0], name),
        };
        // PyTorch puts everything into one folder, whatever its name.
        let below = name.iter().position(|&byte| byte == b'/').map_or(name, |slash| &name[slash + 1..]);
        self.has_pickle |= base == b"data.pkl";
        self.has_storages |=
            matches!(below, b"version" | b"byteorder" | b".format_version" | b".storage_alignment")
                || folder.ends_with(b"/data") && !base.is_empty() && base.iter().all(u8::is_ascii_digit);
        self.has_code |= below == b"constants.pkl" || below.starts_with(b"code/");
        self.has_export |= matches!(base, b"serialized_exported_program.json" | b"archive_format")
            || below.starts_with(b"models/")
            || name.starts_with(b"models/");
        self.has_keras |= name == b"model.weights.h5";
        self.has_office |= name == b"[Content_Types].xml";
        self.has_skops |= name == b"schema.json";
        self.has_arrays |= base.ends_with(b".npy");
    }

    fn format(&self) -> Format {
        if self.has_export {
            Format::TorchExport
        } else if self.has_code {
            Format::TorchScript
        } else if self.has_pickle || self.has_storages {
            Format::Torch
        } else if self.has_keras {
            Format::Keras
        } else if self.has_office {
            Format::Office
        } else if self.has_skops {
            Format::Skops
        } else if self.has_arrays {
            Format::Npz
        } else {
            Format::Zip
        }
    }
}

/// The kind by the first member; the directory at the end of the file is more precise.
pub(crate) fn by_first_member(first: &[u8]) -> Format {
    let mut members = Members::default();
    let len = first.get(26..28).map_or(0, |len| usize::from(u16::from_le_bytes([len[0], len[1]])));
    let name = first.get(30..).map_or(&[][..], |rest| rest.get(..len).unwrap_or(rest));
    members.add(name);
    match members.format() {
        // The first of the three members that Keras writes.
        Format::Zip if name == b"metadata.json" => Format::Keras,
        format => format,
    }
}

/// The kind by the directory; `None` if there is none or it is invalid.
pub(crate) fn by_directory<E>(
    len: u64,
    read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Option<Format>, E> {
    let Some((mut at, end)) = directory(len, read)? else { return Ok(None) };
    let mut members = Members::default();
    let mut buf = [0; ENTRY + NAME];
    while at < end && members.n_members < MAX_MEMBERS {
        let here = usize::try_from(end - at).map_or(buf.len(), |left| left.min(buf.len()));
        let entry = &mut buf[..here];
        read(at, entry)?;
        if !entry.starts_with(b"PK\x01\x02") || here < ENTRY {
            return Ok(None);
        }
        let [name_len, extra, comment] =
            [28, 30, 32].map(|at| u16::from_le_bytes([entry[at], entry[at + 1]]));
        let name = &entry[ENTRY..];
        members.add(name.get(..usize::from(name_len)).unwrap_or(name));
        at += ENTRY as u64 + u64::from(name_len) + u64::from(extra) + u64::from(comment);
    }
    Ok(Some(members.format()))
}

/// Where the directory begins and ends.
fn directory<E>(
    len: u64,
    read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Option<(u64, u64)>, E> {
    // Backwards from the end, in pieces that overlap by a record; a comment has at most 65,535 bytes.
    let mut buf = [0; 1024];
    let lowest = len.saturating_sub((END + 0xffff) as u64);
    let mut piece_end = len;
    while piece_end - lowest >= END as u64 {
        let from = piece_end.saturating_sub(buf.len() as u64).max(lowest);
        let piece = &mut buf[..usize::try_from(piece_end - from).unwrap_or(1024)];
        read(from, piece)?;
        let found = (0..=piece.len() - END).rev().find(|&at| {
            let comment = u64::from(u16::from_le_bytes([piece[at + 20], piece[at + 21]]));
            piece[at..].starts_with(b"PK\x05\x06") && from + (at + END) as u64 + comment == len
        });
        if let Some(at) = found {
            let size = [12, 13, 14, 15].map(|field| piece[at + field]);
            let (end, size) = (from + at as u64, u32::from_le_bytes(size));
            let small = end.checked_sub(u64::from(size)).map(|begin| (begin, end));
            return Ok(large_directory(end, read)?.or(small));
        }
        if from == lowest {
            break;
        }
        piece_end = from + END as u64 - 1;
    }
    Ok(None)
}

/// The same where there are records of 64 bits: a locator before the last record names another record, which has the size.
fn large_directory<E>(
    end: u64,
    read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Option<(u64, u64)>, E> {
    let Some(at) = end.checked_sub(LOCATOR as u64) else { return Ok(None) };
    let mut locator = [0; LOCATOR];
    read(at, &mut locator)?;
    let mut record = [0; 56];
    let begin = u64::from_le_bytes([8, 9, 10, 11, 12, 13, 14, 15].map(|field: usize| locator[field]));
    let is_inside = begin.checked_add(record.len() as u64).is_some_and(|record_end| record_end <= at);
    if !locator.starts_with(b"PK\x06\x07") || !is_inside {
        return Ok(None);
    }
    read(begin, &mut record)?;
    let size = u64::from_le_bytes([40, 41, 42, 43, 44, 45, 46, 47].map(|field: usize| record[field]));
    let is_record = record.starts_with(b"PK\x06\x06");
    Ok(begin.checked_sub(size).filter(|_| is_record).map(|first| (first, begin)))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::convert::Infallible;

    use super::*;
    use crate::identify;

    /// An archive of empty members, optionally with ZIP64 records.
    fn archive(names: &[&str], has_64_bits: bool) -> Vec<u8> {
        let mut file = Vec::new();
        let mut entries = Vec::new();
        for name in names {
            let len = (name.len() as u16).to_le_bytes();
            entries.extend_from_slice(b"PK\x01\x02");
            entries.extend_from_slice(&[0; 24]);
            entries.extend_from_slice(&len);
            entries.extend_from_slice(&[0; 16]);
            entries.extend_from_slice(name.as_bytes());
            file.extend_from_slice(b"PK\x03\x04");
            file.extend_from_slice(&[0; 22]);
            file.extend_from_slice(&len);
            file.extend_from_slice(&[0; 2]);
            file.extend_from_slice(name.as_bytes());
        }
        file.extend_from_slice(&entries);
        if has_64_bits {
            let begin = file.len() as u64;
            file.extend_from_slice(b"PK\x06\x06");
            file.extend_from_slice(&[0; 36]);
            file.extend_from_slice(&(entries.len() as u64).to_le_bytes());
            file.extend_from_slice(&[0; 8]);
            file.extend_from_slice(b"PK\x06\x07");
            file.extend_from_slice(&[0; 4]);
            file.extend_from_slice(&begin.to_le_bytes());
            file.extend_from_slice(&[0; 4]);
        }
        file.extend_from_slice(b"PK\x05\x06");
        file.extend_from_slice(&[0; 8]);
        let size = if has_64_bits { u32::MAX } else { entries.len() as u32 };
        file.extend_from_slice(&size.to_le_bytes());
        file.extend_from_slice(&[0; 6]);
        file
    }

    fn of(file: &[u8]) -> Option<Format> {
        let read = |offset: u64, buf: &mut [u8]| {
            buf.copy_from_slice(&file[offset as usize..][..buf.len()]);
            Ok::<(), Infallible>(())
        };
        identify(file.len() as u64, read).unwrap()
    }

    #[test]
    fn the_directory_tells_kinds_of_archives_apart() {
        for (names, format) in [
            (&["m/data.pkl", "m/data/0", "m/version"][..], Format::Torch),
            (&["m/data/0", "m/data.pkl", "m/code/__torch__.py", "m/constants.pkl"], Format::TorchScript),
            (&["m/data/weights/weight_0", "m/models/model.json", "m/archive_format"], Format::TorchExport),
            (&["version", "serialized_exported_program.json"], Format::TorchExport),
            (&["w.npy", "b.npy"], Format::Npz),
            (&["layer/w.npy"], Format::Npz),
            (&["metadata.json", "config.json", "model.weights.h5"], Format::Keras),
            (&["140234.npy", "140250.npy", "schema.json"], Format::Skops),
            (&["[Content_Types].xml", "xl/workbook.xml"], Format::Office),
            (&["readme.txt", "model.safetensors"], Format::Zip),
        ] {
            assert_eq!(of(&archive(names, false)), Some(format), "{names:?}");
            assert_eq!(of(&archive(names, true)), Some(format), "{names:?}, records of 64 bits");
        }
    }

    #[test]
    fn the_directory_is_found_before_a_comment() {
        let mut file = archive(&["readme.txt", "m/data.pkl"], false);
        let at = file.len() - 2;
        file[at..].copy_from_slice(&60_000_u16.to_le_bytes());
        file.resize(file.len() + 60_000, b'.');
        assert_eq!(of(&file), Some(Format::Torch));
    }

    #[test]
    fn a_damaged_directory_leaves_what_the_first_member_says() {
        let whole = archive(&["m/data.pkl", "m/data/0"], true);
        for len in 40..whole.len() {
            assert_eq!(of(&whole[..len]), Some(Format::Torch), "{len} bytes");
        }
        for at in 0..whole.len() {
            let mut file = whole.clone();
            file[at] ^= 0xff;
            let _ = of(&file);
        }
    }
}
