//! Remote files of one run: each is opened once.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::Rc;
use alloc::sync::Arc;
use core::cell::RefCell;
use core::time::Duration;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use apr_remote::{
    BlockCache, Client, ErrorKind, Folder, Network, OnRetry, Options, Place, PlainHttp, RemoteFile, at_once,
};
use model_file::{FileKind, ModelFile, OpenOptions};
use read_at::{AnySource, ReadAt};
use sha2::{Digest as _, Sha256};
use st_core::ShardIndex;
use st_mmap::Shards;

use super::is_url;
use crate::args::parse_size;
use crate::error::{CODE_REMOTE, Failure};
use crate::terminal::{Console, Narration};
use crate::terminal::{escape, human};

/// Bytes hashed at once.
const PIECE_LEN: usize = 1 << 20;

/// Options of all commands for URLs.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[command(next_help_heading = "Options of all commands")]
pub(crate) struct RemoteArgs {
    /// Send no request: of URLs, only files in the hub's cache and kept blocks of commits are read.
    #[arg(long, global = true)]
    offline: bool,
    /// Do not use files that the hub's own programs have downloaded.
    #[arg(long, global = true)]
    no_hub_cache: bool,
    /// Keep what is read of URLs on disk, and read it from there the next time.
    #[arg(long, global = true)]
    block_cache: bool,
    /// Bytes that are kept: 20GB, 5GiB; by default 10GiB.
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    block_cache_size: Option<u64>,
    /// Read http:// URLs of other hosts than this machine.
    #[arg(long, global = true)]
    allow_http: bool,
    /// Give up on URLs after so many seconds in all; by default, when 10 kB/s do not arrive for 3 minutes.
    #[arg(long, global = true, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: Option<u64>,
    /// At the end, show how many requests and bytes URLs have cost.
    #[arg(long, global = true)]
    stats: bool,
}

impl RemoteArgs {
    fn limited(self, cache: BlockCache) -> BlockCache {
        let limit = self.block_cache_size.unwrap_or(cache.limit());
        cache.with_limit(limit)
    }

    /// The options as words of a command line.
    pub(super) fn words(self) -> Vec<String> {
        let given = [
            ("--offline", self.offline),
            ("--no-hub-cache", self.no_hub_cache),
            ("--block-cache", self.block_cache),
            ("--allow-http", self.allow_http),
        ];
        let words = given.into_iter().filter(|(_, is_given)| *is_given).map(|(word, _)| word.to_owned());
        let size = self.block_cache_size.map(|size| format!("--block-cache-size={size}"));
        words.chain(size).chain(self.time_limit.map(|seconds| format!("--time-limit={seconds}"))).collect()
    }
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|_| "a number of bytes with an optional unit, such as 5GB or 2GiB".to_owned())
}

impl Narration {
    /// Callback that shows further tries on a terminal.
    fn on_retry(self) -> Option<OnRetry> {
        let told = Mutex::new(None);
        self.is_shown().then(|| {
            OnRetry::new(move |retry| {
                let text = format!("{}: try {} of {}: {}", retry.host, retry.next, retry.limit, retry.cause);
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                // Several requests of a file are sent at once, and fail at once.
                if told.as_ref() != Some(&text) {
                    self.remark(escape::escaped(&text));
                    *told = Some(text);
                }
            })
        })
    }
}

thread_local! {
    /// What belongs to the run of a command on this thread.
    static SESSION: RefCell<Session> = RefCell::default();
}

#[derive(Debug, Default)]
struct Session {
    args: RemoteArgs,
    narration: Narration,
    client: Option<Arc<Client>>,
    opened: BTreeMap<PathBuf, Rc<Opened>>,
    /// URLs that cannot be opened: they are asked for once.
    failed: BTreeMap<PathBuf, Failure>,
    /// URLs with queries, by what is shown in their place.
    full: BTreeMap<String, String>,
}

/// Takes the queries of URLs out of the command line, so that no message shows a signature.
pub(crate) fn without_queries(args: Vec<OsString>) -> Vec<OsString> {
    SESSION.with_borrow_mut(|session| {
        *session = Session::default();
        // Also the value of `--option=URL`.
        let split = |arg: &OsString| {
            let text = arg.to_str()?;
            let begin = if text.starts_with("--") { text.find('=')? + 1 } else { 0 };
            Some((text[..begin].to_owned(), text[begin..].to_owned()))
        };
        let plain: BTreeSet<String> = args.iter().filter_map(split).map(|(_, text)| text).collect();
        let shown = |arg: OsString| {
            let Some((option, text)) = split(&arg).filter(|(_, text)| text.contains('?')) else { return arg };
            let Some(Ok(Place::Url(url))) = Place::parse(&text) else { return arg };
            // Other URLs of the same address have a number.
            let names = (1..).map(|n| if n == 1 { url.to_string() } else { format!("{url}?{n}") });
            for name in names {
                let known = session.full.get(&name);
                if known == Some(&text) || known.is_none() && !plain.contains(&name) {
                    session.full.insert(name.clone(), text);
                    return (option + &name).into();
                }
            }
            arg
        };
        args.into_iter().map(shown).collect()
    })
}

/// Whether a URL of the command line has a query that is not shown.
pub(super) fn is_shortened(url: &str) -> bool {
    SESSION.with_borrow(|session| session.full.contains_key(url))
}

/// The options of this run, and whether it narrates.
pub(super) fn args() -> (RemoteArgs, Narration) {
    SESSION.with_borrow(|session| (session.args, session.narration))
}

/// Begins a run.
pub(crate) fn start(args: RemoteArgs, narration: Narration) {
    SESSION.with_borrow_mut(|session| (session.args, session.narration) = (args, narration));
}

/// Ends a run: says what URLs have cost, if that was asked for.
pub(crate) fn finish(console: &Console) {
    let Session { args, client, .. } = SESSION.take();
    if args.stats {
        let counts = client.as_ref().map(|client| client.counts()).unwrap_or_default();
        let blocks = client.as_ref().filter(|client| client.has_block_cache()).map(|client| {
            let problem = client.block_cache_problem();
            format!(
                "; block cache: {} read, {} written, {} discarded{}",
                human::plural(counts.blocks_read, "block"),
                human::grouped(counts.blocks_written),
                human::grouped(counts.blocks_discarded),
                problem.map_or_else(String::new, |problem| format!("; not written: {problem}"))
            )
        });
        console.note(format_args!(
            "{}, {}, {}, {} from memory, {} of the hub's cache{}",
            human::plural(counts.requests, "request"),
            human::bytes(counts.bytes),
            match counts.retries {
                1 => "1 retry".to_owned(),
                count => format!("{count} retries"),
            },
            human::plural(counts.hits, "read"),
            human::plural(counts.cached, "file"),
            blocks.unwrap_or_default()
        ));
    }
}

/// Where the blocks of URLs are kept, if they are.
///
/// # Errors
///
/// If there is no folder for it.
pub(crate) fn block_cache() -> Result<BlockCache, Failure> {
    let cache = BlockCache::from_environment(|name| std::env::var_os(name))?;
    Ok(args().0.limited(cache))
}

/// The client of this run.
///
/// # Errors
///
/// If the environment does not allow requests.
pub(crate) fn client() -> Result<Arc<Client>, Failure> {
    SESSION.with_borrow_mut(|session| {
        if let Some(client) = &session.client {
            return Ok(Arc::clone(client));
        }
        let mut options = Options::from_environment(|name| std::env::var_os(name))?;
        if session.args.offline {
            options.network = Network::Off;
        }
        if session.args.no_hub_cache {
            options.hub_cache = None;
        }
        if session.args.block_cache {
            options.block_cache = Some(BlockCache::from_environment(|name| std::env::var_os(name))?);
        }
        options.block_cache = options.block_cache.map(|cache| session.args.limited(cache));
        if session.args.allow_http {
            options.plain_http = PlainHttp::Anywhere;
        }
        options.time_limit = session.args.time_limit.map(Duration::from_secs);
        options.on_retry = session.narration.on_retry();
        let client = Client::new(options)?;
        session.client = Some(Arc::clone(&client));
        Ok(client)
    })
}

/// What a URL of the command line names, and what reads it.
///
/// # Errors
///
/// If it is no URL, or the environment does not allow requests.
pub(crate) fn place(path: &Path) -> Result<(Arc<Client>, Place), Failure> {
    let text = path.to_str().unwrap_or_default();
    let full = SESSION.with_borrow(|session| session.full.get(text).cloned());
    let place = Place::parse(full.as_deref().unwrap_or(text)).ok_or_else(|| not_read(path))?;
    let place = place.map_err(|error| Failure::from(error).in_file(path))?;
    Ok((client().map_err(|failure| failure.in_file(path))?, place))
}

/// Refuses what is no URL, or one of another protocol.
fn not_read(path: &Path) -> Failure {
    let failure = match is_url(path) {
        true => Failure::new(CODE_REMOTE, "the scheme of the URL is not supported"),
        false => Failure::from(apr_remote::Error::from(ErrorKind::Url { problem: "the scheme is missing" })),
    };
    failure.in_file(path).help("write https://HOST/PATH, hf://ORG/NAME[@REVISION]/PATH or s3://BUCKET/KEY")
}

/// Longest index whose shards are fetched before they are asked for.
const MAX_INDEX_LEN: u64 = 100_000_000;

/// An open remote file, or the index of a set.
#[derive(Clone, Debug)]
pub(crate) struct Remote(Rc<Opened>);

#[derive(Debug)]
struct Opened {
    /// What the user called it; of an index, its URL.
    name: PathBuf,
    kind: FileKind,
    file: Arc<RemoteFile>,
    shards: Arc<Folder>,
}

impl Remote {
    /// What FILE names; `None` of a path.
    ///
    /// # Errors
    ///
    /// If FILE is a URL that cannot be opened.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Failure> {
        if !is_url(path) {
            return Ok(None);
        }
        let known = SESSION.with_borrow(|session| {
            let opened = session.opened.get(path).map(|opened| Ok(Rc::clone(opened)));
            opened.or_else(|| Some(Err(session.failed.get(path)?.clone())))
        });
        if let Some(known) = known {
            return known.map(|opened| Some(Self(opened)));
        }
        let (client, place) = place(path)?;
        let opened = Opened::new(client, &place, path).map_err(|failure| failure.in_file(path));
        SESSION.with_borrow_mut(|session| match opened {
            Ok(opened) => {
                let opened = Rc::new(opened);
                session.opened.insert(path.to_owned(), Rc::clone(&opened));
                Ok(Some(Self(opened)))
            }
            Err(failure) => {
                session.failed.insert(path.to_owned(), failure.clone());
                Err(failure)
            }
        })
    }

    /// Opens several URLs, some of them at once. The first failure ends it: who opens that one meets it again.
    pub(crate) fn open_all(paths: &[PathBuf]) {
        let urls = paths.iter().filter(|path| is_url(path));
        let places: Vec<_> = urls.filter_map(|path| Some((path, place(path).ok()?))).collect();
        let opened = Mutex::new(Vec::new());
        at_once(&places, |(path, (client, place))| {
            let Ok(found) = Opened::new(Arc::clone(client), place, path) else { return false };
            opened.lock().unwrap_or_else(PoisonError::into_inner).push(((*path).clone(), found));
            true
        });
        let opened = opened.into_inner().unwrap_or_else(PoisonError::into_inner);
        let opened = opened.into_iter().map(|(path, opened)| (path, Rc::new(opened)));
        SESSION.with_borrow_mut(|session| session.opened.extend(opened));
    }

    pub(crate) fn kind(&self) -> FileKind {
        self.0.kind
    }

    /// Its bytes.
    pub(crate) fn source(&self) -> AnySource {
        let file: Arc<RemoteFile> = Arc::clone(&self.0.file);
        AnySource::Shared(file)
    }

    /// Opens the model in it; of an index, with its shards.
    ///
    /// # Errors
    ///
    /// Those of [`ModelFile::from_shared`].
    pub(crate) fn model_file(
        &self,
        options: &OpenOptions<'_>,
    ) -> Result<ModelFile<AnySource>, model_file::Error> {
        let Opened { name, kind, file, shards } = &*self.0;
        if self.is_index() {
            shards.prefetch(&self.shard_names());
        }
        let shards = Box::new(SharedShards(Arc::clone(shards)));
        let file: Arc<RemoteFile> = Arc::clone(file);
        ModelFile::from_shared(file, *kind, name, shards, options)
    }

    /// Length, and the ETag or the date that stands for the version.
    pub(crate) fn version(&self) -> (u64, Option<String>) {
        (self.0.file.total_len(), self.0.file.version().map(str::to_owned))
    }

    /// SHA-256 of the file, of all of its bytes.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or the hub declares another one.
    pub(crate) fn sha256(&self, advance: impl FnMut(usize)) -> Result<[u8; 32], Failure> {
        let Opened { file, name, .. } = &*self.0;
        hashed(file, name, file.sha256_declared(), advance)
    }

    /// Reads the file, and of an index its shards, to compare the digests that the hub declares. Files without one are not read.
    ///
    /// # Errors
    ///
    /// If one cannot be read, or is another one.
    pub(crate) fn check_digests(&self, console: &Console) -> Result<(), Failure> {
        let mut files = self.0.shards.opened();
        files.push(Arc::clone(&self.0.file));
        let mut declared = Vec::new();
        for file in files {
            let name = PathBuf::from(file.shown());
            let sha256 = file.sha256_of_hub().map_err(|error| Failure::from(error).in_file(&name))?;
            declared.extend(sha256.map(|sha256| (file, name, sha256)));
        }
        let len = declared.iter().map(|(file, ..)| file.total_len()).sum();
        let mut progress = console.progress("hashing", len);
        for (file, name, sha256) in declared {
            hashed(&file, &name, Some(&sha256), |len| progress.advance(len))?;
        }
        Ok(())
    }

    fn is_index(&self) -> bool {
        self.0.kind.expected() == model_file::ModelFormat::SafeTensors
            && self.0.name.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"))
    }

    /// Names in the index; none if it is not valid, which is told when it is opened.
    fn shard_names(&self) -> Vec<String> {
        let mut text = vec![0; usize::try_from(self.0.file.total_len().min(MAX_INDEX_LEN)).unwrap_or(0)];
        let index = match self.0.file.read_exact_at(0, &mut text) {
            Ok(()) => ShardIndex::from_json(&text).ok(),
            Err(_) => None,
        };
        let mut names: Vec<String> =
            index.iter().flat_map(ShardIndex::weight_map).map(|(_, shard)| shard.to_owned()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl Opened {
    fn new(client: Arc<Client>, place: &Place, path: &Path) -> Result<Self, Failure> {
        let file = client.open_model(place)?;
        let kind = FileKind::of_source(&file).map_err(|error| Failure::of_remote(error, path))?;
        let is_index = file.url().file_name().to_ascii_lowercase().ends_with(".json");
        let name = if is_index { file.shown().into() } else { path.to_owned() };
        let shards = Folder::of(client, &file);
        Ok(Self { name, kind, file: Arc::new(file), shards: Arc::new(shards) })
    }
}

/// SHA-256 of a file, compared with the one that is declared, if one is.
fn hashed(
    file: &RemoteFile,
    name: &Path,
    declared: Option<&str>,
    mut advance: impl FnMut(usize),
) -> Result<[u8; 32], Failure> {
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE_LEN];
    let mut at = 0;
    file.will_read(0..file.total_len());
    while at < file.total_len() {
        let len = (file.total_len() - at).min(PIECE_LEN as u64) as usize;
        file.read_exact_at(at, &mut piece[..len]).map_err(|error| Failure::of_remote(error, name))?;
        hash.update(&piece[..len]);
        advance(len);
        at += len as u64;
    }
    let digest = hash.finalize();
    let found = base16ct::lower::encode_string(&digest);
    match declared.filter(|declared| *declared != found) {
        Some(declared) => Err(other_digest(file, declared, found).in_file(name)),
        None => Ok(digest.into()),
    }
}

/// The failure of a file whose content is another one than is declared.
pub(crate) fn other_digest(file: &RemoteFile, declared: &str, found: String) -> Failure {
    let kind = ErrorKind::Digest { expected: declared.to_owned(), found };
    let failure = Failure::from(apr_remote::Error::from(kind));
    match file.is_cached() {
        true => failure
            .help("the file in the hub's cache is damaged: remove it there, or repeat with --no-hub-cache"),
        false if file.has_blocks() => {
            failure.help("it may have been read from the block cache: repeat after `apr cache clear`")
        }
        false => failure,
    }
}

/// Shared with what checks digests afterwards.
#[derive(Debug)]
struct SharedShards(Arc<Folder>);

impl Shards for SharedShards {
    fn open(&self, name: &str) -> Result<AnySource, read_at::Error> {
        let file: Arc<RemoteFile> = self.0.file(name)?;
        Ok(AnySource::Shared(file))
    }
}
