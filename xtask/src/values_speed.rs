//! `values-speed`: `apr check --values` beside reading the same file.

use core::time::Duration;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::thread::{self, available_parallelism};
use std::time::Instant;

use crate::process::{command, stdout_of};
use crate::task::{Failure, Outcome, Session, skipped};
use crate::workspace::build_release;

/// Element types and their bytes.
const DTYPES: [(&str, usize); 6] =
    [("F64", 8), ("F32", 4), ("BF16", 2), ("F16", 2), ("F8_E4M3", 1), ("I8", 1)];
const TENSORS: usize = 16;
const MIB: usize = 1 << 20;

/// Prints the medians of both, and the median of the ratios of each round.
pub(crate) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let numbers: Result<Vec<usize>, _> = args.iter().map(|arg| arg.parse()).collect();
    let (rounds, gib) = match numbers.as_deref() {
        Ok([]) => (9, 2),
        Ok(&[rounds]) if rounds > 0 => (rounds, 2),
        Ok(&[rounds, gib]) if rounds > 0 && gib > 0 => (rounds, gib),
        _ => return Err(Failure::Usage("`values-speed` takes a number of rounds and one of GiB".to_owned())),
    };
    if cfg!(not(unix)) {
        return Err(skipped("needs Unix"));
    }
    let apr = build_release(session)?;
    let folder = std::env::var_os("BENCH_DIR").map_or_else(|| session.scratch("values-speed"), PathBuf::from);
    let failed = |error: io::Error| Failure::from(format!("{}: {error}", folder.display()));
    fs::create_dir_all(&folder).map_err(failed)?;
    let path = folder.join("values.safetensors");
    println!("{:<8} {:>13} {:>15} {:>6}", "type", "reading, GB/s", "checking, GB/s", "ratio");
    for (dtype, size) in DTYPES {
        write(&path, dtype, size, gib << 10).map_err(failed)?;
        let len = fs::metadata(&path).map_err(failed)?.len();
        let mut times = Vec::new();
        for _ in 0..rounds {
            let read = read(&path, len).map_err(failed)?;
            let began = Instant::now();
            stdout_of(command(session, &apr, &["check", "--values"]).arg(&path))?;
            times.push((read, began.elapsed()));
        }
        let speed = |time: fn(&(Duration, Duration)) -> Duration| {
            len as f64 / median(times.iter().map(|times| time(times).as_secs_f64())) / 1e9
        };
        let ratio = median(times.iter().map(|(read, check)| read.as_secs_f64() / check.as_secs_f64()));
        println!("{dtype:<8} {:>13.2} {:>15.2} {ratio:>6.2}", speed(|times| times.0), speed(|times| times.1));
    }
    fs::remove_file(&path).map_err(failed)
}

/// A file of small finite values of one type.
fn write(path: &Path, dtype: &str, size: usize, mib: usize) -> io::Result<()> {
    let len = mib / TENSORS * MIB;
    let tensor = |idx: usize| {
        let (begin, end) = (idx * len, (idx + 1) * len);
        format!(
            "\"t{idx}\":{{\"dtype\":\"{dtype}\",\"shape\":[{}],\"data_offsets\":[{begin},{end}]}}",
            len / size
        )
    };
    let mut header = format!("{{{}}}", (0..TENSORS).map(tensor).collect::<Vec<_>>().join(","));
    header += &" ".repeat(header.len().next_multiple_of(8) - header.len());
    let mut state = 1_u64;
    let block: Vec<u8> = (0..MIB)
        .map(|at| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let byte = (state >> 32) as u8;
            // Sign and exponent.
            if at % size == size - 1 { byte & 0x80 | 0x3b } else { byte }
        })
        .collect();
    let mut file = BufWriter::with_capacity(MIB, File::create(path)?);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    (0..TENSORS * len / MIB).try_for_each(|_| file.write_all(&block))?;
    file.flush()
}

/// How long all cores take to read a file, each a part of it.
fn read(path: &Path, len: u64) -> io::Result<Duration> {
    let n_threads = available_parallelism().map_or(1, usize::from) as u64;
    let part = |number: u64| -> io::Result<()> {
        let mut file = File::open(path)?;
        let (begin, end) = (len * number / n_threads, len * (number + 1) / n_threads);
        file.seek(SeekFrom::Start(begin))?;
        let mut rest = file.take(end - begin);
        let mut bytes = vec![0; MIB / 4];
        while rest.read(&mut bytes)? > 0 {}
        Ok(())
    };
    let began = Instant::now();
    thread::scope(|scope| {
        let readers: Vec<_> = (0..n_threads).map(|number| scope.spawn(move || part(number))).collect();
        readers.into_iter().try_for_each(|reader| reader.join().expect("reading does not panic"))
    })?;
    Ok(began.elapsed())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
