//! Memory that is taken for a file, compared with its bytes.

use apr_table::ald::Ald;
use test_meter::CountingAllocator;

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
