//! The command palette: commands are typed by name or found by words.

use tui_input::{Input, InputRequest};

use super::{
    aliases::{Aliases, of_k9s},
    commands::{COMMANDS, Command},
    pane::KeyFocus,
};
use kordon_core::cluster::nearest::nearest;

/// Maximum number of commands that are named if a typed name begins several.
const NAMED: usize = 5;

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

    /// Asks for the argument that the entered command lacks: its name stays, to be completed.
    pub(super) fn ask_for_argument(&mut self, command: &Command, names: String) {
        self.set_text(format!("{} ", command.name));
        self.fault = Some(names);
    }

    /// Moves the choice among the commands by this many places.
    pub fn choose(&mut self, by: isize) {
        let count = self.found.len().max(1);
        self.chosen = self.chosen.wrapping_add_signed(by).wrapping_add(count) % count;
        self.is_chosen = true;
    }

    /// Replaces the text with the name of the chosen command. If the name before an argument was misspelt, the argument
    /// stays.
    pub fn complete(&mut self) {
        let Some(command) = self.found.get(self.chosen).copied() else { return };
        let has_argument = self.input.value().trim().contains(char::is_whitespace);
        if has_argument && self.correct() {
            return;
        }
        if command.is_guarded() {
            self.fault = Some(in_full(command));
            return;
        }
        let behind = if command.takes_argument() { " " } else { "" };
        self.set_text(format!("{}{behind}", command.name));
    }

    /// Chooses the command at this index, and replaces the text with its name.
    pub(super) fn take(&mut self, place: usize) {
        if place < self.found.len() {
            self.chosen = place;
            self.complete();
        }
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
        let is_named = |command: &&Command| names(command) || command.name.starts_with(&whole);
        let command = if self.is_chosen || whole.is_empty() {
            self.found.get(self.chosen).copied().ok_or_else(|| self.no_match(&text))?
        } else {
            let named: Vec<&'static Command> = self.found.iter().copied().filter(is_named).collect();
            self.meant(&named, &name).ok_or_else(|| self.no_match(&text))??
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

    /// Of the commands whose names a typed name begins, the one that is meant: the command of that name, or the only
    /// one that applies with the present focus, or the only one. `None` if the name begins none.
    ///
    /// # Errors
    /// Several commands may be meant; the text names them.
    fn meant(&self, named: &[&'static Command], name: &str) -> Option<Result<&'static Command, String>> {
        if let Some(exact) = named.iter().copied().find(|command| command.name == name) {
            return Some(Ok(exact));
        }
        let mut here: Vec<&'static Command> =
            named.iter().copied().filter(|command| self.applies(command)).collect();
        if here.is_empty() {
            here = named.to_vec();
        }
        match here.as_slice() {
            [] => None,
            [only] => Some(Ok(*only)),
            several => {
                let names: Vec<&str> = several.iter().take(NAMED).map(|command| command.name).collect();
                let more = if several.len() > NAMED { ", …" } else { "" };
                Some(Err(format!("{name} begins {}{more}: type more of the name", names.join(", "))))
            }
        }
    }

    /// Why no command is named by a text, with what probably helps. A single word proposes only a command with a name
    /// like it; several words are a search, and propose the best match.
    fn no_match(&self, text: &str) -> String {
        let name = text.split_whitespace().next().unwrap_or_default().to_lowercase();
        if let Some(instead) = of_k9s(&name) {
            return instead;
        }
        let is_search = text.contains(char::is_whitespace);
        let proposed = if is_search { self.found.first().copied() } else { misspelt(&name) };
        let proposed = proposed.map(|command| format!("; Tab takes {}", command.name));
        format!("no command matches: {text}{}", proposed.unwrap_or_default())
    }

    /// Replaces a misspelt name with the only command that has a name like it, and keeps what follows the name. Returns
    /// whether there is such a command. A command that must be typed in full is not proposed.
    pub(super) fn correct(&mut self) -> bool {
        let text = self.input.value().trim().to_owned();
        let (head, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
        let name = head.to_lowercase();
        let [found] = self.found[..] else { return false };
        let is_guess = misspelt(&name) == Some(found) && !found.name.starts_with(&name);
        let near = COMMANDS.iter().filter(|command| command.is_typed() && is_near(&name, command.name));
        if !is_guess || found.is_guarded() || near.count() > 1 {
            return false;
        }
        self.set_text(format!("{}{rest}", found.name));
        self.fault = Some(format!("there is no command {head}; Enter runs the corrected line"));
        true
    }

    /// Whether the command can be run with the present focus.
    pub fn applies(&self, command: &Command) -> bool {
        command.context.applies(self.focus) || command.when_typed.is_some()
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
    let takes_argument =
        |command: &&Command| text != head && command.takes_argument() && command.name.starts_with(head);
    let named: Vec<&'static Command> = COMMANDS.iter().filter(takes_argument).collect();
    if let Some(exact) = named.iter().copied().find(|command| command.name == head) {
        return vec![exact];
    }
    if !named.is_empty() {
        return named;
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
    let names = COMMANDS.iter().filter(|command| command.is_typed()).map(|command| command.name);
    let meant = nearest(name, names.filter(|known| is_near(name, known)))?;
    COMMANDS.iter().find(|command| command.name == meant)
}

/// Whether a misspelt name is near a known one. A name of one or two letters is near none: half of it would differ.
fn is_near(name: &str, known: &str) -> bool {
    name.chars().count() > 2 && nearest(name, [known]).is_some()
}

/// Rank of a command that matches the text, lower for better matches; `None` if a searched word is neither a part of
/// the command's name nor the start of a word in its description.
fn rank(command: &Command, text: &str, words: &[&str], focus: KeyFocus) -> Option<u8> {
    let doc = command.doc.to_lowercase();
    let begins_word =
        |word: &str| doc.match_indices(word).any(|(at, _)| !doc[..at].ends_with(char::is_alphanumeric));
    let fits = words.iter().all(|word| command.name.contains(word) || begins_word(word));
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
    fn the_start_of_several_names_runs_none_of_them() {
        let entered = |text: &str| typed(text).entered().map(|(command, argument)| (command.name, argument));
        assert_eq!(entered("w"), Err("w begins what-if, within, wide: type more of the name".into()));
        assert_eq!(entered("w 5m").map_err(|fault| fault.starts_with("w begins what-if, within")), Err(true));
        assert_eq!(entered("wi"), Err("wi begins within, wide: type more of the name".into()));
        assert_eq!(entered("wid"), Ok(("wide", String::new())));
        assert_eq!(entered("zone"), Ok(("zone", String::new())), "zones has a longer name");
    }

    #[test]
    fn a_word_proposes_only_a_command_with_a_name_like_it() {
        let fault = |text: &str| typed(text).entered().expect_err("no command");
        assert_eq!(fault("5"), "no command matches: 5");
        assert_eq!(fault("zz"), "no command matches: zz");
        assert_eq!(fault("stopped"), "no command matches: stopped", "a word of a description");
        assert_eq!(fault("logs web-1"), "kordon has no logs: kubectl logs shows them");
        assert_eq!(fault("dp"), "kordon has no dp: kordon lists nodes, pods, budgets and Events");
        assert!(fault("top").starts_with("kordon has no top: wide shows what nodes use"));
    }

    #[test]
    fn a_misspelt_name_is_corrected_and_keeps_its_argument() {
        let corrected = |text: &str| {
            let mut palette = typed(text);
            (palette.correct(), palette.input.value().to_owned())
        };
        assert_eq!(corrected("drian general-1a-01"), (true, "drain general-1a-01".into()));
        assert_eq!(corrected("drian"), (true, "drain".into()));
        for text in ["drain n-1", "enforec 1h", "more columns", "evict", "top"] {
            assert_eq!(corrected(text), (false, text.into()), "{text}");
        }
        let mut palette = typed("drian n-1");
        palette.complete();
        assert_eq!(palette.input.value(), "drain n-1");
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
