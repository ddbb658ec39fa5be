//! Commands of kubectl and kordon that have the effect of an action.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use super::{
    action::{Action, DrainOptions, RemovalOptions},
    metadata_edits::MetadataEdits,
    taint_edits::{Removal, TaintEdits},
};
use crate::cluster::{Key, Namespace, NodeName};
use kordon_time::Span;

/// Returns the equivalent kubectl command; `None` if kubectl has no such command, or if the action has no targets.
pub fn command(action: &Action) -> Option<String> {
    match action {
        // kubectl refuses commands that name no object.
        _ if action.has_no_targets() => None,
        // kubectl evicts pods only when it drains a node; it has no command that evicts single pods.
        Action::Evict { .. } => None,
        Action::Cordon { .. }
        | Action::Uncordon { .. }
        | Action::Taint { .. }
        | Action::Metadata { .. }
        | Action::Drain { .. }
        | Action::Delete { .. }
        | Action::DeleteNode { .. } => Some(of_action("kubectl", action)),
    }
}

impl Action {
    /// Returns the kordon command that prints the plan of the action. With `--enforce`, the same command applies the
    /// plan.
    pub fn kordon(&self) -> String {
        of_action("kordon", self)
    }
}

/// Returns the kubectl command that removes the finalizers of a pod.
pub fn remove_finalizers(pod: &Key) -> String {
    let patch = r#"[{"op":"remove","path":"/metadata/finalizers"}]"#;
    CommandLine::new("kubectl patch pod")
        .object(&pod.name)
        .namespace(&pod.namespace)
        .flag("type", "json")
        .flag("patch", patch)
        .to_string()
}

/// Returns the kubectl command that changes a number in the spec of a PodDisruptionBudget.
pub fn patch_budget(budget: &Key, field: &str, value: i32) -> String {
    CommandLine::new("kubectl patch pdb")
        .object(&budget.name)
        .namespace(&budget.namespace)
        .flag("type", "merge")
        .flag("patch", format!(r#"{{"spec":{{"{field}":{value}}}}}"#))
        .to_string()
}

/// Returns the kubectl command that lets a PodDisruptionBudget allow every eviction of pods that are not healthy.
pub fn always_allow_unhealthy(budget: &Key) -> String {
    CommandLine::new("kubectl patch pdb")
        .object(&budget.name)
        .namespace(&budget.namespace)
        .flag("type", "merge")
        .flag("patch", r#"{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}"#)
        .to_string()
}

/// Returns the kubectl command that deletes PodDisruptionBudgets of one namespace.
pub fn delete_budgets<'a>(namespace: &Namespace, budgets: impl IntoIterator<Item = &'a Key>) -> String {
    let command = CommandLine::new("kubectl delete pdb");
    let command = budgets.into_iter().fold(command, |command, budget| command.object(&budget.name));
    command.namespace(namespace).to_string()
}

/// Returns the kubectl command that scales a workload. `resource` is a resource name such as `deployment`.
pub fn scale(resource: &str, workload: &Key, replicas: i32) -> String {
    CommandLine::new("kubectl scale")
        .object(format!("{resource}/{}", workload.name))
        .namespace(&workload.namespace)
        .flag("replicas", replicas.to_string())
        .to_string()
}

/// Returns the kordon command that predicts the failure of nodes, or of zones. `of` is `node` or `zone`.
pub fn failure(of: &str, names: impl IntoIterator<Item: ToString>) -> String {
    CommandLine::new(format!("kordon plan {of}-failure")).objects(names).to_string()
}

/// Returns the kubectl or kordon command for an action. For pods in several namespaces, returns one command for each
/// namespace.
fn of_action(program: &str, action: &Action) -> String {
    let of_nodes =
        |verb: &str, nodes: &[NodeName]| CommandLine::new(format!("{program} {verb}")).objects(nodes);
    match action {
        Action::Cordon { nodes } => of_nodes("cordon", nodes).to_string(),
        Action::Uncordon { nodes } => of_nodes("uncordon", nodes).to_string(),
        Action::Taint { nodes, edits } => {
            let line = of_nodes("taint nodes", nodes).objects(edited_taints(edits));
            line.switch("overwrite", edits.overwrite).to_string()
        }
        Action::Metadata { nodes, edits } => {
            let line =
                of_nodes(&format!("{} nodes", edits.field.verb()), nodes).objects(edited_metadata(edits));
            line.switch("overwrite", edits.overwrite).to_string()
        }
        Action::Drain { nodes, options } => {
            let line = drain_flags(of_nodes("drain", nodes), options);
            let line = line.switch("surge", program == "kordon" && options.surge);
            let parallel = (program == "kordon" && options.parallel > 1).then_some(options.parallel);
            line.optional("parallel", parallel.map(|nodes| nodes.to_string())).to_string()
        }
        Action::Evict { pods, options } => remove(program, "evict", pods, *options),
        Action::Delete { pods, options } => remove(program, "delete", pods, *options),
        Action::DeleteNode { nodes } => {
            CommandLine::new(format!("{program} delete node")).objects(nodes).to_string()
        }
    }
}

fn remove(program: &str, verb: &str, pods: &[Key], options: RemovalOptions) -> String {
    let mut namespaces: BTreeMap<&Namespace, Vec<&str>> = BTreeMap::new();
    pods.iter().for_each(|pod| namespaces.entry(&pod.namespace).or_default().push(&pod.name));
    let of_namespace = |(namespace, names): (&Namespace, Vec<&str>)| {
        let line = CommandLine::new(format!("{program} {verb} pod")).objects(names).namespace(namespace);
        let line = match options.grace {
            Some(Span::ZERO) => line.flag("grace-period", "0").switch("force", true),
            grace => line.optional("grace-period", grace.map(|grace| grace.as_secs().to_string())),
        };
        line.optional("timeout", options.timeout.map(duration)).to_string()
    };
    namespaces.into_iter().map(of_namespace).collect::<Vec<_>>().join("; ")
}

/// Formats edits of taints as arguments of kubectl taint.
pub fn taint_words(edits: &TaintEdits) -> String {
    edited_taints(edits).collect::<Vec<_>>().join(" ")
}

/// Formats edits of labels or annotations as arguments of kubectl label or kubectl annotate, quoted for a shell.
pub fn metadata_words(edits: &MetadataEdits) -> String {
    edited_metadata(edits).map(|word| quoted(&word).into_owned()).collect::<Vec<_>>().join(" ")
}

fn edited_taints(edits: &TaintEdits) -> impl Iterator<Item = String> {
    let removed = edits.remove.iter().map(|Removal { key, effect }| match effect {
        Some(effect) => format!("{key}:{effect}-"),
        None => format!("{key}-"),
    });
    edits.add.iter().map(ToString::to_string).chain(removed)
}

fn edited_metadata(edits: &MetadataEdits) -> impl Iterator<Item = String> {
    let set = edits.set.iter().map(|(key, value)| format!("{key}={value}"));
    set.chain(edits.remove.iter().map(|key| format!("{key}-")))
}

/// Adds the kubectl drain flags of those options that differ from the defaults.
fn drain_flags(line: CommandLine, options: &DrainOptions) -> CommandLine {
    line.switch("ignore-daemonsets", options.ignore_daemonsets)
        .switch("delete-emptydir-data", options.delete_emptydir_data)
        .switch("force", options.force)
        .switch("disable-eviction", options.disable_eviction)
        .optional("grace-period", options.grace.map(|grace| grace.as_secs().to_string()))
        .optional("timeout", options.timeout.map(duration))
        .optional("pod-selector", options.pod_selector.as_ref().map(ToString::to_string))
        .optional(
            "skip-wait-for-delete-timeout",
            options.skip_wait_for_delete.map(|limit| limit.as_secs().to_string()),
        )
}

/// Formats a duration in Go's syntax: `90s`, `1500ms`.
fn duration(span: Span) -> String {
    let millis = span.as_nanos() / 1_000_000;
    if millis % 1000 == 0 { format!("{}s", millis / 1000) } else { format!("{millis}ms") }
}

/// A command line for a shell. Words are quoted if a shell would change them.
#[derive(Clone, Debug)]
struct CommandLine {
    command: String,
    /// Arguments that are not flags, such as names.
    objects: Vec<String>,
    flags: Vec<String>,
}

impl CommandLine {
    fn new(command: impl Into<String>) -> Self {
        Self { command: command.into(), objects: Vec::new(), flags: Vec::new() }
    }

    fn object(self, word: impl ToString) -> Self {
        self.objects([word])
    }

    fn objects(mut self, words: impl IntoIterator<Item: ToString>) -> Self {
        self.objects.extend(words.into_iter().map(|word| word.to_string()));
        self
    }

    fn namespace(mut self, namespace: &Namespace) -> Self {
        self.flags.push(format!("-n {}", quoted(namespace)));
        self
    }

    fn flag(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.flags.push(format!("--{name}={}", quoted(value.as_ref())));
        self
    }

    fn optional(self, name: &str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.flag(name, value),
            None => self,
        }
    }

    fn switch(mut self, name: &str, is_on: bool) -> Self {
        self.flags.extend(is_on.then(|| format!("--{name}")));
        self
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.command)?;
        // Names that start with a hyphen are written after `--`, so that they are not read as flags.
        let is_like_a_flag = self.objects.iter().any(|word| word.starts_with('-'));
        if !is_like_a_flag {
            self.objects.iter().try_for_each(|word| write!(f, " {}", quoted(word)))?;
        }
        self.flags.iter().try_for_each(|flag| write!(f, " {flag}"))?;
        if is_like_a_flag {
            f.write_str(" --")?;
            self.objects.iter().try_for_each(|word| write!(f, " {}", quoted(word)))?;
        }
        Ok(())
    }
}

/// Quotes a word so that a shell reads it unchanged. Valid object names need no quotes, but a server may send other
/// names.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| {
        letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/' | ':' | '=' | ',')
    };
    // The Z shell expands words that start with an equals sign.
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Selector;

    #[test]
    fn a_word_that_a_shell_would_take_for_more_than_a_word_is_quoted() {
        assert_eq!(quoted("node-1.example.com"), "node-1.example.com");
        assert_eq!(quoted("team=a:NoExecute"), "team=a:NoExecute");
        assert_eq!(quoted("a;reboot"), "'a;reboot'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("=ls"), "'=ls'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn pods_of_several_namespaces_have_a_complete_command_for_each_namespace() {
        let pods = vec![Key::new("shop", "web-0"), Key::new("data", "db-0"), Key::new("shop", "web-1")];
        let options = RemovalOptions { grace: Some(Span::ZERO), ..RemovalOptions::default() };
        let delete = Action::Delete { pods: pods.clone(), options };
        assert_eq!(
            command(&delete).as_deref(),
            Some(
                "kubectl delete pod db-0 -n data --grace-period=0 --force; \
                 kubectl delete pod web-0 web-1 -n shop --grace-period=0 --force"
            )
        );
        let options =
            RemovalOptions { grace: Some(Span::from_secs(5)), timeout: Some(Span::from_secs(90)), ..options };
        assert_eq!(
            Action::Evict { pods, options }.kordon(),
            "kordon evict pod db-0 -n data --grace-period=5 --timeout=90s; \
             kordon evict pod web-0 web-1 -n shop --grace-period=5 --timeout=90s"
        );
    }

    #[test]
    fn an_action_without_targets_has_no_command() {
        assert_eq!(command(&Action::Cordon { nodes: Vec::new() }), None);
        let delete = Action::Delete { pods: Vec::new(), options: RemovalOptions::default() };
        assert_eq!(command(&delete), None);
    }

    #[test]
    fn a_name_that_looks_like_a_flag_is_none() {
        let pods = vec![Key::new("shop", "--all")];
        let delete = Action::Delete { pods, options: RemovalOptions::default() };
        assert_eq!(command(&delete).as_deref(), Some("kubectl delete pod -n shop -- --all"));
    }

    #[test]
    fn the_options_of_a_drain_are_flags() {
        let options = DrainOptions {
            timeout: Some(Span::from_millis(1500)),
            pod_selector: Some(Selector::parse("app in (a, b)").expect("a selector")),
            ..DrainOptions::default()
        };
        let drain = Action::Drain { nodes: vec!["a".into()], options };
        assert_eq!(
            command(&drain).as_deref(),
            Some("kubectl drain a --timeout=1500ms --pod-selector='app in (a,b)'")
        );
        let options = DrainOptions {
            force: true,
            ignore_daemonsets: true,
            delete_emptydir_data: true,
            disable_eviction: true,
            grace: Some(Span::from_secs(5)),
            skip_wait_for_delete: Some(Span::from_secs(60)),
            surge: true,
            parallel: 2,
            ..DrainOptions::default()
        };
        let drain = Action::Drain { nodes: vec!["a".into()], options };
        let flags = "drain a --ignore-daemonsets --delete-emptydir-data --force --disable-eviction \
                     --grace-period=5 --skip-wait-for-delete-timeout=60";
        assert_eq!(command(&drain), Some(format!("kubectl {flags}")));
        assert_eq!(
            drain.kordon(),
            format!("kordon {flags} --surge --parallel=2"),
            "kubectl has no such flags"
        );
    }

    #[test]
    fn the_kordon_command_has_options_that_kubectl_lacks() {
        let options = DrainOptions { parallel: 3, force: true, ..DrainOptions::default() };
        let drain = Action::Drain { nodes: vec!["a".into(), "b".into()], options };
        assert_eq!(drain.kordon(), "kordon drain a b --force --parallel=3");
        assert_eq!(command(&drain).as_deref(), Some("kubectl drain a b --force"));
        let options = RemovalOptions { grace: Some(Span::ZERO), ..RemovalOptions::default() };
        let evict = Action::Evict { pods: vec![Key::new("d", "p"), Key::new("d", "q")], options };
        assert_eq!(evict.kordon(), "kordon evict pod p q -n d --grace-period=0 --force");
        assert_eq!(failure("node", ["a", "b"]), "kordon plan node-failure a b");
    }
}
