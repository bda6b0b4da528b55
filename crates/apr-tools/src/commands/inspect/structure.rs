//! The structure in a safetensors file: nested data around its tensors.

use std::io;

use st_core::Header;
use st_structures::{Content, Limits, Outline, SCHEMA_KEY, VERSION_KEY};

use super::page::Page;
use crate::terminal::escape::{cut, escaped};
use crate::terminal::human::{grouped, plural, shape};
use crate::terminal::tree::Extent;

/// Longest label, value and name that are shown.
const CHARS: usize = 60;

/// Whether an entry of the metadata is shown here instead.
pub(super) fn is_part(key: &str) -> bool {
    [SCHEMA_KEY, VERSION_KEY].contains(&key)
}

/// Prints the tree of a file that holds a structure.
pub(super) fn section(header: &Header, extent: Option<Extent>, page: &mut Page<'_>) -> io::Result<()> {
    let Some(schema) = header.metadata().and_then(|metadata| metadata.get(SCHEMA_KEY)) else { return Ok(()) };
    page.heading("Structure")?;
    let outline = match Outline::from_schema(schema, &Limits::DEFAULT) {
        Ok(outline) => outline,
        Err(error) => {
            let mark = page.style.yellow("!");
            return writeln!(page.out, "  {mark} {} ({})", escaped(&error.to_string()), error.code());
        }
    };
    writeln!(page.out, "  {}", line("", &outline, header))?;
    nodes(&outline, "  ", extent.unwrap_or(Extent { per_group: 0, depth: 0 }), header, page)
}

fn nodes(
    outline: &Outline,
    indent: &str,
    extent: Extent,
    header: &Header,
    page: &mut Page<'_>,
) -> io::Result<()> {
    let Content::Nodes(inner) = &outline.content else { return Ok(()) };
    let Some(depth) = extent.depth.checked_sub(1) else { return Ok(()) };
    let hidden = inner.len().saturating_sub(extent.per_group);
    for (idx, (label, node)) in inner.iter().take(extent.per_group).enumerate() {
        let (branch, below) = page.style.branch(idx + 1 == inner.len());
        writeln!(page.out, "{indent}{branch}{}", line(label, node, header))?;
        nodes(node, &format!("{indent}{below}"), Extent { depth, ..extent }, header, page)?;
    }
    if hidden > 0 {
        let (branch, _) = page.style.branch(true);
        writeln!(page.out, "{indent}{branch}... {} more (-v shows all)", grouped(hidden as u64))?;
    }
    Ok(())
}

/// `label: type value`, of a tensor with its name, type and shape.
fn line(label: &str, node: &Outline, header: &Header) -> String {
    let mut text = match label {
        "" => String::new(),
        label => format!("{}: ", cut(label, CHARS)),
    };
    text.push_str(&match &node.name {
        Some(name) => cut(name, CHARS),
        None => cut(&node.data_type, CHARS),
    });
    match &node.content {
        Content::Nothing => {}
        Content::Text(value) => text.push_str(&format!(" {}", cut(value, CHARS))),
        Content::Nodes(inner) => text.push_str(&format!(", {}", plural(inner.len() as u64, "item"))),
        Content::Tensor(id) => {
            let found = header.tensor(id);
            let what = found.map(|info| format!("{} {}", info.dtype(), shape(info.shape())));
            text.push_str(&format!(" {}, tensor {}", what.as_deref().unwrap_or("of no"), cut(id, CHARS)));
        }
    }
    text
}
