//! Reduces a table to few rows with the same least-squares solution (sequential TSQR).

use nalgebra::DMatrix;

use crate::error::{Error, ErrorKind};
use crate::least_squares::centre::Centre;
use crate::matrix::Matrix;
use crate::vector::Vector;

/// Fewest rows worth a factorization of their own.
const BLOCK_ROWS: usize = 1024;

/// The centred features with the centred target as last column, each row times the root of its weight if there are
/// weights; or the triangle that orthogonal transformations of the rows leave.
///
/// A tall table is factorized block by block, each block under the triangle of the ones before it (sequential TSQR:
/// Demmel, Grigori, Hoemmen, Langou, SIAM J. Sci. Comput. 34, 2012), so that working memory depends on the number of
/// features only.
pub(crate) fn centred_table(
    x: &Matrix,
    y: &Vector,
    features: &Centre,
    target: &Centre,
    weights: Option<&[f64]>,
) -> Result<DMatrix<f64>, Error> {
    let (n_rows, n_cols) = x.shape();
    let too_large = || Error::from(ErrorKind::MatrixTooLarge { n_rows, n_cols });
    let width = n_cols.checked_add(1).ok_or_else(too_large)?;
    // Four times the triangle: its share of the work is then a fifth.
    let block_rows = width.saturating_mul(4).max(BLOCK_ROWS).min(n_rows);
    // No matrix after this one is larger.
    let values = block_rows.checked_add(width.min(block_rows)).and_then(|rows| rows.checked_mul(width));
    if values.is_none_or(|values| values > isize::MAX as usize / size_of::<f64>()) {
        return Err(too_large());
    }

    let mut triangle = DMatrix::zeros(0, width);
    let mut n_done = 0;
    let blocks = x.as_slice().chunks(block_rows * n_cols).zip(y.as_slice().chunks(block_rows));
    for (samples, targets) in blocks {
        let above = triangle.nrows();
        let mut table = DMatrix::zeros(above + targets.len(), width);
        table.rows_mut(0, above).copy_from(&triangle);
        for (row, (sample, &value)) in samples.chunks_exact(n_cols).zip(targets).enumerate() {
            for (col, (&value, column)) in sample.iter().zip(&features.columns).enumerate() {
                table[(above + row, col)] = column.centred(value);
            }
            table[(above + row, n_cols)] = target.columns[0].centred(value);
            if let Some(weights) = weights {
                table.row_mut(above + row).scale_mut(libm::sqrt(weights[n_done + row]));
            }
        }
        n_done += targets.len();
        if block_rows == n_rows {
            return Ok(table);
        }
        triangle = table.qr().unpack_r();
    }
    Ok(triangle)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::least_squares::centre::Origin;

    #[test]
    fn blocks_leave_a_triangle_of_the_same_products() {
        let n_rows = 3 * BLOCK_ROWS + 1;
        let values: Vec<f32> = (0..n_rows as u32 * 2).map(|idx| (idx * idx % 97) as f32).collect();
        let x = Matrix::from_vec(n_rows, 2, values).expect("two values a row");
        let y: Vector = (0..n_rows as u32).map(|idx| (idx % 13) as f32).collect();
        let features = Centre::of_features(&x, Origin::Mean).expect("finite");
        let target = Centre::of_target(&y, Origin::Mean).expect("finite");
        let triangle = centred_table(&x, &y, &features, &target, None).expect("small");
        assert_eq!(triangle.shape(), (3, 3));

        let mut whole = DMatrix::zeros(n_rows, 3);
        for (row, sample) in x.rows().enumerate() {
            whole[(row, 0)] = features.columns[0].centred(sample[0]);
            whole[(row, 1)] = features.columns[1].centred(sample[1]);
            whole[(row, 2)] = target.columns[0].centred(y[row]);
        }
        let products = whole.transpose() * &whole;
        assert!((triangle.transpose() * &triangle - &products).norm() < 1e-13 * products.norm());
    }
}
