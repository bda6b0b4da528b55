fn call(bytes: &[u8]) -> usize {
    let read = |offset: u64, buf: &mut [u8]| {
        let from = bytes.get(offset as usize..).and_then(|rest| rest.get(..buf.len())).ok_or(())?;
        buf.copy_from_slice(from);
        Ok::<(), ()>(())
    };
    let format = foreign_format::identify(bytes.len() as u64, read).ok().flatten();
    format.map_or(0, |format| format.title().len() + format.help().len())
}
