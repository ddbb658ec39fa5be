//! Kubernetes objects from files instead of a cluster (`--from`), and files laid over a cluster (`--with`).
//!
//! [`ObjectSet`] reads objects in the forms that people have: the output of `kubectl get` in JSON or YAML, the output
//! of `kubectl cluster-info dump`, an OpenShift must-gather, a support bundle. [`connect`] serves these objects from
//! the demo's API server, with a stopped clock, so that every command reads them as it reads a cluster. The server
//! refuses requests for a kind that the files do not contain, and the kind counts as unknown.

mod documents;
mod files;
mod last_applied;
mod lease_times;
mod overlay;
mod set;

use std::path::{Path, PathBuf};

use kordon_clock::Clock;
use kordon_core::{cluster::NOT_IN_FILES, engine::ServerVersion};
use kordon_demo::api::{
    Api, ApiOptions, Fault, FaultAnswer, Verb,
    kinds::{KINDS, Kind},
};
use kordon_time::Timestamp;

pub use self::{overlay::overlaid, set::ObjectSet};
use crate::k8s::{connect::Connection, error};

/// Why objects cannot be read from files.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    #[error("cannot read {file}")]
    Read {
        file: String,
        #[source]
        error: std::io::Error,
    },
    /// A file has no Kubernetes objects. `why` is the parser's reason.
    #[error("{file} has no Kubernetes objects: {why}")]
    NotObjects { file: String, why: String },
    #[error("{file} is larger than {limit} when unpacked; extract the part that matters")]
    TooLarge { file: String, limit: String },
    #[error("{path} has no object of a kind that kordon reads; it needs nodes at least")]
    Nothing { path: String },
    #[error("no object in {path} has a time; say what time it is with --at")]
    NoTime { path: String },
    /// A file of `--with` describes an object that cannot be laid over the cluster.
    #[error("{file}: {why}")]
    Overlay { file: String, why: String },
    /// Objects of a live cluster on which an overlay depends cannot be read.
    #[error("cannot lay objects over the cluster: {why}")]
    Cluster { why: String },
}

/// Kinds that stay unknown if they are missing in files that are complete, because other objects show that there are
/// some: every node has a Lease, pods have claims that were made from templates, Jobs have CronJobs, drivers publish
/// CSIStorageCapacities, and pods of Longhorn have settings. The last three own pods.
const SUPPOSED: [&str; 8] = [
    "leases",
    "resourceclaimtemplates",
    "cronjobs",
    "csistoragecapacities",
    "settings",
    "virtualmachineinstances",
    "gameservers",
    "tfjobs",
];

/// Connects to the objects of a file, folder or archive; the path `-` is standard input. The objects in the files
/// `with` are laid over them. If `is_complete` is true, a kind that is missing in the files has no objects, except for
/// the kinds in `SUPPOSED`. The clock is stopped at the time that `at` returns for the newest time in the objects.
///
/// # Errors
/// The files cannot be read, have no objects, or `at` returns no time.
pub fn connect(
    path: &Path,
    with: &[PathBuf],
    is_complete: bool,
    at: impl FnOnce(Option<Timestamp>) -> Option<Timestamp>,
) -> Result<Connection, ObjectsError> {
    let mut set = ObjectSet::read(path)?;
    let shown = error::plain(&path.display().to_string());
    let newest = set.newest();
    let objects_at = newest.as_ref().map(|newest| newest.at);
    let at = at(objects_at).ok_or_else(|| ObjectsError::NoTime { path: shown.clone() })?;
    let clock_note = newest.filter(|newest| newest.at == at).and_then(|newest| newest.note);
    let notes = overlay::apply(&mut set, with, at)?;
    lease_times::infer(&mut set, at);
    if is_complete {
        KINDS.iter().filter(|kind| !SUPPOSED.contains(&kind.plural)).for_each(|kind| set.know(kind));
    }
    let version = set.release().unwrap_or(ServerVersion::NEWEST_TESTED);
    let clock = Clock::stopped(at);
    let api = serve(&set, clock, version);
    let mut connection = Connection::embedded(api.client(), &shown);
    connection.server = "files".into();
    connection.identity.user.clear();
    (connection.version, connection.release) = (version, format!("v{version}"));
    (connection.clock, connection.objects_at) = (clock, objects_at);
    connection.notes = set.notes().into_iter().chain(clock_note).chain(notes).collect();
    Ok(connection)
}

/// Serves the objects of a set. Requests for kinds that the set does not know are refused.
fn serve(set: &ObjectSet, clock: Clock, version: ServerVersion) -> Api {
    let options = ApiOptions {
        is_empty: true,
        protobuf: false,
        minor_version: version.minor,
        default_toleration_seconds: None,
        taint_new_nodes: false,
        ..ApiOptions::default()
    };
    let api = Api::new(clock, options);
    for kind in KINDS {
        set.objects(kind).for_each(|object| api.load(kind.plural, object.clone()));
    }
    let absent = Fault::always(FaultAnswer::Refused(NOT_IN_FILES));
    // `Fault::on` selects a resource by name in every API group. A kind is therefore refused only if no kind of this
    // name is known: core and events.k8s.io, for example, both have Events.
    let knows = |kind: &Kind| KINDS.iter().any(|other| other.plural == kind.plural && set.knows(other));
    for kind in KINDS.iter().filter(|kind| !knows(kind)) {
        api.inject(absent.clone().on(&[], kind.plural));
    }
    if set.knows_leases_in("kube-system") {
        return api;
    }
    api.inject(absent.on(&[Verb::List, Verb::Watch, Verb::Get], "leases").within("kube-system"));
    api
}
