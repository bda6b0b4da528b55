//! TensorFlow Lite: tensors that have a buffer with bytes.
//!
//! Source: `tensorflow/compiler/mlir/lite/schema/schema.fbs` of TensorFlow 2.21.

mod table;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use foreign_format::Format;
use json_scan::{Escape, Writer};
use read_at::ReadAt;
use tensor_dtype::Dtype;

use crate::error::{Error, ErrorKind};
use crate::files::Companions;
use crate::model::{Model, json_number};
use crate::names::join;
use crate::options::Options;
use crate::reader::{Budget, Reader};
use crate::tensor::{ElementType, Place, Tensor};
use crate::view::View;

use self::table::{Table, Vector};

/// The file and what is being made of it.
struct Context<'c> {
    reader: Reader<'c>,
    options: &'c Options,
    budget: Budget,
    steps: u64,
    model: Model,
    buffers: Vector,
}

/// Reads a TensorFlow Lite file.
///
/// # Errors
///
/// If the file is malformed.
pub fn read(file: &dyn ReadAt, companions: &dyn Companions, options: &Options) -> Result<Model, Error> {
    options.without_object()?;
    let _ = companions;
    let mut reader = Reader::new(file);
    if reader.array(4)? != *b"TFL3" {
        return Err(Error::malformed("no TensorFlow Lite file").at(4));
    }
    let root = Table::root(&mut reader)?;
    let mut context = Context {
        buffers: root.vector(&mut reader, 4, 4)?,
        reader,
        options,
        budget: Budget::new(options.limits.text_bytes),
        steps: options.limits.steps,
        model: Model::new(Format::TfLite),
    };
    context.about(&root)?;
    let graphs = root.vector(&mut context.reader, 2, 4)?;
    for number in 0..graphs.count {
        let graph = graphs.table(&mut context.reader, number)?;
        let tensors = graph.vector(&mut context.reader, 0, 4)?;
        for idx in 0..tensors.count {
            let tensor = tensors.table(&mut context.reader, idx)?;
            context.tensor(&tensor, (number, idx))?;
        }
        for (field, name) in [(1, "inputs"), (2, "outputs")] {
            let list = graph.vector(&mut context.reader, field, 4)?;
            context.ports(tensors, list, format!("tflite.{number}.{name}"))?;
        }
    }
    context.model.tie();
    Ok(context.model)
}

impl Context<'_> {
    fn step(&mut self) -> Result<(), Error> {
        let limit = || ErrorKind::Limit { limit: "steps", allowed: self.options.limits.steps };
        self.steps = self.steps.checked_sub(1).ok_or_else(limit)?;
        Ok(())
    }

    /// Adds version, description and the names of further data.
    fn about(&mut self, root: &Table) -> Result<(), Error> {
        let version = root.u32(&mut self.reader, 0)?;
        self.model.add_entry("tflite.version", format!("{version}"));
        let description = root.string(&mut self.reader, 3, &mut self.budget)?;
        if !description.is_empty() {
            self.model.add_entry("tflite.description", string(&description));
        }
        let metadata = root.vector(&mut self.reader, 6, 4)?;
        for number in 0..metadata.count {
            self.step()?;
            let entry = metadata.table(&mut self.reader, number)?;
            let name = entry.string(&mut self.reader, 0, &mut self.budget)?;
            self.budget.take(32)?;
            let buffer = entry.u32(&mut self.reader, 1)?;
            let len = self.buffer(buffer)?.map_or(0, |range| range.end - range.start);
            let mut json = Writer::compact(Escape::Minimal);
            json.begin_object();
            json.key("bytes").plain(len);
            json.end_object();
            self.model.add_entry(join("tflite.metadata", &name), json.finish());
        }
        Ok(())
    }

    /// The bytes of a buffer; `None` if it has none.
    fn buffer(&mut self, number: u32) -> Result<Option<Range<u64>>, Error> {
        if number == 0 && self.buffers.count == 0 {
            return Ok(None);
        }
        let buffer = self.buffers.table(&mut self.reader, u64::from(number))?;
        let data = buffer.vector(&mut self.reader, 0, 1)?.range(1);
        let offset = buffer.u64(&mut self.reader, 1)?;
        // 0 and 1 stand for bytes that are in the vector.
        if offset <= 1 {
            return Ok(Some(data).filter(|data| !data.is_empty()));
        }
        if !data.is_empty() {
            return Err(Error::malformed("a buffer has its data in two places").at(data.start));
        }
        let end = offset.checked_add(buffer.u64(&mut self.reader, 2)?);
        let end = end.filter(|end| *end <= self.reader.len());
        let end = end.ok_or_else(|| Error::malformed("a buffer ends after the file").at(offset))?;
        Ok(Some(offset..end).filter(|range| !range.is_empty()))
    }

    fn shape(&mut self, tensor: &Table) -> Result<Vec<u64>, Error> {
        let shape = tensor.vector(&mut self.reader, 0, 4)?;
        let limit = self.options.limits.rank as u64;
        if shape.count > limit {
            return Err(ErrorKind::Limit { limit: "rank", allowed: limit }.into());
        }
        let mut dims = Vec::new();
        for number in 0..shape.count {
            let dim = i32::from_le_bytes(shape.number(&mut self.reader, number)?);
            let dim =
                u64::try_from(dim).map_err(|_| Error::malformed("a dimension is negative").at(shape.at))?;
            dims.push(dim);
        }
        Ok(dims)
    }

    /// Adds a tensor if its buffer has bytes.
    fn tensor(&mut self, table: &Table, (graph, idx): (u64, u64)) -> Result<(), Error> {
        self.step()?;
        let buffer = table.u32(&mut self.reader, 2)?;
        let Some(range) = self.buffer(buffer)? else { return Ok(()) };
        // Several tensors may be one table: what is kept of each is bounded here.
        self.budget.take(512)?;
        let name = self.name(table, (graph, idx))?;
        let shape = self.shape(table)?;
        let is_sparse = table.table(&mut self.reader, 6)?.is_some();
        let number = table.u8(&mut self.reader, 1)?;
        let tensor = if is_sparse {
            Tensor::unsupported(name, shape, "a sparse tensor")
        } else if number == 5 {
            self.model.note(name, "a tensor of text is left out");
            return Ok(());
        } else if let Some(dtype) = dtype(number) {
            let stored = range.end - range.start;
            self.quantization(table, &name)?;
            let tensor = Tensor::new(
                name,
                dtype,
                shape,
                (Place::Stored(0, range), stored),
                View::whole(),
                &self.options.limits,
            )?;
            if tensor.byte_len() != stored {
                let error = Error::view("its data has another length than its shape");
                return Err(error.of(located_error::Subject::tensor(tensor.name())));
            }
            tensor
        } else {
            Tensor::unsupported(name, shape, format!("the element type {number} of TensorFlow Lite"))
        };
        self.model.add(tensor, self.options)
    }

    /// The name: names may be missing and may repeat.
    fn name(&mut self, table: &Table, (graph, idx): (u64, u64)) -> Result<String, Error> {
        let name = table.string(&mut self.reader, 3, &mut self.budget)?;
        if !name.is_empty() && !self.model.has(&name) {
            return Ok(name);
        }
        self.budget.take(name.len() as u64 + 64)?;
        let unique = join(&name, &format!("graph{graph}.tensor{idx}"));
        self.model
            .note(unique.as_str(), "the name is missing or occurs before: the number of the tensor is added");
        Ok(unique)
    }

    /// Keeps how a quantized tensor is scaled.
    fn quantization(&mut self, table: &Table, name: &str) -> Result<(), Error> {
        let reader = &mut self.reader;
        let Some(table) = table.table(reader, 4)? else { return Ok(()) };
        let (scales, zeros) = (table.vector(reader, 2, 4)?, table.vector(reader, 3, 8)?);
        if scales.count == 0 && zeros.count == 0 {
            return Ok(());
        }
        self.budget.take(16 * (scales.count + zeros.count) + name.len() as u64 + 64)?;
        let mut json = Writer::compact(Escape::Minimal);
        json.begin_object();
        json.key("scales").begin_array();
        for number in 0..scales.count {
            json.plain(json_number(f32::from_le_bytes(scales.number(reader, number)?)));
        }
        json.end_array();
        json.key("zero_points").begin_array();
        for number in 0..zeros.count {
            json.plain(i64::from_le_bytes(zeros.number(reader, number)?));
        }
        json.end_array();
        json.key("axis").plain(table.u32(reader, 6)? as i32);
        json.end_object();
        self.model.add_entry(join("tflite.quantization", name), json.finish());
        Ok(())
    }

    /// Adds the inputs or outputs of a graph.
    fn ports(&mut self, tensors: Vector, list: Vector, entry: String) -> Result<(), Error> {
        let mut json = Writer::compact(Escape::Minimal);
        json.begin_array();
        for number in 0..list.count {
            self.step()?;
            self.budget.take(64)?;
            let idx = u64::from(u32::from_le_bytes(list.number(&mut self.reader, number)?));
            let tensor = tensors.table(&mut self.reader, idx)?;
            let name = tensor.string(&mut self.reader, 3, &mut self.budget)?;
            let shape = self.shape(&tensor)?;
            json.begin_object();
            json.key("name").string(&name);
            json.key("dtype");
            match dtype(tensor.u8(&mut self.reader, 1)?) {
                Some(dtype) => json.string(dtype.name()),
                None => json.null(),
            };
            json.key("shape").begin_array();
            shape.iter().for_each(|dim| {
                json.plain(dim);
            });
            json.end_array();
            json.end_object();
        }
        json.end_array();
        self.model.add_entry(entry, json.finish());
        Ok(())
    }
}

fn string(text: &str) -> String {
    let mut json = Writer::compact(Escape::Minimal);
    json.string(text);
    json.finish()
}

/// `TensorType`.
const fn dtype(number: u8) -> Option<ElementType> {
    use ElementType::Known;
    Some(match number {
        0 => Known(Dtype::F32),
        1 => Known(Dtype::F16),
        2 => Known(Dtype::I32),
        3 => Known(Dtype::U8),
        4 => Known(Dtype::I64),
        6 => Known(Dtype::Bool),
        7 => Known(Dtype::I16),
        8 => Known(Dtype::C64),
        9 => Known(Dtype::I8),
        10 => Known(Dtype::F64),
        11 => ElementType::C128,
        12 => Known(Dtype::U64),
        15 => Known(Dtype::U32),
        16 => Known(Dtype::U16),
        17 => ElementType::I4,
        18 => Known(Dtype::Bf16),
        _ => return None,
    })
}
