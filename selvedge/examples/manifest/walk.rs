//! The tasks: one for each directory, one for each file.
use crate::identity::{self, Identity};
use async_channel::{Receiver, Sender};
use selvedge::{fs, spawn_blocking, spawn_detached};
use sha2::{Digest, Sha256};
use std::{
    fs::{File, FileType},
    future::Future,
    io::{self, Read},
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

/// The largest number of files and directories that are open at a time.
const PERMITS: usize = 64;

/// The largest number of bytes of a file that are in memory at a time. `CHUNK` times `PERMITS`
/// bounds the memory for the files' contents.
const CHUNK: usize = 256 * 1024;

/// Result of a task.
pub enum Event {
    /// This many more files were found, and are to be hashed.
    Files(u64),
    /// A file was hashed.
    Hashed {
        path: PathBuf,
        digest: [u8; 32],
        bytes: u64,
    },
    /// A file or directory could not be hashed.
    Problem { path: PathBuf, what: String },
}

/// State of which every task has a clone. The channel for the events ends when the last clone is
/// dropped.
#[derive(Clone)]
pub struct Walk {
    events: Sender<Event>,
    permits: (Sender<()>, Receiver<()>),
}

/// A directory on the way from the root to the current directory, both included. A link may lead
/// back to such a directory, and the walk must not follow that link.
struct Ancestor {
    id: Identity,
    parent: Option<Arc<Ancestor>>,
}

struct Entries {
    directories: Vec<(PathBuf, Identity)>,
    files: Vec<PathBuf>,
    problems: Vec<(PathBuf, String)>,
}

impl Walk {
    /// Walks `root`, less the entries directly in it that `skip` names.
    pub fn start(root: PathBuf, skip: &'static [&'static str]) -> Receiver<Event> {
        let (events, received) = async_channel::bounded(1_024);
        let permits = async_channel::bounded(PERMITS);
        for _ in 0..PERMITS {
            permits
                .0
                .try_send(())
                .expect("there is room for all permits");
        }
        let walk = Self { events, permits };
        spawn_detached(async move {
            match identity::metadata(&root).await {
                Ok((_, id)) => {
                    let id = id.unwrap_or_default(); // The walk says so if it is no directory.
                    let here = Arc::new(Ancestor { id, parent: None });
                    walk.directory(root, here, skip).await;
                }
                Err(error) => walk.problem(root, error.to_string()).await,
            }
        });
        received
    }

    /// Runs `f` on a thread where it may block. A file's first closure opens the file and reads its
    /// first chunk, which is all of a short file.
    async fn blocking<R: Send + 'static>(
        &self,
        f: impl FnOnce() -> io::Result<R> + Send + 'static,
    ) -> io::Result<R> {
        spawn_blocking(f)
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    async fn permit(&self) -> Permit<'_> {
        // The channel is open, as `self` holds both ends.
        let _ = self.permits.1.recv().await;
        Permit(&self.permits.0)
    }

    async fn send(&self, event: Event) {
        // The send fails only if the collector has ended. Then the program ends, too.
        let _ = self.events.send(event).await;
    }

    async fn problem(&self, path: PathBuf, what: String) {
        self.send(Event::Problem { path, what }).await;
    }

    /// The future is boxed, as it spawns futures of its own type.
    fn directory(
        self,
        path: PathBuf,
        here: Arc<Ancestor>,
        skip: &'static [&'static str],
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let permit = self.permit().await;
            let entries = list(&path, skip).await;
            drop(permit);
            let entries = match entries {
                Ok(entries) => entries,
                Err(error) => return self.problem(path, error.to_string()).await,
            };
            for (path, what) in entries.problems {
                self.problem(path, what).await;
            }
            self.send(Event::Files(entries.files.len() as u64)).await;
            for (path, id) in entries.directories {
                if here.leads_back_to(&id) {
                    self.problem(path, "a link back into its own parents".into())
                        .await;
                    continue;
                }
                let ancestor = Arc::new(Ancestor {
                    id,
                    parent: Some(here.clone()),
                });
                spawn_detached(self.clone().directory(path, ancestor, &[]));
            }
            for path in entries.files {
                // The wait for the permit is before the spawn, so that there are few tasks.
                let _ = self.permits.1.recv().await;
                spawn_detached(self.clone().file(path));
            }
        })
    }

    /// Hashes a file. The caller has taken a permit, which this task gives back.
    async fn file(self, path: PathBuf) {
        let permit = Permit(&self.permits.0);
        match self.hash(&path).await {
            Ok((digest, bytes)) => {
                drop(permit);
                self.send(Event::Hashed {
                    path,
                    digest,
                    bytes,
                })
                .await;
            }
            Err(error) => {
                drop(permit);
                self.problem(path, error.to_string()).await;
            }
        }
    }

    async fn hash(&self, path: &Path) -> io::Result<([u8; 32], u64)> {
        let opened = path.to_path_buf();
        let mut read = self
            .blocking(move || next_chunk(File::open(opened)?, Vec::with_capacity(CHUNK)))
            .await?;
        let (mut sha, mut bytes) = (Sha256::new(), 0);
        loop {
            let (file, chunk) = read;
            sha.update(&chunk);
            bytes += chunk.len() as u64;
            if chunk.len() < CHUNK {
                return Ok((sha.finalize().into(), bytes));
            }
            // The task of a long file yields to the other tasks of its worker after each chunk.
            selvedge::yield_now().await;
            read = self.blocking(move || next_chunk(file, chunk)).await?;
        }
    }
}

/// Permit to have a file or a directory open.
struct Permit<'a>(&'a Sender<()>);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        // The channel has room: this permit was taken out of it.
        let _ = self.0.try_send(());
    }
}

impl Ancestor {
    fn leads_back_to(&self, id: &Identity) -> bool {
        let mut at = Some(self);
        while let Some(ancestor) = at {
            if ancestor.id == *id {
                return true;
            }
            at = ancestor.parent.as_deref();
        }
        false
    }
}

/// Reads a chunk, which is short only at the end of the file.
fn next_chunk(file: File, mut chunk: Vec<u8>) -> io::Result<(File, Vec<u8>)> {
    chunk.clear();
    let mut limited = file.take(CHUNK as u64);
    limited.read_to_end(&mut chunk)?;
    Ok((limited.into_inner(), chunk))
}

async fn list(directory: &Path, skip: &[&str]) -> io::Result<Entries> {
    let mut entries = Entries {
        directories: Vec::new(),
        files: Vec::new(),
        problems: Vec::new(),
    };
    let mut found = fs::read_dir(directory).await?;
    loop {
        let entry = match found.next_entry().await {
            Ok(Some(entry)) => entry,
            Ok(None) => return Ok(entries),
            Err(error) => {
                let problem = (directory.to_path_buf(), error.to_string());
                entries.problems.push(problem);
                return Ok(entries);
            }
        };
        if skip.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let path = entry.path();
        let kind = entry.file_type().await;
        // Most entries are files. The directory's listing says so, so a file needs no `metadata`.
        if kind.as_ref().is_ok_and(FileType::is_file) {
            entries.files.push(path);
            continue;
        }
        match identity::metadata(&path).await {
            Ok((_, Some(id))) => entries.directories.push((path, id)),
            Ok((meta, None)) if meta.is_file() => entries.files.push(path),
            // A named pipe cannot be hashed: the open would wait for a writer.
            Ok(_) => entries
                .problems
                .push((path, "skipped, not a regular file".into())),
            Err(error) => {
                let is_link = kind.is_ok_and(|kind| kind.is_symlink());
                let what = if error.kind() == io::ErrorKind::NotFound && is_link {
                    "a broken link".into()
                } else {
                    error.to_string()
                };
                entries.problems.push((path, what));
            }
        }
    }
}
