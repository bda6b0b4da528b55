//! Model types.

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

            /// Every type in the specification.
            pub const KNOWN: &'static [Self] = &[$(Self::$name),*];

            /// The name, if the specification lists the type.
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
    /// Linear regression, also regularized.
    LinearRegression = 0x0001;
    /// Binary logistic regression.
    LogisticRegression = 0x0002;
    /// A decision tree.
    DecisionTree = 0x0003;
    /// A random forest.
    RandomForest = 0x0004;
    /// Gradient-boosted trees.
    GradientBoosting = 0x0005;
    /// k-means clustering.
    KMeans = 0x0006;
    /// Principal component analysis.
    Pca = 0x0007;
    /// Naive Bayes.
    NaiveBayes = 0x0008;
    /// k-nearest neighbours.
    Knn = 0x0009;
    /// Support vector machine.
    Svm = 0x000A;
    /// An n-gram language model.
    NgramLm = 0x0010;
    /// TF-IDF vectorizer.
    TfIdf = 0x0011;
    /// Count vectorizer.
    CountVectorizer = 0x0012;
    /// A sequential neural network.
    NeuralSequential = 0x0020;
    /// A neural network of a user's type.
    NeuralCustom = 0x0021;
    /// A content-based recommender.
    ContentRecommender = 0x0030;
    /// A mixture of experts with a gate.
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
