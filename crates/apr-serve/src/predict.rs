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

/// Most numbers of the rows of a batch that has more than one.
const NUMBERS_AT_ONCE: usize = 1 << 20;

/// Of a raw response the type of its values, and how many a row has.
type Raw = Option<(RawKind, usize)>;

/// The predictions for a request.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) body: Vec<u8>,
    pub(crate) n_rows: usize,
    pub(crate) raw: Raw,
    /// What the body takes.
    pub(crate) reserved: Reserved,
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
    let mut reserved = Reserved::none(&worker.shared.budget);
    let mut work = Work::new(&worker.shared.options, &served.model, &served.tag, body, ask, |needed| {
        reserved.at_least(needed)
    })?;
    // What the schema took is free again.
    reserved.shrink_to(work.held());
    let mut n_rows = served.rows_at_once();
    reserved.at_least(work.held_after(n_rows))?;
    let mut goes_on = work.piece(n_rows)?;
    reserved.at_least(work.held())?;
    if goes_on {
        let _turn = worker.turns.acquire().await;
        while goes_on {
            yield_now().await;
            reserved.at_least(work.held_after(n_rows))?;
            let began = Instant::now();
            if began > end {
                return Err(Refusal::busy("the answer takes longer than the server may work on it"));
            }
            goes_on = work.piece(n_rows)?;
            reserved.at_least(work.held())?;
            if goes_on {
                served.learn(n_rows, began.elapsed());
                n_rows = served.rows_at_once();
            }
        }
    }
    let (mut body, n_rows, raw) = work.end()?;
    // It may have grown to twice its bytes, and is held until the client has taken it.
    body.shrink_to_fit();
    reserved.at_least(body.len())?;
    Ok(Answered { body, n_rows, raw, reserved })
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
        answer_at_once(self, &self.tag(1), body, ask, options).map_err(told)
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
) -> Result<Vec<u8>, Refusal> {
    let mut work = Work::new(options, model, tag, body, ask, |_| Ok(()))?;
    while work.piece(ROWS_AT_ONCE)? {}
    work.end().map(|(body, ..)| body)
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
    /// Most numbers that the body may have.
    max_numbers: usize,
    raw: Raw,
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
    /// Begins; `reserve` is called with the bytes that the body takes beside itself, before they are taken.
    fn new(
        options: &Options,
        model: &'w Model,
        tag: &'w str,
        body: &'w [u8],
        ask: Ask,
        #[cfg_attr(not(feature = "arrow"), expect(unused, reason = "other bodies are read as they are"))]
        reserve: impl FnMut(usize) -> Result<(), Refusal>,
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
            Form::Arrow => (Body::Arrow(ArrowRows::new(body, options, model, reserve)?), None),
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
            max_numbers: match &rows {
                // A number and a comma; a comma alone; one byte; four bytes.
                Body::Json(_) => body.len() / 2,
                Body::Csv(_) => body.len() + 1,
                #[cfg(feature = "msgpack")]
                Body::MessagePack(_) => body.len(),
                Body::Raw(_) => body.len() / 4,
                #[cfg(feature = "arrow")]
                Body::Arrow(rows) => rows.n_numbers(),
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
            raw,
        })
    }

    /// Predicts the next rows, at most `at_once`. Returns whether there may be more.
    fn piece(&mut self, at_once: usize) -> Result<bool, Refusal> {
        let at_once = self.rows_at_most(at_once);
        let mut texts: Vec<Cow<'w, str>> = Vec::new();
        let model = self.model;
        let takes = model.takes();
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
                        InputKind::F64 => rows.next_rows(at_most, takes, &mut self.wide)?,
                        _ => rows.next_rows(at_most, takes, &mut self.narrow)?,
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
                    rows.next_numbers(takes, self.n_columns, &mut self.wide)?
                }
                #[cfg(feature = "msgpack")]
                (Body::MessagePack(rows), _) => rows.next_numbers(takes, self.n_columns, &mut self.narrow)?,
                (Body::Raw(rows), _) => rows.next_numbers(takes, &mut self.narrow)?,
                (Body::Json(rows), InputKind::Text) => match rows.next_text()? {
                    Some(text) => {
                        texts.push(text);
                        true
                    }
                    None => false,
                },
                (Body::Csv(rows), InputKind::F64) => {
                    rows.next_numbers(takes, self.n_columns, &mut self.wide)?
                }
                (Body::Csv(rows), _) => rows.next_numbers(takes, self.n_columns, &mut self.narrow)?,
                (Body::Json(rows), InputKind::F64) => {
                    rows.next_numbers(takes, self.n_columns, &mut self.wide)?
                }
                (Body::Json(rows), _) => rows.next_numbers(takes, self.n_columns, &mut self.narrow)?,
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

    /// So many rows, or as many as have the numbers of a piece.
    fn rows_at_most(&self, at_once: usize) -> usize {
        self.n_columns.map_or(at_once, |n_columns| at_once.min((NUMBERS_AT_ONCE / n_columns.max(1)).max(1)))
    }

    /// Bytes in memory beside the body.
    fn held(&self) -> usize {
        let rows: usize = match &self.rows {
            #[cfg(feature = "arrow")]
            Body::Arrow(rows) => rows.memory(),
            _ => 0,
        };
        rows.saturating_add(self.numbers_len()).saturating_add(self.answer_len().max(self.out.capacity()))
    }

    /// The same when so many more rows have been read, without their predictions.
    fn held_after(&self, at_once: usize) -> usize {
        let width = match self.model.input_kind() {
            InputKind::Text => return self.held(),
            InputKind::F64 => size_of::<f64>(),
            _ => size_of::<f32>(),
        };
        let row = self.n_columns.unwrap_or(usize::MAX);
        let most = row.saturating_mul(self.rows_at_most(at_once)).min(self.max_numbers).saturating_mul(width);
        self.held().saturating_add(most.saturating_sub(self.numbers_len()))
    }

    /// Bytes of the numbers of a piece.
    fn numbers_len(&self) -> usize {
        self.narrow.capacity() * size_of::<f32>() + self.wide.capacity() * size_of::<f64>()
    }

    /// The answer and how many rows it has.
    fn end(mut self) -> Result<(Vec<u8>, usize, Raw), Refusal> {
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
        Ok((self.out, self.n_rows, self.raw))
    }
}

#[cfg(all(test, feature = "arrow", feature = "msgpack"))]
mod tests {
    use apr_models::{AnyModel, StandardScaler};
    use apr_table::{CellType, ColumnSpec, TableFormat, TableWriter, Values};
    use model_file::{Categories, UnknownCategory};
    use test_meter::CountingAllocator;

    use super::*;
    use crate::budget::SMALL;
    use crate::csv::Header;

    #[global_allocator]
    static HEAP: CountingAllocator = CountingAllocator::new();

    /// Gives back rows of so many numbers.
    fn same(n_columns: usize) -> Model {
        let same =
            StandardScaler::from_parts(vec![0.0; n_columns], vec![1.0; n_columns]).expect("sound parts");
        Model::new(AnyModel::from(same)).expect("it transforms rows")
    }

    /// A stream of zeros, of batches of one row.
    fn stream(n_columns: usize, n_batches: usize, cell_type: CellType) -> Vec<u8> {
        let spec = |column: usize| ColumnSpec { name: column.to_string(), cell_type, is_nullable: false };
        let specs = (0..n_columns).map(spec).collect();
        let mut writer = TableWriter::new(Vec::new(), TableFormat::ArrowStream, specs).expect("names differ");
        let zero = || match cell_type {
            CellType::Bool => Values::Bool(vec![false]),
            _ => Values::F32(vec![0.0]),
        };
        writer.write((0..n_columns).map(|_| zero().into()).collect()).expect("the columns");
        let stream = writer.finish().expect("a stream");
        // Mark and length, the schema, the batch, the end.
        let schema_len = 8 + u32::from_le_bytes(stream[4..8].try_into().expect("four bytes")) as usize;
        let (schema, batch) = stream.split_at(schema_len);
        let (batch, end) = batch.split_at(batch.len() - 8);
        [schema, &batch.repeat(n_batches), end].concat()
    }

    #[test]
    fn what_a_body_takes_is_reserved_before_it_is_taken() {
        let wide = 20_000;
        let packed =
            [&b"\xdc\x00\x40"[..], &[&b"\xdd\0\0\x4e\x20"[..], &[0; 20_000]].concat().repeat(64)].concat();
        let csv = format!("{}\n", vec!["0"; wide].join(",")).repeat(64).into_bytes();
        let json = format!("[{}]", vec![format!("[{}]", vec!["0"; wide].join(",")); 64].join(","));
        for (name, n_columns, form, body) in [
            ("columns", wide, Form::Arrow, stream(wide, 1, CellType::F32)),
            ("batches", 2, Form::Arrow, stream(2, 1000, CellType::F32)),
            ("both", 100, Form::Arrow, stream(100, 100, CellType::Bool)),
            ("packed", wide, Form::MessagePack, packed),
            ("csv", wide, Form::Csv { header: Header::Absent }, csv),
            ("json", wide, Form::Json, json.into_bytes()),
        ] {
            // The decompressed content may not be longer than this.
            let options = Options { max_body: body.len(), ..Options::default() };
            let names = vec![vec!["0".to_owned()]; n_columns];
            let categories = Categories { of_features: names, unknown: UnknownCategory::Ignore };
            let named = same(n_columns).with_categories(&categories).expect("a list for each feature");
            for model in [same(n_columns), named] {
                let ask = Ask { form, answer: AnswerForm::Json, output: OutputKind::Transformed };
                let mut reserved = 0_usize;
                let (work, usage) = HEAP.measure_thread(|| {
                    Work::new(&options, &model, "", &body, ask, |needed| {
                        reserved = reserved.max(needed);
                        Ok(())
                    })
                });
                let mut work = work.expect("a body");
                assert!(usage.peak <= reserved + SMALL, "{name}: {usage:?}, reserved {reserved}");
                loop {
                    let reserved = work.held_after(16);
                    let goes_on = work.piece(16).expect("rows");
                    // A list grows to twice what it needs.
                    assert!(work.numbers_len() <= 2 * reserved, "{name}: {} {reserved}", work.numbers_len());
                    if !goes_on {
                        break;
                    }
                }
            }
        }
    }
}
