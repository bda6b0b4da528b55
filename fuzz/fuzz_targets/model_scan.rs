//! Any bytes as a file: a verdict. A stream is safe only if the machine ends at its end, resolves nothing but allowed names, and both framings
//! agree; more bytes in front of a break never make it safe.

#![no_main]

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
    // Every name that a machine sees on its own was judged.
    for framing in [Framing::Memory, Framing::File] {
        let mut machine = Machine::new(input, &Limits::DEFAULT).with_framing(framing);
        while let Ok(event) = machine.next_event() {
            match event.kind {
                EventKind::Global { value } => {
                    let Value::Global(global) = machine.tree().value(value) else { panic!("computed") };
                    let judged = report.names.iter().any(|name| {
                        (name.module.as_str(), name.name.as_str()) == (global.module, global.name)
                    });
                    assert!(judged, "{global}");
                }
                EventKind::Extension { .. } | EventKind::FrameMismatch | EventKind::Buffer { .. } => {
                    panic!("safe with {event:?}");
                }
                _ => {}
            }
        }
    }
});
