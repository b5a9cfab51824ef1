//! A writer and four readers: more threads than the model checker takes.
use crate::observe::metrics::counter::Counter;
use sync_shim::{
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Release},
    },
    model,
    sync::Arc,
    thread,
};

/// Fails if the counter stores `n` instead of the sum.
#[test]
fn four_readers_see_earlier_counts_and_none_goes_back() {
    model(|| {
        let shared = Arc::new((Counter::new(), AtomicUsize::new(0)));
        let readers = [(); 4].map(|()| {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut last = 0;
                for _ in 0..4 {
                    let said = shared.1.load(Acquire);
                    let now = shared.0.get();
                    assert!((last.max(said as u64)..=15).contains(&now));
                    last = now;
                }
            })
        });
        let mut sum = 0;
        for n in 1..=5 {
            shared.0.add(n);
            sum += n as usize;
            shared.1.store(sum, Release);
        }
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(shared.0.get(), 15);
    });
}
