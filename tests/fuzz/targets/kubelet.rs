//! What kubelets and the metrics server answer.

use kordon::k8s::decode::kubelet as decode;

/// A letter for what was asked (`s`: the summary, `c`: the configuration, `n`: usage of nodes, `o`: of one node, else of
/// pods), and the answer.
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
