//! Streams of pickles in a file, and what may be one.

use alloc::borrow::ToOwned;

use pickle_core::Error;
use read_at::ReadAt;

use super::Part;
use super::item::{Files, Item};
use super::tar::is_tar;
use crate::problem::{Problem, Verdict};
use crate::report::{Finding, Options, Origin, Report, Standing};
use crate::stream::scan_source;

impl Files<'_> {
    /// Options for a stream of `len` bytes: what was decompressed may use no more memory than a file of its compressed length.
    fn options_for(&self, len: u64) -> Options<'_> {
        let mut options = *self.options;
        options.limits.opcodes = self.budget.opcodes;
        if len > self.len && options.inflated.is_none() {
            let nodes = u32::try_from(self.len / 2 + (1 << 16)).unwrap_or(u32::MAX);
            options.limits.values = options.limits.values.min(nodes);
            options.limits.memo = options.limits.memo.min(nodes);
            options.limits.marks = options.limits.marks.min(nodes);
            options.limits.decoded_bytes = options.limits.decoded_bytes.min(nodes);
        }
        options
    }

    pub(super) fn stream(&mut self, source: &dyn ReadAt, path: &str, origin: Origin) -> Result<(), Error> {
        let report = self.scanned(source, origin)?;
        self.report.parts.push(Part { path: path.to_owned(), report });
        Ok(())
    }

    /// All passes over a stream, within what is left of the work.
    fn scanned(&mut self, source: &dyn ReadAt, origin: Origin) -> Result<Report, Error> {
        let mut report = Report::new(self.options.kept);
        scan_source(source, origin, &self.options_for(source.total_len()), 0, &mut report)?;
        self.budget.opcodes = self.budget.opcodes.saturating_sub(report.opcodes);
        Ok(report)
    }

    /// Bytes that need not be a pickle. One of protocol 2 or above begins with its number; another one is taken for a pickle if it ends as
    /// one, calls a name, or reaches a dangerous one: other text may begin with opcodes.
    pub(super) fn maybe_stream(&mut self, item: Item<'_>, start: &[u8]) -> Result<bool, Error> {
        let Item { source, path, origin, .. } = item;
        let report = self.scanned(source, origin)?;
        let ended = report.findings.iter().all(|finding| {
            !matches!(finding.problem, Problem::Malformed { .. } | Problem::TrailingBytes { .. })
        });
        let named = report.names.iter().any(|name| is_dotted(&name.module) && is_dotted(&name.name));
        let runs = report.verdict() == Verdict::Dangerous && report.calls > 0;
        let dangerous = runs
            || report.names.iter().any(|name| name.standing == Standing::Dangerous && is_dotted(&name.name));
        let numbered = matches!(start, [0x80, 0..=5, ..]);
        // A file that is no text and breaks off, as a pickle of protocol 0 or 1 that was cut or that declares a wrong length. Elements may begin
        // with an opcode, hardly with eight, and hardly end with `STOP` then.
        let stopped_by = |code: &str| {
            let mut problems = report.findings.iter().map(|finding| &finding.problem);
            problems.any(|problem| matches!(problem, Problem::Malformed { cause } if *cause == code))
        };
        let cut = stopped_by("pk-truncated") && (report.opcodes >= 8 || last(source)? == Some(b'.'));
        // Only a pickle goes on for so long, but for names at the beginning of a tar archive: those of modules that no loader finds, or no
        // numbers.
        let byte = |at: u64| usize::try_from(at).ok().and_then(|at| start.get(at)).copied();
        let is_name = |finding: &Finding| match byte(finding.offset) {
            Some(b'c' | b'i') => true,
            Some(b'g' | b'p' | b'I' | b'L' | b'F') => {
                let next = byte(finding.offset.saturating_add(1));
                !next.is_some_and(|byte| byte.is_ascii_digit() || b"+-._ \t\x0b\x0c\r".contains(&byte))
            }
            _ => false,
        };
        let is_tar = is_tar(start);
        let limited = stopped_by("pk-limit") && !(is_tar && report.findings.iter().any(is_name));
        let broken = path.is_empty() && !is_tar && cut && core::str::from_utf8(start).is_err();
        let sure = (numbered || broken) && !(is_model(source, start) && report.names.is_empty());
        let found = sure || limited || ended || dangerous || (named && report.calls > 0);
        if found {
            self.report.parts.push(Part { path: path.to_owned(), report });
        }
        Ok(found)
    }
}

/// Whether it begins as a model without code: safetensors, whose first bytes are the length of its header, or a magic number.
fn is_model(source: &dyn ReadAt, start: &[u8]) -> bool {
    let header = start.first_chunk::<8>().map_or(u64::MAX, |len| u64::from_le_bytes(*len));
    let safetensors = start.get(8) == Some(&b'{') && header <= source.total_len().saturating_sub(8);
    let magic = [b"GGUF".as_slice(), b"APR", b"\x89HDF", b"ORC", b"BM"];
    safetensors || magic.iter().any(|magic| start.starts_with(magic)) || start.get(4..8) == Some(b"TFL3")
}

fn last(source: &dyn ReadAt) -> Result<Option<u8>, Error> {
    let Some(at) = source.total_len().checked_sub(1) else { return Ok(None) };
    let mut byte = [0];
    source.read_exact_at(at, &mut byte)?;
    Ok(byte.first().copied())
}

/// Whether Python could import it.
fn is_dotted(name: &str) -> bool {
    let identifier = |part: &str| {
        part.chars().all(|character| character == '_' || character.is_alphanumeric()) && !part.is_empty()
    };
    name.split('.').all(identifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decompressed_streams_have_the_limits_of_a_file_of_their_compressed_length() {
        for (inflated, len, is_bounded) in
            [(None, 999, false), (None, 1000, false), (None, 1001, true), (Some(1 << 30), 1001, false)]
        {
            let mut options = Options { inflated, ..Options::DEFAULT };
            let found = Files::new(&options, 1000).options_for(len).limits;
            options.limits.opcodes = 16_000 + (1 << 20);
            if is_bounded {
                let limits = &mut options.limits;
                for limit in
                    [&mut limits.values, &mut limits.memo, &mut limits.marks, &mut limits.decoded_bytes]
                {
                    *limit = 500 + (1 << 16);
                }
            }
            assert_eq!(found, options.limits, "{inflated:?} {len}");
        }
    }
}
