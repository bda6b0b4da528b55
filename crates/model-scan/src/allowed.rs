//! Names that files of tensors need, and how each is used by the program that writes it.

/// What a loader may do with a name. Anything else is [`UnexpectedUse`](crate::Problem::UnexpectedUse).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Passed as a value, never called.
    Constant,
    /// Called with data by `REDUCE`, `NEWOBJ`, `OBJ` or `INST`; its state may be set.
    Container(Arguments),
    /// Created by `NEWOBJ` without running its constructor, or by `copyreg._reconstructor`; its state is a dict.
    Class,
    /// Called by `REDUCE`.
    Function(Arguments),
    /// The data of a TorchScript archive alone.
    Script,
}

/// What arguments are checked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// A tuple of anything: this many values.
    Count(usize, usize),
    /// Nothing, or one list, tuple, dict, set, string or bytes object: what is iterated has been read already.
    Data,
    /// Numbers and strings.
    Scalars,
    /// The bytes of a text: `(text, 'latin1')`.
    Encode,
    /// `(class, builtins.object, None)`.
    Reconstructor,
    /// Nothing, or a class of builtins.
    Factory,
    /// `(function, class, arguments, state)`: the function is one of this table.
    FromType,
    /// A type by its code.
    Dtype,
    /// `(numpy.ndarray, (0,), b'b')`.
    Reconstruct,
    /// A PyTorch file in a bytes object.
    Nested,
}

/// Names of one module with the same use.
pub(crate) struct Group {
    pub(crate) module: &'static str,
    pub(crate) names: &'static [&'static str],
    pub(crate) usage: Use,
}

const fn group(module: &'static str, names: &'static [&'static str], usage: Use) -> Group {
    Group { module, names, usage }
}

/// How an allowed name may be used; `None` for names that are not allowed. Names are those of Python 3.
pub(crate) fn usage(module: &str, name: &str) -> Option<Use> {
    if let Some(rest) = module.strip_prefix("__torch__")
        && (rest.is_empty() || rest.starts_with('.'))
        && !name.contains('.')
    {
        return Some(Use::Script);
    }
    let module = module.strip_prefix("numpy.core.").map_or(Module::Whole(module), Module::NumpyCore);
    let found = GROUPS.iter().find(|group| module.is(group.module) && group.names.contains(&name));
    found.map(|group| group.usage)
}

/// Whether names of the module are listed: a path of attributes from there is no name that a program writes.
pub(crate) fn has_module(module: &str) -> bool {
    GROUPS.iter().any(|group| group.module == module)
}

/// NumPy 2 writes `numpy._core` where NumPy 1 wrote `numpy.core`.
#[derive(Clone, Copy)]
enum Module<'n> {
    Whole(&'n str),
    NumpyCore(&'n str),
}

impl Module<'_> {
    fn is(self, listed: &str) -> bool {
        match self {
            Self::Whole(module) => module == listed,
            Self::NumpyCore(rest) => listed.strip_prefix("numpy._core.") == Some(rest),
        }
    }
}

const CLASS: Use = Use::Class;
const CONSTANT: Use = Use::Constant;
const DATA: Use = Use::Container(Arguments::Data);
const SCALARS: Use = Use::Container(Arguments::Scalars);

/// Storage types of PyTorch: the dtype in persistent ids.
const STORAGES: &[&str] = &[
    "DoubleStorage",
    "FloatStorage",
    "HalfStorage",
    "BFloat16Storage",
    "LongStorage",
    "IntStorage",
    "ShortStorage",
    "CharStorage",
    "ByteStorage",
    "BoolStorage",
    "ComplexFloatStorage",
    "ComplexDoubleStorage",
    "QInt8Storage",
    "QUInt8Storage",
    "QInt32Storage",
    "QUInt4x2Storage",
    "QUInt2x4Storage",
];

const GROUPS: &[Group] = &[
    // State dicts and the containers of the standard library.
    group("collections", &["OrderedDict", "Counter"], DATA),
    group("collections", &["defaultdict"], Use::Container(Arguments::Factory)),
    group("builtins", &["set", "frozenset", "tuple", "list", "dict", "bytearray"], DATA),
    // Empty bytes in protocols 0 to 2.
    group("builtins", &["bytes"], Use::Function(Arguments::Count(0, 0))),
    group("builtins", &["complex", "int", "float", "str", "bool", "slice", "range"], SCALARS),
    group("builtins", &["object"], CLASS),
    group("copyreg", &["_reconstructor"], Use::Function(Arguments::Reconstructor)),
    // Bytes in protocols 0 to 2.
    group("_codecs", &["encode"], Use::Function(Arguments::Encode)),
    // Values in configurations. Their constructors take text and open nothing.
    group("argparse", &["Namespace"], CLASS),
    group("types", &["SimpleNamespace"], CLASS),
    group("uuid", &["UUID"], CLASS),
    group("uuid", &["SafeUUID"], SCALARS),
    group(
        "pathlib",
        &["PurePath", "PurePosixPath", "PureWindowsPath", "Path", "PosixPath", "WindowsPath"],
        SCALARS,
    ),
    group(
        "pathlib._local",
        &["PurePath", "PurePosixPath", "PureWindowsPath", "Path", "PosixPath", "WindowsPath"],
        SCALARS,
    ),
    group("datetime", &["date", "time", "datetime", "timedelta"], Use::Container(Arguments::Count(0, 8))),
    group("datetime", &["timezone"], Use::Container(Arguments::Count(1, 2))),
    group("decimal", &["Decimal"], SCALARS),
    group("fractions", &["Fraction"], SCALARS),
    // Tensors of PyTorch.
    group("torch._utils", &["_rebuild_tensor"], Use::Function(Arguments::Count(4, 4))),
    group("torch._utils", &["_rebuild_tensor_v2"], Use::Function(Arguments::Count(6, 7))),
    group("torch._utils", &["_rebuild_tensor_v3"], Use::Function(Arguments::Count(7, 8))),
    group("torch._utils", &["_rebuild_parameter"], Use::Function(Arguments::Count(3, 3))),
    group("torch._utils", &["_rebuild_parameter_with_state"], Use::Function(Arguments::Count(4, 4))),
    group("torch._utils", &["_rebuild_qtensor"], Use::Function(Arguments::Count(7, 7))),
    group("torch._utils", &["_rebuild_sparse_tensor"], Use::Function(Arguments::Count(2, 2))),
    group("torch._utils", &["_rebuild_meta_tensor_no_storage"], Use::Function(Arguments::Count(4, 4))),
    group("torch._utils", &["_rebuild_wrapper_subclass"], Use::Function(Arguments::Count(8, 10))),
    group(
        "torch._utils",
        &["_rebuild_device_tensor_from_numpy", "_rebuild_device_tensor_from_cpu_tensor"],
        Use::Function(Arguments::Count(4, 4)),
    ),
    group("torch._utils", &["_rebuild_nested_tensor"], Use::Function(Arguments::Count(4, 4))),
    group("torch._tensor", &["_rebuild_from_type_v2"], Use::Function(Arguments::FromType)),
    group("torch.tensor", &["_rebuild_from_type_v2"], Use::Function(Arguments::FromType)),
    group("torch.serialization", &["_get_layout"], Use::Function(Arguments::Scalars)),
    group("torch.storage", &["_load_from_bytes"], Use::Function(Arguments::Nested)),
    group("torch.nn.parameter", &["Parameter", "Buffer"], Use::Container(Arguments::Count(0, 2))),
    group("torch", &["Tensor"], Use::Container(Arguments::Count(0, 0))),
    group("torch", &["Size"], DATA),
    group("torch", &["device"], SCALARS),
    group("torch", STORAGES, CONSTANT),
    group("torch.cuda", STORAGES, CONSTANT),
    group("torch.storage", &["UntypedStorage", "_UntypedStorage", "TypedStorage", "_TypedStorage"], CONSTANT),
    group(
        "torch",
        &[
            "float64",
            "float32",
            "float16",
            "bfloat16",
            "float8_e4m3fn",
            "float8_e4m3fnuz",
            "float8_e5m2",
            "float8_e5m2fnuz",
            "float8_e8m0fnu",
            "float4_e2m1fn_x2",
            "int64",
            "int32",
            "int16",
            "int8",
            "uint64",
            "uint32",
            "uint16",
            "uint8",
            "bool",
            "complex32",
            "complex64",
            "complex128",
            "qint8",
            "quint8",
            "qint32",
            "quint4x2",
            "quint2x4",
            "bits8",
            "bits16",
            "bits1x8",
            "bits2x4",
            "bits4x2",
        ],
        CONSTANT,
    ),
    group(
        "torch",
        &[
            "per_tensor_affine",
            "per_channel_affine",
            "per_channel_affine_float_qparams",
            "per_tensor_symmetric",
            "per_channel_symmetric",
            "strided",
            "sparse_coo",
            "sparse_csr",
            "sparse_csc",
            "sparse_bsr",
            "sparse_bsc",
            "jagged",
            "contiguous_format",
            "channels_last",
            "channels_last_3d",
            "preserve_format",
        ],
        CONSTANT,
    ),
    // Typed lists of TorchScript.
    group(
        "torch.jit._pickle",
        &["build_intlist", "build_tensorlist", "build_boollist", "build_doublelist"],
        Use::Function(Arguments::Count(1, 1)),
    ),
    group("torch.jit._pickle", &["restore_type_tag"], Use::Function(Arguments::Count(2, 2))),
    // Layers of PyTorch: their constructors are not run, their state is data.
    group("torch.nn.modules.linear", &["Linear", "Identity", "Bilinear"], CLASS),
    group(
        "torch.nn.modules.conv",
        &["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"],
        CLASS,
    ),
    group(
        "torch.nn.modules.batchnorm",
        &["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"],
        CLASS,
    ),
    group(
        "torch.nn.modules.normalization",
        &["LayerNorm", "GroupNorm", "RMSNorm", "LocalResponseNorm", "CrossMapLRN2d"],
        CLASS,
    ),
    group("torch.nn.modules.instancenorm", &["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"], CLASS),
    group(
        "torch.nn.modules.activation",
        &[
            "ReLU",
            "ReLU6",
            "GELU",
            "SiLU",
            "Sigmoid",
            "Tanh",
            "ELU",
            "CELU",
            "SELU",
            "GLU",
            "LeakyReLU",
            "PReLU",
            "RReLU",
            "Mish",
            "Softmax",
            "Softmax2d",
            "LogSoftmax",
            "LogSigmoid",
            "Softmin",
            "Softplus",
            "Softshrink",
            "Softsign",
            "Hardshrink",
            "Hardsigmoid",
            "Hardswish",
            "Hardtanh",
            "Tanhshrink",
            "Threshold",
            "MultiheadAttention",
        ],
        CLASS,
    ),
    group(
        "torch.nn.modules.container",
        &["Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"],
        CLASS,
    ),
    group(
        "torch.nn.modules.dropout",
        &["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"],
        CLASS,
    ),
    group("torch.nn.modules.sparse", &["Embedding", "EmbeddingBag"], CLASS),
    group("torch.nn.modules.flatten", &["Flatten", "Unflatten"], CLASS),
    group("torch.nn.modules.rnn", &["RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"], CLASS),
    group(
        "torch.nn.modules.pooling",
        &[
            "MaxPool1d",
            "MaxPool2d",
            "MaxPool3d",
            "AvgPool1d",
            "AvgPool2d",
            "AvgPool3d",
            "AdaptiveAvgPool1d",
            "AdaptiveAvgPool2d",
            "AdaptiveAvgPool3d",
            "AdaptiveMaxPool1d",
            "AdaptiveMaxPool2d",
            "AdaptiveMaxPool3d",
            "MaxUnpool1d",
            "MaxUnpool2d",
            "MaxUnpool3d",
        ],
        CLASS,
    ),
    group(
        "torch.nn.modules.padding",
        &[
            "ZeroPad2d",
            "ConstantPad1d",
            "ConstantPad2d",
            "ReflectionPad1d",
            "ReflectionPad2d",
            "ReplicationPad2d",
        ],
        CLASS,
    ),
    group("torch.nn.modules.upsampling", &["Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d"], CLASS),
    group("torch.nn.modules.pixelshuffle", &["PixelShuffle", "PixelUnshuffle"], CLASS),
    group(
        "torch.nn.modules.transformer",
        &[
            "Transformer",
            "TransformerEncoder",
            "TransformerDecoder",
            "TransformerEncoderLayer",
            "TransformerDecoderLayer",
        ],
        CLASS,
    ),
    // The `.metadata` of distributed checkpoints.
    group(
        "torch.distributed.checkpoint.metadata",
        &[
            "Metadata",
            "MetadataIndex",
            "TensorStorageMetadata",
            "BytesStorageMetadata",
            "ChunkStorageMetadata",
            "TensorProperties",
            "StorageMeta",
        ],
        CLASS,
    ),
    group(
        "torch.distributed.checkpoint.metadata",
        &["_MEM_FORMAT_ENCODING"],
        Use::Function(Arguments::Count(1, 1)),
    ),
    group("torch.distributed.checkpoint.filesystem", &["_StorageInfo"], CLASS),
    // Arrays of NumPy.
    group("numpy", &["ndarray", "matrix", "recarray", "record"], CONSTANT),
    // The name since NumPy 2.0.
    group("numpy.rec", &["recarray"], CONSTANT),
    group("numpy.matrixlib.defmatrix", &["matrix"], CONSTANT),
    group("numpy", &["dtype"], Use::Container(Arguments::Dtype)),
    group("numpy._core.multiarray", &["_reconstruct"], Use::Container(Arguments::Reconstruct)),
    group("numpy._core.multiarray", &["scalar"], Use::Function(Arguments::Count(1, 2))),
    group("numpy._core.numeric", &["_frombuffer"], Use::Function(Arguments::Count(4, 5))),
    group(
        "numpy",
        &[
            "float64",
            "float32",
            "float16",
            "int64",
            "int32",
            "int16",
            "int8",
            "uint64",
            "uint32",
            "uint16",
            "uint8",
            "bool_",
            "bool",
            "complex64",
            "complex128",
            "longdouble",
            "str_",
            "bytes_",
            "void",
            "object_",
        ],
        CONSTANT,
    ),
    group("ml_dtypes", &["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"], CONSTANT),
    group(
        "numpy.dtypes",
        &[
            "Float64DType",
            "Float32DType",
            "Float16DType",
            "Int64DType",
            "Int32DType",
            "Int16DType",
            "Int8DType",
            "UInt64DType",
            "UInt32DType",
            "UInt16DType",
            "UInt8DType",
            "BoolDType",
            "Complex64DType",
            "Complex128DType",
            "ObjectDType",
        ],
        CONSTANT,
    ),
    // Arrays between the opcodes.
    group("joblib.numpy_pickle", &["NumpyArrayWrapper"], CLASS),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact_and_listed_once() {
        for (idx, group) in GROUPS.iter().enumerate() {
            for name in group.names {
                let again = GROUPS[idx + 1..]
                    .iter()
                    .any(|other| other.module == group.module && other.names.contains(name));
                assert!(!again, "{}.{name} occurs twice", group.module);
                assert!(!name.contains('.'), "{name}");
            }
        }
        assert_eq!(usage("torch", "float32"), Some(Use::Constant));
        assert_eq!(usage("numpy.core.multiarray", "scalar"), usage("numpy._core.multiarray", "scalar"));
        assert_eq!(
            (usage("torch", "load"), usage("torch2", "float32"), usage("numpy.core", "x")),
            (None, None, None)
        );
        assert_eq!(
            (usage("__torch__.m", "C"), usage("__torch__x", "C"), usage("__torch__", "a.b")),
            (Some(Use::Script), None, None)
        );
    }
}
