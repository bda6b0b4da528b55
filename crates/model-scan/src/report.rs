//! What a scan returns.

use alloc::string::String;
use alloc::vec::Vec;

use pickle_core::{Limits, Opcode};

use crate::problem::{Problem, Verdict};

/// Where a stream comes from: what its persistent ids and names may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file, or an object array of NumPy. PyTorch's format before 1.6 is recognized.
    File,
    /// `data.pkl` of a PyTorch archive.
    Torch,
    /// A pickle of a TorchScript archive, which C++ reads: `__torch__` names are allowed.
    TorchScript,
}

/// What is allowed, and how much is read.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options<'o> {
    /// Limits of each stream.
    pub limits: Limits,
    /// Modules and names that the user trusts, exactly.
    pub allow: &'o [(&'o str, &'o str)],
    /// Pickles within pickles that are followed.
    pub depth: u32,
    /// Bytes that compressed members and files of one file may have in all, when decompressed: they are kept in memory one after the other.
    /// `None` for 1.5 MiB and 8 times the file.
    pub inflated: Option<u64>,
    /// Findings and names that are kept; the verdict considers all.
    pub kept: usize,
}

impl Options<'_> {
    /// Nothing is trusted.
    pub const DEFAULT: Self =
        Self { limits: Limits::DEFAULT, allow: &[], depth: 4, inflated: None, kept: 1000 };
}

/// Something that a file of tensors does not need.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Byte offset in the stream.
    pub offset: u64,
    /// The opcode there.
    pub opcode: Opcode,
    /// Depth: 0 for the stream itself, 1 for a pickle in a bytes object of it, whose offsets count from its own start.
    pub depth: u32,
    /// What was found.
    pub problem: Problem,
}

/// What a rule says of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// One that files of tensors need.
    Allowed,
    /// Trusted by the user.
    Trusted,
    /// Not known.
    Unknown,
    /// It runs code, opens files or reaches other names.
    Dangerous,
}

/// A name that a loader resolves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Name {
    /// Byte offset of the opcode that resolves it.
    pub offset: u64,
    /// That opcode.
    pub opcode: Opcode,
    /// As for a [`Finding`].
    pub depth: u32,
    /// The module as stored.
    pub module: String,
    /// The name as stored.
    pub name: String,
    /// What a rule says of it.
    pub standing: Standing,
}

/// What loading a stream would do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Findings, in the order in which they were made.
    pub findings: Vec<Finding>,
    /// Names that are resolved, allowed ones, too.
    pub names: Vec<Name>,
    /// Findings and names beyond [`Options::kept`].
    pub dropped: u64,
    /// Opcodes that were followed.
    pub opcodes: u64,
    /// Calls and changes of state among them.
    pub calls: u64,
    verdict: Verdict,
    kept: usize,
}

impl Report {
    pub(crate) const fn new(kept: usize) -> Self {
        Self {
            findings: Vec::new(),
            names: Vec::new(),
            dropped: 0,
            opcodes: 0,
            calls: 0,
            verdict: Verdict::Safe,
            kept,
        }
    }

    /// The worst of all findings.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }

    pub(crate) fn add(&mut self, finding: Finding) {
        self.verdict = self.verdict.max(finding.problem.verdict());
        if self.findings.len() < self.kept {
            if !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        } else {
            self.dropped += 1;
        }
    }

    /// Change with every finding and name.
    pub(crate) const fn counts(&self) -> (usize, usize, u64) {
        (self.findings.len(), self.names.len(), self.dropped)
    }

    pub(crate) fn add_name(&mut self, name: Name) {
        if self.names.len() < self.kept {
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        } else {
            self.dropped += 1;
        }
    }
}
