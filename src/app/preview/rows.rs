//! Rows of a plan, or of the impact of a failure, under the titles of their sections.

/// A row of a plan, or of the impact of a failure: the title of a section, or a row below such a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row<R> {
    Section(&'static str),
    Item(R),
}

/// Rows of a plan, or of the impact of a failure, by section. A section without rows has no title.
#[derive(Clone, Debug)]
pub(super) struct Rows<R>(Vec<Row<R>>);

impl<R> Rows<R> {
    pub fn new() -> Self {
        Self(Vec::new())
    }

    pub fn section(&mut self, title: &'static str, items: impl IntoIterator<Item = R>) {
        let mut items = items.into_iter().map(Row::Item).peekable();
        if items.peek().is_some() {
            self.0.push(Row::Section(title));
            self.0.extend(items);
        }
    }

    pub fn into_vec(self) -> Vec<Row<R>> {
        self.0
    }
}

/// Indices of the rows that pass the filter, and of the titles of their sections.
pub(super) fn passing<R>(rows: &[Row<R>], passes: impl Fn(&R) -> bool) -> Vec<usize> {
    let mut kept = Vec::new();
    // Index of the title of the current section, until a row of the section passes the filter.
    let mut title = None;
    for (place, row) in rows.iter().enumerate() {
        match row {
            Row::Section(_) => title = Some(place),
            Row::Item(item) if passes(item) => kept.extend(title.take().into_iter().chain([place])),
            Row::Item(_) => {}
        }
    }
    kept
}
