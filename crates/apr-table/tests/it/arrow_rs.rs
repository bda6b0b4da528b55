//! Files of the Arrow library itself, and streams that a reader must not trust.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use std::io::Cursor;

use apr_table::{Accepted, ErrorKind, Problem, Table};
use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_ipc::writer::{FileWriter, StreamWriter};

const MISSING: Accepted = Accepted { missing: true, infinite: false };

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn stream(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    bytes
}

#[test]
fn files_of_a_larger_alignment_are_read_to_their_end_mark() {
    let batch = batch(vec![("x", Arc::new(Int32Array::from(vec![1, 2])))]);
    let mut bytes = Vec::new();
    let mut writer = FileWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let read = |bytes: &[u8]| {
        let mut table = Table::arrow(bytes)?;
        let mut rows = Vec::new();
        while let Some(batch) = table.next_batch()? {
            batch.append_rows::<f32>(&[0], Accepted::FINITE, &mut rows).unwrap();
        }
        Ok::<_, apr_table::Error>(rows)
    };
    assert_eq!(read(&bytes).unwrap(), [1.0, 2.0, 1.0, 2.0]);
    for len in 8..bytes.len() - 400 {
        assert!(read(&bytes[..len]).is_err(), "{len}");
    }
}

#[test]
fn a_dictionary_without_values_is_a_column_of_nulls() {
    let keys = arrow_array::Int8Array::from(vec![None, None]);
    let words = StringArray::from(Vec::<&str>::new());
    let empty = DictionaryArray::<Int8Type>::new(keys, Arc::new(words));
    let bytes = stream(&batch(vec![("d", Arc::new(empty))]));
    let batch = Table::arrow(bytes.as_slice()).unwrap().next_batch().unwrap().unwrap();
    let mut rows = Vec::new();
    batch.append_rows::<f64>(&[0], MISSING, &mut rows).unwrap();
    assert!(rows.len() == 2 && rows.iter().all(|value| value.is_nan()));
    assert_eq!(
        batch.append_rows::<f64>(&[0], Accepted::FINITE, &mut rows).unwrap_err().problem,
        Problem::Null
    );
    assert_eq!(batch.text(0, 0).unwrap(), None);
}

#[test]
fn not_a_number_is_no_text() {
    let bytes = stream(&batch(vec![("x", Arc::new(Float64Array::from(vec![f64::NAN, 0.5])))]));
    let batch = Table::arrow(bytes.as_slice()).unwrap().next_batch().unwrap().unwrap();
    assert_eq!(
        [0, 1].map(|row| batch.text(row, 0).unwrap().map(Cow::into_owned)),
        [None, Some("0.5".into())]
    );
}

#[test]
fn a_stream_begins_with_a_schema() {
    let batch = batch(vec![("x", Arc::new(Int32Array::from(vec![1])))]);
    let bytes = stream(&batch);
    let schema_len = 8 + u32::from_le_bytes(*bytes[4..].first_chunk().unwrap()) as usize;
    let error = Table::arrow(&bytes[schema_len..]).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Arrow {});
}

/// A stream of so many columns, all of which are described by one table with a name of so many bytes.
pub(crate) fn shared_columns(n_columns: usize, name_len: usize) -> Vec<u8> {
    use arrow_ipc::{
        FieldBuilder, IntBuilder, MessageBuilder, MessageHeader, MetadataVersion, SchemaBuilder, Type,
    };
    let mut out = flatbuffers::FlatBufferBuilder::new();
    let name = out.create_string(&"x".repeat(name_len));
    let mut int = IntBuilder::new(&mut out);
    int.add_bitWidth(8);
    let int = int.finish().as_union_value();
    let mut field = FieldBuilder::new(&mut out);
    field.add_name(name);
    field.add_type_type(Type::Int);
    field.add_type_(int);
    let field = field.finish();
    let fields = out.create_vector(&vec![field; n_columns]);
    let mut schema = SchemaBuilder::new(&mut out);
    schema.add_fields(fields);
    let schema = schema.finish().as_union_value();
    let mut message = MessageBuilder::new(&mut out);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(MessageHeader::Schema);
    message.add_header(schema);
    let message = message.finish();
    out.finish(message, None);
    let mut header = out.finished_data().to_vec();
    header.resize(header.len().next_multiple_of(8), 0);
    [&[0xff; 4][..], &(header.len() as u32).to_le_bytes(), &header].concat()
}

#[test]
fn one_description_does_not_become_many_copies_of_it() {
    let small = shared_columns(2, 10);
    assert_eq!(Table::arrow(small.as_slice()).unwrap().names().len(), 2);
    // 150 KB that would be 1 GB.
    let bomb = shared_columns(10_000, 100_000);
    assert_eq!(Table::arrow(bomb.as_slice()).unwrap_err().code(), "tb-arrow");
}

#[test]
fn wide_tables_are_read() {
    let names: Vec<String> = (0..5000).map(|column| format!("c{column}")).collect();
    let array = || Arc::new(Float64Array::from(vec![1.0])) as ArrayRef;
    let batch = batch(names.iter().map(|name| (name.as_str(), array())).collect());
    let mut table = Table::arrow(Cursor::new(stream(&batch))).unwrap();
    assert_eq!((table.names().len(), table.next_batch().unwrap().unwrap().n_rows()), (5000, 1));
}

#[test]
fn the_content_of_a_stream_is_bounded_if_that_is_asked_for() {
    let array = Arc::new(Float64Array::from(vec![1.0; 1000])) as ArrayRef;
    let bytes = stream(&batch(vec![("a", array)]));
    let read = |max_content| {
        let mut table = Table::arrow_within(bytes.as_slice(), max_content).unwrap();
        table.next_batch().map(|batch| batch.unwrap().n_rows())
    };
    assert_eq!(read(8000).unwrap(), 1000);
    assert_eq!(read(7999).unwrap_err().code(), "tb-limit");
}

#[test]
fn batches_in_memory_are_read() {
    let array = Arc::new(Float64Array::from(vec![1.0; 10_000])) as ArrayRef;
    let one = batch(vec![("a", array)]);
    let reader = RecordBatchIterator::new([Ok(one.clone()), Ok(one.clone())], one.schema());
    let mut table = Table::record_batches(reader);
    assert_eq!(table.names(), ["a"]);
    let mut first_rows = Vec::new();
    while let Some(batch) = table.next_batch().unwrap() {
        first_rows.push(batch.first_row());
    }
    assert_eq!(first_rows, [0, 8192, 10_000, 18_192]);
}
