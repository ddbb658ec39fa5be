//! `kordon maintenance` over objects of a real control plane, and what it refuses.

use serde_json::Value;

use super::case_objects::{self, BLOCKED, DONE, LOSES, Objects, USAGE};
use crate::common::program::Shell;

fn waves(plan: &Value) -> Vec<Vec<&str>> {
    let waves = plan["waves"].as_array().expect("waves").iter();
    waves
        .map(|wave| wave["nodes"].as_array().expect("nodes").iter().filter_map(Value::as_str).collect())
        .collect()
}

#[tokio::test]
async fn nodes_that_drain_are_in_waves_and_the_others_are_named_with_the_reason() {
    let plan = Objects::of("audit-budgets").answer("maintenance full fine twice", BLOCKED).await;
    assert_eq!(waves(&plan), [["fine"]]);
    let left_out = plan["leftOut"].as_array().expect("nodes");
    let left_out: Vec<[&str; 2]> = left_out
        .iter()
        .map(|node| ["node", "kind"].map(|field| node[field].as_str().expect("a text")))
        .collect();
    assert_eq!(left_out, [["full", "drain"], ["twice", "drain"]]);
    let moves = plan["waves"][0]["moves"].as_array().expect("moves");
    assert_eq!(plan["cost"]["moves"].as_u64(), u64::try_from(moves.len()).ok());
}

#[tokio::test]
async fn a_finalizer_that_keeps_a_node_out_of_the_waves_is_named() {
    let plan = Objects::of("audit-held").answer("maintenance finalizer", BLOCKED).await;
    let says = plan["leftOut"][0]["says"].as_str().expect("a text");
    let why = " stays Terminating, held by a finalizer: kordon.test/keep";
    assert!(says.starts_with("default/finalizer-") && says.ends_with(why), "{says}");
}

/// By default, a wave has all nodes that can be drained together. With `--parallel 1`, each wave has one node.
#[tokio::test]
async fn one_at_a_time_takes_as_many_waves_as_nodes() {
    let losses = Objects::of("audit-losses");
    let flags =
        "maintenance -l kubernetes.io/os=linux --force --delete-emptydir-data --work-takes 8m --settle 30s";
    let together = losses.answer(flags, LOSES).await;
    let alone = losses.answer(&format!("{flags} --parallel 1"), LOSES).await;
    assert_eq!(alone["cost"]["nodes"], 4);
    assert_eq!(waves(&alone).len(), 4);
    assert!(waves(&together).len() < 4, "{together:#}");
    let takes = |plan: &Value| plan["cost"]["takesSeconds"].as_i64().expect("a number");
    let lost = |wave: &Value| wave["lostBecause"].as_array().expect("reasons").clone();
    let because: Vec<Value> = alone["waves"].as_array().expect("waves").iter().flat_map(lost).collect();
    let fails =
        |why: &&Value| why.as_str().is_some_and(|why| why.starts_with("its Job fails (BackoffLimitExceeded"));
    assert!(because.iter().any(|why| fails(&why)), "the exit code is about Jobs: {because:?}");
    assert!(takes(&alone) >= 4 * (8 * 60 + 30) && takes(&together) < takes(&alone));
}

#[tokio::test]
async fn pods_that_lose_data_are_counted_above_the_waves() {
    let (losses, command) = (Objects::of("audit-losses"), "maintenance scratch --delete-emptydir-data");
    let plan = losses.answer(command, DONE).await;
    assert_eq!((&plan["cost"]["dataLost"], &plan["waves"][0]["dataLost"]), (&1.into(), &1.into()));
    let table = losses.table(command).await;
    assert!(table.contains("\n1 pod loses data in volumes that are deleted with their pods\n"), "{table}");
    let moves = plan["waves"][0]["moves"].as_array().expect("moves");
    let row = |moved: &Value| moved["pod"].as_str().is_some_and(|pod| table.contains(&format!("\n{pod} ")));
    assert!(!moves.is_empty() && moves.iter().all(row), "a pipe has a row for each move: {table}");
}

#[tokio::test]
async fn what_surge_does_is_said_as_in_the_plan_of_a_drain() {
    let budgets = Objects::of("audit-budgets");
    let surges = async |command: &str| {
        let (_, plan) = budgets.run(command).await;
        let surges = plan["surges"].as_array().expect("surges").iter();
        let fields = ["namespace", "kind", "name", "pods", "fate", "refusal"];
        surges.map(|surge| fields.map(|field| surge[field].clone())).collect::<Vec<_>>()
    };
    let of_drain = surges("plan drain full --ignore-daemonsets --surge").await;
    assert_eq!((of_drain.len(), of_drain[0][2].as_str()), (1, Some("full")));
    assert_eq!(surges("maintenance full --surge").await, of_drain);
    let table = budgets.table("maintenance full --surge").await;
    assert!(table.contains("\nSURGE") && table.contains("\nDeployment default/full "), "{table}");
    assert_eq!(surges("maintenance full").await.len(), 0, "never by default");
}

#[tokio::test]
async fn what_cannot_be_planned_is_refused_with_a_reason() {
    let shell = Shell::new();
    let file = shell.file("objects.json", &Objects::of("audit-budgets").list());
    let refused = async |words: &[&str], code: i32| {
        shell.refused(&[&["maintenance", "--from", &file, "--complete"], words].concat(), code).await
    };
    assert!(refused(&[], USAGE).await.contains("name the nodes, or choose them"));
    assert!(refused(&["--stale-kubelet"], USAGE).await.contains("every kubelet is as new as the API server"));
    assert!(refused(&["ful"], case_objects::FAILED).await.contains("did you mean full?"));
    assert!(refused(&["--zone", "b"], case_objects::FAILED).await.contains("zone b not found"));
    assert!(refused(&["full", "--window", "22:00"], USAGE).await.contains("22:00-06:00 Europe/Berlin"));
    assert!(
        refused(&["full", "--parallel", "0"], USAGE).await.contains("neither auto nor a number of nodes")
    );
}
