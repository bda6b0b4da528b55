//! Rules for replacing a model whose signature is required.

use core::fmt;

use crate::model::Model;

/// The signed name and creation time of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signed {
    /// Name of the model.
    pub name: Option<String>,
    /// When the file was made, in seconds since 1970.
    pub created_at: Option<u64>,
}

/// Whether a signed model may take over from a newer one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Succession {
    /// Only a model of the same name that is newer, or the same model once more.
    #[default]
    Newer,
    /// Any.
    MayRollBack,
}

/// Why a signed model does not take over from the one that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rollback {
    /// It has no trusted signature.
    NotSigned,
    /// It is another model.
    OtherName {
        /// Name of the model that is served.
        served: Option<String>,
        /// Its name.
        found: Option<String>,
    },
    /// It has no creation time, so nothing shows that it is newer.
    NoTime,
    /// It is older.
    Older {
        /// When the model that is served was made, in seconds since 1970.
        served: u64,
        /// When it was made.
        found: u64,
    },
    /// It was made in the same second, and is not the same file.
    SameTime {
        /// When both were made, in seconds since 1970.
        created_at: u64,
    },
}

impl Rollback {
    /// Whether the model may take over from the one that is served. Where nothing is signed, any may.
    ///
    /// # Errors
    ///
    /// Why it may not.
    pub(crate) fn check(served: &Model, found: &Model) -> Result<(), Self> {
        let Some(old) = served.signed() else { return Ok(()) };
        let Some(new) = found.signed() else { return Err(Self::NotSigned) };
        if old.name != new.name {
            return Err(Self::OtherName { served: old.name.clone(), found: new.name.clone() });
        }
        let is_same = || served.digest().is_some_and(|digest| Some(digest) == found.digest());
        match (old.created_at, new.created_at) {
            (None, Some(_)) => Ok(()),
            (Some(served), Some(found)) if found > served => Ok(()),
            (Some(served), Some(found)) if found < served => Err(Self::Older { served, found }),
            _ if is_same() => Ok(()),
            (Some(_), Some(created_at)) => Err(Self::SameTime { created_at }),
            (_, None) => Err(Self::NoTime),
        }
    }
}

impl fmt::Display for Rollback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSigned => f.write_str("no trusted signature says which model the new file is"),
            Self::OtherName { served, found } => {
                let name = |name: &Option<String>| {
                    name.as_ref()
                        .map_or_else(|| "has no name".to_owned(), |name| format!("is named {name:?}"))
                };
                write!(f, "the new model {}, the one that is served {}", name(found), name(served))
            }
            Self::NoTime => f.write_str("the new file has no creation time to show that it is newer"),
            Self::Older { served, found } => {
                write!(
                    f,
                    "the new file was made at {found}, before the one that is served (at {served}, Unix time)"
                )
            }
            Self::SameTime { created_at } => {
                write!(
                    f,
                    "the new file differs and was made in the same second as the one that is served ({created_at}, Unix time)"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use apr_models::{AnyModel, LinearRegression, Vector};

    use super::*;

    fn model(name: Option<&str>, created_at: Option<u64>, digest: u8) -> Model {
        let line = LinearRegression::from_parts(Vector::from_vec(vec![1.0]), 0.0).expect("a model");
        let model = Model::new(AnyModel::from(line)).expect("it predicts").with_digest([digest; 32]);
        model.with_signed(Signed { name: name.map(str::to_owned), created_at })
    }

    #[test]
    fn only_a_newer_model_of_the_same_name_takes_over() {
        let (a, b) = (Some("a"), Some("b"));
        let other = |served: Option<&str>, found: Option<&str>| {
            Err(Rollback::OtherName { served: served.map(str::to_owned), found: found.map(str::to_owned) })
        };
        for (old, new, expected) in [
            ((a, Some(5), 1), (a, Some(6), 2), Ok(())),
            ((a, Some(5), 1), (a, Some(4), 2), Err(Rollback::Older { served: 5, found: 4 })),
            ((a, Some(5), 1), (a, Some(5), 1), Ok(())),
            ((a, Some(5), 1), (a, Some(5), 2), Err(Rollback::SameTime { created_at: 5 })),
            ((a, Some(5), 1), (b, Some(6), 2), other(a, b)),
            ((a, Some(5), 1), (None, Some(6), 2), other(a, None)),
            ((None, Some(5), 1), (a, Some(6), 2), other(None, a)),
            ((None, Some(5), 1), (None, Some(6), 2), Ok(())),
            ((a, Some(5), 1), (a, None, 2), Err(Rollback::NoTime)),
            ((a, None, 1), (a, Some(1), 2), Ok(())),
            ((a, None, 1), (a, None, 1), Ok(())),
            ((a, None, 1), (a, None, 2), Err(Rollback::NoTime)),
        ] {
            let [old, new] = [old, new].map(|(name, created_at, digest)| model(name, created_at, digest));
            assert_eq!(Rollback::check(&old, &new), expected, "{:?} {:?}", old.signed(), new.signed());
        }
        let unsigned = Model::new(model(a, None, 1).any().clone()).expect("it predicts");
        assert_eq!(Rollback::check(&model(a, None, 1), &unsigned), Err(Rollback::NotSigned));
        assert_eq!(Rollback::check(&unsigned, &model(b, None, 1)), Ok(()));
    }
}
