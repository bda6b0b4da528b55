//! Low-rank changes of matrices: products of two factors, which are never computed.

use alloc::vec;
use alloc::vec::Vec;

use super::view::{Axis, View};

/// What the strides of rows are multiples of, in views of products: strides of columns are smaller.
const ROW: u64 = 1 << 32;
/// Most rows or columns: offsets in views fit 64 bits.
const MAX_LEN: u64 = 1 << 31;

/// The factors of a change of a matrix `[rows, columns]`, by their numbers: `B`, `[rows, rank]`, times `A`, `[rank, columns]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    a: usize,
    b: usize,
    rank: u64,
    rows: u64,
    columns: u64,
    /// Whether it changes an embedding, whose rows are those of `A`.
    pub(crate) is_embedding: bool,
}

/// A tensor made of views, and its shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Factor {
    pub(crate) shape: Vec<u64>,
    pub(crate) views: Vec<View>,
}

impl Pair {
    /// From numbers and shapes of the factors; `None` if they do not fit each other.
    pub(crate) fn new(a: (usize, &[u64]), b: (usize, &[u64]), is_embedding: bool) -> Option<Self> {
        let (&[rank, columns], &[rows, rank_of_b]) = (a.1, b.1) else { return None };
        let fits = rank == rank_of_b && rows < MAX_LEN && columns < MAX_LEN;
        fits.then_some(Self { a: a.0, b: b.0, rank, rows, columns, is_embedding })
    }

    /// The rank.
    pub(crate) const fn rank(&self) -> u64 {
        self.rank
    }

    /// The product as a view of a source of this number, which tells rows from columns whatever is done to it.
    pub(crate) fn product(&self, source: usize) -> View {
        let axes = vec![Axis { len: self.rows, stride: ROW }, Axis { len: self.columns, stride: 1 }];
        View::strided(source, 0, axes)
    }

    /// The factors of a view of the product; `None` if it mixes rows and columns. A transposed one is taken as it was: the module
    /// stores its matrix transposed, and PEFT does not do so with the factors.
    fn of_view(&self, view: &View) -> Option<(View, View)> {
        let (rows, columns): (Vec<Axis>, Vec<Axis>) = view.axes().iter().partition(|axis| axis.stride >= ROW);
        let is_last = view.axes().last().is_some_and(|axis| axis.stride < ROW);
        let &[column] = &columns[..] else { return None };
        if !(is_last || rows.len() == 1) {
            return None;
        }
        let rank = |stride| Axis { len: self.rank, stride };
        let a = View::strided(self.a, view.offset() % ROW, vec![rank(self.columns), column]);
        let of_b = |axis: Axis| Axis { stride: axis.stride / ROW * self.rank, ..axis };
        let rows = rows.into_iter().map(of_b).chain([rank(1)]).collect();
        Some((a, View::strided(self.b, view.offset() / ROW * self.rank, rows)))
    }
}

/// The factors of views of products that together have this shape: one or several of one product, one after the other, or a stack of one
/// view of each. `None` if there are none. `first` is the number of the source that is the product of the first pair.
pub(crate) fn factors(
    pairs: &[Pair],
    first: usize,
    shape: &[u64],
    views: &[View],
) -> Option<(Factor, Factor)> {
    let pair_of = |view: &View| pairs.get(view.source().checked_sub(first)?);
    let pair = pair_of(views.first()?)?;
    let both: Option<Vec<(View, View)>> = views.iter().map(|view| pair_of(view)?.of_view(view)).collect();
    let (mut a, b): (Vec<View>, Vec<View>) = both?.into_iter().unzip();
    let columns = a.first()?.axes().last()?.len;
    let rows: u64 = b.iter().map(|view| view.count().checked_div(pair.rank)).sum::<Option<u64>>()?;
    match *shape {
        [_, _] => {
            // Parts of rows share the other factor.
            if a.iter().any(|view| *view != a[0]) {
                return None;
            }
            a.truncate(1);
            let a = Factor { shape: vec![pair.rank, columns], views: a };
            Some((a, Factor { shape: vec![rows, pair.rank], views: b }))
        }
        [count, height, _] if count == views.len() as u64 && rows == count.checked_mul(height)? => {
            if views.iter().any(|view| pair_of(view).is_none_or(|own| own.rank != pair.rank)) {
                return None;
            }
            let a = Factor { shape: vec![count, pair.rank, columns], views: a };
            Some((a, Factor { shape: vec![count, height, pair.rank], views: b }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows of rank 3 and four columns, as sources 5 and 6.
    fn pair() -> Pair {
        Pair::new((5, &[3, 4]), (6, &[2, 3]), false).unwrap()
    }

    #[test]
    fn an_order_of_rows_is_one_of_b_and_columns_are_those_of_a() {
        let wide = Pair::new((5, &[3, 4]), (6, &[8, 3]), false).unwrap();
        let view = wide.product(9).split(0, &[2, 2, 2]).unwrap().swap(1, 2).unwrap();
        let (a, b) = factors(&[wide], 9, &[8, 4], &[view]).unwrap();
        assert_eq!((a.shape, a.views), (vec![3, 4], vec![View::new(5, &[3, 4])]));
        let halves = View::new(6, &[8, 3]).split(0, &[2, 2, 2]).unwrap().swap(1, 2).unwrap();
        assert_eq!((b.shape, b.views), (vec![8, 3], vec![halves]));
        let cut = wide.product(9).slice(0, 6, 8).unwrap().slice(1, 1, 3).unwrap();
        let (a, b) = factors(&[wide], 9, &[2, 2], &[cut]).unwrap();
        assert_eq!(a.views, [View::new(5, &[3, 4]).slice(1, 1, 3).unwrap()]);
        assert_eq!(b.views, [View::new(6, &[8, 3]).slice(0, 6, 8).unwrap()]);
    }

    #[test]
    fn parts_share_a_and_stacks_have_one_each() {
        let product = pair().product(0);
        let rows = |begin| product.clone().slice(0, begin, begin + 1).unwrap();
        let (a, b) = factors(&[pair()], 0, &[2, 4], &[rows(1), rows(0)]).unwrap();
        assert_eq!((a.views.len(), b.views.len(), b.shape), (1, 2, vec![2, 3]));
        let both = [pair(), pair()];
        let views = [both[0].product(0), both[1].product(1)];
        let (a, b) = factors(&both, 0, &[2, 2, 4], &views).unwrap();
        assert_eq!((a.shape, a.views.len(), b.shape), (vec![2, 3, 4], 2, vec![2, 2, 3]));
        let other = Pair::new((5, &[1, 4]), (6, &[2, 1]), false).unwrap();
        assert_eq!(factors(&[pair(), other], 0, &[2, 2, 4], &views), None, "ranks differ");
        let unlike = Pair::new((7, &[3, 4]), (6, &[2, 3]), false).unwrap();
        assert_eq!(factors(&[pair(), unlike], 0, &[4, 4], &views), None, "no parts of one");
    }

    #[test]
    fn what_mixes_rows_and_columns_has_no_factors() {
        let transposed = pair().product(0).swap(0, 1).unwrap();
        let (a, b) = factors(&[pair()], 0, &[4, 2], core::slice::from_ref(&transposed)).unwrap();
        assert_eq!((a.shape, b.shape), (vec![3, 4], vec![2, 3]), "as they are stored");
        let mixed = pair().product(0).split(0, &[2, 1]).unwrap().swap(1, 2).unwrap();
        assert_eq!(factors(&[pair()], 0, &[2, 4, 1], &[mixed]), None);
        assert_eq!(factors(&[pair()], 1, &[2, 4], &[pair().product(0)]), None, "another source");
        assert_eq!(factors(&[pair()], 0, &[2, 4], &[]), None);
        assert_eq!(Pair::new((0, &[3, 4]), (1, &[2, 4]), false), None);
        assert_eq!(Pair::new((0, &[4]), (1, &[2, 4]), false), None);
        assert_eq!(Pair::new((0, &[1, 1 << 40]), (1, &[2, 1]), false), None);
    }
}
