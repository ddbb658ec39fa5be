//! Shows the columns of a list that the configuration chooses, in their order and widths.

use crate::{
    app::{ChosenColumn, Pane, PaneColumns, chosen_columns::names},
    ui::{
        Scene,
        theme::Role,
        widgets::{Cell, Column, Width},
    },
};
use kordon_core::cluster::Pod;

/// The chosen columns of a list; none if the list has its default columns.
#[derive(Clone, Copy, Debug)]
pub struct ColumnChoice<'a> {
    /// Names of all columns of the table.
    names: &'static [&'static str],
    chosen: Option<&'a PaneColumns>,
}

impl<'a> ColumnChoice<'a> {
    pub fn new(scene: &Scene<'a>, pane: Pane) -> Self {
        Self { names: names(pane), chosen: scene.app.preferences.columns.get(&pane) }
    }

    /// Whether all columns of the table are needed, including those of the wide table.
    pub fn needs_all(&self) -> bool {
        self.shown().is_some()
    }

    fn shown(&self) -> Option<&'a [ChosenColumn]> {
        self.chosen.map(|chosen| chosen.show.as_slice()).filter(|show| !show.is_empty())
    }

    /// Selects the columns to show from all columns of the table. If space is short, the last columns are dropped
    /// first.
    pub fn columns(&self, all: Vec<Column>) -> Vec<Column> {
        let Some(shown) = self.shown() else {
            return all
                .into_iter()
                .map(|column| self.sized(&ChosenColumn::Own(column.name), column))
                .collect();
        };
        let column = |chosen: &ChosenColumn| match chosen {
            ChosenColumn::Own(name) => all
                .iter()
                .find(|column| column.name == *name)
                .map(|column| self.sized(chosen, column.clone())),
            ChosenColumn::Label(key) | ChosenColumn::Annotation(key) => {
                let title = key.rsplit('/').next().unwrap_or(key).to_owned();
                Some(self.sized(chosen, Column::titled(title.into(), Width::Fit(6, 28))))
            }
        };
        let ranked = |(place, column): (u8, Column)| column.gives_way(place);
        (0..=u8::MAX).zip(shown.iter().filter_map(column)).map(ranked).collect()
    }

    /// The column with its configured width.
    fn sized(&self, chosen: &ChosenColumn, column: Column) -> Column {
        match self.chosen.and_then(|columns| columns.widths.get(chosen)) {
            Some(width) => Column { width: Width::Fixed(*width), whole: None, ..column },
            None => column,
        }
    }

    /// Selects the cells to show from all cells of a row. `value` returns the value of a label or annotation.
    pub fn cells(
        &self,
        scene: &Scene,
        all: Vec<Cell>,
        value: impl Fn(&ChosenColumn) -> Option<String>,
    ) -> Vec<Cell> {
        let Some(shown) = self.shown() else { return all };
        let cell = |chosen: &ChosenColumn| match chosen {
            ChosenColumn::Own(wanted) => {
                let place = self.names.iter().position(|name| name == wanted)?;
                all.get(place).cloned()
            }
            ChosenColumn::Label(_) | ChosenColumn::Annotation(_) => {
                Some(Cell::new(&value(chosen).unwrap_or_default(), scene.style(Role::Dim)))
            }
        };
        shown.iter().filter_map(cell).collect()
    }

    /// The cells to show of a row that is about a pod.
    pub fn cells_of_pod(&self, scene: &Scene, pod: Option<&Pod>, all: Vec<Cell>) -> Vec<Cell> {
        let label = |chosen: &ChosenColumn| pod?.labels.get(chosen.key()?).map(ToString::to_string);
        self.cells(scene, all, label)
    }

    /// The cells to show of a row whose object has no known labels.
    pub fn own_cells(&self, scene: &Scene, all: Vec<Cell>) -> Vec<Cell> {
        self.cells(scene, all, |_| None)
    }
}
