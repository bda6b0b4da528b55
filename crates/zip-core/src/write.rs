//! Archives of stored members: the bytes around them.

use alloc::vec::Vec;

use crate::entry::{CENTRAL_LEN, LOCAL_LEN, UTF8, ZIP64};

/// First length and offset that take a field of 64 bits.
const LARGE: u64 = u32::MAX as u64;

/// Makes the headers of an archive whose members are stored one after the other, without compression. The same members make the same
/// bytes: times are 1980-01-01, the first that the format can represent.
///
/// The bytes of the archive are, for each member, those of [`member`](Self::member) and its data, and then those of [`end`](Self::end).
#[derive(Debug, Default)]
pub struct StoredArchive {
    directory: Vec<u8>,
    members: u64,
    /// Where the next member begins.
    position: u64,
}

impl StoredArchive {
    /// The local header of the next member, which its data follow: `len` bytes with the checksum `crc32`. `None` if the name is longer
    /// than 65,535 bytes.
    pub fn member(&mut self, name: &str, len: u64, crc32: u32) -> Option<Vec<u8>> {
        let name_len = u16::try_from(name.len()).ok()?;
        let is_long = len >= LARGE;
        let short_len = if is_long { u32::MAX } else { len as u32 };
        // Version 4.5 of the format has lengths of 64 bits.
        let fields = |version: u16, extra: &[u8], out: &mut Vec<u8>| {
            out.extend(version.to_le_bytes());
            out.extend(UTF8.to_le_bytes());
            // Stored; 0:00 on 1980-01-01.
            out.extend([0, 0, 0, 0, 0x21, 0]);
            out.extend(crc32.to_le_bytes());
            out.extend([short_len.to_le_bytes(), short_len.to_le_bytes()].concat());
            out.extend(name_len.to_le_bytes());
            out.extend((extra.len() as u16).to_le_bytes());
        };
        let version = if is_long { 45 } else { 20 };
        let lens = if is_long { extra(&[len, len]) } else { Vec::new() };
        let mut local = Vec::with_capacity(LOCAL_LEN + name.len() + lens.len());
        local.extend(b"PK\x03\x04");
        fields(version, &lens, &mut local);
        local.extend(name.as_bytes());
        local.extend(&lens);

        let is_far = self.position >= LARGE;
        let mut large = if is_long { [len, len].to_vec() } else { Vec::new() };
        large.extend(is_far.then_some(self.position));
        let extra = if large.is_empty() { Vec::new() } else { extra(&large) };
        let version = if large.is_empty() { 20 } else { 45_u16 };
        self.directory.reserve(CENTRAL_LEN + name.len() + extra.len());
        self.directory.extend(b"PK\x01\x02");
        self.directory.extend(version.to_le_bytes());
        fields(version, &extra, &mut self.directory);
        // Comment, disk, attributes.
        self.directory.extend([0; 10]);
        self.directory.extend((if is_far { u32::MAX } else { self.position as u32 }).to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.directory.extend(&extra);

        self.members += 1;
        self.position += local.len() as u64 + len;
        Some(local)
    }

    /// The directory at the end.
    #[must_use]
    pub fn end(self) -> Vec<u8> {
        let Self { mut directory, members, position } = self;
        let len = directory.len() as u64;
        if members >= u64::from(u16::MAX) || len >= LARGE || position >= LARGE {
            let end = position + len;
            directory.extend(b"PK\x06\x06");
            directory.extend(44_u64.to_le_bytes());
            directory.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            directory.extend([members, members, len, position].map(u64::to_le_bytes).concat());
            directory.extend(b"PK\x06\x07\0\0\0\0");
            directory.extend(end.to_le_bytes());
            directory.extend(1_u32.to_le_bytes());
        }
        let members = u16::try_from(members).unwrap_or(u16::MAX).to_le_bytes();
        let short = |value: u64| u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes();
        directory.extend(b"PK\x05\x06\0\0\0\0");
        directory.extend([members, members].concat());
        directory.extend([short(len), short(position)].concat());
        directory.extend([0, 0]);
        directory
    }
}

/// The extra field of large values.
fn extra(values: &[u64]) -> Vec<u8> {
    let mut extra = ZIP64.to_le_bytes().to_vec();
    extra.extend((8 * values.len() as u16).to_le_bytes());
    values.iter().for_each(|value| extra.extend(value.to_le_bytes()));
    extra
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use crate::{Archive, Entry, Limits};

    #[test]
    fn what_is_written_is_read_without_findings() {
        let mut archive = StoredArchive::default();
        let mut bytes = Vec::new();
        for (name, data) in [("a.npy", &b"one"[..]), ("folder/ä.npy", b""), ("c", b"three")] {
            bytes.extend(archive.member(name, data.len() as u64, crc32fast::hash(data)).unwrap());
            bytes.extend(data);
        }
        bytes.extend(archive.end());
        let (read, findings) = Archive::open(&bytes, &Limits::default()).unwrap();
        assert!(findings.is_empty(), "{findings:?}");
        let names: Vec<&str> = read.entries().iter().map(Entry::name).collect();
        assert_eq!(names, ["a.npy", "folder/ä.npy", "c"]);
        assert!(StoredArchive::default().member(&"n".repeat(65_536), 0, 0).is_none());
    }

    #[test]
    fn many_members_take_the_large_end() {
        let mut archive = StoredArchive::default();
        let mut bytes = Vec::new();
        for number in 0..66_000 {
            bytes.extend(archive.member(&format!("{number}"), 0, 0).unwrap());
        }
        bytes.extend(archive.end());
        let (read, findings) = Archive::open(&bytes, &Limits::default()).unwrap();
        assert!(findings.is_empty(), "{findings:?}");
        assert_eq!(read.entries().len(), 66_000);
    }
}
