//! Keeps the open plan up to date: the job that computes it, and its result.

use std::collections::BTreeSet;

use super::{
    App,
    detail::DetailSubject,
    dialog::Dialog,
    groups::NodeRow,
    overlays::Overlay,
    preview::{
        FailureJob, PlanKind, PlanRequest, Preview, PreviewBasis, PreviewJob, PreviewOutcome, PreviewResult,
        PreviewWork, ReadNodes, Targets,
    },
};
use kordon_core::{
    cluster::{FeedKind, Key, Known, Namespace, NodeName, Owner, Scope},
    placement::SnapshotLease,
    plan::{EvictionRules, PlanJob, needs},
};
use kordon_time::Timestamp;

/// Maximum number of nodes whose pods are read for a plan. For more nodes, a watch of all pods costs the API server
/// less.
const MOST_NODES: usize = 50;

impl App {
    /// Opens the plan of a request, and names the rights that the plan needs and the user lacks.
    pub(super) fn show_plan(&mut self, request: PlanRequest) {
        let preview = Preview::new(request, self.screen.focus, &self.shown().cluster);
        self.screen.open_view(Overlay::Plan(Box::new(preview)));
        self.say_missing_right();
    }

    /// Returns the job that updates the open plan; `None` if the plan already has the result for the present request
    /// and cluster.
    pub fn next_plan(&mut self, now: Timestamp) -> Option<PreviewJob> {
        let (request, basis) = self.plan_to_make()?;
        let request = request.clone();
        let work = match request.action() {
            Ok(Some(action)) => {
                let snapshot = request.kind.places_pods().then(|| self.lend_snapshot());
                PreviewWork::Plan(Box::new(PlanJob {
                    action,
                    cluster: self.shown().cluster.clone(),
                    rules: EvictionRules::from(&self.model.settings),
                    snapshot,
                    now: self.shown_at(now),
                }))
            }
            Ok(None) => {
                let snapshot = self.lend_snapshot();
                let shown = self.shown();
                PreviewWork::Failure(Box::new(FailureJob {
                    targets: request.targets.clone(),
                    whole_zones: request.whole_zones,
                    cluster: shown.cluster.clone(),
                    engine: shown.engine.clone(),
                    version: self.model.settings.version,
                    snapshot,
                    now: self.shown_at(now),
                }))
            }
            Err(text) => PreviewWork::Fault(text),
        };
        Some(PreviewJob { request, basis, work })
    }

    /// Lends the snapshot of the cluster that is kept for plans. The snapshot follows the present, so a frozen screen
    /// and a recording cannot use it.
    fn lend_snapshot(&mut self) -> SnapshotLease {
        if self.is_frozen() || self.is_replay() {
            SnapshotLease::default()
        } else {
            self.screen.plan_snapshot.lend()
        }
    }

    /// The request whose result is missing or outdated, and the state that a new result would be based on.
    fn plan_to_make(&self) -> Option<(&PlanRequest, PreviewBasis)> {
        let preview = self.screen.overlays.plan()?;
        let shown = self.shown();
        let is_failure = preview.request.kind == PlanKind::Failure;
        let basis =
            PreviewBasis { changes: shown.plan_changes(), taken: is_failure.then_some(shown.views.taken) };
        let is_known =
            !preview.is_behind() && preview.result.as_ref().is_some_and(|last| last.basis == basis);
        (!is_known).then_some((&preview.request, basis))
    }

    /// The nodes whose pods must be read while pods are not listed yet or not watched (`--no-pods`): nodes of the open
    /// plan, of an open question, of the open detail, of operations, and of the drain that may be resumed. While pods
    /// are being listed, also the nodes on screen.
    pub fn wanted_scopes(&self) -> BTreeSet<Scope> {
        let cluster = &self.model.cluster;
        let on_demand = self.model.scopes_on_demand();
        let in_view = match cluster.known(FeedKind::Pods) {
            Known::Off { .. } => &[][..],
            Known::NotListed => self.screen.nodes.list.shown_keys(),
            Known::Live | Known::Stale { .. } | Known::Forbidden { .. } | Known::Absent => {
                return on_demand.collect();
            }
        };
        let of_plan =
            self.screen.overlays.plan().map_or(&[][..], |Preview { request, .. }| match &request.targets {
                Targets::Nodes(nodes) if request.kind.moves_pods() => nodes,
                Targets::Nodes(_) | Targets::Pods(_) => &[],
            });
        let of_operations = self.operations.running().flat_map(|entry| entry.operation.watched_nodes());
        let of_interrupted = self.operations.interrupted.front().into_iter().flat_map(|prior| &prior.nodes);
        let of_detail = match self.screen.overlays.detail().map(|detail| &detail.subject) {
            Some(DetailSubject::Node(node)) => Some(node),
            Some(DetailSubject::Pod(pod)) => cluster.pod(pod).and_then(|pod| pod.node.as_ref()),
            Some(DetailSubject::Budget(_)) | None => None,
        };
        let nodes = of_plan.iter().take(MOST_NODES).chain(of_detail).chain(of_operations);
        let nodes = nodes.chain(of_interrupted.map(|(node, _)| node).take(MOST_NODES));
        let approval = self.screen.overlays.question().and_then(Dialog::approval);
        let of_approval = approval.into_iter().flat_map(|approval| approval.removable(cluster));
        let is_of_node = |scope: &Scope| matches!(scope, Scope::PodsOn(_));
        let of_approval = of_approval.filter(is_of_node).take(MOST_NODES);
        let nodes = nodes.chain(in_view.iter().filter_map(NodeRow::node));
        nodes.cloned().map(Scope::PodsOn).chain(of_approval).chain(on_demand).collect()
    }

    /// Whether the information sheet is open and shows the present.
    pub fn shows_info(&self) -> bool {
        !self.is_frozen() && matches!(self.screen.overlays.top(), Some(Overlay::Info(_)))
    }

    /// Whether the open plan predicts a failure in the present. A zone may go down in it, and kordon's Lease says whether
    /// its pods are evicted then.
    pub fn shows_failure(&self) -> bool {
        let plan = self.screen.overlays.plan();
        !self.is_frozen() && plan.is_some_and(|preview| preview.request.kind == PlanKind::Failure)
    }

    /// Whether the open plan or maintenance sheet may scale up Deployments, also while a question about it is open.
    pub fn plans_surges(&self) -> bool {
        let overlays = &self.screen.overlays;
        let plan = overlays.plan().is_some_and(|preview| preview.request.drain.surge);
        let waves = overlays.maintenance().is_some_and(|sheet| sheet.request.surge);
        !self.is_frozen() && (plan || waves)
    }

    /// The owners whose operators act by their settings: of the pods that the open plan moves, of those whose details are
    /// shown, and of all pods if the audit is shown. `None` if there are none, or if the screen is frozen.
    pub fn owners_with_settings(&self) -> Option<Vec<(Namespace, Owner)>> {
        if self.is_frozen() {
            return None;
        }
        let (overlays, cluster) = (&self.screen.overlays, &self.model.cluster);
        let (nodes, pods): (&[NodeName], &[Key]) = match overlays.plan().map(|plan| &plan.request) {
            Some(PlanRequest { kind, targets: Targets::Nodes(nodes), .. }) if kind.moves_pods() => {
                (nodes, &[])
            }
            Some(PlanRequest { targets: Targets::Pods(pods), .. }) => (&[], pods),
            Some(_) | None => (&[], &[]),
        };
        let (node, pod) = match overlays.shown_detail().map(|detail| &detail.subject) {
            Some(DetailSubject::Node(node)) => (Some(node), None),
            Some(DetailSubject::Pod(pod)) => (None, Some(pod)),
            Some(DetailSubject::Budget(_)) | None => (None, None),
        };
        let on_nodes = nodes.iter().take(MOST_NODES).chain(node).flat_map(|node| cluster.pods_on(node));
        let named = pods.iter().chain(pod).filter_map(|pod| cluster.pod(pod));
        let owners = match self.model.predictions.audit().filter(|_| self.screen.shows_audit()) {
            Some(audit) => audit.owners.clone(),
            None => needs::owners_with_settings_of(on_nodes.chain(named)),
        };
        (!owners.is_empty()).then_some(owners)
    }

    /// Whether the user waits for the plan, because it is missing or belongs to an earlier request.
    pub fn awaits_plan(&self) -> bool {
        self.screen.overlays.plan().is_some_and(Preview::is_behind)
    }

    /// Shows the result of a job, unless the request for the plan has changed since the job began. Returns the result
    /// that is no longer needed; it may be large.
    pub fn planned(&mut self, mut result: PreviewResult, now: Timestamp) -> Option<PreviewResult> {
        if let Some(snapshot) = result.snapshot.take() {
            result.snapshot = self.screen.plan_snapshot.give_back(snapshot);
        }
        let preview = self.screen.overlays.plan_mut().filter(|preview| preview.request == result.request);
        let Some(preview) = preview else { return Some(result) };
        let before = preview.set_result(result);
        self.work_out_diff(now);
        self.arrange(now);
        before
    }

    /// Shows the nodes that were read for the diff of the open plan.
    pub(super) fn on_nodes_read(&mut self, nodes: Result<ReadNodes, String>, now: Timestamp) {
        if let Some(preview) = self.screen.overlays.plan_mut() {
            preview.set_nodes(nodes);
        }
        self.work_out_diff(now);
    }

    fn work_out_diff(&mut self, now: Timestamp) {
        let shows = self.screen.overlays.plan().is_some_and(|preview| preview.diff.is_some());
        if !shows {
            return;
        }
        let (options, cluster) = (self.terms(now).options, self.shown().cluster.clone());
        if let Some(preview) = self.screen.overlays.plan_mut() {
            preview.work_out_diff(options, &cluster, now);
        }
    }

    /// Shows that a job failed, which is a bug in kordon. The job is not retried until something has changed.
    pub fn plan_failed(&mut self) {
        let Some((request, basis)) = self.plan_to_make() else { return };
        let request = request.clone();
        let outcome = PreviewOutcome::Fault("computing the plan failed: this is a bug in kordon".into());
        if let Some(preview) = self.screen.overlays.plan_mut() {
            preview.set_result(PreviewResult { request, outcome, basis, snapshot: None });
        }
    }
}
