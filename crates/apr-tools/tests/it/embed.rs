//! `apr embed`: what the project holds. `cargo xtask embed` builds and runs projects around models of every type.

use std::fs;
use std::path::Path;

use crate::sandbox::Sandbox;

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn text(sandbox: &Sandbox, name: &str) -> String {
    String::from_utf8(sandbox.read(name)).unwrap()
}

fn embed(sandbox: &Sandbox, args: &[&str]) -> serde_json::Value {
    let (exit, value) = sandbox.json(&[&["embed", "--crates", CHECKOUT], args].concat());
    assert_eq!(exit, 0, "{args:?}\n{value:#}");
    value
}

#[test]
fn the_project_holds_the_model_and_what_it_says() {
    let sandbox = Sandbox::with_models();
    let report = embed(&sandbox, &["model.apr", "-o", "p", "--name", "price"]);
    assert_eq!((&report["name"], &report["in_place"]), (&"price".into(), &true.into()));
    assert_eq!(sandbox.read("p/model.apr"), sandbox.read("model.apr"));
    let checkout = Path::new(CHECKOUT).canonicalize().unwrap();
    assert_eq!(sandbox.read("p/Cargo.lock"), fs::read(checkout.join("Cargo.lock")).unwrap());
    let manifest = text(&sandbox, "p/Cargo.toml");
    let path = format!("apr-models = {{ path = {:?}", checkout.join("crates/apr-models"));
    for part in [
        path.as_str(),
        "name = \"price\"",
        "opt-level = \"z\"",
        "lto = true",
        "panic = \"abort\"",
        "strip = true",
    ] {
        assert!(manifest.contains(part), "{part}\n{manifest}");
    }
    // What the project's test compares with is what `apr predict` says.
    let said = sandbox.run(&["predict", "model.apr", "-i", "p/tests/rows.txt"]);
    assert_eq!(said.stdout, text(&sandbox, "p/tests/predictions.txt"));
    assert_eq!(said.stdout.lines().count(), 5);
    // Nothing of this machine or this moment.
    embed(&sandbox, &["model.apr", "-o", "again", "--name", "price"]);
    let files = sandbox.listing();
    let project = |name: &str| -> Vec<&Vec<u8>> {
        let folder = sandbox.path(name);
        files.iter().filter(|(path, _)| path.starts_with(&folder)).map(|(_, bytes)| bytes).collect()
    };
    assert_eq!(project("p"), project("again"));
}

#[test]
fn crates_that_are_not_published_are_never_named_by_version() {
    let sandbox = Sandbox::with_models();
    // What is wrong with the model counts more.
    for (args, exit, code) in [
        (&["model.apr"][..], 2, "cli-not-published"),
        (&["model.apr", "--dry-run"], 2, "cli-not-published"),
        (&["model.apr", "--crates", "empty"], 2, "cli-usage"),
        (&["locked.apr"], 6, "ac-encrypted"),
        (&["made.apr"], 4, "ac-signed"),
        (&["made.apr", "--signer", "second.key.pub"], 3, "cy-key-kind"),
    ] {
        let (found, value) = sandbox.json(&[&["embed", "-o", "p"], args].concat());
        assert_eq!((found, &value["error"]["code"]), (exit, &code.into()), "{args:?}\n{value:#}");
        assert!(!sandbox.path("p").exists());
    }
    let project = ["embed", "made.apr", "-o", "p", "--signer", "maker.key.pub", "--crates", "checkout"];
    assert_eq!(sandbox.run(&project).exit, 0);
    assert!(!text(&sandbox, "p/Cargo.toml").contains("{ version"));
}

#[test]
fn terms_of_a_model_reach_terminals_and_files_as_plain_words_only() {
    let sandbox = Sandbox::with_models();
    let hostile = "\u{1b}[2Jcat \u{202e}dog \u{9b}31mbird plain `id` $(id)\n";
    sandbox.write("hostile.txt", hostile.repeat(3).as_bytes());
    let train = ["train", "count-vectorizer", "--data", "hostile.txt", "-o", "terms.apr"];
    let ran = sandbox.run(&train);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    for args in [&["-o", "p"][..], &["-o", "s", "--serve"]] {
        let ran = sandbox.run(&[&["embed", "terms.apr", "--crates", CHECKOUT], args].concat());
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        let is_hazard = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!ran.stderr.contains(is_hazard), "{:?}", ran.stderr);
        for (path, bytes) in sandbox.listing() {
            let name = path.to_string_lossy().into_owned();
            if path.starts_with(sandbox.path(args[1])) && !name.ends_with(".apr") {
                let text = String::from_utf8(bytes).unwrap();
                assert!(!text.contains(is_hazard), "{name}: {text:?}");
                assert!(name.ends_with(".lock") || !text.contains("$(id)"), "{name}: {text}");
            }
        }
    }
}

#[test]
fn a_signature_is_verified_with_the_key_the_program_carries() {
    let sandbox = Sandbox::with_models();
    let refused = |args: &[&str], exit, code: &str| {
        let (found, value) =
            sandbox.json(&[&["embed", "made.apr", "-o", "p", "--crates", CHECKOUT], args].concat());
        assert_eq!((found, &value["error"]["code"]), (exit, &code.into()), "{args:?}");
        assert!(!sandbox.path("p").exists());
    };
    refused(&[], 4, "ac-signed");
    refused(&["--signer", "buyer.key.pub"], 3, "cy-key-kind");
    let report = embed(&sandbox, &["made.apr", "-o", "p", "--signer", "maker.key.pub"]);
    assert_eq!(
        (&report["verifies_signature"], &report["features"]),
        (&true.into(), &serde_json::json!(["crypto"]))
    );
    let model = text(&sandbox, "p/src/model.rs");
    assert!(model.contains("verify_signature(MODEL.file(), &key"), "{model}");
    assert!(text(&sandbox, "p/Cargo.toml").contains("\napr-crypto = "));
    let report = embed(&sandbox, &["made.apr", "-o", "q", "--allow-unverified"]);
    assert_eq!(report["verifies_signature"], false);
    // A demand that cannot be met.
    let (exit, value) = sandbox.json(&["embed", "model.apr", "-o", "r", "--signer", "maker.key.pub"]);
    assert_eq!((exit, &value["error"]["code"]), (4, &"ac-not-signed".into()));
}

#[test]
fn what_cannot_be_a_program_is_refused_with_the_way_out() {
    let sandbox = Sandbox::with_models();
    for (args, exit, code, help) in [
        (&["locked.apr"][..], 6, "ac-encrypted", "apr decrypt"),
        (&["sold.apr", "--signer", "maker.key.pub"], 6, "ac-encrypted", "apr decrypt"),
        (&["tensors.apr"], 2, "cli-no-prediction", ""),
        (&["-"], 2, "cli-usage", ""),
        (&["missing.apr"], 5, "df-io", ""),
        (&["model.apr", "--name", "a b"], 2, "cli-usage", "letters"),
    ] {
        let (found, value) = sandbox.json(&[&["embed", "-o", "p"], args].concat());
        assert_eq!((found, value["error"]["code"].as_str().unwrap()), (exit, code), "{args:?}\n{value:#}");
        assert!(value.to_string().contains(help), "{value:#}");
        assert!(!sandbox.path("p").exists());
    }
    let (exit, value) = sandbox.json(&["embed", "model.apr", "-o", "empty", "--crates", CHECKOUT]);
    assert_eq!((exit, &value["error"]["code"]), (2, &"cli-output-exists".into()));
    assert!(sandbox.leftovers().is_empty());
}

#[test]
fn a_service_is_a_project_of_its_own_kind() {
    let sandbox = Sandbox::with_models();
    let report = embed(&sandbox, &["model.apr", "-o", "p", "--serve"]);
    assert_eq!(report["in_place"], false);
    let (main, manifest) = (text(&sandbox, "p/src/main.rs"), text(&sandbox, "p/Cargo.toml"));
    assert!(main.contains("Server::bind(address") && !main.contains("{{"), "{main}");
    assert!(manifest.contains("apr-serve = { path = ") && !manifest.contains("panic ="), "{manifest}");
    assert!(!manifest.contains("apr-models = "), "{manifest}");
    assert!(!sandbox.path("p/src/model.rs").exists());
    // What its test asks and compares with is what `apr predict` says.
    assert!(text(&sandbox, "p/tests/served.rs").contains("include_str!(\"answer.json\")"));
    let request: serde_json::Value = serde_json::from_slice(&sandbox.read("p/tests/request.json")).unwrap();
    let rows = request["rows"].as_array().unwrap().iter().map(ToString::to_string);
    let rows: Vec<String> = rows.map(|row| row.trim_matches(['[', ']']).to_owned()).collect();
    sandbox.write("asked.csv", rows.join("\n").as_bytes());
    let (_, said) = sandbox.json(&["predict", "model.apr", "-i", "asked.csv", "--header", "no"]);
    let answer: serde_json::Value = serde_json::from_slice(&sandbox.read("p/tests/answer.json")).unwrap();
    assert_eq!((&answer["predictions"], rows.len()), (&said["predictions"], 5));
    let (exit, value) = sandbox.json(&["convert", "model.apr", "model2.safetensors"]);
    assert_eq!(exit, 0, "{value:#}");
    let (exit, value) = sandbox.json(&["embed", "model2.safetensors", "-o", "q", "--serve"]);
    assert_eq!((exit, &value["error"]["code"]), (6, &"cli-foreign-format".into()));
    assert!(value.to_string().contains("apr convert"), "{value:#}");
    let (exit, value) = sandbox.json(&["embed", "made.apr", "-o", "q", "--serve", "--allow-unverified"]);
    assert_eq!((exit, &value["error"]["code"]), (2, &"cli-usage".into()));
}

#[test]
fn the_program_introduces_itself() {
    let sandbox = Sandbox::with_models();
    let ran = sandbox.run(&["train", "ridge", "--data", "table.csv", "--target", "price", "-o", "price.apr"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let ran = sandbox.run(&["embed", "price.apr", "-o", "p", "--crates", CHECKOUT]);
    // An example that can be run as it is printed: no row that begins like an option.
    assert!(ran.stderr.ends_with("-- 0.5,1.5\n"), "{}", ran.stderr);
    let help = text(&sandbox, "p/src/help.txt");
    assert!(help.contains("2 numbers separated by commas, in this order:\n  age\n  size\n"), "{help}");
    assert!(help.contains("Usage: price ROW...") && help.contains("Example: price 0.5,1.5"), "{help}");
    assert!(text(&sandbox, "p/src/main.rs").contains("include_str!(\"help.txt\")"));
    // Names of columns are text out of a file.
    let names = (0..30).map(|column| format!("c{column}\u{1b}[2J")).collect::<Vec<_>>().join(",");
    let row = |first: u32| (0..30).map(|column| (first + column).to_string()).collect::<Vec<_>>().join(",");
    sandbox.write("wide.csv", format!("{names}\n{}\n{}\n{}\n", row(1), row(5), row(2)).as_bytes());
    let ran = sandbox.run(&["train", "kmeans", "--clusters", "2", "--data", "wide.csv", "-o", "wide.apr"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    embed(&sandbox, &["wide.apr", "-o", "w"]);
    let help = text(&sandbox, "w/src/help.txt");
    assert!(help.contains("  c0\\u{1b}[2J\n") && help.contains("  ... and 6 more\n"), "{help}");
}

#[test]
fn names_of_columns_and_classes_go_along() {
    let sandbox = Sandbox::with_models();
    sandbox.write(
        "c.csv",
        b"x,\"a \"\"b\"\"\",kind\n0,1,red\n1,0,\"blue, dark\"\n0.1,0.9,red\n0.9,0.2,\"blue, dark\"\n",
    );
    let ran =
        sandbox.run(&["train", "logistic-regression", "--data", "c.csv", "--target", "kind", "-o", "c.apr"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    embed(&sandbox, &["c.apr", "-o", "p"]);
    let model = text(&sandbox, "p/src/model.rs");
    assert!(model.contains(r#"FEATURES: &[&str] = &["x", "a \"b\""];"#), "{model}");
    // As `apr predict` prints them.
    assert!(model.contains(r#"CLASSES: &[&str] = &["\"blue, dark\"", "red"];"#), "{model}");
    // A service has them from the file, or in its code where the file has no place that it reads.
    embed(&sandbox, &["c.apr", "-o", "s", "--serve"]);
    let (exit, value) = sandbox.json(&["convert", "c.apr", "c2.apr", "--format", "apr2"]);
    assert_eq!(exit, 0, "{value:#}");
    embed(&sandbox, &["c2.apr", "-o", "t", "--serve"]);
    let main = text(&sandbox, "t/src/main.rs");
    assert!(main.contains(r#"CLASSES: &[&str] = &["blue, dark", "red"];"#), "{main}");
    assert!(!text(&sandbox, "s/src/main.rs").contains("CLASSES"));
    for service in ["s", "t"] {
        let answer = text(&sandbox, &format!("{service}/tests/answer.json"));
        assert!(answer.starts_with(r#"{"predictions":[""#), "{answer}");
    }
    let predictions = text(&sandbox, "p/tests/predictions.txt");
    assert!(predictions.lines().all(|line| ["\"blue, dark\"", "red"].contains(&line)), "{predictions}");
}

#[test]
fn categories_are_numbers_that_the_help_lists() {
    let sandbox = Sandbox::with_models();
    sandbox.write("c.csv", b"size,colour,y\n1,red,2\n2,blue,3\n3,red,5\n4,green,8\n");
    let args =
        ["train", "ridge", "--data", "c.csv", "--target", "y", "--categorical", "colour", "-o", "c.apr"];
    assert_eq!(sandbox.run(&args).exit, 0);
    embed(&sandbox, &["c.apr", "-o", "p"]);
    let rows = text(&sandbox, "p/tests/rows.txt");
    let is_category =
        |line: &str| line.rsplit(',').next().is_some_and(|last| ["0", "1", "2"].contains(&last));
    assert!(rows.lines().count() == 5 && rows.lines().all(is_category), "{rows}");
    assert_eq!(text(&sandbox, "p/tests/predictions.txt").lines().count(), 5);
    let listed = "colour, the number of a category: 0 blue, 1 green, 2 red";
    assert!(text(&sandbox, "p/src/help.txt").contains(listed), "{}", text(&sandbox, "p/src/help.txt"));
    // A service takes their names.
    embed(&sandbox, &["c.apr", "-o", "s", "--serve"]);
    let request = text(&sandbox, "s/tests/request.json");
    assert!(request.contains(",\"green\"]") && !request.contains(",1]"), "{request}");
    let predictions = text(&sandbox, "p/tests/predictions.txt");
    let answer = text(&sandbox, "s/tests/answer.json");
    let expected = format!("{{\"predictions\":[{}]", predictions.lines().collect::<Vec<_>>().join(","));
    assert!(answer.starts_with(&expected), "{answer} {predictions}");
}

#[test]
fn sizes_are_said_of_what_can_be_a_program() {
    let sandbox = Sandbox::with_models();
    let said = |args: &[&str]| {
        let (exit, value) = sandbox.json(&[&["size"], args].concat());
        assert_eq!(exit, 0, "{value:#}");
        value
    };
    let (table, target) = (said(&[]), "x86_64-unknown-linux-gnu");
    let code = |of: &serde_json::Value| of["bytes"][target].as_i64().unwrap();
    let of_type = |model: &str| {
        let plain = |row: &&serde_json::Value| {
            row["model"] == model
                && row["form"] == "stored"
                && row["serves"] == false
                && row["optimized_for"] == "size"
        };
        code(table["programs"].as_array().unwrap().iter().find(plain).unwrap())
    };
    let added = |name: &str| {
        let features = table["features"].as_array().unwrap();
        code(features.iter().find(|feature| feature["feature"] == name).unwrap())
    };
    let (exit, value) = sandbox.json(&["convert", "model.apr", "small.apr", "--compression", "zstd"]);
    assert_eq!(exit, 0, "{value:#}");
    let estimates = said(&["small.apr"]);
    let first = &estimates["estimates"][0];
    assert_eq!((&first["form"], &first["with"]), (&"zstd".into(), &serde_json::json!(["zstd"])));
    let file = i64::try_from(sandbox.read("small.apr").len()).unwrap();
    assert_eq!(code(first), of_type("LinearRegression") + added("zstd") + file);
    // What `apr embed` refuses has no size: a service around a signed model or a safetensors file.
    assert_eq!(sandbox.run(&["convert", "model.apr", "m.safetensors"]).exit, 0);
    for (model, serves) in [("small.apr", true), ("made.apr", false), ("m.safetensors", false)] {
        let all = said(&[model]);
        let any = all["estimates"].as_array().unwrap().iter().any(|program| program["serves"] == true);
        assert_eq!(any, serves, "{model}");
    }
    for (model, exit, code) in [
        ("locked.apr", 6, "ac-encrypted"),
        ("tensors.apr", 2, "cli-no-prediction"),
        ("missing.apr", 5, "df-io"),
        ("-", 2, "cli-usage"),
    ] {
        let (found, value) = sandbox.json(&["size", model]);
        assert_eq!((found, &value["error"]["code"]), (exit, &code.into()), "{model}");
    }
}
