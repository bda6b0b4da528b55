//! ONNX: initializers and constants of a graph and of the graphs nested in it.
//!
//! Source: `onnx/onnx.proto` of ONNX 1.23 and its `docs/ExternalData.md`.

mod constant;
mod describe;
mod external;
mod graph;
mod proto;
mod typed;

use foreign_format::Format;
use read_at::ReadAt;

use crate::error::Error;
use crate::files::Companions;
use crate::model::Model;
use crate::options::Options;
use crate::protobuf::{Fields, Value};
use crate::reader::{Budget, Reader};

use self::external::External;

/// What every part of the walk needs.
struct Context<'c> {
    reader: Reader<'c>,
    options: &'c Options,
    external: External<'c>,
    budget: Budget,
    /// Tensors in attributes of other operators than `Constant`.
    attributes: u64,
    /// Lists of floats there: the weights of models of ONNX-ML.
    lists: u64,
    model: Model,
}

/// Reads an ONNX file. External data is opened through `companions`.
///
/// # Errors
///
/// If the file is malformed; if a name occurs twice in a graph; if external data cannot be opened.
pub fn read(file: &dyn ReadAt, companions: &dyn Companions, options: &Options) -> Result<Model, Error> {
    options.without_object()?;
    let mut context = Context {
        reader: Reader::new(file),
        options,
        external: External::new(companions),
        budget: Budget::new(options.limits.text_bytes),
        attributes: 0,
        lists: 0,
        model: Model::new(Format::Onnx),
    };
    let mut graph = None;
    let (mut functions, mut training) = (alloc::vec::Vec::new(), None);
    let mut fields = Fields::new(0..context.reader.len());
    let mut about = describe::About::default();
    while let Some((number, value)) = fields.next(&mut context.reader)? {
        match (number, value) {
            (7, Value::Bytes(range)) => {
                if graph.is_some() {
                    return Err(Error::malformed("the model has two graphs").at(range.start));
                }
                graph = Some(range);
            }
            (20, Value::Bytes(range)) => training = Some(range),
            (25, Value::Bytes(range)) => {
                context.budget.take(16)?;
                functions.push(range);
            }
            (number, value) => about.field(&mut context, number, value)?,
        }
    }
    let graph = graph.ok_or_else(|| Error::malformed("the model has no graph"))?;
    about.finish(&mut context);
    describe::graph(&mut context, graph.clone())?;
    graph::walk(&mut context, graph)?;
    for function in functions {
        graph::note_function(&mut context, function)?;
    }
    if training.is_some() {
        context.model.note("training_info", "graphs for training are not read");
    }
    if context.model.format() == Format::OnnxMl {
        let what =
            "a model of ONNX-ML: the numbers of its trees and linear models are in attributes of operators";
        context.model.note("", what);
    }
    for (count, what) in [(context.attributes, "tensors"), (context.lists, "lists of floats")] {
        if count > 0 {
            context.model.note("", alloc::format!("{count} {what} in attributes of operators are left out"));
        }
    }
    context.model.tie();
    Ok(context.model)
}
