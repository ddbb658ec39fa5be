//! Copies rows to the clipboard, and writes what is shown to a file.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use ratatui::{Terminal, backend::TestBackend};

use super::{super::Surface, *};
use crate::{
    app::{MOST_COPIED, PaneLayout, TakenAlong},
    ui::{self, exported_table::ExportFormat, shown_rows::ShownRows, snapshot, theme::Theme},
};

const NO_TABLE: &str = "there are no rows here";

impl Loop {
    /// Copies or writes what the user has asked for, and reports it in the footer.
    pub(super) fn take_along(&mut self, surface: &mut impl Surface) -> Result<(), RunError> {
        let Some(wanted) = self.display.app.taken_along.take() else { return Ok(()) };
        let rows = ui::shown_rows(&self.display.app, self.display.now());
        let is_kept = matches!(wanted, TakenAlong::View(..) | TakenAlong::Layout(_));
        let said = match wanted {
            TakenAlong::Row => copy(surface, rows.selected_row().ok_or("no row is selected"), "the row")?,
            TakenAlong::Rows if rows.has_no_table() => format!("{NO_TABLE} to copy"),
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
            TakenAlong::Layout(layout) => match &self.preferences {
                None => "there is no place for a configuration".into(),
                Some(file) => keep_layout(file, &layout).unwrap_or_else(|why| why),
            },
        };
        self.display.app.kept = is_kept.then(|| said.clone());
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
            Some("csv" | "md" | "json") if rows.has_no_table() => {
                return Err(format!("{NO_TABLE}: .svg, .txt and .ansi write the screen"));
            }
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

/// Writes a layout into a configuration file, in place of the layout that the file has. Returns a message for the user.
///
/// # Errors
/// The file cannot be read or written, or its layout is not a table that can be replaced; the text says why.
fn keep_layout(file: &Path, layout: &PaneLayout) -> Result<String, String> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.map_err(|error| format!("cannot read {}: {error}", file.display()))?,
    };
    let text = with_layout(&text, layout).ok_or_else(|| {
        format!("{} has a layout that is no table [layout]: change it there", file.display())
    })?;
    let written = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(file, text));
    written.map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    Ok(format!("the layout is in {}", file.display()))
}

/// Returns the text of a configuration with this layout; `None` if the configuration sets its layout in another way
/// than by one table `[layout]`. The comments in the table are kept.
fn with_layout(text: &str, layout: &PaneLayout) -> Option<String> {
    let is_header = |line: &str| line.trim_start().starts_with('[');
    let lines: Vec<&str> = text.lines().collect();
    let tables = lines.iter().position(|line| is_header(line)).unwrap_or(lines.len());
    let is_key = |line: &&str| {
        line.trim_start().strip_prefix("layout").is_some_and(|rest| rest.trim_start().starts_with(['.', '=']))
    };
    if lines[..tables].iter().any(is_key) || lines[tables..].iter().any(|line| line.starts_with("[layout.")) {
        return None;
    }
    let wanted = layout.to_toml();
    let Some(start) = lines.iter().position(|line| line.trim() == "[layout]") else {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return Some(format!("{text}{gap}\n[layout]\n{}\n", wanted.join("\n")));
    };
    let end =
        lines[start + 1..].iter().position(|line| is_header(line)).map_or(lines.len(), |at| start + 1 + at);
    let stays = lines[start + 1..end].iter().filter(|line| line.trim().is_empty() || line.starts_with('#'));
    let table = std::iter::once(lines[start]).chain(wanted.iter().map(String::as_str)).chain(stays.copied());
    let kept = lines[..start].iter().copied().chain(table).chain(lines[end..].iter().copied());
    Some(kept.map(|line| format!("{line}\n")).collect())
}

/// Copies a text to the clipboard. Returns a message for the user.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str) -> PaneLayout {
        toml::from_str(text).expect("a layout")
    }

    #[test]
    fn a_layout_is_written_in_place_of_the_one_before() {
        let below = layout("below = 50");
        assert_eq!(with_layout("", &below).as_deref(), Some("\n[layout]\nbelow = 50\n"));
        let text = "theme = \"nord\"\n[views.a]\nlayout = { below = 9 }\n[layout]\n# mine\nabove = 9\nplaces = { journal = \"left\" }\n\n[keys]\npreset = \"vim\"";
        let expected = "theme = \"nord\"\n[views.a]\nlayout = { below = 9 }\n[layout]\nbelow = 50\n# mine\n\n[keys]\npreset = \"vim\"\n";
        assert_eq!(with_layout(text, &below).as_deref(), Some(expected));
        assert_eq!(with_layout(expected, &below).as_deref(), Some(expected));
    }

    #[test]
    fn a_layout_in_another_form_is_left_to_its_author() {
        for text in ["layout = { below = 40 }", "layout.below = 40", "[layout.places]\njournal = \"left\""] {
            assert_eq!(with_layout(text, &layout("below = 50")), None, "{text}");
        }
    }
}
