//! Decisions read from bytes, one byte each; when they run out, every decision is the first.

/// A source of decisions.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    /// Decisions from these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next byte, or zero.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound.max(1)
    }

    /// One of several.
    pub fn pick<T: Copy, const N: usize>(&mut self, options: [T; N]) -> T {
        options[self.below(N)]
    }

    /// True once in `rarity` times.
    pub fn rarely(&mut self, rarity: u8) -> bool {
        self.byte() % rarity == rarity - 1
    }

    /// An integer, mostly small, sometimes at an edge.
    pub fn integer(&mut self) -> i64 {
        match self.byte() {
            small @ 0..=199 => i64::from(small % 10) - 2,
            edge @ 200..=249 => i64::from(edge) - 225,
            250 => i64::MIN,
            251 => i64::MIN + 1,
            252 => i64::MAX - 1,
            253 => i64::MAX,
            254 => i64::from(u32::MAX),
            255 => 1 << 40,
        }
    }

    /// Whether no byte is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}
