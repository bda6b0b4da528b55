//! The table of the codes of error responses and reloads.

use located_error::Category::{Invalid, Io, Usage, Verification};
use located_error::{Category, Entry};

const BODY: &str = "docs/serve.md has the forms of bodies, `where` in the answer the place";
const FEWER: &str = "send fewer rows at a time, or start the server with a larger limit (`apr serve --help`)";

const fn entry(code: &'static str, category: Category, meaning: &'static str, remedy: &'static str) -> Entry {
    // Messages are written where the response is.
    Entry::new(code, category, "", meaning, remedy)
}

/// The codes of error responses, and of files that are not reloaded. Those of [`Error`](crate::Error) are in [`ErrorKind::TABLE`](crate::ErrorKind::TABLE).
pub const TABLE: &[Entry] = &[
    entry(
        "sv-shape",
        Usage,
        "The file of a served model changed, and the new model takes other inputs: clients that send what the old one takes would get \
         errors or nonsense. The old one goes on answering.",
        "start a second server for it, or allow it with --allow-shape-change",
    ),
    entry(
        "sv-rollback",
        Usage,
        "The file of a served model changed, and the new one is signed, but older than the model that is served, of another name, or not \
         shown to be newer. Old signed files stay valid: this keeps a model from being replaced by its predecessors. The old one goes on \
         answering.",
        "put a newer file in its place, start the server anew, or allow it with --allow-rollback",
    ),
    entry(
        "sv-request",
        Invalid,
        "What came over a connection is no HTTP/1.1 request, or it has no Host field, two of them, or a malformed one.",
        "send HTTP/1.1 as RFC 9112 describes it, without TLS",
    ),
    entry(
        "sv-host",
        Usage,
        "The Host field of a request names another server. A server on a loopback address answers only to localhost, 127.0.0.1, [::1] and \
         names that it was allowed, so that no web page can reach it under a name of its own (DNS rebinding).",
        "use one of these names, or start the server with --allow-host NAME",
    ),
    entry(
        "sv-cross-site",
        Usage,
        "A browser sent a request for a web page of another site (Sec-Fetch-Site). Links to the server are followed; nothing else is answered.",
        "ask from a program, or through a proxy that serves the page and the model under one name",
    ),
    entry(
        "sv-path",
        Usage,
        "There is nothing at this address of the server.",
        "there are /predict, /model, /health and /metrics; with an inference key also /private",
    ),
    entry(
        "sv-method",
        Usage,
        "The path does not allow this method.",
        "POST to /predict, GET the others; /private takes both",
    ),
    entry(
        "sv-query",
        Usage,
        "The address has an option that the server does not know.",
        "there are ?proba=true and ?columns=N",
    ),
    entry(
        "sv-media-type",
        Usage,
        "The body of the request is of a type that the server, or the model, does not read, or it is compressed.",
        "send application/json, text/csv, application/msgpack, application/vnd.apache.arrow.stream, or application/vnd.apr.f32 with raw numbers",
    ),
    entry(
        "sv-body",
        Invalid,
        "The body of a request ended too early, or its chunks are not sound.",
        "send as much as the head says",
    ),
    entry("sv-body-size", Invalid, "The body of a request is longer than the server takes.", FEWER),
    entry("sv-rows", Invalid, "A request has more rows than the server takes at a time.", FEWER),
    entry("sv-answer-size", Invalid, "The answer to a request would be longer than the server gives.", FEWER),
    entry("sv-json", Invalid, "The body of a request is not the JSON it should be.", BODY),
    entry(
        "sv-number",
        Invalid,
        "A number of a request is missing, infinite, or beyond what the model's floats hold.",
        BODY,
    ),
    entry(
        "sv-category",
        Invalid,
        "The model was trained with categories of a feature, and a value of a request is none of them.",
        "GET /model lists them under `categories`; train with --unknown-category ignore if others are to be expected",
    ),
    entry(
        "sv-columns",
        Invalid,
        "A row of a request has more or fewer numbers than the model takes.",
        "GET /model says how many inputs the model takes",
    ),
    entry(
        "sv-feature",
        Invalid,
        "A row, or the first line of a table, names a feature that the model does not have, names one twice, or leaves one out; or the \
         model does not know the names of its features.",
        "GET /model lists the names under `features`; without names, send the numbers of a row in their order",
    ),
    entry("sv-csv", Invalid, "A body of comma-separated values is not as RFC 4180 describes it.", BODY),
    entry(
        "sv-msgpack",
        Invalid,
        "A body of MessagePack is damaged, or has another shape than rows: a value that is no number among them.",
        BODY,
    ),
    entry(
        "sv-arrow",
        Invalid,
        "A body of Arrow IPC is no valid stream, or a column of it is of a type that is not read.",
        BODY,
    ),
    entry(
        "sv-accept",
        Usage,
        "The predictions have no form as the columns that the Accept field of a request asks for: weights of terms, or classes of one name.",
        "ask for application/json or application/msgpack",
    ),
    entry(
        "sv-private",
        Verification,
        "The server cannot open an encrypted request: it was encrypted to another key or for another session, or it was modified. A session \
         ends when the server stops.",
        "encrypt the request again with the session that GET /private says and the key of the model's owner",
    ),
    entry("sv-raw", Invalid, "A raw body does not consist of rows of 32-bit floats.", BODY),
    entry(
        "sv-timeout",
        Invalid,
        "A request, or taking its answer, took longer than the server waits.",
        "send requests without pauses, or start the server with a longer --timeout",
    ),
    entry(
        "sv-busy",
        Io,
        "The server has as many busy connections, or as much in memory, as it may have, or an answer took too long.",
        "try again later, or start the server with larger limits",
    ),
];
