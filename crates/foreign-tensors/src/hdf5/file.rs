//! Positions in a file: the superblock, addresses, checksums.

use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Range;

use read_at::ReadAt;

use crate::error::{Error, ErrorKind};
use crate::tensor::reserved;

const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// Offset of the signature, if there is a user block: doubled until it is found.
const FIRST_USER_BLOCK: u64 = 512;
/// Bytes of structures that are read for one step of a walk.
const BYTES_PER_STEP: u64 = 64;

/// Where the file is in its source, and how it writes addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Offset of the file in the source.
    origin: u64,
    /// Bytes of the file.
    len: u64,
    /// What addresses count from, from the start of the file.
    base: u64,
    /// Bytes of an address.
    pub(crate) address_size: usize,
    /// Bytes of a length.
    pub(crate) length_size: usize,
}

impl Frame {
    /// Bytes of the file.
    pub(crate) const fn file_len(&self) -> u64 {
        self.len
    }

    /// A range of the source, which is checked.
    ///
    /// # Errors
    ///
    /// If it reaches beyond the file.
    pub(crate) fn range(&self, address: u64, len: u64) -> Result<Range<u64>, Error> {
        let start = self.base.checked_add(address);
        let end = start.and_then(|start| start.checked_add(len));
        match (start, end) {
            (Some(start), Some(end)) if end <= self.len => Ok(self.origin + start..self.origin + end),
            _ => Err(Error::malformed("an address is beyond the end of the file").at(self.offset(address))),
        }
    }

    /// Offset of an address in the source, for messages.
    fn offset(&self, address: u64) -> u64 {
        self.origin.saturating_add(self.base).saturating_add(address)
    }
}

/// An open file.
pub(crate) struct File<'f> {
    source: &'f dyn ReadAt,
    pub(crate) frame: Frame,
    steps: Cell<u64>,
    allowed: u64,
}

impl<'f> File<'f> {
    /// Finds the superblock and reads it. Returns the address of the object header of the root group.
    pub(crate) fn open(source: &'f dyn ReadAt, within: Range<u64>, steps: u64) -> Result<(Self, u64), Error> {
        let len = within.end.saturating_sub(within.start);
        let frame = Frame { origin: within.start, len, base: 0, address_size: 8, length_size: 8 };
        let mut file = Self { source, frame, steps: Cell::new(0), allowed: steps };
        let at = file.find_signature()?;
        // The rest of a superblock of any version.
        let available = (len - at - SIGNATURE.len() as u64).min(120);
        let bytes = file.read(at + SIGNATURE.len() as u64, available)?;
        let root = file.superblock(&bytes, at).map_err(|error| error.at(within.start + at))?;
        Ok((file, root))
    }

    /// A file that has been opened before.
    pub(crate) fn reopen(source: &'f dyn ReadAt, frame: Frame, steps: u64) -> Self {
        Self { source, frame, steps: Cell::new(0), allowed: steps }
    }

    fn find_signature(&self) -> Result<u64, Error> {
        let mut at = 0_u64;
        while at.checked_add(SIGNATURE.len() as u64).is_some_and(|end| end <= self.frame.len) {
            if self.read(at, SIGNATURE.len() as u64)? == SIGNATURE {
                return Ok(at);
            }
            at = at.saturating_mul(2).max(FIRST_USER_BLOCK);
        }
        Err(Error::malformed("the signature of HDF5 is missing"))
    }

    fn superblock(&mut self, bytes: &[u8], at: u64) -> Result<u64, Error> {
        let mut fields = Fields::new(bytes);
        let version = fields.u8()?;
        match version {
            0 | 1 => {
                fields.take(4)?; // Versions of other structures.
            }
            2 | 3 => {}
            _ => return Err(Error::unsupported("this version of the superblock of HDF5")),
        }
        self.frame.address_size = size(fields.u8()?)?;
        self.frame.length_size = size(fields.u8()?)?;
        match version {
            0 => fields.take(1 + 4 + 4)?,
            1 => fields.take(1 + 4 + 4 + 4)?,
            _ => fields.take(1)?,
        };
        let base = fields.address(&self.frame)?;
        fields.address(&self.frame)?; // Free space, or the extension.
        let end = fields.address(&self.frame)?;
        let root = if version < 2 {
            if fields.address(&self.frame)?.is_some() {
                return Err(Error::unsupported("an HDF5 file that a driver split into several"));
            }
            fields.length_of(self.frame.address_size)?; // Offset of the name.
            fields.address(&self.frame)?
        } else {
            let root = fields.address(&self.frame)?;
            let used = bytes.len() - fields.rest().len();
            let mut whole = SIGNATURE.to_vec();
            whole.extend_from_slice(bytes.get(..used).unwrap_or(&[]));
            check(&whole, fields.u32()?)?;
            root
        };
        let (Some(base), Some(end)) = (base, end) else {
            return Err(Error::malformed("the superblock has no base address or end"));
        };
        if end > self.frame.len {
            return Err(Error::malformed("the file is shorter than its superblock says"));
        }
        // Files with a block in front that was added later say 0.
        self.frame.base = if base == 0 { at } else { base };
        root.ok_or_else(|| Error::malformed("the superblock has no root group"))
    }

    /// Counts steps of a walk.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`].
    pub(crate) fn step(&self, steps: u64) -> Result<(), Error> {
        let sum = self.steps.get().saturating_add(steps);
        self.steps.set(sum);
        if sum > self.allowed {
            return Err(ErrorKind::Limit { limit: "steps", allowed: self.allowed }.into());
        }
        Ok(())
    }

    /// Bytes of a structure.
    pub(crate) fn read(&self, address: u64, len: u64) -> Result<Vec<u8>, Error> {
        let range = self.frame.range(address, len)?;
        self.step(1 + len / BYTES_PER_STEP)?;
        let mut bytes = reserved(len)?;
        bytes.resize(len as usize, 0);
        self.source.read_exact_at(range.start, &mut bytes)?;
        Ok(bytes)
    }

    /// Bytes of a structure with a checksum at its end, without the checksum.
    pub(crate) fn read_checked(&self, address: u64, len: u64, signature: &[u8]) -> Result<Vec<u8>, Error> {
        let mut bytes = self.read(address, len)?;
        let sum = bytes.len().checked_sub(4).map(|at| bytes.split_off(at)).unwrap_or_default();
        let checked = Fields::new(&sum).u32().and_then(|sum| check(&bytes, sum));
        let signed = if bytes.starts_with(signature) { Ok(()) } else { Err(Error::malformed(SIGNED)) };
        checked.and(signed).map_err(|error| error.at(self.frame.offset(address)))?;
        Ok(bytes)
    }

    /// Adds the offset of a structure to an error in it.
    pub(crate) fn at<T>(&self, address: u64, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| error.at(self.frame.offset(address)))
    }
}

/// Where a structure has another signature.
pub(crate) const SIGNED: &str = "a structure does not begin with its signature";

/// Compares a checksum.
pub(crate) fn check(bytes: &[u8], expected: u32) -> Result<(), Error> {
    if lookup3(bytes) == expected { Ok(()) } else { Err(Error::malformed("a checksum does not match")) }
}

fn size(byte: u8) -> Result<usize, Error> {
    match byte {
        2 | 4 | 8 => Ok(byte.into()),
        _ => Err(Error::unsupported("HDF5 with addresses or lengths other than 2, 4 or 8 bytes")),
    }
}

/// What is left of a structure.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    pub(crate) const fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn rest(&self) -> &'b [u8] {
        self.0
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'b [u8], Error> {
        let cut = || Error::malformed("a structure is cut short");
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(cut)?;
        self.0 = rest;
        Ok(taken)
    }

    /// An unsigned integer of up to 8 bytes.
    pub(crate) fn length_of(&mut self, size: usize) -> Result<u64, Error> {
        let bytes = self.take(size)?;
        Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.length_of(1)? as u8)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        Ok(self.length_of(2)? as u16)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        Ok(self.length_of(4)? as u32)
    }

    pub(crate) fn length(&mut self, frame: &Frame) -> Result<u64, Error> {
        self.length_of(frame.length_size)
    }

    /// An address; `None` for the one that stands for nothing.
    pub(crate) fn address(&mut self, frame: &Frame) -> Result<Option<u64>, Error> {
        let address = self.length_of(frame.address_size)?;
        let undefined = u64::MAX >> (64 - 8 * frame.address_size);
        Ok((address != undefined).then_some(address))
    }

    /// An address that has to be there.
    pub(crate) fn some_address(&mut self, frame: &Frame) -> Result<u64, Error> {
        self.address(frame)?.ok_or_else(|| Error::malformed("an address is missing"))
    }

    pub(crate) fn signature(&mut self, signature: &[u8]) -> Result<(), Error> {
        if self.take(signature.len())? == signature { Ok(()) } else { Err(Error::malformed(SIGNED)) }
    }
}

/// Bytes of the smallest unsigned integer that holds a value.
pub(crate) const fn bytes_for(value: u64) -> usize {
    let bits = 64 - value.leading_zeros() as usize;
    if bits == 0 { 1 } else { bits.div_ceil(8) }
}

/// The checksum of the structures of HDF5: `hashlittle` of Bob Jenkins' lookup3, with an initial value of 0.
fn lookup3(bytes: &[u8]) -> u32 {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let [mut a, mut b, mut c] = [start; 3];
    let mut rest = bytes;
    while rest.len() > 12 {
        let Some((block, next)) = rest.split_at_checked(12) else { break };
        let mut words = block.chunks(4).map(word);
        let mut add = |to: &mut u32| *to = to.wrapping_add(words.next().unwrap_or(0));
        add(&mut a);
        add(&mut b);
        add(&mut c);
        for (left, by) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
            // Each line of the original: x -= z; x ^= rotated z; z += y.
            let (x, y, z) = match left % 3 {
                0 => (&mut a, &mut b, &mut c),
                1 => (&mut b, &mut c, &mut a),
                _ => (&mut c, &mut a, &mut b),
            };
            *x = x.wrapping_sub(*z) ^ z.rotate_left(by);
            *z = z.wrapping_add(*y);
        }
        rest = next;
    }
    if rest.is_empty() {
        return c;
    }
    let mut words = rest.chunks(4).map(word);
    let mut add = |to: &mut u32| *to = to.wrapping_add(words.next().unwrap_or(0));
    add(&mut a);
    add(&mut b);
    add(&mut c);
    for (left, by) in [14, 11, 25, 16, 4, 14, 24].into_iter().enumerate() {
        // x ^= y; x -= rotated y.
        let (x, y) = match left % 3 {
            0 => (&mut c, b),
            1 => (&mut a, c),
            _ => (&mut b, a),
        };
        *x = (*x ^ y).wrapping_sub(y.rotate_left(by));
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_lookup3() {
        // From the driver of lookup3.c.
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
        assert_eq!(lookup3(b""), 0xdead_beef);
    }

    #[test]
    fn sizes_of_counts_are_the_smallest() {
        assert_eq!([0, 1, 255, 256, u64::MAX].map(bytes_for), [1, 1, 1, 2, 8]);
    }
}
