use super::{
    exit::Exit,
    orphans,
    stdio::{self, ChildStderr, ChildStdin, ChildStdout},
};
use net_driver::Driver;
use std::{
    fmt,
    future::{Future, poll_fn},
    io,
    pin::pin,
    process::{self as std_process, ExitStatus, Output},
    task::{Context, Poll, ready},
};

/// A child.
///
/// ```
/// use child_process::{Child, Command};
/// use futures_lite::{AsyncReadExt, AsyncWriteExt};
/// use std::process::Stdio;
///
/// let mut park = net_driver::Driver::new(1).park(0);
/// park.block_on(async {
///     let mut command = Command::new("cat");
///     command.stdin(Stdio::piped()).stdout(Stdio::piped());
///     let mut child: Child = command.spawn()?;
///     println!("process {}", child.id().expect("it was not waited for"));
///     let mut stdin = child.stdin.take().expect("a pipe");
///     stdin.write_all(b"hello").await?;
///     drop(stdin); // `cat` reads the end.
///     let mut text = String::new();
///     child.stdout.take().expect("a pipe").read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     assert!(child.wait().await?.success());
///     assert!(child.try_wait()?.is_some());
///     assert_eq!(child.id(), None);
///
///     let mut child = command.spawn()?;
///     child.start_kill()?;
///     child.wait().await?;
///     let mut child = command.spawn()?;
///     child.kill().await?;
///
///     let child = command.arg("/dev/null").spawn()?;
///     assert_eq!(child.wait_with_output().await?.stdout, b"");
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Child {
    process: Process,
    /// The pipe to the child's standard input, if there is one.
    pub stdin: Option<ChildStdin>,
    /// The pipe from the child's standard output, if there is one.
    pub stdout: Option<ChildStdout>,
    /// The pipe from the child's standard error, if there is one.
    pub stderr: Option<ChildStderr>,
}

/// The child without its pipes. The drop gives the child to [`orphans`], unless a wait has returned
/// the child's status.
struct Process {
    /// `Some` until the drop.
    std: Option<std_process::Child>,
    exit: Exit,
    status: Option<ExitStatus>,
    kill_on_drop: bool,
}

/// Panics without a current driver, before there is a child.
#[track_caller]
pub(super) fn check_driver() {
    assert!(
        Driver::current().is_some(),
        "a child is spawned where a driver is current: in a task of a runtime that has one, in its \
         `block_on`, or where its handle was entered"
    );
}

impl Child {
    pub(super) fn new(mut std: std_process::Child, kill_on_drop: bool) -> io::Result<Self> {
        let pipes = (std.stdin.take(), std.stdout.take(), std.stderr.take());
        let id = std.id();
        let mut process = Process {
            std: Some(std),
            exit: Exit::by_thread(id),
            status: None,
            // True until the driver has the pipes and the descriptor, so that an error kills the
            // child.
            kill_on_drop: true,
        };
        process.exit = Exit::of(id)?;
        let stdin = pipes.0.map(ChildStdin::from_std).transpose()?;
        let stdout = pipes.1.map(ChildStdout::from_std).transpose()?;
        let stderr = pipes.2.map(ChildStderr::from_std).transpose()?;
        process.kill_on_drop = kill_on_drop;
        Ok(Self {
            process,
            stdin,
            stdout,
            stderr,
        })
    }

    /// Returns the child's process id, or `None` once a wait has returned the child's status:
    /// another process may have the id then.
    pub fn id(&self) -> Option<u32> {
        let running = self.process.status.is_none();
        self.process
            .std
            .as_ref()
            .filter(|_| running)
            .map(std_process::Child::id)
    }

    /// Sends `SIGKILL`, and does not wait for the end: call [`wait`](Self::wait) for that.
    ///
    /// Does nothing if a wait has returned the child's status: another process may have the child's
    /// id then.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn start_kill(&mut self) -> io::Result<()> {
        // std sends no signal once the child is reaped.
        self.process.std().kill()
    }

    /// Sends `SIGKILL`, and waits for the end.
    ///
    /// # Errors
    /// As [`start_kill`](Self::start_kill) and [`wait`](Self::wait).
    pub async fn kill(&mut self) -> io::Result<()> {
        self.start_kill()?;
        self.wait().await.map(drop)
    }

    /// Closes the pipe to the child's standard input, and waits for the child's end.
    ///
    /// A dropped future loses nothing: wait again. If a wait has returned the status, later waits
    /// return it again.
    ///
    /// If the driver in which the child was spawned has shut down, the wait moves to the driver
    /// that is current where it is polled. If none is current there, a thread waits.
    ///
    /// # Errors
    /// - If the child's driver has shut down, and the current one has shut down as well or cannot
    ///   get the descriptors that sockets need. A thread that waits needs no driver.
    /// - `ECHILD` if other code has reaped the child.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.stdin = None;
        poll_fn(|cx| self.process.poll_wait(cx)).await
    }

    /// Returns the child's status, or `None` while the child runs. Leaves the pipe to the child's
    /// standard input open.
    ///
    /// # Errors
    /// `ECHILD` if other code has reaped the child.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }

    /// Closes the pipe to the child's standard input. Waits for the child's end, and reads the
    /// pipes from its standard output and error, if there are any, to their ends.
    ///
    /// The future reads both pipes at the same time, so the child never waits for room in one of
    /// them. A pipe ends when the last process that has its writing end closes it: a child's own
    /// child may keep the pipe open.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), and those of a read: after the shutdown of the pipes' driver each
    /// read fails.
    pub async fn wait_with_output(mut self) -> io::Result<Output> {
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        let mut stdout = pin!(stdio::read_all(stdout.map(|end| end.0)));
        let mut stderr = pin!(stdio::read_all(stderr.map(|end| end.0)));
        let mut wait = pin!(self.wait());
        let (mut out, mut err, mut status) = (None, None, None);
        poll_fn(|cx| {
            let ended = poll_once(&mut out, |cx| stdout.as_mut().poll(cx), cx)?
                & poll_once(&mut err, |cx| stderr.as_mut().poll(cx), cx)?
                & poll_once(&mut status, |cx| wait.as_mut().poll(cx), cx)?;
            match ended {
                true => Poll::Ready(io::Result::Ok(())),
                false => Poll::Pending,
            }
        })
        .await?;
        let ended = "all three have ended";
        Ok(Output {
            status: status.expect(ended),
            stdout: out.expect(ended),
            stderr: err.expect(ended),
        })
    }
}

/// Polls a future, unless it has ended already. Returns whether it has ended by now.
fn poll_once<T>(
    ended: &mut Option<T>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<T>>,
    cx: &mut Context<'_>,
) -> io::Result<bool> {
    if ended.is_none() {
        if let Poll::Ready(result) = poll(cx) {
            *ended = Some(result?);
        }
    }
    Ok(ended.is_some())
}

impl Process {
    fn std(&mut self) -> &mut std_process::Child {
        self.std.as_mut().expect("only the drop takes it")
    }

    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_some() {
            return Ok(self.status);
        }
        let waited = self.std().try_wait();
        if !matches!(waited, Ok(None)) {
            // The child is reaped, here or by other code. No later wait needs the descriptor.
            drop(self.exit.take_pidfd());
        }
        self.status = waited?;
        Ok(self.status)
    }

    fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<ExitStatus>> {
        loop {
            if let Some(status) = self.try_wait()? {
                return Poll::Ready(Ok(status));
            }
            // `poll_event` takes the event. So either the child has ended before the next
            // `try_wait`, or its end brings another event.
            let child = self.exit.id();
            ready!(coop_budget::waits_as(
                || format!("the end of the child process {child}").into(),
                || self.exit.poll_event(cx)
            ))?;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(mut std) = self.std.take() else {
            return;
        };
        if self.status.is_some() {
            return;
        }
        if self.kill_on_drop {
            // The kill fails if the child has ended.
            let _ = std.kill();
        }
        orphans::adopt(std, self.exit.take_pidfd());
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("std", &self.std)
            .field("status", &self.status)
            .field("kill_on_drop", &self.kill_on_drop)
            .finish_non_exhaustive()
    }
}
