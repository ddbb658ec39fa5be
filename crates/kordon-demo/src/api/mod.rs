//! The API server of the embedded cluster: in process as a `kube::Client`, and over HTTP on loopback.
//!
//! It implements what kordon, the demo's agents and kubectl rely on: resourceVersions and conflicts, paged and
//! streaming lists, watches with bookmarks and 410, three kinds of patches, graceful deletion, evictions under
//! PodDisruptionBudgets, dry runs, and errors as `Status` objects. It does not authenticate unless it has tokens. It
//! has no RBAC, but [`Fault`]s can take permissions away.
//!
//! If other servers are set, it forwards requests to kubelets and to a metrics server.
//!
//! Not implemented: garbage collection of owned objects, field ownership (an apply is a strategic merge), and protobuf
//! for metrics.
//!
//! A table describes the kinds ([`kinds`]), and one generic implementation serves them all.

mod admission;
mod columns;
mod discovery;
mod events;
mod eviction;
pub mod faults;
pub mod forward;
mod json;
pub mod kinds;
mod list;
mod managed_fields;
pub mod object;
mod openapi;
mod patch;
mod protobuf;
mod quota;
pub mod refusal;
mod reply;
mod request;
mod resource;
mod scale;
mod selector;
mod serve;
mod store;
mod table;
mod transaction;
mod validation;
mod view;
mod watch;

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use bytes::Bytes;
use fastrand::Rng;
use http::request::Parts;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use kordon_clock::Clock;
use kordon_time::Timestamp;

pub use faults::{Fault, FaultAnswer};
pub use patch::{remove_unnamed, strategic as strategic_patch};
pub use request::Verb;

use faults::{Faults, Health};
use forward::ForwardedRequest;
use refusal::Refusal;
use reply::Reply;
use request::{ApiRequest, RequestTarget, View};
use store::Store;
use transaction::Transaction;

/// An API server. Clones are handles to the same server.
#[derive(Clone)]
pub struct Api {
    inner: Arc<Inner>,
}

/// The options of a server.
#[derive(Clone, Debug)]
pub struct ApiOptions {
    /// Seed of uids, generated names and random faults.
    pub seed: u64,
    /// Size of the history that each kind keeps, in bytes of objects. A watch that falls behind the history gets 410.
    pub history_bytes: usize,
    /// `tolerationSeconds` that new pods get for the taints not-ready and unreachable. None disables the admission
    /// plugin.
    pub default_toleration_seconds: Option<i64>,
    /// Whether new nodes get the taint not-ready:NoSchedule, which the admission plugin TaintNodesByCondition sets.
    pub taint_new_nodes: bool,
    /// Whether `sendInitialEvents` is supported. Servers before 1.32 refuse it.
    pub streaming_lists: bool,
    /// Whether objects are available in protobuf. If not, all responses are JSON.
    pub protobuf: bool,
    /// The minor version that `/version` reports; the major version is 1.
    pub minor_version: u32,
    /// Bearer tokens and their users. If there is at least one token, each HTTP request needs a valid token (else 401).
    pub tokens: BTreeMap<String, String>,
    /// Number of latest requests that [`Api::log`] keeps.
    pub log_entries: usize,
    /// Whether the server starts without the namespaces and priority classes that every cluster has.
    pub is_empty: bool,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            history_bytes: 64 << 20,
            default_toleration_seconds: Some(300),
            taint_new_nodes: true,
            streaming_lists: true,
            protobuf: true,
            minor_version: 36,
            tokens: BTreeMap::new(),
            log_entries: 1000,
            is_empty: false,
        }
    }
}

/// The user and the user agent of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requester {
    /// The name of the user, for example `system:node:n1`.
    pub user: String,
    /// The User-Agent.
    pub agent: String,
}

/// A request and its response, in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedRequest {
    pub at: Timestamp,
    pub identity: Requester,
    pub verb: Verb,
    /// Path and query.
    pub uri: String,
    /// The HTTP status; 0 without a response.
    pub code: u16,
}

struct Inner {
    clock: Clock,
    options: ApiOptions,
    /// The lock is held for one request at a time and never across an await.
    state: Mutex<State>,
    health: tokio::sync::watch::Sender<Health>,
    /// Channel to the server that answers for kubelets and metrics.
    forward: OnceLock<mpsc::Sender<ForwardedRequest>>,
}

struct State {
    store: Store,
    rng: Rng,
    faults: Faults,
    log: VecDeque<LoggedRequest>,
}

impl Api {
    /// Creates a server.
    pub fn new(clock: Clock, options: ApiOptions) -> Self {
        let is_empty = options.is_empty;
        let state = State {
            store: Store::new(options.history_bytes),
            rng: Rng::with_seed(options.seed),
            faults: Faults::default(),
            log: VecDeque::new(),
        };
        let health = tokio::sync::watch::Sender::new(Health::default());
        let state = Mutex::new(state);
        let inner = Inner { clock, options, state, health, forward: OnceLock::new() };
        let api = Self { inner: Arc::new(inner) };
        if !is_empty {
            api.load_basics();
        }
        api
    }

    /// Loads the namespaces and priority classes that every cluster has.
    fn load_basics(&self) {
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let namespace = json!({"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
            self.load("namespaces", namespace);
        }
        for (name, value) in
            [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)]
        {
            let class = json!({"metadata": {"name": name}, "value": value, "preemptionPolicy": "PreemptLowerPriority"});
            self.load("priorityclasses", class);
        }
    }

    /// Stores an object without checks, to seed a cluster. Fills in missing metadata (uid, creationTimestamp, namespace
    /// `default`). `plural` must be in the table of kinds.
    pub fn load(&self, plural: &str, object: Value) {
        let kind = kinds::named(plural);
        let mut state = self.state();
        self.transaction(&mut state, false).load(kind, object);
    }

    /// Returns the number of objects of the kind with this plural name.
    pub fn count(&self, plural: &str) -> usize {
        self.state().store.objects_of(kinds::named(plural)).count()
    }

    /// The revision of the latest write.
    pub fn revision(&self) -> u64 {
        self.state().store.revision()
    }

    /// The latest requests, oldest first.
    pub fn log(&self) -> Vec<LoggedRequest> {
        self.state().log.iter().cloned().collect()
    }

    /// Injects a fault until [`Api::clear_faults`].
    pub fn inject(&self, fault: Fault) {
        self.state().faults.add(fault);
    }

    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// Stops or starts the server. A stopped server refuses all requests and breaks all connections; its objects stay.
    pub fn set_down(&self, down: bool) {
        self.inner.health.send_modify(|health| health.down = down);
    }

    /// Stalls or resumes the watches. A stalled watch stays open and sends nothing.
    pub fn stall_watches(&self, stalled: bool) {
        self.inner.health.send_modify(|health| health.stalled = stalled);
    }

    /// Breaks the connections of all open watches. New watches work.
    pub fn cut_watches(&self) {
        self.inner.health.send_modify(|health| health.cuts += 1);
    }

    /// Breaks the connections of the open watches of one kind, given by its plural name.
    pub fn cut_watches_of(&self, kind: &str) {
        self.inner.health.send_modify(|health| *health.cuts_of_kind.entry(kind.into()).or_default() += 1);
    }

    /// Removes all history. A watch from an earlier revision, or the next page of an earlier list, then gets 410.
    pub fn compact_history(&self) {
        self.state().store.compact();
    }

    /// Handles one request. An error means that the connection breaks.
    async fn answer(&self, head: Parts, body: Bytes, identity: Requester) -> io::Result<Reply> {
        let uri = head.uri.to_string();
        let mut request = ApiRequest::parse(&head, body, identity);
        if request.view == View::Protobuf && !self.inner.options.protobuf {
            request.view = View::Object;
        }
        let fault = {
            let mut state = self.state();
            let resource = match &request.target {
                RequestTarget::Resource(resource) => Some(resource),
                _ => None,
            };
            let State { faults, rng, .. } = &mut *state;
            faults.matching(&request.identity, request.verb, resource, rng)
        };
        let down = self.inner.health.borrow().down;
        let answered = match fault {
            _ if down => Err(io::Error::new(io::ErrorKind::ConnectionRefused, "the API server is down")),
            Some(FaultAnswer::Hang) => {
                self.log_request(&request, uri.clone(), 0);
                std::future::pending().await
            }
            Some(FaultAnswer::Reset) => {
                Err(io::Error::new(io::ErrorKind::ConnectionReset, "the connection was reset"))
            }
            Some(answer) => Ok(fault_reply(answer, &request)),
            None => Ok(self.serve_request(&request).await),
        };
        self.log_request(&request, uri, answered.as_ref().map_or(0, |reply| reply.status().as_u16()));
        let mut reply = answered?;
        reply::date(&mut reply, self.inner.clock.now());
        Ok(reply)
    }

    async fn serve_request(&self, request: &ApiRequest) -> Reply {
        let served = match &request.target {
            RequestTarget::Health => {
                Ok(reply::bytes(200, "text/plain; charset=utf-8", Bytes::from_static(b"ok")))
            }
            RequestTarget::Version => Ok(reply::json(200, &discovery::version(&self.inner.options))),
            RequestTarget::Discovery => discovery::answer(request, self.inner.forward.get().is_some()),
            RequestTarget::OpenApi => openapi::answer(request),
            RequestTarget::Resource(resource) if forward::is_forwarded(resource) => {
                self.forward(request, resource).await
            }
            RequestTarget::Resource(resource) => resource::answer(self, request, resource),
            RequestTarget::Nothing => Err(Refusal::no_such_path()),
        };
        served.unwrap_or_else(|refusal| reply::refusal(&refusal, request.view))
    }

    fn log_request(&self, request: &ApiRequest, uri: String, code: u16) {
        let at = self.inner.clock.now();
        let entry = LoggedRequest { at, identity: request.identity.clone(), verb: request.verb, uri, code };
        let mut state = self.state();
        if state.log.len() >= self.inner.options.log_entries {
            state.log.pop_front();
        }
        state.log.push_back(entry);
    }

    fn transaction<'a>(&'a self, state: &'a mut State, dry_run: bool) -> Transaction<'a> {
        Transaction {
            store: &mut state.store,
            rng: &mut state.rng,
            options: &self.inner.options,
            dry_run,
            now: self.inner.clock.now(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is used even if a thread has panicked while it held the lock. It is consistent then, because
        // objects are replaced and never edited.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The response to a request that a fault matches.
fn fault_reply(answer: FaultAnswer, request: &ApiRequest) -> Reply {
    let refusal = match (answer, &request.target) {
        (FaultAnswer::Overloaded { retry_after_secs }, _) => {
            let text = Bytes::from_static(b"Too many requests, please try again later.\n");
            let mut reply = reply::bytes(429, "text/plain; charset=utf-8", text);
            reply.headers_mut().insert(http::header::RETRY_AFTER, retry_after_secs.into());
            return reply;
        }
        (FaultAnswer::Forbidden, RequestTarget::Resource(resource)) => {
            faults::forbidden(&request.identity, request.verb, resource)
        }
        (FaultAnswer::Refused(why), _) => Refusal::new(403, "Forbidden", why.to_owned()),
        (FaultAnswer::Forbidden, _) => {
            let user = &request.identity.user;
            Refusal::new(
                403,
                "Forbidden",
                format!("forbidden: User \"{user}\" cannot {} path", request.verb.name()),
            )
        }
        (FaultAnswer::Conflict, RequestTarget::Resource(resource)) => {
            let name = resource.name.as_deref().unwrap_or_default();
            Refusal::stale(resource.kind, &object::ObjectKey::new(&resource.namespace, name))
        }
        (FaultAnswer::InternalError | FaultAnswer::Conflict | FaultAnswer::Hang | FaultAnswer::Reset, _) => {
            Refusal::new(500, "InternalError", "Internal error occurred: injected by a fault of the demo")
        }
    };
    reply::refusal(&refusal, request.view)
}
