//! What loading a file would run, as the object that `apr scan --json` prints.

use alloc::vec::Vec;

use model_file::FileKind;
use model_scan::{FileRow, Options, ScanRow};
use read_at::ReadAt as _;

use super::OpenFile;
use crate::failure::Failure;
use crate::wire::{Answer, Arguments, Outcome};

impl OpenFile {
    /// Scans the file: its name, then names that the caller trusts, as `package.module.name`.
    pub(crate) fn scan(&mut self, args: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        let path = args.text()?;
        let mut allow = Vec::new();
        while let Ok(name) = args.text() {
            allow.extend(name.rsplit_once('.'));
        }
        let mut options = Options::DEFAULT;
        options.allow = &allow;
        let pages = self.pages()?;
        let bytes = pages.total_len();
        let scanned = FileKind::identify(bytes, |offset, out| pages.read_exact_at(offset, out))
            .map_err(Outcome::from)
            .and_then(|kind| Ok((kind, model_scan::scan_named(&**pages, path, &options)?)));
        self.need_missing()?;
        let (kind, mut report) = scanned?;
        if bytes > 0 {
            report.check_name(path, kind.name());
        }
        let (format, _) = report.format_of(bytes, kind.name().map(|name| (name, kind.title())));
        let row = ScanRow::from(FileRow::new(path.into(), format, bytes, &report));
        // Strings and numbers, which always have a JSON text.
        let json = serde_json::to_string(&row).map_err(|_| Failure::message())?;
        self.forget();
        Ok(Answer { json, bytes: Vec::new() })
    }
}
