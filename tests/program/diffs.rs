//! Compares the diff in a plan with what the API server holds after the plan has been applied.

use k8s_openapi::api::core::v1::Node;
use kordon_core::cluster::claim::{CORDON, DRAINED};
use kube::{
    Api as Objects,
    api::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};

use crate::harness::Harness;

// Exit codes, as in `docs/reference/cli.md`.
const DONE: i32 = 0;
const USAGE: i32 = 2;
const REFUSED: i32 = 5;

const NODE: &str = "general-1a-02";

#[tokio::test(flavor = "multi_thread")]
async fn the_diff_applied_to_each_node_is_what_the_server_holds_afterwards() {
    let harness = Harness::start(20.0).await;
    let had = json!({"metadata": {"annotations": {"old": "x"}, "labels": {"team": "blue"}},
        "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}});
    harness.patch(NODE, had).await;
    let drain = ["drain", NODE, "--ignore-daemonsets", "--delete-emptydir-data", "--force"];
    for line in [
        &["taint", "nodes", NODE, "a=b:NoSchedule", "x-"][..],
        &["label", "nodes", NODE, "team=red", "new=", "kubernetes.io/os-", "--overwrite"],
        &["annotate", "nodes", NODE, "example.com/note=one: \"two\"\nthree", "old-"],
        &["cordon", NODE],
        &["uncordon", NODE],
        &drain,
    ] {
        let before = object(&harness).await;
        let output = harness.run(&[line, &["--diff"]].concat()).await;
        assert_eq!(output.code, DONE, "{line:?}: {}", output.err);
        let applied = apply(&output.out, &yaml(&before));
        assert_eq!(yaml(&object(&harness).await).lines().count(), yaml(&before).lines().count(), "a dry run");
        harness.enforced(line).await;
        let (applied, after) = (without_the_moment(applied), without_the_moment(object(&harness).await));
        for part in ["metadata", "spec"] {
            assert_eq!(applied[part], after[part], "{line:?}: {}", output.out);
        }
        let evicted: Vec<&str> = output.out.lines().filter(|line| line.starts_with("evict ")).collect();
        assert_eq!(evicted.is_empty(), line[0] != "drain", "{}", output.out);
    }
    let evicted = harness.server.evictions().len();
    assert!(evicted > 0, "the drain removed pods");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_diff_has_a_line_for_each_pod_and_says_why_it_has_no_more() {
    let harness = Harness::start(20.0).await;
    let drain = ["drain", NODE, "--ignore-daemonsets", "--delete-emptydir-data", "--force"];
    let plan = harness.run(&[&["plan"][..], &drain, &["-o", "json"]].concat()).await.out;
    let plan: Value = serde_json::from_str(&plan).expect("a plan");
    let steps = plan["steps"].as_array().expect("steps").iter();
    let mut planned: Vec<String> = steps
        .filter_map(|step| {
            step["text"].as_str()?.strip_prefix("evict pod/").map(|pod| format!("evict {pod}"))
        })
        .collect();
    let output = harness.run(&[&["plan"][..], &drain, &["--diff"]].concat()).await;
    let mut lines: Vec<String> =
        output.out.lines().filter(|line| line.starts_with("evict ")).map(str::to_owned).collect();
    planned.sort();
    lines.sort();
    assert!(!lines.is_empty() && lines == planned, "{}", output.out);
    assert!(output.out.contains(&format!("+++ MERGED/v1.Node..{NODE}\n@@ ")), "{}", output.out);
    assert!(output.out.contains("+  unschedulable: true"), "{}", output.out);

    let delete = harness.run(&["plan", "delete", &lines[0].replace("evict ", ""), "--diff"]).await;
    assert_eq!(delete.out, format!("{}\n", lines[0].replace("evict", "delete")), "{}", delete.err);
    let refused = harness.run(&["plan", "drain", NODE, "--diff"]).await;
    assert_eq!(refused.code, REFUSED, "{}", refused.err);
    assert!(refused.out.starts_with("# ") && refused.out.contains("nothing is written"), "{}", refused.out);
    let same = harness.run(&["plan", "uncordon", NODE, "--diff"]).await;
    assert_eq!((same.code, same.out.as_str()), (DONE, ""), "{}", same.err);
    for more in [&["-o", "json"][..], &["--enforce", "--yes"]] {
        let output = harness.run(&[&["cordon", NODE, "--diff"][..], more].concat()).await;
        assert_eq!(output.code, USAGE, "{}", output.err);
        assert!(output.err.contains("--diff"), "{}", output.err);
    }
    assert_eq!(harness.server.written(), Vec::<String>::new());
}

/// Returns the node as the server has it, without managed fields.
async fn object(harness: &Harness) -> Value {
    let nodes: Objects<DynamicObject> =
        Objects::all_with(harness.server.api.client(), &ApiResource::erase::<Node>(&()));
    let mut node = serde_json::to_value(nodes.get(NODE).await.expect("the node")).expect("JSON");
    if let Some(metadata) = node["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    node
}

fn yaml(object: &Value) -> String {
    serde_saphyr::to_string(object).expect("YAML")
}

/// Applies a unified diff to a text, as `patch` does, and reads the result. Lines that follow no hunk are skipped.
fn apply(diff: &str, text: &str) -> Value {
    let old: Vec<&str> = text.lines().collect();
    let (mut new, mut at, mut left) = (Vec::new(), 0, (0, 0));
    for line in diff.lines() {
        if left == (0, 0) {
            let Some(hunk) = line.strip_prefix("@@ -") else { continue };
            let (from, to) = hunk.split_once(" +").expect("two ranges");
            let (start, removed) = range(from);
            left = (removed, range(to.trim_end_matches(" @@")).1);
            new.extend(&old[at..start - 1]);
            at = start - 1;
            continue;
        }
        let (sign, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
        if sign != "+" {
            // The resourceVersion may differ, because heartbeats change it all the time.
            let is_version = rest.contains("resourceVersion:");
            assert!(is_version || old[at] == rest, "{:?} is not {rest:?}", old[at]);
            (at, left.0) = (at + 1, left.0 - 1);
        }
        if sign != "-" {
            new.push(rest);
            left.1 -= 1;
        }
    }
    new.extend(&old[at..]);
    serde_saphyr::from_str(&new.join("\n")).expect("YAML")
}

/// Parses the range of a hunk: its first line, and the number of lines.
fn range(text: &str) -> (usize, usize) {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    (start.parse().expect("a line"), count.parse().expect("a number"))
}

/// Removes the fields that differ from one operation to the next: versions, times, the operation's id, and the taint
/// that the node lifecycle controller adds to a cordoned node.
fn without_the_moment(mut node: Value) -> Value {
    let metadata = node["metadata"].as_object_mut().expect("metadata");
    metadata.remove("resourceVersion");
    for key in [CORDON, DRAINED] {
        let Some(note) = node["metadata"]["annotations"].get_mut(key) else { continue };
        let mut content: Value = serde_json::from_str(note.as_str().expect("a text")).expect("a note");
        for field in ["at", "operation"] {
            assert!(content[field].is_string(), "{content}");
            content[field] = json!("");
        }
        *note = content;
    }
    if let Some(taints) = node["spec"]["taints"].as_array_mut() {
        taints.retain(|taint| taint["key"] != "node.kubernetes.io/unschedulable");
        if taints.is_empty() {
            node["spec"].as_object_mut().expect("a spec").remove("taints");
        }
    }
    node
}
