//! A key acts on the row that was under the cursor before it, however the rows move, arrive and vanish between two keys.

use kordon::{
    app::{
        detail::DetailSubject,
        pane::Pane,
        preview::{PlanKind, Targets},
    },
    cluster::{Key, NodeName},
};

use crate::dashboard_fixture::DashboardFixture;

#[test]
fn esc_keeps_the_selected_node_when_a_filter_ends() {
    for keys in ["2/pool-b-09<Esc>", "2/pool-b-09<Enter><Esc>", "2/pool-b<Enter><Down><Down><Esc>"] {
        let mut fixture = DashboardFixture::incident();
        fixture.press(keys.strip_suffix("<Esc>").expect("it ends so"));
        let selected = fixture.app.screen.selected_node().cloned();
        assert!(selected.as_ref().is_some_and(|node| node.starts_with("pool-b")), "{keys}: {selected:?}");
        fixture.press("<Esc>");
        assert_eq!(fixture.app.screen.selected_node().cloned(), selected, "{keys}");
        assert!(fixture.app.screen.nodes.list.len() > 20, "{keys}: the filter has ended");
    }
}

#[test]
fn a_filter_that_excludes_the_selected_node_selects_the_first_that_passes() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2<End>/pool-b-02");
    assert_eq!(fixture.app.screen.selected_node(), Some(&NodeName::from("pool-b-02")));
}

#[test]
fn the_first_key_acts_on_what_was_drawn_at_the_top() {
    let mut fixture = DashboardFixture::well();
    let top = fixture.app.screen.selected_node().cloned().expect("a node");
    fixture.app.screen.drawn(&[(Pane::Nodes, 10)].into());
    fixture.change_node("pool-c-09", |node| node.unschedulable = true);
    fixture.run(1);
    assert_ne!(
        fixture.app.screen.selected_node(),
        Some(&top),
        "nobody uses it: the most urgent is at the top"
    );
    fixture.press("c");
    assert_eq!(planned_nodes(&fixture), [top]);
}

#[test]
fn a_key_on_a_node_that_is_gone_says_so_and_does_nothing() {
    for key in ["c", "r", "t", "l", "d", "<Enter>", "<Space>"] {
        let mut fixture = DashboardFixture::well();
        fixture.press("2/pool-b-02<Enter><Esc>");
        fixture.remove_node("pool-b-02");
        fixture.run(1);
        fixture.press(key);
        assert_eq!(
            fixture.app.screen.message.as_deref(),
            Some("the selected row is gone: select another"),
            "{key}"
        );
        let screen = &fixture.app.screen;
        assert!(screen.overlays.view().is_none() && screen.pods_of.is_none(), "{key}");
        assert!(screen.marked_nodes.is_empty(), "{key}");
        // The next move selects a row next to it.
        fixture.press("jc");
        assert_eq!(planned_nodes(&fixture).len(), 1, "{key}");
    }
}

/// Panes, how they are focused, and the keys that act on their selected row.
const ACTING: &[(Pane, &str, &[&str])] = &[
    (Pane::Nodes, "2", &["c", "r", "x", "d", "<Enter>", "<Space>"]),
    (Pane::Pods, "2/pool-a-03<Enter><Enter>", &["e", "<Del>", "d", "<Space>"]),
    (Pane::Evictions, "3", &["e", "d", "<Enter>"]),
    (Pane::Pending, "6", &["d"]),
    (Pane::Departures, "7", &["d", "<Enter>"]),
    (Pane::Forecast, "4", &["x", "d", "<Enter>"]),
    (Pane::Zones, "1", &["x", "<Enter>"]),
    (Pane::Plan, "2/pool-a-01<Enter>r", &["d"]),
];

#[test]
fn no_key_acts_on_another_row_than_the_one_under_the_cursor() {
    let mut acted = 0;
    for seed in 0..6 {
        for (pane, focus, keys) in ACTING {
            for key in *keys {
                let mut chance = fastrand::Rng::with_seed(seed);
                let mut fixture = match pane {
                    Pane::Plan => DashboardFixture::maintenance(),
                    _ => DashboardFixture::incident(),
                };
                fixture.add_waiting_pods();
                fixture.press(focus);
                if *pane == Pane::Nodes && chance.bool() {
                    // By name: a new node comes first.
                    fixture.press("s");
                }
                for _ in 0..chance.usize(..4) {
                    fixture.press(["j", "j", "k", "<End>", "<PgDn>"][chance.usize(..5)]);
                }
                let chosen = under_cursor(&fixture, *pane);
                disturb(&mut fixture, &mut chance, chosen.as_deref());
                let reported = format!("seed {seed}, {pane:?}, {key}, chosen {chosen:?}");
                let still = under_cursor(&fixture, *pane);
                assert!(still.is_none() || still == chosen, "{reported}: now {still:?}");
                fixture.press(key);
                if let Some(object) = acted_on(&fixture, *pane) {
                    assert_eq!(Some(object), chosen, "{reported}");
                    acted += 1;
                }
            }
        }
    }
    assert!(acted > 60, "only {acted} keys acted: that shows little");
}

/// Rows move, arrive and vanish, the chosen one too.
fn disturb(fixture: &mut DashboardFixture, chance: &mut fastrand::Rng, chosen: Option<&str>) {
    for round in 0..1 + chance.usize(..3) {
        let node = format!("pool-{}-0{}", ["a", "b", "c"][chance.usize(..3)], 1 + chance.usize(..9));
        match chance.usize(..6) {
            0 => fixture.change_node(&node, |node| node.unschedulable = !node.unschedulable),
            1 | 2 => fixture.add_node(&format!("a-new-{round}"), "a"),
            5 => fixture.reap(),
            3 => {
                let of_node = fixture.app.model.cluster.pods_on(&node.as_str().into()).next().cloned();
                if let Some(pod) = of_node {
                    fixture.terminate(&pod.key.to_string(), &[]);
                }
            }
            _ => {}
        }
        fixture.run(1 + chance.i64(..20));
        fixture.plan();
    }
    if chance.bool() {
        let gone = format!("pool-{}-0{}", ["a", "b", "c"][chance.usize(..3)], 1 + chance.usize(..9));
        let chosen = chosen.filter(|name| chance.bool() && name.starts_with("pool-"));
        fixture.remove_node(chosen.unwrap_or(&gone));
        fixture.run(1);
        fixture.plan();
    }
}

/// A node, a pod or a zone, as it is named on screen.
fn under_cursor(fixture: &DashboardFixture, pane: Pane) -> Option<String> {
    let screen = &fixture.app.screen;
    match pane {
        Pane::Nodes => screen.nodes.list.selected().map(ToString::to_string),
        Pane::Pods => screen.pods.list.selected().map(ToString::to_string),
        Pane::Evictions => screen.evictions.list.selected().map(ToString::to_string),
        Pane::Pending => screen.pending.selected().map(ToString::to_string),
        Pane::Departures => {
            let entry = fixture.app.model.departures.entry(*screen.departures.selected()?)?;
            Some(entry.pod.to_string())
        }
        Pane::Forecast => screen.forecast.node().map(ToString::to_string),
        Pane::Zones => screen.zones.list.selected().map(ToString::to_string),
        Pane::Plan => screen.overlays.plan()?.selected_pod().map(|pod| pod.to_string()),
        Pane::Detail | Pane::Progress | Pane::Journal => None,
    }
}

/// What the last key acted on; none if it did nothing.
fn acted_on(fixture: &DashboardFixture, pane: Pane) -> Option<String> {
    let screen = &fixture.app.screen;
    if let Some(detail) = screen.overlays.detail() {
        return Some(match &detail.subject {
            DetailSubject::Node(node) => node.to_string(),
            DetailSubject::Pod(pod) => pod.to_string(),
        });
    }
    if let Some(plan) = screen.overlays.plan().filter(|_| pane != Pane::Plan) {
        return Some(match &plan.request.targets {
            Targets::Nodes(nodes) if plan.request.kind == PlanKind::Failure && pane == Pane::Zones => {
                fixture.app.model.cluster.node(&nodes[0]).expect("a node").zone().to_string()
            }
            // A lane may be of several nodes.
            Targets::Nodes(nodes) if pane == Pane::Forecast => {
                let node = screen.forecast.node().expect("a lane");
                assert!(nodes.contains(node));
                node.to_string()
            }
            Targets::Nodes(nodes) => one(nodes).to_string(),
            Targets::Pods(pods) => one::<Key>(pods).to_string(),
        });
    }
    let marked = screen.marked_nodes.first().map(ToString::to_string);
    let marked = marked.or_else(|| screen.marked_pods.first().map(ToString::to_string));
    match pane {
        Pane::Nodes | Pane::Forecast => marked.or_else(|| screen.pods_of.as_ref().map(ToString::to_string)),
        // Enter shows the pod among those of its node.
        Pane::Evictions => screen.pods_of.as_ref().and(screen.pods.list.selected()).map(ToString::to_string),
        Pane::Zones if screen.focus == Pane::Nodes => {
            let first = screen.nodes.list.keys().first()?.node()?;
            Some(fixture.app.model.cluster.node(first)?.zone().to_string())
        }
        _ => marked,
    }
}

fn one<T>(all: &[T]) -> &T {
    assert_eq!(all.len(), 1);
    &all[0]
}

fn planned_nodes(fixture: &DashboardFixture) -> Vec<NodeName> {
    match &fixture.app.screen.overlays.plan().expect("a plan").request.targets {
        Targets::Nodes(nodes) => nodes.clone(),
        Targets::Pods(_) => Vec::new(),
    }
}

#[test]
fn every_plan_begins_with_the_defaults_but_for_daemonsets() {
    let mut fixture = DashboardFixture::maintenance();
    fixture.press("2/pool-a-01<Enter>rDEFBNN");
    let options = |fixture: &DashboardFixture| {
        let drain = fixture.app.screen.overlays.plan().expect("a plan").request.drain.clone();
        let flags = (drain.force, drain.delete_emptydir_data, drain.disable_eviction);
        (drain.ignore_daemonsets, flags, drain.grace.is_some(), drain.parallel)
    };
    let (daemonsets, flags, ..) = options(&fixture);
    assert!(daemonsets && flags.0 && flags.1, "they are on");
    fixture.press("<Esc>r");
    assert_eq!(options(&fixture), (true, (false, false, false), false, 0));
    fixture.press("D<Esc>r");
    assert!(!options(&fixture).0, "it is remembered that it is off, too");
}
