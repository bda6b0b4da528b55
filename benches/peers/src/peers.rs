//! Three releases of the reference implementation with one trait.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use apr_container::PayloadLayout;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

type Load = fn(&str, &Path) -> Result<Box<dyn Loaded>, String>;

/// One version of the peer's crate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// `aprender 0.15.0`
    pub(crate) name: &'static str,
    /// The layout of its payloads.
    pub(crate) layout: PayloadLayout,
    short: &'static str,
    load: Load,
    inspect: fn(&Path) -> Result<Value, String>,
}

/// A model in the peer's own type.
pub(crate) trait Loaded {
    /// The fields, as the peer's `Serialize` names them.
    fn json(&self) -> Result<Value, String>;
    /// The payload, as the peer writes it.
    fn payload(&self) -> Result<Vec<u8>, String>;
    /// Writes a file with the peer's `save`; `compression` is byte 20 of the header.
    fn save(&self, path: &Path, compression: u8) -> Result<(), String>;
}

/// The peers, oldest first.
pub(crate) const PEERS: [Peer; 3] = [
    Peer {
        name: "aprender 0.10.0",
        layout: PayloadLayout::V0_10,
        short: "0.10",
        load: v0_10::load,
        inspect: v0_10::inspect,
    },
    Peer {
        name: "aprender 0.15.0",
        layout: PayloadLayout::V0_15,
        short: "0.15",
        load: v0_15::load,
        inspect: v0_15::inspect,
    },
    Peer {
        name: "aprender-core 0.72.3",
        layout: PayloadLayout::V0_72,
        short: "0.72",
        load: v0_72::load,
        inspect: v0_72::inspect,
    },
];

impl Peer {
    /// The peer called `0.15`, `0.15.0` or `aprender 0.15.0`.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let version = |peer: &&Peer| name == peer.short || name == peer.name || peer.name.ends_with(name);
        PEERS.iter().find(version).copied().ok_or_else(|| format!("no peer {name}: 0.10, 0.15 or 0.72"))
    }

    /// Reads a file as `rust_type` with the peer's `format::load`.
    pub(crate) fn load(&self, rust_type: &str, path: &Path) -> Result<Box<dyn Loaded>, String> {
        let plain = rust_type.split('<').next().unwrap_or(rust_type);
        let name = match plain.rsplit("::").next().unwrap_or(plain) {
            "Vec" => "Vec<f32>",
            name => name,
        };
        (self.load)(name, path)
    }

    /// The older ones write without compression when asked for lz4, and refuse it on reading.
    pub(crate) fn knows_lz4(&self) -> bool {
        self.layout >= PayloadLayout::V0_72
    }

    /// Whether its metadata have a place for a model card.
    pub(crate) fn knows_model_cards(&self) -> bool {
        self.layout >= PayloadLayout::V0_15
    }

    /// What the peer's `inspect` says.
    pub(crate) fn inspect(&self, path: &Path) -> Result<Value, String> {
        (self.inspect)(path)
    }
}

/// Bytes 6 and 7 of the header, for the types that are stored under any number.
fn stored_type(path: &Path) -> Result<u16, String> {
    let mut head = [0; 8];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).map_err(|error| error.to_string())?;
    Ok(u16::from_le_bytes([head[6], head[7]]))
}

/// Makes the module of one peer: its types and functions by name.
macro_rules! peer {
    ($module:ident, $root:ident, compression: [$($byte:literal => $variant:ident),*],
     info: [$($field:ident),*], more: { $($name:literal => $model:ty, $kind:ident;)* }) => {
        mod $module {
            use $root::classification::LogisticRegression;
            use $root::cluster::{DBSCAN, GaussianMixture, IsolationForest, KMeans};
            use $root::format::quantize::QuantizedBlock;
            use $root::format::{self, Compression, ModelType, SaveOptions};
            use $root::linear_model::{ElasticNet, Lasso, LinearRegression, Ridge};
            use $root::preprocessing::{MinMaxScaler, StandardScaler};
            use $root::tree::{
                DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier, RandomForestRegressor,
            };

            use super::*;

            struct Held<M>(M, ModelType);

            impl<M: Serialize> Loaded for Held<M> {
                fn json(&self) -> Result<Value, String> {
                    serde_json::to_value(&self.0).map_err(|error| error.to_string())
                }

                fn payload(&self) -> Result<Vec<u8>, String> {
                    bincode::serialize(&self.0).map_err(|error| error.to_string())
                }

                fn save(&self, path: &Path, compression: u8) -> Result<(), String> {
                    let compression = match compression {
                        $($byte => Compression::$variant,)*
                        other => return Err(format!("no compression {other}")),
                    };
                    let options = SaveOptions::new().with_compression(compression);
                    format::save(&self.0, self.1, path, options).map_err(|error| error.to_string())
                }
            }

            fn held<M: Serialize + DeserializeOwned + 'static>(
                path: &Path,
                kind: ModelType,
            ) -> Result<Box<dyn Loaded>, String> {
                let model: M = format::load(path, kind).map_err(|error| error.to_string())?;
                Ok(Box::new(Held(model, kind)))
            }

            pub(super) fn load(rust_type: &str, path: &Path) -> Result<Box<dyn Loaded>, String> {
                let stored = || {
                    let number = stored_type(path)?;
                    ModelType::from_u16(number).ok_or_else(|| format!("no model type {number:#06x}"))
                };
                match rust_type {
                    "LinearRegression" => held::<LinearRegression>(path, ModelType::LinearRegression),
                    "Ridge" => held::<Ridge>(path, ModelType::LinearRegression),
                    "Lasso" => held::<Lasso>(path, ModelType::LinearRegression),
                    "ElasticNet" => held::<ElasticNet>(path, ModelType::LinearRegression),
                    "LogisticRegression" => held::<LogisticRegression>(path, ModelType::LogisticRegression),
                    "KMeans" => held::<KMeans>(path, ModelType::KMeans),
                    "DecisionTreeClassifier" => held::<DecisionTreeClassifier>(path, ModelType::DecisionTree),
                    "DecisionTreeRegressor" => held::<DecisionTreeRegressor>(path, ModelType::DecisionTree),
                    "RandomForestClassifier" => held::<RandomForestClassifier>(path, ModelType::RandomForest),
                    "RandomForestRegressor" => held::<RandomForestRegressor>(path, ModelType::RandomForest),
                    "StandardScaler" => held::<StandardScaler>(path, ModelType::Custom),
                    "MinMaxScaler" => held::<MinMaxScaler>(path, ModelType::Custom),
                    "DBSCAN" => held::<DBSCAN>(path, ModelType::Custom),
                    "GaussianMixture" => held::<GaussianMixture>(path, ModelType::Custom),
                    "IsolationForest" => held::<IsolationForest>(path, ModelType::Custom),
                    "Vec<f32>" => held::<Vec<f32>>(path, stored()?),
                    "QuantizedBlock" => held::<QuantizedBlock>(path, stored()?),
                    $($name => held::<$model>(path, ModelType::$kind),)*
                    other => Err(format!("this peer has no type {other}")),
                }
            }

            pub(super) fn inspect(path: &Path) -> Result<Value, String> {
                let info = format::inspect(path).map_err(|error| error.to_string())?;
                let metadata = serde_json::to_value(&info.metadata).map_err(|error| error.to_string())?;
                Ok(json!({
                    "model_type": format!("{:?}", info.model_type),
                    "model_type_id": info.model_type as u16,
                    "format_version": [info.format_version.0, info.format_version.1],
                    "payload_size": info.payload_size,
                    "uncompressed_size": info.uncompressed_size,
                    "metadata": metadata,
                    $(stringify!($field): info.$field,)*
                }))
            }
        }
    };
}

/// The payload of a mixture: the peers' own struct has no `Deserialize`, and their `load` reads files without a
/// container only.
#[derive(Serialize, Deserialize)]
struct Mixture<E, G, C> {
    experts: Vec<E>,
    gating: G,
    config: C,
}

peer! {
    v0_10, aprender_010,
    compression: [0 => None, 1 => ZstdDefault, 2 => ZstdMax, 3 => Lz4],
    info: [encrypted, signed, streaming, licensed, trueno_native, quantized],
    more: {}
}

peer! {
    v0_15, aprender_015,
    compression: [0 => None, 1 => ZstdDefault, 2 => ZstdMax, 3 => Lz4],
    info: [encrypted, signed, streaming, licensed, trueno_native, quantized, has_model_card],
    more: {
        "MixtureOfExperts" => Mixture<
            LinearRegression,
            aprender_015::ensemble::SoftmaxGating,
            aprender_015::ensemble::MoeConfig,
        >, MixtureOfExperts;
    }
}

peer! {
    v0_72, aprender_072,
    compression: [0 => None, 1 => ZstdDefault, 2 => ZstdMax, 3 => Lz4],
    info: [encrypted, signed, streaming, licensed, trueno_native, quantized, has_model_card],
    more: {
        "MixtureOfExperts" => Mixture<
            LinearRegression,
            aprender_072::ensemble::SoftmaxGating,
            aprender_072::ensemble::MoeConfig,
        >, MixtureOfExperts;
    }
}
