//! A small harness: contenders take turns in one process, so that whatever else the machine does hits all
//! of them, and medians and ratios of the same round are what is printed.

mod files;

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

pub use files::{checkpoint, names, sparse_file};

/// One implementation of a row.
pub struct Contender<'a> {
    name: &'static str,
    work: Box<dyn FnMut() + 'a>,
}

impl std::fmt::Debug for Contender<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contender").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Names an implementation; what it returns is kept from being optimised away, and dropped within the time.
pub fn contender<'a, T>(name: &'static str, mut work: impl FnMut() -> T + 'a) -> Contender<'a> {
    Contender { name, work: Box::new(move || drop(black_box(work()))) }
}

/// Which rows to run, how many rounds of each, and the table that comes of it.
#[derive(Debug)]
pub struct Plan {
    rounds: usize,
    write: bool,
    filters: Vec<String>,
    table: String,
}

impl Plan {
    /// Reads the arguments: `--rounds N`, `--write`, and names of rows or the words they begin with. Prints the
    /// head of the table.
    ///
    /// # Panics
    ///
    /// If `--rounds` has no number.
    #[must_use]
    pub fn from_arguments(columns: &[&str]) -> Self {
        let mut plan = Self { rounds: 31, write: false, filters: Vec::new(), table: String::new() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                // Cargo says so itself.
                "--bench" => {}
                "--write" => plan.write = true,
                "--rounds" => {
                    let number = arguments.next().and_then(|number| number.parse().ok());
                    plan.rounds = number.expect("--rounds needs a number");
                }
                _ => plan.filters.push(argument),
            }
        }
        plan.line(&format!("| row | implementation | {} |", columns.join(" | ")));
        plan.line(&format!("|---|---|{}", "---:|".repeat(columns.len())));
        plan
    }

    /// Whether a row was asked for.
    #[must_use]
    pub fn wants(&self, row: &str) -> bool {
        let begins = |filter: &String| {
            row.strip_prefix(filter.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ',']))
        };
        self.filters.is_empty() || self.filters.iter().any(begins)
    }

    /// Prints a line of the table.
    pub fn line(&mut self, line: &str) {
        println!("{line}");
        self.table.push_str(line);
        self.table.push('\n');
    }

    /// With `--write`, puts the table into `docs/performance.md`, between the marks of this name.
    ///
    /// # Panics
    ///
    /// If the page or its marks are missing.
    pub fn finish(self, name: &str) {
        if !self.write {
            return;
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("docs").join("performance.md");
        let page = fs::read_to_string(&path).expect("docs/performance.md");
        let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
        let (head, rest) = page.split_once(&begin).expect("the mark where the table begins");
        let (_, tail) = rest.split_once(&end).expect("the mark where the table ends");
        let page = format!("{head}{begin}{}{end}{tail}", self.table);
        fs::write(&path, page).expect("a page that can be written");
    }

    /// Runs a row: each round, every contender in turn, forwards and backwards alternately. `scale` divides
    /// the times, for work done many times in one call.
    pub fn run(&mut self, row: &str, rounds_at_most: usize, scale: u32, contenders: Vec<Contender<'_>>) {
        if !self.wants(row) {
            return;
        }
        let mut contenders: Vec<(Contender<'_>, u32, Vec<Duration>)> = contenders
            .into_iter()
            .map(|mut contender| {
                let calls = calls_per_sample(&mut contender);
                (contender, calls, Vec::new())
            })
            .collect();
        for round in 0..self.rounds.min(rounds_at_most) {
            let count = contenders.len();
            for place in 0..count {
                let idx = if round % 2 == 0 { place } else { count - 1 - place };
                let (contender, calls, samples) = &mut contenders[idx];
                let start = Instant::now();
                for _ in 0..*calls {
                    (contender.work)();
                }
                samples.push(start.elapsed() / *calls / scale);
            }
        }
        let first = contenders.first().map(|(_, _, samples)| samples.clone()).unwrap_or_default();
        for (contender, _, samples) in &contenders {
            let ratios =
                samples.iter().zip(&first).map(|(own, first)| own.as_secs_f64() / first.as_secs_f64());
            self.line(&format!(
                "| {row} | {} | {} | {} | {:.2} |",
                contender.name,
                show(median(samples.clone())),
                show(samples.iter().min().copied().unwrap_or_default()),
                median(ratios.collect()),
            ));
        }
    }
}

/// Numbers with a normal distribution, the same every time.
#[must_use]
pub fn normals(count: usize) -> Vec<f32> {
    let mut state = 1_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1_u64 << 24) as f64
    };
    (0..count)
        .map(|_| {
            let radius = (-2.0 * (1.0 - uniform()).ln()).sqrt();
            (radius * (2.0 * std::f64::consts::PI * uniform()).cos() * 0.02) as f32
        })
        .collect()
}

/// As many calls as fill two milliseconds: the clock and its call then cost nothing that counts.
fn calls_per_sample(contender: &mut Contender<'_>) -> u32 {
    const SAMPLE: Duration = Duration::from_millis(2);
    let start = Instant::now();
    (contender.work)();
    let mut once = start.elapsed();
    if once < SAMPLE {
        // The first call also paid for cold caches and new pages.
        let start = Instant::now();
        (contender.work)();
        once = start.elapsed().max(Duration::from_nanos(20));
    }
    u32::try_from(SAMPLE.as_nanos() / once.as_nanos().max(1)).unwrap_or(1).max(1)
}

fn median<T: PartialOrd + Copy + Default>(mut values: Vec<T>) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// A duration with three digits and a fitting unit.
fn show(duration: Duration) -> String {
    let nanos = duration.as_secs_f64() * 1e9;
    let (value, unit) = match nanos {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "us"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_show_three_digits() {
        let shown = [5, 1_234, 98_765, 999_000, 12_345_678].map(|nanos| show(Duration::from_nanos(nanos)));
        assert_eq!(shown, ["5.00 ns", "1.23 us", "98.8 us", "999 us", "12.3 ms"]);
    }

    #[test]
    fn median_is_the_middle() {
        assert_eq!(median(vec![3, 1, 2]), 2);
        assert_eq!(median(Vec::<u32>::new()), 0);
    }
}
