//! Verdicts of the files that are named as arguments, with their findings and the time that each took.

use std::time::Instant;

use model_scan::{Options, scan_named};
use read_at::FileSource;

fn main() -> Result<(), Box<dyn core::error::Error>> {
    for path in std::env::args().skip(1) {
        let source = FileSource::new(std::fs::File::open(&path)?)?;
        let start = Instant::now();
        let report = scan_named(source, &path, &Options::DEFAULT)?;
        let time = start.elapsed();
        println!("{path}: {:?}, {:?}, {time:?}", report.verdict(), report.format);
        for found in report.findings().take(10) {
            println!("  {} {} {}: {}", found.member, found.offset, found.code, found.message);
        }
    }
    Ok(())
}
