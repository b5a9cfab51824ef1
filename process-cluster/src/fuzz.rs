//! Inputs for the decoders and for a session, with checks: those of the tests, which are mutated at
//! random, and those of a fuzzer.
//!
//! A fuzzer is guided by the code that an input reaches. Its program is in the folder `fuzz` of the
//! repository, and inputs that it found are in `src/fuzz/corpus`. Ten million random inputs without
//! that guidance, on any compiler:
//!
//! ```sh
//! cargo test --release -p process-cluster --lib -- --ignored ten_million
//! ```
use crate::{
    behaviours::Outcome,
    codec::Codecs,
    frame::{HELLO, Header, Hello},
    identity::{Identities, Incarnation},
    session::{Change, Session, Taken},
    signals,
    wire::{Answer, AnswerTo, Answers, Decoder, Encoder, Message},
};
use process_scheduler::{Pid, Reply};
use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

const OWN: Incarnation = Incarnation(100);
const OTHER: Incarnation = Incarnation(200);

/// No place for answers.
struct Nowhere;

impl Answers for Nowhere {
    fn answer(&self, _: &AnswerTo, _: u8, _: Answer) {}

    fn unanswered(&self) -> &Mutex<usize> {
        static NONE: Mutex<usize> = Mutex::new(0);
        &NONE
    }
}

/// A message that has each kind of value.
struct Everything(u8, Vec<u8>, String, Option<u64>, Pid, Reply<String>);

impl Message for Everything {
    fn encode(self, out: &mut Encoder<'_>) {
        out.u8(self.0);
        self.1.encode(out);
        self.2.encode(out);
        self.3.encode(out);
        out.pid(self.4);
        out.reply(self.5);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, crate::DecodeError> {
        Ok(Self(
            input.u8()?,
            Vec::decode(input)?,
            String::decode(input)?,
            Option::decode(input)?,
            input.pid()?,
            input.reply()?,
        ))
    }
}

fn hello() -> Hello {
    Hello {
        name: "other".to_owned(),
        heard: Some((OWN, 1)),
        window: 8,
        limit: 4_096,
        codecs: vec!["account/1".to_owned(), "order/2".to_owned()],
    }
}

/// Returns a side that is up with the other node.
fn session() -> Session {
    let mut session = Session::new(OWN, 1, 8);
    let header = Header {
        incarnation: OTHER,
        session: 1,
        to: 0,
        kind: HELLO,
    };
    session.take_hello(header, hello(), Duration::ZERO, &mut Vec::new());
    assert!(session.is_up());
    session
}

/// Feeds an input to all decoders. They may refuse it, and nothing else.
fn decodes(input: &[u8], identities: &Arc<Identities>, codecs: &Codecs) {
    let way: Weak<Nowhere> = Weak::new();
    let decoder = || {
        let answer_to = AnswerTo {
            way: way.clone(),
            session: 1,
            sequence: 1,
        };
        Decoder::new(input, answer_to, identities)
    };
    let message = codecs.decode(0, &mut decoder());
    if let Ok(message) = message {
        let Everything(_, bytes, text, ..) = &*message.downcast::<Everything>().unwrap();
        assert!(bytes.len() + text.len() <= input.len());
    }
    assert!(codecs.decode(1, &mut decoder()).is_err());
    let _ = signals::read(&mut decoder());
    if let Ok(Outcome::Refused(why)) = Outcome::decode(&mut decoder()) {
        assert!(why.len() <= input.len());
    }
    if let Ok(hello) = Hello::read(input) {
        let names: usize = hello.codecs.iter().map(|name| 2 + name.len()).sum();
        assert!(names + hello.name.len() <= input.len());
        let mut again = Vec::new();
        hello.write(&mut again);
        assert_eq!(Hello::read(&again), Ok(hello));
    }
}

/// The decoders and a session, which take inputs with checks.
pub struct Fed {
    identities: Arc<Identities>,
    codecs: Codecs,
    session: Session,
    /// The session's number and the number of the frame that it took last.
    last: Option<(u32, u64)>,
    inputs: u64,
    changes: Vec<Change>,
}

impl Default for Fed {
    fn default() -> Self {
        let mut codecs = Codecs::default();
        assert!(codecs.add::<Everything>("everything/1"));
        Self {
            identities: Arc::new(Identities::new(OWN, 0)),
            codecs,
            session: session(),
            last: None,
            inputs: 0,
            changes: Vec::new(),
        }
    }
}

impl Fed {
    /// Gives an input to all decoders and, as a frame, to the session.
    pub fn feed(&mut self, input: &[u8]) {
        self.inputs += 1;
        decodes(input, &self.identities, &self.codecs);
        let Ok((header, rest)) = Header::read(input) else {
            return;
        };
        let session = &mut self.session;
        let now = Duration::from_millis(self.inputs);
        if header.kind == HELLO {
            if let Ok(hello) = Hello::read(rest) {
                session.take_hello(header, hello, now, &mut self.changes);
            }
        } else if let Ok(Taken::Frame { sequence, body, .. }) =
            session.take(header, rest, now, &mut self.changes)
        {
            let session = session.number();
            // The frames come in order, and once.
            let expected = match self.last {
                Some((of, sequence)) if of == session => sequence + 1,
                _ => 0,
            };
            assert_eq!(sequence, expected);
            assert!(body.len() < input.len());
            self.last = Some((session, sequence));
        }
        if session.is_up() {
            if session.has_room() {
                session.message(3, b"content");
                assert!(session.unacknowledged() <= session.window() as u64);
            }
            drop(session.alive());
        }
        self.changes.clear();
    }

    /// Feeds the parts of bytes: before each part stands its length, as a byte.
    pub fn feed_parts(&mut self, mut bytes: &[u8]) {
        while let Some((length, rest)) = bytes.split_first() {
            let (part, rest) = rest.split_at(rest.len().min(usize::from(*length)));
            self.feed(part);
            bytes = rest;
        }
    }
}

#[cfg(test)]
mod tests;
