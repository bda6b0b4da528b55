//! One connection: input, output and timeouts.
//!
//! Responses are collected until the input that has arrived is used up, then written together: pipelined requests are answered with
//! one system call. No response waits for input that has not arrived.

use alloc::sync::Arc;
use core::cell::RefCell;
use core::future::{Future as _, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io;
use std::sync::Mutex;

use hyper::StatusCode;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::{sleep, timeout};

use crate::connections::{Phase, Progress};
use crate::link::{Link, Out};
use crate::metrics::Endpoint;
use crate::refusal::Refusal;
use crate::route::respond;
use crate::worker::{TICK, Worker};

/// Most bytes that are read at once.
const READ_LEN: usize = 16 << 10;
/// Most bytes of responses that are collected.
const WRITE_LEN: usize = 64 << 10;
/// How long, and how much, is read from a connection that was closed: a client that is still sending would lose the response otherwise.
const LINGER_TIME: Duration = Duration::from_secs(1);
const LINGER_LEN: usize = 4 << 20;

/// The connection as the HTTP state machine sees it.
#[derive(Debug)]
struct Io {
    link: Arc<Link>,
    stream: OwnedReadHalf,
}

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_LEN]);
}

impl Read for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let len = cursor.remaining().min(scratch.len());
            let mut buffer = ReadBuf::new(scratch.get_mut(..len).unwrap_or_default());
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
            let found = buffer.filled();
            let link = &self.link;
            if !found.is_empty()
                && link.phase() == Phase::Idle
                && !link.progress.step(Phase::Idle, Phase::Head, link.worker.shared.now())
            {
                // The connection has just been closed for another one.
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            cursor.put_slice(found);
            Poll::Ready(Ok(()))
        })
    }
}

impl Write for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut out = self.link.out();
        if out.bytes.len() >= WRITE_LEN {
            ready!(out.poll_flush(cx))?;
        }
        out.bytes.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    /// Output is sent when the available input is processed.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// What follows the last response is done by [`serve`].
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// The last response is sent, or the client has disconnected.
    Done,
    /// The input is not HTTP, for this reason.
    Malformed(String),
    /// A phase took too long.
    Late(Phase),
    /// The socket failed.
    Broken,
}

/// Responds to the requests of a connection until it ends.
pub(crate) async fn serve(stream: TcpStream, worker: Arc<Worker>, progress: Arc<Progress>) {
    // Responses are written in one piece: there is nothing to wait for.
    let _ = stream.set_nodelay(true);
    let (reader, writer) = stream.into_split();
    let out = Mutex::new(Out { stream: writer, bytes: Vec::new(), sent: 0 });
    let link = Arc::new(Link { worker, progress, out });
    let options = &link.worker.shared.options;
    let service = {
        let (worker, link) = (Arc::clone(&link.worker), Arc::clone(&link));
        service_fn(move |request| respond(Arc::clone(&worker), Arc::clone(&link), request))
    };
    let mut connection = http1::Builder::new()
        .half_close(true)
        .max_buf_size(options.max_head.max(8192))
        .max_headers(options.max_headers)
        .serve_connection(Io { link: Arc::clone(&link), stream: reader }, service);
    let mut tick = pin!(sleep(TICK));
    let mut is_last = false;
    let end = poll_fn(|cx| {
        loop {
            let polled = Pin::new(&mut connection).poll(cx);
            if let Poll::Ready(Err(error)) = &polled
                && error.is_parse()
            {
                return Poll::Ready(End::Malformed(error.to_string()));
            }
            let flushed = link.poll_flush(cx);
            match (polled, flushed) {
                (_, Poll::Ready(Err(_))) => return Poll::Ready(End::Broken),
                (Poll::Ready(_), _) => return Poll::Ready(End::Done),
                (Poll::Pending, _) => {}
            }
            if !is_last && link.worker.shared.is_draining() && link.phase() != Phase::Head {
                is_last = true;
                Pin::new(&mut connection).graceful_shutdown();
                continue;
            }
            ready!(tick.as_mut().poll(cx));
            if link.is_over() {
                return Poll::Ready(End::Late(link.phase()));
            }
            tick.set(sleep(TICK));
        }
    })
    .await;
    let reader = connection.into_parts().io.stream;
    last_words(&link, &end);
    // A response may still have to be sent: this connection is not idle yet.
    link.enter(Phase::Answered);
    finish(&link, reader, &end).await;
}

/// Sends an error with the reason why the connection ends, if there is no request to respond to.
fn last_words(link: &Link, end: &End) {
    let shared = &link.worker.shared;
    let refusal = match end {
        End::Late(Phase::Head) => Refusal::timeout("the head of the request took too long"),
        End::Late(Phase::Body) => Refusal::timeout("the body of the request took too long"),
        End::Late(Phase::Answered) => {
            shared.rare.error("sv-timeout");
            return;
        }
        End::Malformed(why) => {
            let mut out = link.out();
            // It is replaced with a response that states the reason.
            let status = take_bare_refusal(&mut out.bytes).unwrap_or(StatusCode::BAD_REQUEST);
            let help = "send HTTP/1.1 as RFC 9112 describes it, without TLS";
            let refusal = Refusal::new(status, "sv-request", why, help);
            shared.rare.error(refusal.code);
            link.worker.counters().request(Endpoint::Other, status);
            shared.log_other(status);
            out.bytes.extend_from_slice(&refusal.to_response());
            return;
        }
        End::Done | End::Broken | End::Late(_) => return,
    };
    shared.rare.error(refusal.code);
    link.worker.counters().request(Endpoint::Other, refusal.status);
    shared.log_other(refusal.status);
    let mut out = link.out();
    // After half a response, another one would be taken for its rest.
    if out.bytes.is_empty() {
        out.bytes = refusal.to_response();
    }
}

/// Removes the response without a body that the parser appends for input that it cannot parse; returns its status.
fn take_bare_refusal(out: &mut Vec<u8>) -> Option<StatusCode> {
    let begin = out.windows(9).rposition(|bytes| bytes == b"HTTP/1.1 ")?;
    let head = out.get(begin..)?;
    let is_bare = head.ends_with(b"\r\n\r\n") && head.windows(17).any(|bytes| bytes == b"content-length: 0");
    let status = StatusCode::from_bytes(head.get(9..12)?).ok()?;
    if !is_bare || !status.is_client_error() {
        return None;
    }
    out.truncate(begin);
    Some(status)
}

/// Sends what is buffered, closes the sending half, and reads what the client is still sending.
async fn finish(link: &Link, mut reader: OwnedReadHalf, end: &End) {
    if matches!(end, End::Broken | End::Late(Phase::Answered)) {
        return;
    }
    let request_time = link.worker.shared.options.request_time;
    if !matches!(timeout(request_time, poll_fn(|cx| link.poll_flush(cx))).await, Ok(Ok(()))) {
        return;
    }
    link.enter(Phase::Last);
    let stopped = async {
        poll_fn(|cx| Pin::new(&mut link.out().stream).poll_shutdown(cx)).await?;
        let (mut scratch, mut left) = (vec![0; READ_LEN], LINGER_LEN);
        while left > 0 {
            let mut buffer = ReadBuf::new(&mut scratch);
            poll_fn(|cx| Pin::new(&mut reader).poll_read(cx, &mut buffer)).await?;
            match buffer.filled().len() {
                0 => break,
                len => left = left.saturating_sub(len),
            }
        }
        io::Result::Ok(())
    };
    let _ = timeout(LINGER_TIME, stopped).await;
}
