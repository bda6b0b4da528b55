//! Codes of `apr-models`: training and loading models.

use located_error::Category::{Invalid, Unsupported, Usage};
use located_error::Entry;

use super::entry;

const OTHER_MODEL: &str = "look at the tensors with `apr tensors FILE`: it may be another kind of model";
const PARTS: &str =
    "check the file with `apr check FILE`: if the checksum matches, the program that wrote it is at fault";
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
        "am-beyond-single",
        Usage,
        "The trees of a pipeline compare 32-bit floats, and a value is beyond their range when it gets there.",
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
        "A model is stored as tensors of certain names, and one that this model needs is missing.",
        OTHER_MODEL,
    ),
    entry(
        "am-unexpected-tensor",
        Invalid,
        "The file has a tensor that this model does not have, so it is another model, of which only a part would be \
         used.",
        OTHER_MODEL,
    ),
    entry(
        "am-dtype",
        Invalid,
        "The numbers of a model are stored as F32 (few of them as F64), and those of this tensor are not.",
        OTHER_MODEL,
    ),
    entry(
        "am-rank",
        Invalid,
        "The tensor has to have one dimension, as a list of numbers has, and has not.",
        OTHER_MODEL,
    ),
    entry("am-intercept-length", Invalid, "The intercept of a linear model is a single value.", OTHER_MODEL),
    entry(
        "am-tensor-shape",
        Invalid,
        "A tensor has another shape than its part of the model has.",
        OTHER_MODEL,
    ),
    entry(
        "am-tensor-integer",
        Invalid,
        "A tensor that stands for whole numbers, such as counts or classes, holds a fraction, a negative number or \
         something else.",
        OTHER_MODEL,
    ),
    entry(
        "am-other-model",
        Invalid,
        "The metadata of the file say that it holds another model.",
        OTHER_MODEL,
    ),
    entry(
        "am-unknown-model",
        Invalid,
        "Nothing in the file says which model it holds, or what it says is not known here, and its content has the \
         form of none.",
        "`apr inspect FILE` shows what the file says about itself; update apr if it was made by a newer program",
    ),
    entry(
        "am-no-predictions",
        Usage,
        "The model says nothing about samples: it is a list of numbers, or of labels.",
        "`apr inspect --verify FILE` says what it is",
    ),
    entry(
        "am-not-built-in",
        Unsupported,
        "This program was built without what the model needs, to be smaller: pipelines, or models that their files do not name.",
        "open it with `apr`, or build with the features `pipelines` and `unnamed` of apr-models",
    ),
    entry(
        "am-no-such-output",
        Usage,
        "The model does not say that: not every model has classes, probabilities, decisions or scores of samples.",
        "ask for what it predicts; `apr predict` does",
    ),
    entry(
        "am-part-length",
        Invalid,
        "A part of the model has another length than its other parts call for, so it cannot be one model.",
        PARTS,
    ),
    entry(
        "am-part",
        Invalid,
        "A part of the model, or a setting of a training, has a value it cannot have. Predictions from such a model \
         would be wrong or impossible.",
        PARTS,
    ),
    entry(
        "am-part-not-finite",
        Invalid,
        "A number of the model is infinite or not a number, so predictions would be.",
        "train the model again, and look for such values in its data",
    ),
    entry("am-input-length", Usage, "The values given are not the same number for each sample.", DATA),
    entry(
        "am-output-length",
        Usage,
        "The results do not fit the place that was given for them.",
        "this is a defect in the calling program: please report it",
    ),
    entry("am-label", Usage, "A sample has a class that this training cannot use.", DATA),
    entry(
        "am-too-few-samples",
        Usage,
        "The training needs more samples than there are.",
        "give it more data, or ask for less: fewer clusters, components or experts",
    ),
    entry(
        "am-layout",
        Unsupported,
        "The payload has a layout that was defined after this program was made.",
        "update apr",
    ),
    entry(
        "am-form",
        Unsupported,
        "The payload is a form of its model type that was defined after this program was made.",
        "update apr",
    ),
    entry(
        "am-other-form",
        Invalid,
        "The file holds another form of the model type, such as a model of values instead of one of classes.",
        "`apr inspect --verify FILE` says which one it is",
    ),
    entry(
        "am-bare-numbers",
        Invalid,
        "The payload is a plain list of numbers. Some programs store one under any model type; it is no model.",
        "`apr tensors FILE` shows the numbers",
    ),
    entry(
        "am-diverged",
        Usage,
        "The numbers of the training grew beyond all bounds.",
        "take smaller steps, for example --learning-rate 0.001",
    ),
    entry("am-unknown-item", Usage, "The recommender knows no item of that id.", DATA),
    entry(
        "am-no-weight-matrices",
        Usage,
        "The model is made of single numbers, lists or trees: there is no matrix of weights that fewer bits would make \
         smaller.",
        "save it as it is, with compression if it is large",
    ),
    entry(
        "am-not-writable",
        Usage,
        "Weights are not saved in this type: it has no blocks in .apr files.",
        "choose Q8_0 or Q4_0",
    ),
];
