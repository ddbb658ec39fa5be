//! Nodes and pods of an operation, in the notation of kubectl's arguments.

use std::{collections::BTreeSet, fmt::Display};

use super::super::exit::CliError;
use kordon_core::{
    cluster::{Cluster, FieldSelector, Key, Namespace, NodeName, Scope, Selector, nearest::scopes_near_pod},
    plan::{Action, DrainOptions, EvictionRules, MetadataEdits, RemovalOptions, TaintEdits, needs},
};
use kordon_time::Timestamp;

/// An operation that was parsed and checked, with unresolved selectors.
#[derive(Debug)]
pub enum PlanTarget {
    Cordon(NodeTargets),
    Uncordon(NodeTargets),
    Taint(NodeTargets, TaintEdits),
    Metadata(NodeTargets, MetadataEdits),
    Drain(NodeTargets, DrainOptions),
    Evict(PodTargets, RemovalOptions),
    Delete(PodTargets, RemovalOptions),
    DeleteNode(NodeTargets),
}

impl PlanTarget {
    /// Returns the action on the objects that the selectors match now.
    pub fn action(&self, cluster: &Cluster, namespace: &str) -> Action {
        match self {
            Self::Cordon(targets) => Action::Cordon { nodes: targets.names(cluster) },
            Self::Uncordon(targets) => Action::Uncordon { nodes: targets.names(cluster) },
            Self::Taint(targets, edits) => {
                Action::Taint { nodes: targets.names(cluster), edits: edits.clone() }
            }
            Self::Metadata(targets, edits) => {
                Action::Metadata { nodes: targets.names(cluster), edits: edits.clone() }
            }
            Self::Drain(targets, options) => {
                Action::Drain { nodes: targets.names(cluster), options: options.clone() }
            }
            Self::Evict(targets, options) => {
                Action::Evict { pods: targets.keys(cluster, namespace), options: *options }
            }
            Self::DeleteNode(targets) => Action::DeleteNode { nodes: targets.names(cluster) },
            Self::Delete(targets, options) => {
                Action::Delete { pods: targets.keys(cluster, namespace), options: *options }
            }
        }
    }

    /// Objects (whole kinds or parts of them) that have to be read for the plan, according to the state known so far.
    pub fn needs(
        &self,
        cluster: &Cluster,
        namespace: &str,
        rules: &EvictionRules,
        now: Timestamp,
    ) -> BTreeSet<Scope> {
        let mut needs = self.selection(namespace);
        if needs.iter().all(|scope| cluster.knows(scope)) {
            needs.extend(needs::needs(&self.action(cluster, namespace), cluster, rules, now));
        }
        needs
    }

    /// Sets of objects to read, from which the selectors choose.
    pub fn selection(&self, namespace: &str) -> BTreeSet<Scope> {
        let selection = match self {
            // Plans of cordons and drains need all nodes.
            Self::Cordon(targets) | Self::Drain(targets, _) => targets.selection().map(|_| Scope::Nodes),
            Self::Uncordon(targets)
            | Self::Taint(targets, _)
            | Self::Metadata(targets, _)
            | Self::DeleteNode(targets) => targets.selection(),
            Self::Evict(targets, _) | Self::Delete(targets, _) => targets.selection(namespace),
        };
        selection.into_iter().collect()
    }

    /// Sets of objects whose names may be similar to those of missing objects; empty if all named objects exist.
    pub fn near(&self, cluster: &Cluster, namespace: &str) -> BTreeSet<Scope> {
        let no_node =
            |name: &NodeName| cluster.node(name).is_none() && cluster.knows(&Scope::Node(name.clone()));
        let pods_near = |key: &Key| {
            let is_missing = cluster.pod(key).is_none() && cluster.knows(&Scope::Pod(key.clone()));
            is_missing.then(|| scopes_near_pod(key)).into_iter().flatten()
        };
        match self.action(cluster, namespace) {
            Action::Cordon { nodes }
            | Action::Uncordon { nodes }
            | Action::Taint { nodes, .. }
            | Action::Metadata { nodes, .. }
            | Action::DeleteNode { nodes }
            | Action::Drain { nodes, .. } => {
                nodes.iter().any(no_node).then_some(Scope::Nodes).into_iter().collect()
            }
            Action::Evict { pods, .. } | Action::Delete { pods, .. } => {
                pods.iter().flat_map(pods_near).collect()
            }
        }
    }

    /// Whether the operation may make pods leave their nodes.
    pub const fn removes_pods(&self) -> bool {
        match self {
            Self::Cordon(_) | Self::Uncordon(_) | Self::Metadata(..) => false,
            Self::Taint(..) | Self::Drain(..) | Self::Evict(..) | Self::Delete(..) | Self::DeleteNode(_) => {
                true
            }
        }
    }

    /// Whether the plan depends on settings of the cluster's controllers, which decide whether NoExecute taints evict.
    pub fn depends_on_settings(&self) -> bool {
        match self {
            Self::Taint(_, edits) => edits.may_evict(),
            Self::Cordon(_) | Self::Uncordon(_) | Self::Metadata(..) => false,
            Self::Drain(..) | Self::Evict(..) | Self::Delete(..) | Self::DeleteNode(_) => false,
        }
    }

    /// Whether the operation may make pods leave their nodes, or Pending pods land on a node.
    pub const fn moves_pods(&self) -> bool {
        match self {
            Self::Cordon(_) | Self::Metadata(..) => false,
            Self::Uncordon(_)
            | Self::Taint(..)
            | Self::Drain(..)
            | Self::Evict(..)
            | Self::Delete(..)
            | Self::DeleteNode(_) => true,
        }
    }
}

/// Nodes by name, by selector, or all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeTargets {
    Names(Vec<NodeName>),
    Selected { labels: Selector, fields: FieldSelector },
    All,
}

impl NodeTargets {
    /// Creates the targets from exactly one of names, selectors and `--all`. Errors are worded like kubectl's.
    pub fn new(
        names: Vec<&str>,
        selector: Option<Selector>,
        fields: Option<&FieldSelector>,
        all: bool,
    ) -> Result<Self, CliError> {
        if let Some(fields) = fields {
            if !names.is_empty() {
                return Err(usage("name cannot be provided when a selector is specified"));
            }
            return Ok(Self::Selected { labels: selector.unwrap_or_default(), fields: fields.clone() });
        }
        match (names.is_empty(), selector, all) {
            (false, Some(_), _) => Err(usage("cannot specify both a node name and a --selector option")),
            (_, Some(_), true) => {
                Err(usage("setting 'all' parameter with a non empty selector is prohibited."))
            }
            (true, None, false) => Err(usage("name nodes or select them with --selector")),
            (false, None, false) => {
                Ok(Self::Names(names.into_iter().map(node_name).collect::<Result<_, _>>()?))
            }
            (true, Some(labels), false) => Ok(Self::Selected { labels, fields: FieldSelector::default() }),
            (_, None, true) => Ok(Self::All),
        }
    }

    /// Set of nodes to read, from which the selectors choose; `None` if nodes are named.
    fn selection(&self) -> Option<Scope> {
        match self {
            Self::Names(_) => None,
            Self::Selected { labels, .. } if !labels.is_empty() => Some(Scope::NodesWith(labels.clone())),
            Self::Selected { .. } | Self::All => Some(Scope::Nodes),
        }
    }

    /// Sets of nodes to read: one for each named node, or one for all nodes that the selectors choose.
    pub fn scopes(&self) -> BTreeSet<Scope> {
        match self {
            Self::Names(names) => names.iter().cloned().map(Scope::Node).collect(),
            Self::Selected { .. } | Self::All => self.selection().into_iter().collect(),
        }
    }

    /// Names of the nodes. A selector may match none.
    pub fn names(&self, cluster: &Cluster) -> Vec<NodeName> {
        match self {
            Self::Names(names) => names.clone(),
            Self::Selected { labels, fields } => {
                let nodes = cluster.nodes().iter().filter(|node| labels.matches(&node.labels));
                nodes.filter(|node| fields.selects_node(node)).map(|node| node.name.clone()).collect()
            }
            Self::All => cluster.nodes().iter().map(|node| node.name.clone()).collect(),
        }
    }
}

/// Pods by name or by selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodTargets {
    /// Names of the pods, each with its namespace if that was given.
    Names {
        pods: Vec<(Option<String>, String)>,
        missing: MissingPods,
    },
    Selected {
        selector: Selector,
        fields: FieldSelector,
        everywhere: bool,
    },
}

/// Handling of named pods that do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingPods {
    Fail,
    Ignored,
}

impl PodTargets {
    pub fn new(
        names: Vec<(Option<&str>, &str)>,
        selector: Option<Selector>,
        fields: FieldSelector,
        everywhere: bool,
        missing: MissingPods,
    ) -> Result<Self, CliError> {
        match (names.is_empty(), selector) {
            (false, Some(_)) => Err(usage("name pods or select them with --selector, not both")),
            (true, None) => Err(usage("name pods or select them with --selector")),
            (false, None) => {
                let owned =
                    |(namespace, name): (Option<&str>, &str)| (namespace.map(str::to_owned), name.to_owned());
                Ok(Self::Names { pods: names.into_iter().map(owned).collect(), missing })
            }
            (true, Some(selector)) => Ok(Self::Selected { selector, fields, everywhere }),
        }
    }

    /// Set of pods to read, from which the selectors choose; `None` if pods are named.
    fn selection(&self, namespace: &str) -> Option<Scope> {
        match self {
            Self::Names { .. } => None,
            Self::Selected { selector, fields, everywhere } => {
                let namespace = (!everywhere).then(|| Namespace::from(namespace));
                let all = || Scope::PodsWith(namespace, selector.clone());
                Some(fields.node_of_pods().map_or_else(all, Scope::PodsOn))
            }
        }
    }

    pub fn keys(&self, cluster: &Cluster, namespace: &str) -> Vec<Key> {
        match self {
            Self::Names { pods, missing } => {
                let named = pods.iter().map(|(of, name)| Key::new(of.as_deref().unwrap_or(namespace), name));
                // A pod that was not read may exist, so it does not count as missing.
                let is_missing =
                    |key: &Key| cluster.pod(key).is_none() && cluster.knows(&Scope::Pod(key.clone()));
                named.filter(|key| *missing == MissingPods::Fail || !is_missing(key)).collect()
            }
            Self::Selected { selector, fields, everywhere } => {
                let namespace = Namespace::from(namespace);
                let in_namespace = |key: &Key| *everywhere || key.namespace == namespace;
                let pods = cluster
                    .pods()
                    .iter()
                    .filter(|pod| in_namespace(&pod.key) && selector.matches(&pod.labels))
                    .filter(|pod| fields.selects_pod(pod));
                pods.map(|pod| pod.key.clone()).collect()
            }
        }
    }
}

/// Separates names of nodes from the taints, labels or annotations after them.
pub fn node_words<'a>(
    words: &'a [String],
    is_word: fn(&str) -> bool,
    what: &str,
) -> Result<(Vec<&'a str>, Vec<&'a str>), CliError> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let words = match words.split_first() {
        Some((first, rest)) if ["node", "nodes", "no"].contains(first) => rest,
        _ => &words[..],
    };
    let first_edit = words.iter().position(|word| is_word(word)).unwrap_or(words.len());
    let (nodes, edits) = words.split_at(first_edit);
    if let Some(late) = edits.iter().find(|word| !is_word(word)) {
        return Err(usage(format!("all resources must be specified before {what} changes: {late}")));
    }
    Ok((nodes.to_vec(), edits.to_vec()))
}

/// Kinds that kubectl would delete and kordon refuses, since kordon only evicts and deletes pods.
const OTHER_KINDS: [&str; 20] = [
    "cj",
    "cronjob",
    "cronjobs",
    "daemonset",
    "daemonsets",
    "deploy",
    "deployment",
    "deployments",
    "ds",
    "job",
    "jobs",
    "node",
    "nodes",
    "replicaset",
    "replicasets",
    "rs",
    "service",
    "statefulset",
    "statefulsets",
    "sts",
];

/// Names of pods, with or without a kind before them. `NAMESPACE/NAME` includes the namespace.
pub fn pod_words(words: &[String]) -> Result<Vec<(Option<&str>, &str)>, CliError> {
    const KINDS: [&str; 3] = ["pod", "pods", "po"];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let words = match words.split_first() {
        Some((first, rest)) if KINDS.contains(first) => rest.to_vec(),
        _ => words,
    };
    let mut names = Vec::new();
    for word in words {
        match word.split_once('/') {
            Some((kind, rest)) if KINDS.contains(&kind) => names.push((None, rest)),
            Some((kind, _)) if OTHER_KINDS.contains(&kind) => {
                return Err(usage(format!("only pods can be evicted or deleted, not {word}")));
            }
            Some((namespace, name)) => names.push((Some(namespace), name)),
            None => names.push((None, word)),
        }
    }
    Ok(names)
}

fn node_name(word: &str) -> Result<NodeName, CliError> {
    match word.split_once('/') {
        Some(("node" | "nodes" | "no", name)) => Ok(name.into()),
        Some((kind, _)) => Err(usage(format!("expected resource of type node, got {kind}"))),
        None => Ok(word.into()),
    }
}

/// Creates an error about the arguments.
pub fn usage(error: impl Display) -> CliError {
    CliError::Usage(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn nodes_come_before_taints_with_or_without_their_kind() {
        let is_word = |word: &str| word.contains(':') || word.ends_with('-');
        for line in ["nodes n1 n2 a:NoSchedule b-", "n1 n2 a:NoSchedule b-"] {
            let words = words(line);
            let (nodes, edits) = node_words(&words, is_word, "taint").expect(line);
            assert_eq!((nodes, edits), (vec!["n1", "n2"], vec!["a:NoSchedule", "b-"]));
        }
        let late = words("n1 a- n2");
        let error = node_words(&late, is_word, "taint").expect_err("n2 is late").to_string();
        assert_eq!(error, "all resources must be specified before taint changes: n2");
    }

    #[test]
    fn names_a_selector_and_all_exclude_each_other_as_in_kubectl() {
        let text = |names: Vec<&str>, selector: bool, all| {
            let selector = selector.then(Selector::default);
            NodeTargets::new(names, selector, None, all).expect_err("not both").to_string()
        };
        assert_eq!(text(vec!["n1"], true, false), "cannot specify both a node name and a --selector option");
        assert!(text(vec![], true, true).contains("'all' parameter"));
        assert!(text(vec![], false, false).contains("--selector"));
        assert_eq!(text(vec!["pod/p"], false, false), "expected resource of type node, got pod");
        assert_eq!(
            pod_words(&words("pods p pod/q web/r")).expect("pods"),
            [(None, "p"), (None, "q"), (Some("web"), "r")]
        );
        assert!(pod_words(&words("deploy/web")).is_err());
    }
}
