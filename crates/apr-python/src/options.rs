//! Options for opening a file.

use core::fmt;

use pyo3::prelude::*;

use crate::error::refused;

/// Whose tensors a file gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framework {
    Pytorch,
    Numpy,
    Tensorflow,
    Flax,
    Mlx,
    Paddle,
}

impl Framework {
    pub(crate) fn from_name(name: &str) -> PyResult<Self> {
        Ok(match name {
            "pt" | "torch" | "pytorch" => Self::Pytorch,
            "np" | "numpy" => Self::Numpy,
            "tf" | "tensorflow" => Self::Tensorflow,
            "jax" | "flax" => Self::Flax,
            "mlx" => Self::Mlx,
            "paddle" => Self::Paddle,
            _ => return Err(refused(format!("framework {name} is invalid"))),
        })
    }

    /// Whether its tensors can be written to and may lie on memory that it was given.
    pub(crate) fn wants_to_write(self) -> bool {
        matches!(self, Self::Pytorch | Self::Paddle)
    }

    /// Whether its tensors can be elsewhere than in main memory.
    fn has_devices(self) -> bool {
        matches!(self, Self::Pytorch | Self::Paddle)
    }
}

impl fmt::Display for Framework {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pytorch => "pytorch",
            Self::Numpy => "numpy",
            Self::Tensorflow => "tensorflow",
            Self::Flax => "flax",
            Self::Mlx => "mlx",
            Self::Paddle => "paddle",
        })
    }
}

/// Where tensors are put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    /// By a name that a framework knows.
    Named(String),
    /// An accelerator that the framework chooses.
    Number(usize),
}

/// Kinds of accelerators that can be numbered, as in "cuda:1".
const NUMBERED: [&str; 8] = ["cuda", "musa", "mps", "npu", "xpu", "xla", "mlu", "hpu"];

impl Device {
    pub(crate) fn from_object(object: Option<&Bound<'_, PyAny>>, framework: Framework) -> PyResult<Self> {
        let device = match object {
            None => Self::Named("cpu".into()),
            Some(object) => match object.extract::<String>() {
                Ok(name) => Self::from_name(&name)?,
                Err(_) => match object.extract() {
                    Ok(number) => Self::Number(number),
                    Err(_) if is_torch_device(object)? => Self::from_name(&object.str()?.to_string())?,
                    Err(_) => return Err(refused(format!("device {} is invalid", object.repr()?))),
                },
            },
        };
        if !device.is_cpu() && !framework.has_devices() {
            return Err(refused(format!("Device {device} is not supported for framework {framework}")));
        }
        Ok(device)
    }

    fn from_name(name: &str) -> PyResult<Self> {
        let invalid = || refused(format!("device {name} is invalid"));
        let (kind, number) = match name.split_once(':') {
            Some((kind, number)) => (kind, number.parse::<usize>().map_err(|_| invalid())?),
            None => (name, 0),
        };
        match kind {
            "cpu" if name == kind => Ok(Self::Named(name.into())),
            "mps" if number == 0 => Ok(Self::Named(kind.into())),
            "mps" => Err(refused(format!("device {name} is invalid: only mps or mps:0 is supported"))),
            _ if NUMBERED.contains(&kind) => Ok(Self::Named(format!("{kind}:{number}"))),
            _ => Err(invalid()),
        }
    }

    fn is_cpu(&self) -> bool {
        matches!(self, Self::Named(name) if name == "cpu")
    }

    /// The name or the number for Python.
    pub(crate) fn to_object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Self::Named(name) => name.into_pyobject(py)?.into_any(),
            Self::Number(number) => number.into_pyobject(py)?.into_any(),
        })
    }
}

/// The name or the number of a device, as `safe_open` understands it: "cuda" and `torch.device("cuda")` are "cuda:0", None is "cpu".
/// Raises SafetensorError.
#[pyfunction]
pub(crate) fn device_of<'py>(
    framework: &str,
    device: Option<&Bound<'py, PyAny>>,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    Device::from_object(device, Framework::from_name(framework)?)?.to_object(py)
}

/// Whether this is a `torch.device`, whose text is a name.
fn is_torch_device(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let class = object.get_type();
    Ok(class.name()? == "device" && class.module()? == "torch")
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// How a tensor's bytes come from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// They are the file's own pages.
    Mmap,
    /// Each tensor is read when it is asked for.
    Pread,
    /// All are read when the file is opened.
    Read,
}

impl Backend {
    pub(crate) fn from_name(name: &str) -> PyResult<Self> {
        Ok(match name {
            "mmap" => Self::Mmap,
            "pread" => Self::Pread,
            "read" => Self::Read,
            _ => {
                return Err(refused(format!(
                    "backend {name:?} is invalid (expected one of: \"mmap\", \"pread\", \"read\")"
                )));
            }
        })
    }
}
