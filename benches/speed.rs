//! Times: header parse, lookup, slicing, writing.
//!
//! `cargo bench --bench speed -- [--rounds N] [--write] [ROW...]`

use std::collections::HashMap;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::Bound;
use std::path::PathBuf;

use apr_benches::{Plan, Work, checkpoint, contender, names, sparse_file};
use conformance::official;
use safetensors::slice::TensorIndexer;
use serde::de::IgnoredAny;
use st_core::{
    Bounds, Dtype, Header, Index, Layout, ReadOptions, SafeTensors, SlicePlan, TensorSpec, WriteOptions,
};

fn main() {
    let mut plan = Plan::from_arguments(&["median", "best", "median ratio to the first"]);
    rows(&mut plan);
    plan.finish("speed");
}

fn rows(plan: &mut Plan) {
    for count in [10, 1_000, 10_000, 100_000] {
        parse(plan, count);
    }
    million(plan);
    for count in [1_000, 100_000] {
        lookup(plan, count);
    }
    slices(plan);
    to_vec(plan);
    write_file(plan);
}

fn parse(plan: &mut Plan, count: usize) {
    let row = format!("parse {count}");
    if !plan.wants(&row) {
        return;
    }
    let file = sparse_file(&checkpoint(count));
    let file = &file[..];
    let text = header_text(file);
    let contenders = vec![
        contender("st-core", || SafeTensors::from_bytes(file).expect("sound")),
        contender("st-core, compat", || {
            SafeTensors::from_bytes_with(file, &ReadOptions::COMPAT).expect("sound")
        }),
        contender("crate 0.8.0", || safetensors::SafeTensors::deserialize(file).expect("sound")),
        contender("serde_json, skipping", || serde_json::from_slice::<IgnoredAny>(text).expect("sound")),
        contender("UTF-8 check alone", || std::str::from_utf8(text).expect("sound").len()),
    ];
    plan.run(&row, Work::bytes(text.len()), contenders);
}

/// A header of 69 MB with 1,000,000 tensors; the crate takes seconds.
fn million(plan: &mut Plan) {
    let row = "parse 1000000";
    if !plan.wants(row) {
        return;
    }
    let file = conformance::huge::build("million_tensors").expect("a known recipe");
    let text = header_text(&file);
    let contenders = vec![
        contender("st-core", || SafeTensors::from_bytes(&file).expect("sound")),
        contender("crate 0.8.0", || safetensors::SafeTensors::deserialize(&file).expect("sound")),
        contender("serde_json, skipping", || serde_json::from_slice::<IgnoredAny>(text).expect("sound")),
    ];
    plan.run(row, Work::bytes(text.len()), contenders);
}

/// By name, every tensor once, in an order that is not that of the file.
fn lookup(plan: &mut Plan, count: usize) {
    let row = format!("lookup {count}");
    if !plan.wants(&row) {
        return;
    }
    let file = sparse_file(&checkpoint(count));
    let ours = SafeTensors::from_bytes(&file).expect("sound");
    let theirs = safetensors::SafeTensors::deserialize(&file).expect("sound");
    let names = names(count);
    // A stride that shares no factor with the count visits each name once.
    let order: Vec<&str> = (0..count).map(|idx| names[idx * 7_919 % count].as_str()).collect();
    let absent: Vec<String> = order.iter().map(|name| format!("{name}_")).collect();
    let scale = u32::try_from(count).expect("small");
    let contenders = vec![
        contender("st-core", || order.iter().filter(|name| ours.tensor(name).map(touch).is_ok()).count()),
        contender("st-core, header only", || {
            order.iter().filter(|name| black_box(ours.header().tensor(name)).is_some()).count()
        }),
        contender("crate 0.8.0", || {
            order.iter().filter(|name| theirs.tensor(name).map(touch_theirs).is_ok()).count()
        }),
        contender("st-core, absent", || {
            absent.iter().filter(|name| black_box(ours.header().tensor(name)).is_some()).count()
        }),
    ];
    plan.run(&row, Work::Times(scale), contenders);
}

fn touch(view: st_core::TensorView<'_>) -> *const u8 {
    black_box(view.data().as_ptr())
}

fn touch_theirs(view: safetensors::tensor::TensorView<'_>) -> *const u8 {
    black_box(view.data().as_ptr())
}

fn slices(plan: &mut Plan) {
    let shape = [4096, 4096];
    let ours = [Index::ALL, Index::from(1000..2000)];
    let step = NonZeroUsize::MIN;
    let theirs = [
        TensorIndexer::Narrow(Bound::Unbounded, Bound::Unbounded, step),
        TensorIndexer::Narrow(Bound::Included(1000), Bound::Excluded(2000), step),
    ];
    let contenders = vec![
        contender("st-core", || {
            let plan = SlicePlan::new(Dtype::Bf16, &shape, &ours, Bounds::Exact).expect("in bounds");
            plan.ranges().map(|range| range.end - range.start).sum::<u64>()
        }),
        contender("crate 0.8.0", || {
            let dtype = official::theirs(Dtype::Bf16);
            let (ranges, _) =
                safetensors::slice::slice_byte_ranges(dtype, &shape, &theirs).expect("in bounds");
            ranges.iter().map(|(start, end)| end - start).sum::<usize>()
        }),
    ];
    plan.run("slice 1000 of 4096 columns, ranges", Work::Once, contenders);

    let row = "slice 1000 of 4096 columns, bytes";
    if !plan.wants(row) {
        return;
    }
    let data = vec![1; 4096 * 4096 * 2];
    let own = st_core::TensorView::new(Dtype::Bf16, &shape, &data).expect("as long as its shape");
    let peer = safetensors::tensor::TensorView::new(official::theirs(Dtype::Bf16), shape.to_vec(), &data);
    let peer = peer.expect("as long as its shape");
    let contenders = vec![
        contender("st-core", || own.slice(&ours, Bounds::Exact).expect("in bounds").to_vec()),
        contender("crate 0.8.0", || {
            let pieces = peer.sliced_data(&theirs).expect("in bounds");
            pieces.fold(Vec::with_capacity(4096 * 2000), |mut out, piece| {
                out.extend_from_slice(piece);
                out
            })
        }),
    ];
    plan.run(row, Work::bytes(4096 * 2000), contenders);
}

/// In memory: many small tensors, where the header counts, and few large ones, where the copy counts.
fn to_vec(plan: &mut Plan) {
    for (row, count, elements) in [("to_vec 1000 x 16 B", 1_000, 4), ("to_vec 16 x 4 MiB", 16, 1 << 20)] {
        if !plan.wants(row) {
            continue;
        }
        let data = vec![1u8; elements * 4];
        let shape = [elements];
        let names = names(count);
        let view = st_core::TensorView::new(Dtype::F32, &shape, &data).expect("as long as its shape");
        let ours: Vec<(&str, st_core::TensorView<'_>)> =
            names.iter().map(|name| (name.as_str(), view)).collect();
        let options = WriteOptions::default();
        let contenders = vec![
            contender("st-core", || st_core::to_vec(&ours, &options).expect("sound")),
            contender("crate 0.8.0", || {
                let views = names.iter().map(|name| (name, peer_view(elements, &data)));
                safetensors::serialize(views, None::<HashMap<String, String>>).expect("sound")
            }),
        ];
        plan.run(row, Work::bytes(count * data.len()), contenders);
    }
}

fn peer_view(elements: usize, data: &[u8]) -> safetensors::tensor::TensorView<'_> {
    safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![elements], data).expect("sound")
}

/// 512 MiB into a new file of the same folder each time. No `fsync`: what is compared is the way to the
/// page cache.
fn write_file(plan: &mut Plan) {
    let row = "write 32 x 16 MiB";
    if !plan.wants(row) {
        return;
    }
    let data = vec![1u8; 16 << 20];
    let shape = [data.len() / 4];
    let names = names(32);
    let specs = names.iter().map(|name| TensorSpec { name, dtype: Dtype::F32, shape: &shape });
    let specs: Vec<_> = specs.collect();
    let slices: Vec<&[u8]> = names.iter().map(|_| &data[..]).collect();
    let path = scratch();
    let fresh = || {
        // The old file's pages are freed outside of anyone's way only if it is gone first.
        let _ = fs::remove_file(&path);
    };
    let contenders = vec![
        contender("plain write_all", || {
            fresh();
            let mut file = File::create(&path).expect("a writable folder");
            file.write_all(&[b' '; 4096]).expect("space");
            slices.iter().for_each(|slice| file.write_all(slice).expect("space"));
        }),
        contender("st-core, write_to", || {
            fresh();
            let mut file = File::create(&path).expect("a writable folder");
            let layout = Layout::new(specs.iter().copied(), &WriteOptions::default()).expect("sound");
            layout.write_to(&mut file, &slices).expect("space");
        }),
        contender("crate 0.8.0, serialize_to_file", || {
            fresh();
            let views = names.iter().map(|name| (name, peer_view(shape[0], &data)));
            safetensors::serialize_to_file(views, None, &path).expect("space");
        }),
    ];
    plan.run(row, Work::bytes(32 * data.len()), contenders);
    fresh();
}

fn header_text(file: &[u8]) -> &[u8] {
    let header = Header::from_bytes(file, &ReadOptions::STRICT).expect("sound");
    &file[8..usize::try_from(header.data_start()).expect("small")]
}

/// A file in the folder `BENCH_DIR` names, or in the system's temporary one.
fn scratch() -> PathBuf {
    let folder = std::env::var_os("BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    folder.join(format!("apr-bench-{}.safetensors", std::process::id()))
}
