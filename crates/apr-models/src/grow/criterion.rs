//! What a split improves: Gini's impurity of classes, the variance of numbers.

use alloc::vec::Vec;

/// Statistics of rows that a split is chosen by.
///
/// A cell is a list of sums over rows: first their number, in which a row drawn twice counts twice, then sums of weights.
pub(crate) trait Criterion: Sync {
    /// What a row adds to a cell.
    type Item: Copy + Sync;
    /// Sums of a cell.
    fn width(&self) -> usize;
    fn item(&self, row: u32) -> Self::Item;
    /// Adds a row to the cell at that place among `cells`.
    fn add(&self, cells: &mut [f64], place: usize, item: Self::Item);
    /// How alike the rows of a cell are; the larger, the lower is their total impurity.
    fn score(&self, cell: &[f64]) -> f64;
    /// The sum of the scores of two cells: `left`, and what it lacks of `total`. Not a number if one has no weight.
    fn score_of_sides(&self, left: &[f64], total: &[f64]) -> f64;
    /// The weight of the rows of a cell.
    fn weight(&self, cell: &[f64]) -> f64;
    /// Impurity of the rows, which add up to `cell`.
    fn impurity(&self, items: &[Self::Item], cell: &[f64]) -> f64;
    /// Whether nothing tells the rows apart.
    fn is_pure(&self, items: &[Self::Item]) -> bool;
}

/// Gini's impurity, `1 - sum(share²)` over the classes. A cell is the number of rows, then the weight of each class.
pub(crate) struct Gini<'s> {
    pub(crate) n_classes: usize,
    /// The class of each row.
    pub(crate) classes: &'s [u32],
    pub(crate) weights: &'s [f64],
    /// How often each row was drawn; all once if it is empty.
    pub(crate) draws: Vec<u32>,
}

/// What a row adds to the cells of a [`Gini`].
#[derive(Clone, Copy)]
pub(crate) struct OfClass {
    class: u32,
    draws: u32,
    weight: f64,
}

impl Criterion for Gini<'_> {
    type Item = OfClass;

    fn width(&self) -> usize {
        self.n_classes + 1
    }

    fn item(&self, row: u32) -> OfClass {
        let row = row as usize;
        let draws = self.draws.get(row).copied().unwrap_or(1);
        OfClass { class: self.classes[row], draws, weight: self.weights[row] * f64::from(draws) }
    }

    fn add(&self, cells: &mut [f64], place: usize, item: OfClass) {
        let start = place * self.width();
        cells[start] += f64::from(item.draws);
        cells[start + 1 + item.class as usize] += item.weight;
    }

    fn score(&self, cell: &[f64]) -> f64 {
        let (mut weight, mut squares) = (0.0, 0.0);
        for &of_class in &cell[1..] {
            weight += of_class;
            squares += of_class * of_class;
        }
        squares / weight
    }

    fn score_of_sides(&self, left: &[f64], total: &[f64]) -> f64 {
        let (mut left_weight, mut left_squares) = (0.0, 0.0);
        let (mut right_weight, mut right_squares) = (0.0, 0.0);
        for (&left, &total) in left[1..].iter().zip(&total[1..]) {
            let right = total - left;
            left_weight += left;
            left_squares += left * left;
            right_weight += right;
            right_squares += right * right;
        }
        left_squares / left_weight + right_squares / right_weight
    }

    fn weight(&self, cell: &[f64]) -> f64 {
        cell[1..].iter().sum()
    }

    fn impurity(&self, _items: &[OfClass], cell: &[f64]) -> f64 {
        let weight: f64 = cell[1..].iter().sum();
        let squares: f64 = cell[1..].iter().map(|&of_class| (of_class / weight) * (of_class / weight)).sum();
        (1.0 - squares).max(0.0)
    }

    fn is_pure(&self, items: &[OfClass]) -> bool {
        items.windows(2).all(|pair| pair[0].class == pair[1].class)
    }
}

/// The variance. A cell is the number of rows, their weight, and their weighted sum.
pub(crate) struct Variance<'s> {
    pub(crate) targets: &'s [f64],
    pub(crate) weights: &'s [f64],
    /// How often each row was drawn; all once if it is empty.
    pub(crate) draws: Vec<u32>,
}

/// What a row adds to the cells of a [`Variance`].
#[derive(Clone, Copy)]
pub(crate) struct OfValue {
    draws: f64,
    weight: f64,
    value: f64,
}

impl Criterion for Variance<'_> {
    type Item = OfValue;

    fn width(&self) -> usize {
        3
    }

    fn item(&self, row: u32) -> OfValue {
        let row = row as usize;
        let draws = f64::from(self.draws.get(row).copied().unwrap_or(1));
        OfValue { draws, weight: self.weights[row] * draws, value: self.targets[row] }
    }

    fn add(&self, cells: &mut [f64], place: usize, item: OfValue) {
        let [draws, weight, sum] = &mut cells.as_chunks_mut::<3>().0[place];
        *draws += item.draws;
        *weight += item.weight;
        *sum += item.weight * item.value;
    }

    fn score(&self, cell: &[f64]) -> f64 {
        match cell {
            &[_, weight, sum] => sum * sum / weight,
            _ => 0.0,
        }
    }

    fn score_of_sides(&self, left: &[f64], total: &[f64]) -> f64 {
        match (left, total) {
            (&[_, weight, sum], &[_, total_weight, total_sum]) => {
                let (right_weight, right_sum) = (total_weight - weight, total_sum - sum);
                sum * sum / weight + right_sum * right_sum / right_weight
            }
            _ => 0.0,
        }
    }

    fn weight(&self, cell: &[f64]) -> f64 {
        cell[1]
    }

    fn impurity(&self, items: &[OfValue], cell: &[f64]) -> f64 {
        let &[_, weight, sum] = cell else { return 0.0 };
        let mean = sum / weight;
        let squares: f64 =
            items.iter().map(|item| item.weight * (item.value - mean) * (item.value - mean)).sum();
        squares / weight
    }

    fn is_pure(&self, items: &[OfValue]) -> bool {
        items.windows(2).all(|pair| pair[0].value == pair[1].value)
    }
}
