//! A core that many lend and take back: more threads than the model checker takes.
use super::super::*;
use std::mem;
use sync_shim::{
    model,
    sync::{Arc, Mutex},
    thread,
};

const THREADS: usize = 4;
const TURNS: usize = 3;

/// Four take it, each as who was asked to come if there is such a call, and else as one that had it before; work; and offer it again. Nobody is asked while another is on the
/// way, and nothing that was done to it is lost.
///
/// Bites: clear the bit in `take`, too; ask at each offer.
#[test]
fn value_passed_among_four_threads_loses_no_update() {
    model(|| {
        let lent = Arc::new(Lent::new());
        let is_called = Arc::new(Mutex::new(lent.offer(Box::new(0_usize)).request));
        assert!(*is_called.lock());
        let threads = [(); THREADS].map(|()| {
            let (lent, is_called) = (lent.clone(), is_called.clone());
            thread::spawn(move || {
                let mut worked = 0;
                for _ in 0..TURNS {
                    let comes = mem::take(&mut *is_called.lock());
                    let core = if comes { lent.accept() } else { lent.take() };
                    let Some(mut core) = core else { continue };
                    *core += 1;
                    worked += 1;
                    let offered = lent.offer(core);
                    assert!(offered.before.is_none(), "there are two");
                    if offered.request {
                        let before = mem::replace(&mut *is_called.lock(), true);
                        assert!(!before, "two are asked at a time");
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
