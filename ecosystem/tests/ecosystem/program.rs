//! A program under test, and the tools that speak to it.
use std::{
    env, fs,
    io::{self, BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{self, Child, Command, Output, Stdio},
    time::Duration,
};

/// How long a program or a tool may take: a machine may be busy.
pub const LIMIT: Duration = Duration::from_secs(600);

/// A folder for a test, which is removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    /// Makes an empty folder. The tests of a process need different names.
    pub fn new(name: &str) -> Self {
        let name = format!("selvedge-{name}-{}", process::id());
        let folder = Self(env::temp_dir().join(name));
        // A process of the same id may have been killed.
        let _ = fs::remove_dir_all(&folder.0);
        fs::create_dir(&folder.0).unwrap();
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server that was started, and that is stopped by Ctrl-C.
pub struct Server {
    child: Child,
    /// It is kept open: a program that prints into a closed pipe ends.
    output: BufReader<std::process::ChildStdout>,
    pub address: String,
}

impl Server {
    /// Starts the program, and waits until it says where it listens.
    pub fn start(program: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        // From here on, a panic ends the program.
        let mut server = Self {
            child,
            output,
            address: String::new(),
        };
        let mut line = String::new();
        server.output.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listens on ");
        server.address = address.expect("the program says where it listens").into();
        server
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGINT, and expects that the program ends without an error.
    pub fn stop(mut self) {
        let kill = format!("kill -INT {}", self.child.id());
        assert!(
            Command::new("sh")
                .args(["-c", &kill])
                .status()
                .unwrap()
                .success()
        );
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

/// A test that fails leaves no program behind.
impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program of the package to its end.
pub fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

pub fn stdout(output: &Output) -> &str {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    str::from_utf8(&output.stdout).unwrap()
}

/// Runs a tool that may be missing, and returns what it prints; `None` if it is missing and
/// nothing demands it.
pub fn tool(name: &str, arguments: &[&str]) -> Option<String> {
    let mut tool = Command::new(name);
    tool.args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = start_tool(&mut tool)?;
    Some(stdout(&child.wait_with_output().unwrap()).to_owned())
}

/// Starts a tool that may be missing; `None` if it is missing and nothing demands it.
pub fn start_tool(tool: &mut Command) -> Option<Child> {
    let name = tool.get_program().display().to_string();
    match tool.stdin(Stdio::null()).spawn() {
        Ok(child) => Some(child),
        Err(error) if env::var_os("SELVEDGE_TOOLS").is_some_and(|value| value == "1") => {
            panic!("SELVEDGE_TOOLS=1 demands {name}, which does not start: {error}")
        }
        Err(error) => {
            // Not by `eprintln`, which the test's harness would hide.
            let _ = writeln!(io::stderr(), "not run: {name}: {error}");
            None
        }
    }
}

/// Runs curl, and compares what it prints.
#[track_caller]
pub fn expect_curl(arguments: &[&str], expected: &str) {
    if let Some(page) = tool("curl", &[&["-sS", "--max-time", "600"], arguments].concat()) {
        assert_eq!(page, expected);
    }
}

/// Each program, with arguments that are wrong, says so in a line and exits with 2; `--help` shows
/// what is right.
#[test]
fn wrong_arguments_exit_with_2_and_show_the_help() {
    for (program, wrong) in [
        (env!("CARGO_BIN_EXE_axum_app"), "-x"),
        (env!("CARGO_BIN_EXE_grpc"), "sing"),
        (env!("CARGO_BIN_EXE_http_client"), "--cacert"),
        (env!("CARGO_BIN_EXE_sqlx"), "-x"),
        (env!("CARGO_BIN_EXE_static_files"), "-x"),
        (env!("CARGO_BIN_EXE_tls"), "-x"),
        (env!("CARGO_BIN_EXE_tower"), "-x"),
        (env!("CARGO_BIN_EXE_websocket"), "-x"),
    ] {
        let output = run(program, &[wrong]);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{program}: {errors}");
        let help = run(program, &["--help"]);
        let help = stdout(&help);
        assert!(help.contains("\nUsage: "), "{program}: {help}");
        assert!(
            errors.starts_with("error: ") && errors.ends_with(help),
            "{program}: {errors}"
        );
    }
}
