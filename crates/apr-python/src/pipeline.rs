//! Builds pipelines from the plans of `apr.sklearn`, as the bytes of a file.

mod part;
mod steps;
mod texts;

use apr_container::Metadata;
use apr_models::{
    Accepts, AnyModel, ClassHead, ClusterRule, DecisionFunction, DecisionRule, Head, Input, Labels, Link,
    OutlierHead, OutputShape, Pipeline, ProbabilityRule, Step, ValueKind,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use self::part::Part;
use crate::apr_files::{Loaded, Refusal, Saving, metadata_of, to_bytes};

/// A step whose parts were read. It is made while other threads of Python run.
type Made = Box<dyn FnOnce() -> Result<Step, apr_models::Error> + Send>;

/// The bytes of an `.apr` file with the model that a plan describes: what apr.save would write. A plan is what
/// apr.sklearn.plan gives: a dict with "input", "steps", "head" and "metadata".
///
/// Raises AprError for parts that fit neither each other nor the layout, with the place in `name`, such as `steps[2]`; TypeError
/// and ValueError, with the place in their text, for values of other kinds.
#[pyfunction]
pub(crate) fn build_pipeline<'py>(plan: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let py = plan.py();
    let plan = Part::plan(plan);
    let input = input(&plan.field("input")?)?;
    let steps = plan.field("steps")?.items()?;
    let steps: Vec<(String, Made)> = steps
        .iter()
        .map(|step| Ok((step.place().to_owned(), steps::read(step)?)))
        .collect::<PyResult<_>>()?;
    let head = head(&plan.field("head")?)?;
    let metadata = metadata(&plan.field("metadata")?)?;
    let model = py.detach(|| made(input, steps, head)).map_err(|refusal| refusal.raise(py, None))?;
    let loaded = Loaded { model: AnyModel::Pipeline(model), metadata, categories: None, signer: None };
    to_bytes(py, &loaded, &Saving::default())
}

/// What a file says of the estimator, under keys of its own: the names of the columns where every model has them, and the rest.
fn metadata(part: &Part<'_>) -> PyResult<Metadata> {
    let py = part.py();
    let (given, custom, fields) = (part.dict()?, PyDict::new(py), PyDict::new(py));
    if given.contains("feature_names")?
        && let Some(names) = part.optional("feature_names")?
    {
        custom.set_item("apr.features", names.texts()?)?;
    }
    if given.contains("sklearn")? {
        custom.set_item("apr.sklearn", part.field("sklearn")?.dict()?)?;
    }
    fields.set_item("custom", custom)?;
    metadata_of(&fields)
}

fn made(input: Input, steps: Vec<(String, Made)>, head: Head) -> Result<Pipeline, Refusal> {
    let steps =
        steps.into_iter().map(|(place, make)| make().map_err(|error| Refusal::of_part(&place, error)));
    let steps = steps.collect::<Result<Vec<Step>, Refusal>>()?;
    Pipeline::from_parts(input, steps, head).map_err(|error| Refusal::of_part("the plan", error))
}

fn input(part: &Part<'_>) -> PyResult<Input> {
    match part.kind()?.as_str() {
        "numbers" => Ok(Input::Numbers {
            n_features: part.field("n_features")?.count()?,
            accepts: part.field("accepts")?.one_of(&[
                ("finite", Accepts::Finite),
                ("missing", Accepts::Missing),
                ("anything", Accepts::Anything),
            ])?,
        }),
        "texts" => texts::read(part),
        _ => Err(part.unknown()),
    }
}

fn head(part: &Part<'_>) -> PyResult<Head> {
    match part.kind()?.as_str() {
        "rows" => Ok(Head::Values {
            kind: part
                .field("what")?
                .one_of(&[("prediction", ValueKind::Predictions), ("transform", ValueKind::Transformed)])?,
            link: part.field("link")?.one_of(&[("none", Link::None), ("exp", Link::Exp)])?,
            shape: if part.field("flat")?.flag()? { OutputShape::Vector } else { OutputShape::Matrix },
        }),
        "classes" => Ok(Head::Classes(ClassHead {
            labels: labels(&part.field("labels")?)?,
            rule: part.field("decide")?.one_of(&[
                ("above_zero", DecisionRule::Positive),
                ("at_least_zero", DecisionRule::NonNegative),
                ("largest", DecisionRule::ArgMax),
                ("pairs", DecisionRule::OneVsOne),
                ("pairs_and_confidence", DecisionRule::OneVsOneConfidence),
            ])?,
            probabilities: share(&part.field("share")?)?,
            decision_function: part.field("decision")?.one_of(&[
                ("none", DecisionFunction::None),
                ("scores", DecisionFunction::Scores),
                ("one_a_pair", DecisionFunction::OneVsOne),
                ("one_a_class", DecisionFunction::OneVsRest),
            ])?,
        })),
        "clusters" => {
            let words = [("smallest", ClusterRule::ArgMin), ("largest", ClusterRule::ArgMax)];
            part.field("decide")?.one_of(&words).map(Head::Clusters)
        }
        "outliers" => Ok(Head::Outliers(OutlierHead {
            divisor: part.field("divisor")?.number()?,
            cut: part.field("cut")?.number()?,
            offset: part.field("offset")?.number()?,
        })),
        _ => Err(part.unknown()),
    }
}

fn labels(part: &Part<'_>) -> PyResult<Labels> {
    let values = part.field("values")?;
    Ok(match part.kind()?.as_str() {
        "integers" => Labels::Integers(values.list()?),
        "texts" => Labels::Texts(values.texts()?),
        "booleans" => {
            let bytes = values.list::<u8>()?;
            if bytes.iter().any(|&byte| byte > 1) {
                return Err(values.invalid("must be 0 and 1"));
            }
            Labels::Booleans(bytes.iter().map(|&byte| byte == 1).collect())
        }
        "numbers" => Labels::Numbers(values.list()?),
        _ => return Err(part.unknown()),
    })
}

fn share(part: &Part<'_>) -> PyResult<ProbabilityRule> {
    Ok(match part.kind()?.as_str() {
        "none" => ProbabilityRule::None,
        "as_they_are" => ProbabilityRule::Scores,
        "logistic" => ProbabilityRule::Logistic { factor: part.field("factor")?.number()? },
        "softmax" => ProbabilityRule::Softmax,
        "share_of_sum" => ProbabilityRule::Normalized,
        _ => return Err(part.unknown()),
    })
}
