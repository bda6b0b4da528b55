//! The output of `apr convert`.

use apr_container::v1::Header;
use apr_container::{Compression, PayloadLayout, ReadOptions};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use foreign_format::Format as Foreign;
use model_file::entries::Entries;

use crate::args::{CompressionArg, LayoutArgs};
use crate::error::{CODE_USAGE, Failure};
use crate::input::{Format, Model, Tensor};
use crate::output::Destination;
use crate::output::ending::Ending;
use crate::terminal::Console;
use crate::terminal::human::exact_bytes;

/// The output of `apr convert`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct TargetArgs {
    /// Format of OUT, whatever its name: safetensors, .apr with a model (1) or with tensors (2), GGUF, an archive of NumPy arrays or one array.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<FormatArg>,
    #[command(flatten)]
    pub(crate) compression: CompressionArg,
    /// Write an .apr model for readers of this aprender version.
    #[arg(long, id = "payload_layout", value_name = "VERSION", value_parser = layout_parser())]
    pub(crate) layout: Option<PayloadLayout>,
}

/// A value of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    #[value(name = "safetensors")]
    SafeTensors,
    Apr1,
    Apr2,
    Gguf,
    Npz,
    Npy,
}

fn layout_parser() -> impl TypedValueParser<Value = PayloadLayout> {
    PossibleValuesParser::new(PayloadLayout::ALL.map(PayloadLayout::version))
        .try_map(|version| PayloadLayout::from_version(&version).ok_or("no such version"))
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::SafeTensors => Self::SafeTensors,
            FormatArg::Apr1 => Self::AprV1,
            FormatArg::Apr2 => Self::AprV2,
            FormatArg::Gguf => Self::Gguf,
            FormatArg::Npz => Self::Foreign(Foreign::Npz),
            FormatArg::Npy => Self::Foreign(Foreign::Npy),
        }
    }
}

/// Notes that a requested compression does not reduce the payload of this `.apr` model.
pub(crate) fn remark_on_size(file: &[u8], console: &Console) {
    let header = file.first_chunk().and_then(|head| Header::from_bytes(head, &ReadOptions::COMPAT).ok());
    let Some(header) = header.filter(|header| header.compression != Compression::None) else { return };
    let (compressed, plain) = (u64::from(header.payload_len), u64::from(header.uncompressed_len));
    if compressed >= plain {
        console.remark(format_args!(
            "{} does not make this model smaller: {} compressed, {} without; --compression none is the better choice",
            header.compression,
            exact_bytes(compressed),
            exact_bytes(plain),
        ));
    }
}

/// The options of the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    format: Option<Format>,
    /// Of the output's name; not looked at if the format was given.
    ending: Option<Ending>,
    /// Whether an option was given that only safetensors files heed.
    wants_header_layout: bool,
    pub(super) compression: Option<Compression>,
    pub(super) layout: Option<PayloadLayout>,
}

impl Target {
    /// The format by the command line and the name of the output.
    ///
    /// # Errors
    ///
    /// If the name has an ending of no format that is written, and no format was given.
    pub(crate) fn new(args: TargetArgs, layout: LayoutArgs, output: &Destination) -> Result<Self, Failure> {
        Ok(Self {
            ending: if args.format.is_none() { Ending::of_output(output)? } else { None },
            format: args.format.map(Into::into),
            wants_header_layout: layout.align.is_some() || layout.header_room.is_some(),
            compression: args.compression.compression(),
            layout: args.layout,
        })
    }

    /// Whether the output is a GGUF file whatever the input is.
    pub(super) fn is_gguf(&self) -> bool {
        self.format == Some(Format::Gguf) || self.ending == Some(Ending::Gguf)
    }

    /// Whether the output of a folder of a language model is one: GGUF, or `.apr` with tensors.
    pub(super) fn is_of_models(&self) -> bool {
        self.is_gguf() || self.format == Some(Format::AprV2) || self.ending == Some(Ending::Apr)
    }

    /// Whether the output is a GGUF file if the input is this model.
    pub(super) fn writes_gguf(&self, model: &Model) -> bool {
        let keeps_format = self.format.is_none() && self.ending.is_none();
        self.is_gguf() || keeps_format && model.format() == Format::Gguf
    }

    /// Refuses options that no GGUF file has a use for.
    ///
    /// # Errors
    ///
    /// If one was given.
    pub(super) fn refuse_of_models(&self) -> Result<(), Failure> {
        match (self.compression, self.layout) {
            (Some(_), _) => Err(useless("--compression", Format::Gguf)),
            (_, Some(_)) => Err(useless("--layout", Format::Gguf)),
            (None, None) => Ok(()),
        }
    }

    /// The format of the output: the one asked for, the one its name says, or that of the input. Only plain numbers become
    /// a model of version 1.
    ///
    /// # Errors
    ///
    /// If an option was given that this format has no use for.
    pub(super) fn format(
        &self,
        model: &Model,
        metadata: Option<&Entries>,
        tensors: &[Tensor<'_>],
    ) -> Result<Format, Failure> {
        let is_plain = tensors.iter().all(|tensor| tensor.dtype().element().is_some());
        let names_model =
            is_plain && metadata.is_some_and(|entries| entries.contains_key(apr_models::MODEL_KEY));
        let format = self.format.unwrap_or(match self.ending {
            Some(Ending::SafeTensors) => Format::SafeTensors,
            Some(Ending::Gguf) => Format::Gguf,
            Some(Ending::Npz) => Format::Foreign(Foreign::Npz),
            Some(Ending::Npy) => Format::Foreign(Foreign::Npy),
            Some(Ending::Apr) => match model.format() {
                Format::SafeTensors | Format::Gguf if names_model => Format::AprV1,
                Format::SafeTensors | Format::Gguf | Format::Foreign(_) => Format::AprV2,
                same => same,
            },
            None => match model.format() {
                Format::Foreign(_) => Format::SafeTensors,
                same => same,
            },
        });
        let useless = |option: &str| Err(useless(option, format));
        if self.wants_header_layout && format != Format::SafeTensors {
            return useless("--align or --header-room");
        }
        if self.compression.is_some_and(|how| how != Compression::None) && format == Format::AprV2 {
            let failure = Failure::new(CODE_USAGE, "an .apr file of version 2 is not written compressed");
            return Err(failure
                .because("its tensors lie open to be mapped, and the readers of compressed files disagree")
                .help(match names_model {
                    true => "choose --format apr1, whose payload is compressed",
                    false => "leave --compression out, and compress the whole file to store or send it: `zstd FILE`",
                }));
        }
        if self.compression.is_some() && format != Format::AprV1 {
            return useless("--compression");
        }
        if self.layout.is_some() && format != Format::AprV1 {
            return useless("--layout");
        }
        Ok(format)
    }
}

/// Of an option that the format has no use for.
fn useless(option: &str, format: Format) -> Failure {
    let what = format!("{option} has no effect on {}", format.title());
    Failure::new(CODE_USAGE, what).help("leave the option out, or choose another --format")
}
