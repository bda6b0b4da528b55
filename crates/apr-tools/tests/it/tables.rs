//! `apr predict`: tables and texts in, one line out for each.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// `1 + 2 a - 0.5 b`
const ANSWERS: &str = "2\n5\n-50\n";

#[test]
fn one_line_comes_out_for_each_row() {
    let sandbox = Sandbox::with_models();
    for (table, options) in [
        ("a,b\n1,2\n3,4\n-0.5,1e2\n", &[][..]),
        ("1,2\n3,4\n-0.5,1e2\n", &[]),
        ("\u{feff}a,b\r\n1,2\r\n3,4\r\n-0.5,1e2", &[]),
        ("\"a\",\"b\"\n\"1\",2\n3, 4\n -0.5,\"1e2\"\n", &[]),
        ("b,note,a\n2,first,1\n4,\"se,\"\"c\n\"\"ond\",3\n100,,-0.5\n", &[]),
        ("a;b\n1;2\n3;4\n-0.5;1e2\n", &["--delimiter", ";"]),
        ("a\tb\n1\t2\n3\t4\n-0.5\t1e2\n", &["--delimiter", "tab"]),
        ("x,y\n1,2\n", &["--header", "no"]),
    ] {
        let ran = sandbox
            .run_with_input(&[&["predict", "model.apr", "-i", "-"], options].concat(), table.as_bytes());
        if options.contains(&"no") {
            assert_eq!(ran.exit, 3, "a header that is none is a row of words");
            continue;
        }
        assert_eq!((ran.exit, ran.stdout.as_str()), (0, ANSWERS), "{table:?}\n{}", ran.stderr);
    }
    let ran = sandbox.run_with_input(&["predict", "model.apr", "-i", "-"], b"");
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, ""));
    let ran = sandbox.run_with_input(&["predict", "model.apr", "-i", "-"], b"a,b\n");
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, ""));
}

#[test]
fn a_file_gets_what_standard_output_would() {
    let sandbox = Sandbox::with_models();
    let ran = sandbox.run(&["predict", "model.apr", "-i", "rows.csv", "-o", "out.csv"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, ""));
    assert!(ran.stderr.contains("wrote out.csv: 3 predictions"), "{}", ran.stderr);
    assert_eq!(sandbox.read("out.csv"), ANSWERS.as_bytes());
    assert_eq!(sandbox.run(&["predict", "model.apr", "-i", "rows.csv", "-o", "out.csv"]).exit, 2);
    let bad = sandbox.run(&["predict", "model.apr", "-i", "table.csv", "-o", "out.csv", "--force"]);
    assert_eq!(bad.exit, 3);
    assert_eq!(sandbox.read("out.csv"), ANSWERS.as_bytes(), "the old file stays");
    let (_, value) = sandbox.json(&["predict", "model.apr", "-i", "rows.csv", "-o", "out.json"]);
    assert_eq!(
        (&value["output"], &value["rows"], &value["predictions"]),
        (&json!("out.json"), &json!(3), &Value::Null)
    );
    let written: Value = serde_json::from_slice(&sandbox.read("out.json")).unwrap();
    assert_eq!(written["predictions"], json!([2.0, 5.0, -50.0]));
}

#[test]
fn what_is_wrong_with_a_table_is_told_with_its_place() {
    let sandbox = Sandbox::with_models();
    for (table, code, line, column, name) in [
        ("a,b\n1,2\n3,\n", "cli-table-cell", Some(3), Some(2), Some("b")),
        ("a,b\n1,2\nNaN,1\n", "cli-table-cell", Some(3), Some(1), Some("a")),
        ("a,b\n1,2\n3,four\n", "cli-table-cell", Some(3), Some(2), Some("b")),
        ("1,2\n3,inf\n", "cli-table-cell", Some(2), Some(2), None),
        ("1,1e99\n", "cli-table-cell", Some(1), Some(2), None),
        ("a,b\n1,2\n3\n", "cli-table-columns", Some(3), None, None),
        ("1,2\n3,4,5\n", "cli-table-columns", Some(2), None, None),
        ("1,2,3\n", "cli-table-columns", None, None, None),
        ("a,c\n1,2\n", "cli-table-columns", None, None, None),
        ("a,b,b\n1,2,3\n", "cli-table-columns", None, None, None),
        ("a,b\n1,2\n\n3,4\n", "cli-table-syntax", Some(3), None, None),
        ("a,b\n1,\"2\n", "cli-table-syntax", Some(2), None, None),
        ("a,b\n1,2\"\n", "cli-table-syntax", Some(2), Some(2), None),
        ("NA,?\n1,2\n", "cli-table-cell", Some(1), Some(1), None),
    ] {
        let ran = sandbox.run_with_input(&["predict", "model.apr", "-i", "-", "--json"], table.as_bytes());
        let value: Value = serde_json::from_str(&ran.stdout).unwrap();
        let error = &value["error"];
        assert_eq!((ran.exit, error["code"].as_str()), (3, Some(code)), "{table:?}: {error:#}");
        assert_eq!(error["line"].as_u64(), line, "{table:?}: {error:#}");
        assert_eq!(error["column"].as_u64(), column, "{table:?}: {error:#}");
        assert_eq!(error["column_name"].as_str(), name, "{table:?}: {error:#}");
        assert_eq!(error["file"], "-", "{table:?}");
    }
}

#[test]
fn rows_before_a_bad_one_are_answered() {
    let sandbox = Sandbox::with_models();
    let ran = sandbox.run_with_input(&["predict", "model.apr", "-i", "-"], b"1,2\n3,4\n5,x\n1,2\n");
    assert_eq!((ran.exit, ran.stdout.as_str()), (3, "2\n5\n"));
    assert!(ran.stderr.contains("where:  line 3, column 2"), "{}", ran.stderr);
}

#[test]
fn answers_come_as_soon_as_their_rows() {
    let sandbox = Sandbox::with_models();
    let mut child =
        sandbox.command(&["predict", "model.apr", "-i", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let (mut rows, mut answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for (row, answer) in ["1,2\n", "3,4\n", "-0.5,1e2\n"].into_iter().zip(ANSWERS.split_inclusive('\n')) {
        rows.write_all(row.as_bytes()).unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        assert_eq!(line, answer);
    }
    drop(rows);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_model_may_come_from_any_format_and_from_standard_input() {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.run(&["convert", "model.apr", "m.safetensors"]).exit, 0);
    assert_eq!(sandbox.run(&["convert", "model.apr", "m2.apr", "--format", "apr2"]).exit, 0);
    for model in ["model.apr", "m.safetensors", "m2.apr"] {
        assert_eq!(sandbox.run(&["predict", model, "-i", "rows.csv"]).stdout, ANSWERS, "{model}");
        let ran = sandbox.run_with_input(&["predict", "-", "-i", "rows.csv"], &sandbox.read(model));
        assert_eq!(ran.stdout, ANSWERS, "{model}\n{}", ran.stderr);
    }
    assert!(sandbox.leftovers().is_empty());
}

#[test]
fn many_rows_are_answered_in_their_order() {
    let sandbox = Sandbox::with_models();
    let (mut table, mut expected) = ("a,b\n".to_owned(), String::new());
    for row in 0..5000 {
        table.push_str(&format!("{row},{}\n", 2 * row));
        expected.push_str(&format!("{}\n", 1 + row));
    }
    sandbox.write("many.csv", table.as_bytes());
    assert_eq!(sandbox.run(&["predict", "model.apr", "-i", "many.csv"]).stdout, expected);
    let (_, value) = sandbox.json(&["predict", "model.apr", "-i", "many.csv"]);
    assert_eq!((&value["rows"], &value["predictions"][4999]), (&json!(5000), &json!(5000.0)));
}

#[test]
fn texts_are_lines_or_cells() {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.run(&["train", "count-vectorizer", "--data", "texts.txt", "-o", "c.apr"]).exit, 0);
    let ran = sandbox.run_with_input(&["predict", "c.apr", "-i", "-"], b"the the dog\r\n\nnothing known\n");
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, "1:1 5:2\n\n\n"), "{}", ran.stderr);
    sandbox.write("texts.csv", b"id,text\n1,\"the, cat\"\n");
    let (_, value) = sandbox.json(&["predict", "c.apr", "-i", "texts.csv", "--column", "text"]);
    assert_eq!(
        (&value["kind"], &value["predictions"]),
        (&json!("terms"), &json!([{"cat": 1.0, "the": 1.0}]))
    );
    assert_eq!(sandbox.run(&["train", "ngram", "--data", "texts.txt", "-o", "n.apr"]).exit, 0);
    let (_, value) = sandbox.json(&["predict", "n.apr", "-i", "texts.txt"]);
    assert_eq!(value["kind"], "log-probability");
    let scores: Vec<f64> =
        value["predictions"].as_array().unwrap().iter().map(|score| score.as_f64().unwrap()).collect();
    assert!(scores.len() == 3 && scores.iter().all(|score| *score < 0.0), "{scores:?}");
    let ran = sandbox.run_with_input(&["predict", "c.apr", "-i", "-"], b"ok\n\xff\n");
    assert!(ran.exit == 3 && ran.stderr.contains("where:  line 2"), "{}", ran.stderr);
}

#[test]
fn labels_are_written_as_they_are() {
    let sandbox = Sandbox::empty();
    let table = "a,y\n1,\u{645}\u{6cc}\u{200c}\u{62e}\n2,\"l\nm\"\n3,\"b\ts\"\n4,\"c,d\"\n";
    sandbox.write("t.csv", table.as_bytes());
    let train = ["train", "decision-tree", "--data", "t.csv", "--target", "y", "-o", "t.apr"];
    assert_eq!(sandbox.run(&train).exit, 0);
    let expected = "\u{645}\u{6cc}\u{200c}\u{62e}\n\"l\nm\"\nb\ts\n\"c,d\"\n";
    let ran = sandbox.run(&["predict", "t.apr", "-i", "t.csv"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, expected), "{}", ran.stderr);
    assert_eq!(sandbox.run(&["predict", "t.apr", "-i", "t.csv", "-o", "p.csv"]).exit, 0);
    assert_eq!(sandbox.read("p.csv"), expected.as_bytes());
    let ran = sandbox.run(&["predict", "t.apr", "-i", "t.csv", "--top", "3"]);
    assert!(ran.exit == 2 && ran.stderr.contains("--top is for recommenders"), "{ran:?}");
}
