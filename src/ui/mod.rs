//! Draws the screen: `draw(frame, &App, now)`. It reads the app and makes no decisions.

pub mod ascii;
pub mod banner;
mod column_choice;
pub mod contrast;
pub mod dialog;
pub mod footer;
pub mod help;
pub mod info;
pub mod exported_table;
pub mod layout;
mod maintenance;
pub mod mark;
pub mod markdown;
pub mod node_strip;
pub mod palette;
pub mod panes;
pub mod playback;
pub mod scene;
pub mod shown_rows;
pub mod small;
pub mod snapshot;
pub mod text;
mod text_sheet;
pub mod theme;
mod theme_choice;
mod timing;
mod tour;
pub mod widgets;

use std::{cell::RefCell, collections::BTreeMap};

use ratatui::{Frame, buffer::Buffer, layout::Rect};

pub use scene::Scene;
pub use theme::{Role, Theme, ThemeError};

use crate::{
    app::{
        App, Glyphs, Pane,
        overlays::Overlay,
        pane_layout::DrawnLayout,
        screen_part::{MouseTarget, ScreenPart},
    },
    model::ClusterVerdict,
};
use kordon_core::visible;
use kordon_time::Timestamp;
use layout::{ExtraLines, ScreenLayout, Slot};
use shown_rows::ShownRows;

/// Data that drawing returns in addition to the frame.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// Number of rows that fit each drawn pane.
    pub rows: BTreeMap<Pane, usize>,
    /// Columns and rows of the screen.
    pub size: (u16, u16),
    /// Title for the terminal: the cluster and its verdict.
    pub title: String,
    /// Parts that can be clicked, those on top last.
    pub targets: Vec<MouseTarget>,
    /// Borders of the panes, and where panes can be moved.
    pub layout: DrawnLayout,
}

/// Draws the screen.
pub fn draw(frame: &mut Frame, app: &App, now: Timestamp) -> Drawn {
    let area = frame.area();
    let (mut drawn, cursor) = paint(frame.buffer_mut(), area, app, now);
    drawn.size = (area.width, area.height);
    if app.screen.glyphs == Glyphs::Ascii {
        ascii::replace(frame.buffer_mut());
        drawn.title = ascii::text(&drawn.title);
    }
    if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
    drawn
}

/// Size of the area that rows are drawn into when they are needed as text. It only has to be wide enough that no pane
/// shortens its texts.
const ROOM: Rect = Rect { x: 0, y: 0, width: 400, height: 60 };

/// The rows of the focused pane as text.
pub fn shown_rows(app: &App, now: Timestamp) -> ShownRows {
    let verdict = ClusterVerdict::new(app.shown(), app.shown_at(now));
    let (targets, rows) = (RefCell::default(), RefCell::default());
    let pane = app.screen.focus;
    let slots = [Slot { area: ROOM, tabs: vec![pane], active: pane }];
    let recorder = Some((pane, &rows));
    let scene = Scene { recorder, slots: &slots, ..Scene::new(app, &verdict, &targets, now) };
    panes::draw(&scene, pane, ROOM, &mut Buffer::empty(ROOM));
    rows.take()
}

/// Title of the terminal: `prod-eu: ✖ zone b down (8 of 8)`.
fn title(scene: &Scene) -> String {
    let verdict = scene.verdict;
    let title = format!("{}: {} {}", scene.shown.connection.context, verdict.level.glyph(), verdict.text());
    visible::text(&title).into_owned()
}

/// Draws the screen into a buffer. Returns the position of the cursor while text is typed.
fn paint(buf: &mut Buffer, area: Rect, app: &App, now: Timestamp) -> (Drawn, Option<(u16, u16)>) {
    let verdict = ClusterVerdict::new(app.shown(), app.shown_at(now));
    let targets = RefCell::default();
    let scene = Scene::new(app, &verdict, &targets, now);
    buf.set_style(area, scene.style(Role::Base));
    let mut drawn = Drawn { title: title(&scene), ..Drawn::default() };
    let banner = !app.operations.interrupted.is_empty();
    let extra = ExtraLines { banner, playback: app.playback.is_some() };
    let Some(plan) = ScreenLayout::new(area, &app.screen, scene.shown.views.zones.len(), extra) else {
        small::draw(&scene, area, buf);
        return (drawn, None);
    };
    let scene = Scene { framed: plan.framed, slots: &plan.slots, ..scene };
    panes::header::draw(&scene, plan.header, buf);
    if let (Some(playback), Some(area)) = (&app.playback, plan.playback) {
        playback::draw(&scene, playback, area, buf);
    }
    if let Some(area) = plan.banner {
        banner::draw(&scene, area, buf);
    }
    for slot in &plan.slots {
        scene.can_click(slot.area, ScreenPart::Pane(slot.active));
    }
    for (index, border) in plan.drawn.borders.iter().enumerate() {
        scene.can_click(border.line(), ScreenPart::Border(index));
    }
    for slot in &plan.slots {
        drawn.rows.insert(slot.active, panes::draw(&scene, slot.active, slot.area, buf));
    }
    let mut cursor = footer::draw(&scene, plan.footer, buf);
    for overlay in app.screen.overlays.iter() {
        match overlay {
            Overlay::Help(sheet) => help::draw(&scene, sheet, area, buf),
            Overlay::Info(scrolled) => info::draw(&scene, *scrolled, area, buf),
            Overlay::Timing(sheet) => timing::draw(&scene, sheet, area, buf),
            Overlay::Maintenance(sheet) => cursor = maintenance::draw(&scene, sheet, area, buf).or(cursor),
            Overlay::Themes(chooser) => theme_choice::draw(&scene, chooser, plan.footer, area, buf),
            Overlay::Tour(step) => tour::draw(&scene, *step, &plan, area, buf),
            Overlay::Palette(palette) => palette::draw(&scene, palette, plan.footer, area, buf),
            Overlay::Question(dialog) => cursor = dialog::draw(&scene, dialog, area, buf),
            // Views are drawn as panes, and the filter as part of the footer.
            Overlay::Detail(_)
            | Overlay::Plan(_)
            | Overlay::Progress(_)
            | Overlay::Events(_)
            | Overlay::Filter(_) => {}
        }
    }
    drawn.layout = plan.drawn.clone();
    drawn.targets = targets.into_inner();
    (drawn, cursor)
}
