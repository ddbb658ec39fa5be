//! The lists, their columns and the zone map.

use kordon::{app::Pane, ui::snapshot};
use kordon_core::pressure::UsageMetric;

use super::{SIZES, drawn, expect};
use crate::{
    cells::{add_gpus, choose},
    dashboard_fixture::DashboardFixture,
    event_list::show_events,
};

#[test]
fn pods_that_wait_for_a_node_are_listed_with_what_would_help() {
    let mut fixture = DashboardFixture::incident();
    fixture.add_waiting_pods();
    fixture.press("6");
    expect(&mut fixture, "pending", (80, 24));
    expect(&mut fixture, "pending", (160, 48));
}

#[test]
fn tabs_have_their_names_where_the_line_has_room_and_a_count_is_no_number_of_a_tab() {
    let mut fixture = DashboardFixture::incident();
    fixture.add_waiting_pods();
    let tabs = |fixture: &mut DashboardFixture, size| {
        let screen = snapshot::plain(&drawn(fixture, size));
        screen.lines().find(|line| line.contains("3 Evictions")).expect("the tabs").to_owned()
    };
    fixture.press("3");
    let shown = tabs(&mut fixture, (80, 24));
    assert!(shown.contains(" 6 Pending 3  7  8  9 "), "{shown}");
    fixture.press("6");
    let shown = tabs(&mut fixture, (60, 24));
    assert!(!shown.contains("6 3"), "{shown}");
    fixture.press("3");
    fixture.press("6");
    let shown = tabs(&mut fixture, (120, 40));
    assert!(shown.contains("[6 Pending 3] 7 Departures  8 Budgets  9 "), "{shown}");
}

#[test]
fn the_audit_lists_causes_with_what_would_help() {
    let mut fixture = DashboardFixture::maintenance();
    fixture.press("9");
    fixture.run(1);
    expect(&mut fixture, "audit", (80, 24));
    expect(&mut fixture, "audit", (160, 48));
    fixture.press("z");
    expect(&mut fixture, "audit-whole", (220, 60));
}

#[test]
fn budgets_are_listed_with_the_drains_that_they_hold_up() {
    let mut fixture = DashboardFixture::maintenance();
    fixture.press("8");
    expect(&mut fixture, "budgets", (80, 24));
    expect(&mut fixture, "budgets", (160, 48));
    fixture.press("z");
    expect(&mut fixture, "budgets-whole", (220, 60));
}

#[test]
fn pods_that_left_are_listed_with_who_removed_them_and_counted_by_kind() {
    let mut fixture = DashboardFixture::incident();
    fixture.remove_pods_in_every_way();
    fixture.press("7");
    for size in SIZES {
        expect(&mut fixture, "departures", size);
    }
    fixture.press("<Home>d");
    expect(&mut fixture, "departures-detail", (120, 40));
}

#[test]
fn departures_and_findings_are_sorted_by_their_columns() {
    let mut fixture = DashboardFixture::incident();
    fixture.remove_pods_in_every_way();
    fixture.press("7:sort pod<Enter>");
    fixture.run(1);
    let shown = &fixture.app.model.departures;
    let rows = fixture.app.screen.departures.list.keys().iter();
    let pods: Vec<String> = rows.filter_map(|id| Some(shown.entry(*id)?.pod.to_string())).collect();
    assert!(pods.len() > 2 && pods.is_sorted(), "{pods:?}");

    let mut fixture = DashboardFixture::maintenance();
    fixture.press("9");
    fixture.run(1);
    let findings = |fixture: &DashboardFixture| fixture.app.screen.audit.list.keys().to_vec();
    let by_cause = findings(&fixture);
    assert!(by_cause.len() > 1, "{by_cause:?}");
    fixture.press("S");
    fixture.run(1);
    assert!(findings(&fixture).iter().eq(by_cause.iter().rev()), "{by_cause:?}");
}

#[test]
fn every_outcome_of_an_eviction_is_shown_and_the_budgets_that_it_ignores() {
    let mut fixture = DashboardFixture::maintenance();
    fixture.fill("pool-a-01");
    fixture.silence("pool-a-01");
    fixture.run(35);
    fixture.press("3");
    expect(&mut fixture, "outcomes", (80, 24));
    expect(&mut fixture, "outcomes", (160, 48));
    fixture.press("z");
    expect(&mut fixture, "outcomes-whole", (220, 60));
}

#[test]
fn a_well_cluster_is_calm() {
    expect(&mut DashboardFixture::well(), "well", (120, 40));
}

#[test]
fn wide_shows_the_lesser_columns() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("w");
    expect(&mut fixture, "wide", (220, 60));
}

#[test]
fn taints_are_whole_where_their_column_has_room() {
    let mut fixture = DashboardFixture::incident();
    choose(&mut fixture, Pane::Nodes, &["name", "taints"]);
    let screen = snapshot::plain(&drawn(&mut fixture, (160, 48)));
    assert!(screen.contains("unreachable:NoExecute 55s, NoSchedule"), "{screen}");
}

#[test]
fn taints_are_whole_on_a_large_screen() {
    let mut fixture = DashboardFixture::incident();
    for keys in ["", "w"] {
        fixture.press(keys);
        let screen = snapshot::plain(&drawn(&mut fixture, (220, 60)));
        assert!(screen.contains("unreachable:NoExecute 55s, NoSchedule"), "{keys}: {screen}");
    }
}

#[test]
fn wide_shows_no_fewer_columns_at_any_width() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2z");
    let mut headings = |width: u16| -> Vec<String> {
        let screen = snapshot::plain(&drawn(&mut fixture, (width, 24)));
        fixture.press("w");
        let is_heading = |line: &&str| line.contains("  node ") && line.contains(" state ");
        let line = screen.lines().find(is_heading).unwrap_or_else(|| panic!("{screen}"));
        let titles = line.trim_matches(|it: char| it == '│' || it.is_whitespace()).split("  ");
        titles.map(str::trim).filter(|title| !title.is_empty()).map(str::to_owned).collect()
    };
    for width in (60..=320).step_by(4) {
        let (narrow, wide) = (headings(width), headings(width));
        assert!(wide.len() >= narrow.len(), "{width}: {narrow:?} {wide:?}");
        let may_go = ["renewals", "reason", "message"];
        let mut stays = narrow.iter().filter(|title| !may_go.contains(&title.as_str()));
        assert!(stays.all(|title| wide.contains(title)), "{width}: {narrow:?} {wide:?}");
    }
    for (width, titles) in [(160, &["taints", "cpu req", "cpu use"][..]), (200, &["mem req"])] {
        let [_, wide] = [width, width].map(&mut headings);
        for title in titles {
            assert!(wide.iter().any(|shown| shown == title), "{width}, {title}: {wide:?}");
        }
    }
}

#[test]
fn wide_shows_what_nodes_use_and_the_gpus_that_they_have() {
    let mut fixture = DashboardFixture::incident();
    let usage = |number: i64| UsageMetric {
        cpu_milli: 7910 * (17 + 23 * number % 80) / 100,
        memory_bytes: (29 << 30) / 100 * (30 + 7 * number % 66),
        measured: None,
    };
    // Only Ready nodes are measured, because the kubelets of nodes that are down no longer answer.
    let nodes = fixture.world.nodes().iter().filter(|node| node.is_ready()).map(|node| node.name.clone());
    let usage = nodes.zip((0..).map(usage)).collect();
    fixture.app.model.measurements.on_usage(Ok(usage), fixture.now);
    add_gpus(&mut fixture, "pool-c-04", "shop/web-11-h4wzd");
    fixture.press("w");
    expect(&mut fixture, "wide-usage", (220, 60));
}

#[test]
fn events_of_the_cluster_take_the_place_of_the_nodes() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2:events<Enter>");
    show_events(&mut fixture);
    fixture.press("j");
    for size in [(80, 24), (160, 48)] {
        expect(&mut fixture, "events", size);
    }
}

#[test]
fn columns_depend_on_the_size_of_the_screen_and_not_on_what_is_in_them() {
    let headings = |mut fixture: DashboardFixture, size| -> Vec<String> {
        let screen = snapshot::plain(&drawn(&mut fixture, size));
        let is_heading = |line: &&str| line.contains("  zone  ") || line.contains("  node  ");
        screen.lines().filter(is_heading).map(str::to_owned).collect()
    };
    for size in [(80, 24), (120, 40), (160, 48), (220, 60)] {
        let well = headings(DashboardFixture::well(), size);
        assert!(!well.is_empty());
        assert_eq!(headings(DashboardFixture::incident(), size)[..well.len()], well, "{size:?}");
    }
}

#[test]
fn a_table_that_is_cut_says_that_all_the_rest_is_ready() {
    let mut fixture = DashboardFixture::incident();
    let screen = snapshot::plain(&drawn(&mut fixture, (80, 24)));
    let is_row = |line: &&str| {
        line.contains(" pool-") && ["  a  ", "  b  ", "  c  "].iter().any(|zone| line.contains(zone))
    };
    let shown = screen.lines().filter(is_row).count();
    assert!(screen.contains(&format!("… {} more, all Ready", 30 - shown)), "{screen}");
    // Scrolled to its end, the list has no more rows below.
    fixture.press("2<End>");
    let screen = snapshot::plain(&drawn(&mut fixture, (80, 24)));
    assert!(!screen.contains("all Ready"), "{screen}");
    // If the list is sorted by name, the rows that do not fit are not all Ready.
    fixture.press("2<Home>ss");
    assert!(!snapshot::plain(&drawn(&mut fixture, (80, 24))).contains("more, all Ready"));
}

#[test]
fn a_zone_with_nodes_that_are_down_or_silent_does_not_look_calm() {
    let screen = snapshot::plain(&drawn(&mut DashboardFixture::incident(), (160, 48)));
    for (sign, zone, worst) in [("✖", "a", "Evicting"), ("✖", "b", "Evicting"), ("◌", "c", "Silent")] {
        let start = format!("{sign} eu-1/{zone} ");
        let line = screen.lines().find(|line| line.contains(&start));
        let line = line.unwrap_or_else(|| panic!("{start:?} in\n{screen}"));
        assert!(line.contains(&format!("Normal, {worst} ")), "the word has what the sign is of: {line}");
    }
}

#[test]
fn five_thousand_nodes_fit_a_zoomed_zone_map() {
    let mut fixture = DashboardFixture::new();
    for number in 0..5000 {
        fixture.add_node(&format!("n-{number:04}"), ["a", "b", "c"][number % 3]);
    }
    fixture.lists();
    fixture.app.refresh(fixture.now);
    fixture.press("1z");
    let screen = snapshot::plain(&drawn(&mut fixture, (220, 60)));
    let body = screen.lines().skip(3).flat_map(str::chars);
    assert_eq!(body.filter(|letter| *letter == '▪').count(), 5000, "{screen}");
    // On a small screen, a cell stands for several nodes.
    assert!(snapshot::plain(&drawn(&mut fixture, (80, 24))).contains('▪'));
}

#[test]
fn nodes_are_grouped_with_a_line_for_each_group_and_the_selection_stays_with_its_node() {
    let mut fixture = DashboardFixture::incident();
    drawn(&mut fixture, (160, 48));
    fixture.press("2jj");
    let selected = fixture.app.screen.selected_node().cloned().expect("a node");
    fixture.press("G");
    assert_eq!(fixture.app.screen.selected_node(), Some(&selected));
    let screen = snapshot::plain(&drawn(&mut fixture, (160, 48)));
    assert!(screen.contains("▾ ✖ eu-1/a  10 nodes · 3 Evicting · 7 Ready · "), "{screen}");
    expect(&mut fixture, "grouped", (160, 48));
    fixture.press("F");
    assert_eq!(fixture.app.screen.nodes.list.len(), 3, "one line a group");
    assert_eq!(fixture.app.screen.nodes.list.selected().map(ToString::to_string).as_deref(), Some("eu-1/a"));
    fixture.press("<Space>");
    assert_eq!(fixture.app.screen.marked_nodes.len(), 10, "a group is marked as a whole");
    fixture.press("<Esc><Home><Enter>");
    assert_eq!(fixture.app.screen.nodes.list.len(), 13, "one is unfolded");
    fixture.press(":group node.kubernetes.io/instance-type<Enter>");
    assert_eq!(fixture.app.screen.nodes.list.keys()[0].to_string(), "m7i.2xlarge");
    fixture.change_node("pool-b-01", |node| {
        let pool = ("karpenter.sh/nodepool".into(), "blue".into());
        node.labels = node.labels.entries().iter().cloned().chain([pool]).collect();
    });
    fixture.run(0);
    fixture.press(":group pool<Enter>");
    let rows = fixture.app.screen.nodes.list.keys().iter();
    let mut groups: Vec<String> = rows.filter(|row| row.node().is_none()).map(ToString::to_string).collect();
    groups.sort();
    assert_eq!(groups, ["blue", "no pool"]);
    fixture.press(":group<Enter>");
    assert_eq!(fixture.app.screen.nodes.list.len(), 30);
}

#[test]
fn the_pods_of_a_node_take_the_place_of_the_nodes() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2<Enter>");
    assert_eq!(fixture.app.screen.focus, Pane::Pods);
    expect(&mut fixture, "pods", (120, 40));
    fixture.press("<Esc>");
    assert_eq!((fixture.app.screen.focus, fixture.app.screen.pods_of.clone()), (Pane::Nodes, None));
}
