fn call(bytes: &[u8]) -> usize {
    let mut machine = pickle_core::Machine::new(bytes, &pickle_core::Limits::DEFAULT);
    while let Ok(event) = machine.next_event() {
        if let pickle_core::EventKind::Build { target, .. } = event.kind
            && let Ok(Some(array)) = pickle_core::joblib::raw_array(&machine, target)
        {
            let _ = pickle_core::joblib::pass(&mut machine, &array);
        }
    }
    machine.tree().len()
}
