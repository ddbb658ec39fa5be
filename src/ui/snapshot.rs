//! Writes a frame to a file: as text, with escape sequences, or as a picture.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use ratatui::{
    buffer::{Buffer, Cell},
    style::{Color, Modifier},
};

use super::theme::{Role, Theme};

/// Width and height in pixels of one cell of the picture: the size of a character of `FONTS` at `FONT_SIZE`.
const CELL: (f64, f64) = (8.4, 18.0);
const FONT_SIZE: f64 = 14.0;
const FONTS: &str = "'JetBrains Mono','DejaVu Sans Mono','Menlo','Consolas',monospace";
/// Margin of the picture in pixels.
const MARGIN: f64 = 12.0;

/// Why a frame could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("{} ends in none of .txt, .ansi and .svg: name the file by the format you want", path.display())]
    Format { path: PathBuf },
    #[error("writing the snapshot to {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// Writes a frame in the format of the file's extension.
///
/// # Errors
/// The extension is not a known format, or the file cannot be written.
pub fn write(path: &Path, buffer: &Buffer, theme: &Theme) -> Result<(), SnapshotError> {
    let text = match path.extension().and_then(|extension| extension.to_str()) {
        Some("txt") => plain(buffer),
        Some("ansi") => ansi(buffer),
        Some("svg") => svg(buffer, theme),
        _ => return Err(SnapshotError::Format { path: path.into() }),
    };
    fs::write(path, text).map_err(|error| SnapshotError::Write { path: path.into(), error })
}

/// Text of the frame, without blanks at the ends of lines.
pub fn plain(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let line: String = cells(buffer, y).map(|(_, cell)| cell.symbol()).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The frame with SGR escape sequences, for a terminal.
pub fn ansi(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let mut last = None;
        for (_, cell) in cells(buffer, y) {
            let look = (cell.fg, cell.bg, cell.modifier);
            if last != Some(look) {
                text.push_str(&sgr(cell));
                last = Some(look);
            }
            text.push_str(cell.symbol());
        }
        text.push_str("\x1b[0m\n");
    }
    text
}

/// The frame as SVG in the theme's colours.
pub fn svg(buffer: &Buffer, theme: &Theme) -> String {
    let picture = Picture { buffer, paper: Paper::for_theme(theme) };
    picture.draw()
}

/// Cells of a line, each with its column. Cells that a wide character covers are left out.
fn cells(buffer: &Buffer, y: u16) -> impl Iterator<Item = (u16, &Cell)> {
    let mut covered = 0;
    (0..buffer.area.width).filter_map(move |x| {
        let cell = &buffer[(buffer.area.x + x, buffer.area.y + y)];
        if covered > 0 {
            covered -= 1;
            return None;
        }
        covered = super::text::width(cell.symbol()).saturating_sub(1);
        Some((x, cell))
    })
}

fn sgr(cell: &Cell) -> String {
    let mut codes = vec!["0".to_owned()];
    for (modifier, code) in [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
    ] {
        if cell.modifier.contains(modifier) {
            codes.push(code.into());
        }
    }
    codes.extend(color_code(cell.fg, 30));
    codes.extend(color_code(cell.bg, 40));
    format!("\x1b[{}m", codes.join(";"))
}

/// SGR code of a colour; `base` is 30 for the foreground and 40 for the background.
fn color_code(color: Color, base: u8) -> Option<String> {
    match color {
        Color::Reset => None,
        Color::Rgb(red, green, blue) => Some(format!("{};2;{red};{green};{blue}", base + 8)),
        Color::Indexed(index) => Some(format!("{};5;{index}", base + 8)),
        named => {
            let index = ansi_index(named)?;
            Some(if index < 8 { base + index } else { base + 52 + index }.to_string())
        }
    }
}

/// Index of a named colour among the sixteen ANSI colours.
fn ansi_index(color: Color) -> Option<u8> {
    const NAMED: [Color; 16] = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
        Color::DarkGray,
        Color::LightRed,
        Color::LightGreen,
        Color::LightYellow,
        Color::LightBlue,
        Color::LightMagenta,
        Color::LightCyan,
        Color::White,
    ];
    NAMED.iter().position(|named| *named == color).and_then(|place| u8::try_from(place).ok())
}

/// Colours of the picture that replace the terminal's default colours.
#[derive(Clone, Copy)]
struct Paper {
    ink: (u8, u8, u8),
    paper: (u8, u8, u8),
}

impl Paper {
    fn for_theme(theme: &Theme) -> Self {
        let base = theme.style(Role::Base);
        let night = Self { ink: (0xd0, 0xd4, 0xda), paper: (0x14, 0x16, 0x1a) };
        let ink = base.fg.and_then(|color| night.rgb(color)).unwrap_or(night.ink);
        Self { ink, paper: base.bg.and_then(|color| night.rgb(color)).unwrap_or(night.paper) }
    }

    /// RGB value of a colour; `None` for the terminal's default.
    fn rgb(self, color: Color) -> Option<(u8, u8, u8)> {
        match color {
            Color::Reset => None,
            Color::Rgb(red, green, blue) => Some((red, green, blue)),
            Color::Indexed(index) => Some(palette(index)),
            named => ansi_index(named).map(palette),
        }
    }

    /// Colours of a cell, foreground first, with its modifiers applied.
    fn colors(self, cell: &Cell) -> ((u8, u8, u8), (u8, u8, u8)) {
        let mut ink = self.rgb(cell.fg).unwrap_or(self.ink);
        let mut paper = self.rgb(cell.bg).unwrap_or(self.paper);
        if cell.modifier.contains(Modifier::REVERSED) {
            std::mem::swap(&mut ink, &mut paper);
        }
        if cell.modifier.contains(Modifier::DIM) {
            let mix = |a: u8, b: u8| u8::try_from((u16::from(a) * 6 + u16::from(b) * 4) / 10).unwrap_or(a);
            ink = (mix(ink.0, paper.0), mix(ink.1, paper.1), mix(ink.2, paper.2));
        }
        (ink, paper)
    }
}

/// The 256 colours of xterm.
fn palette(index: u8) -> (u8, u8, u8) {
    const BASE: [(u8, u8, u8); 16] = [
        (0x1c, 0x1f, 0x26),
        (0xd9, 0x5f, 0x5f),
        (0x7f, 0xb8, 0x7a),
        (0xd9, 0xb3, 0x5c),
        (0x6a, 0x95, 0xd6),
        (0xb5, 0x84, 0xd9),
        (0x6a, 0xb8, 0xc0),
        (0xc8, 0xcc, 0xd2),
        (0x6b, 0x72, 0x80),
        (0xf0, 0x7b, 0x78),
        (0x9c, 0xd3, 0x96),
        (0xf0, 0xcd, 0x7c),
        (0x8b, 0xb0, 0xec),
        (0xcc, 0xa1, 0xee),
        (0x8a, 0xd3, 0xda),
        (0xf2, 0xf4, 0xf7),
    ];
    match index {
        0..16 => BASE[usize::from(index)],
        16..232 => {
            let index = index - 16;
            let level = |part: u8| if part == 0 { 0 } else { 55 + 40 * part };
            (level(index / 36), level(index / 6 % 6), level(index % 6))
        }
        232.. => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
    }
}

/// A frame being drawn as SVG.
struct Picture<'a> {
    buffer: &'a Buffer,
    paper: Paper,
}

impl Picture<'_> {
    fn draw(&self) -> String {
        let area = self.buffer.area;
        let width = f64::from(area.width) * CELL.0 + 2.0 * MARGIN;
        let height = f64::from(area.height) * CELL.1 + 2.0 * MARGIN;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.1} {height:.1}\" font-family=\"{FONTS}\" font-size=\"{FONT_SIZE}\">\n\
             <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>\n<g transform=\"translate({MARGIN} {MARGIN})\">\n",
            hex(self.paper.paper)
        );
        for y in 0..area.height {
            self.draw_paper(y, &mut svg);
        }
        for y in 0..area.height {
            self.draw_line(y, &mut svg);
        }
        svg.push_str("</g>\n</svg>\n");
        svg
    }

    /// Draws the background of a line in runs of one colour.
    fn draw_paper(&self, y: u16, svg: &mut String) {
        let mut run: Option<(u16, u16, (u8, u8, u8))> = None;
        let mut flush = |run: Option<(u16, u16, (u8, u8, u8))>| {
            if let Some((from, to, color)) = run.filter(|(.., color)| *color != self.paper.paper) {
                let (x, width) = (f64::from(from) * CELL.0, f64::from(to - from) * CELL.0);
                let top = f64::from(y) * CELL.1;
                let height = CELL.1;
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x:.2}\" y=\"{top:.1}\" width=\"{width:.2}\" height=\"{height}\" fill=\"{}\"/>",
                    hex(color)
                );
            }
        };
        for (x, cell) in cells(self.buffer, y) {
            let color = self.paper.colors(cell).1;
            let end = x + u16::try_from(super::text::width(cell.symbol()).max(1)).unwrap_or(1);
            run = match run {
                Some((from, _, same)) if same == color => Some((from, end, same)),
                other => {
                    flush(other);
                    Some((x, end, color))
                }
            };
        }
        flush(run);
    }

    /// Draws the text of a line. Consecutive ASCII characters in one style become one text element. Other characters
    /// are drawn cell by cell, so that their widths in the font do not shift the text after them. Lines and bars are
    /// drawn as shapes, so that neighbours join.
    fn draw_line(&self, y: u16, svg: &mut String) {
        let mut run: Option<(u16, &Cell, String)> = None;
        for (x, cell) in cells(self.buffer, y) {
            let symbol = cell.symbol();
            let same =
                |last: &&Cell| last.fg == cell.fg && last.bg == cell.bg && last.modifier == cell.modifier;
            let letter = symbol.len() == 1 && symbol != " ";
            if let Some((_, _, text)) = run.as_mut().filter(|(_, last, _)| letter && same(last)) {
                text.push_str(symbol);
                continue;
            }
            if let Some((from, look, text)) = run.take() {
                self.draw_text(from, y, look, &text, svg);
            }
            if letter {
                run = Some((x, cell, symbol.into()));
            } else if symbol == " " {
                self.underline(x, y, cell, svg);
            } else if let Some(shape) = shape(symbol) {
                self.draw_shape(x, y, cell, &shape, svg);
            } else {
                self.draw_text(x, y, cell, symbol, svg);
            }
        }
        if let Some((from, look, text)) = run {
            self.draw_text(from, y, look, &text, svg);
        }
    }

    fn draw_text(&self, x: u16, y: u16, look: &Cell, text: &str, svg: &mut String) {
        let (left, baseline) = (f64::from(x) * CELL.0, f64::from(y) * CELL.1 + CELL.1 * 0.74);
        let mut attributes = format!("fill=\"{}\"", hex(self.paper.colors(look).0));
        if look.modifier.contains(Modifier::BOLD) {
            attributes.push_str(" font-weight=\"bold\"");
        }
        if look.modifier.contains(Modifier::ITALIC) {
            attributes.push_str(" font-style=\"italic\"");
        }
        if look.modifier.contains(Modifier::UNDERLINED) {
            attributes.push_str(" text-decoration=\"underline\"");
        }
        let _ =
            writeln!(svg, "<text x=\"{left:.2}\" y=\"{baseline:.2}\" {attributes}>{}</text>", escape(text));
    }

    fn underline(&self, x: u16, y: u16, look: &Cell, svg: &mut String) {
        if look.modifier.contains(Modifier::UNDERLINED) {
            self.draw_shape(x, y, look, &Shape::Box { x: 0.0, y: 0.86, width: 1.0, height: 0.05 }, svg);
        }
    }

    fn draw_shape(&self, x: u16, y: u16, look: &Cell, shape: &Shape, svg: &mut String) {
        let (left, top) = (f64::from(x) * CELL.0, f64::from(y) * CELL.1);
        let color = hex(self.paper.colors(look).0);
        let _ = match shape {
            Shape::Box { x, y, width, height } => writeln!(
                svg,
                "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{color}\"/>",
                left + x * CELL.0,
                top + y * CELL.1,
                width * CELL.0,
                height * CELL.1
            ),
            Shape::Path { stroke, path } => {
                let (half_x, half_y) = (CELL.0 / 2.0, CELL.1 / 2.0);
                writeln!(
                    svg,
                    "<path transform=\"translate({:.2} {:.2})\" d=\"{}\" fill=\"none\" stroke=\"{color}\" \
                     stroke-width=\"{stroke}\"/>",
                    left + half_x,
                    top + half_y,
                    path(half_x, half_y)
                )
            }
        };
    }
}

/// Shape that replaces a character.
enum Shape {
    /// Rectangle, in shares of the cell.
    Box { x: f64, y: f64, width: f64, height: f64 },
    /// Path from the middle of a cell; the function gets half the width and half the height of the cell.
    Path { stroke: f64, path: fn(f64, f64) -> String },
}

fn shape(symbol: &str) -> Option<Shape> {
    let line = |path: fn(f64, f64) -> String| Some(Shape::Path { stroke: 1.0, path });
    let bold = |path: fn(f64, f64) -> String| Some(Shape::Path { stroke: 3.0, path });
    let bar = |level: u32| {
        let height = f64::from(level) / 8.0 * 0.84;
        Some(Shape::Box { x: 0.06, y: 0.92 - height, width: 0.88, height })
    };
    match symbol {
        "─" => line(|x, _| format!("M{:.2} 0H{x:.2}", -x)),
        "│" => line(|_, y| format!("M0 {:.2}V{y:.2}", -y)),
        "╭" => line(|x, y| format!("M{x:.2} 0H4Q0 0 0 4V{y:.2}")),
        "╮" => line(|x, y| format!("M{:.2} 0H-4Q0 0 0 4V{y:.2}", -x)),
        "╰" => line(|x, y| format!("M{x:.2} 0H4Q0 0 0 -4V{:.2}", -y)),
        "╯" => line(|x, y| format!("M{:.2} 0H-4Q0 0 0 -4V{:.2}", -x, -y)),
        "━" => bold(|x, _| format!("M{:.2} 0H{x:.2}", -x)),
        "╸" => bold(|x, _| format!("M{:.2} 0H0", -x)),
        "┃" => bold(|_, y| format!("M0 {:.2}V{y:.2}", -y)),
        "▁" => bar(1),
        "▂" => bar(2),
        "▃" => bar(3),
        "▄" => bar(4),
        "▅" => bar(5),
        "▆" => bar(6),
        "▇" => bar(7),
        "█" => bar(8),
        _ => None,
    }
}

fn hex((red, green, blue): (u8, u8, u8)) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Escapes text for XML, and replaces characters that XML does not allow.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter if letter.is_control() || matches!(letter, '\u{FFFE}' | '\u{FFFF}') => {
                escaped.push('\u{FFFD}')
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use ratatui::{layout::Rect, style::Style};

    use super::*;
    use crate::app::ThemeName;

    fn frame() -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 2));
        buffer.set_string(
            0,
            0,
            "a<b>&\"c\"",
            Style::new().fg(Color::Rgb(1, 2, 3)).add_modifier(Modifier::BOLD),
        );
        buffer.set_string(0, 1, "節点 ─█", Style::new().fg(Color::LightRed).bg(Color::Indexed(196)));
        buffer
    }

    #[test]
    fn text_has_the_letters_and_no_trailing_blanks() {
        assert_eq!(plain(&frame()), "a<b>&\"c\"\n節点 ─█\n");
    }

    #[test]
    fn ansi_carries_colours_of_every_kind() {
        let text = ansi(&frame());
        assert!(text.contains("\x1b[0;1;38;2;1;2;3ma<b>"), "{text:?}");
        assert!(text.contains("\x1b[0;91;48;5;196m節点"), "{text:?}");
        assert_eq!(text.matches("\x1b[0m\n").count(), 2);
    }

    #[test]
    fn svg_escapes_text_and_draws_lines_as_shapes() {
        let svg = svg(&frame(), Theme::bundled(ThemeName::Dark));
        assert!(
            svg.contains("fill=\"#010203\" font-weight=\"bold\">a&lt;b&gt;&amp;&quot;c&quot;</text>"),
            "{svg}"
        );
        assert!(svg.contains("<path") && !svg.contains('─') && !svg.contains('█'));
        assert!(svg.contains(">節</text>"));
        assert!(svg.contains("fill=\"#ff0000\""), "the palette's 196");
    }

    #[test]
    fn the_name_of_the_file_chooses_the_format() {
        let folder = tempfile::tempdir().expect("a folder");
        let theme = Theme::bundled(ThemeName::Light);
        for (name, begins) in [("a.txt", "a<b>"), ("a.ansi", "\x1b["), ("a.svg", "<svg")] {
            let path = folder.path().join(name);
            write(&path, &frame(), theme).expect("writable");
            assert!(fs::read_to_string(&path).expect("written").starts_with(begins));
        }
        let error = write(Path::new("a.png"), &frame(), theme).expect_err("no such format");
        assert!(error.to_string().contains(".svg"), "{error}");
        assert!(write(&folder.path().join("no/a.txt"), &frame(), theme).is_err());
    }
}
