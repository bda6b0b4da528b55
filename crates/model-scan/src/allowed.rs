//! Names that files of models need, and the place of each: what may be done with it, and where it may lie.

mod numpy;
mod python;
mod sklearn;
mod torch;

pub(crate) use self::sklearn::METHODS as ESTIMATOR_METHODS;
pub(crate) use self::torch::METHODS as MODULE_METHODS;

/// Use of a name by a loader. Anything else is [`UnexpectedUse`](crate::Problem::UnexpectedUse).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Never called. It may lie anywhere, because it runs nothing.
    Constant,
    /// A type of numbers or text: called with data, and it may lie anywhere.
    Type(Arguments),
    /// Never called by the file. It is an argument of the functions that expect it, or part of a persistent id.
    Argument,
    /// A function or class that lies in a state: `Class.key`, for each place.
    Value(&'static [&'static str]),
    /// Called with data by `REDUCE`, `NEWOBJ`, `OBJ` or `INST`; items may be added, and its state may be set.
    Container(Arguments),
    /// Created by `NEWOBJ` without running its constructor, or by `copyreg._reconstructor`.
    Class(State),
    /// Called by `REDUCE`.
    Function(Arguments),
    /// The data of a TorchScript archive alone.
    Script,
}

impl Use {
    /// Whether it is code: something that runs if another program calls it.
    pub(crate) const fn is_code(self) -> bool {
        !matches!(self, Self::Constant | Self::Type(_) | Self::Script)
    }
}

/// State that `BUILD` may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing.
    None,
    /// A tuple or a dict, which compiled code reads.
    Data,
    /// A dict of attributes: no method, no special name.
    Attributes,
    /// Attributes of estimators: not the names of their methods either.
    Estimator,
    /// Attributes of layers of PyTorch, without the names of their methods: values are data, members are tensors and layers, and hooks are empty.
    Module,
    /// `_metadata` alone.
    Metadata,
    /// The description of an array that joblib writes.
    Wrapper,
    /// `(function, (), keywords, None)`.
    Partial,
}

/// Check of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// At least so many of these. The result is data.
    Kinds(&'static [Kind], usize),
    /// At least so many of these. Compiled code sets the state of the result.
    Object(&'static [Kind], usize),
    /// At least so many of these. The result is a tensor.
    Tensor(&'static [Kind], usize),
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
    /// `(function, class, arguments, state)`: the function is one of this table, and the arguments are its own.
    FromType,
    /// A type by its code.
    Dtype,
    /// `(numpy.ndarray, (0,), b'b')`.
    Reconstruct,
    /// A PyTorch file in a bytes object.
    Nested,
    /// A function that may lie in a `functools.partial`.
    Partial,
}

/// Kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything but code.
    Plain,
    /// A number, a string, bytes or `None`.
    Scalar,
    /// A storage of PyTorch.
    Storage,
    /// The result of a function of tensors.
    Tensor,
    /// Hooks of a tensor: there are none.
    Hooks,
    /// Attributes of a tensor.
    Attributes,
    /// The class of tensors or parameters.
    TensorClass,
    /// An array of NumPy.
    Array,
    /// A class of arrays.
    ArrayClass,
    /// A bit generator of NumPy, its class, or its name.
    Generator,
    /// The function that makes bit generators.
    GeneratorFunction,
    /// A class of the module of the function.
    Sibling,
}

/// Names of one module with the same use, separated by blanks.
pub(crate) struct Group {
    pub(crate) module: &'static str,
    pub(crate) names: &'static str,
    pub(crate) usage: Use,
}

const fn group(module: &'static str, names: &'static str, usage: Use) -> Group {
    Group { module, names, usage }
}

const CONSTANT: Use = Use::Constant;
const ATTRIBUTES: Use = Use::Class(State::Attributes);

/// Use of an allowed name; `None` for names that are not allowed. Names are those of Python 3.
pub(crate) fn usage(module: &str, name: &str) -> Option<Use> {
    if let Some(rest) = module.strip_prefix("__torch__")
        && (rest.is_empty() || rest.starts_with('.'))
        && !name.contains('.')
    {
        return Some(Use::Script);
    }
    if name.is_empty() || name.contains(' ') {
        return None;
    }
    let module = module.strip_prefix("numpy.core.").map_or(Module::Whole(module), Module::NumpyCore);
    let mut groups = TABLES.into_iter().flatten();
    let found = groups.find(|group| module.is(group.module) && has(group.names, name));
    found.map(|group| group.usage).or_else(|| match module {
        Module::Whole(module) if sklearn::is_class(module, name) => Some(Use::Class(State::Estimator)),
        _ => None,
    })
}

/// Whether names of the module are listed: no program writes a path of attributes from there.
pub(crate) fn has_module(module: &str) -> bool {
    TABLES.into_iter().flatten().any(|group| group.module == module) || sklearn::has_module(module)
}

fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|listed| listed == name)
}

const TABLES: [&[Group]; 4] = [python::GROUPS, torch::GROUPS, numpy::GROUPS, sklearn::GROUPS];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact_and_listed_once() {
        let groups: alloc::vec::Vec<_> = TABLES.into_iter().flatten().collect();
        for (idx, group) in groups.iter().enumerate() {
            for name in group.names.split(' ') {
                let again = groups[idx + 1..]
                    .iter()
                    .any(|other| other.module == group.module && has(other.names, name));
                assert!(!again, "{}.{name} occurs twice", group.module);
                assert!(!name.contains('.') && !name.is_empty(), "{}.{name}", group.module);
                assert!(!sklearn::is_class(group.module, name), "{}.{name} occurs twice", group.module);
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
        let estimator = Some(Use::Class(State::Estimator));
        assert_eq!(usage("sklearn.linear_model._base", "LinearRegression"), estimator);
        for (module, name) in [
            ("sklearn.linear_model._base", "Linear"),
            ("sklearn.linear_model._base", "LinearRegression x"),
            ("sklearn.linear_model._base", ""),
            ("sklearn.linear_model", "LinearRegression"),
            ("torch", "float32 float16"),
            ("torch", ""),
        ] {
            assert_eq!(usage(module, name), None, "{module} {name}");
        }
        for (module, listed) in [("torch", true), ("sklearn.linear_model._base", true), ("sklearn", false)] {
            assert_eq!(has_module(module), listed, "{module}");
        }
    }
}
