//! Findings outside of pickles, as many as are kept.

use alloc::vec::Vec;

use crate::problem::{Problem, Verdict};

/// At most `kept` findings, and beyond them each that is worse than all before it: no number of mild findings hides a dangerous one.
pub(crate) struct Kept {
    found: Vec<(u64, Problem)>,
    kept: usize,
    worst: Verdict,
}

impl Kept {
    pub(crate) const fn new(kept: usize) -> Self {
        Self { found: Vec::new(), kept, worst: Verdict::Safe }
    }

    pub(crate) fn add(&mut self, offset: u64, problem: Problem) {
        let verdict = problem.verdict();
        if self.found.len() < self.kept || verdict > self.worst {
            self.worst = self.worst.max(verdict);
            self.found.push((offset, problem));
        }
    }

    /// All of them, in the order in which they were found.
    pub(crate) fn as_slice(&self) -> &[(u64, Problem)] {
        &self.found
    }

    /// All of them, by their offsets.
    pub(crate) fn sorted(mut self) -> Vec<(u64, Problem)> {
        self.found.sort_by_key(|(offset, _)| *offset);
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_kept_whatever_is_before_it() {
        let (note, code) = (Problem::ChatTemplate {}, Problem::TemplateCode {});
        let worst = Problem::KerasCode { name: "os".into() };
        for (kept, offsets) in
            [(0, [3, 4].as_slice()), (1, &[3, 4, 9]), (2, &[3, 4, 8, 9]), (9, &[1, 2, 3, 4, 8, 9])]
        {
            let mut found = Kept::new(kept);
            let problems = [(9, &note), (8, &note), (3, &code), (2, &code), (4, &worst), (1, &worst)];
            problems.into_iter().for_each(|(offset, problem)| found.add(offset, problem.clone()));
            let sorted: Vec<_> = found.sorted().into_iter().map(|(offset, _)| offset).collect();
            assert_eq!(sorted, offsets, "{kept}");
        }
    }
}
