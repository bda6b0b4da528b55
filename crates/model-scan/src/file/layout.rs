//! The kind of an archive and of its members, by the names of all members.

use alloc::string::String;
use alloc::vec::Vec;

use zip_core::Entry;

use super::Format;
use crate::report::Origin;

/// Checkpoints in one archive whose members are distinguished. PyTorch writes one; of others, every member is read like a file.
const MAX_ROOTS: usize = 16;

/// The layout of a ZIP archive.
pub(super) struct Layout {
    pub(super) format: Format,
    pub(super) origin: Origin,
    /// Folders with a `data.pkl`.
    roots: Vec<String>,
    is_script: bool,
}

/// Kind of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// `data.pkl` of a checkpoint.
    Checkpoint,
    /// Elements of a tensor.
    Storage,
    /// The configuration of Keras.
    Keras,
    /// A module of a program of TorchScript.
    Script,
    /// An exported graph of PyTorch.
    Graph,
    Other,
}

impl Layout {
    pub(super) fn of(entries: &[Entry]) -> Self {
        let root = |entry: &Entry| {
            let root = entry.name().strip_suffix("data.pkl")?;
            root.ends_with('/').then(|| root.into())
        };
        let roots: Vec<String> = entries.iter().filter_map(root).take(MAX_ROOTS).collect();
        let has = |name: &str| entries.iter().any(|entry| entry.name() == name);
        let mut layout = Self { format: Format::Zip, origin: Origin::File, roots, is_script: false };
        layout.is_script = entries.iter().any(|entry| {
            let inside = layout.inside(entry.name());
            inside.is_some_and(|name| name == "constants.pkl" || name.starts_with("code/"))
        });
        (layout.format, layout.origin) = match (layout.roots.is_empty(), layout.is_script) {
            (true, _) if has("config.json") && (has("metadata.json") || has("model.weights.h5")) => {
                (Format::Keras, Origin::File)
            }
            (true, _) => (Format::Zip, Origin::File),
            (_, false) => (Format::Torch, Origin::Torch),
            (_, true) => (Format::TorchScript, Origin::TorchScript),
        };
        layout
    }

    /// The name of a member in the folder of a checkpoint.
    fn inside<'n>(&self, name: &'n str) -> Option<&'n str> {
        self.roots.iter().find_map(|root| name.strip_prefix(root.as_str()))
    }

    pub(super) fn role(&self, name: &str) -> Role {
        let Some(inside) = self.inside(name) else {
            return match name {
                // Keras looks at it before it needs the other members.
                "config.json" => Role::Keras,
                _ if is_graph(name) => Role::Graph,
                _ => Role::Other,
            };
        };
        let is_numbered = |folder: &str| {
            let number = inside.strip_prefix(folder);
            number.is_some_and(|key| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit()))
        };
        match inside {
            "data.pkl" => Role::Checkpoint,
            _ if is_numbered("data/") || (self.is_script && is_numbered("constants/")) => Role::Storage,
            _ if self.is_script && inside.starts_with("code/") && inside.ends_with(".py") => Role::Script,
            _ if is_graph(name) => Role::Graph,
            _ => Role::Other,
        }
    }

    /// The first Python file of a package of PyTorch: its importer runs such files if a pickle of the package names them. Programs of TorchScript are not
    /// Python, unless the importer takes the archive for one of its own.
    pub(super) fn package_code<'e>(&self, entries: &'e [Entry]) -> Option<&'e str> {
        let has = |wanted: &str| {
            let in_folder = |name: &str| {
                name.strip_suffix(wanted).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
            };
            entries.iter().any(|entry| in_folder(entry.name()))
        };
        let (is_imported, is_package) = (has(".data/extern_modules"), has(".data/version"));
        let is_code = |name: &str| {
            let is_script = self.role(name) == Role::Script;
            name.ends_with(".py") && (is_imported || (is_package && !is_script))
        };
        entries.iter().map(Entry::name).find(|name| is_code(name))
    }
}

/// The graph of `torch.export`, by its name since PyTorch 2.7 and before.
fn is_graph(name: &str) -> bool {
    name.ends_with(".json") && name.contains("models/") || name.ends_with("serialized_exported_program.json")
}
