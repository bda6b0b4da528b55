//! Tensors grouped by the parts of their names, equal numbered groups folded into one.

use alloc::borrow::Cow;
use core::cmp::Ordering;

use super::escape::cut;
use super::human;
use super::style::Style;
use super::table::{Align, Dispensable, Table};

/// Parts of a name beyond this many stay together, so that no name makes the tree deep.
const MAX_DEPTH: usize = 16;

/// Cells of the longest bar.
const BAR_CELLS: usize = 12;

/// Longest label shown.
const LABEL_CHARS: usize = 80;

/// What the tree needs of a tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'a> {
    pub(crate) name: &'a str,
    pub(crate) dtype: &'static str,
    pub(crate) shape: &'a [usize],
    pub(crate) elements: u64,
    pub(crate) bytes: u64,
}

/// A tensor, or a group of tensors whose names begin alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node<'a> {
    /// Part of the name, several joined by the separator, or numbers folded to `0..11`.
    pub(crate) label: Cow<'a, str>,
    /// How many groups of this structure were folded into one.
    pub(crate) copies: u64,
    pub(crate) tensors: u64,
    pub(crate) elements: u64,
    pub(crate) bytes: u64,
    /// Type and shape of each of the tensors, if this is not a group.
    pub(crate) leaf: Option<(&'static str, &'a [usize])>,
    pub(crate) children: Vec<Node<'a>>,
    /// The numbers folded into the label, as runs.
    numbers: Vec<(u64, u64)>,
}

/// Tensors that a report can name in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group<'a> {
    /// The name of a tensor, or of the node of the tree they were folded into: `encoder.layer.0..5`.
    pub(crate) label: String,
    /// How many groups of one structure were folded into it.
    pub(crate) copies: u64,
    pub(crate) names: Vec<&'a str>,
}

/// Builds the tree. Names are split at dots, or at slashes if no name has a dot.
pub(crate) fn build<'a>(items: &[Item<'a>]) -> Vec<Node<'a>> {
    let (mut names, separator) = sorted(items);
    level(&mut names, 0, separator)
}

/// The nodes into which something was folded, and the tensors besides, in the order of the tree.
pub(crate) fn groups<'a>(items: &[Item<'a>]) -> Vec<Group<'a>> {
    let (mut sorted, separator) = sorted(items);
    let nodes = level(&mut sorted, 0, separator);
    // Each node represents adjacent names in sorted order.
    let mut names = sorted.iter().map(|(_, item)| item.name);
    let mut groups = Vec::new();
    collect(&nodes, "", separator, &mut names, &mut groups);
    groups
}

fn collect<'a>(
    nodes: &[Node<'a>],
    above: &str,
    separator: char,
    names: &mut impl Iterator<Item = &'a str>,
    groups: &mut Vec<Group<'a>>,
) {
    for mut node in nodes {
        let mut label = format!("{above}{}", node.label);
        let (copies, count) = (node.copies, node.tensors);
        if copies == 1 && node.leaf.is_none() {
            label.push(separator);
            collect(&node.children, &label, separator, names, groups);
            continue;
        }
        while let [only] = node.children.as_slice() {
            label.push(separator);
            label.push_str(&only.label);
            node = only;
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        groups.push(Group { label, copies, names: names.take(count).collect() });
    }
}

/// The tensors in the order of the tree, each with its name.
fn sorted<'a, 'i>(items: &'i [Item<'a>]) -> (Vec<(&'a str, &'i Item<'a>)>, char) {
    let separator = if items.iter().any(|item| item.name.contains('.')) { '.' } else { '/' };
    let mut names: Vec<_> = items.iter().map(|item| (item.name, item)).collect();
    let parts = |name: &'a str| name.splitn(MAX_DEPTH, separator);
    names.sort_by(|(a, _), (b, _)| {
        let order = parts(a).zip(parts(b)).map(|(a, b)| natural(a, b)).find(|order| order.is_ne());
        order.unwrap_or_else(|| parts(a).count().cmp(&parts(b).count()))
    });
    (names, separator)
}

/// The first part of a name below `depth` others, and the rest.
fn first_part(name: &str, depth: usize, separator: char) -> (&str, Option<&str>) {
    match name.split_once(separator).filter(|_| depth + 1 < MAX_DEPTH) {
        Some((part, rest)) => (part, Some(rest)),
        None => (name, None),
    }
}

/// Numbers by value, before words; words by their bytes.
fn natural(a: &str, b: &str) -> Ordering {
    match (number(a), number(b)) {
        (Some(x), Some(y)) => x.cmp(&y),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// The value of a part that is a plain number: at most nine digits, no leading zero.
fn number(part: &str) -> Option<u64> {
    let plain = part.bytes().all(|b| b.is_ascii_digit()) && part.len() <= 9;
    if plain && (part == "0" || !part.starts_with('0')) { part.parse().ok() } else { None }
}

/// The nodes of sorted tensors that agree in the first `depth` parts of their names, which are cut off.
fn level<'a>(names: &mut [(&'a str, &Item<'a>)], depth: usize, separator: char) -> Vec<Node<'a>> {
    let mut nodes: Vec<Node<'a>> = Vec::new();
    for group in names
        .chunk_by_mut(|(a, _), (b, _)| first_part(a, depth, separator).0 == first_part(b, depth, separator).0)
    {
        let (part, _) = first_part(group[0].0, depth, separator);
        // Shorter names sort first: tensors that end here come before the group of those that go on.
        let mut ending = 0;
        for (name, item) in &mut *group {
            match first_part(name, depth, separator) {
                (_, Some(rest)) => *name = rest,
                (_, None) => {
                    ending += 1;
                    add(&mut nodes, leaf(part, item));
                }
            }
        }
        let below = &mut group[ending..];
        if !below.is_empty() {
            add(&mut nodes, joined(branch(part, level(below, depth + 1, separator)), separator));
        }
    }
    nodes
}

fn leaf<'a>(part: &'a str, item: &Item<'a>) -> Node<'a> {
    Node {
        label: part.into(),
        copies: 1,
        tensors: 1,
        elements: item.elements,
        bytes: item.bytes,
        leaf: Some((item.dtype, item.shape)),
        children: Vec::new(),
        numbers: number(part).map(|n| (n, n)).into_iter().collect(),
    }
}

fn branch<'a>(part: &'a str, children: Vec<Node<'a>>) -> Node<'a> {
    let sum = |of: fn(&Node<'a>) -> u64| children.iter().map(of).fold(0, u64::saturating_add);
    Node {
        label: part.into(),
        copies: 1,
        tensors: sum(|node| node.tensors),
        elements: sum(|node| node.elements),
        bytes: sum(|node| node.bytes),
        leaf: None,
        children,
        numbers: number(part).map(|n| (n, n)).into_iter().collect(),
    }
}

/// A group of one member becomes one node with both labels, unless its number may still be folded.
fn joined(mut node: Node<'_>, separator: char) -> Node<'_> {
    if node.numbers.is_empty() && node.children.len() == 1 {
        let child = node.children.remove(0);
        node.label = format!("{}{separator}{}", node.label, child.label).into();
        node.copies = child.copies;
        node.leaf = child.leaf;
        node.children = child.children;
    }
    node
}

/// Appends a node, or folds it into the last one if both are numbered and of the same structure.
fn add<'a>(nodes: &mut Vec<Node<'a>>, node: Node<'a>) {
    if let (Some(last), Some(&(n, _))) = (nodes.last_mut(), node.numbers.first())
        && same_structure(last, &node, Labels::Ignored)
        && let Some(run) = last.numbers.last_mut()
    {
        if run.1 + 1 == n {
            run.1 = n;
        } else {
            last.numbers.push((n, n));
        }
        last.copies += 1;
        last.label = runs(&last.numbers).into();
        absorb(last, &node);
        return;
    }
    nodes.push(node);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Labels {
    Compared,
    Ignored,
}

fn same_structure(a: &Node<'_>, b: &Node<'_>, labels: Labels) -> bool {
    (labels == Labels::Ignored || (a.label == b.label && a.copies == b.copies))
        && a.leaf == b.leaf
        && a.children.len() == b.children.len()
        && a.children.iter().zip(&b.children).all(|(a, b)| same_structure(a, b, Labels::Compared))
}

fn absorb(into: &mut Node<'_>, other: &Node<'_>) {
    into.tensors = into.tensors.saturating_add(other.tensors);
    into.elements = into.elements.saturating_add(other.elements);
    into.bytes = into.bytes.saturating_add(other.bytes);
    for (into, other) in into.children.iter_mut().zip(&other.children) {
        absorb(into, other);
    }
}

/// `0..11`, `0..3,5`; many runs are cut.
fn runs(numbers: &[(u64, u64)]) -> String {
    const SHOWN: usize = 4;
    let run = |&(first, last): &(u64, u64)| {
        if first == last { first.to_string() } else { format!("{first}..{last}") }
    };
    let mut label = numbers.iter().take(SHOWN).map(run).collect::<Vec<_>>().join(",");
    if numbers.len() > SHOWN {
        label.push_str(",...");
    }
    label
}

/// How much of a tree is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Members of one group.
    pub(crate) per_group: usize,
    /// Levels.
    pub(crate) depth: usize,
}

impl Extent {
    /// Everything.
    pub(crate) const ALL: Self = Self { per_group: usize::MAX, depth: usize::MAX };

    /// What a screen or two can hold of an ordinary model.
    pub(crate) const DEFAULT: Self = Self { per_group: 24, depth: 6 };
}

/// The lines of the tree with type, shape, size and share of `total` bytes.
pub(crate) fn lines(nodes: &[Node<'_>], total: u64, extent: Extent, style: Style) -> Vec<String> {
    let mut table =
        Table::new(&[Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Left]);
    table.row(["NAME", "TENSOR", "PARAMETERS", "SIZE", "SHARE", ""]);
    rows(nodes, "", total, extent, style, &mut table);
    // In a narrow terminal the bar goes first; the name and the size stay.
    let mut lines = table.fitted(style, Dispensable { first: &[5, 4, 2], last: &[1] });
    if let Some(head) = lines.first_mut() {
        *head = style.bold(head);
    }
    lines
}

fn rows(nodes: &[Node<'_>], indent: &str, total: u64, extent: Extent, style: Style, table: &mut Table) {
    let hidden = nodes.len().saturating_sub(extent.per_group);
    for (idx, node) in nodes.iter().take(extent.per_group).enumerate() {
        let last = idx + 1 == nodes.len();
        let (branch, below) = style.branch(last);
        let mut label = cut(&node.label, LABEL_CHARS);
        if node.copies > 1 {
            label.push_str(&format!(" x{}", node.copies));
        }
        let what = match node.leaf {
            Some((dtype, shape)) => format!("{dtype} {}", human::shape(shape)),
            None => human::plural(node.tensors, "tensor"),
        };
        let share = human::percent(node.bytes, total);
        let bar = style.bar(node.bytes, total, BAR_CELLS);
        table.indented_row(
            &format!("{indent}{branch}"),
            [label, what, human::count(node.elements), human::bytes(node.bytes), share, bar],
        );
        if extent.depth > 1 {
            let extent = Extent { depth: extent.depth - 1, ..extent };
            rows(&node.children, &format!("{indent}{below}"), total, extent, style, table);
        }
    }
    if hidden > 0 {
        let (branch, _) = style.branch(true);
        let more = format!("... and {} more (-v shows all)", human::grouped(hidden as u64));
        table.indented_row(&format!("{indent}{branch}"), [more]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item<'a>(name: &'a str, shape: &'a [usize]) -> Item<'a> {
        let elements = shape.iter().product::<usize>() as u64;
        Item { name, dtype: "F32", shape, elements, bytes: 4 * elements }
    }

    #[test]
    fn equal_layers_fold_and_chains_join() {
        let names: Vec<String> = (0..12).map(|idx| format!("encoder.layer.{idx}.w")).collect();
        let mut items: Vec<Item<'_>> = names.iter().map(|name| item(name, &[2, 2])).collect();
        items.push(item("encoder.layer.12.w", &[1]));
        items.push(item("pooler.dense.bias", &[2]));
        let tree = build(&items);
        let labels: Vec<_> = tree.iter().map(|node| &*node.label).collect();
        assert_eq!(labels, ["encoder.layer", "pooler.dense.bias"]);
        let layers = &tree[0].children;
        assert_eq!((&*layers[0].label, layers[0].copies, layers[0].bytes), ("0..11", 12, 192));
        assert_eq!((&*layers[1].label, layers[1].copies, layers[1].bytes), ("12", 1, 4));
        assert_eq!(layers[0].children[0].tensors, 12);
    }

    #[test]
    fn groups_name_every_tensor_once() {
        let mut names: Vec<String> =
            (0..6).flat_map(|idx| [format!("h.{idx}.w"), format!("h.{idx}.b")]).collect();
        names.extend((0..3).map(|idx| format!("v.{idx}.attn.q")));
        names.extend(["h.7.w", "head.w", "head.b"].map(str::to_owned));
        let items: Vec<Item<'_>> = names.iter().map(|name| item(name, &[])).collect();
        let groups = groups(&items);
        let labels: Vec<_> =
            groups.iter().map(|group| (group.label.as_str(), group.copies, group.names.len())).collect();
        assert_eq!(
            labels,
            [("h.0..5", 6, 12), ("h.7.w", 1, 1), ("head.b", 1, 1), ("head.w", 1, 1), ("v.0..2.attn.q", 3, 3)]
        );
        let mut listed: Vec<&str> = groups.iter().flat_map(|group| group.names.iter().copied()).collect();
        listed.sort_unstable();
        let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
        all.sort_unstable();
        assert_eq!(listed, all);
        assert!(groups[0].names.iter().all(|name| name.starts_with("h.")));
    }

    #[test]
    fn gaps_in_numbers_are_kept() {
        let items = [item("h.0", &[1]), item("h.1", &[1]), item("h.3", &[1]), item("h.x", &[1])];
        let tree = build(&items);
        assert_eq!(tree[0].children[0].label, "0..1,3");
        assert_eq!(tree[0].children[1].label, "x");
    }

    #[test]
    fn a_tensor_may_have_the_name_of_a_group() {
        let items = [item("a", &[1]), item("a.b", &[1]), item("a.c", &[2])];
        let tree = build(&items);
        assert_eq!(tree.len(), 2);
        assert!(tree[0].leaf.is_some() && tree[1].children.len() == 2);
    }

    #[test]
    fn hostile_names_stay_shallow() {
        let dots = ".".repeat(100_000);
        let items = [item(&dots, &[1]), item("", &[1]), item("..", &[1])];
        let tree = build(&items);
        assert!(!lines(&tree, 12, Extent::ALL, Style::PLAIN).is_empty());
    }
}
