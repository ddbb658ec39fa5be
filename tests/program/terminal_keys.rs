//! Keys, the mouse and pasted text, as real terminals send them: recordings are replayed on a pseudo terminal.
//!
//! `tests/terminals` has the recordings. Each key was pressed in an X server (`xdotool`). A program that requests the
//! same terminal modes as the dashboard wrote down the bytes that it received.

use std::{collections::BTreeMap, fs, path::Path};

use crossterm::event::{Event, EventStream, KeyEventKind, MouseButton, MouseEventKind};
use futures::StreamExt;
use kordon::{
    app::{Pane, chord::Chord, overlays::Overlay},
    run::tty::Tty,
};
use portable_pty::CommandBuilder;
use serde::Deserialize;

use crate::{common::terminal::Terminal, dashboard_fixture::DashboardFixture};

/// Environment variable. If it is set, this test binary acts as the program that runs on the terminal.
const CHILD: &str = "KORDON_TERMINAL_KEYS";

/// A recording.
#[derive(Deserialize)]
struct Recording {
    /// The pressed keys or buttons, and the bytes that arrived.
    pressed: Vec<(String, String)>,
    /// Keys for which this terminal sends the bytes of another key, each with that other key.
    others: BTreeMap<String, String>,
}

/// All recordings, by their names.
fn recordings() -> BTreeMap<String, Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/terminals");
    let files = fs::read_dir(folder).expect("recordings").map(|file| file.expect("a file").path());
    let named = files.map(|file| {
        let text = fs::read_to_string(&file).expect("a recording");
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, serde_json::from_str(&text).expect("JSON"))
    });
    named.collect()
}

#[test]
fn the_program_that_prints_events() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        let _tty = Tty::enter(true).expect("a terminal");
        let mut events = EventStream::new();
        println!("ready\r");
        for number in 1.. {
            let Some(Ok(event)) = events.next().await else { return };
            println!("{} #{number}\r", words(&event));
        }
    });
}

/// Describes an event in words. Keys are written as in the help.
fn words(event: &Event) -> String {
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Press => Chord::from(*key).to_string(),
        Event::Mouse(mouse) => {
            let what = match mouse.kind {
                MouseEventKind::Down(MouseButton::Left) => "press",
                MouseEventKind::Up(MouseButton::Left) => "release",
                MouseEventKind::Drag(MouseButton::Left) => "drag",
                MouseEventKind::ScrollUp => "wheel up",
                MouseEventKind::ScrollDown => "wheel down",
                MouseEventKind::Moved => "move",
                _ => "another button",
            };
            format!("{what} at {} {}", mouse.column, mouse.row)
        }
        Event::Paste(text) => format!("paste {}", text.replace(['\r', '\n'], "⏎")),
        Event::FocusGained => "focus".into(),
        Event::FocusLost => "no focus".into(),
        Event::Resize(..) | Event::Key(_) => "something else".into(),
    }
}

/// Returns the events that a label of a recording stands for, without the position of the mouse.
fn expected(label: &str) -> Vec<String> {
    let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match label {
        "move" => list(&["move"]),
        "click" => list(&["press", "release"]),
        "wheel-up" => list(&["wheel up"]),
        "wheel-down" => list(&["wheel down"]),
        "drag-press" => list(&["press"]),
        "drag-move" => list(&["drag"]),
        "drag-release" => list(&["release"]),
        "click-right" => list(&["another button", "another button"]),
        "paste" => list(&["paste a b⏎c:q"]),
        "focus-out" => list(&["no focus"]),
        "focus-in" => list(&["focus"]),
        // With arrow keys, Shift is not distinguished from no Shift.
        key => vec![key.trim_start_matches("Shift-").parse::<Chord>().map_or_else(
            |_| "Shift-Tab".to_owned(),
            |chord| if key == "Shift-Tab" { "Shift-Tab".into() } else { chord.to_string() },
        )],
    }
}

#[test]
fn every_key_that_was_recorded_is_understood() {
    let recordings = recordings();
    assert!(recordings.len() >= 5, "{:?}", recordings.keys());
    for (name, recording) in recordings {
        let mut command = CommandBuilder::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "terminal_keys::the_program_that_prints_events", "--nocapture"]);
        command.env(CHILD, "1");
        let mut terminal = Terminal::with(command);
        terminal.wait_for_raw("ready\r\n");
        let mut number = 0;
        for (label, sent) in recording.pressed.iter().filter(|(_, sent)| !sent.is_empty()) {
            let other = recording.others.get(label);
            let expected = other.map_or_else(|| expected(label), |other| vec![other.clone()]);
            // Waits for the events before anything else is sent: an Esc counts as the start of a sequence if more bytes
            // follow at once.
            terminal.type_in(sent);
            for event in expected {
                number += 1;
                let end = format!(" #{number}\r\n");
                terminal.wait_for_raw(&end);
                let raw = terminal.raw();
                let line = raw.split(&end).next().and_then(|text| text.rsplit('\n').next());
                let line = line.unwrap_or_default();
                assert!(line.starts_with(&event), "{name}, {label}: {line:?} is not {event}");
            }
        }
        terminal.child.kill().expect("it runs");
        terminal.end();
    }
}

#[test]
fn no_recording_lacks_a_key_that_the_dashboard_has() {
    for (name, recording) in recordings() {
        let missing = recording.pressed.iter().filter(|(_, sent)| sent.is_empty());
        let missing: Vec<&str> = missing.map(|(label, _)| label.as_str()).collect();
        // Shift-click is missing because the terminal itself selects text. Changes of the focus are missing for
        // `screen`, which does not request reports of the focus.
        assert!(
            missing.iter().all(|label| ["Shift-click", "focus-out", "focus-in"].contains(label)),
            "{name}: {missing:?}"
        );
    }
}

#[test]
fn what_is_pasted_is_inserted_where_something_is_typed_and_runs_nothing_elsewhere() {
    let mut fixture = DashboardFixture::incident();
    let now = fixture.now;
    fixture.press("2");
    fixture.app.on_paste("q", now);
    let message = |fixture: &DashboardFixture| fixture.app.screen.message.clone().unwrap_or_default();
    assert!(message(&fixture).starts_with("what was pasted was left out"), "{}", message(&fixture));
    fixture.press("/");
    fixture.app.on_paste("pool-b\u{1b}[A\r\n", now);
    assert_eq!(fixture.app.screen.filter(Pane::Nodes).text(), "pool-b [A");
    fixture.press("<Esc>:");
    fixture.app.on_paste("drain pool-b-02\n", now);
    let Some(Overlay::Palette(palette)) = fixture.app.screen.overlays.top() else {
        panic!("a line break runs nothing")
    };
    assert_eq!(palette.input.value(), "drain pool-b-02");
}
