//! NodeHealthChecks of medik8s (medik8s/node-healthcheck-operator 1cf0d07, `api/v1alpha1/nodehealthcheck_types.go`).

use serde::Deserialize;

use super::{
    budget::int_or_percent,
    items::items,
    leaf::{Int, IntOrText, LenientList, Text, Time, or_default},
    node::WireCondition,
    pool::SharedParts,
    selector::WireSelector,
};
use kordon_core::cluster::{
    ConditionStatus, Name, NodeHealthCheck, NodeName, StartedRemediation, UnhealthyCondition,
};
use kordon_time::Span;

/// Parses a list of NodeHealthChecks.
///
/// # Errors
/// The bytes are not a list of NodeHealthChecks.
pub fn parse(list: &[u8]) -> Result<Vec<NodeHealthCheck>, String> {
    let items: Vec<Item<'_>> = items(list, "list of NodeHealthChecks")?;
    let mut pool = SharedParts::default();
    Ok(items.into_iter().map(|item| item.check(&mut pool)).collect())
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    spec: Spec<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    status: Status<'a>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Spec<'a> {
    #[serde(deserialize_with = "or_default")]
    selector: WireSelector<'a>,
    unhealthy_conditions: LenientList<WireUnhealthy<'a>>,
    min_healthy: IntOrText<'a>,
    max_unhealthy: IntOrText<'a>,
    #[serde(deserialize_with = "or_default")]
    remediation_template: Reference<'a>,
    escalating_remediations: LenientList<Escalating<'a>>,
    pause_requests: LenientList<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WireUnhealthy<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    status: Text<'a>,
    duration: Text<'a>,
}

/// A reference to an object.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Reference<'a> {
    kind: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Escalating<'a> {
    #[serde(deserialize_with = "or_default")]
    remediation_template: Reference<'a>,
    order: Int,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Status<'a> {
    observed_nodes: Int,
    healthy_nodes: Int,
    unhealthy_nodes: LenientList<UnhealthyNode<'a>>,
    conditions: LenientList<WireCondition<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct UnhealthyNode<'a> {
    name: Text<'a>,
    remediations: LenientList<WireRemediation<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct WireRemediation<'a> {
    #[serde(deserialize_with = "or_default")]
    resource: Reference<'a>,
    started: Time<'a>,
    timed_out: Time<'a>,
}

impl Item<'_> {
    fn check(&self, pool: &mut SharedParts) -> NodeHealthCheck {
        let Self { metadata, spec, status } = self;
        let condition = |kind: &str| {
            let is_meant = |condition: &&WireCondition<'_>| {
                *condition.kind == *kind && ConditionStatus::parse(&condition.status) == ConditionStatus::True
            };
            status.conditions.iter().find(is_meant)
        };
        NodeHealthCheck {
            name: name(&metadata.name),
            selector: spec.selector.selector(pool),
            unhealthy_conditions: spec.unhealthy_conditions.iter().filter_map(unhealthy).collect(),
            remediations: spec.remediations(),
            pause_requests: spec.pause_requests.iter().map(name).collect(),
            min_healthy: int_or_percent(&spec.min_healthy),
            max_unhealthy: int_or_percent(&spec.max_unhealthy),
            observed: status.observed_nodes.narrow().unwrap_or_default(),
            healthy: status.healthy_nodes.narrow().unwrap_or_default(),
            disabled: condition("Disabled").map(|disabled| name(&disabled.message)),
            is_storm: condition("StormActive").is_some(),
            started: status.unhealthy_nodes.iter().flat_map(started).collect(),
        }
    }
}

impl Spec<'_> {
    /// The kinds of the remediations, in the order in which they are tried. The kind of a template is that of its
    /// remediations with the suffix `Template`.
    fn remediations(&self) -> Vec<Name> {
        let mut escalating: Vec<&Escalating<'_>> = self.escalating_remediations.iter().collect();
        escalating.sort_by_key(|remediation| remediation.order.or(0));
        let later = escalating.into_iter().map(|remediation| &remediation.remediation_template);
        let templates = [&self.remediation_template].into_iter().chain(later);
        let kinds =
            templates.map(|template| template.kind.strip_suffix("Template").unwrap_or(&template.kind));
        kinds.filter(|kind| !kind.is_empty()).map(Name::from).collect()
    }
}

fn unhealthy(wire: &WireUnhealthy<'_>) -> Option<UnhealthyCondition> {
    let lasts = humantime::parse_duration(&wire.duration).ok().map(Span::from)?;
    Some(UnhealthyCondition { kind: name(&wire.kind), status: ConditionStatus::parse(&wire.status), lasts })
}

fn started(node: &UnhealthyNode<'_>) -> Vec<StartedRemediation> {
    let started = |remediation: &WireRemediation<'_>| StartedRemediation {
        node: NodeName(name(&node.name)),
        kind: name(&remediation.resource.kind),
        at: remediation.started.time(),
        timed_out: remediation.timed_out.time(),
    };
    node.remediations.iter().map(started).collect()
}

fn name(text: &Text<'_>) -> Name {
    Name::from(&**text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::cluster::{IntOrPercent, Selector};
    use kordon_time::ClusterTime;
    use serde_json::json;

    /// The fields are those of `api/v1alpha1/nodehealthcheck_types.go` and `config/samples`.
    #[test]
    fn the_fields_that_decide_about_a_remediation_are_read() {
        let template = |kind: &str| json!({"apiVersion": "x.medik8s.io/v1alpha1", "kind": kind, "name": "t"});
        let list = json!({"kind": "NodeHealthCheckList", "items": [{
            "metadata": {"name": "workers"},
            "spec": {
                "selector": {"matchExpressions": [
                    {"key": "node-role.kubernetes.io/control-plane", "operator": "DoesNotExist"}]},
                "minHealthy": "51%",
                "unhealthyConditions": [{"type": "Ready", "status": "Unknown", "duration": "5m0s"}],
                "escalatingRemediations": [
                    {"remediationTemplate": template("FenceAgentsRemediationTemplate"), "order": 2, "timeout": "60s"},
                    {"remediationTemplate": template("SelfNodeRemediationTemplate"), "order": 1, "timeout": "300s"}],
                "pauseRequests": ["upgrade"]},
            "status": {
                "observedNodes": 3, "healthyNodes": 2, "phase": "Paused",
                "conditions": [{"type": "Disabled", "status": "True", "reason": "RemediationTemplateNotFound",
                    "message": "Remediation template not found", "lastTransitionTime": "2026-11-29T09:00:00Z"}],
                "unhealthyNodes": [{"name": "n1", "remediations": [{
                    "resource": {"kind": "SelfNodeRemediation", "name": "n1"},
                    "started": "2026-11-29T09:00:00Z", "timedOut": "2026-11-29T09:05:00Z"}]}]}}]});
        let found = parse(list.to_string().as_bytes()).expect("a list");
        let at = |text| ClusterTime::parse(text);
        let expected = NodeHealthCheck {
            name: "workers".into(),
            selector: Selector::parse("!node-role.kubernetes.io/control-plane").expect("a selector"),
            unhealthy_conditions: vec![UnhealthyCondition {
                kind: "Ready".into(),
                status: ConditionStatus::Unknown,
                lasts: Span::from_secs(300),
            }],
            remediations: vec!["SelfNodeRemediation".into(), "FenceAgentsRemediation".into()],
            pause_requests: vec!["upgrade".into()],
            min_healthy: Some(IntOrPercent::Percent(51)),
            max_unhealthy: None,
            observed: 3,
            healthy: 2,
            disabled: Some("Remediation template not found".into()),
            is_storm: false,
            started: vec![StartedRemediation {
                node: "n1".into(),
                kind: "SelfNodeRemediation".into(),
                at: at("2026-11-29T09:00:00Z"),
                timed_out: at("2026-11-29T09:05:00Z"),
            }],
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_check_without_a_status_is_read_and_another_answer_is_refused() {
        let template = json!({"kind": "SelfNodeRemediationTemplate"});
        let spec = json!({"selector": {}, "maxUnhealthy": 1, "remediationTemplate": template});
        let list = json!({"items": [{"metadata": {"name": "all"}, "spec": spec}]});
        let found = parse(list.to_string().as_bytes()).expect("a list");
        assert_eq!(
            (found[0].max_unhealthy, &*found[0].remediations[0]),
            (Some(IntOrPercent::Int(1)), "SelfNodeRemediation")
        );
        assert!(parse(b"{}").is_err_and(|why| why.contains("no list of NodeHealthChecks")));
    }
}
