//! Devices: claims, extended resources that a DeviceClass backs, and device taints. The objects are those of a real
//! control plane ([`super::cases`]), some of them changed. The expected answers were measured there, or follow from the
//! documentation of the API.

use serde_json::{Value, json};

use super::case_objects::{DONE, Objects, verdict};
use crate::common::program::Shell;

const CLAIMS: &str = "35-extended-resource-by-device";
const TAINTS: &str = "37-device-taint-rule-preview";

/// Returns a field of the pod whose name starts with `pod`.
fn of_pod<'a>(plan: &'a Value, pod: &str, field: &str) -> &'a str {
    let pods = plan["pods"].as_array().expect("pods");
    let is_it = |found: &&Value| found["pod"].as_str().is_some_and(|name| name.starts_with(pod));
    pods.iter().find(is_it).unwrap_or_else(|| panic!("{plan:#}"))[field].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_pod_lands_where_a_device_of_its_class_is_free() {
    let plan = Objects::of(CLAIMS).answer("plan drain c30-n1", DONE).await;
    assert_eq!(of_pod(&plan, "ext", "landingNode"), "c30-n2");
    let status = Objects::of(CLAIMS).answer("status", DONE).await;
    assert_eq!(status["headroom"]["nodes"]["stranding"], 0, "{:#}", status["headroom"]);
}

#[tokio::test]
async fn a_selector_excludes_devices_by_their_attributes() {
    let mut objects = Objects::of(CLAIMS);
    objects.without("Pod", "infer");
    objects.without("Pod", "plain");
    objects.without("ResourceClaim", "infer");
    let plan = objects.answer("plan drain c30-n1", DONE).await;
    assert_eq!(of_pod(&plan, "ext", "landingNode"), "c30-n2", "the first by name of equal nodes");
    for (node, model) in [("c30-n1", "new"), ("c30-n2", "old"), ("c30-n3", "new")] {
        let slice = objects.named("ResourceSlice", &format!("slice-{node}"));
        for place in [0, 1] {
            slice["spec"]["devices"][place]["attributes"] = json!({"model": {"string": model}});
        }
    }
    let class = objects.named("DeviceClass", "gpu.example.com");
    let selector = json!({"cel": {"expression": "device.attributes['gpu.example.com'].model == 'new'"}});
    class["spec"]["selectors"].as_array_mut().expect("selectors").push(selector);
    let plan = objects.answer("plan drain c30-n1", DONE).await;
    assert_eq!(of_pod(&plan, "ext", "landingNode"), "c30-n3");
}

#[tokio::test]
async fn a_selector_that_cannot_be_evaluated_leaves_the_placement_open() {
    let mut objects = Objects::of(CLAIMS);
    let class = objects.named("DeviceClass", "gpu.example.com");
    class["spec"]["selectors"][0]["cel"]["expression"] = "device.newField == 3".into();
    let plan = objects.answer("plan drain c30-n1", DONE).await;
    assert_eq!(of_pod(&plan, "ext", "outcome"), "unknown");
    assert!(of_pod(&plan, "ext", "outcomeText").contains("devices: the selector"), "{plan:#}");
}

/// Upstream of 1.37, `dynamicresources.go` `Filter`: an error of a selector ends the scheduling of the pod.
#[tokio::test]
async fn a_selector_that_fails_for_a_device_keeps_the_pod_pending() {
    let mut objects = Objects::of(CLAIMS);
    let class = objects.named("DeviceClass", "gpu.example.com");
    let selector = json!({"cel": {"expression": "device.attributes['gpu.example.com'].model == 'new'"}});
    class["spec"]["selectors"].as_array_mut().expect("selectors").push(selector);
    let plan = objects.answer("plan drain c30-n1", DONE).await;
    assert_eq!(of_pod(&plan, "ext", "outcome"), "pending", "{plan:#}");
    assert!(of_pod(&plan, "ext", "outcomeText").contains("fails: device gpu-"), "{plan:#}");
}

#[tokio::test]
async fn a_pod_stays_pending_where_all_devices_are_taken() {
    let mut objects = Objects::of(CLAIMS);
    objects.named("ResourceSlice", "slice-c30-n2")["spec"]["devices"] = json!([{"name": "gpu-0"}]);
    let plan = objects.answer("plan drain c30-n1", DONE).await;
    assert_eq!(of_pod(&plan, "ext", "outcome"), "pending");
    assert!(of_pod(&plan, "ext", "outcomeText").contains("example.com/gpu"), "{plan:#}");
}

#[tokio::test]
async fn a_taint_keeps_claims_off_a_device() {
    let mut objects = Objects::of(CLAIMS);
    let taint =
        json!([{"key": "example.com/broken", "effect": "NoSchedule", "timeAdded": "2026-11-27T16:16:19Z"}]);
    objects.named("ResourceSlice", "slice-c30-n2")["spec"]["devices"][1]["taints"] = taint;
    let plan = objects.answer("plan drain c30-n1", DONE).await;
    assert_eq!(of_pod(&plan, "ext", "outcome"), "pending");
}

/// Two pods that use one claim, whose device is on node c30-n3.
fn with_shared_claim() -> Objects {
    let mut objects = Objects::of(CLAIMS);
    let mut second = objects.named("Pod", "infer").clone();
    second["metadata"]["name"] = "infer-second".into();
    second["metadata"]["uid"] = "11111111-2222-4333-8444-555555555555".into();
    objects.0.push(second);
    for pod in ["infer-7", "infer-second"] {
        let pod = objects.named("Pod", pod);
        pod["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "shared"}]);
    }
    let template = json!([{"name": "gpu", "resourceClaimName": "shared"}]);
    objects.named("ReplicaSet", "infer")["spec"]["replicas"] = 2.into();
    objects.named("ReplicaSet", "infer")["spec"]["template"]["spec"]["resourceClaims"] = template.clone();
    objects.named("Deployment", "infer")["spec"]["replicas"] = 2.into();
    objects.named("Deployment", "infer")["spec"]["template"]["spec"]["resourceClaims"] = template;
    let claim = objects.named("ResourceClaim", "infer");
    claim["metadata"]["name"] = "shared".into();
    claim["metadata"]["ownerReferences"] = json!([]);
    let mut reserved = claim["status"]["reservedFor"][0].clone();
    reserved["uid"] = "11111111-2222-4333-8444-555555555555".into();
    claim["status"]["reservedFor"].as_array_mut().expect("pods").push(reserved);
    objects
}

#[tokio::test]
async fn pods_that_share_a_claim_stay_near_its_devices() {
    let objects = with_shared_claim();
    let plan = objects.answer("plan evict c30b/infer-second", DONE).await;
    assert_eq!(of_pod(&plan, "infer-second", "landingNode"), "c30-n3", "nodes 1 and 2 have free devices");
}

/// Two replacements that use one claim and keep apart: once a device binds to a node, the second has no node left.
/// Upstream of 1.37, `structured/internal/incubating/allocator_incubating.go` `createNodeSelector`.
#[tokio::test]
async fn a_claim_stays_on_the_node_that_its_device_binds_to() {
    for (binds_to_node, outcomes) in [(false, ["moves", "moves"]), (true, ["moves", "pending"])] {
        let mut objects = with_shared_claim();
        objects.named("ResourceClaim", "shared").as_object_mut().expect("an object").remove("status");
        // Its replacement would take the last free device.
        objects.without("Pod", "train-8d4fcbc7b-cqz7k");
        for node in ["c30-n2", "c30-n3"] {
            objects.without("ResourceSlice", &format!("slice-{node}"));
        }
        let slice = &mut objects.named("ResourceSlice", "slice-c30-n1")["spec"];
        slice.as_object_mut().expect("a spec").remove("nodeName");
        slice["allNodes"] = true.into();
        slice["devices"][1]["bindsToNode"] = binds_to_node.into();
        let template = &mut objects.named("ReplicaSet", "infer")["spec"]["template"];
        let apart = json!([{"topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": template["metadata"]["labels"].clone()}}]);
        template["spec"]["affinity"] =
            json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}});
        let plan = objects.answer("plan drain c30-n3", DONE).await;
        let mut found = ["infer-7", "infer-second"].map(|pod| of_pod(&plan, pod, "outcome"));
        found.sort_unstable();
        assert_eq!(found, outcomes, "{binds_to_node}: {plan:#}");
    }
}

/// A ResourceClaimTemplate that asks for this number of devices.
fn claim_template(name: &str, count: u32) -> Value {
    let exactly =
        json!({"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": count});
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "c30b", "uid": format!("template-{name}")},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}})
}

const EVICT_INFER: &str = "plan evict c30b/infer-7fb98589b6-5625q";

/// Upstream of 1.37, `pkg/controller/resourceclaim/controller.go` `handleClaim`: the claim of a new pod is made from the
/// template as it is then.
#[tokio::test]
async fn the_claim_of_a_new_pod_is_made_from_its_template() {
    for (count, outcome) in [(1, "moves"), (2, "pending")] {
        let mut objects = Objects::of(CLAIMS);
        objects.0.push(claim_template("gpu", count));
        let plan = objects.answer(EVICT_INFER, DONE).await;
        assert_eq!(of_pod(&plan, "infer", "outcome"), outcome, "the old claim has one device: {plan:#}");
        objects.without("ResourceClaim", "infer");
        let plan = objects.answer(EVICT_INFER, DONE).await;
        assert_eq!(of_pod(&plan, "infer", "outcome"), outcome, "there is no old claim: {plan:#}");
    }
    let mut objects = Objects::of(CLAIMS);
    objects.0.push(claim_template("other", 1));
    let plan = objects.answer(EVICT_INFER, DONE).await;
    assert_eq!(of_pod(&plan, "infer", "outcome"), "pending", "{plan:#}");
    assert!(of_pod(&plan, "infer", "outcomeText").contains("template gpu not found"), "{plan:#}");
}

/// The claim of the old pod shows what its own template asks for, not what another template does.
#[tokio::test]
async fn a_workload_may_name_another_claim_template_than_its_old_pod() {
    let mut objects = Objects::of(CLAIMS);
    let replica_set = objects.named("ReplicaSet", "infer");
    let entry = &mut replica_set["spec"]["template"]["spec"]["resourceClaims"][0];
    entry["resourceClaimTemplateName"] = "pair".into();
    let plan = objects.answer(EVICT_INFER, DONE).await;
    assert_eq!(of_pod(&plan, "infer", "outcome"), "unknown", "the files have no templates: {plan:#}");
    objects.0.push(claim_template("pair", 2));
    let plan = objects.answer(EVICT_INFER, DONE).await;
    assert_eq!(of_pod(&plan, "infer", "outcome"), "pending", "{plan:#}");
}

/// Three nodes, each with one device of 40 GiB that claims share. Claims have 20 GiB on c30-n1 and c30-n2, and all of it
/// on c30-n3.
fn with_shares() -> Objects {
    let mut objects = Objects::of(CLAIMS);
    let policy = json!({"default": "10Gi", "validRange": {"min": "10Gi", "step": "10Gi"}});
    for node in ["c30-n1", "c30-n2", "c30-n3"] {
        objects.named("ResourceSlice", &format!("slice-{node}"))["spec"]["devices"] = json!([{
            "name": "gpu-0",
            "allowMultipleAllocations": true,
            "attributes": {"slot": {"int": 0}},
            "capacity": {"memory": {"value": "40Gi", "requestPolicy": policy}},
        }]);
    }
    for claim in ["ext", "train-8d4fcbc7b-cqz7k", "train-8d4fcbc7b-n56pn", "infer"] {
        let result = share_of(&mut objects, claim);
        result["device"] = "gpu-0".into();
        result["shareID"] = format!("share-{claim}").into();
        result["consumedCapacity"] = json!({"memory": "20Gi"});
    }
    objects
}

/// Returns the result of the allocation of the claim whose name starts with `claim`.
fn share_of<'a>(objects: &'a mut Objects, claim: &str) -> &'a mut Value {
    &mut objects.named("ResourceClaim", claim)["status"]["allocation"]["devices"]["results"][0]
}

/// A ResourceClaimTemplate that asks for this much memory of one device.
fn memory_template(memory: &str) -> Value {
    let mut template = claim_template("gpu", 1);
    template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["capacity"] =
        json!({"requests": {"memory": memory}});
    template
}

/// Upstream of 1.37, `structured/internal/incubating/consumable_capacity.go` `CmpRequestOverCapacity`.
#[tokio::test]
async fn a_claim_gets_a_share_of_a_device_that_has_enough_capacity_left() {
    for (template, outcome) in [
        (claim_template("gpu", 1), "moves"),
        (memory_template("15Gi"), "moves"),
        (memory_template("21Gi"), "pending"),
        (claim_template("gpu", 2), "pending"),
    ] {
        let mut objects = with_shares();
        objects.0.push(template.clone());
        let plan = objects.answer(EVICT_INFER, DONE).await;
        assert_eq!(of_pod(&plan, "infer", "outcome"), outcome, "{template:#}\n{plan:#}");
    }
    let mut objects = with_shares();
    let devices = &mut objects.named("ResourceSlice", "slice-c30-n1")["spec"]["devices"];
    devices[0]["capacity"]["memory"]["requestPolicy"] =
        json!({"default": "20Gi", "validValues": ["20Gi", "40Gi"]});
    share_of(&mut objects, "train-8d4fcbc7b-n56pn")["consumedCapacity"]["memory"] = "40Gi".into();
    for (memory, outcome) in [("15Gi", "moves"), ("21Gi", "pending")] {
        objects.without("ResourceClaimTemplate", "gpu");
        objects.0.push(memory_template(memory));
        let plan = objects.answer(EVICT_INFER, DONE).await;
        assert_eq!(of_pod(&plan, "infer", "outcome"), outcome, "{memory}: {plan:#}");
    }
}

#[tokio::test]
async fn the_share_of_a_claim_is_free_once_its_pod_is_gone() {
    let mut objects = with_shares();
    objects.0.push(memory_template("20Gi"));
    for claim in ["ext", "train-8d4fcbc7b-n56pn"] {
        share_of(&mut objects, claim)["consumedCapacity"]["memory"] = "40Gi".into();
    }
    let plan = objects.answer(EVICT_INFER, DONE).await;
    assert_eq!(of_pod(&plan, "infer", "outcome"), "sameNode", "{plan:#}");
    share_of(&mut objects, "train-8d4fcbc7b-cqz7k")["consumedCapacity"]["memory"] = "30Gi".into();
    let plan = objects.answer(EVICT_INFER, DONE).await;
    assert_eq!(of_pod(&plan, "infer", "outcome"), "pending", "{plan:#}");
}

#[tokio::test]
async fn an_extended_resource_is_a_share_too() {
    let mut objects = with_shares();
    let plan = objects.answer("plan drain c30-n1", DONE).await;
    assert_eq!(of_pod(&plan, "ext", "landingNode"), "c30-n2", "{plan:#}");
    share_of(&mut objects, "train-8d4fcbc7b-n56pn")["consumedCapacity"]["memory"] = "31Gi".into();
    let plan = objects.answer("plan drain c30-n1", DONE).await;
    assert_eq!(of_pod(&plan, "ext", "outcome"), "pending", "{plan:#}");
}

/// Upstream of 1.37, `structured/internal/incubating/allocator_incubating.go` `allocateDevice`.
#[tokio::test]
async fn all_shares_of_a_device_take_from_its_counters_once() {
    let mut objects = with_shares();
    objects.0.push(claim_template("gpu", 1));
    share_of(&mut objects, "train-8d4fcbc7b-n56pn")["consumedCapacity"]["memory"] = "40Gi".into();
    let slice = &mut objects.named("ResourceSlice", "slice-c30-n1")["spec"];
    let slots = json!({"slots": {"value": "1"}});
    slice["sharedCounters"] = json!([{"name": "set", "counters": slots}]);
    slice["devices"][0]["consumesCounters"] = json!([{"counterSet": "set", "counters": slots}]);
    let mut second = slice["devices"][0].clone();
    second["name"] = "gpu-1".into();
    let plan = objects.answer(EVICT_INFER, DONE).await;
    assert_eq!(of_pod(&plan, "infer", "landingNode"), "c30-n1", "{plan:#}");
    share_of(&mut objects, "ext")["consumedCapacity"]["memory"] = "40Gi".into();
    share_of(&mut objects, "train-8d4fcbc7b-cqz7k")["consumedCapacity"]["memory"] = "40Gi".into();
    let devices = &mut objects.named("ResourceSlice", "slice-c30-n1")["spec"]["devices"];
    devices.as_array_mut().expect("devices").push(second);
    let plan = objects.answer(EVICT_INFER, DONE).await;
    assert_eq!(of_pod(&plan, "infer", "outcome"), "pending", "the other device needs the slot: {plan:#}");
}

/// Upstream of 1.37, `structured/internal/incubating/constraint.go` `distinctAttributeConstraint`.
#[tokio::test]
async fn requests_of_a_claim_share_a_device_unless_a_constraint_keeps_them_apart() {
    let mut template = claim_template("gpu", 1);
    let devices = &mut template["spec"]["spec"]["devices"];
    let mut second = devices["requests"][0].clone();
    second["name"] = "second".into();
    devices["requests"].as_array_mut().expect("requests").push(second);
    let mut apart = template.clone();
    apart["spec"]["spec"]["devices"]["constraints"] = json!([{"distinctAttribute": "gpu.example.com/slot"}]);
    for (template, outcome) in [(template, "moves"), (apart, "pending")] {
        let mut objects = with_shares();
        objects.0.push(template);
        let plan = objects.answer(EVICT_INFER, DONE).await;
        assert_eq!(of_pod(&plan, "infer", "outcome"), outcome, "{plan:#}");
    }
}

/// Upstream of 1.37 compares lists only with `DRAListTypeAttributes`, which is off by default (`matchAttributeConstraint`
/// of `structured/internal/experimental/allocator_experimental.go`).
#[tokio::test]
async fn lists_in_the_attribute_of_a_constraint_leave_the_placement_open() {
    let mut template = claim_template("gpu", 2);
    template["spec"]["spec"]["devices"]["constraints"] = json!([{"matchAttribute": "gpu.example.com/links"}]);
    for (first, second, outcome) in [
        (json!({"string": "a"}), json!({"string": "a"}), "moves"),
        (json!({"string": "a"}), json!({"string": "b"}), "pending"),
        (json!({"strings": ["a", "b"]}), json!({"strings": ["b", "c"]}), "unknown"),
        (json!({"strings": ["a", "b"]}), json!({"string": "a"}), "unknown"),
    ] {
        let mut objects = Objects::of(CLAIMS);
        objects.0.push(template.clone());
        for node in ["c30-n2", "c30-n3"] {
            objects.without("ResourceSlice", &format!("slice-{node}"));
        }
        let device = |name: &str, links: &Value| json!({"name": name, "attributes": {"links": links}});
        objects.named("ResourceSlice", "slice-c30-n1")["spec"]["devices"] =
            json!([device("new-0", &first), device("new-1", &second)]);
        let plan = objects.answer(EVICT_INFER, DONE).await;
        assert_eq!(of_pod(&plan, "infer", "outcome"), outcome, "{first} and {second}: {plan:#}");
        let says_why = of_pod(&plan, "infer", "outcomeText").contains("attribute gpu.example.com/links");
        assert_eq!(says_why, outcome == "unknown", "{plan:#}");
    }
}

/// `DRAConsumableCapacity` is on by default from 1.36 on (`pkg/features/kube_features.go`).
#[tokio::test]
async fn releases_before_1_36_leave_the_placement_on_shared_devices_open() {
    for (release, outcome) in [("v1.35.2", "unknown"), ("v1.36.3", "moves")] {
        let mut objects = with_shares();
        objects.0.push(claim_template("gpu", 1));
        for node in ["c30-n1", "c30-n2", "c30-n3"] {
            objects.named("Node", node)["status"]["nodeInfo"]["kubeletVersion"] = release.into();
        }
        let plan = objects.answer(EVICT_INFER, DONE).await;
        assert_eq!(of_pod(&plan, "infer", "outcome"), outcome, "{release}: {plan:#}");
    }
}

#[tokio::test]
async fn the_list_of_nodes_has_devices_that_no_pod_needs() {
    let mut objects = Objects::of(CLAIMS);
    objects.0.retain(|object| ["Node", "ResourceSlice"].iter().any(|kind| object["kind"] == *kind));
    let nodes = objects.answer("nodes", DONE).await;
    assert_eq!(nodes["nodes"][0]["devices"][0]["published"], 2, "{nodes:#}");
    objects.without("ResourceSlice", "slice");
    let nodes = objects.answer("nodes", DONE).await;
    assert_eq!(nodes["nodes"][0]["devices"], json!([]), "there are none: {nodes:#}");
}

#[tokio::test]
async fn devices_are_read_for_the_template_of_a_workload_too() {
    let mut objects = Objects::of(CLAIMS);
    for other in ["train", "ext"] {
        ["Pod", "ReplicaSet", "Deployment", "ResourceClaim"]
            .into_iter()
            .for_each(|kind| objects.without(kind, other));
    }
    objects.without("ResourceClaim", "infer");
    objects.named("Pod", "infer")["spec"].as_object_mut().expect("a spec").remove("resourceClaims");
    objects.0.push(claim_template("gpu", 1));
    let plan = objects.answer(EVICT_INFER, DONE).await;
    assert_eq!(of_pod(&plan, "infer", "outcome"), "moves", "{plan:#}");
}

/// Upstream of 1.36, `pkg/controller/resourceclaim/controller.go` `syncClaim`: the allocation of a claim is cleared
/// when its last pod is gone. Until then, pods of the claim can run only on the node with the allocated devices.
#[tokio::test]
async fn the_devices_of_a_claim_are_free_once_its_last_pod_is_gone() {
    let plan = with_shared_claim().answer("plan drain c30-n3", DONE).await;
    for pod in ["infer-7", "infer-second"] {
        assert_eq!(of_pod(&plan, pod, "landingNode"), of_pod(&plan, "infer-7", "landingNode"), "{plan:#}");
        assert_eq!(of_pod(&plan, pod, "outcome"), "moves", "{plan:#}");
    }
    let pods = plan["pods"].as_array().expect("pods").iter();
    for pod in pods.filter(|pod| pod["pod"].as_str().is_some_and(|name| name.starts_with("infer"))) {
        let (gone, ready) = (&pod["deleted"]["likelySeconds"], &pod["readyAgainInSeconds"]);
        assert!(ready.as_f64() > gone.as_f64(), "{pod:#}");
    }
    let removed = with_shared_claim().answer("forecast --remove c30-n3", DONE).await;
    let landings = removed["replacements"].as_array().expect("replacements").iter();
    let mut infer = landings.filter(|new| new["pod"].as_str().is_some_and(|name| name.starts_with("infer")));
    assert!(infer.all(|new| new["landing"] == "node"), "{removed:#}");
}

/// Upstream of 1.36, `noderesources/fit.go`: if a node has none of the resource, the resource is left to
/// DynamicResources for that node.
#[tokio::test]
async fn devices_stand_for_a_resource_on_the_nodes_that_do_not_have_it_themselves() {
    let mut objects = Objects::of(CLAIMS);
    for pod in ["train", "infer"] {
        objects.without("Pod", pod);
        objects.without("ResourceClaim", pod);
    }
    let allocatable = &mut objects.named("Node", "c30-n2")["status"]["allocatable"];
    allocatable["example.com/gpu"] = "1".into();
    allocatable["pods"] = "0".into();
    let plan = objects.answer("plan drain c30-n1", DONE).await;
    assert_eq!(of_pod(&plan, "ext", "landingNode"), "c30-n3", "{plan:#}");
}

#[tokio::test]
async fn unknown_slices_leave_the_placement_open() {
    let mut objects = Objects::of(CLAIMS);
    objects.without("ResourceSlice", "slice");
    let shell = Shell::new();
    let file = shell.file("objects.json", &objects.list());
    let output = shell.run(&["plan", "drain", "c30-n1", "--from", &file, "-o", "json"]).await;
    let plan = output.json();
    assert_eq!(of_pod(&plan, "ext", "outcome"), "unknown", "{plan:#}");
}

/// Most clusters have no DeviceTaintRules, and releases before 1.37 do not serve them by default.
#[tokio::test]
async fn unknown_taint_rules_leave_no_placement_open() {
    let plan = Objects::of(CLAIMS).partial(&["plan", "drain", "c30-n1", "-o", "json"]).await;
    let ext = &plan["pods"][0];
    assert_eq!(ext["verdict"], "undecided", "the files have no budgets: {plan:#}");
    assert_eq!(ext["ifItLeaves"]["outcome"], "moves", "{ext:#}");
    assert_eq!(ext["ifItLeaves"]["landingNode"], "c30-n2", "{ext:#}");
    assert!(ext["placement"]["caveats"].to_string().contains("deviceRules"), "{ext:#}");
}

#[tokio::test]
async fn a_rule_without_an_effect_shows_what_it_would_do() {
    let forecast = Objects::of(TAINTS).answer("forecast", DONE).await;
    let preview = json!([{"rule": "broken", "selectsAll": true, "publishedDevices": 2, "allocatedDevices": 2,
        "pods": 2, "namespaces": 1}]);
    assert_eq!(forecast["taintRulePreviews"], preview);
    assert_eq!(forecast["totals"]["deleted"], 0, "{:#}", forecast["totals"]);
    let status = Objects::of(TAINTS).answer("status", DONE).await;
    let verdict = status["verdict"].to_string();
    assert!(
        verdict.contains("DeviceTaintRule broken is a preview: with NoExecute it would delete 2 pods"),
        "{verdict}"
    );
}

/// Returns the pods that are deleted in a forecast, each with the seconds until its deletion.
fn deleted(forecast: &Value) -> Vec<(String, f64)> {
    let steps = forecast["steps"].as_array().expect("steps").iter();
    let deleted = steps.filter(|step| step["type"] == "delete").map(|step| {
        let pod = step["pod"].as_str().expect("a pod").to_owned();
        (pod, step["inSeconds"].as_f64().expect("a time"))
    });
    deleted.collect()
}

#[tokio::test]
async fn a_rule_deletes_the_pods_that_have_the_device_that_it_selects() {
    let mut objects = Objects::of(TAINTS);
    let rule = objects.named("DeviceTaintRule", "broken");
    rule["spec"]["taint"]["effect"] = "NoExecute".into();
    rule["spec"]["deviceSelector"] =
        json!({"driver": "gpu.example.com", "pool": "c30r-n1", "device": "gpu-0"});
    let forecast = objects.answer("forecast", DONE).await;
    assert_eq!(deleted(&forecast), [("train-cd4958b9-w5bkd".into(), 0.0)]);
    let why = forecast["steps"][0]["why"].as_str().expect("a reason");
    assert!(why.contains("DeviceTaintRule broken") && why.contains("not tolerated"), "{why}");
    let explained = objects.answer("why pod train-cd4958b9-w5bkd -n c30r", DONE).await["steps"].to_string();
    assert!(explained.contains("DeviceTaintRule broken"), "{explained}");
    assert_eq!(forecast["totals"]["deleted"], 1, "an eviction that is overdue has not happened");
    let status = objects.answer("status", DONE).await;
    let evictions = status["evictions"].as_array().expect("evictions");
    assert_eq!(evictions.len(), 1, "{evictions:#?}");
    assert_eq!(evictions[0]["pod"], "train-cd4958b9-w5bkd");
    assert!(
        verdict(&status).contains("(device taint example.com/broken by DeviceTaintRule broken)"),
        "{status:#}"
    );
    let of_node = objects.answer("why node c30r-n1", DONE).await["steps"].to_string();
    assert!(of_node.contains("1 pod is evicted") && of_node.contains("DeviceTaintRule broken"), "{of_node}");
}

/// The new pod of the DaemonSet is bound to the node of the old pod, although the only device of this node is tainted.
/// The DaemonSet controller and the scheduler of 1.37.1 behave in this way (`dev-rule-daemon-set` in
/// tests/e2e/kinds/devices.yaml).
#[tokio::test]
async fn the_pod_of_a_daemon_set_stays_pending_while_its_device_is_tainted() {
    let mut objects = Objects::of(TAINTS);
    objects.without("Deployment", "train");
    let set = objects.named("ReplicaSet", "train-cd4958b9");
    set["kind"] = "DaemonSet".into();
    let pods = [("train-cd4958b9-w5bkd", "c30r-n1"), ("train-cd4958b9-8kgxk", "c30r-n2")];
    for (name, node) in pods {
        let pod = objects.named("Pod", name);
        pod["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet".into();
        let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
        pod["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchFields": [field]}]}}});
    }
    let rule = objects.named("DeviceTaintRule", "broken");
    rule["spec"]["taint"]["effect"] = "NoExecute".into();
    rule["spec"]["deviceSelector"] = json!({"driver": "gpu.example.com", "pool": "c30r-n1"});
    let forecast = objects.answer("forecast", DONE).await;
    let replacements = forecast["replacements"].as_array().expect("replacements").iter();
    let outcomes: Vec<(&str, &str)> = replacements
        .map(|pod| (pod["pod"].as_str().expect("a name"), pod["outcome"].as_str().expect("a word")))
        .collect();
    assert_eq!(outcomes, [("train-cd4958b9-w5bkd", "pending")], "{forecast:#}");
}

#[tokio::test]
async fn a_taint_of_a_slice_deletes_pods_when_their_toleration_ends() {
    let mut objects = Objects::of(TAINTS);
    objects.without("DeviceTaintRule", "broken");
    let taint =
        json!([{"key": "example.com/hot", "effect": "NoExecute", "timeAdded": "2026-11-27T17:23:42Z"}]);
    objects.named("ResourceSlice", "slice-c30r-n2")["spec"]["devices"][0]["taints"] = taint;
    let at = objects.answer("forecast", DONE).await;
    assert_eq!(deleted(&at).len(), 1, "not tolerated: {:#}", at["steps"]);
    let toleration = json!([{"key": "example.com/hot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]);
    let claim = objects.named("ResourceClaim", "train-cd4958b9-8kgxk");
    claim["status"]["allocation"]["devices"]["results"][0]["tolerations"] = toleration;
    let forecast = objects.answer("forecast", DONE).await;
    let [(pod, seconds)] = &deleted(&forecast)[..] else { panic!("{forecast:#}") };
    assert_eq!(pod, "train-cd4958b9-8kgxk");
    assert!((290.0..=301.0).contains(seconds), "{seconds}");
    let claim = objects.named("ResourceClaim", "train-cd4958b9-8kgxk");
    let tolerations = &mut claim["status"]["allocation"]["devices"]["results"][0]["tolerations"];
    tolerations[0].as_object_mut().expect("a toleration").remove("tolerationSeconds");
    let forecast = objects.answer("forecast", DONE).await;
    assert_eq!(deleted(&forecast), [], "tolerated for ever");
}

/// The scheduler allocates a tainted device to a claim that tolerates its key, even if the toleration names another
/// effect. The controller counts only tolerations whose effect is NoExecute, from the time of the taint on (upstream
/// `pkg/controller/devicetainteviction`, 1.37).
#[tokio::test]
async fn a_pod_that_a_device_taint_evicts_again_and_again_is_a_loop() {
    let status = Objects::of("device-taint-tolerated").answer("status --at 2026-11-29T10:00:00Z", DONE).await;
    let verdict = status["verdict"].to_string();
    let looping = "pods of a are evicted from n1 (device taint eviction) and come back: without a pause";
    assert!(verdict.contains(looping), "{verdict}");
}
