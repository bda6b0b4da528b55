//! Operations of TFLite that its library does not have: those of TensorFlow, which the package `tensorflow` runs, and those of other libraries.

use alloc::string::String;
use alloc::vec::Vec;

use pickle_core::Error;
use read_at::ReadAt;

use super::{Node, paths};
use crate::kept::Kept;
use crate::problem::Problem;
use crate::reader::Reader;

/// Operations of TFLite and MediaPipe that are registered by name.
const CUSTOM: [&str; 9] = [
    "AudioSpectrogram",
    "Convolution2DTransposeBias",
    "Landmarks2TransformMatrix",
    "MaxPoolingWithArgmax2D",
    "MaxUnpooling2D",
    "Mfcc",
    "TFLite_Detection_PostProcess",
    "TransformLandmarks",
    "TransformTensorBilinear",
];

const UNREAD: Problem = Problem::Unopened { reason: "options of an operation of TensorFlow in TFLite" };

/// Operations of a TFLite file: offsets and problems, at most `kept` of them. A file of another kind has none.
pub(crate) fn scan(source: &dyn ReadAt, kept: usize) -> Result<Vec<(u64, Problem)>, Error> {
    let mut file = File { source };
    if file.little(4, 4)? != u64::from(u32::from_le_bytes(*b"TFL3")) {
        return Ok(Vec::new());
    }
    let (mut found, mut is_flex) = (Kept::new(kept), Vec::new());
    let root = file.number(0)?;
    // A table has more bytes than that: more of them overlap.
    let mut tables = source.total_len() / 16;
    for code in file.tables(root, 1, &mut tables)? {
        let name = file.name(code)?;
        is_flex.push(name.starts_with("Flex"));
        if let Some(problem) = judge(name) {
            found.add(code, problem);
        }
    }
    if is_flex.contains(&true) {
        // Each byte of options is looked at once; more than there are, they overlap.
        let mut left = source.total_len();
        for graph in file.tables(root, 2, &mut tables)? {
            for operator in file.tables(graph, 3, &mut tables)? {
                let Some(options) = file.flex_options(operator, &is_flex)? else { continue };
                let is_new = options.len() as u64 <= left;
                left = left.saturating_sub(options.len() as u64);
                let problem = if is_new { judge_options(&options)? } else { Some(UNREAD) };
                if let Some(problem) = problem {
                    found.add(operator, problem);
                }
            }
        }
    }
    if tables == 0 {
        found.add(0, UNREAD);
    }
    Ok(found.sorted())
}

fn judge(name: String) -> Option<Problem> {
    if name.is_empty() || CUSTOM.contains(&&*name) {
        return None;
    }
    match name.strip_prefix("Flex") {
        Some(operation) => judge_operation(operation),
        None => Some(Problem::CustomOperation { operation: name }),
    }
}

/// As in a graph; nothing says where a path comes from.
fn judge_operation(operation: &str) -> Option<Problem> {
    let operation = String::from(operation);
    if paths(&operation).is_some() || !super::is_name(&operation) {
        return Some(Problem::GraphOperation { operation });
    }
    Node { operation, prints_elsewhere: false, is_whole: true }.judge()
}

/// The options of an operation of TensorFlow: a vector with its name and its node, which is what is run.
fn judge_options(options: &[u8]) -> Result<Option<Problem>, Error> {
    let Some([name, message]) = texts(options) else { return Ok(Some(UNREAD)) };
    let node = Node::read(&mut Reader::new(&message), 0..message.len() as u64)?;
    let is_whole = node.is_whole && node.operation.as_bytes() == name;
    let problem =
        if paths(&node.operation).is_some() { judge_operation(&node.operation) } else { node.judge() };
    Ok(problem.or(Some(UNREAD).filter(|_| !is_whole)))
}

/// The two texts of a vector of FlexBuffers, which is read from its end: the width of the root, its type, and how far before it the vector is.
fn texts(bytes: &[u8]) -> Option<[&[u8]; 2]> {
    let width_at = bytes.len().checked_sub(1)?;
    let width = usize::from(*bytes.get(width_at)?);
    let kind = *bytes.get(width_at.checked_sub(1)?)?;
    let root = width_at.checked_sub(1 + width)?;
    let vector = root.checked_sub(number(bytes, root, width)?)?;
    // 10 is a vector; the low bits are the width of its elements.
    let width = 1 << (kind & 3);
    if kind >> 2 != 10 || number(bytes, vector.checked_sub(width)?, width)? != 2 {
        return None;
    }
    let text = |idx: usize| {
        let kind = *bytes.get(vector + 2 * width + idx)?;
        let at = vector + idx * width;
        let start = at.checked_sub(number(bytes, at, width)?)?;
        let width = 1 << (kind & 3);
        let len = number(bytes, start.checked_sub(width)?, width)?;
        // 5 is a text.
        bytes.get(start..start.checked_add(len)?).filter(|_| kind >> 2 == 5)
    };
    Some([text(0)?, text(1)?])
}

/// Little-endian.
fn number(bytes: &[u8], at: usize, width: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(width)?).filter(|_| [1, 2, 4, 8].contains(&width))?;
    usize::try_from(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))).ok()
}

/// A FlatBuffer: tables, whose fields are found through a table of offsets.
struct File<'s> {
    /// Read in small pieces: what follows each other need not be near.
    source: &'s dyn ReadAt,
}

impl File<'_> {
    /// A number of 4 bytes; 0 beyond the end.
    fn number(&mut self, at: u64) -> Result<u64, Error> {
        self.little(at, 4)
    }

    /// Bytes that are there.
    fn bytes(&self, at: u64, len: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = alloc::vec![0; usize::try_from(len).unwrap_or_default()];
        self.source.read_exact_at(at, &mut bytes)?;
        Ok(bytes)
    }

    fn little(&mut self, at: u64, width: u64) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        let bytes = bytes.get_mut(..usize::try_from(width).unwrap_or_default()).unwrap_or_default();
        if at.checked_add(width).is_some_and(|end| end <= self.source.total_len()) {
            self.source.read_exact_at(at, bytes)?;
        }
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Where a field of a table is; 0 if the table does not have it.
    fn field(&mut self, table: u64, idx: u64) -> Result<u64, Error> {
        let back = self.number(table)? as u32;
        let offsets = table.wrapping_sub(i64::from(back.cast_signed()).cast_unsigned());
        if 4 + 2 * idx >= self.little(offsets, 2)? {
            return Ok(0);
        }
        let offset = self.little(offsets.saturating_add(4 + 2 * idx), 2)?;
        Ok(if offset == 0 { 0 } else { table.saturating_add(offset) })
    }

    /// Start and length of a vector, whose field is there; nothing of it is beyond the end.
    fn vector(&mut self, table: u64, idx: u64, width: u64) -> Result<(u64, u64), Error> {
        let at = self.field(table, idx)?;
        if at == 0 {
            return Ok((0, 0));
        }
        let start = at.saturating_add(self.number(at)?);
        let left = self.source.total_len().saturating_sub(start.saturating_add(4)) / width;
        Ok((start.saturating_add(4), self.number(start)?.min(left)))
    }

    /// Places of the tables of a vector, at most as many as are left.
    fn tables(&mut self, table: u64, idx: u64, left: &mut u64) -> Result<Vec<u64>, Error> {
        let (start, len) = self.vector(table, idx, 4)?;
        let len = len.min(*left);
        *left -= len;
        (0..len).map(|idx| Ok(start + 4 * idx + self.number(start + 4 * idx)?)).collect()
    }

    /// The name of a custom operation in an `OperatorCode`.
    fn name(&mut self, code: u64) -> Result<String, Error> {
        let (start, len) = self.vector(code, 1, 1)?;
        Ok(String::from_utf8_lossy(&self.bytes(start, len.min(super::MAX_NAME))?).into_owned())
    }

    /// Custom options of an operator of TensorFlow; none of them if they are not there.
    fn flex_options(&mut self, operator: u64, is_flex: &[bool]) -> Result<Option<Vec<u8>>, Error> {
        let code = match self.field(operator, 0)? {
            0 => 0,
            at => self.number(at)?,
        };
        let is_flex =
            usize::try_from(code).ok().and_then(|idx| is_flex.get(idx)).copied().unwrap_or_default();
        Ok(if is_flex { Some(self.options(operator)?.unwrap_or_default()) } else { None })
    }

    /// Custom options of an operator, in it or behind the tables; `None` if they are not there.
    fn options(&mut self, operator: u64) -> Result<Option<Vec<u8>>, Error> {
        let (mut start, mut len) = self.vector(operator, 5, 1)?;
        let (at, size) = (self.field(operator, 9)?, self.field(operator, 10)?);
        if at != 0 && size != 0 {
            (start, len) = (self.little(at, 8)?, self.little(size, 8)?);
        }
        let is_there = len > 0 && start.checked_add(len).is_some_and(|end| end <= self.source.total_len());
        Ok(if is_there { Some(self.bytes(start, len)?) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    /// A table of a FlatBuffer with its offsets before it: fields are 4 bytes each, in order; `None` is not there.
    fn table(file: &mut Vec<u8>, fields: &[Option<u32>]) -> usize {
        let start = file.len();
        file.extend((4 + 2 * fields.len() as u16).to_le_bytes());
        file.extend([0; 2]);
        for (idx, field) in fields.iter().enumerate() {
            file.extend(if field.is_some() { 4 + 4 * idx as u16 } else { 0 }.to_le_bytes());
        }
        let at = file.len();
        file.extend(((at - start) as u32).to_le_bytes());
        fields.iter().for_each(|field| file.extend(field.unwrap_or_default().to_le_bytes()));
        at
    }

    /// Lets the field at `at` point to what is added next.
    fn point(file: &mut [u8], at: usize) {
        let to = (file.len() - at) as u32;
        file[at..at + 4].copy_from_slice(&to.to_le_bytes());
    }

    fn text(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
        point(file, at);
        file.extend((bytes.len() as u32).to_le_bytes());
        file.extend(bytes);
    }

    /// A model with one operation of each name, and an operator of each with these options.
    fn model(operations: &[(&str, &[u8])]) -> Vec<u8> {
        let mut file = b"\0\0\0\0TFL3".to_vec();
        let root = table(&mut file, &[Some(3), Some(0), Some(0)]);
        file[..4].copy_from_slice(&(root as u32).to_le_bytes());
        let vector = |file: &mut Vec<u8>, at: usize, len: usize| {
            point(file, at);
            file.extend((len as u32).to_le_bytes());
            let start = file.len();
            file.extend(vec![0; 4 * len]);
            start
        };
        let codes = vector(&mut file, root + 8, operations.len());
        for (idx, (name, _)) in operations.iter().enumerate() {
            let at = codes + 4 * idx;
            // The table begins after its offsets.
            let code = table(&mut file, &[Some(32), Some(0)]);
            let to = (code - at) as u32;
            file[at..at + 4].copy_from_slice(&to.to_le_bytes());
            text(&mut file, code + 8, name.as_bytes());
        }
        let graphs = vector(&mut file, root + 12, 1);
        let graph = table(&mut file, &[None, None, None, Some(0)]);
        file[graphs..graphs + 4].copy_from_slice(&((graph - graphs) as u32).to_le_bytes());
        let operators = vector(&mut file, graph + 16, operations.len());
        for (idx, (_, options)) in operations.iter().enumerate() {
            let at = operators + 4 * idx;
            let operator = table(&mut file, &[Some(idx as u32), None, None, None, None, Some(0)]);
            file[at..at + 4].copy_from_slice(&((operator - at) as u32).to_le_bytes());
            text(&mut file, operator + 24, options);
        }
        file
    }

    /// Options of TensorFlow: a vector of FlexBuffers with two texts.
    fn options(name: &[u8], node: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut starts = Vec::new();
        for text in [name, node] {
            bytes.push(text.len() as u8);
            starts.push(bytes.len());
            bytes.extend(text);
            bytes.push(0);
        }
        bytes.push(2);
        let vector = bytes.len();
        for start in starts {
            bytes.push((bytes.len() - start) as u8);
        }
        bytes.extend([5 << 2, 5 << 2]);
        bytes.push((bytes.len() - vector) as u8);
        bytes.extend([10 << 2, 1]);
        bytes
    }

    fn node(operation: &str) -> Vec<u8> {
        [b"\x0a\x01n\x12".as_slice(), &[operation.len() as u8], operation.as_bytes()].concat()
    }

    fn of(operation: &str) -> Vec<u8> {
        options(operation.as_bytes(), &node(operation))
    }

    fn codes(file: &[u8]) -> Vec<&'static str> {
        let found = scan(&file, 10).expect("in memory");
        found.iter().map(|(_, problem)| problem.code()).collect()
    }

    #[test]
    fn custom_operations_are_those_of_the_lists() {
        for name in CUSTOM {
            assert_eq!(codes(&model(&[(name, b"")])), [""; 0], "{name}");
        }
        for (name, expected) in [
            ("", &[][..]),
            ("FlexMatMul", &[]),
            ("FlexWriteFile", &["sc-graph-code", "sc-graph-code"]),
            ("FlexReadFile", &["sc-graph-files", "sc-graph-files"]),
            ("FlexUnknown", &["sc-graph-operation", "sc-graph-operation"]),
            ("FlexSaveV2", &["sc-graph-operation", "sc-graph-operation"]),
            ("Flex", &["sc-graph-operation"]),
            ("Flex a", &["sc-graph-operation"]),
            ("Mfcc2", &["sc-custom-operation"]),
            ("MyOperation", &["sc-custom-operation"]),
        ] {
            let options = name.strip_prefix("Flex").map(of).unwrap_or_default();
            assert_eq!(codes(&model(&[(name, &options)])), expected, "{name}");
        }
        assert_eq!(
            codes(&model(&[("FlexAdd", &of("Add")), ("MyOperation", b""), ("FlexMul", &of("Mul"))])).len(),
            1
        );
        let mut other = model(&[("MyOperation", b"")]);
        other[7] = b'4';
        assert_eq!(codes(&other), [""; 0], "another format");
    }

    #[test]
    fn the_node_in_the_options_is_what_is_run() {
        let found = |options: &[u8]| codes(&model(&[("Mfcc", b""), ("FlexAdd", options)]));
        assert_eq!(found(&of("Add")), [""; 0]);
        assert_eq!(found(&options(b"Add", &node("WriteFile"))), ["sc-graph-code"]);
        assert_eq!(found(&options(b"Add", &node("SaveV2"))), ["sc-graph-operation"]);
        assert_eq!(found(&options(b"Add", &node("Mul"))), ["sc-unopened"], "another node than its name");
        assert_eq!(
            found(&options(b"Add", &[&node("Add"), [0x12].as_slice()].concat())),
            ["sc-unopened"],
            "cut"
        );
        assert_eq!(found(b""), ["sc-unopened"]);
        let whole = of("Add");
        for idx in [whole.len() - 1, whole.len() - 2, whole.len() - 3, whole.len() - 4, whole.len() - 5] {
            let mut changed = whole.clone();
            changed[idx] ^= 0x1c;
            assert_eq!(found(&changed), ["sc-unopened"], "{idx}");
        }
        for len in 0..whole.len() {
            assert_eq!(texts(&whole[..len]), None, "{len}");
        }
    }

    #[test]
    fn vectors_of_two_texts_are_read_with_any_width() {
        let wide = b"\x01\0a\0\x02\0bc\0\0\x02\0\x0a\0\x08\0\x15\x15\x06\x29\x01";
        assert_eq!(texts(wide), Some([b"a".as_slice(), b"bc"]));
        assert_eq!(number(&[1, 2, 3, 4, 5, 6, 7, 8], 0, 8), Some(0x0807_0605_0403_0201));
        assert_eq!(number(&[1, 2, 3, 4], 1, 2), Some(0x0302));
        assert_eq!((number(&[1, 2, 3, 4], 0, 3), number(&[1, 2, 3], 0, 4)), (None, None));
    }

    #[test]
    fn options_after_the_tables_are_read() {
        let mut file = model(&[("FlexAdd", b"")]);
        let operator =
            table(&mut file, &[None, None, None, None, None, None, None, None, None, Some(0), Some(0), None]);
        let options = of("WriteFile");
        let at = file.len() + 16;
        for (number, field) in [(at, 9), (options.len(), 10)] {
            let place = operator + 4 + 4 * field;
            let to = file.len();
            file.extend((number as u64).to_le_bytes());
            // The fields are numbers of 8 bytes: the table says where.
            let offsets =
                operator - u32::from_le_bytes(file[operator..operator + 4].try_into().unwrap()) as usize;
            let offset = ((to - operator) as u16).to_le_bytes();
            file[offsets + 4 + 2 * field..offsets + 6 + 2 * field].copy_from_slice(&offset);
            assert!(place < to);
        }
        file.extend(&options);
        let found = |source: &Vec<u8>| File { source }.options(operator as u64).expect("in memory");
        assert_eq!(found(&file), Some(options));
        file.pop();
        assert_eq!(found(&file), None, "beyond the end");
    }

    #[test]
    fn the_same_options_are_not_read_again_and_again() {
        let long = options(b"Add", &[&node("Add"), [0x2a, 100].as_slice(), &[0; 100]].concat());
        let mut file = model(&[("FlexAdd", &long), ("FlexMul", b"")]);
        assert_eq!(codes(&file), ["sc-unopened"]);
        // A thousand operators with the same options.
        let graphs = scan_tables(&file);
        let operators = file.len();
        file.extend(1000_u32.to_le_bytes());
        for idx in 0..1000 {
            let at = operators + 4 + 4 * idx;
            file.extend((graphs.1 as u32).wrapping_sub(at as u32).to_le_bytes());
        }
        let place = graphs.0 + 16;
        file[place..place + 4].copy_from_slice(&((operators - place) as u32).to_le_bytes());
        assert!(codes(&file).contains(&"sc-unopened"));
    }

    /// The table of the graph, and of its first operator.
    fn scan_tables(file: &[u8]) -> (usize, usize) {
        let (mut reader, mut left) = (File { source: &file }, 100);
        let root = reader.number(0).expect("in memory");
        let graph = reader.tables(root, 2, &mut left).expect("in memory")[0];
        (graph as usize, reader.tables(graph, 3, &mut left).expect("in memory")[0] as usize)
    }
}
