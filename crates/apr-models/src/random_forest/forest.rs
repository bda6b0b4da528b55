//! Code shared by the two forests.

use alloc::format;
use alloc::vec::Vec;

use apr_container::{DecodePayload, EncodePayload, PayloadReader, PayloadWriter};

use crate::checks;
use crate::decision_tree::fitted;
use crate::error::{Error, ErrorKind, Operation};
use crate::kernels::trees::{SplitTest, walk};
use crate::matrix::Matrix;
use crate::model::Model;
use crate::payload::fields::{Fields, read};
use crate::payload::values::{
    read_option, skip_list, skip_matrix, skip_option, write_matrix, write_option, write_optional_u64,
    write_optional_usize,
};
use crate::tensors::Tensors;
use crate::tree::tensors::part_of_tree;
use crate::tree::{Leaf, Node, Tree};
use crate::vector::Vector;

/// What a forest's file says about the samples it was trained on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainingData<Y> {
    /// For each tree the samples it did not see.
    pub oob_indices: Vec<Vec<usize>>,
    /// Every sample.
    pub x: Option<Matrix>,
    /// The class or value of every sample.
    pub y: Option<Y>,
}

/// A tree as part of a forest.
pub(crate) trait ForestTree: Model + EncodePayload + DecodePayload {
    /// Fewest bytes of a payload with a tree in it: the tree, two tags, and for values also the two bounds.
    const MIN_LEN: u64;
    /// One more than the greatest class of a leaf; 0 of values.
    fn n_classes(&self) -> usize;
    fn tree(&self) -> Option<&Tree>;
    fn push_to(&self, tensors: &mut Tensors, prefix: &str) -> Result<(), Error>;
    fn read_from(tensors: &Tensors, prefix: &str) -> Result<Self, Error>;
    fn is_part(name: &str) -> bool;
}

/// The targets of training as part of a payload.
pub(crate) trait Target: Sized {
    const ELEMENT_LEN: u64;
    fn len(&self) -> usize;
    fn write(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error>;
    fn read(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error>;
}

impl Target for Vec<usize> {
    const ELEMENT_LEN: u64 = 8;

    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn write(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.usizes(self)
    }

    fn read(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        input.usizes()
    }
}

impl Target for Vector {
    const ELEMENT_LEN: u64 = 4;

    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn write(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.f32s(self.as_slice())
    }

    fn read(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        input.f32s().map(Self::from_vec)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Forest<T, Y> {
    pub(crate) trees: Vec<T>,
    pub(crate) n_estimators: usize,
    pub(crate) max_depth: Option<usize>,
    pub(crate) random_state: Option<u64>,
    pub(crate) training: Option<TrainingData<Y>>,
    pub(crate) keeps_training_data: bool,
    /// One more than the greatest feature tested.
    tested: usize,
    /// One more than the greatest class of a leaf; 0 of values.
    n_classes: usize,
}

impl<T, Y> Default for Forest<T, Y> {
    fn default() -> Self {
        Self {
            trees: Vec::new(),
            n_estimators: 0,
            max_depth: None,
            random_state: None,
            training: None,
            keeps_training_data: false,
            tested: 0,
            n_classes: 0,
        }
    }
}

impl<T: ForestTree, Y: Target> Forest<T, Y> {
    pub(crate) fn from_trees(trees: Vec<T>) -> Result<Self, Error> {
        if trees.is_empty() {
            return Err(invalid("at least one is needed"));
        }
        Self::of_trees(trees)
    }

    /// As [`from_trees`](Self::from_trees), or a forest that is not grown yet.
    fn of_trees(trees: Vec<T>) -> Result<Self, Error> {
        let tested = tested(&mut trees.iter().map(|tree| (tree.tree(), tree.n_features())))?;
        let n_classes = trees.iter().map(T::n_classes).max().unwrap_or(0);
        Ok(Self { n_estimators: trees.len(), trees, tested, n_classes, ..Self::default() })
    }

    pub(crate) fn n_features(&self) -> Option<usize> {
        // A tree that does not say may test more than those that do.
        self.trees.iter().find_map(Model::n_features).filter(|&n_features| n_features >= self.tested)
    }

    /// Samples whose features or targets are known.
    pub(crate) fn stored_samples(&self) -> Option<usize> {
        let TrainingData { x, y, .. } = self.training.as_ref()?;
        x.as_ref().map(Matrix::n_rows).or_else(|| y.as_ref().map(Target::len))
    }

    pub(crate) const fn tested(&self) -> usize {
        self.tested
    }

    pub(crate) const fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// The trees, of which there is at least one.
    pub(crate) fn fitted(&self) -> Result<Trees<'_, T>, Error> {
        match self.trees.as_slice() {
            [] => Err(ErrorKind::NotFitted { operation: Operation::Predict }.into()),
            trees => Ok(Trees(trees)),
        }
    }

    pub(crate) fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        if self.trees.is_empty() {
            return Err(ErrorKind::NotFitted { operation: Operation::Save }.into());
        }
        for (idx, tree) in self.trees.iter().enumerate() {
            tree.push_to(tensors, &format!("tree_{idx}_"))?;
        }
        tensors.push_count(N_ESTIMATORS, self.n_estimators)?;
        tensors.push_optional(MAX_DEPTH, self.max_depth.map(|depth| depth as u64))?;
        tensors.push_optional(RANDOM_STATE, self.random_state)
    }

    pub(crate) fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        let n_trees = (0..).take_while(|idx| tensors.contains(&format!("tree_{idx}_node_features"))).count();
        tensors.expect_only(&|name| {
            [N_ESTIMATORS, MAX_DEPTH, RANDOM_STATE].contains(&name)
                || part_of_tree(name).is_some_and(|(idx, part)| idx < n_trees && T::is_part(part))
        })?;
        let trees = (0..n_trees).map(|idx| T::read_from(tensors, &format!("tree_{idx}_")));
        let forest = Self::from_trees(checks::all(trees)?)?;
        Ok(Self {
            n_estimators: tensors.count(N_ESTIMATORS)?,
            max_depth: tensors.optional_count(MAX_DEPTH)?,
            random_state: tensors.optional_integer(RANDOM_STATE)?,
            ..forest
        })
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.usize(self.trees.len())?;
        self.trees.iter().try_for_each(|tree| tree.encode_payload(out))?;
        out.usize(self.n_estimators)?;
        write_optional_usize(out, self.max_depth)?;
        write_optional_u64(out, self.random_state)?;
        let training = self.training.as_ref().filter(|_| self.keeps_training_data);
        let oob_indices = training.map_or(&[][..], |training| &training.oob_indices);
        out.usize(oob_indices.len())?;
        oob_indices.iter().try_for_each(|indices| out.usizes(indices))?;
        write_option(out, training.and_then(|training| training.x.as_ref()), write_matrix)?;
        write_option(out, training.and_then(|training| training.y.as_ref()), |out, y| y.write(out))
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let trees = input.list(T::MIN_LEN, |input| {
            let tree = T::decode_payload(input)?;
            // Refused here and not at the end: empty ones take less of the file than of memory.
            fitted(tree.tree(), Operation::Predict)?;
            Ok(tree)
        })?;
        let Settings { n_estimators, max_depth, random_state, oob_indices, x } =
            read(input, Settings::decode)?;
        let y = read_option(input, Y::read)?;
        let stored = !oob_indices.is_empty() || x.is_some() || y.is_some();
        let training = stored.then_some(TrainingData { oob_indices, x, y });
        Ok(Self { n_estimators, max_depth, random_state, training, ..Self::of_trees(trees)? })
    }

    pub(crate) fn skip(input: &mut PayloadReader<'_>) -> Result<(), apr_container::Error> {
        for _ in 0..input.count(T::MIN_LEN)? {
            T::skip_payload(input)?;
        }
        input.skip(8)?;
        skip_option(input, |input| input.skip(8))?;
        skip_option(input, |input| input.skip(8))?;
        for _ in 0..input.count(8)? {
            skip_list(input, 8)?;
        }
        skip_option(input, skip_matrix)?;
        skip_option(input, |input| skip_list(input, Y::ELEMENT_LEN))
    }
}

/// The fields after the trees, up to the targets.
struct Settings {
    n_estimators: usize,
    max_depth: Option<usize>,
    random_state: Option<u64>,
    oob_indices: Vec<Vec<usize>>,
    x: Option<Matrix>,
}

impl Settings {
    fn decode(fields: &mut Fields<'_, '_>) -> Self {
        Self {
            n_estimators: fields.usize(),
            max_depth: fields.optional_usize(),
            random_state: fields.optional_u64(),
            oob_indices: fields.take(|input| input.list(8, PayloadReader::usizes)),
            x: fields.optional_matrix(),
        }
    }
}

/// One more than the greatest feature that a tree of a forest tests. Each tree comes with what it says of the number of features.
fn tested(trees: &mut dyn Iterator<Item = (Option<&Tree>, Option<usize>)>) -> Result<usize, Error> {
    let (mut tested, mut said, mut agree) = (0, None, true);
    for (tree, n_features) in trees {
        let Some(tree) = tree else { return Err(invalid("one of them has no nodes")) };
        tested = tested.max(tree.n_features());
        agree &= n_features.is_none() || said.is_none() || n_features == said;
        said = said.or(n_features);
    }
    match agree {
        true => Ok(tested),
        false => Err(invalid("they disagree about the number of features")),
    }
}

/// The trees of a forest, each with nodes.
pub(crate) struct Trees<'f, T>(&'f [T]);

impl<T: ForestTree> Trees<'_, T> {
    /// Gives `each` the number of every row of `width` features, and the value of the leaf that it reaches in every tree; the trees
    /// of a row in their order. A row has the features that the trees test.
    pub(crate) fn for_each_leaf<L: Leaf>(&self, rows: &[f32], width: usize, mut each: impl FnMut(usize, L)) {
        walk::for_each_leaf(self, rows, width, |row, number, leaf| {
            let tree = self.0.get(number).and_then(ForestTree::tree);
            each(row, tree.map_or_else(|| L::from_bits(0), |tree| tree.leaf(leaf)));
        });
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }
}

impl<T: ForestTree> walk::Trees<f32> for Trees<'_, T> {
    type Node = Node;

    fn n_trees(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn tree(&self, number: usize) -> (&[Node], u32) {
        (self.0.get(number).and_then(ForestTree::tree).map_or(&[], Tree::nodes), 0)
    }

    #[inline]
    fn next<const LANES: usize>(node: &Node, at: u32, rows: &[f32], start: usize) -> u32 {
        node.next::<LANES>(at, rows, start, SplitTest::AtMost)
    }
}

const N_ESTIMATORS: &str = "n_estimators";
const MAX_DEPTH: &str = "max_depth";
const RANDOM_STATE: &str = "random_state";

fn invalid(problem: &'static str) -> Error {
    ErrorKind::PartInvalid { part: "trees", problem }.into()
}
