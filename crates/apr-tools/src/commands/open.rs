//! `apr open`: verifies and decrypts a sealed file, or one tensor of it.

use std::path::{Path, PathBuf};

use apr_sealed::SealedReader;
use read_at::ReadAt;
use serde::Serialize;

use crate::args::WriteArgs;
use crate::commands::seal::NAME_KEY;
use crate::error::{Exit, Failure};
use crate::input::Source;
use crate::output::{Destination, Output, Run};
use crate::report::{Report, Written};
use crate::sealed_file::SealedFile;
use crate::secrets::{KeysArgs, SignedBy, refuse_shared_stdin};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::exact_bytes;
use crate::terminal::suggest;

/// Bytes that are read and verified at once.
const PIECE_LEN: u64 = 1 << 20;

const AFTER_HELP: &str = "The signature is verified before anything is decrypted. A signed file needs --signer, --trusted-keys or \
    --any-signer; one that is locked with a password asks for it at the terminal unless an option says where to \
    find it. Nothing is written unless all of it is as its maker left it. Wrong key, wrong password and damage are \
    one error.\n\n\
    Examples:\n  apr open model.sealed -o copy.safetensors --identity buyer.key --signer maker.key.pub\n  \
    apr open model.sealed -o head.bin --tensor head.weight --identity buyer.key --any-signer\n\n\
    Exit codes: 0 success, 2 OUT exists, no such tensor or no password, 3 invalid file or key, 4 not decrypted, \
    not verified or not encrypted, 5 I/O, 6 another format, or a recipient's key is needed.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// A sealed file, or `-` for standard input.
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// The original file, or the tensor's bytes, or `-` for standard output.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Write the bytes of this tensor alone; little more than it is read.
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,
    #[command(flatten)]
    keys: KeysArgs,
    #[command(flatten)]
    write: WriteArgs,
}

/// The report.
#[derive(Serialize)]
struct OpenReport<'a> {
    #[serde(flatten)]
    file: Written<'a>,
    name: Option<&'a str>,
    tensor: Option<TensorReport<'a>>,
    signer: Option<&'a SignedBy>,
}

#[derive(Serialize)]
struct TensorReport<'a> {
    name: &'a str,
    dtype: &'a str,
    shape: &'a [u64],
}

impl Report for OpenReport<'_> {
    const SCHEMA: &'static str = "apr.open/1";
}

/// Runs `apr open`.
///
/// # Errors
///
/// If the file cannot be read, verified or decrypted; if a key or the password cannot be had; if the output cannot be
/// written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    refuse_shared_stdin(args.keys.takes_stdin(), &args.input)?;
    // The output is checked before standard input is read.
    let output = args.write.output([&args.input], &args.output, console)?;
    open(&Source::open(&args.input)?, output, args.tensor.as_deref(), &args.keys, console)
}

/// Opens a sealed file; also used by `apr decrypt`.
///
/// # Errors
///
/// Those of [`run`].
pub(crate) fn open(
    source: &Source,
    output: Output,
    tensor: Option<&str>,
    keys: &KeysArgs,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let path = source.label();
    let Output { destination, overwrite, run } = output;
    let file = SealedFile::open(source, keys.limits())?;
    let keys = file.keys(keys.trust.load()?, keys, console)?;
    let reader = file.reader(&keys)?;
    let what = match tensor {
        None => Wanted::All,
        Some(name) => Wanted::Tensor(find(&reader, name, path)?),
    };
    let len = what.len(&reader);
    let refused = |error| file.refused(error);
    // What went to standard output cannot be taken back: everything is verified before the first byte of it.
    if destination == Destination::Stdout || run == Run::Dry {
        let mut progress = console.progress("verifying", len);
        what.read(
            &reader,
            |piece| {
                progress.advance(piece.len());
                Ok(())
            },
            refused,
        )?;
    }
    if run == Run::Write {
        let mut progress = console.progress("opening", len);
        destination.fill(overwrite, |out| {
            what.read(
                &reader,
                |piece| {
                    progress.advance(piece.len());
                    out.write_all(piece).map_err(|error| destination.write_failure(&error))
                },
                refused,
            )
        })?;
    }
    let signer = reader.signer().map(SignedBy::from);
    let name = reader.private_metadata().get(NAME_KEY);
    let part = what.part(&reader);
    if console.is_json() {
        console.report(&OpenReport {
            file: Written::new(path, destination.label(), run, len),
            name: name.map(String::as_str),
            tensor: part.map(|part| TensorReport {
                name: part.name(),
                dtype: part.dtype(),
                shape: part.shape(),
            }),
            signer: signer.as_ref(),
        })?;
        return Ok(Exit::Success);
    }
    match &signer {
        Some(signer) => console.remark(format_args!("the file was signed {}", signer.by())),
        None => {
            console.remark(
                "the file is not signed: who knows its password, or a recipient's public key, can have made it",
            );
        }
    }
    let label = escape::path(destination.label());
    let described = match (part, name) {
        (Some(part), _) => {
            let dims: Vec<String> = part.shape().iter().map(ToString::to_string).collect();
            format!(
                "{}, {} [{}]",
                escape::cut(part.name(), 100),
                escape::cut(part.dtype(), 20),
                dims.join(", ")
            )
        }
        (None, Some(name)) => format!("the original {}", escape::cut(name, 100)),
        (None, None) => "the original".to_owned(),
    };
    let text = format!("{label}: {described}, {}", exact_bytes(len));
    run.tell(&text, console)?;
    Ok(Exit::Success)
}

/// The place of a tensor among the parts.
fn find<R: ReadAt>(reader: &SealedReader<'_, R>, name: &str, path: &Path) -> Result<usize, Failure> {
    reader.find(name).ok_or_else(|| {
        let failure = Failure::new("ac-v2-not-found", "the sealed file has no tensor of this name");
        let list = "`apr inspect FILE` with the same key lists the names; -v lists all of them";
        // One tensor is usually called by the end of its name.
        let names = || reader.parts().iter().map(apr_sealed::Part::name);
        let ending =
            || names().find(|known| known.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')));
        let help = match suggest::closest(name, names()).or_else(ending) {
            Some(close) => format!("did you mean `{}`? {list}", escape::cut(close, 200)),
            None => list.to_owned(),
        };
        failure.in_file(path).of_tensor(Some(name)).help(help)
    })
}

/// The requested part.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    All,
    /// One part.
    Tensor(usize),
}

impl Wanted {
    fn part<'r, R: ReadAt>(self, reader: &'r SealedReader<'_, R>) -> Option<&'r apr_sealed::Part> {
        match self {
            Self::All => None,
            Self::Tensor(idx) => reader.parts().get(idx),
        }
    }

    fn len<R: ReadAt>(self, reader: &SealedReader<'_, R>) -> u64 {
        self.part(reader).map_or_else(|| reader.content_len(), apr_sealed::Part::len)
    }

    /// Hands everything on, piece by piece, each one verified.
    fn read<R: ReadAt>(
        self,
        reader: &SealedReader<'_, R>,
        mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
        refused: impl Fn(apr_sealed::Error) -> Failure,
    ) -> Result<(), Failure> {
        let Self::Tensor(idx) = self else {
            // Errors of `take` have to pass through the reader.
            let mut failure = None;
            let restored = reader.restore_with(|piece| {
                take(piece).map_err(|stop| {
                    failure = Some(stop);
                    std::io::Error::other("stopped").into()
                })
            });
            return restored.map_err(|error| failure.unwrap_or_else(|| refused(error)));
        };
        let len = self.len(reader);
        reader.will_read_part(idx);
        let mut piece = vec![0; PIECE_LEN.min(len) as usize];
        let mut at = 0;
        while at < len {
            let now = &mut piece[..PIECE_LEN.min(len - at) as usize];
            reader.read_part(idx, at, now).map_err(&refused)?;
            take(now)?;
            at += now.len() as u64;
        }
        Ok(())
    }
}
