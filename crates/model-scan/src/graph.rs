//! Graphs of TensorFlow: operations that are not known to be harmless.

mod flex;
mod sources;

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use pickle_core::Error;
use read_at::ReadAt;

pub(crate) use self::flex::scan as scan_lite;
use crate::kept::Kept;
use crate::lines;
use crate::problem::Problem;
use crate::reader::Reader;
use crate::wire::{Field, Fields};

/// Longest name of an operation.
const MAX_NAME: u64 = 256;

/// Operations of TensorFlow 2.15.1 that compute, keep state in memory or read what they are given. To be stateless is not enough:
/// `ReadFile` is. Versions are listed one by one, because a later one may do what an earlier one did not.
const ALLOWED: &str = include_str!("graph/operations.txt");

/// Refused because they read files of the machine.
const READS: &[&str] = &[
    "CSVDataset",
    "CSVDatasetV2",
    "DecodeProtoV2",
    "EncodeProto",
    "ExperimentalCSVDataset",
    "ExperimentalLMDBDataset",
    "ExperimentalMatchingFilesDataset",
    "FixedLengthRecordDataset",
    "FixedLengthRecordDatasetV2",
    "FixedLengthRecordReader",
    "FixedLengthRecordReaderV2",
    "FixedUnigramCandidateSampler",
    "GenerateVocabRemapping",
    "ImmutableConst",
    "LMDBDataset",
    "LMDBReader",
    "LoadAndRemapMatrix",
    "LoadDataset",
    "MatchingFiles",
    "MatchingFilesDataset",
    "ReadFile",
    "RecordInput",
    "Restore",
    "RestoreSlice",
    "Skipgram",
    "TFRecordDataset",
    "TFRecordDatasetV2",
    "TFRecordReader",
    "TFRecordReaderV2",
    "TextLineDataset",
    "TextLineReader",
    "TextLineReaderV2",
    "WholeFileReader",
    "WholeFileReaderV2",
];

/// Refused because they write files, call Python or code that was compiled before, or connect to other machines.
const WRITES: &[&str] = &[
    "CacheDataset",
    "CacheDatasetV2",
    "CreateSummaryDbWriter",
    "CreateSummaryFileWriter",
    "DataServiceDataset",
    "DataServiceDatasetV2",
    "DataServiceDatasetV3",
    "DataServiceDatasetV4",
    "DatasetToTFRecord",
    "DebugIdentity",
    "DebugIdentityV2",
    "DebugIdentityV3",
    "DebugNanCount",
    "DebugNumericSummary",
    "DistributedSave",
    "DumpTensor",
    "EagerPyFunc",
    "ExperimentalDatasetToTFRecord",
    "ExperimentalSqlDataset",
    "GeneratorDataset",
    "ImportEvent",
    "PyFunc",
    "PyFuncAsync",
    "PyFuncStateless",
    "RegisterDataset",
    "RegisterDatasetV2",
    "RemoteCall",
    "RpcCall",
    "RpcClient",
    "RpcServer",
    "Save",
    "SaveDataset",
    "SaveDatasetV2",
    "SaveSlices",
    "SnapshotDataset",
    "SnapshotDatasetV2",
    "SqlDataset",
    "WriteFile",
    "WriteSummary",
    "XlaCustomCall",
    "XlaCustomCallV2",
];

/// Operations that writers of models use with a path of the program: [`sources`] judges where it comes from. With the positions of the paths
/// among their inputs.
const PATHS: [(&str, &[usize]); 6] = [
    ("InitializeTableFromTextFile", &[1]),
    ("InitializeTableFromTextFileV2", &[1]),
    ("MergeV2Checkpoints", &[0, 1]),
    ("RestoreV2", &[0]),
    ("SaveV2", &[0]),
    ("ShardedFilename", &[0]),
];

/// Prints to a stream, or appends to a file.
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
    for (kind, depth) in [(&SAVED_MODEL, 2), (&META_GRAPH, 1), (&GRAPH, 0)] {
        let mut pass = Pass { found: Kept::new(kept), is_whole: true, has_paths: false };
        pass.messages(&mut reader, kind)?;
        let mut all = pass.found.sorted();
        if pass.has_paths {
            all.extend(sources::scan(&mut reader, depth)?);
        }
        // Names that no one knows are operations only if all is a message of TensorFlow.
        all.retain(|(_, problem)| pass.is_whole || !matches!(problem, Problem::GraphOperation { .. }));
        for (at, problem) in all {
            if !found.as_slice().contains(&(at, problem.clone())) {
                found.add(at, problem);
            }
        }
    }
    Ok(found.sorted())
}

/// What one way to read a file finds.
struct Pass {
    found: Kept,
    /// Whether each message could be read to its end.
    is_whole: bool,
    /// Whether an operation of [`PATHS`] is there.
    has_paths: bool,
}

impl Pass {
    fn messages(&mut self, reader: &mut Reader<'_>, kind: &'static Kind) -> Result<(), Error> {
        // Messages that are open: there are at most as many as kinds below one another.
        let mut open = Vec::from([(kind, Fields::new(0..reader.len()))]);
        while let Some((kind, fields)) = open.last_mut() {
            match fields.next(reader)? {
                None => {
                    self.is_whole &= !fields.is_malformed;
                    open.pop();
                }
                Some((number, Field::Bytes(range))) => {
                    let Some((_, below)) = kind.0.iter().find(|(known, _)| *known == number) else {
                        continue;
                    };
                    if below.0.is_empty() {
                        self.node(reader, range)?;
                    } else {
                        open.push((below, Fields::new(range)));
                    }
                }
                Some((_, Field::Number)) => {}
            }
        }
        Ok(())
    }

    fn node(&mut self, reader: &mut Reader<'_>, range: Range<u64>) -> Result<(), Error> {
        let at = range.start;
        let node = Node::read(reader, range)?;
        self.is_whole &= node.is_whole;
        self.has_paths |= paths(&node.operation).is_some();
        if let Some(problem) = node.judge() {
            self.found.add(at, problem);
        }
        Ok(())
    }
}

/// The inputs of an operation that are paths.
fn paths(operation: &str) -> Option<&'static [usize]> {
    PATHS.iter().find(|(known, _)| *known == operation).map(|(_, inputs)| *inputs)
}

/// What is needed of a `NodeDef` to judge it alone.
struct Node {
    operation: String,
    /// Where a `PrintV2` prints, if that is none of the streams of the program.
    prints_elsewhere: bool,
    is_whole: bool,
}

impl Node {
    /// Field 2 is the operation; the last one counts, as readers merge fields. Field 5 has the attributes.
    fn read(reader: &mut Reader<'_>, range: Range<u64>) -> Result<Self, Error> {
        let mut fields = Fields::new(range);
        let (mut operation, mut prints_elsewhere) = (String::new(), false);
        while let Some((number, field)) = fields.next(reader)? {
            match (number, field) {
                (2, Field::Bytes(name)) if name.end - name.start <= MAX_NAME => {
                    operation = text(reader, name)?;
                }
                (5, Field::Bytes(attribute)) => {
                    prints_elsewhere |= stream(reader, attribute)?.is_some_and(|to| !is_own_stream(&to));
                }
                _ => {}
            }
        }
        Ok(Self { operation, prints_elsewhere, is_whole: !fields.is_malformed })
    }

    /// Names may have a package in front: `Custom>Name` is no name of TensorFlow.
    fn judge(self) -> Option<Problem> {
        let Self { operation, .. } = self;
        if WRITES.contains(&&*operation) || operation == PRINTS && self.prints_elsewhere {
            Some(Problem::GraphCode { operation })
        } else if READS.contains(&&*operation) {
            Some(Problem::GraphFiles { operation })
        } else if operation == PRINTS || lines::has(ALLOWED, &operation) || paths(&operation).is_some() {
            None
        } else if is_name(&operation) {
            Some(Problem::GraphOperation { operation })
        } else {
            None
        }
    }
}

/// The value of the attribute `output_stream`, if it is that: an entry of a map, whose value has its text in field 2.
fn stream(reader: &mut Reader<'_>, entry: Range<u64>) -> Result<Option<String>, Error> {
    let (mut fields, mut is_stream, mut found) = (Fields::new(entry), false, None);
    while let Some((number, field)) = fields.next(reader)? {
        match (number, field) {
            (1, Field::Bytes(key)) => is_stream = text(reader, key)? == "output_stream",
            (2, Field::Bytes(value)) => {
                let mut fields = Fields::new(value);
                while let Some((number, field)) = fields.next(reader)? {
                    if let (2, Field::Bytes(value)) = (number, field) {
                        found = Some(text(reader, value)?);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(found.filter(|_| is_stream))
}

fn is_own_stream(name: &str) -> bool {
    ["stderr", "stdout"].contains(&name) || name.starts_with("log(")
}

/// Whether TensorFlow could register an operation of that name.
fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_>.-/".contains(&byte);
    name.bytes().all(is_part) && name.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
}

/// The beginning of a text, longer than any name.
fn text(reader: &mut Reader<'_>, range: Range<u64>) -> Result<String, Error> {
    let bytes = reader.bytes(range.start, (range.end - range.start).min(1 << 12))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    pub(super) fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
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

    fn found(name: &[u8], attribute: &[u8]) -> Vec<(u64, &'static str)> {
        // Something before the node, so that offsets count.
        let node = field(1, &[field(2, name), field(5, attribute)].concat());
        let bytes = [field(3, &[b'x'; 100]).repeat(3), node].concat();
        let found = scan(&bytes.as_slice(), 10).expect("in memory");
        found.iter().map(|(at, problem)| (*at, problem.code())).collect()
    }

    #[test]
    fn operations_are_judged_by_their_whole_names() {
        assert_eq!(found(b"PyFunc", b""), [(312, "sc-graph-code")]);
        // Longer than any name: the one before it counts.
        let long = field(1, &[field(2, b"PyFunc"), field(2, &[b'x'; 257])].concat());
        assert_eq!(scan(&long.as_slice(), 10).expect("in memory").len(), 1);
        let longest = field(1, &field(2, &[b'x'; 256]));
        assert_eq!(scan(&longest.as_slice(), 10).expect("in memory").len(), 1);
        // As many as are kept.
        let many = field(1, &field(2, b"PyFunc")).repeat(3);
        assert_eq!(scan(&many.as_slice(), 2).expect("in memory").len(), 2);
    }

    #[test]
    fn what_is_on_no_list_is_suspicious_in_a_whole_message() {
        for name in ["Unknown", "PyFuncPyFunc", "Custom>Name", "MatMulV9", "matmul", "_Send", "a-b/c.d"] {
            assert_eq!(found(name.as_bytes(), b""), [(312, "sc-graph-operation")], "{name}");
        }
        for name in ["", "a name", ">a", "Ma\u{e4}", "\n"] {
            assert_eq!(found(name.as_bytes(), b""), [], "{name}");
        }
        let node = |name: &[u8]| field(1, &field(2, name));
        let codes = |bytes: &[u8]| -> Vec<_> {
            let found = scan(&bytes, 10).expect("in memory");
            found.iter().map(|(_, problem)| problem.code()).collect()
        };
        // Cut: in the node, in a message around it, and in the file.
        let cut_node = field(1, &[field(2, b"Unknown"), vec![0x12, 9]].concat());
        let cut_graph = field(2, &[field(1, b"x"), vec![0x12, 9]].concat());
        for cut in
            [&cut_node, &[node(b"Unknown"), cut_graph].concat(), &[node(b"Unknown"), vec![0x12]].concat()]
        {
            assert_eq!(codes(cut), [""; 0]);
        }
        assert_eq!(codes(&[node(b"WriteFile"), vec![0x12]].concat()), ["sc-graph-code"]);
    }

    #[test]
    fn each_list_has_its_verdict() {
        lines::tests::check(ALLOWED, 1186);
        for name in ALLOWED.lines() {
            assert_eq!(found(name.as_bytes(), b""), [], "{name}");
        }
        for (list, code) in [(READS, "sc-graph-files"), (WRITES, "sc-graph-code")] {
            assert!(list.is_sorted(), "{code}");
            for name in list {
                assert_eq!(found(name.as_bytes(), b""), [(312, code)], "{name}");
                assert!(!lines::has(ALLOWED, name), "{name}");
            }
        }
        for (name, _) in PATHS {
            assert!(!lines::has(ALLOWED, name), "{name}");
        }
    }

    #[test]
    fn prints_go_to_the_streams_of_the_program() {
        let to = |key: &[u8], value: &[u8]| [field(1, key), field(2, &field(2, value))].concat();
        for (key, value, is_harmless) in [
            ("output_stream", "stderr", true),
            ("output_stream", "stdout", true),
            ("output_stream", "log(info)", true),
            ("output_stream", "file:///tmp/x", false),
            ("output_stream", "", false),
            ("output_stream", "stderr2", false),
            ("end", "file://", true),
        ] {
            let attribute = to(key.as_bytes(), value.as_bytes());
            let expected = if is_harmless { &[][..] } else { &[(312, "sc-graph-code")] };
            assert_eq!(found(PRINTS.as_bytes(), &attribute), expected, "{key} {value}");
            assert_eq!(found(b"MatMul", &attribute), [], "of another operation");
        }
        assert_eq!(found(PRINTS.as_bytes(), b""), [], "no attribute");
        let backwards = [field(2, &field(2, b"file://x")), field(1, b"output_stream")].concat();
        assert_eq!(found(PRINTS.as_bytes(), &backwards), [(312, "sc-graph-code")]);
    }
}
