//! ASCII replacements for terminals that can only show ASCII characters.

use ratatui::buffer::Buffer;

/// Replaces the glyphs of the screen with ASCII characters. Text from the cluster stays unchanged unless it contains
/// one of these glyphs.
pub fn replace(buf: &mut Buffer) {
    for cell in &mut buf.content {
        if let Some(plain) = plain(cell.symbol()) {
            cell.set_symbol(plain);
        }
    }
}

/// Replaces glyphs in text outside the screen, such as the terminal's title.
pub fn text(text: &str) -> String {
    let mut letter = [0; 4];
    text.chars()
        .map(|one| match plain(one.encode_utf8(&mut letter)) {
            Some(plain) => plain.to_owned(),
            None => one.to_string(),
        })
        .collect()
}

/// ASCII replacement of a glyph; `None` for any other text. All states of nodes stay distinct, and so do all levels of
/// a verdict.
fn plain(symbol: &str) -> Option<&'static str> {
    Some(match symbol {
        // Glyphs of states of nodes, watches and rows.
        "✖" => "X",
        "✕" => "U",
        "◆" => "N",
        "◌" => "o",
        "◦" => ",",
        "▴" => "^",
        "◐" => "~",
        "◑" => "s",
        "↻" => "r",
        "⊖" => "d",
        "○" => "O",
        "⊘" => "/",
        "▪" => ".",
        "⊗" | "●" | "•" => "*",
        "◇" => "+",
        "↺" => "@",
        "⇅" | "▓" => "%",
        // Glyphs of levels, and downward arrows.
        "✔" | "✓" | "↓" | "▾" => "v",
        "▲" => "!",
        "✗" | "×" => "x",
        // Lines, frames and bars.
        "─" | "╌" | "▃" | "▄" | "·" | "–" | "−" | "∞" | "╸" => "-",
        "═" | "━" | "▅" | "▆" => "=",
        "│" | "▏" | "▌" => "|",
        "┃" | "█" | "▇" | "⠿" => "#",
        "┊" | "╎" | "▒" | "┈" => ":",
        "‖" => "|",
        "╭" | "╮" | "╰" | "╯" | "┌" | "┐" | "└" | "┘" | "├" | "┤" | "┬" | "┴" | "┼" => {
            "+"
        }
        "▁" => "_",
        "▂" | "░" => ".",
        // Arrows, and the mark of cut text.
        "→" | "▶" | "▸" | "›" => ">",
        "←" | "≤" => "<",
        "↑" => "^",
        "…" => "~",
        // Characters that stand for invisible characters.
        "\u{FFFD}" => "?",
        symbol
            if symbol.chars().all(|letter| ('\u{2400}'..='\u{243F}').contains(&letter))
                && !symbol.is_empty() =>
        {
            "?"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model::{NodeState, VerdictLevel};

    #[test]
    fn every_state_and_every_level_has_a_character_of_its_own() {
        let states: BTreeSet<_> = NodeState::ALL.iter().filter_map(|state| plain(state.glyph())).collect();
        assert_eq!(states.len(), NodeState::ALL.len(), "{states:?}");
        let levels = [
            VerdictLevel::Healthy,
            VerdictLevel::Notice,
            VerdictLevel::Warning,
            VerdictLevel::Critical,
            VerdictLevel::Disconnected,
        ];
        let plains: BTreeSet<_> = levels.iter().filter_map(|level| plain(level.glyph())).collect();
        assert_eq!(plains.len(), levels.len(), "{plains:?}");
        assert!(states.iter().chain(&plains).all(|plain| plain.is_ascii() && plain.len() == 1));
        assert_eq!(
            text("prod: ✖ zone b down · 3 pods → n1, café"),
            "prod: X zone b down - 3 pods > n1, café"
        );
    }
}
