//! Graphs of TensorFlow: operations that open files or call Python.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use pickle_core::Error;
use read_at::ReadAt;

use crate::kept::Kept;
use crate::problem::Problem;
use crate::reader::Reader;
use crate::wire::{Field, Fields};

/// Longest name of an operation.
const MAX_NAME: u64 = 256;

/// Operations that read files of the machine.
const READS: [&str; 8] = [
    "ReadFile",
    "MatchingFiles",
    "WholeFileReader",
    "WholeFileReaderV2",
    "TextLineDataset",
    "FixedLengthRecordDataset",
    "TextLineReader",
    "TextLineReaderV2",
];

/// Operations that write files or call Python.
const WRITES: [&str; 8] = [
    "WriteFile",
    "PyFunc",
    "PyFuncStateless",
    "EagerPyFunc",
    "PyFuncAsync",
    "WriteSummary",
    "DebugIdentityV2",
    "DebugIdentityV3",
];

/// Operations that write files if they are told to.
const PRINTS: &str = "PrintV2";

/// A message: the fields of it that hold messages, by number.
struct Kind(&'static [(u64, &'static Self)]);

/// `NodeDef`: what is looked for.
const NODE: Kind = Kind(&[]);
const FUNCTION: Kind = Kind(&[(3, &NODE), (2, &NODE)]);
const LIBRARY: Kind = Kind(&[(1, &FUNCTION)]);
const GRAPH: Kind = Kind(&[(1, &NODE), (2, &LIBRARY)]);
const META_GRAPH: Kind = Kind(&[(2, &GRAPH)]);
const SAVED_MODEL: Kind = Kind(&[(2, &META_GRAPH)]);

/// The operations of a `SavedModel`, `MetaGraphDef` or `GraphDef`: offsets and problems, at most `kept` of them. A file of another kind has none.
pub(crate) fn scan(source: &dyn ReadAt, kept: usize) -> Result<Vec<(u64, Problem)>, Error> {
    let mut found = Kept::new(kept);
    let mut reader = Reader::new(source);
    for kind in [&SAVED_MODEL, &META_GRAPH, &GRAPH] {
        // Messages that are open: there are at most as many as kinds below one another.
        let mut open = Vec::from([(kind, Fields::new(0..reader.len()))]);
        while let Some((kind, fields)) = open.last_mut() {
            match fields.next(&mut reader)? {
                None => {
                    open.pop();
                }
                Some((number, Field::Bytes(range))) => {
                    let Some((_, below)) = kind.0.iter().find(|(known, _)| *known == number) else {
                        continue;
                    };
                    if !below.0.is_empty() {
                        open.push((below, Fields::new(range)));
                    } else if let Some(problem) = node(&mut reader, range.clone())?
                        && !found.as_slice().contains(&(range.start, problem.clone()))
                    {
                        found.add(range.start, problem);
                    }
                }
                Some((_, Field::Number)) => {}
            }
        }
    }
    Ok(found.sorted())
}

/// A node: field 2 is its operation; the last one counts, as readers merge fields.
fn node(reader: &mut Reader<'_>, range: Range<u64>) -> Result<Option<Problem>, Error> {
    let mut fields = Fields::new(range.clone());
    let mut operation = String::new();
    while let Some((number, field)) = fields.next(reader)? {
        if let (2, Field::Bytes(name)) = (number, field)
            && name.end - name.start <= MAX_NAME
        {
            let bytes = reader.bytes(name.start, name.end - name.start)?;
            operation = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    // Names may have a package in front: `Custom>Name` is none of these.
    Ok(if WRITES.contains(&operation.as_str()) {
        Some(Problem::GraphCode { operation })
    } else if READS.contains(&operation.as_str()) {
        Some(Problem::GraphFiles { operation })
    } else if operation == PRINTS && {
        let bytes = reader.bytes(range.start, (range.end - range.start).min(1 << 16))?;
        bytes.windows(7).any(|word| word == b"file://")
    } {
        Some(Problem::GraphCode { operation })
    } else {
        None
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        // The length as a varint that is longer than needed.
        let len = bytes.len();
        [&[number << 3 | 2, (len | 0x80) as u8, (len >> 7) as u8], bytes].concat()
    }

    #[test]
    fn operations_are_found_in_each_kind_of_graph() {
        let node = |name: &[u8]| field(1, &[field(1, b"n"), field(2, name)].concat());
        let graph = node(b"WriteFile");
        let function = field(2, &field(1, &field(3, &[field(1, b"n"), field(2, b"PyFunc")].concat())));
        let saved = [vec![8, 1], field(2, &field(2, &graph))].concat();
        for bytes in [&graph, &function, &field(2, &function), &saved] {
            let found = scan(bytes, 10).expect("in memory");
            assert!(matches!(found.as_slice(), [(_, Problem::GraphCode { .. })]), "{found:?}");
        }
        assert_eq!(scan(&node(b"MatMul"), 10).expect("in memory"), []);
        // A group that is no part of the format, and a number.
        let noisy = [&[0x7b, 0x08, 0x01, 0x7c][..], &saved].concat();
        assert_eq!(scan(&noisy, 10).expect("in memory").len(), 1);
        let renamed = field(1, &[field(2, b"MatMul"), field(2, b"ReadFile")].concat());
        let found = scan(&renamed, 10).expect("in memory");
        assert!(matches!(found.as_slice(), [(_, Problem::GraphFiles { .. })]), "{found:?}");
    }

    #[test]
    fn operations_are_judged_by_their_whole_names() {
        let found = |name: &[u8], attribute: &[u8]| {
            // Something before the node, so that offsets count.
            let node = field(1, &[field(2, name), field(5, attribute)].concat());
            let bytes = [field(3, &[b'x'; 100]).repeat(3), node].concat();
            let found = scan(&bytes.as_slice(), 10).expect("in memory");
            found.iter().map(|(at, problem)| (*at, problem.code())).collect::<Vec<_>>()
        };
        let print = b"PrintV2";
        assert_eq!(found(print, b"to file://x"), [(312, "sc-graph-code")]);
        assert_eq!(found(print, b"stderr"), []);
        let two = [field(3, &[b'x'; 100]), field(1, &field(2, print)), field(1, b"file://")].concat();
        assert_eq!(scan(&two.as_slice(), 10).expect("in memory"), [], "of another node");
        assert_eq!(found(b"MatMul", b"to file://x"), []);
        assert_eq!(found(b"PyFunc", b""), [(312, "sc-graph-code")]);
        assert_eq!(found(&b"PyFunc".repeat(2), b""), []);
        // Longer than any name: the one before it counts.
        let long = field(1, &[field(2, b"PyFunc"), field(2, &[b'x'; 257])].concat());
        assert_eq!(scan(&long.as_slice(), 10).expect("in memory").len(), 1);
        // As many as are kept.
        assert_eq!(
            scan(&field(1, &field(2, b"PyFunc")).repeat(3).as_slice(), 2).expect("in memory").len(),
            2
        );
    }
}
