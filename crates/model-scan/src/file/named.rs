//! What names of files and members say, where the content has no mark.

use alloc::string::String;

use pickle_core::Error;
use read_at::ReadAt;

use super::prefix;
use crate::problem::Problem;
use crate::template;

/// Files that a loader or a user runs because of their names: Python, templates.
pub(super) fn scan(source: &dyn ReadAt, name: &str) -> Result<Option<(u64, Problem)>, Error> {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let problem = match ending.as_deref() {
        Some("py" | "pyw" | "pyc") => Problem::PythonFile {},
        Some("jinja" | "jinja2" | "j2") => {
            let len = source.total_len().min(template::MAX as u64 + 1);
            let mut text = alloc::vec![0; usize::try_from(len).unwrap_or_default()];
            let text = prefix(source, &mut text)?;
            template::judge(&String::from_utf8_lossy(text))
        }
        _ => return Ok(None),
    };
    Ok(Some((0, problem)))
}
