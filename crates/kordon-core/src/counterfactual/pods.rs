//! Recorded changes of pods, with the evictions of the engine in place of those of the recorded controllers.

use std::sync::Arc;

use super::{Counterfactual, ListStage, Uncertainty, acts::EvictedPod, next_version};
use crate::{
    cluster::{Applied, Change, Cluster, ConditionStatus, Delta, Key, NodeName, ObjectEvent, Pod, Uid},
    engine::{DELETION_BY_TAINT, Deletion, NODE_LOST, controllers_own},
    plan::owner::{self, Recreation},
    why::departure::{DepartureKind, PodDeparture, PodPresence},
};
use kordon_time::Timestamp;

impl Counterfactual {
    pub(super) fn on_pod_event(
        &mut self,
        event: ObjectEvent<Pod>,
        cluster: &Cluster,
        now: Timestamp,
    ) -> Vec<Change> {
        let (stage, is_first) = (ListStage::after(&event), !cluster.pods().is_synced());
        let listed = match &event {
            ObjectEvent::Listed(pod) => cluster.pod(&pod.key).cloned(),
            _ => None,
        };
        let mut pods = Vec::new();
        for applied in self.record(Change::Pod(event)) {
            let Applied::Pod(delta) = applied else { continue };
            self.observe_start(&delta, cluster, now);
            pods.extend(self.on_pod(&delta, cluster, now));
        }
        if is_first {
            match stage {
                ListStage::Started => pods.insert(0, ObjectEvent::ListStarted),
                ListStage::Done => pods.push(ObjectEvent::ListDone),
                // A watch lists its objects again, and this pod has not changed: list it as it is in the model.
                ListStage::Listed if pods.is_empty() => {
                    pods.extend(listed.map(|pod| ObjectEvent::Listed((*pod).clone())));
                }
                ListStage::Listed | ListStage::Changed => {}
            }
        }
        pods.into_iter().map(Change::Pod).collect()
    }

    fn on_pod(&mut self, delta: &Delta<Pod>, cluster: &Cluster, now: Timestamp) -> Option<ObjectEvent<Pod>> {
        match (&delta.old, &delta.new) {
            (Some(old), Some(new)) if old.uid == new.uid => self.on_pod_changed(old, new, cluster, now),
            (old, Some(new)) => {
                // The deletion of the old pod was not reported, and a new pod has the same name.
                let gone = old.as_ref().and_then(|old| self.on_pod_gone(old, cluster, now));
                match self.on_pod_created(new, cluster) {
                    Some(created) => Some(created),
                    None => gone,
                }
            }
            (Some(old), None) => self.on_pod_gone(old, cluster, now),
            (None, None) => None,
        }
    }

    /// Records how long a pod takes until it is Ready. Static pods and pods of DaemonSets are left out, because they
    /// are not replacements of evicted pods.
    fn observe_start(&mut self, delta: &Delta<Pod>, cluster: &Cluster, now: Timestamp) {
        let before = |new: &Pod| delta.old.as_ref().filter(|old| old.uid == new.uid).cloned();
        match &delta.new {
            Some(new) => {
                let is_new = before(new).is_none() && cluster.pods().is_synced() && !new.is_ready();
                if is_new && owner::recreation(cluster, new) != Recreation::OnSameNode {
                    self.outages.on_pod_created(&new.uid);
                }
                if new.is_ready() {
                    self.outages.on_pod_ready(&new.uid, now.since(cluster.local(new.created)).or_zero());
                }
            }
            None => {
                if let Some(old) = &delta.old {
                    self.outages.on_pod_gone(&old.uid);
                }
            }
        }
    }

    fn on_pod_created(&mut self, new: &Arc<Pod>, cluster: &Cluster) -> Option<ObjectEvent<Pod>> {
        let is_listed = !cluster.pods().is_synced();
        if !is_listed && self.replacements.leaves_out(&new.key, owner_uid(new)) {
            self.uncertain.add(Uncertainty::ReplacementLeftOut, 1);
            return None;
        }
        let created = self.as_created(new, cluster);
        Some(if is_listed { ObjectEvent::Listed(created) } else { ObjectEvent::Applied(created) })
    }

    /// A newly recorded pod, in which the default tolerations are replaced.
    pub(super) fn as_created(&self, pod: &Pod, cluster: &Cluster) -> Pod {
        let version = cluster.pod(&pod.key).map_or(pod.version, |known| next_version(pod, known));
        Pod { version, tolerations: self.tolerations.replace(&pod.tolerations), ..pod.clone() }
    }

    fn on_pod_changed(
        &mut self,
        old: &Pod,
        new: &Arc<Pod>,
        cluster: &Cluster,
        now: Timestamp,
    ) -> Option<ObjectEvent<Pod>> {
        let begins = old.termination.is_none() && new.termination.is_some();
        if begins && self.is_evicted(new, PodPresence::Present) {
            self.on_recorded_eviction(new, cluster, now);
        } else if begins && let Some(at) = self.evicted_here.get(&new.key) {
            // Another component deleted the pod, perhaps just before the engine would have evicted it.
            self.uncertain.add(Uncertainty::NearDeadline, usize::from(now.since(*at) <= self.passes()));
        }
        if self.replacements.is_left_out(&new.key) {
            return None;
        }
        let known = cluster.pod(&new.key).filter(|known| known.uid == new.uid)?;
        // A pod that was evicted in the recording and stays in the model keeps its state.
        if self.replacements.stays(&new.key) {
            return None;
        }
        let merged = self.merged(old, new, known);
        Some(if cluster.pods().is_synced() {
            ObjectEvent::Applied(merged)
        } else {
            ObjectEvent::Listed(merged)
        })
    }

    /// The recorded pod `new`, with fields written by the controllers taken from `known`.
    fn merged(&self, old: &Pod, new: &Pod, known: &Pod) -> Pod {
        let mut merged = Pod { version: next_version(new, known), ..new.clone() };
        merged.tolerations = match old.tolerations == new.tolerations {
            true => known.tolerations.clone(),
            false => self.tolerations.replace(&new.tolerations),
        };
        if new.ready == old.ready || self.is_marked_not_ready(old, new) {
            merged.ready.clone_from(&known.ready);
        }
        if new.reason == old.reason || new.reason == *NODE_LOST {
            merged.reason = known.reason.clone();
        }
        if is_by_taint(new) || is_by_taint(known) {
            merged.disruption_target.clone_from(&known.disruption_target);
            merged.ending.clone_from(&known.ending);
        }
        if known.termination.is_some() {
            merged.termination.clone_from(&known.termination);
        }
        merged
    }

    /// Whether the controller marked the pod not ready because the pod's node is not ready.
    fn is_marked_not_ready(&self, old: &Pod, new: &Pod) -> bool {
        let is_down = new
            .node
            .as_ref()
            .and_then(|node| self.recorded.node(node))
            .and_then(|node| node.ready())
            .is_some_and(|ready| ready.status != ConditionStatus::True);
        let turned = old.is_ready()
            && new.ready.as_ref().is_some_and(|ready| ready.status == ConditionStatus::False)
            && old.phase == new.phase;
        turned && is_down
    }

    fn on_pod_gone(&mut self, old: &Pod, cluster: &Cluster, now: Timestamp) -> Option<ObjectEvent<Pod>> {
        if old.termination.is_none() && self.is_evicted(old, PodPresence::Gone) {
            self.on_recorded_eviction(old, cluster, now);
        }
        if self.replacements.is_left_out(&old.key) {
            self.replacements.on_gone(&old.key);
            return None;
        }
        let is_known = cluster.pod(&old.key).is_some_and(|known| known.uid == old.uid);
        if !is_known || self.replacements.stays(&old.key) {
            return None;
        }
        self.forget_pod(&old.key);
        Some(ObjectEvent::Deleted(old.key.clone()))
    }

    /// Whether the recorded pod was deleted because of a taint.
    fn is_evicted(&self, pod: &Pod, presence: PodPresence) -> bool {
        if self.settings.rules().marks_disruption_target {
            return is_by_taint(pod);
        }
        PodDeparture::new(pod, presence, &self.recorded, &[])
            .is_some_and(|departure| departure.kind == DepartureKind::TaintEviction)
    }

    /// Handles an eviction by the recorded controller. The pod stays in the model, unless the engine has already
    /// evicted it.
    fn on_recorded_eviction(&mut self, pod: &Pod, cluster: &Cluster, now: Timestamp) {
        let tainted = pod.node.as_ref().and_then(|node| self.recorded.node(node));
        if let Some(node) = tainted.filter(|node| controllers_own(node).next().is_some()) {
            let act = self.act(pod, &node.name, cluster, now);
            self.happened.on_evicted(act);
        }
        self.evicted_here.remove(&pod.key);
        let known = cluster.pod(&pod.key).filter(|known| known.uid == pod.uid);
        if known.is_some_and(|known| known.termination.is_none()) && !self.replacements.is_left_out(&pod.key)
        {
            let owner = owner_uid(pod).cloned().unwrap_or_default();
            self.replacements.on_stays(&pod.key, &owner);
        }
    }

    /// Handles a deletion by the engine: an eviction, or a collection by pod garbage collection.
    pub(super) fn on_engine_deletion(
        &mut self,
        pod: &Arc<Pod>,
        deletion: Deletion,
        cluster: &Cluster,
        now: Timestamp,
    ) {
        let node = pod.node.as_ref().and_then(|node| cluster.node(node));
        let evicts = matches!(deletion, Deletion::ByTaint { .. } | Deletion::WithNode { .. });
        let recorded = self.recorded.pod(&pod.key).filter(|recorded| recorded.uid == pod.uid);
        let also_recorded = recorded.is_none_or(|recorded| recorded.termination.is_some())
            || self.replacements.stays(&pod.key);
        if evicts && let Some(node) = node {
            if controllers_own(node).next().is_some() {
                let act = self.act(pod, &node.name, cluster, now);
                self.would.on_evicted(act);
                if !also_recorded && owner_uid(pod).is_some() {
                    self.evicted_here.insert(pod.key.clone(), now);
                }
            }
            // A silent kubelet ends no pod until it is back.
            let is_silent = node.ready().is_some_and(|ready| ready.status == ConditionStatus::Unknown);
            if is_silent {
                self.held.entry(node.name.clone()).or_default().insert(pod.key.clone());
            } else {
                self.ending.insert(pod.key.clone(), now + pod.grace);
            }
        }
        self.replacements.on_left(&pod.key);
        self.marked.remove(&pod.key);
    }

    fn act(&self, pod: &Pod, node: &NodeName, cluster: &Cluster, now: Timestamp) -> EvictedPod {
        let silent_since = self.silent_since(node, cluster, now);
        let (node, back) = (node.clone(), None);
        let recreation = owner::recreation(cluster, pod);
        EvictedPod {
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
            node,
            at: now,
            silent_since,
            back,
            recreation,
        }
    }

    /// Returns the changes by which the kubelet of a returned node posts its pods as ready. Only pods that the engine
    /// had marked not ready need such a change.
    pub(super) fn restore_pods(&mut self, node: &NodeName, cluster: &Cluster) -> Vec<Change> {
        let is_on = |pod: &Pod| pod.node.as_ref() == Some(node);
        let marked: Vec<Arc<Pod>> = self.marked.values().filter(|pod| is_on(pod)).cloned().collect();
        let restored = marked.into_iter().filter_map(|before| {
            self.marked.remove(&before.key);
            let known = cluster.pod(&before.key).filter(|known| known.uid == before.uid)?;
            let version = next_version(&*before, &**known);
            let pod = Pod { ready: before.ready.clone(), version, ..(**known).clone() };
            (known.termination.is_none()).then(|| Change::Pod(ObjectEvent::Applied(pod)))
        });
        restored.collect()
    }

    pub(super) fn forget_pod(&mut self, pod: &Key) {
        self.replacements.on_left(pod);
        self.marked.remove(pod);
        self.ending.remove(pod);
    }
}

fn owner_uid(pod: &Pod) -> Option<&Uid> {
    pod.owner.as_ref().map(|owner| &owner.uid)
}

fn is_by_taint(pod: &Pod) -> bool {
    pod.disruption_target.as_ref().is_some_and(|reason| *reason == *DELETION_BY_TAINT)
}
