//! Encrypted requests: what is answered, and what attacks on them give.

use std::time::{SystemTime, UNIX_EPOCH};

use apr_crypto::inference::service::{
    MEDIA_TYPE, SIGNED_KEY_COMMENT, ServiceRequest, ServiceResponse, context, signed_key,
};
use apr_crypto::inference::{
    Padding, PendingRequest, ReplayGuard, RequestOptions, decrypt_response, encrypt_for_model,
};
use apr_crypto::{OsRandom, RecipientPublic, RecipientSecret, SigningKey, Trust, minisign};
use apr_serve::{Model, Options, Private};
use serde_json::{Value, json};

use crate::client::{Response, Running, line, options, run, start};

fn owner() -> RecipientSecret {
    RecipientSecret::from_bytes(&[7; 32])
}

fn start_private(options: Options, private: Private) -> Running {
    let model = Model::new(line()).unwrap();
    run(options, move |server| server.with_private(private).serve(model).unwrap())
}

fn server() -> Running {
    start_private(options(), Private::new(owner()).unwrap())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn session(server: &Running) -> String {
    server.get("/private").json()["session"].as_str().unwrap().to_owned()
}

fn encrypted(
    server: &Running,
    key: &RecipientPublic,
    sent_at: u64,
    content: &[u8],
) -> (Vec<u8>, PendingRequest) {
    let context = context(&session(server));
    let options = RequestOptions::default().sent_at(sent_at).with_padding(Padding::PowerOfTwo);
    encrypt_for_model(&mut OsRandom, key, context.as_bytes(), content, &options).unwrap()
}

fn content(body: &[u8], query: &str, media_type: &str) -> Vec<u8> {
    ServiceRequest { query, media_type, accept: "", body }.to_vec().unwrap()
}

fn post(server: &Running, body: &[u8]) -> Response {
    server.ask(&format!("POST /private HTTP/1.1\r\ncontent-type: {MEDIA_TYPE}\r\n"), body)
}

/// Status and JSON inside the response.
fn answer(server: &Running, body: &[u8], query: &str, media_type: &str) -> (u16, Value) {
    let (request, pending) = encrypted(server, &owner().public(), now(), &content(body, query, media_type));
    let response = post(server, &request);
    assert_eq!((response.status, response.header("content-type")), (200, Some(MEDIA_TYPE)));
    let opened = decrypt_response(&pending, &response.body).unwrap();
    let inner = ServiceResponse::from_bytes(&opened).unwrap();
    assert_eq!(inner.media_type, "application/json");
    (inner.status, serde_json::from_slice(inner.body).unwrap())
}

#[test]
fn a_private_request_is_answered_as_a_plain_one() {
    let server = server();
    for (body, media_type) in [
        (&b"[[1, 2], [0, 0]]"[..], ""),
        (b"{\"rows\": [[1, 2], [0, 0]]}", "application/json"),
        (b"1,2\n0,0\n", "text/csv"),
    ] {
        let plain = server.ask(
            &format!(
                "POST /predict HTTP/1.1\r\ncontent-type: {}\r\n",
                match media_type {
                    "" => "application/json",
                    media_type => media_type,
                }
            ),
            body,
        );
        assert_eq!(answer(&server, body, "", media_type), (200, plain.json()), "{media_type}");
    }
    assert!(server.metric("apr_serve_requests_total{endpoint=\"private\",status=\"2xx\"}") > 0.0);
    assert!((server.metric("apr_serve_predictions_total") - 12.0).abs() < 0.5);
}

#[test]
fn raw_rows_give_raw_numbers() {
    let server = server();
    let rows = [1.0_f32, 2.0].map(f32::to_le_bytes).concat();
    let content = content(&rows, "", "application/vnd.apr.f32");
    let (request, pending) = encrypted(&server, &owner().public(), now(), &content);
    let opened = decrypt_response(&pending, &post(&server, &request).body).unwrap();
    let inner = ServiceResponse::from_bytes(&opened).unwrap();
    assert_eq!((inner.status, inner.n_columns, inner.model), (200, 1, "generation-1"));
    assert_eq!((inner.media_type, inner.body), ("application/vnd.apr.f32", &4.0_f32.to_le_bytes()[..]));
}

/// What is wrong with the rows is for the client alone.
#[test]
fn errors_about_the_content_are_encrypted() {
    let server = server();
    for (body, query, media_type, status, code) in [
        (&b"[[1]]"[..], "", "", 400, "sv-columns"),
        (b"[[1, 2]", "", "", 400, "sv-json"),
        (b"[[1, 2]]", "proba=maybe", "", 400, "sv-query"),
        (b"[[1, 2]]", "proba=true", "", 400, "am-no-such-output"),
        (b"[[1, 2]]", "", "image/png", 415, "sv-media-type"),
    ] {
        let (found, answer) = answer(&server, body, query, media_type);
        assert_eq!((found, &answer["error"]["code"]), (status, &json!(code)));
    }
    // A valid encryption of what is no content.
    let (request, pending) = encrypted(&server, &owner().public(), now(), b"\xff");
    let opened = decrypt_response(&pending, &post(&server, &request).body).unwrap();
    let inner = ServiceResponse::from_bytes(&opened).unwrap();
    assert_eq!(inner.status, 400);
    assert!(inner.body.windows(7).any(|part| part == b"sv-body"));
    // Errors and answers of the same bucket cannot be told apart by their length.
    let lengths = [&b"[[1, 2]]"[..], b"[[1]]"].map(|body| {
        let (request, _) = encrypted(&server, &owner().public(), now(), &content(body, "", ""));
        post(&server, &request).body.len()
    });
    assert_eq!(lengths[0], lengths[1]);
}

/// Flips every byte of a request, cuts it off everywhere: one answer to all of it.
#[test]
fn whatever_does_not_open_gets_one_refusal() {
    let server = server();
    let content = content(b"[[1, 2]]", "", "");
    let (request, _) = encrypted(&server, &owner().public(), now(), &content);
    let expected = post(&server, b"");
    assert_eq!((expected.status, expected.code()), (400, "sv-private".to_owned()));
    let refused = |bytes: &[u8], what: &str| {
        let response = post(&server, bytes);
        assert_eq!((response.status, &response.body), (400, &expected.body), "{what}");
    };
    let mut changed = request.clone();
    for at in 0..request.len() {
        changed[at] ^= 1;
        refused(&changed, &format!("byte {at}"));
        changed[at] ^= 1;
    }
    for len in (0..request.len()).step_by(7) {
        refused(&request[..len], &format!("{len} bytes"));
    }
    refused(&[&request[..], b"\0"].concat(), "one more");
    // Another key; another session, which is what a restarted server has; another service with the same key.
    let stranger = RecipientSecret::from_bytes(&[8; 32]).public();
    refused(&encrypted(&server, &stranger, now(), &content).0, "another key");
    let other = self::server();
    refused(&encrypted(&other, &owner().public(), now(), &content).0, "another session");
    let options = RequestOptions::default().sent_at(now());
    let (bare, _) = encrypt_for_model(&mut OsRandom, &owner().public(), b"", &content, &options).unwrap();
    refused(&bare, "another context");
    // None of these used the request up.
    assert_eq!(post(&server, &request).status, 200);
}

#[test]
fn a_response_opens_for_its_own_request_alone() {
    let server = server();
    let content = content(b"[[1, 2]]", "", "");
    let (first, pending) = encrypted(&server, &owner().public(), now(), &content);
    let (second, other) = encrypted(&server, &owner().public(), now(), &content);
    let (response, second) = (post(&server, &first).body, post(&server, &second).body);
    assert!(decrypt_response(&pending, &second).is_err());
    assert!(decrypt_response(&other, &response).is_err());
    let mut changed = response.clone();
    for at in 0..response.len() {
        changed[at] ^= 1;
        assert!(decrypt_response(&pending, &changed).is_err(), "byte {at}");
        changed[at] ^= 1;
        assert!(decrypt_response(&pending, &response[..at]).is_err(), "{at} bytes");
    }
    decrypt_response(&pending, &response).unwrap();
}

#[test]
fn a_request_is_answered_once_and_in_time() {
    let server = server();
    let content = content(b"[[1, 2]]", "", "");
    let (request, _) = encrypted(&server, &owner().public(), now(), &content);
    assert_eq!(post(&server, &request).status, 200);
    for _ in 0..2 {
        let again = post(&server, &request);
        assert_eq!((again.status, again.code()), (409, "cy-replay".to_owned()));
    }
    for sent_at in [0, now() - 400, now() + 400] {
        let (request, _) = encrypted(&server, &owner().public(), sent_at, &content);
        let stale = post(&server, &request);
        assert_eq!((stale.status, stale.code()), (409, "cy-stale".to_owned()), "{sent_at}");
    }
    let guard = ReplayGuard::new(1, 300);
    let small = start_private(options(), Private::new(owner()).unwrap().with_guard(guard));
    let statuses = [(); 2].map(|()| {
        let (request, _) = encrypted(&small, &owner().public(), now(), &content);
        post(&small, &request).status
    });
    assert_eq!(statuses, [200, 503]);
    assert!((small.metric("apr_serve_errors_total{code=\"cy-replay-full\"}") - 1.0).abs() < 0.1);
}

#[test]
fn bodies_are_bounded_before_they_are_decrypted() {
    let server = start_private(Options { max_body: 4096, ..options() }, Private::new(owner()).unwrap());
    let rows = |len: usize| content(&vec![b' '; len], "", "");
    let send = |len: usize| {
        let (request, pending) = encrypted(&server, &owner().public(), now(), &rows(len));
        (post(&server, &request), pending)
    };
    // Spaces alone are no JSON; they were read.
    let (response, pending) = send(4000);
    let opened = decrypt_response(&pending, &response.body).unwrap();
    assert_eq!(ServiceResponse::from_bytes(&opened).unwrap().status, 400);
    let (response, _) = send(4096);
    assert_eq!((response.status, response.code()), (413, "sv-body-size".to_owned()));
    assert_eq!(post(&server, &vec![0; 1 << 20]).code(), "sv-body-size");
}

/// The decrypted request is kept until the response is encrypted: both count.
#[test]
fn the_budget_holds_request_and_response() {
    // 128 KiB with the padding, and longer answers.
    let content = content("7e7,1\n".repeat(21_000).as_bytes(), "", "text/csv");
    let ask = |max_memory: usize| {
        let options = Options { max_memory, max_body: 256 << 10, max_rows: 21_000, ..options() };
        let server = start_private(options, Private::new(owner()).unwrap());
        let (request, pending) = encrypted(&server, &owner().public(), now(), &content);
        let response = post(&server, &request);
        let opened = decrypt_response(&pending, &response.body).unwrap_or_default();
        let inner = ServiceResponse::from_bytes(&opened).ok().map(|inner| (inner.status, inner.body.len()));
        (response.status, request.len(), inner)
    };
    let (_, request, Some((200, answer))) = ask(4 << 20) else { panic!("an answer is missing") };
    // Besides, at least the answer as it is before it has its head.
    let needed = request + 4 * answer;
    let (status, _, inner) = ask(needed - request / 4);
    assert_eq!((status, inner), (503, None));
    assert_eq!(ask(needed + answer).2, Some((200, answer)));
}

#[test]
fn the_head_of_a_request_has_one_form() {
    let server = server();
    let ask = |head: &str| server.ask(head, b"");
    assert_eq!(ask("POST /private?proba=true HTTP/1.1\r\n").code(), "sv-query");
    assert_eq!(ask("POST /private HTTP/1.1\r\ncontent-type: application/json\r\n").code(), "sv-media-type");
    assert_eq!(ask("POST /private HTTP/1.1\r\ncontent-encoding: gzip\r\n").code(), "sv-media-type");
    assert_eq!(ask("PUT /private HTTP/1.1\r\n").code(), "sv-method");
    let options = ask("OPTIONS /private HTTP/1.1\r\n");
    assert_eq!((options.status, options.header("allow")), (204, Some("GET, HEAD, POST, OPTIONS")));
    // Without a key there is no such path.
    let plain = start(line());
    assert_eq!(plain.get("/private").code(), "sv-path");
    assert_eq!(plain.ask("POST /private HTTP/1.1\r\n", b"").code(), "sv-path");
}

#[test]
fn the_server_offers_a_signed_key() {
    let maker = SigningKey::from_seed(&[1; 32]);
    let file = format!("# the owner\n{}\n", owner().public());
    let mut hash = minisign::Prehash::new();
    hash.update(file.as_bytes());
    let signer = minisign::SecretKey::from(SigningKey::from_seed(&[1; 32]));
    let signature = signer.sign(&hash.finish(), SIGNED_KEY_COMMENT, "").unwrap().to_string();
    let private = Private::new(owner()).unwrap().with_signed_key(file, signature.clone()).unwrap();
    let server = start_private(options(), private);
    let offer = server.get("/private").json();
    assert_eq!(offer["schema"], "apr.serve.private/1");
    assert_eq!(offer["key"], owner().public().to_string());
    let text = |name: &str| offer[name].as_str().unwrap();
    let trusted = maker.verifying_key();
    let key = signed_key(text("key_file"), text("signature"), Trust::Key(&trusted)).unwrap();
    assert_eq!(key, owner().public());
    // Of another key than that of the server it is refused at the start.
    let other = format!("{}\n", RecipientSecret::from_bytes(&[9; 32]).public());
    let refused = Private::new(owner()).unwrap().with_signed_key(other, signature);
    assert_eq!(refused.unwrap_err().code(), "cy-key-mismatch");
    let bare = self::server();
    assert_eq!(bare.get("/private").json()["signature"], Value::Null);
    assert_ne!(session(&bare), session(&server));
}
