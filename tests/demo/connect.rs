//! Connections over loopback: to API servers, to addresses without a server, and to servers that are not API servers.

use std::{fs, net::SocketAddr, path::PathBuf, time::Duration};

use kordon::k8s::connect::{ConnectError, ConnectOptions, connect};
use kordon_clock::Clock;
use kordon_core::engine::ServerVersion;
use kordon_demo::api::{Api, ApiOptions, Fault, FaultAnswer};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_good_server_tells_its_version() {
    let server = Server::start(ApiOptions::default()).await;
    let connection = connect(&server.options("t")).await.expect("it answers");
    assert_eq!(connection.version, ServerVersion::new(1, 36));
    assert_eq!((connection.context.as_str(), connection.namespace.as_str()), ("here", "team"));
    let agents: Vec<String> = server.api.log().into_iter().map(|request| request.identity.agent).collect();
    assert!(agents.iter().all(|agent| agent.starts_with("kordon/")), "{agents:?}");
}

#[tokio::test]
async fn impersonation_is_asked_for_and_shown() {
    let server = Server::start(ApiOptions::default()).await;
    let options = ConnectOptions { impersonate: Some("carol".into()), ..server.options("t") };
    let connection = connect(&options).await.expect("it answers");
    assert!(connection.identity.impersonated && connection.identity.to_string().contains("carol"));
    assert!(server.api.log().iter().all(|request| request.identity.user == "carol"));
}

#[tokio::test]
async fn groups_and_uid_of_the_impersonated_user_reach_the_server() {
    let (address, mut requests) = overheard().await;
    let options = ConnectOptions {
        impersonate: Some("carol".into()),
        impersonate_groups: vec!["ops".into(), "on-call".into()],
        impersonate_uid: Some("u-42".into()),
        ..bare(address)
    };
    // The server is not a Kubernetes server; only the request that it received matters.
    connect(&options).await.err().expect("no API server");
    let request = requests.recv().await.expect("a request");
    let mut headers: Vec<&str> =
        request.lines().filter(|line| line.to_lowercase().starts_with("impersonate-")).collect();
    headers.sort_unstable();
    let expected = [
        "impersonate-group: on-call",
        "impersonate-group: ops",
        "impersonate-uid: u-42",
        "impersonate-user: carol",
    ];
    assert_eq!(headers, expected, "{request}");
}

#[tokio::test]
async fn an_expired_token_is_reported() {
    let server = Server::start(with_token("good")).await;
    let error = connect(&server.options("expired")).await.err().expect("refused");
    assert!(matches!(&error, ConnectError::Unauthorized { user, .. } if user == "alice"), "{error}");
    assert!(error.to_string().contains("log in again"));
    connect(&server.options("good")).await.expect("the other one is good");
}

#[tokio::test]
async fn a_plugins_token_is_carried_and_the_plugin_run_once() {
    let server = Server::start(with_token("from-plugin")).await;
    let runs = server.folder.path().join("runs");
    let script =
        format!("echo run >> {}; echo '{{\"status\": {{\"token\": \"from-plugin\"}}}}'", runs.display());
    let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh",
        "args": ["-c", script], "interactiveMode": "IfAvailable"});
    let connection = connect(&server.options_with(&json!({"exec": exec}))).await.expect("it answers");
    connection.client.apiserver_version().await.expect("and again");
    assert_eq!(fs::read_to_string(runs).expect("it ran").lines().count(), 1);
    let broken = json!({"exec": {"command": "/bin/sh", "args": ["-c", "echo session over >&2; exit 1"]}});
    let error = connect(&server.options_with(&broken)).await.err().expect("it fails").to_string();
    assert!(error.contains("session over"), "{error}");
}

#[tokio::test]
async fn absent_servers_and_other_servers_are_distinguished() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let error = connect(&bare(address)).await.err().expect("nobody listens");
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("nothing listens there"), "{error}");

    let address = answering("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>").await;
    let error = connect(&bare(address)).await.err().expect("no API server");
    assert!(matches!(error, ConnectError::NotKubernetes { .. }), "{error}");

    let tls = ConnectOptions { server: Some(format!("https://{address}")), ..ConnectOptions::default() };
    let error = connect(&tls).await.err().expect("no TLS there");
    assert!(matches!(error, ConnectError::Certificate { .. }), "{error}");
    assert!(error.to_string().contains("http://"), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let server = Server::start(ApiOptions::default()).await;
    server.api.inject(Fault::always(FaultAnswer::Hang));
    let options = ConnectOptions { request_timeout: Some(Duration::from_millis(200)), ..server.options("t") };
    let error = connect(&options).await.err().expect("no answer");
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error}");
}

#[tokio::test]
async fn a_missing_certificate_authority_is_named() {
    let options = ConnectOptions {
        server: Some("https://127.0.0.1:1".into()),
        certificate_authority: Some(PathBuf::from("/nonexistent/ca.crt")),
        ..ConnectOptions::default()
    };
    let error = connect(&options).await.err().expect("no such file").to_string();
    assert!(error.contains("/nonexistent/ca.crt"), "{error}");
}

/// An API server on loopback, and a kubeconfig for it.
struct Server {
    api: Api,
    address: SocketAddr,
    folder: tempfile::TempDir,
    _stop: tokio_util::sync::DropGuard,
}

impl Server {
    async fn start(options: ApiOptions) -> Self {
        let api = Api::new(Clock::system(), options);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let stop = CancellationToken::new();
        let (server, stopped) = (api.clone(), stop.clone());
        tokio::spawn(async move { server.serve(listener, stopped).await });
        Self { api, address, folder: tempfile::tempdir().expect("a folder"), _stop: stop.drop_guard() }
    }

    fn options(&self, token: &str) -> ConnectOptions {
        self.options_with(&json!({"token": token}))
    }

    fn options_with(&self, user: &serde_json::Value) -> ConnectOptions {
        let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "alice", "user": user}],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "alice", "namespace": "team"}}]});
        let path = self.folder.path().join("kubeconfig");
        fs::write(&path, kubeconfig.to_string()).expect("written");
        ConnectOptions { kubeconfig: Some(path), ..ConnectOptions::default() }
    }
}

fn with_token(token: &str) -> ApiOptions {
    ApiOptions { tokens: [(token.to_owned(), "alice".to_owned())].into(), ..ApiOptions::default() }
}

fn bare(address: SocketAddr) -> ConnectOptions {
    ConnectOptions { server: Some(format!("http://{address}")), ..ConnectOptions::default() }
}

/// Starts a server that reports the requests that it receives, and answers none.
async fn overheard() -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (sender, requests) = mpsc::channel(8);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap_or(0);
            let _ = sender.send(String::from_utf8_lossy(&request[..length]).into_owned()).await;
        }
    });
    (address, requests)
}

/// Starts a server that sends the same text to every client.
async fn answering(text: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    address
}
