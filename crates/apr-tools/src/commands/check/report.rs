//! The verdicts as text and as JSON.

use std::io::{self, Write};

use super::{Content, Payload, Refusal, Sound, Verdict};
use crate::code_files::{self, Contents};
use crate::codes;
use crate::error::Failure;
use crate::input::{self, Rules};
use crate::report::json::JsonWriter;
use crate::terminal::Console;
use crate::terminal::escape::{self, Visible};
use crate::terminal::human;

/// Code of a [`ShardProblem`](st_core::ShardProblem), as `st-mmap` gives it.
const CODE_SHARD: &str = "sm-shard";

pub(super) fn text(
    verdicts: &[Verdict],
    folders: &[Contents],
    rules: &Rules,
    console: &mut Console,
) -> Result<(), Failure> {
    for Verdict { path, outcome } in verdicts {
        let file = escape::path(path);
        console.text(|out, style| match outcome {
            Ok(sound) => {
                writeln!(
                    out,
                    "{} {file}: {} ({})",
                    style.green("ok"),
                    describe(&sound.content),
                    rules.name()
                )?;
                let mark = style.yellow("!");
                sound.warnings.iter().try_for_each(|warning| writeln!(out, "  {mark} {}", Visible(warning)))
            }
            Err(Refusal::Unsound(failure)) => {
                writeln!(out, "{} {file}: {}", style.red("refused"), failure.code())
            }
            Err(Refusal::Shards(problems)) => {
                writeln!(
                    out,
                    "{} {file}: {}",
                    style.red("refused"),
                    human::plural(problems.len() as u64, "problem")
                )?;
                problems.iter().try_for_each(|problem| writeln!(out, "  {}", Visible(&problem.to_string())))
            }
        })?;
        match outcome {
            Ok(_) => {}
            Err(Refusal::Unsound(failure)) => console.failure(failure),
            Err(Refusal::Shards(problems)) => console.failure(&input::disagreement(path, problems)),
        }
    }
    console.text(|out, style| {
        let mark = style.yellow("!");
        let mut warnings = folders.iter().flat_map(Contents::warnings);
        warnings.try_for_each(|warning| writeln!(out, "{mark} {}", Visible(&warning)))
    })
}

fn describe(content: &Content) -> String {
    match content {
        Content::Tensors { tensors, bytes, shards, verified, checksum } => {
            let shards = shards.map(|n| format!(" in {}", human::plural(n as u64, "shard")));
            let verified =
                verified.map(|n| format!(", {} as in the manifest", human::plural(n as u64, "file")));
            let checksum = checksum.map(|state| format!(", checksum {state}"));
            format!(
                "{}{}, {}{}{}",
                human::plural(*tensors, "tensor"),
                shards.unwrap_or_default(),
                human::bytes(*bytes),
                verified.unwrap_or_default(),
                checksum.unwrap_or_default(),
            )
        }
        Content::Gguf { tensors, bytes, version } => {
            let tensors = human::plural(*tensors, "tensor");
            format!("{tensors}, {}, GGUF version {version}", human::bytes(*bytes))
        }
        Content::Model { model_type, bytes, payload, is_decrypted, signer } => {
            let decrypted = if *is_decrypted { "decrypted " } else { "" };
            let signer = signer.as_ref().map(|signer| format!(", signed {}", signer.by()));
            let payload = match payload {
                Payload::Decoded { model, layout } => {
                    format!("checksum right, {decrypted}payload is a {model} (layout {layout})")
                }
                Payload::Foreign => {
                    format!("checksum right, {decrypted}payload of its maker's own type, not decoded")
                }
                Payload::Encrypted => "checksum right, payload encrypted, not checked".to_owned(),
            };
            format!(
                "{}, {}, {payload}{}",
                Visible(model_type),
                human::bytes(*bytes),
                signer.unwrap_or_default()
            )
        }
    }
}

pub(super) fn json(
    verdicts: &[Verdict],
    folders: &[Contents],
    rules: &Rules,
    console: &mut Console,
) -> Result<(), Failure> {
    console.json("apr.check/1", |json| {
        json.field_str("mode", rules.name())?;
        json.field_bool("ok", verdicts.iter().all(|verdict| verdict.outcome.is_ok()))?;
        json.key("files")?;
        json.array()?;
        for Verdict { path, outcome } in verdicts {
            json.object()?;
            json.field_str("file", &path.to_string_lossy())?;
            json.field_bool("ok", outcome.is_ok())?;
            if let Ok(sound) = outcome {
                write_sound(sound, json)?;
            }
            json.key("problems")?;
            json.array()?;
            match outcome {
                Ok(_) => {}
                Err(Refusal::Unsound(failure)) => failure.write_json(json)?,
                Err(Refusal::Shards(problems)) => {
                    for problem in problems {
                        json.object()?;
                        json.field_str("code", CODE_SHARD)?;
                        json.field_str("message", &problem.to_string())?;
                        if let Some(entry) = codes::find(CODE_SHARD) {
                            json.field_str("help", entry.remedy)?;
                        }
                        json.end_object()?;
                    }
                }
            }
            json.end_array()?;
            json.end_object()?;
        }
        json.end_array()?;
        code_files::write_json(folders, json)
    })
}

fn write_sound<W: Write>(sound: &Sound, json: &mut JsonWriter<W>) -> io::Result<()> {
    match &sound.content {
        Content::Tensors { tensors, bytes, shards, verified, checksum } => {
            json.field_uint("tensors", *tensors)?;
            json.field_uint("bytes", *bytes)?;
            if let Some(shards) = shards {
                json.field_uint("shards", *shards as u64)?;
            }
            if let Some(files) = verified {
                json.field_uint("verified_files", *files as u64)?;
            }
            if let Some(checksum) = checksum {
                json.field_str("format", "apr2")?;
                json.field_str("checksum", checksum)?;
            }
        }
        Content::Gguf { tensors, bytes, version } => {
            json.field_uint("tensors", *tensors)?;
            json.field_uint("bytes", *bytes)?;
            json.field_str("format", "gguf")?;
            json.field_uint("version", (*version).into())?;
        }
        Content::Model { model_type, bytes, payload, is_decrypted, signer } => {
            json.field_uint("bytes", *bytes)?;
            json.field_str("format", "apr1")?;
            json.field_str("model_type", model_type)?;
            json.field_str("checksum", "right")?;
            match payload {
                Payload::Decoded { model, layout } => {
                    json.field_str("payload", "decoded")?;
                    json.field_str("model", model)?;
                    json.field_str("layout", layout)?;
                }
                Payload::Foreign => json.field_str("payload", "foreign")?,
                Payload::Encrypted => json.field_str("payload", "encrypted")?,
            }
            if *is_decrypted {
                json.field_bool("decrypted", true)?;
            }
            if let Some(signer) = signer {
                json.key("signer")?;
                signer.write_json(json)?;
            }
        }
    }
    json.field_strings("warnings", sound.warnings.iter().map(String::as_str))
}
