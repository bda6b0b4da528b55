//! Options of the layout of outputs.

use apr_container::Compression;
use clap::{Args, ValueEnum};
use st_core::{Alignment, Dtype, Order, WriteOptions};

/// The bytes around the tensors of a safetensors file.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct LayoutArgs {
    /// Order of the tensors: widest type first as official writers do, by name, or as they are [default: official].
    #[arg(long, value_name = "ORDER")]
    pub(crate) order: Option<OrderArg>,
    /// Begin the data at a multiple of this [default: 8].
    #[arg(long, value_name = "BYTES")]
    pub(crate) align: Option<AlignArg>,
    /// Spare bytes in the header, so that metadata can grow later without rewriting the file [default: 0].
    #[arg(long, value_name = "BYTES")]
    pub(crate) header_room: Option<u32>,
}

/// A value of `--order`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum OrderArg {
    Official,
    Name,
    Given,
}

/// A value of `--align`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum AlignArg {
    #[value(name = "8")]
    B8,
    #[value(name = "64")]
    B64,
    #[value(name = "4096")]
    Page,
}

impl LayoutArgs {
    /// The options, without metadata.
    pub(crate) fn options(self) -> WriteOptions {
        WriteOptions {
            metadata: None,
            alignment: match self.align {
                None | Some(AlignArg::B8) => Alignment::B8,
                Some(AlignArg::B64) => Alignment::B64,
                Some(AlignArg::Page) => Alignment::PAGE,
            },
            order: match self.order {
                None | Some(OrderArg::Official) => Order::Official,
                Some(OrderArg::Name) => Order::ByName,
                Some(OrderArg::Given) => Order::AsGiven,
            },
            header_room: self.header_room.map_or(0, |room| room as usize),
        }
    }

    /// The options by name, and whether they were given.
    pub(crate) fn given(self) -> [(&'static str, bool); 3] {
        [
            ("order", self.order.is_some()),
            ("align", self.align.is_some()),
            ("header-room", self.header_room.is_some()),
        ]
    }
}

/// Whether quantized tensors stay as they are.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct DequantizeArg {
    /// Make plain numbers of quantized tensors.
    #[arg(long, value_name = "TYPE")]
    dequantize: Option<FloatArg>,
}

/// A value of `--dequantize`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FloatArg {
    F32,
    F16,
}

impl DequantizeArg {
    /// What they become.
    pub(crate) fn dtype(self) -> Option<Dtype> {
        self.dequantize.map(|float| match float {
            FloatArg::F32 => Dtype::F32,
            FloatArg::F16 => Dtype::F16,
        })
    }
}

/// How the payload of an `.apr` model is stored.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct CompressionArg {
    /// Compress the payload of an .apr model.
    #[arg(long, value_name = "HOW")]
    compression: Option<HowArg>,
}

/// A value of `--compression`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum HowArg {
    None,
    Zstd,
    ZstdMax,
    Lz4,
}

impl CompressionArg {
    /// The compression asked for.
    pub(crate) fn compression(self) -> Option<Compression> {
        self.compression.map(|how| match how {
            HowArg::None => Compression::None,
            HowArg::Zstd => Compression::ZstdDefault,
            HowArg::ZstdMax => Compression::ZstdMax,
            HowArg::Lz4 => Compression::LZ4,
        })
    }
}
