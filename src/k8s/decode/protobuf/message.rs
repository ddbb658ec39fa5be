//! Protobuf messages, and how they are read into the types of the decoders.
//!
//! The same types are read from JSON. Each type is declared with its protobuf field numbers ([`message!`]).

use serde::de::IgnoredAny;

/// The value of a field on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireValue<'a> {
    Int(u64),
    Bytes(&'a [u8]),
}

impl<'a> WireValue<'a> {
    /// Calls `read` with the number and value of each field of a message.
    pub fn each_field(
        self,
        mut read: impl FnMut(u64, Self) -> Result<(), NotAMessage>,
    ) -> Result<(), NotAMessage> {
        let Self::Bytes(bytes) = self else { return Ok(()) };
        let mut fields = Fields(bytes);
        while let Some((number, value)) = fields.next()? {
            read(number, value)?;
        }
        Ok(())
    }

    /// Returns the text; `None` if the value is a number.
    pub fn text(self) -> Result<Option<&'a str>, NotAMessage> {
        let Self::Bytes(bytes) = self else { return Ok(None) };
        str::from_utf8(bytes).map(Some).map_err(|_| NotAMessage)
    }

    /// Returns the key and value of an entry in a map with text keys. A missing value is empty.
    pub fn entry(self) -> Result<Option<(&'a str, Self)>, NotAMessage> {
        let Self::Bytes(bytes) = self else { return Ok(None) };
        let (mut fields, mut key, mut of_key) = (Fields(bytes), "", Self::Bytes(&[]));
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => key = value.text()?.unwrap_or_default(),
                2 => of_key = value,
                _ => {}
            }
        }
        Ok(Some((key, of_key)))
    }
}

/// Error: the bytes are not a message. They end within a field, or have a field of an unknown wire type, or text that
/// is not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message ends within a field, or is none")]
pub struct NotAMessage;

/// A message into which fields are read one by one.
pub trait Message<'a> {
    /// Reads the field with this number. Ignores the fields that kordon does not use.
    fn field(&mut self, number: u64, value: WireValue<'a>) -> Result<(), NotAMessage>;
}

/// A type that can read the value of a field. A list or map adds the value as an entry. As in JSON, a value of another
/// wire type counts as absent.
pub trait ReadField<'a> {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage>;
}

impl<'a, M: Message<'a>> ReadField<'a> for M {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        value.each_field(|number, value| self.field(number, value))
    }
}

/// An optional message, which exists once its field has been read.
impl<'a, F: ReadField<'a> + Default> ReadField<'a> for Option<F> {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        match value {
            WireValue::Bytes(_) => self.get_or_insert_default().read(value),
            WireValue::Int(_) => Ok(()),
        }
    }
}

/// Ignores the value. Used for fields for which only the presence matters.
impl<'a> ReadField<'a> for IgnoredAny {
    fn read(&mut self, _: WireValue<'a>) -> Result<(), NotAMessage> {
        Ok(())
    }
}

/// Declares which fields of a message are read, by their numbers in the published API definitions (`generated.proto`).
/// All other fields are skipped. After the semicolon comes an embedded message; in JSON its fields are fields of the
/// object itself.
macro_rules! message {
    (
        impl<$lifetime:lifetime> $message:ty {
            $($number:literal => $field:ident),+ $(,)?
            $(; $inline:literal => { $($inner:literal => $inner_field:ident),+ $(,)? })?
        }
    ) => {
        impl<$lifetime> $crate::k8s::decode::protobuf::Message<$lifetime> for $message {
            fn field(
                &mut self,
                number: u64,
                value: $crate::k8s::decode::protobuf::WireValue<$lifetime>,
            ) -> Result<(), $crate::k8s::decode::protobuf::NotAMessage> {
                use $crate::k8s::decode::protobuf::ReadField as _;
                match number {
                    $($number => self.$field.read(value),)+
                    $($inline => value.each_field(|number, value| match number {
                        $($inner => self.$inner_field.read(value),)+
                        _ => Ok(()),
                    }),)?
                    _ => Ok(()),
                }
            }
        }
    };
}
pub(in crate::k8s::decode) use message;

/// Declares an API object, or a part of one, as it is read from JSON and from protobuf. The name of a field is its JSON
/// name in snake case, and the number after `=` is its number in the published API definitions. A field without a
/// number is not read from protobuf. After the semicolon comes an embedded message, as in [`message`].
macro_rules! wire {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident<$lifetime:lifetime> {
            $($(#[$of_field:meta])* $seen:vis $field:ident: $type:ty $(= $number:literal)?),+ $(,)?
            $(; $inline:literal => { $($inner:literal => $inner_field:ident),+ $(,)? })?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Default, serde::Deserialize)]
        #[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
        $visibility struct $name<$lifetime> {
            $($(#[$of_field])* $seen $field: $type,)+
        }

        $crate::k8s::decode::protobuf::message! {
            impl<$lifetime> $name<$lifetime> {
                $($($number => $field,)?)+
                $(; $inline => { $($inner => $inner_field),+ })?
            }
        }
    };
}
pub(in crate::k8s::decode) use wire;

/// Reads the fields of a message one by one.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// Returns the next field with its number; `None` at the end. Fixed-size numbers are skipped, as no message here
    /// uses them.
    #[inline]
    pub fn next(&mut self) -> Result<Option<(u64, WireValue<'a>)>, NotAMessage> {
        while !self.0.is_empty() {
            let tag = self.varint()?;
            let number = tag >> 3;
            match tag & 7 {
                0 => return Ok(Some((number, WireValue::Int(self.varint()?)))),
                1 => drop(self.bytes(8)?),
                2 => {
                    let length = self.varint()?;
                    return Ok(Some((number, WireValue::Bytes(self.bytes(length)?))));
                }
                5 => drop(self.bytes(4)?),
                _ => return Err(NotAMessage),
            }
        }
        Ok(None)
    }

    /// Returns the number of the next field and the length of its value. `None` if the field has no length, or its
    /// length has not arrived yet. The value may still be missing.
    pub fn next_length(&mut self) -> Option<(u64, usize)> {
        let tag = self.varint().ok().filter(|tag| tag & 7 == 2)?;
        Some((tag >> 3, usize::try_from(self.varint().ok()?).ok()?))
    }

    /// Returns the last value of the field with this number; `None` if there is none. Values without a length are
    /// skipped.
    pub fn find(mut self, number: u64) -> Result<Option<&'a [u8]>, NotAMessage> {
        let mut found = None;
        while let Some((next, value)) = self.next()? {
            if let WireValue::Bytes(bytes) = value
                && next == number
            {
                found = Some(bytes);
            }
        }
        Ok(found)
    }

    fn bytes(&mut self, length: u64) -> Result<&'a [u8], NotAMessage> {
        let length = usize::try_from(length).map_err(|_| NotAMessage)?;
        let (taken, rest) = self.0.split_at_checked(length).ok_or(NotAMessage)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads a varint: at most ten bytes of seven bits each, the lowest first. Most are one byte.
    #[inline]
    fn varint(&mut self) -> Result<u64, NotAMessage> {
        match self.0 {
            [byte @ ..0x80, rest @ ..] => {
                self.0 = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, NotAMessage> {
        let mut value = 0;
        for (place, byte) in self.0.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                self.0 = &self.0[place + 1..];
                return Ok(value);
            }
        }
        Err(NotAMessage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_their_order_and_fixed_ones_skipped() {
        let bytes = [0x08, 0x96, 0x01, 0x19, 1, 2, 3, 4, 5, 6, 7, 8, 0x12, 2, b'a', b'b', 0x25, 1, 2, 3, 4];
        let mut fields = Fields(&bytes);
        assert_eq!(fields.next(), Ok(Some((1, WireValue::Int(150)))));
        assert_eq!(fields.next(), Ok(Some((2, WireValue::Bytes(b"ab")))));
        assert_eq!(fields.next(), Ok(None));
        assert_eq!(Fields(&bytes).find(2), Ok(Some(&b"ab"[..])));
    }

    #[test]
    fn bytes_that_end_within_a_field_are_no_message() {
        for bytes in [&[0x08][..], &[0x12, 3, 1], &[0x19, 1], &[0xff; 11], &[0x0b], &[0x12, 0xff, 0xff, 0xff]]
        {
            assert_eq!(Fields(bytes).next(), Err(NotAMessage), "{bytes:?}");
        }
    }
}
