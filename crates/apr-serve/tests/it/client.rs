//! A server on a free port, and a client that sends what it is told, byte for byte.

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::thread::{self, JoinHandle};

use apr_models::{AnyModel, LinearRegression, Vector};
use apr_serve::{Handle, Model, Options, Server, Signals};
use serde_json::Value;

/// A server that stops when this is dropped.
pub(crate) struct Running {
    pub(crate) addr: SocketAddr,
    pub(crate) handle: Handle,
    thread: Option<JoinHandle<()>>,
}

/// Short limits, so that tests that wait for them do not take long.
pub(crate) fn options() -> Options {
    Options {
        threads: 2,
        max_body: 64 << 10,
        max_rows: 1000,
        head_time: Duration::from_millis(300),
        request_time: Duration::from_secs(2),
        idle_time: Duration::from_secs(5),
        grace: Duration::from_secs(5),
        signals: Signals::Leave,
        ..Options::default()
    }
}

/// y = 1 + 2a + 0.5b.
pub(crate) fn line() -> AnyModel {
    LinearRegression::from_parts(Vector::from_vec(vec![2.0, 0.5]), 1.0).unwrap().into()
}

pub(crate) fn start(model: AnyModel) -> Running {
    start_with(Model::new(model).unwrap(), options())
}

pub(crate) fn start_with(model: Model, options: Options) -> Running {
    run(options, move |server| server.serve(model).unwrap())
}

pub(crate) fn run(options: Options, serve: impl FnOnce(Server) + Send + 'static) -> Running {
    let server = Server::bind("127.0.0.1:0", options).unwrap();
    let (addr, handle) = (server.local_addr(), server.handle());
    Running { addr, handle, thread: Some(thread::spawn(move || serve(server))) }
}

impl Running {
    pub(crate) fn connect(&self) -> Client {
        Client::new(self.addr)
    }

    /// A connection from another address of the loopback interface.
    #[cfg(target_os = "linux")]
    pub(crate) fn connect_from(&self, address: &str) -> Client {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
            socket.connect(self.addr).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        Client::over(stream)
    }

    /// One request on a connection of its own.
    pub(crate) fn ask(&self, request: &str, body: &[u8]) -> Response {
        let mut client = self.connect();
        client.send(&with_length(request, body));
        client.response()
    }

    pub(crate) fn predict(&self, body: &str) -> Response {
        self.ask("POST /predict HTTP/1.1\r\ncontent-type: application/json\r\n", body.as_bytes())
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.ask(&format!("GET {path} HTTP/1.1\r\n"), b"")
    }

    /// The value of a line of `/metrics`; 0 if there is none.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Waits until the server has returned.
    pub(crate) fn join(mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A request with its length, from its head without the last line, and its body.
pub(crate) fn with_length(head: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{head}host: localhost\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// The request for one prediction.
pub(crate) fn row(body: &str) -> Vec<u8> {
    with_length("POST /predict HTTP/1.1\r\n", body.as_bytes())
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    read: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn predictions(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()["predictions"].clone()
    }

    /// The code of a refusal; it has a message and help as well.
    pub(crate) fn code(&self) -> String {
        let error = &self.json()["error"];
        assert!(error["message"].is_string() && error["help"].is_string(), "{error}");
        error["code"].as_str().unwrap().to_owned()
    }
}

impl Client {
    fn new(addr: SocketAddr) -> Self {
        Self::over(TcpStream::connect(addr).unwrap())
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { stream, read: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next response.
    pub(crate) fn response(&mut self) -> Response {
        self.try_response().unwrap().expect("a response")
    }

    /// The next response; `None` if the connection ends in its place.
    pub(crate) fn try_response(&mut self) -> io::Result<Option<Response>> {
        let end = loop {
            if let Some(end) = self.read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end;
            }
            if !self.more()? {
                assert!(self.read.is_empty(), "half a response: {}", String::from_utf8_lossy(&self.read));
                return Ok(None);
            }
        };
        let head = String::from_utf8(self.read.drain(..end + 4).collect()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let len = headers.iter().find(|(name, _)| name == "content-length");
        let len = len.map_or(0, |(_, value)| value.parse().unwrap());
        while self.read.len() < len && self.more()? {}
        assert!(self.read.len() >= len, "the body is cut off");
        Ok(Some(Response { status, headers, body: self.read.drain(..len).collect() }))
    }

    fn more(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        let len = self.stream.read(&mut buffer)?;
        self.read.extend_from_slice(&buffer[..len]);
        Ok(len > 0)
    }

    /// Whether the server has closed the connection, with nothing more to say.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.try_response(), Ok(None))
    }
}
