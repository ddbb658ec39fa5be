//! The kubectl and kordon commands for an action.

use std::borrow::Cow;

use super::{
    action::{Action, DrainOptions, RemovalOptions},
    label_edits::LabelEdits,
    taint_edits::{Removal, TaintEdits},
};
use crate::{
    cluster::{Key, NodeName},
    time::Span,
};

/// The equivalent kubectl command; none if kubectl has none.
pub fn command(action: &Action) -> Option<String> {
    match action {
        Action::Cordon { nodes } => Some(format!("kubectl cordon {}", names(nodes))),
        Action::Uncordon { nodes } => Some(format!("kubectl uncordon {}", names(nodes))),
        Action::Taint { nodes, edits } => {
            let overwrite = if edits.overwrite { " --overwrite" } else { "" };
            Some(format!("kubectl taint nodes {} {}{overwrite}", names(nodes), taint_words(edits)))
        }
        Action::Label { nodes, edits } => {
            let overwrite = if edits.overwrite { " --overwrite" } else { "" };
            Some(format!("kubectl label nodes {} {}{overwrite}", names(nodes), label_words(edits)))
        }
        Action::Drain { nodes, options } => {
            Some(format!("kubectl drain {}{}", names(nodes), drain_flags(options)))
        }
        // kubectl evicts with drain only.
        Action::Evict { .. } => None,
        Action::Delete { pods, options } => Some(delete(pods, *options)),
    }
}

impl Action {
    /// The kordon command that prints its plan, and with `--enforce` applies it.
    pub fn kordon(&self) -> Option<String> {
        let command = match self {
            // kubectl has no such command: it looks like the one that deletes.
            Self::Evict { pods, options } => {
                let delete = Self::Delete { pods: pods.clone(), options: *options };
                command(&delete)?.replace("delete pod", "evict pod")
            }
            Self::Cordon { .. }
            | Self::Uncordon { .. }
            | Self::Taint { .. }
            | Self::Label { .. }
            | Self::Drain { .. }
            | Self::Delete { .. } => command(self)?,
        };
        let parallel = match self {
            Self::Drain { options, .. } if options.parallel > 1 => {
                format!(" --parallel={}", options.parallel)
            }
            _ => String::new(),
        };
        let command = command.replace("kubectl ", "kordon ").replace("--grace-period=0 --force", "--force");
        Some(command + &parallel)
    }
}

/// The arguments of kubectl taint for these edits.
pub fn taint_words(edits: &TaintEdits) -> String {
    let removed = edits.remove.iter().map(|Removal { key, effect }| match effect {
        Some(effect) => format!("{key}:{effect}-"),
        None => format!("{key}-"),
    });
    edits.add.iter().map(ToString::to_string).chain(removed).collect::<Vec<_>>().join(" ")
}

/// The arguments of kubectl label for these edits.
pub fn label_words(edits: &LabelEdits) -> String {
    let set = edits.set.iter().map(|(key, value)| format!("{key}={value}"));
    set.chain(edits.remove.iter().map(|key| format!("{key}-"))).collect::<Vec<_>>().join(" ")
}

/// The flags of kubectl drain that differ from the defaults.
pub fn drain_flags(options: &DrainOptions) -> String {
    let mut flags = String::new();
    let mut flag = |given: bool, text: &str| {
        if given {
            flags.push(' ');
            flags.push_str(text);
        }
    };
    flag(options.ignore_daemonsets, "--ignore-daemonsets");
    flag(options.delete_emptydir_data, "--delete-emptydir-data");
    flag(options.force, "--force");
    flag(options.disable_eviction, "--disable-eviction");
    if let Some(grace) = options.grace {
        flag(true, &format!("--grace-period={}", grace.as_secs()));
    }
    if let Some(timeout) = options.timeout {
        flag(true, &format!("--timeout={}s", timeout.as_secs()));
    }
    if let Some(selector) = &options.pod_selector {
        flag(true, &format!("--pod-selector='{selector}'"));
    }
    if let Some(limit) = options.skip_wait_for_delete {
        flag(true, &format!("--skip-wait-for-delete-timeout={}", limit.as_secs()));
    }
    flags
}

fn delete(pods: &[Key], options: RemovalOptions) -> String {
    let mut command = "kubectl delete pod".to_owned();
    let one_namespace = pods.iter().all(|pod| pod.namespace == pods[0].namespace);
    for pod in pods {
        command.push(' ');
        command.push_str(&quoted(&pod.name));
    }
    if let Some(first) = pods.first().filter(|_| one_namespace) {
        command.push_str(&format!(" -n {}", quoted(&first.namespace)));
    } else {
        let each =
            |pod: &Key| format!("kubectl delete pod {} -n {}", quoted(&pod.name), quoted(&pod.namespace));
        command = pods.iter().map(each).collect::<Vec<_>>().join("; ");
    }
    match options.grace {
        Some(Span::ZERO) => command.push_str(" --grace-period=0 --force"),
        Some(grace) => command.push_str(&format!(" --grace-period={}", grace.as_secs())),
        None => {}
    }
    command
}

fn names(nodes: &[NodeName]) -> String {
    nodes.iter().map(|node| quoted(node)).collect::<Vec<_>>().join(" ")
}

/// A name as a shell reads it as one word. The names of objects need no quotes, unless a server lies.
pub fn quoted(name: &str) -> Cow<'_, str> {
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/' | ':');
    if !name.is_empty() && name.chars().all(is_plain) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("'{}'", name.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_shell_would_take_for_more_than_a_name_is_quoted() {
        assert_eq!(quoted("node-1.example.com"), "node-1.example.com");
        assert_eq!(quoted("a;reboot"), "'a;reboot'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn the_kordon_command_has_options_that_kubectl_lacks() {
        let options = DrainOptions { parallel: 3, force: true, ..DrainOptions::default() };
        let drain = Action::Drain { nodes: vec!["a".into(), "b".into()], options };
        assert_eq!(drain.kordon().as_deref(), Some("kordon drain a b --force --parallel=3"));
        let options = RemovalOptions { grace: Some(Span::ZERO), ..RemovalOptions::default() };
        let evict = Action::Evict { pods: vec![Key::new("d", "p"), Key::new("d", "q")], options };
        assert_eq!(evict.kordon().as_deref(), Some("kordon evict pod p q -n d --force"));
    }
}
