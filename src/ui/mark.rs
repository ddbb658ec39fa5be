//! The mark of a context: a word on a coloured background, so that nobody mistakes production for another cluster.

use ratatui::style::{Color, Modifier, Style};

use super::{Scene, contrast::luminance, theme::Role};
use crate::app::{
    ThemeName,
    preferences::{ContextMark, MarkColour},
};

/// RGB values of the sixteen terminal colours in xterm. They decide whether the text on such a colour is black or
/// white.
const XTERM: [(u8, u8, u8); 16] = [
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
];

/// Text and style of the mark; `None` if the context has none.
pub fn mark(scene: &Scene) -> Option<(String, Style)> {
    let mark = scene.app.preferences.mark.as_ref()?;
    Some((format!(" {} ", mark.word), style(mark, scene)))
}

/// Style of a mark. A mark without a colour, or on a terminal without colours, is drawn in reverse video.
fn style(mark: &ContextMark, scene: &Scene) -> Style {
    let strong = scene.style(Role::Strong).add_modifier(Modifier::BOLD);
    match (mark.colour, scene.screen.theme().root()) {
        (None, _) | (_, ThemeName::Mono) => strong.add_modifier(Modifier::REVERSED),
        (Some(colour), ThemeName::Ansi16) => on(MarkColour::Ansi(nearest(colour))),
        (Some(colour), _) => on(colour),
    }
}

/// Style of bold text on a coloured background: black or white, whichever has the higher contrast, which is at least
/// 4.5.
fn on(colour: MarkColour) -> Style {
    let background = match colour {
        MarkColour::Ansi(number) => Color::Indexed(number),
        MarkColour::Rgb(red, green, blue) => Color::Rgb(red, green, blue),
    };
    let (black, white) = match colour {
        MarkColour::Ansi(_) => (Color::Indexed(0), Color::Indexed(15)),
        MarkColour::Rgb(..) => (Color::Rgb(0, 0, 0), Color::Rgb(255, 255, 255)),
    };
    let text = if needs_black(components(colour)) { black } else { white };
    Style::new().bg(background).fg(text).add_modifier(Modifier::BOLD)
}

fn components(colour: MarkColour) -> (u8, u8, u8) {
    match colour {
        MarkColour::Ansi(number) => XTERM[usize::from(number) % XTERM.len()],
        MarkColour::Rgb(red, green, blue) => (red, green, blue),
    }
}

/// Whether black contrasts with a colour more than white does, by the luminance of WCAG 2.
fn needs_black(colour: (u8, u8, u8)) -> bool {
    let light = luminance(colour) + 0.05;
    light / 0.05 > 1.05 / light
}

/// The terminal's colour that is nearest to a colour.
fn nearest(colour: MarkColour) -> u8 {
    let (red, green, blue) = components(colour);
    let distance = |(number, other): &(u8, (u8, u8, u8))| {
        let square = |one: u8, other: u8| u32::from(one.abs_diff(other)).pow(2);
        (square(red, other.0) + square(green, other.1) + square(blue, other.2), *number)
    };
    (0..).zip(XTERM).min_by_key(distance).map_or(0, |(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_can_be_read_on_every_colour() {
        let steps = (0..=255).step_by(15);
        let rgb = steps.clone().flat_map(|red| {
            let steps = steps.clone();
            steps.clone().flat_map(move |green| steps.clone().map(move |blue| (red, green, blue)))
        });
        for colour in rgb.chain(XTERM) {
            let (text, behind) = (if needs_black(colour) { 0.0 } else { 1.0 }, luminance(colour));
            let (light, dark) = if text > behind { (text, behind) } else { (behind, text) };
            let contrast = (light + 0.05) / (dark + 0.05);
            assert!(contrast >= 4.5, "{colour:?}: {contrast}");
        }
    }

    #[test]
    fn a_terminal_with_sixteen_colours_shows_the_nearest_one() {
        assert_eq!(nearest(MarkColour::Rgb(250, 5, 5)), 9);
        assert_eq!(nearest(MarkColour::Ansi(4)), 4);
    }
}
