//! Programs of TorchScript and exported graphs: operations that open files, and those of other libraries.

use alloc::string::String;
use alloc::vec::Vec;

use pickle_core::Error;
use read_at::ReadAt;

use crate::kept::Kept;
use crate::problem::Problem;
use crate::reader::Reader;

/// Namespaces of operations that PyTorch has itself.
const OWN: [&str; 9] = [
    "aten",
    "prim",
    "quantized",
    "_quantized",
    "prepacked",
    "sparse",
    "mkldnn",
    "profiler",
    "quantized_decomposed",
];

/// Operations that open files.
const FILES: [&str; 4] = ["save", "_save", "from_file", "load"];

/// Longest path that is kept.
const MAX_PATH: usize = 200;

/// Operations in the text of a program: offsets and problems, at most `kept` of them.
pub(crate) fn scan(source: &dyn ReadAt, kept: usize) -> Result<Vec<(u64, Problem)>, Error> {
    let (mut reader, mut found) = (Reader::new(source), Kept::new(kept));
    let (mut path, mut start, mut at) = (String::new(), 0, 0);
    // Whether a name may go on: it has begun and no blank followed, or a dot is before.
    let mut is_open = false;
    while let Some(byte) = reader.byte(at)? {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' => {
                if !is_open {
                    end(&mut path, start, &mut found);
                    start = at;
                    is_open = true;
                }
                if path.len() < MAX_PATH {
                    path.push(char::from(byte));
                }
            }
            b'.' if !path.is_empty() => {
                path.push('.');
                is_open = true;
            }
            b' ' | b'\t' | b'\r' | b'\n' | b'\\' => is_open = path.ends_with('.'),
            b'#' => {
                at = reader.find(at, b'\n')?.unwrap_or(reader.len());
                is_open = path.ends_with('.');
                continue;
            }
            b'"' | b'\'' => {
                end(&mut path, start, &mut found);
                is_open = false;
                at = string_end(&mut reader, at, byte)?;
                continue;
            }
            _ => {
                end(&mut path, start, &mut found);
                is_open = false;
            }
        }
        at += 1;
    }
    end(&mut path, start, &mut found);
    Ok(found.sorted())
}

/// Judges a path and forgets it.
fn end(path: &mut String, start: u64, found: &mut Kept) {
    let mut parts = path.split('.');
    let (first, second, last) = (parts.next(), parts.next(), path.rsplit('.').next());
    let is_suspicious = match (first, second) {
        // Under another name, it would not be recognized.
        (Some("ops" | "torch"), None) => true,
        (Some("ops"), Some(namespace)) if !OWN.contains(&namespace) => true,
        (Some("ops" | "torch"), Some(_)) => last.is_some_and(|name| FILES.contains(&name)),
        _ => false,
    };
    let problem = Problem::ScriptOperation { operation: path.clone() };
    if is_suspicious && !found.as_slice().iter().any(|(_, known)| *known == problem) {
        found.add(start, problem);
    }
    path.clear();
}

/// Namespaces of exported graphs, besides.
const EXPORTED: [&str; 4] = ["prims", "higher_order", "_c10d_functional", "inductor"];

/// Operations in the JSON of an exported graph, which are `torch.ops.NAMESPACE.NAME.OVERLOAD`.
pub(crate) fn scan_graph(source: &dyn ReadAt, kept: usize) -> Result<Vec<(u64, Problem)>, Error> {
    let (mut reader, mut found) = (Reader::new(source), Kept::new(kept));
    let (mut path, mut at) = (String::new(), 0);
    loop {
        let byte = reader.byte(at)?;
        match byte {
            Some(byte @ (b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.')) => {
                if path.len() < MAX_PATH {
                    path.push(char::from(byte));
                }
            }
            _ => {
                if let Some((namespace, rest)) =
                    path.strip_prefix("torch.ops.").map(|path| path.split_once('.').unwrap_or((path, "")))
                    && !is_own(namespace, rest.split('.').next().unwrap_or_default(), &EXPORTED)
                {
                    let problem = Problem::ScriptOperation { operation: path.clone() };
                    if !found.as_slice().iter().any(|(_, known)| *known == problem) {
                        found.add(at - path.len() as u64, problem);
                    }
                }
                path.clear();
            }
        }
        if byte.is_none() {
            return Ok(found.sorted());
        }
        at += 1;
    }
}

/// Whether an operator of bytecode, `NAMESPACE::NAME`, opens files or is of another library.
pub(crate) fn is_suspicious(operator: &str) -> bool {
    operator.split_once("::").is_some_and(|(namespace, name)| !is_own(namespace, name, &[]))
}

fn is_own(namespace: &str, name: &str, more: &[&str]) -> bool {
    (OWN.contains(&namespace) || more.contains(&namespace)) && !FILES.contains(&name)
}

/// After a string literal.
fn string_end(reader: &mut Reader<'_>, mut at: u64, quote: u8) -> Result<u64, Error> {
    let triple = reader.byte(at + 1)? == Some(quote) && reader.byte(at + 2)? == Some(quote);
    at += if triple { 3 } else { 1 };
    let mut quotes = 0;
    while let Some(byte) = reader.byte(at)? {
        at += 1;
        quotes = if byte == quote { quotes + 1 } else { 0 };
        if byte == b'\\' {
            at += 1;
        } else if quotes == if triple { 3 } else { 1 } || (byte == b'\n' && !triple) {
            break;
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned as _;

    use super::*;

    #[test]
    fn operations_of_graphs_and_bytecode_are_found() {
        let found = |text: &str| -> Vec<_> {
            let found = scan_graph(&text.as_bytes(), 10).expect("in memory");
            found.iter().map(|(at, _)| *at).collect()
        };
        assert_eq!(
            found(r#"{"target": "torch.ops.aten.add.Tensor", "a": "torch.ops.higher_order.cond"}"#),
            [0; 0]
        );
        assert_eq!(found(r#"{"target": "torch.ops.aten.from_file.default"}"#), [12]);
        assert_eq!(
            found(r#"["torch.ops.mylib.run.default","torch.ops.mylib.run.default","torch.ops.x"#),
            [2, 62]
        );
        assert_eq!(found("torch.ops.prims.add torch.ops.prims._save my.torch.ops.x.y"), [20]);
        for (operator, suspicious) in [
            ("aten::add", false),
            ("aten::save", true),
            ("aten::from_file", true),
            ("prims::add", true),
            ("mylib::run", true),
            ("text", false),
        ] {
            assert_eq!(is_suspicious(operator), suspicious, "{operator}");
        }
    }

    #[test]
    fn operations_are_found_however_they_are_written() {
        let paths = |text: &str| -> Vec<_> {
            let found = scan(&text.as_bytes(), 10).expect("in memory");
            found.iter().map(|(at, _)| *at).collect()
        };
        assert_eq!(paths("x = torch.add(a, b)\ny = ops.aten.mul(x, 2)\nz = ops.quantized.linear(x)"), [0; 0]);
        assert_eq!(paths("torch.save(x, 'f')"), [0]);
        assert_eq!(paths("ops.aten._save(x)\nops.aten.load(x)"), [0, 18]);
        assert_eq!(paths("a = torch . \\\n from_file('f')"), [4]);
        assert_eq!(paths("ops.mylib.run(x)"), [0]);
        assert_eq!(paths("t = torch\nt.save(x)"), [4]);
        assert_eq!(paths("# torch.save\n'torch.save' \"\\\"torch.save\""), [0; 0]);
        assert_eq!(paths("a.torch.save(b)"), [0; 0], "a member of the module");
        assert_eq!(paths("torch#x\n.save(b)"), [0]);
        assert_eq!(paths("torch . add(x)\ntorch\\\n.\tadd(x)"), [0; 0]);
        assert_eq!(paths("(a).torch.save(b)"), [4]);
        assert_eq!(paths("torch.save(x)\ntorch.from_file(y)\ntorch.save(z)"), [0, 14], "each once");
        // After string literals, and in them.
        assert_eq!(paths("'''a'\n''b''' torch.save(x)"), [13]);
        assert_eq!(paths("'' torch.save(x)"), [3]);
        assert_eq!(paths("'a' torch.save(x)"), [4]);
        assert_eq!(paths("\"'\" torch.save(x)"), [4]);
        assert_eq!(paths("'a torch.save(x)'"), [0; 0]);
        assert_eq!(paths("'a\ntorch.save(x)"), [3], "no string goes on in another line");
        assert_eq!(paths("'''a\ntorch.save(x)''' '''\\'''torch.save'''"), [0; 0]);
        let long = scan(&("ops.".to_owned() + &"x".repeat(300)).as_bytes(), 10).expect("in memory");
        let operation = "ops.".to_owned() + &"x".repeat(MAX_PATH - 4);
        assert_eq!(long, [(0, Problem::ScriptOperation { operation })]);
    }
}
