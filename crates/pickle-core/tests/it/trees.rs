//! Values as callers see them.

use pickle_core::{Construct, Limits, Machine, Tree, Update, Value, ValueId};

/// The tree of a pickle and its value.
fn tree(pickle: &[u8]) -> (Tree, ValueId) {
    let mut machine = Machine::new(pickle, &Limits::DEFAULT);
    let root = machine.finish().unwrap_or_else(|error| panic!("{}: {error}", pickle.escape_ascii()));
    (machine.into_parts().0, root)
}

#[test]
fn views_say_how_much_they_have() {
    for (pickle, len) in [
        (b"].".as_slice(), 0),
        (b"(NNNl.", 3),
        (b"]Na.", 1),
        (b"](NNe(Ne.", 3),
        (b"\x8f.", 0),
        (b"\x8f(NN\x90.", 2),
        (b"}.", 0),
        (b"}NNs.", 1),
        (b"(NNNNd.", 2),
        (b"(NN\x91.", 2),
        (b"N(0.", 0),
        (b"(N0NNt.", 2),
    ] {
        let (tree, root) = tree(pickle);
        let (found, hint, is_empty, count) = match tree.value(root) {
            Value::List(items) | Value::Set(items) => {
                (items.len(), items.size_hint(), items.is_empty(), items.count())
            }
            Value::Dict(entries) => (entries.len(), entries.size_hint(), entries.is_empty(), entries.count()),
            Value::Tuple(items) | Value::FrozenSet(items) => {
                (items.len(), (len, Some(len)), items.is_empty(), items.len())
            }
            Value::None => (0, (0, Some(0)), true, 0),
            other => panic!("{other:?}"),
        };
        let expected = (len, (len, Some(len)), len == 0, len);
        assert_eq!((found, hint, is_empty, count), expected, "{}", pickle.escape_ascii());
    }
    let (tree, root) = tree(b"(NNNl.");
    let Value::List(mut items) = tree.value(root) else { panic!("a list") };
    items.next();
    assert_eq!((items.len(), items.size_hint()), (2, (2, Some(2))));
    assert!(!tree.is_empty() && tree_of_none().is_empty());
}

fn tree_of_none() -> Tree {
    tree(b"N.").0
}

#[test]
fn objects_have_their_arguments_and_what_was_done_to_them() {
    for (pickle, construct) in [
        (b"cm\nc\nK\x07\x85R.".as_slice(), Construct::Reduce),
        (b"cm\nc\nK\x07\x85\x81.", Construct::NewObj),
        (b"cm\nc\nK\x07\x85}\x92.", Construct::NewObjEx),
        (b"(cm\nc\nK\x07o.", Construct::Obj),
        (b"(K\x07im\nc\n.", Construct::Inst),
    ] {
        let (tree, root) = tree(pickle);
        let Value::Object(object) = tree.value(root) else { panic!("{construct:?}") };
        let Value::Tuple(args) = tree.value(object.args) else { panic!("{construct:?}") };
        assert!(matches!(args, [arg] if matches!(tree.value(*arg), Value::Int(7))), "{construct:?}");
        assert_eq!(
            (object.construct, object.kwargs.is_some()),
            (construct, construct == Construct::NewObjEx)
        );
        assert!(object.updates.is_empty());
    }
    let updates = b"K\x01bK\x02aK\x03K\x04s(K\x05K\x06e(K\x07K\x08K\x09K\x0au(K\x0bK\x0c\x90.";
    let (tree, root) = tree(&[b"cm\nc\n)R".as_slice(), updates].concat());
    let Value::Object(object) = tree.value(root) else { panic!("an object") };
    assert!(!object.updates.is_empty());
    let int = |id| match tree.value(id) {
        Value::Int(value) => value,
        other => panic!("{other:?}"),
    };
    let updates = object.updates.map(|update| match update {
        Update::State(state) => ("state", int(state), 0),
        Update::Append(item) => ("append", int(item), 0),
        Update::SetItem(key, value) => ("set", int(key), int(value)),
        Update::Add(item) => ("add", int(item), 0),
    });
    let expected = [
        ("state", 1, 0),
        ("append", 2, 0),
        ("set", 3, 4),
        ("append", 5, 0),
        ("append", 6, 0),
        ("set", 7, 8),
        ("set", 9, 10),
        ("add", 11, 0),
        ("add", 12, 0),
    ];
    assert_eq!(updates.collect::<Vec<_>>(), expected);
}

#[test]
fn strings_are_ranges_unless_they_were_decoded() {
    for (pickle, range, len) in [
        (b"Vab\n.".as_slice(), Some(1..3), 2),
        (b"V\xe9\n.", None, 2),
        (b"S'\xe9'\n.", Some(2..3), 1),
        (b"S'\\x41'\n.", None, 1),
        (b"V\n.", Some(1..1), 0),
    ] {
        let (tree, root) = tree(pickle);
        let (Value::Str(span) | Value::Str2(span)) = tree.value(root) else { panic!("a string") };
        assert_eq!((span.range(), span.len(), span.is_empty()), (range, len, len == 0));
    }
    let (tree, root) = tree(b"\x97\x97\x86.");
    let Value::Tuple(buffers) = tree.value(root) else { panic!("a tuple") };
    let numbers = buffers.iter().map(|id| match tree.value(*id) {
        Value::Buffer(number) => number,
        other => panic!("{other:?}"),
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 1]);
}
