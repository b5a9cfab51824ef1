//! The servers that tests need. Each listens on the loopback interface, at a free port, and ends
//! with the command.
use anyhow::{Context, Result, bail, ensure};
use project::workspace::output_of;
use std::{
    collections::BTreeMap,
    fs::File,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The longest time that a server may take to listen, or to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// The servers that run.
pub(super) struct Servers {
    /// The folder of their data, which the user `postgres` can enter.
    folder: TempDir,
    running: BTreeMap<String, Server>,
}

struct Server {
    child: Child,
    port: u16,
}

impl Servers {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            folder: tempfile::Builder::new().prefix("facade-").tempdir()?,
            running: BTreeMap::new(),
        })
    }

    /// Starts a server, unless it runs: `redis`, or `redis@6379` where tests want that port.
    /// Returns its port, or `None` if it is not installed.
    pub(super) fn port(&mut self, server: &str) -> Result<Option<u16>> {
        if let Some(server) = self.running.get(server) {
            return Ok(Some(server.port));
        }
        let (name, port) = server.split_once('@').unwrap_or((server, "0"));
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse()?));
        let free = free.with_context(|| format!("port {port} for {name}"))?;
        let port = free.local_addr()?.port();
        drop(free);
        let folder = self.folder.path().join(server);
        std::fs::create_dir(&folder)?;
        let command = match name {
            "redis" => redis(&folder, port),
            "postgres" => postgres(&folder, port)?,
            _ => bail!("no server {name}"),
        };
        let Some(mut command) = command else {
            return Ok(None);
        };
        let log = File::create(self.folder.path().join(format!("{name}.log")))?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        end_with_parent(&mut command);
        let child = command.spawn().with_context(|| name.to_owned())?;
        let started = Server { child, port };
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            ensure!(begun.elapsed() < PATIENCE, "{name} does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        if name == "postgres" {
            create_users(port)?;
        }
        self.running.insert(server.to_owned(), started);
        Ok(Some(port))
    }
}

impl Drop for Server {
    /// Asks the server to end, and kills it if it takes too long.
    fn drop(&mut self) {
        #[cfg(unix)]
        // SAFETY: the call has no preconditions. The child is not reaped yet, so its id names no
        // other process.
        unsafe {
            libc::kill(self.child.id() as libc::pid_t, libc::SIGINT)
        };
        let _ = crate::cases::end_of(&mut self.child, PATIENCE);
    }
}

/// Has the kernel kill the process when this one has died in whatever way. The server is in a
/// process group of its own: it ends when this command stops it, after the tests.
fn end_with_parent(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(target_os = "linux")]
    {
        let ask = || {
            let signal = libc::c_ulong::from(libc::SIGKILL.unsigned_abs());
            // SAFETY: the call takes a number, and sets the signal for this process alone.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) };
            Ok(())
        };
        // SAFETY: the closure makes one system call, which takes no memory and no lock.
        unsafe { std::os::unix::process::CommandExt::pre_exec(command, ask) };
    }
}

/// Returns the path of a program, as a shell finds it, or in one of Debian's other folders.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<_> = std::env::split_paths(&path).collect();
    folders.push("/usr/sbin".into());
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    let mut files = folders.into_iter().map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

fn redis(folder: &Path, port: u16) -> Option<Command> {
    let mut command = Command::new(program("redis-server")?);
    command.args([
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--port",
        &port.to_string(),
    ]);
    command.arg("--dir").arg(folder);
    Some(command)
}

/// How users with passwords log in. Each is named after its way.
const HBA: &str = "host all pass_user all password\nhost all md5_user all md5\n\
                   host all scram_user all scram-sha-256\n";

/// Creates the users with passwords, all `password`, and the extensions that tests use.
fn create_users(port: u16) -> Result<()> {
    let client = program("psql").context("postgres is installed without psql")?;
    let connect = || {
        let mut client = Command::new(&client);
        client.args([
            "--host=127.0.0.1",
            "--username=postgres",
            "--no-psqlrc",
            "--quiet",
        ]);
        client.arg(format!("--port={port}")).stderr(Stdio::null());
        client
    };
    // A server that listens may still refuse users, as it starts.
    let begun = Instant::now();
    while !connect().arg("--command=").status()?.success() {
        ensure!(begun.elapsed() < PATIENCE, "postgres accepts no user");
        thread::sleep(Duration::from_millis(20));
    }
    let mut client = connect();
    for (user, encryption) in [
        ("pass", "scram-sha-256"),
        ("md5", "md5"),
        ("scram", "scram-sha-256"),
    ] {
        client.arg(format!(
            "--command=SET password_encryption = '{encryption}'"
        ));
        client.arg(format!(
            "--command=CREATE ROLE {user}_user LOGIN PASSWORD 'password'"
        ));
    }
    for extension in ["hstore", "citext", "ltree"] {
        client.arg(format!(
            "--command=CREATE EXTENSION IF NOT EXISTS {extension}"
        ));
    }
    output_of(&mut client).map(drop)
}

/// Creates a cluster, whose superuser is `postgres`, without a password. The server refuses to run
/// as root, so root runs it as the user `postgres`, which Debian's package creates.
fn postgres(folder: &Path, port: u16) -> Result<Option<Command>> {
    let (Some(initdb), Some(server)) = (program("initdb"), program("postgres")) else {
        return Ok(None);
    };
    let user = postgres_user()?;
    let become_user = |command: &mut Command| {
        #[cfg(unix)]
        if let Some((user, group)) = user {
            std::os::unix::process::CommandExt::uid(command, user);
            std::os::unix::process::CommandExt::gid(command, group);
        }
        command.current_dir("/");
    };
    #[cfg(unix)]
    if let Some((user, group)) = user {
        std::os::unix::fs::chown(folder, Some(user), Some(group))?;
        let parent = folder.parent().context("no folder")?;
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(parent, open)?;
    }
    let data = folder.join("data");
    let mut create = Command::new(initdb);
    create.args([
        "--username=postgres",
        "--auth=trust",
        "--no-sync",
        "--encoding=UTF8",
    ]);
    become_user(create.arg("--pgdata").arg(&data));
    output_of(&mut create)?;
    let rules = data.join("pg_hba.conf");
    let text = std::fs::read_to_string(&rules)?;
    std::fs::write(&rules, HBA.to_owned() + &text)?;
    let mut command = Command::new(server);
    command.arg("-D").arg(&data).arg("-k").arg(folder);
    command.args(["-h", "127.0.0.1", "-F", "-p", &port.to_string()]);
    become_user(&mut command);
    Ok(Some(command))
}

/// Returns the user and the group `postgres`, if this process is root's.
fn postgres_user() -> Result<Option<(u32, u32)>> {
    let id = |arguments: &[&str]| -> Result<u32> {
        let number = output_of(Command::new("id").args(arguments))?;
        number.trim().parse().context("a number of a user")
    };
    if !cfg!(unix) || id(&["-u"])? != 0 {
        return Ok(None);
    }
    Ok(Some((id(&["-u", "postgres"])?, id(&["-g", "postgres"])?)))
}
