//! Simulated files against real ones: a program runs in a folder of the system, and then on a
//! simulated disk, and must see the same.
//!
//! Each program notes what its calls return: values, and errors by their numbers. A note has no
//! times, and nothing that depends on the file system, such as the length of a directory.
#![cfg(all(
    selvedge_sim,
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64"
))]

use selvedge_sim::{Disk, Sim};
use std::{
    ffi::CString,
    fmt::Debug,
    fs::{self, File, Metadata, OpenOptions, Permissions},
    io::{self, IoSlice, IoSliceMut, Read, Result, Seek, SeekFrom, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::{
            ffi::OsStrExt,
            fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink},
        },
    },
    path::{Path, PathBuf},
    sync::mpsc,
};

/// The notes of a program, and where its files are.
struct Notes {
    base: PathBuf,
    list: Vec<String>,
}

impl Notes {
    /// Notes the result of a call: errors by their numbers.
    #[track_caller]
    fn note<T: Debug>(&mut self, what: &str, result: Result<T>) {
        let told = match result {
            Ok(value) => format!("{value:?}"),
            Err(error) => match error.raw_os_error() {
                Some(number) => format!("error {number}"),
                None => format!("{:?}", error.kind()),
            },
        };
        let told = told.replace(self.base.to_str().unwrap(), "BASE");
        let line = std::panic::Location::caller().line();
        self.list.push(format!("line {line}, {what}: {told}"));
    }

    fn at(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    /// Returns a path with its end as it is: a `PathBuf` would drop a slash.
    fn raw(&self, name: &str) -> CString {
        let mut path = self.base.as_os_str().as_bytes().to_vec();
        path.push(b'/');
        path.extend(name.as_bytes());
        CString::new(path).unwrap()
    }
}

/// Returns the result of a call of C.
fn done(result: i32) -> Result<i32> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Runs a program in a folder of the system, and on simulated disks, with a few seeds.
#[track_caller]
fn compare(name: &str, program: fn(&mut Notes)) {
    let folder = format!("selvedge-files-{}-{name}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    fs::create_dir(&folder).unwrap();
    let run = move |base: PathBuf| {
        let list = Vec::new();
        let mut notes = Notes { base, list };
        program(&mut notes);
        notes.list
    };
    fs::create_dir(folder.join("base")).unwrap();
    let real = run(folder.join("base"));
    fs::remove_dir_all(&folder).unwrap();
    assert!(!real.is_empty());
    for seed in 0..6 {
        let disk = match seed % 2 {
            0 => Disk::new(),
            _ => Disk::new().torn_writes(),
        };
        let (sender, receiver) = mpsc::channel();
        let sim = Sim::new(seed).disk("/simulated/disk", disk);
        let main = move || {
            fs::create_dir("/simulated/disk/base").unwrap();
            sender.send(run("/simulated/disk/base".into())).unwrap();
        };
        sim.run_main(main).unwrap();
        let simulated = receiver.recv().unwrap();
        let pairs = simulated.iter().zip(&real);
        for (simulated, real) in pairs {
            assert_eq!(simulated, real, "simulated, and then real");
        }
        assert_eq!(simulated.len(), real.len());
    }
    assert!(!Path::new("/simulated").exists());
}

/// Returns what a program sees of a file: its kind, permissions, links and length.
fn told(of: Metadata) -> (bool, bool, bool, u32, u64, u64) {
    let is_file = of.is_file();
    let (links, len) = if is_file {
        (of.nlink(), of.len())
    } else {
        (0, 0)
    };
    (is_file, of.is_dir(), of.is_symlink(), of.mode(), links, len)
}

#[test]
fn open_obeys_its_flags_as_on_the_system() {
    compare("flags", |notes| {
        let file = notes.at("file");
        fs::write(notes.at("file"), "hello").unwrap();
        fs::create_dir(notes.at("dir")).unwrap();
        symlink("file", notes.at("link")).unwrap();
        symlink("nothing", notes.at("dangling")).unwrap();
        symlink("dir", notes.at("to-dir")).unwrap();
        symlink("round", notes.at("round")).unwrap();
        let kinds = [libc::O_RDONLY, libc::O_WRONLY, libc::O_RDWR];
        let flags = [
            0,
            libc::O_CREAT,
            libc::O_CREAT | libc::O_EXCL,
            libc::O_TRUNC,
            libc::O_APPEND,
            libc::O_DIRECTORY,
            libc::O_NOFOLLOW,
            libc::O_NOFOLLOW | libc::O_DIRECTORY,
            libc::O_CREAT | libc::O_NOFOLLOW,
            libc::O_CREAT | libc::O_DIRECTORY,
            libc::O_CREAT | libc::O_TRUNC,
        ];
        let names = [
            "file",
            "dir",
            "link",
            "to-dir",
            "round",
            "new",
            "file/",
            "dir/",
            "new/",
            "link/",
            "to-dir/",
            "file/x",
            "missing/x",
            "dir/.",
            "dir/..",
            ".",
            "",
            "dangling",
            "dangling/",
        ];
        for name in names {
            for kind in kinds {
                for flags in flags {
                    let path = notes.raw(name);
                    // SAFETY: the path ends with a zero.
                    let fd = unsafe { libc::open(path.as_ptr(), kind | flags, 0o644) };
                    let fd = done(fd);
                    notes.note(
                        &format!("open {name} {kind} {flags:o}"),
                        fd.as_ref().map(drop).map_err(|error| {
                            io::Error::from_raw_os_error(error.raw_os_error().unwrap())
                        }),
                    );
                    if let Ok(fd) = fd {
                        let mut byte = [0_u8];
                        // SAFETY: the buffer is valid.
                        let count = unsafe { libc::read(fd, byte.as_mut_ptr().cast(), 1) };
                        notes.note("read", done(count as i32));
                        // SAFETY: the buffer is valid.
                        let count = unsafe { libc::write(fd, byte.as_ptr().cast(), 1) };
                        notes.note("write", done(count as i32));
                        // SAFETY: the call takes no pointers.
                        let end = unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) };
                        notes.note("place", done(end as i32));
                        // SAFETY: the call takes no pointers.
                        let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
                        let known = libc::O_ACCMODE | libc::O_APPEND;
                        notes.note("flags", done(flags).map(|flags| flags & known));
                        // SAFETY: the descriptor is open, and nothing else uses it.
                        notes.note("close", done(unsafe { libc::close(fd) }));
                    }
                    for name in ["new", "nothing"] {
                        if fs::remove_file(notes.at(name)).is_ok() {
                            notes.note("was new", Ok(name));
                        }
                    }
                    fs::write(&file, "hello").unwrap();
                }
            }
        }
    });
}

#[test]
fn paths_fail_as_on_the_system() {
    compare("paths", |notes| {
        fs::write(notes.at("file"), "hello").unwrap();
        fs::create_dir_all(notes.at("dir/sub")).unwrap();
        fs::write(notes.at("dir/inner"), "").unwrap();
        symlink("dir", notes.at("to-dir")).unwrap();
        symlink("nothing", notes.at("dangling")).unwrap();
        let long = "n".repeat(256);
        let deep = "d/".repeat(2_100);
        let names = [
            "",
            ".",
            "..",
            "file",
            "file/",
            "file/x",
            "file/.",
            "dir",
            "dir/",
            "dir/.",
            "dir/..",
            "dir/sub",
            "dir/sub/",
            "dir/sub/.",
            "dir//inner",
            "dir/./inner",
            "dir/sub/../inner",
            "missing",
            "missing/",
            "missing/x",
            "to-dir",
            "to-dir/",
            "to-dir/inner",
            "dangling",
            "dangling/",
            "dangling/x",
            &long,
            &deep,
        ];
        for name in names {
            let path = notes.raw(name);
            let what = |call: &str| format!("{call} {}", &name[..name.len().min(20)]);
            let text = std::str::from_utf8(path.as_bytes()).unwrap().to_owned();
            let text = Path::new(&text);
            notes.note(&what("stat"), fs::metadata(text).map(told));
            notes.note(&what("lstat"), fs::symlink_metadata(text).map(told));
            notes.note(&what("exists"), fs::exists(text));
            notes.note(&what("readlink"), fs::read_link(text));
            // The name of the folder differs.
            if name != ".." {
                notes.note(&what("canonicalize"), fs::canonicalize(text));
            }
            notes.note(&what("read"), fs::read(text));
            notes.note(
                &what("chmod"),
                fs::set_permissions(text, Permissions::from_mode(0o755)),
            );
            notes.note(&what("read_dir"), fs::read_dir(text).map(drop));
            notes.note(&what("mkdir"), fs::create_dir(text));
            notes.note(&what("symlink"), symlink("x", text));
            // SAFETY: the path ends with a zero.
            let access = unsafe { libc::access(path.as_ptr(), libc::R_OK) };
            notes.note(&what("access"), done(access));
            // SAFETY: the path ends with a zero.
            let cut = unsafe { libc::truncate(path.as_ptr(), 3) };
            notes.note(&what("truncate"), done(cut));
        }
        for name in names
            .iter()
            .filter(|name| **name != ".." && **name != "dir/..")
        {
            let text = std::str::from_utf8(notes.raw(name).as_bytes())
                .unwrap()
                .to_owned();
            let what = |call: &str| format!("{call} {}", &name[..name.len().min(20)]);
            notes.note(&what("unlink"), fs::remove_file(&text));
            notes.note(&what("rmdir"), fs::remove_dir(&text));
        }
    });
}

/// Makes some files, renames or links one, and notes what there is then.
fn each_pair(notes: &mut Notes, call: fn(&Path, &Path) -> Result<()>, what: &str) {
    let names = [
        "file",
        "file/",
        "other",
        "dir",
        "dir/",
        "empty",
        "empty/",
        "full",
        "dir/inner",
        "missing",
        "missing/",
        "missing/x",
        "file/x",
        "dir/.",
        ".",
        "link",
        "dangling",
        "to-dir",
        "to-dir/",
        "dir/sub",
        "dir/sub/new",
    ];
    let mut is_ready = false;
    for old in names {
        for new in names {
            if !is_ready {
                make_files(&notes.base);
            }
            let path = |name: &str| PathBuf::from(notes.raw(name).into_string().unwrap());
            let result = call(&path(old), &path(new));
            // An error changes nothing.
            is_ready = result.is_err();
            notes.note(&format!("{what} {old} {new}"), result);
            if !is_ready {
                let mut list = Vec::new();
                list_all(&notes.base, &mut list);
                notes.note("tree", Ok(list));
            }
        }
    }
}

/// Makes the files of a folder anew.
fn make_files(base: &Path) {
    for entry in fs::read_dir(base).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => fs::remove_dir_all(entry.path()).unwrap(),
            false => fs::remove_file(entry.path()).unwrap(),
        }
    }
    fs::create_dir_all(base.join("dir/sub")).unwrap();
    fs::create_dir_all(base.join("full/x")).unwrap();
    fs::create_dir(base.join("empty")).unwrap();
    fs::write(base.join("dir/inner"), "inner").unwrap();
    fs::write(base.join("file"), "file").unwrap();
    fs::write(base.join("other"), "other").unwrap();
    symlink("file", base.join("link")).unwrap();
    symlink("dir", base.join("to-dir")).unwrap();
    symlink("nothing", base.join("dangling")).unwrap();
}

/// Lists the files below a folder: paths, contents and links.
fn list_all(at: &Path, list: &mut Vec<(PathBuf, String)>) {
    let mut entries: Vec<_> = fs::read_dir(at)
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let metadata = entry.metadata().unwrap();
        assert_eq!(metadata.file_type(), kind);
        let content = if kind.is_dir() {
            "a directory".to_owned()
        } else if kind.is_symlink() {
            fs::read_link(&path).unwrap().display().to_string()
        } else {
            format!(
                "{} {}",
                metadata.nlink(),
                fs::read_to_string(&path).unwrap()
            )
        };
        list.push((path.clone(), content));
        if kind.is_dir() {
            list_all(&path, list);
        }
    }
}

#[test]
fn rename_replaces_and_fails_as_on_the_system() {
    compare("rename", |notes| {
        each_pair(notes, |old, new| fs::rename(old, new), "rename")
    });
}

#[test]
fn link_adds_a_name_and_fails_as_on_the_system() {
    compare("link", |notes| {
        each_pair(notes, |old, new| fs::hard_link(old, new), "link")
    });
}

#[test]
fn renameat2_without_replacing_fails_as_on_the_system() {
    fn rename(old: &Path, new: &Path) -> Result<()> {
        let path = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap();
        let (old, new) = (path(old), path(new));
        let here = libc::AT_FDCWD;
        let flags = libc::RENAME_NOREPLACE;
        // SAFETY: the paths end with a zero.
        done(unsafe { libc::renameat2(here, old.as_ptr(), here, new.as_ptr(), flags) }).map(drop)
    }
    compare("renameat2", |notes| each_pair(notes, rename, "renameat2"));
}

fn rest_of(mut file: &File) -> Result<Vec<u8>> {
    let mut rest = Vec::new();
    file.read_to_end(&mut rest)?;
    Ok(rest)
}

#[test]
fn positions_and_holes_are_those_of_the_system() {
    compare("positions", |notes| {
        let at = notes.at("file");
        let options = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true);
            options
        };
        let mut file = options().open(&at).unwrap();
        let mut to = [7; 10];
        notes.note("read", file.read(&mut to));
        notes.note("write", file.write(b"hello"));
        notes.note("read", file.read(&mut to));
        notes.note("place", file.stream_position());
        notes.note("seek", file.seek(SeekFrom::Start(1)));
        notes.note("read", file.read(&mut to[..2]));
        notes.note("bytes", Ok(to));
        notes.note("seek", file.seek(SeekFrom::End(-1)));
        notes.note("write", file.write(b"OW"));
        notes.note("seek", file.seek(SeekFrom::Current(-100)));
        notes.note("place", file.stream_position());
        notes.note("seek", file.seek(SeekFrom::End(5_000)));
        notes.note("len", file.metadata().map(|of| of.len()));
        notes.note("write nothing", file.write(b""));
        notes.note("len", file.metadata().map(|of| of.len()));
        notes.note("read", file.read(&mut to));
        notes.note("write", file.write(b"end"));
        notes.note("len", file.metadata().map(|of| of.len()));
        notes.note(
            "all",
            fs::read(&at).map(|all| all.iter().map(|byte| u64::from(*byte)).sum::<u64>()),
        );
        notes.note("hole", file.read_at(&mut to, 5_000));
        notes.note("bytes", Ok(to));
        notes.note("beyond", file.read_at(&mut to, 50_000));
        notes.note("at", file.write_at(b"at", 9_000));
        notes.note("place", file.stream_position());
        notes.note("len", file.metadata().map(|of| of.len()));
        notes.note("cut", file.set_len(3));
        notes.note("place", file.stream_position());
        notes.note("longer", file.set_len(8));
        notes.note("all", fs::read(&at));
        notes.note("rewind", file.rewind());
        notes.note("rest", rest_of(&file));
        notes.note(
            "parts",
            file.write_vectored(&[IoSlice::new(b"a"), IoSlice::new(b"bc")]),
        );
        let mut parts = [[0; 2], [0; 2]];
        notes.note("rewind", file.rewind());
        let [one, other] = &mut parts;
        let slices = &mut [IoSliceMut::new(one), IoSliceMut::new(other)];
        notes.note("parts", file.read_vectored(slices));
        notes.note("parts", Ok(parts));
        notes.note("long write", file.write_at(&[7; 10_000], 3_000));
        let mut all = vec![0; 20_000];
        notes.note("long read", file.read_at(&mut all, 10));
        all.dedup();
        notes.note("bytes", Ok(all));
        notes.note("cut", file.set_len(5_000));
        notes.note("longer", file.set_len(6_000));
        notes.note(
            "sevens",
            fs::read(&at).map(|all| all.iter().filter(|byte| **byte == 7).count()),
        );
        notes.note("too long", file.set_len(i64::MAX as u64));
        // The positions of a duplicate are the same.
        let mut copy = file.try_clone().unwrap();
        notes.note("seek", copy.seek(SeekFrom::Start(2)));
        notes.note("place", file.stream_position());
        notes.note("write", file.write(b"both"));
        notes.note("place", copy.stream_position());
        let mut own = options().open(&at).unwrap();
        notes.note("place", own.stream_position());
        drop(file);
        notes.note("write", copy.write(b"still open"));
        notes.note("rest", rest_of(&own));
        // A file that is open for appending.
        let mut appends = OpenOptions::new()
            .append(true)
            .read(true)
            .open(&at)
            .unwrap();
        notes.note("place", appends.stream_position());
        notes.note("seek", appends.seek(SeekFrom::Start(1)));
        notes.note("append", appends.write(b"+"));
        notes.note("place", appends.stream_position());
        notes.note("own", own.write(b"-"));
        notes.note("append", appends.write_at(b"at the end", 0));
        notes.note("append", appends.write(b"+"));
        notes.note("cut", appends.set_len(4));
        notes.note("append", appends.write(b"+"));
        notes.note("all", fs::read(&at));
        // SAFETY: the call takes no pointers.
        let flags = unsafe { libc::fcntl(own.as_raw_fd(), libc::F_SETFL, libc::O_APPEND) };
        notes.note("append from now on", done(flags));
        notes.note("rewind", own.rewind());
        notes.note("append", own.write(b"!"));
        notes.note("all", fs::read(&at));
        let only_reads = File::open(&at).unwrap();
        notes.note("write", (&only_reads).write(b"a"));
        notes.note("cut", only_reads.set_len(0));
        notes.note("sync", only_reads.sync_all());
        notes.note("truncate", File::create(&at).map(drop));
        notes.note("all", fs::read(&at));
        notes.note("position of a file that was cut", own.stream_position());
        notes.note("new", File::create_new(&at).map(drop));
    });
}

#[test]
fn file_without_a_name_lives_as_on_the_system() {
    compare("unlinked", |notes| {
        let at = notes.at("file");
        let links = |file: &File| file.metadata().map(|of| (of.nlink(), of.len()));
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&at)
            .unwrap();
        file.write_all(b"hello").unwrap();
        fs::hard_link(&at, notes.at("second")).unwrap();
        notes.note("links", links(&file));
        notes.note("unlink", fs::remove_file(&at));
        notes.note("links", links(&file));
        notes.note("second", fs::read_to_string(notes.at("second")));
        notes.note("unlink", fs::remove_file(notes.at("second")));
        notes.note("links", links(&file));
        notes.note("write", file.write(b" again"));
        notes.note("rewind", file.rewind());
        notes.note("rest", rest_of(&file));
        notes.note("sync", file.sync_all());
        fs::write(&at, "another").unwrap();
        notes.note("links", links(&file));
        let other = File::open(&at).unwrap();
        fs::write(notes.at("new"), "new").unwrap();
        notes.note("rename", fs::rename(notes.at("new"), &at));
        notes.note("old content", rest_of(&other));
        notes.note("links", links(&other));
        notes.note("new content", fs::read_to_string(&at));
        let dir = notes.at("dir");
        fs::create_dir(&dir).unwrap();
        let open = File::open(&dir).unwrap();
        notes.note("rmdir", fs::remove_dir(&dir));
        notes.note("is a directory", open.metadata().map(|of| of.is_dir()));
        notes.note("sync", open.sync_all());
        // SAFETY: the path ends with a zero.
        let made = unsafe { libc::mkdirat(open.as_raw_fd(), c"x".as_ptr(), 0o755) };
        notes.note("mkdir in it", done(made));
        let flags = libc::O_CREAT | libc::O_WRONLY;
        // SAFETY: the path ends with a zero.
        let made = unsafe { libc::openat(open.as_raw_fd(), c"x".as_ptr(), flags, 0o644) };
        notes.note("create in it", done(made));
        fs::create_dir_all(notes.at("above/below")).unwrap();
        let below = File::open(notes.at("above/below")).unwrap();
        fs::remove_dir(notes.at("above/below")).unwrap();
        fs::remove_dir(notes.at("above")).unwrap();
        // SAFETY: the path ends with a zero.
        let above = unsafe { libc::openat(below.as_raw_fd(), c"..".as_ptr(), libc::O_RDONLY) };
        notes.note("above it", done(above).map(drop));
    });
}

#[test]
fn directories_are_listed_and_removed_as_on_the_system() {
    compare("directories", |notes| {
        notes.note("make", fs::create_dir_all(notes.at("a/b/c")));
        notes.note("make again", fs::create_dir_all(notes.at("a/b/c")));
        notes.note("make within", fs::create_dir(notes.at("x/y")));
        for number in 0..30 {
            fs::write(notes.at("a").join(format!("file-{number}")), "x").unwrap();
        }
        fs::write(notes.at("a/b/deep"), "x").unwrap();
        symlink("b", notes.at("a/link")).unwrap();
        fs::set_permissions(notes.at("a/file-1"), Permissions::from_mode(0o600)).unwrap();
        let mut list: Vec<_> = fs::read_dir(notes.at("a"))
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let kind = entry.file_type().unwrap();
                (
                    entry.file_name(),
                    kind.is_dir(),
                    told(entry.metadata().unwrap()),
                )
            })
            .collect();
        list.sort();
        notes.note("list", Ok(list));
        notes.note("not empty", fs::remove_dir(notes.at("a")));
        notes.note("copy", fs::copy(notes.at("a/file-1"), notes.at("copy")));
        notes.note("copy", fs::metadata(notes.at("copy")).map(told));
        notes.note(
            "copy of a directory",
            fs::copy(notes.at("a"), notes.at("copy")),
        );
        notes.note(
            "real path",
            fs::canonicalize(notes.at("a/link/../link/deep")),
        );
        notes.note("remove", fs::remove_dir_all(notes.at("a/link")));
        notes.note("there", fs::exists(notes.at("a/b/deep")));
        notes.note("remove", fs::remove_dir_all(notes.at("a")));
        notes.note("there", fs::exists(notes.at("a")));
        notes.note("remove", fs::remove_dir_all(notes.at("a")));
        notes.note("remove a file", fs::remove_dir_all(notes.at("copy")));
        let mut tree = Vec::new();
        list_all(&notes.base.clone(), &mut tree);
        notes.note("tree", Ok(tree));
    });
}

#[test]
fn calls_relative_to_a_directory_are_those_of_the_system() {
    compare("relative", |notes| {
        fs::create_dir_all(notes.at("dir/sub")).unwrap();
        fs::write(notes.at("file"), "hello").unwrap();
        let dir = File::open(notes.at("dir")).unwrap();
        let file = File::open(notes.at("file")).unwrap();
        for (name, at) in [("dir", dir.as_raw_fd()), ("file", file.as_raw_fd())] {
            let paths = [c"new", c"sub", c"../file", c"", c".", c"..", c"missing/x"];
            for path in paths {
                let what = |call: &str| format!("{call} {name} {path:?}");
                let flags = libc::O_CREAT | libc::O_RDWR;
                // SAFETY: the path ends with a zero.
                let fd = done(unsafe { libc::openat(at, path.as_ptr(), flags, 0o640) });
                let is_open = fd.is_ok();
                if let Ok(fd) = &fd {
                    // SAFETY: the descriptor is open, and nothing else uses it.
                    unsafe { libc::close(*fd) };
                }
                notes.note(&what("openat"), fd.map(drop));
                // SAFETY: all zeros are a value of this type.
                let mut stat: libc::stat64 = unsafe { std::mem::zeroed() };
                for flags in [0, libc::AT_EMPTY_PATH, libc::AT_SYMLINK_NOFOLLOW] {
                    // SAFETY: the pointers are valid.
                    let result =
                        unsafe { libc::fstatat64(at, path.as_ptr(), &raw mut stat, flags) };
                    notes.note(&what("fstatat"), done(result).map(|_| stat.st_mode));
                }
                if is_open && path == c"new" {
                    // SAFETY: the path ends with a zero.
                    let result = unsafe { libc::unlinkat(at, path.as_ptr(), libc::AT_REMOVEDIR) };
                    notes.note(&what("unlinkat"), done(result));
                    // SAFETY: the path ends with a zero.
                    let result = unsafe { libc::unlinkat(at, path.as_ptr(), 0) };
                    notes.note(&what("unlinkat"), done(result));
                }
                // SAFETY: the path ends with a zero.
                let result = unsafe { libc::mkdirat(at, path.as_ptr(), 0o755) };
                notes.note(&what("mkdirat"), done(result));
                // SAFETY: the paths end with a zero.
                let result = unsafe {
                    libc::renameat(at, path.as_ptr(), dir.as_raw_fd(), c"renamed".as_ptr())
                };
                notes.note(&what("renameat"), done(result));
            }
        }
        let path = notes.raw("file");
        // SAFETY: the path ends with a zero.
        let fd = unsafe { libc::openat(-1, path.as_ptr(), libc::O_RDONLY) };
        notes.note("absolute", done(fd).map(drop));
        let mut tree = Vec::new();
        list_all(&notes.base.clone(), &mut tree);
        notes.note("tree", Ok(tree));
    });
}

/// Notes the calls of a descriptor that has a place, or that has not.
fn each_call(notes: &mut Notes, fd: RawFd, what: &str) {
    let mut bytes = [0_u8; 4];
    let to = bytes.as_mut_ptr().cast();
    let list = libc::iovec {
        iov_base: to,
        iov_len: 4,
    };
    let mut note = |call: &str, result: i64| {
        notes.note(&format!("{call} of {what}"), done(result as i32));
    };
    // SAFETY: the buffer is valid, here and below.
    note("pread", unsafe { libc::pread64(fd, to, 4, 1) } as i64);
    // SAFETY: as above.
    note("pread", unsafe { libc::pread64(fd, to, 4, -1) } as i64);
    // SAFETY: as above.
    note("pwrite", unsafe { libc::pwrite64(fd, to, 4, 1) } as i64);
    // SAFETY: as above.
    note("pwrite", unsafe { libc::pwrite64(fd, to, 4, -1) } as i64);
    // SAFETY: as above.
    note("preadv", unsafe { libc::preadv(fd, &raw const list, 1, 2) }
        as i64);
    // SAFETY: as above.
    note(
        "preadv",
        unsafe { libc::preadv(fd, &raw const list, -1, 2) } as i64,
    );
    // SAFETY: as above.
    note(
        "pwritev",
        unsafe { libc::pwritev(fd, &raw const list, 1, 2) } as i64,
    );
    // SAFETY: as above.
    note("writev", unsafe { libc::writev(fd, &raw const list, -1) }
        as i64);
    // SAFETY: the calls take no pointers, here and below.
    note("lseek", unsafe { libc::lseek64(fd, 3, libc::SEEK_SET) });
    // SAFETY: as above.
    note("lseek", unsafe { libc::lseek64(fd, 3, 77) });
    // SAFETY: as above.
    note("lseek", unsafe { libc::lseek64(fd, -30, libc::SEEK_CUR) });
    // SAFETY: as above.
    note("fsync", unsafe { libc::fsync(fd) }.into());
    // SAFETY: as above.
    note("fdatasync", unsafe { libc::fdatasync(fd) }.into());
    // SAFETY: as above.
    note("ftruncate", unsafe { libc::ftruncate64(fd, 2) }.into());
    // SAFETY: as above.
    note("ftruncate", unsafe { libc::ftruncate64(fd, -2) }.into());
    // SAFETY: as above.
    note("fallocate", unsafe { libc::fallocate(fd, 0, 3, 10) }.into());
    // SAFETY: as above.
    note("fallocate", unsafe { libc::fallocate(fd, 0, 3, 0) }.into());
    // SAFETY: as above.
    note("fallocate", unsafe { libc::fallocate(fd, 0, -3, 1) }.into());
    let keeps = libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: as above.
    note(
        "fallocate",
        unsafe { libc::fallocate(fd, keeps, 30, 10) }.into(),
    );
    // SAFETY: as above.
    note(
        "posix_fallocate",
        unsafe { libc::posix_fallocate(fd, 0, 20) }.into(),
    );
    // SAFETY: as above.
    note(
        "posix_fadvise",
        unsafe { libc::posix_fadvise(fd, 0, 0, 0) }.into(),
    );
    // SAFETY: as above.
    note("end", unsafe { libc::lseek64(fd, 0, libc::SEEK_END) });
    // SAFETY: the buffer is valid.
    note("send", unsafe { libc::send(fd, to, 0, 0) } as i64);
    // SAFETY: as above.
    note("listen", unsafe { libc::listen(fd, 1) }.into());
}

#[test]
fn calls_of_each_kind_of_descriptor_fail_as_on_the_system() {
    compare("kinds", |notes| {
        let at = notes.at("file");
        fs::write(&at, "hello, world").unwrap();
        fs::create_dir(notes.at("dir")).unwrap();
        let both = OpenOptions::new().read(true).write(true).open(&at).unwrap();
        each_call(notes, both.as_raw_fd(), "a file");
        let only_reads = File::open(&at).unwrap();
        each_call(notes, only_reads.as_raw_fd(), "a file that is read");
        let only_writes = OpenOptions::new().write(true).open(&at).unwrap();
        each_call(notes, only_writes.as_raw_fd(), "a file that is written");
        let syncs = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_SYNC)
            .open(&at)
            .unwrap();
        each_call(notes, syncs.as_raw_fd(), "a file with O_SYNC");
        let dir = File::open(notes.at("dir")).unwrap();
        notes.note("sync", dir.sync_all());
        notes.note("read", (&dir).read(&mut [0]));
        notes.note("write", (&dir).write(&[0]));
        notes.note("cut", dir.set_len(0));
        let path = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(&at)
            .unwrap();
        notes.note("read of a path", (&path).read(&mut [0]));
        notes.note("path", path.metadata().map(told));
        notes.note("all", fs::read(&at));
    });
}

#[test]
fn locks_of_files_exclude_as_on_the_system() {
    compare("locks", |notes| {
        let at = notes.at("file");
        let open = || File::create(&at).unwrap();
        let (one, other) = (open(), open());
        let lock = |file: &File, how: i32| {
            // SAFETY: the call takes no pointers.
            done(unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) })
        };
        notes.note("one", lock(&one, libc::LOCK_EX));
        notes.note("other", lock(&other, libc::LOCK_SH));
        notes.note("one again", lock(&one, libc::LOCK_EX));
        notes.note("one shared", lock(&one, libc::LOCK_SH));
        notes.note("other", lock(&other, libc::LOCK_SH));
        notes.note("one", lock(&one, libc::LOCK_EX));
        notes.note("one has lost it", lock(&other, libc::LOCK_EX));
        notes.note("end", lock(&other, libc::LOCK_UN));
        notes.note("end", lock(&one, libc::LOCK_UN));
        let copy = one.try_clone().unwrap();
        notes.note("one", lock(&one, libc::LOCK_EX));
        drop(one);
        notes.note("other", lock(&other, libc::LOCK_EX));
        notes.note("copy ends", lock(&copy, libc::LOCK_UN));
        notes.note("other", lock(&other, libc::LOCK_EX));
        drop(other);
        notes.note("copy", lock(&copy, libc::LOCK_EX));
        notes.note("wrong", lock(&copy, 77));
    });
}
