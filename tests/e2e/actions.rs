//! Operations on the real Kubernetes control plane: the server's responses to kordon's requests; drains that are
//! applied, killed and resumed; and dry runs and clicks in enforce without a write in the audit log.
//!
//! `KORDON_KILLS` is the number of times that drains are killed. `KORDON_RUN` (for example `10m`) is the duration of each
//! test with random commands, keys and clicks. `KORDON_SEED` selects other commands, keys and clicks.

pub mod cluster;
mod commands;
mod dry_run;
mod enforced_clicks;
mod killed;
mod scenarios;
mod surges;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kordon::k8s::requests::{DryRun, send_request};
use kordon_core::{
    cluster::Uid,
    operation::{RequestKind, RequestOutcome},
    plan::PlanStep,
};
use kordon_time::Span;
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::json;

use cluster::{
    ClusterSize, OPERATOR, PLANNER, UserShell, budgets, create_budget, is_granted_eviction, key, pods, reads,
    rule, set_budget, start_cluster,
};
use commands::printed_commands_do_what_they_claim;
use dry_run::dry_runs_write_nothing;
use enforced_clicks::clicks_in_enforce_confirm_nothing;
use killed::killed_drains_are_resumed;

use crate::harness::{
    eventually::eventually,
    plane::{self, Options, Plane},
};

/// A user that may evict but not cordon.
const NO_CORDON: &str = "no-cordon";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_behave_as_documented_on_the_real_control_plane() {
    let Some(binary) = plane::binary("e2e_actions").unwrap() else { return };
    let options = Options {
        audit: true,
        users: vec![OPERATOR, PLANNER, NO_CORDON],
        toleration_seconds: 300,
        ..Options::default()
    };
    let mut plane = Plane::start(&binary, options).await.unwrap();
    plane.scenario("answers are distinguished, and a dry-run evicts no pod", answers_are_distinguished).await;
    plane.scenario("a drain without the right to cordon touches no pod", no_cordon_no_drain).await;
    plane
        .scenario(
            "a budget without its controller",
            scenarios::without_its_controller_a_budget_allows_no_more_than_its_status,
        )
        .await;
    plane
        .scenario(
            "pending pods and their budget",
            scenarios::a_pending_pod_is_evicted_despite_its_budget_and_a_running_one_is_not,
        )
        .await;
    plane.scenario("a wrong uid costs a disruption", scenarios::a_wrong_uid_uses_up_a_disruption).await;
    plane
        .scenario("a pod created during the drain", scenarios::a_pod_created_during_the_drain_is_evicted_too)
        .await;
    plane
        .scenario(
            "a blocked pod is reported immediately",
            scenarios::a_blocked_pod_is_reported_immediately_with_its_budget,
        )
        .await;
    plane
        .scenario(
            "a cordon that is not permitted",
            scenarios::a_cordon_without_permission_or_of_a_missing_node_fails,
        )
        .await;
    plane
        .scenario(
            "replacements of evicted pods",
            scenarios::replacements_are_created_immediately_but_a_statefulsets_when_the_old_pod_is_gone,
        )
        .await;
    plane
        .scenario(
            "a quota refuses replacements",
            scenarios::a_quota_refuses_replacements_until_the_old_pods_are_gone,
        )
        .await;
    plane.scenario("a surge moves a single replica", surges::a_single_replica_moves_without_a_gap).await;
    plane.scenario("printed commands do what they claim", printed_commands_do_what_they_claim).await;
    plane
        .scenario("dry-runs with random input write nothing but access reviews", dry_runs_write_nothing)
        .await;
    plane.scenario("random clicks in enforce confirm nothing", clicks_in_enforce_confirm_nothing).await;
    plane.scenario("killed drains are resumed", killed_drains_are_resumed).await;
}

/// Scenario 35: An exhausted budget answers 429 with its numbers and without Retry-After.
/// Scenario 40: The eviction of a running pod under two budgets is answered 500.
/// Scenario 53: The dryRun of an eviction may stand in its body, its query or both; if the two differ, the
/// eviction is an error.
/// Scenario 60: A dry run of an eviction evicts nothing: its options reach the server (kube's own eviction loses
/// them).
async fn answers_are_distinguished(plane: &mut Plane) -> Result<()> {
    let _kubelets = start_cluster(plane, &ClusterSize::SMALL).await?;
    let client = plane.client();
    let all = pods(&client).await?;
    let pod = all.iter().find(|pod| pod.name_any().starts_with("web")).context("a pod")?;
    let (named, uid) = (key(pod), Uid::from(&*pod.uid().unwrap_or_default()));
    let evict = |uid: &Uid| {
        RequestKind::Write(PlanStep::Evict {
            pod: named.clone(),
            uid: uid.clone(),
            grace: Some(Span::from_secs(1)),
        })
    };
    let delete = RequestKind::Write(PlanStep::Delete { pod: named.clone(), uid: uid.clone(), grace: None });

    for task in [&evict(&uid), &delete] {
        ensure!(send_request(&client, task, DryRun::On).await == RequestOutcome::Done, "{task}: a dry-run");
        let now = Api::<Pod>::namespaced(client.clone(), "default").get(&named.name).await?;
        ensure!(
            now.uid() == pod.uid() && now.metadata.deletion_timestamp.is_none(),
            "{task}: it was not a dry-run"
        );
    }
    // Uses a pod without a budget. With a budget, even an eviction whose precondition fails would use up a disruption
    // (docs/upstream/operator-actions.md#4.3).
    let free = all.iter().find(|pod| pod.name_any().starts_with("db")).map(key).context("a pod")?;
    let step = PlanStep::Evict { pod: free, uid: "another".into(), grace: None };
    let other = send_request(&client, &RequestKind::Write(step), DryRun::Off).await;
    ensure!(other == RequestOutcome::OtherObject, "{other:?}");
    let forbidden = send_request(&plane.client_of(NO_CORDON).await?, &evict(&uid), DryRun::Off).await;
    ensure!(matches!(forbidden, RequestOutcome::Forbidden(_)), "{forbidden:?}");

    set_budget(&client, "web", json!("100%")).await?;
    let exhausted = send_request(&client, &evict(&uid), DryRun::Off).await;
    let numbers = |text: &str| text.contains("needs 6 healthy pods and has 6 currently");
    ensure!(matches!(&exhausted, RequestOutcome::BudgetExhausted(text) if numbers(text)), "{exhausted:?}");

    create_budget(&client, "web", "second", json!(0)).await?;
    let two = send_request(&client, &evict(&uid), DryRun::Off).await;
    ensure!(matches!(&two, RequestOutcome::Refused(text) if text.contains("more than one")), "{two:?}");
    budgets(&client).delete("second", &DeleteParams::default()).await?;
    set_budget(&client, "web", json!(0)).await?;

    let done = send_request(&client, &evict(&uid), DryRun::Off).await;
    ensure!(done == RequestOutcome::Done, "{done:?}");
    eventually("the pod is gone", Span::from_secs(20), async || {
        let found = Api::<Pod>::namespaced(client.clone(), "default").get_opt(&named.name).await?;
        Ok(found.is_none().then_some(()))
    })
    .await?;
    let gone = send_request(&client, &evict(&uid), DryRun::Off).await;
    ensure!(gone == RequestOutcome::Gone, "{gone:?}");
    Ok(())
}

/// Scenario 7: A drain whose cordon is refused stops before the first eviction (kubectl evicts all the same).
async fn no_cordon_no_drain(plane: &mut Plane) -> Result<()> {
    let _kubelets = start_cluster(plane, &ClusterSize::SMALL).await?;
    plane.grant(NO_CORDON, &[reads(), rule("", "pods/eviction", &["create"])]).await?;
    let before = pods(&plane.client()).await?.len();
    let shell = UserShell::new(plane.kubeconfig(NO_CORDON)?);
    let output = shell.run(&["drain", "a1", "--enforce", "--yes"]).await;
    ensure!(output.code == 9, "exit code {}: {}", output.code, output.err);
    ensure!(output.err.contains("patch nodes"), "{}", output.err);
    ensure!(!plane.audit_of(NO_CORDON)?.iter().any(is_granted_eviction), "a pod was evicted");
    ensure!(pods(&plane.client()).await?.len() == before);
    Ok(())
}
