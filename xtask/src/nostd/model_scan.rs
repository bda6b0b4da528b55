fn call(bytes: &[u8]) -> usize {
    let report = model_scan::scan_file(bytes, &model_scan::Options::DEFAULT);
    report.map_or(0, |report| report.parts.len() + report.verdict() as usize)
}
