//! Positions of everything on screen, by the size of the terminal.

use ratatui::layout::Rect;

use crate::app::{
    Pane, Screen,
    overlays::Overlay,
    pane_layout::{BorderKind, COLUMNS, DrawnLayout, MOVABLE, PaneBorder, PanePlace, divided, part},
};

/// Minimum size in columns and rows that has space for tables.
pub const LEAST: (u16, u16) = (60, 15);
/// Minimum size at which a view is drawn beside the nodes. On a smaller screen, a view covers the panes.
const BESIDE: (u16, u16) = (150, 44);

/// Minimum size at which the panes below the nodes are in columns. On a smaller screen, they are tabs of one area.
const IN_COLUMNS: (u16, u16) = (120, 30);
/// Minimum width for three columns below the nodes. On a narrower screen, the middle panes are tabs beside the right
/// panes.
const THREE_COLUMNS: u16 = 200;
/// Minimum height in lines that the nodes keep when the user makes the panes below them higher.
const LEAST_NODES: u16 = 6;

/// Areas of the parts of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenLayout {
    pub header: Rect,
    /// Area of the playback's time line.
    pub playback: Option<Rect>,
    /// Area of the banner about an interrupted drain.
    pub banner: Option<Rect>,
    /// Areas of the panes, from top to bottom and from left to right.
    pub slots: Vec<Slot>,
    pub footer: Rect,
    /// Whether panes have full frames instead of only a rule above them.
    pub framed: bool,
    /// Borders that can be moved, and places that panes can be moved to.
    pub drawn: DrawnLayout,
}

/// Which optional lines are between the header and the panes.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtraLines {
    pub playback: bool,
    pub banner: bool,
}

/// Area for one pane, or for several as tabs. The size of the screen and the chosen layout decide which panes share a
/// slot, so focus never moves a pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    pub area: Rect,
    /// Panes in the order of the digits in their titles.
    pub tabs: Vec<Pane>,
    /// The shown tab.
    pub active: Pane,
}

impl Slot {
    /// Creates a slot (an area for these panes), whose position is set later. The focused tab is shown, or else the one
    /// focused last.
    fn new(tabs: &[Pane], screen: &Screen) -> Self {
        let last = screen.recent.iter().find(|pane| tabs.contains(pane));
        let active = tabs.iter().find(|pane| **pane == screen.focus).or(last).unwrap_or(&tabs[0]);
        Self { area: Rect::default(), tabs: tabs.to_vec(), active: *active }
    }
}

impl ScreenLayout {
    /// Positions of the parts for a terminal of this size:
    /// ```text
    /// header                     header                      header
    /// banner, if there is one    nodes, or pods of one       zones
    /// zones                      zones·evictions·forecast·   nodes
    /// nodes, or pods of one      journal·pending·departures· evictions·pending·  | forecast | journal
    /// evictions·| forecast·      budgets                     departures·budgets
    /// pending·  | journal        footer                      footer
    /// departures·
    /// budgets
    /// footer                     below 120x30                from 200 columns
    /// ```
    /// `None` if the terminal is too small. A zoomed pane is drawn alone. A focused view is also drawn alone, unless it
    /// fits beside the nodes.
    pub fn new(area: Rect, screen: &Screen, zones: usize, extra: ExtraLines) -> Option<Self> {
        if area.width < LEAST.0 || area.height < LEAST.1 {
            return None;
        }
        let framed = area.height >= 30 && area.width >= 100;
        let header_rows = if area.height >= 26 { 3 } else { 2 };
        let header = Rect { height: header_rows, ..area };
        let footer = Rect { y: area.bottom() - 1, height: 1, ..area };
        let height = if area.height >= 26 { 2 } else { 1 };
        let playback = extra.playback.then(|| Rect { y: header.bottom(), height, ..area });
        let above = playback.unwrap_or(header).bottom();
        let banner = extra.banner.then_some(Rect { y: above, height: 1, ..area });
        let top = banner.map_or(above, Rect::bottom);
        let body = Rect { y: top, height: footer.y - top, ..area };
        let view = screen.overlays.view().and_then(Overlay::pane);
        let has_room_beside = area.width >= BESIDE.0 && area.height >= BESIDE.1;
        let mut drawn = DrawnLayout::default();
        let slots = if screen.zoomed || (view == Some(screen.focus) && !has_room_beside) {
            vec![Slot { area: body, ..Slot::new(&[screen.focus], screen) }]
        } else if body.height < 16 {
            vec![Slot { area: body, ..Slot::new(&screen.panes(), screen) }]
        } else if let Some(view) = view.filter(|_| has_room_beside) {
            beside(body, screen, view, framed, &mut drawn)
        } else if area.width < IN_COLUMNS.0 || area.height < IN_COLUMNS.1 {
            compact(body, screen, screen.panes()[1], framed, &mut drawn)
        } else {
            stack(body, screen, zones, &mut drawn)
        };
        Some(Self { header, playback, banner, slots, footer, framed, drawn })
    }
}

/// Layout with a view beside the nodes and the other panes.
fn beside(body: Rect, screen: &Screen, view: Pane, framed: bool, drawn: &mut DrawnLayout) -> Vec<Slot> {
    let width = part(body.width, screen.layout.beside.unwrap_or(40)).clamp(30, body.width - 30);
    let left = Rect { width, ..body };
    let right = Rect { x: left.right(), width: body.width - left.width, ..body };
    let mut slots = compact(left, screen, screen.node_pane(), framed, drawn);
    let first = slots.iter().flat_map(|slot| slot.tabs.clone()).collect();
    drawn.borders.push(PaneBorder {
        kind: BorderKind::Beside,
        area: body,
        at: right.x,
        first,
        second: vec![view],
    });
    slots.push(Slot { area: right, ..Slot::new(&[view], screen) });
    slots
}

/// Layout with the nodes above a single slot for all other panes.
fn compact(body: Rect, screen: &Screen, nodes: Pane, framed: bool, drawn: &mut DrawnLayout) -> Vec<Slot> {
    let lower = Slot::new(&MOVABLE, screen);
    let is_open = screen.is_open(lower.active);
    let height = if is_open { open_height(body.height, framed, screen) } else { 1 };
    let (upper, rest) = split(body, body.height - height);
    if is_open {
        drawn.borders.push(below(body, rest.y, nodes, MOVABLE.to_vec()));
    }
    vec![Slot { area: upper, tabs: vec![nodes], active: nodes }, Slot { area: rest, ..lower }]
}

/// Layout with the zones at the top, the nodes below the zones, and the other panes side by side at the bottom, unless
/// panes were moved.
fn stack(body: Rect, screen: &Screen, zones: usize, drawn: &mut DrawnLayout) -> Vec<Slot> {
    let nodes = screen.panes()[1];
    let above = panes_at(screen, PanePlace::Above);
    let (upper, rest) = split(body, above_height(body, screen, &above, zones));
    let columns = LowerColumn::all(body.width, screen);
    let lower: Vec<Slot> = columns.iter().map(|column| Slot::new(&column.tabs, screen)).collect();
    let height = row_height(rest.height, &lower, screen);
    let (middle, row) = split(rest, rest.height - height);
    drawn.places = places(body.width);
    let mut slots = Vec::new();
    if !above.is_empty() {
        slots.push(Slot { area: upper, ..Slot::new(&above, screen) });
        drawn.borders.push(PaneBorder {
            kind: BorderKind::Above,
            area: Rect { height: upper.height + middle.height, ..body },
            at: middle.y,
            first: above,
            second: vec![nodes],
        });
    }
    slots.push(Slot { area: middle, tabs: vec![nodes], active: nodes });
    let widths = widths(row.width, &columns, screen);
    if height > 1 {
        let panes = lower.iter().flat_map(|slot| slot.tabs.clone()).collect();
        drawn.borders.push(below(rest, row.y, nodes, panes));
        drawn.borders.extend(column_borders(row, &columns, &widths, screen));
    }
    let mut x = row.x;
    for (slot, width) in lower.into_iter().zip(widths) {
        slots.push(Slot { area: Rect { x, width, ..row }, ..slot });
        x += width;
    }
    slots
}

/// A column of panes below the nodes.
struct LowerColumn {
    /// Places of the panes in the column.
    places: Vec<PanePlace>,
    tabs: Vec<Pane>,
}

impl LowerColumn {
    /// The columns below the nodes that have panes.
    fn all(width: u16, screen: &Screen) -> Vec<Self> {
        let merged: &[&[PanePlace]] = match width {
            0..THREE_COLUMNS => &[&[PanePlace::Left], &[PanePlace::Middle, PanePlace::Right]],
            _ => &[&[PanePlace::Left], &[PanePlace::Middle], &[PanePlace::Right]],
        };
        let column = |places: &&[PanePlace]| {
            let is_filled = |place: &PanePlace| !panes_at(screen, *place).is_empty();
            let places: Vec<PanePlace> = places.iter().copied().filter(is_filled).collect();
            let is_here =
                |pane: &Pane| screen.layout.place(*pane).is_some_and(|place| places.contains(&place));
            Self { tabs: MOVABLE.into_iter().filter(is_here).collect(), places }
        };
        merged.iter().map(column).filter(|column| !column.tabs.is_empty()).collect()
    }

    /// Width of the column in the default layout, relative to the other columns.
    fn usual_share(&self, width: u16) -> u16 {
        let has = |place| self.places.contains(&place);
        match width {
            0..THREE_COLUMNS if has(PanePlace::Left) => 5,
            0..THREE_COLUMNS => 4,
            _ if has(PanePlace::Right) => 3,
            _ => 4,
        }
    }
}

/// Places that panes can be moved to on a screen of this width.
fn places(width: u16) -> Vec<PanePlace> {
    let columns = if width < THREE_COLUMNS { 2 } else { 3 };
    [PanePlace::Above].into_iter().chain(COLUMNS.into_iter().take(columns)).collect()
}

fn panes_at(screen: &Screen, place: PanePlace) -> Vec<Pane> {
    MOVABLE.into_iter().filter(|pane| screen.layout.place(*pane) == Some(place)).collect()
}

/// Widths of the columns below the nodes.
fn widths(width: u16, columns: &[LowerColumn], screen: &Screen) -> Vec<u16> {
    let layout = &screen.layout;
    if layout.has_shares() {
        let shares: Vec<u16> = columns
            .iter()
            .map(|column| column.places.iter().map(|place| layout.share(*place)).sum())
            .collect();
        // A column stays visible, however small its share is.
        let least = shares.iter().sum::<u16>() / 10;
        return divided(width, &shares.iter().map(|share| *share.max(&least)).collect::<Vec<_>>());
    }
    let shares: Vec<u16> = columns.iter().map(|column| column.usual_share(width)).collect();
    let unit = width / shares.iter().sum::<u16>().max(1);
    let mut widths: Vec<u16> = shares.iter().map(|share| unit * share).collect();
    let rest = width - widths.iter().sum::<u16>();
    widths.last_mut().into_iter().for_each(|last| *last += rest);
    widths
}

/// Borders between the columns below the nodes.
fn column_borders(row: Rect, columns: &[LowerColumn], widths: &[u16], screen: &Screen) -> Vec<PaneBorder> {
    // Places without panes also have a width, in case a pane is moved there.
    let mut by_place = [row.width / 4; 3];
    for (column, width) in columns.iter().zip(widths) {
        let shares: Vec<u16> = column.places.iter().map(|place| screen.layout.share(*place)).collect();
        for (place, width) in column.places.iter().zip(divided(*width, &shares)) {
            let index = COLUMNS.iter().position(|known| known == place);
            index.into_iter().for_each(|index| by_place[index] = width);
        }
    }
    let mut x = row.x;
    let mut borders = Vec::new();
    for (pair, pair_widths) in columns.windows(2).zip(widths.windows(2)) {
        borders.push(PaneBorder {
            kind: BorderKind::Columns { widths: by_place },
            area: Rect { x, width: pair_widths.iter().sum(), ..row },
            at: x + pair_widths[0],
            first: pair[0].tabs.clone(),
            second: pair[1].tabs.clone(),
        });
        x += pair_widths[0];
    }
    borders
}

/// The border between the nodes and the panes below them.
fn below(area: Rect, at: u16, nodes: Pane, panes: Vec<Pane>) -> PaneBorder {
    PaneBorder { kind: BorderKind::Below, area, at, first: vec![nodes], second: panes }
}

/// Height of the panes above the nodes: the chosen height, or else the lines that the zones need, if they are shown.
fn above_height(body: Rect, screen: &Screen, above: &[Pane], zones: usize) -> u16 {
    let most = if body.height < 44 { 4 } else { 8 };
    let usual = || match above.contains(&Pane::Zones) {
        true => u16::try_from(zones.clamp(1, most)).unwrap_or(most as u16) + 3,
        false => 8,
    };
    match screen.layout.above {
        _ if above.is_empty() => 0,
        Some(height) => height.clamp(4, body.height / 2),
        None => usual(),
    }
}

/// Height of panes side by side: one line if all are empty, a few rows if only the journal has content.
fn row_height(room: u16, slots: &[Slot], screen: &Screen) -> u16 {
    let open: Vec<&Slot> = slots.iter().filter(|slot| screen.is_open(slot.active)).collect();
    match open.as_slice() {
        [] if slots.is_empty() => 0,
        [] => 1,
        [one] if one.tabs == [Pane::Journal] && screen.layout.below.is_none() => 7,
        _ => open_height(room, true, screen),
    }
}

/// Height of the lower part of an area, if that part has content.
fn open_height(room: u16, framed: bool, screen: &Screen) -> u16 {
    let least = if framed { 6 } else { 5 };
    match screen.layout.below {
        Some(percent) => part(room, percent).clamp(least, room.saturating_sub(LEAST_NODES).max(least)),
        None => (room * 2 / 5).clamp(least, 20),
    }
}

fn split(area: Rect, upper: u16) -> (Rect, Rect) {
    let lower = Rect { y: area.y + upper, height: area.height - upper, ..area };
    (Rect { height: upper, ..area }, lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::PaneLayout;
    use kordon_time::Timestamp;

    /// Layouts to test: the default, extreme sizes, and moved panes.
    fn layouts() -> Vec<PaneLayout> {
        let all_in = |place: PanePlace| MOVABLE.map(|pane| (pane, place)).into();
        vec![
            PaneLayout::default(),
            PaneLayout { above: Some(100), below: Some(90), beside: Some(80), ..PaneLayout::default() },
            PaneLayout { above: Some(4), below: Some(10), beside: Some(20), ..PaneLayout::default() },
            PaneLayout { left: Some(1), right: Some(1000), ..PaneLayout::default() },
            PaneLayout { places: all_in(PanePlace::Above), ..PaneLayout::default() },
            PaneLayout { places: all_in(PanePlace::Middle), middle: Some(3), ..PaneLayout::default() },
            PaneLayout { places: [(Pane::Zones, PanePlace::Right)].into(), ..PaneLayout::default() },
        ]
    }

    /// All relevant screens: each combination of open panes, with each pane focused, zoomed or not, in several layouts.
    fn screens() -> Vec<Screen> {
        let mut screens = Vec::new();
        let layouts = layouts();
        for (open, layout) in (0..64).zip(layouts.iter().cycle()) {
            for focus in Screen::new(Vec::new()).panes() {
                for zoomed in [false, true] {
                    let mut screen = Screen::new(Vec::new());
                    screen.layout = layout.clone();
                    screen.zoomed = zoomed;
                    for (place, opening) in screen.openings.values_mut().enumerate() {
                        opening.on_content(open & (1 << place) == 0, Timestamp::EPOCH);
                    }
                    screen.focus_on(focus);
                    screens.push(screen);
                }
            }
        }
        screens
    }

    #[test]
    fn slots_cover_the_body_without_overlap_at_every_size() {
        let screens = screens();
        for width in (60..=240).step_by(7).chain([80, 120, 160, 220]) {
            for height in (15..=80).step_by(3).chain([24, 40, 48]) {
                for (zones, screen) in [0, 3, 50].into_iter().cycle().zip(&screens) {
                    let area = Rect::new(0, 0, width, height);
                    let extra = ExtraLines { banner: zones == 3, playback: zones > 0 };
                    let plan = ScreenLayout::new(area, screen, zones, extra).expect("large enough");
                    let areas: Vec<Rect> = plan.slots.iter().map(|slot| slot.area).collect();
                    let cells: u32 = areas.iter().map(|area| area.area()).sum();
                    let banner = plan.banner.map_or(0, Rect::area);
                    let playback = plan.playback.map_or(0, Rect::area);
                    let whole = cells + plan.header.area() + playback + banner + plan.footer.area();
                    assert_eq!(whole, area.area(), "{width}x{height}");
                    assert!(areas.iter().all(|rect| area.contains(rect.as_position())));
                    for border in &plan.drawn.borders {
                        assert!(
                            area.intersection(border.line()) == border.line(),
                            "{width}x{height} {plan:?}"
                        );
                    }
                    for slot in &plan.slots {
                        let least = if screen.is_open(slot.active) { 4 } else { 1 };
                        assert!(
                            slot.area.height >= least && slot.area.width >= 10,
                            "{width}x{height} {plan:?}"
                        );
                        assert!(slot.tabs.contains(&slot.active), "{width}x{height} {plan:?}");
                    }
                    let is_shown = plan.slots.iter().any(|slot| slot.active == screen.focus);
                    assert!(is_shown, "{width}x{height} {plan:?}");
                }
            }
        }
    }

    #[test]
    fn focus_moves_no_pane() {
        for (width, height) in [(80, 24), (100, 30), (120, 40), (160, 48), (220, 60)] {
            let places = |focus| {
                let mut screen = Screen::new(Vec::new());
                screen.openings.values_mut().for_each(|opening| opening.on_content(false, Timestamp::EPOCH));
                screen.focus_on(focus);
                let area = Rect::new(0, 0, width, height);
                let plan = ScreenLayout::new(area, &screen, 3, ExtraLines::default()).expect("large enough");
                plan.slots.into_iter().map(|slot| (slot.area, slot.tabs)).collect::<Vec<_>>()
            };
            for pane in Screen::new(Vec::new()).panes() {
                assert_eq!(places(pane), places(Pane::Nodes), "{pane:?} at {width}x{height}");
            }
        }
    }

    #[test]
    fn what_has_nothing_to_show_is_one_line_and_its_room_goes_to_the_nodes() {
        for (width, height, least) in [(80, 24, 20), (120, 40, 28), (160, 48, 36), (220, 60, 48)] {
            let area = Rect::new(0, 0, width, height);
            let plan = ScreenLayout::new(area, &Screen::new(Vec::new()), 3, ExtraLines::default())
                .expect("large enough");
            let height_of =
                |pane| plan.slots.iter().find(|slot| slot.active == pane).map(|slot| slot.area.height);
            assert_eq!(height_of(Pane::Evictions), Some(1));
            assert!(height_of(Pane::Nodes) >= Some(least), "{width}x{height} {plan:?}");
        }
    }

    #[test]
    fn a_terminal_too_small_has_no_plan() {
        let plan = |width, height| {
            ScreenLayout::new(
                Rect::new(0, 0, width, height),
                &Screen::new(Vec::new()),
                3,
                ExtraLines::default(),
            )
        };
        assert!(plan(59, 40).is_none() && plan(200, 14).is_none() && plan(0, 0).is_none());
    }
}
