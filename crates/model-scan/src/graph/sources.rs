//! Where the paths of operations come from: saving, restoring and tables are in every model, with paths that the program gives.

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use pickle_core::Error;

use super::{paths, text};
use crate::problem::Problem;
use crate::reader::Reader;
use crate::wire::{Field, Fields};

/// Nodes that are visited on the ways from operations to their arguments, for each node there is.
const STEPS: usize = 64;
/// Longest way.
const MAX_DEPTH: u32 = 16;
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
    /// Nodes that are paths of assets of the model.
    assets: BTreeSet<String>,
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
        let n_nodes: usize = self.bodies.iter().map(|body| body.nodes.len()).sum();
        let mut steps = n_nodes.saturating_mul(STEPS);
        for _ in 0..MAX_ROUNDS {
            found.clear();
            let mut is_settled = true;
            for body in &self.bodies {
                let mut ways = Ways::new(body, &self.assets, steps);
                for node in &body.nodes {
                    let from = node.paths(&needed).and_then(|inputs| ways.all(node, &inputs));
                    let Some(from) = from else {
                        found.push((node.at, Problem::GraphPath { operation: node.operation.clone() }));
                        continue;
                    };
                    let of_body = needed.entry(&body.name).or_default();
                    for idx in from {
                        is_settled &= !of_body.insert(idx);
                    }
                }
                steps = ways.steps;
            }
            if is_settled {
                return found;
            }
        }
        Vec::from([(0, Problem::Unopened { reason: "functions that call one another too deep" })])
    }
}

/// The ways from inputs of a body to its arguments.
struct Ways<'g> {
    arguments: BTreeMap<&'g str, usize>,
    nodes: BTreeMap<&'g str, &'g Node>,
    assets: &'g BTreeSet<String>,
    /// Nodes that may still be visited.
    steps: usize,
}

impl<'g> Ways<'g> {
    fn new(body: &'g Body, assets: &'g BTreeSet<String>, steps: usize) -> Self {
        let arguments = body.arguments.iter().enumerate().map(|(idx, name)| (name.as_str(), idx)).collect();
        let nodes = body.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        Self { arguments, nodes, assets, steps }
    }

    /// The arguments that some inputs of a node come from.
    fn all(&mut self, node: &'g Node, inputs: &[usize]) -> Option<BTreeSet<usize>> {
        let mut from = BTreeSet::new();
        for idx in inputs {
            from.extend(self.arguments(node.inputs.get(*idx)?, MAX_DEPTH)?);
        }
        Some(from)
    }

    fn visit(&mut self, input: &str, depth: u32) -> Option<&'g Node> {
        self.steps = self.steps.checked_sub(1).filter(|_| depth > 0)?;
        self.nodes.get(tensor(input)).copied()
    }

    /// The arguments that a path comes from: none of them if it is fed into the graph, `None` if it may be written in the model.
    fn arguments(&mut self, input: &'g str, depth: u32) -> Option<BTreeSet<usize>> {
        if let Some(idx) = self.arguments.get(tensor(input)) {
            return Some(BTreeSet::from([*idx]));
        }
        let node = self.visit(input, depth)?;
        match (node.operation.as_str(), node.inputs.as_slice()) {
            ("Placeholder", _) => Some(BTreeSet::new()),
            ("Const", _) => self.assets.contains(tensor(input)).then(BTreeSet::new),
            ("PlaceholderWithDefault", [default, ..]) => match self.visit(default, depth - 1)? {
                Node { operation, texts, .. } if operation == "Const" => {
                    (!texts.is_empty() && texts.iter().all(|text| is_plain(text))).then(BTreeSet::new)
                }
                _ => self.arguments(default, depth - 1),
            },
            ("Identity" | "ShardedFilename", [path, ..]) => self.arguments(path, depth - 1),
            ("StringJoin", [first, rest @ ..]) => {
                rest.iter().all(|input| self.is_ending(input, depth - 1)).then_some(())?;
                self.arguments(first, depth - 1)
            }
            ("Pack", inputs) => {
                let mut from = BTreeSet::new();
                for input in inputs {
                    from.extend(self.arguments(input, depth - 1)?);
                }
                Some(from)
            }
            _ => None,
        }
    }

    /// Whether it may be the end of a path that begins with an argument: a constant that leads to no other folder than one below.
    fn is_ending(&mut self, input: &'g str, depth: u32) -> bool {
        let Some(node) = self.visit(input, depth) else { return false };
        match (node.operation.as_str(), node.inputs.as_slice()) {
            ("Const", _) => !node.texts.iter().any(|text| text.contains("..")) && !node.texts.is_empty(),
            ("Select" | "SelectV2", [_, one, other]) => {
                self.is_ending(one, depth - 1) && self.is_ending(other, depth - 1)
            }
            _ => false,
        }
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
    Ok(Some(tensor(&name).to_owned())
        .filter(|_| !file.starts_with('/') && !file.contains("..") && !file.contains([':', '\\'])))
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
        assert_eq!(chain(MAX_ROUNDS - 1), [PATH]);
        assert_eq!(chain(MAX_ROUNDS), ["sc-unopened"]);
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

    #[test]
    fn ways_are_not_longer_than_those_of_savers() {
        let way = |len: usize| {
            let mut nodes = vec![node("save", "SaveV2", &["n0"], b"")];
            nodes.extend(
                (0..len).map(|idx| node(&format!("n{idx}"), "Identity", &[&format!("n{}", idx + 1)], b"")),
            );
            nodes.push(node(&format!("n{len}"), "Placeholder", &[], b""));
            codes(&graph(&nodes, &[]))
        };
        assert_eq!(way(MAX_DEPTH as usize - 1), [""; 0]);
        assert_eq!(way(MAX_DEPTH as usize), [PATH]);
        // Each node is visited in two ways by the one before it.
        let mut nodes = vec![node("save", "SaveV2", &["n0"], b"")];
        nodes.extend((0..10).map(|idx| {
            let next = format!("n{}", idx + 1);
            node(&format!("n{idx}"), "Pack", &[&next, &next], b"")
        }));
        nodes.push(node("n10", "Placeholder", &[], b""));
        assert_eq!(codes(&graph(&nodes, &[])), [PATH]);
        assert_eq!(
            codes(&graph(
                &[nodes[0].clone(), node("n0", "Pack", &["a", "a"], b""), node("a", "Placeholder", &[], b"")],
                &[]
            )),
            [""; 0]
        );
    }
}
