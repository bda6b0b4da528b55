//! What the module exports: the only functions that JavaScript calls.
//!
//! A buffer is reserved by `apr_alloc`, filled by JavaScript, and handed to `apr_call`, which leaves the answer where `apr_answer`
//! says. There is no pointer arithmetic here: the memory belongs to vectors, and JavaScript writes into one of them between two calls.
//! A question may hold a password or a secret key: its buffer is wiped before the memory is used again.

#![expect(unsafe_code, reason = "a name that the linker keeps may be another library's too: these are not")]

use core::cell::RefCell;

use zeroize::Zeroizing;

use crate::session::Session;

thread_local! {
    /// One instance of the module, one session: there are no threads in its memory.
    static STATE: RefCell<State> = const { RefCell::new(State { session: Session::new(), question: Vec::new(), answer: Vec::new() }) };
}

struct State {
    session: Session,
    question: Vec<u8>,
    answer: Vec<u8>,
}

impl State {
    /// The question, which is wiped when it is dropped.
    fn take_question(&mut self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(core::mem::take(&mut self.question))
    }
}

/// Where the next question of `len` bytes is to be written; 0 if there is no memory for it.
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

/// Answers the question; returns how long the answer is.
// SAFETY: as `apr_alloc`.
#[unsafe(no_mangle)]
extern "C" fn apr_call(operation: u32) -> usize {
    STATE.with_borrow_mut(|state| {
        let question = state.take_question();
        state.answer = state.session.answer(operation, &question);
        state.answer.len()
    })
}

/// Where the answer is.
// SAFETY: as `apr_alloc`.
#[unsafe(no_mangle)]
extern "C" fn apr_answer() -> usize {
    STATE.with_borrow(|state| state.answer.as_ptr() as usize)
}

/// Gives the memory of the answer back.
// SAFETY: as `apr_alloc`.
#[unsafe(no_mangle)]
extern "C" fn apr_done() {
    STATE.with_borrow_mut(|state| state.answer = Vec::new());
}
