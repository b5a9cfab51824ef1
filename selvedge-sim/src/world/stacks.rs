//! The stacks of fibers. A stack that is free again serves another fiber, of any run.
use corosensei::stack::DefaultStack;
use std::{
    io,
    sync::{Mutex, PoisonError},
};

const SIZE: usize = 256 << 10;

static FREE: Mutex<Vec<DefaultStack>> = Mutex::new(Vec::new());

/// Returns a stack that is free, or a new one.
pub(super) fn take() -> io::Result<DefaultStack> {
    let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    free.map_or_else(|| DefaultStack::new(SIZE), Ok)
}

/// Keeps a stack for another fiber.
pub(super) fn give_back(stack: DefaultStack) {
    FREE.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(stack);
}
