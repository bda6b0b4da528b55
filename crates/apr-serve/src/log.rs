//! The log: one call for each request.

use core::fmt;
use core::time::Duration;

/// A request that was answered, for a log.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Logged<'r> {
    /// As the client sent it; `-` for invalid or incomplete HTTP.
    pub method: &'r str,
    /// Path and query, as the client wrote them; `-` as above.
    pub target: &'r str,
    /// Status of the response.
    pub status: u16,
    /// From the end of the head to the response, before it is sent.
    pub elapsed: Duration,
    /// Rows that were predicted.
    pub n_rows: usize,
}

/// The function for each request.
pub(crate) struct Log(Box<dyn Fn(Logged<'_>) + Send + Sync>);

impl Log {
    pub(crate) fn new(log: impl Fn(Logged<'_>) + Send + Sync + 'static) -> Self {
        Self(Box::new(log))
    }

    pub(crate) fn write(&self, logged: Logged<'_>) {
        (self.0)(logged);
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}
