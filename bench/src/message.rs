//! The layout of the messages between the clients outside and the servers. The answer to a message
//! is the message.

/// The byte that tells the client which of its requests is answered.
pub(crate) const SLOT: usize = 0;

/// The byte of the kind of work before the answer.
pub(crate) const KIND: usize = 1;

/// The number of bytes with a meaning. A message has at least so many.
pub(crate) const HEAD: usize = 2;

/// The most bytes of a message.
pub(crate) const MOST: usize = 2_048;

/// The number of kinds. Each is 1 % of the requests.
pub(crate) const KINDS: u8 = 100;

/// The kind of a message that makes its connection one of those that get the news.
pub(crate) const SUBSCRIBE: u8 = 200;

/// The kind of a message that is sent on to all of these connections.
pub(crate) const PUBLISH: u8 = 201;

/// The bytes of a large answer: 1 GiB, or less in a build for tests.
pub(crate) const LARGE: usize = if cfg!(debug_assertions) {
    16 * MEBIBYTE
} else {
    1_024 * MEBIBYTE
};

pub(crate) const MEBIBYTE: usize = 1 << 20;
