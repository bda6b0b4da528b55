//! Style of text: colours, characters, width.

use std::env;
use std::ffi::OsStr;

use crate::terminal::{table, width};

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    #[default]
    Auto,
    Always,
    Never,
}

/// Which characters lines and bars are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Glyphs {
    Unicode,
    Ascii,
}

/// Colours text or leaves it as it is, draws, and knows how much fits into a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    colored: bool,
    glyphs: Glyphs,
    /// Columns of the terminal; `None` without one.
    width: Option<usize>,
}

impl Style {
    pub(crate) const PLAIN: Self = Self { colored: false, glyphs: Glyphs::Unicode, width: None };

    /// The style of a stream, given whether it is a terminal and how many columns that has. `NO_COLOR`, if set and not
    /// empty, and a dumb terminal turn `auto` off; an explicit choice wins over both.
    pub(super) fn choose(choice: ColorChoice, is_terminal: bool, width: Option<usize>) -> Self {
        let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").as_deref() == Some(OsStr::new("dumb"));
        let colored = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !set("NO_COLOR") && !dumb,
        };
        Self { colored, glyphs: glyphs(|name| env::var(name).ok()), width }
    }

    /// The same for a terminal of this width.
    #[cfg(test)]
    pub(crate) const fn with_width(self, width: usize) -> Self {
        Self { width: Some(width), ..self }
    }

    /// The same in ASCII alone.
    #[cfg(test)]
    pub(crate) const fn in_ascii(self) -> Self {
        Self { glyphs: Glyphs::Ascii, ..self }
    }

    /// Columns of the terminal; `None` without one.
    pub(crate) const fn width(self) -> Option<usize> {
        self.width
    }

    /// At most `max` columns of a text, with an ellipsis in its middle.
    pub(crate) fn shorten(self, text: &str, max: usize) -> String {
        width::shorten(text, max, self.by_glyphs("…", "..."))
    }

    /// Text as lines that fit into the terminal after `indent` columns.
    pub(crate) fn wrap(self, text: &str, indent: usize) -> Vec<String> {
        match self.width {
            Some(width) if width > indent => table::wrap(text, width - indent, 0),
            _ => vec![text.to_owned()],
        }
    }

    /// The prefix of an entry of a tree, and of the entries below it.
    pub(crate) fn branch(self, is_last: bool) -> (&'static str, &'static str) {
        match is_last {
            true => (self.by_glyphs("└─ ", "`- "), "   "),
            false => (self.by_glyphs("├─ ", "|- "), self.by_glyphs("│  ", "|  ")),
        }
    }

    /// A bar as long as the share of `whole` in `cells`.
    pub(crate) fn bar(self, part: u64, whole: u64, cells: usize) -> String {
        const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        if whole == 0 {
            return String::new();
        }
        let cells_filled = (part as f64 / whole as f64).min(1.0) * cells as f64;
        match self.glyphs {
            Glyphs::Unicode => {
                let eighths = (cells_filled * 8.0).round() as usize;
                "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
            }
            Glyphs::Ascii => "#".repeat(cells_filled.round() as usize),
        }
    }

    /// A block of some eighths of a line's height, 8 at most, and of this width.
    pub(crate) fn block(self, eighths: usize, width: usize) -> String {
        const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
        let glyph = match self.glyphs {
            Glyphs::Unicode => EIGHTHS[eighths.min(8)],
            Glyphs::Ascii if eighths > 0 => "#",
            Glyphs::Ascii => " ",
        };
        glyph.repeat(width)
    }

    /// A line of a chart behind its axis.
    pub(crate) fn axis(self, line: &str) -> String {
        format!("{}{line}", self.by_glyphs("│", "|"))
    }

    /// The bar, padded to all its cells.
    pub(crate) fn full_bar(self, part: u64, whole: u64, cells: usize) -> String {
        let bar = self.bar(part, whole, cells);
        let rest = self.by_glyphs(" ", ".").repeat(cells - width::of(&bar));
        bar + &rest
    }

    fn by_glyphs(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        match self.glyphs {
            Glyphs::Unicode => unicode,
            Glyphs::Ascii => ascii,
        }
    }

    pub(crate) const fn is_plain(self) -> bool {
        !self.colored
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colored { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// ASCII if the locale names a character set other than UTF-8, as `LC_ALL=C` does. Without any locale variable nothing is known,
/// and terminals of today show UTF-8.
fn glyphs(variable: impl Fn(&str) -> Option<String>) -> Glyphs {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let Some(locale) = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set) else {
        return Glyphs::Unicode;
    };
    let locale = locale.to_ascii_lowercase();
    let charset = locale.split_once('.').map(|(_, charset)| charset);
    match charset {
        Some(charset) if charset.starts_with("utf-8") || charset.starts_with("utf8") => Glyphs::Unicode,
        None if locale != "c" && locale != "posix" => Glyphs::Unicode,
        _ => Glyphs::Ascii,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_decides_about_box_characters() {
        let of = |variables: &[(&str, &str)]| {
            glyphs(|name| {
                variables.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[]), Glyphs::Unicode);
        assert_eq!(of(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]), Glyphs::Ascii);
        assert_eq!(of(&[("LC_ALL", ""), ("LANG", "en_US.UTF-8")]), Glyphs::Unicode);
        for ascii in ["C", "POSIX", "de_DE.ISO-8859-1", "ja_JP.eucJP"] {
            assert_eq!(of(&[("LANG", ascii)]), Glyphs::Ascii, "{ascii}");
        }
        for unicode in ["C.UTF-8", "C.utf8", "en_US", "de_DE.UTF-8@euro"] {
            assert_eq!(of(&[("LC_CTYPE", unicode)]), Glyphs::Unicode, "{unicode}");
        }
    }

    #[test]
    fn bars_show_the_share() {
        let bar = |part, whole| Style::PLAIN.bar(part, whole, 12);
        assert_eq!(bar(1, 1), "█".repeat(12));
        assert_eq!(bar(1, 96), "▏");
        assert_eq!((bar(1, 1_000_000), bar(0, 1), bar(0, 0)), (String::new(), String::new(), String::new()));
        assert_eq!(Style::PLAIN.in_ascii().full_bar(1, 4, 12), "###.........");
        assert_eq!(Style::PLAIN.full_bar(1, 4, 8), "██      ");
    }
}
