//! Which checkpoints to keep.

use alloc::collections::{BTreeMap, BTreeSet};
use core::cmp::Reverse;
use core::num::{NonZeroU64, NonZeroUsize};
use core::str::FromStr;

use super::{Checkpoints, LoadOptions, Meta};
use crate::error::{Error, ErrorKind};

/// Words in the name of a metric whose least values are the best.
const LEAST: [&str; 12] =
    ["loss", "error", "err", "nll", "perplexity", "ppl", "rmse", "mse", "mae", "wer", "cer", "fid"];

/// Words in the name of a metric whose greatest values are the best.
const GREATEST: [&str; 16] = [
    "accuracy",
    "acc",
    "f1",
    "auc",
    "precision",
    "recall",
    "r2",
    "bleu",
    "rouge",
    "map",
    "iou",
    "miou",
    "psnr",
    "ssim",
    "reward",
    "score",
];

/// Rules: a checkpoint is kept if any of them asks for it. The newest is kept in any case.
///
/// # Examples
///
/// ```
/// use std::num::NonZeroUsize;
///
/// use st_mmap::{CheckpointData, Checkpoints, Retention};
///
/// # let folder = std::env::temp_dir().join(format!("st-mmap-doc-retention-{}", std::process::id()));
/// let checkpoints = Checkpoints::new(&folder);
/// for (step, loss) in [(10, 0.9), (20, 0.2), (30, 0.7), (40, 0.6)] {
///     let metrics = [("val_loss".to_owned(), loss)].into();
///     checkpoints.save(&CheckpointData { step, metrics, ..CheckpointData::default() })?;
/// }
/// let retention = Retention { last: NonZeroUsize::new(1), best: vec!["1:val_loss".parse()?], every: None };
/// let plan = checkpoints.plan(&retention, None)?;
/// assert_eq!(plan.removed, [10, 30]);
/// checkpoints.prune(&plan)?;
/// assert_eq!(checkpoints.steps()?, [20, 40]);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// The highest steps.
    pub last: Option<NonZeroUsize>,
    /// The best by metrics.
    pub best: Vec<Best>,
    /// Steps that are multiples of this.
    pub every: Option<NonZeroU64>,
}

/// The best checkpoints by one metric. In text `COUNT:METRIC`, `COUNT:METRIC:min` or `COUNT:METRIC:max`; the first form is for metrics
/// whose names say which values are better.
///
/// ```
/// use st_mmap::{Best, Prefer};
///
/// assert_eq!("3:val_loss".parse::<Best>()?.prefer, Prefer::Least);
/// assert_eq!("1:top1:max".parse::<Best>()?.metric, "top1");
/// assert_eq!("1:top1".parse::<Best>().unwrap_err().code(), "sm-keep-rule");
/// # Ok::<(), st_mmap::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Best {
    /// How many.
    pub count: NonZeroUsize,
    /// Name of the metric.
    pub metric: String,
    /// Which of its values are better.
    pub prefer: Prefer,
}

/// Which values of a metric are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prefer {
    /// Small ones.
    Least,
    /// Large ones.
    Greatest,
}

/// What [`Checkpoints::prune`] will do.
#[derive(Debug, Default)]
pub struct Plan {
    /// Steps that rules ask for, ascending.
    pub kept: Vec<Kept>,
    /// Steps that go, ascending.
    pub removed: Vec<u64>,
    /// Steps that cannot be used, ascending, and why. They count for no rule and stay.
    pub unusable: Vec<(u64, Error)>,
}

/// A step that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The step.
    pub step: u64,
    /// Why, at least one reason.
    pub reasons: Vec<KeptBy>,
}

/// Why a step is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeptBy {
    /// It is the highest, which no rule has asked for.
    Newest,
    /// [`Retention::last`].
    Last,
    /// [`Retention::best`], by this metric.
    Best(String),
    /// [`Retention::every`].
    Every,
}

impl Prefer {
    /// What the name of a metric says, if it does.
    #[must_use]
    pub fn of_metric(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let has =
            |words: &[&str]| name.split(|c: char| !c.is_alphanumeric()).any(|part| words.contains(&part));
        match (has(&LEAST), has(&GREATEST)) {
            (true, false) => Some(Self::Least),
            (false, true) => Some(Self::Greatest),
            _ => None,
        }
    }
}

impl FromStr for Best {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad =
            |problem| Error::from(ErrorKind::BadRule { rule: text.chars().take(100).collect(), problem });
        let (count, metric) = text.split_once(':').ok_or_else(|| bad("there is no colon"))?;
        let count = count.parse().map_err(|_| bad("it does not begin with a count of 1 or more"))?;
        let (metric, prefer) = match metric.rsplit_once(':') {
            Some((metric, "min")) => (metric, Some(Prefer::Least)),
            Some((metric, "max")) => (metric, Some(Prefer::Greatest)),
            _ => (metric, Prefer::of_metric(metric)),
        };
        if metric.is_empty() {
            return Err(bad("it names no metric"));
        }
        let prefer = prefer.ok_or_else(|| bad("the metric's name does not say which values are better"))?;
        Ok(Self { count, metric: metric.to_owned(), prefer })
    }
}

impl Checkpoints {
    /// Decides which checkpoints are kept. Of each, `meta.json` is read; with `verify`, those that count for `last` and `best` are also
    /// [loaded](Self::load_with), and one that is refused does not count: the next in order takes its place.
    ///
    /// # Errors
    ///
    /// Those of [`steps`](Self::steps), and [`ErrorKind::NoMetric`] if there are checkpoints and none has the metric of a rule.
    pub fn plan(&self, retention: &Retention, verify: Option<&LoadOptions>) -> Result<Plan, Error> {
        let mut metas = BTreeMap::new();
        let mut unusable = BTreeMap::new();
        for step in self.steps()? {
            match self.meta(step) {
                Ok(meta) => drop(metas.insert(step, meta)),
                // Another process has removed it.
                Err(error) if matches!(error.kind(), ErrorKind::StepNotFound { .. }) => {}
                Err(error) => drop(unusable.insert(step, error)),
            }
        }
        let orders = retention.best.iter().map(|best| best.order(&metas)).collect::<Result<Vec<_>, _>>()?;

        let mut reasons: BTreeMap<u64, Vec<KeptBy>> = BTreeMap::new();
        let mut verified = BTreeSet::new();
        let mut take = |steps: &mut dyn Iterator<Item = u64>, count: NonZeroUsize, reason: KeptBy| {
            let mut left = count.get();
            for step in steps {
                if left == 0 {
                    break;
                }
                if unusable.contains_key(&step) {
                    continue;
                }
                if let Some(options) = verify
                    && !verified.contains(&step)
                {
                    if let Err(error) = self.load_with(step, options) {
                        unusable.insert(step, error);
                        continue;
                    }
                    verified.insert(step);
                }
                reasons.entry(step).or_default().push(reason.clone());
                left -= 1;
            }
        };
        if let Some(count) = retention.last {
            take(&mut metas.keys().rev().copied(), count, KeptBy::Last);
        }
        for (best, order) in retention.best.iter().zip(orders) {
            take(&mut order.into_iter(), best.count, KeptBy::Best(best.metric.clone()));
        }
        if retention.last.is_none() {
            take(&mut metas.keys().rev().copied(), NonZeroUsize::MIN, KeptBy::Newest);
        }
        if let Some(every) = retention.every {
            for step in metas.keys().filter(|step| step.is_multiple_of(every.get())) {
                reasons.entry(*step).or_default().push(KeptBy::Every);
            }
        }
        let is_removed = |step: &u64| !reasons.contains_key(step) && !unusable.contains_key(step);
        let removed = metas.into_keys().filter(is_removed).collect();
        // A multiple that was loaded for another rule and refused is named once.
        reasons.retain(|step, _| !unusable.contains_key(step));
        let kept =
            reasons.into_iter().map(|(step, reasons)| Kept { step, reasons: one_newest(reasons) }).collect();
        Ok(Plan { kept, removed, unusable: unusable.into_iter().collect() })
    }

    /// Removes what a plan says. A crash leaves each checkpoint complete or gone, and all that are kept.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] or [`ErrorKind::File`] if something cannot be renamed, flushed or removed.
    pub fn prune(&self, plan: &Plan) -> Result<(), Error> {
        self.remove(&plan.removed)
    }
}

/// That a step is the newest is a reason only where there is no other.
fn one_newest(mut reasons: Vec<KeptBy>) -> Vec<KeptBy> {
    if reasons.len() > 1 {
        reasons.retain(|reason| *reason != KeptBy::Newest);
    }
    reasons
}

impl Best {
    /// The steps that have the metric, the best first.
    fn order(&self, metas: &BTreeMap<u64, Meta>) -> Result<Vec<u64>, Error> {
        let values =
            metas.iter().filter_map(|(step, meta)| Some((*step, *meta.metrics().get(&self.metric)?)));
        let mut values: Vec<(u64, f64)> = values.collect();
        if values.is_empty() && !metas.is_empty() {
            let known = metas.values().rev().find_map(|meta| meta.metrics().keys().next());
            return Err(ErrorKind::NoMetric { metric: self.metric.clone(), known: known.cloned() }.into());
        }
        values.retain(|(_, value)| !value.is_nan());
        values.sort_by(|(step_a, a), (step_b, b)| {
            let by_value = match self.prefer {
                Prefer::Least => a.total_cmp(b),
                Prefer::Greatest => b.total_cmp(a),
            };
            // Both zeros are one value.
            let by_value = if a == b { core::cmp::Ordering::Equal } else { by_value };
            by_value.then(Reverse(step_a).cmp(&Reverse(step_b)))
        });
        Ok(values.into_iter().map(|(step, _)| step).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_others_refused() {
        let best = |text: &str| text.parse::<Best>().unwrap();
        assert_eq!(
            best("3:loss"),
            Best { count: NonZeroUsize::new(3).unwrap(), metric: "loss".into(), prefer: Prefer::Least }
        );
        assert_eq!(
            (best("1:val/top1:max").metric.as_str(), best("1:val/top1:max").prefer),
            ("val/top1", Prefer::Greatest)
        );
        // What a rule says counts more than what the name says, and a metric may contain colons.
        assert_eq!(best("1:loss:max").prefer, Prefer::Greatest);
        assert_eq!(best("2:val:loss").metric, "val:loss");
        assert_eq!(best("2:val:loss:min").metric, "val:loss");
        for text in [
            "",
            "3",
            "0:loss",
            "-1:loss",
            "x:loss",
            "3:",
            "3::min",
            "3:steps",
            "3:lossy",
            "3:loss_score",
            "3:min",
        ] {
            assert_eq!(text.parse::<Best>().unwrap_err().code(), "sm-keep-rule", "{text}");
        }
    }

    #[test]
    fn names_say_which_values_are_better() {
        for name in ["loss", "val_loss", "eval/Loss", "test-rmse", "word.err"] {
            assert_eq!(Prefer::of_metric(name), Some(Prefer::Least), "{name}");
        }
        for name in ["accuracy", "val_acc", "macro F1", "roc_auc"] {
            assert_eq!(Prefer::of_metric(name), Some(Prefer::Greatest), "{name}");
        }
        for name in ["", "lr", "lossless", "accuracy_loss", "epoch"] {
            assert_eq!(Prefer::of_metric(name), None, "{name}");
        }
    }
}
