//! The files of a model folder.

use std::fs;
use std::path::{Path, PathBuf};

use hf_gguf::{Parts, Texts};

use crate::error::{CODE_NOT_CARRIED, Failure};
use crate::file_digest::Source;
use crate::input::{Contents, Model, Rules, Tensor};
use crate::remote::{Remote, Repository};

/// Most files and folders that are looked at.
const MAX_NAMES: usize = 100_000;
/// Most bytes of all texts; those of the largest published model have 60 MB.
const MAX_TEXTS: u64 = 512 << 20;

/// The file that makes a folder that of a language model.
pub(super) const CONFIG: &str = "config.json";
/// The file that makes a folder that of an adapter.
pub(super) const ADAPTER: &str = "adapter_config.json";

/// Where a folder with the configuration of a language model, or of an adapter, is.
pub(crate) enum Place {
    Disk(PathBuf),
    Hub(Repository),
}

impl Place {
    /// `None` of what is no such folder.
    ///
    /// # Errors
    ///
    /// If the hub does not say what a repository has.
    pub(super) fn of(path: &Path) -> Result<Option<Self>, Failure> {
        let place = match Repository::at(path)? {
            Some(repository) => Self::Hub(repository),
            None => Self::Disk(path.to_owned()),
        };
        Ok(Some(place).filter(|place| place.has(CONFIG) || place.has(ADAPTER)))
    }

    /// Whether it has a file of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::Disk(path) => path.join(name).is_file(),
            Self::Hub(repository) => repository.names().any(|own| own == name),
        }
    }

    /// Whether it is to be converted as an adapter: it is one, and has no model beside it unless that of the adapter was named.
    ///
    /// # Errors
    ///
    /// If a folder cannot be listed.
    pub(super) fn is_adapter(&self, has_base: bool) -> Result<bool, Failure> {
        if !self.has(ADAPTER) || has_base || !self.has(CONFIG) {
            return Ok(self.has(ADAPTER));
        }
        let names = self.names()?;
        // One that is not whole is a model, too.
        let found = Parts::find(&Texts::new(""), names.iter().map(String::as_str));
        Ok(found.is_err_and(|error| error.code() == "hg-no-tensors"))
    }

    /// Name of the folder, however it was named.
    fn name(&self) -> String {
        match self {
            Self::Disk(path) => {
                let resolved = path.canonicalize();
                let name = path.file_name().or_else(|| resolved.as_deref().ok().and_then(Path::file_name));
                name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
            }
            Self::Hub(repository) => repository.name().to_owned(),
        }
    }

    /// Names of its files, and of those of its folders that may be read, with `/`, sorted.
    fn names(&self) -> Result<Vec<String>, Failure> {
        let mut names = match self {
            Self::Disk(path) => listed(path)?,
            Self::Hub(repository) => {
                repository.names().filter(|name| is_listed(name)).map(str::to_owned).collect()
            }
        };
        names.sort_unstable();
        Ok(names)
    }

    /// What a file is called by who opens it.
    fn file(&self, name: &str) -> PathBuf {
        match self {
            Self::Disk(path) => path.join(name),
            Self::Hub(repository) => repository.url(name),
        }
    }

    pub(super) fn read(&self, name: &str, max_len: u64) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Disk(path) => Ok(durable_file::read(&path.join(name), max_len)?),
            Self::Hub(repository) => repository.read(name, max_len),
        }
    }

    fn len(&self, name: &str) -> u64 {
        let len = match self {
            Self::Disk(path) => path.join(name).metadata().ok().map(|entry| entry.len()),
            Self::Hub(repository) => repository.declared(name).0,
        };
        len.unwrap_or(0)
    }

    /// A file to be hashed, unless the hub declares its SHA-256.
    fn source(&self, name: &str) -> Source {
        let declared = match self {
            Self::Disk(_) => None,
            Self::Hub(repository) => repository.declared(name).1,
        };
        declared.map_or_else(|| Source::File(self.file(name)), |digest| Source::Known(digest.to_owned()))
    }
}

/// A folder whose texts were read, and whose files with tensors are open.
pub(super) struct Folder {
    place: Place,
    /// The file that says what the tensors are of.
    config: &'static str,
    pub(super) texts: Texts,
    pub(super) parts: Parts,
    models: Vec<Model>,
}

impl Folder {
    /// Reads the texts, and opens the files with tensors.
    ///
    /// # Errors
    ///
    /// If one cannot be read or is too large, or the folder has none with tensors.
    pub(super) fn open(place: Place, config: &'static str, rules: &Rules) -> Result<Self, Failure> {
        let mut texts = Texts::new(place.name());
        let names = place.names()?;
        let lens = names.iter().filter(|name| Texts::max_len(name).is_some()).map(|name| place.len(name));
        if lens.fold(0, u64::saturating_add) > MAX_TEXTS {
            let what = "configuration, tokenizer and index of the folder have more than 512 MiB, the most that are read";
            return Err(Failure::new(CODE_NOT_CARRIED, what));
        }
        // Not every hub says how long files are.
        let mut left = MAX_TEXTS;
        for name in &names {
            if let Some(max_len) = Texts::max_len(name) {
                let bytes = place.read(name, max_len.min(left))?;
                left -= bytes.len() as u64;
                texts.insert(name, bytes);
            }
        }
        let files = names.iter().map(String::as_str);
        let parts = match config {
            ADAPTER => Parts::find_adapter(&texts, files),
            _ => Parts::find(&texts, files),
        }?;
        let files: Vec<PathBuf> = parts.files.iter().map(|name| place.file(name)).collect();
        Remote::open_all(&files);
        let models = files.iter().map(|file| Model::open(file, rules));
        let models = models.collect::<Result<Vec<_>, Failure>>()?;
        Ok(Self { place, config, texts, parts, models })
    }

    /// The tensors of each file.
    ///
    /// # Errors
    ///
    /// If one cannot be listed.
    pub(super) fn tensors(&self) -> Result<Vec<Vec<Tensor<'_>>>, Failure> {
        self.models.iter().map(in_order).collect()
    }

    /// The files whose digests [`provenance`](Self::provenance) takes.
    pub(super) fn sources(&self) -> Vec<Source> {
        self.recorded().map(|name| self.place.source(name)).collect()
    }

    fn recorded(&self) -> impl Iterator<Item = &str> {
        [self.config].into_iter().chain(self.parts.files.iter().map(String::as_str))
    }

    /// Keys that record where the new file comes from, with the digests of the sources.
    pub(super) fn provenance(&self, options: String, digests: &[String]) -> Vec<(&'static str, String)> {
        let lines = self.recorded().zip(digests).map(|(name, digest)| format!("{digest}  {name}"));
        let mut keys = vec![
            ("apr.convert.tool", concat!("apr ", env!("CARGO_PKG_VERSION")).to_owned()),
            ("apr.convert.options", options),
        ];
        if let Place::Hub(repository) = &self.place {
            keys.push(("apr.convert.source", repository.shown()));
        }
        keys.push(("apr.convert.source.sha256", lines.collect::<Vec<_>>().join("\n")));
        keys
    }
}

/// The tensors of a file in its order.
fn in_order(model: &Model) -> Result<Vec<Tensor<'_>>, Failure> {
    let mut tensors = model.tensors()?;
    if let Contents::Foreign(file) = model.contents() {
        // Second names of tensors follow the first ones, wherever the file has them.
        tensors.sort_by_key(|tensor| file.model().position(tensor.name()));
    }
    Ok(tensors)
}

/// Whether a file of a folder, or of a folder in it, can be one of a model.
fn is_listed(name: &str) -> bool {
    !name.contains('/') || Texts::max_len(name).is_some()
}

/// Names of the files of a folder, and of those of its folders that may be read.
fn listed(path: &Path) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(below) = folders.pop() {
        let folder = path.join(&below);
        let failed = |error| Failure::io("list the folder", &folder, &error);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let Ok(file_name) = entry.map_err(failed)?.file_name().into_string() else { continue };
            let name = format!("{below}{file_name}");
            let is_dir = path.join(&name).is_dir();
            if is_dir && below.is_empty() {
                folders.push(format!("{name}/"));
            } else if !is_dir && is_listed(&name) {
                names.push(name);
            }
            if names.len() + folders.len() > MAX_NAMES {
                let what = "the folder has too many files to be that of a model";
                return Err(Failure::new(CODE_NOT_CARRIED, what).in_file(path));
            }
        }
    }
    Ok(names)
}
