//! A recommender as payload (`docs/payloads.md`, section 13) and as tensors.

use apr_container::{PayloadReader, PayloadWriter};
use st_core::Dtype;

use crate::content_recommender::{ContentRecommender, Items};
use crate::error::Error;
use crate::matrix::Matrix;
use crate::payload::fields::read;
use crate::payload::header;
use crate::sparse::SparseRows;
use crate::tensors::Tensors;
use crate::text_list::TextList;
use crate::tf_idf::TfIdf;

const N_FORMS: u32 = 2;
const DENSE: u32 = 1;
const SPARSE: u32 = 2;

const IDS: &str = "ids";
const ID_ENDS: &str = "id_ends";
const VECTORS: &str = "vectors";
const N_FEATURES: &str = "n_features";
const ROW_STARTS: &str = "row_starts";
const COLUMNS: &str = "columns";
const VALUES: &str = "values";

stored_model! {
    ContentRecommender "ContentRecommender" [ContentRecommender]
    n_features: |model| Some(model.width());
}

impl ContentRecommender {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        match &self.items {
            Items::Dense(vectors) => {
                header::write(out, DENSE)?;
                self.ids.encode(out)?;
                out.usize(vectors.n_cols())?;
                out.f32s(vectors.as_slice())
            }
            Items::Sparse { rows, text } => {
                header::write(out, SPARSE)?;
                self.ids.encode(out)?;
                out.usize(rows.n_cols())?;
                out.usizes(rows.row_starts())?;
                out.u32s(rows.columns())?;
                out.f32s(rows.values())?;
                out.option(text.is_some())?;
                text.as_ref().map_or(Ok(()), |text| text.encode_fields(out))
            }
        }
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let form = header::read_form(input, N_FORMS)?;
        let mut ids = TextList::default();
        TextList::decode(input, &mut |id| {
            ids.push(id);
            Ok(())
        })?;
        let n_features = input.usize()?;
        let items = match form {
            DENSE => Items::Dense(Matrix::from_vec(ids.len(), n_features, input.f32s()?)?),
            _ => {
                let (starts, columns, values) =
                    read(input, |fields| (fields.usizes(), fields.u32s(), fields.f32s()))?;
                let rows = SparseRows::from_parts(n_features, starts, columns, values)?;
                let text = if input.option()? { Some(TfIdf::decode_fields(input)?) } else { None };
                Items::Sparse { rows, text }
            }
        };
        Ok(Self::new(ids, items)?)
    }

    /// The recommender that those tensors hold.
    ///
    /// # Errors
    ///
    /// Those of [`Tensors`] for tensors that are missing, too many, or of another type or shape, and those of
    /// [`dense`](Self::dense), [`sparse`](Self::sparse) and [`SparseRows::from_parts`].
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_model(Self::NAME)?;
        let mut ids = TextList::default();
        TextList::take_from(tensors, IDS, ID_ENDS, &mut |id| {
            ids.push(id);
            Ok(())
        })?;
        if tensors.contains(VECTORS) {
            tensors.expect_only(&|name| [IDS, ID_ENDS, VECTORS].contains(&name))?;
            return Self::new(ids, Items::Dense(tensors.matrix(VECTORS)?));
        }
        tensors.expect_only(&|name| {
            [IDS, ID_ENDS, N_FEATURES, ROW_STARTS, COLUMNS, VALUES].contains(&name) || TfIdf::is_part(name)
        })?;
        let (columns, n_features, starts, values) = tensors.parts(|parts| {
            // A column beyond 32 bits cannot be stored, and the last one that can belongs to no table.
            let columns = parts.places(COLUMNS);
            (columns, parts.count(N_FEATURES), parts.counts(ROW_STARTS), parts.vector(VALUES))
        })?;
        let rows = SparseRows::from_parts(n_features, starts, columns, values)?;
        let is_text = tensors.names().any(TfIdf::is_part);
        let text = if is_text { Some(TfIdf::take_from(tensors)?) } else { None };
        Self::new(ids, Items::Sparse { rows, text })
    }

    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        self.ids.push_to(tensors, IDS, ID_ENDS)?;
        match &self.items {
            Items::Dense(vectors) => {
                let (n_items, n_features) = vectors.shape();
                tensors.push_f32(VECTORS, &[n_items, n_features], vectors.as_slice())?;
            }
            Items::Sparse { rows, text } => {
                let columns = rows.columns().iter().copied().flat_map(u32::to_le_bytes).collect();
                tensors.push_count(N_FEATURES, rows.n_cols())?;
                tensors.push_counts(ROW_STARTS, rows.row_starts())?;
                tensors.push(COLUMNS, Dtype::U32, &[rows.n_stored()], columns)?;
                tensors.push_f32(VALUES, &[rows.n_stored()], rows.values())?;
                if let Some(text) = text {
                    text.push_tensors(tensors)?;
                }
            }
        }
        Ok(())
    }
}
