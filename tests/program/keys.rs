//! Every key and every hint in the footer does something; a key that does nothing is explained.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crossterm::event::{KeyCode, KeyEvent};
use kordon::{
    app::{
        Aliases, HistoryState, Keymap, Mode, Pane, Playback, PlaybackKind, Reaction, TakenAlong,
        chord::Chord,
        commands::{COMMANDS, Command, UserAction},
        detail::DetailSubject,
        groups::{Grouping, NodeRow},
        key_presets::KeyPreset,
        preferences::SavedView,
        preview::{PlanKind, Targets},
    },
    model::{Moment, MomentKind, VerdictLevel},
    ui::snapshot,
};
use kordon_core::cluster::Key;
use kordon_time::Span;
use ratatui::{buffer::Buffer, layout::Position};

use crate::{
    dashboard_fixture::DashboardFixture,
    event_list::show_events,
    screens::{about_to_drain, drawn, interrupted, terminal_of},
    yaml_view::show_yaml,
};

/// Size of the screen. A plan fits next to the nodes, so that zooming has a visible effect.
const SIZE: (u16, u16) = (160, 48);

type Situation = (&'static str, fn() -> DashboardFixture);

fn pressed(mut fixture: DashboardFixture, keys: &str) -> DashboardFixture {
    fixture.press(keys);
    fixture
}

fn operating() -> DashboardFixture {
    let mut fixture = about_to_drain_asked();
    fixture.press("prod-eu try-blocked<Enter>");
    fixture.serve();
    fixture
}

fn was_interrupted() -> DashboardFixture {
    let mut fixture = pressed(DashboardFixture::maintenance(), "2/pool-a-01<Enter>:enforce<Enter>");
    fixture.change_node("pool-a-01", |node| node.unschedulable = true);
    fixture.past = Some(interrupted(&fixture));
    fixture.app.find_interrupted();
    fixture.serve();
    fixture
}

/// States of the screen: every pane, every overlay, full and empty lists.
const SITUATIONS: &[Situation] = &[
    ("nodes", || pressed(DashboardFixture::incident(), "2jj")),
    ("nodes without a row", || pressed(DashboardFixture::incident(), "2/nowhere<Enter>")),
    ("nodes, marked and zoomed", || pressed(DashboardFixture::well(), "2<Space>z")),
    ("groups", || pressed(DashboardFixture::well(), "2G")),
    ("nodes, after going back", || pressed(DashboardFixture::incident(), "12<alt-left>")),
    ("pods", || pressed(DashboardFixture::incident(), "2/pool-b-02<Enter><Enter>j")),
    ("pods, marked", || pressed(DashboardFixture::incident(), "2/pool-b-02<Enter><Enter><Space>")),
    ("zones", || pressed(DashboardFixture::incident(), "1j")),
    ("evictions", || pressed(DashboardFixture::incident(), "3j")),
    ("tour", || pressed(DashboardFixture::incident(), ":tour<Enter>n")),
    ("themes", || pressed(DashboardFixture::incident(), ":theme<Enter>so")),
    ("evictions, resized", || {
        let mut fixture = pressed(DashboardFixture::incident(), "3");
        terminal_of(&mut fixture, SIZE);
        fixture.press("<ctrl-up>");
        terminal_of(&mut fixture, SIZE);
        fixture
    }),
    ("no evictions", || pressed(DashboardFixture::well(), "3")),
    ("forecast", || pressed(DashboardFixture::incident(), "4j")),
    ("no forecast", || pressed(DashboardFixture::well(), "4")),
    ("journal", || pressed(DashboardFixture::incident(), "5j")),
    ("no journal", || pressed(DashboardFixture::well(), "5/nothing<Enter>")),
    ("pending", || {
        let mut fixture = DashboardFixture::well();
        fixture.add_waiting_pods();
        pressed(fixture, "6j")
    }),
    ("budgets", || pressed(DashboardFixture::maintenance(), "8j")),
    ("detail of a node", || pressed(DashboardFixture::incident(), "2/pool-b-02<Enter>dj")),
    ("detail of a pod", || pressed(DashboardFixture::incident(), "2/pool-b-02<Enter><Enter>djj")),
    ("an action of the detail", || {
        let mut fixture = pressed(DashboardFixture::incident(), "2/pool-a-03<Enter>d");
        let open = COMMANDS.iter().find(|command| command.name == "open-plan").expect("a command");
        while !fixture.app.offers(open) {
            fixture.press("j");
        }
        fixture
    }),
    ("yaml", || pressed(DashboardFixture::incident(), "2/pool-b-02<Enter>y")),
    ("yaml, searched", || {
        let mut fixture = pressed(DashboardFixture::incident(), "2/pool-b-02<Enter>y");
        show_yaml(&mut fixture, "kind: Node\nspec:\n  unschedulable: true\n  taints: []");
        pressed(fixture, "/s<Enter>")
    }),
    ("events", || {
        let mut fixture = pressed(DashboardFixture::incident(), ":events<Enter>");
        show_events(&mut fixture);
        pressed(fixture, "j")
    }),
    ("plan of a drain", || pressed(DashboardFixture::maintenance(), "2/pool-a-01<Enter>rjj")),
    ("plan of taints", || {
        pressed(DashboardFixture::maintenance(), "2/pool-a-01<Enter>ta=b:NoSchedule<Enter>")
    }),
    ("taints, typed", || pressed(DashboardFixture::maintenance(), "2/pool-a-01<Enter>tnode.kubernetes")),
    ("what-if", || pressed(DashboardFixture::maintenance(), "2/pool-a-01<Enter>x")),
    ("plan of an eviction", || pressed(DashboardFixture::maintenance(), "2/pool-a-01<Enter><Enter>e")),
    ("question", || pressed(about_to_drain_asked(), "pro")),
    ("progress", operating),
    ("operation in the background", || pressed(operating(), "<Esc>")),
    ("question about a cancellation", || pressed(operating(), "C")),
    ("interrupted", was_interrupted),
    ("filter, typed", || pressed(DashboardFixture::incident(), "2/po")),
    ("filter, at its start", || pressed(DashboardFixture::incident(), "2/po<Home>")),
    ("command, typed", || pressed(DashboardFixture::incident(), "2:z")),
    ("recording", recording),
    ("frozen, with a history", || {
        let mut fixture = DashboardFixture::incident();
        let from = fixture.now - Span::from_secs(3600);
        fixture.app.history = HistoryState::Kept { from, bytes: 1 << 20, limit: 1 << 29 };
        pressed(fixture, "2f")
    }),
    ("help", || pressed(DashboardFixture::incident(), "2?")),
    ("information", || pressed(DashboardFixture::incident(), "2i")),
    ("timing", || {
        let mut fixture = pressed(DashboardFixture::incident(), "2m");
        fixture.work_out_timing();
        fixture
    }),
];

/// Returns a fixture that shows a recording, at a time between two notable moments.
fn recording() -> DashboardFixture {
    let mut fixture = pressed(DashboardFixture::incident(), "2");
    let (now, hour) = (fixture.now, Span::from_secs(3600));
    let mut playback = Playback::new(PlaybackKind::Recording, (now - hour, now + hour), now);
    let moment = |at| Moment::new(at, MomentKind::NodeJoined, VerdictLevel::Notice, "pool-b-02");
    playback.moments = Arc::new(vec![moment(now - Span::from_secs(300)), moment(now + Span::from_secs(300))]);
    (playback.searched, playback.speed) = (now + hour, 10.0);
    fixture.app.playback = Some(playback);
    fixture.app.operations.mode = Mode::Replay;
    fixture
}

fn about_to_drain_asked() -> DashboardFixture {
    let mut fixture = about_to_drain();
    fixture.press("A");
    fixture.serve();
    fixture
}

/// Returns the screen and the position of the terminal's cursor.
fn picture(fixture: &mut DashboardFixture) -> (Buffer, Position) {
    let mut terminal = terminal_of(fixture, SIZE);
    (terminal.backend().buffer().clone(), terminal.get_cursor_position().expect("a buffer"))
}

/// Types a key. Returns whether it changes the screen or the state of the program, and the message in the footer.
fn press(situation: Situation, chord: Chord) -> (bool, Option<String>) {
    let mut fixture = situation.1();
    let before = picture(&mut fixture);
    let reaction = fixture.app.on_key(chord.into(), fixture.now, fixture.now);
    fixture.plan();
    let does_more = !matches!(reaction, Reaction::Draw) || fixture.app.next_job().is_some();
    let message = fixture.app.screen.message.clone();
    (does_more || before != picture(&mut fixture), message)
}

#[test]
fn every_hint_of_the_footer_does_something() {
    let mut dead: Vec<String> = Vec::new();
    for situation in SITUATIONS {
        let fixture = situation.1();
        let offered: Vec<&Command> = COMMANDS
            .iter()
            .filter(|command| !command.hint.is_empty() && fixture.app.offers(command))
            .collect();
        assert!(!offered.is_empty(), "{} has no hints", situation.0);
        for command in offered {
            let (acts, message) = press(*situation, command.keys[0]);
            let idle = message.as_ref().is_some_and(|message| message.contains("does nothing here"));
            if !acts || idle {
                dead.push(format!("{} ({}) in {}: {message:?}", command.keys[0], command.name, situation.0));
            }
        }
    }
    assert!(dead.is_empty(), "dead hints: {dead:#?}");
}

#[test]
fn every_key_of_the_table_does_something_somewhere() {
    let mut dead: BTreeSet<(&str, String)> = BTreeSet::new();
    let situations: Vec<(Situation, DashboardFixture)> =
        SITUATIONS.iter().map(|situation| (*situation, situation.1())).collect();
    for command in COMMANDS {
        for chord in command.keys {
            let acts = |(situation, fixture): &(Situation, DashboardFixture)| {
                // In this situation, the key may run another command than `command`.
                let is_it =
                    fixture.app.preferences.keymap.action((*chord).into(), fixture.app.screen.key_focus())
                        == Some((command.action, ""));
                is_it && fixture.app.offers(command) && press(*situation, *chord).0
            };
            if !situations.iter().any(acts) {
                dead.insert((command.name, chord.to_string()));
            }
        }
    }
    assert!(dead.is_empty(), "dead keys: {dead:?}");
}

#[test]
fn a_key_that_does_nothing_here_is_answered_with_where_it_does_something() {
    let mut fixture = pressed(DashboardFixture::incident(), "1");
    let mut say = |keys: KeyEvent| {
        fixture.app.on_key(keys, fixture.now, fixture.now);
        fixture.app.screen.message.clone().unwrap_or_default()
    };
    assert_eq!(
        say(KeyEvent::from(KeyCode::Char('r'))),
        "r (drain) is a key in the nodes, pods, detail: ? shows those of this pane"
    );
    assert_eq!(say(KeyEvent::from(KeyCode::F(5))), "F5 is not a key: ? shows them all");
    assert_eq!(say(KeyEvent::from(KeyCode::Char('d'))), "d does nothing here: ? shows what does");
    assert_eq!(say(KeyEvent::from(KeyCode::Char('z'))), "", "it does");
    // The detail of a node is open, which has no pod to evict.
    let mut fixture = pressed(DashboardFixture::incident(), "2/pool-b-02<Enter>d");
    let evict = COMMANDS.iter().find(|command| command.name == "evict").expect("a command");
    assert!(!fixture.app.offers(evict));
    fixture.press("e");
    assert_eq!(fixture.app.screen.message.as_deref(), Some("e does nothing here: ? shows what does"));
    assert_eq!(evict.action, UserAction::Plan(PlanKind::Evict));
}

#[test]
fn a_finding_leads_to_its_pod_and_a_budget_to_its_detail() {
    let mut fixture = pressed(DashboardFixture::maintenance(), "9");
    fixture.run(1);
    fixture.press("/debug-0<Enter><Enter>");
    let subject = fixture.app.screen.overlays.detail().map(|detail| detail.subject.clone());
    assert_eq!(subject, Some(DetailSubject::Pod(Key::new("shop", "debug-0"))));
    fixture.press("<Esc>8");
    fixture.run(1);
    for key in ["d", "<Enter>"] {
        fixture.press(key);
        let subject = fixture.app.screen.overlays.detail().map(|detail| detail.subject.clone());
        assert_eq!(subject, Some(DetailSubject::Budget(Key::new("data", "postgres"))), "{key}");
        fixture.press("<Esc>");
        assert_eq!(fixture.app.screen.focus, Pane::Budgets, "{key}");
    }
}

#[test]
fn a_frozen_screen_names_its_way_out_in_every_list() {
    let mut fixture = pressed(DashboardFixture::incident(), "2f");
    for pane in ["1", "2", "3", "4", "5", "6", "7", "8", "9"] {
        fixture.press(pane);
        let screen = snapshot::plain(&drawn(&mut fixture, (80, 24)));
        let footer = screen.lines().last().unwrap_or_default();
        assert!(footer.contains("f resume") && footer.contains("FROZEN"), "{pane}: {footer}");
        fixture.press("<Esc>");
        assert_eq!(fixture.app.screen.message.as_deref(), Some("frozen: f returns to the present"));
    }
}

/// A fixture with the keys of a preset.
fn with_preset(preset: KeyPreset) -> DashboardFixture {
    let mut fixture = pressed(DashboardFixture::incident(), "2");
    fixture.app.preferences.keymap = Keymap::new(preset, &BTreeMap::new()).expect("a preset has no conflict");
    fixture
}

fn row(fixture: &DashboardFixture) -> usize {
    fixture.app.screen.nodes.list.cursor().expect("a node is selected")
}

#[test]
fn digits_before_a_move_repeat_it_and_others_focus_a_pane() {
    let mut fixture = with_preset(KeyPreset::Vim);
    fixture.press("g5j");
    assert_eq!((fixture.app.screen.focus, row(&fixture)), (Pane::Nodes, 5));
    fixture.press("2k");
    assert_eq!(row(&fixture), 3);
    fixture.press("g10j");
    assert_eq!(row(&fixture), 10);
    fixture.press("5");
    fixture.now += Span::from_secs(2);
    fixture.press("j");
    assert_eq!(fixture.app.screen.focus, Pane::Journal, "the digit was typed long before");
    fixture.press("2");
    fixture.now += Span::from_secs(2);
    fixture.press("G");
    assert_eq!(row(&fixture), 29, "G goes to the end");
    fixture.press("7G");
    assert_eq!(row(&fixture), 6, "and to a row by its number");
    fixture.press(":9<Enter>");
    assert_eq!((row(&fixture), fixture.app.screen.overlays.palette().is_none()), (8, true));
    let mut fixture = pressed(DashboardFixture::incident(), "2g5j");
    assert_eq!(fixture.app.screen.focus, Pane::Journal, "kordon's own keys have no counts");
    fixture.press("2");
    assert_eq!(row(&fixture), 0);
}

#[test]
fn a_letter_after_the_sort_key_chooses_the_column() {
    let mut fixture = pressed(DashboardFixture::incident(), "2s");
    let sorted = |fixture: &DashboardFixture| {
        let sort = fixture.app.screen.sort(Pane::Nodes).expect("a table");
        (sort.title(), sort.is_reversed())
    };
    assert_eq!(sorted(&fixture), ("node", false));
    let message = fixture.app.screen.message.clone().unwrap_or_default();
    assert!(message.starts_with("sorted by node; next key: n node · z zone"), "{message}");
    fixture.press("a");
    assert_eq!(sorted(&fixture), ("age", false));
    fixture.press("ssS");
    assert_eq!(sorted(&fixture), ("node", true), "the sort key goes on, S reverses");
    let mut confirmed = pressed(DashboardFixture::incident(), "2sn");
    assert_eq!(sorted(&confirmed), ("node", false), "the sort key had reached this column");
    confirmed.press("szsz");
    assert_eq!(sorted(&confirmed), ("zone", false));
    fixture.press("jr");
    assert!(fixture.app.screen.overlays.plan().is_some(), "r is the key of the drain again");
    let mut fixture = with_preset(KeyPreset::K9s);
    fixture.press("A");
    assert_eq!(sorted(&fixture), ("age", false));
    fixture.press("A");
    assert_eq!(sorted(&fixture), ("age", true));
}

/// Checks that the rows of a pane rise or fall by each column as the arrow says. `value` returns the value of a row in
/// a column; `None` for columns that are not compared.
fn check_arrows<V: PartialOrd + std::fmt::Debug>(
    fixture: &mut DashboardFixture,
    pane: Pane,
    value: impl Fn(&DashboardFixture, &str) -> Option<Vec<V>>,
) {
    let columns = fixture.app.screen.sort(pane).expect("a table").columns();
    for (title, _) in columns {
        fixture.press(&format!(":sort -{title}<Enter>"));
        for keys in ["", "S"] {
            fixture.press(keys);
            let is_descending = fixture.app.screen.sort(pane).expect("a table").is_descending();
            let screen = snapshot::plain(&drawn(fixture, (220, 60)));
            let arrow = format!("by {title} {}", if is_descending { "↓" } else { "↑" });
            let is_default = fixture.app.screen.sort(pane).is_some_and(|sort| sort.is_default());
            assert!(is_default || screen.contains(&arrow), "{arrow}: {screen}");
            let Some(values) = value(fixture, title) else { continue };
            let follows = |pair: &[V]| if is_descending { pair[0] >= pair[1] } else { pair[0] <= pair[1] };
            assert!(values.windows(2).all(follows), "{arrow}: {values:?}");
        }
    }
}

#[test]
fn the_arrow_of_a_sorted_list_says_whether_its_values_rise_or_fall() {
    let mut fixture = pressed(DashboardFixture::incident(), "2");
    check_arrows(&mut fixture, Pane::Nodes, |fixture, title| {
        let model = &fixture.app.model;
        let names = fixture.app.screen.listed_nodes();
        let nodes = names.iter().filter_map(|name| model.cluster.node(name));
        let number = |number: i64| (number, String::new());
        let values = nodes.map(|node| {
            let load = model.cluster.load(&node.name);
            Some(match title {
                "state" => number(-(model.watchlist.state(&node.name)? as i64)),
                "node" => (0, node.name.to_string()),
                "zone" => (0, node.zone().to_string()),
                "pods" => number(i64::try_from(load.unfinished()).expect("few")),
                "cpu req" => number(load.requested.cpu_milli),
                "mem req" => number(load.requested.memory_bytes),
                "taints" => number(i64::try_from(node.taints.len()).expect("few")),
                "address" => (0, node.address.to_string()),
                "kubelet" => (0, node.kubelet_version.to_string()),
                "age" => number(-node.created.as_nanos()),
                _ => return None,
            })
        });
        values.collect()
    });
    let mut fixture = pressed(DashboardFixture::incident(), "2/pool-b-02<Enter><Enter>");
    check_arrows(&mut fixture, Pane::Pods, |fixture, title| {
        let cluster = &fixture.app.model.cluster;
        let pods = fixture.app.screen.pods.list.keys().iter().filter_map(|key| cluster.pod(key));
        let values = pods.map(|pod| match title {
            "ready" => Some(i64::from(pod.is_ready())),
            "priority" => Some(i64::from(pod.priority)),
            "cpu" => Some(pod.requests().cpu_milli),
            "memory" => Some(pod.requests().memory_bytes),
            "age" => Some(-pod.created.as_nanos()),
            _ => None,
        });
        values.collect()
    });
    for (pane, keys) in [(Pane::Zones, "1z"), (Pane::Evictions, "3z")] {
        let mut fixture = pressed(DashboardFixture::incident(), keys);
        check_arrows(&mut fixture, pane, |_, _| None::<Vec<i64>>);
    }
}

#[test]
fn one_can_go_back_to_where_one_was_and_forward_again() {
    let mut fixture = pressed(DashboardFixture::incident(), "2/pool-b-02<Enter><Enter>d5");
    let place = |fixture: &DashboardFixture| (fixture.app.screen.focus, fixture.app.screen.pods_of.is_some());
    fixture.press("<alt-left>");
    assert_eq!(place(&fixture), (Pane::Detail, true));
    fixture.press("<alt-left>");
    assert_eq!(place(&fixture), (Pane::Pods, true));
    fixture.press("<ctrl-o>");
    assert_eq!(place(&fixture), (Pane::Nodes, false));
    fixture.press("<alt-right><alt-right>");
    assert_eq!(place(&fixture), (Pane::Detail, true));
    fixture.press("<Esc>1<alt-right>");
    assert_eq!(place(&fixture), (Pane::Zones, true), "another way was taken");
    assert_eq!(fixture.app.screen.message.as_deref(), Some("there is nothing after this"));
}

#[test]
fn a_place_whose_node_is_gone_is_left_out() {
    let mut fixture = pressed(DashboardFixture::incident(), "1");
    fixture.press("2/pool-b-02<Enter><Enter>1");
    fixture.remove_node("pool-b-02");
    fixture.press("<alt-left>");
    assert_eq!((fixture.app.screen.focus, fixture.app.screen.pods_of.clone()), (Pane::Nodes, None));
}

#[test]
fn a_range_of_rows_is_marked_from_the_last_mark_on() {
    let mut fixture = with_preset(KeyPreset::Vim);
    fixture.press("gV");
    let message = fixture.app.screen.message.clone();
    assert_eq!(message.as_deref(), Some("a range starts here: moves extend it, v ends it"));
    fixture.press("jjj");
    assert_eq!(fixture.app.screen.marked_nodes.len(), 4, "the marks follow the moves");
    fixture.press("k");
    assert_eq!(fixture.app.screen.marked_nodes.len(), 3, "also back");
    fixture.press("Vj");
    assert_eq!(fixture.app.screen.marked_nodes.len(), 3, "the range has ended");
    fixture.press("<Esc>jv");
    assert_eq!(fixture.app.screen.marked_nodes.len(), 1, "the marks of before are cleared");
    let mut fixture = pressed(DashboardFixture::incident(), "2gv");
    let message = fixture.app.screen.message.clone();
    assert_eq!(message.as_deref(), Some("a range starts here: v at its other end marks it"));
    fixture.press("jjv");
    assert_eq!(fixture.app.screen.marked_nodes.len(), 3, "where nothing is marked, the range starts");
    let fixture = pressed(DashboardFixture::incident(), "2g<Space>jjv");
    let (marked, rows) = (&fixture.app.screen.marked_nodes, fixture.app.screen.nodes.list.keys());
    assert_eq!(marked.len(), 4, "the mark moved on by one");
    let is_marked = |row: &NodeRow| row.node().is_some_and(|node| marked.contains(node));
    assert!(rows[..4].iter().all(is_marked), "{marked:?}");
}

#[test]
fn commands_are_typed_with_an_argument_wherever_the_focus_is() {
    let fixture = pressed(DashboardFixture::incident(), "5:drain pool-a-01<Enter>");
    let plan = fixture.app.screen.overlays.plan().map(|plan| plan.request.clone()).expect("a plan");
    assert_eq!(plan.kind, PlanKind::Drain);
    assert_eq!(plan.targets, Targets::Nodes(vec!["pool-a-01".into()]));
    let mut fixture = pressed(DashboardFixture::incident(), "5:drain pool-a-0x<Enter>");
    let palette = fixture.app.screen.overlays.palette().expect("the line stays");
    let expected = "there is no node pool-a-0x; did you mean pool-a-01?";
    assert_eq!(palette.fault.as_deref(), Some(expected));
    fixture.press("<Esc>:drian pool-a-01<Enter>");
    let palette = fixture.app.screen.overlays.palette().expect("the corrected line is not run");
    assert_eq!(palette.input.value(), "drain pool-a-01");
    fixture.press("<Esc>:no state=Silent<Enter>");
    assert_eq!(fixture.app.screen.focus, Pane::Nodes);
    assert_eq!(fixture.app.screen.listed_nodes().len(), 1);
    fixture.press(":po pool-b-02<Enter>");
    assert_eq!(fixture.app.screen.pods_of.as_deref(), Some("pool-b-02"));
    fixture.press(":no<Enter>");
    assert_eq!((fixture.app.screen.focus, fixture.app.screen.pods_of.clone()), (Pane::Nodes, None));
    assert_eq!(fixture.app.screen.listed_nodes().len(), 1, "with their filter");
    fixture.press("d:nodes<Enter>");
    assert!(fixture.app.screen.overlays.view().is_none(), "the detail is closed for the nodes");
    fixture.press(":zone a<Enter>");
    assert_eq!((fixture.app.screen.focus, fixture.app.screen.listed_nodes().len()), (Pane::Nodes, 10));
    fixture.press("r:zone b<Enter>");
    assert_eq!(fixture.app.screen.focus, Pane::Nodes);
    assert!(fixture.app.screen.overlays.view().is_none(), "the plan is closed for the nodes");
    fixture.press(":ns data<Enter>3");
    let evicted = fixture.app.screen.evictions.list.keys();
    assert!(!evicted.is_empty() && evicted.iter().all(|pod| *pod.namespace == *"data"), "{evicted:?}");
}

#[test]
fn a_filter_is_typed_as_the_argument_of_a_command_and_filters_the_focused_list() {
    let mut fixture = pressed(DashboardFixture::incident(), "2");
    let all = fixture.app.screen.listed_nodes().len();
    let own = BTreeMap::from([("bad".to_owned(), "filter state!=Ready".to_owned())]);
    fixture.app.preferences.aliases = Aliases::new(own);
    fixture.press(":bad<Enter>");
    assert_eq!(fixture.app.screen.filter(Pane::Nodes).text(), "state!=Ready");
    assert!((1..all).contains(&fixture.app.screen.listed_nodes().len()));
    let fixture = pressed(DashboardFixture::incident(), "2/pool-b-02<Enter><Enter>:filter ns=data<Enter>");
    assert_eq!(
        (fixture.app.screen.focus, fixture.app.screen.filter(Pane::Pods).text()),
        (Pane::Pods, "ns=data")
    );
    let fixture = pressed(DashboardFixture::incident(), "2:filter zoen=a<Enter>");
    let message = fixture.app.screen.message.as_deref();
    assert_eq!(message, Some("zoen is no field here; did you mean zone?"));
}

#[test]
fn a_pod_is_found_by_its_name() {
    let mut fixture = pressed(DashboardFixture::incident(), ":pods report-00<Enter>");
    let selected = |fixture: &DashboardFixture| {
        let pod = fixture.app.screen.pods.list.selected().map(ToString::to_string);
        (fixture.app.screen.pods_of.as_ref().map(ToString::to_string), pod)
    };
    let expected = (Some("pool-a-01".to_owned()), Some("batch/report-00-7qk".to_owned()));
    assert_eq!(selected(&fixture), expected);
    fixture.press(":pods report-0<Enter>");
    assert_eq!(selected(&fixture), expected, "the first of several");
    let message = fixture.app.screen.message.as_deref().unwrap_or_default();
    assert!(message.ends_with("1 more pod has a name with report-0"), "{message}");
    fixture.press(":pods nosuch<Enter>");
    let palette = fixture.app.screen.overlays.palette().expect("the line stays");
    assert!(palette.fault.as_deref().is_some_and(|fault| fault.starts_with("there is no node nosuch")));
    fixture.press("<Esc>2<Esc>/report-00<Enter>");
    let screen = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    assert!(screen.contains("no node matches, but 1 pod does: `:pods report-00` shows where"), "{screen}");
}

#[test]
fn the_pods_of_the_selected_node_are_shown_from_every_pane() {
    let place = |fixture: &DashboardFixture| {
        let screen = &fixture.app.screen;
        (screen.focus, screen.pods_of.as_ref().map(ToString::to_string))
    };
    let pods = (Pane::Pods, Some("pool-b-02".to_owned()));
    let mut fixture = pressed(DashboardFixture::incident(), "2/pool-b-02<Enter>1:po<Enter>");
    assert_eq!(place(&fixture), pods);
    fixture.press("d5:pods<Enter>");
    assert_eq!(place(&fixture), pods, "they were covered by a detail");
    let mut fixture = pressed(DashboardFixture::incident(), "2Gg:pods<Enter>");
    let fault = fixture.app.screen.overlays.palette().and_then(|palette| palette.fault.clone());
    let expected = "no node is selected: :pods NAME shows those of a node, kordon pods those of all";
    assert_eq!(fault.as_deref(), Some(expected), "a group is selected");
    fixture.press("<Esc>");
    assert!(fixture.app.screen.nodes.list.len() > 3, "the group is not folded");
}

#[test]
fn a_filter_of_nodes_names_the_command_for_pods_only_if_it_finds_some() {
    let mut fixture = pressed(DashboardFixture::incident(), "2/REPORT-00<Enter>");
    let screen = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    assert!(screen.contains("no node matches") && !screen.contains("`:pods"), "{screen}");
    fixture.press(":pods REPORT-00<Enter>");
    let palette = fixture.app.screen.overlays.palette().expect("the line stays");
    assert!(palette.fault.as_deref().is_some_and(|fault| fault.starts_with("there is no node REPORT-00")));
}

#[test]
fn a_typed_filter_selects_its_first_row_if_the_selected_one_does_not_pass() {
    let mut fixture = pressed(DashboardFixture::incident(), "2/pool-a-01<Enter><Esc>:no pool-b-02<Enter>");
    assert_eq!(fixture.app.screen.selected_node().map(|node| &**node), Some("pool-b-02"));
    fixture.press("d");
    assert_eq!(fixture.app.screen.focus, Pane::Detail);
    fixture.press("<Esc>3<End>:ns data<Enter>");
    let selected = fixture.app.screen.evictions.list.selected();
    assert_eq!(selected.map(|pod| &*pod.namespace), Some("data"));
}

#[test]
fn the_filter_of_a_namespace_stands_in_the_title_of_every_pane_that_has_it() {
    let mut fixture = pressed(DashboardFixture::incident(), "3:ns dta<Enter>");
    let fault = fixture.app.screen.overlays.palette().and_then(|palette| palette.fault.clone());
    assert_eq!(fault.as_deref(), Some("there is no namespace dta; did you mean data?"));
    fixture.press("<Esc>:ns data<Enter>");
    for pane in ["3", "8", "9"] {
        fixture.press(pane);
        let screen = terminal_of(&mut fixture, SIZE).backend().to_string();
        assert!(screen.contains("/ns=data"), "{pane}: {screen}");
    }
    fixture.press("<Esc>");
    assert!(fixture.app.screen.filter(Pane::Audit).is_empty());
    let message = fixture.app.screen.message.as_deref();
    assert_eq!(message, Some("the other panes still show only data; :ns shows all again"));
    fixture.press(":ns<Enter>");
    assert!(fixture.app.screen.filter(Pane::Budgets).is_empty());
}

#[test]
fn arguments_of_commands_about_lists_are_completed() {
    for (keys, completed) in [
        (":sort hear<Tab>", "sort heartbeat "),
        (":sort -mem<Tab>", "sort -mem req "),
        (":group po<Tab>", "group pool"),
        (":ns ed<Tab>", "ns edge "),
        (":nodes zo<Tab>", "nodes zone:"),
        (":pods pool-c-1<Tab>", "pods pool-c-10 "),
        (":zone b<Tab>", "zone b "),
    ] {
        let fixture = pressed(DashboardFixture::incident(), keys);
        let palette = fixture.app.screen.overlays.palette().expect("the palette");
        assert!(palette.input.value().starts_with(completed), "{keys}: {}", palette.input.value());
    }
}

#[test]
fn the_name_in_an_argument_is_completed_as_far_as_it_is_clear() {
    let mut fixture = pressed(DashboardFixture::incident(), "2:drain pool-c<Tab>");
    let typed = |fixture: &DashboardFixture| {
        let palette = fixture.app.screen.overlays.palette().expect("the line");
        palette.input.value().to_owned()
    };
    assert_eq!(typed(&fixture), "drain pool-c-");
    assert!(
        fixture.app.screen.message.as_ref().is_some_and(|message| message.starts_with("pool-c-01 pool-c-02"))
    );
    fixture.press("10<Tab>");
    assert_eq!(typed(&fixture), "drain pool-c-10 ");
}

#[test]
fn the_journal_is_kept_as_a_view() {
    let fixture = pressed(DashboardFixture::incident(), "5/node<Enter>:save-view nodes-only<Enter>");
    let Some(TakenAlong::View(name, view)) = &fixture.app.taken_along else {
        panic!("{:?}", fixture.app.screen.message);
    };
    assert_eq!((name.as_str(), view.pane.as_str(), view.filter.as_str()), ("nodes-only", "journal", "node"));
    assert_eq!(view.errors(), []);
}

#[test]
fn a_view_that_the_configuration_could_not_have_is_not_kept() {
    let fixture = pressed(DashboardFixture::incident(), "2/pods>abc<Enter>:save-view bad<Enter>");
    assert!(fixture.app.taken_along.is_none());
    let fault = fixture.app.screen.overlays.palette().and_then(|palette| palette.fault.clone());
    let said = "the filter cannot be saved: abc is no number, share or time, such as 20, 80% or 2h";
    assert_eq!(fault.as_deref(), Some(said));
}

#[test]
fn the_message_about_a_kept_view_outlasts_the_reading_of_the_file() {
    let mut fixture = DashboardFixture::incident();
    let said = Some("view a is in config.toml: :view a".to_owned());
    (fixture.app.kept, fixture.app.screen.message) = (said.clone(), said.clone());
    let preferences = fixture.app.preferences.clone();
    fixture.app.on_preferences(Ok(preferences.clone()), fixture.now);
    assert_eq!(fixture.app.screen.message, said);
    fixture.app.on_preferences(Ok(preferences), fixture.now);
    assert_eq!(fixture.app.screen.message.as_deref(), Some("the configuration was read again"));
}

#[test]
fn a_saved_view_is_shown_by_its_name() {
    let mut fixture = pressed(DashboardFixture::incident(), "5");
    let view = SavedView {
        pane: "nodes".into(),
        filter: "zone:a".into(),
        sort: "-age".into(),
        group: "pool".into(),
        wide: true,
        zoom: true,
        layout: None,
    };
    fixture.app.preferences.views.insert("zone-a".into(), view);
    fixture.press(":view zone-b<Enter>");
    let fault = fixture.app.screen.overlays.palette().and_then(|palette| palette.fault.clone());
    assert_eq!(fault.as_deref(), Some("there is no saved view zone-b; did you mean zone-a?"));
    fixture.press("<Esc>:view<Enter>");
    let palette = fixture.app.screen.overlays.palette().expect("a view is chosen");
    assert_eq!((palette.input.value(), palette.fault.as_deref()), ("view ", Some("saved views: zone-a")));
    fixture.press("z<Tab>");
    let palette = fixture.app.screen.overlays.palette().expect("it stays open");
    assert_eq!(palette.input.value(), "view zone-a ");
    fixture.press("<Esc>:view zone-a<Enter>");
    let screen = &fixture.app.screen;
    assert_eq!((screen.focus, screen.listed_nodes().len()), (Pane::Nodes, 10));
    assert!(screen.wide && screen.zoomed && *screen.groups.grouping() == Grouping::Pool);
    let sort = screen.sort(Pane::Nodes).expect("a table");
    assert_eq!((sort.title(), sort.is_reversed()), ("age", true));
    fixture.press("2:sort -pods<Enter>");
    let sort = fixture.app.screen.sort(Pane::Nodes).expect("a table");
    assert_eq!((sort.title(), sort.is_descending()), ("pods", true));
}
