//! The thread-locals of one fiber.
use std::{cell::RefCell, mem, ptr::NonNull};

/// The values of a fiber's thread-locals, by the numbers of their keys.
#[derive(Default)]
pub(super) struct Locals(RefCell<Vec<Local>>);

#[derive(Default)]
enum Local {
    #[default]
    Unset,
    Set(Value),
    Dropped,
}

/// The error of a value that was dropped.
pub(super) struct ValueDropped;

impl Locals {
    /// Returns the value with this number. `init` makes it, if there is none yet. The value stays
    /// at its address until [`drop_all`](Self::drop_all), or until the drop of `self`.
    ///
    /// # Safety
    /// All calls with this number have the same type.
    #[inline]
    pub(super) unsafe fn get<T: 'static>(
        &self,
        number: usize,
        init: fn() -> T,
    ) -> Result<NonNull<T>, ValueDropped> {
        match self.0.borrow().get(number) {
            Some(Local::Set(value)) => return Ok(value.at.cast()),
            Some(Local::Dropped) => return Err(ValueDropped),
            Some(Local::Unset) | None => {}
        }
        // `init` is user code, which may use other thread-locals.
        let value = Value::new(init());
        let at = value.at.cast();
        let mut values = self.0.borrow_mut();
        if values.len() <= number {
            values.resize_with(number + 1, Local::default);
        }
        let before = mem::replace(&mut values[number], Local::Set(value));
        drop(values);
        drop(before);
        Ok(at)
    }

    /// Drops the values that have a drop, one after the other. Their drops may use the other
    /// values, and make new ones.
    ///
    /// # Safety
    /// There is no reference to a value.
    pub(super) unsafe fn drop_all(&self) {
        loop {
            let with_drop =
                |local: &&mut Local| matches!(local, Local::Set(value) if value.needs_drop);
            let dropped = match self.0.borrow_mut().iter_mut().find(with_drop) {
                Some(local) => mem::replace(local, Local::Dropped),
                None => return,
            };
            drop(dropped);
        }
    }
}

/// A value of any type, in a box of its own.
struct Value {
    at: NonNull<()>,
    drop: unsafe fn(NonNull<()>),
    needs_drop: bool,
}

impl Value {
    fn new<T: 'static>(value: T) -> Self {
        /// # Safety
        /// The pointer is that of a leaked box of a `T`, which nobody uses any more.
        unsafe fn drop_as<T>(at: NonNull<()>) {
            // SAFETY: the caller's.
            drop(unsafe { Box::from_raw(at.cast::<T>().as_ptr()) });
        }
        // The pointer is made behind the last move of the box: a move would end its validity.
        Self {
            at: NonNull::from(Box::leak(Box::new(value))).cast(),
            drop: drop_as::<T>,
            needs_drop: mem::needs_drop::<T>(),
        }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: `new` has leaked the box, as one of this type. `Locals` drops a value when there
        // is no reference to it.
        unsafe { (self.drop)(self.at) };
    }
}
