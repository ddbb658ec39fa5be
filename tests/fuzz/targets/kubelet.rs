//! Fuzz target: responses of kubelets and of the metrics server.

use kordon::k8s::decode::kubelet as decode;

/// Input: a letter for the request (`s`: summary, `c`: configuration, `n`: usage of nodes, `o`: usage of one node, any
/// other: usage of pods), then the response.
pub fn kubelet(data: &[u8]) {
    let [asked, json @ ..] = data else { return };
    match asked {
        b's' => drop(decode::summary(json)),
        b'c' => drop(decode::settings(json)),
        b'n' => drop(decode::node_metrics(json)),
        b'o' => drop(decode::node_metric(json)),
        _ => drop(decode::pod_metrics(json)),
    }
}
