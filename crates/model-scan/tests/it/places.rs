//! Places of names: each may be called, or lie, only where the program that writes it puts it.

use model_scan::Origin;

use crate::rules::codes;

/// Opcodes as text: one byte for each character.
pub(crate) fn opcodes(text: &str) -> Vec<u8> {
    text.chars().map(|byte| u8::try_from(u32::from(byte)).expect("a byte")).collect()
}

/// `module name` resolved.
pub(crate) fn name(name: &str) -> String {
    format!("c{}\n", name.replace(' ', "\n"))
}

/// A function called with arguments.
pub(crate) fn call(function: &str, args: &[&str]) -> String {
    format!("{}({}tR", name(function), args.concat())
}

/// A dict.
pub(crate) fn dict(entries: &[(&str, &str)]) -> String {
    let entries: String = entries.iter().map(|(key, value)| format!("V{key}\n{value}")).collect();
    format!("}}({entries}u")
}

/// An object created without its constructor, with attributes.
pub(crate) fn object(class: &str, attributes: &[(&str, &str)]) -> String {
    format!("{})\u{81}{}b", name(class), dict(attributes))
}

/// A tensor without storage.
pub(crate) fn tensor() -> String {
    call("torch._utils _rebuild_meta_tensor_no_storage", &["ctorch\nfloat32\n", ")", ")", "I00\n"])
}

#[track_caller]
pub(crate) fn check(text: &str, expected: &[&str]) {
    assert_eq!(codes(&opcodes(&format!("{text}.")), Origin::File).1, expected, "{text:?}");
}

const USE: &[&str] = &["sc-unexpected-use"];

/// Names with a use of each kind that is code.
const CODE: [&str; 12] = [
    "collections OrderedDict",
    "__builtin__ bytes",
    "__builtin__ list",
    "_codecs encode",
    "torch.storage _load_from_bytes",
    "torch.jit._pickle restore_type_tag",
    "torch.nn.modules.linear Identity",
    "torch FloatStorage",
    "numpy ndarray",
    "numpy log1p",
    "sklearn.linear_model._base LinearRegression",
    "functools partial",
];

#[test]
fn code_lies_nowhere_as_a_value() {
    for code in CODE {
        let code = &name(code);
        for place in [
            code.clone(),
            format!("(l{code}a"),
            format!("({code}l"),
            format!("({code}t"),
            format!("(({code}tt"),
            format!("}}{code}Ns"),
            format!("}}N{code}s"),
            format!("\u{8f}({code}\u{90}"),
            format!("({code}\u{91}"),
            format!("(lp0\n0{code}p1\n0g0\ng1\na"),
            format!("({code}tp0\n0(g0\nl"),
            call("collections OrderedDict", &[]) + "N" + code + "s",
            call("collections OrderedDict", &[]) + code + "Ns",
            call("__builtin__ list", &[]) + code + "a",
            call("__builtin__ set", &[&format!("({code}t")]),
            call("__builtin__ set", &[]) + "(" + code + "\u{90}",
            call(
                "torch._tensor _rebuild_from_type_v2",
                &[
                    &name("torch._utils _rebuild_meta_tensor_no_storage"),
                    &name("torch Tensor"),
                    &format!("(N({code}t)I00\nt"),
                    "}",
                ],
            ),
            call("datetime timedelta", &[code]),
            call("torch Size", &[&format!("(({code}tt")]),
            object("argparse Namespace", &[("x", code)]),
            object("torch.nn.modules.linear Linear", &[("x", code)]),
            object("sklearn.pipeline Pipeline", &[("x", code)]),
        ] {
            check(&place, USE);
        }
        // What is resolved and dropped runs nothing.
        check(&format!("{code}0N"), &[]);
    }
}

#[test]
fn what_is_no_code_lies_anywhere() {
    for constant in
        ["torch float32", "numpy float64", "__builtin__ float", "__builtin__ object", "torch strided"]
    {
        let constant = &name(constant);
        for place in
            [constant.clone(), format!("({constant}t"), format!("({constant}l"), dict(&[("x", constant)])]
        {
            check(&place, &[]);
        }
    }
}

#[test]
fn persistent_ids_have_the_class_of_a_storage() {
    let id = |class: &str, location: &str| {
        opcodes(&format!("(S'storage'\n{}S'0'\n{location}I2\ntQ.", name(class)))
    };
    let found = |class: &str, location: &str| codes(&id(class, location), Origin::Torch).1;
    assert_eq!(found("torch FloatStorage", "S'cpu'\n"), [""; 0]);
    assert_eq!(found("torch.nn.modules.linear Linear", "S'cpu'\n"), ["sc-persistent-id"]);
    assert_eq!(found("torch FloatStorage", &name("torch.storage _load_from_bytes")), USE);
    for (rest, expected) in [("NN", &[][..]), ("NNN", &["sc-persistent-id"])] {
        let id = format!("(S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI2\n{rest}tQ.");
        assert_eq!(codes(id.as_bytes(), Origin::Torch).1, expected, "{rest}");
    }
    // The id itself is not a value.
    let listed = "(S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI2\ntp0\nQ0(g0\nl.";
    assert_eq!(codes(listed.as_bytes(), Origin::Torch).1, USE);
}

#[test]
fn functions_lie_where_their_class_expects_them() {
    let log1p = &name("numpy log1p");
    let relu = &name("torch.nn.functional relu");
    let f1 = &name("sklearn.metrics._classification f1_score");
    let chi2 = &name("sklearn.feature_selection._univariate_selection chi2");
    let fold = &name("sklearn.model_selection._split KFold");
    let transformer = "sklearn.preprocessing._function_transformer FunctionTransformer";
    for (class, key, value) in [
        (transformer, "func", log1p),
        (transformer, "inverse_func", log1p),
        ("sklearn.compose._target TransformedTargetRegressor", "func", log1p),
        ("sklearn.metrics._scorer _Scorer", "_score_func", f1),
        ("sklearn.feature_selection._univariate_selection SelectKBest", "score_func", chi2),
        ("sklearn.model_selection._split RepeatedKFold", "cv", fold),
        ("torch.nn.modules.transformer TransformerEncoderLayer", "activation", relu),
        ("torch.nn.modules.transformer TransformerDecoderLayer", "activation", &name("torch._C._nn gelu")),
    ] {
        check(&object(class, &[(key, value)]), &[]);
        check(&object(class, &[("other", value)]), USE);
        check(&object(class, &[(key, &name("torch.storage _load_from_bytes"))]), USE);
        // The state is not a value elsewhere.
        let state = dict(&[(key, value)]);
        check(&format!("({state}p0\n{})\u{81}g0\nbl", name(class)), USE);
        check(
            &format!("{})\u{81}{}b", name(class), format_args!("({value}Nt")),
            &["sc-unexpected-state", USE[0]],
        );
    }
    check(&object("torch.nn.modules.linear Linear", &[("activation", relu)]), USE);
    check(&object("sklearn.pipeline Pipeline", &[("cv", fold)]), USE);
    let shuffle = &name("sklearn.model_selection._split ShuffleSplit");
    check(&object("sklearn.model_selection._split RepeatedKFold", &[("cv", shuffle)]), USE);
    let wrapper = |key: &str, value: &str| {
        let wrapper = object("joblib.numpy_pickle NumpyArrayWrapper", &[(key, &name(value))]);
        codes(&opcodes(&(wrapper + ".")), Origin::File).1
    };
    // The description of an array lacks its shape.
    assert_eq!(wrapper("subclass", "numpy ndarray"), ["sc-malformed"]);
    assert_eq!(wrapper("subclass", "numpy log1p"), ["sc-unexpected-use", "sc-malformed"]);
    assert_eq!(wrapper("order", "numpy ndarray"), ["sc-unexpected-use", "sc-malformed"]);
    check(&object("sklearn.pipeline Pipeline", &[("subclass", &name("numpy ndarray"))]), USE);
}

#[test]
fn partial_functions_are_those_of_scikit_learn() {
    let function = &name("sklearn.utils.validation check_array");
    let partial = |function: &str| call("functools partial", &[function]);
    let state = |parts: &str| format!("{}({parts}tb", partial(function));
    let transformer = |func: &str| {
        object("sklearn.preprocessing._function_transformer FunctionTransformer", &[("func", func)])
    };
    let good = state(&format!("{function}){}N", dict(&[("dtype", &name("numpy float64"))])));
    check(&transformer(&good), &[]);
    check(&transformer(&partial(&name("numpy log1p"))), USE);
    check(&transformer(&partial("N")), USE);
    check(&transformer(&call("functools partial", &[function, "I1\n"])), USE);
    for parts in [
        format!("{}){}N", name("numpy log1p"), "}"),
        format!("N){}N", "}"),
        format!("{function}(Nt{}N", "}"),
        format!("{function}){}N", "]"),
        format!("{function}){}{}", "}", "}"),
        format!("{function}){}", "}"),
    ] {
        check(&transformer(&state(&parts)), &["sc-unexpected-state"]);
    }
    check(&good, USE);
    check(&format!("({good}l"), USE);
    check(&object("argparse Namespace", &[("func", &good)]), USE);
}

#[test]
fn methods_of_distributions_are_not_called_dangerous() {
    let distribution = &format!("{})\u{81}", name("scipy.stats._discrete_distns randint_gen"));
    let getattr = |args: &[&str]| call("__builtin__ getattr", args);
    let unknown: &[&str] = &["sc-unknown-name", "sc-unknown-name"];
    check(&getattr(&[distribution, "V_ppf_single\n"]), unknown);
    let dangerous: &[&str] = &["sc-unknown-name", "sc-unknown-name", "sc-dangerous-name"];
    check(&getattr(&[distribution, "V__class__\n"]), dangerous);
    check(&getattr(&[distribution, "I1\n"]), dangerous);
    check(&getattr(&[distribution]), dangerous);
    check(&getattr(&[&name("scipy.stats._discrete_distns randint_gen"), "Vx\n"]), dangerous);
    let dangerous: &[&str] = &["sc-unknown-name", "sc-dangerous-name"];
    check(&getattr(&[&tensor(), "Vx\n"]), dangerous);
    check(&name("__builtin__ getattr"), dangerous);
    check(&format!("({}l", name("__builtin__ getattr")), dangerous);
}

/// Each function takes what its writer passes, and refuses another value in each place.
#[test]
fn arguments_are_what_writers_pass() {
    let (tensor, hooks) = (&tensor(), &call("collections OrderedDict", &[]));
    let storage = &call("torch.storage _load_from_bytes", &["VN.\n"]);
    let (array, none, flag) = (&name("numpy ndarray"), "N", "I00\n");
    let ndarray = &call("numpy.core.multiarray _reconstruct", &[array, "(I0\nt", "S'b'\n"]);
    let made = &call("numpy.random._pickle __bit_generator_ctor", &["VMT19937\n"]);
    let function = &name("torch.jit._pickle restore_type_tag");
    let state = &dict(&[("name", "Vx\n")]);
    let class = &name("torch Tensor");
    for (callee, args, wrong) in [
        ("torch._utils _rebuild_tensor", &[storage.as_str(), "I0\n", ")", ")"][..], &[0, 1, 2, 3][..]),
        ("torch._utils _rebuild_tensor_v2", &[storage, "I0\n", ")", ")", flag, hooks], &[0, 1, 2, 3, 4]),
        (
            "torch._utils _rebuild_tensor_v2",
            &[storage, "I0\n", ")", ")", flag, none, "}"],
            &[0, 1, 2, 3, 4, 6],
        ),
        ("torch._utils _rebuild_tensor_v3", &[storage, "I0\n", ")", ")", flag, hooks, none], &[0, 6]),
        ("torch._utils _rebuild_parameter", &[tensor, flag, hooks], &[0, 1]),
        ("torch._utils _rebuild_parameter_with_state", &[tensor, flag, hooks, state], &[0, 1, 3]),
        ("torch._utils _rebuild_qtensor", &[storage, "I0\n", ")", ")", ")", flag, hooks], &[0, 4]),
        ("torch._utils _rebuild_sparse_tensor", &[none, ")"], &[0, 1]),
        ("torch._utils _rebuild_wrapper_subclass", &[class, none, ")", ")", none, none, none, flag], &[0, 7]),
        ("torch._utils _rebuild_device_tensor_from_numpy", &[ndarray, none, none, flag], &[0, 3]),
        ("torch._utils _rebuild_device_tensor_from_cpu_tensor", &[tensor, none, none, flag], &[0, 3]),
        ("torch._utils _rebuild_nested_tensor", &[tensor, tensor, tensor, tensor], &[0, 1, 2, 3]),
        ("torch.nn.parameter Parameter", &[tensor, flag], &[0, 1]),
        ("torch.nn.parameter Buffer", &[tensor], &[0]),
        ("torch.jit._pickle restore_type_tag", &["I1\n", "Vint\n"], &[0, 1]),
        ("torch.jit._pickle build_intlist", &["]"], &[0]),
        ("numpy.core.multiarray scalar", &[none, none], &[0, 1]),
        (
            "numpy.ma.core _mareconstruct",
            &[&name("numpy.ma MaskedArray"), array, "(I0\nt", "S'b'\n"],
            &[0, 1, 2, 3],
        ),
        ("numpy.random._pickle __bit_generator_ctor", &[&name("numpy.random._pcg64 PCG64")], &[0]),
        ("numpy.random._pickle __generator_ctor", &[made], &[0]),
        ("numpy.random._pickle __generator_ctor", &["S'PCG64'\n"], &[0]),
        (
            "numpy.random._pickle __randomstate_ctor",
            &["VMT19937\n", &name("numpy.random._pickle __bit_generator_ctor")],
            &[0, 1],
        ),
        (
            "numpy.random.bit_generator __pyx_unpickle_SeedSequence",
            &[&name("numpy.random.bit_generator SeedSequence"), "I1\n", none],
            &[0, 1, 2],
        ),
        ("sklearn._loss._loss CyPinballLoss", &["F0.5\n"], &[0]),
        ("sklearn.tree._tree Tree", &["I1\n", ndarray, "I1\n"], &[0, 1, 2]),
        ("sklearn.neighbors._kd_tree newObj", &[&name("sklearn.neighbors._kd_tree KDTree")], &[0]),
        (
            "sklearn.metrics._dist_metrics newObj",
            &[&name("sklearn.metrics._dist_metrics EuclideanDistance64")],
            &[0],
        ),
    ] {
        check(&call(callee, args), &[]);
        for place in wrong {
            let mut args = args.to_vec();
            args[*place] = function;
            check(&call(callee, &args), USE);
        }
        check(&call(callee, &[args, &["N"; 9]].concat()), USE);
    }
    check(&call("sklearn.neighbors._kd_tree newObj", &[&name("sklearn.neighbors._ball_tree BallTree")]), USE);
    check(
        &call("numpy.ma.core _mareconstruct", &[&name("numpy.random._pcg64 PCG64"), array, ")", "S'b'\n"]),
        USE,
    );
    for empty in
        ["sklearn._loss._loss CyHalfSquaredError", "numpy.random __RandomState_ctor", "__builtin__ bytes"]
    {
        check(&call(empty, &[]), &[]);
    }
    // Hooks may be added until the pickle ends.
    let hooked =
        format!("{hooks}p0\nI0\nNs0{}", call("torch._utils _rebuild_parameter", &[tensor, flag, "g0\n"]));
    check(&hooked, &["sc-unexpected-state"]);
    for hooks in [&dict(&[("x", "N")]), "]"] {
        check(&call("torch._utils _rebuild_parameter", &[tensor, flag, hooks]), &["sc-unexpected-state"]);
    }
    check(&call("torch._utils _rebuild_parameter", &[tensor, flag, "N"]), &[]);
    // Its attributes are set, one by one.
    for state in ["]", &dict(&[("__class__", "N")])] {
        check(&call("torch._utils _rebuild_parameter_with_state", &[tensor, flag, hooks, state]), USE);
    }
}
