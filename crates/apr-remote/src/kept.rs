//! What the block cache has of a file that is opened.

use crate::blocks::{Blocks, Key, Known};
use crate::client::{Client, Route};
use crate::declared::Declared;
use crate::hub::HubPath;
use crate::open::{Beginning, Origin};
use crate::place::Place;

/// The beginning of a file in the cache, as far as it is there.
pub(crate) struct Kept {
    pub(crate) known: Known,
    pub(crate) bytes: Vec<u8>,
    pub(crate) blocks: Blocks,
}

impl Kept {
    pub(crate) fn beginning(self, origin: impl FnOnce(Blocks) -> Origin) -> Beginning {
        let Known { pin, declared } = self.known;
        Beginning { pin, bytes: self.bytes, declared, origin: origin(self.blocks) }
    }
}

impl Client {
    /// Of a URL or object, if the server can be asked whether it is another one by now.
    pub(crate) fn kept(&self, route: &Route, first: u64) -> Option<Kept> {
        let key = Key::of_url(&route.origin);
        let known = Known::read(self.blocks.as_ref()?, &key)?;
        self.first_of(&key, known, first).filter(|kept| kept.known.pin.etag.is_some())
    }

    /// Of a file of the hub at a commit: as it was opened at this commit, or at another one with the content that `declared` names.
    pub(crate) fn kept_at_commit(
        &self,
        path: &HubPath,
        declared: Option<&Declared>,
        first: u64,
    ) -> Option<Kept> {
        let store = self.blocks.as_ref()?;
        let key = Key::of_hub(&self.options.hub.endpoint, path)?;
        let is_right = |known: &Known| declared.is_none_or(|declared| known.is_of(declared));
        if let Some(known) = Known::read(store, &key).filter(is_right) {
            return self.first_of(&key, known, first);
        }
        let known = Known::read_with_sha256(store, &key, declared?)?;
        // The next process needs no request for this commit.
        known.write(store, &key);
        self.first_of(&key, known, first)
    }

    fn first_of(&self, key: &Key, known: Known, first: u64) -> Option<Kept> {
        let blocks = Blocks::open(self.blocks.as_ref()?, key, &known)?;
        let mut bytes = vec![0; usize::try_from(first.min(known.pin.len)).ok()?];
        let missing = blocks.copy(0, &mut bytes);
        if !missing.is_empty() {
            bytes.truncate(missing.start);
        }
        (!bytes.is_empty()).then_some(Kept { known, bytes, blocks })
    }

    /// Keeps the beginning of a file that has been requested; `None` if blocks of it are not kept.
    pub(crate) fn keep(&self, place: &Place, route: &Route, beginning: &Beginning) -> Option<Blocks> {
        let store = self.blocks.as_ref()?;
        let key = match place {
            Place::Hub(path) => Key::of_hub(&self.options.hub.endpoint, path)?,
            Place::Url(_) | Place::Object(_) => Key::of_url(&route.origin),
        };
        let known = Known { pin: beginning.pin.clone(), declared: beginning.declared.clone() };
        let blocks = Blocks::open(store, &key, &known)?;
        known.write(store, &key);
        blocks.keep(0, &beginning.bytes);
        Some(blocks)
    }
}
