//! What a header may cost: for every vector, refused or not, the heap stays within 8 MiB and 24 times the
//! size of the file. One test, because the allocator counts all threads together.

#![allow(clippy::unwrap_used, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

mod apr;
mod entry_points;
mod gguf;
mod sealed;

use conformance::huge;
use conformance::vectors::{self, Vectors};
use st_core::{Bounds, Dtype, Header, Index, ReadOptions, SlicePlan};
use test_meter::{CountingAllocator, Usage};

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator::new();

const FIXED: usize = 8 << 20;
const PER_BYTE: usize = 24;

#[test]
fn heap_is_bounded_by_the_size_of_the_file() {
    let vectors = Vectors::load().unwrap();
    let mut worst = Worst::default();
    for vector in &vectors.files {
        let file = vectors::read(&vector.file).unwrap();
        for options in [ReadOptions::STRICT, ReadOptions::COMPAT] {
            let (_, usage) = HEAP.measure(|| Header::from_bytes(&file, &options).is_ok());
            worst.judge(&vector.file, usage, file.len());
        }
        // Not one request for a tensor; for a refusal the error, and a name that it says.
        let (found, usage) =
            HEAP.measure(|| st_core::find(&file, "a").map(|found| found.map(|found| found.dims().count())));
        let most = if found.is_ok() { (0, 0) } else { (2, 512) };
        assert!(usage.requests <= most.0 && usage.peak <= most.1, "{}: {usage:?}", vector.file);
    }
    worst.print("files");

    // The claims a small file can make cost nothing: length fields, sizes, nesting.
    let mut worst = Worst::default();
    for claimed in [1 << 20, 99_999_999, 100_000_000, u64::from(u32::MAX), u64::MAX] {
        let file = [&claimed.to_le_bytes(), &b"{\"a\":{\"dtype\":\"U8\""[..]].concat();
        let (_, usage) = HEAP.measure(|| Header::from_bytes(&file, &ReadOptions::COMPAT).is_ok());
        worst.judge(&format!("length field {claimed}"), usage, file.len());
        assert!(usage.peak <= 4096, "{usage:?}");
    }
    worst.print("length fields");

    // A first entry unlike the rest: what is reserved after it must not trust it.
    let mut worst = Worst::default();
    for (name, header) in uneven_headers() {
        let file = huge::file(&header, 0);
        for options in [ReadOptions::STRICT, ReadOptions::COMPAT] {
            let (_, usage) = HEAP.measure(|| Header::from_bytes(&file, &options).is_ok());
            worst.judge(name, usage, file.len());
        }
    }
    worst.print("uneven headers");

    let mut worst = Worst::default();
    for recipe in &vectors.recipes {
        let file = huge::build(&recipe.name).unwrap();
        for options in [ReadOptions::STRICT, ReadOptions::COMPAT] {
            let (header, usage) = HEAP.measure(|| Header::from_bytes(&file, &options));
            drop(header);
            worst.judge(&recipe.name, usage, file.len());
            println!(
                "{}, {:?}: {usage:?}, {:.2} per byte",
                recipe.name,
                options.strictness,
                per_byte(usage, file.len())
            );
        }
    }
    worst.print("recipes");

    slices_of_any_number_of_ranges();
    apr::heap_is_bounded();
    gguf::heap_is_bounded();
    sealed::one_tensor_of_many();
    entry_points::budgets_are_kept();
}

/// Headers of about a megabyte whose first tensor tempts a reader to reserve too much.
fn uneven_headers() -> Vec<(&'static str, String)> {
    let small = "\"\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}";
    let spaces = " ".repeat(1 << 20);
    let deep =
        format!("\"a\":{{\"dtype\":\"U8\",\"shape\":[{}],\"data_offsets\":[0,1]}}", vec!["1"; 900].join(","));
    let long = format!("\"{}\":{{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", "n".repeat(60_000));
    let escapes =
        format!("\"{}\":{{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", "\\u0041".repeat(9_000));
    let shortest = format!("{{{}}}", vec!["\"\":[]"; 150_000].join(","));
    let padded = |first: &str| format!("{{{first}}}{spaces}");
    // One more than a power of two: a list that grows by doubling has just grown.
    let ones =
        format!("\"a\":{{\"dtype\":\"U8\",\"shape\":[{}1],\"data_offsets\":[0,1]}}", "1,".repeat(1 << 24));
    vec![
        ("16,777,217 dimensions", format!("{{{ones}}}")),
        ("small first", padded(small)),
        ("many dimensions first", padded(&deep)),
        ("long name first", padded(&long)),
        ("escaped name first", padded(&escapes)),
        ("shortest entries", shortest),
        ("equal names", format!("{{{}}}", vec![small; 20_000].join(","))),
        (
            "metadata of empty strings",
            format!("{{\"__metadata__\":{{{}}}}}", vec!["\"\":\"\""; 150_000].join(",")),
        ),
        ("tensors t0 to t19999", huge::tensors_header(20_000)),
    ]
}

/// A plan of a billion ranges holds no more than one of ten.
fn slices_of_any_number_of_ranges() {
    let columns = |rows: usize| {
        let (_, usage) = HEAP.measure(|| {
            let index = [Index::ALL, Index::from(1..3)];
            let plan = SlicePlan::new(Dtype::U8, &[rows, 4], &index, Bounds::Exact).unwrap();
            plan.ranges().take(1000).count()
        });
        usage
    };
    assert_eq!(columns(10), columns(1 << 30));
}

#[derive(Default)]
struct Worst {
    ratio: f64,
    name: String,
    largest: usize,
}

impl Worst {
    fn judge(&mut self, name: &str, usage: Usage, file_len: usize) {
        let bound = FIXED + PER_BYTE * file_len;
        assert!(usage.peak <= bound, "{name}: {usage:?} for {file_len} bytes, at most {bound} allowed");
        if per_byte(usage, file_len) > self.ratio {
            (self.ratio, self.name) = (per_byte(usage, file_len), name.to_owned());
        }
        self.largest = self.largest.max(usage.largest);
    }

    fn print(&self, what: &str) {
        println!(
            "{what}: at most {:.2} bytes of heap per byte of file ({}), largest request {} bytes",
            self.ratio, self.name, self.largest
        );
    }
}

fn per_byte(usage: Usage, file_len: usize) -> f64 {
    usage.peak as f64 / file_len.max(1) as f64
}
