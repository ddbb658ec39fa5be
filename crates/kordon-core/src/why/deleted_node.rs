//! Explains a node whose object is gone although pods are still bound to its name: what the pod garbage collector does
//! to them, and when (docs/upstream/neighbours.md#1; upstream `podgc.PodGCController.gcOrphaned`).

use std::sync::Arc;

use super::{Explainer, Step, Tense, Topic, in_order};
use crate::{
    cluster::{NodeName, Pod},
    engine::{Certainty, Due},
    forecast::ForecastKind,
    plan::{forced_removal::collected_within, words::counted},
};
use kordon_time::Timestamp;

impl Explainer<'_> {
    /// Explains a node that does not exist. Returns `None` if no pod is bound to its name, because nothing is left to
    /// explain then.
    pub fn deleted_node(&self, name: &NodeName) -> Option<Vec<Step>> {
        let pods: Vec<&Arc<Pod>> = self.cluster.pods_on(name).collect();
        if pods.is_empty() || self.cluster.node(name).is_some() {
            return None;
        }
        let mut steps = Vec::new();
        self.explain_confidence(&mut steps);
        let (count, are) = (counted(pods.len(), "pod", "pods"), if pods.len() == 1 { "is" } else { "are" });
        let gone = format!("its Node object does not exist; {count} {are} still bound to its name");
        steps.push(Step::new(Tense::Present, Topic::Ready, gone));
        if !self.engine.settings().controllers.value.pod_gc {
            let text = "the pod garbage collector does not run: these pods stay until somebody deletes them";
            steps.push(Step::new(Tense::Never, Topic::Eviction, text.into()));
            return Some(in_order(steps));
        }
        steps.push(self.collection(name, &pods));
        let kept = "a Node of the same name within that time keeps its pods";
        steps.push(Step::new(Tense::Present, Topic::Eviction, kept.into()));
        let by_force = "it deletes them without a grace period: pods that had not ended become Failed first, finalizers \
                        still hold them, and a machine that still runs may still run their containers";
        steps.push(Step::new(Tense::Future, Topic::Termination, by_force.into()));
        Some(in_order(steps))
    }

    /// Returns the step that says when the pods of a missing node are deleted. The time is a prediction until the pod
    /// garbage collector has noticed that the node is missing. If the deletion of the node was not observed, the time
    /// is the latest one possible.
    fn collection(&self, name: &NodeName, pods: &[&Arc<Pod>]) -> Step {
        let (count, within) = (counted(pods.len(), "pod", "pods"), collected_within());
        let text = format!("the pod garbage collector deletes the {count}, {within} after the node went");
        let is_latest = self.engine.collection_certainty(name) == Some(Certainty::AtLatest);
        let future = |at: Timestamp, estimated: bool| {
            let bound =
                if is_latest { "; when it went is not known, so this is the latest time" } else { "" };
            let step = Step::new(Tense::Future, Topic::Eviction, format!("{text}{bound}"));
            step.at(at).estimated(estimated)
        };
        let of_node =
            self.engine.evictions(self.cluster).into_iter().filter(|eviction| eviction.node == *name);
        let due = of_node.filter_map(|eviction| match eviction.due {
            Due::At { at, certainty } => Some((at, certainty)),
            Due::Never => None,
        });
        if let Some((at, certainty)) = due.min_by_key(|(at, _)| *at) {
            return future(at, certainty != Certainty::Observed);
        }
        let steps = self.forecast.into_iter().flat_map(|forecast| forecast.of_node(name));
        let removed = steps
            .filter(|step| matches!(step.kind, ForecastKind::Deleted { .. } | ForecastKind::Removed { .. }));
        match removed.map(|step| step.at).filter(|at| *at > self.now).min() {
            Some(at) => future(at, true),
            None => Step::new(Tense::Future, Topic::Eviction, text),
        }
    }
}
