//! Tensors of files of other programs.

use tensor_dtype::TensorType;

use super::{Place, Tensor, elements_of};
use crate::error::{Error, ErrorKind};

impl<'m> Tensor<'m> {
    /// Of a file of another program, whose bytes are in the file as they are if `is_stored`.
    pub(crate) fn of_foreign(
        kind: (&'m str, TensorType),
        (shape, byte_len): (&'m [usize], u64),
        place: crate::foreign::Place<'m>,
        is_stored: bool,
    ) -> Self {
        let place = if is_stored { Place::Stored(place.origin) } else { Place::Foreign(place) };
        Self::new(kind, (shape, elements_of(shape)), byte_len, place)
    }

    pub(crate) fn as_alias_of(self, name: &'m str) -> Self {
        Self { alias_of: Some(name), ..self }
    }

    /// Whether a format of this project has the type.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Foreign`] of what cannot be represented, with the reason; [`ErrorKind::UnknownEncoding`].
    pub fn check_type(&self) -> Result<(), Error> {
        if let Place::Foreign(place) = self.place {
            place.check().map_err(|error| error.of_tensor(self.name))?;
        }
        match self.dtype {
            TensorType::Other(_) => {
                Err(Error::from(ErrorKind::UnknownEncoding { found: self.dtype }).of_tensor(self.name))
            }
            _ => Ok(()),
        }
    }

    /// The tensor that this is another name of, for the same elements of the same storage.
    #[must_use]
    pub const fn alias_of(&self) -> Option<&'m str> {
        self.alias_of
    }
}
