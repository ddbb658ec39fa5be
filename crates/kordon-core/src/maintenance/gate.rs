//! Gates between two waves: nothing may be worse than before the start.

use std::{collections::BTreeMap, fmt};

use crate::{
    cluster::{Cluster, Key, Namespace, Pod},
    plan::words::counted,
};

/// A condition that must hold before a maintenance continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    /// kordon's verdict on the cluster is no worse than before the start, or is at most a notice.
    Verdict,
    /// No controller has more pods without a node than before the start.
    Pending,
    /// No controller has more unready pods than before the start.
    Ready,
    /// Every budget allows at least as many disruptions as before the start.
    Budgets,
    /// A command of the operator succeeds.
    Command,
}

impl Gate {
    /// The gates that look at the cluster. Each of them can be left out.
    pub const CHECKS: [Self; 4] = [Self::Verdict, Self::Pending, Self::Ready, Self::Budgets];
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Verdict => "verdict",
            Self::Pending => "pending",
            Self::Ready => "ready",
            Self::Budgets => "budgets",
            Self::Command => "command",
        })
    }
}

/// A controller with its namespace, for example `web ReplicaSet/api-7d`.
type Controller = (Namespace, String);

/// The state of the cluster that the gates compare, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateReading {
    pending: BTreeMap<Controller, usize>,
    unready: BTreeMap<Controller, usize>,
    allowed: BTreeMap<Key, i32>,
}

impl GateReading {
    pub fn new(cluster: &Cluster) -> Self {
        let mut reading = Self::default();
        for pod in cluster.pods().iter().filter(|pod| !pod.is_finished()) {
            let Some(controller) = controller(pod) else { continue };
            if pod.node.is_none() {
                *reading.pending.entry(controller).or_default() += 1;
            } else if !pod.is_ready() {
                *reading.unready.entry(controller).or_default() += 1;
            }
        }
        let budgets = cluster.budgets().iter();
        reading.allowed =
            budgets.map(|budget| (budget.key.clone(), budget.status.disruptions_allowed)).collect();
        reading
    }

    /// Returns the gates that do not hold, each with the reason: the gates for which this state is worse than the state
    /// `before`.
    pub fn worse_than(&self, before: &Self) -> Vec<(Gate, String)> {
        let more = |gate, now: &BTreeMap<Controller, usize>, then: &BTreeMap<Controller, usize>, what| {
            let is_more = |(controller, pods): &(&Controller, &usize)| {
                **pods > then.get(*controller).copied().unwrap_or_default()
            };
            let text = |((namespace, name), pods): (&Controller, &usize)| {
                let (is, pods) = (if *pods == 1 { "is" } else { "are" }, counted(*pods, "pod", "pods"));
                (gate, format!("{pods} of {name} in {namespace} {is} {what}"))
            };
            now.iter().filter(is_more).map(text).collect::<Vec<_>>()
        };
        let less = |(budget, then): (&Key, &i32)| {
            let now = self.allowed.get(budget).filter(|now| *now < then)?;
            Some((Gate::Budgets, format!("the budget {budget} allows {now} disruptions, before {then}")))
        };
        let mut worse = more(Gate::Pending, &self.pending, &before.pending, "Pending");
        worse.extend(more(Gate::Ready, &self.unready, &before.unready, "not Ready"));
        worse.extend(before.allowed.iter().filter_map(less));
        worse
    }
}

/// The controller of a pod; `None` for a pod without one, and for the mirror pod of a static pod.
fn controller(pod: &Pod) -> Option<Controller> {
    let owner = pod.owner.as_ref().filter(|_| !pod.mirror)?;
    Some((pod.key.namespace.clone(), format!("{}/{}", owner.kind.as_str(), owner.name)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cluster::{
        Budget, Change, ConditionStatus, ObjectEvent, Owner, OwnerKind, PodReady, WorkloadKind,
    };

    fn pod(name: &str, node: Option<&str>, ready: bool) -> Pod {
        let owner = Owner {
            kind: OwnerKind::Workload(WorkloadKind::ReplicaSet),
            name: "api".into(),
            uid: "u".into(),
        };
        let status = if ready { ConditionStatus::True } else { ConditionStatus::False };
        Pod {
            key: Key::new("web", name),
            node: node.map(Into::into),
            owner: Some(Arc::new(owner)),
            ready: Some(PodReady { status, last_transition: None }),
            ..Pod::default()
        }
    }

    fn reading(pods: &[Pod], allowed: i32) -> GateReading {
        let mut cluster = Cluster::default();
        for pod in pods {
            cluster.apply(Change::Pod(ObjectEvent::Applied(pod.clone())), &mut Vec::new());
        }
        let mut budget = Budget { key: Key::new("web", "api"), ..Budget::default() };
        budget.status.disruptions_allowed = allowed;
        cluster.apply(Change::Budget(ObjectEvent::Applied(budget)), &mut Vec::new());
        GateReading::new(&cluster)
    }

    #[test]
    fn what_was_bad_before_may_stay_and_what_has_become_worse_holds_the_next_wave() {
        let before = reading(&[pod("a", Some("n1"), true), pod("b", None, false)], 1);
        assert_eq!(before.worse_than(&before), []);
        let other = reading(&[pod("c", Some("n2"), true), pod("d", None, false)], 2);
        assert_eq!(other.worse_than(&before), [], "a replacement of a Pending pod is no further one");
        let worse = reading(&[pod("a", Some("n1"), false), pod("b", None, false), pod("c", None, false)], 0);
        let texts: Vec<String> =
            worse.worse_than(&before).iter().map(|(gate, why)| format!("{gate}: {why}")).collect();
        assert_eq!(
            texts,
            [
                "pending: 2 pods of ReplicaSet/api in web are Pending",
                "ready: 1 pod of ReplicaSet/api in web is not Ready",
                "budgets: the budget web/api allows 0 disruptions, before 1",
            ]
        );
        assert_eq!(before.worse_than(&worse), []);
    }
}
