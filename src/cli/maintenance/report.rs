//! The report of `kordon maintenance`.

use serde::Serialize;

use crate::cli::plan::SurgeReport;
use kordon_core::{
    cluster::NodeName,
    maintenance::{
        LeftOutReason, MaintenanceCost, MaintenanceOptions, MaintenancePlan, MaintenanceWave, PodMove,
        WorkloadDown,
    },
    plan::Loss,
};
use kordon_time::{Span, Timestamp};

/// The waves in which nodes are maintained (`docs/reference/maintenance.md`). Every field is always present; unknown
/// values are null.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceReport {
    /// `kordon.maintenance/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// When the plan was made.
    pub taken_at: Timestamp,
    /// The cost of all waves together.
    pub cost: CostReport,
    /// The cost of maintaining the same nodes one after the other, in order of name and at any time of day, without
    /// cordoning any node in advance.
    pub by_name: CostReport,
    /// The waves, in order.
    pub waves: Vec<WaveReport>,
    /// Nodes that are in no wave.
    pub left_out: Vec<LeftOutReport>,
    /// What `--surge` does for each workload whose budget can never allow an eviction: in the order of the waves, then on
    /// the nodes that are in no wave. The fields are those of `surges` in a plan.
    pub surges: Vec<SurgeReport>,
    /// Warning about control plane nodes in the waves, as text; `null` if there are none.
    pub control_plane: Option<String>,
    /// The assumptions of the plan, as text.
    pub assumptions: Vec<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CostReport {
    /// Number of nodes that are maintained.
    pub nodes: usize,
    /// Time from the start of the first wave to the end of the last, in seconds.
    takes_seconds: i64,
    /// Number of pod moves.
    pub moves: usize,
    /// Number of moves of pods that had already moved in an earlier wave.
    pub moved_again: usize,
    /// Number of times that a pod leaves and loses data.
    pub data_lost: usize,
    #[serde(skip)]
    pub takes: Span,
}

/// Nodes that are maintained at the same time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WaveReport {
    /// The nodes.
    pub nodes: Vec<NodeName>,
    /// When the drains of the nodes start.
    pub starts: Timestamp,
    /// When the last pod is likely gone.
    pub drained: Timestamp,
    /// When all nodes of the wave are likely back and settled, and every moved pod that is expected to become Ready
    /// again is Ready.
    pub ends: Timestamp,
    /// Whether nodes of later waves are cordoned during this wave, so that no replacement lands on them. Each zone
    /// keeps a node that is not cordoned, unless `--override last-ready` is given.
    pub cordons_ahead: bool,
    /// The pods that move, in order of their departure.
    pub moves: Vec<MoveReport>,
    /// Pods that no controller recreates, or whose Job fails, as `namespace/name`; includes pods that replacements
    /// preempt.
    pub lost: Vec<String>,
    /// Why the pods in `lost` are lost, in words, in the same order.
    pub lost_because: Vec<String>,
    /// Number of pods that leave and lose data.
    pub data_lost: usize,
    /// Pods that find no node until the nodes of the wave are back, as `namespace/name`; only with `--allow-pending`.
    pub pending: Vec<String>,
    /// Number of pods that likely leave before `--drain-timeout`, but may take longer. If one takes longer, the
    /// maintenance stops.
    pub may_time_out: usize,
    /// Times in which a workload has no Ready pod.
    pub down: Vec<DownReport>,
    /// How many pods the worst loss of a node or zone strands after the wave; `null` if that is not computed.
    pub stranded: Option<usize>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MoveReport {
    /// The pod that leaves, as `namespace/name`. If the plan moves a pod again, the replacement's name is made up.
    pub pod: String,
    /// The node that the pod leaves.
    pub from: NodeName,
    /// Where the pod's replacement likely lands.
    pub to: NodeName,
    /// Whether the pod has moved in an earlier wave already.
    pub again: bool,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DownReport {
    /// The last Ready pod of the workload, as `namespace/name`.
    pod: String,
    /// When the pod leaves.
    from: Timestamp,
    /// When the pod's replacement is likely Ready; `null` if never or unknown.
    until: Option<Timestamp>,
    /// Whether nothing replaces the pod.
    for_good: bool,
    /// The pod and how long its workload is down, as text; `None` if it is down for less than a second.
    #[serde(skip)]
    pub says: Option<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LeftOutReport {
    /// The node.
    pub node: NodeName,
    /// Why the node is in no wave: `drain` (its drain does not complete), `noRoom` (pods would have nowhere to run),
    /// `headroom` (the loss of a node or zone would be worse afterwards), `guard` (it would break a guard rail) or
    /// `noWindow` (the wave fits into no window, or not into `--max-duration`).
    kind: &'static str,
    /// Why the node is in no wave, as text; not for parsing.
    pub says: String,
}

impl MaintenanceReport {
    pub fn new(plan: &MaintenancePlan, options: &MaintenanceOptions) -> Self {
        Self {
            schema: "kordon.maintenance/v1",
            taken_at: plan.made,
            cost: plan.cost().into(),
            by_name: plan.by_name.into(),
            waves: plan.waves.iter().map(WaveReport::from).collect(),
            left_out: plan.left_out.iter().map(LeftOutReport::from).collect(),
            surges: plan.surges().map(|surge| SurgeReport::new(surge, plan.made)).collect(),
            control_plane: plan.control_plane_warning(),
            assumptions: options.assumptions(),
        }
    }
}

impl From<MaintenanceCost> for CostReport {
    fn from(cost: MaintenanceCost) -> Self {
        let MaintenanceCost { nodes, takes, moves, moved_again, data_lost } = cost;
        Self { nodes, takes_seconds: takes.as_secs(), moves, moved_again, data_lost, takes }
    }
}

impl From<&MaintenanceWave> for WaveReport {
    fn from(wave: &MaintenanceWave) -> Self {
        Self {
            nodes: wave.nodes.clone(),
            starts: wave.starts,
            drained: wave.drained,
            ends: wave.ends,
            cordons_ahead: !wave.ahead.is_empty(),
            moves: wave.moves.iter().map(MoveReport::from).collect(),
            lost: wave.losses.iter().map(|loss| loss.pod.to_string()).collect(),
            lost_because: wave.losses.iter().map(Loss::reason).collect(),
            data_lost: wave.data_lost,
            pending: wave.pending.iter().map(ToString::to_string).collect(),
            may_time_out: wave.may_time_out,
            down: wave.down.iter().map(DownReport::from).collect(),
            stranded: wave.stranded,
        }
    }
}

impl From<&PodMove> for MoveReport {
    fn from(moved: &PodMove) -> Self {
        let PodMove { pod, from, to, is_again } = moved;
        Self { pod: pod.to_string(), from: from.clone(), to: to.clone(), again: *is_again }
    }
}

impl From<&WorkloadDown> for DownReport {
    fn from(down: &WorkloadDown) -> Self {
        let WorkloadDown { pod, from, until, is_for_good } = down;
        Self {
            pod: pod.to_string(),
            from: *from,
            until: *until,
            for_good: *is_for_good,
            says: down.is_seen().then(|| down.to_string()),
        }
    }
}

impl From<&(NodeName, LeftOutReason)> for LeftOutReport {
    fn from((node, reason): &(NodeName, LeftOutReason)) -> Self {
        let kind = match reason {
            LeftOutReason::Drain(_) => "drain",
            LeftOutReason::NoRoom { .. } => "noRoom",
            LeftOutReason::Headroom { .. } => "headroom",
            LeftOutReason::Guard(_) => "guard",
            LeftOutReason::NoWindow { .. } | LeftOutReason::MaxDuration { .. } => "noWindow",
        };
        Self { node: node.clone(), kind, says: reason.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<MaintenanceReport>("maintenance");
    }
}
