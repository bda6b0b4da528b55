//! Which kind of model a container holds.

use core::fmt;

/// Kind of model: a code space of 16 bits that grows with the specification; unknown values can be carried and printed.
///
/// The constants are spelled as the format's documents spell them, so that they read like an enum's variants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelType(pub u16);

macro_rules! model_types {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        #[expect(non_upper_case_globals, reason = "spelled as the format's documents spell them")]
        impl ModelType {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// Every type the specification lists.
            pub const KNOWN: &'static [Self] = &[$(Self::$name),*];

            /// Name of a listed type.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    _ => None,
                }
            }

            /// The type of that name, in any case.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                $(if name.eq_ignore_ascii_case(stringify!($name)) {
                    return Some(Self::$name);
                })*
                None
            }
        }
    };
}

model_types! {
    /// Linear regression and its regularized relatives.
    LinearRegression = 0x0001;
    /// Binary logistic regression.
    LogisticRegression = 0x0002;
    /// A decision tree.
    DecisionTree = 0x0003;
    /// A forest of trees.
    RandomForest = 0x0004;
    /// Boosted trees.
    GradientBoosting = 0x0005;
    /// Clusters by nearest centre.
    KMeans = 0x0006;
    /// Principal components.
    Pca = 0x0007;
    /// Naive Bayes.
    NaiveBayes = 0x0008;
    /// Nearest neighbours.
    Knn = 0x0009;
    /// Support vectors.
    Svm = 0x000A;
    /// A language model of n-grams.
    NgramLm = 0x0010;
    /// Words weighted by rarity.
    TfIdf = 0x0011;
    /// Counted words.
    CountVectorizer = 0x0012;
    /// Layers in a row.
    NeuralSequential = 0x0020;
    /// A network of the user's own.
    NeuralCustom = 0x0021;
    /// Recommendations by content.
    ContentRecommender = 0x0030;
    /// Experts behind a gate.
    MixtureOfExperts = 0x0040;
    /// Anything else.
    Custom = 0x00FF;
}

impl ModelType {
    /// Whether the specification lists it.
    #[must_use]
    pub const fn is_known(self) -> bool {
        self.name().is_some()
    }
}

impl fmt::Display for ModelType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "0x{:04X}", self.0),
        }
    }
}

/// As [`Display`](fmt::Display).
impl fmt::Debug for ModelType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn eighteen_types_have_names_and_numbers() {
        assert_eq!(ModelType::KNOWN.len(), 18);
        assert_eq!(ModelType::Svm.0, 0x0A);
        assert_eq!(format!("{} {:?}", ModelType::TfIdf, ModelType(0x7777)), "TfIdf 0x7777");
        assert_eq!(ModelType::from_name("kmeans"), Some(ModelType::KMeans));
        assert!(
            ModelType::KNOWN.iter().all(|kind| ModelType::from_name(kind.name().unwrap()) == Some(*kind))
        );
    }
}
