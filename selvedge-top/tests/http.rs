//! The page's addresses, by plain sockets: which requests are answered, and which are refused.
mod common;

use common::{builder, connect, get, parse, read_until, request, send, serve};
use selvedge::task;
use selvedge_top::{Builder, ServeError, Stalls};
use serde_json::Value;
use std::{
    future::pending,
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    sync::mpsc,
    thread,
    time::Duration,
};

const TOKEN: &str = "0123456789abcdef";

#[test]
fn page_and_its_files_have_a_strict_policy() {
    let runtime = builder().build().unwrap();
    let page = serve(&runtime);
    let to = page.local_addr();
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/top.css", "text/css"),
        ("/top.js", "text/javascript"),
    ] {
        let answer = get(to, path);
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some(kind))
        );
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        let length = answer.header("content-length").unwrap();
        assert_eq!(length, answer.body.len().to_string());
        let head = request(to, "HEAD", path);
        assert_eq!((head.status, &*head.body), (200, ""));
        assert_eq!(head.header("content-length"), Some(length));
    }
}

#[test]
fn unknown_path_or_method_is_refused() {
    let runtime = builder().build().unwrap();
    let page = serve(&runtime);
    let to = page.local_addr();
    for path in [
        "/x",
        "/top.js/",
        "//",
        "/../etc/passwd",
        "/task/",
        "/task/0x7",
        "/stall/0",
    ] {
        let answer = get(to, path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.header("content-security-policy").is_some());
    }
    for (method, path, allowed) in [
        ("POST", "/", "get, head"),
        ("PUT", "/tasks", "get, head"),
        ("OPTIONS", "/metrics", "get, head"),
        ("GET", "/waits", "post"),
        ("HEAD", "/recording/start", "post"),
        ("DELETE", "/recording/stop", "post"),
    ] {
        let answer = request(to, method, path);
        assert_eq!(answer.status, 405, "{method} {path}");
        assert_eq!(answer.header("allow"), Some(allowed));
    }
    // These have no effect and no body.
    for path in [
        "/events",
        "/tasks",
        "/metrics",
        "/dump",
        "/recording",
        "/task/1",
        "/stall/1",
    ] {
        let answer = request(to, "HEAD", path);
        assert_eq!((answer.status, &*answer.body), (200, ""), "{path}");
    }
}

#[test]
fn foreign_host_is_refused_and_a_named_one_is_not() {
    let runtime = builder().build().unwrap();
    let named = Builder::new()
        .runtime(runtime.handle())
        .host("shop.example");
    let page = named.serve("127.0.0.1:0").unwrap();
    let to = page.local_addr();
    let status = |head: &str| send(to, &format!("GET {head}")).status;
    assert_eq!(status("/ HTTP/1.1\r\nhost: evil.example"), 421);
    assert_eq!(status("/tasks HTTP/1.1\r\nhost: evil.example:80"), 421);
    assert_eq!(
        status("http://evil.example/ HTTP/1.1\r\nhost: localhost"),
        421
    );
    assert_eq!(status("/ HTTP/1.1\r\nhost: shop.example:8080"), 200);
    assert_eq!(status("/ HTTP/1.1\r\nhost: [::1]:1"), 200);
    assert_eq!(status("/ HTTP/1.1\r\nx: y"), 400);
    assert_eq!(
        status("/ HTTP/1.1\r\nhost: localhost\r\nhost: localhost"),
        400
    );
}

#[test]
fn page_of_another_site_cannot_post_or_read() {
    let runtime = builder().build().unwrap();
    let page = serve(&runtime);
    let to = page.local_addr();
    let post = |headers: &str| {
        let head = format!("POST /recording/start HTTP/1.1\r\nhost: {to}{headers}");
        send(to, &head).status
    };
    assert_eq!(post("\r\norigin: http://evil.example"), 403);
    assert_eq!(post("\r\norigin: null"), 403);
    assert_eq!(post("\r\nsec-fetch-site: cross-site"), 403);
    assert!(!runtime.handle().trace().is_on());
    assert_eq!(
        post(&format!(
            "\r\norigin: http://{to}\r\nsec-fetch-site: same-origin"
        )),
        200
    );
    assert!(runtime.handle().trace().is_on());
    let head = format!("GET /dump HTTP/1.1\r\nhost: {to}\r\nsec-fetch-site: cross-site");
    assert_eq!(send(to, &head).status, 403);
}

#[test]
fn token_is_demanded_and_moves_into_a_cookie() {
    let runtime = builder().build().unwrap();
    let guarded = Builder::new().runtime(runtime.handle()).token(TOKEN);
    assert!(!format!("{guarded:?}").contains(TOKEN));
    let page = guarded.serve("127.0.0.1:0").unwrap();
    let to = page.local_addr();
    // The page has no data, so that a link may open it without the cookie.
    assert_eq!(get(to, "/").status, 200);
    for path in ["/events", "/tasks", "/task/0x1", "/dump", "/metrics", "/x"] {
        let answer = get(to, path);
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(answer.header("www-authenticate"), Some("bearer"));
    }
    assert_eq!(get(to, "/?token=0123456789abcdeX").status, 401);
    let with = |header: &str| {
        let head = format!("GET /metrics HTTP/1.1\r\nhost: {to}\r\n{header}");
        send(to, &head).status
    };
    assert_eq!(with("authorization: Bearer 0123456789abcdeX"), 401);
    assert_eq!(with(&format!("authorization: Bearer {TOKEN}")), 200);
    let answer = get(to, &format!("/?token={TOKEN}"));
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
    let cookie = answer.header("set-cookie").unwrap();
    assert!(
        cookie.contains("httponly") && cookie.contains("samesite=strict"),
        "{cookie}"
    );
    let (cookie, _) = cookie.split_once(';').unwrap();
    assert_eq!(with(&format!("cookie: {cookie}")), 200);
    assert_eq!(with(&format!("cookie: {cookie}0")), 401);
}

#[test]
fn address_for_other_machines_needs_a_token() {
    let runtime = builder().build().unwrap();
    let builder = || Builder::new().runtime(runtime.handle());
    for address in ["0.0.0.0:0", "[::]:0"] {
        let error = builder().serve(address).unwrap_err();
        assert!(matches!(error, ServeError::NeedsToken(_)), "{error}");
        assert!(error.to_string().contains("needs a token"));
    }
    let page = builder().token(TOKEN).serve("0.0.0.0:0").unwrap();
    let to = ([127, 0, 0, 1], page.local_addr().port()).into();
    assert_eq!(get(to, "/tasks").status, 401);
    let error = builder().token("short").serve("127.0.0.1:0").unwrap_err();
    assert!(matches!(error, ServeError::BadToken));
    let error = selvedge_top::serve("127.0.0.1:0").unwrap_err();
    assert!(matches!(error, ServeError::NoRuntime(_)));
    let error = builder().serve(
        page.local_addr()
            .to_string()
            .replace("0.0.0.0", "127.0.0.1"),
    );
    assert!(matches!(error, Err(ServeError::Io(error)) if error.kind() == ErrorKind::AddrInUse));
    assert!(matches!(builder().serve("nowhere"), Err(ServeError::Io(_))));
}

/// Reads until the page ends the connection. The end may be a reset, but not the time limit.
fn read_to_cut(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        let kind = error.kind();
        assert!(
            !matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut),
            "{error}"
        );
    }
    bytes
}

/// Two clients read nothing of a dump that does not fit the buffers of their sockets. They keep
/// both places, until the page cuts them off after ten seconds.
#[test]
fn client_that_reads_nothing_keeps_a_place_till_cut_off() {
    const BYTES: usize = 64 << 20;
    let runtime = builder().build().unwrap();
    let page = serve(&runtime);
    let to = page.local_addr();
    for _ in 0..BYTES >> 18 {
        let named = task::Builder::new().name("x".repeat(1 << 18));
        drop(named.spawn_on(pending::<()>(), runtime.handle()));
    }
    let ask = || {
        let mut stream = connect(to);
        let head = format!("GET /dump HTTP/1.1\r\nhost: {to}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        read_until(&mut stream, "200 OK");
        stream
    };
    let mut stalled = [ask(), ask()];
    let third = get(to, "/dump");
    assert_eq!(
        (third.status, third.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(get(to, "/metrics").status, 200);
    while request(to, "POST", "/waits").status == 503 {
        thread::sleep(Duration::from_millis(100));
    }
    let read = stalled.each_mut().map(|stream| read_to_cut(stream).len());
    assert!(read.iter().any(|read| *read < BYTES), "{read:?}");
}

/// The page cuts a client off that does not end its head within ten seconds.
#[test]
fn slow_client_is_cut_off() {
    let runtime = builder().build().unwrap();
    let page = serve(&runtime);
    let mut stream = connect(page.local_addr());
    stream.write_all(b"GET / HTTP/1.1\r\nhost: loc").unwrap();
    let answer = read_to_cut(&mut stream);
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
    assert_eq!(get(page.local_addr(), "/").status, 200);
}

#[test]
fn head_that_is_too_long_is_refused() {
    let runtime = builder().build().unwrap();
    let page = serve(&runtime);
    let mut stream = connect(page.local_addr());
    let head = format!(
        "GET / HTTP/1.1\r\nhost: localhost\r\nx: {}",
        "x".repeat(64 << 10)
    );
    // The page may answer and close the connection before it has read all.
    let _ = stream.write_all(head.as_bytes());
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 431");
}

#[test]
fn connection_beyond_the_limit_waits_for_a_place() {
    let runtime = builder().build().unwrap();
    let page = serve(&runtime);
    let to = page.local_addr();
    let ask = || {
        let mut stream = connect(to);
        let head = format!("GET /top.css HTTP/1.1\r\nhost: {to}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let mut open: Vec<TcpStream> = (0..64).map(|_| ask()).collect();
    for stream in &mut open {
        read_until(stream, "200 OK");
    }
    let mut late = ask();
    // No answer within this time. On a busy machine there might be one later.
    late.set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let error = late.read(&mut [0]).unwrap_err();
    assert!(matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut
    ));
    late.set_read_timeout(Some(common::LIMIT)).unwrap();
    drop(open.pop());
    read_until(&mut late, "200 OK");
}

/// A page that is never read keeps its place, and no other client waits for it.
#[test]
fn open_pages_are_bounded_and_free_their_places() {
    let runtime = builder().build().unwrap();
    let page = serve(&runtime);
    let to = page.local_addr();
    let open = || {
        let mut stream = connect(to);
        let head = format!("GET /events HTTP/1.1\r\nhost: {to}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let answer = parse(&read_until(&mut stream, "\r\n\r\n"));
        (stream, answer.status)
    };
    let pages: Vec<_> = (0..16).map(|_| open()).collect();
    assert!(pages.iter().all(|(_, status)| *status == 200));
    assert_eq!(open().1, 503);
    assert_eq!(get(to, "/").status, 200);
    drop(pages);
    while open().1 != 200 {
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn drop_ends_open_pages_and_frees_the_port() {
    let runtime = builder().build().unwrap();
    let page = serve(&runtime);
    let to = page.local_addr();
    let mut stream = connect(to);
    let head = format!("GET /events HTTP/1.1\r\nhost: {to}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    read_until(&mut stream, "event: tick");
    drop(page);
    read_to_cut(&mut stream);
    let again = Builder::new().runtime(runtime.handle()).serve(to).unwrap();
    assert_eq!(get(again.local_addr(), "/").status, 200);
    // After the runtime's end the page still answers.
    drop(runtime);
    assert_eq!(get(again.local_addr(), "/metrics").status, 200);
    let tasks: Value = serde_json::from_str(&get(again.local_addr(), "/tasks").body).unwrap();
    assert_eq!(tasks["total"], 0);
}

#[test]
fn page_answers_while_all_workers_are_stuck() {
    let runtime = builder().on_stall(|_| {}).build().unwrap();
    let page = serve(&runtime);
    let to = page.local_addr();
    let (release, stuck) = mpsc::channel::<()>();
    let stuck = std::sync::Arc::new(std::sync::Mutex::new(stuck));
    for number in 0..2 {
        let stuck = stuck.clone();
        let named = task::Builder::new().name(format!("stuck {number}"));
        let wait = async move {
            let _ = stuck.lock().unwrap().recv();
        };
        drop(named.spawn_on(wait, runtime.handle()));
    }
    let executing = || {
        let answer = get(to, "/tasks?search=stuck+executing").body;
        serde_json::from_str::<Value>(&answer).unwrap()["matched"].clone()
    };
    while executing() != 2 {
        thread::sleep(Duration::from_millis(50));
    }
    assert!(
        get(to, "/metrics")
            .body
            .contains("selvedge_task_count{selvedge_runtime=\"main\"} 2")
    );
    assert!(
        get(to, "/dump")
            .body
            .contains("\"stuck 1\" of main, executing")
    );
    drop(release);
}

/// Reads the state as an open page does. Texts of the program are escaped.
#[test]
fn events_have_the_state_and_hostile_names_as_json() {
    let hostile = "</script>\n\ndata: \"x\\";
    let stalls = Stalls::new();
    let runtime = builder()
        .name(hostile)
        .on_stall(stalls.hook())
        .build()
        .unwrap();
    let scheduler = process_scheduler::Scheduler::builder().workers(1).build();
    let spawn = process_scheduler::Spawn::new().name(hostile);
    scheduler.spawn_with(spawn, |_: u8, _| ()).unwrap();
    let group = runtime.group(hostile).shares(7).build().unwrap();
    let page = Builder::new()
        .runtime(runtime.handle())
        .stalls(&stalls)
        .processes(hostile, &scheduler.handle())
        .serve("127.0.0.1:0")
        .unwrap();
    let to = page.local_addr();
    let named = task::Builder::new().name(hostile);
    drop(named.spawn_on(pending::<()>(), runtime.handle()));

    let mut stream = connect(to);
    let head = format!("GET /events HTTP/1.1\r\nhost: {to}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let text = read_until(&mut stream, "event: stalls");
    let data = text
        .split("\ndata: ")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    let tick: Value = serde_json::from_str(data).unwrap();
    assert_eq!(tick["name"], hostile);
    assert_eq!(tick["workers"].as_array().unwrap().len(), 2);
    let groups = tick["groups"].as_array().unwrap();
    let of_group = groups
        .iter()
        .find(|group| group["name"] == hostile)
        .unwrap();
    assert_eq!(of_group["shares"], 7);
    assert_eq!(tick["schedulers"][0]["rows"][0]["names"][0], hostile);
    let tasks: Value = serde_json::from_str(&get(to, "/tasks").body).unwrap();
    assert_eq!(tasks["rows"][0]["name"], hostile);
    let metrics = get(to, "/metrics").body;
    let label = "{selvedge_runtime=\"</script>\\n\\ndata: \\\"x\\\\\"";
    assert!(metrics.contains(label), "{metrics}");
    drop(group);
}

/// With the stacks of the feature `backtrace`, on Linux.
#[test]
fn stack_of_a_task_has_the_functions_that_await() {
    async fn waits_for_the_answer(answer: selvedge::sync::oneshot::Receiver<u8>) {
        let _ = answer.await;
    }
    let runtime = builder().build().unwrap();
    let page = serve(&runtime);
    let to = page.local_addr();
    let (answer, question) = selvedge::sync::oneshot::channel();
    let named = task::Builder::new().name("asks");
    let task = named.spawn_on(waits_for_the_answer(question), runtime.handle());
    let path = format!("/task/{}", task.id());
    let stack = loop {
        let stack = get(to, &path).body;
        if stack.contains("awaits") {
            break stack;
        }
    };
    assert!(stack.contains("\"asks\" of main, waiting"), "{stack}");
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let is_here = |line: &str| line.starts_with("    ") && line.contains("tests/http.rs:");
        assert!(stack.lines().any(is_here), "{stack}");
    }
    let known = request(to, "POST", "/waits").body;
    assert_eq!(known, "{\"known\":1,\"cycles\":[]}");
    let row = || {
        let tasks: Value = serde_json::from_str(&get(to, "/tasks").body).unwrap();
        tasks["rows"][0].clone()
    };
    assert!(row()["waits"].is_string(), "{}", row());
    answer.send(1).unwrap();
    runtime.block_on(task).unwrap();
    assert_eq!(get(to, &path).status, 404);
}

#[test]
fn runtime_without_a_list_says_how_to_get_one() {
    let runtime = selvedge::Builder::new().workers(1).build().unwrap();
    let page = serve(&runtime);
    let to = page.local_addr();
    for (method, path) in [("GET", "/tasks"), ("GET", "/dump"), ("POST", "/waits")] {
        let answer = request(to, method, path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(
            answer.body.contains("list_tasks"),
            "{path}: {}",
            answer.body
        );
    }
    assert_eq!(get(to, "/task/0x1").status, 404);
}

#[test]
fn stall_is_sent_to_an_open_page_with_its_report() {
    let stalls = Stalls::new();
    let runtime = builder().on_stall(stalls.hook()).build().unwrap();
    let builder = Builder::new().runtime(runtime.handle());
    let page = builder.stalls(&stalls).serve("127.0.0.1:0").unwrap();
    let to = page.local_addr();
    let mut stream = connect(to);
    let head = format!("GET /events HTTP/1.1\r\nhost: {to}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    read_until(&mut stream, "\"count\":0");
    let (release, blocked) = mpsc::channel::<()>();
    let named = task::Builder::new().name("blocks");
    let blocks = async move {
        let _ = blocked.recv();
    };
    drop(named.spawn_on(blocks, runtime.handle()));
    let text = read_until(&mut stream, "\"number\":0");
    assert!(text.contains("event: stalls"), "{text}");
    let report = get(to, "/stall/0").body;
    assert!(report.contains("\"blocks\""), "{report}");
    drop(release);
    assert_eq!(get(to, "/stall/12345").status, 404);
    assert_eq!(get(to, "/stall/x").status, 404);
}

#[test]
fn recording_is_started_stopped_and_fetched() {
    let runtime = builder().build().unwrap();
    let page = serve(&runtime);
    let to = page.local_addr();
    let tracer = runtime.handle().trace();
    assert_eq!(
        request(to, "POST", "/recording/start").body,
        "{\"recording\":true}"
    );
    let named = task::Builder::new().name("recorded <b>");
    runtime
        .block_on(named.spawn_on(async {}, runtime.handle()))
        .unwrap();
    assert_eq!(
        request(to, "POST", "/recording/stop").body,
        "{\"recording\":false}"
    );
    assert!(!tracer.is_on());
    let json = get(to, "/recording");
    let disposition = json.header("content-disposition").unwrap();
    assert!(disposition.contains("selvedge-trace.json"), "{disposition}");
    let parsed: Value = serde_json::from_str(&json.body).unwrap();
    assert!(parsed.to_string().contains("recorded <b>"));
    let shown = get(to, "/recording/page");
    let policy = shown.header("content-security-policy").unwrap();
    assert!(policy.starts_with("sandbox allow-scripts;"), "{policy}");
    assert!(shown.body.starts_with("<!doctype html>"));
    assert!(!shown.body.contains("recorded <b>"));
}
