//! Whether a pane of the lower part is open. A pane without content is a single line, and the nodes get its space.

use kordon_time::{Span, Timestamp};

/// Minimum time without content before a pane closes.
const EMPTY_FOR: Span = Span::from_secs(60);

/// Open state of a pane. A pane opens as soon as it has content, because the content must be seen. It closes only on a
/// key press, so that nothing moves while the user reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opening {
    is_open: bool,
    /// Time at which the pane became empty; `None` while it has content.
    empty_since: Option<Timestamp>,
}

impl Opening {
    pub const fn is_open(self) -> bool {
        self.is_open
    }

    /// Records whether the pane has content now.
    pub fn on_content(&mut self, is_empty: bool, now: Timestamp) {
        self.is_open |= !is_empty;
        self.empty_since = is_empty.then(|| self.empty_since.unwrap_or(now));
    }

    /// Closes a pane that has been empty for long enough, on a key press.
    pub fn on_key(&mut self, now: Timestamp) {
        if self.empty_since.is_some_and(|since| now.since(since) >= EMPTY_FOR) {
            self.is_open = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pane_opens_at_once_and_closes_with_a_key_after_a_minute_of_nothing() {
        let at = |second: i64| Timestamp::from_secs(1000 + second);
        let mut opening = Opening::default();
        let mut after = |is_empty, key: bool, second| {
            opening.on_content(is_empty, at(second));
            if key {
                opening.on_key(at(second));
            }
            opening.is_open()
        };
        assert!(!after(true, false, 0));
        assert!(after(false, false, 1), "there is something to show");
        assert!(after(true, true, 10), "nothing since now");
        assert!(after(true, true, 69), "not for a minute");
        assert!(after(true, false, 500), "without a key it stays");
        assert!(after(false, true, 501));
        assert!(after(true, true, 502));
        assert!(!after(true, true, 562));
    }
}
