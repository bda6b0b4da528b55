//! Several writers and readers of one name.

use core::sync::atomic::{AtomicBool, Ordering};
use std::fs;
use std::thread;

use durable_file::{read, write};

use crate::scratch::Scratch;

const SAVES: usize = 50;

/// Content that shows whose it is and whether it is whole.
fn content(writer: usize, save: usize) -> Vec<u8> {
    let len = 1 + (writer * 7919 + save * 104_729) % 50_000;
    let mut bytes = vec![(writer * SAVES + save) as u8; len];
    bytes.extend_from_slice(&(len as u64).to_le_bytes());
    bytes
}

fn is_whole(bytes: &[u8]) -> bool {
    let Some((body, len)) = bytes.split_last_chunk::<8>() else { return false };
    u64::from_le_bytes(*len) == body.len() as u64 && body.iter().all(|byte| *byte == body[0])
}

#[test]
fn four_writers_and_a_reader_meet_whole_contents_only() {
    let scratch = Scratch::new();
    let path = scratch.join("m.bin");
    write(&path, &content(0, 0)).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0_u32;
            while !done.load(Ordering::Relaxed) {
                assert!(is_whole(&read(&path, 1 << 20).unwrap()), "torn after {reads} reads");
                reads += 1;
            }
        });
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let path = &path;
                scope.spawn(move || {
                    for save in 0..SAVES {
                        write(path, &content(writer, save)).unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert!(is_whole(&fs::read(&path).unwrap()));
    assert_eq!(scratch.names(), ["m.bin"]);
}
