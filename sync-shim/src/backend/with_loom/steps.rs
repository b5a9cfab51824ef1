//! Records the steps of an execution, so that a model that fails can show its interleaving.
//!
//! With `SELVEDGE_STEPS=1` a model that fails prints the steps of its last execution, in their
//! order: the thread, the place in the code, the object and the operation. The threads have the
//! numbers of their spawns. The objects have numbers in the order in which the execution first
//! reaches them. What loom does by itself is no step here: an `Arc`, an unlock, an unpark, a join.
//!
//! A model that aborts can print nothing at its end. So a second panic in one execution, which may
//! abort, prints the steps too.
use std::{
    cell::RefCell,
    collections::HashMap,
    env, panic,
    panic::Location,
    ptr,
    sync::{
        LazyLock, Once,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

static IS_ON: LazyLock<AtomicBool> =
    LazyLock::new(|| AtomicBool::new(env::var_os("SELVEDGE_STEPS").is_some()));

#[derive(Default)]
struct Record {
    executions: u64,
    steps: Vec<String>,
    /// The number of each object, by its address.
    objects: HashMap<usize, usize>,
    spawned: usize,
    panics: usize,
}

std::thread_local! {
    /// The record of the present execution, which all threads of a model share, as they run on one
    /// real thread.
    static RECORD: RefCell<Record> = RefCell::default();
}

loom::thread_local! {
    /// The number of the model's thread, if the shim has spawned it.
    static NUMBER: RefCell<Option<usize>> = RefCell::new(None);
}

fn is_on() -> bool {
    // Ordering: Relaxed. The flag is set before the model begins.
    IS_ON.load(Relaxed)
}

/// Begins the record of the next execution.
pub(super) fn begin() {
    if !is_on() {
        return;
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            usual(panic);
            let again = RECORD.with_borrow_mut(|record| {
                record.steps.push(format!("{panic}").replace('\n', " "));
                record.panics += 1;
                record.panics > 1
            });
            if again {
                eprint!("{}", text());
            }
        }));
    });
    RECORD.with_borrow_mut(|record| {
        *record = Record {
            executions: record.executions + 1,
            ..Record::default()
        };
    });
}

/// Records an operation that has been done on `object`. The place is that of the caller's caller.
#[track_caller]
pub(super) fn on<T: ?Sized>(object: &T, what: impl FnOnce() -> String) {
    if is_on() {
        let address = ptr::from_ref(object).cast::<()>().addr();
        let number = RECORD.with_borrow_mut(|record| {
            let next = record.objects.len() + 1;
            *record.objects.entry(address).or_insert(next)
        });
        step(Location::caller(), &format!("#{number} {}", what()));
    }
}

/// Records an operation that has no object.
#[track_caller]
pub(super) fn note(what: impl FnOnce() -> String) {
    if is_on() {
        step(Location::caller(), &what());
    }
}

fn step(place: &Location<'_>, what: &str) {
    // In the destructors of a thread's locals its number may be gone.
    let number = NUMBER.try_with(|number| *number.borrow());
    let thread = match number {
        Ok(None) => "main".into(),
        Ok(Some(number)) => format!("thread {number}"),
        Err(_) => "a thread's end".into(),
    };
    RECORD.with_borrow_mut(|record| record.steps.push(format!("{thread:<8}  {place}  {what}")));
}

/// Returns the number of the thread that the caller is about to spawn.
pub(super) fn spawned() -> usize {
    RECORD.with_borrow_mut(|record| {
        record.spawned += 1;
        record.spawned
    })
}

/// Gives the calling thread, which has begun, its number.
pub(super) fn begin_thread(number: usize) {
    if is_on() {
        NUMBER.with(|own| *own.borrow_mut() = Some(number));
    }
}

/// Prints the steps if the model is failing: if this is called while a panic unwinds.
pub(crate) fn print_if_panicking() {
    if is_on() && std::thread::panicking() {
        eprint!("{}", text());
    }
}

/// Returns the steps of the last execution, between two lines that `cargo xtask loom` looks for.
fn text() -> String {
    RECORD.with_borrow(|record| {
        let steps: String = record
            .steps
            .iter()
            .map(|step| format!("  {step}\n"))
            .collect();
        format!(
            "\nsteps of execution {}:\n{steps}end of the steps\n",
            record.executions
        )
    })
}

#[cfg(test)]
mod models {
    use super::*;
    use crate::{
        Model,
        atomic::{AtomicU32, Ordering::SeqCst},
        sync::Arc,
        thread,
    };

    /// Two threads load and then store, instead of a read-modify-write. The model fails in an
    /// execution in which both load 0.
    #[test]
    fn model_that_fails_has_the_steps_of_its_execution() {
        // Ordering: Relaxed, as in `is_on`.
        IS_ON.store(true, Relaxed);
        Model::new().must_fail("an addition is lost", || {
            let count = Arc::new(AtomicU32::new(0));
            let add = |count: &AtomicU32| {
                let now = count.load(SeqCst);
                count.store(now + 1, SeqCst);
            };
            let other = {
                let count = count.clone();
                thread::spawn(move || add(&count))
            };
            add(&count);
            other.join().unwrap();
            assert_eq!(count.load(SeqCst), 2, "an addition is lost");
        });
        let text = text();
        let at = |what: &str| {
            let found = text.lines().position(|line| line.contains(what));
            found.unwrap_or_else(|| panic!("no {what:?} in {text}"))
        };
        let of = |thread: &str, operation: &str| {
            let is_it = |line: &&str| line.contains(thread) && line.contains(operation);
            let line = text.lines().find(is_it);
            at(line.unwrap_or_else(|| panic!("no {operation} of {thread} in {text}")))
        };
        for thread in ["main", "thread 1"] {
            let (load, store) = (
                of(thread, "load(SeqCst) = 0"),
                of(thread, "store(1, SeqCst)"),
            );
            assert!(load < store && store < at("load(SeqCst) = 1"), "{text}");
        }
        assert!(at("load(SeqCst) = 1") < at("an addition is lost"), "{text}");
        assert!(text.contains("steps.rs:"), "{text}");
    }
}
