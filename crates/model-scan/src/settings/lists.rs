//! Names that configurations may have as values.

/// Packages whose classes PEFT may look up.
pub(super) const PARENTS: [&str; 3] = ["transformers.", "peft.", "diffusers."];

/// Libraries of components in `model_index.json` of diffusers, and modules of its own that have components.
pub(super) const LIBRARIES: [&str; 20] = [
    "diffusers",
    "transformers",
    "onnxruntime.training",
    "flax",
    "alt_diffusion",
    "audioldm2",
    "blip_diffusion",
    "deepfloyd_if",
    "kandinsky",
    "latent_diffusion",
    "paint_by_example",
    "semantic_stable_diffusion",
    "shap_e",
    "spectrogram_diffusion",
    "stable_audio",
    "stable_diffusion",
    "stable_diffusion_safe",
    "unclip",
    "unidiffuser",
    "wuerstchen",
];

/// Models of sentence-transformers.
pub(super) const SENTENCES: [&str; 22] = [
    "Asym",
    "BoW",
    "CLIPModel",
    "CNN",
    "Dense",
    "Dropout",
    "LSTM",
    "LayerNorm",
    "MLMTransformer",
    "Module",
    "Normalize",
    "Pooling",
    "Router",
    "SparseAutoEncoder",
    "SparseStaticEmbedding",
    "SpladePooling",
    "StaticEmbedding",
    "Transformer",
    "WeightedLayerPooling",
    "WordEmbeddings",
    "WordWeights",
    "InputModule",
];

/// Packages of what sentence-transformers imports by its path.
pub(super) const SENTENCE_PACKAGES: [&str; 2] = ["torch.nn.", "sentence_transformers."];

/// Handlers that TorchServe has itself.
pub(super) const HANDLERS: [&str; 5] =
    ["image_classifier", "image_segmenter", "object_detector", "text_classifier", "text_handler"];

/// Types of Python that skops writes.
pub(super) const TYPES: [&str; 15] = [
    "bool",
    "bytearray",
    "bytes",
    "complex",
    "dict",
    "float",
    "frozenset",
    "int",
    "list",
    "range",
    "set",
    "slice",
    "str",
    "tuple",
    "NoneType",
];
