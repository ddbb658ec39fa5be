//! The report of `kordon status`, with stable names (`docs/reference/status.md`).

use serde::Serialize;

use super::super::{
    act::DrainCountReport,
    confidence,
    gaps::{GapReport, gap_reports},
};
use crate::{
    k8s::feed::{FeedHealth, FeedKind, FeedState},
    model::{
        ClusterVerdict, EvictionRow, EvictionState, Leadership, Model, NextEventKind, NodeStateView,
        VerdictLevel,
    },
};
use kordon_core::{
    cluster::{Cluster, Gaps, Key, Node, NodeName, OperationId, Scope, ZoneKey},
    engine::{Certainty, Confidence, HeartbeatSource, Why, ZoneView},
    plan::{Headroom, HeadroomClause, HeadroomLoss, HeadroomLosses, OutcomeKind, PodOutcome},
};
use kordon_time::{ClusterTime, Span, Timestamp};

/// The state of a cluster. Every field is always present; unknown values are null.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// `kordon.status/v1`: fields are added, never removed or renamed.
    pub schema: &'static str,
    pub taken_at: Timestamp,
    /// End of the forecast from which `next` and the predicted evictions are taken.
    pub forecast_until: Timestamp,
    pub verdict: ClusterVerdictReport,
    pub cluster: ClusterReport,
    pub controller: ControllerReport,
    pub watches: Vec<WatchReport>,
    pub zones: Vec<StatusZoneReport>,
    pub nodes: Vec<StatusNodeReport>,
    /// Pods that are terminating or will be evicted; null if pods are unknown.
    pub evictions: Option<Vec<EvictionReport>>,
    /// Effects of losing any one node or zone. Null if nodes or pods are unknown, or if the computation takes too long.
    pub headroom: Option<HeadroomReport>,
    /// Kinds of objects that are unknown or outdated.
    pub unknown: Vec<GapReport>,
    /// Same gaps as in `unknown`, for the table.
    #[serde(skip)]
    pub gaps: Gaps,
}

/// The verdict on the cluster, and what comes next.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterVerdictReport {
    /// Level of the verdict: `healthy`, `notice`, `warning`, `critical` or `disconnected`.
    pub level: &'static str,
    pub text: String,
    #[serde(skip)]
    pub severity: VerdictLevel,
}

/// Effects on pods of losing any one node or any one zone.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadroomReport {
    pub text: String,
    /// Whether the result would be the same if everything were known.
    pub definite: bool,
    /// Age of the oldest part of the result; null if nothing has changed since it was computed.
    pub age_seconds: Option<f64>,
    pub nodes: LossesReport,
    pub zones: LossesReport,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LossesReport {
    pub checked: usize,
    /// Number of losses that leave pods Pending.
    pub leaving_pods_pending: usize,
    /// Number of losses that strand pods.
    pub stranding: usize,
    pub worst: Option<LossReport>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LossReport {
    pub name: String,
    pub nowhere: usize,
    pub stuck: usize,
    pub pending: usize,
    pub lost: usize,
    pub pods: usize,
}

/// The cluster and the user.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReport {
    pub context: String,
    pub server: String,
    pub version: Option<String>,
    pub user: Option<String>,
    /// Time of the API server's clock minus time of this machine's clock.
    pub clock_difference_seconds: Option<f64>,
}

/// The node lifecycle controller that kordon shadows.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerReport {
    pub confidence: ConfidenceReport,
    /// State of the controller's Lease: `held`, `released`, `none`, `forbidden`, `absent` or `unknown`.
    pub lease: &'static str,
    pub leader: Option<LeaderReport>,
    pub settings: Vec<SettingReport>,
}

/// How far predictions can be trusted.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfidenceReport {
    /// State of the confidence: `live`, `assumed`, `disconnected` or `noController`.
    pub state: &'static str,
    pub since: Option<Timestamp>,
}

/// Holder of the controller manager's Lease.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaderReport {
    pub holder: String,
    pub acquired: Option<ClusterTime>,
    pub renewed: Option<ClusterTime>,
}

/// A flag of kube-controller-manager.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SettingReport {
    pub flag: &'static str,
    pub value: String,
    /// Origin of the value: `default`, `cluster`, `configuration` or `override`.
    pub origin: &'static str,
}

/// The state of a watch.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WatchReport {
    pub kind: String,
    /// State of the watch: `off`, `connecting`, `listing`, `live`, `broken` or `forbidden`.
    pub state: &'static str,
    pub error: Option<String>,
    pub last_event: Option<Timestamp>,
}

/// A zone according to the controller.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusZoneReport {
    pub region: String,
    pub zone: String,
    /// State of the zone: `Initial`, `Normal`, `PartialDisruption` or `FullDisruption`.
    pub state: &'static str,
    pub nodes: usize,
    pub not_ready: usize,
    pub not_ready_share: f32,
    /// Rate at which nodes of the zone may be tainted NoExecute, per second.
    pub eviction_rate: f32,
    pub queue: Vec<NodeName>,
    pub next_slot: Option<Timestamp>,
}

/// A node according to the controller.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusNodeReport {
    pub name: NodeName,
    pub region: String,
    pub zone: String,
    pub roles: Vec<String>,
    /// State of the node in one word, such as `Silent` or `Evicting`.
    pub state: Option<&'static str>,
    /// Start of the state. For `Silent` and `Late`, the time of the last heartbeat.
    pub state_since: Option<Timestamp>,
    #[serde(skip)]
    pub status: Option<NodeStateView>,
    pub unschedulable: bool,
    /// Who cordoned the node, if it was cordoned with kordon.
    pub cordon: Option<CordonReport>,
    /// Who claims the node for a drain.
    pub drain_claim: Option<DrainClaimReport>,
    pub ready: ReadyReport,
    /// Time of the last heartbeat: renewTime of the Lease. Without a Lease, the heartbeat time of the node status.
    pub last_heartbeat: Option<Timestamp>,
    /// When the controller noticed the last heartbeat. The grace period starts at this time.
    pub probe_timestamp: Option<Timestamp>,
    /// Source of `probeTimestamp`: `lease`, `status`, `created`, `controllerStart`, `disruptionEnd` or `reconnected`.
    pub probe_source: Option<&'static str>,
    /// Certainty of `probeTimestamp`: `observed`, `estimated` or `atLatest`.
    pub probe_certainty: Option<&'static str>,
    /// The grace period that applies to the node.
    pub grace_seconds: Option<f64>,
    /// Rest of the grace period; negative after it has expired.
    pub grace_left_seconds: Option<f64>,
    pub lease_renewed: Option<ClusterTime>,
    pub taints: Vec<TaintReport>,
    /// Number of pods on the node that have not finished. Null, like `terminating_pods`, if the node's pods are unknown.
    pub pods: Option<usize>,
    pub terminating_pods: Option<usize>,
    pub next: Option<NextReport>,
}

/// A cordon made with kordon.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CordonReport {
    pub by: String,
    /// Reason for the cordon; empty if none was given.
    pub why: String,
    pub at: Timestamp,
    pub until: Option<Timestamp>,
    /// Whether the planned end of the cordon has passed.
    pub expired: bool,
    pub operation: Option<OperationId>,
    /// Time left until the planned end of the cordon, as text.
    #[serde(skip)]
    pub time_left: Option<String>,
}

/// A claim on a node for a drain.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainClaimReport {
    pub by: String,
    pub operation: OperationId,
    pub renewed: Timestamp,
    /// Number of pods that the drain removes from the node, pods that are already gone included; null if the
    /// number was not recorded.
    pub pods: Option<usize>,
    pub pods_left: Option<usize>,
    /// Progress of the drain on this node; null if the pods or their number are unknown.
    pub count: Option<DrainCountReport>,
    /// Whether the claim is no longer renewed, because the drain was interrupted.
    pub expired: bool,
    /// The claim as text.
    #[serde(skip)]
    pub text: String,
}

/// The Ready condition.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadyReport {
    /// Status of the condition: `True`, `False` or `Unknown`; null if the kubelet never posted the condition.
    pub status: Option<&'static str>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub since: Option<ClusterTime>,
}

/// A taint of a node.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaintReport {
    pub key: String,
    pub value: String,
    pub effect: &'static str,
    pub time_added: Option<ClusterTime>,
}

/// The next event of a node.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NextReport {
    /// Type of the event: `unknown`, `taint` or `evict`.
    pub r#type: &'static str,
    /// Number of evicted pods; null for other events.
    pub pods: Option<usize>,
    /// Time of the event; null if the event depends on something whose time is unknown.
    pub at: Option<Timestamp>,
    pub in_seconds: Option<f64>,
    /// Whether the time is an estimate.
    pub estimated: bool,
    /// Probability that the event happens at this time, from 0 to 1.
    pub probability: f64,
    pub why: Why,
}

/// A pod that is terminating, or is on a node that is or will be tainted NoExecute.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionReport {
    pub namespace: String,
    pub pod: String,
    pub node: NodeName,
    /// State of the eviction: `scheduled`, `predicted`, `terminating` or `never`.
    pub state: &'static str,
    /// When the pod is deleted. For a terminating pod, when the pod's grace period ends.
    pub at: Option<Timestamp>,
    pub in_seconds: Option<f64>,
    /// Certainty of the time: `observed`, `estimated` or `atLatest`; null unless the eviction is `scheduled`.
    pub certainty: Option<&'static str>,
    /// Probability that the pod is deleted at this time, from 0 to 1; null unless the eviction is `predicted`.
    pub probability: Option<f64>,
    /// Finalizers that keep a terminating pod after its grace period.
    pub finalizers: Vec<String>,
    /// Outcome, as [`OutcomeKind::word`]; null for a pod that stays, or if no outcome was computed.
    pub outcome: Option<&'static str>,
    pub outcome_node: Option<NodeName>,
    /// The outcome as text.
    pub outcome_text: Option<String>,
    /// Reasons of the outcome, and proposals.
    pub outcome_reasons: Vec<String>,
    /// Whether taint eviction ignores a budget that would refuse the eviction; null if budgets are unknown.
    pub budget_ignored: Option<bool>,
    pub why: Why,
}

impl StatusReport {
    /// Creates the report of a model that was refreshed at `now`.
    pub fn new(model: &Model, now: Timestamp) -> Self {
        let views = &model.views;
        let nodes = model.cluster.nodes().iter();
        let knows_pods = model.eviction_gaps().is_empty();
        let verdict = ClusterVerdict::new(model, now);
        let gaps = model.cluster.gaps(model.feeds.iter().map(|(kind, _)| kind));
        Self {
            schema: "kordon.status/v1",
            taken_at: now,
            forecast_until: model.predictions.forecast().map_or(now, |forecast| forecast.until),
            verdict: ClusterVerdictReport {
                level: verdict.level.as_str(),
                text: verdict.text(),
                severity: verdict.level,
            },
            cluster: ClusterReport {
                context: model.connection.context.clone(),
                server: model.connection.server.clone(),
                version: model.connection.server_version.clone(),
                user: model.connection.identity.clone(),
                clock_difference_seconds: model.feeds.clock_difference.map(seconds),
            },
            controller: controller(model),
            watches: model.feeds.iter().map(|(kind, health)| watch(kind, health)).collect(),
            zones: views.zones.iter().map(zone).collect(),
            nodes: nodes.map(|node| node_report(model, node, now)).collect(),
            evictions: Some(evictions(model, now)).filter(|rows| !rows.is_empty() || knows_pods),
            headroom: model
                .known_headroom(now)
                .known()
                .filter(|(headroom, _)| headroom.is_answered())
                .map(|(headroom, clause)| headroom_report(headroom, clause, model.is_headroom_definite())),
            unknown: gap_reports(&gaps),
            gaps,
        }
    }
}

fn headroom_report(headroom: &Headroom, clause: HeadroomClause, definite: bool) -> HeadroomReport {
    HeadroomReport {
        text: clause.text,
        definite,
        age_seconds: clause.age.map(seconds),
        nodes: losses(&headroom.nodes),
        zones: losses(&headroom.zones),
    }
}

fn losses<T: ToString>(losses: &HeadroomLosses<T>) -> LossesReport {
    let loss = |loss: &HeadroomLoss<T>| LossReport {
        name: loss.of.to_string(),
        nowhere: loss.outcomes.nowhere(),
        stuck: loss.outcomes.of(OutcomeKind::Stuck),
        pending: loss.outcomes.of(OutcomeKind::Pending),
        lost: loss.outcomes.of(OutcomeKind::Lost),
        pods: loss.pods,
    };
    LossesReport {
        checked: losses.tried,
        leaving_pods_pending: losses.pending,
        stranding: losses.short,
        worst: losses.worst.as_ref().map(loss),
    }
}

fn controller(model: &Model) -> ControllerReport {
    let confidence = model.views.confidence;
    let since = match confidence {
        Some(Confidence::Disconnected { since } | Confidence::NoController { since }) => Some(since),
        Some(Confidence::Live | Confidence::Assumed) | None => None,
    };
    let (lease, leader) = match model.leadership() {
        Leadership::Held(leader) => ("held", Some(leader)),
        Leadership::Released => ("released", None),
        Leadership::NoLease => ("none", None),
        Leadership::Forbidden => ("forbidden", None),
        Leadership::Absent => ("absent", None),
        Leadership::Unknown => ("unknown", None),
    };
    ControllerReport {
        confidence: ConfidenceReport { state: confidence.map_or("disconnected", confidence::word), since },
        lease,
        leader: leader.map(|leader| LeaderReport {
            holder: leader.holder.to_string(),
            acquired: leader.acquired,
            renewed: leader.renewed,
        }),
        settings: model
            .settings
            .rows()
            .into_iter()
            .map(|(flag, value, origin)| SettingReport { flag, value, origin: origin.as_str() })
            .collect(),
    }
}

fn watch(kind: FeedKind, health: &FeedHealth) -> WatchReport {
    let error = match &health.state {
        FeedState::Broken { error, .. } | FeedState::Forbidden { error } => Some(error.clone()),
        FeedState::Off | FeedState::Connecting | FeedState::Listing { .. } | FeedState::Live => None,
    };
    WatchReport { kind: kind.to_string(), state: health.state.as_str(), error, last_event: health.last_heard }
}

fn zone(view: &ZoneView) -> StatusZoneReport {
    StatusZoneReport {
        region: view.key.region.to_string(),
        zone: view.key.zone.to_string(),
        state: view.state.as_str(),
        nodes: view.size,
        not_ready: view.not_ready,
        not_ready_share: view.unready_share(),
        eviction_rate: view.rate,
        queue: view.queue.clone(),
        next_slot: view.next_token,
    }
}

/// Time of the last heartbeat; unknown if Leases cannot be read, since a node may post its status only every five
/// minutes.
fn last_heartbeat(model: &Model, node: &Node) -> Option<Timestamp> {
    let silence = model.silence(node).filter(|_| model.cluster.gap(FeedKind::Leases).is_none())?;
    Some(silence.heartbeat)
}

fn node_report(model: &Model, node: &Node, now: Timestamp) -> StatusNodeReport {
    let (cluster, views) = (&model.cluster, &model.views);
    let (health, status) = (model.health(node), model.node_status(node));
    let ZoneKey { region, zone } = node.zone();
    let load = cluster.load(&node.name);
    let knows_pods = cluster.knows(&Scope::PodsOn(node.name.clone()));
    StatusNodeReport {
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
        ready: ready(node),
        last_heartbeat: last_heartbeat(model, node),
        probe_timestamp: health.as_ref().map(|health| health.probe),
        probe_source: health.as_ref().map(|health| heartbeat_source(health.heartbeat_source)),
        probe_certainty: health.as_ref().map(|health| certainty(health.certainty)),
        grace_seconds: health.as_ref().map(|health| seconds(health.grace)),
        grace_left_seconds: health.as_ref().map(|health| seconds(health.expires().since(now))),
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
                NextEventKind::Evict { pods, .. } => Some(pods),
                NextEventKind::Unknown | NextEventKind::Taint => None,
            },
            at: due.at,
            in_seconds: due.at.map(|at| seconds(at.since(now))),
            estimated: due.estimated,
            probability: due.chance.as_ref().map_or(1.0, |chance| chance.probability),
            why: due.why.clone(),
        }),
    }
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

/// Evictions, soonest first; pods that are never evicted come last.
fn evictions(model: &Model, now: Timestamp) -> Vec<EvictionReport> {
    let mut rows: Vec<_> = model.views.leaving.evictions.iter().collect();
    rows.sort_by_key(|(pod, row)| (row.state.rank(), row.state.at(), (*pod).clone()));
    let report = |(pod, row): (&Key, &EvictionRow)| {
        let (state, certainty, finalizers) = match &row.state {
            EvictionState::Scheduled { certainty, .. } => {
                ("scheduled", Some(self::certainty(*certainty)), Vec::new())
            }
            EvictionState::Predicted { .. } => ("predicted", None, Vec::new()),
            EvictionState::Terminating { finalizers, .. } => {
                ("terminating", None, finalizers.iter().map(ToString::to_string).collect())
            }
            EvictionState::Never => ("never", None, Vec::new()),
            // A cancelled eviction only says what has changed since an earlier moment. A single report leaves it out.
            EvictionState::Cancelled { .. } => return None,
        };
        let at = row.state.at();
        let outcome = model.outcome(pod, row);
        let outcome = outcome.as_deref();
        let leaves = matches!(row.state, EvictionState::Scheduled { .. } | EvictionState::Predicted { .. });
        let probability = match &row.state {
            EvictionState::Predicted { chance, .. } => {
                Some(chance.as_ref().map_or(1.0, |chance| chance.probability))
            }
            _ => None,
        };
        Some(EvictionReport {
            namespace: pod.namespace.to_string(),
            pod: pod.name.to_string(),
            node: row.node.clone(),
            state,
            at,
            in_seconds: at.map(|at| seconds(at.since(now))),
            certainty,
            probability,
            finalizers,
            outcome: outcome.map(|outcome| outcome.kind().word()),
            outcome_node: outcome.and_then(PodOutcome::node).cloned(),
            outcome_text: outcome.map(ToString::to_string),
            outcome_reasons: outcome.map(PodOutcome::reasons).unwrap_or_default(),
            budget_ignored: model.predictions.would_be_refused(pod).filter(|_| leaves),
            why: row.why.clone(),
        })
    };
    rows.into_iter().filter_map(report).collect()
}

/// A duration in seconds, rounded to milliseconds.
pub fn seconds(span: Span) -> f64 {
    (span.as_secs_f64() * 1000.0).round() / 1000.0
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

const fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Observed => "observed",
        Certainty::Estimated => "estimated",
        Certainty::AtLatest => "atLatest",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::cli::documented;
    use kordon_core::engine::Cause;

    /// Sample report in which every field has a value and every list has items.
    fn full() -> StatusReport {
        let at = Timestamp::from_secs(1_800_000_000);
        let written = ClusterTime::new(at);
        let text = || "text".to_owned();
        let loss = || LossReport { name: text(), nowhere: 4, stuck: 1, pending: 2, lost: 1, pods: 9 };
        StatusReport {
            schema: "kordon.status/v1",
            taken_at: at,
            forecast_until: at,
            verdict: ClusterVerdictReport {
                level: "critical",
                text: text(),
                severity: VerdictLevel::Critical,
            },
            cluster: ClusterReport {
                context: text(),
                server: text(),
                version: Some(text()),
                user: Some(text()),
                clock_difference_seconds: Some(0.5),
            },
            controller: ControllerReport {
                confidence: ConfidenceReport { state: "disconnected", since: Some(at) },
                lease: "held",
                leader: Some(LeaderReport {
                    holder: text(),
                    acquired: Some(written),
                    renewed: Some(written),
                }),
                settings: vec![SettingReport {
                    flag: "node-monitor-period",
                    value: text(),
                    origin: "default",
                }],
            },
            watches: vec![WatchReport {
                kind: text(),
                state: "broken",
                error: Some(text()),
                last_event: Some(at),
            }],
            zones: vec![StatusZoneReport {
                region: text(),
                zone: text(),
                state: "Normal",
                nodes: 3,
                not_ready: 1,
                not_ready_share: 0.5,
                eviction_rate: 0.1,
                queue: vec!["n1".into()],
                next_slot: Some(at),
            }],
            nodes: vec![StatusNodeReport {
                name: "n1".into(),
                region: text(),
                zone: text(),
                roles: vec![text()],
                state: Some("Evicting"),
                state_since: Some(at),
                status: None,
                unschedulable: true,
                cordon: Some(CordonReport {
                    by: text(),
                    why: text(),
                    at,
                    until: Some(at),
                    expired: true,
                    operation: "cordon-1".parse().ok(),
                    time_left: Some(text()),
                }),
                drain_claim: Some(DrainClaimReport {
                    by: text(),
                    operation: "drain-1".parse().expect("an id"),
                    renewed: at,
                    pods: Some(8),
                    pods_left: Some(5),
                    count: Some(DrainCountReport::default()),
                    expired: true,
                    text: text(),
                }),
                ready: ReadyReport {
                    status: Some("Unknown"),
                    reason: Some(text()),
                    message: Some(text()),
                    since: Some(written),
                },
                last_heartbeat: Some(at),
                probe_timestamp: Some(at),
                probe_source: Some("lease"),
                probe_certainty: Some("observed"),
                grace_seconds: Some(50.0),
                grace_left_seconds: Some(-1.5),
                lease_renewed: Some(written),
                taints: vec![TaintReport {
                    key: text(),
                    value: text(),
                    effect: "NoExecute",
                    time_added: Some(written),
                }],
                pods: Some(2),
                terminating_pods: Some(1),
                next: Some(NextReport {
                    r#type: "evict",
                    pods: Some(2),
                    at: Some(at),
                    in_seconds: Some(3.0),
                    estimated: true,
                    probability: 0.5,
                    why: Cause::Ready.into(),
                }),
            }],
            unknown: vec![GapReport::full()],
            gaps: Gaps::default(),
            evictions: Some(vec![EvictionReport {
                namespace: text(),
                pod: text(),
                node: "n1".into(),
                state: "scheduled",
                at: Some(at),
                in_seconds: Some(3.0),
                certainty: Some("estimated"),
                probability: Some(0.5),
                finalizers: vec![text()],
                outcome: Some("moves"),
                outcome_node: Some("n2".into()),
                outcome_text: Some(text()),
                outcome_reasons: vec![text()],
                budget_ignored: Some(true),
                why: Cause::Ready.into(),
            }]),
            headroom: Some(HeadroomReport {
                text: text(),
                definite: true,
                age_seconds: Some(61.5),
                nodes: LossesReport {
                    checked: 3,
                    leaving_pods_pending: 1,
                    stranding: 2,
                    worst: Some(loss()),
                },
                zones: LossesReport {
                    checked: 3,
                    leaving_pods_pending: 1,
                    stranding: 2,
                    worst: Some(loss()),
                },
            }),
        }
    }

    #[test]
    fn the_documented_fields_are_the_fields() {
        documented::check(&full(), include_str!("../../../docs/reference/status.md"));
    }

    #[test]
    fn yaml_and_json_say_the_same() {
        let report = full();
        let yaml = serde_saphyr::to_string(&report).expect("a report is plain data");
        let back: Value = serde_saphyr::from_str(&yaml).expect("what was written can be read");
        assert_eq!(back["nodes"][0]["next"]["pods"], 2);
        assert_eq!(back["takenAt"], "2027-01-15T08:00:00.000Z");
        assert_eq!(back["nodes"][0]["graceLeftSeconds"], -1.5);
    }
}
