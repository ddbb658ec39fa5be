//! Allocations of the dashboard's frequent work: applying changes from watches, and refreshing.

use allocation_counter::measure;
use http::Request;
use kordon::{app::App, k8s::feed::FeedEvent, run::Links};
use kordon_time::Span;
use serde_json::{Value, json};

use crate::{
    loaded::{START, ServedCluster},
    objects::{LargeCluster, PodHealth, node_name, pod_name, pod_namespace},
};

const SMALL: (usize, usize) = (100, 400);
const LARGE: (usize, usize) = (1000, 2000);
const EVENTS: usize = 100;

#[test]
fn a_renewed_lease_costs_few_allocations_however_many_nodes_there_are() {
    let cost = |size| {
        applied(size, |_, number| {
            let renewed = (START + Span::from_secs(1)).to_micro_time();
            let path = format!(
                "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{}",
                node_name(number % 100)
            );
            (path, json!({"spec": {"renewTime": renewed}}))
        })
    };
    let (small, large) = (cost(SMALL), cost(LARGE));
    assert!(large <= small * 1.2 + 1.0, "{small:.1} for 100 nodes, {large:.1} for 1,000");
    assert!(large <= 8.0, "{large:.1} allocations for a lease");
}

#[test]
fn a_changed_pod_costs_few_allocations_however_many_pods_there_are() {
    let cost = |size| {
        applied(size, |cluster, number| {
            let path =
                format!("/api/v1/namespaces/{}/pods/{}/status", pod_namespace(number), pod_name(number, 0));
            let health = PodHealth { ready: false, restarts: 1 };
            (path, json!({"status": cluster.pod_status(number, health)}))
        })
    };
    let (small, large) = (cost(SMALL), cost(LARGE));
    assert!(large <= small * 1.2 + 1.0, "{small:.1} for 400 pods, {large:.1} for 2,000");
    assert!(large <= 8.0, "{large:.1} allocations for a pod");
}

#[test]
fn a_refresh_without_changes_costs_the_same_for_a_thousand_nodes_as_for_a_hundred() {
    let cost = |(nodes, pods)| {
        let served = ServedCluster::with_slow_clock(nodes, pods);
        let (mut app, _links) = served.show();
        let now = served.clock.now();
        let refreshed = measure(|| {
            app.refresh(now);
        });
        refreshed.count_total
    };
    let (small, large) = (cost(SMALL), cost(LARGE));
    assert!(large <= small + 2, "{small} allocations for 100 nodes, {large} for 1,000");
    assert!(large <= 10, "{large} allocations");
}

/// Returns the mean number of allocations for applying a change, over 100 patches of different objects.
fn applied((nodes, pods): (usize, usize), patch: impl Fn(LargeCluster, usize) -> (String, Value)) -> f64 {
    let served = ServedCluster::new(nodes, pods);
    let (mut app, mut links) = served.show();
    let cluster = LargeCluster { nodes, pods, now: START };
    let client = served.runtime.block_on(async { served.api.client() });
    let (mut events, mut allocations) = (0, 0);
    for number in 0..EVENTS {
        let (path, body) = patch(cluster, number);
        served.runtime.block_on(async {
            let request = Request::patch(path).header("content-type", "application/merge-patch+json");
            let request = request.body(body.to_string().into_bytes()).expect("a path");
            client.request_text(request).await.expect("it is patched");
        });
        allocations += apply_next(&served, &mut app, &mut links);
        events += 1;
    }
    allocations as f64 / f64::from(events)
}

/// Applies the next event that contains a change, and all events before it. Returns the number of allocations for the
/// event with the change.
fn apply_next(served: &ServedCluster, app: &mut App, links: &mut Links) -> u64 {
    loop {
        let event = served.runtime.block_on(links.feeds.recv()).expect("the watches run");
        let changes = match &event {
            FeedEvent::Changes(changes) => changes.len(),
            FeedEvent::Health(..)
            | FeedEvent::ScopeState(..)
            | FeedEvent::ClockDifference(_)
            | FeedEvent::Trouble(_) => 0,
        };
        let now = served.clock.now();
        let counted = measure(|| {
            app.on_watch_event(event, now);
        });
        if changes > 0 {
            assert_eq!(changes, 1, "one object was patched");
            return counted.count_total;
        }
    }
}
