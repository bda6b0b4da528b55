//! An HTTP server on loopback that answers as a test tells it to.

use alloc::sync::Arc;
use core::time::Duration;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;

/// A request as it arrived.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "not each of the tests that share this file looks at the body")]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// First byte and the one after the last.
    pub(crate) fn range(&self) -> Option<(usize, usize)> {
        let (first, last) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().unwrap(), last.parse::<usize>().unwrap() + 1))
    }
}

/// What is sent: the head without its empty line, the body in pieces with a pause before each, and whether the connection stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) pause: Duration,
    pub(crate) closes: bool,
}

impl Reply {
    pub(crate) fn status(status: &str, headers: &str) -> Self {
        Self { head: format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n{headers}"), ..Self::default() }
    }

    /// The range of `content` that is asked for.
    pub(crate) fn range(seen: &Seen, content: &[u8], headers: &str) -> Self {
        let Some((from, to)) = seen.range() else { return Self::whole(content, headers) };
        if from >= content.len() {
            return Self::status(
                "416 Range Not Satisfiable",
                &format!("content-range: bytes */{}\r\n", content.len()),
            );
        }
        let body = content[from..to.min(content.len())].to_vec();
        let (last, total) = (from + body.len() - 1, content.len());
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\ncontent-length: {}\r\ncontent-range: bytes {from}-{last}/{total}\r\n{headers}",
            body.len()
        );
        Self { head, body, ..Self::default() }
    }

    pub(crate) fn whole(content: &[u8], headers: &str) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{headers}", content.len());
        Self { head, body: content.to_vec(), ..Self::default() }
    }

    /// The connection ends without an answer.
    #[allow(dead_code, reason = "as above")]
    pub(crate) fn nothing() -> Self {
        Self { closes: true, ..Self::default() }
    }

    /// Cuts the body and ends the connection.
    pub(crate) fn cut(mut self, len: usize) -> Self {
        self.body.truncate(len);
        self.closes = true;
        self
    }
}

type Answers = dyn Fn(usize, &Seen) -> Reply + Send + Sync;

pub(crate) struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// `answers` gets the number of the request, from 0.
    pub(crate) fn new(answers: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (list, answers): (_, Arc<Answers>) = (Arc::clone(&seen), Arc::new(answers));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (list, answers) = (Arc::clone(&list), Arc::clone(&answers));
                thread::spawn(move || serve(&stream, &list, &*answers));
            }
        });
        Self { port, seen }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, list: &Mutex<Vec<Seen>>, answers: &Answers) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let line = |reader: &mut BufReader<_>| reader.lines().next()?.ok();
    loop {
        let first = line(&mut reader)?;
        let (method, path) = first.split_once(' ')?;
        let (method, path) = (method.to_owned(), path.split(' ').next()?.to_owned());
        let mut headers = Vec::new();
        loop {
            let line = line(&mut reader)?;
            match line.split_once(": ") {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
                None => break,
            }
        }
        let mut seen = Seen { method, path, body: Vec::new(), headers };
        let len = seen.header("content-length").map_or(0, |len| len.parse().unwrap());
        reader.by_ref().take(len).read_to_end(&mut seen.body).ok()?;
        let number = {
            let mut list = list.lock().unwrap();
            list.push(seen.clone());
            list.len() - 1
        };
        let reply = answers(number, &seen);
        if reply.head.is_empty() {
            stream.shutdown(std::net::Shutdown::Both).ok()?;
            return None;
        }
        let mut out = stream;
        out.write_all(reply.head.as_bytes()).ok()?;
        out.write_all(b"\r\n").ok()?;
        for piece in reply.body.chunks(if reply.pause.is_zero() { usize::MAX } else { 1 << 10 }) {
            thread::sleep(reply.pause);
            out.write_all(piece).ok()?;
        }
        if reply.closes {
            stream.shutdown(std::net::Shutdown::Both).ok()?;
            return None;
        }
    }
}
