//! How model files are read.

use clap::Args;
use foreign_tensors::Options;

use crate::input::Rules;

/// How strictly.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct CompatArg {
    /// Accept what the official reader of the format accepts, quirks included.
    #[arg(long)]
    compat: bool,
}

impl CompatArg {
    #[cfg(feature = "bench")]
    pub(crate) const fn is_given(&self) -> bool {
        self.compat
    }
}

/// Limits of commands that decompress payloads.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct TrustedArg {
    /// Lift the limit on decompressed size; only for files you trust.
    #[arg(long)]
    trusted: bool,
}

/// Which part of a file of another program is read.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PartArgs {
    /// Read only this nested object of a file of another program, by its keys: model, state_dict.ema.
    #[arg(long, value_name = "PART")]
    key: Option<String>,
    #[command(flatten)]
    void: VoidArg,
}

/// Elements of two bytes without a type.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct VoidArg {
    /// Read two-byte elements without a type as BF16: NumPy, MLX and ml_dtypes write bfloat16 so.
    #[arg(long = "void-as-bf16")]
    is_bf16: bool,
}

/// What commands accept that go on working with a model.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct PayloadArgs {
    /// Use a signed .apr file without verifying its signature.
    #[arg(long)]
    allow_unverified: bool,
    #[command(flatten)]
    trusted: TrustedArg,
}

impl PartArgs {
    /// How the file is read.
    pub(crate) fn options(&self) -> Options {
        self.void.options_of(self.key.as_deref().unwrap_or_default())
    }
}

impl VoidArg {
    pub(crate) const fn is_given(self) -> bool {
        self.is_bf16
    }

    /// How the nested object with these keys is read; that of no keys is the whole file.
    pub(crate) fn options_of(self, key: &str) -> Options {
        let mut options = Options::default();
        options.key = key.to_owned();
        options.void_is_bf16 = self.is_bf16;
        options
    }
}

impl CompatArg {
    /// The name of the option, if it was given.
    pub(crate) fn given(self) -> Option<&'static str> {
        self.compat.then_some("compat")
    }

    /// Strict rules, unless the option says otherwise.
    pub(crate) fn rules(self) -> Rules {
        if self.compat { Rules::COMPAT } else { Rules::STRICT }
    }
}

impl TrustedArg {
    /// The rules with these limits.
    pub(crate) fn apply(self, rules: Rules) -> Rules {
        if self.trusted { rules.with_unlimited_expansion() } else { rules }
    }
}

impl PayloadArgs {
    /// The name of an option that was given.
    pub(crate) fn given(self) -> Option<&'static str> {
        let trusted = self.trusted.trusted.then_some("trusted");
        self.allow_unverified.then_some("allow-unverified").or(trusted)
    }

    /// The rules with these limits, and with what an unverified signature means.
    pub(crate) fn apply(self, rules: Rules) -> Rules {
        let rules = if self.allow_unverified { rules.with_unchecked_signatures() } else { rules };
        self.trusted.apply(rules)
    }
}
