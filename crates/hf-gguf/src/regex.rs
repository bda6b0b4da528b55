//! Regular expressions of tokenizers, matched by backtracking.
//!
//! The syntax is that of Oniguruma (RE, version 6.9), which the library `tokenizers` uses, without groups that are referred to. Only the one text
//! that identifies pre-tokenizers is matched, so the classes of its characters are the only ones needed
//! ([`characters`](crate::characters)), and a library with tables of all of Unicode, which has 2 MB of code, is not.

mod class;
mod parse;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use self::class::Class;
use located_error::cut;

/// Units of work for one text: a thousand times what the slowest known tokenizer needs.
const WORK: u64 = 10_000_000;
/// Ways to go back that a regular expression may remember.
const MAX_STACK: usize = 1 << 18;
/// Most instructions of a program: `{1,512}` repeats what is before it.
const MAX_INSTRUCTIONS: usize = 20_000;
/// Most parts that are looked at to make a program: those of what is repeated count each time, also if they need no instruction.
const MAX_VISITS: usize = 1_000_000;

/// What is not implemented, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing(pub(crate) Box<str>);

impl Missing {
    pub(crate) fn new(what: &str) -> Self {
        Self(cut(what, 256).into())
    }
}

/// The work that is left.
#[derive(Debug)]
pub(crate) struct Budget(u64);

impl Default for Budget {
    fn default() -> Self {
        Self(WORK)
    }
}

impl Budget {
    /// For many short texts.
    pub(crate) const fn for_tokens() -> Self {
        Self(100 * WORK)
    }

    pub(crate) fn take(&mut self, work: u64) -> Result<(), Missing> {
        self.0 =
            self.0.checked_sub(work).ok_or_else(|| Missing::new("a tokenizer that needs so much work"))?;
        Ok(())
    }

    fn check_stack(len: usize) -> Result<(), Missing> {
        if len < MAX_STACK {
            Ok(())
        } else {
            Err(Missing::new("a regular expression that needs so much memory"))
        }
    }
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) struct Regex {
    program: Vec<Instruction>,
    n_marks: usize,
    n_visits: usize,
}

/// A part of an expression.
#[derive(Clone, Debug)]
enum Node {
    /// Shared with the instructions: repetitions copy the node.
    Class(Arc<Class>),
    Sequence(Vec<Self>),
    Alternatives(Vec<Self>),
    Repeat {
        node: Box<Self>,
        min: u32,
        max: Option<u32>,
        mode: Mode,
    },
    Look {
        node: Box<Self>,
        side: Side,
        is_negative: bool,
    },
    Atomic(Box<Self>),
    Assert(Assertion),
}

/// How often a repetition prefers to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Greedy,
    Lazy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Ahead,
    Behind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Assertion {
    LineBegin,
    LineEnd,
    TextBegin,
    TextEnd,
    TextEndOrLastLine,
    WordBoundary,
    NoWordBoundary,
}

#[derive(Clone, Debug)]
enum Instruction {
    /// With the number of its items.
    Class(Arc<Class>, u64),
    Assert(Assertion),
    Jump(usize),
    /// Continues at the first; at the second if that fails.
    Split(usize, usize),
    /// Remembers the position.
    Mark(usize),
    /// Continues at `exit` if the position is still the one of the mark: a repetition of nothing ends.
    Progress {
        mark: usize,
        exit: usize,
    },
    /// Matches what follows up to `end`, and moves to its end.
    Atomic {
        end: usize,
    },
    /// Checks what follows up to `end`, and does not move.
    Look {
        end: usize,
        side: Side,
        is_negative: bool,
    },
    /// The end of the program, or of the part that an instruction names.
    Done,
}

/// What is tried when a path fails.
enum Fallback {
    Branch { at: usize, pos: usize },
    Restore { mark: usize, pos: usize },
}

impl Regex {
    /// Compiles an expression.
    pub(crate) fn new(pattern: &str) -> Result<Self, Missing> {
        let node = parse::parse(pattern)?;
        let mut regex = Self { program: Vec::new(), n_marks: 0, n_visits: 0 };
        regex.compile(&node)?;
        regex.push(Instruction::Done)?;
        Ok(regex)
    }

    /// An expression that matches this text.
    pub(crate) fn literal(text: &str) -> Result<Self, Missing> {
        let mut regex = Self { program: Vec::new(), n_marks: 0, n_visits: 0 };
        for c in text.chars() {
            regex.push(Instruction::Class(Class::of(c).into(), 1))?;
        }
        regex.push(Instruction::Done)?;
        Ok(regex)
    }

    /// Where the expression matches, from left to right without overlaps, in characters. As the library does, an empty match that
    /// follows a match at once is passed over.
    pub(crate) fn matches(&self, text: &[char], budget: &mut Budget) -> Result<Vec<(usize, usize)>, Missing> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        let mut from = 0;
        while from <= text.len() {
            let Some((begin, end)) = self.search(text, from, budget)? else { break };
            if begin == end && found.last().is_some_and(|last| last.1 == end) {
                from += 1;
                continue;
            }
            budget.take(1)?;
            found.push((begin, end));
            from = end;
        }
        Ok(found)
    }

    fn search(
        &self,
        text: &[char],
        from: usize,
        budget: &mut Budget,
    ) -> Result<Option<(usize, usize)>, Missing> {
        for begin in from..=text.len() {
            if let Some(end) = self.run(0, text, begin, None, budget)? {
                return Ok(Some((begin, end)));
            }
        }
        Ok(None)
    }

    /// Where a match of the part of the program at `at` ends that begins at `pos`; it has to end at `end`, if that is given.
    fn run(
        &self,
        mut at: usize,
        text: &[char],
        mut pos: usize,
        end: Option<usize>,
        budget: &mut Budget,
    ) -> Result<Option<usize>, Missing> {
        let mut fallbacks: Vec<Fallback> = Vec::new();
        budget.take(self.n_marks as u64)?;
        let mut marks = alloc::vec![usize::MAX; self.n_marks];
        loop {
            budget.take(1)?;
            let next = match &self.program[at] {
                Instruction::Done if end.is_none_or(|end| end == pos) => return Ok(Some(pos)),
                Instruction::Done => None,
                Instruction::Class(class, cost) => {
                    budget.take(*cost)?;
                    let found = text.get(pos).map_or(Ok(false), |c| class.has(*c))?;
                    pos += usize::from(found);
                    found.then_some(at + 1)
                }
                Instruction::Assert(assertion) => assertion.holds(text, pos)?.then_some(at + 1),
                Instruction::Jump(to) => Some(*to),
                Instruction::Split(first, second) => {
                    Budget::check_stack(fallbacks.len())?;
                    fallbacks.push(Fallback::Branch { at: *second, pos });
                    Some(*first)
                }
                Instruction::Mark(mark) => {
                    Budget::check_stack(fallbacks.len())?;
                    fallbacks.push(Fallback::Restore { mark: *mark, pos: marks[*mark] });
                    marks[*mark] = pos;
                    Some(at + 1)
                }
                Instruction::Progress { mark, exit } => {
                    Some(if marks[*mark] == pos { *exit } else { at + 1 })
                }
                Instruction::Atomic { end } => self.run(at + 1, text, pos, None, budget)?.map(|after| {
                    pos = after;
                    *end
                }),
                Instruction::Look { end, side, is_negative } => {
                    let found = match side {
                        Side::Ahead => self.run(at + 1, text, pos, None, budget)?.is_some(),
                        Side::Behind => self.is_behind(at + 1, text, pos, budget)?,
                    };
                    (found != *is_negative).then_some(*end)
                }
            };
            at = match next {
                Some(next) => next,
                None => loop {
                    match fallbacks.pop() {
                        Some(Fallback::Branch { at, pos: before }) => {
                            pos = before;
                            break at;
                        }
                        Some(Fallback::Restore { mark, pos }) => marks[mark] = pos,
                        None => return Ok(None),
                    }
                },
            };
        }
    }

    /// Whether a match of the part at `at` ends at `pos`.
    fn is_behind(&self, at: usize, text: &[char], pos: usize, budget: &mut Budget) -> Result<bool, Missing> {
        for begin in (0..=pos).rev() {
            if self.run(at, text, begin, Some(pos), budget)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Appends an instruction; returns its index.
    fn push(&mut self, instruction: Instruction) -> Result<usize, Missing> {
        if self.program.len() == MAX_INSTRUCTIONS {
            return Err(Missing::new("a regular expression of this size"));
        }
        self.program.push(instruction);
        Ok(self.program.len() - 1)
    }

    fn compile(&mut self, node: &Node) -> Result<(), Missing> {
        self.n_visits += 1;
        if self.n_visits > MAX_VISITS {
            return Err(Missing::new("a regular expression of this size"));
        }
        match node {
            Node::Class(class) => drop(self.push(Instruction::Class(Arc::clone(class), class.cost()))?),
            Node::Assert(assertion) => drop(self.push(Instruction::Assert(*assertion))?),
            Node::Sequence(nodes) => nodes.iter().try_for_each(|node| self.compile(node))?,
            Node::Alternatives(nodes) => self.compile_alternatives(nodes)?,
            Node::Repeat { node, min, max, mode } => self.compile_repeat(node, *min, *max, *mode)?,
            Node::Atomic(node) => {
                let begin = self.push(Instruction::Done)?;
                self.compile(node)?;
                let end = self.push(Instruction::Done)? + 1;
                self.program[begin] = Instruction::Atomic { end };
            }
            Node::Look { node, side, is_negative } => {
                let begin = self.push(Instruction::Done)?;
                self.compile(node)?;
                let end = self.push(Instruction::Done)? + 1;
                self.program[begin] = Instruction::Look { end, side: *side, is_negative: *is_negative };
            }
        }
        Ok(())
    }

    fn compile_alternatives(&mut self, nodes: &[Node]) -> Result<(), Missing> {
        let mut jumps = Vec::new();
        for (idx, node) in nodes.iter().enumerate() {
            if idx + 1 == nodes.len() {
                self.compile(node)?;
                break;
            }
            let split = self.push(Instruction::Done)?;
            self.compile(node)?;
            jumps.push(self.push(Instruction::Done)?);
            self.program[split] = Instruction::Split(split + 1, self.program.len());
        }
        let end = self.program.len();
        for jump in jumps {
            self.program[jump] = Instruction::Jump(end);
        }
        Ok(())
    }

    fn compile_repeat(&mut self, node: &Node, min: u32, max: Option<u32>, mode: Mode) -> Result<(), Missing> {
        for _ in 0..min {
            // Copies of nothing need no instruction: not to be counted one by one.
            let len = self.program.len();
            self.compile(node)?;
            if self.program.len() == len {
                break;
            }
        }
        let Some(max) = max else { return self.compile_star(node, mode) };
        let mut splits = Vec::new();
        for _ in min..max {
            splits.push(self.push(Instruction::Done)?);
            self.compile(node)?;
        }
        let end = self.program.len();
        for split in splits {
            self.program[split] = mode.split(split + 1, end);
        }
        Ok(())
    }

    fn compile_star(&mut self, node: &Node, mode: Mode) -> Result<(), Missing> {
        let mark = self.n_marks;
        self.n_marks += 1;
        let split = self.push(Instruction::Done)?;
        self.push(Instruction::Mark(mark))?;
        self.compile(node)?;
        let progress = self.push(Instruction::Done)?;
        let exit = self.push(Instruction::Jump(split))? + 1;
        self.program[progress] = Instruction::Progress { mark, exit };
        self.program[split] = mode.split(split + 1, exit);
        Ok(())
    }
}

impl Mode {
    const fn split(self, again: usize, exit: usize) -> Instruction {
        match self {
            Self::Greedy => Instruction::Split(again, exit),
            Self::Lazy => Instruction::Split(exit, again),
        }
    }
}

impl Assertion {
    fn holds(self, text: &[char], pos: usize) -> Result<bool, Missing> {
        let before = pos.checked_sub(1).and_then(|before| text.get(before)).copied();
        let after = text.get(pos).copied();
        Ok(match self {
            Self::LineBegin => before.is_none() || (before == Some('\n') && after.is_some()),
            Self::LineEnd => after.is_none_or(|after| after == '\n'),
            Self::TextBegin => before.is_none(),
            Self::TextEnd => after.is_none(),
            Self::TextEndOrLastLine => after.is_none() || (after == Some('\n') && pos + 1 == text.len()),
            Self::WordBoundary => class::is_word(before)? != class::is_word(after)?,
            Self::NoWordBoundary => class::is_word(before)? == class::is_word(after)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::*;

    fn split(pattern: &str, text: &str) -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        let matches = Regex::new(pattern).unwrap().matches(&chars, &mut Budget::default()).unwrap();
        matches.into_iter().map(|(begin, end)| chars[begin..end].iter().collect()).collect()
    }

    #[test]
    fn expressions_match_as_those_of_oniguruma() {
        let cases: &[(&str, &str, &[&str])] = &[
            (
                r"'s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
                "I've  got 12\n\n x!",
                &["I", "'", "ve", " ", " got", " 12", "\n\n", " x", "!"],
            ),
            (r"(?i:'s|'re)", "'S 'Re 'RE 'rE 'x", &["'S", "'Re", "'RE", "'rE"]),
            (r"\p{N}{1,3}", "1234567", &["123", "456", "7"]),
            (r"\p{N}{1,3}?", "123", &["1", "2", "3"]),
            (r"(?=(\d{3})+(?!\d))\d", "1234567", &["2", "5"]),
            (r"\d{1,3}(?=(?:\d{3})*\b)", "1234567 12", &["1", "234", "567", "12"]),
            (r"[^(\s|[.,])]+", "ab, c.d(e|f", &["ab", "c", "d", "e", "f"]),
            (r"[a-c&&[^b]]+", "abcab", &["a", "ca"]),
            (r"(?<=a)b|(?<!a)c", "abcac", &["b", "c"]),
            (r"a++a|b+b", "aaabbb", &["bbb"]),
            (r"(?>a*)b|a", "aaab", &["aaab"]),
            (r"^x|y$", "x\nxy\ny", &["x", "x", "y", "y"]),
            (r"\Ax|y\z", "x\nxy\ny", &["x", "y"]),
            (r"(a|b|)*c", "abac", &["abac"]),
            (r"(a*)*b", "aab", &["aab"]),
            ("", "ab", &["", "", ""]),
            (r"a*", "baac", &["", "aa", ""]),
            (r"[\p{Lu}\p{Ll}]+|\p{^L}", "Ab1", &["Ab", "1"]),
            (r"\P{L}+", "a12b", &["12"]),
            (r"[[:alpha:]]+|[\d_-]+", "ab_1-2", &["ab", "_1-2"]),
            (r"x{2}", "xxxxx", &["xx", "xx"]),
            (r"x{,2}y", "xxxy", &["xxy"]),
            (r"a{x", "a{x", &["a{x"]),
            (r"\x41|\x{42}|\u0043", "ABC", &["A", "B", "C"]),
            (r"\p{Han}+|\p{Khmer}", "我想a", &["我想"]),
            (r"[一-龥]+", "我在b", &["我在"]),
            (r".+", "ab\nc", &["ab", "c"]),
            (r"(?m:.+)", "ab\nc", &["ab\nc"]),
            (r"(?<name>a)(b)(?:c)", "abc", &["abc"]),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(split(pattern, text), *expected, "{pattern}");
        }
    }

    #[test]
    fn what_is_not_implemented_is_named() {
        for pattern in [
            r"(a)\1",
            r"\G",
            r"\X",
            r"(?x) a",
            r"\p{Emoji}",
            "(a",
            "a)",
            "[a",
            "*",
            r"\",
            "a{30000}",
            "(?<=a",
            r"(?(1)a)",
        ] {
            assert!(matches!(Regex::new(pattern), Err(Missing(_))), "{pattern}");
        }
        let deep = "(".repeat(100_000);
        assert!(matches!(Regex::new(&deep), Err(Missing(_))));
        let unknown: Vec<char> = "α".chars().collect();
        let class = Regex::new(r"\p{L}").unwrap();
        assert!(matches!(class.matches(&unknown, &mut Budget::default()), Err(Missing(_))));
    }

    #[test]
    fn large_expressions_are_neither_copied_nor_walked_for_long() {
        let class: String = ('\u{4e00}'..'\u{9e00}').collect();
        assert!(Regex::new(&format!("(?:[{class}]{{512}}){{38}}")).is_ok());
        let nothing = "()".repeat(100_000);
        assert!(Regex::new(&format!("(?:a{nothing}){{512}}")).is_err());
    }

    #[test]
    fn exponential_expressions_stop() {
        let text: Vec<char> = "a".repeat(100).chars().chain(['b']).collect();
        for pattern in [r"(a+)+c", r"(a|a)*c", r"(?:a?){100}a{100}c", r"((a*)*)*c"] {
            let regex = Regex::new(pattern).unwrap();
            assert!(matches!(regex.matches(&text, &mut Budget::default()), Err(Missing(_))), "{pattern}");
        }
    }
}
