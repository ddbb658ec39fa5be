//! Times of day at which maintenance may run: `22:00-06:00 Europe/Berlin`.

use std::fmt;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, TimeZone};
use chrono_tz::Tz;

use kordon_time::Timestamp;

/// Number of days ahead for which maintenance windows are computed.
const DAYS: u64 = 365;

/// Number of minutes that a clock change skips at most: a whole day, as in Samoa in 2011.
const LONGEST_CHANGE: i64 = 24 * 60;

/// A time window that repeats every day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyWindow {
    from: NaiveTime,
    /// End of the window. An end before `from` is on the next day.
    to: NaiveTime,
    zone: Tz,
}

/// Parses `HH:MM-HH:MM`, with the name of a time zone or in UTC.
pub fn window(text: &str) -> Result<DailyWindow, String> {
    let (times, zone) = text.split_once(' ').unwrap_or((text, "UTC"));
    let zone =
        zone.trim().parse::<Tz>().map_err(|_| format!("{zone} is no time zone such as Europe/Berlin"))?;
    let time = |text: &str| {
        NaiveTime::parse_from_str(text.trim(), "%H:%M")
            .map_err(|_| format!("{text} is no time such as 22:00"))
    };
    let (from, to) = times.split_once('-').ok_or("not a window such as '22:00-06:00 Europe/Berlin'")?;
    let window = DailyWindow { from: time(from)?, to: time(to)?, zone };
    if window.from == window.to {
        return Err("a window of no length".into());
    }
    Ok(window)
}

impl fmt::Display for DailyWindow {
    /// Writes the window in the form in which users type it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, zone } = self;
        write!(f, "{}-{} {zone}", from.format("%H:%M"), to.format("%H:%M"))
    }
}

impl DailyWindow {
    /// Start and end of each window of the next days, in order. Windows that have ended, and those that a clock change
    /// skips, are left out.
    pub fn upcoming(self, now: Timestamp) -> Vec<(Timestamp, Timestamp)> {
        let today = self.zone.from_utc_datetime(&now.utc().naive_utc()).date_naive();
        // The window that began yesterday may still be open.
        let first = today.checked_sub_days(Days::new(1)).unwrap_or(today);
        let days = (0..=DAYS + 1).filter_map(|day| first.checked_add_days(Days::new(day)));
        days.filter_map(|day| self.on(day)).filter(|(start, end)| *end > now && start < end).collect()
    }

    fn on(self, day: NaiveDate) -> Option<(Timestamp, Timestamp)> {
        let last = if self.to < self.from { day.checked_add_days(Days::new(1))? } else { day };
        Some((self.at(day, self.from)?, self.at(last, self.to)?))
    }

    /// Point in time from which local clocks show at least `time` on a day. If a clock change skips that time, this is
    /// the time of the change.
    fn at(self, day: NaiveDate, time: NaiveTime) -> Option<Timestamp> {
        let local = day.and_time(time);
        let mut minutes = (0..=LONGEST_CHANGE).map(|minutes| local + TimeDelta::minutes(minutes));
        let found: DateTime<Tz> =
            minutes.find_map(|local| self.zone.from_local_datetime(&local).earliest())?;
        found.timestamp_nanos_opt().map(Timestamp::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).expect("a time")
    }

    #[test]
    fn windows_follow_the_clocks_of_their_zone() {
        let berlin = window("22:00-06:00 Europe/Berlin").expect("a window");
        assert_eq!(window(&berlin.to_string()), Ok(berlin));
        let windows = berlin.upcoming(at("2026-10-23T12:00:00Z"));
        let text = |place: usize| {
            let (start, end): (Timestamp, Timestamp) = windows[place];
            format!("{} {}", start.to_time(), end.to_time())
        };
        assert_eq!(text(0), "2026-10-23T20:00:00Z 2026-10-24T04:00:00Z");
        assert_eq!(text(1), "2026-10-24T20:00:00Z 2026-10-25T05:00:00Z", "summer time ends in this night");
        assert_eq!(text(2), "2026-10-25T21:00:00Z 2026-10-26T05:00:00Z");
        assert_eq!(windows.len(), 366, "one night for each wave of a large pool");
    }

    #[test]
    fn a_time_that_a_clock_change_skips_is_the_time_of_the_change() {
        let of_march = |text: &str| {
            let found = window(text).expect("a window").upcoming(at("2026-03-29T00:30:00Z"));
            (found[0].0.to_time(), found[0].1.to_time())
        };
        let times = |start: &str, end: &str| (format!("2026-03-{start}Z"), format!("2026-03-{end}Z"));
        assert_eq!(of_march("02:30-03:15 Europe/Berlin"), times("29T01:00:00", "29T01:15:00"));
        assert_eq!(of_march("22:00-02:30 Europe/Berlin"), times("28T21:00:00", "29T01:00:00"));
        assert_eq!(of_march("02:10-02:50 Europe/Berlin"), times("30T00:10:00", "30T00:50:00"), "skipped");
    }

    #[test]
    fn a_window_that_is_open_is_the_first() {
        let nights = window("22:00-06:00").expect("a window");
        let (start, end) = nights.upcoming(at("2026-11-29T03:00:00Z"))[0];
        assert_eq!((start, end), (at("2026-11-28T22:00:00Z"), at("2026-11-29T06:00:00Z")));
    }

    #[test]
    fn what_is_no_window_is_refused_with_a_reason() {
        let error = |text| window(text).expect_err("no window");
        assert_eq!(error("22:00"), "not a window such as '22:00-06:00 Europe/Berlin'");
        assert_eq!(error("25:00-06:00"), "25:00 is no time such as 22:00");
        assert_eq!(error("22:00-06:00 Mars"), "Mars is no time zone such as Europe/Berlin");
        assert_eq!(error("06:00-06:00"), "a window of no length");
    }
}
