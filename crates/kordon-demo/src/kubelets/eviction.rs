//! A kubelet's pass over the usage of its machine. It restarts containers that are out of memory, and evicts a pod if a
//! threshold requires it (docs/upstream/placement-and-pressure.md#6.3).

use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::json;

use super::{
    Kubelets, Timer, config, containers,
    pressure::{self, EvictionUrgency},
    usage::PodSample,
};
use crate::{
    objects::{Key, Object, Pod},
    writer::{Patch, WriteError, path},
};
use kordon_time::Span;

/// Grace period of a pod that is evicted because of a hard threshold.
const HARD_GRACE: Span = Span::from_secs(1);

/// The result of a kubelet's pass over the usage of its machine.
#[derive(Default)]
struct Findings {
    /// Pods with a container that has reached its memory limit.
    out_of_memory: Vec<Key>,
    /// The resource that must be reclaimed, by the name that the kubelet's messages use.
    short_of: Option<&'static str>,
    /// The pod to evict, the message about the eviction, and the time until the pod has ended.
    victim: Option<(Key, String, Span)>,
}

/// An Event that a kubelet records about a pod or a node.
#[derive(Clone, Copy)]
struct KubeletEvent<'a> {
    node: &'a str,
    /// The pod of the event; None for an event about the node.
    pod: Option<&'a Pod>,
    reason: &'a str,
    message: &'a str,
}

impl Kubelets {
    /// Runs one pass. Does nothing if there is no memory leak and no pressure, because no threshold can be met then.
    pub(super) async fn monitor(&mut self, node: &Arc<str>) {
        let now = self.clock.now();
        let Some(kubelet) = self.kubelets.get_mut(node) else { return };
        let waits = kubelet.pressure.evicts_until.is_some_and(|until| now < until);
        if waits || kubelet.leaks.is_empty() && kubelet.pressure.is_over(now) {
            return;
        }
        let mut state = std::mem::take(&mut kubelet.pressure);
        let mut found = Findings::default();
        if let Some((_, sample)) = self.sample(node, now) {
            let full = |pod: &&PodSample| pod.containers.iter().any(|container| container.is_out_of_memory());
            found.out_of_memory =
                sample.pods.iter().filter(full).map(|pod| Key::from_object(pod.pod)).collect();
            if let Some(shortage) = state.observe(&sample, now) {
                found.short_of = Some(pressure::resource(shortage.signal));
                let first = pressure::victims(shortage.signal, &sample).into_iter().next();
                found.victim = first.filter(|pod| !pod.pod.is_deleted()).map(|pod| {
                    let grace = match shortage.kind {
                        EvictionUrgency::Hard => HARD_GRACE,
                        EvictionUrgency::Soft => {
                            containers::stopping_time(pod.pod, config::MAX_POD_GRACE_SECONDS, self.random)
                        }
                    };
                    (Key::from_object(pod.pod), pressure::message(&shortage, pod), grace)
                });
            }
        }
        state.evicts_until = found.victim.as_ref().map(|(.., grace)| now + *grace);
        if let Some(kubelet) = self.kubelets.get_mut(node) {
            kubelet.pressure = state;
        }
        self.act_on(node, found).await;
    }

    async fn act_on(&mut self, node: &Arc<str>, found: Findings) {
        for key in &found.out_of_memory {
            self.restart_after_oom(node, key).await;
        }
        if let Some(resource) = found.short_of {
            let message = format!("Attempting to reclaim {resource}");
            let reason = "EvictionThresholdMet";
            self.post_event(KubeletEvent { node, pod: None, reason, message: &message }).await;
        }
        let Some((key, message, grace)) = found.victim else { return };
        let Some(pod) = self.pods.object(&key).cloned() else { return };
        let event = KubeletEvent { node, pod: Some(&pod), reason: "Evicted", message: &message };
        self.post_event(event).await;
        let uid = pod.uid().to_owned();
        self.set_timer(self.clock.now() + grace, Timer::Evict { key, uid, message });
    }

    /// Writes the status of an evicted pod, once its containers have ended.
    pub(super) async fn on_evicted(&mut self, key: &Key, uid: &str, message: &str) {
        let Some(pod) = self.pods.object(key).filter(|pod| pod.uid() == uid && !pod.is_finished()).cloned()
        else {
            return;
        };
        let is_connected = |kubelet: &super::Kubelet| kubelet.connection == super::Connection::Up;
        if self.kubelets.get(pod.spec.node_name.as_str()).is_some_and(is_connected) {
            let status = containers::evicted(&pod, message, self.clock.now());
            self.write_status(&pod, &status).await;
        }
    }

    /// Writes the status of a new pod that its node does not admit because of the node's pressure conditions.
    pub(super) async fn reject(&mut self, pod: &Pod) {
        let node: Arc<str> = pod.spec.node_name.as_str().into();
        let conditions: Vec<&str> = self.conditions_of(&node).into_iter().collect();
        let message = format!("The node had condition: [{}]. ", conditions.join(" "));
        let event = KubeletEvent { node: &node, pod: Some(pod), reason: "Evicted", message: &message };
        self.post_event(event).await;
        let status = json!({"phase": "Failed", "reason": "Evicted", "message": message,
            "startTime": self.clock.now().to_time()});
        self.write_status(pod, &status).await;
    }

    async fn restart_after_oom(&mut self, node: &Arc<str>, key: &Key) {
        let Some(pod) = self.pods.object(key).cloned() else { return };
        let status = containers::out_of_memory(&pod, self.clock.now());
        self.write_status(&pod, &status).await;
        if pod.status.container_statuses.iter().any(|container| container.restart_count > 0) {
            let message = format!("Back-off restarting failed container app in pod {}", key.name);
            let event = KubeletEvent { node, pod: Some(&pod), reason: "BackOff", message: &message };
            self.post_event(event).await;
        }
    }

    async fn write_status(&mut self, pod: &Pod, status: &serde_json::Value) {
        let key = Key::from_object(pod);
        let patch = json!({"metadata": {"uid": pod.uid()}, "status": status});
        let path = format!("{}/status", path::pod(&key));
        match self.writer.patch::<Pod>(&path, Patch::Strategic, &patch).await {
            Ok(written) => {
                if let Some(change) = self.pods.record(Arc::new(written)) {
                    self.on_pod(&change);
                }
            }
            Err(WriteError::NotFound | WriteError::Conflict(_)) => {}
            Err(error) => {
                self.errors.report(format!("kubelet, status of pod {}/{}", key.namespace, key.name), &error);
            }
        }
    }

    async fn post_event(&self, event: KubeletEvent<'_>) {
        let KubeletEvent { node, pod, reason, message } = event;
        let at = self.clock.now().to_time();
        let (namespace, name, about) = match pod {
            Some(pod) => {
                let key = Key::from_object(pod);
                let about = json!({"apiVersion": "v1", "kind": "Pod", "namespace": key.namespace, "name": key.name, "uid": pod.uid()});
                (key.namespace, key.name, about)
            }
            // The uid of an event's node is the node's name, as real kubelets write it.
            None => {
                let about = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": node});
                ("default".to_owned(), node.to_owned(), about)
            }
        };
        let body = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"generateName": format!("{name}."), "namespace": namespace},
            "involvedObject": about, "type": "Warning", "reason": reason, "message": message,
            "source": {"component": "kubelet", "host": node},
            "reportingComponent": "kubelet", "reportingInstance": node,
            "count": 1, "firstTimestamp": at, "lastTimestamp": at,
        });
        if let Err(error) = self.writer.create::<IgnoredAny>(&path::events(&namespace), &body).await {
            self.errors.report(format!("kubelet of {node}, event {reason}"), &error);
        }
    }
}
