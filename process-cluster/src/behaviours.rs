//! The processes that a node spawns by a tag, for itself and for other nodes.
use crate::{
    decode_error::DecodeError,
    wire::{Decoder, Encoder, Message},
};
use process_scheduler::{Handle, Pid, Process, Spawn, SpawnError};
use std::{
    any::Any,
    collections::HashMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// The arguments of a spawn.
pub(crate) enum Arguments<'a> {
    Value(Box<dyn Any + Send>),
    Bytes(Decoder<'a>),
}

/// The end of a spawn on its node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Spawned(Pid),
    UnknownTag,
    NotAuthorized,
    BadArguments,
    Refused(String),
}

impl Message for Outcome {
    fn encode(self, out: &mut Encoder<'_>) {
        match self {
            Self::Spawned(pid) => {
                out.u8(0);
                out.pid(pid);
            }
            Self::UnknownTag => out.u8(1),
            Self::NotAuthorized => out.u8(2),
            Self::BadArguments => out.u8(3),
            Self::Refused(why) => {
                out.u8(4);
                out.str(&why);
            }
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match input.u8()? {
            0 => Self::Spawned(input.pid()?),
            1 => Self::UnknownTag,
            2 => Self::NotAuthorized,
            3 => Self::BadArguments,
            4 => Self::Refused(input.str()?.to_owned()),
            _ => return Err(DecodeError::Invalid),
        })
    }
}

/// Called with the pid of a new process, before its first step.
type Then<'a> = &'a mut dyn FnMut(Pid);
type SpawnFn = dyn Fn(&Handle, Arguments<'_>, Then<'_>) -> Outcome + Send + Sync;

#[derive(Default)]
pub(crate) struct Behaviours(HashMap<String, Box<SpawnFn>>);

impl Behaviours {
    /// Adds a behaviour. Returns false if the tag is taken.
    pub(crate) fn add<A, P>(
        &mut self,
        tag: &str,
        make: impl Fn(A) -> (P, Spawn) + Send + Sync + 'static,
    ) -> bool
    where
        A: Message,
        P: Process,
    {
        if self.0.contains_key(tag) {
            return false;
        }
        let spawns = move |handle: &Handle, arguments: Arguments<'_>, then: Then<'_>| {
            let arguments = match arguments {
                Arguments::Value(value) => value.downcast().ok().map(|value| *value),
                Arguments::Bytes(mut input) => {
                    let value = A::decode(&mut input).ok();
                    value.filter(|_| input.end().is_ok())
                }
            };
            let Some(arguments) = arguments else {
                return Outcome::BadArguments;
            };
            let (process, spawn) = make(arguments);
            let mut spawned = None;
            let started = handle.spawn_process_then(process, spawn, |pid| {
                spawned = Some(pid);
                then(pid);
            });
            match (started, spawned) {
                (Ok(_), Some(pid)) => Outcome::Spawned(pid),
                (Err(error), _) => refused(&error),
                (Ok(_), None) => unreachable!("it was called"),
            }
        };
        self.0.insert(tag.to_owned(), Box::new(spawns));
        true
    }

    /// Spawns a process. `then` is called if the process was spawned. A panic of the user's code is
    /// a refusal.
    pub(crate) fn spawn(
        &self,
        handle: &Handle,
        tag: &str,
        arguments: Arguments<'_>,
        then: Then<'_>,
    ) -> Outcome {
        let Some(behaviour) = self.0.get(tag) else {
            return Outcome::UnknownTag;
        };
        let spawned = catch_unwind(AssertUnwindSafe(|| behaviour(handle, arguments, then)));
        spawned.unwrap_or_else(|_| Outcome::Refused("its start panicked".to_owned()))
    }
}

/// Returns the begin of the text of an error, which may be long.
fn refused(error: &SpawnError) -> Outcome {
    Outcome::Refused(error.to_string().chars().take(1_000).collect())
}

impl fmt::Debug for Behaviours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
