//! A frame loop: jobs in parallel, then tasks for as long as the frame's time lasts.
//!
//! Work that must be done within a frame is forked on a [`Pool`], and the frame waits for that
//! work. Work that may take many frames (a path, a level that loads, a script) is a task of the
//! game's thread. Such a task need not be `Send`. The tasks for which a frame has no time go on in
//! the next frame.
//!
//! 1. A wake, on any thread, sends the task to the game's list ([`LocalNotified::send`]), by one
//!    read-modify-write. A frame takes all tasks that were sent, in the order of their wakes.
//! 2. A frame runs at least one queued task, even with no time left, and queued tasks run in the
//!    order of the queue. So each queued task runs in the end.
//! 3. A task that awaits [`Frames::next`] is woken once, at the start of the next frame. A panic of
//!    its waker is caught.
use crate::join_pool::{Pool, Scope};
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    io, mem,
    rc::Rc,
    task::{Poll, Waker},
    time::{Duration, Instant},
};
use sync_shim::panics::contain;
use task_header::{JoinHandle, LocalNotified, LocalOwned, LocalRan, ScheduleLocal, WakeKind};

/// The jobs and tasks of a game. The drop of the game cancels the tasks.
pub struct Game {
    pool: Pool,
    frames: Frames,
    /// Declared before `tasks` and so dropped first: the list must outlive the queued tasks.
    queue: VecDeque<LocalNotified<InGame>>,
    tasks: LocalOwned<InGame>,
}

/// The figures of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Number of polls of tasks.
    pub polls: usize,
    /// Number of tasks that wait for the next frame because there was no time.
    pub left: usize,
}

/// The count of frames. Tasks can await the next frame.
#[derive(Clone, Default)]
pub struct Frames(Rc<Counted>);

#[derive(Default)]
struct Counted {
    number: Cell<u64>,
    /// The wakers of waiting tasks, taken when the number changes.
    waiting: RefCell<Vec<Waker>>,
}

/// The scheduler of the game's tasks. It needs no data, as a task knows the list to which it is
/// sent.
struct InGame;

impl ScheduleLocal for InGame {
    fn schedule(task: LocalNotified<Self>, _: WakeKind) {
        task.send();
    }
}

impl Frames {
    /// Returns the number of the frame that runs or ran last.
    pub fn number(&self) -> u64 {
        self.0.number.get()
    }

    /// Waits for the next frame. The wait stores one waker until then, however often it is polled.
    pub async fn next(&self) {
        let number = self.number();
        let mut place = None;
        poll_fn(|cx| {
            if self.number() != number {
                return Poll::Ready(());
            }
            let waker = cx.waker().clone();
            let mut waiting = self.0.waiting.borrow_mut();
            let before = match place {
                Some(place) => Some(mem::replace(&mut waiting[place], waker)),
                None => {
                    place = Some(waiting.len());
                    waiting.push(waker);
                    None
                }
            };
            drop(waiting); // Ends the borrow first, as the drop of a waker may use `waiting`.
            drop(before);
            Poll::Pending
        })
        .await;
    }

    fn begin(&self) {
        self.0.number.set(self.number() + 1);
        let waiting = self.0.waiting.take();
        // The wakers need not be those of this game's tasks.
        waiting
            .into_iter()
            .for_each(|waker| contain(|| waker.wake()));
    }
}

impl Game {
    /// Makes a game whose jobs run on `workers` threads.
    ///
    /// # Errors
    /// When a thread cannot be started.
    ///
    /// # Panics
    /// When `workers` is 0.
    pub fn new(workers: usize) -> io::Result<Self> {
        Ok(Self {
            pool: Pool::new(workers)?,
            frames: Frames::default(),
            queue: VecDeque::new(),
            // Each frame looks at the list, so the list needs no waker.
            tasks: LocalOwned::new(Waker::noop().clone()),
        })
    }

    /// Returns the game's count of frames.
    pub fn frames(&self) -> &Frames {
        &self.frames
    }

    /// Spawns a future that this thread polls from the next frame on.
    pub fn spawn<F>(&mut self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: 'static> + 'static,
    {
        let (task, join) = self.tasks.spawn(future, InGame);
        self.queue.push_back(task);
        join
    }

    /// Runs a frame: first the jobs that `update` spawns, and then tasks until `budget` is used up
    /// or no task is queued. The budget is a time, and includes the time of the jobs.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut game = adopt::game::Game::new(2)?;
    /// let frames = game.frames().clone();
    /// let script = game.spawn(async move {
    ///     frames.next().await;
    ///     frames.number()
    /// });
    /// let mut positions = [0.0, 1.0];
    /// while !script.is_finished() {
    ///     game.frame(Duration::from_millis(16), |jobs| {
    ///         positions.iter_mut().for_each(|x| jobs.spawn(move |_| *x += 0.5));
    ///     });
    /// }
    /// assert_eq!(positions, [1.0, 2.0]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// When `update` or a job panics. The tasks go on in the next frame.
    pub fn frame<'scope>(
        &mut self,
        budget: Duration,
        update: impl FnOnce(&Scope<'scope>) + Send,
    ) -> Frame {
        let begun = Instant::now();
        self.frames.begin();
        self.pool.scope(update);
        let mut polls = 0;
        loop {
            self.queue
                .extend(std::iter::from_fn(|| self.tasks.receive()));
            if polls > 0 && begun.elapsed() >= budget {
                break;
            }
            let Some(task) = self.queue.pop_front() else {
                break;
            };
            match self.tasks.run(task) {
                LocalRan::Notified(task) => self.queue.push_back(task),
                LocalRan::Complete | LocalRan::Pending => {}
                LocalRan::NotOwned(_) => unreachable!("the queue has the tasks of this list alone"),
            }
            polls += 1;
        }
        let left = self.queue.len();
        Frame { polls, left }
    }
}

impl fmt::Debug for Game {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Game").finish_non_exhaustive()
    }
}
