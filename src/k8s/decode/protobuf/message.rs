//! What a message consists of, and its fields on the wire.

/// The fields of a message that are read: number, name in JSON, and type; by ascending numbers.
pub type Message = &'static [(u64, &'static str, FieldType)];

/// The type of a field. One that has another type on the wire counts as absent, as in JSON.
#[derive(Clone, Copy, Debug)]
pub enum FieldType {
    Text,
    Int,
    Bool,
    /// `Time` or `MicroTime`.
    Time,
    Quantity,
    IntOrText,
    Message(Message),
    /// A message that is handed over as it is.
    Encoded,
    /// A message whose fields are the object's own in JSON.
    Inline(Message),
    List(&'static FieldType),
    /// By strings.
    Map(&'static FieldType),
    /// Only that it is there counts.
    Ignored,
}

/// The value of a field on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireValue<'a> {
    Int(u64),
    Bytes(&'a [u8]),
}

/// The bytes are not a message: they end within a field, or have a field of an unknown kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message ends within a field, or is none")]
pub struct NotAMessage;

/// Reads the fields of a message one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next field with its number; none at the end. Fixed-size numbers, which no message here has, are skipped.
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

    /// The next field, if it has this number.
    pub fn next_of(&mut self, number: u64) -> Result<Option<WireValue<'a>>, NotAMessage> {
        let before = *self;
        match self.next()? {
            Some((next, value)) if next == number => Ok(Some(value)),
            Some(_) | None => {
                *self = before;
                Ok(None)
            }
        }
    }

    /// The number of the next field and the length of its value, whose bytes follow and need not be here; none if it has no
    /// length, or if that is not here yet.
    pub fn next_length(&mut self) -> Option<(u64, usize)> {
        let tag = self.varint().ok().filter(|tag| tag & 7 == 2)?;
        Some((tag >> 3, usize::try_from(self.varint().ok()?).ok()?))
    }

    /// The last value of a field that has a length; none if there is none.
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

    /// At most ten bytes of seven bits, the lowest first. Most are one byte.
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
        assert_eq!(fields.next_of(3), Ok(None));
        assert_eq!(fields.next_of(2), Ok(Some(WireValue::Bytes(b"ab"))));
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
