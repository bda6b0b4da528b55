//! Times of formats, round by round.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::arrays::Arrays;
use super::formats::Format;
use crate::error::{CODE_IO, Failure};

/// Fewest and most rounds of a set in one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    pub(super) fewest: usize,
    pub(super) most: usize,
}

/// What one format takes, or why it is not measured.
pub(super) type Row = Result<Measured, String>;

/// Medians. Times are in seconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) bytes: u64,
    pub(super) rounds: usize,
    pub(super) write: f64,
    pub(super) read: f64,
    pub(super) read_one: f64,
}

impl Measured {
    /// The median over processes that measured the same format. `None` of no process.
    fn of_processes(all: &[Self]) -> Option<Self> {
        let over = |time: fn(&Self) -> f64| median(all.iter().map(time).collect());
        Some(Self {
            bytes: all.last()?.bytes,
            rounds: all.iter().map(|one| one.rounds).sum(),
            write: over(|one| one.write),
            read: over(|one| one.read),
            read_one: over(|one| one.read_one),
        })
    }
}

/// Joins the rows of processes that measured the same formats. `None` if one of them did not measure all.
pub(super) fn join(processes: &[Vec<Row>], n_formats: usize) -> Option<Vec<Row>> {
    let joined = |number: usize| {
        let rows: Option<Vec<&Row>> = processes.iter().map(|rows| rows.get(number)).collect();
        match rows?.into_iter().cloned().collect::<Result<Vec<Measured>, String>>() {
            Ok(all) => Measured::of_processes(&all).map(Ok),
            Err(why) => Some(Err(why)),
        }
    };
    (0..n_formats).map(joined).collect()
}

/// A format that still takes part.
struct Running {
    format: &'static Format,
    /// To write, to read, to read one array.
    times: [Vec<f64>; 3],
    bytes: u64,
    failure: Option<Failure>,
}

/// Lets every format write and read the arrays in turn, until the seconds of each are over. The rows are in the order of the formats.
///
/// # Errors
///
/// If old files cannot be removed. What stops one format is in its row.
pub(super) fn measure(
    formats: &[&'static Format],
    arrays: &Arrays,
    folder: &Path,
    seconds: f64,
    rounds: Rounds,
) -> Result<Vec<Row>, Failure> {
    let start =
        |format: &&'static Format| Running { format, times: Default::default(), bytes: 0, failure: None };
    let mut all: Vec<Running> = formats.iter().map(start).collect();
    let began = Instant::now();
    for round in 0..rounds.most {
        if round >= rounds.fewest && began.elapsed().as_secs_f64() >= seconds * formats.len() as f64 {
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
        writes.push(began.elapsed().as_secs_f64());
        let began = Instant::now();
        let all = read(arrays, path)?;
        reads.push(began.elapsed().as_secs_f64());
        if !arrays.are(&all) {
            return Err(differs());
        }
        drop(all);
        let began = Instant::now();
        let one = read_one(arrays, arrays.one(), path)?;
        ones.push(began.elapsed().as_secs_f64());
        if !arrays.is_one(&one) {
            return Err(differs());
        }
        self.bytes = fs::metadata(path).map_err(|error| Failure::new(CODE_IO, error.to_string()))?.len();
        Ok(())
    }

    fn finish(self) -> Row {
        if let Some(failure) = self.failure {
            return Err(failure.what().to_owned());
        }
        let rounds = self.times[0].len();
        let [write, read, read_one] = self.times.map(median);
        Ok(Measured { bytes: self.bytes, rounds, write, read, read_one })
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}
