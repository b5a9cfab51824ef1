//! Tests that the file is one that Perfetto's importer takes whole, and of gaps and observers.
use crate::recorder::{Cause, Event, Outcome, Recorder};
use serde_json::Value;
use std::{collections::BTreeMap, thread, time::Duration};

fn file(recorder: &Recorder, last: Duration) -> Value {
    let mut json = Vec::new();
    recorder.capture_last(last).write_chrome(&mut json).unwrap();
    let file: Value = serde_json::from_slice(&json).unwrap();
    assert_is_well_formed(&file);
    file
}

/// Asserts what Perfetto's importer of this format needs: each event has its fields, slices of a
/// lane do not overlap, each lane has a name, and each arrow has its begin and its end.
fn assert_is_well_formed(file: &Value) {
    let events = file["traceEvents"].as_array().unwrap();
    let mut slices = BTreeMap::<u64, Vec<(f64, f64)>>::new();
    let mut arrows = BTreeMap::<(String, u64), Vec<(char, f64)>>::new();
    let mut named = Vec::new();
    for event in events {
        let phase = event["ph"].as_str().unwrap();
        assert!(
            event["name"].is_string() && event["pid"].is_u64(),
            "{event}"
        );
        if phase == "M" {
            named.extend((event["name"] == "thread_name").then(|| event["tid"].as_u64().unwrap()));
            continue;
        }
        let (tid, at) = (
            event["tid"].as_u64().unwrap(),
            event["ts"].as_f64().unwrap(),
        );
        assert!(named.contains(&tid) && at >= 0.0, "{event}");
        match phase {
            "X" => {
                let took = event["dur"].as_f64().unwrap();
                assert!(took >= 0.0, "{event}");
                slices.entry(tid).or_default().push((at, at + took));
            }
            "s" | "f" => {
                let key = (event["cat"].to_string(), event["id"].as_u64().unwrap());
                let phase = phase.chars().next().unwrap();
                arrows.entry(key).or_default().push((phase, at));
            }
            "i" => assert_eq!(event["s"], "t"),
            other => panic!("unknown phase {other}"),
        }
    }
    for slices in slices.values_mut() {
        slices.sort_by(|one, two| one.partial_cmp(two).unwrap());
        // A slice of a nanosecond, for an arrow's begin, may lie in a sleep.
        slices.retain(|slice| slice.1 - slice.0 > 0.0015);
        assert!(
            slices
                .windows(2)
                .all(|pair| pair[0].1 <= pair[1].0 + 0.0005)
        );
    }
    for (key, ends) in arrows {
        let [('s', from), ('f', to)] = ends[..] else {
            panic!("{key:?} has {ends:?}");
        };
        assert!(from <= to);
    }
}

fn slices<'a>(file: &'a Value, category: &str) -> Vec<&'a Value> {
    let events = file["traceEvents"].as_array().unwrap().iter();
    let is_one = |event: &&Value| event["ph"] == "X" && event["cat"] == category;
    events.filter(is_one).collect()
}

fn wake(task: u64) -> Event {
    Event::Wake {
        task,
        by: None,
        cause: Cause::Worker,
    }
}

/// Records for a while, with polls, sleeps and arrows that reach into gaps.
fn with_gaps(recorder: &Recorder) {
    for round in 0..2_000 {
        recorder.go_on();
        if !recorder.is_on() {
            continue;
        }
        for worker in 0..2 {
            recorder.with_worker(worker, |lane| {
                let task = 1 + (round + worker as u64) % 3;
                lane.poll_begin(task, false);
                lane.record(wake(1 + task % 3));
                if round % 5 == worker as u64 {
                    return; // The end of the poll comes in a gap.
                }
                lane.poll_end(Outcome::Pending);
                lane.record(Event::Park);
                lane.record(Event::Unpark { notified: false });
                lane.record(Event::Park);
            });
        }
    }
}

#[test]
fn file_with_gaps_is_well_formed() {
    let recorder = Recorder::new(2);
    recorder.start_limited(1 << 14, 0.01, Duration::ZERO);
    let mut gaps = 0;
    while gaps < 2 {
        with_gaps(&recorder);
        gaps = recorder.capture().gaps().len();
    }
    let file = file(&recorder, Duration::MAX);
    assert_eq!(slices(&file, "gap").len(), gaps);
}

#[test]
fn poll_and_arrow_end_at_a_gap() {
    let recorder = Recorder::new(1);
    recorder.start_limited(1 << 13, 1e-3, Duration::ZERO);
    recorder.with_worker(0, |lane| lane.record(wake(7)));
    recorder.with_worker(0, |lane| lane.poll_begin(9, false));
    while recorder.is_on() {
        recorder.with_worker(0, |lane| lane.record(Event::Overflow));
    }
    while !recorder.is_on() {
        recorder.go_on();
    }
    recorder.with_worker(0, |lane| lane.poll_end(Outcome::Ready));
    recorder.with_worker(0, |lane| lane.poll_begin(7, false));
    let capture = recorder.capture();
    let (begun, end) = capture.gaps()[0];
    let file = file(&recorder, Duration::MAX);
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    let polls = slices(&file, "poll");
    let poll_end = polls[0]["ts"].as_f64().unwrap() + polls[0]["dur"].as_f64().unwrap();
    assert_eq!((polls.len(), &polls[0]["name"]), (2, &"task 0x9".into()));
    assert!(
        (poll_end - micros(begun)).abs() < 1.0 && end > begun,
        "{polls:?}"
    );
    let text = file.to_string();
    assert!(text.contains("wake task 0x7, not run yet"), "{text}");
}

#[test]
fn poll_in_progress_at_the_cut_keeps_its_begin() {
    let recorder = Recorder::new(1);
    recorder.start(64);
    let lane = recorder.worker(0);
    lane.poll_begin(1, false);
    lane.poll_end(Outcome::Pending);
    lane.poll_begin(2, false);
    thread::sleep(Duration::from_millis(10));
    lane.record(wake(3));
    let last = Duration::from_millis(5);
    let capture = recorder.capture_last(last);
    let events: Vec<_> = capture.lanes()[0].events.iter().map(|e| e.event).collect();
    let begin = Event::PollBegin {
        task: 2,
        named: false,
    };
    assert_eq!(events, [begin, wake(3)]);
    assert_eq!(slices(&file(&recorder, last), "poll").len(), 1);
    // Without an event in the last part, the poll is still there.
    thread::sleep(Duration::from_millis(10));
    assert_eq!(recorder.capture_last(last).lanes()[0].events.len(), 1);
    let none = recorder.capture_last(Duration::ZERO);
    assert_eq!(none.lanes()[0].events[0].event, begin);
}

#[test]
fn observed_polls_and_waits_are_slices_of_their_lanes() {
    let recorder = Recorder::new(1);
    recorder.start(64);
    thread::sleep(Duration::from_millis(40));
    recorder.with_thread(|lane| {
        for (task, millis) in [(1, 10), (1, 20), (2, 1)] {
            let lasted = Duration::from_millis(millis);
            lane.record(Event::LongPoll {
                worker: 0,
                task,
                lasted,
            });
            thread::sleep(Duration::from_millis(if task == 1 { 10 } else { 0 }));
        }
        let waited = Duration::from_millis(12);
        lane.record(Event::NoCpu { worker: 0, waited });
        lane.record(Event::NoCpu { worker: 0, waited });
    });
    let file = file(&recorder, Duration::MAX);
    let long = slices(&file, "long");
    assert_eq!(long.len(), 2, "{file}");
    assert_eq!(long[0]["name"], "task 0x1");
    assert!(long[0]["dur"].as_f64().unwrap() >= 19_000.0, "{long:?}");
    let waits = slices(&file, "wait");
    let name = "worker 0 was runnable but did not run for 12.0 ms";
    assert_eq!((waits.len(), &waits[0]["name"]), (2, &name.into()));
    assert!(file.to_string().contains("worker 0, without a CPU"));
}

#[test]
fn notes_are_escaped_and_come_first() {
    let mut capture = Recorder::new(0).capture();
    capture.note("by", "a\"b</script>");
    capture.note("why", "a stall");
    let mut json = Vec::new();
    capture.write_chrome(&mut json).unwrap();
    let text = String::from_utf8(json.clone()).unwrap();
    assert!(
        text.starts_with(r#"{"displayTimeUnit":"ns","otherData":{"by":"#),
        "{text}"
    );
    let file: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(file["otherData"]["by"], "a\"b</script>");
    assert_eq!(file["otherData"]["why"], "a stall");
}
