//! Headless Chromium, driven by its debugging protocol over two pipes.
use serde_json::{Value, json};
use std::{
    env, fs,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
};

/// The names that a browser's program may have.
const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome", "chrome"];

/// The options, and the pipes of the protocol: it reads its descriptor 3 and writes to 4.
const START: &str = "exec \"$0\" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
                     --no-first-run --no-proxy-server --hide-scrollbars --remote-debugging-pipe \
                     --user-data-dir=\"$1\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1";

/// A headless browser with one tab.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: mpsc::Receiver<Value>,
    last: u64,
    session: Value,
    /// The messages of the page's console, and its errors.
    pub console: Vec<String>,
    /// The events that were received while another one was awaited.
    events: Vec<Value>,
    folder: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser, or returns `None` if none is installed and nothing demands one.
    pub fn start() -> Option<Self> {
        let is_installed = |name: &&&str| {
            let mut version = Command::new(name);
            let version = version.arg("--version").stdout(Stdio::null());
            version.stderr(Stdio::null()).status().is_ok()
        };
        let Some(name) = NAMES.iter().find(is_installed) else {
            let demanded = env::var_os("SELVEDGE_TOOLS").is_some_and(|value| value == "1");
            assert!(!demanded, "SELVEDGE_TOOLS=1 demands a browser: {NAMES:?}");
            // Not by `eprintln`, which the test's harness would hide.
            let _ = writeln!(io::stderr(), "not run: none of {NAMES:?}");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", START, name])
            .arg(folder.path().join("profile"))
            .envs(["HOME", "TMPDIR"].map(|name| (name, folder.path())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (messages, from) = mpsc::channel();
        thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                let _ = messages.send(serde_json::from_slice(&message).unwrap());
            }
        });
        let to = child.stdin.take().unwrap();
        let mut browser = Self {
            child,
            to,
            from,
            last: 0,
            session: Value::Null,
            console: Vec::new(),
            events: Vec::new(),
            folder,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", attach)["sessionId"].take();
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Calls a method of the protocol, and returns its result.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let id = self.last;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if self.session.is_string() {
            message["sessionId"] = self.session.clone();
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let mut answer = self.receive();
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    fn receive(&mut self) -> Value {
        let message = self.from.recv_timeout(super::LIMIT).unwrap();
        let parameters = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Runtime.consoleAPICalled" => self.console.push(parameters["args"].to_string()),
            "Runtime.exceptionThrown" => self.console.push(parameters.to_string()),
            "Log.entryAdded" => self.console.push(parameters["entry"].to_string()),
            _ => {}
        }
        message
    }

    /// Waits for an event. Returns its parameters.
    pub fn event(&mut self, method: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let is_it = |event: &Value| event["method"] == method && is_it(&event["params"]);
        if let Some(at) = self.events.iter().position(is_it) {
            return self.events.remove(at)["params"].take();
        }
        loop {
            let mut event = self.receive();
            if is_it(&event) {
                return event["params"].take();
            }
            self.events.push(event);
        }
    }

    /// Opens a page, and waits until it is loaded.
    pub fn open(&mut self, url: &str) {
        self.events.clear();
        self.call("Page.navigate", json!({ "url": url }));
        self.event("Page.loadEventFired", |_| true);
    }

    /// Returns the value of an expression, also if it is a promise's.
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true,
        });
        let mut result = self.call("Runtime.evaluate", parameters);
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {result}"
        );
        result["result"]["value"].take()
    }

    /// Waits until an expression is true. After the time limit, fails with the page's text.
    pub fn until(&mut self, expression: &str) {
        // Before the answer itself is overdue.
        let limit = super::LIMIT.as_millis() / 2;
        let wait = format!(
            "new Promise(done => {{ \
               const end = Date.now() + {limit}; \
               const look = () => ({expression}) ? done('') \
                 : Date.now() > end ? done(document.body.innerText) : setTimeout(look, 20); \
               look(); \
             }})"
        );
        let text = self.value(&wait);
        assert_eq!(text, "", "never: {expression}");
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            "ArrowUp" => (38, ""),
            "ArrowDown" => (40, ""),
            "ArrowRight" => (39, ""),
            "End" => (35, ""),
            "Home" => (36, ""),
            key => (0, key),
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event = json!({
                "type": kind, "key": key, "windowsVirtualKeyCode": code, "text": text,
            });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Presses or releases the mouse at the middle of an element.
    pub fn mouse(&mut self, kind: &str, selector: &str) {
        let at = self.value(&format!(
            "(box => [box.x + box.width / 2, box.y + box.height / 2]) \
             (document.querySelector('{selector}').getBoundingClientRect())"
        ));
        let event = json!({
            "type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1,
        });
        self.call("Input.dispatchMouseEvent", event);
    }

    /// Types a text.
    pub fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Sets the size of the window, and the scheme of its colours.
    pub fn look_like(&mut self, (width, height): (u32, u32), scheme: &str) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 640,
        });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": scheme }));
    }

    /// Saves a picture of the window.
    pub fn picture(&mut self, path: &Path) {
        let mut picture = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let data = picture["data"].take();
        fs::write(path, decode(data.as_str().unwrap())).unwrap();
    }

    /// Does what starts a download. Returns the downloaded file.
    pub fn download(&mut self, start: &str) -> PathBuf {
        let folder = self.folder.path().join("downloads");
        let allow = json!({
            "behavior": "allow", "downloadPath": folder, "eventsEnabled": true,
        });
        self.call("Browser.setDownloadBehavior", allow);
        self.value(start);
        let begun = self.event("Browser.downloadWillBegin", |_| true);
        let name = begun["suggestedFilename"].as_str().unwrap().to_owned();
        self.event("Browser.downloadProgress", |event| {
            event["state"] == "completed"
        });
        folder.join(name)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Its other processes end by themselves, and may write files until then.
        while self.from.recv_timeout(super::LIMIT).is_ok() {}
    }
}

/// Decodes base64.
fn decode(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let digit = DIGITS.iter().position(|digit| *digit == byte).unwrap();
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
