//! Tests of the files' names, of errors, and of which files a rotation removes.
use super::*;
use std::os::unix::fs::symlink;

fn settings(folder: &Path) -> Recordings {
    Recordings::new(folder)
}

fn save_text(settings: &Recordings, text: &[u8]) -> io::Result<PathBuf> {
    save(settings, Reason::Panic, |to| to.write_all(text))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn time_is_written_in_utc() {
    let text = |seconds: u64| utc(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 7));
    assert_eq!(text(0), "19700101T000000.007Z");
    assert_eq!(text(951_782_399), "20000228T235959.007Z");
    assert_eq!(text(951_782_400), "20000229T000000.007Z");
    assert_eq!(text(1_709_251_199), "20240229T235959.007Z");
    assert_eq!(text(1_709_251_200), "20240301T000000.007Z");
    assert_eq!(text(4_107_542_400), "21000301T000000.007Z");
    assert_eq!(text(1_796_025_600), "20261130T080000.007Z");
    assert_eq!(
        utc(UNIX_EPOCH - Duration::from_secs(1)),
        "19700101T000000.000Z"
    );
}

#[test]
fn own_names_are_told_from_others() {
    for reason in Reason::ALL {
        assert!(is_name(&name(SystemTime::now(), reason)));
    }
    let good = "selvedge-20261130T074812.123Z-4711-3-stall.json";
    assert!(is_name(good));
    for (from, to) in [
        ("selvedge", "Selvedge"),
        ("T", "-"),
        (".123", ""),
        ("074812", "07481"),
        ("20261130", ""),
        ("4711", "x"),
        ("-3", ""),
        ("-3", "-"),
        ("stall", "stalls"),
        (".json", ".json.part"),
        (".json", "-1.json"),
    ] {
        assert!(!is_name(&good.replace(from, to)), "{from} {to}");
    }
}

#[test]
fn newest_files_stay_within_count_and_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let text = [BEGIN, &[b' '; 1000]].concat();
    let three = settings(folder.path()).files(3);
    let saved: Vec<_> = (0..5).map(|_| save_text(&three, &text).unwrap()).collect();
    let exists: Vec<_> = saved.iter().map(|path| path.exists()).collect();
    assert_eq!(exists, [false, false, true, true, true]);
    let small = settings(folder.path()).bytes(2 * text.len() as u64);
    let last = save_text(&small, &text).unwrap();
    assert!(saved[4].exists() && last.exists() && !saved[3].exists());
    let none = settings(folder.path()).files(0).bytes(0);
    let only = save_text(&none, &text).unwrap();
    assert_eq!(
        names(folder.path()),
        [only.file_name().unwrap().to_str().unwrap()]
    );
}

/// A file that seems to be of the future is new: a clock may be set back.
#[test]
fn files_beyond_the_age_go() {
    let folder = tempfile::tempdir().unwrap();
    let hour = Duration::from_secs(3600);
    let hourly = settings(folder.path()).age(hour);
    let now = SystemTime::now();
    let times = [now - 2 * hour, now - hour / 2, now + hour, now - 2 * hour];
    let saved = times.map(|time| {
        let path = save_text(&settings(folder.path()), BEGIN).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(time).unwrap();
        path
    });
    let newest = save_text(&hourly, BEGIN).unwrap();
    assert_eq!(saved.map(|path| path.exists()), [false, true, true, false]);
    let none = settings(folder.path()).age(Duration::ZERO);
    let only = save_text(&none, BEGIN).unwrap();
    assert!(only.exists() && !newest.exists());
}

#[test]
fn rotation_leaves_the_files_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let own = "selvedge-20000101T000000.000Z-1-1-stall.json";
    fs::write(at("notes.json"), BEGIN).unwrap();
    fs::write(at(own), BEGIN).unwrap();
    fs::write(at(&own.replace("-1-1", "-1-2")), "{\"mine\":1}").unwrap();
    fs::write(at(&own.replace("-1-1", "-1-3")), &BEGIN[..5]).unwrap();
    symlink(at("notes.json"), at(&own.replace("-1-1", "-1-4"))).unwrap();
    fs::create_dir(at(&own.replace("-1-1", "-1-5"))).unwrap();
    fs::write(at(&own.replace(".json", ".json.part")), BEGIN).unwrap();
    let old = at(&own.replace(".json", ".json.part").replace("-1-1", "-2-2"));
    fs::write(&old, BEGIN).unwrap();
    let hours = SystemTime::now() - 2 * ABANDONED;
    let file = File::options().write(true).open(&old).unwrap();
    file.set_modified(hours).unwrap();
    let before = names(folder.path());
    save_text(&settings(folder.path()).files(0), BEGIN).unwrap();
    let after = names(folder.path());
    let gone: Vec<_> = before.iter().filter(|name| !after.contains(name)).collect();
    assert_eq!(gone, [own, old.file_name().unwrap().to_str().unwrap()]);
}

#[test]
fn folder_that_cannot_be_made_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("a/b");
    save_text(&settings(&below), BEGIN).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    // Neither a file, nor a folder that takes no files, also from root.
    for folder in [&file, Path::new("/proc/self"), Path::new("/proc/none")] {
        let error = save_text(&settings(folder), BEGIN).unwrap_err();
        assert!(
            error.to_string().contains(folder.to_str().unwrap()),
            "{error}"
        );
    }
}

#[test]
fn failed_write_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let error = save(&settings(folder.path()), Reason::Stall, |to| {
        to.write_all(BEGIN)?;
        to.flush()?;
        File::options()
            .write(true)
            .open("/dev/full")?
            .write_all(b"x")
    });
    assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(names(folder.path()).is_empty());
}
