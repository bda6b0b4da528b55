//! Verdicts of the files that are named as arguments, with their findings and the time that each took.

use std::time::Instant;

use model_scan::{Options, scan_file};
use read_at::FileSource;

fn main() -> Result<(), Box<dyn core::error::Error>> {
    for path in std::env::args().skip(1) {
        let source = FileSource::new(std::fs::File::open(&path)?)?;
        let start = Instant::now();
        let report = scan_file(source, &Options::DEFAULT)?;
        let time = start.elapsed();
        println!("{path}: {:?}, {:?}, {time:?}", report.verdict(), report.format);
        for part in &report.parts {
            for finding in part.report.findings.iter().take(10) {
                println!("  {} {} {}: {}", part.path, finding.offset, finding.opcode, finding.problem);
            }
        }
        for contradiction in &report.contradictions {
            println!("  {} {}: {}", contradiction.path, contradiction.offset, contradiction.problem);
        }
        for unopened in &report.unopened {
            println!("  {}: {}", unopened.path, unopened.reason);
        }
    }
    Ok(())
}
