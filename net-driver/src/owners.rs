//! The registrations that the numbers of descriptors belong to.
//!
//! A number may pass to another descriptor while its registration lives: safe code can replace the
//! value inside of an `AsyncFd`, and drop the old one. The next registration of that number then
//! becomes its owner. An entry of the kernel under this number is the owner's, so no other
//! registration may delete it. The lock of the slab guards this table (rule 4 of `slab.rs`). Where
//! the close of a number leaves its entry, such as in kqueue, only a socket of this crate becomes
//! the next owner while the old registration lives.
use crate::sys::Fd;

/// For each number, the index of the slot whose registration was made last.
#[cfg(not(any(selvedge_sim, windows)))]
#[derive(Debug, Default)]
pub(crate) struct Owners(Vec<u32>);

/// No slot has this index.
#[cfg(not(any(selvedge_sim, windows)))]
const NONE: u32 = u32::MAX;

#[cfg(not(any(selvedge_sim, windows)))]
impl Owners {
    /// Returns whether a live registration owns the number.
    pub(crate) fn has(&self, fd: Fd) -> bool {
        self.get(fd).is_some_and(|owner| *owner != NONE)
    }

    /// Returns whether the registration in the slot `index` owns the number.
    pub(crate) fn is(&self, fd: Fd, index: u32) -> bool {
        self.get(fd).is_some_and(|owner| *owner == index)
    }

    /// Makes the registration in the slot `index` the owner of a number. The descriptor is open:
    /// the table has room for each number up to the highest one that was ever open.
    pub(crate) fn set(&mut self, fd: Fd, index: u32) {
        let Ok(at) = usize::try_from(fd) else {
            return;
        };
        if self.0.len() <= at {
            self.0.resize(at + 1, NONE);
        }
        self.0[at] = index;
    }

    /// Ends the ownership of the registration in the slot `index`, if it owns the number.
    pub(crate) fn remove(&mut self, fd: Fd, index: u32) {
        let at = usize::try_from(fd).ok();
        let owner = at.and_then(|at| self.0.get_mut(at));
        if let Some(owner) = owner.filter(|owner| **owner == index) {
            *owner = NONE;
        }
    }

    fn get(&self, fd: Fd) -> Option<&u32> {
        self.0.get(usize::try_from(fd).ok()?)
    }
}

/// The same table for simulated descriptors, and for Windows. Their numbers are so high that a
/// vector would take some hundred kilobytes of each simulated host. Those of Windows may be any.
#[cfg(any(selvedge_sim, windows))]
#[derive(Debug, Default)]
pub(crate) struct Owners(std::collections::BTreeMap<Fd, u32>);

#[cfg(any(selvedge_sim, windows))]
impl Owners {
    pub(crate) fn has(&self, fd: Fd) -> bool {
        self.0.contains_key(&fd)
    }

    pub(crate) fn is(&self, fd: Fd, index: u32) -> bool {
        self.0.get(&fd) == Some(&index)
    }

    pub(crate) fn set(&mut self, fd: Fd, index: u32) {
        #[cfg(unix)]
        if fd < 0 {
            return;
        }
        self.0.insert(fd, index);
    }

    pub(crate) fn remove(&mut self, fd: Fd, index: u32) {
        if self.is(fd, index) {
            self.0.remove(&fd);
        }
    }
}

#[cfg(all(test, not(selvedge_loom)))]
mod tests {
    use super::*;

    #[test]
    fn number_belongs_to_its_last_registration() {
        let mut owners = Owners::default();
        owners.remove(3, 0);
        assert!(!owners.has(3) && !owners.is(3, 0));
        owners.set(3, 0);
        owners.set(3, 7);
        assert!(owners.has(3) && !owners.has(2) && !owners.has(4));
        owners.remove(3, 0);
        assert!(!owners.is(3, 0), "the number has passed on");
        assert!(owners.is(3, 7));
        owners.remove(3, 7);
        assert!(!owners.has(3) && !owners.is(3, 7));
    }

    /// Fails if a call panics for a number that no open descriptor can have.
    #[test]
    fn impossible_number_has_no_owner() {
        let mut owners = Owners::default();
        const INVALID: Fd = (0 as Fd).wrapping_sub(1);
        for fd in [INVALID, Fd::MIN, Fd::MAX] {
            owners.remove(fd, 0);
            assert!(!owners.has(fd) && !owners.is(fd, 0));
        }
        #[cfg(unix)]
        {
            owners.set(INVALID, 0);
            assert!(!owners.has(INVALID));
        }
    }
}
