//! Members of tar archives.

use alloc::string::String;

use pickle_core::Error;
use read_at::Window;

use super::item::{Files, Item, join};
use crate::report::Origin;

impl Files<'_> {
    /// Members of 512-byte blocks: the name first, the length in octal digits at 124.
    pub(super) fn tar(&mut self, item: Item<'_>) -> Result<(), Error> {
        let Item { source, path, depth, .. } = item;
        let (mut at, total) = (0_u64, source.total_len());
        while let Some(data) = at.checked_add(512).filter(|data| *data <= total) {
            let mut header = [0; 512];
            source.read_exact_at(at, &mut header)?;
            if header.iter().all(|byte| *byte == 0) {
                at = data; // The end; some readers go on.
                continue;
            }
            let name = header.split(|byte| *byte == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name.get(..100).unwrap_or(name));
            let member = join(path, &name);
            let digits = header.get(124..136).unwrap_or_default();
            let digits = core::str::from_utf8(digits).unwrap_or_default().trim_matches([' ', '\0']);
            let len = u64::from_str_radix(digits, 8).ok().filter(|len| *len <= total - data);
            let Some(len) = len else {
                self.unopened(&member, "tar header without a length");
                return Ok(());
            };
            let source = &Window::new(source, data, len)?;
            self.file(Item { source, path: &member, name: &name, origin: Origin::File, depth: depth + 1 })?;
            at = data + len.next_multiple_of(512);
        }
        Ok(())
    }
}

/// Whether a block is a tar header: by its checksum, since the oldest kind has no magic number and PyTorch reads that, too.
pub(crate) fn is_tar(block: &[u8]) -> bool {
    let Some(digits) = block.get(148..156).filter(|_| block.len() == 512) else { return false };
    let digits = core::str::from_utf8(digits).unwrap_or_default().trim_matches([' ', '\0']);
    let Ok(declared) = i64::from_str_radix(digits, 8) else { return false };
    // The field itself counts as spaces; some writers took bytes as signed.
    let field = |idx: usize| (148..156).contains(&idx);
    let sum = |value: fn(u8) -> i64| -> i64 {
        block.iter().enumerate().map(|(idx, byte)| if field(idx) { 32 } else { value(*byte) }).sum()
    };
    declared == sum(i64::from) || declared == sum(|byte| byte.cast_signed().into())
}
