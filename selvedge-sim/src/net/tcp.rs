//! One end of a TCP connection.
//!
//! ```text
//! client: Connecting ── SynAck ──→ Open            server: Accepting ── first segment ──→ Open
//! ```
//!
//! Each of the four states may become `Dead`: by a reset, or as nothing was acknowledged for long.
//!
//! 1. The end keeps all bytes that its other side may not have (`out`), from `acked` on. It sends
//!    up to the other side's room, and arms its timer. The timer sends everything again, each time
//!    after twice the time, and in the end gives up with `TimedOut`.
//! 2. Bytes that arrive out of order wait in `late`. Each segment with bytes, and the end, is
//!    answered by one that says what has arrived, and how much room is left. A lost answer is made
//!    good by the next one, or by the timer of the other side.
//! 3. A read that makes much room says so. If that segment is lost, the other side's timer asks
//!    (`Kind::Probe`).
//! 4. A segment for a connection that does not exist is answered by a reset. So the end of a host
//!    is noticed when its successor gets a segment, and not before.
//! 5. `Effects` has what the caller must do: send segments, set the timer, and tell the pollers.
//!
//! Readiness follows Linux: a stream is writable again when a third of its buffer is free, and that
//! makes an event only if a write was short, or a poll has found no room.
use super::{
    Dice, Done, ERR, Errno, HUP, IN, OUT, RDHUP,
    packet::{Kind, Segment},
};
use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
};

/// The bytes of the longest segment.
const SEGMENT: u64 = 16 << 10;

/// The size of each buffer, unless the program sets another.
pub(crate) const BUFFER: usize = 64 << 10;

/// How often a timer goes off in a row before the end gives up: of the first segment, and later.
const SYN_TRIES: u32 = 6;
const TRIES: u32 = 15;

/// The shortest time until the timer goes off: before the connection is open, and then.
const SYN_TIMER: u64 = 1_000_000_000;
const TIMER: u64 = 200_000_000;
const LONGEST_TIMER: u64 = 120_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The client has sent its first segment.
    Connecting,
    /// The server has answered the first segment, and has no other one.
    Accepting,
    Open,
    Dead,
}

/// The caller's duties after a call.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) segments: Vec<Segment>,
    /// The states that have begun, for the pollers. 0 if there is nothing new.
    pub(crate) news: u32,
    /// The time after which the timer goes off, and its number.
    pub(crate) timer: Option<(u64, u64)>,
}

/// The states that each change of the connection's own state announces.
const ALL: u32 = IN | OUT | RDHUP | HUP | ERR;

#[derive(Debug)]
pub(crate) struct End {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) number: u64,
    pub(crate) state: State,
    pub(crate) error: Option<Errno>,
    /// Whether a program has the end, or may accept it: otherwise it only sends what is left.
    pub(crate) has_owner: bool,
    /// The bytes from `acked` on.
    out: VecDeque<u8>,
    acked: u64,
    /// The next byte to send, which may have been sent before.
    next: u64,
    /// All bytes before this one were sent.
    sent: u64,
    /// The number of the end of this side's stream, which counts as one more byte.
    end: Option<u64>,
    /// The other side has room for the bytes before this one.
    room: u64,
    /// A write was short, or a poll has found no room.
    lacks_space: bool,
    pub(crate) out_size: usize,
    inbox: VecDeque<u8>,
    /// The next byte that is to arrive.
    has: u64,
    late: BTreeMap<u64, Vec<u8>>,
    /// The number of the end of the other side's stream, if it has come out of order.
    late_end: Option<u64>,
    has_end: bool,
    /// The room that the last segment has granted.
    granted: u64,
    reads_closed: bool,
    pub(crate) in_size: usize,
    timer: u64,
    is_armed: bool,
    tries: u32,
    /// The longest time to the other side, and back.
    round_trip: u64,
}

impl End {
    fn new(local: SocketAddr, remote: SocketAddr, number: u64, state: State) -> Self {
        Self {
            local,
            remote,
            number,
            state,
            error: None,
            has_owner: true,
            out: VecDeque::new(),
            acked: 0,
            next: 0,
            sent: 0,
            end: None,
            room: 0,
            lacks_space: false,
            out_size: BUFFER,
            inbox: VecDeque::new(),
            has: 0,
            late: BTreeMap::new(),
            late_end: None,
            has_end: false,
            granted: BUFFER as u64,
            reads_closed: false,
            in_size: BUFFER,
            timer: 0,
            is_armed: false,
            tries: 0,
            round_trip: 0,
        }
    }

    /// Begins a connection as its client. `round_trip` is the longest time to the other side, and
    /// back.
    pub(crate) fn connect(
        (local, remote): (SocketAddr, SocketAddr),
        number: u64,
        round_trip: u64,
        sizes: (usize, usize),
        effects: &mut Effects,
    ) -> Self {
        let mut this = Self::new(local, remote, number, State::Connecting);
        this.round_trip = round_trip;
        this.set_sizes(sizes);
        effects.segments.push(this.segment(Kind::Syn));
        this.arm(effects);
        this
    }

    /// Answers a client's first segment.
    pub(crate) fn accept(
        syn: &Segment,
        round_trip: u64,
        sizes: (usize, usize),
        effects: &mut Effects,
    ) -> Self {
        let mut this = Self::new(syn.to, syn.from, syn.number, State::Accepting);
        this.round_trip = round_trip;
        this.set_sizes(sizes);
        this.room = syn.room;
        effects.segments.push(this.segment(Kind::SynAck));
        this.arm(effects);
        this
    }

    fn set_sizes(&mut self, (out, inbox): (usize, usize)) {
        (self.out_size, self.in_size) = (out, inbox);
        self.granted = inbox as u64;
    }

    fn segment(&self, kind: Kind) -> Segment {
        Segment {
            from: self.local,
            to: self.remote,
            number: self.number,
            kind,
            at: self.next,
            data: Vec::new(),
            ends: false,
            has: self.has,
            room: self.has + self.free(),
        }
    }

    /// Returns the reset that answers a segment of no connection.
    pub(crate) fn refuse(segment: &Segment) -> Segment {
        Segment {
            from: segment.to,
            to: segment.from,
            kind: Kind::Reset,
            data: Vec::new(),
            ends: false,
            ..segment.clone()
        }
    }

    /// Returns the address of the other side, while there is a connection.
    pub(crate) fn peer_of_open(&self) -> Option<SocketAddr> {
        (self.state == State::Open && !self.is_closed()).then_some(self.remote)
    }

    /// Returns the room for bytes that arrive.
    fn free(&self) -> u64 {
        self.in_size.saturating_sub(self.inbox.len()) as u64
    }

    /// Returns whether the other side has all bytes, and the end.
    fn is_flushed(&self) -> bool {
        self.end.is_some_and(|end| self.acked > end)
    }

    /// Returns whether both streams have ended.
    fn is_closed(&self) -> bool {
        self.is_flushed() && self.has_end
    }

    /// Returns whether nothing can happen to this end any more, so that it can be forgotten.
    pub(crate) fn is_over(&self) -> bool {
        !self.has_owner && (self.state == State::Dead || self.is_closed())
    }

    fn arm(&mut self, effects: &mut Effects) {
        self.timer += 1;
        self.is_armed = true;
        let first = match self.state {
            State::Connecting | State::Accepting => SYN_TIMER,
            State::Open | State::Dead => TIMER.saturating_add(self.round_trip),
        };
        let time = first
            .saturating_mul(1 << self.tries.min(20))
            .min(LONGEST_TIMER);
        effects.timer = Some((time, self.timer));
    }

    fn disarm(&mut self) {
        self.timer += 1;
        (self.is_armed, self.tries) = (false, 0);
    }

    /// Returns whether the timer with this number is to go off.
    pub(crate) fn has_timer(&self, number: u64) -> bool {
        self.is_armed && self.timer == number
    }

    /// The timer goes off (rule 1).
    pub(crate) fn time_out(&mut self, dice: &dyn Dice, effects: &mut Effects) {
        self.tries += 1;
        let most = match self.state {
            State::Connecting | State::Accepting => SYN_TRIES,
            State::Open | State::Dead => TRIES,
        };
        if self.tries > most {
            return self.die(Errno::TimedOut, effects);
        }
        match self.state {
            State::Connecting => effects.segments.push(self.segment(Kind::Syn)),
            State::Accepting => effects.segments.push(self.segment(Kind::SynAck)),
            State::Dead => return,
            State::Open => {
                self.next = self.acked;
                self.flush(dice, effects);
                if effects.segments.is_empty() {
                    effects.segments.push(self.segment(Kind::Probe));
                }
            }
        }
        self.arm(effects);
    }

    fn die(&mut self, error: Errno, effects: &mut Effects) {
        self.state = State::Dead;
        self.error = Some(error);
        self.out.clear();
        self.disarm();
        effects.news |= ALL;
    }

    /// Sends what the other side has room for.
    fn flush(&mut self, dice: &dyn Dice, effects: &mut Effects) {
        let bytes_end = self.acked + self.out.len() as u64;
        loop {
            let mut segment = self.segment(Kind::Data);
            let most = bytes_end.min(self.room).saturating_sub(self.next);
            let mut len = most.min(SEGMENT);
            if len > 1 && dice.below(8) == 7 {
                len = 1 + u64::from(dice.below(len as u32 - 1));
            }
            if len > 0 {
                let from = (self.next - self.acked) as usize;
                segment
                    .data
                    .extend(self.out.range(from..from + len as usize));
            }
            self.next += len;
            if self.end == Some(self.next) {
                segment.ends = true;
                self.next += 1;
            }
            if len == 0 && !segment.ends {
                break;
            }
            effects.segments.push(segment);
        }
        self.sent = self.sent.max(self.next);
        let waits = self.acked < self.sent || bytes_end > self.acked;
        if waits && !self.is_armed {
            self.arm(effects);
        }
    }

    /// Takes a segment from the other side.
    pub(crate) fn receive(&mut self, segment: Segment, dice: &dyn Dice, effects: &mut Effects) {
        match (self.state, segment.kind) {
            (State::Dead, Kind::Reset) => return,
            (State::Dead, _) => return effects.segments.push(Self::refuse(&segment)),
            (State::Connecting, Kind::Reset) => {
                return self.die(Errno::ConnectionRefused, effects);
            }
            (_, Kind::Reset) => {
                let error = if self.has_end {
                    Errno::Pipe
                } else {
                    Errno::ConnectionReset
                };
                return self.die(error, effects);
            }
            (State::Connecting, Kind::SynAck) => {
                self.state = State::Open;
                self.room = segment.room;
                self.disarm();
                effects.news |= ALL;
                effects.segments.push(self.segment(Kind::Data));
                return self.flush(dice, effects);
            }
            // The other side has not got the answer.
            (State::Open, Kind::SynAck) => {
                return effects.segments.push(self.segment(Kind::Data));
            }
            (State::Accepting, Kind::Syn) => {
                return effects.segments.push(self.segment(Kind::SynAck));
            }
            (State::Connecting, _) | (State::Accepting, Kind::SynAck) | (_, Kind::Syn) => return,
            (State::Accepting, Kind::Data | Kind::Probe) => {
                self.state = State::Open;
                self.disarm();
            }
            (State::Open, Kind::Data | Kind::Probe) => {}
        }
        // The other side lives.
        self.tries = 0;
        self.take_answer(&segment, dice, effects);
        let is_answered = segment.kind == Kind::Probe || segment.ends || !segment.data.is_empty();
        if !self.has_owner && segment.at + segment.data.len() as u64 > self.has && !self.has_end {
            // Nobody will read this, and it is new.
            effects.segments.push(Self::refuse(&segment));
            return self.die(Errno::Pipe, effects);
        }
        self.take_bytes(segment, effects);
        if is_answered {
            self.answer(effects);
        }
    }

    /// Says what has arrived, and how much room is left.
    fn answer(&mut self, effects: &mut Effects) {
        let segment = self.segment(Kind::Data);
        self.granted = segment.room;
        effects.segments.push(segment);
    }

    /// Takes what the other side says that it has, and has room for.
    fn take_answer(&mut self, segment: &Segment, dice: &dyn Dice, effects: &mut Effects) {
        self.room = self.room.max(segment.room);
        if segment.has > self.acked && segment.has <= self.sent {
            let bytes = (segment.has - self.acked).min(self.out.len() as u64);
            self.out.drain(..bytes as usize);
            self.acked = segment.has;
            self.next = self.next.max(self.acked);
            self.disarm();
            if self.lacks_space && self.is_writable() {
                self.lacks_space = false;
                effects.news |= OUT;
            }
            if self.is_closed() {
                effects.news |= ALL;
            }
        }
        self.flush(dice, effects);
    }

    /// Takes the bytes of a segment, and those that have waited for them (rule 2).
    fn take_bytes(&mut self, segment: Segment, effects: &mut Effects) {
        let end = segment.at + segment.data.len() as u64;
        if segment.ends {
            self.late_end = Some(end);
        }
        if end > self.has {
            let longer = |known: &Vec<u8>| known.len() < segment.data.len();
            if self.late.get(&segment.at).is_none_or(longer) {
                self.late.insert(segment.at, segment.data);
            }
        }
        let before = self.has;
        while let Some(first) = self.late.first_entry() {
            if *first.key() > self.has {
                break;
            }
            let (at, data) = first.remove_entry();
            let known = (self.has - at) as usize;
            let Some(new) = data.get(known..) else {
                continue;
            };
            let room = self.in_size.saturating_sub(self.inbox.len());
            let new = &new[..new.len().min(room)];
            self.inbox.extend(new);
            self.has += new.len() as u64;
        }
        if self.has > before {
            effects.news |= IN;
        }
        if self.late_end == Some(self.has) && !self.has_end {
            self.has += 1;
            self.has_end = true;
            effects.news |= ALL;
        }
    }

    /// Resets the connection, from this side.
    pub(crate) fn reset(&mut self, effects: &mut Effects) {
        if self.state != State::Dead {
            effects.segments.push(self.segment(Kind::Reset));
            self.state = State::Dead;
            self.out.clear();
            self.disarm();
        }
    }

    /// The program has closed its last descriptor. If it has left bytes unread, the other side gets
    /// a reset.
    pub(crate) fn close(&mut self, resets: bool, dice: &dyn Dice, effects: &mut Effects) {
        self.has_owner = false;
        let is_open = matches!(self.state, State::Open);
        if resets || !self.inbox.is_empty() || !is_open {
            self.reset(effects);
        } else {
            self.end_stream(dice, effects);
        }
    }

    fn end_stream(&mut self, dice: &dyn Dice, effects: &mut Effects) {
        if self.end.is_none() {
            self.end = Some(self.acked + self.out.len() as u64);
            self.flush(dice, effects);
        }
    }

    pub(crate) fn shut_down(
        &mut self,
        (reads, writes): (bool, bool),
        dice: &dyn Dice,
        effects: &mut Effects,
    ) -> Done<()> {
        if self.state != State::Open || self.is_closed() {
            return Err(Errno::NotConnected);
        }
        self.reads_closed |= reads;
        if writes {
            self.end_stream(dice, effects);
        }
        effects.news |= ALL;
        Ok(())
    }

    fn is_writable(&self) -> bool {
        2 * self.out_size.saturating_sub(self.out.len()) >= self.out.len()
    }

    /// Returns the states of now. A poll that finds no room asks for an event.
    pub(crate) fn states(&mut self) -> u32 {
        if matches!(self.state, State::Connecting | State::Accepting) {
            return 0;
        }
        let mut states = 0;
        let (read_end, write_end) = (self.has_end || self.reads_closed, self.end.is_some());
        let is_dead = self.state == State::Dead;
        if read_end {
            states |= IN | RDHUP;
        }
        if is_dead || read_end && write_end {
            states |= HUP;
        }
        if !self.inbox.is_empty() || is_dead {
            states |= IN;
        }
        if is_dead {
            states |= RDHUP;
        }
        if is_dead || write_end || self.is_writable() {
            states |= OUT;
        } else {
            self.lacks_space = true;
        }
        if self.error.is_some() {
            states |= ERR;
        }
        states
    }

    /// Takes bytes for the other side.
    pub(crate) fn write(
        &mut self,
        from: &[&[u8]],
        dice: &dyn Dice,
        effects: &mut Effects,
    ) -> Done<usize> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        match self.state {
            State::Connecting | State::Accepting => return Err(Errno::Again),
            State::Dead => return Err(Errno::Pipe),
            State::Open if self.end.is_some() => return Err(Errno::Pipe),
            State::Open => {}
        }
        let mut room = self.out_size.saturating_sub(self.out.len());
        let (wanted, before) = (from.iter().map(|part| part.len()).sum::<usize>(), room);
        if wanted > 0 && room == 0 {
            self.lacks_space = true;
            return Err(Errno::Again);
        }
        for part in from {
            let taken = &part[..part.len().min(room)];
            self.out.extend(taken);
            room -= taken.len();
        }
        let count = before - room;
        self.lacks_space |= count < wanted;
        self.flush(dice, effects);
        Ok(count)
    }

    /// Gives bytes that have arrived to `to`, up to `most` of them. Returns whether some are left,
    /// or the end: the number that Linux gives as a hint.
    pub(crate) fn read(
        &mut self,
        most: usize,
        peeks: bool,
        mut to: impl FnMut(&[u8]),
        effects: &mut Effects,
    ) -> Done<(usize, usize)> {
        let count = most.min(self.inbox.len());
        if count == 0 && most > 0 {
            if self.has_end {
                return Ok((0, 1));
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            return match self.state {
                _ if self.reads_closed => Ok((0, 1)),
                State::Dead => Ok((0, 1)),
                State::Connecting | State::Accepting | State::Open => Err(Errno::Again),
            };
        }
        let (front, back) = self.inbox.as_slices();
        let first = count.min(front.len());
        to(&front[..first]);
        to(&back[..count - first]);
        if !peeks {
            self.inbox.drain(..count);
            let grows = self.has + self.free() >= self.granted + self.in_size as u64 / 2;
            if grows && !self.has_end && self.state == State::Open {
                self.answer(effects);
            }
        }
        let left = self.inbox.len() + usize::from(self.has_end && self.inbox.is_empty());
        Ok((count, left))
    }
}
