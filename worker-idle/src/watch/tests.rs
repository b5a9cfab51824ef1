use super::*;

const MS: Duration = Duration::from_millis(1);

fn both_asleep() -> Idle {
    let idle = Idle::new(2);
    idle.sleep(0, false);
    idle.sleep(1, false);
    idle
}

#[test]
fn a_watch_of_sleepers_doubles_its_limit_leaves_and_looks_once_more() {
    let (idle, calm) = (both_asleep(), Cell::default());
    let mut watch = Watch::begin(&idle, 1, &calm, || false).unwrap();
    let mut limits = alloc::vec![watch.limit()];
    while watch.goes_on(false) {
        limits.push(watch.limit());
        // Given up before the last look, not after.
        assert_eq!(idle.is_watched(), limits.len() < 7);
    }
    assert_eq!(limits, [1, 2, 4, 8, 8, 8, 8].map(|n| n * MS));
    drop(watch);
    assert!(Watch::begin(&idle, 1, &calm, || false).is_none(), "rule 5");
    assert!(!idle.is_watched());
}

#[test]
fn a_filled_place_and_one_that_is_awake_keep_the_watch_up() {
    let (idle, calm) = (both_asleep(), Cell::default());
    let mut watch = Watch::begin(&idle, 0, &calm, || false).unwrap();
    for _ in 0..3 {
        assert!(watch.goes_on(false));
    }
    assert!(watch.goes_on(true));
    assert_eq!(watch.limit(), MS);
    idle.wake_self(1);
    for _ in 0..100 {
        assert!(watch.goes_on(false) && idle.is_watched());
    }
    assert_eq!(watch.limit(), 8 * MS);
}

/// A watcher that is leaving, and then finds something.
fn leaving<'a>(idle: &'a Idle, calm: &'a Cell<Calm>) -> Watch<'a> {
    let mut watch = Watch::begin(idle, 0, calm, || false).unwrap();
    while idle.is_watched() {
        assert!(watch.goes_on(false));
    }
    watch
}

#[test]
fn who_leaves_the_watch_comes_back_if_its_last_look_finds_something() {
    let (idle, calm) = (both_asleep(), Cell::default());
    let mut watch = leaving(&idle, &calm);
    assert!(watch.goes_on(true) && idle.is_watched());
    drop(watch);
    assert!(!idle.is_watched());
}

#[test]
fn who_leaves_the_watch_to_another_leaves_it_alone() {
    let (idle, calm) = (both_asleep(), Cell::default());
    let mut watch = leaving(&idle, &calm);
    assert!(idle.try_watch(1));
    assert!(!watch.goes_on(true));
    drop(watch);
    assert!(idle.is_watched());
}

#[test]
fn a_watch_that_was_given_up_begins_anew_when_a_place_is_filled_or_somebody_is_awake() {
    let (idle, calm) = (both_asleep(), Cell::default());
    let mut watch = Watch::begin(&idle, 0, &calm, || false).unwrap();
    while watch.goes_on(false) {}
    drop(watch);
    let given_up = calm.get();
    let watch = Watch::begin(&idle, 0, &calm, || true).unwrap();
    assert_eq!(watch.limit(), MS);
    drop(watch);
    calm.set(given_up);
    idle.wake_self(1);
    assert!(Watch::begin(&idle, 0, &calm, || false).is_some());
}

#[test]
fn a_watch_is_taken_up_where_it_was() {
    let (idle, calm) = (both_asleep(), Cell::default());
    let mut watch = Watch::begin(&idle, 0, &calm, || false).unwrap();
    assert!(watch.goes_on(false) && watch.goes_on(false));
    drop(watch);
    assert!(!idle.is_watched());
    let watch = Watch::begin(&idle, 0, &calm, || false).unwrap();
    assert_eq!(watch.limit(), 4 * MS);
}

#[test]
fn a_watch_whose_every_look_is_a_sleep_of_its_own_is_given_up_as_well() {
    let (idle, calm) = (both_asleep(), Cell::default());
    let mut looks = 0;
    while let Some(mut watch) = Watch::begin(&idle, 0, &calm, || false) {
        looks += 1;
        // At the last one the watch has been left already.
        assert_eq!(idle.is_watched(), looks < 7);
        let _ = watch.goes_on(false);
    }
    assert_eq!(looks, 7);
}
