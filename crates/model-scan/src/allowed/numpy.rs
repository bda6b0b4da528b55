//! Arrays, types and random states of NumPy; sparse matrices of SciPy.

use super::Kind::{ArrayClass, Generator, GeneratorFunction, Plain, Scalar, Sibling};
use super::{Arguments, CONSTANT, Group, State, Use, group};

/// Functions of numbers, which `FunctionTransformer` and `TransformedTargetRegressor` apply.
const UFUNCS: &str = "log log1p log2 log10 exp expm1 exp2 sqrt square cbrt absolute sin cos tan arcsin arccos arctan \
    sinh cosh tanh arcsinh arccosh arctanh reciprocal negative positive sign floor ceil rint trunc deg2rad rad2deg";

const UFUNC: Use = Use::Value(&[
    "FunctionTransformer.func",
    "FunctionTransformer.inverse_func",
    "TransformedTargetRegressor.func",
    "TransformedTargetRegressor.inverse_func",
]);

/// State of matrices: attributes of a Python object.
const SPARSE: Use = Use::Class(State::Attributes);

pub(super) const GROUPS: &[Group] = &[
    group("numpy", "ndarray matrix recarray record", Use::Argument),
    // The name since NumPy 2.0.
    group("numpy.rec", "recarray", Use::Argument),
    group("numpy.matrixlib.defmatrix", "matrix", Use::Argument),
    group("numpy.ma", "MaskedArray", Use::Argument),
    group("numpy.ma.core", "MaskedArray", Use::Argument),
    group(
        "numpy.ma.core",
        "_mareconstruct",
        Use::Function(Arguments::Object(&[ArrayClass, ArrayClass, Plain, Scalar], 4)),
    ),
    group("numpy", "dtype", Use::Container(Arguments::Dtype)),
    group("numpy._core.multiarray", "_reconstruct", Use::Function(Arguments::Reconstruct)),
    group("numpy._core.multiarray", "scalar", Use::Function(Arguments::Kinds(&[Plain, Plain], 1))),
    group(
        "numpy._core.numeric",
        "_frombuffer",
        Use::Function(Arguments::Kinds(&[Plain, Plain, Plain, Scalar, Scalar], 4)),
    ),
    group(
        "numpy",
        "float64 float32 float16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool_ bool complex64 complex128 \
         longdouble str_ bytes_ void object_",
        CONSTANT,
    ),
    group("ml_dtypes", "bfloat16 float8_e4m3fn float8_e5m2 int4 uint4", CONSTANT),
    group(
        "numpy.dtypes",
        "Float64DType Float32DType Float16DType Int64DType Int32DType Int16DType Int8DType UInt64DType UInt32DType \
         UInt16DType UInt8DType BoolDType Complex64DType Complex128DType ObjectDType",
        CONSTANT,
    ),
    group("numpy", UFUNCS, UFUNC),
    group("numpy._core._multiarray_umath", UFUNCS, UFUNC),
    group("numpy", "mean median max min amax amin sum", Use::Value(&["FeatureAgglomeration.pooling_func"])),
    // Random states.
    group("numpy.random._mt19937", "MT19937", Use::Argument),
    group("numpy.random._pcg64", "PCG64 PCG64DXSM", Use::Argument),
    group("numpy.random._philox", "Philox", Use::Argument),
    group("numpy.random._sfc64", "SFC64", Use::Argument),
    group("numpy.random.bit_generator", "SeedSequence", Use::Argument),
    group("numpy.random", "__RandomState_ctor", Use::Function(Arguments::Object(&[], 0))),
    group("numpy.random._pickle", "__bit_generator_ctor", Use::Function(Arguments::Object(&[Generator], 0))),
    group(
        "numpy.random._pickle",
        "__randomstate_ctor __generator_ctor",
        Use::Function(Arguments::Object(&[Generator, GeneratorFunction], 0)),
    ),
    group(
        "numpy.random.bit_generator",
        "__pyx_unpickle_SeedSequence",
        Use::Function(Arguments::Object(&[Sibling, Scalar, Plain], 3)),
    ),
    // Sparse matrices, by the names of SciPy since 1.8 and before.
    group("scipy.sparse._csr", "csr_matrix csr_array", SPARSE),
    group("scipy.sparse._csc", "csc_matrix csc_array", SPARSE),
    group("scipy.sparse._coo", "coo_matrix coo_array", SPARSE),
    group("scipy.sparse._bsr", "bsr_matrix bsr_array", SPARSE),
    group("scipy.sparse._dia", "dia_matrix dia_array", SPARSE),
    group("scipy.sparse._lil", "lil_matrix lil_array", SPARSE),
    group("scipy.sparse.csr", "csr_matrix", SPARSE),
    group("scipy.sparse.csc", "csc_matrix", SPARSE),
    group("scipy.sparse.coo", "coo_matrix", SPARSE),
    group("scipy.interpolate._bsplines", "BSpline", SPARSE),
    group("scipy._lib.array_api_compat.numpy._aliases", "asarray", Use::Value(&["BSpline._asarray"])),
];
