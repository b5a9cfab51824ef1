use crate::{Event, Run, Stats};
use std::time::Duration;

/// An event at so many microseconds: a thread, its kind, the task and the number.
type Short = (u64, usize, u64, &'static str, u64, u64);

/// Returns the lines of the file for these events of the hosts `db` and `web`. A thread of a host
/// has the name `HOST: worker`.
fn lines(events: &[Short]) -> Vec<String> {
    let hosts = ["main", "db", "web"].map(str::to_owned).to_vec();
    let event = |&(micros, host, thread, kind, task, number): &Short| Event {
        time: Duration::from_micros(micros),
        host,
        thread,
        name: (thread > 0).then(|| format!("{}: worker", hosts[host]).into()),
        kind,
        task,
        number,
    };
    let run = Run {
        seed: 1,
        hash: 0,
        events: events.len() as u64,
        kept: events.iter().map(event).collect(),
        lost: 5,
        hosts: hosts.clone(),
        failure: None,
        choices: Vec::new(),
        begins: Vec::new(),
        stats: Stats {
            time: Duration::from_micros(99),
            ..Stats::default()
        },
    };
    run.to_json().lines().map(str::to_owned).collect()
}

/// Returns the lines that have all of these parts.
fn having<'a>(lines: &'a [String], parts: &[&str]) -> Vec<&'a String> {
    let has = |line: &&String| parts.iter().all(|part| line.contains(part));
    lines.iter().filter(has).collect()
}

#[test]
fn poll_is_a_slice_and_its_wake_an_arrow() {
    let lines = lines(&[
        (1, 1, 5, "wake", 7, 0),
        (3, 2, 6, "poll", 7, 0),
        (8, 2, 6, "end of poll", 0, 1),
    ]);
    let polls = having(&lines, &["\"ph\":\"X\"", "\"cat\":\"poll\""]);
    assert_eq!(polls.len(), 1);
    assert!(polls[0].contains("\"ts\":3.000,\"dur\":5.000"), "{polls:?}");
    assert!(polls[0].contains("runs again"), "{polls:?}");
    let [from] = having(&lines, &["\"ph\":\"s\"", "wake"])[..] else {
        panic!("{lines:?}");
    };
    let [to] = having(&lines, &["\"ph\":\"f\"", "wake"])[..] else {
        panic!("{lines:?}");
    };
    assert!(from.contains("\"pid\":1") && from.contains("\"ts\":1.000"));
    assert!(to.contains("\"pid\":2") && to.contains("\"ts\":3.000"));
}

#[test]
fn crash_ends_the_slices_of_its_host_alone() {
    let lines = lines(&[
        (1, 1, 5, "poll", 7, 0),
        (1, 2, 6, "poll", 8, 0),
        (4, 1, 0, "crash", 0, 0),
        (6, 1, 0, "restart", 0, 0),
        (7, 1, 9, "poll", 10, 0),
    ]);
    assert_eq!(
        having(&lines, &["task 7", "\"dur\":3.000", "crash"]).len(),
        1
    );
    assert_eq!(having(&lines, &["task 8", "in progress"]).len(), 1);
    assert_eq!(
        having(&lines, &["\"cat\":\"down\"", "\"dur\":2.000"]).len(),
        1
    );
    assert_eq!(having(&lines, &["\"cat\":\"fault\""]).len(), 2);
    // The new worker has the lane of the old one.
    assert_eq!(having(&lines, &["thread_name", "db: worker"]).len(), 1);
    assert_eq!(having(&lines, &["thread_name", "host db"]).len(), 1);
}

#[test]
fn two_threads_with_one_name_have_two_lanes() {
    let lines = lines(&[(1, 1, 5, "poll", 7, 0), (2, 1, 6, "poll", 8, 0)]);
    assert_eq!(having(&lines, &["thread_name", "db: worker"]).len(), 2);
}

#[test]
fn wake_that_led_to_no_poll_is_shown() {
    let lines = lines(&[(1, 1, 5, "wake", 7, 0)]);
    let shown = having(&lines, &["\"ph\":\"i\"", "task 7, not polled after this"]);
    assert_eq!(shown.len(), 1, "{lines:?}");
}

#[test]
fn partition_names_the_other_host() {
    let lines = lines(&[(1, 1, 0, "cut begins", 0, 2)]);
    assert_eq!(having(&lines, &["cut begins: to web", "fault"]).len(), 1);
}

#[test]
fn events_that_were_not_kept_are_counted() {
    let lines = lines(&[(1, 1, 5, "poll", 7, 0)]);
    assert_eq!(having(&lines, &["\"lost\":5"]).len(), 1);
}

/// Each line but the first and the last is an object, and all but the last of these end in a comma.
#[test]
fn run_without_events_is_a_list_without_commas() {
    assert_eq!(lines(&[]).len(), 2);
    let some = lines(&[(1, 1, 5, "poll", 7, 0), (2, 0, 0, "panic", 0, 0)]);
    let objects = &some[1..some.len() - 1];
    let commas = objects.iter().filter(|line| line.ends_with("},"));
    assert_eq!(commas.count(), objects.len() - 1, "{some:?}");
    assert!(objects.iter().all(|line| line.starts_with('{')), "{some:?}");
}
