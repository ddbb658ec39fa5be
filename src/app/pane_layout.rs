//! Sizes and places of the panes: a few shares that keys, the mouse and the configuration change. The nodes are always
//! in the middle; small terminals show all other panes as tabs below them, wherever their places are.

use std::collections::BTreeMap;

use ratatui::layout::Rect;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::pane::Pane;

/// Sizes and places of the panes. Values that are not set have their default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PaneLayout {
    /// Height of the panes above the nodes, in lines with their frame; by default as many as the zones need.
    #[schemars(with = "u16", extend("minimum" = 4, "maximum" = 100))]
    pub above: Option<u16>,
    /// Height of the panes below the nodes while they have rows, in percent; by default 40 and at most 20 lines.
    #[schemars(with = "u16", extend("minimum" = 10, "maximum" = 90))]
    pub below: Option<u16>,
    /// Width of the nodes beside a detail or plan, in percent; by default 40.
    #[schemars(with = "u16", extend("minimum" = 20, "maximum" = 80))]
    pub beside: Option<u16>,
    /// Relative width of the left panes below the nodes.
    #[schemars(with = "u16", extend("minimum" = 1, "maximum" = 1000))]
    pub left: Option<u16>,
    /// Relative width of the middle panes below the nodes. On screens narrower than 200 columns they share tabs with
    /// the right panes.
    #[schemars(with = "u16", extend("minimum" = 1, "maximum" = 1000))]
    pub middle: Option<u16>,
    /// Relative width of the right panes below the nodes.
    #[schemars(with = "u16", extend("minimum" = 1, "maximum" = 1000))]
    pub right: Option<u16>,
    /// Places of panes that are not at their default place.
    #[schemars(with = "BTreeMap<String, PanePlace>", extend("propertyNames" = json!({"enum": pane_names()})))]
    pub places: BTreeMap<Pane, PanePlace>,
}

/// Place of a pane on the screen: above the nodes, or in a column below them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PanePlace {
    Above,
    Left,
    Middle,
    Right,
}

impl PanePlace {
    /// Name of a pane's place, as in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Above => "above",
            Self::Left => "left",
            Self::Middle => "middle",
            Self::Right => "right",
        }
    }
}

/// The columns below the nodes, from left to right.
pub const COLUMNS: [PanePlace; 3] = [PanePlace::Left, PanePlace::Middle, PanePlace::Right];

/// Borders and places of panes at the last draw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawnLayout {
    /// Borders that can be moved. If a pane has two borders in one direction, the border that determines its size is
    /// last.
    pub borders: Vec<PaneBorder>,
    /// Places that panes can be moved to, in their order; empty if all panes share one area as tabs.
    pub places: Vec<PanePlace>,
}

/// A border that divides an area of the screen between two groups of panes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaneBorder {
    pub kind: BorderKind,
    pub area: Rect,
    /// Screen row or column at which the second group of panes begins.
    pub at: u16,
    /// The first group of panes, above the border or left of it.
    pub first: Vec<Pane>,
    pub second: Vec<Pane>,
}

/// The panes that a border separates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BorderKind {
    /// The border between the panes above the nodes and the nodes pane.
    Above,
    /// The border between the nodes pane and the panes below it.
    Below,
    /// The border between the nodes pane and a detail or plan beside it.
    Beside,
    /// The border between two columns of panes below the nodes. `widths` has the widths of all columns, in cells.
    Columns { widths: [u16; 3] },
}

/// Direction in which a pane is resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaneSide {
    Height,
    Width,
}

/// A change of the size of a pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaneSize {
    Larger,
    Smaller,
}

/// Direction in which a pane is moved among its places: above the nodes, then the columns below them from left to
/// right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaneMove {
    Back,
    On,
}

/// Minimum number of lines, and of cells, that a pane keeps when a border moves.
const LEAST: (u16, u16) = (6, 24);

impl PaneBorder {
    const fn side(&self) -> PaneSide {
        match self.kind {
            BorderKind::Above | BorderKind::Below => PaneSide::Height,
            BorderKind::Beside | BorderKind::Columns { .. } => PaneSide::Width,
        }
    }

    /// Whether the border is horizontal, with panes above and below it.
    pub fn is_horizontal(&self) -> bool {
        self.side() == PaneSide::Height
    }

    /// The cells at which the mouse can grab the border: the first line below a horizontal border, or the columns of
    /// cells left and right of a vertical one.
    pub fn line(&self) -> Rect {
        match self.side() {
            PaneSide::Height => Rect { y: self.at, height: 1, ..self.area },
            PaneSide::Width => Rect { x: self.at.saturating_sub(1), width: 2, ..self.area },
        }
    }

    /// Position nearest to `wanted` at which the panes on both sides of the border keep their minimum size; `None` if
    /// the area is too small.
    fn place(&self, wanted: u16) -> Option<u16> {
        let (from, to, least) = match self.side() {
            PaneSide::Height => (self.area.y, self.area.bottom(), LEAST.0),
            PaneSide::Width => (self.area.x, self.area.right(), LEAST.1),
        };
        let (first, last) = (from + least, to.saturating_sub(least));
        (first <= last).then(|| wanted.clamp(first, last))
    }
}

impl DrawnLayout {
    /// The border that resizes a pane in this direction, and whether the border is below or right of the pane.
    pub fn border_of(&self, pane: Pane, side: PaneSide) -> Option<(&PaneBorder, bool)> {
        let of_pane = |border: &&PaneBorder| {
            border.side() == side && (border.first.contains(&pane) || border.second.contains(&pane))
        };
        let border = self.borders.iter().rev().find(of_pane)?;
        Some((border, border.first.contains(&pane)))
    }
}

impl PaneLayout {
    /// Returns this layout, with the values that are set in `own` replaced by those of `own`.
    #[must_use]
    pub fn overridden_with(mut self, own: Self) -> Self {
        self.places.extend(own.places);
        Self {
            above: own.above.or(self.above),
            below: own.below.or(self.below),
            beside: own.beside.or(self.beside),
            left: own.left.or(self.left),
            middle: own.middle.or(self.middle),
            right: own.right.or(self.right),
            places: self.places,
        }
    }

    /// Place of a pane; `None` for the nodes, and for what is shown in their place.
    pub fn place(&self, pane: Pane) -> Option<PanePlace> {
        let usual = usual_place(pane)?;
        Some(self.places.get(&pane).copied().unwrap_or(usual))
    }

    /// Whether the relative widths of the columns below the nodes differ from the defaults.
    pub fn has_shares(&self) -> bool {
        self.left.or(self.middle).or(self.right).is_some()
    }

    /// Relative width of a column below the nodes; 0 for the place above the nodes, which is not a column.
    pub fn share(&self, column: PanePlace) -> u16 {
        match column {
            PanePlace::Above => 0,
            PanePlace::Left => self.left.unwrap_or(40),
            PanePlace::Middle => self.middle.unwrap_or(40),
            PanePlace::Right => self.right.unwrap_or(30),
        }
    }

    /// The sizes and places that are set, as lines of TOML.
    pub fn to_toml(&self) -> Vec<String> {
        let numbers = [
            ("above", self.above),
            ("below", self.below),
            ("beside", self.beside),
            ("left", self.left),
            ("middle", self.middle),
            ("right", self.right),
        ];
        let numbers = numbers.into_iter().filter_map(|(key, number)| Some(format!("{key} = {}", number?)));
        let places = self
            .places
            .iter()
            .map(|(pane, place)| format!("{} = \"{}\"", pane.title().to_lowercase(), place.as_str()));
        let places: Vec<String> = places.collect();
        let places = (!places.is_empty()).then(|| format!("places = {{ {} }}", places.join(", ")));
        numbers.chain(places).collect()
    }

    /// Moves a pane to a place.
    pub fn move_to(&mut self, pane: Pane, place: PanePlace) {
        if usual_place(pane) == Some(place) {
            self.places.remove(&pane);
        } else {
            self.places.insert(pane, place);
        }
    }

    /// Moves a border to a row or column. Returns whether anything changed.
    pub fn move_border(&mut self, border: &PaneBorder, wanted: u16) -> bool {
        let before = self.clone();
        let Some(at) = border.place(wanted) else { return false };
        let PaneBorder { area, .. } = border;
        match border.kind {
            BorderKind::Above => self.above = Some(at - area.y),
            BorderKind::Below => self.below = Some(percent(area.bottom() - at, area.height)),
            BorderKind::Beside => self.beside = Some(percent(at - area.x, area.width)),
            BorderKind::Columns { widths } => self.share_out(border, widths, at - area.x),
        }
        *self != before
    }

    /// Distributes the widths after a border has moved: the columns left of the border get `first` cells together, and
    /// the columns right of it get the rest of the area.
    fn share_out(&mut self, border: &PaneBorder, mut widths: [u16; 3], first: u16) {
        let is_in = |column: usize, panes: &[Pane]| {
            panes.iter().any(|pane| self.place(*pane) == Some(COLUMNS[column]))
        };
        for (panes, width) in [(&border.first, first), (&border.second, border.area.width - first)] {
            let columns: Vec<usize> = (0..COLUMNS.len()).filter(|column| is_in(*column, panes)).collect();
            let before: Vec<u16> = columns.iter().map(|column| widths[*column]).collect();
            for (column, width) in columns.into_iter().zip(divided(width, &before)) {
                widths[column] = width;
            }
        }
        [self.left, self.middle, self.right] = widths.map(|width| Some(width.max(1)));
    }
}

/// The default place of a pane; `None` for a pane that is always in the middle.
const fn usual_place(pane: Pane) -> Option<PanePlace> {
    Some(match pane {
        Pane::Zones => PanePlace::Above,
        Pane::Evictions | Pane::Pending | Pane::Departures | Pane::Budgets | Pane::Audit => PanePlace::Left,
        Pane::Forecast => PanePlace::Middle,
        Pane::Journal => PanePlace::Right,
        Pane::Nodes | Pane::Pods | Pane::Detail | Pane::Plan | Pane::Progress | Pane::Events => return None,
    })
}

/// Panes that can be moved, in the order of their digits.
pub const MOVABLE: [Pane; 8] = [
    Pane::Zones,
    Pane::Evictions,
    Pane::Forecast,
    Pane::Journal,
    Pane::Pending,
    Pane::Departures,
    Pane::Budgets,
    Pane::Audit,
];

/// Names of the panes that can be moved, as the configuration has them.
fn pane_names() -> [String; 8] {
    MOVABLE.map(|pane| pane.title().to_lowercase())
}

fn percent(part: u16, whole: u16) -> u16 {
    let whole = u32::from(whole.max(1));
    u16::try_from((100 * u32::from(part) + whole / 2) / whole).unwrap_or(100)
}

/// Divides a length in proportion to weights. The last part also gets what rounding leaves over.
pub fn divided(length: u16, weights: &[u16]) -> Vec<u16> {
    let whole: u32 = weights.iter().copied().map(u32::from).sum();
    let mut rest = length;
    let mut parts = Vec::with_capacity(weights.len());
    for (place, weight) in weights.iter().enumerate() {
        let part = u32::from(length) * u32::from(*weight) / whole.max(1);
        let is_last = place + 1 == weights.len();
        let part = if is_last { rest } else { u16::try_from(part).unwrap_or(rest) };
        parts.push(part);
        rest -= part;
    }
    parts
}

/// A percentage of a length, rounded to a whole number.
pub fn part(whole: u16, percent: u16) -> u16 {
    u16::try_from((u32::from(whole) * u32::from(percent) + 50) / 100).unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn border(kind: BorderKind, area: Rect, at: u16) -> PaneBorder {
        PaneBorder {
            kind,
            area,
            at,
            first: vec![Pane::Evictions],
            second: vec![Pane::Forecast, Pane::Journal],
        }
    }

    #[test]
    fn a_border_is_drawn_where_it_was_moved_to() {
        for height in 20..100 {
            let area = Rect::new(0, 3, 80, height);
            for wanted in area.y + LEAST.0..=area.bottom() - LEAST.0 {
                let mut layout = PaneLayout::default();
                layout.move_border(&border(BorderKind::Below, area, 10), wanted);
                let below = part(height, layout.below.expect("set"));
                assert_eq!(area.bottom() - below, wanted, "{height} lines");
            }
        }
    }

    #[test]
    fn no_border_leaves_too_little_to_a_pane() {
        let area = Rect::new(0, 0, 80, 24);
        let mut layout = PaneLayout::default();
        assert!(layout.move_border(&border(BorderKind::Below, area, 12), 23));
        assert_eq!(layout.below, Some(25));
        assert!(!layout.move_border(&border(BorderKind::Below, area, 18), 20), "it is as low as it may be");
        let low = Rect { height: 2 * LEAST.0 - 1, ..area };
        assert!(!layout.move_border(&border(BorderKind::Below, low, 5), 7));
        layout.move_border(&border(BorderKind::Beside, area, 30), 1);
        assert_eq!(layout.beside, Some(30));
    }

    #[test]
    fn columns_share_what_the_border_between_them_gives_and_takes() {
        let kind = BorderKind::Columns { widths: [80, 40, 30] };
        let mut layout = PaneLayout::default();
        layout.move_border(&border(kind, Rect::new(0, 30, 150, 15), 80), 66);
        let shares = COLUMNS.map(|column| layout.share(column));
        assert_eq!(shares, [66, 48, 36], "the merged columns keep their proportion");
    }

    #[test]
    fn a_pane_that_is_moved_back_is_in_its_usual_place() {
        let mut layout = PaneLayout::default();
        layout.move_to(Pane::Journal, PanePlace::Left);
        assert_eq!(layout.place(Pane::Journal), Some(PanePlace::Left));
        layout.move_to(Pane::Journal, PanePlace::Right);
        assert_eq!(layout, PaneLayout::default());
        assert_eq!(layout.place(Pane::Nodes), None);
    }

    #[test]
    fn what_is_set_for_a_context_overrides_the_rest_entry_by_entry() {
        let layout = |text: &str| toml::from_str::<PaneLayout>(text).expect("valid");
        let all = layout("below = 50\nabove = 9\nplaces = { journal = \"left\", audit = \"right\" }");
        let own = layout("below = 30\nplaces = { audit = \"above\" }");
        let both = layout("below = 30\nabove = 9\nplaces = { journal = \"left\", audit = \"above\" }");
        assert_eq!(all.overridden_with(own), both);
    }

    #[test]
    fn a_layout_that_is_kept_is_read_back() {
        let text = "above = 9\nbelow = 50\nbeside = 30\nleft = 70\nmiddle = 50\nright = 40\n\
                    places = { journal = \"left\", zones = \"right\" }";
        let layout: PaneLayout = toml::from_str(text).expect("valid");
        assert_eq!(toml::from_str(&layout.to_toml().join("\n")), Ok(layout));
        assert!(PaneLayout::default().to_toml().is_empty());
    }
}
