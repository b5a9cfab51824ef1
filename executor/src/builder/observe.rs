//! The builder's settings of views: those that words turn on, and the flight recorder.
use crate::Builder;
use std::mem;

impl Builder {
    /// Turns views of the runtime on, by the words that the variable `SELVEDGE_OBSERVE` in the
    /// environment may have, with commas between them. The attribute
    /// `#[selvedge::main(observe = "…")]` calls this. The variable adds to these words.
    ///
    /// | word | turns on |
    /// |---|---|
    /// | `list` | the [list of tasks](Self::list_tasks) |
    /// | `dump` | the list, and a [dump](crate::Handle::dump) at SIGQUIT, with the feature `signal` on Unix |
    /// | `record` | a flight recorder of the last 30 s, with the feature `recorder`, saved at a stall, at a panic and at SIGQUIT into the folder `selvedge-recordings` of the working directory |
    /// | `record=FOLDER` | the same, with another folder |
    /// | `all` | each of them that the features of the build have |
    ///
    /// If a word needs a feature that the build has not, a line on the standard error says so.
    /// Other settings of the builder come before those of a word. A process no longer dies of
    /// SIGQUIT if it dumps or saves then.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().observe("list").build()?;
    /// assert!(runtime.handle().tasks().unwrap().is_empty());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there is no view of that name.
    #[track_caller]
    pub fn observe(mut self, words: &str) -> Self {
        let (views, others) = mem::take(&mut self.views).with_words(words);
        assert!(
            others.is_empty(),
            "no view `{}`: there are list, dump, record and all",
            others[0]
        );
        self.views = views;
        self
    }
}

#[cfg(all(feature = "recorder", not(any(selvedge_loom, selvedge_shuttle))))]
mod recorder {
    use crate::{Builder, Recordings};
    use std::time::Duration;

    impl Builder {
        /// Lets the recorder run from the first poll on, for as long as the runtime does. The last
        /// `keep` of its recording is what [`save_recordings`](Self::save_recordings) saves, and
        /// [`Tracer::save_last`](crate::Tracer::save_last) saves as much as you say.
        ///
        /// The recorder has two limits:
        ///
        /// - *Each worker's time*, of which it aims at no more than 3 %. While tasks are so short
        ///   that their events would cost more, it records in short windows, with gaps of up to
        ///   some 20 ms between them. The file shows the gaps. The recorder estimates the cost of
        ///   an event. At twice as many events as it records now, one worker that only spawned and
        ///   joined tasks lost 3 to 6 %, one whose tasks woke each other 2 to 3 %, and one of
        ///   echoes on sockets 1 %. The thread that saves files, and the monitor, are not in this.
        /// - *Its memory* ([`flight_recorder_memory`](Self::flight_recorder_memory)). A half of it
        ///   has the newest events of each worker. The other half has those of some windows: so few
        ///   that they go back for the time `keep`, however many events there are. A quiet time
        ///   before a storm of events is among these. If there are few events, nothing of the last
        ///   `keep` is missing.
        ///
        /// In the gaps, too, the recording has the polls that last for 5 ms, and on Linux the times
        /// of a millisecond and more in which a worker's thread was ready to run and had no CPU:
        /// the [monitor](Self::monitor) records these.
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// let keep = Duration::from_secs(10);
        /// let runtime = selvedge_executor::Builder::new().workers(1).flight_recorder(keep).build()?;
        /// runtime.block_on(runtime.spawn(async {})).unwrap();
        /// let capture = runtime.handle().trace().capture_last(Duration::from_secs(1));
        /// assert!(!capture.lanes()[0].events.is_empty());
        /// # Ok::<(), std::io::Error>(())
        /// ```
        ///
        /// # Panics
        /// If `keep` is zero.
        #[track_caller]
        pub fn flight_recorder(mut self, keep: Duration) -> Self {
            assert!(!keep.is_zero(), "a flight recorder keeps more than no time");
            self.recorder.keep = Some(keep);
            self
        }

        /// Sets the memory of the recorder's buffers, in bytes, for all workers together. By
        /// default a [flight recorder](Self::flight_recorder) has 16 MiB, and a recorder that
        /// [`Tracer::start`](crate::Tracer::start) starts has 2 MiB for each worker.
        ///
        /// An event takes 32 bytes, and up to 200 in a saved file. The workers have equal parts,
        /// rounded down to a power of two, of at least 32 KiB and at most 1 GiB each. A page of
        /// memory is taken when it is first written.
        ///
        /// These buffers come on top:
        ///
        /// | of | up to |
        /// |---|---|
        /// | 16 other threads that spawn or wake tasks | the part of one worker, for all of them together |
        /// | each further thread, and 64 threads that have ended | 4 KiB |
        /// | the names that [`TaskBuilder`](crate::TaskBuilder) gave | 256 KiB for each worker, 16 KiB for each other thread |
        /// | the list of the windows | 512 KiB |
        ///
        /// The events of other threads may go back less far.
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// let runtime = selvedge_executor::Builder::new()
        ///     .workers(1)
        ///     .flight_recorder(Duration::from_secs(10))
        ///     .flight_recorder_memory(0) // As little as possible.
        ///     .build()?;
        /// for _ in 0..1_000 {
        ///     runtime.block_on(runtime.spawn(async {})).unwrap();
        /// }
        /// assert!(runtime.handle().trace().capture().lanes()[0].events.len() <= 1_024);
        /// # Ok::<(), std::io::Error>(())
        /// ```
        pub fn flight_recorder_memory(mut self, bytes: usize) -> Self {
            self.recorder.memory = Some(bytes);
            self
        }

        /// Lets the runtime save its recording by itself: at stalls, panics, and whatever else the
        /// [`Recordings`] say. Set a [`flight_recorder`](Self::flight_recorder), too, or start the
        /// recorder by hand: else the files have no events.
        ///
        /// A thread of the runtime writes the files. If it cannot be started, the runtime goes on
        /// without it, and reports the error.
        ///
        /// ```
        /// use selvedge_executor::{Builder, Recordings};
        /// use std::time::Duration;
        ///
        /// let runtime = Builder::new()
        ///     .flight_recorder(Duration::from_secs(10))
        ///     .save_recordings(Recordings::new("/var/tmp/recordings").files(3))
        ///     .build()?;
        /// # Ok::<(), std::io::Error>(())
        /// ```
        pub fn save_recordings(mut self, recordings: Recordings) -> Self {
            self.recorder.recordings = Some(recordings);
            self
        }
    }
}
