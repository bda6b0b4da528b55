//! Tensors as views: a header and the data section it describes.

use st_core::{Header, TensorView};

use crate::error::{Error, not_found};

/// The tensor called `name`; `data` is the data section of `header`.
pub(crate) fn tensor<'data>(
    header: &'data Header,
    data: &'data [u8],
    name: &str,
) -> Result<TensorView<'data>, Error> {
    header.tensor(name).and_then(|info| info.view(data)).ok_or_else(|| not_found(name))
}

/// All tensors in file order.
pub(crate) fn iter<'data>(
    header: &'data Header,
    data: &'data [u8],
) -> impl ExactSizeIterator<Item = (&'data str, TensorView<'data>)> {
    header.iter().map(move |info| {
        let view =
            info.view(data).expect("a header is only valid if its tensors are within the data section");
        (info.name(), view)
    })
}
