//! `apr check --values`: values that are no numbers, and tensors that are all alike.

use std::path::Path;

use alloc::rc::Rc;

use model_file::{Scan, Statistics};

use crate::error::Failure;
use crate::input::{Model, Rules, Source};
use crate::secrets::Keys;
use crate::tensor_fold::fold;
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{self, grouped, plural};

/// Most tensors that are named in the text.
const NAMED: usize = 20;

/// What is remarkable about the values of a file.
pub(super) struct Values {
    /// Tensors whose values were looked at.
    pub(super) tensors: u64,
    /// Tensors of types whose values are not known.
    pub(super) unread: u64,
    pub(super) findings: Vec<Finding>,
}

/// What is remarkable about the values of a tensor.
pub(super) struct Finding {
    pub(super) tensor: String,
    pub(super) statistics: Statistics,
}

impl Values {
    /// Looks at all values of a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(super) fn of(
        path: &Path,
        rules: &Rules,
        keys: &Rc<Keys>,
        console: &Console,
    ) -> Result<Self, Failure> {
        let source = Source::open(path)?.with_keys(keys);
        let model = Model::from_source(source, &rules.with_unchecked_signatures())?;
        let tensors: Vec<_> =
            model.tensors()?.into_iter().filter(|tensor| tensor.alias_of().is_none()).collect();
        let scans = fold(&tensors, "checking", console, |_, dtype| Scan::new(dtype))?;
        let mut values = Self { tensors: 0, unread: 0, findings: Vec::new() };
        for (tensor, scan) in tensors.iter().zip(scans) {
            let Some(statistics) = scan.map(Scan::finish) else {
                values.unread += 1;
                continue;
            };
            values.tensors += 1;
            if statistics.nan + statistics.infinite + statistics.subnormal > 0 || statistics.is_constant {
                values.findings.push(Finding { tensor: tensor.name().to_owned(), statistics });
            }
        }
        Ok(values)
    }

    /// Whether there are values that are NaN or infinite.
    pub(super) fn are_not_finite(&self) -> bool {
        self.findings.iter().any(Finding::is_not_finite)
    }

    /// The lines of the text: tensors with values that are not finite first.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let (worse, milder): (Vec<_>, Vec<_>) =
            self.findings.iter().partition(|finding| finding.is_not_finite());
        for findings in [worse, milder] {
            lines.extend(findings.iter().take(NAMED).map(|finding| finding.line()));
            if let Some(more) = findings.len().checked_sub(NAMED).filter(|&more| more > 0) {
                lines.push(format!("{} more of this kind", plural(more as u64, "tensor")));
            }
        }
        if self.unread > 0 {
            lines.push(format!("{} of a type whose values are not known", plural(self.unread, "tensor")));
        }
        lines
    }
}

impl Finding {
    const fn is_not_finite(&self) -> bool {
        self.statistics.nan + self.statistics.infinite > 0
    }

    fn line(&self) -> String {
        let Statistics { count, nan, infinite, subnormal, range, is_constant, .. } = self.statistics;
        let tensor = escape::cut(&self.tensor, 60);
        if is_constant {
            let value = range.map_or(0.0, |(low, _)| low);
            return format!("tensor `{tensor}`: all {} values are {}", grouped(count), human::float(value));
        }
        let found: Vec<String> = [(nan, "NaN"), (infinite, "infinite"), (subnormal, "subnormal")]
            .into_iter()
            .filter(|&(found, _)| found > 0)
            .map(|(found, what)| format!("{} {what}", grouped(found)))
            .collect();
        format!("tensor `{tensor}`: of {} values {}", grouped(count), found.join(", "))
    }
}
