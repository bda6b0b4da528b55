//! The method, and what belongs to it.

use apr_container::DistillationMethod;
use clap::{Args, ValueEnum};

use super::student::Kind;
use crate::error::{CODE_USAGE, Failure};
use crate::terminal::human::plural;

#[derive(Debug, Args)]
#[command(next_help_heading = "Method")]
pub(super) struct MethodArgs {
    /// Standard: from one teacher; ensemble: from several; progressive: through assistants, or layer by layer. Without it, what the
    /// other options say.
    #[arg(long, value_name = "NAME", value_enum)]
    method: Option<MethodArg>,
    /// Weights of the teachers of an ensemble, separated by commas.
    #[arg(long, value_name = "W,W")]
    weights: Option<String>,
    /// What an ensemble is the mean of: the probabilities at the temperature, or the logits.
    #[arg(long, value_name = "WHAT", value_enum)]
    average: Option<Average>,
    /// Progressive: networks between teacher and student, each twice as wide as the next [default: 1].
    #[arg(long, value_name = "N")]
    assistants: Option<usize>,
    /// Progressive: pairs of a student's and a teacher's hidden layer, counted from 0, that are matched first.
    #[arg(long, value_name = "S:T,S:T")]
    layer_map: Option<String>,
}

/// A value of `--method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MethodArg {
    Standard,
    Progressive,
    Ensemble,
}

/// A value of `--average`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Average {
    #[default]
    Probabilities,
    Logits,
}

impl Average {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Probabilities => "probabilities",
            Self::Logits => "logits",
        }
    }
}

/// Most networks between teacher and student.
const MAX_ASSISTANTS: usize = 8;

/// How a student is to learn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Method {
    Standard,
    /// Of teachers with these weights, which sum to 1.
    Ensemble {
        weights: Vec<f64>,
        average: Average,
    },
    /// Through so many networks.
    Assistants(usize),
    /// Pairs of a student's and a teacher's hidden layer, both increasing.
    Layers(Vec<(usize, usize)>),
}

fn usage<T>(what: impl Into<String>, help: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::new(CODE_USAGE, what.into()).help(help.into()))
}

impl MethodArgs {
    /// The method of so many teachers.
    ///
    /// # Errors
    ///
    /// If options contradict each other or the number of teachers, or cannot be read.
    pub(super) fn method(&self, n_teachers: usize) -> Result<Method, Failure> {
        let progressive = self.layer_map.is_some() || self.assistants.is_some();
        let several = n_teachers > 1;
        let method = self.method.unwrap_or(match (progressive, several) {
            (true, _) => MethodArg::Progressive,
            (false, true) => MethodArg::Ensemble,
            (false, false) => MethodArg::Standard,
        });
        match method {
            MethodArg::Standard if several => {
                usage("one teacher is standard, several are an ensemble", "leave --method out")
            }
            MethodArg::Progressive if several => {
                usage("progressive distillation has one teacher", "name one, or distill an ensemble first")
            }
            MethodArg::Ensemble if !several => {
                usage("an ensemble has several teachers", "name them all before the options")
            }
            _ if !several && self.weights.is_some() => {
                usage("--weights without several teachers", "name all teachers of the ensemble")
            }
            _ if !several && self.average.is_some() => {
                usage("--average without several teachers", "name all teachers of the ensemble")
            }
            MethodArg::Standard | MethodArg::Ensemble if progressive => {
                let option = if self.layer_map.is_some() { "--layer-map" } else { "--assistants" };
                usage(format!("{option} is for progressive distillation"), "add --method progressive")
            }
            MethodArg::Standard => Ok(Method::Standard),
            MethodArg::Ensemble => {
                let even = vec![1.0 / n_teachers as f64; n_teachers];
                let given = self.weights.as_deref().map(|text| weights(text, n_teachers)).transpose()?;
                let average = self.average.unwrap_or_default();
                Ok(Method::Ensemble { weights: given.unwrap_or(even), average })
            }
            MethodArg::Progressive => match (&self.layer_map, self.assistants) {
                (Some(_), Some(_)) => {
                    usage("--layer-map and --assistants are two ways", "leave one of them out")
                }
                (Some(text), None) => Ok(Method::Layers(layer_map(text)?)),
                (None, given) => match given.unwrap_or(1) {
                    count @ 1..=MAX_ASSISTANTS => Ok(Method::Assistants(count)),
                    count => usage(
                        format!("`--assistants {count}`: 1 to {MAX_ASSISTANTS} are possible"),
                        "give another number",
                    ),
                },
            },
        }
    }
}

impl Method {
    /// As the metadata have it.
    pub(super) const fn recorded(&self) -> DistillationMethod {
        match self {
            Self::Standard => DistillationMethod::Standard,
            Self::Ensemble { .. } => DistillationMethod::Ensemble,
            Self::Assistants(_) | Self::Layers(_) => DistillationMethod::Progressive,
        }
    }

    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Ensemble { .. } => "ensemble",
            Self::Assistants(_) | Self::Layers(_) => "progressive",
        }
    }

    pub(super) const fn average(&self) -> Average {
        match self {
            Self::Ensemble { average, .. } => *average,
            _ => Average::Probabilities,
        }
    }

    /// Pairs of layers; none of other methods.
    pub(super) fn layer_map(&self) -> &[(usize, usize)] {
        match self {
            Self::Layers(pairs) => pairs,
            _ => &[],
        }
    }

    /// Hidden layers of the networks between teacher and student, from the widest on: each is twice as wide as the next, the last one twice
    /// as wide as the student, or as `--hidden` says if the student has no hidden layer.
    ///
    /// # Errors
    ///
    /// If there are no hidden layers to be wider than, or the layers are wider than this machine can count.
    pub(super) fn assistants(&self, student: Kind, hidden: &[usize]) -> Result<Vec<Vec<usize>>, Failure> {
        let Self::Assistants(count) = *self else { return Ok(Vec::new()) };
        let least = u32::from(student == Kind::Mlp);
        let factors = (least..).take(count).map(|power| 1_usize << power);
        let widths = factors.map(|factor| hidden.iter().map(|width| width.checked_mul(factor)).collect());
        let widths: Option<Vec<Vec<usize>>> = widths.collect();
        match widths.filter(|_| !hidden.is_empty()) {
            Some(mut widths) => {
                widths.reverse();
                Ok(widths)
            }
            None => usage(
                "assistants are wider than --hidden says, and that is not possible",
                "give the outputs of hidden layers, for example --hidden 32",
            ),
        }
    }

    /// Checks that a student and its teacher have the layers that are matched, or can follow each other.
    ///
    /// # Errors
    ///
    /// If one is no network, or lacks a layer.
    pub(super) fn check(
        &self,
        student: Kind,
        n_hidden: usize,
        (teacher, n_teacher_hidden): (&str, Option<usize>),
    ) -> Result<(), Failure> {
        match self {
            Self::Standard | Self::Ensemble { .. } => Ok(()),
            Self::Assistants(_) => match student {
                Kind::Tree => usage(
                    "progressive distillation goes through networks to a network, and the student is a tree",
                    "choose --student mlp, softmax or linear",
                ),
                _ => Ok(()),
            },
            Self::Layers(pairs) => {
                let Some(n_teacher_hidden) = n_teacher_hidden else {
                    return usage(
                        format!("--layer-map matches hidden layers, and the teacher is a {teacher}"),
                        "teach with a network (NeuralSequential), or leave --layer-map out",
                    );
                };
                if student != Kind::Mlp {
                    return usage(
                        format!(
                            "--layer-map matches hidden layers, and a {} student has none",
                            student.name()
                        ),
                        "choose --student mlp with --hidden",
                    );
                }
                for &(of_student, of_teacher) in pairs {
                    for (whose, layer, count) in
                        [("student", of_student, n_hidden), ("teacher", of_teacher, n_teacher_hidden)]
                    {
                        if layer >= count {
                            let layers = plural(count as u64, "hidden layer");
                            return usage(
                                format!(
                                    "`{of_student}:{of_teacher}` of --layer-map: the {whose} has {layers}, counted from 0"
                                ),
                                "give layers that both have; --hidden N,N,... sets those of the student",
                            );
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

/// Weights that sum to 1.
fn weights(text: &str, n_teachers: usize) -> Result<Vec<f64>, Failure> {
    let weights: Vec<f64> = text.split(',').map_while(|weight| weight.trim().parse().ok()).collect();
    let sum: f64 = weights.iter().sum();
    let is_whole = weights.len() == n_teachers && text.split(',').count() == n_teachers;
    let are_weights = weights.iter().all(|weight| *weight >= 0.0) && sum > 0.0 && sum.is_finite();
    match is_whole && are_weights {
        true => Ok(weights.into_iter().map(|weight| weight / sum).collect()),
        false => usage(
            format!("`--weights {text}` is no list of {n_teachers} weights"),
            "give a number that is not negative for each teacher, such as 2,1",
        ),
    }
}

/// The pairs in a list such as `0:0,1:2`.
fn layer_map(text: &str) -> Result<Vec<(usize, usize)>, Failure> {
    let pair = |pair: &str| {
        let (student, teacher) = pair.split_once(':')?;
        Some((student.trim().parse().ok()?, teacher.trim().parse().ok()?))
    };
    let Some(pairs) = text.split(',').map(pair).collect::<Option<Vec<(usize, usize)>>>() else {
        return usage(
            format!("`--layer-map {text}` is no list of pairs"),
            "write a hidden layer of the student, a colon and one of the teacher, such as 0:0,1:2",
        );
    };
    for (before, pair) in pairs.iter().zip(pairs.iter().skip(1)) {
        for (whose, before, layer) in [("student", before.0, pair.0), ("teacher", before.1, pair.1)] {
            if layer == before {
                return usage(
                    format!("`--layer-map {text}` names layer {layer} of the {whose} twice"),
                    "match each layer with one other",
                );
            }
            if layer < before {
                return usage(
                    format!("`--layer-map {text}`: layer {layer} of the {whose} comes before layer {before}"),
                    "give the pairs in the order of the layers",
                );
            }
        }
    }
    Ok(pairs)
}
