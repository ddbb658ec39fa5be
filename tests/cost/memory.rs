//! Memory that a session keeps for each pod.

use allocation_counter::measure;

use crate::loaded::ServedCluster;

const NODES: usize = 1000;
const PODS: usize = 2000;

/// All pods are different: they can share only names of workloads and namespaces. 150,000 pods of 900 bytes take 129
/// MiB.
#[test]
fn a_pod_that_resembles_no_other_takes_less_than_a_kilobyte() {
    let without_pods = kept(&ServedCluster::new(NODES, 0));
    let with_pods = kept(&ServedCluster::new(NODES, PODS));
    let per_pod = (with_pods - without_pods) / PODS as i64;
    assert!((200..=900).contains(&per_pod), "{per_pod} bytes per pod, its share of its workload included");
}

/// Returns the bytes that a session keeps once it has listed all kinds.
fn kept(served: &ServedCluster) -> i64 {
    // The first client makes the server keep encoded objects, which must not be counted.
    drop(served.load());
    let mut session = None;
    let counted = measure(|| session = Some(served.load()));
    drop(session);
    counted.bytes_current
}
