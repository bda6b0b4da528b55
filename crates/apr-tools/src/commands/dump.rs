//! `apr dump`: the values of a tensor, or of a part of it.

mod values;

use alloc::borrow::Cow;
use alloc::rc::Rc;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use apr_quant::Dtype;
use foreign_tensors::numpy;
use serde::Serialize;
use st_core::{Bounds, SlicePlan};

use self::values::{Layout, Rows, Value, for_each};
use crate::args::slice::Slice;
use crate::args::{CompatArg, ForeignArgs, INPUT_HELP, SizeLimitArg, WriteArgs};
use crate::error::{CODE_NOT_CARRIED, CODE_USAGE, Exit, Failure};
use crate::input::{Model, Source, Tensor};
use crate::output::{self, Destination, Output, Overwrite, Run};
use crate::report::{self, List, Report};
use crate::secrets::{KeysArgs, refuse_shared_stdin};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human;
use crate::terminal::suggest;

/// Bytes read at once, about.
const CHUNK: u64 = 1 << 20;

const AFTER_HELP: &str = "A line of text is a row: the last dimension; an empty line ends each matrix of more than two dimensions. \
    Numbers have as many digits as give them back. Quantized tensors are decoded. Memory does not grow with the tensor.\n\n\
    Examples:\n  apr dump model.safetensors head.weight\n  \
    apr dump model.safetensors encoder.layer.0.weight --slice 0:2,1:3\n  \
    apr dump model.gguf blk.0.weight --slice 0 --format npy -o row.npy\n\n\
    Exit codes: 0 success, 2 OUT exists, no such tensor, or a part that it does not have, 3 invalid file, 4 not verified or \
    not decrypted, 5 I/O, 6 another format, or encrypted and no key given.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[arg(value_name = "FILE", help = INPUT_HELP)]
    input: PathBuf,
    /// Name of the tensor; without it, the only one that there is.
    #[arg(value_name = "TENSOR")]
    tensor: Option<String>,
    /// Only this part, as NumPy writes it without brackets: `0:2,:,-1`.
    #[arg(long, value_name = "INDEX", allow_hyphen_values = true)]
    slice: Option<Slice>,
    /// How values are written; unless given, as the name of OUT ends, else text. An .npy file holds the type that NumPy has, otherwise 32-bit floats.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// The file to write; standard output without it.
    #[arg(short, long, value_name = "OUT", default_value = "-", hide_default_value = true)]
    output: PathBuf,
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    size_limit: SizeLimitArg,
    #[command(flatten)]
    foreign: ForeignArgs,
    #[command(flatten)]
    keys: KeysArgs,
    #[command(flatten)]
    write: WriteArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Values with spaces between them.
    Text,
    /// Values with commas between them.
    Csv,
    /// A NumPy array.
    Npy,
}

impl Format {
    /// By the name of a file.
    fn of_name(path: &Path) -> Self {
        match path.extension() {
            Some(ending) if ending.eq_ignore_ascii_case("npy") => Self::Npy,
            Some(ending) if ending.eq_ignore_ascii_case("csv") => Self::Csv,
            _ => Self::Text,
        }
    }
}

/// Runs `apr dump`.
///
/// # Errors
///
/// If the model cannot be read, has no such tensor or part, or the output cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    refuse_shared_stdin(args.keys.takes_stdin(), &args.input)?;
    let format = args.format.unwrap_or_else(|| Format::of_name(&args.output));
    let is_text = format != Format::Npy && args.output.as_os_str() == "-";
    // Text goes to a terminal; a report has the values itself.
    output::keep_inputs(&args.output, [&args.input])?;
    let output =
        if is_text { None } else { Some(args.write.output([&args.input], &args.output, console)?) };
    let rules = args.size_limit.apply(args.compat.rules()).with_unchecked_signatures();
    let path = args.input.as_path();
    let source = Source::open(path)?.with_keys(&Rc::new(args.keys.load([path])?));
    let model = Model::from_source(source.with_foreign(args.foreign.options()), &rules)?;
    let part = Part::new(find(&model, args.tensor.as_deref())?, args.slice.as_ref())?;
    match output {
        None if console.is_json() => part.report(path, console)?,
        None => Destination::Stdout
            .fill(Overwrite::Refuse, |out| part.write_buffered(format, out, Failure::stdout))?,
        Some(output) => part.write_file(format, path, output, console)?,
    }
    Ok(Exit::Success)
}

/// The tensor of this name, or the only one.
fn find<'m>(model: &'m Model, name: Option<&str>) -> Result<Tensor<'m>, Failure> {
    let tensors = model.tensors()?;
    let Some(name) = name else {
        let mut named = tensors.iter().filter(|tensor| tensor.alias_of().is_none());
        return match (named.next(), named.next()) {
            (Some(&only), None) => Ok(only),
            (first, _) => {
                let what = format!("which of {} is meant?", human::plural(tensors.len() as u64, "tensor"));
                let help = first.map_or_else(String::new, |first| {
                    format!("name one, for example `{}`", escape::cut(first.name(), 60))
                });
                Err(Failure::new(CODE_USAGE, what).in_file(model.label()).help(help))
            }
        };
    };
    let found = tensors.iter().find(|tensor| tensor.name() == name).copied();
    found.ok_or_else(|| {
        let failure = Failure::new(CODE_USAGE, format!("there is no tensor `{}`", escape::cut(name, 60)))
            .in_file(model.label());
        match suggest::closest(name, tensors.iter().map(|tensor| tensor.name())) {
            Some(near) => failure.help(format!(
                "did you mean `{}`? `apr tensors FILE` lists the names",
                escape::cut(near, 60)
            )),
            None => failure.help("`apr tensors FILE` lists the names"),
        }
    })
}

/// The part of a tensor that is written, as plain elements.
struct Part<'m> {
    tensor: Tensor<'m>,
    /// The type of the values.
    dtype: Dtype,
    plan: Option<SlicePlan>,
    slice: Option<String>,
}

impl<'m> Part<'m> {
    fn new(tensor: Tensor<'m>, slice: Option<&Slice>) -> Result<Self, Failure> {
        tensor.check_type()?;
        let tensor = tensor.dequantized(Dtype::F32)?;
        let unknown = || {
            let what = format!("the values of type {} are not known", tensor.dtype());
            Failure::new(CODE_NOT_CARRIED, what).of_tensor(Some(tensor.name()))
        };
        let dtype = tensor.dtype().element().ok_or_else(unknown)?;
        let plan = slice.map(|slice| SlicePlan::new(dtype, tensor.shape(), slice.indices(), Bounds::Clamp));
        let plan = plan.transpose().map_err(|error| {
            let shape = human::shape(tensor.shape());
            Failure::new(CODE_USAGE, error.to_string()).of_tensor(Some(tensor.name())).help(format!(
                "the tensor has the shape {shape}; choose a part of it with --slice, for example `0:2`"
            ))
        })?;
        Ok(Self { tensor, dtype, plan, slice: slice.map(|slice| slice.text().to_owned()) })
    }

    fn shape(&self) -> &[usize] {
        self.plan.as_ref().map_or(self.tensor.shape(), SlicePlan::shape)
    }

    /// Passes the bytes of the part to `take`, whole elements at a time.
    fn read<E: From<Failure>>(&self, mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut buf = Vec::new();
        let Some(plan) = &self.plan else { return self.tensor.stream(&mut buf, take) };
        let step = CHUNK - CHUNK % self.dtype.block_bytes() as u64;
        let mut gathered = Vec::new();
        for range in plan.ranges() {
            let mut offset = range.start;
            while offset < range.end {
                let len = step.min(range.end - offset);
                // At most CHUNK.
                buf.resize(len as usize, 0);
                self.tensor.read(offset, &mut buf)?;
                offset += len;
                // Ranges may be single elements.
                gathered.extend_from_slice(&buf);
                if gathered.len() as u64 >= step {
                    take(&gathered)?;
                    gathered.clear();
                }
            }
        }
        if gathered.is_empty() { Ok(()) } else { take(&gathered) }
    }

    /// Passes the values of the part to `take`. The last byte of packed ones may have more than there are.
    fn values<E: From<Failure>>(&self, mut take: impl FnMut(Value) -> Result<(), E>) -> Result<(), E> {
        let mut left = self.shape().iter().fold(1_u64, |count, &dim| count.saturating_mul(dim as u64));
        self.read(|bytes| {
            for_each(self.dtype, bytes, |value| match left.checked_sub(1) {
                Some(rest) => {
                    left = rest;
                    take(value)
                }
                None => Ok(()),
            })
        })
    }

    fn write_buffered(
        &self,
        format: Format,
        out: &mut dyn Write,
        refused: impl Fn(io::Error) -> Failure,
    ) -> Result<(), Failure> {
        let mut out = BufWriter::with_capacity(1 << 16, out);
        self.write(format, &mut out, &refused)?;
        out.flush().map_err(refused)
    }

    fn write(
        &self,
        format: Format,
        out: &mut dyn Write,
        refused: &impl Fn(io::Error) -> Failure,
    ) -> Result<(), Failure> {
        match format {
            Format::Npy => {
                let (dtype, header) = self.npy_header()?;
                out.write_all(&header).map_err(refused)?;
                match dtype == self.dtype {
                    true => self.read(|bytes| out.write_all(bytes).map_err(refused)),
                    false => {
                        self.values(|value| out.write_all(&value.to_f32().to_le_bytes()).map_err(refused))
                    }
                }
            }
            Format::Text | Format::Csv => {
                let layout = if format == Format::Csv { Layout::Csv } else { Layout::Text };
                let mut rows = Rows::new(layout, self.shape(), out);
                self.values(|value| rows.value(&value).map_err(refused))?;
                rows.end().map_err(refused)
            }
        }
    }

    /// The type of the array, and what precedes its elements.
    fn npy_header(&self) -> Result<(Dtype, Vec<u8>), Failure> {
        let own = numpy::header(self.dtype, self.shape()).map(|header| (self.dtype, header));
        let floats = || numpy::header(Dtype::F32, self.shape()).map(|header| (Dtype::F32, header));
        own.or_else(floats).ok_or_else(|| {
            Failure::new(CODE_NOT_CARRIED, "NumPy has no type for these values")
                .of_tensor(Some(self.tensor.name()))
        })
    }

    fn write_file(
        &self,
        format: Format,
        input: &Path,
        output: Output,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let Output { destination, overwrite, run } = output;
        if run == Run::Write {
            destination.fill(overwrite, |out| {
                self.write_buffered(format, out, |error| destination.write_failure(&error))
            })?;
        }
        let label = destination.label();
        if console.is_json() {
            return console
                .report(&DumpReport { output: Some(report::path(label)), ..self.described(input) });
        }
        let label = escape::path(label);
        run.tell(&format!("{label}: {} {}", self.dtype, human::shape(self.shape())), console)
    }

    /// Reports the values themselves.
    fn report(&self, input: &Path, console: &mut Console) -> Result<(), Failure> {
        let mut list = List::default();
        self.values(|value| list.push(&value, false))?;
        let report = DumpReport { values: Some([]), ..self.described(input) };
        console.report_with_list(&report, "values", &list)
    }

    fn described<'r>(&'r self, input: &'r Path) -> DumpReport<'r> {
        DumpReport {
            file: report::path(input),
            tensor: self.tensor.name(),
            dtype: self.dtype.name(),
            shape: self.shape(),
            slice: self.slice.as_deref(),
            output: None,
            values: None,
        }
    }
}

/// The report: the values are one list in row-major order.
#[derive(Serialize)]
struct DumpReport<'a> {
    file: Cow<'a, str>,
    tensor: &'a str,
    dtype: &'static str,
    shape: &'a [usize],
    #[serde(skip_serializing_if = "Option::is_none")]
    slice: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<[(); 0]>,
}

impl Report for DumpReport<'_> {
    const SCHEMA: &'static str = "apr.dump/1";
}
