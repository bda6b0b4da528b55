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
pub(crate) struct SizeLimitArg {
    /// Lift the limit on decompressed size; only for files you trust.
    #[arg(long)]
    no_size_limit: bool,
}

/// Options for files of other programs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ForeignArgs {
    /// Read only this nested object of a file of another program, by its keys: model, state_dict.ema.
    #[arg(long, value_name = "PATH")]
    object: Option<String>,
    /// Read two-byte elements without a type as BF16: NumPy, MLX and ml_dtypes write bfloat16 so.
    #[arg(long)]
    void_as_bf16: bool,
}

/// What commands accept that go on working with a model.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct PayloadArgs {
    /// Use a signed .apr file without verifying its signature.
    #[arg(long)]
    allow_unverified: bool,
    #[command(flatten)]
    size_limit: SizeLimitArg,
}

impl ForeignArgs {
    /// The name of an option that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let object = self.object.as_ref().map(|_| "object");
        object.or(self.void_as_bf16.then_some("void-as-bf16"))
    }

    /// How the file is read.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::default();
        options.object = self.object.clone().unwrap_or_default();
        options.void_is_bf16 = self.void_as_bf16;
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

impl SizeLimitArg {
    /// The rules with these limits.
    pub(crate) fn apply(self, rules: Rules) -> Rules {
        if self.no_size_limit { rules.with_unlimited_expansion() } else { rules }
    }
}

impl PayloadArgs {
    /// The name of an option that was given.
    pub(crate) fn given(self) -> Option<&'static str> {
        let size_limit = self.size_limit.no_size_limit.then_some("no-size-limit");
        self.allow_unverified.then_some("allow-unverified").or(size_limit)
    }

    /// The rules with these limits, and with what an unverified signature means.
    pub(crate) fn apply(self, rules: Rules) -> Rules {
        let rules = if self.allow_unverified { rules.with_unchecked_signatures() } else { rules };
        self.size_limit.apply(rules)
    }
}
