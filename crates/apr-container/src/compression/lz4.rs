//! lz4 blocks, preceded by their uncompressed length.

use alloc::vec;
use alloc::vec::Vec;

use super::Bound;
use crate::codec::Sink;
use crate::error::{Error, ErrorKind};

const ALGORITHM: &str = "lz4";

pub(super) fn compress(
    len: u64,
    out: &mut dyn Sink,
    write: &mut dyn FnMut(&mut dyn Sink) -> Result<(), Error>,
) -> Result<(), Error> {
    let too_large = ErrorKind::TooLargeForFormat { part: "lz4 payload", len, limit: u32::MAX.into() };
    let Ok(prefix) = u32::try_from(len) else { return Err(too_large.into()) };
    // The block encoder needs all bytes at once.
    let mut plain = Vec::new();
    let reserved = usize::try_from(len).ok().filter(|&len| plain.try_reserve_exact(len).is_ok());
    if reserved.is_none() {
        return Err(ErrorKind::OutOfMemory { bytes: len }.into());
    }
    write(&mut plain)?;
    out.put(&prefix.to_le_bytes())?;
    out.put(&lz4_flex::compress(&plain))
}

pub(super) fn decompress(stored: &[u8], bound: Bound) -> Result<Vec<u8>, Error> {
    let failed = |reason| Error::from(ErrorKind::Decompression { algorithm: ALGORITHM, reason });
    let Some((prefix, block)) = stored.split_first_chunk() else {
        return Err(failed("shorter than its length field"));
    };
    let declared = u32::from_le_bytes(*prefix);
    bound.check(declared.into())?;
    bound.check_end(declared.into())?;
    // A byte of a block decompresses to at most 255: a larger declared length is refused before memory is allocated.
    if u64::from(declared) > (block.len() as u64).saturating_mul(255) {
        return Err(failed("its length field says more than its bytes can"));
    }
    let Ok(len) = usize::try_from(declared) else { return Err(failed("beyond this machine's addresses")) };
    let mut plain = vec![0; len];
    match lz4_flex::block::decompress_into(block, &mut plain) {
        Ok(filled) if filled == plain.len() => Ok(plain),
        Ok(_) => Err(failed("shorter than its length field says")),
        Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) => {
            Err(failed("longer than its length field says"))
        }
        Err(_) => Err(failed("not a sound block")),
    }
}
