//! Shows the columns of a list that the configuration chooses, in their order.

use crate::{
    app::{ChosenColumn, Pane},
    ui::{
        Scene,
        theme::Role,
        widgets::{Cell, Column, Width},
    },
};

/// The chosen columns of a list; none if the list has its usual ones.
#[derive(Clone, Copy, Debug)]
pub struct ColumnChoice<'a>(Option<&'a [ChosenColumn]>);

impl<'a> ColumnChoice<'a> {
    pub fn new(scene: &Scene<'a>, pane: Pane) -> Self {
        Self(scene.app.preferences.columns.get(&pane).map(Vec::as_slice))
    }

    /// Whether all columns of the table are needed, those of the wide one included.
    pub const fn needs_all(&self) -> bool {
        self.0.is_some()
    }

    /// The columns to show, of all columns of the table. The last ones give way first.
    pub fn columns(&self, all: Vec<Column>) -> Vec<Column> {
        let Some(chosen) = self.0 else { return all };
        let column = |chosen: &ChosenColumn| match chosen {
            ChosenColumn::Own(place) => all.get(*place).cloned(),
            ChosenColumn::Label(key) => {
                let title = key.rsplit('/').next().unwrap_or(key).to_owned();
                Some(Column::titled(title.into(), Width::Fit(6, 28)))
            }
        };
        let ranked = |(place, column): (u8, Column)| column.gives_way(place);
        (0..=u8::MAX).zip(chosen.iter().filter_map(column)).map(ranked).collect()
    }

    /// The cells to show, of all cells of a row. `label` is the value of a label.
    pub fn cells(&self, scene: &Scene, all: Vec<Cell>, label: impl Fn(&str) -> Option<String>) -> Vec<Cell> {
        let Some(chosen) = self.0 else { return all };
        let cell = |chosen: &ChosenColumn| match chosen {
            ChosenColumn::Own(place) => all.get(*place).cloned(),
            ChosenColumn::Label(key) => {
                Some(Cell::new(&label(key).unwrap_or_default(), scene.style(Role::Dim)))
            }
        };
        chosen.iter().filter_map(cell).collect()
    }
}
