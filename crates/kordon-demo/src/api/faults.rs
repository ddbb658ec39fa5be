//! Faults that tests inject into the API.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::{
    Requester,
    kinds::{Kind, Subresource},
    refusal::Refusal,
    request::{Resource, Verb},
};

/// A rule that makes some requests fail.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The user of the requests; None for all users.
    pub user: Option<String>,
    /// Verbs of the requests; empty for all verbs.
    pub verbs: Vec<Verb>,
    /// Plural of a resource, optionally with a subresource (`pods/eviction`). The name of a metrics resource includes
    /// its group (`pods.metrics.k8s.io`). None for all requests, including health checks.
    pub resource: Option<String>,
    /// The namespace of the requests. None for the requests of all namespaces, including requests without a namespace.
    pub namespace: Option<String>,
    /// The share of the matching requests that fail, from 0 to 1.
    pub share: f64,
    pub answer: FaultAnswer,
}

/// How a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAnswer {
    /// Response 403, and the answer "no" in access reviews: a missing permission.
    Forbidden,
    /// Response 403 with this message.
    Refused(&'static str),
    /// Response 429 of an overloaded server, as plain text instead of a `Status`.
    Overloaded {
        /// The value of the Retry-After header.
        retry_after_secs: u32,
    },
    /// Response 500.
    InternalError,
    /// Response 409 to every write.
    Conflict,
    /// No response: the request hangs.
    Hang,
    /// The connection breaks.
    Reset,
}

impl Fault {
    /// A fault that makes all requests of all users fail.
    pub fn always(answer: FaultAnswer) -> Self {
        Self { user: None, verbs: Vec::new(), resource: None, namespace: None, share: 1.0, answer }
    }

    pub fn of_user(mut self, user: &str) -> Self {
        self.user = Some(user.to_owned());
        self
    }

    pub fn on(mut self, verbs: &[Verb], resource: &str) -> Self {
        self.verbs = verbs.to_vec();
        self.resource = Some(resource.to_owned());
        self
    }

    /// Limits the fault to the requests within a namespace.
    pub fn within(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Limits the fault to a share of the requests, from 0 to 1.
    pub fn share(mut self, share: f64) -> Self {
        self.share = share;
        self
    }
}

/// The active faults. The first fault that matches a request applies.
#[derive(Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    pub fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The fault that applies to a request. `resource` is None for paths without a resource.
    pub fn matching(
        &self,
        identity: &Requester,
        verb: Verb,
        resource: Option<&Resource>,
        rng: &mut Rng,
    ) -> Option<FaultAnswer> {
        let what = resource.map(|r| (r.kind, r.subresource));
        let namespace = resource.map_or("", |resource| &resource.namespace);
        let is_within = |fault: &&Fault| fault.namespace.as_deref().is_none_or(|wanted| wanted == namespace);
        let mut matching =
            self.0.iter().filter(|fault| fault.matches(&identity.user, verb, what)).filter(is_within);
        matching.find(|fault| fault.share >= 1.0 || rng.f64() < fault.share).map(|fault| fault.answer)
    }

    /// Whether a fault takes this permission away: all requests that need it fail. Access reviews use this.
    pub fn forbids(&self, user: &str, verb: Verb, kind: &'static Kind, sub: Option<Subresource>) -> bool {
        let lacking = |fault: &&Fault| fault.answer == FaultAnswer::Forbidden && fault.share >= 1.0;
        self.0.iter().filter(lacking).any(|fault| fault.matches(user, verb, Some((kind, sub))))
    }
}

impl Fault {
    fn matches(&self, user: &str, verb: Verb, what: Option<(&Kind, Option<Subresource>)>) -> bool {
        let its_resource = match (&self.resource, what) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(resource), Some((kind, None))) => *resource == kind.fault_name(),
            (Some(resource), Some((kind, Some(sub)))) => {
                *resource == format!("{}/{}", kind.fault_name(), sub.name())
            }
        };
        its_resource
            && self.user.as_deref().is_none_or(|wanted| wanted == user)
            && (self.verbs.is_empty() || self.verbs.contains(&verb))
    }
}

/// The error for a missing permission, worded as by RBAC.
pub fn forbidden(identity: &Requester, verb: Verb, resource: &Resource) -> Refusal {
    let kind = resource.kind;
    let sub = resource.subresource.map(|s| format!("/{}", s.name())).unwrap_or_default();
    let wherever = if resource.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace \"{}\"", resource.namespace)
    };
    let why = format!(
        "User \"{}\" cannot {} resource \"{}{sub}\" in API group \"{}\" {wherever}",
        identity.user,
        verb.name(),
        kind.plural,
        kind.group
    );
    Refusal::forbidden(kind, resource.name.as_deref().unwrap_or_default(), &why)
}

/// Health of the server, as connections and watches notice it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Whether the server refuses all requests and closes all connections.
    pub down: bool,
    /// Whether watches stay open but send nothing, as on a connection that drops packets.
    pub stalled: bool,
    /// Number of times that all watches were disconnected.
    pub cuts: u64,
    /// Number of times that the watches of one kind were disconnected, by the plural name of the kind.
    pub cuts_of_kind: BTreeMap<String, u64>,
}

impl Health {
    /// Returns the number of times that the watches of a kind were disconnected. Disconnections of all watches count
    /// too.
    pub fn cuts_of(&self, kind: &str) -> u64 {
        self.cuts + self.cuts_of_kind.get(kind).copied().unwrap_or(0)
    }
}
