//! The command palette: commands are typed by name or found by words.

use tui_input::{Input, InputRequest};

use super::{
    aliases::Aliases,
    commands::{COMMANDS, Command},
    pane::KeyFocus,
};
use kordon_core::cluster::nearest::nearest;

/// A command that is being typed.
#[derive(Clone, Debug)]
pub struct Palette {
    pub input: Input,
    /// The commands that match the text, the best match first.
    pub found: Vec<&'static Command>,
    pub chosen: usize,
    /// Whether the user moved the choice, so that Enter runs the chosen command whatever was typed.
    is_chosen: bool,
    /// Why the last entered text could not be run.
    pub fault: Option<String>,
    /// Whether the text was refused, and not edited since. A character that is typed then replaces the text.
    is_refused: bool,
    /// The focused pane or sheet; it decides which commands apply.
    focus: KeyFocus,
    aliases: Aliases,
    /// Names of the commands that were run before, the latest first.
    used: Vec<&'static str>,
}

impl Palette {
    pub fn new(focus: KeyFocus, aliases: Aliases, used: Vec<&'static str>) -> Self {
        let mut palette = Self {
            input: Input::default(),
            found: Vec::new(),
            chosen: 0,
            is_chosen: false,
            fault: None,
            is_refused: false,
            focus,
            aliases,
            used,
        };
        palette.search();
        palette
    }

    pub fn edit(&mut self, request: InputRequest) {
        if std::mem::take(&mut self.is_refused) {
            match request {
                // Begins the argument that the command lacks.
                InputRequest::InsertChar(' ') => {}
                // Begins a new command, as the key that opens the palette does.
                InputRequest::InsertChar(':') => return self.set_text(String::new()),
                InputRequest::InsertChar(_) => self.input = Input::default(),
                _ => {}
            }
        }
        let before = self.input.value().to_owned();
        self.input.handle(request);
        if self.input.value() != before {
            self.search();
        }
    }

    /// Shows why the entered text cannot be run. The text stays, for corrections and for a missing argument, until
    /// another character than a space is typed.
    pub(super) fn refuse(&mut self, fault: String) {
        (self.fault, self.is_refused) = (Some(fault), true);
    }

    /// Moves the choice among the commands by this many places.
    pub fn choose(&mut self, by: isize) {
        let count = self.found.len().max(1);
        self.chosen = self.chosen.wrapping_add_signed(by).wrapping_add(count) % count;
        self.is_chosen = true;
    }

    /// Replaces the text with the name of the chosen command.
    pub fn complete(&mut self) {
        let Some(command) = self.found.get(self.chosen).copied() else { return };
        if command.is_guarded() {
            self.fault = Some(in_full(command));
            return;
        }
        let behind = if command.takes_argument() { " " } else { "" };
        self.set_text(format!("{}{behind}", command.name));
    }

    /// Replaces the typed text.
    pub(super) fn set_text(&mut self, text: String) {
        self.input = Input::new(text);
        self.search();
    }

    /// Returns the command to run, with its argument: the command whose name the text begins, or the one that the user
    /// chose. A command that was only found by words is proposed, but not run.
    ///
    /// # Errors
    /// There is no such command, it does not apply to the focused pane, or it must be typed in full.
    pub fn entered(&self) -> Result<(&'static Command, String), String> {
        let text = self.aliases.resolve(self.input.value().trim());
        let (head, argument) = text.split_once(char::is_whitespace).unwrap_or((&text, ""));
        let (name, whole) = (head.to_lowercase(), text.to_lowercase());
        // If the text begins with the name of a command or the start of a name, the rest of the text is an argument.
        // Otherwise the whole text is a search.
        let names = |command: &Command| {
            !head.is_empty() && command.takes.is_some() && command.name.starts_with(&name)
        };
        let is_named = |command: &Command| names(command) || command.name.starts_with(&whole);
        let command = if self.is_chosen {
            self.found.get(self.chosen)
        } else {
            self.found.iter().find(|command| is_named(command))
        };
        let Some(command) = command.copied() else {
            let found = self.found.first().map(|command| format!("; Tab takes {}", command.name));
            return Err(format!("no command matches: {text}{}", found.unwrap_or_default()));
        };
        if command.is_guarded() && head != command.name {
            return Err(in_full(command));
        }
        let argument = if names(command) { argument.trim().to_owned() } else { String::new() };
        if argument.is_empty() && !self.applies(command) {
            return Err(format!("{} applies {}", command.name, command.context));
        }
        Ok((command, argument))
    }

    /// Whether the command can be run with the present focus.
    pub fn applies(&self, command: &Command) -> bool {
        command.context.applies(self.focus)
    }

    fn search(&mut self) {
        let text = self.aliases.resolve(self.input.value());
        self.found = found(&text, self.focus);
        if text.trim().is_empty() {
            let place = |command: &&Command| self.used.iter().position(|used| *used == command.name);
            self.found.sort_by_key(|command| place(command).unwrap_or(usize::MAX));
        }
        (self.chosen, self.is_chosen, self.fault, self.is_refused) = (0, false, None, false);
    }
}

fn in_full(command: &Command) -> String {
    format!("type {} in full: it unlocks writes", command.name)
}

/// Commands that match the text, best match first.
fn found(text: &str, focus: KeyFocus) -> Vec<&'static Command> {
    let text = text.trim().to_lowercase();
    let head = text.split_whitespace().next().unwrap_or_default();
    // If an argument follows the name, only the name is compared with the commands.
    let takes_argument = |command: &&Command| {
        text != head && command.takes_argument() && command.name.starts_with(head)
    };
    let named = COMMANDS.iter().filter(takes_argument).min_by_key(|command| command.name != head);
    if let Some(command) = named {
        return vec![command];
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut found: Vec<(u8, &'static Command)> = COMMANDS
        .iter()
        .filter(|command| command.is_typed())
        .filter_map(|command| Some((rank(command, &text, &words, focus)?, command)))
        .collect();
    found.sort_by_key(|(rank, _)| *rank);
    if found.is_empty() {
        return misspelt(head).into_iter().collect();
    }
    found.into_iter().map(|(_, command)| command).collect()
}

/// The command that was probably meant by a misspelt name.
fn misspelt(name: &str) -> Option<&'static Command> {
    let meant = nearest(name, COMMANDS.iter().filter(|command| command.is_typed()).map(|command| command.name))?;
    COMMANDS.iter().find(|command| command.name == meant)
}

/// Rank of a command that matches the text, lower for better matches; `None` if a searched word occurs neither in the
/// command's name nor in its description.
fn rank(command: &Command, text: &str, words: &[&str], focus: KeyFocus) -> Option<u8> {
    let doc = command.doc.to_lowercase();
    let fits = words.iter().all(|word| command.name.contains(word) || doc.contains(word));
    let of_name = match command.name {
        name if name == text => 0,
        name if name.starts_with(text) => 1,
        name if name.contains(text) => 2,
        _ => 3,
    };
    // Commands that do not apply with the present focus come last, unless the text is their exact name.
    let elsewhere = if command.context.applies(focus) || of_name == 0 { 0 } else { 4 };
    fits.then_some(of_name + elsewhere)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{commands::KeyContext, pane::Pane};

    fn typed(text: &str) -> Palette {
        let mut palette = Palette::new(KeyFocus::Pane(Pane::Nodes), Aliases::default(), Vec::new());
        for letter in text.chars() {
            palette.edit(InputRequest::InsertChar(letter));
        }
        palette
    }

    fn first(text: &str) -> &'static str {
        typed(text).found.first().map_or("nothing", |command| command.name)
    }

    #[test]
    fn a_command_is_found_by_its_name_the_start_of_it_or_words_of_its_description() {
        assert_eq!((first("drain"), first("enf"), first("Quit")), ("drain", "enforce", "quit"));
        assert_eq!((first("whole screen"), first("follows if")), ("zoom", "what-if"));
        assert_eq!(first("xyzzy"), "nothing");
    }

    #[test]
    fn every_command_that_is_not_part_of_typing_is_found_by_its_name() {
        for command in COMMANDS {
            let is_typing =
                matches!(command.context, KeyContext::Typing | KeyContext::TypingOf(_) | KeyContext::Tour);
            let expected = if is_typing || command.name == "palette" { None } else { Some(command.name) };
            let found = typed(command.name).found.first().map(|found| found.name);
            assert_eq!(found.filter(|found| *found == command.name), expected, "{}", command.name);
        }
    }

    #[test]
    fn a_refused_text_takes_a_missing_argument_and_gives_way_to_another_command() {
        let after = |more: &str| {
            let mut palette = typed("export");
            palette.refuse("name a file".into());
            more.chars().for_each(|letter| palette.edit(InputRequest::InsertChar(letter)));
            palette.input.value().to_owned()
        };
        assert_eq!(after(" a.csv"), "export a.csv");
        assert_eq!(after(":sort"), "sort");
        assert_eq!(after("sort"), "sort");
    }

    #[test]
    fn an_argument_follows_a_name_and_is_not_the_text_that_found_it() {
        let entered = |text: &str| typed(text).entered().map(|(command, argument)| (command.name, argument));
        assert_eq!(entered("enforce 30m"), Ok(("enforce", "30m".into())));
        assert_eq!(entered("unt  1h "), Ok(("until", "1h".into())));
        assert_eq!(entered("enf 1h"), Err("type enforce in full: it unlocks writes".into()));
        assert_eq!(entered("reason new kernel"), Ok(("reason", "new kernel".into())));
        assert_eq!(entered("evict"), Err("evict applies in the pods, detail, evictions".into()));
        assert_eq!(entered("xyz"), Err("no command matches: xyz".into()));
    }

    #[test]
    fn what_was_only_found_by_words_runs_once_it_is_chosen() {
        let mut palette = typed("more columns");
        assert_eq!(palette.entered(), Err("no command matches: more columns; Tab takes wide".into()));
        palette.choose(1);
        assert_eq!(palette.entered().map(|(command, _)| command.name), Ok("wide"));
        assert_eq!(typed("drian").entered(), Err("no command matches: drian; Tab takes drain".into()));
        assert!(typed("2").entered().is_err(), "a digit in a description is no name");
        assert_eq!(typed("Quit").entered().map(|(command, _)| command.name), Ok("quit"));
    }

    #[test]
    fn misspelt_names_and_other_names_find_their_command() {
        assert_eq!(
            (first("drian"), first("cordn"), first("pdb"), first("no")),
            ("drain", "cordon", "budgets", "nodes")
        );
        let entered = |text: &str| typed(text).entered().map(|(command, argument)| (command.name, argument));
        assert_eq!(
            entered("drain n-1"),
            Ok(("drain", "n-1".into())),
            "with an argument it applies everywhere"
        );
        assert_eq!(entered("evict shop/web-1"), Ok(("evict", "shop/web-1".into())));
        assert_eq!(entered("pdb node:n-1"), Ok(("budgets", "node:n-1".into())));
    }

    #[test]
    fn a_character_replaces_a_refused_text_and_other_keys_correct_it() {
        let refused = |requests: &[InputRequest]| {
            let mut palette = typed("drain x");
            palette.refuse("there is no node x".into());
            requests.iter().for_each(|request| palette.edit(*request));
            (palette.input.value().to_owned(), palette.fault)
        };
        let insert = InputRequest::InsertChar;
        assert_eq!(refused(&[insert('n'), insert('o')]), ("no".into(), None));
        assert_eq!(refused(&[InputRequest::DeletePrevChar, insert('y')]), ("drain y".into(), None));
        let kept = Some("there is no node x".to_owned());
        assert_eq!(refused(&[InputRequest::GoToStart]), ("drain x".into(), kept));
    }

    #[test]
    fn what_was_used_last_comes_first() {
        let palette = Palette::new(KeyFocus::Pane(Pane::Nodes), Aliases::default(), vec!["theme", "drain"]);
        let names: Vec<&str> = palette.found.iter().map(|command| command.name).take(2).collect();
        assert_eq!(names, ["theme", "drain"]);
    }

    #[test]
    fn completing_leaves_room_for_an_argument_where_there_is_one() {
        let completed = |text: &str| {
            let mut palette = typed(text);
            palette.complete();
            palette.input.value().to_owned()
        };
        assert_eq!((completed("unt"), completed("dry")), ("until ".into(), "dry-run".into()));
        assert_eq!(completed("enf"), "enf", "what unlocks writes is typed in full");
        let mut palette = typed("");
        palette.choose(-1);
        assert_eq!(palette.chosen, palette.found.len() - 1);
    }
}
