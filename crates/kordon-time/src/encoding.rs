//! Encoding of times in a recording (docs/reference/recording.md): seconds since a base time, which [`TimeBase`]
//! provides.

use minicbor::{Decode, Decoder, Encode, Encoder, data::Type, encode::Write};

use crate::{ClusterTime, Span, Timestamp};

type ReadError = minicbor::decode::Error;
type WriteError<W> = minicbor::encode::Error<<W as Write>::Error>;

/// Provides the base time of encoded times.
pub trait TimeBase {
    fn time_base(&self) -> Timestamp;
}

impl<C: TimeBase> Encode<C> for Timestamp {
    fn encode<W: Write>(&self, encoder: &mut Encoder<W>, context: &mut C) -> Result<(), WriteError<W>> {
        let base = context.time_base();
        Span::from_nanos(self.as_nanos().wrapping_sub(base.as_nanos())).encode(encoder, context)
    }
}

impl<'b, C: TimeBase> Decode<'b, C> for Timestamp {
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, ReadError> {
        let since = Span::decode(decoder, context)?;
        Ok(Self::from_nanos(context.time_base().as_nanos().wrapping_add(since.as_nanos())))
    }
}

impl<C: TimeBase> Encode<C> for ClusterTime {
    fn encode<W: Write>(&self, encoder: &mut Encoder<W>, context: &mut C) -> Result<(), WriteError<W>> {
        Timestamp::from_nanos(self.as_nanos()).encode(encoder, context)
    }
}

impl<'b, C: TimeBase> Decode<'b, C> for ClusterTime {
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, ReadError> {
        Timestamp::decode(decoder, context).map(Self::new)
    }
}

const SECOND: i64 = 1_000_000_000;

impl<C> Encode<C> for Span {
    /// Encodes whole seconds as one number, other spans as seconds and nanoseconds.
    fn encode<W: Write>(&self, encoder: &mut Encoder<W>, _context: &mut C) -> Result<(), WriteError<W>> {
        let (seconds, nanos) = (self.as_nanos().div_euclid(SECOND), self.as_nanos().rem_euclid(SECOND));
        if nanos == 0 {
            return encoder.i64(seconds)?.ok();
        }
        encoder.array(2)?.i64(seconds)?.i64(nanos)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Span {
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, ReadError> {
        let (seconds, nanos) = match decoder.datatype()? {
            Type::Array | Type::ArrayIndef => <(i64, i64)>::decode(decoder, context)?,
            _ => (decoder.i64()?, 0),
        };
        let span = seconds.checked_mul(SECOND).and_then(|whole| whole.checked_add(nanos));
        span.map(Self::from_nanos).ok_or_else(|| ReadError::message("a time out of range"))
    }
}
