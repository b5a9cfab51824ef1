//! The loops: requests by a clock, or one after the other.
use super::{
    arrivals::Arrivals,
    dialog::Answer,
    peer::Peer,
    spec::{Dialog, Figures, Spec},
};
use crate::{
    message::KIND, noise::usage::Usage, percentiles::quantiles, poller::Poller, random::Random,
};
use std::{
    collections::VecDeque,
    io,
    time::{Duration, Instant},
};

/// The time without any answer after which the requests on their way are lost. A machine that is
/// busy with other things may be as slow.
pub(super) const LOST: Duration = Duration::from_secs(20);

/// How long before an arrival a client that sleeps wakes up: to wake a processor that has halted
/// takes 35 to 50 microseconds. The client spins for the rest.
const EARLY: Duration = Duration::from_micros(50);

/// The most requests a second for which it does so. Beyond, it would spin for more than a quarter
/// of the time, and the processors seldom halt.
const SPARSE: f64 = 5_000.0;

/// The least number of requests of a run of an open loop.
const LEAST: usize = 10;

/// The client's connections. They last from run to run.
pub(super) struct Load {
    pub(super) spec: Spec,
    pub(super) poller: Poller,
    pub(super) peers: Vec<Peer>,
    /// Number of connections that need not subscribe any more. The first one never does.
    pub(super) subscribed: usize,
    pub(super) random: Random,
    message: Vec<u8>,
}

/// A run's state.
pub(super) struct Run {
    pub(super) took: Vec<u64>,
    /// How late the client was at each arrival.
    late: Vec<u64>,
    pub(super) under_way: usize,
    /// In an open loop: the connections without a request.
    free: VecDeque<usize>,
    /// In an open loop: the arrivals that found no free connection.
    waiting: VecDeque<Instant>,
    queued: u64,
    pub(super) errors: u64,
    /// When the next request may no longer be sent.
    pub(super) end: Instant,
}

impl Load {
    pub(super) fn new(spec: Spec) -> io::Result<Self> {
        Ok(Self {
            spec,
            poller: Poller::new()?,
            peers: Vec::new(),
            subscribed: 1,
            random: Random(1),
            message: Vec::new(),
        })
    }

    pub(super) fn connect(&mut self, count: usize) -> io::Result<()> {
        if self.spec.dialog == Dialog::Connect {
            return Ok(());
        }
        for key in self.peers.len()..count {
            let peer = Peer::connect(&self.spec.to, self.spec.in_flight)?;
            self.poller.add(peer.fd(), key as u64)?;
            self.peers.push(peer);
        }
        match self.spec.dialog {
            Dialog::FanOut(_) => self.subscribe(),
            _ => Ok(()),
        }
    }

    /// Makes requests for at least a time, and waits for the last answers.
    pub(super) fn run(&mut self, span: Duration) -> io::Result<Figures> {
        let (usage, begun) = (Usage::of_process(), Instant::now());
        let mut run = Run::new(begun + span, self.peers.len());
        let seed = self.random.next();
        let lost = match (self.spec.dialog, self.spec.rate) {
            (Dialog::Connect, _) => self.connect_each(&mut run)?,
            (Dialog::FanOut(_), _) => self.fan_out(&mut run)?,
            (Dialog::Large, _) => self.large(&mut run)?,
            (_, Some(rate)) => self.open(&mut run, Arrivals::new(rate, seed))?,
            (_, None) => self.closed(&mut run)?,
        };
        let wall = begun.elapsed().as_nanos() as u64;
        let cpu = (Usage::of_process() - usage).cpu.as_nanos() as u64;
        Ok(run.figures(lost, wall, cpu))
    }

    /// Sends each arrival's request on a free connection, or as soon as one is free. Returns the
    /// number of requests that had no answer.
    fn open(&mut self, run: &mut Run, mut arrivals: Arrivals) -> io::Result<usize> {
        let is_sparse = self.spec.rate.is_some_and(|rate| rate <= SPARSE);
        let early = if is_sparse { EARLY } else { Duration::ZERO };
        let mut next = Some(Instant::now() + arrivals.gap());
        let mut heard = Instant::now();
        loop {
            let mut now = Instant::now();
            while let Some(due) = next.filter(|due| *due <= now) {
                run.late.push((now - due).as_nanos() as u64);
                match run.free.pop_front() {
                    Some(at) => self.send(run, at, 0, due)?,
                    None => {
                        run.waiting.push_back(due);
                        run.queued += 1;
                    }
                }
                let due = due + arrivals.gap();
                next = (due < run.end || run.late.len() < LEAST).then_some(due);
                now = Instant::now();
            }
            if next.is_none() && run.under_way == 0 {
                return Ok(0);
            }
            let until = next.map_or(LOST, |due| due.saturating_duration_since(now));
            if self.receive(run, until.saturating_sub(early))? {
                heard = now;
            } else if run.under_way > 0 && now - heard > LOST || run.errors > 0 {
                return Ok(run.under_way);
            }
        }
    }

    /// Sends as many requests on each connection as may be under way, and the next one at each
    /// answer. Returns the number of requests that had no answer.
    fn closed(&mut self, run: &mut Run) -> io::Result<usize> {
        for at in 0..self.peers.len() {
            for slot in 0..self.spec.in_flight {
                self.send(run, at, slot, Instant::now())?;
            }
        }
        let mut heard = Instant::now();
        while run.under_way > 0 {
            if self.receive(run, LOST)? {
                heard = Instant::now();
            } else if heard.elapsed() > LOST || run.errors > 0 {
                break;
            }
        }
        Ok(run.under_way)
    }

    fn send(&mut self, run: &mut Run, at: usize, slot: usize, due: Instant) -> io::Result<()> {
        run.under_way += 1;
        self.request(at, slot, None, due)
    }

    /// Sends a request, of a kind or of any one.
    pub(super) fn request(
        &mut self,
        at: usize,
        slot: usize,
        kind: Option<u8>,
        due: Instant,
    ) -> io::Result<()> {
        let (peer, message) = (&mut self.peers[at], &mut self.message);
        let dialog = self.spec.dialog;
        dialog.request(slot, &mut self.random, message);
        if let Some(kind) = kind {
            message[KIND] = kind;
        }
        peer.sent[slot] = Some(due);
        peer.send(message)
    }

    /// Waits for at most a time, and takes the answers that have come. Returns whether there was
    /// any.
    fn receive(&mut self, run: &mut Run, limit: Duration) -> io::Result<bool> {
        let mut any = false;
        for key in self.wait(limit) {
            any = true;
            self.answer(run, key as usize)?;
        }
        Ok(any && run.errors == 0)
    }

    /// Waits for at most a time, and returns the connections on which something has come.
    pub(super) fn wait(&mut self, limit: Duration) -> impl Iterator<Item = u64> + use<> {
        // On a processor of its own the client does not sleep: to be woken would take it as long as
        // the server takes for an answer.
        let limit = match self.spec.processor {
            Some(_) => Duration::ZERO,
            None => limit,
        };
        self.poller.wait(Some(limit))
    }

    /// Takes what has come on a connection, and sends the requests that follow.
    fn answer(&mut self, run: &mut Run, at: usize) -> io::Result<()> {
        loop {
            let peer = &mut self.peers[at];
            let is_datagram = peer.is_datagram;
            let came = peer.receive();
            let now = Instant::now();
            let slot = match came {
                Ok(None) => return Ok(()),
                Ok(Some(bytes)) => match self.spec.dialog.judge(bytes, is_datagram) {
                    Answer::Partial => return Ok(()),
                    Answer::Whole(slot) => Some(slot),
                    Answer::Wrong => None,
                },
                Err(_) => None,
            };
            let due = slot.and_then(|slot| Some((slot, peer.sent.get_mut(slot)?.take()?)));
            let Some((slot, due)) = due else {
                run.errors += 1;
                return Ok(());
            };
            peer.clear();
            run.took.push((now - due).as_nanos() as u64);
            run.under_way -= 1;
            if self.spec.rate.is_none() {
                if now < run.end {
                    self.send(run, at, slot, now)?;
                }
            } else if let Some(due) = run.waiting.pop_front() {
                self.send(run, at, slot, due)?;
            } else {
                run.free.push_back(at);
            }
            // A connection with one request has nothing more.
            if self.spec.in_flight == 1 {
                return Ok(());
            }
        }
    }
}

impl Run {
    fn new(end: Instant, peers: usize) -> Self {
        Self {
            took: Vec::new(),
            late: Vec::new(),
            under_way: 0,
            // The connections take turns if the server is fast.
            free: (0..peers).collect(),
            waiting: VecDeque::new(),
            queued: 0,
            errors: 0,
            end,
        }
    }

    fn figures(self, lost: usize, wall: u64, cpu: u64) -> Figures {
        let done = self.took.len() as u64;
        let [p50, p99, p999, max] =
            quantiles(self.took, [500, 990, 999, 1_000]).unwrap_or_default();
        let late = quantiles(self.late, [990, 1_000]);
        Figures {
            done,
            errors: self.errors,
            lost: lost as u64,
            queued: self.queued,
            wall,
            cpu,
            p50,
            p99,
            p999,
            max,
            late_p99: late.map(|[p99, _]| p99),
            late_max: late.map(|[_, max]| max),
        }
    }
}
