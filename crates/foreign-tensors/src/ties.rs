//! Tensors that share their elements.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Error;
use crate::model::Model;
use crate::names::matches;
use crate::options::Options;
use crate::tensor::{ElementType, Tensor};
use crate::view::View;

/// Collects tensors. Those that are the same view of the same storage become one tensor with several names.
#[derive(Default)]
pub(crate) struct Ties {
    tensors: Vec<(Tensor, Option<Identity>)>,
}

/// Storage, view, shape and type.
type Identity = (u64, View, Vec<u64>, ElementType);

impl Ties {
    /// Adds a tensor, of a storage that others may have, too.
    pub(crate) fn add(
        &mut self,
        tensor: Tensor,
        storage: Option<u64>,
        options: &Options,
    ) -> Result<(), Error> {
        if self.tensors.len() >= options.limits.tensors {
            let allowed = options.limits.tensors as u64;
            return Err(crate::ErrorKind::Limit { limit: "tensors", allowed }.into());
        }
        let is_shown = tensor.problem().is_none() && tensor.element_count() > 0;
        let identity = storage
            .filter(|_| is_shown)
            .map(|storage| (storage, tensor.view().clone(), tensor.shape().to_vec(), tensor.dtype()));
        self.tensors.push((tensor, identity));
        Ok(())
    }

    /// Moves them to the model, each once. The name that comes first in the alphabet is kept.
    ///
    /// # Errors
    ///
    /// As [`Model::add`].
    pub(crate) fn finish(self, model: &mut Model, options: &Options) -> Result<(), Error> {
        let is_excluded = |name: &str| options.exclude.iter().any(|pattern| matches(pattern, name));
        let mut kept: BTreeMap<&Identity, &str> = BTreeMap::new();
        for (tensor, identity) in &self.tensors {
            if let Some(identity) = identity.as_ref().filter(|_| !is_excluded(tensor.name())) {
                let name = kept.entry(identity).or_insert(tensor.name());
                *name = (*name).min(tensor.name());
            }
        }
        let of: Vec<Option<String>> = self
            .tensors
            .iter()
            .map(|(tensor, identity)| {
                let name = identity.as_ref().and_then(|identity| kept.get(identity))?;
                (*name != tensor.name() && !is_excluded(tensor.name())).then(|| String::from(*name))
            })
            .collect();
        for ((tensor, _), of) in self.tensors.into_iter().zip(of) {
            match of {
                Some(of) => model.add_alias(tensor.name().into(), of)?,
                None => model.add(tensor, options)?,
            }
        }
        Ok(())
    }
}
