//! Criterion groups in which implementations take turns: whatever else the machine does affects all of them alike. Criterion reports each
//! implementation (estimates, plots, baselines); the table printed beside it has the median ratios of interleaved samples, which is
//! what the project publishes.

mod files;

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{Criterion, SamplingMode};

pub use criterion::Throughput;
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

/// Names an implementation; its result is protected from being optimised away, and dropped within the time.
pub fn contender<'a, T>(name: &'static str, mut work: impl FnMut() -> T + 'a) -> Contender<'a> {
    Contender { name, work: Box::new(move || drop(black_box(work()))) }
}

/// What one call of each implementation of a row processes.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// One operation.
    Once,
    /// So many operations; the table has the time of one.
    Times(u32),
    /// So many bytes; criterion reports the throughput.
    Bytes(u64),
}

impl Work {
    /// So many bytes, as lengths of slices count them.
    #[must_use]
    pub const fn bytes(len: usize) -> Self {
        Self::Bytes(len as u64)
    }
}

/// Selected rows, criterion, and the table of results.
pub struct Plan {
    criterion: Criterion,
    sample_size: usize,
    write: bool,
    filters: Vec<String>,
    table: String,
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").field("filters", &self.filters).finish_non_exhaustive()
    }
}

impl Plan {
    /// Reads the arguments: `--rounds N` (samples of each implementation, at least 10), `--save-baseline NAME`, `--baseline NAME`,
    /// `--write`, and names of rows or the words they begin with. Prints the head of the table.
    ///
    /// # Panics
    ///
    /// If an option lacks its value.
    #[must_use]
    pub fn from_arguments(columns: &[&str]) -> Self {
        let mut criterion = Criterion::default();
        let (mut sample_size, mut write, mut filters) = (31, false, Vec::new());
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().expect("a value after the option");
            match argument.as_str() {
                // Added by cargo.
                "--bench" => {}
                "--write" => write = true,
                "--rounds" => sample_size = value().parse().expect("a number after --rounds"),
                "--save-baseline" => criterion = criterion.save_baseline(value()),
                "--baseline" => criterion = criterion.retain_baseline(value(), true),
                _ => filters.push(argument),
            }
        }
        let mut plan = Self { criterion, sample_size, write, filters, table: String::new() };
        plan.line(&format!("| row | implementation | {} |", columns.join(" | ")));
        plan.line(&format!("|---|---|{}", "---:|".repeat(columns.len())));
        plan
    }

    /// Whether a row is selected.
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
        self.criterion.final_summary();
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

    /// Runs a row as a criterion group. The first implementation is the one that the others are compared with: while one of them is
    /// sampled, the first takes turns with it, and the ratio is that of the two times.
    pub fn run(&mut self, row: &str, work: Work, mut contenders: Vec<Contender<'_>>) {
        if !self.wants(row) {
            return;
        }
        let n_samples = self.sample_size.max(10);
        let mut group = self.criterion.benchmark_group(row);
        group.sample_size(n_samples).sampling_mode(SamplingMode::Flat);
        group.warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(2));
        match work {
            Work::Once => {}
            Work::Times(count) => drop(group.throughput(Throughput::Elements(count.into()))),
            Work::Bytes(len) => drop(group.throughput(Throughput::Bytes(len))),
        }
        let scale = if let Work::Times(count) = work { count } else { 1 };
        let Some((first, others)) = contenders.split_first_mut() else { return };
        let mut lines = Vec::new();
        for idx in 0..=others.len() {
            let mut own = idx.checked_sub(1).and_then(|idx| others.get_mut(idx));
            let name = own.as_ref().map_or(first.name, |own| own.name);
            let mut turns = Turns::default();
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|calls| turns.sample(first, own.as_deref_mut(), calls));
            });
            // What came before is the warm-up.
            let samples = turns.samples.split_off(turns.samples.len().saturating_sub(n_samples));
            let times: Vec<f64> = samples.iter().map(|&(own, _)| own / f64::from(scale)).collect();
            let best = times.iter().copied().fold(f64::INFINITY, f64::min);
            let ratios = samples.iter().map(|(own, first)| own / first).collect();
            lines.push(format!(
                "| {row} | {name} | {} | {} | {:.2} |",
                show(median(times)),
                show(best),
                median(ratios)
            ));
        }
        group.finish();
        lines.iter().for_each(|line| self.line(line));
    }
}

/// Samples of two implementations in turn.
#[derive(Debug, Default)]
struct Turns {
    /// Seconds of one call: of the implementation that is sampled, of the first one.
    samples: Vec<(f64, f64)>,
    /// Calls between two changes, of each, once they are known.
    calls: Option<(u64, u64)>,
}

impl Turns {
    /// The time of so many calls of `own`, or of `first` where it is sampled itself.
    fn sample(&mut self, first: &mut Contender<'_>, own: Option<&mut Contender<'_>>, calls: u64) -> Duration {
        let Some(own) = own else {
            let elapsed = time(first, calls);
            let seconds = elapsed.as_secs_f64() / calls as f64;
            self.samples.push((seconds, seconds));
            return elapsed;
        };
        let (own_calls, first_calls) =
            *self.calls.get_or_insert_with(|| (calls_per_turn(own), calls_per_turn(first)));
        let (mut own_time, mut first_time, mut first_count) = (Duration::ZERO, Duration::ZERO, 0_u64);
        let mut left = calls;
        while left > 0 {
            let turn = left.min(own_calls);
            own_time += time(own, turn);
            first_time += time(first, first_calls);
            first_count += first_calls;
            left -= turn;
        }
        self.samples
            .push((own_time.as_secs_f64() / calls as f64, first_time.as_secs_f64() / first_count as f64));
        own_time
    }
}

fn time(contender: &mut Contender<'_>, calls: u64) -> Duration {
    let start = Instant::now();
    for _ in 0..calls {
        (contender.work)();
    }
    start.elapsed()
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

/// As many calls as fill two milliseconds: reading the clock then costs nothing that counts.
fn calls_per_turn(contender: &mut Contender<'_>) -> u64 {
    const TURN: Duration = Duration::from_millis(2);
    let mut once = time(contender, 1);
    if once < TURN {
        // The first call also paid for cold caches and new pages.
        once = time(contender, 1).max(Duration::from_nanos(20));
    }
    u64::try_from(TURN.as_nanos() / once.as_nanos().max(1)).unwrap_or(1).max(1)
}

fn median<T: PartialOrd + Copy + Default>(mut values: Vec<T>) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Seconds with three digits and a fitting unit.
fn show(seconds: f64) -> String {
    let nanos = seconds * 1e9;
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
        let shown = [5e-9, 1.234e-6, 98.765e-6, 999e-6, 12.345_678e-3].map(show);
        assert_eq!(shown, ["5.00 ns", "1.23 us", "98.8 us", "999 us", "12.3 ms"]);
    }

    #[test]
    fn median_is_the_middle() {
        assert_eq!(median(vec![3, 1, 2]), 2);
        assert_eq!(median(Vec::<u32>::new()), 0);
    }
}
