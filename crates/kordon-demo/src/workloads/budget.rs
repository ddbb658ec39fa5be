//! The disruption controller: computes how many disruptions a budget allows (docs/upstream/operator-actions.md#5).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Value, json};

use super::{WorkItem, Workloads};
use crate::{
    feed::KnownObjects,
    objects::{Budget, BudgetSpec, Key, Object, Pod, WorkloadKind, selects},
    writer::{WriteError, path},
};
use kordon_time::{Span, Timestamp};

/// Time after which an approved eviction no longer counts if the pod was not evicted.
const DISRUPTION_TIMEOUT: Span = Span::from_secs(120);

/// Returns the budgets that select a pod.
pub fn of_pod(budgets: &KnownObjects<Budget>, pod: &Pod) -> BTreeSet<Key> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    budgets
        .within(namespace)
        .filter(|(_, budget)| selects(budget.spec.selector.as_ref(), pod.metadata.labels.as_ref()))
        .map(|(key, _)| key.clone())
        .collect()
}

/// The numbers of pods in a budget's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    expected: usize,
    current: usize,
    desired: usize,
}

impl Numbers {
    fn allowed(self) -> usize {
        if self.expected == 0 { 0 } else { self.current.saturating_sub(self.desired) }
    }
}

impl Workloads {
    pub(super) async fn sync_budget(&mut self, key: &Key) -> Result<(), WriteError> {
        let Some(budget) = self.budgets.object(key).cloned() else { return Ok(()) };
        let now = self.clock.now();
        let pods: Vec<Arc<Pod>> = self
            .budgeted
            .pods
            .get(key)
            .into_iter()
            .flatten()
            .filter_map(|pod| self.pods.object(pod))
            .cloned()
            .collect();
        let (disrupted, expiry) = pending_disruptions(&budget, &pods, now);
        if let Some(expiry) = expiry {
            self.delayed.insert((expiry, WorkItem::Budget(key.clone())));
        }
        let is_disrupted =
            |pod: &Pod| pod.metadata.name.as_ref().is_some_and(|name| disrupted.contains_key(name));
        let healthy = |pod: &&Arc<Pod>| pod.is_ready() && !pod.is_deleted() && !is_disrupted(pod);
        let current = pods.iter().filter(healthy).count();
        let status = match self
            .scales(&budget.spec, &pods)
            .map(|scale| numbers(&budget.spec, scale, pods.len(), current))
        {
            Ok(numbers) => status(&budget, numbers, &disrupted, now),
            Err(error) => {
                json!({"disruptionsAllowed": 0, "conditions": [condition(&budget, "False", "SyncFailed", &error, now)]})
            }
        };
        let Some(mut patch) = super::difference(&budget.status, status) else { return Ok(()) };
        if let Some(map) = patch.get_mut("disruptedPods") {
            remove_missing_entries(map, &budget.status["disruptedPods"]);
        }
        // The API server lowers the number of allowed disruptions with each eviction. Because of the precondition on
        // the revision, this patch cannot overwrite a newer status.
        let revision = budget.metadata.resource_version.clone();
        let patch = json!({"metadata": {"resourceVersion": revision}, "status": patch});
        let written: Budget = self.patch(&format!("{}/status", path::budget(key)), &patch).await?;
        self.budgets.record(Arc::new(written));
        Ok(())
    }

    /// Returns the sum of the desired replicas over the controllers of these pods. A budget with an integer
    /// minAvailable does not need this sum.
    fn scales(&self, spec: &BudgetSpec, pods: &[Arc<Pod>]) -> Result<usize, String> {
        if spec.min_available.is_number() {
            return Ok(pods.len());
        }
        let mut scales = BTreeMap::new();
        for pod in pods {
            let Some(owner) = pod.controller() else { continue };
            let namespace = pod.metadata.namespace.clone().unwrap_or_default();
            let (uid, scale) = self.scale_of(&namespace, &owner.kind, &owner.name, &owner.uid)?;
            scales.insert(uid, scale);
        }
        Ok(scales.values().sum())
    }

    fn scale_of(
        &self,
        namespace: &str,
        kind: &str,
        name: &str,
        uid: &str,
    ) -> Result<(String, usize), String> {
        let key = Key { namespace: namespace.to_owned(), name: name.to_owned() };
        let kind = WorkloadKind::named(kind)
            .ok_or_else(|| format!("{kind} does not implement the scale subresource"))?;
        let scaled =
            matches!(kind, WorkloadKind::ReplicaSet | WorkloadKind::StatefulSet | WorkloadKind::Deployment);
        let found = self.workloads[&kind].object(&key).filter(|owner| scaled && owner.uid() == uid);
        let Some(owner) = found else {
            return Err(format!(
                "{}.{} does not implement the scale subresource",
                kind.plural(),
                kind.group()
            ));
        };
        if kind == WorkloadKind::ReplicaSet
            && let Some(above) = owner.controller().filter(|above| above.kind == "Deployment")
        {
            return self.scale_of(namespace, "Deployment", &above.name, &above.uid);
        }
        Ok((uid.to_owned(), owner.spec.replicas.unwrap_or(1)))
    }
}

/// Computes the numbers of a budget with upstream's formula (docs/upstream/operator-actions.md#5.1).
fn numbers(spec: &BudgetSpec, scale: usize, pods: usize, current: usize) -> Numbers {
    let (expected, desired) = if !spec.max_unavailable.is_null() {
        (scale, scale.saturating_sub(share(&spec.max_unavailable, scale)))
    } else if spec.min_available.is_number() {
        (pods, share(&spec.min_available, pods))
    } else if spec.min_available.is_string() {
        (scale, share(&spec.min_available, scale))
    } else {
        (0, 0)
    };
    Numbers { expected, current, desired }
}

/// Returns a number of pods. A percentage is a share of `whole`, rounded up.
fn share(amount: &Value, whole: usize) -> usize {
    if let Some(number) = amount.as_u64() {
        return number as usize;
    }
    let percent =
        amount.as_str().and_then(|text| text.strip_suffix('%')).and_then(|text| text.parse::<usize>().ok());
    (percent.unwrap_or(0) * whole).div_ceil(100)
}

/// Returns the evictions that the API has approved and that have not happened yet, by pod name. Also returns the time
/// at which the first of them expires.
fn pending_disruptions(
    budget: &Budget,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> (BTreeMap<String, Value>, Option<Timestamp>) {
    let mut kept = BTreeMap::new();
    let mut expiry: Option<Timestamp> = None;
    for (name, at) in budget.status["disruptedPods"].as_object().into_iter().flatten() {
        let pod = pods.iter().find(|pod| pod.metadata.name.as_ref() == Some(name));
        let Some(end) = at.as_str().and_then(Timestamp::parse).map(|at| at + DISRUPTION_TIMEOUT) else {
            continue;
        };
        if end > now && pod.is_some_and(|pod| !pod.is_deleted()) {
            kept.insert(name.clone(), at.clone());
            expiry = Some(expiry.map_or(end, |earlier| earlier.min(end)));
        }
    }
    (kept, expiry)
}

fn status(budget: &Budget, numbers: Numbers, disrupted: &BTreeMap<String, Value>, now: Timestamp) -> Value {
    let (is, reason) =
        if numbers.allowed() > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    json!({
        "observedGeneration": budget.metadata.generation.unwrap_or(0),
        "expectedPods": numbers.expected,
        "currentHealthy": numbers.current,
        "desiredHealthy": numbers.desired,
        "disruptionsAllowed": numbers.allowed(),
        "disruptedPods": if disrupted.is_empty() { Value::Null } else { json!(disrupted) },
        "conditions": [condition(budget, is, reason, "", now)],
    })
}

fn condition(budget: &Budget, is: &str, reason: &str, message: &str, now: Timestamp) -> Value {
    let before = budget.status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|c| c["type"] == "DisruptionAllowed");
    let since = before.filter(|c| c["status"] == is).and_then(|c| c["lastTransitionTime"].as_str());
    json!({
        "type": "DisruptionAllowed", "status": is, "reason": reason, "message": message,
        "lastTransitionTime": since.map_or_else(|| now.to_time(), str::to_owned),
        "observedGeneration": budget.metadata.generation.unwrap_or(0),
    })
}

/// Adds a null to the patch for each map entry that the patch lacks. Without the null, a merge patch would keep the
/// entry.
fn remove_missing_entries(patch: &mut Value, is: &Value) {
    let Some(patch) = patch.as_object_mut() else { return };
    for name in is.as_object().into_iter().flat_map(|is| is.keys()) {
        patch.entry(name.clone()).or_insert(Value::Null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_real_controller() {
        // The example of docs/upstream/operator-actions.md#5.1: one ReplicaSet with scale 5, all pods healthy. Columns:
        // field, amount, desired, allowed.
        for (field, amount, desired, allowed) in [
            ("max", json!("25%"), 3, 2),
            ("max", json!("10%"), 4, 1),
            ("max", json!("30%"), 3, 2),
            ("max", json!(0), 5, 0),
            ("max", json!("100%"), 0, 5),
            ("min", json!("34%"), 2, 3),
            ("min", json!("1%"), 1, 4),
            ("min", json!("100%"), 5, 0),
            ("min", json!(10), 10, 0),
            ("min", json!(0), 0, 5),
        ] {
            let mut spec = BudgetSpec::default();
            *(if field == "max" { &mut spec.max_unavailable } else { &mut spec.min_available }) =
                amount.clone();
            let numbers = numbers(&spec, 5, 5, 5);
            assert_eq!((numbers.desired, numbers.allowed()), (desired, allowed), "{field} {amount}");
        }
        assert_eq!(numbers(&BudgetSpec::default(), 5, 5, 5).allowed(), 0);
    }
}
