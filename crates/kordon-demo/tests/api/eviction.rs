//! The eviction subresource and PodDisruptionBudgets.

use kordon_demo::api::ApiOptions;
use serde_json::{Value, json};

use crate::fixture::{PODS, evict, pod, post, read, server, server_with};

#[tokio::test(start_paused = true)]
async fn an_exhausted_budget_answers_429_with_its_numbers_and_no_retry_after() {
    let api = server();
    api.load("pods", pod("p"));
    api.load("poddisruptionbudgets", budget("b", 0, 3, 3));
    let refused = evict(&api, "p").await.expect_err("nothing is left");
    assert_eq!((refused.code, refused.reason.as_str()), (429, "TooManyRequests"));
    let details = refused.details.expect("details");
    let cause = details.causes.first().expect("a cause");
    assert_eq!(cause.reason, "DisruptionBudget");
    assert_eq!(cause.message, "The disruption budget b needs 3 healthy pods and has 3 currently");
    assert_eq!(details.retry_after_seconds, 0);
}

#[tokio::test(start_paused = true)]
async fn an_eviction_takes_one_disruption_and_the_pod_terminates() {
    let api = server();
    api.load("pods", pod("p"));
    api.load("pods", pod("q"));
    api.load("poddisruptionbudgets", budget("b", 1, 1, 2));
    evict(&api, "p").await.expect("one is left");
    let pod = read(&api, &format!("{PODS}/p")).await.expect("terminating");
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 30);
    let why = pod["status"]["conditions"].as_array().and_then(|c| c.last()).map(|c| c["reason"].clone());
    assert_eq!(why, Some(json!("EvictionByEvictionAPI")));
    let budget = read(&api, "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b").await.expect("read");
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert!(budget["status"]["disruptedPods"]["p"].is_string());
    assert_eq!(evict(&api, "q").await.expect_err("spent").code, 429);
    evict(&api, "p").await.expect("a terminating pod needs no budget");
}

#[tokio::test(start_paused = true)]
async fn an_eviction_tells_the_version_of_the_deletion_from_1_38_on() {
    for (minor_version, tells) in [(37, false), (38, true)] {
        let api = server_with(ApiOptions { minor_version, ..ApiOptions::default() });
        api.load("pods", pod("p"));
        let body = json!({"metadata": {"name": "p", "namespace": "default"}});
        let answer = post(&api, &format!("{PODS}/p/eviction"), &body).await.expect("no budget");
        let pod = read(&api, &format!("{PODS}/p")).await.expect("terminating");
        let version = Some(&pod["metadata"]["resourceVersion"]).filter(|_| tells);
        assert_eq!(answer["metadata"].get("resourceVersion"), version, "1.{minor_version}");
    }
}

#[tokio::test(start_paused = true)]
async fn evictions_are_decided_as_the_specification_says() {
    let ready = |status: &str| json!([{"type": "Ready", "status": status}]);
    for (what, change, budgets, expected) in [
        ("no budget", json!({}), vec![], Ok(())),
        ("pending", json!({"status": {"phase": "Pending"}}), vec![budget("b", 0, 3, 3)], Ok(())),
        (
            "finished under two budgets",
            json!({"status": {"phase": "Failed"}}),
            vec![budget("a", 0, 3, 3), budget("b", 0, 3, 3)],
            Ok(()),
        ),
        ("two budgets", json!({}), vec![budget("a", 5, 1, 6), budget("b", 5, 1, 6)], Err(500)),
        (
            "unready, healthy budget",
            json!({"status": {"conditions": ready("False")}}),
            vec![budget("b", 0, 3, 3)],
            Ok(()),
        ),
        (
            "unready, sick budget",
            json!({"status": {"conditions": ready("False")}}),
            vec![budget("b", 0, 3, 2)],
            Err(429),
        ),
        (
            "unready, nothing desired",
            json!({"status": {"conditions": ready("False")}}),
            vec![budget("b", 0, 0, 0)],
            Err(429),
        ),
        (
            "budget of others",
            json!({"metadata": {"labels": {"app": "z"}}}),
            vec![budget("b", 0, 3, 3)],
            Ok(()),
        ),
        ("negative", json!({}), vec![budget("b", -1, 3, 3)], Err(403)),
    ] {
        let api = server();
        let mut pod = pod("p");
        json_patch::merge(&mut pod, &change);
        api.load("pods", pod);
        for budget in budgets {
            api.load("poddisruptionbudgets", budget);
        }
        assert_eq!(evict(&api, "p").await.map_err(|status| status.code), expected, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_always_allow_budget_lets_unready_pods_go_and_a_stale_one_asks_to_come_back() {
    let api = server();
    let mut unready = pod("p");
    unready["status"]["conditions"] = json!([]);
    api.load("pods", unready);
    let mut lenient = budget("b", 0, 3, 2);
    lenient["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow".into();
    api.load("poddisruptionbudgets", lenient);
    evict(&api, "p").await.expect("the policy allows it");

    let api = server();
    api.load("pods", pod("p"));
    let mut stale = budget("b", 5, 1, 6);
    stale["metadata"]["generation"] = 2.into();
    api.load("poddisruptionbudgets", stale);
    let refused = evict(&api, "p").await.expect_err("stale");
    assert_eq!(refused.details.map(|details| details.retry_after_seconds), Some(10));
}

/// Scenario 53: The dryRun of an eviction may stand in its body, its query or both; if the two differ, the
/// eviction is an error.
#[tokio::test(start_paused = true)]
async fn an_eviction_names_its_pod_and_its_dry_run_alike_everywhere() {
    let api = server();
    api.load("pods", pod("p"));
    let path = format!("{PODS}/p/eviction");
    let wrong = post(&api, &path, &json!({"metadata": {"name": "q"}})).await.expect_err("another name");
    assert_eq!(
        (wrong.code, wrong.message.as_str()),
        (400, "name in URL does not match name in Eviction object")
    );
    let missing = post(&api, &format!("{PODS}/q/eviction"), &json!({"metadata": {"name": "q"}})).await;
    assert_eq!(missing.expect_err("no pod").code, 404);
    let odd = json!({"metadata": {"name": "p"}, "deleteOptions": {"dryRun": ["Foo"]}});
    assert_eq!(post(&api, &path, &odd).await.expect_err("not a dry run").code, 422);
    let split = json!({"metadata": {"name": "p"}, "deleteOptions": {"dryRun": []}});
    assert_eq!(post(&api, &format!("{path}?dryRun=All"), &split).await.expect_err("which?").code, 400);
    let other = json!({"metadata": {"name": "p"}, "deleteOptions": {"preconditions": {"uid": "another"}}});
    assert_eq!(post(&api, &path, &other).await.expect_err("another pod").code, 409);
}

/// A budget that selects the pods made by [`pod`].
fn budget(name: &str, allowed: i64, desired: i64, healthy: i64) -> Value {
    json!({"metadata": {"name": name, "namespace": "default", "generation": 1},
        "spec": {"minAvailable": desired, "selector": {"matchLabels": {"app": "a"}}},
        "status": {"observedGeneration": 1, "disruptionsAllowed": allowed, "desiredHealthy": desired,
            "currentHealthy": healthy, "expectedPods": desired}})
}
