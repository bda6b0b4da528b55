//! Symbols of TensorFlow that layers of TF-Keras call when a model is loaded: `TFOpLambda`, `SlicingOpLambda`, `ClassMethod`, `InstanceMethod`,
//! `InstanceProperty`.

use crate::problem::Problem;

/// Modules of functions that only compute.
const MODULES: [&str; 15] = [
    "__operators__",
    "bitwise",
    "compat.v1.math",
    "compat.v1.nn",
    "dtypes",
    "image",
    "linalg",
    "math",
    "nn",
    "ragged",
    "random",
    "sets",
    "signal",
    "sparse",
    "strings",
];

/// Functions and classes at the root.
const ROOT: [&str; 102] = [
    "RaggedTensor",
    "SparseTensor",
    "abs",
    "acos",
    "add",
    "add_n",
    "argmax",
    "argmin",
    "argsort",
    "asin",
    "atan",
    "boolean_mask",
    "broadcast_to",
    "cast",
    "clip_by_value",
    "complex",
    "concat",
    "cond",
    "convert_to_tensor",
    "cos",
    "cosh",
    "cumsum",
    "divide",
    "einsum",
    "ensure_shape",
    "equal",
    "exp",
    "expand_dims",
    "eye",
    "fill",
    "floor",
    "gather",
    "gather_nd",
    "greater",
    "greater_equal",
    "identity",
    "less",
    "less_equal",
    "linspace",
    "logical_and",
    "logical_not",
    "logical_or",
    "matmul",
    "maximum",
    "meshgrid",
    "minimum",
    "multiply",
    "negative",
    "norm",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "pad",
    "pow",
    "range",
    "rank",
    "realdiv",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "repeat",
    "reshape",
    "reverse",
    "roll",
    "round",
    "scatter_nd",
    "searchsorted",
    "sequence_mask",
    "shape",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "size",
    "slice",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stop_gradient",
    "strided_slice",
    "subtract",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "transpose",
    "tril",
    "truediv",
    "unique",
    "unstack",
    "where",
    "zeros",
    "zeros_like",
];

/// Modules and functions that read or write files, use the network, load libraries or change the process.
const DANGEROUS: [&str; 15] = [
    "config",
    "data",
    "debugging",
    "distribute",
    "experimental",
    "io",
    "keras",
    "numpy_function",
    "print",
    "profiler",
    "py_function",
    "raw_ops",
    "saved_model",
    "summary",
    "train",
];

/// Methods and properties of tensors that TF-Keras writes.
const MEMBERS: [&str; 34] = [
    "bounding_shape",
    "consumers",
    "dense_shape",
    "dtype",
    "flat_values",
    "from_dense",
    "from_nested_row_lengths",
    "from_nested_row_splits",
    "from_nested_value_rowids",
    "from_row_lengths",
    "from_row_limits",
    "from_row_splits",
    "from_row_starts",
    "from_sparse",
    "from_tensor",
    "from_uniform_row_length",
    "from_value_rowids",
    "indices",
    "merge_dims",
    "ndim",
    "nested_row_splits",
    "nrows",
    "ragged_rank",
    "rank",
    "row_lengths",
    "row_limits",
    "row_splits",
    "row_starts",
    "shape",
    "to_sparse",
    "to_tensor",
    "value_rowids",
    "values",
    "with_values",
];

/// A function or class by its name below `tf`.
pub(super) fn function(name: &str) -> Option<Problem> {
    let path = name.strip_prefix("tf.").unwrap_or(name);
    let (module, last) = path.rsplit_once('.').unwrap_or(("", path));
    let root = path.split('.').find(|part| !["compat", "v1", "v2"].contains(part)).unwrap_or_default();
    let is_plain = last.starts_with(|first: char| first.is_ascii_alphanumeric());
    let is_known = match module {
        "" => ROOT.contains(&last),
        module => MODULES.contains(&module),
    };
    let name = super::cut(name);
    if is_known && is_plain {
        None
    } else if DANGEROUS.contains(&root) || root.starts_with("load_") {
        Some(Problem::KerasCode { name })
    } else {
        Some(Problem::KerasName { name })
    }
}

/// A method or property of a tensor.
pub(super) fn is_member(name: &str) -> bool {
    MEMBERS.contains(&name)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn code(name: &str) -> &'static str {
        function(name).map_or("", |problem| problem.code())
    }

    #[test]
    fn functions_are_those_of_the_lists() {
        for name in ROOT {
            assert_eq!((code(name), code(&format!("tf.{name}"))), ("", ""), "{name}");
            assert_eq!(code(&format!("my.{name}")), "sc-keras-name", "{name}");
        }
        for module in MODULES {
            assert_eq!(code(&format!("{module}.f")), "", "{module}");
            assert_eq!(code(&format!("{module}._f")), "sc-keras-name", "{module}");
            assert_eq!(code(&format!("{module}.f.g")), "sc-keras-name", "{module}");
        }
        for name in DANGEROUS {
            assert_eq!(
                (code(name), code(&format!("{name}.f"))),
                ("sc-keras-code", "sc-keras-code"),
                "{name}"
            );
            assert_eq!(code(&format!("compat.v1.{name}.f")), "sc-keras-code", "{name}");
            assert_eq!(code(&format!("compat.v2.{name}.f")), "sc-keras-code", "{name}");
        }
        for (name, expected) in [
            ("keras.utils.get_file", "sc-keras-code"),
            ("load_library", "sc-keras-code"),
            ("load_op_library", "sc-keras-code"),
            ("Variable", "sc-keras-name"),
            ("function", "sc-keras-name"),
            ("", "sc-keras-name"),
            ("math", "sc-keras-name"),
            ("quantization.f", "sc-keras-name"),
        ] {
            assert_eq!(code(name), expected, "{name}");
        }
    }

    #[test]
    fn members_are_those_of_tensors() {
        for name in MEMBERS {
            assert!(is_member(name), "{name}");
            assert!(!is_member(&format!("_{name}")), "{name}");
        }
        assert!(!is_member("__call__"));
    }
}
