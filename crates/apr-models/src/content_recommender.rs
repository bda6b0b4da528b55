//! Content-based recommendation: similar items.

mod stored;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::kernels::neighbours::{Candidate, Ties};
use crate::kernels::products::dot;
use crate::matrix::Matrix;
use crate::model;
use crate::sparse::{SparseRow, SparseRows};
use crate::text_list::TextList;
use crate::tf_idf::{TfIdf, TfIdfOptions};

/// Content-based recommender: the items with the largest cosine similarity to a vector, a text or another item (Manning,
/// Raghavan and Schütze, *Introduction to Information Retrieval*, 2008, section 6.3).
///
/// Similarities are computed in `f64`; that of a zero vector is 0. Ties keep the order of the items.
///
/// ```
/// use apr_models::{ContentRecommender, TfIdfOptions};
///
/// let ids = ["dune", "solaris", "emma"];
/// let texts = ["desert planet empire", "ocean planet station", "village marriage matchmaking"];
/// let model = ContentRecommender::from_texts(ids, &texts, &TfIdfOptions::default())?;
///
/// let like_dune = model.similar_to("dune", 1)?;
/// assert_eq!(like_dune[0].id, "solaris");
/// let asked = model.recommend_text("a marriage in the village", 2)?;
/// assert_eq!(asked[0].id, "emma");
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ContentRecommender {
    ids: TextList,
    /// Items in the order of their ids.
    by_id: Vec<usize>,
    items: Items,
    /// Euclidean length of each item's vector.
    norms: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq)]
enum Items {
    Dense(Matrix),
    Sparse {
        rows: SparseRows,
        /// The vectorizer of the items' texts.
        text: Option<TfIdf>,
    },
}

/// An item and its similarity to the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recommendation<'m> {
    /// Its id.
    pub id: &'m str,
    /// Its place among the items, counted from 0.
    pub item: usize,
    /// Cosine of the angle between the vectors: -1 to 1.
    pub score: f32,
}

impl ContentRecommender {
    /// Items with a vector each: a row of `vectors`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`] if there is not one id for each row, [`ErrorKind::PartInvalid`] for an id that is there
    /// twice, [`ErrorKind::PartNotFinite`].
    pub fn dense<S: AsRef<str>>(ids: impl IntoIterator<Item = S>, vectors: Matrix) -> Result<Self, Error> {
        Self::new(ids.into_iter().collect(), Items::Dense(vectors))
    }

    /// Items with a vector each of which most values are 0: a row of `rows`, for example of [`TfIdf::transform`].
    ///
    /// # Errors
    ///
    /// As [`dense`](Self::dense), and [`ErrorKind::EmptyMatrix`] without rows or columns.
    pub fn sparse<S: AsRef<str>>(ids: impl IntoIterator<Item = S>, rows: SparseRows) -> Result<Self, Error> {
        Self::new(ids.into_iter().collect(), Items::Sparse { rows, text: None })
    }

    /// Creates the model from items with one text each. Fits a [`TfIdf`] on the texts and stores it for
    /// [`recommend_text`](Self::recommend_text).
    ///
    /// # Errors
    ///
    /// As [`sparse`](Self::sparse) and [`TfIdf::fit`].
    pub fn from_texts<I: AsRef<str>, S: AsRef<str>>(
        ids: impl IntoIterator<Item = I>,
        texts: &[S],
        options: &TfIdfOptions,
    ) -> Result<Self, Error> {
        let text = TfIdf::fit(texts, options)?;
        let rows = text.transform(texts);
        Self::new(ids.into_iter().collect(), Items::Sparse { rows, text: Some(text) })
    }

    fn new(ids: TextList, items: Items) -> Result<Self, Error> {
        let (n_items, n_features) = match &items {
            Items::Dense(vectors) => vectors.shape(),
            Items::Sparse { rows, .. } => (rows.n_rows(), rows.n_cols()),
        };
        if n_items == 0 || n_features == 0 {
            return Err(ErrorKind::EmptyMatrix { n_rows: n_items, n_cols: n_features }.into());
        }
        checks::expect_len("ids", n_items, ids.len())?;
        let mut by_id: Vec<usize> = (0..n_items).collect();
        by_id.sort_unstable_by(|&a, &b| ids.get(a).cmp(&ids.get(b)));
        let twice = by_id.windows(2).any(|pair| matches!(pair, &[a, b] if ids.get(a) == ids.get(b)));
        checks::expect("ids", !twice, "one is there twice")?;
        let norms = match &items {
            Items::Dense(vectors) => {
                checks::expect_finite("vectors", vectors.as_slice())?;
                vectors.rows().map(|row| libm::sqrt(dot(row, row))).collect()
            }
            Items::Sparse { rows, text } => {
                checks::expect_finite("vectors", rows.values())?;
                if let Some(text) = text {
                    checks::expect_len("terms of the vectorizer", n_features, text.vocabulary().len())?;
                }
                let mut norms = Vec::with_capacity(n_items);
                rows.rows().for_each(|row| norms.push(row.norm()));
                norms
            }
        };
        Ok(Self { ids, by_id, items, norms })
    }

    /// Number of items.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none; there is always one.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ids.len() == 0
    }

    /// The ids, in the order of the items.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.ids.iter()
    }

    /// The place of the item of that id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<usize> {
        let found = self.by_id.binary_search_by(|&item| self.ids.get(item).cmp(&Some(id)));
        self.by_id.get(found.ok()?).copied()
    }

    /// The items' vectors, if they are dense.
    #[must_use]
    pub const fn vectors(&self) -> Option<&Matrix> {
        match &self.items {
            Items::Dense(vectors) => Some(vectors),
            Items::Sparse { .. } => None,
        }
    }

    /// The items' vectors, if they are sparse.
    #[must_use]
    pub const fn rows(&self) -> Option<&SparseRows> {
        match &self.items {
            Items::Dense(_) => None,
            Items::Sparse { rows, .. } => Some(rows),
        }
    }

    /// The vectorizer of the items' texts.
    #[must_use]
    pub const fn text(&self) -> Option<&TfIdf> {
        match &self.items {
            Items::Sparse { text: Some(text), .. } => Some(text),
            _ => None,
        }
    }

    fn width(&self) -> usize {
        match &self.items {
            Items::Dense(vectors) => vectors.n_cols(),
            Items::Sparse { rows, .. } => rows.n_cols(),
        }
    }

    /// The `count` items most like a vector, fewer if there are fewer.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureCount`], [`ErrorKind::FeatureNotFinite`].
    pub fn recommend(&self, vector: &[f32], count: usize) -> Result<Vec<Recommendation<'_>>, Error> {
        model::check_rows(vector, 1, self.width())?;
        checks::expect_finite_rows(vector, self.width())?;
        let norm = libm::sqrt(dot(vector, vector));
        Ok(match &self.items {
            Items::Dense(vectors) => {
                let products = vectors.rows().map(|row| dot(row, vector));
                self.most_alike(products, norm, count, None)
            }
            Items::Sparse { rows, .. } => {
                self.most_alike(rows.rows().map(|row| row.dot_dense(vector)), norm, count, None)
            }
        })
    }

    /// The `count` items most like a sparse vector, fewer if there are fewer.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureCount`] if it has a value in a column that items do not have,
    /// [`ErrorKind::FeatureNotFinite`].
    pub fn recommend_sparse(
        &self,
        row: &SparseRow<'_>,
        count: usize,
    ) -> Result<Vec<Recommendation<'_>>, Error> {
        if let Some(&last) = row.columns().last()
            && last as usize >= self.width()
        {
            let found = (last as usize).saturating_add(1);
            return Err(ErrorKind::FeatureCount { expected: self.width(), found }.into());
        }
        checks::expect_finite_rows(row.values(), self.width())?;
        Ok(self.like_sparse(row, count, None))
    }

    /// The `count` items most similar to a text, or all if there are fewer. Words that no item has are ignored; of a text of
    /// only such words all items are equally unlike.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] if the items were not made from texts.
    pub fn recommend_text(&self, text: &str, count: usize) -> Result<Vec<Recommendation<'_>>, Error> {
        let Some(vectorizer) = self.text() else {
            let problem = "there is none: the items were made from vectors, ask for a vector";
            return Err(ErrorKind::PartInvalid { part: "vectorizer", problem }.into());
        };
        let asked = vectorizer.transform([text]);
        Ok(asked.row(0).map_or_else(Vec::new, |row| self.like_sparse(&row, count, None)))
    }

    /// The `count` other items most like the one of that id, fewer if there are fewer.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownItem`].
    pub fn similar_to(&self, id: &str, count: usize) -> Result<Vec<Recommendation<'_>>, Error> {
        let Some(item) = self.find(id) else {
            return Err(ErrorKind::UnknownItem { id: String::from(id).into_boxed_str() }.into());
        };
        let norm = self.norms.get(item).copied().unwrap_or(0.0);
        Ok(match &self.items {
            Items::Dense(vectors) => {
                let vector = vectors.row(item).unwrap_or_default();
                self.most_alike(vectors.rows().map(|row| dot(row, vector)), norm, count, Some(item))
            }
            Items::Sparse { rows, .. } => {
                rows.row(item).map_or_else(Vec::new, |row| self.like_sparse(&row, count, Some(item)))
            }
        })
    }

    fn like_sparse(
        &self,
        row: &SparseRow<'_>,
        count: usize,
        except: Option<usize>,
    ) -> Vec<Recommendation<'_>> {
        match &self.items {
            Items::Dense(vectors) => {
                self.most_alike(vectors.rows().map(|vector| row.dot_dense(vector)), row.norm(), count, except)
            }
            Items::Sparse { rows, .. } => {
                self.most_alike(rows.rows().map(|other| row.dot(&other)), row.norm(), count, except)
            }
        }
    }

    /// The items of the largest cosines, from the products of their vectors with one of length `norm`.
    fn most_alike(
        &self,
        products: impl Iterator<Item = f64>,
        norm: f64,
        count: usize,
        except: Option<usize>,
    ) -> Vec<Recommendation<'_>> {
        let possible = self.len() - usize::from(except.is_some());
        let mut best = vec![Ties::SmallestRows.none(); count.min(possible)];
        for (place, (product, own)) in products.zip(&self.norms).enumerate() {
            if Some(place) == except {
                continue;
            }
            let lengths = norm * own;
            let cosine = if lengths > 0.0 { (product / lengths).clamp(-1.0, 1.0) } else { 0.0 };
            // The largest cosine is the nearest; no difference between the two zeros.
            Ties::SmallestRows.offer(&mut best, Candidate { value: 0.0 - cosine, place });
        }
        best.sort_unstable_by(Candidate::order);
        let found = best.iter().filter_map(|near| {
            let id = self.ids.get(near.place)?;
            Some(Recommendation { id, item: near.place, score: (0.0 - near.value) as f32 })
        });
        found.collect()
    }
}
