//! Bytes on the wire: numbers, texts, pids and places for answers.
//!
//! A decoder never panics, and allocates nothing by a length that it has not compared with the
//! bytes that are there. Numbers are little-endian, of their full width.
use crate::{
    decode_error::DecodeError,
    identity::{Identities, Incarnation},
};
use process_scheduler::{Pid, Reply};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// A value that travels between nodes: a message, or the answer to a call.
///
/// ```
/// use process_cluster::{DecodeError, Decoder, Encoder, Message};
/// use process_scheduler::Reply;
///
/// enum Account {
///     Deposit(u64),
///     Balance(Reply<u64>),
/// }
///
/// impl Message for Account {
///     fn encode(self, out: &mut Encoder<'_>) {
///         match self {
///             Account::Deposit(amount) => {
///                 out.u8(0);
///                 out.u64(amount);
///             }
///             Account::Balance(reply) => {
///                 out.u8(1);
///                 out.reply(reply);
///             }
///         }
///     }
///
///     fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
///         Ok(match input.u8()? {
///             0 => Account::Deposit(input.u64()?),
///             1 => Account::Balance(input.reply()?),
///             _ => return Err(DecodeError::Invalid),
///         })
///     }
/// }
/// ```
pub trait Message: Sized + Send + 'static {
    /// Writes the value.
    fn encode(self, out: &mut Encoder<'_>);

    /// Reads a value.
    ///
    /// # Errors
    /// If the bytes are no such value. They may be anything: check what you read.
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError>;

    /// Returns a number of bytes that the value takes at least: 0 by default. A message that takes
    /// more than the limit of a frame by this number is handed back to its sender. One that turns
    /// out to be too large when it is encoded is a dead letter.
    fn encoded_len(&self) -> usize {
        0
    }
}

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
            // Most messages are short: one allocation.
            bytes: Vec::with_capacity(96),
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

/// The content of an answer's frame.
pub(crate) enum Answer {
    Value(Vec<u8>),
    Dropped,
}

/// The way of answers to another node.
pub(crate) trait Answers: Send + Sync {
    fn answer(&self, to: &AnswerTo, place: u8, answer: Answer);

    /// Counts the calls that are not answered.
    fn unanswered(&self) -> &Mutex<usize>;
}

/// Where an answer to a decoded message goes.
#[derive(Clone)]
pub(crate) struct AnswerTo {
    pub(crate) way: Weak<dyn Answers>,
    /// This side's session, and the frame of the message.
    pub(crate) session: u32,
    pub(crate) sequence: u64,
}

/// Answers a call of another node once: if nothing else does, by its drop.
struct Call {
    to: AnswerTo,
    place: u8,
    is_over: bool,
}

/// Locks the count of calls that are not answered.
fn count(way: &dyn Answers) -> MutexGuard<'_, usize> {
    way.unanswered()
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

impl Call {
    fn begin(to: AnswerTo, place: u8) -> Self {
        if let Some(way) = to.way.upgrade() {
            *count(&*way) += 1;
        }
        Self {
            to,
            place,
            is_over: false,
        }
    }

    fn end(&mut self, answer: Answer) {
        self.is_over = true;
        if let Some(way) = self.to.way.upgrade() {
            way.answer(&self.to, self.place, answer);
            *count(&*way) -= 1;
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(Answer::Dropped);
        }
    }
}

/// The place of a call whose answer comes from another node.
pub(crate) struct Pending(Box<dyn AnyReply>);

/// How a call ends.
enum End<'a> {
    Value(Decoder<'a>),
    Dropped,
    NodeDown,
}

trait AnyReply: Send {
    fn end(self: Box<Self>, how: End<'_>) -> Result<(), DecodeError>;
    fn is_abandoned(&self) -> bool;
}

impl<R: Message> AnyReply for Reply<R> {
    fn end(self: Box<Self>, how: End<'_>) -> Result<(), DecodeError> {
        match how {
            End::Value(mut input) => {
                let answer = R::decode(&mut input)?;
                input.end()?;
                drop(self.send(answer));
            }
            End::Dropped => {}
            End::NodeDown => self.node_down(),
        }
        Ok(())
    }

    fn is_abandoned(&self) -> bool {
        Reply::is_abandoned(self)
    }
}

impl Pending {
    fn of<R: Message>(reply: Reply<R>) -> Self {
        Self(Box::new(reply))
    }

    /// Ends the call with the value that the input holds.
    ///
    /// # Errors
    /// If it holds no such value: the call was dropped.
    pub(crate) fn answer(self, input: Decoder<'_>) -> Result<(), DecodeError> {
        self.0.end(End::Value(input))
    }

    /// Ends the call without an answer.
    pub(crate) fn drop_call(self) {
        let _ = self.0.end(End::Dropped);
    }

    pub(crate) fn node_down(self) {
        let _ = self.0.end(End::NodeDown);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.0.is_abandoned()
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
        let mut call = Call::begin(self.answer_to.clone(), self.u8()?);
        let identities = self.identities.clone();
        Ok(Reply::from_fn(move |answer: Result<R, _>| {
            // An answer whose encoder panics is one that was dropped.
            if let Ok(answer) = answer {
                let mut out = Encoder::new(&identities);
                answer.encode(&mut out);
                // Places for further answers in an answer have nobody to keep them.
                call.end(Answer::Value(out.bytes));
            }
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
