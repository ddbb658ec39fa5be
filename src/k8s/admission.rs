//! Admission webhooks that the API server asks about evictions.

use std::time::Duration;

use kube::Client;
use serde::Deserialize;

use super::{decode::items::items, watch};

/// Maximum size of a list of webhook configurations, in bytes.
const LONGEST: usize = 16 << 20;

/// Time limit for reading one list of webhook configurations.
const PATIENCE: Duration = Duration::from_secs(5);

/// The kinds of webhook configurations, with the paths of their lists.
const LISTS: [(&str, &str); 2] = [
    (
        "ValidatingWebhookConfiguration",
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    ),
    ("MutatingWebhookConfiguration", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"),
];

/// A webhook that is asked about the creation of `pods/eviction`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionWebhook {
    /// `ValidatingWebhookConfiguration` or `MutatingWebhookConfiguration`.
    pub kind: &'static str,
    pub configuration: String,
    pub webhook: String,
    /// Whether evictions are refused while the webhook does not answer (`failurePolicy: Fail`, the default).
    pub is_required: bool,
}

#[derive(Deserialize)]
struct Configuration {
    metadata: Metadata,
    #[serde(default)]
    webhooks: Vec<Webhook>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Webhook {
    name: String,
    failure_policy: Option<String>,
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    #[serde(default)]
    operations: Vec<String>,
    #[serde(default)]
    api_groups: Vec<String>,
    #[serde(default)]
    api_versions: Vec<String>,
    #[serde(default)]
    resources: Vec<String>,
}

impl Rule {
    /// Whether the rule is about evictions: requests that create `pods/eviction` of the core group
    /// (`k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules`).
    fn is_about_evictions(&self) -> bool {
        let has = |values: &[String], wanted: &[&str]| values.iter().any(|value| wanted.contains(&&**value));
        has(&self.operations, &["CREATE", "*"])
            && has(&self.api_groups, &["", "*"])
            && has(&self.api_versions, &["v1", "*"])
            && has(&self.resources, &["pods/eviction", "pods/*", "*/eviction", "*/*"])
    }
}

/// Returns the webhooks that are asked about evictions.
///
/// # Errors
/// The configurations cannot be read. The text gives the reason.
pub async fn eviction_webhooks(client: &Client) -> Result<Vec<EvictionWebhook>, String> {
    let mut found = Vec::new();
    for (kind, path) in LISTS {
        let answer = watch::get(client, path, PATIENCE, LONGEST).await?;
        found.extend(parse(kind, &answer)?);
    }
    Ok(found)
}

fn parse(kind: &'static str, list: &[u8]) -> Result<Vec<EvictionWebhook>, String> {
    let configurations: Vec<Configuration> = items(list, &format!("list of {kind}"))?;
    let of_configuration = |configuration: Configuration| {
        let asked = configuration.webhooks.into_iter();
        let asked = asked.filter(|webhook| webhook.rules.iter().any(Rule::is_about_evictions));
        let name = configuration.metadata.name;
        asked.map(move |webhook| EvictionWebhook {
            kind,
            configuration: name.clone(),
            webhook: webhook.name,
            is_required: webhook.failure_policy.as_deref() != Some("Ignore"),
        })
    };
    Ok(configurations.into_iter().flat_map(of_configuration).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A webhook as Strimzi Drain Cleaner 1.4 installs it (`strimzi/drain-cleaner`,
    /// `packaging/install/kubernetes/070-ValidatingWebhookConfiguration.yaml`), and one about Deployments.
    #[test]
    fn only_webhooks_about_evictions_count() {
        let rule = |resources: &str, groups: &str| {
            serde_json::json!({"operations": ["CREATE"], "apiGroups": [groups], "apiVersions": ["v1"],
                "resources": [resources], "scope": "Namespaced"})
        };
        let webhook = |name: &str, policy: &str, rule: serde_json::Value| serde_json::json!({"name": name, "failurePolicy": policy, "rules": [rule]});
        let list = serde_json::json!({"items": [
            {"metadata": {"name": "strimzi-drain-cleaner"},
             "webhooks": [webhook("strimzi-drain-cleaner.strimzi.io", "Ignore", rule("pods/eviction", ""))]},
            {"metadata": {"name": "guards"}, "webhooks": [
                webhook("a.example.com", "Fail", rule("deployments", "apps")),
                webhook("b.example.com", "Fail", rule("pods", "")),
                webhook("c.example.com", "Fail", rule("*/*", "*")),
            ]},
            {"metadata": {"name": "none"}},
        ]});
        let found = parse("ValidatingWebhookConfiguration", list.to_string().as_bytes()).expect("a list");
        let found: Vec<(&str, &str, bool)> = found
            .iter()
            .map(|webhook| (&*webhook.configuration, &*webhook.webhook, webhook.is_required))
            .collect();
        let strimzi = ("strimzi-drain-cleaner", "strimzi-drain-cleaner.strimzi.io", false);
        assert_eq!(found, [strimzi, ("guards", "c.example.com", true)]);
    }
}
