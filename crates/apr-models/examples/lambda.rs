//! A function for AWS Lambda with its model inside: a blocking loop, no runtime beside it.
//!
//! Build it for the machine it runs on, and name the file `bootstrap`:
//!
//! ```sh
//! cargo build --release --example lambda --target x86_64-unknown-linux-musl
//! ```
//!
//! An event is `{"rows": [[1.0, 2.0], ...]}`, its answer `{"predictions": [...]}`. The interface is the Lambda runtime API,
//! version 2018-06-01: <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>.

#![forbid(unsafe_code)]

use core::convert::Infallible;
use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use apr_container::{Embedded, embed_model};
use apr_models::{LinearRegression, LinearView};
use serde_json::{Value, json};

static MODEL: Embedded<LinearRegression> = embed_model!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../conformance/vectors/apr/a0723_linreg_none_plain.apr"
));

/// The beginning of every path.
const VERSION: &str = "/2018-06-01/runtime";

/// Longest event: the service's own limit is 6 MB.
const MAX_BODY: u64 = 7 << 20;

/// Longest line of a head, and most of them.
const MAX_LINE: u64 = 16 << 10;
const MAX_LINES: usize = 128;

/// Timeout of the endpoint's responses. Waiting for the next event has no limit: it arrives with the next request.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Result<Infallible, Box<dyn Error>> {
    serve(&env::var("AWS_LAMBDA_RUNTIME_API")?, || MODEL.view())
}

/// Answers events until that is no longer possible. The process ends then, with a status that is not 0, and is started anew.
///
/// # Errors
///
/// If the model is invalid, which is reported; those of [`step`].
fn serve<'m>(
    address: &str,
    load: impl FnOnce() -> Result<LinearView<'m>, apr_container::Error>,
) -> Result<Infallible, Box<dyn Error>> {
    const INVALID: &str = "Runtime.InvalidModel";
    let mut api = Api::new(address, PATIENCE);
    let model = match load() {
        Ok(model) => model,
        Err(error) => {
            // The error is that of the model, whether or not the report reaches the endpoint.
            if let Err(unheard) = api.post("/init/error", &problem(INVALID, &error), Some(INVALID)) {
                eprintln!("/init/error: {unheard}");
            }
            return Err(error.into());
        }
    };
    loop {
        step(&mut api, &model)?;
    }
}

/// Answers one event.
///
/// # Errors
///
/// If the endpoint cannot be reached or does not keep to the interface: the service that started the function restarts it.
fn step(api: &mut Api<'_>, model: &LinearView<'_>) -> io::Result<()> {
    let event = api.next()?;
    let path = format!("/invocation/{}", event.request_id);
    match answer(model, &event.body) {
        Ok(answer) => api.post(&format!("{path}/response"), &answer, None),
        Err(error) => {
            eprintln!("{} {}: {error}", event.request_id, event.trace_id);
            api.post(
                &format!("{path}/error"),
                &problem("Function.BadEvent", &error),
                Some("Function.BadEvent"),
            )
        }
    }
}

/// What the model says about the rows of an event.
fn answer(model: &LinearView<'_>, event: &[u8]) -> Result<Value, String> {
    let event: Value =
        serde_json::from_slice(event).map_err(|error| format!("the event is no JSON: {error}"))?;
    let rows = event["rows"].as_array().ok_or("the event has no list `rows`")?;
    let mut predictions = Vec::with_capacity(rows.len());
    for (number, row) in rows.iter().enumerate() {
        let values = row.as_array().map(|row| row.iter().map(|value| Some(value.as_f64()? as f32)).collect());
        let values: Vec<f32> =
            values.flatten().ok_or_else(|| format!("row {number} is no list of numbers"))?;
        predictions.push(model.try_predict_one(&values).map_err(|error| format!("row {number}: {error}"))?);
    }
    Ok(json!({ "predictions": predictions }))
}

/// An error as the interface wants it.
fn problem(kind: &str, error: &impl fmt::Display) -> Value {
    json!({ "errorType": kind, "errorMessage": error.to_string(), "stackTrace": [] })
}

/// An event.
struct Event {
    request_id: String,
    trace_id: String,
    body: Vec<u8>,
}

/// The endpoint, and the connection to it that stays open.
struct Api<'a> {
    address: &'a str,
    patience: Duration,
    connection: Option<BufReader<TcpStream>>,
}

impl<'a> Api<'a> {
    const fn new(address: &'a str, patience: Duration) -> Self {
        Self { address, patience, connection: None }
    }

    /// Waits for the next event.
    fn next(&mut self) -> io::Result<Event> {
        // A connection that was closed while idle is not an error: the request can be repeated.
        let reused = self.connection.is_some();
        let path = "/invocation/next";
        let response = match self.request("GET", path, "", b"", None) {
            Err(error) if reused && error.kind() != io::ErrorKind::InvalidData => {
                self.request("GET", path, "", b"", None)?
            }
            response => response?,
        };
        if response.status != 200 {
            return Err(invalid(format!("status {} for the next event", response.status)));
        }
        let request_id = response.header("lambda-runtime-aws-request-id").unwrap_or_default();
        // It becomes part of a path.
        if request_id.is_empty()
            || !request_id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        {
            return Err(invalid("an event without a request id".to_owned()));
        }
        let trace_id = response.header("lambda-runtime-trace-id").unwrap_or_default();
        Ok(Event { request_id: request_id.to_owned(), trace_id: trace_id.to_owned(), body: response.body })
    }

    /// Reports an answer or an error.
    fn post(&mut self, path: &str, body: &Value, error_type: Option<&str>) -> io::Result<()> {
        let kind = error_type
            .map_or_else(String::new, |kind| format!("Lambda-Runtime-Function-Error-Type: {kind}\r\n"));
        let body = body.to_string();
        let response = self.request("POST", path, &kind, body.as_bytes(), Some(self.patience))?;
        match response.status {
            200..=299 => Ok(()),
            status => Err(invalid(format!("status {status} for {path}"))),
        }
    }

    fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
        patience: Option<Duration>,
    ) -> io::Result<Response> {
        // Removed: after an error the position in the stream is unknown.
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let stream = TcpStream::connect(self.address)?;
                stream.set_nodelay(true)?;
                BufReader::new(stream)
            }
        };
        connection.get_ref().set_read_timeout(patience)?;
        let head = format!(
            "{method} {VERSION}{path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n{headers}\r\n",
            self.address,
            body.len()
        );
        connection.get_mut().write_all(&[head.as_bytes(), body].concat())?;
        let response = Response::read(&mut connection)?;
        if response.header("connection").is_none_or(|value| !value.eq_ignore_ascii_case("close")) {
            self.connection = Some(connection);
        }
        Ok(response)
    }
}

/// A response of HTTP/1.1 (RFC 9112) with a body of a stated length, or in chunks.
struct Response {
    status: u16,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Response {
    fn read(input: &mut impl BufRead) -> io::Result<Self> {
        let first = line(input)?;
        let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| invalid(format!("no response of HTTP/1.1: {first:?}")))?;
        let headers = fields(input)?;
        let mut response = Self { status, headers, body: Vec::new() };
        let (coding, length) = (response.only("transfer-encoding")?, response.only("content-length")?);
        response.body = match (coding, length) {
            (Some(coding), None) if coding.eq_ignore_ascii_case("chunked") => chunks(input)?,
            (None, Some(length)) => exactly(input, number(length, 10)?)?,
            // With neither, a body would end with the connection; those of this interface do not.
            (None, None) => Vec::new(),
            _ => return Err(invalid("a body whose length has two readings".to_owned())),
        };
        Ok(response)
    }

    /// The value of the first field of that name.
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The value of a field of which there may be one.
    fn only(&self, name: &str) -> io::Result<Option<&str>> {
        match self.headers.iter().filter(|(found, _)| found == name).count() {
            0 | 1 => Ok(self.header(name)),
            _ => Err(invalid(format!("several fields {name}"))),
        }
    }
}

fn fields(input: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut fields = Vec::new();
    loop {
        let line = line(input)?;
        if line.is_empty() {
            return Ok(fields);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid(format!("no field: {line:?}")))?;
        fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        if fields.len() > MAX_LINES {
            return Err(invalid("too many fields".to_owned()));
        }
    }
}

fn chunks(input: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(input)?;
        let len = number(size.split(';').next().unwrap_or_default().trim(), 16)?;
        if len == 0 {
            fields(input)?;
            return Ok(body);
        }
        if body.len() as u64 + len > MAX_BODY {
            return Err(invalid("the body is too long".to_owned()));
        }
        body.extend(exactly(input, len)?);
        if !line(input)?.is_empty() {
            return Err(invalid("a chunk that does not end where it says".to_owned()));
        }
    }
}

fn exactly(input: &mut impl BufRead, len: u64) -> io::Result<Vec<u8>> {
    if len > MAX_BODY {
        return Err(invalid("the body is too long".to_owned()));
    }
    let mut body = Vec::new();
    let found = input.take(len).read_to_end(&mut body)?;
    if found as u64 == len { Ok(body) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Digits and nothing else: no sign, no blank.
fn number(text: &str, radix: u32) -> io::Result<u64> {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
    let number = u64::from_str_radix(text, radix).ok().filter(|&number| plain && number <= MAX_BODY);
    number.ok_or_else(|| invalid(format!("no length of a body: {text:?}")))
}

/// A line without its end.
fn line(input: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    input.take(MAX_LINE).read_until(b'\n', &mut line)?;
    match line.strip_suffix(b"\r\n") {
        Some(line) => {
            String::from_utf8(line.to_vec()).map_err(|_| invalid("a head that is no text".to_owned()))
        }
        None if line.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
        None => Err(invalid("a line without an end".to_owned())),
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::process::{ExitCode, Termination as _};
    use std::thread;

    use apr_container::{ModelType, view_bytes};

    use super::*;

    /// A connection of the endpoint: its answers, each in pieces with a pause before every one but the first.
    type Connection = Vec<Vec<String>>;

    /// The endpoint, which closes each connection after its last answer, and the requests that came, a line and a body each.
    fn slow_endpoint(connections: Vec<Connection>) -> (String, thread::JoinHandle<Vec<(String, String)>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let served = thread::spawn(move || {
            let mut requests = Vec::new();
            for connection in connections {
                let mut stream = BufReader::new(listener.accept().unwrap().0);
                stream.get_ref().set_nodelay(true).unwrap();
                for answer in connection {
                    let Ok(first) = line(&mut stream) else { break };
                    let fields = fields(&mut stream).unwrap();
                    let length = fields.iter().find(|(name, _)| name == "content-length").unwrap();
                    let body = exactly(&mut stream, length.1.parse().unwrap()).unwrap();
                    requests.push((first, String::from_utf8(body).unwrap()));
                    for (number, piece) in answer.iter().enumerate() {
                        if number > 0 {
                            thread::sleep(Duration::from_millis(20));
                        }
                        // Who is asked may have gone.
                        let _ = stream.get_mut().write_all(piece.as_bytes());
                    }
                }
            }
            requests
        });
        (address, served)
    }

    /// The same, each answer in one piece.
    fn endpoint(answers: Vec<Vec<String>>) -> (String, thread::JoinHandle<Vec<(String, String)>>) {
        let whole = |answers: Vec<String>| answers.into_iter().map(|answer| vec![answer]).collect();
        slow_endpoint(answers.into_iter().map(whole).collect())
    }

    fn event(id: &str, body: &str) -> String {
        format!(
            "HTTP/1.1 200 OK\r\nLambda-Runtime-Aws-Request-Id: {id}\r\nLambda-Runtime-Deadline-Ms: 1\r\n\
             Lambda-Runtime-Trace-Id: Root=1\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    const TAKEN: &str = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";

    fn rows(n_features: usize) -> String {
        json!({ "rows": [vec![0.5; n_features], vec![-1.0; n_features]] }).to_string()
    }

    #[test]
    fn events_are_answered_on_one_connection_and_bad_ones_reported() {
        let model = MODEL.view().unwrap();
        let good = rows(model.n_features());
        let (one, two) = good.split_at(7);
        let chunked = format!(
            "HTTP/1.1 200 OK\r\nlambda-runtime-aws-request-id: b-2\r\nTransfer-Encoding: chunked\r\n\r\n\
             {:x}\r\n{one}\r\n{:X};x=y\r\n{two}\r\n0\r\n\r\n",
            one.len(),
            two.len()
        );
        let bad = [
            "{",
            "{}",
            r#"{"rows": [["a"]]}"#,
            r#"{"rows": [[1e9, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]]}"#,
        ];
        let mut answers = vec![event("a-1", &good), TAKEN.to_owned(), chunked, TAKEN.to_owned()];
        for bad in bad {
            answers.extend([event("c-3", bad), TAKEN.to_owned()]);
        }
        let (address, served) = endpoint(vec![answers]);
        let mut api = Api::new(&address, PATIENCE);
        for _ in 0..2 + bad.len() {
            step(&mut api, &model).unwrap();
        }
        assert!(step(&mut api, &model).is_err());
        let requests = served.join().unwrap();
        let expected = answer(&model, good.as_bytes()).unwrap().to_string();
        for (number, id) in [(0, "a-1"), (1, "b-2")] {
            assert_eq!(requests[2 * number].0, "GET /2018-06-01/runtime/invocation/next HTTP/1.1");
            let posted = &requests[2 * number + 1];
            assert_eq!(posted.0, format!("POST /2018-06-01/runtime/invocation/{id}/response HTTP/1.1"));
            assert_eq!(posted.1, expected);
        }
        for posted in requests[4..].iter().skip(1).step_by(2) {
            assert_eq!(posted.0, "POST /2018-06-01/runtime/invocation/c-3/error HTTP/1.1");
            let body: Value = serde_json::from_str(&posted.1).unwrap();
            assert_eq!(body["errorType"], "Function.BadEvent");
        }
        assert_eq!(requests.len(), 2 * (2 + bad.len()));
    }

    #[test]
    fn a_connection_closed_between_events_is_opened_again() {
        let model = MODEL.view().unwrap();
        let answers = || vec![event("a-1", &rows(model.n_features())), TAKEN.to_owned()];
        let (address, served) = endpoint(vec![answers(), answers()]);
        let mut api = Api::new(&address, PATIENCE);
        step(&mut api, &model).unwrap();
        step(&mut api, &model).unwrap();
        assert_eq!(served.join().unwrap().len(), 4);
    }

    #[test]
    fn a_model_that_is_not_sound_is_reported_and_ends_the_process() {
        let mut file = MODEL.file().to_vec();
        let last = file.len() - 5;
        file[last] ^= 1;
        let load = || view_bytes::<LinearRegression>(&file, ModelType::LinearRegression);
        let expected = load().unwrap_err().to_string();
        // Heard, refused, and not heard at all.
        for answer in [TAKEN, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", ""] {
            let (address, served) = endpoint(vec![vec![answer.to_owned()]]);
            let ended = serve(&address, load);
            assert_eq!(ended.as_ref().unwrap_err().to_string(), expected);
            assert_eq!(ended.report(), ExitCode::FAILURE);
            let requests = served.join().unwrap();
            assert_eq!(requests.len(), 1);
            assert_eq!(requests[0].0, "POST /2018-06-01/runtime/init/error HTTP/1.1");
            let body: Value = serde_json::from_str(&requests[0].1).unwrap();
            assert_eq!(
                (&body["errorType"], &body["errorMessage"]),
                (&"Runtime.InvalidModel".into(), &expected.as_str().into())
            );
        }
    }

    #[test]
    fn a_sound_model_serves_until_the_endpoint_is_gone() {
        let good = rows(MODEL.view().unwrap().n_features());
        let (address, served) = endpoint(vec![vec![event("a-1", &good), TAKEN.to_owned()]]);
        assert_eq!(serve(&address, || MODEL.view()).report(), ExitCode::FAILURE);
        let requests = served.join().unwrap();
        assert!(requests[1].0.contains("/invocation/a-1/response"), "{requests:?}");
    }

    /// The pieces of an answer that comes a few bytes at a time.
    fn crumbs(answer: &str) -> Vec<String> {
        answer.as_bytes().chunks(40).map(|piece| String::from_utf8(piece.to_vec()).unwrap()).collect()
    }

    #[test]
    fn an_endpoint_may_take_its_time() {
        let model = MODEL.view().unwrap();
        let good = rows(model.n_features());
        let expected = answer(&model, good.as_bytes()).unwrap().to_string();
        // The first byte late; head and body in pieces; chunks in pieces, ends of lines between them.
        let late = vec![String::new(), event("a-1", &good)];
        let chunked = format!(
            "HTTP/1.1 200 OK\r\nlambda-runtime-aws-request-id: c-3\r\nTransfer-Encoding: chunked\r\n\r\n\
             {:x}\r\n{good}\r\n0\r\n\r\n",
            good.len()
        );
        let taken = vec![
            String::new(),
            "HTTP/1.1 202 Accepted\r".into(),
            "\nContent-Length: 2\r\n\r\n{".into(),
            "}".into(),
        ];
        let answers =
            vec![late, taken.clone(), crumbs(&event("b-2", &good)), taken.clone(), crumbs(&chunked), taken];
        let (address, served) = slow_endpoint(vec![answers]);
        let mut api = Api::new(&address, PATIENCE);
        for _ in 0..3 {
            step(&mut api, &model).unwrap();
        }
        // All on the one connection.
        let requests = served.join().unwrap();
        assert_eq!(requests.len(), 6);
        for (posted, id) in requests.iter().skip(1).step_by(2).zip(["a-1", "b-2", "c-3"]) {
            assert!(posted.0.contains(&format!("/invocation/{id}/response ")), "{}", posted.0);
            assert_eq!(posted.1, expected);
        }
    }

    #[test]
    fn an_endpoint_that_never_answers_a_post_ends_the_wait() {
        let model = MODEL.view().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let good = rows(model.n_features());
        let served = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            stream.write_all(event("a-1", &good).as_bytes()).unwrap();
            // Both requests, then the end: who asked has gone.
            let mut all = String::new();
            stream.read_to_string(&mut all).unwrap();
            all
        });
        let mut api = Api::new(&address, Duration::from_millis(50));
        let error = step(&mut api, &model).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error}");
        // A connection with an answer on its way is not used again.
        assert!(api.connection.is_none());
        drop(api);
        assert!(served.join().unwrap().contains("/invocation/a-1/response"));
    }

    #[test]
    fn a_connection_that_ends_early_is_no_answer() {
        let model = MODEL.view().unwrap();
        let good = rows(model.n_features());
        let whole = event("a-1", &good);
        let head = whole.find("\r\n\r\n").unwrap();
        for len in [0, 5, 20, head + 2, head + 4, head + 9, whole.len() - 1] {
            // Of the next event, which is then asked for anew on another connection, if this one had been used before.
            let (address, served) = endpoint(vec![vec![whole[..len].to_owned()]]);
            let mut api = Api::new(&address, PATIENCE);
            assert!(step(&mut api, &model).is_err(), "{len}");
            assert!(api.connection.is_none(), "{len}");
            assert_eq!(served.join().unwrap().len(), 1);
            // It is unknown whether a POST was processed, so it is not sent twice.
            let cut = TAKEN.len().min(len);
            if cut < TAKEN.len() {
                let (address, served) = endpoint(vec![vec![whole.clone(), TAKEN[..cut].to_owned()]]);
                let mut api = Api::new(&address, PATIENCE);
                assert!(step(&mut api, &model).is_err(), "{len}");
                assert_eq!(served.join().unwrap().len(), 2);
            }
        }
    }

    #[test]
    fn a_connection_is_left_where_the_endpoint_says_so() {
        let model = MODEL.view().unwrap();
        let good = rows(model.n_features());
        let closing = |answer: &str| answer.replacen("\r\n", "\r\nConnection: Close\r\n", 1);
        let (address, served) = endpoint(vec![
            vec![closing(&event("a-1", &good))],
            vec![TAKEN.to_owned(), event("b-2", &good), closing(TAKEN)],
            vec![event("c-3", &good), TAKEN.to_owned()],
        ]);
        let mut api = Api::new(&address, PATIENCE);
        for _ in 0..3 {
            step(&mut api, &model).unwrap();
        }
        let requests = served.join().unwrap();
        let posted: Vec<_> =
            requests.iter().skip(1).step_by(2).map(|request| request.0.split('/').nth(4).unwrap()).collect();
        assert_eq!(posted, ["a-1", "b-2", "c-3"]);
    }

    #[test]
    fn what_is_not_the_interface_is_refused() {
        for response in [
            "",
            "HTTP/1.0 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n1",
            "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n1",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n1234",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n123\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno field\r\n\r\n",
            "HTTP/1.1 200 OK\n\n",
        ] {
            assert!(Response::read(&mut response.as_bytes()).is_err(), "{response:?}");
        }
        for head in ["Lambda-Runtime-Aws-Request-Id: ../x", "X: y"] {
            let answer = format!("HTTP/1.1 200 OK\r\n{head}\r\nContent-Length: 2\r\n\r\n{{}}");
            let (address, served) = endpoint(vec![vec![answer]]);
            assert!(Api::new(&address, PATIENCE).next().is_err());
            served.join().unwrap();
        }
    }
}
