fn call(bytes: &[u8]) -> usize {
    let report = pickle_scan::scan_file(bytes, &pickle_scan::Options::DEFAULT);
    report.map_or(0, |report| report.parts.len() + report.verdict() as usize)
}
