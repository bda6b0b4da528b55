//! Nodes of the operator `Constant`, and text.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use json_scan::{Escape, Writer};
use tensor_dtype::Dtype;

use crate::error::Error;
use crate::protobuf::{Fields, Value};
use crate::tensor::{ElementType, Place, Tensor};
use crate::view::View;

use super::Context;
use super::graph::{Node, Scope};
use super::proto::Proto;
use super::typed::{Number, Typed};

/// The value of an attribute, by its field.
#[derive(Debug, Default)]
struct Attribute {
    name: String,
    float: Option<u32>,
    integer: Option<u64>,
    string: Option<Range<u64>>,
    tensor: Option<Range<u64>>,
    sparse: Option<Range<u64>>,
    /// Bytes of the lists of floats and integers, and how many values there are.
    floats: u64,
    integers: u64,
}

/// Adds the value of a constant: tensors as tensors, scalars and text as entries.
pub(super) fn read(context: &mut Context<'_>, scope: &Scope<'_>, node: &Node) -> Result<(), Error> {
    for message in node.attributes() {
        let at = message.start;
        let mut attribute = attribute(context, message.clone())?;
        let kind = core::mem::take(&mut attribute.name);
        let name = node.output.clone();
        context.budget.take(name.len() as u64)?;
        match (kind.as_str(), attribute) {
            ("value", Attribute { tensor: Some(range), .. }) => scope.add(context, range, Some(name))?,
            ("sparse_value", Attribute { sparse: Some(range), .. }) => {
                scope.add_sparse(context, range, Some(name))?;
            }
            ("value_floats", Attribute { floats, .. }) => {
                let name = scope.name(context, name, at)?;
                list(context, name, message, (7, Number::Bits32, Dtype::F32), floats)?;
            }
            ("value_ints", Attribute { integers, .. }) => {
                let name = scope.name(context, name, at)?;
                list(context, name, message, (8, Number::Signed(8), Dtype::I64), integers)?;
            }
            ("value_float", Attribute { float: Some(bits), .. }) => {
                context.model.add_entry(name, crate::model::json_number(f32::from_bits(bits)));
            }
            ("value_int", Attribute { integer: Some(value), .. }) => {
                context.model.add_entry(name, alloc::format!("{}", value as i64));
            }
            ("value_string", Attribute { string: Some(range), .. }) => {
                match context.reader.text(range, &mut context.budget) {
                    Ok(text) => {
                        let mut json = Writer::compact(Escape::Minimal);
                        json.string(&text);
                        context.model.add_entry(name, json.finish());
                    }
                    Err(_) => context.model.note(name, "text that is not UTF-8 is left out"),
                }
            }
            _ => context.model.note(name, "an unknown kind of constant is left out"),
        }
    }
    Ok(())
}

/// The fields of an attribute.
fn attribute(context: &mut Context<'_>, message: Range<u64>) -> Result<Attribute, Error> {
    let mut attribute = Attribute::default();
    let reader = &mut context.reader;
    let mut fields = Fields::new(message.clone());
    while let Some((number, value)) = fields.next(reader)? {
        let repeated = match (number, value) {
            (1, Value::Bytes(range)) => {
                attribute.name = reader.text(range, &mut context.budget)?;
                false
            }
            (2, Value::Fixed32(bits)) => attribute.float.replace(bits).is_some(),
            (3, Value::Number(value)) => attribute.integer.replace(value).is_some(),
            (4, Value::Bytes(range)) => attribute.string.replace(range).is_some(),
            (5, Value::Bytes(range)) => attribute.tensor.replace(range).is_some(),
            (22, Value::Bytes(range)) => attribute.sparse.replace(range).is_some(),
            (7, Value::Fixed32(_)) => {
                attribute.floats += 1;
                false
            }
            (7, Value::Bytes(range)) => {
                attribute.floats += (range.end - range.start) / 4;
                false
            }
            (8, Value::Number(_)) => {
                attribute.integers += 1;
                false
            }
            (8, Value::Bytes(range)) => {
                let mut packed = Fields::new(range);
                while packed.next_packed(reader)?.is_some() {
                    attribute.integers += 1;
                }
                false
            }
            _ => false,
        };
        if repeated {
            return Err(Error::malformed("a field of an attribute is repeated").at(message.start));
        }
    }
    Ok(attribute)
}

/// A vector from a list of numbers.
fn list(
    context: &mut Context<'_>,
    name: String,
    message: &Range<u64>,
    (field, number, dtype): (u64, Number, Dtype),
    values: u64,
) -> Result<(), Error> {
    let dtype = ElementType::Known(dtype);
    let len = dtype.byte_len(values)?;
    let decode = Typed { message: message.clone(), field, number, values, len };
    let place = (Place::Encoded(Arc::new(decode)), len);
    let limits = &context.options.limits;
    let tensor = Tensor::new(name, dtype, Vec::from([values]), place, View::whole(), limits)?;
    context.model.add(tensor, context.options)
}

/// Keeps a tensor of text as an entry.
pub(super) fn text(context: &mut Context<'_>, proto: &Proto, name: &str) -> Result<(), Error> {
    let mut json = Writer::compact(Escape::Minimal);
    json.begin_object();
    json.key("shape").begin_array();
    for dim in &proto.dims {
        json.plain(dim);
    }
    json.end_array();
    json.key("strings").begin_array();
    let mut fields = Fields::new(proto.range());
    let mut found = 0_u64;
    while let Some((number, value)) = fields.next(&mut context.reader)? {
        if let (6, Value::Bytes(range)) = (number, value) {
            context.budget.take(16 + range.end - range.start)?;
            let bytes = context.reader.bytes(range)?;
            let Ok(text) = core::str::from_utf8(&bytes) else {
                context.model.note(name, "a tensor of text that is not UTF-8 is left out");
                return Ok(());
            };
            json.string(text);
            found += 1;
        }
    }
    json.end_array();
    json.end_object();
    let count = proto.dims.iter().try_fold(1_u64, |count, &dim| count.checked_mul(dim));
    if count != Some(found) {
        context.model.note(name, "a tensor of text whose shape does not match its strings is left out");
        return Ok(());
    }
    context.model.note(name, "a tensor of text is kept as an entry");
    context.model.add_entry(name, json.finish());
    Ok(())
}
