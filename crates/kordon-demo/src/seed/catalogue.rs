//! The services that run in the embedded cluster.

/// A service of a fictional company. Its workloads, budgets and pods are generated from this entry.
#[derive(Clone, Copy, Debug)]
pub struct CatalogueService {
    pub namespace: &'static str,
    pub name: &'static str,
    pub kind: CatalogueKind,
    /// Number of the service's pods in a cluster of the default size.
    pub replicas: usize,
    pub image: &'static str,
    /// CPU request in thousandths of a core; 0 for a service without requests (QoS BestEffort).
    pub cpu_milli: i64,
    /// Memory request in MiB.
    pub memory_mib: i64,
    pub memory_limit: CatalogueLimit,
    pub tolerance: EvictionTolerance,
    /// The only node pool in which the pods may run.
    pub pool: Option<&'static str>,
    pub priority: Option<&'static str>,
    /// `terminationGracePeriodSeconds`.
    pub grace_seconds: i64,
    pub budget: CatalogueBudget,
    pub volume: CatalogueVolume,
    /// Finalizer of each pod of the service.
    pub finalizer: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogueKind {
    Deployment,
    StatefulSet,
    Job,
    Bare,
}

/// Toleration of the pods for the taints of a node that is not ready or is unreachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionTolerance {
    /// The toleration that admission adds by default: 300 seconds.
    Default,
    Seconds(i64),
    Unlimited,
}

/// The memory limit of a service with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogueLimit {
    /// The memory limit is equal to the memory request.
    Request,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogueBudget {
    None,
    MinAvailable(&'static str),
    MaxUnavailable(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogueVolume {
    None,
    EmptyDir,
    Claim,
}

/// A DaemonSet that runs one pod on every node.
#[derive(Clone, Copy, Debug)]
pub struct NodeAgent {
    pub name: &'static str,
    pub namespace: &'static str,
    pub image: &'static str,
    pub cpu_milli: i64,
    pub memory_mib: i64,
    pub priority: Option<&'static str>,
}

/// Name and value of each priority class.
pub const PRIORITY_CLASSES: &[(&str, i64)] = &[
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
    ("business-critical", 100_000),
    ("interruptible", -100),
];

/// Node agents, the most important first. A small cluster has only the first few of them.
pub const NODE_AGENTS: &[NodeAgent] = &[
    NodeAgent {
        name: "cilium",
        namespace: "kube-system",
        image: "quay.io/cilium/cilium:v1.18.4",
        cpu_milli: 100,
        memory_mib: 256,
        priority: Some("system-node-critical"),
    },
    NodeAgent {
        name: "kube-proxy",
        namespace: "kube-system",
        image: "registry.k8s.io/kube-proxy:v1.36.3",
        cpu_milli: 50,
        memory_mib: 64,
        priority: Some("system-node-critical"),
    },
    NodeAgent {
        name: "node-exporter",
        namespace: "monitoring",
        image: "quay.io/prometheus/node-exporter:v1.9.1",
        cpu_milli: 50,
        memory_mib: 48,
        priority: None,
    },
];

/// The static pods of a control plane node.
///
/// kube-controller-manager is missing: kordon's own controller runs beside the embedded cluster.
pub const STATIC_PODS: &[(&str, &str)] = &[
    ("etcd", "registry.k8s.io/etcd:3.6.5-0"),
    ("kube-apiserver", "registry.k8s.io/kube-apiserver:v1.36.3"),
    ("kube-scheduler", "registry.k8s.io/kube-scheduler:v1.36.3"),
];

const PLAIN: CatalogueService = CatalogueService {
    namespace: "",
    name: "",
    kind: CatalogueKind::Deployment,
    replicas: 1,
    image: "",
    cpu_milli: 200,
    memory_mib: 256,
    memory_limit: CatalogueLimit::Request,
    tolerance: EvictionTolerance::Default,
    pool: None,
    priority: None,
    grace_seconds: 30,
    budget: CatalogueBudget::None,
    volume: CatalogueVolume::None,
    finalizer: None,
};

/// A service without a memory limit, which can exhaust its node.
pub const SESSION_CACHE: CatalogueService = CatalogueService {
    namespace: "shop",
    name: "session-cache",
    image: "registry.example.com/shop/session-cache:1.12.0",
    cpu_milli: 300,
    memory_mib: 512,
    memory_limit: CatalogueLimit::None,
    pool: Some("general"),
    ..PLAIN
};

/// A service whose pods have no requests and the lowest priority. One or two of them run on every node.
pub const THUMBNAILS: CatalogueService = CatalogueService {
    namespace: "batch",
    name: "thumbnails",
    replicas: 24,
    image: "registry.example.com/batch/thumbnails:2.5.1",
    cpu_milli: 0,
    memory_mib: 0,
    priority: Some("interruptible"),
    ..PLAIN
};

/// A service that preempts the pods of `MODEL_TRAINING`.
pub const RISK_MODEL: CatalogueService = CatalogueService {
    namespace: "payments",
    name: "risk-model",
    image: "registry.example.com/payments/risk-model:3.1.0",
    cpu_milli: 3000,
    memory_mib: 4096,
    pool: Some("spot"),
    priority: Some("business-critical"),
    ..PLAIN
};

/// A service that fills the spot nodes of a cluster of 24 nodes, except for the room of one pod of `RISK_MODEL`.
pub const MODEL_TRAINING: CatalogueService = CatalogueService {
    namespace: "batch",
    name: "model-training",
    replicas: 28,
    image: "registry.example.com/batch/training:0.9.4",
    cpu_milli: 1500,
    memory_mib: 1024,
    pool: Some("spot"),
    priority: Some("interruptible"),
    ..PLAIN
};

/// All services, the most instructive first. A cluster with few pods has only the first few of them.
pub const SERVICES: &[CatalogueService] = &[
    CatalogueService {
        namespace: "shop",
        name: "frontend",
        replicas: 9,
        image: "registry.example.com/shop/frontend:2026.11.3",
        tolerance: EvictionTolerance::Seconds(30),
        budget: CatalogueBudget::MaxUnavailable("25%"),
        ..PLAIN
    },
    CatalogueService {
        namespace: "shop",
        name: "redis",
        kind: CatalogueKind::StatefulSet,
        replicas: 3,
        image: "docker.io/library/redis:8.2",
        cpu_milli: 500,
        memory_mib: 1024,
        budget: CatalogueBudget::MaxUnavailable("1"),
        volume: CatalogueVolume::Claim,
        ..PLAIN
    },
    CatalogueService {
        namespace: "shop",
        name: "cart",
        replicas: 5,
        image: "registry.example.com/shop/cart:4.18.0",
        tolerance: EvictionTolerance::Seconds(60),
        budget: CatalogueBudget::MinAvailable("80%"),
        ..PLAIN
    },
    CatalogueService {
        namespace: "payments",
        name: "api",
        replicas: 5,
        image: "registry.example.com/payments/api:7.4.1",
        cpu_milli: 400,
        memory_mib: 512,
        priority: Some("business-critical"),
        grace_seconds: 60,
        budget: CatalogueBudget::MinAvailable("4"),
        ..PLAIN
    },
    CatalogueService {
        namespace: "search",
        name: "elastic",
        kind: CatalogueKind::StatefulSet,
        replicas: 5,
        image: "docker.elastic.co/elasticsearch/elasticsearch:9.2.1",
        cpu_milli: 1000,
        memory_mib: 8192,
        tolerance: EvictionTolerance::Unlimited,
        pool: Some("memory"),
        grace_seconds: 120,
        budget: CatalogueBudget::MaxUnavailable("1"),
        volume: CatalogueVolume::Claim,
        ..PLAIN
    },
    CatalogueService {
        namespace: "batch",
        name: "image-resize",
        replicas: 6,
        image: "registry.example.com/batch/image-resize:1.9.2",
        cpu_milli: 0,
        memory_mib: 0,
        tolerance: EvictionTolerance::Seconds(30),
        priority: Some("interruptible"),
        volume: CatalogueVolume::EmptyDir,
        ..PLAIN
    },
    CatalogueService {
        namespace: "kube-system",
        name: "coredns",
        replicas: 3,
        image: "registry.k8s.io/coredns/coredns:v1.12.1",
        cpu_milli: 100,
        memory_mib: 70,
        priority: Some("system-cluster-critical"),
        budget: CatalogueBudget::MaxUnavailable("1"),
        ..PLAIN
    },
    CatalogueService {
        namespace: "shop",
        name: "catalog",
        replicas: 6,
        image: "registry.example.com/shop/catalog:3.2.7",
        ..PLAIN
    },
    CatalogueService {
        namespace: "batch",
        name: "nightly-report",
        kind: CatalogueKind::Job,
        replicas: 3,
        image: "registry.example.com/batch/report:88",
        cpu_milli: 500,
        memory_mib: 1024,
        volume: CatalogueVolume::EmptyDir,
        ..PLAIN
    },
    CatalogueService {
        namespace: "batch",
        name: "migration-runner",
        kind: CatalogueKind::Bare,
        image: "registry.example.com/batch/migrate:2026.10",
        cpu_milli: 100,
        memory_mib: 128,
        tolerance: EvictionTolerance::Seconds(60),
        ..PLAIN
    },
    CatalogueService {
        namespace: "platform",
        name: "backup-agent",
        replicas: 2,
        image: "registry.example.com/platform/backup-agent:0.31.0",
        tolerance: EvictionTolerance::Seconds(60),
        finalizer: Some("backup.platform.example.com/flush"),
        ..PLAIN
    },
    CatalogueService {
        namespace: "monitoring",
        name: "grafana",
        image: "docker.io/grafana/grafana:12.3.0",
        budget: CatalogueBudget::MinAvailable("1"),
        volume: CatalogueVolume::Claim,
        ..PLAIN
    },
    CatalogueService {
        namespace: "payments",
        name: "ledger",
        kind: CatalogueKind::StatefulSet,
        replicas: 3,
        image: "docker.io/library/postgres:18.1",
        cpu_milli: 1000,
        memory_mib: 4096,
        pool: Some("memory"),
        priority: Some("business-critical"),
        grace_seconds: 120,
        budget: CatalogueBudget::MinAvailable("2"),
        volume: CatalogueVolume::Claim,
        ..PLAIN
    },
    CatalogueService {
        namespace: "search",
        name: "query-api",
        replicas: 5,
        image: "registry.example.com/search/query-api:12.0.4",
        budget: CatalogueBudget::MaxUnavailable("1"),
        ..PLAIN
    },
    CatalogueService {
        namespace: "shop",
        name: "checkout",
        replicas: 4,
        image: "registry.example.com/shop/checkout:5.0.12",
        priority: Some("business-critical"),
        grace_seconds: 45,
        budget: CatalogueBudget::MinAvailable("3"),
        ..PLAIN
    },
    CatalogueService {
        namespace: "ingress",
        name: "nginx-controller",
        replicas: 4,
        image: "registry.k8s.io/ingress-nginx/controller:v1.14.0",
        grace_seconds: 90,
        budget: CatalogueBudget::MinAvailable("2"),
        ..PLAIN
    },
    CatalogueService {
        namespace: "monitoring",
        name: "prometheus",
        kind: CatalogueKind::StatefulSet,
        replicas: 2,
        image: "quay.io/prometheus/prometheus:v3.7.3",
        cpu_milli: 1000,
        memory_mib: 6144,
        pool: Some("memory"),
        grace_seconds: 180,
        volume: CatalogueVolume::Claim,
        ..PLAIN
    },
    CatalogueService {
        namespace: "batch",
        name: "video-transcode",
        replicas: 4,
        image: "registry.example.com/batch/transcode:2.2.0",
        cpu_milli: 1500,
        memory_mib: 2048,
        pool: Some("spot"),
        priority: Some("interruptible"),
        tolerance: EvictionTolerance::Seconds(30),
        volume: CatalogueVolume::EmptyDir,
        ..PLAIN
    },
    CatalogueService {
        namespace: "monitoring",
        name: "alertmanager",
        kind: CatalogueKind::StatefulSet,
        replicas: 3,
        image: "quay.io/prometheus/alertmanager:v0.29.0",
        cpu_milli: 100,
        memory_mib: 128,
        tolerance: EvictionTolerance::Unlimited,
        budget: CatalogueBudget::MaxUnavailable("1"),
        volume: CatalogueVolume::Claim,
        ..PLAIN
    },
    CatalogueService {
        namespace: "payments",
        name: "fraud-scoring",
        replicas: 3,
        image: "registry.example.com/payments/fraud:1.0.77",
        cpu_milli: 800,
        memory_mib: 1024,
        budget: CatalogueBudget::MinAvailable("50%"),
        ..PLAIN
    },
    CatalogueService {
        namespace: "shop",
        name: "recommendations",
        replicas: 4,
        image: "registry.example.com/shop/recommendations:0.44.1",
        volume: CatalogueVolume::EmptyDir,
        ..PLAIN
    },
    CatalogueService {
        namespace: "platform",
        name: "vault",
        kind: CatalogueKind::StatefulSet,
        replicas: 3,
        image: "docker.io/hashicorp/vault:1.21.1",
        budget: CatalogueBudget::MaxUnavailable("1"),
        volume: CatalogueVolume::Claim,
        ..PLAIN
    },
    CatalogueService {
        namespace: "search",
        name: "indexer",
        replicas: 3,
        image: "registry.example.com/search/indexer:12.0.4",
        tolerance: EvictionTolerance::Seconds(60),
        volume: CatalogueVolume::EmptyDir,
        ..PLAIN
    },
    CatalogueService {
        namespace: "monitoring",
        name: "loki",
        replicas: 3,
        image: "docker.io/grafana/loki:3.6.0",
        cpu_milli: 300,
        memory_mib: 1024,
        ..PLAIN
    },
    CatalogueService {
        namespace: "kube-system",
        name: "metrics-server",
        replicas: 2,
        image: "registry.k8s.io/metrics-server/metrics-server:v0.8.0",
        cpu_milli: 100,
        memory_mib: 200,
        priority: Some("system-cluster-critical"),
        ..PLAIN
    },
    CatalogueService {
        namespace: "payments",
        name: "settlement",
        kind: CatalogueKind::Job,
        replicas: 2,
        image: "registry.example.com/payments/settlement:31",
        ..PLAIN
    },
    CatalogueService {
        namespace: "platform",
        name: "cert-manager",
        image: "quay.io/jetstack/cert-manager-controller:v1.19.1",
        cpu_milli: 50,
        memory_mib: 128,
        ..PLAIN
    },
    CatalogueService {
        namespace: "platform",
        name: "external-dns",
        image: "registry.k8s.io/external-dns/external-dns:v0.20.0",
        cpu_milli: 50,
        memory_mib: 64,
        ..PLAIN
    },
    CatalogueService {
        namespace: "platform",
        name: "argocd-server",
        image: "quay.io/argoproj/argocd:v3.2.0",
        ..PLAIN
    },
    CatalogueService {
        namespace: "kube-system",
        name: "cluster-autoscaler",
        image: "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0",
        cpu_milli: 100,
        memory_mib: 600,
        priority: Some("system-cluster-critical"),
        ..PLAIN
    },
    CatalogueService {
        namespace: "batch",
        name: "debug-shell",
        kind: CatalogueKind::Bare,
        image: "docker.io/library/debian:13",
        cpu_milli: 0,
        memory_mib: 0,
        ..PLAIN
    },
];
