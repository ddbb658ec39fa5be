//! Fuzz targets: objects of every kind in the server's encodings.

use kordon::k8s::decode::{Encoding, ListPurpose, StreamEvent, kinds::decoder_of};
use kordon_core::cluster::{Change, Cluster, FeedKind};

use super::assert_harmless;

/// Input: a letter for the kind (`a` is the first), a letter for the form (`l`: lines of a list, `p`: a page, any
/// other: lines of a watch), then the text.
pub fn objects(data: &[u8]) {
    apply(Encoding::Json, data);
}

/// Input as for [`objects`], in protobuf: frames with a length prefix instead of lines.
pub fn protobuf(data: &[u8]) {
    apply(Encoding::Protobuf, data);
}

fn apply(encoding: Encoding, data: &[u8]) {
    let [kind, form, text @ ..] = data else { return };
    let Some(kind) = kind_of(*kind) else { return };
    let mut cluster = Cluster::default();
    for change in changes(kind, encoding, *form, text) {
        cluster.apply(change, &mut Vec::new());
    }
}

/// Returns the kind that a letter stands for.
pub fn kind_of(letter: u8) -> Option<FeedKind> {
    FeedKind::ALL.get(usize::from(letter.checked_sub(b'a')?)).copied()
}

/// Decodes a text and returns its changes.
pub fn changes(kind: FeedKind, encoding: Encoding, form: u8, text: &[u8]) -> Vec<Change> {
    let mut decoder = decoder_of(kind);
    let mut changes = Vec::new();
    if form == b'p' {
        match decoder.page(encoding, text, ListPurpose::Whole, &mut changes) {
            Ok(end) => {
                assert!(changes.len() + end.bad.len() <= end.count, "{end:?}");
                end.bad.iter().for_each(|name| assert_harmless(name));
            }
            Err(error) => assert!(!error.is_empty()),
        }
    } else {
        for event in events(encoding, text) {
            match decoder.event(encoding, event, form == b'l') {
                StreamEvent::Object { change, .. } => changes.extend(change),
                StreamEvent::Bookmark { .. } => {}
                StreamEvent::Error(status) => assert_harmless(&status.message),
                StreamEvent::Bad(text) | StreamEvent::Broken(text) => assert_harmless(&text),
            }
        }
    }
    decoder.tidy();
    changes
}

/// Returns the events of a watch. The rest of a truncated frame counts as an event.
fn events(encoding: Encoding, mut text: &[u8]) -> Vec<&[u8]> {
    if encoding == Encoding::Json {
        return text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    }
    let mut events = Vec::new();
    while let Some((length, rest)) = text.split_first_chunk() {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let (event, rest) = rest.split_at(length.min(rest.len()));
        events.push(event);
        text = rest;
    }
    events
}
