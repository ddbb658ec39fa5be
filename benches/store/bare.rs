//! A client that gets the same lists into the same slim types, and keeps nothing.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use http::Request;
use http_body_util::BodyExt;
use kordon::k8s::{
    connect::{self, ConnectOptions, Connection},
    decode::{self, Decoder, StreamLine, lease::LeaseDecoder, node::NodeDecoder, pod::PodDecoder},
};
use kube::client::Body;

use super::process::Process;

/// With this and a server's address, the benchmark is this client.
pub const ARGUMENT: &str = "bare-client";

/// What it took, from the start of its process.
pub struct Bare {
    pub nodes: usize,
    pub pods: usize,
    /// Bytes of a pod on the wire, on average.
    pub pod_bytes: usize,
    pub to_nodes: Duration,
    /// To nodes, leases and pods.
    pub to_pods: Duration,
    pub peak_mib: f64,
}

impl Bare {
    /// Runs it in a process of its own.
    pub fn measure(server: &str) -> Self {
        let begun = Instant::now();
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args([ARGUMENT, server])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts again");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut reported = BTreeMap::new();
        for line in output.lines().map_while(Result::ok) {
            let mut words = line.split(' ').map(str::to_owned);
            let (kind, count, bytes) = (words.next(), words.next(), words.next());
            let number = |text: Option<String>| -> usize { text.and_then(|t| t.parse().ok()).unwrap_or(0) };
            let kind = kind.unwrap_or_default();
            let last = kind == "pods";
            reported.insert(kind, (number(count), number(bytes), begun.elapsed()));
            if last {
                break;
            }
        }
        let peak_mib = Process(child.id()).peak_mib();
        // The end of its input lets it go.
        drop(child.stdin.take());
        child.wait().expect("it ends");
        let ((nodes, _, to_nodes), (pods, bytes, to_pods)) = (reported["nodes"], reported["pods"]);
        Self { nodes, pods, pod_bytes: bytes / pods.max(1), to_nodes, to_pods, peak_mib }
    }
}

/// Is the client: prints kind, objects and bytes of each list as soon as it has it.
pub fn run(server: &str) {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        let options = ConnectOptions { server: Some(server.to_owned()), ..ConnectOptions::default() };
        let connection = connect::connect(&options).await.expect("the server answers");
        list(&connection, "nodes", "/api/v1/nodes", NodeDecoder::default()).await;
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        list(&connection, "leases", leases, LeaseDecoder::default()).await;
        list(&connection, "pods", "/api/v1/pods", PodDecoder::default()).await;
    });
    let mut end = String::new();
    std::io::stdin().read_line(&mut end).expect("the end of the input");
}

/// Reads a streamed list to its end.
async fn list(connection: &Connection, kind: &str, path: &str, mut decoder: impl Decoder) {
    let query =
        "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let request = Request::get(format!("{path}?{query}"))
        .header("accept-encoding", "identity")
        .body(Body::empty())
        .expect("a path");
    let mut body = connection.client.send(request).await.expect("the server answers").into_body();
    let (mut objects, mut bytes) = (0, 0);
    let mut begun: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let piece = frame.expect("the connection holds").into_data().unwrap_or_default();
        bytes += piece.len();
        let mut rest = &piece[..];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            begun.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            match decode::line(&mut decoder, &begun, true) {
                StreamLine::Object { change, .. } => {
                    std::hint::black_box(change);
                    objects += 1;
                }
                StreamLine::Bookmark { list_ends: true, .. } => return println!("{kind} {objects} {bytes}"),
                StreamLine::Bookmark { .. } => {}
                broken @ (StreamLine::Error(_) | StreamLine::Bad(_) | StreamLine::Broken(_)) => {
                    panic!("{broken:?}")
                }
            }
            begun.clear();
        }
        begun.extend_from_slice(rest);
    }
    panic!("the list of {kind} broke off");
}
