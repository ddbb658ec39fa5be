//! The eviction subresource: a delete that checks PodDisruptionBudgets first (docs/upstream/operator-actions.md#4).

use serde_json::{Value, json};

use super::{
    Api,
    json::{set_condition, text},
    kinds::{self, Kind},
    object::ObjectKey,
    refusal::{FieldCause, Refusal},
    reply::{self, Reply},
    request::{ApiRequest, Resource, dry_run_in},
    selector::label_selector_matches,
    transaction::{DeleteOptions, Part, Transaction, WriteMethod, refuse_in_terminating_namespace},
};

/// Answers `POST …/pods/NAME/eviction`.
pub fn answer(api: &Api, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
    let key = resource.key()?;
    let eviction = request.value()?;
    check_shape(&eviction, &key)?;
    let options = DeleteOptions::from_value(&eviction["deleteOptions"]);
    let dry_run = agreed_dry_run(request, &eviction["deleteOptions"])?;
    let mut state = api.state();
    let mut transaction = api.transaction(&mut state, dry_run);
    let revision = evict(&mut transaction, &key, options)?;
    let version = (api.inner.options.minor_version >= 38).then_some(revision);
    Ok(reply::success(201, version))
}

fn check_shape(eviction: &Value, key: &ObjectKey) -> Result<(), Refusal> {
    let kind = text(eviction, "/kind");
    let version = text(eviction, "/apiVersion");
    if !matches!(kind, "" | "Eviction") || !matches!(version, "" | "policy/v1" | "policy/v1beta1") {
        let message =
            format!("{kind} in version {version:?} does not match the expected Eviction \"policy/v1\"");
        return Err(Refusal::bad_request(message));
    }
    if text(eviction, "/metadata/name") != key.name {
        return Err(Refusal::bad_request("name in URL does not match name in Eviction object"));
    }
    let namespace = text(eviction, "/metadata/namespace");
    if !namespace.is_empty() && namespace != key.namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Refusal::bad_request(message));
    }
    Ok(())
}

/// Whether the eviction is a dry run. Query and body can both request a dry run; if both have the option, they must
/// agree.
fn agreed_dry_run(request: &ApiRequest, options: &Value) -> Result<bool, Refusal> {
    let query = request.dry_run()?;
    let body = dry_run_in(options)?;
    let both_given = request.query.all("dryRun").next().is_some() && options["dryRun"].is_array();
    if both_given && query != body {
        return Err(Refusal::bad_request("Non-matching dry-run options in request and content"));
    }
    Ok(query || body)
}

/// Evicts a pod. Returns the revision of the deletion. If the pod was already terminating, returns the revision of its
/// last change.
fn evict(
    transaction: &mut Transaction<'_>,
    key: &ObjectKey,
    mut options: DeleteOptions,
) -> Result<u64, Refusal> {
    let pods = kinds::named("pods");
    let Some(stored) = transaction.store.object(pods, key).cloned() else {
        return Err(Refusal::not_found(pods, &key.name));
    };
    let namespaces = kinds::named("namespaces");
    if let Some(namespace) = transaction.store.object(namespaces, &ObjectKey::new("", &key.namespace)) {
        refuse_in_terminating_namespace(pods, &key.name, namespace)?;
    }
    let pod = stored.value();
    if !needs_no_budget(&pod) {
        match budgets_of(transaction, key, &pod).as_slice() {
            [] => {}
            [budget] => check_budget(transaction, budget, key, &pod)?,
            _ => {
                let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource \
                               does not support.";
                return Err(Refusal::new(500, "", message));
            }
        }
        set_disruption_target(transaction, pods, key)?;
        // Writing the condition has created a new version of the pod. A precondition on the previous version would make
        // the deletion fail, so the precondition is dropped.
        if options.revision.as_deref() == Some(stored.revision.to_string().as_str()) {
            options.revision = None;
        }
    }
    Ok(transaction.delete(pods, key, &options)?.object.revision)
}

/// Whether the eviction of a pod needs no budget, because the pod is not running or is already terminating.
fn needs_no_budget(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed" | "Pending")
        || !pod["metadata"]["deletionTimestamp"].is_null()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

/// The budgets whose selector matches the pod; an invalid selector matches nothing.
fn budgets_of(transaction: &Transaction<'_>, pod_key: &ObjectKey, pod: &Value) -> Vec<Value> {
    let label = |label: &str| pod["metadata"]["labels"][label].as_str().map(str::to_owned);
    let store = transaction.store.objects_of(kinds::named("poddisruptionbudgets"));
    let budgets = store.objects().filter(|budget| budget.key.namespace == pod_key.namespace);
    budgets
        .map(|budget| budget.value())
        .filter(|budget| label_selector_matches(&budget["spec"]["selector"], label) == Some(true))
        .collect()
}

/// Uses up one disruption of the budget, if the eviction of the pod counts as a disruption.
fn check_budget(
    transaction: &mut Transaction<'_>,
    budget: &Value,
    pod_key: &ObjectKey,
    pod: &Value,
) -> Result<(), Refusal> {
    let status = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    if !is_ready(pod) {
        let (healthy, desired) = (status("currentHealthy"), status("desiredHealthy"));
        let always = text(budget, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow";
        if always || (healthy >= desired && desired > 0) {
            return Ok(());
        }
    }
    let name = text(budget, "/metadata/name");
    if status("observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or(0) {
        let message = format!("The disruption budget {name} is still being processed by the server.");
        return Err(too_many_requests(message).retry_after(10));
    }
    let kind = kinds::named("pods");
    let allowed = status("disruptionsAllowed");
    if allowed < 0 {
        return Err(Refusal::forbidden(kind, &pod_key.name, "pdb disruptions allowed is negative"));
    }
    let disrupted = budget["status"]["disruptedPods"].as_object().map_or(0, serde_json::Map::len);
    if disrupted > MAX_DISRUPTED_PODS {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Refusal::forbidden(kind, &pod_key.name, why));
    }
    if allowed == 0 {
        return Err(too_many_requests(exhausted_message(budget)));
    }
    if transaction.dry_run {
        return Ok(());
    }
    consume_disruption(transaction, budget, pod_key, allowed)
}

const MAX_DISRUPTED_PODS: usize = 2000;

fn too_many_requests(cause: String) -> Refusal {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let cause = FieldCause { reason: "DisruptionBudget", message: cause, field: String::new() };
    Refusal::new(429, "TooManyRequests", message).because(vec![cause])
}

/// The error message for an eviction whose budget allows no disruptions.
fn exhausted_message(budget: &Value) -> String {
    let name = text(budget, "/metadata/name");
    let status = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let conditions = budget["status"]["conditions"].as_array();
    let failed = conditions.into_iter().flatten().find(|c| c["reason"] == "SyncFailed");
    if let Some(failed) = failed {
        let message = text(failed, "/message");
        return format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        );
    }
    let (desired, healthy) = (status("desiredHealthy"), status("currentHealthy"));
    format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
}

fn consume_disruption(
    transaction: &mut Transaction<'_>,
    budget: &Value,
    pod_key: &ObjectKey,
    allowed: i64,
) -> Result<(), Refusal> {
    let now = transaction.now.to_time();
    let budget_key = ObjectKey::new(&pod_key.namespace, text(budget, "/metadata/name"));
    let kind = kinds::named("poddisruptionbudgets");
    transaction.update(kind, &budget_key, (Part::Whole, WriteMethod::Put), |present| {
        let mut spent = present.clone();
        let status = &mut spent["status"];
        status["disruptionsAllowed"] = (allowed - 1).into();
        if !status["disruptedPods"].is_object() {
            status["disruptedPods"] = json!({});
        }
        status["disruptedPods"][pod_key.name.as_str()] = now.as_str().into();
        if allowed == 1 {
            let condition = json!({"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods",
                "message": "", "lastTransitionTime": now, "observedGeneration": present["metadata"]["generation"]});
            set_condition(&mut spent, condition);
        }
        Ok(spent)
    })?;
    Ok(())
}

/// Sets the pod's condition DisruptionTarget.
fn set_disruption_target(
    transaction: &mut Transaction<'_>,
    pods: &'static Kind,
    key: &ObjectKey,
) -> Result<(), Refusal> {
    let now = transaction.now.to_time();
    transaction.update(pods, key, (Part::Whole, WriteMethod::Put), |pod| {
        let mut marked = pod.clone();
        let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastTransitionTime": now});
        set_condition(&mut marked, condition);
        Ok(marked)
    })?;
    Ok(())
}
