//! Connections to a TLS server through the proxies that a kubeconfig can name.

use std::sync::{Arc, Mutex};

use kordon::k8s::connect::{ConnectOptions, connect};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional},
    net::TcpStream,
};
use tokio_util::task::AbortOnDropHandle;

use crate::tls::{Authority, Folder, Server, acceptor, listener};

#[tokio::test]
async fn an_http_proxy_is_asked_for_a_tunnel_with_its_user_and_password() {
    let asked = asked("http", "alice:p%40ss@", ask_for_tunnel).await;
    assert_eq!(asked, "Basic YWxpY2U6cEBzcw==");
}

#[tokio::test]
async fn a_proxy_behind_tls_is_asked_for_a_tunnel() {
    assert_eq!(asked("https", "", ask_for_tunnel).await, "");
}

#[tokio::test]
async fn a_socks_proxy_gets_user_and_password() {
    assert_eq!(asked("socks5", "alice:p%40ss@", ask_for_socks).await, "alice p@ss");
}

/// Connects to a server through a proxy. Returns the name of the user that the client has sent to the proxy.
async fn asked<F>(
    scheme: &str,
    user: &str,
    request: impl Fn(Connection) -> F + Send + Sync + 'static,
) -> String
where
    F: Future<Output = (Connection, Asked)> + Send,
{
    let (folder, ours) = (Folder::new(), Authority::new("ours"));
    let server = Server::start(&ours, None).await;
    let proxy = listener().await;
    let address = format!("{scheme}://{user}{}", proxy.local_addr().expect("bound"));
    let tls = (scheme == "https").then(|| acceptor(&ours, None));
    let all = Arc::new(Mutex::new(Vec::new()));
    let noted = all.clone();
    let _serving = AbortOnDropHandle::new(tokio::spawn(async move {
        while let Ok((stream, _)) = proxy.accept().await {
            let client: Connection = match &tls {
                Some(tls) => Box::new(tls.accept(stream).await.expect("it trusts the proxy")),
                None => Box::new(stream),
            };
            let (mut client, asked) = request(client).await;
            let mut behind = TcpStream::connect(&asked.target).await.expect("the server");
            noted.lock().expect("whole").push(asked);
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut behind).await });
        }
    }));
    let kubeconfig = json!({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}],
    "clusters": [{"name": "c", "cluster": {
        "server": server.url,
        "proxy-url": address,
        "certificate-authority": folder.file("ca.crt", &ours.pem),
    }}]});
    let kubeconfig = Some(folder.file("config", &kubeconfig.to_string()));
    connect(&ConnectOptions { kubeconfig, ..ConnectOptions::default() }).await.expect("through the proxy");
    let all = all.lock().expect("whole");
    assert!(!all.is_empty() && all.iter().all(|asked| server.url.ends_with(&asked.target)));
    all[0].user.clone()
}

/// A client's request to a proxy.
struct Asked {
    /// Host and port of the server that the client wants to reach.
    target: String,
    /// The user that the client named to the proxy.
    user: String,
}

type Connection = Box<dyn Stream>;
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

async fn ask_for_tunnel(mut client: Connection) -> (Connection, Asked) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.expect("a head"));
    }
    let head = String::from_utf8(head).expect("text");
    let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()).expect("a tunnel");
    let user = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("proxy-authorization").then_some(value)
    });
    let asked = Asked { target: target.into(), user: user.unwrap_or_default().into() };
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.expect("answered");
    (client, asked)
}

/// SOCKS 5 (RFC 1928) with user and password (RFC 1929).
async fn ask_for_socks(mut client: Connection) -> (Connection, Asked) {
    assert_eq!(client.read_u8().await.expect("a version"), 5);
    let methods = text(&mut client).await;
    assert!(methods.contains('\u{2}'), "it has a user");
    client.write_all(&[5, 2]).await.expect("answered");
    assert_eq!(client.read_u8().await.expect("a version"), 1);
    let user = format!("{} {}", text(&mut client).await, text(&mut client).await);
    client.write_all(&[1, 0]).await.expect("answered");
    let mut request = [0; 4];
    client.read_exact(&mut request).await.expect("a request");
    assert_eq!(request[..3], [5, 1, 0], "it asks for a connection");
    let host = match request[3] {
        1 => std::net::Ipv4Addr::from_bits(client.read_u32().await.expect("an address")).to_string(),
        3 => text(&mut client).await,
        kind => panic!("an address of kind {kind}"),
    };
    let port = client.read_u16().await.expect("a port");
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.expect("answered");
    (client, Asked { target: format!("{host}:{port}"), user })
}

/// Reads a text with a length prefix of one byte.
async fn text(client: &mut Connection) -> String {
    let mut text = vec![0; client.read_u8().await.expect("a length").into()];
    client.read_exact(&mut text).await.expect("text");
    String::from_utf8(text).expect("UTF-8")
}
