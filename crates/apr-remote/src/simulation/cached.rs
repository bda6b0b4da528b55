//! The simulated network with the block cache.

use core::time::Duration;
use std::fs;

use super::*;
use crate::blocks::BlockCache;
use crate::blocks::tests::TestFolder;

impl World {
    fn cached(
        folder: &TestFolder,
        limit: u64,
        seed: u64,
        faulty: u64,
        faults: &[Fault],
        versions: &[Arc<Vec<u8>>; 2],
    ) -> Self {
        let cache = BlockCache::new(folder.path().to_owned(), limit);
        Self::with_cache(versions, seed, faulty, faults, Some(cache))
    }
}

/// Requests, bytes, and blocks read, written and discarded.
fn costs(world: &World) -> (u64, u64, [u64; 3]) {
    let counts = world.client.counts();
    (counts.requests, counts.bytes, [counts.blocks_read, counts.blocks_written, counts.blocks_discarded])
}

/// Reads the header and some tensors.
fn read(world: &World, table: &[u8]) -> Result<(), read_at::Error> {
    let file = world.open()?;
    let mut out = vec![0; 3 << 20];
    for (offset, len) in
        [(0, 100), (1 << 30, 400), (2 << 30, 3 << 20), ((2 << 30) + 1_000, 70_000), (LEN - 9, 9)]
    {
        file.read_exact_at(offset, &mut out[..len])?;
        for (number, piece) in (0..).zip(out[..len].chunks(1_000_000)) {
            assert!(
                content(table, offset + number * 1_000_000, piece.len()) == piece,
                "wrong bytes at {offset}"
            );
        }
    }
    Ok(())
}

#[test]
fn the_second_run_sends_one_condition_and_gets_no_bytes() {
    let (folder, versions) = (TestFolder::new(), [table(1), table(2)]);
    let world = || World::cached(&folder, 1 << 30, 7, 0, &FAULTS, &versions);
    let (first, second) = (world(), world());
    read(&first, &versions[0]).unwrap();
    let bytes = 3 * 65_536 - 65_536 + (3 << 20) + 9;
    let (requests, found, blocks) = costs(&first);
    assert_eq!(
        (requests, blocks),
        (5, [1, 6, 0]),
        "two to open it, and one for each range that is not there"
    );
    assert!(found >= bytes, "{found}");
    read(&second, &versions[0]).unwrap();
    let (requests, bytes, [read_blocks, written, discarded]) = costs(&second);
    assert_eq!((requests, bytes, written, discarded), (2, 0, 0, 0), "that of the hub and that of its store");
    assert!(read_blocks >= 6);
    // The object has changed.
    let third = world();
    third.state.lock().unwrap().version = 1;
    read(&third, &versions[1]).unwrap();
    assert_eq!(costs(&third), (5, found, [2, 6, 0]));
    // And back.
    let fourth = world();
    read(&fourth, &versions[0]).unwrap();
    assert_eq!((costs(&fourth).0, costs(&fourth).2[1]), (2, 0), "its blocks are still there");
}

#[test]
fn without_a_strong_validator_nothing_is_kept() {
    let (folder, versions) = (TestFolder::new(), [table(1), table(2)]);
    for _ in 0..2 {
        let world = World::cached(&folder, 1 << 30, 7, 0, &FAULTS, &versions);
        world.state.lock().unwrap().script = vec![Fault::Elsewhere, Fault::Weak];
        world.open().unwrap();
        assert_eq!(costs(&world), (2, 65_536, [0, 0, 0]));
    }
    assert_eq!(folder.files().len(), 0);
}

#[test]
fn a_304_that_proves_nothing_is_asked_again() {
    let (folder, versions) = (TestFolder::new(), [table(1), table(2)]);
    let world = || World::cached(&folder, 1 << 30, 7, 0, &FAULTS, &versions);
    world().open().unwrap();
    for fault in [Fault::Weak, Fault::Untagged] {
        let world = world();
        world.state.lock().unwrap().script = vec![Fault::Elsewhere, fault];
        let file = world.open().unwrap();
        assert_eq!((costs(&world).0, costs(&world).1), (3, 65_536), "{fault:?}");
        assert_eq!(file.version(), Some("\"first\""));
    }
}

#[test]
fn a_version_that_the_server_contradicts_is_forgotten() {
    let (folder, versions) = (TestFolder::new(), [table(1), table(2)]);
    let world = || World::cached(&folder, 1 << 30, 7, 0, &FAULTS, &versions);
    let first = world();
    first.state.lock().unwrap().script = vec![Fault::Elsewhere, Fault::WrongTotal];
    assert_eq!(first.open().unwrap().total_len(), LEN + 1);
    let second = world();
    let error = read(&second, &versions[0]).unwrap_err();
    assert_eq!(crate::error::remote_error(&error).map(Error::code), Some("rm-changed"));
    read(&world(), &versions[0]).unwrap();
}

#[test]
fn copies_use_blocks_and_keep_none() {
    let (folder, versions) = (TestFolder::new(), [table(1), table(2)]);
    let world = || World::cached(&folder, 1 << 30, 7, 0, &FAULTS, &versions);
    let first = world();
    first.open().unwrap().read_exact_at(5 << 20, &mut vec![0; 4 << 20]).unwrap();
    let second = world();
    let mut at = 1_u64 << 20;
    let copied = second.open().unwrap().read_in_order(at..20 << 20, 4, |bytes| {
        for piece in bytes.chunks(1_000_000) {
            assert!(content(&versions[0], at, piece.len()) == piece, "{at}");
            at += piece.len() as u64;
        }
        Ok::<(), read_at::Error>(())
    });
    copied.unwrap();
    assert_eq!(at, 20 << 20);
    assert_eq!((costs(&second).1, costs(&second).2), (15 << 20, [5, 0, 0]));
}

/// Damages a file of the cache, or exchanges it for another one.
fn damage(folder: &TestFolder, random: &mut u64) {
    let files = folder.files();
    if files.is_empty() {
        return;
    }
    let mut pick = || files[(next(random) % files.len() as u64) as usize].clone();
    let (path, other) = (pick(), pick());
    let Ok(mut bytes) = fs::read(&path) else { return };
    let at = (next(random) % bytes.len().max(1) as u64) as usize;
    match next(random) % 5 {
        0 => bytes.truncate(at),
        1 => bytes[at..].fill(0),
        // A file may have been emptied before.
        2 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (next(random) % 8)),
        3 => drop(fs::rename(&path, &other)),
        _ => bytes = fs::read(other).unwrap_or_default(),
    }
    if path.exists() {
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn random_faults_and_damaged_blocks_never_give_wrong_bytes() {
    let schedules: u64 = std::env::var("APR_REMOTE_SCHEDULES").map_or(400, |count| count.parse().unwrap());
    let (folder, versions) = (TestFolder::new(), [table(1), table(2)]);
    let (mut whole, mut totals) = (0, [0; 3]);
    for seed in 0..schedules {
        let (faulty, faults): (u64, &[Fault]) =
            if seed % 2 == 0 { (seed % 20, &PASSING) } else { (1 + seed % 12, &FAULTS) };
        let world = World::cached(&folder, 24 << 20, seed, faulty, faults, &versions);
        world.state.lock().unwrap().version = (seed / 7 % 2) as usize;
        // Most tensors are those of runs before.
        let read = read_some(&world, &versions, seed, seed % 3);
        whole += u64::from(read.is_ok());
        if let Err(error) = read {
            let error = crate::error::remote_error(&error).expect("an error of ours");
            let is_expected = ["rm-gave-up", "rm-denied", "rm-changed"].contains(&error.code());
            assert!(faults.len() == FAULTS.len() || is_expected, "seed {seed}: {error}");
        }
        assert!(world.client.block_cache_problem().is_none(), "{:?}", world.client.block_cache_problem());
        let (_, _, blocks) = costs(&world);
        totals.iter_mut().zip(blocks).for_each(|(total, blocks)| *total += blocks);
        let state = world.state.lock().unwrap();
        assert_eq!(state.leaks, 0, "credentials left their host: seed {seed}");
        let mut random = seed;
        for _ in 0..4 {
            damage(&folder, &mut random);
        }
        let hours = Duration::from_micros(world.clock.now.load(Ordering::Relaxed)).as_secs() / 3_600;
        assert!(hours < 24 && state.requests < 5_000, "seed {seed}");
    }
    let [read, written, discarded] = totals;
    assert!(
        whole > schedules / 3 && read > written && discarded > schedules / 4,
        "{whole} whole, {totals:?}"
    );
}
