//! The models that a student learns from.

use alloc::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use apr_container::Teacher;
use apr_models::{
    AnyModel, DecisionFunction, DecisionPairs, DecisionRule, Float, Floats, Head, InputKind, Matrix,
    Model as _, NeuralSequential, OutputKind, Pipeline, PlattScaling, PredictionKind, Predictions,
    ProbabilityRule, Samples, Step,
};

use super::lessons::{Answer, Lessons};
use super::method::{Average, Method};
use super::rows::{Labels, Rows};
use crate::commands::predict::LoadArgs;
use crate::commands::score::Classes;
use crate::error::{CODE_NO_PREDICTION, CODE_USAGE, Failure};
use crate::file_digest::hex_sha256;
use crate::input::NamedModel;
use crate::terminal::Console;

/// Models with the same features and the same classes.
pub(super) struct Teachers {
    members: Vec<Member>,
    average: Average,
    /// Of the first one; `None` if they predict numbers.
    classes: Option<Classes>,
}

pub(super) struct Member {
    known: NamedModel,
    pub(super) path: PathBuf,
    pub(super) weight: f64,
    /// Of the file.
    pub(super) bytes: u64,
    digest: String,
    /// The place among the first teacher's classes of each class of this one.
    places: Vec<usize>,
    said: Said,
}

/// How a model says what it thinks of the classes.
enum Said {
    /// As a number, which is none of classes.
    Number,
    Probabilities,
    /// As votes of so many trees.
    Votes(f64),
    /// As decisions, which become probabilities once they are scaled.
    Decisions(DecisionPairs, Option<PlattScaling>),
    /// As a class, which counts as certain.
    Certain,
}

impl Teachers {
    /// Loads them.
    ///
    /// # Errors
    ///
    /// If one cannot be loaded, predicts neither classes nor a number, or differs from the first one in features or classes.
    pub(super) fn load(
        paths: &[PathBuf],
        method: &Method,
        data: &Path,
        loading: &LoadArgs,
        console: &Console,
    ) -> Result<Self, Failure> {
        let weights = match method {
            Method::Ensemble { weights, .. } => weights.as_slice(),
            _ => &[1.0],
        };
        let mut teachers = Self { members: Vec::new(), average: method.average(), classes: None };
        for (path, &weight) in paths.iter().zip(weights) {
            if path.as_os_str() == "-" {
                let failure = Failure::new(CODE_USAGE, "a teacher is a file: the student records its digest");
                return Err(failure.help("give the file by its name"));
            }
            let known = loading.load(path, data, console)?;
            let digest = hex_sha256(path, |_| ())?;
            let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
            let said = Said::of(&known.model);
            let (path, places) = (path.clone(), Vec::new());
            let member = Member { known, path, weight, bytes, digest, places, said };
            let path = member.path.clone();
            teachers.add(member, console).map_err(|failure| failure.in_file(&path))?;
        }
        if method.average() == Average::Logits && teachers.classes.is_none() {
            let failure =
                Failure::new(CODE_USAGE, "numbers have no logits, and the teachers predict numbers");
            return Err(failure.help("leave --average out"));
        }
        Ok(teachers)
    }

    fn add(&mut self, mut member: Member, console: &Console) -> Result<(), Failure> {
        let model = &member.known.model;
        let capabilities = model.capabilities();
        let refused = |what: &str| {
            Failure::new(CODE_NO_PREDICTION, format!("a {} {what}", model.name()))
                .help("teachers are models that predict classes or a number from numbers")
        };
        if !matches!(capabilities.input(), Some(InputKind::F32 | InputKind::F64)) {
            return Err(refused("takes no rows of numbers"));
        }
        let classes = match capabilities.prediction() {
            Some(PredictionKind::Class) => {
                let numbers = model.class_numbers().ok_or_else(|| refused("predicts clusters"))?;
                Some(Classes::new(&member.known, &numbers))
            }
            Some(PredictionKind::Value | PredictionKind::Row) => None,
            _ => return Err(refused("predicts neither classes nor a number")),
        };
        match member.said {
            Said::Certain => console.remark(format_args!(
                "a {} gives no probabilities: its classes count as certain",
                model.name()
            )),
            Said::Decisions(..) => console.remark(format_args!(
                "a {} gives no probabilities: its decisions become some by Platt scaling on the rows that the student learns from",
                model.name()
            )),
            _ => {}
        }
        let n_classes = classes.as_ref().map_or(0, |classes| classes.numbers.len());
        let Some(first) = self.members.first() else {
            member.places = (0..n_classes).collect();
            self.classes = classes;
            self.members.push(member);
            return Ok(());
        };
        if member.known.features != first.known.features
            || member.known.n_features() != first.known.n_features()
        {
            return Err(Failure::new(
                CODE_USAGE,
                "the teachers of an ensemble take the same features in the same order",
            ));
        }
        if member.known.categories != first.known.categories {
            return Err(Failure::new(
                CODE_USAGE,
                "the teachers of an ensemble know the same categories by the same numbers",
            ));
        }
        let differ = || Failure::new(CODE_USAGE, "the teachers of an ensemble predict the same classes");
        match (&self.classes, &classes) {
            (None, None) => {}
            (Some(firsts), Some(others)) if firsts.names.len() == others.names.len() => {
                let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
                for (place, name) in firsts.names.iter().enumerate() {
                    by_name.entry(name).or_insert(place);
                }
                let place = |name: &String| by_name.get(name.as_str()).copied();
                let places: Option<Vec<usize>> = others.names.iter().map(place).collect();
                let places = places.ok_or_else(differ)?;
                // Names may be the same for several classes.
                let distinct: BTreeSet<usize> = places.iter().copied().collect();
                if distinct.len() != places.len() {
                    return Err(differ());
                }
                member.places = places;
            }
            _ => return Err(differ()),
        }
        self.members.push(member);
        Ok(())
    }

    /// The first one, which says what the features and classes are called.
    pub(super) fn first(&self) -> &NamedModel {
        &self.members[0].known
    }

    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    pub(super) fn classes(&self) -> Option<&Classes> {
        self.classes.as_ref()
    }

    pub(super) fn class_names(&self) -> Option<&[String]> {
        self.classes.as_ref().map(|classes| classes.names.as_slice())
    }

    /// The name of the type of the first one, and its hidden layers if it is a network.
    pub(super) fn network(&self) -> (&'static str, Option<&NeuralSequential>) {
        match &*self.first().model {
            AnyModel::NeuralSequential(network) => ("NeuralSequential", Some(network)),
            model => (model.name(), None),
        }
    }

    /// Makes probabilities of decisions, from rows whose classes are known.
    ///
    /// # Errors
    ///
    /// Those of the models.
    pub(super) fn scale_decisions(&mut self, rows: &Rows) -> Result<(), Failure> {
        let Labels::Classes(classes) = &rows.labels else { return Ok(()) };
        let known: Vec<usize> = classes.iter().map_while(|class| *class).collect();
        for member in &mut self.members {
            let Said::Decisions(pairs, _) = member.said else { continue };
            let fitted = member.fit_decisions(rows, &known, pairs);
            let scaling = fitted.map_err(|failure| failure.in_file(&member.path))?;
            member.said = Said::Decisions(pairs, Some(scaling));
        }
        Ok(())
    }

    /// What one of them says of samples.
    ///
    /// # Errors
    ///
    /// Those of the model.
    pub(super) fn answer(&self, member: &Member, rows: &Rows) -> Result<Answer, Failure> {
        let values = match &self.classes {
            Some(classes) => member.probabilities(rows, classes.numbers.len()),
            None => numbers(&member.known.model, rows),
        };
        let values = values.map_err(|failure| failure.in_file(&member.path))?;
        let n_votes = if let Said::Votes(count) = member.said { Some(count) } else { None };
        Ok(Answer { values, weight: member.weight, n_votes })
    }

    /// What is learned from answers, at a temperature.
    ///
    /// # Errors
    ///
    /// If there are more of them than this machine can hold.
    pub(super) fn lessons(&self, answers: &[Answer], temperature: f64) -> Result<Lessons, Failure> {
        match &self.classes {
            Some(classes) => Lessons::of_classes(answers, classes.numbers.len(), self.average, temperature),
            None => Ok(Lessons::of_numbers(answers)),
        }
    }

    /// What the student's file says of them.
    pub(super) fn provenance(&self) -> Teacher {
        let mut members: Vec<Teacher> = self.members.iter().map(Member::provenance).collect();
        match members.len() {
            1 => members.remove(0),
            _ => {
                for (teacher, member) in members.iter_mut().zip(&self.members) {
                    teacher.extra.insert("weight".to_owned(), member.weight);
                }
                Teacher {
                    hash: members.iter().map(|teacher| teacher.hash.as_str()).collect::<Vec<_>>().join("+"),
                    model_type: "Ensemble".to_owned(),
                    param_count: members.iter().map(|teacher| teacher.param_count).sum(),
                    ensemble_teachers: members,
                    ..Teacher::default()
                }
            }
        }
    }
}

impl Said {
    fn of(model: &AnyModel) -> Self {
        let capabilities = model.capabilities();
        if capabilities.prediction() != Some(PredictionKind::Class) {
            return Self::Number;
        }
        match model {
            AnyModel::RandomForestClassifier(forest) => Self::Votes(forest.trees().len() as f64),
            AnyModel::Pipeline(pipeline) => match n_votes(pipeline) {
                Some(count) => Self::Votes(count as f64),
                None if capabilities.supports(OutputKind::Probabilities) => Self::Probabilities,
                None => pairs_of(pipeline).map_or(Self::Certain, |pairs| Self::Decisions(pairs, None)),
            },
            _ if capabilities.supports(OutputKind::Probabilities) => Self::Probabilities,
            AnyModel::Svm(machine) => {
                let is_linear = machine.linear_parts().is_some();
                let pairs = if is_linear { DecisionPairs::OneVsRest } else { DecisionPairs::OneVsOne };
                Self::Decisions(pairs, None)
            }
            _ => Self::Certain,
        }
    }
}

/// Trees whose votes are the probabilities, if there are several.
fn n_votes(pipeline: &Pipeline) -> Option<usize> {
    let Head::Classes(head) = pipeline.head() else { return None };
    let Some(Step::Trees(trees)) = pipeline.steps().last() else { return None };
    let are_votes = matches!(head.probabilities, ProbabilityRule::Scores | ProbabilityRule::Normalized);
    Some(trees.n_trees()).filter(|&n_trees| are_votes && n_trees > 1)
}

fn pairs_of(pipeline: &Pipeline) -> Option<DecisionPairs> {
    let Head::Classes(head) = pipeline.head() else { return None };
    let is_of_pairs = matches!(head.rule, DecisionRule::OneVsOne | DecisionRule::OneVsOneConfidence);
    match head.decision_function {
        DecisionFunction::None => None,
        DecisionFunction::OneVsOne => Some(DecisionPairs::OneVsOne),
        DecisionFunction::Scores if is_of_pairs => Some(DecisionPairs::OneVsOne),
        DecisionFunction::Scores | DecisionFunction::OneVsRest => Some(DecisionPairs::OneVsRest),
    }
}

impl Member {
    fn fit_decisions(
        &self,
        rows: &Rows,
        classes: &[usize],
        pairs: DecisionPairs,
    ) -> Result<PlattScaling, Failure> {
        let (decisions, n_columns) = self.decisions(rows)?;
        let decisions = decisions.get(..classes.len() * n_columns).unwrap_or(&decisions);
        // Of this model: the places are those of the first one.
        let mut own = vec![0; self.places.len()];
        self.places.iter().enumerate().for_each(|(class, &place)| own[place] = class);
        let classes: Vec<usize> = classes.iter().filter_map(|&place| own.get(place).copied()).collect();
        Ok(PlattScaling::fit(decisions, &classes, self.places.len(), pairs)?)
    }

    /// Decisions, and how many there are of each sample.
    fn decisions(&self, rows: &Rows) -> Result<(Vec<f64>, usize), Failure> {
        let model = &self.known.model;
        match model.predict(Samples::F64(&rows.features), rows.n_rows(), OutputKind::DecisionFunction)? {
            Predictions::Values(values) => Ok((doubles(&values), 1)),
            Predictions::Rows { values, n_columns } => Ok((doubles(&values), n_columns)),
            _ => Err(unexpected(model)),
        }
    }

    /// Probabilities of the first teacher's classes: `[n_samples, width]`.
    fn probabilities(&self, rows: &Rows, width: usize) -> Result<Vec<f64>, Failure> {
        let (model, n_rows) = (&self.known.model, rows.n_rows());
        let mut own = vec![0.0; n_rows * width];
        let output = match &self.said {
            Said::Decisions(_, scaling) => {
                let (decisions, _) = self.decisions(rows)?;
                if let Some(scaling) = scaling {
                    scaling.probabilities_into(&decisions, &mut own)?;
                }
                return Ok(self.in_place(&own, width));
            }
            Said::Certain | Said::Number => OutputKind::Predictions,
            Said::Votes(_) | Said::Probabilities => OutputKind::Probabilities,
        };
        match model.predict(Samples::F64(&rows.features), n_rows, output)? {
            Predictions::Probabilities { values, n_columns, .. } if n_columns == width => {
                Ok(self.in_place(&doubles(&values), width))
            }
            Predictions::Classes(found) => {
                let numbers = model.class_numbers().unwrap_or_default();
                for (class, row) in found.iter().zip(own.chunks_exact_mut(width)) {
                    let place = numbers.binary_search(class).ok().and_then(|at| row.get_mut(at));
                    place.into_iter().for_each(|place| *place = 1.0);
                }
                Ok(self.in_place(&own, width))
            }
            _ => Err(unexpected(model)),
        }
    }

    /// Rows of this model's classes in the order of the first one's.
    fn in_place(&self, own: &[f64], width: usize) -> Vec<f64> {
        let mut placed = vec![0.0; own.len()];
        for (own, placed) in own.chunks_exact(width).zip(placed.chunks_exact_mut(width)) {
            for (&value, &place) in own.iter().zip(&self.places) {
                placed[place] = value;
            }
        }
        placed
    }

    fn provenance(&self) -> Teacher {
        let model = &self.known.model;
        let mut teacher = Teacher {
            hash: self.digest.clone(),
            model_type: model.name().to_owned(),
            param_count: super::n_parameters(model),
            ..Teacher::default()
        };
        let architecture = match &**model {
            AnyModel::NeuralSequential(network) => {
                let widths = network.layers().iter().map(|layer| layer.n_outputs().to_string());
                let widths: Vec<String> =
                    [network.n_inputs().to_string()].into_iter().chain(widths).collect();
                Some(widths.join("-"))
            }
            AnyModel::RandomForestClassifier(forest) => Some(format!("{} trees", forest.trees().len())),
            AnyModel::RandomForestRegressor(forest) => Some(format!("{} trees", forest.trees().len())),
            AnyModel::Pipeline(pipeline) => {
                Some(pipeline.steps().iter().map(Step::name).collect::<Vec<_>>().join(", "))
            }
            _ => None,
        };
        if let Some(architecture) = architecture {
            teacher.extra.insert("architecture".to_owned(), architecture);
        }
        teacher
    }
}

fn doubles(values: &Floats) -> Vec<f64> {
    values.iter().map(Float::to_f64).collect()
}

fn unexpected(model: &AnyModel) -> Failure {
    Failure::new(CODE_NO_PREDICTION, format!("a {} predicts something else", model.name()))
}

/// The numbers that a model predicts.
///
/// # Errors
///
/// Those of the model, and if it predicts something else.
pub(super) fn numbers(model: &AnyModel, rows: &Rows) -> Result<Vec<f64>, Failure> {
    match model.predict(Samples::F64(&rows.features), rows.n_rows(), OutputKind::Predictions)? {
        Predictions::Values(values) | Predictions::Rows { values, n_columns: 1 } => Ok(doubles(&values)),
        Predictions::Rows { .. } => {
            Err(Failure::new(CODE_NO_PREDICTION, format!("a {} predicts several numbers", model.name())))
        }
        _ => Err(unexpected(model)),
    }
}

/// The probabilities that a model gives: `[n_samples, n_classes]`.
///
/// # Errors
///
/// Those of the model, and if it has none.
pub(super) fn probabilities(model: &AnyModel, rows: &Rows) -> Result<Vec<f64>, Failure> {
    match model.predict(Samples::F64(&rows.features), rows.n_rows(), OutputKind::Probabilities)? {
        Predictions::Probabilities { values, .. } => Ok(doubles(&values)),
        _ => Err(unexpected(model)),
    }
}

/// A table of 32 bits.
pub(super) fn table(values: &[f64], width: usize) -> Result<Matrix, Failure> {
    let narrow = values.iter().map(|&value| value as f32).collect();
    Ok(Matrix::from_vec(values.len() / width, width, narrow)?)
}
