//! A pool of connections, as deadpool and bb8 are: at most so many connections exist, and a task
//! that finds none waits until one is put back.
//!
//! The parts: a [`Semaphore`] has a permit for each connection that may be in use, and a `Notify`
//! says when the last one is back. The pool is executor-independent. All that its tasks share is
//! named through `sync_shim`, or is in `task_sync`, so one cfg puts loom or shuttle under both, and
//! the models below explore the pool's own rules:
//!
//! 1. A connection is back on the shelf before its permit is released. So a task with a permit
//!    that finds the shelf empty may connect: fewer connections exist than are allowed.
//! 2. A task that counts a returned connection counts it after the permit is released.
use std::ops::{Deref, DerefMut};
use sync_shim::{
    atomic::{AtomicUsize, Ordering::AcqRel},
    sync::Mutex,
};
use task_sync::{Notify, Semaphore, SemaphorePermit};

/// A pool of connections, which it makes by a function.
pub struct Pool<C> {
    permits: Semaphore,
    shelf: Mutex<Vec<C>>,
    connect: fn() -> C,
    /// Connections that are lent out.
    lent: AtomicUsize,
    returned: Notify,
}

/// The pool is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl<C> Pool<C> {
    /// Creates a pool of at most `size` connections. It makes each when it is first needed.
    pub fn new(size: usize, connect: fn() -> C) -> Self {
        Self {
            permits: Semaphore::new(size),
            shelf: Mutex::new(Vec::with_capacity(size)),
            connect,
            lent: AtomicUsize::new(0),
            returned: Notify::new(),
        }
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// If the pool is closed.
    pub async fn get(&self) -> Result<Lease<'_, C>, Closed> {
        // Ordering: counted before the permit is taken, and Release, so that `close`, which looks
        // after it has refused further permits, misses no connection.
        self.lent.fetch_add(1, AcqRel);
        let counted = Counted(self);
        let permit = self.permits.acquire().await.map_err(|_| Closed)?;
        // The lock is released before the call: a connection takes long.
        let shelved = self.shelf.lock().pop();
        Ok(Lease {
            connection: Some(shelved.unwrap_or_else(self.connect)),
            permit: Some(permit),
            counted,
        })
    }

    /// Refuses further requests, also those that wait, and returns once every connection is back.
    pub async fn close(&self) {
        self.permits.close();
        loop {
            let returned = self.returned.notified();
            // Ordering: Acquire pairs with the Release of the last count. An addition and not a
            // load: a load may return an old value, before a request that has got its permit.
            if self.lent.fetch_add(0, AcqRel) == 0 {
                self.shelf.lock().clear();
                return;
            }
            returned.await;
        }
    }
}

/// A request that is counted as lent.
struct Counted<'a, C>(&'a Pool<C>);

impl<C> Drop for Counted<'_, C> {
    fn drop(&mut self) {
        // Ordering: Release pairs with the Acquire in `close`.
        if self.0.lent.fetch_sub(1, AcqRel) == 1 {
            self.0.returned.notify_waiters();
        }
    }
}

/// A connection on loan. A drop puts it back.
pub struct Lease<'a, C> {
    connection: Option<C>,
    permit: Option<SemaphorePermit<'a>>,
    counted: Counted<'a, C>,
}

impl<C> Deref for Lease<'_, C> {
    type Target = C;

    fn deref(&self) -> &C {
        self.connection
            .as_ref()
            .expect("it is there until the drop")
    }
}

impl<C> DerefMut for Lease<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        self.connection
            .as_mut()
            .expect("it is there until the drop")
    }
}

impl<C> Drop for Lease<'_, C> {
    fn drop(&mut self) {
        // Rule 1: the connection, then the permit. Rule 2: `counted` is dropped after this.
        self.counted.0.shelf.lock().extend(self.connection.take());
        self.permit = None;
    }
}

#[cfg(test)]
mod models;
