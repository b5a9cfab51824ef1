//! A file with its buffers: reads, writes and seeks, one job at a time.
//!
//! A *job* is a closure on a thread that may block. The state says which job of the file is queued
//! or runs, and no task starts another one meanwhile:
//!
//! 1. A task starts a job only while there is none, and records the job's kind before it queues the
//!    job. The job ends with [`Running::drop`], which removes the kind and wakes each task that
//!    waits. So a job ends even if no thread ever runs it.
//! 2. While there is a job, tasks change only three parts of the state: the wakers and their keys;
//!    `write_error`, which a write or a flush takes; and `queued`, to which [`Cursor::poll_write`]
//!    appends while the kind is [`Kind::Write`]. The job changes the rest.
//! 3. A job of the kind [`Kind::Write`] writes until it finds `queued` empty. In the same critical
//!    section the job changes its kind. So no task appends a byte that the job does not see.
//! 4. A job drops its reference to the file before its kind is removed. A job of rule 6 does so
//!    before it leaves the count of that rule. So without any job the cursor has the only
//!    reference.
//! 5. Bytes stay in `ahead` until a task takes them, or until a job has moved the file's position
//!    back by their number. So a read whose future was dropped loses nothing.
//! 6. A job of [`Cursor::run_beside`] needs neither the file's position nor the rest of the state.
//!    It has no kind, runs beside any job, and is counted in `beside`. A task starts such a job
//!    once every write has ended. The job does not wait for a read, which may last for ever (a
//!    pipe, a terminal). On Windows it starts once every job has ended: there the system makes each
//!    call wait for the others of the same file, on a thread that another file could use.
//! 7. Reads that follow each other are a *stream* (`read_ahead.rs`). A read job begins it, and
//!    changes its kind to [`Kind::Ahead`] in the same critical section. Then the job only appends
//!    bytes to the stream, by calls that leave the kernel's position alone. The task that reads may
//!    take bytes meanwhile. Without a stream, the kernel's position is as far behind `ahead` as
//!    `ahead` is long.
//! 8. A task ends the stream at any time: it takes the stream out of the state, and sets the
//!    kernel's position to where tasks have read. A job of the kind [`Kind::Ahead`] that finds no
//!    stream ends. A task does this before it awaits or starts any operation that needs the
//!    position, or shows the descriptor to the program. No task but the one that reads begins a
//!    stream, and it has the file to itself.
use crate::{
    budget::{or_end, poll_proceed},
    dropped, on_blocking_thread, pool,
    read_ahead::{self, Chunk, Found, Stamp, Stream},
    waiters::{self, Waiters},
};
use blocking_threads::CurrentPool;
use std::{
    fs,
    future::poll_fn,
    io::{self, ErrorKind, IoSlice, Read, Seek, SeekFrom, Write},
    mem,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Waker, ready},
};

pub(super) struct Cursor {
    file: Arc<fs::File>,
    shared: Arc<Shared>,
}

struct Shared(Mutex<State>);

#[derive(Default)]
struct State {
    job: Option<Kind>,
    /// How many jobs of `run_beside` there are (rule 6).
    beside: usize,
    /// The task that reads or seeks. It waits for the end of the job.
    reader: Option<Waker>,
    /// The task that writes or flushes. It waits for the end of the job, or for room in `queued`.
    writer: Option<Waker>,
    /// The wakers of the other tasks that wait for the end of the job. Each task has its key in a
    /// [`Waiting`].
    others: Waiters,
    buffer: Vec<u8>,
    /// The bytes of `buffer` that were read and that no task has taken.
    ahead: Range<usize>,
    /// The result of the last read if it returned no byte: its error, or `Ok` at the end of the
    /// file.
    read_nothing: Option<io::Result<()>>,
    /// Whether nobody else has the file's position, so that the file may be read ahead.
    is_private: bool,
    /// The reads that follow each other (rule 7).
    stream: Option<Stream>,
    /// Whether the next read job begins no stream, as the last one stopped at this place.
    has_stopped: bool,
    /// Bytes for the next system call.
    queued: Vec<u8>,
    write_error: Option<io::Error>,
    /// The result of the last seek, until a task takes it or another operation begins.
    sought: Option<(SeekFrom, io::Result<u64>)>,
    /// The file's position after the last seek.
    position: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    /// The job reads ahead (rule 7).
    Ahead,
    /// The job still takes the bytes that tasks append to `queued` (rule 3).
    Write,
    Seek(SeekFrom),
    Other,
}

/// A task that waits.
#[derive(Clone, Copy)]
enum Waiter {
    /// The task that reads or seeks.
    Reader,
    /// The task that writes or flushes.
    Writer,
    /// Another task, by its key.
    Other(u64),
}

/// A job, from before it is queued until its end.
struct Running {
    file: Option<Arc<fs::File>>,
    shared: Arc<Shared>,
    began: bool,
}

/// A job of `run_beside` (rule 6), from before it is queued until its end.
struct Beside {
    file: Option<Arc<fs::File>>,
    shared: Arc<Shared>,
}

/// A waiting task whose waker is in `others`. The drop of this value removes the waker.
struct Waiting<'a> {
    shared: &'a Shared,
    key: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let waker = self.shared.lock().others.remove(self.key);
        drop(waker);
    }
}

impl Cursor {
    /// Takes over a file. `is_private` says that nobody else has its position, and that it may be
    /// read ahead.
    pub(super) fn new(file: fs::File, is_private: bool) -> Self {
        let file = Arc::new(file);
        let state = State {
            // A simulation would not repeat, as the times of files are those of the system.
            is_private: is_private && !cfg!(selvedge_sim),
            ..State::default()
        };
        let shared = Arc::new(Shared(Mutex::new(state)));
        Self { file, shared }
    }

    /// Returns the file, for a caller that leaves its position alone.
    pub(super) fn file(&self) -> &fs::File {
        &self.file
    }

    /// Returns the file, whose position is where tasks have read. Ends reading ahead for ever, as
    /// the caller may move the position or share it.
    #[cfg(any(unix, windows))]
    pub(super) fn expose(&self) -> &fs::File {
        let mut state = self.shared.lock();
        state.is_private = false;
        // A stream's file can seek, and its position is one that the file had.
        let _ = state.end_stream(&self.file);
        &self.file
    }

    fn end_stream(&self) -> io::Result<()> {
        self.shared.lock().end_stream(&self.file)
    }

    /// Waits until `is_ready` returns true for the state, and then runs `f` with the lock.
    async fn when<R>(
        &self,
        is_ready: impl Fn(&State) -> bool,
        mut f: impl FnMut(MutexGuard<'_, State>) -> R,
    ) -> R {
        let shared = &*self.shared;
        let mut waiting = None;
        poll_fn(move |cx| {
            let Waiting { key, .. } = match &waiting {
                Some(waiting) => waiting,
                None => {
                    let mut state = shared.lock();
                    if is_ready(&state) {
                        return Poll::Ready(f(state));
                    }
                    let key = state.others.new_key();
                    waiting.insert(Waiting { shared, key })
                }
            };
            shared.poll(cx, Waiter::Other(*key), &is_ready).map(&mut f)
        })
        .await
    }

    /// Waits until there is no job, as the task that reads or seeks.
    fn poll_idle(&self, cx: &Context<'_>) -> Poll<MutexGuard<'_, State>> {
        self.shared.poll(cx, Waiter::Reader, State::is_idle)
    }

    fn enter(&self, mut state: MutexGuard<'_, State>, kind: Kind) -> Running {
        if kind != Kind::Ahead {
            // A read whose future was dropped may have begun a stream while the task waited for
            // its job. As for the error, see `expose`.
            let _ = state.end_stream(&self.file);
        }
        state.job = Some(kind);
        state.sought = None;
        Running {
            file: Some(self.file.clone()),
            shared: self.shared.clone(),
            began: false,
        }
    }

    fn enter_beside(&self, mut state: MutexGuard<'_, State>) -> Beside {
        state.beside += 1;
        Beside {
            file: Some(self.file.clone()),
            shared: self.shared.clone(),
        }
    }

    fn start(
        &self,
        state: MutexGuard<'_, State>,
        pool: &CurrentPool,
        kind: Kind,
        job: impl FnOnce(&fs::File, &Arc<Shared>) + Send + 'static,
    ) {
        // `enter` releases the lock. A refused job ends inside `submit`, and its end takes the
        // lock.
        let running = self.enter(state, kind);
        pool.submit(Box::new(|| running.run(job)));
    }

    /// Polls for up to `room` bytes, and passes them to `take`.
    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        room: usize,
        limit: usize,
        take: impl FnOnce(&[u8]),
    ) -> Poll<io::Result<usize>> {
        let progress = ready!(poll_proceed(cx));
        loop {
            let mut state = ready!(self.shared.poll(cx, Waiter::Reader, State::may_read));
            state.sought = None;
            if room > 0 && state.stream.is_some() {
                if let Some(chunk) = or_end!(self.take_chunk(state, room), progress.made_progress())
                {
                    let count = chunk.bytes().len().min(room);
                    take(&chunk.bytes()[..count]);
                    self.give_back(chunk, count);
                    progress.made_progress();
                    return Poll::Ready(Ok(count));
                }
                continue;
            }
            let count = state.ahead.len().min(room);
            if count > 0 || room == 0 {
                let start = state.ahead.start;
                state.ahead.start += count;
                take(&state.buffer[start..start + count]);
                progress.made_progress();
                return Poll::Ready(Ok(count));
            }
            if let Some(end) = state.read_nothing.take() {
                progress.made_progress();
                return Poll::Ready(end.map(|()| 0));
            }
            let pool = or_end!(pool(), progress.made_progress());
            let may_begin = state.is_private && !mem::take(&mut state.has_stopped);
            let begins = may_begin && read_ahead::is_worthwhile(room, limit);
            self.start(state, &pool, Kind::Read, move |file, shared| {
                if !(begins && begin_stream(file, shared, room, limit)) {
                    read(file, shared, room.min(limit));
                }
            });
        }
    }

    /// Returns what the stream has for a read, which is no byte at the end of the file. `None` if
    /// the caller has to look again, as a job has been started or the stream has ended.
    fn take_chunk(
        &self,
        mut state: MutexGuard<'_, State>,
        room: usize,
    ) -> io::Result<Option<Chunk>> {
        let Some(stream) = &mut state.stream else {
            return Ok(None);
        };
        let stamp = stream.stamp();
        match stream.find(room) {
            Found::Chunk(chunk) => {
                drop(state);
                if Stamp::of(&self.file) == Some(stamp) {
                    return Ok(Some(chunk));
                }
                self.end_stream()?; // Somebody has changed the file since the job read it.
            }
            Found::Empty => {
                let pool = pool()?;
                stream.widen();
                stream.extend();
                self.start(state, &pool, Kind::Ahead, fill_stream);
            }
            Found::Stopped => {
                state.end_stream(&self.file)?;
                state.has_stopped = true;
            }
        }
        Ok(None)
    }

    /// Takes back a chunk of which a task has read `count` bytes. Starts a job, if there is none
    /// and the stream has few bytes left.
    fn give_back(&self, chunk: Chunk, count: usize) {
        let mut state = self.shared.lock();
        let is_idle = state.is_idle();
        let Some(stream) = &mut state.stream else {
            return;
        };
        stream.give_back(chunk, count);
        if is_idle && stream.is_low() {
            // Without a pool, the read that needs one returns the error.
            if let Ok(pool) = pool() {
                stream.extend();
                self.start(state, &pool, Kind::Ahead, fill_stream);
            }
        }
    }

    pub(super) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
        limit: usize,
    ) -> Poll<io::Result<usize>> {
        let progress = ready!(poll_proceed(cx));
        or_end!(self.end_stream(), progress.made_progress());
        let may_write = |state: &State| {
            let is_open = matches!(state.job, None | Some(Kind::Write));
            state.write_error.is_some() || is_open && state.queued.len() < limit
        };
        let mut state = ready!(self.shared.poll(cx, Waiter::Writer, may_write));
        progress.made_progress();
        if let Some(error) = state.write_error.take() {
            return Poll::Ready(Err(error));
        }
        state.sought = None;
        if state.job.is_some() || from.iter().all(|from| from.is_empty()) {
            return Poll::Ready(Ok(state.queue(from, limit)));
        }
        let pool = pool()?;
        let taken = state.queue(from, limit);
        state.read_nothing = None;
        self.start(state, &pool, Kind::Write, |file, shared| {
            write_queued(file, shared);
        });
        Poll::Ready(Ok(taken))
    }

    pub(super) fn poll_flush(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let has_written = |state: &State| state.job != Some(Kind::Write);
        let mut state = ready!(self.shared.poll(cx, Waiter::Writer, has_written));
        Poll::Ready(state.write_error.take().map_or(Ok(()), Err))
    }

    /// Seeks. If the future of the last seek was dropped, and that seek was to the same place,
    /// takes its result.
    pub(super) fn poll_seek(&self, cx: &mut Context<'_>, to: SeekFrom) -> Poll<io::Result<u64>> {
        let progress = ready!(poll_proceed(cx));
        loop {
            let mut state = self.shared.lock();
            if state.is_ahead() {
                let sought = state.sought.take().filter(|(place, _)| *place == to);
                let result = match sought {
                    Some((_, result)) => result,
                    None => state.seek_at_once(&self.file, to),
                };
                progress.made_progress();
                return Poll::Ready(result);
            }
            drop(state);
            let mut state = ready!(self.poll_idle(cx));
            let sought = state.sought.take().filter(|(place, _)| *place == to);
            if let Some((_, result)) = sought {
                progress.made_progress();
                return Poll::Ready(result);
            }
            or_end!(self.start_seek(state, to), progress.made_progress());
        }
    }

    fn start_seek(&self, state: MutexGuard<'_, State>, to: SeekFrom) -> io::Result<()> {
        let pool = pool()?;
        self.start(state, &pool, Kind::Seek(to), move |file, shared| {
            seek(file, shared, to);
        });
        Ok(())
    }

    /// Starts a seek, if there is no job.
    pub(super) fn try_start_seek(&self, to: SeekFrom) -> io::Result<()> {
        let mut state = self.shared.lock();
        if state.is_ahead() {
            let result = state.seek_at_once(&self.file, to);
            state.sought = Some((to, result));
            return Ok(());
        }
        if state.job.is_some() {
            let why = "another operation of the file has not ended: poll it to its end first";
            return Err(io::Error::other(why));
        }
        self.start_seek(state, to)
    }

    /// Waits for the seek that was started, if there is one.
    pub(super) fn poll_sought(&self, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let has_sought = |state: &State| state.is_idle() || state.is_ahead();
        let mut state = ready!(self.shared.poll(cx, Waiter::Reader, has_sought));
        let last = state.position;
        let sought = state.sought.take();
        Poll::Ready(sought.map_or(Ok(last), |(_, result)| result))
    }

    /// Runs `job` once every job of a kind that was started has ended. If a buffered write has
    /// failed, returns that write's error and does not run `job`.
    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&fs::File) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        self.end_stream()?;
        let running = self.when(State::is_idle, |mut state| {
            let error = state.write_error.take();
            error.map_or_else(|| Ok(self.enter(state, Kind::Other)), Err)
        });
        let running = running.await?;
        on_blocking_thread(|| running.run(|file, _| job(file))).await
    }

    /// Runs `job`, which needs no position, once all written bytes are in the file (rule 6). If
    /// `reports` is true and a buffered write has failed, returns that write's error and does not
    /// run `job`.
    pub(super) async fn run_beside<T: Send + 'static>(
        &self,
        reports: bool,
        job: impl FnOnce(&fs::File) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let may_begin = match cfg!(windows) {
            true => State::is_idle,
            false => State::is_settled,
        };
        let beside = self.when(may_begin, |mut state| {
            let error = state.write_error.take_if(|_| reports);
            error.map_or_else(|| Ok(self.enter_beside(state)), Err)
        });
        let beside = beside.await?;
        on_blocking_thread(|| beside.run(job)).await
    }

    /// Makes another descriptor of the file, at the position up to which tasks have read.
    /// Ends reading ahead for ever, as the descriptors share the position.
    pub(super) async fn try_clone(&self) -> io::Result<fs::File> {
        self.shared.lock().is_private = false;
        let shared = self.shared.clone();
        let clone = move |file: &fs::File| rewind(file, &shared).and_then(|()| file.try_clone());
        self.run(clone).await
    }

    /// Sets the file's length. A later read finds the contents that the file has then.
    pub(super) async fn set_len(&self, size: u64) -> io::Result<()> {
        let shared = self.shared.clone();
        let set = move |file: &fs::File| {
            rewind(file, &shared)?;
            shared.lock().read_nothing = None;
            file.set_len(size)
        };
        self.run(set).await
    }

    /// Waits until there is no job, not even one of `run_beside`.
    pub(super) async fn idle(&self) {
        let _ = self.end_stream(); // As in `expose`.
        self.when(State::is_unused, |_| ()).await;
    }

    /// Returns the file, at the position up to which tasks have read, if there is no job.
    pub(super) fn into_file(self) -> Result<fs::File, Self> {
        let mut state = self.shared.lock();
        let _ = state.end_stream(&self.file); // As in `expose`.
        let is_unused = state.is_unused();
        drop(state);
        if !is_unused {
            return Err(self);
        }
        // This changes only the kernel's position of the file. A file that cannot seek stays as it
        // is.
        let _ = rewind(&self.file, &self.shared);
        let Self { file, shared } = self;
        Arc::try_unwrap(file).map_err(|file| Self { file, shared })
    }
}

impl Running {
    fn run<T>(mut self, job: impl FnOnce(&fs::File, &Arc<Shared>) -> T) -> T {
        self.began = true;
        let file = self.file.clone().expect("only the drop takes it");
        job(&file, &self.shared)
    }
}

impl Beside {
    fn run<T>(self, job: impl FnOnce(&fs::File) -> T) -> T {
        job(self.file.as_ref().expect("only the drop takes it"))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.file = None;
        let mut state = self.shared.lock();
        state.beside -= 1;
        if state.is_unused() {
            wake_all(state);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.file = None;
        let mut state = self.shared.lock();
        let kind = state.job.take();
        match kind {
            // A write job changes its kind before it returns. So this job panicked: its bytes may
            // be lost.
            Some(Kind::Write) if self.began => {
                state.fail_write(io::Error::other("the write panicked"));
            }
            _ if self.began => {}
            Some(Kind::Read) => state.read_nothing = Some(Err(dropped())),
            Some(Kind::Write) => state.fail_write(dropped()),
            Some(Kind::Ahead) => {
                if let Some(stream) = &mut state.stream {
                    stream.stop(); // The read that finds no byte starts a job, which fails, too.
                }
            }
            Some(Kind::Seek(to)) => state.sought = Some((to, Err(dropped()))),
            Some(Kind::Other) | None => {}
        }
        wake_all(state);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        waiters::lock(&self.0)
    }

    /// Locks the state, if `is_ready` returns true for it. Otherwise keeps the task's waker.
    fn poll(
        &self,
        cx: &Context<'_>,
        task: Waiter,
        is_ready: impl Fn(&State) -> bool,
    ) -> Poll<MutexGuard<'_, State>> {
        let what = "an operation of the file";
        waiters::poll_lock(&self.0, what, cx, is_ready, |state| state.waker(task))
    }
}

/// Wakes all tasks that wait, without the lock.
fn wake_all(mut state: MutexGuard<'_, State>) {
    let ends = [state.reader.take(), state.writer.take()];
    let others = state.others.take();
    drop(state);
    waiters::wake_all(ends.into_iter().flatten().chain(others));
}

impl State {
    fn is_idle(&self) -> bool {
        self.job.is_none()
    }

    /// Returns whether no job has the file (rule 4).
    fn is_unused(&self) -> bool {
        self.is_idle() && self.beside == 0
    }

    /// Returns whether a read need not wait.
    fn may_read(&self) -> bool {
        self.is_idle() || self.stream.as_ref().is_some_and(Stream::has_bytes)
    }

    /// Returns whether there is a stream, or no job but one whose stream has ended.
    fn is_ahead(&self) -> bool {
        self.stream.is_some() || self.job == Some(Kind::Ahead)
    }

    /// Ends the stream, if there is one (rule 8).
    fn end_stream(&mut self, file: &fs::File) -> io::Result<()> {
        self.stream
            .take()
            .map_or(Ok(()), |stream| stream.close(file))
    }

    /// Seeks where [`is_ahead`](Self::is_ahead) is true: in a file whose seeks wait for nothing.
    fn seek_at_once(&mut self, mut file: &fs::File, to: SeekFrom) -> io::Result<u64> {
        self.end_stream(file)?;
        self.position = file.seek(to)?;
        Ok(self.position)
    }

    /// Returns whether no write is under way, and no change of the file's length.
    fn is_settled(&self) -> bool {
        !matches!(self.job, Some(Kind::Write | Kind::Other))
    }

    fn waker(&mut self, of: Waiter) -> &mut Option<Waker> {
        match of {
            Waiter::Reader => &mut self.reader,
            Waiter::Writer => &mut self.writer,
            Waiter::Other(key) => self.others.slot(key),
        }
    }

    fn queue(&mut self, from: &[IoSlice<'_>], limit: usize) -> usize {
        let before = self.queued.len();
        for part in from {
            let count = part.len().min(limit - self.queued.len());
            self.queued.extend_from_slice(&part[..count]);
        }
        self.queued.len() - before
    }

    /// Keeps the error, and drops the queued bytes: if they were written later, the file would have
    /// a gap before them.
    fn fail_write(&mut self, error: io::Error) {
        self.write_error = Some(error);
        self.queued.clear();
    }
}

fn read(mut file: &fs::File, shared: &Shared, len: usize) {
    let mut buffer = mem::take(&mut shared.lock().buffer);
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    let result = loop {
        match file.read(&mut buffer[..len]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => break result,
        }
    };
    let mut state = shared.lock();
    state.buffer = buffer;
    state.ahead = 0..*result.as_ref().unwrap_or(&0);
    if state.ahead.is_empty() {
        state.read_nothing = Some(result.map(drop));
    }
}

/// Begins a stream, and reads for it. Returns false if the file is not fit for one.
fn begin_stream(file: &fs::File, shared: &Arc<Shared>, room: usize, limit: usize) -> bool {
    let stream = Stream::open(file, room, limit);
    let mut state = shared.lock();
    if stream.is_none() || !state.is_private {
        return false;
    }
    state.stream = stream;
    state.job = Some(Kind::Ahead);
    drop(state);
    fill_stream(file, shared);
    true
}

/// Reads ahead until the stream has what it is to have, or has ended.
fn fill_stream(file: &fs::File, shared: &Arc<Shared>) {
    let mut read = 0;
    loop {
        let mut state = shared.lock();
        let may_extend = read < read_ahead::MOST_IN_A_JOB;
        let next = |stream: &mut Stream| stream.next_piece(may_extend);
        let Some(mut piece) = state.stream.as_mut().and_then(next) else {
            return;
        };
        drop(state);
        let count = piece.read(file);
        read += count;
        let mut state = shared.lock();
        let reader = state.reader.take();
        if let Some(stream) = &mut state.stream {
            stream.add(piece, count);
            if reader.is_some() && stream.has_window() {
                stream.widen();
            }
        }
        drop(state);
        waiters::wake_all(reader.into_iter());
        if Arc::strong_count(shared) == 1 {
            return; // The file was dropped.
        }
    }
}

fn write_queued(mut file: &fs::File, shared: &Shared) {
    let mut result = rewind(file, shared);
    let mut bytes = Vec::new();
    loop {
        let mut state = shared.lock();
        if let Err(error) = result {
            state.job = Some(Kind::Other);
            return state.fail_write(error);
        }
        if state.queued.is_empty() {
            state.job = Some(Kind::Other);
            bytes.clear();
            state.queued = bytes; // The memory of `bytes` serves the next write.
            return;
        }
        bytes.clear();
        mem::swap(&mut state.queued, &mut bytes);
        wake_all(state); // There is room in `queued`.
        result = file.write_all(&bytes);
    }
}

/// Returns whether a file has a position. On Windows a seek of a pipe may succeed, and do nothing.
fn has_position(file: &fs::File) -> bool {
    #[cfg(windows)]
    {
        use std::os::windows::io::AsRawHandle;
        use windows_sys::Win32::Storage::FileSystem::{
            FILE_TYPE_CHAR, FILE_TYPE_PIPE, GetFileType,
        };

        // SAFETY: the file has its handle open.
        let kind = unsafe { GetFileType(file.as_raw_handle()) };
        !matches!(kind, FILE_TYPE_CHAR | FILE_TYPE_PIPE)
    }
    #[cfg(not(windows))]
    {
        let _ = file; // The system refuses to seek.
        true
    }
}

fn seek(mut file: &fs::File, shared: &Shared, to: SeekFrom) {
    let ahead = shared.lock().ahead.len() as i64;
    let real = match to {
        SeekFrom::Current(by) => by.checked_sub(ahead).map(SeekFrom::Current),
        place => Some(place),
    };
    let result = match real {
        Some(_) if !has_position(file) => Err(ErrorKind::NotSeekable.into()),
        Some(real) => file.seek(real),
        None => Err(ErrorKind::InvalidInput.into()),
    };
    let mut state = shared.lock();
    if let Ok(position) = result {
        state.position = position;
        state.ahead = 0..0;
        state.read_nothing = None;
    }
    state.sought = Some((to, result));
}

/// Moves the file's position back to where tasks have read, and drops the bytes that were read
/// ahead.
fn rewind(mut file: &fs::File, shared: &Shared) -> io::Result<()> {
    let ahead = shared.lock().ahead.len() as i64;
    if ahead == 0 || !has_position(file) {
        return Ok(());
    }
    match file.seek(SeekFrom::Current(-ahead)) {
        Ok(_) => shared.lock().ahead = 0..0,
        // A pipe or a terminal has no position. The bytes that were read ahead stay for the next
        // read.
        Err(error) if error.kind() == ErrorKind::NotSeekable => {}
        Err(error) => return Err(error),
    }
    Ok(())
}
