//! All findings of a file in one list, for reports.

use alloc::format;
use alloc::string::{String, ToString as _};

use pickle_core::Opcode;

use crate::bypasses;
use crate::file::FileReport;
use crate::problem::{Problem, Verdict};

/// A finding of a file, whatever it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found<'r> {
    /// Names of members, joined with `!`; empty for the file itself.
    pub member: &'r str,
    /// Byte offset in the member: of a pickle in a bytes object, in that.
    pub offset: u64,
    /// Depth of a pickle in a bytes object; 0 for others.
    pub depth: u32,
    /// The opcode there, in a pickle.
    pub opcode: Option<Opcode>,
    /// `module.name`, if the finding is about a name.
    pub name: Option<String>,
    /// The code, which `apr explain` explains.
    pub code: &'static str,
    /// The verdict for a file with this finding alone.
    pub verdict: Verdict,
    /// What was found.
    pub message: String,
    /// A report of a scanner that was bypassed with it.
    pub bypass: Option<&'static str>,
}

impl FileReport {
    /// All findings, member by member: those of pickles, of archives, and of what else is in the file.
    pub fn findings(&self) -> impl Iterator<Item = Found<'_>> {
        let pickles = self.parts.iter().flat_map(|part| {
            part.report.findings.iter().map(|finding| Found {
                offset: finding.offset,
                depth: finding.depth,
                opcode: Some(finding.opcode).filter(|_| !finding.problem.is_of_stream()),
                ..Found::new(&part.path, &finding.problem)
            })
        });
        let archives = self.contradictions.iter().map(|contradiction| {
            let problem = contradiction.problem;
            Found {
                member: &contradiction.path,
                offset: contradiction.offset,
                depth: 0,
                opcode: None,
                name: None,
                code: problem.code(),
                verdict: Verdict::Suspicious,
                message: problem.to_string(),
                bypass: bypasses::report(problem.code(), None),
            }
        });
        let remarks = self
            .remarks
            .iter()
            .map(|remark| Found { offset: remark.offset, ..Found::new(&remark.path, &remark.problem) });
        pickles.chain(archives).chain(remarks)
    }

    /// Findings beyond [`Options::kept`](crate::Options::kept).
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.parts.iter().map(|part| part.report.dropped).sum()
    }
}

impl<'r> Found<'r> {
    fn new(member: &'r str, problem: &Problem) -> Self {
        let name = problem.name();
        Self {
            member,
            offset: 0,
            depth: 0,
            opcode: None,
            name: name.map(|(module, name)| format!("{module}.{name}")),
            code: problem.code(),
            verdict: problem.verdict(),
            message: problem.to_string(),
            bypass: bypasses::report(problem.code(), name),
        }
    }
}
