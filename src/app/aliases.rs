//! Aliases of commands: names from k9s and kubectl, and the user's own.

use std::collections::BTreeMap;

use super::commands::COMMANDS;
use kordon_core::cluster::nearest::{did_you_mean, nearest};

/// Names of commands in k9s and kubectl, each with kordon's command.
const BUILT_IN: &[(&str, &str)] = &[
    ("no", "nodes"),
    ("node", "nodes"),
    ("po", "pods"),
    ("pod", "pods"),
    ("pdb", "budgets"),
    ("poddisruptionbudget", "budgets"),
    ("poddisruptionbudgets", "budgets"),
    ("ev", "events"),
    ("event", "events"),
    ("ns", "namespace"),
    ("namespaces", "namespace"),
    ("label", "labels"),
    ("annotate", "annotations"),
    ("ctx", "context"),
    ("contexts", "context"),
    ("q", "quit"),
    ("q!", "quit"),
    ("qa", "quit"),
    ("exit", "quit"),
    ("h", "help"),
    ("?", "help"),
    ("alias", "help"),
    ("aliases", "help"),
    ("keys", "help"),
    ("describe", "detail"),
    ("skin", "theme"),
    ("pulse", "zones"),
    ("pulses", "zones"),
    ("popeye", "audit"),
    ("sd", "export"),
    ("screendump", "export"),
];

/// Aliases of commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aliases {
    /// The user's own aliases, each with a command and its arguments.
    own: BTreeMap<String, String>,
}

impl Aliases {
    pub const fn new(own: BTreeMap<String, String>) -> Self {
        Self { own }
    }

    /// Checks that the text for which an alias stands begins with a command.
    ///
    /// # Errors
    /// There is no such command; the text names the nearest one.
    pub fn check(meant: &str) -> Result<(), String> {
        let name = meant.split_whitespace().next().unwrap_or_default().to_lowercase();
        if COMMANDS.iter().any(|command| command.name.starts_with(&name)) {
            return Ok(());
        }
        let nearest = nearest(&name, COMMANDS.iter().map(|command| command.name));
        Err(format!("there is no command {name:?}{}", did_you_mean(nearest)))
    }

    /// Replaces an alias at the start of a text with its command. The rest of the text stays.
    pub fn resolve(&self, text: &str) -> String {
        let (head, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
        let built_in = || BUILT_IN.iter().find(|(name, _)| *name == head).map(|(_, meant)| *meant);
        match self.own.get(head).map(String::as_str).or_else(built_in) {
            Some(meant) => format!("{meant}{rest}"),
            None => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_names_stand_for_commands_and_hide_none() {
        let is_command = |name: &str| COMMANDS.iter().any(|command| command.name == name);
        for (alias, meant) in BUILT_IN {
            assert!(is_command(meant) && !is_command(alias), "{alias}");
        }
    }

    #[test]
    fn own_names_come_first_and_keep_what_follows() {
        let own = BTreeMap::from([("no".to_owned(), "nodes zone:a".to_owned())]);
        let aliases = Aliases::new(own);
        assert_eq!(aliases.resolve("no state=Silent"), "nodes zone:a state=Silent");
        assert_eq!(aliases.resolve("pdb"), "budgets");
        assert_eq!(aliases.resolve("drain n-1"), "drain n-1");
        assert_eq!(aliases.resolve(""), "");
    }
}
