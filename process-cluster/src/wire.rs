//! Bytes on the wire: numbers, texts, pids and places for answers.
//!
//! A decoder never panics, and allocates nothing by a length that it has not compared with the
//! bytes that are there. Numbers are little-endian, of their full width.
use crate::{
    codec::Message,
    identity::{Identities, Incarnation},
    peer::{Answer, Peer, Peers, Pending},
};
use process_scheduler::{Pid, Reply};
use std::{
    fmt,
    sync::{Arc, Weak, atomic::Ordering::Relaxed},
};

/// Writes a message. See [`Message::encode`].
pub struct Encoder<'a> {
    pub(crate) bytes: Vec<u8>,
    /// The answers that the message asks for, in the order in which it names them.
    pub(crate) pending: Vec<Pending>,
    pub(crate) identities: &'a Identities,
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(identities: &'a Identities) -> Self {
        Self {
            bytes: Vec::new(),
            pending: Vec::new(),
            identities,
        }
    }

    /// Writes bytes as they are. The reader must know how many.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes a number.
    pub fn u8(&mut self, number: u8) {
        self.bytes.push(number);
    }

    /// Writes a number.
    pub fn u16(&mut self, number: u16) {
        self.raw(&number.to_le_bytes());
    }

    /// Writes a number.
    pub fn u32(&mut self, number: u32) {
        self.raw(&number.to_le_bytes());
    }

    /// Writes a number.
    pub fn u64(&mut self, number: u64) {
        self.raw(&number.to_le_bytes());
    }

    /// Writes a number.
    pub fn i64(&mut self, number: i64) {
        self.raw(&number.to_le_bytes());
    }

    /// Writes a number.
    pub fn f64(&mut self, number: f64) {
        self.raw(&number.to_le_bytes());
    }

    /// Writes yes or no.
    pub fn bool(&mut self, is: bool) {
        self.u8(is.into());
    }

    /// Writes bytes and their number.
    ///
    /// # Panics
    /// If there are 2^32 bytes or more.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.u32(u32::try_from(bytes.len()).expect("a frame is shorter than 4 GiB"));
        self.raw(bytes);
    }

    /// Writes a text.
    ///
    /// # Panics
    /// If it has 2^32 bytes or more.
    pub fn str(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Writes the pid of a process, of any node.
    pub fn pid(&mut self, pid: Pid) {
        let bits = pid.to_bits();
        let Incarnation(incarnation) = self.identities.incarnation_of(pid.node());
        self.u64(incarnation);
        // The slot and the generation.
        self.u64(bits as u64);
    }

    /// Writes the place for an answer, and keeps the reply until the answer comes, or until the
    /// other node is down.
    pub fn reply<R: Message>(&mut self, reply: Reply<R>) {
        let place = u8::try_from(self.pending.len()).expect("a message has at most 255 replies");
        self.u8(place);
        self.pending.push(Pending::of(reply));
    }
}

impl fmt::Debug for Encoder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// There are too few bytes.
    Short,
    /// There are bytes behind the message.
    Long,
    /// A byte has a value that it cannot have.
    Invalid,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "there are too few bytes",
            Self::Long => "there are bytes behind the message",
            Self::Invalid => "a byte has a value that it cannot have",
        })
    }
}

impl std::error::Error for DecodeError {}

/// Where an answer to a decoded message goes.
#[derive(Clone)]
pub(crate) struct AnswerTo {
    pub(crate) peer: Weak<Peer>,
    /// The session and the frame of the message.
    pub(crate) session: u32,
    pub(crate) sequence: u64,
}

/// Counts a call of another node until it is answered.
struct Owed(Weak<Peers>);

impl Owed {
    fn by(to: &AnswerTo) -> Self {
        let peers = to
            .peer
            .upgrade()
            .map_or_else(Weak::new, |peer| peer.peers());
        if let Some(peers) = peers.upgrade() {
            // Ordering: Relaxed, as it is only a count.
            peers.owed.fetch_add(1, Relaxed);
        }
        Self(peers)
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        if let Some(peers) = self.0.upgrade() {
            // Ordering: as above.
            peers.owed.fetch_sub(1, Relaxed);
        }
    }
}

/// Reads a message. See [`Message::decode`].
pub struct Decoder<'a> {
    rest: &'a [u8],
    answer_to: AnswerTo,
    pub(crate) identities: &'a Arc<Identities>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(
        rest: &'a [u8],
        answer_to: AnswerTo,
        identities: &'a Arc<Identities>,
    ) -> Self {
        Self {
            rest,
            answer_to,
            identities,
        }
    }

    /// Reads `length` bytes as they are.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn raw(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let bytes = self.raw(N)?;
        Ok(bytes.try_into().expect("it has this length"))
    }

    /// Reads a number.
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    /// Reads a number.
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Reads a number.
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Reads a number.
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads a number.
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// Reads a number.
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn f64(&mut self) -> Result<f64, DecodeError> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// Reads yes or no.
    ///
    /// # Errors
    /// If the byte is neither, or is not there.
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Invalid),
        }
    }

    /// Reads bytes and their number.
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.u32()?;
        self.raw(length as usize)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// If there are too few bytes, or they are no text.
    pub fn str(&mut self) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DecodeError::Invalid)
    }

    /// Reads the pid of a process. Its node may be one that this node does not know yet.
    ///
    /// # Errors
    /// If there are too few bytes, or they name no process.
    pub fn pid(&mut self) -> Result<Pid, DecodeError> {
        let incarnation = Incarnation(self.u64()?);
        let bits = self.u64()?;
        let pid = Pid::from_bits(bits.into()).ok_or(DecodeError::Invalid)?;
        Ok(pid.with_node(self.identities.number_of(incarnation)))
    }

    /// Reads the place for an answer. The answer goes to the node of the message, if that is still
    /// reached then. A reply that is dropped ends the call there.
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn reply<R: Message>(&mut self) -> Result<Reply<R>, DecodeError> {
        let place = self.u8()?;
        let to = self.answer_to.clone();
        let identities = self.identities.clone();
        let owed = Owed::by(&to);
        Ok(Reply::from_fn(move |answer: Result<R, _>| {
            let _owed = owed;
            let Some(peer) = to.peer.upgrade() else {
                return;
            };
            let answer = match answer {
                Ok(answer) => {
                    let mut out = Encoder::new(&identities);
                    answer.encode(&mut out);
                    // Places for further answers in an answer have nobody to keep them.
                    Answer::Value(out.bytes)
                }
                Err(_) => Answer::Dropped,
            };
            peer.answer(&to, place, answer);
        }))
    }

    pub(crate) fn answer_to(&self) -> AnswerTo {
        self.answer_to.clone()
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// If bytes are left.
    pub(crate) fn end(self) -> Result<(), DecodeError> {
        match self.rest {
            [] => Ok(()),
            _ => Err(DecodeError::Long),
        }
    }

    /// Returns the bytes that are left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }
}

impl fmt::Debug for Decoder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("left", &self.rest.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
