//! The report of `kordon status`, with stable names (`docs/reference/status.md`).

mod node;

use serde::Serialize;

use super::super::{
    confidence,
    gaps::{GapReport, gap_reports},
    kubelet_evictions::KubeletEvictionsReport,
};
use crate::{
    k8s::feed::{FeedHealth, FeedKind, FeedState},
    model::{
        ClusterVerdict, EvictionRow, EvictionState, Leadership, Model, NodeState, VerdictLevel, ZoneNodes,
        zone_reason::worst_node,
    },
};
use kordon_core::{
    cluster::{Gaps, Key, NodeName},
    engine::{Certainty, Confidence, Why, ZoneView},
    plan::{Headroom, HeadroomClause, HeadroomLoss, HeadroomLosses, OutcomeKind, PodOutcome},
};
use kordon_time::{ClusterTime, Span, Timestamp};
pub use node::StatusNodeReport;

/// The state of a cluster. Every field is always present; unknown values are null.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// `kordon.status/v1`: fields are added, never removed or renamed.
    pub schema: &'static str,
    /// When the report was made. Durations below count from here.
    pub taken_at: Timestamp,
    /// The end of the forecast that `next` and the predicted evictions come from. Equal to `takenAt` if no forecast
    /// could be made.
    pub forecast_until: Timestamp,
    pub verdict: ClusterVerdictReport,
    pub cluster: ClusterReport,
    pub controller: ControllerReport,
    pub watches: Vec<WatchReport>,
    pub zones: Vec<StatusZoneReport>,
    pub nodes: Vec<StatusNodeReport>,
    /// Pods that are terminating, or on a node that is or will be tainted NoExecute; `null` if pods are unknown.
    pub evictions: Option<Vec<EvictionReport>>,
    #[serde(flatten)]
    pub kubelets: KubeletEvictionsReport,
    /// Effects on pods of losing any one node or any one zone (N-1); `null` if nodes or pods are unknown, or if neither
    /// all nodes nor all zones are worked out.
    pub headroom: Option<HeadroomReport>,
    /// Kinds of objects that are unknown or outdated.
    pub unknown: Vec<GapReport>,
    /// The same kinds as in `unknown`, in the form that the table needs.
    #[serde(skip)]
    pub gaps: Gaps,
}

/// The verdict on the cluster, and what comes next.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterVerdictReport {
    /// How bad the cluster's state is: `healthy` (every node is Ready and heard from, or somebody works on it),
    /// `notice` (nothing needs an action yet, or N-1 is only likely), `warning` (something is wrong, or a node is
    /// silent), `critical` (nodes are down, most of a zone is silent, or no controller is active), `disconnected` (the
    /// present state of the cluster is not known).
    pub level: &'static str,
    /// The verdict in one line: the worst thing first, then what happens next, then the consequence. The dashboard says
    /// the same. For people, not for parsing.
    pub text: String,
    /// How many pods have nowhere to run now: Pending pods, and pods of dead nodes that have no running replacement
    /// ([outcomes.md](../outcomes.md)); `null` if pods are unknown.
    pub nowhere_now: Option<usize>,
    /// How many more pods will have nowhere to run; `null` if that is unknown or cannot be predicted.
    pub nowhere_predicted: Option<usize>,
    #[serde(skip)]
    pub severity: VerdictLevel,
}

/// Effects on pods of losing any one node or any one zone.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HeadroomReport {
    /// The effects of losing a node or zone, as text.
    pub text: String,
    /// Whether the result would be the same if everything were known and worked out. Without Leases, workloads,
    /// namespaces, Services or storage, and with pods of unknown outcome, the result is likely at best.
    pub definite: bool,
    /// Age of the oldest cluster state from which the result was computed; `null` if no later change of the cluster
    /// affects the result.
    pub age_seconds: Option<f64>,
    /// How much of the result is worked out, from 0 to 1.
    pub worked_out_share: f64,
    /// What happens to pods if any one node is lost.
    pub nodes: LossesReport,
    /// What happens to pods if any one zone is lost.
    pub zones: LossesReport,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LossesReport {
    /// Number of nodes that were checked (those that are Ready), or of zones (those with Ready nodes; 0 if there is
    /// only one).
    pub checked: usize,
    /// Whether the loss of each of them is worked out. Otherwise the following fields are about those that are.
    pub complete: bool,
    /// Number of nodes, or of zones, whose loss would leave pods Pending.
    pub leaving_pods_pending: usize,
    /// Number of nodes, or of zones, whose loss would strand pods: stuck, Pending or lost.
    pub stranding: usize,
    /// Number of nodes, or of zones, whose loss may strand pods, or may strand more pods than counted. For some of
    /// these pods, it is not known whether their owner recreates them, or whether a node takes the replacement.
    pub uncertain: usize,
    /// The node or zone whose loss strands the most pods; `null` if no loss strands pods.
    pub worst: Option<LossReport>,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LossReport {
    /// The node or zone whose loss is considered.
    pub name: String,
    /// Number of pods that would have nowhere to run.
    pub nowhere: usize,
    /// Number of pods that would be stuck.
    pub stuck: usize,
    /// Number of pods that would be Pending.
    pub pending: usize,
    /// Number of pods that would be lost.
    pub lost: usize,
    /// Number of pods whose outcome is not known.
    pub unknown: usize,
    /// Number of pods that do not come back to the same node.
    pub pods: usize,
}

/// The cluster that the report is about, and the user who reads it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterReport {
    /// The kubeconfig context.
    pub context: String,
    /// The API server's address.
    pub server: String,
    /// The API server's release, as it names itself (`v1.36.3`).
    pub version: Option<String>,
    /// The user that the server authenticated; `null` if the server does not report it.
    pub user: Option<String>,
    /// The API server's clock minus kordon's, from the Date header; `null` before it is measured.
    pub clock_difference_seconds: Option<f64>,
}

/// The node lifecycle controller whose actions kordon predicts.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ControllerReport {
    pub confidence: ConfidenceReport,
    /// The state of the Lease `kube-system/kube-controller-manager`: `held`, `released` (it has no holder), `none` (it
    /// does not exist: no controller runs, or one without leader election), `forbidden` (kordon may not read it),
    /// `absent` (the files of `--from` do not have it), `unknown` (not read yet).
    pub lease: &'static str,
    /// The controller that holds a Lease: `kube-controller-manager`, or `kordon controller`, whose own Lease
    /// (`kube-system/kordon-controller`) is read too; `null` if none is known to hold one.
    pub name: Option<&'static str>,
    pub leader: Option<LeaderReport>,
    pub settings: Vec<SettingReport>,
}

/// How far predictions can be trusted.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfidenceReport {
    /// How far the predictions can be trusted: `live` (the watches are live and a controller is active), `assumed` (the
    /// watches are live, but no Lease shows whether a controller is active, as without leader election, or while the
    /// watch of that Lease is down: kordon assumes one), `disconnected` (the watches are down), `noController` (neither
    /// kube-controller-manager nor `kordon controller` renews its Lease: nothing is evicted until one does).
    pub state: &'static str,
    /// Since when `state` has this value; `null` for `live` and `assumed`.
    pub since: Option<Timestamp>,
}

/// Holder of the controller manager's Lease.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LeaderReport {
    /// The holder of the Lease. Without a holder `leader` is `null`.
    pub holder: String,
    /// When the holder acquired the Lease, written by the holder.
    pub acquired: Option<ClusterTime>,
    /// When the holder last renewed the Lease, written by the holder.
    pub renewed: Option<ClusterTime>,
}

/// A flag of kube-controller-manager.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SettingReport {
    /// A flag of kube-controller-manager, without the dashes.
    pub flag: &'static str,
    /// The flag's value, as on the command line.
    pub value: String,
    /// Where the flag's value comes from: `default` (upstream's for this version), `cluster` (the command line of the
    /// kube-controller-manager pod), `lease` (the Lease of the active `kordon controller`), `configuration` (the
    /// configuration of kordon, [config.md](config.md)), `override` (a flag of kordon).
    pub origin: &'static str,
}

/// The state of a watch.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WatchReport {
    /// The kind of the watched objects.
    pub kind: String,
    /// State of the watch: `off` (not requested), `connecting`, `listing`, `live`, `broken` (kordon retries) or
    /// `forbidden`.
    pub state: &'static str,
    /// The watch's error, if `broken` or `forbidden`.
    pub error: Option<String>,
    /// When the server last sent something on this watch.
    pub last_event: Option<Timestamp>,
}

/// A zone according to the controller.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatusZoneReport {
    /// The label `topology.kubernetes.io/region` of the zone's nodes; may be empty.
    pub region: String,
    /// The label `topology.kubernetes.io/zone` of the zone's nodes; may be empty.
    pub zone: String,
    /// The engine's state of the zone: `Initial`, `Normal`, `PartialDisruption` or `FullDisruption`.
    pub state: &'static str,
    /// Number of nodes that count for the zone's state.
    pub nodes: usize,
    /// Number of counted nodes that are not ready now, whereas `state` is of the controller's last pass.
    pub not_ready: usize,
    /// The share of the counted nodes that are not ready now, from 0 to 1.
    pub not_ready_share: f32,
    /// The current eviction rate: nodes per second that may get the NoExecute taint. 0 means none.
    pub eviction_rate: f32,
    /// The names of the nodes that wait for the taint. Upstream's order among them is random.
    pub queue: Vec<NodeName>,
    /// The next eviction slot: when the rate allows the next taint in the zone; `null` if it never does.
    pub next_slot: Option<Timestamp>,
    /// State of the worst node of a zone that is not disrupted, for the printed table.
    #[serde(skip)]
    pub worst_node: Option<NodeState>,
}

/// A pod that is terminating, or is on a node that is or will be tainted NoExecute.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvictionReport {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's node.
    pub node: NodeName,
    /// State of the pod's eviction: `scheduled` (its node has the taint), `predicted` (its node does not have the taint
    /// yet; the time comes from the forecast), `terminating` (its deletion has started) or `never` (it tolerates the
    /// taint that its node has, or will have, without a limit).
    pub state: &'static str,
    /// When the pod is deleted; for a `terminating` pod when its grace period ends or, on a node out of service, when
    /// the pod garbage collector removes it by force; `null` for `never`, and while the grace period of a pod lasts
    /// whose kubelet is down, because the pod stays.
    pub at: Option<Timestamp>,
    /// Seconds from `takenAt` to `at`; negative if `at` has passed.
    pub in_seconds: Option<f64>,
    /// How certain `at` is, as in `probeCertainty`: `estimated` for a removal by force; `null` for other pods that are
    /// not `scheduled`.
    pub certainty: Option<&'static str>,
    /// The probability, from 0 to 1, that the pod is deleted at `at`. It is below 1 if several nodes wait for one token
    /// of their zone's rate limiter; `null` unless `predicted`.
    pub probability: Option<f64>,
    /// The finalizers that keep a `terminating` pod after its grace period.
    pub finalizers: Vec<String>,
    /// What becomes of the pod, by the rule of [outcomes.md](../outcomes.md): `moves` (its replacement lands on
    /// `outcomeNode`), `pending` (no node takes its replacement), `refused` (a quota refuses its replacement until the
    /// end of the forecast), `stuck` (no replacement runs until its node is back, deleted or tainted out-of-service),
    /// `lost` (no controller recreates it), `preempts` (its replacement lands on `outcomeNode`, and preempts others
    /// there), `sameNode` (its DaemonSet recreates it there, it is a static pod, or its replacement lands there again),
    /// `finished`, `notReplaced` (its controller needs no other pod), `replaced` (of a terminating pod: its replacement
    /// was created when its deletion started), `replacedWhenGone` (of a terminating pod), `unknown` (what the outcome
    /// depends on is not known: `outcomeText` names it), `leftOut` (there are too many pods to compute it for each) or,
    /// of a pod that is `never` evicted, `stays` (it keeps running); `null` until it is computed.
    pub outcome: Option<&'static str>,
    /// The node of the replacement, for `moves` and `preempts`.
    pub outcome_node: Option<NodeName>,
    /// When the replacement is likely Ready, as in `replacements[].readyInSeconds` of [`kordon forecast`](forecast.md);
    /// `null` if it lands on no node, or after the end of the forecast.
    pub ready_in_seconds: Option<f64>,
    /// The outcome in words; not for parsing.
    pub outcome_text: Option<String>,
    /// Why the replacement lands on its node, or on none, and what would help, as text.
    pub outcome_reasons: Vec<String>,
    /// Whether a PodDisruptionBudget would refuse the eviction if all evictions were requested in order of time.
    /// Evictions by taints ignore budgets. `null` for `terminating` and `never`, and where budgets are unknown.
    pub budget_ignored: Option<bool>,
    /// The causes of the eviction, as text; not for parsing.
    pub why: Why,
}

impl StatusReport {
    /// Creates the report from the model of a cluster. `now` is the time to which the model was refreshed.
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
                nowhere_now: model.nowhere_now(),
                nowhere_predicted: model.nowhere_predicted(),
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
            zones: views.zones.iter().map(|zone| StatusZoneReport::new(model, zone)).collect(),
            nodes: nodes.map(|node| StatusNodeReport::new(model, node, now)).collect(),
            evictions: Some(evictions(model, now)).filter(|rows| !rows.is_empty() || knows_pods),
            kubelets: KubeletEvictionsReport::new(model, now),
            headroom: model
                .known_headroom(now)
                .known()
                .map(|(headroom, clause)| headroom_report(headroom, clause, model.is_headroom_definite())),
            unknown: gap_reports(&gaps),
            gaps,
        }
    }
}

fn headroom_report(headroom: &Headroom, clause: HeadroomClause, definite: bool) -> HeadroomReport {
    HeadroomReport {
        text: clause.text,
        definite: definite && headroom.is_certain() && headroom.is_answered(),
        age_seconds: clause.age.map(seconds),
        worked_out_share: worked_out_share(headroom),
        nodes: losses(&headroom.nodes),
        zones: losses(&headroom.zones),
    }
}

fn worked_out_share(headroom: &Headroom) -> f64 {
    let percent = u32::try_from(headroom.progress()).unwrap_or(100);
    if headroom.is_complete() { 1.0 } else { f64::from(percent) / 100.0 }
}

fn losses<T: ToString>(losses: &HeadroomLosses<T>) -> LossesReport {
    let loss = |loss: &HeadroomLoss<T>| LossReport {
        name: loss.of.to_string(),
        nowhere: loss.outcomes.nowhere(),
        stuck: loss.outcomes.of(OutcomeKind::Stuck),
        pending: loss.outcomes.of(OutcomeKind::Pending),
        lost: loss.outcomes.of(OutcomeKind::Lost),
        unknown: loss.unknown,
        pods: loss.pods,
    };
    LossesReport {
        checked: losses.tried,
        complete: losses.is_complete() && losses.on_request == 0,
        leaving_pods_pending: losses.pending,
        stranding: losses.short,
        uncertain: losses.uncertain,
        worst: losses.worst.as_ref().map(loss),
    }
}

fn controller(model: &Model) -> ControllerReport {
    let confidence = model.views.confidence;
    let since = match confidence {
        Some(Confidence::Disconnected { since } | Confidence::NoController { since }) => Some(since),
        Some(Confidence::Live | Confidence::Assumed) | None => None,
    };
    let leadership = model.leadership(model.views.taken);
    let (lease, leader) = match leadership {
        Leadership::Kordon(leader) | Leadership::Held(leader) => ("held", Some(leader)),
        Leadership::Released => ("released", None),
        Leadership::NoLease => ("none", None),
        Leadership::Forbidden => ("forbidden", None),
        Leadership::Absent => ("absent", None),
        Leadership::Unknown => ("unknown", None),
    };
    ControllerReport {
        confidence: ConfidenceReport { state: confidence.map_or("disconnected", confidence::word), since },
        lease,
        name: leadership.controller(),
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

impl StatusZoneReport {
    pub fn new(model: &Model, view: &ZoneView) -> Self {
        let states = model.watchlist.zones().get(&view.key).map_or(&[][..], ZoneNodes::states);
        Self {
            region: view.key.region.to_string(),
            zone: view.key.zone.to_string(),
            state: view.state.as_str(),
            nodes: view.size,
            not_ready: view.not_ready,
            not_ready_share: view.unready_share(),
            eviction_rate: view.rate,
            queue: view.queue.clone(),
            next_slot: view.next_token,
            worst_node: worst_node(view, states),
        }
    }

    /// The zone's state, with the state of its worst node: `Normal, Silent`.
    pub fn state_text(&self) -> String {
        match self.worst_node {
            Some(worst) => format!("{}, {worst}", self.state),
            None => self.state.into(),
        }
    }
}

/// Evictions, soonest first; pods that are never evicted come last.
fn evictions(model: &Model, now: Timestamp) -> Vec<EvictionReport> {
    let mut rows: Vec<_> = model.views.leaving.evictions.iter().collect();
    rows.sort_by_key(|(pod, row)| (row.state.rank(), row.state.at(), (*pod).clone()));
    rows.into_iter().filter_map(|(pod, row)| EvictionReport::new(model, pod, row, now)).collect()
}

impl EvictionReport {
    /// Creates the report of an eviction. Returns `None` for a cancelled eviction, because the pod is no longer to be
    /// evicted, and for an eviction by a kubelet, which is in [`KubeletEvictionsReport`].
    pub fn new(model: &Model, pod: &Key, row: &EvictionRow, now: Timestamp) -> Option<Self> {
        let (state, certainty, finalizers) = match &row.state {
            EvictionState::Scheduled { certainty, .. } => {
                ("scheduled", Some(certainty_word(*certainty)), Vec::new())
            }
            EvictionState::Predicted { .. } => ("predicted", None, Vec::new()),
            EvictionState::Terminating { finalizers, removed, .. } => {
                let certainty = removed.map(|_| certainty_word(Certainty::Estimated));
                ("terminating", certainty, finalizers.iter().map(ToString::to_string).collect())
            }
            EvictionState::Never => ("never", None, Vec::new()),
            EvictionState::ByKubelet { .. } | EvictionState::Cancelled { .. } => return None,
        };
        let at = row.state.at().filter(|_| !row.state.hangs(now));
        let outcome = model.outcome(pod, row);
        let outcome = outcome.as_deref();
        let leaves = matches!(row.state, EvictionState::Scheduled { .. } | EvictionState::Predicted { .. });
        let probability = match &row.state {
            EvictionState::Predicted { chance, .. } => {
                Some(chance.as_ref().map_or(1.0, |chance| chance.probability))
            }
            _ => None,
        };
        Some(Self {
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
            ready_in_seconds: outcome.and_then(PodOutcome::ready).map(|ready| seconds(ready.since(now))),
            outcome_text: outcome.map(ToString::to_string),
            outcome_reasons: outcome.map(PodOutcome::reasons).unwrap_or_default(),
            budget_ignored: model.predictions.would_be_refused(pod).filter(|_| leaves),
            why: row.why.clone(),
        })
    }
}

/// A duration in seconds, rounded to milliseconds.
pub fn seconds(span: Span) -> f64 {
    (span.as_secs_f64() * 1000.0).round() / 1000.0
}

const fn certainty_word(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Observed => "observed",
        Certainty::Estimated => "estimated",
        Certainty::AtLatest => "atLatest",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<StatusReport>("status");
    }
}
