//! The messages, natively: what the module answers, without a module.

use apr_wasm::wire::Arguments;
use apr_wasm::{Operation, Session};

const LINE: &[u8] = include_bytes!("../../../conformance/vectors/apr/a0100_linreg.safetensors");

/// What an answer begins with, and what is behind that.
fn ask(session: &mut Session, operation: Operation, question: &[u8]) -> (u8, String, Vec<u8>) {
    let answer = session.answer(operation as u32, question);
    let mut parts = Arguments::new(&answer);
    let status = parts.u8().expect("a status");
    let json = parts.text().expect("a text").to_owned();
    (status, json, parts.rest().to_vec())
}

fn new_file(session: &mut Session, len: u64) -> Vec<u8> {
    let mut question = len.to_le_bytes().to_vec();
    question.push(0);
    let (status, json, _) = ask(session, Operation::NewFile, &question);
    assert_eq!((status, json.as_str()), (0, r#"{"number":0}"#));
    0_u32.to_le_bytes().to_vec()
}

#[test]
fn a_file_is_opened_when_the_bytes_it_needs_have_been_provided() {
    let mut session = Session::new();
    let file = new_file(&mut session, LINE.len() as u64);
    let (status, _, needed) = ask(&mut session, Operation::Open, &file);
    assert_eq!(status, 2);
    assert_eq!(needed, [0_u64.to_le_bytes(), (LINE.len() as u64).to_le_bytes()].concat());
    let provided = [file.as_slice(), &0_u64.to_le_bytes(), LINE].concat();
    assert_eq!(ask(&mut session, Operation::Provide, &provided).0, 0);
    let (status, json, _) = ask(&mut session, Operation::Open, &file);
    assert_eq!(status, 0);
    assert!(
        json.starts_with(r#"{"format":"safetensors""#) && json.contains(r#""name":"coefficients""#),
        "{json}"
    );
    assert_eq!(ask(&mut session, Operation::CloseFile, &file).0, 0);
    let (status, json, _) = ask(&mut session, Operation::Open, &file);
    assert!(status == 1 && json.contains("aw-closed"), "{json}");
}

#[test]
fn a_file_of_a_foreign_format_is_named_with_help() {
    let page = b"<!DOCTYPE html><html><body>404</body></html>";
    let mut session = Session::new();
    let file = new_file(&mut session, page.len() as u64);
    let provided = [file.as_slice(), &0_u64.to_le_bytes(), page].concat();
    assert_eq!(ask(&mut session, Operation::Provide, &provided).0, 0);
    let (status, json, _) = ask(&mut session, Operation::Open, &file);
    assert_eq!(status, 1);
    for part in [
        r#""code":"aw-foreign-format""#,
        "this is a web page",
        r#""format":"web-page""#,
        r#""help":"the server"#,
    ] {
        assert!(json.contains(part), "{json}");
    }
    assert!(!json.contains("offset"), "{json}");
}

#[test]
fn bytes_beyond_the_end_are_refused() {
    let mut session = Session::new();
    let file = new_file(&mut session, 8);
    for offset in [1, 8, u64::MAX] {
        let provided = [file.as_slice(), &offset.to_le_bytes(), &[0; 8]].concat();
        assert_eq!(ask(&mut session, Operation::Provide, &provided).0, 1, "{offset}");
    }
}

#[test]
fn numbers_become_f32_whatever_their_type() {
    let question = |name: &str, count: u64, data: &[u8]| {
        [&(name.len() as u32).to_le_bytes(), name.as_bytes(), &count.to_le_bytes(), data].concat()
    };
    let mut session = Session::new();
    let (status, _, bytes) = ask(&mut session, Operation::Values, &question("I16", 2, &[1, 0, 255, 255]));
    assert_eq!((status, bytes), (0, [1.0_f32.to_le_bytes(), (-1.0_f32).to_le_bytes()].concat()));
    assert_eq!(ask(&mut session, Operation::Values, &question("F32", 2, &[0; 4])).0, 1);
    assert_eq!(ask(&mut session, Operation::Values, &question("none", 1, &[0; 4])).0, 1);
}

#[test]
fn what_is_no_question_is_refused() {
    let mut session = Session::new();
    for operation in 0..32 {
        for len in 0..16 {
            let answer = session.answer(operation, &vec![0xff; len]);
            let is_question = operation == 0 || (operation == 1 && len >= 9);
            assert!(is_question || answer.first() == Some(&1), "{operation} {len}");
        }
    }
}
