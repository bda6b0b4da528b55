//! Decompressed bytes in pieces: a vector that grows needs up to three times its length.

use alloc::vec::Vec;

use read_at::{Error, ReadAt, check_range};

const PIECE: usize = 1 << 16;

/// Bytes in pieces of equal length, the last one shorter.
#[derive(Default)]
pub(super) struct Pieces(Vec<Vec<u8>>);

impl Pieces {
    /// Appends bytes, and says whether that is possible: with at most `max` bytes in all.
    pub(super) fn push(&mut self, mut bytes: &[u8], max: u64) -> bool {
        if self.total_len() + bytes.len() as u64 > max {
            return false;
        }
        while !bytes.is_empty() {
            if self.0.last().is_none_or(|last| last.len() == PIECE) {
                let mut piece = Vec::new();
                if self.0.try_reserve(1).and_then(|()| piece.try_reserve_exact(PIECE)).is_err() {
                    return false;
                }
                self.0.push(piece);
            }
            let Some(last) = self.0.last_mut() else { return false };
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - last.len()));
            last.extend_from_slice(now);
            bytes = later;
        }
        true
    }
}

impl ReadAt for Pieces {
    fn total_len(&self) -> u64 {
        let full = self.0.len().saturating_sub(1) * PIECE;
        (full + self.0.last().map_or(0, Vec::len)) as u64
    }

    fn read_exact_at(&self, offset: u64, mut out: &mut [u8]) -> Result<(), Error> {
        check_range(offset, out.len(), self.total_len())?;
        let mut at = usize::try_from(offset).unwrap_or(usize::MAX);
        while !out.is_empty() {
            let piece = self.0.get(at / PIECE).and_then(|piece| piece.get(at % PIECE..)).unwrap_or_default();
            let len = piece.len().min(out.len());
            if len == 0 {
                break;
            }
            let (now, later) = out.split_at_mut(len);
            now.copy_from_slice(piece.get(..len).unwrap_or_default());
            (out, at) = (later, at + len);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_across_pieces() {
        let bytes: Vec<u8> = (0..3 * PIECE + 5).map(|idx| (idx % 251) as u8).collect();
        let mut pieces = Pieces::default();
        assert!(bytes.chunks(5000).all(|chunk| pieces.push(chunk, 1 << 20)));
        assert_eq!(pieces.total_len(), bytes.len() as u64);
        for (offset, len) in [(0, bytes.len()), (PIECE - 1, 2), (PIECE, PIECE + 1), (bytes.len(), 0)] {
            let mut out = alloc::vec![0; len];
            pieces.read_exact_at(offset as u64, &mut out).expect("inside");
            assert_eq!(out, bytes[offset..offset + len], "{offset}");
        }
        assert!(pieces.read_exact_at(bytes.len() as u64, &mut [0]).is_err());
        assert!(!pieces.push(b"x", bytes.len() as u64));
    }
}
