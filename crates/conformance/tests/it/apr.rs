//! The `.apr` matrix, and the vectors it stands on.

use std::collections::BTreeSet;
use std::fs;

use apr_container::ErrorKind;
use conformance::apr::manifest::{self, Manifest, Verdicts};
use conformance::apr::{exports, hostile, models, v1, v2};
use conformance::digest;
use conformance::manifest::{StrictVerdict as Verdict, folder};
use conformance::matrix::Suite;

#[test]
fn every_cell_is_what_the_manifest_says() {
    let manifest = Manifest::load().unwrap();
    let suites = [
        v1::suite(&manifest).unwrap(),
        models::suite(&manifest).unwrap(),
        exports::suite(&manifest).unwrap(),
        v2::suite(&manifest).unwrap(),
        hostile::suite(&manifest).unwrap(),
    ];
    let failures: Vec<String> =
        suites.iter().flat_map(|suite| suite.failures().collect::<Vec<_>>()).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    let vectors: Vec<usize> = suites.iter().map(Suite::vectors).collect();
    assert_eq!(vectors, [205, 205, 26, 10, manifest.hostile.len()]);
    // More may be added.
    assert!(manifest.hostile.len() >= 39);
    assert_eq!(manifest.files.len(), 205 + 26 + 10);
}

#[test]
fn files_are_the_recorded_ones_and_none_is_unrecorded() {
    let manifest = Manifest::load().unwrap();
    let files = manifest.files.iter().map(|file| (&file.name, file.size, &file.sha256));
    let hostile = manifest.hostile.iter().map(|file| (&file.name, file.size, &file.sha256));
    let mut known: BTreeSet<&str> =
        ["README.md", "make_manifest.py", "manifest.json", "verdicts.json", "hostile"].into();
    for (name, size, sha256) in files.chain(hostile) {
        let bytes = manifest::read(name).unwrap();
        assert_eq!((bytes.len() as u64, digest::sha256_hex(&bytes)), (size, sha256.clone()), "{name}");
        assert!(known.insert(name), "{name} is listed twice");
    }
    for dir in ["", "hostile/"] {
        for entry in fs::read_dir(folder("apr").join(dir)).unwrap() {
            let name = format!("{dir}{}", entry.unwrap().file_name().to_str().unwrap());
            assert!(known.contains(name.as_str()), "{name} is in no manifest");
        }
    }
}

/// Our verdicts are those the manifest suggests.
#[test]
fn verdicts_agree_with_what_a_reader_should_do() {
    let manifest = Manifest::load().unwrap();
    for vector in &manifest.hostile {
        let name = &vector.name;
        let Verdicts { load, inspect } = &vector.strict;
        let compat = &vector.compat;
        for verdict in [load, inspect, &compat.load, &compat.inspect] {
            if let Verdict::Refuse { code, offset } = verdict {
                let codes = [ErrorKind::CODES, apr_container::v2::ErrorKind::CODES].concat();
                assert!(codes.contains(&code.as_str()), "{name}: {code}");
                assert!(offset.is_none_or(|offset| offset <= vector.size), "{name}");
            }
        }
        // Invalid metadata are an error only for readers that parse them; other implementations load a model without them.
        let of_metadata = name.ends_with("_inspect.bin");
        let accepted = |verdict: &Verdict| *verdict == Verdict::Accept;
        let as_stated = match vector.suggested.as_str() {
            "accept" => [load, inspect, &compat.load, &compat.inspect].into_iter().all(accepted),
            "reject" if of_metadata => ![load, inspect, &compat.inspect].into_iter().any(accepted),
            "reject" => !accepted(load) && !accepted(&compat.load),
            // Without a way to decrypt its tensors a file can only be described.
            "reject-strict" if name.contains("ENCRYPTED") => !accepted(load) && accepted(&compat.inspect),
            "reject-strict" | "accept-as-untrusted" => !accepted(load) && accepted(&compat.load),
            "implementation-choice" => !accepted(load) && accepted(&compat.load) && accepted(&compat.inspect),
            _ => false,
        };
        assert!(as_stated, "{name}: {}", vector.suggested);
    }
}

#[test]
fn manifests_name_no_place_outside_the_vectors() {
    for file in ["manifest.json", "verdicts.json", "README.md", "make_manifest.py"] {
        let text = String::from_utf8(manifest::read(file).unwrap()).unwrap();
        for place in ["/home", "/root", "/tmp", "/usr", "://"] {
            assert!(!text.contains(place), "{file} mentions {place}");
        }
    }
}
