//! The report of a node in `kordon status`.

use serde::Serialize;

use super::{certainty_word, seconds};
use crate::{
    cli::act::DrainCountReport,
    k8s::feed::FeedKind,
    model::{Model, NextEventKind, NodeStateView},
};
use kordon_core::{
    cluster::{
        Cluster, CordonOrigin, MaintenanceNote, MaintenanceNotes, Node, NodeName, OperationId, Scope,
        ZoneKey, in_maintenance,
    },
    engine::{HeartbeatSource, Why},
};
use kordon_time::{ClusterTime, Timestamp};

/// A node according to the controller.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatusNodeReport {
    /// The node's name.
    pub name: NodeName,
    /// The node's label `topology.kubernetes.io/region`; may be empty.
    pub region: String,
    /// The node's label `topology.kubernetes.io/zone`; may be empty.
    pub zone: String,
    /// The node's roles, from the labels `node-role.kubernetes.io/…`.
    pub roles: Vec<String>,
    /// The node's state, the most urgent of: `Evicting` (tainted NoExecute by the controller, and pods are leaving or
    /// about to), `Unknown` (declared by the controller; not tainted yet, or no pod leaves), `NotReady` (its kubelet
    /// says so; not tainted yet, or no pod leaves), `ShuttingDown` (its kubelet ends its pods before the machine
    /// stops), `Silent` (no heartbeat for three of its own renewal intervals, or half of its grace period, and never
    /// within one interval), `Late` (none for one and a half intervals), `Pressure` (Ready, with a condition that
    /// reports a problem), `Starting` (never posted its status), `Rebooting` (another project restarts it), `Draining`
    /// (a drain claims it, or another project drains it), `Drained` (cordoned, and no pods left that a drain removes),
    /// `Cordoned`, `Ready`. `null` while the engine has not started.
    pub state: Option<&'static str>,
    /// When the state began; for `Silent` and `Late` the last heartbeat; `null` if unknown.
    pub state_since: Option<Timestamp>,
    #[serde(skip)]
    pub status: Option<NodeStateView>,
    /// Whether the node is cordoned (`spec.unschedulable`).
    pub unschedulable: bool,
    /// The cordon; `null` unless it was made with kordon and the node is still cordoned.
    pub cordon: Option<CordonReport>,
    /// Who cordoned the node, whichever client did; `null` if the node is not cordoned.
    pub cordon_origin: Option<CordonOriginReport>,
    /// The claim on the node for a drain; `null` if no drain claims the node.
    pub drain_claim: Option<DrainClaimReport>,
    /// The maintenance of the node; `null` if the node is in none.
    pub maintenance: Option<MaintenanceNoteReport>,
    pub ready: ReadyReport,
    /// The last heartbeat: the renewTime of the node's Lease, or, where the node's clock differs from the API server's
    /// by more than a few seconds, when the server wrote that Lease (`metadata.managedFields`). If the heartbeat time of
    /// the node's status is later, or the node has no Lease, that time; without both, the node's creation. `null` if
    /// Leases are unknown.
    pub last_heartbeat: Option<Timestamp>,
    /// The last heartbeat as the controller noticed it (upstream's probeTimestamp). The grace period starts here.
    /// `null`, like everything from the engine, while the engine does not know the node.
    pub probe_timestamp: Option<Timestamp>,
    /// Where `probeTimestamp` comes from: `lease` or `status`. Without a heartbeat, it comes from the node's creation
    /// (`created`), or from the last event that gave every node a new grace period: the start of the controller
    /// (`controllerStart`), the end of a full disruption (`disruptionEnd`) or, if kordon is the controller, its
    /// reconnection (`reconnected`).
    pub probe_source: Option<&'static str>,
    /// How certain `probeTimestamp` is: `observed` (kordon saw the event), `estimated` (from a field such as
    /// renewTime), or `atLatest` (the event was before kordon looked, at this time at the latest).
    pub probe_certainty: Option<&'static str>,
    /// The node's grace period.
    pub grace_seconds: Option<f64>,
    /// Rest of the grace period; negative once it has expired.
    pub grace_left_seconds: Option<f64>,
    /// The renewTime of the node's Lease in `kube-node-lease`, written by the kubelet.
    pub lease_renewed: Option<ClusterTime>,
    pub taints: Vec<TaintReport>,
    /// Number of pods on the node that have not finished; `null`, like `terminatingPods`, if the node's pods are
    /// unknown, as with `--no-pods`.
    pub pods: Option<usize>,
    /// Number of pods on the node that are terminating and have not finished.
    pub terminating_pods: Option<usize>,
    /// The next event of the node; `null` if nothing happens until `forecastUntil`.
    pub next: Option<NextReport>,
}

/// A cordon made with kordon.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CordonReport {
    /// Who cordoned the node.
    pub by: String,
    /// The reason given for the cordon; may be empty.
    pub why: String,
    /// When the node was cordoned.
    pub at: Timestamp,
    /// Until when the cordon is meant to stand; `null` if no time was given. Nothing happens at that time.
    pub until: Option<Timestamp>,
    /// Whether the planned end of the cordon has passed.
    pub expired: bool,
    /// The operation that cordoned the node; `kordon undo` undoes it.
    pub operation: Option<OperationId>,
    /// Time left until the planned end of the cordon, as text.
    #[serde(skip)]
    pub time_left: Option<String>,
}

/// Who cordoned a node, and when.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CordonOriginReport {
    /// Who cordoned the node: kordon's note, or else the field manager that set `spec.unschedulable`, with its project if
    /// it is known, as in `kured`; `null` if unknown. Text, not for parsing.
    pub by: Option<String>,
    /// When the node was cordoned; `null` if unknown.
    pub at: Option<Timestamp>,
    /// Whether `at` is only the latest write of the field manager, so that the cordon may be older.
    pub may_be_older: bool,
}

/// A claim on a node for a drain.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DrainClaimReport {
    /// Who drains the node, or whose drain was interrupted.
    pub by: String,
    /// The operation.
    pub operation: OperationId,
    /// When the claim was last renewed: a running drain renews it every 20 seconds.
    pub renewed: Timestamp,
    /// Number of pods that the drain removes from the node, pods that are already gone included; `null` if the number
    /// was not recorded.
    pub pods: Option<usize>,
    /// Number of pods that the drain has to remove and that are left; `null` if the node's pods are unknown.
    pub pods_left: Option<usize>,
    /// Progress of the drain on this node; `null` if the pods or their number are unknown.
    pub count: Option<DrainCountReport>,
    /// Whether the claim has not been renewed for 90 seconds: the drain was interrupted.
    pub expired: bool,
    /// The claim as text.
    #[serde(skip)]
    pub text: String,
}

/// The maintenance of a node.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceNoteReport {
    /// Who runs the maintenance.
    pub by: String,
    /// The id of the maintenance.
    pub operation: OperationId,
    /// How far the node is: `waiting` (its wave has not started), `draining`, `working` (the work on the machine has
    /// begun), `awaited` (the machine has to show that the work is done) or `returning` (the node has to be well
    /// again).
    pub stage: &'static str,
    /// Whether the maintenance is running. Otherwise it was stopped.
    pub running: bool,
    /// The stage and the maintenance as text.
    #[serde(skip)]
    pub text: String,
}

/// The Ready condition.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReadyReport {
    /// The Ready condition: `True`, `False` (set by the kubelet) or `Unknown` (set by the controller after the
    /// heartbeats stopped); `null` if it was never posted.
    pub status: Option<&'static str>,
    /// The condition's reason, written by the client that set the status.
    pub reason: Option<String>,
    /// The condition's message, written by the client that set the status.
    pub message: Option<String>,
    /// The condition's `lastTransitionTime`, written by the client that set the status.
    pub since: Option<ClusterTime>,
}

/// A taint of a node.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TaintReport {
    /// The taint's key.
    pub key: String,
    /// The taint's value; may be empty.
    pub value: String,
    /// The taint's effect: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: &'static str,
    /// When the taint was added, written by the client that added it; usually only with `NoExecute`.
    pub time_added: Option<ClusterTime>,
}

/// The next event of a node.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NextReport {
    /// The event: `unknown` (the node's conditions become Unknown), `taint` (the node gets the NoExecute taint) or
    /// `evict` (pods of the node are deleted).
    pub r#type: &'static str,
    /// Number of pods that are deleted in this event; `null` unless `evict`.
    pub pods: Option<usize>,
    /// Number of pods of the node that are to be evicted, in this event or later; `null` unless `evict`.
    pub all_pods: Option<usize>,
    /// When the event happens; `null` if it depends on something whose time is unknown.
    pub at: Option<Timestamp>,
    /// Seconds from `takenAt` to the event.
    pub in_seconds: Option<f64>,
    /// Whether the time of the event is an estimate.
    pub estimated: bool,
    /// The probability that the event happens at the given time, from 0 to 1: below 1 where several nodes wait for one
    /// token of their zone's rate limiter ([forecast.md](forecast.md)).
    pub probability: f64,
    /// The causes of the event, as text; not for parsing.
    pub why: Why,
    /// The event in words, for the printed table.
    #[serde(skip)]
    pub words: String,
}

impl StatusNodeReport {
    /// Creates the report of one node. `now` is the time to which the model was refreshed.
    pub fn new(model: &Model, node: &Node, now: Timestamp) -> Self {
        let (cluster, views) = (&model.cluster, &model.views);
        let (health, status) = (model.health(node), model.node_status(node));
        let ZoneKey { region, zone } = node.zone();
        let load = cluster.load(&node.name);
        let knows_pods = cluster.knows(&Scope::PodsOn(node.name.clone()));
        Self {
            name: node.name.clone(),
            region: region.to_string(),
            zone: zone.to_string(),
            roles: node.roles().map(str::to_owned).collect(),
            state: status.map(|status| status.state.as_str()),
            state_since: status.and_then(|status| status.since),
            status,
            unschedulable: node.unschedulable,
            cordon: node.cordon().map(|note| CordonReport {
                by: note.by.clone(),
                why: note.reason.clone(),
                at: note.at,
                until: note.until,
                expired: note.is_expired(now),
                operation: note.operation.clone(),
                time_left: note.time_left(now),
            }),
            cordon_origin: CordonOrigin::find(cluster, node).map(|CordonOrigin { by, at, is_latest }| {
                CordonOriginReport { by, at, may_be_older: is_latest }
            }),
            drain_claim: node.drain_claim.as_ref().map(|claim| DrainClaimReport {
                by: claim.by.clone(),
                operation: claim.operation.clone(),
                renewed: claim.renewed,
                pods: claim.pods,
                pods_left: model.drain_count(node).map(|count| count.left()),
                count: model.drain_count(node).map(|count| count.into()),
                expired: !claim.is_fresh(now),
                text: claim.text(now),
            }),
            maintenance: node.maintenance.as_ref().map(|note| MaintenanceNoteReport::new(note, cluster, now)),
            ready: ready(node),
            last_heartbeat: last_heartbeat(model, node),
            probe_timestamp: health.as_ref().map(|health| health.probe),
            probe_source: health.as_ref().map(|health| heartbeat_source(health.heartbeat_source)),
            probe_certainty: health.as_ref().map(|health| certainty_word(health.certainty)),
            grace_seconds: health.as_ref().map(|health| seconds(health.grace)),
            grace_left_seconds: model.grace_ends(node).map(|ends| seconds(ends.since(now))),
            lease_renewed: lease_renewed(cluster, &node.name),
            taints: node.taints.iter().map(taint).collect(),
            pods: knows_pods.then_some(load.unfinished()),
            terminating_pods: knows_pods.then_some(load.terminating),
            next: views.leaving.next.get(&node.name).map(|due| NextReport {
                r#type: match due.what {
                    NextEventKind::Unknown => "unknown",
                    NextEventKind::Taint => "taint",
                    NextEventKind::Evict { .. } => "evict",
                },
                pods: match due.what {
                    NextEventKind::Evict { first, .. } => Some(first),
                    NextEventKind::Unknown | NextEventKind::Taint => None,
                },
                all_pods: match due.what {
                    NextEventKind::Evict { pods, .. } => Some(pods),
                    NextEventKind::Unknown | NextEventKind::Taint => None,
                },
                at: due.at,
                in_seconds: due.at.map(|at| seconds(at.since(now))),
                estimated: due.estimated,
                probability: due.chance.as_ref().map_or(1.0, |chance| chance.probability),
                why: due.why.clone(),
                words: due.what.words(),
            }),
        }
    }
}

impl MaintenanceNoteReport {
    fn new(note: &MaintenanceNote, cluster: &Cluster, now: Timestamp) -> Self {
        let MaintenanceNote { by, operation, stage, .. } = note;
        let running = MaintenanceNotes::runs(cluster, operation, now);
        let text = format!("{} {}", stage.text(), in_maintenance(operation, by, running));
        Self { by: by.clone(), operation: operation.clone(), stage: stage.as_str(), running, text }
    }
}

/// Time of the last heartbeat; unknown if Leases cannot be read, since a node may post its status only every five
/// minutes.
fn last_heartbeat(model: &Model, node: &Node) -> Option<Timestamp> {
    let silence = model.silence(node).filter(|_| model.cluster.gap(FeedKind::Leases).is_none())?;
    Some(silence.heartbeat)
}

fn ready(node: &Node) -> ReadyReport {
    let Some(ready) = node.ready() else { return ReadyReport::default() };
    ReadyReport {
        status: Some(ready.status.as_str()),
        reason: Some(ready.reason.to_string()),
        message: Some(ready.message.to_string()),
        since: ready.last_transition,
    }
}

fn taint(taint: &kordon_core::cluster::Taint) -> TaintReport {
    TaintReport {
        key: taint.key.to_string(),
        value: taint.value.to_string(),
        effect: taint.effect.as_str(),
        time_added: taint.time_added,
    }
}

fn lease_renewed(cluster: &Cluster, node: &NodeName) -> Option<ClusterTime> {
    cluster.lease(node)?.renewed
}

const fn heartbeat_source(source: HeartbeatSource) -> &'static str {
    match source {
        HeartbeatSource::Lease => "lease",
        HeartbeatSource::Status => "status",
        HeartbeatSource::Created => "created",
        HeartbeatSource::ControllerStart => "controllerStart",
        HeartbeatSource::DisruptionEnd => "disruptionEnd",
        HeartbeatSource::Reconnected => "reconnected",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use kordon_core::engine::Cause;

    #[test]
    fn yaml_and_json_say_the_same() {
        let at = Timestamp::from_secs(1_800_000_000);
        let next = NextReport {
            r#type: "evict",
            pods: Some(1),
            all_pods: Some(2),
            at: Some(at),
            in_seconds: Some(-1.5),
            estimated: true,
            probability: 0.5,
            why: Cause::Ready.into(),
            words: "1 of 2 pods".into(),
        };
        let yaml = serde_saphyr::to_string(&next).expect("a report is plain data");
        let back: Value = serde_saphyr::from_str(&yaml).expect("what was written can be read");
        assert_eq!(back, serde_json::to_value(&next).expect("a report is plain data"));
    }
}
