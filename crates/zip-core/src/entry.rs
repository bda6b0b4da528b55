//! Entries of the central directory.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::ops::Range;

use crate::fields::Fields;

/// Fixed part of a central header, and of a local one.
pub(crate) const CENTRAL_LEN: usize = 46;
pub(crate) const LOCAL_LEN: usize = 30;

/// Bits of the flags.
const DESCRIPTOR: u16 = 1 << 3;
pub(crate) const UTF8: u16 = 1 << 11;
/// Encrypted, with strong encryption, with a masked local header: bits 0, 6 and 13.
const ENCRYPTED: u16 = 0x2041;

/// Extra fields.
pub(crate) const ZIP64: u16 = 0x0001;
const UNICODE_PATH: u16 = 0x7075;

/// A method of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method(pub u16);

impl Method {
    /// Not compressed.
    pub const STORED: Self = Self(0);
    /// Deflate.
    pub const DEFLATED: Self = Self(8);
}

/// What the central directory says of a member.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(crate) name: String,
    pub(crate) name_bytes: alloc::boxed::Box<[u8]>,
    pub(crate) method: Method,
    pub(crate) flags: u16,
    pub(crate) crc32: u32,
    pub(crate) stored_len: u64,
    pub(crate) len: u64,
    /// Of the header in the directory, from the start of the source.
    pub(crate) central: u64,
    /// Of the local header, as declared.
    pub(crate) header: u64,
    pub(crate) data: Option<Range<u64>>,
}

impl Entry {
    /// The name. What is not UTF-8 is replaced, and reported as [`Problem::Name`](crate::Problem::Name).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name as stored.
    #[must_use]
    pub const fn name_bytes(&self) -> &[u8] {
        &self.name_bytes
    }

    /// How it is compressed.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// Its length when decompressed, as declared.
    #[must_use]
    pub const fn len_declared(&self) -> u64 {
        self.len
    }

    /// CRC-32 of the decompressed data, as declared; PyTorch may write 0.
    #[must_use]
    pub const fn crc32_declared(&self) -> u32 {
        self.crc32
    }

    /// Where its local header is.
    #[must_use]
    pub const fn header_offset(&self) -> u64 {
        self.header
    }

    /// Where its data are, compressed as they are; `None` if they are not within the file.
    #[must_use]
    pub const fn data(&self) -> Option<&Range<u64>> {
        self.data.as_ref()
    }

    /// Where its data are, if they are not compressed: they can be used in place.
    #[must_use]
    pub fn stored(&self) -> Option<&Range<u64>> {
        self.data.as_ref().filter(|_| self.method == Method::STORED && self.stored_len == self.len)
    }

    /// Whether it stands for a folder.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.name.ends_with('/')
    }

    pub(crate) const fn is_encrypted(&self) -> bool {
        self.flags & ENCRYPTED != 0
    }

    pub(crate) const fn has_descriptor(&self) -> bool {
        self.flags & DESCRIPTOR != 0
    }
}

/// A header of either kind.
pub(crate) struct Header<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) flags: u16,
    pub(crate) method: u16,
    pub(crate) crc32: u32,
    pub(crate) stored_len: u64,
    pub(crate) len: u64,
    /// Of the local header; 0 in one.
    pub(crate) offset: u64,
    /// Whether the extra fields are well-formed, and leave the name as it is.
    pub(crate) sound_extra: bool,
    /// Whether it is a symbolic link; no local header says that.
    pub(crate) is_link: bool,
    /// Bytes of the header.
    pub(crate) header_len: usize,
}

/// Reads a central header.
pub(crate) fn central(bytes: &[u8]) -> Option<Header<'_>> {
    let mut fields = Fields(bytes.get(..CENTRAL_LEN)?);
    if fields.array() != *b"PK\x01\x02" {
        return None;
    }
    fields.u32(); // Versions.
    let (flags, method) = (fields.u16(), fields.u16());
    fields.u32(); // Time and date.
    let (crc32, stored_len, len) = (fields.u32(), fields.u32(), fields.u32());
    let (name_len, extra_len, comment_len) = (fields.u16(), fields.u16(), fields.u16());
    fields.u16(); // Disk.
    fields.u16();
    // Of Unix, in the upper half: the type of the file in its upper four bits.
    let is_link = fields.u32() >> 28 == 0xa;
    let offset = fields.u32();
    let mut rest = Fields(bytes.get(CENTRAL_LEN..)?);
    let name = rest.take(name_len.into())?;
    let extra = rest.take(extra_len.into())?;
    rest.take(comment_len.into())?;
    let sizes = [len.into(), stored_len.into(), offset.into()];
    let ([len, stored_len, offset], sound_extra) = extra_fields(extra, name, sizes);
    let header_len = bytes.len() - rest.0.len();
    Some(Header { name, flags, method, crc32, stored_len, len, offset, sound_extra, is_link, header_len })
}

/// The lengths of the name and the extra fields of a local header, which are after it.
pub(crate) fn local_tail(fixed: &[u8; LOCAL_LEN]) -> Option<usize> {
    let mut fields = Fields(fixed.get(26..)?);
    fixed.starts_with(b"PK\x03\x04").then(|| usize::from(fields.u16()) + usize::from(fields.u16()))
}

/// Reads a local header with its name and extra fields.
pub(crate) fn local(bytes: &[u8]) -> Option<Header<'_>> {
    let mut fields = Fields(bytes.get(..LOCAL_LEN)?);
    fields.array::<6>(); // Signature and version.
    let (flags, method) = (fields.u16(), fields.u16());
    fields.u32(); // Time and date.
    let (crc32, stored_len, len) = (fields.u32(), fields.u32(), fields.u32());
    let (name_len, extra_len) = (fields.u16(), fields.u16());
    let mut rest = Fields(bytes.get(LOCAL_LEN..)?);
    let name = rest.take(name_len.into())?;
    let extra = rest.take(extra_len.into())?;
    let ([len, stored_len, _], sound_extra) = extra_fields(extra, name, [len.into(), stored_len.into(), 0]);
    Some(Header {
        name,
        flags,
        method,
        crc32,
        stored_len,
        len,
        offset: 0,
        sound_extra,
        is_link: false,
        header_len: bytes.len(),
    })
}

/// Sizes and offset with those of zip64 in place of 2^32 - 1, and whether the fields are well-formed and leave the name as it is.
fn extra_fields(extra: &[u8], name: &[u8], mut sizes: [u64; 3]) -> ([u64; 3], bool) {
    let mut rest = Fields(extra);
    let mut sound = true;
    let mut seen = false;
    while rest.0.len() >= 4 {
        let (kind, len) = (rest.u16(), rest.u16());
        let Some(content) = rest.take(len.into()) else { return (sizes, false) };
        match kind {
            ZIP64 => {
                let mut content = Fields(content);
                for size in sizes.iter_mut().filter(|size| **size == u64::from(u32::MAX)) {
                    sound &= content.0.len() >= 8;
                    if content.0.len() >= 8 {
                        *size = content.u64();
                    }
                }
                sound &= !seen; // Some readers take the first, some the last.
                seen = true;
            }
            // Version, checksum of the name, and the name in UTF-8.
            UNICODE_PATH => sound &= content.get(5..) == Some(name),
            _ => {}
        }
    }
    // PyTorch pads with fields; a rest of up to three bytes is padding of others.
    (sizes, sound && rest.0.iter().all(|byte| *byte == 0))
}

/// The name as text, and whether every reader sees the same one inside the folder.
pub(crate) fn name(bytes: &[u8], flags: u16) -> (String, bool) {
    let text = String::from_utf8_lossy(bytes);
    let utf8 = core::str::from_utf8(bytes).is_ok() && (flags & UTF8 != 0 || bytes.is_ascii());
    let hazard =
        bytes.iter().any(|byte| matches!(byte, 0 | b'\\')) || bytes.is_empty() || bytes.starts_with(b"/");
    let leaves = bytes.split(|byte| *byte == b'/').any(|part| part == b"..");
    let drive = matches!(bytes, [letter, b':', ..] if letter.is_ascii_alphabetic());
    ((*text).to_owned(), utf8 && !hazard && !leaves && !drive)
}
