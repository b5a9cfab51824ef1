//! Compares the auto traits of our public types with those of the types that they replace.
//!
//! Each of our types has every auto trait that its peer has. `LACKING` lists the exceptions, each
//! with its reason.
use queue_global::Boxed;
use std::marker::PhantomData;

/// Whether a type is `Send`, `Sync`, `UnwindSafe` and `RefUnwindSafe`.
type Has = [bool; 4];

const NAMES: [&str; 4] = ["Send", "Sync", "UnwindSafe", "RefUnwindSafe"];

struct Probe<T: ?Sized>(PhantomData<T>);

/// The default of each constant of a probe. If `T` has the trait, an inherent constant of the same
/// name hides the default.
trait Otherwise {
    const SEND: bool = false;
    const SYNC: bool = false;
    const UNWIND_SAFE: bool = false;
    const REF_UNWIND_SAFE: bool = false;
}

impl<T: ?Sized> Otherwise for Probe<T> {}

macro_rules! hide {
    ($($name:ident: $bound:path,)*) => {
        $(impl<T: ?Sized + $bound> Probe<T> { const $name: bool = true; })*
    };
}

hide! {
    SEND: Send,
    SYNC: Sync,
    UNWIND_SAFE: std::panic::UnwindSafe,
    REF_UNWIND_SAFE: std::panic::RefUnwindSafe,
}

macro_rules! has {
    ($t:ty) => {
        [
            <Probe<$t>>::SEND,
            <Probe<$t>>::SYNC,
            <Probe<$t>>::UNWIND_SAFE,
            <Probe<$t>>::REF_UNWIND_SAFE,
        ]
    };
}

macro_rules! table {
    ($($theirs:ty => $($ours:ty),+;)*) => {
        [$($((stringify!($theirs), has!($theirs), stringify!($ours), has!($ours))),+),*]
    };
}

enum Nowhere {}

impl task_header::Schedule for Nowhere {
    fn schedule(task: task_header::Notified<Self>, _why: task_header::WakeKind) {
        drop(task);
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// A type of ours, a trait that it lacks, and why.
const LACKING: [(&str, &str, &str); 0] = [];

#[test]
fn our_types_have_the_auto_traits_of_their_peers() {
    let table: Vec<(&str, Has, &str, Has)> = table! {
        crossbeam_deque::Worker<u8> => queue_spmc::deque::Worker<u8>, queue_spmc::fifo::Worker<u8>;
        crossbeam_deque::Stealer<u8> =>
            queue_spmc::deque::Stealer<u8>, queue_spmc::fifo::Stealer<u8>;
        crossbeam_deque::Steal<u8> => queue_spmc::Steal<u8>;
        crossbeam_deque::Injector<u8> => queue_global::Injector<Boxed<u8>>;
        crossbeam_queue::SegQueue<u8> => queue_global::Injector<Boxed<u8>>;
        crossbeam_queue::ArrayQueue<u8> =>
            queue_spmc::ring::Worker<u8>, queue_spmc::ring::Stealer<u8>,
            queue_spmc::ring::Inline<u8, 2>, worker_queue::Slot<Boxed<u8>>;
        st3::fifo::Worker<u8> => queue_spmc::ring::Worker<u8>;
        st3::fifo::Stealer<u8> => queue_spmc::ring::Stealer<u8>;
        std::collections::LinkedList<u8> => queue_global::List<Boxed<u8>>;
        async_task::Runnable => task_header::Notified<Nowhere>;
        async_task::Task<u8> => task_header::JoinHandle<u8>;
        tokio::task::JoinHandle<u8> => task_header::JoinHandle<u8>;
        tokio::task::AbortHandle => task_header::AbortHandle;
        tokio::task::JoinError => task_header::JoinError;
        tokio::task::JoinSet<u8> => selvedge::JoinSet<u8>;
        tokio::task::LocalSet => selvedge::LocalSet;
        tokio::runtime::Runtime => selvedge::Runtime;
        tokio::runtime::Handle => selvedge::Handle;
        tokio::runtime::EnterGuard<'static> => selvedge::EnterGuard<'static>;
        tokio::runtime::Builder => selvedge::Builder;
        std::thread::JoinHandle<u8> => task_header::JoinHandle<u8>;
        std::task::Waker => waker_vtable::WakerRef<'static>;
        futures::task::AtomicWaker => waker_vtable::WakerCell;
        std::sync::Mutex<u8> => blocking_threads::Pool<Job>, queue_global::Injector<Boxed<u8>>;
        std::sync::atomic::AtomicU64 => worker_idle::Idle, coop_budget::Preempt;
    }
    .into();
    let mut wrong = Vec::new();
    for (theirs, they, ours, we) in table {
        println!("{theirs}: {they:?}; {ours}: {we:?}");
        for ((name, they), we) in NAMES.into_iter().zip(they).zip(we) {
            let is_known = LACKING.iter().any(|row| (row.0, row.1) == (ours, name));
            if (they && !we) != is_known {
                wrong.push(format!("{ours}, beside {theirs}: {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
