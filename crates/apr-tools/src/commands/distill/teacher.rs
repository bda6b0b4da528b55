//! The models that a student learns from.

use std::path::{Path, PathBuf};

use apr_container::Teacher;
use apr_models::{Float, InputKind, Matrix, Model as _, OutputKind, PredictionKind, Predictions, Samples};

use super::rows::Rows;
use crate::commands::predict::LoadArgs;
use crate::commands::score::Classes;
use crate::error::{CODE_NO_PREDICTION, CODE_USAGE, Failure};
use crate::input::NamedModel;
use crate::terminal::Console;

/// Models with the same features and the same classes.
pub(super) struct Teachers {
    members: Vec<Member>,
    /// Of the first one; `None` if they predict numbers.
    classes: Option<Classes>,
}

struct Member {
    known: NamedModel,
    path: PathBuf,
    digest: String,
    weight: f64,
    /// The place among the first teacher's classes of each class of this one.
    places: Vec<usize>,
}

/// What teachers say of samples.
pub(super) enum Lessons {
    /// Probabilities of the classes: `[n_samples, n_classes]`.
    Classes(Matrix),
    Numbers(Vec<f64>),
}

impl Teachers {
    /// Loads them; without weights, all weigh the same.
    ///
    /// # Errors
    ///
    /// If one cannot be loaded, predicts neither classes nor a number, or differs from the first one in features or classes.
    pub(super) fn load(
        paths: &[PathBuf],
        weights: Option<Vec<f64>>,
        data: &Path,
        loading: &LoadArgs,
        console: &Console,
    ) -> Result<Self, Failure> {
        let weights = weights.unwrap_or_else(|| vec![1.0 / paths.len() as f64; paths.len()]);
        let mut teachers = Self { members: Vec::new(), classes: None };
        for (path, weight) in paths.iter().zip(weights) {
            if path.as_os_str() == "-" {
                let failure = Failure::new(CODE_USAGE, "a teacher is a file: the student records its digest");
                return Err(failure.help("give the file by its name"));
            }
            let known = loading.load(path, data, console)?;
            let digest = super::hex(path)?;
            teachers
                .add(Member { known, path: path.clone(), digest, weight, places: Vec::new() }, console)
                .map_err(|failure| failure.in_file(path))?;
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
        if classes.is_some() && !capabilities.supports(OutputKind::Probabilities) {
            console.remark(format_args!(
                "a {} gives no probabilities: its classes count as certain",
                model.name()
            ));
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
        match (&self.classes, &classes) {
            (None, None) => {}
            (Some(firsts), Some(others)) if firsts.names.len() == others.names.len() => {
                let place = |name: &String| firsts.names.iter().position(|first| first == name);
                let places: Option<Vec<usize>> = others.names.iter().map(place).collect();
                let differ =
                    || Failure::new(CODE_USAGE, "the teachers of an ensemble predict the same classes");
                member.places = places.ok_or_else(differ)?;
            }
            _ => {
                return Err(Failure::new(CODE_USAGE, "the teachers of an ensemble predict the same classes"));
            }
        }
        self.members.push(member);
        Ok(())
    }

    /// The first one, which says what the features and classes are called.
    pub(super) fn first(&self) -> &NamedModel {
        &self.members[0].known
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.members.iter().map(|member| member.path.as_path())
    }

    pub(super) fn classes(&self) -> Option<&Classes> {
        self.classes.as_ref()
    }

    pub(super) fn class_names(&self) -> Option<&[String]> {
        self.classes.as_ref().map(|classes| classes.names.as_slice())
    }

    /// The weighted mean of what all of them say.
    ///
    /// # Errors
    ///
    /// Those of the models.
    pub(super) fn answer(&self, rows: &Rows) -> Result<Lessons, Failure> {
        let n_rows = rows.n_rows();
        let width = self.classes.as_ref().map_or(1, |classes| classes.numbers.len());
        let mut sums = vec![0.0; n_rows * width];
        for member in &self.members {
            member
                .add_answers(rows, width, self.classes.is_some(), &mut sums)
                .map_err(|failure| failure.in_file(&member.path))?;
        }
        match self.classes {
            Some(_) => Ok(Lessons::Classes(Matrix::from_vec(
                n_rows,
                width,
                sums.iter().map(|&sum| sum as f32).collect(),
            )?)),
            None => Ok(Lessons::Numbers(sums)),
        }
    }

    /// What the student's file says of them.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub(super) fn provenance(&self) -> Result<Teacher, Failure> {
        let of = |member: &Member| Teacher {
            hash: member.digest.clone(),
            model_type: member.known.model.name().to_owned(),
            param_count: super::n_parameters(&member.known.model),
            ..Teacher::default()
        };
        let mut members: Vec<Teacher> = self.members.iter().map(of).collect();
        match members.len() {
            1 => Ok(members.remove(0)),
            _ => Ok(Teacher {
                hash: members.iter().map(|teacher| teacher.hash.as_str()).collect::<Vec<_>>().join("+"),
                model_type: "Ensemble".to_owned(),
                param_count: members.iter().map(|teacher| teacher.param_count).sum(),
                ensemble_teachers: members,
                ..Teacher::default()
            }),
        }
    }
}

impl Member {
    fn add_answers(
        &self,
        rows: &Rows,
        width: usize,
        are_classes: bool,
        sums: &mut [f64],
    ) -> Result<(), Failure> {
        let model = &self.known.model;
        let has_probabilities = model.capabilities().supports(OutputKind::Probabilities);
        let output = if are_classes && has_probabilities {
            OutputKind::Probabilities
        } else {
            OutputKind::Predictions
        };
        let unexpected =
            || Failure::new(CODE_NO_PREDICTION, format!("a {} predicts several numbers", model.name()));
        match model.predict(Samples::F64(&rows.features), rows.n_rows(), output)? {
            Predictions::Values(values) | Predictions::Rows { values, n_columns: 1 } if !are_classes => {
                sums.iter_mut()
                    .zip(values.iter().map(Float::to_f64))
                    .for_each(|(sum, value)| *sum += self.weight * value);
                Ok(())
            }
            Predictions::Probabilities { values, n_columns, .. } => {
                for (row, sums) in sums.chunks_exact_mut(width).enumerate() {
                    for (value, &place) in values.row(row, n_columns).zip(&self.places) {
                        sums[place] += self.weight * value.to_f64();
                    }
                }
                Ok(())
            }
            Predictions::Classes(found) if are_classes => {
                let numbers = model.class_numbers().unwrap_or_default();
                for (class, sums) in found.iter().zip(sums.chunks_exact_mut(width)) {
                    let place = numbers.binary_search(class).ok().and_then(|at| self.places.get(at));
                    if let Some(sum) = place.and_then(|&place| sums.get_mut(place)) {
                        *sum += self.weight;
                    }
                }
                Ok(())
            }
            _ => Err(unexpected()),
        }
    }
}
