//! The end of a server.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::net::TcpStream;
use std::thread;

use serde_json::json;

use crate::client::{line, row, start};

#[test]
fn requests_in_progress_are_answered_before_it_returns() {
    let server = start(line());
    let mut client = server.connect();
    client.send(b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n[1");
    thread::sleep(Duration::from_millis(100));
    let addr = server.addr;
    server.handle.stop();
    thread::sleep(Duration::from_millis(200));
    client.send(b",2]");
    let response = client.response();
    assert_eq!(response.predictions(), json!([4.0]));
    assert_eq!(response.header("connection"), Some("close"));
    assert!(client.is_closed());
    server.join();
    assert!(TcpStream::connect(addr).is_err());
}

#[test]
fn a_stopping_server_says_that_it_is_not_ready() {
    let server = start(line());
    let mut client = server.connect();
    client.send(b"GET /health HTTP/1.1\r\n");
    thread::sleep(Duration::from_millis(100));
    server.handle.stop();
    thread::sleep(Duration::from_millis(150));
    client.send(b"host: localhost\r\n\r\n");
    let response = client.response();
    assert_eq!((response.status, response.json()), (503, json!({"status": "draining"})));
    server.join();
}

#[test]
fn under_load_every_request_that_was_sent_is_answered_or_its_connection_closed() {
    let server = start(line());
    let stops = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (mut client, stops) = (server.connect(), Arc::clone(&stops));
            thread::spawn(move || {
                let mut answered = 0;
                loop {
                    if std::io::Write::write_all(&mut client.stream, &row("[1,2]")).is_err() {
                        break;
                    }
                    match client.try_response() {
                        Ok(Some(response)) => assert_eq!(response.predictions(), json!([4.0])),
                        // Closed between two requests, and only after it was told to stop.
                        _ => break,
                    }
                    answered += 1;
                }
                assert!(stops.load(Ordering::SeqCst), "closed before the end");
                answered
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(300));
    stops.store(true, Ordering::SeqCst);
    server.handle.stop();
    let answered: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    assert!(answered > 0);
    server.join();
}

#[test]
fn an_idle_connection_does_not_hold_it_up() {
    let server = start(line());
    let mut idle = server.connect();
    idle.send(&row("[1,2]"));
    assert_eq!(idle.response().status, 200);
    server.handle.stop();
    assert!(idle.is_closed());
    server.join();
}
