//! Any bytes as a stream of pickles: an error inside them or values; the same from memory and from a reader; the same for files and for
//! memory unless frames disagree with the opcodes; arrays of joblib are passed over.

#![no_main]

use std::fmt::Write;

use libfuzzer_sys::fuzz_target;
use pickle_core::{EventKind, Framing, Limits, Machine, Value, joblib};
use read_at::{Error, ReadAt};

struct Reader<'a>(&'a [u8]);

impl ReadAt for Reader<'_> {
    fn total_len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.0.read_exact_at(offset, out)
    }
}

fuzz_target!(|input: &[u8]| {
    let (memory, agree) = told(Machine::new(input, &Limits::DEFAULT), input);
    let (reader, _) = told(Machine::new(Reader(input), &Limits::DEFAULT), input);
    assert_eq!(memory, reader);
    let file = Machine::new(input, &Limits::DEFAULT).with_framing(Framing::File);
    let (file, _) = told(file, input);
    assert!(file == memory || !agree);
});

/// The events of all pickles of a stream, and whether its frames agree with them.
fn told<R: ReadAt>(mut machine: Machine<R>, input: &[u8]) -> (String, bool) {
    let (mut told, mut agree) = (String::new(), true);
    loop {
        let event = match machine.next_event() {
            Ok(event) => event,
            Err(error) => {
                assert!(error.offset().is_some_and(|offset| offset <= input.len() as u64));
                writeln!(told, "{error}").expect("memory");
                return (told, agree);
            }
        };
        assert_eq!(input[event.offset as usize], event.opcode.0);
        writeln!(told, "{event:?}").expect("memory");
        match event.kind {
            EventKind::Global { value } => match machine.tree().value(value) {
                Value::Global(global) => writeln!(told, "{global}").expect("memory"),
                other => assert!(matches!(other, Value::Computed { .. })),
            },
            EventKind::Build { target, .. } => {
                let passed = match joblib::raw_array(&machine, target) {
                    Ok(Some(array)) => joblib::pass(&mut machine, &array).map(drop),
                    other => other.map(drop),
                };
                if let Err(error) = passed {
                    writeln!(told, "{error}").expect("memory");
                    return (told, agree);
                }
            }
            EventKind::FrameMismatch => agree = false,
            EventKind::Stop { root } => {
                assert!(root.index() < machine.tree().len());
                if machine.rest() == 0 {
                    return (told, agree);
                }
                machine.next_pickle().expect("it has ended");
            }
            _ => {}
        }
    }
}
