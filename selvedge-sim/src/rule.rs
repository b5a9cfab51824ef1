//! The choices of an [`Order`] and of [`Polls`].
use crate::{
    choice::Random,
    order::{Order, Polls},
};

/// The most change points of [`Order::Priorities`].
const CHANGES: u64 = 6;
/// The number of steps among which the change points lie.
const STEPS: u64 = 600;

/// The order of one run.
#[derive(Debug)]
pub(crate) struct Rule {
    order: Order,
    polls: Polls,
    /// The steps that are change points, the next one last.
    changes: Vec<u64>,
    step: u64,
    /// The priority of each thread by its index: the highest runs.
    priorities: Vec<u64>,
    lowest: u64,
    starved: u32,
}

impl Rule {
    pub(crate) fn new(order: Order, polls: Polls, random: &mut Random) -> Self {
        let order = match (order, random.below(10)) {
            (Order::Any, 0..5) => Order::Uniform,
            (Order::Any, 5..8) => Order::Priorities,
            (Order::Any, _) => Order::Starve,
            (order, _) => order,
        };
        let polls = match (polls, random.below(10)) {
            (Polls::Any, 0..5) => Polls::Instant,
            (Polls::Any, 5..8) => Polls::Short,
            (Polls::Any, _) => Polls::Long,
            (polls, _) => polls,
        };
        let count = random.below(CHANGES + 1);
        let mut changes: Vec<_> = (0..count).map(|_| random.below(STEPS)).collect();
        changes.sort_unstable_by(|a, b| b.cmp(a));
        let starved = 2 + random.below(4) as u32;
        let (priorities, lowest) = (Vec::new(), u64::MAX / 2);
        Self {
            order,
            polls,
            changes,
            step: 0,
            priorities,
            lowest,
            starved,
        }
    }

    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// Notes a new thread.
    pub(crate) fn add_thread(&mut self, random: &mut Random) {
        self.priorities
            .push(u64::MAX / 2 + random.below(u64::MAX / 2));
    }

    /// Chooses one of the threads that can run, by its place in the list. `now` is the thread that
    /// has run until now, if it can go on.
    #[inline]
    pub(crate) fn choose(&mut self, can: &[u32], now: Option<u32>, random: &mut Random) -> usize {
        match self.order {
            Order::Any | Order::Uniform => random.below(can.len() as u64) as usize,
            Order::Starve => {
                let chosen = random.below(can.len() as u64) as usize;
                if can[chosen] == self.starved && can.len() > 1 && !random.once_in(64) {
                    let other = random.below(can.len() as u64 - 1) as usize;
                    return other + usize::from(other >= chosen);
                }
                chosen
            }
            Order::Priorities => {
                self.step += 1;
                let change = self.changes.last().is_some_and(|at| *at <= self.step);
                if let (true, Some(now)) = (change, now) {
                    self.changes.pop();
                    self.lowest -= 1;
                    self.priorities[now as usize - 1] = self.lowest;
                }
                let priority = |at: &usize| self.priorities[can[*at] as usize - 1];
                (0..can.len()).max_by_key(priority).unwrap_or(0)
            }
        }
    }

    /// Chooses how long a poll takes, in units of 100 ns.
    #[inline]
    pub(crate) fn cost(&self, random: &mut Random) -> u32 {
        match self.polls {
            Polls::Any | Polls::Instant => 0,
            Polls::Short | Polls::Long if !random.once_in(8) => 0,
            Polls::Long if random.once_in(16) => random.below(400_000) as u32,
            _ => random.below(500) as u32,
        }
    }

    pub(crate) fn polls_take_time(&self) -> bool {
        self.polls != Polls::Instant
    }
}
