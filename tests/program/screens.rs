//! The screens, drawn for states of a small cluster and compared with golden files.
//!
//! `UPDATE=1` rewrites the golden files; read the diff. `GALLERY=FOLDER` also writes every screen as SVG.

mod detail;
mod filter;
mod forecast;
mod lists;
mod maintenance;
mod operation;
mod plan;

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use crossterm::event::KeyCode;
use kordon::{
    app::{
        Glyphs, Mode, Pane, ThemeName, UserAction, commands,
        preferences::{ContextMark, MarkColour},
        tour::TourStep,
        update,
    },
    journal::{JournalLine, JournaledOperation, LineKind, OperationStart, operations},
    k8s::feed::{FeedEvent, FeedKind, FeedState},
    run::Surface,
    ui::{Theme, snapshot},
};
use kordon_core::{
    cluster::{
        Change, Condition, ConditionStatus, CordonNote, DrainClaim, Key, ObjectEvent, TaintEffect,
        WorkloadKind,
    },
    plan::{
        DrainOptions, Permission,
        undo::{NodeUndo, UndoStep, WriteUndo},
    },
};
use kordon_time::{ClusterTime, Span, Timestamp};
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer};

use crate::dashboard_fixture::{DashboardFixture, START, taint};

const SIZES: [(u16, u16); 4] = [(80, 24), (120, 40), (160, 48), (220, 60)];

#[test]
fn an_incident_reads_well_at_every_size() {
    for (width, height) in SIZES {
        expect(&mut DashboardFixture::incident(), "incident", (width, height));
    }
}

#[test]
fn an_outage_is_seen_while_every_node_is_ready_as_far_as_the_controller_says() {
    let mut fixture = DashboardFixture::well();
    let nodes: Vec<String> = fixture.world.nodes().iter().map(|node| node.name.to_string()).collect();
    for node in &nodes[1..] {
        fixture.silence(node);
    }
    fixture.run(40);
    let screen = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    let strip = screen.lines().nth(2).expect("the strip");
    assert_eq!(strip.matches(['▪', '◌']).collect::<String>(), format!("▪{}", "◌".repeat(29)));
    expect(&mut fixture, "silent", (80, 24));
    expect(&mut fixture, "silent", (160, 48));
}

#[test]
fn the_information_sheet_has_controller_settings_and_watches() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("i");
    expect(&mut fixture, "information", (120, 40));
    expect(&mut fixture, "information", (80, 24));
    fixture.press("i");
    assert!(fixture.app.screen.overlays.top().is_none());
}

#[test]
fn the_timing_sheet_has_this_cluster_beside_the_profiles_of_the_field() {
    let mut fixture = DashboardFixture::well();
    fixture.press("a");
    assert!(fixture.app.next_timing_job().is_some());
    fixture.work_out_timing();
    assert!(fixture.app.next_timing_job().is_none(), "nothing has changed");
    expect(&mut fixture, "timing", (80, 24));
    expect(&mut fixture, "timing", (160, 48));
    fixture.press("a");
    assert!(fixture.app.screen.overlays.top().is_none());
}

#[test]
fn the_journal_tells_what_happened_and_leads_to_what_it_is_about() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("5");
    expect(&mut fixture, "journal", (80, 24));
    expect(&mut fixture, "journal", (120, 40));
    fixture.press("z");
    expect(&mut fixture, "journal-zoom", (120, 40));
    fixture.press("/tainted pool-a-05<Enter><Enter>");
    let subject = fixture.app.screen.overlays.detail().map(|detail| detail.subject.clone());
    assert_eq!(subject, Some(kordon::app::DetailSubject::Node("pool-a-05".into())));
    fixture.press("<Esc>");
    assert_eq!(fixture.app.screen.focus, Pane::Journal);
    fixture.remove_node("pool-a-05");
    fixture.run(1);
    fixture.press("<Enter>");
    assert_eq!(fixture.app.screen.message.as_deref(), Some("node pool-a-05 is gone"));
}

/// The cluster of [`DashboardFixture::maintenance`], with the focus on the node to be drained.
pub fn at_work() -> DashboardFixture {
    let mut fixture = DashboardFixture::maintenance();
    fixture.press("2/pool-a-01<Enter>");
    fixture
}

#[test]
fn no_key_sequence_panics_and_the_focus_is_always_on_a_pane() {
    use crossterm::event::KeyEvent;
    let mut keys: Vec<KeyEvent> = commands::COMMANDS
        .iter()
        .flat_map(|command| command.keys)
        .map(|chord| KeyEvent::from(*chord))
        .collect();
    keys.extend("ab:=-/ßNoExecute".chars().map(|letter| KeyEvent::from(KeyCode::Char(letter))));
    for seed in 0..8 {
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut fixture =
            if seed % 2 == 0 { DashboardFixture::maintenance() } else { DashboardFixture::incident() };
        for step in 0..600 {
            let key = keys[chance.usize(..keys.len())];
            fixture.app.on_key(key, fixture.now, fixture.now);
            // Some plans are computed before the next key, others later, at random.
            if chance.u8(..3) > 0 {
                fixture.plan();
            }
            let screen = &fixture.app.screen;
            assert!(screen.panes().contains(&screen.focus), "{:?} at {step} of seed {seed}", screen.focus);
            if step % 7 == 0 {
                drawn(&mut fixture, [(120, 40), (80, 24), (61, 15)][step % 3]);
            }
            if step % 150 == 149 {
                fixture.run(1);
            }
        }
    }
}

#[test]
fn help_is_the_command_table_with_what_applies_here_first() {
    let mut fixture = DashboardFixture::well();
    fixture.press("?");
    expect(&mut fixture, "help", (120, 48));
    fixture.press("/drain pods");
    let found = snapshot::plain(&drawn(&mut fixture, (120, 48)));
    assert!(
        found.contains("Drain: include pods with emptyDir volumes") && !found.contains("Quit."),
        "{found}"
    );
    fixture.press("<Enter>q");
    assert!(snapshot::plain(&drawn(&mut fixture, (120, 48))).contains("/drain pods"), "q is a command again");
    fixture.press("<Esc>");
    let all = snapshot::plain(&drawn(&mut fixture, (120, 48)));
    assert!(all.contains(" Keys ") && !all.contains("/drain pods"), "{all}");
    fixture.press("<Esc>");
    assert!(!snapshot::plain(&drawn(&mut fixture, (120, 48))).contains(" Keys "));
}

#[test]
fn the_help_and_the_footer_show_beforehand_what_one_may_not_do() {
    let mut fixture = DashboardFixture::well();
    let patch = Permission::on_node("patch", &"".into());
    let key = |fixture: &mut DashboardFixture| {
        let buffer = drawn(fixture, (120, 48));
        let at = |text: &str| {
            let last = buffer.area.bottom() - 1;
            let line: Vec<&str> = (0..buffer.area.width).map(|x| buffer[(x, last)].symbol()).collect();
            let place = line.concat().find(text).expect("the hint");
            buffer[(u16::try_from(place).expect("on screen"), last)].style()
        };
        (at("c cordon"), at("x what-if"))
    };
    fixture.press("2");
    let before = key(&mut fixture);
    assert_eq!(before.0, before.1, "nothing was asked");
    fixture.checks.missing = vec![patch];
    fixture.app.rights.ask();
    fixture.serve();
    let after = key(&mut fixture);
    assert_ne!(after.0, before.0, "the key of a cordon is dimmed");
    assert_eq!(after.1, before.1);
    fixture.press("?");
    expect(&mut fixture, "help-without-rights", (120, 40));
    fixture.press("/cordon<Enter>");
    expect(&mut fixture, "help-without-rights", (80, 24));
    fixture.press("<Esc><Esc>:cordon");
    expect(&mut fixture, "palette-without-rights", (80, 24));
    fixture.press("<Enter>");
    expect(&mut fixture, "plan-without-rights", (80, 24));
}

#[test]
fn the_tour_explains_what_is_on_the_screen_step_by_step() {
    for (width, height) in [(80, 24), (120, 40)] {
        let mut fixture = DashboardFixture::incident();
        fixture.press(":tour<Enter>");
        for step in TourStep::ALL {
            expect(&mut fixture, &format!("tour-{}", step.number()), (width, height));
            fixture.press("n");
        }
        assert_eq!(fixture.app.screen.overlays.tour(), None, "it ends after the last step");
    }
}

#[test]
fn the_tour_goes_back_ends_at_once_and_gives_way_to_a_question() {
    let mut fixture = DashboardFixture::incident();
    let step = |fixture: &DashboardFixture| fixture.app.screen.overlays.tour();
    fixture.app.screen.start_tour();
    fixture.press("p");
    assert_eq!(step(&fixture), Some(TourStep::Strip), "there is none before the first");
    fixture.press("<Enter>n");
    assert_eq!(step(&fixture), Some(TourStep::Why));
    fixture.press("<Backspace>");
    assert_eq!(step(&fixture), Some(TourStep::Verdict));
    fixture.press("r");
    assert_eq!(step(&fixture), Some(TourStep::Verdict), "other keys do nothing meanwhile");
    assert!(fixture.app.screen.overlays.plan().is_none());
    assert!(snapshot::plain(&drawn(&mut fixture, (80, 24))).contains("Esc ends the tour"));
    fixture.press("<Esc>");
    assert_eq!(step(&fixture), None);

    let mut fixture = about_to_drain();
    fixture.app.screen.start_tour();
    fixture.app.screen.overlays.plan().expect("the tour lies over the plan");
    update(&mut fixture.app, UserAction::Apply, START);
    fixture.serve();
    assert_eq!(step(&fixture), None, "a question is never below the tour");
    assert!(fixture.app.screen.overlays.question().is_some());
}

#[test]
fn before_anything_is_known_the_screen_says_what_it_waits_for() {
    expect(&mut DashboardFixture::new(), "connecting", (100, 30));
}

#[test]
fn loading_counts_what_has_come() {
    let mut fixture = DashboardFixture::well();
    fixture.health(FeedKind::Pods, FeedState::Listing { received: 61_500, expected: Some(150_000) });
    expect(&mut fixture, "loading", (120, 40));
    let mut fixture = DashboardFixture::new();
    fixture.health(FeedKind::Nodes, FeedState::Listing { received: 1200, expected: Some(5000) });
    fixture.health(FeedKind::Leases, FeedState::Connecting);
    expect(&mut fixture, "loading-nodes", (100, 30));
}

#[test]
fn an_empty_cluster_says_so() {
    let mut fixture = DashboardFixture::new();
    fixture.lists();
    expect(&mut fixture, "empty", (100, 30));
}

#[test]
fn a_lost_link_is_staleness_with_an_age_and_nothing_is_judged() {
    let mut fixture = DashboardFixture::incident();
    let since = fixture.now;
    for kind in FeedKind::ALL {
        fixture.health(kind, FeedState::Broken { since, error: "connection reset by peer".into() });
    }
    fixture.run_blind(47);
    expect(&mut fixture, "stale", (120, 40));
}

#[test]
fn a_controller_that_stopped_is_named_as_the_reason_why_nothing_happens() {
    let mut fixture = DashboardFixture::incident();
    fixture.led = false;
    fixture.run(50);
    expect(&mut fixture, "no-controller", (120, 40));
}

#[test]
fn a_kind_that_may_not_be_listed_is_named_and_the_rest_works() {
    let mut fixture = DashboardFixture::well();
    let error =
        "pods is forbidden: User \"sre@example.com\" cannot list resource \"pods\" at the cluster scope";
    fixture.health(FeedKind::Pods, FeedState::Forbidden { error: error.into() });
    let gone =
        fixture.app.model.cluster.pods().iter().map(|pod| Change::Pod(ObjectEvent::Deleted(pod.key.clone())));
    let gone = FeedEvent::Changes(gone.collect());
    fixture.app.on_watch_event(gone, fixture.now);
    fixture.run(1);
    expect(&mut fixture, "forbidden", (120, 40));
    fixture.press("r");
    expect(&mut fixture, "forbidden-drain", (120, 40));
    fixture.press("<Esc>x");
    expect(&mut fixture, "forbidden-failure", (120, 40));
}

#[test]
fn what_may_not_be_listed_is_named_in_one_line() {
    let mut fixture = DashboardFixture::well();
    for kind in [FeedKind::Pods, FeedKind::Services, FeedKind::Claims, FeedKind::CsiNodes] {
        fixture.health(kind, FeedState::Forbidden { error: "no".into() });
    }
    fixture.run(1);
    expect(&mut fixture, "forbidden-several", (120, 40));
}

#[test]
fn a_zone_outage_shows_the_queue_and_its_slots() {
    let mut fixture = DashboardFixture::well();
    for number in 1..=8 {
        fixture.silence(&format!("pool-b-{number:02}"));
    }
    fixture.run(68);
    expect(&mut fixture, "outage", (160, 48));
    fixture.press("4");
    expect(&mut fixture, "forecast-outage", (160, 48));
    expect(&mut fixture, "forecast-outage", (80, 24));
    fixture.press("hz");
    fixture.run(1);
    expect(&mut fixture, "forecast-horizon", (160, 48));
}

#[test]
fn master_disruption_is_explained() {
    let mut fixture = DashboardFixture::well();
    for zone in ["a", "b", "c"] {
        for number in 1..=10 {
            fixture.silence(&format!("pool-{zone}-{number:02}"));
        }
    }
    fixture.run(68);
    fixture.press("1z");
    expect(&mut fixture, "all-down", (120, 40));
}

#[test]
fn enforce_and_read_only_look_different_from_dry_run() {
    for (mode, name) in [(Mode::Enforce, "enforce"), (Mode::ReadOnly, "read-only")] {
        let mut fixture = DashboardFixture::well();
        fixture.app.operations.mode = mode;
        expect(&mut fixture, name, (100, 30));
    }
}

#[test]
fn a_marked_context_has_its_word_in_the_header() {
    let mut fixture = DashboardFixture::well();
    fixture.app.preferences.mark =
        Some(ContextMark { word: "PRODUCTION".into(), colour: MarkColour::parse("#c00000") });
    expect(&mut fixture, "marked-context", (120, 30));
}

#[test]
fn a_revived_node_cancels_its_evictions_and_says_so() {
    let mut fixture = DashboardFixture::incident();
    fixture.run(20);
    fixture.revive("pool-a-03");
    fixture.run(7);
    fixture.press("3/state:c<Enter>");
    expect(&mut fixture, "cancelled", (120, 40));
}

#[test]
fn a_terminal_too_small_gets_the_answers_in_short() {
    expect(&mut DashboardFixture::incident(), "small", (40, 24));
}

#[test]
fn text_from_the_cluster_is_shown_and_never_obeyed() {
    let mut fixture = hostile();
    for size in [(120, 40), (220, 60)] {
        for keys in ["2", "w", "3", "4", "1", "2<Enter>", "/zone\u{202e}"] {
            fixture.press(keys);
            for (place, cell) in drawn(&mut fixture, size).content.iter().enumerate() {
                let bad = |letter: char| {
                    letter.is_control()
                        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
                };
                assert!(!cell.symbol().chars().any(bad), "{:?} at {place} after {keys}", cell.symbol());
            }
        }
        fixture.press("<Esc><Esc><Esc>w");
    }
    expect(&mut hostile(), "hostile", (120, 40));
}

#[test]
fn no_size_makes_a_panic() {
    let mut states = [DashboardFixture::incident(), DashboardFixture::new(), hostile()];
    for fixture in &mut states {
        for keys in ["", "3", "4", "1", "2<Enter>", "w", "z", "?", "?/ab", "<Esc><Esc>2r", "<Esc>t"] {
            if !keys.contains("<Enter>") || !fixture.app.screen.nodes.list.is_empty() {
                fixture.press(keys);
            }
            for width in [1, 2, 3, 5, 9, 20, 40, 59, 60, 61, 80, 99, 100, 120, 300] {
                for height in [1, 2, 3, 5, 14, 15, 18, 19, 24, 30, 80] {
                    let buffer = drawn(fixture, (width, height));
                    assert!(
                        buffer.content.iter().any(|cell| cell.symbol() != " "),
                        "blank at {width}x{height}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_theme_is_chosen_by_its_name() {
    let mut fixture = DashboardFixture::well();
    fixture.press(":theme solarized-light<Enter>");
    assert_eq!(*fixture.app.screen.theme(), ThemeName::SolarizedLight);
    fixture.press(":theme solarised<Enter>");
    let said = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    assert!(said.contains("there is no theme solarised"), "{said}");
    assert_eq!(*fixture.app.screen.theme(), ThemeName::SolarizedLight);
    fixture.press("<Esc>T");
    let name = fixture.app.screen.theme().name();
    assert_eq!(fixture.app.screen.message, Some(format!("theme {name}")));
    assert_ne!(name, ThemeName::SolarizedLight.as_str());
}

#[test]
fn a_theme_is_seen_before_it_is_chosen_and_the_one_before_comes_back() {
    let mut fixture = DashboardFixture::well();
    let theme = |fixture: &DashboardFixture| fixture.app.screen.theme().name().to_owned();
    fixture.press(":theme<Enter>");
    assert_eq!(theme(&fixture), "dark");
    fixture.press("<Down>");
    assert_eq!(theme(&fixture), "light", "it is shown at once");
    fixture.press("<Up><Up>");
    assert_eq!(theme(&fixture), "mono", "around the end");
    fixture.press("sol<Down>");
    assert_eq!(theme(&fixture), "solarized-light");
    expect(&mut fixture, "themes", (80, 24));
    expect(&mut fixture, "themes", (120, 40));
    fixture.press("<Esc>");
    assert_eq!(theme(&fixture), "dark");
    fixture.press(":theme<Enter>nor");
    fixture.press("x");
    assert_eq!(theme(&fixture), "dark", "no name has these letters");
    fixture.press("<Backspace><Enter>");
    assert_eq!(theme(&fixture), "nord");
    assert!(fixture.app.screen.overlays.top().is_none());
}

#[test]
fn an_empty_pane_says_what_to_do_next() {
    let mut fixture = DashboardFixture::well();
    let mut said = |keys: &str| {
        fixture.press(keys);
        snapshot::plain(&drawn(&mut fixture, (120, 40)))
    };
    for (keys, expected) in [
        ("3z", "none expected · x on a node shows what its failure would cause"),
        ("4", "all nodes healthy, no evictions · x on a node"),
        ("5", "no entries yet · what happens from now on is listed here"),
        ("7", "no pod left in this session · pods that leave from now on"),
    ] {
        let screen = said(keys);
        assert!(screen.contains(expected), "{keys}: {screen}");
    }
}

/// The cluster of [`DashboardFixture::maintenance`] in enforce mode, just before the drain is applied.
pub fn about_to_drain() -> DashboardFixture {
    let mut fixture = at_work();
    fixture.press(":reason new kernel<Enter>:enforce 30m<Enter>rDEF");
    fixture
}

/// A drain of the node that was interrupted after the cordon.
pub fn interrupted(fixture: &DashboardFixture) -> JournaledOperation {
    let node = fixture.app.model.cluster.node(&"pool-a-01".into()).expect("there");
    let uid = node.uid.clone();
    let line = |kind| JournalLine {
        at: START - Span::from_secs(600),
        operation: "drain-20260102-025000-zx81c".parse().unwrap(),
        kind,
    };
    let options = DrainOptions {
        force: true,
        ignore_daemonsets: true,
        delete_emptydir_data: true,
        ..DrainOptions::default()
    };
    let start = OperationStart {
        by: "sre@laptop".into(),
        action: "drain".into(),
        drain: Some(options),
        nodes: vec![("pool-a-01".into(), uid.clone())],
        ..OperationStart::default()
    };
    let request = LineKind::Request {
        id: 1,
        object: "node/pool-a-01".into(),
        request: "cordon".into(),
        why: String::new(),
        method: "PATCH".into(),
        path: String::new(),
        body: serde_json::Value::Null,
        undo: Some(WriteUndo::Node(NodeUndo {
            node: "pool-a-01".into(),
            uid,
            steps: vec![UndoStep::Uncordon],
        })),
    };
    let lines = [line(LineKind::Started(Box::new(start))), line(request)];
    operations(&lines).remove(0)
}

#[test]
fn every_theme_draws_every_state() {
    for theme in ThemeName::ALL.iter().copied() {
        let mut fixture = DashboardFixture::incident();
        while *fixture.app.screen.theme() != theme {
            fixture.press("T");
        }
        fixture.app.screen.message = None;
        let buffer = drawn(&mut fixture, (160, 48));
        gallery(&format!("theme-{}", theme.as_str()), &buffer, Theme::bundled(theme));
        assert_eq!(
            snapshot::plain(&buffer),
            snapshot::plain(&drawn(&mut DashboardFixture::incident(), (160, 48))),
            "the same words"
        );
    }
}

/// A cluster with hostile text in all strings.
fn hostile() -> DashboardFixture {
    let mut fixture = DashboardFixture::well();
    let evil = "\x1b]0;owned\x07\x1b[2J\u{202e}gnp.exe\u{200b}\r\n\x1b[31m";
    let now = fixture.now;
    fixture.change_node("pool-a-01", |node| {
        let condition = Condition {
            kind: format!("Evil{evil}").into(),
            status: ConditionStatus::True,
            reason: evil.into(),
            message: evil.into(),
            last_heartbeat: Some(ClusterTime::new(now)),
            last_transition: Some(ClusterTime::new(now)),
        };
        let mut conditions = node.conditions.to_vec();
        for own in &mut conditions {
            own.reason = evil.into();
            own.message = evil.into();
            own.status = if own.kind == *"Ready" { ConditionStatus::False } else { own.status };
        }
        conditions.push(condition);
        node.conditions = conditions.into();
        node.address = evil.into();
        node.kubelet_version = evil.into();
        node.taints =
            [taint(&format!("evil/{evil}"), TaintEffect::NoExecute, Some(ClusterTime::new(now)))].into();
        let labels = [
            ("topology.kubernetes.io/zone".into(), format!("z{evil}").into()),
            (format!("node-role.kubernetes.io/{evil}").into(), "".into()),
            ("node.kubernetes.io/instance-type".into(), evil.into()),
        ];
        node.labels = node.labels.entries().iter().cloned().chain(labels).collect();
        node.unschedulable = true;
        node.cordon_note =
            Some(Arc::new(CordonNote { by: evil.into(), reason: evil.into(), ..CordonNote::default() }));
        node.drain_claim = Some(Arc::new(DrainClaim { by: evil.into(), ..DrainClaim::default() }));
    });
    fixture.add_node(&format!("node{evil}"), "a");
    fixture.add_pod(
        &format!("ns{evil}/pod{evil}-1"),
        "pool-a-01",
        WorkloadKind::ReplicaSet,
        Vec::new(),
        100,
        100,
    );
    fixture.app.model.connection.context = evil.into();
    fixture.app.model.connection.server = evil.into();
    fixture.app.model.connection.identity = Some(evil.into());
    fixture.app.model.connection.server_version = Some(evil.into());
    fixture.app.on_watch_event(FeedEvent::Trouble(format!("it broke: {evil}")), now);
    fixture.health(FeedKind::Budgets, FeedState::Broken { since: now, error: evil.into() });
    fixture.run(3);
    fixture.terminate("shop/cart-00-x7f2q", &[evil]);
    fixture.run(1);
    assert!(
        fixture.app.model.cluster.pod(&Key::new(&format!("ns{evil}"), &format!("pod{evil}-1"))).is_some()
    );
    fixture
}

pub fn drawn(fixture: &mut DashboardFixture, size: (u16, u16)) -> Buffer {
    terminal_of(fixture, size).backend().buffer().clone()
}

/// Draws the dashboard on a terminal in memory.
pub fn terminal_of(fixture: &mut DashboardFixture, (width, height): (u16, u16)) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a buffer");
    let drawn = terminal.draw_app(&fixture.app, fixture.now).expect("a buffer");
    fixture.app.screen.drawn(&drawn.rows);
    fixture.app.screen.targets = drawn.targets;
    fixture.app.screen.drawn_layout = drawn.layout;
    // The first drawing shows how much room the forecast has. The second drawing merges lines of the forecast's chart
    // (lanes) until they fit.
    fixture.app.arrange(fixture.now);
    let drawn = terminal.draw_app(&fixture.app, fixture.now).expect("a buffer");
    fixture.app.screen.drawn(&drawn.rows);
    fixture.app.screen.targets = drawn.targets;
    fixture.app.screen.drawn_layout = drawn.layout;
    terminal
}

/// With `--ascii`, frames have only ASCII characters, except in the cluster's own text.
fn expect_ascii(fixture: &mut DashboardFixture, name: &str, size: (u16, u16)) {
    fixture.app.screen.glyphs = Glyphs::Ascii;
    let text = snapshot::plain(&drawn(fixture, size));
    fixture.app.screen.glyphs = Glyphs::Unicode;
    let others: BTreeSet<char> = text.chars().filter(|letter| !letter.is_ascii()).collect();
    assert!(others.is_empty() || name.starts_with("hostile"), "{name} has {others:?}:\n{text}");
}

/// Compares a screen with its golden file.
fn expect(fixture: &mut DashboardFixture, name: &str, size: (u16, u16)) {
    let buffer = drawn(fixture, size);
    let name = format!("{name}-{}x{}", size.0, size.1);
    gallery(&name, &buffer, &Theme::chosen(fixture.app.screen.theme()));
    let text = snapshot::plain(&buffer);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).expect("tests/screens can be written");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{name} differs; with UPDATE=1 read the difference\n{text}");
    expect_ascii(fixture, &name, size);
}

/// Compares an image of the documentation with the screen that it shows.
pub fn expect_picture(name: &str, buffer: &Buffer) {
    let picture = snapshot::svg(buffer, Theme::bundled(ThemeName::ALL[0]));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(format!("{name}.svg"));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &picture).expect("docs can be written");
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    assert!(known == picture, "docs/{name}.svg is older than the screen; UPDATE=1 remakes it");
}

/// Writes a screen to the gallery if `GALLERY` is set.
fn gallery(name: &str, buffer: &Buffer, theme: &Theme) {
    if let Some(folder) = std::env::var_os("GALLERY") {
        snapshot::write(&Path::new(&folder).join(format!("{name}.svg")), buffer, theme).expect("the gallery");
    }
}

#[test]
fn a_silent_node_never_looks_ready_and_one_that_comes_and_goes_is_counted() {
    let mut fixture = DashboardFixture::well();
    fixture.silence("pool-b-05");
    let row = |fixture: &mut DashboardFixture| {
        let screen = snapshot::plain(&drawn(fixture, (160, 48)));
        let is_row = |line: &&str| line.contains("pool-b-05") && line.contains("  b   ");
        screen.lines().find(is_row).expect("its row").to_owned()
    };
    fixture.run(18);
    assert!(row(&mut fixture).contains("◦ pool-b-05     Late"), "{}", row(&mut fixture));
    for _ in 0..2 {
        fixture.run(26);
        assert!(row(&mut fixture).contains("◌ pool-b-05"), "{}", row(&mut fixture));
        fixture.revive("pool-b-05");
        fixture.run(1);
        fixture.silence("pool-b-05");
    }
    assert!(row(&mut fixture).contains("▪ pool-b-05 ⇅4"), "{}", row(&mut fixture));
    fixture.press("/state:ready");
    fixture.run(26);
    assert_eq!(fixture.app.screen.nodes.list.len(), 29, "it is Silent again");
}

#[test]
fn a_cordon_says_who_made_it_why_and_until_when() {
    let mut fixture = DashboardFixture::well();
    let now = fixture.now;
    let note = |by: &str, left: i64| CordonNote {
        by: by.into(),
        reason: "new kernel".into(),
        at: now - Span::from_secs(60),
        until: Some(now + Span::from_secs(left)),
        operation: "cordon-1".parse().ok(),
    };
    for (node, note) in [("pool-a-01", note("alice", 7200)), ("pool-a-02", note("bob", -300))] {
        fixture.change_node(node, |node| {
            node.unschedulable = true;
            node.cordon_note = Some(Arc::new(note));
        });
    }
    let claim = DrainClaim {
        by: "carol".into(),
        operation: "drain-1".parse().unwrap(),
        renewed: now - Span::from_secs(300),
        ..DrainClaim::default()
    };
    let running = DrainClaim { renewed: now, pods: Some(8), ..claim.clone() };
    fixture.change_node("pool-a-03", |node| node.drain_claim = Some(Arc::new(claim)));
    fixture.change_node("pool-b-01", |node| node.drain_claim = Some(Arc::new(running)));
    fixture.run(0);
    let table = snapshot::plain(&drawn(&mut fixture, (220, 60)));
    for cell in [
        "2h00m left · alice: new kernel",
        "expired 5m00s ago · bob: new kernel",
        "drain by carol (operation drain-1)",
        "⊘ pool-a-01     Cordoned 1m00s",
        "▪ pool-a-03     Ready",
        "⊖ pool-b-01     Draining 6/8",
    ] {
        assert!(table.contains(cell), "no {cell:?} in\n{table}");
    }
    fixture.press("2/pool-a-02<Enter>");
    let narrow = snapshot::plain(&drawn(&mut fixture, (100, 40)));
    assert!(narrow.contains("cordoned by bob: new kernel, until 2026-01-02T02:56:00Z"), "{narrow}");
    fixture.press("d");
    let detail = snapshot::plain(&drawn(&mut fixture, (220, 60)));
    assert!(
        detail.contains("by bob: new kernel, until 2026-01-02T02:56:00Z (expired 5m00s ago)"),
        "{detail}"
    );
}

#[test]
fn the_fixture_starts_at_its_stated_time() {
    assert_eq!(START.to_time(), "2026-01-02T03:00:00Z");
    assert_eq!(DashboardFixture::well().now, START + Span::from_secs(60));
    assert!(Timestamp::EPOCH < START);
}
