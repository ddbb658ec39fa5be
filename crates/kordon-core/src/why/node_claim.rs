//! Explains what Karpenter does with a node, from its NodeClaim.

use super::{Explainer, Step, Tense, Topic};
use crate::cluster::{Condition, KnownNodeClaims, Node, NodeClaim, RemovalStage};

impl Explainer<'_> {
    /// Adds why Karpenter removes the node and how far the removal is; or that the node's NodeClaim is not known.
    pub(super) fn explain_node_claim(&self, node: &Node, explanation: &mut Vec<Step>) {
        if !KnownNodeClaims::concern(node) {
            return;
        }
        let unknown = |why: &str| {
            let text = format!("its NodeClaim is not known: {why}");
            Step::new(Tense::Present, Topic::Drain, text)
        };
        match self.cluster.node_claims() {
            // The NodeClaims have not been requested.
            KnownNodeClaims::NotRead => {}
            KnownNodeClaims::NotServed => {
                explanation.push(unknown("the server does not serve nodeclaims of karpenter.sh/v1"));
            }
            KnownNodeClaims::Unreadable(why) => explanation.push(unknown(why)),
            KnownNodeClaims::Read(claims) => {
                for claim in claims.iter().filter(|claim| claim.node == node.name) {
                    self.explain_removal(claim, explanation);
                }
            }
        }
    }

    fn explain_removal(&self, claim: &NodeClaim, explanation: &mut Vec<Step>) {
        let local = |time| self.cluster.local(time);
        let mut say = |tense, at, text| {
            explanation.push(Step { at, ..Step::new(tense, Topic::Drain, text) });
        };
        let since = |condition: &Condition| condition.last_transition.map(local);
        let name = &claim.name;
        if let Some(disrupted) = claim.true_condition("DisruptionReason") {
            let text = format!("removed by Karpenter because: {} (NodeClaim {name})", disrupted.reason);
            say(Tense::Present, since(disrupted), text);
        } else if let Some(drifted) = claim.true_condition("Drifted").filter(|_| claim.deleted.is_none()) {
            let text =
                format!("Karpenter may replace it: {} (NodeClaim {name}, condition Drifted)", drifted.reason);
            say(Tense::Present, since(drifted), text);
        }
        let Some(stage) = claim.removal() else { return };
        let stage = match stage {
            RemovalStage::Draining => "its pods are evicted",
            RemovalStage::AwaitingVolumes => "it is drained, and its volumes have to be detached",
            RemovalStage::Terminating => "its machine is terminated",
        };
        let text = format!("its NodeClaim {name} is being deleted: {stage}");
        say(Tense::Present, claim.deleted.map(local), text);
        if let Some(forced) = claim.forced.map(local) {
            let text = "its pods are deleted by then, whatever budgets say (terminationGracePeriod of its NodeClaim)";
            let tense = if forced > self.now { Tense::Future } else { Tense::Past };
            say(tense, Some(forced), text.into());
        }
    }
}
