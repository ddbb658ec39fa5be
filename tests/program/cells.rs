//! The texts of cells of nodes and pods, and the labels by which they are filtered.

use std::{collections::BTreeMap, sync::Arc};

use kordon::{
    app::{ChosenColumn, Pane, PaneColumns},
    k8s::feed::{FeedKind, FeedState},
    ui::shown_rows,
};
use kordon_core::{
    cluster::{
        Change, DeviceChange, Key, LocalVolume, Name, Node, ObjectEvent, Owner, OwnerKind, PodEnding,
        Requests, ResourceClaim, ResourceSlice, Uid, Version,
        device::{AllocatedDevice, Device, DeviceAllocation, DeviceId, DeviceNodes},
    },
    pressure::UsageMetric,
};

use crate::dashboard_fixture::{DashboardFixture, Withheld};

/// Returns the cell of a row, by a text in the row and the heading of the column.
fn cell(fixture: &DashboardFixture, row: &str, head: &str) -> String {
    let shown = shown_rows(&fixture.app, fixture.now);
    let place = shown.heads.iter().position(|found| found == head);
    let place = place.unwrap_or_else(|| panic!("{head} is not among {:?}", shown.heads));
    let is_row = |cells: &&Vec<String>| cells.first().is_some_and(|cell| cell.contains(row));
    let cells = shown.rows.iter().find(is_row).unwrap_or_else(|| panic!("no row of {row}: {:?}", shown.rows));
    cells[place].trim().to_owned()
}

/// Shows these columns of a pane.
pub fn choose(fixture: &mut DashboardFixture, pane: Pane, columns: &[&str]) {
    let chosen = columns.iter().map(|text| ChosenColumn::parse(pane, text).expect("a column"));
    let columns = PaneColumns { show: chosen.collect(), ..PaneColumns::default() };
    fixture.app.preferences.columns.insert(pane, columns);
}

/// Gives a node GPUs of a device plugin, and a pod on it that requests some.
pub fn add_gpus(fixture: &mut DashboardFixture, node: &str, pod: &str) {
    fixture.change_node(node, |node: &mut Node| {
        let amounts: [(Name, i64); 2] = [("nvidia.com/gpu".into(), 8), ("hugepages-2Mi".into(), 64)];
        node.extended = amounts.into();
    });
    fixture.change_pod(pod, |pod| {
        let scalars = [("nvidia.com/gpu".into(), 3)].into();
        pod.resources = Arc::new(Requests { scalars, ..pod.resources.requests.clone() }.into());
    });
    fixture.run(1);
}

/// Publishes four devices of a node, and lists claims that have one of them. If claims are unknown, lists no claims.
pub fn add_devices(fixture: &mut DashboardFixture, node: &str, knows_claims: bool) {
    let driver = || Name::from("gpu.example.com");
    let device = |number: usize| Device { name: format!("g{number}").into(), ..Device::default() };
    let slice = ResourceSlice {
        name: "slice".into(),
        version: Version(1),
        driver: driver(),
        pool: node.into(),
        slices_in_pool: 1,
        nodes: DeviceNodes::Node(node.into()),
        devices: (0..4).map(device).collect(),
        ..ResourceSlice::default()
    };
    let slices = [ObjectEvent::ListStarted, ObjectEvent::Listed(slice), ObjectEvent::ListDone];
    slices.into_iter().for_each(|event| fixture.put(Change::Device(DeviceChange::Slice(event))));
    if !knows_claims {
        return fixture.run(1);
    }
    let id = DeviceId { driver: driver(), pool: node.into(), device: "g2".into() };
    let devices = [AllocatedDevice { id, ..AllocatedDevice::default() }].into();
    let allocation = Some(DeviceAllocation { devices, nodes: None });
    let key = Key::new("ml", "train");
    let claim = ResourceClaim { key, version: Version(1), allocation, ..ResourceClaim::default() };
    let claims = [ObjectEvent::ListStarted, ObjectEvent::Listed(claim), ObjectEvent::ListDone];
    claims.into_iter().for_each(|event| fixture.put(Change::Device(DeviceChange::Claim(event))));
    fixture.run(1);
}

/// Gives a pod readiness gates that are not met.
pub fn add_gates(fixture: &mut DashboardFixture, pod: &str, gates: &[&str]) {
    let unmet_gates = gates.iter().map(|gate| Name::from(*gate)).collect();
    let ending = PodEnding { unmet_gates, ..PodEnding::default() };
    fixture.change_pod(pod, |pod| (pod.ending, pod.ready) = (Some(ending.into()), None));
    fixture.run(1);
}

#[test]
fn extended_resources_and_devices_have_columns_where_a_node_has_them() {
    let mut fixture = DashboardFixture::well();
    fixture.press("2w");
    let heads = |fixture: &DashboardFixture| shown_rows(&fixture.app, fixture.now).heads;
    let has = |fixture: &DashboardFixture, head: &str| heads(fixture).iter().any(|found| found == head);
    assert!(!has(&fixture, "extended") && !has(&fixture, "devices"), "{:?}", heads(&fixture));
    add_gpus(&mut fixture, "pool-a-01", "shop/web-00-h4wzd");
    assert_eq!(cell(&fixture, "pool-a-01", "extended"), "gpu 3/8", "huge pages are none");
    assert_eq!(cell(&fixture, "pool-b-01", "extended"), "–");
    assert!(!has(&fixture, "devices"), "nobody publishes devices");
    fixture.health(FeedKind::ResourceClaims, FeedState::Forbidden { error: "forbidden".into() });
    add_devices(&mut fixture, "pool-a-01", false);
    assert_eq!(cell(&fixture, "pool-a-01", "devices"), "gpu.example.com ?/4", "claims are not known");
    fixture.health(FeedKind::ResourceClaims, FeedState::Live);
    add_devices(&mut fixture, "pool-a-01", true);
    assert_eq!(cell(&fixture, "pool-a-01", "devices"), "gpu.example.com 1/4");
    assert_eq!(cell(&fixture, "pool-b-01", "devices"), "–");
    fixture.press("w");
    assert!(!has(&fixture, "extended") && !has(&fixture, "devices"), "{:?}", heads(&fixture));
    for filter in ["extended:nvidia.com/gpu", "devices=gpu.example.com", "dev<Tab>gpu", "devices=gp<Tab>"] {
        fixture.press(&format!("/<Ctrl-u>{filter}<Enter>"));
        assert_eq!(shown_rows(&fixture.app, fixture.now).rows.len(), 1, "{filter}");
    }
}

#[test]
fn what_is_not_known_of_extended_resources_and_devices_is_no_zero() {
    let mut fixture = DashboardFixture::new();
    let kinds = [FeedKind::Pods, FeedKind::ResourceSlices];
    fixture.withhold(kinds.map(|kind| (kind, Withheld::Forbidden)));
    fixture.add_node("n1", "a");
    fixture.lists();
    fixture.change_node("n1", |node| node.extended = [("nvidia.com/gpu".into(), 8)].into());
    fixture.run(1);
    choose(&mut fixture, Pane::Nodes, &["name", "extended", "devices"]);
    assert_eq!(cell(&fixture, "n1", "extended"), "gpu ?/8");
    assert_eq!(cell(&fixture, "n1", "devices"), "?");
}

#[test]
fn the_usage_of_nodes_is_a_share_of_what_is_allocatable() {
    let mut fixture = DashboardFixture::well();
    let usage = UsageMetric { cpu_milli: 3955, memory_bytes: 29 << 28, measured: None };
    let usage = BTreeMap::from([("pool-a-01".into(), usage)]);
    fixture.app.model.measurements.on_usage(Ok(usage), fixture.now);
    choose(&mut fixture, Pane::Nodes, &["name", "cpu used", "mem used"]);
    let shown = shown_rows(&fixture.app, fixture.now);
    let row = |name: &str| shown.rows.iter().find(|row| row[0].contains(name)).expect("its row").clone();
    assert_eq!(row("pool-a-01")[1..], ["50%", "25%"]);
    assert_eq!(row("pool-a-02")[1..], ["–", "–"], "nothing is known of it");
    let count = |fixture: &mut DashboardFixture, filter: &str| {
        fixture.press(&format!("2/<Ctrl-u>{filter}<Enter>"));
        shown_rows(&fixture.app, fixture.now).rows.len()
    };
    assert_eq!((count(&mut fixture, "cpu-used>49%"), count(&mut fixture, "mem-used>26%")), (1, 0));
}

#[test]
fn what_a_column_shows_is_a_field_of_the_filter() {
    let mut fixture = DashboardFixture::incident();
    fixture.change_node("pool-c-02", |node| {
        (node.kernel_version, node.address) = ("6.12.9".into(), "10.7.0.2".into());
    });
    fixture.run(1);
    for (keys, filter, rows) in [
        ("2", "kernel=6.12.9", 1),
        ("2", "address:10.7.0", 1),
        ("2", "reason=KubeletNotReady", 1),
        ("2", "message:down", 1),
        ("2", "grace<<>1s zone=a", 3),
        ("2", "renewals>1m zone=a", 3),
        ("2", "next<<>5m zone=b", 1),
        ("2", "next<<>5m zone=c state=Ready", 0),
    ] {
        fixture.press(&format!("{keys}/<Ctrl-u>{filter}<Enter>"));
        assert_eq!(shown_rows(&fixture.app, fixture.now).rows.len(), rows, "{filter}");
    }
    let mut fixture = DashboardFixture::maintenance();
    fixture.press("8/room=now<Enter>");
    let rooms = shown_rows(&fixture.app, fixture.now).rows;
    assert!(!rooms.is_empty() && rooms.iter().all(|row| row[1].contains("may leave")), "{rooms:?}");
}

#[test]
fn the_whole_line_of_the_journal_is_searched() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("5");
    let lines = |fixture: &DashboardFixture| shown_rows(&fixture.app, fixture.now).rows;
    let with_word = lines(&fixture).iter().filter(|row| row[1].to_lowercase().contains("node")).count();
    assert!(with_word > 0);
    fixture.press("/node<Enter>");
    assert!(lines(&fixture).len() >= with_word, "{:?}", lines(&fixture));
}

#[test]
fn pods_of_a_node_say_their_class_and_the_data_that_stays_with_them() {
    let mut fixture = DashboardFixture::well();
    fixture.change_pod("kube-system/proxy-00-k9x", |pod| {
        let owner = Owner { kind: OwnerKind::Node, name: "pool-a-01".into(), uid: Uid::from("uid") };
        (pod.mirror, pod.owner) = (true, Some(owner.into()));
    });
    fixture.change_pod("shop/cart-00-x7f2q", |pod| {
        [LocalVolume::EmptyDir, LocalVolume::HostPath].into_iter().for_each(|kind| pod.storage.add(kind));
    });
    fixture.change_pod("shop/web-00-h4wzd", |pod| {
        pod.owner = None;
        pod.storage.add(LocalVolume::Memory);
    });
    fixture.change_pod("data/postgres-0", |pod| pod.storage.add(LocalVolume::Ephemeral));
    fixture.run(1);
    fixture.press("2/pool-a-01<Enter><Enter>");
    let cells = |pod: &str| (cell(&fixture, pod, "owner"), cell(&fixture, pod, "local data"));
    let expected = |owner: &str, data: &str| (owner.to_owned(), data.to_owned());
    assert_eq!(cells("proxy-00-k9x"), expected("static pod", ""));
    assert_eq!(cells("cart-00-x7f2q"), expected("ReplicaSet cart-00", "emptyDir, hostPath"));
    assert_eq!(cells("web-00-h4wzd"), expected("none", "emptyDir in memory"));
    assert_eq!(cells("postgres-0"), expected("StatefulSet postgres", "ephemeral volume"));
    assert_eq!(cells("report-00-7qk"), expected("Job report-00", ""));
}

#[test]
fn readiness_gates_that_are_not_met_are_named() {
    let mut fixture = DashboardFixture::well();
    fixture.press("2/pool-a-01<Enter><Enter>");
    let heads = shown_rows(&fixture.app, fixture.now).heads;
    assert!(!heads.iter().any(|head| head == "unmet gates"), "no pod waits for one: {heads:?}");
    add_gates(&mut fixture, "shop/web-00-h4wzd", &["lb.example.com/healthy", "example.com/live"]);
    let named = "lb.example.com/healthy, example.com/live";
    assert_eq!(cell(&fixture, "web-00-h4wzd", "unmet gates"), named);
    assert_eq!(cell(&fixture, "cart-00-x7f2q", "unmet gates"), "");
    assert_eq!(cell(&fixture, "web-00-h4wzd", "ready"), "no");
    fixture.press("/gate:healthy<Enter>");
    let shown = shown_rows(&fixture.app, fixture.now).rows;
    assert!(shown.len() == 1 && shown[0][0].contains("web-00-h4wzd"), "{shown:?}");
    fixture.press("<Enter>");
    let rows = &fixture.app.screen.overlays.detail().expect("the pod").rows;
    assert!(format!("{rows:?}").contains(named), "{rows:?}");
}

#[test]
fn labels_of_nodes_and_pods_are_fields_of_the_filter() {
    let mut fixture = DashboardFixture::maintenance();
    fixture.change_node("pool-c-02", |node| {
        let labels = node.labels.iter().map(|(key, value)| (key.clone(), value.clone()));
        node.labels = labels.chain([("example.com/rackName".into(), "R7-left".into())]).collect();
    });
    fixture.run(1);
    let names = |fixture: &mut DashboardFixture, filter: &str| -> Vec<String> {
        fixture.press(&format!("/<Ctrl-u>{filter}<Enter>"));
        let rows = shown_rows(&fixture.app, fixture.now).rows;
        rows.iter()
            .map(|row| row[0].trim_start_matches(|it: char| !it.is_ascii_lowercase()).to_owned())
            .collect()
    };
    fixture.press("2");
    for filter in ["example.com/rackname=r7-left", "example.com/rackName=R7-left", "example.com/rackName:R7"]
    {
        assert_eq!(names(&mut fixture, filter), ["pool-c-02"], "{filter}: case does not matter");
    }
    assert_eq!(names(&mut fixture, "example.com/rackName=*6*"), [""; 0]);
    assert_eq!(names(&mut fixture, "!example.com/rackName:R7 zone:c").len(), 9);
    fixture.press("<Esc>/pool-a-01<Enter><Enter>");
    let checkout = ["shop/checkout-5kd8x", "shop/checkout-9vbnm"];
    assert_eq!(names(&mut fixture, "app=checkout"), checkout);
    assert_eq!(names(&mut fixture, "app!=checkout app=postgres"), ["data/postgres-0"]);
}

#[test]
fn zones_are_filtered_by_any_of_their_names() {
    let mut fixture = DashboardFixture::well();
    let count = |fixture: &mut DashboardFixture, filter: &str| {
        fixture.press(&format!("/<Ctrl-u>{filter}<Enter>"));
        shown_rows(&fixture.app, fixture.now).rows.len()
    };
    for (pane, all, of_zone) in [("2", 30, 10), ("1", 3, 1)] {
        fixture.press(pane);
        for name in ["b", "eu-1/b"] {
            assert_eq!(count(&mut fixture, &format!("zone={name}")), of_zone, "{pane}: {name}");
            assert_eq!(count(&mut fixture, &format!("zone!={name}")), all - of_zone, "{pane}: {name}");
        }
        assert_eq!(count(&mut fixture, "zone=eu-1"), 0, "{pane}");
        fixture.press("<Esc>");
    }
    fixture.press("2");
    assert_eq!(count(&mut fixture, "roles:worker"), 30, "the heading is a name of the field too");
}

#[test]
fn the_detail_of_a_node_names_the_budgets_that_hold_it_and_the_pods_that_they_refuse() {
    let mut fixture = DashboardFixture::maintenance();
    let budgets = |fixture: &mut DashboardFixture, node: &str| -> Vec<String> {
        fixture.press(&format!("2/<Ctrl-u>{node}<Enter>d"));
        let rows = shown_rows(&fixture.app, fixture.now).rows;
        fixture.press("<Esc>");
        let line = |row: &Vec<String>| row.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        let rows: Vec<String> = rows.iter().map(line).collect();
        let title = rows.iter().position(|row| row.starts_with("budgets that hold it"));
        let is_budget = |row: &&String| row.contains(" · refuses ");
        title.map_or(Vec::new(), |title| rows[title + 1..].iter().take_while(is_budget).cloned().collect())
    };
    let held = budgets(&mut fixture, "pool-a-01");
    assert_eq!(held.len(), 1, "{held:?}");
    assert!(
        held[0].starts_with("data/postgres never") && held[0].ends_with("refuses postgres-0"),
        "{held:?}"
    );
    assert_eq!(budgets(&mut fixture, "pool-b-02"), [""; 0], "it has no pods of a budget");
}

#[test]
fn the_detail_of_a_budget_says_what_it_holds_up_and_what_would_help() {
    let mut fixture = DashboardFixture::maintenance();
    let detail = |fixture: &mut DashboardFixture, budget: &str| -> Vec<String> {
        fixture.press(&format!("8/<Ctrl-u>{budget}<Enter><Enter>"));
        fixture.work_out_detail();
        let rows = shown_rows(&fixture.app, fixture.now).rows;
        fixture.press("<Esc>");
        let line = |row: &Vec<String>| row.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        rows.iter().map(line).collect()
    };
    let has = |rows: &[String], starts: &str| {
        assert!(rows.iter().any(|row| row.starts_with(starts)), "{starts}: {rows:?}");
    };
    let postgres = detail(&mut fixture, "postgres");
    has(&postgres, "room never: needs 10 of 10; scale its workload up, or relax the budget");
    has(&postgres, "healthy 10, of which 10 must stay");
    has(&postgres, "rule minAvailable 10");
    has(&postgres, "selects app=postgres · 10 pods");
    has(&postgres, "blocks drains of 10 nodes: pool-a-01, ");
    has(&postgres, "scale up ");
    has(&postgres, "$ kubectl scale statefulset/postgres ");
    assert_eq!(postgres.iter().filter(|row| row.starts_with("refused ")).count(), 10, "{postgres:?}");
    let checkout = detail(&mut fixture, "checkout");
    has(&checkout, "room 1 pod may leave");
    has(&checkout, "blocks no drain");
    assert_eq!(checkout.iter().filter(|row| row.starts_with("Ready ")).count(), 3, "{checkout:?}");
    assert!(!checkout.iter().any(|row| row.starts_with("what you can do")), "{checkout:?}");
}
