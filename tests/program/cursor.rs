//! A key acts on the row that was under the cursor before the key was pressed, even if rows move, arrive and vanish
//! between two keys.

use kordon::{
    app::{
        detail::DetailSubject,
        pane::{InputTarget, KeyFocus, Pane},
        preview::{PlanKind, Targets},
    },
    model::JournalSubject,
};
use kordon_core::cluster::{Key, NodeName};

use crate::{
    dashboard_fixture::DashboardFixture,
    event_list::{show_events, show_other_events},
    screens::about_to_drain,
};

#[test]
fn esc_keeps_the_selected_node_when_a_filter_ends() {
    for keys in ["2/pool-b-09<Enter><Esc>", "2/pool-b<Enter><Down><Down><Esc>"] {
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
fn a_filter_that_excludes_the_selected_node_selects_none_until_it_is_kept() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2<End>/pool-b-02");
    assert_eq!(fixture.app.screen.selected_node(), None);
    fixture.press("<Enter>");
    assert_eq!(fixture.app.screen.selected_node(), Some(&NodeName::from("pool-b-02")));
}

#[test]
fn after_a_filter_that_is_dropped_or_matches_nothing_keys_act_on_the_row_from_before() {
    for keys in ["/zzz<Esc>", "/zzz<Enter><Esc>", "/pool-b-02<Esc>", "/zzz<Enter>/<Ctrl-u>pool-b<Esc>"] {
        let mut fixture = DashboardFixture::well();
        fixture.press("2<End>");
        let selected = fixture.app.screen.selected_node().cloned().expect("a node");
        fixture.press(keys);
        assert_eq!(fixture.app.screen.selected_node(), Some(&selected), "{keys}");
        fixture.press("c");
        assert_eq!(planned_nodes(&fixture), [selected], "{keys}");
    }
    let mut fixture = DashboardFixture::well();
    fixture.press("2<End>/zzz<Enter>c");
    assert!(fixture.app.screen.overlays.plan().is_none(), "no row is listed");
    assert_eq!(fixture.app.screen.message.as_deref(), Some("the selected row is gone: select another"));
}

#[test]
fn an_invalid_taint_or_label_stays_in_its_line_and_letters_are_no_keys() {
    for (plan, text) in [("t", "dedicated=x y:NoSch"), ("t", ""), ("l", "po ol=x"), ("l", "")] {
        let mut fixture = DashboardFixture::maintenance();
        fixture.press(&format!("2/pool-a-01<Enter>{plan}{text}<Enter>"));
        let typing = KeyFocus::Input(InputTarget::Edits);
        assert_eq!(fixture.app.screen.key_focus(), typing, "{plan} {text}");
        let line = |fixture: &DashboardFixture| {
            let preview = fixture.app.screen.overlays.plan().expect("a plan");
            preview.line.clone().expect("a line")
        };
        assert!(line(&fixture).fault.is_some(), "{plan} {text}");
        fixture.press("qcruxAOU");
        assert_eq!(fixture.app.screen.key_focus(), typing, "{plan} {text}");
        assert_eq!(line(&fixture).input.value(), format!("{text}qcruxAOU"));
        assert_eq!(line(&fixture).fault, None, "what is typed now was not tried yet");
        let valid = if plan == "t" { "dedicated=x:NoSchedule" } else { "pool=x" };
        fixture.press(&format!("<Ctrl-u>{valid}<Enter>"));
        assert_eq!(fixture.app.screen.key_focus(), KeyFocus::Pane(Pane::Plan), "{plan} {valid}");
        fixture.press("<Esc>");
        assert_eq!(fixture.app.screen.selected_node(), Some(&NodeName::from("pool-a-01")));
    }
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
        // After the selected row has vanished, the next move selects a row beside it.
        fixture.press("jc");
        assert_eq!(planned_nodes(&fixture).len(), 1, "{key}");
    }
}

/// Panes, the keys that focus them, and the keys that act on their selected row.
const ACTING: &[(Pane, &str, &[&str])] = &[
    (Pane::Nodes, "2", &["c", "r", "x", "d", "<Enter>", "<Space>"]),
    (Pane::Pods, "2/pool-a-03<Enter><Enter>", &["e", "<Del>", "d", "<Space>"]),
    (Pane::Evictions, "3", &["e", "d", "<Enter>"]),
    (Pane::Pending, "6", &["d", "<Enter>", "y"]),
    (Pane::Departures, "7", &["d", "<Enter>"]),
    (Pane::Forecast, "4", &["x", "d", "<Enter>"]),
    (Pane::Zones, "1", &["x", "<Enter>"]),
    (Pane::Plan, "2/pool-a-01<Enter>r", &["d"]),
    (Pane::Budgets, "8", &["d", "<Enter>", "y"]),
    (Pane::Audit, "9", &["d", "<Enter>", "y"]),
    (Pane::Journal, "5", &["d", "<Enter>"]),
    (Pane::Events, "2:events<Enter>", &["d", "<Enter>"]),
    (Pane::Progress, "A", &["d"]),
];

/// Focuses a pane of [`ACTING`] that has rows.
fn focused(pane: Pane, focus: &str) -> DashboardFixture {
    let mut fixture = match pane {
        Pane::Plan | Pane::Budgets | Pane::Audit => DashboardFixture::maintenance(),
        Pane::Progress => about_to_drain(),
        _ => DashboardFixture::incident(),
    };
    if pane != Pane::Progress {
        fixture.add_waiting_pods();
    }
    fixture.press(focus);
    match pane {
        Pane::Progress => {
            fixture.serve();
            fixture.press("prod-eu try-blocked<Enter>");
            fixture.serve();
        }
        // Their rows are computed while they are shown.
        Pane::Budgets | Pane::Audit => fixture.run(1),
        Pane::Events => show_events(&mut fixture),
        _ => {}
    }
    fixture
}

#[test]
fn no_key_acts_on_another_row_than_the_one_under_the_cursor() {
    let mut acted: Vec<Pane> = Vec::new();
    for seed in 0..6 {
        for (pane, focus, keys) in ACTING {
            for key in *keys {
                let mut chance = fastrand::Rng::with_seed(seed);
                let mut fixture = focused(*pane, focus);
                if *pane == Pane::Nodes && chance.bool() {
                    // Sorts the nodes by name, so that new nodes are first.
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
                let meant = chosen.as_deref().and_then(|row| object_of(&fixture, *pane, row));
                fixture.press(key);
                if let Some(object) = acted_on(&fixture, *pane) {
                    assert_eq!(Some(object), meant, "{reported}");
                    acted.push(*pane);
                }
            }
        }
    }
    assert!(acted.len() > 60, "only {} keys acted: that shows little", acted.len());
    for pane in [Pane::Budgets, Pane::Audit, Pane::Journal, Pane::Events, Pane::Progress] {
        assert!(acted.contains(&pane), "no key acted in {pane:?}");
    }
}

/// Keys that change a list without selecting a row: they filter, sort and group it, and type invalid input.
const WITHOUT_CHOICE: &[&str] = &[
    "/zzz<Esc>",
    "/zzz<Enter>",
    "/zzz<Enter><Esc>",
    "/pool-b<Esc>",
    "/shop<Esc>",
    "/<Ctrl-u>0<Esc>",
    "/a",
    "<Esc>",
    "s",
    "S",
    ":nonsense<Enter><Esc>",
    ":enforce soon<Enter><Esc>",
    "w",
    "z",
];

/// Keys that only the Nodes pane has, and that change its list without selecting a row; see [`WITHOUT_CHOICE`].
const WITHOUT_CHOICE_OF_NODES: &[&str] =
    &["tdedicated<Enter>qcru<Esc>", "lpo ol<Enter>qcru<Esc>", "G", "GGGG"];

#[test]
fn without_a_move_or_a_choice_no_other_row_is_ever_selected() {
    let mut kept = 0;
    for seed in 0..40 {
        for (pane, focus, keys) in ACTING {
            let mut chance = fastrand::Rng::with_seed(seed);
            let mut fixture = focused(*pane, focus);
            for _ in 0..chance.usize(..4) {
                fixture.press(["j", "j", "<End>", "<PgDn>"][chance.usize(..4)]);
            }
            let chosen = under_cursor(&fixture, *pane);
            let mut done = String::new();
            for _ in 0..1 + chance.usize(..6) {
                let of_nodes = if *pane == Pane::Nodes { WITHOUT_CHOICE_OF_NODES } else { &[] };
                let acts: Vec<&str> = WITHOUT_CHOICE.iter().chain(of_nodes).copied().collect();
                let act = acts.get(chance.usize(..acts.len() + 4)).copied();
                // Without a filter, Esc leaves the pane.
                if act == Some("<Esc>") && fixture.app.screen.filter(*pane).is_empty() {
                    continue;
                }
                match act {
                    Some(keys) => fixture.press(keys),
                    None => disturb(&mut fixture, &mut chance, chosen.as_deref()),
                }
                done.push_str(act.unwrap_or("(changes)"));
                let now = under_cursor(&fixture, *pane);
                let reported = format!("seed {seed}, {pane:?}, chosen {chosen:?} after {done}");
                assert!(now.is_none() || now == chosen, "{reported}: now {now:?}");
            }
            if fixture.app.screen.key_focus() != KeyFocus::Pane(*pane) {
                fixture.press("<Esc>");
            }
            let key = keys[chance.usize(..keys.len())];
            let meant = chosen.as_deref().and_then(|row| object_of(&fixture, *pane, row));
            fixture.press(key);
            if let Some(object) = acted_on(&fixture, *pane) {
                assert_eq!(Some(object), meant, "seed {seed}, {pane:?}, {key} after {done}");
                kept += 1;
            }
        }
    }
    assert!(kept > 60, "only {kept} keys acted: that shows little");
}

/// Makes rows move, arrive and vanish, including the selected one.
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
        if fixture.app.lists_events() {
            show_other_events(fixture, chance);
        }
    }
    if chance.bool() {
        let gone = format!("pool-{}-0{}", ["a", "b", "c"][chance.usize(..3)], 1 + chance.usize(..9));
        let chosen = chosen.filter(|name| chance.bool() && name.starts_with("pool-"));
        fixture.remove_node(chosen.unwrap_or(&gone));
        fixture.run(1);
        fixture.plan();
    }
}

/// Returns the row under the cursor: the name of its node, pod, zone or budget on the screen, or what tells a finding,
/// a journal entry or a row of Events from all others.
fn under_cursor(fixture: &DashboardFixture, pane: Pane) -> Option<String> {
    let screen = &fixture.app.screen;
    match pane {
        Pane::Nodes => screen.nodes.list.selected().map(ToString::to_string),
        Pane::Pods => screen.pods.list.selected().map(ToString::to_string),
        Pane::Evictions => screen.evictions.list.selected().map(ToString::to_string),
        Pane::Pending => screen.pending.list.selected().map(ToString::to_string),
        Pane::Departures => {
            let entry = fixture.app.model.departures.entry(*screen.departures.list.selected()?)?;
            Some(entry.pod.to_string())
        }
        Pane::Forecast => screen.forecast.node().map(ToString::to_string),
        Pane::Zones => screen.zones.list.selected().map(ToString::to_string),
        Pane::Budgets => screen.budgets.list.selected().map(ToString::to_string),
        Pane::Audit => screen.audit.list.selected().cloned(),
        Pane::Plan => screen.overlays.plan()?.selected_pod().map(|pod| pod.to_string()),
        Pane::Journal => screen.journal.selected().map(ToString::to_string),
        Pane::Events => screen.overlays.event_list()?.list.selected().map(|row| format!("{row:?}")),
        Pane::Progress => {
            let entry = fixture.app.shown_operation()?;
            screen.overlays.progress()?.selected_pod(&entry.progress).map(ToString::to_string)
        }
        Pane::Detail => None,
    }
}

/// Returns the node, pod, zone or budget that a row of [`under_cursor`] is about; `None` if the row is gone.
fn object_of(fixture: &DashboardFixture, pane: Pane, row: &str) -> Option<String> {
    let model = &fixture.app.model;
    match pane {
        Pane::Journal => match model.journal.entry(row.parse().expect("a number"))?.subject()? {
            JournalSubject::Node(node) => Some(node.to_string()),
            JournalSubject::Pod(pod, _) => Some(pod.to_string()),
            JournalSubject::Other(_) => None,
        },
        Pane::Audit => {
            let findings = &model.predictions.audit()?.audit.findings;
            let finding = findings.iter().find(|finding| finding.id() == row)?;
            match &*finding.subject.kind {
                "Node" => Some(finding.subject.name.to_string()),
                _ => finding.pods.first().filter(|_| finding.pods.len() == 1).map(ToString::to_string),
            }
        }
        Pane::Events => {
            let mut rows = fixture.app.screen.overlays.event_list()?.list.keys().iter();
            let about = &rows.find(|key| format!("{key:?}") == row)?.about;
            match &*about.kind {
                "Node" => Some(about.name.to_string()),
                _ => Some(Key::new(&about.namespace, &about.name).to_string()),
            }
        }
        _ => Some(row.to_owned()),
    }
}

/// Returns the row on which the last key acted; `None` if the key did nothing.
fn acted_on(fixture: &DashboardFixture, pane: Pane) -> Option<String> {
    let screen = &fixture.app.screen;
    if let Some(detail) = screen.overlays.detail() {
        return Some(match &detail.subject {
            DetailSubject::Node(node) => node.to_string(),
            DetailSubject::Pod(pod) => pod.to_string(),
            DetailSubject::Budget(budget) => budget.to_string(),
        });
    }
    if let Some(plan) = screen.overlays.plan().filter(|_| !matches!(pane, Pane::Plan | Pane::Progress)) {
        return Some(match &plan.request.targets {
            Targets::Nodes(nodes) if plan.request.kind == PlanKind::Failure && pane == Pane::Zones => {
                fixture.app.model.cluster.node(&nodes[0]).expect("a node").zone().to_string()
            }
            // A line of the forecast's chart (a lane) can stand for several nodes.
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
        // Enter shows the pod in the list of its node's pods.
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
