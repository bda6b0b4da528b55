//! The inputs of a job.

use alloc::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use st_core::ShardIndex;

use super::files::{Digests, Pinned, text};
use super::template::Template;
use crate::args::glob::PathSelection;
use crate::error::{CODE_USAGE, Failure};
use crate::remote::{Repository, is_url};
use crate::scanning;

/// Most inputs of a job.
const MAX_INPUTS: usize = 1_000_000;
/// Longest index of shards, and longest list of inputs.
const MAX_TEXT: u64 = 256 << 20;
const INDEX: &str = ".index.json";
/// Files that make a folder that of a language model, or of an adapter.
const CONFIGS: [&str; 2] = ["config.json", "adapter_config.json"];

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
}

impl Sources<'_> {
    /// Finds the inputs, by path, and the sets of which they are shards.
    ///
    /// # Errors
    ///
    /// If a place cannot be listed, a path is not Unicode, or there are none.
    pub(super) fn find(&self, template: &Template) -> Result<(Vec<Input>, Vec<Set>), Failure> {
        let mut found = Found { sources: self, template, inputs: Vec::new(), sets: Vec::new() };
        for place in self.places {
            found.add(place)?;
        }
        if let Some(list) = self.list {
            let text = match list.as_os_str() == "-" {
                true => std::io::read_to_string(std::io::stdin())
                    .map_err(|error| Failure::io("read", list, &error))?,
                false => String::from_utf8(durable_file::read(list, MAX_TEXT)?)
                    .map_err(|_| Failure::new(CODE_USAGE, "the list is not UTF-8").in_file(list))?,
            };
            for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
                found.add_listed(Path::new(line))?;
            }
        }
        let Found { inputs, sets, .. } = found;
        if inputs.is_empty() {
            let failure = Failure::new(CODE_USAGE, "there are no inputs");
            return Err(failure.help("--from names files or folders; --include and --exclude may leave none"));
        }
        Ok((inputs, sets))
    }
}

struct Found<'s> {
    sources: &'s Sources<'s>,
    template: &'s Template,
    inputs: Vec<Input>,
    sets: Vec<Set>,
}

impl Found<'_> {
    fn add(&mut self, place: &Path) -> Result<(), Failure> {
        if let Some(repository) = Repository::at(place)? {
            return self.add_repository(&repository);
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
        if self.is_model_folder(place) {
            return self.add_folder(place, &name(place)?);
        }
        if place.is_dir() {
            return Err(Failure::new(CODE_USAGE, "a list of inputs names files, not folders")
                .in_file(place)
                .help("--from takes the files below a folder"));
        }
        let shown = if is_url(place) { without_address(place)? } else { name(place)? };
        self.add_file(place, &shown)
    }

    /// The files below a folder.
    fn walk(&mut self, root: &Path) -> Result<(), Failure> {
        let own = self.sources.to.canonicalize().ok();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            if own.is_some() && folder.canonicalize().ok() == own {
                continue;
            }
            let below = text(folder.strip_prefix(root).unwrap_or(Path::new("")))?.replace('\\', "/");
            let path =
                |name: &str| if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
            if folder != root && self.is_model_folder(&folder) {
                self.add_folder(&folder, &below)?;
                continue;
            }
            let mut names = Vec::new();
            let list = |error| Failure::io("list", &folder, &error);
            for entry in fs::read_dir(&folder).map_err(list)? {
                let entry = entry.map_err(list)?;
                let name = text(Path::new(&entry.file_name()))?;
                if name.starts_with('.') {
                    continue;
                }
                if entry.file_type().map_err(list)?.is_dir() {
                    folders.push(entry.path());
                // A link to a folder is not followed.
                } else if !entry.path().is_dir() {
                    names.push(name);
                }
            }
            names.sort_unstable();
            let mut left_out = BTreeSet::new();
            let takes_sets = self.template.takes_sets();
            for index in names.iter().filter(|name| takes_sets && name.ends_with(INDEX)) {
                let shards = shards(&folder.join(index));
                if self.sources.by_shard {
                    let shards = shards.iter().map(|name| path(name)).collect();
                    self.sets.push(Set { path: path(index), shards });
                    left_out.insert(index.clone());
                } else {
                    left_out.extend(shards);
                }
            }
            for name in names.iter().filter(|name| !left_out.contains(*name)) {
                self.add_file(&folder.join(name), &path(name))?;
            }
        }
        self.inputs.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(())
    }

    fn add_file(&mut self, file: &Path, path: &str) -> Result<(), Failure> {
        if !self.sources.selection.includes(path) {
            return Ok(());
        }
        let mut files = vec![self.pin(file)?];
        if self.template.takes_sets() && path.ends_with(INDEX) && !is_url(file) {
            for shard in shards(file) {
                // A missing one is told by the command.
                let shard = file.with_file_name(shard);
                if shard.is_file() {
                    files.push(self.pin(&shard)?);
                }
            }
        }
        self.push(Input { input: text(file)?, path: path.to_owned(), files })
    }

    /// A model folder, which is an input itself.
    fn add_folder(&mut self, folder: &Path, path: &str) -> Result<(), Failure> {
        if !self.sources.selection.includes(path) {
            return Ok(());
        }
        let below = scanning::below(folder);
        if let Some(failure) = below.unread.into_iter().next() {
            return Err(failure);
        }
        let files = below.files.iter().filter(|file| file.is_file()).map(|file| self.pin(file));
        let files = files.collect::<Result<_, _>>()?;
        self.push(Input { input: text(folder)?, path: path.to_owned(), files })
    }

    fn add_repository(&mut self, repository: &Repository) -> Result<(), Failure> {
        let names: Vec<String> = repository.names().map(str::to_owned).collect();
        let pinned = |name: &str| {
            let (bytes, sha256) = repository.declared(name);
            let url = repository.url(name).to_string_lossy().into_owned();
            Pinned::at_commit(url, bytes.unwrap_or(0), sha256.map(str::to_owned))
        };
        if self.template.takes_model_folders() && names.iter().any(|name| CONFIGS.contains(&name.as_str())) {
            let files = names.iter().map(|name| pinned(name)).collect();
            let path = repository.name().to_owned();
            return self.push(Input { input: repository.shown(), path, files });
        }
        for name in names.iter().filter(|name| self.sources.selection.includes(name)) {
            let file = pinned(name);
            self.push(Input { input: file.path.clone(), path: name.clone(), files: vec![file] })?;
        }
        Ok(())
    }

    fn pin(&self, file: &Path) -> Result<Pinned, Failure> {
        Pinned::now(&text(file)?, self.sources.digests)
    }

    fn push(&mut self, input: Input) -> Result<(), Failure> {
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

/// Names of the shards of an index; none if it is not valid, which the command tells.
fn shards(index: &Path) -> Vec<String> {
    let text = durable_file::read(index, MAX_TEXT).unwrap_or_default();
    let index = ShardIndex::from_json(&text).ok();
    index.iter().flat_map(ShardIndex::shard_names).map(str::to_owned).collect()
}

/// The last name of a path.
fn name(place: &Path) -> Result<String, Failure> {
    let resolved = place.canonicalize().ok();
    let name = place.file_name().or_else(|| resolved.as_deref().and_then(Path::file_name));
    text(Path::new(name.unwrap_or_default()))
}

/// The last name of a URL.
fn without_address(url: &Path) -> Result<String, Failure> {
    let url = text(url)?;
    if url.contains('?') {
        return Err(Failure::new(
            CODE_USAGE,
            "the query of a URL is a secret, and a plan is a text that others read",
        )
        .help("copy the file with `apr get`, and name the copy"));
    }
    Ok(url.rsplit('/').next().unwrap_or_default().to_owned())
}
