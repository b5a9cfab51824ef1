//! `GroupLocal`: a value for each group.
use super::{SchedulingGroup, group::Group};
use std::{any::Any, fmt, marker::PhantomData, ptr, sync::Arc};

/// A static with a value for each scheduling group. A value is made at the first access.
///
/// The tasks of a group share the group's value, on all workers. The group's value is dropped when
/// the group is destroyed, or when the runtime's memory is freed. A value that contains a
/// [`SchedulingGroup`] or a [`Handle`](crate::Handle) of the runtime keeps the runtime's memory
/// until the group is destroyed.
///
/// ```
/// use selvedge_executor::{GroupLocal, spawn_in};
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// static QUERIES: GroupLocal<AtomicU32> = GroupLocal::new(|| AtomicU32::new(0));
///
/// let runtime = selvedge_executor::Runtime::new()?;
/// let tenants = ["a", "b"].map(|name| runtime.group(name).build().unwrap());
/// for _ in 0..3 {
///     let query = async { QUERIES.get().fetch_add(1, Relaxed) };
///     runtime.block_on(spawn_in(&tenants[0], query).unwrap()).unwrap();
/// }
/// assert_eq!(QUERIES.get_in(&tenants[0]).load(Relaxed), 3);
/// assert_eq!(QUERIES.get_in(&tenants[1]).load(Relaxed), 0);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct GroupLocal<T: 'static> {
    make: fn() -> T,
    /// Makes the type invariant. A group finds the value by the address of the static, so all
    /// references to one static must have one type.
    values: PhantomData<fn(T) -> T>,
}

impl<T: Send + Sync + 'static> GroupLocal<T> {
    /// Creates the static. `make` makes a group's value when the value is first asked for.
    pub const fn new(make: fn() -> T) -> Self {
        Self {
            make,
            values: PhantomData,
        }
    }

    /// Returns the value of the [current](SchedulingGroup::current) group.
    ///
    /// # Panics
    /// Outside a runtime, and if `make` panics.
    #[track_caller]
    pub fn get(&'static self) -> Arc<T> {
        self.get_in(&SchedulingGroup::current())
    }

    /// Returns the value of a group. If the group was destroyed, each call returns a new value.
    ///
    /// # Panics
    /// If `make` panics.
    pub fn get_in(&'static self, group: &SchedulingGroup) -> Arc<T> {
        let group = &*group.group;
        self.find(group).unwrap_or_else(|| {
            // `make` is user code, so it runs outside of the lock. If two threads make a value,
            // both return the one that was inserted first.
            let made = Arc::new((self.make)());
            self.insert(group, made)
        })
    }

    /// The key of this static: its own address. As the static is not of size 0, no other static has
    /// that address.
    fn key(&'static self) -> usize {
        ptr::from_ref(self).addr()
    }

    fn find(&'static self, group: &Group) -> Option<Arc<T>> {
        let value = group.values.lock().get(&self.key())?.clone();
        value.downcast().ok()
    }

    /// Inserts `made` as the group's value and returns it. If another thread has inserted a value
    /// meanwhile, returns that value instead.
    fn insert(&'static self, group: &Group, made: Arc<T>) -> Arc<T> {
        let mut values = group.values.lock();
        // The destroying thread marks the group, and then takes the values under the lock. So it
        // takes each value that was inserted before. A later call here finds the mark, and inserts
        // nothing.
        if group.is_gone() {
            return made;
        }
        let value: Arc<dyn Any + Send + Sync> = made.clone();
        let value = values.entry(self.key()).or_insert(value).clone();
        drop(values);
        value.downcast().unwrap_or(made)
    }
}

impl<T> fmt::Debug for GroupLocal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupLocal").finish_non_exhaustive()
    }
}
