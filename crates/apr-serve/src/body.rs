//! Bodies of requests and responses.

use core::convert::Infallible;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};

use hyper::StatusCode;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

use crate::budget::Reserved;
use crate::refusal::Refusal;

/// Longest part of a response that is passed on at once.
const PIECE: usize = 64 << 10;

/// The body of a response.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    bytes: Bytes,
    /// What it takes until the client has it.
    reserved: Option<Reserved>,
}

impl Answer {
    /// A body, and what is reserved for it.
    pub(crate) fn new(bytes: Vec<u8>, mut reserved: Reserved) -> Self {
        reserved.shrink_to(bytes.capacity());
        Self { bytes: bytes.into(), reserved: Some(reserved) }
    }
}

/// Bytes that others share: they are in memory anyway.
impl From<Bytes> for Answer {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, reserved: None }
    }
}

impl From<Vec<u8>> for Answer {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes: bytes.into(), reserved: None }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.bytes.is_empty() {
            return Poll::Ready(None);
        }
        let len = self.bytes.len().min(PIECE);
        let piece = self.bytes.split_to(len);
        if self.bytes.is_empty() {
            self.reserved = None;
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

/// A body over the limit.
pub(crate) fn too_long(max_body: usize) -> Refusal {
    let what = format_args!("the body is longer than {max_body} bytes").to_string();
    let help = "send fewer rows at a time, or ask the operator for a larger --max-body";
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "sv-body-size", what, help)
}

/// The whole body of a request, within the limits.
///
/// # Errors
///
/// If it is too long, as declared or as received; if it exceeds the memory budget; if it is truncated or malformed.
pub(crate) async fn collect(
    mut incoming: Incoming,
    max_body: usize,
    reserved: &mut Reserved,
) -> Result<Bytes, Refusal> {
    let too_long = || too_long(max_body).closing();
    if incoming.size_hint().lower() > max_body as u64 {
        return Err(too_long());
    }
    let mut first = Bytes::new();
    let mut all = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut incoming).poll_frame(cx)).await {
        let frame = frame.map_err(|error| {
            let help = "send as many bytes as Content-Length says, or sound chunks";
            Refusal::of_body("sv-body", format_args!("the body cannot be read: {error}"), help).closing()
        })?;
        // Trailers are ignored.
        let Ok(data) = frame.into_data() else { continue };
        if all.is_empty() && first.is_empty() {
            if data.len() > max_body {
                return Err(too_long());
            }
            reserved.grow(data.len())?;
            first = data;
            if incoming.is_end_stream() {
                break;
            }
            continue;
        }
        let len = first.len() + all.len() + data.len();
        if len > max_body {
            return Err(too_long());
        }
        reserved.grow(len)?;
        all.extend_from_slice(&core::mem::take(&mut first));
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.into() })
}
