//! What the output is to be.

use apr_container::v1::Header;
use apr_container::{Compression, PayloadLayout, ReadOptions};
use clap::builder::PossibleValuesParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};

use crate::error::{CODE_USAGE, Failure};
use crate::input::{Format, Model, Tensor};
use crate::metadata::Entries;
use crate::output::Destination;
use crate::output::ending::Ending;
use crate::terminal::Console;
use crate::terminal::human::exact_bytes;

pub(super) fn args() -> [Arg; 3] {
    [
        Arg::new("format")
            .long("format")
            .value_name("FORMAT")
            .value_parser(PossibleValuesParser::new(["safetensors", "apr1", "apr2", "gguf"]))
            .help("Format of OUT, whatever its name: safetensors, .apr with a model (1) or with tensors (2), GGUF"),
        compression_arg(),
        Arg::new("layout")
            .long("layout")
            .value_name("VERSION")
            .value_parser(PossibleValuesParser::new(PayloadLayout::ALL.map(PayloadLayout::version)))
            .help("Write an .apr model for readers of this aprender version"),
    ]
}

/// For commands that write `.apr` models.
pub(crate) fn compression_arg() -> Arg {
    Arg::new("compression")
        .long("compression")
        .value_name("HOW")
        .value_parser(PossibleValuesParser::new(["none", "zstd", "zstd-max", "lz4"]))
        .help("Compress the payload of an .apr model")
}

/// The compression asked for.
pub(crate) fn compression(matches: &ArgMatches) -> Option<Compression> {
    matches.get_one::<String>("compression").map(|name| match name.as_str() {
        "zstd" => Compression::ZstdDefault,
        "zstd-max" => Compression::ZstdMax,
        "lz4" => Compression::LZ4,
        _ => Compression::None,
    })
}

/// Says if a compression that was asked for does not make the payload of this `.apr` model smaller.
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

/// What the command line says about the output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    format: Option<Format>,
    /// Of the output's name; not looked at if the format was given.
    ending: Option<Ending>,
    /// Whether an option was given that only safetensors files heed.
    wants_header_layout: bool,
    pub(super) compression: Option<Compression>,
    pub(super) layout: Option<PayloadLayout>,
}

impl Target {
    /// What the command line and the name of the output say.
    ///
    /// # Errors
    ///
    /// If the name has an ending of no format that is written, and no format was given.
    pub(super) fn from_matches(matches: &ArgMatches, output: &Destination) -> Result<Self, Failure> {
        let text = |name| matches.get_one::<String>(name).map(String::as_str);
        let is_given = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
        Ok(Self {
            ending: if text("format").is_none() { Ending::of_output(output)? } else { None },
            format: text("format").map(|name| match name {
                "apr1" => Format::AprV1,
                "apr2" => Format::AprV2,
                "gguf" => Format::Gguf,
                _ => Format::SafeTensors,
            }),
            wants_header_layout: is_given("align") || is_given("header-room"),
            compression: compression(matches),
            layout: text("layout").and_then(PayloadLayout::from_version),
        })
    }

    /// Whether the output is a GGUF file whatever the input is.
    pub(super) fn is_gguf(&self) -> bool {
        self.format == Some(Format::Gguf) || self.ending == Some(Ending::Gguf)
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
            Some(Ending::Apr) => match model.format() {
                Format::SafeTensors | Format::Gguf if names_model => Format::AprV1,
                Format::SafeTensors | Format::Gguf => Format::AprV2,
                same => same,
            },
            None => model.format(),
        });
        let useless = |option: &str| {
            let what = format!("{option} has no effect on {}", format.title());
            Err(Failure::new(CODE_USAGE, what).help("leave the option out, or choose another --format"))
        };
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
