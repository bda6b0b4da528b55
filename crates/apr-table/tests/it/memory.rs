//! Memory that is taken for a file, compared with its bytes.

use alloc::sync::Arc;

use apr_table::ald::Ald;
use apr_table::{
    Batch, CellType, Cells, ColumnSpec, Error, ErrorKind, Table, TableFormat, TableWriter, Values,
};
use arrow_array::{DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_ipc::writer::{DictionaryHandling, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use test_meter::CountingAllocator;

use crate::arrow_rs::shared_columns;
use crate::bytes;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator::new();

/// The most memory that was in use at a time, for each byte of the input.
fn peak_per_byte<T>(input: Vec<u8>, read: impl FnOnce(Vec<u8>) -> T) -> (f64, T) {
    let len = input.len();
    let (result, usage) = HEAP.measure_thread(|| read(input));
    (usage.peak as f64 / len as f64, result)
}

/// A dataset of one payload with other metadata.
fn with_metadata(metadata: &[u8]) -> Vec<u8> {
    let mut file = bytes("ald/none.ald");
    let len = u32::from_le_bytes(file[8..12].try_into().unwrap()) as usize;
    file.splice(32..32 + len, metadata.iter().copied());
    file[8..12].copy_from_slice(&(metadata.len() as u32).to_le_bytes());
    file
}

/// A dataset in chunks whose index declares so many that are empty.
fn with_empty_chunks(n_chunks: usize) -> Vec<u8> {
    let mut file = bytes("ald/streaming-none.ald");
    let len_at = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    file.truncate(32 + len_at(12) + len_at(16));
    let mut index = b"\x92\xdd".to_vec();
    index.extend((n_chunks as u32).to_be_bytes());
    index.extend([0x95, 0, 0, 0, 0, 0].repeat(n_chunks));
    index.push(0);
    file[20..24].copy_from_slice(&(index.len() as u32).to_le_bytes());
    file[24..32].fill(0);
    [file, index].concat()
}

#[test]
fn tags_of_a_dataset_take_little_more_than_their_bytes() {
    const COUNT: usize = 100_000;
    for tag in [&b"\xa0"[..], b"\xa1t", b"\xa8a longer"] {
        let list = [&b"\xdd"[..], &(COUNT as u32).to_be_bytes(), &tag.repeat(COUNT)].concat();
        let fields = [&b"\x97\xc0\xc0\xc0"[..], &list, b"\xc0\xc0\xc0"].concat();
        // A map that has them twice.
        let map = [&b"\x82\xa4tags"[..], &list, b"\xa4tags", &list].concat();
        for metadata in [fields, map] {
            let (peak, ald) = peak_per_byte(with_metadata(&metadata), Ald::open);
            assert_eq!(ald.unwrap().metadata().tags.len(), COUNT);
            assert!(peak < 12.0, "{tag:x?}: {peak}");
        }
    }
}

#[test]
fn chunks_that_are_empty_take_little_more_than_their_bytes() {
    let (peak, ald) = peak_per_byte(with_empty_chunks(100_000), Ald::open);
    assert_eq!(ald.unwrap().n_chunks(), 100_000);
    assert!(peak < 12.0, "{peak}");
}

#[test]
fn one_description_makes_no_more_columns_than_as_many_would() {
    for (n_fields, name_len) in [(100_000, 0), (100_000, 1), (50_000, 1), (5_000, 4_000)] {
        let stream = shared_columns(n_fields, name_len);
        let (peak, table) = peak_per_byte(stream, |stream| Table::arrow(stream.as_slice()).map(drop));
        assert_eq!(table.unwrap_err().code(), "tb-arrow");
        assert!(peak < 12.0, "{n_fields}: {peak}");
    }
    // Some are allowed: no writer does so, and a reader need not count.
    let mut stream = shared_columns(1000, 1);
    stream.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    assert_eq!(Table::arrow(stream.as_slice()).unwrap().names(), ["x"; 1000]);
}

#[test]
fn wide_tables_take_little_more_than_their_bytes() {
    let specs =
        |column: usize| ColumnSpec { name: format!("{column}"), cell_type: CellType::F32, is_nullable: true };
    let columns = || (0..20_000).map(|_| Cells::from(Values::F32(vec![1.0])));
    let specs = (0..20_000).map(specs).collect();
    let mut writer = TableWriter::new(Vec::new(), TableFormat::ArrowStream, specs).unwrap();
    writer.write(columns().collect()).unwrap();
    let (peak, n_rows) = peak_per_byte(writer.finish().unwrap(), |stream| {
        let mut table = Table::arrow(stream.as_slice()).unwrap();
        table.next_batch().unwrap().unwrap().n_rows()
    });
    assert_eq!(n_rows, 1);
    assert!(peak < 6.0, "{peak}");
}

#[test]
fn what_is_appended_to_a_dictionary_counts_with_what_is_there() {
    let field = Field::new_dictionary("texts", DataType::Int32, DataType::Utf8, false);
    let schema = Arc::new(Schema::new(vec![field]));
    let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
    for n_values in 1..=300 {
        let texts = StringArray::from_iter_values((0..n_values).map(|number| format!("{number:0100}")));
        let codes = Int32Array::from(vec![n_values - 1]);
        let column = DictionaryArray::new(codes, Arc::new(texts));
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(column)]).unwrap()).unwrap();
    }
    let stream = writer.into_inner().unwrap();
    // All versions of the dictionary together, each of which a batch holds: 300 * 301 / 2 texts of 100 bytes.
    let held = 4_515_000;
    let rows = |max_content: u64| -> Result<usize, Error> {
        let mut table = Table::arrow_within(stream.as_slice(), max_content)?;
        let mut batches = Vec::new();
        while let Some(batch) = table.next_batch()? {
            batches.push(batch);
        }
        Ok(batches.iter().map(Batch::n_rows).sum())
    };
    assert!(matches!(rows(held).unwrap_err().kind(), ErrorKind::Limit { .. }));
    let (n_rows, usage) = HEAP.measure_thread(|| rows(2 * held));
    assert_eq!(n_rows.unwrap(), 300);
    assert!(usage.peak as u64 > held && (usage.peak as u64) < 2 * held, "{}", usage.peak);
}
