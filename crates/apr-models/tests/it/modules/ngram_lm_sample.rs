use alloc::collections::BTreeMap;

use apr_models::*;

#[test]
fn words_are_drawn_as_often_as_they_are_likely() {
    let sentences = [["a", "b", "b"], ["a", "c", "b"], ["b", "a", "a"]];
    for smoothing in [Smoothing::AddK(0.5), Smoothing::AbsoluteDiscount(0.5)] {
        for order in 1..=3 {
            let model = NgramLm::fit(&sentences, &NgramLmOptions { order, smoothing, min_count: 1 }).unwrap();
            let n = 20_000;
            for context in [&["a"][..], &["zzz"], &[]] {
                let mut drawn = BTreeMap::new();
                for seed in 0..n {
                    *drawn.entry(model.sample(context, 1, seed).first().copied()).or_insert(0.0) += 1.0;
                }
                for word in [Some("a"), Some("b"), Some("c"), Some(NgramLm::UNKNOWN), None] {
                    let expected = match word {
                        Some(word) => model.probability(context, word),
                        None => model.end_probability(context),
                    };
                    let share = drawn.get(&word).copied().unwrap_or(0.0) / n as f64;
                    // Four deviations of the number drawn.
                    let bound = 4.0 * libm::sqrt(expected * (1.0 - expected) / n as f64);
                    assert!((share - expected).abs() <= bound, "{smoothing:?} {order} {context:?} {word:?}");
                }
            }
        }
    }
}

#[test]
fn sentences_end_and_stay_within_the_bound() {
    let model = NgramLm::fit(&[["a", "b"]], &NgramLmOptions::default()).unwrap();
    assert!(model.sample::<&str>(&[], 0, 1).is_empty());
    for seed in 0..200 {
        let words = model.sample::<&str>(&[], 5, seed);
        assert!(words.len() <= 5);
        assert_eq!(words, model.sample::<&str>(&[], 5, seed));
    }
    let differ = |seed| model.sample::<&str>(&[], 50, seed) != model.sample::<&str>(&[], 50, 0);
    assert!((1..50).any(differ));
}
