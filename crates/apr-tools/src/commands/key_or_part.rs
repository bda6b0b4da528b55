//! `--key` of commands that convert: a public key, or the nested object of a file of another program.

use std::path::Path;

use foreign_tensors::Options;

use crate::args::VoidArg;
use crate::commands::verify;
use crate::detached::{Detached, DetachedArgs};
use crate::error::Failure;
use crate::input::{Format, Source};
use crate::terminal::Console;
use crate::terminal::escape;

/// What was meant.
#[derive(Debug, Default)]
pub(crate) struct KeyOrPart {
    detached: Option<Detached>,
    foreign: Options,
}

impl KeyOrPart {
    /// The nested object only of a file of another program, without a signature beside it, and if the text is no key and the name of no
    /// file.
    ///
    /// # Errors
    ///
    /// Those of [`DetachedArgs::load`].
    pub(crate) fn new(args: &DetachedArgs, void: VoidArg, input: &Path) -> Result<Self, Failure> {
        let failure = match args.load() {
            Ok(detached) => return Ok(Self { detached, foreign: void.options_of("") }),
            Err(failure) => failure,
        };
        let is_part = |key: &&Path| {
            args.signature.is_none()
                && !key.is_file()
                && verify::signature_beside(input).is_none()
                && matches!(Source::peek(input), Format::Foreign(_))
        };
        match args.key.as_deref().filter(is_part).and_then(Path::to_str) {
            Some(part) => Ok(Self { detached: None, foreign: void.options_of(part) }),
            None => Err(failure),
        }
    }

    /// Opens the file.
    ///
    /// # Errors
    ///
    /// Those of [`Source::open_verified`].
    pub(crate) fn open(self, input: &Path, console: &Console) -> Result<Source, Failure> {
        if !self.foreign.key.is_empty() {
            let part = escape::cut(&self.foreign.key, 60);
            console.remark(format_args!(
                "--key names the object `{part}` in the file; no signature was verified"
            ));
        }
        Ok(Source::open_verified(input, self.detached.as_ref(), console)?.with_foreign(self.foreign))
    }
}
