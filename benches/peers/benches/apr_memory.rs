//! Heap: what saving and loading hold at their peak, counted at the allocator, beside the crates that made the format.
//!
//! `cargo bench --manifest-path benches/peers/Cargo.toml --bench apr_memory -- [--write] [ROW...]`. Apart from the times,
//! because counting costs some. What zstd's C code takes does not pass the allocator; the growth of resident memory
//! includes it.

mod data;

use std::fs;
use std::path::Path;

use apr_benches::Plan;
use apr_container::{Compression, ModelType, SaveOptions, load, load_from_bytes, save};
use apr_models::LinearRegression;
use aprender_015::format as v0_15;
use aprender_072::format as v0_72;
use test_meter::{CountingAllocator, Usage};

use crate::data::{Newer, Older, Pair, Values, folder};

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator::new();

const KIND: ModelType = ModelType::LinearRegression;
const OLDER: v0_15::ModelType = v0_15::ModelType::LinearRegression;
const NEWER: v0_72::ModelType = v0_72::ModelType::LinearRegression;

fn main() {
    let columns =
        ["peak heap", "per byte of payload", "largest request", "requests", "growth of resident memory"];
    let mut plan = Plan::from_arguments(&columns);
    let path = folder().join(format!("apr-bench-{}-memory.apr", std::process::id()));
    let plain = (Compression::None, Some(v0_15::Compression::None), v0_72::Compression::None);
    let zstd =
        (Compression::ZstdDefault, Some(v0_15::Compression::ZstdDefault), v0_72::Compression::ZstdDefault);
    let lz4 = (Compression::LZ4, None, v0_72::Compression::Lz4);
    one(&mut plan, "plain 1000000", &Pair::new(1_000_000, Values::Noise), &path, plain);
    for values in [Values::Noise, Values::Pattern] {
        let pair = Pair::new(1_000_000, values);
        one(&mut plan, &format!("zstd 1000000 {values}"), &pair, &path, zstd);
        one(&mut plan, &format!("lz4 1000000 {values}"), &pair, &path, lz4);
    }
    let _ = fs::remove_file(&path);
    plan.finish("apr-memory");
}

/// Saves, loads from a file, and loads from memory.
fn one(
    plan: &mut Plan,
    what: &str,
    pair: &Pair,
    path: &Path,
    (own, older, newer): (Compression, Option<v0_15::Compression>, v0_72::Compression),
) {
    let options = SaveOptions::default().with_compression(own);
    let row = format!("save {what}");
    if plan.wants(&row) {
        let options = options.clone();
        measure(plan, &row, "apr-container", pair, || save(&pair.ours, KIND, path, options).expect("space"));
        if let Some(compression) = older {
            let options = v0_15::SaveOptions::new().with_compression(compression);
            measure(plan, &row, "aprender 0.15.0", pair, || {
                v0_15::save(&pair.older, OLDER, path, options).expect("space");
            });
        }
        let options = v0_72::SaveOptions::new().with_compression(newer);
        measure(plan, &row, "aprender-core 0.72.3", pair, || {
            v0_72::save(&pair.newer, NEWER, path, options).expect("space");
        });
    }
    save(&pair.ours, KIND, path, options).expect("space");
    let row = format!("load {what}");
    if plan.wants(&row) {
        measure(plan, &row, "apr-container", pair, || load::<LinearRegression>(path, KIND).expect("sound"));
        if older.is_some() {
            measure(plan, &row, "aprender 0.15.0", pair, || {
                v0_15::load::<Older>(path, OLDER).expect("sound")
            });
        }
        measure(plan, &row, "aprender-core 0.72.3", pair, || {
            v0_72::load::<Newer>(path, NEWER).expect("sound")
        });
    }
    let row = format!("load_from_bytes {what}");
    if plan.wants(&row) {
        let bytes = fs::read(path).expect("just written");
        measure(plan, &row, "apr-container", pair, || {
            load_from_bytes::<LinearRegression>(&bytes, KIND).expect("sound")
        });
        if older.is_some() {
            measure(plan, &row, "aprender 0.15.0", pair, || {
                v0_15::load_from_bytes::<Older>(&bytes, OLDER).expect("sound")
            });
        }
        measure(plan, &row, "aprender-core 0.72.3", pair, || {
            v0_72::load_from_bytes::<Newer>(&bytes, NEWER).expect("sound")
        });
    }
}

/// Runs the work, and prints what it took; what it made is dropped afterwards.
fn measure<T>(plan: &mut Plan, row: &str, name: &str, pair: &Pair, work: impl FnOnce() -> T) {
    reset_high_water_mark();
    let before = status("VmRSS:");
    let (made, usage) = HEAP.measure(work);
    let growth = status("VmHWM:").zip(before).map(|(peak, before)| peak.saturating_sub(before));
    drop(made);
    let Usage { peak, largest, requests } = usage;
    let mib = |bytes: usize| format!("{:.2} MiB", bytes as f64 / (1 << 20) as f64);
    plan.line(&format!(
        "| {row} | {name} | {} | {:.2} | {} | {requests} | {} |",
        mib(peak),
        peak as f64 / pair.payload_len as f64,
        mib(largest),
        growth.map_or_else(|| "-".to_owned(), |kib| format!("{:.1} MiB", kib as f64 / 1024.0)),
    ));
}

/// Makes Linux forget the largest resident size so far; elsewhere the figure is left out.
fn reset_high_water_mark() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// A figure of `/proc/self/status` in KiB.
fn status(field: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with(field))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
