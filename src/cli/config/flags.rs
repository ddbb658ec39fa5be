//! Flags and settings of the controller that can be configured, and the checks of their values.

use clap::error::{ContextKind, ContextValue};

use crate::cli::definition;
use kordon_core::{
    cluster::nearest::{did_you_mean, nearest},
    engine::{Origin, ServerVersion, Settings},
};

/// Flags of several commands that the file may set.
pub const FLAGS: [&str; 11] = [
    "theme",
    "tour",
    "ascii",
    "no-mouse",
    "no-pods",
    "read-only",
    "placement",
    "percentage-of-nodes-to-score",
    "list-timeout",
    "history",
    "history-size",
];

/// Flags of a drain that the file may set. Flags that lose pods without a controller, or that ignore budgets, must be
/// typed.
pub const DRAIN_FLAGS: [&str; 6] = [
    "ignore-daemonsets",
    "delete-emptydir-data",
    "grace-period",
    "timeout",
    "skip-wait-for-delete-timeout",
    "parallel",
];

/// Latest release whose controller has all settings that can be configured.
const ALL_SETTINGS: ServerVersion = ServerVersion::new(1, 26);

/// All keys except those of contexts and of the dashboard, in the order in which they are printed.
pub fn known_keys() -> impl Iterator<Item = Vec<&'static str>> {
    let flags = FLAGS.into_iter().map(|flag| vec![flag]);
    let drain = DRAIN_FLAGS.into_iter().map(|flag| vec!["drain", flag]);
    let controller = controller_defaults().into_iter().map(|(flag, _)| vec!["controller", flag]);
    flags.chain(drain).chain(controller)
}

/// Settings of the controller with upstream's defaults.
pub fn controller_defaults() -> Vec<(&'static str, String)> {
    let rows = Settings::defaults(ALL_SETTINGS).rows().into_iter();
    rows.map(|(flag, default, _)| (flag, default)).collect()
}

/// Definition of a flag; `None` for a setting of the controller, whose default depends on the cluster.
pub fn flag_definition<'a>(command: &'a clap::Command, path: &[&str]) -> Option<&'a clap::Arg> {
    match path {
        [flag] => argument(command, flag),
        ["drain", flag] => argument(command.find_subcommand("drain")?, flag),
        _ => None,
    }
}

/// Checks a value of one of [`known_keys`]. The error says what is wrong with the value.
pub fn check(path: &[&str], text: &str) -> Result<(), String> {
    match path {
        ["controller", flag] => check_setting(flag, text),
        [.., flag] => check_flag(flag, text),
        [] => Ok(()),
    }
}

pub fn check_setting(flag: &str, text: &str) -> Result<(), String> {
    let set = Settings::defaults(ALL_SETTINGS).set(flag, text, Origin::Configuration);
    set.map(drop).map_err(|bad| format!("not {}", bad.wanted))
}

/// Checks a value in the same way as the command line.
pub fn check_flag(flag: &str, text: &str) -> Result<(), String> {
    let command = definition();
    check_argument(argument(&command, flag).expect("every flag of the lists belongs to a command"), text)
}

/// Checks a value of an argument. The error says what is wrong with the value.
pub fn check_argument(arg: &clap::Arg, text: &str) -> Result<(), String> {
    let value = clap::Arg::new("value").long("value").value_parser(arg.get_value_parser().clone());
    let alone = clap::Command::new("kordon").arg(value.num_args(1).allow_hyphen_values(true));
    let Err(error) = alone.try_get_matches_from(["kordon", "--value", text]) else { return Ok(()) };
    Err(match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(valid)) if !valid.is_empty() => {
            not_one_of(text, &valid.iter().map(String::as_str).collect::<Vec<_>>())
        }
        _ => {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            why.map_or_else(|| "not valid".into(), |why| format!("not valid: {why}"))
        }
    })
}

/// Says that a text is none of the possible values, and which value was probably meant.
pub fn not_one_of(text: &str, values: &[&str]) -> String {
    format!("not one of {}{}", values.join(", "), did_you_mean(nearest(text, values.iter().copied())))
}

/// The first argument with this name, of the command or of its subcommands.
pub fn argument<'a>(command: &'a clap::Command, flag: &str) -> Option<&'a clap::Arg> {
    let own = command.get_arguments().find(|arg| configurable(arg) == Some(flag));
    own.or_else(|| command.get_subcommands().find_map(|subcommand| argument(subcommand, flag)))
}

/// Name of a flag that takes a value; `None` for other flags. Flags without a value cannot be configured, because the
/// command line could not switch them off.
pub fn configurable(arg: &clap::Arg) -> Option<&str> {
    arg.get_long().filter(|_| arg.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_of_the_lists_belongs_to_a_command() {
        let command = definition();
        for path in known_keys().filter(|path| path[0] != "controller") {
            assert!(flag_definition(&command, &path).is_some(), "{path:?}");
        }
    }
}
