//! Tensors of a new file: one copy of those that have several names.

use alloc::collections::BTreeMap;

use model_file::entries::Entries;

use super::Tensor;

/// The chosen tensors of a model, each once.
pub(crate) struct Copies<'m> {
    /// Under the first of their names that was chosen.
    pub(crate) tensors: Vec<Tensor<'m>>,
    /// Their other chosen names, with the one above.
    pub(crate) aliases: Vec<(&'m str, &'m str)>,
    /// Names for which the model's own metadata have the name that it keeps.
    recorded: Vec<&'m str>,
}

impl<'m> Copies<'m> {
    pub(crate) fn of(all: &[Tensor<'m>], is_chosen: impl Fn(&str) -> bool) -> Self {
        let recorded =
            all.iter().filter(|tensor| tensor.alias_of().is_some()).map(|tensor| tensor.name()).collect();
        let (mut tensors, mut aliases, mut first) = (Vec::new(), Vec::new(), BTreeMap::new());
        for tensor in all.iter().filter(|tensor| is_chosen(tensor.name())) {
            let kept = *first.entry(tensor.alias_of().unwrap_or(tensor.name())).or_insert(tensor.name());
            if kept == tensor.name() {
                tensors.push(*tensor);
            } else {
                aliases.push((tensor.name(), kept));
            }
        }
        Self { tensors, aliases, recorded }
    }

    /// Puts the other names into the metadata that the model has, as they are called in the new file.
    pub(crate) fn record(&self, entries: &mut Entries, renamed: impl Fn(&str) -> String) {
        for name in &self.recorded {
            entries.remove(*name);
        }
        entries.extend(self.aliases.iter().map(|&(alias, kept)| (renamed(alias), renamed(kept))));
    }
}
