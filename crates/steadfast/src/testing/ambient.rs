//! The clock of whatever is built on this thread without a clock of its own.
//!
//! A stack, so that an inner scope hides an outer one and gives it back. Each entry has a number: scopes may end in any
//! order.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::MutexGuard;

use crate::clock::Clock;

thread_local! {
    static CLOCKS: RefCell<Vec<(u64, Clock)>> = const { RefCell::new(Vec::new()) };
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// The innermost clock of this thread.
pub(crate) fn clock() -> Option<Clock> {
    // A thread that is being torn down has none any more.
    CLOCKS.try_with(|clocks| clocks.borrow().last().map(|(_, clock)| clock.clone())).ok().flatten()
}

/// As long as it lives, its clock is this thread's. It cannot leave the thread.
#[derive(Debug)]
pub(super) struct Scope {
    number: u64,
    stays: PhantomData<MutexGuard<'static, ()>>,
}

impl Scope {
    pub(super) fn new(clock: Clock) -> Self {
        let number = NEXT.replace(NEXT.get().wrapping_add(1));
        CLOCKS.with_borrow_mut(|clocks| clocks.push((number, clock)));
        Self { number, stays: PhantomData }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        let ours = CLOCKS.try_with(|clocks| {
            let mut clocks = clocks.borrow_mut();
            let position = clocks.iter().position(|(number, _)| *number == self.number);
            position.map(|position| clocks.remove(position))
        });
        // With the last clone of a clock go the wakers that it holds, which may be anybody's code: not within the borrow.
        drop(ours);
    }
}
