//! The tensors of a file, as the reports of all formats show them.

use alloc::collections::BTreeMap;
use std::io;

use model_file::Warning;
use serde::{Serialize, Serializer};
use tensor_dtype::TensorType;

use super::page::Page;
use super::warnings::misnamed;
use crate::error::Failure;
use crate::input::{Model, Tensor, Totals};
use crate::terminal::Console;
use crate::terminal::human::{self, grouped, plural};
use crate::terminal::table::Table;
use crate::terminal::tree::{self, Extent, Item, Node};

/// A model, its tensors, and the warnings about it.
pub(super) struct Content<'m> {
    pub(super) model: &'m Model,
    items: Vec<Item<'m>>,
    dtypes: Vec<(TensorType, Totals)>,
    pub(super) totals: Totals,
    warnings: Vec<Warning>,
}

impl<'m> Content<'m> {
    /// With these warnings and the one that the file has another name than its content.
    pub(super) fn new(model: &'m Model, tensors: &[Tensor<'m>], mut warnings: Vec<Warning>) -> Self {
        warnings.extend(misnamed(model.format(), model.label()));
        let (dtypes, totals) = by_dtype(tensors);
        Self { model, items: tensors.iter().map(item).collect(), dtypes, totals, warnings }
    }

    /// Adds the lines about all tensors together.
    pub(super) fn totals(&self, facts: &mut Table) {
        let mut line = |label: &str, text: String| facts.row([format!("  {label}"), text]);
        let totals = self.totals;
        line("tensors", grouped(totals.tensors));
        line("parameters", with_exact(human::count(totals.elements), totals.elements));
        line("data", human::exact_bytes(totals.bytes));
        for (idx, (dtype, part)) in self.dtypes.iter().enumerate() {
            let label = if idx == 0 { "types" } else { "" };
            let share = human::percent(part.bytes, totals.bytes);
            let (tensors, elements) = (plural(part.tensors, "tensor"), human::count(part.elements));
            let share = format!("{dtype}: {share} of the bytes, {tensors}, {elements} parameters");
            line(label, share);
        }
    }

    /// Prints the report: what the file is, its facts, what `sections` prints, the tree to the extent given, and the warnings.
    ///
    /// # Errors
    ///
    /// If standard output does not take it.
    pub(super) fn print(
        &self,
        (what, bytes): (&str, u64),
        facts: &Table,
        extent: Option<Extent>,
        console: &mut Console,
        sections: impl FnOnce(&mut Page<'_>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        Page::print(self.model.shown(), (what, bytes), facts, console, |page| {
            sections(page)?;
            page.tree(&self.items, self.totals.bytes, extent)?;
            page.warnings(&self.warnings)
        })
    }

    /// The fields about all tensors together.
    pub(super) fn totals_fields(&self) -> TotalsFields {
        TotalsFields {
            tensors: self.totals.tensors,
            parameters: self.totals.elements,
            data_bytes: self.totals.bytes,
            dtypes: self.dtypes.iter().map(DtypeRow::new).collect(),
        }
    }

    /// The field `tree`.
    pub(super) fn tree_fields(&self) -> Tree<'_> {
        Tree(&self.items)
    }

    /// The field `warnings`.
    pub(super) fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

/// The types of tensors with their share, the largest first, and all together.
pub(super) fn by_dtype(tensors: &[Tensor<'_>]) -> (Vec<(TensorType, Totals)>, Totals) {
    let mut dtypes: BTreeMap<TensorType, Totals> = BTreeMap::new();
    for tensor in tensors {
        dtypes.entry(tensor.dtype()).or_default().add(tensor);
    }
    let mut dtypes: Vec<_> = dtypes.into_iter().collect();
    dtypes.sort_by_key(|(_, totals)| core::cmp::Reverse(totals.bytes));
    (dtypes, Tensor::totals(tensors))
}

fn item<'m>(tensor: &Tensor<'m>) -> Item<'m> {
    Item {
        name: tensor.name(),
        dtype: tensor.dtype().name(),
        shape: tensor.shape(),
        elements: tensor.elements(),
        bytes: tensor.byte_len(),
    }
}

/// `22.7 M (22,713,728)`, or just the number where the two would be the same.
fn with_exact(short: String, exact: u64) -> String {
    let exact = grouped(exact);
    if short == exact { short } else { format!("{short} ({exact})") }
}

/// All tensors together.
#[derive(Serialize)]
pub(super) struct TotalsFields {
    tensors: u64,
    parameters: u64,
    data_bytes: u64,
    dtypes: Vec<DtypeRow>,
}

/// Totals of a dtype.
#[derive(Serialize)]
struct DtypeRow {
    dtype: &'static str,
    tensors: u64,
    parameters: u64,
    bytes: u64,
}

impl DtypeRow {
    fn new((dtype, totals): &(TensorType, Totals)) -> Self {
        Self {
            dtype: dtype.name(),
            tensors: totals.tensors,
            parameters: totals.elements,
            bytes: totals.bytes,
        }
    }
}

/// The tree of tensors.
pub(super) struct Tree<'a>(&'a [Item<'a>]);

impl Serialize for Tree<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Nodes(&tree::build(self.0)).serialize(serializer)
    }
}

/// Nodes of the tree, each made when it is written.
struct Nodes<'a>(&'a [Node<'a>]);

impl Serialize for Nodes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(NodeFields::new))
    }
}

#[derive(Serialize)]
struct NodeFields<'a> {
    label: &'a str,
    copies: u64,
    tensors: u64,
    parameters: u64,
    bytes: u64,
    #[serde(flatten)]
    content: NodeContent<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum NodeContent<'a> {
    Tensor { dtype: &'static str, shape: &'a [usize] },
    Group { children: Nodes<'a> },
}

impl<'a> NodeFields<'a> {
    fn new(node: &'a Node<'a>) -> Self {
        Self {
            label: &node.label,
            copies: node.copies,
            tensors: node.tensors,
            parameters: node.elements,
            bytes: node.bytes,
            content: match node.leaf {
                Some((dtype, shape)) => NodeContent::Tensor { dtype, shape },
                None => NodeContent::Group { children: Nodes(&node.children) },
            },
        }
    }
}
