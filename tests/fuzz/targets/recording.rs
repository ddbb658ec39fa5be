//! Fuzz target: whole recordings, and payloads inside blocks with correct checksums.

use std::io::Cursor;

use kordon::{
    recording::{RecordingError, RecordingReader, RecordingStart, RecordingWriter},
    run::replay::Replay,
};
use kordon_core::engine::{ServerVersion, Settings};
use kordon_time::{Span, Timestamp};

use super::assert_harmless;

const START: Timestamp = Timestamp::from_secs(1_800_000_000);

/// Input: a letter, then data. `f`: a whole file; `k`: the payload of a keyframe; any other: the payload of a block of
/// entries.
pub fn recording(data: &[u8]) {
    let [form, data @ ..] = data else { return };
    let file = match form {
        b'f' => data.to_vec(),
        b'k' => with_blocks(&[(2, data), (4, &[])]),
        _ => with_blocks(&[(5, data)]),
    };
    let Ok(mut reader) = open(&file) else { return };
    loop {
        match reader.next_entry() {
            Ok(Some(entry)) => assert!(entry.at <= reader.until(), "{entry:?}"),
            Ok(None) => break,
            Err(error) if error.lost().is_some() => assert_harmless(&error.to_string()),
            Err(error) => panic!("{error}"),
        }
    }
    let until = reader.until();
    // The file's own settings are not used: they may make every second of the replay slow.
    let settings = Settings::defaults(ServerVersion::new(1, 36));
    let mut replay = Replay::new(reader, settings);
    for to in [until, until - Span::from_secs(30), until] {
        replay.seek(to).expect("a damaged block is no error");
    }
}

fn open(file: &[u8]) -> Result<RecordingReader<Cursor<&[u8]>>, RecordingError> {
    RecordingReader::open(Cursor::new(file)).inspect_err(|error| assert_harmless(&error.to_string()))
}

/// Creates a recording with these blocks, each a kind and a payload.
fn with_blocks(blocks: &[(u8, &[u8])]) -> Vec<u8> {
    let settings = Settings::defaults(ServerVersion::new(1, 36));
    let start = RecordingStart::new(&settings, Span::from_secs(120), START);
    let mut file = Vec::new();
    drop(RecordingWriter::start(&mut file, start, None).expect("memory"));
    for (kind, payload) in blocks {
        let compressed = zstd::bulk::compress(payload, 1).expect("memory");
        let size = |bytes: &[u8]| u32::try_from(bytes.len()).expect("a small input").to_le_bytes();
        let mut header = vec![*kind, 0, 0, 0];
        header.extend(size(&compressed));
        header.extend(size(payload));
        header.extend(START.as_nanos().to_le_bytes());
        header.extend((START + Span::from_secs(300)).as_nanos().to_le_bytes());
        header.extend(crc32fast::hash(&compressed).to_le_bytes());
        header.extend(crc32fast::hash(&header).to_le_bytes());
        file.extend(header);
        file.extend(compressed);
    }
    file
}
