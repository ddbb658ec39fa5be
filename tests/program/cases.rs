//! Cases from public reports, as objects of a real control plane at the time of the question. The expected answers are
//! what this control plane did afterwards.

use serde_json::{Value, json};

use super::case_objects::{self, BLOCKED, DONE, FAILED, LOSES, Objects, STALLS, USAGE};
use crate::common::program::Shell;

/// Returns the JSON of a command on the objects of a case.
async fn answer(case: &str, command: &str, code: i32) -> Value {
    Objects::of(case).answer(command, code).await
}

fn verdict(status: &Value) -> (&str, &str) {
    let field = |field: &str| status["verdict"][field].as_str().expect("a text");
    (field("level"), field("text"))
}

/// Returns a field of every pod of a plan, by name of the pod.
fn of_pods(plan: &Value, field: &str) -> Vec<String> {
    let pods = plan["pods"].as_array().expect("pods").iter();
    pods.map(|pod| pod[field].as_str().unwrap_or_default().to_owned()).collect()
}

fn has_warning(plan: &Value, kind: &str) -> bool {
    plan["warnings"].as_array().expect("warnings").iter().any(|warning| warning["type"] == kind)
}

#[tokio::test]
async fn an_operator_moves_the_role_of_its_primary_before_the_budget_lets_it_go() {
    let plan = answer("01-operator-budget-switchover", "plan drain c9-n1", DONE).await;
    assert_eq!(of_pods(&plan, "verdict"), ["leavesAfter"]);
    let leaves = plan["pods"][0]["leaves"]["likelySeconds"].as_f64().expect("a time");
    assert!((11.0..13.0).contains(&leaves), "the role moves after 11 s, as measured: {leaves}");
    let cordon = answer("01-operator-budget-switchover", "plan cordon c9-n1", DONE).await;
    assert!(has_warning(&cordon, "switchover"), "{cordon:#}");
}

/// Karpenter had been trying to drain the node for nine days.
#[tokio::test]
async fn a_drain_by_karpenter_is_told_with_its_age_and_what_holds_it() {
    let case = "11-foreign-drain-karpenter";
    let status = answer(case, "status", DONE).await;
    let (level, text) = verdict(&status);
    assert_eq!(level, "warning");
    assert!(text.contains("3 drains blocked by PodDisruptionBudgets, up to 8d23h"), "{text}");
    let node = &status["nodes"][0];
    assert_eq!(
        (node["state"].as_str(), node["name"].as_str()),
        (Some("Draining"), Some("c11-n1")),
        "{node:#}"
    );
    let why = answer(case, "why node c11-n1", DONE).await.to_string();
    let step =
        "drain by Karpenter (taint karpenter.sh/disrupted) blocked by PodDisruptionBudget c11/db1-primary";
    assert!(why.contains(step), "{why}");
    let table = Objects::of(case).table("status").await;
    assert!(table.contains("Draining by Karpenter 8d23h"), "{table}");
}

/// Each drain waited for the other until c5-b was uncordoned. The Pending pod then ran on c5-b 2 s later, and c5-a was
/// drained after 1.3 s.
#[tokio::test]
async fn drains_that_wait_for_each_other_are_named_with_the_way_out() {
    let case = "08-drains-block-each-other";
    let plan = answer(case, "plan drain c5-a", STALLS).await;
    let pod = plan["pods"][0]["text"].as_str().expect("a text");
    assert!(pod.contains("Pending: c5/kas-545b849f84-mrghr"), "{pod}");
    assert!(has_warning(&plan, "waitsForUncordon"), "{plan:#}");
    let advice = "uncordon c5-b until c5-a is drained: one node at a time";
    let warnings = plan["warnings"].to_string();
    assert!(warnings.contains("drains of c5-a and c5-b wait for each other"), "{warnings}");
    assert!(warnings.contains(advice), "{warnings}");
    let why = answer(case, "why node c5-a", DONE).await;
    let steps = why["steps"].to_string();
    assert!(steps.contains("c5/kas-545b849f84-mrghr is Pending and fits c5-b without its cordon"), "{steps}");
    assert_eq!(why["actions"][0]["command"], "kubectl uncordon c5-b");
    let status = answer(case, "status", DONE).await;
    let (level, text) = verdict(&status);
    assert_eq!(level, "warning");
    assert!(text.contains("drains of c5-a and c5-b wait for each other"), "{text}");
    let uncordoned = answer(case, "plan uncordon c5-b", DONE).await;
    assert_eq!(uncordoned["arrivals"][0]["node"], "c5-b", "{uncordoned:#}");
}

/// If no node has room for a Pending pod even without a cordon, this pod is no reason to uncordon a node.
#[tokio::test]
async fn a_drain_that_waits_for_a_pod_without_any_node_is_told_to_uncordon_none() {
    let mut objects = Objects::of("08-drains-block-each-other");
    objects.named("Node", "c5-b")["status"]["allocatable"]["pods"] = json!("0");
    let plan = objects.answer("plan drain c5-a", STALLS).await;
    assert!(!has_warning(&plan, "waitsForUncordon"), "{plan:#}");
    assert!(plan["pods"][0]["text"].to_string().contains("Pending: c5/kas"), "{plan:#}");
}

/// A pod that fits an open node, or that has a scheduling gate, does not wait for an uncordon.
#[tokio::test]
async fn a_pod_that_waits_for_something_else_than_an_uncordon_is_no_reason_to_uncordon_a_node() {
    let case = "08-drains-block-each-other";
    let mut objects = Objects::of(case);
    objects.named("Pod", "kas-545b849f84-mrghr")["spec"]["schedulingGates"] =
        json!([{"name": "example.com/wait"}]);
    let plan = objects.answer("plan drain c5-a", STALLS).await;
    assert!(!has_warning(&plan, "waitsForUncordon"), "gated: {plan:#}");
    let mut objects = Objects::of(case);
    let mut open = objects.named("Node", "c5-b").clone();
    open["metadata"]["name"] = "c5-open".into();
    open["metadata"]["uid"] = "c5-open".into();
    open["metadata"]["labels"]["kubernetes.io/hostname"] = "c5-open".into();
    open["spec"] = json!({});
    objects.0.push(open);
    let plan = objects.answer("plan drain c5-a", STALLS).await;
    assert!(!has_warning(&plan, "waitsForUncordon"), "c5-open has room: {plan:#}");
}

#[tokio::test]
async fn the_cause_of_a_pending_pod_is_stated_for_the_pod_and_for_its_budget() {
    let objects = Objects::of("08-drains-block-each-other");
    let why = objects.answer("why pod kas-545b849f84-mrghr -n c5", DONE).await["steps"].to_string();
    assert!(why.contains("Pending: "), "{why}");
    let plan = objects.answer("plan drain c5-a", STALLS).await;
    let text = plan["pods"][0]["text"].as_str().expect("a text");
    assert!(text.contains("Pending: c5/kas-545b849f84-mrghr ("), "{text}");
}

/// Every eviction failed with status 500.
#[tokio::test]
async fn two_budgets_over_one_pod_fail_its_eviction_whatever_happens() {
    let why = answer("05-two-budgets-why", "why pod web-6bdcc6b974-mkj9n -n c3", DONE).await.to_string();
    assert!(why.contains("more than one PodDisruptionBudget: c3/by-app, c3/by-tier"), "{why}");
    assert!(!why.contains("wait until its budget allows"), "{why}");
}

#[tokio::test]
async fn a_pod_in_a_crash_loop_is_never_counted_on() {
    let plan = answer("06-crashloop-under-budget", "plan drain c4x-n2", BLOCKED).await;
    let text = plan["pods"][0]["text"].as_str().expect("a text");
    assert!(text.contains("CrashLoopBackOff") && text.contains("AlwaysAllow"), "{text}");
}

#[tokio::test]
async fn evictions_fail_a_job_without_back_off() {
    let plan = answer("13-job-backoff-limit-0", "plan drain c12b-n1", LOSES).await;
    assert_eq!((of_pods(&plan, "outcome"), &plan["totals"]["lost"]), (vec!["failsJob".into(); 3], &3.into()));
    let text = plan["pods"][0]["outcomeText"].as_str().expect("a text");
    assert!(text.starts_with("fails Job train (BackoffLimitExceeded"), "{text}");
    assert!(has_warning(&plan, "jobFails"));
}

/// Budgets decide whether pods leave, not what becomes of them then.
#[tokio::test]
async fn explanations_name_the_budgets_that_files_lack() {
    let mut objects = Objects::of("05-two-budgets-why");
    objects.without("PodDisruptionBudget", "");
    let pod = objects.named("Pod", "web")["metadata"]["name"].as_str().expect("a name").to_owned();
    let unknown = "whether a PodDisruptionBudget blocks an eviction is unknown: budgets are not in the files";
    let of_pod = objects.partial(&["why", "pod", &pod, "-n", "c3", "-o", "json"]).await;
    assert!(of_pod.to_string().contains(unknown), "{of_pod:#}");
    let of_node =
        async |objects: &Objects| objects.partial(&["why", "node", "c3-n1", "-o", "json"]).await.to_string();
    assert!(!of_node(&objects).await.contains(unknown), "nobody evicts its pods");
    objects.named("Node", "c3-n1")["spec"]["unschedulable"] = true.into();
    assert!(of_node(&objects).await.contains(unknown));
}

#[tokio::test]
async fn files_without_budgets_leave_open_only_whether_pods_leave() {
    for (case, drain, outcome, text) in [
        ("13-job-backoff-limit-0", "c12b-n1", "failsJob", "BackoffLimitExceeded"),
        ("14-job-indexed", "c12c-n1", "failsJob", "FailedIndexes"),
        ("18-template-names-node", "c14-n1", "sameNode", "c14-n1"),
        ("33-spread-help-honor", "c27b-b1", "pending", "Pending"),
    ] {
        let plan = Objects::of(case).partial(&["plan", "drain", drain, "-o", "json"]).await;
        for pod in plan["pods"].as_array().expect("pods") {
            assert_eq!(
                (&pod["verdict"], &pod["outcome"]),
                (&json!("undecided"), &json!("unknown")),
                "{pod:#}"
            );
            assert_eq!(pod["ifItLeaves"]["outcome"], outcome, "{case}: {pod:#}");
        }
        let found = plan["pods"][0]["ifItLeaves"]["outcomeText"].as_str().expect("a text");
        assert!(found.contains(text), "{case}: {found}");
    }
    let objects = Objects::of("33-spread-help-honor");
    let plan = objects.partial(&["plan", "drain", "c27b-b1", "-o", "json"]).await;
    assert!(
        plan["pods"][0]["ifItLeaves"]["help"].to_string().contains("nodeTaintsPolicy: Honor"),
        "{plan:#}"
    );
}

/// CronJobs are read once one of their Jobs runs, with and without placements.
#[tokio::test]
async fn the_cron_job_of_a_job_that_fails_says_whether_another_job_starts() {
    let mut objects = Objects::of("13-job-backoff-limit-0");
    objects.named("Job", "train")["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "u", "controller": true,
    }]);
    let drain = "plan drain c12b-n1";
    let plan = objects.answer(drain, LOSES).await;
    let says = |plan: &Value, text: &str| assert!(plan["warnings"].to_string().contains(text), "{plan:#}");
    says(&plan, "unless it is suspended, CronJob nightly starts another Job at its next time");
    objects.0.push(json!({"apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "c12-b-limit0", "uid": "u"},
        "spec": {"schedule": "0 3 * * *", "suspend": true}}));
    for placement in ["", " --placement=skip"] {
        let (_, plan) = objects.run(&format!("{drain}{placement}")).await;
        says(&plan, "CronJob nightly is suspended and starts no other Job");
    }
}

#[tokio::test]
async fn evictions_fail_all_indexes_of_a_job_and_with_them_the_job() {
    let plan = answer("14-job-indexed", "plan drain c12c-n1", LOSES).await;
    assert_eq!((of_pods(&plan, "outcome"), &plan["totals"]["lost"]), (vec!["failsJob".into(); 3], &3.into()));
    let text = plan["pods"][0]["outcomeText"].as_str().expect("a text");
    assert!(text.contains("FailedIndexes"), "{text}");
}

#[tokio::test]
async fn nothing_is_promised_for_owners_that_decide_themselves() {
    let plan = answer("17-unknown-owners", "plan drain c13-n1", LOSES).await;
    let pods = of_pods(&plan, "pod").into_iter().zip(of_pods(&plan, "outcome")).collect::<Vec<_>>();
    let expected = [
        ("db-1", "moves"),
        ("kafka-0", "moves"),
        ("run-pod", "lost"),
        ("virt-launcher-vm1", "unknown"),
        ("wf-step-1", "lost"),
    ];
    assert_eq!(pods, expected.map(|(pod, outcome)| (pod.into(), outcome.into())));
    for place in [0, 1] {
        let pod = &plan["pods"][place];
        let (gone, ready) = (&pod["deleted"]["likelySeconds"], &pod["readyAgainInSeconds"]);
        assert!(ready.as_f64() > gone.as_f64(), "it cannot be back before the old object is gone: {pod:#}");
        let warnings = pod["warnings"].as_array().expect("a list");
        assert!(warnings.contains(&json!("operatorRecreates")), "{warnings:?}");
    }
    let table = Objects::of("17-unknown-owners").table("plan drain c13-n1").await;
    assert!(table.contains("c13-n2 (the only feasible node), if its operator recreates it"), "{table}");
    assert!(table.contains("its operator is assumed to recreate it"), "{table}");
    assert!(!table.contains("operatorRecreates"), "{table}");
}

#[tokio::test]
async fn a_template_that_names_the_node_brings_its_pods_back() {
    let plan = answer("18-template-names-node", "plan drain c14-n1", STALLS).await;
    assert_eq!(of_pods(&plan, "landingNode"), ["c14-n1", "c14-n1"]);
    assert!(has_warning(&plan, "comesBack"), "{plan:#}");
    assert!(plan["warnings"].to_string().contains("2 pods come back at once, because their template names"));
    let mut objects = Objects::of("18-template-names-node");
    objects.without("Pod", "pinned-cc5c7c66-zg58z");
    for kind in ["Deployment", "ReplicaSet"] {
        objects.named(kind, "pinned")["spec"]["replicas"] = 1.into();
    }
    let warnings = objects.answer("plan drain c14-n1", STALLS).await["warnings"].to_string();
    assert!(warnings.contains("1 pod comes back at once, because its template names the node"), "{warnings}");
}

/// Unlike a drain, a taint has no `--force` that accepts the loss.
#[tokio::test]
async fn a_taint_that_evicts_a_pod_without_a_controller_loses_it() {
    let mut objects = Objects::of("18-template-names-node");
    for item in objects.0.iter_mut().filter(|item| item["kind"] == "Pod") {
        item["metadata"].as_object_mut().expect("metadata").remove("ownerReferences");
    }
    for command in ["plan taint nodes c14-n1 a=b:NoExecute", "plan delete node c14-n1"] {
        let plan = objects.answer(command, LOSES).await;
        assert_eq!(plan["totals"]["lost"], 2, "{command}: {:#}", plan["totals"]);
    }
    objects.answer("plan drain c14-n1 --force", DONE).await;
}

#[tokio::test]
async fn a_taint_does_not_evict_for_good_from_a_node_that_the_template_names() {
    let mut objects = Objects::of("18-template-names-node");
    let both = |word: &str| vec![word.to_owned(); 2];
    let command = "plan taint nodes c14-n1 a=b:NoExecute";
    let plan = objects.answer(command, STALLS).await;
    assert!(has_warning(&plan, "evictedAgain"), "{plan:#}");
    assert_eq!((of_pods(&plan, "outcome"), of_pods(&plan, "landing")), (both("stuck"), both("rejected")));
    assert_eq!(plan["totals"]["pending"], 0, "{:#}", plan["totals"]);
    let table = objects.table(command).await;
    assert!(table.contains("whose kubelet rejects it: untolerated taints"), "{table}");
    assert!(!table.contains("Pending"), "{table}");
    let taint =
        json!([{"key": "a", "value": "b", "effect": "NoExecute", "timeAdded": "2026-11-27T16:00:00Z"}]);
    objects.named("Node", "c14-n1")["spec"]["taints"] = taint;
    let forecast = objects.answer("forecast", DONE).await;
    assert_eq!(forecast["loops"][0]["workload"], "pinned", "{:#}", forecast["loops"]);
}

/// The pods have a grace period of 30 s, and kubelets likely end them in 5 s.
#[tokio::test]
async fn a_drain_whose_timeout_is_too_short_says_what_is_still_leaving() {
    let plan = answer("18-template-names-node", "plan drain c14-n1 --timeout 3s", STALLS).await;
    let drain = &plan["nodes"][0]["drain"];
    assert_eq!(drain["remaining"], 2);
    let ends = |window: &Value| (window["likelySeconds"].as_f64(), window["latestSeconds"].as_f64());
    assert_eq!(ends(&drain["ends"]), (Some(3.0), Some(3.0)), "{drain:#}");
    assert_eq!(ends(&plan["totals"]["ends"]), (Some(3.0), Some(3.0)), "{:#}", plan["totals"]);
    let deleted: Vec<_> =
        plan["pods"].as_array().expect("pods").iter().map(|pod| &pod["timesOutInSeconds"]).collect();
    assert_eq!(deleted, [3.0, 3.0]);
}

#[tokio::test]
async fn a_planned_cordon_is_a_taint_for_spread_constraints() {
    let plan = answer("32-spread-honor-cordon", "plan drain c27c-b1", DONE).await;
    let node = of_pods(&plan, "landingNode").remove(0);
    assert!(node.starts_with("c27c-a") || node.starts_with("c27c-c"), "{node}");
}

#[tokio::test]
async fn help_for_spread_constraints_names_the_taints_policy() {
    let plan = answer("33-spread-help-honor", "plan drain c27b-b1", DONE).await;
    assert_eq!(of_pods(&plan, "outcome"), ["pending"]);
    let help = plan["pods"][0]["placement"]["help"].as_array().expect("help");
    assert!(help[0].as_str().is_some_and(|help| help.contains("nodeTaintsPolicy: Honor")), "{help:?}");
    assert!(help.iter().all(|help| !help.as_str().expect("a text").contains("needs a node")), "{help:?}");
}

#[tokio::test]
async fn a_changed_deployment_is_tried_before_anybody_applies_it() {
    let file = case_objects::file("33-spread-help-honor");
    let mut deployment = Objects::of("33-spread-help-honor").named("Deployment", "").clone();
    deployment["spec"]["template"]["spec"]["topologySpreadConstraints"][0]["nodeTaintsPolicy"] =
        "Honor".into();
    let shell = Shell::new();
    let with = shell.file("with.json", &deployment.to_string());
    let file = file.to_str().expect("a path in UTF-8");
    let words = ["plan", "drain", "c27b-b1", "--from", file, "--complete", "--with", &with, "-o", "json"];
    let output = shell.run(&words).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    assert!(output.err.contains("is changed: its template, not the pods that run"), "{}", output.err);
    let plan = output.json();
    assert_eq!(of_pods(&plan, "outcome"), ["moves"], "{plan:#}");
}

#[tokio::test]
async fn the_dashboard_shows_files_with_a_clock_that_stands() {
    let file = case_objects::file("32-spread-honor-cordon");
    let file = file.to_str().expect("a path in UTF-8");
    let shell = Shell::new();
    let frame = shell.file("frame.txt", "");
    let words = ["--from", file, "--snapshot", &frame, "--size", "200x40", "--after", "2s"];
    let output = shell.run(&words).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    let frame = std::fs::read_to_string(&frame).expect("a frame");
    assert!(frame.contains("c27c-b1") && frame.contains("READ-ONLY"), "{frame}");
    assert!(
        frame.contains(" kinds not in the files (i)") && frame.contains(" leases not in the files "),
        "{frame}"
    );
    assert!(!frame.contains("permission") && !frame.contains("forbidden"), "{frame}");
    let of_namespace = shell.file("namespace.txt", "");
    let words =
        ["--from", file, "-n", "c27c", "--snapshot", &of_namespace, "--size", "200x40", "--after", "2s"];
    assert_eq!(shell.run(&words).await.code, DONE);
    let frame = std::fs::read_to_string(&of_namespace).expect("a frame");
    assert!(frame.contains("only pods and budgets of c27c"), "{frame}");
}

#[tokio::test]
async fn files_are_read_only_and_what_they_lack_is_named() {
    let file = case_objects::file("39-finished-pod-drain");
    let file = file.to_str().expect("a path in UTF-8");
    let shell = Shell::new();
    let error = shell.refused(&["drain", "e1-n1", "--from", file, "--enforce", "--yes"], USAGE).await;
    assert!(error.contains("--from and --with write nothing"), "{error}");
    for words in [&["drain", "e1-n1"][..], &["cordon", "e1-n1"], &["undo", "x"]] {
        let error = shell.refused(&[words, &["--from", file, "--enforce"]].concat(), USAGE).await;
        assert!(error.contains("--from and --with write nothing"), "not that --yes is missing: {error}");
    }
    let other = file.replace("39-finished-pod-drain", "32-spread-honor-cordon");
    let output = shell.run(&["plan", "drain", "c27c-b1", "--from", &other]).await;
    assert!(output.out.contains("budgets are not in the files"), "{}", output.out);
    let error = shell.refused(&["status", "--from", "/nowhere"], FAILED).await;
    assert!(error.contains("/nowhere"), "{error}");
}

#[tokio::test]
async fn a_finished_pod_leaves_at_once_and_is_not_replaced() {
    let plan = answer("39-finished-pod-drain", "plan drain e1-n1", DONE).await;
    assert_eq!(of_pods(&plan, "outcome"), ["finished"]);
    let ends = &plan["totals"]["ends"];
    assert!(ends["likelySeconds"].as_f64() <= ends["latestSeconds"].as_f64(), "{ends}");
    assert!(ends["likelySeconds"].as_f64().is_some_and(|seconds| seconds < 1.0), "{ends}");
    let why = answer("39-finished-pod-drain", "why node e1-n1 --placement", DONE).await;
    let drain = why["actions"].as_array().expect("actions").iter().find(|action| action["action"] == "drain");
    let drain = drain.unwrap_or_else(|| panic!("{why:#}"));
    assert_eq!(drain["effect"], "1 pod leaves: 1 finished; ends immediately");
}

#[tokio::test]
async fn the_parts_in_the_headline_of_a_plan_add_up_to_its_pods() {
    let mut headlines = Vec::new();
    for family in ["budgets", "health", "held", "losses", "places", "volumes"] {
        let objects = Objects::of(&format!("audit-{family}"));
        let nodes = objects.0.iter().filter(|object| object["kind"] == "Node");
        let nodes: Vec<&str> = nodes.filter_map(|node| node["metadata"]["name"].as_str()).collect();
        for flags in ["", " --force --delete-emptydir-data", " --surge"] {
            let command = format!("plan drain {}{flags}", nodes.join(" "));
            let table = objects.table(&command).await;
            let headline = table.lines().find_map(|line| Some((line, headline(line)?)));
            let (line, (pods, parts)) = headline.unwrap_or_else(|| panic!("{command}\n{table}"));
            assert_eq!(pods, parts, "{command}: {line}");
            headlines.push(line.to_owned());
        }
    }
    let has = |text: &str| headlines.iter().any(|line| line.contains(text));
    assert!(has(" refused") && has(" lost"), "{headlines:#?}");
}

/// Returns the number of pods in the headline of a plan, and the sum of its parts: 4 and 4 for
/// `4 pods: 3 leave now, 1 refused; 1 lost`. `None` for other lines.
fn headline(line: &str) -> Option<(usize, usize)> {
    let (pods, parts) = line.split_once(" pods: ").or_else(|| line.split_once(" pod: "))?;
    let (parts, _) = parts.split_once("; ").unwrap_or((parts, ""));
    let number = |part: &str| -> Option<usize> { part.split(' ').next()?.parse().ok() };
    Some((pods.parse().ok()?, parts.split(", ").filter_map(number).sum()))
}

#[tokio::test]
async fn deleted_nodes_and_the_removal_of_their_pods_are_the_verdict() {
    let status = answer("28-all-nodes-deleted", "status", DONE).await;
    let (level, text) = verdict(&status);
    assert_eq!(level, "warning", "{text}");
    assert!(
        text.starts_with(
            "3 of 4 nodes were deleted: all 3 pods of web are removed by force in 1m20s at the latest unless the nodes \
             register before"
        ),
        "{text}"
    );
    assert!(!text.contains("to be evicted"), "{text}");
}

/// kubernetes 1.37.1 `pkg/controller/podgc/gc_controller.go`, `gcOrphaned`: the quarantine of a missing node begins
/// when the controller notices it. Objects do not show when that was.
#[tokio::test]
async fn the_time_for_the_pods_of_a_deleted_node_is_the_same_everywhere() {
    let objects = Objects::of("28-all-nodes-deleted");
    let node = objects.answer("why node c25-n1", DONE).await["steps"].to_string();
    let when = "40s to 1m20s after the node went; when it went is not known, so this is the latest time";
    assert!(node.contains(when), "{node}");
    let forecast = objects.answer("forecast", DONE).await;
    let removed = forecast["steps"].as_array().expect("steps").iter().find(|step| step["type"] == "remove");
    let removed = removed.unwrap_or_else(|| panic!("{forecast:#}"));
    assert_eq!(removed["inSeconds"].as_f64(), Some(80.0), "{removed:#}");
    let text = removed["why"].to_string();
    assert!(text.contains("when it went is not known, so this is the latest time"), "{text}");
    let pod = objects.answer("why pod c25/web-5467bf5d7b-4bh2r", DONE).await["actions"].to_string();
    assert!(pod.contains("removes it, 40s to 1m20s after its node was deleted"), "{pod}");
}

#[tokio::test]
async fn a_node_that_was_deleted_with_some_pods_of_a_workload_says_so() {
    let mut objects = Objects::of("28-all-nodes-deleted");
    for item in &mut objects.0 {
        if item["kind"] == "Pod" && item["spec"]["nodeName"] != "c25-n1" {
            item["spec"]["nodeName"] = "c25-cp".into();
        }
    }
    let status = objects.answer("status", DONE).await;
    let text = verdict(&status).1;
    assert!(text.starts_with("1 of 2 nodes was deleted: 1 pod of web is removed by force in "), "{text}");
}

#[tokio::test]
async fn a_workload_that_runs_nowhere_is_a_warning_although_all_nodes_are_ready() {
    let mut objects = Objects::of("28-all-nodes-deleted");
    for item in &mut objects.0 {
        if item["kind"] == "Pod" {
            item["spec"].as_object_mut().expect("a spec").remove("nodeName");
            let condition = json!({
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/1 nodes are available: 1 node(s) had untolerated taint(s).",
                "lastTransitionTime": "2026-11-27T17:19:30Z",
            });
            item["status"] = json!({"phase": "Pending", "conditions": [condition]});
        }
    }
    let status = objects.answer("status", DONE).await;
    let (level, text) = verdict(&status);
    assert_eq!(level, "warning", "{text}");
    assert!(text.starts_with("3 pods Pending"), "{text}");
    assert!(text.contains("web has no running pod"), "{text}");
    objects.without("Pod", "");
    let status = objects.answer("status", DONE).await;
    assert_eq!(verdict(&status), ("warning", "web has no running pod"));
}

/// The pods of the case were created at 17:19:33 at the latest, and its clock stands at 17:19:35.
#[tokio::test]
async fn pods_that_never_start_do_not_run() {
    let mut objects = Objects::of("28-all-nodes-deleted");
    for item in &mut objects.0 {
        if item["kind"] == "Pod" {
            item["spec"]["nodeName"] = "c25-cp".into();
            item["status"] = json!({"phase": "Pending"});
        }
    }
    let text = |status: &Value| verdict(status).1.to_owned();
    let status = objects.answer("status", DONE).await;
    assert!(!text(&status).contains("web has no running pod"), "they start: {}", text(&status));
    for item in objects.0.iter_mut().filter(|item| item["kind"] == "Pod") {
        item["metadata"]["creationTimestamp"] = "2026-11-27T17:05:00Z".into();
    }
    let status = objects.answer("status", DONE).await;
    assert!(text(&status).contains("web has no running pod"), "{}", text(&status));
    for item in objects.0.iter_mut().filter(|item| item["kind"] == "Pod") {
        item["metadata"]["creationTimestamp"] = "2026-11-27T17:19:30Z".into();
        item["status"]["containerStatuses"] = json!([{"name": "c", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": "ImagePullBackOff"}}}]);
        item["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet".into();
    }
    for item in objects.0.iter_mut().filter(|item| item["kind"] == "ReplicaSet") {
        item["kind"] = "DaemonSet".into();
        item["metadata"].as_object_mut().expect("metadata").remove("ownerReferences");
    }
    objects.without("Deployment", "");
    let status = objects.answer("status", DONE).await;
    assert!(text(&status).contains("has no running pod"), "of a DaemonSet: {}", text(&status));
}

#[tokio::test]
async fn pods_that_a_node_rejects_and_that_come_back_are_a_loop() {
    let objects = Objects::of("19-pressure-loop");
    let looping = "pods of pinned are evicted from c14p-n1 (DiskPressure) and come back: 30 in the last minute, about 17400 an hour";
    let status = objects.answer("status", DONE).await;
    let (level, text) = verdict(&status);
    assert_eq!(level, "warning", "{text}");
    assert!(text.contains(looping), "{text}");
    assert_eq!(status["nodes"][0]["pods"], 2, "finished pods are not counted: {:#}", status["nodes"][0]);
    for command in ["forecast", "departures"] {
        let answer = objects.answer(command, DONE).await;
        assert_eq!(answer["loops"][0]["text"], looping, "{command}: {:#}", answer["loops"]);
        assert_eq!(
            (&answer["loops"][0]["workload"], &answer["loops"][0]["lastMinute"]),
            (&json!("pinned"), &json!(30))
        );
    }
    let departures = objects.answer("departures", DONE).await;
    assert_eq!(departures["departures"].as_array().map(Vec::len), Some(30), "JSON lists each departure");
    let table = objects.table("departures").await;
    assert!(table.contains(" and 29 more"), "{table}");
    let why = objects.answer("why node c14p-n1", DONE).await;
    assert!(why["steps"].to_string().contains(looping), "{:#}", why["steps"]);
}

/// A DaemonSet deletes a failed pod before it creates another, so there is never more than one. Its back-off grows to
/// 15 minutes (Kubernetes 1.37 `pkg/controller/daemon/daemon_controller.go`, `podsShouldBeOnNode`).
#[tokio::test]
async fn one_rejected_pod_is_a_loop_while_no_other_node_may_run_its_replacement() {
    let mut objects = Objects::of("19-pressure-loop");
    objects
        .0
        .retain(|object| object["kind"] != "Pod" || object["metadata"]["name"] == "pinned-78b95fb48-2hg9p");
    let loops = async |objects: &Objects| objects.answer("forecast", DONE).await["loops"].clone();
    let text = |workload: &str, rate: &str| {
        format!(
            "pods of {workload} are evicted from c14p-n1 (DiskPressure) and come back: 1 in the last minute, {rate}"
        )
    };
    assert_eq!(loops(&objects).await[0]["text"], text("pinned", "without a pause"));
    let mut template = objects.named("ReplicaSet", "pinned")["spec"]["template"].clone();
    template["spec"].as_object_mut().expect("a spec").remove("nodeName");
    objects.0.push(json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "c14p", "uid": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "pinned"}}, "template": template}}));
    let owner = &mut objects.named("Pod", "pinned")["metadata"]["ownerReferences"][0];
    (owner["kind"], owner["name"], owner["uid"]) = ("DaemonSet".into(), "agent".into(), "agent".into());
    assert_eq!(loops(&objects).await[0]["text"], text("agent", "about 4 an hour"));
    for condition in objects.named("Node", "c14p-n1")["status"]["conditions"].as_array_mut().expect("a list")
    {
        let status = if condition["type"] == "Ready" { "True" } else { "False" };
        condition["status"] = status.into();
    }
    assert_eq!(loops(&objects).await, json!([]));
}

/// A pod that tolerates a taint for ten seconds may land on the tainted node again: the scheduler does not read
/// `tolerationSeconds`.
#[tokio::test]
async fn a_taint_tolerated_for_a_while_is_a_loop_before_its_first_eviction() {
    let mut objects = Objects::of("19-pressure-loop");
    let tolerations =
        json!([{"key": "maint", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10}]);
    let taint = json!([{"key": "maint", "effect": "NoExecute", "timeAdded": "2026-11-27T17:18:50Z"}]);
    let node = objects.named("Node", "c14p-n1");
    node["spec"]["taints"] = taint.clone();
    node["status"]["conditions"]
        .as_array_mut()
        .expect("a list")
        .retain(|condition| condition["type"] == "Ready");
    node["metadata"]["labels"]["kubernetes.io/hostname"] = "c14p-n1".into();
    for kind in ["Deployment", "ReplicaSet"] {
        let template = &mut objects.named(kind, "pinned")["spec"]["template"]["spec"];
        template.as_object_mut().expect("a spec").remove("nodeName");
        template["nodeSelector"] = json!({"kubernetes.io/hostname": "c14p-n1"});
        template["tolerations"] = tolerations.clone();
    }
    let mut kept = 0;
    objects.0.retain(|object| {
        object["kind"] != "Pod" || {
            kept += 1;
            kept <= 2
        }
    });
    for pod in objects.0.iter_mut().filter(|object| object["kind"] == "Pod") {
        pod["spec"]["tolerations"] = tolerations.clone();
        pod["metadata"]["creationTimestamp"] = "2026-11-27T17:18:44Z".into();
        pod["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    }
    let forecast = objects.answer("forecast", DONE).await;
    assert_eq!(forecast["totals"]["outcomes"], json!({"sameNode": 2}), "{:#}", forecast["totals"]);
    let looping = "pods of pinned are evicted from c14p-n1 (taint maint) and come back: about 720 an hour";
    assert_eq!(forecast["loops"][0]["text"], looping, "{:#}", forecast["loops"]);
    assert!(objects.table("forecast").await.contains("pods deleted, each counted once"));
    objects.named("Node", "c14p-n1")["spec"].as_object_mut().expect("a spec").remove("taints");
    let plan = objects.answer("plan taint nodes c14p-n1 maint=x:NoExecute", STALLS).await;
    assert!(has_warning(&plan, "evictedAgain"), "{plan:#}");
    assert!(plan["warnings"].to_string().contains("evicts again and again: about 720 an hour"), "{plan:#}");
    objects.named("Node", "c14p-n1")["spec"]["taints"] = taint;
    let status = objects.answer("status", DONE).await;
    assert!(verdict(&status).1.contains(looping), "{}", verdict(&status).1);
    assert_eq!(status["evictions"][0]["outcomeText"], "→ back to c14p-n1");
    // A StatefulSet waits until the old pod has terminated, which takes about 5 s.
    let template = objects.named("ReplicaSet", "pinned")["spec"]["template"].clone();
    objects.0.push(json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "c14p", "uid": "db"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "pinned"}}, "template": template}}));
    let pod = objects.named("Pod", "pinned");
    pod["metadata"]["name"] = "db-0".into();
    let owner = &mut pod["metadata"]["ownerReferences"][0];
    (owner["kind"], owner["name"], owner["uid"]) = ("StatefulSet".into(), "db".into(), "db".into());
    objects.without("Pod", "pinned");
    let forecast = objects.answer("forecast", DONE).await;
    let looping = "pods of db are evicted from c14p-n1 (taint maint) and come back: about 240 an hour";
    assert_eq!(forecast["loops"][0]["text"], looping, "{:#}", forecast["loops"]);
}

/// Without Leases, the newest sign of a kubelet is its node status, which it posts at least every five minutes.
#[tokio::test]
async fn files_without_leases_are_no_lost_connection() {
    let mut objects = Objects::of("13-job-backoff-limit-0");
    for node in objects.0.iter_mut().filter(|object| object["kind"] == "Node") {
        for condition in node["status"]["conditions"].as_array_mut().expect("a list") {
            condition["lastHeartbeatTime"] = "2026-11-27T16:02:00Z".into();
        }
    }
    let status = objects.answer("status", DONE).await;
    let (level, text) = verdict(&status);
    assert_eq!(level, "notice", "{text}");
    assert!(text.starts_with("all 2 nodes Ready"), "{text}");
    assert!(text.contains("heartbeats unknown: the files have no Leases"), "{text}");
    assert_eq!(status["controller"]["lease"], "absent");
}

#[tokio::test]
async fn files_of_nodes_alone_name_all_that_they_lack() {
    let mut objects = Objects::of("13-job-backoff-limit-0");
    objects.0.retain(|object| object["kind"] == "Node");
    let shell = Shell::new();
    let file = shell.file("nodes.json", &objects.list());
    let output = shell.run(&["status", "--from", &file, "-o", "json"]).await;
    let status = output.json();
    let text = verdict(&status).1;
    assert!(text.contains("heartbeats unknown: the files have no Leases"), "{text}");
    assert!(text.contains("evictions unknown: the files have no pods"), "{text}");
}

#[tokio::test]
async fn why_names_the_job_that_an_eviction_fails_and_the_finalizers_that_keep_a_pod() {
    let mut objects = Objects::of("13-job-backoff-limit-0");
    let pod = objects.named("Pod", "train-");
    pod["metadata"]["finalizers"] = json!(["batch.kubernetes.io/job-tracking", "example.com/hold"]);
    let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
    let why = objects.answer(&format!("why pod {name} -n c12-b-limit0"), DONE).await;
    let steps: Vec<&str> =
        why["steps"].as_array().expect("a list").iter().filter_map(|step| step["text"].as_str()).collect();
    assert!(
        steps.contains(
            &"if it is evicted or deleted: fails Job train (BackoffLimitExceeded: 1 failure, limit 0)"
        ),
        "{steps:#?}"
    );
    assert!(
        steps.contains(&"a deletion does not end before example.com/hold is removed from its finalizers"),
        "{steps:#?}"
    );
}

/// Healthy kubelets renew their Leases every 10 s to 10.4 s.
#[tokio::test]
async fn a_grace_period_that_fits_no_heartbeat_names_its_flag() {
    for (grace, age, is_short) in [("10s", 0, true), ("10s", 10, true), ("12s", 10, false)] {
        let command = format!("status --at 2026-11-27T17:20:{age:02}Z");
        let status = with_grace(grace, 40).answer(&command, DONE).await;
        let (level, text) = verdict(&status);
        assert_eq!(text.contains("--node-monitor-grace-period 10s is not longer than"), is_short, "{text}");
        assert_eq!(level == "warning", is_short, "{text}");
        assert!(!text.contains("Silent"), "an interval of renewal is not over after {age} s: {text}");
    }
    let timing = answer("23-grace-shorter-than-lease", "timing --compare default cluster", DONE).await;
    let profiles = timing["profiles"].as_array().expect("profiles");
    let cluster = profiles.iter().find(|profile| profile["name"] == "cluster").expect("the cluster");
    assert_eq!(cluster["heartbeatsInGrace"], 0, "{cluster:#}");
}

/// Returns the objects with this grace period, and with Leases of this duration in seconds.
fn with_grace(grace: &str, lease_seconds: i64) -> Objects {
    let mut objects = Objects::of("23-grace-shorter-than-lease");
    for item in &mut objects.0 {
        if item["kind"] == "Pod" {
            item["spec"]["containers"][0]["command"][1] =
                format!("--node-monitor-grace-period={grace}").into();
        }
        if item["kind"] == "Lease" {
            item["spec"]["leaseDurationSeconds"] = lease_seconds.into();
        }
    }
    objects
}

/// The pass after the grace period comes before the next renewal, so the controller marks healthy nodes Unknown.
#[tokio::test]
async fn a_grace_period_that_ends_before_the_next_renewal_is_over_for_healthy_nodes() {
    let objects = with_grace("5s", 40);
    let at = "--at 2026-11-27T17:20:07Z";
    let status = objects.answer(&format!("status {at}"), DONE).await;
    assert!(verdict(&status).1.contains(": healthy nodes become Unknown and flap"), "{}", verdict(&status).1);
    let why = objects.answer(&format!("why node n0 {at}"), DONE).await.to_string();
    let over =
        "node-monitor-grace-period 5s is over: Unknown in the next pass, unless its Lease is renewed before";
    assert!(why.contains(over), "{why}");
    let forecast = objects.answer(&format!("forecast {at}"), DONE).await;
    let assumed = forecast["assumptions"].to_string();
    assert!(assumed.contains("no node flaps, although --node-monitor-grace-period 5s is not"), "{assumed}");
}

/// A kubelet renews its Lease four times in the duration of the Lease.
#[tokio::test]
async fn the_duration_of_a_lease_says_how_often_it_is_renewed() {
    let objects = with_grace("50s", 240);
    let status = objects.answer("status --at 2026-11-27T17:20:40Z", DONE).await;
    let (_, text) = verdict(&status);
    assert!(text.contains("(up to 62.4s): healthy nodes become Unknown"), "{text}");
    assert!(!text.contains("Silent"), "an interval of renewal is not over after 40 s: {text}");
    let timing = objects.answer("timing --compare default cluster", DONE).await;
    let profiles = timing["profiles"].as_array().expect("profiles");
    let fits =
        profiles.iter().map(|profile| (profile["name"].as_str(), profile["heartbeatsInGrace"].as_i64()));
    let fits: Vec<_> = fits.collect();
    assert_eq!(fits, [(Some("default"), Some(5)), (Some("cluster"), Some(0))]);
}
