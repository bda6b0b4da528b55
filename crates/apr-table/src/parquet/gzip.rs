//! Pages that are compressed with gzip.
//!
//! The library's own decoder does not stop at the length that a page declares.

use alloc::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;

use super::limits::CheckedPages;

/// The pages of a column chunk, decompressed to no more than they declare.
pub(crate) struct GzipPages<R: ChunkReader> {
    /// As they are stored.
    pages: SerializedPageReader<CheckedPages<R>>,
    checked: Arc<CheckedPages<R>>,
    leaf: usize,
}

impl<R: ChunkReader> GzipPages<R> {
    pub(crate) fn new(
        checked: &Arc<CheckedPages<R>>,
        chunk: &ColumnChunkMetaData,
        n_rows: usize,
        leaf: usize,
    ) -> Result<Self> {
        let stored = chunk.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
        let pages = SerializedPageReader::new(Arc::clone(checked), &stored, n_rows, None)?;
        Ok(Self { pages, checked: Arc::clone(checked), leaf })
    }

    /// The page after its first bytes, which are not compressed.
    fn decompressed(&self, page: &Bytes, plain: usize, is_dictionary: bool) -> Result<Bytes> {
        let declared = self.checked.decompressed_len(self.leaf, is_dictionary) as usize;
        let invalid = |what: &str| ParquetError::General(what.to_owned());
        let (first, compressed) =
            page.split_at_checked(plain).ok_or_else(|| invalid("the levels of a page are cut off"))?;
        let mut bytes = first.to_vec();
        // A page of nulls has nothing after its levels.
        if !compressed.is_empty() && bytes.len() < declared {
            let whole = zip_core::decompress(&compressed, zip_core::Compression::Gzip, u64::MAX, |piece| {
                bytes.extend_from_slice(piece);
                bytes.len() <= declared
            });
            whole.map_err(|error| ParquetError::External(Box::new(error)))?;
        }
        match bytes.len() == declared {
            true => Ok(bytes.into()),
            false => Err(invalid("a page has another length than it declares")),
        }
    }
}

impl<R: ChunkReader> Iterator for GzipPages<R> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<R: ChunkReader> PageReader for GzipPages<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(mut page) = self.pages.get_next_page()? else { return Ok(None) };
        let (plain, is_dictionary) = match &page {
            Page::DataPageV2 { is_compressed: false, .. } => return Ok(Some(page)),
            Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
                (def_levels_byte_len.saturating_add(*rep_levels_byte_len) as usize, false)
            }
            Page::DataPage { .. } => (0, false),
            Page::DictionaryPage { .. } => (0, true),
        };
        let decompressed = self.decompressed(page.buffer(), plain, is_dictionary)?;
        match &mut page {
            Page::DataPage { buf, .. } | Page::DataPageV2 { buf, .. } | Page::DictionaryPage { buf, .. } => {
                *buf = decompressed;
            }
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}
