//! `kordon doctor`: what it finds with a good server, with several bad servers, and in files. It writes nothing.

use std::{fs, process::Stdio, time::Duration};

use kordon_demo::api::{ApiOptions, Fault, FaultAnswer, Verb};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpListener,
    time::timeout,
};

use crate::common::program::{Server, Shell};

/// Exit codes, as in `docs/reference/doctor.md`.
const DONE: i32 = 0;
const FAILED: i32 = 1;
const NO_CONNECTION: i32 = 3;

/// Time within which the program ends even if a server hangs. Each of the program's own timeouts is one second.
const ENDS: Duration = Duration::from_secs(60);

/// What `kordon doctor -o json` found.
struct Found(Value);

impl Found {
    fn check(&self, id: &str) -> &Value {
        let mut checks = self.0["checks"].as_array().expect("checks").iter();
        checks.find(|check| check["id"] == id).unwrap_or_else(|| panic!("no {id} in {:#}", self.0))
    }

    fn result(&self, id: &str) -> &str {
        self.check(id)["result"].as_str().expect("a result")
    }

    fn text(&self, id: &str) -> &str {
        self.check(id)["found"].as_str().expect("a text")
    }

    /// Results of all checks of an area, without duplicates.
    fn results(&self, area: &str) -> Vec<&str> {
        let checks = self.0["checks"].as_array().expect("checks").iter();
        let of_area = checks.filter(|check| check["id"].as_str().is_some_and(|id| id.starts_with(area)));
        let mut results: Vec<&str> = of_area.filter_map(|check| check["result"].as_str()).collect();
        results.sort_unstable();
        results.dedup();
        results
    }
}

/// A Lease in kube-system that was renewed at the beginning of 2026 and is valid for some seconds.
fn lease(name: &str, holder: &str, seconds: i64) -> Value {
    let renewed = "2026-01-01T00:00:00.000000Z";
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "kube-system", "name": name},
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": seconds,
            "acquireTime": renewed, "renewTime": renewed,
        },
    })
}

async fn doctor(shell: &Shell, more: &[&str], code: i32) -> Found {
    let line = [&["doctor", "-o", "json"], more].concat();
    let output = shell.run(&line).await;
    assert_eq!(output.code, code, "{}\n{}", output.err, output.out);
    Found(output.json())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_cluster_has_no_problem_and_gets_no_write() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    server.govern().await;
    let shell = Shell::new();
    let kubeconfig = shell.kubeconfig(&server.url, json!({"token": "t"}));
    let found = doctor(&shell, &["--kubeconfig", &kubeconfig], DONE).await;
    // The demo's server does not say who the user is.
    assert_eq!(found.result("connection.authentication"), "unknown");
    assert_eq!(found.results("connection."), ["ok", "unknown"], "{:#}", found.0);
    assert_eq!(found.results("rights."), ["ok"], "{:#}", found.0);
    assert_eq!(found.results("files."), ["ok"], "{:#}", found.0);
    for id in ["cluster.version", "cluster.clock", "cluster.watches", "cluster.size", "controller.lease"] {
        assert_eq!(found.result(id), "ok", "{:#}", found.check(id));
    }
    let kubeconfig = found.text("connection.kubeconfig");
    assert!(kubeconfig.starts_with("context here (current-context), user alice, from"), "{kubeconfig}");
    assert!(kubeconfig.ends_with("(--kubeconfig)"), "{kubeconfig}");
    assert!(found.text("controller.lease").ends_with("the-leader"), "{}", found.text("controller.lease"));
    let size = found.text("cluster.size");
    assert!(size.contains(" nodes, ") && !size.starts_with("0 "), "{size}");
    assert_eq!(server.written(), Vec::<String>::new());
    let folders = [".local", ".cache", ".config"].map(|name| shell.home.path().join(name).exists());
    assert_eq!(folders, [false; 3], "it creates no folder");
}

#[tokio::test(flavor = "multi_thread")]
async fn kordon_is_named_as_the_controller_while_it_renews_its_lease() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    server.govern().await;
    server.api.load("leases", lease("kordon-controller", "n1_kordon-x", 1_000_000_000));
    let shell = Shell::new();
    let found = doctor(&shell, &["--server", &server.url], DONE).await;
    assert_eq!(found.result("controller.lease"), "ok");
    let lease = found.text("controller.lease");
    assert!(lease.starts_with("kordon controller runs as n1_kordon-x for "), "{lease}");
    let status = shell.run(&["status", "--server", &server.url]).await;
    let said = "controller: kordon controller, n1_kordon-x since 2026-01-01";
    assert!(status.out.contains(said), "{}", status.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_manager_kordon_is_the_controller_for_every_command_while_its_lease_is_valid() {
    for (seconds, result, code) in [(1_000_000_000, "ok", DONE), (15, "problem", FAILED)] {
        let server = Server::start(ApiOptions::default()).await;
        let _world = server.inhabit();
        server.api.load("leases", lease("kube-controller-manager", "n1_1f6d", 15));
        server.api.load("leases", lease("kordon-controller", "n2_kordon-x", seconds));
        let shell = Shell::new();
        let found = doctor(&shell, &["--server", &server.url], code).await;
        assert_eq!(found.result("controller.lease"), result, "{:#}", found.check("controller.lease"));
        let is_missing = |text: &str| text.contains("no active kube-controller-manager");
        let status = shell.run(&["status", "--server", &server.url]).await;
        assert_eq!(is_missing(&status.out), result == "problem", "{}", status.out);
        let line = ["status", "--watch", "--server", &server.url];
        let mut watch = shell.command(&line).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut verdicts = BufReader::new(watch.stdout.take().expect("its output")).lines();
        let first = timeout(ENDS, verdicts.next_line()).await.expect("a verdict").expect("text");
        let first = first.expect("it goes on");
        assert_eq!(is_missing(&first), result == "problem", "{first}");
    }
}

#[tokio::test]
async fn the_lease_of_kordon_counts_in_files_too() {
    let shell = Shell::new();
    let ready = json!({
        "type": "Ready", "status": "True",
        "lastHeartbeatTime": "2026-01-01T01:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
        "spec": {}, "status": {"conditions": [ready]},
    });
    for (seconds, is_missing) in [(1_000_000_000, false), (15, true)] {
        let manager = lease("kube-controller-manager", "n1_1f6d", 15);
        let items = [node.clone(), manager, lease("kordon-controller", "n2_kordon-x", seconds)];
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let file = shell.file("objects.json", &list);
        for question in [&["status"][..], &["why", "node", "n1"]] {
            let answer = shell.run(&[question, &["--from", &file, "--complete"]].concat()).await;
            assert_eq!(
                answer.out.contains("no active kube-controller-manager"),
                is_missing,
                "{}",
                answer.out
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_permissions_are_named_with_the_command_that_works_without() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::Patch], "nodes"));
    server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::List, Verb::Watch], "services"));
    let found = doctor(&Shell::new(), &["--server", &server.url], DONE).await;
    let drain = found.check("rights.eviction");
    assert_eq!(drain["result"], "warning");
    assert_eq!(drain["found"], "you may not drain nodes and evict pods: missing patch nodes");
    assert!(
        drain["fix"].as_str().is_some_and(|fix| fix.contains("kordon plan drain works without")),
        "{drain}"
    );
    assert!(found.text("rights.pods").ends_with("missing list services, watch services"));
    assert_eq!(found.result("rights.deletion"), "ok");

    server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::List, Verb::Watch], "nodes"));
    let found = doctor(&Shell::new(), &["--server", &server.url], FAILED).await;
    assert_eq!((found.result("rights.nodes"), found.result("cluster.watches")), ("problem", "problem"));
    assert_eq!(found.result("cluster.size"), "unknown", "forbidden nodes are not zero nodes");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_a_dead_address_the_connection_is_the_problem_and_the_rest_is_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let found = doctor(&Shell::new(), &["--server", &format!("https://{address}")], NO_CONNECTION).await;
    assert_eq!((found.result("connection.dns"), found.result("connection.tcp")), ("ok", "problem"));
    assert!(found.text("connection.tcp").contains("nothing listens there"));
    let fix = found.check("connection.tcp")["fix"].as_str().expect("what to do");
    assert!(fix.starts_with("check the port"), "{fix}");
    assert_eq!(found.text("connection.tls"), "not checked, because connection.tcp failed");
    for area in ["cluster.", "controller.", "rights."] {
        assert_eq!(found.results(area), ["unknown"], "{area}");
    }
    assert_eq!(found.results("files."), ["ok"], "files need no server");

    let found = doctor(&Shell::new(), &[], NO_CONNECTION).await;
    assert_eq!(found.result("connection.kubeconfig"), "problem", "there is none");
    let found = doctor(&Shell::new(), &["--server", "https://kordon.invalid"], NO_CONNECTION).await;
    assert_eq!((found.result("connection.dns"), found.result("connection.tcp")), ("problem", "unknown"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_credentials_and_other_servers_are_told_apart() {
    let tokens = [("good".to_owned(), "alice".to_owned())].into();
    let server = Server::start(ApiOptions { tokens, ..ApiOptions::default() }).await;
    let shell = Shell::new();
    let kubeconfig = shell.kubeconfig(&server.url, json!({"token": "expired"}));
    let found = doctor(&shell, &["--kubeconfig", &kubeconfig], NO_CONNECTION).await;
    assert_eq!(found.result("connection.authentication"), "problem");
    assert_eq!((found.result("connection.tcp"), found.result("connection.tls")), ("ok", "ok"));

    let tls = server.url.replace("http://", "https://");
    let found = doctor(&shell, &["--server", &tls, "--token=good"], NO_CONNECTION).await;
    assert_eq!((found.result("connection.tcp"), found.result("connection.tls")), ("ok", "problem"));

    let plugin = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh",
        "args": ["-c", "echo session over >&2; exit 1"], "interactiveMode": "Never"}});
    let kubeconfig = shell.kubeconfig(&server.url, plugin);
    let found = doctor(&shell, &["--kubeconfig", &kubeconfig], NO_CONNECTION).await;
    assert_eq!(found.result("connection.credentials"), "problem");
    assert!(found.text("connection.credentials").contains("session over"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_a_finding_and_no_wait() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    let line = ["--server", &server.url, "--request-timeout=1s"];
    server.api.inject(Fault::always(FaultAnswer::Hang).on(&[Verb::List, Verb::Watch], "nodes"));
    server.api.inject(Fault::always(FaultAnswer::Hang).on(&[Verb::Create], "selfsubjectaccessreviews"));
    let shell = Shell::new();
    let found = timeout(ENDS, doctor(&shell, &line, FAILED)).await.expect("it ends");
    assert_eq!(found.result("cluster.watches"), "problem");
    assert_eq!(found.result("cluster.size"), "unknown");
    assert_eq!(found.results("rights."), ["unknown"]);

    server.api.inject(Fault::always(FaultAnswer::Hang));
    let found = timeout(ENDS, doctor(&shell, &line, NO_CONNECTION)).await.expect("it ends");
    assert_eq!((found.result("connection.tcp"), found.result("connection.answer")), ("ok", "problem"));
    assert!(found.text("connection.answer").contains("did not respond within 1 s"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_configuration_is_a_finding_with_its_line() {
    let server = Server::start(ApiOptions::default()).await;
    let shell = Shell::new();
    let folder = shell.home.path().join(".config/kordon");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("config.toml"), "theme = \"light\"\ntehme = \"dark\"").expect("written");
    fs::write(folder.join("guards.toml"), "max-nodes = \"many\"").expect("written");
    fs::create_dir_all(shell.home.path().join(".local")).expect("a folder");
    fs::write(shell.home.path().join(".local/state"), "a file").expect("written");
    let found = doctor(&shell, &["--server", &server.url], FAILED).await;
    let error = found.text("files.configuration");
    assert!(error.contains("config.toml:2: unknown key \"tehme\": did you mean \"theme\"?"), "{error}");
    assert_eq!((found.result("files.guards"), found.result("files.journal")), ("problem", "problem"));
    let error = found.text("files.guards");
    assert!(error.contains("guards.toml:1: invalid type") && !error.contains('\n'), "{error}");
    assert_eq!(found.result("connection.answer"), "ok", "the rest is checked");

    fs::write(folder.join("config.toml"), "theme = \"light\"").expect("written");
    let found = doctor(&shell, &["--server", &server.url], FAILED).await;
    let set = found.text("files.configuration");
    assert!(set.ends_with("config.toml; theme = light (line 1)"), "{set}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_has_a_line_for_each_check_and_one_for_each_fix() {
    let output = Shell::new().run(&["doctor", "--server", "http://127.0.0.1:1"]).await;
    assert_eq!(output.code, NO_CONNECTION, "{}", output.err);
    let line = |start: &str| output.out.lines().find(|line| line.starts_with(start)).map(str::to_owned);
    let tcp = line("problem  connection.tcp ").unwrap_or_else(|| panic!("{}", output.out));
    assert!(tcp.ends_with("nothing listens there (connection refused)"), "{tcp}");
    let fix =
        output.out.lines().skip_while(|line| !line.contains("connection.tcp")).nth(1).unwrap_or_default();
    assert!(fix.trim_start().starts_with("fix: check the port"), "{fix}");
    assert!(line("unknown  cluster.version ").is_some(), "{}", output.out);
    assert!(output.err.contains("problems were found: connection.tcp"), "{}", output.err);
}
