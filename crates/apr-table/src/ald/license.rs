//! The licence at the end of a file.

use core::ops::Range;

use read_at::ReadAt;

use super::header::LICENSE_LEN;
use super::{MAX_SECTION, invalid, read};
use crate::error::{Error, within};

/// A licence. Only the checksum covers it: anyone can change it, also in a signed file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct License {
    /// Its identifier.
    pub id: [u8; 16],
    /// SHA-256 of the licensee.
    pub licensee_sha256: [u8; 32],
    /// Seconds since 1970.
    pub issued_at: u64,
    /// Seconds since 1970; 0 if it does not expire.
    pub expires_at: u64,
    /// Bits: seats, expiration, queries, watermarked, revocable, transferable.
    pub flags: u8,
    /// Seats; 0 for no limit.
    pub seats: u16,
    /// Queries; 0 for no limit.
    pub queries: u32,
    /// Further terms.
    pub terms: String,
}

impl License {
    pub(super) fn read(source: &dyn ReadAt, range: &Range<u64>) -> Result<Self, Error> {
        let mut bytes = [0; LICENSE_LEN as usize];
        read(source, range.start, &mut bytes)?;
        let mut rest = &bytes[..];
        let mut license = Self {
            id: take(&mut rest),
            licensee_sha256: take(&mut rest),
            issued_at: u64::from_le_bytes(take(&mut rest)),
            expires_at: u64::from_le_bytes(take(&mut rest)),
            flags: u8::from_le_bytes(take(&mut rest)),
            seats: u16::from_le_bytes(take(&mut rest)),
            queries: u32::from_le_bytes(take(&mut rest)),
            terms: String::new(),
        };
        let (len, at) = (u64::from(u32::from_le_bytes(take(&mut rest))), range.start + LICENSE_LEN);
        if len > range.end - at {
            return Err(invalid("the terms of the licence are cut off").at(at));
        }
        within("the terms of the licence", len, MAX_SECTION)?;
        let mut terms = vec![0; len as usize];
        read(source, at, &mut terms)?;
        license.terms = String::from_utf8(terms).map_err(|_| invalid("the terms are not UTF-8").at(at))?;
        Ok(license)
    }
}

/// The next field, which is there: the fields together have the length of the array.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (field, after) = rest.split_first_chunk().map_or(([0; N], &[][..]), |(field, after)| (*field, after));
    *rest = after;
    field
}
