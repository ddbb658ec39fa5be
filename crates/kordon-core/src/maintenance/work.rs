//! The work on a machine: how to detect that it is done, and that the node is healthy again.

use std::{fmt, str::FromStr, sync::Arc};

use crate::cluster::{Cluster, Name, Node, NodeName, Pod, Uid};

/// The sign by which kordon detects that somebody else has done the work on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// The machine has been started again: `status.nodeInfo.bootID` has changed.
    Boot,
    /// `status.nodeInfo.kubeletVersion` has changed.
    Kubelet,
    /// `status.nodeInfo.kernelVersion` has changed.
    Kernel,
    /// The node does not have the taint with this key any more.
    TaintGone(Name),
    /// The node has an annotation with this key.
    AnnotationSet(Name),
    /// The node has no annotation with this key.
    AnnotationGone(Name),
    /// The Node object has been deleted and made again.
    Replaced,
}

impl WaitFor {
    /// The state of a machine before its work. The work is done once the state differs.
    pub fn before(&self, node: &Node) -> String {
        match self {
            Self::Boot => node.boot_id.to_string(),
            Self::Kubelet => node.kubelet_version.to_string(),
            Self::Kernel => node.kernel_version.to_string(),
            Self::TaintGone(_) | Self::AnnotationSet(_) | Self::AnnotationGone(_) => String::new(),
            Self::Replaced => node.uid.to_string(),
        }
    }

    /// Describes the sign that a node does not show yet; `None` if the work is done. `before` is the state before the
    /// work.
    pub fn awaits(&self, node: Option<&Node>, before: &str) -> Option<String> {
        let Some(node) = node else { return Some("a node of that name".into()) };
        let is_done = match self {
            Self::TaintGone(key) => !node.taints.iter().any(|taint| taint.key == *key),
            Self::AnnotationSet(key) => has_annotation(node, key) == Some(true),
            Self::AnnotationGone(key) => has_annotation(node, key) == Some(false),
            Self::Boot | Self::Kubelet | Self::Kernel | Self::Replaced => {
                let shown = self.before(node);
                !shown.is_empty() && shown != before
            }
        };
        (!is_done).then(|| self.to_string())
    }

    /// The `--wait-for` argument that stands for this sign.
    pub fn flag(&self) -> String {
        match self {
            Self::Boot => "boot".into(),
            Self::Kubelet => "kubelet".into(),
            Self::Kernel => "kernel".into(),
            Self::TaintGone(key) => format!("{NO_TAINT}{key}"),
            Self::AnnotationSet(key) => format!("{ANNOTATION}{key}"),
            Self::AnnotationGone(key) => format!("{NO_ANNOTATION}{key}"),
            Self::Replaced => "replaced".into(),
        }
    }
}

const NO_TAINT: &str = "no-taint=";
const ANNOTATION: &str = "annotation=";
const NO_ANNOTATION: &str = "no-annotation=";

/// Whether a node has an annotation; `None` if its annotations are not known.
fn has_annotation(node: &Node, key: &Name) -> Option<bool> {
    Some(node.annotations.as_ref()?.contains_key(key))
}

impl fmt::Display for WaitFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boot => f.write_str("a new boot id"),
            Self::Kubelet => f.write_str("another version of the kubelet"),
            Self::Kernel => f.write_str("another version of the kernel"),
            Self::TaintGone(key) => write!(f, "the taint {key} to be gone"),
            Self::AnnotationSet(key) => write!(f, "the annotation {key}"),
            Self::AnnotationGone(key) => write!(f, "the annotation {key} to be gone"),
            Self::Replaced => f.write_str("a new Node object"),
        }
    }
}

impl FromStr for WaitFor {
    type Err = String;

    /// Parses `boot`, `kubelet`, `kernel`, `replaced`, `no-taint=KEY`, `annotation=KEY` or `no-annotation=KEY`.
    fn from_str(text: &str) -> Result<Self, String> {
        let keyed = |prefix: &str| text.strip_prefix(prefix).filter(|key| !key.is_empty()).map(Name::from);
        let found = match text {
            "boot" => Some(Self::Boot),
            "kubelet" => Some(Self::Kubelet),
            "kernel" => Some(Self::Kernel),
            "replaced" => Some(Self::Replaced),
            _ => keyed(NO_TAINT)
                .map(Self::TaintGone)
                .or_else(|| keyed(ANNOTATION).map(Self::AnnotationSet))
                .or_else(|| keyed(NO_ANNOTATION).map(Self::AnnotationGone)),
        };
        found.ok_or_else(|| {
            "neither boot, kubelet, kernel, replaced, no-taint=KEY, annotation=KEY nor no-annotation=KEY"
                .into()
        })
    }
}

/// Why a node is not healthy after its work; `None` if it is healthy: Ready, with all pods of DaemonSets Ready. If
/// `replaces` is given, the Node object must have a different uid.
pub fn not_back(cluster: &Cluster, name: &NodeName, replaces: Option<&Uid>) -> Option<String> {
    let Some(node) = cluster.node(name).filter(|node| replaces != Some(&node.uid)) else {
        return Some("there is no such node".into());
    };
    if !node.is_ready() {
        return Some("it is not Ready".into());
    }
    let of_daemon_set = |pod: &&Arc<Pod>| pod.is_of_daemon_set() && !pod.is_finished();
    let mut pods = cluster.pods_on(name).filter(of_daemon_set);
    pods.find(|pod| !pod.is_ready()).map(|pod| format!("{} is not Ready", pod.key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{
        Change, Condition, ConditionStatus, Key, ObjectEvent, Owner, OwnerKind, PodReady, WorkloadKind,
    };

    #[test]
    fn a_machine_is_done_when_it_shows_something_else_than_before() {
        let node = Node { boot_id: "b1".into(), uid: "u1".into(), ..Node::default() };
        let boot: WaitFor = "boot".parse().expect("known");
        assert_eq!(boot.awaits(Some(&node), "b1"), Some("a new boot id".into()));
        assert_eq!(boot.awaits(Some(&node), "b0"), None);
        assert!(boot.awaits(None, "b0").is_some(), "no node shows nothing");
        let silent = Node { boot_id: "".into(), ..node.clone() };
        assert!(boot.awaits(Some(&silent), "b0").is_some(), "a node that does not say it has not shown it");
        assert_eq!(WaitFor::Replaced.awaits(Some(&node), "u0"), None);
        let taint: WaitFor = "no-taint=update".parse().expect("known");
        assert_eq!(taint.awaits(Some(&node), ""), None);
        assert!("reboot".parse::<WaitFor>().is_err() && "no-taint=".parse::<WaitFor>().is_err());
    }

    #[test]
    fn an_annotation_is_awaited_until_it_is_set_or_gone() {
        let (set, gone): (WaitFor, WaitFor) = (
            "annotation=example.com/done".parse().expect("known"),
            "no-annotation=x".parse().expect("known"),
        );
        let node = |annotations: &[(&str, &str)]| {
            let annotations = annotations.iter().map(|(key, value)| ((*key).into(), (*value).into()));
            Node { annotations: Some(annotations.collect()), ..Node::default() }
        };
        let awaits = |wait: &WaitFor, node: &Node| wait.awaits(Some(node), "").is_some();
        assert!(awaits(&set, &node(&[])) && !awaits(&set, &node(&[("example.com/done", "")])));
        assert!(awaits(&gone, &node(&[("x", "1")])) && !awaits(&gone, &node(&[("y", "1")])));
        let unknown = Node { annotations: None, ..Node::default() };
        assert!(awaits(&set, &unknown) && awaits(&gone, &unknown), "what is not known is not done");
    }

    #[test]
    fn the_flag_reads_back() {
        let flags =
            ["boot", "kubelet", "kernel", "replaced", "no-taint=a/b", "annotation=c", "no-annotation=d"];
        for flag in flags {
            assert_eq!(flag.parse::<WaitFor>().expect("known").flag(), flag);
        }
    }

    #[test]
    fn a_node_is_back_when_it_and_its_daemons_are_ready() {
        let ready = Condition { kind: "Ready".into(), status: ConditionStatus::True, ..Condition::default() };
        let node = Node { name: "n1".into(), uid: "u2".into(), ..Node::default() };
        let well = Node { conditions: [ready].into(), version: crate::cluster::Version(2), ..node.clone() };
        let mut cluster = Cluster::default();
        let apply = |cluster: &mut Cluster, change| cluster.apply(change, &mut Vec::new());
        let name: NodeName = "n1".into();
        assert_eq!(not_back(&cluster, &name, None), Some("there is no such node".into()));
        apply(&mut cluster, Change::Node(ObjectEvent::Applied(node)));
        assert_eq!(not_back(&cluster, &name, None), Some("it is not Ready".into()));
        apply(&mut cluster, Change::Node(ObjectEvent::Applied(well)));
        assert_eq!(not_back(&cluster, &name, None), None);
        assert!(not_back(&cluster, &name, Some(&"u2".into())).is_some(), "it is still the old node");
        let owner = Owner {
            kind: OwnerKind::Workload(WorkloadKind::DaemonSet),
            name: "proxy".into(),
            uid: "u".into(),
        };
        let mut pod = Pod {
            key: Key::new("kube-system", "proxy"),
            node: Some(name.clone()),
            owner: Some(Arc::new(owner)),
            ..Pod::default()
        };
        apply(&mut cluster, Change::Pod(ObjectEvent::Applied(pod.clone())));
        assert_eq!(not_back(&cluster, &name, None), Some("kube-system/proxy is not Ready".into()));
        pod.ready = Some(PodReady { status: ConditionStatus::True, last_transition: None });
        apply(&mut cluster, Change::Pod(ObjectEvent::Applied(pod)));
        assert_eq!(not_back(&cluster, &name, None), None);
    }
}
