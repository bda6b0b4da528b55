//! Samples drawn at random.

use alloc::vec;
use alloc::vec::Vec;

use crate::rng::Rng;

/// The samples that count.
pub(crate) fn weighted_rows(weights: &[f64]) -> Vec<u32> {
    (0_u32..).zip(weights).filter(|(_, weight)| **weight > 0.0).map(|(row, _)| row).collect()
}

/// Draws as many of the rows as there are, with replacement: how often each of the `n_rows` of the table was drawn.
pub(crate) fn bootstrap(rows: &[u32], n_rows: usize, rng: &mut Rng) -> Vec<u32> {
    let mut draws = vec![0; n_rows];
    for _ in rows {
        draws[rows[rng.below(rows.len())] as usize] += 1;
    }
    draws
}

/// Puts `count` random rows, each at most once, at the front of `rows`.
pub(crate) fn draw(rows: &mut [u32], count: usize, rng: &mut Rng) {
    for place in 0..count.min(rows.len()) {
        rows.swap(place, place + rng.below(rows.len() - place));
    }
}

/// A random share of the rows in their order; `None` for all of them.
pub(crate) fn subsample(rows: &[u32], share: f64, rng: &mut Rng) -> Option<Vec<u32>> {
    if share >= 1.0 {
        return None;
    }
    let count = ((rows.len() as f64 * share) as usize).max(1);
    let mut drawn = rows.to_vec();
    draw(&mut drawn, count, rng);
    drawn.truncate(count);
    drawn.sort_unstable();
    Some(drawn)
}

/// Removes a random share of the rows of each group, but never all of them; returns those removed, both in their order.
pub(crate) fn set_aside(rows: &mut Vec<u32>, groups: &[u32], share: f64, rng: &mut Rng) -> Vec<u32> {
    let n_groups = groups.iter().max().map_or(0, |&group| group as usize + 1);
    let mut wanted = vec![0_usize; n_groups];
    rows.iter().for_each(|&row| wanted[groups[row as usize] as usize] += 1);
    for count in &mut wanted {
        // Rounded to the nearest.
        *count = ((*count as f64 * share + 0.5) as usize).min(count.saturating_sub(1));
    }
    rng.shuffle(rows);
    let mut aside = Vec::new();
    rows.retain(|&row| {
        let wanted = &mut wanted[groups[row as usize] as usize];
        let keeps = *wanted == 0;
        if !keeps {
            *wanted -= 1;
            aside.push(row);
        }
        keeps
    });
    rows.sort_unstable();
    aside.sort_unstable();
    aside
}
