//! The diff of a plan: what its operation changes in each object, and which pods it removes.
//!
//! The operation itself is run over copies of the objects ([`Operation::rehearse`]), and the bodies of its requests are
//! applied to these copies. The diff therefore has exactly the writes that would be sent.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use similar::TextDiff;

use crate::k8s::decode;
use kordon_core::{
    cluster::{Cluster, NodeName},
    operation::{Operation, OperationOptions, RequestKind, RequestOutcome},
    plan::{Plan, PlanStep, Prospect},
};
use kordon_time::Timestamp;

/// Complete Node objects by name; for a node that could not be read, the reason.
pub type WholeNodes = BTreeMap<NodeName, Result<Value, String>>;

/// One line of the diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    pub kind: DiffLineKind,
    pub text: Arc<str>,
}

/// The kind of a line of the diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffLineKind {
    /// Heading: the object that the following lines are about.
    Header,
    /// Heading of a hunk: the position of the following lines in the object's YAML.
    Hunk,
    Added,
    Removed,
    /// A line of the object that does not change.
    Context,
    /// A pod or node that the operation removes.
    Removal,
    /// A note why something is not in the diff. Its text starts with `#`.
    Note,
}

/// The number of unchanged lines around a change, as `kubectl diff` has them.
const CONTEXT: usize = 3;

/// Returns the diff of a plan, line by line. `options` are the options with which the operation would be started, and
/// `nodes` are the current nodes of the plan. Times in the diff are the current time, and the operation id is the id of
/// an operation that has not started.
pub fn plan_diff(
    plan: &Plan,
    options: OperationOptions,
    cluster: &Cluster,
    nodes: &WholeNodes,
    now: Timestamp,
) -> Vec<DiffLine> {
    if plan.prospect() == Prospect::Refused {
        return vec![note(&format!("{}: nothing is written", plan.summary()))];
    }
    let mut server = RehearsedServer { nodes: nodes.clone(), removals: Vec::new() };
    let given_up = Operation::rehearse(plan, options, cluster, now, |request| server.answer(request));
    let changed =
        plan.nodes.iter().flat_map(|node| match (nodes.get(&node.node), server.nodes.get(&node.node)) {
            (Some(Ok(before)), Some(Ok(after))) => object_diff(&node.node, before, after),
            _ => Vec::new(),
        });
    let given_up = given_up.into_iter().map(|(node, why)| note(&format!("node {node}: {why}")));
    let removals = server.removals.iter().map(|text| line(DiffLineKind::Removal, text));
    changed.chain(removals).chain(given_up).collect()
}

/// Answers the requests of an operation from copies of the nodes, and applies each write to these copies. Every pod
/// leaves at once.
struct RehearsedServer {
    nodes: WholeNodes,
    /// The removals so far, and the Deployments that are scaled during the operation, one line each.
    removals: Vec<String>,
}

impl RehearsedServer {
    fn answer(&mut self, request: &RequestKind) -> RequestOutcome {
        match request {
            RequestKind::ReadNode { node } => match self.nodes.get(node) {
                Some(Ok(object)) => read(object),
                Some(Err(why)) => RequestOutcome::Refused(format!("it could not be read: {why}")),
                None => RequestOutcome::Gone,
            },
            RequestKind::ListPods { .. } => RequestOutcome::Pods(Vec::new()),
            // As in a dry run, the operation uses the scale that the watch has reported.
            RequestKind::ReadScale { .. } => RequestOutcome::Recorded,
            RequestKind::Write(PlanStep::Scale { deployment, replicas, .. }) => {
                self.removals.push(format!("scale deployment {deployment} to {replicas}"));
                RequestOutcome::Done
            }
            RequestKind::Write(PlanStep::Evict { pod, .. }) => self.remove(format!("evict {pod}")),
            RequestKind::Write(PlanStep::Delete { pod, .. }) => self.remove(format!("delete {pod}")),
            RequestKind::Write(PlanStep::DeleteNode { node, .. }) => {
                self.remove(format!("delete node {node}"))
            }
            RequestKind::Patch(patch) => self.patch(&patch.node, request),
            RequestKind::Write(
                PlanStep::Cordon { node, .. }
                | PlanStep::SetTaints { node, .. }
                | PlanStep::SetMetadata { node, .. },
            ) => self.patch(node, request),
        }
    }

    fn remove(&mut self, text: String) -> RequestOutcome {
        self.removals.push(text);
        RequestOutcome::Gone
    }

    /// Applies the body of a request as the server does: all patches of operations are merge patches.
    fn patch(&mut self, node: &NodeName, request: &RequestKind) -> RequestOutcome {
        match (self.nodes.get_mut(node), request.call()) {
            (Some(Ok(object)), Some(call)) => {
                json_patch::merge(object, &call.body);
                RequestOutcome::Done
            }
            _ => RequestOutcome::Gone,
        }
    }
}

fn read(object: &Value) -> RequestOutcome {
    match decode::node::read(object.to_string().as_bytes()) {
        Some(node) => RequestOutcome::Node(Box::new(node)),
        None => RequestOutcome::Refused("the response is not one of the Kubernetes API".into()),
    }
}

/// Returns the unified diff of an object before and after; nothing if it does not change.
fn object_diff(name: &NodeName, before: &Value, after: &Value) -> Vec<DiffLine> {
    let (before, after) = match (yaml(before), yaml(after)) {
        (Ok(before), Ok(after)) if before == after => return Vec::new(),
        (Ok(before), Ok(after)) => (before, after),
        (Err(why), _) | (_, Err(why)) => return vec![note(&format!("node {name}: {why}"))],
    };
    let (live, merged) = (format!("LIVE/v1.Node..{name}"), format!("MERGED/v1.Node..{name}"));
    let text = TextDiff::from_lines(&before, &after)
        .unified_diff()
        .context_radius(CONTEXT)
        .header(&live, &merged)
        .to_string();
    let header = line(DiffLineKind::Header, &format!("diff -u -N {live} {merged}"));
    // The first two lines name the object. Their position identifies them, because later lines may also begin with
    // `---` or `+++`.
    let lines = text.lines().enumerate().map(|(place, text)| {
        let kind = match text.chars().next() {
            _ if place < 2 => DiffLineKind::Header,
            Some('@') => DiffLineKind::Hunk,
            Some('+') => DiffLineKind::Added,
            Some('-') => DiffLineKind::Removed,
            Some(_) | None => DiffLineKind::Context,
        };
        line(kind, text)
    });
    std::iter::once(header).chain(lines).collect()
}

/// Returns an object as YAML, without `metadata.managedFields`, as `kubectl diff` compares it.
fn yaml(object: &Value) -> Result<String, String> {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    serde_saphyr::to_string(&object).map_err(|error| format!("it cannot be written as YAML: {error}"))
}

fn line(kind: DiffLineKind, text: &str) -> DiffLine {
    DiffLine { kind, text: text.into() }
}

fn note(text: &str) -> DiffLine {
    line(DiffLineKind::Note, &format!("# {text}"))
}
