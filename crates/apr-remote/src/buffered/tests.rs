//! What stays in memory.

use super::*;

#[test]
fn eight_sources_have_a_window_at_most() {
    let shared = Together::default();
    let new = |_| Buffered::new(vec![7; 1 << 20], Vec::new(), Some(shared.clone()));
    let sources: Vec<_> = (0..20).map(new).collect();
    for source in &sources {
        source.read_exact_at(500_000, &mut [0; 8]).unwrap();
    }
    let has_window = |source: &&Buffered<Vec<u8>>| !source.held().window.is_empty();
    assert_eq!(sources.iter().filter(has_window).count(), WINDOWS);
    // The ones that were read last; what another one had is read again.
    assert!(sources[12..].iter().all(|source| has_window(&source)));
    let mut out = [0; 8];
    sources[0].read_exact_at(500_000, &mut out).unwrap();
    assert_eq!(out, [7; 8]);
    assert!(has_window(&&sources[0]) && !has_window(&&sources[12]));
}
