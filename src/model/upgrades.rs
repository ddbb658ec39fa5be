//! Upgrades of nodes that are in progress in this session, with the number of upgraded nodes.

use std::{collections::BTreeMap, fmt};

use kordon_core::cluster::{Applied, Name, Node};

/// Versions of kubelets and kernels, with the number of nodes that have each version.
#[derive(Clone, Debug, Default)]
pub struct NodeUpgrades {
    kubelet: Versions,
    kernel: Versions,
}

/// Versions of one program (kubelet or kernel), with the number of nodes that have each version.
#[derive(Clone, Debug, Default)]
struct Versions {
    /// Number of nodes with each version. Versions that no node has are left out.
    counts: BTreeMap<Name, usize>,
    /// The version to which a node changed most recently; `None` if no node has changed.
    newest: Option<Name>,
}

/// Progress of an upgrade: `kernel 6.1.0-41 on 3 of 24`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeUpgrade {
    pub program: &'static str,
    pub version: Name,
    /// Number of nodes with the new version.
    pub nodes: usize,
    pub of: usize,
}

impl fmt::Display for NodeUpgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, version, nodes, of } = self;
        write!(f, "{program} {version} on {nodes} of {of}")
    }
}

impl NodeUpgrades {
    /// Updates the counts for a change of the cluster.
    pub fn on_applied(&mut self, applied: &Applied) {
        let Applied::Node(delta) = applied else { return };
        let version = |of: fn(&Node) -> &Name| (delta.old.as_deref().map(of), delta.new.as_deref().map(of));
        self.kubelet.on_change(version(|node| &node.kubelet_version));
        self.kernel.on_change(version(|node| &node.kernel_version));
    }

    /// Returns the upgrades that began in this session and have not reached all nodes yet.
    pub fn running(&self) -> impl Iterator<Item = NodeUpgrade> {
        [("kubelet", &self.kubelet), ("kernel", &self.kernel)]
            .into_iter()
            .filter_map(|(program, versions)| versions.upgrade(program))
    }
}

impl Versions {
    fn on_change(&mut self, (old, new): (Option<&Name>, Option<&Name>)) {
        if old == new {
            return;
        }
        if let Some(count) = old.and_then(|old| self.counts.get_mut(old)) {
            *count -= 1;
        }
        if let Some(new) = new {
            *self.counts.entry(new.clone()).or_default() += 1;
            if old.is_some_and(|old| !old.is_empty()) {
                self.newest = Some(new.clone());
            }
        }
        self.counts.retain(|_, count| *count > 0);
    }

    fn upgrade(&self, program: &'static str) -> Option<NodeUpgrade> {
        let version = self.newest.clone()?;
        let (nodes, of) = (*self.counts.get(&version)?, self.counts.values().sum());
        (nodes < of).then_some(NodeUpgrade { program, version, nodes, of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::cluster::{Change, Cluster, ObjectEvent, Version};

    #[test]
    fn an_upgrade_is_followed_from_the_first_node_to_the_last_but_one() {
        let (mut cluster, mut upgrades, mut version) = (Cluster::default(), NodeUpgrades::default(), 0);
        let mut running = |node: &str, kernel: Option<&str>| {
            version += 1;
            let event = match kernel {
                Some(kernel) => ObjectEvent::Applied(Node {
                    name: node.into(),
                    version: Version(version),
                    kubelet_version: "v1.36.3".into(),
                    kernel_version: kernel.into(),
                    ..Node::default()
                }),
                None => ObjectEvent::Deleted(node.into()),
            };
            let mut applied = Vec::new();
            cluster.apply(Change::Node(event), &mut applied);
            applied.iter().for_each(|applied| upgrades.on_applied(applied));
            upgrades.running().map(|upgrade| upgrade.to_string()).collect::<Vec<_>>().join(" · ")
        };
        // Different versions in different node pools are not an upgrade.
        assert_eq!(running("a", Some("6.1")), "");
        assert_eq!(running("b", Some("6.1")), "");
        assert_eq!(running("gpu", Some("5.15")), "");
        assert_eq!(running("a", Some("6.12")), "kernel 6.12 on 1 of 3");
        assert_eq!(running("a", Some("6.12")), "kernel 6.12 on 1 of 3");
        assert_eq!(running("gpu", None), "kernel 6.12 on 1 of 2");
        assert_eq!(running("b", Some("6.12")), "", "it is everywhere");
    }
}
