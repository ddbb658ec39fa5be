//! Recordings are read as they were written: any object, also from truncated or damaged files, and from files of
//! earlier formats.

use std::{fs, io::Cursor, path::Path};

use kordon::{
    k8s::feed::{FeedEvent, FeedHealth, FeedState},
    recording::{
        EntrySource, FORMAT_VERSION, KeyframeSource, RecordedEntry, RecordingEnd, RecordingError,
        RecordingReader, RecordingStart, RecordingWriter, Redactor,
    },
};
use kordon_core::{
    cluster::{
        Change, Cluster, FeedKind, LeaderLease, Lease, Name, Node, ObjectEvent, Version, WorkloadKind,
    },
    engine::{Origin, ServerVersion, Settings},
};
use kordon_time::{ClusterTime, Span, Timestamp};
use proptest::prelude::*;

use crate::{common::encodings::ReadKind, encodings::with_random_objects};

const START: Timestamp = Timestamp::from_secs(1_800_000_000);
const MINUTE: Span = Span::from_secs(60);

/// A recording of random objects of every kind, made with the first format. A text file beside it has the expected
/// entries.
const SAMPLE: &str = "tests/recordings/format-1.kordon";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn what_was_written_is_read(seed in any::<u64>()) {
        let messages = random_messages(seed);
        let file = record(&messages, None);
        let mut reader = open(&file).expect("a recording");
        assert_eq!(reader.end(), RecordingEnd::Whole);
        let read = entries(&mut reader).expect("it is whole");
        let (keyframe, watched): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|entry| entry.source == EntrySource::Keyframe);
        assert_eq!(texts(&watched), messages.iter().map(|(at, event)| text(*at, event)).collect::<Vec<_>>());
        assert_eq!(cluster_text(keyframe.iter().map(|entry| &entry.event)), {
            let before = messages.iter().filter(|(at, _)| *at < START + MINUTE).map(|(_, event)| event);
            cluster_text(before)
        });
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_good_up_to_its_last_whole_block() {
    let file = small_recording();
    let whole = texts(&entries(&mut open(&file).expect("a recording")).expect("whole"));
    let (mut known, mut grew) = (0, 0);
    for length in 0..file.len() {
        match open(&file[..length]) {
            Ok(mut reader) => {
                assert_eq!(reader.end(), RecordingEnd::Truncated, "{length}");
                let read = texts(&entries(&mut reader).expect("what is there is whole"));
                assert!(whole.starts_with(&read), "{length}");
                assert!(read.len() >= known, "{length}");
                grew += usize::from(read.len() > known);
                known = read.len();
            }
            Err(RecordingError::NotARecording) => assert!(length < 10, "{length}"),
            Err(RecordingError::Empty) => assert_eq!(known, 0, "{length}"),
            Err(error) => panic!("{length}: {error}"),
        }
    }
    assert!(known == whole.len() && grew >= 3, "{known} of {}, in {grew} steps", whole.len());
}

#[test]
fn a_damaged_byte_is_noticed_and_what_follows_the_next_keyframe_is_read() {
    let file = small_recording();
    let whole = texts(&entries(&mut open(&file).expect("a recording")).expect("whole"));
    let mut resumed = 0;
    for place in 0..file.len() {
        let mut damaged = file.clone();
        damaged[place] ^= 0x10;
        let Ok(mut reader) = open(&damaged) else { continue };
        let (mut read, mut errors) = (Vec::new(), 0);
        loop {
            match reader.next_entry() {
                Ok(Some(entry)) => read.push(entry),
                Ok(None) => break,
                Err(error @ RecordingError::Damaged { .. }) => {
                    errors += 1;
                    assert!(error.to_string().contains("cannot be read"), "{error}");
                }
                Err(error) => panic!("{place}: {error}"),
            }
        }
        let read = texts(&read);
        // The reader returns entries in the order in which they were written, and no other entries.
        let mut written = whole.iter();
        assert!(read.iter().all(|entry| written.any(|other| other == entry)), "{place}");
        let is_noticed = errors > 0 || reader.end() != RecordingEnd::Whole;
        assert!(is_noticed || read == whole, "{place}: {errors} errors");
        resumed += usize::from(errors > 0 && read.last() == whole.last());
    }
    assert!(resumed > 50, "{resumed}");
}

#[test]
fn a_recording_of_a_newer_format_is_refused_with_what_to_do() {
    let mut file = small_recording();
    file[8..10].copy_from_slice(&(FORMAT_VERSION + 1).to_le_bytes());
    let error = open(&file).expect_err("a format that does not exist yet");
    assert!(error.to_string().contains("newer kordon"), "{error}");
}

#[test]
fn a_recording_of_the_first_format_is_read_as_it_was_written() {
    let updates = std::env::var_os("UPDATE").is_some();
    if updates && !Path::new(SAMPLE).exists() {
        fs::write(SAMPLE, record(&random_messages(1), None)).expect("written");
    }
    let file = fs::read(SAMPLE).expect("the sample");
    let mut reader = open(&file).expect("a recording");
    let read = entries(&mut reader).expect("whole");
    let settings = reader.start().settings();
    assert_eq!(settings.node_monitor_grace_period.value, Span::from_millis(90_500));
    assert_eq!(settings.node_monitor_grace_period.origin, Origin::Cluster);
    let text: String = texts(&read).into_iter().map(|line| line + "\n").collect();
    let expected = SAMPLE.replace(".kordon", ".txt");
    if updates {
        fs::write(&expected, &text).expect("written");
    }
    // The recording in the repository is never replaced. A field that was added to kordon later therefore has its
    // default in the expected text.
    assert_eq!(text, fs::read_to_string(&expected).expect("the text"), "UPDATE=1 rewrites the text");
}

#[test]
fn a_redacted_recording_has_no_name_of_the_cluster_and_the_same_relations() {
    let messages = random_messages(7);
    let plain = entries(&mut open(&record(&messages, None)).expect("a recording")).expect("whole");
    let redactor = Redactor::default();
    let file = record(&messages, Some(&redactor));
    let mut reader = open(&file).expect("a recording");
    let redacted = entries(&mut reader).expect("whole");
    assert!(
        reader.start().redacted && reader.start().server.is_empty() && reader.start().identity.is_empty()
    );
    let start = format!("{:?}", reader.start());
    let (plain, redacted) = (texts(&plain).join("\n"), texts(&redacted).join("\n"));
    assert!(plain.matches("acme").count() > 20, "{}", plain.matches("acme").count());
    for text in [&redacted, &start] {
        let leak = text.find("acme").map(|at| &text[at.saturating_sub(200)..][..220]);
        assert_eq!(leak, None);
    }
    // The redactor replaces equal texts with equal hashes, so that selectors still select the same objects.
    assert_eq!(plain.matches("acme-shop").count(), redacted.matches(&*redactor.hash("acme-shop")).count());
    assert!(redacted.contains("topology.kubernetes.io/zone") && redacted.contains("Ready"));
}

#[test]
fn the_lease_of_kordon_has_entries_of_its_own_and_is_in_keyframes() {
    let lease = LeaderLease { full_disruption: Some("pause".into()), ..LeaderLease::default() };
    let read = Change::KordonLease(Some(lease));
    let messages = [
        (START, FeedEvent::Changes(vec![read.clone()])),
        (START + MINUTE * 2, FeedEvent::Changes(vec![Change::KordonLease(None)])),
    ];
    let file = record(&messages, None);
    let found = entries(&mut open(&file).expect("a recording")).expect("whole");
    let events: Vec<String> = found.iter().map(|entry| format!("{:?}", entry.event)).collect();
    let expected = [read.clone(), read, Change::KordonLease(None)];
    let expected = expected.map(|change| format!("{:?}", FeedEvent::Changes(vec![change])));
    assert_eq!(events, expected, "the second one is in the keyframe");
}

#[test]
fn a_keyframe_waits_until_all_lists_are_complete() {
    let mut writer = RecordingWriter::start(Vec::new(), start(), None).expect("memory");
    let list = |event| FeedEvent::Changes(vec![Change::Node(event)]);
    let later = START + MINUTE * 2;
    writer.event(&list(ObjectEvent::ListStarted), START).expect("memory");
    assert!(!writer.is_keyframe_due(later), "nobody could tell what is gone after the list");
    writer.event(&list(ObjectEvent::ListDone), later).expect("memory");
    assert!(writer.is_keyframe_due(later));
    writer.event(&list(ObjectEvent::ListStarted), later).expect("memory");
    let broken = FeedState::Broken { since: later, error: "reset".into() };
    writer.event(&FeedEvent::Health(FeedKind::Nodes, health(broken)), later).expect("memory");
    assert!(writer.is_keyframe_due(later), "the list has failed; there will be another one");
}

/// Returns random objects of every kind, as reported by lists and by watches, followed by all other messages. The
/// interval between two messages is 700 ms.
fn random_messages(seed: u64) -> Vec<(Timestamp, FeedEvent)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut events = vec![FeedEvent::ClockDifference(Span::from_millis(-1500))];
    runtime.expect("a runtime").block_on(async {
        for kind in ReadKind::ALL {
            let api = with_random_objects(kind, &mut random);
            let [json, _] = kind.read_both(&api.client()).await;
            events.push(FeedEvent::Changes(without_annotations(json.listed)));
            events.push(FeedEvent::Changes(without_annotations(json.watched)));
            events.push(FeedEvent::Health(kind.feed(), health(FeedState::Live)));
        }
    });
    let leader = LeaderLease { holder: "acme-shop".into(), version: Version(7), ..LeaderLease::default() };
    events.extend([
        FeedEvent::Changes(vec![
            Change::Leader(Some(leader)),
            Change::Node(ObjectEvent::Deleted("o1".into())),
        ]),
        FeedEvent::Health(FeedKind::Leader, health(FeedState::Listing { received: 3, expected: Some(5) })),
        FeedEvent::Health(FeedKind::Leader, health(FeedState::Forbidden { error: "acme may not".into() })),
        FeedEvent::Trouble("nodes: acme".into()),
    ]);
    let count = i64::try_from(events.len()).expect("a few");
    // A keyframe (a copy of all objects) is due between the last two messages.
    let at = |place: i64| START + Span::from_millis(if place + 1 == count { 61_000 } else { place * 700 });
    (0..).map(at).zip(events).collect()
}

fn health(state: FeedState) -> FeedHealth {
    FeedHealth { state, last_heard: Some(START), relists: 1, requests: 20, bytes: 3000 }
}

fn start() -> RecordingStart {
    let mut settings = Settings::defaults(ServerVersion::new(1, 33));
    settings.set("node-monitor-grace-period", "90500ms", Origin::Cluster).expect("a flag");
    let mut start = RecordingStart::new(&settings, MINUTE, START);
    start.context = "acme".into();
    start.server = "https://acme.example:6443".into();
    start.identity = "acme-admin".into();
    start.server_version = "v1.33.1".into();
    start
}

/// Removes the annotations of nodes, because a recording does not contain them.
fn without_annotations(mut changes: Vec<Change>) -> Vec<Change> {
    for change in &mut changes {
        if let Change::Node(
            ObjectEvent::Listed(node) | ObjectEvent::Prefetched(node) | ObjectEvent::Applied(node),
        ) = change
        {
            node.annotations = None;
        }
    }
    changes
}

fn record(messages: &[(Timestamp, FeedEvent)], redactor: Option<&Redactor>) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = RecordingWriter::start(&mut file, start(), redactor).expect("memory");
    let (mut cluster, mut states) = (Cluster::default(), Vec::<(FeedKind, FeedHealth)>::new());
    let mut clock_difference = None;
    for (at, event) in messages {
        if writer.is_keyframe_due(*at) {
            let health: Vec<_> = states.iter().map(|(kind, health)| (*kind, health)).collect();
            let source = KeyframeSource { cluster: cluster.clone(), health: &health, clock_difference };
            writer.keyframe(source, START + MINUTE).expect("memory");
        }
        writer.event(event, *at).expect("memory");
        writer.on_timeout(*at).expect("memory");
        match event {
            FeedEvent::Changes(changes) => {
                changes.iter().for_each(|change| cluster.apply(change.clone(), &mut Vec::new()));
            }
            FeedEvent::Health(kind, health) => {
                states.retain(|(other, _)| other != kind);
                states.push((*kind, health.clone()));
            }
            FeedEvent::ClockDifference(difference) => clock_difference = Some(*difference),
            FeedEvent::Trouble(_) | FeedEvent::ScopeState(..) => {}
        }
    }
    writer.finish(messages.last().map_or(START, |(at, _)| *at)).expect("memory");
    file
}

/// Records a node and its Lease for some minutes: several blocks and several keyframes (copies of all objects) in a few
/// thousand bytes.
fn small_recording() -> Vec<u8> {
    let node = |version| Node { name: "n1".into(), version: Version(version), ..Node::default() };
    let lease = |at: Timestamp, version| Lease {
        node: "n1".into(),
        version: Version(version),
        renewed: Some(ClusterTime::new(at)),
        ..Lease::default()
    };
    let mut messages = vec![(
        START,
        FeedEvent::Changes(vec![
            Change::Node(ObjectEvent::ListStarted),
            Change::Node(ObjectEvent::Listed(node(1))),
            Change::Node(ObjectEvent::ListDone),
        ]),
    )];
    messages.push((START, FeedEvent::Health(FeedKind::Nodes, health(FeedState::Live))));
    messages.push((START, FeedEvent::Health(FeedKind::Leases, health(FeedState::Live))));
    for (beat, version) in (0..7).zip(2..) {
        let at = START + Span::from_secs(beat * 20) + Span::from_millis(3);
        messages
            .push((at, FeedEvent::Changes(vec![Change::Lease(ObjectEvent::Applied(lease(at, version)))])));
    }
    record(&messages, None)
}

fn open(file: &[u8]) -> Result<RecordingReader<Cursor<&[u8]>>, RecordingError> {
    RecordingReader::open(Cursor::new(file))
}

fn entries(reader: &mut RecordingReader<Cursor<&[u8]>>) -> Result<Vec<RecordedEntry>, RecordingError> {
    std::iter::from_fn(|| reader.next_entry().transpose()).collect()
}

fn texts(entries: &[RecordedEntry]) -> Vec<String> {
    entries.iter().map(|entry| text(entry.at, &entry.event)).collect()
}

fn text(at: Timestamp, event: &FeedEvent) -> String {
    format!("{at} {event:?}")
}

/// Describes all objects of the cluster that results from messages.
fn cluster_text<'a>(events: impl Iterator<Item = &'a FeedEvent>) -> String {
    let mut cluster = Cluster::default();
    for event in events {
        let FeedEvent::Changes(changes) = event else { continue };
        changes.iter().for_each(|change| cluster.apply(change.clone(), &mut Vec::new()));
    }
    let workloads = WorkloadKind::ALL.map(|kind| cluster.workloads(kind).iter().collect::<Vec<_>>());
    let nodes: Vec<_> = cluster.nodes().iter().collect();
    let pods: Vec<_> = cluster.pods().iter().collect();
    let leases: Vec<_> = cluster.leases().iter().collect();
    let budgets: Vec<_> = cluster.budgets().iter().collect();
    let claims: Vec<_> = cluster.claims().iter().collect();
    let volumes: Vec<_> = cluster.volumes().iter().collect();
    let quotas: Vec<_> = cluster.quotas().iter().collect();
    let namespaces: Vec<(&Name, Version)> =
        cluster.namespaces().iter().map(|namespace| (&namespace.name.0, namespace.version)).collect();
    format!(
        "{nodes:?}{pods:?}{leases:?}{budgets:?}{claims:?}{volumes:?}{quotas:?}{namespaces:?}{workloads:?}"
    )
}
