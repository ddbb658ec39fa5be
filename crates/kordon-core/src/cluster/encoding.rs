//! Encoding of objects in a recording: CBOR, with a number for each field.
//!
//! The numbers are attributes of the objects' own fields (`#[n(…)]`), so each number is defined once. A number is never
//! used again for another field. A field that is added later is an `Option` or has `#[cbor(default)]`, so that older
//! recordings can be read. docs/reference/recording.md has the rules, and `tests/recordings` a file of each version.
//!
//! Texts, and the parts that [`shared`] encodes, are written in full once and then by their number, which a
//! [`Dictionary`] keeps. Times are written relative to the dictionary's base.

use std::{
    any::{Any, TypeId},
    sync::Arc,
};

use minicbor::{Decode, Decoder, Encode, Encoder, data::Type, encode::Write};
use rustc_hash::FxHashMap;

use super::{
    names::{Interner, Key, Name, Namespace, NodeName},
    operation_id::OperationId,
    table::Version,
    uid::Uid,
};
use kordon_time::{TimeBase, Timestamp};

/// The context of encoders and decoders, which contains a dictionary.
pub trait EncodingContext: AsMut<Dictionary> + TimeBase {}

impl<C: AsMut<Dictionary> + TimeBase> EncodingContext for C {}

impl TimeBase for Dictionary {
    fn time_base(&self) -> Timestamp {
        self.base
    }
}

type ReadError = minicbor::decode::Error;
type WriteError<W> = minicbor::encode::Error<<W as Write>::Error>;

/// Function that redacts texts: returns the text that is written in place of a given text; none if the text is written
/// unchanged.
pub type Redaction = Box<dyn Fn(&str) -> Option<String> + Send>;

/// Context of encoders and decoders: the texts and parts of objects that were written or read before, and the function
/// that redacts texts.
///
/// A dictionary either writes or reads, never both.
#[derive(Default)]
pub struct Dictionary {
    base: Timestamp,
    redaction: Option<Redaction>,
    /// Maximum number of written texts that the dictionary remembers, and the same maximum for written parts; `None`
    /// means no limit.
    most: Option<usize>,
    written_texts: FxHashMap<Name, u32>,
    /// Numbers of written parts, by the address and type of each part. `parts` keeps a reference to each of these
    /// parts, so that no new part gets the same address.
    written_parts: FxHashMap<(usize, TypeId), u32>,
    /// Number of texts that were written in full, which is also the number that the next text gets. `parts_in_full`
    /// counts parts in the same way.
    texts_in_full: usize,
    parts_in_full: usize,
    texts: Vec<Name>,
    parts: Vec<SharedPart>,
    /// Texts and parts of objects that were read before the last [`Dictionary::mark`].
    marked: DictionaryMark,
    interner: Interner,
}

/// A part of an object, behind an `Arc`. [`shared::decode_with`] checks its type.
type SharedPart = Arc<dyn Any + Send + Sync>;

/// All texts and parts that were read up to a position between two keyframes. Another dictionary can resume from this
/// position. Marks between the same two keyframes share the texts and parts that they have in common.
#[derive(Clone, Default)]
pub struct DictionaryMark {
    base: Timestamp,
    texts: Vec<Arc<[Name]>>,
    parts: Vec<Arc<[SharedPart]>>,
}

impl std::fmt::Debug for DictionaryMark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DictionaryMark").field("base", &self.base).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let texts = self.written_texts.len().max(self.texts.len());
        f.debug_struct("Dictionary")
            .field("base", &self.base)
            .field("texts", &texts)
            .field("parts", &self.parts.len())
            .finish_non_exhaustive()
    }
}

impl AsMut<Self> for Dictionary {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl Dictionary {
    /// A dictionary that redacts texts as it writes them.
    pub fn redacting(redaction: Redaction) -> Self {
        Self { redaction: Some(redaction), ..Self::default() }
    }

    /// A dictionary that remembers about `most` written texts, and as many written parts of objects. Forgotten texts
    /// and parts are written in full again, which readers do not notice.
    pub fn remembering(most: usize) -> Self {
        Self { most: Some(most), ..Self::default() }
    }

    /// Forgets all texts and parts, and encodes times relative to `base` from now on. Names that are still in use stay
    /// interned, so that reading them again does not allocate.
    pub fn restart(&mut self, base: Timestamp) {
        self.base = base;
        self.written_texts.clear();
        self.written_parts.clear();
        (self.texts_in_full, self.parts_in_full) = (0, 0);
        self.texts.clear();
        self.parts.clear();
        self.marked = DictionaryMark { base, ..DictionaryMark::default() };
        self.interner.tidy();
    }

    /// Returns a mark from which a dictionary can resume, with everything that was read since the last restart.
    pub fn mark(&mut self) -> DictionaryMark {
        let DictionaryMark { texts, parts, .. } = &mut self.marked;
        extend_chunks(texts, &self.texts);
        extend_chunks(parts, &self.parts);
        self.marked.clone()
    }

    /// Resumes reading from a mark. The mark must come from the same encoded data, but possibly from another reader.
    pub fn resume(&mut self, mark: &DictionaryMark) {
        self.restart(mark.base);
        self.texts.extend(mark.texts.iter().flat_map(|chunk| chunk.iter().cloned()));
        self.parts.extend(mark.parts.iter().flat_map(|chunk| chunk.iter().cloned()));
        self.marked = mark.clone();
    }

    /// Forgets all written texts if there are more than the limit, and all written parts if there are more of them than
    /// the limit.
    pub fn forget_surplus(&mut self) {
        let Some(most) = self.most else { return };
        if self.written_texts.len() > most {
            self.written_texts.clear();
        }
        if self.written_parts.len() > most {
            self.written_parts.clear();
            self.parts.clear();
        }
    }

    /// Writes a text. `name` returns the text as a [`Name`]. `name` is called only if the dictionary has to remember
    /// the text.
    fn write_text<W: Write>(
        &mut self,
        text: &str,
        name: impl FnOnce() -> Name,
        encoder: &mut Encoder<W>,
    ) -> Result<(), WriteError<W>> {
        if let Some(place) = self.written_texts.get(text) {
            return encoder.u32(*place)?.ok();
        }
        let place = self.write_in_full(text, encoder)?;
        self.written_texts.insert(name(), place);
        Ok(())
    }

    /// Writes a text that belongs to a single object, such as its uid. A dictionary with a limit does not remember such
    /// texts, because they would displace texts that are written more often.
    fn write_own_text<W: Write>(
        &mut self,
        text: &str,
        name: impl FnOnce() -> Name,
        encoder: &mut Encoder<W>,
    ) -> Result<(), WriteError<W>> {
        match self.most {
            Some(_) => self.write_in_full(text, encoder).map(drop),
            None => self.write_text(text, name, encoder),
        }
    }

    /// Writes a text in full and returns its number.
    fn write_in_full<W: Write>(
        &mut self,
        text: &str,
        encoder: &mut Encoder<W>,
    ) -> Result<u32, WriteError<W>> {
        let place = next_place(self.texts_in_full).map_err(minicbor::encode::Error::message)?;
        self.texts_in_full += 1;
        let replaced = self.redaction.as_ref().and_then(|redact| redact(text));
        encoder.str(replaced.as_deref().unwrap_or(text))?;
        Ok(place)
    }

    fn read_text(&mut self, decoder: &mut Decoder<'_>) -> Result<Name, ReadError> {
        if decoder.datatype()? == Type::String {
            let text = self.interner.name(decoder.str()?);
            self.texts.push(text.clone());
            return Ok(text);
        }
        let known = self.texts.get(place(decoder)?).cloned();
        known.ok_or_else(|| ReadError::message("a text is named that was not written before"))
    }
}

/// Encodes to bytes.
///
/// # Errors
/// More than four thousand million texts or parts were written.
pub fn encode_into<T: Encode<Dictionary>>(
    value: &T,
    bytes: &mut Vec<u8>,
    dictionary: &mut Dictionary,
) -> Result<(), WriteError<Vec<u8>>> {
    value.encode(&mut Encoder::new(bytes), dictionary)
}

/// Appends a chunk with the items of `all` that are in none of the chunks yet.
fn extend_chunks<T: Clone>(chunks: &mut Vec<Arc<[T]>>, all: &[T]) {
    let known: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    if known < all.len() {
        chunks.push(all[known..].into());
    }
}

fn next_place(count: usize) -> Result<u32, &'static str> {
    u32::try_from(count).map_err(|_| "too many texts or parts")
}

fn place(decoder: &mut Decoder<'_>) -> Result<usize, ReadError> {
    usize::try_from(decoder.u32()?).map_err(ReadError::message)
}

impl<C: EncodingContext> Encode<C> for Name {
    fn encode<W: Write>(&self, encoder: &mut Encoder<W>, context: &mut C) -> Result<(), WriteError<W>> {
        context.as_mut().write_text(self, || self.clone(), encoder)
    }
}

impl<'b, C: EncodingContext> Decode<'b, C> for Name {
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, ReadError> {
        context.as_mut().read_text(decoder)
    }
}

/// Encodes a newtype as its inner value.
macro_rules! as_contents {
    ($($type:ident($contents:ty)),+ $(,)?) => {$(
        impl<C: EncodingContext> Encode<C> for $type {
            fn encode<W: Write>(
                &self,
                encoder: &mut Encoder<W>,
                context: &mut C,
            ) -> Result<(), WriteError<W>> {
                self.0.encode(encoder, context)
            }
        }

        impl<'b, C: EncodingContext> Decode<'b, C> for $type {
            fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, ReadError> {
                <$contents>::decode(decoder, context).map(Self)
            }
        }
    )+};
}

as_contents! { NodeName(Name), Namespace(Name), Version(u64) }

impl<C: EncodingContext> Encode<C> for Uid {
    fn encode<W: Write>(&self, encoder: &mut Encoder<W>, context: &mut C) -> Result<(), WriteError<W>> {
        self.with_text(|text| context.as_mut().write_own_text(text, || text.into(), encoder))
    }
}

impl<'b, C: EncodingContext> Decode<'b, C> for Uid {
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, ReadError> {
        context.as_mut().read_text(decoder).map(|text| Self::from(&*text))
    }
}

impl<C: EncodingContext> Encode<C> for Key {
    fn encode<W: Write>(&self, encoder: &mut Encoder<W>, context: &mut C) -> Result<(), WriteError<W>> {
        self.namespace.encode(encoder.array(2)?, context)?;
        context.as_mut().write_own_text(&self.name, || self.name.clone(), encoder)
    }
}

impl<'b, C: EncodingContext> Decode<'b, C> for Key {
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, ReadError> {
        let (namespace, name) = <(Namespace, Name)>::decode(decoder, context)?;
        Ok(Self { namespace, name })
    }
}

impl<C: EncodingContext> Encode<C> for OperationId {
    fn encode<W: Write>(&self, encoder: &mut Encoder<W>, context: &mut C) -> Result<(), WriteError<W>> {
        text::encode(self, encoder, context)
    }
}

impl<'b, C: EncodingContext> Decode<'b, C> for OperationId {
    /// Checks that the text is a valid operation id, because the id becomes part of file names.
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, ReadError> {
        context.as_mut().read_text(decoder)?.parse().map_err(ReadError::message)
    }
}

/// Encoding of a part of an object that many objects share: written in full once, then by its number.
pub mod shared {
    use super::{
        Arc, Decode, Decoder, Dictionary, Encode, Encoder, EncodingContext, ReadError, Type, TypeId, Write,
        WriteError, next_place, place,
    };

    /// Encodes a part of an object that many objects share.
    ///
    /// # Errors
    /// The writer failed.
    pub fn encode<C, T, W>(
        part: &Arc<T>,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), WriteError<W>>
    where
        C: EncodingContext,
        T: Encode<C> + Send + Sync + ?Sized + 'static,
        W: Write,
    {
        encode_with(part, |encoder, context| (**part).encode(encoder, context), encoder, context)
    }

    /// Encodes a part of an object that many objects share. `write` writes the part in full.
    ///
    /// # Errors
    /// The writer failed.
    pub fn encode_with<C, T, W>(
        part: &Arc<T>,
        write: impl FnOnce(&mut Encoder<W>, &mut C) -> Result<(), WriteError<W>>,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), WriteError<W>>
    where
        C: EncodingContext,
        T: Send + Sync + ?Sized + 'static,
        W: Write,
    {
        let id = (Arc::as_ptr(part).cast::<()>().addr(), TypeId::of::<Arc<T>>());
        if let Some(place) = context.as_mut().written_parts.get(&id) {
            return encoder.u32(*place)?.ok();
        }
        write(encoder, context)?;
        let Dictionary { written_parts, parts, parts_in_full, .. } = context.as_mut();
        let place = next_place(*parts_in_full).map_err(minicbor::encode::Error::message)?;
        written_parts.insert(id, place);
        *parts_in_full += 1;
        // Keeps the part of the object in memory, so that no other part can get its address.
        parts.push(Arc::new(part.clone()));
        Ok(())
    }

    /// Decodes a part of an object that many objects share.
    ///
    /// # Errors
    /// The data is not what [`encode`] writes.
    pub fn decode<'b, C, T>(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Arc<T>, ReadError>
    where
        C: EncodingContext,
        T: Send + Sync + ?Sized + 'static,
        Box<T>: Decode<'b, C>,
    {
        let read =
            |decoder: &mut Decoder<'b>, context: &mut C| Box::<T>::decode(decoder, context).map(Arc::from);
        decode_with(read, decoder, context)
    }

    /// Decodes a part of an object that many objects share. `read` reads a part that was written in full.
    ///
    /// # Errors
    /// The data is not what [`encode_with`] writes.
    pub fn decode_with<'b, C, T>(
        read: impl FnOnce(&mut Decoder<'b>, &mut C) -> Result<Arc<T>, ReadError>,
        decoder: &mut Decoder<'b>,
        context: &mut C,
    ) -> Result<Arc<T>, ReadError>
    where
        C: EncodingContext,
        T: Send + Sync + ?Sized + 'static,
    {
        if matches!(decoder.datatype()?, Type::U8 | Type::U16 | Type::U32 | Type::U64) {
            let known = context.as_mut().parts.get(place(decoder)?);
            let known = known.and_then(|part| (**part).downcast_ref::<Arc<T>>()).cloned();
            return known.ok_or_else(|| ReadError::message("a part is named that was not written before"));
        }
        let part = read(decoder, context)?;
        context.as_mut().parts.push(Arc::new(part.clone()));
        Ok(part)
    }
}

/// Encoding of a part of an object, behind an `Arc`, that few objects share: written in full each time.
pub mod inline {
    use super::{Arc, Decode, Decoder, Encode, Encoder, ReadError, Write, WriteError};

    /// Encodes a part of an object in full.
    ///
    /// # Errors
    /// The writer failed.
    pub fn encode<C, T: Encode<C> + ?Sized, W: Write>(
        part: &Arc<T>,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), WriteError<W>> {
        (**part).encode(encoder, context)
    }

    /// Decodes a part of an object that was written in full.
    ///
    /// # Errors
    /// The data is not what [`encode`] writes.
    pub fn decode<'b, C, T: ?Sized>(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Arc<T>, ReadError>
    where
        Box<T>: Decode<'b, C>,
    {
        Box::<T>::decode(decoder, context).map(Arc::from)
    }
}

/// Encoding of an optional part of an object, behind an `Arc`, which most objects do not have: written in full each
/// time.
pub mod inline_option {
    use super::{Arc, Decode, Decoder, Encode, Encoder, ReadError, Write, WriteError};

    /// Encodes an optional part of an object in full.
    ///
    /// # Errors
    /// The writer failed.
    pub fn encode<C, T: Encode<C>, W: Write>(
        part: &Option<Arc<T>>,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), WriteError<W>> {
        part.as_deref().encode(encoder, context)
    }

    /// Decodes an optional part of an object that was written in full.
    ///
    /// # Errors
    /// The data is not what [`encode`] writes.
    pub fn decode<'b, C, T: Decode<'b, C>>(
        decoder: &mut Decoder<'b>,
        context: &mut C,
    ) -> Result<Option<Arc<T>>, ReadError> {
        Ok(Option::<T>::decode(decoder, context)?.map(Arc::new))
    }

    /// Returns the default for an optional part of an object that is missing from a file: no part.
    pub fn nil<T>() -> Option<Option<Arc<T>>> {
        Some(None)
    }

    pub fn is_nil<T>(part: &Option<Arc<T>>) -> bool {
        part.is_none()
    }
}

/// Encoding of a text that is not a [`Name`]. It is written and redacted like a name.
pub mod text {
    use super::{Decoder, Encoder, EncodingContext, ReadError, Write, WriteError};

    /// Encodes a text like a name.
    ///
    /// # Errors
    /// The writer failed.
    pub fn encode<C: EncodingContext, W: Write>(
        text: &str,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), WriteError<W>> {
        context.as_mut().write_text(text, || text.into(), encoder)
    }

    /// Decodes a text that was encoded like a name.
    ///
    /// # Errors
    /// The data is not a text.
    pub fn decode<C: EncodingContext>(
        decoder: &mut Decoder<'_>,
        context: &mut C,
    ) -> Result<String, ReadError> {
        context.as_mut().read_text(decoder).map(|text| text.as_str().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_writer_forgets_is_written_again_and_read_the_same() {
        let part: Arc<Name> = Arc::new("shared".into());
        let uid = Uid::from("c3d4ae5b-37a6-4a34-b35b-2b3a41aa3d1e");
        let sizes = [0, 1, 100].map(|most| {
            let (mut writing, mut reading) = (Dictionary::remembering(most), Dictionary::default());
            let mut bytes = Vec::new();
            let texts = ["a", "b", "a", "a", "b"];
            for text in texts {
                encode_into(&Name::from(text), &mut bytes, &mut writing).expect("memory");
                encode_into(&uid, &mut bytes, &mut writing).expect("memory");
                shared::encode(&part, &mut Encoder::new(&mut bytes), &mut writing).expect("memory");
                writing.forget_surplus();
            }
            let mut decoder = Decoder::new(&bytes);
            for text in texts {
                assert_eq!(&*Name::decode(&mut decoder, &mut reading).expect("a text"), text);
                assert_eq!(Uid::decode(&mut decoder, &mut reading).expect("a uid"), uid);
                let read: Arc<Name> = shared::decode(&mut decoder, &mut reading).expect("a part");
                assert_eq!(read, part);
            }
            assert_eq!(decoder.position(), bytes.len());
            bytes.len()
        });
        assert!(sizes.is_sorted_by(|less, more| less > more), "{sizes:?}");
    }

    #[test]
    fn another_reader_goes_on_from_a_mark_and_marks_share_what_was_read_before() {
        let mut writing = Dictionary::default();
        let parts: Vec<Arc<Name>> = ["one", "two"].map(|text| Arc::new(text.into())).into();
        let mut written = Vec::new();
        for texts in [["a", "b"], ["b", "c"], ["a", "c"]] {
            let mut bytes = Vec::new();
            for (text, part) in texts.iter().zip(&parts) {
                encode_into(&Name::from(*text), &mut bytes, &mut writing).expect("memory");
                shared::encode(part, &mut Encoder::new(&mut bytes), &mut writing).expect("memory");
            }
            written.push((texts, bytes));
        }
        let read = |(texts, bytes): &([&str; 2], Vec<u8>), reading: &mut Dictionary| {
            let mut decoder = Decoder::new(bytes);
            for (text, part) in texts.iter().zip(&parts) {
                assert_eq!(&*Name::decode(&mut decoder, reading).expect("a text"), *text);
                let read: Arc<Name> = shared::decode(&mut decoder, reading).expect("a part");
                assert_eq!(read, *part);
            }
        };
        let mut first = Dictionary::default();
        let marks: Vec<DictionaryMark> = written
            .iter()
            .map(|block| {
                read(block, &mut first);
                first.mark()
            })
            .collect();
        for (place, mark) in marks.iter().enumerate() {
            let mut other = Dictionary::default();
            read(&written[0], &mut other);
            other.resume(mark);
            written[place + 1..].iter().for_each(|block| read(block, &mut other));
            assert_eq!(other.mark().texts.concat(), marks[2].texts.concat(), "from mark {place}");
        }
        assert!(Arc::ptr_eq(&marks[0].texts[0], &marks[2].texts[0]), "what they have in common is kept once");
    }
}
