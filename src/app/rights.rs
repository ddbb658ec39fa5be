//! Rights of the user, as far as the server has answered: which rights each command needs, and which are missing.
//!
//! The dashboard asks the server once per context, before the user tries anything, and again after a refused write.
//! Plans are previewed even if rights are missing; the exact rights of a plan are checked before its first question
//! ([`Approval`](kordon_core::operation::approval::Approval)).

use std::collections::{BTreeMap, BTreeSet};

use super::{
    App,
    commands::UserAction,
    preview::{PlanKind, PlanOption, PlanRequest, Targets},
};
use kordon_core::{cluster::Namespace, plan::Permission};

/// Maximum number of namespaces for which one request asks the server about the user's rights.
const MOST_NAMESPACES: usize = 20;

/// Answers of the server about the rights of the user in this context.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    /// For each right that the server has answered about: whether the user has it.
    answers: BTreeMap<Permission, bool>,
    /// Whether the server must be asked for the rights that plans need on all objects.
    is_due: bool,
    is_asking: bool,
}

impl Rights {
    /// Asks the server, or asks it again, for the rights that plans need on all objects. Earlier answers stay until the
    /// new ones arrive.
    pub fn ask(&mut self) {
        self.is_due = true;
    }

    fn is_denied(&self, right: &Permission) -> bool {
        let denies = |right: &Permission| self.answers.get(right) == Some(&false);
        denies(&right.everywhere()) && denies(right)
    }

    fn lacks_any(&self) -> bool {
        self.answers.values().any(|allowed| !allowed)
    }

    /// Names the needed rights that are missing: `may not patch nodes`; `None` if no right is known to be missing.
    fn missing(&self, needed: &[Permission]) -> Option<String> {
        let missing: Vec<String> =
            needed.iter().filter(|right| self.is_denied(right)).map(right_in_words).collect();
        (!missing.is_empty()).then(|| format!("may not {}", missing.join(", ")))
    }
}

/// Rights that all plans together need, for all objects.
fn general_rights() -> Vec<Permission> {
    let everywhere = BTreeSet::from([Namespace::default()]);
    let kinds = [PlanKind::Drain, PlanKind::Delete, PlanKind::DeleteNode].into_iter();
    kinds.flat_map(|kind| rights_for(kind, false, &everywhere)).collect()
}

/// Rights that a plan of this kind needs on all nodes, and on pods of these namespaces. `deletes` is whether a drain
/// deletes pods instead of evicting them.
pub fn rights_for(kind: PlanKind, deletes: bool, namespaces: &BTreeSet<Namespace>) -> Vec<Permission> {
    let on_pods = |verb, subresource| {
        namespaces.iter().map(move |namespace| Permission::on_pods(verb, subresource, namespace))
    };
    let patch = Permission::on_node("patch", &"".into());
    match kind {
        PlanKind::Cordon | PlanKind::Uncordon | PlanKind::Taint | PlanKind::Metadata(_) => vec![patch],
        PlanKind::Drain if deletes => std::iter::once(patch).chain(on_pods("delete", "")).collect(),
        PlanKind::Drain => std::iter::once(patch).chain(on_pods("create", "eviction")).collect(),
        PlanKind::Evict => on_pods("create", "eviction").collect(),
        PlanKind::Delete => on_pods("delete", "").collect(),
        PlanKind::DeleteNode => vec![Permission::on_node("delete", &"".into())],
        PlanKind::Failure => Vec::new(),
    }
}

/// A right as it is named on screen. A right on pods of all namespaces includes the right on pods of one namespace.
fn right_in_words(right: &Permission) -> String {
    let is_general = right.resource == "pods" && right.namespace.is_empty();
    if is_general { format!("{right} in all namespaces") } else { right.to_string() }
}

/// Rights that the plan of this request needs.
fn rights_of(request: &PlanRequest) -> Vec<Permission> {
    let namespaces = match &request.targets {
        Targets::Pods(pods) => pods.iter().map(|pod| pod.namespace.clone()).collect(),
        // Only the plan of a drain shows which namespaces the drain affects.
        Targets::Nodes(_) => BTreeSet::from([Namespace::default()]),
    };
    rights_for(request.kind, request.drain.disable_eviction, &namespaces)
}

impl App {
    /// Returns the rights to ask the server about now; `None` if there are no such rights, or if an answer is awaited.
    pub(super) fn next_rights(&mut self) -> Option<Vec<Permission>> {
        if self.rights.is_asking || self.operations.locked.is_some() {
            return None;
        }
        let wanted = match std::mem::take(&mut self.rights.is_due) {
            true => general_rights(),
            false => self.rights_of_namespaces(),
        };
        self.rights.is_asking = !wanted.is_empty();
        self.rights.is_asking.then_some(wanted)
    }

    /// Rights on the pods that a command would act on, about which the server must be asked: the user does not have
    /// them for all namespaces, and the server has not answered yet for the namespaces of the pods.
    fn rights_of_namespaces(&self) -> Vec<Permission> {
        if !self.rights.lacks_any() {
            return Vec::new();
        }
        let namespaces = self.target_namespaces();
        let needed = [PlanKind::Evict, PlanKind::Delete].into_iter();
        let needed = needed.flat_map(|kind| rights_for(kind, false, &namespaces));
        let answers = &self.rights.answers;
        let is_asked = |right: &Permission| {
            answers.get(&right.everywhere()) == Some(&false) && !answers.contains_key(right)
        };
        needed.filter(is_asked).collect()
    }

    fn target_namespaces(&self) -> BTreeSet<Namespace> {
        let mut namespaces = BTreeSet::new();
        for pod in self.target_pods() {
            namespaces.insert(pod.namespace.clone());
            if namespaces.len() == MOST_NAMESPACES {
                break;
            }
        }
        namespaces
    }

    /// Stores the answer about these rights. If the server cannot review access, all answers are dropped, and nothing
    /// is asked until [`Rights::ask`].
    pub(super) fn on_rights(&mut self, asked: Vec<Permission>, missing: Result<Vec<Permission>, String>) {
        self.rights.is_asking = false;
        let is_general = asked.iter().all(|right| *right == right.everywhere());
        let Ok(missing) = missing else {
            // Without answers nothing more is asked, because a right in a single namespace is asked about only after
            // the server has denied the right for all namespaces.
            return self.rights.answers.clear();
        };
        if is_general {
            self.rights.answers.clear();
        }
        let answers = asked.into_iter().map(|right| {
            let allowed = !missing.contains(&right);
            (right, allowed)
        });
        self.rights.answers.extend(answers);
    }

    /// Names the rights that an action needs and the user lacks: `may not patch nodes`; `None` if no right is known to
    /// be missing.
    pub fn missing_right(&self, action: UserAction) -> Option<String> {
        if !self.rights.lacks_any() {
            return None;
        }
        let plan = self.screen.overlays.plan().map(|preview| &preview.request);
        let needed = match action {
            UserAction::Plan(kind) => {
                let mut namespaces = self.target_namespaces();
                if namespaces.is_empty() || kind == PlanKind::Drain {
                    namespaces = BTreeSet::from([Namespace::default()]);
                }
                rights_for(kind, false, &namespaces)
            }
            UserAction::Apply if self.screen.shows_maintenance() => {
                rights_for(PlanKind::Drain, false, &BTreeSet::from([Namespace::default()]))
            }
            UserAction::Apply => rights_of(plan?),
            UserAction::Toggle(PlanOption::DisableEviction) => {
                let everywhere = BTreeSet::from([Namespace::default()]);
                plan.filter(|plan| plan.kind == PlanKind::Drain)?;
                rights_for(PlanKind::Drain, true, &everywhere)
            }
            UserAction::Resume => rights_for(PlanKind::Drain, false, &BTreeSet::from([Namespace::default()])),
            _ => return None,
        };
        self.rights.missing(&needed)
    }

    /// Names the rights that the open plan needs and the user lacks. Then asks the server again, because these rights
    /// may have been granted since its last answer.
    pub(super) fn say_missing_right(&mut self) {
        let request = self.screen.overlays.plan().map(|preview| &preview.request);
        if let Some(missing) = request.and_then(|request| self.rights.missing(&rights_of(request))) {
            self.screen.message = Some(format!("{missing}: this is a preview, which cannot be applied"));
            self.rights.ask();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::commands::COMMANDS;

    fn right(verb: &'static str, subresource: &'static str, namespace: &str) -> Permission {
        Permission::on_pods(verb, subresource, &namespace.into())
    }

    #[test]
    fn what_was_not_asked_or_not_answered_is_not_missing() {
        let patch = Permission::on_node("patch", &"".into());
        let mut rights = Rights::default();
        assert_eq!(rights.missing(std::slice::from_ref(&patch)), None);
        rights.answers.insert(patch.clone(), true);
        assert_eq!(rights.missing(std::slice::from_ref(&patch)), None);
        rights.answers.insert(patch.clone(), false);
        assert_eq!(rights.missing(&[patch]).as_deref(), Some("may not patch nodes"));
    }

    #[test]
    fn a_right_in_one_namespace_is_missing_only_if_that_namespace_was_asked_for() {
        let mut rights = Rights::default();
        let (general, shop) = (right("create", "eviction", ""), right("create", "eviction", "shop"));
        rights.answers.insert(general.clone(), false);
        assert_eq!(rights.missing(std::slice::from_ref(&shop)), None, "not asked yet");
        rights.answers.insert(shop.clone(), true);
        assert_eq!(rights.missing(std::slice::from_ref(&shop)), None, "granted there");
        rights.answers.insert(shop.clone(), false);
        assert_eq!(rights.missing(&[shop]).as_deref(), Some("may not create pods/eviction in shop"));
        let drain = rights_for(PlanKind::Drain, false, &BTreeSet::from([Namespace::default()]));
        assert_eq!(rights.missing(&drain).as_deref(), Some("may not create pods/eviction in all namespaces"));
    }

    #[test]
    fn every_plan_that_writes_needs_a_right_that_is_asked_for_at_the_start() {
        let general = general_rights();
        let everywhere = BTreeSet::from([Namespace::default()]);
        for command in COMMANDS {
            let UserAction::Plan(kind) = command.action else { continue };
            for deletes in [false, true] {
                let needed = rights_for(kind, deletes, &everywhere);
                assert_eq!(needed.is_empty(), kind == PlanKind::Failure, "{}", command.name);
                assert!(needed.iter().all(|right| general.contains(right)), "{}", command.name);
            }
        }
    }
}
