//! The `.apr` matrix and its vectors.

use apr_container::ErrorKind;
use conformance::apr::vectors::{Vectors, Verdicts};
use conformance::apr::{exports, hostile, models, v1, v2};
use conformance::matrix::Suite;
use conformance::vectors::StrictVerdict as Verdict;

#[test]
fn every_cell_is_what_the_sidecars_say() {
    let vectors = Vectors::load().unwrap();
    let suites = [
        v1::suite(&vectors).unwrap(),
        models::suite(&vectors).unwrap(),
        exports::suite(&vectors).unwrap(),
        v2::suite(&vectors).unwrap(),
        hostile::suite(&vectors).unwrap(),
    ];
    let failures: Vec<String> =
        suites.iter().flat_map(|suite| suite.failures().collect::<Vec<_>>()).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    let counts: Vec<usize> = suites.iter().map(Suite::vectors).collect();
    assert_eq!(counts, [205, 205, 26, 10, vectors.hostile.len()]);
    // More may be added.
    assert!(vectors.hostile.len() >= 39);
    assert_eq!(vectors.files.len(), 205 + 26 + 10);
}

/// Our verdicts are those the sidecars suggest.
#[test]
fn verdicts_agree_with_what_a_reader_should_do() {
    let vectors = Vectors::load().unwrap();
    for vector in &vectors.hostile {
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
