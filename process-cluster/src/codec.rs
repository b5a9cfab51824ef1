//! How messages become bytes: a type has a tag, and nodes agree on tags by their names.
use crate::{
    decode_error::DecodeError,
    wire::{Decoder, Encoder, Message},
};
use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
};

type EncodeFn = fn(Box<dyn Any + Send>, &mut Encoder<'_>);
type DecodeFn = fn(&mut Decoder<'_>) -> Result<Box<dyn Any + Send>, DecodeError>;
type LengthFn = fn(&(dyn Any + Send)) -> usize;

struct Codec {
    name: String,
    encode: EncodeFn,
    decode: DecodeFn,
    length: LengthFn,
}

/// The codecs of a node. A tag is the number of a codec on one node; the
/// other nodes learn the names in the order of the tags.
#[derive(Default)]
pub(crate) struct Codecs {
    codecs: Vec<Codec>,
    by_type: HashMap<TypeId, u16>,
}

impl Codecs {
    /// Adds a codec. Returns false if the name is taken, or there are too many. Several names of
    /// one type are versions that may come; the first one is what is sent.
    pub(crate) fn add<M: Message>(&mut self, name: &str) -> bool {
        let Ok(tag) = u16::try_from(self.codecs.len()) else {
            return false;
        };
        // The number of codecs has 16 bits, too.
        if tag == u16::MAX || self.names().any(|other| other == name) {
            return false;
        }
        self.by_type.entry(TypeId::of::<M>()).or_insert(tag);
        self.codecs.push(Codec {
            name: name.to_owned(),
            encode: |value, out| {
                let value = value.downcast::<M>().expect("the codec of its type");
                value.encode(out);
            },
            decode: |input| Ok(Box::new(M::decode(input)?)),
            length: |value| value.downcast_ref().map_or(0, M::encoded_len),
        });
        true
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.codecs.iter().map(|codec| &*codec.name)
    }

    /// Returns the tag of a value, and how many bytes it takes at least.
    pub(crate) fn tag_of(&self, value: &(dyn Any + Send)) -> Option<(u16, usize)> {
        let tag = *self.by_type.get(&value.type_id())?;
        Some((tag, (self.codecs[usize::from(tag)].length)(value)))
    }

    /// Encodes a value with the tag of its type.
    pub(crate) fn encode(&self, tag: u16, value: Box<dyn Any + Send>, out: &mut Encoder<'_>) {
        (self.codecs[usize::from(tag)].encode)(value, out);
    }

    /// Decodes a value. The tag comes from another node, and may be none.
    pub(crate) fn decode(
        &self,
        tag: u16,
        input: &mut Decoder<'_>,
    ) -> Result<Box<dyn Any + Send>, DecodeError> {
        let codec = self
            .codecs
            .get(usize::from(tag))
            .ok_or(DecodeError::Invalid)?;
        (codec.decode)(input)
    }
}

impl fmt::Debug for Codecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
