//! Columns of text.

use super::style::Style;
use super::width;

/// Which edge of its column a cell keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Columns of a name that are kept if other columns can be left out instead.
const NAME_WIDTH: usize = 20;

/// Fewest columns that text is wrapped to.
const TEXT_WIDTH: usize = 16;

/// Rows of cells, laid out in columns two spaces apart. The first column holds names.
#[derive(Debug)]
pub(crate) struct Table {
    aligns: Vec<Align>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    /// Bytes at the beginning of the name that are not part of it.
    indent: usize,
    cells: Vec<String>,
}

/// What a table that is too wide for the terminal goes without, as indices of columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dispensable {
    /// Left out one by one before names are shortened.
    pub(crate) first: &'static [usize],
    /// Left out one by one when names would become too short.
    pub(crate) last: &'static [usize],
}

impl Table {
    pub(crate) fn new(aligns: &[Align]) -> Self {
        Self { aligns: aligns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.indented_row("", cells);
    }

    /// Adds a row with `indent` before its name, which stays when the name is shortened.
    pub(crate) fn indented_row<S: Into<String>>(&mut self, indent: &str, cells: impl IntoIterator<Item = S>) {
        let mut cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        if let Some(name) = cells.first_mut() {
            name.insert_str(0, indent);
        }
        self.rows.push(Row { indent: indent.len(), cells });
    }

    /// The lines, without trailing spaces.
    pub(crate) fn lines(&self) -> Vec<String> {
        let widths: Vec<_> = self.widths().into_iter().map(Some).collect();
        self.rows.iter().map(|row| self.line(&row.cells, &widths)).collect()
    }

    /// The lines, no longer than a line of the terminal as far as leaving columns out and shortening names allow it.
    pub(crate) fn fitted(&self, style: Style, dispensable: Dispensable) -> Vec<String> {
        let mut widths: Vec<_> = self.widths().into_iter().map(Some).collect();
        let Some((name, available)) = widths.first().copied().flatten().zip(style.width()) else {
            return self.lines();
        };
        let besides = |widths: &[Option<usize>]| -> usize {
            widths.iter().skip(1).flatten().filter(|&&width| width > 0).map(|width| width + 2).sum()
        };
        for (columns, needed) in [(dispensable.first, name), (dispensable.last, name.min(NAME_WIDTH))] {
            for &column in columns {
                if needed + besides(&widths) <= available {
                    break;
                }
                widths[column] = None;
            }
        }
        let name = name.min(available.saturating_sub(besides(&widths)).max(TEXT_WIDTH));
        widths[0] = Some(name);
        let shortened = |row: &Row| {
            let mut cells = row.cells.clone();
            if let Some(cell) = cells.first_mut() {
                let (indent, text) = cell.split_at(row.indent);
                *cell = match name.checked_sub(width::of(indent)) {
                    Some(available) if available >= TEXT_WIDTH / 2 => {
                        format!("{indent}{}", style.shorten(text, available))
                    }
                    _ => style.shorten(cell, name),
                };
            }
            self.line(&cells, &widths)
        };
        self.rows.iter().map(shortened).collect()
    }

    /// The lines, with the text in the last column wrapped to the terminal.
    pub(crate) fn wrapped(&self, style: Style) -> Vec<String> {
        let (lines, Some(available)) = (self.lines(), style.width()) else { return self.lines() };
        let widths = self.widths();
        let before: usize = widths.iter().rev().skip(1).map(|width| width + 2).sum();
        if before + TEXT_WIDTH > available {
            return lines;
        }
        lines.iter().flat_map(|line| wrap(line, available, before)).collect()
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.aligns.len()];
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(&row.cells) {
                *widest = width::of(cell).max(*widest);
            }
        }
        widths
    }

    /// A row whose columns have these widths; `None` leaves a column out.
    fn line(&self, cells: &[String], widths: &[Option<usize>]) -> String {
        let mut line = String::new();
        for ((cell, &align), &widest) in cells.iter().zip(&self.aligns).zip(widths) {
            let Some(widest) = widest else { continue };
            let pad = " ".repeat(widest.saturating_sub(width::of(cell)));
            match align {
                Align::Left => line.extend([cell, pad.as_str(), "  "]),
                Align::Right => line.extend([pad.as_str(), cell, "  "]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// Wraps a line at `available` columns between words; lines after the first are indented by `indent`.
pub(crate) fn wrap(line: &str, available: usize, indent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = line.to_owned();
    while width::of(&rest) > available {
        let mut used = 0;
        let places = rest.char_indices().filter_map(|(at, c)| {
            let place = (c == ' ' && used > indent && used <= available).then_some(at);
            used += width::of_char(c);
            place
        });
        let Some(at) = places.last() else { break };
        let tail = rest.split_off(at);
        lines.push(rest);
        rest = " ".repeat(indent) + tail.trim_start();
    }
    lines.push(rest);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Left]);
        table.row(["name", "bytes", "note"]);
        table.row(["é", "12", ""]);
        table.row(["longer", "1"]);
        assert_eq!(table.lines(), ["name    bytes  note", "é          12", "longer      1"]);
    }

    fn model() -> Table {
        let mut table = Table::new(&[Align::Left, Align::Left, Align::Right, Align::Left]);
        table.row(["NAME", "TENSOR", "BYTES", ""]);
        table.indented_row(
            "├─ ",
            ["model.layers.10.mlp.up_proj.weight", "F32 [11008, 4096]", "180.4 MB", "███"],
        );
        table.indented_row("├─ ", ["重み", "F32 [8]", "32 B", ""]);
        table
    }

    #[test]
    fn no_row_is_wider_than_the_terminal() {
        const DISPENSABLE: Dispensable = Dispensable { first: &[3, 2], last: &[1] };
        let fitted = |width| model().fitted(Style::PLAIN.with_width(width), DISPENSABLE);
        assert_eq!(fitted(71), model().lines());
        assert!(!fitted(70)[1].contains('█') && fitted(70)[1].contains("180.4 MB"));
        assert_eq!(
            fitted(60),
            [
                "NAME                                   TENSOR".to_owned() + "",
                "├─ model.layers.10.mlp.up_proj.weight  F32 [11008, 4096]".to_owned(),
                "├─ 重み                                F32 [8]".to_owned()
            ]
        );
        assert_eq!(fitted(40)[1], "├─ model.la…oj.weight  F32 [11008, 4096]");
        assert_eq!(fitted(30)[1], "├─ model.layers.…p_proj.weight");
        for width in 16..90 {
            assert!(
                fitted(width).iter().all(|line| width::of(line) <= width),
                "{width}: {:?}",
                fitted(width)
            );
        }
    }

    #[test]
    fn text_is_wrapped_below_its_column() {
        let mut table = Table::new(&[Align::Left, Align::Left]);
        table.row(["  alignment", "every tensor to its elements; 104 of 104 to 64 bytes"]);
        assert_eq!(table.wrapped(Style::PLAIN), table.lines());
        assert_eq!(
            table.wrapped(Style::PLAIN.with_width(40)),
            [
                "  alignment  every tensor to its",
                "             elements; 104 of 104 to 64",
                "             bytes"
            ]
        );
        assert_eq!(wrap("unbreakable", 5, 2), ["unbreakable"]);
    }
}
