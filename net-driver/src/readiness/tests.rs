use super::*;
use crate::ready::EVERY_INTEREST;

fn ready(word: &Readiness) -> Ready {
    word.load().ready()
}

#[test]
fn clear_with_the_snapshots_tick_clears_its_direction() {
    let word = Readiness::new(Ready::EMPTY);
    word.set(Ready::READABLE | Ready::WRITABLE);
    word.clear(word.load(), Interest::READABLE);
    assert_eq!(ready(&word), Ready::WRITABLE);
}

#[test]
fn clear_after_another_event_leaves_the_bit() {
    let word = Readiness::new(Ready::READABLE);
    let seen = word.load();
    word.set(Ready::READABLE);
    word.clear(seen, Interest::READABLE);
    assert_eq!(ready(&word), Ready::READABLE);
}

#[test]
fn event_of_one_direction_leaves_clears_of_the_other() {
    let word = Readiness::new(Ready::READABLE | Ready::WRITABLE);
    let seen = word.load();
    word.set(Ready::WRITABLE);
    word.clear(seen, Interest::READABLE);
    assert_eq!(ready(&word), Ready::WRITABLE);
    word.clear(seen, Interest::WRITABLE);
    assert_eq!(ready(&word), Ready::WRITABLE);
}

#[test]
fn closed_and_shutdown_bits_survive_a_clear() {
    let last = Ready::READ_CLOSED | Ready::WRITE_CLOSED | SHUTDOWN;
    let word = Readiness::new(last | Ready::READABLE | Ready::WRITABLE);
    word.clear(word.load(), Interest::READABLE | Interest::WRITABLE);
    assert_eq!(ready(&word), last);
    assert!(!word.load().is_ready_for(Interest::READABLE));
    assert!(word.load().is_shutdown());
}

/// Fails if a user's "would block" clears a closed direction, or does not clear an open one.
#[test]
fn users_clear_leaves_the_bits_of_a_closed_direction() {
    let (read, write) = (Interest::READABLE, Interest::WRITABLE);
    let word = Readiness::new(Ready::EMPTY);
    word.set(Ready::READABLE | Ready::READ_CLOSED | Ready::WRITABLE);
    word.clear_for_user(word.load(), read | write);
    assert!(word.load().is_ready_for(read) && !word.load().is_ready_for(write));
    word.set(Ready::WRITABLE | Ready::WRITE_CLOSED);
    word.clear_for_user(word.load(), read | write);
    assert!(word.load().is_ready_for(read) && word.load().is_ready_for(write));
}

/// Fails if a wait for priority data waits for more than the end of the stream.
#[test]
fn closed_read_half_ends_a_wait_for_priority_data() {
    let word = Readiness::new(Ready::EMPTY);
    word.set(Ready::READABLE);
    assert!(!word.load().is_ready_for(Interest::PRIORITY));
    word.set(Ready::READABLE | Ready::READ_CLOSED);
    word.clear(word.load(), Interest::READABLE | Interest::PRIORITY);
    assert!(word.load().is_ready_for(Interest::PRIORITY));
    assert!(!word.load().is_ready_for(Interest::READABLE));
}

/// Fails if the error of a pipe does not close its write half, or that of another source does.
#[test]
fn error_of_a_pipe_closes_its_write_half() {
    for (pipe, is_closed) in [(PIPE, true), (Ready::EMPTY, false)] {
        let word = Readiness::new(pipe);
        word.set(Ready::WRITABLE | Ready::ERROR);
        assert_eq!(word.load().ready().is_write_closed(), is_closed);
        assert!(!word.load().ready().is_read_closed());
        word.clear_for_user(word.load(), Interest::WRITABLE);
        assert_eq!(word.load().is_ready_for(Interest::WRITABLE), is_closed);
        let shown = word.load().ready_for(EVERY_INTEREST);
        assert!(!shown.intersects(PIPE));
    }
}

#[test]
fn short_read_clears_only_while_the_stream_is_open() {
    let word = Readiness::new(Ready::EMPTY);
    word.set(Ready::READABLE);
    word.clear_after_short(word.load(), Interest::READABLE);
    assert_eq!(ready(&word), Ready::EMPTY);
    word.set(Ready::READABLE | Ready::READ_CLOSED);
    word.clear_after_short(word.load(), Interest::READABLE);
    assert!(word.load().is_ready_for(Interest::READABLE));
}

#[test]
fn error_advances_both_ticks() {
    let word = Readiness::new(Ready::READABLE | Ready::WRITABLE);
    let seen = word.load();
    word.set(Ready::ERROR);
    word.clear(
        seen,
        Interest::READABLE | Interest::WRITABLE | Interest::ERROR,
    );
    assert_eq!(
        ready(&word),
        Ready::READABLE | Ready::WRITABLE | Ready::ERROR
    );
}

#[test]
fn tick_at_its_end_wraps_without_touching_the_other() {
    let last = Snapshot(TICK << READ_SHIFT | TICK << WRITE_SHIFT);
    let next = last.advanced(Ready::READABLE);
    assert_eq!((next.tick(READ_SHIFT), next.tick(WRITE_SHIFT)), (0, TICK));
    assert_eq!(next.ready(), Ready::READABLE);
    let next = last.advanced(Ready::WRITABLE);
    assert_eq!((next.tick(READ_SHIFT), next.tick(WRITE_SHIFT)), (TICK, 0));
    assert_eq!(next.ready(), Ready::WRITABLE);
}

#[test]
fn wait_for_reading_reports_the_read_half_only() {
    let all = Snapshot(u64::from(Ready::ALL.bits()));
    let read = Ready::READABLE | Ready::READ_CLOSED;
    assert_eq!(all.ready_for(Interest::READABLE), read);
    let write = Ready::WRITABLE | Ready::WRITE_CLOSED;
    assert_eq!(all.ready_for(Interest::WRITABLE), write);
    let priority = Ready::PRIORITY | Ready::READ_CLOSED;
    assert_eq!(all.ready_for(Interest::PRIORITY), priority);
}
