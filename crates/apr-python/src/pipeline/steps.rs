//! The steps of plans.

use apr_models::{
    CentroidDistances, Covariance, GaussianLogDensity, KernelStep, KnnWeights, LinearStep, NeighbourMetric,
    NeighbourOutput, NeighbourSearch, NeighboursParts, NeighboursStep, Reals, RowNorm, ScaleAdd, ShiftDivide,
    Step, StepActivation, StepKernel, Table, TermFrequency, TfIdfWeights, TreeOutputs, TreeThresholds,
    TreesParts, TreesStep,
};
use pyo3::prelude::*;

use super::Made;
use super::part::Part;

/// Reads the parts of a step.
pub(crate) fn read(part: &Part<'_>) -> PyResult<Made> {
    match part.kind()?.as_str() {
        "shift_divide" => {
            let (shift, divisor) = (optional_reals(part, "shift")?, optional_reals(part, "divisor")?);
            Ok(Box::new(|| {
                Ok(Step::ShiftDivide(ShiftDivide::new(shift.map(Reals::from), divisor.map(Reals::from))?))
            }))
        }
        "scale_add" => {
            let (scale, add) = (part.field("scale")?.list::<f64>()?, part.field("add")?.list::<f64>()?);
            let clip = part.optional("clip")?.map(|clip| clip.bounds()).transpose()?;
            Ok(Box::new(move || Ok(Step::ScaleAdd(ScaleAdd::new(scale.into(), add.into(), clip)?))))
        }
        "linear" => {
            let n_outputs = part.field("n_outputs")?.count()?;
            let weights = part.field("weights")?.rows(n_outputs)?;
            let bias = part.field("bias")?.list::<f64>()?;
            Ok(Box::new(move || Ok(Step::Linear(LinearStep::new(n_outputs, weights.into(), bias.into())?))))
        }
        "activation" => {
            let function = part.field("function")?.one_of(&[
                ("relu", StepActivation::Relu),
                ("tanh", StepActivation::Tanh),
                ("logistic", StepActivation::Logistic),
            ])?;
            Ok(Box::new(move || Ok(Step::Activation(function))))
        }
        "trees" => trees(part),
        "kernel" => kernel(part),
        "neighbours" => neighbours(part),
        "centres" => {
            let n_centres = part.field("n_centres")?.count()?;
            let centres = part.field("centres")?.rows(n_centres)?;
            Ok(Box::new(move || {
                Ok(Step::CentroidDistances(CentroidDistances::new(n_centres, centres.into())?))
            }))
        }
        "weigh" => {
            let sublinear = part.field("sublinear")?.flag()?;
            let frequency = if sublinear { TermFrequency::Logarithm } else { TermFrequency::Count };
            let words = [("none", RowNorm::None), ("l1", RowNorm::L1), ("l2", RowNorm::L2)];
            let norm = part.field("norm")?.one_of(&words)?;
            let idf = optional_reals(part, "idf")?;
            Ok(Box::new(move || {
                Ok(Step::TfIdfWeights(TfIdfWeights::new(frequency, norm, idf.map(Reals::from))?))
            }))
        }
        "normals" => normals(part),
        _ => Err(part.unknown()),
    }
}

fn optional_reals(part: &Part<'_>, name: &str) -> PyResult<Option<Vec<f64>>> {
    part.optional(name)?.map(|values| values.list()).transpose()
}

enum Thresholds {
    Single(Vec<f32>),
    Double(Vec<f64>),
}

fn trees(part: &Part<'_>) -> PyResult<Made> {
    let n_outputs: usize = part.field("n_outputs")?.count()?;
    let turns = [("whole", TreeOutputs::All), ("in_turns", TreeOutputs::InTurn)];
    let outputs = part.field("turn")?.one_of(&turns)?;
    let start = part.field("start")?.list::<f64>()?;
    let divisor = part.field("divisor")?.number()?;
    let leaf_rows = part.field("leaf_rows")?.array::<f64>(2)?.values;
    let tree_nodes = part.field("tree_nodes")?.list::<u32>()?;
    let features = part.field("features")?.list::<u32>()?;
    let thresholds = part.field("thresholds")?;
    let thresholds = if part.field("precision")?.one_of(&[("single", true), ("double", false)])? {
        Thresholds::Single(thresholds.list()?)
    } else {
        Thresholds::Double(thresholds.list()?)
    };
    let leaves = part.field("leaves")?.list::<u32>()?;
    Ok(Box::new(move || {
        let parts = TreesParts {
            n_outputs,
            outputs,
            start: &start,
            divisor,
            leaf_rows: &leaf_rows,
            tree_nodes: &tree_nodes,
            features: &features,
            thresholds: match &thresholds {
                Thresholds::Single(values) => TreeThresholds::Single(values),
                Thresholds::Double(values) => TreeThresholds::Double(values),
            },
            leaves: &leaves,
        };
        TreesStep::new(&parts).map(Step::Trees)
    }))
}

/// The rows of a table, as they are made.
type Rows = Box<dyn FnOnce() -> Result<Table, apr_models::Error> + Send>;

fn table(part: &Part<'_>) -> PyResult<Rows> {
    match part.kind()?.as_str() {
        "dense" => {
            let values = part.field("values")?.array::<f64>(2)?;
            let n_rows = values.shape.first().copied().unwrap_or_default();
            Ok(Box::new(move || Table::dense(n_rows, values.values.into())))
        }
        "sparse" => {
            let n_cols = part.field("n_cols")?.count()?;
            let row_starts = sizes(&part.field("row_starts")?)?;
            let columns = part.field("columns")?.list()?;
            let values = part.field("values")?.list::<f64>()?;
            Ok(Box::new(move || Table::sparse(n_cols, row_starts, columns, values.into())))
        }
        _ => Err(part.unknown()),
    }
}

/// Integers that fit `usize`.
fn sizes(part: &Part<'_>) -> PyResult<Vec<usize>> {
    let sizes = part.list::<u64>()?.into_iter().map(usize::try_from);
    sizes.collect::<Result<_, _>>().map_err(|_| part.invalid("has numbers beyond this machine"))
}

fn kernel(part: &Part<'_>) -> PyResult<Made> {
    let kind = part.field("kernel")?;
    let gamma = kind.field("gamma")?.number()?;
    let coef0 = || kind.field("coef0")?.number();
    let kernel = match kind.kind()?.as_str() {
        "rbf" => StepKernel::Rbf { gamma },
        "polynomial" => {
            StepKernel::Polynomial { gamma, coef0: coef0()?, degree: kind.field("degree")?.count()? }
        }
        "sigmoid" => StepKernel::Sigmoid { gamma, coef0: coef0()? },
        _ => return Err(kind.unknown()),
    };
    let n_support = sizes(&part.field("n_support")?)?;
    let vectors = table(&part.field("vectors")?)?;
    let dual = part.field("dual")?.rows(n_support.len().saturating_sub(1))?;
    let intercepts = part.field("intercepts")?.list::<f64>()?;
    Ok(Box::new(move || {
        let step = KernelStep::new(kernel, n_support, vectors()?, dual.into(), intercepts.into())?;
        Ok(Step::Kernel(step))
    }))
}

fn neighbours(part: &Part<'_>) -> PyResult<Made> {
    let k = part.field("k")?.count()?;
    let metric = part.field("metric")?;
    let metric = match metric.kind()?.as_str() {
        "euclidean" => NeighbourMetric::Euclidean,
        "manhattan" => NeighbourMetric::Manhattan,
        "chebyshev" => NeighbourMetric::Chebyshev,
        "minkowski" => NeighbourMetric::Minkowski(metric.field("p")?.number()?),
        "cosine" => NeighbourMetric::Cosine,
        _ => return Err(metric.unknown()),
    };
    let words = [("uniform", KnnWeights::Uniform), ("by_distance", KnnWeights::Distance)];
    let weights = part.field("weights")?.one_of(&words)?;
    let samples = table(&part.field("samples")?)?;
    let search = part.field("search")?;
    let search = match search.kind()?.as_str() {
        "in_order" => NeighbourSearch::InOrder,
        "kd_tree" => NeighbourSearch::KdTree {
            leaf_size: search.field("leaf_size")?.count()?,
            order: search.field("order")?.list()?,
        },
        _ => return Err(search.unknown()),
    };
    let answer = answer(&part.field("answer")?)?;
    Ok(Box::new(move || {
        let parts = NeighboursParts { k, metric, weights, samples: samples()?, search, answer };
        NeighboursStep::new(parts).map(Step::Neighbours)
    }))
}

fn answer(part: &Part<'_>) -> PyResult<NeighbourOutput> {
    match part.kind()?.as_str() {
        "classes" => Ok(NeighbourOutput::Classes {
            n_classes: part.field("n_classes")?.count()?,
            class_of: part.field("class_of")?.list()?,
        }),
        "values" => {
            let (n_outputs, targets) = (part.field("n_outputs")?.count()?, part.field("targets")?);
            let values = targets.array::<f64>(2)?;
            if values.shape.get(1) != Some(&n_outputs) {
                return Err(targets.invalid(&format!("must have {n_outputs} columns")));
            }
            Ok(NeighbourOutput::Values { n_outputs, targets: values.values.into() })
        }
        _ => Err(part.unknown()),
    }
}

fn normals(part: &Part<'_>) -> PyResult<Made> {
    let peak = part.field("peak")?.list::<f64>()?;
    let means = part.field("means")?.rows(peak.len())?;
    let spread = part.field("spread")?;
    let values = spread.field("values")?;
    let spread = match spread.kind()?.as_str() {
        "variances" => Covariance::Variances(values.rows(peak.len())?.into()),
        "factors" => {
            let factors = values.array::<f64>(3)?;
            values.expect_rows(spread.field("n_factors")?.count()?, &factors.shape)?;
            Covariance::PrecisionFactors(factors.values.into())
        }
        _ => return Err(spread.unknown()),
    };
    Ok(Box::new(move || {
        Ok(Step::GaussianLogDensity(GaussianLogDensity::new(peak.into(), means.into(), spread)?))
    }))
}
