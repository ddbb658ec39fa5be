//! Requests that a dashboard makes to load a cluster.

use std::collections::BTreeMap;

use crate::loaded::ServedCluster;

/// Each kind is loaded with one request, which lists and then watches. There is no request per node or per page of
/// pods.
#[test]
fn loading_takes_as_many_requests_for_a_thousand_nodes_as_for_ten() {
    let (small, large) = (requests(10, 40), requests(1000, 2000));
    assert_eq!(small, large);
    // Nodes and pods take a second request, for the number of objects.
    let expected = |path: &str| if ["/api/v1/nodes", "/api/v1/pods"].contains(&path) { 2 } else { 1 };
    assert!(small.iter().all(|(path, asked)| *asked == expected(path)), "{small:#?}");
    assert!((10..=24).contains(&small.len()), "{small:#?}");
}

/// Returns the number of requests for each path, without the query. A watch that is resumed after a break is not
/// counted: on a busy machine, loading can take longer than a watch may be silent.
fn requests(nodes: usize, pods: usize) -> BTreeMap<String, usize> {
    let served = ServedCluster::new(nodes, pods);
    let session = served.load();
    let mut requests = BTreeMap::new();
    for logged in served.api.log() {
        if logged.uri.contains("watch=true") && !logged.uri.contains("sendInitialEvents=true") {
            continue;
        }
        let path = logged.uri.split('?').next().unwrap_or_default().to_owned();
        *requests.entry(path).or_default() += 1;
    }
    drop(session);
    requests
}
