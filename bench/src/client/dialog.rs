//! The bytes of requests and answers.
use super::spec::Dialog;
use crate::{hello, message, random::Random};

/// The byte of a message that has no other meaning.
const FILL: u8 = 7;

/// An answer, or a part of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Partial,
    /// The answer to the request of this slot.
    Whole(usize),
    Wrong,
}

impl Dialog {
    /// Writes the request of a slot. A slot is one of the requests on a connection's way.
    pub(super) fn request(self, slot: usize, random: &mut Random, to: &mut Vec<u8>) {
        to.clear();
        let bytes = match self {
            Self::Hello => return to.extend(hello::request("/")),
            Self::Echo(bytes) | Self::Mixed(bytes) | Self::FanOut(bytes) => bytes,
            Self::Large | Self::Connect => message::HEAD,
        };
        to.resize(bytes, FILL);
        to[message::SLOT] = slot as u8;
        if let Self::Mixed(_) = self {
            to[message::KIND] = random.below(message::KINDS.into()) as u8;
        }
    }

    /// Judges what has come since the answer before. A datagram comes whole or not at all.
    pub(super) fn judge(self, answer: &[u8], is_datagram: bool) -> Answer {
        match self {
            Self::Hello if hello::is_whole(answer) => Answer::Whole(0),
            Self::Hello => Answer::Partial,
            Self::Large | Self::Connect => Answer::Wrong,
            Self::Echo(bytes) | Self::Mixed(bytes) | Self::FanOut(bytes) => {
                if answer.len() < bytes && !is_datagram {
                    return Answer::Partial;
                }
                let is_fill = |rest: &[u8]| rest.iter().all(|byte| *byte == FILL);
                let rest = answer.get(message::HEAD..).filter(|rest| is_fill(rest));
                match rest {
                    Some(_) if answer.len() == bytes => Answer::Whole(answer[message::SLOT].into()),
                    _ => Answer::Wrong,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_datagram_is_wrong_where_a_short_read_is_not() {
        let mut message = Vec::new();
        Dialog::Echo(64).request(3, &mut Random(1), &mut message);
        let judge = |answer: &[u8], is_datagram| Dialog::Echo(64).judge(answer, is_datagram);
        assert_eq!(judge(&message, true), Answer::Whole(3));
        assert_eq!(judge(&message[..63], true), Answer::Wrong);
        assert_eq!(judge(&message[..63], false), Answer::Partial);
        message[40] += 1;
        assert_eq!(judge(&message, false), Answer::Wrong);
    }

    #[test]
    fn hello_is_whole_with_its_body() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        assert_eq!(Dialog::Hello.judge(answer, false), Answer::Whole(0));
        assert_eq!(Dialog::Hello.judge(&answer[..40], false), Answer::Partial);
    }
}
