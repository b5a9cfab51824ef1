//! The folder of the saved recordings: the names of its files, whole files, and their rotation.
//!
//! A file is written under its name with the ending `.part`, and then renamed. So a file of the
//! whole name is whole. Only files that this module may have written are ever removed: the name has
//! the form below, the entry is a file and no link, and its first bytes are those of a recording.
//!
//! `selvedge-20261130T074812.123Z-4711-3-stall.json`: the time, the process, the number of the save
//! in this process, and the occasion.
use super::recordings::{Reason, Recordings};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The ending of a file that is not whole.
const PART: &str = ".part";

/// The age at which a file that is not whole is removed.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The first note of a saved recording, and the bytes with which its file begins.
pub(super) const WRITER: (&str, &str) = ("writer", "selvedge");
const BEGIN: &[u8] = br#"{"displayTimeUnit":"ns","otherData":{"writer":"selvedge""#;

/// Saves a file that `write` writes, and then removes the oldest files. Returns the file's path.
pub(super) fn save(
    settings: &Recordings,
    reason: Reason,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let folder = &settings.folder;
    fs::create_dir_all(folder).map_err(|error| in_folder(folder, &error))?;
    let path = folder.join(name(SystemTime::now(), reason));
    write_whole(&path, write).map_err(|error| in_folder(folder, &error))?;
    // The recording is saved: an error here only leaves old files.
    let _ = rotate(settings, &path);
    Ok(path)
}

/// Adds the folder's path to an error.
fn in_folder(folder: &Path, error: &io::Error) -> io::Error {
    let what = format!("no recording is saved in {}: {error}", folder.display());
    io::Error::new(error.kind(), what)
}

fn name(time: SystemTime, reason: Reason) -> String {
    /// The number of saves of this process, of all runtimes.
    static SAVES: AtomicU64 = AtomicU64::new(0);
    // Ordering: Relaxed, as it only makes the names unique.
    let number = SAVES.fetch_add(1, Relaxed);
    let process = if cfg!(any(unix, windows)) {
        std::process::id()
    } else {
        0
    };
    let word = reason.word();
    format!("selvedge-{}-{process}-{number}-{word}.json", utc(time))
}

/// Writes a time as `20261130T074812.123Z`.
fn utc(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // A year of this calendar begins in March, so that a leap day is its last one. The calendar
    // repeats itself after 400 years, or 146,097 days. 719,468 days lie between its first day, in
    // the year 0, and 1970.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = era * 400 + year + next;
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "{year:04}{month:02}{day:02}T{hour:02}{minute:02}{:02}.{:03}Z",
        second % 60,
        since.subsec_millis()
    )
}

/// Returns a value by which the names of one process are in the order of their saves, also those of
/// one millisecond.
fn order(name: &str) -> (String, u64) {
    let mut parts = name.split('-').skip(1);
    let time = parts.next().unwrap_or_default().to_owned();
    let number = parts.nth(1).and_then(|number| number.parse().ok());
    (time, number.unwrap_or_default())
}

/// Whether a name has the form of those that [`name`] returns.
fn is_name(name: &str) -> bool {
    let form = || {
        let mut parts = name
            .strip_prefix("selvedge-")?
            .strip_suffix(".json")?
            .split('-');
        let (time, process, number) = (parts.next()?, parts.next()?, parts.next()?);
        let (day, time) = time.strip_suffix('Z')?.split_once('T')?;
        let (second, millis) = time.split_once('.')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_known = |word: &str| Reason::ALL.iter().any(|reason| reason.word() == word);
        let numbers = [day, second, millis, process, number];
        let fits = numbers.into_iter().all(is_number) && second.len() == 6 && millis.len() == 3;
        (fits && day.len() >= 8 && is_known(parts.next()?) && parts.next().is_none()).then_some(())
    };
    form().is_some()
}

/// Writes a file, which has its name only once it is whole. At an error no part of it stays.
fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(PART);
    let part = PathBuf::from(part);
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&part)?;
    let mut to = BufWriter::new(file);
    let written = write(&mut to).and_then(|()| to.flush());
    // The rest of the buffer is not written once more.
    drop(to.into_parts());
    let renamed = written.and_then(|()| fs::rename(&part, path));
    if renamed.is_err() {
        let _ = fs::remove_file(&part);
    }
    renamed
}

/// Removes the oldest recordings of the folder, until as many, as large and as old ones are left as
/// the settings say. `newest` stays.
fn rotate(settings: &Recordings, newest: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(&settings.folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        // It does not follow a link.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if !metadata.is_file() {
            continue;
        }
        // A time in the future is that of a clock that was set back: the file is new.
        let age = metadata.modified().ok().and_then(|at| at.elapsed().ok());
        let age = age.unwrap_or_default();
        if let Some(whole) = name.strip_suffix(PART) {
            if is_name(whole) && age >= ABANDONED && begins(&entry.path()) {
                let _ = fs::remove_file(entry.path());
            }
        } else if is_name(&name) && entry.path() != newest && begins(&entry.path()) {
            files.push((order(&name), metadata.len(), age, entry.path()));
        }
    }
    files.sort();
    let mut bytes = fs::metadata(newest).map_or(0, |metadata| metadata.len());
    for (left, (_, length, age, path)) in files.iter().rev().enumerate() {
        bytes = bytes.saturating_add(*length);
        // `left` newer files and `newest` stay.
        if left + 1 >= settings.files || bytes > settings.bytes || *age >= settings.age {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

/// Whether a file begins as a recording does. A file that is not whole may be shorter.
fn begins(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(BEGIN.len() as u64).read_to_end(&mut begin));
    let is_part = path.extension().is_some_and(|ending| ending == &PART[1..]);
    read.is_ok() && BEGIN.starts_with(&begin) && (is_part || begin.len() == BEGIN.len())
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
