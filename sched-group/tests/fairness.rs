//! The bound on fairness in virtual time, for groups that start and end, in one level and in trees.
use proptest::prelude::*;
use sched_group::{Cap, FairQueue, GroupKey, Pick, Shares};
use std::{cell::Cell, time::Duration};

/// A group and its work: bursts of polls, with sleeps between them.
#[derive(Clone, Debug)]
struct Spec {
    /// The index of the parent, an earlier group, if it has one.
    parent: Option<usize>,
    /// The group's shares beside its siblings, and the shares of its own work beside its children.
    shares: [u32; 2],
    longest_poll: u64,
    /// How long the group sleeps, and for how many polls it then has work. The list is repeated.
    bursts: Vec<(u64, u32)>,
    /// The budget and the period of its cap.
    cap: Option<(u64, u64)>,
}

const QUOTA: u64 = 500;

fn spec(index: usize, nested: bool, capped: bool) -> impl Strategy<Value = Spec> {
    let parent = match (nested, index) {
        (true, 1..) => prop_oneof![Just(None), (0..index).prop_map(Some)].boxed(),
        _ => Just(None).boxed(),
    };
    let shares = || prop_oneof![1..5u32, 1..1000u32, Just(1), Just(1000)];
    let shares = [shares(), shares()];
    let burst = (
        prop_oneof![Just(0), 0..20_000u64],
        prop_oneof![1..20u32, 100..500u32],
    );
    let cap = match capped {
        true => prop_oneof![Just(None), (1..3000u64, 1000..9000u64).prop_map(Some)].boxed(),
        false => Just(None).boxed(),
    };
    let bursts = prop::collection::vec(burst, 1..4);
    let spec = (
        parent,
        shares,
        prop_oneof![1..100u64, 1..3000u64],
        bursts,
        cap,
    );
    spec.prop_map(|(parent, shares, longest_poll, bursts, cap)| Spec {
        parent,
        shares,
        longest_poll,
        bursts,
        cap,
    })
}

fn specs(nested: bool, capped: bool) -> impl Strategy<Value = Vec<Spec>> {
    (1..9usize).prop_flat_map(move |count| {
        (0..count)
            .map(|index| spec(index, nested, capped))
            .collect::<Vec<_>>()
    })
}

/// A competitor in a level: a group with its descendants, or the own work of a group with children.
struct Sibling {
    level: Option<usize>,
    /// The groups whose work counts. The sibling has the shares of the first group, or the shares
    /// of that group's own work if `is_own`.
    members: Vec<usize>,
    is_own: bool,
    longest_poll: i128,
}

fn siblings(specs: &[Spec]) -> Vec<Sibling> {
    let sibling = |level, members: Vec<usize>, is_own| Sibling {
        level,
        longest_poll: members
            .iter()
            .map(|&m| specs[m].longest_poll.into())
            .max()
            .unwrap(),
        members,
        is_own,
    };
    let is_below = |mut index: usize, above| loop {
        match (index == above, specs[index].parent) {
            (true, _) => return true,
            (_, Some(parent)) => index = parent,
            (_, None) => return false,
        }
    };
    let mut all = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        let members = (0..specs.len()).filter(|&m| is_below(m, index)).collect();
        all.push(sibling(spec.parent, members, false));
        if specs.iter().any(|child| child.parent == Some(index)) {
            all.push(sibling(Some(index), vec![index], true));
        }
    }
    all
}

/// Two siblings, and the minimum and maximum of the difference of their runtimes per share while
/// both have work and keep their shares. The difference is multiplied by both shares.
struct Pair {
    one: usize,
    two: usize,
    shares: [i128; 2],
    range: Option<(i128, i128)>,
}

/// The state that a check sees after each step.
struct View<'a> {
    time: u64,
    /// By group: the work done, the polls left, and the shares as in [`Spec`].
    work: &'a [u64],
    polls: &'a [u32],
    shares: &'a [[u32; 2]],
}

/// An executor of one worker.
struct Sim<'a> {
    specs: &'a [Spec],
    time: &'a Cell<u64>,
    /// By group: the work done, the polls left, and the time of the next burst.
    work: Vec<u64>,
    polls: Vec<u32>,
    wakes: Vec<u64>,
    bursts: Vec<usize>,
    keys: Vec<GroupKey>,
    shares: Vec<[u32; 2]>,
    random: u64,
}

impl Sim<'_> {
    fn random(&mut self, most: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        1 + (self.random >> 33) % most
    }

    fn view(&self) -> View<'_> {
        View {
            time: self.time.get(),
            work: &self.work,
            polls: &self.polls,
            shares: &self.shares,
        }
    }

    /// Changes some shares of a group.
    fn reshare<C: sched_group::Clock>(&mut self, queue: &mut FairQueue<usize, C>) {
        let index = self.random(self.specs.len() as u64) as usize - 1;
        let number = match self.random(4) {
            1 => 1,
            2 => 1000,
            _ => self.random(1000) as u32,
        };
        let own = self.random(2) as usize - 1;
        self.shares[index][own] = number;
        let shares = Shares::new(number).unwrap();
        match own {
            0 => queue.set_shares(self.keys[index], shares).unwrap(),
            _ => queue.set_own_shares(self.keys[index], shares).unwrap(),
        }
    }

    /// Wakes the groups whose next burst is due.
    fn wake<C: sched_group::Clock>(&mut self, queue: &mut FairQueue<usize, C>) {
        for index in 0..self.specs.len() {
            if self.polls[index] == 0 && self.wakes[index] <= self.time.get() {
                let bursts = &self.specs[index].bursts;
                self.polls[index] = bursts[self.bursts[index] % bursts.len()].1;
                self.bursts[index] += 1;
                queue.activate(self.keys[index]).unwrap();
            }
        }
    }

    fn next_wake(&self) -> u64 {
        let asleep = (0..self.specs.len()).filter(|&index| self.polls[index] == 0);
        asleep
            .map(|index| self.wakes[index])
            .min()
            .unwrap_or(u64::MAX)
    }
}

/// Runs the groups for `steps` polls or waits. With `reshares` some shares change now and then,
/// also during polls.
fn simulate(specs: &[Spec], reshares: bool, steps: usize, mut check: impl FnMut(&View<'_>)) {
    let time = Cell::new(0);
    let mut queue = FairQueue::with_quota(|| time.get(), Duration::from_nanos(QUOTA));
    let mut keys: Vec<GroupKey> = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        let [shares, own] = spec.shares.map(|number| Shares::new(number).unwrap());
        let key = match spec.parent {
            None => queue.insert(shares, index),
            Some(parent) => queue.insert_under(keys[parent], shares, index).unwrap(),
        };
        queue.set_own_shares(key, own).unwrap();
        if let Some((budget, period)) = spec.cap {
            let [budget, period] = [budget, period].map(Duration::from_nanos);
            queue
                .set_cap(key, Some(Cap::new(budget, period).unwrap()))
                .unwrap();
        }
        keys.push(key);
    }
    let mut sim = Sim {
        specs,
        time: &time,
        work: vec![0; specs.len()],
        polls: vec![0; specs.len()],
        wakes: specs.iter().map(|spec| spec.bursts[0].0).collect(),
        bursts: vec![0; specs.len()],
        keys,
        shares: specs.iter().map(|spec| spec.shares).collect(),
        random: 1,
    };
    sim.wake(&mut queue);
    let mut pick = queue.pick();
    for _ in 0..steps {
        let group = match pick {
            Pick::Run(key) => *queue.get(key).unwrap(),
            Pick::Throttled { until } => {
                assert!(until > time.get());
                assert!((0..specs.len()).all(|index| sim.polls[index] == 0 || {
                    let mut above = std::iter::successors(Some(index), |&i| specs[i].parent);
                    above.any(|index| specs[index].cap.is_some())
                }));
                time.set(until.min(sim.next_wake()));
                sim.wake(&mut queue);
                pick = queue.pick();
                continue;
            }
            Pick::Idle => {
                assert!(sim.polls.iter().all(|&polls| polls == 0));
                time.set(sim.next_wake());
                sim.wake(&mut queue);
                pick = queue.pick();
                continue;
            }
        };
        // A poll, during which other groups may wake.
        let ends = time.get() + sim.random(specs[group].longest_poll);
        while time.get() < ends {
            let next = ends.min(sim.next_wake().max(time.get()));
            sim.work[group] += next - time.get();
            time.set(next);
            check(&sim.view());
            if reshares && sim.random(20) == 1 {
                sim.reshare(&mut queue);
                check(&sim.view());
            }
            sim.wake(&mut queue);
        }
        sim.polls[group] -= 1;
        if sim.polls[group] == 0 {
            let bursts = &specs[group].bursts;
            sim.wakes[group] = time.get() + bursts[sim.bursts[group] % bursts.len()].0;
            check(&sim.view());
            pick = queue.pick_another();
            sim.wake(&mut queue);
            if !matches!(pick, Pick::Run(_)) {
                pick = queue.pick();
            }
        } else if let Some(next) = queue.switch() {
            pick = next;
        }
    }
    for (index, &key) in sim.keys.iter().enumerate() {
        let all = siblings(specs);
        let whole = all
            .iter()
            .find(|s| s.members[0] == index && s.level == specs[index].parent);
        let ran: u64 = whole
            .unwrap()
            .members
            .iter()
            .map(|&member| sim.work[member])
            .sum();
        assert_eq!(
            queue.metrics(key).unwrap().runtime,
            Duration::from_nanos(ran)
        );
    }
}

/// Asserts `|Wi/si - Wj/sj| <= (Q + Li)/si + (Q + Lj)/sj` for siblings i and j. The bound holds in
/// each interval in which both siblings have work and keep their shares. W is a sibling's runtime
/// in the interval, s its shares, L its longest poll, and Q the quota.
fn assert_fair(specs: &[Spec], reshares: bool, steps: usize) {
    let all = siblings(specs);
    let mut pairs: Vec<Pair> = Vec::new();
    for one in 0..all.len() {
        for two in 0..one {
            if all[one].level == all[two].level {
                pairs.push(Pair {
                    one,
                    two,
                    shares: [0, 0],
                    range: None,
                });
            }
        }
    }
    simulate(specs, reshares, steps, |view| {
        for pair in &mut pairs {
            let (one, two) = (&all[pair.one], &all[pair.two]);
            if ![one, two]
                .iter()
                .all(|s| s.members.iter().any(|&m| view.polls[m] > 0))
            {
                pair.range = None;
                continue;
            }
            let shares = [one, two].map(|s| view.shares[s.members[0]][usize::from(s.is_own)]);
            let shares = shares.map(i128::from);
            if shares != pair.shares {
                (pair.shares, pair.range) = (shares, None);
            }
            let work = |s: &Sibling| {
                let each = s.members.iter().map(|&m| i128::from(view.work[m]));
                each.sum::<i128>()
            };
            let now = work(one) * shares[1] - work(two) * shares[0];
            let (least, most) = pair.range.unwrap_or((now, now));
            let (least, most) = (least.min(now), most.max(now));
            pair.range = Some((least, most));
            let quota = i128::from(QUOTA);
            let bound =
                (quota + one.longest_poll) * shares[1] + (quota + two.longest_poll) * shares[0];
            // The bound is larger by one, for the rounding of reciprocals.
            assert!(
                most - least <= bound + 1,
                "{} > {bound} at {}",
                most - least,
                view.time
            );
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn siblings_with_work_stay_within_the_bound(specs in specs(false, false)) {
        assert_fair(&specs, false, 3000);
    }

    #[test]
    fn nested_siblings_with_work_stay_within_the_bound(specs in specs(true, false)) {
        assert_fair(&specs, false, 3000);
    }

    #[test]
    fn siblings_stay_within_the_bound_of_new_shares(specs in specs(true, false)) {
        assert_fair(&specs, true, 3000);
    }

    /// In an interval in which n periods begin, a group runs for at most n + 1 budgets and one
    /// poll.
    #[test]
    fn capped_groups_stay_within_their_budgets(specs in specs(true, true)) {
        let all = siblings(&specs);
        let mut least = vec![0; specs.len()];
        simulate(&specs, true, 2000, |&View { time, work, .. }| {
            for (index, spec) in specs.iter().enumerate() {
                let Some((budget, period)) = spec.cap else { continue };
                let whole = all.iter().find(|s| s.members[0] == index && s.level == spec.parent);
                let whole = whole.unwrap();
                let ran: u64 = whole.members.iter().map(|&member| work[member]).sum();
                // Runtime beyond the budgets of the periods that have begun.
                let beyond = i128::from(ran) - i128::from(time / period) * i128::from(budget);
                least[index] = beyond.min(least[index]);
                let bound = i128::from(budget) + whole.longest_poll;
                assert!(beyond - least[index] <= bound, "{beyond} of {index} at {time}");
            }
        });
    }
}

/// Runs a lone group that has a cap and always has work, in polls of random length. `check` sees
/// the time and the group's runtime at each nanosecond in which the group runs.
fn run_capped(
    cap: Cap,
    quota: u64,
    longest_poll: u64,
    polls: usize,
    mut check: impl FnMut(u64, u64),
) {
    let time = Cell::new(0);
    let mut queue = FairQueue::with_quota(|| time.get(), Duration::from_nanos(quota));
    let key = queue.insert(Shares::new(1).unwrap(), ());
    queue.set_cap(key, Some(cap)).unwrap();
    queue.activate(key).unwrap();
    let mut random = 1_u64;
    let mut ran = 0;
    let mut pick = queue.pick();
    for _ in 0..polls {
        while let Pick::Throttled { until } = pick {
            time.set(until);
            pick = queue.pick();
        }
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        for _ in 0..1 + (random >> 33) % longest_poll {
            check(time.get(), ran);
            time.set(time.get() + 1);
            ran += 1;
            check(time.get(), ran);
        }
        if queue.should_switch() {
            pick = queue.pick();
        }
    }
}

/// Generates a budget, its period, a quota and the longest poll, in nanoseconds.
fn capped() -> impl Strategy<Value = (u64, u64, u64, u64)> {
    let poll = prop_oneof![1..50u64, 1..1500u64];
    (1..1000u64, 1..1000u64, 0..1000u64, poll)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// In an interval in which n periods begin, a group runs for at most n + 1 budgets plus one
    /// poll. It runs for at least n − 1 budgets less one poll.
    #[test]
    fn lone_capped_group_gets_its_budgets((less, more, quota, longest_poll) in capped()) {
        let (budget, period) = (less.min(more), less.max(more) + 1);
        let [cap_budget, cap_period] = [budget, period].map(Duration::from_nanos);
        let cap = Cap::new(cap_budget, cap_period).unwrap();
        // The range of the runtime beyond the budgets of the periods that have begun.
        let (mut least, mut most) = (0, 0);
        run_capped(cap, quota, longest_poll, 200, |time, ran| {
            let beyond = i128::from(ran) - i128::from(time / period) * i128::from(budget);
            (least, most) = (beyond.min(least), beyond.max(most));
            let bound = i128::from(budget + longest_poll);
            assert!(beyond - least <= bound, "{beyond} after {least} at {time}");
            assert!(most - beyond <= bound, "{beyond} after {most} at {time}");
        });
    }

    #[test]
    fn budget_of_a_period_or_more_limits_nothing((less, more, quota, longest_poll) in capped()) {
        let [budget, period] = [less.max(more), less.min(more)].map(Duration::from_nanos);
        let cap = Cap::new(budget, period).unwrap();
        run_capped(cap, quota, longest_poll, 200, |time, ran| assert_eq!(time, ran));
    }
}
