//! Gaps of a plan: which parts of the plan depend on objects that are not known, and whether its outcome is still
//! certain.

use super::{
    action::{Action, RemovalMode},
    gaps::{self, PlanGap, PlanPart},
    outcome_kind::OutcomeKind,
    plan::{Plan, Prospect},
    warning::Warning,
};
use crate::cluster::{Cluster, FeedKind, Gap, Gaps, Pod, Scope};

impl Plan {
    /// Returns the parts of the plan that depend on unknown or outdated objects.
    pub fn gaps(&self) -> impl Iterator<Item = &PlanGap> {
        self.warnings.iter().filter_map(|warning| match warning {
            Warning::Unknown(gap) => Some(gap),
            _ => None,
        })
    }

    /// Returns the unknown or outdated kinds of objects that a part of the plan depends on; `None` if there are none.
    pub fn gap_of(&self, part: PlanPart) -> Option<&PlanGap> {
        self.gaps().find(|gap| gap.part == part)
    }

    /// Returns why budgets are unknown, if the plan deletes pods without checking budgets. `None` if it deletes no pods
    /// in this way, or if all budgets are known.
    pub fn ignores_unknown_budgets(&self) -> Option<Gaps> {
        let is_ignoring = |warning: &Warning| matches!(warning, Warning::BudgetsIgnored { .. });
        let gaps = self.gap_of(PlanPart::Budgets).filter(|_| self.warnings.iter().any(is_ignoring))?;
        let gaps = gaps.gaps.clone().unknown().0.into_iter().filter(|gap| gap.kind == FeedKind::Budgets);
        Some(Gaps(gaps.collect())).filter(|gaps| !gaps.is_empty())
    }

    /// Returns whether the outcome is certain although some objects are unknown or outdated.
    ///
    /// The outcome is uncertain if it is unknown whether some pods leave, if the whole plan is based on outdated
    /// objects, or if an owner is not known, because the owner's pods may be lost. Other gaps (unknown or outdated
    /// objects) in workloads, budgets, quotas and placements make only evictions under a budget uncertain, because the
    /// budget's numbers depend on the replacements of the pods that leave.
    pub fn is_definite(&self) -> bool {
        let rests_on_budgets = match &self.action {
            Action::Drain { options, .. } => options.mode() == RemovalMode::Evict,
            Action::Evict { .. } => true,
            Action::Cordon { .. }
            | Action::Uncordon { .. }
            | Action::Taint { .. }
            | Action::Metadata { .. }
            | Action::DeleteNode { .. }
            | Action::Delete { .. } => false,
        };
        let rests_on_budgets =
            rests_on_budgets && !self.budgets.is_empty() && self.prospect() != Prospect::Refused;
        let is_decided = self.totals.undecided == 0 || self.prospect() == Prospect::Refused;
        let holds = |gap: &PlanGap| match gap.part {
            PlanPart::Everything => false,
            PlanPart::OtherNodes => true,
            PlanPart::Workloads if self.totals.outcomes.of(OutcomeKind::Unknown) > 0 => false,
            PlanPart::Workloads | PlanPart::Budgets | PlanPart::Quotas | PlanPart::Placement => {
                !rests_on_budgets
            }
        };
        is_decided && self.gaps().all(holds)
    }

    /// Adds a warning for each part of the plan that depends on unknown or outdated objects. `outcome` has the outdated
    /// kinds of objects that concern the whole plan.
    pub(super) fn name_gaps(&mut self, outcome: Gaps, cluster: &Cluster) {
        let mut everything = outcome;
        everything.0.extend(cluster.gap(FeedKind::Nodes).filter(|gap| gap.known.is_known()));
        let is_dated = |gap: &Gap| everything.contains(gap.kind);
        let undated = |gaps: Gaps| Gaps(gaps.0.into_iter().filter(|gap| !is_dated(gap)).collect());
        let parts = [
            (PlanPart::OtherNodes, undated(self.gaps_of_other_nodes(cluster))),
            (PlanPart::Workloads, undated(self.gaps_of_leaving(cluster, gaps::of_owner))),
            (PlanPart::Budgets, undated(self.gaps_of_leaving(cluster, gaps::of_budgets))),
            (PlanPart::Quotas, undated(self.gaps_of_leaving(cluster, gaps::of_quotas))),
            (PlanPart::Placement, undated(self.gaps_of_placement(cluster))),
        ];
        let parts = std::iter::once((PlanPart::Everything, everything.clone())).chain(parts);
        let unknown = parts.filter(|(_, gaps)| !gaps.is_empty());
        let unknown = unknown.map(|(part, gaps)| Warning::Unknown(PlanGap { part, gaps }));
        self.warnings.splice(0..0, unknown.collect::<Vec<_>>());
    }

    fn gaps_of_other_nodes(&self, cluster: &Cluster) -> Gaps {
        match self.action {
            Action::Cordon { .. } | Action::Drain { .. } | Action::DeleteNode { .. } => {
                cluster.gaps_in([Scope::Nodes])
            }
            Action::Uncordon { .. }
            | Action::Taint { .. }
            | Action::Metadata { .. }
            | Action::Evict { .. }
            | Action::Delete { .. } => Gaps::default(),
        }
    }

    /// Returns the unknown or outdated kinds of objects that concern the pods which the plan removes or tries to
    /// remove. `needs` returns the scopes (sets of objects) that have to be known for one pod.
    fn gaps_of_leaving(&self, cluster: &Cluster, needs: fn(&Cluster, &Pod) -> Vec<Scope>) -> Gaps {
        let attempted = self.pods.iter().filter(|pod| pod.verdict.as_if_granted().is_attempted());
        let pods = attempted.filter_map(|pod| cluster.pod(&pod.pod));
        cluster.gaps_in(pods.flat_map(|pod| needs(cluster, pod)))
    }

    fn gaps_of_placement(&self, cluster: &Cluster) -> Gaps {
        let places = matches!(self.action, Action::Uncordon { .. })
            || self.pods.iter().any(|pod| pod.landing.is_some());
        if !places {
            return Gaps::default();
        }
        let mut gaps = cluster.gaps_in([Scope::Nodes, Scope::Pods, Scope::Namespaces]);
        gaps.0.extend(cluster.gaps(FeedKind::PLACEMENT).0);
        // The landings are predicted as if all undecided pods left, so what is unknown of these pods makes the landings
        // uncertain too.
        let others: Vec<Gap> =
            self.undecided().0.into_iter().filter(|gap| !gaps.contains(gap.kind)).collect();
        gaps.0.extend(others);
        gaps
    }
}
