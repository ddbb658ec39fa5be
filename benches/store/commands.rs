//! Duration of commands that print an answer and exit, from the start to the end of the process.

use super::{
    cluster::{TestCluster, program},
    large_cluster::objects::{node_name, pod_name, pod_namespace},
    median::median_of,
    report::{Budget, Figure, Report},
};

/// Exit codes of a printed plan: 0 if the plan completes, 5 if it needs more flags.
const PRINTED: [i32; 2] = [0, 5];
/// Number of runs of a command that has a budget, and of a command that has none.
const RUNS: (usize, usize) = (20, 5);

/// Measures each command that reads only a part of the cluster. Nodes renew their Leases during the measurement,
/// because the commands would have more to report if all nodes were silent.
pub fn measure(cluster: &TestCluster, renewals: u32, report: &mut Report) {
    report.heading(&format!(
        "Commands that answer and end (medians of {}, without a budget of {}), at {renewals} renewals of Leases a second",
        RUNS.0, RUNS.1
    ));
    cluster.renew_all();
    cluster.server.wait_until_idle(report);
    let _nodes_live = cluster.churn(renewals, 0);
    let node = node_name(7);
    // A pod on `node`.
    let (namespace, pod) = (pod_namespace(7), pod_name(7, 0));
    let within = Budget::AtMost(1.0);
    let lines: [(&[&str], Budget); 9] = [
        (&["cordon", &node], within),
        (&["why", "node", &node], within),
        (&["plan", "drain", &node, "--placement=skip"], within),
        (&["taint", &node, "a=b:NoSchedule", "--placement=skip"], Budget::None),
        (&["taint", &node, "a=b:NoExecute", "--placement=skip"], Budget::None),
        (&["label", &node, "a=b"], Budget::None),
        (&["why", "pod", &pod, "--namespace", &namespace], Budget::None),
        (&["plan", "drain", &node], Budget::None),
        (&["label", &node, "a=b", "--overwrite", "--enforce", "--yes"], Budget::None),
    ];
    for (line, budget) in lines {
        let run = || {
            let output = program(cluster).args(line).output().expect("the program starts");
            let code = output.status.code().expect("no signal ended it");
            assert!(PRINTED.contains(&code), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
        };
        let runs = if matches!(budget, Budget::None) { RUNS.1 } else { RUNS.0 };
        let took = median_of(runs, || (), |()| run());
        report.add(format!("kordon {}", line.join(" ")), Figure::seconds(took), budget, "");
    }
}
