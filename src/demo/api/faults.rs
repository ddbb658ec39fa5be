//! What can be made to go wrong: for tests, and for the demo's incidents.

use fastrand::Rng;

use super::{
    Requester,
    kinds::{Kind, Subresource},
    refusal::Refusal,
    request::{Resource, Verb},
};

/// A rule by which some requests go wrong.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Whose requests; None: everybody's.
    pub user: Option<String>,
    /// Empty: any verb.
    pub verbs: Vec<Verb>,
    /// A plural, with a subresource where one is meant (`pods/eviction`). None: everything, health checks too.
    pub resource: Option<String>,
    /// The share of matching requests that it hits, 0 to 1.
    pub share: f64,
    pub answer: FaultAnswer,
}

/// What a request that is hit by a fault gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAnswer {
    /// 403, and "no" from access reviews: a right that is missing.
    Forbidden,
    /// 429 as an overloaded server sends it: plain text, no `Status`.
    Overloaded {
        /// For the Retry-After header.
        retry_after_secs: u32,
    },
    /// 500.
    InternalError,
    /// 409 to whatever is written.
    Conflict,
    /// No answer, for as long as the client waits.
    Hang,
    /// The connection breaks.
    Reset,
}

impl Fault {
    /// A fault that hits every request.
    pub fn always(answer: FaultAnswer) -> Self {
        Self { user: None, verbs: Vec::new(), resource: None, share: 1.0, answer }
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

    /// Hits only this share of the requests, 0 to 1.
    pub fn share(mut self, share: f64) -> Self {
        self.share = share;
        self
    }
}

/// The rules in force; the first that hits decides.
#[derive(Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    pub fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// What goes wrong with a request; `resource` is None for paths that name none.
    pub fn matching(
        &self,
        identity: &Requester,
        verb: Verb,
        resource: Option<&Resource>,
        rng: &mut Rng,
    ) -> Option<FaultAnswer> {
        let what = resource.map(|r| (r.kind, r.subresource));
        let mut matching = self.0.iter().filter(|fault| fault.matches(&identity.user, verb, what));
        matching.find(|fault| fault.share >= 1.0 || rng.f64() < fault.share).map(|fault| fault.answer)
    }

    /// Whether a right is missing for good, as an access review tells.
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
            (Some(resource), Some((kind, None))) => resource == kind.plural,
            (Some(resource), Some((kind, Some(sub)))) => {
                *resource == format!("{}/{}", kind.plural, sub.name())
            }
        };
        its_resource
            && self.user.as_deref().is_none_or(|wanted| wanted == user)
            && (self.verbs.is_empty() || self.verbs.contains(&verb))
    }
}

/// The refusal for a missing right, in RBAC's words.
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

/// The state of the whole server, that watches and connections look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Refuses everything and keeps no connection.
    pub down: bool,
    /// Watches stay open and say nothing, as behind a link that drops packets.
    pub stalled: bool,
    /// Counts how often all watches were cut.
    pub cuts: u64,
}
