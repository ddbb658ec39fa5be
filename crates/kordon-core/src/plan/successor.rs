//! The pod that an owner creates in place of another one: the owner's template after admission.

use std::{borrow::Cow, cell::LazyCell, cmp::Reverse, sync::Arc};

use super::owner::{self, OwnerLookup};
use crate::cluster::{
    Cluster, ContainerResources, FeedKind, KubeletSpec, Labels, Name, Pod, PodResources, PriorityClass,
    QuotaSpec, Requests, SchedulingSpec, StatefulRules, Toleration, Workload, WorkloadKind,
    stateful_set::ordinal, workload::TEMPLATE_HASH,
};

/// Returns the pod that the owner of a pod creates in its place. The new pod follows the owner's template, which may
/// differ from the old pod, for example after a rollout, a resize in place or a changed label. Fields without a value
/// in the template have the old pod's value, which admission has set. If the old pod was made from this template,
/// everything that was added to it is kept too. Volumes are always those of the old pod, because claims of a
/// StatefulSet are not in the template. If the template is not known, returns the old pod.
pub fn successor<'a>(cluster: &Cluster, pod: &'a Pod) -> Cow<'a, Pod> {
    let Some(workload) = workload(cluster, pod) else { return Cow::Borrowed(pod) };
    let Some(template) = &workload.template else { return Cow::Borrowed(pod) };
    let Priority { value, never_preempts } = priority(cluster, pod, template);
    let is_of_template = is_of_template(&workload, template, pod);
    let tolerations = tolerations(cluster, pod, &workload, template, is_of_template);
    let mut scheduling = SchedulingSpec {
        volumes: pod.scheduling.volumes.clone(),
        never_preempts,
        node_selector: node_selector(pod, template, is_of_template),
        ..(*template.scheduling).clone()
    };
    if pod.is_of_daemon_set() {
        // The node affinity names the node of the pod (upstream `ReplaceDaemonSetPodNodeNameNodeAffinity`).
        scheduling.node_affinity.clone_from(&pod.scheduling.node_affinity);
    }
    Cow::Owned(Pod {
        labels: labels(pod, template),
        priority: value,
        tolerations: if *tolerations == *pod.tolerations {
            pod.tolerations.clone()
        } else {
            tolerations.into()
        },
        scheduling: if scheduling == *pod.scheduling { pod.scheduling.clone() } else { scheduling.into() },
        resources: resources(pod, template, is_of_template),
        ..pod.clone()
    })
}

/// Returns the sort key of pods whose replacements are created at the same time. The scheduler tries those of high
/// priority first.
pub(super) fn by_priority(cluster: &Cluster, pod: &Pod) -> Reverse<i32> {
    let of_template =
        |workload: Arc<Workload>| Some(priority(cluster, pod, workload.template.as_ref()?).value);
    Reverse(workload(cluster, pod).and_then(of_template).unwrap_or(pod.priority))
}

/// Returns the pods that wait for a node, in the order in which the scheduler tries them when there is room: those of
/// high priority first, then those that wait longest (upstream of 1.37, `queuesort/priority_sort.go`).
pub(super) fn scheduling_queue(cluster: &Cluster) -> Vec<&Arc<Pod>> {
    let mut waiting: Vec<&Arc<Pod>> = cluster.unscheduled_pods().collect();
    waiting.sort_by_key(|pod| (Reverse(pod.priority), pod.created));
    waiting
}

/// Returns the owner of a pod, if the owner creates the pod again by the owner's current template.
fn workload(cluster: &Cluster, pod: &Pod) -> Option<Arc<Workload>> {
    match owner::find(cluster, &pod.key.namespace, pod.owner.as_ref()?) {
        OwnerLookup::Found(workload) => Some(workload).filter(|workload| !keeps_revision(workload, pod)),
        OwnerLookup::Gone | OwnerLookup::Unknown => None,
    }
}

/// Returns whether a StatefulSet creates a pod again at the StatefulSet's current revision, not at the revision of its
/// template. The ordinal of the pod decides this. Templates of other revisions are not read.
fn keeps_revision(workload: &Workload, pod: &Pod) -> bool {
    let below = workload.stateful.as_ref().map_or(0, |rules| rules.keeps_revision_below);
    ordinal(&pod.key.name).is_some_and(|ordinal| ordinal < below)
}

/// Returns whether a pod was made from the current template of its owner.
fn is_of_template(workload: &Workload, template: &Pod, pod: &Pod) -> bool {
    match &workload.stateful {
        Some(StatefulRules { update_revision, .. }) => {
            update_revision.is_some() && pod.labels.get(REVISION) == update_revision.as_ref()
        }
        None if workload.kind == WorkloadKind::DaemonSet => has_containers_of(template, pod),
        None => pod.labels.get(TEMPLATE_HASH) == template.labels.get(TEMPLATE_HASH),
    }
}

/// Returns whether a pod has the containers of a template, with their requests. This is the test for DaemonSets,
/// because the revision of their templates is not read.
fn has_containers_of(template: &Pod, pod: &Pod) -> bool {
    let is_same = |new: i64, old: i64| new == 0 || new == old;
    template.resources.kubelet.containers.iter().all(|new| {
        let mut old = pod.resources.kubelet.containers.iter();
        old.any(|old| {
            old.name == new.name
                && is_same(new.cpu_request_milli, old.cpu_request_milli)
                && is_same(new.memory_request_bytes, old.memory_request_bytes)
        })
    })
}

/// Label with the StatefulSet revision from which a pod was made.
const REVISION: &str = "controller-revision-hash";

/// Keys of the labels that controllers add to those of the template (upstream `newStatefulSetPod`,
/// `addCompletionIndexLabel`).
const ADDED_LABELS: [&str; 4] = [
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/job-completion-index",
    REVISION,
    "statefulset.kubernetes.io/pod-name",
];

/// Returns the labels of the new pod: those of the template, and those that its controller adds.
fn labels(pod: &Pod, template: &Pod) -> Labels {
    let own = pod.labels.iter().filter(|(key, _)| ADDED_LABELS.contains(&key.as_str()));
    let entry = |(key, value): (&Name, &Name)| (key.clone(), value.clone());
    // A template without labels is invalid, so an empty map means that the labels were not recorded.
    if template.labels.is_empty() {
        return pod.labels.clone();
    }
    let labels: Labels = template.labels.iter().chain(own).map(entry).collect();
    if labels == pod.labels { pod.labels.clone() } else { labels }
}

/// Keys of the tolerations that the API server adds to each pod.
const ADMITTED: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// Returns the tolerations of the template and those that are added to it. Admission always adds the tolerations of the
/// taints of dead nodes. It adds others by RuntimeClass, namespace or quality of service (upstream
/// `podtolerationrestriction`), or by a webhook, and then to all pods of the template: a toleration that a sibling lacks
/// was added later, for example by `kubectl edit`. The DaemonSet controller adds tolerations of the taints for node
/// conditions (upstream `AddOrUpdateDaemonPodTolerations`).
fn tolerations(
    cluster: &Cluster,
    pod: &Pod,
    workload: &Workload,
    template: &Pod,
    is_current: bool,
) -> Vec<Toleration> {
    let sibling = LazyCell::new(|| {
        let is_sibling = |other: &&Arc<Pod>| {
            other.key != pod.key && other.lives() && is_of_template(workload, template, other)
        };
        cluster.pods_owned_by(&workload.uid).find(is_sibling)
    });
    let is_admitted = |toleration: &Toleration| {
        let key = toleration.key.as_str();
        ADMITTED.contains(&key)
            || (pod.is_of_daemon_set() && key.starts_with("node.kubernetes.io/"))
            || (is_current && sibling.is_none_or(|sibling| sibling.tolerations.contains(toleration)))
    };
    let is_added =
        |toleration: &&Toleration| !template.tolerations.contains(toleration) && is_admitted(toleration);
    template.tolerations.iter().chain(pod.tolerations.iter().filter(is_added)).cloned().collect()
}

/// Returns the node selector of the new pod: that of the template, with the entries that admission adds for the
/// RuntimeClass or the namespace (upstream `runtimeclass`, `podnodeselector`).
fn node_selector(pod: &Pod, template: &Pod, is_of_template: bool) -> Box<[(Name, Name)]> {
    let (old, new) = (&pod.scheduling.node_selector, &template.scheduling.node_selector);
    let is_added = |(key, _): &&(Name, Name)| is_of_template && new.iter().all(|(known, _)| known != key);
    let mut selector: Vec<_> = new.iter().chain(old.iter().filter(is_added)).cloned().collect();
    selector.sort();
    selector.into()
}

/// The fields of a pod's PriorityClass that admission reads.
struct Priority {
    value: i32,
    never_preempts: bool,
}

/// Whether the PriorityClasses are known. An empty list counts as unknown: every cluster has two system classes, so the
/// input files must have left them out.
fn knows_classes(cluster: &Cluster) -> bool {
    cluster.known(FeedKind::PriorityClasses).is_known() && !cluster.priority_classes().is_empty()
}

/// Label of a namespace that holds its Pod Security level. The API server refuses pods that exceed the level.
const ENFORCED_LEVEL: &str = "pod-security.kubernetes.io/enforce";

/// Returns why the API server refuses the replacement of a pod; `None` if no reason for a refusal is known.
pub(super) fn refusal(cluster: &Cluster, pod: &Pod) -> Option<String> {
    if let Some(class) = missing_class(cluster, pod) {
        return Some(format!("its PriorityClass {class} is gone"));
    }
    let level = forbidding_level(cluster, pod)?;
    Some(format!("Pod Security level {level} of namespace {}", pod.key.namespace))
}

/// Returns the Pod Security level of a pod's namespace, if this level forbids fields of the owner's template (upstream
/// of 1.37, pod-security-admission `admission.go`, `ValidatePod`, and `policy/check_*.go`). `baseline` and `restricted`
/// both forbid what exceeds `baseline`. Exemptions in the API server's configuration are not known.
fn forbidding_level(cluster: &Cluster, pod: &Pod) -> Option<Name> {
    let namespace = cluster.namespaces().get(&pod.key.namespace)?;
    let level = namespace.labels.get(ENFORCED_LEVEL)?;
    let workload = workload(cluster, pod);
    let template = workload.as_ref().and_then(|workload| workload.template.as_deref()).unwrap_or(pod);
    let is_forbidden =
        matches!(level.as_str(), "baseline" | "restricted") && template.resources.kubelet.exceeds_baseline;
    is_forbidden.then(|| level.clone())
}

/// Returns the missing PriorityClass: the one that the template of a pod's owner names but that does not exist in the
/// cluster. The API server refuses pods of such a template (upstream `plugin/pkg/admission/priority`). `None` if the
/// class exists, if the template names none, or while classes are not known.
fn missing_class(cluster: &Cluster, pod: &Pod) -> Option<Name> {
    let workload = workload(cluster, pod)?;
    let name = &workload.template.as_ref()?.resources.quota.priority_class;
    let is_missing =
        !name.is_empty() && knows_classes(cluster) && cluster.priority_classes().get(name).is_none();
    is_missing.then(|| name.clone())
}

/// Returns the priority that admission gives the new pod (upstream `plugin/pkg/admission/priority`, `admitPod`). This
/// is the priority of the class that the template names, else of the cluster's default class, else 0. If classes are
/// not known, or the named class is gone ([`missing_class`]), it is the old pod's priority.
fn priority(cluster: &Cluster, pod: &Pod, template: &Pod) -> Priority {
    let old = Priority {
        value: pod.priority,
        never_preempts: pod.scheduling.never_preempts || template.scheduling.never_preempts,
    };
    if !knows_classes(cluster) {
        return old;
    }
    let classes = cluster.priority_classes();
    let name = &template.resources.quota.priority_class;
    let class = if name.is_empty() {
        // If there are several default PriorityClasses, the one with the lowest value counts.
        let defaults = classes.iter().filter(|class| class.global_default);
        defaults.min_by_key(|class| class.value).map(|class| &**class)
    } else {
        classes.get(name).map(|class| &**class)
    };
    match class {
        Some(PriorityClass { value, never_preempts, .. }) => {
            Priority { value: *value, never_preempts: *never_preempts }
        }
        None if name.is_empty() => Priority { value: 0, never_preempts: template.scheduling.never_preempts },
        None => old,
    }
}

/// Returns the resources of the template. Requests that the template leaves out are those of the old pod, which a
/// LimitRange has set (upstream `plugin/pkg/admission/limitranger`). The overhead of a RuntimeClass and injected
/// containers are also those of the old pod.
fn resources(pod: &Pod, template: &Pod, is_of_template: bool) -> Arc<PodResources> {
    let (old, new) = (&pod.resources, &template.resources);
    if new.kubelet.containers.is_empty() {
        let asks = new.requests != Requests::default();
        return if asks { new.clone() } else { old.clone() };
    }
    let containers = containers(&new.kubelet, &old.kubelet, is_of_template);
    let sum = ContainerResources::sum;
    let overhead = |request: fn(&ContainerResources) -> i64, all: i64| match &*old.kubelet.containers {
        known if is_of_template && !known.is_empty() => (all - sum(known, request)).max(0),
        _ => 0,
    };
    // Requests of the pod as a whole replace those of its containers.
    let total = |request: fn(&ContainerResources) -> i64, new: i64, own: i64, old: i64| {
        if new == own { sum(&containers, request) + overhead(request, old) } else { new }
    };
    let cpu = |container: &ContainerResources| container.cpu_request_milli;
    let memory = |container: &ContainerResources| container.memory_request_bytes;
    let own = &new.kubelet.containers;
    let cpu_milli = total(cpu, new.requests.cpu_milli, sum(own, cpu), old.requests.cpu_milli);
    let memory_bytes = total(memory, new.requests.memory_bytes, sum(own, memory), old.requests.memory_bytes);
    let or_old = |new: i64, old: i64| if new == 0 { old } else { new };
    let ephemeral_bytes = or_old(new.requests.ephemeral_bytes, old.requests.ephemeral_bytes);
    let is_old = |new: (i64, i64, i64), requests: &Requests| {
        new == (requests.cpu_milli, requests.memory_bytes, requests.ephemeral_bytes)
            && new_scalars(template) == &*requests.scalars
    };
    let all = (cpu_milli, memory_bytes, ephemeral_bytes);
    if is_old(all, &new.requests) && containers == new.kubelet.containers {
        return new.clone();
    }
    if is_old(all, &old.requests) {
        return old.clone();
    }
    Arc::new(PodResources {
        requests: Requests {
            cpu_milli,
            memory_bytes,
            ephemeral_bytes,
            scalars: new.requests.scalars.clone(),
            assumed_cpu_milli: new.requests.assumed_cpu_milli.max(cpu_milli),
            assumed_memory_bytes: new.requests.assumed_memory_bytes.max(memory_bytes),
        },
        quota: QuotaSpec {
            cpu_limit_milli: or_old(new.quota.cpu_limit_milli, old.quota.cpu_limit_milli),
            memory_limit_bytes: or_old(new.quota.memory_limit_bytes, old.quota.memory_limit_bytes),
            ephemeral_limit_bytes: or_old(new.quota.ephemeral_limit_bytes, old.quota.ephemeral_limit_bytes),
            ..new.quota.clone()
        },
        kubelet: KubeletSpec { containers, ..new.kubelet.clone() },
    })
}

fn new_scalars(template: &Pod) -> &[(Name, i64)] {
    &template.resources.requests.scalars
}

/// Returns the containers of a template after admission. A missing request is copied from the container of the same
/// name in the old pod. Containers that only the old pod has were injected, if the pod was made from this template.
fn containers(new: &KubeletSpec, old: &KubeletSpec, is_of_template: bool) -> Box<[ContainerResources]> {
    let named = |containers: &[ContainerResources], name: &Name| {
        containers.iter().find(|known| known.name == *name).cloned()
    };
    let or_old = |new: i64, old: i64| if new == 0 { old } else { new };
    let admitted = |container: &ContainerResources| match named(&old.containers, &container.name) {
        Some(known) => ContainerResources {
            cpu_request_milli: or_old(container.cpu_request_milli, known.cpu_request_milli),
            memory_request_bytes: or_old(container.memory_request_bytes, known.memory_request_bytes),
            ..container.clone()
        },
        None => container.clone(),
    };
    let is_injected =
        |known: &&ContainerResources| is_of_template && named(&new.containers, &known.name).is_none();
    let injected = old.containers.iter().filter(is_injected).cloned();
    new.containers.iter().map(admitted).chain(injected).collect()
}
