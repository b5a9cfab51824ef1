//! The runtime's driver of sockets and sleeps, if the feature `net` is on.
//!
//! 1. A runtime has one driver. Each worker parks in a parker of that driver, and this parker moves
//!    with the worker's core. If the workers park in parkers of users (the builder's drivers, or
//!    the parkers of driven workers), the driver's timers are put over each such parker.
//! 2. The driver is current wherever the runtime is current: in the scopes of
//!    [`scope`](crate::scope). A worker's thread enters the driver once, not for each poll.
//! 3. Until the first socket or sleep, a worker parks as it would without a driver, and a busy
//!    worker's look at the driver costs one load.
//! 4. The drop of the last core, with its parker, shuts the driver down. By then no task of the
//!    runtime waits for the driver. A future in a `block_on` may still wait for the driver: the
//!    shutdown wakes it.
//! 5. With the feature `test-util`, the driver has a clock that a test may pause. The clock must
//!    know of each thread that works for the runtime. It knows of the workers by their parks, and
//!    of the other threads by [`Events::block_on`] and [`ClockHold`].
//!
//! [`standby`] says who serves timers and sockets while a worker is in a long poll.
//!
//! The models of the executor run without a driver. The driver has models of its own.
#[cfg_attr(
    not(all(feature = "net", not(any(selvedge_loom, selvedge_shuttle)))),
    path = "events/none.rs"
)]
mod driver;
mod standby;

use driver as imp;

pub(crate) use imp::{
    ClockHold, DrivenEvents, Entered, Events, EventsPark, Over, Polling, poll_all,
};
