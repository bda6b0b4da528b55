//! Texts as the input of pipelines: what scikit-learn says of the same, and what is refused.

use apr_models::{
    AccentFold, CharacterClass, HangulRule, Head, Input, LetterCase, LinearStep, Link, OtherCharacters,
    OutputShape, Pipeline, RowNorm, Step, TermCount, TermFrequency, TextInput, TextParts, TextTerms,
    TfIdfWeights, ValueKind, Vocabulary,
};

use crate::pipeline::{Fields, ask_anything, survives_damage};

fn rows() -> Head {
    Head::Values { kind: ValueKind::Transformed, link: Link::None, shape: OutputShape::Matrix }
}

fn class(bounds: &[u32]) -> CharacterClass {
    CharacterClass::from_bounds(bounds.to_vec()).unwrap()
}

fn parts(terms: TextTerms, vocabulary: &[&str]) -> TextParts {
    TextParts {
        case: LetterCase::Lower,
        accents: None,
        terms,
        ngram_min: 1,
        ngram_max: 1,
        stop_words: Vocabulary::default(),
        vocabulary: Vocabulary::from_sorted(vocabulary.iter().copied()).unwrap(),
        columns: None,
        counts: TermCount::Every,
    }
}

/// What `unicodedata` decomposes of the characters below, without the marks that combine; as the exporter writes it.
const ACCENTS: [(char, &str); 34] = [
    ('\u{b2}', "2"),
    ('\u{bd}', "1\u{2044}2"),
    ('\u{c0}', "A"),
    ('\u{c5}', "A"),
    ('\u{c9}', "E"),
    ('\u{ce}', "I"),
    ('\u{d5}', "O"),
    ('\u{dc}', "U"),
    ('\u{e0}', "a"),
    ('\u{e5}', "a"),
    ('\u{e9}', "e"),
    ('\u{ee}', "i"),
    ('\u{ef}', "i"),
    ('\u{f5}', "o"),
    ('\u{f6}', "o"),
    ('\u{fc}', "u"),
    ('\u{149}', "\u{2bc}n"),
    ('\u{17f}', "s"),
    ('\u{1c4}', "DZ"),
    ('\u{1c6}', "dz"),
    ('\u{301}', ""),
    ('\u{302}', ""),
    ('\u{307}', ""),
    ('\u{1e00}', "A"),
    ('\u{1e01}', "a"),
    ('\u{2026}', "..."),
    ('\u{2116}', "No"),
    ('\u{2460}', "1"),
    ('\u{2461}', "2"),
    ('\u{fb01}', "fi"),
    ('\u{ff46}', "f"),
    ('\u{ff4c}', "l"),
    ('\u{ff55}', "u"),
    ('\u{ff56}', "v"),
];

fn unicode() -> AccentFold {
    AccentFold::new(ACCENTS, HangulRule::Letters, OtherCharacters::Stay).unwrap()
}

/// What is not ASCII goes, also from what characters become.
fn ascii() -> AccentFold {
    let ascii = ACCENTS.map(|(from, to)| (from, to.chars().filter(char::is_ascii).collect::<String>()));
    AccentFold::new(ascii, HangulRule::Whole, OtherCharacters::DropNonAscii).unwrap()
}

const TEXTS: [&str; 5] = [
    "\u{c5}ngstr\u{f6}m caf\u{e9} na\u{ef}ve",
    "\u{fb01}anc\u{e9}e \u{c0}\u{c9}\u{ce}\u{d5}\u{dc} \u{df} Stra\u{df}e",
    "\u{d55c}\u{ae00} \u{ac00}\u{ac01} \u{ff46}\u{ff55}\u{ff4c}\u{ff4c} \u{2460}\u{2461}",
    "e\u{301}te\u{301} \u{bd} \u{b2}x \u{2116}5 \u{2026}",
    "\u{1e00}\u{302} \u{1c4} \u{149} \u{130}stanbul \u{17f}",
];

/// `strip_accents_unicode` and `strip_accents_ascii` of scikit-learn 1.9.1.
#[test]
fn accents_go_as_in_scikit_learn() {
    let (unicode, ascii) = (unicode(), ascii());
    let expected = [
        ("angstrom cafe naive", "angstrom cafe naive"),
        ("fiancee aeiou \u{df} stra\u{df}e", "fiancee aeiou  strae"),
        (
            "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af} \u{1100}\u{1161}\u{1100}\u{1161}\u{11a8} full 12",
            "  full 12",
        ),
        ("ete 1\u{2044}2 2x No5 ...", "ete 12 2x No5 ..."),
        ("a dz \u{2bc}n istanbul s", "a dz n istanbul s"),
    ];
    for (text, (with_letters, with_ascii)) in TEXTS.iter().zip(expected) {
        let lower = text.to_lowercase();
        assert_eq!(unicode.apply(&lower), with_letters);
        assert_eq!(ascii.apply(&lower), with_ascii);
    }
}

/// `CountVectorizer(strip_accents=...)` fitted on the texts; every count is 0 or 1.
#[test]
fn counts_behind_accents_are_those_of_scikit_learn() {
    // The characters that `\w` matches in these strings.
    let letters =
        || class(&[0x30, 0x3A, 0x41, 0x5B, 0x5F, 0x60, 0x61, 0x7B, 0xDF, 0xE0, 0x2BC, 0x2BD, 0x1100, 0x1200]);
    let with_letters: &[&str] = &[
        "12",
        "2x",
        "No5",
        "aeiou",
        "angstrom",
        "cafe",
        "dz",
        "ete",
        "fiancee",
        "full",
        "istanbul",
        "naive",
        "stra\u{df}e",
        "\u{2bc}n",
        "\u{1100}\u{1161}\u{1100}\u{1161}\u{11a8}",
        "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}",
    ];
    let with_ascii: &[&str] = &[
        "12", "2x", "No5", "aeiou", "angstrom", "cafe", "dz", "ete", "fiancee", "full", "istanbul", "naive",
        "strae",
    ];
    for (accents, vocabulary, expected) in [
        (unicode(), with_letters, [&[4, 5, 11][..], &[3, 8, 12], &[0, 9, 14, 15], &[1, 2, 7], &[6, 10, 13]]),
        (ascii(), with_ascii, [&[4, 5, 11][..], &[3, 8, 12], &[0, 9], &[0, 1, 2, 7], &[6, 10]]),
    ] {
        let terms = TextTerms::Words { class: letters(), least: 2, edges: Some(letters()) };
        let input = TextInput::new(TextParts { accents: Some(accents), ..parts(terms, vocabulary) }).unwrap();
        assert_eq!(input.terms(), vocabulary);
        let counts = input.count(&TEXTS);
        for (row, expected) in counts.rows().zip(expected) {
            assert_eq!(row.columns(), expected);
            assert!(row.values().iter().all(|&count| count == 1.0));
        }
    }
}

/// The fields of an input of words in front of its vocabulary.
fn begun(bounds: &[u32], least: u64, lengths: [u64; 2], stop_words: &[&str]) -> Fields {
    Fields::default()
        .u32(1)
        .u32(1)
        .u32(1)
        .bytes(&[1, 0])
        .u32(0)
        .u32s(bounds)
        .u64(least)
        .bytes(&[0])
        .u64(lengths[0])
        .u64(lengths[1])
        .texts(stop_words)
}

/// No columns, all counts, no steps, the head of rows.
fn ended(fields: Fields) -> Fields {
    fields.bytes(&[0, 0]).u64(0).rows()
}

#[test]
fn bytes_are_those_of_the_page() {
    let accents = AccentFold::new([('\u{e9}', "e")], HangulRule::Letters, OtherCharacters::DropNonAscii);
    let terms = TextTerms::Words { class: class(&[0x61, 0x7B]), least: 2, edges: Some(class(&[0x30, 0x3A])) };
    let made = TextParts {
        case: LetterCase::Keep,
        accents: Some(accents.unwrap()),
        ngram_max: 2,
        stop_words: Vocabulary::from_texts(["or"]).unwrap(),
        columns: Some(vec![1, 0]),
        counts: TermCount::Once,
        ..parts(terms, &["be", "to be"])
    };
    let input = TextInput::new(made).unwrap();
    assert_eq!(input.terms(), ["to be", "be"]);
    let model = Pipeline::from_parts(Input::Texts(input.into()), vec![], rows()).unwrap();
    let expected = Fields::default()
        .u32(1)
        .u32(1)
        .u32(1)
        .bytes(&[0, 1])
        .u32s(&[0xE9])
        .texts(&["e"])
        .bytes(&[1])
        .u32(1)
        .u32(0)
        .u32s(&[0x61, 0x7B])
        .u64(2)
        .bytes(&[1])
        .u32s(&[0x30, 0x3A])
        .u64(1)
        .u64(2)
        .texts(&["or"])
        .texts(&["be", "to be"])
        .bytes(&[1])
        .u32s(&[1, 0])
        .bytes(&[1])
        .u64(0)
        .rows();
    let payload =
        apr_container::encode_payload_to_vec(&model, apr_container::PayloadLayout::default()).unwrap();
    assert_eq!(payload, expected.0);
    assert_eq!(expected.read().unwrap(), model);
}

#[test]
fn forged_texts_are_refused() {
    let letters = [0x61, 0x7B];
    let with = |texts: &[&str]| ended(begun(&letters, 1, [1, 1], &[]).texts(texts));
    let lengths = |lengths| ended(begun(&letters, 1, lengths, &[]).texts(&["a"]));
    let bounds = |bounds: &[u32]| ended(begun(bounds, 1, [1, 1], &[]).texts(&["a"]));
    let columns = |columns: &[u32]| {
        let fields = begun(&letters, 1, [1, 1], &[]).texts(&["a", "b", "c"]).bytes(&[1]);
        fields.u32s(columns).bytes(&[0]).u64(0).rows()
    };
    let start = || begun(&letters, 1, [1, 1], &[]);
    let folded = |from: &[u32], to: &[&str]| {
        let fields = Fields::default().u32(1).u32(1).u32(1).bytes(&[1, 1]).u32s(from).texts(to).bytes(&[0]);
        ended(fields.u32(0).u32(1).u64(1).u64(1).texts(&[]).texts(&["a"]))
    };
    let characters = |stop_words: &[&str]| {
        let fields = Fields::default().u32(1).u32(1).u32(1).bytes(&[1, 0]).u32(1).u64(1).u64(1);
        ended(fields.texts(stop_words).texts(&["a"]))
    };
    for sound in
        [with(&["a", "b"]), lengths([1, 64]), columns(&[2, 0, 1]), characters(&[]), folded(&[0xE9], &["e"])]
    {
        sound.read().unwrap();
    }
    let long = "x".repeat(65);
    for (fields, code, why) in [
        (lengths([0, 1]), "am-part", "terms of nothing"),
        (lengths([2, 1]), "am-part", "the least above the most"),
        (lengths([1, 65]), "am-part", "terms of 65"),
        (lengths([1, u64::MAX]), "am-part", "terms of all"),
        (ended(begun(&letters, 0, [1, 1], &[]).texts(&["a"])), "am-part", "words of nothing"),
        (with(&[]), "am-part", "no terms"),
        (with(&["b", "a"]), "am-part", "terms out of order"),
        (with(&["a", "a"]), "am-part", "a term twice"),
        (with(&["", "a"]), "am-part", "an empty term"),
        (ended(begun(&letters, 1, [1, 1], &["b", "a"]).texts(&["a"])), "am-part", "stop words out of order"),
        (characters(&["a"]), "am-part", "stop words where there are no words"),
        (bounds(&[0x61]), "am-part", "half a range"),
        (bounds(&[0x7B, 0x61]), "am-part", "a range backwards"),
        (bounds(&[0x61, 0x61]), "am-part", "an empty range"),
        (bounds(&[0x61, 0x11_0001]), "am-part", "a range beyond Unicode"),
        (columns(&[0, 1, 2]), "ac-value", "columns in order"),
        (columns(&[1, 1, 0]), "am-part", "a column twice"),
        (columns(&[2, 0, 3]), "am-part", "a column that is not there"),
        (columns(&[1, 0]), "am-part-length", "a column too few"),
        (folded(&[0x65], &["e"]), "am-part", "ASCII that becomes something"),
        (folded(&[0xE9, 0xE8], &["e", "e"]), "am-part", "characters out of order"),
        (folded(&[0xD800], &["e"]), "am-part", "half a character"),
        (folded(&[0x11_0000], &["e"]), "am-part", "a character beyond Unicode"),
        (folded(&[0xE9], &[]), "am-part-length", "a character that becomes nothing known"),
        (folded(&[0xE9], &[&long]), "am-part", "a character that becomes 65 bytes"),
        (start().u64(u64::MAX), "ac-count", "more terms than bytes"),
        (start().u64(1).u64(1 << 62), "ac-count", "a term longer than the bytes"),
        (ended(start().u64(1).u64(1).bytes(&[0xFF])), "ac-utf8", "a term that is not UTF-8"),
        (start().texts(&["a"]).bytes(&[1]).u64(1 << 62), "ac-count", "more columns than bytes"),
        (start().texts(&["a"]).bytes(&[2]), "ac-option", "neither columns nor none"),
        (Fields::default().u32(1).u32(1).u32(1).bytes(&[1, 0]).u32(3), "ac-variant", "unknown terms"),
        (Fields::default().u32(1).u32(1).u32(2), "ac-variant", "an unknown input"),
    ] {
        let found = fields.read().unwrap_err();
        assert_eq!(found.code(), code, "{why}: {found}");
    }
}

#[test]
fn damage_is_refused_or_read_as_other_texts() {
    let letters = class(&[0x61, 0x7B, 0xE9, 0xEA]);
    let words = TextTerms::Words { class: letters.clone(), least: 1, edges: Some(letters) };
    let accents =
        AccentFold::new([('\u{e9}', "e"), ('\u{fb01}', "fi")], HangulRule::Letters, OtherCharacters::Stay);
    let words = TextParts {
        accents: Some(accents.unwrap()),
        ngram_max: 2,
        stop_words: Vocabulary::from_texts(["or"]).unwrap(),
        columns: Some(vec![2, 0, 1]),
        ..parts(words, &["be", "to", "to be"])
    };
    let weigh =
        TfIdfWeights::new(TermFrequency::Logarithm, RowNorm::L2, Some(vec![1.0_f64, 1.5, 2.0].into()));
    let linear = LinearStep::new(2, vec![0.1_f64, 0.2, 0.3, 0.4, 0.5, 0.6].into(), vec![0.0_f64, 1.0].into());
    let steps = vec![Step::TfIdfWeights(weigh.unwrap()), Step::Linear(linear.unwrap())];
    let characters =
        TextParts { ngram_min: 2, ngram_max: 3, ..parts(TextTerms::CharactersInWords, &[" a", "be ", "to"]) };
    for (parts, steps) in
        [(words, steps), (characters, vec![]), (parts(TextTerms::Characters, &["b", "\u{e9}"]), vec![])]
    {
        let input = Input::Texts(TextInput::new(parts).unwrap().into());
        survives_damage(&Pipeline::from_parts(input, steps, rows()).unwrap(), ask_anything);
    }
}
