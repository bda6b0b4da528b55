//! Decisions of support vector machines, one against one (libsvm: Chang and Lin, ACM TIST 2, 2011).

use crate::checks;
use crate::error::Error;

/// Support vectors grouped by class, without the vectors themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pairs<'m, D> {
    /// Support vectors of each class.
    pub(crate) n_support: &'m [usize],
    /// Coefficients, a column for each support vector and a row for each class but one: those of class `i` against class `j` are
    /// in row `j` if `j < i`, in row `j - 1` if `j > i`.
    pub(crate) dual: &'m [D],
}

/// Similarities that are computed before they are added.
const CHUNK: usize = 128;

/// Pairs whose sums run side by side.
const LANES: usize = 4;

impl<D: Copy + Into<f64>> Pairs<'_, D> {
    /// Adds to the constants of the pairs in `out` the similarity of each support vector to a sample times its coefficient, in the
    /// order of the vectors. `similarities` writes those of the vectors from an index on.
    pub(crate) fn add_to(&self, similarities: impl Fn(usize, &mut [f64]), out: &mut [f64]) {
        let mut buffer = [0.0; CHUNK];
        let mut start = 0;
        for (class, &count) in self.n_support.iter().enumerate() {
            let end = start + count;
            while start < end {
                let chunk = buffer.get_mut(..CHUNK.min(end - start)).unwrap_or_default();
                similarities(start, chunk);
                self.add_chunk(class, start, chunk, out);
                start += chunk.len();
            }
        }
    }

    /// Adds what the vectors of a class from `start` on contribute to its pairs with every other class.
    fn add_chunk(&self, class: usize, start: usize, similarities: &[f64], out: &mut [f64]) {
        let k = self.n_support.len();
        let n_vectors = self.dual.len() / (k - 1).max(1);
        let pair = |row: usize| match row < class {
            true => pair(row, class, k),
            false => pair(class, row + 1, k),
        };
        let coefficients = |row: usize| {
            let start = row * n_vectors + start;
            self.dual.get(start..start + similarities.len()).unwrap_or_default()
        };
        let mut row = 0;
        while cfg!(not(apr_small)) && row + LANES < k {
            let pairs: [usize; LANES] = core::array::from_fn(|lane| pair(row + lane));
            let mut sums = pairs.map(|pair| out.get(pair).copied().unwrap_or_default());
            let [a, b, c, d] = core::array::from_fn(|lane| coefficients(row + lane));
            let terms = a.iter().zip(b).zip(c.iter().zip(d)).zip(similarities);
            for (((&a, &b), (&c, &d)), similarity) in terms {
                for (sum, coefficient) in sums.iter_mut().zip([a, b, c, d]) {
                    let coefficient: f64 = coefficient.into();
                    *sum += coefficient * similarity;
                }
            }
            for (pair, sum) in pairs.into_iter().zip(sums) {
                if let Some(place) = out.get_mut(pair) {
                    *place = sum;
                }
            }
            row += LANES;
        }
        for row in row..k - 1 {
            let Some(place) = out.get_mut(pair(row)) else { continue };
            for (&coefficient, similarity) in coefficients(row).iter().zip(similarities) {
                let coefficient: f64 = coefficient.into();
                *place += coefficient * similarity;
            }
        }
    }
}

/// Checks the lengths of what a machine of support vectors is made of.
pub(crate) fn check_lengths(
    n_support: &[usize],
    n_vectors: usize,
    n_dual: usize,
    n_intercepts: usize,
) -> Result<(), Error> {
    let k = n_support.len();
    let sum = n_support.iter().try_fold(0_usize, |sum, &count| sum.checked_add(count));
    checks::expect_len("support vectors", sum.unwrap_or(usize::MAX), n_vectors)?;
    checks::expect_table("dual coefficients", k.saturating_sub(1), n_vectors, n_dual)?;
    checks::expect_len("intercepts", n_pairs(k), n_intercepts)
}

/// Pairs of `k` classes; more than any list has if there are too many to count.
pub(crate) fn n_pairs(k: usize) -> usize {
    k.checked_mul(k.saturating_sub(1)).map_or(usize::MAX, |twice| twice / 2)
}

/// Index of the pair `(i, j)`, `i < j < k`, in the order (0, 1), (0, 2), ... (1, 2), ...
pub(crate) const fn pair(i: usize, j: usize, k: usize) -> usize {
    // Of the rows before, row 0 has k - 1 pairs, row 1 k - 2, ...
    i * (2 * k - i - 1) / 2 + j - i - 1
}

/// Index of the class with the most votes, the first of equal ones: a decision above 0 is a vote for the first class of
/// its pair, any other one for the second.
pub(crate) fn most_votes(decisions: &[f64], k: usize) -> usize {
    let mut best = (0, 0);
    for class in 0..k {
        let votes = (0..k).filter(|&other| {
            let won = |pair: usize| decisions.get(pair).is_some_and(|&decision| decision > 0.0);
            match other {
                _ if other == class => false,
                _ if other > class => won(pair(class, other, k)),
                _ => !won(pair(other, class, k)),
            }
        });
        let votes = votes.count();
        if votes > best.1 {
            best = (class, votes);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_in_order() {
        for k in 2..9 {
            let mut expected = 0;
            for i in 0..k {
                for j in i + 1..k {
                    assert_eq!(pair(i, j, k), expected);
                    expected += 1;
                }
            }
            assert_eq!(n_pairs(k), expected);
        }
    }

    #[test]
    fn votes_are_counted_and_ties_go_to_the_first() {
        // (0,1) (0,2) (1,2): each class wins once.
        assert_eq!(most_votes(&[1.0, -1.0, 1.0], 3), 0);
        assert_eq!(most_votes(&[-1.0, -1.0, 1.0], 3), 1);
        assert_eq!(most_votes(&[-1.0, -1.0, -1.0], 3), 2);
        // A decision of 0, or of no number, is for the second class of the pair.
        assert_eq!(most_votes(&[0.0, f64::NAN, 0.0], 3), 2);
    }
}
