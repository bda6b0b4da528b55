//! Teachers, student and the student of labels alone, measured on rows that none of the students learned from.

use core::time::Duration;
use std::time::Instant;

use apr_container::{Map, Value};
use apr_models::{AnyModel, RegressionScorer, bootstrap_interval};

use super::lessons::Lessons;
use super::rows::{Labels, Rows};
use super::teacher::{Teachers, numbers, probabilities};
use crate::error::Failure;

/// Equal parts of the range of confidences over which calibration is measured.
const BINS: usize = 15;

/// How long predictions are repeated, for the least time of them.
const TIMED: Duration = Duration::from_millis(20);

/// A model on the rows held out.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) metrics: Vec<(&'static str, f64)>,
    /// What some of the metrics are the mean of.
    rows: Vec<(&'static str, Vec<f64>)>,
    pub(super) microseconds: f64,
    /// Of its file.
    pub(super) bytes: u64,
}

/// How much more of a metric the student has than the one of labels alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gain {
    pub(super) metric: &'static str,
    pub(super) difference: f64,
    /// The bounds of its 95 % interval.
    pub(super) bounds: (f64, f64),
}

/// All models.
pub(super) struct Compared {
    /// All teachers together.
    pub(super) teacher: Measured,
    /// Each teacher of an ensemble.
    pub(super) members: Vec<Measured>,
    /// Networks between teacher and student.
    pub(super) assistants: Vec<Measured>,
    pub(super) student: Measured,
    pub(super) baseline: Measured,
    pub(super) gains: Vec<Gain>,
}

/// What is compared with the teachers.
pub(super) struct Students<'s> {
    pub(super) assistants: &'s [AnyModel],
    pub(super) student: &'s AnyModel,
    pub(super) baseline: &'s AnyModel,
}

/// Measures all of them.
///
/// # Errors
///
/// Those of the models.
pub(super) fn compare(
    teachers: &Teachers,
    students: &Students<'_>,
    rows: &Rows,
    seed: u64,
) -> Result<Compared, Failure> {
    let mut answers = Vec::new();
    let mut times = Vec::new();
    for member in teachers.members() {
        let (answer, time) = timed(rows, || teachers.answer(member, rows))?;
        answers.push(answer);
        times.push(time);
    }
    let lessons = teachers.lessons(&answers, 1.0)?;
    let measured = |said: &[f64], microseconds| measure(said, &lessons, rows, microseconds);
    let teacher = Measured {
        bytes: teachers.members().iter().map(|member| member.bytes).sum(),
        ..measured(lessons.said(), times.iter().sum())?
    };
    let of_members = answers.iter().zip(&times).zip(teachers.members()).map(|((answer, &time), member)| {
        Ok::<_, Failure>(Measured { bytes: member.bytes, ..measured(&answer.values, time)? })
    });
    let members = if answers.len() > 1 { of_members.collect::<Result<_, _>>()? } else { Vec::new() };
    let of = |model: &AnyModel| {
        let (said, time) = timed(rows, || match lessons {
            Lessons::Classes(_) => probabilities(model, rows),
            Lessons::Numbers(_) => numbers(model, rows),
        })?;
        measured(&said, time)
    };
    let assistants = students.assistants.iter().map(of).collect::<Result<_, _>>()?;
    let (student, baseline) = (of(students.student)?, of(students.baseline)?);
    let gains = gains(&student, &baseline, seed);
    Ok(Compared { teacher, members, assistants, student, baseline, gains })
}

/// What a function returns, and the least time that it takes, in microseconds for each row.
fn timed<T>(rows: &Rows, run: impl Fn() -> Result<T, Failure>) -> Result<(T, f64), Failure> {
    let begun = Instant::now();
    let mut least = Duration::MAX;
    loop {
        let start = Instant::now();
        let found = run()?;
        least = least.min(start.elapsed());
        if begun.elapsed() >= TIMED {
            return Ok((found, least.as_secs_f64() * 1e6 / rows.n_rows() as f64));
        }
    }
}

fn measure(said: &[f64], lessons: &Lessons, rows: &Rows, microseconds: f64) -> Result<Measured, Failure> {
    let measured = match (lessons, &rows.labels) {
        (Lessons::Classes(soft), Labels::Classes(classes)) => of_classes(said, &soft.said, classes),
        (Lessons::Numbers(teacher), Labels::Numbers(labels)) => of_numbers(said, teacher, labels)?,
        _ => Measured::default(),
    };
    Ok(Measured { microseconds, ..measured })
}

/// Metrics of probabilities beside those of the teacher, both `[n_rows, n_classes]`.
fn of_classes(said: &[f64], teacher: &[f64], classes: &[Option<usize>]) -> Measured {
    let width = said.len().checked_div(classes.len()).unwrap_or(1).max(1);
    let [mut agreement, mut divergence, mut accuracy, mut loss] = [const { Vec::new() }; 4];
    let mut bins = [(0.0, 0.0); BINS];
    let least = |probability: f64| probability.clamp(f64::EPSILON, 1.0 - f64::EPSILON);
    let one_if = |holds: bool| f64::from(u8::from(holds));
    for ((said, teacher), class) in said.chunks_exact(width).zip(teacher.chunks_exact(width)).zip(classes) {
        let Some(class) = *class else { continue };
        let (found, confidence) = largest(said);
        let terms = teacher.iter().zip(said).filter(|(teacher, _)| **teacher > 0.0);
        let terms = terms.map(|(teacher, said)| teacher * libm::log(teacher / said.max(f64::EPSILON)));
        let is_right = one_if(found == class);
        agreement.push(one_if(found == largest(teacher).0));
        divergence.push(terms.sum());
        accuracy.push(is_right);
        loss.push(-libm::log(least(said.get(class).copied().unwrap_or_default())));
        let bin = ((confidence * BINS as f64) as usize).min(BINS - 1);
        bins[bin].0 += is_right;
        bins[bin].1 += confidence;
    }
    let calibration: f64 = bins.iter().map(|(right, confidence)| (right - confidence).abs()).sum();
    let count = accuracy.len() as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
    Measured {
        metrics: vec![
            ("accuracy", mean(&accuracy)),
            ("agreement", mean(&agreement)),
            // Not below 0, but for rounding.
            ("kl", mean(&divergence).max(0.0)),
            ("log_loss", mean(&loss)),
            ("calibration_error", calibration / count),
        ],
        rows: vec![("accuracy", accuracy), ("agreement", agreement), ("kl", divergence), ("log_loss", loss)],
        ..Measured::default()
    }
}

/// The place of the largest, of equal ones the first, and it.
fn largest(values: &[f64]) -> (usize, f64) {
    let mut best = (0, f64::NEG_INFINITY);
    for (place, &value) in values.iter().enumerate() {
        if value > best.1 {
            best = (place, value);
        }
    }
    best
}

fn of_numbers(said: &[f64], teacher: &[f64], labels: &[Option<f64>]) -> Result<Measured, Failure> {
    let (mut to_labels, mut to_teacher) = (RegressionScorer::default(), RegressionScorer::default());
    let labels: Vec<f64> = labels.iter().flatten().copied().collect();
    to_labels.add(&labels, said)?;
    to_teacher.add(teacher, said)?;
    let (to_labels, to_teacher) = (to_labels.metrics(), to_teacher.metrics());
    let mut metrics = vec![("rmse", to_labels.rmse), ("rmse_to_teacher", to_teacher.rmse)];
    metrics.extend(to_labels.r2.map(|r2| ("r2", r2)));
    metrics.extend(to_teacher.r2.map(|r2| ("r2_to_teacher", r2)));
    let squared = |to: &[f64]| said.iter().zip(to).map(|(said, to)| (said - to) * (said - to)).collect();
    let rows = vec![("mse", squared(&labels)), ("mse_to_teacher", squared(teacher))];
    Ok(Measured { metrics, rows, ..Measured::default() })
}

fn gains(student: &Measured, baseline: &Measured, seed: u64) -> Vec<Gain> {
    let gain = |((metric, student), (_, baseline)): (&(&'static str, Vec<f64>), &(_, Vec<f64>))| {
        let apart: Vec<f64> =
            student.iter().zip(baseline).map(|(student, baseline)| student - baseline).collect();
        let difference = apart.iter().sum::<f64>() / apart.len() as f64;
        Some(Gain { metric, difference, bounds: bootstrap_interval(&apart, seed)? })
    };
    student.rows.iter().zip(&baseline.rows).filter_map(gain).collect()
}

impl Measured {
    pub(super) fn value(&self, metric: &str) -> Option<f64> {
        self.metrics.iter().find(|(name, _)| *name == metric).map(|(_, value)| *value)
    }
}

impl Gain {
    /// Whether the student is worse, and not by chance.
    fn is_loss(&self) -> bool {
        match self.metric {
            "accuracy" | "agreement" => self.bounds.1 < 0.0,
            _ => self.bounds.0 > 0.0,
        }
    }
}

impl Compared {
    /// For the metadata of the student: `test.accuracy`, `teacher.test.accuracy`, `labels_only.test.accuracy` and so on; of the teachers of
    /// an ensemble `teacher.0.test.accuracy`.
    pub(super) fn metrics(&self) -> Map<Value> {
        let mut metrics: Map<Value> = Map::default();
        let mut add = |prefix: &str, model: &Measured| {
            for (name, value) in &model.metrics {
                metrics.insert(format!("{prefix}test.{name}"), *value);
            }
        };
        add("teacher.", &self.teacher);
        add("", &self.student);
        add("labels_only.", &self.baseline);
        self.members
            .iter()
            .enumerate()
            .for_each(|(number, member)| add(&format!("teacher.{number}."), member));
        metrics
    }

    /// Whether the student is nearer to the teacher than the one of labels alone.
    pub(super) fn helped(&self) -> bool {
        let more = |metric| {
            let student = self.student.value(metric).zip(self.baseline.value(metric));
            student.map(|(student, baseline)| student - baseline)
        };
        more("agreement").is_some_and(|more| more > 0.0)
            || more("agreement").is_some_and(|more| more == 0.0) && more("kl").is_some_and(|more| more < 0.0)
            || more("rmse_to_teacher").is_some_and(|more| more < 0.0)
    }

    /// Metrics that the student is worse in than the one of labels alone, and not by chance.
    pub(super) fn losses(&self) -> impl Iterator<Item = &Gain> {
        self.gains.iter().filter(|gain| gain.is_loss())
    }
}
