//! Sums over all pairs of a row and a row of a table: products of matrices, and distances.
//!
//! Tiles of four rows and eight rows of the table, vectorized over the latter. Each sum is that of its [`SumOrder`] to the last
//! bit: the tile runs over the summed index lane by lane, or value by value.

use alloc::vec;

use crate::kernels::products::{LANES, SumOrder};
use crate::kernels::vectors::Vectors;

/// Rows of a tile.
const ROWS: usize = 4;

/// Rows of the table in a tile.
const COLUMNS: usize = 8;

/// Writes for every row and every row of the table the sum of `term` over their values: `[n_rows, n_table]`, row-major. Both have
/// `width` values in a row, at least 1.
pub(crate) fn all_pairs<T: Copy + Into<f64>>(
    order: SumOrder,
    rows: &[f64],
    table: &[T],
    width: usize,
    term: impl Fn(f64, f64) -> f64 + Copy,
    out: &mut [f64],
) {
    let n_table = table.len() / width;
    let n_tiled = match Vectors::detect() {
        Some(vectors) if rows.len() >= ROWS * width => {
            vectors.run(
                #[inline(always)]
                || all_tiles(order, rows, table, width, term, out),
            );
            rows.len() / width / ROWS * ROWS
        }
        _ => 0,
    };
    let rows = rows.chunks_exact(width).zip(out.chunks_exact_mut(n_table.max(1)));
    for (row, out) in rows.skip(n_tiled) {
        let table = table.chunks_exact(width);
        out.iter_mut().zip(table).for_each(|(place, other)| *place = order.sum(row, other, term));
    }
}

/// As [`all_pairs`] for all rows that fill tiles.
#[inline(always)]
fn all_tiles<T: Copy + Into<f64>>(
    order: SumOrder,
    rows: &[f64],
    table: &[T],
    width: usize,
    term: impl Fn(f64, f64) -> f64 + Copy,
    out: &mut [f64],
) {
    let n_table = table.len() / width;
    let mut panel = vec![0.0; width * COLUMNS];
    let mut first = 0;
    macro_rules! panels {
        ($($n:literal)*) => {
            $(while n_table - first >= $n {
                let table = table.get(first * width..).unwrap_or_default();
                let panel = pack::<$n, T>(table, width, &mut panel);
                panel_of::<$n>(order, rows, panel, term, (first, n_table), out);
                first += $n;
            })*
        };
    }
    const { assert!(COLUMNS == 8) };
    panels!(8 4 2 1);
}

/// The first `N` rows of a table side by side.
#[inline(always)]
fn pack<'p, const N: usize, T: Copy + Into<f64>>(
    table: &[T],
    width: usize,
    panel: &'p mut [f64],
) -> &'p [[f64; N]] {
    let (places, _) = panel.as_chunks_mut::<N>();
    let places = places.get_mut(..width).unwrap_or_default();
    for (lane, row) in table.chunks_exact(width).take(N).enumerate() {
        places.iter_mut().zip(row).for_each(|(place, &value)| {
            if let Some(place) = place.get_mut(lane) {
                *place = value.into();
            }
        });
    }
    places
}

/// The sums of all rows with a panel of the table, whose first row is the row `first`.
#[inline(always)]
fn panel_of<const N: usize>(
    order: SumOrder,
    rows: &[f64],
    panel: &[[f64; N]],
    term: impl Fn(f64, f64) -> f64 + Copy,
    (first, n_table): (usize, usize),
    out: &mut [f64],
) {
    let width = panel.len();
    for (rows, out) in rows.chunks_exact(ROWS * width).zip(out.chunks_exact_mut(ROWS * n_table)) {
        let mut each = rows.chunks_exact(width);
        let sums = tile(order, core::array::from_fn(|_| each.next().unwrap_or_default()), panel, term);
        for (sums, out) in sums.iter().zip(out.chunks_exact_mut(n_table)) {
            if let Some(places) = out.get_mut(first..first + N) {
                places.copy_from_slice(sums);
            }
        }
    }
}

/// One tile of sums.
#[inline(always)]
fn tile<const N: usize>(
    order: SumOrder,
    rows: [&[f64]; ROWS],
    panel: &[[f64; N]],
    term: impl Fn(f64, f64) -> f64 + Copy,
) -> [[f64; N]; ROWS] {
    if matches!(order, SumOrder::InOrder) {
        let mut sums = [[0.0; N]; ROWS];
        let [a, b, c, d] = rows;
        for (((&a, &b), (&c, &d)), values) in a.iter().zip(b).zip(c.iter().zip(d)).zip(panel) {
            add(&mut sums, [a, b, c, d], values, term);
        }
        return sums;
    }
    // Not a closure: each call is compiled into this function, with the vectors of its caller.
    macro_rules! sums {
        ($lane:literal) => {
            lane_sums($lane, rows, panel, term)
        };
    }
    let (s0, s1) = (plus(sums!(0), sums!(4)), plus(sums!(1), sums!(5)));
    let (s2, s3) = (plus(sums!(2), sums!(6)), plus(sums!(3), sums!(7)));
    plus(plus(s0, s1), plus(s2, s3))
}

/// The sums over every eighth value, from the value `lane` on.
#[inline(always)]
fn lane_sums<const N: usize>(
    lane: usize,
    rows: [&[f64]; ROWS],
    panel: &[[f64; N]],
    term: impl Fn(f64, f64) -> f64 + Copy,
) -> [[f64; N]; ROWS] {
    let [a, b, c, d] = rows.map(|row| row.as_chunks::<LANES>());
    let (whole, rest) = panel.as_chunks::<LANES>();
    let mut sums = [[0.0; N]; ROWS];
    let chunks = a.0.iter().zip(b.0).zip(c.0.iter().zip(d.0)).zip(whole);
    for (((a, b), (c, d)), values) in chunks {
        add(&mut sums, [a[lane], b[lane], c[lane], d[lane]], &values[lane], term);
    }
    if let Some(values) = rest.get(lane) {
        let row_values = [a.1, b.1, c.1, d.1].map(|rest| rest.get(lane).copied().unwrap_or_default());
        add(&mut sums, row_values, values, term);
    }
    sums
}

#[inline(always)]
fn add<const N: usize>(
    sums: &mut [[f64; N]; ROWS],
    row_values: [f64; ROWS],
    values: &[f64; N],
    term: impl Fn(f64, f64) -> f64,
) {
    for row in 0..ROWS {
        for column in 0..N {
            sums[row][column] += term(row_values[row], values[column]);
        }
    }
}

#[inline(always)]
fn plus<const N: usize>(mut a: [[f64; N]; ROWS], b: [[f64; N]; ROWS]) -> [[f64; N]; ROWS] {
    for row in 0..ROWS {
        for column in 0..N {
            a[row][column] += b[row][column];
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn every_sum_has_the_bits_of_its_pair_alone() {
        let mut rng = Rng::new(5);
        for width in (1..=20).chain([64, 100]) {
            for (n_rows, n_table) in [(1, 3), (3, 8), (4, 1), (5, 17), (13, 10), (16, 31)] {
                let mut values = |count: usize| (0..count).map(|_| rng.normal()).collect::<Vec<f64>>();
                let (rows, table) = (values(n_rows * width), values(n_table * width));
                let narrow: Vec<f32> = table.iter().map(|&value| value as f32).collect();
                let mut out = vec![f64::NAN; n_rows * n_table];
                let check = |expected: &dyn Fn(&[f64], usize) -> f64, out: &[f64]| {
                    for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact(n_table)) {
                        for (idx, found) in out.iter().enumerate() {
                            assert_eq!(
                                found.to_bits(),
                                expected(row, idx).to_bits(),
                                "{width} {n_rows} {n_table}"
                            );
                        }
                    }
                };
                for order in [SumOrder::Lanes, SumOrder::InOrder] {
                    all_pairs(order, &rows, &table, width, |a, b| a * b, &mut out);
                    check(&|row, idx| order.dot(row, &table[idx * width..][..width]), &out);
                    all_pairs(order, &rows, &narrow, width, |a, b| (a - b) * (a - b), &mut out);
                    check(&|row, idx| order.squared_distance(row, &narrow[idx * width..][..width]), &out);
                }
            }
        }
    }
}
