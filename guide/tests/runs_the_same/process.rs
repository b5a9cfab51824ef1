//! Children: other programs.

macro_rules! program {
    ($module:ident, $rt:ident) => {
        mod $module {
            use std::{io, os::fd::OwnedFd, path::Path, process::Stdio};
            use $rt::io::{AsyncReadExt, AsyncWriteExt};

            type Log = Vec<String>;

            fn shell(script: &str) -> $rt::process::Command {
                let mut command: $rt::process::Command = $rt::process::Command::new("sh");
                $rt::process::Command::args(&mut command, ["-c", script]);
                command
            }

            async fn commands(log: &mut Log, at: &Path) -> io::Result<()> {
                let output = $rt::process::Command::output(&mut shell("echo out; exit 3")).await?;
                log!(log, output.status.code(), output.stdout);
                let mut command = shell("printf \"$0 $A$B$C\"; pwd");
                $rt::process::Command::arg(&mut command, "zero");
                $rt::process::Command::env_clear(&mut command);
                $rt::process::Command::env(&mut command, "A", "a");
                $rt::process::Command::envs(&mut command, [("B", "b"), ("C", "c")]);
                $rt::process::Command::env_remove(&mut command, "C");
                $rt::process::Command::current_dir(&mut command, "/");
                let output = command.output().await?;
                log!(log, String::from_utf8_lossy(&output.stdout));
                log!(
                    log,
                    $rt::process::Command::status(&mut shell("exit 4"))
                        .await?
                        .code()
                );

                let mut command = shell("exit 0");
                $rt::process::Command::kill_on_drop(&mut command, true);
                log!(log, $rt::process::Command::get_kill_on_drop(&command));
                let std: &std::process::Command = $rt::process::Command::as_std(&command);
                log!(log, std.get_program());
                $rt::process::Command::as_std_mut(&mut command).env("D", "d");
                let std = $rt::process::Command::into_std(command);
                log!(log, std.get_envs().count());

                let (uid, gid) = {
                    use std::os::unix::fs::MetadataExt;
                    let own = std::fs::metadata(at)?;
                    (own.uid(), own.gid())
                };
                let mut command = shell("exit 5");
                $rt::process::Command::arg0(&mut command, "renamed");
                $rt::process::Command::uid(&mut command, uid);
                $rt::process::Command::gid(&mut command, gid);
                $rt::process::Command::process_group(&mut command, 0);
                // SAFETY: the hook does nothing.
                unsafe { $rt::process::Command::pre_exec(&mut command, || Ok(())) };
                log!(log, command.status().await?.code());
                Ok(())
            }

            async fn children(log: &mut Log) -> io::Result<()> {
                let mut command = shell("cat; echo err >&2");
                $rt::process::Command::stdin(&mut command, Stdio::piped());
                $rt::process::Command::stdout(&mut command, Stdio::piped());
                $rt::process::Command::stderr(&mut command, Stdio::piped());
                let mut child: $rt::process::Child = $rt::process::Command::spawn(&mut command)?;
                log!(log, $rt::process::Child::id(&child).is_some());
                let mut stdin: $rt::process::ChildStdin = child.stdin.take().unwrap();
                stdin.write_all(b"in").await?;
                drop(stdin);
                let mut stdout: $rt::process::ChildStdout = child.stdout.take().unwrap();
                let mut stderr: $rt::process::ChildStderr = child.stderr.take().unwrap();
                let (mut out, mut err) = (String::new(), String::new());
                stdout.read_to_string(&mut out).await?;
                stderr.read_to_string(&mut err).await?;
                log!(
                    log,
                    out,
                    err,
                    $rt::process::Child::wait(&mut child).await?.code()
                );
                log!(log, $rt::process::Child::id(&child));
                log!(
                    log,
                    $rt::process::Child::try_wait(&mut child)?.and_then(|end| end.code())
                );

                let mut command = shell("echo all");
                let child = command.stdout(Stdio::piped()).spawn()?;
                let output = $rt::process::Child::wait_with_output(child).await?;
                log!(log, output.stdout);
                let mut child = shell("exec sleep 1000").spawn()?;
                log!(log, $rt::process::Child::try_wait(&mut child)?.is_none());
                $rt::process::Child::start_kill(&mut child)?;
                log!(log, child.wait().await?.code());
                let mut child = shell("exec sleep 1000").spawn()?;
                $rt::process::Child::kill(&mut child).await?;
                log!(log, child.wait().await?.success());
                Ok(())
            }

            async fn pipes(log: &mut Log) -> io::Result<()> {
                let mut command = std::process::Command::new("cat");
                command
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped());
                let mut child = command.spawn()?;
                let stdin = child.stdin.take().unwrap();
                let mut stdin = $rt::process::ChildStdin::from_std(stdin)?;
                let stdout = child.stdout.take().unwrap();
                let mut stdout = $rt::process::ChildStdout::from_std(stdout)?;
                let stderr = child.stderr.take().unwrap();
                let stderr = $rt::process::ChildStderr::from_std(stderr)?;
                stdin.write_all(b"abc").await?;
                let mut to = [0; 3];
                stdout.read_exact(&mut to).await?;
                let _: OwnedFd = $rt::process::ChildStdout::into_owned_fd(stdout)?;
                let _: OwnedFd = $rt::process::ChildStderr::into_owned_fd(stderr)?;
                drop($rt::process::ChildStdin::into_owned_fd(stdin)?);
                log!(log, to, child.wait()?.success());
                Ok(())
            }

            pub fn run() -> Vec<String> {
                let mut builder = $rt::runtime::Builder::new_current_thread();
                let runtime = builder.enable_all().build().unwrap();
                let folder = tempfile::tempdir().unwrap();
                let (mut log, at) = (Vec::new(), folder.path());
                runtime
                    .block_on(async {
                        commands(&mut log, at).await?;
                        children(&mut log).await?;
                        pipes(&mut log).await
                    })
                    .unwrap();
                log
            }
        }
    };
}

program!(theirs, tokio);
program!(ours, selvedge);

#[test]
fn process_runs_the_same() {
    super::assert_same(&theirs::run(), &ours::run());
}
