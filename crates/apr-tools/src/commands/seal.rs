//! `apr seal`: any model, encrypted or signed or both, in a file of which single tensors can be read.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;

use apr_crypto::OsRandom;
use apr_sealed::{Part, PartKind, Plan, SealOptions, SealedLimits, Sealer};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::{self, Format, Model, Rules, Source};
use crate::output::{self, Destination, Output, Run};
use crate::secrets::{Audience, RecipientArgs, SigningArgs, key_password_args, refuse_shared_stdin};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{exact_bytes, grouped, plural};

/// Bytes between two looks at the progress.
const PIECE_LEN: usize = 1 << 20;

/// Where the name and the format of the original are kept.
pub(crate) const NAME_KEY: &str = "file.name";
const FORMAT_KEY: &str = "file.format";

pub(crate) fn command() -> Command {
    Command::new("seal")
        .about("Encrypt or sign a model of any format and size, so that single tensors can be read")
        .arg(
            input::input_arg()
                .value_name("MODEL")
                .help("A file of any format, or `-` for a model on standard input; tensors are told apart in safetensors and .apr files"),
        )
        .arg(output::output_arg("The sealed file"))
        .args(RecipientArgs::args())
        .args(SigningArgs::args())
        .args(key_password_args())
        .arg(
            Arg::new("bind-recipients")
                .long("bind-recipients")
                .action(ArgAction::SetTrue)
                .requires("sign")
                .help("Sign the list of recipients too: nobody else can change it"),
        )
        .arg(
            Arg::new("room")
                .long("room")
                .value_name("N")
                .value_parser(value_parser!(u16))
                .help("Room for so many recipients in all [default: 8, or as many as are named]"),
        )
        .arg(
            Arg::new("hide-recipients")
                .long("hide-recipients")
                .action(ArgAction::SetTrue)
                .help("Leave out the list of the recipients' public keys, which all recipients can read; without it, `apr rekey --remove` does not work"),
        )
        .arg(
            Arg::new("name")
                .long("name")
                .value_name("NAME")
                .help("Remember this name of the original, in place of MODEL's [encrypted with it]"),
        )
        .arg(pairs_arg("metadata").help("Metadata that only those can read who can open the file"))
        .arg(pairs_arg("public-metadata").help("Metadata that everybody can read"))
        .arg(output::force_arg())
        .arg(output::dry_run_arg())
        .after_help(
            "The whole file is kept, byte for byte: `apr open` gives it back, or one of its tensors, having read little \
             more than that tensor. With recipients or a password it is encrypted (AES-256-GCM in chunks), with --sign it is \
             signed, and anybody with the signer's public key can check it without opening it. Recipients can be added and \
             removed later without rewriting the file: apr rekey. Sizes, the number of recipients and public metadata \
             can be seen by everybody; who the recipients are, by each of them unless --hide-recipients says otherwise. Without \
             --bind-recipients every recipient can add more, for whom the signature then holds as well.\n\n\
             Examples:\n  apr seal model.safetensors -o sold.sealed --recipient buyer.key.pub --sign maker.key\n  \
             apr seal model.apr -o locked.sealed --password-file password.txt\n\n\
             Exit codes: 0 written, 2 OUT exists, no recipient, password or key, 3 not a key, 4 a key that others can \
             read, 5 I/O.",
        )
}

fn pairs_arg(name: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("KEY=VALUE").action(ArgAction::Append)
}

/// Runs `apr seal`.
///
/// # Errors
///
/// If the model cannot be read; if a key or the password cannot be had, or none is named; if the output cannot be written.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let path = input::path(matches);
    let (recipients, signing) = (RecipientArgs::from_matches(matches), SigningArgs::from_matches(matches));
    refuse_shared_stdin(recipients.takes_stdin() || signing.takes_stdin(), path)?;
    // What cannot be written is told before anything is read from standard input.
    Output::from_matches(matches, console)?;
    seal(Source::open(path)?, matches, console)
}

/// Seals a file for whom, by whom and where the options say, those of `apr encrypt` as well.
///
/// # Errors
///
/// Those of [`run`].
pub(crate) fn seal(source: Source, matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let path = input::path(matches);
    let (recipients, signing) = (RecipientArgs::from_matches(matches), SigningArgs::from_matches(matches));
    let Output { destination, overwrite, run } = Output::from_matches(matches, console)?;
    let Destination::File(out_path) = &destination else {
        return Err(Failure::new(CODE_USAGE, "a sealed file cannot go to standard output")
            .because("its header is written last, when everything it vouches for is known")
            .help("name an output file"));
    };
    let regular = durable_file::open_regular(source.path(), u64::MAX)
        .map_err(|error| source.relabel(error.into()).help("seal each file of a sharded model by itself"))?;
    let len = regular.len();
    let file = regular.into_file();
    let plan = plan(&source, len, console)?;

    let signer = signing.load()?;
    let audience = recipients.load(destination.label())?;
    let tensors = plan.parts().iter().filter(|part| part.kind() == PartKind::Tensor).count() as u64;
    let mut options = options(matches, path)?;
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
    let is_set = |name| matches.try_get_one::<bool>(name).ok().flatten() == Some(&true);
    if is_set("bind-recipients") {
        options = options.with_bound_recipients();
    } else if signer.is_some() && !to.is_empty() {
        console.remark(
            "each recipient can add others, who then find this signature valid and may take you for the sender: `apr seal \
             --bind-recipients` leaves the list of recipients to the signing key",
        );
    }
    if !is_set("hide-recipients") && !to.is_empty() {
        options = options.with_listed_recipients();
    }
    let (room, most) = (options.room().max(to.len()), SealedLimits::default().stanzas);
    if !to.is_empty() && room > most {
        console.remark(format_args!(
            "room for {}: a file with more than {} is opened only with --max-recipients",
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
        console.json("apr.seal/1", |json| {
            json.field_str("input", &path.to_string_lossy())?;
            json.field_str("output", &out_path.to_string_lossy())?;
            json.field_bool("written", run == Run::Write)?;
            json.field_uint("bytes", total)?;
            json.field_uint("content_bytes", len)?;
            json.field_uint("tensors", tensors)?;
            json.field_str("encryption", mode)?;
            json.field_strings("recipients", to.iter().map(String::as_str))?;
            json.field_opt_str("signer", signer.as_deref())
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
    match run {
        Run::Write => console.wrote(text),
        Run::Dry => console.text(|out, _| writeln!(out, "would write {text}"))?,
    }
    Ok(Exit::Success)
}

/// Cuts the file into its tensors and what lies between them, where its format says what its tensors are.
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

fn options<'k>(matches: &ArgMatches, path: &Path) -> Result<SealOptions<'k>, Failure> {
    let mut options = SealOptions::default();
    let own =
        path.file_name().filter(|_| path.as_os_str() != "-").map(|name| name.to_string_lossy().into_owned());
    if let Some(name) = matches.try_get_one::<String>("name").ok().flatten().cloned().or(own) {
        options = options.with_private(NAME_KEY, &name);
    }
    if let Some(room) = matches.try_get_one::<u16>("room").ok().flatten() {
        options = options.with_room_for((*room).into());
    }
    let pairs = |name: &str| matches.try_get_many::<String>(name).ok().flatten().into_iter().flatten();
    for (arg, target) in [("metadata", &mut options.private), ("public-metadata", &mut options.public)] {
        for pair in pairs(arg) {
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
    let at_source = |error: io::Error| source.relabel(Failure::io("read", source.path(), &error));
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
            apr_sealed::ErrorKind::Io(error) => destination.write_failure(error),
            _ => error.into(),
        },
        Err(error) => destination.write_failure(&error),
    }
}
