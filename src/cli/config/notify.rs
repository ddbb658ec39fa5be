//! `[notify]` of the configuration: who is notified of what.

use http::Uri;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    k8s::webhook::Webhook,
    model::NoticeRule,
    run::notify::{NoticeRate, NotifyOptions, TerminalNotice},
};

/// The table `[notify]`, with its values as written in the file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct NotifyFile {
    /// Changes of which the user is notified: `verdict>=warning` (or `notice`, `critical`, `disconnected`), `node`,
    /// `zone`, `drain-done`, `drain-blocked`.
    #[schemars(with = "Vec<String>")]
    on: Option<Vec<String>>,
    /// Ways to notify the user: `bell`, `osc9`, `osc777` and `osc99` of the terminal, `command`, `webhook`.
    #[schemars(with = "Vec<String>")]
    by: Option<Vec<String>>,
    /// Program and arguments for `command`, without a shell. `{title}`, `{text}`, `{kind}`, `{context}` and `{object}`
    /// of arguments are filled in.
    #[schemars(with = "Vec<String>")]
    command: Option<Vec<String>>,
    /// URL for `webhook`, to which JSON is posted.
    #[schemars(with = "String")]
    webhook: Option<String>,
    /// Maximum rate of notices: `1 per 1m`. Changes beyond this rate are counted in the next notice.
    #[schemars(with = "String")]
    at_most: Option<String>,
}

/// A way to notify the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotifyWay {
    Terminal(TerminalNotice),
    Command,
    Webhook,
}

const WAYS: [(&str, NotifyWay); 6] = [
    ("bell", NotifyWay::Terminal(TerminalNotice::Bell)),
    ("osc9", NotifyWay::Terminal(TerminalNotice::Osc9)),
    ("osc777", NotifyWay::Terminal(TerminalNotice::Osc777)),
    ("osc99", NotifyWay::Terminal(TerminalNotice::Osc99)),
    ("command", NotifyWay::Command),
    ("webhook", NotifyWay::Webhook),
];

/// Checks the text of a setting in `[notify]`.
///
/// # Errors
/// The text is not valid for this key. The error says what is wrong with the text, as in "not one of bell, webhook".
pub fn check_notify(key: &str, text: &str) -> Result<(), String> {
    match key {
        "on" => NoticeRule::parse(text).map(drop),
        "by" => way(text).map(drop),
        "webhook" => Webhook::parse_url(text).map(drop),
        "at-most" => NoticeRate::parse(text).map(drop),
        _ => Ok(()),
    }
}

fn way(text: &str) -> Result<NotifyWay, String> {
    let found = WAYS.into_iter().find(|(name, _)| *name == text);
    let names = || WAYS.map(|(name, _)| name).join(", ");
    found.map(|(_, way)| way).ok_or_else(|| format!("not one of {}", names()))
}

impl NotifyFile {
    /// Replaces the keys that `own` sets.
    #[must_use]
    pub fn overridden_with(self, own: Self) -> Self {
        Self {
            on: own.on.or(self.on),
            by: own.by.or(self.by),
            command: own.command.or(self.command),
            webhook: own.webhook.or(self.webhook),
            at_most: own.at_most.or(self.at_most),
        }
    }

    /// The options that the table describes.
    ///
    /// # Errors
    /// A value is invalid, or a receiver lacks a setting that it needs. The error has the key and the problem.
    pub fn options(&self) -> Result<NotifyOptions, (&'static str, String)> {
        let on: Result<Vec<NoticeRule>, String> =
            self.on.iter().flatten().map(|text| NoticeRule::parse(text)).collect();
        let ways: Result<Vec<NotifyWay>, String> = self.by.iter().flatten().map(|text| way(text)).collect();
        let ways = ways.map_err(|why| ("by", why))?;
        let terminal = ways.iter().filter_map(|way| match way {
            NotifyWay::Terminal(form) => Some(*form),
            NotifyWay::Command | NotifyWay::Webhook => None,
        });
        Ok(NotifyOptions {
            on: on.map_err(|why| ("on", why))?,
            terminal: terminal.collect(),
            command: self.command(ways.contains(&NotifyWay::Command))?,
            webhook: self.webhook(ways.contains(&NotifyWay::Webhook))?,
            at_most: match &self.at_most {
                None => NoticeRate::default(),
                Some(text) => NoticeRate::parse(text).map_err(|why| ("at-most", why))?,
            },
        })
    }

    fn command(&self, is_used: bool) -> Result<Vec<String>, (&'static str, String)> {
        match self.command.as_deref() {
            _ if !is_used => Ok(Vec::new()),
            Some(command @ [program, ..]) if !program.is_empty() => Ok(command.to_vec()),
            _ => Err(("by", "by has \"command\", but command names no program".into())),
        }
    }

    fn webhook(&self, is_used: bool) -> Result<Option<Uri>, (&'static str, String)> {
        match &self.webhook {
            _ if !is_used => Ok(None),
            Some(url) => Webhook::parse_url(url).map(Some).map_err(|why| ("webhook", why)),
            None => Err(("by", "by has \"webhook\", but webhook has no URL".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> NotifyFile {
        toml::from_str(text).expect("TOML")
    }

    #[test]
    fn by_default_nobody_is_notified_and_a_receiver_that_is_not_used_is_not_notified() {
        assert!(!NotifyOptions::default().has_receiver());
        assert_eq!(NotifyFile::default().options(), Ok(NotifyOptions::default()));
        let unused = file("on = [\"node\"]\ncommand = [\"x\"]\nwebhook = \"https://h/x\"").options();
        assert!(!unused.expect("valid").has_receiver());
    }

    #[test]
    fn keys_of_a_context_replace_those_of_all_and_an_empty_list_notifies_nobody() {
        let all = file("on = [\"node\"]\nby = [\"bell\"]\nat-most = \"2 per 5m\"");
        let of = |text: &str| all.clone().overridden_with(file(text)).options().expect("valid");
        let own = of("by = [\"osc9\"]");
        assert_eq!((own.terminal, own.on.len(), own.at_most.count), (vec![TerminalNotice::Osc9], 1, 2));
        assert!(!of("by = []").has_receiver() && of("").has_receiver());
    }

    #[test]
    fn every_way_has_what_it_needs() {
        let text = "on = [\"verdict>=critical\", \"zone\"]\nby = [\"bell\", \"osc99\", \"command\", \"webhook\"]\n\
                    command = [\"notify-send\", \"{title}\"]\nwebhook = \"https://h/x\"\nat-most = \"2 per 5m\"";
        let options = file(text).options().expect("valid");
        assert_eq!(options.terminal, [TerminalNotice::Bell, TerminalNotice::Osc99]);
        assert_eq!((options.on.len(), options.command.len(), options.at_most.count), (2, 2, 2));
        assert_eq!(options.webhook.expect("one").host(), Some("h"));
        let error = |text: &str| file(text).options().expect_err(text);
        assert_eq!(error("by = [\"command\"]").0, "by");
        assert_eq!(error("by = [\"command\"]\ncommand = [\"\"]").0, "by");
        assert_eq!(error("by = [\"webhook\"]").0, "by");
        assert_eq!(error("by = [\"webhook\"]\nwebhook = \"ftp://x\"").0, "webhook");
        assert_eq!(error("on = [\"nodes\"]").0, "on");
        assert_eq!(error("by = [\"mail\"]").1, "not one of bell, osc9, osc777, osc99, command, webhook");
        assert_eq!(error("at-most = \"many\"").0, "at-most");
    }
}
