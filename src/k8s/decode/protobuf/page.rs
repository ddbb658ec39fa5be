//! A page of a list, read while it arrives: each object is read once it is complete. The page is therefore never in
//! memory as a whole, and is read while the server still sends it.

use super::{Fields, MAGIC, NotAMessage, ReadField, WireValue, describe};
use crate::k8s::decode::{Decoder, ListMeta, ListPurpose, PageEnd, Wire};
use kordon_core::cluster::Change;

/// Reader of a page.
#[derive(Debug)]
pub struct ProtobufPage {
    purpose: ListPurpose,
    /// Received bytes of a field that is not complete yet.
    partial: Vec<u8>,
    place: Place,
    end: PageEnd,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Start,
    /// The next field is in the envelope before the list.
    Envelope {
        /// Whether the envelope's kind is a list.
        is_of_list: bool,
    },
    /// The next field is in the list. `left` bytes of the list remain.
    List {
        left: usize,
    },
    Behind,
}

impl ProtobufPage {
    pub fn new(purpose: ListPurpose) -> Self {
        Self { purpose, partial: Vec::new(), place: Place::default(), end: PageEnd::default() }
    }

    /// Reads the next piece of the page into `changes`.
    ///
    /// # Errors
    /// The bytes are not a list in protobuf.
    pub fn read<D: Decoder>(
        &mut self,
        decoder: &mut D,
        piece: &[u8],
        changes: &mut Vec<Change>,
    ) -> Result<(), NotAMessage> {
        let mut partial = std::mem::take(&mut self.partial);
        if partial.is_empty() {
            let read = self.read_complete(decoder, piece, changes)?;
            partial.extend_from_slice(&piece[read..]);
        } else {
            partial.extend_from_slice(piece);
            let read = self.read_complete(decoder, &partial, changes)?;
            partial.drain(..read);
        }
        self.partial = partial;
        Ok(())
    }

    /// Returns the summary of the page.
    ///
    /// # Errors
    /// The page ended too early.
    pub fn end(self) -> Result<PageEnd, NotAMessage> {
        if self.place == Place::Behind { Ok(self.end) } else { Err(NotAMessage) }
    }

    /// Reads all complete fields, and returns the number of bytes read.
    fn read_complete<D: Decoder>(
        &mut self,
        decoder: &mut D,
        bytes: &[u8],
        changes: &mut Vec<Change>,
    ) -> Result<usize, NotAMessage> {
        let mut rest = bytes;
        loop {
            let before = (rest.len(), self.place);
            match self.place {
                Place::Start => self.read_magic(&mut rest)?,
                Place::Envelope { is_of_list } => self.read_envelope(&mut rest, is_of_list)?,
                Place::List { left: 0 } => self.place = Place::Behind,
                Place::List { left } => {
                    let came = &rest[..left.min(rest.len())];
                    let mut fields = Fields(came);
                    let read = match fields.next() {
                        Ok(field) => {
                            if let Some(field) = field {
                                self.read_field(field, decoder, changes)?;
                            }
                            came.len() - fields.0.len()
                        }
                        // The rest of the field has not arrived yet.
                        Err(NotAMessage) if came.len() < left => 0,
                        Err(NotAMessage) => return Err(NotAMessage),
                    };
                    rest = &rest[read..];
                    self.place = Place::List { left: left - read };
                }
                Place::Behind => return Ok(bytes.len()),
            }
            if before == (rest.len(), self.place) {
                return Ok(bytes.len() - rest.len());
            }
        }
    }

    fn read_magic(&mut self, rest: &mut &[u8]) -> Result<(), NotAMessage> {
        if let Some(envelope) = rest.strip_prefix(MAGIC) {
            *rest = envelope;
            self.place = Place::Envelope { is_of_list: false };
            Ok(())
        } else if MAGIC.starts_with(rest) {
            Ok(())
        } else {
            Err(NotAMessage)
        }
    }

    /// Reads the next field of the envelope, or the start of the list, if it has arrived.
    fn read_envelope(&mut self, rest: &mut &[u8], is_of_list: bool) -> Result<(), NotAMessage> {
        const TYPE: u64 = 1;
        const KIND: u64 = 2;
        const RAW: u64 = 2;
        let mut list = Fields(rest);
        if let Some((RAW, left)) = list.next_length() {
            *rest = list.0;
            self.place = Place::List { left };
            // Without this check, an object that is not a list would be read as an empty list.
            return if is_of_list { Ok(()) } else { Err(NotAMessage) };
        }
        let mut fields = Fields(rest);
        if let Ok(Some((number, value))) = fields.next() {
            *rest = fields.0;
            if let (TYPE, WireValue::Bytes(bytes)) = (number, value) {
                let kind = Fields(bytes).find(KIND)?.unwrap_or_default();
                self.place = Place::Envelope { is_of_list: kind.ends_with(b"List") };
            }
        }
        Ok(())
    }

    /// Reads a field of the list.
    fn read_field<D: Decoder>(
        &mut self,
        field: (u64, WireValue<'_>),
        decoder: &mut D,
        changes: &mut Vec<Change>,
    ) -> Result<(), NotAMessage> {
        const METADATA: u64 = 1;
        const ITEMS: u64 = 2;
        let end = &mut self.end;
        match field {
            (METADATA, value @ WireValue::Bytes(_)) => {
                let mut metadata = ListMeta::default();
                metadata.read(value)?;
                *end = PageEnd { bad: std::mem::take(&mut end.bad), ..PageEnd::new(&metadata, end.count) };
            }
            (ITEMS, WireValue::Bytes(object)) => {
                end.count += 1;
                let mut wire = decoder.blank();
                match wire.read(WireValue::Bytes(object)) {
                    Ok(()) if !wire.meta().name.is_empty() => {
                        changes.extend(decoder.change(self.purpose.event(wire)));
                    }
                    Ok(()) | Err(NotAMessage) => end.bad.push(describe(object)),
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::decode::lease::LeaseDecoder;

    /// Encodes a field that has a length.
    fn field(number: u8, value: &[u8]) -> Vec<u8> {
        let length = u8::try_from(value.len()).expect("short");
        assert!(length < 0x80);
        [&[number << 3 | 2, length], value].concat()
    }

    /// Returns a list of two Leases, in an envelope of this kind.
    fn list(kind: &[u8]) -> Vec<u8> {
        let item = |name: &[u8]| field(2, &field(1, &field(1, name)));
        let list = [field(1, &field(2, b"7")), item(b"n1"), item(b"n2")].concat();
        [MAGIC.to_vec(), field(1, &field(2, kind)), field(2, &list), field(3, b"")].concat()
    }

    fn read(body: &[u8], piece: usize) -> Result<(PageEnd, usize), NotAMessage> {
        let (mut reader, mut changes) = (ProtobufPage::new(ListPurpose::Whole), Vec::new());
        for piece in body.chunks(piece) {
            reader.read(&mut LeaseDecoder::default(), piece, &mut changes)?;
        }
        Ok((reader.end()?, changes.len()))
    }

    #[test]
    fn a_page_is_the_same_in_pieces_of_any_size() {
        let body = list(b"LeaseList");
        for piece in 1..=body.len() {
            let (end, objects) = read(&body, piece).expect("a list");
            assert_eq!((&*end.version, end.count, objects), ("7", 2, 2), "in pieces of {piece}");
        }
    }

    #[test]
    fn what_is_no_list_or_ends_too_soon_is_an_error() {
        let body = list(b"LeaseList");
        let behind_list = body.len() - field(3, b"").len();
        for end in 0..behind_list {
            assert!(read(&body[..end], 3).is_err(), "{end} bytes of it");
        }
        assert!(read(&list(b"Lease"), 3).is_err());
        assert!(read(b"<html>", 3).is_err());
        // The stated length of the last object goes beyond the end of the list.
        let mut longer = list(b"LeaseList");
        let last_object = behind_list - field(2, &field(1, &field(1, b"n2"))).len();
        longer[last_object + 1] += 2;
        assert!(read(&longer, 3).is_err());
    }
}
