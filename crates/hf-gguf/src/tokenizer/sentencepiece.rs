//! SentencePiece models: `tokenizer.model`.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::file::MAX_TOKENS;
use super::protobuf::{Field, Fields};
use crate::error::{Error, ErrorKind};

/// Longest map of characters, in bytes.
const MAX_CHARSMAP: usize = 64 << 20;

/// Types of pieces; the numbers are those of token types in GGUF files, too.
pub(super) const NORMAL: i32 = 1;
pub(super) const UNKNOWN: i32 = 2;
pub(super) const CONTROL: i32 = 3;
pub(super) const USER_DEFINED: i32 = 4;
pub(super) const UNUSED: i32 = 5;
pub(super) const BYTE: i32 = 6;

/// A piece.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) score: f32,
    pub(super) kind: i32,
}

/// How pieces were trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Algorithm {
    #[default]
    Unigram,
    Bpe,
    Other,
}

/// A model.
#[derive(Clone, Debug)]
pub(super) struct SentencePiece {
    pub(super) pieces: Vec<Piece>,
    pub(super) algorithm: Algorithm,
    /// Rules that map characters, in a form of SentencePiece's own.
    pub(super) charsmap: Vec<u8>,
    /// Whether a space is put before a text.
    pub(super) adds_dummy_prefix: bool,
    /// Whether spaces at the ends are removed, and repeated ones joined.
    pub(super) removes_extra_spaces: bool,
}

impl SentencePiece {
    /// Reads a model. What the library refuses is refused: empty pieces, pieces that occur twice, none or several unknown ones.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Protobuf`], [`ErrorKind::NotUtf8`], [`ErrorKind::Limit`], [`ErrorKind::TokenTwice`].
    pub(super) fn from_bytes(file: &str, bytes: &[u8]) -> Result<Self, Error> {
        let mut model = Self {
            pieces: Vec::new(),
            algorithm: Algorithm::Unigram,
            charsmap: Vec::new(),
            adds_dummy_prefix: true,
            removes_extra_spaces: true,
        };
        let mut fields = Fields::new(file, bytes, 0);
        while let Some((number, field)) = fields.next()? {
            let message = |message: &[u8]| fields.offset() - message.len() as u64;
            match (number, field) {
                (1, Field::Bytes(piece)) => {
                    model.add_piece(file, Fields::new(file, piece, message(piece)))?;
                }
                (2, Field::Bytes(trainer)) => {
                    model.read_trainer(Fields::new(file, trainer, message(trainer)))?;
                }
                (3, Field::Bytes(normalizer)) => {
                    model.read_normalizer(file, Fields::new(file, normalizer, message(normalizer)))?;
                }
                (1..=3, _) => {
                    return Err(wrong(file, "a piece or a setting is not a message", fields.offset()));
                }
                _ => {}
            }
        }
        model.check(file)?;
        Ok(model)
    }

    fn add_piece(&mut self, file: &str, mut fields: Fields<'_>) -> Result<(), Error> {
        let start = fields.offset();
        let mut piece = Piece { text: String::new(), score: 0.0, kind: NORMAL };
        while let Some((number, field)) = fields.next()? {
            match (number, field) {
                (1, Field::Bytes(text)) => {
                    let text = core::str::from_utf8(text);
                    let text =
                        text.map_err(|_| Error::from(ErrorKind::NotUtf8 { file: file.into() }).at(start))?;
                    piece.text = text.into();
                }
                (2, Field::Fixed32(score)) => piece.score = f32::from_bits(score),
                (3, Field::Varint(kind)) => piece.kind = i32::try_from(kind).unwrap_or_default(),
                (1..=3, _) => return Err(wrong(file, "a field of a piece has another type", start)),
                _ => {}
            }
        }
        if !(NORMAL..=BYTE).contains(&piece.kind) {
            return Err(wrong(file, "a piece has a type that SentencePiece does not have", start));
        }
        if piece.text.is_empty() {
            return Err(wrong(file, "a piece is empty", start));
        }
        if self.pieces.len() == MAX_TOKENS {
            return Err(ErrorKind::limit(file, "tokens", MAX_TOKENS));
        }
        self.pieces.push(piece);
        Ok(())
    }

    fn read_trainer(&mut self, mut fields: Fields<'_>) -> Result<(), Error> {
        while let Some((number, field)) = fields.next()? {
            if let (3, Field::Varint(algorithm)) = (number, field) {
                self.algorithm = match algorithm {
                    1 => Algorithm::Unigram,
                    2 => Algorithm::Bpe,
                    _ => Algorithm::Other,
                };
            }
        }
        Ok(())
    }

    fn read_normalizer(&mut self, file: &str, mut fields: Fields<'_>) -> Result<(), Error> {
        while let Some((number, field)) = fields.next()? {
            match (number, field) {
                (2, Field::Bytes(map)) if map.len() > MAX_CHARSMAP => {
                    return Err(ErrorKind::limit(file, "bytes in its map of characters", MAX_CHARSMAP));
                }
                (2, Field::Bytes(map)) => self.charsmap = map.into(),
                (3, Field::Varint(adds)) => self.adds_dummy_prefix = adds != 0,
                (4, Field::Varint(removes)) => self.removes_extra_spaces = removes != 0,
                _ => {}
            }
        }
        Ok(())
    }

    fn check(&self, file: &str) -> Result<(), Error> {
        let (mut texts, mut reserved) = (BTreeSet::new(), BTreeSet::new());
        for (id, piece) in self.pieces.iter().enumerate() {
            let is_text = matches!(piece.kind, NORMAL | USER_DEFINED | UNUSED);
            let seen = if is_text { &mut texts } else { &mut reserved };
            if !seen.insert(&*piece.text) {
                return Err(ErrorKind::twice(file, id as u32, &piece.text, &piece.text));
            }
        }
        if self.pieces.iter().filter(|piece| piece.kind == UNKNOWN).count() != 1 {
            return Err(wrong(file, "none or several of its pieces are for unknown characters", 0));
        }
        Ok(())
    }
}

fn wrong(file: &str, what: &'static str, offset: u64) -> Error {
    Error::from(ErrorKind::Protobuf { file: file.into(), what }).at(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &[u8], score: f32, kind: u8) -> Vec<u8> {
        let mut message = alloc::vec![0x0a, text.len() as u8];
        message.extend(text);
        message.push(0x15);
        message.extend(score.to_le_bytes());
        message.extend([0x18, kind]);
        let mut field = alloc::vec![0x0a, message.len() as u8];
        field.extend(message);
        field
    }

    fn read(parts: &[Vec<u8>]) -> Result<SentencePiece, Error> {
        SentencePiece::from_bytes("tokenizer.model", &parts.concat())
    }

    #[test]
    fn pieces_and_settings_are_read() {
        let trainer = alloc::vec![0x12, 2, 0x18, 2];
        let normalizer = alloc::vec![0x1a, 7, 0x12, 1, 9, 0x18, 0, 0x20, 0];
        let model =
            read(&[piece(b"<unk>", 0.0, 2), piece("▁a".as_bytes(), -1.5, 1), trainer, normalizer]).unwrap();
        assert_eq!(model.pieces[1], Piece { text: "▁a".into(), score: -1.5, kind: NORMAL });
        assert_eq!((model.algorithm, &model.charsmap[..]), (Algorithm::Bpe, &[9][..]));
        assert!(!model.adds_dummy_prefix && !model.removes_extra_spaces);
        // A piece without its fields for score and type.
        let model = read(&[piece(b"<unk>", 0.0, 2), alloc::vec![0x0a, 3, 0x0a, 1, b'b']]).unwrap();
        assert_eq!(model.pieces[1], Piece { text: "b".into(), score: 0.0, kind: NORMAL });
        assert!(model.adds_dummy_prefix && model.removes_extra_spaces);
    }

    #[test]
    fn damage_is_refused() {
        let unknown = piece(b"<unk>", 0.0, 2);
        let cases = [
            (alloc::vec![piece(b"a", 0.0, 1)], "hg-protobuf"),
            (alloc::vec![unknown.clone(), unknown.clone()], "hg-token-twice"),
            (alloc::vec![unknown.clone(), piece(b"x", 0.0, 2)], "hg-protobuf"),
            (alloc::vec![unknown.clone(), piece(b"a", 0.0, 1), piece(b"a", 0.0, 4)], "hg-token-twice"),
            (alloc::vec![unknown.clone(), piece(b"", 0.0, 1)], "hg-protobuf"),
            (alloc::vec![unknown.clone(), piece(b"a", 0.0, 7)], "hg-protobuf"),
            (alloc::vec![unknown.clone(), piece(b"\xff", 0.0, 1)], "hg-utf8"),
            (alloc::vec![unknown.clone(), alloc::vec![0x0a, 0x7f]], "hg-protobuf"),
            (alloc::vec![unknown, alloc::vec![0x08, 0x01]], "hg-protobuf"),
            (alloc::vec![], "hg-protobuf"),
        ];
        for (parts, code) in cases {
            let error = read(&parts).unwrap_err();
            assert_eq!(error.code(), code, "{error}");
        }
    }
}
