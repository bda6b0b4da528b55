//! Which ranges are requested, how many at once, and what stays in memory.

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::thread;

use super::*;

#[test]
fn eight_sources_have_a_window_at_most() {
    let shared = Together::default();
    let new = |_| Buffered::new(vec![7; 1 << 20], Vec::new(), Some(shared.clone()));
    let sources: Vec<_> = (0..20).map(new).collect();
    for source in &sources {
        source.read_exact_at(500_000, &mut [0; 8]).unwrap();
    }
    let has_window = |source: &&Buffered<Vec<u8>>| !source.held().short.is_empty();
    assert_eq!(sources.iter().filter(has_window).count(), WINDOWS);
    // The ones that were read last; what another one had is read again.
    assert!(sources[12..].iter().all(|source| has_window(&source)));
    let mut out = [0; 8];
    sources[0].read_exact_at(500_000, &mut out).unwrap();
    assert_eq!(out, [7; 8]);
    assert!(has_window(&&sources[0]) && !has_window(&&sources[12]));
}

/// A source that takes its time, and remembers what it was asked for.
#[derive(Debug, Default)]
struct Slow {
    len: u64,
    /// From here on, reading fails.
    broken_at: Option<u64>,
    now: AtomicUsize,
    most: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<Range<u64>>>>,
}

impl ReadAt for Slow {
    fn total_len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        let end = offset + out.len() as u64;
        self.asked.lock().unwrap().push(offset..end);
        self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(20));
        self.now.fetch_sub(1, Ordering::SeqCst);
        if self.broken_at.is_some_and(|at| end > at) {
            return Err(Error::from(ErrorKind::Changed).into());
        }
        marked(offset, out.len()).for_each(|(idx, mark)| out[idx] = mark);
        Ok(())
    }
}

const MIB: u64 = 1 << 20;

/// Bytes of a range that tell where they are, by their place in it.
fn marked(offset: u64, len: usize) -> impl Iterator<Item = (usize, u8)> {
    let first = (offset.next_multiple_of(4_099) - offset) as usize;
    (first..len).step_by(4_099).map(move |idx| (idx, ((offset + idx as u64) / 4_099) as u8))
}

/// Ranges that a source was asked for.
type Asked = Arc<Mutex<Vec<Range<u64>>>>;

/// A file of 400 MiB, whose first 64 KiB are held; what it was asked for, and how much at once.
fn slow(shared: &Together, broken_at: Option<u64>) -> (Buffered<Slow>, Asked, Arc<AtomicUsize>) {
    let source = Slow { len: 400 * MIB, broken_at, ..Slow::default() };
    let (asked, most) = (Arc::clone(&source.asked), Arc::clone(&source.most));
    let mut beginning = vec![0; 65_536];
    marked(0, beginning.len()).for_each(|(idx, mark)| beginning[idx] = mark);
    (Buffered::new(source, beginning, Some(shared.clone())), asked, most)
}

/// Reads a range in steps.
fn go_through(file: &Buffered<Slow>, range: Range<u64>, step: u64) -> Result<u64, u64> {
    let mut out = vec![0; step as usize];
    let mut at = range.start;
    while at < range.end {
        let out = &mut out[..step.min(range.end - at) as usize];
        file.read_exact_at(at, out).map_err(|_| at)?;
        let is_right = marked(at, out.len()).all(|(idx, mark)| out[idx] == mark);
        assert!(is_right, "wrong bytes at {at}");
        at += out.len() as u64;
    }
    Ok(at)
}

fn bytes(asked: &Mutex<Vec<Range<u64>>>) -> u64 {
    asked.lock().unwrap().iter().map(|range| range.end - range.start).sum()
}

/// Whether as many as eight were requested at once; fewer, on a busy machine.
fn is_several(most: &AtomicUsize) -> bool {
    (3..=8).contains(&most.load(Ordering::SeqCst))
}

#[test]
fn a_reader_that_goes_on_gets_several_requests_at_once_and_no_byte_twice() {
    let (file, asked, most) = slow(&Together::default(), None);
    assert_eq!(go_through(&file, 0..400 * MIB, MIB), Ok(400 * MIB));
    assert!(is_several(&most));
    assert_eq!(bytes(&asked), 400 * MIB - 65_536);
    assert!(asked.lock().unwrap().iter().all(|range| range.end - range.start <= 8 * MIB + 65_536));
    assert!(asked.lock().unwrap().len() < 80, "{asked:?}");
}

#[test]
fn what_is_requested_ahead_is_bounded_by_what_was_read() {
    for read in [1, 2, 5, 20, 100] {
        let (file, asked, _) = slow(&Together::default(), None);
        go_through(&file, 100 * MIB..(100 + read) * MIB, MIB).unwrap();
        // Threads may not have begun.
        thread::sleep(Duration::from_millis(60));
        assert!(bytes(&asked) <= (read + (2 * read + 8).min(72)) * MIB, "{read}: {asked:?}");
    }
}

#[test]
fn a_range_that_will_be_read_is_requested_exactly() {
    let (file, asked, most) = slow(&Together::default(), None);
    file.will_read(30 * MIB..34 * MIB);
    go_through(&file, 30 * MIB..34 * MIB, MIB).unwrap();
    assert!(asked.lock().unwrap().iter().eq([&(30 * MIB..34 * MIB)]));
    // Another place meanwhile takes nothing away.
    file.will_read(100 * MIB..160 * MIB);
    for at in 100..160 {
        go_through(&file, at * MIB..(at + 1) * MIB, MIB).unwrap();
        file.read_exact_at(200 * MIB, &mut [0; 100]).unwrap();
    }
    assert_eq!(bytes(&asked), 64 * MIB + 65_536);
    assert!(is_several(&most));
}

#[test]
fn short_ranges_far_from_each_other_are_requested_once() {
    let (file, asked, _) = slow(&Together::default(), None);
    file.will_read(300 * MIB..300 * MIB + 320);
    for _ in 0..3 {
        for at in 0..10 {
            file.read_exact_at((100 + at) * MIB, &mut [0; 10]).unwrap();
        }
        // From its end to its beginning, it is one request.
        file.read_exact_at(300 * MIB + 200, &mut [0; 10]).unwrap();
        file.read_exact_at(300 * MIB, &mut [0; 10]).unwrap();
    }
    let windows = (100..110).map(|at| at * MIB..at * MIB + 65_536);
    let expected: Vec<_> = windows.chain(core::iter::once(300 * MIB..300 * MIB + 320)).collect();
    assert_eq!(*asked.lock().unwrap(), expected);
}

#[test]
fn a_range_that_was_requested_is_not_requested_with_the_next() {
    let (file, asked, _) = slow(&Together::default(), None);
    for (from, end) in [(0, 300), (200, 500), (500, 700)] {
        file.will_read(300 * MIB + from..300 * MIB + end);
        let mut out = vec![0; (end - from) as usize];
        file.read_exact_at(300 * MIB + from, &mut out).unwrap();
    }
    let expected = [0..300, 300..500, 500..700].map(|range| 300 * MIB + range.start..300 * MIB + range.end);
    assert_eq!(*asked.lock().unwrap(), expected);
}

#[test]
fn ranges_one_after_the_other_grow_together() {
    let (file, asked, most) = slow(&Together::default(), None);
    for at in (0..256).step_by(8) {
        file.will_read(at * MIB + 1_000..(at + 8) * MIB);
        go_through(&file, at * MIB + 1_000..(at + 8) * MIB, MIB).unwrap();
    }
    assert!(is_several(&most));
    assert!(bytes(&asked) <= (256 + 72) * MIB);
}

#[test]
fn a_long_read_is_several_requests() {
    let (file, asked, most) = slow(&Together::default(), None);
    go_through(&file, 7..100 * MIB + 7, 100 * MIB).unwrap();
    assert!(is_several(&most));
    assert_eq!(bytes(&asked), 100 * MIB + 7 - 65_536);
}

#[test]
fn an_error_is_told_where_the_reader_meets_it() {
    for step in [MIB, 100 * MIB] {
        let (file, ..) = slow(&Together::default(), Some(70 * MIB));
        let at = go_through(&file, 0..100 * MIB, step).unwrap_err();
        assert!(step > MIB || (60 * MIB..70 * MIB).contains(&at), "{at}");
        // What is before it can be read again.
        go_through(&file, 0..50 * MIB, MIB).unwrap();
    }
}

#[test]
fn files_of_one_client_have_their_share() {
    let shared = Together::default();
    let files: Vec<_> = (0..4).map(|_| slow(&shared, None)).collect();
    for at in 0..200 {
        for (file, ..) in &files {
            go_through(file, at * MIB..(at + 1) * MIB, MIB).unwrap();
        }
    }
    let most = |(.., most): &(_, _, Arc<AtomicUsize>)| most.load(Ordering::SeqCst);
    assert!(files.iter().map(most).sum::<usize>() <= 16, "{:?}", files.iter().map(most).collect::<Vec<_>>());
    assert!(files.iter().all(|file| bytes(&file.1) < 264 * MIB));
}

#[test]
fn files_that_were_left_give_their_pieces_back() {
    let shared = Together::default();
    let files: Vec<_> = (0..6).map(|_| slow(&shared, None)).collect();
    // Each is left in the middle, with pieces that no one takes.
    for (file, ..) in &files[..5] {
        go_through(file, 0..40 * MIB, MIB).unwrap();
    }
    let (file, asked, most) = &files[5];
    go_through(file, 0..400 * MIB, MIB).unwrap();
    assert!(is_several(most));
    assert_eq!(bytes(asked), 400 * MIB - 65_536);
    // One of them goes on.
    go_through(&files[4].0, 40 * MIB..100 * MIB, MIB).unwrap();
}
