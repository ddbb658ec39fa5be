//! Where everything is drawn, by the size of the terminal.

use ratatui::layout::Rect;

use crate::app::{Pane, Screen};

/// Below this there is no room for tables.
pub const LEAST: (u16, u16) = (60, 15);

/// The parts of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenLayout {
    pub header: Rect,
    /// The line about an interrupted operation.
    pub banner: Option<Rect>,
    /// The panes that are shown, from top to bottom.
    pub panes: Vec<(Pane, Rect)>,
    pub footer: Rect,
    /// Whether panes have frames, or only rules above them.
    pub framed: bool,
}

impl ScreenLayout {
    /// ```text
    /// header
    /// banner, where there is one
    /// zones
    /// nodes, or the pods of one
    /// evictions | forecast | journal      as many side by side as there is room for, those last focused
    /// footer
    /// ```
    /// None if the terminal is too small. On a low one, and when zoomed, the focused pane stands alone.
    pub fn of(area: Rect, screen: &Screen, zones: usize, banner: bool) -> Option<Self> {
        if area.width < LEAST.0 || area.height < LEAST.1 {
            return None;
        }
        let framed = area.height >= 30 && area.width >= 100;
        let header_rows = if area.height >= 26 { 3 } else { 2 };
        let header = Rect { height: header_rows, ..area };
        let footer = Rect { y: area.bottom() - 1, height: 1, ..area };
        let banner = banner.then(|| Rect { y: header.bottom(), height: 1, ..area });
        let top = banner.unwrap_or(header).bottom();
        let body = Rect { y: top, height: footer.y - top, ..area };
        let panes = if screen.zoomed || body.height < 16 {
            vec![(screen.focus, body)]
        } else {
            stack(body, screen, zones, framed)
        };
        Some(Self { header, banner, panes, footer, framed })
    }
}

impl ScreenLayout {
    /// The panes of the lower part that are not shown for lack of room.
    pub fn hidden(&self, screen: &Screen) -> Vec<Pane> {
        let shows = |wanted: &Pane| self.panes.iter().any(|(pane, _)| pane == wanted);
        if self.panes.len() < 2 {
            return Vec::new();
        }
        screen.lower.iter().filter(|pane| !shows(pane)).copied().collect()
    }
}

fn stack(body: Rect, screen: &Screen, zones: usize, framed: bool) -> Vec<(Pane, Rect)> {
    let frame = if framed { 2 } else { 1 };
    let most = match body.height {
        0..24 => 3,
        24..44 => 4,
        44.. => 8,
    };
    let zones = u16::try_from(zones.clamp(1, most)).unwrap_or(3) + 1 + frame;
    let rest = body.height - zones;
    let lower = (rest * 2 / 5).clamp(6, 20);
    let upper = Rect { height: zones, ..body };
    let middle = Rect { y: upper.bottom(), height: rest - lower, ..body };
    let lower = Rect { y: middle.bottom(), height: lower, ..body };
    let nodes = screen.panes()[1];
    let mut panes = vec![(Pane::Zones, upper), (nodes, middle)];
    panes.extend(side_by_side(lower, screen));
    panes
}

/// As many panes of the lower part as there is room for: those last focused, in their order from left to right.
fn side_by_side(area: Rect, screen: &Screen) -> Vec<(Pane, Rect)> {
    let (room, shares): (usize, &[u16]) = match area.width {
        0..120 => (1, &[1]),
        120..200 => (2, &[3, 2]),
        200.. => (3, &[2, 2, 1]),
    };
    let chosen = &screen.lower[..room.min(screen.lower.len())];
    let whole: u16 = shares.iter().sum();
    let mut x = area.x;
    let mut panes = Vec::new();
    for (pane, share) in Pane::LOWER.iter().filter(|pane| chosen.contains(pane)).zip(shares) {
        let last = panes.len() + 1 == chosen.len();
        let width = if last { area.right() - x } else { area.width / whole * share };
        panes.push((*pane, Rect { x, width, ..area }));
        x += width;
    }
    panes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panes_cover_the_body_without_overlap_at_every_size() {
        for width in 60..=240 {
            for height in 15..=80 {
                for zones in [0, 3, 50] {
                    let area = Rect::new(0, 0, width, height);
                    let banner = zones == 3;
                    let plan = ScreenLayout::of(area, &Screen::new(Vec::new()), zones, banner)
                        .expect("large enough");
                    let cells: u32 = plan.panes.iter().map(|(_, rect)| rect.area()).sum();
                    let banner = plan.banner.map_or(0, Rect::area);
                    let whole = cells + plan.header.area() + banner + plan.footer.area();
                    assert_eq!(whole, area.area(), "{width}x{height}");
                    assert!(plan.panes.iter().all(|(_, rect)| rect.height >= 3), "{width}x{height} {plan:?}");
                    assert!(plan.panes.iter().all(|(_, rect)| area.contains(rect.as_position())));
                }
            }
        }
    }

    #[test]
    fn a_terminal_too_small_has_no_plan() {
        let plan = |width, height| {
            ScreenLayout::of(Rect::new(0, 0, width, height), &Screen::new(Vec::new()), 3, false)
        };
        assert!(plan(59, 40).is_none() && plan(200, 14).is_none() && plan(0, 0).is_none());
    }
}
