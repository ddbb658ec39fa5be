//! The latest notices of an operation or a maintenance.

use std::collections::VecDeque;

use kordon_core::operation::OperationNotice;

/// Maximum number of notices that are kept.
const NOTICES: usize = 200;

/// The latest notices of an operation or a maintenance, oldest first. Each has a number, counted from the first notice.
#[derive(Clone, Debug, Default)]
pub struct NoticeLog {
    kept: VecDeque<OperationNotice>,
    /// Number of older notices that were dropped.
    dropped: usize,
}

impl NoticeLog {
    /// Adds a notice. Drops the oldest one if there are too many.
    pub(in crate::app) fn add(&mut self, notice: OperationNotice) {
        if self.kept.len() == NOTICES {
            self.kept.pop_front();
            self.dropped += 1;
        }
        self.kept.push_back(notice);
    }

    /// Returns the notice with this number; `None` if it was dropped or does not exist yet.
    pub fn get(&self, number: usize) -> Option<&OperationNotice> {
        self.kept.get(number.checked_sub(self.dropped)?)
    }

    /// The numbers of the notices, newest first.
    pub fn numbers(&self) -> impl Iterator<Item = usize> + use<> {
        (self.dropped..self.dropped + self.kept.len()).rev()
    }

    /// Returns up to `most` of the newest notices, oldest first.
    pub fn newest(&self, most: usize) -> impl Iterator<Item = &OperationNotice> {
        self.kept.iter().skip(self.kept.len().saturating_sub(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::engine::Severity;
    use kordon_time::Timestamp;

    #[test]
    fn notices_keep_their_numbers_while_older_ones_are_dropped() {
        let mut log = NoticeLog::default();
        for number in 0..NOTICES + 3 {
            let text = number.to_string();
            log.add(OperationNotice {
                at: Timestamp::EPOCH,
                level: Severity::Info,
                subject: String::new(),
                text,
            });
        }
        let numbers: Vec<usize> = log.numbers().collect();
        assert_eq!(numbers, (3..NOTICES + 3).rev().collect::<Vec<_>>());
        for number in numbers {
            assert_eq!(log.get(number).map(|notice| notice.text.clone()), Some(number.to_string()));
        }
        assert!(log.get(2).is_none() && log.get(NOTICES + 3).is_none());
        let newest: Vec<&str> = log.newest(2).map(|notice| notice.text.as_str()).collect();
        assert_eq!(newest, ["201", "202"]);
    }
}
