//! The bytes that a pod takes while it is known.

use allocation_counter::measure;

use crate::loaded::ServedCluster;

const NODES: usize = 1000;
const PODS: usize = 2000;

/// Pods that are all different: nothing but names of workloads and namespaces can be shared. With 150,000 of them 900 bytes
/// each are 129 MiB.
#[test]
fn a_pod_that_resembles_no_other_takes_less_than_a_kilobyte() {
    let without_pods = kept(&ServedCluster::new(NODES, 0));
    let with_pods = kept(&ServedCluster::new(NODES, PODS));
    let per_pod = (with_pods - without_pods) / PODS as i64;
    assert!((200..=900).contains(&per_pod), "{per_pod} bytes per pod, its share of its workload included");
}

/// The bytes that a session keeps once it has listed everything.
fn kept(served: &ServedCluster) -> i64 {
    // The server keeps what it has encoded for its first client.
    drop(served.load());
    let mut session = None;
    let counted = measure(|| session = Some(served.load()));
    drop(session);
    counted.bytes_current
}
