//! Times of formats, round by round.

use core::time::Duration;
use std::fs;
use std::path::Path;
use std::time::Instant;

use super::arrays::Arrays;
use super::formats::Format;
use crate::error::{CODE_IO, Failure};

/// Fewest and most rounds of a set.
const ROUNDS: [usize; 2] = [3, 1001];

/// What one format takes.
pub(super) struct Row {
    pub(super) format: &'static Format,
    /// Why it is not measured, or the measurement.
    pub(super) measured: Result<Measured, Failure>,
}

/// Medians.
pub(super) struct Measured {
    pub(super) bytes: u64,
    pub(super) rounds: usize,
    pub(super) write: Duration,
    pub(super) read: Duration,
    pub(super) read_one: Duration,
}

/// A format that still takes part.
struct Running {
    format: &'static Format,
    times: [Vec<Duration>; 3],
    bytes: u64,
    failure: Option<Failure>,
}

/// Lets every format write and read the arrays in turn, until the seconds of each are over.
///
/// # Errors
///
/// If old files cannot be removed. What stops one format is in its row.
pub(super) fn measure(
    formats: &[&'static Format],
    arrays: &Arrays,
    folder: &Path,
    seconds: f64,
) -> Result<Vec<Row>, Failure> {
    let start =
        |format: &&'static Format| Running { format, times: Default::default(), bytes: 0, failure: None };
    let mut all: Vec<Running> = formats.iter().map(start).collect();
    let [fewest, most] = ROUNDS;
    let began = Instant::now();
    for round in 0..most {
        if round >= fewest && began.elapsed().as_secs_f64() >= seconds * formats.len() as f64 {
            break;
        }
        // Another format begins each round: what the kernel still does for a large file falls on all that follow it in turn.
        let (end, begin) = all.split_at_mut(round % formats.len().max(1));
        for running in begin.iter_mut().chain(end).filter(|running| running.failure.is_none()) {
            let path = folder.join(running.format.name);
            running.failure = running.round(arrays, &path).err();
            // Outside of the times, and before the next one needs the space.
            if path.exists() {
                fs::remove_file(&path)
                    .map_err(|error| Failure::new(CODE_IO, error.to_string()).in_file(&path))?;
            }
        }
    }
    Ok(all.into_iter().map(Running::finish).collect())
}

impl Running {
    fn round(&mut self, arrays: &Arrays, path: &Path) -> Result<(), Failure> {
        let Format { write, read, read_one, .. } = *self.format;
        let differs = || Failure::new(CODE_IO, "what is read is not what was written");
        let [writes, reads, ones] = &mut self.times;
        let began = Instant::now();
        write(arrays, path)?;
        writes.push(began.elapsed());
        let began = Instant::now();
        let all = read(arrays, path)?;
        reads.push(began.elapsed());
        if !arrays.are(&all) {
            return Err(differs());
        }
        drop(all);
        let began = Instant::now();
        let one = read_one(arrays, arrays.one(), path)?;
        ones.push(began.elapsed());
        if !arrays.is_one(&one) {
            return Err(differs());
        }
        self.bytes = fs::metadata(path).map_err(|error| Failure::new(CODE_IO, error.to_string()))?.len();
        Ok(())
    }

    fn finish(self) -> Row {
        let rounds = self.times[0].len();
        let [write, read, read_one] = self.times.map(median);
        let measured = Measured { bytes: self.bytes, rounds, write, read, read_one };
        Row { format: self.format, measured: self.failure.map_or(Ok(measured), Err) }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
