//! Computes predictions for the rows or strings of a request body, in batches.

use alloc::borrow::Cow;
use std::time::Instant;

use apr_models::{InputKind, OutputKind, Samples, Terms};
use hyper::StatusCode;
use tokio::task::yield_now;

use crate::answer;
use crate::budget::Reserved;
use crate::csv::CsvRows;
use crate::json::Rows;
use crate::model::Model;
use crate::options::Options;
use crate::raw::RawRows;
use crate::refusal::Refusal;
use crate::request::{Ask, Form, RawKind};
use crate::slot::Served;
use crate::worker::Worker;
use crate::write;

/// Rows of a batch where no other request waits.
const ROWS_AT_ONCE: usize = 256;

/// The predictions for a request.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) body: Vec<u8>,
    pub(crate) n_rows: usize,
    /// Of a raw response the type of its values, and how many a row has.
    pub(crate) raw: Option<(RawKind, usize)>,
}

/// Predicts the rows of a request. A long request takes turns with others and yields after each batch.
///
/// # Errors
///
/// If the body is malformed, the model refuses it, or the request exceeds a limit.
pub(crate) async fn answer(
    worker: &Worker,
    served: &Served,
    body: &[u8],
    ask: Ask,
    end: Instant,
) -> Result<Answered, Refusal> {
    let mut work = Work::new(&worker.shared.options, &served.model, &served.tag, body, ask)?;
    let mut reserved = Reserved::none(&worker.shared.budget);
    let mut n_rows = served.rows_at_once();
    if work.piece(n_rows)? {
        let _turn = worker.turns.acquire().await;
        loop {
            yield_now().await;
            reserved.grow(work.out.len())?;
            let began = Instant::now();
            if began > end {
                return Err(Refusal::busy("the answer takes longer than the server may work on it"));
            }
            if !work.piece(n_rows)? {
                break;
            }
            served.learn(n_rows, began.elapsed());
            n_rows = served.rows_at_once();
        }
    }
    Ok(work.end())
}

impl Model {
    /// The response of `POST /predict` to a body of JSON, without a server: for functions called by another HTTP server.
    ///
    /// ```
    /// use apr_models::{AnyModel, LinearRegression, OutputKind, Vector};
    /// use apr_serve::{Model, Options};
    ///
    /// let line = LinearRegression::from_parts(Vector::from_vec(vec![2.0]), 1.0)?;
    /// let model = Model::new(AnyModel::from(line))?;
    /// let answer = model.answer_json(b"[[3], [4]]", OutputKind::Predictions, &Options::default());
    /// assert_eq!(answer, Ok(b"{\"predictions\":[7.0,9.0],\"model\":\"generation-1\"}\n".to_vec()));
    /// # Ok::<(), apr_models::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The status and the body of the error.
    pub fn answer_json(
        &self,
        body: &[u8],
        output: OutputKind,
        options: &Options,
    ) -> Result<Vec<u8>, (u16, Vec<u8>)> {
        let ask = Ask { form: Form::Json, output };
        match answer_at_once(self, &self.tag(1), body, ask, options) {
            Ok(answered) => Ok(answered.body),
            Err(refusal) => Err((refusal.status.as_u16(), refusal.to_json())),
        }
    }
}

/// Predicts the rows of a body without yielding.
///
/// # Errors
///
/// As [`answer()`], without the parts that depend on other requests.
fn answer_at_once(
    model: &Model,
    tag: &str,
    body: &[u8],
    ask: Ask,
    options: &Options,
) -> Result<Answered, Refusal> {
    let mut work = Work::new(options, model, tag, body, ask)?;
    while work.piece(ROWS_AT_ONCE)? {}
    Ok(work.end())
}

/// A request in progress.
struct Work<'w> {
    model: &'w Model,
    tag: &'w str,
    output: OutputKind,
    rows: Body<'w>,
    terms: Option<Terms<'w>>,
    max_rows: usize,
    max_answer: usize,
    /// Values of a row: the model's features, else those of the first row.
    n_columns: Option<usize>,
    n_rows: usize,
    narrow: Vec<f32>,
    wide: Vec<f64>,
    out: Vec<u8>,
    raw: Option<(RawKind, usize)>,
}

enum Body<'w> {
    Json(Rows<'w>),
    Csv(CsvRows<'w>),
    Raw(RawRows<'w>),
}

impl<'w> Work<'w> {
    fn new(
        options: &Options,
        model: &'w Model,
        tag: &'w str,
        body: &'w [u8],
        ask: Ask,
    ) -> Result<Self, Refusal> {
        if ask.form != Form::Json && model.input_kind() == InputKind::Text {
            let what = "the model takes texts, which are sent as JSON";
            let help = "send application/json: {\"rows\": [\"a text\"]}";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "sv-media-type", what, help));
        }
        let features = model.features();
        let (rows, raw) = match ask.form {
            Form::Json => (Body::Json(Rows::new(body, model.input_kind(), features)?), None),
            Form::Csv { header } => {
                (Body::Csv(CsvRows::new(body, header, features, model.n_inputs())?), None)
            }
            Form::Raw { n_columns } => {
                (Body::Raw(RawRows::new(body, n_columns, model.n_inputs())?), Some((RawKind::Floats, 0)))
            }
        };
        let mut out = Vec::with_capacity(128);
        if raw.is_none() {
            out.extend_from_slice(b"{\"predictions\":[");
        }
        Ok(Self {
            model,
            tag,
            output: ask.output,
            n_columns: match &rows {
                Body::Json(_) | Body::Csv(_) => model.n_inputs(),
                Body::Raw(rows) => Some(rows.n_columns()),
            },
            rows,
            terms: if model.input_kind() == InputKind::Text { model.any().terms() } else { None },
            max_rows: options.max_rows,
            max_answer: options.max_answer,
            n_rows: 0,
            narrow: Vec::new(),
            wide: Vec::new(),
            out,
            raw,
        })
    }

    /// Predicts the next rows, at most `at_once`. Returns whether there may be more.
    fn piece(&mut self, at_once: usize) -> Result<bool, Refusal> {
        let mut texts: Vec<Cow<'w, str>> = Vec::new();
        let model = self.model;
        let accepts = model.accepts();
        let samples = model.input_kind();
        self.narrow.clear();
        self.wide.clear();
        let mut found = 0;
        while found < at_once {
            let goes_on = match (&mut self.rows, samples) {
                (Body::Raw(rows), _) => rows.next_numbers(accepts, &mut self.narrow)?,
                (Body::Json(rows), InputKind::Text) => match rows.next_text()? {
                    Some(text) => {
                        texts.push(text);
                        true
                    }
                    None => false,
                },
                (Body::Csv(rows), InputKind::F64) => {
                    rows.next_numbers(accepts, self.n_columns, &mut self.wide)?
                }
                (Body::Csv(rows), _) => rows.next_numbers(accepts, self.n_columns, &mut self.narrow)?,
                (Body::Json(rows), InputKind::F64) => {
                    rows.next_numbers(accepts, self.n_columns, &mut self.wide)?
                }
                (Body::Json(rows), _) => rows.next_numbers(accepts, self.n_columns, &mut self.narrow)?,
            };
            if !goes_on {
                break;
            }
            found += 1;
            if self.n_rows + found > self.max_rows {
                let what = format_args!("the request has more than {} rows", self.max_rows).to_string();
                let help = "send fewer rows at a time, or ask the operator for a larger --max-rows";
                return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "sv-rows", what, help));
            }
            if self.n_columns.is_none() && samples != InputKind::Text {
                self.n_columns = Some(self.narrow.len().max(self.wide.len()));
            }
        }
        if found == 0 {
            return Ok(false);
        }
        let borrowed: Vec<&str>;
        let rows = match (&self.rows, samples) {
            (Body::Json(_), InputKind::Text) => {
                borrowed = texts.iter().map(AsRef::as_ref).collect();
                Samples::Text(&borrowed)
            }
            (Body::Json(_) | Body::Csv(_), InputKind::F64) => Samples::F64(&self.wide),
            _ => Samples::F32(&self.narrow),
        };
        let predictions = model.any().predict(rows, found, self.output);
        let predictions = predictions.map_err(|error| Refusal::of_model(&error.offset_rows(self.n_rows)))?;
        match &mut self.raw {
            Some(raw) => *raw = answer::to_raw(&predictions, &mut self.out),
            None => answer::to_json(model, self.terms.as_ref(), &predictions, &mut self.out),
        }
        self.n_rows += found;
        if self.out.len() > self.max_answer {
            let what = format_args!("the answer is longer than {} bytes", self.max_answer).to_string();
            let help = "send fewer rows at a time";
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "sv-answer-size", what, help));
        }
        Ok(found == at_once)
    }

    fn end(mut self) -> Answered {
        if self.raw.is_none() {
            self.out.extend_from_slice(b"],\"model\":");
            write::string(self.tag, &mut self.out);
            self.out.extend_from_slice(b"}\n");
        }
        Answered { body: self.out, n_rows: self.n_rows, raw: self.raw }
    }
}
