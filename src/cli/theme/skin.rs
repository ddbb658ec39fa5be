//! Converts a skin of k9s to a theme (`internal/config/styles.go` of derailed/k9s, v0.50).
//!
//! Skins colour parts of k9s, themes colour roles of kordon: [`SOURCES`] says which part gives a role its colour. A
//! role without a part in the skin keeps its style of `dark` or `light`, depending on the skin's background. A text
//! colour with too little contrast is replaced by the nearest shade with enough (WCAG 2, AA).

use std::fmt::Write as _;

use ratatui::style::{Color, Modifier, Style};
use serde_json::Value;

use super::colour_names;
use crate::{
    app::ThemeName,
    ui::{
        Role, Theme,
        contrast::{Rgb, contrast, luminance, mixed, readable},
    },
};
use kordon_core::visible;

/// A theme converted from a skin.
#[derive(Debug)]
pub struct ConvertedSkin {
    /// Text of the theme's file.
    pub theme: String,
    /// What was changed or left out, for the user.
    pub notes: Vec<String>,
}

/// How a colour of a skin becomes the style of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// The colour becomes the colour of the role's text.
    Text,
    /// The colour becomes the colour of the role's text, which is bold.
    Bold,
    /// The colour becomes the role's background, with text that can be read on it.
    Badge,
    /// The role's background is the skin's background, tinted with the colour. The number is the colour's share, in
    /// parts of 255.
    Tint(u8),
}

/// Share of a state's colour in the background of its row, in parts of 255.
const ROW: Use = Use::Tint(24);

/// The roles, with the part of a skin that each gets its colour from. `base` comes from `body`, `input` from `prompt`.
const SOURCES: &[(Role, &str, Use)] = &[
    (Role::Dim, "frame.status.completedColor", Use::Text),
    (Role::Faint, "frame.status.completedColor", Use::Text),
    (Role::Strong, "body.fgColor", Use::Bold),
    (Role::Accent, "frame.title.fgColor", Use::Text),
    (Role::Border, "frame.border.fgColor", Use::Text),
    (Role::BorderFocus, "frame.border.focusColor", Use::Text),
    (Role::BorderEnforce, "frame.status.errorColor", Use::Text),
    (Role::BorderFocusEnforce, "frame.status.errorColor", Use::Text),
    (Role::Title, "frame.title.fgColor", Use::Text),
    (Role::TitleFocus, "frame.title.highlightColor", Use::Bold),
    (Role::Heading, "views.table.header.fgColor", Use::Text),
    (Role::HeadingSorted, "views.table.header.sorterColor", Use::Text),
    (Role::Selected, "views.table.cursorBgColor", Use::Tint(48)),
    (Role::SelectedUnfocused, "views.table.cursorBgColor", Use::Tint(24)),
    (Role::Key, "frame.menu.keyColor", Use::Bold),
    (Role::ModeDryRun, "frame.status.addColor", Use::Badge),
    (Role::ModeEnforce, "frame.status.errorColor", Use::Badge),
    (Role::ModeReadOnly, "frame.status.modifyColor", Use::Badge),
    (Role::ModeReplay, "frame.status.killColor", Use::Badge),
    (Role::NodeCritical, "frame.status.errorColor", Use::Bold),
    (Role::NodeWarning, "frame.status.pendingColor", Use::Text),
    (Role::NodeNotice, "frame.status.highlightColor", Use::Text),
    (Role::NodeMaintenance, "frame.status.modifyColor", Use::Text),
    (Role::NodeReady, "frame.status.addColor", Use::Text),
    (Role::RowCritical, "frame.status.errorColor", ROW),
    (Role::RowWarning, "frame.status.pendingColor", ROW),
    (Role::RowNotice, "frame.status.highlightColor", ROW),
    (Role::RowMaintenance, "frame.status.modifyColor", ROW),
    (Role::VerdictHealthy, "frame.status.addColor", Use::Text),
    (Role::VerdictNotice, "frame.status.highlightColor", Use::Text),
    (Role::VerdictWarning, "frame.status.pendingColor", Use::Bold),
    (Role::VerdictCritical, "frame.status.errorColor", Use::Badge),
    (Role::VerdictDisconnected, "frame.status.pendingColor", Use::Badge),
    (Role::TaintNoExecute, "frame.status.errorColor", Use::Text),
    (Role::TaintNoSchedule, "frame.status.pendingColor", Use::Text),
    (Role::HeartbeatOk, "frame.status.addColor", Use::Text),
    (Role::HeartbeatLate, "frame.status.pendingColor", Use::Text),
    (Role::HeartbeatLost, "frame.status.errorColor", Use::Text),
    (Role::CountdownFar, "body.fgColor", Use::Text),
    (Role::CountdownSoon, "frame.status.pendingColor", Use::Text),
    (Role::CountdownNear, "frame.status.errorColor", Use::Bold),
    (Role::ZoneInitial, "frame.status.completedColor", Use::Text),
    (Role::ZoneNormal, "frame.status.addColor", Use::Text),
    (Role::ZonePartial, "frame.status.pendingColor", Use::Text),
    (Role::ZoneFull, "frame.status.errorColor", Use::Text),
    (Role::EvictionPredicted, "frame.status.modifyColor", Use::Text),
    (Role::EvictionNever, "frame.status.completedColor", Use::Text),
    (Role::EvictionTerminating, "frame.status.killColor", Use::Text),
    (Role::EvictionCancelled, "frame.status.completedColor", Use::Text),
    (Role::GaugeFill, "frame.border.focusColor", Use::Text),
    (Role::GaugeHigh, "frame.status.pendingColor", Use::Text),
    (Role::GaugeRest, "frame.border.fgColor", Use::Text),
    (Role::FeedLive, "frame.status.addColor", Use::Text),
    (Role::FeedBusy, "frame.status.pendingColor", Use::Text),
    (Role::FeedBroken, "frame.status.errorColor", Use::Text),
    (Role::LevelInfo, "frame.status.highlightColor", Use::Text),
    (Role::LevelWarning, "frame.status.pendingColor", Use::Text),
    (Role::LevelError, "frame.status.errorColor", Use::Text),
];

/// Converts the text of a skin to a theme. `name` is the name of the skin's file.
///
/// # Errors
/// The text is not YAML, or has no `k9s` with parts.
pub fn convert(name: &str, text: &str) -> Result<ConvertedSkin, String> {
    let skin: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let parts = skin.get("k9s").filter(|parts| parts.is_object()).ok_or("it has no k9s with parts")?;
    let mut notes = Vec::new();
    let mut part = |path: &str| part_colour(parts, path, &mut notes);
    let paper = part("body.bgColor");
    let parent = match paper {
        Some(paper) if luminance(paper) > 0.4 => ThemeName::Light,
        _ => ThemeName::Dark,
    };
    let inherited = Theme::bundled(parent);
    let base = inherited.style(Role::Base);
    let paper = paper.or_else(|| base.bg.and_then(rgb)).unwrap_or_default();
    let ink = part("body.fgColor").or_else(|| base.fg.and_then(rgb)).unwrap_or((255, 255, 255));
    let mut styles: Vec<Style> = Role::ALL.iter().map(|role| inherited.style(*role)).collect();
    styles[Role::Base as usize] = Style::new().fg(colour(ink)).bg(colour(paper));
    if let (Some(ink), Some(paper)) = (part("prompt.fgColor"), part("prompt.bgColor")) {
        styles[Role::Input as usize] = Style::new().fg(colour(ink)).bg(colour(paper));
    }
    for (role, path, kind) in SOURCES {
        if let Some(found) = part(path) {
            styles[*role as usize] = style_of(found, *kind, paper);
        }
    }
    notes.dedup();
    make_readable(&mut styles, ink, paper, &mut notes);
    let theme = printed(name, parent, &styles);
    Ok(ConvertedSkin { theme, notes })
}

/// Colour of a part of the skin; `None` if the skin leaves it to the terminal or to k9s.
fn part_colour(parts: &Value, path: &str, notes: &mut Vec<String>) -> Option<Rgb> {
    let text = path.split('.').try_fold(parts, |parts, key| parts.get(key))?.as_str()?;
    let found = colour_names::parse(text);
    let is_unset = matches!(text, "" | "-" | "default");
    let note = match found {
        Some(_) => None,
        None if is_unset => {
            Some(format!("{path} is the terminal's own colour: the inherited theme's is used"))
        }
        None => Some(format!("{path}: {} is no colour", visible::text(text))),
    };
    notes.extend(note.filter(|note| !notes.contains(note)));
    found
}

fn style_of(found: Rgb, kind: Use, paper: Rgb) -> Style {
    match kind {
        Use::Text => Style::new().fg(colour(found)),
        Use::Bold => Style::new().fg(colour(found)).add_modifier(Modifier::BOLD),
        Use::Badge => {
            let ink = if contrast(found, (0, 0, 0)) > contrast(found, (255, 255, 255)) { 0 } else { 255 };
            let badge = Style::new().fg(colour((ink, ink, ink))).bg(colour(found));
            badge.add_modifier(Modifier::BOLD)
        }
        Use::Tint(share) => Style::new().bg(colour(mixed(paper, found, share))),
    }
}

/// Replaces text colours with too little contrast on their backgrounds by the nearest shades with enough, and notes
/// each change.
fn make_readable(styles: &mut [Style], ink: Rgb, paper: Rgb, notes: &mut Vec<String>) {
    for role in Role::ALL.iter().filter(|role| role.is_row()) {
        // A row is not tinted if even ordinary text would be unreadable on it.
        let row = styles[*role as usize].bg.and_then(rgb);
        if row.is_some_and(|row| contrast(ink, row) < Role::Base.least_contrast()) {
            styles[*role as usize].bg = Some(colour(paper));
            notes.push(format!("{}: not tinted, because text could not be read on it", role.as_str()));
        }
    }
    let rows = Role::ALL.iter().filter(|role| role.is_row());
    let rows: Vec<Rgb> =
        rows.filter_map(|role| styles[*role as usize].bg.and_then(rgb)).chain([paper]).collect();
    for role in Role::ALL {
        let style = styles[*role as usize];
        let least = role.least_contrast();
        let behind = match style.bg.and_then(rgb) {
            Some(own) if *role != Role::Base => vec![own],
            None if least < Role::Base.least_contrast() => vec![paper],
            _ => rows.clone(),
        };
        let Some(text) = style.fg.and_then(rgb) else { continue };
        let better = readable(text, &behind, least);
        if better == text {
            continue;
        }
        let found = behind.iter().map(|behind| contrast(text, *behind)).fold(21.0, f64::min);
        styles[*role as usize].fg = Some(colour(better));
        notes.push(format!(
            "{}: {} has a contrast of {found:.1}, less than {least}: {} is used",
            role.as_str(),
            hex(text),
            hex(better)
        ));
    }
}

/// Text of a theme's file. It has only the styles that differ from the inherited theme.
fn printed(name: &str, parent: ThemeName, styles: &[Style]) -> String {
    let inherited = Theme::bundled(parent);
    let mut text = format!(
        "# Made of the k9s skin {} by kordon theme convert.\ninherits = \"{}\"\n\n",
        visible::text(name),
        parent.as_str()
    );
    for role in Role::ALL {
        let style = styles[*role as usize];
        if style != inherited.style(*role) {
            let _ = writeln!(text, "{} = {}", role.as_str(), printed_style(style));
        }
    }
    text
}

fn printed_style(style: Style) -> String {
    let of = |name: &str, colour: Option<Color>| {
        colour.and_then(rgb).map(|rgb| format!("{name} = \"{}\"", hex(rgb)))
    };
    let bold = style.add_modifier.contains(Modifier::BOLD).then(|| "bold = true".to_owned());
    let attributes: Vec<String> =
        [of("fg", style.fg), of("bg", style.bg), bold].into_iter().flatten().collect();
    format!("{{ {} }}", attributes.join(", "))
}

const fn colour((red, green, blue): Rgb) -> Color {
    Color::Rgb(red, green, blue)
}

/// Components of a colour that does not depend on the terminal.
const fn rgb(colour: Color) -> Option<Rgb> {
    match colour {
        Color::Rgb(red, green, blue) => Some((red, green, blue)),
        _ => None,
    }
}

fn hex((red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Colours as in `skins/dracula.yaml` of derailed/k9s: its comments (#6272a4) have a contrast of 3.0:1 on its
    /// background.
    const DRACULA: &str = "
comment: &comment '#6272a4'
k9s:
  body: {fgColor: '#f8f8f2', bgColor: '#282a36', logoColor: '#bd93f9'}
  frame:
    border: {fgColor: '#44475a', focusColor: '#bd93f9'}
    menu: {fgColor: '#f8f8f2', keyColor: '#ff79c6'}
    status: {errorColor: '#ff5555', addColor: '#50fa7b', pendingColor: darkorange, completedColor: *comment}
    title: {fgColor: '#f8f8f2', bgColor: default}
  views:
    table:
      cursorBgColor: '#44475a'
";

    fn theme_of(converted: &ConvertedSkin) -> Theme {
        let parent = Theme::parent(&converted.theme).expect("a theme").expect("it inherits");
        let parent = ThemeName::parse(&parent.0).expect("a bundled theme");
        Theme::parse_over(&converted.theme, Theme::bundled(parent)).expect("a theme")
    }

    fn converted(text: &str) -> ConvertedSkin {
        convert("dracula.yaml", text).expect("a skin")
    }

    /// Asserts that all text can be read on its backgrounds, by the same measure as for the bundled themes.
    fn assert_readable(theme: &Theme) {
        let base = theme.style(Role::Base);
        let background = |role: Role| theme.style(role).bg.and_then(rgb);
        let rows = Role::ALL.iter().filter(|role| role.is_row()).filter_map(|role| background(*role));
        let rows: Vec<Rgb> = rows.chain(background(Role::Base)).collect();
        for role in Role::ALL {
            let text = theme.style(*role).fg.or(base.fg).and_then(rgb).expect("a colour");
            let behind = match background(*role) {
                Some(own) => vec![own],
                None if role.least_contrast() < 4.5 => background(Role::Base).into_iter().collect(),
                None => rows.clone(),
            };
            for behind in behind {
                let found = contrast(text, behind);
                assert!(found >= role.least_contrast(), "{role:?} on {behind:?}: {found:.2}");
            }
        }
    }

    #[test]
    fn parts_of_the_skin_give_the_roles_their_colours() {
        let theme = theme_of(&converted(DRACULA));
        assert_eq!(
            theme.style(Role::Base),
            Style::new().fg(colour((0xf8, 0xf8, 0xf2))).bg(colour((0x28, 0x2a, 0x36)))
        );
        let ready = theme.style(Role::NodeReady).fg;
        assert_eq!(ready, Some(colour((0x50, 0xfa, 0x7b))));
        assert_eq!(theme.style(Role::BorderFocus).fg, Some(colour((0xbd, 0x93, 0xf9))));
        assert_eq!(theme.style(Role::ModeEnforce).bg, Some(colour((0xff, 0x55, 0x55))));
        assert!(theme.style(Role::Key).add_modifier.contains(Modifier::BOLD));
        let dark = Theme::bundled(ThemeName::Dark);
        let killed = theme.style(Role::EvictionTerminating).fg.and_then(rgb).expect("a colour");
        let inherited = dark.style(Role::EvictionTerminating).fg.and_then(rgb).expect("a colour");
        assert_eq!(killed, readable(inherited, &[(0x28, 0x2a, 0x36)], 4.5), "the skin has none");
    }

    #[test]
    fn what_cannot_be_read_is_named_and_gets_the_nearest_shade() {
        let converted = converted(DRACULA);
        assert_readable(&theme_of(&converted));
        let notes = converted.notes.join("\n");
        assert!(notes.contains("dim: #6272a4 has a contrast of "), "{notes}");
        assert!(!notes.contains("node.ready"), "it can be read: {notes}");
        assert!(!notes.contains("title.bgColor"), "nothing is made of it: {notes}");
    }

    #[test]
    fn a_light_skin_inherits_from_light_and_a_skin_without_colours_is_the_inherited_theme() {
        let light =
            converted("k9s: {body: {fgColor: black, bgColor: white}, frame: {status: {addColor: yellow}}}");
        assert!(light.theme.contains("inherits = \"light\""), "{}", light.theme);
        assert_readable(&theme_of(&light));
        let bare = converted("k9s: {body: {bgColor: default, fgColor: blurple}}");
        assert_eq!(theme_of(&bare), Theme::bundled(ThemeName::Dark).clone());
        let notes = bare.notes.join("\n");
        assert!(notes.contains("body.bgColor is the terminal's own colour"), "{notes}");
        assert!(notes.contains("body.fgColor: blurple is no colour"), "{notes}");
    }

    #[test]
    fn grey_on_grey_becomes_readable_too() {
        let grey = "k9s: {body: {fgColor: grey, bgColor: dimgrey}, frame: {status: {errorColor: grey, addColor: grey}}}";
        let converted = converted(grey);
        let theme = theme_of(&converted);
        let base = theme.style(Role::Base);
        let (ink, paper) =
            (base.fg.and_then(rgb).expect("a colour"), base.bg.and_then(rgb).expect("a colour"));
        assert!(contrast(ink, paper) >= 4.5, "{}", converted.theme);
    }

    #[test]
    fn every_role_has_one_source_at_most_and_other_texts_are_no_skins() {
        let roles: BTreeSet<Role> = SOURCES.iter().map(|(role, ..)| *role).collect();
        assert_eq!(roles.len(), SOURCES.len());
        for other in ["", "just words", "k9s: 7", "a: [", "theme: {body: {fgColor: red}}"] {
            assert!(convert("x.yaml", other).is_err(), "{other}");
        }
    }
}
