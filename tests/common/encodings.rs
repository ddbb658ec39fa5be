//! Reads all objects of a server with kordon's decoders, in JSON and in protobuf.

use bytes::Bytes;
use http_body_util::BodyExt;
use kordon::k8s::{
    decode::{
        Encoding, ListPurpose, StreamEvent,
        kinds::{PageReader, decoder_of},
    },
    watch::framing::Framing,
};
use kordon_core::cluster::{Change, FeedKind, WorkloadKind};
use kube::{Client, client::Body};

/// A kind that kordon reads: its name, and the path of its collection.
#[derive(Clone, Copy, Debug)]
pub struct ReadKind {
    pub name: &'static str,
    pub path: &'static str,
}

impl ReadKind {
    pub const ALL: [Self; 26] = [
        Self { name: "Node", path: "/api/v1/nodes" },
        Self { name: "Pod", path: "/api/v1/pods" },
        Self { name: "Namespace", path: "/api/v1/namespaces" },
        Self { name: "Service", path: "/api/v1/services" },
        Self { name: "ResourceQuota", path: "/api/v1/resourcequotas" },
        Self { name: "PersistentVolumeClaim", path: "/api/v1/persistentvolumeclaims" },
        Self { name: "PersistentVolume", path: "/api/v1/persistentvolumes" },
        Self { name: "StorageClass", path: "/apis/storage.k8s.io/v1/storageclasses" },
        Self { name: "CSINode", path: "/apis/storage.k8s.io/v1/csinodes" },
        Self { name: "PriorityClass", path: "/apis/scheduling.k8s.io/v1/priorityclasses" },
        Self { name: "PodDisruptionBudget", path: "/apis/policy/v1/poddisruptionbudgets" },
        Self { name: "Lease", path: "/apis/coordination.k8s.io/v1/leases" },
        Self { name: "ReplicaSet", path: "/apis/apps/v1/replicasets" },
        Self { name: "Deployment", path: "/apis/apps/v1/deployments" },
        Self { name: "StatefulSet", path: "/apis/apps/v1/statefulsets" },
        Self { name: "DaemonSet", path: "/apis/apps/v1/daemonsets" },
        Self { name: "ReplicationController", path: "/api/v1/replicationcontrollers" },
        Self { name: "Job", path: "/apis/batch/v1/jobs" },
        Self { name: "CronJob", path: "/apis/batch/v1/cronjobs" },
        Self { name: "DeviceClass", path: "/apis/resource.k8s.io/v1/deviceclasses" },
        Self { name: "ResourceClaim", path: "/apis/resource.k8s.io/v1/resourceclaims" },
        Self { name: "ResourceClaimTemplate", path: "/apis/resource.k8s.io/v1/resourceclaimtemplates" },
        Self { name: "ResourceSlice", path: "/apis/resource.k8s.io/v1/resourceslices" },
        Self { name: "DeviceTaintRule", path: "/apis/resource.k8s.io/v1/devicetaintrules" },
        Self { name: "CSIDriver", path: "/apis/storage.k8s.io/v1/csidrivers" },
        Self { name: "CSIStorageCapacity", path: "/apis/storage.k8s.io/v1/csistoragecapacities" },
    ];

    /// Returns the plural of the kind, as in URLs.
    pub fn plural(self) -> &'static str {
        self.path.rsplit('/').next().expect("a path has parts")
    }

    /// Returns the feed that reports the objects of the kind.
    pub fn feed(self) -> FeedKind {
        match self.name {
            "Node" => FeedKind::Nodes,
            "Pod" => FeedKind::Pods,
            "Namespace" => FeedKind::Namespaces,
            "Service" => FeedKind::Services,
            "ResourceQuota" => FeedKind::Quotas,
            "PersistentVolumeClaim" => FeedKind::Claims,
            "PersistentVolume" => FeedKind::Volumes,
            "StorageClass" => FeedKind::StorageClasses,
            "CSINode" => FeedKind::CsiNodes,
            "CSIDriver" => FeedKind::CsiDrivers,
            "CSIStorageCapacity" => FeedKind::StorageCapacities,
            "PriorityClass" => FeedKind::PriorityClasses,
            "PodDisruptionBudget" => FeedKind::Budgets,
            "Lease" => FeedKind::Leases,
            "CronJob" => FeedKind::CronJobs,
            "DeviceClass" => FeedKind::DeviceClasses,
            "ResourceClaim" => FeedKind::ResourceClaims,
            "ResourceClaimTemplate" => FeedKind::ClaimTemplates,
            "ResourceSlice" => FeedKind::ResourceSlices,
            "DeviceTaintRule" => FeedKind::DeviceTaintRules,
            workload => {
                let kind = WorkloadKind::ALL.into_iter().find(|kind| kind.as_str() == workload);
                FeedKind::Workloads(kind.expect("it is a workload"))
            }
        }
    }

    /// Reads all objects as a list and as a watch; first in JSON, then in protobuf.
    pub async fn read_both(self, client: &Client) -> [ReadObjects; 2] {
        if self.feed() == FeedKind::Leases {
            let [json, protobuf] = self.both(client, FeedKind::Leader).await;
            json.assert_same(&protobuf);
        }
        self.both(client, self.feed()).await
    }

    async fn both(self, client: &Client, kind: FeedKind) -> [ReadObjects; 2] {
        let protobuf = "application/vnd.kubernetes.protobuf, application/json";
        [
            read(client, self.path, "application/json", kind).await,
            read(client, self.path, protobuf, kind).await,
        ]
    }
}

/// Maximum length of an event in bytes.
const LONGEST: usize = 1 << 20;

/// Objects of a kind as read in one encoding: from a list and from a watch.
#[derive(Debug)]
pub struct ReadObjects {
    pub encoding: Encoding,
    pub listed: Vec<Change>,
    pub watched: Vec<Change>,
    /// Resource version of the list, followed by the resource version of each watch event.
    pub versions: Vec<String>,
}

impl ReadObjects {
    /// Asserts that two encodings gave the same objects and versions.
    pub fn assert_same(&self, other: &Self) {
        assert_eq!(self.versions, other.versions, "versions to resume from");
        for (ours, theirs) in [(&self.listed, &other.listed), (&self.watched, &other.watched)] {
            assert_eq!(ours.len(), theirs.len());
            for (ours, theirs) in ours.iter().zip(theirs) {
                assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
            }
        }
    }
}

async fn read(client: &Client, path: &str, accept: &str, kind: FeedKind) -> ReadObjects {
    let mut decoder = decoder_of(kind);
    let (encoding, body) = get(client, path, accept).await;
    let mut listed = Vec::new();
    let end = decoder.page(encoding, &body, ListPurpose::Whole, &mut listed).expect("a list");
    assert!(end.bad.is_empty(), "{path}: {:?}", end.bad);
    for piece in [1, 7, 100, 4096] {
        let in_pieces = read_in_pieces(kind, encoding, &body, piece);
        assert_eq!(in_pieces, format!("{listed:?}"), "{path} in pieces of {piece} bytes");
    }
    let mut versions = vec![end.version];
    let watch = format!(
        "{path}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=60"
    );
    let (encoding, mut body) = open(client, &watch, accept).await;
    let (mut watched, mut ended, mut framing) = (Vec::new(), false, Framing::new(encoding, LONGEST));
    while !ended {
        let frame = body.frame().await.expect("the bookmark that ends the list").expect("a body");
        let data = frame.into_data().expect("no trailers");
        let mut received = &*data;
        while !ended && let Some(event) = framing.next(&mut received).expect("none is too long") {
            match decoder.event(encoding, event, true) {
                StreamEvent::Object { change, version } => {
                    watched.extend(change);
                    versions.push(version);
                }
                StreamEvent::Bookmark { version, list_ends } => {
                    versions.push(version);
                    ended = list_ends;
                }
                odd @ (StreamEvent::Error(_) | StreamEvent::Bad(_) | StreamEvent::Broken(_)) => {
                    panic!("{path}: {odd:?}")
                }
            }
        }
    }
    ReadObjects { encoding, listed, watched, versions }
}

/// Decodes one page of a list, which arrives in chunks of `piece` bytes. Returns the changes as text.
fn read_in_pieces(kind: FeedKind, encoding: Encoding, body: &[u8], piece: usize) -> String {
    let (mut decoder, mut listed) = (decoder_of(kind), Vec::new());
    let mut page = PageReader::new(encoding, ListPurpose::Whole);
    for piece in body.chunks(piece) {
        page.read(&mut *decoder, piece, &mut listed).expect("a list");
    }
    page.end(&mut *decoder, &mut listed).expect("a list");
    format!("{listed:?}")
}

async fn get(client: &Client, path: &str, accept: &str) -> (Encoding, Bytes) {
    let (encoding, body) = open(client, path, accept).await;
    (encoding, body.collect().await.expect("a body").to_bytes())
}

async fn open(client: &Client, path: &str, accept: &str) -> (Encoding, Body) {
    // Sends kordon's request headers, which refuse compression because the client does not support a body that is
    // compressed event by event.
    let request = http::Request::get(path)
        .header(http::header::ACCEPT, accept)
        .header(http::header::ACCEPT_ENCODING, "identity");
    let answer = client.send(request.body(Body::empty()).expect("a request")).await.expect("an answer");
    let media = answer.headers()[http::header::CONTENT_TYPE].to_str().expect("text").to_owned();
    (Encoding::from_content_type(&media), answer.into_body())
}
