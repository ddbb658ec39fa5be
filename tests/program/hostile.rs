//! Hostile text in every string that a server, a file or an argument can contain, and a check of every place where it
//! could be printed.

use std::{fs, path::Path};

use kordon::app::Mode;
use kordon_demo::api::{Fault, FaultAnswer, Verb};
use serde_json::{Value, json};

use crate::{
    common::{
        harmless::{HOSTILE, assert_harmless},
        program::Output,
        terminal::Terminal,
    },
    dashboard_driver::NODE,
    harness::Harness,
    lying_server::{self, lied},
};

/// Starts a demo cluster behind a server that adds hostile text to everything.
async fn lying() -> Harness {
    let mut harness = Harness::start(1.0).await;
    let url = lying_server::start(harness.server.api.client()).await;
    harness.kubeconfig = harness.shell.kubeconfig(&url, json!({"token": "t"}));
    harness
}

/// Escapes control characters, which YAML does not accept.
fn escaped(config: &Value) -> String {
    kordon_core::visible::json(&config.to_string()).into_owned()
}

fn assert_harmless_output(line: &[&str], output: &Output) {
    let (line, both) = (line.join(" "), format!("{}{}", output.out, output.err));
    let found = std::panic::catch_unwind(|| assert_harmless(&both));
    assert!(found.is_ok(), "kordon {} prints it", line.escape_debug());
}

/// Returns all files in a folder and its subfolders.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn no_command_prints_what_a_terminal_would_obey() {
    let harness = lying().await;
    let node = lied(NODE);
    let pod = harness.server.left_on(NODE).await.into_iter().next().expect("a pod runs there");
    let (pod, namespace) = (lied(&pod), lied("shop"));
    let (zone, log) = (lied("demo-1a"), harness.shell.home.path().join("log").display().to_string());
    let drain = ["--ignore-daemonsets", "--delete-emptydir-data", "--force"];
    let lines: Vec<Vec<&str>> = vec![
        vec!["status"],
        vec!["nodes"],
        vec!["pods"],
        vec!["forecast"],
        vec!["why", "node", &node],
        vec!["why", "pod", &pod],
        vec!["why", "pod", &pod, "-n", &namespace],
        [&["plan", "drain", &node][..], &drain].concat(),
        [&["plan", "drain", &node, "--validate"][..], &drain].concat(),
        vec!["plan", "drain", &node],
        vec!["plan", "taint", &node, "a=b:NoExecute"],
        vec!["plan", "label", &node, "a=b"],
        vec!["plan", "annotate", &node, "a=b"],
        vec!["plan", "cordon", &node, "--diff"],
        vec!["plan", "uncordon", &node],
        vec!["plan", "delete", &pod, "-n", &namespace],
        vec!["plan", "evict", &pod, "-n", &namespace],
        vec!["plan", "node-failure", &node],
        vec!["plan", "zone-failure", &zone],
        vec!["plan", "cordon", HOSTILE],
        vec!["plan", "taint", &node, HOSTILE],
        vec!["cordon", "-l", HOSTILE],
        vec![HOSTILE],
        vec!["status", "--context", HOSTILE],
        vec!["cordon", &node, "--enforce", "--yes", "--reason", HOSTILE],
        [&["drain", &node, "--enforce", "--yes", "--take-over", "--total-timeout", "3s"][..], &drain]
            .concat(),
        vec!["journal"],
        vec!["undo", "--enforce", "--yes"],
        vec!["undo", HOSTILE],
    ];
    for (place, line) in lines.iter().enumerate() {
        // Only the first five commands are run in all formats, because all formats contain the same reports.
        let formats: &[&str] =
            if place < 5 { &["table", "json", "yaml", "csv", "md"] } else { &["table", "json"] };
        for format in formats {
            let output = harness.run(&[line, &["-o", format, "--log", &log][..]].concat()).await;
            assert_harmless_output(line, &output);
            if *format == "json" && output.out.starts_with('{') {
                serde_json::from_str::<Value>(&output.out).expect("it is JSON");
            }
        }
    }
    let written = files(harness.shell.home.path());
    assert!(written.iter().any(|path| path.ends_with("log")), "{written:?}");
    for path in written.iter().filter(|path| !path.ends_with("kubeconfig")) {
        assert_harmless(&path.display().to_string());
        assert_harmless(&String::from_utf8_lossy(&fs::read(path).expect("a file")));
    }
}

#[tokio::test]
async fn json_keeps_the_text_of_the_server() {
    let harness = lying().await;
    let output = harness.run(&["status", "-o", "json"]).await.done();
    let report: Value = serde_json::from_str(&output).expect("JSON");
    let names: Vec<&str> =
        report["nodes"].as_array().expect("nodes").iter().filter_map(|node| node["name"].as_str()).collect();
    assert!(names.contains(&&*lied(NODE)), "{names:?}");
}

#[tokio::test]
async fn errors_of_a_lying_server_are_harmless() {
    let harness = lying().await;
    for answer in
        [FaultAnswer::Forbidden, FaultAnswer::InternalError, FaultAnswer::Overloaded { retry_after_secs: 1 }]
    {
        harness.server.api.inject(Fault::always(answer).on(&[Verb::List, Verb::Watch], "pods"));
        for format in ["table", "json"] {
            let node = lied(NODE);
            let line = ["plan", "drain", &node, "--list-timeout", "3s", "-o", format];
            let output = harness.run(&line).await;
            assert_harmless_output(&line, &output);
            assert_ne!(output.code, 0, "{}", output.out);
        }
        harness.server.api.clear_faults();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_kubeconfig_is_harmless() {
    let harness = Harness::start(1.0).await;
    let evil = lied("evil");
    let user = json!({"exec": {"command": "/bin/sh", "args": ["-c", "printf 'no \\033[2J\\n' >&2; exit 1"]}});
    let config = |server: &str, user: &Value| {
        json!({"current-context": evil, "clusters": [{"name": evil, "cluster": {"server": server}}],
            "users": [{"name": evil, "user": user}],
            "contexts": [{"name": evil, "context": {"cluster": evil, "user": evil, "namespace": evil}}]})
    };
    let good = config(&harness.server.url, &json!({"token": "t"}));
    let cases = [
        good.clone(),
        config(&lied("https://127.0.0.1:1/"), &json!({})),
        config(&harness.server.url, &user),
        config(&harness.server.url, &json!({"client-certificate": evil, "client-key": evil})),
        json!({"current-context": evil, "contexts": [{"name": evil, "context": {"cluster": "no", "user": "no"}}]}),
        json!({"current-context": evil, "contexts": [{"name": lied("other"), "context": null}]}),
    ];
    for (place, case) in cases.iter().enumerate() {
        let path = harness.shell.file(&format!("config{place}"), &escaped(case));
        for line in [
            vec!["status", "--timeout", "5s"],
            vec!["cordon", NODE, "--enforce", "--yes"],
            vec!["journal"],
            vec!["journal", "-o", "json"],
        ] {
            let output = harness.shell.run(&[&["--kubeconfig", &path][..], &line].concat()).await;
            assert_harmless_output(&line, &output);
        }
    }
    let path = harness.shell.file("asked", &escaped(&good));
    let mut terminal = Terminal::with(harness.shell.under_terminal(&[
        "--kubeconfig",
        &path,
        "drain",
        NODE,
        "--enforce",
        "--force",
        "--ignore-daemonsets",
        "--delete-emptydir-data",
    ]));
    terminal.wait("anything else to cancel");
    // The terminal turns line ends into `\r\n`.
    assert_harmless(&terminal.raw().replace("\r\n", "\n"));
    terminal.type_in("no\r");
    terminal.end();
    assert_harmless(&terminal.raw().replace("\r\n", "\n"));
}

#[tokio::test]
async fn the_dashboard_shows_hostile_text_and_never_obeys_it() {
    let harness = lying().await;
    harness
        .with_dashboard(Mode::DryRun, async |driver| {
            driver.ready().await;
            for keys in [
                "1", "2", "2w", "s", "S", "<Enter>", "d", "<Esc>", "<Esc>", "2d", "<Esc>", "3", "4", "5",
                "6", "?", "<Esc>", "2x", "<Esc>", "2c", "<Esc>", "2t", "<Esc>", "2l", "<Esc>", ":", "<Esc>",
                "2/evil", "<Esc>", "2rDEF", "<Down>", "<Down>", "d", "<Esc>", "<Esc>", "2rDEF", "A",
            ] {
                driver.press(keys).await;
                assert_harmless(&driver.screen());
            }
            driver.press("<Esc><Esc>2rDEF").await;
            driver.wait("is claimed for a drain by evil␛").await;
            assert_harmless(&driver.screen());
        })
        .await;
}
