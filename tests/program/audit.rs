//! `kordon audit`: over dumps of a real control plane, beside what `kubectl drain` then did to each of their nodes
//! (`tests/e2e/audit.rs` made both); over the cases; and in pipelines.

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

/// What is right for a case stands in its own test.
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
    let report: Value = serde_json::from_str(&again.out).expect("JSON");
    assert_eq!((again.code, report["findings"].as_array().map(Vec::len)), (DONE, Some(0)));
    let before: Value = serde_json::from_str(&before).expect("JSON");
    assert_eq!(
        report["known"].as_u64().map(|known| known as usize),
        before["findings"].as_array().map(Vec::len)
    );
    assert_eq!(report["nodes"][0]["prospect"], before["nodes"][0]["prospect"], "nodes keep their answers");

    let tighter = shell.file(
        "budget.yaml",
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: fine, namespace: default}\n\
         spec: {maxUnavailable: 0}\n",
    );
    let new = shell.run(&[&["audit", "--baseline", &known, "--with", &tighter], &from[..]].concat()).await;
    let report: Value = serde_json::from_str(&new.out).expect("JSON");
    assert_eq!(new.code, ERROR, "{}", new.err);
    assert_eq!(ids(&report), ["budgetNeverAllows PodDisruptionBudget default/fine"]);
    let refused = shell.refused(&["audit", "--baseline", &file], USAGE).await;
    assert!(refused.contains("not a report of `kordon audit -o json`"), "{refused}");
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
    assert!(unlabelled.contains("none of 3 nodes is chosen"), "{unlabelled}");
}

/// The commands of the pipelines in `examples/ci`, over a server with the objects of a dump.
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

/// Runs a script where a budget that can never allow an eviction, and a Service, are to be merged.
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
