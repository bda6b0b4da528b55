//! The matrix and its vectors.

use conformance::matrix::Suite;
use conformance::vectors::{Kind, OfficialVerdict, StrictVerdict, Vectors};
use conformance::{huge, reading, sharded, slices};
use st_core::ErrorKind;

#[test]
fn every_cell_is_what_the_sidecars_say() {
    let vectors = Vectors::load().unwrap();
    let suites = [
        reading::suite(&vectors).unwrap(),
        slices::suite(&vectors).unwrap(),
        sharded::suite(&vectors).unwrap(),
    ];
    let failures: Vec<String> =
        suites.iter().flat_map(|suite| suite.failures().collect::<Vec<_>>()).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    let counts: Vec<usize> = suites.iter().map(Suite::vectors).collect();
    assert_eq!(counts, [vectors.files.len(), vectors.slices.len(), vectors.sharded.len()]);
    // More may be added.
    assert!(counts.iter().zip([400, 44, 9]).all(|(found, least)| *found >= least), "{counts:?}");
}

#[test]
fn verdicts_agree_with_kinds_and_name_real_codes() {
    let vectors = Vectors::load().unwrap();
    for vector in &vectors.files {
        assert!(!vector.category.is_empty(), "{}", vector.file);
        let accepted = vector.official == OfficialVerdict::Accept;
        assert_eq!(accepted, vector.kind != Kind::Invalid, "{}", vector.file);
        match &vector.strict {
            StrictVerdict::Accept => assert!(accepted, "{}", vector.file),
            StrictVerdict::Refuse { code, offset } => {
                assert!(ErrorKind::CODES.contains(&code.as_str()), "{}: {code}", vector.file);
                assert!(offset.is_none_or(|offset| offset <= vector.size), "{}", vector.file);
            }
        }
    }
}

/// The cheap ones of the recipes; `cargo run -p conformance -- --huge` runs all of them.
#[test]
fn headers_at_the_limits_are_judged_as_recorded() {
    let mut vectors = Vectors::load().unwrap();
    vectors.recipes.retain(|recipe| {
        ["header_100000001", "name_90_million", "metadata_one_value_90_million"]
            .contains(&recipe.name.as_str())
    });
    let suite = huge::suite(&vectors);
    assert_eq!(suite.vectors(), 3);
    assert_eq!(suite.failures().collect::<Vec<_>>(), Vec::<String>::new());
}
