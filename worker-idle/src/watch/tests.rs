use super::*;

const MS: Duration = Duration::from_millis(1);

/// Returns the state of two workers, with a watcher requested.
fn wanted() -> Idle {
    let idle = Idle::new(2);
    idle.want_watcher();
    idle
}

#[test]
fn fruitless_watch_doubles_its_limit_and_ends() {
    let (idle, state) = (wanted(), Cell::default());
    let mut watch = Watch::begin(&idle, 1, &state).unwrap();
    let mut limits = alloc::vec![watch.limit()];
    while watch.record_look(false) {
        limits.push(watch.limit());
        // The watch is given up before the last look, not after it.
        assert_eq!(idle.is_watched(), limits.len() < 7);
        assert_eq!(idle.is_watcher_wanted(), limits.len() < 7);
    }
    assert_eq!(limits, [1, 2, 4, 8, 8, 8, 8].map(|n| n * MS));
    drop(watch);
    assert!(Watch::begin(&idle, 1, &state).is_none());
    assert!(!idle.is_watched());
}

#[test]
fn watch_begins_only_if_wanted() {
    let (idle, state) = (Idle::new(2), Cell::default());
    assert!(Watch::begin(&idle, 0, &state).is_none() && !idle.is_watched());
    idle.want_watcher();
    let watch = Watch::begin(&idle, 0, &state);
    assert!(watch.is_some() && Watch::begin(&idle, 1, &Cell::default()).is_none());
    drop(watch);
    assert!(!idle.is_watched() && idle.is_watcher_wanted());
}

#[test]
fn filled_place_keeps_the_watch_going() {
    let (idle, state) = (wanted(), Cell::default());
    let mut watch = Watch::begin(&idle, 0, &state).unwrap();
    for _ in 0..100 {
        for _ in 0..5 {
            assert!(watch.record_look(false) && idle.is_watched());
        }
        assert_eq!(watch.limit(), 8 * MS);
        assert!(watch.record_look(true));
        assert_eq!(watch.limit(), MS);
    }
}

/// Returns a watcher that has given up and has one look left.
fn leaving<'a>(idle: &'a Idle, state: &'a Cell<WatchState>) -> Watch<'a> {
    let mut watch = Watch::begin(idle, 0, state).unwrap();
    while idle.is_watched() {
        assert!(watch.record_look(false));
    }
    watch
}

#[test]
fn leaving_watcher_stays_if_its_last_look_finds_work() {
    let (idle, state) = (wanted(), Cell::default());
    let mut watch = leaving(&idle, &state);
    assert!(watch.record_look(true) && idle.is_watched() && idle.is_watcher_wanted());
    drop(watch);
    assert!(!idle.is_watched());
}

#[test]
fn leaving_watcher_does_not_disturb_its_successor() {
    let (idle, state) = (wanted(), Cell::default());
    let mut watch = leaving(&idle, &state);
    assert!(idle.try_watch(1));
    assert!(!watch.record_look(true));
    drop(watch);
    assert!(idle.is_watched());
}

#[test]
fn given_up_watch_restarts_when_wanted() {
    let (idle, state) = (wanted(), Cell::default());
    let mut watch = Watch::begin(&idle, 0, &state).unwrap();
    while watch.record_look(false) {}
    drop(watch);
    idle.want_watcher();
    let watch = Watch::begin(&idle, 0, &state).unwrap();
    assert_eq!(watch.limit(), MS);
}

#[test]
fn watch_wanted_at_its_last_look_restarts() {
    let (idle, state) = (wanted(), Cell::default());
    drop(leaving(&idle, &state));
    idle.want_watcher();
    let watch = Watch::begin(&idle, 0, &state).unwrap();
    assert!(watch.limit() == MS && idle.is_watched());
}

#[test]
fn watch_resumes_from_its_state() {
    let (idle, state) = (wanted(), Cell::default());
    let mut watch = Watch::begin(&idle, 0, &state).unwrap();
    assert!(watch.record_look(false) && watch.record_look(false));
    drop(watch);
    assert!(!idle.is_watched());
    let watch = Watch::begin(&idle, 0, &state).unwrap();
    assert_eq!(watch.limit(), 4 * MS);
}

/// Fails if a watch that goes on in another sleep begins its interval anew.
#[test]
fn interval_of_a_watch_goes_on_between_sleeps() {
    let (idle, state) = (wanted(), Cell::default());
    let watch = Watch::begin(&idle, 0, &state).unwrap();
    assert!(watch.until_look() <= MS);
    drop(watch);
    std::thread::sleep(MS);
    assert!(Watch::begin(&idle, 0, &state).unwrap().is_due());
}

/// Fails if the interval is not that since the last look.
#[test]
fn look_begins_an_interval() {
    let (idle, state) = (wanted(), Cell::default());
    let mut looked_at = Instant::now();
    let mut watch = Watch::begin(&idle, 0, &state).unwrap();
    for interval in [1, 2, 4, 8, 8, 8, 8].map(|n| n * MS) {
        while !watch.is_due() {
            std::thread::sleep(watch.until_look());
        }
        assert!(looked_at.elapsed() >= interval);
        looked_at = Instant::now();
        let _ = watch.record_look(false);
    }
    assert_eq!(state.get(), WatchState::default());
}

#[test]
fn watch_resumed_for_each_look_is_given_up_too() {
    let (idle, state) = (wanted(), Cell::default());
    let mut looks = 0;
    while let Some(mut watch) = Watch::begin(&idle, 0, &state) {
        looks += 1;
        // At the last look the watch has already been given up.
        assert_eq!(idle.is_watched(), looks < 7);
        let _ = watch.record_look(false);
    }
    assert_eq!(looks, 7);
}

#[test]
fn leaving_watcher_woken_early_requests_a_watcher() {
    let (idle, state) = (wanted(), Cell::default());
    drop(leaving(&idle, &state));
    Watch::forget(&idle, &state);
    assert!(idle.is_watcher_wanted() && state.get() == WatchState::default());
    // A watcher that has taken its last look requests no successor.
    let mut watch = leaving(&idle, &state);
    assert!(!watch.record_look(false));
    drop(watch);
    Watch::forget(&idle, &state);
    assert!(!idle.is_watcher_wanted());
}
