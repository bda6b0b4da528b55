//! The part of a model's report about its checkpoint.

use std::io;

use super::page::Page;
use crate::checkpoints::{About, Checkpoint, Layout};
use crate::commands::checkpoint::list;
use crate::terminal::escape;
use crate::terminal::human;
use crate::terminal::table::{Align, Table};

/// Prints it.
pub(super) fn section(checkpoint: &Checkpoint, about: &About, page: &mut Page<'_>) -> io::Result<()> {
    page.heading("Checkpoint")?;
    let mut table = Table::new(&[Align::Left, Align::Left]);
    let mut line = |label: &str, text: String| table.row([format!("  {label}"), text]);
    line("step", human::grouped(checkpoint.step));
    if !about.metrics.is_empty() {
        line("metrics", list::metrics(about, usize::MAX));
    }
    let texts = [
        ("model", &about.model_class),
        ("optimizer", &about.optimizer_class),
        ("framework", &about.framework),
    ];
    for (label, text) in texts {
        if let Some(text) = text {
            line(label, escape::cut(text, 80));
        }
    }
    if !about.parts.is_empty() {
        line("parts", about.parts.join(", "));
    }
    line(
        "manifest",
        match (about.has_manifest, checkpoint.layout) {
            (true, _) => "yes; its digests are compared by apr check".to_owned(),
            (false, Layout::Steps) => "none: nothing can be verified".to_owned(),
            (false, Layout::Trainer) => "none: this kind of checkpoint has no digests".to_owned(),
        },
    );
    line(
        "files",
        format!("{}, {}", human::grouped(about.contents.files), human::bytes(about.contents.bytes)),
    );
    table.wrapped(page.style).iter().try_for_each(|line| writeln!(page.out, "{line}"))
}
