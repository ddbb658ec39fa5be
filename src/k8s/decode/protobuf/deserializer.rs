//! Messages as serde's data model: the types that are read from JSON are read from protobuf too.
//!
//! Names of fields come from the table of the message, so that a type has one definition for both. Fields of the type
//! that are not on the wire are absent, as in JSON. A list or map whose entries do not stand one after the other, as
//! every encoder writes them, makes the object unreadable.

use std::{fmt, str};

use serde::{
    Deserializer,
    de::{
        self, DeserializeSeed, MapAccess, SeqAccess, Visitor,
        value::{BorrowedStrDeserializer, UnitDeserializer},
    },
    forward_to_deserialize_any,
};

use super::message::{FieldType, Fields, Message, NotAMessage, WireValue};

/// Why an object cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl From<NotAMessage> for Error {
    fn from(error: NotAMessage) -> Self {
        Self(error.to_string())
    }
}

/// The fields of a message as a map.
struct FieldAccess<'de> {
    level: Level<'de>,
    /// The messages around the one that is read in their place.
    around: Vec<Level<'de>>,
    /// The field whose name was returned last.
    current: Option<(u64, &'static FieldType, WireValue<'de>)>,
}

struct Level<'de> {
    fields: Fields<'de>,
    message: Message,
    /// Encoders write fields by ascending numbers: the search continues where the last field was found.
    place: usize,
}

impl<'de> Level<'de> {
    fn new(bytes: &'de [u8], message: Message) -> Self {
        Self { fields: Fields(bytes), message, place: 0 }
    }

    fn find(&mut self, number: u64) -> Option<(&'static str, &'static FieldType)> {
        let later = self.message[self.place..].iter().position(|field| field.0 >= number);
        if let Some(later) = later
            && self.message[self.place + later].0 == number
        {
            self.place += later;
        } else {
            self.place = self.message.iter().position(|field| field.0 == number)?;
        }
        let (_, name, of) = &self.message[self.place];
        Some((name, of))
    }
}

impl<'de> FieldAccess<'de> {
    fn new(bytes: &'de [u8], message: Message) -> Self {
        Self { level: Level::new(bytes, message), around: Vec::new(), current: None }
    }
}

impl<'de> MapAccess<'de> for FieldAccess<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        loop {
            let Some((number, value)) = self.level.fields.next()? else {
                let Some(around) = self.around.pop() else { return Ok(None) };
                self.level = around;
                continue;
            };
            match (self.level.find(number), value) {
                (None, _) => {}
                (Some((_, FieldType::Inline(message))), WireValue::Bytes(bytes)) => {
                    self.around.push(std::mem::replace(&mut self.level, Level::new(bytes, message)));
                }
                (Some((name, of)), value) => {
                    self.current = Some((number, of, value));
                    return seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some);
                }
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (number, of, value) = self.current.take().expect("serde asks for a key before its value");
        match of {
            FieldType::List(_) | FieldType::Map(_) => {
                let fields = &mut self.level.fields;
                seed.deserialize(RepeatedDeserializer { fields, number, of, first: value })
            }
            single => seed.deserialize(ValueDeserializer { of: *single, value }),
        }
    }
}

/// A value that is no list or map.
#[derive(Clone, Copy)]
pub struct ValueDeserializer<'de> {
    of: FieldType,
    value: WireValue<'de>,
}

impl<'de> ValueDeserializer<'de> {
    /// A whole message.
    pub const fn of_message(bytes: &'de [u8], message: Message) -> Self {
        Self { of: FieldType::Message(message), value: WireValue::Bytes(bytes) }
    }
}

impl<'de> Deserializer<'de> for ValueDeserializer<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match (self.of, self.value) {
            (FieldType::Text, WireValue::Bytes(bytes)) => visitor.visit_borrowed_str(text(bytes)?),
            (FieldType::Int, WireValue::Int(int)) => visitor.visit_i64(int.cast_signed()),
            (FieldType::Bool, WireValue::Int(int)) => visitor.visit_bool(int != 0),
            (FieldType::Time, WireValue::Bytes(bytes)) => match nanos(bytes)? {
                Some(nanos) => visitor.visit_i128(nanos),
                None => visitor.visit_unit(),
            },
            (FieldType::Quantity, WireValue::Bytes(bytes)) => {
                visitor.visit_borrowed_str(text(Fields(bytes).find(1)?.unwrap_or_default())?)
            }
            (FieldType::IntOrText, WireValue::Bytes(bytes)) => match int_or_text(bytes)? {
                IntOrText::Int(int) => visitor.visit_i64(int),
                IntOrText::Text(text) => visitor.visit_borrowed_str(text),
            },
            (FieldType::Message(message), WireValue::Bytes(bytes)) => {
                visitor.visit_map(FieldAccess::new(bytes, message))
            }
            (FieldType::Encoded, WireValue::Bytes(bytes)) => visitor.visit_borrowed_bytes(bytes),
            (
                FieldType::Text
                | FieldType::Int
                | FieldType::Bool
                | FieldType::Time
                | FieldType::Quantity
                | FieldType::IntOrText
                | FieldType::Message(_)
                | FieldType::Encoded
                | FieldType::Inline(_)
                | FieldType::List(_)
                | FieldType::Map(_)
                | FieldType::Ignored,
                _,
            ) => visitor.visit_unit(),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier
    }
}

/// The entries of a list or map that follow each other.
struct RepeatedDeserializer<'a, 'de> {
    fields: &'a mut Fields<'de>,
    number: u64,
    of: &'static FieldType,
    first: WireValue<'de>,
}

impl<'de> Deserializer<'de> for RepeatedDeserializer<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Self { fields, number, of, first } = self;
        let (of, is_map) = match of {
            FieldType::List(of) => (**of, false),
            FieldType::Map(of) => (**of, true),
            single => return ValueDeserializer { of: *single, value: first }.deserialize_any(visitor),
        };
        let entries = Entries { fields, number, of, first: Some(first), value: None };
        if is_map { visitor.visit_map(entries) } else { visitor.visit_seq(entries) }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        while self.fields.next_of(self.number)?.is_some() {}
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier
    }
}

struct Entries<'a, 'de> {
    fields: &'a mut Fields<'de>,
    number: u64,
    of: FieldType,
    first: Option<WireValue<'de>>,
    /// Of a map: the value of the key that was returned last.
    value: Option<WireValue<'de>>,
}

impl<'de> Entries<'_, 'de> {
    fn next(&mut self) -> Result<Option<WireValue<'de>>, NotAMessage> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.fields.next_of(self.number),
        }
    }
}

impl<'de> SeqAccess<'de> for Entries<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        match self.next()? {
            Some(value) => seed.deserialize(ValueDeserializer { of: self.of, value }).map(Some),
            None => Ok(None),
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(entry) = self.next()? else { return Ok(None) };
        let WireValue::Bytes(entry) = entry else { return Err(NotAMessage.into()) };
        let (mut fields, mut key) = (Fields(entry), "");
        // What has no value has an empty one.
        self.value = None;
        while let Some((number, value)) = fields.next()? {
            match (number, value) {
                (1, WireValue::Bytes(bytes)) => key = text(bytes)?,
                (2, value) => self.value = Some(value),
                _ => {}
            }
        }
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        match (self.value.take(), self.of) {
            (Some(value), of) => seed.deserialize(ValueDeserializer { of, value }),
            (None, FieldType::Text) => seed.deserialize(BorrowedStrDeserializer::new("")),
            (None, _) => seed.deserialize(UnitDeserializer::new()),
        }
    }
}

fn text(bytes: &[u8]) -> Result<&str, Error> {
    str::from_utf8(bytes).map_err(de::Error::custom)
}

/// Since the Unix epoch. None for the zero time, which is an empty message.
fn nanos(bytes: &[u8]) -> Result<Option<i128>, NotAMessage> {
    let (mut fields, mut seconds, mut nanos) = (Fields(bytes), None, 0);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, WireValue::Int(int)) => seconds = Some(int.cast_signed()),
            (2, WireValue::Int(int)) => nanos = int.cast_signed(),
            _ => {}
        }
    }
    Ok(seconds.map(|seconds| i128::from(seconds) * 1_000_000_000 + i128::from(nanos)))
}

enum IntOrText<'a> {
    Int(i64),
    Text(&'a str),
}

fn int_or_text(bytes: &[u8]) -> Result<IntOrText<'_>, Error> {
    let (mut fields, mut is_text, mut int, mut words) = (Fields(bytes), false, 0, "");
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, WireValue::Int(kind)) => is_text = kind == 1,
            (2, WireValue::Int(value)) => int = value.cast_signed(),
            (3, WireValue::Bytes(bytes)) => words = text(bytes)?,
            _ => {}
        }
    }
    Ok(if is_text { IntOrText::Text(words) } else { IntOrText::Int(int) })
}
