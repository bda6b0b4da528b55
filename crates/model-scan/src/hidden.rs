//! Bytes in a pickle that are another file: what a gadget would have to load lies there.

use alloc::string::String;
use alloc::vec;

use pickle_core::{Error, Opcode, Value, ValueId};
use read_at::{ReadAt, Window};

use crate::arguments::{encoded, file_in};
use crate::file::is_tar;
use crate::places::Notes;
use crate::problem::{Problem, Verdict};
use crate::report::{Origin, Report};
use crate::script;
use crate::stream::{Nested, Pass, Stream, scan_source, text};

/// Shorter bytes call nothing.
const LEAST: u64 = 12;

/// Bytes that are read at once.
const SHORT: u64 = 4096;

impl Pass<'_> {
    /// Scans the bytes of a pickle that has ended.
    pub(crate) fn judge_bytes(&mut self, machine: &Stream<'_>, notes: &mut Notes) -> Result<(), Error> {
        let tree = machine.tree();
        for id in tree.ids(notes.first) {
            let file = match tree.value(id) {
                Value::Tuple([operator, overload, ..]) if self.origin == Origin::TorchScript => {
                    self.operator(machine, *operator, *overload)?;
                    None
                }
                Value::Bytes(span) | Value::ByteArray(span) | Value::Str2(span) => {
                    (span.len() >= LEAST).then_some(id)
                }
                Value::Object(_) => encoded(machine, id),
                _ => None,
            };
            if let Some(file) = file.filter(|file| notes.read.insert(*file)) {
                self.hidden(machine, file)?;
            }
        }
        Ok(())
    }

    /// An operator of bytecode: its name and that of its overload.
    fn operator(&mut self, machine: &Stream<'_>, name: ValueId, overload: ValueId) -> Result<(), Error> {
        if let Value::Str(span) = machine.tree().value(name)
            && matches!(machine.tree().value(overload), Value::Str(_))
            && let Ok(operation) = String::from_utf8(text(machine, name)?)
            && script::is_suspicious(&operation)
        {
            let offset = span.range().map_or(machine.position(), |range| range.start);
            self.add(offset, Opcode(b'.'), Problem::ScriptOperation { operation });
        }
        Ok(())
    }

    fn hidden(&mut self, machine: &Stream<'_>, id: ValueId) -> Result<(), Error> {
        match file_in(machine, id)? {
            Nested::Range(start, len) => match Window::new(*machine.source(), start, len) {
                // One read instead of several.
                Ok(window) if len <= SHORT => {
                    let mut bytes = vec![0; usize::try_from(len).unwrap_or_default()];
                    window.read_exact_at(0, &mut bytes)?;
                    self.hidden_in(&bytes, start)
                }
                Ok(window) => self.hidden_in(&window, start),
                Err(_) => Ok(()),
            },
            Nested::Bytes(bytes) => self.hidden_in(&bytes, machine.position()),
            Nested::Unreadable => Ok(()),
        }
    }

    fn hidden_in(&mut self, source: &dyn ReadAt, offset: u64) -> Result<(), Error> {
        let mut start = [0; 512];
        let len = usize::try_from(source.total_len()).unwrap_or(usize::MAX).min(start.len());
        let start = start.get_mut(..len).unwrap_or_default();
        source.read_exact_at(0, start)?;
        let numbered = matches!(start, [0x80, 0..=5, ..]);
        let is_archive = start.starts_with(b"PK\x03\x04") || is_tar(start);
        let depth = self.depth + 1;
        if is_archive || numbered && depth > self.options.depth {
            self.add(offset, Opcode(b'.'), Problem::NestedUnread {});
            return Ok(());
        }
        if depth > self.options.depth || !start.first().is_some_and(|byte| Opcode(*byte).is_known()) {
            return Ok(());
        }
        let (mut options, mut report) = (*self.options, Report::new(self.options.kept));
        options.limits.opcodes = options.limits.opcodes.saturating_sub(self.report.opcodes);
        scan_source(source, Origin::File, &options, depth, &mut report)?;
        self.report.opcodes += report.opcodes;
        if report.opcodes > options.limits.opcodes {
            self.add(offset, Opcode(b'.'), Problem::NestedUnread {});
        } else if is_program(&report, numbered) {
            self.add(offset, Opcode(b'.'), Problem::HiddenPickle { verdict: report.verdict().name() });
        }
        Ok(())
    }
}

/// Whether bytes are a program: other bytes may begin with opcodes.
fn is_program(report: &Report, numbered: bool) -> bool {
    let is_name = |text: &str| {
        !text.is_empty() && text.chars().all(|part| part.is_alphanumeric() || part == '_' || part == '.')
    };
    let named = report.names.iter().any(|name| is_name(&name.module) && is_name(&name.name));
    let broken = report
        .findings
        .iter()
        .any(|finding| matches!(finding.problem, Problem::Malformed { .. } | Problem::TrailingBytes { .. }));
    let acts = report.calls > 0;
    report.verdict() != Verdict::Safe && if numbered { named || acts } else { named && (acts || !broken) }
}
