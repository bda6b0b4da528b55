//! A file that changes under the server.

use alloc::collections::BTreeMap;
use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use apr_container::{Metadata, ModelType, SaveOptions, Value, to_vec};
use apr_models::{LinearRegression, Vector};
use apr_serve::{Event, Model, Shape, Watch};
use serde_json::json;

use crate::client::{Running, options, row, run};

/// A file whose model answers `value` for zeros.
fn file(value: f32, n_inputs: usize) -> Vec<u8> {
    let model = LinearRegression::from_parts(Vector::from_vec(vec![1.0; n_inputs]), value).unwrap();
    to_vec(&model, ModelType::LinearRegression, &SaveOptions::default()).unwrap()
}

/// The same with these categories for each feature.
fn file_with(value: f32, categories: &[&[&str]]) -> Vec<u8> {
    let weights = Vector::from_vec(vec![1.0; categories.len()]);
    let names = |names: &&[&str]| Value::Array(names.iter().map(|&name| name.into()).collect());
    let mut metadata = Metadata::default();
    let categories = Value::Array(categories.iter().map(names).collect());
    metadata.custom.insert("apr.categories".to_owned(), categories);
    let model = LinearRegression::from_parts(weights, value).unwrap();
    let options = SaveOptions::default().with_metadata(metadata);
    to_vec(&model, ModelType::LinearRegression, &options).unwrap()
}

fn replace(path: &Path, bytes: &[u8]) {
    let new = path.with_extension("new");
    fs::write(&new, bytes).unwrap();
    fs::rename(new, path).unwrap();
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("apr-serve-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn watched(path: &Path, shape: Shape) -> (Running, Receiver<String>) {
    let (sender, events) = channel();
    let path = path.to_owned();
    let server = run(options(), move |server| {
        let load = || {
            Model::from_bytes(&fs::read(&path).map_err(|error| error.to_string())?)
                .map_err(|error| error.code().to_owned())
        };
        let mut watch = Watch::new(&path);
        watch.interval = Duration::from_millis(20);
        watch.shape = shape;
        let model = load().unwrap();
        server
            .serve_watched(model, watch, load, |event| {
                let text = match event {
                    Event::Reloaded { load_count, .. } => format!("load_count {load_count}"),
                    Event::NotLoaded(code) => code,
                    Event::OtherShape { expected, found } => format!("{found}, not {expected}"),
                    _ => return,
                };
                let _ = sender.send(text);
            })
            .unwrap();
    });
    // It answers: the first file is loaded.
    assert_eq!(server.get("/health").status, 200);
    (server, events)
}

fn next(events: &Receiver<String>) -> String {
    events.recv_timeout(Duration::from_secs(20)).unwrap()
}

#[test]
fn a_new_file_takes_over_and_a_bad_one_does_not() {
    let folder = Folder::new("reload");
    let path = folder.0.join("model.apr");
    fs::write(&path, file(1.0, 2)).unwrap();
    let (server, events) = watched(&path, Shape::Keep);
    let mut kept = server.connect();
    let mut asked = || {
        kept.send(&row("[0,0]"));
        let response = kept.response();
        (response.predictions()[0].as_f64().unwrap(), response.json()["model"].as_str().unwrap().to_owned())
    };
    let (value, first) = asked();
    assert_eq!((value, first.len()), (1.0, 16));

    replace(&path, &file(2.0, 2));
    assert_eq!(next(&events), "load_count 2");
    let (value, second) = asked();
    assert_eq!(value, 2.0);
    assert_ne!(first, second);
    let model = server.get("/model").json();
    assert_eq!(model["generation"], 2);
    assert!(model["digest"].as_str().unwrap().starts_with(&format!("sha256:{second}")));

    let mut damaged = file(3.0, 2);
    *damaged.last_mut().unwrap() ^= 1;
    replace(&path, &damaged);
    assert_eq!(next(&events), "ac-checksum");
    assert_eq!(asked(), (2.0, second.clone()));

    replace(&path, &file(4.0, 3));
    assert_eq!(next(&events), "rows of 3 numbers, not rows of 2 numbers");
    assert_eq!(asked(), (2.0, second.clone()));

    fs::remove_file(&path).unwrap();
    thread::sleep(Duration::from_millis(100));
    assert_eq!(asked(), (2.0, second));

    fs::write(path.with_extension("new"), file(5.0, 2)).unwrap();
    fs::rename(path.with_extension("new"), &path).unwrap();
    assert_eq!(next(&events), "load_count 3");
    assert_eq!(asked().0, 5.0);
    assert_eq!(server.metric(r#"apr_serve_reloads_total{result="ok"}"#), 2.0);
    assert_eq!(server.metric(r#"apr_serve_reloads_total{result="failed"}"#), 2.0);
    assert_eq!(server.metric("apr_serve_model_generation"), 3.0);
}

#[test]
fn a_new_file_has_categories_of_the_same_features() {
    let folder = Folder::new("categories");
    let path = folder.0.join("model.apr");
    fs::write(&path, file_with(0.0, &[&["red", "blue"], &[]])).unwrap();
    let (server, events) = watched(&path, Shape::Keep);
    assert_eq!(server.predict("[\"blue\", 2]").predictions(), json!([3.0]));
    let (one, other) = ("with names of categories in columns 0", "with names of categories in columns 1");
    for (refused, taken) in [
        (file(0.0, 2), "rows of 2 numbers".to_owned()),
        (file_with(0.0, &[&[], &[]]), "rows of 2 numbers".to_owned()),
        (file_with(0.0, &[&[], &["a"]]), format!("rows of 2 numbers, {other}")),
        (file_with(0.0, &[&["a"], &["a"]]), format!("rows of 2 numbers, {one}, 1")),
        (file_with(0.0, &[&["a"], &[], &[]]), format!("rows of 3 numbers, {one}")),
    ] {
        replace(&path, &refused);
        assert_eq!(next(&events), format!("{taken}, not rows of 2 numbers, {one}"));
    }
    assert_eq!(server.predict("[\"blue\", 2]").predictions(), json!([3.0]));
    replace(&path, &file_with(0.0, &[&["green", "grey", "blue"], &[]]));
    assert_eq!(next(&events), "load_count 2");
    assert_eq!(server.predict("[\"blue\", 2]").predictions(), json!([4.0]));
    assert_eq!(server.predict("[\"red\", 2]").code(), "sv-category");
}

#[test]
fn another_shape_is_taken_where_it_may_be() {
    let folder = Folder::new("shape");
    let path = folder.0.join("model.apr");
    fs::write(&path, file(1.0, 2)).unwrap();
    let (server, events) = watched(&path, Shape::MayChange);
    replace(&path, &file(2.0, 3));
    assert_eq!(next(&events), "load_count 2");
    assert_eq!(server.predict("[0,0,0]").predictions(), json!([2.0]));
    assert_eq!(server.predict("[0,0]").code(), "sv-columns");
}

#[test]
fn answers_are_always_those_of_one_model() {
    let folder = Folder::new("swap");
    let path = folder.0.join("model.apr");
    fs::write(&path, file(0.0, 1)).unwrap();
    let (server, events) = watched(&path, Shape::Keep);
    let body = format!("[{}]", vec!["[0]"; 900].join(","));
    let addr_server = &server;
    thread::scope(|scope| {
        let asking = scope.spawn(move || {
            let mut client = addr_server.connect();
            let mut seen = BTreeMap::new();
            for _ in 0..300 {
                client.send(&row(&body));
                let response = client.response().json();
                let values = response["predictions"].as_array().unwrap();
                assert!(values.iter().all(|value| value == &values[0]), "two models in one answer");
                let known =
                    seen.entry(response["model"].as_str().unwrap().to_owned()).or_insert(values[0].clone());
                assert_eq!(known, &values[0]);
            }
        });
        for number in 1..10_u8 {
            replace(&path, &file(number.into(), 1));
            assert_eq!(next(&events), format!("load_count {}", number + 1));
        }
        asking.join().unwrap();
    });
}
