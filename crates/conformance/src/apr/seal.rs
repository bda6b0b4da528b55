//! Recomputes checksums of changed files, so that a test reaches the checks after them.

use apr_container::v2::Magic;

/// CRC-32 of the parts as one, as both versions use it (IEEE 802.3, reflected): bitwise, slow, and independent of
/// ours.
///
/// # Examples
///
/// ```
/// assert_eq!(conformance::apr::seal::crc32(&[b"1234", b"56789"]), 0xCBF4_3926);
/// ```
#[must_use]
pub fn crc32(parts: &[&[u8]]) -> u32 {
    let register = parts.iter().copied().flatten().fold(u32::MAX, |register, byte| {
        (0..8).fold(register ^ u32::from(*byte), |register, _| {
            let carry = register & 1 == 1;
            (register >> 1) ^ if carry { 0xEDB8_8320 } else { 0 }
        })
    });
    !register
}

/// Writes the checksums that a file of either version would have: the last four bytes, and for version 2
/// those of the header first.
///
/// # Examples
///
/// ```
/// use conformance::apr::{vectors, seal};
///
/// let mut file = vectors::read("hostile/v2h00_good.bin")?;
/// let good = file.clone();
/// let last = file.len() - 1;
/// file[40] ^= 1;
/// file[last] ^= 1;
/// seal::seal(&mut file);
/// assert_eq!(file, good);
/// # Ok::<(), conformance::vectors::Error>(())
/// ```
pub fn seal(file: &mut [u8]) {
    if Magic::of(file).is_some() {
        seal_header(file);
    }
    if let Some((sealed, checksum)) = file.split_last_chunk_mut::<4>() {
        *checksum = crc32(&[sealed]).to_le_bytes();
    }
}

/// Writes the checksum of a header of version 2.
pub fn seal_header(file: &mut [u8]) {
    let Some(header) = file.first_chunk_mut::<64>() else { return };
    let (before, rest) = header.split_at_mut(40);
    if let Some((checksum, after)) = rest.split_first_chunk_mut::<4>() {
        *checksum = crc32(&[before, after]).to_le_bytes();
    }
}
