//! What the module exports: the only functions that JavaScript calls.
//!
//! `apr_alloc` allocates a buffer, JavaScript fills it, and `apr_call` takes it as the request; `apr_answer` returns the address of the
//! response. There is no pointer arithmetic here: the memory belongs to vectors, and JavaScript writes to one of them between two calls.
//! A request may contain a password or a secret key: its buffer is zeroized before the memory is used again.

#![expect(unsafe_code, reason = "a name that the linker keeps may be another library's too: these are not")]

use core::cell::RefCell;

use zeroize::Zeroizing;

use crate::session::Session;

thread_local! {
    /// One session per instance of the module, which has no threads.
    static STATE: RefCell<State> = const { RefCell::new(State { session: Session::new(), question: Vec::new(), answer: Vec::new() }) };
}

struct State {
    session: Session,
    question: Vec<u8>,
    answer: Vec<u8>,
}

impl State {
    /// The request, which is zeroized when it is dropped.
    fn take_question(&mut self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(core::mem::take(&mut self.question))
    }
}

/// The address of a buffer for the next request of `len` bytes; 0 if there is no memory for it.
// SAFETY: the name is this package's own, and no other library has it.
#[unsafe(no_mangle)]
extern "C" fn apr_alloc(len: usize) -> usize {
    STATE.with_borrow_mut(|state| {
        drop(state.take_question());
        state.answer = Vec::new();
        // So that there is a place even for no bytes.
        if state.question.try_reserve_exact(len.max(1)).is_err() {
            return 0;
        }
        state.question.resize(len, 0);
        state.question.as_mut_ptr() as usize
    })
}

/// Performs the request; returns the length of the response.
// SAFETY: as `apr_alloc`.
#[unsafe(no_mangle)]
extern "C" fn apr_call(operation: u32) -> usize {
    STATE.with_borrow_mut(|state| {
        let question = state.take_question();
        state.answer = state.session.answer(operation, &question);
        state.answer.len()
    })
}

/// The address of the response.
// SAFETY: as `apr_alloc`.
#[unsafe(no_mangle)]
extern "C" fn apr_answer() -> usize {
    STATE.with_borrow(|state| state.answer.as_ptr() as usize)
}

/// Frees the response.
// SAFETY: as `apr_alloc`.
#[unsafe(no_mangle)]
extern "C" fn apr_done() {
    STATE.with_borrow_mut(|state| state.answer = Vec::new());
}
