//! Ids of objects.

use std::fmt;

use uuid::{Uuid, fmt::Hyphenated};

use super::names::Name;

/// An object's `metadata.uid`. A UUID, which API servers use, takes sixteen bytes; any other text is kept as it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(Form);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Form {
    /// A UUID in lower case with hyphens, so that formatting it gives the same text again.
    Uuid(Uuid),
    Text(Name),
}

impl Uid {
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Form::Text(text) if text.is_empty())
    }

    /// Calls `read` with the uid as a text, without an allocation.
    pub(super) fn with_text<R>(&self, read: impl FnOnce(&str) -> R) -> R {
        match &self.0 {
            Form::Uuid(uuid) => read(uuid.hyphenated().encode_lower(&mut [0; Hyphenated::LENGTH])),
            Form::Text(text) => read(text),
        }
    }
}

impl Default for Uid {
    fn default() -> Self {
        Self(Form::Text(Name::default()))
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        let uuid = Uuid::try_parse(text).ok().map(|uuid| Self(Form::Uuid(uuid)));
        uuid.filter(|uid| *uid == *text).unwrap_or_else(|| Self(Form::Text(text.into())))
    }
}

impl PartialEq<str> for Uid {
    fn eq(&self, other: &str) -> bool {
        self.with_text(|text| text == other)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| f.pad(text))
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| fmt::Debug::fmt(text, f))
    }
}

impl serde::Serialize for Uid {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_text(|text| serializer.serialize_str(text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_uuid_takes_no_allocation_and_other_ids_stay_as_they_are_written() {
        assert!(matches!(Uid::from("7e0c3d2a-91b4-4c55-8a3f-0d8f6e1b2c3d").0, Form::Uuid(_)));
        for other in ["", "uid-1", "7E0C3D2A-91B4-4C55-8A3F-0D8F6E1B2C3D", "7e0c3d2a91b44c558a3f0d8f6e1b2c3d"]
        {
            assert!(matches!(Uid::from(other).0, Form::Text(_)), "{other}");
        }
        assert!(Uid::default().is_empty() && !Uid::from("u").is_empty());
    }

    proptest! {
        #[test]
        fn every_id_reads_as_it_was_written(text in "[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9A-Fa-f{}:-]{0,40}|.{0,8}") {
            let uid = Uid::from(text.as_str());
            prop_assert_eq!(uid.to_string(), text.clone());
            prop_assert!(uid == *text);
        }
    }
}
