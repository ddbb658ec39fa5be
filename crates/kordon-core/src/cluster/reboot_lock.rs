//! kured's lock: which machines kured restarts now. The lock is an annotation of kured's DaemonSet.

use minicbor::{Decode, Encode};
use serde::Deserialize;

use super::{encoding::EncodingContext, names::NodeName};
use kordon_time::ClusterTime;

/// The annotation of kured's DaemonSet that holds the lock, unless kured's flag `--lock-annotation` names another
/// annotation (kubereboot/kured 1.23.0, `cmd/kured/main.go`, `KuredNodeLockAnnotation`).
pub const REBOOT_LOCK: &str = "weave.works/kured-node-lock";

/// A node that holds kured's lock. It keeps the lock from before its drain until it was uncordoned after its restart.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct RebootLock {
    #[n(0)]
    pub node: NodeName,
    /// When the node took the lock; `None` if the annotation does not have a time.
    #[n(1)]
    pub at: Option<ClusterTime>,
}

impl RebootLock {
    /// Parses the value of the annotation: one lock, or several with `--concurrency`
    /// (`pkg/daemonsetlock/daemonsetlock.go`, `LockAnnotationValue`, `multiLockAnnotationValue`). Returns an empty list
    /// if kured did not write the text. The expiry of a lock (`TTL`) is ignored, because kured does not uncordon a node
    /// when its lock expires.
    pub fn parse(text: &str) -> Vec<Self> {
        match serde_json::from_str(text) {
            Ok(WireLocks { locks: Some(locks), .. }) => locks.iter().filter_map(WireLock::lock).collect(),
            Ok(WireLocks { locks: None, lock }) => lock.lock().into_iter().collect(),
            Err(_) => Vec::new(),
        }
    }
}

#[derive(Deserialize)]
struct WireLocks {
    locks: Option<Vec<WireLock>>,
    #[serde(flatten)]
    lock: WireLock,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct WireLock {
    #[serde(rename = "nodeID")]
    node: String,
    created: String,
}

impl WireLock {
    fn lock(&self) -> Option<RebootLock> {
        let Self { node, created } = self;
        (!node.is_empty()).then(|| RebootLock { node: node.as_str().into(), at: ClusterTime::parse(created) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Locks as kured writes them: Go encodes a `time.Time` with nanoseconds.
    #[test]
    fn one_lock_and_several_are_read_and_other_texts_have_none() {
        let one = r#"{"nodeID":"n1","metadata":{"unschedulable":false},"created":"2026-11-29T08:00:00.123456789Z","TTL":0}"#;
        let [lock] = &RebootLock::parse(one)[..] else { panic!("{:?}", RebootLock::parse(one)) };
        let at = lock.at.map(|at| at.to_string());
        assert!(
            lock.node == NodeName::from("n1") && at.is_some_and(|at| at.starts_with("2026-11-29T08:00:00"))
        );
        let two = format!(r#"{{"maxOwners":2,"locks":[{one},{{"nodeID":"n2"}}]}}"#);
        let nodes: Vec<NodeName> = RebootLock::parse(&two).into_iter().map(|lock| lock.node).collect();
        assert_eq!(nodes, [NodeName::from("n1"), "n2".into()]);
        for text in ["", "[]", "{}", r#"{"maxOwners":2,"locks":[]}"#, r#"{"nodeID":7}"#, "null"] {
            assert_eq!(RebootLock::parse(text), [], "{text}");
        }
    }
}
