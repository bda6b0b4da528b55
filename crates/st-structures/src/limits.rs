//! Resource limits.

/// Deepest nesting of nodes, and the default.
pub(crate) const MAX_DEPTH: u8 = 128;

/// Bounds on what a schema may hold.
///
/// The header of a safetensors file, and with it the schema, is at most 100,000,000 bytes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nodes within each other, the outermost among them; more than 128 counts as 128.
    pub depth: u8,
    /// Nodes, keys among them.
    pub nodes: u32,
}

impl Limits {
    /// 128 levels, a million nodes.
    pub const DEFAULT: Self = Self { depth: MAX_DEPTH, nodes: 1_000_000 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
