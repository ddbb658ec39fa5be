//! Leaf values of objects, read leniently: a value of the wrong type counts as absent.
//!
//! Text borrows from the received bytes, so that reading an object hardly allocates.

use std::{borrow::Cow, fmt, marker::PhantomData, ops::Deref};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::protobuf::{NotAMessage, ReadField, WireValue};
use kordon_core::cluster::quantity;
use kordon_time::{ClusterTime, Span, Timestamp};

/// A string; empty if absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Text<'a>(pub Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A point in time; its text is parsed only on use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Time<'a> {
    #[default]
    Absent,
    Text(Cow<'a, str>),
    At(ClusterTime),
}

impl Time<'_> {
    /// Returns the time; `None` if it is absent or invalid.
    pub fn time(&self) -> Option<ClusterTime> {
        match self {
            Self::Absent => None,
            Self::Text(text) => ClusterTime::parse(text),
            Self::At(time) => Some(*time),
        }
    }

    pub fn is_present(&self) -> bool {
        *self != Self::Absent
    }
}

/// A whole number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Int(pub Option<i64>);

impl Int {
    pub fn or(self, default: i64) -> i64 {
        self.0.unwrap_or(default)
    }

    /// The number, clamped to 32 bits.
    pub fn narrow(self) -> Option<i32> {
        let clamped = self.0?.clamp(i32::MIN.into(), i32::MAX.into());
        Some(i32::try_from(clamped).expect("it has just been clamped"))
    }

    /// The number as seconds. Negative numbers count as zero.
    pub fn seconds(self) -> Option<Span> {
        self.0.map(|seconds| Span::from_secs(seconds.max(0)))
    }
}

/// A boolean; false if absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LenientBool(pub bool);

/// A boolean that may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flag(pub Option<bool>);

/// An amount of a resource, written as a string or a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quantity<'a>(Cow<'a, str>);

impl Quantity<'_> {
    /// The text of the amount; empty if absent.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The amount in thousandths; zero if absent, negative or invalid.
    pub fn milli(&self) -> i64 {
        quantity::parse_milli(&self.0).unwrap_or(0).max(0)
    }

    /// The amount in whole units; zero if absent, negative or invalid.
    pub fn units(&self) -> i64 {
        quantity::parse_units(&self.0).unwrap_or(0).max(0)
    }
}

/// A number or a text, such as `minAvailable`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IntOrText<'a> {
    #[default]
    Absent,
    Int(i64),
    Text(Cow<'a, str>),
}

/// A map from text to text, in the received order, without entries whose value is not text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs<'a>(pub Vec<(Cow<'a, str>, Cow<'a, str>)>);

/// A value that is either a map from text to text, or a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PairsOrText<'a> {
    #[default]
    Absent,
    Pairs(Pairs<'a>),
    Text(Cow<'a, str>),
}

/// Amounts of resources, each with its name, in the received order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts<'a>(pub Vec<(Cow<'a, str>, Quantity<'a>)>);

/// Points in time, each with its name, in the received order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times<'a>(pub Vec<(Cow<'a, str>, Time<'a>)>);

/// Objects, each with its name, in the received order; empty if absent or null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entries<'a, T>(pub Vec<(Cow<'a, str>, T)>);

impl<T> Default for Entries<'_, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Entries<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<T> {
            type Value = Vec<(Cow<'de, str>, T)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Vec::new())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                entries(map)
            }
        }
        deserializer.deserialize_any(EntriesVisitor(PhantomData)).map(Self)
    }
}

impl<'a, T: ReadField<'a> + Default> ReadField<'a> for Entries<'a, T> {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        read_entry(&mut self.0, value)
    }
}

impl<'a> Amounts<'a> {
    pub fn amount(&self, resource: &str) -> Option<&Quantity<'a>> {
        self.0.iter().find(|(name, _)| *name == *resource).map(|(_, amount)| amount)
    }
}

/// A list; empty if absent or null. If the value has another type, the object that contains it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LenientList<T>(pub Vec<T>);

impl<T> Default for LenientList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Deref for LenientList<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for LenientList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Option::deserialize(deserializer)?.unwrap_or_default()))
    }
}

/// Reads an object; null counts as absent.
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A leaf value: it is read from some JSON types, and absent for all others.
trait Leaf<'de>: Default {
    fn text(_: Cow<'de, str>) -> Self {
        Self::default()
    }
    fn int(_: i64) -> Self {
        Self::default()
    }
    fn flag(_: bool) -> Self {
        Self::default()
    }
    fn map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        drain_map(map)?;
        Ok(Self::default())
    }
}

impl<'de> Leaf<'de> for Text<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(text)
    }
}

impl<'de> Leaf<'de> for Time<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        if text.is_empty() { Self::Absent } else { Self::Text(text) }
    }
}

impl Leaf<'_> for Int {
    fn int(number: i64) -> Self {
        Self(Some(number))
    }
}

impl Leaf<'_> for LenientBool {
    fn flag(flag: bool) -> Self {
        Self(flag)
    }
}

impl Leaf<'_> for Flag {
    fn flag(flag: bool) -> Self {
        Self(Some(flag))
    }
}

impl<'de> Leaf<'de> for Quantity<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(text)
    }
    fn int(number: i64) -> Self {
        Self(Cow::Owned(number.to_string()))
    }
}

impl<'de> Leaf<'de> for IntOrText<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self::Text(text)
    }
    fn int(number: i64) -> Self {
        Self::Int(number)
    }
}

impl<'de> Leaf<'de> for Pairs<'de> {
    fn map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(0));
        while let Some(key) = map.next_key::<Text<'de>>()? {
            if let MaybeText(Some(value)) = map.next_value()? {
                pairs.push((key.0, value));
            }
        }
        Ok(Self(pairs))
    }
}

impl<'de> Leaf<'de> for PairsOrText<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self::Text(text)
    }
    fn map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Pairs::map(map).map(Self::Pairs)
    }
}

impl<'de> Leaf<'de> for Amounts<'de> {
    fn map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        entries(map).map(Self)
    }
}

impl<'de> Leaf<'de> for Times<'de> {
    fn map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        entries(map).map(Self)
    }
}

/// A text; `None` for any other type.
#[derive(Default)]
struct MaybeText<'a>(Option<Cow<'a, str>>);

impl<'de> Leaf<'de> for MaybeText<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Some(text))
    }
}

macro_rules! deserialize_leaves {
    ($($owned:ty),+; $($borrowed:ident),+) => {
        $(impl<'de> Deserialize<'de> for $owned {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(LeafVisitor(PhantomData))
            }
        })+
        $(impl<'de: 'a, 'a> Deserialize<'de> for $borrowed<'a> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(LeafVisitor::<$borrowed<'de>>(PhantomData))
            }
        })+
    };
}

deserialize_leaves!(
    Int, LenientBool, Flag; Text, Time, Quantity, IntOrText, Pairs, PairsOrText, Amounts, Times, MaybeText
);

impl<'a> ReadField<'a> for Text<'a> {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        if let Some(text) = value.text()? {
            self.0 = text.into();
        }
        Ok(())
    }
}

impl<'a> ReadField<'a> for Int {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        if let WireValue::Int(int) = value {
            self.0 = Some(int.cast_signed());
        }
        Ok(())
    }
}

impl<'a> ReadField<'a> for LenientBool {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        if let WireValue::Int(int) = value {
            self.0 = int != 0;
        }
        Ok(())
    }
}

impl<'a> ReadField<'a> for Flag {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        if let WireValue::Int(int) = value {
            self.0 = Some(int != 0);
        }
        Ok(())
    }
}

/// `Time` or `MicroTime` in protobuf. The zero time is an empty message and counts as absent.
impl<'a> ReadField<'a> for Time<'a> {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        let (mut seconds, mut nanos) = (Int::default(), Int::default());
        value.each_field(|number, value| match number {
            1 => seconds.read(value),
            2 => nanos.read(value),
            _ => Ok(()),
        })?;
        let of_second = |seconds| i128::from(seconds) * 1_000_000_000 + i128::from(nanos.or(0));
        let since_epoch = seconds.0.and_then(|seconds| i64::try_from(of_second(seconds)).ok());
        *self = since_epoch
            .map_or(Self::Absent, |nanos| Self::At(ClusterTime::new(Timestamp::from_nanos(nanos))));
        Ok(())
    }
}

impl<'a> ReadField<'a> for Quantity<'a> {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        let mut text = Text(std::mem::take(&mut self.0));
        value.each_field(|number, value| if number == 1 { text.read(value) } else { Ok(()) })?;
        self.0 = text.0;
        Ok(())
    }
}

impl<'a> ReadField<'a> for IntOrText<'a> {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        const TEXT: i64 = 1;
        let (mut kind, mut int, mut text) = (Int::default(), Int::default(), Text::default());
        value.each_field(|number, value| match number {
            1 => kind.read(value),
            2 => int.read(value),
            3 => text.read(value),
            _ => Ok(()),
        })?;
        if let WireValue::Bytes(_) = value {
            *self = if kind.or(0) == TEXT { Self::Text(text.0) } else { Self::Int(int.or(0)) };
        }
        Ok(())
    }
}

impl<'a> ReadField<'a> for Pairs<'a> {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        if let Some((key, value)) = value.entry()?
            && let Some(value) = value.text()?
        {
            self.0.push((key.into(), value.into()));
        }
        Ok(())
    }
}

impl<'a> ReadField<'a> for Amounts<'a> {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        read_entry(&mut self.0, value)
    }
}

impl<'a> ReadField<'a> for Times<'a> {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        read_entry(&mut self.0, value)
    }
}

impl<'a, T: ReadField<'a> + Default> ReadField<'a> for LenientList<T> {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        if let WireValue::Bytes(_) = value {
            // An empty item is added to the list and then filled, so that large items such as pods are not moved.
            self.0.push(T::default());
            self.0.last_mut().expect("it has just been added").read(value)?;
        }
        Ok(())
    }
}

/// A list of whole numbers; items of another type are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ints(pub Vec<i64>);

impl<'de> Deserialize<'de> for Ints {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = LenientList::<Int>::deserialize(deserializer)?;
        Ok(Self(list.iter().filter_map(|int| int.0).collect()))
    }
}

impl<'a> ReadField<'a> for Ints {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        let mut int = Int::default();
        int.read(value)?;
        self.0.extend(int.0);
        Ok(())
    }
}

/// Reads an entry of a map.
fn read_entry<'a, T: ReadField<'a> + Default>(
    entries: &mut Vec<(Cow<'a, str>, T)>,
    value: WireValue<'a>,
) -> Result<(), NotAMessage> {
    if let Some((key, value)) = value.entry()? {
        let mut of_key = T::default();
        of_key.read(value)?;
        entries.push((key.into(), of_key));
    }
    Ok(())
}

struct LeafVisitor<L>(PhantomData<L>);

impl<'de, L: Leaf<'de>> Visitor<'de> for LeafVisitor<L> {
    type Value = L;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<L, E> {
        Ok(L::text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<L, E> {
        Ok(L::text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<L, E> {
        Ok(L::flag(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<L, E> {
        Ok(L::int(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<L, E> {
        Ok(L::int(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<L, E> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a float cast saturates, which is what is wanted"
        )]
        Ok(L::int(number as i64))
    }

    fn visit_unit<E: Error>(self) -> Result<L, E> {
        Ok(L::default())
    }

    fn visit_none<E: Error>(self) -> Result<L, E> {
        Ok(L::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<L, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<L, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(L::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<L, A::Error> {
        L::map(map)
    }
}

/// Reads all entries of a map, in the received order.
fn entries<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    mut map: A,
) -> Result<Vec<(Cow<'de, str>, T)>, A::Error> {
    let mut entries = Vec::with_capacity(map.size_hint().unwrap_or(0));
    while let Some(key) = map.next_key::<Text<'de>>()? {
        entries.push((key.0, map.next_value()?));
    }
    Ok(entries)
}

fn drain_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [&str; 9] = [
        "null",
        "true",
        "-7",
        "1e400",
        "18446744073709551615",
        "2.5",
        "\"x\\u001b\"",
        "[1,[2]]",
        "{\"a\":{}}",
    ];

    #[test]
    fn no_value_of_any_type_breaks_a_leaf() {
        for value in VALUES.into_iter().filter(|value| *value != "1e400") {
            let read =
                serde_json::from_str::<(Text<'_>, Int, LenientBool, Quantity<'_>, IntOrText<'_>, Pairs<'_>)>;
            let six = format!("[{value},{value},{value},{value},{value},{value}]");
            assert!(read(&six).is_ok(), "{value}");
        }
    }

    #[test]
    fn a_wrong_type_counts_as_absent() {
        let int = |json| serde_json::from_str::<Int>(json).expect("lenient").0;
        assert_eq!((int("7"), int("\"7\""), int("18446744073709551615")), (Some(7), None, Some(i64::MAX)));
        let pairs: Pairs<'_> = serde_json::from_str(r#"{"a":"b","c":1,"d":{"e":"f"}}"#).expect("lenient");
        assert_eq!(pairs.0, [("a".into(), "b".into())]);
    }

    #[test]
    fn silly_quantities_are_zero() {
        let milli = |json| serde_json::from_str::<Quantity<'_>>(json).expect("lenient").milli();
        let read = ["\"250m\"", "2", "\"-5\"", "\"lots\"", "[]", "\"1E99\""].map(milli);
        assert_eq!(read, [250, 2000, 0, 0, 0, 0]);
    }
}
