//! Errors as responses.

use core::fmt::Display;

use hyper::StatusCode;

use crate::write;

/// Why a request is refused, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    message: String,
    place: Option<String>,
    help: &'static str,
    /// Whether the connection is closed: what follows is not read.
    pub(crate) closes: bool,
}

impl Refusal {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Display,
        help: &'static str,
    ) -> Self {
        Self { status, code, message: message.to_string(), place: None, help, closes: false }
    }

    /// The body is malformed.
    pub(crate) fn of_body(code: &'static str, message: impl Display, help: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message, help)
    }

    pub(crate) fn at(mut self, place: impl Display) -> Self {
        self.place.get_or_insert_with(|| place.to_string());
        self
    }

    pub(crate) fn closing(mut self) -> Self {
        self.closes = true;
        self
    }

    pub(crate) fn too_many_rows(max_rows: usize) -> Self {
        let what = format_args!("the request has more than {max_rows} rows").to_string();
        let help = "send fewer rows at a time, or ask the operator for a larger --max-rows";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "sv-rows", what, help)
    }

    /// The request is valid and can be repeated later.
    pub(crate) fn busy(message: impl Display) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "sv-busy", message, "try again later").closing()
    }

    /// The request alone would take more memory than there is for all of them.
    pub(crate) fn too_much_memory(max: usize) -> Self {
        let what = format_args!("the request takes more than the {max} bytes of memory for all requests")
            .to_string();
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "sv-body-size", what, "send fewer rows at a time").closing()
    }

    pub(crate) fn timeout(message: impl Display) -> Self {
        let help = "send the whole request without pauses, or ask the operator for a longer --timeout";
        Self::new(StatusCode::REQUEST_TIMEOUT, "sv-timeout", message, help).closing()
    }

    /// The model refuses the samples.
    pub(crate) fn of_model(error: &apr_models::Error) -> Self {
        use apr_models::ErrorKind as Kind;
        let help = match error.kind() {
            Kind::FeatureCount { .. } | Kind::InputLength { .. } => {
                "GET /model says how many inputs the model takes"
            }
            Kind::NoSuchOutput { .. } => "ask without proba=true",
            _ => "see the code in the documentation, or `apr explain CODE`",
        };
        Self::of_body(error.code(), error, help)
    }

    #[cfg(test)]
    pub(crate) fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// As JSON.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let mut out = b"{\"error\":{\"code\":\"".to_vec();
        out.extend_from_slice(self.code.as_bytes());
        out.extend_from_slice(b"\",\"message\":");
        write::string(&self.message, &mut out);
        out.extend_from_slice(b",\"where\":");
        match &self.place {
            Some(place) => write::string(place, &mut out),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"help\":");
        write::string(self.help, &mut out);
        out.extend_from_slice(b"}}\n");
        out
    }

    /// As a complete response, where there is no request to respond to.
    pub(crate) fn to_response(&self) -> Vec<u8> {
        let body = self.to_json();
        let retry = if self.status == StatusCode::SERVICE_UNAVAILABLE { "retry-after: 1\r\n" } else { "" };
        let mut out = format!(
            "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\nx-content-type-options: nosniff\r\ncontent-length: {}\r\n{retry}connection: close\r\n\r\n",
            self.status.as_u16(),
            self.status.canonical_reason().unwrap_or_default(),
            body.len()
        )
        .into_bytes();
        out.extend_from_slice(&body);
        out
    }
}
