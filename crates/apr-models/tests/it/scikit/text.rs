//! Vectorizers.

use apr_models::{
    CountVectorizer, CountVectorizerOptions, DocumentCount, InverseFrequency, LetterCase, RowNorm,
    SparseRows, TermCount, TermFrequency, TextRules, TfIdf, TfIdfOptions, TfIdfParts, TokenRule, Vocabulary,
};
use serde_json::Value;

use super::{Case, cases, file, floats, number, reloaded, whole, wholes, wide};

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn documents(value: &Value) -> DocumentCount {
    // There a share is written with a point.
    match value.as_u64() {
        Some(count) => DocumentCount::Number(usize::try_from(count).unwrap()),
        None => DocumentCount::Fraction(value.as_f64().unwrap()),
    }
}

fn options(case: &Case) -> CountVectorizerOptions {
    let params = &case.case["params"];
    let rules = TextRules {
        case: if params["lowercase"] == true { LetterCase::Lower } else { LetterCase::Keep },
        tokens: match params["token_pattern"].as_str().unwrap() {
            r"(?u)\b\w\w+\b" => TokenRule::LongWords,
            r"(?u)\b\w+\b" => TokenRule::Words,
            other => panic!("{other}"),
        },
        ngram_min: whole(&params["ngram_range"][0]),
        ngram_max: whole(&params["ngram_range"][1]),
        counts: if params["binary"] == true { TermCount::Once } else { TermCount::Every },
        stop_words: match &params["stop_words"] {
            Value::Null => Vocabulary::default(),
            words => Vocabulary::from_texts(texts(words)).unwrap(),
        },
    };
    CountVectorizerOptions {
        rules,
        min_documents: documents(&params["min_df"]),
        max_documents: documents(&params["max_df"]),
        max_terms: params["max_features"].as_u64().map(|count| usize::try_from(count).unwrap()),
    }
}

/// Proves that rows hold values in the expected places; returns the values and those expected.
fn check_places(case: &Case, rows: &SparseRows, expected: &Value) -> (Vec<f64>, Vec<f32>) {
    assert_eq!((rows.n_rows(), rows.n_cols()), (whole(&expected["rows"]), whole(&expected["cols"])));
    let places: Vec<(usize, usize)> = rows
        .rows()
        .enumerate()
        .flat_map(|(row, values)| values.iter().map(move |(col, _)| (row, col)))
        .collect();
    let expected_places: Vec<(usize, usize)> =
        wholes(&expected["row"]).into_iter().zip(wholes(&expected["col"])).collect();
    assert_eq!(places, expected_places, "{}", case.name());
    (wide(rows.values()), floats(&expected["value"]))
}

#[test]
fn counts_are_those_of_there() {
    let corpus = file("corpus");
    for case in cases("count_vectorizer") {
        let vocabulary = Vocabulary::from_sorted(texts(case.part("vocabulary"))).unwrap();
        let given = CountVectorizer::from_parts(vocabulary, options(&case).rules).unwrap();
        let trained = CountVectorizer::fit(&texts(&corpus["documents"]), &options(&case)).unwrap();
        assert_eq!(trained, given, "{}", case.name());
        let model = reloaded(trained, CountVectorizer::from_tensors);
        for name in ["documents", "unseen"] {
            let rows = model.transform(texts(&corpus[name]));
            let (found, expected) = check_places(&case, &rows, case.expected(name));
            assert_eq!(found, wide(&expected), "{}", case.name());
        }
    }
}

#[test]
fn weights_are_those_of_there() {
    let corpus = file("corpus");
    for case in cases("tfidf_vectorizer") {
        let params = &case.case["params"];
        let frequency =
            if params["sublinear_tf"] == true { TermFrequency::Logarithm } else { TermFrequency::Count };
        let norm = match params["norm"].as_str() {
            None => RowNorm::None,
            Some("l1") => RowNorm::L1,
            Some("l2") => RowNorm::L2,
            Some(other) => panic!("{other}"),
        };
        let inverse = match (params["use_idf"] == true, params["smooth_idf"] == true) {
            (false, _) => InverseFrequency::None,
            (true, false) => InverseFrequency::Plain,
            (true, true) => InverseFrequency::Smooth,
        };
        let counts = options(&case);
        let trained = TfIdfOptions { counts: counts.clone(), frequency, inverse, norm };
        let trained = TfIdf::fit(&texts(&corpus["documents"]), &trained).unwrap();
        let idf = case.part("idf");
        match trained.idf() {
            Some(found) => case.close("idf", &wide(found), idf),
            None => assert!(idf.is_null()),
        }
        let vocabulary = Vocabulary::from_sorted(texts(case.part("vocabulary"))).unwrap();
        let idf = (!idf.is_null()).then(|| idf.as_array().unwrap().iter().map(number).collect());
        let given = CountVectorizer::from_parts(vocabulary, counts.rules).unwrap();
        let given = TfIdf::from_parts(given, TfIdfParts { frequency, norm, idf }).unwrap();
        assert_eq!(trained.vocabulary(), given.vocabulary());
        for model in [reloaded(trained, TfIdf::from_tensors), reloaded(given, TfIdf::from_tensors)] {
            for name in ["documents", "unseen"] {
                let rows = model.transform(texts(&corpus[name]));
                let (found, _) = check_places(&case, &rows, case.expected(name));
                case.close_by(name, "transform", &found, &case.expected(name)["value"]);
            }
        }
    }
}
