//! The index of a streaming file: `[[first row, rows, offset, stored bytes, uncompressed bytes]..., all rows]` in MessagePack.

use core::ops::Range;

use msgpack_scan::{Scanner, Token};

use super::header::Header;
use super::invalid;
use crate::error::{Error, ErrorKind};

/// Bytes of a chunk in the index, at least.
const MIN_CHUNK: usize = 6;

/// One chunk, an Arrow IPC stream of one batch.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) first_row: u64,
    pub(super) n_rows: u64,
    /// In the file.
    pub(super) stored: Range<u64>,
    /// Bytes when decompressed.
    pub(super) uncompressed: u64,
}

/// Reads the index. Chunks follow each other without gaps, and so do their rows.
pub(super) fn read(bytes: &[u8], header: &Header) -> Result<Vec<Chunk>, Error> {
    let mut scanner = Scanner::new(bytes);
    expect(&mut scanner, 2)?;
    let Ok(Token::Array(n_chunks)) = scanner.token() else { return Err(damaged()) };
    let n_possible = (bytes.len() - scanner.offset()) / MIN_CHUNK;
    let mut chunks = Vec::with_capacity(n_possible.min(n_chunks as usize));
    let (mut n_rows, mut at) = (0_u64, header.payload.start);
    for _ in 0..n_chunks {
        expect(&mut scanner, 5)?;
        let mut number = || number(&mut scanner);
        let (first_row, count, offset, len, uncompressed) =
            (number()?, number()?, number()?, number()?, number()?);
        let is_next = first_row == n_rows && header.payload.start.checked_add(offset) == Some(at);
        let end = at.checked_add(len).filter(|&end| is_next && end <= header.payload.end);
        let (Some(end), Some(after)) = (end, n_rows.checked_add(count)) else {
            return Err(invalid("the chunks of the index do not follow each other"));
        };
        chunks.push(Chunk { first_row, n_rows: count, stored: at..end, uncompressed });
        (n_rows, at) = (after, end);
    }
    let declared = number(&mut scanner)?;
    if declared != n_rows {
        return Err(ErrorKind::AldRows { declared, found: n_rows }.into());
    }
    match at == header.payload.end && scanner.is_at_end() {
        true => Ok(chunks),
        false => Err(damaged()),
    }
}

fn expect(scanner: &mut Scanner<'_>, len: u32) -> Result<(), Error> {
    match scanner.token() {
        Ok(Token::Array(found)) if found == len => Ok(()),
        _ => Err(damaged()),
    }
}

fn number(scanner: &mut Scanner<'_>) -> Result<u64, Error> {
    match scanner.token() {
        Ok(Token::Int(value)) => u64::try_from(value).map_err(|_| damaged()),
        Ok(Token::UInt(value)) => Ok(value),
        _ => Err(damaged()),
    }
}

fn damaged() -> Error {
    invalid("the index is none, or does not have all chunks")
}
