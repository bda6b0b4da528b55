//! Columns of text.

/// Which edge of its column a cell keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of cells, laid out in columns two spaces apart.
#[derive(Debug)]
pub(crate) struct Table {
    aligns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(aligns: &[Align]) -> Self {
        Self { aligns: aligns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The lines, without trailing spaces. Widths count characters: escaped text has no zero-width ones.
    pub(crate) fn lines(&self) -> Vec<String> {
        let width = |cell: &String| cell.chars().count();
        let mut widths = vec![0; self.aligns.len()];
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = width(cell).max(*widest);
            }
        }
        let line = |row: &Vec<String>| {
            let mut line = String::new();
            for ((cell, &align), &widest) in row.iter().zip(&self.aligns).zip(&widths) {
                let pad = " ".repeat(widest - width(cell));
                match align {
                    Align::Left => line.extend([cell, pad.as_str(), "  "]),
                    Align::Right => line.extend([pad.as_str(), cell, "  "]),
                }
            }
            line.truncate(line.trim_end().len());
            line
        };
        self.rows.iter().map(line).collect()
    }
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
}
