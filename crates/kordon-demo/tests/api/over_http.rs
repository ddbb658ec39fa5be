//! The server over plain HTTP on loopback.

use std::{collections::BTreeMap, net::SocketAddr};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kordon_demo::api::{Api, ApiOptions};
use kube::{
    api::Api as Objects,
    runtime::watcher::{self, Event, watcher},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use crate::fixture::{pod, server_with};

#[tokio::test]
async fn plain_http_works_and_carries_the_clocks_date() {
    let (api, address, stop) = serve(ApiOptions::default()).await;
    api.load("pods", pod("p"));
    let answer = http(address, "GET /api/v1/namespaces/default/pods/p HTTP/1.1", "").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.to_lowercase().contains("date: fri, 15 jan 2027 08:00:0"), "{answer}");
    assert!(answer.contains(r#""name":"p""#));
    let answer = http(address, "GET /api/v1/namespaces/default/pods/q HTTP/1.1", "").await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains(r#""reason":"NotFound""#), "{answer}");
    let answer = http(address, "POST /api/v1/nodes HTTP/1.1", "{not json").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    for (path, expected) in [
        ("/healthz", "200"),
        ("/version", "200"),
        ("/api", "200"),
        ("/apis", "200"),
        ("/apis/apps/v1", "200"),
        ("/openapi/v3", "200"),
        ("/openapi/v2", "404"),
        ("/metrics", "404"),
        ("/apis/none/v1", "404"),
    ] {
        let answer = http(address, &format!("GET {path} HTTP/1.1"), "").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{path}: {answer}");
    }
    stop.cancel();
}

#[tokio::test]
async fn a_real_client_over_http_lists_and_watches() {
    let (api, address, stop) = serve(ApiOptions::default()).await;
    for i in 0..300 {
        api.load("pods", pod(&format!("p{i:03}")));
    }
    let config = kube::Config::new(format!("http://{address}").parse().expect("a URI"));
    let pods: Objects<Pod> = Objects::all(kube::Client::try_from(config).expect("a client"));
    let mut events = Box::pin(watcher(pods, watcher::Config::default().streaming_lists()));
    let mut count = 0;
    loop {
        match events.try_next().await.expect("no failure").expect("no end") {
            Event::InitApply(_) => count += 1,
            Event::InitDone => break,
            _ => {}
        }
    }
    assert_eq!(count, 300);
    api.load("pods", pod("q"));
    assert!(matches!(events.try_next().await, Ok(Some(Event::Apply(_)))));
    api.set_down(true);
    assert!(events.next().await.expect("no end").is_err(), "the connection breaks");
    stop.cancel();
}

#[tokio::test]
async fn tokens_are_asked_for_where_there_are_any() {
    let tokens = BTreeMap::from([("secret".to_owned(), "jane".to_owned())]);
    let (api, address, stop) = serve(ApiOptions { tokens, ..ApiOptions::default() }).await;
    let answer = http(address, "GET /api/v1/nodes HTTP/1.1", "").await;
    assert!(answer.starts_with("HTTP/1.1 401") && answer.contains(r#""reason":"Unauthorized""#), "{answer}");
    let answer = http(address, "GET /api/v1/nodes HTTP/1.1\r\nauthorization: Bearer secret", "").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(api.log().last().map(|entry| entry.identity.user.clone()).as_deref(), Some("jane"));
    stop.cancel();
}

async fn serve(options: ApiOptions) -> (Api, SocketAddr, CancellationToken) {
    let api = server_with(options);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let (address, stop) = (listener.local_addr().expect("bound"), CancellationToken::new());
    let (server, until) = (api.clone(), stop.clone());
    tokio::spawn(async move { server.serve(listener, until).await });
    (api, address, stop)
}

/// Sends one request over a new connection. Returns the whole response as text.
async fn http(address: SocketAddr, head: &str, body: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("connected");
    let length = body.len();
    let text = format!("{head}\r\nhost: demo\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).await.expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("read");
    answer
}
