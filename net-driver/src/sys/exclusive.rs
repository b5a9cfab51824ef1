//! The numbers that were registered with [`Existing::Refuse`]: another owner's descriptor may have
//! such a number, and must not take the registration over.
//!
//! The registration of a socket takes no lock, unless the kernel has an entry for its number. The
//! lock covers the calls of the kernel, so an entry and its number in the set begin and end
//! together, unless the owner closes the descriptor before the registration ends.
use super::{Existing, Fd};
use std::{collections::HashSet, io};
use sync_shim::sync::Mutex;

/// A set of numbers whose registrations are not replaced.
#[derive(Debug, Default)]
pub(crate) struct Exclusive(Mutex<HashSet<Fd>>);

impl Exclusive {
    /// Registers a number by `add`, or by `replace` if the kernel has an entry for it and
    /// `existing` allows that.
    pub(crate) fn register(
        &self,
        fd: Fd,
        existing: Existing,
        add: impl Fn() -> io::Result<()>,
        replace: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        if existing == Existing::Replace {
            let done = add();
            if !is_occupied(&done) {
                return done;
            }
        }
        let mut numbers = self.0.lock();
        let done = add();
        match existing {
            Existing::Replace if is_occupied(&done) && !numbers.contains(&fd) => replace(),
            Existing::Replace => done,
            Existing::Refuse => {
                if done.is_ok() {
                    numbers.insert(fd);
                }
                done
            }
        }
    }

    /// Ends the registration of a number by `delete`.
    pub(crate) fn deregister(
        &self,
        fd: Fd,
        delete: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut numbers = self.0.lock();
        numbers.remove(&fd);
        delete()
    }
}

/// Returns whether the kernel has refused a number because it has an entry for it.
fn is_occupied(done: &io::Result<()>) -> bool {
    matches!(done, Err(error) if error.kind() == io::ErrorKind::AlreadyExists)
}
