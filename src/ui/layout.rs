//! Positions of everything on screen, by the size of the terminal.

use ratatui::layout::Rect;

use crate::app::{Pane, Screen, overlays::Overlay};

/// Minimum size in columns and rows that has space for tables.
pub const LEAST: (u16, u16) = (60, 15);
/// Minimum size at which a view is drawn beside the nodes; below, it covers the panes.
const BESIDE: (u16, u16) = (150, 44);

/// Tabs of the lower slot in layouts with one slot below the nodes.
const LOWER: [Pane; 8] = [
    Pane::Zones,
    Pane::Evictions,
    Pane::Forecast,
    Pane::Journal,
    Pane::Pending,
    Pane::Departures,
    Pane::Budgets,
    Pane::Audit,
];
/// Tabs of the left slot: pods that leave, that wait for a node, and that left; budgets, and the audit.
const LEFT: &[Pane] = &[Pane::Evictions, Pane::Pending, Pane::Departures, Pane::Budgets, Pane::Audit];

/// The parts of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenLayout {
    pub header: Rect,
    /// Area of the playback's time line.
    pub playback: Option<Rect>,
    /// Area of the banner about an interrupted drain.
    pub banner: Option<Rect>,
    /// Slots from top to bottom and from left to right.
    pub slots: Vec<Slot>,
    pub footer: Rect,
    /// Whether panes have full frames instead of only a rule above them.
    pub framed: bool,
}

/// Which optional lines are between the header and the panes.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtraLines {
    pub playback: bool,
    pub banner: bool,
}

/// Area for one pane, or for several as tabs. The size of the screen alone decides which panes share a slot, so focus
/// never moves a pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    pub area: Rect,
    /// Panes in the order of their digits.
    pub tabs: Vec<Pane>,
    /// The shown tab.
    pub active: Pane,
}

impl Slot {
    /// Creates a slot whose area is set later. The focused tab is shown, or else the one focused last.
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
        let slots = if screen.zoomed || (view == Some(screen.focus) && !has_room_beside) {
            vec![Slot { area: body, ..Slot::new(&[screen.focus], screen) }]
        } else if body.height < 16 {
            vec![Slot { area: body, ..Slot::new(&screen.panes(), screen) }]
        } else if let Some(view) = view.filter(|_| has_room_beside) {
            let left = Rect { width: body.width * 2 / 5, ..body };
            let right = Rect { x: left.right(), width: body.width - left.width, ..body };
            let mut slots = compact(left, screen, screen.node_pane(), framed);
            slots.push(Slot { area: right, ..Slot::new(&[view], screen) });
            slots
        } else if area.width < 120 || area.height < 30 {
            compact(body, screen, screen.panes()[1], framed)
        } else {
            stack(body, screen, zones)
        };
        Some(Self { header, playback, banner, slots, footer, framed })
    }
}

/// Layout with the nodes above a single slot for all other panes.
fn compact(body: Rect, screen: &Screen, nodes: Pane, framed: bool) -> Vec<Slot> {
    let lower = Slot::new(&LOWER, screen);
    let height = if screen.is_open(lower.active) { open_height(body.height, framed) } else { 1 };
    let (upper, rest) = split(body, body.height - height);
    vec![Slot { area: upper, tabs: vec![nodes], active: nodes }, Slot { area: rest, ..lower }]
}

/// Layout with the zones at the top, the nodes below the zones, and the other panes side by side at the bottom.
fn stack(body: Rect, screen: &Screen, zones: usize) -> Vec<Slot> {
    let most = if body.height < 44 { 4 } else { 8 };
    let zones = u16::try_from(zones.clamp(1, most)).unwrap_or(most as u16) + 3;
    let (upper, rest) = split(body, zones);
    let (tabs, shares): (&[&[Pane]], &[u16]) = if body.width < 200 {
        (&[LEFT, &[Pane::Forecast, Pane::Journal]], &[5, 4])
    } else {
        (&[LEFT, &[Pane::Forecast], &[Pane::Journal]], &[4, 4, 3])
    };
    let mut lower: Vec<Slot> = tabs.iter().map(|tabs| Slot::new(tabs, screen)).collect();
    let (nodes, lower_area) = split(rest, rest.height - row_height(rest.height, &lower, screen));
    let (whole, mut x): (u16, u16) = (shares.iter().sum(), lower_area.x);
    for (place, (slot, share)) in lower.iter_mut().zip(shares).enumerate() {
        let is_last = place + 1 == shares.len();
        let width = if is_last { lower_area.right() - x } else { lower_area.width / whole * share };
        slot.area = Rect { x, width, ..lower_area };
        x += width;
    }
    let alone = |pane, area| Slot { area, tabs: vec![pane], active: pane };
    let mut slots = vec![alone(Pane::Zones, upper), alone(screen.panes()[1], nodes)];
    slots.extend(lower);
    slots
}

/// Height of slots side by side: one line if all are empty, a few rows if only the journal has content.
fn row_height(room: u16, slots: &[Slot], screen: &Screen) -> u16 {
    let open: Vec<&Slot> = slots.iter().filter(|slot| screen.is_open(slot.active)).collect();
    match open.as_slice() {
        [] => 1,
        [one] if one.tabs == [Pane::Journal] => 7,
        _ => open_height(room, true),
    }
}

/// Height of the lower part of an area while it has content.
fn open_height(room: u16, framed: bool) -> u16 {
    (room * 2 / 5).clamp(if framed { 6 } else { 5 }, 20)
}

fn split(area: Rect, upper: u16) -> (Rect, Rect) {
    let lower = Rect { y: area.y + upper, height: area.height - upper, ..area };
    (Rect { height: upper, ..area }, lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_time::Timestamp;

    /// All relevant screens: each combination of open panes, with each pane focused, zoomed or not.
    fn screens() -> Vec<Screen> {
        let mut screens = Vec::new();
        for open in 0..64 {
            for focus in Screen::new(Vec::new()).panes() {
                for zoomed in [false, true] {
                    let mut screen = Screen::new(Vec::new());
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
                    for slot in &plan.slots {
                        let least = if screen.is_open(slot.active) { 4 } else { 1 };
                        assert!(slot.area.height >= least, "{width}x{height} {plan:?}");
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
