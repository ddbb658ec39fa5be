//! Settings of Kubernetes operators that decide what becomes of their pods, each list read by one request.

use std::collections::BTreeMap;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use kube::Client;
use serde::Deserialize;

use super::{admission, fetched_list, owner_decisions::DECIDING_KINDS};
use kordon_core::cluster::{KnownSetting, Namespace, OperatorSettings, Owner, OwnerDecision};

/// Number of operators and namespaces that are read at the same time.
const AT_ONCE: usize = 8;

/// Reads the settings that concern pods of these owners. Without owners of a project, nothing of it is read.
pub async fn read(client: &Client, owners: &[(Namespace, Owner)]) -> OperatorSettings {
    let mut reads: Vec<BoxFuture<'_, OperatorSettings>> = Vec::new();
    let pod_sets = of_kind(owners, "StrimziPodSet", "core.strimzi.io");
    if !pod_sets.is_empty() {
        reads.push(of_pod_sets(client, pod_sets.into_values().flatten().collect()).boxed());
    }
    for (namespace, managers) in of_kind(owners, "InstanceManager", "longhorn.io") {
        reads.push(of_instance_managers(client, namespace, managers).boxed());
    }
    for (namespace, machines) in of_kind(owners, "VirtualMachineInstance", "kubevirt.io") {
        reads.push(of_virtual_machines(client, namespace, machines).boxed());
    }
    for kind in DECIDING_KINDS {
        for (namespace, owners) in of_kind(owners, kind.kind, kind.group) {
            reads.push(kind.read(client, namespace, owners).boxed());
        }
    }
    let (mut found, mut answers) = (OperatorSettings::default(), stream::iter(reads).buffered(AT_ONCE));
    while let Some(OperatorSettings { settings, decisions }) = answers.next().await {
        found.settings.extend(settings);
        found.decisions.extend(decisions);
    }
    found
}

/// Returns the owners of a kind, by namespace.
fn of_kind<'a>(
    owners: &'a [(Namespace, Owner)],
    kind: &str,
    group: &str,
) -> BTreeMap<&'a Namespace, Vec<&'a Owner>> {
    let mut found: BTreeMap<&Namespace, Vec<&Owner>> = BTreeMap::new();
    for (namespace, owner) in owners.iter().filter(|(_, owner)| owner.kind.is(kind, group)) {
        found.entry(namespace).or_default().push(owner);
    }
    found
}

async fn of_pod_sets(client: &Client, owners: Vec<&Owner>) -> OperatorSettings {
    same_for(&owners, &drain_cleaner(client).await)
}

async fn of_instance_managers(
    client: &Client,
    namespace: &Namespace,
    owners: Vec<&Owner>,
) -> OperatorSettings {
    same_for(&owners, &node_drain_policy(client, namespace).await)
}

fn same_for(owners: &[&Owner], setting: &KnownSetting) -> OperatorSettings {
    let settings = owners.iter().map(|owner| (owner.uid.clone(), setting.clone())).collect();
    OperatorSettings { settings, ..OperatorSettings::default() }
}

/// Returns whether Strimzi Drain Cleaner is there: its webhook is asked about evictions (`strimzi/drain-cleaner`,
/// `packaging/install/kubernetes/070-ValidatingWebhookConfiguration.yaml`).
async fn drain_cleaner(client: &Client) -> KnownSetting {
    match admission::eviction_webhooks(client).await {
        Err(why) => KnownSetting::Unreadable(why.as_str().into()),
        Ok(webhooks) => {
            let cleaner = webhooks.iter().find(|webhook| {
                [&webhook.configuration, &webhook.webhook].iter().any(|name| name.contains("drain-cleaner"))
            });
            cleaner.map_or(KnownSetting::Missing, |cleaner| {
                clause(format!("that is there ({} {})", cleaner.kind, cleaner.configuration))
            })
        }
    }
}

fn clause(text: String) -> KnownSetting {
    KnownSetting::Found(text.into())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
}

#[derive(Deserialize)]
struct OwnerReference {
    kind: String,
    name: String,
    #[serde(default)]
    controller: bool,
}

/// A Setting of Longhorn (`longhorn/longhorn-manager`, `k8s/pkg/apis/longhorn/v1beta2/setting.go`).
#[derive(Deserialize)]
struct LonghornSetting {
    metadata: Metadata,
    #[serde(default)]
    value: String,
}

async fn node_drain_policy(client: &Client, namespace: &Namespace) -> KnownSetting {
    let path = format!("/apis/longhorn.io/v1beta2/namespaces/{namespace}/settings");
    match fetched_list::items_at::<LonghornSetting>(client, &path).await {
        Err(why) => KnownSetting::Unreadable(why),
        Ok(settings) => policy(&settings),
    }
}

fn policy(settings: &[LonghornSetting]) -> KnownSetting {
    match settings.iter().find(|setting| setting.metadata.name == "node-drain-policy") {
        Some(LonghornSetting { value, .. }) => clause(format!("that is {value}")),
        None => clause("that has its default".into()),
    }
}

/// A VirtualMachineInstance of KubeVirt.
#[derive(Deserialize)]
struct Instance {
    metadata: Metadata,
    #[serde(default)]
    spec: InstanceSpec,
    #[serde(default)]
    status: InstanceStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct InstanceSpec {
    eviction_strategy: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InstanceStatus {
    conditions: Vec<InstanceCondition>,
}

#[derive(Deserialize)]
struct InstanceCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

/// A VirtualMachine of KubeVirt.
#[derive(Deserialize)]
struct Machine {
    metadata: Metadata,
    #[serde(default)]
    spec: MachineSpec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MachineSpec {
    run_strategy: Option<String>,
    running: Option<bool>,
}

async fn of_virtual_machines(
    client: &Client,
    namespace: &Namespace,
    owners: Vec<&Owner>,
) -> OperatorSettings {
    let path = |plural: &str| format!("/apis/kubevirt.io/v1/namespaces/{namespace}/{plural}");
    let instances = fetched_list::items_at::<Instance>(client, &path("virtualmachineinstances")).await;
    let machines = match &instances {
        Ok(_) => {
            fetched_list::items_at::<Machine>(client, &path("virtualmachines")).await.unwrap_or_default()
        }
        Err(_) => Vec::new(),
    };
    let mut found = OperatorSettings::default();
    for owner in owners {
        let instance = match &instances {
            Ok(instances) => instances.iter().find(|instance| *instance.metadata.name == *owner.name),
            Err(why) => {
                found.settings.insert(owner.uid.clone(), KnownSetting::Unreadable(why.clone()));
                continue;
            }
        };
        if let Some(instance) = instance {
            found.settings.insert(owner.uid.clone(), instance.strategy());
            let decision = instance.decision(&machines);
            found.decisions.extend(decision.map(|decision| (owner.uid.clone(), decision)));
        }
    }
    found
}

impl Instance {
    /// Returns the eviction strategy; `Missing` if it lets the pod be evicted (KubeVirt 1.9,
    /// `pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go`, `admitLauncherPod`).
    fn strategy(&self) -> KnownSetting {
        match self.spec.eviction_strategy.as_deref() {
            Some("None") => KnownSetting::Missing,
            Some("LiveMigrateIfPossible") if !self.is_migratable() => KnownSetting::Missing,
            Some("LiveMigrate") if !self.is_migratable() => {
                clause("that is LiveMigrate, but the virtual machine cannot be live-migrated".into())
            }
            Some(strategy) => clause(format!("that is {strategy}")),
            None => clause("that is what the KubeVirt object says".into()),
        }
    }

    fn is_migratable(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|condition| condition.kind == "LiveMigratable" && condition.status == "True")
    }

    /// Returns whether the instance certainly does not migrate before an eviction.
    fn never_migrates(&self) -> bool {
        match self.spec.eviction_strategy.as_deref() {
            Some("None") => true,
            Some("LiveMigrate" | "LiveMigrateIfPossible") => !self.is_migratable(),
            Some(_) | None => false,
        }
    }

    /// Returns what becomes of the instance after its pod has left; `None` if that depends on more: with
    /// RerunOnFailure, on whether the guest shuts down without an error; with WaitAsReceiver, on the strategy that
    /// follows (KubeVirt 1.9, `pkg/virt-controller/watch/vm/vm.go`, `syncRunStrategy`).
    fn decision(&self, machines: &[Machine]) -> Option<OwnerDecision> {
        let owner = self.metadata.owner_references.iter().find(|owner| owner.controller);
        let strategy = match owner.map(|owner| (owner.kind.as_str(), owner.name.as_str())) {
            Some(("VirtualMachine", name)) => {
                let machine = machines.iter().find(|machine| machine.metadata.name == name)?;
                machine.spec.strategy()?
            }
            Some(("VirtualMachineInstanceReplicaSet", _)) => "Always",
            Some(_) => return None,
            None => "Once",
        };
        match strategy {
            "Always" => Some(OwnerDecision::Recreates),
            // Its VirtualMachine stops the instance in any case.
            "Halted" => Some(OwnerDecision::Ends),
            // With Once, another instance starts only when the object of the ended one is deleted.
            "Manual" | "Once" if self.never_migrates() => Some(OwnerDecision::Ends),
            _ => None,
        }
    }
}

impl MachineSpec {
    /// Returns the run strategy; `None` if the machine is invalid (KubeVirt 1.9,
    /// `staging/src/kubevirt.io/api/core/v1/types.go`, `VirtualMachine.RunStrategy`).
    fn strategy(&self) -> Option<&str> {
        match (self.running, self.run_strategy.as_deref()) {
            (Some(_), Some(_)) => None,
            (Some(true), None) => Some("Always"),
            (Some(false), None) => Some("Halted"),
            (None, strategy) => Some(strategy.unwrap_or("Halted")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::decode::items::items;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    fn read<T: DeserializeOwned>(objects: &[Value]) -> Vec<T> {
        items(json!({"items": objects}).to_string().as_bytes(), "list").expect("a list")
    }

    fn instance(strategy: Option<&str>, is_migratable: bool, owner: Option<&str>) -> Instance {
        let owners: Vec<Value> = owner
            .map(|kind| json!({"apiVersion": "kubevirt.io/v1", "kind": kind, "name": "vm", "controller": true}))
            .into_iter()
            .collect();
        let status = if is_migratable { "True" } else { "False" };
        let object = json!({
            "metadata": {"name": "vm", "ownerReferences": owners},
            "spec": {"evictionStrategy": strategy},
            "status": {"conditions": [{"type": "LiveMigratable", "status": status}]},
        });
        read(&[object]).remove(0)
    }

    fn machine(spec: Value) -> Vec<Machine> {
        read(&[json!({"metadata": {"name": "vm"}, "spec": spec})])
    }

    #[test]
    fn the_run_strategy_decides_whether_a_virtual_machine_starts_again() {
        let of = |strategy: &str, spec: Value| {
            instance(Some(strategy), true, Some("VirtualMachine")).decision(&machine(spec))
        };
        assert_eq!(of("None", json!({"runStrategy": "Always"})), Some(OwnerDecision::Recreates));
        assert_eq!(of("None", json!({"running": true})), Some(OwnerDecision::Recreates));
        assert_eq!(of("None", json!({"runStrategy": "Manual"})), Some(OwnerDecision::Ends));
        assert_eq!(of("LiveMigrate", json!({"runStrategy": "Manual"})), None, "an eviction migrates it");
        assert_eq!(of("None", json!({"runStrategy": "Once"})), Some(OwnerDecision::Ends));
        assert_eq!(of("LiveMigrate", json!({"runStrategy": "Halted"})), Some(OwnerDecision::Ends));
        assert_eq!(of("None", json!({})), Some(OwnerDecision::Ends), "Halted is the default");
        assert_eq!(of("None", json!({"running": true, "runStrategy": "Always"})), None, "it is invalid");
        assert_eq!(of("None", json!({"runStrategy": "RerunOnFailure"})), None, "the guest decides");
        assert_eq!(of("None", json!({"runStrategy": "WaitAsReceiver"})), None, "another strategy follows");
    }

    #[test]
    fn an_instance_without_a_machine_ends_unless_it_migrates() {
        let of = |strategy: Option<&str>, is_migratable: bool, owner: Option<&str>| {
            instance(strategy, is_migratable, owner).decision(&[])
        };
        assert_eq!(of(Some("None"), true, None), Some(OwnerDecision::Ends));
        assert_eq!(of(Some("LiveMigrateIfPossible"), false, None), Some(OwnerDecision::Ends));
        assert_eq!(of(Some("LiveMigrateIfPossible"), true, None), None);
        assert_eq!(of(None, true, None), None, "the KubeVirt object has the strategy");
        let of_set = of(None, true, Some("VirtualMachineInstanceReplicaSet"));
        assert_eq!(of_set, Some(OwnerDecision::Recreates));
        assert_eq!(of(None, true, Some("VirtualMachine")), None, "the machine was not read");
    }

    #[test]
    fn the_eviction_strategy_denies_evictions_unless_it_needs_no_migration() {
        let of =
            |strategy: &str, is_migratable: bool| instance(Some(strategy), is_migratable, None).strategy();
        let found = |text: &str| KnownSetting::Found(text.into());
        assert_eq!(of("None", true), KnownSetting::Missing);
        assert_eq!(of("LiveMigrateIfPossible", true), found("that is LiveMigrateIfPossible"));
        assert_eq!(of("LiveMigrateIfPossible", false), KnownSetting::Missing);
        let never = "that is LiveMigrate, but the virtual machine cannot be live-migrated";
        assert_eq!(of("LiveMigrate", false), found(never));
        assert_eq!(of("External", false), found("that is External"));
    }

    #[test]
    fn the_drain_policy_of_longhorn_has_a_value_or_its_default() {
        let setting = |name: &str| json!({"metadata": {"name": name}, "value": "always-allow"});
        let policy = |name: &str| policy(&read::<LonghornSetting>(&[setting(name)]));
        assert_eq!(policy("node-drain-policy"), KnownSetting::Found("that is always-allow".into()));
        assert_eq!(policy("log-level"), KnownSetting::Found("that has its default".into()));
    }
}
