//! Texts of the warnings about a plan.

use std::fmt::{self, Formatter};

use super::{
    eviction_loop,
    job_failure::JobFailure,
    job_owner::JobOwner,
    outcome_kind::OutcomeCounts,
    warning::{CordonAct, Warning},
    words::counted,
};
use crate::cluster::{Key, Name, NodeName, in_maintenance};
use kordon_time::Span;

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(gap) => write!(f, "{gap}"),
            Self::ZoneLosesLastReady { zone } => {
                write!(f, "zone {zone} loses its last Ready, schedulable node")
            }
            Self::NoSchedulableNode => f.write_str("no Ready, schedulable node is left in the cluster"),
            Self::ControlPlane { node } => write!(f, "{node} is a control plane node"),
            Self::KubeletDown { node } => {
                write!(f, "the kubelet of {node} is down: pods deleted there stay Terminating")
            }
            Self::UnselectedRemain { node, pods } => {
                let pods = counted(*pods, "unselected pod remains", "unselected pods remain");
                write!(f, "{node} is not empty: {pods}")
            }
            Self::BudgetsIgnored { pods, blocked } => budgets_ignored(f, *pods, *blocked),
            Self::DrainIncomplete { node, pods } => {
                let pods = counted(*pods, "pod", "pods");
                write!(f, "{node} ends cordoned with {pods} still on it")
            }
            Self::CapacityExhausted { node, pod, why } => write!(
                f,
                "no node takes the replacement of {pod} once {node} is drained: it stays Pending ({why})"
            ),
            Self::MayTimeOut { timeout, pods } => {
                let pods = counted(*pods, "pod", "pods");
                write!(f, "{pods} may take longer than the timeout of {timeout}")
            }
            Self::ComesBack { node, pods, after, are_placed } => {
                comes_back(f, node, *pods, *after, *are_placed)
            }
            Self::EvictedAgain { node, pods, per_hour } => {
                let pods = counted(*pods, "pod comes back", "pods come back");
                let rate = eviction_loop::rate(*per_hour);
                write!(f, "the taint does not empty {node}: {pods}, and the taint evicts again and again: {rate}")
            }
            Self::WaitsForUncordon(wait) => write!(f, "{wait}; {}", wait.advice()),
            Self::Switchover { node, operator, act, pods } => cordon_act(f, node, operator, *act, *pods),
            Self::JobFails { job, why, pods, others, owner } => {
                job_fails(f, job, *why, *pods, *others, owner.as_ref())
            }
            Self::Preempts { pods, pod, outcomes } => preempts(f, *pods, pod, outcomes),
            Self::GroupRestarts { set, index, leads, others } => {
                let pods = counted(*others, "other pod restarts", "other pods restart");
                let (who, unless) = match leads {
                    true => ("the leader", ""),
                    false => ("a worker", ", unless its restartPolicy is None"),
                };
                write!(f, "LeaderWorkerSet {set}: {who} of group {index} leaves, and {pods} with it{unless}")
            }
            Self::QuotaExceeded { quota, numbers, pods, admitted } => {
                quota_exceeded(f, quota, numbers, *pods, *admitted)
            }
            Self::StatusDiffers { budget, computed, reported } => write!(
                f,
                "the status of {budget} (expected, desired, healthy, allowed: {reported:?}) does not follow from its \
                 pods ({computed:?}); the lower number of allowed disruptions counts"
            ),
            Self::OutOfService { node } => write!(
                f,
                "out-of-service lets the pods of {node} be removed by force and its volumes be detached once it is not \
                 ready: only for a machine that is certainly off"
            ),
            Self::MachineRuns { node, pods } => machine_runs(f, node, *pods),
            Self::OwnedPodsDeleted { pod, pods } => {
                let pods = counted(*pods, "other pod that it owns", "other pods that it owns");
                write!(f, "the garbage collector deletes {pods} once {pod} is gone")
            }
            Self::NodeHeld { node, finalizers } => node_held(f, node, finalizers),
            Self::ControllersTaint { node, key } => write!(
                f,
                "the node lifecycle controller adds and removes {key} on {node}: this change does not last"
            ),
            Self::TaintsDoNotEvict => f.write_str(
                "NoExecute taints evict no pods here: the controller for it does not run (settings enable-taint-manager \
                 and controllers)",
            ),
            Self::CordonStands { node, note } => {
                write!(f, "the cordon of {node} is meant to stand: {note}")
            }
            Self::CordonNoted { node, note } => write!(f, "{node} was cordoned {note}"),
            Self::Claimed { node, by, operation, active: true, .. } => {
                write!(f, "{node} is being drained by {by} (operation {operation})")
            }
            Self::Claimed { node, by, operation, renewed, active: false } => write!(
                f,
                "{node} is claimed for a drain by {by} (operation {operation}), not renewed since {}",
                renewed.to_time()
            ),
            Self::Maintained { node, by, operation, active } => {
                write!(f, "{node} is {}", in_maintenance(operation, by, *active))
            }
        }
    }
}

fn budgets_ignored(f: &mut Formatter<'_>, pods: usize, blocked: Option<usize>) -> fmt::Result {
    let pods = counted(pods, "pod", "pods");
    match blocked {
        Some(blocked) => write!(f, "budgets are ignored: they would block {blocked} of {pods}"),
        None => write!(f, "budgets are ignored: how many of {pods} they would block is unknown"),
    }
}

fn comes_back(
    f: &mut Formatter<'_>,
    node: &NodeName,
    pods: usize,
    after: Span,
    are_placed: bool,
) -> fmt::Result {
    let when = match after < Span::from_secs(1) {
        true => "at once".to_owned(),
        false => format!("after {after}"),
    };
    let why = match (are_placed, pods) {
        (true, 1) => "it tolerates its cordon",
        (true, _) => "they tolerate its cordon",
        (false, 1) => "its template names the node",
        (false, _) => "their template names the node",
    };
    let pods = counted(pods, "pod comes back", "pods come back");
    write!(f, "this drain does not empty {node}: {pods} {when}, because {why}")
}

fn cordon_act(
    f: &mut Formatter<'_>,
    node: &NodeName,
    operator: &str,
    act: CordonAct,
    pods: usize,
) -> fmt::Result {
    let pods = counted(pods, "pod", "pods");
    match act {
        CordonAct::MovesRole => {
            write!(f, "{operator} moves the role of {pods} away from {node} once it is cordoned")
        }
        CordonAct::Restarts => write!(
            f,
            "{operator} deletes {pods} of {node} once it is cordoned: no other instance runs until they are Ready on \
             another node"
        ),
        CordonAct::Nothing => write!(
            f,
            "{operator} does not move the role of {pods} away from {node}: no other instance can take it now"
        ),
        CordonAct::Unknown => write!(
            f,
            "whether {operator} moves the role of {pods} away from {node} is unknown: the other instances are not known"
        ),
    }
}

fn job_fails(
    f: &mut Formatter<'_>,
    job: &Key,
    why: JobFailure,
    pods: usize,
    others: usize,
    owner: Option<&JobOwner>,
) -> fmt::Result {
    let pods = counted(pods, "pod is not replaced", "pods are not replaced");
    match why.is_of_job() {
        true => write!(f, "Job {job} fails ({why}): {pods}")?,
        false => write!(f, "an index of Job {job} fails for good: {pods}")?,
    }
    if others > 0 {
        let others = counted(others, "other pod of it is", "other pods of it are");
        write!(f, ", and {others} deleted, too")?;
    }
    match owner {
        Some(owner) => write!(f, "; {owner}"),
        None => Ok(()),
    }
}

fn preempts(f: &mut Formatter<'_>, pods: usize, pod: &Key, outcomes: &OutcomeCounts) -> fmt::Result {
    let stranded = outcomes.total();
    write!(f, "replacements preempt {}", counted(pods, "pod on another node", "pods on other nodes"))?;
    if pods > stranded {
        let have = if stranded == 1 { "has" } else { "have" };
        write!(f, ", of which {stranded} {have} nowhere to run")?;
    }
    let more = match stranded {
        ..=1 => String::new(),
        pods => format!(" and {} more", pods - 1),
    };
    write!(f, ": {} ({pod}{more}); no PodDisruptionBudget prevents that", outcomes.text())
}

fn quota_exceeded(
    f: &mut Formatter<'_>,
    quota: &Key,
    numbers: &str,
    pods: usize,
    admitted: usize,
) -> fmt::Result {
    let refused = counted(pods, "replacement is refused", "replacements are refused");
    write!(f, "quota {quota}: {numbers}: {refused}")?;
    match pods - admitted {
        0 => f.write_str(" until old pods are gone"),
        never if never == pods => f.write_str(", and nothing in this plan makes room"),
        never => write!(f, " until old pods are gone, {never} of them for longer than this plan"),
    }
}

fn machine_runs(f: &mut Formatter<'_>, node: &NodeName, pods: usize) -> fmt::Result {
    let pods = match pods {
        0 => String::new(),
        pods => format!(", and {} on it", counted(pods, "workload pod is", "workload pods are")),
    };
    write!(
        f,
        "{node} is Ready{pods}: its kubelet runs on without a Node object, until the machine is stopped or the kubelet \
         started again"
    )
}

/// Finalizer with which Karpenter keeps a deleted Node object until Karpenter has drained the node and terminated its
/// machine (`pkg/controllers/node/termination/controller.go`, `finalize`).
const KARPENTER: &str = "karpenter.sh/termination";

fn node_held(f: &mut Formatter<'_>, node: &NodeName, finalizers: &[Name]) -> fmt::Result {
    let names: Vec<&str> = finalizers.iter().map(Name::as_str).collect();
    let names = names.join(", ");
    write!(f, "{node} stays until the controller of {names} removes its finalizer")?;
    if finalizers.iter().any(|finalizer| *finalizer == *KARPENTER) {
        write!(f, ": Karpenter evicts its pods before, within their budgets; see the plan of a drain")?;
    }
    Ok(())
}
