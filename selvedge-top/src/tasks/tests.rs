use super::*;
use selvedge::{Runtime, task};
use serde_json::Value;
use std::time::Duration;

/// A runtime with tasks of these names, all of which wait.
fn runtime(names: &[&str]) -> Runtime {
    let runtime = selvedge::Builder::new().workers(1).list_tasks(true);
    let runtime = runtime.build().unwrap();
    for name in names {
        let named = task::Builder::new().name((*name).to_owned());
        drop(named.spawn_on(std::future::pending::<()>(), runtime.handle()));
    }
    let waits = |task: &TaskSnapshot| task.state == TaskState::Waiting;
    while !runtime.handle().tasks().unwrap().iter().all(waits) {
        std::thread::yield_now();
    }
    runtime
}

fn table(runtime: &Runtime) -> Made<Table> {
    Made {
        value: Arc::new(Table::new(runtime.handle().tasks().unwrap())),
        at: Instant::now(),
        cost: Duration::ZERO,
    }
}

fn answer(table: &Made<Table>, query: &str) -> Value {
    serde_json::from_str(&rows(table, Wanted::parse(query), None)).unwrap()
}

fn names(answer: &Value) -> Vec<&str> {
    let rows = answer["rows"].as_array().unwrap();
    rows.iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect()
}

#[test]
fn tasks_are_searched_by_all_words() {
    let runtime = runtime(&["Reader 1", "reader 2", "writer", "Übertrag"]);
    let table = table(&runtime);
    let found = |search: &str| {
        let query = format!("sort=name&order=up&search={search}");
        let answer = answer(&table, &query);
        assert_eq!(answer["total"], 4);
        names(&answer).join(",")
    };
    assert_eq!(found("READER"), "Reader 1,reader 2");
    assert_eq!(found("reader+2"), "reader 2");
    assert_eq!(found("reader+writer"), "");
    assert_eq!(found("%C3%BCbert"), "Übertrag");
    assert_eq!(found("waiting+writer"), "writer");
    assert_eq!(found("tests.rs+writer"), "writer");
    assert_eq!(found("executing"), "");
    let id = answer(&table, "search=writer")["rows"][0]["id"].to_string();
    assert_eq!(found(id.trim_matches('"')), "writer");
    let location = runtime.handle().tasks().unwrap()[0].location.to_string();
    let place = location.rsplit('/').next().unwrap();
    assert_eq!(found(&format!("{place}+writer")), "writer");
}

#[test]
fn window_of_rows_is_within_the_matches() {
    let all: Vec<String> = (0..20).map(|n| format!("task {n:02}")).collect();
    let runtime = runtime(&all.iter().map(String::as_str).collect::<Vec<_>>());
    let table = table(&runtime);
    let window = |query: &str| {
        let answer = answer(&table, &format!("sort=name&order=up&{query}"));
        (names(&answer).join(","), answer["from"].as_u64().unwrap())
    };
    assert_eq!(window("from=3&count=2"), ("task 03,task 04".to_owned(), 3));
    assert_eq!(window("from=19&count=9"), ("task 19".to_owned(), 19));
    assert_eq!(window("from=99&count=9"), (String::new(), 20));
    assert_eq!(window("from=0&count=0"), (String::new(), 0));
    let most = u64::MAX;
    assert_eq!(window(&format!("from={most}&count={most}")).1, 20);
    assert_eq!(window("from=-1&count=x").0.split(',').count(), 20);
    let down = answer(&table, "sort=name&from=0&count=1");
    assert_eq!(names(&down), ["task 19"]);
}

#[test]
fn order_is_kept_for_requests_of_further_rows() {
    let runtime = runtime(&["a", "b"]);
    let table = table(&runtime);
    for search in ["a", "b", "c", "d", "e", "f", "a"] {
        answer(&table, &format!("search={search}"));
    }
    let orders = || table.value.orders.lock().unwrap().clone();
    let kept = orders();
    assert_eq!(kept.len(), KEPT_ORDERS);
    // The search for `a` is the last one. A further request uses the same order.
    answer(&table, "search=a&from=1");
    assert_eq!(orders().len(), KEPT_ORDERS);
    for ((_, before), (_, after)) in kept.iter().zip(orders()) {
        assert!(Arc::ptr_eq(before, &after));
    }
}

#[test]
fn since_sorts_the_longest_wait_first() {
    let runtime = runtime(&["old"]);
    std::thread::sleep(Duration::from_millis(2));
    let named = task::Builder::new().name("young");
    drop(named.spawn_on(std::future::pending::<()>(), runtime.handle()));
    while runtime
        .handle()
        .tasks()
        .unwrap()
        .iter()
        .any(|task| task.polls == 0)
    {
        std::thread::yield_now();
    }
    let table = table(&runtime);
    assert_eq!(names(&answer(&table, "")), ["old", "young"]);
    assert_eq!(
        names(&answer(&table, "sort=since&order=up")),
        ["young", "old"]
    );
}

#[test]
fn task_is_found_by_the_text_of_its_id() {
    let runtime = runtime(&["a"]);
    let table = table(&runtime);
    let id = runtime.handle().tasks().unwrap()[0].id;
    assert_eq!(table.value.find(&id.to_string()), Some(id));
    for wrong in [
        "",
        "0x",
        "0x0",
        "zz",
        "-1",
        "0x10000000000000000000",
        "../x",
    ] {
        assert_eq!(table.value.find(wrong), None, "{wrong}");
    }
}

#[test]
fn wait_of_a_task_is_shown_until_its_next_poll() {
    let runtime = selvedge::Builder::new().workers(1).list_tasks(true);
    let runtime = runtime.build().unwrap();
    let (sender, mut receiver) = selvedge::sync::mpsc::channel::<()>(1);
    let named = task::Builder::new().name("receives");
    let task = named.spawn_on(
        async move {
            receiver.recv().await;
            std::future::pending::<()>().await;
        },
        runtime.handle(),
    );
    let dump = || loop {
        let dump = runtime.block_on(runtime.handle().dump()).unwrap();
        if dump[0].task.state == TaskState::Waiting
            && dump[0].outcome == selvedge::DumpOutcome::Waits
        {
            return dump;
        }
    };
    let waits = Waits::of(&dump());
    let row = |waits: &Waits| {
        let json = rows(&table(&runtime), Wanted::parse(""), Some(waits));
        serde_json::from_str::<Value>(&json).unwrap()["rows"][0].clone()
    };
    // Without stacks, as on other systems than Linux, the wait may have no text.
    assert_eq!(waits.count(), 1);
    assert!(row(&waits)["waits"].is_string());
    sender.try_send(()).unwrap();
    while runtime.handle().tasks().unwrap()[0].polls < 2 {
        std::thread::yield_now();
    }
    assert!(row(&waits)["waits"].is_null());
    drop(task);
}

#[test]
fn wait_of_an_earlier_task_with_the_id_is_not_shown() {
    let runtime = runtime(&["new"]);
    let task = runtime.handle().tasks().unwrap().remove(0);
    let seen = Instant::now();
    let at = |at| {
        let wait = Wait {
            polls: task.polls,
            what: "a lock".to_owned(),
        };
        let of = HashMap::from([(task.id, wait)]);
        Waits { at, of }
    };
    assert_eq!(at(seen).get(&task, seen), Some("a lock"));
    let before = seen.checked_sub(task.since + Duration::from_millis(1));
    assert_eq!(at(before.unwrap()).get(&task, seen), None);
}

#[test]
fn search_counts_few_words_and_characters() {
    let words = |search: &str| Wanted::parse(&format!("search={search}")).choice.words;
    assert_eq!(words("b+a+b+A"), ["b", "a"]);
    let many: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    assert_eq!(words(&many.join("+")), many[..MOST_WORDS]);
    assert_eq!(words(&"x".repeat(8000)), ["x".repeat(MOST_SEARCHED)]);
}

#[test]
fn pieces_of_a_text_are_found_in_any_case() {
    for (text, word) in [
        ("aBc", "b"),
        ("abc", "abc"),
        ("abc", ""),
        ("", ""),
        ("ÄÖ", "äö"),
    ] {
        assert!(contains(text, word), "{text} {word}");
    }
    for (text, word) in [("abc", "abcd"), ("", "a"), ("abc", "ac"), ("Ä", "a")] {
        assert!(!contains(text, word), "{text} {word}");
    }
}
