use apr_models::*;

#[test]
fn characters_become_what_is_said_of_them() {
    let pairs = [('ä', "a"), ('\u{301}', ""), ('Ａ', "A")];
    let stay = AccentFold::new(pairs, HangulRule::Letters, OtherCharacters::Stay).unwrap();
    assert_eq!(stay.apply("aäe\u{301}Ａß"), "aaeAß");
    // As `unicodedata.normalize("NFKD", ...)` has them.
    assert_eq!(stay.apply("가각힣"), "\u{1100}\u{1161}\u{1100}\u{1161}\u{11A8}\u{1112}\u{1175}\u{11C2}");
    let drop = AccentFold::new(pairs, HangulRule::Letters, OtherCharacters::DropNonAscii).unwrap();
    assert_eq!(drop.apply("aäe\u{301}Ａß가\u{7F}"), "aaeA\u{7F}");
    let whole = AccentFold::new(pairs, HangulRule::Whole, OtherCharacters::Stay).unwrap();
    assert_eq!(whole.apply("가"), "가");
}

#[test]
fn replacements_out_of_order_are_refused() {
    for pairs in [vec![('b', "x")], vec![('ä', "x"), ('ä', "y")], vec![('ö', "x"), ('ä', "y")]] {
        assert!(AccentFold::new(pairs, HangulRule::Whole, OtherCharacters::Stay).is_err());
    }
    for (len, possible) in [(64, true), (65, false)] {
        let pairs = [('ä', "x".repeat(len))];
        assert_eq!(AccentFold::new(pairs, HangulRule::Whole, OtherCharacters::Stay).is_ok(), possible);
    }
}
