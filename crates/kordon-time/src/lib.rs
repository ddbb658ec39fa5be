//! Points in time and the spans between them, in nanoseconds. Nothing here reads a clock.

#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod encoding;

pub use encoding::TimeBase;

use std::{
    fmt,
    num::NonZeroU64,
    ops::{Add, AddAssign, Mul, Neg, Sub},
    time::Duration,
};

use chrono::{DateTime, SecondsFormat, Utc};

/// A point in time: nanoseconds since the Unix epoch (from 1677 to 2262).
///
/// The value is stored as nanoseconds since `i64::MIN`. No point in time has the value `i64::MIN` itself, so the stored
/// value is never zero, and `Option<Timestamp>` has the same size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(NonZeroU64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self::from_nanos(0);
    /// The latest representable time, which stands for "never".
    pub const MAX: Self = Self::from_nanos(i64::MAX);

    /// Bias of the encoding: the epoch is stored as 2^63.
    const OFFSET: u64 = 1 << 63;

    pub const fn from_nanos(nanos: i64) -> Self {
        match NonZeroU64::new(nanos.cast_unsigned() ^ Self::OFFSET) {
            Some(stored) => Self(stored),
            // `i64::MIN` saturates to `MIN + 1`.
            None => Self(NonZeroU64::MIN),
        }
    }

    pub const fn from_secs(secs: i64) -> Self {
        Self::from_nanos(secs.saturating_mul(1_000_000_000))
    }

    pub const fn as_nanos(self) -> i64 {
        (self.0.get() ^ Self::OFFSET).cast_signed()
    }

    /// Parses a time in RFC 3339, as Kubernetes writes `Time` and `MicroTime`. `None` if the text is not a time.
    pub fn parse(text: &str) -> Option<Self> {
        DateTime::parse_from_rfc3339(text).ok()?.timestamp_nanos_opt().map(Self::from_nanos)
    }

    /// The span from `earlier` to this point; negative if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.as_nanos().saturating_sub(earlier.as_nanos()))
    }

    /// RFC 3339 in UTC with whole seconds, as Kubernetes' `Time` is written.
    pub fn to_time(self) -> String {
        self.utc().to_rfc3339_opts(SecondsFormat::Secs, true)
    }

    /// RFC 3339 in UTC with microseconds, as Kubernetes' `MicroTime` is written.
    pub fn to_micro_time(self) -> String {
        self.utc().to_rfc3339_opts(SecondsFormat::Micros, true)
    }

    /// This point as a chrono type, for calendar arithmetic and formatting.
    pub fn utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_nanos(self.as_nanos())
    }
}

impl Default for Timestamp {
    fn default() -> Self {
        Self::EPOCH
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.utc().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A time that a component of the cluster wrote into an object (`renewTime`, `timeAdded`, `creationTimestamp` and so
/// on), by the cluster's clock.
///
/// It can only be compared with other cluster times, because the cluster's clock may differ from ours.
/// [`ClusterClock::local`] converts it, and [`ClusterClock::written`] creates it.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterTime(Timestamp);

impl ClusterTime {
    /// A time as the cluster wrote it.
    pub const fn new(written: Timestamp) -> Self {
        Self(written)
    }

    /// Parses a time in RFC 3339. `None` if the text is not a time.
    pub fn parse(text: &str) -> Option<Self> {
        Timestamp::parse(text).map(Self)
    }

    pub const fn as_nanos(self) -> i64 {
        self.0.as_nanos()
    }

    /// The span from `earlier` to this point; negative if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        self.0.since(earlier.0)
    }

    /// RFC 3339 in UTC with whole seconds, as Kubernetes' `Time` is written.
    pub fn to_time(self) -> String {
        self.0.to_time()
    }

    /// RFC 3339 in UTC with microseconds, as Kubernetes' `MicroTime` is written.
    pub fn to_micro_time(self) -> String {
        self.0.to_micro_time()
    }
}

impl fmt::Display for ClusterTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for ClusterTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl serde::Serialize for ClusterTime {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Add<Span> for ClusterTime {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0 + span)
    }
}

impl Sub<Span> for ClusterTime {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0 - span)
    }
}

/// The offset of the cluster's clock from ours. Only this type converts between [`ClusterTime`] and [`Timestamp`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterClock {
    ahead: Span,
}

impl ClusterClock {
    /// Returns the offset of a cluster's clock that is ahead of ours by `ahead`; a negative span means that it is
    /// behind.
    pub const fn ahead_by(ahead: Span) -> Self {
        Self { ahead }
    }

    /// The cluster's clock minus ours.
    pub const fn ahead(self) -> Span {
        self.ahead
    }

    /// Converts a cluster time to the time that our clock showed.
    pub fn local(self, time: ClusterTime) -> Timestamp {
        time.0 - self.ahead
    }

    /// Returns the time that the cluster's clock shows when ours shows `at`.
    pub fn written(self, at: Timestamp) -> ClusterTime {
        ClusterTime(at + self.ahead)
    }
}

/// A span between two points in time, in nanoseconds; may be negative.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

impl Span {
    pub const ZERO: Self = Self(0);
    /// The longest span, which stands for "never".
    pub const MAX: Self = Self(i64::MAX);

    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// The span nearest to a number of seconds. Numbers out of range saturate, and NaN becomes zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a float cast saturates, which is what is wanted"
        )]
        Self((secs * 1e9).round() as i64)
    }

    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Whole seconds, rounded towards zero.
    pub const fn as_secs(self) -> i64 {
        self.0 / 1_000_000_000
    }

    /// Rounds up to whole seconds. The time until an event is rounded like this, so that zero is never shown early.
    #[must_use]
    pub const fn rounded_up(self) -> Self {
        Self::from_secs(self.0.saturating_add(999_999_999).div_euclid(1_000_000_000))
    }

    #[expect(clippy::cast_precision_loss, reason = "spans of interest are far below 2^53 ns of error")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The span, or zero if it is negative.
    pub fn or_zero(self) -> Self {
        self.max(Self::ZERO)
    }

    /// The span as a `Duration`, for timers and clients. Negative spans become zero.
    pub fn to_std(self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0).unwrap_or(0))
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Span {
    /// Formats the span with at most two units, for example `850ms`, `7s`, `4m12s`, `3h05m`, `12d4h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_negative() {
            f.write_str("-")?;
        }
        let millis = self.0.unsigned_abs() / 1_000_000;
        let secs = millis / 1000;
        let (days, hours, minutes) = (secs / 86_400, secs / 3600 % 24, secs / 60 % 60);
        match secs {
            0 if millis > 0 => write!(f, "{millis}ms"),
            0..=59 => write!(f, "{secs}s"),
            60..=3599 => write!(f, "{minutes}m{:02}s", secs % 60),
            3600..=86_399 => write!(f, "{hours}h{minutes:02}m"),
            _ => write!(f, "{days}d{hours}h"),
        }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.as_secs_f64())
    }
}

impl Add<Span> for Timestamp {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self::from_nanos(self.as_nanos().saturating_add(span.0))
    }
}

impl AddAssign<Span> for Timestamp {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Timestamp {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self::from_nanos(self.as_nanos().saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<i64> for Span {
    type Output = Self;
    fn mul(self, times: i64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Neg for Span {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

/// Implements the JSON schema of types that serialize as text.
#[cfg(feature = "schema")]
#[macro_export]
macro_rules! text_schema {
    ($($type:ty),+ $(,)?) => {$(
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string" })
            }
        }
    )+};
}

#[cfg(feature = "schema")]
text_schema!(Timestamp, ClusterTime);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kubernetes_time_formats_parse() {
        let time = Timestamp::parse("2026-01-02T03:04:05Z").expect("Time");
        assert_eq!(time.to_time(), "2026-01-02T03:04:05Z");
        let micro = Timestamp::parse("2026-01-02T03:04:05.123456Z").expect("MicroTime");
        assert_eq!(micro.to_micro_time(), "2026-01-02T03:04:05.123456Z");
        assert_eq!(micro.since(time), Span::from_nanos(123_456_000));
        assert_eq!(Timestamp::parse("yesterday"), None);
    }

    #[test]
    fn points_are_ordered_from_the_earliest_to_the_latest_and_take_eight_bytes_at_most() {
        let points = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX].map(Timestamp::from_nanos);
        assert_eq!(points[0], points[1]);
        assert!(points[1..].is_sorted_by(|earlier, later| earlier < later));
        assert_eq!(
            points[1..].iter().map(|point| point.as_nanos()).collect::<Vec<_>>(),
            [i64::MIN + 1, -1, 0, 1, i64::MAX]
        );
        assert_eq!(Timestamp::EPOCH.as_nanos(), Timestamp::default().as_nanos());
        assert_eq!(size_of::<Option<Timestamp>>(), 8);
    }

    #[test]
    fn spans_read_like_a_clock() {
        let shown = |secs| Span::from_secs_f64(secs).to_string();
        assert_eq!(
            [0.0, 0.25, 7.9, 252.0, 11_100.0, 1_051_200.0, -5.0].map(shown),
            ["0s", "250ms", "7s", "4m12s", "3h05m", "12d4h", "-5s"]
        );
    }

    #[test]
    fn a_span_is_rounded_up_to_whole_seconds() {
        let rounded = |millis| Span::from_millis(millis).rounded_up().as_secs();
        assert_eq!([0, 1, 1000, 44_620, -400, -1000].map(rounded), [0, 1, 1, 45, 0, -1]);
    }

    #[test]
    fn extremes_saturate() {
        assert_eq!(Timestamp::MAX + Span::MAX, Timestamp::MAX);
        assert_eq!(Span::from_secs(i64::MAX), Span::MAX);
    }
}
