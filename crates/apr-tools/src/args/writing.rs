//! How files are written.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::Failure;
use crate::output::{Destination, Output, Overwrite, Run, check_inputs};
use crate::terminal::Console;

/// Whether a file may be replaced.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct ForceArg {
    /// Replace the output if it exists.
    #[arg(long)]
    force: bool,
}

/// Whether anything is written.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct DryRunArg {
    /// Say what would be written, with sizes, and write nothing.
    #[arg(short = 'n', long)]
    dry_run: bool,
}

/// Whether a file may be replaced, and whether it is written at all.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct WriteArgs {
    #[command(flatten)]
    force: ForceArg,
    #[command(flatten)]
    dry_run: DryRunArg,
}

impl ForceArg {
    pub(crate) fn overwrite(self) -> Overwrite {
        if self.force { Overwrite::Replace } else { Overwrite::Refuse }
    }
}

impl DryRunArg {
    pub(crate) fn run(self) -> Run {
        if self.dry_run { Run::Dry } else { Run::Write }
    }
}

impl WriteArgs {
    pub(crate) fn overwrite(self) -> Overwrite {
        self.force.overwrite()
    }

    pub(crate) fn run(self) -> Run {
        self.dry_run.run()
    }

    /// The output at `path`, as [`Destination::check`] finds it, if the inputs exist: a missing input is reported first.
    ///
    /// # Errors
    ///
    /// Those of [`check_inputs`] and of [`Destination::check`].
    pub(crate) fn output<'p>(
        self,
        inputs: impl IntoIterator<Item = &'p PathBuf>,
        path: &Path,
        console: &Console,
    ) -> Result<Output, Failure> {
        check_inputs(inputs)?;
        let (destination, overwrite, run) = (Destination::new(path), self.overwrite(), self.run());
        destination.check(overwrite, run, console)?;
        Ok(Output { destination, overwrite, run })
    }
}
