//! Models of ONNX: tensors in other files, and operations of other libraries.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use pickle_core::Error;
use read_at::ReadAt;

use crate::kept::Kept;
use crate::problem::Problem;
use crate::reader::Reader;
use crate::wire::{Field, Fields};

/// Domains of operations that runtimes have themselves, and those below them.
const DOMAINS: [&str; 4] = ["ai.onnx", "com.microsoft", "com.ms", "org.pytorch.aten"];

/// Messages inside each other that are read; protocol buffers refuse more than 100.
const MAX_DEPTH: usize = 128;

/// A message: the fields of it that hold messages, by number.
struct Kind(&'static [(u64, &'static Self)]);

/// What is looked for: an entry of `external_data`.
static ENTRY: Kind = Kind(&[]);
static TENSOR: Kind = Kind(&[(13, &ENTRY)]);
static SPARSE: Kind = Kind(&[(1, &TENSOR), (2, &TENSOR)]);
static ATTRIBUTE: Kind =
    Kind(&[(5, &TENSOR), (6, &GRAPH), (10, &TENSOR), (11, &GRAPH), (22, &SPARSE), (23, &SPARSE)]);
static NODE: Kind = Kind(&[(5, &ATTRIBUTE)]);
static GRAPH: Kind = Kind(&[(1, &NODE), (5, &TENSOR), (15, &SPARSE)]);
static FUNCTION: Kind = Kind(&[(7, &NODE), (11, &ATTRIBUTE)]);
static TRAINING: Kind = Kind(&[(1, &GRAPH), (2, &GRAPH)]);
static MODEL: Kind = Kind(&[(7, &GRAPH), (20, &TRAINING), (25, &FUNCTION)]);

/// What a model reads beside itself: offsets and problems, at most `kept` of them. A file of another kind has none.
pub(crate) fn scan(source: &dyn ReadAt, kept: usize) -> Result<Vec<(u64, Problem)>, Error> {
    let (mut reader, mut found) = (Reader::new(source), Kept::new(kept));
    domains(&mut reader, &mut found)?;
    let mut open = Vec::from([(&MODEL, Fields::new(0..reader.len()))]);
    while let Some((kind, fields)) = open.last_mut() {
        let Some((number, field)) = fields.next(&mut reader)? else {
            open.pop();
            continue;
        };
        let (Field::Bytes(range), Some((_, below))) =
            (field, kind.0.iter().find(|(known, _)| *known == number))
        else {
            continue;
        };
        if !below.0.is_empty() {
            if open.len() < MAX_DEPTH {
                open.push((below, Fields::new(range)));
            }
        } else if let Some(location) = location(&mut reader, range.clone())?
            && !is_beside(&location)
        {
            found.add(range.start, Problem::ExternalData { location });
        }
    }
    Ok(found.sorted())
}

/// Domains of operations that neither runtimes nor the functions of the file have.
fn domains(reader: &mut Reader<'_>, found: &mut Kept) -> Result<(), Error> {
    let mut fields = Fields::new(0..reader.len());
    let (mut has_version, mut has_graph) = (false, false);
    let (mut imported, mut own) = (Vec::new(), BTreeSet::new());
    while let Some((number, field)) = fields.next(reader)? {
        match (number, field) {
            (1, Field::Number) => has_version = true,
            (7, Field::Bytes(_)) => has_graph = true,
            (8, Field::Bytes(range)) => imported.push((range.start, last_text(reader, range, 1)?)),
            (25, Field::Bytes(range)) => {
                own.insert(last_text(reader, range, 10)?);
            }
            _ => {}
        }
    }
    if fields.is_malformed || !has_version || !has_graph {
        return Ok(());
    }
    for (at, domain) in imported {
        if !is_known(&domain) && !own.contains(&domain) {
            found.add(at, Problem::CustomOperation { operation: domain });
        }
    }
    Ok(())
}

fn is_known(domain: &str) -> bool {
    let covers = |known: &&str| {
        domain.strip_prefix(*known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    domain.is_empty() || DOMAINS.iter().any(covers)
}

/// The last text in the fields of a message with this number, as readers merge fields.
fn last_text(reader: &mut Reader<'_>, range: Range<u64>, wanted: u64) -> Result<String, Error> {
    let (mut fields, mut text) = (Fields::new(range), String::new());
    while let Some((number, field)) = fields.next(reader)? {
        if let Field::Bytes(range) = field
            && number == wanted
        {
            let bytes = reader.bytes(range.start, (range.end - range.start).min(1 << 12))?;
            text = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    Ok(text)
}

/// The value of an entry, if its key is `location`.
fn location(reader: &mut Reader<'_>, entry: Range<u64>) -> Result<Option<String>, Error> {
    let is_location = last_text(reader, entry.clone(), 1)? == "location";
    Ok(if is_location { Some(last_text(reader, entry, 2)?) } else { None })
}

/// Whether a path leads to a file in the folder of the model, or below it.
pub(crate) fn is_beside(path: &str) -> bool {
    !path.starts_with('/') && !path.contains(['\\', ':']) && path.split('/').all(|part| part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let tag = u16::from(number) << 3 | 2;
        [&[tag as u8 | 0x80, (tag >> 7) as u8, bytes.len() as u8], bytes].concat()
    }

    fn codes(bytes: &[u8]) -> Vec<(u64, &'static str)> {
        let found = scan(&bytes, 10).expect("in memory");
        found.iter().map(|(at, problem)| (*at, problem.code())).collect()
    }

    fn entry(key: &str, value: &str) -> Vec<u8> {
        field(13, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat())
    }

    #[test]
    fn tensors_lie_beside_the_model() {
        for (path, is_inside) in [
            ("model.onnx.data", true),
            ("data/blob 1.bin", true),
            ("a..b", true),
            ("./x", true),
            ("/etc/hostname", false),
            ("../x", false),
            ("a/../../x", false),
            ("..", false),
            ("C:x", false),
            ("a\\..\\x", false),
            ("http://host/x", false),
        ] {
            assert_eq!(is_beside(path), is_inside, "{path}");
        }
    }

    #[test]
    fn locations_are_found_in_each_tensor() {
        let outside = entry("location", "../x");
        let tensor = |number| field(number, &outside);
        let sparse = |number| field(number, &tensor(1));
        let attribute = |inner: Vec<u8>| field(1, &field(5, &inner));
        let in_graph = field(7, &tensor(5));
        let graphs = [
            in_graph.clone(),
            field(7, &sparse(15)),
            field(7, &field(15, &tensor(2))),
            field(7, &attribute(tensor(5))),
            field(7, &attribute(tensor(10))),
            field(7, &attribute(field(6, &tensor(5)))),
            field(7, &attribute(field(11, &tensor(5)))),
            field(7, &attribute(sparse(22))),
            field(7, &attribute(sparse(23))),
            field(25, &field(7, &field(5, &tensor(5)))),
            field(25, &field(11, &tensor(5))),
            field(20, &field(1, &tensor(5))),
            field(20, &field(2, &tensor(5))),
        ];
        for (idx, graph) in graphs.iter().enumerate() {
            let at = (graph.len() - outside.len() + 3) as u64;
            assert_eq!(codes(graph), [(at, "sc-external-data")], "{idx}");
        }
        for (key, value) in [("location", "x"), ("offset", "../x")] {
            assert_eq!(codes(&field(7, &field(5, &entry(key, value)))), [], "{key}");
        }
        assert_eq!(codes(&field(9, &tensor(5))), []);
        assert_eq!(codes(&field(7, &field(5, &outside)).repeat(12)).len(), 10);
    }

    #[test]
    fn graphs_in_each_other_are_read_as_deep_as_protocol_buffers_do() {
        let nested = |depth: usize| {
            let mut graph = field(5, &entry("location", "/x"));
            for _ in 0..depth {
                let len = |inner: &[u8]| [0x80 | (inner.len() & 0x7f) as u8, (inner.len() >> 7) as u8];
                for tag in [0x32, 0x2a, 0x0a] {
                    graph = [&[tag], len(&graph).as_slice(), &graph].concat();
                }
            }
            let len = [0x80 | (graph.len() & 0x7f) as u8, (graph.len() >> 7) as u8];
            [&[0x3a], len.as_slice(), &graph].concat()
        };
        assert_eq!(codes(&nested(41)).len(), 1);
        assert_eq!(codes(&nested(42)).len(), 0);
    }

    #[test]
    fn domains_are_those_of_runtimes_or_of_functions_of_the_file() {
        let with = |domain: &str, rest: &[u8]| {
            [b"\x08\x08".as_slice(), &field(7, b""), &field(8, &field(1, domain.as_bytes())), rest].concat()
        };
        for (domain, is_known) in [
            ("", true),
            ("ai.onnx", true),
            ("ai.onnx.ml", true),
            ("com.microsoft", true),
            ("com.microsoft.nchwc", true),
            ("com.ms.internal.nhwc", true),
            ("org.pytorch.aten", true),
            ("ai.onnxx", false),
            ("com.evil", false),
        ] {
            let expected = if is_known { &[][..] } else { &[(8, "sc-custom-operation")] };
            assert_eq!(codes(&with(domain, b"")), expected, "{domain}");
        }
        let function = field(25, &field(10, b"pkg.own"));
        assert_eq!(codes(&with("pkg.own", &function)), []);
        assert_eq!(codes(&with("pkg.other", &function)), [(8, "sc-custom-operation")]);
        // Of another format: cut, without a graph, or without a version.
        assert_eq!(codes(&with("com.evil", b"\x0a")), []);
        assert_eq!(codes(&[b"\x08\x08".as_slice(), &field(8, &field(1, b"com.evil"))].concat()), []);
        assert_eq!(codes(&with("com.evil", b"")[2..]), []);
    }
}
