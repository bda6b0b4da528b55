//! Pipelines: what `apr predict` and `apr inspect` say of them.

use apr_container::{Metadata, ModelType, SaveOptions, Value, to_vec};
use apr_models::{
    Accepts, CentroidDistances, CharacterClass, ClassHead, ClusterRule, DecisionFunction, DecisionRule, Head,
    Input, KnnWeights, Labels, LetterCase, LinearStep, Link, NeighbourMetric, NeighbourOutput,
    NeighbourSearch, NeighboursParts, NeighboursStep, OutlierHead, OutputShape, Pipeline, ProbabilityRule,
    Step, Table, TermCount, TextInput, TextParts, TextTerms, TreeOutputs, TreeThresholds, TreesParts,
    TreesStep, ValueKind, Vocabulary,
};
use serde_json::{Value as Json, json};

use crate::sandbox::Sandbox;

fn linear(weights: &[f64], bias: &[f64]) -> Step {
    Step::Linear(LinearStep::new(bias.len(), weights.into(), bias.into()).unwrap())
}

fn classes(labels: Labels, rule: DecisionRule, probabilities: ProbabilityRule) -> Head {
    Head::Classes(ClassHead { labels, rule, probabilities, decision_function: DecisionFunction::None })
}

fn rows(kind: ValueKind) -> Head {
    Head::Values { kind, link: Link::None, shape: OutputShape::Matrix }
}

fn save(sandbox: &Sandbox, name: &str, input: Input, steps: Vec<Step>, head: Head, metadata: Metadata) {
    let model = Pipeline::from_parts(input, steps, head).unwrap();
    let options = SaveOptions { metadata, ..SaveOptions::default() };
    sandbox.write(name, &to_vec(&model, ModelType::Custom, &options).unwrap());
}

/// A model of two numbers.
fn of_two(sandbox: &Sandbox, name: &str, accepts: Accepts, step: Step, head: Head) {
    let input = Input::Numbers { n_features: 2, accepts };
    save(sandbox, name, input, vec![step], head, Metadata::default());
}

fn asked(sandbox: &Sandbox, args: &[&str]) -> (String, Json, Json) {
    let args = [&["predict"], args].concat();
    let ran = sandbox.run(&args);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let (exit, value) = sandbox.json(&args);
    assert_eq!(exit, 0);
    (ran.stdout, value["kind"].clone(), value["predictions"].clone())
}

#[test]
fn labels_are_said_as_they_are() {
    let sandbox = Sandbox::empty();
    sandbox.write("rows.csv", b"1,0\n-1,0\n");
    let step = || linear(&[1.0, 0.0], &[0.0]);
    let texts = Labels::Texts(vec!["a,\"b".into(), "c".into()]);
    for (labels, text, values) in [
        (Labels::Integers(vec![-7, 3]), "3\n-7\n", json!([3, -7])),
        (texts, "c\n\"a,\"\"b\"\n", json!(["c", "a,\"b"])),
        (Labels::Booleans(vec![false, true]), "true\nfalse\n", json!([true, false])),
        (Labels::Numbers(vec![0.1, 2.5]), "2.5\n0.1\n", json!([2.5, 0.1])),
    ] {
        of_two(
            &sandbox,
            "m.apr",
            Accepts::Finite,
            step(),
            classes(labels, DecisionRule::Positive, ProbabilityRule::None),
        );
        let found = asked(&sandbox, &["m.apr", "-i", "rows.csv"]);
        assert_eq!(found, (text.to_owned(), json!("class"), values));
        let (exit, value) = sandbox.json(&["predict", "m.apr", "-i", "rows.csv", "--proba"]);
        assert_eq!((exit, &value["error"]["code"]), (2, &json!("cli-no-prediction")), "{value}");
    }
    let head = classes(Labels::Numbers(vec![0.5, 1.5]), DecisionRule::ArgMax, ProbabilityRule::Normalized);
    of_two(&sandbox, "m.apr", Accepts::Finite, linear(&[1.0, 0.0, 0.0, 0.0], &[2.0, 1.0]), head);
    let (text, _, values) = asked(&sandbox, &["m.apr", "-i", "rows.csv", "--proba"]);
    assert_eq!(text, "0.5,0.75,0.25\n0.5,0.5,0.5\n");
    let probabilities =
        |first: f64| json!({"class": 0.5, "probabilities": {"0.5": first, "1.5": 1.0 - first}});
    assert_eq!(values, json!([probabilities(0.75), probabilities(0.5)]));
}

/// The names of the columns of a table, and its rows as texts.
fn table(bytes: Vec<u8>) -> (Vec<String>, Vec<Vec<String>>) {
    let mut table = match bytes.starts_with(b"PAR1") {
        true => apr_table::Table::parquet_in_memory(bytes).unwrap(),
        false => apr_table::Table::arrow(std::io::Cursor::new(bytes)).unwrap(),
    };
    let names = table.names().to_vec();
    let mut rows = Vec::new();
    while let Some(batch) = table.next_batch().unwrap() {
        for row in 0..batch.n_rows() {
            let text = |column| batch.text(row, column).unwrap().unwrap().into_owned();
            rows.push((0..names.len()).map(text).collect());
        }
    }
    (names, rows)
}

#[test]
fn the_ending_of_the_output_decides_how_predictions_are_written() {
    let sandbox = Sandbox::empty();
    sandbox.write("rows.csv", b"1,0\n-1,0\n");
    let step = || linear(&[1.0, 0.0, 0.0, 0.0], &[2.0, 1.0]);
    let texts = Labels::Texts(vec!["a,\"b".into(), "c".into()]);
    for (labels, [first, second], json) in [
        (Labels::Integers(vec![-7, 3]), ["-7", "3"], "-7"),
        (texts, ["a,\"b", "c"], r#""a,\"b""#),
        (Labels::Booleans(vec![false, true]), ["false", "true"], "false"),
        (Labels::Numbers(vec![0.5, 1.5]), ["0.5", "1.5"], "0.5"),
    ] {
        let head = classes(labels, DecisionRule::ArgMax, ProbabilityRule::Normalized);
        of_two(&sandbox, "m.apr", Accepts::Finite, step(), head);
        let names =
            ["prediction".to_owned(), format!("probability.{first}"), format!("probability.{second}")];
        for (output, begin) in
            [("p.parquet", &b"PAR1"[..]), ("p.arrow", b"ARROW1\0\0"), ("P.ARROWS", b"\xff\xff\xff\xff")]
        {
            let args = ["predict", "m.apr", "-i", "rows.csv", "--proba", "-o", output, "--force"];
            let ran = sandbox.run(&args);
            assert_eq!((ran.exit, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
            assert!(ran.stderr.contains("2 predictions"), "{}", ran.stderr);
            let bytes = sandbox.read(output);
            assert!(bytes.starts_with(begin));
            let (found, rows) = table(bytes.clone());
            assert_eq!(found, names);
            assert_eq!(rows, [[first, "0.75", "0.25"], [first, "0.5", "0.5"]]);
            let (exit, report) = sandbox.json(&args);
            assert_eq!((exit, &report["rows"], &report["output"]), (0, &json!(2), &json!(output)));
            assert!(report.get("predictions").is_none());
            assert_eq!(sandbox.read(output), bytes, "the same bytes");
            // A table again.
            let ran = sandbox.run(&["predict", "m.apr", "-i", output]);
            assert!(ran.exit == 3 && ran.stderr.contains("cli-table-columns"), "{}", ran.stderr);
        }
        let ran = sandbox.run(&["predict", "m.apr", "-i", "rows.csv", "--proba", "-o", "p.jsonl", "--force"]);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        let [second, third] = [&names[1], &names[2]].map(|name| Json::from(name.as_str()).to_string());
        let expected = [(0.75, 0.25), (0.5, 0.5)]
            .map(|(a, b)| format!("{{\"prediction\":{json},{second}:{a},{third}:{b}}}\n"));
        assert_eq!(String::from_utf8(sandbox.read("p.jsonl")).unwrap(), expected.concat());
    }
}

#[test]
fn predictions_without_labels_are_written_as_columns() {
    let sandbox = Sandbox::empty();
    sandbox.write("rows.csv", b"0.1,1e300\n");
    sandbox.write("none.csv", b"a,b\n");
    let copy = || linear(&[1.0, 0.0, 0.0, 1.0], &[0.0, 0.0]);
    let value = || linear(&[1.0, 0.0], &[0.0]);
    let outliers = || Head::Outliers(OutlierHead { divisor: 1.0, cut: 1.0, offset: 0.0 });
    for (step, head, names, row) in [
        (copy(), rows(ValueKind::Transformed), &["output.1", "output.2"][..], &["0.1", "1e300"][..]),
        (value(), rows(ValueKind::Predictions), &["prediction"], &["0.1"]),
        (value(), outliers(), &["prediction"], &["-1"]),
    ] {
        of_two(&sandbox, "m.apr", Accepts::Finite, step, head);
        for output in ["p.parquet", "p.arrow", "p.jsonl"] {
            for input in ["rows.csv", "none.csv"] {
                let ran = sandbox.run(&["predict", "m.apr", "-i", input, "-o", output, "--force"]);
                assert_eq!(ran.exit, 0, "{}", ran.stderr);
                let bytes = sandbox.read(output);
                if output == "p.jsonl" {
                    let lines = String::from_utf8(bytes).unwrap();
                    assert_eq!(lines.lines().count(), usize::from(input == "rows.csv"));
                    continue;
                }
                let (found, values) = table(bytes);
                assert_eq!(found, names);
                match input {
                    "rows.csv" => {
                        for (value, expected) in values[0].iter().zip(row) {
                            assert_eq!(value.parse::<f64>().unwrap(), expected.parse::<f64>().unwrap());
                        }
                    }
                    _ => assert!(values.is_empty()),
                }
            }
        }
    }
}

#[test]
fn a_row_at_fault_leaves_no_table() {
    let sandbox = Sandbox::empty();
    sandbox.write("rows.csv", b"1,0\n-1,x\n");
    sandbox.write("old.parquet", b"old");
    of_two(&sandbox, "m.apr", Accepts::Finite, linear(&[1.0, 0.0], &[0.0]), rows(ValueKind::Predictions));
    for output in ["p.parquet", "p.arrow", "p.jsonl", "old.parquet"] {
        let ran = sandbox.run(&["predict", "m.apr", "-i", "rows.csv", "-o", output, "--force"]);
        assert_eq!(ran.exit, 3, "{}", ran.stderr);
        assert_eq!(sandbox.path(output).exists(), output == "old.parquet");
    }
    assert_eq!(sandbox.read("old.parquet"), b"old");
    assert!(sandbox.leftovers().is_empty());
}

#[test]
fn numbers_keep_64_bits() {
    let sandbox = Sandbox::empty();
    // Both of these are 0.1 as 32-bit floats.
    sandbox.write("rows.csv", b"0.1,1e300\n0.10000000000000002,0\n");
    let copy = || linear(&[1.0, 0.0, 0.0, 1.0], &[0.0, 0.0]);
    of_two(&sandbox, "rows.apr", Accepts::Finite, copy(), rows(ValueKind::Transformed));
    let (text, kind, values) = asked(&sandbox, &["rows.apr", "-i", "rows.csv"]);
    assert_eq!((text.as_str(), kind), ("0.1,1e300\n0.10000000000000002,0\n", json!("row")));
    assert_eq!(values, json!([[0.1, 1e300], [0.10000000000000002, 0.0]]));
    of_two(&sandbox, "m.apr", Accepts::Finite, linear(&[1.0, 0.0], &[0.0]), rows(ValueKind::Predictions));
    let (text, kind, _) = asked(&sandbox, &["m.apr", "-i", "rows.csv"]);
    assert_eq!((text.as_str(), kind), ("0.1\n0.10000000000000002\n", json!("value")));
    sandbox.write("beyond.csv", b"0,1e400\n");
    let (exit, value) = sandbox.json(&["predict", "m.apr", "-i", "beyond.csv"]);
    assert!(exit == 3 && value.to_string().contains("64-bit"), "{value}");
}

#[test]
fn clusters_and_outliers_are_counted() {
    let sandbox = Sandbox::empty();
    sandbox.write("rows.csv", b"0,0\n5,5\n");
    let centres = CentroidDistances::new(2, vec![4.0_f64, 4.0, 1.0, 0.0].into()).unwrap();
    of_two(
        &sandbox,
        "c.apr",
        Accepts::Finite,
        Step::CentroidDistances(centres),
        Head::Clusters(ClusterRule::ArgMin),
    );
    assert_eq!(
        asked(&sandbox, &["c.apr", "-i", "rows.csv"]),
        ("1\n0\n".into(), json!("class"), json!([1, 0]))
    );
    let head = Head::Outliers(OutlierHead { divisor: 1.0, cut: 1.0, offset: 0.0 });
    of_two(&sandbox, "o.apr", Accepts::Anything, linear(&[1.0, 0.0], &[0.0]), head);
    let found = asked(&sandbox, &["o.apr", "-i", "rows.csv"]);
    assert_eq!(found, ("-1\n1\n".into(), json!("outlier"), json!([-1, 1])));
}

#[test]
fn missing_values_are_taken_where_the_model_does() {
    let sandbox = Sandbox::empty();
    sandbox.write("rows.csv", b"a,b\n1,\n2,NaN\n?,3\n4, n/a\n");
    let trees = |feature| {
        let step = TreesStep::new(&TreesParts {
            n_outputs: 1,
            outputs: TreeOutputs::All,
            start: &[0.0],
            divisor: 1.0,
            leaf_rows: &[10.0, 20.0],
            tree_nodes: &[3],
            features: &[feature, u32::MAX, u32::MAX],
            thresholds: TreeThresholds::Single(&[0.5]),
            leaves: &[0, 1],
        });
        Step::Trees(step.unwrap())
    };
    let missing_left = 1 | 1 << 31;
    for (accepts, expected) in [(Accepts::Missing, 0), (Accepts::Anything, 0), (Accepts::Finite, 3)] {
        of_two(&sandbox, "m.apr", accepts, trees(missing_left), rows(ValueKind::Predictions));
        let ran = sandbox.run(&["predict", "m.apr", "-i", "rows.csv"]);
        assert_eq!(ran.exit, expected, "{}", ran.stderr);
        if expected == 0 {
            assert_eq!(ran.stdout, "10\n10\n20\n10\n");
        }
    }
    // The value is one of 64 bits, and none of 32.
    sandbox.write("beyond.csv", b"0,0\n0,1e39\n");
    let ran = sandbox.run(&["predict", "m.apr", "-i", "beyond.csv"]);
    assert!(ran.exit == 2 && ran.stderr.contains("row 1, column 1 of the input of step 0"), "{}", ran.stderr);
    let many = format!("{}0,-1e39\n", "0,0\n".repeat(2500));
    sandbox.write("many.csv", many.as_bytes());
    let ran = sandbox.run(&["predict", "m.apr", "-i", "many.csv"]);
    assert!(ran.exit == 2 && ran.stderr.contains("row 2500, column 1 of the input"), "{}", ran.stderr);
    sandbox.write("infinite.csv", b"0,-inf\n0,inf\n");
    assert_eq!(sandbox.run(&["predict", "m.apr", "-i", "infinite.csv"]).exit, 3);
    of_two(&sandbox, "m.apr", Accepts::Anything, trees(1), rows(ValueKind::Predictions));
    assert_eq!(asked(&sandbox, &["m.apr", "-i", "infinite.csv"]).0, "10\n20\n");
}

#[test]
fn texts_are_lines() {
    let sandbox = Sandbox::empty();
    sandbox.write("lines.txt", b"to be or\nnot to be to\n");
    let input = || {
        let class = CharacterClass::from_bounds(vec![0x61, 0x7B]).unwrap();
        let parts = TextParts {
            case: LetterCase::Lower,
            accents: None,
            terms: TextTerms::Words { class, least: 1, edges: None },
            ngram_min: 1,
            ngram_max: 1,
            stop_words: Vocabulary::default(),
            vocabulary: Vocabulary::from_texts(["be", "not", "to"]).unwrap(),
            columns: Some(vec![1, 2, 0]),
            counts: TermCount::Every,
        };
        Input::Texts(TextInput::new(parts).unwrap().into())
    };
    save(&sandbox, "v.apr", input(), vec![], rows(ValueKind::Transformed), Metadata::default());
    let (text, kind, values) = asked(&sandbox, &["v.apr", "-i", "lines.txt"]);
    assert_eq!((text.as_str(), kind), ("0:1 1:1\n0:2 1:1 2:1\n", json!("terms")));
    assert_eq!(values, json!([{"to": 1.0, "be": 1.0}, {"to": 2.0, "be": 1.0, "not": 1.0}]));
    let labels = Labels::Texts(vec!["ham".into(), "spam".into()]);
    let head = classes(labels, DecisionRule::Positive, ProbabilityRule::Logistic { factor: 1.0 });
    save(&sandbox, "c.apr", input(), vec![linear(&[1.0, 0.0, 0.0], &[-1.0])], head, Metadata::default());
    assert_eq!(asked(&sandbox, &["c.apr", "-i", "lines.txt"]).0, "ham\nspam\n");
    let (_, _, values) = asked(&sandbox, &["c.apr", "-i", "lines.txt", "--proba"]);
    assert_eq!(values[0], json!({"class": "ham", "probabilities": {"ham": 0.5, "spam": 0.5}}));
    sandbox.write("table.csv", b"id,text\n1,\"to, to\"\n");
    assert_eq!(asked(&sandbox, &["c.apr", "-i", "table.csv", "--column", "text"]).0, "spam\n");
}

#[test]
fn names_are_those_of_the_metadata() {
    let sandbox = Sandbox::empty();
    sandbox.write("rows.csv", b"id,y,x\n9,0,1\n8,0,-1\n");
    let names = |names: [&str; 2]| Value::Array(names.iter().map(|&name| Value::from(name)).collect());
    let mut metadata = Metadata::default();
    metadata.custom.insert("apr.features".into(), names(["x", "y"]));
    metadata.custom.insert("apr.classes".into(), names(["no", "yes"]));
    let input = Input::Numbers { n_features: 2, accepts: Accepts::Finite };
    let head = classes(Labels::Integers(vec![0, 1]), DecisionRule::Positive, ProbabilityRule::None);
    save(&sandbox, "m.apr", input, vec![linear(&[1.0, 0.0], &[0.0])], head, metadata);
    let found = asked(&sandbox, &["m.apr", "-i", "rows.csv"]);
    assert_eq!(found, ("yes\nno\n".to_owned(), json!("class"), json!(["yes", "no"])));
}

#[test]
fn inspection_names_the_steps_and_warns_of_stored_rows() {
    let sandbox = Sandbox::empty();
    let step = NeighboursStep::new(NeighboursParts {
        k: 1,
        metric: NeighbourMetric::Euclidean,
        weights: KnnWeights::Uniform,
        samples: Table::dense(3, vec![0.0_f64, 1.0, 2.0].into()).unwrap(),
        search: NeighbourSearch::InOrder,
        answer: NeighbourOutput::Values { n_outputs: 1, targets: vec![1.0_f64, 2.0, 3.0].into() },
    });
    let steps = vec![linear(&[1.0, 0.0], &[0.0]), Step::Neighbours(step.unwrap())];
    let input = Input::Numbers { n_features: 2, accepts: Accepts::Finite };
    save(&sandbox, "m.apr", input, steps, rows(ValueKind::Predictions), Metadata::default());
    let ran = sandbox.run(&["inspect", "m.apr", "--verify"]);
    assert!(ran.stdout.contains("2 features, 2 steps: linear, neighbours\n"), "{}", ran.stdout);
    let (_, value) = sandbox.json(&["inspect", "m.apr", "--verify"]);
    assert_eq!(value["verified"]["steps"], json!(["linear", "neighbours"]));
    assert_eq!(value["verified"]["stored_samples"], 3);
    assert!(value["warnings"].to_string().contains("3 rows of training data"), "{value}");
}
