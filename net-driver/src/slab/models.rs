//! Models of inserts, removals and the shutdown by several threads.
use super::*;
use sync_shim::{model, sync::Arc, thread};

const FD: Fd = 3;

/// A registration is refused, or the shutdown finds it.
#[test]
fn shutdown_racing_an_insert_refuses_or_finds_it() {
    model(|| {
        let slab = Arc::new(Slab::new());
        let closer = {
            let slab = slab.clone();
            thread::spawn(move || slab.shut_down(&mut VecDeque::new()))
        };
        let id = slab.lock().insert(Ready::EMPTY);
        closer.join().unwrap();
        if let Ok(id) = id {
            assert!(slab.get(id.index).load().is_shutdown());
        }
    });
}

/// Two threads insert and remove: no slot is occupied twice, and a chunk is made once.
#[test]
fn inserts_of_two_threads_get_two_slots() {
    model(|| {
        let slab = Arc::new(Slab::new());
        let other = {
            let slab = slab.clone();
            thread::spawn(move || slab.lock().insert(Ready::EMPTY).unwrap())
        };
        let mine = slab.lock().insert(Ready::EMPTY).unwrap();
        slab.remove(mine, FD);
        let again = slab.lock().insert(Ready::EMPTY).unwrap();
        let other = other.join().unwrap();
        assert_ne!(again.index, other.index);
        assert_eq!(slab.registered(), 2);
    });
}
