//! Reads the views of a conversion the other way.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use located_error::Subject;
use tensor_dtype::Dtype;

use super::{GENERATED, Part, Stored, input};
use crate::conversion::Conversion;
use crate::error::{Error, ErrorKind};
use crate::tensors::SourceTensor;
use crate::tensors::input::{Input, Values};
use crate::tensors::output::{Content, Output, Shift};
use crate::tensors::view::{Axis, View};

/// Most views that the tensors of a folder are made of.
const MAX_VIEWS: usize = 1 << 21;

/// An axis that both tensors have.
#[derive(Clone, Copy, Debug)]
struct Common {
    len: u64,
    /// Stride in the tensor of the folder.
    folder: u64,
    /// Stride in that of the GGUF file.
    stored: u64,
}

/// Elements of a tensor of the folder that are in one tensor of the GGUF file.
#[derive(Clone, Debug)]
struct Piece {
    /// Number of the tensor of the GGUF file.
    tensor: usize,
    /// The first element, in the tensor of the folder.
    folder: u64,
    /// The first element, in that of the GGUF file.
    stored: u64,
    /// The axes, those with the greatest strides in the folder first.
    axes: Vec<Common>,
}

/// The files of the folder, with what their tensors are made from, and the tensors of the GGUF file.
pub(super) fn folder(
    stored: &Stored<'_>,
    conversion: &Conversion,
    files: &[(String, Vec<SourceTensor>)],
) -> Result<(Vec<Part>, Vec<Input>), Error> {
    let mut pieces: BTreeMap<(usize, usize), (Vec<Piece>, Shift)> = BTreeMap::new();
    let mut seen = 0;
    for output in conversion.outputs() {
        let refused = || Error::from(ErrorKind::StoredTensor).of(Subject::tensor(&output.name));
        let tensor = stored.number(&output.name).ok_or_else(refused)?;
        if stored.shape(&output.name) != Some(output.shape.as_slice()) {
            return Err(refused());
        }
        seen += 1;
        let (views, shift) = match &output.content {
            Content::Views { views, shift } => (views, opposite(*shift)),
            Content::Constant(_) => continue,
            Content::Blocks { .. } => return Err(refused()),
        };
        let mut first = 0;
        for view in views {
            let place = conversion.inputs().get(view.source()).and_then(|input| match input.values {
                Values::Stored { tensor, .. } => conversion.sources().get(tensor).copied(),
                _ => None,
            });
            let own = pieces.entry(place.ok_or_else(refused)?).or_insert((Vec::new(), shift));
            own.0.push(Piece::of(tensor, first, view));
            first += view.count();
        }
    }
    if seen != stored.tensors().len() {
        let made: BTreeSet<&str> = conversion.outputs().iter().map(|output| output.name.as_str()).collect();
        let left = stored.tensors().iter().find(|tensor| !made.contains(tensor.name.as_str()));
        let name = left.map_or(GENERATED[0], |tensor| &tensor.name);
        return Err(Error::from(ErrorKind::StoredTensor).of(Subject::tensor(name)));
    }
    let zeros = stored.tensors().len();
    let mut parts = Vec::with_capacity(files.len());
    let mut n_views = 0;
    for (part, (name, tensors)) in files.iter().enumerate() {
        let mut outputs = Vec::with_capacity(tensors.len());
        for (idx, tensor) in tensors.iter().enumerate() {
            let refused = || Error::from(ErrorKind::StoredTensor).of(Subject::tensor(&tensor.name));
            let (pieces, shift) = pieces.remove(&(part, idx)).ok_or_else(refused)?;
            let count = tensor.count();
            let mut views = Vec::new();
            let mut end = 0;
            ordered(pieces, count, &mut |begin, view| {
                if begin < end || n_views >= MAX_VIEWS {
                    return false;
                }
                if begin > end {
                    views.push(hole(zeros, begin - end));
                }
                n_views += 1;
                end = begin + view.count();
                views.push(view);
                true
            })
            .filter(|()| end <= count)
            .ok_or_else(refused)?;
            if end < count {
                views.push(hole(zeros, count - end));
            }
            outputs.push(Output {
                name: tensor.name.clone(),
                shape: tensor.shape.clone(),
                dtype: tensor.dtype,
                content: Content::Views { views, shift },
            });
        }
        parts.push(Part { name: name.clone(), tensors: outputs });
    }
    let mut inputs: Vec<Input> =
        stored.tensors().iter().enumerate().map(|(number, tensor)| input(number, tensor)).collect();
    inputs.push(Input {
        shape: vec![u64::MAX >> 8],
        values: Values::Stored { tensor: zeros, dtype: Dtype::F32 },
    });
    Ok((parts, inputs))
}

const fn opposite(shift: Shift) -> Shift {
    match shift {
        Shift::None => Shift::None,
        Shift::PlusOne => Shift::MinusOne,
        Shift::MinusOne => Shift::PlusOne,
    }
}

/// Elements that no tensor of the GGUF file has: zeros.
fn hole(zeros: usize, len: u64) -> View {
    View::strided(zeros, 0, vec![Axis { len, stride: 1 }])
}

impl Piece {
    /// The elements of a view, which are those of a tensor of the GGUF file from `first` on.
    fn of(tensor: usize, first: u64, view: &View) -> Self {
        let mut axes: Vec<Common> = Vec::with_capacity(view.axes().len());
        let mut stride = 1_u64;
        for axis in view.axes().iter().rev() {
            axes.push(Common { len: axis.len, folder: axis.stride, stored: stride });
            stride = stride.saturating_mul(axis.len);
        }
        axes.retain(|axis| axis.len != 1);
        axes.sort_by_key(|axis| core::cmp::Reverse(axis.folder));
        Self { tensor, folder: view.offset(), stored: first, axes }
    }

    /// Whether the elements follow each other in the folder.
    fn is_dense(&self) -> bool {
        let mut stride = 1_u64;
        self.axes.iter().rev().all(|axis| {
            let is_next = axis.folder == stride;
            stride = stride.saturating_mul(axis.len);
            is_next
        })
    }

    fn view(&self) -> View {
        let axes = self.axes.iter().map(|axis| Axis { len: axis.len, stride: axis.stored });
        let mut axes: Vec<Axis> = axes.collect();
        if axes.is_empty() {
            axes.push(Axis { len: 1, stride: 1 });
        }
        View::strided(self.tensor, self.stored, axes)
    }
}

/// Passes the pieces to `take` in the order of the folder, cut into runs of it; `None` if that is not possible, or `take` says so.
fn ordered(mut pieces: Vec<Piece>, count: u64, take: &mut impl FnMut(u64, View) -> bool) -> Option<()> {
    pieces.sort_by_key(|piece| piece.folder);
    if pieces.iter().all(Piece::is_dense) {
        return pieces.iter().all(|piece| take(piece.folder, piece.view())).then_some(());
    }
    // All have the same outermost axis, which is that of the whole.
    let outer = *pieces.first()?.axes.first()?;
    let is_outer = |piece: &Piece| {
        piece.axes.first().is_some_and(|axis| axis.len == outer.len && axis.folder == outer.folder)
    };
    if !pieces.iter().all(is_outer) || outer.len.checked_mul(outer.folder) != Some(count) {
        return None;
    }
    for number in 0..outer.len {
        let inner = pieces.iter().map(|piece| {
            let own = piece.axes.first().map_or(0, |axis| axis.stored);
            Piece {
                tensor: piece.tensor,
                folder: piece.folder + number * outer.folder,
                stored: piece.stored + number * own,
                axes: piece.axes.get(1..).unwrap_or_default().to_vec(),
            }
        });
        ordered(inner.collect(), outer.folder, take)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The elements of the folder's tensor by where they are: tensor and element.
    fn inverted(pieces: Vec<Piece>, count: u64) -> Option<Vec<(usize, u64)>> {
        let mut all = Vec::new();
        ordered(pieces, count, &mut |begin, view| {
            assert_eq!(begin, all.len() as u64);
            let mut places = vec![view.offset()];
            for axis in view.axes() {
                places = places
                    .iter()
                    .flat_map(|at| (0..axis.len).map(move |idx| at + idx * axis.stride))
                    .collect();
            }
            all.extend(places.into_iter().map(|place| (view.source(), place)));
            true
        })?;
        Some(all)
    }

    #[test]
    fn a_permutation_and_its_inverse_cancel() {
        let view = View::new(0, &[8, 1]).split(0, &[2, 2, 2]).unwrap().swap(1, 2).unwrap();
        let found = inverted(vec![Piece::of(7, 0, &view)], 8).unwrap();
        assert_eq!(found.iter().map(|(_, place)| *place).collect::<Vec<_>>(), [0, 2, 1, 3, 4, 6, 5, 7]);
        let transposed = View::new(0, &[2, 3]).swap(0, 1).unwrap();
        let found = inverted(vec![Piece::of(1, 0, &transposed)], 6).unwrap();
        assert_eq!(found, [(1, 0), (1, 2), (1, 4), (1, 1), (1, 3), (1, 5)]);
    }

    #[test]
    fn halves_of_each_group_come_together_again() {
        // Two groups of a key row and a value row of two elements, keys and values in tensors of their own.
        let whole = View::new(0, &[4, 2]).split(0, &[2, 2]).unwrap();
        let keys = whole.clone().slice(1, 0, 1).unwrap();
        let values = whole.slice(1, 1, 2).unwrap();
        let pieces = vec![Piece::of(1, 0, &values), Piece::of(0, 0, &keys)];
        let found = inverted(pieces, 8).unwrap();
        assert_eq!(found, [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]);
    }
}
