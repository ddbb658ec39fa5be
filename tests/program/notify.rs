//! Notifications: by a command, by a webhook and by the terminal, of the dashboard, `kordon status --watch`, `kordon
//! controller` and `kordon doctor --notify`.

use std::{fs, process::Stdio, time::Duration};

use k8s_openapi::api::core::v1::Node;
use kordon_demo::{api::ApiOptions, scenario::Scenario, world::WorldOptions};
use kube::{
    Api as Objects,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    time::timeout,
};

use crate::common::{
    program::{Server, Shell},
    terminal::Terminal,
};

/// Exit codes, as in `docs/reference/cli.md`.
const DONE: i32 = 0;
const FAILED: i32 = 1;
const USAGE: i32 = 2;

const NODE: &str = "general-1a-02";

/// Time within which a notice arrives even on a busy machine.
const ARRIVES: Duration = Duration::from_secs(120);

/// A command that writes its arguments, and its environment, into the file `notices` of the home folder.
const COMMAND: &str = r#"command = ["/bin/sh", "-c", "for each in \"$@\" \"$KORDON_KIND\" \"$KORDON_OBJECT\"; do echo \"$each\"; done >> $HOME/notices", "sh", "{title}", "{text}"]"#;

/// Creates a shell whose configuration has a section `[notify]` with this text.
fn notified(text: &str) -> Shell {
    let shell = Shell::new();
    configure(&shell, text);
    shell
}

/// Writes a section `[notify]` with this text into the configuration of a shell.
fn configure(shell: &Shell, text: &str) {
    let folder = shell.home.path().join(".config/kordon");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("config.toml"), format!("[notify]\n{text}")).expect("written");
}

/// Writes a section `[notify]` with this text while the program runs, and alternately cordons and uncordons the node,
/// until the command has received a notice about it. Returns the notice's title, text, kind and object.
async fn told(server: &Server, shell: &Shell, text: &str) -> Vec<String> {
    let file = shell.home.path().join("notices");
    let nodes: Objects<Node> = Objects::all(server.api.client());
    let changed = async {
        let mut on = true;
        loop {
            // Each version of the file differs from the one before, so that the program reads the file again if it has
            // missed an earlier version.
            configure(shell, &format!("{text}\n# {on}"));
            let patch = Patch::Merge(json!({"spec": {"unschedulable": on}}));
            nodes.patch(NODE, &PatchParams::default(), &patch).await.expect("patched");
            on = !on;
            // The program looks for changes of its configuration once a second.
            tokio::time::sleep(Duration::from_secs(2)).await;
            let lines: Vec<String> =
                fs::read_to_string(&file).unwrap_or_default().lines().map(str::to_owned).collect();
            if let Some(notice) = lines.chunks_exact(4).find(|notice| notice[3] == NODE) {
                return notice.to_vec();
            }
        }
    };
    timeout(ARRIVES, changed).await.expect("a notice arrives")
}

#[tokio::test(flavor = "multi_thread")]
async fn status_watch_and_the_controller_run_the_command_that_is_configured_while_they_run() {
    for line in [&["status", "--watch"][..], &["controller", "--listen=127.0.0.1:0"]] {
        let server = Server::start(ApiOptions::default()).await;
        let scenario = Scenario::named("healthy").expect("there is one");
        let _world = server.inhabit_as(&WorldOptions { scenario, ..WorldOptions::default() });
        server.govern().await;
        let rate = "at-most = \"1000 per 1s\"";
        let shell = notified("");
        let kubeconfig = shell.kubeconfig(&server.url, json!({}));
        let line = [line, &["--kubeconfig", &kubeconfig]].concat();
        let mut command = shell.command(&line);
        let mut program = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut printed = BufReader::new(program.stdout.take().expect("a pipe")).lines();
        assert!(printed.next_line().await.expect("text").is_some(), "it has read its configuration");
        tokio::spawn(async move { while let Ok(Some(_)) = printed.next_line().await {} });
        let text = format!("on = [\"node\"]\nby = [\"command\"]\n{rate}\n{COMMAND}");
        let lines = told(&server, &shell, &text).await;
        let title = format!("kordon here: node {NODE} ");
        let state = lines[0].strip_prefix(&title).unwrap_or_else(|| panic!("{line:?}: {lines:?}"));
        assert!(["Cordoned", "Ready"].contains(&state), "{lines:?}");
        assert!(!lines[1].is_empty(), "{lines:?}");
        assert_eq!(lines[2], "node");
    }
}

/// A server that answers each request with this status. Returns its address, and a task with the body of the first
/// request.
async fn receiver(status: &'static str) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut request = Vec::new();
        loop {
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).await.expect("a request");
            request.extend_from_slice(&bytes[..read]);
            let text = String::from_utf8_lossy(&request).into_owned();
            if read == 0 || text.ends_with('}') {
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.expect("sent");
                return text;
            }
        }
    });
    (format!("http://{address}"), task)
}

async fn doctor(shell: &Shell, more: &[&str]) -> (i32, Value) {
    let server = Server::start(ApiOptions::default()).await;
    let line = [&["doctor", "-o", "json", "--server", &server.url], more].concat();
    let output = shell.run(&line).await;
    let report = output.json();
    let checks = report["checks"].as_array().expect("checks").iter();
    let notices = checks.filter(|check| check["id"].as_str().is_some_and(|id| id.starts_with("notify.")));
    (output.code, notices.cloned().collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_gets_json_and_its_refusal_is_a_finding_without_its_path() {
    let (url, received) = receiver("204 No Content").await;
    let text =
        |url: &str| format!("on = [\"zone\"]\nby = [\"webhook\"]\nwebhook = \"{url}/hooks/secret?a=b\"");
    let (code, checks) = doctor(&notified(&text(&url)), &["--notify"]).await;
    assert_eq!((code, &checks[1]["result"]), (DONE, &json!("ok")), "{checks:#}");
    let request = received.await.expect("no panic");
    assert!(request.starts_with("POST /hooks/secret?a=b HTTP/1.1\r\n"), "{request}");
    assert!(request.to_lowercase().contains("content-type: application/json"), "{request}");
    let body: Value = serde_json::from_str(request.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
    assert_eq!((&body["schema"], &body["kind"]), (&json!("kordon.notice/v1"), &json!("test")));
    assert_eq!(body["text"], "notifications of kordon arrive");
    assert_eq!(body["leftOut"], 0);

    let (url, _received) = receiver("500 Internal Server Error").await;
    let (code, checks) = doctor(&notified(&text(&url)), &["--notify"]).await;
    assert_eq!((code, &checks[1]["result"]), (FAILED, &json!("problem")), "{checks:#}");
    let found = checks[1]["found"].as_str().expect("a text");
    assert!(found.contains("HTTP 500") && !found.contains("secret"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_tests_the_command_and_says_what_is_configured() {
    let shell = notified(&format!("on = [\"node\", \"verdict>=warning\"]\nby = [\"command\"]\n{COMMAND}"));
    let (code, checks) = doctor(&shell, &["--notify"]).await;
    assert_eq!((code, &checks[1]["result"]), (DONE, &json!("ok")), "{checks:#}");
    let found = checks[0]["found"].as_str().expect("a text");
    assert!(found.starts_with("of node, verdict>=warning by command /bin/sh"), "{found}");
    let lines = fs::read_to_string(shell.home.path().join("notices")).expect("the command has run");
    assert!(lines.contains("notifications of kordon arrive\ntest\n"), "{lines}");

    let missing = notified("on = [\"node\"]\nby = [\"command\"]\ncommand = [\"/nonexistent/program\"]");
    let (code, checks) = doctor(&missing, &["--notify"]).await;
    assert_eq!((code, &checks[1]["result"]), (FAILED, &json!("problem")), "{checks:#}");
    let (code, checks) = doctor(&Shell::new(), &[]).await;
    assert_eq!((code, &checks[0]["found"]), (DONE, &json!("nobody is notified")), "{checks:#}");
    assert_eq!(checks.as_array().map(Vec::len), Some(1), "nothing was tried");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_the_table_name_the_line() {
    for (text, error) in [
        ("on = [\"nodes\"]", ":2: on = \"nodes\" is not verdict>=notice"),
        ("by = [\"mail\"]", ":2: by = \"mail\" is not one of bell, osc9"),
        ("on = [\"node\"]\nby = [\"webhook\"]", ":3: by has \"webhook\", but webhook has no URL"),
        ("at-most = \"often\"", ":2: at-most = \"often\" is not a rate such as"),
        ("webhook = \"/x\"", ":2: webhook = \"/x\" is not a URL"),
        ("wehbook = \"https://h\"", ":2: unknown key \"wehbook\": did you mean \"webhook\"?"),
    ] {
        let found = notified(text).refused(&["status"], USAGE).await;
        assert!(found.contains(error), "{text}: {found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_notifies_the_terminal_between_two_frames() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    let shell = notified("on = [\"verdict>=warning\"]\nby = [\"osc9\", \"osc777\"]");
    let kubeconfig = shell.kubeconfig(&server.url, json!({}));
    let raw = tokio::task::spawn_blocking(move || {
        let mut terminal = Terminal::with(shell.under_terminal(&["--kubeconfig", &kubeconfig]));
        terminal.wait(NODE);
        terminal.type_in(":notify-test\r");
        terminal.wait("sent a notice");
        terminal.type_in("q");
        assert!(terminal.end().success());
        terminal.raw()
    });
    let raw = raw.await.expect("no panic");
    let sequence = "\x1b]9;kordon here: test: notifications of kordon arrive\x1b\\\
                    \x1b]777;notify;kordon here: test;notifications of kordon arrive\x1b\\";
    let at = raw.find(sequence).unwrap_or_else(|| panic!("no notice in {raw:?}"));
    let (begun, ended) = (raw[..at].rfind("\x1b[?2026h"), raw[..at].rfind("\x1b[?2026l"));
    assert!(begun < ended, "it is inside of a frame");

    let off = Shell::new();
    let kubeconfig = off.kubeconfig(&server.url, json!({}));
    tokio::task::spawn_blocking(move || {
        let mut terminal = Terminal::with(off.under_terminal(&["--kubeconfig", &kubeconfig]));
        terminal.wait(NODE);
        terminal.type_in(":notify-test\r");
        terminal.wait("notifications are off");
        terminal.type_in("q");
        assert!(terminal.end().success());
    })
    .await
    .expect("no panic");
}

#[test]
fn a_running_dashboard_notifies_whom_the_changed_file_names() {
    let shell = notified("");
    let mut terminal = Terminal::with(shell.under_terminal(&["demo"]));
    terminal.resize(30, 160);
    terminal.wait("2 Nodes");
    terminal.type_in(":notify-test\r");
    terminal.wait("notifications are off");
    configure(&shell, "on = [\"node\"]\nby = [\"osc9\"]");
    terminal.wait("the configuration was read again");
    terminal.type_in(":notify-test\r");
    terminal.wait("sent a notice");
    terminal.wait_for_raw("\x1b]9;kordon demo: test");
    configure(&shell, "by = [\"mail\"]");
    terminal.wait("by = \"mail\" is not one of");
    terminal.type_in(":notify-test\r");
    terminal.wait("sent a notice");
    configure(&shell, "");
    terminal.wait("the configuration was read again");
    terminal.type_in(":notify-test\r");
    terminal.wait("notifications are off");
    terminal.type_in("q");
    assert!(terminal.end().success());
}
