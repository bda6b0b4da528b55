//! The inputs of a job.

#[cfg(feature = "remote")]
use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[cfg(feature = "remote")]
use apr_remote::ListedObject;
use serde::{Deserialize, Serialize};
use st_core::ShardIndex;

use super::files::{Digests, Pinned, text};
use super::plan::is_below;
use super::template::Template;
use crate::args::glob::PathSelection;
use crate::commands::verify::signature_places;
use crate::error::{CODE_IO, CODE_USAGE, Failure};
use crate::remote::{self, Repository, is_url};
use crate::terminal::escape;

/// Most inputs of a job: each task reads the whole plan.
const MAX_INPUTS: usize = 100_000;
/// Longest index of shards, and longest list of inputs.
const MAX_TEXT: u64 = 256 << 20;
const INDEX: &str = ".index.json";
/// Files that make a folder that of a language model, or of an adapter.
const CONFIGS: [&str; 2] = ["config.json", "adapter_config.json"];

/// What to do with one file that is at fault; `apr convert --recursive` has no option for it.
const LEAVE_OUT: &str = "correct it, or leave it out with the option --exclude of `apr batch` or `apr plan`";

/// What a command is run for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// A file, an index of shards, a folder, or a URL.
    pub(super) input: String,
    /// Its path below the place that was named, with `/`.
    pub(super) path: String,
    /// The files that are read.
    pub(super) files: Vec<Pinned>,
}

impl Input {
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
    }
}

/// A set of shards whose shards are inputs of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Set {
    /// Path of its index below the place that was named.
    pub(super) path: String,
    /// Paths of its shards there.
    pub(super) shards: Vec<String>,
}

/// Where inputs come from.
pub(crate) struct Sources<'a> {
    pub(crate) places: &'a [PathBuf],
    pub(crate) list: Option<&'a Path>,
    pub(crate) selection: &'a PathSelection,
    pub(crate) digests: Digests,
    /// Whether each shard of a set is an input, and the set gets a new index.
    pub(crate) by_shard: bool,
    /// The folder of the outputs, which is left out.
    pub(crate) to: &'a Path,
    /// Files of the job, which are left out: its plan, its report.
    pub(crate) own: &'a [&'a Path],
}

impl Sources<'_> {
    /// Finds the inputs, by path, and the sets of which they are shards.
    ///
    /// # Errors
    ///
    /// If a place cannot be listed, a path is not Unicode, or there are none.
    pub(super) fn find(&self, template: &Template) -> Result<(Vec<Input>, Vec<Set>), Failure> {
        let own = self.own.iter().copied().chain([self.to]).filter_map(|path| path.canonicalize().ok());
        let mut found = Found {
            sources: self,
            template,
            own: own.collect(),
            known: BTreeSet::new(),
            inputs: Vec::new(),
            sets: Vec::new(),
        };
        for place in self.places {
            found.add(place)?;
        }
        if let Some(list) = self.list {
            let text = match list.as_os_str() == "-" {
                true => std::io::read_to_string(std::io::stdin())
                    .map_err(|error| Failure::io("read the file", list, &error))?,
                false => String::from_utf8(durable_file::read(list, MAX_TEXT)?)
                    .map_err(|_| Failure::new(CODE_USAGE, "the list is not UTF-8").in_file(list))?,
            };
            for line in text.lines().filter(|line| !line.is_empty()) {
                found.add_listed(Path::new(line))?;
            }
        }
        let Found { inputs, sets, .. } = found;
        if inputs.is_empty() {
            let failure = Failure::new(CODE_USAGE, "there are no inputs");
            return Err(failure.help(
                "--from names files or folders other than DIR; --include and --exclude may leave none of them",
            ));
        }
        Ok((inputs, sets))
    }
}

struct Found<'s> {
    sources: &'s Sources<'s>,
    template: &'s Template,
    /// Files and the folder that belong to the job.
    own: BTreeSet<PathBuf>,
    /// Inputs that were found, as the file system calls them.
    known: BTreeSet<PathBuf>,
    inputs: Vec<Input>,
    sets: Vec<Set>,
}

impl Found<'_> {
    fn add(&mut self, place: &Path) -> Result<(), Failure> {
        refuse_query(place)?;
        if let Some(repository) = Repository::at(place)? {
            return self.add_repository(&repository);
        }
        #[cfg(feature = "remote")]
        if let Some(objects) = remote::objects_below(place)? {
            return self.add_objects(&objects);
        }
        if !place.is_dir() || is_url(place) {
            return self.add_listed(place);
        }
        if self.is_model_folder(place) {
            return self.add_folder(place, &name(place)?);
        }
        self.walk(place)
    }

    /// A place that is one input.
    fn add_listed(&mut self, place: &Path) -> Result<(), Failure> {
        refuse_query(place)?;
        if self.is_model_folder(place) {
            return self.add_folder(place, &name(place)?);
        }
        if place.is_dir() {
            return Err(Failure::new(CODE_USAGE, "a list of inputs names files, not folders")
                .in_file(place)
                .help("--from takes the files below a folder"));
        }
        let url = place.to_str().filter(|_| is_url(place));
        let path = match url {
            Some(url) => url.rsplit('/').next().unwrap_or_default().to_owned(),
            None => name(place)?,
        };
        let shards = match self.template.takes_sets() && url.is_none() && path.ends_with(INDEX) {
            true => shards(&durable_file::read(place, MAX_TEXT)?),
            false => Vec::new(),
        };
        match self.includes(&path) || shards.iter().any(|shard| self.includes(shard)) {
            true => self.add_file(place, &path, &shards),
            false => Ok(()),
        }
    }

    /// The files below a folder.
    fn walk(&mut self, root: &Path) -> Result<(), Failure> {
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            if self.is_own(&folder) {
                continue;
            }
            let below = text(folder.strip_prefix(root).unwrap_or(Path::new("")))?;
            let below = if cfg!(windows) { below.replace('\\', "/") } else { below };
            let path =
                |name: &str| if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
            if folder != root && self.is_model_folder(&folder) {
                self.add_folder(&folder, &below)?;
                continue;
            }
            let mut names = Vec::new();
            let list = |error| Failure::io("list the folder", &folder, &error);
            for entry in fs::read_dir(&folder).map_err(list)? {
                let entry = entry.map_err(list)?;
                let name = entry.file_name();
                if is_hidden(&name.to_string_lossy()) {
                    continue;
                }
                if entry.file_type().map_err(list)?.is_dir() {
                    folders.push(entry.path());
                // A link to a folder is not followed.
                } else if !entry.path().is_dir() && !self.is_own(&entry.path()) {
                    match name.to_str() {
                        Some(name) => names.push(name.to_owned()),
                        None if self.includes(&path(&name.to_string_lossy())) => {
                            text(&entry.path()).map_err(|failure| failure.help(LEAVE_OUT))?;
                        }
                        None => {}
                    }
                }
            }
            names.sort_unstable();
            let read =
                |index: &str| Ok(durable_file::read(&folder.join(index), MAX_TEXT).unwrap_or_default());
            for (name, shards) in self.units(&names, path, read)? {
                self.add_file(&folder.join(&name), &path(&name), &shards)?;
            }
        }
        self.inputs.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(())
    }

    /// The files of a folder that are inputs, an index with the names of its shards.
    fn units(
        &mut self,
        names: &[String],
        path: impl Fn(&str) -> String,
        read: impl Fn(&str) -> Result<Vec<u8>, Failure>,
    ) -> Result<Vec<(String, Vec<String>)>, Failure> {
        let mut left_out = BTreeSet::new();
        let mut units = Vec::new();
        let takes_sets = self.template.takes_sets();
        for index in names.iter().filter(|name| takes_sets && name.ends_with(INDEX)) {
            let shards = shards(&read(index)?);
            let is_selected = shards.iter().chain([index]).any(|name| self.includes(&path(name)));
            if shards.is_empty() || !is_selected {
                continue;
            }
            if self.sources.by_shard {
                let is_missing = |shard: &&String| {
                    !shard.contains('/') && !names.contains(shard) && self.includes(&path(shard))
                };
                if let Some(missing) = shards.iter().find(is_missing) {
                    return Err(Failure::new(CODE_USAGE, "a shard of the set is missing")
                        .in_file(Path::new(&path(index)))
                        .because(escape::cut(missing, 100).to_string())
                        .help("fetch it, or leave the set out with --exclude"));
                }
                let shards = shards.iter().map(|name| path(name)).collect();
                self.sets.push(Set { path: path(index), shards });
            } else {
                left_out.extend(shards.iter().cloned());
                units.push((index.clone(), shards));
            }
            left_out.insert(index.clone());
        }
        let alone = names.iter().filter(|name| !left_out.contains(*name) && self.includes(&path(name)));
        units.extend(alone.map(|name| (name.clone(), Vec::new())));
        Ok(units)
    }

    /// A file, and of an index its shards.
    fn add_file(&mut self, file: &Path, path: &str, shards: &[String]) -> Result<(), Failure> {
        let mut files = vec![self.pin(file)?];
        // A missing one is told by the command.
        for shard in shards.iter().map(|shard| file.with_file_name(shard)).filter(|shard| shard.is_file()) {
            files.push(self.pin(&shard)?);
        }
        if self.template.reads_signatures() && !is_url(file) {
            for signature in signature_places(file).filter(|signature| signature.is_file()) {
                files.push(Pinned::option(&text(&signature)?)?);
            }
        }
        self.push(Input { input: text(file)?, path: path.to_owned(), files })
    }

    /// A model folder, which is an input itself.
    fn add_folder(&mut self, folder: &Path, path: &str) -> Result<(), Failure> {
        let mut files = Vec::new();
        let mut folders = vec![folder.to_owned()];
        let mut is_selected = self.includes(path);
        while let Some(inner) = folders.pop() {
            let list = |error| Failure::io("list the folder", &inner, &error);
            for entry in fs::read_dir(&inner).map_err(list)? {
                let file = entry.map_err(list)?.path();
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                if is_hidden(&name) || self.is_own(&file) {
                    continue;
                }
                if file.is_dir() {
                    if !file.is_symlink() {
                        folders.push(file);
                    }
                } else {
                    is_selected |= self.includes(&format!("{path}/{name}"));
                    files.push(file);
                }
            }
        }
        if !is_selected {
            return Ok(());
        }
        files.sort_unstable();
        let files = files.iter().map(|file| self.pin(file)).collect::<Result<_, _>>()?;
        self.push(Input { input: text(folder)?, path: path.to_owned(), files })
    }

    fn add_repository(&mut self, repository: &Repository) -> Result<(), Failure> {
        let names = repository.names().filter(|name| !name.split('/').any(is_hidden));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort_unstable();
        let pinned = |name: &str| {
            let (bytes, _) = repository.declared(name);
            let url = repository.url(name).to_string_lossy().into_owned();
            Pinned::at_commit(url, bytes.unwrap_or(0), repository.commit().to_owned())
        };
        if self.template.takes_model_folders() && names.iter().any(|name| CONFIGS.contains(&name.as_str())) {
            let files = names.iter().map(|name| pinned(name)).collect();
            let path = repository.name().to_owned();
            return self.push(Input { input: repository.shown(), path, files });
        }
        self.add_names(&names, |name| Ok(Some(pinned(name))), |name| repository.read(name, MAX_TEXT))
    }

    /// The objects below a prefix.
    #[cfg(feature = "remote")]
    fn add_objects(&mut self, objects: &BTreeMap<String, ListedObject>) -> Result<(), Failure> {
        let names = objects.keys().filter(|name| !name.split('/').any(is_hidden));
        let names: Vec<String> = names.cloned().collect();
        let digests = self.sources.digests;
        let pinned = |name: &str| {
            // A missing shard is told by the command.
            let Some(object) = objects.get(name) else { return Ok(None) };
            let url = object.path.to_string();
            match digests {
                Digests::Compute => Pinned::now(&url, digests).map(Some),
                Digests::Leave => Ok(Some(Pinned::listed(url, object.len, object.etag.clone()))),
            }
        };
        let read = |name: &str| objects.get(name).map(|object| remote::read_object(&object.path));
        self.add_names(&names, pinned, |name| read(name).unwrap_or_else(|| Ok(Vec::new())))
    }

    /// Files by their paths below a place, in order.
    fn add_names(
        &mut self,
        names: &[String],
        pinned: impl Fn(&str) -> Result<Option<Pinned>, Failure>,
        read: impl Fn(&str) -> Result<Vec<u8>, Failure>,
    ) -> Result<(), Failure> {
        durable_file::check_listed(names.iter().map(String::as_str).filter(|name| self.includes(name)))?;
        let folder = |name: &str| name.rfind('/').map_or(0, |at| at + 1);
        let folders: BTreeSet<&str> = names.iter().map(|name| &name[..folder(name)]).collect();
        for below in folders {
            let inner: Vec<String> = names
                .iter()
                .filter(|name| &name[..folder(name)] == below)
                .map(|name| name[below.len()..].to_owned())
                .collect();
            let path = |name: &str| format!("{below}{name}");
            for (name, shards) in self.units(&inner, path, |index| read(&path(index)))? {
                let files =
                    [&name].into_iter().chain(&shards).filter_map(|name| pinned(&path(name)).transpose());
                let files = files.collect::<Result<Vec<_>, _>>()?;
                let Some(input) = files.first().map(|file| file.path.clone()) else { continue };
                self.push(Input { input, path: path(&name), files })?;
            }
        }
        Ok(())
    }

    fn includes(&self, path: &str) -> bool {
        self.sources.selection.includes(path)
    }

    fn is_own(&self, place: &Path) -> bool {
        // Few have one of these names; `.` has none.
        let name = place.file_name();
        (name.is_none() || self.own.iter().any(|own| own.file_name() == name))
            && place.canonicalize().is_ok_and(|place| self.own.contains(&place))
    }

    fn pin(&self, file: &Path) -> Result<Pinned, Failure> {
        Pinned::now(&text(file)?, self.sources.digests)
            .map_err(|failure| not_pinned(failure.in_file(file), file))
    }

    fn push(&mut self, input: Input) -> Result<(), Failure> {
        let place = Path::new(&input.input);
        if !self.known.insert(place.canonicalize().unwrap_or_else(|_| place.to_owned())) {
            return Ok(());
        }
        if !is_below(&input.path) {
            return Err(
                Failure::new(CODE_USAGE, "the input has no name that an output could have").in_file(place)
            );
        }
        if self.inputs.len() == MAX_INPUTS {
            let what = format!("there are more than {MAX_INPUTS} inputs");
            return Err(Failure::new(CODE_USAGE, what).help("divide them into several jobs"));
        }
        self.inputs.push(input);
        Ok(())
    }

    fn is_model_folder(&self, place: &Path) -> bool {
        self.template.takes_model_folders() && CONFIGS.iter().any(|name| place.join(name).is_file())
    }
}

/// The failure of a file that cannot be looked at, with advice. What was named and is not there has that of its name.
fn not_pinned(failure: Failure, file: &Path) -> Failure {
    match fs::read_link(file) {
        Ok(target) if !file.exists() => {
            let failure = Failure::new(CODE_IO, "the target of the link does not exist").in_file(file);
            failure.because(format!("it links to {}", escape::path(&target))).help(LEAVE_OUT)
        }
        _ if file.exists() => failure.help(LEAVE_OUT),
        _ => failure,
    }
}

fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

/// Names of the shards of an index; none if it is not valid, which the command tells.
fn shards(index: &[u8]) -> Vec<String> {
    let index = ShardIndex::from_json(index).ok();
    index.iter().flat_map(ShardIndex::shard_names).map(str::to_owned).collect()
}

/// The last name of a path.
fn name(place: &Path) -> Result<String, Failure> {
    let resolved = place.canonicalize().ok();
    let name = place.file_name().or_else(|| resolved.as_deref().and_then(Path::file_name));
    text(Path::new(name.unwrap_or_default()))
}

fn refuse_query(place: &Path) -> Result<(), Failure> {
    if !remote::has_query(place) {
        return Ok(());
    }
    Err(Failure::new(CODE_USAGE, "the query of a URL is a secret, and a plan is a text that others read")
        .in_file(place)
        .help("copy the file with `apr get`, and name the copy"))
}
