//! What a user does on the screen, and the part of the screen that each action changes.

use super::dashboard::{COLUMNS, Screen};

/// An action of a user. It can be repeated any number of times.
#[derive(Clone, Copy)]
pub enum Action {
    /// Selects the next row, and then the one before.
    Move,
    /// Types a letter of a filter. The filter is the name of a node, and a new one begins after its last letter.
    Filter,
    Sort,
    Group,
    /// Turns the wheel down, and then up.
    Wheel,
    /// Clicks on two rows in turn.
    ClickRow,
    /// Clicks on a heading, which reverses the order.
    ClickHeading,
}

/// Letters of the name of a node.
const LETTERS: usize = "node-00000".len();

impl Action {
    /// The actions on a list besides [`Action::Move`].
    pub const OTHERS: [Self; 6] =
        [Self::Filter, Self::Sort, Self::Group, Self::Wheel, Self::ClickRow, Self::ClickHeading];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Move => "key to frame",
            Self::Filter => "letter of a filter to frame",
            Self::Sort => "sort to frame",
            Self::Group => "group to frame",
            Self::Wheel => "wheel to frame",
            Self::ClickRow => "click on a row to frame",
            Self::ClickHeading => "click on a heading to frame",
        }
    }

    /// Keys before the first repetition, each typed when the one before has taken effect.
    pub const fn start(self) -> &'static [&'static str] {
        match self {
            // A new view may have no selected row, and in the first row a key upwards has no effect.
            Self::Move | Self::Wheel | Self::ClickRow => &["gj"],
            // The selected row stays in sight, so from the first one the list shows its first rows.
            Self::Filter | Self::Sort | Self::Group | Self::ClickHeading => &["g"],
        }
    }

    /// Keys before a repetition.
    pub const fn before(self, number: usize) -> &'static [&'static str] {
        match self {
            Self::Filter if number == 0 => &["/"],
            Self::Filter if number.is_multiple_of(LETTERS) => &["\x1b", "/"],
            _ => &[],
        }
    }

    /// Keys after the last repetition, which restore the list.
    pub const fn end(self) -> &'static [&'static str] {
        match self {
            Self::Filter => &["\x1b"],
            Self::Sort | Self::ClickHeading => &[":sort state\r"],
            Self::Move | Self::Group | Self::Wheel | Self::ClickRow => &[],
        }
    }

    /// What the terminal sends.
    pub fn input(self, number: usize, screen: &Screen) -> String {
        let is_even = number.is_multiple_of(2);
        let below_title = |rows: u16| screen.nodes().expect("the pane of the nodes") + rows;
        match self {
            Self::Move => if is_even { "j" } else { "k" }.into(),
            Self::Filter => {
                let name = format!("node-{:05}", number / LETTERS);
                name[number % LETTERS..][..1].into()
            }
            Self::Sort => "s".into(),
            Self::Group => "G".into(),
            Self::Wheel => mouse(if is_even { 65 } else { 64 }, COLUMNS / 4, below_title(4), 'M'),
            Self::ClickRow => click(COLUMNS / 4, below_title(if is_even { 6 } else { 4 })),
            Self::ClickHeading => {
                let heading = screen.row(below_title(1));
                let before = heading.split(" zone").next().unwrap_or_default();
                click(u16::try_from(before.chars().count()).expect("a column") + 1, below_title(1))
            }
        }
    }

    /// The part of the screen that the action changes, and nothing else; `None` while it is not drawn.
    pub fn trace(self, screen: &Screen) -> Option<String> {
        match self {
            Self::Move | Self::Wheel | Self::ClickRow => screen.selected(),
            Self::Filter => screen.last_row().split_whitespace().next().map(str::to_owned),
            // The title has the column and an arrow, but for the default order.
            Self::Sort | Self::ClickHeading => {
                let title = screen.row(screen.nodes()?);
                let order =
                    title.rsplit_once(" by ").map(|(_, order)| order.split('─').next().unwrap_or(order));
                Some(order.unwrap_or_default().trim().to_owned())
            }
            Self::Group => Some(screen.name_in(screen.nodes()? + 2)),
        }
    }
}

/// The bytes for a click of the left button on a cell.
fn click(column: u16, row: u16) -> String {
    mouse(0, column, row, 'M') + &mouse(0, column, row, 'm')
}

/// The bytes for an event of the mouse (SGR), which counts cells from 1.
fn mouse(button: u8, column: u16, row: u16, end: char) -> String {
    format!("\x1b[<{button};{};{}{end}", column + 1, row + 1)
}
