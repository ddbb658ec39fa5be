//! Drains on a real control plane 1.37.1: the objects just before each drain, and what became of each pod. The kubelets
//! were simulated: they ended a container 3 s after its deletion, and started one within 1 s unless the row says
//! otherwise.

use std::collections::BTreeMap;

use serde_json::Value;

use super::case_objects::Objects;

/// Largest allowed difference between a predicted and a measured time, in seconds. The simulated kubelets check their
/// pods once a second: first they end pods, then they start pods.
const TOLERANCE: f64 = 2.0;

/// A drain, and the measured result.
struct Measured {
    case: &'static str,
    node: &'static str,
    flags: &'static str,
    /// Number of pods by their outcome.
    outcomes: &'static [(&'static str, u64)],
    /// Seconds from the deletion until the replacement was Ready, by the start of the old pod's name.
    ready: &'static [(&'static str, f64)],
}

const MEASURED: &[Measured] = &[
    Measured {
        case: "job-failed-once-before",
        node: "a01-n1",
        flags: "",
        outcomes: &[("failsJob", 2), ("finished", 1)],
        ready: &[],
    },
    Measured {
        case: "job-index-waits-for-its-successor",
        node: "a04-n1",
        flags: "",
        outcomes: &[("moves", 3)],
        ready: &[("idx-0", 13.7), ("idx-1", 13.7), ("idx-2", 13.8)],
    },
    Measured {
        case: "job-too-many-failed-indexes",
        node: "a05-n1",
        flags: "",
        outcomes: &[("failsJob", 3)],
        ready: &[],
    },
    Measured {
        case: "job-ignores-disruptions",
        node: "a07-n1",
        flags: "",
        outcomes: &[("moves", 2)],
        ready: &[("pfi-2mxkm", 24.5), ("pfi-rjtmd", 24.5)],
    },
    Measured {
        case: "job-fails-on-disruption",
        node: "a08-n1",
        flags: "",
        outcomes: &[("failsJob", 2)],
        ready: &[],
    },
    Measured {
        case: "job-almost-complete",
        node: "a14-n1",
        flags: "",
        outcomes: &[("moves", 1), ("finished", 2)],
        ready: &[("c3-ttsrb", 10.8)],
    },
    Measured {
        case: "job-three-pods-at-once",
        node: "a16-n1",
        flags: "",
        outcomes: &[("moves", 3)],
        ready: &[("three", 40.7)],
    },
    Measured {
        case: "job-work-queue",
        node: "a20-n1",
        flags: "",
        outcomes: &[("notReplaced", 1), ("finished", 1)],
        ready: &[],
    },
    Measured {
        case: "job-five-failures",
        node: "a22-n1",
        flags: "",
        outcomes: &[("failsJob", 5)],
        ready: &[],
    },
    Measured {
        case: "finished-bare-pods",
        node: "f01-n1",
        flags: "",
        outcomes: &[("moves", 1), ("finished", 2)],
        ready: &[("web", 1.0)],
    },
    // A StatefulSet creates a pod once the pods with lower ordinals are Ready, here after 5 s each.
    Measured {
        case: "stateful-set-in-order",
        node: "c09-n1",
        flags: "",
        outcomes: &[("moves", 3)],
        ready: &[("db-0", 10.4), ("db-1", 15.6), ("db-2", 20.7)],
    },
    Measured {
        case: "stateful-set-parallel",
        node: "c10-n1",
        flags: "",
        outcomes: &[("moves", 3)],
        ready: &[("db-0", 11.3), ("db-1", 11.5), ("db-2", 11.8)],
    },
    Measured {
        case: "stateful-set-behind-unready",
        node: "c07-n1",
        flags: "",
        outcomes: &[("stuck", 1)],
        ready: &[],
    },
    // The template of the StatefulSet requests more than any node has. Its pods have the current revision, which
    // requests less, and there is room for one of them.
    Measured {
        case: "stateful-set-below-partition",
        node: "c05-n1",
        flags: "",
        outcomes: &[("moves", 1), ("pending", 1)],
        ready: &[("db-0", 4.9)],
    },
    // The replacements of the crashing pods crash too: they get a node, but are never Ready.
    Measured {
        case: "crash-loop-always-allowed",
        node: "b04-n1",
        flags: "",
        outcomes: &[("moves", 2)],
        ready: &[],
    },
    // There are three priorities. Each preempts pods of the next lower priority, and no room is left for the lowest.
    Measured {
        case: "preemption-in-turn",
        node: "j01-n1",
        flags: "",
        outcomes: &[("preempts", 1)],
        ready: &[("high", 4.2)],
    },
    Measured { case: "preemption-never", node: "d19-n1", flags: "", outcomes: &[("pending", 1)], ready: &[] },
    // Two pods have a required affinity to a third pod. All three leave, and are placed together.
    Measured {
        case: "affinity-to-a-pod-that-moves-too",
        node: "d16-n1",
        flags: "",
        outcomes: &[("moves", 3)],
        ready: &[("app", 1.9), ("cache", 1.2)],
    },
    Measured {
        case: "grace-longer-than-timeout",
        node: "f06-n1",
        flags: " --timeout=60s",
        outcomes: &[("moves", 2)],
        ready: &[("slow", 1.2), ("web", 1.2)],
    },
];

async fn json(case: &str, command: &str) -> Value {
    Objects::of(&format!("measured/{case}")).run(command).await.1
}

#[tokio::test]
async fn drains_end_as_they_did() {
    for Measured { case, node, flags, outcomes, ready } in MEASURED {
        let plan = json(case, &format!("plan drain {node} --force{flags}")).await;
        let predicted: BTreeMap<String, u64> =
            serde_json::from_value(plan["totals"]["outcomes"].clone()).expect("counts");
        let measured: BTreeMap<String, u64> =
            outcomes.iter().map(|(outcome, pods)| ((*outcome).to_owned(), *pods)).collect();
        assert_eq!(predicted, measured, "{case}");
        for pod in plan["pods"].as_array().expect("pods") {
            let name = pod["pod"].as_str().expect("a name");
            let measured =
                ready.iter().find(|(start, _)| name.starts_with(start)).map(|(_, seconds)| *seconds);
            match (pod["readyAgainInSeconds"].as_f64(), measured) {
                (Some(predicted), Some(measured)) => assert!(
                    (predicted - measured).abs() <= TOLERANCE,
                    "{case}: {name} is predicted to be Ready again in {predicted} s, and was in {measured} s"
                ),
                (predicted, measured) => assert_eq!(predicted, measured, "{case}: {name}"),
            }
        }
    }
}

/// The Job controller removes its finalizer from a failed pod at once, unless the Job has a back-off limit for each
/// index.
#[tokio::test]
async fn the_object_of_a_failed_index_stays_until_its_successor_exists() {
    let plan = json("job-index-waits-for-its-successor", "plan drain a04-n1").await;
    let gone = plan["pods"][0]["deleted"]["likelySeconds"].as_f64().expect("a time");
    assert!((gone - 13.8).abs() <= TOLERANCE, "{gone}");
}

/// The back-off counts from the time at which the condition Ready became False, here 20 s before the drain.
#[tokio::test]
async fn a_pod_of_a_job_that_was_not_ready_is_replaced_without_back_off() {
    let plan = json("job-pod-not-ready", "plan drain a40-n1").await;
    let created = plan["timeline"].as_array().expect("a timeline").iter();
    let created = created.clone().find(|moment| moment["type"] == "replaced").expect("a replacement");
    assert!(created["inSeconds"].as_f64().expect("a time") <= 1.0, "{created}");
}

/// A pod that tolerates the taint of a cordon and selects the drained host came back four times in 25 s.
#[tokio::test]
async fn a_drain_does_not_empty_a_node_whose_pods_tolerate_the_cordon() {
    let plan = json("tolerates-the-cordon", "plan drain c12-n1").await;
    assert_eq!(plan["outcome"], "stalls");
    let warnings = plan["warnings"].as_array().expect("warnings");
    let back = warnings.iter().find(|warning| warning["type"] == "comesBack").expect("a warning");
    assert!(back["text"].as_str().expect("a text").contains("they tolerate its cordon"), "{back}");
}

/// The pod `mid` is preempted. Its replacement preempts a pod `low`, whose own replacement stays Pending.
#[tokio::test]
async fn a_preempted_pod_preempts_in_turn() {
    let plan = json("preemption-in-turn", "plan drain j01-n1").await;
    assert_eq!(plan["totals"]["preempted"], 2, "{:#}", plan["totals"]);
    let preempts = plan["pods"][0]["placement"]["preempts"].as_array().expect("victims").clone();
    let texts: Vec<&str> = preempts.iter().filter_map(|victim| victim["text"].as_str()).collect();
    assert!(texts[0].contains("its replacement: j01-n3 (preempts j01/low-"), "{texts:?}");
    assert!(texts[1].contains("its replacement: stays Pending"), "{texts:?}");
}

/// kubectl gave up after 15 s: a container ignored SIGTERM for its grace period of 40 s.
#[tokio::test]
async fn a_timeout_that_some_pods_may_exceed_is_a_warning() {
    let plan = json("grace-longer-than-timeout", "plan drain f06-n1 --timeout=15s").await;
    let warnings = plan["warnings"].as_array().expect("warnings");
    assert!(warnings.iter().any(|warning| warning["type"] == "mayTimeOut"), "{warnings:?}");
}

/// The Job `j0` has failed: its pod hangs on the dead node, and nothing replaces it. `db-0` and the pod of `jf` are
/// replaced once the old pod is gone. Nothing evicts the pod of `forever`.
#[tokio::test]
async fn the_outcome_of_a_pod_of_a_failed_job_stays_while_it_terminates() {
    let why = json("dead-node-evicted", "why pod j0-nrjjh -n e01").await;
    assert!(why.to_string().contains("fails Job j0 (BackoffLimitExceeded"), "{why:#}");
    let status = json("dead-node-evicted", "status").await;
    let text = status["verdict"]["text"].as_str().expect("a verdict");
    assert!(text.contains("5 pods have nowhere to run"), "{text}");
}

/// A forced removal on a dead node: with `podReplacementPolicy: Failed` or a `podFailurePolicy`, the Job controller
/// keeps the objects. They stayed until the node was tainted out-of-service.
#[tokio::test]
async fn a_forced_removal_does_not_end_a_pod_that_its_job_waits_for() {
    let plan = json("job-pods-on-a-dead-node", "plan delete pod --all -n i42 --force --grace-period=0").await;
    let stuck = plan["pods"].as_array().expect("pods").iter().filter(|pod| pod["outcome"] == "stuck");
    let mut jobs: Vec<&str> = stuck.filter_map(|pod| pod["ownerName"].as_str()).collect();
    jobs.sort_unstable();
    assert_eq!(jobs, ["jf", "jp"]);
}

/// The finalizer of the Job controller does not keep a pod whose node was deleted. So the forecast has exactly one
/// removal of each pod.
#[tokio::test]
async fn the_pods_of_a_deleted_node_are_removed_once() {
    let forecast = json("node-deleted-with-jobs", "forecast").await;
    let mut removed: Vec<&str> =
        forecast["steps"].as_array().expect("steps").iter().filter_map(|step| step["pod"].as_str()).collect();
    assert_eq!(removed.len(), 11, "{removed:?}");
    removed.sort_unstable();
    removed.dedup();
    assert_eq!(removed.len(), 11);
}
