//! Splits the body of a watch into events: lines of JSON, or frames of protobuf with a length prefix.

use super::error::WatchError;
use crate::k8s::decode::Encoding;

/// Capacity in bytes that the buffer for incomplete events keeps after a long event. Few events are longer.
const ROOM: usize = 64 << 10;

/// Size in bytes of the length prefix of a frame, which is big-endian.
const LENGTH: usize = 4;

/// Splits the body of a watch into events.
#[derive(Debug)]
pub struct Framing {
    encoding: Encoding,
    /// Maximum size of an event, in bytes.
    longest: usize,
    /// The received part of an incomplete event.
    partial: Vec<u8>,
    /// Whether `partial` contains the event that was returned last. If so, the next call clears `partial`.
    is_taken: bool,
}

impl Framing {
    /// Creates a splitter for events of at most `longest` bytes.
    pub const fn new(encoding: Encoding, longest: usize) -> Self {
        Self { encoding, longest, partial: Vec::new(), is_taken: false }
    }

    pub const fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Takes the next complete event from the received bytes. `None` if no event is complete; the bytes are then kept
    /// until the rest of the event arrives.
    pub fn next<'f, 'b: 'f>(&'f mut self, received: &mut &'b [u8]) -> Result<Option<&'f [u8]>, WatchError> {
        if std::mem::take(&mut self.is_taken) {
            self.partial.clear();
            self.partial.shrink_to(ROOM);
        }
        match self.encoding {
            Encoding::Json => self.next_line(received),
            Encoding::Protobuf => self.next_frame(received),
        }
    }

    fn next_line<'f, 'b: 'f>(&'f mut self, received: &mut &'b [u8]) -> Result<Option<&'f [u8]>, WatchError> {
        let Some(end) = memchr::memchr(b'\n', received) else {
            let all = received.len();
            self.keep(received, all)?;
            return Ok(None);
        };
        let line = take(received, end);
        take(received, 1);
        if self.partial.is_empty() {
            // The whole event is in the received bytes, which is the usual case. Nothing is copied.
            return Ok(Some(line));
        }
        self.partial.extend_from_slice(line);
        self.is_taken = true;
        Ok(Some(&self.partial))
    }

    fn next_frame<'f, 'b: 'f>(&'f mut self, received: &mut &'b [u8]) -> Result<Option<&'f [u8]>, WatchError> {
        if self.partial.is_empty()
            && let Some((length, rest)) = received.split_first_chunk::<LENGTH>()
            && let Some(frame) = rest.get(..self.checked(*length)?)
        {
            *received = &rest[frame.len()..];
            return Ok(Some(frame));
        }
        self.keep(received, LENGTH.saturating_sub(self.partial.len()))?;
        let Some(length) = self.partial.first_chunk::<LENGTH>() else { return Ok(None) };
        let whole = LENGTH + self.checked(*length)?;
        self.keep(received, whole - self.partial.len())?;
        if self.partial.len() < whole {
            return Ok(None);
        }
        self.is_taken = true;
        Ok(Some(&self.partial[LENGTH..]))
    }

    /// Moves up to `most` of the received bytes into the buffer for incomplete events.
    fn keep(&mut self, received: &mut &[u8], most: usize) -> Result<(), WatchError> {
        self.partial.extend_from_slice(take(received, most.min(received.len())));
        if self.partial.len() > self.longest { Err(self.too_long()) } else { Ok(()) }
    }

    fn checked(&self, length: [u8; LENGTH]) -> Result<usize, WatchError> {
        let length = usize::try_from(u32::from_be_bytes(length)).ok();
        length.filter(|length| *length <= self.longest).ok_or_else(|| self.too_long())
    }

    fn too_long(&self) -> WatchError {
        WatchError::Failed(format!("an event is longer than {} bytes", self.longest))
    }
}

fn take<'b>(received: &mut &'b [u8], length: usize) -> &'b [u8] {
    let (taken, rest) = received.split_at(length);
    *received = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: usize = 256 << 20;

    /// Returns the events of a body that arrives in pieces of `piece` bytes.
    fn events(encoding: Encoding, body: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let (mut framing, mut events) = (Framing::new(encoding, LONGEST), Vec::new());
        for mut received in body.chunks(piece) {
            while let Some(event) = framing.next(&mut received).expect("none is too long") {
                events.push(event.to_vec());
            }
        }
        events
    }

    #[test]
    fn events_are_the_same_however_their_body_is_cut() {
        let events_before: [&[u8]; 4] = [b"one", b"", b"a longer one", b"z"];
        let lines: Vec<u8> = events_before.iter().flat_map(|event| [event, &b"\n"[..]].concat()).collect();
        let frame =
            |event: &&[u8]| [&u32::try_from(event.len()).expect("short").to_be_bytes(), *event].concat();
        let frames: Vec<u8> = events_before.iter().flat_map(frame).collect();
        for piece in 1..40 {
            assert_eq!(events(Encoding::Json, &lines, piece), events_before, "lines in pieces of {piece}");
            assert_eq!(
                events(Encoding::Protobuf, &frames, piece),
                events_before,
                "frames in pieces of {piece}"
            );
        }
    }

    #[test]
    fn a_length_that_no_event_has_ends_the_watch_before_anything_is_kept() {
        let mut framing = Framing::new(Encoding::Protobuf, LONGEST);
        assert!(framing.next(&mut &b"<html>"[..]).is_err());
        assert!(framing.partial.is_empty());
    }
}
