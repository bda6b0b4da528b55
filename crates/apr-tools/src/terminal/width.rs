//! Width of text in terminal columns.

/// Columns of a text whose control characters are escaped.
pub(crate) fn of(text: &str) -> usize {
    text.chars().map(of_char).sum()
}

/// Wide characters of East Asian scripts and emoji take two columns, combining marks none: the blocks of Unicode that matter
/// for names, not the whole of UAX #11.
pub(crate) const fn of_char(c: char) -> usize {
    match c {
        '\0'..='\u{2ff}' => 1,
        '\u{300}'..='\u{36f}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' => 0,
        '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' => 0,
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{303e}' | '\u{3041}'..='\u{4dbf}' => 2,
        '\u{4e00}'..='\u{a4cf}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7a3}' => 2,
        '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}' => 2,
        '\u{1f300}'..='\u{1f64f}' | '\u{1f680}'..='\u{1f6ff}' | '\u{1f900}'..='\u{1f9ff}' => 2,
        '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// At most `max` columns of a text: its beginning and its end with `ellipsis` between them, neither cut inside a number.
pub(crate) fn shorten(text: &str, max: usize, ellipsis: &str) -> String {
    if of(text) <= max {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let columns = max.saturating_sub(of(ellipsis));
    // The end tells names apart better than the beginning does, and gets the odd column.
    let (head, tail) = (fitting(chars.iter(), columns / 2), fitting(chars.iter().rev(), columns.div_ceil(2)));
    let (mut head, mut tail) = (head, chars.len() - tail);
    let digit = |idx: usize| chars.get(idx).is_some_and(char::is_ascii_digit);
    while head > 0 && digit(head) && digit(head - 1) {
        head -= 1;
    }
    while tail < chars.len() && digit(tail) && digit(tail.wrapping_sub(1)) {
        tail += 1;
    }
    chars[..head].iter().collect::<String>() + ellipsis + &chars[tail..].iter().collect::<String>()
}

/// Number of characters that fit into `columns` columns.
fn fitting<'a>(chars: impl Iterator<Item = &'a char>, columns: usize) -> usize {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += of_char(**c);
            used <= columns
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns_and_marks_none() {
        for (text, columns) in
            [("abc", 3), ("é", 1), ("e\u{301}", 1), ("重み", 4), ("가", 2), ("🙂", 2), ("├─", 2)]
        {
            assert_eq!(of(text), columns, "{text}");
        }
    }

    #[test]
    fn names_keep_beginning_and_end() {
        assert_eq!(shorten("short", 5, "…"), "short");
        assert_eq!(shorten("model.layers.up_proj.weight", 15, "…"), "model.l….weight");
        assert_eq!(shorten("model.layers.up_proj.weight", 15, "..."), "model....weight");
        assert_eq!(shorten("重みの名前です", 9, "…"), "重み…です");
        assert_eq!(shorten("name", 0, "…"), "…");
    }

    #[test]
    fn numbers_are_not_cut() {
        assert_eq!(shorten("layer.12345.weight.x", 15, "…"), "layer.…eight.x");
        for max in 4..24 {
            let short = shorten("blk.1234567.w.7654321 x24", max, "…");
            assert!(of(&short) <= max, "{short}");
            let digits = |c: char| !c.is_ascii_digit();
            for number in short.split(digits).filter(|part| !part.is_empty()) {
                assert!(["1234567", "7654321", "24"].contains(&number), "{short}");
            }
        }
    }
}
