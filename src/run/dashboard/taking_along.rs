//! What a user takes along: rows for the clipboard, and what is shown as a file.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use ratatui::{Terminal, backend::TestBackend};

use super::{super::Surface, *};
use crate::{
    app::{MOST_COPIED, TakenAlong},
    ui::{self, exported_table::ExportFormat, shown_rows::ShownRows, snapshot, theme::Theme},
};

impl Loop {
    /// Copies or writes what the user has asked for, and says so in the footer.
    pub(super) fn take_along(&mut self, surface: &mut impl Surface) -> Result<(), RunError> {
        let Some(wanted) = self.display.app.taken_along.take() else { return Ok(()) };
        let rows = ui::shown_rows(&self.display.app, self.display.now());
        let said = match wanted {
            TakenAlong::Row => copy(surface, rows.selected_row().ok_or("no row is selected"), "the row")?,
            TakenAlong::Rows => copy(surface, Ok(rows.tabbed()), "all rows")?,
            TakenAlong::Cell(head) => {
                let heads = rows.heads.join(", ");
                let fault = format!("there is no column {head} here: there are {heads}");
                copy(surface, rows.selected_cell(&head).map(str::to_owned).ok_or(&fault), &head)?
            }
            TakenAlong::File(path) => match self.write(&path, &rows) {
                Ok(()) => format!("wrote {}", path.display()),
                Err(why) => why,
            },
            TakenAlong::View(name, view) => match &self.preferences {
                None => "there is no place for a configuration".into(),
                Some(file) => match append(file, &view.to_toml(&name)) {
                    Ok(()) => format!("view {name} is in {}: :view {name}", file.display()),
                    Err(error) => format!("cannot write {}: {error}", file.display()),
                },
            },
        };
        self.display.app.screen.message = Some(said);
        Ok(())
    }

    /// Writes the rows of the focused pane, or the screen as it is, in the format of the file's extension.
    fn write(&self, path: &Path, rows: &ShownRows) -> Result<(), String> {
        let file = path.display();
        if path.exists() {
            return Err(format!("{file} exists: name another file"));
        }
        let text = match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => rows.exported(ExportFormat::Csv),
            Some("md") => rows.exported(ExportFormat::Markdown),
            Some("json") => format!("{:#}\n", rows.json()),
            Some("svg" | "txt" | "ansi") => return self.write_screen(path),
            _ => {
                return Err(format!(
                    "{file}: its end says the format: .csv, .md, .json, .svg, .txt or .ansi"
                ));
            }
        };
        fs::write(path, text).map_err(|error| format!("cannot write {file}: {error}"))
    }

    fn write_screen(&self, path: &Path) -> Result<(), String> {
        let app = &self.display.app;
        let (width, height) = app.screen.size;
        let mut screen = Terminal::new(TestBackend::new(width, height)).map_err(|error| error.to_string())?;
        screen.draw_app(app, self.display.now()).map_err(|error| error.to_string())?;
        let theme = Theme::chosen(app.screen.theme());
        snapshot::write(path, screen.backend().buffer(), &theme).map_err(|error| error.to_string())
    }
}

/// Appends a text to a file, which is created if there is none.
fn append(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(text.as_bytes())
}

/// Copies a text. Returns what to say.
fn copy(surface: &mut impl Surface, text: Result<String, &str>, what: &str) -> Result<String, RunError> {
    match text {
        Ok(text) if text.len() > MOST_COPIED => {
            Ok(format!("{what} is too long for a clipboard: :export FILE"))
        }
        Ok(text) => {
            surface.copy(&text).map_err(RunError::Draw)?;
            Ok(format!("copied {what}"))
        }
        Err(why) => Ok(why.to_owned()),
    }
}
