//! Tensors, as the functions of PyTorch rebuild them.

use alloc::format;
use alloc::vec::Vec;

use pickle_core::{Value, ValueId};
use tensor_dtype::Dtype;

use crate::error::Error;
use crate::numpy::element::by_name;
use crate::options::Options;
use crate::pickled::{Found, Pickle, Storages};
use crate::tensor::ElementType;
use crate::torch::legacy;
use crate::view::View;

/// A parameter of a tensor of a subclass of a tensor.
const MAX_HOPS: usize = 8;

/// Bytes of a tensor that may be more than 64 times its storage.
const MAX_REPEATED: u64 = 1 << 28;

/// Keys of metadata.
const MAX_KEY: u64 = 64;

impl Pickle<'_> {
    /// The tensor or array that a value is, if it is one.
    pub(crate) fn tensor(
        &self,
        id: ValueId,
        storages: &dyn Storages,
        options: &Options,
    ) -> Result<Option<Found>, Error> {
        let mut id = id;
        // Function and arguments, if they are arguments themselves.
        let mut call: Option<(ValueId, ValueId)> = None;
        for _ in 0..MAX_HOPS {
            let ((module, name), args) = match call.take() {
                Some((function, args)) => match (self.global(function), self.tree.value(args)) {
                    (Some(name), Value::Tuple(args)) => (name, args),
                    _ => return Err(Error::malformed("a tensor that is built from nothing")),
                },
                None => match self.tree.value(id) {
                    Value::Object(_) => match self.callee(id) {
                        Some(name) => (name, self.args(id)),
                        None => return Ok(None),
                    },
                    Value::Persistent(class) if self.is_storage(class)? => {
                        return Ok(Some(Found::unsupported(Vec::new(), "a storage without a tensor")));
                    }
                    _ => return Ok(None),
                },
            };
            match (module, name, args) {
                ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state", &[data, ..])
                | ("torch.nn.parameter" | "torch.nn", "Parameter" | "Buffer", &[data, ..])
                | (
                    "torch._utils",
                    "_rebuild_device_tensor_from_numpy"
                    | "_rebuild_xla_tensor"
                    | "_rebuild_device_tensor_from_cpu_tensor",
                    &[data, ..],
                ) => {
                    id = data;
                }
                ("torch._tensor" | "torch.tensor", "_rebuild_from_type_v2", &[function, _, args, ..])
                | ("torch._tensor" | "torch.tensor", "_rebuild_from_type", &[function, _, args, ..]) => {
                    call = Some((function, args));
                }
                ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2" | "_rebuild_tensor_v3", _) => {
                    return self.dense(name, args, storages).map(Some);
                }
                ("torch._utils", _, _) if name.starts_with("_rebuild_") => {
                    return Ok(Some(self.other(name, args)));
                }
                (
                    "torch" | "torch.cuda",
                    "FloatTensor" | "DoubleTensor" | "HalfTensor" | "LongTensor" | "IntTensor"
                    | "ShortTensor" | "CharTensor" | "ByteTensor",
                    _,
                ) => {
                    return Ok(Some(Found::unsupported(Vec::new(), "a tensor of PyTorch before 0.4")));
                }
                ("torch.storage", _, _) if name.ends_with("Storage") || name == "_load_from_bytes" => {
                    return Ok(Some(Found::unsupported(Vec::new(), "a storage without a tensor")));
                }
                _ => return self.array(id, options),
            }
        }
        Err(Error::malformed("a tensor that is built from itself"))
    }

    fn is_storage(&self, id: ValueId) -> Result<bool, Error> {
        let Value::Tuple([kind, ..]) = self.tree.value(id) else { return Ok(true) };
        Ok(self.text(*kind, MAX_KEY)?.as_deref() != Some("module"))
    }

    /// `(storage, offset, size, stride, requires_grad, hooks, metadata)`; before the metadata the third version has a type.
    fn dense(&self, name: &str, args: &[ValueId], storages: &dyn Storages) -> Result<Found, Error> {
        let invalid = || Error::malformed("a tensor with an invalid offset, shape or strides");
        let [storage, offset, shape, strides, rest @ ..] = args else { return Err(invalid()) };
        let offset = self.int(*offset).ok_or_else(invalid)?;
        let shape = self.ints(*shape).ok_or_else(invalid)?;
        let strides = self.ints(*strides).ok_or_else(invalid)?;
        if shape.len() != strides.len() {
            return Err(invalid());
        }
        let (dtype, metadata) = match (name, rest) {
            ("_rebuild_tensor_v3", [_, _, dtype, metadata @ ..]) => (Some(*dtype), metadata.first()),
            ("_rebuild_tensor_v3", _) => return Err(Error::malformed("a tensor without a type")),
            ("_rebuild_tensor_v2", [_, _, metadata, ..]) => (None, Some(metadata)),
            _ => (None, None),
        };
        let (negate, conjugate) = self.signs(metadata.copied())?;
        let storage = self.storage(*storage, storages)?;
        let dtype = match dtype {
            Some(dtype) => match self.global(dtype) {
                Some(("torch", name)) => match dtype_by_name(name) {
                    Some(dtype) => dtype,
                    None => {
                        let name = located_error::cut(name, 64);
                        return Ok(Found::unsupported(
                            shape,
                            format!("a tensor of type {}", name.escape_debug()),
                        ));
                    }
                },
                _ => return Err(Error::malformed("a tensor without a type")),
            },
            None => match storage.dtype {
                Some(dtype) => dtype,
                None => return Ok(Found::unsupported(shape, "a tensor of bytes without a type")),
            },
        };
        let width = dtype.width() as u64;
        let len = shape.iter().try_fold(width, |len, &dim| len.checked_mul(dim));
        if len.is_some_and(|len| len > MAX_REPEATED.max(storage.len.saturating_mul(64))) {
            return Ok(Found::unsupported(shape, "a view that repeats its elements far beyond its storage"));
        }
        let own = storage.dtype.map_or(1, |dtype| dtype.width() as u64);
        // Of a view of another storage: in its elements.
        let base = storage.offset.checked_mul(own).filter(|bytes| width > 0 && bytes % width == 0);
        let base = base.map(|bytes| bytes / width);
        let offset = base.and_then(|base| base.checked_add(offset)).ok_or_else(invalid)?;
        let view = View {
            offset,
            strides: Some(strides),
            swap: if storage.is_big { dtype.number_width() } else { 0 },
            negate,
            conjugate,
        };
        Ok(Found::Tensor {
            dtype,
            shape,
            place: (storage.place, storage.len),
            view,
            storage: storage.identity,
        })
    }

    /// Whether the metadata say that numbers are stored with other signs.
    fn signs(&self, metadata: Option<ValueId>) -> Result<(bool, bool), Error> {
        let (mut negate, mut conjugate) = (false, false);
        if let Some(Value::Dict(pairs)) = metadata.map(|metadata| self.tree.value(metadata)) {
            for (key, value) in pairs.take(64) {
                let is_set = matches!(self.tree.value(value), Value::Bool(true));
                match self.text(key, MAX_KEY)?.as_deref() {
                    Some("neg") => negate = is_set,
                    Some("conj") => conjugate = is_set,
                    _ => {}
                }
            }
        }
        Ok((negate, conjugate))
    }

    /// The storage of a persistent id, or of a whole file inside a bytes object.
    fn storage(&self, id: ValueId, storages: &dyn Storages) -> Result<crate::pickled::Storage, Error> {
        match (self.tree.value(id), self.callee(id), self.args(id)) {
            (Value::Persistent(id), _, _) => storages.find(self, id),
            (_, Some(("torch.storage", "_load_from_bytes")), &[bytes]) => match self.tree.value(bytes) {
                Value::Bytes(span) => legacy::storage_in_bytes(self, span),
                _ => Err(Error::unsupported("a storage inside text")),
            },
            (_, Some(("torch.storage", "TypedStorage" | "_TypedStorage")), _) => {
                Err(Error::unsupported("a storage around a storage"))
            }
            _ => Err(Error::malformed("a tensor without a storage")),
        }
    }

    /// A tensor that is no dense one.
    fn other(&self, name: &str, args: &[ValueId]) -> Found {
        let shape = |at: usize| args.get(at).and_then(|&sizes| self.ints(sizes)).unwrap_or_default();
        match name {
            "_rebuild_qtensor" => Found::unsupported(
                shape(2),
                "a quantized tensor, whose integers mean nothing without its scales,",
            ),
            "_rebuild_sparse_tensor" | "_rebuild_sparse_csr_tensor" => {
                let parts = args.get(1).map(|&parts| self.tree.value(parts));
                let sizes = match parts {
                    Some(Value::Tuple(&[_, _, sizes, ..])) => self.ints(sizes),
                    _ => None,
                };
                Found::unsupported(sizes.unwrap_or_default(), "a sparse tensor")
            }
            "_rebuild_meta_tensor_no_storage" => {
                Found::unsupported(shape(1), "a meta tensor, which has no data,")
            }
            "_rebuild_wrapper_subclass" => Found::unsupported(shape(2), "a tensor that wraps other tensors"),
            "_rebuild_nested_tensor" => Found::unsupported(Vec::new(), "a nested tensor"),
            _ => Found::unsupported(Vec::new(), "a tensor of an unknown kind"),
        }
    }
}

/// The type with a name of PyTorch. Its names of ordinary types are those of NumPy.
fn dtype_by_name(name: &str) -> Option<ElementType> {
    Some(match name {
        "float" => ElementType::Known(Dtype::F32),
        "double" => ElementType::Known(Dtype::F64),
        "half" => ElementType::Known(Dtype::F16),
        "complex128" | "cdouble" => ElementType::C128,
        // Two values in a byte: the shape counts bytes.
        "float4_e2m1fn_x2" | "complex32" => return None,
        _ => by_name(name)?,
    })
    .filter(|dtype| dtype.width() > 0)
}
