//! What the cells of nodes and pods say, and by which labels these are filtered.

use std::collections::BTreeMap;

use kordon::{
    app::{ChosenColumn, Pane},
    ui::shown_rows,
};
use kordon_core::{
    cluster::{LocalVolume, Owner, OwnerKind, Uid},
    pressure::UsageMetric,
};

use crate::dashboard_fixture::DashboardFixture;

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
fn choose(fixture: &mut DashboardFixture, pane: Pane, columns: &[&str]) {
    let chosen = columns.iter().map(|text| ChosenColumn::parse(pane, text).expect("a column"));
    fixture.app.preferences.columns.insert(pane, chosen.collect());
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
    assert!(held[0].starts_with("postgres never") && held[0].ends_with("refuses postgres-0"), "{held:?}");
    assert_eq!(budgets(&mut fixture, "pool-b-02"), [""; 0], "it has no pods of a budget");
}
