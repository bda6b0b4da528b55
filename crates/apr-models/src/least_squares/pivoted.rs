//! Column-pivoted QR: the choice of independent features, and the minimum-norm solution.

use alloc::vec;
use alloc::vec::Vec;

use nalgebra::{DMatrix, DVector, Reflection, Unit};

use crate::least_squares::F32_ROUNDING;
use crate::least_squares::centre::Centre;

/// Roundings to `f32` a feature may lie away from a combination of others and still count as that combination: one for
/// each term of a short sum.
const ROUNDINGS: f64 = 4.0;

/// A feature keeps its own coefficient, whatever the rounding of its values, if at least this share of its variation
/// is independent of the others.
const INDEPENDENT_SHARE: f64 = 1.0 / 1024.0;

/// Column-pivoted Householder triangularization (Businger and Golub, Numer. Math. 7, 1965) of a centred table, stopped
/// where the columns left are combinations of the ones chosen.
pub(crate) struct Pivoted {
    /// Upper triangular in its first `rank` columns; the last column is the target.
    table: DMatrix<f64>,
    /// Feature in each column of `table`.
    order: Vec<usize>,
    rank: usize,
    /// Norm of each feature's centred column.
    column_norms: Vec<f64>,
}

/// Coefficients before rounding.
pub(crate) struct Solution {
    pub(crate) values: Vec<f64>,
    /// Norm of each feature's centred column.
    pub(crate) column_norms: Vec<f64>,
}

impl Pivoted {
    pub(crate) fn new(mut table: DMatrix<f64>, features: &Centre) -> Self {
        let n_features = features.columns.len();
        let column_norms: Vec<f64> =
            table.column_iter().take(n_features).map(|column| column.norm()).collect();
        let tolerances: Vec<f64> = column_norms
            .iter()
            .zip(&features.columns)
            .map(|(norm, column)| {
                let rounding = ROUNDINGS * F32_ROUNDING * nalgebra::ComplexField::sqrt(column.squares());
                rounding.min(INDEPENDENT_SHARE * norm)
            })
            .collect();
        let mut order: Vec<usize> = (0..n_features).collect();
        let mut rank = 0;
        while rank < n_features.min(table.nrows()) {
            let Some(pivot) = choose_pivot(&table, &order, rank, &tolerances) else { break };
            table.swap_columns(rank, pivot);
            order.swap(rank, pivot);
            eliminate(&mut table, rank);
            rank += 1;
        }
        Self { table, order, rank, column_norms }
    }

    /// Solves for the coefficients of least norm in the caller's units.
    pub(crate) fn minimum_norm(self) -> Solution {
        let Self { table, order, rank, column_norms } = self;
        let n_features = order.len();
        let triangle = table.view((0, 0), (rank, rank));
        let mut chosen = table.view((0, n_features), (rank, 1)).column(0).clone_owned();
        let mut values = vec![0.0; n_features];

        if rank > 0 && rank < n_features {
            // `repeats` says what each feature left is made of; the predictions stay the same for every solution with
            // `from_chosen + repeats * from_left = chosen`.
            let mut repeats = table.view((0, rank), (rank, n_features - rank)).clone_owned();
            solve_triangle(&triangle, &mut repeats);
            solve_triangle(&triangle, &mut chosen);
            // What is within the rounding of a feature is noise, and noise times the ratio of two units is garbage.
            let mut clear = repeats.clone();
            for (mut column, &feature) in clear.column_iter_mut().zip(&order[rank..]) {
                for (part, &chosen_feature) in column.iter_mut().zip(&order) {
                    let noise = ROUNDINGS * F32_ROUNDING * column_norms[feature];
                    if part.abs() * column_norms[chosen_feature] <= noise {
                        *part = 0.0;
                    }
                }
            }
            let from_left = shortest_split(&clear, &chosen);
            // By substitution and not from the same orthogonal basis, so that the predictions are right to the last
            // digit even if the basis mixes coefficients of very different magnitude.
            chosen.gemv(-1.0, &repeats, &from_left, 1.0);
            for (&value, &feature) in from_left.iter().zip(&order[rank..]) {
                values[feature] = value;
            }
        } else {
            solve_triangle(&triangle, &mut chosen);
        }
        for (&value, &feature) in chosen.iter().zip(&order) {
            values[feature] = value;
        }
        Solution { values, column_norms }
    }
}

/// Position of the next column: the one with most information left, measured in its tolerance; of those within a
/// factor of four the one of the largest numbers, so that features left are small multiples of features chosen.
fn choose_pivot(table: &DMatrix<f64>, order: &[usize], rank: usize, tolerances: &[f64]) -> Option<usize> {
    let height = table.nrows() - rank;
    let left: Vec<(usize, f64, f64)> = (rank..order.len())
        .filter_map(|position| {
            let norm = table.view((rank, position), (height, 1)).norm();
            let tolerance = tolerances[order[position]];
            (norm > tolerance).then_some((position, norm / tolerance, norm))
        })
        .collect();
    let most = left.iter().fold(0.0_f64, |most, &(_, information, _)| most.max(information));
    let mut best: Option<(usize, f64)> = None;
    for (position, information, norm) in left {
        if information >= most / 4.0 && best.is_none_or(|(_, best_norm)| norm > best_norm) {
            best = Some((position, norm));
        }
    }
    best.map(|(position, _)| position)
}

/// Reflects the rows from `step` on so that column `step` becomes zero below its diagonal.
fn eliminate(table: &mut DMatrix<f64>, step: usize) {
    let (height, width) = (table.nrows() - step, table.ncols() - step - 1);
    let mut axis = table.view((step, step), (height, 1)).column(0).clone_owned();
    // Away from the first value: no cancellation.
    let diagonal = if axis[0] > 0.0 { -axis.norm() } else { axis.norm() };
    axis[0] -= diagonal;
    let reflection = Reflection::new(Unit::new_normalize(axis), 0.0);
    reflection.reflect(&mut table.view_mut((step, step + 1), (height, width)));
    table.view_mut((step, step), (height, 1)).fill(0.0);
    table[(step, step)] = diagonal;
}

/// Of all `(a, b)` with `a + repeats * b = chosen`, the `b` of the shortest.
///
/// The shortest solution of `[I repeats] (a, b) = chosen` is in the row space, of which a QR factorization of the transpose
/// gives an orthonormal basis.
fn shortest_split(repeats: &DMatrix<f64>, chosen: &DVector<f64>) -> DVector<f64> {
    let (rank, n_left) = repeats.shape();
    let mut rows = DMatrix::zeros(rank + n_left, rank);
    rows.view_mut((0, 0), (rank, rank)).fill_with_identity();
    rows.view_mut((rank, 0), (n_left, rank)).tr_copy_from(repeats);
    let qr = rows.qr();
    let mut along = chosen.clone();
    let solved = qr.r().tr_solve_upper_triangular_mut(&mut along);
    debug_assert!(solved, "the identity keeps the rows independent");
    let basis = qr.q();
    basis.rows(rank, n_left) * along
}

fn solve_triangle<C: nalgebra::Dim, S>(
    triangle: &nalgebra::DMatrixView<'_, f64>,
    values: &mut nalgebra::Matrix<f64, nalgebra::Dyn, C, S>,
) where
    S: nalgebra::StorageMut<f64, nalgebra::Dyn, C>,
{
    let solved = triangle.solve_upper_triangular_mut(values);
    debug_assert!(solved, "every pivot exceeds its tolerance");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elimination_keeps_lengths_and_clears_the_column() {
        let mut table = DMatrix::from_row_slice(3, 2, &[3.0, 1.0, 0.0, 2.0, 4.0, 3.0]);
        let gram = table.transpose() * &table;
        eliminate(&mut table, 0);
        assert_eq!((table[(1, 0)], table[(2, 0)]), (0.0, 0.0));
        assert!((table.transpose() * &table - gram).norm() < 1e-13);
    }

    #[test]
    fn pivot_is_the_larger_of_equally_informative_columns() {
        let table = DMatrix::from_row_slice(2, 4, &[1.0, 2.0, 2.0, 0.0, 1.0, 2.0, 2.0, 0.0]);
        assert_eq!(choose_pivot(&table, &[0, 1, 2], 0, &[0.1, 0.1, 0.2]), Some(1));
        assert_eq!(choose_pivot(&table, &[0, 1, 2], 0, &[0.1, 3.0, 3.0]), Some(0));
        assert_eq!(choose_pivot(&table, &[0, 1, 2], 0, &[2.0, 3.0, 3.0]), None);
    }

    #[test]
    fn split_is_orthogonal_to_every_change_that_keeps_the_sum() {
        let repeats = DMatrix::from_row_slice(2, 3, &[1.0, 0.5, -2.0, 0.0, 3.0, 1.0]);
        let chosen = DVector::from_row_slice(&[2.0, -1.0]);
        let b = shortest_split(&repeats, &chosen);
        let a = &chosen - &repeats * &b;
        // Moving b by d moves a by -repeats * d.
        assert!((repeats.transpose() * a - b).norm() < 1e-14);
    }
}
