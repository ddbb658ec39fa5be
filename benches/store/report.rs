//! The report: measured figures, each with its budget.

use std::{fmt, time::Duration};

/// The figures with a budget that were measured so far. Each figure is printed when it is measured; missed budgets are
/// printed again at the end.
#[derive(Default)]
pub struct Report {
    judged: Vec<(String, Verdict)>,
}

/// Size of the cluster, on which the budgets depend.
#[derive(Clone, Copy)]
pub struct ClusterSize {
    pub nodes: usize,
    pub pods: usize,
}

impl ClusterSize {
    /// Whether the cluster exceeds the size for which the budgets of downloads hold.
    pub fn is_larger(self) -> bool {
        self.nodes > 5_000 || self.pods > 150_000
    }

    /// Returns the memory budget of the dashboard in MiB.
    pub fn memory_mib(self) -> f64 {
        if self.is_larger() { 1331.0 } else { 320.0 }
    }
}

/// Limit of a figure.
#[derive(Clone, Copy)]
pub enum Budget {
    AtMost(f64),
    /// No limit: the figure is only reported.
    None,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Met,
    Missed,
}

/// A figure with its unit.
#[derive(Clone, Copy)]
pub enum Figure {
    Seconds(f64),
    Millis(f64),
    MiB(f64),
    /// Percent of one core.
    Percent(f64),
    PerSecond(f64),
    /// Ratio to another figure.
    Times(f64),
    Count(usize),
}

impl Report {
    pub fn heading(&self, text: &str) {
        println!("\n{text}");
    }

    /// Adds and prints a figure; `note` is additional text.
    pub fn add(&mut self, what: impl Into<String>, figure: Figure, budget: Budget, note: impl fmt::Display) {
        let what = what.into();
        let (allowed, verdict) = match budget {
            Budget::None => (String::new(), None),
            Budget::AtMost(most) => {
                let verdict = if figure.value() <= most { Verdict::Met } else { Verdict::Missed };
                (format!("budget {}", figure.with(most)), Some(verdict))
            }
        };
        let word = match verdict {
            None => "",
            Some(Verdict::Met) => "met",
            Some(Verdict::Missed) => "MISSED",
        };
        let line = format!("  {what:<52} {:>12}  {allowed:<18} {word:<6}  {note}", figure.to_string());
        println!("{}", line.trim_end());
        if let Some(verdict) = verdict {
            self.judged.push((line.trim_end().to_owned(), verdict));
        }
    }

    /// Prints how many budgets were met, and which were missed.
    pub fn finish(&self) {
        let missed: Vec<&str> = self
            .judged
            .iter()
            .filter(|(_, verdict)| *verdict == Verdict::Missed)
            .map(|(line, _)| line.as_str())
            .collect();
        println!("\n{} of {} budgets met", self.judged.len() - missed.len(), self.judged.len());
        for line in missed {
            println!("{line}");
        }
    }
}

impl Figure {
    pub fn seconds(time: Duration) -> Self {
        Self::Seconds(time.as_secs_f64())
    }

    pub fn millis(time: Duration) -> Self {
        Self::Millis(time.as_secs_f64() * 1000.0)
    }

    fn value(self) -> f64 {
        match self {
            Self::Seconds(value)
            | Self::Millis(value)
            | Self::MiB(value)
            | Self::Percent(value)
            | Self::PerSecond(value)
            | Self::Times(value) => value,
            Self::Count(count) => count as f64,
        }
    }

    /// Returns a figure of the same unit with another value.
    fn with(self, value: f64) -> Self {
        match self {
            Self::Seconds(_) => Self::Seconds(value),
            Self::Millis(_) => Self::Millis(value),
            Self::MiB(_) => Self::MiB(value),
            Self::Percent(_) => Self::Percent(value),
            Self::PerSecond(_) => Self::PerSecond(value),
            Self::Times(_) => Self::Times(value),
            Self::Count(_) => Self::Count(value as usize),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(value) => write!(f, "{value:.2} s"),
            Self::Millis(value) => write!(f, "{value:.1} ms"),
            Self::MiB(value) => write!(f, "{value:.0} MiB"),
            Self::Percent(value) => write!(f, "{value:.2} %"),
            Self::PerSecond(value) => write!(f, "{value:.2}/s"),
            Self::Times(value) => write!(f, "{value:.2} x"),
            Self::Count(count) => write!(f, "{count}"),
        }
    }
}
