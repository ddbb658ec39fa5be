//! Plans of drains compared with the drains themselves: which pods leave, in which order and when, which budget blocks
//! which pod, which replacement a quota refuses, and when the drain ends; also the progress that an operation reports.
//! Runs a demo cluster with budgets and changing pods on a virtual clock.
//!
//! `KORDON_DRAIN=20/200` drains 20 of 200 nodes, five at a time. `KORDON_SEED` selects another cluster. With
//! `--nocapture` the figures are printed.

mod compare;
pub mod facts;

use std::{collections::BTreeSet, sync::Arc};

use kordon::{
    executor::requests::{RequestExecutor, RequestWriter},
    journal::Journal,
    run::{operation_driver::OperationRun, watched_model::WatchedModel},
};
use kordon_core::{
    cluster::{Node, NodeName, Owner, OwnerKind, Pod, Uid, WorkloadKind},
    operation::{Operation, OperationEnd, OperationNotice, OperationOptions},
    placement::Snapshot,
    plan::{Action, DrainOptions, PlacingEnvironment, Plan, PodPlan, Prospect, Retry},
};
use kordon_demo::api::{self, Verb};
use kordon_time::{Span, Timestamp};
use serde_json::json;
use tokio::sync::mpsc;

use compare::Comparison;
use facts::Facts;

use crate::town::{self, Town, VERSION};

/// Number of nodes that are drained at a time.
const PARALLEL: usize = 5;

#[tokio::test(start_paused = true)]
async fn a_drain_under_load_goes_as_its_plan_predicted() {
    let (drained, nodes) = town::size("KORDON_DRAIN", (8, 40));
    let seed = town::seed();
    let mut town = Town::new(nodes, seed).await;
    let chosen = town.drainable(drained);
    let (plan, facts, notices) = town.drain(chosen).await;
    let comparison = Comparison::new(&plan, &facts);
    println!("{drained} of {nodes} nodes, {PARALLEL} at a time, seed {seed}\n{comparison}");
    check_progress(&notices, &facts);
    comparison.check();
}

/// Checks that during the drain, progress and likely end are reported every ten seconds.
fn check_progress(notices: &[OperationNotice], facts: &Facts) {
    let lines: Vec<&OperationNotice> = notices.iter().filter(|notice| is_progress(notice)).collect();
    let lasted = facts.ended.since(facts.began).as_secs();
    let times: Vec<i64> = lines.iter().map(|line| line.at.since(facts.began).as_secs()).collect();
    let every_ten: Vec<i64> = (1..=lasted / 10).map(|number| number * 10).collect();
    assert!(lasted > 30, "too short to tell of: {lasted} s");
    assert_eq!(times, every_ten, "{lines:#?}");
    let gone = |line: &&OperationNotice| {
        let (before, _) = line.text.split_once(" of ").expect("as in `5 of 7 pods gone`");
        before.rsplit(' ').next().and_then(|number| number.parse::<usize>().ok()).expect("a number")
    };
    assert!(lines.iter().map(gone).is_sorted() && lines.iter().map(gone).any(|gone| gone > 0), "{lines:#?}");
    // Each progress line has the likely end of the drain, or what prevents the end. In the second half of the drain,
    // the drain ends no later than the latest end in the line: both are rounded down to whole seconds, and for each pod
    // the latest end has four seconds more than its grace period, which the demo's kubelets never exceed.
    for line in lines {
        let (_, left) = line.text.rsplit_once("; ").expect("how far it is; when it ends");
        let latest = left.strip_prefix("done in ~").and_then(|ends| ends.split_once("(at most "));
        let Some((_, latest)) = latest else {
            let blocks = |budget: &str| facts.refused.keys().any(|(_, refused)| refused == budget);
            let budget = left.strip_prefix("no ETA: blocked by ").and_then(|rest| rest.split(' ').next());
            let says_when = left == "done immediately" || left.ends_with("(possibly never)");
            assert!(says_when || budget.is_some_and(blocks), "neither when nor why not: {}", line.text);
            continue;
        };
        let latest = latest.strip_suffix(')').and_then(seconds).unwrap_or_else(|| panic!("{}", line.text));
        let (after, left) = (line.at.since(facts.began).as_secs(), facts.ended.since(line.at).as_secs());
        assert!(after <= lasted / 2 || left <= latest, "{}: {left} s before the end", line.text);
    }
}

/// Whether a notice has the progress and the end of the operation.
fn is_progress(notice: &OperationNotice) -> bool {
    notice.subject.is_empty() && notice.text.contains(" pods gone") && notice.text.contains("; ")
}

/// Parses `1m05s` or `35s` as seconds.
fn seconds(text: &str) -> Option<i64> {
    let (minutes, seconds) =
        text.strip_suffix('s')?.split_once('m').unwrap_or(("0", text.strip_suffix('s')?));
    Some(minutes.parse::<i64>().ok()? * 60 + seconds.parse::<i64>().ok()?)
}

/// Namespace with a quota that refuses replacements.
const LIMITED: &str = "shop";

#[tokio::test(start_paused = true)]
async fn replacements_that_a_quota_refuses_come_when_the_plan_predicted() {
    let mut town = Town::new(24, 3).await;
    let in_use = town.model.cluster.pods_in(&LIMITED.into()).count();
    town.limit(LIMITED, in_use).await;
    let node = town.drainable_with(LIMITED);
    let before: BTreeSet<Uid> = town.model.cluster.pods().iter().map(|pod| pod.uid.clone()).collect();
    let (plan, facts, _) = town.drain(vec![node]).await;
    let log = town.api.log();
    let refused: Vec<&PodPlan> = plan.pods.iter().filter(|pod| pod.quota.is_some()).collect();
    assert!(!refused.is_empty() && refused.iter().all(|pod| *pod.pod.namespace == *LIMITED), "{refused:#?}");
    let numbers = format!("pods {in_use} of {in_use} used");
    assert!(refused.iter().all(|pod| pod.quota.as_ref().is_some_and(|refusal| refusal.numbers() == numbers)));
    town.clock.sleep(Span::from_secs(300)).await;
    town.learn_now().await;
    let cluster = &town.model.cluster;
    let limited = LIMITED.into();
    let new = cluster.pods_in(&limited).filter(|pod| !before.contains(&pod.uid));
    let mut created: Vec<Timestamp> = new.map(|pod| cluster.local(pod.created)).collect();
    created.sort_unstable();
    assert!(created.len() >= refused.len(), "{} of {} were replaced", created.len(), refused.len());
    let gone =
        |pod: &&PodPlan| facts.gone.get(&pod.uid.to_string()).copied().expect("the drain waited for it");
    let mut freed: Vec<Timestamp> = refused.iter().map(gone).collect();
    freed.sort_unstable();
    // Each replacement is created only after one of the drained pods is gone. The delay between the two is at most the
    // time from the start of the drain until the pod was gone. Times of creation are rounded down to whole seconds.
    for (created, freed) in created.iter().zip(&freed) {
        let (late, waited) = (created.since(*freed), freed.since(facts.began));
        assert!(late > Span::from_secs(-1) && late <= waited + Span::from_secs(2), "{late} after {waited}");
    }
    let uri = format!("/api/v1/namespaces/{LIMITED}/pods");
    let is_refusal = |request: &api::LoggedRequest| {
        request.verb == Verb::Create
            && request.uri.starts_with(&uri)
            && request.code == 403
            && request.at >= facts.began
    };
    assert!(log.iter().any(is_refusal), "the server refused none");
    // The kubelets end pods at a random time within their grace period. So the error is at most the longest time to the
    // end of a pod.
    let predicted =
        refused.iter().filter_map(|pod| pod.quota.as_ref()?.admitted).max().expect("they are admitted");
    let happened = created[refused.len() - 1];
    let wrong = predicted.since(happened).as_secs().abs();
    let most =
        refused.iter().filter_map(|pod| pod.gone.latest).max().expect("a time").since(plan.made).as_secs();
    assert!(wrong <= most, "predicted {predicted}, happened {happened}");
}

impl Town {
    /// Makes and applies a plan, as `kordon drain --enforce` does.
    async fn drain(&mut self, nodes: Vec<NodeName>) -> (Plan, Facts, Vec<OperationNotice>) {
        let now = self.clock.now();
        let plan = self.plan(nodes, now);
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::within(folder.path(), "demo");
        let writer = journal.open().expect("opened");
        let (client, clock) = (self.api.client_as("kordon"), self.clock);
        let watcher = facts::Watcher::start(self.api.client_as("observer"), clock, &self.cancel).await;
        let executor = RequestExecutor::Writer(RequestWriter {
            client,
            clock,
            journal: writer.clone(),
            operation: "p".parse().unwrap(),
        });
        let options =
            OperationOptions { id: "p".parse().unwrap(), by: "test".into(), ..OperationOptions::default() };
        let operation = Operation::start(&plan, options, &self.model.cluster, now);
        let (model, feeds) = (&mut self.model, &mut self.feeds);
        let link = executor.start();
        let watched = WatchedModel::Own { model, feeds };
        let mut run = OperationRun { operation, watched, link, journal: Some(writer.clone()), clock };
        // No operator pauses or cancels the drain.
        let (_operator, mut input) = mpsc::channel(1);
        let mut notices = Vec::new();
        run.run(&mut input, |notice| notices.push(notice.clone())).await;
        let report = run.operation.progress();
        assert_eq!(run.operation.ended(), Some(OperationEnd::Done), "{report:#?}");
        let lines = journal.lines().expect("read");
        (plan, watcher.facts(&lines, now, report.ended.expect("it ended").0), notices)
    }

    /// Gives a namespace a quota with this limit of pods, and waits until its status is computed.
    async fn limit(&mut self, namespace: &str, pods: usize) {
        let quota = json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"namespace": namespace, "name": "team"},
            "spec": {"hard": {"pods": pods.to_string()}},
        });
        self.api.load("resourcequotas", quota);
        self.clock.sleep(Span::from_secs(5)).await;
        self.learn_now().await;
        let counted = self.model.cluster.quotas_in(&namespace.into()).next().expect("it is there");
        assert_eq!(counted.limits.first().map(|limit| limit.hard), i64::try_from(pods).ok());
    }

    /// Returns a node that can be drained and has pods of a ReplicaSet in this namespace.
    fn drainable_with(&self, namespace: &str) -> NodeName {
        let replicated = |pod: &Arc<Pod>| {
            let is_of_set = |owner: &Owner| owner.kind == OwnerKind::Workload(WorkloadKind::ReplicaSet);
            *pod.key.namespace == *namespace && pod.owner.as_deref().is_some_and(is_of_set)
        };
        let with = |node: &&Arc<Node>| self.model.cluster.pods_on(&node.name).any(replicated);
        let completes = |node: &&Arc<Node>| {
            self.plan(vec![node.name.clone()], self.clock.now()).prospect() == Prospect::Completes
        };
        let mut nodes = self.model.cluster.nodes().iter().filter(with);
        nodes.find(completes).expect("one of them").name.clone()
    }

    fn plan(&self, nodes: Vec<NodeName>, now: Timestamp) -> Plan {
        let options = DrainOptions {
            force: true,
            ignore_daemonsets: true,
            delete_emptydir_data: true,
            parallel: PARALLEL,
            retry: Retry::OnRecovery,
            ..DrainOptions::default()
        };
        let action = Action::Drain { nodes, options };
        let placing =
            PlacingEnvironment::new(&self.model.cluster, Snapshot::new(&self.model.cluster, VERSION), now);
        Plan::new(action, &self.model.cluster, &placing, VERSION, now).expect("the nodes are there")
    }

    /// Returns worker nodes that one drain can empty. None of their pods is the only replica under a budget, and none
    /// would have an unschedulable replacement.
    fn drainable(&self, count: usize) -> Vec<NodeName> {
        let (now, mut chosen) = (self.clock.now(), Vec::<NodeName>::new());
        // Skips a node that would keep the drain from ending.
        for worker in self.workers(count) {
            if chosen.len() == count {
                break;
            }
            let with: Vec<NodeName> = chosen.iter().chain([&worker]).cloned().collect();
            if self.plan(with.clone(), now).prospect() == Prospect::Completes {
                chosen = with;
            }
        }
        assert_eq!(chosen.len(), count, "too few nodes can be drained together");
        chosen
    }
}
