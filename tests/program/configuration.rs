//! The configuration: settings from the file and the environment, and their errors.

use std::fs;

use kordon_demo::api::ApiOptions;
use serde_json::{Value, json};

use crate::common::program::{Server, Shell, path};

/// Exit codes, as in `docs/reference/cli.md`.
const DONE: i32 = 0;
const USAGE: i32 = 2;

/// Creates a shell with this configuration in its home folder.
fn configured(text: &str) -> Shell {
    let shell = Shell::new();
    let folder = shell.home.path().join(".config/kordon");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("config.toml"), text).expect("written");
    shell
}

#[tokio::test(flavor = "multi_thread")]
async fn predictions_rest_on_the_settings_that_are_configured_for_their_context() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    server.govern().await;
    let text = "[controller]\nnode-monitor-grace-period = \"70s\"\nnode-eviction-rate = 1\n\
                [contexts.here.controller]\nnode-eviction-rate = 0.5\n\
                [contexts.elsewhere.controller]\nnode-monitor-period = \"9s\"";
    let shell = configured(text);
    let kubeconfig = shell.kubeconfig(&server.url, json!({}));
    let status = async |more: &[&str]| {
        let line = [&["status", "--no-pods", "-o", "json", "--kubeconfig", &kubeconfig], more].concat();
        let output = shell.run(&line).await;
        assert_eq!(output.code, DONE, "{}", output.err);
        let status: Value = serde_json::from_str(&output.out).expect("JSON");
        let settings = status["controller"]["settings"].as_array().expect("settings").clone();
        move |flag: &str| {
            let of = settings.iter().find(|setting| setting["flag"] == flag).expect("a setting").clone();
            (
                of["value"].as_str().unwrap_or_default().to_owned(),
                of["origin"].as_str().unwrap_or_default().to_owned(),
            )
        }
    };
    let pair = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    let settings = status(&[]).await;
    assert_eq!(settings("node-monitor-grace-period"), pair("1m10s", "configuration"));
    assert_eq!(settings("node-eviction-rate"), pair("0.5", "configuration"));
    assert_ne!(settings("node-monitor-period").1, "configuration", "it is that of another context");
    let settings = status(&["--node-eviction-rate=2"]).await;
    assert_eq!(settings("node-eviction-rate"), pair("2", "override"));
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_of_operations_rest_on_the_settings_of_flags_and_configuration_too() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    server.govern().await;
    let off = "--controllers=*,-taint-eviction-controller";
    let cases: [(&str, &[&str], bool); 4] = [
        ("", &["taint"], true),
        ("", &["plan", "taint", off], false),
        ("", &["taint", off], false),
        ("[controller]\ncontrollers = \"*,-taint-eviction-controller\"", &["plan", "taint"], false),
    ];
    for (config, command, evicts) in cases {
        let line = [command, &["nodes", "general-1a-02", "away=now:NoExecute", "-s", &server.url]].concat();
        let table = configured(config).run(&line).await.done();
        let warning = "NoExecute taints evict no pods here: the controller for it does not run";
        assert_eq!(table.contains(warning), !evicts, "{line:?}: {table}");
        assert_eq!(table.contains("shop/"), evicts, "{line:?}: {table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_is_printed_with_its_origins_and_an_error_names_file_and_line() {
    let mut shell = configured("theme = \"light\"\n[drain]\nparallel = 3\nignore-daemonsets = true");
    shell.environment.push(("KORDON_DRAIN_PARALLEL".into(), "4".into()));
    let table = shell.run(&["config"]).await.done();
    let row = |key: &str| {
        let line = table.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{table}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert!(table.starts_with(path(&shell.home.path().join(".config/kordon/config.toml"))), "{table}");
    assert_eq!(row("theme "), "theme light file line 1");
    assert_eq!(row("drain.parallel"), "drain.parallel 4 environment KORDON_DRAIN_PARALLEL");
    assert_eq!(row("drain.ignore-daemonsets"), "drain.ignore-daemonsets true file line 4");
    assert!(row("drain.delete-emptydir-data").contains("false default"), "{table}");

    let shell = configured("theme = \"light\"\n\n[drian]\nparallel = 3");
    let error = shell.refused(&["drain", "n1"], USAGE).await;
    assert!(
        error.contains(".config/kordon/config.toml:3: unknown key \"drian\": did you mean \"drain\"?"),
        "{error}"
    );
    assert_eq!(shell.run(&["--help"]).await.code, DONE, "help needs no configuration");
}
