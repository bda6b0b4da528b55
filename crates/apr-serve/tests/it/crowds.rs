//! More connections than there may be.

use core::time::Duration;
use std::thread::sleep;
use std::time::Instant;

use apr_serve::{Model, Options};

use crate::client::{Client, line, options, row, start_with};

fn ask(client: &mut Client) {
    client.send(&row("[1,2]"));
    assert_eq!(client.response().status, 200);
}

#[test]
fn the_connection_that_was_idle_for_longest_is_closed_for_a_new_one() {
    let options = Options {
        max_connections: 3,
        max_connections_per_address: Some(3),
        idle_time: Duration::from_secs(60),
        ..options()
    };
    let server = start_with(Model::new(line()).unwrap(), options);
    let [mut first, mut second, mut silent] = [(); 3].map(|()| server.connect());
    // Until all of them are accepted.
    loop {
        second.send(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n");
        if second.response().text().contains("\napr_serve_connections 3\n") {
            break;
        }
    }
    sleep(Duration::from_millis(20));
    ask(&mut second);
    sleep(Duration::from_millis(20));
    ask(&mut first);
    // It has never sent anything, and has waited for longest.
    ask(&mut server.connect());
    assert!(silent.is_closed());
    ask(&mut first);
    ask(&mut second);
    assert!(server.metric("apr_serve_connections_evicted_total") >= 1.0);
    assert_eq!(server.metric("apr_serve_connections_rejected_total"), 0.0);
}

#[test]
fn a_new_connection_is_refused_where_none_is_idle() {
    let options = Options { max_connections: 2, max_connections_per_address: Some(2), ..options() };
    let server = start_with(Model::new(line()).unwrap(), options);
    let mut busy = [(); 2].map(|()| server.connect());
    for client in &mut busy {
        client.send(b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n[1");
    }
    sleep(Duration::from_millis(200));
    let mut third = server.connect();
    let response = third.response();
    assert_eq!((response.status, response.code().as_str()), (503, "sv-busy"));
    assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
    assert!(third.is_closed());
    for client in &mut busy {
        client.send(b",2]");
        assert_eq!(client.response().status, 200);
    }
    ask(&mut server.connect());
}

#[test]
fn idle_connections_are_closed_sooner_once_half_of_them_are_open() {
    let options = Options {
        max_connections: 4,
        max_connections_per_address: Some(4),
        crowded_idle_time: Duration::from_millis(300),
        ..options()
    };
    let server = start_with(Model::new(line()).unwrap(), options);
    let mut clients = vec![server.connect(), server.connect()];
    sleep(Duration::from_millis(600));
    clients.iter_mut().for_each(ask);
    clients.push(server.connect());
    ask(&mut clients[2]);
    let begun = Instant::now();
    // Once half of them are closed, the others may stay.
    assert!(clients[0].is_closed());
    assert!(begun.elapsed() < Duration::from_secs(3));
}

/// As many connections as the machine allows, up to 10,000, from one address; a client of another address does not notice.
#[cfg(target_os = "linux")]
#[test]
fn idle_connections_of_one_address_do_not_keep_another_one_out() {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let n_idle = limit.maximum.map_or(10_000, |most| most.saturating_sub(1500).min(10_000));

    let server =
        start_with(Model::new(line()).unwrap(), Options { idle_time: Duration::from_secs(60), ..options() });
    let mut kept = server.connect_from("127.0.0.2");
    let mut idle = Vec::new();
    let (mut asked, mut longest) = (0, Duration::ZERO);
    for number in 0..n_idle {
        idle.push(server.connect());
        if number % 500 == 499 {
            let begun = Instant::now();
            ask(&mut kept);
            ask(&mut server.connect_from("127.0.0.2"));
            longest = longest.max(begun.elapsed());
            asked += 2;
        }
    }
    assert!(asked > 0 && longest < Duration::from_secs(2), "{longest:?}");
    // The address itself is still answered, too.
    ask(&mut server.connect());
    assert!(server.metric("apr_serve_connections") <= 300.0);
    assert!(server.metric("apr_serve_connections_evicted_total") >= n_idle as f64 - 256.0);
    assert_eq!(server.metric("apr_serve_connections_rejected_total"), 0.0);
}

/// Heads that never end are no reason to refuse others for longer than a second.
#[cfg(target_os = "linux")]
#[test]
fn slow_heads_give_way_where_no_connection_is_idle() {
    let options = Options { max_connections: 8, head_time: Duration::from_secs(30), ..options() };
    let server = start_with(Model::new(line()).unwrap(), options);
    let mut slow: Vec<Client> = (0..4).map(|_| server.connect()).collect();
    slow.iter_mut().for_each(|client| client.send(b"POST /predict HTTP/1.1\r\nx-"));
    // Half of all connections are of one address, and there are more for others.
    ask(&mut server.connect_from("127.0.0.2"));
    sleep(Duration::from_millis(1200));
    ask(&mut server.connect());
    assert!(slow[0].is_closed());
}
