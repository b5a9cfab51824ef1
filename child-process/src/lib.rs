#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg(all(unix, not(any(selvedge_loom, selvedge_shuttle))))]
use std::{
    ffi::OsStr,
    fmt,
    future::Future,
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{self as std_process, ExitStatus, Output, Stdio},
};

mod child;
mod exit;
mod orphans;
mod stdio;
#[cfg(test)]
mod tests;

pub use child::Child;
pub use stdio::{ChildStderr, ChildStdin, ChildStdout};

/// A program to be run, as [`std::process::Command`].
///
/// ```
/// use child_process::Command;
/// use std::process::Stdio;
///
/// let mut park = net_driver::Driver::new(1).park(0);
/// park.block_on(async {
///     let mut command = Command::new("sh");
///     command.args(["-c", "echo $ONE$TWO"]).env("ONE", "1").envs([("TWO", "2")]);
///     command.env_remove("HOME").current_dir("/").stdin(Stdio::null());
///     assert_eq!(command.output().await?.stdout, b"12\n");
///
///     let mut command = Command::new("sleep");
///     command.arg("1000").env_clear().env("PATH", "/usr/bin:/bin").process_group(0);
///     command.arg0("nap").kill_on_drop(true).stdout(Stdio::null()).stderr(Stdio::null());
///     assert!(command.get_kill_on_drop());
///     let child = command.spawn()?;
///     drop(child); // It is killed.
///
///     let status = Command::new("true").status().await?;
///     assert!(status.success());
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
pub struct Command {
    std: std_process::Command,
    kill_on_drop: bool,
}

impl Command {
    /// Returns a command without arguments, with the environment, the directory and the standard
    /// streams of this process.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self::from(std_process::Command::new(program))
    }

    /// Returns std's command.
    ///
    /// ```
    /// let mut command = child_process::Command::new("ls");
    /// command.as_std_mut().arg("-l");
    /// assert_eq!(command.as_std().get_args().len(), 1);
    /// assert_eq!(command.into_std().get_program(), "ls");
    /// ```
    pub fn as_std(&self) -> &std_process::Command {
        &self.std
    }

    /// Returns std's command.
    ///
    /// ```
    /// child_process::Command::new("ls").as_std_mut().arg("-l");
    /// ```
    pub fn as_std_mut(&mut self) -> &mut std_process::Command {
        &mut self.std
    }

    /// Returns std's command. The setting of [`kill_on_drop`](Self::kill_on_drop) is lost.
    ///
    /// ```
    /// assert_eq!(child_process::Command::new("ls").into_std().get_program(), "ls");
    /// ```
    pub fn into_std(self) -> std_process::Command {
        self.std
    }

    /// Adds an argument.
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.std.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(&mut self, args: impl IntoIterator<Item = S>) -> &mut Self {
        self.std.args(args);
        self
    }

    /// Sets a variable of the child's environment.
    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.std.env(key, value);
        self
    }

    /// Sets variables of the child's environment.
    pub fn envs<K: AsRef<OsStr>, V: AsRef<OsStr>>(
        &mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> &mut Self {
        self.std.envs(variables);
        self
    }

    /// Removes a variable from the child's environment.
    pub fn env_remove(&mut self, key: impl AsRef<OsStr>) -> &mut Self {
        self.std.env_remove(key);
        self
    }

    /// Empties the child's environment.
    pub fn env_clear(&mut self) -> &mut Self {
        self.std.env_clear();
        self
    }

    /// Sets the child's directory.
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Self {
        self.std.current_dir(directory);
        self
    }

    /// Sets the child's standard input: inherited, unless it is set.
    pub fn stdin(&mut self, from: impl Into<Stdio>) -> &mut Self {
        self.std.stdin(from);
        self
    }

    /// Sets the child's standard output: inherited, unless it is set. [`output`](Self::output)
    /// makes it a pipe.
    pub fn stdout(&mut self, to: impl Into<Stdio>) -> &mut Self {
        self.std.stdout(to);
        self
    }

    /// Sets the child's standard error: inherited, unless it is set. [`output`](Self::output)
    /// makes it a pipe.
    pub fn stderr(&mut self, to: impl Into<Stdio>) -> &mut Self {
        self.std.stderr(to);
        self
    }

    /// Sets whether the drop of a [`Child`], or of the future of [`status`](Self::status) or
    /// [`output`](Self::output), kills the child if it has not ended. Off at first.
    pub fn kill_on_drop(&mut self, on: bool) -> &mut Self {
        self.kill_on_drop = on;
        self
    }

    /// Returns the setting of [`kill_on_drop`](Self::kill_on_drop).
    pub fn get_kill_on_drop(&self) -> bool {
        self.kill_on_drop
    }

    /// Sets the child's user.
    ///
    /// ```
    /// child_process::Command::new("ls").uid(1000).gid(1000);
    /// ```
    pub fn uid(&mut self, id: u32) -> &mut Self {
        self.std.uid(id);
        self
    }

    /// Sets the child's group.
    ///
    /// ```
    /// child_process::Command::new("ls").uid(1000).gid(1000);
    /// ```
    pub fn gid(&mut self, id: u32) -> &mut Self {
        self.std.gid(id);
        self
    }

    /// Sets the program's name as the child sees it.
    pub fn arg0(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.std.arg0(arg);
        self
    }

    /// Puts the child into a group of processes. 0 makes a new group, which the child leads.
    pub fn process_group(&mut self, group: i32) -> &mut Self {
        self.std.process_group(group);
        self
    }

    /// Runs `hook` in the child, between `fork` and `exec`.
    ///
    /// ```
    /// let mut command = child_process::Command::new("true");
    /// // SAFETY: the hook does nothing.
    /// unsafe { command.pre_exec(|| Ok(())) };
    /// # let mut park = net_driver::Driver::new(1).park(0);
    /// assert!(park.block_on(async { command.status().await })?.success());
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Safety
    /// The rules of std's `CommandExt::pre_exec` hold. The child has one thread, and a lock (that
    /// of the allocator, say) may be held forever. The hook may call only functions that a signal
    /// handler may call.
    pub unsafe fn pre_exec(
        &mut self,
        hook: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
    ) -> &mut Self {
        // SAFETY: the caller vouches for the hook.
        unsafe { self.std.pre_exec(hook) };
        self
    }

    /// Starts the program.
    ///
    /// The calling thread waits until the child has called `exec`; that takes about a millisecond.
    ///
    /// # Errors
    /// If the program cannot be started, or there is no descriptor for its pipes, or the driver has
    /// shut down. After an error no child is left running.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn spawn(&mut self) -> io::Result<Child> {
        child::check_driver();
        Child::new(self.std.spawn()?, self.kill_on_drop)
    }

    /// Starts the program, and returns a future that waits for its end.
    ///
    /// Standard streams that were set to pipes are closed at once. A drop of the future leaves the
    /// child running, unless [`kill_on_drop`](Self::kill_on_drop) is set.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) and [`Child::wait`].
    ///
    /// # Panics
    /// Without a current driver, at once.
    #[track_caller]
    pub fn status(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + use<> {
        let mut child = self.spawn();
        if let Ok(child) = &mut child {
            (child.stdin, child.stdout, child.stderr) = (None, None, None);
        }
        async { child?.wait().await }
    }

    /// Starts the program, and returns a future that waits for its end and for the end of its
    /// standard output and error, which become pipes.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) and [`Child::wait_with_output`].
    ///
    /// # Panics
    /// Without a current driver, at once.
    #[track_caller]
    pub fn output(&mut self) -> impl Future<Output = io::Result<Output>> + use<> {
        self.std.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.spawn();
        async { child?.wait_with_output().await }
    }
}

impl From<std_process::Command> for Command {
    fn from(std: std_process::Command) -> Self {
        let kill_on_drop = false;
        Self { std, kill_on_drop }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.std.fmt(f)
    }
}
