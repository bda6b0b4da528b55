//! Media types and options of a prediction request.

use apr_models::OutputKind;

use crate::csv::Header;

/// A request for predictions, without its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) form: Form,
    pub(crate) answer: AnswerForm,
    pub(crate) output: OutputKind,
}

/// Format of the samples and of the predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    /// Comma-separated values; the response is JSON.
    Csv {
        header: Header,
    },
    #[cfg(feature = "msgpack")]
    MessagePack,
    /// An Arrow IPC stream.
    #[cfg(feature = "arrow")]
    Arrow,
    /// Little-endian 32-bit floats, row-major; the length of a row if the request states it.
    Raw {
        n_columns: Option<usize>,
    },
}

/// Format of the predictions, where the samples are not raw numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    #[default]
    Json,
    #[cfg(feature = "msgpack")]
    MessagePack,
    /// An Arrow IPC stream.
    #[cfg(feature = "arrow")]
    Arrow,
}

/// Type of the numbers of a raw response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawKind {
    /// 32-bit floats.
    Floats,
    /// 32-bit unsigned integers.
    Classes,
}
