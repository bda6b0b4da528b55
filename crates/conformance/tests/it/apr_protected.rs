//! Encrypted and signed files of the peers.

use conformance::apr::manifest::Manifest;
use conformance::apr::protected;

#[test]
fn every_protected_file_of_the_peers_is_opened_and_no_changed_one() {
    let suite = protected::suite(&Manifest::load().unwrap()).unwrap();
    assert_eq!(suite.failures().collect::<Vec<_>>(), [] as [&str; 0]);
    assert_eq!(suite.vectors(), 26 + 21 + 33);
}
