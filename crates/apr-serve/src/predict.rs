//! Computes predictions for the rows or strings of a request body, in batches.

use alloc::borrow::Cow;
use std::time::Instant;

use apr_models::{InputKind, OutputKind, Samples, Terms};
use hyper::StatusCode;
use tokio::task::yield_now;

use crate::answer;
#[cfg(feature = "arrow")]
use crate::arrow::{self, ArrowRows};
use crate::budget::Reserved;
use crate::csv::CsvRows;
use crate::json::Rows;
use crate::media;
use crate::model::Model;
#[cfg(feature = "msgpack")]
use crate::msgpack::PackedRows;
use crate::options::Options;
use crate::raw::RawRows;
use crate::refusal::Refusal;
use crate::request::{AnswerForm, Ask, Form, RawKind};
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
    reserved.grow(work.held())?;
    let mut n_rows = served.rows_at_once();
    if work.piece(n_rows)? {
        let _turn = worker.turns.acquire().await;
        loop {
            yield_now().await;
            reserved.grow(work.held())?;
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
    work.end()
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
        self.answer_at_once(body, Ask { form: Form::Json, answer: AnswerForm::Json, output }, options)
    }

    /// The same for bodies and answers of any format: by the values of `Content-Type` and `Accept`.
    ///
    /// # Errors
    ///
    /// The status and the body of the error, which is JSON.
    pub fn answer_as(
        &self,
        body: &[u8],
        content_type: &str,
        accept: &str,
        output: OutputKind,
        options: &Options,
    ) -> Result<Vec<u8>, (u16, Vec<u8>)> {
        let form = media::form(content_type, None).map_err(told)?;
        self.answer_at_once(body, Ask { form, answer: media::answer_form([accept]), output }, options)
    }

    fn answer_at_once(&self, body: &[u8], ask: Ask, options: &Options) -> Result<Vec<u8>, (u16, Vec<u8>)> {
        answer_at_once(self, &self.tag(1), body, ask, options).map(|answered| answered.body).map_err(told)
    }
}

/// Status and body of a refusal.
fn told(refusal: Refusal) -> (u16, Vec<u8>) {
    (refusal.status.as_u16(), refusal.to_json())
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
    work.end()
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
    answer: AnswerForm,
    #[cfg(feature = "arrow")]
    columns: arrow::Columns,
    /// Bytes that the body may take beside itself.
    body_memory: usize,
    raw: Option<(RawKind, usize)>,
}

enum Body<'w> {
    Json(Rows<'w>),
    Csv(CsvRows<'w>),
    #[cfg(feature = "msgpack")]
    MessagePack(PackedRows<'w>),
    #[cfg(feature = "arrow")]
    Arrow(ArrowRows),
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
        let is_numbers = matches!(ask.form, Form::Csv { .. } | Form::Raw { .. });
        if is_numbers && model.input_kind() == InputKind::Text {
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
            #[cfg(feature = "msgpack")]
            Form::MessagePack => {
                (Body::MessagePack(PackedRows::new(body, model.input_kind(), features)?), None)
            }
            #[cfg(feature = "arrow")]
            Form::Arrow => (Body::Arrow(ArrowRows::new(body, options, model)?), None),
            Form::Raw { n_columns } => {
                (Body::Raw(RawRows::new(body, n_columns, model.n_inputs())?), Some((RawKind::Floats, 0)))
            }
        };
        let mut out = Vec::with_capacity(128);
        match ask.answer {
            _ if raw.is_some() => {}
            AnswerForm::Json => out.extend_from_slice(b"{\"predictions\":["),
            #[cfg(feature = "msgpack")]
            AnswerForm::MessagePack => answer::msgpack::begin(&mut out),
            #[cfg(feature = "arrow")]
            AnswerForm::Arrow => {}
        }
        Ok(Self {
            model,
            tag,
            output: ask.output,
            n_columns: match &rows {
                Body::Json(_) | Body::Csv(_) => model.n_inputs(),
                #[cfg(feature = "msgpack")]
                Body::MessagePack(_) => model.n_inputs(),
                #[cfg(feature = "arrow")]
                Body::Arrow(rows) => Some(rows.n_columns()),
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
            answer: ask.answer,
            #[cfg(feature = "arrow")]
            columns: arrow::Columns::new(),
            body_memory: match ask.form {
                #[cfg(feature = "arrow")]
                Form::Arrow => arrow::max_content(body.len(), options.max_body),
                _ => 0,
            },
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
                #[cfg(feature = "arrow")]
                (Body::Arrow(rows), _) => {
                    let at_most = at_once - found;
                    let n_more = match samples {
                        InputKind::Text => rows.next_texts(at_most, &mut texts)?,
                        InputKind::F64 => rows.next_rows(at_most, accepts, &mut self.wide)?,
                        _ => rows.next_rows(at_most, accepts, &mut self.narrow)?,
                    };
                    // The last of them is counted below.
                    found += n_more.saturating_sub(1);
                    n_more > 0
                }
                #[cfg(feature = "msgpack")]
                (Body::MessagePack(rows), InputKind::Text) => {
                    let text = rows.next_text()?;
                    texts.extend(text.map(Cow::Borrowed));
                    text.is_some()
                }
                #[cfg(feature = "msgpack")]
                (Body::MessagePack(rows), InputKind::F64) => {
                    rows.next_numbers(accepts, self.n_columns, &mut self.wide)?
                }
                #[cfg(feature = "msgpack")]
                (Body::MessagePack(rows), _) => {
                    rows.next_numbers(accepts, self.n_columns, &mut self.narrow)?
                }
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
                return Err(Refusal::too_many_rows(self.max_rows));
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
            (_, InputKind::Text) => {
                borrowed = texts.iter().map(AsRef::as_ref).collect();
                Samples::Text(&borrowed)
            }
            (Body::Raw(_), _) => Samples::F32(&self.narrow),
            (_, InputKind::F64) => Samples::F64(&self.wide),
            _ => Samples::F32(&self.narrow),
        };
        let predictions = model.any().predict(rows, found, self.output);
        let predictions = predictions.map_err(|error| Refusal::of_model(&error.offset_rows(self.n_rows)))?;
        match (&mut self.raw, self.answer) {
            (Some(raw), _) => *raw = answer::to_raw(&predictions, &mut self.out),
            (None, AnswerForm::Json) => {
                answer::to_json(model, self.terms.as_ref(), &predictions, &mut self.out);
            }
            #[cfg(feature = "msgpack")]
            (None, AnswerForm::MessagePack) => {
                answer::msgpack::append(model, self.terms.as_ref(), &predictions, &mut self.out);
            }
            #[cfg(feature = "arrow")]
            (None, AnswerForm::Arrow) => self.columns.push(model, predictions)?,
        }
        self.n_rows += found;
        if self.answer_len() > self.max_answer {
            let what = format_args!("the answer is longer than {} bytes", self.max_answer).to_string();
            let help = "send fewer rows at a time";
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "sv-answer-size", what, help));
        }
        Ok(found == at_once)
    }

    /// Bytes of the answer so far, about.
    fn answer_len(&self) -> usize {
        #[cfg(feature = "arrow")]
        if self.answer == AnswerForm::Arrow {
            return self.columns.len();
        }
        self.out.len()
    }

    /// Bytes in memory beside the body.
    fn held(&self) -> usize {
        self.body_memory + self.answer_len()
    }

    fn end(mut self) -> Result<Answered, Refusal> {
        match self.answer {
            _ if self.raw.is_some() => {}
            AnswerForm::Json => {
                self.out.extend_from_slice(b"],\"model\":");
                write::string(self.tag, &mut self.out);
                self.out.extend_from_slice(b"}\n");
            }
            #[cfg(feature = "msgpack")]
            AnswerForm::MessagePack => answer::msgpack::end(self.n_rows, self.tag, &mut self.out),
            #[cfg(feature = "arrow")]
            AnswerForm::Arrow => {
                if self.n_rows == 0 {
                    let predictions = self.model.any().predict_nothing(self.output);
                    let predictions = predictions.map_err(|error| Refusal::of_model(&error))?;
                    self.columns.push(self.model, predictions)?;
                }
                self.out = self.columns.end()?;
            }
        }
        Ok(Answered { body: self.out, n_rows: self.n_rows, raw: self.raw })
    }
}
