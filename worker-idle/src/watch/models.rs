//! Models of a watcher that has given up. It is woken before its last look, or that look finds a
//! filled place. Then it requests a watcher, and the last searcher to stop sees the request (rules
//! 3 and 4).
use super::*;
use sync_shim::{model, sync::Arc, thread};

/// Returns a watch of worker 0 that was given up and has one look left.
fn leaving<'a>(idle: &'a Idle, state: &'a Cell<WatchState>) -> Watch<'a> {
    idle.want_watcher();
    let mut watch = Watch::begin(idle, 0, state).unwrap();
    while idle.is_watched() {
        assert!(watch.record_look(false));
    }
    watch
}

/// Worker 0, which had given up its watch, leaves for work, after its last look or before it. It
/// requests a watcher, and stops searching. Worker 1 stops searching meanwhile.
///
/// The request is a store, and both workers change the counts with Relaxed. So if worker 1 is the
/// last searcher, only the fence of the request orders the store before worker 1's load.
///
/// A last look that finds a filled place resumes the watch. Then worker 1 may still see the watcher
/// ("What a watch may miss").
fn last_searcher_sees_the_request(makes_last_look: bool) {
    let (idle, state) = (Arc::new(Idle::new(4)), Cell::default());
    let mut watch = leaving(&idle, &state);
    assert!(idle.try_search() && idle.try_search());
    let sees = move |idle: &Idle| {
        let is_wanted = || idle.is_watcher_wanted() && (makes_last_look || !idle.is_watched());
        !idle.stop_searching() || is_wanted()
    };
    let other = {
        let idle = idle.clone();
        thread::spawn(move || sees(&idle))
    };
    if makes_last_look {
        assert!(watch.record_look(true));
    }
    drop(watch);
    Watch::forget(&idle, &state);
    assert!(sees(&idle) && other.join().unwrap(), "the request is lost");
}

/// Fails if the request of `forget` has no fence.
#[test]
fn request_before_the_last_look_reaches_the_last_searcher() {
    model(|| last_searcher_sees_the_request(false));
}

/// Fails if the request of `record_look` has no fence.
#[test]
fn request_at_the_last_look_reaches_the_last_searcher() {
    model(|| last_searcher_sees_the_request(true));
}
