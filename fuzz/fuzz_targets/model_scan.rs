//! Any bytes as a file: a verdict. A stream is safe only if the machine ends at its end, resolves nothing but allowed names, and both framings
//! agree; and if a walk of its own, by the opcodes of CPython's `pickletools`, finds no other names.

#![no_main]

use apr_fuzz::pickle;
use libfuzzer_sys::fuzz_target;
use model_scan::{Options, Origin, Standing, Verdict, scan, scan_file};
use pickle_core::{EventKind, Framing, Limits, Machine, Value};

fuzz_target!(|input: &[u8]| {
    let _ = scan_file(input, &Options::DEFAULT).expect("memory can be read");
    let report = scan(input, Origin::File, &Options::DEFAULT).expect("memory can be read");
    assert_eq!(report.verdict() == Verdict::Safe, report.findings.is_empty());
    if report.verdict() != Verdict::Safe {
        return;
    }
    assert!(report.names.iter().all(|name| name.standing == Standing::Allowed));
    let is_judged = |module: &str, name: &str| {
        report.names.iter().any(|judged| (judged.module.as_str(), judged.name.as_str()) == (module, name))
    };
    for (module, name) in pickle::globals(input) {
        assert!(is_judged(&module, &name), "{module}.{name}");
    }
    // Every name that a machine sees on its own was judged.
    for framing in [Framing::Memory, Framing::File] {
        let mut machine = Machine::new(input, &Limits::DEFAULT).with_framing(framing);
        while let Ok(event) = machine.next_event() {
            match event.kind {
                EventKind::Global { value } => {
                    let Value::Global(global) = machine.tree().value(value) else { panic!("computed") };
                    assert!(is_judged(global.module, global.name), "{global}");
                }
                EventKind::Extension { .. } | EventKind::FrameMismatch | EventKind::Buffer { .. } => {
                    panic!("safe with {event:?}");
                }
                _ => {}
            }
        }
    }
});
