//! A view of the model over the bytes of its payload.

use apr_container::{F32s, PayloadReader, ViewPayload};

use super::{KMeans, nearest};
use crate::error::{Error, ErrorKind, Operation};
use crate::matrix::check_shape;
use crate::model::check_rows;
use crate::payload::values::{skip_list, skip_option};

/// Clusters over the bytes of their payload: they copy and allocate nothing, and the bytes need no alignment. They
/// predict as the model that [`Embedded::load`](apr_container::Embedded::load) gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KMeansView<'data> {
    /// `n_clusters` rows of `n_features` values, both at least 1.
    centroids: F32s<'data>,
    n_features: usize,
}

impl<'data> KMeansView<'data> {
    /// Features of a sample, at least one.
    #[must_use]
    pub const fn n_features(&self) -> usize {
        self.n_features
    }

    /// Clusters, at least one.
    #[must_use]
    pub const fn n_clusters(&self) -> usize {
        self.centroids.len() / self.n_features
    }

    /// The centres: `[n_clusters, n_features]`, row-major.
    #[must_use]
    pub const fn centroids(&self) -> F32s<'data> {
        self.centroids
    }

    /// The cluster of each row of `rows` (`[n_samples, n_features]`, row-major) into `out` (`[n_samples]`).
    /// Allocates nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InputLength`] and [`ErrorKind::FeatureCount`] if `rows` is not `out.len()` rows of the model's
    /// features.
    pub fn predict_into(&self, rows: &[f32], out: &mut [usize]) -> Result<(), Error> {
        check_rows(rows, out.len(), self.n_features)?;
        for (place, row) in out.iter_mut().zip(rows.chunks_exact(self.n_features)) {
            *place = nearest(row, self.centroids.chunks_exact(self.n_features).map(|centre| centre.iter()));
        }
        Ok(())
    }
}

impl ViewPayload for KMeans {
    type View<'data> = KMeansView<'data>;

    fn view_payload<'data>(
        input: &mut PayloadReader<'_>,
        payload: &'data [u8],
    ) -> Result<KMeansView<'data>, apr_container::Error> {
        let n_clusters = input.usize()?;
        input.skip(12)?;
        skip_option(input, |input| input.skip(8))?;
        if !input.option()? {
            return Err(Error::from(ErrorKind::NotFitted { operation: Operation::Predict }).into());
        }
        let centroids = input.f32s_in(payload)?;
        let (n_rows, n_features) = (input.usize()?, input.usize()?);
        check_shape(n_rows, n_features, centroids.len())?;
        if n_rows != n_clusters {
            return Err(input.invalid("not as many centres as clusters"));
        }
        skip_option(input, |input| skip_list(input, 8))?;
        input.skip(12)?;
        Ok(KMeansView { centroids, n_features })
    }
}
