//! Every key and every hint in the footer does something; a key that does nothing is explained.

use std::{collections::BTreeSet, sync::Arc};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use kordon::{
    app::{
        HistoryState, Mode, Playback, PlaybackKind, Reaction,
        commands::{self, COMMANDS, Chord, Command, UserAction},
        update,
    },
    model::{Moment, MomentKind, VerdictLevel},
};
use kordon_time::Span;
use ratatui::{buffer::Buffer, layout::Position};

use crate::{
    dashboard_fixture::DashboardFixture,
    screens::{about_to_drain, interrupted, terminal_of},
};

/// Large enough for a plan beside the nodes, so that zooming has a visible effect.
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
    ("pods", || pressed(DashboardFixture::incident(), "2/pool-b-02<Enter><Enter>j")),
    ("pods, marked", || pressed(DashboardFixture::incident(), "2/pool-b-02<Enter><Enter><Space>")),
    ("zones", || pressed(DashboardFixture::incident(), "1j")),
    ("evictions", || pressed(DashboardFixture::incident(), "3j")),
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

/// Shows a recording between two notable moments.
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

fn event(chord: Chord) -> KeyEvent {
    KeyEvent::new(chord.code, if chord.ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE })
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
    let action = commands::action(event(chord), fixture.app.screen.key_focus());
    let action = action.unwrap_or_else(|| panic!("{chord} is no key of {}", situation.0));
    let reaction = update(&mut fixture.app, action, fixture.now);
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
                // The key may run another command in this situation.
                let is_it =
                    commands::action(event(*chord), fixture.app.screen.key_focus()) == Some(command.action);
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
        match commands::action(keys, fixture.app.screen.key_focus()) {
            Some(action) => drop(update(&mut fixture.app, action, fixture.now)),
            None => fixture.app.on_unknown_key(keys),
        }
        fixture.app.screen.message.clone().unwrap_or_default()
    };
    assert_eq!(
        say(KeyEvent::from(KeyCode::Char('r'))),
        "r (drain) is a key in the nodes, pods, detail: ? shows those of this pane"
    );
    assert_eq!(say(KeyEvent::from(KeyCode::F(5))), "F5 is not a key: ? shows them all");
    assert_eq!(say(KeyEvent::from(KeyCode::Char('d'))), "d does nothing here: ? shows what does");
    assert_eq!(say(KeyEvent::from(KeyCode::Char('z'))), "", "it does");
    // The detail of a node has no pod to evict.
    let mut fixture = pressed(DashboardFixture::incident(), "2/pool-b-02<Enter>d");
    let evict = COMMANDS.iter().find(|command| command.name == "evict").expect("a command");
    assert!(!fixture.app.offers(evict));
    fixture.press("e");
    assert_eq!(fixture.app.screen.message.as_deref(), Some("e does nothing here: ? shows what does"));
    assert_eq!(evict.action, UserAction::Plan(kordon::app::preview::PlanKind::Evict));
}
