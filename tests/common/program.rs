//! The built binary, and an API server of the demo for it to connect to.
#![allow(dead_code, reason = "each test program uses its part")]

use std::{
    ffi::OsString,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use k8s_openapi::api::core::v1::{Namespace as CoreNamespace, Node, Pod};
use kordon::{k8s::connect::Connection, run::controller::Controller};
use kordon_clock::Clock;
use kordon_core::engine::{ServerVersion, Settings};
use kordon_demo::{
    api::{Api, ApiOptions, LoggedRequest, Verb},
    world::{self, World},
};
use kube::{Api as Objects, ResourceExt, api::ListParams};
use portable_pty::CommandBuilder;
use serde_json::{Value, json};
use tokio::{net::TcpListener, process::Command};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Exit code of success in `docs/reference/cli.md`.
const DONE: i32 = 0;

/// Environment in which the program runs: an empty home folder, and only the given variables.
pub struct Shell {
    pub home: tempfile::TempDir,
    pub environment: Vec<(String, String)>,
}

impl Shell {
    pub fn new() -> Self {
        Self { home: tempfile::tempdir().expect("a folder"), environment: Vec::new() }
    }

    /// Creates a new shell whose environment has only the variable `name`.
    pub fn with(&self, name: &str, value: &str) -> Self {
        Self { environment: vec![(name.into(), value.into())], ..Self::new() }
    }

    pub fn file(&self, name: &str, text: &str) -> String {
        let file = self.home.path().join(name);
        fs::write(&file, text).expect("written");
        path(&file).to_owned()
    }

    pub fn kubeconfig(&self, server: &str, user: Value) -> String {
        let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "alice", "user": user}],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "alice"}}]});
        self.file("kubeconfig", &kubeconfig.to_string())
    }

    /// Returns a command that runs the program.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.home.path())
            .env("TERM", "xterm-256color")
            .envs(self.environment.iter().cloned())
            .current_dir(self.home.path())
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Returns a command that runs the program on a pseudo terminal. The tour of the dashboard is marked as seen.
    pub fn under_terminal(&self, arguments: &[&str]) -> CommandBuilder {
        let seen = self.tour_seen();
        fs::create_dir_all(seen.parent().expect("a folder")).expect("a folder");
        fs::write(seen, "").expect("written");
        let mut command = CommandBuilder::new(binary());
        command.args(arguments);
        command.env_clear();
        command.env("HOME", self.home.path());
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command.cwd(self.home.path());
        command
    }

    /// The file that records that the user has seen the tour of the dashboard.
    pub fn tour_seen(&self) -> PathBuf {
        self.home.path().join(".local/state/kordon/tour-seen")
    }

    pub async fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().await.expect("the program starts");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let output = Output {
            code: output.status.code().expect("no signal ended it"),
            out: text(output.stdout),
            err: text(output.stderr),
        };
        assert!(!output.err.contains("panicked"), "{arguments:?}: {}", output.err);
        assert!(!output.err.contains('\x1b'), "{arguments:?} sends escape sequences: {:?}", output.err);
        output
    }

    /// Runs the program, which has to exit with this code and print nothing to standard output. Returns its standard
    /// error.
    pub async fn refused(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments).await;
        assert_eq!(output.code, code, "{arguments:?}: {}", output.err);
        assert_eq!(output.out, "", "{arguments:?}");
        assert!(!output.err.trim().is_empty(), "{arguments:?} says nothing");
        output.err
    }
}

/// Returns the path of the program: the one built for this test, or the one that `KORDON_BINARY` names, for example a
/// copy that no build replaces during a long test.
pub fn path_of_binary() -> PathBuf {
    binary().into()
}

fn binary() -> OsString {
    std::env::var_os("KORDON_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_kordon").into())
}

/// The exit code and the output of the program.
pub struct Output {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Output {
    /// Returns the standard output; the program has to have succeeded without any error output.
    pub fn done(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (DONE, ""));
        self.out
    }

    /// Returns the standard output of a command with `-o json`.
    pub fn json(&self) -> Value {
        let Self { code, out, err } = self;
        serde_json::from_str(out).unwrap_or_else(|error| panic!("{error}: exit code {code}\n{out}\n{err}"))
    }
}

/// An API server on loopback. Dropping this value stops the server.
pub struct Server {
    pub api: Api,
    pub clock: Clock,
    pub url: String,
    pub stop: CancellationToken,
    _stops: DropGuard,
}

impl Server {
    pub async fn start(options: ApiOptions) -> Self {
        Self::start_at_speed(options, 1.0).await
    }

    /// Starts a server whose clock runs `speed` times as fast as real time.
    pub async fn start_at_speed(options: ApiOptions, speed: f64) -> Self {
        let clock = Clock::new(Clock::system().now(), speed);
        let api = Api::new(clock, options);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address: SocketAddr = listener.local_addr().expect("bound");
        let stop = CancellationToken::new();
        let (server, stopped) = (api.clone(), stop.clone());
        tokio::spawn(async move { server.serve(listener, stopped).await });
        Self { api, clock, url: format!("http://{address}"), _stops: stop.clone().drop_guard(), stop }
    }

    /// Starts the demo's kubelets and controllers, without the node lifecycle controller.
    pub fn inhabit(&self) -> World {
        self.inhabit_as(&world::WorldOptions::default())
    }

    pub fn inhabit_as(&self, options: &world::WorldOptions) -> World {
        World::start(&self.api, self.clock, options, self.stop.child_token())
    }

    /// Starts kordon's own controller, as in the demo. Returns once the controller holds its Lease.
    pub async fn govern(&self) {
        self.govern_with(Settings::defaults(ServerVersion::new(1, 36))).await;
    }

    pub async fn govern_with(&self, settings: Settings) {
        let leases = self.api.count("leases");
        let controller = Controller {
            connection: Connection::embedded(self.api.client_as("system:kordon-controller"), "here"),
            settings,
            clock: self.clock,
            identity: "the-leader".into(),
        };
        tokio::spawn(controller.run(self.stop.child_token()));
        let led = async {
            while self.api.count("leases") == leases {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(180), led).await.expect("the controller takes its lease");
    }
}

/// Access to the program's requests, from the log of the API, and to the objects of the API.
impl Server {
    /// Returns the requests of the program.
    fn ours(&self) -> impl Iterator<Item = LoggedRequest> + use<> {
        self.api.log().into_iter().filter(|logged| logged.identity.agent.starts_with("kordon/"))
    }

    /// Returns the paths and queries of the program's reads.
    pub fn reads(&self) -> Vec<String> {
        let user = |logged: &LoggedRequest| !logged.identity.user.starts_with("system:kordon-");
        let reads = [Verb::Get, Verb::List, Verb::Watch];
        let ours = self.ours().filter(user).filter(|logged| reads.contains(&logged.verb));
        ours.map(|logged| logged.uri).collect()
    }

    /// Returns the writes of the program, access reviews excluded.
    pub fn written(&self) -> Vec<String> {
        let reads = [Verb::Get, Verb::List, Verb::Watch];
        self.ours()
            .filter(|logged| !reads.contains(&logged.verb) && !logged.uri.contains("/selfsubject"))
            .map(|logged| format!("{:?} {}", logged.verb, logged.uri))
            .collect()
    }

    /// Returns the pods whose eviction was granted, in order.
    pub fn evictions(&self) -> Vec<String> {
        let granted = self.ours().filter(|logged| logged.code == 201 && logged.uri.contains("/eviction"));
        granted
            .filter_map(|logged| {
                let mut parts = logged.uri.split('/').skip(4);
                let (namespace, name) = (parts.next()?, parts.nth(1)?);
                Some(format!("{namespace}/{name}"))
            })
            .collect()
    }

    /// Returns the uid of namespace kube-system.
    pub async fn cluster_uid(&self) -> String {
        let namespaces: Objects<CoreNamespace> = Objects::all(self.api.client());
        namespaces
            .get("kube-system")
            .await
            .expect("every cluster has it")
            .uid()
            .expect("stored objects have one")
    }

    pub async fn node(&self, name: &str) -> Node {
        Objects::all(self.api.client()).get(name).await.expect("the node")
    }

    /// Returns the pods on a node that a drain has to evict.
    pub async fn left_on(&self, node: &str) -> Vec<String> {
        let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods: Vec<Pod> = Objects::all(self.api.client()).list(&params).await.expect("pods").items;
        let stays = |pod: &Pod| {
            pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet" || owner.kind == "Node")
        };
        pods.iter().filter(|pod| !stays(pod)).map(ResourceExt::name_any).collect()
    }
}

pub fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

pub fn path(file: &Path) -> &str {
    file.to_str().expect("temporary names are text")
}
