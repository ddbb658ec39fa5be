//! The rate limit of notices.

use std::collections::VecDeque;

use kordon_time::{Span, Timestamp};

/// A rate of notices: at most `count` within any time of length `per`. Written as `3 per 10m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoticeRate {
    pub count: usize,
    pub per: Span,
}

/// Maximum number of notices that a rate may allow. It is limited, because the times of all these notices are
/// remembered.
const MOST: usize = 1000;

impl Default for NoticeRate {
    fn default() -> Self {
        Self { count: 1, per: Span::from_secs(60) }
    }
}

impl NoticeRate {
    /// Parses `COUNT per DURATION`.
    ///
    /// # Errors
    /// The text is not a rate.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = || {
            let (count, per) = text.split_once(" per ")?;
            let per = Span::from(humantime::parse_duration(per.trim()).ok()?);
            Some(Self { count: count.trim().parse().ok()?, per })
        };
        let is_rate = |rate: &Self| (1..=MOST).contains(&rate.count) && rate.per > Span::ZERO;
        parts().filter(is_rate).ok_or_else(|| "not a rate such as \"1 per 1m\" or \"3 per 10m\"".into())
    }
}

/// Rate limiter of notices, which also counts the notices that it leaves out.
#[derive(Clone, Debug)]
pub struct NoticeLimit {
    rate: NoticeRate,
    /// Times of the last notices that were sent, at most as many as the rate allows.
    sent: VecDeque<Timestamp>,
    left_out: usize,
}

impl NoticeLimit {
    pub const fn new(rate: NoticeRate) -> Self {
        Self { rate, sent: VecDeque::new(), left_out: 0 }
    }

    /// Changes the rate. Notices that were sent before count towards the new rate.
    pub const fn set_rate(&mut self, rate: NoticeRate) {
        self.rate = rate;
    }

    /// If a notice may be sent now, returns the number of notices that were left out since the last sent notice.
    /// Otherwise counts the notice as left out, and returns `None`.
    pub fn admit(&mut self, now: Timestamp) -> Option<usize> {
        while self.sent.front().is_some_and(|sent| now.since(*sent) >= self.rate.per) {
            self.sent.pop_front();
        }
        if self.sent.len() >= self.rate.count {
            self.left_out += 1;
            return None;
        }
        self.sent.push_back(now);
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_a_count_and_a_time_and_neither_is_zero() {
        let rate = NoticeRate::parse("3 per 10m").expect("a rate");
        assert_eq!(rate, NoticeRate { count: 3, per: Span::from_secs(600) });
        assert_eq!(NoticeRate::parse("1 per 1m").expect("a rate"), NoticeRate::default());
        for wrong in ["", "3", "per 1m", "0 per 1m", "1 per 0s", "-1 per 1m", "1 per", "9999 per 1s", "1/1m"]
        {
            NoticeRate::parse(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn what_exceeds_the_rate_is_counted_in_the_next_notice() {
        let mut limit = NoticeLimit::new(NoticeRate { count: 2, per: Span::from_secs(60) });
        let admitted = [0, 10, 20, 59, 60, 61, 70, 200].map(|secs| limit.admit(Timestamp::from_secs(secs)));
        assert_eq!(
            admitted,
            [Some(0), Some(0), None, None, Some(2), None, Some(1), Some(0)],
            "the window slides: 60 and 70 are a minute after 0 and 10"
        );
    }
}
