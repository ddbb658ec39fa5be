//! Container images on nodes.

use std::{fmt, sync::Arc};

use minicbor::{Decode, Decoder, Encode, Encoder, encode::Write};

use super::{
    encoding::{self, EncodingContext, shared},
    names::Name,
};

/// A container image that is present on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Image {
    /// All names of the image, by tag and by digest.
    #[n(0)]
    pub names: ImageNames,
    #[n(1)]
    pub size_bytes: i64,
}

/// Separator between the names of an image. No name contains it.
const SEPARATOR: char = '\n';

/// The names of an image, joined in one text to need only one allocation. A node has dozens of images, and kordon must
/// read all of them before it can show all nodes.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct ImageNames(Arc<str>);

impl ImageNames {
    /// Appends a name to a text for [`ImageNames::from_text`]. An empty name is skipped.
    pub fn push(name: &str, text: &mut String) {
        if name.is_empty() {
            return;
        }
        if !text.is_empty() {
            text.push(SEPARATOR);
        }
        text.push_str(name);
    }

    /// Returns the image names in a text that was built with [`ImageNames::push`].
    pub const fn from_text(text: Arc<str>) -> Self {
        Self(text)
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split(SEPARATOR).filter(|name| !name.is_empty())
    }

    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|other| other == name)
    }

    /// The text with all names of the image. Copies share this text.
    pub const fn text(&self) -> &Arc<str> {
        &self.0
    }
}

impl fmt::Debug for ImageNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> FromIterator<&'a str> for ImageNames {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        let mut text = String::new();
        names.into_iter().for_each(|name| Self::push(name, &mut text));
        Self(text.into())
    }
}

/// Encodes the names as a shared list of names.
impl<C: EncodingContext> Encode<C> for ImageNames {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        let write = |encoder: &mut Encoder<W>, context: &mut C| {
            encoder.array(self.iter().count() as u64)?;
            self.iter().try_for_each(|name| encoding::text::encode(name, encoder, context))
        };
        shared::encode_with(&self.0, write, encoder, context)
    }
}

impl<'b, C: EncodingContext> Decode<'b, C> for ImageNames {
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, minicbor::decode::Error> {
        let read = |decoder: &mut Decoder<'b>, context: &mut C| {
            let names = Box::<[Name]>::decode(decoder, context)?;
            Ok(names.iter().map(Name::as_str).collect::<Self>().0)
        };
        shared::decode_with(read, decoder, context).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::encoding::{Dictionary, encode_into};

    #[test]
    fn names_are_those_that_were_put_in_and_copies_are_written_once() {
        let none = ImageNames::default();
        let names: ImageNames = ["web@sha256:ab", "", "web:1", ""].into_iter().collect();
        assert_eq!(none.iter().count(), 0);
        assert_eq!(names.iter().collect::<Vec<_>>(), ["web@sha256:ab", "web:1"]);
        let (mut writing, mut reading) = (Dictionary::default(), Dictionary::default());
        let mut bytes = Vec::new();
        for names in [&none, &names] {
            encode_into(names, &mut bytes, &mut writing).expect("memory");
        }
        let before = bytes.len();
        encode_into(&names.clone(), &mut bytes, &mut writing).expect("memory");
        assert_eq!(bytes.len(), before + 1, "a place");
        let mut decoder = Decoder::new(&bytes);
        for written in [&none, &names, &names] {
            assert_eq!(ImageNames::decode(&mut decoder, &mut reading).expect("names"), *written);
        }
        assert_eq!(decoder.position(), bytes.len());
    }
}
