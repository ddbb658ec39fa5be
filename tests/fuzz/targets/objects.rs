//! Objects of every kind, as the server writes them.

use kordon::{
    cluster::{Change, Cluster, FeedKind},
    k8s::decode::{
        self, Decoder, ListPurpose, StreamEvent,
        budget::BudgetDecoder,
        lease::{LeaderDecoder, LeaseDecoder},
        namespace::NamespaceDecoder,
        node::NodeDecoder,
        pod::PodDecoder,
        priority_class::PriorityClassDecoder,
        quota::QuotaDecoder,
        service::ServiceDecoder,
        storage::{ClaimDecoder, CsiNodeDecoder, StorageClassDecoder, VolumeDecoder},
        workload::WorkloadDecoder,
    },
};

use super::assert_harmless;

/// A letter for the kind (`a` is the first), one for what follows (`l`: lines of a list, `p`: a page, else lines of a
/// watch), and that.
pub fn objects(data: &[u8]) {
    let [kind, form, text @ ..] = data else { return };
    let Some(kind) = kind_of(*kind) else { return };
    let mut cluster = Cluster::default();
    for change in changes(kind, *form, text) {
        cluster.apply(change, &mut Vec::new());
    }
}

/// The kind that a letter stands for.
pub fn kind_of(letter: u8) -> Option<FeedKind> {
    FeedKind::ALL.get(usize::from(letter.checked_sub(b'a')?)).copied()
}

/// What the text means for the cluster.
pub fn changes(kind: FeedKind, form: u8, text: &[u8]) -> Vec<Change> {
    match kind {
        FeedKind::Nodes => read(NodeDecoder::default(), form, text),
        FeedKind::Leases => read(LeaseDecoder::default(), form, text),
        FeedKind::Pods => read(PodDecoder::default(), form, text),
        FeedKind::Budgets => read(BudgetDecoder::default(), form, text),
        FeedKind::Workloads(of) => read(WorkloadDecoder::new(of), form, text),
        FeedKind::PriorityClasses => read(PriorityClassDecoder::default(), form, text),
        FeedKind::Namespaces => read(NamespaceDecoder::default(), form, text),
        FeedKind::Services => read(ServiceDecoder::default(), form, text),
        FeedKind::Claims => read(ClaimDecoder::default(), form, text),
        FeedKind::Volumes => read(VolumeDecoder::default(), form, text),
        FeedKind::StorageClasses => read(StorageClassDecoder::default(), form, text),
        FeedKind::CsiNodes => read(CsiNodeDecoder::default(), form, text),
        FeedKind::Leader => read(LeaderDecoder::default(), form, text),
        FeedKind::Quotas => read(QuotaDecoder::default(), form, text),
    }
}

fn read<D: Decoder>(mut decoder: D, form: u8, text: &[u8]) -> Vec<Change> {
    let mut changes = Vec::new();
    if form == b'p' {
        match decode::page(&mut decoder, text, ListPurpose::Whole, &mut changes) {
            Ok(end) => {
                assert!(changes.len() + end.bad.len() <= end.count, "{end:?}");
                end.bad.iter().for_each(|name| assert_harmless(name));
            }
            Err(error) => assert!(error.line() > 0),
        }
    } else {
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match decode::line(&mut decoder, line, form == b'l') {
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
