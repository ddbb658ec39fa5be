//! Checks of notifications: who is notified of what, and with `--notify` whether a notice can be sent.

use super::check::DoctorCheck;
use crate::run::notify::{Notifier, NotifyOptions, write_to_stderr};
use kordon_clock::Clock;

pub const RECEIVERS: &str = "notify.receivers";

/// The check of who is notified of what.
pub fn of_receivers(options: &NotifyOptions) -> DoctorCheck {
    let of: Vec<String> = options.on.iter().map(ToString::to_string).collect();
    match (of.is_empty(), options.has_receiver()) {
        (true, false) => DoctorCheck::ok(RECEIVERS, "nobody is notified"),
        (false, true) => {
            let rate = options.at_most;
            let found = format!(
                "of {} by {}, at most {} in {}",
                of.join(", "),
                ways(options).join(", "),
                rate.count,
                rate.per
            );
            DoctorCheck::ok(RECEIVERS, found)
        }
        (true, true) => {
            let found = format!("{} would be notified, but of nothing", ways(options).join(", "));
            DoctorCheck::warning(RECEIVERS, found, "add on = [\"verdict>=warning\"] to [notify]")
        }
        (false, false) => {
            let found = format!("nobody is notified of {}", of.join(", "));
            DoctorCheck::warning(RECEIVERS, found, "add by = [\"bell\"] to [notify]")
        }
    }
}

fn ways(options: &NotifyOptions) -> Vec<String> {
    let terminal = (!options.terminal.is_empty()).then(|| "the terminal".to_owned());
    let command = options.command.first().map(|program| format!("command {program}"));
    let webhook = options.webhook.as_ref().and_then(|url| Some(format!("webhook {}", url.host()?)));
    [terminal, command, webhook].into_iter().flatten().collect()
}

/// Sends a test notice, and waits until it has been delivered.
pub async fn test(options: NotifyOptions, context: &str) -> DoctorCheck {
    let id = "notify.test";
    let sent_to = ways(&options).join(", ");
    let mut notifier = Notifier::new(options);
    match notifier.test(context, Clock::system().now()) {
        Err(off) => return DoctorCheck::warning(id, off, "docs/reference/config.md describes [notify]"),
        Ok(sequences) => write_to_stderr(&sequences),
    }
    match notifier.finish().await.as_slice() {
        [] => DoctorCheck::ok(id, format!("sent a notice by {sent_to}")),
        failures => {
            let fix = "check the program, or the URL and what receives it";
            DoctorCheck::problem(id, failures.join("; "), fix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::check::CheckResult, *};
    use crate::{model::NoticeRule, run::notify::TerminalNotice};

    #[test]
    fn half_a_configuration_is_a_warning() {
        let (on, terminal) = (vec![NoticeRule::Node], vec![TerminalNotice::Bell]);
        let only_on = NotifyOptions { on: on.clone(), ..NotifyOptions::default() };
        let only_by = NotifyOptions { terminal: terminal.clone(), ..NotifyOptions::default() };
        let both = NotifyOptions { on, terminal, ..NotifyOptions::default() };
        let results = [&only_on, &only_by, &both].map(|options| of_receivers(options).result);
        assert_eq!(results, [CheckResult::Warning, CheckResult::Warning, CheckResult::Ok]);
        assert_eq!(of_receivers(&both).found, "of node by the terminal, at most 1 in 1m00s");
    }
}
