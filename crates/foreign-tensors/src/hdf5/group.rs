//! Groups: their links, of either kind.

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Error;
use crate::hdf5::dense::{FractalHeap, for_each_record};
use crate::hdf5::file::{Fields, File, Frame};
use crate::hdf5::header::{Header, kind};

/// Types of the trees of links: by name, by order of creation.
const LINKS_BY_NAME: u8 = 5;
const LINKS_BY_ORDER: u8 = 6;

/// A link of a group.
pub(crate) struct Link {
    pub(crate) name: String,
    /// Whether the name is as stored: what is not UTF-8 is replaced.
    pub(crate) is_exact: bool,
    pub(crate) target: Target,
}

/// What a link leads to.
pub(crate) enum Target {
    /// The address of an object header.
    Hard(u64),
    /// A path in the file.
    Soft(String),
    /// Another file, or something of a user.
    Other,
}

impl Link {
    fn new(name: &[u8], target: Target) -> Self {
        let is_exact = core::str::from_utf8(name).is_ok();
        Self { name: String::from_utf8_lossy(name).into_owned(), is_exact, target }
    }
}

/// Whether the object is a group.
pub(crate) fn is_group(header: &Header) -> bool {
    [kind::SYMBOL_TABLE, kind::LINK_INFO, kind::LINK, kind::GROUP_INFO]
        .into_iter()
        .any(|kind| header.first(kind).is_some())
}

/// All links of a group, in the order of the file.
pub(crate) fn links(file: &File<'_>, header: &Header, links: &mut Vec<Link>) -> Result<(), Error> {
    if let Some(message) = header.first(kind::SYMBOL_TABLE) {
        let mut fields = Fields::new(&message.data);
        let (tree, heap) = (fields.some_address(&file.frame)?, fields.some_address(&file.frame)?);
        symbol_table(file, tree, heap, links)?;
    }
    for message in header.all(kind::LINK) {
        links.push(link(&message.data, &file.frame)?);
    }
    if let Some(message) = header.first(kind::LINK_INFO) {
        let mut fields = Fields::new(&message.data);
        fields.u8()?;
        if fields.u8()? & 1 != 0 {
            fields.take(8)?;
        }
        if let (Some(heap), Some(tree)) = (fields.address(&file.frame)?, fields.address(&file.frame)?) {
            dense(file, heap, tree, links)?;
        }
    }
    Ok(())
}

/// A link message.
fn link(data: &[u8], frame: &Frame) -> Result<Link, Error> {
    let mut fields = Fields::new(data);
    if fields.u8()? != 1 {
        return Err(Error::malformed("a link has an unknown version"));
    }
    let flags = fields.u8()?;
    let link_type = if flags & 1 << 3 != 0 { fields.u8()? } else { 0 };
    if flags & 1 << 2 != 0 {
        fields.take(8)?; // Order of creation.
    }
    if flags & 1 << 4 != 0 {
        fields.u8()?; // Character set.
    }
    let len = fields.length_of(1 << (flags & 3))?;
    let name = fields.take(usize::try_from(len).unwrap_or(usize::MAX))?;
    let target = match link_type {
        0 => Target::Hard(fields.some_address(frame)?),
        1 => {
            let len = fields.u16()?;
            Target::Soft(String::from_utf8_lossy(fields.take(len.into())?).into_owned())
        }
        _ => Target::Other,
    };
    Ok(Link::new(name, target))
}

/// Links in a heap, found by the tree of their names.
fn dense(file: &File<'_>, heap: u64, tree: u64, links: &mut Vec<Link>) -> Result<(), Error> {
    let mut heap = FractalHeap::open(file, heap)?;
    for_each_record(file, tree, &mut |kind, record| {
        // A hash, or an order of creation.
        let key_len = match kind {
            LINKS_BY_NAME => 4,
            LINKS_BY_ORDER => 8,
            _ => return Err(Error::malformed("a tree of links has another type")),
        };
        let mut fields = Fields::new(record);
        fields.take(key_len)?;
        let id = fields.take(heap.id_len())?;
        file.step(1)?;
        let object =
            heap.object(id)?.ok_or_else(|| Error::unsupported("a link of HDF5 outside of its heap"))?;
        room(file, links)?;
        links.push(link(&object, &file.frame)?);
        Ok(())
    })
}

/// A symbol table: a B-tree of version 1 whose leaves are nodes of names.
fn symbol_table(file: &File<'_>, tree: u64, heap: u64, links: &mut Vec<Link>) -> Result<(), Error> {
    let heap = local_heap(file, heap)?;
    for_each_child(file, tree, 0, file.frame.length_size, &mut |_, node| {
        file.at(node, symbol_node(file, node, &heap, links))
    })
}

fn symbol_node(file: &File<'_>, node: u64, heap: &[u8], links: &mut Vec<Link>) -> Result<(), Error> {
    let start = file.read(node, 8)?;
    let mut fields = Fields::new(&start);
    fields.signature(b"SNOD")?;
    fields.take(2)?;
    let count = u64::from(fields.u16()?);
    let entry_len = 2 * file.frame.address_size + 24;
    let entries = file.read(node + 8, count * entry_len as u64)?;
    for entry in entries.chunks_exact(entry_len) {
        let mut fields = Fields::new(entry);
        let name = fields.length_of(file.frame.address_size)?;
        let header = fields.address(&file.frame)?;
        let cache = fields.u32()?;
        fields.u32()?;
        let name = text(heap, name)?;
        let target = match (cache, header) {
            (2, _) => Target::Soft(String::from_utf8_lossy(text(heap, fields.u32()?.into())?).into_owned()),
            (_, Some(header)) => Target::Hard(header),
            _ => Target::Other,
        };
        room(file, links)?;
        links.push(Link::new(name, target));
    }
    Ok(())
}

/// Each link takes up more than 8 bytes of the file: more links than that are a loop.
fn room(file: &File<'_>, links: &[Link]) -> Result<(), Error> {
    if links.len() as u64 > file.frame.file_len() / 8 {
        return Err(Error::malformed("a group has more links than the file has space for"));
    }
    Ok(())
}

/// The names of a group.
fn local_heap(file: &File<'_>, address: u64) -> Result<Vec<u8>, Error> {
    let len = 8 + 2 * file.frame.length_size + file.frame.address_size;
    let header = file.read(address, len as u64)?;
    let parsed = || {
        let mut fields = Fields::new(&header);
        fields.signature(b"HEAP")?;
        fields.take(4)?;
        let len = fields.length(&file.frame)?;
        fields.length(&file.frame)?;
        let data = fields.some_address(&file.frame)?;
        file.read(data, len)
    };
    file.at(address, parsed())
}

/// Text up to a NUL.
fn text(heap: &[u8], at: u64) -> Result<&[u8], Error> {
    let rest = usize::try_from(at).ok().and_then(|at| heap.get(at..));
    let text =
        rest.and_then(|rest| rest.split(|byte| *byte == 0).next().filter(|text| text.len() < rest.len()));
    text.ok_or_else(|| Error::malformed("a name reaches beyond its heap"))
}

/// What is called for each child, with its key and its address.
pub(crate) type TakeChild<'t> = &'t mut dyn FnMut(&[u8], u64) -> Result<(), Error>;

/// Calls `child` for each child of the leaves of a B-tree of version 1.
pub(crate) fn for_each_child(
    file: &File<'_>,
    root: u64,
    node_type: u8,
    key_len: usize,
    child: TakeChild<'_>,
) -> Result<(), Error> {
    let frame = &file.frame;
    let head_len = 8 + 2 * frame.address_size;
    let mut nodes = 0;
    let mut pending = alloc::vec![(root, None)];
    while let Some((address, expected_level)) = pending.pop() {
        nodes += 1;
        let head = file.read(address, head_len as u64)?;
        let mut node = || {
            let mut fields = Fields::new(&head);
            fields.signature(b"TREE")?;
            let (found_type, level) = (fields.u8()?, fields.u8()?);
            let count = u64::from(fields.u16()?);
            let (left, right) = (fields.address(frame)?, fields.address(frame)?);
            let is_root = expected_level.is_none();
            let is_loop = is_root && (left.is_some() || right.is_some())
                || expected_level.is_some_and(|expected| expected != level)
                || nodes > frame.file_len() / head_len as u64;
            if is_loop || found_type != node_type {
                return Err(Error::malformed("the nodes of a B-tree contradict each other"));
            }
            let entry_len = key_len + frame.address_size;
            let entries = file.read(address.saturating_add(head_len as u64), count * entry_len as u64)?;
            let first = pending.len();
            for entry in entries.chunks_exact(entry_len) {
                let mut fields = Fields::new(entry);
                let key = fields.take(key_len)?;
                let address = fields.some_address(frame)?;
                match level.checked_sub(1) {
                    Some(below) => pending.push((address, Some(below))),
                    None => child(key, address)?,
                }
            }
            // The first child is taken first.
            pending.get_mut(first..).unwrap_or_default().reverse();
            Ok(())
        };
        let node = node();
        file.at(address, node)?;
    }
    Ok(())
}
