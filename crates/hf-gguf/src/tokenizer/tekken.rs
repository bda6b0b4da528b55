//! Mistral's own form of byte-level BPE: `tekken.json`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use base64ct::{Base64, Encoding};
use json_scan::{Check, Scanner};

use super::file::{MAX_TOKENS, Vocabulary};
use super::scan::{Stop, Trees};
use super::sentencepiece::{CONTROL, NORMAL};
use super::strings::Strings;
use super::{ADD_BOS, MERGES, MODEL, PRE, SCORES, Sources, TOKENS, TYPES, Tokenizer};
use crate::characters::byte_letter;
use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use crate::keys::Keys;
use crate::text::utf8;

/// Name of the file.
pub(super) const FILE: &str = "tekken.json";
/// Most merges, and most bytes of a token: each place in it may be one.
const MAX_MERGES: usize = 1 << 23;
const MAX_BYTES: usize = 4096;

/// Special tokens of files that do not list any.
const SPECIAL: [&str; 20] = [
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
];

/// A file.
struct Tekken {
    members: Object,
    /// Tokens in the letters of byte-level BPE, by rank.
    tokens: Strings,
}

impl Sources<'_> {
    pub(super) fn tekken(&self) -> Result<Tokenizer, Error> {
        let bytes = self.texts.get(FILE).ok_or_else(|| Self::missing(FILE))?;
        let tekken = Tekken::from_bytes(bytes)?;
        let n_tokens = tekken.count("default_vocab_size")?;
        let specials = tekken.specials()?;
        let Some(n_own) = n_tokens.checked_sub(specials.len()).filter(|n_own| *n_own <= tekken.tokens.len())
        else {
            return Err(ErrorKind::beyond(
                FILE,
                n_tokens as u64,
                (tekken.tokens.len() + specials.len()) as u64,
            ));
        };
        if n_own < 256 {
            return Err(ErrorKind::missing(FILE, "a token for each byte"));
        }
        let tokens: Strings = tekken.tokens.iter().take(n_own).collect();
        let ids = (0..n_own as u32).collect();
        let vocabulary = Vocabulary::new(FILE, tokens, ids, Vec::new())?;
        if vocabulary.len() != n_own {
            return Err(ErrorKind::ConfigValue {
                file: FILE.into(),
                expected: "different tokens",
                found: "one twice".into(),
            }
            .into());
        }
        let mut keys = Keys::new();
        keys.set(MODEL, "gpt2");
        keys.set(PRE, "tekken");
        keys.set(MERGES, merges(&vocabulary)?);
        for (token, key) in [("<s>", "bos"), ("</s>", "eos"), ("<unk>", "unknown"), ("<pad>", "padding")] {
            let id = specials.iter().rposition(|special| special == token);
            let id = id.ok_or_else(|| ErrorKind::missing(FILE, &format!("the special token `{token}`")))?;
            keys.set(format!("tokenizer.ggml.{key}_token_id"), id as u32);
        }
        let mut types = alloc::vec![CONTROL; specials.len()];
        types.resize(n_tokens, NORMAL);
        let mut texts = specials;
        texts.extend(vocabulary.strings.iter().map(String::from));
        keys.set(TOKENS, texts);
        // Integers, as the reference has them.
        keys.set(SCORES, alloc::vec![0_i32; n_tokens]);
        keys.set(TYPES, types);
        keys.set(format!("{}.vocab_size", self.architecture), n_tokens as u32);
        keys.set(ADD_BOS, true);
        keys.set("tokenizer.ggml.add_eos_token", false);
        keys.set_some("tokenizer.chat_template", tekken.template());
        Ok(Tokenizer { keys, n_tokens, remarks: Vec::new() })
    }
}

impl Tekken {
    fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let text = utf8(FILE, bytes)?;
        let mut tekken = Self { members: Object::default(), tokens: Strings::default() };
        tekken.read(&mut Scanner::new(text, Check::Syntax)).map_err(|stop| stop.in_file(FILE))?;
        Ok(tekken)
    }

    fn read(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Stop> {
        let mut trees = Trees::of(FILE);
        let mut members = Vec::new();
        scanner.skip_white_space();
        scanner.members(|scanner, name, _| {
            if !name.is("vocab") {
                members.push(trees.member(scanner, name)?);
                return Ok(());
            }
            self.tokens = Strings::default();
            scanner.items(|scanner, at| self.token(scanner, at))
        })?;
        self.members = members.into();
        Ok(scanner.finish()?)
    }

    /// `{"rank": 7, "token_bytes": "AA==", "token_str": null}`.
    fn token(&mut self, scanner: &mut Scanner<'_>, at: usize) -> Result<(), Stop> {
        let wrong = |expected| {
            let kind = ErrorKind::ConfigValue { file: FILE.into(), expected, found: "another value".into() };
            Error::from(kind).at(at as u64)
        };
        if self.tokens.len() == MAX_TOKENS {
            return Err(ErrorKind::limit(FILE, "tokens", MAX_TOKENS).into());
        }
        let (mut rank, mut token) = (None, None);
        scanner.members(|scanner, name, _| {
            if name.is("rank") {
                rank = Some(scanner.integer()?);
            } else if name.is("token_bytes") {
                let bytes = Base64::decode_vec(&scanner.string()?.unescape()).ok();
                let bytes = bytes.filter(|bytes| (1..=MAX_BYTES).contains(&bytes.len()));
                token = Some(bytes.ok_or_else(|| wrong("the bytes of a token in Base64"))?);
            } else {
                scanner.skip_value(8)?;
                scanner.skip_white_space();
            }
            Ok::<_, Stop>(())
        })?;
        let idx = self.tokens.len();
        let token = token
            .filter(|_| rank == Some(idx as u64))
            .ok_or_else(|| wrong("tokens in the order of their ranks"))?;
        if idx < 256 && token != [idx as u8] {
            return Err(wrong("the 256 bytes as the first tokens").into());
        }
        self.tokens.push_with(|text| text.extend(token.iter().map(|byte| byte_letter(*byte))));
        Ok(())
    }

    fn config(&self, name: &str) -> Option<&Json> {
        self.members.get("config")?.get(name)
    }

    fn count(&self, name: &str) -> Result<usize, Error> {
        let count = self.config(name).and_then(Json::as_i64).and_then(|count| usize::try_from(count).ok());
        count
            .filter(|count| *count <= MAX_TOKENS)
            .ok_or_else(|| ErrorKind::missing(FILE, &format!("`config.{name}`")))
    }

    /// The special tokens, filled up with unused ones.
    fn specials(&self) -> Result<Vec<String>, Error> {
        let n_specials = self.count("default_num_special_tokens")?;
        let listed = self.members.get("special_tokens").and_then(Json::as_array);
        let listed = listed
            .map(|items| items.iter().map(|item| item.get("token_str").and_then(Json::as_str)).collect());
        let listed: Option<Vec<&str>> = listed.unwrap_or_else(|| Some(SPECIAL.to_vec()));
        let listed = listed.ok_or_else(|| ErrorKind::missing(FILE, "`special_tokens.token_str`"))?;
        if listed.len() > n_specials {
            return Err(ErrorKind::beyond(FILE, listed.len() as u64, n_specials as u64));
        }
        let filler = (listed.len()..n_specials).map(|id| format!("<SPECIAL_{id}>"));
        Ok(listed.iter().map(|token| String::from(*token)).chain(filler).collect())
    }

    /// The name of the template that llama.cpp has for files of this version.
    fn template(&self) -> Option<&'static str> {
        match self.config("version")?.as_str()? {
            "v3" => Some("mistral-v3-tekken"),
            "v7" => Some("mistral-v7-tekken"),
            _ => None,
        }
    }
}

/// The merges: each way to make a token of two others, in the order of the ranks of all three.
fn merges(vocabulary: &Vocabulary) -> Result<Vec<String>, Error> {
    let mut merges = Vec::new();
    let mut ways: Vec<((u32, u32), usize)> = Vec::new();
    for token in vocabulary.strings.iter().skip(256) {
        ways.clear();
        for (place, _) in token.char_indices().skip(1) {
            let (first, second) = token.split_at(place);
            if let Some(ids) = vocabulary.id(first).zip(vocabulary.id(second)) {
                ways.push((ids, place));
            }
        }
        if ways.is_empty() {
            return Err(ErrorKind::unknown(FILE, "a token that no merge makes", token));
        }
        ways.sort_unstable();
        for (_, place) in &ways {
            let (first, second) = token.split_at(*place);
            merges.push(format!("{first} {second}"));
        }
        if merges.len() > MAX_MERGES {
            return Err(ErrorKind::limit(FILE, "merges", MAX_MERGES));
        }
    }
    Ok(merges)
}
