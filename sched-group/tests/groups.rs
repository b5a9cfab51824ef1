//! Tests in virtual time of the groups' work, shares, children, caps, latency goals and counters.
use sched_group::{
    BadCap, Cap, Clock, DestroyError, FairQueue, GroupKey, Pick, Shares, Stale, ZeroShares,
};
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

fn shares(number: u32) -> Shares {
    Shares::new(number).unwrap()
}

fn micros(number: u64) -> Duration {
    Duration::from_micros(number)
}

/// Runs the picked groups for a number of turns, in polls of `poll` microseconds. Returns the
/// group's name for each turn.
fn turns<C: Clock>(
    queue: &mut FairQueue<char, C>,
    time: &Cell<u64>,
    poll: u64,
    count: usize,
) -> String {
    let turn = |_| {
        let Pick::Run(group) = queue.pick() else {
            panic!("nobody runs")
        };
        loop {
            time.set(time.get() + 1000 * poll);
            if queue.should_switch() {
                return *queue.get(group).unwrap();
            }
        }
    };
    (0..count).map(turn).collect()
}

fn count(turns: &str, name: char) -> usize {
    turns.chars().filter(|&turn| turn == name).count()
}

#[test]
fn equals_take_turns_in_the_order_they_came() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let [a, b, c] = ['a', 'b', 'c'].map(|name| queue.insert(shares(7), name));
    for key in [c, a, b] {
        queue.activate(key).unwrap();
    }
    assert_eq!(turns(&mut queue, &time, 100, 9), "cabcabcab");
}

#[test]
fn goal_of_a_waiting_group_shortens_turns() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let [a, b, c] = ['a', 'b', 'c'].map(|name| queue.insert(shares(7), name));
    queue.set_latency(c, Some(micros(50))).unwrap();
    assert_eq!(queue.latency(c), Ok(Some(micros(50))));
    queue.activate(a).unwrap();
    assert_eq!(queue.pick(), Pick::Run(a));
    assert_eq!(queue.turn_end(), None, "it is alone");
    time.set(100_000);
    queue.activate(c).unwrap(); // The turn is watched from now on.
    assert_eq!(queue.turn_end(), Some(150_000));
    time.set(150_000);
    assert_eq!(queue.switch(), Some(Pick::Run(c)));
    // The turn of `c` itself lasts for the quota.
    assert_eq!(queue.turn_end(), Some(650_000));
    queue.activate(b).unwrap();
    assert_eq!(queue.turn_end(), Some(650_000));
    time.set(160_000);
    let Pick::Run(next) = queue.pick_another() else {
        panic!("a and b have work")
    };
    assert_eq!(queue.turn_end(), Some(660_000), "c has no work");
    // The turn is longer than the goal of `c` already, so it ends now.
    time.set(360_000);
    assert_eq!(queue.switch(), None);
    queue.activate(c).unwrap();
    assert_eq!(queue.turn_end(), Some(360_000));
    queue.set_latency(c, None).unwrap();
    assert_eq!(queue.latency(c), Ok(None));
    queue.deactivate(c).unwrap();
    queue.destroy(c).unwrap();
    assert_eq!(queue.latency(c), Err(Stale(())));
    assert!(queue.pick() != Pick::Run(next));
    assert_eq!(queue.turn_end(), Some(860_000));
}

#[test]
fn least_goal_counts_and_ends_with_its_group() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let [a, b, c] = ['a', 'b', 'c'].map(|name| queue.insert(shares(7), name));
    for key in [a, b, c] {
        queue.activate(key).unwrap();
    }
    assert_eq!(queue.pick(), Pick::Run(a));
    queue.set_latency(b, Some(micros(80))).unwrap();
    queue.set_latency(c, Some(micros(20))).unwrap();
    assert_eq!(queue.turn_end(), Some(20_000));
    queue.deactivate(c).unwrap();
    queue.destroy(c).unwrap();
    time.set(30_000);
    assert_eq!(queue.switch(), Some(Pick::Run(b)));
    assert_eq!(queue.turn_end(), Some(530_000));
    time.set(70_000);
    assert_eq!(queue.pick(), Pick::Run(a));
    assert_eq!(queue.turn_end(), Some(150_000));
    // A goal beyond the clock's range is valid, and a goal of zero ends each turn at its first
    // check.
    queue.set_latency(b, Some(Duration::MAX)).unwrap();
    time.set(90_000);
    assert_eq!(queue.pick(), Pick::Run(b));
    queue.set_latency(a, Some(Duration::ZERO)).unwrap();
    assert!(queue.should_switch());
}

/// Fails if the goal of a group counts while the cap of an ancestor keeps the group from running.
/// Fails also if the goal does not count once that cap releases the ancestor.
#[test]
fn goal_below_a_throttled_ancestor_does_not_count() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let [capped, a, b] = ['c', 'a', 'b'].map(|name| queue.insert(shares(7), name));
    let middle = queue.insert_under(capped, shares(7), 'm').unwrap();
    let [runs, waits, late] =
        ['r', 'w', 'l'].map(|name| queue.insert_under(middle, shares(7), name).unwrap());
    let cap = Cap::new(micros(10), micros(1000)).unwrap();
    queue.set_cap(capped, Some(cap)).unwrap();
    queue.set_latency(waits, Some(micros(5))).unwrap();
    for key in [runs, waits, a, b] {
        queue.activate(key).unwrap();
    }
    assert_eq!(queue.pick(), Pick::Run(runs));
    assert_eq!(queue.turn_end(), Some(5_000));
    time.set(10_000);
    assert_eq!(queue.switch(), Some(Pick::Run(a)));
    assert_eq!(queue.is_throttled(capped), Ok(true));
    assert_eq!(queue.turn_end(), Some(510_000));
    // A goal that is set while the ancestor is throttled does not count either, nor does the goal
    // of a group that gets work then.
    queue.set_latency(late, Some(micros(3))).unwrap();
    queue.activate(late).unwrap();
    queue.set_latency(runs, Some(micros(4))).unwrap();
    assert_eq!(queue.turn_end(), Some(510_000));
    time.set(510_000);
    assert_eq!(queue.switch(), Some(Pick::Run(b)));
    assert_eq!(queue.turn_end(), Some(1_010_000));
    // Now the ancestor is released, and the least of the three goals counts.
    time.set(1_010_000);
    assert_eq!(queue.switch(), Some(Pick::Run(a)));
    assert_eq!(queue.turn_end(), Some(1_013_000));
    // The removal of the cap releases the ancestor at once, too.
    while queue.is_throttled(capped) == Ok(false) {
        time.set(time.get() + 10_000);
        assert!(queue.switch().is_some());
    }
    assert_eq!(queue.turn_end(), Some(time.get() + 500_000));
    queue.set_cap(capped, None).unwrap();
    assert_eq!(queue.turn_end(), Some(time.get() + 3_000));
}

/// Fails if the goal of a group counts while the group's own cap keeps the group from running.
#[test]
fn goal_of_a_throttled_group_does_not_count() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let [a, b, c] = ['a', 'b', 'c'].map(|name| queue.insert(shares(7), name));
    let cap = Cap::new(micros(10), micros(2000)).unwrap();
    queue.set_cap(a, Some(cap)).unwrap();
    queue.set_latency(a, Some(micros(5))).unwrap();
    for key in [a, b, c] {
        queue.activate(key).unwrap();
    }
    assert_eq!(queue.pick(), Pick::Run(a));
    time.set(10_000);
    assert_eq!(queue.switch(), Some(Pick::Run(b)));
    assert_eq!(queue.is_throttled(a), Ok(true));
    assert_eq!(queue.turn_end(), Some(510_000));
    queue.set_cap(a, None).unwrap(); // Now `a` waits.
    assert_eq!(queue.turn_end(), Some(15_000));
}

#[test]
fn turn_lasts_for_the_quota() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    assert_eq!(queue.quota(), micros(500));
    let [a, b] = ['a', 'b'].map(|name| queue.insert(shares(1), name));
    queue.activate(a).unwrap();
    queue.activate(b).unwrap();
    assert!(queue.should_switch());
    assert_eq!(queue.pick(), Pick::Run(a));
    assert_eq!(queue.turn_end(), Some(500_000));
    time.set(499_999);
    assert!(!queue.should_switch());
    time.set(500_000);
    assert!(queue.should_switch());
    queue.set_quota(Duration::ZERO);
    assert_eq!(queue.pick(), Pick::Run(b));
    assert!(queue.should_switch());
    queue.end_turn();
    assert_eq!(queue.current(), None);
    assert!(queue.should_switch());
    queue.set_quota(Duration::MAX);
    assert_eq!(queue.pick(), Pick::Run(b));
    assert_eq!(queue.turn_end(), Some(u64::MAX));
}

#[test]
fn lone_group_reads_no_clock_between_polls() {
    let readings = Cell::new(0);
    let mut queue = FairQueue::new(|| {
        readings.set(readings.get() + 1);
        readings.get()
    });
    let [a, b] = ['a', 'b'].map(|name| queue.insert(shares(1), name));
    queue.activate(a).unwrap();
    assert_eq!(queue.pick(), Pick::Run(a));
    let before = readings.get();
    assert!((0..1000).all(|_| !queue.should_switch()));
    queue.activate(a).unwrap();
    assert_eq!((readings.get(), queue.turn_end()), (before, None));
    // The turn becomes watched, and then is not watched any more.
    queue.activate(b).unwrap();
    assert!(!queue.should_switch());
    assert_eq!(readings.get(), before + 2);
    queue.deactivate(b).unwrap();
    assert!(!queue.should_switch());
    assert_eq!(readings.get(), before + 2);
    // A switch reads the clock once.
    queue.activate(b).unwrap();
    let before = readings.get();
    assert_eq!(queue.pick_another(), Pick::Run(b));
    assert_eq!(readings.get(), before + 1);
}

#[test]
fn group_that_slept_has_no_credit() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let [a, b] = ['a', 'b'].map(|name| queue.insert(shares(1), name));
    queue.activate(a).unwrap();
    assert_eq!(queue.pick(), Pick::Run(a));
    // The turn is not watched, and lasts for an hour. Then the other group starts at the same
    // virtual runtime.
    time.set(3_600_000_000_000);
    queue.activate(b).unwrap();
    assert_eq!(queue.vruntime(a), queue.vruntime(b));
    // The turn lasts for one more quota from now.
    assert!(!queue.should_switch());
    time.set(time.get() + 500_000);
    assert!(queue.should_switch());
    assert_eq!(turns(&mut queue, &time, 500, 6), "bababa");
    assert_eq!(queue.metrics(a).unwrap().violations, 0);
    // A group that sleeps while another group has turns gets no credit either.
    queue.deactivate(b).unwrap();
    for _ in 0..50 {
        assert_eq!(queue.pick(), Pick::Run(a));
        time.set(time.get() + 500_000);
    }
    queue.activate(b).unwrap();
    let turns = turns(&mut queue, &time, 500, 10);
    assert_eq!(count(&turns, 'b'), 5, "{turns}");
}

#[test]
fn group_that_ran_alone_owes_nobody() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let [a, b] = ['a', 'b'].map(|name| queue.insert(shares(1), name));
    queue.activate(a).unwrap();
    assert_eq!(queue.pick(), Pick::Run(a));
    time.set(3_600_000_000_000);
    assert_eq!(queue.pick_another(), Pick::Idle);
    queue.activate(b).unwrap();
    queue.activate(a).unwrap();
    assert_eq!(turns(&mut queue, &time, 500, 6), "bababa");
}

#[test]
fn debt_outlives_a_sleep() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let [a, b] = ['a', 'b'].map(|name| queue.insert(shares(1), name));
    queue.activate(a).unwrap();
    queue.activate(b).unwrap();
    // Group `a` has one long poll and then no work, while `b` has work.
    assert_eq!(queue.pick(), Pick::Run(a));
    time.set(5_000_000);
    assert_eq!(queue.pick_another(), Pick::Run(b));
    queue.activate(a).unwrap();
    let turns = turns(&mut queue, &time, 500, 12);
    assert!(turns.starts_with("bbbbbbbbbb"), "{turns}");
    let metrics = queue.metrics(a).unwrap();
    assert_eq!((metrics.violations, metrics.overrun), (1, micros(4500)));
}

#[test]
fn clock_that_stands_still_starves_nobody() {
    let mut queue = FairQueue::with_quota(|| 0, Duration::ZERO);
    let [a, b] = [1, 3].map(|number| queue.insert(shares(number), number));
    queue.activate(a).unwrap();
    queue.activate(b).unwrap();
    let turns = (0..400).map(|_| queue.pick());
    assert_eq!(turns.filter(|&pick| pick == Pick::Run(b)).count(), 300);
}

#[test]
fn clock_that_goes_back_or_leaps_does_no_harm() {
    let time = Cell::new(1 << 40);
    let mut queue = FairQueue::new(|| time.get());
    let [a, b] = ['a', 'b'].map(|name| queue.insert(shares(1), name));
    queue.activate(a).unwrap();
    queue.activate(b).unwrap();
    for now in [1 << 41, 0, 5, u64::MAX, 0, 1 << 42, u64::MAX] {
        assert!(matches!(queue.pick(), Pick::Run(_)));
        time.set(now);
        queue.should_switch();
        queue.deactivate(a).unwrap();
        queue.activate(a).unwrap();
    }
    // The counters of each group add up to the whole time since the queue was created.
    for key in [a, b] {
        let metrics = queue.metrics(key).unwrap();
        let counted = metrics.runtime + metrics.waiting + metrics.starving;
        assert_eq!(counted, Duration::from_nanos(u64::MAX - (1 << 40)));
    }
    let picks: Vec<_> = (0..4).map(|_| queue.pick()).collect();
    assert!(picks.contains(&Pick::Run(a)) && picks.contains(&Pick::Run(b)));
}

#[test]
fn clock_that_panics_changes_nothing() {
    let (time, panics) = (Cell::new(0), Cell::new(false));
    let mut queue = FairQueue::new(|| {
        assert!(!panics.get(), "no time");
        time.get()
    });
    let [a, b] = ['a', 'b'].map(|name| queue.insert(shares(1), name));
    queue.activate(a).unwrap();
    assert_eq!(queue.pick(), Pick::Run(a));
    time.set(300_000);
    panics.set(true);
    let mut attempt = |call: &mut dyn FnMut(&mut FairQueue<char, _>)| {
        let caught = catch_unwind(AssertUnwindSafe(|| call(&mut queue)));
        assert!(caught.is_err());
        assert_eq!(
            (queue.len(), queue.active(), queue.current()),
            (2, 1, Some(a))
        );
        assert_eq!((queue.vruntime(a), queue.is_active(b)), (Ok(0), Ok(false)));
    };
    attempt(&mut |queue| _ = queue.insert(shares(1), 'c'));
    attempt(&mut |queue| _ = queue.insert_under(b, shares(1), 'c'));
    attempt(&mut |queue| _ = queue.activate(b));
    attempt(&mut |queue| _ = queue.deactivate(a));
    attempt(&mut |queue| _ = queue.set_shares(a, shares(7)));
    attempt(&mut |queue| _ = queue.set_own_shares(a, shares(7)));
    attempt(&mut |queue| _ = queue.set_cap(a, Some(Cap::new(micros(1), micros(2)).unwrap())));
    attempt(&mut |queue| _ = queue.pick());
    attempt(&mut |queue| _ = queue.pick_another());
    attempt(&mut |queue| queue.end_turn());
    attempt(&mut |queue| queue.charge());
    panics.set(false);
    assert_eq!(
        (queue.shares(a), queue.own_shares(a)),
        (Ok(shares(1)), Ok(shares(1)))
    );
    assert_eq!((queue.cap(a), queue.destroy(b)), (Ok(None), Ok('b')));
    assert_eq!(queue.metrics(a).unwrap().runtime, micros(300));
}

#[test]
fn extreme_shares_are_exact() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    for (name, number) in [('a', u32::MAX), ('b', u32::MAX / 3), ('c', 1)] {
        let key = queue.insert(shares(number), name);
        queue.activate(key).unwrap();
    }
    let turns = turns(&mut queue, &time, 500, 4001);
    assert_eq!(
        [count(&turns, 'a'), count(&turns, 'b'), count(&turns, 'c')],
        [3000, 1000, 1]
    );
}

#[test]
fn year_at_one_share_does_not_wrap() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let [a, b] = ['a', 'b'].map(|name| queue.insert(shares(1), name));
    queue.activate(a).unwrap();
    queue.activate(b).unwrap();
    // Each group runs for 250 years, in polls of a year.
    let year = 365 * 86_400 * 1_000_000;
    let turns = turns(&mut queue, &time, year, 500);
    assert_eq!(turns, "ab".repeat(250));
    queue.end_turn();
    assert_eq!(queue.vruntime(a), Ok(250 * year * 1000));
}

#[test]
fn changed_shares_hold_at_once() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let [a, b] = [('a', 1), ('b', 1000)].map(|(name, n)| queue.insert(shares(n), name));
    queue.activate(a).unwrap();
    queue.activate(b).unwrap();
    // After its turn at one share, `a` would wait for a thousand turns of `b`.
    assert_eq!(turns(&mut queue, &time, 500, 3), "abb");
    queue.set_shares(a, shares(1000)).unwrap();
    assert_eq!(queue.shares(a), Ok(shares(1000)));
    let even = turns(&mut queue, &time, 500, 20);
    assert!((9..=11).contains(&count(&even, 'a')), "{even}");
    // Fewer shares hold at once, too.
    queue.set_shares(a, shares(100)).unwrap();
    let turns = turns(&mut queue, &time, 500, 110);
    assert!((9..=11).contains(&count(&turns, 'a')), "{turns}");
    assert_eq!(Shares::try_from(0), Err(ZeroShares));
}

#[test]
fn current_group_is_charged_at_its_old_shares() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let [a, b] = ['a', 'b'].map(|name| queue.insert(shares(10), name));
    queue.activate(a).unwrap();
    queue.activate(b).unwrap();
    assert_eq!(queue.pick(), Pick::Run(a));
    time.set(100_000);
    queue.charge();
    assert_eq!((queue.vruntime(a), queue.current()), (Ok(10_000), Some(a)));
    time.set(200_000);
    // Group `a` is ahead by 20,000 ns a share. With twice the shares it is ahead by half of that.
    queue.set_shares(a, shares(20)).unwrap();
    assert_eq!(queue.vruntime(a), Ok(10_000));
    time.set(400_000);
    queue.charge();
    assert_eq!(queue.vruntime(a), Ok(20_000));
}

#[test]
fn parent_gets_its_shares_for_any_number_of_children() {
    for children in [1, 2, 10] {
        let time = Cell::new(0);
        let mut queue = FairQueue::new(|| time.get());
        let parent = queue.insert(shares(100), '-');
        for _ in 0..children {
            let child = queue.insert_under(parent, shares(7), 'c').unwrap();
            queue.activate(child).unwrap();
        }
        let other = queue.insert(shares(300), 'o');
        queue.activate(other).unwrap();
        let turns = turns(&mut queue, &time, 500, 400);
        assert_eq!(count(&turns, 'o'), 300, "{children} children");
        assert_eq!(queue.metrics(parent).unwrap().picked, 0);
    }
}

#[test]
fn own_work_of_a_parent_counts_as_a_child() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let parent = queue.insert(shares(100), 'p');
    let other = queue.insert(shares(100), 'o');
    for key in [parent, other] {
        queue.activate(key).unwrap();
    }
    assert_eq!(queue.pick(), Pick::Run(parent));
    // The child is inserted during the parent's turn.
    let child = queue.insert_under(parent, shares(300), 'c').unwrap();
    assert_eq!(queue.parent(child), Ok(Some(parent)));
    queue.activate(child).unwrap();
    assert_eq!(queue.own_shares(parent), Ok(shares(100)));
    let shared = turns(&mut queue, &time, 500, 800);
    assert_eq!(
        [
            count(&shared, 'o'),
            count(&shared, 'c'),
            count(&shared, 'p')
        ],
        [400, 300, 100]
    );
    queue.set_own_shares(parent, shares(900)).unwrap();
    let shared = turns(&mut queue, &time, 500, 800);
    assert_eq!(
        [
            count(&shared, 'o'),
            count(&shared, 'c'),
            count(&shared, 'p')
        ],
        [400, 100, 300]
    );
    // Without children the parent runs as before.
    queue.deactivate(child).unwrap();
    assert_eq!(queue.destroy(child), Ok('c'));
    let turns = turns(&mut queue, &time, 500, 20);
    assert_eq!([count(&turns, 'o'), count(&turns, 'p')], [10, 10]);
}

#[test]
fn deep_nesting_is_descended() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let mut keys = vec![queue.insert(shares(1), 'a')];
    for _ in 0..10_000 {
        keys.push(
            queue
                .insert_under(keys[keys.len() - 1], shares(1), 'a')
                .unwrap(),
        );
    }
    let deepest = keys[keys.len() - 1];
    queue.activate(deepest).unwrap();
    assert_eq!(queue.pick(), Pick::Run(deepest));
    time.set(7_000);
    assert_eq!(queue.pick_another(), Pick::Idle);
    assert!(
        keys.iter()
            .all(|&key| queue.metrics(key).unwrap().runtime == micros(7))
    );
    for &key in keys.iter().rev() {
        assert_eq!(queue.destroy(key), Ok('a'));
    }
    assert!(queue.is_empty());
}

#[test]
fn destroy_of_a_busy_group_changes_nothing() {
    let mut queue = FairQueue::new(|| 0);
    let parent = queue.insert(shares(1), 'p');
    let child = queue.insert_under(parent, shares(1), 'c').unwrap();
    assert_eq!(queue.destroy(parent), Err(DestroyError::Busy));
    queue.activate(child).unwrap();
    assert_eq!(queue.destroy(child), Err(DestroyError::Busy));
    assert_eq!(queue.pick(), Pick::Run(child));
    assert_eq!(queue.destroy(child), Err(DestroyError::Busy));
    assert_eq!(
        (queue.len(), queue.active(), queue.current()),
        (2, 1, Some(child))
    );
    assert_eq!(queue.get(child), Ok(&'c'));
    assert_eq!(queue.pick_another(), Pick::Idle);
    assert_eq!(queue.destroy(child), Ok('c'));
    assert_eq!(queue.destroy(parent), Ok('p'));
    assert!(queue.is_empty());
}

#[test]
fn stale_key_is_refused_by_each_operation() {
    let mut queue = FairQueue::new(|| 0);
    let stale = queue.insert(shares(1), 'a');
    assert_eq!(queue.destroy(stale), Ok('a'));
    // Another group reuses the slot of the destroyed group.
    let other = queue.insert(shares(2), 'b');
    queue.activate(other).unwrap();
    let refused = Err(Stale(()));
    assert_eq!(queue.activate(stale), refused);
    assert_eq!(queue.deactivate(stale), refused);
    assert_eq!(queue.set_shares(stale, shares(9)), refused);
    assert_eq!(queue.set_own_shares(stale, shares(9)), refused);
    assert_eq!(queue.set_cap(stale, None), refused);
    assert_eq!(queue.get(stale).map(drop), refused);
    assert_eq!(queue.get_mut(stale).map(drop), refused);
    assert_eq!(queue.shares(stale).map(drop), refused);
    assert_eq!(queue.own_shares(stale).map(drop), refused);
    assert_eq!(queue.cap(stale).map(drop), refused);
    assert_eq!(queue.parent(stale).map(drop), refused);
    assert_eq!(queue.metrics(stale).map(drop), refused);
    assert_eq!(queue.vruntime(stale).map(drop), refused);
    assert_eq!(queue.is_active(stale).map(drop), refused);
    assert_eq!(queue.is_throttled(stale).map(drop), refused);
    assert_eq!(queue.destroy(stale), Err(DestroyError::Stale));
    assert_eq!(queue.insert_under(stale, shares(1), 'c'), Err(Stale('c')));
    assert_eq!(
        (queue.shares(other), queue.is_active(other)),
        (Ok(shares(2)), Ok(true))
    );
    assert_eq!(queue.iter().collect::<Vec<_>>(), [(other, &'b')]);
    assert_eq!(Stale(()).to_string(), "the group was destroyed");
    assert_eq!(
        DestroyError::Busy.to_string(),
        "the group has work or children"
    );
}

#[test]
fn capped_group_waits_for_its_next_period() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let key = queue.insert(shares(1), 'a');
    let cap = Cap::new(micros(100), micros(1000)).unwrap();
    queue.set_cap(key, Some(cap)).unwrap();
    assert_eq!(queue.cap(key), Ok(Some(cap)));
    queue.activate(key).unwrap();
    // The turn is no longer than the budget.
    assert_eq!(queue.pick(), Pick::Run(key));
    assert_eq!(queue.turn_end(), Some(100_000));
    // A long poll uses the budgets of this period and the next one, and half of the third.
    time.set(250_000);
    assert!(queue.should_switch());
    assert_eq!(queue.pick(), Pick::Throttled { until: 2_000_000 });
    assert_eq!((queue.is_throttled(key), queue.active()), (Ok(true), 1));
    time.set(1_999_999);
    assert_eq!(queue.pick(), Pick::Throttled { until: 2_000_000 });
    time.set(2_000_000);
    assert_eq!(queue.pick(), Pick::Run(key));
    assert_eq!(queue.turn_end(), Some(2_050_000));
    assert_eq!(queue.metrics(key).unwrap().throttled, micros(1750));
    // Budget that a period does not use is lost.
    assert_eq!(queue.pick_another(), Pick::Idle);
    time.set(9_500_000);
    queue.activate(key).unwrap();
    assert_eq!(queue.pick(), Pick::Run(key));
    assert_eq!(queue.turn_end(), Some(9_600_000));
    time.set(9_600_000);
    assert_eq!(queue.pick(), Pick::Throttled { until: 10_000_000 });
    // Without the cap the group runs at once, and its turn has no end.
    queue.set_cap(key, None).unwrap();
    assert_eq!(queue.pick(), Pick::Run(key));
    assert_eq!(queue.turn_end(), None);
    for bad in [
        Cap::new(micros(0), micros(1)),
        Cap::new(micros(1), micros(0)),
    ] {
        assert_eq!(bad, Err(BadCap));
    }
}

#[test]
fn cap_of_a_parent_holds_for_its_children() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let parent = queue.insert(shares(1000), '-');
    let cap = Cap::new(micros(1000), micros(10_000)).unwrap();
    queue.set_cap(parent, Some(cap)).unwrap();
    let [a, b] = ['a', 'b'].map(|name| queue.insert_under(parent, shares(1), name).unwrap());
    let other = queue.insert(shares(1), 'o');
    for key in [a, b, other] {
        queue.activate(key).unwrap();
    }
    let turns = turns(&mut queue, &time, 500, 2000);
    assert_eq!([count(&turns, 'a'), count(&turns, 'b')], [100, 100]);
    // Once the parent is throttled the children cannot run, and new work for one of them changes
    // nothing.
    queue.deactivate(other).unwrap();
    while let Pick::Run(_) = queue.pick() {
        time.set(time.get() + 500_000);
    }
    assert_eq!(
        (queue.is_throttled(parent), queue.is_throttled(a)),
        (Ok(true), Ok(false))
    );
    queue.deactivate(a).unwrap();
    queue.activate(a).unwrap();
    assert!(matches!(queue.pick(), Pick::Throttled { .. }));
    queue.activate(other).unwrap();
    assert_eq!(queue.pick(), Pick::Run(other));
}

#[test]
fn throttled_group_earns_no_credit() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let [a, b] = ['a', 'b'].map(|name| queue.insert(shares(1), name));
    queue
        .set_cap(a, Some(Cap::new(micros(5000), micros(100_000)).unwrap()))
        .unwrap();
    queue.activate(a).unwrap();
    queue.activate(b).unwrap();
    let first = turns(&mut queue, &time, 500, 180);
    assert_eq!(count(&first, 'a'), 10, "{first}");
    // A pick releases `a` at 100 ms, and then `a` takes turns again.
    time.set(100_000_000);
    let turns = turns(&mut queue, &time, 500, 10);
    assert_eq!(count(&turns, 'a'), 5, "{turns}");
}

#[test]
fn throttled_group_can_end() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let cap = Cap::new(micros(1), micros(1_000_000)).unwrap();
    for _ in 0..3 {
        let key = queue.insert(shares(1), 'a');
        queue.set_cap(key, Some(cap)).unwrap();
        queue.activate(key).unwrap();
        assert_eq!(queue.pick(), Pick::Run(key));
        time.set(time.get() + 5000);
        assert_eq!(queue.pick_another(), Pick::Idle);
        assert_eq!(queue.is_throttled(key), Ok(true));
        assert_eq!(queue.destroy(key), Ok('a'));
    }
    let key = queue.insert(shares(1), 'b');
    queue.activate(key).unwrap();
    assert_eq!(queue.pick(), Pick::Run(key));
    assert_eq!(queue.turn_end(), None);
}

#[test]
fn metrics_say_where_the_time_went() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let [a, b] = ['a', 'b'].map(|name| queue.insert(shares(1), name));
    time.set(10_000);
    queue.activate(a).unwrap();
    queue.activate(b).unwrap();
    time.set(15_000);
    assert_eq!(queue.pick(), Pick::Run(a));
    time.set(715_000);
    let of_a = queue.metrics(a).unwrap();
    assert_eq!(
        (of_a.waiting, of_a.starving, of_a.runtime),
        (micros(10), micros(5), micros(700))
    );
    assert_eq!(queue.pick_another(), Pick::Run(b));
    time.set(815_000);
    let (of_a, of_b) = (queue.metrics(a).unwrap(), queue.metrics(b).unwrap());
    assert_eq!(
        (of_a.waiting, of_a.starving, of_a.runtime),
        (micros(110), micros(5), micros(700))
    );
    assert_eq!(
        (of_a.picked, of_a.violations, of_a.overrun),
        (1, 0, micros(200))
    );
    assert_eq!(
        (of_b.waiting, of_b.starving, of_b.runtime),
        (micros(10), micros(705), micros(100))
    );
}

/// Compares the queue with a list of the groups after each of many random operations.
#[test]
fn random_operations_keep_every_promise() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let mut random = 1_u64;
    let mut next = |most: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % most
    };
    // Key, parent, and whether the group has work and a cap.
    let mut groups: Vec<(GroupKey, Option<GroupKey>, bool, bool)> = Vec::new();
    let mut gone: Vec<GroupKey> = Vec::new();
    let (mut ran, mut of_gone) = (Duration::ZERO, Duration::ZERO);
    for step in 0..200_000 {
        if queue.current().is_some() {
            let poll = next(400_000) as u64;
            time.set(time.get() + poll);
            ran += Duration::from_nanos(poll);
        }
        let any = next(groups.len().max(1));
        match next(20) {
            0 if groups.len() < 40 => {
                let key = queue.insert(shares(1 + next(1000) as u32), step);
                groups.push((key, None, false, false));
            }
            1 if (1..40).contains(&groups.len()) => {
                let parent = groups[any].0;
                let key = queue
                    .insert_under(parent, shares(1 + next(1000) as u32), step)
                    .unwrap();
                groups.push((key, Some(parent), false, false));
            }
            _ if groups.is_empty() => {}
            2 => {
                let (key, parent, active, _) = groups[any];
                let runtime = queue.metrics(key).unwrap().runtime;
                let is_parent = groups.iter().any(|group| group.1 == Some(key));
                if active || is_parent {
                    assert_eq!(queue.destroy(key), Err(DestroyError::Busy));
                } else {
                    queue.destroy(key).unwrap();
                    groups.swap_remove(any);
                    gone.push(key);
                    of_gone += if parent.is_none() {
                        runtime
                    } else {
                        Duration::ZERO
                    };
                }
            }
            3..8 => {
                queue.activate(groups[any].0).unwrap();
                groups[any].2 = true;
            }
            8 => {
                queue.deactivate(groups[any].0).unwrap();
                groups[any].2 = false;
            }
            9 => queue
                .set_shares(groups[any].0, shares(1 + next(1000) as u32))
                .unwrap(),
            10 => queue
                .set_own_shares(groups[any].0, shares(1 + next(1000) as u32))
                .unwrap(),
            11 => {
                let cap = Cap::new(micros(1 + next(900) as u64), micros(1 + next(5000) as u64));
                groups[any].3 = next(2) == 0;
                queue
                    .set_cap(groups[any].0, groups[any].3.then(|| cap.unwrap()))
                    .unwrap();
            }
            12 => match next(3) {
                0 => queue.charge(),
                1 => {
                    queue.end_turn();
                    let peeked = queue.peek();
                    let throttles =
                        |group: &(GroupKey, _, _, _)| queue.is_throttled(group.0).unwrap();
                    // A pick that releases no group picks the group that `peek` returned.
                    if !groups.iter().any(throttles) {
                        match queue.pick() {
                            Pick::Run(key) => assert_eq!(peeked, Some(key)),
                            _ => assert_eq!(peeked, None),
                        }
                    }
                }
                _ => {
                    let rest = queue.turn_end().unwrap_or(0).saturating_sub(time.get());
                    time.set(time.get() + rest);
                    ran += Duration::from_nanos(rest);
                }
            },
            other => {
                let before = queue.current();
                let idles = other > 17;
                let pick = match (idles, next(2)) {
                    (true, _) => queue.pick_another(),
                    (false, 0) => queue.pick(),
                    _ => match queue.switch() {
                        Some(pick) => pick,
                        None => Pick::Run(before.unwrap()),
                    },
                };
                for group in &mut groups {
                    group.2 &= !(idles && Some(group.0) == before);
                }
                let active = groups.iter().filter(|group| group.2).count();
                match pick {
                    Pick::Run(key) => {
                        assert!(groups.iter().any(|group| group.0 == key && group.2));
                        assert_eq!(queue.current(), Some(key));
                        assert_eq!(queue.current_mut().unwrap().0, key);
                    }
                    Pick::Throttled { until } => {
                        assert!(until > time.get() && active > 0);
                        assert!(groups.iter().any(|group| group.3));
                        if next(4) == 0 {
                            time.set(until);
                        }
                    }
                    Pick::Idle => assert_eq!(active, 0),
                }
            }
        }
        assert_eq!(
            queue.active(),
            groups.iter().filter(|group| group.2).count()
        );
        assert_eq!(
            (queue.len(), queue.iter().count()),
            (groups.len(), groups.len())
        );
        if step % 97 == 0 {
            let roots = groups.iter().filter(|group| group.1.is_none());
            let sum: Duration = roots
                .map(|group| queue.metrics(group.0).unwrap().runtime)
                .sum();
            assert_eq!(sum + of_gone, ran);
            assert!(
                gone.iter()
                    .all(|&key| queue.activate(key) == Err(Stale(())))
            );
        }
    }
    assert!(gone.len() > 1000);
}

type NoTime = fn() -> u64;

/// Makes a queue whose one place is spare, and a key that another queue made for its own place,
/// after it had destroyed as many groups.
fn spare_place_and_foreign_key() -> (FairQueue<char, NoTime>, GroupKey) {
    let [mut queue, mut other] = [(); 2].map(|()| FairQueue::new((|| 0) as NoTime));
    for queue in [&mut queue, &mut other] {
        let key = queue.insert(shares(1), 'a');
        queue.destroy(key).unwrap();
    }
    (queue, other.insert(shares(1), 'b'))
}

/// Fails if the key activates the place, so that a pick returns a group that does not exist.
#[test]
fn foreign_key_activates_no_destroyed_group() {
    let (mut queue, key) = spare_place_and_foreign_key();
    assert_eq!(queue.activate(key), Err(Stale(())));
    assert_eq!(queue.get(key), Err(Stale(())));
    assert_eq!((queue.active(), queue.pick()), (0, Pick::Idle));
    assert!(queue.current_mut().is_none());
}

/// Fails if the new group gets the place, and so is its own parent.
#[test]
fn foreign_key_of_a_destroyed_group_is_no_parent() {
    let (mut queue, key) = spare_place_and_foreign_key();
    assert_eq!(queue.insert_under(key, shares(1), 'c'), Err(Stale('c')));
    assert!(queue.is_empty());
    let new = queue.insert(shares(1), 'd');
    assert_eq!(queue.parent(new), Ok(None));
    queue.activate(new).unwrap();
    queue.set_latency(new, Some(micros(1))).unwrap();
}

/// Returns for what percentage of 10 s a lone group with a cap runs, if it always has work.
fn capped_part(budget: u64, period: u64, poll: u64) -> u64 {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let key = queue.insert(shares(1), 'a');
    let cap = Cap::new(micros(budget), micros(period)).unwrap();
    queue.set_cap(key, Some(cap)).unwrap();
    queue.activate(key).unwrap();
    let mut pick = queue.pick();
    while time.get() < 10_000_000_000 {
        if let Pick::Throttled { until } = pick {
            time.set(until);
        } else {
            time.set(time.get() + 1000 * poll);
        }
        if queue.should_switch() {
            pick = queue.pick();
        }
    }
    (queue.metrics(key).unwrap().runtime.as_nanos() * 100).div_ceil(time.get().into()) as u64
}

#[test]
fn capped_group_that_always_has_work_gets_its_part() {
    // Budget, period and poll, in microseconds.
    assert_eq!(capped_part(1000, 1000, 100), 100);
    assert_eq!(capped_part(1000, 1000, 5000), 100);
    assert_eq!(capped_part(2000, 1000, 5000), 100);
    assert_eq!(capped_part(500, 1000, 5000), 50);
    assert_eq!(capped_part(500, 1000, 100), 50);
    assert_eq!(capped_part(10, 1000, 7000), 1);
}

#[test]
fn cap_set_again_does_not_refill_the_budget() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let key = queue.insert(shares(1), 'a');
    queue.activate(key).unwrap();
    // The cap grants one per cent of ten seconds. It is set again each millisecond, also during
    // turns, and every third time with other numbers of the same proportion.
    for step in 0..10_000 {
        let times = if step % 3 == 0 { 5 } else { 1 };
        let cap = Cap::new(micros(1000 * times), micros(100_000 * times)).unwrap();
        queue.set_cap(key, Some(cap)).unwrap();
        assert_eq!(queue.cap(key), Ok(Some(cap)));
        for _ in 0..4 {
            if !queue.should_switch() || matches!(queue.pick(), Pick::Run(_)) {
                time.set(time.get() + 250_000);
            } else {
                time.set(1_000_000 * (step + 1));
            }
        }
    }
    // The runtime may exceed one per cent by the larger budget and one poll.
    let runtime = queue.metrics(key).unwrap().runtime;
    assert!(
        (micros(99_000)..=micros(105_250)).contains(&runtime),
        "{runtime:?}"
    );
}

#[test]
fn sibling_that_leaves_in_a_capped_turn_changes_no_budget() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let [a, b] = ['a', 'b'].map(|name| queue.insert(shares(1), name));
    let cap = Cap::new(micros(500), micros(1000)).unwrap();
    queue.set_cap(a, Some(cap)).unwrap();
    queue.activate(a).unwrap();
    queue.activate(b).unwrap();
    assert_eq!(queue.pick(), Pick::Run(a));
    // The first period pays for 500 µs of these 1,200 µs. `should_switch` reads the clock, and
    // charges no group.
    time.set(1_200_000);
    assert!(queue.should_switch());
    queue.deactivate(b).unwrap();
    assert_eq!(queue.turn_end(), Some(500_000));
    assert_eq!(queue.pick(), Pick::Throttled { until: 2_000_000 });
    time.set(2_000_000);
    assert_eq!(queue.pick(), Pick::Run(a));
    assert_eq!(queue.turn_end(), Some(2_300_000));
}

#[test]
fn switch_reads_the_clock_once() {
    let (time, readings) = (Cell::new(0), Cell::new(0));
    let mut queue = FairQueue::new(|| {
        readings.set(readings.get() + 1);
        time.get()
    });
    let [a, b] = ['a', 'b'].map(|name| queue.insert(shares(1), name));
    queue.activate(a).unwrap();
    queue.activate(b).unwrap();
    assert_eq!(queue.pick(), Pick::Run(a));
    readings.set(0);
    let mut switches = 0;
    for _ in 0..100 {
        time.set(time.get() + 250_000);
        if let Some(next) = queue.switch() {
            switches += 1;
            assert_eq!(next, Pick::Run([a, b][switches % 2]));
            assert_eq!(queue.turn_end(), Some(time.get() + 500_000));
        }
    }
    assert_eq!((switches, readings.get()), (50, 100));
    // The turn of a lone group is never over.
    assert_eq!(queue.current(), Some(a));
    queue.deactivate(b).unwrap();
    assert_eq!(queue.switch(), None);
    assert_eq!(readings.get(), 100);
    // Without a current group `switch` picks one.
    queue.end_turn();
    assert_eq!(queue.switch(), Some(Pick::Run(a)));
    assert_eq!(queue.pick_another(), Pick::Idle);
    assert_eq!(queue.switch(), Some(Pick::Idle));
}

#[test]
fn peek_returns_the_neediest_group() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let parent = queue.insert(shares(1), 'p');
    let child = queue.insert_under(parent, shares(1), 'c').unwrap();
    let other = queue.insert(shares(1), 'o');
    assert_eq!(queue.peek(), None);
    for key in [other, child, parent] {
        queue.activate(key).unwrap();
    }
    assert_eq!((queue.peek(), queue.current()), (Some(other), None));
    assert_eq!(queue.pick(), Pick::Run(other));
    time.set(500_000);
    // The turn is not charged yet.
    assert_eq!(queue.peek(), Some(other));
    queue.charge();
    assert_eq!((queue.peek(), queue.current()), (Some(child), Some(other)));
    assert_eq!(queue.pick(), Pick::Run(child));
    queue.deactivate(child).unwrap();
    queue.deactivate(other).unwrap();
    // The parent's own work is picked.
    assert_eq!(queue.peek(), Some(parent));
    let cap = Cap::new(micros(1), micros(10)).unwrap();
    queue.set_cap(parent, Some(cap)).unwrap();
    assert_eq!(queue.pick(), Pick::Run(parent));
    time.set(501_000);
    assert_eq!(queue.pick(), Pick::Throttled { until: 510_000 });
    time.set(510_000);
    // Only a pick releases the parent.
    assert_eq!(queue.peek(), None);
    assert_eq!(queue.pick(), Pick::Run(parent));
}

#[test]
fn charge_while_no_time_passes_costs_nothing() {
    let time = Cell::new(0);
    let mut queue = FairQueue::new(|| time.get());
    let [a, b] = ['a', 'b'].map(|name| queue.insert(shares(1), name));
    queue.activate(a).unwrap();
    queue.activate(b).unwrap();
    assert_eq!(queue.pick(), Pick::Run(a));
    time.set(1000);
    for number in 1..=100 {
        queue.charge();
        queue.set_shares(b, shares(number)).unwrap();
    }
    assert_eq!(queue.vruntime(a), Ok(1000));
}

#[test]
fn debt_ends_with_the_last_work_of_all() {
    for a_is_first in [true, false] {
        let time = Cell::new(0);
        let mut queue = FairQueue::new(|| time.get());
        let [a, b] = [('a', 1), ('b', 1000)].map(|(name, n)| queue.insert(shares(n), name));
        queue.activate(a).unwrap();
        queue.activate(b).unwrap();
        // After one long poll of `a`, `b` could run for ten seconds before the next turn of `a`.
        // Then neither has work for a day.
        assert_eq!(queue.pick(), Pick::Run(a));
        time.set(10_000_000);
        assert_eq!(queue.pick_another(), Pick::Run(b));
        time.set(11_000_000);
        assert_eq!(queue.pick_another(), Pick::Idle);
        time.set(86_400_000_000_000);
        for key in if a_is_first { [a, b] } else { [b, a] } {
            queue.activate(key).unwrap();
        }
        let turns = turns(&mut queue, &time, 500, 4);
        assert_eq!(turns, if a_is_first { "abbb" } else { "babb" });
    }
}
