//! Where the paths of operations come from: saving, restoring and tables are in every model, with paths that the program gives.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use pickle_core::Error;

use super::{paths, text};
use crate::problem::Problem;
use crate::reader::Reader;
use crate::wire::{Field, Fields};

/// Longest way from an operation to the argument that is its path.
const MAX_STEPS: u32 = 16;
/// Functions that call one another: each round goes one call further out.
const MAX_ROUNDS: usize = 16;

/// Operations whose path is in the model, or cannot be followed to an argument. The graphs are `depth` messages below the file.
pub(super) fn scan(reader: &mut Reader<'_>, depth: u32) -> Result<Vec<(u64, Problem)>, Error> {
    let mut graphs = Graphs::default();
    graphs.collect(reader, 0..reader.len(), depth)?;
    Ok(graphs.judge())
}

/// A graph, or the body of a function.
#[derive(Default)]
struct Body {
    name: String,
    arguments: Vec<String>,
    nodes: Vec<Node>,
}

#[derive(Default)]
struct Node {
    at: u64,
    name: String,
    operation: String,
    inputs: Vec<String>,
    /// Functions among its attributes.
    functions: Vec<String>,
    /// Texts of a constant.
    texts: Vec<String>,
}

#[derive(Default)]
struct Graphs {
    bodies: Vec<Body>,
    /// Tensors that are paths of assets of the model.
    assets: Vec<String>,
}

impl Graphs {
    fn collect(&mut self, reader: &mut Reader<'_>, range: Range<u64>, depth: u32) -> Result<(), Error> {
        let (mut fields, mut graph) = (Fields::new(range), Body::default());
        while let Some((number, field)) = fields.next(reader)? {
            let Field::Bytes(range) = field else { continue };
            match (depth, number) {
                (1.., 2) => self.collect(reader, range, depth - 1)?,
                // `MetaGraphDef.asset_file_def`
                (1, 6) => self.assets.extend(asset(reader, range)?),
                (0, 1) => graph.nodes.push(node(reader, range)?),
                (0, 2) => {
                    let mut library = Fields::new(range);
                    while let Some((number, field)) = library.next(reader)? {
                        if let (1, Field::Bytes(range)) = (number, field) {
                            self.bodies.push(function(reader, range)?);
                        }
                    }
                }
                _ => {}
            }
        }
        self.bodies.push(graph);
        Ok(())
    }

    fn judge(&self) -> Vec<(u64, Problem)> {
        let mut found = Vec::new();
        // Arguments of functions that are paths.
        let mut needed = BTreeMap::<&str, BTreeSet<usize>>::new();
        for round in 0..=MAX_ROUNDS {
            found.clear();
            let mut is_settled = true;
            for body in &self.bodies {
                let nodes: BTreeMap<&str, &Node> =
                    body.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
                for node in &body.nodes {
                    let from = node.paths(&needed).and_then(|inputs| {
                        inputs
                            .into_iter()
                            .map(|idx| self.arguments(body, &nodes, node.inputs.get(idx)?, 0))
                            .collect()
                    });
                    let Some(from): Option<Vec<BTreeSet<usize>>> = from else {
                        found.push((node.at, Problem::GraphPath { operation: node.operation.clone() }));
                        continue;
                    };
                    let of_body = needed.entry(&body.name).or_default();
                    for idx in from.into_iter().flatten() {
                        is_settled &= !of_body.insert(idx);
                    }
                }
            }
            if is_settled {
                break;
            }
            if round == MAX_ROUNDS {
                found.clear();
                found.push((0, Problem::Unopened { reason: "functions that call one another too deep" }));
            }
        }
        found
    }

    /// The arguments that a path comes from: none of them if it is fed into the graph, `None` if it may be written in the model.
    fn arguments(
        &self,
        body: &Body,
        nodes: &BTreeMap<&str, &Node>,
        input: &str,
        steps: u32,
    ) -> Option<BTreeSet<usize>> {
        let name = tensor(input);
        if let Some(idx) = body.arguments.iter().position(|argument| argument == name) {
            return Some(BTreeSet::from([idx]));
        }
        let node = nodes.get(name).filter(|_| steps < MAX_STEPS)?;
        let follow = |input: &String| self.arguments(body, nodes, input, steps + 1);
        match node.operation.as_str() {
            "Placeholder" => Some(BTreeSet::new()),
            "Const" => self.assets.iter().any(|asset| tensor(asset) == name).then(BTreeSet::new),
            "PlaceholderWithDefault" => {
                let default = node.inputs.first()?;
                match nodes.get(tensor(default))? {
                    Node { operation, texts, .. } if operation == "Const" => {
                        (!texts.is_empty() && texts.iter().all(|text| is_plain(text))).then(BTreeSet::new)
                    }
                    _ => follow(default),
                }
            }
            "Identity" | "ShardedFilename" => follow(node.inputs.first()?),
            "StringJoin" => {
                let (first, rest) = node.inputs.split_first()?;
                rest.iter().all(|input| is_ending(nodes, input, steps)).then(|| follow(first))?
            }
            "Pack" => {
                let all = node.inputs.iter().map(follow).collect::<Option<Vec<_>>>()?;
                Some(all.into_iter().flatten().collect())
            }
            _ => None,
        }
    }
}

/// Whether it may be the end of a path that begins with an argument: a constant that leads to no other folder than one below.
fn is_ending(nodes: &BTreeMap<&str, &Node>, input: &str, steps: u32) -> bool {
    let Some(node) = nodes.get(tensor(input)).filter(|_| steps < MAX_STEPS) else { return false };
    match (node.operation.as_str(), node.inputs.as_slice()) {
        ("Const", _) => !node.texts.iter().any(|text| text.contains("..")) && !node.texts.is_empty(),
        ("Select" | "SelectV2", [_, one, other]) => {
            is_ending(nodes, one, steps + 1) && is_ending(nodes, other, steps + 1)
        }
        _ => false,
    }
}

/// Whether a path is the name of a file beside the program.
fn is_plain(path: &str) -> bool {
    !path.contains(['/', '\\', ':']) && path != ".."
}

/// The name of a node in that of its output.
fn tensor(input: &str) -> &str {
    input.split(':').next().unwrap_or_default()
}

impl Node {
    /// The inputs that are paths; `None` if they are not known.
    fn paths(&self, needed: &BTreeMap<&str, BTreeSet<usize>>) -> Option<Vec<usize>> {
        let mut inputs: Vec<usize> = paths(&self.operation).unwrap_or_default().to_vec();
        let is_call = ["PartitionedCall", "StatefulPartitionedCall"].contains(&&*self.operation);
        for called in self.functions.iter().chain([&self.operation]) {
            let Some(arguments) = needed.get(called.as_str()).filter(|arguments| !arguments.is_empty())
            else {
                continue;
            };
            if !is_call && *called != self.operation {
                return None;
            }
            inputs.extend(arguments);
        }
        Some(inputs)
    }
}

/// `AssetFileDef`: the name of its tensor in field 1 of field 1, its file in field 2. `None` if the file is not one of the model.
fn asset(reader: &mut Reader<'_>, range: Range<u64>) -> Result<Option<String>, Error> {
    let (mut fields, mut name, mut file) = (Fields::new(range), String::new(), String::new());
    while let Some((number, field)) = fields.next(reader)? {
        match (number, field) {
            (1, Field::Bytes(range)) => name = texts(reader, range, 1)?.pop().unwrap_or_default(),
            (2, Field::Bytes(range)) => file = text(reader, range)?,
            _ => {}
        }
    }
    Ok(Some(name).filter(|_| !file.starts_with('/') && !file.contains("..") && !file.contains([':', '\\'])))
}

/// `FunctionDef`: its signature, an `OpDef`, in field 1, its nodes in field 3.
fn function(reader: &mut Reader<'_>, range: Range<u64>) -> Result<Body, Error> {
    let (mut fields, mut body) = (Fields::new(range), Body::default());
    while let Some((number, field)) = fields.next(reader)? {
        match (number, field) {
            (1, Field::Bytes(range)) => {
                let mut signature = Fields::new(range);
                while let Some((number, field)) = signature.next(reader)? {
                    match (number, field) {
                        (1, Field::Bytes(range)) => body.name = text(reader, range)?,
                        (2, Field::Bytes(range)) => {
                            body.arguments.push(texts(reader, range, 1)?.pop().unwrap_or_default());
                        }
                        _ => {}
                    }
                }
            }
            (3, Field::Bytes(range)) => body.nodes.push(node(reader, range)?),
            _ => {}
        }
    }
    Ok(body)
}

fn node(reader: &mut Reader<'_>, range: Range<u64>) -> Result<Node, Error> {
    let mut node = Node { at: range.start, ..Node::default() };
    let mut fields = Fields::new(range);
    while let Some((number, field)) = fields.next(reader)? {
        let Field::Bytes(range) = field else { continue };
        match number {
            1 => node.name = text(reader, range)?,
            2 => node.operation = text(reader, range)?,
            // What begins with `^` is an order, not a value.
            3 => node.inputs.extend(Some(text(reader, range)?).filter(|input| !input.starts_with('^'))),
            // The value of an attribute: a tensor with texts, a function with its name, or a list of functions.
            5 => {
                for value in messages(reader, range, 2)? {
                    for tensor in messages(reader, value.clone(), 8)? {
                        // One by one, or packed into bytes.
                        node.texts.extend(texts(reader, tensor.clone(), 8)?);
                        node.texts.extend(texts(reader, tensor, 4)?);
                    }
                    let mut functions = messages(reader, value.clone(), 10)?;
                    for list in messages(reader, value, 1)? {
                        functions.extend(messages(reader, list, 9)?);
                    }
                    for function in functions {
                        node.functions.extend(texts(reader, function, 1)?);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(node)
}

/// The fields of a message that have this number.
fn messages(reader: &mut Reader<'_>, range: Range<u64>, wanted: u64) -> Result<Vec<Range<u64>>, Error> {
    let (mut fields, mut found) = (Fields::new(range), Vec::new());
    while let Some((number, field)) = fields.next(reader)? {
        if let Field::Bytes(range) = field
            && number == wanted
        {
            found.push(range);
        }
    }
    Ok(found)
}

fn texts(reader: &mut Reader<'_>, range: Range<u64>, wanted: u64) -> Result<Vec<String>, Error> {
    messages(reader, range, wanted)?.into_iter().map(|range| text(reader, range)).collect()
}

#[cfg(test)]
mod tests {
    use alloc::{format, vec};

    use super::super::tests::field;
    use super::*;

    fn node(name: &str, operation: &str, inputs: &[&str], value: &[u8]) -> Vec<u8> {
        let mut node = [field(1, name.as_bytes()), field(2, operation.as_bytes())].concat();
        inputs.iter().for_each(|input| node.extend(field(3, input.as_bytes())));
        node.extend(field(5, &[field(1, b"value"), field(2, value)].concat()));
        node
    }

    fn texts(texts: &[&str]) -> Vec<u8> {
        field(8, &texts.iter().flat_map(|text| field(8, text.as_bytes())).collect::<Vec<_>>())
    }

    fn calls(function: &str) -> Vec<u8> {
        field(10, &field(1, function.as_bytes()))
    }

    fn function(name: &str, arguments: &[&str], nodes: &[Vec<u8>]) -> Vec<u8> {
        let arguments: Vec<_> =
            arguments.iter().flat_map(|name| field(2, &field(1, name.as_bytes()))).collect();
        let signature = field(1, &[field(1, name.as_bytes()), arguments].concat());
        let nodes: Vec<_> = nodes.iter().flat_map(|node| field(3, node)).collect();
        field(1, &[signature, nodes].concat())
    }

    fn graph(nodes: &[Vec<u8>], functions: &[Vec<u8>]) -> Vec<u8> {
        let nodes: Vec<_> = nodes.iter().flat_map(|node| field(1, node)).collect();
        [nodes, field(2, &functions.concat())].concat()
    }

    fn codes(graph: &[u8]) -> Vec<&'static str> {
        let found = super::super::scan(&graph, 10).expect("in memory");
        found.iter().map(|(_, problem)| problem.code()).collect()
    }

    const PATH: &str = "sc-graph-path";

    #[test]
    fn paths_come_from_arguments() {
        let save = || node("save", "SaveV2", &["name:output:0", "x"], b"");
        let with = |nodes: &[Vec<u8>]| {
            let nodes = [&[save()], nodes].concat();
            codes(&graph(&[], &[function("f", &["prefix"], &nodes)]))
        };
        let constant = |name: &str, text: &str| node(name, "Const", &[], &texts(&[text]));
        for (nodes, expected) in [
            (vec![node("name", "Identity", &["prefix"], b"")], &[][..]),
            (vec![node("name", "ShardedFilename", &["prefix", "x"], b"")], &[]),
            (
                vec![
                    node("name", "StringJoin", &["prefix", "end:output:0"], b""),
                    constant("end", "_temp/part"),
                ],
                &[],
            ),
            (
                vec![
                    node("name", "StringJoin", &["prefix", "end"], b""),
                    node("end", "Select", &["x", "a", "b"], b""),
                    constant("a", ".part"),
                    constant("b", "_temp/part"),
                ],
                &[],
            ),
            (
                vec![
                    node("name", "StringJoin", &["prefix", "end"], b""),
                    node("end", "SelectV2", &["x", "a", "b"], b""),
                    constant("a", ".part"),
                    constant("b", "/../x"),
                ],
                &[PATH],
            ),
            (vec![node("name", "StringJoin", &["prefix", "end"], b""), constant("end", "/../../x")], &[PATH]),
            (
                vec![node("name", "StringJoin", &["prefix", "end"], b""), node("end", "Const", &[], b"")],
                &[PATH],
            ),
            (vec![node("name", "StringJoin", &["prefix", "prefix"], b"")], &[PATH]),
            (vec![node("name", "StringJoin", &["start", "prefix"], b""), constant("start", "/x")], &[PATH]),
            (vec![node("name", "StringJoin", &[], b"")], &[PATH]),
            (vec![node("name", "Pack", &["prefix", "prefix", "^x"], b"")], &[]),
            (vec![node("name", "Pack", &["prefix", "start"], b""), constant("start", "/x")], &[PATH]),
            (vec![constant("name", "/x")], &[PATH]),
            (vec![node("name", "Placeholder", &[], b"")], &[]),
            (vec![node("name", "PlaceholderWithDefault", &["a"], b""), constant("a", "model")], &[]),
            (vec![node("name", "PlaceholderWithDefault", &["a"], b""), constant("a", "/x")], &[PATH]),
            (vec![node("name", "PlaceholderWithDefault", &["a"], b""), constant("a", "..")], &[PATH]),
            (
                vec![node("name", "PlaceholderWithDefault", &["a"], b""), node("a", "Const", &[], b"")],
                &[PATH],
            ),
            (
                vec![
                    node("name", "PlaceholderWithDefault", &["a"], b""),
                    node("a", "Const", &[], &field(8, &[field(8, b"model"), field(4, b"\x02/x")].concat())),
                ],
                &[PATH],
            ),
            (
                vec![
                    node("name", "PlaceholderWithDefault", &["a"], b""),
                    node("a", "PlaceholderWithDefault", &["b"], b""),
                    constant("b", "model"),
                ],
                &[],
            ),
            (vec![node("name", "StringFormat", &["prefix"], b"")], &[PATH]),
            (vec![node("name", "Identity", &["name"], b"")], &[PATH]),
            (vec![], &[PATH]),
        ] {
            assert_eq!(with(&nodes), expected, "{:?}", nodes.concat().escape_ascii());
        }
    }

    #[test]
    fn each_operation_with_a_path_is_followed() {
        for (operation, inputs) in super::super::PATHS {
            for wrong in inputs {
                let names = |fixed: usize| -> Vec<&str> {
                    (0..2).map(|idx| if idx == fixed { "fixed" } else { "prefix" }).collect()
                };
                let with = |fixed: usize| {
                    let nodes = [
                        node("n", operation, &names(fixed), b""),
                        node("fixed", "Const", &[], &texts(&["x"])),
                    ];
                    codes(&graph(&[], &[function("f", &["prefix"], &nodes)]))
                };
                assert_eq!(with(*wrong), [PATH], "{operation}");
                assert_eq!(with(9), [""; 0], "{operation}");
            }
            assert_eq!(
                codes(&graph(&[node("n", operation, &[], b"")], &[])),
                [PATH],
                "{operation} without inputs"
            );
        }
    }

    #[test]
    fn callers_of_functions_give_their_paths() {
        let save = function("f", &["other", "prefix"], &[node("save", "SaveV2", &["prefix"], b"")]);
        let with = |operation: &str, input: &str, value: &[u8]| {
            let nodes = [
                node("call", operation, &["x", input], value),
                node("fixed", "Const", &[], &texts(&["x"])),
                node("fed", "Placeholder", &[], b""),
            ];
            codes(&graph(&nodes, core::slice::from_ref(&save)))
        };
        for operation in ["PartitionedCall", "StatefulPartitionedCall"] {
            assert_eq!(with(operation, "fed", &calls("f")), [""; 0], "{operation}");
            assert_eq!(with(operation, "fixed", &calls("f")), [PATH], "{operation}");
            assert_eq!(with(operation, "fixed", &calls("g")), [""; 0], "{operation}");
        }
        assert_eq!(with("If", "fed", &calls("f")), [PATH], "its inputs are not those of the function");
        let list = field(1, &field(9, &field(1, b"f")));
        assert_eq!(with("Case", "fed", &list), [PATH]);
        // A function with the name of an operation.
        let shadow = function("Add", &["prefix"], &[node("save", "SaveV2", &["prefix"], b"")]);
        let nodes = [node("call", "Add", &["fixed"], b""), node("fixed", "Const", &[], &texts(&["x"]))];
        assert_eq!(codes(&graph(&nodes, &[shadow])), [PATH]);
    }

    #[test]
    fn paths_are_followed_through_functions_in_any_order() {
        let chain = |n_functions: usize| {
            let mut functions = vec![function("f0", &["p"], &[node("save", "SaveV2", &["p"], b"")])];
            for idx in 1..n_functions {
                let called = format!("f{}", idx - 1);
                functions.insert(
                    0,
                    function(
                        &format!("f{idx}"),
                        &["p"],
                        &[node("n", "PartitionedCall", &["p"], &calls(&called))],
                    ),
                );
            }
            let last = format!("f{}", n_functions - 1);
            let nodes = [
                node("call", "PartitionedCall", &["fixed"], &calls(&last)),
                node("fixed", "Const", &[], &texts(&["x"])),
            ];
            codes(&graph(&nodes, &functions))
        };
        assert_eq!(chain(3), [PATH]);
        assert_eq!(chain(MAX_ROUNDS), [PATH]);
        assert_eq!(chain(MAX_ROUNDS + 1), ["sc-unopened"]);
    }

    #[test]
    fn tables_are_filled_from_assets() {
        let nodes = [
            node("fill", "InitializeTableFromTextFileV2", &["table", "file"], b""),
            node("file", "Const", &[], &texts(&["/x"])),
        ];
        let with = |tensor: &str, file: &str| {
            let asset = [field(1, &field(1, tensor.as_bytes())), field(2, file.as_bytes())].concat();
            codes(&[field(2, &graph(&nodes, &[])), field(6, &asset)].concat())
        };
        assert_eq!(with("file:0", "words.txt"), [""; 0]);
        for (tensor, file) in [
            ("other:0", "words.txt"),
            ("file:0", "/words.txt"),
            ("file:0", "../words.txt"),
            ("file:0", "C:x"),
        ] {
            assert_eq!(with(tensor, file), [PATH], "{tensor} {file}");
        }
    }
}
