//! `check`: what we write, read by each peer and compared bit for bit; then what the peer writes, read by us.

mod metadata;
mod protected;
mod samples;
mod tensors;

use std::fs;
use std::path::{Path, PathBuf};

use apr_container::{Compression, SaveOptions};

use self::samples::Sample;
use crate::peers::{PEERS, Peer};

/// Runs the rows whose names contain one of `words`, or all; fails if a single file was not read as it was meant.
pub(crate) fn run(words: &[&str]) -> Result<String, String> {
    let folder = Folder::new()?;
    let wanted = |row: &str| words.is_empty() || words.iter().any(|word| row.contains(word));
    let mut tally = Tally::default();
    println!("| what | {} |", PEERS.map(|peer| peer.name).join(" | "));
    println!("|---|{}", "---:|".repeat(PEERS.len()));
    for sample in samples::all()?.iter().filter(|sample| wanted(&sample.name())) {
        let cells = PEERS.map(|peer| match sample.since <= peer.layout {
            true => tally.cell(model(sample, &peer, &folder.0)),
            false => "-".to_owned(),
        });
        println!("| {} | {} |", sample.name(), cells.join(" | "));
    }
    if wanted(metadata::ROW) {
        let cells = PEERS.map(|peer| tally.cell(metadata::check(&peer, &folder.0)));
        println!("| {} | {} |", metadata::ROW, cells.join(" | "));
    }
    for lock in protected::Lock::ALL.into_iter().filter(|lock| wanted(lock.row())) {
        let cells = PEERS.map(|peer| tally.cell(protected::check(lock, &peer, &folder.0)));
        println!("| {} | {} |", lock.row(), cells.join(" | "));
    }
    let mut of_apr_format = |row: &str, outcomes: &dyn Fn(&Path) -> Vec<Outcome>| {
        if wanted(row) {
            println!("| {row} | - | - | {} |", tally.cell(outcomes(&folder.0)));
        }
    };
    tensors::ROWS.iter().for_each(|(row, outcomes)| of_apr_format(row, outcomes));
    match tally.failures.is_empty() {
        true => Ok(format!("{} comparisons, no difference", tally.passed)),
        false => {
            tally.failures.iter().for_each(|failure| println!("{failure}"));
            Err(format!(
                "{} of {} comparisons failed",
                tally.failures.len(),
                tally.passed + tally.failures.len()
            ))
        }
    }
}

/// One comparison; the error says all there is to know.
type Outcome = Result<(), String>;

#[derive(Default)]
struct Tally {
    passed: usize,
    failures: Vec<String>,
}

impl Tally {
    /// How many comparisons passed, and how many did not.
    fn cell(&mut self, outcomes: Vec<Outcome>) -> String {
        let passed = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        let failed = outcomes.len() - passed;
        self.passed += passed;
        self.failures.extend(outcomes.into_iter().filter_map(Outcome::err));
        if failed == 0 { format!("{passed} ok") } else { format!("{passed} ok, {failed} FAILED") }
    }
}

/// One model in the peer's layout and every compression the peer knows, there and back.
fn model(sample: &Sample, peer: &Peer, folder: &Path) -> Vec<Outcome> {
    let compressions =
        Compression::KNOWN.into_iter().filter(|kind| *kind != Compression::LZ4 || peer.knows_lz4());
    let outcome = |(compression, step): (Compression, Step)| {
        step(sample, peer, compression, folder)
            .map_err(|why| format!("{}, {}, {compression}: {why}", sample.name(), peer.name))
    };
    compressions
        .flat_map(|compression| [(compression, there as Step), (compression, back)])
        .map(outcome)
        .collect()
}

type Step = fn(&Sample, &Peer, Compression, &Path) -> Outcome;

/// We write, the peer reads and writes the payload again.
fn there(sample: &Sample, peer: &Peer, compression: Compression, folder: &Path) -> Outcome {
    let path = folder.join("ours.apr");
    (sample.save)(&path, options(peer, compression))?;
    let stored = fs::read(&path).map_err(|error| error.to_string())?[20];
    if stored != compression.0 {
        return Err(format!("our header says compression {stored}"));
    }
    let theirs = peer.load(sample.rust_type, &path)?.payload()?;
    same("the peer's payload", &(sample.payload)(peer.layout)?, &theirs)
}

/// The peer writes what it has read, and we read that.
fn back(sample: &Sample, peer: &Peer, compression: Compression, folder: &Path) -> Outcome {
    let (ours, theirs) = (folder.join("ours.apr"), folder.join("theirs.apr"));
    (sample.save)(&ours, options(peer, Compression::None))?;
    peer.load(sample.rust_type, &ours)?.save(&theirs, compression.0)?;
    let expected = (sample.payload)(peer.layout)?;
    same("our payload", &expected, &(sample.reread)(&theirs, peer.layout)?)?;
    same("our payload, of no type named,", &expected, &samples::reread_any(&theirs, peer.layout)?)
}

fn options(peer: &Peer, compression: Compression) -> SaveOptions<'static> {
    SaveOptions::default().with_compression(compression).with_layout(peer.layout).with_created_at(0)
}

fn same(what: &str, expected: &[u8], found: &[u8]) -> Outcome {
    if expected == found {
        return Ok(());
    }
    let at = expected.iter().zip(found).take_while(|(a, b)| a == b).count();
    Err(format!("{what} has {} bytes, not {}, and differs at byte {at}", found.len(), expected.len()))
}

/// A folder of this run alone, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("apr-peers-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_with_its_place() {
        assert_eq!(same("it", b"abc", b"abc"), Ok(()));
        let told = same("it", b"abc", b"abd").unwrap_err();
        assert_eq!(told, "it has 3 bytes, not 3, and differs at byte 2");
        assert!(same("it", b"abc", b"ab").unwrap_err().contains("has 2 bytes, not 3"));
    }

    #[test]
    fn a_failed_comparison_is_counted_and_kept() {
        let mut tally = Tally::default();
        assert_eq!(tally.cell(vec![Ok(()), Err("why".to_owned())]), "1 ok, 1 FAILED");
        assert_eq!((tally.passed, tally.failures), (1, vec!["why".to_owned()]));
    }

    #[test]
    fn a_peer_refuses_the_layout_of_another_release() {
        let folder = Folder::new().unwrap();
        let samples = samples::all().unwrap();
        let tree = samples.iter().find(|sample| sample.rust_type == "DecisionTreeClassifier").unwrap();
        let [_, older, newer] = PEERS;
        let mut impostor = older;
        impostor.layout = newer.layout;
        assert!(model(tree, &older, &folder.0).iter().all(Outcome::is_ok));
        let many = samples.iter().rfind(|sample| sample.rust_type == "DecisionTreeClassifier").unwrap();
        assert!(model(many, &impostor, &folder.0).iter().all(Outcome::is_err));
    }
}
