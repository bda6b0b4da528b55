//! `apr seal`: writes a model of any format as a sealed file: encrypted, signed or both, readable tensor by tensor.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use apr_crypto::OsRandom;
use apr_sealed::{Part, PartKind, Plan, SealOptions, SealedLimits, Sealer};
use serde::Serialize;

use crate::args::WriteArgs;
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::{self, Format, Model, Rules, Source};
use crate::output::{self, Destination, Output, Run};
use crate::report::{Report, Written};
use crate::secrets::{Audience, RecipientArgs, SigningArgs, refuse_shared_stdin};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{exact_bytes, grouped, plural};

/// Bytes between two looks at the progress.
const PIECE_LEN: usize = 1 << 20;

/// Where the name and the format of the original are kept.
pub(crate) const NAME_KEY: &str = "file.name";
const FORMAT_KEY: &str = "file.format";

const AFTER_HELP: &str = "The whole file is kept, byte for byte: `apr open` gives it back, or one of its tensors, having read little \
    more than that tensor. With recipients or a password it is encrypted (AES-256-GCM in chunks), with --sign it is \
    signed, and anyone with the signer's public key can check it without opening it. Recipients can be added and \
    removed later without rewriting the file: apr rekey. Sizes, the number of recipients and public metadata \
    can be seen by anyone; who the recipients are, by each of them unless --hide-recipients says otherwise. Without \
    --bind-recipients every recipient can add more, for whom the signature then holds as well.\n\n\
    Examples:\n  apr seal model.safetensors -o sold.sealed --recipient buyer.key.pub --sign maker.key\n  \
    apr seal model.apr -o locked.sealed --password-file password.txt\n\n\
    Exit codes: 0 success, 2 OUT exists, no recipient, password or key, 3 not a key, 4 a key that others can \
    read, 5 I/O.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// A file of any format, or `-` for a model on standard input; tensors are told apart in safetensors, .apr and GGUF files.
    #[arg(value_name = "MODEL")]
    input: PathBuf,
    /// The sealed file.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    recipients: RecipientArgs,
    #[command(flatten)]
    signing: SigningArgs,
    #[command(flatten)]
    extras: Extras,
    #[command(flatten)]
    write: WriteArgs,
}

/// Content of a sealed file besides the model.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Extras {
    /// Sign the list of recipients too: no one else can change it.
    #[arg(long, requires = "sign")]
    bind_recipients: bool,
    /// Capacity for this many recipients in all [default: 8, or as many as are named].
    #[arg(long, value_name = "N")]
    room: Option<u16>,
    /// Leave out the list of the recipients' public keys, which all recipients can read; without it, `apr rekey --remove` does
    /// not work.
    #[arg(long)]
    hide_recipients: bool,
    /// Remember this name of the original, in place of MODEL's [encrypted with it].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Metadata that only those can read who can open the file.
    #[arg(long, value_name = "KEY=VALUE")]
    metadata: Vec<String>,
    /// Metadata that anyone can read.
    #[arg(long, value_name = "KEY=VALUE")]
    public_metadata: Vec<String>,
}

/// What was sealed, for whom and by whom.
#[derive(Serialize)]
struct SealReport<'a> {
    #[serde(flatten)]
    file: Written<'a>,
    content_bytes: u64,
    tensors: u64,
    encryption: &'a str,
    recipients: &'a [String],
    signer: Option<&'a str>,
}

impl Report for SealReport<'_> {
    const SCHEMA: &'static str = "apr.seal/1";
}

/// Runs `apr seal`.
///
/// # Errors
///
/// If the model cannot be read; if a key or the password cannot be had, or none is named; if the output cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let Args { input, recipients, signing, .. } = args;
    refuse_shared_stdin(recipients.takes_stdin() || signing.takes_stdin(), input)?;
    // The output is checked before standard input is read.
    let output = args.write.output([input], &args.output, console)?;
    seal(Source::open_local(input)?, input, output, recipients, signing, &args.extras, console)
}

/// Seals a file for whom, by whom and where the options say, those of `apr encrypt` as well.
///
/// # Errors
///
/// Those of [`run`].
pub(crate) fn seal(
    source: Source,
    path: &Path,
    output: Output,
    recipients: &RecipientArgs,
    signing: &SigningArgs,
    extras: &Extras,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let Output { destination, overwrite, run } = output;
    let Destination::File(out_path) = &destination else {
        if destination != Destination::Stdout {
            return Err(Failure::remote_output(destination.label()));
        }
        return Err(Failure::new(CODE_USAGE, "a sealed file cannot go to standard output")
            .because("its header is written last, when everything it vouches for is known")
            .help("name an output file"));
    };
    let regular = durable_file::open_regular(source.path(), u64::MAX).map_err(|error| {
        match source.path().is_dir() {
            true => source.relabel(error.into()).help("seal each file of a sharded model by itself"),
            false => source.relabel(error.into()),
        }
    })?;
    let len = regular.len();
    let file = regular.into_file();
    let plan = plan(&source, len, console)?;

    let signer = signing.load()?;
    let audience = recipients.load(destination.label())?;
    let tensors = plan.parts().iter().filter(|part| part.kind() == PartKind::Tensor).count() as u64;
    let mut options = options(extras, path)?;
    // Whatever announces itself as nothing else is taken for safetensors, and may be anything.
    if source.format() != Format::SafeTensors || tensors > 0 {
        options.private.entry(FORMAT_KEY.to_owned()).or_insert_with(|| source.format().id().to_owned());
    }
    let (mut mode, mut to) = ("none", Vec::new());
    match &audience {
        Some(Audience::Password(password)) => {
            options = options.with_password(password);
            mode = "password";
        }
        Some(Audience::Recipients(keys)) => {
            mode = "recipients";
            to = keys.iter().map(|key| key.fingerprint().to_string()).collect();
            options = keys.iter().fold(options, |options, key| options.for_recipient(*key));
        }
        None if signer.is_none() => {
            return Err(Failure::new(CODE_USAGE, "for whom is the file to be sealed, or by whom?").help(
                "name --recipient KEY, take a password (--ask-password, --password-file), or --sign KEY",
            ));
        }
        None => {}
    }
    if let Some(signer) = &signer {
        options = options.signed_by(signer);
    }
    if extras.bind_recipients {
        options = options.with_bound_recipients();
    } else if signer.is_some() && !to.is_empty() {
        console.remark(
            "each recipient can add others, who then find this signature valid and may take you for the sender: `apr seal \
             --bind-recipients` leaves the list of recipients to the signing key",
        );
    }
    if !extras.hide_recipients && !to.is_empty() {
        options = options.with_listed_recipients();
    }
    let (room, most) = (options.capacity().max(to.len()), SealedLimits::default().stanzas);
    if !to.is_empty() && room > most {
        console.remark(format_args!(
            "space for {}: a file with more than {} is opened only with --max-recipients",
            plural(room as u64, "recipient"),
            grouped(most as u64)
        ));
    }
    let total = apr_sealed::SealedLayout::new(&plan, &options)?.total_len();
    if run == Run::Write {
        let mut progress = console.progress("sealing", len);
        output::replace(out_path, overwrite, |out| {
            let mut sealer = Sealer::new(out, &plan, &options, &mut OsRandom)?;
            copy(&file, len, &source, |piece| {
                progress.advance(piece.len());
                sealer.write_all(piece).map_err(|error| failed(error, &destination))
            })?;
            sealer.finish()?;
            Ok(())
        })?;
    }
    let signer = signer.map(|key| key.verifying_key().fingerprint().to_string());
    if console.is_json() {
        console.report(&SealReport {
            file: Written::new(path, out_path, run, total),
            content_bytes: len,
            tensors,
            encryption: mode,
            recipients: &to,
            signer: signer.as_deref(),
        })?;
        return Ok(Exit::Success);
    }
    let whom = match (mode, to.as_slice()) {
        ("password", _) => "encrypted under a password".to_owned(),
        ("recipients", [one]) => format!("encrypted for {one}"),
        ("recipients", several) => format!("encrypted for {}", plural(several.len() as u64, "recipient")),
        _ => "not encrypted".to_owned(),
    };
    let by = signer.map_or_else(|| ", not signed".to_owned(), |name| format!(", signed by {name}"));
    let label = escape::path(out_path);
    let text = format!("{label}: sealed, {}, {whom}{by}, {}", plural(tensors, "tensor"), exact_bytes(total));
    run.tell(&text, console)?;
    Ok(Exit::Success)
}

/// Splits the file into its tensors and the bytes between them, if its format lists tensors.
fn plan(source: &Source, len: u64, console: &Console) -> Result<Plan, Failure> {
    if source.format() == Format::AprV1 {
        return Ok(Plan::of_file(len, [])?);
    }
    let model = Model::open(source.path(), &Rules::COMPAT.with_unchecked_signatures());
    let tensors = model.as_ref().ok().filter(|model| !model.is_sharded()).and_then(|model| parts(model).ok());
    match tensors.map(|tensors| Plan::of_file(len, tensors)) {
        Some(Ok(plan)) => Ok(plan),
        _ => {
            console.remark("no tensors are told apart in this file: it is sealed and opened as a whole");
            Ok(Plan::of_file(len, [])?)
        }
    }
}

fn parts(model: &Model) -> Result<Vec<(u64, Part)>, Failure> {
    let inside = || Failure::new(CODE_USAGE, "tensors that lie in no file");
    let tensors = model.tensors()?;
    let part = |tensor: &input::Tensor<'_>| {
        let shape: Vec<u64> = tensor.shape().iter().map(|&dim| dim as u64).collect();
        let offset = tensor.file_offset().ok_or_else(inside)?;
        Ok((offset, Part::tensor(tensor.name(), tensor.dtype().name(), shape, tensor.byte_len())))
    };
    tensors.iter().map(part).collect()
}

fn options<'k>(extras: &Extras, path: &Path) -> Result<SealOptions<'k>, Failure> {
    let mut options = SealOptions::default();
    let own =
        path.file_name().filter(|_| path.as_os_str() != "-").map(|name| name.to_string_lossy().into_owned());
    if let Some(name) = extras.name.clone().or(own) {
        options = options.with_private(NAME_KEY, &name);
    }
    if let Some(room) = extras.room {
        options = options.with_capacity_for(room.into());
    }
    for (arg, pairs, target) in [
        ("metadata", &extras.metadata, &mut options.private),
        ("public-metadata", &extras.public_metadata, &mut options.public),
    ] {
        for pair in pairs {
            let (key, value) = pair.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
                Failure::new(
                    CODE_USAGE,
                    format!("--{arg}: KEY=VALUE is needed, not {}", escape::cut(pair, 60)),
                )
            })?;
            target.insert(key.to_owned(), value.to_owned());
        }
    }
    Ok(options)
}

/// Hands the first `len` bytes of a file on, all of which have to be there and no more.
fn copy(
    mut file: &File,
    len: u64,
    source: &Source,
    mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let at_source = |error: io::Error| source.relabel(Failure::io("read the file", source.path(), &error));
    let mut piece = vec![0; PIECE_LEN];
    let mut left = len;
    loop {
        match file.read(&mut piece) {
            Ok(0) if left == 0 => return Ok(()),
            Ok(count) if count > 0 && count as u64 <= left => {
                left -= count as u64;
                take(&piece[..count])?;
            }
            Ok(_) => {
                let failure = Failure::new("ac-v2-data-length", "the file changed while it was read");
                return Err(source.relabel(failure));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(at_source(error)),
        }
    }
}

/// What sealing said inside an error of writing.
fn failed(error: io::Error, destination: &Destination) -> Failure {
    match error.downcast::<apr_sealed::Error>() {
        Ok(error) => match error.kind() {
            apr_sealed::ErrorKind::Io { error } => destination.write_failure(error),
            _ => error.into(),
        },
        Err(error) => destination.write_failure(&error),
    }
}
