//! Models of a value that four threads lend and take back: more threads than loom can check.
use super::super::*;
use std::mem;
use sync_shim::{
    model,
    sync::{Arc, Mutex},
    thread,
};

const THREADS: usize = 4;
const TURNS: usize = 3;

/// Four threads take the value, change it and offer it again. If a helper is requested, a thread
/// takes the value as that helper. Otherwise the thread takes the value back as a lender. At most
/// one helper is on its way at a time, and no change is lost.
///
/// Fails if `take` clears the bit too, or if each offer requests a helper.
#[test]
fn value_passed_among_four_threads_loses_no_update() {
    model(|| {
        let lent = Arc::new(Lent::new());
        let requested = Arc::new(Mutex::new(lent.offer(Box::new(0_usize)).request));
        assert!(*requested.lock());
        let threads = [(); THREADS].map(|()| {
            let (lent, requested) = (lent.clone(), requested.clone());
            thread::spawn(move || {
                let mut worked = 0;
                for _ in 0..TURNS {
                    let is_helper = mem::take(&mut *requested.lock());
                    let core = if is_helper {
                        lent.accept()
                    } else {
                        lent.take()
                    };
                    let Some(mut core) = core else { continue };
                    *core += 1;
                    worked += 1;
                    let offered = lent.offer(core);
                    assert!(offered.before.is_none(), "two values are on offer");
                    if offered.request {
                        let before = mem::replace(&mut *requested.lock(), true);
                        assert!(!before, "two helpers are requested at a time");
                    }
                }
                worked
            })
        });
        let worked: usize = threads.map(|thread| thread.join().unwrap()).iter().sum();
        assert!(worked > 0);
        assert_eq!(lent.accept().map(|core| *core), Some(worked));
    });
}
