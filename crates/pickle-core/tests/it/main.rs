//! The public API: against CPython's unpicklers, on hostile streams, with bounded memory.

mod events;
mod joblib;
mod memory;
mod properties;
mod refusals;
mod sources;
mod trees;
mod unpicklers;

use std::path::{Path, PathBuf};

use pickle_core::{Event, EventKind, Limits, Machine, Value};
use read_at::ReadAt;

/// A vector of the conformance suite.
fn vector(name: &str) -> Vec<u8> {
    let path = vectors().join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/import")
}

/// All events of one pickle, and the code and offset of its error.
fn events<R: ReadAt>(machine: &mut Machine<R>) -> (Vec<Event>, Option<(&'static str, Option<u64>)>) {
    let mut events = Vec::new();
    loop {
        match machine.next_event() {
            Ok(event) => {
                events.push(event);
                if matches!(event.kind, EventKind::Stop { .. }) {
                    return (events, None);
                }
            }
            Err(error) => return (events, Some((error.code(), error.offset()))),
        }
    }
}

/// The events as text: offset, opcode, and the name that is resolved or called.
fn told(pickle: &[u8]) -> Vec<String> {
    let mut machine = Machine::new(pickle, &Limits::DEFAULT);
    let (events, error) = events(&mut machine);
    let tree = machine.tree();
    let name = |id| match tree.value(id) {
        Value::Global(global) => global.to_string(),
        Value::Computed { .. } => "computed".to_owned(),
        Value::Extension(code) => format!("extension {code}"),
        Value::Object(_) => tree.callee(id).map_or("?".to_owned(), |name| format!("{name}()")),
        other => format!("{other:?}").split(['(', ' ']).next().unwrap_or_default().to_owned(),
    };
    let mut told: Vec<_> = events
        .iter()
        .map(|event| {
            let what = match event.kind {
                EventKind::Global { value }
                | EventKind::Extension { value }
                | EventKind::Persistent { value }
                | EventKind::Buffer { value } => name(value),
                EventKind::Call { object } => name(object),
                EventKind::Build { target, .. } | EventKind::Update { target } => name(target),
                EventKind::Stop { root } => name(root),
                EventKind::FrameMismatch => "frame mismatch".to_owned(),
                other => panic!("{other:?}"),
            };
            format!("{} {} {what}", event.offset, event.opcode)
        })
        .collect();
    told.extend(error.map(|(code, offset)| format!("{} {code}", offset.unwrap_or(u64::MAX))));
    told
}
