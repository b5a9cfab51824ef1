//! The encodings of numbers, texts and options.
use crate::{
    decode_error::DecodeError,
    wire::{Decoder, Encoder, Message},
};

macro_rules! numbers {
    ($($number:ident)*) => {$(
        impl Message for $number {
            fn encode(self, out: &mut Encoder<'_>) {
                out.$number(self);
            }

            fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                input.$number()
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 i64 f64 bool);

impl Message for () {
    fn encode(self, _: &mut Encoder<'_>) {}

    fn decode(_: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(())
    }
}

impl Message for String {
    fn encode(self, out: &mut Encoder<'_>) {
        out.str(&self);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        input.str().map(str::to_owned)
    }

    fn encoded_len(&self) -> usize {
        self.len()
    }
}

impl Message for Vec<u8> {
    fn encode(self, out: &mut Encoder<'_>) {
        out.bytes(&self);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        input.bytes().map(<[u8]>::to_vec)
    }

    fn encoded_len(&self) -> usize {
        self.len()
    }
}

impl<M: Message> Message for Option<M> {
    fn encode(self, out: &mut Encoder<'_>) {
        out.bool(self.is_some());
        if let Some(value) = self {
            value.encode(out);
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match input.bool()? {
            true => Some(M::decode(input)?),
            false => None,
        })
    }
}
