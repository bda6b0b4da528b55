//! Graphs: the main one, then those of branches and loops, one after the other.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::error::{Error, ErrorKind};
use crate::names::join;
use crate::protobuf::{Fields, Value};

use super::proto::{Proto, dims};
use super::{Context, constant, describe};

/// A graph that is still to be read.
struct Nested {
    range: Range<u64>,
    depth: usize,
    /// What distinguishes names of this graph from the same ones elsewhere: nodes and branches from the outside in.
    path: String,
}

/// A node, of which only names have been read.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) operator: String,
    pub(super) output: String,
    label: String,
    attributes: Vec<Range<u64>>,
}

/// The graph that is being read.
pub(super) struct Scope<'p> {
    path: &'p str,
}

impl Scope<'_> {
    /// The name for a tensor of this graph. Another graph may have a tensor of the same name: the path is put in front then.
    pub(super) fn name(&self, context: &mut Context<'_>, name: String, at: u64) -> Result<String, Error> {
        if name.is_empty() {
            return Err(Error::malformed("a tensor has no name").at(at));
        }
        if self.path.is_empty() || !context.model.has(&name) {
            return Ok(name);
        }
        context.budget.take((self.path.len() + name.len()) as u64)?;
        let renamed = join(self.path, &name);
        context.model.note(
            renamed.as_str(),
            "another graph has a tensor of this name: the path of its own is put in front",
        );
        Ok(renamed)
    }

    /// Adds an initializer or the value of a constant. Without a `name` of its own it has that of the message.
    pub(super) fn add(
        &self,
        context: &mut Context<'_>,
        range: Range<u64>,
        name: Option<String>,
    ) -> Result<(), Error> {
        let at = range.start;
        let proto = Proto::read(context, range).map_err(|error| error.at(at))?;
        let name = match name {
            Some(name) => name,
            None => context.reader.text(proto.name.clone(), &mut context.budget)?,
        };
        let name = self.name(context, name, at)?;
        if proto.is_text() {
            return constant::text(context, &proto, &name);
        }
        let tensor = proto.tensor(context, name)?;
        context.model.add(tensor, context.options).map_err(|error| error.at(at))
    }

    /// Adds a sparse tensor, which is not represented.
    pub(super) fn add_sparse(
        &self,
        context: &mut Context<'_>,
        range: Range<u64>,
        mut name: Option<String>,
    ) -> Result<(), Error> {
        let at = range.start;
        let (mut fields, mut shape) = (Fields::new(range), Vec::new());
        while let Some((number, value)) = fields.next(&mut context.reader)? {
            match (number, value) {
                (1, Value::Bytes(values)) if name.is_none() => {
                    let values = Proto::read(context, values)?.name;
                    name = Some(context.reader.text(values, &mut context.budget)?);
                }
                (3, value) => dims(&mut shape, value, context)?,
                _ => {}
            }
        }
        let name = self.name(context, name.unwrap_or_default(), at)?;
        let tensor = crate::tensor::Tensor::unsupported(name, shape, "a sparse tensor");
        context.model.add(tensor, context.options)
    }
}

/// Reads the tensors of a graph and of the graphs nested in it.
pub(super) fn walk(context: &mut Context<'_>, main: Range<u64>) -> Result<(), Error> {
    let mut operators = BTreeMap::<String, u64>::new();
    let mut queue = VecDeque::from([Nested { range: main, depth: 1, path: String::new() }]);
    while let Some(graph) = queue.pop_front() {
        let scope = Scope { path: &graph.path };
        let mut fields = Fields::new(graph.range.clone());
        while let Some((number, value)) = fields.next(&mut context.reader)? {
            let Value::Bytes(range) = value else { continue };
            match number {
                1 => {
                    let node = node(context, range)?;
                    nested(context, &node, &graph, &mut queue)?;
                    if node.operator == "Constant" {
                        constant::read(context, &scope, &node)?;
                    }
                    *operators.entry(node.operator).or_default() += 1;
                }
                5 => scope.add(context, range, None)?,
                15 => scope.add_sparse(context, range, None)?,
                _ => {}
            }
        }
    }
    if operators.keys().any(|operator| operator.starts_with("ai.onnx.ml.")) {
        context.model.set_format(foreign_format::Format::OnnxMl);
    }
    describe::operators(context, &operators);
    Ok(())
}

impl Node {
    /// The attributes: name and message.
    pub(super) fn attributes(&self) -> &[Range<u64>] {
        &self.attributes
    }
}

/// The names of a node, and where its attributes are.
fn node(context: &mut Context<'_>, range: Range<u64>) -> Result<Node, Error> {
    let (mut node, mut domain, mut has_output) = (Node::default(), String::new(), false);
    let (reader, budget) = (&mut context.reader, &mut context.budget);
    let mut fields = Fields::new(range);
    while let Some((number, value)) = fields.next(reader)? {
        let Value::Bytes(range) = value else { continue };
        match number {
            2 if !has_output => {
                has_output = true;
                node.output = reader.text(range, budget)?;
            }
            3 => node.label = reader.text(range, budget)?,
            4 => node.operator = reader.text(range, budget)?,
            5 => node.attributes.push(range),
            7 => domain = reader.text(range, budget)?,
            _ => {}
        }
    }
    if !matches!(domain.as_str(), "" | "ai.onnx") {
        // An operator of the same name in another domain is another one.
        node.operator = join(&domain, &node.operator);
    }
    Ok(node)
}

/// Queues the graphs in the attributes of a node.
fn nested(
    context: &mut Context<'_>,
    node: &Node,
    outer: &Nested,
    queue: &mut VecDeque<Nested>,
) -> Result<(), Error> {
    for attribute in node.attributes() {
        let (mut fields, mut branch) = (Fields::new(attribute.clone()), None);
        let (mut graphs, mut has_floats) = (0_u32, false);
        while let Some((number, value)) = fields.next(&mut context.reader)? {
            match (number, value) {
                (1, Value::Bytes(range)) => branch = Some(range),
                (6 | 11, Value::Bytes(range)) => {
                    let limit = context.options.limits.depth;
                    if outer.depth >= limit {
                        let limit = ErrorKind::Limit { limit: "depth", allowed: limit as u64 };
                        return Err(Error::from(limit).at(range.start));
                    }
                    let branch = match &branch {
                        Some(branch) => context.reader.text(branch.clone(), &mut context.budget)?,
                        None => String::new(),
                    };
                    let label = if node.label.is_empty() { &node.output } else { &node.label };
                    let path = join(&join(&outer.path, label), &branch);
                    // What is kept of each graph until its turn comes.
                    context.budget.take(path.len() as u64 + 64)?;
                    let path = if graphs == 0 { path } else { format!("{path}.{graphs}") };
                    graphs += 1;
                    queue.push_back(Nested { range, depth: outer.depth + 1, path });
                }
                (5 | 10 | 22, Value::Bytes(_)) if node.operator != "Constant" => context.attributes += 1,
                (7, _) => has_floats |= node.operator != "Constant",
                _ => {}
            }
        }
        context.lists += u64::from(has_floats);
    }
    Ok(())
}

/// Notes a function with constants: they belong to the definition of an operator, which may be used any number of times.
pub(super) fn note_function(context: &mut Context<'_>, range: Range<u64>) -> Result<(), Error> {
    let (mut name, mut has_constants) = (String::new(), false);
    let mut fields = Fields::new(range);
    while let Some((number, value)) = fields.next(&mut context.reader)? {
        match (number, value) {
            (1, Value::Bytes(range)) => name = context.reader.text(range, &mut context.budget)?,
            (7, Value::Bytes(range)) if !has_constants => {
                let node = node(context, range)?;
                has_constants = node.operator == "Constant";
                for attribute in node.attributes() {
                    let mut fields = Fields::new(attribute.clone());
                    while let Some((number, _)) = fields.next(&mut context.reader)? {
                        has_constants |= matches!(number, 5 | 6 | 10 | 11 | 22);
                    }
                }
            }
            _ => {}
        }
    }
    if has_constants {
        context.model.note(name.as_str(), "constants in the definition of a function are left out");
    }
    Ok(())
}
