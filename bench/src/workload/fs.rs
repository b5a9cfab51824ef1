//! A workload of files: a walk through a tree of folders that reads each file.
//!
//! The row makes the tree in the system's temporary folder, and removes it at the end. The files
//! have just been written, so the kernel has them in memory. So the row measures how reads reach
//! the threads that do them, and the reads themselves, but no disk.
use super::{Done, Measured, net::threads, runs};
use crate::rt::Rt;
use std::{
    env, fs,
    future::Future,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    process,
    time::Duration,
};

/// Number of folders in the tree. Each contains up to ten of the others.
const FOLDERS: usize = super::size(100);

/// Number of files in a folder: one of `LONG` bytes, and the rest of `SHORT` bytes each.
const FILES: usize = 20;

const SHORT: usize = 4 << 10;

const LONG: usize = 1 << 20;

/// The value of each byte in the files.
const BYTE: u8 = 7;

/// The sum of all bytes in a folder.
const SUM: u64 = ((FILES - 1) * SHORT + LONG) as u64 * BYTE as u64;

/// The tree. A drop removes it.
struct Tree(PathBuf);

impl Tree {
    fn make() -> io::Result<Self> {
        let root = env::temp_dir().join(format!("bench-fs-tree-{}", process::id()));
        // A sample that was killed leaves its tree, and this process may have the id of that one.
        let _ = fs::remove_dir_all(&root);
        fs::create_dir(&root)?;
        let tree = Self(root);
        let mut folders = vec![tree.0.clone()];
        for n in 1..FOLDERS {
            let folder = folders[(n - 1) / 10].join(format!("folder-{n}"));
            fs::create_dir(&folder)?;
            folders.push(folder);
        }
        for folder in &folders {
            fill(folder)?;
        }
        Ok(tree)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("removing {}: {error}", self.0.display());
        }
    }
}

/// Writes the files of a folder.
fn fill(folder: &Path) -> io::Result<()> {
    for n in 0..FILES {
        let len = if n == 0 { LONG } else { SHORT };
        fs::write(folder.join(format!("file-{n}")), vec![BYTE; len])?;
    }
    Ok(())
}

/// Walks through the tree again and again.
pub(super) fn tree<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    let tree = Tree::make()
        .map_err(|error| eprintln!("making the tree: {error}"))
        .ok()?;
    let walk_all = |runtime: &R, done| runtime.spawn_outside(walk::<R>(tree.0.clone(), done));
    let runs = runs(runtime, at_least, Duration::ZERO, FOLDERS, walk_all);
    // A blocking thread stays for some time after its last job. So this count is the largest of
    // the run.
    let threads = Some(threads().count()).filter(|count| *count > 0);
    Some(Measured {
        threads,
        ..runs.each(FOLDERS * FILES)
    })
}

/// Reads the files of a folder, and spawns a task that does the same for each folder in that
/// folder. The future is boxed, as it spawns futures of its own type.
fn walk<R: Rt>(folder: PathBuf, done: Done) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let (mut files, mut sum) = (Vec::new(), 0);
        for (path, is_folder) in R::list(folder).await.expect("it is a folder") {
            if is_folder {
                R::spawn(walk::<R>(path, done));
            } else {
                files.push(path);
            }
        }
        for file in files {
            let content = R::read(file).await.expect("it is a file");
            sum += content.into_iter().map(u64::from).sum::<u64>();
        }
        assert_eq!(sum, SUM, "all bytes are read");
        done.one();
    })
}
