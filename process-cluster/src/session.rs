//! A session between two nodes, without time, threads or a transport of its own.
//!
//! A transport may lose frames, repeat them, or bring those of an earlier session, and a node that
//! was stopped may come back under the same id. So each side numbers its sessions with the other,
//! and each frame names the incarnation of its sender and the sender's session.
//!
//! 1. A side that is not *up* says hello again and again. A hello names the hello of the other side
//!    that it answers, if there is one.
//! 2. A side is up when it has a hello of the other side that answers its own. Each other frame
//!    names the session of its receiver, too. So such a frame of the other side also proves that
//!    the other side has had a hello of this session.
//! 3. A side that is up *ends* its session if a frame is missing, if the other side has another
//!    incarnation or session, says goodbye, or is not heard for the time of a lease. Its next
//!    session has the next number, so frames for the last one are dropped, and the hello of the
//!    next one ends that of the other side. A side that was not up has sent no other frames in its
//!    session, and keeps its number.
//! 4. A frame with a sequence number is taken once, in order. A repeated one is dropped.
//! 5. The other side acknowledges the frames that it has taken. A message is sent only while fewer
//!    messages than a window are not acknowledged. So a side that takes nothing costs bounded
//!    memory.
use crate::{
    change::NodeLoss,
    decode_error::DecodeError,
    frame::{ALIVE, BYE, HELLO, Header, Hello, ORDERED, address},
    identity::Incarnation,
};
use std::{collections::VecDeque, time::Duration};

/// The other side, as its hello tells.
#[derive(Clone, Debug)]
pub(crate) struct Other {
    pub(crate) incarnation: Incarnation,
    pub(crate) session: u32,
    pub(crate) hello: Hello,
}

/// A change by a frame or by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Up,
    Down(NodeLoss),
    /// A hello is to be sent.
    SayHello,
}

/// A frame of the other side, once it was taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken<'a> {
    /// Nothing for the node.
    Nothing,
    /// A frame in its order, with its number and its content.
    Frame {
        kind: u8,
        sequence: u64,
        body: &'a [u8],
    },
}

pub(crate) struct Session {
    own: Incarnation,
    /// The number of this side's session.
    number: u32,
    other: Option<Other>,
    is_up: bool,
    /// The number of the next frame of each side.
    next_out: u64,
    next_in: u64,
    /// How many frames the other side has taken.
    acknowledged: u64,
    /// The numbers of the messages that the other side has not taken.
    messages: VecDeque<u64>,
    /// How many frames of the other side this side has acknowledged.
    reported: u64,
    heard: Duration,
    /// How many messages this side takes before it acknowledges them.
    own_window: u32,
}

impl Session {
    /// Makes a side whose first session has this number. A node never uses a lower one again.
    pub(crate) fn new(own: Incarnation, number: u32, window: u32) -> Self {
        Self {
            own,
            number,
            other: None,
            is_up: false,
            next_out: 0,
            next_in: 0,
            acknowledged: 0,
            messages: VecDeque::new(),
            reported: 0,
            heard: Duration::ZERO,
            own_window: window,
        }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up
    }

    /// Returns the other side, if a session with it is up.
    pub(crate) fn other(&self) -> Option<&Other> {
        self.other.as_ref().filter(|_| self.is_up)
    }

    /// Returns the incarnation and the session of the other side that a hello answers.
    pub(crate) fn heard_of(&self) -> Option<(Incarnation, u32)> {
        let other = self.other.as_ref()?;
        Some((other.incarnation, other.session))
    }

    /// Begins a frame.
    pub(crate) fn header(&self, kind: u8) -> Vec<u8> {
        self.header_before(kind, 16)
    }

    /// Begins a frame that gets as many bytes more.
    fn header_before(&self, kind: u8, bytes: usize) -> Vec<u8> {
        let mut frame = Vec::with_capacity(ORDERED - 8 + bytes);
        let to = self.other.as_ref().filter(|_| kind != HELLO);
        let header = Header {
            incarnation: self.own,
            session: self.number,
            to: to.map_or(0, |other| address(other.incarnation, other.session)),
            kind,
        };
        header.write(&mut frame);
        frame
    }

    /// Returns how many messages may wait for their acknowledgement.
    pub(crate) fn window(&self) -> usize {
        // A window of nothing would never open.
        let window = self.other().map_or(0, |other| other.hello.window.max(4));
        usize::try_from(window).unwrap_or(usize::MAX)
    }

    /// Returns whether there is room for a message.
    pub(crate) fn has_room(&self) -> bool {
        self.is_up && self.messages.len() < self.window()
    }

    /// Returns how many frames the other side has not acknowledged.
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.next_out - self.acknowledged
    }

    /// Makes a frame of a message, for which there is room.
    pub(crate) fn message(&mut self, kind: u8, body: &[u8]) -> (u64, Vec<u8>) {
        let (sequence, frame) = self.frame(kind, body);
        self.messages.push_back(sequence);
        (sequence, frame)
    }

    /// Makes a frame with the next number. The session is up.
    pub(crate) fn frame(&mut self, kind: u8, body: &[u8]) -> (u64, Vec<u8>) {
        debug_assert!(self.is_up);
        let sequence = self.next_out;
        self.next_out += 1;
        let mut frame = self.header_before(kind, 8 + body.len());
        frame.extend_from_slice(&sequence.to_le_bytes());
        debug_assert_eq!(frame.len(), ORDERED);
        frame.extend_from_slice(body);
        (sequence, frame)
    }

    /// Makes a sign of life, which acknowledges all frames that were taken, and tells how many were
    /// sent: so the loss of the last one is seen, too.
    pub(crate) fn alive(&mut self) -> Vec<u8> {
        self.reported = self.next_in;
        let mut frame = self.header(ALIVE);
        frame.extend_from_slice(&self.next_in.to_le_bytes());
        frame.extend_from_slice(&self.next_out.to_le_bytes());
        frame
    }

    /// Returns whether many frames wait for their acknowledgement.
    pub(crate) fn owes_acknowledgement(&self) -> bool {
        self.is_up && (self.next_in - self.reported) * 4 >= u64::from(self.own_window)
    }

    /// Ends the session, if it is up. From now on this side has another one.
    pub(crate) fn end(&mut self, why: NodeLoss, changes: &mut Vec<Change>) {
        if !self.is_up {
            return;
        }
        self.is_up = false;
        self.other = None;
        self.number += 1;
        (self.next_out, self.next_in) = (0, 0);
        (self.acknowledged, self.reported) = (0, 0);
        self.messages.clear();
        changes.push(Change::Down(why));
        changes.push(Change::SayHello);
    }

    fn rise(&mut self, now: Duration, changes: &mut Vec<Change>) {
        if !self.is_up {
            self.is_up = true;
            self.heard = now;
            changes.push(Change::Up);
        }
    }

    /// Returns whether the other side was not heard since `since`.
    pub(crate) fn is_silent(&self, since: Duration) -> bool {
        self.heard < since
    }

    /// The lease is over if the other side was not heard since `since`.
    pub(crate) fn check_lease(&mut self, since: Duration, changes: &mut Vec<Change>) {
        if self.heard >= since {
            return;
        }
        self.end(NodeLoss::Lease, changes);
        // One that was started again may have a clock that went back, and so an older incarnation.
        self.other = None;
    }

    /// Takes a frame of the other side that is no hello.
    ///
    /// # Errors
    /// If it is no frame.
    pub(crate) fn take<'a>(
        &mut self,
        header: Header,
        rest: &'a [u8],
        now: Duration,
        changes: &mut Vec<Change>,
    ) -> Result<Taken<'a>, DecodeError> {
        let is_of_other = self.heard_of() == Some((header.incarnation, header.session));
        if !is_of_other || header.to != address(self.own, self.number) {
            // A frame of another session: the other side may not know that this one has ended.
            if !self.is_up {
                changes.push(Change::SayHello);
            }
            return Ok(Taken::Nothing);
        }
        match header.kind {
            BYE => {
                self.end(NodeLoss::Left, changes);
                return Ok(Taken::Nothing);
            }
            ALIVE => {
                let (taken, sent) = rest.split_first_chunk().ok_or(DecodeError::Short)?;
                let sent = sent.try_into().map_err(|_| DecodeError::Invalid)?;
                let (taken, sent) = (u64::from_le_bytes(*taken), u64::from_le_bytes(sent));
                if taken > self.next_out {
                    return Err(DecodeError::Invalid);
                }
                self.acknowledged = self.acknowledged.max(taken);
                while self
                    .messages
                    .front()
                    .is_some_and(|message| *message < taken)
                {
                    self.messages.pop_front();
                }
                self.rise(now, changes);
                self.heard = now;
                if sent > self.next_in {
                    self.end(NodeLoss::Gap, changes);
                }
                return Ok(Taken::Nothing);
            }
            _ => {}
        }
        let (sequence, body) = rest.split_first_chunk().ok_or(DecodeError::Short)?;
        let sequence = u64::from_le_bytes(*sequence);
        // Rule 2.
        self.rise(now, changes);
        self.heard = now;
        if sequence < self.next_in {
            return Ok(Taken::Nothing);
        }
        if sequence > self.next_in {
            self.end(NodeLoss::Gap, changes);
            return Ok(Taken::Nothing);
        }
        self.next_in += 1;
        Ok(Taken::Frame {
            kind: header.kind,
            sequence,
            body,
        })
    }

    /// Takes a hello of the other side, which has another incarnation.
    pub(crate) fn take_hello(
        &mut self,
        header: Header,
        hello: Hello,
        now: Duration,
        changes: &mut Vec<Change>,
    ) {
        let theirs = (header.incarnation, header.session);
        // A frame that the transport has kept back.
        if self.heard_of().is_some_and(|heard| theirs < heard) {
            return;
        }
        if self.heard_of() != Some(theirs) {
            self.end(NodeLoss::Restarted, changes);
            changes.retain(|change| *change != Change::SayHello);
            changes.push(Change::SayHello);
        }
        self.heard = now;
        let answers_ours = hello.heard == Some((self.own, self.number));
        if !answers_ours && !changes.contains(&Change::SayHello) {
            changes.push(Change::SayHello);
        }
        self.other = Some(Other {
            incarnation: theirs.0,
            session: theirs.1,
            hello,
        });
        if answers_ours {
            self.rise(now, changes);
        }
    }
}

#[cfg(test)]
mod tests;
