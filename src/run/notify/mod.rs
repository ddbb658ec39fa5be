//! Notifies the user of changes of the cluster: by the terminal, by a command, by a webhook.

mod command;
mod limit;
mod words;

use std::{
    future,
    io::{self, IsTerminal, Write as _},
};

use http::Uri;
use tokio::task::JoinSet;

use crate::{
    k8s::webhook::Webhook,
    model::{ChangeNotice, Model, NoticeFinder, NoticeRule},
};
use kordon_time::{Span, Timestamp};
pub use limit::{NoticeLimit, NoticeRate};
pub use words::{NoticeWords, TerminalNotice};

/// The receivers of notifications, and the changes that they are notified of. By default, nobody is notified.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NotifyOptions {
    pub on: Vec<NoticeRule>,
    pub terminal: Vec<TerminalNotice>,
    /// Program and arguments of the command that delivers notices; empty for no command.
    pub command: Vec<String>,
    pub webhook: Option<Uri>,
    pub at_most: NoticeRate,
}

impl NotifyOptions {
    /// Whether somebody is notified.
    pub const fn has_receiver(&self) -> bool {
        !self.terminal.is_empty() || !self.command.is_empty() || self.webhook.is_some()
    }
}

/// Shortest interval between two comparisons of a model with the previous one.
const LOOK: Span = Span::from_secs(1);

/// Maximum number of commands and webhooks in progress. Further deliveries are not started, and are reported as failed.
const AT_ONCE: usize = 8;

/// Finds changes, and notifies the user. Text for a terminal is returned, because only the owner of the terminal knows
/// when it may be written to.
pub struct Notifier {
    options: NotifyOptions,
    finder: NoticeFinder,
    limit: NoticeLimit,
    next_look: Timestamp,
    in_tmux: bool,
    /// The receiver of the webhook, or the reason why it cannot be reached; `None` before the first notice.
    webhook: Option<Result<Webhook, String>>,
    deliveries: JoinSet<Result<(), String>>,
}

impl Notifier {
    pub fn new(options: NotifyOptions) -> Self {
        Self {
            finder: NoticeFinder::new(options.on.clone()),
            limit: NoticeLimit::new(options.at_most),
            next_look: Timestamp::EPOCH,
            in_tmux: std::env::var_os("TMUX").is_some_and(|value| !value.is_empty()),
            webhook: None,
            deliveries: JoinSet::new(),
            options,
        }
    }

    /// Changes the receivers and the rules. The known state of the cluster and the count of sent notices are kept, so
    /// that no change is lost and none is reported twice.
    pub fn change(&mut self, options: NotifyOptions) {
        self.finder.set_rules(options.on.clone());
        self.limit.set_rate(options.at_most);
        if options.webhook != self.options.webhook {
            self.webhook = None;
        }
        self.options = options;
    }

    /// Compares a model that was refreshed at `now` with the previous model, and sends a notice of the changes. Returns
    /// the bytes for the terminal; `None` if nothing has changed, the rate limit is reached, or the last comparison was
    /// less than a second ago.
    pub fn look(&mut self, model: &Model, now: Timestamp) -> Option<String> {
        if self.options.on.is_empty() || !self.options.has_receiver() {
            // A change that happens while notices are off is not reported later.
            self.finder.forget();
            return None;
        }
        if now < self.next_look {
            return None;
        }
        self.next_look = now + LOOK;
        let notice = ChangeNotice::merged(self.finder.look(model, now))?;
        let left_out = self.limit.admit(now)?;
        Some(self.send(&NoticeWords::new(&notice, &model.connection.context, left_out, now)))
    }

    /// Sends a test notice, even beyond the rate limit. Returns the bytes for the terminal.
    ///
    /// # Errors
    /// No receiver of notifications is configured.
    pub fn test(&mut self, context: &str, now: Timestamp) -> Result<String, &'static str> {
        if !self.options.has_receiver() {
            return Err("notifications are off: [notify] in config.toml says who is notified of what");
        }
        Ok(self.send(&NoticeWords::new(&ChangeNotice::test(), context, 0, now)))
    }

    fn send(&mut self, words: &NoticeWords) -> String {
        if !self.options.command.is_empty() {
            let (command, words) = (self.options.command.clone(), words.clone());
            self.deliver(async move { command::run(&command, &words).await });
        }
        if let Some(url) = &self.options.webhook {
            let webhook = self.webhook.get_or_insert_with(|| Webhook::new(url)).clone();
            let json = serde_json::to_string(words).expect("words are plain data");
            self.deliver(async move { webhook?.post(json).await });
        }
        words.for_terminal(&self.options.terminal, self.in_tmux)
    }

    fn deliver(&mut self, delivery: impl Future<Output = Result<(), String>> + Send + 'static) {
        if self.deliveries.len() < AT_ONCE {
            self.deliveries.spawn(delivery);
        } else {
            self.deliveries
                .spawn(future::ready(Err("not sent: earlier notices are still being sent".into())));
        }
    }

    /// Waits for the next delivery that fails; forever if none does. May be dropped and awaited again.
    pub async fn next_failure(&mut self) -> String {
        loop {
            match self.deliveries.join_next().await {
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(why))) => return why,
                Some(Err(_)) => return "sending it failed by a bug in kordon".into(),
                None => future::pending().await,
            }
        }
    }

    /// Waits until no notice is being delivered any more. Returns the reasons of the deliveries that failed.
    pub async fn finish(&mut self) -> Vec<String> {
        let mut failures = Vec::new();
        while let Some(delivered) = self.deliveries.join_next().await {
            match delivered {
                Ok(Ok(())) => {}
                Ok(Err(why)) => failures.push(why),
                Err(_) => failures.push("sending it failed by a bug in kordon".into()),
            }
        }
        failures
    }
}

/// Writes the bytes of a notice to standard error if that is a terminal, for programs without a screen.
pub fn write_to_stderr(bytes: &str) {
    let mut stderr = io::stderr().lock();
    if stderr.is_terminal() {
        // A terminal that cannot be written to cannot show an error either.
        let _ = stderr.write_all(bytes.as_bytes()).and_then(|()| stderr.flush());
    }
}
