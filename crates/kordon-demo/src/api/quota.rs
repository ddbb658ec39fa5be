//! The ResourceQuota admission plugin. It refuses a pod that exceeds a quota, and counts admitted pods.

use serde_json::Value;

use super::{json::text, kinds, refusal::Refusal};
use crate::{objects::Pod, quota};

/// Amounts for one limit of a quota: the resource, the amount that a new pod needs, the amount already used, and the
/// limit.
struct Request<'a> {
    resource: &'a str,
    needed: i64,
    used: i64,
    hard: i64,
}

/// Admits a new pod if the quotas of its namespace allow it. Returns the quotas that count the pod, with the pod's
/// amounts added.
///
/// # Errors
/// A quota would be exceeded, or the pod cannot be parsed.
pub fn admit(quotas: &[Value], pod: &Value) -> Result<Vec<Value>, Refusal> {
    if quotas.is_empty() {
        return Ok(Vec::new());
    }
    let name = text(pod, "/metadata/name");
    // The pod is parsed into the agents' type, so that no second parser is needed.
    let pod: Pod =
        serde_json::from_str(&pod.to_string()).map_err(|error| Refusal::bad_request(error.to_string()))?;
    let counting: Vec<&Value> = quotas.iter().filter(|found| quota::covers(&found["spec"], &pod)).collect();
    for found in &counting {
        let exceeded =
            requests(found, &pod).into_iter().filter(|limit| limit.used + limit.needed > limit.hard);
        let exceeded: Vec<Request<'_>> = exceeded.collect();
        if !exceeded.is_empty() {
            return Err(Refusal::forbidden(kinds::named("pods"), name, &message(found, &exceeded)));
        }
    }
    Ok(counting.into_iter().map(|found| counted(found, &pod)).collect())
}

/// Returns those limits of a quota that count the pod, each with its amounts.
fn requests<'a>(found: &'a Value, pod: &Pod) -> Vec<Request<'a>> {
    let hard = found["status"]["hard"].as_object().into_iter().flatten();
    let request = |(resource, hard): (&'a String, &Value)| {
        let needed = quota::charge(resource, pod).filter(|needed| *needed > 0)?;
        let used = quota::parse(resource, &found["status"]["used"][resource.as_str()])?;
        Some(Request { resource, needed, used, hard: quota::parse(resource, hard)? })
    };
    hard.filter_map(request).collect()
}

fn message(found: &Value, exceeded: &[Request<'_>]) -> String {
    let list = |amount: fn(&Request<'_>) -> i64| {
        let entry = |limit: &Request<'_>| {
            format!("{}={}", limit.resource, quota::text(limit.resource, amount(limit)))
        };
        exceeded.iter().map(entry).collect::<Vec<_>>().join(",")
    };
    let (needed, used, hard) =
        (list(|limit| limit.needed), list(|limit| limit.used), list(|limit| limit.hard));
    let name = text(found, "/metadata/name");
    format!("exceeded quota: {name}, requested: {needed}, used: {used}, limited: {hard}")
}

/// Returns the quota with the pod's amounts added to the used amounts.
fn counted(found: &Value, pod: &Pod) -> Value {
    let mut counted = found.clone();
    for Request { resource, needed, used, .. } in requests(found, pod) {
        counted["status"]["used"][resource] = quota::text(resource, used + needed).into();
    }
    counted
}
