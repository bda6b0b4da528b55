//! `apr put`: copies files to an object store.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use apr_remote::{Client, Error, ErrorKind, ObjectPath, Place};
use read_at::ReadAt as _;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::args::WriteArgs;
use crate::args::glob::PathSelection;
use crate::error::{CODE_INPUT_CHANGED, CODE_USAGE, Exit, Failure};
use crate::file_digest;
use crate::output::{Overwrite, Run};
use crate::remote::{self, NewObject};
use crate::report::{self, Report};
use crate::terminal::{Console, Progress, escape, human};

const AFTER_HELP: &str = "An object appears when all of it has arrived, and never in parts. Objects with the bytes of their files stay as they are: the \
    same command goes on where it ended. Other objects of the same names are an error before anything is sent, or replaced with \
    --force. Indexes of shards are sent last: who finds one finds its shards.\n\n\
    The credentials are those of the environment (AWS_ACCESS_KEY_ID and others), see docs/remote.md. Needs a build with the feature `cloud`.\n\n\
    Examples:\n  apr put model s3://bucket/models/llama\n  \
    apr put model s3://bucket/models/llama --include '*.safetensors' --include '*.json'\n  \
    apr put model-q4_k_m.gguf gs://bucket/models/\n\n\
    Exit codes: 0 success, 2 an object exists, 4 another length, 5 I/O, network or credentials, 6 a build without `cloud`.";

/// Bytes that are read and hashed at once.
const PIECE_LEN: usize = 1 << 20;
/// Requests at once to compare an object with a file.
const CONNECTIONS: usize = 8;
/// Folders in each other.
const DEPTH_MAX: usize = 64;

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// A file, or a folder with all files below it.
    #[arg(value_name = "FROM")]
    input: PathBuf,
    /// The object, or what the keys of several begin with: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX. A file gets its own
    /// name below a PREFIX that ends with a slash.
    #[arg(value_name = "URL")]
    output: PathBuf,
    #[command(flatten)]
    paths: PathSelection,
    #[command(flatten)]
    write: WriteArgs,
}

/// What was sent, or would be.
#[derive(Debug, Serialize)]
struct PutReport<'a> {
    input: Cow<'a, str>,
    output: Cow<'a, str>,
    written: bool,
    bytes: u64,
    files: Vec<FileReport<'a>>,
}

impl Report for PutReport<'_> {
    const SCHEMA: &'static str = "apr.put/1";
}

#[derive(Debug, Serialize)]
struct FileReport<'a> {
    path: &'a str,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// The object had the same bytes.
    Present,
    Uploaded,
}

/// A file and its object.
#[derive(Debug)]
struct Item {
    file: PathBuf,
    /// Below the folder, with `/`.
    path: String,
    object: ObjectPath,
    len: u64,
    /// What is there, before it is compared.
    found: Option<u64>,
}

#[derive(Debug)]
struct Sent {
    sha256: String,
    state: State,
}

/// Runs `apr put`.
///
/// # Errors
///
/// If a file cannot be read, an object differs from its file, or the store does not take one.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let (client, place) = remote::place(&args.output)?;
    let Place::Object(to) = place else {
        return Err(Failure::new(CODE_USAGE, "the URL names no object store").in_file(&args.output));
    };
    let named = |failure: Failure| failure.in_file(&args.output);
    let items = items(args, &client, &to).map_err(named)?;
    let present = compare_all(&items, &client, args.write.overwrite(), console)?;
    let sent = match args.write.run() {
        Run::Dry => Vec::new(),
        Run::Write => send_all(&items, present, &client, args.write.overwrite(), console)?,
    };
    tell(&items, &sent, args, console)?;
    Ok(Exit::Success)
}

/// The files and their objects, indexes of shards last.
fn items(args: &Args, client: &Client, to: &ObjectPath) -> Result<Vec<Item>, Failure> {
    let mut files = Vec::new();
    let is_folder = args.input.is_dir();
    if is_folder {
        add_below(&args.input, "", DEPTH_MAX, &mut files)?;
    } else {
        let name = args.input.file_name().unwrap_or_default();
        files.push((text(Path::new(name))?, args.input.clone()));
    }
    files.retain(|(path, _)| args.paths.includes(path));
    if files.is_empty() {
        let failure = Failure::new(CODE_USAGE, "there is no file, or --include and --exclude leave none");
        return Err(failure.in_file(&args.input));
    }
    let mut items = Vec::new();
    for (path, file) in files {
        let object = if is_folder || to.is_prefix() { key(to, &path, &file)? } else { to.clone() };
        let opened = durable_file::open_regular(&file, u64::MAX).map_err(Failure::from);
        let len = match opened {
            Ok(opened) => opened.len(),
            Err(failure) if failure.exit() == Exit::Invalid => {
                return Err(failure.help("name a regular file, or leave this one out with --exclude"));
            }
            Err(failure) => return Err(failure),
        };
        items.push(Item { file, path, object, len, found: None });
    }
    // What is sent from a folder lands in one again.
    durable_file::check_listed(items.iter().map(|item| item.path.as_str())).map_err(|error| {
        Failure::from(error).help("leave it out with --exclude, for example --exclude '.git/*'")
    })?;
    let known = if is_folder { known(client, to)? } else { None };
    for item in &mut items {
        item.found = match &known {
            Some(known) => known.get(item.object.key()).copied(),
            None => client.object_len(&item.object)?,
        };
    }
    items.sort_by_cached_key(|item| (item.path.ends_with(".index.json"), item.path.clone()));
    Ok(items)
}

/// The object of a file below the prefix.
fn key(to: &ObjectPath, path: &str, file: &Path) -> Result<ObjectPath, Failure> {
    let refused = |problem: &str| {
        let failure = Failure::new(CODE_USAGE, format!("the name cannot be part of a key: {problem}"));
        failure.in_file(file).help("rename the file, or leave it out with --exclude")
    };
    match path.contains(char::is_control) {
        true => Err(refused("it has a line feed or another control character")),
        false => to.below(path).map_err(|_| refused("it has a backslash or a colon")),
    }
}

/// Bytes of the objects below the prefix; `None` if there are too many, or some that this program does not read, which is no reason not to
/// write others.
fn known(client: &Client, to: &ObjectPath) -> Result<Option<BTreeMap<String, u64>>, Failure> {
    match client.list_objects(to) {
        Ok(listed) => {
            Ok(Some(listed.into_iter().map(|found| (found.path.key().to_owned(), found.len)).collect()))
        }
        Err(error) if matches!(error.kind(), ErrorKind::Listing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The files below a folder with their paths. Links to files are followed, links to folders are not.
fn add_below(
    folder: &Path,
    below: &str,
    depth: usize,
    files: &mut Vec<(String, PathBuf)>,
) -> Result<(), Failure> {
    let list = |error| Failure::io("list the folder", folder, &error);
    for entry in fs::read_dir(folder).map_err(list)? {
        let entry = entry.map_err(list)?;
        let (path, name) = (entry.path(), text(Path::new(&entry.file_name()))?);
        if name == super::get::PARTS {
            continue;
        }
        let inner = format!("{below}{name}");
        if entry.file_type().map_err(list)?.is_dir() {
            if depth == 0 {
                return Err(
                    Failure::new(CODE_USAGE, "there are too many folders in each other").in_file(&path)
                );
            }
            add_below(&path, &format!("{inner}/"), depth - 1, files)?;
        } else if !path.is_dir() {
            files.push((inner, path));
        }
    }
    Ok(())
}

fn text(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| Failure::new(CODE_USAGE, "the name is not Unicode").in_file(path))
}

fn total<'i>(items: impl Iterator<Item = &'i Item>) -> u64 {
    items.map(|item| item.len).fold(0, u64::saturating_add)
}

/// The digests of objects that have the bytes of their files.
///
/// # Errors
///
/// If another object differs and may not be replaced: then nothing is sent.
fn compare_all(
    items: &[Item],
    client: &Arc<Client>,
    overwrite: Overwrite,
    console: &Console,
) -> Result<Vec<Option<String>>, Failure> {
    if items.iter().all(|item| item.found.is_none()) {
        return Ok(items.iter().map(|_| None).collect());
    }
    let same_len = items.iter().filter(|item| item.found == Some(item.len));
    let mut progress = console.progress("comparing", total(same_len));
    items.iter().map(|item| same(item, client, overwrite, &mut progress)).collect()
}

fn send_all(
    items: &[Item],
    present: Vec<Option<String>>,
    client: &Arc<Client>,
    overwrite: Overwrite,
    console: &Console,
) -> Result<Vec<Sent>, Failure> {
    let mut progress = console.progress("uploading", total(items.iter()));
    let mut sent = Vec::with_capacity(items.len());
    for (item, present) in items.iter().zip(present) {
        progress.item(&item.path);
        sent.push(match present {
            Some(sha256) => {
                progress.advance(item.len as usize);
                Sent { sha256, state: State::Present }
            }
            None => {
                let sha256 = send(item, client, overwrite, &mut progress)?;
                Sent { sha256, state: State::Uploaded }
            }
        });
    }
    Ok(sent)
}

/// The digest of an object that has the bytes of its file; `None` if it is sent.
fn same(
    item: &Item,
    client: &Arc<Client>,
    overwrite: Overwrite,
    progress: &mut Progress,
) -> Result<Option<String>, Failure> {
    let shown = PathBuf::from(item.object.to_string());
    if item.found == Some(item.len) {
        progress.item(&item.path);
        let open = client.open(&Place::Object(item.object.clone()));
        let object = open.map_err(|error| Failure::from(error).in_file(&shown))?;
        let mut hash = Sha256::new();
        let read = object.read_in_order(0..object.total_len(), CONNECTIONS, |bytes| {
            hash.update(bytes);
            progress.advance(bytes.len());
            Ok::<(), read_at::Error>(())
        });
        read.map_err(|error| Failure::of_remote(error, &shown))?;
        let there: [u8; 32] = hash.finalize().into();
        if there == file_digest::sha256(&item.file, |_| ())? {
            return Ok(Some(base16ct::lower::encode_string(&there)));
        }
    }
    match item.found {
        Some(_) if overwrite == Overwrite::Refuse => {
            let failure = Failure::from(Error::from(ErrorKind::Exists)).in_file(&shown);
            Err(failure.help("it differs from the file; replace it with --force"))
        }
        _ => Ok(None),
    }
}

/// Sends a file, and gives its SHA-256.
fn send(
    item: &Item,
    client: &Client,
    overwrite: Overwrite,
    progress: &mut Progress,
) -> Result<String, Failure> {
    let shown = PathBuf::from(item.object.to_string());
    let named = |failure: Failure| failure.in_file(&shown);
    let mut file = durable_file::open_regular(&item.file, u64::MAX)?.into_file();
    let state = |file: &fs::File| {
        let found = file.metadata().map_err(|error| Failure::io("read the file", &item.file, &error))?;
        Ok::<_, Failure>((found.len(), found.modified().ok()))
    };
    let before = state(&file)?;
    let mut object = NewObject::begin(client, &item.object, overwrite, Some(item.len)).map_err(named)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE_LEN];
    let mut left = item.len;
    while left > 0 {
        let wanted = left.min(PIECE_LEN as u64) as usize;
        file.read_exact(&mut piece[..wanted]).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => changed(item),
            _ => Failure::io("read the file", &item.file, &error),
        })?;
        hash.update(&piece[..wanted]);
        object.write_all(&piece[..wanted]).map_err(|error| remote::object_failure(&shown, &error))?;
        progress.advance(wanted);
        left -= wanted as u64;
    }
    let after = state(&file)?;
    if after != before || after.0 != item.len {
        return Err(changed(item));
    }
    object.finish().map_err(named)?;
    Ok(base16ct::lower::encode_string(&hash.finalize()))
}

fn changed(item: &Item) -> Failure {
    let what = "the file was changed while it was sent; nothing of it was stored";
    let failure = Failure::new(CODE_INPUT_CHANGED, what).in_file(&item.file);
    failure.help("repeat the command when no other program writes the file")
}

fn tell(items: &[Item], sent: &[Sent], args: &Args, console: &mut Console) -> Result<(), Failure> {
    let sent = sent.iter().map(Some).chain(core::iter::repeat(None));
    let files = items.iter().zip(sent).map(|(item, sent)| FileReport {
        path: &item.path,
        bytes: item.len,
        sha256: sent.map(|sent| sent.sha256.as_str()),
        state: sent.map(|sent| sent.state),
    });
    let files: Vec<FileReport<'_>> = files.collect();
    let run = args.write.run();
    if console.is_json() {
        return console.report(&PutReport {
            input: report::path(&args.input),
            output: report::path(&args.output),
            written: run == Run::Write,
            bytes: files.iter().map(|file| file.bytes).fold(0, u64::saturating_add),
            files,
        });
    }
    for (item, file) in items.iter().zip(&files) {
        let object = escape::escaped(&item.object.to_string());
        let note = if file.state == Some(State::Present) { ", was there" } else { "" };
        run.tell(&format!("{object} ({}{note})", human::exact_bytes(file.bytes)), console)?;
    }
    Ok(())
}
