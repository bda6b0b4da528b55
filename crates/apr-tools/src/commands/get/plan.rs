//! Which files are copied.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use std::path::Path;

use apr_remote::{Client, Error, ErrorKind, ListedObject, Place, RemoteFile};
use read_at::ReadAt as _;
use st_core::ShardIndex;

use super::signed::Signer;
use crate::args::glob::PathSelection;
use crate::error::{CODE_USAGE, Failure};
use crate::input;
use crate::remote::{self, Listed, Repository};

/// Files of one version of one place.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) client: Arc<Client>,
    /// The URL without its query.
    pub(super) shown: String,
    pub(super) commit: Option<String>,
    /// Those without a declared digest come first: they are small, and it is known last whether they differ from a file that is there.
    pub(super) files: Vec<Wanted>,
}

#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) place: Place,
    /// Components with `/` between them, none of which leads out of a folder.
    pub(super) path: String,
    pub(super) len: Option<u64>,
    /// In lower-case hexadecimal digits.
    pub(super) sha256: Option<String>,
}

impl Plan {
    /// With a signer, signatures are copied too.
    ///
    /// # Errors
    ///
    /// If the URL cannot be read, names no file, or lists one that leads out of a folder.
    pub(super) fn of(url: &Path, paths: &PathSelection, signer: Option<&Signer>) -> Result<Self, Failure> {
        let shown = url.to_string_lossy().into_owned();
        let (client, place) = remote::place(url)?;
        // A server that lists its files lists their signatures.
        let mut is_list = true;
        let (commit, mut files): (_, Vec<Wanted>) = match &place {
            Place::Hub(hub) => {
                is_list = hub.path().is_empty();
                let Repository { at, files, .. } = Repository::list(&client, hub)?;
                let files = files.into_iter().map(|Listed { path, len, sha256 }| Wanted {
                    place: Place::Hub(at.with_path(&path)),
                    path,
                    len,
                    sha256,
                });
                (Some(at.revision().to_owned()), files.collect())
            }
            Place::Url(_) | Place::Object(_) => match remote::objects_below(url)? {
                Some(objects) => (None, objects.into_iter().map(of_object).collect()),
                None => {
                    is_list = false;
                    (None, of_url(&client, &place).map_err(|failure| failure.in_file(url))?)
                }
            },
        };
        let is_signature = |path: &str| {
            signer.is_some_and(|signer| signer.is_signature(path, |signed| paths.includes(signed)))
        };
        files.retain(|file| paths.includes(&file.path) || is_signature(&file.path));
        if let Some(signer) = signer.filter(|_| !is_list) {
            signer.find(&client, &mut files)?;
        }
        if files.is_empty() {
            let failure =
                Failure::new(CODE_USAGE, "there is no such file, or --include and --exclude leave none");
            return Err(failure.in_file(Path::new(&shown)));
        }
        let mut known = BTreeSet::new();
        for file in &files {
            let kind = match is_local(&file.path) {
                false => ErrorKind::Outside,
                true if known.insert(file.path.as_str()) => continue,
                true => ErrorKind::Listing { problem: format!("`{}` occurs twice", file.path) },
            };
            let failure = Failure::from(Error::from(kind)).in_file(Path::new(&file.path));
            return Err(failure.help("if you trust the rest, leave this one out with --exclude"));
        }
        durable_file::check_listed(known)?;
        files.sort_by_key(|file| file.sha256.is_some());
        Ok(Self { client, shown, commit, files })
    }

    /// The files that other programs read or run when they come across them, with these programs.
    pub(super) fn tools(&self) -> Vec<String> {
        let files = self.files.iter().filter_map(|file| {
            let tool = durable_file::tool_of_listed(&file.path)?;
            Some(format!("{} ({tool})", file.path))
        });
        files.collect()
    }

    /// Bytes of all files, as far as they are known.
    pub(super) fn len(&self) -> u64 {
        self.files.iter().filter_map(|file| file.len).fold(0, u64::saturating_add)
    }
}

/// Whether a path stays in the folder that it is appended to, on every system.
fn is_local(path: &str) -> bool {
    let is_plain = |part: &str| {
        !matches!(part, "" | "." | ".." | super::parts::PARTS)
            && !part.contains(|c: char| c.is_control() || matches!(c, '\\' | ':'))
    };
    path.split('/').all(is_plain)
}

/// A file, and of an index its shards.
fn of_url(client: &Arc<Client>, place: &Place) -> Result<Vec<Wanted>, Failure> {
    let file = client.open(place)?;
    let name = match place {
        Place::Object(object) => object.key().rsplit('/').next().unwrap_or_default().to_owned(),
        _ => file.url().file_name().to_owned(),
    };
    if name.is_empty() {
        return Err(Failure::new(CODE_USAGE, "the URL names no file"));
    }
    let mut files = vec![Wanted::of_file(&file, place.clone(), name.clone())];
    if input::names_shard_index(Path::new(&name)) {
        let index = ShardIndex::from_json(&remote::whole(&file)?)?;
        let names: BTreeSet<&str> = index.weight_map().map(|(_, shard)| shard).collect();
        for name in names {
            let place = place.beside(name)?;
            let opened = client.open(&place).map_err(Failure::from);
            let shard = opened.map_err(|failure| failure.in_file(Path::new(&place.to_string())))?;
            files.push(Wanted::of_file(&shard, place, name.to_owned()));
        }
    }
    Ok(files)
}

fn of_object((path, object): (String, ListedObject)) -> Wanted {
    Wanted { place: Place::Object(object.path), path, len: Some(object.len), sha256: None }
}

impl Wanted {
    /// A file that is open.
    pub(super) fn of_file(file: &RemoteFile, place: Place, path: String) -> Self {
        Self { place, path, len: Some(file.total_len()), sha256: file.sha256_declared().map(str::to_owned) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_folder() {
        for (path, expected) in [
            ("model.safetensors", true),
            ("sub/model.gguf", true),
            (".gitattributes", true),
            ("", false),
            ("/etc/passwd", false),
            ("../x", false),
            ("a/../../x", false),
            ("a//b", false),
            ("a\\..\\b", false),
            ("c:x", false),
            ("a\nb", false),
            (".apr-get/x", false),
        ] {
            assert_eq!(is_local(path), expected, "{path:?}");
        }
    }
}
