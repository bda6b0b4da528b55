//! What is told of a distillation.

use alloc::borrow::Cow;
use std::io::Write as _;

use serde::Serialize;

use super::compare::{Compared, Gain, Measured};
use super::teacher::{Member, Teachers};
use super::{Args, Plan};
use crate::error::Failure;
use crate::output::{Destination, Output, Run};
use crate::report::{self, Fields, Number};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{bytes, exact_bytes, float, plural};
use crate::terminal::table::{Align, Table};

/// Everything there is to say.
pub(super) struct Report<'r> {
    pub(super) args: &'r Args,
    pub(super) plan: &'r Plan,
    pub(super) teachers: &'r Teachers,
    pub(super) destination: &'r Destination,
    pub(super) run: Run,
    pub(super) target: &'r str,
    /// Of the training, and held out.
    pub(super) rows: [usize; 2],
    pub(super) final_loss: f64,
    pub(super) compared: &'r Compared,
}

/// How a metric is called in a sentence.
fn spoken(metric: &str) -> Cow<'_, str> {
    match metric {
        "kl" => "KL divergence from the teacher".into(),
        "agreement" => "agreement with the teacher".into(),
        "mse" => "squared error".into(),
        "mse_to_teacher" => "squared difference from the teacher".into(),
        other => other.replace('_', " ").into(),
    }
}

/// What distilling made worse.
fn loss(gain: &Gain) -> String {
    let Gain { metric, difference, bounds: (low, high) } = *gain;
    let (verb, [by, low, high]) = match difference < 0.0 {
        true => ("lowered", [-difference, -high, -low]),
        false => ("raised", [difference, low, high]),
    };
    let metric = spoken(metric);
    format!(
        "distilling {verb} the {metric} by {by:.4} (95 % interval {low:.4} to {high:.4}) beside labels alone"
    )
}

fn interval(gain: &Gain) -> String {
    format!("{:+.4} [{:+.4}, {:+.4}]", gain.difference, gain.bounds.0, gain.bounds.1)
}

impl Report<'_> {
    /// Prints it, and writes it to a file if that is asked for.
    ///
    /// # Errors
    ///
    /// If one of them does not take it.
    pub(super) fn print(&self, file: Option<&Output>, console: &mut Console) -> Result<(), Failure> {
        if let Some(Output { destination, overwrite, run: Run::Write }) = file {
            destination.fill(*overwrite, |out| {
                report::write(&mut &mut *out, &self.json()).map_err(|error| destination.write_failure(&error))
            })?;
        }
        if !self.compared.helped() {
            console.remark("distilling did not help: the student of labels alone is as near to the teacher");
        }
        for gain in self.compared.losses() {
            console.remark(loss(gain));
        }
        if console.is_json() {
            return console.report(&self.json());
        }
        let mut lines = self.table().lines();
        for table in [self.comparison(), self.others()].into_iter().flatten() {
            lines.push(String::new());
            lines.extend(table.lines());
        }
        if *self.destination == Destination::Stdout && self.run == Run::Write {
            lines.iter().for_each(|line| console.note(line));
        } else {
            console.text(|out, _| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
        }
        let label = escape::path(self.destination.label());
        let size = exact_bytes(self.compared.student.bytes);
        self.run.tell(&format!("{label}: .apr version 1, {size}"), console)
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[Align::Left, Align::Left]);
        let mut line = |label: &str, text: String| table.row([label.to_owned(), text]);
        for member in self.teachers.members() {
            line("teacher", escape::path(&member.path));
        }
        let ([learned, tested], synthetic) = (self.rows, self.args.synthesize);
        let synthetic =
            if synthetic > 0 { format!(" ({synthetic} of them synthetic)") } else { String::new() };
        let [learned, tested] = [learned, tested].map(|count| plural(count as u64, "row"));
        line(
            "data",
            format!(
                "{learned} learned from{synthetic}, {tested} held out, from {}",
                escape::path(&self.args.data)
            ),
        );
        line("target", escape::cut(self.target, 60));
        line("method", self.plan.method.name().to_owned());
        line("student", self.plan.kind.name().to_owned());
        line("temperature", float(self.plan.temperature));
        line("alpha", float(self.args.alpha));
        line("final loss", float(self.final_loss));
        table
    }

    /// Teacher, student and baseline, a row for each metric.
    fn comparison(&self) -> Option<Table> {
        let right = Align::Right;
        let mut table = Table::new(&[Align::Left, right, right, right, right]);
        let heads = ["on rows held out", "teacher", "student", "labels alone", "gain, 95 % interval"];
        table.row(heads.map(str::to_owned));
        let Compared { teacher, student, baseline, gains, .. } = self.compared;
        for (((name, teacher), (_, student)), (_, baseline)) in
            teacher.metrics.iter().zip(&student.metrics).zip(&baseline.metrics)
        {
            let gain = gains.iter().find(|gain| gain.metric == *name).map(interval).unwrap_or_default();
            table.row([(*name).to_owned(), float(*teacher), float(*student), float(*baseline), gain]);
        }
        for gain in gains.iter().filter(|gain| student.value(gain.metric).is_none()) {
            let [a, b, c] = [const { String::new() }; 3];
            table.row([gain.metric.to_owned(), a, b, c, interval(gain)]);
        }
        let all = [teacher, student, baseline];
        let mut last = |label: &str, cells: [String; 3]| {
            table.row([label.to_owned()].into_iter().chain(cells).chain([String::new()]));
        };
        last("microseconds a row", all.map(|model| format!("{:.2}", model.microseconds)));
        last("file", all.map(|model| bytes(model.bytes)));
        Some(table)
    }

    /// Each teacher of an ensemble, each network in between; a row for each model.
    fn others(&self) -> Option<Table> {
        let Compared { members, assistants, .. } = self.compared;
        let first = members.first().or(assistants.first())?;
        let mut aligns = vec![Align::Left];
        aligns.resize(first.metrics.len() + 3, Align::Right);
        let mut table = Table::new(&aligns);
        let heads = first.metrics.iter().map(|(name, _)| (*name).to_owned());
        let more = ["microseconds a row", "file"].map(str::to_owned);
        table.row(["on rows held out".to_owned()].into_iter().chain(heads).chain(more));
        let mut row = |label: String, model: &Measured| {
            let values = model.metrics.iter().map(|(_, value)| float(*value));
            let more = [format!("{:.2}", model.microseconds), bytes(model.bytes)];
            table.row([label].into_iter().chain(values).chain(more));
        };
        for (member, measured) in self.teachers.members().iter().zip(members) {
            row(format!("{}, weight {}", escape::path(&member.path), float(member.weight)), measured);
        }
        for (hidden, measured) in self.plan.assistants.iter().zip(assistants) {
            let widths: Vec<String> = hidden.iter().map(usize::to_string).collect();
            row(format!("network of {}", widths.join(",")), measured);
        }
        Some(table)
    }

    fn json(&self) -> DistillReport<'_> {
        let Compared { teacher, student, baseline, members, assistants, gains } = self.compared;
        let gain = |gain: &Gain| {
            let Gain { metric, difference, bounds: (low, high) } = *gain;
            let values = [("difference", difference), ("low", low), ("high", high)];
            (metric, Fields(values.map(|(name, value)| (name, Number(value))).into()))
        };
        let member = |(member, measured): (&Member, &Measured)| MemberReport {
            teacher: member.path.to_string_lossy().into_owned(),
            weight: member.weight,
            metrics: fields(measured),
        };
        let assistant = |(hidden, measured): (&Vec<usize>, &Measured)| AssistantReport {
            hidden: hidden.clone(),
            metrics: fields(measured),
        };
        let [rows, test_rows] = self.rows;
        DistillReport {
            teachers: self.teachers.members().iter().map(|member| report::path(&member.path)).collect(),
            data: report::path(&self.args.data),
            output: report::path(self.destination.label()),
            written: self.run == Run::Write,
            bytes: student.bytes,
            target: self.target,
            method: self.plan.method.name(),
            student: self.plan.kind.name(),
            temperature: self.plan.temperature,
            alpha: self.args.alpha,
            rows,
            synthesized: self.args.synthesize,
            test_rows,
            final_loss: self.final_loss,
            helped: self.compared.helped(),
            worse: self.compared.losses().map(|gain| gain.metric).collect(),
            metrics: Fields(
                [("teacher", teacher), ("student", student), ("labels_only", baseline)]
                    .map(|(name, model)| (name, fields(model)))
                    .into(),
            ),
            gains: Fields(gains.iter().map(gain).collect()),
            members: self.teachers.members().iter().zip(members).map(member).collect(),
            assistants: self.plan.assistants.iter().zip(assistants).map(assistant).collect(),
        }
    }
}

fn fields(model: &Measured) -> Fields<&'static str, Field> {
    let numbers = model.metrics.iter().copied().chain([("microseconds_per_row", model.microseconds)]);
    let numbers = numbers.map(|(name, value)| (name, Field::Number(Number(value))));
    Fields(numbers.chain([("bytes", Field::Count(model.bytes))]).collect())
}

/// Something measured.
#[derive(Serialize)]
#[serde(untagged)]
enum Field {
    Number(Number),
    Count(u64),
}

/// The report.
#[derive(Serialize)]
struct DistillReport<'a> {
    teachers: Vec<Cow<'a, str>>,
    data: Cow<'a, str>,
    output: Cow<'a, str>,
    written: bool,
    bytes: u64,
    target: &'a str,
    method: &'static str,
    student: &'a str,
    temperature: f64,
    alpha: f64,
    rows: usize,
    synthesized: usize,
    test_rows: usize,
    final_loss: f64,
    helped: bool,
    worse: Vec<&'a str>,
    metrics: Fields<&'a str, Fields<&'static str, Field>>,
    gains: Fields<&'a str, Fields<&'static str, Number>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<MemberReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    assistants: Vec<AssistantReport>,
}

/// A teacher of an ensemble.
#[derive(Serialize)]
struct MemberReport {
    teacher: String,
    weight: f64,
    metrics: Fields<&'static str, Field>,
}

/// A network between teacher and student.
#[derive(Serialize)]
struct AssistantReport {
    hidden: Vec<usize>,
    metrics: Fields<&'static str, Field>,
}

impl report::Report for DistillReport<'_> {
    const SCHEMA: &'static str = "apr.distill/1";
}
