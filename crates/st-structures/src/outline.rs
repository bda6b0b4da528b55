//! The shape of a structure, without its tensors.

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::limits::Limits;
use crate::schema::read::json;
use crate::schema::{DATA_TYPE, KEYS, NAME, VALUE, VARIANT};
use crate::tensor::Library;

/// A node of a structure as its schema describes it: what a tool shows of a file without reading tensors.
///
/// Types are names from the file, those of plugins among them. Nothing but the form of nodes is checked: what
/// [`Structure`](crate::Structure) refuses may have an outline.
///
/// ```
/// use st_structures::{Content, Limits, Outline};
///
/// let schema = r#"{"data_type": "list", "value": [
///     {"data_type": "int", "value": "7"},
///     {"data_type": "torch.Tensor", "value": "0"}
/// ]}"#;
/// let outline = Outline::from_schema(schema, &Limits::DEFAULT)?;
/// let Content::Nodes(nodes) = &outline.content else { panic!("a list") };
/// assert_eq!((outline.data_type.as_str(), nodes[0].0.as_str()), ("list", "[0]"));
/// assert_eq!(nodes[1].1.content, Content::Tensor("0".into()));
/// # Ok::<(), st_structures::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Name of the type: `dict`, `torch.Tensor`.
    pub data_type: String,
    /// Name of a class that was registered, of an enum with its variant.
    pub name: Option<String>,
    /// What is inside.
    pub content: Content,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The name of a tensor.
    Tensor(String),
    /// Text: of a number, or itself.
    Text(String),
    /// Nodes with their labels: keys and fields as they are, places in sequences as `[0]`.
    Nodes(Vec<(String, Outline)>),
    /// Nothing, or what only the plugin of the type knows.
    Nothing,
}

impl Outline {
    /// Reads the schema of a file: the value of [`SCHEMA_KEY`](crate::SCHEMA_KEY) in its metadata.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Json`] and the like if it is not JSON, [`ErrorKind::TooDeep`], [`ErrorKind::TooMany`],
    /// [`ErrorKind::MissingField`] and [`ErrorKind::WrongType`] if it has no node.
    pub fn from_schema(text: &str, limits: &Limits) -> Result<Self, Error> {
        Self::of(json(text, limits)?)
    }

    fn of(json: Json<'_>) -> Result<Self, Error> {
        let wrong = |expected| Error::from(ErrorKind::WrongType { expected });
        let Json::Object(mut fields) = json else {
            return Err(wrong("an object with `data_type` and `value`"));
        };
        let mut take = |field: &str| {
            let idx = fields.iter().position(|(name, _)| name == field)?;
            Some(fields.swap_remove(idx).1)
        };
        let mut text = |field| match take(field) {
            Some(Json::Str(text)) => Some(text.into_owned()),
            _ => None,
        };
        let data_type = text(DATA_TYPE).ok_or(ErrorKind::MissingField { field: DATA_TYPE })?;
        let name = match (text(NAME), text(VARIANT)) {
            (Some(name), Some(variant)) => Some([name.as_str(), &variant].join(".")),
            (name, _) => name,
        };
        drop(take(KEYS));
        let value = take(VALUE).ok_or(ErrorKind::MissingField { field: VALUE })?;
        let content = match value {
            Json::Str(id) if is_tensor(&data_type) => Content::Tensor(id.into_owned()),
            Json::Str(text) => Content::Text(text.into_owned()),
            Json::Bool(value) => Content::Text(if value { "true" } else { "false" }.to_owned()),
            Json::Array(items) => {
                let label = |(idx, item)| (Cow::Owned(alloc::format!("[{idx}]")), item);
                Content::nodes(items.into_iter().enumerate().map(label))?
            }
            // A single node, as that in an enum, or nodes by their labels.
            Json::Object(fields)
                if fields
                    .iter()
                    .any(|(field, value)| field == DATA_TYPE && matches!(value, Json::Str(_))) =>
            {
                Content::nodes([(Cow::Borrowed("value"), Json::Object(fields))])?
            }
            Json::Object(fields) => Content::nodes(fields)?,
            Json::Null | Json::Number => Content::Nothing,
        };
        Ok(Self { data_type, name, content })
    }
}

impl Content {
    /// The nodes among the values; what a plugin put beside them has no outline.
    fn nodes<'t>(values: impl IntoIterator<Item = (Cow<'t, str>, Json<'t>)>) -> Result<Self, Error> {
        let mut nodes = Vec::new();
        for (label, value) in values {
            let is_node =
                matches!(&value, Json::Object(fields) if fields.iter().any(|(field, _)| field == DATA_TYPE));
            if is_node {
                let node = Outline::of(value).map_err(|error| error.in_entry(&label))?;
                nodes.push((label.into_owned(), node));
            }
        }
        Ok(Self::Nodes(nodes))
    }
}

/// Whether the value of such a node is the name of a tensor.
fn is_tensor(data_type: &str) -> bool {
    use crate::schema::{BYTES, SCALAR};
    matches!(data_type, BYTES | SCALAR) || Library::from_data_type(data_type).is_some()
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::{Dataclass, Entry, EnumNode, NamedTuple, Node, SCHEMA_KEY, Structure, Tensor};

    #[test]
    fn what_is_written_has_an_outline() {
        let node = |text: &str| Node::Str(text.into());
        let root = Node::Dict(vec![
            Entry::new(
                node("w"),
                Node::Tensor(Tensor::new(st_core::Dtype::U8, &[2], vec![1, 2].into()).unwrap()),
            ),
            Entry::new(
                node("row"),
                Node::NamedTuple(NamedTuple { name: "Row".into(), fields: vec![("x".into(), Node::Int(1))] }),
            ),
            Entry::new(Node::Int(7), Node::Tuple(vec![Node::None, Node::Bool(true), Node::Float(0.5)])),
            Entry::new(
                node("kind"),
                Node::Enum(EnumNode { name: "Kind".into(), variant: "A".into(), value: node("v") }.into()),
            ),
            Entry::new(node("config"), Node::Dataclass(Dataclass { name: None, fields: vec![] })),
            Entry::new(node("raw"), Node::Bytes(vec![1].into())),
        ]);
        let file = Structure::new(root).to_vec().unwrap();
        let tensors = st_core::SafeTensors::from_bytes(&file).unwrap();
        let schema = tensors.header().metadata().unwrap().get(SCHEMA_KEY).unwrap();
        let outline = Outline::from_schema(schema, &Limits::DEFAULT).unwrap();
        let Content::Nodes(nodes) = &outline.content else { panic!("{outline:?}") };
        let text = |text: &str| Content::Text(text.into());
        let of = |label: &str| &nodes.iter().find(|(name, _)| name == label).unwrap().1;
        assert_eq!(of("w").content, Content::Tensor("0".into()));
        assert_eq!(
            (of("row").name.as_deref(), of("raw").content.clone()),
            (Some("Row"), Content::Tensor("1".into()))
        );
        let Content::Nodes(tuple) = &of("7").content else { panic!("{outline:?}") };
        assert_eq!(tuple.iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>(), ["[0]", "[1]", "[2]"]);
        assert_eq!(
            [&tuple[0].1.content, &tuple[1].1.content, &tuple[2].1.content],
            [&Content::Nothing, &text("true"), &text("0.5")]
        );
        let Content::Nodes(inner) = &of("kind").content else { panic!("{outline:?}") };
        assert_eq!((of("kind").name.as_deref(), &inner[0].1.content), (Some("Kind.A"), &text("v")));
        assert_eq!(of("config").content, Content::Nodes(vec![]));
    }

    #[test]
    fn nodes_of_plugins_are_shown_as_far_as_they_are_nodes() {
        let schema = r#"{"data_type": "my.Type", "value": [{"data_type": "int", "value": "1"}, 3, {"a": 1}], "unit": "m"}"#;
        let outline = Outline::from_schema(schema, &Limits::DEFAULT).unwrap();
        assert_eq!(outline.data_type, "my.Type");
        let Content::Nodes(nodes) = outline.content else { panic!("an array") };
        assert_eq!(nodes.len(), 1);
    }

    #[test]
    fn what_has_no_nodes_is_refused() {
        for (schema, code) in [
            ("", "ss-json"),
            ("[]", "ss-type"),
            ("{}", "ss-field-missing"),
            (r#"{"data_type": 1, "value": null}"#, "ss-field-missing"),
            (r#"{"data_type": "int"}"#, "ss-field-missing"),
            (r#"{"data_type": "list", "value": [{"data_type": "int"}]}"#, "ss-field-missing"),
        ] {
            assert_eq!(Outline::from_schema(schema, &Limits::DEFAULT).unwrap_err().code(), code, "{schema}");
        }
        let mut deep = String::new();
        for _ in 0..200 {
            deep.push_str(r#"{"data_type": "list", "value": ["#);
        }
        assert_eq!(Outline::from_schema(&deep, &Limits::DEFAULT).unwrap_err().code(), "ss-depth");
        let limits = Limits { nodes: 1, ..Limits::DEFAULT };
        let many = r#"{"data_type": "list", "value": [1, 2, 3, 4, 5, 6, 7]}"#;
        assert_eq!(Outline::from_schema(many, &limits).unwrap_err().code(), "ss-nodes");
    }
}
