//! Pod owners of kinds that other projects define, and what their controllers do after one of their pods is deleted.

use crate::cluster::{OwnerKind, WorkloadKind};

/// What the controller of an owner kind does after one of its pods is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerBehaviour {
    /// The controller creates another pod with the same name once the old object is gone.
    SameName,
    /// The controller creates another pod with another name when the old pod's deletion starts or when the old pod is
    /// gone.
    OtherName,
    /// The controller creates another pod on the same node.
    SameNode,
    /// The controller creates no other pod. Instead the whole run to which the pod belongs, such as a build, fails.
    Never,
    /// What the controller does depends on the settings of the owner or of the operator.
    OperatorDecides,
}

/// What kordon knows of one kind of owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerKindRow {
    pub kind: &'static str,
    /// The API group of the kind; empty for the core group.
    pub group: &'static str,
    pub project: &'static str,
    pub behaviour: OwnerBehaviour,
    /// Source of the facts: owner, repository and path of a file on GitHub, or the URL of a document.
    pub reference: &'static str,
    /// A condition on the behaviour of the controller, or an exception from it, in at most 80 characters. May be empty.
    pub note: &'static str,
}

/// The known owner kinds, sorted by kind. Some have the name of a kind that kordon watches, such as Job, but belong to
/// another project.
pub const OWNER_KINDS: &[OwnerKindRow] = &[
    row(
        "BackingImageManager",
        "longhorn.io",
        "Longhorn",
        OwnerBehaviour::SameNode,
        "longhorn/longhorn-manager/controller/backing_image_manager_controller.go",
        "on the same node, also while it is cordoned: spec.nodeName is set",
    ),
    row(
        "Build",
        "build.openshift.io",
        "OpenShift",
        OwnerBehaviour::Never,
        "openshift/openshift-controller-manager/pkg/build/controller/build/build_controller.go",
        "the build ends with the reason BuildPodDeleted",
    ),
    row(
        "CatalogSource",
        "operators.coreos.com",
        "Operator Lifecycle Manager",
        OwnerBehaviour::OtherName,
        "operator-framework/operator-lifecycle-manager/pkg/controller/registry/reconciler/grpc.go",
        "registry pod with a generated name",
    ),
    row(
        "Challenge",
        "acme.cert-manager.io",
        "cert-manager",
        OwnerBehaviour::OtherName,
        "cert-manager/cert-manager/pkg/issuer/acme/http/pod.go",
        "HTTP-01 solver pod with a generated name",
    ),
    row(
        "CloneSet",
        "apps.kruise.io",
        "OpenKruise",
        OwnerBehaviour::OtherName,
        "openkruise/kruise/pkg/controller/cloneset/sync/cloneset_scale.go",
        "a pod with volumeClaimTemplates keeps its instance id, and so its name",
    ),
    row(
        "Cluster",
        "postgresql.cnpg.io",
        "CloudNativePG",
        OwnerBehaviour::SameName,
        "cloudnative-pg/cloudnative-pg/internal/controller/cluster_create.go",
        "on the same volumes: with local storage it waits for the node",
    ),
    row(
        "CouchbaseCluster",
        "couchbase.com",
        "Couchbase Operator",
        OwnerBehaviour::OperatorDecides,
        "couchbase/couchbase-operator/pkg/cluster/nodereconcile.go",
        "the same name if its volumes are recoverable; the recovery policy decides",
    ),
    row(
        "EphemeralRunner",
        "actions.github.com",
        "GitHub Actions Runner Controller",
        OwnerBehaviour::SameName,
        "actions/actions-runner-controller/controllers/actions.github.com/ephemeralrunner_controller.go",
        "after a backoff; more than 5 failures delete the EphemeralRunner",
    ),
    row(
        "EtcdLockserver",
        "planetscale.com",
        "Vitess Operator",
        OwnerBehaviour::SameName,
        "planetscale/vitess-operator/pkg/controller/etcdlockserver/reconcile_members.go",
        "etcd member",
    ),
    row(
        "FoundationDBCluster",
        "apps.foundationdb.org",
        "FoundationDB Operator",
        OwnerBehaviour::SameName,
        "FoundationDB/fdb-kubernetes-operator/controllers/add_pods.go",
        "another name if the operator replaces the process group",
    ),
    row(
        "GameServer",
        "agones.dev",
        "Agones",
        OwnerBehaviour::OperatorDecides,
        "googleforgames/agones/pkg/gameservers/missing.go",
        "the GameServer becomes Unhealthy; its GameServerSet starts another one",
    ),
    row(
        "Instance",
        "workloads.kubeblocks.io",
        "KubeBlocks",
        OwnerBehaviour::SameName,
        "apecloud/kubeblocks/pkg/controller/instance/reconciler_alignment.go",
        "",
    ),
    row(
        "InstanceManager",
        "longhorn.io",
        "Longhorn",
        OwnerBehaviour::SameNode,
        "longhorn/longhorn-manager/controller/instance_manager_controller.go",
        "only on the same node, once it is schedulable again",
    ),
    row(
        "InstanceSet",
        "workloads.kubeblocks.io",
        "KubeBlocks",
        OwnerBehaviour::SameName,
        "apecloud/kubeblocks/pkg/controller/instanceset/reconciler_instance_alignment.go",
        "",
    ),
    row(
        "Jenkins",
        "jenkins.io",
        "Jenkins Operator",
        OwnerBehaviour::SameName,
        "jenkinsci/kubernetes-operator/pkg/configuration/base/pod.go",
        "pod of the Jenkins controller",
    ),
    row(
        "Job",
        "batch.volcano.sh",
        "Volcano",
        OwnerBehaviour::OperatorDecides,
        "volcano-sh/volcano/pkg/controllers/job/job_controller_util.go",
        "batch.volcano.sh; the same name, unless a policy restarts or ends the Job",
    ),
    row(
        "JobSet",
        "jobset.x-k8s.io",
        "JobSet",
        OwnerBehaviour::OtherName,
        "kubernetes-sigs/jobset/pkg/controllers/jobset_controller.go",
        "owns Jobs; they own the pods",
    ),
    row(
        "KafkaCluster",
        "kafka.banzaicloud.io",
        "Koperator",
        OwnerBehaviour::OtherName,
        "adobe/koperator/pkg/resources/kafka/kafka.go",
        "broker pod with a generated name",
    ),
    row(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        OwnerBehaviour::SameName,
        "kubernetes-sigs/lws/pkg/controllers/pod_controller.go",
        "owns StatefulSets; its restart policy may recreate the whole group",
    ),
    row(
        "MPIJob",
        "kubeflow.org",
        "Kubeflow MPI Operator",
        OwnerBehaviour::SameName,
        "kubeflow/mpi-operator/pkg/controller/mpi_job_controller.go",
        "workers; the pod of the launcher belongs to a Job",
    ),
    row(
        "PD",
        "core.pingcap.com",
        "TiDB Operator",
        OwnerBehaviour::SameName,
        "pingcap/tidb-operator/pkg/controllers/pd/tasks/pod.go",
        "version 2 of the operator",
    ),
    row(
        "PersistentVolumeClaim",
        "",
        "Containerized Data Importer",
        OwnerBehaviour::SameName,
        "kubevirt/containerized-data-importer/pkg/controller/import-controller.go",
        "importer pod, until the import is complete",
    ),
    row(
        "Pod",
        "",
        "Apache Spark",
        OwnerBehaviour::OtherName,
        concat!(
            "apache/spark/resource-managers/kubernetes/core/src/main/scala/org/apache/spark/scheduler/",
            "cluster/k8s/ExecutorPodsAllocator.scala"
        ),
        "the driver requests another executor",
    ),
    row(
        "PodClique",
        "grove.io",
        "Grove",
        OwnerBehaviour::OtherName,
        "ai-dynamo/grove/operator/internal/controller/podclique/components/pod/pod.go",
        "generated name; has a scheduling gate until its gang is complete",
    ),
    row(
        "PyTorchJob",
        "kubeflow.org",
        "Kubeflow Training Operator",
        OwnerBehaviour::SameName,
        "kubeflow/training-operator/pkg/controller.v1/common/pod.go",
        "restartPolicy OnFailure is the default; Never does not restart it",
    ),
    row(
        "RayCluster",
        "ray.io",
        "KubeRay",
        OwnerBehaviour::OtherName,
        "ray-project/kuberay/ray-operator/controllers/ray/raycluster_controller.go",
        "the head pod keeps its name with ENABLE_DETERMINISTIC_HEAD_POD_NAME",
    ),
    row(
        "Runner",
        "actions.summerwind.dev",
        "GitHub Actions Runner Controller",
        OwnerBehaviour::SameName,
        "actions/actions-runner-controller/controllers/actions.summerwind.net/runner_controller.go",
        "actions.summerwind.net",
    ),
    row(
        "Sandbox",
        "agents.x-k8s.io",
        "Agent Sandbox",
        OwnerBehaviour::SameName,
        "kubernetes-sigs/agent-sandbox/controllers/sandbox_controller.go",
        "unless the Sandbox is suspended",
    ),
    row(
        "ShareManager",
        "longhorn.io",
        "Longhorn",
        OwnerBehaviour::SameName,
        "longhorn/longhorn-manager/controller/share_manager_controller.go",
        "after a backoff; its volume is mounted again",
    ),
    row(
        "SparkApplication",
        "sparkoperator.k8s.io",
        "Spark Operator",
        OwnerBehaviour::Never,
        "kubeflow/spark-operator/pkg/util/sparkapplication.go",
        "driver; run again only with restartPolicy OnFailure or Always",
    ),
    row(
        "SparkConnect",
        "sparkoperator.k8s.io",
        "Spark Operator",
        OwnerBehaviour::SameName,
        "kubeflow/spark-operator/internal/controller/sparkconnect/reconciler.go",
        "server pod",
    ),
    row(
        "StatefulSet",
        "apps.kruise.io",
        "OpenKruise",
        OwnerBehaviour::SameName,
        "openkruise/kruise/pkg/controller/statefulset/stateful_set_utils.go",
        "apps.kruise.io",
    ),
    row(
        "StrimziPodSet",
        "core.strimzi.io",
        "Strimzi",
        OwnerBehaviour::SameName,
        concat!(
            "strimzi/strimzi-kafka-operator/cluster-operator/src/main/java/io/strimzi/operator/cluster/",
            "operator/assembly/StrimziPodSetController.java"
        ),
        "",
    ),
    row(
        "TFJob",
        "kubeflow.org",
        "Kubeflow Training Operator",
        OwnerBehaviour::OperatorDecides,
        "kubeflow/training-operator/pkg/controller.v1/common/pod.go",
        "restartPolicy Never is the default; others restart it with the same name",
    ),
    row(
        "TaskRun",
        "tekton.dev",
        "Tekton",
        OwnerBehaviour::Never,
        "tektoncd/pipeline/pkg/reconciler/taskrun/taskrun.go",
        "run again only with retries; a pod deleted by force is created again",
    ),
    row(
        "TiDB",
        "core.pingcap.com",
        "TiDB Operator",
        OwnerBehaviour::SameName,
        "pingcap/tidb-operator/pkg/controllers/tidb/tasks/pod.go",
        "version 2 of the operator",
    ),
    row(
        "TiFlash",
        "core.pingcap.com",
        "TiDB Operator",
        OwnerBehaviour::SameName,
        "pingcap/tidb-operator/pkg/controllers/tiflash/tasks/pod.go",
        "version 2 of the operator",
    ),
    row(
        "TiKV",
        "core.pingcap.com",
        "TiDB Operator",
        OwnerBehaviour::SameName,
        "pingcap/tidb-operator/pkg/controllers/tikv/tasks/pod.go",
        "version 2 of the operator",
    ),
    row(
        "VirtualMachineInstance",
        "kubevirt.io",
        "KubeVirt",
        OwnerBehaviour::OperatorDecides,
        "kubevirt/kubevirt/pkg/virt-controller/watch/vmi/lifecycle.go",
        "live-migrated, or ended; then its VirtualMachine may start another one",
    ),
    row(
        "VitessShard",
        "planetscale.com",
        "Vitess Operator",
        OwnerBehaviour::SameName,
        "planetscale/vitess-operator/pkg/controller/vitessshard/reconcile_tablets.go",
        "tablet",
    ),
    row(
        "Workflow",
        "argoproj.io",
        "Argo Workflows",
        OwnerBehaviour::Never,
        "argoproj/argo-workflows/workflow/controller/operator.go",
        "the step fails; run again only with a retryStrategy",
    ),
    row(
        "Workspace",
        "workspace.gitpod.io",
        "Gitpod",
        OwnerBehaviour::Never,
        "gitpod-io/gitpod/components/ws-manager-mk2/controllers/workspace_controller.go",
        "the workspace stops",
    ),
];

const fn row(
    kind: &'static str,
    group: &'static str,
    project: &'static str,
    behaviour: OwnerBehaviour,
    reference: &'static str,
    note: &'static str,
) -> OwnerKindRow {
    OwnerKindRow { kind, group, project, behaviour, reference, note }
}

/// Returns what is known of this owner kind, by kind and API group; `None` if nothing is known of it.
pub fn row_of(kind: &OwnerKind) -> Option<&'static OwnerKindRow> {
    let OwnerKind::Other { kind: name, .. } = kind else { return None };
    let at = OWNER_KINDS.binary_search_by(|row| row.kind.cmp(name)).ok()?;
    OWNER_KINDS.get(at).filter(|row| kind.is(row.kind, row.group))
}

/// Returns whether the controller of an owner kind creates a new pod with the name of the pod that it replaces.
pub fn keeps_names(kind: &OwnerKind) -> bool {
    match kind {
        OwnerKind::Workload(kind) => *kind == WorkloadKind::StatefulSet,
        OwnerKind::Other { .. } => row_of(kind).is_some_and(|row| row.behaviour == OwnerBehaviour::SameName),
        OwnerKind::Node => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{OwnerBehaviour::*, *};

    #[test]
    fn the_rows_are_sorted_by_kind() {
        assert!(OWNER_KINDS.is_sorted_by_key(|row| row.kind));
    }

    #[test]
    fn every_kind_has_one_row() {
        let doubles = OWNER_KINDS.windows(2).filter(|pair| pair[0].kind == pair[1].kind);
        assert_eq!(doubles.count(), 0);
    }

    #[test]
    fn every_row_has_a_reference() {
        for row in OWNER_KINDS {
            let parts = row.reference.split('/').filter(|part| !part.is_empty()).count();
            assert!(parts >= 3, "{}: {}", row.kind, row.reference);
            assert!(!row.project.is_empty(), "{}", row.kind);
        }
    }

    #[test]
    fn notes_fit_on_a_line() {
        for row in OWNER_KINDS {
            assert!(row.note.chars().count() <= 80, "{}: {}", row.kind, row.note);
        }
    }

    #[test]
    fn a_kind_without_a_row_is_not_known() {
        assert_eq!(row_of(&OwnerKind::other("ConfigMap", "")), None);
        assert_eq!(row_of(&OwnerKind::Node), None);
    }

    /// Both Cluster API and CloudNativePG define a kind named Cluster.
    #[test]
    fn a_kind_of_another_api_group_is_not_known() {
        let project = |group: Option<&str>| {
            let kind = OwnerKind::Other { kind: "Cluster".into(), group: group.map(Into::into) };
            row_of(&kind).map(|row| row.project)
        };
        assert_eq!(project(Some("postgresql.cnpg.io")), Some("CloudNativePG"));
        assert_eq!(project(Some("cluster.x-k8s.io")), None);
        assert_eq!(project(None), Some("CloudNativePG"), "of an old recording");
    }

    #[test]
    fn each_kind_has_the_behaviour_of_its_controller() {
        let expected = [
            ("BackingImageManager", SameNode),
            ("Build", Never),
            ("CatalogSource", OtherName),
            ("Challenge", OtherName),
            ("CloneSet", OtherName),
            ("Cluster", SameName),
            ("CouchbaseCluster", OperatorDecides),
            ("EphemeralRunner", SameName),
            ("EtcdLockserver", SameName),
            ("FoundationDBCluster", SameName),
            ("GameServer", OperatorDecides),
            ("Instance", SameName),
            ("InstanceManager", SameNode),
            ("InstanceSet", SameName),
            ("Jenkins", SameName),
            ("Job", OperatorDecides),
            ("JobSet", OtherName),
            ("KafkaCluster", OtherName),
            ("LeaderWorkerSet", SameName),
            ("MPIJob", SameName),
            ("PD", SameName),
            ("PersistentVolumeClaim", SameName),
            ("Pod", OtherName),
            ("PodClique", OtherName),
            ("PyTorchJob", SameName),
            ("RayCluster", OtherName),
            ("Runner", SameName),
            ("Sandbox", SameName),
            ("ShareManager", SameName),
            ("SparkApplication", Never),
            ("SparkConnect", SameName),
            ("StatefulSet", SameName),
            ("StrimziPodSet", SameName),
            ("TFJob", OperatorDecides),
            ("TaskRun", Never),
            ("TiDB", SameName),
            ("TiFlash", SameName),
            ("TiKV", SameName),
            ("VirtualMachineInstance", OperatorDecides),
            ("VitessShard", SameName),
            ("Workflow", Never),
            ("Workspace", Never),
        ];
        for (kind, behaviour) in expected {
            let of = OwnerKind::Other { kind: kind.into(), group: None };
            assert_eq!(row_of(&of).map(|row| row.behaviour), Some(behaviour), "{kind}");
        }
        assert_eq!(expected.len(), OWNER_KINDS.len());
    }
}
