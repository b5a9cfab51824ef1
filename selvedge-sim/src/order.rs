//! The order in which threads run, and the time that their polls take. `rule` has the choices.

/// How the next thread is chosen, and how long polls take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// One of the orders below, as the seed says. The default.
    #[default]
    Any,
    /// Each thread that can run is equally likely to run next.
    Uniform,
    /// The thread with the highest priority runs, until a *change point*: then it gets the lowest
    /// priority. A bug that needs few changes of the thread at the right places is found with a
    /// known likelihood (PCT, by Burckhardt and others).
    Priorities,
    /// One thread runs only if no other can, apart from rare exceptions.
    Starve,
}

/// How long polls take in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Polls {
    /// One of the kinds below, as the seed says. The default.
    #[default]
    Any,
    /// No time, unless the poll itself takes some ([`busy`](crate::busy)).
    Instant,
    /// Some take up to 50 µs.
    Short,
    /// Some take up to 50 µs, and a few up to 40 ms.
    Long,
}
