//! Heap: what parsing and saving hold at their peak, counted at the allocator.
//!
//! `cargo bench --bench memory -- [--write] [ROW...]`. Apart from the times, because counting costs some.

use std::fs::{self, File};
use std::path::PathBuf;

use apr_benches::{Plan, checkpoint, sparse_file};
use st_core::{Dtype, Header, Layout, ReadOptions, TensorSpec, WriteOptions};
use test_meter::{CountingAllocator, Usage};

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator::new();

fn main() {
    let columns =
        ["peak heap", "per byte of header", "largest request", "requests", "growth of resident memory"];
    let mut plan = Plan::from_arguments(&columns);
    // First, while no freed memory hides what it takes from the system.
    if plan.wants("streamed save") {
        streamed(&mut plan);
    }
    for count in [1_000, 100_000] {
        let row = format!("parse {count}");
        if plan.wants(&row) {
            let layout = checkpoint(count);
            parse(&mut plan, &row, &sparse_file(&layout), layout.header_bytes().len());
        }
    }
    if plan.wants("parse 1000000") {
        let file = conformance::huge::build("million_tensors").expect("a known recipe");
        parse(&mut plan, "parse 1000000", &file, file.len() - 1_000_000);
    }
    plan.finish("memory");
}

fn parse(plan: &mut Plan, row: &str, file: &[u8], header_len: usize) {
    let (header, usage) = HEAP.measure(|| Header::from_bytes(file, &ReadOptions::STRICT).expect("sound"));
    print(plan, row, "st-core", usage, Some(header_len), None);
    drop(header);
    let (table, usage) = HEAP.measure(|| safetensors::SafeTensors::deserialize(file).expect("sound"));
    print(plan, row, "crate 0.8.0", usage, Some(header_len), None);
    drop(table);
}

/// 64 tensors of 32 MiB, made a mebibyte at a time while the file is written.
fn streamed(plan: &mut Plan) {
    let names: Vec<String> = (0..64).map(|idx| format!("layers.{idx}.weight")).collect();
    let path = scratch();
    reset_high_water_mark();
    let before = status("VmRSS:");
    let (len, usage) = HEAP.measure(|| {
        let specs = names.iter().map(|name| TensorSpec { name, dtype: Dtype::Bf16, shape: &[4096, 4096] });
        let layout = Layout::new(specs, &WriteOptions::default()).expect("sound");
        let mut file = File::create(&path).expect("a writable folder");
        let mut piece = vec![0u8; 1 << 20];
        let written = layout.write_streamed(&mut file, |tensor, sink| {
            piece.fill(tensor.input_idx as u8);
            (0..tensor.byte_len >> 20).try_for_each(|_| sink.write_all(&piece))
        });
        written.expect("2 GiB of space");
        layout.file_len()
    });
    let _ = fs::remove_file(&path);
    let row = format!("streamed save, {} MiB", len >> 20);
    let growth = status("VmHWM:").zip(before).map(|(peak, before)| peak.saturating_sub(before));
    print(plan, &row, "st-core, one piece of 1 MiB included", usage, None, growth);
}

fn print(
    plan: &mut Plan,
    row: &str,
    name: &str,
    usage: Usage,
    header_len: Option<usize>,
    resident_kib: Option<u64>,
) {
    let mib = |bytes: usize| format!("{:.2} MiB", bytes as f64 / (1 << 20) as f64);
    let absent = || "-".to_owned();
    plan.line(&format!(
        "| {row} | {name} | {} | {} | {} | {} | {} |",
        mib(usage.peak),
        header_len.map_or_else(absent, |len| format!("{:.2}", usage.peak as f64 / len as f64)),
        mib(usage.largest),
        usage.requests,
        resident_kib.map_or_else(absent, |kib| format!("{kib} KiB")),
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

fn scratch() -> PathBuf {
    let folder = std::env::var_os("BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    folder.join(format!("apr-bench-{}.safetensors", std::process::id()))
}
