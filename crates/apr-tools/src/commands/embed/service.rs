//! Requests and expected responses for the test of a service.

use super::answer::Line;
use super::file::ModelFile;
use crate::error::Failure;
use crate::input::NamedModel;

/// A body of `POST /predict` about these rows, or texts.
pub(super) fn request(rows: &[String], line: Line) -> String {
    let rows: Vec<String> = match line {
        Line::Text => rows.iter().map(|text| serde_json::Value::from(text.as_str()).to_string()).collect(),
        Line::Narrow | Line::Wide => rows.iter().map(|row| format!("[{row}]")).collect(),
    };
    format!("{{\"rows\": [{}]}}", rows.join(", "))
}

/// The response of the service, computed with its crate. This also checks that the service can be started.
///
/// # Errors
///
/// If the model in this file cannot be served, or refuses the rows.
#[cfg(feature = "serve")]
pub(super) fn answer(
    known: &NamedModel,
    file: &ModelFile,
    request: Option<&str>,
) -> Result<Option<String>, Failure> {
    use apr_models::OutputKind;
    use apr_serve::{Model, Options};

    let model = Model::from_bytes(&file.bytes)?;
    let model = match &known.classes {
        Some(names) => model.with_classes(names.clone()),
        None => model,
    };
    let answered = request.map(|request| {
        model.answer_json(request.as_bytes(), OutputKind::Predictions, &Options::default()).map_err(
            |(_, body)| {
                let what = format!("the service refuses rows: {}", String::from_utf8_lossy(&body).trim_end());
                Failure::new(crate::error::CODE_NO_PREDICTION, what)
            },
        )
    });
    Ok(answered.transpose()?.map(|body| String::from_utf8_lossy(&body).into_owned()))
}

/// Nothing: the server is not built in, so only the service itself could tell.
#[cfg(not(feature = "serve"))]
pub(super) fn answer(_: &NamedModel, _: &ModelFile, _: Option<&str>) -> Result<Option<String>, Failure> {
    Ok(None)
}
