//! Missing rights and injected faults.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kordon_demo::api::{Fault, FaultAnswer, Verb};
use kube::api::{Api as Objects, ListParams};
use serde_json::{Value, json};

use crate::fixture::{PODS, evict, pod, read, request, server};

#[tokio::test(start_paused = true)]
async fn a_missing_right_is_refused_and_shown_by_an_access_review() {
    let api = server();
    api.load("pods", pod("p"));
    api.inject(Fault::always(FaultAnswer::Forbidden).of_user("jane").on(&[Verb::Create], "pods/eviction"));
    let review = |client: kube::Client, subresource: &'static str| async move {
        let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "create", "resource": "pods", "subresource": subresource}}});
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let answer: Value =
            client.request(request("POST", path, "application/json", &body)).await.expect("answered");
        answer["status"]["allowed"].as_bool()
    };
    assert_eq!(review(api.client_as("jane"), "eviction").await, Some(false));
    assert_eq!(review(api.client_as("jane"), "").await, Some(true));
    assert_eq!(review(api.client(), "eviction").await, Some(true));
    let body = json!({"metadata": {"name": "p"}});
    let path = format!("{PODS}/p/eviction");
    let answer =
        api.client_as("jane").request::<Value>(request("POST", &path, "application/json", &body)).await;
    let Err(kube::Error::Api(refused)) = answer else { panic!("not refused") };
    assert_eq!(refused.code, 403);
    assert!(refused.message.contains("User \"jane\" cannot create resource \"pods/eviction\" in API group \"\" in the namespace \"default\""), "{}", refused.message);
    evict(&api, "p").await.expect("others may");
    let log = api.log();
    let last = log.last().expect("a request");
    assert_eq!((last.identity.user.as_str(), last.verb, last.code), ("system:admin", Verb::Create, 201));
}

#[tokio::test(start_paused = true)]
async fn a_share_of_requests_can_fail() {
    let api = server();
    api.inject(Fault::always(FaultAnswer::InternalError).on(&[Verb::List], "nodes").share(0.25));
    let nodes: Objects<Node> = Objects::all(api.client());
    let mut failed = 0;
    for _ in 0..400 {
        failed += u32::from(nodes.list(&ListParams::default()).await.is_err());
    }
    assert!((60..140).contains(&failed), "{failed} of 400");
    api.clear_faults();
    nodes.list(&ListParams::default()).await.expect("well again");
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_answers_429_without_a_status_and_a_hung_one_not_at_all() {
    let api = server();
    api.inject(Fault::always(FaultAnswer::Overloaded { retry_after_secs: 3 }).on(&[], "nodes"));
    api.inject(Fault::always(FaultAnswer::Hang).on(&[Verb::Get], "pods"));
    let overloaded = read(&api, "/api/v1/nodes").await.expect_err("overloaded");
    assert_eq!((overloaded.code, overloaded.details), (429, None));
    let hung =
        tokio::time::timeout(Duration::from_secs(3600), read(&api, "/api/v1/namespaces/default/pods/p"))
            .await;
    assert!(hung.is_err());
}
