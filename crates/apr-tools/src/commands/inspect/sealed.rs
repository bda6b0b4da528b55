//! `apr inspect` of a sealed file: public content, and with a key the encrypted content.

use alloc::borrow::Cow;
use std::io;

use apr_crypto::{Trusted, VerifyingKey};
use apr_sealed::{Part, PartKind, SealedHeader, StanzaKind};
use model_file::TensorDescription;

use super::Args;
use super::page::{Page, VALUE_CHARS, text_value};
use crate::commands::rekey::described;
use crate::error::{Exit, Failure};
use crate::input::{Format, Source};
use crate::report::{self, Fields, Report};
use crate::sealed_file::SealedFile;
use crate::secrets::{SignedBy, refuse_shared_stdin};
use crate::terminal::Console;
use crate::terminal::escape::cut;
use crate::terminal::human::{self, grouped};
use crate::terminal::table::{Align, Table};
use serde::Serialize;

/// Runs `apr inspect` for a sealed file.
///
/// # Errors
///
/// If the file cannot be read or is invalid; with keys, if it does not open with them.
pub(super) fn run(args: &Args, source: &Source, console: &mut Console) -> Result<Exit, Failure> {
    let keys = &args.keys;
    refuse_shared_stdin(keys.takes_stdin(), source.label())?;
    let file = SealedFile::open(source, keys.limits())?;
    let demands = keys.trust.is_given();
    let mut trusted = keys.trust.load()?;
    let verify = args.verify;
    if verify && !demands && file.header().is_signed() {
        trusted = Trusted::Anyone;
    }
    let mut seen = Seen { header: file.header(), label: source.label(), signer: None, inside: None };
    let (inside, signer);
    let mut exit = Exit::Success;
    if keys.has_identity() || (!file.header().is_encrypted() && (demands || verify)) {
        // Without a required signer, the signer is reported.
        if matches!(trusted, Trusted::NoSignature) && file.header().is_signed() {
            trusted = Trusted::Anyone;
        }
        let keys = file.keys(trusted, keys, console)?;
        let reader = file.reader(&keys)?;
        if verify {
            let _busy = console.busy("verifying");
            reader.verify_all().map_err(|error| file.refused(error))?;
        }
        signer = reader.signer().map(SignedBy::from);
        let metadata = reader.private_metadata().clone().into_iter().collect();
        let recipients = reader
            .recipients()
            .map(|keys| keys.iter().map(|key| key.map(|key| key.fingerprint().to_string())).collect());
        inside = Inside { metadata, recipients, parts: reader.parts().to_vec() };
        seen.inside = Some(&inside);
        seen.signer = signer.as_ref();
    } else if demands || (verify && file.header().is_signed()) {
        let keys = crate::secrets::Keys::of_signers(trusted);
        if verify {
            file.verify(keys.trusted().trust())?;
        }
        let found = file.header().verify(keys.trusted().trust()).map_err(|error| file.refused(error))?;
        signer = found.map(SignedBy::from);
        seen.signer = signer.as_ref();
    } else if verify {
        console.remark("this file cannot be verified without opening it: it is encrypted and not signed");
        exit = Exit::Unsupported;
    }
    if console.is_json() {
        seen.json(console)?;
    } else {
        seen.text(console)?;
    }
    Ok(exit)
}

/// The decrypted content.
struct Inside {
    metadata: Vec<(String, String)>,
    /// The fingerprint of each recipient, as far as the file lists them.
    recipients: Option<Vec<Option<String>>>,
    parts: Vec<Part>,
}

impl Inside {
    fn tensors(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.kind() == PartKind::Tensor)
    }
}

struct Seen<'s> {
    header: &'s SealedHeader,
    label: &'s std::path::Path,
    /// Only of a signature that was verified.
    signer: Option<&'s SignedBy>,
    /// Only if the file was opened.
    inside: Option<&'s Inside>,
}

impl Seen<'_> {
    fn declared_key(&self) -> Option<VerifyingKey> {
        self.header.signer_declared().and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok())
    }

    /// Which parts are authenticated, and by what.
    fn authentic(&self) -> (&'static [&'static str], Option<&'static str>) {
        match (self.signer, self.inside, self.header.is_signed()) {
            (Some(_), ..) => (&["header", "metadata", "directory", "payload"], Some("signature")),
            // To a public key, anyone can encrypt.
            (None, Some(_), false) if self.header.stanzas() == [StanzaKind::Password] => {
                (&["header", "metadata", "directory", "payload"], Some("password"))
            }
            _ => (&[], None),
        }
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let header = self.header;
        let encryption = match header.is_encrypted() {
            true => format!("{}, opens with {}", header.suite(), described(header.stanzas())),
            false => "none: anyone can read the file".to_owned(),
        };
        let signature = match (header.is_signed(), self.signer, self.declared_key()) {
            (false, ..) => "none".to_owned(),
            (true, Some(signer), _) if signer.name.is_some() => format!("Ed25519, valid, {}", signer.by()),
            (true, Some(signer), _) => format!("Ed25519, valid, {}", signer.by()),
            (true, None, Some(key)) => {
                format!("Ed25519, not checked; the file brings the key {}", key.fingerprint())
            }
            (true, None, None) => "Ed25519, not checked; the file brings no valid key".to_owned(),
        };
        let authentic = match (self.authentic().1, header.is_signed()) {
            (Some("signature"), _) => {
                "header, metadata, directory, and the payload where it is read, by the signature"
            }
            (Some(_), _) => "header, metadata, directory, and the payload where it is read, by the password",
            (None, false) if self.inside.is_some() => {
                "nothing: the parts belong together, but anyone can encrypt to a public key"
            }
            (None, true) => {
                "nothing yet; the signature covers everything but the recipients (--signer, --trusted-keys)"
            }
            (None, false) => "nothing yet; the file is not signed",
        };
        let [before, payload, hashes] = header.lens();
        let mut facts = vec![("encryption", encryption), ("signature", signature)];
        if header.is_encrypted() {
            let bound = match header.has_bound_recipients() {
                true => "changed by the signer alone",
                false => "changed by each of them (apr rekey)",
            };
            let unlisted = match self.inside {
                Some(inside) if inside.recipients.is_none() => "; the file does not say who they are",
                _ => "",
            };
            let number = header.revision_declared();
            facts.push(("recipients", format!("{bound}; list number {number}{unlisted}")));
        }
        if let Some(root) = header.root_declared() {
            let leaf = grouped(root.leaf_len().get());
            facts.push(("tree hash", format!("{}, leaves of {leaf} bytes", root.algorithm())));
        }
        facts.push((
            "lengths",
            format!("header {}, payload {}, hashes {}", grouped(before), grouped(payload), grouped(hashes)),
        ));
        if let Some(inside) = self.inside {
            let (tensors, parts) = (inside.tensors().count() as u64, inside.parts.len() as u64);
            let bytes = inside.parts.iter().map(Part::len).sum();
            facts.push(("original", human::exact_bytes(bytes)));
            facts.push(("parts", format!("{}, {} of them tensors", grouped(parts), grouped(tensors))));
        }
        facts.push(("authenticity", authentic.to_owned()));
        facts
    }

    fn text(&self, console: &mut Console) -> Result<(), Failure> {
        let shorten = !console.is_verbose();
        let mut facts = Table::new(&[Align::Left, Align::Left]);
        for (label, text) in self.facts() {
            facts.row([format!("  {label}"), text]);
        }
        let bytes = self.header.lens().iter().sum();
        Page::print(self.label, ("sealed", bytes), &facts, console, |page| {
            page.shorten = shorten;
            let vouched = if self.authentic().1.is_some() { "" } else { ", not authenticated" };
            write_texts(&format!("Public metadata{vouched}"), self.header.public_declared().iter(), page)?;
            let Some(inside) = self.inside else { return Ok(()) };
            if let Some(recipients) = &inside.recipients {
                let recipient = |key: &Option<String>| key.as_deref().unwrap_or("not listed").to_owned();
                page.list("Recipients", recipients.iter().map(recipient))?;
            }
            write_texts("Private metadata", inside.metadata.iter().map(|(key, value)| (key, value)), page)?;
            write_tensors(inside, page)
        })
    }

    fn json(&self, console: &mut Console) -> Result<(), Failure> {
        let header = self.header;
        let [before, payload, hashes] = header.lens();
        let key = self.declared_key();
        let (authentic, by) = self.authentic();
        console.report(&InspectReport {
            file: report::path(self.label),
            format: Format::Sealed.id(),
            file_bytes: before + payload + hashes,
            header_bytes: before,
            payload_bytes: payload,
            hash_bytes: hashes,
            encrypted: header.is_encrypted(),
            opens_with: header.stanzas().iter().map(|kind| kind_name(*kind)).collect(),
            bound_recipients: header.has_bound_recipients(),
            revision: header.revision_declared(),
            signature: header.is_signed().then(|| SignatureFields {
                algorithm: "Ed25519",
                key: key.map(|key| key.to_string()),
                fingerprint: key.map(|key| key.fingerprint().to_string()),
                state: if self.signer.is_some() { "valid" } else { "unchecked" },
                signer: self.signer,
            }),
            authentic,
            by,
            public_metadata: Fields(header.public_declared().iter().collect()),
            inside: self.inside.map(InsideFields::new),
        })
    }
}

/// A sealed file.
#[derive(Serialize)]
struct InspectReport<'a> {
    file: Cow<'a, str>,
    format: &'a str,
    file_bytes: u64,
    header_bytes: u64,
    payload_bytes: u64,
    hash_bytes: u64,
    encrypted: bool,
    opens_with: Vec<&'static str>,
    bound_recipients: bool,
    revision: u64,
    signature: Option<SignatureFields<'a>>,
    authentic: &'static [&'static str],
    by: Option<&'static str>,
    public_metadata: Fields<&'a String, &'a String>,
    inside: Option<InsideFields<'a>>,
}

impl Report for InspectReport<'_> {
    const SCHEMA: &'static str = "apr.inspect/2";
}

#[derive(Serialize)]
struct SignatureFields<'a> {
    algorithm: &'static str,
    key: Option<String>,
    fingerprint: Option<String>,
    state: &'static str,
    signer: Option<&'a SignedBy>,
}

/// The content.
#[derive(Serialize)]
struct InsideFields<'a> {
    bytes: u64,
    recipients: Option<&'a [Option<String>]>,
    private_metadata: Fields<&'a String, &'a String>,
    tensors: Vec<TensorDescription>,
}

impl<'a> InsideFields<'a> {
    fn new(inside: &'a Inside) -> Self {
        let tensor = |part: &Part| TensorDescription {
            name: part.name().to_owned(),
            dtype: part.dtype().to_owned(),
            shape: part.shape().to_vec(),
            bytes: part.len(),
            offset: None,
            sha256: None,
            shard: None,
            alias_of: None,
        };
        Self {
            bytes: inside.parts.iter().map(Part::len).sum(),
            recipients: inside.recipients.as_deref(),
            private_metadata: Fields(inside.metadata.iter().map(|(key, value)| (key, value)).collect()),
            tensors: inside.tensors().map(tensor).collect(),
        }
    }
}

/// As JSON calls what opens a file.
fn kind_name(kind: StanzaKind) -> &'static str {
    match kind {
        StanzaKind::Recipient => "recipient",
        StanzaKind::Password => "password",
        _ => "unknown",
    }
}

fn write_texts<'a>(
    title: &str,
    texts: impl ExactSizeIterator<Item = (&'a String, &'a String)>,
    page: &mut Page<'_>,
) -> io::Result<()> {
    let shorten = page.shorten;
    let mut texts = texts.map(|(key, value)| (key, text_value(value, shorten))).peekable();
    if texts.peek().is_none() { Ok(()) } else { page.entries(title, texts) }
}

fn write_tensors(inside: &Inside, page: &mut Page<'_>) -> io::Result<()> {
    let count = inside.tensors().count();
    if count == 0 {
        return Ok(());
    }
    page.heading("Tensors")?;
    let mut table = Table::new(&[Align::Left, Align::Left, Align::Left, Align::Right]);
    for part in inside.tensors().take(page.shown()) {
        let dims: Vec<String> = part.shape().iter().map(ToString::to_string).collect();
        let name = format!("  {}", cut(part.name(), VALUE_CHARS));
        table.row([name, cut(part.dtype(), 20), format!("[{}]", dims.join(", ")), human::bytes(part.len())]);
    }
    table.lines().iter().try_for_each(|line| writeln!(page.out, "{line}"))?;
    page.more(count)
}
