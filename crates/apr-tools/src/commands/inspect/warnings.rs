//! Warnings about valid files.

use std::path::Path;

use model_file::Warning;

use super::{FileSummary, is_aligned};
use crate::checkpoints::About;
use crate::input::{Format, Model, Rules, Tensor};
use crate::output::ending::Ending;
use crate::terminal::escape::{cut, is_hazard};
use crate::terminal::human;

/// Spare header bytes that are worth a word: more than any padding to a page.
const MUCH_SPARE: u64 = 64 << 10;

/// Names longer than this are not meant for people.
const LONG_NAME: usize = 256;

/// That name and content of a file disagree.
pub(super) fn misnamed(format: Format, path: &Path) -> Option<Warning> {
    let message = Ending::disagreement(format, path)?;
    Some(Warning { kind: "misnamed", message })
}

/// In compat mode, what strict reading would have refused.
pub(super) fn quirk(model: &Model, rules: &Rules) -> Option<Warning> {
    let refusal = if rules.is_strict() { None } else { model.strict_refusal() };
    let message = format!("strict reading refuses this file: {}", refusal?);
    Some(Warning { kind: "quirk", message })
}

/// A warning, if there is something to say.
pub(super) fn warning((kind, message): (&'static str, Option<String>)) -> Option<Warning> {
    Some(Warning { kind, message: message? })
}

/// All warnings about a model, in a fixed order of kinds.
pub(super) fn all(
    model: &Model,
    tensors: &[Tensor<'_>],
    files: &[FileSummary<'_>],
    rules: &Rules,
    checkpoint: Option<&About>,
) -> Vec<Warning> {
    let mut warnings = Vec::from_iter(quirk(model, rules));
    let found = [
        ("unaligned", unaligned(tensors)),
        ("order", order(files)),
        // A checkpoint is described by its own files.
        ("no-metadata", if checkpoint.is_none() { no_metadata(files) } else { None }),
        ("header-padding", padding(files)),
        ("zero-size", zero_size(tensors)),
        ("name", names(tensors)),
        ("metadata-text", metadata_text(files)),
    ];
    warnings.extend(found.into_iter().filter_map(warning));
    warnings.extend(model.notes().map(|message| Warning { kind: "index", message }));
    let of_checkpoint = checkpoint.into_iter().flat_map(About::warnings);
    warnings.extend(of_checkpoint.map(|(kind, message)| Warning { kind, message }));
    warnings
}

fn unaligned(tensors: &[Tensor<'_>]) -> Option<String> {
    let listed = listed(tensors, |tensor| !is_aligned(tensor))?;
    Some(format!("not aligned to their elements, so readers have to copy: {listed}"))
}

fn order(files: &[FileSummary<'_>]) -> Option<String> {
    let other = files.iter().filter(|file| !file.is_official_order).count();
    (other > 0).then(|| {
        "tensors are not in the order of the official writer (widest type first, then by name)".to_owned()
    })
}

fn no_metadata(files: &[FileSummary<'_>]) -> Option<String> {
    let without = files.iter().filter(|file| file.part.file.header().metadata().is_none()).count();
    match (without, files.len()) {
        (0, _) => None,
        (_, 1) => Some("no metadata: nothing says where the model comes from or what wrote it".to_owned()),
        (without, all) => Some(format!("{without} of {all} shards have no metadata")),
    }
}

fn padding(files: &[FileSummary<'_>]) -> Option<String> {
    let most = files.iter().map(|file| file.spare).max()?;
    (most >= MUCH_SPARE).then(|| format!("{} of the header are padding", human::bytes(most)))
}

pub(super) fn zero_size(tensors: &[Tensor<'_>]) -> Option<String> {
    let listed = listed(tensors, |tensor| tensor.byte_len() == 0)?;
    Some(format!("without elements: {listed}"))
}

pub(super) fn names(tensors: &[Tensor<'_>]) -> Option<String> {
    let odd = |name: &str| {
        name.is_empty()
            || name.len() > LONG_NAME
            || name.contains(is_hazard)
            || name.starts_with(['/', '\\'])
            || name.split(['/', '\\']).any(|part| part == "..")
    };
    let listed = listed(tensors, |tensor| odd(tensor.name()))?;
    Some(format!("names that are empty, very long, like paths, or with invisible characters: {listed}"))
}

fn metadata_text(files: &[FileSummary<'_>]) -> Option<String> {
    // Line ends and tabs are common in licences and embedded JSON.
    let odd = |text: &str| text.contains(|c| is_hazard(c) && !matches!(c, '\n' | '\r' | '\t'));
    let entries =
        files.iter().filter_map(|file| file.part.file.header().metadata()).flat_map(|data| data.iter());
    let found = entries.filter(|(key, value)| odd(key) || odd(value)).count() as u64;
    (found > 0).then(|| {
        format!(
            "{} with control or invisible characters",
            if found == 1 { "1 metadata entry".to_owned() } else { format!("{found} metadata entries") }
        )
    })
}

/// The first few tensors of a kind by name, with how many there are.
fn listed(tensors: &[Tensor<'_>], is_meant: impl Fn(&Tensor<'_>) -> bool) -> Option<String> {
    const SHOWN: usize = 3;
    let mut count = 0;
    let mut names = Vec::new();
    for tensor in tensors.iter().filter(|tensor| is_meant(tensor)) {
        count += 1;
        if names.len() < SHOWN {
            names.push(format!("`{}`", cut(tensor.name(), 60)));
        }
    }
    let more = if count > names.len() as u64 { ", ..." } else { "" };
    (count > 0).then(|| format!("{} ({}{more})", human::plural(count, "tensor"), names.join(", ")))
}
