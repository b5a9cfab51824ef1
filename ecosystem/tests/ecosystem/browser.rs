//! The page of `axum_app` in a browser: a message goes through the page's WebSocket and back.
//!
//! The test speaks to the browser by its debugging protocol, over tokio-tungstenite.
use crate::{
    http::request,
    program::{Folder, LIMIT, Server, start_tool},
};
use futures_util::{SinkExt, StreamExt};
use selvedge::net::TcpStream;
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};

/// Types a message into the page, and returns the page's text when an echo appears there.
const TYPE: &str = "(async () => {
    const closed = new Promise((_, fail) =>
        socket.readyState > 1 ? fail('closed') : socket.onclose = () => fail('closed'));
    const opened = new Promise(done => socket.readyState ? done() : socket.onopen = done);
    await Promise.race([opened, closed]);
    const echoed = new Promise(done => new MutationObserver(done).observe(
        echoes, { childList: true }));
    message.value = 'typed into the page';
    message.dispatchEvent(new Event('change'));
    await Promise.race([echoed, closed]);
    return echoes.textContent;
})()";

/// A headless browser.
struct Browser {
    child: Child,
    /// The lines that it logs. They end with its last process.
    log: mpsc::Receiver<String>,
    /// The address of its debugging protocol.
    address: String,
    /// All its files. Dropped, and so removed, after the browser has ended.
    _folder: Folder,
}

impl Browser {
    /// Starts a browser, or returns `None` if none is installed and nothing demands one.
    fn start() -> Option<Self> {
        let folder = Folder::new("browser");
        let mut chromium = Command::new("chromium");
        chromium
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--no-proxy-server",
                "--remote-debugging-port=0",
            ])
            .arg(format!("--user-data-dir={}", folder.0.display()))
            .arg("about:blank")
            .envs(["HOME", "TMPDIR"].map(|name| (name, &folder.0)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = start_tool(&mut chromium)?;
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (to, log) = mpsc::channel();
        // A pipe that nobody reads would stop the browser.
        thread::spawn(move || {
            for line in errors.split(b'\n').map_while(Result::ok) {
                let _ = to.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        let mut browser = Self {
            child,
            log,
            address: String::new(),
            _folder: folder,
        };
        let mut said = Vec::new();
        while browser.address.is_empty() {
            let line = browser.log.recv_timeout(LIMIT);
            let line = line.unwrap_or_else(|error| panic!("{error}; the browser said {said:?}"));
            let rest = line.strip_prefix("DevTools listening on ws://");
            if let Some((address, _)) = rest.and_then(|rest| rest.split_once('/')) {
                browser.address = address.to_owned();
            }
            said.push(line);
        }
        Some(browser)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Its other processes end by themselves, and may write files until then.
        while self.log.recv_timeout(LIMIT).is_ok() {}
    }
}

/// A tab of the browser.
struct Tab(WebSocketStream<TcpStream>);

impl Tab {
    async fn open(browser: &Browser, target: &str) -> Self {
        let stream = TcpStream::connect(&*browser.address).await.unwrap();
        Self(client_async(target, stream).await.unwrap().0)
    }

    async fn send(&mut self, id: u32, method: &str, parameters: &str) {
        let text = format!(r#"{{"id":{id},"method":"{method}","params":{parameters}}}"#);
        self.0.send(Message::text(text)).await.unwrap();
    }

    /// Returns the next message, an answer or an event, that begins so and contains `part`.
    /// Those before it are thrown away.
    async fn message(&mut self, begin: &str, part: &str) -> String {
        loop {
            let message = self.0.next().await.expect("the browser is there").unwrap();
            let text = message.into_text().unwrap();
            if text.starts_with(begin) && text.contains(part) {
                return text.to_string();
            }
        }
    }
}

/// Fails if the page's script has an error, or if a browser's handshake or frames are refused.
///
/// `SELVEDGE_TOOLS=1` makes a missing browser an error. To install one on Debian:
/// `apt-get install chromium`.
#[test]
fn message_typed_into_the_page_is_echoed_there() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let server = Server::start(env!("CARGO_BIN_EXE_axum_app"), &["127.0.0.1:0"]);
    let new = format!("http://{}/json/new?about:blank", browser.address);
    let (_, tab) = request("PUT", &new);
    let target = tab.split_once(r#""webSocketDebuggerUrl": ""#);
    let target = target.and_then(|(_, rest)| rest.split_once('"'));
    let (target, _) = target.unwrap_or_else(|| panic!("no address of the tab: {tab}"));

    let runtime = selvedge::Builder::new().workers(1).build().unwrap();
    let page = server.url("/");
    let typed = async {
        let mut tab = Tab::open(&browser, target).await;
        tab.send(1, "Page.enable", "{}").await;
        tab.message(r#"{"id":1,"#, "").await;
        tab.send(2, "Page.navigate", &format!(r#"{{"url":"{page}"}}"#))
            .await;
        // The answer may come before, between or after these two. The empty page may load, too.
        tab.message(r#"{"method":"Page.frameNavigated""#, &page)
            .await;
        tab.message(r#"{"method":"Page.loadEventFired""#, "").await;
        let expression = TYPE.replace('\n', " ");
        let parameters = format!(r#"{{"expression":"{expression}","awaitPromise":true}}"#);
        tab.send(3, "Runtime.evaluate", &parameters).await;
        tab.message(r#"{"id":3,"#, "").await
    };
    let answer = runtime.block_on(selvedge::time::timeout(LIMIT, typed));
    let answer = answer.expect("the page answers");
    let expected = r#""value":"typed into the page\n""#;
    assert!(answer.contains(expected), "{answer}");
    drop(browser);
    server.stop();
}
