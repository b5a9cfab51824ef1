//! The page in headless Chromium. `SELVEDGE_TOOLS=1` makes a missing browser an error.
mod common;

use common::{builder, chromium::Browser, serve};
use selvedge::{
    sync::{Barrier, Mutex},
    task,
};
use selvedge_top::{Builder, Stalls};
use serde_json::{Value, json};
use std::{
    fs,
    future::pending,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

/// The size of a telephone's window, and of a larger one.
const SIZES: [(u32, u32); 2] = [(390, 844), (1000, 640)];

async fn waits_for_an_answer() {
    pending::<()>().await;
}

/// By keys alone: searches a task, opens its stack, and goes back. Then sees a stall, and downloads
/// a recording. Prints how long the stall took to appear.
#[test]
fn task_stall_and_recording_are_found_on_the_page() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let stalls = Stalls::new();
    let runtime = builder().on_stall(stalls.hook()).build().unwrap();
    let options = Builder::new().runtime(runtime.handle()).stalls(&stalls);
    let page = options.serve("127.0.0.1:0").unwrap();
    let hostile = "<img src=x onerror=alert(1)>";
    for number in 0..300 {
        let name = format!("{hostile} {number:03}");
        let named = task::Builder::new().name(name);
        drop(named.spawn_on(waits_for_an_answer(), runtime.handle()));
    }
    let (answer, question) = selvedge::sync::oneshot::channel::<u8>();
    let named = task::Builder::new().name("the needle");
    drop(named.spawn_on(question, runtime.handle()));

    browser.look_like(SIZES[1], "light");
    browser.open(&format!("http://{}/", page.local_addr()));
    browser.until("document.getElementById('n-tasks').textContent === '301'");
    browser.press("/");
    browser.until("document.activeElement.id === 'search'");
    browser.type_text("needle");
    browser.until("document.querySelectorAll('#list .row span').length === 7");
    browser.press("Enter");
    browser.press("Enter");
    browser.until("document.querySelector('dialog[open] .part') !== null");
    let stack = browser.value("document.getElementById('dialog').innerText");
    let stack = stack.as_str().unwrap();
    assert!(
        stack.contains("the needle") && stack.contains("awaits"),
        "{stack}"
    );
    browser.press("Escape");
    browser.until("document.querySelector('dialog[open]') === null");

    // Two tasks that wait for each other are shown when the tasks are asked, and are a finding.
    let locks = [(); 2].map(|()| Arc::new(Mutex::new(())));
    let both = Arc::new(Barrier::new(2));
    for (name, order) in [("one", [0, 1]), ("other", [1, 0])] {
        let (locks, both) = (locks.clone(), both.clone());
        let locks_both = async move {
            let _first = locks[order[0]].lock().await;
            both.wait().await;
            drop(locks[order[1]].lock().await);
        };
        drop(
            task::Builder::new()
                .name(name)
                .spawn_on(locks_both, runtime.handle()),
        );
    }
    browser.until("document.getElementById('n-tasks').textContent === '303'");
    // On a busy machine the tasks may not wait yet when they are asked.
    while browser.value("ask().then(() => document.querySelector('dialog[open]') === null)") == true
    {
        thread::sleep(Duration::from_millis(20));
    }
    browser.until("document.querySelector('dialog[open]')?.innerText.includes('a mutex')");
    let circle = browser.value("document.getElementById('dialog').innerText");
    let circle = circle.as_str().unwrap();
    assert!(
        circle.contains("\"one\"") && circle.contains("\"other\""),
        "{circle}"
    );
    browser.press("Escape");
    browser.press("1");
    browser.until("$('findings').innerText.includes('2 tasks wait for each other')");
    browser.value("document.querySelector('#findings button').click()");
    browser.until("document.querySelector('dialog[open]')?.innerText.includes('a mutex')");
    browser.press("Escape");
    browser.until("document.querySelector('dialog[open]') === null");

    // The last of all tasks: the list has only the rows in view, and fetches others.
    browser.press("/");
    browser.press("Escape");
    browser.until("document.getElementById('count').textContent === '303 tasks'");
    browser.value(
        "document.getElementById('sort').value = 'name up', \
                   document.getElementById('sort').dispatchEvent(new Event('change'))",
    );
    browser.press("End");
    browser.until(
        "document.querySelector('[aria-selected=true].row span')?.textContent === \
                   'the needle'",
    );
    let drawn = browser.value("document.querySelectorAll('#list .row').length");
    assert!(drawn.as_u64().unwrap() < 60, "{drawn} rows");
    for _ in 0..3 {
        browser.press("ArrowUp");
    }
    let text = "document.querySelector('[aria-selected=true].row span').textContent";
    browser.until(&format!("{text} === '{hostile} 299'"));
    assert_eq!(browser.value("document.images.length"), 0);

    let (release, blocked) = mpsc::channel::<()>();
    let blocks = async move {
        let _ = blocked.recv();
    };
    let named = task::Builder::new().name("blocks");
    let begun = Instant::now();
    drop(named.spawn_on(blocks, runtime.handle()));
    browser.until("document.getElementById('n-stalls').textContent !== ''");
    let mut line = std::io::stderr();
    let took = begun.elapsed();
    let _ = std::io::Write::write_fmt(&mut line, format_args!("a stall is shown after {took:?}\n"));
    drop(release);
    browser.press("4");
    browser.until("document.querySelector('#stall-rows tr') !== null");
    // A click counts that begins before a tick and ends after it.
    browser.mouse("mousePressed", "#stall-rows tr");
    browser.value("window.seen_ = now");
    browser.until("now !== window.seen_");
    browser.mouse("mouseReleased", "#stall-rows tr");
    browser.until("document.querySelector('dialog[open]')?.innerText.includes('cause')");
    browser.press("Escape");
    browser.until("document.querySelector('dialog[open]') === null");
    browser.value("document.querySelector('#stall-rows tr').focus()");
    browser.press("Enter");
    browser.until("document.querySelector('dialog[open]')?.innerText.includes('cause')");
    browser.press("Escape");
    browser.until("document.querySelector('dialog[open]') === null");

    browser.press("5");
    let click = "document.getElementById('record').click()";
    browser.value(click);
    browser.until("document.getElementById('record').textContent === 'Stop'");
    let named = task::Builder::new().name("recorded");
    runtime
        .block_on(named.spawn_on(async {}, runtime.handle()))
        .unwrap();
    let file = browser.download("document.getElementById('download').click()");
    let recording: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert!(recording.to_string().contains("recorded"));
    browser.value(click);
    browser.until("document.getElementById('record').textContent === 'Start'");
    browser.open(&format!("http://{}/recording/page", page.local_addr()));
    browser.until(
        "document.body.dataset.lanes > 0 || document.documentElement.dataset.lanes > 0 \
                   || document.querySelector('[data-lanes]') !== null",
    );
    assert_eq!(browser.console, Vec::<String>::new());
    drop(answer);
}

/// The address has the token no longer, and the events come by the cookie.
#[test]
fn token_in_the_address_opens_the_page() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let runtime = builder().build().unwrap();
    let guarded = Builder::new().runtime(runtime.handle());
    let page = guarded.token("0123456789abcdef").serve("127.0.0.1:0");
    let page = page.unwrap();
    let url = format!("http://{}/", page.local_addr());
    browser.open(&url);
    browser.until("$('live').textContent.includes('the token is missing')");
    browser.open(&format!("{url}?token=0123456789abcdef"));
    browser.until("$('live').textContent === 'live'");
    assert_eq!(browser.value("location.search"), "");
}

/// Each view is no wider than the window, also with long names, and has no text that is cut off.
#[test]
fn each_view_fits_a_narrow_window() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let long = "a_module::with_a_long_name::of_a_connection_handler::that_never_ends";
    let stalls = Stalls::new();
    let builder = builder().name(long).on_stall(stalls.hook());
    let runtime = builder.build().unwrap();
    let scheduler = process_scheduler::Scheduler::builder().workers(1).build();
    let spawn = process_scheduler::Spawn::new().name(long);
    scheduler.spawn_with(spawn, |_: u8, _| ()).unwrap();
    let group = runtime.group(long).build().unwrap();
    let options = Builder::new().runtime(runtime.handle()).stalls(&stalls);
    let options = options.processes(long, &scheduler.handle());
    let page = options.serve("127.0.0.1:0").unwrap();
    let block = async {
        loop {
            thread::sleep(Duration::from_millis(40));
            selvedge::yield_now().await;
        }
    };
    let named = async move { drop(task::Builder::new().name(long).spawn(block)) };
    drop(selvedge::spawn_in(&group, named).unwrap());
    for size in SIZES {
        browser.look_like(size, "dark");
        browser.open(&format!("http://{}/", page.local_addr()));
        // The groups are known after a second tick.
        browser.until(
            "document.querySelector('#findings .bad') && document.querySelector('#groups tr')",
        );
        for (key, view) in [
            ("1", "overview"),
            ("2", "tasks"),
            ("3", "processes"),
            ("4", "stalls"),
            ("5", "recording"),
        ] {
            browser.press(key);
            browser.until(&format!(
                "!document.getElementById('{view}').hidden && \
                 ('{view}' === 'recording' ? $('record').textContent \
                 : $('{view}').innerText.includes('a_module'))"
            ));
            let over = browser.value(&format!(
                "[document.documentElement, document.body, document.getElementById('{view}'), \
                  document.getElementById('list')] \
                 .map(box => box.scrollWidth - box.clientWidth)"
            ));
            assert_eq!(over, json!([0, 0, 0, 0]), "{view} at {size:?}");
        }
        browser.press("4");
        browser.value("document.querySelector('#stall-rows tr').click()");
        // The report has a stack on 64 bits only.
        browser.until("document.querySelectorAll('#dialog-text p').length > 1");
        let over = browser.value("$('dialog').scrollWidth - $('dialog').clientWidth");
        assert_eq!(over, 0, "the dialog at {size:?}");
    }
    assert_eq!(browser.console, Vec::<String>::new());
}

/// The demo, which is killed on drop.
struct Demo(std::process::Child);

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the demo, and returns the process and the page's address.
fn demo() -> (Demo, String) {
    let profile = if cfg!(debug_assertions) {
        "dev"
    } else {
        "release"
    };
    let mut demo = Command::new(env!("CARGO"));
    demo.args([
        "run",
        "--quiet",
        "--profile",
        profile,
        "--package",
        "selvedge-top",
    ]);
    demo.args(["--example", "demo", "--", "127.0.0.1:0"]);
    let mut demo = Demo(demo.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    let mut output = BufReader::new(demo.0.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("see ").unwrap().to_owned();
    (demo, url)
}

/// Takes the pictures of the guide's chapter: the four faults of the demo. Fails if the page does
/// not show one.
///
/// ```sh
/// cargo test -p selvedge-top --test browser -- --ignored pictures
/// ```
#[test]
#[ignore = "writes the pictures of the guide"]
fn pictures_of_the_demo_show_its_faults() {
    let mut browser = Browser::start().expect("a browser");
    let (_demo, url) = demo();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guide/src/images");
    let shoot = |browser: &mut Browser, name: &str| {
        // Another frame, in which all that has changed is drawn.
        browser.value(
            "new Promise(done => requestAnimationFrame(() => \
                       requestAnimationFrame(() => done(1))))",
        );
        browser.picture(&folder.join(format!("top-{name}.png")));
    };
    browser.look_like((760, 420), "light");
    browser.open(&url);
    browser.until("$('findings').querySelectorAll('.bad').length === 3");
    thread::sleep(Duration::from_secs(12)); // So that the lines are long.
    browser.until("$('findings').querySelectorAll('.bad').length === 3");
    shoot(&mut browser, "overview");
    browser.look_like((760, 270), "light");
    browser.value("$('groups-box').scrollIntoView()");
    shoot(&mut browser, "groups");
    browser.look_like((390, 700), "dark");
    browser.value("scrollTo(0, 0)");
    browser.until("$('findings').querySelectorAll('.bad').length === 3");
    shoot(&mut browser, "narrow");
    browser.look_like((760, 340), "light");
    browser.press("2");
    browser.until("document.querySelector('#list .row span') !== null");
    browser.value("ask()");
    browser.until("document.querySelector('dialog[open]')?.innerText.includes('each other')");
    browser.until("[...document.querySelectorAll('.row .waits')].some(cell => cell.textContent)");
    shoot(&mut browser, "cycle");
    browser.value("$('dialog').close()");
    shoot(&mut browser, "tasks");
    browser.value("$('search').value = 'transfer', restart()");
    browser.until(
        "document.querySelectorAll('#list .row span').length === 7 && \
         document.querySelector('#list .row span').textContent === 'transfer'",
    );
    browser.value("pick(0), openTask()");
    browser.until(
        "document.getElementById('dialog-title').textContent.includes('transfer') && \
         document.querySelector('dialog[open] .part') !== null",
    );
    shoot(&mut browser, "transfer");
    browser.value("$('dialog').close()");
    browser.press("3");
    browser.until("document.querySelector('#processes .bad') !== null");
    shoot(&mut browser, "processes");
    browser.look_like((720, 480), "light");
    browser.press("4");
    browser.value("document.querySelector('#stall-rows tr').click()");
    browser.until("document.querySelector('dialog[open]')?.innerText.includes('write_report')");
    shoot(&mut browser, "stall");
    assert_eq!(browser.console, Vec::<String>::new());
}

/// Prints which part of a processor this process uses in 30 seconds: with a page open on the list
/// of tasks, and without.
///
/// ```sh
/// cargo test --release -p selvedge-top --test browser -- --ignored --nocapture open_page
/// ```
#[test]
#[ignore = "a measurement of two minutes"]
fn open_page_costs_little_with_many_tasks() {
    let mut browser = Browser::start().expect("a browser");
    browser.look_like(SIZES[1], "light");
    for tasks in [1_000, 100_000] {
        let runtime = builder().build().unwrap();
        let page = serve(&runtime);
        for number in 0..tasks {
            let named = task::Builder::new().name(format!("task {number}"));
            drop(named.spawn_on(pending::<()>(), runtime.handle()));
        }
        thread::sleep(Duration::from_secs(1));
        let url = format!("http://{}/#tasks", page.local_addr());
        for (what, url) in [("without a page", "about:blank"), ("with a page", &url)] {
            browser.open(url);
            if url != "about:blank" {
                browser.until("document.querySelector('#list .row span') !== null");
                thread::sleep(Duration::from_secs(1));
            }
            let (begun, before) = (Instant::now(), processor_time());
            thread::sleep(Duration::from_secs(30));
            let used = processor_time() - before;
            let part = 100.0 * used.as_secs_f64() / begun.elapsed().as_secs_f64();
            println!("{tasks} tasks, {what}: {part:.2} % of a processor");
        }
        let begun = Instant::now();
        browser.value("$('search').value = 'task 99', restart()");
        browser.until("/^[0-9\\u202f]+ of /.test(document.getElementById('count').textContent)");
        println!(
            "{tasks} tasks: a search is shown after {:?}",
            begun.elapsed()
        );
        // Before the page's server ends.
        browser.open("about:blank");
    }
    assert_eq!(browser.console, Vec::<String>::new());
}

/// Returns the processor time of this process, of the user's code and of the system. Linux counts
/// it in hundredths of a second.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    // The name of the program, in parentheses, may have spaces. These are the fields 14 and 15.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(10 * ticks)
}
