//! A client that streams lists, counts their objects and bytes, and discards them.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use clap::ValueEnum;
use futures::future::join_all;
use http::{Request, header::CONTENT_TYPE};
use http_body_util::BodyExt;
use kordon::k8s::transport;
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::runtime::Runtime;

/// Argument that makes the benchmark program run as this client.
pub const ARGUMENT: &str = "bare-client";

/// The media type of Kubernetes' protobuf encoding.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Encoding of the objects in responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Json,
    Protobuf,
}

/// Lists that one run streams at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lists {
    NodesAndLeases,
    Pods,
}

/// Result of a run. Times count from the start of the client's process.
pub struct Bare {
    pub objects: usize,
    pub bytes: usize,
    /// Time until the first bytes of the first list.
    pub to_first: Duration,
    pub to_all: Duration,
}

/// Error: the server does not support this encoding.
#[derive(Debug)]
pub struct Unsupported;

impl Bare {
    /// Runs the client in a process of its own.
    pub fn measure(kubeconfig: &Path, format: Format, lists: Lists) -> Result<Self, Unsupported> {
        let begun = Instant::now();
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args([ARGUMENT, &name_of(format), &name_of(lists)])
            .arg(kubeconfig)
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts again");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut to_first = None;
        let mut ends = BTreeMap::new();
        for line in output.lines().map_while(Result::ok) {
            let at = begun.elapsed();
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["first"] => to_first = to_first.or(Some(at)),
                [kind, objects, bytes] => {
                    let number = |text: &str| text.parse::<usize>().expect("a number");
                    ends.insert((*kind).to_owned(), (number(objects), number(bytes), at));
                }
                _ => {}
            }
        }
        child.wait().expect("it ends");
        let Some(to_first) = to_first else { return Err(Unsupported) };
        Ok(Self {
            objects: ends.values().map(|(objects, ..)| objects).sum(),
            bytes: ends.values().map(|(_, bytes, _)| bytes).sum(),
            to_first,
            to_all: ends.values().map(|(.., at)| *at).max().expect("a list"),
        })
    }
}

/// Returns the name by which a command line selects this value.
fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().expect("no value is skipped").get_name().to_owned()
}

/// Runs this process as the client. Prints a line when the first bytes arrive. At the end of each list, prints its
/// kind, objects and bytes.
pub fn run(format: Format, lists: Lists, kubeconfig: &Path) {
    Runtime::new().expect("threads").block_on(async {
        let client = connect(kubeconfig).await;
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        let lists: &[(&str, &str)] = match lists {
            Lists::NodesAndLeases => &[("nodes", "/api/v1/nodes"), ("leases", leases)],
            Lists::Pods => &[("pods", "/api/v1/pods")],
        };
        join_all(lists.iter().map(|(kind, path)| list(&client, format, kind, path))).await;
    });
}

/// Connects a client that neither retries requests nor makes additional ones.
pub async fn connect(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("a usable kubeconfig");
    config.default_retry = false;
    transport::client(config).expect("a client")
}

/// Reads a streamed list to its end.
async fn list(client: &Client, format: Format, kind: &str, path: &str) {
    let query =
        "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let accepted = match format {
        Format::Json => "application/json",
        Format::Protobuf => PROTOBUF,
    };
    let request = Request::get(format!("{path}?{query}"))
        .header("accept", accepted)
        .header("accept-encoding", "identity")
        .body(Body::empty())
        .expect("a path");
    let Ok(response) = client.send(request).await else { return };
    let media =
        response.headers().get(CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
    if !response.status().is_success() || !media.starts_with(accepted) {
        return;
    }
    let mut body = response.into_body();
    let mut frames = Frames { format, head: Vec::new(), left: 0, objects: 0 };
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let piece = frame.expect("the connection holds").into_data().unwrap_or_default();
        if bytes == 0 {
            println!("first");
        }
        bytes += piece.len();
        if frames.read(&piece) {
            return println!("{kind} {} {bytes}", frames.objects);
        }
    }
    panic!("the list of {kind} broke off");
}

/// Counts the frames of a watch: lines of JSON, or protobuf messages with a length prefix.
struct Frames {
    format: Format,
    /// First bytes of the frame that is being read, at most [`HEAD`]; in protobuf including the length prefix.
    head: Vec<u8>,
    /// Remaining bytes of a protobuf frame.
    left: usize,
    objects: usize,
}

/// Number of bytes that are kept of a frame. A bookmark is shorter, so it is kept whole.
const HEAD: usize = 4096;

impl Frames {
    /// Reads a chunk of the stream. Returns whether the list has ended.
    fn read(&mut self, piece: &[u8]) -> bool {
        match self.format {
            Format::Json => self.read_lines(piece),
            Format::Protobuf => self.read_messages(piece),
        }
    }

    fn read_lines(&mut self, mut rest: &[u8]) -> bool {
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.keep(&rest[..end]);
            rest = &rest[end + 1..];
            if memchr::memmem::find(&self.head, br#""type":"BOOKMARK""#).is_some() {
                if ends_list(&self.head) {
                    return true;
                }
            } else {
                self.objects += 1;
            }
            self.head.clear();
        }
        self.keep(rest);
        false
    }

    fn read_messages(&mut self, mut rest: &[u8]) -> bool {
        const LENGTH: usize = 4;
        while !rest.is_empty() {
            if self.head.len() < LENGTH {
                let taken = rest.len().min(LENGTH - self.head.len());
                self.head.extend_from_slice(&rest[..taken]);
                rest = &rest[taken..];
                if let Ok(length) = <[u8; LENGTH]>::try_from(self.head.as_slice()) {
                    self.left = u32::from_be_bytes(length) as usize;
                }
                continue;
            }
            let taken = rest.len().min(self.left);
            self.keep(&rest[..taken]);
            (self.left, rest) = (self.left - taken, &rest[taken..]);
            if self.left == 0 {
                // Field 1 of a WatchEvent is its type: a tag byte, a length byte, the text.
                if self.head.get(LENGTH + 2..).is_some_and(|text| text.starts_with(b"BOOKMARK")) {
                    if ends_list(&self.head) {
                        return true;
                    }
                } else {
                    self.objects += 1;
                }
                self.head.clear();
            }
        }
        false
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = HEAD.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Whether a bookmark marks the end of the initial list.
fn ends_list(bookmark: &[u8]) -> bool {
    memchr::memmem::find(bookmark, b"k8s.io/initial-events-end").is_some()
}
