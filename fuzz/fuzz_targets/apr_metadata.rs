//! Any metadata of version 1: refused, or written again so that both we and the peers' library read the same.

#![no_main]

use apr_container::{ErrorKind, Limits, Metadata, Strictness};
use apr_fuzz::Choices;
use apr_fuzz::apr::msgpack;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    check(input);
    check(&msgpack::metadata(&mut Choices::new(input)));
});

fn check(bytes: &[u8]) {
    let read = |bytes: &[u8], strictness| Metadata::from_msgpack(bytes, strictness, &Limits::DEFAULT);
    let [strict, compat] = [Strictness::Strict, Strictness::Compat].map(|strictness| read(bytes, strictness));
    for error in [&strict, &compat].into_iter().filter_map(|read| read.as_ref().err()) {
        assert!(error.offset().is_none_or(|offset| offset <= bytes.len() as u64), "{error}");
        assert!(ErrorKind::CODES.contains(&error.code()));
        assert!(error.subject().is_none_or(|subject| subject.name().len() <= 256));
    }
    // Refusing less: what the strict reader accepts means the same to the other.
    assert!(strict.is_err() || strict.as_ref().map(Metadata::to_msgpack).is_ok());
    for (metadata, strictness) in [(strict, Strictness::Strict), (compat, Strictness::Compat)]
        .into_iter()
        .filter_map(|(read, at)| Some((read.ok()?, at)))
    {
        let _ = (metadata.created_at_unix(), format!("{metadata:?}"));
        // More than a reader with the default limits takes is not written.
        let Ok(written) = metadata.to_msgpack() else { continue };
        let again = read(&written, Strictness::Strict).expect("what we write we read");
        assert_eq!(again.to_msgpack().expect("as before"), written);
        if strictness == Strictness::Strict {
            let other = read(bytes, Strictness::Compat).expect("compat refuses less");
            assert_eq!(other.to_msgpack().ok().as_ref(), Some(&written));
            judge(bytes, &written);
        }
    }
}

/// The peers' library finds in what we write what it found in what we read, but for missing values and the width of
/// numbers.
fn judge(bytes: &[u8], written: &[u8]) {
    let Ok(before) = rmp_serde::from_slice::<Value>(bytes) else { return };
    let after = rmp_serde::from_slice::<Value>(written).expect("it reads what we wrote it from");
    assert!(within(&after, &before), "{before} became {after}");
}

fn within(after: &Value, before: &Value) -> bool {
    match (after, before) {
        (Value::Object(after), Value::Object(before)) => {
            let kept =
                after.iter().all(|(key, after)| before.get(key).is_some_and(|before| within(after, before)));
            // Missing values, empty maps and the two lists that may be missing need not be written while empty.
            let list = |key: &str| ["layer_mapping", "ensemble_teachers"].contains(&key);
            kept && before.iter().all(|(key, before)| {
                after.contains_key(key)
                    || before.is_null()
                    || before.as_object().is_some_and(serde_json::Map::is_empty)
                    || list(key) && before.as_array().is_some_and(Vec::is_empty)
            })
        }
        (Value::Array(after), Value::Array(before)) => {
            after.len() == before.len()
                && after.iter().zip(before).all(|(after, before)| within(after, before))
        }
        (Value::Number(after), Value::Number(before)) => {
            after == before
                || after.as_f64().map(|value| value as f32) == before.as_f64().map(|value| value as f32)
        }
        (after, before) => after == before,
    }
}
