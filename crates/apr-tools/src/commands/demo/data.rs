//! The training data of the demonstration.

use apr_models::{Matrix, Vector};

use crate::error::{CODE_DEMO, Failure};

/// Sixteen years of the economy of the United States: J. W. Longley, 1967, one of the Statistical Reference Datasets of
/// the National Institute of Standards and Technology, in the public domain. Its columns are nearly dependent, which
/// makes it a hard case for least squares.
const LONGLEY: &str = include_str!("../../../data/longley.csv");

/// Name of the file the table is kept in.
pub(super) const NAME: &str = "longley.csv";

/// The table; its last column is the target.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) features: Vec<&'static str>,
    pub(super) target: &'static str,
    pub(super) x: Matrix,
    pub(super) y: Vector,
}

/// Reads the table.
///
/// # Errors
///
/// If it is not the table this program was built with.
pub(super) fn table() -> Result<Table, Failure> {
    parse(LONGLEY)?.ok_or_else(|| Failure::new(CODE_DEMO, "the built-in table is damaged"))
}

fn parse(text: &'static str) -> Result<Option<Table>, Failure> {
    let mut lines = text.lines();
    let mut features: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let Some(target) = features.pop() else { return Ok(None) };
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for line in lines {
        let row: Result<Vec<f32>, _> = line.split(',').map(str::parse).collect();
        match row.as_deref() {
            Ok([values @ .., last]) if values.len() == features.len() => {
                x.extend_from_slice(values);
                y.push(*last);
            }
            _ => return Ok(None),
        }
    }
    let x = Matrix::from_vec(y.len(), features.len(), x)?;
    Ok(Some(Table { features, target, x, y: Vector::from_vec(y) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        let table = table().unwrap();
        assert_eq!(table.x.shape(), (16, 6));
        assert_eq!((table.target, table.features[5], table.y.len()), ("employed", "year", 16));
    }

    #[test]
    fn damage_is_noticed() {
        assert!(parse("a,b\n1\n").unwrap().is_none());
        assert!(parse("a,b\n1,x\n").unwrap().is_none());
    }
}
