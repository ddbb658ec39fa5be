//! `kordon audit` over dumps of a real control plane, compared with what `kubectl drain` then did to each of their
//! nodes (`tests/e2e/audit.rs` made both). Also `kordon audit` over the objects of the cases, and in pipelines of CI.

use std::{collections::BTreeSet, fs, path::Path};

use kordon_demo::api::{ApiOptions, kinds};
use serde_json::{Value, json};

use super::case_objects::{self, DONE, Objects, USAGE};
use crate::common::program::{Server, Shell};

/// Exit codes, as in `docs/reference/cli.md`.
const NOTE: i32 = 14;
const WARNING: i32 = 15;
const ERROR: i32 = 16;

/// The dumps, with the kinds of findings that each must have.
const FAMILIES: [(&str, &[&str]); 6] = [
    ("budgets", &["budgetNeverAllows", "overlappingBudgets"]),
    ("health", &["unhealthyUnderBudget", "singleReplica"]),
    ("losses", &["notRecreated", "jobFails", "dataLost", "singleReplica"]),
    ("places", &["comesBack", "noNodeForReplacement", "singleReplica"]),
    ("volumes", &["noNodeForReplacement", "localVolume", "singleReplica"]),
    ("held", &["finalizer", "singleReplica"]),
];

/// Returns the report of an audit, whatever was found.
async fn audit(objects: &Objects) -> Value {
    objects.answer("audit --fail-on never", DONE).await
}

fn kinds_of(report: &Value) -> BTreeSet<&str> {
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().filter_map(|finding| finding["kind"].as_str()).collect()
}

fn ids(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().filter_map(|finding| finding["id"].as_str()).collect()
}

#[tokio::test]
async fn every_node_of_a_dump_is_drained_as_kubectl_then_drained_it() {
    for (family, expected) in FAMILIES {
        let name = format!("audit-{family}");
        let report = audit(&Objects::of(&name)).await;
        let file = case_objects::file(&format!("{name}.drains"));
        let drains: Value = serde_json::from_slice(&fs::read(file).expect("a file")).expect("JSON");
        let nodes = report["nodes"].as_array().expect("nodes");
        assert_eq!(nodes.len(), drains.as_object().expect("an object").len(), "{family}");
        for node in nodes {
            let done = &drains[node["node"].as_str().expect("a name")];
            let empties = done["ends"] == true && done["isEmpty"] == true;
            assert_eq!(node["prospect"] == "completes", empties, "{family}: {node:#}\n{done:#}");
            let asked: BTreeSet<&str> = texts(&done["needs"]);
            assert_eq!(texts(&node["needs"]), asked, "{family}: {node:#}");
        }
        let found = kinds_of(&report);
        assert_eq!(found, BTreeSet::from_iter(expected.iter().copied()), "{family}: {report:#}");
    }
}

fn texts(list: &Value) -> BTreeSet<&str> {
    list.as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

/// Checks only that the audit finds the cause of each case. The case's own test has the expected answer.
#[tokio::test]
async fn causes_of_the_cases_are_found() {
    let expected = [
        ("01-operator-budget-switchover", "switchover Cluster c9/db"),
        ("05-two-budgets-why", "overlappingBudgets PodDisruptionBudget c3/by-app, by-tier"),
        ("06-crashloop-under-budget", "unhealthyUnderBudget PodDisruptionBudget c4x/crash"),
        ("13-job-backoff-limit-0", "jobFails Job c12-b-limit0/train"),
        ("18-template-names-node", "comesBack Deployment c14/pinned"),
        ("33-spread-help-honor", "noNodeForReplacement Deployment c27b/web"),
    ];
    for (case, id) in expected {
        let report = audit(&Objects::of(case)).await;
        assert!(ids(&report).contains(&id), "{case}: {:?}", ids(&report));
    }
    let unknown = audit(&Objects::of("17-unknown-owners")).await;
    assert!(kinds_of(&unknown).contains("notKnown"), "{:?}", ids(&unknown));
}

#[tokio::test]
async fn counts_of_zones_and_pools_add_up_to_the_nodes() {
    let mut objects = Objects::of("audit-budgets");
    for (number, node) in objects.0.iter_mut().filter(|object| object["kind"] == "Node").enumerate() {
        node["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!(["a", "b", "b"][number]);
        node["metadata"]["labels"]["pool"] = json!(["x", "x", "y"][number]);
    }
    let report = audit(&objects).await;
    let count = |group: &Value| -> Vec<u64> {
        ["nodes", "drains", "waits", "blocked", "unknown"]
            .map(|field| group[field].as_u64().expect("a number"))
            .into()
    };
    let total = count(&report["total"]);
    assert_eq!(total[0], total[1..].iter().sum::<u64>());
    for groups in [&report["zones"], &report["pools"]] {
        let groups = groups.as_array().expect("groups");
        assert_eq!(groups.len(), 2);
        let sums: Vec<u64> =
            (0..total.len()).map(|field| groups.iter().map(|group| count(group)[field]).sum()).collect();
        assert_eq!(sums, total);
    }
}

#[tokio::test]
async fn the_exit_code_is_that_of_the_worst_finding() {
    let code = async |objects: &Objects, flags: &str| objects.run(&format!("audit{flags}")).await.0;
    let budgets = Objects::of("audit-budgets");
    assert_eq!(code(&budgets, "").await, ERROR);
    assert_eq!(code(&budgets, " --fail-on never").await, DONE);
    let losses = Objects::of("audit-losses");
    assert_eq!(code(&losses, "").await, DONE);
    assert_eq!(code(&losses, " --fail-on warning").await, WARNING);
    let switchover = Objects::of("01-operator-budget-switchover");
    assert_eq!(code(&switchover, " --fail-on warning").await, DONE);
    assert_eq!(code(&switchover, " --fail-on note").await, NOTE);
}

#[tokio::test]
async fn webhooks_that_are_asked_about_evictions_are_named() {
    let mut objects = Objects::of("audit-budgets");
    let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["pods/eviction"]});
    objects.0.push(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "guard"}, "webhooks": [{"name": "a.example.com", "rules": [rule]}],
    }));
    let report = audit(&objects).await;
    let findings = report["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["kind"] == "evictionWebhook").expect("it is named");
    assert_eq!((found["name"].as_str(), found["severity"].as_str()), (Some("guard"), Some("note")));
    let says = found["says"].as_str().expect("a text");
    assert!(says.contains("a.example.com") && says.contains("while it does not answer"), "{says}");
    assert_eq!(texts(&found["nodes"]), BTreeSet::from(["fine", "full", "twice"]));
}

#[tokio::test]
async fn what_the_baseline_has_is_left_out_and_counted() {
    let shell = Shell::new();
    let objects = Objects::of("audit-budgets");
    let file = shell.file("objects.json", &objects.list());
    let from = ["--from", &file, "--complete", "-o", "json"];
    let before = shell.run(&[&["audit", "--fail-on", "never"], &from[..]].concat()).await.out;
    let known = shell.file("known.json", &before);
    let again = shell.run(&[&["audit", "--baseline", &known], &from[..]].concat()).await;
    let report = again.json();
    assert_eq!((again.code, report["findings"].as_array().map(Vec::len)), (DONE, Some(0)));
    let before: Value = serde_json::from_str(&before).expect("JSON");
    assert_eq!(
        report["known"].as_u64().map(|known| known as usize),
        before["findings"].as_array().map(Vec::len)
    );
    assert_eq!(report["nodes"][0]["prospect"], before["nodes"][0]["prospect"], "nodes keep their answers");
    let table = shell.run(&["audit", "--baseline", &known, "--from", &file, "--complete"]).await.out;
    assert!(table.contains("nothing new\n") && !table.contains("nothing holds up"), "{table}");
    let full = table.lines().find(|line| line.starts_with("full ")).unwrap_or_else(|| panic!("{table}"));
    assert!(full.contains("in the baseline"), "{table}");

    let tighter = shell.file(
        "budget.yaml",
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: fine, namespace: default}\n\
         spec: {maxUnavailable: 0}\n",
    );
    let new = shell.run(&[&["audit", "--baseline", &known, "--with", &tighter], &from[..]].concat()).await;
    let report = new.json();
    assert_eq!(new.code, ERROR, "{}", new.err);
    assert_eq!(ids(&report), ["budgetNeverAllows PodDisruptionBudget default/fine"]);

    let wider = shell.file(
        "wider.yaml",
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: fine, namespace: default}\n\
         $patch: delete\n---\n\
         apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: full, namespace: default}\n\
         spec: {minAvailable: 100%, selector: {matchExpressions: [{key: app, operator: In, values: [full, fine]}]}}\n",
    );
    let new = shell.run(&[&["audit", "--baseline", &known, "--with", &wider], &from[..]].concat()).await;
    let report = new.json();
    assert_eq!(new.code, ERROR, "the known budget blocks another node: {}", new.err);
    let wider = finding(&report, "budgetNeverAllows PodDisruptionBudget default/full");
    assert_eq!(texts(&wider["nodes"]), ["fine", "full"].into());
    assert_eq!(texts(&wider["workloads"]), ["Deployment default/fine", "Deployment default/full"].into());

    let refused = shell.refused(&["audit", "--baseline", &file], USAGE).await;
    assert!(refused.contains("not a report of `kordon audit -o json`"), "{refused}");
}

#[tokio::test]
async fn a_drain_that_would_help_has_the_flags_that_its_node_needs() {
    let mut objects = Objects::of("audit-budgets");
    objects.named("Pod", "full")["spec"]["volumes"] = json!([{"name": "scratch", "emptyDir": {}}]);
    let report = audit(&objects).await;
    let fixes = finding(&report, "budgetNeverAllows PodDisruptionBudget default/full")["fixes"].to_string();
    let (_, drain) = fixes.split_once("\"kordon drain ").unwrap_or_else(|| panic!("{fixes}"));
    let (drain, _) = drain.split_once('"').expect("the end of the command");
    assert!(drain.contains("--delete-emptydir-data") && drain.contains("--surge"), "{drain}");
    let (_, plan) = objects.run(&format!("plan drain {drain}")).await;
    assert_eq!(plan["requiredFlags"], json!([]), "{drain}\n{plan:#}");
}

/// Returns the report after a fix that deletes or patches budgets; `None` if the fix does something else.
async fn audit_after(objects: &Objects, fix: &Value) -> Option<Value> {
    let command = fix["command"].as_str()?;
    let deleted = command.strip_prefix("kubectl delete pdb ");
    let rest = deleted.or_else(|| command.strip_prefix("kubectl patch pdb "))?;
    let (names, flags) = rest.split_once(" -n ").expect("a namespace");
    let names: Vec<&str> = names.split(' ').collect();
    let namespace = flags.split(' ').next();
    let (budgets, others): (Vec<Value>, Vec<Value>) =
        objects.0.iter().cloned().partition(|object| object["kind"] == "PodDisruptionBudget");
    // A budget of --with has the status that the disruption controller will give it.
    let mut with = String::new();
    for mut budget in budgets {
        let fields = budget.as_object_mut().expect("an object");
        fields.remove("status");
        let metadata = fields["metadata"].as_object_mut().expect("an object");
        metadata.retain(|field, _| ["name", "namespace", "ownerReferences"].contains(&field.as_str()));
        let is_changed = budget["metadata"]["namespace"].as_str() == namespace
            && budget["metadata"]["name"].as_str().is_some_and(|name| names.contains(&name));
        if is_changed && deleted.is_some() {
            continue;
        }
        if is_changed {
            let (_, patch) = flags.split_once("--patch=").expect("a patch");
            let patch: Value = serde_json::from_str(patch.trim_matches('\'')).expect("JSON");
            for (field, value) in patch["spec"].as_object().expect("fields") {
                budget["spec"][field] = value.clone();
            }
        }
        with += &format!("---\n{budget}\n");
    }
    let shell = Shell::new();
    let (file, with) = (shell.file("objects.json", &Objects(others).list()), shell.file("with.yaml", &with));
    let words = ["audit", "--fail-on", "never", "--from", &file, "--with", &with, "--complete", "-o", "json"];
    Some(shell.run(&words).await.json())
}

/// Kinds of findings about budgets that refuse an eviction until somebody changes something.
const REFUSALS: [&str; 3] = ["budgetNeverAllows", "overlappingBudgets", "unhealthyUnderBudget"];

/// Asserts that no budget refuses the pods of a finding after any of its fixes, unless the fix says so. Returns how many
/// fixes were carried out.
async fn assert_fixes_help(name: &str, objects: &Objects) -> usize {
    let report = audit(objects).await;
    let mut tried = 0;
    for finding in report["findings"].as_array().expect("findings") {
        for fix in finding["fixes"].as_array().expect("fixes") {
            let Some(after) = audit_after(objects, fix).await else { continue };
            tried += 1;
            let findings = after["findings"].as_array().expect("findings");
            let is_left = |left: &&Value| {
                left["kind"].as_str().is_some_and(|kind| REFUSALS.contains(&kind))
                    && !texts(&left["pods"]).is_disjoint(&texts(&finding["pods"]))
            };
            let says_so = fix["says"].as_str().is_some_and(|text| text.contains("still refuses"));
            let left: Vec<&Value> = findings.iter().filter(is_left).collect();
            assert_eq!(!left.is_empty(), says_so, "{name}: {fix:#}\n{left:#?}");
        }
    }
    tried
}

#[tokio::test]
async fn a_fix_that_is_offered_helps_or_says_that_it_does_not() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut tried = 0;
    for file in fs::read_dir(folder).expect("a folder") {
        let file = file.expect("a file").file_name().into_string().expect("text");
        let Some(name) = file.strip_suffix(".json").filter(|name| !name.ends_with(".drains")) else {
            continue;
        };
        let objects = Objects::of(name);
        if objects.0.iter().any(|object| object["kind"] == "PodDisruptionBudget") {
            tried += assert_fixes_help(name, &objects).await;
        }
    }
    assert!(tried > 5, "{tried}");
}

/// Only the deletion of the budget that never allows an eviction helps.
#[tokio::test]
async fn of_overlapping_budgets_the_one_that_refuses_is_deleted() {
    let mut objects = Objects::of("audit-budgets");
    let mut second = objects.named("PodDisruptionBudget", "fine").clone();
    second["metadata"]["name"] = "fine-new".into();
    second["metadata"]["uid"] = "fine-new".into();
    second["spec"]["maxUnavailable"] = 0.into();
    second["status"]["desiredHealthy"] = 2.into();
    second["status"]["disruptionsAllowed"] = 0.into();
    objects.0.push(second.clone());
    let id = "overlappingBudgets PodDisruptionBudget default/fine, fine-new";
    let report = audit(&objects).await;
    let fixes = finding(&report, id)["fixes"].as_array().expect("fixes");
    let commands: Vec<&str> = fixes.iter().filter_map(|fix| fix["command"].as_str()).collect();
    assert_eq!(commands, ["kubectl delete pdb fine-new -n default"]);
    assert!(fixes[1]["says"].as_str().is_some_and(|text| text.contains("only fine selects the pod")));
    assert!(assert_fixes_help("one refuses", &objects).await > 0);

    objects.named("PodDisruptionBudget", "fine")["spec"] = second["spec"].clone();
    let report = audit(&objects).await;
    let fixes = finding(&report, id)["fixes"].to_string();
    assert_eq!(fixes.matches("; it still refuses the eviction").count(), 2, "{fixes}");
    assert!(assert_fixes_help("both refuse", &objects).await > 0);
}

#[tokio::test]
async fn junit_has_a_failure_for_each_error_and_warning() {
    let shell = Shell::new();
    let file = shell.file("objects.json", &Objects::of("audit-budgets").list());
    let written = shell.home.path().join("audit.xml");
    let junit = written.to_str().expect("text");
    let output = shell.run(&["audit", "--from", &file, "--complete", "--junit", junit]).await;
    assert_eq!(output.code, ERROR);
    let xml = fs::read_to_string(&written).expect("written");
    let failures = xml.matches("<failure").count();
    assert_eq!(failures, 2, "{xml}");
    assert!(xml.contains(r#"<testcase name="PodDisruptionBudget default/full""#), "{xml}");
    assert!(xml.contains(r#"<testcase name="no jobs that fail""#), "{xml}");
    let nowhere = shell.run(&["audit", "--from", &file, "--complete", "--junit", "/nowhere/audit.xml"]).await;
    assert!(nowhere.err.contains("writing /nowhere/audit.xml"), "{}", nowhere.err);
}

#[tokio::test]
async fn nodes_are_chosen_by_name_and_label() {
    let budgets = Objects::of("audit-budgets");
    let names = async |command: &str| {
        let report = budgets.answer(command, DONE).await;
        let nodes = report["nodes"].as_array().expect("nodes").clone();
        nodes.iter().filter_map(|node| node["node"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(names("audit full twice --fail-on never").await, ["full", "twice"]);
    assert_eq!(names("audit -l kubernetes.io/hostname=fine --fail-on never").await, ["fine"]);
    let shell = Shell::new();
    let file = shell.file("objects.json", &budgets.list());
    let missing = shell.refused(&["audit", "ful", "--from", &file], case_objects::FAILED).await;
    assert!(missing.contains("did you mean full?"), "{missing}");
    let unlabelled = shell.refused(&["audit", "-l", "a=b", "--from", &file], USAGE).await;
    assert!(unlabelled.contains("none of 3 nodes is chosen by -l a=b"), "{unlabelled}");
    let neither = shell.refused(&["audit", "full", "-l", "a=b", "--from", &file], USAGE).await;
    assert!(neither.contains("none of 3 nodes is chosen by full and -l a=b"), "{neither}");
}

/// Runs the commands of the pipelines in `examples/ci` against a server with the objects of a dump.
#[tokio::test]
async fn the_pipelines_work_as_written() {
    let gitlab = pipeline("gitlab-ci.yml");
    let script = lines(&gitlab["drains"]["script"]);
    let github = pipeline("github-actions.yml");
    let steps = github["jobs"]["audit"]["steps"].as_array().expect("steps");
    let steps: String = steps.iter().filter_map(|step| step["run"].as_str()).collect();
    for (name, script) in [("gitlab", script), ("github", steps)] {
        let (code, shell) = merge_request(&script).await;
        assert_eq!(code, ERROR, "{name}");
        let xml = fs::read_to_string(shell.home.path().join("audit.xml")).expect("a report");
        assert_eq!(xml.matches("<failure").count(), 1, "{name}: only what is new\n{xml}");
        let summary = fs::read_to_string(shell.home.path().join("summary.md")).unwrap_or_default();
        assert_eq!(summary.contains("| error |"), name == "github", "{summary}");
    }
}

fn pipeline(name: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ci").join(name);
    serde_saphyr::from_str(&fs::read_to_string(file).expect("a file")).expect("YAML")
}

fn lines(script: &Value) -> String {
    let lines = script.as_array().expect("a list").iter().filter_map(Value::as_str);
    lines.map(|line| format!("{line}\n")).collect()
}

/// Runs a script of a pipeline, for a merge that adds a Service and a budget that can never allow an eviction.
async fn merge_request(script: &str) -> (i32, Shell) {
    let server = Server::start(ApiOptions { is_empty: true, ..ApiOptions::default() }).await;
    for object in Objects::of("audit-budgets").0 {
        let text = |field: &str| object[field].as_str().expect("a text");
        let kind = kinds::of_object(text("apiVersion"), text("kind")).expect("a kind that the demo has");
        server.api.load(kind.plural, object.clone());
    }
    let shell = Shell::new();
    let folder = shell.home.path();
    fs::create_dir_all(folder.join("manifests")).expect("a folder");
    shell.file(
        "manifests/budget.yaml",
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: fine, namespace: default}\n\
         spec: {maxUnavailable: 0}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n",
    );
    let kubeconfig = shell.kubeconfig(&server.url, json!({}));
    let text = fs::read_to_string(&kubeconfig).expect("written");
    std::os::unix::fs::symlink(crate::common::program::path_of_binary(), folder.join("kordon"))
        .expect("a link");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("a path"));
    let mut command = tokio::process::Command::new("sh");
    command
        .args(["-ec", script])
        .current_dir(folder)
        .env("PATH", path)
        .env("KUBECONFIG", &kubeconfig)
        .env("KUBECONFIG_TEXT", text)
        .env("GITHUB_STEP_SUMMARY", folder.join("summary.md"));
    let output = command.output().await.expect("a shell");
    let errors = String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap_or_else(|| panic!("{errors}")), shell)
}

/// A cluster of three nodes of 4 CPU in one zone.
fn three_nodes() -> Objects {
    let node = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name},
            "status": {
                "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-29T14:00:00Z",
                    "lastTransitionTime": "2026-11-29T14:00:00Z"}],
            },
        })
    };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "s", "uid": "s"}});
    Objects(vec![node("n1"), node("n2"), node("n3"), namespace])
}

/// A Ready pod that requests this many CPUs. `more` adds fields to the pod.
fn pod(name: &str, node: &str, cpu: u32, owner: &Value, more: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "s", "uid": name, "creationTimestamp": "2026-11-29T14:00:00Z",
            "ownerReferences": owner},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu.to_string()}}}]},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-29T14:00:08Z"}]},
    });
    for (part, fields) in more.as_object().into_iter().flatten() {
        for (field, value) in fields.as_object().expect("fields") {
            pod[part][field] = value.clone();
        }
    }
    pod
}

/// An owner of pods, and the reference to it.
fn owner(api: &str, kind: &str, name: &str, spec: Value, status: Value) -> (Value, Value) {
    let object = json!({"apiVersion": api, "kind": kind, "spec": spec, "status": status,
        "metadata": {"name": name, "namespace": "s", "uid": name}});
    let reference = json!([{"apiVersion": api, "kind": kind, "name": name, "uid": name, "controller": true}]);
    (object, reference)
}

fn finding<'a>(report: &'a Value, id: &str) -> &'a Value {
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().find(|finding| finding["id"] == id).unwrap_or_else(|| panic!("{id}: {:?}", ids(report)))
}

/// A Job fails if the drain of one node fails more indexes than `maxFailedIndexes` (kubernetes 1.37
/// `pkg/controller/job/job_controller.go`, `syncJob`).
#[tokio::test]
async fn a_job_fails_by_the_drain_of_one_node_and_one_index_by_that_of_another() {
    let mut objects = three_nodes();
    let rule = json!({"rules": [{"action": "FailIndex",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]});
    let spec = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 3,
        "backoffLimit": 100, "maxFailedIndexes": 1, "podFailurePolicy": rule, "selector": {"matchLabels": {"job": "idx"}},
        "template": {"metadata": {"labels": {"job": "idx"}}, "spec": {"containers": [{"name": "app", "image": "app"}]}}});
    let (job, reference) = owner("batch/v1", "Job", "idx", spec, json!({"active": 3}));
    objects.0.push(job);
    for (index, node) in ["n1", "n1", "n2"].into_iter().enumerate() {
        let labels = json!({"job": "idx", "batch.kubernetes.io/job-completion-index": index.to_string()});
        let more =
            json!({"metadata": {"labels": labels, "finalizers": ["batch.kubernetes.io/job-tracking"]}});
        objects.0.push(pod(&format!("idx-{index}"), node, 1, &reference, more));
    }
    let report = audit(&objects).await;
    let fails = finding(&report, "jobFails Job s/idx");
    assert_eq!(
        (texts(&fails["nodes"]), texts(&fails["pods"])),
        (["n1"].into(), ["s/idx-0", "s/idx-1"].into())
    );
    assert!(fails["says"].as_str().is_some_and(|says| says.contains("2 failed, limit 1")), "{fails:#}");
    let index = finding(&report, "jobIndexFails Job s/idx");
    assert_eq!((texts(&index["nodes"]), texts(&index["pods"])), (["n2"].into(), ["s/idx-2"].into()));
}

/// Kubernetes 1.37 `pkg/controller/statefulset/stateful_set_control.go`, `processReplica`: with OrderedReady a pod is
/// not created before those of lower ordinals are Ready.
#[tokio::test]
async fn a_replacement_that_waits_for_a_crashing_pod_is_found() {
    let mut objects = three_nodes();
    let spec = json!({"replicas": 2, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "app"}]}}});
    let (set, reference) = owner("apps/v1", "StatefulSet", "web", spec, json!({}));
    let labels = json!({"labels": {"app": "web"}});
    let crash = json!({"metadata": labels, "status": {
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-29T14:00:08Z"}],
        "containerStatuses": [{"name": "app", "restartCount": 30, "ready": false, "image": "app", "imageID": "",
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}});
    objects.0.push(set);
    objects.0.push(pod("web-0", "n1", 1, &reference, crash));
    objects.0.push(pod("web-1", "n2", 1, &reference, json!({"metadata": labels})));
    let report = audit(&objects).await;
    let stuck = finding(&report, "replacementStuck StatefulSet s/web");
    assert_eq!((texts(&stuck["nodes"]), texts(&stuck["pods"])), (["n2"].into(), ["s/web-1"].into()));
    assert!(stuck["says"].as_str().is_some_and(|says| says.contains("once web-0 is Ready")), "{stuck:#}");
    let nodes = report["nodes"].as_array().expect("nodes");
    let counts: Vec<u64> = nodes.iter().filter_map(|node| node["stuck"].as_u64()).collect();
    assert_eq!(counts, [0, 1, 0]);
}

#[tokio::test]
async fn pods_that_replacements_preempt_are_causes_and_counted() {
    let mut objects = three_nodes();
    objects.0.retain(|object| object["metadata"]["name"] != "n3");
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": "api"}},
        "template": {"metadata": {"labels": {"app": "api"}}, "spec": {"priority": 1000, "containers": [
            {"name": "app", "image": "app", "resources": {"requests": {"cpu": "3"}}}]}}});
    let (set, reference) = owner("apps/v1", "ReplicaSet", "api", spec, json!({}));
    let more = json!({"metadata": {"labels": {"app": "api"}}, "spec": {"priority": 1000}});
    objects.0.push(set);
    objects.0.push(pod("api-0", "n1", 3, &reference, more));
    objects.0.push(pod("tool", "n2", 3, &json!([]), json!({})));
    let report = audit(&objects).await;
    let lost = finding(&report, "notRecreated Pod s/tool");
    assert!(texts(&lost["nodes"]).contains("n1"), "{lost:#}");
    assert_eq!(report["nodes"][0]["lost"], 1, "{report:#}");
    let plan = objects.answer("plan drain n1", case_objects::LOSES).await;
    assert_eq!((&plan["totals"]["lost"], &plan["totals"]["preempted"]), (&json!(1), &json!(1)));
    let waves = objects.answer("maintenance n1 --force --override last-ready", case_objects::LOSES).await;
    assert_eq!(waves["waves"][0]["lost"], json!(["s/tool"]), "{waves:#}");
}

/// `api` takes the place of `middle` on n2, whose replacement takes the place of `tool` on n3.
#[tokio::test]
async fn a_pod_that_is_preempted_in_turn_names_the_pod_whose_replacement_preempts_it() {
    let mut objects = three_nodes();
    let big = json!({"kind": "big"});
    let n2 = objects.0.iter_mut().find(|object| object["metadata"]["name"] == "n2").expect("a node");
    n2["metadata"]["labels"] = big.clone();
    let scheduling = [
        ("api", "n1", json!({"priority": 1000, "nodeSelector": big})),
        ("middle", "n2", json!({"priority": 100})),
    ];
    for (name, node, scheduling) in scheduling {
        let labels = json!({"labels": {"app": name}});
        let mut spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": labels, "spec": scheduling}});
        spec["template"]["spec"]["containers"] =
            json!([{"name": "app", "image": "app", "resources": {"requests": {"cpu": "3"}}}]);
        let (set, reference) = owner("apps/v1", "ReplicaSet", name, spec, json!({}));
        objects.0.push(set);
        let more = json!({"metadata": labels, "spec": scheduling});
        objects.0.push(pod(&format!("{name}-0"), node, 3, &reference, more));
    }
    objects.0.push(pod("tool", "n3", 3, &json!([]), json!({})));
    let report = audit(&objects).await;
    let lost = finding(&report, "notRecreated Pod s/tool");
    assert_eq!(texts(&lost["nodes"]), ["n1", "n2", "n3"].into(), "{lost:#}");
    let says = lost["says"].as_str().expect("a text");
    assert!(says.starts_with("preempted by the replacement of s/middle-0;"), "{says}");
}

/// kubernetes/autoscaler cluster-autoscaler-1.36.1,
/// `cluster-autoscaler/simulator/drainability/rules/notsafetoevict/rule.go`: the Cluster Autoscaler does not drain a node
/// with such a pod.
#[tokio::test]
async fn a_pod_that_keeps_the_cluster_autoscaler_from_its_node_is_named() {
    let mut objects = three_nodes();
    let annotations = json!({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"});
    let more = json!({"metadata": {"annotations": annotations}});
    objects.0.push(pod("keeper", "n1", 1, &json!([]), more));
    objects.0.push(pod("other", "n2", 1, &json!([]), json!({})));
    let report = audit(&objects).await;
    let kept = finding(&report, "keepsNode Pod s/keeper");
    assert_eq!((texts(&kept["nodes"]), &kept["severity"]), (["n1"].into(), &json!("note")), "{kept:#}");
    assert!(!ids(&report).contains(&"keepsNode Pod s/other"), "{:?}", ids(&report));
    let of_node = objects.answer("why node n1", DONE).await["steps"].to_string();
    let says = "the Cluster Autoscaler does not remove it: cluster-autoscaler.kubernetes.io/safe-to-evict is false for s/keeper";
    assert!(of_node.contains(says), "{of_node}");
    let of_pod = objects.answer("why pod keeper -n s", DONE).await["steps"].to_string();
    assert!(of_pod.contains("the Cluster Autoscaler does not remove its node"), "{of_pod}");
}

/// In the audit and in the plan, the eviction is retried as soon as the budget allows a disruption, which is when web-1
/// is Ready.
#[tokio::test]
async fn an_audit_and_a_plan_give_a_drain_the_same_time() {
    let mut objects = three_nodes();
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "app"}]}}});
    let (set, reference) = owner("apps/v1", "ReplicaSet", "web", spec, json!({}));
    let budget = json!({"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}});
    let status = json!({"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1,
        "expectedPods": 2});
    let (mut budget, _) = owner("policy/v1", "PodDisruptionBudget", "web", budget, status);
    budget["metadata"]["generation"] = json!(1);
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "n1", "namespace": "kube-node-lease", "uid": "lease"},
        "spec": {"holderIdentity": "n1", "renewTime": "2026-11-29T15:00:00.000000Z"}});
    let labels = json!({"labels": {"app": "web"}});
    let starting = json!({
        "metadata": {"labels": {"app": "web"}, "creationTimestamp": "2026-11-29T14:59:57Z"},
        "status": {"conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-29T14:59:57Z"}]},
    });
    objects.0.extend([set, budget, lease]);
    objects.0.push(pod("web-0", "n1", 1, &reference, json!({"metadata": labels})));
    objects.0.push(pod("web-1", "n2", 1, &reference, starting));
    let report = audit(&objects).await;
    let plan = objects.answer("plan drain n1", DONE).await;
    let pod = &plan["pods"][0];
    assert_eq!(pod["verdict"], "leavesAfter", "it waits for web-1: {pod:#}");
    let ends = plan["totals"]["ends"]["likelySeconds"].as_f64().expect("it ends");
    let takes = report["nodes"][0]["takesSeconds"].as_i64().expect("it ends");
    assert_eq!(takes.to_string(), format!("{:.0}", ends.floor()), "{report:#}");
}
