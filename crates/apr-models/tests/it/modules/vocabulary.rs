use apr_models::*;

#[test]
fn every_text_is_found_and_no_other() {
    let words = Vocabulary::from_texts(["b", "a", "aa", "ä", "b", "Z"]).unwrap();
    assert_eq!(words.iter().collect::<Vec<_>>(), ["Z", "a", "aa", "b", "ä"]);
    for (number, word) in words.iter().enumerate() {
        assert_eq!(words.find(word), Some(number as u32));
        assert_eq!(words.get(number), Some(word));
    }
    assert_eq!((words.find(""), words.find("c"), words.get(5)), (None, None, None));
    assert_eq!(Vocabulary::default().find("a"), None);
}

#[test]
fn disorder_repetition_and_emptiness_are_refused() {
    for texts in [&["b", "a"][..], &["a", "a"], &[""], &["a", ""]] {
        assert_eq!(Vocabulary::from_sorted(texts).unwrap_err().code(), "am-part");
    }
}
