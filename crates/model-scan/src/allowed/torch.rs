//! Tensors, types and layers of PyTorch.

use super::Kind::{Array, Attributes, Hooks, Plain, Scalar, Storage, Tensor, TensorClass};
use super::{ATTRIBUTES, Arguments, CONSTANT, Group, Kind, State, Use, group};

const LAYER: Use = Use::Class(State::Module);

const fn tensor(kinds: &'static [Kind], least: usize) -> Use {
    Use::Function(Arguments::Tensor(kinds, least))
}

/// Storage types: the dtype in persistent ids.
const STORAGES: &str = "DoubleStorage FloatStorage HalfStorage BFloat16Storage LongStorage IntStorage ShortStorage \
    CharStorage ByteStorage BoolStorage ComplexFloatStorage ComplexDoubleStorage QInt8Storage QUInt8Storage \
    QInt32Storage QUInt4x2Storage QUInt2x4Storage";

/// Methods of `torch.nn.Module`: no key of its state, and no name of a member.
pub(crate) const METHODS: &str = "_apply _call_impl _compiled_call_impl _get_backward_hooks _get_backward_pre_hooks \
    _get_name _load_from_state_dict _maybe_warn_non_full_backward_hook _named_members \
    _register_load_state_dict_pre_hook _register_state_dict_hook _replicate_for_data_parallel _save_to_state_dict \
    _slow_forward _wrapped_call_impl add_module apply bfloat16 buffers children compile cpu cuda double eval extra_repr \
    float forward get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict modules mtia \
    named_buffers named_children named_modules named_parameters parameters register_backward_hook register_buffer \
    register_forward_hook register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook \
    register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter \
    register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule share_memory \
    state_dict to to_empty train type xpu zero_grad";

pub(super) const GROUPS: &[Group] = &[
    group("torch._utils", "_rebuild_tensor", tensor(&[Storage, Scalar, Plain, Plain], 4)),
    group(
        "torch._utils",
        "_rebuild_tensor_v2",
        tensor(&[Storage, Scalar, Plain, Plain, Scalar, Hooks, Plain], 6),
    ),
    group(
        "torch._utils",
        "_rebuild_tensor_v3",
        tensor(&[Storage, Scalar, Plain, Plain, Scalar, Hooks, Plain, Plain], 7),
    ),
    group("torch._utils", "_rebuild_parameter", tensor(&[Tensor, Scalar, Hooks], 3)),
    group("torch._utils", "_rebuild_parameter_with_state", tensor(&[Tensor, Scalar, Hooks, Attributes], 4)),
    group(
        "torch._utils",
        "_rebuild_qtensor",
        tensor(&[Storage, Scalar, Plain, Plain, Plain, Scalar, Hooks], 7),
    ),
    group("torch._utils", "_rebuild_sparse_tensor", tensor(&[Plain; 2], 2)),
    group("torch._utils", "_rebuild_meta_tensor_no_storage", tensor(&[Plain; 4], 4)),
    group(
        "torch._utils",
        "_rebuild_wrapper_subclass",
        tensor(&[TensorClass, Plain, Plain, Plain, Plain, Plain, Plain, Plain, Plain, Plain], 8),
    ),
    group("torch._utils", "_rebuild_device_tensor_from_numpy", tensor(&[Array, Plain, Plain, Scalar], 4)),
    group(
        "torch._utils",
        "_rebuild_device_tensor_from_cpu_tensor",
        tensor(&[Tensor, Plain, Plain, Scalar], 4),
    ),
    group("torch._utils", "_rebuild_nested_tensor", tensor(&[Tensor; 4], 4)),
    group("torch._tensor", "_rebuild_from_type_v2", Use::Function(Arguments::FromType)),
    group("torch.tensor", "_rebuild_from_type_v2", Use::Function(Arguments::FromType)),
    group("torch.serialization", "_get_layout", Use::Function(Arguments::Scalars)),
    group("torch.storage", "_load_from_bytes", Use::Function(Arguments::Nested)),
    group("torch.nn.parameter", "Parameter Buffer", Use::Container(Arguments::Tensor(&[Tensor, Scalar], 0))),
    group("torch", "Tensor", Use::Container(Arguments::Tensor(&[], 0))),
    group("torch", "Size", Use::Container(Arguments::Data)),
    group("torch", "device", Use::Container(Arguments::Scalars)),
    group("torch", STORAGES, Use::Argument),
    group("torch.cuda", STORAGES, Use::Argument),
    group("torch.storage", "UntypedStorage _UntypedStorage TypedStorage _TypedStorage", Use::Argument),
    group(
        "torch",
        "float64 float32 float16 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu \
         float4_e2m1fn_x2 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool complex32 complex64 complex128 qint8 \
         quint8 qint32 quint4x2 quint2x4 bits8 bits16 bits1x8 bits2x4 bits4x2",
        CONSTANT,
    ),
    group(
        "torch",
        "per_tensor_affine per_channel_affine per_channel_affine_float_qparams per_tensor_symmetric \
         per_channel_symmetric strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc jagged contiguous_format \
         channels_last channels_last_3d preserve_format",
        CONSTANT,
    ),
    // Typed lists of TorchScript.
    group(
        "torch.jit._pickle",
        "build_intlist build_tensorlist build_boollist build_doublelist",
        Use::Function(Arguments::Kinds(&[Plain], 1)),
    ),
    group("torch.jit._pickle", "restore_type_tag", Use::Function(Arguments::Kinds(&[Plain, Scalar], 2))),
    // Layers: their constructors are not run.
    group("torch.nn.modules.linear", "Linear Identity Bilinear NonDynamicallyQuantizableLinear", LAYER),
    group(
        "torch.nn.modules.conv",
        "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
        LAYER,
    ),
    group("torch.nn.modules.batchnorm", "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm", LAYER),
    group(
        "torch.nn.modules.normalization",
        "LayerNorm GroupNorm RMSNorm LocalResponseNorm CrossMapLRN2d",
        LAYER,
    ),
    group("torch.nn.modules.instancenorm", "InstanceNorm1d InstanceNorm2d InstanceNorm3d", LAYER),
    group(
        "torch.nn.modules.activation",
        "ReLU ReLU6 GELU SiLU Sigmoid Tanh ELU CELU SELU GLU LeakyReLU PReLU RReLU Mish Softmax Softmax2d LogSoftmax \
         LogSigmoid Softmin Softplus Softshrink Softsign Hardshrink Hardsigmoid Hardswish Hardtanh Tanhshrink Threshold \
         MultiheadAttention",
        LAYER,
    ),
    group(
        "torch.nn.modules.container",
        "Sequential ModuleList ModuleDict ParameterList ParameterDict",
        LAYER,
    ),
    group(
        "torch.nn.modules.dropout",
        "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout",
        LAYER,
    ),
    group("torch.nn.modules.sparse", "Embedding EmbeddingBag", LAYER),
    group("torch.nn.modules.flatten", "Flatten Unflatten", LAYER),
    group("torch.nn.modules.fold", "Fold Unfold", LAYER),
    group("torch.nn.modules.distance", "CosineSimilarity PairwiseDistance", LAYER),
    group("torch.nn.modules.rnn", "RNN LSTM GRU RNNCell LSTMCell GRUCell", LAYER),
    group(
        "torch.nn.modules.pooling",
        "MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d \
         AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d \
         LPPool1d LPPool2d LPPool3d",
        LAYER,
    ),
    group(
        "torch.nn.modules.padding",
        "CircularPad1d CircularPad2d CircularPad3d ZeroPad1d ZeroPad2d ZeroPad3d ConstantPad1d ConstantPad2d \
         ConstantPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d",
        LAYER,
    ),
    group("torch.nn.modules.upsampling", "Upsample UpsamplingNearest2d UpsamplingBilinear2d", LAYER),
    group("torch.nn.modules.pixelshuffle", "PixelShuffle PixelUnshuffle", LAYER),
    group("torch.nn.modules.channelshuffle", "ChannelShuffle", LAYER),
    group(
        "torch.nn.modules.transformer",
        "Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer TransformerDecoderLayer",
        LAYER,
    ),
    group(
        "torch.nn.modules.loss",
        "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss HingeEmbeddingLoss \
         HuberLoss KLDivLoss L1Loss MSELoss MarginRankingLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss \
         MultiMarginLoss NLLLoss NLLLoss2d PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss",
        LAYER,
    ),
    group("torch.nn.functional", "relu gelu", ACTIVATION),
    group("torch._C._nn", "gelu", ACTIVATION),
    // The `.metadata` of distributed checkpoints.
    group(
        "torch.distributed.checkpoint.metadata",
        "Metadata MetadataIndex TensorStorageMetadata BytesStorageMetadata ChunkStorageMetadata StorageMeta",
        ATTRIBUTES,
    ),
    group("torch.distributed.checkpoint.metadata", "TensorProperties", Use::Class(State::Data)),
    group(
        "torch.distributed.checkpoint.metadata",
        "_MEM_FORMAT_ENCODING",
        Use::Function(Arguments::Kinds(&[Scalar], 1)),
    ),
    group("torch.distributed.checkpoint.filesystem", "_StorageInfo", ATTRIBUTES),
];

const ACTIVATION: Use =
    Use::Value(&["TransformerEncoderLayer.activation", "TransformerDecoderLayer.activation"]);
