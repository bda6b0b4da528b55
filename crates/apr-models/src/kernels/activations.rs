//! Functions between layers, and those that turn scores into probabilities.

/// 0 for negative values. What is not a number stays so.
pub(crate) fn relu<T: Copy + Default + PartialOrd>(value: T) -> T {
    if value < T::default() { T::default() } else { value }
}

/// The logistic function.
pub(crate) fn sigmoid(score: f64) -> f64 {
    // Of the two forms the one whose exponential cannot overflow.
    match score >= 0.0 {
        true => 1.0 / (1.0 + libm::exp(-score)),
        false => {
            let grown = libm::exp(score);
            grown / (1.0 + grown)
        }
    }
}

/// The logistic function in one form and in single precision: that of networks.
pub(crate) fn sigmoid_single(score: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-score))
}

/// Replaces each score by its `exp` over the sum of all, scores first lowered so that the largest is 0.
pub(crate) fn softmax(scores: &mut [f64]) {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = libm::exp(*score - largest);
        sum += *score;
    }
    scores.iter_mut().for_each(|score| *score /= sum);
}

/// As [`softmax`] with exponentials in single precision, whose sum is not: that of networks.
pub(crate) fn softmax_single(scores: &mut [f32]) {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = libm::expf(*score - largest);
        sum += f64::from(*score);
    }
    scores.iter_mut().for_each(|score| *score = (f64::from(*score) / sum) as f32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_scores_stay_probabilities() {
        for (mut scores, expected) in
            [([-1e300, 1e300, 1e300], [0.0, 0.5, 0.5]), ([-4000.0; 3], [1.0 / 3.0; 3])]
        {
            softmax(&mut scores);
            assert_eq!(scores, expected);
        }
        assert_eq!((sigmoid(-1e9), sigmoid(1e9), sigmoid(0.0)), (0.0, 1.0, 0.5));
    }
}
