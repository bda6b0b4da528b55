//! The matrix itself, and the vectors it stands on.

use std::collections::BTreeSet;
use std::path::Path;

use conformance::manifest::{self, Kind, Manifest, OfficialVerdict, StrictVerdict};
use conformance::matrix::Suite;
use conformance::{digest, huge, reading, sharded, slices};
use st_core::ErrorKind;

#[test]
fn every_cell_is_what_the_manifests_say() {
    let manifest = Manifest::load().unwrap();
    let suites = [
        reading::suite(&manifest).unwrap(),
        slices::suite(&manifest).unwrap(),
        sharded::suite(&manifest).unwrap(),
    ];
    let failures: Vec<String> =
        suites.iter().flat_map(|suite| suite.failures().collect::<Vec<_>>()).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    let vectors: Vec<usize> = suites.iter().map(Suite::vectors).collect();
    assert_eq!(vectors, [400, 44, 9]);
}

#[test]
fn files_are_the_recorded_ones_and_none_is_unrecorded() {
    let manifest = Manifest::load().unwrap();
    let mut known = BTreeSet::new();
    for vector in &manifest.files {
        let file = manifest::read(&vector.file).unwrap();
        assert_eq!((file.len() as u64, digest::sha256_hex(&file)), (vector.size, vector.sha256.clone()));
        assert!(known.insert(vector.file.clone()), "{} is listed twice", vector.file);
    }
    for dir in ["valid", "quirk", "invalid", "own/valid", "own/quirk", "own/invalid"] {
        for file in manifest::list(dir).unwrap() {
            assert!(known.contains(&format!("{dir}/{file}")), "{dir}/{file} is in no manifest");
        }
    }
}

#[test]
fn verdicts_agree_with_kinds_and_name_real_codes() {
    let manifest = Manifest::load().unwrap();
    for vector in &manifest.files {
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

#[test]
fn manifests_name_no_place_outside_the_vectors() {
    for file in ["MANIFEST.json", "OWN.json", "verdicts.json"] {
        let text = String::from_utf8(manifest::read(file).unwrap()).unwrap();
        for place in ["/home", "/root", "/tmp", "/usr", "://"] {
            assert!(!text.contains(place), "{file} mentions {place}");
        }
    }
    assert!(Path::new(&manifest::folder("dtypes")).join("small-floats.json").is_file());
}

/// The cheap ones of the recipes; `cargo run -p conformance -- --huge` runs all of them.
#[test]
fn headers_at_the_limits_are_judged_as_recorded() {
    let mut manifest = Manifest::load().unwrap();
    manifest.recipes.retain(|recipe| {
        ["header_100000001", "name_90_million", "metadata_one_value_90_million"]
            .contains(&recipe.name.as_str())
    });
    let suite = huge::suite(&manifest);
    assert_eq!(suite.vectors(), 3);
    assert_eq!(suite.failures().collect::<Vec<_>>(), Vec::<String>::new());
}
