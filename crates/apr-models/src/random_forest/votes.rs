//! Counting votes.

use alloc::vec::Vec;

/// Classes counted without an allocation.
const INLINE: usize = 32;

/// Number of votes of each class; only classes with votes take memory.
pub(crate) struct Votes {
    few: [(usize, u32); INLINE],
    n_few: usize,
    more: Vec<(usize, u32)>,
}

impl Votes {
    pub(crate) const fn new() -> Self {
        Self { few: [(0, 0); INLINE], n_few: 0, more: Vec::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.n_few = 0;
        self.more.clear();
    }

    pub(crate) fn add(&mut self, class: usize) {
        let counted = self.few[..self.n_few].iter_mut().chain(&mut self.more).find(|vote| vote.0 == class);
        if let Some((_, count)) = counted {
            *count += 1;
        } else if let Some(vote) = self.few.get_mut(self.n_few) {
            *vote = (class, 1);
            self.n_few += 1;
        } else {
            self.more.push((class, 1));
        }
    }

    /// The class with most votes, of those the least; 0 without a vote.
    pub(crate) fn winner(&self) -> usize {
        let mut winner = (0, 0);
        for list in [&self.few[..self.n_few], &self.more] {
            for &(class, count) in list {
                if count > winner.1 || count == winner.1 && class < winner.0 {
                    winner = (class, count);
                }
            }
        }
        winner.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_votes_win_and_the_least_class_breaks_ties() {
        let mut votes = Votes::new();
        assert_eq!(votes.winner(), 0);
        [5, 3, 9, 3, 5].into_iter().for_each(|class| votes.add(class));
        assert_eq!(votes.winner(), 3);
        votes.add(5);
        assert_eq!(votes.winner(), 5);
        votes.clear();
        (0..100).rev().chain([70]).for_each(|class| votes.add(class));
        assert_eq!(votes.winner(), 70);
        votes.add(10);
        assert_eq!(votes.winner(), 10);
    }
}
