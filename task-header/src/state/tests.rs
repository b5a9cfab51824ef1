//! Tests of the transitions on one thread; `models.rs` runs them against each other.
use super::*;

fn word(bits: usize) -> State {
    State(AtomicUsize::new(bits))
}

fn bits(state: &State) -> usize {
    state.0.load(Relaxed)
}

#[test]
fn wake_submits_an_idle_task_and_no_other() {
    let scenario = || {
        assert_eq!(word(LISTED).wake_by_ref(), Duty::Submit);
        assert_eq!(word(LISTED | NOTIFIED).wake_by_ref(), Duty::Nothing);
        assert_eq!(word(RUNNING).wake_by_ref(), Duty::Nothing);
        assert_eq!(word(JOIN_INTEREST | COMPLETE).wake_by_ref(), Duty::Nothing);
    };
    on_the_backend(scenario);
}

#[test]
fn a_wake_by_value_gives_its_reference_to_the_notified() {
    on_the_backend(|| {
        let state = word(REF_ONE);
        assert_eq!(state.wake_by_val(), Duty::Submit);
        assert_eq!(bits(&state), NOTIFIED);
        assert_eq!(word(REF_ONE | COMPLETE).wake_by_val(), Duty::Dealloc);
        assert_eq!(
            word(REF_ONE | COMPLETE | JOIN_INTEREST).wake_by_val(),
            Duty::Nothing
        );
    });
}

#[test]
fn a_wake_in_a_poll_gives_one_more_poll() {
    on_the_backend(|| {
        let state = word(RUNNING | LISTED);
        assert_eq!(state.wake_by_ref(), Duty::Nothing);
        assert_eq!(state.wake_by_ref(), Duty::Nothing);
        assert_eq!(state.pend(false), Pend::Notified);
        assert_eq!(state.start(), Start::Poll);
        assert_eq!(state.pend(false), Pend::Idle);
    });
}

#[test]
fn an_observer_sees_what_the_task_does() {
    on_the_backend(|| {
        for waiting in [0, REF_ONE | LISTED, JOIN_INTEREST | CANCELLED] {
            assert_eq!(word(waiting).observed(), TaskState::Waiting);
        }
        for active in [RUNNING, NOTIFIED, RUNNING | NOTIFIED, NOTIFIED | CANCELLED] {
            assert_eq!(word(active).observed(), TaskState::Active);
        }
        for complete in [COMPLETE, COMPLETE | CANCELLED, COMPLETE | JOIN_WAKER] {
            assert_eq!(word(complete).observed(), TaskState::Complete);
        }
    });
}

#[test]
fn a_run_that_goes_on_leaves_the_word_as_it_is() {
    on_the_backend(|| {
        let state = word(RUNNING | LISTED);
        assert!(!state.is_woken() && !state.is_aborted());
        assert_eq!(state.start(), Start::Poll);
        assert_eq!(bits(&state), RUNNING | LISTED);
    });
}

#[test]
fn wake_or_abort_of_a_run_going_on_submits_nothing_and_is_seen() {
    on_the_backend(|| {
        let state = word(RUNNING | LISTED);
        assert_eq!(state.wake_by_ref(), Duty::Nothing);
        assert!(state.is_woken() && !state.is_aborted());
        assert_eq!(state.start(), Start::Poll);
        assert_eq!(bits(&state), RUNNING | LISTED);
        assert_eq!(state.abort(), Duty::Nothing);
        assert_eq!(state.start(), Start::Cancel);
        assert_eq!(bits(&state), RUNNING | CANCELLED | LISTED);
    });
}

#[test]
fn an_abort_in_a_poll_shows_at_its_end() {
    on_the_backend(|| {
        for woken in [false, true] {
            let state = word(RUNNING | JOIN_INTEREST);
            if woken {
                assert_eq!(state.wake_by_ref(), Duty::Nothing);
            }
            assert_eq!(state.abort(), Duty::Nothing);
            assert!(!state.is_woken() && state.is_aborted());
            assert_eq!(state.start(), Start::Cancel);
            assert_eq!(bits(&state), RUNNING | CANCELLED | JOIN_INTEREST);
        }
    });
}

#[test]
fn an_abort_after_a_poll_shows_at_the_runs_end() {
    on_the_backend(|| {
        for list in [false, true] {
            let state = word(RUNNING);
            assert!(!state.is_woken() && !state.is_aborted());
            assert_eq!(state.abort(), Duty::Nothing);
            assert_eq!(state.pend(list), Pend::Aborted);
            let listed = if list { LISTED } else { 0 };
            assert_eq!(bits(&state), NOTIFIED | CANCELLED | listed);
            assert_eq!(state.start(), Start::Cancel);
        }
    });
}

#[test]
fn a_run_that_goes_on_is_a_reference() {
    on_the_backend(|| {
        let state = word(RUNNING | REF_ONE | JOIN_INTEREST);
        assert_eq!(state.ref_dec(), Duty::Nothing);
        assert_eq!(state.leave_join(), LeaveJoin::Left(Duty::Nothing));
        assert_eq!(state.start(), Start::Poll);
        assert_eq!(state.pend(false), Pend::Orphan);
    });
}

#[test]
fn an_abort_is_seen_by_the_next_start() {
    on_the_backend(|| {
        let state = word(LISTED);
        assert_eq!(state.abort(), Duty::Submit);
        assert_eq!(state.abort(), Duty::Nothing);
        assert_eq!(state.start(), Start::Cancel);
    });
}

#[test]
fn the_last_reference_to_a_pending_task_submits_it_cancelled() {
    on_the_backend(|| {
        let state = word(REF_ONE);
        assert_eq!(state.ref_dec(), Duty::Submit);
        assert_eq!(state.start(), Start::Cancel);
        let state = word(JOIN_INTEREST);
        assert_eq!(state.leave_join(), LeaveJoin::Left(Duty::Submit));
        let state = word(RUNNING);
        assert_eq!(state.pend(false), Pend::Orphan);
    });
}

#[test]
fn last_reference_completes_without_changing_the_word() {
    on_the_backend(|| {
        let state = word(RUNNING | NOTIFIED);
        assert_eq!(state.complete(true, false), Complete::DropOutput);
        assert_eq!(state.complete(false, false), Complete::Dealloc);
        assert_eq!(bits(&state), RUNNING | NOTIFIED);
    });
}

#[test]
fn a_joined_completion_keeps_the_run_only_to_wake() {
    on_the_backend(|| {
        let state = word(RUNNING | JOIN_INTEREST | LISTED);
        assert_eq!(state.complete(true, true), Complete::Done);
        assert_eq!(bits(&state), JOIN_INTEREST | COMPLETE);
        let state = word(RUNNING | JOIN_INTEREST | JOIN_WAKER | LISTED);
        assert_eq!(state.complete(true, true), Complete::WakeJoin);
        assert_eq!(state.release_run(true), Duty::Nothing);
        assert_eq!(state.release_join(), Duty::Dealloc);
    });
}

#[test]
fn a_listed_task_that_ends_elsewhere_waits_for_its_owner() {
    on_the_backend(|| {
        let state = word(RUNNING | LISTED);
        assert_eq!(state.complete(false, false), Complete::Done);
        assert_eq!(state.release_listed(), Duty::Dealloc);
    });
}

#[test]
fn last_release_of_a_complete_task_leaves_the_word_unchanged() {
    on_the_backend(|| {
        for last in [LISTED, JOIN_INTEREST] {
            let release = |state: &State| match last {
                LISTED => state.release_listed(),
                _ => state.release_join(),
            };
            let state = word(COMPLETE | last);
            assert_eq!(release(&state), Duty::Dealloc);
            assert_eq!(bits(&state), COMPLETE | last);
            let state = word(COMPLETE | last | REF_ONE);
            assert_eq!(release(&state), Duty::Nothing);
            assert_eq!(bits(&state), COMPLETE | REF_ONE);
        }
    });
}

#[test]
fn dropped_join_handle_takes_its_waker_back_first() {
    on_the_backend(|| {
        let state = word(NOTIFIED | JOIN_INTEREST);
        state.set_join_waker().unwrap();
        assert_eq!(state.leave_join(), LeaveJoin::DropWaker);
        assert_eq!(state.leave_join(), LeaveJoin::Left(Duty::Nothing));
        assert_eq!(bits(&state), NOTIFIED);
        let state = word(COMPLETE | JOIN_INTEREST | JOIN_WAKER);
        assert_eq!(state.unset_join_waker(), Err(AlreadyComplete));
        assert_eq!(state.leave_join(), LeaveJoin::DropOutput);
    });
}

#[test]
fn task_ended_elsewhere_stays_listed_during_its_join_wake() {
    on_the_backend(|| {
        let state = State::new(true, true);
        assert_eq!(state.start(), Start::Poll);
        state.set_join_waker().unwrap();
        assert_eq!(state.complete(true, false), Complete::WakeJoin);
        assert!(state.is_complete() && state.is_listed());
        assert_eq!(
            bits(&state),
            COMPLETE | RUNNING | LISTED | JOIN_INTEREST | JOIN_WAKER
        );
        assert_eq!(state.release_run(false), Duty::Nothing);
        assert_eq!(state.leave_join(), LeaveJoin::DropOutput);
        assert_eq!(state.release_join(), Duty::Nothing);
        assert_eq!(bits(&state) & (JOIN_INTEREST | RUNNING), 0);
        assert_eq!(state.release_listed(), Duty::Dealloc);
    });
}

#[test]
fn completion_of_an_unlisted_task_does_not_list_it() {
    on_the_backend(|| {
        let state = State::new(true, false);
        assert_eq!(state.start(), Start::Poll);
        state.set_join_waker().unwrap();
        assert_eq!(state.complete(true, false), Complete::WakeJoin);
        assert!(!state.is_listed());
        assert_eq!(state.leave_join(), LeaveJoin::DropOutput);
        assert_eq!(state.release_join(), Duty::Nothing);
        assert_eq!(state.release_run(false), Duty::Dealloc);
    });
}

#[test]
fn removed_task_keeps_listed_until_the_run_is_released() {
    on_the_backend(|| {
        let state = State::new(true, true);
        let Start::Poll = state.start() else {
            panic!("the task starts with a poll")
        };
        state.set_join_waker().unwrap();
        assert_eq!(state.complete(true, true), Complete::WakeJoin);
        assert_eq!(state.leave_join(), LeaveJoin::DropOutput);
        assert_eq!(state.release_join(), Duty::Nothing);
        assert_eq!(state.release_run(true), Duty::Dealloc);
    });
}

#[test]
fn joined_bit_is_read_and_abort_sets_its_bits_once() {
    on_the_backend(|| {
        assert!(State::new(true, false).is_joined() && !State::new(false, false).is_joined());
        let state = word(LISTED);
        assert_eq!(state.abort(), Duty::Submit);
        assert_eq!(bits(&state), LISTED | NOTIFIED | CANCELLED);
        assert_eq!(state.abort(), Duty::Nothing);
        assert_eq!(state.start(), Start::Cancel);
    });
}

#[test]
fn complete_and_join_waker_bits_are_read_beside_other_bits() {
    on_the_backend(|| {
        let (own, most) = (JOIN_INTEREST, !(COMPLETE | JOIN_WAKER));
        for rest in [own, most] {
            assert!(!word(rest).is_complete());
            assert!(word(rest | COMPLETE).is_complete());
            assert_eq!(word(rest).has_join_waker(), Ok(false));
            assert_eq!(word(rest | JOIN_WAKER).has_join_waker(), Ok(true));
            let late = word(rest | COMPLETE | JOIN_WAKER).has_join_waker();
            assert_eq!(late, Err(AlreadyComplete));
            assert!(!word(rest | COMPLETE).gave_join_waker());
            assert!(word(rest | COMPLETE | JOIN_WAKER).gave_join_waker());
        }
    });
}

#[test]
fn unset_join_waker_returns_the_slot_to_the_handle() {
    on_the_backend(|| {
        let state = State::new(true, false);
        state.set_join_waker().unwrap();
        assert_eq!(bits(&state), NOTIFIED | JOIN_INTEREST | JOIN_WAKER);
        state.unset_join_waker().unwrap();
        assert_eq!(bits(&state), NOTIFIED | JOIN_INTEREST);
    });
}

#[test]
fn debug_output_of_a_state_names_its_bits_and_count() {
    on_the_backend(|| {
        let shown = alloc::format!("{:?}", word(RUNNING | LISTED | (2 * REF_ONE)));
        assert_eq!(shown, "RUNNING LISTED +2");
    });
}

/// Each count is tried in a process of its own, because a count that overflows ends the process.
#[test]
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
fn a_count_that_reaches_the_sign_bit_aborts() {
    const CHILD: &str = "SELVEDGE_TEST_COUNT";
    if let Ok(before) = std::env::var(CHILD) {
        return word(before.parse().unwrap()).ref_inc();
    }
    let most = isize::MAX as usize;
    for (before, lives) in [
        (most - 1, true),
        (most, true),
        (most + 1, false),
        (most + 2, false),
    ] {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "state::tests::a_count_that_reaches_the_sign_bit_aborts",
            ])
            .env(CHILD, before.to_string())
            .output()
            .unwrap();
        assert_eq!(child.status.success(), lives, "{before:#x}");
    }
}

/// Runs a scenario, inside a model if the atomics are those of a model checker.
pub(super) fn on_the_backend(scenario: fn()) {
    #[cfg(any(selvedge_loom, selvedge_shuttle))]
    sync_shim::model(scenario);
    #[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
    scenario();
}
