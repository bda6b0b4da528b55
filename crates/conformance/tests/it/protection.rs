//! The claims of `docs/threat-model.md` are what is measured.

use std::path::Path;
use std::{env, fs};

use conformance::protection::{Family, attacks, claims, sealed, v1, v2};

fn check(name: &str, family: &Family) {
    let ((claims, wrong_claims), (attacks, wrong_attacks)) = (claims(family), attacks(family));
    let wrong = [wrong_claims, wrong_attacks].concat();
    eprintln!("{name}\n{claims}\n{attacks}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/threat-model.md");
    let page = fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {name}:begin -->\n"), format!("<!-- {name}:end -->"));
    let (before, rest) = page.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    let expected = format!("{before}{begin}{claims}\n{attacks}{end}{after}");
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, expected).unwrap();
    } else {
        assert_eq!(page, expected, "run the tests with UPDATE_SNAPSHOTS=1");
    }
}

#[test]
fn version_1() {
    check("v1", &v1());
}

#[test]
fn version_2() {
    check("v2", &v2());
}

#[test]
fn sealed_files() {
    check("sealed", &sealed());
}
