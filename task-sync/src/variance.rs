//! The invariant public types among locks and cells. `tests/variance.rs` has the covariant ones.
sync_shim::invariant! {
    // Each of these takes values in through a shared reference, and gives them out.
    mutex: "task_sync::Mutex<P>",
    rwlock: "task_sync::RwLock<P>",
    once_cell: "task_sync::OnceCell<P>",
    // These lend the value for changes.
    guard: "task_sync::MutexGuard<'static, P>",
    mapped: "task_sync::MappedMutexGuard<'static, P>",
    write: "task_sync::RwLockWriteGuard<'static, P>",
    write_mapped: "task_sync::RwLockMappedWriteGuard<'static, P>",
    owned_mapped_part: "task_sync::OwnedMappedMutexGuard<u8, P>",
    owned_write_mapped_part: "task_sync::OwnedRwLockMappedWriteGuard<u8, P>",
    // These own a part of a lock.
    owned: "task_sync::OwnedMutexGuard<P>",
    owned_mapped: "task_sync::OwnedMappedMutexGuard<P, u8>",
    owned_read: "task_sync::OwnedRwLockReadGuard<P, u8>",
    owned_write: "task_sync::OwnedRwLockWriteGuard<P>",
    owned_write_mapped: "task_sync::OwnedRwLockMappedWriteGuard<P, u8>",
}
