//! Commands that answer and end: medians of 20, from the start of the process to its end.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use super::{demo::Demo, median::median};

/// What a command may take, however large the cluster is.
const BUDGET: Duration = Duration::from_secs(2);

/// Exit codes of a plan that was printed: it completes, or needs more flags.
const PRINTED: [i32; 2] = [0, 5];

/// Measures each command that needs a part of the cluster.
pub fn measure(demo: &Demo) {
    let node = demo.first_node();
    let (namespace, pod) = demo.first_pod_of(&node);
    let folder = tempfile::tempdir().expect("a folder for the journal");
    let lines: [&[&str]; 9] = [
        &["cordon", &node],
        &["taint", &node, "a=b:NoSchedule", "--placement=skip"],
        &["taint", &node, "a=b:NoExecute", "--placement=skip"],
        &["label", &node, "a=b"],
        &["why", "node", &node],
        &["why", "pod", &pod, "--namespace", &namespace],
        &["plan", "drain", &node, "--placement=skip"],
        &["plan", "drain", &node],
        &["label", &node, "a=b", "--overwrite", "--enforce", "--yes"],
    ];
    for line in lines {
        let run = || {
            let output = Command::new(env!("CARGO_BIN_EXE_kordon"))
                .args(line)
                .args(["--server", &demo.server])
                .env("HOME", folder.path())
                .stdin(Stdio::null())
                .output()
                .expect("the program starts");
            let code = output.status.code().expect("no signal ended it");
            assert!(PRINTED.contains(&code), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
        };
        let took = median(|| (), |()| run());
        println!("kordon {}: {took:.2?} (budget {BUDGET:?})", line.join(" "));
    }
}
