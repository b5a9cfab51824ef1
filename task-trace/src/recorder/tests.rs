//! Tests of a recorder with lanes of workers and of threads, and of the files that it saves.
use super::{Cause, Event, Outcome, Recorder};
use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

fn json(recorder: &Recorder) -> String {
    let mut json = Vec::new();
    recorder.capture().write_chrome(&mut json).unwrap();
    String::from_utf8(json).unwrap()
}

/// Returns the lines of the file that have all these parts.
fn lines<'a>(json: &'a str, parts: &'a [&str]) -> Vec<&'a str> {
    let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
    json.lines().filter(has_all).collect()
}

#[test]
fn events_before_the_start_are_left_out() {
    let recorder = Recorder::new(1);
    let lane = recorder.worker(0);
    lane.record(Event::Park); // There is no ring yet.
    recorder.start(64);
    lane.record(Event::Park);
    recorder.start(64);
    lane.record(Event::Overflow);
    recorder.stop();
    assert!(!recorder.is_on());
    let capture = recorder.capture();
    let events: Vec<_> = capture.lanes()[0].events.iter().map(|e| e.event).collect();
    assert_eq!(events, [Event::Overflow]);
}

#[test]
fn full_ring_keeps_the_newest_and_counts_the_lost() {
    let recorder = Recorder::new(1);
    recorder.start(4);
    for tasks in 0..6 {
        recorder.worker(0).record(Event::Inject { tasks });
    }
    let capture = recorder.capture();
    let lane = &capture.lanes()[0];
    assert_eq!((lane.events.len(), lane.lost), (4, 2));
    assert_eq!(lane.events[0].event, Event::Inject { tasks: 2 });
}

#[test]
fn wake_is_an_arrow_from_its_poll_to_the_next_one() {
    let recorder = Recorder::new(2);
    recorder.start(64);
    let (one, two) = (recorder.worker(0), recorder.worker(1));
    one.name(7, "producer");
    two.name(8, "consumer");
    one.poll_begin(7, true);
    let (by, cause) = (one.polled(), Cause::Task);
    one.record(Event::Wake { task: 8, by, cause });
    two.poll_begin(8, true);
    one.poll_end(Outcome::Pending);
    two.poll_end(Outcome::Ready);
    let json = json(&recorder);
    let slice = lines(
        &json,
        &["\"X\"", "\"producer\"", "\"tid\":0", "\"pending\""],
    );
    assert_eq!(slice.len(), 1, "{json}");
    let wake = "\"cat\":\"wake\",\"name\":\"consumer\"";
    assert_eq!(lines(&json, &["\"ph\":\"s\"", wake, "\"tid\":0"]).len(), 1);
    let parts = ["\"ph\":\"f\"", wake, "\"tid\":1"];
    let end = lines(&json, &parts);
    assert!(end[0].contains("\"by\":\"producer\""), "{}", end[0]);
}

#[test]
fn id_in_use_again_has_the_newer_name() {
    let recorder = Recorder::new(1);
    let lane = recorder.worker(0);
    lane.name(7, "old");
    recorder.start(64);
    lane.poll_begin(7, true);
    lane.poll_end(Outcome::Ready);
    let first = recorder.capture().lanes()[0].events[0].at;
    lane.spawn(7, std::panic::Location::caller());
    lane.poll_begin(7, false);
    let capture = recorder.capture();
    let last = capture.lanes()[0].events.last().unwrap().at;
    assert_eq!(capture.name(7, first), "old");
    let place = capture.name(7, last);
    assert!(place.starts_with("recorder/tests.rs:"), "{place}");
    assert_eq!(capture.name(9, last), "task 0x9");
}

#[test]
fn poll_of_an_unnamed_task_shows_no_stale_name() {
    let recorder = Recorder::new(1);
    let lane = recorder.worker(0);
    lane.name(7, "dead");
    recorder.start(64);
    lane.poll_begin(7, false);
    assert_eq!(
        lines(&json(&recorder), &["\"task 0x7\"", "in progress"]).len(),
        1
    );
}

#[test]
fn long_name_is_cut_between_characters() {
    let recorder = Recorder::new(1);
    recorder.worker(0).name(7, &"é".repeat(100));
    recorder.start(64);
    let name = recorder.capture().name(7, std::time::Duration::MAX);
    assert_eq!(name, "é".repeat(52));
}

#[test]
fn each_thread_has_a_lane_and_few_of_ended_ones_are_kept() {
    let recorder = Arc::new(Recorder::new(0));
    recorder.start(64);
    for n in 0..200 {
        let recorder = recorder.clone();
        let thread = thread::Builder::new().name(format!("thread {n}"));
        let run = move || recorder.with_thread(|lane| lane.record(Event::Overflow));
        thread.spawn(run).unwrap().join().unwrap();
    }
    let capture = recorder.capture();
    let lanes = capture.lanes().len();
    assert!((1..=super::LARGE_LANES + 1).contains(&lanes), "{lanes}");
    assert_eq!(capture.lanes()[lanes - 1].name, "thread 199");
}

#[test]
fn thread_forgets_recorders_that_are_gone() {
    thread::spawn(|| {
        for _ in 0..3 {
            let recorder = Recorder::new(0);
            recorder.start(64);
            recorder.with_thread(|lane| lane.record(Event::Overflow));
            recorder.with_thread(|lane| lane.record(Event::Slice));
            assert_eq!(recorder.capture().lanes()[0].events.len(), 2);
        }
        let kept = super::LANES.with_borrow(Vec::len);
        assert_eq!(kept, 1);
    })
    .join()
    .unwrap();
}

#[test]
fn page_holds_the_trace() {
    let recorder = Recorder::new(1);
    recorder.start(64);
    recorder.worker(0).name(7, "</script><b>");
    recorder.worker(0).poll_begin(7, true);
    let mut page = Vec::new();
    recorder.capture().write_html(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains(r#""name":"\u003c/script>\u003cb>""#));
}

#[test]
fn start_with_too_large_a_capacity_changes_nothing() {
    let recorder = Recorder::new(1);
    for capacity in [0, 3, 1 << (usize::BITS - 1), 1 << (usize::BITS - 5)] {
        let start = std::panic::AssertUnwindSafe(|| recorder.start(capacity));
        assert!(std::panic::catch_unwind(start).is_err());
    }
    recorder.start(4);
    recorder.worker(0).record(Event::Park);
    recorder.with_thread(|lane| lane.record(Event::Overflow));
    let lanes: Vec<_> = recorder.capture().lanes().to_vec();
    assert!(lanes.iter().all(|lane| lane.events.len() == 1) && lanes.len() == 2);
}

/// Fails if a flood of events overwrites what a recorder with a limit is to keep, or if the newest
/// events are not whole.
#[test]
fn recorder_with_a_limit_goes_back_for_the_stated_time() {
    let keep = Duration::from_millis(300);
    let recorder = Recorder::new(2);
    recorder.start_limited(1 << 10, 1.0, keep);
    let begun = Instant::now();
    let mut number = 0;
    while begun.elapsed() < 3 * keep {
        recorder.go_on();
        if recorder.is_on() {
            number += 1;
            recorder.with_worker(0, |lane| lane.record(Event::Inject { tasks: number }));
        }
    }
    let capture = recorder.capture();
    let lane = &capture.lanes()[0];
    assert!(lane.lost > 10_000, "{}", lane.lost);
    let (first, last) = (lane.events[0].at, lane.events.last().unwrap().at);
    assert!(last - first >= keep, "{:?}", last - first);
    assert!(!capture.gaps().is_empty());
    let numbers = lane.events.iter().map(|stamped| match stamped.event {
        Event::Inject { tasks } => tasks,
        ref other => panic!("{other:?}"),
    });
    let numbers: Vec<_> = numbers.collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    // A half of the room has the newest events.
    let newest = &numbers[numbers.len() - 512..];
    assert!(newest.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    // No event is in a gap, but for the one that ends the window.
    let in_gap = |at: Duration| {
        let slack = Duration::from_micros(50);
        (capture.gaps().iter()).any(|gap| gap.0 + slack < at && at + slack < gap.1)
    };
    assert!(!lane.events.iter().any(|stamped| in_gap(stamped.at)));
}

/// Records as many events as the recorder takes in this time.
fn flood(recorder: &Recorder, time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        if recorder.is_on() {
            recorder.with_worker(0, |lane| lane.record(Event::Overflow));
        }
        recorder.go_on();
    }
}

/// Fails if the quiet time before a flood is in the recent ring only.
#[test]
fn quiet_time_before_a_flood_is_not_overwritten() {
    let recorder = Recorder::new(1);
    recorder.start_limited(1 << 12, 0.03, Duration::from_secs(2));
    flood(&recorder, Duration::from_millis(20));
    while !recorder.is_on() {
        recorder.go_on();
    }
    let mark = |tasks| Event::Inject { tasks };
    // The first marks may be in a window that is not sparse.
    for number in 0..150 {
        thread::sleep(Duration::from_millis(10));
        recorder.go_on();
        recorder.with_worker(0, |lane| lane.record(mark(number)));
    }
    flood(&recorder, Duration::from_millis(300));
    let capture = recorder.capture();
    let lane = &capture.lanes()[0];
    assert!(lane.lost > 0, "the flood has overwritten nothing");
    for number in 100..150 {
        let is_mark = |stamped: &super::Stamped| stamped.event == mark(number);
        assert!(lane.events.iter().any(is_mark), "{number}");
    }
}

/// Fails if a place from before a gap is the name of a task that was spawned in the gap.
#[test]
fn task_spawned_in_a_gap_has_no_name_of_an_earlier_one() {
    let recorder = Recorder::new(1);
    recorder.start_limited(1 << 12, 0.01, Duration::from_secs(10));
    let here = std::panic::Location::caller();
    let poll = |task, named| {
        recorder.with_worker(0, |lane| {
            lane.poll_begin(task, named);
            lane.poll_end(Outcome::Pending);
        });
    };
    recorder.with_worker(0, |lane| {
        lane.spawn(7, here);
        lane.name(8, "earlier");
        lane.name(9, "lasting");
    });
    poll(7, false);
    let before = recorder.capture();
    assert!(before.name(7, before.duration()).contains("tests.rs"));
    assert_eq!(before.name(8, before.duration()), "earlier");
    while recorder.is_on() {
        recorder.with_worker(0, |lane| lane.record(Event::Overflow));
    }
    // Other tasks may be spawned here at the addresses 7 and 8.
    while !recorder.is_on() {
        recorder.go_on();
    }
    let wake = |task| {
        let (by, cause) = (None, Cause::Thread);
        Event::Wake { task, by, cause }
    };
    recorder.with_worker(0, |lane| lane.record(wake(9)));
    poll(7, false);
    poll(9, true);
    let capture = recorder.capture();
    let (gap, end) = (capture.gaps()[0].1, capture.duration());
    assert_eq!(capture.name(7, end), "task 0x7");
    assert_eq!(capture.name(8, end), "task 0x8");
    // The polls after the gap show that the task has a name, which was not recorded anew.
    assert_eq!(capture.name(9, end), "lasting");
    let woken = capture.lanes()[0].events.iter();
    let woken = woken.filter(|stamped| stamped.at >= gap && stamped.event == wake(9));
    let woken: Vec<_> = woken.collect();
    assert_eq!(capture.name(9, woken[0].at), "lasting");
    let json = json(&recorder);
    assert_eq!(lines(&json, &["\"task 0x7\"", "\"pending\""]).len(), 1);
}

/// Fails if the time since the stop counts as a part of the recording.
#[test]
fn capture_after_a_stop_ends_at_the_stop() {
    let recorder = Recorder::new(1);
    recorder.start(64);
    recorder.worker(0).record(Event::Overflow);
    recorder.stop();
    thread::sleep(Duration::from_millis(100));
    recorder.stop();
    let capture = recorder.capture_last(Duration::from_millis(90));
    assert_eq!(capture.lanes()[0].events.len(), 1);
    assert!(capture.duration() < Duration::from_millis(90));
    recorder.start(64);
    thread::sleep(Duration::from_millis(10));
    assert!(recorder.capture().duration() >= Duration::from_millis(10));
}

/// Fails if each thread has as much room, however many threads there are.
#[test]
fn threads_beyond_the_sixteenth_have_little_room() {
    let recorder = Recorder::new(1);
    recorder.start(1 << 12);
    let barrier = std::sync::Barrier::new(40);
    thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                for _ in 0..300 {
                    recorder.with_thread(|lane| lane.record(Event::Overflow));
                }
                barrier.wait();
            });
        }
    });
    let capture = recorder.capture();
    let rooms = capture.lanes()[1..].iter().map(|lane| lane.events.len());
    let mut rooms: Vec<_> = rooms.collect();
    rooms.sort_unstable();
    assert_eq!(rooms[..24], [super::SMALL; 24]);
    assert_eq!(rooms[24..], [256; 16]);
}

/// Fails if a worker waits for a lock of the recorder. In a child made by `fork` it may never be
/// free.
#[test]
fn event_that_ends_a_window_waits_for_no_lock() {
    let recorder = Recorder::new(1);
    recorder.start_limited(1 << 6, 0.01, Duration::from_secs(1));
    let event = || recorder.with_worker(0, |lane| lane.record(Event::Overflow));
    {
        let _windows = recorder.windows.lock();
        (0..100).for_each(|_| event());
        assert!(recorder.is_on());
    }
    // On a busy machine the first window may have lasted so long that another one follows.
    while recorder.is_on() {
        event();
    }
    assert!(recorder.is_started());
    {
        let _others = recorder.others.lock();
        thread::sleep(Duration::from_millis(1));
        recorder.go_on();
        assert!(!recorder.is_on());
    }
    while !recorder.is_on() {
        recorder.go_on();
    }
}

/// Fails if a recorder with a limit thins out the events of a program that makes few.
#[test]
fn recorder_with_a_limit_has_all_of_few_events() {
    let recorder = Recorder::new(1);
    recorder.start_limited(1 << 12, 0.5, Duration::from_secs(1));
    for tasks in 0..300 {
        recorder.go_on();
        recorder.with_worker(0, |lane| lane.record(Event::Inject { tasks }));
        recorder.with_thread(|lane| lane.record(Event::Overflow));
        thread::sleep(Duration::from_micros(100));
    }
    let capture = recorder.capture();
    assert_eq!(capture.lanes()[0].events.len(), 300);
    assert!(capture.gaps().is_empty());
}
