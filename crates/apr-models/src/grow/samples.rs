//! Weights of samples, and samples drawn at random.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::Error;
use crate::logistic_regression::ClassWeight;
use crate::rng::Rng;

/// Weights of samples as `f64`, 1 where none are given.
///
/// # Errors
///
/// [`ErrorKind::PartLength`](crate::ErrorKind::PartLength), [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for
/// weights that are negative or not finite, or all 0.
pub(crate) fn weights(n_rows: usize, given: Option<&[f32]>) -> Result<Vec<f64>, Error> {
    let Some(given) = given else { return Ok(vec![1.0; n_rows]) };
    checks::expect_len(SAMPLE_WEIGHT, n_rows, given.len())?;
    let valid = given.iter().all(|&weight| weight.is_finite() && weight >= 0.0);
    checks::expect(SAMPLE_WEIGHT, valid, "finite numbers of at least 0 are needed")?;
    checks::expect(SAMPLE_WEIGHT, given.iter().any(|&weight| weight > 0.0), "one above 0 is needed")?;
    Ok(given.iter().map(|&weight| weight.into()).collect())
}

/// Multiplies the weight of each sample by that of its class; `places` are those of their labels.
///
/// # Errors
///
/// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for weights that are negative or not finite, or leave no
/// sample any.
pub(crate) fn weigh_classes(
    weights: &mut [f64],
    labels: &[usize],
    places: &[u32],
    class_weight: &ClassWeight,
) -> Result<(), Error> {
    let of_classes: Vec<f64> = match class_weight {
        ClassWeight::Uniform => return Ok(()),
        ClassWeight::Balanced => {
            let mut counts = vec![0.0_f64; labels.len()];
            places.iter().for_each(|&place| counts[place as usize] += 1.0);
            let all = places.len() as f64;
            counts.iter().map(|count| all / (labels.len() as f64 * count)).collect()
        }
        ClassWeight::Manual(given) => {
            let valid = given.iter().all(|&weight| weight.is_finite() && weight >= 0.0);
            checks::expect(CLASS_WEIGHT, valid, "finite numbers of at least 0 are needed")?;
            labels.iter().map(|&label| given.get(label).map_or(1.0, |&weight| weight.into())).collect()
        }
    };
    weights.iter_mut().zip(places).for_each(|(weight, &place)| *weight *= of_classes[place as usize]);
    checks::expect(CLASS_WEIGHT, weights.iter().any(|&weight| weight > 0.0), "a sample needs one above 0")
}

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

const SAMPLE_WEIGHT: &str = "sample_weight";
const CLASS_WEIGHT: &str = "class_weight";
