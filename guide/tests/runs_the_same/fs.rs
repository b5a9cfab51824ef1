//! Files and directories.

macro_rules! program {
    ($module:ident, $rt:ident) => {
        mod $module {
            use std::{
                future::poll_fn,
                io,
                os::unix::fs::PermissionsExt,
                path::Path,
                time::{Duration, SystemTime},
            };
            use $rt::io::{AsyncReadExt, AsyncWriteExt};

            type Log = Vec<String>;

            async fn functions(log: &mut Log, at: &Path) -> io::Result<()> {
                let (one, two) = (at.join("one"), at.join("two"));
                $rt::fs::write(&one, b"hello").await?;
                log!(
                    log,
                    $rt::fs::read(&one).await?,
                    $rt::fs::read_to_string(&one).await?
                );
                log!(log, $rt::fs::copy(&one, &two).await?);
                $rt::fs::hard_link(&one, at.join("hard")).await?;
                $rt::fs::symlink("one", at.join("soft")).await?;
                log!(log, $rt::fs::read_link(at.join("soft")).await?);
                log!(log, $rt::fs::metadata(at.join("soft")).await?.is_file());
                log!(
                    log,
                    $rt::fs::symlink_metadata(at.join("soft"))
                        .await?
                        .is_symlink()
                );
                let found = $rt::fs::canonicalize(at.join("soft")).await?;
                log!(log, found == at.canonicalize()?.join("one"));
                $rt::fs::rename(&two, at.join("three")).await?;
                log!(log, $rt::fs::try_exists(&two).await?);
                let mode = std::fs::Permissions::from_mode(0o600);
                $rt::fs::set_permissions(&one, mode).await?;
                log!(log, $rt::fs::metadata(&one).await?.permissions().mode());
                $rt::fs::remove_file(&one).await?;
                log!(log, $rt::fs::read(&one).await.unwrap_err().kind());

                $rt::fs::create_dir(at.join("a")).await?;
                $rt::fs::create_dir_all(at.join("b/c")).await?;
                $rt::fs::remove_dir(at.join("a")).await?;
                log!(log, $rt::fs::remove_dir(at.join("b")).await.is_err());
                $rt::fs::remove_dir_all(at.join("b")).await?;
                log!(log, $rt::fs::try_exists(at.join("b")).await?);
                Ok(())
            }

            async fn directories(log: &mut Log, at: &Path) -> io::Result<()> {
                let mut builder: $rt::fs::DirBuilder = $rt::fs::DirBuilder::new();
                $rt::fs::DirBuilder::recursive(&mut builder, true);
                $rt::fs::DirBuilder::mode(&mut builder, 0o700);
                let dir = at.join("deep/er");
                $rt::fs::DirBuilder::create(&builder, &dir).await?;
                log!(log, std::fs::metadata(&dir)?.permissions().mode());
                for name in ["x", "y"] {
                    std::fs::write(dir.join(name), name)?;
                }
                let mut read: $rt::fs::ReadDir = $rt::fs::read_dir(&dir).await?;
                let first = $rt::fs::ReadDir::next_entry(&mut read).await?.unwrap();
                let second = poll_fn(|cx| $rt::fs::ReadDir::poll_next_entry(&mut read, cx));
                let mut entries: Vec<$rt::fs::DirEntry> = vec![first, second.await?.unwrap()];
                log!(log, read.next_entry().await?.is_none());
                entries.sort_by_key($rt::fs::DirEntry::file_name);
                for entry in &entries {
                    log!(
                        log,
                        $rt::fs::DirEntry::file_name(entry),
                        $rt::fs::DirEntry::path(entry)
                            .strip_prefix(at)
                            .map(Path::to_owned),
                        $rt::fs::DirEntry::file_type(entry).await?.is_file(),
                        $rt::fs::DirEntry::metadata(entry).await?.len(),
                        $rt::fs::DirEntry::ino(entry) > 0,
                    );
                }
                Ok(())
            }

            async fn files(log: &mut Log, at: &Path) -> io::Result<()> {
                let path = at.join("file");
                let mut file: $rt::fs::File = $rt::fs::File::create(&path).await?;
                file.write_all(b"hello, world").await?;
                $rt::fs::File::sync_all(&file).await?;
                $rt::fs::File::sync_data(&file).await?;
                log!(log, $rt::fs::File::metadata(&file).await?.len());
                $rt::fs::File::set_len(&file, 5).await?;
                let mode = std::fs::Permissions::from_mode(0o600);
                $rt::fs::File::set_permissions(&file, mode).await?;
                $rt::fs::File::set_max_buf_size(&mut file, 1_024);
                log!(log, $rt::fs::File::max_buf_size(&file));
                let (day, year) = (Duration::from_secs(86_400), Duration::from_secs(31_536_000));
                $rt::fs::File::set_modified(&file, SystemTime::UNIX_EPOCH + year).await?;
                log!(
                    log,
                    std::fs::metadata(&path)?.modified()? == SystemTime::UNIX_EPOCH + year
                );
                let times: $rt::fs::FileTimes = $rt::fs::FileTimes::new();
                let at_day = SystemTime::UNIX_EPOCH + day;
                let times = $rt::fs::FileTimes::set_accessed(times, at_day);
                let times = $rt::fs::FileTimes::set_modified(times, at_day);
                $rt::fs::File::set_times(&file, times).await?;
                log!(log, std::fs::metadata(&path)?.modified()? == at_day);
                log!(
                    log,
                    $rt::fs::File::create_new(&path)
                        .await
                        .err()
                        .map(|error| error.kind())
                );

                let mut file = $rt::fs::File::open(&path).await?;
                let mut text = String::new();
                $rt::fs::File::try_clone(&file)
                    .await?
                    .read_to_string(&mut text)
                    .await?;
                log!(log, text, file.read(&mut [0; 4]).await?);
                let std = $rt::fs::File::into_std(file).await;
                let file = $rt::fs::File::from_std(std);
                log!(log, $rt::fs::File::try_into_std(file).is_ok());

                let mut options: $rt::fs::OpenOptions = $rt::fs::OpenOptions::new();
                $rt::fs::OpenOptions::read(&mut options, true);
                $rt::fs::OpenOptions::write(&mut options, true);
                $rt::fs::OpenOptions::truncate(&mut options, true);
                $rt::fs::OpenOptions::create(&mut options, true);
                $rt::fs::OpenOptions::mode(&mut options, 0o640);
                $rt::fs::OpenOptions::custom_flags(&mut options, 0);
                let file = $rt::fs::OpenOptions::open(&options, at.join("opened")).await?;
                log!(log, file.metadata().await?.permissions().mode());
                let mut options = $rt::fs::File::options();
                $rt::fs::OpenOptions::append(&mut options, true);
                let mut file = options.open(&path).await?;
                file.write_all(b"!").await?;
                file.flush().await?;
                log!(log, std::fs::read_to_string(&path)?);
                let mut options = $rt::fs::OpenOptions::new();
                $rt::fs::OpenOptions::create_new(options.write(true), true);
                log!(
                    log,
                    options.open(&path).await.err().map(|error| error.kind())
                );
                Ok(())
            }

            pub fn run() -> Vec<String> {
                let mut builder = $rt::runtime::Builder::new_current_thread();
                let runtime = builder.enable_all().build().unwrap();
                let folder = tempfile::tempdir().unwrap();
                let (mut log, at) = (Vec::new(), folder.path());
                runtime
                    .block_on(async {
                        functions(&mut log, at).await?;
                        directories(&mut log, at).await?;
                        files(&mut log, at).await
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
fn fs_runs_the_same() {
    super::assert_same(&theirs::run(), &ours::run());
}
