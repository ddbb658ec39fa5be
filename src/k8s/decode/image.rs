//! Images of nodes. They make up more than half of a node on the wire, so they are read with as little work as
//! possible.

use serde::{Deserialize, Deserializer};

use super::{
    leaf::{Int, LenientList, Text},
    protobuf::{Fields, NotAMessage, ReadField, WireValue},
};

/// An image on the wire.
#[derive(Debug)]
pub enum WireImage<'a> {
    /// The encoded protobuf message, which is decoded on use.
    Encoded(&'a [u8]),
    Read(ImageFields<'a>),
}

impl Default for WireImage<'_> {
    fn default() -> Self {
        Self::Encoded(&[])
    }
}

impl<'a> ReadField<'a> for WireImage<'a> {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        if let WireValue::Bytes(bytes) = value {
            *self = Self::Encoded(bytes);
        }
        Ok(())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ImageFields<'a> {
    #[serde(borrow)]
    pub names: LenientList<Text<'a>>,
    pub size_bytes: Int,
}

impl WireImage<'_> {
    /// Calls `take` with each name, and returns the size in bytes. Unreadable fields count as missing; a missing size
    /// is 0.
    pub fn read(&self, mut take: impl FnMut(&str)) -> i64 {
        match self {
            Self::Encoded(bytes) => read_encoded(bytes, take),
            Self::Read(fields) => {
                fields.names.iter().for_each(|name| take(name));
                fields.size_bytes.or(0)
            }
        }
    }
}

/// Reads a `ContainerImage` in protobuf: calls `take` with each name, and returns the size in bytes.
fn read_encoded(bytes: &[u8], mut take: impl FnMut(&str)) -> i64 {
    const NAMES: u64 = 1;
    const SIZE_BYTES: u64 = 2;
    let (mut fields, mut size_bytes) = (Fields(bytes), 0);
    while let Ok(Some(field)) = fields.next() {
        match field {
            (NAMES, WireValue::Bytes(name)) => {
                if let Ok(name) = str::from_utf8(name) {
                    take(name);
                }
            }
            (SIZE_BYTES, WireValue::Int(size)) => size_bytes = size.cast_signed(),
            _ => {}
        }
    }
    size_bytes
}

impl<'de: 'a, 'a> Deserialize<'de> for WireImage<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ImageFields::deserialize(deserializer).map(Self::Read)
    }
}
