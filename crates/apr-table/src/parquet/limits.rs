//! What is compared with the file before the library sees it: lengths that it would allocate.

use alloc::sync::Arc;
use std::sync::Mutex;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, Length};

use super::footer;
use super::thrift::{Damage, STRUCT, Thrift};
use crate::error::{Error, ErrorKind, within};

/// What a file begins and ends with, and what one whose footer is encrypted does.
const MAGIC: &[u8] = b"PAR1";
const ENCRYPTED: &[u8] = b"PARE";
/// Length of a footer's length and the magic bytes behind it.
const TRAILER: usize = 8;
/// Longest footer.
const MAX_FOOTER: u64 = 256 << 20;
/// Longest page header. Statistics make it long.
const MAX_PAGE_HEADER: usize = 1 << 20;
/// Decompressed bytes that any page may have, and the current pages of all columns together.
const MIN_PAGE: u64 = 32 << 20;
const MIN_PAGES: u64 = 256 << 20;
/// Decompressed bytes of a page, or of the current pages, for each byte of them.
const MAX_RATIO: u64 = 1024;

/// Checks the footer of a file.
pub(crate) fn check_footer(source: &impl ChunkReader) -> Result<(), Error> {
    let read = |at: u64, len: usize| {
        let bytes = source.get_bytes(at, len);
        bytes.map_err(|error| Error::caused(ErrorKind::Read {}, error).at(at))
    };
    let len = source.len();
    let Some(at) = len.checked_sub(TRAILER as u64).filter(|&at| at >= MAGIC.len() as u64) else {
        return Err(ErrorKind::Truncated { expected: (MAGIC.len() + TRAILER) as u64, found: len }.into());
    };
    let trailer = read(at, TRAILER)?;
    let footer_len = trailer.first_chunk::<4>().map_or(0, |len| u32::from_le_bytes(*len).into());
    match trailer.get(4..) {
        Some(MAGIC) => {}
        Some(ENCRYPTED) => return Err(Error::from(ErrorKind::Encrypted {}).at(at)),
        _ => return Err(Error::from(ErrorKind::Parquet {}).at(at)),
    }
    if footer_len > MAX_FOOTER {
        let kind = ErrorKind::Limit { what: "the footer", allowed: MAX_FOOTER, found: footer_len };
        return Err(Error::from(kind).at(at));
    }
    let begin = at.checked_sub(footer_len).ok_or_else(|| Error::from(ErrorKind::Parquet {}).at(at))?;
    let footer = read(begin, footer_len as usize)?;
    footer::check(&footer).map_err(|kind| Error::from(kind).at(begin))
}

/// A file whose pages are checked when the library begins to read them.
pub(crate) struct CheckedPages<R> {
    source: R,
    /// Begin and end of each column of each row group, in the order of the file, and the number of the column.
    chunks: Vec<(u64, u64, usize)>,
    current: Mutex<Vec<Current>>,
    /// Why a page was refused: what the library makes of an error would hide it.
    pub(crate) refusal: Refusal,
}

pub(crate) type Refusal = Arc<Mutex<Option<Error>>>;

/// What the pages of a column take that the library holds: a dictionary, and the last page with data.
#[derive(Clone, Default)]
struct Current {
    dictionary: Size,
    data: Size,
}

#[derive(Clone, Copy, Default)]
struct Size {
    compressed: u64,
    decompressed: u64,
}

impl Size {
    /// Decompressed bytes that are allowed: `any` number, or more for more compressed bytes.
    fn allowed(self, any: u64) -> u64 {
        any.max(self.compressed.saturating_mul(MAX_RATIO))
    }
}

impl<R: ChunkReader> CheckedPages<R> {
    pub(crate) fn new(source: R, metadata: &ParquetMetaData) -> Result<Self, Error> {
        let n_columns = metadata.file_metadata().schema_descr().num_columns();
        let mut chunks = Vec::new();
        for column in metadata.row_groups().iter().flat_map(|group| group.columns().iter().enumerate()) {
            let (column, chunk) = column;
            let first = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
            let begin = u64::try_from(first).ok();
            let end = begin.zip(u64::try_from(chunk.compressed_size()).ok());
            let end = end.and_then(|(begin, len)| begin.checked_add(len)).filter(|&end| end <= source.len());
            match begin.zip(end) {
                Some((begin, end)) => chunks.push((begin, end, column)),
                None => return Err(ErrorKind::Parquet {}.into()),
            }
        }
        chunks.sort_unstable();
        let current = Mutex::new(vec![Current::default(); n_columns]);
        Ok(Self { source, chunks, current, refusal: Refusal::default() })
    }

    /// Bytes that the last page of a column declares when decompressed.
    pub(crate) fn decompressed_len(&self, column: usize, is_dictionary: bool) -> u64 {
        let current = self.current.lock().ok().and_then(|current| current.get(column).cloned());
        let current = current.unwrap_or_default();
        if is_dictionary { current.dictionary.decompressed } else { current.data.decompressed }
    }

    /// Checks the page whose header begins there.
    fn check_page(&self, at: u64) -> Result<(), Error> {
        let damaged = || Error::from(ErrorKind::Parquet {}).at(at);
        let left = self.source.len().saturating_sub(at);
        let mut len = 256;
        let page = loop {
            let bytes = self.source.get_bytes(at, left.min(len as u64) as usize);
            let bytes = bytes.map_err(|error| Error::caused(ErrorKind::Read {}, error).at(at))?;
            match Page::read(&bytes) {
                Ok(page) => break page,
                Err(Damage::Cut) if (bytes.len() as u64) < left && len < MAX_PAGE_HEADER => len *= 8,
                Err(_) => return Err(damaged()),
            }
        };
        if page.encoding.is_some_and(|encoding| !is_read(encoding)) {
            return Err(Error::from(ErrorKind::Encoding {}).at(at));
        }
        // A value of a dictionary takes a byte at least; the library allocates for as many as it declares.
        if page.is_dictionary && page.n_values > page.size.decompressed {
            return Err(damaged());
        }
        within("a page", page.size.decompressed, page.size.allowed(MIN_PAGE))
            .map_err(|error| error.at(at))?;
        let column = self.chunks.partition_point(|&(begin, ..)| begin <= at).checked_sub(1);
        let chunk = column.and_then(|place| self.chunks.get(place)).filter(|&&(_, end, _)| at < end);
        let column = chunk.ok_or_else(damaged)?.2;
        let mut current = self.current.lock().map_err(|_| damaged())?;
        match current.get_mut(column) {
            Some(current) if page.is_dictionary => current.dictionary = page.size,
            Some(current) => current.data = page.size,
            None => return Err(damaged()),
        }
        let sizes = current.iter().flat_map(|current| [current.dictionary, current.data]);
        let total = sizes.fold(Size::default(), |total, size| Size {
            compressed: total.compressed.saturating_add(size.compressed),
            decompressed: total.decompressed.saturating_add(size.decompressed),
        });
        within("the pages of all columns", total.decompressed, total.allowed(MIN_PAGES))
            .map_err(|error| error.at(at))
    }
}

/// Whether pages of this encoding are read. The lengths of byte arrays that are encoded as differences are not: the library allocates
/// for as many as they declare behind the compression.
fn is_read(encoding: i64) -> bool {
    const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
    const DELTA_BYTE_ARRAY: i64 = 7;
    ![DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY].contains(&encoding)
}

/// What the header of a page declares.
#[derive(Default)]
struct Page {
    size: Size,
    n_values: u64,
    /// Of a page with data.
    encoding: Option<i64>,
    is_dictionary: bool,
}

impl Page {
    /// Reads `PageHeader` of parquet.thrift.
    fn read(bytes: &[u8]) -> Result<Self, Damage> {
        let (mut header, mut number, mut page) = (Thrift(bytes), 0, Self::default());
        let positive = |value: i64| u64::try_from(value).map_err(|_| Damage::Invalid);
        while let Some(kind) = header.field(&mut number)? {
            let is_struct = kind == STRUCT;
            match number {
                1 => page.is_dictionary = header.integer(kind)? == 2,
                2 => page.size.decompressed = positive(header.integer(kind)?)?,
                3 => page.size.compressed = positive(header.integer(kind)?)?,
                // Of data, of a dictionary, and of data in version 2.
                5 | 7 | 8 if is_struct => {
                    let encoding = if number == 8 { 4 } else { 2 };
                    let mut field = 0;
                    while let Some(kind) = header.field(&mut field)? {
                        match field {
                            1 => page.n_values = page.n_values.max(positive(header.integer(kind)?)?),
                            _ if field == encoding && number != 7 => {
                                page.encoding = Some(header.integer(kind)?);
                            }
                            _ => header.skip(kind)?,
                        }
                    }
                }
                _ => header.skip(kind)?,
            }
        }
        Ok(page)
    }
}

impl<R: ChunkReader> Length for CheckedPages<R> {
    fn len(&self) -> u64 {
        self.source.len()
    }
}

impl<R: ChunkReader> ChunkReader for CheckedPages<R> {
    type T = R::T;

    /// Begins to read a page header: what the library calls this for, once it knows the footer and if all columns are flat.
    fn get_read(&self, start: u64) -> ParquetResult<R::T> {
        if let Err(error) = self.check_page(start) {
            let text = error.to_string();
            if let Ok(mut refusal) = self.refusal.lock() {
                *refusal = Some(error);
            }
            return Err(ParquetError::General(text));
        }
        self.source.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        match start.checked_add(length as u64) {
            Some(end) if end <= self.source.len() => self.source.get_bytes(start, length),
            _ => Err(ParquetError::EOF(format!("{length} bytes at {start}"))),
        }
    }
}
