//! Flags and commands of kubectl that kordon refuses, each with the reason.

/// Refused flags: the commands that have the flag, its name, and the reason.
const REFUSED: [(&[&str], &str, &str); 16] = [
    (OF_NODES, "allow-missing-template-keys", TEMPLATES),
    (OF_NODES, "template", TEMPLATES),
    (OF_NODES, "show-managed-fields", "objects are not printed, only what changes: use kubectl get"),
    (OF_NODES, "field-manager", "writes are made as kordon, so that others see who made them"),
    (OF_METADATA, "all-namespaces", "nodes have no namespace, and kordon changes nodes only"),
    (OF_METADATA, "local", "a plan is made over the cluster: there is nothing to do without one"),
    (
        OF_METADATA,
        "resource-version",
        "the write has the node's uid as its precondition; a newer version is no obstacle",
    ),
    (&["label", "annotate", "delete"], "filename", FILES),
    (&["label", "annotate", "delete"], "kustomize", FILES),
    (&["label", "annotate", "delete"], "recursive", FILES),
    (&["delete"], "cascade", "pods own nothing that would be deleted with them"),
    (&["delete"], "interactive", "with --enforce kordon always asks; --yes skips the question"),
    (
        LISTS,
        "watch",
        "a list is printed once: `kordon status --watch` prints what changes, `kordon` shows it",
    ),
    (LISTS, "sort-by", "--sort COLUMN sorts by a column"),
    (LISTS, "field-selector", "--filter 'WORDS' selects by fields, as in 'zone:a state=Silent'"),
    (&["delete"], "raw", "kordon deletes pods by name, with their uid as the precondition"),
];

/// Commands that change fields of nodes.
const OF_NODES: &[&str] = &["taint", "label", "annotate"];
/// Commands that change labels or annotations.
const OF_METADATA: &[&str] = &["label", "annotate"];

/// Commands that list objects.
const LISTS: &[&str] =
    &["nodes", "zones", "pods", "events", "evictions", "pending", "departures", "budgets", "audit"];

const TEMPLATES: &str = "objects are not printed: -o json prints the plan or the report";
const FILES: &str = "objects are named on the command line, not in files";

/// Why kordon refuses a flag (without dashes) of a kubectl command; `None` for any other flag.
pub fn refusal(command: &str, flag: &str) -> Option<&'static str> {
    let long = match flag {
        "f" => "filename",
        "k" => "kustomize",
        "R" => "recursive",
        "i" => "interactive",
        "A" => "all-namespaces",
        "w" => "watch",
        long => long,
    };
    let found = REFUSED.iter().find(|(commands, flag, _)| commands.contains(&command) && *flag == long);
    found.map(|(.., reason)| *reason)
}

/// What does the work of a command of kubectl that kordon does not have: `kordon nodes` for `get nodes`. `words` are the
/// command and what follows it. `None` for other commands.
pub fn replacement(words: &[&str]) -> Option<&'static str> {
    let kind = words.get(1).and_then(|word| word.split('/').next()).unwrap_or_default();
    match words.first().copied()? {
        "get" | "top" => Some(match kind {
            "no" | "node" | "nodes" => "kordon nodes",
            "po" | "pod" | "pods" => "kordon pods",
            "ev" | "event" | "events" => "kordon events",
            "pdb" | "poddisruptionbudget" | "poddisruptionbudgets" => "kordon budgets",
            _ => "kordon nodes, kordon pods, kordon events or kordon budgets; other objects are kubectl's",
        }),
        "describe" => Some("kordon why node NAME or kordon why pod NAME"),
        "version" => Some("kordon --version"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{config::Config, definition, parse};

    /// Flags of kubectl label and kubectl annotate.
    const METADATA: &[&str] = &[
        "all",
        "all-namespaces",
        "allow-missing-template-keys",
        "dry-run",
        "field-manager",
        "field-selector",
        "filename",
        "kustomize",
        "list",
        "local",
        "output",
        "overwrite",
        "recursive",
        "resource-version",
        "selector",
        "show-managed-fields",
        "template",
    ];

    /// Flags of kubectl 1.37's commands, according to kubectl's help.
    const FLAGS: [(&str, &[&str]); 7] = [
        ("cordon", &["dry-run", "selector"]),
        ("uncordon", &["dry-run", "selector"]),
        (
            "drain",
            &[
                "chunk-size",
                "delete-emptydir-data",
                "disable-eviction",
                "dry-run",
                "force",
                "grace-period",
                "ignore-daemonsets",
                "pod-selector",
                "selector",
                "skip-wait-for-delete-timeout",
                "timeout",
            ],
        ),
        (
            "taint",
            &[
                "all",
                "allow-missing-template-keys",
                "dry-run",
                "field-manager",
                "output",
                "overwrite",
                "selector",
                "show-managed-fields",
                "template",
                "validate",
            ],
        ),
        ("label", METADATA),
        ("annotate", METADATA),
        (
            "delete",
            &[
                "all",
                "all-namespaces",
                "cascade",
                "dry-run",
                "field-selector",
                "filename",
                "force",
                "grace-period",
                "ignore-not-found",
                "interactive",
                "kustomize",
                "now",
                "output",
                "raw",
                "recursive",
                "selector",
                "timeout",
                "wait",
            ],
        ),
    ];

    #[test]
    fn commands_of_kubectl_name_what_does_their_work() {
        for (line, meant) in [
            ("kordon get nodes", "kordon nodes"),
            ("kordon --context c get no -o wide", "kordon nodes"),
            ("kordon top node", "kordon nodes"),
            ("kordon get pdb", "kordon budgets"),
            ("kordon describe node n1", "kordon why node NAME"),
            ("kordon version", "kordon --version"),
            ("kordon nodes -w", "kordon status --watch"),
            ("kordon pods --watch", "kordon status --watch"),
            ("kordon nodes --sort-by=.metadata.name", "--sort COLUMN"),
        ] {
            let error =
                parse(line.split(' ').map(Into::into), &Config::default()).expect_err(line).to_string();
            assert!(error.contains(meant), "{line}: {error}");
        }
        assert!(parse("kordon nodes -l pool=spot".split(' ').map(Into::into), &Config::default()).is_ok());
    }

    #[test]
    fn each_flag_of_kubectl_is_supported_or_refused_with_the_reason() {
        let mut root = definition();
        root.build();
        for (command, flags) in FLAGS {
            let subcommand = root.find_subcommand(command).expect("a command of kordon");
            for flag in flags {
                let is_supported = subcommand.get_arguments().any(|arg| arg.get_long() == Some(flag));
                let reason = refusal(command, flag);
                assert!(is_supported != reason.is_some(), "kubectl {command} --{flag}: neither, or both");
                if let Some(reason) = reason {
                    let line = ["kordon", command, "x", &format!("--{flag}")];
                    let error =
                        parse(line.map(Into::into), &Config::default()).expect_err("refused").to_string();
                    assert!(error.contains(reason), "{error}");
                }
            }
        }
    }
}
