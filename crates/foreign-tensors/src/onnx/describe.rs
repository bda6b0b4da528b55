//! What a model says about itself: versions, operator sets, inputs and outputs, metadata.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use core::ops::Range;

use json_scan::{Escape, Writer};

use crate::error::Error;
use crate::names::join;
use crate::protobuf::{Fields, Value};

use super::Context;
use super::external::pair;
use super::proto::type_name;

/// Fields of the model.
#[derive(Debug, Default)]
pub(super) struct About {
    opsets: BTreeMap<String, i64>,
}

impl About {
    /// Takes a field of the model that is not a graph.
    pub(super) fn field(
        &mut self,
        context: &mut Context<'_>,
        number: u64,
        value: Value,
    ) -> Result<(), Error> {
        match (number, value) {
            (1, Value::Number(version)) => context.model.add_entry("onnx.ir_version", format!("{version}")),
            (5, Value::Number(version)) => {
                context.model.add_entry("onnx.model_version", format!("{}", version as i64));
            }
            (2, Value::Bytes(range)) => string(context, "onnx.producer_name", range)?,
            (3, Value::Bytes(range)) => string(context, "onnx.producer_version", range)?,
            (4, Value::Bytes(range)) => string(context, "onnx.domain", range)?,
            (6, Value::Bytes(range)) => string(context, "onnx.doc_string", range)?,
            (8, Value::Bytes(range)) => {
                let (mut domain, mut version) = (String::new(), 0);
                let mut fields = Fields::new(range);
                while let Some((number, value)) = fields.next(&mut context.reader)? {
                    match (number, value) {
                        (1, Value::Bytes(range)) => {
                            domain = context.reader.text(range, &mut context.budget)?;
                        }
                        (2, Value::Number(number)) => version = number as i64,
                        _ => {}
                    }
                }
                self.opsets.insert(domain, version);
            }
            (14, Value::Bytes(range)) => {
                if let Some((key, value)) = pair(&mut context.reader, range, &mut context.budget)? {
                    let mut json = Writer::compact(Escape::Minimal);
                    json.string(&value);
                    context.model.add_entry(join("onnx.metadata", &key), json.finish());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds what was collected. The default domain has an empty name in files.
    pub(super) fn finish(self, context: &mut Context<'_>) {
        let mut json = Writer::compact(Escape::Minimal);
        json.begin_object();
        for (domain, version) in &self.opsets {
            json.key(if domain.is_empty() { "ai.onnx" } else { domain }).plain(version);
        }
        json.end_object();
        context.model.add_entry("onnx.opset_import", json.finish());
    }
}

/// Adds a string, unless it is empty or no text.
fn string(context: &mut Context<'_>, name: &str, range: Range<u64>) -> Result<(), Error> {
    if range.is_empty() {
        return Ok(());
    }
    context.budget.take(range.end - range.start)?;
    let bytes = context.reader.bytes(range)?;
    match core::str::from_utf8(&bytes) {
        Ok(text) => {
            let mut json = Writer::compact(Escape::Minimal);
            json.string(text);
            context.model.add_entry(name, json.finish());
        }
        Err(_) => context.model.note(name, "text that is not UTF-8 is left out"),
    }
    Ok(())
}

/// Adds how many nodes each operator has.
pub(super) fn operators(context: &mut Context<'_>, operators: &BTreeMap<String, u64>) {
    let mut json = Writer::compact(Escape::Minimal);
    json.begin_object();
    for (name, nodes) in operators {
        json.key(name).plain(nodes);
    }
    json.end_object();
    context.model.add_entry("onnx.operators", json.finish());
}

/// Inputs and outputs of the main graph.
pub(super) fn graph(context: &mut Context<'_>, range: Range<u64>) -> Result<(), Error> {
    let (mut inputs, mut outputs) = (list(), list());
    let mut fields = Fields::new(range);
    while let Some((number, value)) = fields.next(&mut context.reader)? {
        match (number, value) {
            (2, Value::Bytes(range)) => string(context, "onnx.graph", range)?,
            (11, Value::Bytes(range)) => info(context, range, &mut inputs)?,
            (12, Value::Bytes(range)) => info(context, range, &mut outputs)?,
            _ => {}
        }
    }
    for (name, mut json) in [("onnx.inputs", inputs), ("onnx.outputs", outputs)] {
        json.end_array();
        context.model.add_entry(name, json.finish());
    }
    Ok(())
}

fn list() -> Writer {
    let mut json = Writer::compact(Escape::Minimal);
    json.begin_array();
    json
}

/// Type and shape of an input or output. Where a field is repeated, the last one counts.
#[derive(Debug, Default)]
struct Type {
    dtype: Option<&'static str>,
    shape: Option<Range<u64>>,
}

/// A `ValueInfoProto`: name, type and shape, of which dimensions may have names.
fn info(context: &mut Context<'_>, range: Range<u64>, json: &mut Writer) -> Result<(), Error> {
    context.budget.take(64)?;
    let (mut name, mut about) = (String::new(), Type::default());
    let mut fields = Fields::new(range);
    while let Some((number, value)) = fields.next(&mut context.reader)? {
        match (number, value) {
            (1, Value::Bytes(range)) => name = context.reader.text(range, &mut context.budget)?,
            (2, Value::Bytes(range)) => about = tensor_type(context, range)?,
            _ => {}
        }
    }
    json.begin_object();
    json.key("name").string(&name);
    json.key("dtype");
    match about.dtype {
        Some(name) => json.string(name),
        None => json.null(),
    };
    json.key("shape");
    match about.shape {
        Some(range) => shape(context, range, json)?,
        None => {
            json.null();
        }
    }
    json.end_object();
    Ok(())
}

/// A `TypeProto`, of which tensors are described.
fn tensor_type(context: &mut Context<'_>, range: Range<u64>) -> Result<Type, Error> {
    let mut about = Type::default();
    let mut fields = Fields::new(range);
    while let Some((number, value)) = fields.next(&mut context.reader)? {
        let (1, Value::Bytes(range)) = (number, value) else { continue };
        let mut fields = Fields::new(range);
        while let Some((number, value)) = fields.next(&mut context.reader)? {
            match (number, value) {
                (1, Value::Number(number)) => about.dtype = type_name(number),
                (2, Value::Bytes(range)) => about.shape = Some(range),
                _ => {}
            }
        }
    }
    Ok(about)
}

fn shape(context: &mut Context<'_>, range: Range<u64>, json: &mut Writer) -> Result<(), Error> {
    json.begin_array();
    let mut dims = Fields::new(range);
    while let Some((number, value)) = dims.next(&mut context.reader)? {
        if let (1, Value::Bytes(range)) = (number, value) {
            dimension(context, range, json)?;
        }
    }
    json.end_array();
    Ok(())
}

/// A dimension: a number, a name, or nothing.
fn dimension(context: &mut Context<'_>, range: Range<u64>, json: &mut Writer) -> Result<(), Error> {
    context.budget.take(8)?;
    let mut fields = Fields::new(range);
    while let Some((number, value)) = fields.next(&mut context.reader)? {
        match (number, value) {
            (1, Value::Number(dim)) => {
                json.plain(dim as i64);
                return Ok(());
            }
            (2, Value::Bytes(range)) => {
                let name = context.reader.text(range, &mut context.budget)?;
                json.string(&name);
                return Ok(());
            }
            _ => {}
        }
    }
    json.null();
    Ok(())
}
