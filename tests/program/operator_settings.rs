//! Settings of Kubernetes operators that decide what becomes of their pods. Tested with the objects of
//! [`super::cases`].

use kordon_core::cluster::{Namespace, Owner, OwnerKind};
use serde_json::{Value, json};

use super::{
    case_objects::{DONE, LOSES, Objects},
    dashboard_fixture::DashboardFixture,
};

/// Returns a field of the pod of this name in a plan.
fn of_pod<'a>(plan: &'a Value, name: &str, field: &str) -> &'a str {
    let mut pods = plan["pods"].as_array().expect("pods").iter();
    let pod = pods.find(|pod| pod["pod"] == name).expect("the pod");
    pod[field].as_str().expect("a text")
}

/// KubeVirt 1.9 `pkg/virt-controller/watch/vm/vm.go`, `syncRunStrategy`.
#[tokio::test]
async fn the_files_say_what_becomes_of_a_virtual_machine() {
    let mut objects = Objects::of("17-unknown-owners");
    let machine = json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "vm1", "uid": "vm",
        "controller": true});
    objects.0.push(json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
        "metadata": {"name": "vm1", "namespace": "c13", "ownerReferences": [machine]},
        "spec": {"evictionStrategy": "None"}}));
    for (strategy, outcome) in [("Always", "moves"), ("Manual", "lost")] {
        objects.without("VirtualMachine", "vm1");
        objects.0.push(json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
            "metadata": {"name": "vm1", "namespace": "c13"}, "spec": {"runStrategy": strategy}}));
        let plan = objects.answer("plan drain c13-n1", LOSES).await;
        assert_eq!(of_pod(&plan, "virt-launcher-vm1", "outcome"), outcome, "{strategy}: {plan:#}");
    }
}

/// Agones 1.56 `pkg/gameserversets/controller.go`: a GameServerSet replaces an Unhealthy GameServer.
#[tokio::test]
async fn the_files_say_whether_a_game_server_is_replaced() {
    let mut objects = Objects::of("17-unknown-owners");
    let owner = &mut objects.named("Pod", "run-pod")["metadata"]["ownerReferences"][0];
    owner["apiVersion"] = "agones.dev/v1".into();
    owner["kind"] = "GameServer".into();
    owner["name"] = "game".into();
    let (_, plan) = objects.run("plan drain c13-n1").await;
    assert_eq!(of_pod(&plan, "run-pod", "outcome"), "unknown");
    let text = of_pod(&plan, "run-pod", "outcomeText");
    let why = "owned by GameServer game, which cannot be read: the files have no objects of this kind";
    assert!(text.contains(why), "{text}");
    let set = json!([{"apiVersion": "agones.dev/v1", "kind": "GameServerSet", "name": "set", "uid": "set",
        "controller": true}]);
    for (owners, outcome) in [(set, "moves"), (json!([]), "lost")] {
        objects.without("GameServer", "game");
        objects.0.push(json!({"apiVersion": "agones.dev/v1", "kind": "GameServer",
            "metadata": {"name": "game", "namespace": "c13", "ownerReferences": owners},
            "status": {"state": "Ready"}}));
        let (_, plan) = objects.run("plan drain c13-n1").await;
        assert_eq!(of_pod(&plan, "run-pod", "outcome"), outcome, "{plan:#}");
    }
}

/// Returns the objects of a pod of Longhorn that a budget protects.
fn protected_by_longhorn() -> Objects {
    let mut objects = Objects::of("17-unknown-owners");
    let owner = &mut objects.named("Pod", "kafka-0")["metadata"]["ownerReferences"][0];
    owner["apiVersion"] = "longhorn.io/v1beta2".into();
    owner["kind"] = "InstanceManager".into();
    objects.0.push(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "manager", "namespace": "c13", "generation": 1},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kafka"}}},
        "status": {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1,
            "expectedPods": 1}}));
    objects
}

#[tokio::test]
async fn the_setting_that_an_operator_needs_is_in_the_files_or_not_known() {
    let mut objects = protected_by_longhorn();
    let expected = [
        "it needs node-drain-policy, which is not known: the files have no objects of this kind",
        "it needs node-drain-policy, and that is allow-if-replica-is-stopped",
    ];
    for text in expected {
        let (_, plan) = objects.run("plan drain c13-n1").await;
        assert!(of_pod(&plan, "kafka-0", "text").contains(text), "{text}: {plan:#}");
        objects.0.push(json!({"apiVersion": "longhorn.io/v1beta2", "kind": "Setting",
            "metadata": {"name": "node-drain-policy", "namespace": "c13"}, "value": "allow-if-replica-is-stopped"}));
    }
    let report = objects.answer("audit --fail-on never", DONE).await;
    let findings = report["findings"].as_array().expect("findings");
    let budget = findings.iter().find(|finding| finding["kind"] == "operatorBudget").expect("the budget");
    assert!(budget["says"].as_str().is_some_and(|said| said.contains(expected[1])), "{budget:#}");
}

/// The loop of the dashboard reads the settings of these owners.
#[test]
fn settings_are_read_while_a_detail_a_plan_or_the_audit_needs_them() {
    let mut fixture = DashboardFixture::well();
    let owner = Owner {
        kind: OwnerKind::other("InstanceManager", "longhorn.io"),
        name: "manager".into(),
        uid: "manager".into(),
    };
    let wanted = Some(vec![(Namespace::from("shop"), owner.clone())]);
    fixture.change_pod("shop/cart-04-x7f2q", |pod| pod.owner = Some(owner.into()));
    fixture.press("2/pool-b-02<Enter>");
    assert_eq!(fixture.app.owners_with_settings(), None);
    for keys in ["d", "<Esc>r"] {
        fixture.press(keys);
        assert_eq!(fixture.app.owners_with_settings(), wanted, "{keys}");
    }
    fixture.press("<Esc>");
    assert_eq!(fixture.app.owners_with_settings(), None);
    fixture.press("9");
    fixture.run(1);
    assert_eq!(fixture.app.owners_with_settings(), wanted, "the audit is about all pods");
}
