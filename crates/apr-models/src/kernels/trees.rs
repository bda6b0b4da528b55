//! Walks through decision trees.

pub(crate) mod arena;
pub(crate) mod walk;

/// Which samples go left at a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SplitTest {
    /// Those at most the threshold: decision trees.
    AtMost,
    /// Those below the threshold: isolation trees.
    Below,
}
