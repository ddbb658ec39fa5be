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

/// Commands of k9s that kordon does not have, and what to use instead.
const ONLY_K9S: &[(&[&str], &str)] = &[
    (&["logs", "log"], "kubectl logs shows them"),
    (&["shell", "sh", "attach"], "kubectl exec opens one"),
    (&["pf", "portforward", "port-forward"], "kubectl port-forward opens one"),
    (&["top"], "wide shows what nodes use, kordon pressure how near they are to evictions"),
    (&["xray", "dir", "rbac", "helm", "crd", "crds"], "k9s shows it"),
    (
        &[
            "svc",
            "services",
            "dp",
            "deploy",
            "deployments",
            "ds",
            "daemonsets",
            "sts",
            "statefulsets",
            "rs",
            "replicasets",
            "job",
            "jobs",
            "cj",
            "cronjobs",
            "cm",
            "configmaps",
            "sec",
            "secrets",
            "ing",
            "ingresses",
            "ep",
            "endpoints",
            "pv",
            "pvc",
            "sa",
            "hpa",
        ],
        "kordon lists nodes, pods, budgets and Events",
    ),
];

/// Message for the name of a command that k9s has and kordon does not; `None` for other names.
pub fn of_k9s(name: &str) -> Option<String> {
    let (_, instead) = ONLY_K9S.iter().find(|(names, _)| names.contains(&name))?;
    Some(format!("kordon has no {name}: {instead}"))
}

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

    /// Checks that the text for which an alias stands can be run: it begins with a command, or with the start of its
    /// name, and has an argument only if that command takes one.
    ///
    /// # Errors
    /// There is no such command, it takes no argument, or it must be written in full.
    pub fn check(meant: &str) -> Result<(), String> {
        let mut words = meant.split_whitespace();
        let name = words.next().unwrap_or_default().to_lowercase();
        let has_argument = words.next().is_some();
        let typed = || COMMANDS.iter().filter(|command| command.is_typed());
        let named: Vec<_> = typed().filter(|command| command.name.starts_with(&name)).collect();
        let Some(first) = named.first() else {
            let nearest = nearest(&name, typed().map(|command| command.name));
            return Err(format!("there is no command {name:?}{}", did_you_mean(nearest)));
        };
        if has_argument && !named.iter().any(|command| command.takes_argument()) {
            return Err(format!("{} takes no argument", first.name));
        }
        if named.iter().all(|command| command.is_guarded() && command.name != name) {
            return Err(format!("{} unlocks writes: write its name in full", first.name));
        }
        Ok(())
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
        for name in ONLY_K9S.iter().flat_map(|(names, _)| *names) {
            let is_built_in = BUILT_IN.iter().any(|(alias, _)| alias == name);
            assert!(!is_command(name) && !is_built_in, "{name}");
        }
    }

    #[test]
    fn what_an_alias_stands_for_can_be_run() {
        for meant in ["filter state!=Ready", "drain n-1", "dra n-1", "nodes zone:a", "quit", "enforce 1h"] {
            assert_eq!(Aliases::check(meant), Ok(()), "{meant}");
        }
        for (meant, expected) in [
            ("drian x", "there is no command \"drian\"; did you mean drain?"),
            ("quit now", "quit takes no argument"),
            ("dry-run 1h", "dry-run takes no argument"),
            ("keep-filter", "there is no command \"keep-filter\""),
            ("enf 1h", "enforce unlocks writes: write its name in full"),
        ] {
            assert_eq!(Aliases::check(meant), Err(expected.to_owned()), "{meant}");
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
