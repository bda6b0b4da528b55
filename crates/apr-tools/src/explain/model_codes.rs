//! Codes of `apr-models`: training and loading models.

use super::{Entry, entry};
use crate::error::Exit::{Invalid, Usage};

const OTHER_MODEL: &str = "look at the tensors with `apr tensors FILE`: it may be another kind of model";
const DATA: &str = "look at the data where the message points";

pub(super) const ENTRIES: &[Entry] = &[
    entry("am-empty-matrix", Usage, "A matrix needs at least one row and one column.", DATA),
    entry(
        "am-matrix-too-large",
        Usage,
        "The matrix has more values than this machine can address.",
        "train on fewer rows",
    ),
    entry("am-matrix-length", Usage, "The number of values is not that of rows times columns.", DATA),
    entry(
        "am-target-length",
        Usage,
        "Every sample needs one target value, and there are more or fewer of them.",
        DATA,
    ),
    entry(
        "am-feature-not-finite",
        Usage,
        "A feature is infinite or not a number, and would make every coefficient so.",
        "remove the row, or replace the value",
    ),
    entry(
        "am-target-not-finite",
        Usage,
        "A target value is infinite or not a number, and would make every coefficient so.",
        "remove the row, or replace the value",
    ),
    entry(
        "am-out-of-range",
        Usage,
        "A fitted number is beyond what a 32-bit float can hold: features and target are of too different magnitude.",
        "scale the features or the target",
    ),
    entry("am-not-fitted", Usage, "The model has not been trained yet.", "call fit() first"),
    entry(
        "am-feature-count",
        Usage,
        "The samples have another number of features than the model was trained on.",
        DATA,
    ),
    entry("am-no-coefficients", Invalid, "A linear model needs at least one coefficient.", OTHER_MODEL),
    entry(
        "am-weight-not-finite",
        Invalid,
        "A coefficient or the intercept is infinite or not a number, so every prediction would be.",
        "train the model again, and look for such values in its data",
    ),
    entry(
        "am-missing-tensor",
        Invalid,
        "A linear regression is stored as the tensors `coefficients` and `intercept`, and one is missing.",
        OTHER_MODEL,
    ),
    entry(
        "am-unexpected-tensor",
        Invalid,
        "The file has a tensor that no linear regression has, so it is another model, of which only a part would be \
         used.",
        OTHER_MODEL,
    ),
    entry(
        "am-dtype",
        Invalid,
        "The tensors of a linear regression are F32, and this one is not.",
        OTHER_MODEL,
    ),
    entry(
        "am-rank",
        Invalid,
        "The tensors of a linear regression have one dimension, and this one has not.",
        OTHER_MODEL,
    ),
    entry(
        "am-intercept-length",
        Invalid,
        "The intercept of a linear regression is a single value.",
        OTHER_MODEL,
    ),
];
