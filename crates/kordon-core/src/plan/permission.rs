//! Permissions that a plan needs (docs/upstream/operator-actions.md#9).

use std::{collections::BTreeSet, fmt};

use super::step::PlanStep;
use crate::cluster::{Key, Name, Namespace, NodeName};

/// One permission, with the fields of a SelfSubjectAccessReview.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    pub verb: &'static str,
    pub group: &'static str,
    pub resource: &'static str,
    pub subresource: &'static str,
    /// Namespace of the objects; empty for cluster-scoped resources, and for objects in all namespaces.
    pub namespace: Namespace,
    /// Name of the object; empty for objects of all names.
    pub name: Name,
}

impl Permission {
    pub fn on_node(verb: &'static str, node: &NodeName) -> Self {
        let name = node.0.clone();
        Self { verb, group: "", resource: "nodes", subresource: "", namespace: Namespace::default(), name }
    }

    pub fn on_pods(verb: &'static str, subresource: &'static str, namespace: &Namespace) -> Self {
        let (namespace, name) = (namespace.clone(), Name::default());
        Self { verb, group: "", resource: "pods", subresource, namespace, name }
    }

    /// Returns this permission, extended to all namespaces and to objects of all names.
    pub fn everywhere(&self) -> Self {
        Self { namespace: Namespace::default(), name: Name::default(), ..*self }
    }

    fn on_scale(verb: &'static str, deployment: &Key) -> Self {
        let (namespace, name) = (deployment.namespace.clone(), deployment.name.clone());
        Self { verb, group: "apps", resource: "deployments", subresource: "scale", namespace, name }
    }

    fn on_autoscalers(namespace: &Namespace) -> Self {
        let (namespace, name) = (namespace.clone(), Name::default());
        let (group, resource) = ("autoscaling", "horizontalpodautoscalers");
        Self { verb: "list", group, resource, subresource: "", namespace, name }
    }

    /// Returns the permissions that one write of a plan needs, including those for the reads before the write.
    fn for_step(step: &PlanStep) -> Vec<Self> {
        vec![match step {
            PlanStep::Cordon { node, .. }
            | PlanStep::SetTaints { node, .. }
            | PlanStep::SetMetadata { node, .. } => Self::on_node("patch", node),
            PlanStep::DeleteNode { node, .. } => Self::on_node("delete", node),
            // Evictions need permission for `pods/eviction`, not for the resource `evictions` of the group policy.
            PlanStep::Evict { pod, .. } => Self::on_pods("create", "eviction", &pod.namespace),
            PlanStep::Delete { pod, .. } => Self::on_pods("delete", "", &pod.namespace),
            PlanStep::Scale { deployment, .. } => {
                let autoscalers = Self::on_autoscalers(&deployment.namespace);
                return vec![
                    autoscalers,
                    Self::on_scale("get", deployment),
                    Self::on_scale("patch", deployment),
                ];
            }
        }]
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        if !self.name.is_empty() {
            write!(f, " {}", self.name)?;
        }
        if !self.namespace.is_empty() {
            write!(f, " in {}", self.namespace)?;
        }
        Ok(())
    }
}

/// Returns the permissions that these writes of a plan need, without duplicates.
pub fn of_steps(steps: &[PlanStep]) -> Vec<Permission> {
    steps.iter().flat_map(Permission::for_step).collect::<BTreeSet<_>>().into_iter().collect()
}
