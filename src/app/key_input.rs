//! Keys whose meaning depends on earlier keys: digits repeat the next move, a letter after the sort key names a column.

use crossterm::event::KeyEvent;

use super::{
    App, Pane,
    chord::Chord,
    commands::{TypedCommand, UserAction},
    key_prefix::Count,
    listing::Movement,
    pane::KeyFocus,
    reaction::Reaction,
    update::{update, update_with},
};
use kordon_time::{Span, Timestamp};

/// Maximum time between a digit and the key that it belongs to.
const COUNT_WAIT: Span = Span::from_millis(700);

/// Highest number of times that a move is repeated.
const MOST_TIMES: usize = 9_999;

impl App {
    /// Reacts to a key that was pressed at `typed`. This time decides whether the key belongs to a typed number;
    /// everything else uses `now`.
    pub fn on_key(&mut self, key: KeyEvent, typed: Timestamp, now: Timestamp) -> Reaction {
        let focus = self.screen.key_focus();
        let prefix = std::mem::take(&mut self.screen.key_prefix);
        let KeyFocus::Pane(pane) = focus else {
            self.screen.key_prefix.candidate = prefix.candidate;
            return self.run_key(key, focus, now);
        };
        let letter = Chord::from(key).typed();
        if let Some(title) =
            letter.filter(|_| prefix.chooses_column).and_then(|key| self.column_of(pane, key))
        {
            // The sort key may have sorted by this column already. The letter confirms that, and does not reverse it.
            if self.screen.sort(pane).is_some_and(|sort| sort.title() == title) {
                self.screen.message = None;
                return Reaction::Draw;
            }
            return update_with(self, UserAction::Typed(TypedCommand::Sort), title, now);
        }
        let count = prefix.count.filter(|count| typed.since(count.typed) <= COUNT_WAIT);
        match letter.and_then(|letter| letter.to_digit(10)).filter(|_| self.preferences.keymap.has_counts) {
            Some(digit) if digit > 0 || count.is_some() => {
                self.on_digit(key, count, digit as usize, typed, now)
            }
            Some(_) | None => self.run_repeated(key, focus, count, now),
        }
    }

    /// Adds a digit to the number that is being typed. The first digit also focuses its pane, because the user may want
    /// the pane and not a number.
    fn on_digit(
        &mut self,
        key: KeyEvent,
        count: Option<Count>,
        digit: usize,
        typed: Timestamp,
        now: Timestamp,
    ) -> Reaction {
        let (reaction, count) = match count {
            Some(count) => {
                self.screen.message = None;
                let times = (count.times * 10 + digit).min(MOST_TIMES);
                (Reaction::Draw, Count { times, typed, ..count })
            }
            None => {
                let before = (self.screen.focus, self.screen.recent.clone());
                let reaction = self.run_key(key, self.screen.key_focus(), now);
                (reaction, Count { times: digit, typed, before })
            }
        };
        self.screen.key_prefix.count = Some(count);
        reaction
    }

    /// Runs a key, and repeats the key if it moves the selection and a number was typed before it.
    fn run_repeated(
        &mut self,
        key: KeyEvent,
        focus: KeyFocus,
        count: Option<Count>,
        now: Timestamp,
    ) -> Reaction {
        let (Some((UserAction::Move(movement), _)), Some(count)) =
            (self.preferences.keymap.action(key, focus), count)
        else {
            return self.run_key(key, focus, now);
        };
        (self.screen.focus, self.screen.recent) = count.before;
        if matches!(movement, Movement::First | Movement::Last) {
            // As in vim, `5G` goes to the fifth row.
            return update(self, UserAction::Move(Movement::Row(count.times - 1)), now);
        }
        for _ in 0..count.times {
            update(self, UserAction::Move(movement), now);
        }
        Reaction::Draw
    }

    fn run_key(&mut self, key: KeyEvent, focus: KeyFocus, now: Timestamp) -> Reaction {
        let Some((action, argument)) = self.preferences.keymap.action(key, focus) else {
            self.on_unknown_key(key);
            return Reaction::Draw;
        };
        let argument = argument.to_owned();
        let reaction = update_with(self, action, &argument, now);
        if action == UserAction::Typed(TypedCommand::Sort) && argument.is_empty() {
            self.offer_columns();
        }
        reaction
    }

    /// Shows which letters choose a column as the next key.
    fn offer_columns(&mut self) {
        let pane = self.screen.focus;
        let Some(sort) = self.screen.sort(pane) else { return };
        let offered = sort.columns().into_iter().filter_map(|(title, letter)| {
            let letter = letter.to_ascii_lowercase();
            self.chooses(pane, letter).then(|| format!("{letter} {title}"))
        });
        let letters: Vec<String> = offered.collect();
        self.screen.message = Some(format!("sorted by {}; next key: {}", sort.title(), letters.join(" · ")));
        self.screen.key_prefix.chooses_column = true;
    }

    /// Title of the column that a small letter chooses after the sort key.
    fn column_of(&self, pane: Pane, key: char) -> Option<&'static str> {
        let columns = self.screen.sort(pane)?.columns();
        let is_it = |(_, letter): &(&str, char)| letter.to_ascii_lowercase() == key;
        columns.into_iter().find(is_it).filter(|_| self.chooses(pane, key)).map(|(title, _)| title)
    }

    /// Whether a letter after the sort key may choose a column. The sort key itself may not: it selects the next
    /// column.
    fn chooses(&self, pane: Pane, letter: char) -> bool {
        let action = self.preferences.keymap.action(Chord::letter(letter).into(), KeyFocus::Pane(pane));
        action != Some((UserAction::Typed(TypedCommand::Sort), ""))
    }
}
