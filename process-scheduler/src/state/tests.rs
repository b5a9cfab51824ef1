//! The waits that each bit ends, by one thread. The models of the core run the same transitions
//! against each other.
use super::*;

/// Each bit, and whether it ends the waits of a blocked, an idle and a stopped process.
const ENDS: [(u64, [bool; 3]); 5] = [
    (MESSAGE, [false, true, false]),
    (URGENT, [true, true, false]),
    (WAKE, [true, true, false]),
    (KILL, [true, true, false]),
    (FINAL, [true, true, true]),
];

const WAITS: [Wait; 2] = [Wait::Blocked, Wait::Idle];

/// Makes a state that runs.
fn running() -> RunState {
    let state = RunState::new();
    state.begin();
    state
}

#[test]
fn notification_of_a_waiting_process_ends_its_waits_only() {
    for (bit, ends) in ENDS {
        let blocked_or_idle = WAITS.map(|wait| {
            let state = running();
            assert_eq!(state.suspend(wait), SuspenderDuty::Waits);
            state
        });
        let stopped = running();
        assert!(stopped.stop());
        let states = blocked_or_idle.iter().chain([&stopped]);
        for (state, ends) in states.zip(ends) {
            let (before, notified) = (state.phase(), state.notify(bit));
            assert_eq!(
                notified == NotifierDuty::Submit,
                ends,
                "{bit:#b} in {before:?}"
            );
            let after = if ends { Phase::Ready } else { before };
            assert_eq!(state.phase(), after, "{bit:#b} in {before:?}");
        }
    }
}

/// Fails if a bit is left out of the mask of `suspend`.
#[test]
fn notification_of_a_running_process_ends_its_next_wait() {
    for (bit, ends) in ENDS {
        for (wait, ends) in WAITS.into_iter().zip(ends) {
            let state = running();
            assert_eq!(state.notify(bit), NotifierDuty::DoNothing);
            let suspended = state.suspend(wait);
            assert_eq!(
                suspended == SuspenderDuty::Ready,
                ends,
                "{bit:#b} in {wait:?}"
            );
        }
        let state = running();
        assert_eq!(state.notify(bit), NotifierDuty::DoNothing);
        assert_eq!(state.stop(), bit != FINAL, "{bit:#b}");
    }
}

/// A run takes the events, but no kill. A restart takes the kill, but no event.
#[test]
fn begin_clears_the_events_and_revive_clears_the_kill() {
    for (bit, _) in ENDS {
        let state = RunState::new();
        assert_eq!(state.notify(bit), NotifierDuty::DoNothing);
        assert_eq!(state.begin(), bit == WAKE, "{bit:#b}");
        let left = state.0.load(Relaxed) & bit;
        assert_eq!(left != 0, bit == KILL || bit == FINAL, "{bit:#b}");
        assert_eq!(state.is_killed(), left != 0, "{bit:#b}");
        assert_eq!(
            (state.is_final(), state.ends_for_good()),
            (bit == FINAL, bit == FINAL)
        );
    }
    for (bit, _) in ENDS.into_iter().filter(|(bit, _)| *bit != FINAL) {
        let state = running();
        assert_eq!(state.notify(bit), NotifierDuty::DoNothing);
        assert!(state.stop() && state.revive());
        assert_eq!(state.incarnation(), 1);
        let left = state.0.load(Relaxed) & bit;
        assert_eq!(left != 0, bit != KILL, "{bit:#b}");
    }
}
