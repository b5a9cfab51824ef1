use super::*;
use process_scheduler::{Child, Spawn, Strategy, Supervisor, from_fn};
use serde_json::Value;

/// A scheduler with a supervisor of two children, and ten processes without one.
fn scheduler() -> process_scheduler::Scheduler {
    let scheduler = process_scheduler::Scheduler::builder().workers(1).build();
    let child = |name: &str| Child::new(|| from_fn(|_: u8, _| ())).spawn(Spawn::new().name(name));
    let supervisor = Supervisor::new(Strategy::OneForOne);
    let supervisor = supervisor.child(child("first")).child(child("second"));
    supervisor.start(&scheduler.handle()).unwrap();
    while scheduler.named::<u8>("second").is_none() {
        std::thread::yield_now();
    }
    for _ in 0..10 {
        scheduler.spawn_fn(|_: u8, _| ()).unwrap();
    }
    scheduler
}

fn infos(scheduler: &process_scheduler::Scheduler) -> HashMap<Pid, Info> {
    let all = scheduler.list().into_iter();
    all.map(|pid| (pid, scheduler.inspect(pid).unwrap()))
        .collect()
}

#[test]
fn children_are_below_their_supervisor() {
    let scheduler = scheduler();
    let infos = infos(&scheduler);
    let tree = in_tree_order(&infos, MOST);
    assert_eq!(tree.len(), 13);
    let first = scheduler.named::<u8>("first").unwrap().pid();
    let at = tree.iter().position(|(pid, _)| *pid == first).unwrap();
    assert_eq!(tree[at].1, 1);
    assert_eq!(tree[at - 1], (infos[&first].supervisor.unwrap(), 0));
    assert_eq!(tree[at + 1].1, 1);
}

#[test]
fn few_rows_have_the_named_processes_and_their_supervisor() {
    let scheduler = scheduler();
    let infos = infos(&scheduler);
    let tree = in_tree_order(&infos, 2);
    let depths: Vec<_> = tree.iter().map(|(_, depth)| *depth).collect();
    assert_eq!(depths, [0, 1, 1]);
    assert!(in_tree_order(&infos, 0).is_empty());
    assert!(in_tree_order(&HashMap::new(), MOST).is_empty());
}

#[test]
fn scheduler_is_written_with_its_counters_and_rows() {
    let scheduler = scheduler();
    let shown = Scheduler::new(("a\"b".to_owned(), scheduler.handle()));
    let mut json = Json::new();
    shown.write(&mut json);
    let value: Value = serde_json::from_str(&json.into_string()).unwrap();
    assert_eq!(value["name"], "a\"b");
    assert_eq!(value["processes"], 13);
    let rows = value["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 13);
    let first = rows.iter().find(|row| row["names"][0] == "first").unwrap();
    assert_eq!(
        (&first["depth"], &first["restarts"]),
        (&1.into(), &0.into())
    );
}

#[test]
fn short_name_has_no_path_and_no_parameters() {
    assert_eq!(short("a::b::C<d::E, F>"), "C");
    assert_eq!(short("C"), "C");
    assert_eq!(short("a::run::{{closure}}"), "run");
    assert_eq!(short(""), "");
}
