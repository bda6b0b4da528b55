//! The matrix: suites of vectors by row, readers and writers by column.
//!
//! A format plugs in with a function that fills [`Suite`]s; nothing here knows which format it is.

use alloc::collections::BTreeMap;
use core::fmt;

/// One table of the matrix.
#[derive(Clone, Debug)]
pub struct Suite {
    title: &'static str,
    about: &'static str,
    columns: &'static [&'static str],
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    label: String,
    vectors: usize,
    cells: Vec<Cell>,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    expected: BTreeMap<&'static str, usize>,
    failures: Vec<String>,
}

/// What one column made of one vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The column has nothing to say about this vector.
    NotApplicable,
    /// What the vectors says, in a word for the cell, such as `read` or `refused`.
    Expected(&'static str),
    /// Something else.
    Wrong(String),
}

impl Outcome {
    /// Expected if nothing went wrong.
    #[must_use]
    pub fn from_failure(word: &'static str, failure: Option<String>) -> Self {
        failure.map_or(Self::Expected(word), Self::Wrong)
    }
}

impl Suite {
    /// An empty table.
    #[must_use]
    pub const fn new(title: &'static str, about: &'static str, columns: &'static [&'static str]) -> Self {
        Self { title, about, columns, rows: Vec::new() }
    }

    /// Adds a vector to the row of this label, made at the first vector that names it.
    ///
    /// # Panics
    ///
    /// If there are more or fewer outcomes than columns.
    pub fn record<const N: usize>(&mut self, row: &str, vector: &str, outcomes: [Outcome; N]) {
        assert_eq!(N, self.columns.len(), "one outcome per column");
        let idx = self.rows.iter().position(|known| known.label == row).unwrap_or_else(|| {
            self.rows.push(Row { label: row.to_owned(), vectors: 0, cells: vec![Cell::default(); N] });
            self.rows.len() - 1
        });
        let Some(row) = self.rows.get_mut(idx) else { return };
        row.vectors += 1;
        for (cell, outcome) in row.cells.iter_mut().zip(outcomes) {
            match outcome {
                Outcome::NotApplicable => {}
                Outcome::Expected(word) => *cell.expected.entry(word).or_default() += 1,
                Outcome::Wrong(text) => cell.failures.push(format!("{vector}: {text}")),
            }
        }
    }

    /// Every cell that is not what its sidecar says: row, column, vector and what happened.
    pub fn failures(&self) -> impl Iterator<Item = String> + '_ {
        self.rows.iter().flat_map(move |row| {
            row.cells.iter().zip(self.columns).flat_map(move |(cell, column)| {
                cell.failures
                    .iter()
                    .map(move |text| format!("{}, {}, {column}: {text}", self.title, row.label))
            })
        })
    }

    /// Number of vectors over all rows.
    #[must_use]
    pub fn vectors(&self) -> usize {
        self.rows.iter().map(|row| row.vectors).sum()
    }
}

impl fmt::Display for Suite {
    /// A heading and a Markdown table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}\n\n{}\n", self.title, self.about)?;
        writeln!(f, "| vectors | n | {} |", self.columns.join(" | "))?;
        writeln!(f, "|---|---:|{}", "---|".repeat(self.columns.len()))?;
        for row in &self.rows {
            write!(f, "| {} | {} |", row.label, row.vectors)?;
            for cell in &row.cells {
                write!(f, " {cell} |")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> =
            self.expected.iter().map(|(word, count)| format!("{count} {word}")).collect();
        if !self.failures.is_empty() {
            parts.push(format!("**{} wrong**", self.failures.len()));
        }
        f.write_str(&if parts.is_empty() { "-".to_owned() } else { parts.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_cells_are_counted_shown_and_listed() {
        let mut suite = Suite::new("toy", "About.", &["a", "b"]);
        suite.record("r", "v1", [Outcome::Expected("read"), Outcome::NotApplicable]);
        suite.record("r", "v2", [Outcome::Expected("refused"), Outcome::Wrong("read".to_owned())]);
        assert_eq!(suite.failures().collect::<Vec<_>>(), ["toy, r, b: v2: read"]);
        assert_eq!(suite.vectors(), 2);
        assert!(suite.to_string().contains("| r | 2 | 1 read, 1 refused | **1 wrong** |"));
    }
}
