//! Scenarios of docs/upstream/operator-actions.md#10 that only a real control plane shows.

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::{
    core::v1::{Event, Pod, ResourceQuota},
    policy::v1::PodDisruptionBudgetStatus,
};
use kordon::k8s::requests::{DryRun, send_request};
use kordon_core::{
    cluster::{Key, Uid},
    operation::{RequestKind, RequestOutcome},
    plan::PlanStep,
};
use kordon_time::Span;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};

use super::cluster::{
    ClusterSize, OPERATOR, UserShell, budgets, create_budget, is_eviction, is_granted_eviction, key,
    may_drain, nodes, pods, pods_on, set_budget, start_cluster,
};
use crate::{
    common::program::is_cordoned,
    harness::{
        eventually::eventually,
        kubelets::is_ready,
        plane::{ControllerManager, Plane},
    },
};

/// A cluster with five pods of `web`, so that 25 % of them rounds up to two.
const FIVE: ClusterSize = ClusterSize { web: 5, ..ClusterSize::SMALL };

/// Scenario 34: Without the disruption controller a budget lets no more pods go than its status allowed.
pub async fn without_its_controller_a_budget_allows_no_more_than_its_status(plane: &mut Plane) -> Result<()> {
    let _kubelets = start_cluster(plane, &FIVE).await?;
    let client = plane.client();
    let quarter = json!({"spec": {"minAvailable": null, "maxUnavailable": "25%"}});
    budgets(&client).patch("web", &PatchParams::default(), &Patch::Merge(quarter)).await?;
    wait_until_allowed(&client, 2).await?;
    let web = of_app(&client, "web").await?;
    plane.stop_controller_manager().await?;
    let mut answers = Vec::new();
    for pod in &web[..3] {
        answers.push(evict(&client, pod, DryRun::Off).await);
    }
    ensure!(answers[..2] == [RequestOutcome::Done, RequestOutcome::Done], "{answers:?}");
    // The stale status of the budget says that more pods are healthy than needed. In this case, the text of a refusal
    // by Kubernetes 1.36 has no numbers.
    let text = "The disruption budget web does not allow evicting pods currently";
    ensure!(answers[2] == RequestOutcome::BudgetExhausted(text.into()), "{answers:?}");
    let promised = status(&client).await?.disrupted_pods.unwrap_or_default();
    let names: Vec<String> = web[..2].iter().map(ResourceExt::name_any).collect();
    ensure!(promised.len() == 2 && names.iter().all(|name| promised.contains_key(name)), "{promised:?}");
    plane.start_controller_manager(&ControllerManager {
        controllers: vec!["*"],
        ..ControllerManager::default()
    })?;
    wait_until_allowed(&client, 2).await
}

/// Scenario 37: A Pending pod is evicted although its budget is exhausted.
/// Scenario 38: A Pending pod that starts during its eviction is checked against its budget.
///
/// If the pod changes while the server deletes it, the server reads the pod again and decides anew. A test cannot hit
/// this moment. Instead, it evicts the pod before and after the change, and with the resourceVersion from before the
/// change.
pub async fn a_pending_pod_is_evicted_despite_its_budget_and_a_running_one_is_not(
    plane: &mut Plane,
) -> Result<()> {
    let _kubelets = start_cluster(plane, &ClusterSize::SMALL).await?;
    let client = plane.client();
    create_budget(&client, "lone", "lone", json!(1)).await?;
    let nowhere = json!({"nodeSelector": {"no": "where"}});

    let stays_pending = lone_pod(&client, "stays-pending", &nowhere).await?;
    ensure!(evict(&client, &stays_pending, DryRun::Off).await == RequestOutcome::Done);

    let changed = lone_pod(&client, "changed", &nowhere).await?;
    let note = Patch::Merge(json!({"metadata": {"annotations": {"changed": "since"}}}));
    let pods = Api::<Pod>::namespaced(client.clone(), "default");
    pods.patch("changed", &PatchParams::default(), &note).await?;
    let started = tokio::time::Instant::now();
    let old = evict_as_read(&client, &changed).await?;
    ensure!(old == 409, "with the old version: {old}");
    ensure!(started.elapsed().as_secs() < 2, "the server retried");
    // The scheduler also writes to the pod, so the version just read may be outdated.
    eventually("its eviction with the newest version", Span::from_secs(20), async || {
        let answer = evict_as_read(&client, &pods.get("changed").await?).await?;
        ensure!([201, 409].contains(&answer), "with the newest version: {answer}");
        Ok((answer == 201).then_some(()))
    })
    .await?;

    let started = lone_pod(&client, "started", &json!({"nodeName": "a1"})).await?;
    let started = eventually("a running pod", Span::from_secs(20), async || {
        let now = Api::<Pod>::namespaced(client.clone(), "default").get(&started.name_any()).await?;
        let counted = budgets(&client).get("lone").await?.status.is_some_and(|s| s.current_healthy == 1);
        Ok((is_ready(&now) && counted).then_some(now))
    })
    .await?;
    let refused = evict(&client, &started, DryRun::Off).await;
    ensure!(matches!(refused, RequestOutcome::BudgetExhausted(_)), "{refused:?}");
    set_budget(&client, "lone", json!(0)).await?;
    eventually("a budget that allows a disruption", Span::from_secs(20), async || {
        let status = budgets(&client).get("lone").await?.status;
        Ok(status.is_some_and(|status| status.disruptions_allowed == 1).then_some(()))
    })
    .await?;
    ensure!(evict(&client, &started, DryRun::Off).await == RequestOutcome::Done);
    Ok(())
}

/// Scenario 52: An eviction with a wrong uid is refused with 409, but for up to two minutes afterwards the budget
/// allows one disruption less.
pub async fn a_wrong_uid_uses_up_a_disruption(plane: &mut Plane) -> Result<()> {
    let _kubelets = start_cluster(plane, &ClusterSize::SMALL).await?;
    let client = plane.client();
    let web = of_app(&client, "web").await?;
    let step = PlanStep::Evict { pod: key(&web[0]), uid: "another".into(), grace: None };
    let answer = send_request(&client, &RequestKind::Write(step), DryRun::Off).await;
    ensure!(answer == RequestOutcome::OtherObject, "{answer:?}");
    let status = status(&client).await?;
    let promised = status.disrupted_pods.unwrap_or_default();
    ensure!(status.disruptions_allowed == 0 && promised.contains_key(&web[0].name_any()), "{promised:?}");
    let now = Api::<Pod>::namespaced(client.clone(), "default").get(&web[0].name_any()).await?;
    ensure!(now.metadata.deletion_timestamp.is_none(), "the wrong pod was deleted");
    Ok(())
}

/// Scenario 30: A pod that is bound to the node during the drain is found by listing again, and evicted (kubectl
/// leaves it).
pub async fn a_pod_created_during_the_drain_is_evicted_too(plane: &mut Plane) -> Result<()> {
    let _kubelets = start_cluster(plane, &ClusterSize::SMALL).await?;
    plane.grant(OPERATOR, &may_drain()).await?;
    let client = plane.client();
    let shell = UserShell::new(plane.kubeconfig(OPERATOR)?);
    // A pod of `web` blocks the drain until the late pod exists.
    let node =
        of_app(&client, "web").await?[0].spec.clone().and_then(|spec| spec.node_name).context("a node")?;
    set_budget(&client, "web", json!(6)).await?;
    let line = ["drain", &node, "--force", "--enforce", "--yes", "--try-blocked", "--total-timeout=60s"];
    let meanwhile = async {
        let before = evictions_requested(plane)?;
        eventually("evictions, one of which is refused", Span::from_secs(30), async || {
            let holds =
                of_app(&client, "web").await?.iter().all(|pod| pod.metadata.deletion_timestamp.is_none());
            Ok((holds && evictions_requested(plane)? > before).then_some(()))
        })
        .await?;
        let late = lone_pod(&client, "late", &json!({"nodeName": &node})).await?;
        eventually("a pod that runs", Span::from_secs(20), async || {
            let now = Api::<Pod>::namespaced(client.clone(), "default").get_opt("late").await?;
            Ok(now.is_none_or(|now| is_ready(&now)).then_some(()))
        })
        .await?;
        set_budget(&client, "web", json!(3)).await?;
        anyhow::Ok(late)
    };
    let (output, late) = tokio::join!(shell.run(&line), meanwhile);
    let late = late?;
    ensure!(output.code == 0, "exit code {}: {}", output.code, output.err);
    ensure!(pods_on(&client, &node).await?.is_empty(), "{}", output.err);
    let granted = plane.audit_of(OPERATOR)?;
    let of_late = |line: &Value| {
        is_granted_eviction(line)
            && line["requestObject"]["deleteOptions"]["preconditions"]["uid"] == json!(late.uid())
    };
    ensure!(granted.iter().any(of_late), "the late pod was not evicted: {}", output.err);
    Ok(())
}

/// Scenario 58: The plan of a blocked pod names the budget that blocks it (`kubectl drain --dry-run=client` says
/// drained).
/// Scenario 59: A server-side dry run of a blocked pod is answered at once (kubectl retries until its timeout).
/// Scenario 61: The eviction of a blocked pod is answered in one round trip, without retries inside the client.
pub async fn a_blocked_pod_is_reported_immediately_with_its_budget(plane: &mut Plane) -> Result<()> {
    let _kubelets = start_cluster(plane, &ClusterSize::SMALL).await?;
    plane.grant(OPERATOR, &may_drain()).await?;
    let client = plane.client();
    let shell = UserShell::new(plane.kubeconfig(OPERATOR)?);
    set_budget(&client, "web", json!(6)).await?;
    let web = of_app(&client, "web").await?;
    // The audit log also has the evictions of earlier scenarios.
    let before = evictions_requested(plane)?;
    let answer = evict(&plane.client_of(OPERATOR).await?, &web[0], DryRun::Off).await;
    ensure!(
        matches!(&answer, RequestOutcome::BudgetExhausted(text) if text.contains("web needs 6")),
        "{answer:?}"
    );
    ensure!(evictions_requested(plane)? == before + 1, "{} evictions", evictions_requested(plane)? - before);

    let line = ["evict", "-l", "app=web", "-n", "default", "--dry-run=server", "--timeout=12s", "-o", "json"];
    let output = shell.run(&line).await;
    ensure!(output.code == 6, "exit code {}: {}", output.code, output.err);
    let plan: Value = serde_json::from_str(&output.out)?;
    let steps = plan["steps"].as_array().context("steps")?;
    // A pod that can never be evicted is no step of the plan.
    for step in steps {
        let answer = (&step["dryRunResult"], &step["asPlanned"]);
        ensure!(answer == (&json!("budgetExhausted"), &json!(true)), "{step}");
        ensure!(step["dryRunMessage"].as_str().is_some_and(|text| text.contains("web needs 6")), "{step}");
    }
    ensure!(steps.len() == 6, "{} steps", steps.len());
    ensure!(evictions_requested(plane)? == before + 1 + steps.len(), "each is validated once");
    let now = of_app(&client, "web").await?;
    ensure!(now.iter().map(ResourceExt::uid).eq(web.iter().map(ResourceExt::uid)), "it was not a dry run");
    Ok(())
}

/// Scenario 4: One of two nodes to cordon does not exist: nothing is written, and the command fails.
/// Scenario 6: A user who may not patch nodes cordons a node: the command fails (kubectl exits with 0).
pub async fn a_cordon_without_permission_or_of_a_missing_node_fails(plane: &mut Plane) -> Result<()> {
    let _kubelets = start_cluster(plane, &ClusterSize::SMALL).await?;
    plane.grant(OPERATOR, &[super::cluster::reads()]).await?;
    let shell = UserShell::new(plane.kubeconfig(OPERATOR)?);
    for line in [&["cordon", "a1", "--enforce", "--yes"][..], &["cordon", "a1", "--dry-run=server"]] {
        let output = shell.run(line).await;
        ensure!(output.code == 9, "{line:?}: exit code {}: {}", output.code, output.err);
        ensure!(output.err.contains("nodes"), "{}", output.err);
    }
    let output = shell.run(&["cordon", "a1", "gone", "--enforce", "--yes"]).await;
    ensure!(output.code == 1 && output.err.contains("gone"), "exit code {}: {}", output.code, output.err);
    ensure!(!nodes(&plane.client()).await?.iter().any(is_cordoned));
    Ok(())
}

/// Scenario 62: A ReplicaSet and a Job replace an evicted pod at once, a StatefulSet once the old pod is gone.
pub async fn replacements_are_created_immediately_but_a_statefulsets_when_the_old_pod_is_gone(
    plane: &mut Plane,
) -> Result<()> {
    let _kubelets = start_cluster(plane, &ClusterSize::SMALL).await?;
    let client = plane.client();
    for (kind, version, plural, more) in [
        ("ReplicaSet", "apps/v1", "replicasets", json!({"replicas": 1})),
        ("StatefulSet", "apps/v1", "statefulsets", json!({"replicas": 1, "serviceName": "none"})),
        ("Job", "batch/v1", "jobs", json!({})),
    ] {
        let name = kind.to_lowercase();
        let labels = json!({"app": name});
        let mut spec = more;
        spec["template"] = json!({
            "metadata": {"labels": labels, "finalizers": ["kordon.test/hold"]},
            "spec": {"restartPolicy": if kind == "Job" { "Never" } else { "Always" },
                "terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "img"}]},
        });
        if kind != "Job" {
            spec["selector"] = json!({"matchLabels": labels});
        }
        let (group, version) = version.split_once('/').context("a group")?;
        let resource = ApiResource {
            group: group.into(),
            version: version.into(),
            api_version: format!("{group}/{version}"),
            kind: kind.into(),
            plural: plural.into(),
        };
        let object = json!({"apiVersion": resource.api_version, "kind": kind, "metadata": {"name": name}, "spec": spec});
        Api::<DynamicObject>::namespaced_with(client.clone(), "default", &resource)
            .create(&PostParams::default(), &serde_json::from_value(object)?)
            .await?;
    }
    let mut old = Vec::new();
    for app in ["replicaset", "statefulset", "job"] {
        let pod = eventually("a pod that runs", Span::from_secs(30), async || {
            Ok(of_app(&client, app).await?.into_iter().find(is_ready))
        })
        .await?;
        let answer = evict(&client, &pod, DryRun::Off).await;
        ensure!(answer == RequestOutcome::Done, "{app}: {answer:?}");
        old.push(pod);
    }
    for app in ["replicaset", "job"] {
        eventually("a replacement beside the old pod", Span::from_secs(30), async || {
            Ok((of_app(&client, app).await?.len() == 2).then_some(()))
        })
        .await?;
    }
    let held = of_app(&client, "statefulset").await?;
    ensure!(held.len() == 1 && held[0].uid() == old[1].uid(), "the StatefulSet did not wait");
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    Api::<Pod>::namespaced(client.clone(), "default")
        .patch(&old[1].name_any(), &PatchParams::default(), &release)
        .await?;
    eventually("the replacement of a StatefulSet's pod", Span::from_secs(30), async || {
        let now = of_app(&client, "statefulset").await?;
        Ok(now.first().is_some_and(|pod| pod.uid() != old[1].uid()).then_some(()))
    })
    .await
}

/// While a quota is used up, the replacement of an evicted pod is refused until the old pod no longer counts. A later
/// retry of the controller creates the replacement, as the plan says (docs/reference/plan.md#resourcequota).
pub async fn a_quota_refuses_replacements_until_the_old_pods_are_gone(plane: &mut Plane) -> Result<()> {
    let kubelets = start_cluster(plane, &ClusterSize::PATIENT).await?;
    plane.grant(OPERATOR, &may_drain()).await?;
    let client = plane.client();
    let all = pods(&client).await?.len().to_string();
    let quotas = Api::<ResourceQuota>::namespaced(client.clone(), "default");
    let quota = json!({"metadata": {"name": "full"}, "spec": {"hard": {"pods": all}}});
    quotas.create(&PostParams::default(), &serde_json::from_value(quota)?).await?;
    eventually("a quota that is used up", Span::from_secs(20), async || {
        let status = quotas.get("full").await?.status.unwrap_or_default();
        Ok((status.used.is_some() && status.used == status.hard).then_some(()))
    })
    .await?;

    let db = of_app(&client, "db").await?;
    let pod = db.first().context("a pod")?;
    let shell = UserShell::new(plane.kubeconfig(OPERATOR)?);
    let (namespaced, line) = (format!("default/{}", pod.name_any()), ["-o", "json"]);
    let output = shell.run(&[&["plan", "evict", &namespaced][..], &line].concat()).await;
    let plan: Value = serde_json::from_str(&output.out).with_context(|| output.err.clone())?;
    let refusal = &plan["pods"][0]["quotaRefusal"];
    ensure!(refusal["quota"] == "full" && refusal["used"] == all.as_str(), "{refusal}");
    ensure!(refusal["untilSeconds"].as_f64().is_some_and(|until| until > 0.0), "{refusal}");

    // The kubelet is silenced, so that the evicted pod stays until its replacement has been refused. Otherwise the
    // kubelet could end the pod before the controller has acted.
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).context("a pod on a node")?;
    kubelets.silence(node).await?;
    let evicted = kordon_clock::wall();
    let answer = evict(&client, pod, DryRun::Off).await;
    ensure!(answer == RequestOutcome::Done, "{answer:?}");
    let events = Api::<Event>::namespaced(client.clone(), "default");
    eventually("a replacement that is refused", Span::from_secs(20), async || {
        ensure!(of_app(&client, "db").await?.len() <= db.len(), "the replacement was admitted at once");
        let failed = ListParams::default().fields("reason=FailedCreate");
        let events = events.list(&failed).await?.items;
        let names_quota =
            |event: &Event| event.message.as_ref().is_some_and(|text| text.contains("exceeded quota: full"));
        Ok(events.iter().any(names_quota).then_some(()))
    })
    .await?;
    kubelets.come_back(node).await?;
    let gone = eventually("the old pod is gone", Span::from_secs(30), async || {
        let now = of_app(&client, "db").await?;
        Ok(now.iter().all(|now| now.uid() != pod.uid()).then(kordon_clock::wall))
    })
    .await?;
    // The backoff of the controller doubles, so its next attempt is due before twice the elapsed time is over. A busy
    // machine gets 20 s more.
    let within = gone.since(evicted) * 2 + Span::from_secs(20);
    eventually("the replacement", within, async || {
        Ok((of_app(&client, "db").await?.len() == db.len()).then_some(()))
    })
    .await?;
    quotas.delete("full", &DeleteParams::default()).await?;
    Ok(())
}

/// Returns the number of evictions that the operator has requested so far, dry runs included.
fn evictions_requested(plane: &Plane) -> Result<usize> {
    Ok(plane.audit_of(OPERATOR)?.iter().filter(|line| is_eviction(line)).count())
}

async fn evict(client: &Client, pod: &Pod, dry_run: DryRun) -> RequestOutcome {
    let uid = Uid::from(&*pod.uid().unwrap_or_default());
    let named = Key::new(&pod.namespace().unwrap_or_default(), &pod.name_any());
    send_request(
        client,
        &RequestKind::Write(PlanStep::Evict { pod: named, uid, grace: Some(Span::from_secs(1)) }),
        dry_run,
    )
    .await
}

/// Evicts a pod only if it has not changed since it was read. Returns the status code.
async fn evict_as_read(client: &Client, pod: &Pod) -> Result<u16> {
    let name = pod.name_any();
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"},
        "deleteOptions": {"preconditions": {"resourceVersion": pod.resource_version()}}});
    let request = http::Request::post(format!("/api/v1/namespaces/default/pods/{name}/eviction"))
        .header("Content-Type", "application/json")
        .body(serde_json::to_vec(&body)?)?;
    match client.request::<Value>(request).await {
        Ok(_) => Ok(201),
        Err(kube::Error::Api(status)) => Ok(status.code),
        Err(other) => bail!(other),
    }
}

/// Creates a pod without a controller, of the app `lone`.
async fn lone_pod(client: &Client, name: &str, spec: &Value) -> Result<Pod> {
    let mut spec = spec.clone();
    spec["containers"] = json!([{"name": "c", "image": "img"}]);
    spec["terminationGracePeriodSeconds"] = json!(1);
    let pod = json!({"metadata": {"name": name, "labels": {"app": "lone"}}, "spec": spec});
    let pods = Api::<Pod>::namespaced(client.clone(), "default");
    Ok(pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?)
}

async fn of_app(client: &Client, app: &str) -> Result<Vec<Pod>> {
    let mut found = pods(client).await?;
    found.retain(|pod| pod.labels().get("app").is_some_and(|label| label == app));
    Ok(found)
}

async fn status(client: &Client) -> Result<PodDisruptionBudgetStatus> {
    budgets(client).get("web").await?.status.context("a status")
}

/// Waits until the budget `web` allows this many disruptions.
async fn wait_until_allowed(client: &Client, count: i32) -> Result<()> {
    eventually(&format!("a budget that allows {count} disruptions"), Span::from_secs(60), async || {
        Ok((status(client).await?.disruptions_allowed == count).then_some(()))
    })
    .await
}
