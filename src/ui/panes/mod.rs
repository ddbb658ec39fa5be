//! The panes, one file each.

pub mod audit;
pub mod budgets;
pub mod departures;
pub mod detail;
mod event_row;
pub mod events;
pub mod evictions;
pub mod forecast;
pub mod header;
pub mod journal;
pub mod nodes;
pub mod pending;
pub mod plan;
pub mod pods;
pub mod progress;
pub mod zones;

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::Span,
    widgets::{Block, BorderType, Borders, Widget},
};

use super::{
    Scene, text,
    theme::Role,
    widgets::{
        Cell, Column, Heading, TableWidget, Width,
        segments::{Runs, Segments},
    },
};
use crate::{
    app::{
        Listing, Pane, Sort, SortColumn, UserAction, near_miss::NearMiss, overlays::Overlay,
        preview::PlanKind, screen_part::ScreenPart,
    },
    k8s::feed::{FeedKind, FeedState},
    model::NodeUpgrade,
};
use kordon_core::{cluster::Key, plan::words::counted, visible};

/// Draws a pane. Returns the number of rows that fit.
pub fn draw(scene: &Scene, pane: Pane, area: Rect, buf: &mut Buffer) -> usize {
    if area.height == 1 {
        return draw_line(scene, pane, area, buf);
    }
    match pane {
        Pane::Zones => zones::draw(scene, area, buf),
        Pane::Nodes => nodes::draw(scene, area, buf),
        Pane::Pods => pods::draw(scene, area, buf),
        Pane::Detail => detail::draw(scene, area, buf),
        Pane::Plan => plan::draw(scene, area, buf),
        Pane::Progress => progress::draw(scene, area, buf),
        Pane::Events => events::draw(scene, area, buf),
        Pane::Evictions => evictions::draw(scene, area, buf),
        Pane::Journal => journal::draw(scene, area, buf),
        Pane::Pending => pending::draw(scene, area, buf),
        Pane::Departures => departures::draw(scene, area, buf),
        Pane::Budgets => budgets::draw(scene, area, buf),
        Pane::Audit => audit::draw(scene, area, buf),
        Pane::Forecast => forecast::draw(scene, area, buf),
    }
}

/// ```text
/// ── 3 Evictions   ○ none expected ──────────────────────────
/// ```
/// Draws a pane as a single line that says why it is empty.
fn draw_line(scene: &Scene, pane: Pane, area: Rect, buf: &mut Buffer) -> usize {
    let nothing = match pane {
        Pane::Evictions => Some(evictions::nothing(scene)),
        Pane::Forecast => Some(forecast::nothing(scene)),
        Pane::Journal => Some(journal::nothing(scene)),
        Pane::Pending => Some(pending::nothing(scene)),
        Pane::Departures => Some(departures::nothing(scene)),
        Pane::Budgets => Some(budgets::nothing(scene)),
        Pane::Audit => Some(audit::nothing(scene)),
        Pane::Zones
        | Pane::Nodes
        | Pane::Pods
        | Pane::Detail
        | Pane::Plan
        | Pane::Progress
        | Pane::Events => None,
    };
    let facts = nothing.map(|(glyph, text, role)| Runs::new(&format!("{glyph} {text}"), scene.style(role)));
    open(scene, pane, area, facts.unwrap_or_default(), buf);
    0
}

/// ```text
/// ╭─ 2 Nodes  30 · 5 not ready ─────────── /zone:a ─ cpu ↓ ─╮     with a full frame
/// ── 2 Nodes  30 · 5 not ready ─────────── /zone:a ─ cpu ↓ ──     with only a rule
/// ── [4 Forecast] 5 Journal ─ next 10m00s ───────────────────     several panes as tabs
/// ```
/// Draws a pane's frame with `facts` in its title and the pane's notes on the right. Returns the inner area.
fn open(scene: &Scene, pane: Pane, area: Rect, facts: Runs, buf: &mut Buffer) -> Rect {
    let border = scene.border(scene.screen.focus == pane);
    let block = Block::new()
        .borders(if scene.framed && area.height > 1 { Borders::ALL } else { Borders::TOP })
        .border_type(BorderType::Rounded)
        .border_style(scene.style(border));
    let inner = block.inner(area);
    block.render(area, buf);
    let rule =
        Rect { x: area.x + 2, width: area.width.saturating_sub(4), height: area.height.min(1), ..area };
    let plain = Style::new();
    let room = usize::from(rule.width);
    let notes = notes(scene, pane, room);
    let beside = notes.iter().fold(facts.width(), |cells, (_, note)| cells + note.width() + 3);
    let tabs = tabs(scene, pane, room.saturating_sub(beside + 4));
    // A line keeps the facts apart from the last tab: a number would look like another tab.
    let gap = if tabs.len() > 1 { Runs::new("─ ", scene.style(border)) } else { Runs::new(" ", plain) };
    let facts = if facts.is_empty() { facts } else { gap.join(facts).and(" ", plain) };
    let dash = Span::styled("─", scene.style(border));
    let mut title = Runs::default();
    for (tab, runs) in tabs {
        let cells = |width: usize| u16::try_from(width).unwrap_or(u16::MAX);
        let area = Rect { x: rule.x + cells(title.width()), width: cells(runs.width()), ..rule };
        scene.can_click(area.intersection(rule), ScreenPart::Tab(tab));
        title = title.join(runs);
    }
    // Facts give way to the filter: the rows that it hides would otherwise seem not to exist.
    let filter = filter_note(scene, pane, room / 2).map_or(0, |note| note.width() + 3);
    let title = title.join(facts).fitted(room.saturating_sub(filter));
    let mut line = Segments::default().left(0, title);
    for (priority, note) in notes {
        line = line.right(priority, Runs::new(" ", plain).join(note).and(" ", plain));
    }
    line.render(rule, &dash, buf);
    // One empty cell on both sides separates the text from the frame.
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

/// Titles of a pane and of the panes that share its area as tabs, always in the same order: ` 2 Nodes `,
/// ` 4 Forecast [5 Journal]`. If all titles would leave no space for facts, the last tabs are reduced to their digits.
/// The shown tab always has its title. `free` is the number of cells that facts and notes leave free.
fn tabs(scene: &Scene, pane: Pane, free: usize) -> Vec<(Pane, Runs)> {
    let slot = scene.slots.iter().find(|slot| slot.active == pane);
    let alone = [pane];
    let tabs = slot.map_or(alone.as_slice(), |slot| &slot.tabs);
    let width = usize::from(slot.map_or(u16::MAX, |slot| slot.area.width));
    let count = text::count(scene.shown.cluster.unscheduled_count()).len() + 2;
    let room = if tabs.len() > 2 { (width / 4 * 3).max(free.saturating_sub(count)) } else { width };
    let named = named_tabs(tabs, pane, room);
    let title = |(place, tab): (usize, &Pane)| {
        let is_named = place < named || *tab == pane;
        (*tab, tab_title(scene, *tab, *tab == pane, tabs.len() == 1, is_named))
    };
    tabs.iter().enumerate().map(title).collect()
}

/// Title of one tab: ` 4 Forecast `, `[5 Journal]` if it is shown beside others, ` 6 ` without its name. The number of
/// Pending pods follows the name, or stands in parentheses: ` 6 Pending 10 `, ` 6(10) `.
fn tab_title(scene: &Scene, tab: Pane, is_shown: bool, is_alone: bool, is_named: bool) -> Runs {
    let (before, after) = if is_shown && !is_alone { ("[", "]") } else { (" ", " ") };
    let role = match tab {
        tab if tab == scene.screen.focus => Role::TitleFocus,
        _ if is_shown => Role::Title,
        _ => Role::Dim,
    };
    let runs = Runs::new(before, scene.style(role)).and(&tab.digit().to_string(), scene.style(Role::Key));
    let runs = match is_named {
        true => runs.and(" ", Style::new()).and(tab.title(), scene.style(role)),
        false => runs,
    };
    let pending = Some(scene.shown.cluster.unscheduled_count()).filter(|_| tab == Pane::Pending);
    let runs = match pending {
        Some(count @ 1..) if !is_alone => {
            let count = text::count(count);
            let count = if is_named { format!(" {count}") } else { format!("({count})") };
            runs.and(&count, scene.style(Role::NodeWarning))
        }
        Some(_) | None => runs,
    };
    runs.and(after, scene.style(role))
}

/// Number of tabs that show their name in this many cells, counted from the first.
fn named_tabs(tabs: &[Pane], shown: Pane, room: usize) -> usize {
    let needed = |named: usize| -> usize {
        let of = |(place, tab): (usize, &Pane)| {
            if place < named || *tab == shown { text::width(tab.title()) + 4 } else { 3 }
        };
        tabs.iter().enumerate().map(of).sum()
    };
    (1..=tabs.len()).rev().find(|named| needed(*named) <= room).unwrap_or(1)
}

/// Notes about a pane with their priorities: state of its watches, filter, order. The title has this many cells.
fn notes(scene: &Scene, pane: Pane, room: usize) -> Vec<(u8, Runs)> {
    let mut notes = Vec::new();
    for kind in kinds(pane) {
        // An empty pane shows the note about its watch in the middle instead of in its title.
        if let Some(note) = feed_note(scene, *kind).filter(|_| rows(scene, pane) > 0) {
            notes.push((1, note));
        }
    }
    if pane == Pane::Plan {
        notes.push((2, plan::note(scene)));
    }
    if pane == Pane::Forecast {
        notes.push((1, forecast::note(scene)));
        notes.extend(forecast::chance_note(scene).map(|note| (5, note)));
        notes.extend(forecast::unmeasured_note(scene).map(|note| (2, note)));
    }
    if pane == Pane::Departures {
        notes.extend(departures::note(scene).map(|note| (3, note)));
    }
    if pane == Pane::Progress {
        notes.push((2, progress::note(scene)));
    }
    if pane == Pane::Events {
        notes.extend(events::note(scene).map(|note| (1, note)));
    }
    notes.extend(filter_note(scene, pane, room / 2).map(|note| (0, note)));
    notes.extend(match_note(scene, pane).map(|note| (6, note)));
    let grouping = scene.screen.groups.grouping();
    if pane == Pane::Nodes && !grouping.is_none() {
        let note = format!("grouped by {}", grouping.as_str());
        notes.push((2, Runs::new(&note, scene.style(Role::HeadingSorted))));
    }
    if pane == Pane::Nodes {
        let note = |upgrade: NodeUpgrade| (4, Runs::new(&upgrade.to_string(), scene.style(Role::Dim)));
        notes.extend(scene.shown.maintenance.upgrades().map(note));
    }
    if let Some(sort) = sort_note(scene, pane) {
        notes.push((3, Runs::new(&sort, scene.style(Role::HeadingSorted))));
    }
    if scene.app.is_frozen() && pane == scene.screen.focus {
        let how = if scene.app.is_in_history() { "as of" } else { "frozen at" };
        let note = format!("{how} {}", text::clock(scene.now));
        notes.push((1, Runs::new(&note, scene.style(Role::FeedBusy))));
    }
    notes
}

/// The filter of a pane as it was typed, cut to this many cells; `None` without a filter.
fn filter_note(scene: &Scene, pane: Pane, cells: usize) -> Option<Runs> {
    let filter = scene.screen.filter(pane);
    let note = || {
        let typed = format!("/{}", filter.text());
        Runs::new(&text::cut(&typed, cells), scene.style(Role::Accent))
    };
    (!filter.is_empty()).then(note)
}

/// Number of rows that match the filter of a list; `None` without a filter. The nodes have it beside the number of all
/// nodes.
fn match_note(scene: &Scene, pane: Pane) -> Option<Runs> {
    let is_list = pane == Pane::Journal || (pane != Pane::Nodes && Pane::LISTS.contains(&pane));
    let note = || Runs::new(&format!("{} shown", text::count(rows(scene, pane))), scene.style(Role::Accent));
    (is_list && !scene.screen.filter(pane).is_empty()).then(note)
}

fn rows(scene: &Scene, pane: Pane) -> usize {
    let screen = scene.screen;
    match pane {
        Pane::Zones => screen.zones.list.len(),
        Pane::Nodes => screen.nodes.list.len(),
        Pane::Pods => screen.pods.list.len(),
        Pane::Detail | Pane::Plan | Pane::Progress | Pane::Events => {
            screen.overlays.view().map_or(0, Overlay::rows)
        }
        Pane::Evictions => screen.evictions.list.len(),
        Pane::Journal => screen.journal.len(),
        Pane::Pending => screen.pending.list.len(),
        Pane::Departures => screen.departures.list.len(),
        Pane::Budgets => screen.budgets.list.len(),
        Pane::Audit => screen.audit.list.len(),
        Pane::Forecast => screen.forecast.list.len(),
    }
}

/// Kinds of objects that a pane shows. The pane's title has notes about their watches.
const fn kinds(pane: Pane) -> &'static [FeedKind] {
    match pane {
        Pane::Zones
        | Pane::Detail
        | Pane::Plan
        | Pane::Progress
        | Pane::Events
        | Pane::Journal
        | Pane::Forecast => &[],
        Pane::Nodes => &[FeedKind::Nodes, FeedKind::Leases],
        Pane::Budgets | Pane::Audit => &[FeedKind::Budgets, FeedKind::Pods],
        Pane::Pods | Pane::Evictions | Pane::Pending | Pane::Departures => &[FeedKind::Pods],
    }
}

/// A note about a watch that is listing, broken, forbidden or off; `None` for a watch that is connecting or live.
fn feed_note(scene: &Scene, kind: FeedKind) -> Option<Runs> {
    let health = scene.shown.feeds.health(kind)?;
    let (text, role) = match &health.state {
        FeedState::Listing { received, expected } => (listing(kind, *received, *expected), Role::FeedBusy),
        FeedState::Broken { since, .. } => {
            let since = health.last_heard.map_or(*since, |heard| heard.min(*since));
            (format!("{kind} stale {}", text::age(scene.now, since)), Role::FeedBroken)
        }
        state if state.is_absent() => (format!("{kind} not in the files"), Role::Dim),
        FeedState::Forbidden { .. } => (format!("{kind} forbidden"), Role::FeedBroken),
        FeedState::Off => (format!("{kind} not watched"), Role::Dim),
        FeedState::Connecting | FeedState::Live => return None,
    };
    Some(Runs::new(&text, scene.style(role)))
}

/// Progress of a list: `pods 61,500 of 150,000`.
fn listing(kind: FeedKind, received: usize, expected: Option<usize>) -> String {
    let of = expected.map_or(String::new(), |expected| format!(" of {}", text::count(expected)));
    format!("{kind} {}{of}", text::count(received))
}

/// Column that a pane is sorted by; `None` for the default column in its natural direction.
fn sort_note(scene: &Scene, pane: Pane) -> Option<String> {
    let sort = scene.screen.sort(pane).filter(|sort| !sort.is_default())?;
    Some(format!("by {}{}", sort.title(), arrow(sort.is_descending())))
}

/// Arrow for a sort direction, as in k9s: up if the values of the column rise from row to row.
const fn arrow(is_descending: bool) -> &'static str {
    if is_descending { " ↓" } else { " ↑" }
}

/// Table of a list in a pane, with `page` rows.
fn table_of<K: PartialEq + Clone>(
    scene: &Scene,
    pane: Pane,
    list: &Listing<K>,
    columns: Vec<Column>,
    rows: Rect,
) -> TableWidget {
    let first = list.first_shown(usize::from(rows.height));
    scene.can_click(rows, ScreenPart::Rows { pane, first });
    let (selected, looks) = (list.cursor(), scene.looks(pane));
    TableWidget { columns, refills: false, rows: list.len(), first, selected, looks }
}

/// A column that the list can be sorted by.
fn column<C: SortColumn>(sort: Sort<C>, by: C, title: &'static str, width: Width) -> Column {
    let sorted = by == sort.column && sort != Sort::default();
    let sorted = sorted.then(|| arrow(sort.is_descending()));
    Column { sorted, sorts_by: Some(by.title()), ..Column::plain(title, width) }
}

/// Makes the headings of a pane sort its list when they are clicked.
fn sort_on_click(scene: &Scene, pane: Pane, headings: Vec<Heading>) {
    for Heading { area, column } in headings {
        scene.can_click(area, ScreenPart::Heading { pane, column });
    }
}

/// Why a pane is empty: sign, text and theme role.
type Nothing = (&'static str, String, Role);

/// ```text
///               ⠿ pods 61,500 of 150,000
/// ```
/// Draws why a list is empty: the state of its watch, or `empty` if the watch is live.
fn draw_nothing(scene: &Scene, kind: FeedKind, pane: Pane, empty: &str, area: Rect, buf: &mut Buffer) {
    say_nothing(scene, pane, nothing(scene, kind, pane, empty), area, buf);
}

/// Draws why a list is empty, and what to do next.
fn say_nothing(scene: &Scene, pane: Pane, nothing: Nothing, area: Rect, buf: &mut Buffer) {
    let (glyph, text, role) = nothing;
    let is_calm = role == Role::Dim && scene.screen.filter(pane).is_empty();
    let next = next_step(scene, pane).filter(|_| is_calm);
    say(scene, glyph, &next.map_or(text.clone(), |next| format!("{text} · {next}")), role, area, buf);
}

/// What the user can do about a pane that has nothing to show, or when it will have something.
fn next_step(scene: &Scene, pane: Pane) -> Option<String> {
    let key = |action| scene.app.preferences.keymap.key_for(action);
    match pane {
        Pane::Nodes if !scene.app.contexts.is_empty() => Some(":ctx goes to another context".into()),
        Pane::Pods => Some(format!("{} goes back to the nodes", key(UserAction::Back))),
        Pane::Evictions | Pane::Forecast => {
            let what_if = Some(key(UserAction::Plan(PlanKind::Failure))).filter(|key| !key.is_empty())?;
            Some(format!("{what_if} on a node shows what its failure would cause"))
        }
        Pane::Journal => Some("what happens from now on is listed here".into()),
        Pane::Departures => Some("pods that leave from now on are listed here, with who removed them".into()),
        Pane::Budgets => Some("nothing limits how many pods a drain evicts at a time".into()),
        Pane::Nodes
        | Pane::Zones
        | Pane::Pending
        | Pane::Audit
        | Pane::Detail
        | Pane::Plan
        | Pane::Progress
        | Pane::Events => None,
    }
}

fn nothing(scene: &Scene, kind: FeedKind, pane: Pane, empty: &str) -> Nothing {
    let filtered = !scene.screen.filter(pane).is_empty();
    match scene.shown.feeds.state(kind) {
        Some(FeedState::Live) if filtered => no_match(scene, pane),
        Some(FeedState::Live) => ("○", empty.into(), Role::Dim),
        None | Some(FeedState::Connecting) => ("◌", format!("waiting for {kind}"), Role::FeedBusy),
        Some(FeedState::Listing { received, expected }) => {
            ("◌", format!("listing: {}", listing(kind, *received, *expected)), Role::FeedBusy)
        }
        Some(FeedState::Off) => ("○", format!("{kind} are not watched (--no-pods)"), Role::Dim),
        Some(FeedState::Broken { error, .. }) => {
            let info = scene.app.preferences.keymap.key_for(UserAction::Info);
            ("✗", format!("no {kind}: {error}; retrying ({info} shows all watches)"), Role::FeedBroken)
        }
        Some(state) if state.is_absent() => ("○", format!("{kind} are not in the files"), Role::Dim),
        Some(FeedState::Forbidden { error }) => {
            let text = format!("listing {kind} is forbidden: {error} (kordon doctor checks all rights)");
            ("✗", text, Role::FeedBroken)
        }
    }
}

/// Text for a filter without matches: `no node matches; without "age<2h": 5`, or how a regular expression is typed.
fn no_match(scene: &Scene, pane: Pane) -> Nothing {
    let row = match pane {
        Pane::Zones => "zone",
        Pane::Nodes => "node",
        Pane::Pods | Pane::Evictions | Pane::Pending | Pane::Departures => "pod",
        Pane::Budgets => "budget",
        Pane::Audit => "finding",
        Pane::Journal => "entry",
        Pane::Events => "Event",
        Pane::Forecast => "lane",
        Pane::Detail | Pane::Plan | Pane::Progress => "row",
    };
    let back = scene.app.preferences.keymap.key_for(UserAction::Back);
    let filter = scene.screen.filter(pane);
    if let Some(selector) = filter.selector_without_sign() {
        let text = format!("no {row} matches; a label selector is -l {selector} ({back} clears the filter)");
        return ("○", text, Role::Dim);
    }
    if let Some(word) = filter.regex_without_slashes() {
        let text = format!("no {row} matches; a regular expression is /{word}/ ({back} clears the filter)");
        return ("○", text, Role::Dim);
    }
    let name = filter.text();
    let is_name = name.chars().all(|letter| letter.is_alphanumeric() || "-./".contains(letter));
    let pods = (pane == Pane::Nodes && is_name).then(|| scene.app.count_pods_like(name)).flatten();
    if let Some(pods) = pods {
        let pods = counted(pods, "pod does", "pods do");
        let text =
            format!("no node matches, but {pods}: `:pods {name}` shows where ({back} clears the filter)");
        return ("○", text, Role::Dim);
    }
    if let Some((other, matches)) = scene.app.alternative_filter(pane) {
        let why = if other.starts_with('~') { "" } else { ": fields stand without -l" };
        let matches = text::count(matches);
        let text = format!("no {row} matches, but {other} has {matches}{why} ({back} clears the filter)");
        return ("○", text, Role::Dim);
    }
    let text = match scene.app.near_miss(pane) {
        Some(NearMiss { without: Some((condition, matches)), .. }) => {
            format!(
                "no {row} matches; without \"{condition}\": {} ({back} clears the filter)",
                text::count(matches)
            )
        }
        Some(NearMiss { all, without: None }) => {
            let unknown = scene.app.unknown_word(pane).or_else(|| scene.app.near_value(pane));
            let unknown = unknown.map(|unknown| format!(": {unknown}")).unwrap_or_default();
            format!("no {row} matches{unknown} ({back} clears the filter: {} of them)", text::count(all))
        }
        None => format!("no {row} matches ({back} clears the filter)"),
    };
    ("○", text, Role::Dim)
}

/// Appends the number of marked rows, and how many of them the pane's filter hides.
fn marked(scene: &Scene, runs: Runs, pane: Pane, count: usize) -> Runs {
    if count == 0 {
        return runs;
    }
    let runs = runs
        .and(" · ", scene.style(Role::Faint))
        .and(&format!("{MARK} {} marked", text::count(count)), scene.style(Role::Accent));
    let hidden = match scene.screen.hidden_marks(pane) {
        0 => return runs,
        hidden if hidden == count => ", not shown".to_owned(),
        hidden => format!(", {} not shown", text::count(hidden)),
    };
    runs.and(&hidden, scene.style(Role::NodeWarning))
}

/// Sign of a row that the user has marked.
const MARK: &str = "✓";

/// Cell between a row's glyph and its name, with a sign if the user has marked the row.
fn mark(scene: &Scene, marked: bool) -> Cell {
    if marked { Cell::new(MARK, scene.style(Role::Accent)) } else { Cell::new(" ", scene.style(Role::Dim)) }
}

/// Namespace and name of an object, as in `shop/web-1`. The role is that of the name.
fn object_name(scene: &Scene, key: &Key, role: Role) -> Cell {
    Cell::new(&key.namespace, scene.style(Role::Dim))
        .and("/", scene.style(Role::Faint))
        .and(&key.name, scene.style(role))
}

/// Draws a sentence in the middle of an area, wrapped if necessary.
fn say(scene: &Scene, glyph: &str, text: &str, role: Role, area: Rect, buf: &mut Buffer) {
    let room = usize::from(area.width.saturating_sub(2));
    if area.is_empty() || room < 4 {
        return;
    }
    let lines =
        text::wrap(&format!("{glyph} {}", visible::text(text)), room, usize::from(area.height).min(4));
    let top = area.y + (area.height - u16::try_from(lines.len()).unwrap_or(area.height).min(area.height)) / 2;
    for (y, line) in (top..area.bottom()).zip(&lines) {
        let width = u16::try_from(text::width(line)).unwrap_or(area.width);
        let x = area.x + area.width.saturating_sub(width) / 2;
        buf.set_stringn(x, y, line, usize::from(area.right() - x), scene.style(role));
    }
}

/// ```text
/// why lease renewed 03:12:05 → node-monitor-grace-period 50s → …
/// ```
/// Draws the cause of the selected row's state below the rows, if the pane has the focus and is high enough. Returns
/// the remaining area.
fn draw_cause(scene: &Scene, pane: Pane, why: Option<String>, area: Rect, buf: &mut Buffer) -> Rect {
    draw_below(scene, pane, "why ", why.map(|why| text::brief(&why)), area, buf)
}

/// Draws the full text of the selected row below the rows, because the list may cut it. Returns the remaining area.
fn draw_full_text(scene: &Scene, pane: Pane, full: Option<String>, area: Rect, buf: &mut Buffer) -> Rect {
    draw_below(scene, pane, "", full.map(|full| text::brief(&full)), area, buf)
}

/// Number of lines that the rows of a list leave free; 0 for panes with more than a heading and one line for each row.
fn free_lines(scene: &Scene, pane: Pane, area: Rect) -> usize {
    let heading = match pane {
        Pane::Pods | Pane::Events | Pane::Evictions | Pane::Pending | Pane::Budgets | Pane::Audit => 1,
        Pane::Detail | Pane::Journal => 0,
        Pane::Zones | Pane::Nodes | Pane::Plan | Pane::Progress | Pane::Forecast | Pane::Departures => {
            return 0;
        }
    };
    usize::from(area.height).saturating_sub(rows(scene, pane) + heading)
}

fn draw_below(
    scene: &Scene,
    pane: Pane,
    label: &str,
    text: Option<String>,
    area: Rect,
    buf: &mut Buffer,
) -> Rect {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return area };
    if scene.screen.focus != pane || area.height < 6 {
        return area;
    }
    let indent = u16::try_from(label.len()).unwrap_or(0);
    let room = usize::from(area.width.saturating_sub(indent));
    // What would help a Pending pod rarely fits one line.
    let least = if area.height >= 12 || pane == Pane::Pending { 2 } else { 1 };
    let lines = text::wrap(&visible::text(&text), room, least.max(free_lines(scene, pane, area)));
    let height = u16::try_from(lines.len()).unwrap_or(1);
    let top = area.bottom() - height;
    buf.set_string(area.x, top, label, scene.style(Role::Heading));
    for (y, line) in (top..).zip(&lines) {
        buf.set_stringn(area.x + indent, y, line, room, scene.style(Role::Dim));
    }
    Rect { height: area.height - height, ..area }
}
